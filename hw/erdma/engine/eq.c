/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues and interrupts.
 *
 * A queue is armed when it is created and by each doorbell that finds nothing
 * unconsumed; it is disarmed by the interrupt.  So every entry is followed by
 * an interrupt or by a doorbell that sees it, and an idle guest gets none.
 *
 * Reference: docs/specs/erdma.rst, "Event queues"
 */

#include "qemu/osdep.h"
#include "engine/decode.h"
#include "engine/eq.h"
#include "engine/state.h"

static unsigned eq_number(const ErdmaEngine *e, const ErdmaEq *eq)
{
    if (eq == &e->aeq) {
        return ERDMA_EQN_AEQ;
    }
    return eq == &e->cmdq_eq ? ERDMA_EQN_CMDQ : eq - e->ceqs;
}

ErdmaEq *erdma_eq_get(ErdmaEngine *e, unsigned eqn)
{
    ErdmaEq *eq;

    if (eqn == ERDMA_EQN_AEQ) {
        eq = &e->aeq;
    } else if (eqn == ERDMA_EQN_CMDQ) {
        eq = &e->cmdq_eq;
    } else if (eqn < ERDMA_MAX_VECTORS) {
        eq = &e->ceqs[eqn];
    } else {
        return NULL;
    }
    return eq->is_live ? eq : NULL;
}

void erdma_eq_create(ErdmaEngine *e, ErdmaEq *eq, uint64_t addr,
                     uint32_t depth_log2, uint8_t vector, uint64_t dbrec)
{
    assert(!eq->is_live && depth_log2 <= ERDMA_MAX_EQ_LOG2 &&
           vector < e->cfg.n_vectors);
    memset(eq, 0, sizeof(*eq));
    eq->life = ++e->n_eq_lives;
    erdma_ring_init_flat(&eq->ring, addr, depth_log2, ERDMA_EQE_SHIFT);
    eq->vector = vector;
    eq->dbrec = dbrec;
    QTAILQ_INIT(&eq->held);
    /* The first doorbell comes from inside the first interrupt. */
    eq->is_armed = true;
    eq->is_live = true;
}

/*
 * What it holds is left as it is, however many there are: each of these CQs
 * names a life that is over.
 */
void erdma_eq_destroy(ErdmaEq *eq)
{
    eq->is_live = false;
    eq->is_armed = false;
    eq->has_db = false;
}

bool erdma_eq_holds(const ErdmaEq *eq, const ErdmaCq *cq)
{
    return eq->is_live && cq->held_life == eq->life;
}

void erdma_eq_hold(ErdmaEq *eq, ErdmaCq *cq)
{
    cq->held_life = eq->life;
    QTAILQ_INSERT_TAIL(&eq->held, cq, held);
}

static void eq_let_go(ErdmaEq *eq, ErdmaCq *cq)
{
    QTAILQ_REMOVE(&eq->held, cq, held);
    cq->held_life = 0;
}

static uint16_t eq_unconsumed(const ErdmaEq *eq)
{
    return eq->pi - eq->ci;
}

static bool eq_is_full(const ErdmaEq *eq)
{
    return eq_unconsumed(eq) >= erdma_ring_depth(&eq->ring);
}

void erdma_eq_raise(ErdmaEngine *e, unsigned vector)
{
    e->is_outside = true;
    e->port->notify(e->opaque, vector);
    e->is_outside = false;
}

static void eq_notify(ErdmaEngine *e, ErdmaEq *eq)
{
    eq->is_armed = false;
    if (erdma_fault_watches(e, ERDMA_FAULT_ON_INTERRUPT) &&
        !erdma_fault_interrupt(e, eq->vector)) {
        return;
    }
    eq->n_interrupts++;
    erdma_trace(e, ERDMA_EV_EQ_NOTIFY, eq_number(e, eq), eq->vector, 0);
    erdma_eq_raise(e, eq->vector);
}

/*
 * A queue that cannot be written loses the entry: there is nobody left to
 * complain to.  Its index stays, for the consumer would stop at the hole.
 */
static void eq_write(ErdmaEngine *e, ErdmaEq *eq, const uint8_t *raw,
                     size_t len, size_t phase_len)
{
    if (!erdma_ring_write(e, &eq->ring, eq->pi, raw, len, phase_len)) {
        e->port->guest_error(e->opaque, "EQ %u: memory is not writable",
                             eq_number(e, eq));
        return;
    }
    eq->pi++;
    if (eq->is_armed) {
        eq_notify(e, eq);
    }
}

static void eq_write_ceqe(ErdmaEngine *e, ErdmaEq *eq, uint32_t cqn,
                          uint32_t cq_pi)
{
    uint8_t raw[ERDMA_EQE_SIZE];

    erdma_encode_ceqe(raw, cqn, cq_pi, erdma_ring_phase(&eq->ring, eq->pi));
    e->stats.ceqes++;
    erdma_trace(e, ERDMA_EV_EQ_POST, eq_number(e, eq), eq->pi, cqn);
    /* The second half of the entry is not used. */
    eq_write(e, eq, raw, sizeof(uint64_t), sizeof(uint64_t));
}

/* The event of a CQ that is there */
static void eq_post_ceqe(ErdmaEngine *e, ErdmaEq *eq, ErdmaCq *cq)
{
    if (!eq->is_live || erdma_eq_holds(eq, cq)) {
        return;
    }
    /* Some wait only while it is full, so nobody overtakes them here. */
    if (eq_is_full(eq)) {
        erdma_eq_hold(eq, cq);
        return;
    }
    eq_write_ceqe(e, eq, cq->cqn, cq->pi);
}

void erdma_eq_post_ceqe(ErdmaEngine *e, ErdmaEq *eq, ErdmaCq *cq)
{
    unsigned n = 1;

    if (erdma_fault_watches(e, ERDMA_FAULT_ON_CEQE)) {
        n = erdma_fault_ceqe(e, cq);
    }
    while (n--) {
        eq_post_ceqe(e, eq, cq);
    }
}

void erdma_eq_write_late(ErdmaEngine *e, unsigned eqn, uint32_t cqn,
                         uint32_t cq_pi)
{
    ErdmaEq *eq = erdma_eq_get(e, eqn);
    ErdmaCq *cq = erdma_cq_get(e, cqn);

    if (eq && cq && cq->eqn == eqn) {
        eq_post_ceqe(e, eq, cq);
    } else if (eq && !eq_is_full(eq)) {
        eq_write_ceqe(e, eq, cqn, cq_pi);
    }
}

void erdma_eq_forget_cq(ErdmaEngine *e, ErdmaCq *cq)
{
    ErdmaEq *eq = erdma_eq_get(e, cq->eqn);

    if (eq && erdma_eq_holds(eq, cq)) {
        eq_let_go(eq, cq);
    }
}

static void aeq_write(ErdmaEngine *e, uint8_t type, uint32_t id)
{
    ErdmaEq *eq = &e->aeq;
    uint8_t raw[ERDMA_EQE_SIZE];

    erdma_encode_aeqe(raw, type, id, erdma_ring_phase(&eq->ring, eq->pi));
    e->stats.aeqes++;
    erdma_trace(e, ERDMA_EV_AEQE, id, type, 0);
    eq_write(e, eq, raw, sizeof(raw), sizeof(uint64_t));
}

void erdma_aeq_post(ErdmaEngine *e, uint8_t type, uint32_t id)
{
    ErdmaHeldAeqe *h;

    if (!e->aeq.is_live) {
        return;
    }
    if (!eq_is_full(&e->aeq)) {
        aeq_write(e, type, id);
        return;
    }
    if (e->aeq_held.length >= ERDMA_AEQ_MAX_HELD) {
        e->port->guest_error(e->opaque, "AEQ: full, an event is lost");
        return;
    }
    h = g_new(ErdmaHeldAeqe, 1);
    h->type = type;
    h->id = id;
    g_queue_push_tail(&e->aeq_held, h);
}

void erdma_eq_db(ErdmaEngine *e, unsigned eqn, uint64_t payload)
{
    ErdmaEq *eq = erdma_eq_get(e, eqn);

    if (!eq) {
        e->stats.db_ignored++;
        return;
    }
    /* The newest consumer index counts; an arm request is not lost. */
    if (eq->has_db) {
        payload |= eq->db & R_ERDMA_DB_EQ_ARM_MASK;
    }
    eq->db = payload;
    eq->has_db = true;
    e->eq_work |= (uint64_t)1 << eqn;
    erdma_engine_kick(e);
}

/*
 * A guest can have as many held as it has CQs.  False: it is somebody else's
 * turn, and there are more.
 */
static bool eq_release_held(ErdmaEngine *e, ErdmaEq *eq)
{
    bool is_aeq = eq == &e->aeq;

    while (!eq_is_full(eq) && (is_aeq ? !g_queue_is_empty(&e->aeq_held) :
                               !QTAILQ_EMPTY(&eq->held))) {
        if (!e->dma_left) {
            return false;
        }
        if (is_aeq) {
            g_autofree ErdmaHeldAeqe *h = g_queue_pop_head(&e->aeq_held);

            aeq_write(e, h->type, h->id);
        } else {
            ErdmaCq *cq = QTAILQ_FIRST(&eq->held);

            eq_let_go(eq, cq);
            eq_write_ceqe(e, eq, cq->cqn, cq->pi);
        }
    }
    return true;
}

bool erdma_eq_run(ErdmaEngine *e, ErdmaEq *eq)
{
    uint16_t ci = FIELD_EX64(eq->db, ERDMA_DB_EQ, CI);

    if (!eq->is_live || !eq->has_db) {
        return false;
    }
    if ((uint16_t)(eq->pi - ci) > eq_unconsumed(eq)) {
        eq->has_db = false;
        e->port->guest_error(e->opaque, "EQ %u: doorbell index %u is not "
                             "between %u and %u", eq_number(e, eq), ci,
                             eq->ci, eq->pi & UINT16_MAX);
        return false;
    }
    eq->ci = ci;
    if (!eq_release_held(e, eq)) {
        return true;            /* with the same doorbell, or a newer one */
    }
    eq->has_db = false;
    if (!(eq->db & R_ERDMA_DB_EQ_ARM_MASK)) {
        return false;
    }
    /*
     * Handlers stop after 16 entries and take the doorbell for a promise to
     * be called again; but vector 0's rings two queues whatever it found, so
     * an empty one must not answer.
     */
    if (eq_unconsumed(eq)) {
        eq_notify(e, eq);
    } else {
        eq->is_armed = true;
    }
    return false;
}
