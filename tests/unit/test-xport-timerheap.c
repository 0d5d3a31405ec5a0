/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap of deadlines against a plain search. */

#include "qemu/osdep.h"
#include "xport/timerheap.h"

#define N   500

static void assert_first(const ErdmaTimerHeap *h, const ErdmaTimer *t)
{
    const ErdmaTimer *first = erdma_timerheap_first(h);
    uint64_t min_ns = UINT64_MAX;
    unsigned i, n = 0;

    for (i = 0; i < N; i++) {
        if (t[i].place) {
            g_assert_true(h->v[t[i].place - 1].timer == &t[i]);
            min_ns = MIN(min_ns, t[i].when_ns);
            n++;
        }
    }
    g_assert_cmpuint(n, ==, h->n);
    g_assert_true(!first == !n);
    if (first) {
        g_assert_cmpuint(first->when_ns, ==, min_ns);
    }
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    g_autofree ErdmaTimer *t = g_new0(ErdmaTimer, N);
    ErdmaTimerHeap h;
    unsigned i;

    erdma_timerheap_init(&h);
    assert_first(&h, t);
    for (i = 0; i < 20000; i++) {
        ErdmaTimer *x = &t[g_rand_int_range(rand, 0, N)];

        if (g_rand_int_range(rand, 0, 3)) {
            erdma_timerheap_set(&h, x, g_rand_int_range(rand, 0, 1000));
        } else {
            erdma_timerheap_cancel(&h, x);
        }
        assert_first(&h, t);
    }
    /* In order to the end */
    while (erdma_timerheap_first(&h)) {
        uint64_t when_ns = erdma_timerheap_first(&h)->when_ns;

        erdma_timerheap_cancel(&h, erdma_timerheap_first(&h));
        if (erdma_timerheap_first(&h)) {
            g_assert_cmpuint(erdma_timerheap_first(&h)->when_ns, >=, when_ns);
        }
    }
    erdma_timerheap_set(&h, &t[0], 1);
    erdma_timerheap_destroy(&h);
    g_assert_cmpuint(t[0].place, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/timerheap/random", test_random);
    return g_test_run();
}
