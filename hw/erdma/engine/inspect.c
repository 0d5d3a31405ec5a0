/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots of the engine's objects, see inspect.h.
 */

#include "qemu/osdep.h"
#include "engine/inspect.h"
#include "engine/state.h"

const char *erdma_inspect_sq_wait(uint8_t wait)
{
    static const char *const names[] = {
        [ERDMA_SQ_WAIT_NONE] = "none",
        [ERDMA_SQ_WAIT_ORD] = "reads-limit",
        [ERDMA_SQ_WAIT_READS] = "fence",
        [ERDMA_SQ_WAIT_ALL] = "earlier-requests",
        [ERDMA_SQ_WAIT_ERROR] = "bad-request",
    };

    return wait < ARRAY_SIZE(names) ? names[wait] : "unknown";
}

const char *erdma_inspect_status(uint8_t status)
{
    static const char *const names[] = {
        [ERDMA_WC_SUCCESS] = "success",
        [ERDMA_WC_GENERAL_ERR] = "general-error",
        [ERDMA_WC_RECV_WQE_FORMAT_ERR] = "recv-wqe-format",
        [ERDMA_WC_RECV_STAG_INVALID_ERR] = "recv-key-invalid",
        [ERDMA_WC_RECV_ADDR_VIOLATION_ERR] = "recv-address-violation",
        [ERDMA_WC_RECV_RIGHT_VIOLATION_ERR] = "recv-right-violation",
        [ERDMA_WC_RECV_PDID_ERR] = "recv-pd-mismatch",
        [ERDMA_WC_RECV_WARRPING_ERR] = "recv-address-wrap",
        [ERDMA_WC_SEND_WQE_FORMAT_ERR] = "send-wqe-format",
        [ERDMA_WC_SEND_WQE_ORD_EXCEED] = "send-too-many-reads",
        [ERDMA_WC_SEND_STAG_INVALID_ERR] = "send-key-invalid",
        [ERDMA_WC_SEND_ADDR_VIOLATION_ERR] = "send-address-violation",
        [ERDMA_WC_SEND_RIGHT_VIOLATION_ERR] = "send-right-violation",
        [ERDMA_WC_SEND_PDID_ERR] = "send-pd-mismatch",
        [ERDMA_WC_SEND_WARRPING_ERR] = "send-address-wrap",
        [ERDMA_WC_FLUSH_ERR] = "flushed",
        [ERDMA_WC_RETRY_EXC_ERR] = "retries-exceeded",
    };

    return status < ARRAY_SIZE(names) ? names[status] : "unknown";
}

bool erdma_inspect_qp(const ErdmaEngine *e, uint32_t *qpn, ErdmaQpSnapshot *s)
{
    const ErdmaQp *qp = erdma_table_next(&e->qps, qpn);

    if (!qp) {
        return false;
    }
    *s = (ErdmaQpSnapshot) {
        .qpn = qp->qpn,
        .state = qp->state,
        .pdn = qp->pdn,
        .cookie = qp->cookie,
        .is_kernel = qp->is_kernel,
        .db_ctx = qp->db_ctx,
        .sq_cqn = qp->sq_cqn,
        .rq_cqn = qp->rq_cqn,
        .sq_depth = erdma_ring_depth(&qp->sq),
        .sq_pi = qp->sq_pi,
        .sq_next = qp->sq_next,
        .sq_ci = qp->sq_ci,
        .sq_wait = qp->sq_wait,
        .n_sends = qp->n_sends,
        .n_reads = qp->n_reads,
        .rq_depth = erdma_ring_depth(&qp->rq),
        .rq_pi = qp->rq_pi,
        .rq_ci = qp->rq_ci,
        .n_responses = qp->n_responses,
        .is_rnr = qp->is_rnr,
        .last_error = qp->last_error,
        .local_port = qp->local_port,
        .peer_port = qp->peer_port,
        .has_conn = qp->conn != NULL,
    };
    if (qp->conn) {
        erdma_xport_conn_info(qp->conn, &s->conn);
    }
    return true;
}

bool erdma_inspect_cq(ErdmaEngine *e, uint32_t *cqn, ErdmaCqSnapshot *s)
{
    const ErdmaCq *cq = erdma_table_next(&e->cqs, cqn);
    const ErdmaEq *eq;

    if (!cq) {
        return false;
    }
    eq = erdma_eq_get(e, cq->eqn);
    *s = (ErdmaCqSnapshot) {
        .cqn = cq->cqn,
        .eqn = cq->eqn,
        .depth = erdma_ring_depth(&cq->ring),
        .pi = cq->pi,
        .announced_pi = cq->announced_pi,
        .arm = cq->arm,
        .has_ci = cq->has_ci,
        .ci = cq->db_ci,
        .db_ctx = cq->db_ctx,
        .is_held = eq && erdma_eq_holds(eq, cq),
        .is_broken = cq->is_broken,
        .n_events = cq->n_events,
    };
    return true;
}

bool erdma_inspect_eq(ErdmaEngine *e, uint32_t *eqn, ErdmaEqSnapshot *s)
{
    const ErdmaEq *eq = NULL;
    const ErdmaCq *cq;

    for (; *eqn <= ERDMA_EQN_AEQ; (*eqn)++) {
        eq = erdma_eq_get(e, *eqn);
        if (eq) {
            break;
        }
    }
    if (!eq) {
        return false;
    }
    *s = (ErdmaEqSnapshot) {
        .eqn = *eqn,
        .kind = *eqn == ERDMA_EQN_CMDQ ? ERDMA_EQ_KIND_COMMAND :
                *eqn == ERDMA_EQN_AEQ ? ERDMA_EQ_KIND_ASYNC :
                                        ERDMA_EQ_KIND_COMPLETION,
        .vector = eq->vector,
        .depth = erdma_ring_depth(&eq->ring),
        .pi = eq->pi,
        .ci = eq->ci,
        .pending = (uint16_t)(eq->pi - eq->ci),
        .is_armed = eq->is_armed,
        .n_interrupts = eq->n_interrupts,
    };
    QTAILQ_FOREACH(cq, &eq->held, held) {
        s->n_held++;
    }
    if (*eqn == ERDMA_EQN_AEQ) {
        s->n_held = e->aeq_held.length;
    }
    return true;
}

bool erdma_inspect_mr(const ErdmaEngine *e, uint32_t *index,
                      ErdmaMrSnapshot *s)
{
    const ErdmaMr *mr = erdma_table_next(&e->mrs, index);

    if (!mr) {
        return false;
    }
    *s = (ErdmaMrSnapshot) {
        .index = mr->index,
        .key = mr->index << 8 | mr->key,
        .type = mr->type,
        .access = mr->access,
        .is_valid = mr->is_valid,
        .pdn = mr->pdn,
        .start = mr->start,
        .len = mr->len,
        .page_shift = mr->page_shift,
        .level = mr->level,
        .n_pages = mr->n_pages,
    };
    return true;
}

void erdma_inspect_device(const ErdmaEngine *e, ErdmaDeviceSnapshot *s)
{
    *s = (ErdmaDeviceSnapshot) {
        .is_ready = e->is_ready,
        .page_size = 1u << e->guest_page_shift,
        .mtu = erdma_xport_mtu(e->xport),
        .cmdq_depth = e->is_ready ? erdma_ring_depth(&e->cmdq.sq) : 0,
        .cmdq_pi = e->cmdq.sq_pi,
        .cmdq_ci = e->cmdq.sq_ci,
        .default_cc = e->cfg.default_cc,
        .max_qp = erdma_engine_max_qp(e) - 1,
        .max_cq = erdma_engine_max_cq(e) - 1,
        .max_mr = erdma_engine_max_cq(e),
        .n_ext_db = e->ext_db.n_used,
        .max_ext_db = e->ext_db.n_pages,
    };
}
