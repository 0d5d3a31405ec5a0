/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: PCI identity, BAR 0 registers, and
 * the reset and init handshake.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "hw/pci/pci_regs.h"
#include "hw/pci/pci_ids.h"
#include "libqos/erdma.h"

static bool is_ready(QErdma *d)
{
    return qerdma_read32(d, A_ERDMA_DEV_STATUS) &
        R_ERDMA_DEV_STATUS_INIT_DONE_MASK;
}

/* The driver wants memory BARs 0 and 2 and nothing else. */
static void test_identity(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    unsigned off;

    g_assert_cmphex(qpci_config_readw(d->pci, PCI_VENDOR_ID), ==, 0x1ded);
    g_assert_cmphex(qpci_config_readw(d->pci, PCI_DEVICE_ID), ==, 0x107f);
    g_assert_cmphex(qpci_config_readw(d->pci, PCI_CLASS_DEVICE), ==,
                    PCI_CLASS_NETWORK_ETHERNET);
    for (off = PCI_BASE_ADDRESS_0; off <= PCI_BASE_ADDRESS_5; off += 4) {
        qpci_config_writel(d->pci, off, UINT32_MAX);
    }
    g_assert_cmphex(qpci_config_readl(d->pci, PCI_BASE_ADDRESS_0), !=, 0);
    g_assert_cmphex(qpci_config_readl(d->pci, PCI_BASE_ADDRESS_2), !=, 0);
    g_assert_cmphex(qpci_config_readl(d->pci, PCI_BASE_ADDRESS_4), ==, 0);
    g_assert_cmphex(qpci_config_readl(d->pci, PCI_BASE_ADDRESS_5), ==, 0);
    qpci_config_writel(d->pci, PCI_ROM_ADDRESS, UINT32_MAX);
    g_assert_cmphex(qpci_config_readl(d->pci, PCI_ROM_ADDRESS), ==, 0);
    g_assert_cmphex(qpci_config_readb(d->pci, PCI_INTERRUPT_PIN), ==, 0);
    g_assert_cmpuint(d->n_vectors, ==, ERDMA_MAX_VECTORS);
    /* room for the static doorbells */
    g_assert_cmphex(d->bar_size, >=, 512 * 1024);
    qerdma_quit(d, NULL);
}

static void test_reset_values(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    uint32_t reg;

    g_assert_cmphex(qerdma_read32(d, A_ERDMA_VERSION), !=, 0);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_DEV_PROTO), ==,
                    ERDMA_PROTO_IWARP);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_DEV_STATUS), ==, 0);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_GRP_NUM), ==, 0);
    for (reg = A_ERDMA_TSO_IN_PKTS; reg <= A_ERDMA_RX_PPS_DROP; reg += 8) {
        g_assert_cmphex(qtest_readq(d->qts, d->bar.addr + reg), ==, 0);
    }
    qerdma_quit(d, NULL);
}

/* The last byte of the address is the lowest of the first word. */
static void test_mac(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    g_assert_cmphex(qerdma_read32(d, A_ERDMA_NETDEV_MAC_L), ==, 0x00123456);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_NETDEV_MAC_H) & 0xffff, ==,
                    0x5254);
    qerdma_quit(d, NULL);
}

static void test_read_only(void)
{
    static const uint32_t regs[] = {
        A_ERDMA_VERSION, A_ERDMA_DEV_PROTO, A_ERDMA_DEV_STATUS,
        A_ERDMA_NETDEV_MAC_L, A_ERDMA_NETDEV_MAC_H, A_ERDMA_GRP_NUM,
    };
    QErdma *d = qerdma_boot_one(NULL);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(regs); i++) {
        uint32_t val = qerdma_read32(d, regs[i]);

        qerdma_write32(d, regs[i], ~val);
        g_assert_cmphex(qerdma_read32(d, regs[i]), ==, val);
    }
    qerdma_quit(d, NULL);
}

static void test_reserved(void)
{
    static const uint32_t regs[] = {
        0x004, 0x008, 0x054, 0x058, 0x05c, 0x0b0, 0x0b8, 0x0e8, 0x0f8,
        0x208, 0x2f8, 0x308, 0x400, 0x800, 0xffc,
    };
    QErdma *d = qerdma_boot_one(NULL);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(regs); i++) {
        qerdma_write32(d, regs[i], UINT32_MAX);
        g_assert_cmphex(qerdma_read32(d, regs[i]), ==, 0);
    }
    /* the doorbell space, and the end of the BAR */
    for (i = ERDMA_SQ_DB_SPACE; i < d->bar_size; i += 0x1ffc) {
        qerdma_write32(d, i & ~3u, UINT32_MAX);
        g_assert_cmphex(qerdma_read32(d, i & ~3u), ==, 0);
    }
    qerdma_write64(d, d->bar_size - 8, UINT64_MAX);
    g_assert_cmphex(qerdma_read32(d, d->bar_size - 4), ==, 0);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_DEV_STATUS), ==, 0);
    qerdma_start(d, NULL);
    qerdma_quit(d, NULL);
}

/*
 * Bytes and half-words read 0 and do nothing.  Neighbours may be accessed as
 * one, and 64-bit registers in halves.
 */
static void test_wrong_width(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    uint64_t bar = d->bar.addr;

    g_assert_cmphex(qtest_readb(d->qts, bar + A_ERDMA_VERSION), ==, 0);
    g_assert_cmphex(qtest_readw(d->qts, bar + A_ERDMA_VERSION), ==, 0);
    g_assert_cmphex(qtest_readb(d->qts, bar + A_ERDMA_NETDEV_MAC_L), ==, 0);
    g_assert_cmphex(qtest_readw(d->qts, bar + A_ERDMA_NETDEV_MAC_L + 2), ==,
                    0);

    qerdma_setup_queues(d, NULL);
    qtest_writeb(d->qts, bar + A_ERDMA_DEV_CTRL, 2);
    qtest_writew(d->qts, bar + A_ERDMA_DEV_CTRL, 2);
    g_assert_false(is_ready(d));
    g_assert_true(qerdma_init(d));
    qtest_writeb(d->qts, bar + A_ERDMA_DEV_CTRL, 1);
    qtest_writew(d->qts, bar + A_ERDMA_DEV_CTRL, 1);
    g_assert_true(is_ready(d));
    qerdma_write32(d, A_ERDMA_AEQ_ADDR_H, 0x12345678);
    qtest_writeb(d->qts, bar + A_ERDMA_AEQ_ADDR_H, 0xff);
    qtest_writew(d->qts, bar + A_ERDMA_AEQ_ADDR_H + 2, 0xffff);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_AEQ_ADDR_H), ==, 0x12345678);

    g_assert_cmphex(qtest_readq(d->qts, bar + A_ERDMA_NETDEV_MAC_L), ==,
                    0x525400123456ull);
    qerdma_write32(d, A_ERDMA_AEQ_DB_RECORD, 0x89abcde0);
    qerdma_write32(d, A_ERDMA_AEQ_DB_RECORD + 4, 0x1234567);
    g_assert_cmphex(qtest_readq(d->qts, bar + A_ERDMA_AEQ_DB_RECORD), ==,
                    0x0123456789abcde0ull);
    qerdma_quit(d, NULL);
}

/* A doorbell is one 64-bit write; halves of it are nothing. */
static void test_half_doorbell(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCmd cmd;
    QErdmaDone done;

    qerdma_start(d, &(QErdmaOptions) { .is_polled = true });
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    qerdma_cmd_queue(d, &cmd);
    qerdma_write32(d, A_ERDMA_CMDQ_SQ_DB, d->cmd_pi);
    qtest_writew(d->qts, d->bar.addr + A_ERDMA_CMDQ_SQ_DB, d->cmd_pi);
    qerdma_settle(d);
    g_assert_false(qerdma_cmd_poll(d, &done));
    qerdma_cmd_ring_db(d);
    qerdma_cmd_wait(d, &done);
    g_assert_cmpint(done.status, ==, 0);
    qerdma_quit(d, NULL);
}

/* Registers are what they are only once init latched them. */
static void test_init(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_setup_queues(d, NULL);
    g_assert_false(is_ready(d));
    g_assert_true(qerdma_init(d));
    qerdma_settle(d);
    /* the handler of vector 0 is not safe to call before that */
    g_assert_false(qerdma_irq(d, 0));

    qerdma_write32(d, A_ERDMA_CMDQ_SQ_ADDR_L, 0);
    qerdma_write32(d, A_ERDMA_CMDQ_CQ_ADDR_L, 0);
    qerdma_write32(d, A_ERDMA_CMDQ_DEPTH, 1);
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

static void test_init_refused(void)
{
    static const struct {
        uint32_t reg;
        uint32_t val;
    } bad[] = {
        { A_ERDMA_CMDQ_DEPTH, 0 },
        { A_ERDMA_CMDQ_DEPTH, 500 },
        { A_ERDMA_CMDQ_DEPTH, 0x80000000 },
        { A_ERDMA_CMDQ_DEPTH, UINT32_MAX },
        { A_ERDMA_CMDQ_EQ_DEPTH, 0 },
        { A_ERDMA_CMDQ_EQ_DEPTH, 127 },
        { A_ERDMA_CMDQ_EQ_DEPTH, 0x80000000 },
        { A_ERDMA_AEQ_DEPTH, 0 },
        { A_ERDMA_AEQ_DEPTH, 4095 },
        { A_ERDMA_AEQ_DEPTH, UINT32_MAX },
    };
    QErdma *d = qerdma_boot_one(NULL);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        qerdma_setup_queues(d, NULL);
        qerdma_write32(d, bad[i].reg, bad[i].val);
        if (qerdma_init(d)) {
            g_test_message("register 0x%x, value 0x%x", bad[i].reg,
                           bad[i].val);
            g_test_fail();
        }
    }
    /* and it recovers */
    qerdma_start(d, NULL);
    qerdma_quit(d, NULL);
}

static void expect_deaf(QErdma *d)
{
    QErdmaCmd cmd;
    QErdmaDone done;

    g_assert_false(is_ready(d));
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    qerdma_cmd_arm(d);
    qerdma_eq_db(d, &d->cmd_eq);
    qerdma_eq_db(d, &d->aeq);
    qerdma_write64(d, A_ERDMA_CEQ_DB + 8, UINT64_MAX);
    qerdma_write64(d, ERDMA_SQ_DB_SPACE, UINT64_MAX);
    qerdma_write64(d, ERDMA_RQ_DB_SPACE, 0x100000001ull);
    qerdma_write64(d, ERDMA_CQ_DB_SPACE, 0x180000000ull);
    qerdma_settle(d);
    g_assert_false(qerdma_cmd_poll(d, &done));
    g_assert_false(qerdma_irq(d, 0));
    g_assert_false(qerdma_irq(d, 1));
}

/* Doorbells of a device that was not initialised go nowhere. */
static void test_before_init(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_setup_queues(d, NULL);
    expect_deaf(d);
    qerdma_start(d, NULL);
    qerdma_quit(d, NULL);
}

static void test_reset(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_start(d, NULL);
    qerdma_reset(d);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_DEV_STATUS), ==,
                    R_ERDMA_DEV_STATUS_RESET_DONE_MASK);
    expect_deaf(d);
    /* a driver that comes back, with other memory; more than once */
    qerdma_start(d, NULL);
    qerdma_reset(d);
    qerdma_start(d, &(QErdmaOptions) { .flavor = QERDMA_LINUX_6_1 });
    qerdma_quit(d, NULL);
}

/* Work that was latched before the reset write must not happen after it. */
static void test_reset_races(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCmd cmd;
    QErdmaDone done;
    int i;

    qerdma_start(d, NULL);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    for (i = 0; i < 100; i++) {
        qerdma_cmd_queue(d, &cmd);
    }
    qerdma_cmd_ring_db(d);
    qerdma_reset(d);
    while (qerdma_cmd_poll(d, &done)) {
        /* what came before the reset is fine */
    }
    qerdma_irq(d, 0);
    qerdma_settle(d);
    g_assert_false(qerdma_cmd_poll(d, &done));
    g_assert_false(qerdma_irq(d, 0));
    qerdma_quit(d, NULL);
}

/* A rebooted guest writes init without a reset. */
static void test_reinit(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq = { .cqn = 7 };
    QErdmaCq again = { .cqn = 7 };
    uint64_t old_cq;
    uint8_t before[ERDMA_CQE_SIZE * 8];
    uint8_t after[ERDMA_CQE_SIZE * 8];

    qerdma_start(d, NULL);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    g_assert_cmpint(qerdma_create_cq(d, &again), !=, 0);
    old_cq = d->cmd_cq;
    qtest_memread(d->qts, old_cq, before, sizeof(before));

    qerdma_start(d, NULL);
    again = (QErdmaCq) { .cqn = 7 };
    g_assert_cmpint(qerdma_create_cq(d, &again), ==, 0);
    qtest_memread(d->qts, old_cq, after, sizeof(after));
    g_assert_cmpmem(before, sizeof(before), after, sizeof(after));
    qerdma_quit(d, NULL);
}

static void test_system_reset(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_start(d, NULL);
    qtest_system_reset(d->qts);
    qpci_device_enable(d->pci);
    qpci_config_writel(d->pci, PCI_BASE_ADDRESS_0, d->bar.addr);
    qpci_config_writel(d->pci, PCI_BASE_ADDRESS_0 + 4, 0);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_VERSION), !=, 0);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_DEV_STATUS), ==, 0);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_NETDEV_MAC_L), ==, 0x00123456);
    qerdma_quit(d, NULL);
}

/* In a PCI Express slot a function level reset stops everything, too. */
static void test_flr(void)
{
    QErdma *d;
    QOSState *qs;
    QErdmaCmd cmd;
    uint8_t cap;
    int i;

    qs = qtest_pc_boot("-machine q35 -m 128 -nodefaults "
                       "-netdev hubport,id=port0,hubid=0 "
                       "-device erdma,id=rdma0,addr=5,netdev=port0,"
                       "mac=52:54:00:12:34:56");
    d = qerdma_new(qs, QERDMA_SLOT(0));
    qerdma_start(d, NULL);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    for (i = 0; i < 100; i++) {
        qerdma_cmd_queue(d, &cmd);
    }
    qerdma_cmd_ring_db(d);

    cap = qpci_find_capability(d->pci, PCI_CAP_ID_EXP, 0);
    g_assert_cmphex(cap, !=, 0);
    g_assert_cmphex(qpci_config_readl(d->pci, cap + PCI_EXP_DEVCAP) &
                    PCI_EXP_DEVCAP_FLR, !=, 0);
    qpci_config_writew(d->pci, cap + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
    qtest_memset(d->qts, d->cmd_cq, 0, d->cmd_depth * ERDMA_CQE_SIZE);
    qerdma_settle(d);
    for (i = 0; i < 100; i++) {
        g_assert_cmphex(qtest_readl(d->qts, d->cmd_cq + i * ERDMA_CQE_SIZE),
                        ==, 0);
    }
    qpci_device_enable(d->pci);
    qpci_config_writel(d->pci, PCI_BASE_ADDRESS_0, d->bar.addr);
    qpci_config_writel(d->pci, PCI_BASE_ADDRESS_0 + 4, 0);
    g_assert_false(is_ready(d));
    qerdma_quit(d, NULL);
}

static void flr(QErdma *d)
{
    uint8_t cap = qpci_find_capability(d->pci, PCI_CAP_ID_EXP, 0);

    qpci_config_writew(d->pci, cap + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
}

/* In the middle of transfers; then the driver starts again, as if new. */
static void test_flr_in_use(void)
{
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE, .n_sges = 1 };
    QErdmaPair p;
    QErdmaMr mr;
    QErdma *d;
    QOSState *qs;
    uint64_t cq_mem;
    int i, j;

    qs = qtest_pc_boot("-machine q35 -m 128 -nodefaults "
                       "-netdev hubport,id=port0,hubid=0 "
                       "-device erdma,id=rdma0,addr=5,netdev=port0,"
                       "mac=52:54:00:12:34:56");
    for (i = 0; i < 3; i++) {
        d = qerdma_new(qs, QERDMA_SLOT(0));
        qerdma_start(d, NULL);
        qerdma_pair_init(&p, d, d, 1, false);
        mr = (QErdmaMr) { 0 };
        qerdma_reg_simple(d, &mr, 1, 65536, QERDMA_ACC_ALL);
        wr.sges[0] = (QErdmaSge) { mr.addr, 65536, mr.key };
        wr.raddr = mr.addr;
        wr.rkey = mr.key;
        qerdma_expect_send(&p.qp[0], qerdma_post_send(&p.qp[0], &wr),
                           wr.opcode, 0);
        for (j = 0; j < 8; j++) {
            qerdma_post_send(&p.qp[0], &wr);
        }
        flr(d);
        cq_mem = p.cq[0].buf.pages[0];
        qtest_memset(d->qts, cq_mem, 0, 64 * ERDMA_CQE_SIZE);
        qerdma_settle(d);
        for (j = 0; j < 64; j++) {
            g_assert_cmphex(qtest_readl(d->qts, cq_mem + j * ERDMA_CQE_SIZE),
                            ==, 0);
        }
        g_assert_cmpuint(qerdma_objects(d, "qps"), ==, 0);
        g_assert_cmpuint(qerdma_objects(d, "mrs"), ==, 0);
        qerdma_free(d);
    }
    qtest_shutdown(qs);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/regs/identity", test_identity);
    qtest_add_func("/erdma/regs/reset-values", test_reset_values);
    qtest_add_func("/erdma/regs/mac", test_mac);
    qtest_add_func("/erdma/regs/read-only", test_read_only);
    qtest_add_func("/erdma/regs/reserved", test_reserved);
    qtest_add_func("/erdma/regs/wrong-width", test_wrong_width);
    qtest_add_func("/erdma/regs/half-doorbell", test_half_doorbell);
    qtest_add_func("/erdma/regs/init", test_init);
    qtest_add_func("/erdma/regs/init-refused", test_init_refused);
    qtest_add_func("/erdma/regs/before-init", test_before_init);
    qtest_add_func("/erdma/regs/reset", test_reset);
    qtest_add_func("/erdma/regs/reset-races", test_reset_races);
    qtest_add_func("/erdma/regs/reinit", test_reinit);
    qtest_add_func("/erdma/regs/system-reset", test_system_reset);
    qtest_add_func("/erdma/regs/flr", test_flr);
    qtest_add_func("/erdma/regs/flr-in-use", test_flr_in_use);
    return g_test_run();
}
