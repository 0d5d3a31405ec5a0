/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: the run loop, and what belongs to no part. */

#include "qemu/osdep.h"
#include "sim-int.h"
#include "xport/wire.h"

#define MS  (1000ULL * 1000)

void sim_config_default(SimConfig *cfg)
{
    memset(cfg, 0, sizeof(*cfg));
    cfg->seed = 1;
    cfg->has_random_ties = true;
    erdma_xport_config_default(&cfg->xport);
    cfg->xport.mtu = 1000;
    cfg->xport.initial_rto_ns = 1 * MS;
    cfg->xport.rto_min_ns = 1 * MS;
    cfg->xport.ack_every = 1;
    cfg->xport.rx_buffer = 64 * 1024 * 1024;
    cfg->xport.pacing_quantum_ns = 0;
    cfg->xport.is_hollow = true;
}

static size_t int_room(const ErdmaXportConfig *cfg)
{
    unsigned hops = MAX(1, MIN(cfg->int_hops, ERDMA_WIRE_INT_HOPS_MAX));

    return erdma_wire_int_bytes(erdma_wire_int_info(cfg->is_int_compact ?
        ERDMA_WIRE_INT_COMPACT : ERDMA_WIRE_INT_WIDE, hops));
}

void *sim_alloc(size_t size)
{
    size_t room = ROUND_UP(size, 64);
    void *p = aligned_alloc(64, room);

    g_assert(p);
    return memset(p, 0, room);
}

Sim *sim_new(const SimConfig *cfg)
{
    Sim *s = g_new0(Sim, 1);

    s->cfg = *cfg;
    s->tie_state = cfg->seed * 0x9e3779b97f4a7c15ULL | 1;
    s->hash = 0x243f6a8885a308d3ULL;
    s->nodes = g_ptr_array_new();
    s->hosts = g_ptr_array_new();
    s->links = g_ptr_array_new();
    s->flows = g_ptr_array_new();
    s->slabs = g_ptr_array_new();
    s->packet_size = ROUND_UP(sizeof(SimPacket) + ERDMA_WIRE_CONTROL_MAX -
                              ERDMA_WIRE_INT_MAX + int_room(&cfg->xport), 64);
    return s;
}

void sim_free(Sim *s)
{
    unsigned i;

    for (i = 0; i < s->hosts->len; i++) {
        sim_host_free(s->hosts->pdata[i]);
    }
    for (i = 0; i < s->flows->len; i++) {
        sim_flow_free(s->flows->pdata[i]);
    }
    sim_net_free(s);
    g_ptr_array_free(s->hosts, true);
    g_ptr_array_free(s->flows, true);
    g_ptr_array_set_free_func(s->nodes, g_free);
    g_ptr_array_free(s->nodes, true);
    sim_heap_destroy(&s->heap);
    g_free(s);
}

/*
 * Chance (xorshift) in the high bits, then the order of scheduling: never
 * two alike.
 */
uint64_t sim_tie(Sim *s)
{
    uint64_t v = s->tie_state;

    if (!s->cfg.has_random_ties) {
        return s->n_ties++;
    }
    v ^= v << 13;
    v ^= v >> 7;
    v ^= v << 17;
    s->tie_state = v;
    return (v & ~0xffffffffULL) | (uint32_t)s->n_ties++;
}

static unsigned add_node(Sim *s, bool is_host, unsigned index)
{
    SimNode *n = g_new0(SimNode, 1);

    n->is_host = is_host;
    n->index = index;
    g_ptr_array_add(s->nodes, n);
    return s->nodes->len - 1;
}

unsigned sim_add_host(Sim *s)
{
    unsigned number = s->hosts->len;

    s->access = g_renew(unsigned, s->access, number + 1);
    s->access[number] = UINT_MAX;
    g_ptr_array_add(s->hosts, sim_host_new(s, number,
                                           add_node(s, true, number)));
    return number;
}

unsigned sim_add_switch(Sim *s)
{
    return add_node(s, false, s->n_switches++);
}

unsigned sim_host_node(const Sim *s, unsigned host)
{
    g_assert(host < s->hosts->len);
    return ((SimHost *)s->hosts->pdata[host])->node;
}

static bool run_one(Sim *s, uint64_t until_ns)
{
    SimEvent *e = sim_heap_due(&s->heap, until_ns);

    if (!e) {
        return false;
    }
    s->cost.events++;
    s->now_ns = MAX(s->now_ns, e->when_ns);
    e->fire(e, s->now_ns);
    sim_heap_fired(&s->heap, e);
    return true;
}

void sim_run(Sim *s, uint64_t until_ns)
{
    while (run_one(s, until_ns)) {
        /* again */
    }
    s->now_ns = MAX(s->now_ns, until_ns);
}

void sim_run_to_end(Sim *s, uint64_t until_ns)
{
    while (s->n_unfinished && run_one(s, until_ns)) {
        /* again */
    }
    if (s->n_unfinished) {
        s->now_ns = MAX(s->now_ns, until_ns);
    }
}

uint64_t sim_now(const Sim *s)
{
    return s->now_ns;
}

unsigned sim_n_hosts(const Sim *s)
{
    return s->hosts->len;
}

unsigned sim_n_links(const Sim *s)
{
    return s->links->len;
}

static SimLink *get_link(const Sim *s, unsigned link)
{
    g_assert(link < s->links->len);
    return s->links->pdata[link];
}

NetemLink *sim_link(const Sim *s, unsigned link)
{
    return get_link(s, link)->net;
}

const char *sim_link_name(const Sim *s, unsigned link)
{
    return get_link(s, link)->name;
}

const NetemStats *sim_link_stats(Sim *s, unsigned link)
{
    return netem_link_stats(sim_link(s, link), s->now_ns);
}

const ErdmaXportStats *sim_host_stats(const Sim *s, unsigned host)
{
    g_assert(host < s->hosts->len);
    return erdma_xport_stats(((SimHost *)s->hosts->pdata[host])->x);
}

uint64_t sim_hash(const Sim *s)
{
    return s->hash;
}

void sim_set_trace(Sim *s, SimTrace *trace, void *opaque)
{
    s->trace = trace;
    s->trace_opaque = opaque;
}

void sim_set_tap(Sim *s, SimTap *tap, void *opaque)
{
    s->tap = tap;
    s->tap_opaque = opaque;
}

void sim_cost(const Sim *s, SimCost *cost)
{
    *cost = s->cost;
}
