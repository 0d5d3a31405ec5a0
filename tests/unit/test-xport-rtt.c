/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Round-trip estimator and the timeouts derived from it. */

#include "qemu/osdep.h"
#include "xport/rtt.h"

#define US  1000ULL
#define MS  (1000 * US)
#define S   (1000 * MS)

static void test_estimate(void)
{
    ErdmaRtt r;

    erdma_rtt_init(&r);
    g_assert_cmpuint(erdma_rtt_min(&r), ==, 0);
    erdma_rtt_sample(&r, 0, 800 * US, 0);
    g_assert_cmpuint(r.srtt_ns, ==, 800 * US);
    g_assert_cmpuint(r.rttvar_ns, ==, 400 * US);
    erdma_rtt_sample(&r, 0, 1600 * US, 0);
    g_assert_cmpuint(r.srtt_ns, ==, 900 * US);
    g_assert_cmpuint(r.rttvar_ns, ==, 500 * US);
    g_assert_cmpuint(erdma_rtt_min(&r), ==, 800 * US);
    g_assert_cmpuint(r.latest_ns, ==, 1600 * US);
}

/* The peer's delay is taken off, but never below the minimum seen. */
static void test_delay(void)
{
    ErdmaRtt r;

    erdma_rtt_init(&r);
    erdma_rtt_sample(&r, 0, 100 * US, 50 * US);
    g_assert_cmpuint(r.latest_ns, ==, 100 * US);
    erdma_rtt_sample(&r, 0, 300 * US, 50 * US);
    g_assert_cmpuint(r.latest_ns, ==, 250 * US);
    erdma_rtt_sample(&r, 0, 300 * US, 4 * S);
    g_assert_cmpuint(r.latest_ns, ==, 100 * US);
}

/* A minimum is forgotten, but not before 10 s. */
static void test_min_window(void)
{
    ErdmaRtt r;

    erdma_rtt_init(&r);
    erdma_rtt_sample(&r, 1 * S, 100 * US, 0);
    erdma_rtt_sample(&r, 10 * S, 200 * US, 0);
    erdma_rtt_sample(&r, 12 * S, 200 * US, 0);
    g_assert_cmpuint(erdma_rtt_min(&r), ==, 100 * US);
    erdma_rtt_sample(&r, 23 * S, 200 * US, 0);
    g_assert_cmpuint(erdma_rtt_min(&r), ==, 200 * US);
}

static void test_timeouts(void)
{
    ErdmaRtt r;
    int i;

    erdma_rtt_init(&r);
    g_assert_cmpuint(erdma_rtt_pto(&r, 7 * MS, 1 * MS), ==, 7 * MS);
    g_assert_cmpuint(erdma_rtt_rto(&r, 7 * MS, 1 * MS, 0), ==, 14 * MS);
    erdma_rtt_sample(&r, 0, 800 * US, 0);
    g_assert_cmpuint(erdma_rtt_pto(&r, 0, 0), ==, 1600 * US);
    g_assert_cmpuint(erdma_rtt_pto(&r, 0, 50 * US), ==, 1650 * US);
    g_assert_cmpuint(erdma_rtt_rto(&r, 0, 0, 0), ==, 2400 * US);
    g_assert_cmpuint(erdma_rtt_rto(&r, 0, 9 * MS, 0), ==, 9 * MS);
    erdma_rtt_sample(&r, 0, 8 * MS, 0);
    g_assert_cmpuint(erdma_rtt_rto(&r, 0, 0, 0), ==,
                     r.srtt_ns + 4 * r.rttvar_ns);
    /* Constant samples: the timeout still leaves the probe its round trip. */
    for (i = 0; i < 1000; i++) {
        erdma_rtt_sample(&r, 0, 1 * MS, 0);
    }
    g_assert_cmpuint(erdma_rtt_rto(&r, 0, 0, 0), >=,
                     erdma_rtt_pto(&r, 0, 0) + r.srtt_ns);
    /* A probe is never due in the moment of the ack. */
    erdma_rtt_init(&r);
    erdma_rtt_sample(&r, 0, 0, 0);
    g_assert_cmpuint(erdma_rtt_pto(&r, 7 * MS, 0), >, 0);
}

static void test_backoff(void)
{
    g_assert_cmpuint(erdma_rtt_backoff(3, 0, 100), ==, 3);
    g_assert_cmpuint(erdma_rtt_backoff(3, 5, 100), ==, 96);
    g_assert_cmpuint(erdma_rtt_backoff(3, 6, 100), ==, 100);
    g_assert_cmpuint(erdma_rtt_backoff(3, 63, UINT64_MAX), ==, UINT64_MAX);
    g_assert_cmpuint(erdma_rtt_backoff(3, 200, 100), ==, 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/rtt/estimate", test_estimate);
    g_test_add_func("/erdma/xport/rtt/delay", test_delay);
    g_test_add_func("/erdma/xport/rtt/min-window", test_min_window);
    g_test_add_func("/erdma/xport/rtt/timeouts", test_timeouts);
    g_test_add_func("/erdma/xport/rtt/backoff", test_backoff);
    return g_test_run();
}
