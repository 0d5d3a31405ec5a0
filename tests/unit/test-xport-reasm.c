/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store of segments: order, duplicates, bounds. */

#include "qemu/osdep.h"
#include "xport/reasm.h"

static const uint8_t bytes[4096];
static ErdmaReasmPool pool = { .limit = 1 << 20 };

static ErdmaWireData segment(uint32_t msn, uint32_t off, uint32_t len)
{
    return (ErdmaWireData) {
        .msn = msn, .off = off, .len = len, .is_first = off == 0,
        .payload = bytes,
    };
}

static ErdmaReasmResult insert(ErdmaReasm *m, uint32_t msn, uint32_t off,
                               uint32_t len)
{
    ErdmaWireData d = segment(msn, off, len);

    return erdma_reasm_insert(m, &d, 65536);
}

/* Any order in, the serial order out, across the wrap of the MSN */
static void test_order(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    uint32_t msn = -8, n, i;
    unsigned order[256], round;
    ErdmaReasm m;

    erdma_reasm_init(&m, &pool);
    for (round = 0; round < 50; round++) {
        for (i = 0; i < 256; i++) {
            order[i] = i;
        }
        for (i = 255; i > 0; i--) {
            unsigned k = g_rand_int_range(rand, 0, i + 1);
            unsigned t = order[i];

            order[i] = order[k];
            order[k] = t;
        }
        for (i = 0; i < 256; i++) {
            g_assert_cmpint(insert(&m, msn + order[i] / 16,
                                   order[i] % 16 * 10, 10), ==,
                            ERDMA_REASM_STORED);
            g_assert_cmpint(insert(&m, msn + order[i] / 16,
                                   order[i] % 16 * 10 + 2, 5), ==,
                            ERDMA_REASM_DUPLICATE);
        }
        g_assert_cmpuint(m.bytes, ==, 2560);
        for (n = 0; n < 256; n++) {
            const ErdmaRxChunk *c = erdma_reasm_first(&m);

            g_assert_cmpuint(c->msn, ==, msn + n / 16);
            g_assert_cmpuint(c->off, ==, n % 16 * 10);
            erdma_reasm_pop(&m);
        }
        g_assert_null(erdma_reasm_first(&m));
        g_assert_null(m.v);
        g_assert_cmpuint(m.bytes, ==, 0);
    }
    erdma_reasm_destroy(&m);
}

/* First in, first out, for a long time: bounded memory */
static void test_queue(void)
{
    ErdmaReasm m;
    uint32_t i;

    erdma_reasm_init(&m, &pool);
    for (i = 0; i < 100000; i++) {
        g_assert_cmpint(insert(&m, i, 0, 10), ==, ERDMA_REASM_STORED);
        if (i >= 20) {
            g_assert_cmpuint(erdma_reasm_first(&m)->msn, ==, i - 20);
            erdma_reasm_pop(&m);
        }
    }
    g_assert_cmpuint(m.cap, <=, 64);
    erdma_reasm_destroy(&m);
}

/* Bytes are bounded, and so are chunks without bytes. */
static void test_bounds(void)
{
    ErdmaReasm m;
    uint32_t n;

    erdma_reasm_init(&m, &pool);
    for (n = 0; insert(&m, 1, 4096 * n, 4096) == ERDMA_REASM_STORED; n++) {
        continue;
    }
    g_assert_cmpuint(n, ==, 16);
    erdma_reasm_destroy(&m);
    for (n = 0; insert(&m, n, 0, 0) == ERDMA_REASM_STORED; n++) {
        continue;
    }
    g_assert_cmpuint(n, ==, 65536 / ERDMA_REASM_MSG_COST + 1);
    /* An empty message is known by its place. */
    g_assert_cmpint(insert(&m, 5, 0, 0), ==, ERDMA_REASM_DUPLICATE);
    erdma_reasm_destroy(&m);
}

/* Two stores that may hold less together than each alone */
static void test_together(void)
{
    ErdmaReasmPool small = { .limit = 3 * (4096 + ERDMA_REASM_MSG_COST) };
    ErdmaReasm a, b;

    erdma_reasm_init(&a, &small);
    erdma_reasm_init(&b, &small);
    g_assert_cmpint(insert(&a, 1, 0, 4096), ==, ERDMA_REASM_STORED);
    g_assert_cmpint(insert(&a, 1, 4096, 4096), ==, ERDMA_REASM_STORED);
    g_assert_cmpint(insert(&b, 1, 0, 4096), ==, ERDMA_REASM_STORED);
    g_assert_cmpint(insert(&b, 1, 8192, 1), ==, ERDMA_REASM_FULL);
    g_assert_cmpint(insert(&a, 1, 8192, 4096), ==, ERDMA_REASM_FULL);
    /* What is consumed, or goes with its connection, makes room. */
    erdma_reasm_pop(&a);
    g_assert_cmpint(insert(&b, 1, 4096, 4096), ==, ERDMA_REASM_STORED);
    erdma_reasm_destroy(&b);
    g_assert_cmpuint(small.held, ==, 4096 + ERDMA_REASM_MSG_COST);
    erdma_reasm_destroy(&a);
    g_assert_cmpuint(small.held, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/reasm/order", test_order);
    g_test_add_func("/erdma/xport/reasm/queue", test_queue);
    g_test_add_func("/erdma/xport/reasm/bounds", test_bounds);
    g_test_add_func("/erdma/xport/reasm/together", test_together);
    return g_test_run();
}
