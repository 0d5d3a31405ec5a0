/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults: what happens in addition to an event, what was put off,
 * and timers.
 *
 * Reference: docs/faults.md
 */

#include "qemu/osdep.h"
#include "engine/fault-hook.h"
#include "engine/state.h"

struct ErdmaFaultLate {
    uint64_t due_ns;
    bool is_vector;             /* else a CEQE */
    unsigned vector;            /* of the CEQE: its EQN */
    uint32_t cqn;
    uint32_t pi;                /* of the CQ, when it should have come */
    QTAILQ_ENTRY(ErdmaFaultLate) next;
};

static void late_insert(ErdmaEngine *e, ErdmaFaultLate *late)
{
    ErdmaFaultLate *other;

    QTAILQ_FOREACH(other, &e->faults.late, next) {
        if (other->due_ns > late->due_ns) {
            QTAILQ_INSERT_BEFORE(other, late, next);
            return;
        }
    }
    QTAILQ_INSERT_TAIL(&e->faults.late, late, next);
}

void erdma_fault_put_off_ceqe(ErdmaEngine *e, const ErdmaCq *cq,
                              uint64_t delay_ns)
{
    ErdmaFaultLate *late = g_new0(ErdmaFaultLate, 1);

    late->due_ns = e->now_ns + delay_ns;
    late->vector = cq->eqn;
    late->cqn = cq->cqn;
    late->pi = cq->pi;
    late_insert(e, late);
    erdma_engine_kick(e);       /* for the new deadline */
}

void erdma_fault_put_off_vector(ErdmaEngine *e, unsigned vector,
                                uint64_t delay_ns)
{
    ErdmaFaultLate *late = g_new0(ErdmaFaultLate, 1);

    late->due_ns = e->now_ns + delay_ns;
    late->is_vector = true;
    late->vector = vector;
    late_insert(e, late);
    erdma_engine_kick(e);
}

/*
 * A CEQE arrives late even if its CQ has gone by now: that is what drivers
 * have to live with.
 */
static void late_deliver(ErdmaEngine *e, const ErdmaFaultLate *late)
{
    if (late->is_vector) {
        erdma_eq_raise(e, late->vector);
    } else {
        erdma_eq_write_late(e, late->vector, late->cqn, late->pi);
    }
}

static void late_run(ErdmaEngine *e, uint64_t now_ns)
{
    ErdmaFaultLate *late;

    while ((late = QTAILQ_FIRST(&e->faults.late)) && late->due_ns <= now_ns) {
        QTAILQ_REMOVE(&e->faults.late, late, next);
        late_deliver(e, late);
        g_free(late);
    }
}

void erdma_engine_fault_flush(ErdmaEngine *e)
{
    late_run(e, UINT64_MAX);
    if (e->faults.cmd_until_ns) {
        e->faults.cmd_until_ns = 0;
        e->faults.is_cmd_judged = true;
        erdma_engine_kick(e);
    }
}

void erdma_faults_reset(ErdmaEngine *e)
{
    ErdmaFaultLate *late;

    while ((late = QTAILQ_FIRST(&e->faults.late))) {
        QTAILQ_REMOVE(&e->faults.late, late, next);
        g_free(late);
    }
    e->faults.cmd_until_ns = 0;
    e->faults.is_cmd_judged = false;
}

/* What comes in addition */

static uint8_t fatal_status(const ErdmaFaultConfig *cfg)
{
    return cfg->status ? cfg->status : ERDMA_WC_GENERAL_ERR;
}

static void act_on_qp(ErdmaEngine *e, const ErdmaFaultConfig *cfg,
                      ErdmaQp *qp)
{
    switch (cfg->action) {
    case ERDMA_FAULT_AEQE:
        erdma_aeq_post(e, cfg->event, qp->qpn);
        break;
    case ERDMA_FAULT_QP_FATAL:
        if (qp->state == ERDMA_QP_RTS) {
            erdma_qp_fail(e, qp, fatal_status(cfg));
        }
        break;
    default:
        if (qp->state == ERDMA_QP_RTS) {
            erdma_qp_die(e, qp);
        }
        break;
    }
}

static void act_on_qps(ErdmaEngine *e, const ErdmaFaultConfig *cfg,
                       uint32_t wanted)
{
    uint32_t qpn = 0;
    ErdmaQp *qp;

    if (wanted != ERDMA_FAULT_ANY) {
        qp = erdma_qp_get(e, wanted);
        if (qp) {
            act_on_qp(e, cfg, qp);
        } else if (cfg->action == ERDMA_FAULT_AEQE) {
            /* Of a QP that has gone, or never was */
            erdma_aeq_post(e, cfg->event, wanted);
        }
        return;
    }
    while ((qp = erdma_table_next(&e->qps, &qpn))) {
        act_on_qp(e, cfg, qp);
        qpn++;
    }
}

static void act_on_cq(ErdmaEngine *e, const ErdmaFaultConfig *cfg,
                      ErdmaCq *cq)
{
    ErdmaEq *eq;

    if (cfg->action == ERDMA_FAULT_AEQE) {
        erdma_aeq_post(e, cfg->event, cq->cqn);
        return;
    }
    eq = erdma_eq_get(e, cq->eqn);
    if (eq) {
        erdma_eq_post_ceqe(e, eq, cq);
    }
}

static void act_on_cqs(ErdmaEngine *e, const ErdmaFaultConfig *cfg,
                       uint32_t wanted)
{
    uint32_t cqn = 0;
    ErdmaCq *cq;

    if (wanted != ERDMA_FAULT_ANY) {
        cq = erdma_cq_get(e, wanted);
        if (cq) {
            act_on_cq(e, cfg, cq);
        } else if (cfg->action == ERDMA_FAULT_AEQE) {
            erdma_aeq_post(e, cfg->event, wanted);
        }
        return;
    }
    while ((cq = erdma_table_next(&e->cqs, &cqn))) {
        act_on_cq(e, cfg, cq);
        cqn++;
    }
}

static void act_on_vectors(ErdmaEngine *e, uint32_t wanted)
{
    unsigned i;

    for (i = 0; i < e->cfg.n_vectors; i++) {
        if (wanted == ERDMA_FAULT_ANY || wanted == i) {
            erdma_eq_raise(e, i);
        }
    }
}

static uint32_t either(uint32_t configured, uint32_t of_event)
{
    return configured != ERDMA_FAULT_ANY ? configured : of_event;
}

void erdma_fault_act(ErdmaEngine *e, const ErdmaFaultConfig *cfg,
                     const ErdmaFaultEvent *ev)
{
    if (cfg->action == ERDMA_FAULT_INTERRUPT) {
        act_on_vectors(e, either(cfg->vector, ev->vector));
    } else if (cfg->action == ERDMA_FAULT_CEQE ||
               (cfg->action == ERDMA_FAULT_AEQE &&
                cfg->event == ERDMA_AE_TYPE_CQ_ERR)) {
        act_on_cqs(e, cfg, either(cfg->cqn, ev->cqn));
    } else {
        act_on_qps(e, cfg, either(cfg->qpn, ev->qpn));
    }
}

/* Timers */

static bool tick_is_over(const ErdmaFaultRule *r)
{
    return !r->is_enabled || r->cfg.on != ERDMA_FAULT_ON_TIMER ||
           (r->cfg.count && r->fired >= r->cfg.count) ||
           (!r->cfg.period_ns && r->matched);
}

static void timers_run(ErdmaEngine *e, uint64_t now_ns)
{
    ErdmaFaultRule *r;

    QTAILQ_FOREACH(r, &e->faults.rules, next) {
        if (tick_is_over(r)) {
            continue;
        }
        if (!r->due_ns) {
            r->due_ns = now_ns + r->cfg.period_ns;
        }
        if (r->due_ns <= now_ns) {
            /* What was missed stays missed: no storm after a stop. */
            r->due_ns = MAX(r->due_ns + r->cfg.period_ns, now_ns + 1);
            erdma_fault_tick(e, r);
        }
    }
}

void erdma_faults_run(ErdmaEngine *e, uint64_t now_ns)
{
    late_run(e, now_ns);
    if (erdma_fault_watches(e, ERDMA_FAULT_ON_TIMER)) {
        timers_run(e, now_ns);
    }
}

uint64_t erdma_faults_deadline(const ErdmaEngine *e)
{
    const ErdmaFaultLate *late = QTAILQ_FIRST(&e->faults.late);
    uint64_t next = late ? late->due_ns : ERDMA_XPORT_NEVER;
    const ErdmaFaultRule *r;

    if (e->faults.cmd_until_ns) {
        next = MIN(next, e->faults.cmd_until_ns);
    }
    QTAILQ_FOREACH(r, &e->faults.rules, next) {
        if (!tick_is_over(r)) {
            next = MIN(next, r->due_ns);
        }
    }
    return next;
}
