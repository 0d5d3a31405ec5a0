/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of next hops */

#include "qemu/osdep.h"
#include "erdma-neigh.h"

#define MS 1000000ull

static const uint8_t mac_a[] = { 0x52, 0x54, 0, 0, 0, 1 };
static const uint8_t mac_b[] = { 0x52, 0x54, 0, 0, 0, 2 };

static void assert_is(ErdmaNeigh *n, uint32_t ip, const uint8_t *mac)
{
    const uint8_t *found = erdma_neigh_lookup(n, ip);

    g_assert_nonnull(found);
    g_assert_cmpmem(found, 6, mac, 6);
}

static void test_learn(void)
{
    ErdmaNeigh *n = erdma_neigh_new(4);

    g_assert_null(erdma_neigh_lookup(n, 1));
    g_assert_true(erdma_neigh_learn(n, 1, mac_a));
    g_assert_false(erdma_neigh_learn(n, 1, mac_a));
    assert_is(n, 1, mac_a);
    /* moved */
    g_assert_true(erdma_neigh_learn(n, 1, mac_b));
    assert_is(n, 1, mac_b);
    /* news about those we do not talk to is none */
    g_assert_false(erdma_neigh_update(n, 2, mac_a));
    g_assert_null(erdma_neigh_lookup(n, 2));
    g_assert_true(erdma_neigh_update(n, 1, mac_a));
    assert_is(n, 1, mac_a);
    /* 0 is an address like any other */
    g_assert_true(erdma_neigh_learn(n, 0, mac_b));
    assert_is(n, 0, mac_b);
    erdma_neigh_clear(n);
    g_assert_null(erdma_neigh_lookup(n, 1));
    g_assert_true(erdma_neigh_learn(n, 1, mac_a));
    erdma_neigh_free(n);
    erdma_neigh_free(NULL);
}

static void test_eviction(void)
{
    ErdmaNeigh *n = erdma_neigh_new(4);
    uint32_t ip;

    for (ip = 1; ip <= 4; ip++) {
        erdma_neigh_learn(n, ip, mac_a);
    }
    /* 1 is in use, so 2 has to go. */
    assert_is(n, 1, mac_a);
    erdma_neigh_learn(n, 5, mac_b);
    g_assert_null(erdma_neigh_lookup(n, 2));
    assert_is(n, 3, mac_a);
    assert_is(n, 4, mac_a);
    assert_is(n, 5, mac_b);
    assert_is(n, 1, mac_a);
    /* A flood leaves the one that is used all the time. */
    for (ip = 100; ip < 10000; ip++) {
        erdma_neigh_learn(n, ip, mac_b);
        assert_is(n, 1, mac_a);
    }
    erdma_neigh_free(n);
}

static void test_ask(void)
{
    ErdmaNeigh *n = erdma_neigh_new(2);

    g_assert_true(erdma_neigh_ask(n, 1, 5 * MS));
    g_assert_false(erdma_neigh_ask(n, 1, 5 * MS));
    g_assert_false(erdma_neigh_ask(n, 1, 104 * MS));
    g_assert_true(erdma_neigh_ask(n, 1, 105 * MS));
    g_assert_null(erdma_neigh_lookup(n, 1));
    /* another address has its own clock */
    g_assert_true(erdma_neigh_ask(n, 2, 106 * MS));
    /* the answer */
    g_assert_true(erdma_neigh_update(n, 1, mac_a));
    assert_is(n, 1, mac_a);
    g_assert_false(erdma_neigh_ask(n, 1, 1000 * MS));
    erdma_neigh_free(n);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/shell/neigh/learn", test_learn);
    g_test_add_func("/shell/neigh/eviction", test_eviction);
    g_test_add_func("/shell/neigh/ask", test_ask);
    return g_test_run();
}
