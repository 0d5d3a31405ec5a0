/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: posting, arming, and the events that result.
 *
 * The consumer index is only known inside an arm doorbell: a CQ that is
 * polled never reports it.  So a CQ has no "full": entries are written and
 * wrap, overrun is the guest's own affair.
 *
 * Reference: docs/specs/erdma.rst, "Completion queues"
 */

#include "qemu/osdep.h"
#include "engine/cq.h"
#include "engine/decode.h"
#include "engine/state.h"
#include "qemu/bitops.h"

/* Consumer indices are reported modulo 2^24. */
#define CQ_INDEX_MASK   MAKE_64BIT_MASK(0, R_ERDMA_DB_CQ_CI_LENGTH)

ErdmaCq *erdma_cq_get(ErdmaEngine *e, uint32_t cqn)
{
    return erdma_table_get(&e->cqs, cqn);
}

/* One arm, one event. */
static void cq_fire(ErdmaEngine *e, ErdmaCq *cq)
{
    ErdmaEq *eq = erdma_eq_get(e, cq->eqn);

    cq->arm = ERDMA_CQ_ARM_NONE;
    cq->announced_pi = cq->pi;
    if (eq) {
        cq->n_events++;
        erdma_eq_post_ceqe(e, eq, cq);
    }
}

bool erdma_cq_write(ErdmaEngine *e, ErdmaCq *cq, const uint8_t *raw,
                    bool is_solicited)
{
    if (cq->is_broken) {
        return false;
    }
    if (!erdma_ring_write(e, &cq->ring, cq->pi, raw, ERDMA_CQE_SIZE,
                          sizeof(uint32_t))) {
        cq->is_broken = true;
        return false;
    }
    e->stats.cqes++;
    if (is_solicited) {
        cq->has_solicited = true;
        cq->solicited_pi = cq->pi;
    }
    cq->pi++;
    if (cq->arm == ERDMA_CQ_ARM_ANY ||
        (cq->arm == ERDMA_CQ_ARM_SOLICITED && is_solicited)) {
        cq_fire(e, cq);
    }
    return true;
}

static void cq_write_cqe(ErdmaEngine *e, ErdmaCq *cq, const ErdmaCqe *cqe)
{
    uint8_t raw[ERDMA_CQE_SIZE];

    erdma_encode_cqe(raw, cqe, erdma_ring_phase(&cq->ring, cq->pi));
    erdma_trace(e, ERDMA_EV_CQ_POST, cq->cqn, cq->pi,
                (uint64_t)cqe->qpn << 32 | cqe->opcode << 8 | cqe->status);
    if (!erdma_cq_write(e, cq, raw,
                        cqe->is_solicited || cqe->status != ERDMA_WC_SUCCESS)) {
        e->port->guest_error(e->opaque, "CQ %u: memory is not writable",
                             cq->cqn);
        erdma_aeq_post(e, ERDMA_AE_TYPE_CQ_ERR, cq->cqn);
    }
}

void erdma_cq_post(ErdmaEngine *e, uint32_t cqn, const ErdmaCqe *cqe)
{
    ErdmaCq *cq = erdma_cq_get(e, cqn);
    unsigned n = 1;
    ErdmaCqe faulty;

    if (!cq || cq->is_broken) {
        return;
    }
    if (erdma_fault_watches(e, ERDMA_FAULT_ON_CQE)) {
        faulty = *cqe;
        cqe = &faulty;
        n = erdma_fault_cqe(e, cq, &faulty);
    }
    while (n-- && !cq->is_broken) {
        cq_write_cqe(e, cq, cqe);
    }
}

/*
 * Is there, at or after consumer index @ci, what the arm asks for?  Only what
 * no event has told of yet counts: programs arm when they get an event and
 * poll then, and must not be told twice of what they are about to find.
 */
static bool cq_has_news(const ErdmaCq *cq, uint32_t ci, bool is_any)
{
    uint32_t unconsumed = (cq->pi - ci) & CQ_INDEX_MASK;
    uint32_t news = MIN(unconsumed, cq->pi - cq->announced_pi);

    if (is_any) {
        return news;
    }
    return cq->has_solicited && cq->pi - cq->solicited_pi <= news;
}

void erdma_cq_run(ErdmaEngine *e, ErdmaCq *cq)
{
    if (!cq->has_db) {
        return;
    }
    cq->has_db = false;
    QTAILQ_REMOVE(&e->cq_work, cq, work);
    erdma_trace(e, ERDMA_EV_CQ_ARM, cq->cqn, cq->db_ci, !cq->db_any);
    /*
     * What was written between the guest's last look and this doorbell is
     * covered by no other arm, and for the command queue nobody looks again.
     */
    if (cq_has_news(cq, cq->db_ci, cq->db_any)) {
        cq_fire(e, cq);
    } else if (cq->db_any) {
        cq->arm = ERDMA_CQ_ARM_ANY;
    } else if (cq->arm == ERDMA_CQ_ARM_NONE) {
        cq->arm = ERDMA_CQ_ARM_SOLICITED;
    }
    cq->db_any = false;
}

void erdma_cq_latch(ErdmaEngine *e, ErdmaCq *cq, uint64_t payload)
{
    /* No driver rings without arming; an index alone is of no use to us. */
    if (!FIELD_EX64(payload, ERDMA_DB_CQ, ARM)) {
        e->stats.db_ignored++;
        return;
    }
    cq->db_any |= !FIELD_EX64(payload, ERDMA_DB_CQ, SOL);
    cq->db_ci = FIELD_EX64(payload, ERDMA_DB_CQ, CI);
    cq->has_ci = true;
    if (!cq->has_db) {
        cq->has_db = true;
        QTAILQ_INSERT_TAIL(&e->cq_work, cq, work);
    }
    erdma_engine_kick(e);
}

void erdma_cq_db(ErdmaEngine *e, uint64_t payload)
{
    ErdmaCq *cq = erdma_cq_get(e, FIELD_EX64(payload, ERDMA_DB_CQ, CQN));

    if (!cq) {
        e->stats.db_ignored++;
        return;
    }
    erdma_cq_latch(e, cq, payload);
}

bool erdma_cq_add(ErdmaEngine *e, ErdmaCq *cq)
{
    return erdma_table_insert(&e->cqs, cq->cqn, cq);
}

bool erdma_cq_destroy(ErdmaEngine *e, uint32_t cqn)
{
    ErdmaCq *cq = erdma_table_remove(&e->cqs, cqn);

    if (!cq) {
        return false;
    }
    if (cq->has_db) {
        QTAILQ_REMOVE(&e->cq_work, cq, work);
    }
    erdma_eq_forget_cq(e, cq);
    g_free(cq);
    return true;
}

void erdma_cq_free_all(ErdmaEngine *e)
{
    uint32_t cqn = 0;

    while (erdma_table_next(&e->cqs, &cqn)) {
        erdma_cq_destroy(e, cqn);
    }
}
