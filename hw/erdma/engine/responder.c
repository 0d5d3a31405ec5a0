/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responder: places what the peer sends, answers its reads and atomics.
 *
 * Segments come in order and once.  Each is either consumed, deferred (no
 * receive posted, too many answers on their way), or the end of the QP.
 *
 * Reference: docs/specs/erdma.rst, "Receive queue entry", "Error semantics"
 */

#include "qemu/osdep.h"
#include "engine/decode.h"
#include "engine/state.h"
#include "engine/status.h"
#include "engine/wqe.h"

/*
 * Below the upper mark, ERDMA_QP_MAX_RESPONSES.  When all QPs together have
 * many, each has a few: how many QPs there are is not for us to say.
 */
#define RESPONDER_RESUME_AT     ERDMA_MAX_ORD
#define RESPONDER_MANY          65536
#define RESPONDER_FEW           4

#define ATOMIC_SIZE             8

static ErdmaMrUse responder_use(const ErdmaQp *qp, uint32_t key,
                                uint8_t access)
{
    ErdmaMrUse use = {
        .key = key,
        .pdn = qp->pdn,
        .access = access,
    };

    return use;
}

/* Our own receive buffer: the local DMA key is as good as any other. */
static ErdmaMrUse responder_rqe_use(const ErdmaQp *qp)
{
    ErdmaMrUse use = responder_use(qp, qp->rqe.key, ERDMA_MR_ACC_LW);

    use.allow_dma_key = qp->is_kernel;
    return use;
}

/* Refusals.  Each returns what rx() has to return. */

static ErdmaXportRx responder_refuse(ErdmaEngine *e, ErdmaQp *qp,
                                     uint32_t msn, uint8_t status)
{
    erdma_trace(e, ERDMA_EV_RX_REFUSED, qp->qpn, msn, status);
    erdma_qp_refuse(e, qp, status, msn);
    return ERDMA_XPORT_RX_REFUSED;
}

/* No work queue entry here is to blame: an event tells the guest. */
static ErdmaXportRx responder_refuse_request(ErdmaEngine *e, ErdmaQp *qp,
                                             uint32_t msn, uint8_t status)
{
    erdma_aeq_post(e, status == ERDMA_WC_GENERAL_ERR ? ERDMA_AE_TYPE_QP_FATAL
                   : ERDMA_AE_TYPE_ACC_ERR, qp->qpn);
    return responder_refuse(e, qp, msn, status);
}

/* Ends the RQE at rq_ci. */
static void responder_post_cqe(ErdmaEngine *e, ErdmaQp *qp, ErdmaCqe *cqe)
{
    cqe->qtype = ERDMA_CQE_QTYPE_RQ;
    cqe->qpn = qp->qpn;
    cqe->index = qp->rq_ci++;
    qp->has_rqe = false;
    erdma_cq_post(e, qp->rq_cqn, cqe);
}

/* The RQE gets @status, the peer @peer_status. */
static ErdmaXportRx responder_refuse_rqe(ErdmaEngine *e, ErdmaQp *qp,
                                         uint32_t msn, uint8_t status,
                                         uint8_t peer_status)
{
    ErdmaCqe cqe = {
        .opcode = ERDMA_OP_RECEIVE,
        .status = status,
    };

    responder_post_cqe(e, qp, &cqe);
    return responder_refuse(e, qp, msn, peer_status);
}

/* Receive queue */

/*
 * Fetches the RQE at rq_ci into qp->rqe; anything but RX_OK is the result of
 * the segment that needs it.
 */
static ErdmaXportRx responder_take_rqe(ErdmaEngine *e, ErdmaQp *qp,
                                       uint32_t msn)
{
    uint8_t raw[ERDMA_RQE_SIZE];
    ErdmaRqe rqe;

    if (qp->rq_ci == qp->rq_pi) {
        qp->is_rnr = true;
        return ERDMA_XPORT_RX_NOT_READY;
    }
    if (!erdma_ring_read(e, &qp->rq, qp->rq_ci, raw)) {
        return responder_refuse_rqe(e, qp, msn, ERDMA_WC_GENERAL_ERR,
                                    ERDMA_WC_GENERAL_ERR);
    }
    erdma_decode_rqe(raw, &rqe);
    if (rqe.index != (uint16_t)(qp->rq_ci + 1) || rqe.qpn != qp->qpn) {
        return responder_refuse_rqe(e, qp, msn, ERDMA_WC_RECV_WQE_FORMAT_ERR,
                                    ERDMA_WC_GENERAL_ERR);
    }
    qp->has_rqe = true;
    qp->rqe.addr = rqe.sge.addr;
    qp->rqe.len = rqe.sge.len;
    qp->rqe.key = rqe.sge.key;
    return ERDMA_XPORT_RX_OK;
}

/* SEND, SEND_IMM, SEND_INV */

/* First segment: a receive that the whole message fits into */
static ErdmaXportRx responder_send_begin(ErdmaEngine *e, ErdmaQp *qp,
                                         const ErdmaXportMsgHdr *hdr,
                                         uint32_t msn)
{
    ErdmaXportRx rx = responder_take_rqe(e, qp, msn);
    ErdmaMrStatus s;
    ErdmaMrUse use;

    if (rx != ERDMA_XPORT_RX_OK) {
        return rx;
    }
    if (hdr->len > qp->rqe.len) {
        return responder_refuse_rqe(e, qp, msn,
                                    ERDMA_WC_RECV_ADDR_VIOLATION_ERR,
                                    ERDMA_WC_RECV_ADDR_VIOLATION_ERR);
    }
    use = responder_rqe_use(qp);
    s = erdma_mr_check(e, &use, qp->rqe.addr, hdr->len);
    if (s != ERDMA_MR_OK) {
        return responder_refuse_rqe(e, qp, msn, erdma_status_remote(s),
                                    ERDMA_WC_GENERAL_ERR);
    }
    return ERDMA_XPORT_RX_OK;
}

static ErdmaXportRx responder_send_end(ErdmaEngine *e, ErdmaQp *qp,
                                       const ErdmaXportMsgHdr *hdr,
                                       uint32_t msn)
{
    ErdmaCqe cqe = {
        .opcode = ERDMA_OP_RECEIVE,
        .is_solicited = hdr->is_solicited,
        .byte_len = hdr->len,
    };
    ErdmaMrStatus s;

    if (hdr->op == ERDMA_XPORT_OP_SEND_IMM) {
        cqe.opcode = ERDMA_OP_RSP_SEND_IMM;
        cqe.imm = hdr->imm;
    } else if (hdr->op == ERDMA_XPORT_OP_SEND_INV) {
        s = erdma_mr_invalidate(e, qp->pdn, hdr->imm);
        if (s != ERDMA_MR_OK) {
            /* The peer named a key that it has no right to. */
            uint8_t status = erdma_status_remote(s);

            erdma_aeq_post(e, ERDMA_AE_TYPE_ACC_ERR, qp->qpn);
            return responder_refuse_rqe(e, qp, msn, status, status);
        }
        e->stats.mr_remote_invs++;
        cqe.opcode = ERDMA_OP_RECV_INV;
        cqe.imm = hdr->imm;
        cqe.has_inv_key = true;
    }
    responder_post_cqe(e, qp, &cqe);
    return ERDMA_XPORT_RX_OK;
}

static ErdmaXportRx responder_rx_send(ErdmaEngine *e, ErdmaQp *qp,
                                      const ErdmaXportMsgHdr *hdr,
                                      uint32_t msn, uint32_t off,
                                      const uint8_t *data, uint32_t len,
                                      bool is_last)
{
    ErdmaXportRx rx;
    ErdmaMrStatus s;
    ErdmaMrUse use;

    if (!qp->has_rqe) {
        rx = responder_send_begin(e, qp, hdr, msn);
        if (rx != ERDMA_XPORT_RX_OK) {
            return rx;
        }
    }
    use = responder_rqe_use(qp);
    s = erdma_mr_write(e, &use, qp->rqe.addr + off, data, len);
    if (s != ERDMA_MR_OK) {
        return responder_refuse_rqe(e, qp, msn, erdma_status_remote(s),
                                    ERDMA_WC_GENERAL_ERR);
    }
    return is_last ? responder_send_end(e, qp, hdr, msn) : ERDMA_XPORT_RX_OK;
}

/* WRITE, WRITE_IMM */

static ErdmaXportRx responder_rx_write(ErdmaEngine *e, ErdmaQp *qp,
                                       const ErdmaXportMsgHdr *hdr,
                                       uint32_t msn, uint32_t off,
                                       const uint8_t *data, uint32_t len,
                                       bool is_last)
{
    ErdmaMrUse use = responder_use(qp, hdr->rkey, ERDMA_MR_ACC_RW);
    bool is_imm = hdr->op == ERDMA_XPORT_OP_WRITE_IMM;
    ErdmaMrStatus s = ERDMA_MR_OK;
    ErdmaXportRx rx;
    ErdmaCqe cqe = {
        .opcode = ERDMA_OP_RECV_IMM,
        .is_solicited = hdr->is_solicited,
        .imm = hdr->imm,
        .byte_len = hdr->len,
    };

    if (!off) {
        /* Nothing of a write is placed if it does not fit as a whole. */
        s = erdma_mr_check(e, &use, hdr->raddr, hdr->len);
    }
    if (s == ERDMA_MR_OK && is_imm && is_last) {
        /* Before placing, since a deferred segment must not have effects */
        rx = responder_take_rqe(e, qp, msn);
        if (rx != ERDMA_XPORT_RX_OK) {
            return rx;
        }
    }
    if (s == ERDMA_MR_OK) {
        s = erdma_mr_write(e, &use, hdr->raddr + off, data, len);
    }
    if (s != ERDMA_MR_OK) {
        return responder_refuse_request(e, qp, msn, erdma_status_remote(s));
    }
    if (is_imm && is_last) {
        responder_post_cqe(e, qp, &cqe);
    }
    return ERDMA_XPORT_RX_OK;
}

/* READ_REQ, ATOMIC_* */

static void responder_answer(ErdmaEngine *e, ErdmaQp *qp,
                             ErdmaResponse *resp)
{
    QTAILQ_INSERT_TAIL(&qp->responses, resp, next);
    qp->n_responses++;
    e->n_responses++;
    erdma_xport_conn_send(qp->conn, &resp->msg);
}

static ErdmaXportRx responder_rx_read(ErdmaEngine *e, ErdmaQp *qp,
                                      const ErdmaXportMsgHdr *hdr,
                                      uint32_t msn)
{
    ErdmaMrUse use = responder_use(qp, hdr->rkey, ERDMA_MR_ACC_RR);
    ErdmaResponse *resp;
    ErdmaMrStatus s;

    s = erdma_mr_check(e, &use, hdr->raddr, hdr->read_len);
    if (s != ERDMA_MR_OK) {
        return responder_refuse_request(e, qp, msn, erdma_status_remote(s));
    }
    resp = g_new0(ErdmaResponse, 1);
    resp->rkey = hdr->rkey;
    resp->raddr = hdr->raddr;
    resp->msg.hdr.op = ERDMA_XPORT_OP_READ_RESP;
    resp->msg.hdr.len = hdr->read_len;
    resp->msg.hdr.req_msn = msn;
    responder_answer(e, qp, resp);
    return ERDMA_XPORT_RX_OK;
}

static uint64_t responder_atomic_result(const ErdmaXportMsgHdr *hdr,
                                        uint64_t original)
{
    if (hdr->op == ERDMA_XPORT_OP_ATOMIC_FAA) {
        return original + hdr->swap_add;
    }
    return original == hdr->compare ? hdr->swap_add : original;
}

static ErdmaXportRx responder_rx_atomic(ErdmaEngine *e, ErdmaQp *qp,
                                        const ErdmaXportMsgHdr *hdr,
                                        uint32_t msn)
{
    ErdmaMrUse use = responder_use(qp, hdr->rkey, ERDMA_MR_ACC_RA);
    uint8_t raw[ATOMIC_SIZE];
    ErdmaResponse *resp;
    uint64_t original;
    ErdmaMrStatus s;

    if (!e->cfg.has_atomics || hdr->raddr % ATOMIC_SIZE) {
        return responder_refuse_request(e, qp, msn, ERDMA_WC_GENERAL_ERR);
    }
    s = erdma_mr_read(e, &use, hdr->raddr, raw, sizeof(raw));
    if (s == ERDMA_MR_OK) {
        original = erdma_decode_atomic(raw);
        erdma_encode_atomic(raw, responder_atomic_result(hdr, original));
        s = erdma_mr_write(e, &use, hdr->raddr, raw, sizeof(raw));
    }
    if (s != ERDMA_MR_OK) {
        return responder_refuse_request(e, qp, msn, erdma_status_remote(s));
    }
    /* The result lives in the message: a retransmission repeats it. */
    resp = g_new0(ErdmaResponse, 1);
    resp->msg.hdr.op = ERDMA_XPORT_OP_ATOMIC_RESP;
    resp->msg.hdr.req_msn = msn;
    resp->msg.hdr.original = original;
    responder_answer(e, qp, resp);
    return ERDMA_XPORT_RX_OK;
}

static ErdmaXportRx responder_rx_request(ErdmaEngine *e, ErdmaQp *qp,
                                         const ErdmaXportMsgHdr *hdr,
                                         uint32_t msn, bool is_last)
{
    if (!is_last) {
        /* A request has no payload. */
        return responder_refuse_request(e, qp, msn, ERDMA_WC_GENERAL_ERR);
    }
    if (qp->n_responses >= (e->n_responses < RESPONDER_MANY ?
                            ERDMA_QP_MAX_RESPONSES : RESPONDER_FEW)) {
        qp->is_full = true;
        return ERDMA_XPORT_RX_NOT_READY;
    }
    if (hdr->op == ERDMA_XPORT_OP_READ_REQ) {
        return responder_rx_read(e, qp, hdr, msn);
    }
    return responder_rx_atomic(e, qp, hdr, msn);
}

ErdmaXportRx erdma_responder_rx(ErdmaEngine *e, ErdmaQp *qp,
                                const ErdmaXportMsgHdr *hdr, uint32_t msn,
                                uint32_t off, const uint8_t *data,
                                uint32_t len, bool is_last)
{
    ErdmaXportRx rx;

    switch (hdr->op) {
    case ERDMA_XPORT_OP_SEND:
    case ERDMA_XPORT_OP_SEND_IMM:
    case ERDMA_XPORT_OP_SEND_INV:
        rx = responder_rx_send(e, qp, hdr, msn, off, data, len, is_last);
        break;
    case ERDMA_XPORT_OP_WRITE:
    case ERDMA_XPORT_OP_WRITE_IMM:
        rx = responder_rx_write(e, qp, hdr, msn, off, data, len, is_last);
        break;
    case ERDMA_XPORT_OP_READ_REQ:
    case ERDMA_XPORT_OP_ATOMIC_CAS:
    case ERDMA_XPORT_OP_ATOMIC_FAA:
        rx = responder_rx_request(e, qp, hdr, msn, is_last && !len);
        break;
    default:
        rx = responder_refuse_request(e, qp, msn, ERDMA_WC_GENERAL_ERR);
        break;
    }
    if (rx == ERDMA_XPORT_RX_OK && is_last) {
        erdma_trace(e, ERDMA_EV_RX_MSG, qp->qpn, msn, hdr->op);
        e->stats.rx_requests++;
    }
    return rx;
}

/* Receives were posted. */
void erdma_responder_run(ErdmaQp *qp)
{
    if (qp->is_rnr && qp->rq_ci != qp->rq_pi) {
        qp->is_rnr = false;
        erdma_xport_conn_rx_resume(qp->conn);
    }
}

void erdma_responder_free(ErdmaEngine *e, ErdmaQp *qp)
{
    ErdmaResponse *resp, *next;

    QTAILQ_FOREACH_SAFE(resp, &qp->responses, next, next) {
        g_free(resp);
    }
    QTAILQ_INIT(&qp->responses);
    e->n_responses -= qp->n_responses;
    qp->n_responses = 0;
    qp->has_rqe = false;
    qp->is_rnr = false;
    qp->is_full = false;
}

bool erdma_responder_pull(ErdmaEngine *e, ErdmaQp *qp, ErdmaXportMsg *msg,
                          uint32_t off, uint8_t *buf, uint32_t len)
{
    ErdmaResponse *resp = container_of(msg, ErdmaResponse, msg);
    ErdmaMrUse use = responder_use(qp, resp->rkey, ERDMA_MR_ACC_RR);
    uint32_t msn = msg->hdr.req_msn;
    ErdmaMrStatus s;
    uint8_t status;

    s = erdma_mr_read(e, &use, resp->raddr + off, buf, len);
    if (s == ERDMA_MR_OK) {
        return true;
    }
    status = erdma_status_remote(s);
    erdma_trace(e, ERDMA_EV_RX_REFUSED, qp->qpn, msn, status);
    erdma_aeq_post(e, status == ERDMA_WC_GENERAL_ERR ? ERDMA_AE_TYPE_QP_FATAL
                   : ERDMA_AE_TYPE_ACC_ERR, qp->qpn);
    erdma_qp_refuse_now(e, qp, status, msn);
    return false;
}

void erdma_responder_msg_done(ErdmaEngine *e, ErdmaQp *qp, ErdmaXportMsg *msg)
{
    ErdmaResponse *resp = container_of(msg, ErdmaResponse, msg);

    QTAILQ_REMOVE(&qp->responses, resp, next);
    qp->n_responses--;
    e->n_responses--;
    g_free(resp);
    if (qp->is_full && qp->n_responses <= RESPONDER_RESUME_AT) {
        qp->is_full = false;
        erdma_xport_conn_rx_resume(qp->conn);
    }
    if (qp->state == ERDMA_QP_TERMINATING && !qp->n_responses) {
        erdma_qp_refuse_now(e, qp, qp->term_status, qp->term_msn);
    }
}
