/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: commands, doorbells, state, and the end of a connection.
 *
 * Reference: docs/specs/erdma.rst, "Queue pair states"
 */

#include "qemu/osdep.h"
#include "engine/decode.h"
#include "engine/state.h"
#include "engine/status.h"

#define QP_INCARNATION_MASK     0xfff
#define QP_INCARNATION_SHIFT    ERDMA_QPN_BITS

static void qp_set_state(ErdmaEngine *e, ErdmaQp *qp, ErdmaQpState state)
{
    erdma_trace(e, ERDMA_EV_QP_STATE, qp->qpn, qp->state, state);
    qp->state = state;
}

ErdmaQp *erdma_qp_get(ErdmaEngine *e, uint32_t qpn)
{
    return erdma_table_get(&e->qps, qpn);
}

void erdma_qp_schedule(ErdmaEngine *e, ErdmaQp *qp)
{
    if (!qp->has_work) {
        qp->has_work = true;
        QTAILQ_INSERT_TAIL(&e->qp_work, qp, work);
    }
    erdma_engine_kick(e);
}

/* The end of a connection */

/*
 * Whatever the reason, the peer is told on the way: otherwise it could not
 * tell messages that were consumed here, whose acknowledgement was lost,
 * from messages that never will be.
 */
static void qp_leave_conn(ErdmaQp *qp)
{
    if (!qp->conn) {
        return;
    }
    if (qp->state == ERDMA_QP_TERMINATING) {
        erdma_xport_conn_terminate(qp->conn, qp->term_status, qp->term_msn);
    } else {
        erdma_xport_conn_terminate(qp->conn, ERDMA_WC_FLUSH_ERR, qp->rx_msn);
    }
}

static void qp_flush(ErdmaEngine *e, ErdmaQp *qp)
{
    if (qp->state == ERDMA_QP_FLUSHING) {
        return;
    }
    qp_leave_conn(qp);
    erdma_requester_free(e, qp);
    erdma_responder_free(e, qp);
    qp->sq_next = qp->sq_ci;
    qp_set_state(e, qp, ERDMA_QP_FLUSHING);
    erdma_qp_schedule(e, qp);
}

void erdma_qp_fail_wqe(ErdmaEngine *e, ErdmaQp *qp, uint16_t index,
                       uint8_t status)
{
    if (qp->state == ERDMA_QP_FLUSHING) {
        return;
    }
    erdma_trace(e, ERDMA_EV_QP_ERROR, qp->qpn, status, index);
    qp->last_error = status;
    qp->has_failed_wqe = true;
    qp->failed_index = index;
    qp->failed_status = status;
    qp_flush(e, qp);
}

void erdma_qp_fail(ErdmaEngine *e, ErdmaQp *qp, uint8_t status)
{
    if (!QTAILQ_EMPTY(&qp->sends)) {
        erdma_qp_fail_wqe(e, qp, qp->sq_ci, status);
        return;
    }
    if (qp->state == ERDMA_QP_FLUSHING) {
        return;
    }
    erdma_trace(e, ERDMA_EV_QP_ERROR, qp->qpn, status, qp->sq_ci);
    qp->last_error = status;
    erdma_aeq_post(e, ERDMA_AE_TYPE_QP_FATAL, qp->qpn);
    qp_flush(e, qp);
}

void erdma_qp_refuse(ErdmaEngine *e, ErdmaQp *qp, uint8_t status,
                     uint32_t msn)
{
    if (qp->state == ERDMA_QP_FLUSHING) {
        return;
    }
    qp->last_error = status;
    qp->term_status = status;
    qp->term_msn = msn;
    if (qp->state != ERDMA_QP_TERMINATING) {
        qp_set_state(e, qp, ERDMA_QP_TERMINATING);
    }
    if (!qp->n_responses) {
        qp_flush(e, qp);
    }
}

void erdma_qp_refuse_now(ErdmaEngine *e, ErdmaQp *qp, uint8_t status,
                         uint32_t msn)
{
    erdma_qp_refuse(e, qp, status, msn);
    qp_flush(e, qp);
}

void erdma_qp_peer_closed(ErdmaEngine *e, ErdmaQp *qp)
{
    qp_flush(e, qp);
}

void erdma_qp_die(ErdmaEngine *e, ErdmaQp *qp)
{
    if (qp->conn) {
        erdma_xport_conn_close(qp->conn);
        qp->conn = NULL;
    }
    erdma_requester_free(e, qp);
    erdma_responder_free(e, qp);
    qp->sq_next = qp->sq_ci;
    qp_set_state(e, qp, ERDMA_QP_CREATED);
}

/* Doorbells: latch and schedule, nothing else */

/*
 * Moves *@pi to @new.  A value behind *@pi is an old doorbell, overtaken by
 * REFLUSH.  Returns false when more than the queue holds is claimed.
 */
static bool qp_raise_pi(uint16_t *pi, uint16_t ci, uint16_t new,
                        const ErdmaRing *ring)
{
    uint16_t posted = new - ci;

    if (posted > erdma_ring_depth(ring)) {
        return false;
    }
    if (posted > (uint16_t)(*pi - ci)) {
        *pi = new;
    }
    return true;
}

static void qp_doorbell(ErdmaEngine *e, ErdmaQp *qp, uint16_t *pi,
                        uint16_t ci, uint16_t new, const ErdmaRing *ring)
{
    if (!qp_raise_pi(pi, ci, new, ring) && qp->state != ERDMA_QP_FLUSHING) {
        qp->has_bad_db = true;
    }
    if (qp->state != ERDMA_QP_CREATED || qp->has_bad_db) {
        erdma_qp_schedule(e, qp);
    }
}

void erdma_qp_db_sq(ErdmaEngine *e, uint64_t payload)
{
    ErdmaQp *qp = erdma_qp_get(e, FIELD_EX64(payload, ERDMA_DB_SQ, QPN));

    if (!qp) {
        e->stats.db_ignored++;
        return;
    }
    qp_doorbell(e, qp, &qp->sq_pi, qp->sq_ci,
                FIELD_EX64(payload, ERDMA_DB_SQ, PI), &qp->sq);
}

void erdma_qp_db_rq(ErdmaEngine *e, uint64_t payload)
{
    ErdmaQp *qp = erdma_qp_get(e, FIELD_EX64(payload, ERDMA_DB_RQ, QPN));

    if (!qp) {
        e->stats.db_ignored++;
        return;
    }
    qp_doorbell(e, qp, &qp->rq_pi, qp->rq_ci,
                FIELD_EX64(payload, ERDMA_DB_RQ, PI), &qp->rq);
}

/* Nobody knows what was really posted; no entry is to blame. */
static void qp_bad_doorbell(ErdmaEngine *e, ErdmaQp *qp)
{
    qp->has_bad_db = false;
    if (qp->state == ERDMA_QP_FLUSHING) {
        return;
    }
    e->port->guest_error(e->opaque, "QP %" PRIu32 ": a doorbell claims more "
                         "entries than the queue holds", qp->qpn);
    qp->last_error = ERDMA_WC_GENERAL_ERR;
    erdma_aeq_post(e, ERDMA_AE_TYPE_QP_FATAL, qp->qpn);
    qp_flush(e, qp);
}

bool erdma_qp_run(ErdmaEngine *e, ErdmaQp *qp)
{
    if (qp->has_bad_db) {
        qp_bad_doorbell(e, qp);
    }
    if (qp->state == ERDMA_QP_RTS) {
        erdma_responder_run(qp);
        return erdma_requester_run(e, qp);
    }
    if (qp->state == ERDMA_QP_FLUSHING) {
        return erdma_qp_flush_run(e, qp);
    }
    return false;
}

/* Commands */

static void qp_init_ring(ErdmaRing *r, const ErdmaCreateQp *c, bool is_rq)
{
    const uint64_t *pages = is_rq ? c->rq_pages : c->sq_pages;

    r->depth_log2 = is_rq ? c->rq_depth_log2 : c->sq_depth_log2;
    r->entry_shift = is_rq ? ERDMA_RQE_SHIFT : ERDMA_WQEBB_SHIFT;
    r->page_shift = is_rq ? c->rq_page_shift : c->sq_page_shift;
    r->first_off = is_rq ? c->rq_off : c->sq_off;
    r->n_pages = is_rq ? c->rq_n_pages : c->sq_n_pages;
    r->has_table = is_rq ? c->rq_has_table : c->sq_has_table;
    r->table = pages[0];
    memcpy(r->pages, pages, sizeof(r->pages));
    r->cached_page = UINT32_MAX;
}

static uint8_t qp_check_create(ErdmaEngine *e, const ErdmaCreateQp *c)
{
    if (!c->qpn || c->qpn >= erdma_engine_max_qp(e)) {
        return ERDMA_CMD_ERR_INDEX;
    }
    if (erdma_qp_get(e, c->qpn)) {
        return ERDMA_CMD_ERR_BUSY;
    }
    if (!erdma_cq_get(e, c->sq_cqn) || !erdma_cq_get(e, c->rq_cqn)) {
        return ERDMA_CMD_ERR_INDEX;
    }
    if (c->sq_depth_log2 > ERDMA_MAX_QUEUE_LOG2 ||
        c->rq_depth_log2 > e->cfg.max_recv_wr_log2) {
        return ERDMA_CMD_ERR_SIZE;
    }
    return ERDMA_CMD_OK;
}

uint8_t erdma_qp_create(ErdmaEngine *e, const ErdmaCreateQp *c,
                        uint32_t *cookie)
{
    uint8_t status = qp_check_create(e, c);
    g_autofree ErdmaQp *qp = NULL;

    if (status) {
        return status;
    }
    qp = g_new0(ErdmaQp, 1);
    qp_init_ring(&qp->sq, c, false);
    qp_init_ring(&qp->rq, c, true);
    if (!erdma_ring_is_valid(&qp->sq) || !erdma_ring_is_valid(&qp->rq)) {
        return ERDMA_CMD_ERR_SIZE;
    }
    qp->qpn = c->qpn;
    qp->pdn = c->pdn;
    qp->sq_cqn = c->sq_cqn;
    qp->rq_cqn = c->rq_cqn;
    qp->sq_dbrec = c->sq_dbrec;
    qp->rq_dbrec = c->rq_dbrec;
    qp->is_kernel = c->is_kernel;
    qp->db_ctx = c->db_ctx;
    qp->state = ERDMA_QP_CREATED;
    erdma_requester_free(e, qp);
    erdma_responder_free(e, qp);
    /*
     * Counted through for the life of the device, resets included: a number
     * comes back after 4095 others, when the packets of a QP of the same
     * QPN are long gone.
     */
    qp->cookie = (e->incarnation++ & QP_INCARNATION_MASK)
                 << QP_INCARNATION_SHIFT | qp->qpn;
    if (!erdma_table_insert(&e->qps, qp->qpn, qp)) {
        return ERDMA_CMD_ERR_INDEX;
    }
    *cookie = qp->cookie;
    g_steal_pointer(&qp);
    return ERDMA_CMD_OK;
}

static void qp_free(ErdmaEngine *e, ErdmaQp *qp)
{
    if (qp->conn) {
        erdma_xport_conn_close(qp->conn);
    }
    erdma_requester_free(e, qp);
    erdma_responder_free(e, qp);
    if (qp->has_work) {
        QTAILQ_REMOVE(&e->qp_work, qp, work);
    }
    g_free(qp);
}

void erdma_qp_free_left(ErdmaEngine *e, ErdmaQp *qp)
{
    /* The list and the numbers are those of another life. */
    qp->has_work = false;
    e->n_sends += qp->n_sends;
    e->n_responses += qp->n_responses;
    qp_free(e, qp);
}

uint8_t erdma_qp_destroy(ErdmaEngine *e, uint32_t qpn)
{
    ErdmaQp *qp = erdma_table_remove(&e->qps, qpn);

    if (!qp) {
        return ERDMA_CMD_ERR_INDEX;
    }
    qp_free(e, qp);
    return ERDMA_CMD_OK;
}

void erdma_qp_free_all(ErdmaEngine *e)
{
    uint32_t qpn = 0;
    ErdmaQp *qp;

    while ((qp = erdma_table_next(&e->qps, &qpn))) {
        erdma_table_remove(&e->qps, qpn);
        qp_free(e, qp);
    }
}

static bool qp_is_idle(const ErdmaQp *qp)
{
    return qp->sq_ci == qp->sq_pi && qp->rq_ci == qp->rq_pi &&
           !qp->n_sends && !qp->n_responses;
}

/*
 * A QP that was connected before may be connected again when nothing of the
 * old connection is left to be reported.
 */
static uint8_t qp_connect(ErdmaEngine *e, ErdmaQp *qp, const ErdmaModifyQp *m,
                          uint64_t now_ns)
{
    ErdmaXportConnParams p = {
        .local_cookie = qp->cookie,
        .peer_cookie = m->cookie,
        .local_ip = m->local_ip,
        .peer_ip = m->peer_ip,
        .tx_pn0 = m->send_nxt,
        .rx_pn0 = m->recv_nxt,
        /* The field is wider than the list of algorithms. */
        .cc = e->cfg.is_cc_off ? ERDMA_XPORT_CC_NONE :
              m->cc < ERDMA_CC_COUNT ? m->cc : ERDMA_CC_CUBIC,
        .owner = qp,
    };
    ErdmaXportConnInfo info;

    if (qp->has_bad_db ||
        (qp->state != ERDMA_QP_CREATED && !qp_is_idle(qp))) {
        return ERDMA_CMD_ERR_BUSY;
    }
    if (qp->conn) {
        erdma_xport_conn_close(qp->conn);
    }
    qp->conn = erdma_xport_conn_open(e->xport, &p, now_ns);
    if (!qp->conn) {
        qp_flush(e, qp);
        return ERDMA_CMD_ERR_BUSY;
    }
    if (e->port->conn_open) {
        e->port->conn_open(e->opaque, p.local_ip, p.peer_ip);
    }
    erdma_xport_conn_info(qp->conn, &info);
    qp->rx_msn = info.rx_msn;
    qp->local_port = m->local_port;
    qp->peer_port = m->peer_port;
    qp->has_failed_wqe = false;
    qp->last_error = ERDMA_WC_SUCCESS;
    qp_set_state(e, qp, ERDMA_QP_RTS);
    erdma_qp_schedule(e, qp);
    return ERDMA_CMD_OK;
}

uint8_t erdma_qp_modify(ErdmaEngine *e, const ErdmaModifyQp *m,
                        uint64_t now_ns)
{
    ErdmaQp *qp = erdma_qp_get(e, m->qpn);

    if (!qp) {
        return ERDMA_CMD_ERR_INDEX;
    }
    switch (m->state) {
    case ERDMA_QPS_RTS:
        return qp_connect(e, qp, m, now_ns);
    case ERDMA_QPS_CLOSING:
    case ERDMA_QPS_TERMINATE:
    case ERDMA_QPS_ERROR:
        qp_flush(e, qp);
        return ERDMA_CMD_OK;
    default:
        return ERDMA_CMD_ERR_FORMAT;
    }
}

uint8_t erdma_qp_reflush(ErdmaEngine *e, uint32_t qpn, uint16_t sq_pi,
                         uint16_t rq_pi)
{
    ErdmaQp *qp = erdma_qp_get(e, qpn);

    if (!qp) {
        return ERDMA_CMD_ERR_INDEX;
    }
    /*
     * The driver never forgets that it once flushed a QP, and repeats this
     * for ever, on live QPs too.  Its indices may be older than a doorbell.
     */
    if (qp->state == ERDMA_QP_FLUSHING) {
        qp_raise_pi(&qp->sq_pi, qp->sq_ci, sq_pi, &qp->sq);
        qp_raise_pi(&qp->rq_pi, qp->rq_ci, rq_pi, &qp->rq);
        erdma_qp_schedule(e, qp);
    }
    return ERDMA_CMD_OK;
}

/* What the transport says; @owner is the QP. */

static bool qp_is_response(const ErdmaXportMsgHdr *hdr)
{
    return hdr->op == ERDMA_XPORT_OP_READ_RESP ||
           hdr->op == ERDMA_XPORT_OP_ATOMIC_RESP;
}

static bool qp_transmit(void *opaque, const ErdmaDatagram *dg)
{
    ErdmaEngine *e = opaque;

    return e->port->transmit(e->opaque, dg);
}

static bool qp_pull(void *opaque, void *owner, ErdmaXportMsg *msg,
                    uint32_t off, uint8_t *buf, uint32_t len)
{
    if (qp_is_response(&msg->hdr)) {
        return erdma_responder_pull(opaque, owner, msg, off, buf, len);
    }
    return erdma_requester_pull(opaque, owner, msg, off, buf, len);
}

static ErdmaXportRx qp_rx(void *opaque, void *owner,
                          const ErdmaXportMsgHdr *hdr, uint32_t msn,
                          uint32_t off, const uint8_t *data, uint32_t len,
                          bool is_last)
{
    ErdmaEngine *e = opaque;
    ErdmaQp *qp = owner;
    ErdmaXportRx rx;

    if (qp->state != ERDMA_QP_RTS) {
        return ERDMA_XPORT_RX_REFUSED;
    }
    if (erdma_fault_watches(e, ERDMA_FAULT_ON_MESSAGE) && !off) {
        erdma_fault_message(e, qp);
        if (qp->state != ERDMA_QP_RTS) {
            return ERDMA_XPORT_RX_REFUSED;
        }
    }
    /* Until it is consumed, this is the message that may have to be named. */
    qp->rx_msn = msn;
    if (qp_is_response(hdr)) {
        rx = erdma_requester_rx(e, qp, hdr, off, data, len, is_last);
    } else {
        rx = erdma_responder_rx(e, qp, hdr, msn, off, data, len,
                                is_last);
    }
    if (rx == ERDMA_XPORT_RX_OK && is_last) {
        qp->rx_msn = msn + 1;
    }
    return rx;
}

static void qp_msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    if (qp_is_response(&msg->hdr)) {
        erdma_responder_msg_done(opaque, owner, msg);
    } else {
        erdma_requester_msg_done(opaque, owner, msg);
    }
}

static void qp_tx_room(void *opaque, void *owner)
{
    ErdmaQp *qp = owner;

    if (qp->sq_next != qp->sq_pi) {
        erdma_qp_schedule(opaque, qp);
    }
}

static void qp_terminated(void *opaque, void *owner, uint8_t status,
                          uint32_t msn)
{
    ErdmaQp *qp = owner;

    if (qp->state != ERDMA_QP_FLUSHING) {
        erdma_requester_terminated(opaque, qp, status, msn);
    }
}

static void qp_conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    ErdmaQp *qp = owner;

    if (qp->state == ERDMA_QP_TERMINATING) {
        qp_flush(opaque, qp);           /* the guest knows why already */
    } else {
        /* No receive posted in time looks the same to the guest. */
        erdma_qp_fail(opaque, qp, ERDMA_WC_RETRY_EXC_ERR);
    }
}

static void qp_trace(void *opaque, void *owner, ErdmaXportEvent event,
                     uint64_t a, uint64_t b)
{
    ErdmaEngine *e = opaque;
    ErdmaQp *qp = owner;

    if (e->port->xport_trace) {
        e->port->xport_trace(e->opaque, qp ? qp->qpn : 0, event, a, b);
    }
}

const ErdmaXportOps erdma_qp_xport_ops = {
    .transmit = qp_transmit,
    .pull = qp_pull,
    .rx = qp_rx,
    .msg_done = qp_msg_done,
    .tx_room = qp_tx_room,
    .terminated = qp_terminated,
    .conn_error = qp_conn_error,
    .trace = qp_trace,
};
