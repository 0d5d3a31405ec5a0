/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: the command queue itself, and the
 * commands that are about the device or its event queues.
 *
 * Commands that make objects are in erdma-obj-test.c.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"

static const QErdmaOptions linux_6_1 = { .flavor = QERDMA_LINUX_6_1 };

/* Runs @fn as both kinds of driver. */
static void for_each_flavor(void (*fn)(QErdma *d))
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_start(d, NULL);
    fn(d);
    qerdma_start(d, &linux_6_1);
    fn(d);
    qerdma_quit(d, NULL);
}

static uint8_t exec_plain(QErdma *d, uint8_t sub_mod, uint8_t opcode,
                          uint64_t resp[2])
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, sub_mod, opcode);
    return qerdma_cmd_exec(d, &cmd, resp);
}

/* ---- the device ---- */

static void query_device(QErdma *d)
{
    uint8_t flags;

    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    flags = FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, FLAGS);
    g_assert_cmphex(flags, ==, ERDMA_CAP_FLAG_EXTEND_DB |
                    ERDMA_CAP_FLAG_MTT_VA | ERDMA_CAP_FLAG_ATOMIC);
    g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_CQE), ==, 20);
    g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_RECV_WR), ==, 15);
    g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_MR_SIZE), ==, 36);
    g_assert_cmpint(FIELD_EX64(d->cap1, ERDMA_DEV_CAP1, QBLOCK), ==, 128);
    g_assert_cmpint(FIELD_EX64(d->cap1, ERDMA_DEV_CAP1, DEFAULT_CC), ==,
                    ERDMA_CC_CUBIC);
    /* no index of a region can be that of the key */
    g_assert_cmphex(d->local_key >> 8, >=, 2 * 128 * 1024);
}

static void test_query_device(void)
{
    for_each_flavor(query_device);
}

static void fw_info(QErdma *d)
{
    uint64_t resp[2];

    g_assert_cmpint(exec_plain(d, ERDMA_SUBMOD_COMMON,
                               ERDMA_CMD_QUERY_FW_INFO, resp), ==, 0);
    g_assert_cmphex(resp[0] & UINT32_MAX, !=, 0);
}

static void test_fw_info(void)
{
    for_each_flavor(fw_info);
}

static uint8_t conf_mtu(QErdma *d, uint32_t mtu)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_CONF_MTU);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_CONF_MTU_MTU, mtu);
    return qerdma_cmd_exec(d, &cmd, NULL);
}

static void mtu(QErdma *d)
{
    g_assert_cmpint(conf_mtu(d, 1500), ==, 0);
    g_assert_cmpint(conf_mtu(d, 8500), ==, 0);
    /* the driver ignores a refusal; the nearest possible value is taken */
    g_assert_cmpint(conf_mtu(d, 0), ==, 0);
    g_assert_cmpint(conf_mtu(d, UINT32_MAX), ==, 0);
    g_assert_cmpint(conf_mtu(d, 1500), ==, 0);
}

static void test_mtu(void)
{
    for_each_flavor(mtu);
}

static uint8_t get_stats(QErdma *d, uint64_t addr, uint32_t len)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_GET_STATS);
    qerdma_cmd_set64(&cmd, A_ERDMA_CMD_GET_STATS_ADDR, addr);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_GET_STATS_LEN, len);
    return qerdma_cmd_exec(d, &cmd, NULL);
}

static void test_stats(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    uint64_t buf;
    unsigned i;

    qerdma_start(d, NULL);
    buf = qerdma_alloc(d, 512);
    qtest_memset(d->qts, buf, QERDMA_GARBAGE, 512);
    g_assert_cmpint(get_stats(d, buf, 256), ==, 0);
    g_assert_cmphex(qtest_readw(d->qts, buf), ==, ERDMA_STATS_MAGIC);
    for (i = A_ERDMA_STATS_TX_REQS; i < ERDMA_STATS_SIZE; i += 8) {
        g_assert_cmphex(qtest_readq(d->qts, buf + i), ==, 0);
    }
    g_assert_cmphex(qtest_readb(d->qts, buf + 256), ==, QERDMA_GARBAGE);

    qtest_memset(d->qts, buf, QERDMA_GARBAGE, 512);
    g_assert_cmpint(get_stats(d, buf, ERDMA_STATS_SIZE - 1), !=, 0);
    g_assert_cmpint(get_stats(d, buf, 0), !=, 0);
    g_assert_cmphex(qtest_readb(d->qts, buf), ==, QERDMA_GARBAGE);
    g_assert_cmpint(get_stats(d, buf, ERDMA_STATS_SIZE), ==, 0);
    g_assert_cmphex(qtest_readb(d->qts, buf + ERDMA_STATS_SIZE), ==,
                    QERDMA_GARBAGE);
    qerdma_quit(d, NULL);
}

static void test_conf_device(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCmd cmd;

    qerdma_start(d, NULL);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_CONF_DEVICE);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_CONF_DEVICE_CFG, 0x8000000c);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), ==, 0);
    qerdma_quit(d, NULL);
}

/* ---- the queue ---- */

static bool is_known(unsigned sub_mod, unsigned opcode)
{
    if (sub_mod == ERDMA_SUBMOD_RDMA) {
        return opcode <= ERDMA_CMD_DEREG_MR && opcode != 7;
    }
    return sub_mod == ERDMA_SUBMOD_COMMON &&
        opcode <= ERDMA_CMD_FREE_DB && opcode != 6 && opcode != 7;
}

/* RoCEv2's commands are among the unknown. */
static void test_unknown(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    unsigned sub_mod, opcode;

    qerdma_start(d, NULL);
    for (sub_mod = 0; sub_mod < 4; sub_mod++) {
        for (opcode = 0; opcode < 256; opcode++) {
            if (!is_known(sub_mod, opcode)) {
                g_assert_cmpint(exec_plain(d, sub_mod, opcode, NULL), !=, 0);
            }
        }
    }
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

/* Many at once: in order, each once, with its own status. */
static void order(QErdma *d)
{
    QErdmaDone done;
    QErdmaCmd cmd;
    uint16_t first = d->cmd_pi;
    unsigned i;

    for (i = 0; i < d->opt.cmd_slots; i++) {
        qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA,
                        i % 3 ? ERDMA_CMD_QUERY_DEVICE : 200);
        qerdma_cmd_queue(d, &cmd);
    }
    qerdma_cmd_ring_db(d);
    for (i = 0; i < d->opt.cmd_slots; i++) {
        uint16_t index = first + i * d->cmd_wqebbs;

        qerdma_cmd_wait(d, &done);
        g_assert_cmphex(done.index & (d->cmd_depth - 1), ==,
                        index & (d->cmd_depth - 1));
        g_assert_cmpint(!done.status, ==, !!(i % 3));
        if (i % 3) {
            g_assert_cmphex(done.resp[0], ==, d->cap0);
            g_assert_cmphex(done.resp[1], ==, d->cap1);
        }
    }
    qerdma_settle(d);
    g_assert_true(g_queue_is_empty(&d->done));
    g_assert_false(qerdma_cmd_poll(d, &done));
}

static void test_order(void)
{
    for_each_flavor(order);
}

/* Slots, phases and the 16-bit indices all wrap. */
static void test_wrap(void)
{
    static const uint32_t slots[] = { 1, 2, 4, 32 };
    QErdma *d = qerdma_boot_one(NULL);
    unsigned i, n;

    for (i = 0; i < ARRAY_SIZE(slots); i++) {
        QErdmaOptions opt = {
            .flavor = i & 1 ? QERDMA_LINUX_6_1 : QERDMA_LINUX_7_3,
            .cmd_slots = slots[i],
        };

        qerdma_start(d, &opt);
        for (n = 0; n < 5 * slots[i]; n++) {
            g_assert_cmpint(qerdma_query_device(d), ==, 0);
            g_assert_cmpint(exec_plain(d, ERDMA_SUBMOD_COMMON, 99, NULL), !=,
                            0);
        }
    }
    qerdma_quit(d, NULL);
}

static void test_wrap_16_bit(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .is_polled = true };
    unsigned round, i;

    qerdma_start(d, &opt);
    for (round = 0; round < 0x10000 / 512 + 2; round++) {
        QErdmaDone done;
        QErdmaCmd cmd;

        for (i = 0; i < 128; i++) {
            qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON,
                            ERDMA_CMD_QUERY_FW_INFO);
            qerdma_cmd_queue(d, &cmd);
        }
        qerdma_cmd_ring_db(d);
        /* the last of them is enough to look at */
        d->cmd_ci += 127;
        qerdma_cmd_wait(d, &done);
        g_assert_cmpint(done.status, ==, 0);
    }
    g_assert_cmphex(d->cmd_pi, <, 2048);
    qerdma_quit(d, NULL);
}

/* The header says how long an entry is, not the driver's version. */
static void test_mixed_sizes(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    unsigned i;

    qerdma_start(d, &(QErdmaOptions) { .is_polled = true });
    for (i = 0; i < 30; i++) {
        d->cmd_wqebbs = 1 + i % 4;
        g_assert_cmpint(qerdma_query_device(d), ==, 0);
    }
    qerdma_quit(d, NULL);
}

/*
 * A command in fewer WQEBBs than its body needs must not be completed with
 * what happens to lie behind it.
 */
static void test_short(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq = { 0 };
    QErdmaCmd cmd;

    qerdma_start(d, &(QErdmaOptions) { .is_polled = true });
    qerdma_create_cq_cmd(d, &cq, &cmd);
    d->cmd_wqebbs = 1;
    /* the rest of the request, where a careless device finds it */
    qtest_memwrite(d->qts, d->cmd_sq + ((d->cmd_pi + 1) & (d->cmd_depth - 1)) *
                   ERDMA_WQEBB_SIZE, cmd.raw + 32, 32);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), !=, 0);
    d->cmd_wqebbs = 4;
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    qerdma_quit(d, NULL);
}

/* A doorbell that moves nothing, or that is not true, has no effect. */
static void test_odd_doorbells(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaDone done;

    qerdma_start(d, NULL);
    qerdma_cmd_ring_db(d);
    qerdma_cmd_ring_db(d);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 0));
    g_assert_false(qerdma_cmd_poll(d, &done));
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

/* A PI further ahead than the ring is long: no endless work, no abort. */
static void test_absurd_pi(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .cmd_slots = 4, .is_polled = true };

    qerdma_start(d, &opt);
    qerdma_write64(d, A_ERDMA_CMDQ_SQ_DB, (uint16_t)(d->cmd_pi + 0x7fff));
    qerdma_settle(d);
    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

/* ---- event queues ---- */

static void eq_success(QErdma *d)
{
    unsigned eqn;

    /* bring-up made 1 and 2 */
    for (eqn = 3; eqn < ERDMA_MAX_VECTORS; eqn++) {
        g_assert_cmpint(qerdma_create_eq(d, eqn, eqn % 2 ? 8 : 12), ==, 0);
    }
    for (eqn = 1; eqn < ERDMA_MAX_VECTORS; eqn++) {
        g_assert_cmpint(qerdma_destroy_eq(d, eqn), ==, 0);
        g_assert_cmpint(qerdma_destroy_eq(d, eqn), !=, 0);
    }
    g_assert_cmpint(qerdma_create_eq(d, 1, 12), ==, 0);
}

static void test_eq(void)
{
    for_each_flavor(eq_success);
}

static void test_eq_refused(void)
{
    static const struct {
        unsigned off;
        uint8_t val;
    } bad[] = {
        { A_ERDMA_CMD_EQ_EQN, 0 },
        { A_ERDMA_CMD_EQ_EQN, 1 },          /* in use */
        { A_ERDMA_CMD_EQ_EQN, 32 },
        { A_ERDMA_CMD_EQ_EQN, 255 },
        { A_ERDMA_CMD_EQ_VECTOR, 32 },
        { A_ERDMA_CMD_EQ_VECTOR, 255 },
        { A_ERDMA_CMD_CREATE_EQ_DEPTH, 24 },
        { A_ERDMA_CMD_CREATE_EQ_DEPTH, 32 },
        { A_ERDMA_CMD_CREATE_EQ_DEPTH, 64 },
        { A_ERDMA_CMD_CREATE_EQ_DEPTH, 255 },
    };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCmd cmd;
    unsigned i;

    qerdma_start(d, NULL);
    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        qerdma_create_eq_cmd(d, &cmd, 5, 8);
        cmd.raw[bad[i].off] = bad[i].val;
        if (!qerdma_cmd_exec(d, &cmd, NULL)) {
            g_test_message("byte %u = %u accepted", bad[i].off, bad[i].val);
            g_test_fail();
        }
    }
    g_assert_cmpint(qerdma_destroy_eq(d, 5), !=, 0);
    g_assert_cmpint(qerdma_destroy_eq(d, 0), !=, 0);
    g_assert_cmpint(qerdma_destroy_eq(d, 200), !=, 0);
    g_assert_cmpint(qerdma_create_eq(d, 5, 8), ==, 0);
    qerdma_quit(d, NULL);
}

/* ---- extended doorbell pages ---- */

static void expect_in_bar(QErdma *d, uint16_t page)
{
    g_assert_cmphex(page * 4096ull, >=, ERDMA_SQ_DB_SPACE);
    g_assert_cmphex((page + 1) * 4096ull, <=, d->bar_size);
}

/* Contexts get pages until there are none, and again after giving back. */
static void test_alloc_db(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    g_autofree QErdmaCtx *ctxs = g_new(QErdmaCtx, 4096);
    unsigned n = 0;
    unsigned i;

    qerdma_start(d, NULL);
    while (n < 4096 && !qerdma_alloc_db(d, &ctxs[n])) {
        expect_in_bar(d, ctxs[n].sdb);
        expect_in_bar(d, ctxs[n].rdb);
        expect_in_bar(d, ctxs[n].cdb);
        n++;
    }
    g_assert_cmpuint(n, >=, 16);
    g_assert_cmpuint(n, <, 4096);
    for (i = 1; i < n; i++) {
        g_assert_cmphex(ctxs[i].sdb, !=, ctxs[i - 1].sdb);
    }
    g_assert_cmpint(qerdma_free_db(d, &ctxs[n / 2]), ==, 0);
    g_assert_cmpint(qerdma_free_db(d, &ctxs[n / 2]), !=, 0);
    g_assert_cmpint(qerdma_alloc_db(d, &ctxs[n / 2]), ==, 0);
    for (i = 0; i < n; i++) {
        g_assert_cmpint(qerdma_free_db(d, &ctxs[i]), ==, 0);
    }
    /* static pages belong to nobody */
    ctxs[0] = (QErdmaCtx) { .sdb = 1, .rdb = 0x79, .cdb = 0x61 };
    g_assert_cmpint(qerdma_free_db(d, &ctxs[0]), !=, 0);
    ctxs[0] = (QErdmaCtx) { .sdb = 0xffff, .rdb = 0xffff, .cdb = 0xffff };
    g_assert_cmpint(qerdma_free_db(d, &ctxs[0]), !=, 0);
    qerdma_quit(d, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/cmd/query-device", test_query_device);
    qtest_add_func("/erdma/cmd/fw-info", test_fw_info);
    qtest_add_func("/erdma/cmd/mtu", test_mtu);
    qtest_add_func("/erdma/cmd/stats", test_stats);
    qtest_add_func("/erdma/cmd/conf-device", test_conf_device);
    qtest_add_func("/erdma/cmd/unknown", test_unknown);
    qtest_add_func("/erdma/cmd/order", test_order);
    qtest_add_func("/erdma/cmd/wrap", test_wrap);
    qtest_add_func("/erdma/cmd/wrap-16-bit", test_wrap_16_bit);
    qtest_add_func("/erdma/cmd/mixed-sizes", test_mixed_sizes);
    qtest_add_func("/erdma/cmd/short", test_short);
    qtest_add_func("/erdma/cmd/odd-doorbells", test_odd_doorbells);
    qtest_add_func("/erdma/cmd/absurd-pi", test_absurd_pi);
    qtest_add_func("/erdma/cmd/eq", test_eq);
    qtest_add_func("/erdma/cmd/eq-refused", test_eq_refused);
    qtest_add_func("/erdma/cmd/alloc-db", test_alloc_db);
    return g_test_run();
}
