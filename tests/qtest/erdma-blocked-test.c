/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: a network that takes nothing.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"
#include "libqos/erdma-nic.h"

#define PDN         1
#define ETH_P_ARP   0x0806
#define OTHER_IP    0x0a0000c8u

/*
 * The network takes nothing, as no NIC on it has a driver, and the guest makes
 * the device ask for one address after the other: few of the questions are
 * kept.  They leave when there is room, and the device goes on.
 */
static void test_questions(void)
{
    uint8_t frame[QERDMA_FRAME_MAX];
    QErdma other_dev = { 0 };
    QErdmaQp other = { .dev = &other_dev, .cookie = 0x12300001 };
    QErdmaPair p = { 0 };
    QErdma *d[2];
    QErdmaNic *nic;
    QErdmaCmd cmd;
    uint32_t first = 0;
    unsigned i;

    qerdma_boot_two(d, NULL, NULL);
    qerdma_start(d[0], NULL);
    qerdma_pair_create(&p, d[0], d[0], PDN, false);
    for (i = 0; i < 1000; i++) {
        other_dev.ip = OTHER_IP + i;
        qerdma_rts_cmd(&cmd, &p.qp[0], &other);
        g_assert_cmpint(qerdma_cmd_exec(d[0], &cmd, NULL), ==, 0);
    }
    g_assert_cmpuint(qerdma_stat(d[0], "arp-asked"), ==, 1000);
    g_assert_cmpuint(qerdma_stat(d[0], "tx-blocked"), ==, 1);
    g_assert_cmpuint(qerdma_stat(d[0], "tx-no-wire"), ==, 1000 - 1 - 256);

    nic = qerdma_nic_new(d[0]->qs, QERDMA_NIC_SLOT(1));
    for (i = 0; i < QERDMA_NIC_FRAMES; i++) {
        qerdma_settle(d[0]);
        g_assert_cmpuint(qerdma_nic_recv(nic, frame), >=, 42);
        g_assert_cmphex(lduw_be_p(frame + 12), ==, ETH_P_ARP);
        if (!first) {
            /* A NIC that is reset throws away what is there. */
            first = ldl_be_p(frame + 38);
            g_assert_cmphex(first, <, OTHER_IP + 16);
        }
        g_assert_cmphex(ldl_be_p(frame + 38), ==, first + i);
    }
    qerdma_nic_free(nic);
    qerdma_quit(d[0], d[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/blocked/questions", test_questions);
    return g_test_run();
}
