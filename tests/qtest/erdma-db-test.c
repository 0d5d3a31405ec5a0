/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: doorbells in the static space and on
 * the pages of user contexts, and who may ring whom.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define PDN 1

typedef struct Fixture {
    QErdma *d;
    QErdmaPair p;
} Fixture;

static void setup(Fixture *f, bool is_user)
{
    memset(f, 0, sizeof(*f));
    f->d = qerdma_boot_one(NULL);
    qerdma_start(f->d, NULL);
    qerdma_pair_init(&f->p, f->d, f->d, PDN, is_user);
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d, NULL);
}

static uint64_t sq_payload(const QErdmaQp *qp)
{
    uint64_t db = FIELD_DP64(0, ERDMA_DB_SQ, PI, qp->sq_pi);

    return FIELD_DP64(db, ERDMA_DB_SQ, QPN, qp->qpn);
}

static uint64_t rq_payload(const QErdmaQp *qp)
{
    uint64_t db = FIELD_DP64(0, ERDMA_DB_RQ, PI, qp->rq_pi);

    return FIELD_DP64(db, ERDMA_DB_RQ, QPN, qp->qpn);
}

static void ring(Fixture *f, unsigned page, unsigned off, uint64_t payload)
{
    qerdma_write64(f->d, page * 4096ull + off, payload);
}

/* An empty write, not rung */
static uint16_t queue_write(QErdmaQp *qp)
{
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE };

    return qerdma_queue_send(qp, &wr);
}

static void expect_write(QErdmaQp *qp, uint16_t index)
{
    qerdma_expect_send(qp, index, ERDMA_OP_WRITE, ERDMA_WC_SUCCESS);
}

/* Rings at @page, @off; it must have no effect, and the right one must. */
static void try_foreign_sq(Fixture *f, QErdmaQp *qp, unsigned page,
                           unsigned off)
{
    uint16_t index = queue_write(qp);

    ring(f, page, off, sq_payload(qp));
    qerdma_expect_no_cqe(qp->scq);
    qerdma_sq_db(qp);
    expect_write(qp, index);
}

/* Any address of the static space will do; the payload names the target. */
static void test_static(void)
{
    static const unsigned sq_at[] = { 0x1000, 0x1008, 0x5f000, 0x60ff8 };
    static const unsigned rq_at[] = { 0x61000, 0x6f010, 0x78ff8 };
    static const unsigned cq_at[] = { 0x79000, 0x79010, 0x79ff8 };
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    unsigned i;

    setup(&f, false);
    for (i = 0; i < ARRAY_SIZE(sq_at); i++) {
        uint16_t index = queue_write(qp);

        ring(&f, 0, sq_at[i], sq_payload(qp));
        expect_write(qp, index);
    }
    for (i = 0; i < ARRAY_SIZE(cq_at); i++) {
        uint16_t index;

        ring(&f, 0, cq_at[i], qerdma_cq_db_payload(&f.p.cq[0], false));
        qerdma_settle(f.d);
        index = queue_write(qp);
        qerdma_sq_db(qp);
        g_assert_true(qerdma_wait_irq(f.d, f.p.cq[0].eqn));
        f.d->ceqs[f.p.cq[0].eqn].ci++;
        qerdma_eq_db(f.d, &f.d->ceqs[f.p.cq[0].eqn]);
        expect_write(qp, index);
    }
    qerdma_modify_qp(qp, ERDMA_QPS_ERROR);
    for (i = 0; i < ARRAY_SIZE(rq_at); i++) {
        qp->rq_pi++;
        ring(&f, 0, rq_at[i], rq_payload(qp) | 0xabcd0000);
        qerdma_expect_recv(qp, qp->rq_pi - 1, ERDMA_OP_RECEIVE,
                           ERDMA_WC_FLUSH_ERR, 0, NULL);
    }
    teardown(&f);
}

/* The kind is that of the address, not what the payload looks like. */
static void test_static_kinds(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];

    setup(&f, false);
    try_foreign_sq(&f, qp, 0x61, 0);
    try_foreign_sq(&f, qp, 0x79, 0);
    try_foreign_sq(&f, qp, 0x0, 0x400);
    teardown(&f);
}

/* Numbers that nobody has */
static void test_unknown(void)
{
    static const uint64_t numbers[] = {
        0, 2000, 131071, 131072, 0xfffff, 0xffffff, 0x1fffff, UINT32_MAX,
    };
    Fixture f;
    unsigned i;

    setup(&f, true);
    for (i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint64_t payload = numbers[i] << 32 | 0x80000001;
        unsigned p;

        for (p = 0; p < 2; p++) {
            QErdmaCtx *ctx = &f.p.ctx[p];

            ring(&f, ctx->sdb, numbers[i] % 32 * 128, payload);
            ring(&f, ctx->rdb, numbers[i] % 512 * 8, payload);
            ring(&f, ctx->rdb, numbers[i] % 128 * 32, payload);
            ring(&f, ctx->cdb, numbers[i] % 512 * 8, payload);
            ring(&f, ctx->cdb, numbers[i] % 128 * 32, payload);
        }
        ring(&f, 0x01, 0, payload);
        ring(&f, 0x61, 0, payload);
        ring(&f, 0x79, 0, payload);
    }
    qerdma_settle(f.d);
    qerdma_expect_no_aeqe(f.d);
    qerdma_post_send(&f.p.qp[0], &(QErdmaSend) { .opcode = ERDMA_OP_WRITE });
    expect_write(&f.p.qp[0], 0);
    teardown(&f);
}

/* Both ways round, for numbers whose offsets coincide and others */
static void test_crossing(void)
{
    static const struct {
        uint32_t qpn;
        uint32_t cqn;
    } cases[] = {
        { 1, 1 }, { 512, 512 }, { 1024, 512 }, { 128, 1536 }, { 515, 513 },
        { 131071, 262143 },
    };
    Fixture f;
    unsigned i;

    setup(&f, true);
    /* the pair made QP 1 and 2, CQ 1 and 2; they are in the way */
    for (i = 0; i < 2; i++) {
        g_assert_cmpint(qerdma_destroy_qp(&f.p.qp[i]), ==, 0);
        g_assert_cmpint(qerdma_destroy_cq(&f.p.cq[i]), ==, 0);
    }
    for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
        bool is_crossed = i & 1;
        QErdmaCtx ctx, used;
        QErdmaCq cq = { .ctx = &ctx, .cqn = cases[i / 2].cqn };
        QErdmaQp qp = {
            .ctx = &ctx, .qpn = cases[i / 2].qpn, .scq = &cq, .rcq = &cq,
        };
        uint64_t entry;

        if (!is_crossed && (cq.cqn % 512 == 0 || qp.qpn % 512 == 0)) {
            /* there only the page's role tells the two apart */
            continue;
        }
        g_assert_cmpint(qerdma_alloc_db(f.d, &ctx), ==, 0);
        g_assert_cmpint(qerdma_create_cq(f.d, &cq), ==, 0);
        g_assert_cmpint(qerdma_create_qp(f.d, &qp), ==, 0);
        used = ctx;
        if (!is_crossed) {
            used.rdb = ctx.cdb;
            used.cdb = ctx.rdb;
        }
        cq.ctx = qp.ctx = &used;
        g_assert_cmpint(qerdma_modify_qp(&qp, ERDMA_QPS_ERROR), ==, 0);
        qerdma_arm_cq(&cq, false);
        qerdma_post_recv(&qp, 0, 0, 0);
        g_assert_true(qerdma_wait_irq(f.d, 1));
        g_assert_true(qerdma_eq_poll(f.d, &f.d->ceqs[1], &entry));
        g_assert_cmphex(FIELD_EX64(entry, ERDMA_CEQE, CQN), ==, cq.cqn);
        qerdma_eq_db(f.d, &f.d->ceqs[1]);
        qerdma_expect_recv(&qp, 0, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0,
                           NULL);
        g_assert_cmpint(qerdma_destroy_qp(&qp), ==, 0);
        g_assert_cmpint(qerdma_destroy_cq(&cq), ==, 0);
        g_assert_cmpint(qerdma_free_db(f.d, &ctx), ==, 0);
    }
    teardown(&f);
}

/* One process must not ring another's queues, nor the kernel's. */
static void test_isolation(void)
{
    Fixture f;
    QErdmaPair kernel;
    QErdmaQp *mine = &f.p.qp[0];
    QErdmaCtx *other = &f.p.ctx[1];
    QErdmaCq *cq = &f.p.cq[0];
    uint64_t off;

    setup(&f, true);
    qerdma_pair_init(&kernel, f.d, f.d, PDN, false);

    try_foreign_sq(&f, mine, other->sdb, mine->qpn % 32 * 128);
    try_foreign_sq(&f, mine, 0x5f, 0);
    try_foreign_sq(&f, &kernel.qp[0], other->sdb,
                   kernel.qp[0].qpn % 32 * 128);
    /* a page's kind counts too */
    try_foreign_sq(&f, mine, f.p.ctx[0].rdb, 0x808);
    try_foreign_sq(&f, mine, f.p.ctx[0].cdb, 0x808);

    /* arming */
    off = cq->cqn % 512 * 8;
    ring(&f, other->rdb, off, qerdma_cq_db_payload(cq, false));
    ring(&f, other->cdb, off, qerdma_cq_db_payload(cq, false));
    ring(&f, 0x79, off, qerdma_cq_db_payload(cq, false));
    qerdma_post_send(mine, &(QErdmaSend) { .opcode = ERDMA_OP_WRITE });
    expect_write(mine, mine->sq_pi - 1);
    g_assert_false(qerdma_irq(f.d, cq->eqn));

    /* receives */
    qerdma_modify_qp(mine, ERDMA_QPS_ERROR);
    mine->rq_pi++;
    off = mine->qpn % 128 * 32;
    ring(&f, other->rdb, off, rq_payload(mine));
    ring(&f, other->cdb, off, rq_payload(mine));
    ring(&f, 0x61, off, rq_payload(mine));
    qerdma_expect_no_cqe(cq);
    qerdma_rq_db(mine, 0);
    qerdma_expect_recv(mine, 0, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0,
                       NULL);
    teardown(&f);
}

/* Pages that were given back are nobody's. */
static void test_freed(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaCtx old;

    setup(&f, true);
    old = f.p.ctx[0];
    queue_write(qp);
    g_assert_cmpint(qerdma_free_db(f.d, &old), ==, 0);
    qerdma_sq_db(qp);
    qerdma_arm_cq(&f.p.cq[0], false);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    /* whoever gets them next does not inherit the queues */
    g_assert_cmpint(qerdma_alloc_db(f.d, &f.p.ctx[0]), ==, 0);
    qerdma_sq_db(qp);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    teardown(&f);
}

/* More entries than the queue has: that QP fails, no other one. */
static void test_absurd_pi(void)
{
    Fixture f;
    QErdmaPair other;
    QErdmaQp *qp = &f.p.qp[0];

    setup(&f, true);
    qerdma_pair_init(&other, f.d, f.d, PDN, true);
    ring(&f, f.p.ctx[0].sdb, qp->qpn % 32 * 128,
         (uint64_t)qp->qpn << 32 | 0x7fff);
    qerdma_expect_aeqe(f.d, ERDMA_AE_TYPE_QP_FATAL, qp->qpn);

    qerdma_pair_init(&f.p, f.d, f.d, PDN, true);
    ring(&f, f.p.ctx[0].cdb, qp->qpn % 128 * 32,
         (uint64_t)qp->qpn << 32 | 0xffff);
    qerdma_expect_aeqe(f.d, ERDMA_AE_TYPE_QP_FATAL, qp->qpn);
    qerdma_post_send(&other.qp[0], &(QErdmaSend) {
        .opcode = ERDMA_OP_WRITE,
    });
    expect_write(&other.qp[0], 0);
    teardown(&f);
}

/* The last doorbell says it all; repeated ones say nothing new. */
static void test_repeated(void)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    uint16_t index[10];
    unsigned i;

    setup(&f, true);
    for (i = 0; i < 10; i++) {
        index[i] = queue_write(qp);
        if (i % 3) {
            qerdma_sq_db(qp);
            qerdma_sq_db(qp);
        }
    }
    qerdma_sq_db(qp);
    for (i = 0; i < 10; i++) {
        expect_write(qp, index[i]);
    }
    qerdma_sq_db(qp);
    qerdma_expect_no_cqe(&f.p.cq[0]);
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/db/static", test_static);
    qtest_add_func("/erdma/db/static-kinds", test_static_kinds);
    qtest_add_func("/erdma/db/unknown", test_unknown);
    qtest_add_func("/erdma/db/crossing", test_crossing);
    qtest_add_func("/erdma/db/isolation", test_isolation);
    qtest_add_func("/erdma/db/freed", test_freed);
    qtest_add_func("/erdma/db/absurd-pi", test_absurd_pi);
    qtest_add_func("/erdma/db/repeated", test_repeated);
    return g_test_run();
}
