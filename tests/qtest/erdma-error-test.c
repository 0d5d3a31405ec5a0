/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: queue pairs that fail, are closed or
 * go away; what each end sees, and that it sees it once.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define PDN     4
#define LEN     (256 * 1024)

typedef struct Fixture {
    QErdma *d[2];
    bool is_loopback;
    QErdmaPair p;
    QErdmaMr mr[2];
} Fixture;

static void setup(Fixture *f, bool is_loopback)
{
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->is_loopback = is_loopback;
    if (is_loopback) {
        f->d[0] = f->d[1] = qerdma_boot_one(NULL);
        qerdma_start(f->d[0], NULL);
    } else {
        qerdma_boot_two(f->d, NULL, NULL);
        qerdma_meet(f->d);
        qerdma_start(f->d[0], NULL);
        qerdma_start(f->d[1], NULL);
    }
    for (i = 0; i < 2; i++) {
        qerdma_reg_simple(f->d[i], &f->mr[i], PDN, LEN, QERDMA_ACC_ALL);
    }
}

static void pair(Fixture *f, bool is_user)
{
    qerdma_pair_init(&f->p, f->d[0], f->d[1], PDN, is_user);
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d[0], f->is_loopback ? NULL : f->d[1]);
}

static QErdmaSend write_wr(Fixture *f, uint32_t len)
{
    return (QErdmaSend) {
        .opcode = ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { f->mr[0].addr, len, f->mr[0].key },
        .raddr = f->mr[1].addr, .rkey = f->mr[1].key,
    };
}

static QErdmaSend send_wr(Fixture *f, uint32_t len)
{
    return (QErdmaSend) {
        .opcode = ERDMA_OP_SEND, .n_sges = len ? 1 : 0,
        .sges[0] = { f->mr[0].addr, len, f->mr[0].key },
    };
}

static void expect_send_flush(QErdmaQp *qp, uint16_t index, uint8_t opcode)
{
    qerdma_expect_send(qp, index, opcode, ERDMA_WC_FLUSH_ERR);
}

static void expect_recv_flush(QErdmaQp *qp, uint16_t position)
{
    qerdma_expect_recv(qp, position, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0,
                       NULL);
}

/* ---- flushing ---- */

/* Everything posted before the QP was connected, signalled or not */
static void test_flush_created(void)
{
    static const uint8_t states[] = {
        ERDMA_QPS_CLOSING, ERDMA_QPS_TERMINATE, ERDMA_QPS_ERROR,
    };
    Fixture f;
    unsigned s, i;

    setup(&f, true);
    for (s = 0; s < 2 * ARRAY_SIZE(states); s++) {
        bool is_user = s & 1;
        QErdmaCq scq = { 0 };
        QErdmaCq rcq = { 0 };
        QErdmaCtx ctx;
        QErdmaQp qp = { .scq = &scq, .rcq = &rcq };
        QErdmaSend wr = write_wr(&f, 8);
        uint16_t index[6];

        if (is_user) {
            g_assert_cmpint(qerdma_alloc_db(f.d[0], &ctx), ==, 0);
            scq.ctx = rcq.ctx = qp.ctx = &ctx;
        }
        g_assert_cmpint(qerdma_create_cq(f.d[0], &scq), ==, 0);
        g_assert_cmpint(qerdma_create_cq(f.d[0], &rcq), ==, 0);
        g_assert_cmpint(qerdma_create_qp(f.d[0], &qp), ==, 0);
        for (i = 0; i < 6; i++) {
            wr.is_silent = i & 1;
            wr.n_sges = 1 + i % 4;
            index[i] = qerdma_post_send(&qp, &wr);
            g_assert_cmpint(qerdma_post_recv(&qp, 0, 0, 0), ==, i);
        }
        qerdma_expect_no_cqe(&scq);
        qerdma_expect_no_cqe(&rcq);
        g_assert_cmpint(qerdma_modify_qp(&qp, states[s / 2]), ==, 0);
        for (i = 0; i < 6; i++) {
            expect_send_flush(&qp, index[i], ERDMA_OP_WRITE);
            expect_recv_flush(&qp, i);
        }
        /* and what comes later: how drivers drain */
        wr = (QErdmaSend) { .opcode = ERDMA_OP_WRITE, .is_silent = true };
        expect_send_flush(&qp, qerdma_post_send(&qp, &wr), ERDMA_OP_WRITE);
        expect_recv_flush(&qp, qerdma_post_recv(&qp, 0, 0, 0));
        /* once */
        g_assert_cmpint(qerdma_modify_qp(&qp, ERDMA_QPS_ERROR), ==, 0);
        g_assert_cmpint(qerdma_reflush(&qp, qp.sq_pi, qp.rq_pi), ==, 0);
        qerdma_expect_no_cqe(&scq);
        qerdma_expect_no_cqe(&rcq);
        g_assert_cmpint(qerdma_destroy_qp(&qp), ==, 0);
    }
    qerdma_expect_no_aeqe(f.d[0]);
    teardown(&f);
}

/* REFLUSH names indices that may be older or newer than the doorbells. */
static void test_reflush(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    uint16_t index[4];
    unsigned i;

    setup(&f, true);
    pair(&f, false);
    wr = write_wr(&f, 8);
    /* a live QP is left alone, whatever the driver thinks */
    index[0] = qerdma_post_send(qp, &wr);
    g_assert_cmpint(qerdma_reflush(qp, qp->sq_pi, 7), ==, 0);
    qerdma_expect_send(qp, index[0], ERDMA_OP_WRITE, 0);
    qerdma_expect_no_cqe(&f.p.cq[0]);

    g_assert_cmpint(qerdma_modify_qp(qp, ERDMA_QPS_CLOSING), ==, 0);
    for (i = 0; i < 4; i++) {
        index[i] = qerdma_queue_send(qp, &wr);
    }
    /* without a doorbell */
    g_assert_cmpint(qerdma_reflush(qp, index[2], 0), ==, 0);
    expect_send_flush(qp, index[0], ERDMA_OP_WRITE);
    expect_send_flush(qp, index[1], ERDMA_OP_WRITE);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    /* backwards: nothing */
    g_assert_cmpint(qerdma_reflush(qp, index[1], 0), ==, 0);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    qerdma_sq_db(qp);
    expect_send_flush(qp, index[2], ERDMA_OP_WRITE);
    expect_send_flush(qp, index[3], ERDMA_OP_WRITE);
    g_assert_cmpint(qerdma_reflush(qp, qp->sq_pi, 0), ==, 0);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    teardown(&f);
}

/* ---- malformed entries ---- */

/* A field of the header that gets another value */
static const struct {
    const char *what;
    unsigned shift;
    unsigned len;
    uint64_t val;
    bool is_inline;
} bad_sqes[] = {
    { "opcode 4", 27, 5, 4 },
    { "opcode 7", 27, 5, 7 },
    { "opcode 12", 27, 5, 12 },
    { "opcode 19", 27, 5, 19 },
    { "opcode 31", 27, 5, 31 },
    { "PI 0", 0, 16, 0 },
    { "PI 0xffff", 0, 16, 0xffff },
    { "QPN", 32, 20, 0xfffff },
    { "8 WQEBBs", 52, 3, 7 },
    { "1 WQEBB", 52, 3, 0 },
    { "7 SGEs", 56, 8, 7 },
    { "255 SGEs", 56, 8, 255 },
    { "97 bytes inline", 56, 8, 97, true },
    { "255 bytes inline", 56, 8, 255, true },
};

/* Status 8 after what came before it, even unsignalled; the rest flushed */
static void test_bad_sqe(void)
{
    Fixture f;
    unsigned i;

    setup(&f, true);
    for (i = 0; i < ARRAY_SIZE(bad_sqes); i++) {
        QErdmaQp *qp = &f.p.qp[0];
        QErdmaSend wr = write_wr(&f, 8);
        uint8_t raw[ERDMA_CMD_MAX_SIZE];
        uint16_t before, index;
        uint64_t hdr;
        QErdmaWc wc;
        unsigned n;

        g_test_message("%s", bad_sqes[i].what);
        pair(&f, true);
        before = qerdma_post_send(qp, &wr);
        wr.is_silent = true;
        index = qp->sq_pi;
        n = qerdma_build_sqe(qp, &wr, raw);
        hdr = ldq_le_p(raw);
        hdr = deposit64(hdr, bad_sqes[i].shift, bad_sqes[i].len,
                        bad_sqes[i].val);
        hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, INLINE, bad_sqes[i].is_inline);
        stq_le_p(raw, hdr);
        qerdma_put_sqe(qp, raw, n);
        qerdma_queue_send(qp, &wr);
        qerdma_sq_db(qp);
        qerdma_expect_send(qp, before, ERDMA_OP_WRITE, 0);
        qerdma_wait_cqe(qp->scq, &wc);
        g_assert_cmpint(wc.status, ==, ERDMA_WC_SEND_WQE_FORMAT_ERR);
        g_assert_cmphex(wc.index & 0xffff, ==, index);
        /* how far a broken entry reaches is not known; the rest is flushed */
        qerdma_settle(f.d[0]);
        while (qerdma_poll_cq(qp->scq, &wc)) {
            g_assert_cmpint(wc.status, ==, ERDMA_WC_FLUSH_ERR);
        }
        expect_send_flush(qp, qerdma_post_send(qp, &wr), ERDMA_OP_WRITE);
        qerdma_destroy_qp(qp);
        qerdma_destroy_qp(qp + 1);
    }
    teardown(&f);
}

/* Seven SGEs just fit into a send; six are the limit all the same. */
static void test_many_sges(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr = { .opcode = ERDMA_OP_SEND, .n_sges = 6 };
    uint8_t raw[ERDMA_CMD_MAX_SIZE];
    uint16_t index;

    setup(&f, true);
    pair(&f, true);
    qerdma_post_recv(qp + 1, 0, 0, 0);
    index = qp->sq_pi;
    g_assert_cmpuint(qerdma_build_sqe(qp, &wr, raw), ==, 4);
    memset(raw + ERDMA_SQE_SEND_SGL + 6 * ERDMA_SGE_SIZE, 0, ERDMA_SGE_SIZE);
    stq_le_p(raw, FIELD_DP64(ldq_le_p(raw), ERDMA_SQE_HDR, SGL_LEN, 7));
    qerdma_put_sqe(qp, raw, 4);
    qerdma_sq_db(qp);
    qerdma_expect_send(qp, index, ERDMA_OP_SEND,
                       ERDMA_WC_SEND_WQE_FORMAT_ERR);
    teardown(&f);
}

static void test_bad_atomic(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    uint32_t len;

    setup(&f, true);
    for (len = 4; len <= 16; len += 12) {
        pair(&f, true);
        wr = write_wr(&f, len);
        wr.opcode = ERDMA_OP_ATOMIC_FAA;
        qerdma_expect_send(qp, qerdma_post_send(qp, &wr), wr.opcode,
                           ERDMA_WC_SEND_WQE_FORMAT_ERR);
    }
    /* the peer cannot do an unaligned one */
    pair(&f, true);
    wr.sges[0].len = 8;
    wr.raddr += 4;
    qerdma_expect_send(qp, qerdma_post_send(qp, &wr), wr.opcode,
                       ERDMA_WC_GENERAL_ERR);
    teardown(&f);
}

/* A user program must not hand bus addresses to the device. */
static void test_user_reg_mr(void)
{
    Fixture f;
    QErdmaMr frmr = { .pdn = PDN };
    QErdmaRegMr reg = {
        .type = ERDMA_MR_TYPE_FRMR, .level = 1, .n_pages = 1,
        .pages = &(uint64_t) { 0 }, .access = QERDMA_ACC_ALL,
    };
    QErdmaSend wr = {
        .opcode = ERDMA_OP_REG_MR, .reg_len = 4096, .reg_n_pages = 1,
        .reg_access = QERDMA_ACC_ALL,
    };

    setup(&f, true);
    pair(&f, true);
    g_assert_cmpint(qerdma_reg_mr(f.d[0], &frmr, &reg), ==, 0);
    wr.reg_key = frmr.key;
    qerdma_expect_send(&f.p.qp[0], qerdma_post_send(&f.p.qp[0], &wr),
                       wr.opcode, ERDMA_WC_SEND_WQE_FORMAT_ERR);
    teardown(&f);
}

static void test_bad_rqe(void)
{
    Fixture f;
    unsigned i;

    setup(&f, true);
    for (i = 0; i < 2; i++) {
        QErdmaQp *qp = &f.p.qp[0];
        QErdmaQp *peer = &f.p.qp[1];
        QErdmaSend wr = send_wr(&f, 8);
        uint16_t position, next;

        pair(&f, true);
        position = qerdma_post_recv(peer, f.mr[1].addr, 8, f.mr[1].key);
        next = qerdma_post_recv(peer, f.mr[1].addr, 8, f.mr[1].key);
        if (i) {
            qtest_writew(f.d[1]->qts, qerdma_buf_addr(&peer->rq, 0), 77);
        } else {
            qtest_writel(f.d[1]->qts, qerdma_buf_addr(&peer->rq, 4), 77);
        }
        qerdma_expect_send(qp, qerdma_post_send(qp, &wr), ERDMA_OP_SEND,
                           ERDMA_WC_GENERAL_ERR);
        qerdma_expect_recv(peer, position, ERDMA_OP_RECEIVE,
                           ERDMA_WC_RECV_WQE_FORMAT_ERR, 0, NULL);
        expect_recv_flush(peer, next);
    }
    teardown(&f);
}

/* ---- the other end ---- */

/* What was accepted before the refused request is answered first. */
static void test_refused_in_order(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr[4];
    uint16_t index[4], position;
    unsigned i;

    setup(&f, opaque);
    pair(&f, true);
    wr[0] = wr[1] = wr[2] = wr[3] = write_wr(&f, 20000);
    wr[1].opcode = ERDMA_OP_READ;
    wr[2].rkey ^= 1;
    position = qerdma_post_recv(&f.p.qp[1], 0, 0, 0);
    for (i = 0; i < 4; i++) {
        index[i] = qerdma_queue_send(qp, &wr[i]);
    }
    qerdma_sq_db(qp);
    qerdma_expect_send(qp, index[0], wr[0].opcode, 0);
    qerdma_expect_send(qp, index[1], wr[1].opcode, 0);
    qerdma_expect_send(qp, index[2], wr[2].opcode,
                       ERDMA_WC_RECV_STAG_INVALID_ERR);
    expect_send_flush(qp, index[3], wr[3].opcode);
    expect_recv_flush(&f.p.qp[1], position);
    qerdma_expect_aeqe(f.d[1], ERDMA_AE_TYPE_ACC_ERR, f.p.qp[1].qpn);
    if (f.d[0] != f.d[1]) {
        qerdma_expect_no_aeqe(f.d[0]);
    }
    teardown(&f);
}

static void test_too_long(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaQp *peer = &f.p.qp[1];
    QErdmaSend wr;
    uint16_t position, next;

    setup(&f, opaque);
    pair(&f, true);
    wr = send_wr(&f, 5000);
    qtest_memset(f.d[1]->qts, f.mr[1].mem + 4999, 0xee, 2);
    position = qerdma_post_recv(peer, f.mr[1].addr, 4999, f.mr[1].key);
    next = qerdma_post_recv(peer, f.mr[1].addr, 5000, f.mr[1].key);
    qerdma_expect_send(qp, qerdma_post_send(qp, &wr), ERDMA_OP_SEND,
                       ERDMA_WC_RECV_ADDR_VIOLATION_ERR);
    qerdma_expect_recv(peer, position, ERDMA_OP_RECEIVE,
                       ERDMA_WC_RECV_ADDR_VIOLATION_ERR, 0, NULL);
    expect_recv_flush(peer, next);
    g_assert_cmphex(qtest_readb(f.d[1]->qts, f.mr[1].mem + 4999), ==, 0xee);
    teardown(&f);
}

/* A message without a receive waits for one. */
static void test_rnr(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    uint16_t index[3];
    unsigned i;

    setup(&f, opaque);
    pair(&f, true);
    wr = send_wr(&f, 3000);
    qerdma_fill(f.d[0], f.mr[0].mem, 3000, 1);
    for (i = 0; i < 3; i++) {
        index[i] = qerdma_post_send(qp, &wr);
    }
    qerdma_expect_no_cqe(&f.p.cq[0]);
    for (i = 0; i < 3; i++) {
        uint16_t position;

        position = qerdma_post_recv(&f.p.qp[1], f.mr[1].addr + i * 4000,
                                    3000, f.mr[1].key);
        qerdma_expect_send(qp, index[i], ERDMA_OP_SEND, 0);
        qerdma_expect_recv(&f.p.qp[1], position, ERDMA_OP_RECEIVE, 0, 3000,
                           NULL);
        qerdma_check(f.d[1], f.mr[1].mem + i * 4000, 3000, 1);
        qerdma_expect_no_cqe(&f.p.cq[0]);
    }
    teardown(&f);
}

typedef struct LongWait {
    QErdmaCq *cq;
    QErdmaWc *wc;
} LongWait;

static bool long_wait_cond(void *opaque)
{
    LongWait *w = opaque;

    return qerdma_poll_cq(w->cq, w->wc);
}

/* Up to minutes of virtual time */
static void expect_retry_exceeded(QErdmaQp *qp, uint16_t index)
{
    QErdmaWc wc;
    LongWait w = { qp->scq, &wc };

    g_assert_true(qerdma_wait(qp->dev, long_wait_cond, &w,
                              600ll * 1000 * 1000 * 1000));
    g_assert_cmpint(wc.status, ==, ERDMA_WC_RETRY_EXC_ERR);
    g_assert_cmphex(wc.index & 0xffff, ==, index);
}

static void test_rnr_timeout(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    uint16_t index, next;

    setup(&f, opaque);
    pair(&f, true);
    wr = send_wr(&f, 100);
    index = qerdma_post_send(qp, &wr);
    next = qerdma_post_send(qp, &wr);
    expect_retry_exceeded(qp, index);
    expect_send_flush(qp, next, ERDMA_OP_SEND);
    qerdma_expect_no_cqe(&f.p.cq[1]);
    teardown(&f);
}

/* A device that was reset, or a QP that was never closed, says nothing. */
static void test_peer_silent(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    uint16_t index, next;
    unsigned i;

    setup(&f, false);
    for (i = 0; i < 2; i++) {
        pair(&f, true);
        if (i) {
            qerdma_reset(f.d[1]);
        } else {
            g_assert_cmpint(qerdma_destroy_qp(&f.p.qp[1]), ==, 0);
        }
        wr = write_wr(&f, 100);
        index = qerdma_post_send(qp, &wr);
        next = qerdma_post_send(qp, &wr);
        expect_retry_exceeded(qp, index);
        expect_send_flush(qp, next, ERDMA_OP_WRITE);
    }
    teardown(&f);
}

/* An end that is closed in whatever way flushes the other one. */
static void test_peer_gone(const void *opaque)
{
    static const uint8_t how[] = {
        ERDMA_QPS_CLOSING, ERDMA_QPS_TERMINATE, ERDMA_QPS_ERROR,
    };
    Fixture f;
    unsigned i;

    setup(&f, opaque);
    for (i = 0; i < ARRAY_SIZE(how); i++) {
        QErdmaQp *qp = &f.p.qp[0];
        QErdmaSend wr = write_wr(&f, 100);
        uint16_t position, index;

        pair(&f, true);
        position = qerdma_post_recv(qp, 0, 0, 0);
        qtest_memset(f.d[1]->qts, f.mr[1].mem, 0xee, 100);
        qtest_memset(f.d[0]->qts, f.mr[0].mem, 0x11, 100);
        g_assert_cmpint(qerdma_modify_qp(qp + 1, how[i]), ==, 0);
        expect_recv_flush(qp, position);
        index = qerdma_post_send(qp, &wr);
        expect_send_flush(qp, index, ERDMA_OP_WRITE);
        g_assert_cmphex(qtest_readb(f.d[1]->qts, f.mr[1].mem), ==, 0xee);
    }
    qerdma_expect_no_aeqe(f.d[0]);
    qerdma_expect_no_aeqe(f.d[1]);
    teardown(&f);
}

/* The passive end may send before the active one is ready. */
static void test_early_data(const void *opaque)
{
    Fixture f;
    QErdmaQp *active = &f.p.qp[1];
    QErdmaQp *passive = &f.p.qp[0];
    QErdmaSend wr;
    QErdmaCmd cmd;
    uint16_t index, position;

    setup(&f, opaque);
    qerdma_pair_create(&f.p, f.d[0], f.d[1], PDN, true);
    position = qerdma_post_recv(active, f.mr[1].addr, 5000, f.mr[1].key);
    qerdma_rts_cmd(&cmd, passive, active);
    g_assert_cmpint(qerdma_cmd_exec(f.d[0], &cmd, NULL), ==, 0);
    wr = send_wr(&f, 5000);
    qerdma_fill(f.d[0], f.mr[0].mem, 5000, 3);
    index = qerdma_post_send(passive, &wr);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    qerdma_expect_no_cqe(&f.p.cq[1]);

    qerdma_rts_cmd(&cmd, active, passive);
    g_assert_cmpint(qerdma_cmd_exec(f.d[1], &cmd, NULL), ==, 0);
    qerdma_expect_recv(active, position, ERDMA_OP_RECEIVE, 0, 5000, NULL);
    qerdma_check(f.d[1], f.mr[1].mem, 5000, 3);
    qerdma_expect_send(passive, index, ERDMA_OP_SEND, 0);
    teardown(&f);
}

/* ---- going away in the middle ---- */

/* A closed QP reports everything once and then holds still. */
static void test_close_busy(const void *opaque)
{
    enum { N = 8 };
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    uint16_t index[N];
    bool is_flushed = false;
    unsigned i;

    setup(&f, opaque);
    pair(&f, true);
    wr = write_wr(&f, LEN);
    for (i = 0; i < N; i++) {
        index[i] = qerdma_queue_send(qp, &wr);
    }
    qerdma_sq_db(qp);
    g_assert_cmpint(qerdma_modify_qp(qp, ERDMA_QPS_ERROR), ==, 0);
    for (i = 0; i < N; i++) {
        QErdmaWc wc;

        qerdma_wait_cqe(qp->scq, &wc);
        g_assert_cmphex(wc.index & 0xffff, ==, index[i]);
        is_flushed |= wc.status == ERDMA_WC_FLUSH_ERR;
        g_assert_cmpint(wc.status, ==, is_flushed ? ERDMA_WC_FLUSH_ERR : 0);
    }
    qerdma_expect_no_cqe(qp->scq);
    teardown(&f);
}

/* Once the command completed, nothing of the QP's memory is used any more. */
static void test_destroy_busy(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr;
    unsigned i;

    setup(&f, opaque);
    pair(&f, true);
    /* the first one waits for a receive, and holds up the others */
    wr = send_wr(&f, 0);
    qerdma_queue_send(qp, &wr);
    wr = write_wr(&f, LEN);
    qtest_memset(f.d[0]->qts, f.mr[0].mem, 0x22, LEN);
    for (i = 0; i < 8; i++) {
        qerdma_queue_send(qp, &wr);
    }
    qerdma_sq_db(qp);
    qerdma_expect_no_cqe(qp->scq);
    g_assert_cmpint(qerdma_destroy_qp(qp), ==, 0);
    /* what is under way may arrive, but nothing is sent again or anew */
    qtest_memset(f.d[0]->qts, f.mr[0].mem, 0x33, LEN);
    qerdma_post_recv(qp + 1, 0, 0, 0);
    qerdma_sq_db(qp);
    qerdma_rq_db(qp, 0);
    for (i = 0; i < 4; i++) {
        qerdma_expect_no_cqe(qp->scq);
        qtest_clock_step(f.d[0]->qts, 100 * 1000 * 1000);
    }
    for (i = 0; i < LEN; i += 997) {
        g_assert_cmphex(qtest_readb(f.d[1]->qts, f.mr[1].mem + i), !=, 0x33);
    }
    teardown(&f);
}

/* The same for a reset of either device */
static void test_reset_busy(const void *opaque)
{
    Fixture f;
    unsigned side, i;

    for (side = 0; side < 2; side++) {
        QErdmaSend wr;

        setup(&f, opaque);
        pair(&f, true);
        wr = write_wr(&f, LEN);
        qtest_memset(f.d[0]->qts, f.mr[0].mem, 0x22, LEN);
        for (i = 0; i < 8; i++) {
            qerdma_queue_send(&f.p.qp[0], &wr);
        }
        qerdma_sq_db(&f.p.qp[0]);
        qtest_clock_step(f.d[0]->qts, 1000);
        qerdma_reset(f.d[side]);
        qtest_memset(f.d[side]->qts, f.mr[side].mem, 0xee, LEN);
        qerdma_irq(f.d[side], 0);
        qerdma_settle(f.d[side]);
        g_assert_false(qerdma_irq(f.d[side], 0));
        for (i = 0; i < LEN; i += 997) {
            g_assert_cmphex(qtest_readb(f.d[side]->qts, f.mr[side].mem + i),
                            ==, 0xee);
        }
        /* and back in service */
        qerdma_start(f.d[side], NULL);
        teardown(&f);
    }
}

static void add_both(const char *name, void (*fn)(const void *))
{
    g_autofree char *two = g_strdup_printf("/erdma/error/%s/two", name);
    g_autofree char *loop = g_strdup_printf("/erdma/error/%s/loopback", name);

    qtest_add_data_func(two, NULL, fn);
    qtest_add_data_func(loop, "loopback", fn);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/error/flush-created", test_flush_created);
    qtest_add_func("/erdma/error/reflush", test_reflush);
    qtest_add_func("/erdma/error/bad-sqe", test_bad_sqe);
    qtest_add_func("/erdma/error/many-sges", test_many_sges);
    qtest_add_func("/erdma/error/bad-atomic", test_bad_atomic);
    qtest_add_func("/erdma/error/user-reg-mr", test_user_reg_mr);
    qtest_add_func("/erdma/error/bad-rqe", test_bad_rqe);
    qtest_add_func("/erdma/error/peer-silent", test_peer_silent);
    add_both("refused-in-order", test_refused_in_order);
    add_both("too-long", test_too_long);
    add_both("rnr", test_rnr);
    add_both("rnr-timeout", test_rnr_timeout);
    add_both("peer-gone", test_peer_gone);
    add_both("early-data", test_early_data);
    add_both("close-busy", test_close_busy);
    add_both("destroy-busy", test_destroy_busy);
    add_both("reset-busy", test_reset_busy);
    return g_test_run();
}
