/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known answers about starting and recovering: KA-6 to KA-8, 18, 19. */

#include "qemu/osdep.h"
#include <math.h>
#include "ka.h"

/* Bytes of a message that fills @packets packets */
static uint32_t fill(unsigned packets)
{
    return packets * (MTU - HEAD) - WRITE_HEAD;
}

/* KA-6: slow start doubles every round trip */

static void slow_start(unsigned packets)
{
    const unsigned iw = 10;
    g_autofree char *what = g_strdup_printf("%u packets", packets);
    unsigned rounds = 0, sent = 0, last = 0, window = iw;
    double expected_ns;
    Ka ka;

    while (sent < packets) {
        last = MIN(window, packets - sent);
        sent += last;
        window *= 2;
        rounds++;
    }
    ka_init(&ka);
    ka.topo.link.rate_bps = 100 * GBIT;
    ka.topo.nic_bps = 0;
    ka.topo.rtt_ns = MS;
    ka.cfg.xport.is_paced = false;
    ka.cfg.xport.initial_window = iw * MTU;
    ka.cfg.xport.initial_rto_ns = ka.cfg.xport.rto_min_ns = 10 * MS;
    ka_build(&ka);
    ka_flow(&ka, 0, ERDMA_XPORT_CC_NEWRENO, fill(packets), 1, 2 * MS);
    ka_run(&ka, 100 * MS);
    expected_ns = rounds * (double)MS + last * MTU * 8e9 / (100 * GBIT);
    ka_near(what, "ms", (sim_flow_stats(ka.s, 0)->last_done_ns - 2 * MS) /
            1e6, expected_ns / 1e6, 0.03);
    ka_free(&ka);
}

void ka_6(void)
{
    ka_begin("KA-6 slow start");
    slow_start(1000);
    slow_start(5000);
}

/* KA-7: one packet of a hundred lost */

#define SER_NS  800

/* Ends with the simulation over; @drop: index of the packet, or -1 */
static void hundred(Ka *ka, uint8_t cc, int drop)
{
    uint64_t index;

    ka_init(ka);
    ka->topo.link.rate_bps = 10 * GBIT;
    ka->topo.nic_bps = 10 * GBIT;
    /* Of the two links' serialisation one belongs to the 100 packets. */
    ka->topo.rtt_ns = 100 * US + 2 * SER_NS;
    ka->cfg.xport.initial_window = 200 * MTU;
    ka_build(ka);
    ka_flow(ka, 0, cc, fill(100), 1, MS);
    ka_run(ka, MS / 2);
    index = sim_link_stats(ka->s, ka->t->link[0])->arrivals + drop;
    if (drop >= 0) {
        netem_link_set_drop_list(sim_link(ka->s, ka->t->link[0]), &index, 1);
    }
    ka_run(ka, 20 * MS);
}

static double hundred_us(const Ka *ka)
{
    return (sim_flow_stats(ka->s, 0)->last_done_ns - MS) / 1e3;
}

void ka_7(void)
{
    const double ser = SER_NS / 1e3, t = 100 + ser;
    double lossless;
    const ErdmaXportStats *st;
    ErdmaXportConnInfo info;
    Ka ka;

    ka_begin("KA-7 one loss");
    /* A fixed window, so that everything leaves at once */
    hundred(&ka, ERDMA_XPORT_CC_NONE, -1);
    lossless = hundred_us(&ka);
    ka_range("no loss", "us", lossless, 100 * ser + t, 1, 1);
    ka_free(&ka);

    hundred(&ka, ERDMA_XPORT_CC_NONE, 49);
    st = sim_host_stats(ka.s, ka.t->src[0]);
    ka_range("packet 50 lost", "us", hundred_us(&ka), 53 * ser + 2 * t, 2, 2);
    ka_exact("packet 50 lost, retransmissions", "", st->retransmits, 1);
    ka_exact("packet 50 lost, probes and timeouts", "",
             st->probes + st->rtos, 0);
    ka_free(&ka);

    hundred(&ka, ERDMA_XPORT_CC_CUBIC, 99);
    st = sim_host_stats(ka.s, ka.t->src[0]);
    sim_flow_info(ka.s, 0, &info);
    ka_range("last packet lost", "us", hundred_us(&ka), lossless + 2 * t +
             100, 3, 3);
    ka_exact("last packet lost, probes", "", st->probes, 1);
    ka_exact("last packet lost, timeouts", "", st->rtos, 0);
    ka_at_least("last packet lost, window", "bytes", info.cwnd, 200 * MTU);
    ka_free(&ka);
}

/* KA-8: selective repeat against go-back-N */

static double loss_goodput(double p, bool is_go_back_n)
{
    double rate;
    Ka ka;

    ka_init(&ka);
    ka.topo.link.rate_bps = 10 * GBIT;
    ka.topo.nic_bps = 10 * GBIT;
    ka.topo.rtt_ns = 100 * US;
    ka.topo.link.loss = p;
    ka.cfg.xport.initial_window = 250 * MTU;
    ka.cfg.xport.is_go_back_n = is_go_back_n;
    ka_build(&ka);
    ka_flow(&ka, 0, ERDMA_XPORT_CC_NONE, ENDLESS, 0, 200 * US);
    ka_run(&ka, 2 * MS);
    ka_measure(&ka);
    ka_run(&ka, (ka_is_long() ? 1000 : 300) * MS);
    rate = ka_rate(&ka, 0) * 8 / GBIT;
    ka_free(&ka);
    return rate;
}

void ka_8(void)
{
    static const double p[] = { 0.001, 0.01, 0.05 };
    const double w = 125;
    unsigned i;

    ka_begin("KA-8 recovery");
    for (i = 0; i < ARRAY_SIZE(p); i++) {
        g_autofree char *what = g_strdup_printf("selective repeat, p = %g",
                                                p[i]);

        ka_near(what, "Gbit/s", loss_goodput(p[i], false), 10 * (1 - p[i]),
                0.01);
    }
    for (i = 0; i < ARRAY_SIZE(p); i++) {
        g_autofree char *what = g_strdup_printf("go-back-N, p = %g", p[i]);

        ka_near(what, "Gbit/s", loss_goodput(p[i], true),
                10 / (1 + p[i] * w / (1 - p[i])), 0.07);
    }
}

/* KA-18: numbers that wrap; KA-19: the same seed gives the same trace */

typedef struct Trace {
    uint64_t hash;
    uint64_t errors;
    uint64_t done;
    uint64_t retransmits;
    uint64_t packets;
} Trace;

static Trace rough_ride(uint32_t pn0, uint64_t seed)
{
    static const uint8_t cc[] = {
        ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC,
        ERDMA_XPORT_CC_HPCC_RTT, ERDMA_XPORT_CC_HPCC_ECN,
        ERDMA_XPORT_CC_HPCC_INT,
    };
    Trace r = { 0 };
    unsigned i;
    Ka ka;

    ka_init(&ka);
    ka.cfg.seed = seed;
    ka.topo.n = ARRAY_SIZE(cc);
    ka.topo.nic_jitter_ns = 320;
    ka.topo.link.loss = 0.01;
    ka.topo.link.duplicate = 0.005;
    ka.topo.link.reorder = 0.02;
    ka.topo.link.reorder_ns = 5 * US;
    ka.topo.link.ecn_kmin = 25 * MTU;
    ka.topo.link.ecn_kmax = 100 * MTU;
    ka.topo.link.ecn_pmax = 0.2;
    ka.topo.link.limit = 200 * MTU;
    ka_build(&ka);
    for (i = 0; i < ARRAY_SIZE(cc); i++) {
        SimFlowSpec flow = {
            .src = ka.t->src[i], .dst = ka.t->dst[i], .cc = cc[i],
            .msg_len = 50000, .n_msgs = 60, .start_ns = 100 * US,
            .pn0 = pn0,
        };

        sim_add_flow(ka.s, &flow);
    }
    sim_run_to_end(ka.s, 1000 * MS);
    for (i = 0; i < ARRAY_SIZE(cc); i++) {
        const SimFlowStats *st = sim_flow_stats(ka.s, i);

        r.errors += st->order_errors + st->is_failed;
        r.done += st->done_msgs;
    }
    r.hash = sim_hash(ka.s);
    r.retransmits = ka_retransmits(&ka);
    r.packets = ka_data_packets(&ka);
    ka_free(&ka);
    return r;
}

void ka_18(void)
{
    static const uint32_t pn0[] = {
        UINT32_MAX - 99, (1u << 24) - 100, (1u << 31) - 100,
    };
    Trace base = rough_ride(0, ka_seed());
    unsigned i;

    ka_begin("KA-18 wrap");
    ka_exact("from 0: messages", "", base.done, 300);
    ka_exact("from 0: delivered out of order or twice", "", base.errors, 0);
    ka_at_least("from 0: retransmissions", "", base.retransmits, 50);
    for (i = 0; i < ARRAY_SIZE(pn0); i++) {
        g_autofree char *what = g_strdup_printf("from %u: trace as from 0",
                                                pn0[i]);
        Trace r = rough_ride(pn0[i], ka_seed());

        ka_exact(what, "", r.hash, base.hash);
    }
}

void ka_19(void)
{
    Trace a = rough_ride(0, ka_seed()), b = rough_ride(0, ka_seed());
    Trace c = rough_ride(0, ka_seed() + 1);

    ka_begin("KA-19 determinism");
    ka_exact("same seed: hash of the trace", "", a.hash, b.hash);
    ka_exact("another seed: the same hash", "", a.hash == c.hash, 0);
}
