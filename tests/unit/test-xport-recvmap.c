/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Received packet numbers, against a plain set. */

#include "qemu/osdep.h"
#include "xport/recvmap.h"

#define PN0     0xfffffff0ULL       /* crosses 32 bits soon */

static void test_ranges(void)
{
    ErdmaWireRange r[8];
    ErdmaRecvMap m;

    erdma_recvmap_init(&m, PN0);
    g_assert_cmpuint(erdma_recvmap_largest(&m), ==, PN0 - 1);
    g_assert_cmpuint(erdma_recvmap_report(&m, PN0 - 1, r, 8), ==, 0);
    erdma_recvmap_add(&m, PN0);
    erdma_recvmap_add(&m, PN0 + 2);
    erdma_recvmap_add(&m, PN0 + 4);
    g_assert_cmpuint(erdma_recvmap_report(&m, PN0 + 4, r, 8), ==, 3);
    g_assert_cmphex(r[0].last, ==, (uint32_t)PN0 + 4);
    g_assert_cmphex(r[2].first, ==, (uint32_t)PN0);
    erdma_recvmap_add(&m, PN0 + 3);
    g_assert_cmpuint(erdma_recvmap_report(&m, PN0 + 3, r, 8), ==, 2);
    g_assert_cmphex(r[0].first, ==, (uint32_t)PN0 + 2);
    erdma_recvmap_add(&m, PN0 + 1);
    g_assert_cmpuint(erdma_recvmap_report(&m, PN0 + 1, r, 8), ==, 1);
    g_assert_cmphex(r[0].first, ==, (uint32_t)PN0);
    g_assert_cmphex(r[0].last, ==, (uint32_t)PN0 + 4);
    erdma_recvmap_destroy(&m);
}

/* What changed lately and the trigger are told, whatever else there is. */
static void test_report(void)
{
    ErdmaWireRange r[4];
    ErdmaRecvMap m;
    unsigned i, n;

    erdma_recvmap_init(&m, PN0);
    for (i = 0; i < 20; i += 2) {
        erdma_recvmap_add(&m, PN0 + i);
    }
    n = erdma_recvmap_report(&m, PN0, r, 4);
    g_assert_cmpuint(n, ==, 4);
    g_assert_cmphex(r[0].last, ==, (uint32_t)PN0 + 18);
    g_assert_cmphex(r[3].last, ==, (uint32_t)PN0);
    for (i = 0; i < 30; i++) {
        n = erdma_recvmap_report(&m, PN0 + 18, r, 4);
    }
    g_assert_cmpuint(n, ==, 1);
    erdma_recvmap_add(&m, PN0 + 5);
    n = erdma_recvmap_report(&m, PN0 + 5, r, 4);
    g_assert_cmpuint(n, ==, 2);
    g_assert_cmphex(r[1].first, ==, (uint32_t)PN0 + 4);
    g_assert_cmphex(r[1].last, ==, (uint32_t)PN0 + 6);
    erdma_recvmap_destroy(&m);
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    g_autoptr(GHashTable) set = g_hash_table_new(NULL, NULL);
    uint64_t head = PN0;
    ErdmaRecvMap m;
    unsigned i, k, n_unknown = 0;

    erdma_recvmap_init(&m, PN0);
    for (i = 0; i < 100000; i++) {
        uint64_t pn;

        head += g_rand_int_range(rand, 0, 4);
        pn = head - MIN(head - PN0, (uint64_t)g_rand_int_range(rand, 0, 200));
        if (erdma_recvmap_has(&m, pn)) {
            n_unknown += !g_hash_table_contains(set, GSIZE_TO_POINTER(pn));
            /* Not in the set only when it is too old to tell */
            g_assert_true(g_hash_table_contains(set, GSIZE_TO_POINTER(pn)) ||
                          pn < m.floor);
        } else {
            g_assert_false(g_hash_table_contains(set, GSIZE_TO_POINTER(pn)));
            erdma_recvmap_add(&m, pn);
            g_hash_table_add(set, GSIZE_TO_POINTER(pn));
            g_assert_true(erdma_recvmap_has(&m, pn));
        }
        g_assert_cmpuint(m.n, <=, ERDMA_RECVMAP_RANGES);
        for (k = 1; k < m.n; k++) {
            g_assert_cmpuint(erdma_recvmap_at(&m, k)->first, >,
                             erdma_recvmap_at(&m, k - 1)->last + 1);
        }
    }
    g_assert_cmpuint(n_unknown, >, 0);
    g_assert_cmpuint(n_unknown, <, 50000);
    erdma_recvmap_destroy(&m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/recvmap/ranges", test_ranges);
    g_test_add_func("/erdma/xport/recvmap/report", test_report);
    g_test_add_func("/erdma/xport/recvmap/random", test_random);
    return g_test_run();
}
