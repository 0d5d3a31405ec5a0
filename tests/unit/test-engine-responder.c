/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responder, against a peer that can say anything.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "peer-fixture.h"

static void setup(Fixture *f, gconstpointer data)
{
    setup_qp(f, NULL, ERDMA_MR_ACC_LR);
}

static void teardown_refusal(Fixture *f, gconstpointer data)
{
    g_free((gpointer)data);
    teardown(f, NULL);
}

/*
 * The peer's message was refused with @status, a QP that is flushed stays
 * behind: @n_flushed receives, and whatever is posted later.
 */
static void check_refused(Fixture *f, uint32_t msn, uint8_t status,
                          unsigned n_flushed)
{
    uint16_t index;

    g_assert_cmpuint(f->peer->n_terminated, ==, 1);
    g_assert_cmpuint(f->peer->term_status, ==, status);
    g_assert_cmpuint(f->peer->term_msn, ==, msn);
    while (n_flushed--) {
        RigCqe cqe = rig_next(&f->qp->rcq);

        g_assert_cmpuint(cqe.status, ==, ERDMA_WC_FLUSH_ERR);
        g_assert_cmpuint(cqe.opcode, ==, ERDMA_OP_RECEIVE);
    }
    rig_expect_none(&f->qp->rcq);
    index = rig_post_recv(f->qp, 0, 0, 0);
    rig_run(f->rig, RIG_MS);
    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, index);
}

typedef enum Fault {
    F_KEY_INDEX,                /* no such region */
    F_KEY_BYTE,
    F_PD,
    F_RIGHT,
    F_RANGE_END,
    F_RANGE_START,
    F_WRAP,
    F_DMA,
    F_DMA_KEY,                  /* the local DMA key, by the peer */
    F_ALIGN,
} Fault;

typedef struct Refusal {
    ErdmaXportOp op;
    Fault fault;
    uint8_t status;
} Refusal;

static const struct {
    const char *name;
    ErdmaXportOp op;
    bool is_atomic;
} requests[] = {
    { "write", ERDMA_XPORT_OP_WRITE, false },
    { "write-imm", ERDMA_XPORT_OP_WRITE_IMM, false },
    { "read", ERDMA_XPORT_OP_READ_REQ, false },
    { "cas", ERDMA_XPORT_OP_ATOMIC_CAS, true },
    { "faa", ERDMA_XPORT_OP_ATOMIC_FAA, true },
};

static const struct {
    const char *name;
    Fault fault;
    uint8_t status;
    bool not_atomic;            /* an aligned atomic cannot wrap */
    bool only_atomic;
    bool not_read;              /* a read finds out later */
} faults[] = {
    { "key-index", F_KEY_INDEX, 3, false, false, false },
    { "key-byte", F_KEY_BYTE, 3, false, false, false },
    { "dma-key", F_DMA_KEY, 3, false, false, false },
    { "range-end", F_RANGE_END, 4, false, false, false },
    { "range-start", F_RANGE_START, 4, false, false, false },
    { "right", F_RIGHT, 5, false, false, false },
    { "pd", F_PD, 6, false, false, false },
    { "wrap", F_WRAP, 7, true, false, false },
    { "dma", F_DMA, 1, false, false, true },
    { "align", F_ALIGN, 1, false, true, false },
};

static void spoil(Fixture *f, Fault fault, ErdmaXportMsgHdr *hdr)
{
    switch (fault) {
    case F_KEY_INDEX:
        hdr->rkey = f->all + 0x10000;
        break;
    case F_KEY_BYTE:
        hdr->rkey = f->all ^ 1;
        break;
    case F_PD:
        hdr->rkey = f->other_pd;
        break;
    case F_RIGHT:
        hdr->rkey = f->none;
        break;
    case F_RANGE_END:
        hdr->raddr = f->buf + LEN;
        break;
    case F_RANGE_START:
        hdr->raddr = f->buf - 8;
        break;
    case F_WRAP:
        hdr->raddr = UINT64_MAX & ~7ull;
        hdr->len = hdr->len ? 16 : 0;
        hdr->read_len = hdr->read_len ? 16 : 0;
        break;
    case F_DMA:
        f->hca->hole = f->buf;
        f->hca->hole_len = 8;
        break;
    case F_DMA_KEY:
        hdr->rkey = 0xffffff00;
        break;
    case F_ALIGN:
        hdr->raddr += 4;
        break;
    }
}

static ErdmaXportMsgHdr request(Fixture *f, ErdmaXportOp op)
{
    ErdmaXportMsgHdr hdr = { .op = op, .rkey = f->all, .raddr = f->buf };

    if (op == ERDMA_XPORT_OP_WRITE || op == ERDMA_XPORT_OP_WRITE_IMM) {
        hdr.len = 16;
    } else if (op == ERDMA_XPORT_OP_READ_REQ) {
        hdr.read_len = 16;
    }
    return hdr;
}

static void test_refusal(Fixture *f, gconstpointer data)
{
    const Refusal *r = data;
    ErdmaXportMsgHdr hdr = request(f, r->op);
    ErdmaXportMsgHdr send = { .op = ERDMA_XPORT_OP_SEND };
    uint8_t before[LEN];
    uint32_t msn;

    memset(rig_ptr(f->hca, f->buf), 0x3c, LEN);
    memcpy(before, rig_ptr(f->hca, f->buf), LEN);
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    spoil(f, r->fault, &hdr);
    /* Good messages around it: the one before counts, the one after not. */
    rig_peer_send(f->peer, &send, NULL);
    msn = rig_peer_send(f->peer, &hdr, NULL);
    rig_peer_send(f->peer, &send, NULL);
    rig_run(f->rig, RIG_S);
    f->hca->hole_len = 0;

    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, 0, 0);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==,
                    r->status == 1 ? ERDMA_AE_TYPE_QP_FATAL
                                   : ERDMA_AE_TYPE_ACC_ERR);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
    g_assert_cmpint(memcmp(before, rig_ptr(f->hca, f->buf), LEN), ==, 0);
    /*
     * Only a write with immediate whose data cannot be stored had its
     * receive looked at, and not even that one used it.
     */
    check_refused(f, msn, r->status, 2);
}

/* Nothing of the kind happens when the same requests are right. */
static void test_accepted(Fixture *f, gconstpointer data)
{
    static const ErdmaXportOp ops[] = {
        ERDMA_XPORT_OP_WRITE, ERDMA_XPORT_OP_WRITE_IMM,
        ERDMA_XPORT_OP_READ_REQ, ERDMA_XPORT_OP_ATOMIC_CAS,
        ERDMA_XPORT_OP_ATOMIC_FAA,
    };
    unsigned i;

    rig_post_recv(f->qp, 0, 0, 0);
    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        ErdmaXportMsgHdr hdr = request(f, ops[i]);

        rig_peer_send(f->peer, &hdr, NULL);
        /* A zero-length range may have any key. */
        hdr.rkey = 0x12345678;
        hdr.raddr = 3;
        hdr.len = hdr.read_len = 0;
        if (ops[i] == ERDMA_XPORT_OP_WRITE ||
            ops[i] == ERDMA_XPORT_OP_READ_REQ) {
            rig_peer_send(f->peer, &hdr, NULL);
        }
    }
    rig_run(f->rig, RIG_S);
    g_assert_cmpuint(f->peer->n_done, ==, 7);
    g_assert_cmpuint(f->peer->n_terminated, ==, 0);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_RESP));
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_RESP));
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_ATOMIC_RESP));
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_ATOMIC_RESP));
    rig_expect(&f->qp->rcq, ERDMA_OP_RECV_IMM, 0, 0);
    rig_expect_none(&f->qp->rcq);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
}

typedef enum RqeFault {
    R_SHORT,
    R_KEY,
    R_RANGE,
    R_RIGHT,
    R_PD,
    R_WRAP,
    R_DMA,
    R_INDEX,
    R_QPN,
    R_UNREADABLE,
} RqeFault;

static const struct RqeRefusal {
    const char *name;
    RqeFault fault;
    uint8_t status;             /* of the receive */
    uint8_t peer_status;
} rqe_refusals[] = {
    { "short", R_SHORT, 4, 4 },
    { "key", R_KEY, 3, 1 },
    { "range", R_RANGE, 4, 1 },
    { "right", R_RIGHT, 5, 1 },
    { "pd", R_PD, 6, 1 },
    { "wrap", R_WRAP, 7, 1 },
    { "dma", R_DMA, 1, 1 },
    { "index", R_INDEX, 2, 1 },
    { "qpn", R_QPN, 2, 1 },
    { "unreadable", R_UNREADABLE, 1, 1 },
};

static void post_bad_recv(Fixture *f, RqeFault fault)
{
    uint8_t *raw = rig_ptr(f->hca, f->qp->rq + 32 * f->qp->rq_pi);
    uint64_t addr = f->buf;
    uint32_t len = LEN, key = f->all;

    switch (fault) {
    case R_SHORT:
        len = 15;
        break;
    case R_KEY:
        key ^= 1;
        break;
    case R_RANGE:
        addr += LEN - 8;
        break;
    case R_RIGHT:
        key = f->none;
        break;
    case R_PD:
        key = f->other_pd;
        break;
    case R_WRAP:
        addr = UINT64_MAX - 3;
        break;
    case R_DMA:
        f->hca->hole = f->buf;
        f->hca->hole_len = 1;
        break;
    default:
        break;
    }
    rig_post_recv(f->qp, addr, len, key);
    if (fault == R_INDEX) {
        stw_le_p(raw, f->qp->rq_pi + 1);
    } else if (fault == R_QPN) {
        stl_le_p(raw + 4, 6);
    } else if (fault == R_UNREADABLE) {
        f->hca->hole = f->qp->rq + 32;
        f->hca->hole_len = 32;
    }
}

static void test_rqe_refusal(Fixture *f, gconstpointer data)
{
    const struct RqeRefusal *r = data;
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_SEND, .len = 16 };
    uint32_t msn;

    rig_post_recv(f->qp, f->buf, LEN, f->all);
    post_bad_recv(f, r->fault);
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    /* The first one is empty, so that a hole in the buffer does not hurt. */
    hdr.len = 0;
    rig_peer_send(f->peer, &hdr, NULL);
    hdr.len = 16;
    msn = rig_peer_send(f->peer, &hdr, NULL);
    rig_run(f->rig, RIG_S);
    f->hca->hole_len = 0;
    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, 0, 0);
    rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, r->status, 1);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
    check_refused(f, msn, r->peer_status, 1);
}

/* The key to all memory is good for receives of kernel queues only. */
static void test_dma_key(void)
{
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_SEND, .len = 16 };
    unsigned is_user;

    for (is_user = 0; is_user < 2; is_user++) {
        Fixture f;

        setup_qp(&f, &(RigQpOpts) { .is_user = is_user },
                 ERDMA_MR_ACC_LR);
        rig_post_recv(f.qp, f.buf, LEN, 0xffffff00);
        rig_peer_send(f.peer, &hdr, NULL);
        rig_run(f.rig, RIG_S);
        rig_expect(&f.qp->rcq, ERDMA_OP_RECEIVE, is_user ? 3 : 0, 0);
        teardown(&f, NULL);
    }
}

/* A send waits for a receive; nothing of it is visible before. */
static void test_rnr(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_SEND, .len = 16 };
    uint8_t payload[16];
    unsigned i;

    memset(payload, 9, sizeof(payload));
    for (i = 0; i < 3; i++) {
        rig_peer_send(f->peer, &hdr, payload);
    }
    rig_run(f->rig, 50 * RIG_MS);
    g_assert_cmpuint(f->peer->n_done, ==, 0);
    for (i = 0; i < 3; i++) {
        rig_expect_none(&f->qp->rcq);
        rig_post_recv(f->qp, f->buf, LEN, f->all);
        rig_run(f->rig, 5 * RIG_S);
        rig_expect(&f->qp->rcq, ERDMA_OP_RECEIVE, 0, i);
        g_assert_cmpuint(f->peer->n_done, ==, i + 1);
    }
    g_assert_cmpint(memcmp(payload, rig_ptr(f->hca, f->buf), 16), ==, 0);
}

/* Not even the data of a write with immediate appears before its receive. */
static void test_rnr_write_imm(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = request(f, ERDMA_XPORT_OP_WRITE_IMM);
    uint8_t payload[16];

    memset(payload, 9, sizeof(payload));
    rig_peer_send(f->peer, &hdr, payload);
    rig_run(f->rig, 50 * RIG_MS);
    g_assert_cmpuint(*(uint8_t *)rig_ptr(f->hca, f->buf), ==, 0);
    rig_post_recv(f->qp, 0, 0, 0);
    rig_run(f->rig, 5 * RIG_S);
    g_assert_cmpuint(*(uint8_t *)rig_ptr(f->hca, f->buf), ==, 9);
    rig_expect(&f->qp->rcq, ERDMA_OP_RECV_IMM, 0, 0);
}

/* A write that does not fit leaves no byte, however many segments it has. */
static void test_write_whole(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = request(f, ERDMA_XPORT_OP_WRITE);
    uint64_t big = rig_alloc(f->hca, 10000);
    uint32_t msn;

    hdr.rkey = rig_mr(f->hca, big, 9999, ERDMA_MR_ACC_RW);
    hdr.raddr = big;
    hdr.len = 10000;
    f->hca->watch = big;
    f->hca->watch_len = 10000;
    msn = rig_peer_send(f->peer, &hdr, NULL);
    rig_run(f->rig, RIG_S);
    g_assert_cmpuint(f->hca->watch_end, ==, 0);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_ACC_ERR);
    check_refused(f, msn, 4, 0);
}

/* A region that goes away in the middle of a message ends it there. */
static void test_dereg_mid_write(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = request(f, ERDMA_XPORT_OP_WRITE);
    uint64_t big = rig_alloc(f->hca, 4 << 20);
    uint32_t msn;

    hdr.rkey = rig_mr(f->hca, big, 4 << 20, ERDMA_MR_ACC_RW);
    hdr.raddr = big;
    hdr.len = 4 << 20;
    f->hca->watch = big;
    f->hca->watch_len = 4 << 20;
    msn = rig_peer_send(f->peer, &hdr, NULL);
    while (!f->hca->watch_end) {
        rig_run(f->rig, 20 * RIG_US);
    }
    g_assert_cmpuint(f->peer->n_done, ==, 0);
    rig_dereg(f->hca, hdr.rkey);
    f->hca->watch_end = 0;
    rig_run(f->rig, 5 * RIG_S);
    g_assert_cmpuint(f->hca->watch_end, ==, 0);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_ACC_ERR);
    check_refused(f, msn, 3, 0);
}

/* The same while the bytes of a read are on their way. */
static void test_dereg_mid_read(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = request(f, ERDMA_XPORT_OP_READ_REQ);
    uint64_t big = rig_alloc(f->hca, 4 << 20);
    uint32_t msn;

    hdr.rkey = rig_mr(f->hca, big, 4 << 20, ERDMA_MR_ACC_RR);
    hdr.raddr = big;
    hdr.read_len = 4 << 20;
    msn = rig_peer_send(f->peer, &hdr, NULL);
    while (!f->peer->partial->len) {
        rig_run(f->rig, 20 * RIG_US);
    }
    rig_dereg(f->hca, hdr.rkey);
    rig_run(f->rig, 5 * RIG_S);
    g_assert_true(g_queue_is_empty(&f->peer->rx));
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_ACC_ERR);
    check_refused(f, msn, 3, 0);
}

/* Memory that turns out to be unreachable when the answer is made */
static void test_dma_read(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = request(f, ERDMA_XPORT_OP_READ_REQ);
    uint32_t msn;

    spoil(f, F_DMA, &hdr);
    msn = rig_peer_send(f->peer, &hdr, NULL);
    rig_run(f->rig, RIG_S);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_QP_FATAL);
    check_refused(f, msn, 1, 0);
}

/* Answers to what came before the bad request still arrive, before the end. */
static void test_answers_first(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr good = request(f, ERDMA_XPORT_OP_READ_REQ);
    ErdmaXportMsgHdr bad = request(f, ERDMA_XPORT_OP_WRITE);
    uint64_t big = rig_alloc(f->hca, 1 << 20);
    RigMsg *msg;
    uint32_t msn;

    good.rkey = rig_mr(f->hca, big, 1 << 20, ERDMA_MR_ACC_RR);
    good.raddr = big;
    good.read_len = 1 << 20;
    bad.rkey = 0xbad;
    rig_peer_send(f->peer, &good, NULL);
    msn = rig_peer_send(f->peer, &bad, NULL);
    rig_run(f->rig, 5 * RIG_S);
    msg = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_RESP);
    g_assert_cmpuint(msg->data->len, ==, 1 << 20);
    rig_msg_free(msg);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_ACC_ERR);
    check_refused(f, msn, 3, 0);
}

/* The guest gives up on a QP whose end waits for such an answer. */
static void test_error_while_terminating(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr good = request(f, ERDMA_XPORT_OP_READ_REQ);
    ErdmaXportMsgHdr bad = request(f, ERDMA_XPORT_OP_WRITE);
    uint32_t msn;

    bad.rkey = 0xbad;
    f->peer->answer = ERDMA_XPORT_RX_NOT_READY;
    rig_peer_send(f->peer, &good, NULL);
    msn = rig_peer_send(f->peer, &bad, NULL);
    rig_run(f->rig, 10 * RIG_MS);
    g_assert_cmpuint(f->peer->n_terminated, ==, 0);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_ACC_ERR);
    g_assert_cmpuint(rig_modify(f->qp, ERDMA_QPS_ERROR, NULL), ==, 0);
    rig_run(f->rig, 5 * RIG_S);
    check_refused(f, msn, 3, 0);
}

static void test_send_inv(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_SEND_INV };
    uint32_t msn;

    /* A region that is not one of the fast-register kind */
    hdr.imm = f->all;
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    rig_post_recv(f->qp, f->buf, LEN, f->all);
    msn = rig_peer_send(f->peer, &hdr, NULL);
    rig_run(f->rig, RIG_S);
    g_assert_cmpuint(rig_next(&f->qp->rcq).status, !=, 0);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, ERDMA_AE_TYPE_ACC_ERR);
    check_refused(f, msn, f->peer->term_status, 1);
    g_assert_cmpuint(f->peer->term_status, >=, 3);
    g_assert_cmpuint(f->peer->term_status, <=, 7);
}

static void test_solicited(Fixture *f, gconstpointer data)
{
    static const ErdmaXportOp ops[] = {
        ERDMA_XPORT_OP_SEND, ERDMA_XPORT_OP_SEND_IMM,
        ERDMA_XPORT_OP_WRITE_IMM,
    };
    uint32_t cqn = f->qp->rcq.cqn;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ops) * 2; i++) {
        ErdmaXportMsgHdr hdr = { .op = ops[i / 2], .is_solicited = i & 1 };

        rig_post_recv(f->qp, 0, 0, 0);
        erdma_cq_get(f->hca->e, cqn)->has_solicited = false;
        rig_peer_send(f->peer, &hdr, NULL);
        rig_run(f->rig, RIG_S);
        g_assert_cmpuint(rig_next(&f->qp->rcq).status, ==, 0);
        g_assert_cmpint(erdma_cq_get(f->hca->e, cqn)->has_solicited, ==,
                        i & 1);
    }
}

/* More requests than a peer may have outstanding are no reason to fail. */
static void test_many_reads(Fixture *f, gconstpointer data)
{
    ErdmaXportMsgHdr hdr = request(f, ERDMA_XPORT_OP_READ_REQ);
    unsigned i;

    for (i = 0; i < 1000; i++) {
        rig_peer_send(f->peer, &hdr, NULL);
    }
    while (!rig_run(f->rig, RIG_MS)) {
        g_assert_cmpuint(erdma_qp_get(f->hca->e, 5)->n_responses, <=, 256);
    }
    for (i = 0; i < 1000; i++) {
        rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_RESP));
    }
}

/* Whatever the headers say: no crash, no byte outside the region. */
static void test_hostile(void)
{
    GRand *rand = g_rand_new_with_seed(42);
    unsigned round, i;

    for (round = 0; round < 300; round++) {
        Fixture f;

        setup(&f, NULL);
        f.hca->watch = f.buf - 4096;
        f.hca->watch_len = 4096;
        for (i = 0; i < 40; i++) {
            ErdmaXportMsgHdr hdr = {
                .op = g_rand_int_range(rand, 1, ERDMA_XPORT_OP_COUNT),
                .is_solicited = g_rand_boolean(rand),
                .len = g_rand_int_range(rand, 0, 600),
                .imm = g_rand_int(rand),
                .rkey = g_rand_boolean(rand) ? f.all : g_rand_int(rand),
                .raddr = f.buf + g_rand_int_range(rand, -20, LEN),
                .read_len = g_rand_int_range(rand, 0, 600),
                .req_msn = g_rand_int_range(rand, 0, 3),
                .swap_add = g_rand_int(rand),
            };

            if (hdr.op >= ERDMA_XPORT_OP_READ_REQ &&
                hdr.op != ERDMA_XPORT_OP_READ_RESP) {
                hdr.len = 0;
            }
            rig_post_recv(f.qp, f.buf, LEN, f.all);
            rig_peer_send(f.peer, &hdr, NULL);
            rig_run(f.rig, 100 * RIG_US);
        }
        rig_run(f.rig, 10 * RIG_S);
        g_assert_cmpuint(f.hca->watch_end, ==, 0);
        teardown(&f, NULL);
    }
    g_rand_free(rand);
}

static void add_refusal(unsigned i, unsigned k)
{
    g_autofree char *path = g_strdup_printf("/responder/refuse/%s/%s",
                                            requests[i].name, faults[k].name);
    bool is_read = requests[i].op == ERDMA_XPORT_OP_READ_REQ;
    Refusal *r;

    if ((faults[k].not_atomic && requests[i].is_atomic) ||
        (faults[k].only_atomic && !requests[i].is_atomic) ||
        (faults[k].not_read && is_read)) {
        return;
    }
    r = g_new0(Refusal, 1);
    r->op = requests[i].op;
    r->fault = faults[k].fault;
    r->status = faults[k].status;
    g_test_add_vtable(path, sizeof(Fixture), r,
                      (GTestFixtureFunc)setup, (GTestFixtureFunc)test_refusal,
                      (GTestFixtureFunc)teardown_refusal);
}

#define ADD(name, func) \
    g_test_add("/responder/" name, Fixture, NULL, setup, func, teardown)

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < ARRAY_SIZE(requests) * ARRAY_SIZE(faults); i++) {
        add_refusal(i / ARRAY_SIZE(faults), i % ARRAY_SIZE(faults));
    }
    for (i = 0; i < ARRAY_SIZE(rqe_refusals); i++) {
        g_autofree char *path = g_strdup_printf("/responder/rqe/%s",
                                                rqe_refusals[i].name);

        g_test_add(path, Fixture, &rqe_refusals[i], setup, test_rqe_refusal,
                   teardown);
    }
    ADD("accept", test_accepted);
    ADD("rnr/send", test_rnr);
    ADD("rnr/write-imm", test_rnr_write_imm);
    ADD("write-whole", test_write_whole);
    ADD("dereg/write", test_dereg_mid_write);
    ADD("dereg/read", test_dereg_mid_read);
    ADD("dma/read", test_dma_read);
    ADD("terminate/answers-first", test_answers_first);
    ADD("terminate/error", test_error_while_terminating);
    ADD("send-inv", test_send_inv);
    ADD("solicited", test_solicited);
    ADD("many-reads", test_many_reads);
    g_test_add_func("/responder/rqe/dma-key", test_dma_key);
    g_test_add_func("/responder/hostile", test_hostile);
    return g_test_run();
}
