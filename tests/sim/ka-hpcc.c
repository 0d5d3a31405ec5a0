/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known answers of the HPCC family: KA-12 to KA-17, and KA-20. */

#include "qemu/osdep.h"
#include <math.h>
#include "ka.h"

#define BDP     125000.0

static char *label(const char *kind, unsigned n, unsigned w_ai,
                   const char *what)
{
    return g_strdup_printf("%sN = %u, W_AI = %u: %s", kind, n, w_ai, what);
}

static void hpcc_init(Ka *ka, unsigned n, unsigned w_ai)
{
    ka_init(ka);
    ka->topo.n = n;
    ka->topo.nic_jitter_ns = MTU * 8 * GBIT / ka->topo.link.rate_bps;
    /* The jitter's mean is part of the path. */
    ka->topo.rtt_ns -= ka->topo.nic_jitter_ns / 2;
    ka->cfg.xport.cc.base_rtt_ns = 40 * US;
    ka->cfg.xport.cc.w_ai = w_ai;
}

static void steady(Ka *ka, uint8_t cc, unsigned warm_rtts, unsigned rtts)
{
    ka_build(ka);
    ka_flows(ka, cc, 200 * US, 2 * US);
    ka_run(ka, warm_rtts * 40 * US);
    ka_measure(ka);
    ka_run(ka, rtts * 40 * US);
}

/* KA-12: U* = eta + N W_AI / BDP */
void ka_12(void)
{
    static const unsigned n[] = { 4, 8, 16, 32, 16, 32 };
    static const unsigned w_ai[] = { 400, 400, 400, 400, 1600, 1600 };
    unsigned i;

    ka_begin("KA-12 HPCC_INT");
    for (i = 0; i < ARRAY_SIZE(n); i++) {
        double u = 0.95 + n[i] * w_ai[i] / BDP;
        g_autofree char *use = label("", n[i], w_ai[i],
                                     "utilisation");
        g_autofree char *queue = label("", n[i], w_ai[i],
                                       "queue");
        Ka ka;

        hpcc_init(&ka, n[i], w_ai[i]);
        steady(&ka, ERDMA_XPORT_CC_HPCC_INT, 400, 600);
        ka_range(use, "", ka_utilisation(&ka), MIN(u, 1), 0.02, 0.01);
        if (u < 0.99) {
            ka_at_most(queue, "BDP", ka_queue(&ka) / BDP, 0.025);
        } else if (u > 1.04) {
            double tolerance = 0.12 * (u - 1) + 2 * MTU / BDP;

            ka_range(queue, "BDP", ka_queue(&ka) / BDP, u - 1, tolerance,
                     tolerance);
        }
        ka_free(&ka);
    }
}

/* KA-13: the newcomer's excess decays with 1 / ln(U* / eta) round trips */

static double excess(const Ka *ka)
{
    double w[3];
    unsigned i;

    for (i = 0; i < 3; i++) {
        ErdmaXportConnInfo info;

        sim_flow_info(ka->s, i, &info);
        w[i] = info.cc.reference;
    }
    return w[2] / ((w[0] + w[1]) / 2) - 1;
}

static void newcomer(unsigned w_ai)
{
    double u = 0.95 + 3 * w_ai / BDP;
    double tau = 1 / log(u / 0.95), start, at;
    g_autofree char *what = g_strdup_printf("W_AI = %u: time constant", w_ai);
    g_autofree char *first = g_strdup_printf("W_AI = %u: starts with more, "
                                             "times", w_ai);
    double sum_x = 0, sum_y = 0, sum_xy = 0, sum_xx = 0, slope;
    unsigned n = 0, i;
    Ka ka;

    hpcc_init(&ka, 3, w_ai);
    ka_build(&ka);
    ka_flow(&ka, 0, ERDMA_XPORT_CC_HPCC_INT, ENDLESS, 0, 200 * US);
    ka_flow(&ka, 1, ERDMA_XPORT_CC_HPCC_INT, ENDLESS, 0, 202 * US);
    ka_flow(&ka, 2, ERDMA_XPORT_CC_HPCC_INT, ENDLESS, 0, 40200 * US);
    ka_run(&ka, 40200 * US);
    /* The burst of its first window is over after some round trips. */
    ka_run(&ka, 6 * 40 * US);
    start = excess(&ka);
    for (i = 0; i < 2 * tau; i++) {
        ka_run(&ka, 40 * US);
        at = excess(&ka) / start;
        if (at > 0.05) {
            sum_x += i;
            sum_y += log(at);
            sum_xy += i * log(at);
            sum_xx += (double)i * i;
            n++;
        }
    }
    ka_range(first, "", start + 1, 2, 0.6, 0.6);
    /* The slope of a straight line through the logarithms */
    slope = n * sum_xy - sum_x * sum_y;
    slope /= n * sum_xx - sum_x * sum_x;
    ka_near(what, "RTT", -1 / slope, tau, 0.3);
    ka_free(&ka);
}

void ka_13(void)
{
    ka_begin("KA-13 newcomer");
    newcomer(2000);
    newcomer(1000);
}

/* KA-14: N senders start together at line rate */

static void incast(unsigned n)
{
    g_autofree char *peak = g_strdup_printf("N = %u: highest queue", n);
    g_autofree char *calm = g_strdup_printf("N = %u: below 0.1 BDP for good "
                                            "after", n);
    g_autofree char *later = g_strdup_printf("N = %u: highest after 1.8 N T",
                                             n);
    g_autofree char *lost = g_strdup_printf("N = %u: lost packets", n);
    double max = 0, max_later = 0, calm_t = 0;
    unsigned i;
    Ka ka;

    /* W_AI for the largest N: the queue's equilibrium is none, U* <= 1. */
    hpcc_init(&ka, n, 0);
    ka.cfg.xport.cc.n_flows = 32;
    ka.topo.kind = SIM_TOPO_INCAST;
    ka_build(&ka);
    ka_flows(&ka, ERDMA_XPORT_CC_HPCC_INT, 200 * US, 0);
    ka_run(&ka, 200 * US);
    ka_measure(&ka);
    for (i = 1; i <= 40 * n * 10; i++) {
        double q;

        ka_run(&ka, 4 * US);
        q = netem_link_queue(sim_link(ka.s, ka.t->link[0])) / BDP;
        max = MAX(max, q);
        if (q >= 0.1) {
            calm_t = (i + 1) / 10.0;
        }
        if (i > 18 * n) {
            max_later = MAX(max_later, q);
        }
    }
    ka_near(peak, "BDP", max, n - 1, 0.05);
    ka_at_most(calm, "T", calm_t, 1.8 * n);
    ka_at_most(later, "BDP", max_later, 0.1);
    ka_exact(lost, "", sim_link_stats(ka.s, ka.t->link[0])->drop_queue, 0);
    ka_free(&ka);
}

void ka_14(void)
{
    ka_begin("KA-14 incast");
    incast(4);
    incast(16);
    incast(32);
}

/* KA-15: q* = delta BDP + N W_AI + one packet */
void ka_15(void)
{
    static const unsigned n[] = { 4, 16, 16 };
    static const double delta[] = { 0.05, 0.05, 0.10 };
    unsigned i;

    ka_begin("KA-15 HPCC_RTT");
    for (i = 0; i < ARRAY_SIZE(n); i++) {
        double q = delta[i] + (n[i] * 400 + MTU) / BDP;
        g_autofree char *head = g_strdup_printf("N = %u, delta = %g", n[i],
                                                delta[i]);
        g_autofree char *queue = g_strconcat(head, ": queue", NULL);
        g_autofree char *use = g_strconcat(head, ": utilisation", NULL);
        g_autofree char *fair = g_strconcat(head, ": Jain's index", NULL);
        Ka ka;

        hpcc_init(&ka, n[i], 400);
        ka.cfg.xport.cc.delta = delta[i];
        steady(&ka, ERDMA_XPORT_CC_HPCC_RTT, 1000, 1000);
        ka_range(queue, "BDP", ka_queue(&ka) / BDP, q, 0.2 * q + MTU / BDP,
                 0.2 * q + MTU / BDP);
        ka_at_least(use, "", ka_utilisation(&ka), 0.98);
        ka_at_least(fair, "", ka_jain(&ka), 0.97);
        ka_free(&ka);
    }
}

/* KA-16: additive mode, a step and a ramp of marks */

static void step(unsigned n, double packets)
{
    g_autofree char *queue = label("step, ", n, 1000,
                                   "queue");
    g_autofree char *use = label("step, ", n, 1000,
                                 "utilisation");
    g_autofree char *fair = label("step, ", n, 1000,
                                  "Jain's index");
    Ka ka;

    hpcc_init(&ka, n, 1000);
    ka.cfg.xport.cc.has_ecn_probe = false;
    ka.topo.link.ecn_kmin = ka.topo.link.ecn_kmax = 20 * MTU;
    ka.topo.link.ecn_pmax = 1;
    steady(&ka, ERDMA_XPORT_CC_HPCC_ECN, 2000, 2000);
    ka_near(queue, "packets", ka_queue(&ka) / MTU, packets, 0.2);
    ka_at_least(use, "", ka_utilisation(&ka), n == 16 ? 0.96 : 0.98);
    ka_at_least(fair, "", ka_jain(&ka), 0.99);
    ka_free(&ka);
}

static void ramp(unsigned n, double kbytes)
{
    g_autofree char *queue = label("ramp, ", n, 400,
                                   "queue");
    Ka ka;

    hpcc_init(&ka, n, 400);
    ka.cfg.xport.cc.has_ecn_probe = false;
    ka.topo.link.ecn_kmin = 25 * MTU;
    ka.topo.link.ecn_kmax = 100 * MTU;
    ka.topo.link.ecn_pmax = 0.2;
    steady(&ka, ERDMA_XPORT_CC_HPCC_ECN, 2000, 2000);
    ka_near(queue, "KB", ka_queue(&ka) / 1000, kbytes, 0.06);
    ka_free(&ka);
}

void ka_16(void)
{
    static const unsigned step_n[] = { 2, 4, 8, 16 };
    static const double step_packets[] = { 16.0, 15.5, 16.0, 19.0 };
    static const unsigned ramp_n[] = { 4, 8, 16, 32 };
    static const double ramp_kbytes[] = { 35.8, 45.3, 61.7, 88.4 };
    unsigned i;

    ka_begin("KA-16 HPCC_ECN");
    for (i = 0; i < ARRAY_SIZE(step_n); i++) {
        step(step_n[i], step_packets[i]);
    }
    for (i = 0; i < ARRAY_SIZE(ramp_n); i++) {
        ramp(ramp_n[i], ramp_kbytes[i]);
    }
}

/* KA-17: loss in front of the bottleneck is no signal */
void ka_17(void)
{
    static const double p[] = { 0, 0.0001, 0.001, 0.01 };
    double base = 0;
    unsigned i;

    ka_begin("KA-17 HPCC_INT under loss");
    for (i = 0; i < ARRAY_SIZE(p); i++) {
        g_autofree char *head = g_strdup_printf("p = %g", p[i]);
        g_autofree char *use = g_strconcat(head, ": utilisation", NULL);
        g_autofree char *again = g_strconcat(head, ": retransmitted", NULL);
        g_autofree char *rtos = g_strconcat(head, ": timeouts", NULL);
        g_autofree char *fair = g_strconcat(head, ": Jain's index", NULL);
        double n, tolerance;
        Ka ka;

        hpcc_init(&ka, 4, 400);
        ka.topo.link.loss = p[i];
        steady(&ka, ERDMA_XPORT_CC_HPCC_INT, 400, 4000);
        n = ka_data_packets(&ka);
        tolerance = 4 * sqrt(p[i] * (1 - p[i]) / n) + 0.000000000001;
        base = i ? base : ka_utilisation(&ka);
        ka_range(use, "", ka_utilisation(&ka), base, 0.005, 0.005);
        ka_range(again, "of packets", ka_retransmits(&ka) / n, p[i],
                 tolerance, tolerance);
        ka_exact(rtos, "", ka_rtos(&ka), 0);
        ka_at_least(fair, "", ka_jain(&ka), 0.99);
        ka_free(&ka);
    }
}

/* KA-20: the same groups at other scales */

typedef struct Scale {
    uint64_t rate_bps;
    uint64_t rtt_ns;
} Scale;

typedef struct Result {
    double utilisation;
    double jain;
    double queue;               /* BDP */
} Result;

static Result scaled(uint8_t cc, const Scale *scale)
{
    Result r;
    Ka ka;

    hpcc_init(&ka, 4, 1000);
    ka.topo.link.rate_bps = scale->rate_bps;
    ka.topo.nic_bps = scale->rate_bps;
    ka.topo.nic_jitter_ns = MTU * 8 * GBIT / scale->rate_bps;
    ka.topo.rtt_ns = scale->rtt_ns - ka.topo.nic_jitter_ns / 2;
    ka.topo.link.limit = 125 * MTU;
    if (cc == ERDMA_XPORT_CC_HPCC_ECN) {
        ka.topo.link.ecn_kmin = 25 * MTU;
        ka.topo.link.ecn_kmax = 100 * MTU;
        ka.topo.link.ecn_pmax = 0.2;
    }
    ka.cfg.xport.cc.base_rtt_ns = scale->rtt_ns;
    ka.cfg.xport.initial_rto_ns = ka.cfg.xport.rto_min_ns =
        25 * scale->rtt_ns;
    ka_build(&ka);
    ka_flows(&ka, cc, 5 * scale->rtt_ns, scale->rtt_ns / 20);
    ka_run(&ka, 1000 * scale->rtt_ns);
    ka_measure(&ka);
    ka_run(&ka, 3000 * scale->rtt_ns);
    r.utilisation = ka_utilisation(&ka);
    r.jain = ka_jain(&ka);
    r.queue = ka_queue(&ka) / BDP;
    ka_free(&ka);
    return r;
}

void ka_20(void)
{
    static const Scale big = { 25 * GBIT, 40 * US };
    static const Scale small = { GBIT / 5, 5 * MS };
    static const struct {
        uint8_t cc;
        const char *name;
    } ccs[] = {
        { ERDMA_XPORT_CC_NEWRENO, "NewReno" },
        { ERDMA_XPORT_CC_HPCC_RTT, "HPCC_RTT" },
        { ERDMA_XPORT_CC_HPCC_ECN, "HPCC_ECN" },
        { ERDMA_XPORT_CC_HPCC_INT, "HPCC_INT" },
    };
    unsigned i;

    ka_begin("KA-20 scaling");
    for (i = 0; i < ARRAY_SIZE(ccs); i++) {
        g_autofree char *use = g_strconcat(ccs[i].name, ", utilisation",
                                           NULL);
        g_autofree char *fair = g_strconcat(ccs[i].name, ", Jain's index",
                                            NULL);
        g_autofree char *queue = g_strconcat(ccs[i].name, ", queue", NULL);
        Result a = scaled(ccs[i].cc, &big), b = scaled(ccs[i].cc, &small);

        ka_near(use, "", b.utilisation, a.utilisation, 0.01);
        ka_near(fair, "", b.jain, a.jain, 0.01);
        ka_near(queue, "BDP", b.queue, a.queue, 0.08);
    }
}
