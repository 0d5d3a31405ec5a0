/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two ends of a connection: what is sent arrives. */

#include "qemu/osdep.h"
#include "xport-rig.h"

static void test_sizes(void)
{
    static const uint32_t sizes[] = {
        0, 1, 31, 96, 1424, 1425, 1444, 1500, 65536, 1048577,
    };
    XportRig *rig = rig_new(NULL);
    unsigned i, op;

    rig_open_both(rig);
    for (op = ERDMA_XPORT_OP_SEND; op < ERDMA_XPORT_OP_COUNT; op++) {
        for (i = 0; i < ARRAY_SIZE(sizes); i++) {
            rig_send(rig, 0, op, sizes[i]);
            rig_send(rig, 1, op, sizes[ARRAY_SIZE(sizes) - 1 - i]);
        }
    }
    g_assert_true(rig_run_done(rig, rig->now_ns + 10 * RIG_S));
    g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 0)->probes, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 1)->rtos, ==, 0);
    g_assert_cmpuint(rig->end[0].rx_bytes, ==, rig->end[1].rx_bytes);
    /* Nothing happens any more once everything is done. */
    rig_run(rig, rig->now_ns + RIG_S);
    g_assert_cmpuint(rig->end[0].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->end[1].next_ns, ==, ERDMA_XPORT_NEVER);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/conn/sizes", test_sizes);
    return g_test_run();
}
