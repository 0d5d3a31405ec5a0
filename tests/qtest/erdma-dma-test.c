/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: a guest that aims DMA and interrupts
 * at registers, the device's own among them.
 */

#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "libqtest.h"
#include "libqos/erdma.h"
#include "libqos/erdma-nic.h"

#define PDN         3
#define ECAM        0xb0000000u
#define PCIEXBAR    0x60            /* of the q35 host bridge */
#define NIC_SLOT    6
#define NIC_IP      QERDMA_IP(1)
#define VNET_LEN    12
#define PORT_SLOT   3
#define PORT_MEMORY 0xeff0e000u     /* 0xe0000000 to 0xefffffff */
#define BEHIND_PORT 32              /* first "slot" of bus 1 */

/* As the first bytes of a frame, written to a device control register: FLR */
static const uint8_t nic_mac[6] = { 0x52, 0xd4, 0x00, 0x12, 0x34, 0x56 };
static const uint8_t hca_mac[6] = { 0x52, 0x54, 0x00, 0x00, 0x00, 0x01 };

/* A port with bus 1 behind it, where libqos puts its BARs */
static void enable_port(QOSState *qs)
{
    QPCIDevice *port = qpci_device_find(qs->pcibus,
                                        QPCI_DEVFN(PORT_SLOT, 0));

    qpci_config_writel(port, PCI_PRIMARY_BUS, 1 << 16 | 1 << 8);
    qpci_config_writel(port, PCI_MEMORY_BASE, PORT_MEMORY);
    qpci_config_writel(port, PCI_PREF_MEMORY_BASE, PORT_MEMORY);
    qpci_config_writel(port, PCI_PREF_BASE_UPPER32, 0);
    qpci_config_writel(port, PCI_PREF_LIMIT_UPPER32, 0);
    qpci_config_writew(port, PCI_COMMAND,
                       PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    g_free(port);
}

/*
 * One HCA on a machine with memory-mapped configuration space, on the root
 * bus or in a hot-plug port
 */
static QErdma *boot_with(const char *nic, bool has_port)
{
    g_autofree char *place = has_port ? g_strdup("bus=port0") :
                             g_strdup_printf("addr=%x", QERDMA_SLOT(0));
    QOSState *qs = qtest_pc_boot(
        "-machine q35 -m 128 -nodefaults -netdev hubport,id=n0,hubid=0 "
        "-device pcie-root-port,id=port0,chassis=1,addr=%x "
        "-device erdma,id=rdma0,netdev=n0,mac=52:54:00:00:00:01,%s %s",
        PORT_SLOT, place, nic);
    QPCIDevice *host = qpci_device_find(qs->pcibus, QPCI_DEVFN(0, 0));

    qpci_config_writel(host, PCIEXBAR + 4, 0);
    qpci_config_writel(host, PCIEXBAR, ECAM | 1);
    g_free(host);
    if (has_port) {
        enable_port(qs);
    }
    return qerdma_new(qs, has_port ? BEHIND_PORT : QERDMA_SLOT(0));
}

static QErdma *boot(void)
{
    return boot_with("", false);
}

static uint64_t ecam(QErdma *d, unsigned reg)
{
    return ECAM + (d->pci->devfn << 12) + reg;
}

/* An RDMA write of 4 bytes to ourselves, to the bus address @addr */
static void expect_no_write(QErdma *d, uint64_t addr)
{
    uint64_t page = addr & ~0xfffull;
    QErdmaRegMr reg = {
        .type = ERDMA_MR_TYPE_NORMAL, .access = QERDMA_ACC_ALL,
        .start = page, .len = 4096, .n_pages = 1, .pages = &page,
    };
    QErdmaMr mr = { .pdn = PDN };
    QErdmaPair p = { 0 };
    uint32_t word = 0x40;
    QErdmaSend wr = {
        .opcode = ERDMA_OP_WRITE, .is_inline = true, .data = &word,
        .data_len = 4, .raddr = addr,
    };

    g_assert_cmpint(qerdma_reg_mr(d, &mr, &reg), ==, 0);
    wr.rkey = mr.key;
    qerdma_pair_init(&p, d, d, PDN, true);
    qerdma_expect_send(&p.qp[0], qerdma_post_send(&p.qp[0], &wr), wr.opcode,
                       ERDMA_WC_GENERAL_ERR);
    g_assert_cmpuint(qerdma_stat(d, "dma-errors"), >, 0);
}

static void test_own_registers(void)
{
    QErdma *d = boot();
    uint32_t old;

    qerdma_start(d, NULL);
    old = qerdma_read32(d, A_ERDMA_CMDQ_SQ_ADDR_L);
    expect_no_write(d, d->bar.addr + A_ERDMA_CMDQ_SQ_ADDR_L);
    g_assert_cmphex(qerdma_read32(d, A_ERDMA_CMDQ_SQ_ADDR_L), ==, old);
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

static void test_own_config(void)
{
    QErdma *d = boot();
    uint8_t old;

    g_assert_cmphex(qtest_readw(d->qts, ecam(d, PCI_VENDOR_ID)), ==,
                    ERDMA_PCI_VENDOR_ID);
    qerdma_start(d, NULL);
    old = qpci_config_readb(d->pci, PCI_INTERRUPT_LINE);
    g_assert_cmphex(old, !=, 0x40);
    expect_no_write(d, ecam(d, PCI_INTERRUPT_LINE));
    g_assert_cmphex(qpci_config_readb(d->pci, PCI_INTERRUPT_LINE), ==, old);
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

static void aim_vector(QErdma *d, unsigned vector, uint32_t addr,
                       uint32_t data)
{
    QPCIDevice *pci = d->pci;
    uint64_t entry = pci->msix_table_off + vector * PCI_MSIX_ENTRY_SIZE;

    qpci_io_writel(pci, pci->msix_table_bar,
                   entry + PCI_MSIX_ENTRY_LOWER_ADDR, addr);
    qpci_io_writel(pci, pci->msix_table_bar,
                   entry + PCI_MSIX_ENTRY_UPPER_ADDR, 0);
    qpci_io_writel(pci, pci->msix_table_bar, entry + PCI_MSIX_ENTRY_DATA,
                   data);
}

static bool is_reset(void *opaque)
{
    QErdma *d = opaque;

    return !(qpci_config_readw(d->pci, PCI_COMMAND) & PCI_COMMAND_MEMORY);
}

/* After a reset it is as good as new. */
static void expect_new(QErdma *d)
{
    QErdma *again = qerdma_new(d->qs, QERDMA_SLOT(0));

    g_assert_cmphex(qerdma_read32(again, A_ERDMA_DEV_STATUS), ==, 0);
    g_assert_cmpuint(qerdma_objects(again, "qps"), ==, 0);
    qerdma_start(again, NULL);
    g_assert_cmpint(qerdma_query_device(again), ==, 0);
    qerdma_free(d);
    qerdma_quit(again, NULL);
}

static unsigned device_control(QErdma *d)
{
    uint8_t cap = qpci_find_capability(d->pci, PCI_CAP_ID_EXP, 0);

    g_assert_cmpuint(cap, !=, 0);
    return cap + PCI_EXP_DEVCTL;
}

/*
 * A completion's interrupt is a message that resets the function, in the
 * middle of the work that the doorbell started.
 */
static void test_interrupt_resets(void)
{
    QErdma *d = boot();
    QErdmaPair p = { 0 };
    QErdmaMr mr[2] = { 0 };
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE, .n_sges = 1 };
    unsigned devctl = device_control(d);
    unsigned devcap = devctl - PCI_EXP_DEVCTL + PCI_EXP_DEVCAP;
    unsigned i;

    g_assert_cmphex(qpci_config_readl(d->pci, devcap) &
                    PCI_EXP_DEVCAP_FLR, !=, 0);
    qerdma_start(d, NULL);
    for (i = 0; i < 2; i++) {
        qerdma_reg_simple(d, &mr[i], PDN, 4096, QERDMA_ACC_ALL);
    }
    qerdma_pair_init(&p, d, d, PDN, true);
    for (i = 1; i < d->n_vectors; i++) {
        aim_vector(d, i, ecam(d, devctl),
                   PCI_EXP_DEVCTL_BCR_FLR);
    }
    qerdma_arm_cq(&p.cq[0], false);
    wr.raddr = mr[1].addr;
    wr.rkey = mr[1].key;
    wr.sges[0] = (QErdmaSge) { mr[0].addr, 4096, mr[0].key };
    for (i = 0; i < 8; i++) {
        qerdma_queue_send(&p.qp[0], &wr);
    }
    qerdma_sq_db(&p.qp[0]);
    g_assert_true(qerdma_wait(d, is_reset, d, 1000 * 1000 * 1000));
    expect_new(d);
}

/* The next frame that the NIC receives is written to @addr. */
static void aim_nic(QErdmaNic *nic, unsigned n_frames, uint64_t addr)
{
    uint64_t desc = nic->rx->desc + n_frames * 16;

    qtest_writeq(nic->qs->qts, desc, addr - VNET_LEN);
    qtest_writel(nic->qs->qts, desc + 8, VNET_LEN + 64);
}

/*
 * Our frames reach another NIC of the same guest at once, and its receive
 * buffers are where the guest wants them: a frame resets the function, while
 * it sends.
 */
static QErdma *boot_with_nic(QErdmaNic **nic, bool has_port)
{
    g_autofree char *args = g_strdup_printf(
        "-netdev hubport,id=n1,hubid=0 -device virtio-net-pci,netdev=n1,"
        "romfile=,mac=52:d4:00:12:34:56,addr=%x", NIC_SLOT);
    QErdma *d = boot_with(args, has_port);

    *nic = qerdma_nic_new(d->qs, NIC_SLOT);
    return d;
}

static void rts_cmd(QErdmaCmd *cmd, QErdmaQp *qp)
{
    qerdma_rts_cmd(cmd, qp, qp);
    stl_be_p(cmd->raw + A_ERDMA_CMD_MODIFY_QP_DIP, NIC_IP);
}

/* MODIFY_QP asks for the peer's address. */
static void test_question_resets(void)
{
    QErdmaPair p = { 0 };
    QErdmaNic *nic;
    QErdma *d = boot_with_nic(&nic, false);
    unsigned devctl = device_control(d);
    QErdmaCmd cmd;

    qerdma_start(d, NULL);
    qerdma_pair_create(&p, d, d, PDN, true);
    aim_nic(nic, 0, ecam(d, devctl));
    rts_cmd(&cmd, &p.qp[0]);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    g_assert_true(qerdma_wait(d, is_reset, d, 1000 * 1000 * 1000));
    qerdma_nic_free(nic);
    expect_new(d);
}

/* Address of the port's slot control register */
static uint64_t slot_control(QErdma *d)
{
    QPCIDevice *port = qpci_device_find(d->qs->pcibus,
                                        QPCI_DEVFN(PORT_SLOT, 0));
    uint8_t cap = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);
    uint64_t addr = ECAM + (port->devfn << 12) + cap + PCI_EXP_SLTCTL;

    g_assert_cmpuint(cap, !=, 0);
    g_free(port);
    return addr;
}

static bool is_gone(void *opaque)
{
    QErdma *d = opaque;

    return qpci_config_readw(d->pci, PCI_VENDOR_ID) == 0xffff;
}

static void test_question_unplugs(void)
{
    QErdmaPair p = { 0 };
    QErdmaNic *nic;
    QErdma *d = boot_with_nic(&nic, true);
    QErdmaCmd cmd;

    qerdma_start(d, NULL);
    qerdma_pair_create(&p, d, d, PDN, true);
    /* Power and its indicator off: all bits are set. */
    aim_nic(nic, 0, slot_control(d));
    rts_cmd(&cmd, &p.qp[0]);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    g_assert_true(qerdma_wait(d, is_gone, d, 1000 * 1000 * 1000));
    qerdma_nic_free(nic);
    qerdma_quit(d, NULL);
}

/*
 * An interrupt that is late, and unplugs the device, when the machine stops.
 * Nothing but its users holds on to the device, as no BAR is mapped.
 */
static void test_stop_unplugs(void)
{
    QErdma *d = boot_with("", true);
    QErdmaCmd cmd;

    qerdma_start(d, NULL);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'object-add', "
                             "'arguments': { 'qom-type': 'erdma-fault', "
                             "'id': 'late', 'device': 'rdma0', "
                             "'on': 'interrupt', 'vector': 0, "
                             "'action': 'delay', 'delay-us': 60000000 } }");
    aim_vector(d, 0, slot_control(d),
               PCI_EXP_SLTCTL_PWR_IND_OFF | PCI_EXP_SLTCTL_PWR_OFF);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    qerdma_settle(d);
    qpci_config_writew(d->pci, PCI_COMMAND, PCI_COMMAND_MASTER);
    g_assert_false(is_gone(d));
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'stop' }");
    g_assert_false(is_gone(d));
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'cont' }");
    g_assert_true(qerdma_wait(d, is_gone, d, 1000 * 1000 * 1000));
    qerdma_quit(d, NULL);
}

static void test_frame_resets(void)
{
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE, .n_sges = 1 };
    uint8_t frame[QERDMA_FRAME_MAX];
    QErdmaPair p = { 0 };
    QErdmaMr mr = { 0 };
    QErdmaNic *nic;
    QErdma *d = boot_with_nic(&nic, false);
    unsigned devctl = device_control(d);
    QErdmaCmd cmd;
    unsigned i;
    size_t len;

    qerdma_start(d, NULL);
    qerdma_pair_create(&p, d, d, PDN, true);
    qerdma_reg_simple(d, &mr, PDN, 16384, QERDMA_ACC_ALL);
    rts_cmd(&cmd, &p.qp[0]);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), ==, 0);
    g_assert_cmpuint(qerdma_nic_recv(nic, frame), >, 0);
    len = qerdma_arp_frame(frame, 2, nic_mac, NIC_IP, hca_mac, d->ip);
    qerdma_nic_send(nic, frame, len);
    aim_nic(nic, 1, ecam(d, devctl));
    wr.sges[0] = (QErdmaSge) { mr.addr, 16384, mr.key };
    for (i = 0; i < 8; i++) {
        qerdma_queue_send(&p.qp[0], &wr);
    }
    qerdma_sq_db(&p.qp[0]);
    g_assert_true(qerdma_wait(d, is_reset, d, 1000 * 1000 * 1000));
    qerdma_nic_free(nic);
    expect_new(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/dma/own-registers", test_own_registers);
    qtest_add_func("/erdma/dma/own-config", test_own_config);
    qtest_add_func("/erdma/dma/interrupt-resets", test_interrupt_resets);
    qtest_add_func("/erdma/dma/question-resets", test_question_resets);
    qtest_add_func("/erdma/dma/frame-resets", test_frame_resets);
    qtest_add_func("/erdma/dma/question-unplugs", test_question_unplugs);
    qtest_add_func("/erdma/dma/stop-unplugs", test_stop_unplugs);
    return g_test_run();
}
