/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known answers: networks and what is measured in them. */

#include "qemu/osdep.h"
#include "ka.h"

void ka_init(Ka *ka)
{
    memset(ka, 0, sizeof(*ka));
    sim_config_default(&ka->cfg);
    ka->cfg.seed = ka_seed();
    ka->cfg.xport.mtu = MTU;
    ka->cfg.xport.int_hops = 1;
    ka->cfg.xport.is_int_compact = false;
    ka->topo.n = 1;
    ka->topo.n_hops = 1;
    ka->topo.link.rate_bps = 25 * GBIT;
    ka->topo.nic_bps = 25 * GBIT;
    ka->topo.rtt_ns = 40 * US;
}

void ka_build(Ka *ka)
{
    const char *why;

    if (!ka->cfg.xport.cc.base_rtt_ns) {
        ka->cfg.xport.cc.base_rtt_ns = ka->topo.rtt_ns;
    }
    ka->cfg.xport.cc.line_rate = (ka->topo.nic_bps ? ka->topo.nic_bps :
                                  ka->topo.link.rate_bps) / 8;
    ka->s = sim_new(&ka->cfg);
    ka->t = sim_topo_new(ka->s, &ka->topo, MTU, &why);
    if (!ka->t) {
        g_error("%s", why);
    }
}

unsigned ka_flow(Ka *ka, unsigned pair, uint8_t cc, uint32_t msg_len,
                 uint64_t n_msgs, uint64_t start_ns)
{
    SimFlowSpec spec = {
        .src = ka->t->src[pair],
        .dst = ka->t->dst[pair],
        .cc = cc,
        .msg_len = msg_len,
        .n_msgs = n_msgs,
        .start_ns = start_ns,
    };

    return sim_add_flow(ka->s, &spec);
}

void ka_flows(Ka *ka, uint8_t cc, uint64_t start_ns, uint64_t apart_ns)
{
    unsigned i;

    for (i = 0; i < ka->t->n_pairs; i++) {
        ka_flow(ka, i, cc, ENDLESS, 0, start_ns + i * apart_ns);
    }
}

void ka_run(Ka *ka, uint64_t ns)
{
    sim_run(ka->s, sim_now(ka->s) + ns);
}

void ka_free(Ka *ka)
{
    sim_topo_free(ka->t);
    sim_free(ka->s);
    g_free(ka->delivered);
}

void ka_measure(Ka *ka)
{
    unsigned n = sim_n_flows(ka->s), i;

    ka->from_ns = sim_now(ka->s);
    ka->link = *sim_link_stats(ka->s, ka->t->link[0]);
    ka->sent = *sim_host_stats(ka->s, ka->t->src[0]);
    ka->delivered = g_renew(uint64_t, ka->delivered, n);
    for (i = 0; i < n; i++) {
        ka->delivered[i] = sim_flow_stats(ka->s, i)->delivered_bytes;
    }
}

double ka_seconds(const Ka *ka)
{
    return (sim_now(ka->s) - ka->from_ns) / 1e9;
}

double ka_utilisation(Ka *ka)
{
    const NetemStats *now = sim_link_stats(ka->s, ka->t->link[0]);

    return (now->busy_ns - ka->link.busy_ns) / 1e9 / ka_seconds(ka);
}

double ka_queue(Ka *ka)
{
    const NetemStats *now = sim_link_stats(ka->s, ka->t->link[0]);

    return (now->queue_integral - ka->link.queue_integral) / ka_seconds(ka) +
           ka_utilisation(ka) * MTU;
}

double ka_rate(Ka *ka, unsigned flow)
{
    uint64_t bytes = sim_flow_stats(ka->s, flow)->delivered_bytes -
                     ka->delivered[flow];

    return bytes * (double)MTU / (MTU - HEAD) / ka_seconds(ka);
}

double ka_jain(Ka *ka)
{
    unsigned n = sim_n_flows(ka->s), i;
    double sum = 0, squares = 0;

    for (i = 0; i < n; i++) {
        double x = ka_rate(ka, i);

        sum += x;
        squares += x * x;
    }
    return sum * sum / (n * squares);
}

double ka_bdp(const Ka *ka)
{
    return ka->topo.link.rate_bps / 8e9 * ka->topo.rtt_ns;
}

typedef uint64_t Pick(const ErdmaXportStats *s);

static uint64_t sum_senders(const Ka *ka, Pick *pick)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < ka->t->n_pairs; i++) {
        sum += pick(sim_host_stats(ka->s, ka->t->src[i]));
    }
    return sum;
}

static uint64_t pick_rtos(const ErdmaXportStats *s)
{
    return s->rtos;
}

static uint64_t pick_retransmits(const ErdmaXportStats *s)
{
    return s->retransmits;
}

static uint64_t pick_data_packets(const ErdmaXportStats *s)
{
    return s->tx_data_packets;
}

uint64_t ka_rtos(const Ka *ka)
{
    return sum_senders(ka, pick_rtos);
}

uint64_t ka_retransmits(const Ka *ka)
{
    return sum_senders(ka, pick_retransmits);
}

uint64_t ka_data_packets(const Ka *ka)
{
    return sum_senders(ka, pick_data_packets);
}
