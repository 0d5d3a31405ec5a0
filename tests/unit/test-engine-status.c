/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Status codes: the tables of the interface, and who is not believed.
 */

#include "qemu/osdep.h"
#include "engine/status.h"

static void test_regions(void)
{
    static const struct {
        ErdmaMrStatus s;
        uint8_t local;
        uint8_t remote;
    } t[] = {
        { ERDMA_MR_OK, 0, 0 },
        { ERDMA_MR_ERR_KEY, 10, 3 },
        { ERDMA_MR_ERR_RANGE, 11, 4 },
        { ERDMA_MR_ERR_RIGHT, 12, 5 },
        { ERDMA_MR_ERR_PD, 13, 6 },
        { ERDMA_MR_ERR_WRAP, 14, 7 },
        { ERDMA_MR_ERR_DMA, 1, 1 },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(t); i++) {
        g_assert_cmpuint(erdma_status_local(t[i].s), ==, t[i].local);
        g_assert_cmpuint(erdma_status_remote(t[i].s), ==, t[i].remote);
    }
}

static void test_peer(void)
{
    unsigned i;

    for (i = 0; i < 256; i++) {
        g_assert_cmpuint(erdma_status_from_peer(i), ==,
                         i >= 3 && i <= 7 ? i : 1);
    }
}

static void test_opcode(void)
{
    /* What a driver may find in the completion of a send entry */
    static const uint8_t good[] = { 0, 1, 2, 3, 9, 13, 14, 15, 16, 17, 18 };
    unsigned i, k;

    for (i = 0; i < 256; i++) {
        bool is_good = false;

        for (k = 0; k < ARRAY_SIZE(good); k++) {
            is_good |= good[k] == i;
        }
        g_assert_cmpuint(erdma_status_sq_opcode(i), ==, is_good ? i : 0);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/status/regions", test_regions);
    g_test_add_func("/status/peer", test_peer);
    g_test_add_func("/status/opcode", test_opcode);
    return g_test_run();
}
