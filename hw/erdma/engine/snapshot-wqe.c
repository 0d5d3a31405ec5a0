/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a QP has under way, in snapshots: send WQEs and answers.
 *
 * The transport pulls payloads by what is said here, so lengths must agree
 * with each other, and operations with what the message is embedded in.
 */

#include "qemu/osdep.h"
#include "engine/snapshot-int.h"
#include "engine/status.h"
#include "engine/wqe.h"

#define ATOMIC_SIZE     8

static void save_payload(const ErdmaSendWqe *wqe, ErdmaWqeSnap *k,
                         ErdmaEngineSnap *s)
{
    uint8_t *to;
    unsigned i;

    if (!wqe->is_held && !wqe->is_unanswered) {
        return;                 /* nobody will ask for it */
    }
    k->n_sges = wqe->n_sges;
    for (i = 0; i < wqe->n_sges; i++) {
        *ERDMA_SNAP_ADD(s, sges) = (ErdmaSgeSnap) {
            .addr = wqe->sges[i].addr,
            .len = wqe->sges[i].len,
            .key = wqe->sges[i].key,
        };
    }
    if (!wqe->n_sges && wqe->len) {
        k->n_inline = wqe->len;
        to = erdma_snap_add_bytes(&s->bytes, &s->n_bytes, wqe->len);
        if (to) {
            memcpy(to, wqe->inline_data, wqe->len);
        }
    }
}

static void save_wqe(const ErdmaSendWqe *wqe, ErdmaEngineSnap *s)
{
    ErdmaWqeSnap *k = ERDMA_SNAP_ADD(s, wqes);

    *k = (ErdmaWqeSnap) {
        .index = wqe->index,
        .n_wqebbs = wqe->n_wqebbs,
        .opcode = wqe->opcode,
        .is_signalled = wqe->is_signalled,
        .is_held = wqe->is_held,
        .is_unanswered = wqe->is_unanswered,
        .is_done = wqe->is_done,
        .status = wqe->status,
        .len = wqe->len,
        .inv_key = wqe->inv_key,
        .msn = wqe->msg.msn,
    };
    erdma_snap_save_hdr(&wqe->msg.hdr, &k->hdr);
    save_payload(wqe, k, s);
}

void erdma_snap_save_wqes(const ErdmaQp *qp, ErdmaEngineSnap *s)
{
    const ErdmaResponse *resp;
    const ErdmaSendWqe *wqe;

    QTAILQ_FOREACH(wqe, &qp->sends, next) {
        save_wqe(wqe, s);
    }
    QTAILQ_FOREACH(wqe, &qp->orphans, next) {
        save_wqe(wqe, s);
    }
    QTAILQ_FOREACH(resp, &qp->responses, next) {
        ErdmaResponseSnap *k = ERDMA_SNAP_ADD(s, responses);

        k->msn = resp->msg.msn;
        k->rkey = resp->rkey;
        k->raddr = resp->raddr;
        erdma_snap_save_hdr(&resp->msg.hdr, &k->hdr);
    }
}

/* Errors about entry @index of QP @s */
#define FAIL(_s, _index, _error, _fmt, ...) \
    erdma_snap_fail(_error, "QP %u: WQE %u: " _fmt, (_s)->qpn, _index, \
                    ##__VA_ARGS__)

/* The operation that opcode @op sends, 0: none */
static uint8_t op_of(uint8_t opcode)
{
    switch (opcode) {
    case ERDMA_OP_SEND:
        return ERDMA_XPORT_OP_SEND;
    case ERDMA_OP_SEND_WITH_IMM:
        return ERDMA_XPORT_OP_SEND_IMM;
    case ERDMA_OP_SEND_WITH_INV:
        return ERDMA_XPORT_OP_SEND_INV;
    case ERDMA_OP_WRITE:
        return ERDMA_XPORT_OP_WRITE;
    case ERDMA_OP_WRITE_WITH_IMM:
        return ERDMA_XPORT_OP_WRITE_IMM;
    case ERDMA_OP_READ:
    case ERDMA_OP_READ_WITH_INV:
        return ERDMA_XPORT_OP_READ_REQ;
    case ERDMA_OP_ATOMIC_CAS:
        return ERDMA_XPORT_OP_ATOMIC_CAS;
    case ERDMA_OP_ATOMIC_FAA:
        return ERDMA_XPORT_OP_ATOMIC_FAA;
    default:
        return 0;
    }
}

/* Does the peer answer with a message of its own? */
static bool is_request(uint8_t op)
{
    return op == ERDMA_XPORT_OP_READ_REQ || op == ERDMA_XPORT_OP_ATOMIC_CAS ||
           op == ERDMA_XPORT_OP_ATOMIC_FAA;
}

/* Do payload and message have the same length? */
static bool is_len_right(const ErdmaSendWqe *wqe, const ErdmaWqeSnap *k)
{
    uint64_t sum = k->n_inline;
    unsigned i;

    for (i = 0; i < wqe->n_sges; i++) {
        sum += wqe->sges[i].len;
    }
    if (sum != k->len || (k->n_inline && k->n_sges)) {
        return false;
    }
    if (!is_request(k->hdr.op)) {
        return k->hdr.len == k->len;
    }
    return !k->hdr.len && k->n_sges == 1 &&
           (k->hdr.op == ERDMA_XPORT_OP_READ_REQ ? k->hdr.read_len == k->len
                                                 : k->len == ATOMIC_SIZE);
}

static bool load_payload(ErdmaSendWqe *wqe, const ErdmaQpSnap *s,
                         const ErdmaWqeSnap *k, ErdmaEngineLoad *l,
                         char **error)
{
    const ErdmaEngineSnap *snap = l->snap;
    unsigned i;

    if (k->n_sges > ERDMA_MAX_SEND_SGE || k->n_sges > snap->n_sges - l->sge ||
        k->n_inline > ERDMA_MAX_INLINE ||
        k->n_inline > snap->n_bytes - l->byte) {
        return FAIL(s, k->index, error, "n_sges is %u, n_inline %u, more "
                    "than there can be", k->n_sges, k->n_inline);
    }
    wqe->n_sges = k->n_sges;
    for (i = 0; i < k->n_sges; i++) {
        const ErdmaSgeSnap *sge = &snap->sges[l->sge++];

        wqe->sges[i] = (ErdmaSge) { sge->addr, sge->len, sge->key };
    }
    if (k->n_inline && !k->n_sges) {
        memcpy(wqe->inline_data, snap->bytes + l->byte, k->n_inline);
    }
    l->byte += k->n_inline;
    if ((k->is_held || k->is_unanswered) && !is_len_right(wqe, k)) {
        return FAIL(s, k->index, error, "len is %u, does not agree with "
                    "n_sges, n_inline and hdr.len (%u)", k->len, k->hdr.len);
    }
    return true;
}

static bool check_wqe(const ErdmaQpSnap *s, const ErdmaWqeSnap *k,
                      bool is_orphan, char **error)
{
    uint8_t op = op_of(k->opcode);
    bool is_answered = !k->is_unanswered && is_request(op);

    /* One that could not be read, or not be understood, says anything. */
    if (!k->status && (!k->n_wqebbs || k->n_wqebbs > ERDMA_MAX_WQEBBS)) {
        return FAIL(s, k->index, error, "n_wqebbs is %u, must be 1 to %d",
                    k->n_wqebbs, ERDMA_MAX_WQEBBS);
    }
    if ((k->is_held || k->is_unanswered) && (!op || op != k->hdr.op)) {
        return FAIL(s, k->index, error, "opcode is %u, does not send "
                    "hdr.op %u", k->opcode, k->hdr.op);
    }
    if ((k->is_unanswered && (k->is_done || !is_request(op))) ||
        (k->status && (!k->is_done || k->is_held)) ||
        (is_orphan && (!k->is_held || !k->is_done)) ||
        (!is_orphan && k->is_held && k->is_done && !is_answered) ||
        (!k->is_held && !k->is_unanswered && !k->is_done)) {
        return FAIL(s, k->index, error, "is_held %u, is_unanswered %u, "
                    "is_done %u, status %u cannot be at the same time",
                    k->is_held, k->is_unanswered, k->is_done, k->status);
    }
    return true;
}

static bool load_wqe(ErdmaEngine *e, ErdmaQp *qp, const ErdmaQpSnap *s,
                     bool is_orphan, ErdmaEngineLoad *l, char **error)
{
    const ErdmaWqeSnap *k = &l->snap->wqes[l->wqe++];
    g_autofree ErdmaSendWqe *wqe = g_new0(ErdmaSendWqe, 1);

    if (!check_wqe(s, k, is_orphan, error) ||
        !load_payload(wqe, s, k, l, error)) {
        return false;
    }
    wqe->index = k->index;
    wqe->n_wqebbs = k->n_wqebbs;
    wqe->opcode = k->opcode;
    wqe->is_signalled = k->is_signalled;
    wqe->is_held = k->is_held;
    wqe->is_orphan = is_orphan;
    wqe->is_unanswered = k->is_unanswered;
    wqe->is_done = k->is_done;
    wqe->status = k->status;
    wqe->len = k->len;
    wqe->inv_key = k->inv_key;
    wqe->msg.msn = k->msn;
    /* What was never sent has none. */
    erdma_snap_load_hdr(&wqe->msg.hdr, &k->hdr);
    if (is_orphan) {
        QTAILQ_INSERT_TAIL(&qp->orphans, wqe, next);
    } else {
        QTAILQ_INSERT_TAIL(&qp->sends, wqe, next);
    }
    qp->n_sends++;
    e->n_sends++;
    if (wqe->is_unanswered) {
        QTAILQ_INSERT_TAIL(&qp->reads, wqe, next_read);
        qp->n_reads++;
    }
    g_steal_pointer(&wqe);
    return true;
}

/* Entries follow each other from ci to next; one that is bad lies there. */
static bool check_indices(const ErdmaQp *qp, const ErdmaQpSnap *s,
                          char **error)
{
    uint16_t index = qp->sq_ci;
    const ErdmaSendWqe *wqe;
    bool is_bad = false;

    QTAILQ_FOREACH(wqe, &qp->sends, next) {
        if (wqe->index != index || is_bad) {
            return FAIL(s, wqe->index, error, "index must be %u", index);
        }
        /* A WQE that is bad when it is fetched ends the queue there. */
        is_bad = s->sq_wait == ERDMA_SQ_WAIT_ERROR &&
                 index == qp->sq_next && wqe->status;
        index += is_bad ? 0 : wqe->n_wqebbs;
    }
    if (index != qp->sq_next ||
        is_bad != (s->sq_wait == ERDMA_SQ_WAIT_ERROR)) {
        return erdma_snap_fail(error, "QP %u: sq_next is %u, sq_wait %u, "
                               "does not agree with the WQEs' end (%u)",
                               s->qpn, qp->sq_next, s->sq_wait, index);
    }
    return true;
}

static bool load_responses(ErdmaEngine *e, ErdmaQp *qp,
                           const ErdmaQpSnap *s, ErdmaEngineLoad *l,
                           char **error)
{
    uint32_t i;

    for (i = 0; i < s->n_responses; i++) {
        const ErdmaResponseSnap *k = &l->snap->responses[l->response++];
        ErdmaResponse *resp;

        if (k->hdr.op != ERDMA_XPORT_OP_READ_RESP &&
            (k->hdr.op != ERDMA_XPORT_OP_ATOMIC_RESP || k->hdr.len)) {
            return erdma_snap_fail(error, "QP %u: responses[%u]: hdr.op is "
                                   "%u, must be %d or %d", s->qpn, i,
                                   k->hdr.op, ERDMA_XPORT_OP_READ_RESP,
                                   ERDMA_XPORT_OP_ATOMIC_RESP);
        }
        resp = g_new0(ErdmaResponse, 1);
        resp->rkey = k->rkey;
        resp->raddr = k->raddr;
        resp->msg.msn = k->msn;
        erdma_snap_load_hdr(&resp->msg.hdr, &k->hdr);
        QTAILQ_INSERT_TAIL(&qp->responses, resp, next);
        qp->n_responses++;
        e->n_responses++;
    }
    return true;
}

bool erdma_snap_load_wqes(ErdmaEngine *e, ErdmaQp *qp, const ErdmaQpSnap *s,
                          ErdmaEngineLoad *l, char **error)
{
    const ErdmaEngineSnap *snap = l->snap;
    uint32_t i;

    if (s->n_sends > ERDMA_QP_MAX_WQES ||
        s->n_orphans > ERDMA_QP_MAX_WQES - s->n_sends ||
        s->n_sends + s->n_orphans > snap->n_wqes - l->wqe) {
        return erdma_snap_fail(error, "QP %u: n_sends is %u, n_orphans %u, "
                               "must be at most %d, and in wqes[]", s->qpn,
                               s->n_sends, s->n_orphans, ERDMA_QP_MAX_WQES);
    }
    if (s->n_responses > ERDMA_QP_MAX_RESPONSES ||
        s->n_responses > snap->n_responses - l->response) {
        return erdma_snap_fail(error, "QP %u: n_responses is %u, must be at "
                               "most %d, and in responses[]", s->qpn,
                               s->n_responses, ERDMA_QP_MAX_RESPONSES);
    }
    for (i = 0; i < s->n_sends + s->n_orphans; i++) {
        if (!load_wqe(e, qp, s, i >= s->n_sends, l, error)) {
            return false;
        }
    }
    qp->sq_wait = s->sq_wait;
    return check_indices(qp, s, error) && load_responses(e, qp, s, l, error);
}

static bool order_msg(ErdmaXportMsg *msg, uint32_t una_msn,
                      ErdmaXportMsg **msgs, uint32_t n_msgs)
{
    uint32_t number = msg->msn - una_msn;

    if (number >= n_msgs || msgs[number]) {
        return false;
    }
    msgs[number] = msg;
    return true;
}

bool erdma_snap_order_msgs(const ErdmaQp *qp, uint32_t una_msn,
                           ErdmaXportMsg **msgs, uint32_t n_msgs)
{
    ErdmaResponse *resp;
    ErdmaSendWqe *wqe;
    uint32_t n = 0;

    QTAILQ_FOREACH(wqe, &qp->sends, next) {
        if (wqe->is_held) {
            n++;
            if (!order_msg(&wqe->msg, una_msn, msgs, n_msgs)) {
                return false;
            }
        }
    }
    QTAILQ_FOREACH(wqe, &qp->orphans, next) {
        n++;
        if (!order_msg(&wqe->msg, una_msn, msgs, n_msgs)) {
            return false;
        }
    }
    QTAILQ_FOREACH(resp, &qp->responses, next) {
        n++;
        if (!order_msg(&resp->msg, una_msn, msgs, n_msgs)) {
            return false;
        }
    }
    return n == n_msgs;
}
