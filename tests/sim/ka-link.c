/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known answers about links: KA-1 to KA-5. */

#include "qemu/osdep.h"
#include <math.h>
#include "ka.h"
#include "xport/wire.h"

/* KA-1: one packet over h links */

typedef struct Sizes {
    uint32_t data;
    uint32_t ack;
} Sizes;

static void note_sizes(void *opaque, unsigned host, uint64_t now_ns,
                       const uint8_t *data, size_t len)
{
    Sizes *sizes = opaque;
    ErdmaWire w;

    g_assert(erdma_wire_parse(&w, data, len) == ERDMA_WIRE_OK);
    if (w.type == ERDMA_WIRE_DATA) {
        sizes->data = len + ERDMA_XPORT_IP_UDP_LEN;
    } else if (w.type == ERDMA_WIRE_ACK) {
        sizes->ack = len + ERDMA_XPORT_IP_UDP_LEN;
    }
}

static void one_packet(unsigned n_links)
{
    static const uint64_t gbit[] = { 10, 25, 7, 100, 3 };
    static const uint64_t delay_us[] = { 3, 11, 1, 40, 7 };
    g_autofree char *there = g_strdup_printf("%u links, there", n_links);
    g_autofree char *back = g_strdup_printf("%u links, ack back", n_links);
    SimConfig cfg;
    Sim *s;
    unsigned a, b, node, i;
    SimFlowSpec flow = { .cc = ERDMA_XPORT_CC_CUBIC, .msg_len = 700,
                         .n_msgs = 1, .start_ns = MS };
    Sizes sizes = { 0 };
    uint64_t there_ns = 0, back_ns = 0;
    const SimFlowStats *st;

    sim_config_default(&cfg);
    s = sim_new(&cfg);
    a = sim_add_host(s);
    b = sim_add_host(s);
    node = sim_host_node(s, a);
    for (i = 0; i < n_links; i++) {
        unsigned next = i == n_links - 1 ? sim_host_node(s, b) :
                                           sim_add_switch(s);
        NetemConfig link = { .rate_bps = gbit[i] * GBIT,
                             .delay_ns = delay_us[i] * US };

        sim_add_link(s, node, next, &link);
        sim_add_link(s, next, node, &link);
        node = next;
    }
    sim_route(s);
    flow.src = a;
    flow.dst = b;
    sim_add_flow(s, &flow);
    sim_set_tap(s, note_sizes, &sizes);
    sim_run(s, 10 * MS);
    for (i = 0; i < n_links; i++) {
        there_ns += sizes.data * 8 / gbit[i] + delay_us[i] * US;
        back_ns += sizes.ack * 8 / gbit[i] + delay_us[i] * US;
    }
    st = sim_flow_stats(s, 0);
    ka_range(there, "ns", st->first_delivered_ns - MS, there_ns, n_links,
             n_links);
    ka_range(back, "ns", st->first_done_ns - st->first_delivered_ns, back_ns,
             n_links, n_links);
    sim_free(s);
}

void ka_1(void)
{
    ka_begin("KA-1 one packet");
    one_packet(1);
    one_packet(2);
    one_packet(5);
}

/* KA-2: constant rate of twice the link's into a short queue */

typedef struct Delays {
    uint64_t first_ns;          /* of packet 0 at the queue */
    uint64_t spacing_ns;
    uint64_t max_ns;            /* from the queue to the receiver */
} Delays;

static void note_delay(void *opaque, unsigned host, uint64_t now_ns,
                       const uint8_t *data, size_t len)
{
    Delays *d = opaque;
    ErdmaWire w;

    g_assert(erdma_wire_parse(&w, data, len) == ERDMA_WIRE_OK);
    if (w.type == ERDMA_WIRE_DATA) {
        uint64_t at_ns = d->first_ns + w.number * d->spacing_ns;

        d->max_ns = MAX(d->max_ns, now_ns - at_ns);
    }
}

void ka_2(void)
{
    const uint64_t ser = 800, t_ns = 1000 * ser, limit = 50 * MTU;
    uint64_t start, full_ns = 0;
    NetemStats full;
    const NetemStats *st;
    Delays d = { .spacing_ns = ser / 2 };
    Ka ka;

    ka_begin("KA-2 twice the rate");
    ka_init(&ka);
    ka.topo.link.rate_bps = 10 * GBIT;
    ka.topo.link.limit = limit;
    ka.topo.nic_bps = 20 * GBIT;
    ka.topo.rtt_ns = 100 * US;
    ka.cfg.xport.initial_window = 3000 * MTU;
    ka.cfg.xport.initial_rto_ns = 1000 * MS;
    ka_build(&ka);
    ka_flow(&ka, 0, ERDMA_XPORT_CC_NONE, ENDLESS, 0, MS);
    sim_set_tap(ka.s, note_delay, &d);
    start = MS + ser / 2;       /* the first one reaches the queue */
    d.first_ns = start;
    sim_run(ka.s, start - 1);
    ka_measure(&ka);
    while (!full_ns) {
        ka_run(&ka, ser / 4);
        full = *sim_link_stats(ka.s, ka.t->link[0]);
        full_ns = full.drop_queue ? sim_now(ka.s) - start : 0;
    }
    sim_run(ka.s, start + t_ns - 1);
    st = sim_link_stats(ka.s, ka.t->link[0]);
    ka_range("queue full after", "packets", full_ns / (double)ser,
             limit / MTU, 1, 1);
    ka_range("delivered in t", "packets", st->departures -
             ka.link.departures, t_ns / ser, 1, 1);
    ka_range("drops once full", "packets", st->drop_queue - full.drop_queue,
             (st->arrivals - full.arrivals) / 2.0, 1, 1);
    ka_at_most("longest queue", "bytes", st->queue_max, limit);
    ka_run(&ka, 100 * US);
    ka_range("longest delay", "ns", d.max_ns, limit / MTU * ser + ser +
             netem_link_config(sim_link(ka.s, ka.t->link[0]))->delay_ns,
             ser, ser);
    ka_free(&ka);
}

/* KA-3: loss, link alone */

typedef struct RawPacket {
    NetemPacket net;
    bool is_free;
} RawPacket;

static bool raw_mark(void *opaque, NetemPacket *p)
{
    return false;
}

static NetemPacket *raw_copy(void *opaque, const NetemPacket *p)
{
    return NULL;
}

static void raw_free(void *opaque, NetemPacket *p)
{
    ((RawPacket *)p)->is_free = true;
}

static const NetemOps raw_ops = {
    .mark = raw_mark, .copy = raw_copy, .free = raw_free,
};

typedef struct Losses {
    uint64_t n;
    uint64_t lost;
    uint64_t bursts;
} Losses;

static Losses lose(const NetemConfig *cfg, uint64_t n)
{
    NetemLink *l = netem_link_new(&raw_ops, NULL, cfg);
    RawPacket p = { .net.len = MTU };
    Losses r = { .n = n };
    bool was_lost = false;
    uint64_t i;

    for (i = 0; i < n; i++) {
        p.is_free = false;
        netem_link_put(l, &p.net, i * US);
        if (p.is_free) {
            r.lost++;
            r.bursts += !was_lost;
        } else {
            g_assert(netem_link_take(l, i * US) == &p.net);
        }
        was_lost = p.is_free;
    }
    netem_link_free(l);
    return r;
}

void ka_3(void)
{
    NetemConfig bernoulli = { .seed = ka_seed(), .loss = 0.01 };
    NetemConfig ge = { .seed = ka_seed(), .ge_enter = 0.0001, .ge_leave = 0.1,
                       .ge_loss_bad = 1 };
    uint64_t n = ka_is_long() ? 100000000 : 10000000;
    Losses r;

    ka_begin("KA-3 loss");
    r = lose(&bernoulli, 1000000);
    ka_range("Bernoulli", "%", 100.0 * r.lost / r.n, 1,
             400 * sqrt(0.01 * 0.99 / r.n), 400 * sqrt(0.01 * 0.99 / r.n));
    r = lose(&ge, n);
    ka_near("Gilbert-Elliott", "%", 100.0 * r.lost / r.n,
            100 * 0.0001 / (0.1 + 0.0001), 0.15);
    ka_near("mean burst", "packets", (double)r.lost / r.bursts, 10, 0.1);
}

/* KA-4: the ramp of marks */

static void ramp(const char *what, unsigned queue_packets, double expected)
{
    const NetemStats *st;
    double n, sigma;
    Ka ka;

    ka_init(&ka);
    ka.topo.nic_bps = 100 * GBIT;
    ka.topo.link.ecn_kmin = 25 * MTU;
    ka.topo.link.ecn_kmax = 101 * MTU;
    ka.topo.link.ecn_pmax = 0.2;
    /*
     * A fixed window keeps the queue at what the path does not hold; a
     * packet that arrives is in the window itself.
     */
    ka.cfg.xport.initial_window = (125 + queue_packets + 1) * MTU;
    ka_build(&ka);
    ka_flow(&ka, 0, ERDMA_XPORT_CC_NONE, ENDLESS, 0, 100 * US);
    ka_run(&ka, MS);
    ka_measure(&ka);
    ka_run(&ka, 40 * MS);
    st = sim_link_stats(ka.s, ka.t->link[0]);
    n = st->arrivals - ka.link.arrivals;
    sigma = sqrt(expected * (1 - expected) / n);
    ka_range(what, "of packets marked", (st->marks - ka.link.marks) / n,
             expected, 4 * sigma, 4 * sigma);
    ka_free(&ka);
}

void ka_4(void)
{
    ka_begin("KA-4 marks");
    ramp("halfway between kmin and kmax", 63, 0.1);
    ramp("below kmin", 20, 0);
    ramp("above kmax", 110, 1);
}

/* KA-5: what INT says */

#define MAX_STACKS 20000

typedef struct Stacks {
    unsigned host;
    unsigned n;
    ErdmaCcHop v[MAX_STACKS];
} Stacks;

static void note_stack(void *opaque, unsigned host, uint64_t now_ns,
                       const uint8_t *data, size_t len)
{
    Stacks *st = opaque;
    ErdmaCcStack stack;
    ErdmaWire w;

    if (host == st->host && st->n < MAX_STACKS &&
        erdma_wire_parse(&w, data, len) == ERDMA_WIRE_OK &&
        w.type == ERDMA_WIRE_ACK && erdma_wire_int_decode(&w, &stack)) {
        st->v[st->n++] = stack.hop[0];
    }
}

/* Largest distance from @expected between any acks @apart apart or more */
static double worst_rate(const Stacks *st, unsigned apart, double expected)
{
    double worst = expected;
    unsigned i, k;

    for (i = 0; i + apart < st->n; i++) {
        for (k = i + apart; k < MIN(st->n, i + 2 * apart); k++) {
            double u = (st->v[k].tx_bytes - st->v[i].tx_bytes) * 1e9 /
                       (st->v[k].time_ns - st->v[i].time_ns) /
                       st->v[i].rate;

            if (fabs(u - expected) > fabs(worst - expected)) {
                worst = u;
            }
        }
    }
    return worst;
}

static uint64_t max_stamped_queue(const Stacks *st)
{
    uint64_t max = 0;
    unsigned i;

    for (i = 0; i < st->n; i++) {
        max = MAX(max, st->v[i].queue);
    }
    return max;
}

/* Two senders whose own links are the pacemakers */
static void int_arithmetic(void)
{
    g_autofree Stacks *st = g_new0(Stacks, 1);
    NetemConfig nic = { .delay_ns = 0 }, link = { 0 }, plain = { 0 };
    SimFlowSpec flow = { .cc = ERDMA_XPORT_CC_HPCC_INT, .msg_len = ENDLESS,
                         .start_ns = MS };
    SimConfig cfg;
    unsigned sw, end, i, host[2];
    Sim *s;

    sim_config_default(&cfg);
    cfg.seed = ka_seed();
    cfg.xport.int_hops = 1;
    cfg.xport.cc.line_rate = 10 * GBIT / 8;
    cfg.xport.cc.base_rtt_ns = 100 * US;
    s = sim_new(&cfg);
    sw = sim_add_switch(s);
    end = sim_add_host(s);
    link.rate_bps = 10 * GBIT;
    link.delay_ns = 49 * US;
    link.link_id = 1;
    sim_add_link(s, sw, sim_host_node(s, end), &link);
    plain.delay_ns = 49 * US;
    sim_add_link(s, sim_host_node(s, end), sw, &plain);
    for (i = 0; i < 2; i++) {
        host[i] = sim_add_host(s);
        nic.rate_bps = i ? 5 * GBIT : 3 * GBIT;
        sim_add_link(s, sim_host_node(s, host[i]), sw, &nic);
        sim_add_link(s, sw, sim_host_node(s, host[i]), &plain);
    }
    sim_route(s);
    flow.dst = end;
    flow.src = host[0];
    sim_add_flow(s, &flow);
    flow.src = host[1];
    flow.start_ns = 10 * MS;
    sim_add_flow(s, &flow);
    sim_set_tap(s, note_stack, st);
    st->host = host[0];

    sim_run(s, 3 * MS);
    st->n = 0;
    sim_run(s, 9 * MS);
    ka_near("one flow, rate / B", "", worst_rate(st, 50, 0.3), 0.3, 0.005);
    ka_exact("one flow, queue", "bytes", max_stamped_queue(st), 0);
    ka_exact("one flow, stamped bytes", "bytes", st->v[st->n - 1].tx_bytes -
             st->v[0].tx_bytes, (uint64_t)(st->n - 1) * MTU);
    sim_run(s, 12 * MS);
    st->n = 0;
    sim_run(s, 20 * MS);
    ka_near("two flows, rate / B", "", worst_rate(st, 100, 0.8), 0.8, 0.005);
    ka_exact("two flows, queue", "bytes", max_stamped_queue(st), 0);
    sim_free(s);
}

/* INT takes its share of the link. */
static void int_cost(unsigned hops)
{
    g_autofree char *what = g_strdup_printf("payload's share, compact, room "
                                            "for %u", hops);
    double head = HEAD + 2 + 8 * hops;
    uint64_t bytes;
    Ka ka;

    ka_init(&ka);
    ka.cfg.xport.is_int_compact = true;
    ka.cfg.xport.int_hops = hops;
    ka_build(&ka);
    ka_flow(&ka, 0, ERDMA_XPORT_CC_HPCC_INT, ENDLESS, 0, 100 * US);
    ka_run(&ka, MS);
    ka_measure(&ka);
    ka_run(&ka, 10 * MS);
    bytes = sim_flow_stats(ka.s, 0)->delivered_bytes - ka.delivered[0];
    ka_near(what, "", bytes / (double)(sim_link_stats(ka.s, ka.t->link[0])->
            departed_bytes - ka.link.departed_bytes),
            (MTU - head) / MTU, 0.0005);
    ka_free(&ka);
}

void ka_5(void)
{
    ka_begin("KA-5 INT");
    int_arithmetic();
    int_cost(1);
    int_cost(5);
}
