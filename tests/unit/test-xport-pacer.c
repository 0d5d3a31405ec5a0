/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pacer keeps its rate, its burst and no grudge. */

#include "qemu/osdep.h"
#include "xport/pacer.h"

#define RATE    (125ULL * 1000 * 1000)      /* 1 Gbit/s, 8 ns per byte */

/* Sends as the pacer lets it; returns the packets within @ns. */
static unsigned run(ErdmaPacer *p, uint64_t *now_ns, uint64_t ns,
                    uint64_t rate, uint64_t burst, uint64_t slack_ns,
                    unsigned *n_wakes)
{
    uint64_t end_ns = *now_ns + ns;
    unsigned n = 0;

    while (*now_ns < end_ns) {
        ++*n_wakes;
        while (erdma_pacer_is_open(p, *now_ns, rate, burst)) {
            erdma_pacer_sent(p, 1000);
            n++;
        }
        *now_ns = erdma_pacer_next(p, rate, slack_ns);
    }
    return n;
}

static void test_rate(void)
{
    uint64_t now_ns = 500;
    unsigned n_wakes = 0;
    ErdmaPacer p;

    erdma_pacer_init(&p, now_ns);
    /* 10 ms of 8 us each, one at a time */
    g_assert_cmpint(abs((int)run(&p, &now_ns, 10000000, RATE, 0, 0,
                                 &n_wakes) - 1250), <=, 2);
    g_assert_cmpint(abs((int)n_wakes - 1250), <=, 2);
}

/* A coarse timer: fewer wake-ups, the same rate */
static void test_burst(void)
{
    uint64_t now_ns = 500;
    unsigned n_wakes = 0;
    ErdmaPacer p;

    erdma_pacer_init(&p, now_ns);
    g_assert_cmpint(abs((int)run(&p, &now_ns, 10000000, RATE, 25000, 100000,
                                 &n_wakes) - 1250), <=, 15);
    g_assert_cmpuint(n_wakes, <, 110);
}

static void test_idle(void)
{
    uint64_t now_ns = 0;
    ErdmaPacer p;
    unsigned n;

    erdma_pacer_init(&p, now_ns);
    for (n = 0; erdma_pacer_is_open(&p, 1000000000, RATE, 0); n++) {
        erdma_pacer_sent(&p, 1000);
    }
    g_assert_cmpuint(n, ==, 1);
    for (n = 0; erdma_pacer_is_open(&p, 2000000000, RATE, 5000); n++) {
        erdma_pacer_sent(&p, 1000);
    }
    g_assert_cmpuint(n, ==, 6);
}

/* A new rate applies to what is scheduled already. */
static void test_rescale(void)
{
    ErdmaPacer p;

    erdma_pacer_init(&p, 0);
    erdma_pacer_sent(&p, 1000);
    g_assert_cmpuint(erdma_pacer_next(&p, RATE, 0), ==, 8001);
    g_assert_cmpuint(erdma_pacer_next(&p, 2 * RATE, 0), ==, 4001);
    g_assert_false(erdma_pacer_is_open(&p, 4000, RATE, 0));
    g_assert_cmpuint(erdma_pacer_next(&p, 2 * RATE, 0), ==, 6001);
    g_assert_true(erdma_pacer_is_open(&p, 6001, 2 * RATE, 0));
    /* Nearly nothing is not an overflow. */
    erdma_pacer_sent(&p, 65535);
    g_assert_cmpuint(erdma_pacer_next(&p, 1, 0), <=, 6001 + 3600000000001ULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/pacer/rate", test_rate);
    g_test_add_func("/erdma/xport/pacer/burst", test_burst);
    g_test_add_func("/erdma/xport/pacer/idle", test_idle);
    g_test_add_func("/erdma/xport/pacer/rescale", test_rescale);
    return g_test_run();
}
