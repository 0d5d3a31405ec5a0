/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: the commands that make, change and
 * remove completion queues and queue pairs; success and each refusal.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define MAX_QP  (128 * 1024)
#define MAX_CQ  (2 * MAX_QP)

static const QErdmaOptions linux_6_1 = { .flavor = QERDMA_LINUX_6_1 };

/* A field of a request that gets another value than the driver's */
typedef struct Bad {
    unsigned off;
    uint32_t mask;
    uint32_t val;
} Bad;

static void spoil(QErdmaCmd *cmd, const Bad *bad)
{
    uint32_t word = ldl_le_p(cmd->raw + bad->off);

    qerdma_cmd_set32(cmd, bad->off, (word & ~bad->mask) | bad->val);
}

static void expect_refused(QErdma *d, QErdmaCmd *cmd, const Bad *bad)
{
    spoil(cmd, bad);
    if (!qerdma_cmd_exec(d, cmd, NULL)) {
        g_test_message("@0x%x mask 0x%x value 0x%x accepted", bad->off,
                       bad->mask, bad->val);
        g_test_fail();
    }
}

/* ---- completion queues ---- */

static void cq_kinds(QErdma *d)
{
    QErdmaCtx ctx;
    QErdmaCq cqs[] = {
        { .log2 = 6 },                      /* kernel */
        { .log2 = 1 },                      /* as small as they get */
        { .log2 = 14, .eqn = 2 },
        { .log2 = 6, .ctx = &ctx },         /* one page */
        { .log2 = 10, .ctx = &ctx },        /* a table */
    };
    unsigned i;

    qerdma_open_ctx(d, &ctx);
    for (i = 0; i < ARRAY_SIZE(cqs); i++) {
        g_assert_cmpint(qerdma_create_cq(d, &cqs[i]), ==, 0);
    }
    for (i = 0; i < ARRAY_SIZE(cqs); i++) {
        g_assert_cmpint(qerdma_destroy_cq(&cqs[i]), ==, 0);
        g_assert_cmpint(qerdma_destroy_cq(&cqs[i]), !=, 0);
    }
}

static void test_cq(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_start(d, NULL);
    cq_kinds(d);
    qerdma_start(d, &linux_6_1);
    cq_kinds(d);
    qerdma_quit(d, NULL);
}

/* The numbers at the ends of the range */
static void test_cq_numbers(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq first = { .cqn = 1 };
    QErdmaCq last = { .cqn = MAX_CQ - 1 };

    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_create_cq(d, &first), ==, 0);
    g_assert_cmpint(qerdma_create_cq(d, &last), ==, 0);
    g_assert_cmpint(qerdma_destroy_cq(&last), ==, 0);
    g_assert_cmpint(qerdma_destroy_cq(&first), ==, 0);
    qerdma_quit(d, NULL);
}

static void test_cq_refused(void)
{
    static const Bad bad[] = {
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xfffff, 0 },
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xfffff, 1 },     /* in use */
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xfffff, MAX_CQ },
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xfffff, 0xfffff },
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xff000000, 21u << 24 },
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xff000000, 32u << 24 },
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xff000000, 255u << 24 },
        /* 64 entries of 32 bytes at offset 0 want one page, not none */
        { A_ERDMA_CMD_CREATE_CQ_CFG1, 0xffff0000, 0 },
        { A_ERDMA_CMD_CREATE_CQ_CFG1, 0x3ff, 9 },       /* no such EQ */
        { A_ERDMA_CMD_CREATE_CQ_CFG1, 0x3ff, 0 },
        { A_ERDMA_CMD_CREATE_CQ_CFG1, 0x3ff, 32 },
        { A_ERDMA_CMD_CREATE_CQ_CFG1, 0x3ff, 0x3ff },
    };
    /* a page of 4 KiB, and more entries than fit */
    static const Bad too_long[] = {
        { A_ERDMA_CMD_CREATE_CQ_CFG0, 0xff000000, 8u << 24 },
        { A_ERDMA_CMD_CREATE_CQ_OFFSET, UINT32_MAX, 4096 - 32 },
        { A_ERDMA_CMD_CREATE_CQ_OFFSET, UINT32_MAX, 0xfffff000 },
    };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCtx ctx;
    QErdmaCq one = { .cqn = 1 };
    QErdmaCq kernel = { .cqn = 2 };
    QErdmaCq user = { .cqn = 3, .ctx = &ctx };
    QErdmaCmd cmd;
    unsigned i;

    qerdma_start(d, NULL);
    qerdma_open_ctx(d, &ctx);
    g_assert_cmpint(qerdma_create_cq(d, &one), ==, 0);
    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        qerdma_create_cq_cmd(d, &kernel, &cmd);
        expect_refused(d, &cmd, &bad[i]);
    }
    for (i = 0; i < ARRAY_SIZE(too_long); i++) {
        qerdma_create_cq_cmd(d, &user, &cmd);
        expect_refused(d, &cmd, &too_long[i]);
    }
    /* nothing is left of them */
    g_assert_cmpint(qerdma_create_cq(d, &kernel), ==, 0);
    g_assert_cmpint(qerdma_create_cq(d, &user), ==, 0);

    user.cqn = 0;
    g_assert_cmpint(qerdma_destroy_cq(&user), !=, 0);
    user.cqn = 0xfffff;
    g_assert_cmpint(qerdma_destroy_cq(&user), !=, 0);
    user.cqn = UINT32_MAX;
    g_assert_cmpint(qerdma_destroy_cq(&user), !=, 0);
    qerdma_quit(d, NULL);
}

/* ---- queue pairs ---- */

static void qp_kinds(QErdma *d)
{
    QErdmaCtx ctx;
    QErdmaCq cq = { 0 };
    QErdmaQp qps[] = {
        { .scq = &cq, .rcq = &cq, .pdn = 5 },
        { .scq = &cq, .rcq = &cq, .sq_log2 = 15, .rq_log2 = 13, .pdn = 0 },
        { .scq = &cq, .rcq = &cq, .ctx = &ctx },
        /* more pages than the command holds */
        { .scq = &cq, .rcq = &cq, .ctx = &ctx, .sq_log2 = 10, .rq_log2 = 9 },
    };
    unsigned i;

    qerdma_open_ctx(d, &ctx);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    for (i = 0; i < ARRAY_SIZE(qps); i++) {
        g_assert_cmpint(qerdma_create_qp(d, &qps[i]), ==, 0);
        g_assert_cmphex(qps[i].cookie & 0xfffff, ==, qps[i].qpn);
    }
    for (i = 0; i < ARRAY_SIZE(qps); i++) {
        g_assert_cmpint(qerdma_modify_qp(&qps[i], ERDMA_QPS_ERROR), ==, 0);
        g_assert_cmpint(qerdma_destroy_qp(&qps[i]), ==, 0);
        g_assert_cmpint(qerdma_destroy_qp(&qps[i]), !=, 0);
    }
    qerdma_expect_no_cqe(&cq);
}

static void test_qp(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_start(d, NULL);
    qp_kinds(d);
    qerdma_start(d, &linux_6_1);
    qp_kinds(d);
    qerdma_quit(d, NULL);
}

/* The same number again is another connection. */
static void test_qp_incarnation(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq = { 0 };
    QErdmaQp qp = { .scq = &cq, .rcq = &cq, .qpn = MAX_QP - 1 };
    uint32_t cookies[8];
    unsigned i, j;

    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    for (i = 0; i < ARRAY_SIZE(cookies); i++) {
        g_assert_cmpint(qerdma_create_qp(d, &qp), ==, 0);
        cookies[i] = qp.cookie;
        for (j = 0; j < i; j++) {
            g_assert_cmphex(cookies[j], !=, cookies[i]);
        }
        g_assert_cmpint(qerdma_destroy_qp(&qp), ==, 0);
    }
    qerdma_quit(d, NULL);
}

static void test_qp_refused(void)
{
    static const Bad bad[] = {
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfffff, 0 },
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfffff, 1 },     /* in use */
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfffff, MAX_QP },
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfffff, 0xfffff },
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfff00000, 16u << 20 },
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfff00000, 32u << 20 },
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfff00000, 0xfffu << 20 },
        { A_ERDMA_CMD_CREATE_QP_CFG1, 0xfff00000, 16u << 20 },
        { A_ERDMA_CMD_CREATE_QP_CFG1, 0xfff00000, 0xfffu << 20 },
        { A_ERDMA_CMD_CREATE_QP_SQ_CFG, 0xffffff, 0 },
        { A_ERDMA_CMD_CREATE_QP_SQ_CFG, 0xffffff, 77 },
        { A_ERDMA_CMD_CREATE_QP_SQ_CFG, 0xffffff, 0xffffff },
        { A_ERDMA_CMD_CREATE_QP_RQ_CFG, 0xffffff, 0 },
        { A_ERDMA_CMD_CREATE_QP_RQ_CFG, 0xffffff, 77 },
        { A_ERDMA_CMD_CREATE_QP_RQ_CFG, 0xffffff, 0x100001 },
        { A_ERDMA_CMD_CREATE_QP_SQ_MTT, 0xffe, 0 },
        { A_ERDMA_CMD_CREATE_QP_RQ_MTT, 0xffe, 0 },
    };
    /* two pages each, 8 KiB: too short for these */
    static const Bad too_long[] = {
        { A_ERDMA_CMD_CREATE_QP_CFG0, 0xfff00000, 9u << 20 },
        { A_ERDMA_CMD_CREATE_QP_CFG1, 0xfff00000, 9u << 20 },
        { A_ERDMA_CMD_CREATE_QP_SQ_MTT, 0xffe, 1 << 1 },
        { A_ERDMA_CMD_CREATE_QP_RQ_MTT, 0xffe, 1 << 1 },
        { A_ERDMA_CMD_CREATE_QP_SQ_MTT, 0xfffff000, 0x1000 },
        { A_ERDMA_CMD_CREATE_QP_RQ_MTT, 0xfffff000, 0xfffff000 },
    };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCtx ctx;
    QErdmaCq cq = { 0 };
    QErdmaQp one = { .scq = &cq, .rcq = &cq, .qpn = 1 };
    QErdmaQp kernel = { .scq = &cq, .rcq = &cq, .qpn = 2 };
    QErdmaQp user = {
        .scq = &cq, .rcq = &cq, .qpn = 3, .ctx = &ctx,
        .sq_log2 = 8, .rq_log2 = 8,
    };
    QErdmaCmd cmd;
    unsigned i;

    qerdma_start(d, NULL);
    qerdma_open_ctx(d, &ctx);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    g_assert_cmpint(qerdma_create_qp(d, &one), ==, 0);
    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        qerdma_create_qp_cmd(d, &kernel, &cmd);
        expect_refused(d, &cmd, &bad[i]);
    }
    for (i = 0; i < ARRAY_SIZE(too_long); i++) {
        qerdma_create_qp_cmd(d, &user, &cmd);
        expect_refused(d, &cmd, &too_long[i]);
    }
    g_assert_cmpint(qerdma_create_qp(d, &kernel), ==, 0);
    g_assert_cmpint(qerdma_create_qp(d, &user), ==, 0);

    user.qpn = 0;
    g_assert_cmpint(qerdma_destroy_qp(&user), !=, 0);
    user.qpn = MAX_QP;
    g_assert_cmpint(qerdma_destroy_qp(&user), !=, 0);
    user.qpn = UINT32_MAX;
    g_assert_cmpint(qerdma_destroy_qp(&user), !=, 0);
    qerdma_quit(d, NULL);
}

/* The type word is 7.3's and means nothing in iWARP mode. */
static void test_qp_type(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq = { 0 };
    uint32_t type;

    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    for (type = 0; type < 4; type++) {
        QErdmaQp qp = { .scq = &cq, .rcq = &cq };
        QErdmaCmd cmd;

        qerdma_create_qp_cmd(d, &qp, &cmd);
        qerdma_cmd_set32(&cmd, A_ERDMA_CMD_CREATE_QP_CFG2, type);
        g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), ==, 0);
    }
    qerdma_quit(d, NULL);
}

/* Pages that nobody was given, or that are not the creator's own */
static void test_db_pages(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCtx mine, other;
    QErdmaCq cq = { .ctx = &mine, .cqn = 5 };
    QErdmaQp qp = { .ctx = &mine, .scq = &cq, .rcq = &cq, .qpn = 5 };
    QErdmaCmd cmd;

    qerdma_start(d, NULL);
    qerdma_open_ctx(d, &mine);
    qerdma_open_ctx(d, &other);
    qerdma_create_cq_cmd(d, &cq, &cmd);
    expect_refused(d, &cmd, &(Bad) { A_ERDMA_CMD_CREATE_CQ_CFG2, 0xffff,
                                     0xffff });
    qerdma_create_cq_cmd(d, &cq, &cmd);
    expect_refused(d, &cmd, &(Bad) { A_ERDMA_CMD_CREATE_CQ_CFG2, 0xffff, 0 });
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    qerdma_create_qp_cmd(d, &qp, &cmd);
    expect_refused(d, &cmd, &(Bad) { A_ERDMA_CMD_CREATE_QP_DB_CFG, 0xffff,
                                     other.rdb });
    qerdma_create_qp_cmd(d, &qp, &cmd);
    expect_refused(d, &cmd, &(Bad) { A_ERDMA_CMD_CREATE_QP_DB_CFG,
                                     0xffff0000, 0xffff0000 });
    g_assert_cmpint(qerdma_create_qp(d, &qp), ==, 0);
    qerdma_quit(d, NULL);
}

/* ---- state changes ---- */

static void make_qp(QErdma *d, QErdmaCq *cq, QErdmaQp *qp)
{
    *cq = (QErdmaCq) { 0 };
    g_assert_cmpint(qerdma_create_cq(d, cq), ==, 0);
    *qp = (QErdmaQp) { .scq = cq, .rcq = cq };
    g_assert_cmpint(qerdma_create_qp(d, qp), ==, 0);
}

/* Closing states come in any order, repeatedly, from anywhere. */
static void test_modify(void)
{
    static const uint8_t orders[][4] = {
        { ERDMA_QPS_CLOSING, ERDMA_QPS_ERROR, ERDMA_QPS_ERROR,
          ERDMA_QPS_CLOSING },
        { ERDMA_QPS_ERROR, ERDMA_QPS_CLOSING, ERDMA_QPS_TERMINATE,
          ERDMA_QPS_ERROR },
        { ERDMA_QPS_TERMINATE, ERDMA_QPS_ERROR, ERDMA_QPS_TERMINATE,
          ERDMA_QPS_CLOSING },
    };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq;
    QErdmaQp qp;
    QErdmaCmd cmd;
    unsigned i, j, is_connected;

    qerdma_start(d, NULL);
    for (is_connected = 0; is_connected < 2; is_connected++) {
        for (i = 0; i < ARRAY_SIZE(orders); i++) {
            make_qp(d, &cq, &qp);
            if (is_connected) {
                qerdma_rts_cmd(&cmd, &qp, &qp);
                g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), ==, 0);
            }
            for (j = 0; j < 4; j++) {
                g_assert_cmpint(qerdma_modify_qp(&qp, orders[i][j]), ==, 0);
            }
            g_assert_cmpint(qerdma_destroy_qp(&qp), ==, 0);
        }
    }
    qerdma_expect_no_aeqe(d);
    qerdma_quit(d, NULL);
}

static void test_modify_refused(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq;
    QErdmaQp qp;
    QErdmaQp ghost;
    unsigned state;

    qerdma_start(d, NULL);
    make_qp(d, &cq, &qp);
    ghost = qp;
    ghost.qpn = 1234;
    for (state = ERDMA_QPS_RTS; state <= ERDMA_QPS_ERROR; state++) {
        g_assert_cmpint(qerdma_modify_qp(&ghost, state), !=, 0);
    }
    for (state = ERDMA_QPS_ERROR + 1; state < 256; state++) {
        g_assert_cmpint(qerdma_modify_qp(&qp, state), !=, 0);
    }
    qerdma_quit(d, NULL);
}

/* Connected anew only when nothing is left of the old connection */
static void test_connect_again(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq;
    QErdmaQp qp;
    QErdmaCmd cmd;

    qerdma_start(d, NULL);
    make_qp(d, &cq, &qp);
    qerdma_post_recv(&qp, 0, 0, 0);
    qerdma_rts_cmd(&cmd, &qp, &qp);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), ==, 0);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), !=, 0);
    /* the refusal changed nothing */
    qerdma_expect_no_cqe(&cq);
    g_assert_cmpint(qerdma_modify_qp(&qp, ERDMA_QPS_ERROR), ==, 0);
    qerdma_expect_recv(&qp, 0, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0, NULL);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), ==, 0);
    qerdma_post_recv(&qp, 0, 0, 0);
    qerdma_expect_no_cqe(&cq);
    qerdma_quit(d, NULL);
}

static void test_reflush(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq;
    QErdmaQp qp;
    QErdmaQp ghost;

    qerdma_start(d, NULL);
    make_qp(d, &cq, &qp);
    ghost = qp;
    ghost.qpn = 1234;
    g_assert_cmpint(qerdma_reflush(&ghost, 0, 0), !=, 0);
    /* not in an error state: nothing, successfully */
    g_assert_cmpint(qerdma_reflush(&qp, 3, 3), ==, 0);
    qerdma_expect_no_cqe(&cq);
    qerdma_quit(d, NULL);
}

/* The driver's indices may be older than a doorbell that is under way. */
static void test_reflush_old(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq;
    QErdmaQp qp;
    QErdmaCmd cmd;
    QErdmaDone done;
    unsigned i;

    qerdma_start(d, NULL);
    make_qp(d, &cq, &qp);
    g_assert_cmpint(qerdma_modify_qp(&qp, ERDMA_QPS_ERROR), ==, 0);
    /* a stopped machine takes doorbells and works them off together */
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'stop' }");
    for (i = 0; i < 4; i++) {
        qerdma_post_recv(&qp, 0, 0, 0);
    }
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_REFLUSH);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_REFLUSH_QPN, qp.qpn);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_REFLUSH_SQ_PI, 0);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_REFLUSH_RQ_PI, 2);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'cont' }");
    qerdma_cmd_wait(d, &done);
    g_assert_cmpint(done.status, ==, 0);
    for (i = 0; i < 4; i++) {
        qerdma_expect_recv(&qp, i, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0,
                           NULL);
    }
    qerdma_expect_no_cqe(&cq);
    qerdma_quit(d, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/obj/cq", test_cq);
    qtest_add_func("/erdma/obj/cq-numbers", test_cq_numbers);
    qtest_add_func("/erdma/obj/cq-refused", test_cq_refused);
    qtest_add_func("/erdma/obj/qp", test_qp);
    qtest_add_func("/erdma/obj/qp-incarnation", test_qp_incarnation);
    qtest_add_func("/erdma/obj/qp-refused", test_qp_refused);
    qtest_add_func("/erdma/obj/qp-type", test_qp_type);
    qtest_add_func("/erdma/obj/db-pages", test_db_pages);
    qtest_add_func("/erdma/obj/modify", test_modify);
    qtest_add_func("/erdma/obj/modify-refused", test_modify_refused);
    qtest_add_func("/erdma/obj/connect-again", test_connect_again);
    qtest_add_func("/erdma/obj/reflush", test_reflush);
    qtest_add_func("/erdma/obj/reflush-old", test_reflush_old);
    return g_test_run();
}
