/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Window algorithms, ack by ack. */

#include "qemu/osdep.h"
#include "xport/cc.h"

#define MSS     1000
#define MS      (1000ULL * 1000)
#define S       (1000 * MS)

static ErdmaCcConfig cfg = { .has_fast_convergence = true };

static void cc_init(ErdmaCc *cc, const ErdmaCcOps *ops)
{
    memset(cc, 0, sizeof(*cc));
    cc->ops = ops;
    cc->cfg = &cfg;
    cc->mss = MSS;
    ops->init(cc);
}

static void ack(ErdmaCc *cc, uint64_t now_ns, uint64_t bytes)
{
    ErdmaCcAck a = {
        .now_ns = now_ns, .bytes = bytes, .srtt_ns = 100 * MS,
        .is_limited = true,
    };

    cc->ops->ack(cc, &a);
}

/* A window's worth of acks over one round trip */
static void round_trip(ErdmaCc *cc, uint64_t *now_ns, uint64_t rtt_ns)
{
    uint64_t n = cc->cwnd / MSS, i;

    for (i = 0; i < n; i++) {
        *now_ns += rtt_ns / n;
        ack(cc, *now_ns, MSS);
    }
}

static void test_newreno(void)
{
    uint64_t now_ns = 0, before;
    ErdmaCc cc;
    int i;

    cc_init(&cc, &erdma_cc_newreno);
    g_assert_cmpuint(cc.cwnd, ==, 10 * MSS);
    round_trip(&cc, &now_ns, MS);
    g_assert_cmpuint(cc.cwnd, ==, 20 * MSS);
    cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
    g_assert_cmpuint(cc.cwnd, ==, 10 * MSS);
    g_assert_cmpuint(cc.ssthresh, ==, 10 * MSS);
    /* A packet per round trip */
    for (i = 0; i < 10; i++) {
        round_trip(&cc, &now_ns, MS);
    }
    g_assert_cmpuint(cc.cwnd, >, 19 * MSS);
    g_assert_cmpuint(cc.cwnd, <=, 20 * MSS);
    before = cc.cwnd;
    cc.ops->timeout(&cc, 8 * MSS, 0);
    g_assert_cmpuint(cc.cwnd, ==, MSS);
    g_assert_cmpuint(cc.ssthresh, ==, 4 * MSS);
    cc.ops->timeout(&cc, MSS, 0);
    g_assert_cmpuint(cc.ssthresh, ==, 4 * MSS);
    cc.ops->undo(&cc);
    g_assert_cmpuint(cc.cwnd, ==, before);
    g_assert_cmpuint(cc.ssthresh, ==, 10 * MSS);
}

/* No growth in recovery or while the window is not the limit */
static void test_gates(void)
{
    static const ErdmaCcOps *const ops[] = {
        &erdma_cc_newreno, &erdma_cc_cubic,
    };
    ErdmaCcAck a = { .bytes = 1000, .srtt_ns = MS };
    unsigned i;
    ErdmaCc cc;

    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        cc_init(&cc, ops[i]);
        cc.ops->ack(&cc, &a);
        g_assert_cmpuint(cc.cwnd, ==, 10 * MSS);
        a.is_limited = a.is_in_recovery = true;
        cc.ops->ack(&cc, &a);
        g_assert_cmpuint(cc.cwnd, ==, 10 * MSS);
        a.is_in_recovery = false;
        cc.ops->ack(&cc, &a);
        g_assert_cmpuint(cc.cwnd, ==, 11 * MSS);
        a.is_limited = false;
        /* Down to the floor and no further */
        cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
        cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
        cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
        cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
        cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
        g_assert_cmpuint(cc.cwnd, >=, 2 * MSS);
        g_assert_cmpuint(cc.cwnd, <, 3 * MSS);
        cc.ops->timeout(&cc, 0, 0);
        g_assert_cmpuint(cc.cwnd, ==, MSS);
        g_assert_cmpuint(cc.ssthresh, ==, 2 * MSS);
    }
}

/* 0.7 down, flat around the old maximum, then up: RFC 9438 section 4.2 */
static void test_cubic_curve(void)
{
    uint64_t now_ns = 0, rtt_ns = 100 * MS;
    double w_max = 1000.0 * MSS, k, w;
    ErdmaCc cc;

    cc_init(&cc, &erdma_cc_cubic);
    while (cc.cwnd < w_max) {
        ack(&cc, now_ns, MSS);
    }
    cc.ops->congestion(&cc, ERDMA_CC_LOSS, now_ns);
    g_assert_cmpuint(cc.cwnd, ==, 700 * MSS);
    k = 9.0856;                         /* cbrt(300 / 0.4) */
    ack(&cc, now_ns, 0);
    while (now_ns < 2 * k * S) {
        double t;

        round_trip(&cc, &now_ns, rtt_ns);
        t = now_ns / 1e9;
        w = 0.4 * (t - k) * (t - k) * (t - k) + 1000;
        g_assert_cmpfloat(cc.cwnd, >, (w - 15) * MSS);
        g_assert_cmpfloat(cc.cwnd, <, (w + 15) * MSS);
    }
    g_assert_cmpfloat(cc.cwnd, >, 1250 * MSS);
}

/* Fast convergence: below the last maximum a loss gives up more. */
static void test_cubic_convergence(void)
{
    ErdmaCc cc;

    cc_init(&cc, &erdma_cc_cubic);
    while (cc.cwnd < 100 * MSS) {
        ack(&cc, 0, MSS);
    }
    cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
    g_assert_cmpfloat(cc.u.cubic.s.w_max, ==, 100 * MSS);
    cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
    g_assert_cmpfloat(cc.u.cubic.s.w_max, ==, 70 * MSS * 1.7 / 2);
    cc.ops->undo(&cc);
    g_assert_cmpuint(cc.cwnd, ==, 70 * MSS);
    g_assert_cmpfloat(cc.u.cubic.s.w_max, ==, 100 * MSS);
}

/*
 * On a short path CUBIC is an AIMD: alpha 0.53 segments a round trip up to
 * the window before the loss, 1 from there on.
 */
static void test_cubic_friendly(void)
{
    uint64_t now_ns = 0, before;
    ErdmaCc cc;
    int i;

    cc_init(&cc, &erdma_cc_cubic);
    while (cc.cwnd < 100 * MSS) {
        ack(&cc, 0, MSS);
    }
    cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
    before = cc.cwnd;
    for (i = 0; i < 20; i++) {
        round_trip(&cc, &now_ns, MS / 20);
    }
    g_assert_cmpuint(cc.cwnd - before, >, 20 * 0.52 * MSS);
    g_assert_cmpuint(cc.cwnd - before, <, 20 * 0.54 * MSS);
    while (cc.cwnd < 100 * MSS) {
        round_trip(&cc, &now_ns, MS / 20);
    }
    before = cc.cwnd;
    for (i = 0; i < 20; i++) {
        round_trip(&cc, &now_ns, MS / 20);
    }
    g_assert_cmpuint(cc.cwnd - before, >, 19 * MSS);
    g_assert_cmpuint(cc.cwnd - before, <, 21 * MSS);
}

static void test_rate(void)
{
    ErdmaCc cc;

    cc_init(&cc, &erdma_cc_newreno);
    g_assert_cmpuint(cc.ops->rate(&cc, 0), ==, 0);
    g_assert_cmpuint(cc.ops->rate(&cc, MS), ==, 20 * MSS * 1000);
    cc.ops->congestion(&cc, ERDMA_CC_LOSS, 0);
    g_assert_cmpuint(cc.ops->rate(&cc, MS), ==, 6250 * 1000);
}

static void test_ecn_beta(void)
{
    ErdmaCc cc;

    cfg.ecn_beta = 0.8;
    cc_init(&cc, &erdma_cc_newreno);
    cc.ops->congestion(&cc, ERDMA_CC_ECN, 0);
    g_assert_cmpuint(cc.cwnd, ==, 8 * MSS);
    cc_init(&cc, &erdma_cc_cubic);
    cc.ops->congestion(&cc, ERDMA_CC_ECN, 0);
    g_assert_cmpuint(cc.cwnd, ==, 8 * MSS);
    cfg.ecn_beta = 0;
    cc_init(&cc, &erdma_cc_none);
    cc.ops->congestion(&cc, ERDMA_CC_ECN, 0);
    cc.ops->timeout(&cc, 0, 0);
    g_assert_cmpuint(cc.cwnd, ==, 10 * MSS);
}

/* A peer echoes whatever it likes: what comes of it is still a number. */
static void test_wild_int(void)
{
    ErdmaCcStack stack = { .n_hops = 1 };
    ErdmaCcAck ack = { .stack = &stack, .min_rtt_ns = 1, .rtt_ns = 1 };
    ErdmaCcInfo info = { 0 };
    ErdmaCc cc;
    unsigned i;

    cc_init(&cc, &erdma_cc_hpcc_int);
    for (i = 1; i < 100; i++) {
        ack.now_ns = ack.largest_pn = ack.next_pn = i;
        ack.has_largest = true;
        stack.hop[0] = (ErdmaCcHop) {
            .rate = 1, .time_ns = i, .tx_bytes = (uint64_t)i << 50,
            .queue = UINT32_MAX, .link_id = 1,
        };
        cc.ops->ack(&cc, &ack);
        cc.ops->info(&cc, &info);
        g_assert_cmpfloat(info.u, <=, ERDMA_CC_U_MAX);
    }
    g_assert_cmpfloat(info.u, >, ERDMA_CC_U_MAX / 2);
    cc.ops->destroy(&cc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/cc/newreno", test_newreno);
    g_test_add_func("/erdma/xport/cc/gates", test_gates);
    g_test_add_func("/erdma/xport/cc/cubic-curve", test_cubic_curve);
    g_test_add_func("/erdma/xport/cc/cubic-convergence",
                    test_cubic_convergence);
    g_test_add_func("/erdma/xport/cc/cubic-friendly", test_cubic_friendly);
    g_test_add_func("/erdma/xport/cc/rate", test_rate);
    g_test_add_func("/erdma/xport/cc/ecn-beta", test_ecn_beta);
    g_test_add_func("/erdma/xport/cc/wild-int", test_wild_int);
    return g_test_run();
}
