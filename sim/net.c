/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: packets, links, the way from host to host. */

#include "qemu/osdep.h"
#include "xport/link.h"
#include "sim-int.h"

#define SLAB_BYTES  (256 * 1024)
/* Fewer flows than this are in the caches anyway. */
#define FETCH_FLOWS 64
/* Packets that fetch_ahead() works on */
#define N_AHEAD     (ERDMA_XPORT_FETCHES + 2)

/*
 * Packets come from slabs and go back to a list: in steady state nothing is
 * allocated, and the memory is what was once under way at the same time.
 */
static void add_slab(Sim *s)
{
    size_t n = MAX(SLAB_BYTES / s->packet_size, 1), i;
    uint8_t *slab = sim_alloc(n * s->packet_size);

    g_ptr_array_add(s->slabs, slab);
    s->cost.pool_packets += n;
    s->cost.pool_bytes += n * s->packet_size;
    for (i = n; i-- > 0; ) {
        sim_packet_free(s, (SimPacket *)(slab + i * s->packet_size));
    }
}

SimPacket *sim_packet_new(Sim *s)
{
    SimPacket *p;

    if (!s->free_packets) {
        add_slab(s);
    }
    p = s->free_packets;
    s->free_packets = p->next_free;
    p->net.data = p->data;
    return p;
}

void sim_packet_free(Sim *s, SimPacket *p)
{
    p->next_free = s->free_packets;
    s->free_packets = p;
}

static bool link_mark(void *opaque, NetemPacket *p)
{
    return erdma_link_mark(p->data, p->len - ERDMA_XPORT_IP_UDP_LEN);
}

static bool link_stamp(void *opaque, NetemPacket *p, uint64_t time_ns,
                       uint64_t tx_bytes, uint64_t queue)
{
    const SimLink *l = opaque;
    const NetemConfig *cfg = netem_link_config(l->net);
    ErdmaLinkStamp stamp = {
        .rate_bps = cfg->rate_bps,
        .time_ns = time_ns,
        .tx_bytes = tx_bytes,
        .queue = MIN(queue, UINT32_MAX),
        .link_id = cfg->link_id,
    };

    return erdma_link_stamp(p->data, p->len - ERDMA_XPORT_IP_UDP_LEN, &stamp);
}

static NetemPacket *link_copy(void *opaque, const NetemPacket *p)
{
    const SimLink *l = opaque;
    SimPacket *copy = sim_packet_new(l->sim);

    memcpy(copy, p, offsetof(SimPacket, data) +
                    ((const SimPacket *)p)->head_len);
    copy->net.data = copy->data;
    return &copy->net;
}

static void link_free(void *opaque, NetemPacket *p)
{
    const SimLink *l = opaque;

    sim_packet_free(l->sim, (SimPacket *)p);
}

static const NetemOps link_ops = {
    .mark = link_mark,
    .stamp = link_stamp,
    .copy = link_copy,
    .free = link_free,
};

static void link_arrived(SimLink *l, SimPacket *p);

static void arm(SimLink *l)
{
    uint64_t at_ns = netem_link_next(l->net);

    if (at_ns != NETEM_NEVER) {
        sim_schedule_by(l->sim, &l->event, at_ns);
    }
}

uint64_t sim_serialise_ns(const NetemConfig *cfg, uint32_t len)
{
    if (!cfg->rate_bps) {
        return 0;
    }
    return (uint64_t)(len + cfg->overhead) * 8 * 1000000000.0 /
           cfg->rate_bps;
}

/* From node @from to host @dst; NULL: there is no way */
static SimLink *next_link(const Sim *s, unsigned from, unsigned dst)
{
    const SimNode *at, *access;
    unsigned next;

    if (s->access[dst] == from) {
        return ((SimHost *)s->hosts->pdata[dst])->in;
    }
    at = s->nodes->pdata[from];
    if (at->is_host) {
        return ((SimHost *)s->hosts->pdata[at->index])->out;
    }
    access = s->nodes->pdata[s->access[dst]];
    g_assert(!access->is_host && s->next_link);
    next = s->next_link[at->index * s->n_switches + access->index];
    return next == SIM_NO_LINK ? NULL : s->links->pdata[next];
}

void sim_link_put(SimLink *l, SimPacket *p)
{
    Sim *s = l->sim;

    /* A transport must not be called from within another one. */
    if (l->is_plain && !(s->is_polling && l->leads_to_host)) {
        link_arrived(l, p);
        return;
    }
    netem_link_put(l->net, &p->net, s->now_ns);
    arm(l);
}

/* To the host that @l leads to */
static void arrive(SimLink *l, SimPacket *p)
{
    Sim *s = l->sim;
    SimHost *h = s->hosts->pdata[p->dst];

    g_assert(l->to == h->node);
    sim_host_input(h, p);
    sim_packet_free(s, p);
}

/* To a switch, which knows what comes next */
static void pass_on(SimLink *l, SimPacket *p)
{
    Sim *s = l->sim;
    SimLink *next = next_link(s, l->to, p->dst);

    g_assert(next);
    sim_link_put(next, p);
}

static void link_arrived(SimLink *l, SimPacket *p)
{
    Sim *s = l->sim;

    s->cost.hops++;
    sim_mix(s, s->now_ns);
    sim_mix(s, (uint64_t)l->number << 32 | p->net.len);
    if (l->leads_to_host) {
        arrive(l, p);
    } else {
        pass_on(l, p);
    }
}

/*
 * Thousands of connections fit no cache, but it is known which packets come
 * out next: while this one is worked on, memory fetches what those will need,
 * a stage per packet.
 */
static void fetch_ahead(SimLink *l)
{
    NetemPacket *v[N_AHEAD];
    unsigned n = netem_link_ahead(l->net, v, ARRAY_SIZE(v)), i;

    for (i = 0; i < n; i++) {
        SimPacket *p = (SimPacket *)v[i];

        if (i == N_AHEAD - 1) {
            __builtin_prefetch(p);
            __builtin_prefetch((char *)p + 64);
            __builtin_prefetch((char *)p + 128);
        } else {
            sim_host_fetch(l->sim->hosts->pdata[p->dst], p,
                           N_AHEAD - 2 - i);
        }
    }
}

static void link_fire(SimEvent *e, uint64_t now_ns)
{
    SimLink *l = (SimLink *)e;
    bool is_worth_it = l->sim->flows->len >= FETCH_FLOWS;
    NetemPacket *p;

    while ((p = netem_link_take(l->net, now_ns)) != NULL) {
        if (is_worth_it) {
            fetch_ahead(l);
        }
        link_arrived(l, (SimPacket *)p);
    }
    arm(l);
}

static char *node_name(const Sim *s, unsigned node)
{
    const SimNode *n = s->nodes->pdata[node];

    return g_strdup_printf("%s%u", n->is_host ? "host" : "sw", n->index);
}

/* One seed per link, whatever the number of the others */
static uint64_t link_seed(const Sim *s, unsigned number)
{
    uint64_t v = s->cfg.seed * 0x9e3779b97f4a7c15ULL + number + 1;

    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return v ^ (v >> 27);
}

unsigned sim_add_link(Sim *s, unsigned from, unsigned to,
                      const NetemConfig *cfg)
{
    const SimNode *a = s->nodes->pdata[from], *b = s->nodes->pdata[to];
    SimLink *l = sim_alloc(sizeof(*l));
    static const NetemConfig nothing;
    NetemConfig c = *cfg;
    g_autofree char *from_name = node_name(s, from);
    g_autofree char *to_name = node_name(s, to);

    l->sim = s;
    l->number = s->links->len;
    l->from = from;
    l->to = to;
    l->name = g_strdup_printf("%s>%s", from_name, to_name);
    l->event.fire = link_fire;
    l->is_plain = !memcmp(cfg, &nothing, sizeof(nothing));
    l->leads_to_host = b->is_host;
    if (!c.seed) {
        c.seed = link_seed(s, l->number);
    }
    l->net = netem_link_new(&link_ops, l, &c);
    g_ptr_array_add(s->links, l);
    if (a->is_host) {
        SimHost *h = s->hosts->pdata[a->index];

        h->out = h->out ? h->out : l;
    }
    if (b->is_host) {
        SimHost *h = s->hosts->pdata[b->index];

        if (!h->in) {
            h->in = l;
            s->access[h->number] = from;
        }
    }
    return l->number;
}

/* Fills in, for one destination, the links of all switches towards it. */
static void route_to(Sim *s, unsigned dst)
{
    g_autofree unsigned *order = g_new(unsigned, s->n_switches);
    unsigned n = 1, done, i;

    order[0] = dst;
    for (done = 0; done < n; done++) {
        for (i = 0; i < s->links->len; i++) {
            const SimLink *l = s->links->pdata[i];
            const SimNode *a = s->nodes->pdata[l->from];
            const SimNode *b = s->nodes->pdata[l->to];
            unsigned *next;

            if (a->is_host || b->is_host || b->index != order[done]) {
                continue;
            }
            next = &s->next_link[a->index * s->n_switches + dst];
            if (a->index != dst && *next == SIM_NO_LINK) {
                *next = i;
                order[n++] = a->index;
            }
        }
    }
}

void sim_route(Sim *s)
{
    unsigned n = s->n_switches, i;

    g_free(s->next_link);
    s->next_link = g_new(unsigned, MAX(n * n, 1));
    for (i = 0; i < n * n; i++) {
        s->next_link[i] = SIM_NO_LINK;
    }
    for (i = 0; i < n; i++) {
        route_to(s, i);
    }
}

unsigned sim_path(const Sim *s, unsigned src, unsigned dst, unsigned *links,
                  unsigned max)
{
    const SimHost *h = s->hosts->pdata[src];
    unsigned node = h->node, n = 0;

    while (n < max) {
        const SimNode *at = s->nodes->pdata[node];
        const SimLink *l;

        if (at->is_host && at->index == dst) {
            break;
        }
        l = next_link(s, node, dst);
        g_assert(l);
        links[n++] = l->number;
        node = l->to;
    }
    return n;
}

uint64_t sim_path_ns(const Sim *s, unsigned src, unsigned dst, uint32_t len)
{
    unsigned links[256];
    unsigned n = sim_path(s, src, dst, links, ARRAY_SIZE(links)), i;
    uint64_t sum = 0;

    for (i = 0; i < n; i++) {
        const SimLink *l = s->links->pdata[links[i]];
        const NetemConfig *cfg = netem_link_config(l->net);

        sum += cfg->delay_ns + sim_serialise_ns(cfg, len);
    }
    return sum;
}

uint64_t sim_base_rtt(const Sim *s, unsigned src, unsigned dst, uint32_t len,
                      uint32_t ack_len)
{
    return sim_path_ns(s, src, dst, len) + sim_path_ns(s, dst, src, ack_len);
}

void sim_net_free(Sim *s)
{
    unsigned i;

    for (i = 0; i < s->links->len; i++) {
        SimLink *l = s->links->pdata[i];

        netem_link_free(l->net);
        g_free(l->name);
        free(l);
    }
    g_ptr_array_free(s->links, true);
    g_free(s->next_link);
    g_free(s->access);
    g_ptr_array_set_free_func(s->slabs, free);
    g_ptr_array_free(s->slabs, true);
}
