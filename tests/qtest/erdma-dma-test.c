/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: a guest that aims DMA and interrupts
 * at registers, the device's own among them.
 */

#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define PDN         3
#define ECAM        0xb0000000u
#define PCIEXBAR    0x60            /* of the q35 host bridge */

/* One HCA on a machine with memory-mapped configuration space */
static QErdma *boot(void)
{
    QOSState *qs = qtest_pc_boot(
        "-machine q35 -m 128 -nodefaults -netdev hubport,id=n0,hubid=0 "
        "-device erdma,id=rdma0,netdev=n0,mac=52:54:00:00:00:01,addr=%x",
        QERDMA_SLOT(0));
    QPCIDevice *host = qpci_device_find(qs->pcibus, QPCI_DEVFN(0, 0));

    qpci_config_writel(host, PCIEXBAR + 4, 0);
    qpci_config_writel(host, PCIEXBAR, ECAM | 1);
    g_free(host);
    return qerdma_new(qs, QERDMA_SLOT(0));
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

/*
 * A completion's interrupt is a message that resets the function, in the
 * middle of the work that the doorbell started.
 */
static void test_interrupt_resets(void)
{
    QErdma *d = boot();
    QErdma *again;
    QErdmaPair p = { 0 };
    QErdmaMr mr[2] = { 0 };
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE, .n_sges = 1 };
    uint8_t cap = qpci_find_capability(d->pci, PCI_CAP_ID_EXP, 0);
    unsigned i;

    g_assert_cmpuint(cap, !=, 0);
    g_assert_cmphex(qpci_config_readl(d->pci, cap + PCI_EXP_DEVCAP) &
                    PCI_EXP_DEVCAP_FLR, !=, 0);
    qerdma_start(d, NULL);
    for (i = 0; i < 2; i++) {
        qerdma_reg_simple(d, &mr[i], PDN, 4096, QERDMA_ACC_ALL);
    }
    qerdma_pair_init(&p, d, d, PDN, true);
    for (i = 1; i < d->n_vectors; i++) {
        aim_vector(d, i, ecam(d, cap + PCI_EXP_DEVCTL),
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

    /* as good as new */
    again = qerdma_new(d->qs, QERDMA_SLOT(0));
    g_assert_cmphex(qerdma_read32(again, A_ERDMA_DEV_STATUS), ==, 0);
    g_assert_cmpuint(qerdma_objects(again, "qps"), ==, 0);
    qerdma_start(again, NULL);
    g_assert_cmpint(qerdma_query_device(again), ==, 0);
    qerdma_free(d);
    qerdma_quit(again, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/dma/own-registers", test_own_registers);
    qtest_add_func("/erdma/dma/own-config", test_own_config);
    qtest_add_func("/erdma/dma/interrupt-resets", test_interrupt_resets);
    return g_test_run();
}
