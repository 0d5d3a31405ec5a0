/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requester, against a peer that refuses, answers wrongly or not at all.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "requester-rig.h"

/* The peer refuses: every status it could name, and what becomes of it */
static void test_terminated(Fixture *f, gconstpointer data)
{
    unsigned status = GPOINTER_TO_UINT(data);
    RigMsg *req;

    post(f, ERDMA_OP_SEND, 0);                          /* 0: consumed */
    post(f, ERDMA_OP_READ, 8);                          /* 1: answered */
    post(f, ERDMA_OP_WRITE, 8);                         /* 3: refused */
    post(f, ERDMA_OP_SEND, 8);                          /* 5 */
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    rig_run(f->rig, 10 * RIG_MS);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND));
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    answer(f, req);
    rig_msg_free(req);
    rig_run(f->rig, 10 * RIG_MS);
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_WRITE);
    /* Acknowledged or not, a message that is named has failed. */
    g_assert_cmpuint(rig_next(&f->qp->scq).index, ==, 0);
    f->qp->scq.ci = 0;
    erdma_xport_conn_terminate(f->peer->conn, status, req->msn);
    f->peer->next_ns = 0;
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, 0, 1);
    rig_msg_free(req);
    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0);
}

/* As above, with messages that were not consumed */
static void test_refused(Fixture *f, gconstpointer data)
{
    unsigned status = GPOINTER_TO_UINT(data);
    RigMsg *req;
    uint32_t msn;

    post(f, ERDMA_OP_SEND, 0);                          /* 0: consumed */
    post(f, ERDMA_OP_READ, 8);                          /* 1: answered */
    rig_run(f->rig, 10 * RIG_MS);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND));
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    f->peer->answer = ERDMA_XPORT_RX_REFUSED;
    msn = req->msn + 1;
    answer(f, req);
    rig_msg_free(req);
    post(f, ERDMA_OP_WRITE, 8);                         /* 3: refused */
    post(f, ERDMA_OP_SEND, 8);                          /* 5 */
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    rig_run(f->rig, 10 * RIG_MS);
    erdma_xport_conn_terminate(f->peer->conn, status, msn);
    f->peer->next_ns = 0;
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, 0, 1);
    rig_expect(&f->qp->scq, ERDMA_OP_WRITE,
               status == 15 ? 15 : status >= 3 && status <= 7 ? status : 1,
               3);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 5);
    rig_expect_none(&f->qp->scq);
    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0);
    rig_expect_none(&f->qp->rcq);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
}

/* An earlier read, whose answer will never come, has not succeeded. */
static void test_refused_unanswered(Fixture *f, gconstpointer data)
{
    RigMsg *req;

    post(f, ERDMA_OP_READ, 8);
    post(f, ERDMA_OP_SEND, 0);
    rig_run(f->rig, 10 * RIG_MS);
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    f->peer->answer = ERDMA_XPORT_RX_REFUSED;
    post(f, ERDMA_OP_SEND, 8);
    rig_run(f->rig, 10 * RIG_MS);
    erdma_xport_conn_terminate(f->peer->conn, 5, req->msn + 2);
    f->peer->next_ns = 0;
    rig_run(f->rig, RIG_S);
    rig_msg_free(req);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, ERDMA_WC_FLUSH_ERR, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 2);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 5, 3);
    rig_expect_none(&f->qp->scq);
}

/* An answer that nobody asked for, or not like this */
static void test_bad_answer(Fixture *f, gconstpointer data)
{
    unsigned how = GPOINTER_TO_UINT(data);
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_READ_RESP, .len = 8 };
    RigMsg *req;

    if (how) {
        post(f, ERDMA_OP_READ, 8);
        rig_run(f->rig, 10 * RIG_MS);
        req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
        hdr.req_msn = req->msn;
        rig_msg_free(req);
    }
    if (how == 1) {
        hdr.req_msn++;
    } else if (how == 2) {
        hdr.len = 7;
    } else if (how == 3) {
        hdr.len = 9;
    } else if (how == 4) {
        hdr.op = ERDMA_XPORT_OP_ATOMIC_RESP;
        hdr.len = 0;
    }
    f->hca->watch = f->buf;
    f->hca->watch_len = LEN;
    rig_peer_send(f->peer, &hdr, NULL);
    rig_run(f->rig, RIG_S);
    g_assert_cmpuint(f->hca->watch_end, ==, 0);
    if (how) {
        rig_expect(&f->qp->scq, ERDMA_OP_READ, 1, 0);
    } else {
        g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_QP_FATAL);
    }
    rig_expect_none(&f->qp->scq);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
}

/* The peer is gone for good. */
static void test_retry(Fixture *f, gconstpointer data)
{
    f->rig->is_cut = true;
    post(f, ERDMA_OP_WRITE, 8);
    post(f, ERDMA_OP_SEND, 8);
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    rig_run(f->rig, 3600 * RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_WRITE, ERDMA_WC_RETRY_EXC_ERR, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 2);
    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0);
    rig_expect_none(&f->qp->scq);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
}

/* Only an answer of ours is left without acknowledgement. */
static void test_retry_answer(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_READ_REQ, .rkey = f->all,
                             .raddr = f->buf, .read_len = 8 };

    f->peer->answer = ERDMA_XPORT_RX_NOT_READY;
    rig_peer_send(f->peer, &hdr, NULL);
    rig_run(f->rig, 10 * RIG_MS);
    f->rig->is_cut = true;
    rig_run(f->rig, 3600 * RIG_S);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_QP_FATAL);
    rig_expect_none(&f->qp->scq);
}

/* Nobody posts a receive. */
static void test_rnr(Fixture *f, gconstpointer data)
{
    f->peer->answer = ERDMA_XPORT_RX_NOT_READY;
    post(f, ERDMA_OP_SEND, 8);
    post(f, ERDMA_OP_SEND, 8);
    rig_run(f->rig, 3600 * RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_RETRY_EXC_ERR, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 1);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < 20; i++) {
        add_numbered("refused", i, test_refused);
    }
    add_numbered("refused", 255, test_refused);
    add_numbered("terminated", 3, test_terminated);
    ADD("refused/unanswered", test_refused_unanswered);
    for (i = 0; i < 5; i++) {
        add_numbered("bad-answer", i, test_bad_answer);
    }
    ADD("retry/request", test_retry);
    ADD("retry/answer", test_retry_answer);
    ADD("retry/rnr", test_rnr);
    return g_test_run();
}
