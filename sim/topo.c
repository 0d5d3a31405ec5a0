/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: ready-made networks, see topo.h. */

#include "qemu/osdep.h"
#include "topo.h"

const char *const sim_topo_names[] = {
    "dumbbell", "incast", "parking-lot", "chain", NULL,
};

static uint64_t serialise_ns(uint64_t bps, uint32_t bytes)
{
    return bps ? (uint64_t)(bytes * 8 * 1e9 / bps) : 0;
}

/* A sender or receiver and its links to and from the switch */
static unsigned add_host(Sim *s, unsigned sw, const NetemConfig *out,
                         const NetemConfig *in, unsigned *out_link)
{
    unsigned host = sim_add_host(s);
    unsigned link = sim_add_link(s, sim_host_node(s, host), sw, out);

    if (out_link) {
        *out_link = link;
    }
    sim_add_link(s, sw, sim_host_node(s, host), in);
    return host;
}

typedef struct Builder {
    Sim *s;
    const SimTopoSpec *spec;
    SimTopo *t;
    NetemConfig link;           /* with its delay */
    NetemConfig back;
    unsigned *sw;
} Builder;

static void add_pair(Builder *b, unsigned from, unsigned to)
{
    const SimTopoSpec *spec = b->spec;
    SimTopo *t = b->t;
    unsigned i = t->n_pairs++;
    uint64_t extra_ns = spec->extra_ns ? spec->extra_ns[i] : 0;
    static const NetemConfig plain;
    NetemConfig way_back = { .delay_ns = extra_ns - extra_ns / 2 };
    NetemConfig nic = {
        .rate_bps = spec->nic_bps,
        .delay_ns = extra_ns / 2,
        .overhead = spec->link.overhead,
        .jitter_ns = spec->nic_jitter_ns,
        .jitter = spec->nic_jitter_ns ? NETEM_JITTER_UNIFORM :
                                        NETEM_JITTER_NONE,
    };

    t->src[i] = add_host(b->s, b->sw[from], &nic, extra_ns ? &way_back :
                         &plain, &t->nic[i]);
    if (spec->kind != SIM_TOPO_INCAST) {
        t->dst[i] = add_host(b->s, b->sw[to], &plain, &plain, NULL);
    }
}

/* A row of switches with a bottleneck between each two */
static void build_row(Builder *b, unsigned n_hops)
{
    unsigned i;

    b->sw = g_new(unsigned, n_hops + 1);
    for (i = 0; i <= n_hops; i++) {
        b->sw[i] = sim_add_switch(b->s);
    }
    for (i = 0; i < n_hops; i++) {
        b->link.link_id = i + 1;
        b->t->link[i] = sim_add_link(b->s, b->sw[i], b->sw[i + 1], &b->link);
        sim_add_link(b->s, b->sw[i + 1], b->sw[i], &b->back);
    }
}

/* One switch; its port to the receiver is the bottleneck. */
static void build_incast(Builder *b)
{
    unsigned receiver = sim_add_host(b->s), i;
    unsigned node = sim_host_node(b->s, receiver);

    b->sw = g_new(unsigned, 1);
    b->sw[0] = sim_add_switch(b->s);
    b->link.link_id = 1;
    b->t->link[0] = sim_add_link(b->s, b->sw[0], node, &b->link);
    sim_add_link(b->s, node, b->sw[0], &b->back);
    for (i = 0; i < b->spec->n; i++) {
        add_pair(b, 0, 0);
        b->t->dst[i] = receiver;
    }
}

static void build(Builder *b, unsigned n_hops)
{
    unsigned i;

    if (b->spec->kind == SIM_TOPO_INCAST) {
        build_incast(b);
        return;
    }
    build_row(b, n_hops);
    if (b->spec->kind == SIM_TOPO_PARKING_LOT) {
        add_pair(b, 0, n_hops);
        for (i = 0; i < n_hops; i++) {
            add_pair(b, i, i + 1);
        }
        return;
    }
    for (i = 0; i < b->spec->n; i++) {
        add_pair(b, 0, n_hops);
    }
}

SimTopo *sim_topo_new(Sim *s, const SimTopoSpec *spec, uint32_t mtu,
                      const char **why)
{
    bool is_row = spec->kind == SIM_TOPO_PARKING_LOT ||
                  spec->kind == SIM_TOPO_CHAIN;
    unsigned n_hops = is_row ? spec->n_hops : 1;
    unsigned n = spec->kind == SIM_TOPO_PARKING_LOT ? n_hops + 1 : spec->n;
    uint32_t bytes = mtu + spec->link.overhead;
    uint64_t used_ns = serialise_ns(spec->nic_bps, bytes) +
                       n_hops * serialise_ns(spec->link.rate_bps, bytes);
    Builder b = {
        .s = s, .spec = spec, .link = spec->link, .back = spec->back,
    };
    uint64_t left_ns;

    if (!n || !n_hops) {
        *why = "needs at least one sender and one link";
        return NULL;
    }
    if (used_ns >= spec->rtt_ns) {
        *why = "the round trip is shorter than sending one packet takes";
        return NULL;
    }
    left_ns = (spec->rtt_ns - used_ns) / n_hops;
    b.link.delay_ns = left_ns / 2;
    b.back.delay_ns = left_ns - left_ns / 2;
    b.t = g_new0(SimTopo, 1);
    b.t->src = g_new0(unsigned, n);
    b.t->dst = g_new0(unsigned, n);
    b.t->nic = g_new0(unsigned, n);
    b.t->link = g_new0(unsigned, n_hops);
    b.t->n_links = n_hops;
    build(&b, n_hops);
    g_free(b.sw);
    sim_route(s);
    return b.t;
}

void sim_topo_free(SimTopo *t)
{
    if (t) {
        g_free(t->src);
        g_free(t->dst);
        g_free(t->nic);
        g_free(t->link);
        g_free(t);
    }
}
