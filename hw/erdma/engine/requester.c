/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requester: fetches send WQEs, executes them, completes them in order.
 *
 * A WQE becomes an ErdmaSendWqe when its turn comes.  It is done when the
 * peer consumed its message, for reads and atomics when the answer is placed
 * here; its completion is reported when everything before it is done.
 *
 * Reference: docs/specs/erdma.rst, "Send queue entries"
 */

#include "qemu/osdep.h"
#include "engine/decode.h"
#include "engine/state.h"
#include "engine/status.h"
#include "engine/wqe.h"

/*
 * When all QPs together have this many WQEs, each goes on with a few: the
 * guest decides how many QPs it has, and must not decide how much memory we
 * use.
 */
#define REQUESTER_MANY_WQES     65536
#define REQUESTER_FEW_WQES      4
/* WQEs started in one visit of a QP */
#define REQUESTER_BUDGET        32

static ErdmaMrUse requester_use(const ErdmaQp *qp, uint32_t key,
                                uint8_t access)
{
    ErdmaMrUse use = {
        .key = key,
        .pdn = qp->pdn,
        .access = access,
        .allow_dma_key = qp->is_kernel,
    };

    return use;
}

static bool requester_is_read(uint8_t opcode)
{
    return opcode == ERDMA_OP_READ || opcode == ERDMA_OP_READ_WITH_INV;
}

static bool requester_is_atomic(uint8_t opcode)
{
    return opcode == ERDMA_OP_ATOMIC_CAS || opcode == ERDMA_OP_ATOMIC_FAA;
}

/* Completion */

static void requester_post_cqe(ErdmaEngine *e, ErdmaQp *qp,
                               const ErdmaSendWqe *wqe)
{
    ErdmaCqe cqe = {
        .opcode = wqe->opcode,
        .qtype = ERDMA_CQE_QTYPE_SQ,
        .status = ERDMA_WC_SUCCESS,
        .index = wqe->index,
        .qpn = qp->qpn,
        .byte_len = wqe->len,
    };

    erdma_cq_post(e, qp->sq_cqn, &cqe);
}

static void requester_release(ErdmaEngine *e, ErdmaQp *qp, ErdmaSendWqe *wqe)
{
    qp->n_sends--;
    e->n_sends--;
    g_free(wqe);
}

/* May the WQE at sq_next be looked at, for the first time or again? */
static bool requester_may_go_on(const ErdmaEngine *e, const ErdmaQp *qp)
{
    if (qp->n_sends >= (e->n_sends < REQUESTER_MANY_WQES ? ERDMA_QP_MAX_WQES :
                        REQUESTER_FEW_WQES)) {
        return false;
    }
    switch (qp->sq_wait) {
    case ERDMA_SQ_WAIT_NONE:
        return true;
    case ERDMA_SQ_WAIT_ORD:
        return qp->n_reads < ERDMA_MAX_ORD;
    case ERDMA_SQ_WAIT_READS:
        return !qp->n_reads;
    case ERDMA_SQ_WAIT_ALL:
        return QTAILQ_EMPTY(&qp->sends);
    case ERDMA_SQ_WAIT_ERROR:
        break;
    }
    return false;
}

/* Reports what is done at the head of the queue; may fail the QP. */
static void requester_complete(ErdmaEngine *e, ErdmaQp *qp)
{
    ErdmaSendWqe *wqe;

    while ((wqe = QTAILQ_FIRST(&qp->sends)) && wqe->is_done) {
        if (wqe->status) {
            erdma_qp_fail_wqe(e, qp, wqe->index, wqe->status);
            return;
        }
        if (wqe->is_signalled) {
            requester_post_cqe(e, qp, wqe);
        }
        qp->sq_ci += wqe->n_wqebbs;
        QTAILQ_REMOVE(&qp->sends, wqe, next);
        if (wqe->is_held) {
            wqe->is_orphan = true;
            QTAILQ_INSERT_TAIL(&qp->orphans, wqe, next);
        } else {
            requester_release(e, qp, wqe);
        }
    }
    if (qp->sq_next != qp->sq_pi && requester_may_go_on(e, qp)) {
        erdma_qp_schedule(e, qp);
    }
}

/* Start of a WQE: the checks, then the deed.  Each returns a status. */

static uint8_t requester_start_message(ErdmaEngine *e, ErdmaQp *qp,
                                       ErdmaSendWqe *wqe, const ErdmaSqe *sqe,
                                       ErdmaXportOp op)
{
    ErdmaXportMsgHdr *hdr = &wqe->msg.hdr;
    ErdmaMrStatus s;
    unsigned i;

    if (sqe->inline_len) {
        memcpy(wqe->inline_data, sqe->inline_data, sqe->inline_len);
    } else {
        wqe->n_sges = sqe->n_sges;
        memcpy(wqe->sges, sqe->sges, sizeof(wqe->sges));
    }
    for (i = 0; i < wqe->n_sges; i++) {
        ErdmaMrUse use = requester_use(qp, wqe->sges[i].key,
                                       ERDMA_MR_ACC_LR);

        s = erdma_mr_check(e, &use, wqe->sges[i].addr, wqe->sges[i].len);
        if (s != ERDMA_MR_OK) {
            return erdma_status_local(s);
        }
    }
    wqe->len = sqe->len;
    hdr->op = op;
    hdr->len = sqe->len;
    hdr->is_solicited = sqe->hdr.is_solicited && op != ERDMA_XPORT_OP_WRITE;
    /* What the opcode does not define was decoded as 0. */
    hdr->imm = op == ERDMA_XPORT_OP_SEND_INV ? sqe->inv_key : sqe->imm;
    hdr->rkey = sqe->rkey;
    hdr->raddr = sqe->raddr;
    return ERDMA_WC_SUCCESS;
}

static uint8_t requester_start_request(ErdmaEngine *e, ErdmaQp *qp,
                                       ErdmaSendWqe *wqe, const ErdmaSqe *sqe,
                                       ErdmaXportOp op)
{
    ErdmaXportMsgHdr *hdr = &wqe->msg.hdr;
    ErdmaMrUse use = requester_use(qp, sqe->sges[0].key, ERDMA_MR_ACC_LW);
    ErdmaMrStatus s;

    s = erdma_mr_check(e, &use, sqe->sges[0].addr, sqe->sges[0].len);
    if (s != ERDMA_MR_OK) {
        return erdma_status_local(s);
    }
    wqe->n_sges = 1;
    wqe->sges[0] = sqe->sges[0];
    wqe->len = sqe->sges[0].len;
    wqe->inv_key = sqe->inv_key;
    hdr->op = op;
    hdr->rkey = sqe->rkey;
    hdr->raddr = sqe->raddr;
    if (op == ERDMA_XPORT_OP_READ_REQ) {
        hdr->read_len = wqe->len;
    } else {
        hdr->swap_add = sqe->swap_add;
        hdr->compare = sqe->compare;
    }
    wqe->is_unanswered = true;
    return ERDMA_WC_SUCCESS;
}

/* Executed at its turn, without the peer */
static uint8_t requester_do_local(ErdmaEngine *e, ErdmaQp *qp,
                                  ErdmaSendWqe *wqe, const ErdmaSqe *sqe)
{
    ErdmaMrStatus s;

    if (sqe->hdr.opcode == ERDMA_OP_LOCAL_INV) {
        s = erdma_mr_invalidate(e, qp->pdn, sqe->inv_key);
        e->stats.mr_local_invs += s == ERDMA_MR_OK;
    } else if (qp->is_kernel) {
        s = erdma_mr_fast_reg(e, qp->pdn, &sqe->reg);
        e->stats.mr_fast_regs += s == ERDMA_MR_OK;
    } else {
        /* It carries bus addresses, which are not a user program's to say. */
        return ERDMA_WC_SEND_WQE_FORMAT_ERR;
    }
    wqe->is_done = true;
    return erdma_status_local(s);
}

static uint8_t requester_start(ErdmaEngine *e, ErdmaQp *qp,
                               ErdmaSendWqe *wqe, const ErdmaSqe *sqe)
{
    switch (sqe->hdr.opcode) {
    case ERDMA_OP_SEND:
        return requester_start_message(e, qp, wqe, sqe, ERDMA_XPORT_OP_SEND);
    case ERDMA_OP_SEND_WITH_IMM:
        return requester_start_message(e, qp, wqe, sqe,
                                       ERDMA_XPORT_OP_SEND_IMM);
    case ERDMA_OP_SEND_WITH_INV:
        return requester_start_message(e, qp, wqe, sqe,
                                       ERDMA_XPORT_OP_SEND_INV);
    case ERDMA_OP_WRITE:
        return requester_start_message(e, qp, wqe, sqe, ERDMA_XPORT_OP_WRITE);
    case ERDMA_OP_WRITE_WITH_IMM:
        return requester_start_message(e, qp, wqe, sqe,
                                       ERDMA_XPORT_OP_WRITE_IMM);
    case ERDMA_OP_READ:
    case ERDMA_OP_READ_WITH_INV:
        return requester_start_request(e, qp, wqe, sqe,
                                       ERDMA_XPORT_OP_READ_REQ);
    case ERDMA_OP_ATOMIC_CAS:
    case ERDMA_OP_ATOMIC_FAA:
        if (!e->cfg.has_atomics) {
            return ERDMA_WC_SEND_WQE_FORMAT_ERR;
        }
        return requester_start_request(e, qp, wqe, sqe,
                                       sqe->hdr.opcode == ERDMA_OP_ATOMIC_CAS
                                       ? ERDMA_XPORT_OP_ATOMIC_CAS
                                       : ERDMA_XPORT_OP_ATOMIC_FAA);
    case ERDMA_OP_REG_MR:
    case ERDMA_OP_LOCAL_INV:
        return requester_do_local(e, qp, wqe, sqe);
    default:
        return ERDMA_WC_SEND_WQE_FORMAT_ERR;
    }
}

/*
 * Copies and decodes the WQE at sq_next.  On an error only sqe->hdr is
 * meaningful, as far as it could be read.
 */
static uint8_t requester_fetch(ErdmaEngine *e, ErdmaQp *qp, ErdmaSqe *sqe)
{
    uint8_t raw[ERDMA_MAX_WQEBBS * ERDMA_WQEBB_SIZE];
    uint16_t posted = qp->sq_pi - qp->sq_next;
    unsigned n, i;

    memset(&sqe->hdr, 0, sizeof(sqe->hdr));
    if (!erdma_ring_read(e, &qp->sq, qp->sq_next, raw)) {
        return ERDMA_WC_GENERAL_ERR;
    }
    erdma_decode_sqe_hdr(raw, &sqe->hdr);
    n = sqe->hdr.n_wqebbs;
    if (n > ERDMA_MAX_WQEBBS || n > posted ||
        sqe->hdr.pi != (uint16_t)(qp->sq_next + n) ||
        sqe->hdr.qpn != qp->qpn) {
        return ERDMA_WC_SEND_WQE_FORMAT_ERR;
    }
    for (i = 1; i < n; i++) {
        if (!erdma_ring_read(e, &qp->sq, qp->sq_next + i,
                             raw + i * ERDMA_WQEBB_SIZE)) {
            return ERDMA_WC_GENERAL_ERR;
        }
    }
    if (!erdma_decode_sqe(raw, sqe)) {
        return ERDMA_WC_SEND_WQE_FORMAT_ERR;
    }
    return ERDMA_WC_SUCCESS;
}

/* Has the WQE to wait for earlier ones? */
static ErdmaSqWait requester_must_wait(const ErdmaQp *qp, const ErdmaSqe *sqe)
{
    uint8_t op = sqe->hdr.opcode;

    if (op == ERDMA_OP_LOCAL_INV && !QTAILQ_EMPTY(&qp->sends)) {
        return ERDMA_SQ_WAIT_ALL;
    }
    if (sqe->hdr.is_fenced && qp->n_reads) {
        return ERDMA_SQ_WAIT_READS;
    }
    if ((requester_is_read(op) || requester_is_atomic(op)) &&
        qp->n_reads >= ERDMA_MAX_ORD) {
        return ERDMA_SQ_WAIT_ORD;
    }
    return ERDMA_SQ_WAIT_NONE;
}

/* Takes the next WQE into work.  Returns false when it has to wait. */
static bool requester_step(ErdmaEngine *e, ErdmaQp *qp)
{
    ErdmaSendWqe *wqe;
    ErdmaSqe sqe;
    uint8_t status;

    status = requester_fetch(e, qp, &sqe);
    if (!status) {
        qp->sq_wait = requester_must_wait(qp, &sqe);
        if (qp->sq_wait != ERDMA_SQ_WAIT_NONE) {
            return false;
        }
    }
    if (!status && erdma_fault_watches(e, ERDMA_FAULT_ON_WQE)) {
        status = erdma_fault_wqe(e, qp, sqe.hdr.opcode);
        if (qp->state != ERDMA_QP_RTS) {
            return false;
        }
    }
    wqe = g_new0(ErdmaSendWqe, 1);
    wqe->index = qp->sq_next;
    wqe->n_wqebbs = sqe.hdr.n_wqebbs;
    wqe->opcode = sqe.hdr.opcode;
    wqe->is_signalled = sqe.hdr.is_signalled;
    if (!status) {
        erdma_trace(e, ERDMA_EV_SQ_WQE, qp->qpn, wqe->index, wqe->opcode);
        e->stats.tx_requests++;
        status = requester_start(e, qp, wqe, &sqe);
    }
    QTAILQ_INSERT_TAIL(&qp->sends, wqe, next);
    qp->n_sends++;
    e->n_sends++;
    if (status) {
        /*
         * What was posted before it still gets its chance, and completes
         * before it.  Nothing behind it will be looked at.
         */
        wqe->status = status;
        wqe->is_done = true;
        wqe->is_unanswered = false;
        qp->sq_wait = ERDMA_SQ_WAIT_ERROR;
        return false;
    }
    qp->sq_next += wqe->n_wqebbs;
    if (wqe->is_done) {
        return true;
    }
    if (wqe->is_unanswered) {
        QTAILQ_INSERT_TAIL(&qp->reads, wqe, next_read);
        qp->n_reads++;
        erdma_xport_conn_expect(qp->conn, true);
    }
    wqe->is_held = true;
    erdma_xport_conn_send(qp->conn, &wqe->msg);
    return true;
}

bool erdma_requester_run(ErdmaEngine *e, ErdmaQp *qp)
{
    unsigned budget = REQUESTER_BUDGET;

    while (qp->sq_next != qp->sq_pi && requester_may_go_on(e, qp) && budget &&
           e->dma_left) {
        budget--;
        if (!requester_step(e, qp)) {
            break;
        }
    }
    requester_complete(e, qp);
    return !budget || !e->dma_left;
}

static void requester_free_list(ErdmaSendWqe *wqe)
{
    while (wqe) {
        ErdmaSendWqe *next = QTAILQ_NEXT(wqe, next);

        g_free(wqe);
        wqe = next;
    }
}

void erdma_requester_free(ErdmaEngine *e, ErdmaQp *qp)
{
    requester_free_list(QTAILQ_FIRST(&qp->sends));
    requester_free_list(QTAILQ_FIRST(&qp->orphans));
    QTAILQ_INIT(&qp->sends);
    QTAILQ_INIT(&qp->reads);
    QTAILQ_INIT(&qp->orphans);
    e->n_sends -= qp->n_sends;
    qp->n_sends = 0;
    qp->n_reads = 0;
    qp->sq_wait = ERDMA_SQ_WAIT_NONE;
}

/* What the transport says */

bool erdma_requester_pull(ErdmaEngine *e, ErdmaQp *qp, ErdmaXportMsg *msg,
                          uint32_t off, uint8_t *buf, uint32_t len)
{
    ErdmaSendWqe *wqe = container_of(msg, ErdmaSendWqe, msg);
    ErdmaMrStatus s = ERDMA_MR_OK;
    unsigned i;

    if (!wqe->n_sges) {
        memcpy(buf, wqe->inline_data + off, len);
        return true;
    }
    for (i = 0; len && i < wqe->n_sges; i++) {
        const ErdmaSge *sge = &wqe->sges[i];
        ErdmaMrUse use = requester_use(qp, sge->key, ERDMA_MR_ACC_LR);
        uint32_t n;

        if (off >= sge->len) {
            off -= sge->len;
            continue;
        }
        n = MIN(len, sge->len - off);
        s = erdma_mr_read(e, &use, sge->addr + off, buf, n);
        if (s != ERDMA_MR_OK) {
            erdma_qp_fail_wqe(e, qp, wqe->index, erdma_status_local(s));
            return false;
        }
        buf += n;
        len -= n;
        off = 0;
    }
    return true;
}

void erdma_requester_msg_done(ErdmaEngine *e, ErdmaQp *qp, ErdmaXportMsg *msg)
{
    ErdmaSendWqe *wqe = container_of(msg, ErdmaSendWqe, msg);

    wqe->is_held = false;
    if (wqe->is_orphan) {
        QTAILQ_REMOVE(&qp->orphans, wqe, next);
        requester_release(e, qp, wqe);
    } else if (!wqe->is_unanswered) {
        wqe->is_done = true;
    }
    requester_complete(e, qp);
}

/* The answer to @wqe is complete. */
static ErdmaXportRx requester_answered(ErdmaEngine *e, ErdmaQp *qp,
                                       ErdmaSendWqe *wqe)
{
    ErdmaMrStatus s;

    if (wqe->opcode == ERDMA_OP_READ_WITH_INV) {
        /*
         * Linux's rdma_rw_ctx_init() takes the key down before
         * rdma_rw_ctx_wrs() gives the region its next key byte.
         */
        s = erdma_mr_invalidate_index(e, qp->pdn, wqe->inv_key >> 8);
        if (s != ERDMA_MR_OK) {
            erdma_qp_fail_wqe(e, qp, wqe->index, erdma_status_local(s));
            return ERDMA_XPORT_RX_REFUSED;
        }
        e->stats.mr_read_invs++;
    }
    QTAILQ_REMOVE(&qp->reads, wqe, next_read);
    qp->n_reads--;
    erdma_xport_conn_expect(qp->conn, qp->n_reads > 0);
    wqe->is_unanswered = false;
    wqe->is_done = true;
    requester_complete(e, qp);
    return ERDMA_XPORT_RX_OK;
}

/*
 * Answers come in the order of the requests, so that only the oldest
 * unanswered one can be meant.
 */
static bool requester_is_answer(const ErdmaSendWqe *wqe,
                                const ErdmaXportMsgHdr *hdr)
{
    if (!wqe || hdr->req_msn != wqe->msg.msn) {
        return false;
    }
    if (requester_is_read(wqe->opcode)) {
        return hdr->op == ERDMA_XPORT_OP_READ_RESP && hdr->len == wqe->len;
    }
    return hdr->op == ERDMA_XPORT_OP_ATOMIC_RESP && !hdr->len;
}

ErdmaXportRx erdma_requester_rx(ErdmaEngine *e, ErdmaQp *qp,
                                const ErdmaXportMsgHdr *hdr, uint32_t off,
                                const uint8_t *data, uint32_t len,
                                bool is_last)
{
    ErdmaSendWqe *wqe = QTAILQ_FIRST(&qp->reads);
    uint8_t original[sizeof(hdr->original)];
    ErdmaMrStatus s;
    ErdmaMrUse use;

    if (!requester_is_answer(wqe, hdr)) {
        /* The peer does not keep to the protocol. */
        if (wqe) {
            erdma_qp_fail_wqe(e, qp, wqe->index, ERDMA_WC_GENERAL_ERR);
        } else {
            erdma_qp_fail(e, qp, ERDMA_WC_GENERAL_ERR);
        }
        return ERDMA_XPORT_RX_REFUSED;
    }
    if (hdr->op == ERDMA_XPORT_OP_ATOMIC_RESP) {
        erdma_encode_atomic(original, hdr->original);
        data = original;
        len = sizeof(original);
    }
    use = requester_use(qp, wqe->sges[0].key, ERDMA_MR_ACC_LW);
    s = erdma_mr_write(e, &use, wqe->sges[0].addr + off, data, len);
    if (s != ERDMA_MR_OK) {
        erdma_qp_fail_wqe(e, qp, wqe->index, erdma_status_local(s));
        return ERDMA_XPORT_RX_REFUSED;
    }
    return is_last ? requester_answered(e, qp, wqe) : ERDMA_XPORT_RX_OK;
}

void erdma_requester_terminated(ErdmaEngine *e, ErdmaQp *qp, uint8_t status,
                                uint32_t msn)
{
    ErdmaSendWqe *wqe, *failed = NULL;

    /* The peer consumed everything before @msn, acknowledged or not. */
    QTAILQ_FOREACH(wqe, &qp->sends, next) {
        if (wqe->is_done) {
            continue;
        }
        if (wqe->msg.msn == msn) {
            failed = wqe;
        } else if ((int32_t)(wqe->msg.msn - msn) < 0) {
            wqe->is_done = !wqe->is_unanswered;
        }
    }
    requester_complete(e, qp);
    if (qp->state == ERDMA_QP_FLUSHING) {
        return;                 /* something earlier failed here */
    }
    if (status == ERDMA_WC_FLUSH_ERR) {
        erdma_qp_peer_closed(e, qp);
    } else if (failed) {
        erdma_qp_fail_wqe(e, qp, failed->index,
                          erdma_status_from_peer(status));
    } else {
        erdma_qp_fail(e, qp, erdma_status_from_peer(status));
    }
}
