/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue pairs in snapshots, see snapshot.h. */

#include "qemu/osdep.h"
#include "engine/snapshot-int.h"
#include "engine/status.h"
#include "engine/wqe.h"

void erdma_snap_save_qp(const ErdmaQp *qp, ErdmaEngineSnap *s,
                        uint64_t now_ns)
{
    ErdmaQpSnap *k = ERDMA_SNAP_ADD(s, qps);
    const ErdmaSendWqe *wqe;

    *k = (ErdmaQpSnap) {
        .qpn = qp->qpn,
        .pdn = qp->pdn,
        .sq_cqn = qp->sq_cqn,
        .rq_cqn = qp->rq_cqn,
        .cookie = qp->cookie,
        .local_port = qp->local_port,
        .peer_port = qp->peer_port,
        .is_kernel = qp->is_kernel,
        .db_ctx = qp->db_ctx,
        .state = qp->state,
        .last_error = qp->last_error,
        .has_conn = qp->conn != NULL,
        .rx_msn = qp->rx_msn,
        .sq_pi = qp->sq_pi,
        .sq_next = qp->sq_next,
        .sq_ci = qp->sq_ci,
        .rq_pi = qp->rq_pi,
        .rq_ci = qp->rq_ci,
        .sq_dbrec = qp->sq_dbrec,
        .rq_dbrec = qp->rq_dbrec,
        .has_bad_db = qp->has_bad_db,
        .has_failed_wqe = qp->has_failed_wqe,
        .failed_index = qp->failed_index,
        .failed_status = qp->failed_status,
        .sq_wait = qp->sq_wait,
        .n_responses = qp->n_responses,
        .is_rnr = qp->is_rnr,
        .is_full = qp->is_full,
        .has_rqe = qp->has_rqe,
        .rqe_addr = qp->rqe.addr,
        .rqe_len = qp->rqe.len,
        .rqe_key = qp->rqe.key,
        .term_status = qp->term_status,
        .term_msn = qp->term_msn,
        .has_work = qp->has_work,
    };
    erdma_snap_save_ring(&qp->sq, &k->sq);
    erdma_snap_save_ring(&qp->rq, &k->rq);
    QTAILQ_FOREACH(wqe, &qp->sends, next) {
        k->n_sends++;
    }
    k->n_orphans = qp->n_sends - k->n_sends;
    erdma_snap_save_wqes(qp, s);
    if (qp->conn) {
        erdma_xport_save_conn(qp->conn, &s->xport, now_ns);
    }
}

#define FAIL(_s, _error, _fmt, ...) \
    erdma_snap_fail(_error, "QP %u: " _fmt, (_s)->qpn, ##__VA_ARGS__)

static bool check_state(ErdmaEngine *e, const ErdmaQpSnap *s, char **error)
{
    bool is_live = s->state == ERDMA_QP_RTS ||
                   s->state == ERDMA_QP_TERMINATING;

    if (s->state > ERDMA_QP_FLUSHING) {
        return FAIL(s, error, "state is %u, must be at most %d", s->state,
                    ERDMA_QP_FLUSHING);
    }
    if (is_live ? !s->has_conn
                : s->has_conn && s->state == ERDMA_QP_CREATED) {
        return FAIL(s, error, "has_conn is %u, does not go with state %u",
                    s->has_conn, s->state);
    }
    if (!is_live && (s->n_sends || s->n_orphans || s->n_responses)) {
        return FAIL(s, error, "n_sends is %u, n_orphans %u, n_responses %u, "
                    "must be 0 in state %u", s->n_sends, s->n_orphans,
                    s->n_responses, s->state);
    }
    if (s->sq_wait > ERDMA_SQ_WAIT_ERROR) {
        return FAIL(s, error, "sq_wait is %u, must be at most %d",
                    s->sq_wait, ERDMA_SQ_WAIT_ERROR);
    }
    if (s->sq_cqn >= erdma_engine_max_cq(e) ||
        s->rq_cqn >= erdma_engine_max_cq(e)) {
        return FAIL(s, error, "sq_cqn is %u, rq_cqn %u, must be below %u",
                    s->sq_cqn, s->rq_cqn, erdma_engine_max_cq(e));
    }
    return true;
}

static bool load_rings(ErdmaEngine *e, ErdmaQp *qp, const ErdmaQpSnap *s,
                       char **error)
{
    uint16_t sq_posted = s->sq_pi - s->sq_ci;
    uint16_t sq_fetched = s->sq_next - s->sq_ci;
    uint16_t rq_posted = s->rq_pi - s->rq_ci;

    if (!erdma_snap_load_ring(&qp->sq, &s->sq, ERDMA_WQEBB_SHIFT,
                              ERDMA_MAX_QUEUE_LOG2, "QP: sq of", s->qpn,
                              error) ||
        !erdma_snap_load_ring(&qp->rq, &s->rq, ERDMA_RQE_SHIFT,
                              e->cfg.max_recv_wr_log2, "QP: rq of", s->qpn,
                              error)) {
        return false;
    }
    if (sq_posted > erdma_ring_depth(&qp->sq) || sq_fetched > sq_posted) {
        return FAIL(s, error, "sq_ci %u, sq_next %u, sq_pi %u must be in "
                    "this order and within %u", s->sq_ci, s->sq_next,
                    s->sq_pi, erdma_ring_depth(&qp->sq));
    }
    if (rq_posted > erdma_ring_depth(&qp->rq)) {
        return FAIL(s, error, "rq_ci %u, rq_pi %u must be within %u",
                    s->rq_ci, s->rq_pi, erdma_ring_depth(&qp->rq));
    }
    if (s->has_rqe && !rq_posted) {
        return FAIL(s, error, "has_rqe is %u, must be 0 in an empty queue",
                    s->has_rqe);
    }
    qp->sq_pi = s->sq_pi;
    qp->sq_next = s->sq_next;
    qp->sq_ci = s->sq_ci;
    qp->rq_pi = s->rq_pi;
    qp->rq_ci = s->rq_ci;
    qp->sq_dbrec = s->sq_dbrec;
    qp->rq_dbrec = s->rq_dbrec;
    return true;
}

static void load_fields(ErdmaQp *qp, const ErdmaQpSnap *s)
{
    qp->pdn = s->pdn;
    qp->sq_cqn = s->sq_cqn;
    qp->rq_cqn = s->rq_cqn;
    qp->cookie = s->cookie;
    qp->local_port = s->local_port;
    qp->peer_port = s->peer_port;
    qp->is_kernel = s->is_kernel;
    qp->db_ctx = s->db_ctx;
    qp->state = s->state;
    qp->last_error = s->last_error;
    qp->rx_msn = s->rx_msn;
    qp->has_bad_db = s->has_bad_db;
    qp->has_failed_wqe = s->has_failed_wqe;
    qp->failed_index = s->failed_index;
    qp->failed_status = s->failed_status;
    qp->is_rnr = s->is_rnr;
    qp->is_full = s->is_full;
    qp->has_rqe = s->has_rqe;
    qp->rqe.addr = s->rqe_addr;
    qp->rqe.len = s->rqe_len;
    qp->rqe.key = s->rqe_key;
    qp->term_status = s->term_status;
    qp->term_msn = s->term_msn;
}

static bool load_conn(ErdmaEngine *e, ErdmaQp *qp, const ErdmaQpSnap *s,
                      ErdmaEngineLoad *l, char **error)
{
    const ErdmaConnSnap *k = erdma_xport_load_peek(&l->xport);
    ErdmaXportMsg *msgs[ERDMA_QP_MAX_WQES + ERDMA_QP_MAX_RESPONSES] = { 0 };
    uint32_t n_msgs;

    if (!k || k->local_cookie != s->cookie) {
        return FAIL(s, error, "has_conn is %u, the next connection is not of "
                    "its cookie", s->has_conn);
    }
    n_msgs = k->next_msn - k->una_msn;
    if (n_msgs > G_N_ELEMENTS(msgs) ||
        !erdma_snap_order_msgs(qp, k->una_msn, msgs, n_msgs)) {
        return FAIL(s, error, "the messages %u to %u of its connection are "
                    "not the ones of its WQEs and responses", k->una_msn,
                    k->next_msn);
    }
    qp->conn = erdma_xport_load_conn(e->xport, &l->xport, qp, msgs, n_msgs,
                                     error);
    return qp->conn;
}

bool erdma_snap_load_qp(ErdmaEngine *e, const ErdmaQpSnap *s,
                        ErdmaEngineLoad *l, char **error)
{
    ErdmaQp *qp;

    if (!s->qpn || s->qpn >= erdma_engine_max_qp(e) ||
        erdma_qp_get(e, s->qpn)) {
        return FAIL(s, error, "qpn must be 1 to %u, and there once",
                    erdma_engine_max_qp(e) - 1);
    }
    if ((s->cookie & ((1u << ERDMA_QPN_BITS) - 1)) != s->qpn) {
        return FAIL(s, error, "cookie is 0x%x, must end with the number",
                    s->cookie);
    }
    if (!check_state(e, s, error)) {
        return false;
    }
    qp = g_new0(ErdmaQp, 1);
    qp->qpn = s->qpn;
    erdma_requester_free(e, qp);
    erdma_responder_free(e, qp);
    erdma_table_insert(&e->qps, qp->qpn, qp);
    load_fields(qp, s);
    if (!load_rings(e, qp, s, error) ||
        !erdma_snap_load_wqes(e, qp, s, l, error) ||
        (s->has_conn && !load_conn(e, qp, s, l, error))) {
        return false;
    }
    if (s->has_work) {
        erdma_qp_schedule(e, qp);
    }
    return true;
}
