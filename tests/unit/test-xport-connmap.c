/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cookies to connections, against an array. */

#include "qemu/osdep.h"
#include "xport/connmap.h"

/* Few enough to meet again, so many that searches are long */
#define N   300

/* The map never looks inside. */
static ErdmaXportConn *conn(unsigned i)
{
    return (ErdmaXportConn *)(uintptr_t)(i + 1);
}

/* QPNs count up, an incarnation lies above them: as the device's do. */
static uint32_t cookie(unsigned i)
{
    return (i % 50) | (i / 50) << 20;
}

static void assert_same(const ErdmaConnMap *m, const bool *is_in)
{
    unsigned i, n = 0;

    for (i = 0; i < N; i++) {
        g_assert_true(erdma_connmap_find(m, cookie(i)) ==
                      (is_in[i] ? conn(i) : NULL));
        n += is_in[i];
    }
    g_assert_cmpuint(m->n, ==, n);
    g_assert_cmpuint(2 * m->n, <=, m->mask + 1);
    g_assert_null(erdma_connmap_find(m, 0xffffffff));
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    bool is_in[N] = { false };
    ErdmaConnMap m;
    unsigned i;

    erdma_connmap_init(&m);
    assert_same(&m, is_in);
    for (i = 0; i < 20000; i++) {
        unsigned k = g_rand_int_range(rand, 0, N);

        if (is_in[k]) {
            erdma_connmap_remove(&m, cookie(k));
        } else {
            erdma_connmap_add(&m, cookie(k), conn(k));
        }
        is_in[k] = !is_in[k];
        if (i % 16 == 0) {
            assert_same(&m, is_in);
        }
    }
    assert_same(&m, is_in);
    erdma_connmap_destroy(&m);
}

/* What was reserved is enough: nothing moves while so many are added. */
static void test_reserve(void)
{
    static const uint32_t sizes[] = { 0, 1, 8, 9, 1023, 1024, 131071 };
    unsigned i, k;

    for (i = 0; i < ARRAY_SIZE(sizes); i++) {
        const ErdmaConnSlot *v;
        ErdmaConnMap m;

        erdma_connmap_init(&m);
        m.secret = 5;
        erdma_connmap_reserve(&m, sizes[i]);
        g_assert_cmpuint(m.secret, ==, 5);
        v = m.v;
        for (k = 0; k < sizes[i]; k++) {
            erdma_connmap_add(&m, k << 8, conn(k % N));
        }
        g_assert_true(m.v == v);
        for (k = 0; k < sizes[i]; k++) {
            g_assert_true(erdma_connmap_find(&m, k << 8) == conn(k % N));
        }
        erdma_connmap_destroy(&m);
    }
}

/*
 * Cookies that a guest has chosen for one secret to meet in one place are
 * spread by another.
 */
static void test_chosen(void)
{
    enum { N_CHOSEN = 4096, N_SLOTS = 1 << 18 };
    g_autoptr(GHashTable) homes = g_hash_table_new(NULL, NULL);
    ErdmaConnMap known, m;
    uint32_t c, n = 0;

    erdma_connmap_init(&known);
    erdma_connmap_init(&m);
    known.mask = m.mask = N_SLOTS - 1;
    m.secret = known.secret ^ 0x00010203;
    for (c = 0; n < N_CHOSEN; c++) {
        if (erdma_connmap_home(&known, c) == 0) {
            g_hash_table_add(homes,
                             GUINT_TO_POINTER(erdma_connmap_home(&m, c)));
            n++;
        }
    }
    g_assert_cmpuint(g_hash_table_size(homes), >, N_CHOSEN * 9 / 10);
    erdma_connmap_destroy(&known);
    erdma_connmap_destroy(&m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/connmap/random", test_random);
    g_test_add_func("/erdma/xport/connmap/reserve", test_reserve);
    g_test_add_func("/erdma/xport/connmap/chosen", test_chosen);
    return g_test_run();
}
