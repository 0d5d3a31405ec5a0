/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command, event and completion queues in snapshots. */

#include "qemu/osdep.h"
#include "engine/snapshot-int.h"

void erdma_snap_save_ring(const ErdmaRing *r, ErdmaRingSnap *s)
{
    s->depth_log2 = r->depth_log2;
    s->page_shift = r->page_shift;
    s->first_off = r->first_off;
    s->n_pages = r->n_pages;
    s->has_table = r->has_table;
    s->table = r->table;
    memcpy(s->pages, r->pages, sizeof(s->pages));
}

bool erdma_snap_load_ring(ErdmaRing *r, const ErdmaRingSnap *s,
                          uint8_t entry_shift, unsigned max_log2,
                          const char *what, uint32_t number, char **error)
{
    if (s->depth_log2 > max_log2) {
        return erdma_snap_fail(error, "%s %u: depth_log2 is %u, must be at "
                               "most %u", what, number, s->depth_log2,
                               max_log2);
    }
    *r = (ErdmaRing) {
        .depth_log2 = s->depth_log2,
        .entry_shift = entry_shift,
        .page_shift = s->page_shift,
        .first_off = s->first_off,
        .n_pages = s->n_pages,
        .has_table = s->has_table,
        .table = s->table,
        .cached_page = UINT32_MAX,
    };
    memcpy(r->pages, s->pages, sizeof(r->pages));
    if (!erdma_ring_is_valid(r)) {
        return erdma_snap_fail(error, "%s %u: ring: page_shift %u, first_off "
                               "%u, n_pages %u do not hold it", what, number,
                               s->page_shift, s->first_off, s->n_pages);
    }
    return true;
}

static void save_eq(const ErdmaEq *eq, ErdmaEqSnap *s)
{
    if (!eq->is_live) {
        return;
    }
    *s = (ErdmaEqSnap) {
        .is_live = true,
        .is_armed = eq->is_armed,
        .vector = eq->vector,
        .depth_log2 = eq->ring.depth_log2,
        .addr = eq->ring.pages[0],
        .pi = eq->pi,
        .ci = eq->ci,
        .dbrec = eq->dbrec,
        .n_interrupts = eq->n_interrupts,
        .has_db = eq->has_db,
        .db = eq->db,
    };
}

static void save_cq(const ErdmaCq *cq, ErdmaCqSnap *s)
{
    *s = (ErdmaCqSnap) {
        .cqn = cq->cqn,
        .eqn = cq->eqn,
        .pi = cq->pi,
        .arm = cq->arm,
        .has_solicited = cq->has_solicited,
        .solicited_pi = cq->solicited_pi,
        .announced_pi = cq->announced_pi,
        .is_broken = cq->is_broken,
        .db_ctx = cq->db_ctx,
        .dbrec = cq->dbrec,
        .has_db = cq->has_db,
        .db_any = cq->db_any,
        .db_ci = cq->db_ci,
        .has_ci = cq->has_ci,
        .n_events = cq->n_events,
    };
    erdma_snap_save_ring(&cq->ring, &s->ring);
}

/* Live or not */
static ErdmaEq *eq_at(ErdmaEngine *e, unsigned eqn)
{
    return eqn == ERDMA_EQN_CMDQ ? &e->cmdq_eq :
           eqn == ERDMA_EQN_AEQ ? &e->aeq : &e->ceqs[eqn];
}

void erdma_snap_save_queues(ErdmaEngine *e, ErdmaEngineSnap *s)
{
    uint32_t cqn = 0;
    unsigned eqn;
    ErdmaCq *cq;
    GList *l;

    for (eqn = 0; eqn < ERDMA_ENGINE_SNAP_EQS; eqn++) {
        save_eq(eq_at(e, eqn), &s->eqs[eqn]);
    }
    for (l = e->aeq_held.head; l; l = l->next) {
        const ErdmaHeldAeqe *h = l->data;

        *ERDMA_SNAP_ADD(s, aeqes) = (ErdmaAeqeSnap) { h->type, h->id };
    }
    if (e->is_ready) {
        s->cmdq_addr = e->cmdq.sq.pages[0];
        s->cmdq_depth_log2 = e->cmdq.sq.depth_log2;
        s->cmdq_pi = e->cmdq.sq_pi;
        s->cmdq_ci = e->cmdq.sq_ci;
        save_cq(&e->cmdq.cq, &s->cmdq_cq);
    }
    while ((cq = erdma_table_next(&e->cqs, &cqn))) {
        save_cq(cq, ERDMA_SNAP_ADD(s, cqs));
        cqn++;
    }
    for (eqn = 0; eqn < ERDMA_MAX_VECTORS; eqn++) {
        if (eq_at(e, eqn)->is_live) {
            QTAILQ_FOREACH(cq, &eq_at(e, eqn)->held, held) {
                ERDMA_SNAP_ADD(s, held)->cqn = cq->cqn;
            }
        }
    }
}

static bool load_eq(ErdmaEngine *e, unsigned eqn, const ErdmaEqSnap *s,
                    char **error)
{
    bool is_ceq = eqn != ERDMA_EQN_CMDQ && eqn != ERDMA_EQN_AEQ;
    ErdmaEq *eq = eq_at(e, eqn);
    uint16_t unconsumed = s->pi - s->ci;

    if (!s->is_live) {
        return is_ceq || erdma_snap_fail(error, "EQ %u: is_live is 0, must "
                                         "not be with is_ready", eqn);
    }
    if (s->vector >= e->cfg.n_vectors ||
        (is_ceq && eqn >= e->cfg.n_vectors)) {
        return erdma_snap_fail(error, "EQ %u: vector is %u, must both be "
                               "below %u", eqn, s->vector, e->cfg.n_vectors);
    }
    if (s->depth_log2 > ERDMA_MAX_EQ_LOG2) {
        return erdma_snap_fail(error, "EQ %u: depth_log2 is %u, must be at "
                               "most %d", eqn, s->depth_log2,
                               ERDMA_MAX_EQ_LOG2);
    }
    if (s->addr & (ERDMA_EQE_SIZE - 1)) {
        return erdma_snap_fail(error, "EQ %u: addr is 0x%" PRIx64 ", must be "
                               "aligned to entries", eqn, s->addr);
    }
    if (unconsumed > 1u << s->depth_log2) {
        return erdma_snap_fail(error, "EQ %u: ci is %u, must be at most %u "
                               "before pi (%u)", eqn, s->ci,
                               1u << s->depth_log2, s->pi);
    }
    erdma_eq_create(e, eq, s->addr, s->depth_log2, s->vector, s->dbrec);
    eq->is_armed = s->is_armed;
    eq->pi = s->pi;
    eq->ci = s->ci;
    eq->n_interrupts = s->n_interrupts;
    if (s->has_db) {
        eq->has_db = true;
        eq->db = s->db;
        e->eq_work |= (uint64_t)1 << eqn;
    }
    return true;
}

static bool load_cq(ErdmaEngine *e, ErdmaCq *cq, const ErdmaCqSnap *s,
                    unsigned max_log2, char **error)
{
    if (!erdma_snap_load_ring(&cq->ring, &s->ring, ERDMA_CQE_SHIFT, max_log2,
                              "CQ", s->cqn, error)) {
        return false;
    }
    if (s->arm > ERDMA_CQ_ARM_ANY) {
        return erdma_snap_fail(error, "CQ %u: arm is %u, must be at most %d",
                               s->cqn, s->arm, ERDMA_CQ_ARM_ANY);
    }
    cq->cqn = s->cqn;
    cq->eqn = s->eqn;
    cq->pi = s->pi;
    cq->arm = s->arm;
    cq->has_solicited = s->has_solicited;
    cq->solicited_pi = s->solicited_pi;
    cq->announced_pi = s->announced_pi;
    cq->is_broken = s->is_broken;
    cq->db_ctx = s->db_ctx;
    cq->dbrec = s->dbrec;
    cq->db_any = s->db_any;
    cq->db_ci = s->db_ci;
    cq->has_ci = s->has_ci;
    cq->n_events = s->n_events;
    return true;
}

static void load_cq_work(ErdmaEngine *e, ErdmaCq *cq, const ErdmaCqSnap *s)
{
    if (s->has_db) {
        cq->has_db = true;
        QTAILQ_INSERT_TAIL(&e->cq_work, cq, work);
    }
}

static bool load_cmdq(ErdmaEngine *e, const ErdmaEngineSnap *s, char **error)
{
    uint16_t posted = s->cmdq_pi - s->cmdq_ci;
    ErdmaCmdq *q = &e->cmdq;

    if (s->cmdq_depth_log2 > ERDMA_MAX_EQ_LOG2 ||
        s->cmdq_addr & (ERDMA_WQEBB_SIZE - 1)) {
        return erdma_snap_fail(error, "command queue: cmdq_depth_log2 is %u, "
                               "cmdq_addr 0x%" PRIx64 ", must be at most %d, "
                               "and aligned", s->cmdq_depth_log2,
                               s->cmdq_addr, ERDMA_MAX_EQ_LOG2);
    }
    if (posted > 1u << s->cmdq_depth_log2) {
        return erdma_snap_fail(error, "command queue: cmdq_pi is %u, must be "
                               "at most %u behind cmdq_ci (%u)", s->cmdq_pi,
                               1u << s->cmdq_depth_log2, s->cmdq_ci);
    }
    erdma_cmdq_init(e, s->cmdq_addr, 0, s->cmdq_depth_log2);
    q->sq_pi = s->cmdq_pi;
    q->sq_ci = s->cmdq_ci;
    if (!load_cq(e, &q->cq, &s->cmdq_cq, ERDMA_MAX_EQ_LOG2, error)) {
        return false;
    }
    q->cq.cqn = 0;
    q->cq.eqn = ERDMA_EQN_CMDQ;
    load_cq_work(e, &q->cq, &s->cmdq_cq);
    return true;
}

static bool load_cqs(ErdmaEngine *e, const ErdmaEngineSnap *s, char **error)
{
    uint32_t i;

    for (i = 0; i < s->n_cqs; i++) {
        const ErdmaCqSnap *k = &s->cqs[i];
        g_autofree ErdmaCq *cq = g_new0(ErdmaCq, 1);

        if (!k->cqn || k->cqn >= erdma_engine_max_cq(e) || !k->eqn ||
            k->eqn >= ERDMA_MAX_VECTORS) {
            return erdma_snap_fail(error, "CQ %u: cqn must be 1 to %u, eqn "
                                   "is %u, must be 1 to %d", k->cqn,
                                   erdma_engine_max_cq(e) - 1, k->eqn,
                                   ERDMA_MAX_VECTORS - 1);
        }
        if (!load_cq(e, cq, k, e->cfg.max_cqe_log2, error)) {
            return false;
        }
        if (!erdma_cq_add(e, cq)) {
            return erdma_snap_fail(error, "CQ %u: cqn is there twice",
                                   k->cqn);
        }
        load_cq_work(e, g_steal_pointer(&cq), k);
    }
    return true;
}

static bool load_held(ErdmaEngine *e, const ErdmaEngineSnap *s, char **error)
{
    uint32_t i;

    for (i = 0; i < s->n_held; i++) {
        uint32_t cqn = s->held[i].cqn;
        ErdmaCq *cq = cqn ? erdma_cq_get(e, cqn) : &e->cmdq.cq;
        ErdmaEq *eq = cq ? erdma_eq_get(e, cq->eqn) : NULL;

        if (!eq || erdma_eq_holds(eq, cq)) {
            return erdma_snap_fail(error, "held[%u]: cqn is %u, which has no "
                                   "EQ or is there twice", i, cqn);
        }
        erdma_eq_hold(eq, cq);
    }
    return true;
}

bool erdma_snap_load_queues(ErdmaEngine *e, const ErdmaEngineSnap *s,
                            char **error)
{
    unsigned eqn;
    uint32_t i;

    for (eqn = 0; eqn < ERDMA_ENGINE_SNAP_EQS; eqn++) {
        if (!load_eq(e, eqn, &s->eqs[eqn], error)) {
            return false;
        }
    }
    for (i = 0; i < s->n_aeqes; i++) {
        ErdmaHeldAeqe *h = g_new(ErdmaHeldAeqe, 1);

        h->type = s->aeqes[i].type;
        h->id = s->aeqes[i].id;
        g_queue_push_tail(&e->aeq_held, h);
    }
    return load_cmdq(e, s, error) && load_cqs(e, s, error) &&
           load_held(e, s, error);
}
