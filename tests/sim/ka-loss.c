/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known answers of the loss-based algorithms: KA-9 to KA-11. */

#include "qemu/osdep.h"
#include <math.h>
#include "ka.h"

typedef struct Response {
    uint8_t cc;
    double p;
    bool is_periodic;
    uint64_t rtt_ns;
    unsigned cycles;            /* losses to wait for */
} Response;

static void response_init(Ka *ka, const Response *r)
{
    ka_init(ka);
    ka->topo.link.rate_bps = 1000 * GBIT;
    ka->topo.nic_bps = 0;
    ka->topo.rtt_ns = r->rtt_ns;
    ka->topo.link.loss = r->is_periodic ? 0 : r->p;
    ka->topo.link.drop_every = r->is_periodic ? lround(1 / r->p) : 0;
    ka->cfg.xport.use_ecn = false;
    ka->cfg.xport.initial_rto_ns = ka->cfg.xport.rto_min_ns =
        MAX(MS, 4 * r->rtt_ns);
}

/* Mean window in packets: what is delivered per round trip */
static double response(const Response *r, double expected)
{
    /* Losses need this long if the formula is right. */
    double ns = r->cycles / r->p / expected * r->rtt_ns;
    double w;
    Ka ka;

    response_init(&ka, r);
    ka_build(&ka);
    ka_flow(&ka, 0, r->cc, ENDLESS, 0, 3 * r->rtt_ns);
    ka_run(&ka, ns / 4);
    ka_measure(&ka);
    ka_run(&ka, ns);
    w = ka_rate(&ka, 0) * r->rtt_ns / 1e9 / MTU;
    ka_free(&ka);
    return w;
}

static void check_response(const char *name, const Response *r, double c)
{
    g_autofree char *what =
        g_strdup_printf("%s, %s p = %g, %g us", name, r->is_periodic ?
                        "periodic" : "Bernoulli", r->p, r->rtt_ns / 1e3);
    double w = c / sqrt(r->p);

    ka_near(what, "packets", response(r, w), w, 0.08);
}

static void two_rtts(void)
{
    const uint64_t extra[] = { 0, 3 * 100 * US };
    unsigned i;
    Ka ka;
    Response r = { ERDMA_XPORT_CC_NEWRENO, 0.002, false, 100 * US, 0 };

    response_init(&ka, &r);
    ka.topo.n = 2;
    ka.topo.extra_ns = extra;
    ka_build(&ka);
    ka_flows(&ka, r.cc, 2 * MS, 7 * US);
    ka_run(&ka, 50 * MS);
    ka_measure(&ka);
    for (i = 0; i < (ka_is_long() ? 30 : 6); i++) {
        ka_run(&ka, 100 * MS);
    }
    ka_near("two flows, RTT 1 : 4, rates", "", ka_rate(&ka, 0) /
            ka_rate(&ka, 1), 4, 0.08);
    ka_free(&ka);
}

void ka_9(void)
{
    static const Response bernoulli[] = {
        { ERDMA_XPORT_CC_NEWRENO, 0.01, false, 20 * US, 3000 },
        { ERDMA_XPORT_CC_NEWRENO, 0.01, false, 2 * MS, 3000 },
        { ERDMA_XPORT_CC_NEWRENO, 0.001, false, 200 * US, 1000 },
        { ERDMA_XPORT_CC_NEWRENO, 0.0001, false, 2 * MS, 200 },
    };
    static const Response periodic[] = {
        { ERDMA_XPORT_CC_NEWRENO, 0.01, true, 200 * US, 1000 },
        { ERDMA_XPORT_CC_NEWRENO, 0.001, true, 200 * US, 200 },
        { ERDMA_XPORT_CC_NEWRENO, 0.0001, true, 200 * US, 40 },
    };
    /* Approaches sqrt(3/2) as the cycle becomes long */
    static const double periodic_c[] = { 1.10, 1.17, 1.21 };
    unsigned i;

    ka_begin("KA-9 NewReno");
    for (i = 0; i < ARRAY_SIZE(bernoulli); i++) {
        check_response("window", &bernoulli[i], 1.27);
    }
    for (i = 0; i < ARRAY_SIZE(periodic); i++) {
        check_response("window", &periodic[i], periodic_c[i]);
    }
    two_rtts();
}

/* KA-10b: where CUBIC is cubic; W = 1.054 (RTT / p)^0.75 */
static void cubic_window(double p)
{
    const uint64_t rtt_ns = 100 * MS;
    double expected = 1.054 * pow(rtt_ns / 1e9 / p, 0.75), w;
    g_autofree char *what = g_strdup_printf("cubic, periodic p = %g, 100 ms",
                                            p);
    Response r = { ERDMA_XPORT_CC_CUBIC, p, true, rtt_ns, 0 };
    Ka ka;

    response_init(&ka, &r);
    ka.cfg.xport.cc.has_fast_convergence = false;
    ka_build(&ka);
    ka_flow(&ka, 0, r.cc, ENDLESS, 0, 3 * rtt_ns);
    /* From slow start's overshoot down, by a percent per cycle at the end */
    ka_run(&ka, 180 / p / expected * rtt_ns);
    ka_measure(&ka);
    ka_run(&ka, 30 / p / expected * rtt_ns);
    w = ka_rate(&ka, 0) * rtt_ns / 1e9 / MTU;
    ka_near(what, "packets", w, expected, 0.08);
    ka_free(&ka);
}

void ka_10(void)
{
    static const Response bernoulli[] = {
        { ERDMA_XPORT_CC_CUBIC, 0.01, false, 50 * US, 3000 },
        { ERDMA_XPORT_CC_CUBIC, 0.001, false, 50 * US, 1000 },
        { ERDMA_XPORT_CC_CUBIC, 0.0001, false, 50 * US, 200 },
    };
    static const Response periodic = {
        ERDMA_XPORT_CC_CUBIC, 0.001, true, 50 * US, 200,
    };
    unsigned i;

    ka_begin("KA-10 CUBIC");
    for (i = 0; i < ARRAY_SIZE(bernoulli); i++) {
        check_response("Reno-friendly", &bernoulli[i], 1.39);
    }
    check_response("Reno-friendly", &periodic, 1.18);
    cubic_window(0.0001);
    if (ka_is_long()) {
        cubic_window(0.00001);
    }
}

static void share(const char *name, uint8_t cc, unsigned n, double jain)
{
    g_autofree char *what = g_strdup_printf("%s, N = %u, Jain's index", name,
                                            n);
    g_autofree char *use = g_strdup_printf("%s, N = %u, utilisation", name,
                                           n);
    Ka ka;

    ka_init(&ka);
    ka.topo.n = n;
    ka.topo.nic_bps = 4 * ka.topo.link.rate_bps;
    ka.topo.nic_jitter_ns = MTU * 8 * GBIT / ka.topo.link.rate_bps;
    ka.topo.link.limit = 125 * MTU;
    ka.cfg.xport.use_ecn = false;
    ka_build(&ka);
    ka_flows(&ka, cc, 200 * US, 3 * US);
    ka_run(&ka, 1000 * ka.topo.rtt_ns);
    ka_measure(&ka);
    ka_run(&ka, (ka_is_long() ? 20000 : 3000) * ka.topo.rtt_ns);
    ka_at_least(what, "", ka_jain(&ka), jain);
    ka_at_least(use, "", ka_utilisation(&ka), 0.98);
    ka_free(&ka);
}

void ka_11(void)
{
    unsigned n;

    ka_begin("KA-11 sharing");
    for (n = 2; n <= 16; n *= 2) {
        share("NewReno", ERDMA_XPORT_CC_NEWRENO, n, 0.99);
    }
    for (n = 2; n <= 16; n *= 2) {
        share("CUBIC", ERDMA_XPORT_CC_CUBIC, n, 0.97);
    }
}
