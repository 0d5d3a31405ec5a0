/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: completion queues, their memory, and
 * when they notify.
 *
 * Error completions come from a QP in the flushing state, others from a pair
 * of QPs on the one device.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "libqos/erdma.h"

typedef struct Source {
    QErdmaCq cq;
    QErdmaQp qp;
} Source;

static void source_init(QErdma *d, Source *s)
{
    s->qp.scq = s->qp.rcq = &s->cq;
    g_assert_cmpint(qerdma_create_cq(d, &s->cq), ==, 0);
    g_assert_cmpint(qerdma_create_qp(d, &s->qp), ==, 0);
    g_assert_cmpint(qerdma_modify_qp(&s->qp, ERDMA_QPS_ERROR), ==, 0);
}

static uint16_t source_complete(Source *s)
{
    return qerdma_post_recv(&s->qp, 0, 0, 0);
}

static void expect_flushed(Source *s, uint16_t position)
{
    qerdma_expect_recv(&s->qp, position, ERDMA_OP_RECEIVE,
                       ERDMA_WC_FLUSH_ERR, 0, NULL);
}

static void expect_event(QErdma *d, const QErdmaCq *cq)
{
    QErdmaEq *eq = &d->ceqs[cq->eqn];
    uint64_t entry;

    g_assert_true(qerdma_wait_irq(d, eq->vector));
    g_assert_true(qerdma_eq_poll(d, eq, &entry));
    g_assert_cmphex(FIELD_EX64(entry, ERDMA_CEQE, CQN), ==, cq->cqn);
    g_assert_false(qerdma_eq_poll(d, eq, &entry));
    qerdma_eq_db(d, eq);
}

static void expect_no_event(QErdma *d, const QErdmaCq *cq)
{
    QErdmaEq *eq = &d->ceqs[cq->eqn];
    uint64_t entry;

    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, eq->vector));
    g_assert_false(qerdma_eq_poll(d, eq, &entry));
}

/* ---- entries ---- */

/* Many laps through CQs of every layout; the poller checks each phase. */
static void test_wrap(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCtx ctx;
    Source s[] = {
        { .cq.log2 = 1 },
        { .cq.log2 = 4 },
        { .cq.log2 = 6, .cq.ctx = &ctx },
        { .cq.log2 = 9, .cq.ctx = &ctx },       /* 4 pages, falling */
    };
    unsigned i, j;

    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_alloc_db(d, &ctx), ==, 0);
    for (i = 0; i < ARRAY_SIZE(s); i++) {
        source_init(d, &s[i]);
        for (j = 0; j < (4u << s[i].cq.log2); j++) {
            expect_flushed(&s[i], source_complete(&s[i]));
        }
    }
    qerdma_quit(d, NULL);
}

/* A queue that starts inside of its first page; 6.1's one-page "table" */
static void test_layouts(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions old = { .flavor = QERDMA_LINUX_6_1 };
    QErdmaCtx ctx;
    QErdmaCtx ctx_6_1 = { .sdb = 0x5f, .rdb = 0x79, .cdb = 0x61 };
    Source off = { .cq.log2 = 7, .cq.ctx = &ctx };
    Source one = { .cq.log2 = 6, .cq.ctx = &ctx_6_1 };
    Source big = { .cq.log2 = 7, .cq.ctx = &ctx_6_1 };
    unsigned i;

    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_alloc_db(d, &ctx), ==, 0);
    qerdma_buf_init_user(d, &off.cq.buf, 128 * 32, 0xa40);
    off.cq.dbrec = qerdma_alloc(d, 16);
    source_init(d, &off);
    for (i = 0; i < 300; i++) {
        expect_flushed(&off, source_complete(&off));
    }

    qerdma_start(d, &old);
    source_init(d, &one);
    /* 128 entries fit in one page exactly */
    source_init(d, &big);
    for (i = 0; i < 300; i++) {
        expect_flushed(&one, source_complete(&one));
        expect_flushed(&big, source_complete(&big));
    }
    qerdma_quit(d, NULL);
}

/*
 * Polling applications never say how far they are.  So a device that takes
 * "too many" for an overrun breaks them: it must wrap, silently.
 */
static void test_overrun(void)
{
    enum { LOG2 = 3, N = 3 * 8 + 5 };
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { .cq.log2 = LOG2 };
    unsigned i;

    qerdma_start(d, NULL);
    source_init(d, &s);
    for (i = 0; i < N; i++) {
        source_complete(&s);
    }
    qerdma_expect_no_aeqe(d);
    /* the newest eight are there */
    s.cq.ci = N - 8;
    for (i = N - 8; i < N; i++) {
        expect_flushed(&s, i);
    }
    qerdma_expect_no_cqe(&s.cq);
    qerdma_quit(d, NULL);
}

/* The bytes after the last entry are not the queue's. */
static void test_bounds(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { .cq.log2 = 2 };
    uint64_t behind;
    unsigned i;

    qerdma_start(d, NULL);
    source_init(d, &s);
    behind = s.cq.buf.pages[0] + 4 * 32;
    qtest_memset(d->qts, behind, QERDMA_GARBAGE, 64);
    for (i = 0; i < 20; i++) {
        expect_flushed(&s, source_complete(&s));
    }
    for (i = 0; i < 64; i++) {
        g_assert_cmphex(qtest_readb(d->qts, behind + i), ==, QERDMA_GARBAGE);
    }
    qerdma_quit(d, NULL);
}

/* Memory that is not there: the owner of the CQ is told, once per failure. */
static void test_unreachable(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = {
        .cq.buf = { .pages = { 0xc0000000 }, .n_pages = 1, .page_shift = 25 },
    };

    qerdma_start(d, NULL);
    s.cq.dbrec = qerdma_alloc(d, 8);
    source_init(d, &s);
    source_complete(&s);
    qerdma_expect_aeqe(d, ERDMA_AE_TYPE_CQ_ERR, s.cq.cqn);
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

static void test_destroy(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { 0 };

    qerdma_start(d, NULL);
    source_init(d, &s);
    expect_flushed(&s, source_complete(&s));
    qerdma_arm_cq(&s.cq, false);
    g_assert_cmpint(qerdma_destroy_cq(&s.cq), ==, 0);
    source_complete(&s);
    qerdma_arm_cq(&s.cq, false);
    expect_no_event(d, &s.cq);
    qerdma_expect_no_cqe(&s.cq);
    qerdma_quit(d, NULL);
}

/* ---- notification ---- */

static void test_arm_any(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { 0 };

    qerdma_start(d, NULL);
    source_init(d, &s);
    /* never armed: silent */
    expect_flushed(&s, source_complete(&s));
    expect_no_event(d, &s.cq);
    /* everything was consumed: armed, silent */
    qerdma_arm_cq(&s.cq, false);
    expect_no_event(d, &s.cq);
    /* armed twice, one event */
    qerdma_arm_cq(&s.cq, false);
    source_complete(&s);
    expect_event(d, &s.cq);
    source_complete(&s);
    expect_no_event(d, &s.cq);
    qerdma_quit(d, NULL);
}

static void test_fire_on_arm(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { 0 };
    QErdmaWc wc;

    qerdma_start(d, NULL);
    source_init(d, &s);
    source_complete(&s);
    source_complete(&s);
    expect_no_event(d, &s.cq);
    /* two unconsumed */
    qerdma_arm_cq(&s.cq, false);
    expect_event(d, &s.cq);
    /* that was the arm's one event */
    source_complete(&s);
    expect_no_event(d, &s.cq);
    /* one of three consumed, the last one not announced */
    g_assert_true(qerdma_poll_cq(&s.cq, &wc));
    qerdma_arm_cq(&s.cq, false);
    expect_event(d, &s.cq);
    /* armed on the event, to be polled afterwards: nothing new */
    qerdma_arm_cq(&s.cq, false);
    expect_no_event(d, &s.cq);
    source_complete(&s);
    expect_event(d, &s.cq);
    qerdma_quit(d, NULL);
}

/* A CQ's CI has 24 bits, unlike an EQ's. */
static void test_ci_width(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { 0 };

    qerdma_start(d, NULL);
    source_init(d, &s);
    source_complete(&s);
    s.cq.ci = 0x10001;
    qerdma_arm_cq(&s.cq, false);
    expect_event(d, &s.cq);
    source_complete(&s);
    s.cq.ci = 0x800002;
    qerdma_arm_cq(&s.cq, false);
    expect_event(d, &s.cq);
    source_complete(&s);
    s.cq.ci = 3;
    qerdma_arm_cq(&s.cq, false);
    expect_no_event(d, &s.cq);
    source_complete(&s);
    expect_event(d, &s.cq);
    qerdma_quit(d, NULL);
}

/* Whatever the sequence number and the arm count are, the first arm works. */
static void test_sequence(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    unsigned sn;

    qerdma_start(d, NULL);
    for (sn = 0; sn < 4; sn++) {
        Source s = { 0 };

        source_init(d, &s);
        s.cq.sn = sn;
        s.cq.arm_count = 0xff - sn;
        qerdma_arm_cq(&s.cq, false);
        source_complete(&s);
        expect_event(d, &s.cq);
    }
    qerdma_quit(d, NULL);
}

/* ---- solicited only ---- */

typedef struct Loop {
    QErdma *d;
    QErdmaPair p;
} Loop;

static void loop_init(Loop *l)
{
    l->d = qerdma_boot_one(NULL);
    qerdma_start(l->d, NULL);
    qerdma_pair_init(&l->p, l->d, l->d, 1, false);
}

/* An empty message to QP 1, whose receive is taken or left in the CQ */
static void loop_send(Loop *l, bool is_solicited, bool is_taken)
{
    QErdmaSend wr = { .opcode = ERDMA_OP_SEND, .is_solicited = is_solicited };
    uint16_t position = qerdma_post_recv(&l->p.qp[1], 0, 0, 0);
    uint16_t index = qerdma_post_send(&l->p.qp[0], &wr);

    qerdma_expect_send(&l->p.qp[0], index, ERDMA_OP_SEND, ERDMA_WC_SUCCESS);
    if (is_taken) {
        qerdma_expect_recv(&l->p.qp[1], position, ERDMA_OP_RECEIVE,
                           ERDMA_WC_SUCCESS, 0, NULL);
    }
}

static void test_solicited(void)
{
    Loop l;
    QErdmaCq *cq = &l.p.cq[1];

    loop_init(&l);
    qerdma_arm_cq(cq, true);
    loop_send(&l, false, true);
    expect_no_event(l.d, cq);
    loop_send(&l, true, true);
    expect_event(l.d, cq);
    loop_send(&l, true, true);
    expect_no_event(l.d, cq);

    /* the sender's own completion is not solicited by the flag */
    qerdma_arm_cq(&l.p.cq[0], true);
    loop_send(&l, true, true);
    expect_no_event(l.d, &l.p.cq[0]);
    qerdma_quit(l.d, NULL);
}

/* Errors count as solicited. */
static void test_solicited_error(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s = { 0 };

    qerdma_start(d, NULL);
    source_init(d, &s);
    qerdma_arm_cq(&s.cq, true);
    source_complete(&s);
    expect_event(d, &s.cq);
    qerdma_quit(d, NULL);
}

static void test_solicited_fire_on_arm(void)
{
    Loop l;
    QErdmaCq *cq = &l.p.cq[1];
    QErdmaWc wc;

    loop_init(&l);
    /* an ordinary one beyond CI: no reason to fire */
    loop_send(&l, false, false);
    qerdma_arm_cq(cq, true);
    expect_no_event(l.d, cq);
    loop_send(&l, true, false);
    expect_event(l.d, cq);
    /* another solicited one beyond CI, which nobody was told of */
    loop_send(&l, true, false);
    g_assert_true(qerdma_poll_cq(cq, &wc));
    qerdma_arm_cq(cq, true);
    expect_event(l.d, cq);
    /* all are consumed but an ordinary one that follows */
    loop_send(&l, false, false);
    g_assert_true(qerdma_poll_cq(cq, &wc));
    g_assert_true(qerdma_poll_cq(cq, &wc));
    qerdma_arm_cq(cq, true);
    expect_no_event(l.d, cq);
    qerdma_quit(l.d, NULL);
}

static void test_solicited_and_any(void)
{
    Loop l;
    QErdmaCq *cq = &l.p.cq[1];

    loop_init(&l);
    /* a later solicited arm does not weaken "any" ... */
    qerdma_arm_cq(cq, false);
    qerdma_settle(l.d);
    qerdma_arm_cq(cq, true);
    loop_send(&l, false, true);
    expect_event(l.d, cq);
    /* ... nor does one that the device sees together with it */
    qtest_qmp_assert_success(l.d->qts, "{ 'execute': 'stop' }");
    qerdma_arm_cq(cq, false);
    qerdma_arm_cq(cq, true);
    qtest_qmp_assert_success(l.d->qts, "{ 'execute': 'cont' }");
    loop_send(&l, false, true);
    expect_event(l.d, cq);
    /* and "any" strengthens */
    qerdma_arm_cq(cq, true);
    qerdma_settle(l.d);
    qerdma_arm_cq(cq, false);
    loop_send(&l, false, true);
    expect_event(l.d, cq);
    qerdma_quit(l.d, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/cq/wrap", test_wrap);
    qtest_add_func("/erdma/cq/layouts", test_layouts);
    qtest_add_func("/erdma/cq/overrun", test_overrun);
    qtest_add_func("/erdma/cq/bounds", test_bounds);
    qtest_add_func("/erdma/cq/unreachable", test_unreachable);
    qtest_add_func("/erdma/cq/destroy", test_destroy);
    qtest_add_func("/erdma/cq/arm-any", test_arm_any);
    qtest_add_func("/erdma/cq/fire-on-arm", test_fire_on_arm);
    qtest_add_func("/erdma/cq/ci-width", test_ci_width);
    qtest_add_func("/erdma/cq/sequence", test_sequence);
    qtest_add_func("/erdma/cq/solicited", test_solicited);
    qtest_add_func("/erdma/cq/solicited-error", test_solicited_error);
    qtest_add_func("/erdma/cq/solicited-fire-on-arm",
                   test_solicited_fire_on_arm);
    qtest_add_func("/erdma/cq/solicited-and-any", test_solicited_and_any);
    return g_test_run();
}
