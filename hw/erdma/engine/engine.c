/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine as a whole: life cycle, doorbell dispatch, and the one loop in
 * which everything happens.
 *
 * Reference: docs/specs/erdma.rst
 */

#include "qemu/osdep.h"
#include "engine/engine.h"
#include "engine/state.h"
#include "qemu/bitops.h"

/*
 * Work per erdma_engine_run(), so that a busy guest does not keep the main
 * loop from its other duties: less than a millisecond's worth.  What a visit
 * of a queue costs depends on what the guest has put there, and is paid for
 * in DMA transfers; events have a share of their own, for else busy QPs would
 * keep a guest from ever hearing of it.
 */
#define RUN_MAX_QPS         64
#define RUN_MAX_QP_DMA      2048
#define RUN_MAX_PACKETS     128
#define RUN_MAX_CQS         256
#define RUN_MAX_EVENT_DMA   1024

/* A transfer takes as long whether it succeeds or not. */
static void charge_dma(ErdmaEngine *e)
{
    if (e->dma_left) {
        e->dma_left--;
    }
}

bool erdma_dma_read(ErdmaEngine *e, uint64_t addr, void *buf, size_t len)
{
    bool ok;

    charge_dma(e);
    if (erdma_fault_watches(e, ERDMA_FAULT_ON_DMA) &&
        erdma_fault_dma(e, false, len)) {
        ok = false;
    } else {
        e->is_outside = true;
        ok = e->port->dma_read(e->opaque, addr, buf, len);
        e->is_outside = false;
    }
    if (!ok) {
        e->stats.dma_errors++;
        erdma_trace(e, ERDMA_EV_DMA_ERROR, 0, addr, len);
    }
    return ok;
}

bool erdma_dma_write(ErdmaEngine *e, uint64_t addr, const void *buf,
                     size_t len)
{
    bool ok;

    charge_dma(e);
    if (erdma_fault_watches(e, ERDMA_FAULT_ON_DMA) &&
        erdma_fault_dma(e, true, len)) {
        ok = false;
    } else {
        e->is_outside = true;
        ok = e->port->dma_write(e->opaque, addr, buf, len);
        e->is_outside = false;
    }
    if (!ok) {
        e->stats.dma_errors++;
        erdma_trace(e, ERDMA_EV_DMA_ERROR, 0, addr, len);
    }
    return ok;
}

void erdma_engine_kick(ErdmaEngine *e)
{
    if (!e->is_kicked) {
        e->is_kicked = true;
        e->port->kick(e->opaque);
    }
}

/* A guest sees 12 bits of the seed, in cookies; this does not follow. */
static uint32_t table_secret(uint64_t seed)
{
    return (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9ULL >> 32;
}

static void reset(ErdmaEngine *e)
{
    unsigned i;

    e->is_ready = false;
    erdma_faults_reset(e);
    if (!erdma_leftover_take(e)) {
        /* QPs first: they are what could still move data. */
        erdma_qp_free_all(e);
        erdma_mr_free_all(e);
        erdma_cq_free_all(e);
    }
    for (i = 0; i < ERDMA_MAX_VECTORS; i++) {
        erdma_eq_destroy(&e->ceqs[i]);
    }
    if (e->cmdq.cq.has_db) {
        QTAILQ_REMOVE(&e->cq_work, &e->cmdq.cq, work);
    }
    erdma_eq_destroy(&e->cmdq_eq);
    erdma_eq_destroy(&e->aeq);
    g_queue_clear_full(&e->aeq_held, g_free);
    memset(&e->cmdq, 0, sizeof(e->cmdq));
    e->eq_work = 0;
    e->guest_page_shift = ERDMA_PAGE_SHIFT_MIN;
    erdma_extdb_layout(e, e->guest_page_shift);
    erdma_xport_set_mtu(e->xport, e->wire_mtu);
    /* If the wire is still blocked, the next datagram says so again. */
    erdma_xport_unblock(e->xport);
}

ErdmaEngine *erdma_engine_new(const ErdmaPort *port, void *opaque,
                              const ErdmaEngineConfig *cfg)
{
    ErdmaEngine *e = g_new0(ErdmaEngine, 1);

    assert(cfg->qblocks >= 1 && cfg->qblocks <= ERDMA_MAX_QBLOCKS);
    assert(cfg->n_vectors >= 1 && cfg->n_vectors <= ERDMA_MAX_VECTORS);
    e->port = port;
    e->opaque = opaque;
    e->cfg = *cfg;
    e->wire_mtu = cfg->xport.mtu;
    /* A new life must not answer to the cookies of the one before. */
    e->incarnation = cfg->seed ^ (cfg->seed >> 32);
    erdma_table_init(&e->cqs, erdma_engine_max_cq(e));
    erdma_table_init(&e->mrs, erdma_engine_max_cq(e));
    erdma_table_init(&e->qps, erdma_engine_max_qp(e));
    g_queue_init(&e->aeq_held);
    QTAILQ_INIT(&e->cq_work);
    QTAILQ_INIT(&e->qp_work);
    QTAILQ_INIT(&e->leftovers);
    erdma_faults_init(e);
    e->xport = erdma_xport_new(&erdma_qp_xport_ops, e, &e->cfg.xport);
    erdma_xport_set_secret(e->xport, table_secret(cfg->seed));
    erdma_xport_reserve(e->xport, erdma_engine_max_qp(e));
    erdma_engine_reset(e);
    return e;
}

void erdma_engine_free(ErdmaEngine *e)
{
    erdma_faults_exit(e);
    reset(e);
    erdma_leftover_finish(e);
    erdma_xport_free(e->xport);
    erdma_extdb_destroy(e);
    erdma_table_destroy(&e->cqs);
    erdma_table_destroy(&e->mrs);
    erdma_table_destroy(&e->qps);
    g_free(e);
}

void erdma_engine_reset(ErdmaEngine *e)
{
    if (e->is_outside) {
        e->port->guest_error(e->opaque, "reset by the device's own DMA");
        return;
    }
    reset(e);
    e->is_kicked = false;
    if (!QTAILQ_EMPTY(&e->leftovers)) {
        erdma_engine_kick(e);
    }
}

/* Depths arrive raw; rings need powers of two. */
static bool depth_log2(uint32_t depth, uint32_t *log2)
{
    if (!depth || depth & (depth - 1) || depth > 1u << ERDMA_MAX_EQ_LOG2) {
        return false;
    }
    *log2 = ctz32(depth);
    return true;
}

static bool is_aligned(uint64_t addr, uint64_t size)
{
    return !(addr & (size - 1));
}

bool erdma_engine_init(ErdmaEngine *e, const ErdmaEngineInit *init)
{
    uint32_t cmdq_log2, cmdq_eq_log2, aeq_log2;

    if (e->is_outside) {
        return false;
    }
    erdma_engine_reset(e);
    if (!depth_log2(init->cmdq_depth, &cmdq_log2) ||
        !depth_log2(init->cmdq_eq_depth, &cmdq_eq_log2) ||
        !depth_log2(init->aeq_depth, &aeq_log2)) {
        e->port->guest_error(e->opaque, "init: depths %u, %u, %u are not all "
                             "powers of two up to %u", init->cmdq_depth,
                             init->cmdq_eq_depth, init->aeq_depth,
                             1u << ERDMA_MAX_EQ_LOG2);
        return false;
    }
    if (!is_aligned(init->cmdq_sq_addr, ERDMA_WQEBB_SIZE) ||
        !is_aligned(init->cmdq_cq_addr, ERDMA_CQE_SIZE) ||
        !is_aligned(init->cmdq_eq_addr, ERDMA_EQE_SIZE) ||
        !is_aligned(init->aeq_addr, ERDMA_EQE_SIZE)) {
        e->port->guest_error(e->opaque, "init: a queue is not aligned to its "
                             "entries");
        return false;
    }

    erdma_cmdq_init(e, init->cmdq_sq_addr, init->cmdq_cq_addr, cmdq_log2);
    e->cmdq.cq.dbrec = init->cmdq_cq_dbrec;
    erdma_eq_create(e, &e->cmdq_eq, init->cmdq_eq_addr, cmdq_eq_log2, 0,
                    init->cmdq_eq_dbrec);
    erdma_eq_create(e, &e->aeq, init->aeq_addr, aeq_log2, 0,
                    init->aeq_dbrec);
    e->is_ready = true;
    return true;
}

bool erdma_engine_is_ready(const ErdmaEngine *e)
{
    return e->is_ready;
}

/* A doorbell that may be looked at */
static bool db_is_open(ErdmaEngine *e)
{
    if (!e->is_ready || e->is_outside) {
        e->stats.db_ignored++;
        return false;
    }
    return true;
}

void erdma_engine_db_cmdq_sq(ErdmaEngine *e, uint64_t payload)
{
    if (db_is_open(e)) {
        erdma_cmdq_db_sq(e, payload);
    }
}

void erdma_engine_db_cmdq_cq(ErdmaEngine *e, uint64_t payload)
{
    if (db_is_open(e)) {
        erdma_cmdq_db_cq(e, payload);
    }
}

void erdma_engine_db_cmdq_eq(ErdmaEngine *e, uint64_t payload)
{
    if (db_is_open(e)) {
        erdma_eq_db(e, ERDMA_EQN_CMDQ, payload);
    }
}

void erdma_engine_db_aeq(ErdmaEngine *e, uint64_t payload)
{
    if (db_is_open(e)) {
        erdma_eq_db(e, ERDMA_EQN_AEQ, payload);
    }
}

void erdma_engine_db_ceq(ErdmaEngine *e, unsigned eqn, uint64_t payload)
{
    assert(eqn >= 1 && eqn < ERDMA_MAX_VECTORS);
    if (db_is_open(e)) {
        erdma_eq_db(e, eqn, payload);
    }
}

/*
 * A queue's doorbell that arrived through context @ctx.  The target is in
 * the payload: what it may name depends on who could write there.
 */
static void db_queue(ErdmaEngine *e, ErdmaDbKind kind, uint64_t payload,
                     uint32_t ctx)
{
    ErdmaQp *qp;
    ErdmaCq *cq;

    switch (kind) {
    case ERDMA_DB_KIND_SQ:
        qp = erdma_qp_get(e, FIELD_EX64(payload, ERDMA_DB_SQ, QPN));
        if (qp && qp->db_ctx == ctx) {
            erdma_qp_db_sq(e, payload);
            return;
        }
        break;
    case ERDMA_DB_KIND_RQ:
        qp = erdma_qp_get(e, FIELD_EX64(payload, ERDMA_DB_RQ, QPN));
        if (qp && qp->db_ctx == ctx) {
            erdma_qp_db_rq(e, payload);
            return;
        }
        break;
    case ERDMA_DB_KIND_CQ:
        cq = erdma_cq_get(e, FIELD_EX64(payload, ERDMA_DB_CQ, CQN));
        if (cq && cq->db_ctx == ctx) {
            erdma_cq_db(e, payload);
            return;
        }
        break;
    }
    e->stats.db_ignored++;
}

void erdma_engine_db_queue(ErdmaEngine *e, ErdmaDbKind kind,
                           uint64_t payload)
{
    if (db_is_open(e)) {
        db_queue(e, kind, payload, 0);
    }
}

void erdma_engine_db_ext(ErdmaEngine *e, uint32_t page, uint32_t offset,
                         uint64_t payload)
{
    ErdmaDbKind kind;
    uint32_t ctx;

    if (!db_is_open(e)) {
        return;
    }
    if (!erdma_extdb_decode(e, page, offset, payload, &kind, &ctx)) {
        e->stats.db_ignored++;
        return;
    }
    db_queue(e, kind, payload, ctx);
}

void erdma_engine_input(ErdmaEngine *e, const ErdmaDatagram *dg,
                        uint64_t now_ns)
{
    e->now_ns = now_ns;
    erdma_xport_input(e->xport, dg, now_ns);
    /* Acks, and whatever waited for this packet, leave in the next run. */
    erdma_engine_kick(e);
}

void erdma_engine_unblock(ErdmaEngine *e)
{
    erdma_xport_unblock(e->xport);
    erdma_engine_kick(e);
}

void erdma_engine_set_mtu(ErdmaEngine *e, uint32_t mtu)
{
    e->wire_mtu = mtu;
    erdma_xport_set_mtu(e->xport, mtu);
}

static void run_qps(ErdmaEngine *e)
{
    unsigned budget;

    e->dma_left = RUN_MAX_QP_DMA;
    for (budget = RUN_MAX_QPS; budget && e->dma_left; budget--) {
        ErdmaQp *qp = QTAILQ_FIRST(&e->qp_work);

        if (!qp) {
            return;
        }
        /* To the back when there is more: others have waited longer. */
        QTAILQ_REMOVE(&e->qp_work, qp, work);
        qp->has_work = false;
        if (erdma_qp_run(e, qp)) {
            erdma_qp_schedule(e, qp);
        }
    }
}

static void run_cqs(ErdmaEngine *e)
{
    unsigned budget;

    for (budget = RUN_MAX_CQS; budget && e->dma_left; budget--) {
        ErdmaCq *cq = QTAILQ_FIRST(&e->cq_work);

        if (!cq) {
            return;
        }
        erdma_cq_run(e, cq);
    }
}

static void run_eqs(ErdmaEngine *e)
{
    uint64_t todo = e->eq_work;

    for (; todo && e->dma_left; todo &= todo - 1) {
        unsigned eqn = ctz64(todo);
        ErdmaEq *eq = erdma_eq_get(e, eqn);

        if (!eq || !erdma_eq_run(e, eq)) {
            e->eq_work &= ~((uint64_t)1 << eqn);
        }
    }
}

uint64_t erdma_engine_run(ErdmaEngine *e, uint64_t now_ns)
{
    uint64_t next;
    bool more = erdma_leftover_run(e);

    if (!e->is_ready) {
        e->is_kicked = false;
        return more ? now_ns : ERDMA_XPORT_NEVER;
    }
    e->now_ns = now_ns;
    /* What is latched from here on is found below or by the next run. */
    e->is_kicked = true;

    erdma_faults_run(e, now_ns);
    more |= erdma_cmdq_run(e, now_ns);
    run_qps(e);
    next = erdma_xport_poll(e->xport, now_ns, RUN_MAX_PACKETS);
    /* Arms after completions: an arm sees all that this run has written. */
    e->dma_left = RUN_MAX_EVENT_DMA;
    run_cqs(e);
    run_eqs(e);

    e->is_kicked = false;
    if (more || e->eq_work || !QTAILQ_EMPTY(&e->qp_work) ||
        !QTAILQ_EMPTY(&e->cq_work)) {
        return now_ns;
    }
    return MIN(next, erdma_faults_deadline(e));
}

const ErdmaEngineStats *erdma_engine_stats(const ErdmaEngine *e)
{
    return &e->stats;
}

void erdma_engine_record(ErdmaEngine *e, ErdmaXportWrite *write, void *opaque)
{
    erdma_xport_record(e->xport, write, opaque);
}

void erdma_engine_record_end(ErdmaEngine *e)
{
    erdma_xport_record_end(e->xport);
}

const ErdmaXportStats *erdma_engine_xport_stats(const ErdmaEngine *e)
{
    return erdma_xport_stats(e->xport);
}

void erdma_engine_counts(const ErdmaEngine *e, ErdmaEngineCounts *counts)
{
    unsigned i;

    memset(counts, 0, sizeof(*counts));
    for (i = 1; i < ERDMA_MAX_VECTORS; i++) {
        counts->n_eqs += e->ceqs[i].is_live;
    }
    counts->n_cqs = e->cqs.count;
    counts->n_qps = e->qps.count;
    counts->n_mrs = e->mrs.count;
    counts->n_ext_db = e->ext_db.n_used;
}
