/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: packets per second.  A dumbbell with CUBIC flows, so that there
 * are acks, losses and retransmissions; the bottleneck grows with the number
 * of flows, so that each flow does the same work.
 */

#include "qemu/osdep.h"
#include <time.h>
#include <sys/resource.h>
#include "bench.h"
#include "topo.h"

#define PACKETS     1000000

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_utime.tv_usec / 1e6 +
           u.ru_stime.tv_sec + u.ru_stime.tv_usec / 1e6;
}

/* Bytes of this process in memory */
static uint64_t resident(void)
{
    g_autofree char *text = NULL;
    const char *line;

    if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL)) {
        return 0;
    }
    line = strstr(text, "VmRSS:");
    return line ? g_ascii_strtoull(line + 6, NULL, 10) * 1024 : 0;
}

static Sim *build(unsigned n)
{
    SimTopoSpec topo = {
        .kind = SIM_TOPO_DUMBBELL,
        .n = MIN(n, 100),
        .rtt_ns = 100 * 1000,
    };
    SimConfig cfg;
    const char *why;
    SimTopo *t;
    unsigned i;
    Sim *s;

    sim_config_default(&cfg);
    /* 100 Mbit/s each: a little more than one packet per round trip */
    topo.link.rate_bps = n * 100000000ULL;
    topo.link.limit = n * 2000ULL;
    topo.nic_bps = 2 * topo.link.rate_bps;
    topo.nic_jitter_ns = 80000 / n;
    s = sim_new(&cfg);
    t = sim_topo_new(s, &topo, cfg.xport.mtu, &why);
    g_assert(t);
    for (i = 0; i < n; i++) {
        SimFlowSpec flow = {
            .src = t->src[i % t->n_pairs],
            .dst = t->dst[i % t->n_pairs],
            .cc = ERDMA_XPORT_CC_CUBIC,
            .msg_len = 100000,
            .depth = 4,
            .start_ns = 200 * 1000 + i * 100ULL,
        };

        sim_add_flow(s, &flow);
    }
    sim_topo_free(t);
    return s;
}

static double measure(unsigned n)
{
    uint64_t before = resident(), ns = 0, idle;
    Sim *s = build(n);
    SimCost from, to;
    double began, took;

    sim_run(s, 150 * 1000);
    idle = resident() - before;
    sim_run(s, 5 * 1000 * 1000);
    sim_cost(s, &from);
    began = cpu_seconds();
    do {
        ns += 1000 * 1000;
        sim_run(s, 5 * 1000 * 1000 + ns);
        sim_cost(s, &to);
    } while (to.packets - from.packets < PACKETS);
    took = cpu_seconds() - began;
    printf("%6u  %8.3f  %9.0f  %7.0f  %9.1f  %8" PRIu64 "  %7.1f\n", n,
           took, (to.packets - from.packets) / took,
           took * 1e9 / (to.packets - from.packets),
           (to.events - from.events) * 1.0 / (to.packets - from.packets),
           idle / n, to.pool_bytes / 1e6);
    fflush(stdout);
    sim_free(s);
    return took / (to.packets - from.packets);
}

void bench(unsigned n_flows)
{
    static const unsigned n[] = { 10, 100, 1000, 10000 };
    double first = 0, last = 0;
    unsigned i;

    printf(" flows  cpu s     packets/s  ns/pkt   events/pkt  B/idle  "
           "pool MB\n");
    if (n_flows) {
        measure(n_flows);
        return;
    }
    for (i = 0; i < ARRAY_SIZE(n); i++) {
        last = measure(n[i]);
        first = i ? first : last;
    }
    printf("a packet among %u flows costs %.2f times one among %u\n",
           n[ARRAY_SIZE(n) - 1], last / first, n[0]);
}
