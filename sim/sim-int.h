/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: what its files share. */

#ifndef ERDMA_SIM_SIM_INT_H
#define ERDMA_SIM_SIM_INT_H

#include "event.h"
#include "sim.h"

/* Host 0 has this address, the others follow. */
#define SIM_IP_BASE     0x0a000000u
#define SIM_NO_LINK     UINT_MAX

typedef struct SimPacket {
    NetemPacket net;            /* first: the link hands this back */
    struct SimPacket *next_free;
    uint32_t src;               /* hosts */
    uint32_t dst;
    uint8_t ecn;
    uint16_t head_len;
    uint8_t data[];             /* head_len bytes; the rest has no content */
} SimPacket;

typedef struct SimNode {
    bool is_host;
    unsigned index;             /* of the host, of the switch */
} SimNode;

typedef struct SimLink {
    SimEvent event;             /* first: see link_fire() */
    Sim *sim;
    NetemLink *net;
    unsigned number;
    unsigned from;              /* nodes */
    unsigned to;
    bool is_plain;              /* does nothing, takes no time */
    bool leads_to_host;
    char *name;
} SimLink;

typedef struct SimHost {
    SimEvent event;             /* first: see host_fire() */
    Sim *sim;
    ErdmaXport *x;
    SimLink *out;               /* NULL: not connected */
    SimLink *in;
    uint64_t wire_free_ns;      /* out is busy until then */
    bool is_blocked;
    unsigned number;
    unsigned node;
} SimHost;

typedef struct SimFlow SimFlow;

/*
 * The owner of a connection, as the transport sees it, and what each packet
 * needs of it: one cache line.
 */
typedef struct SimEnd {
    SimFlow *flow;
    Sim *sim;
    ErdmaXportConn *conn;
    unsigned number;            /* of the flow */
    uint32_t pn0;
    uint32_t rx_msn;            /* expected next */
    uint32_t rx_off;
    uint64_t delivered_bytes;
    bool is_receiver;
} QEMU_ALIGNED(64) SimEnd;

struct SimFlow {
    SimEvent event;             /* first: the start */
    Sim *sim;
    SimFlowSpec spec;
    SimFlowStats stats;
    ErdmaXportMsg *msgs;
    uint64_t n_queued;
    bool is_over;
    SimEnd end[2];              /* sender, receiver */
};

struct Sim {
    SimConfig cfg;
    SimHeap heap;
    uint64_t now_ns;
    uint64_t n_ties;
    uint64_t tie_state;
    uint64_t hash;
    GPtrArray *nodes;           /* SimNode */
    GPtrArray *hosts;           /* SimHost */
    GPtrArray *links;           /* SimLink */
    GPtrArray *flows;           /* SimFlow */
    unsigned n_switches;
    /* [switch * n_switches + switch]: link towards it */
    unsigned *next_link;
    /* [host]: the node that its link in comes from */
    unsigned *access;
    unsigned n_unfinished;      /* flows with an end */
    GPtrArray *slabs;
    SimPacket *free_packets;
    size_t packet_size;
    SimTrace *trace;
    void *trace_opaque;
    SimTap *tap;
    void *tap_opaque;
    SimCost cost;
    bool is_polling;            /* inside of a transport */
};

uint64_t sim_tie(Sim *s);

static inline void sim_mix(Sim *s, uint64_t v)
{
    s->hash = (s->hash ^ v) * 0x9fb21c651e98df25ULL;
    s->hash ^= s->hash >> 32;
}

static inline void sim_schedule(Sim *s, SimEvent *e, uint64_t when_ns)
{
    sim_heap_set(&s->heap, e, when_ns, sim_tie(s));
}

/* At @when_ns or earlier: who is early finds nothing to do. */
static inline void sim_schedule_by(Sim *s, SimEvent *e, uint64_t when_ns)
{
    if (!sim_event_is_queued(e) || when_ns < e->when_ns) {
        sim_schedule(s, e, when_ns);
    }
}

/* Zeroed, at the start of a cache line; free() */
void *sim_alloc(size_t size);

/* net.c */
SimPacket *sim_packet_new(Sim *s);
void sim_packet_free(Sim *s, SimPacket *p);
void sim_link_put(SimLink *l, SimPacket *p);
/* How long a link is busy with a packet */
uint64_t sim_serialise_ns(const NetemConfig *cfg, uint32_t len);
/* The links of a path in order; returns how many, at most @max */
unsigned sim_path(const Sim *s, unsigned src, unsigned dst, unsigned *links,
                  unsigned max);
void sim_net_free(Sim *s);

/* host.c */
SimHost *sim_host_new(Sim *s, unsigned number, unsigned node);
void sim_host_free(SimHost *h);
/* A datagram arrived; the caller keeps @p. */
void sim_host_input(SimHost *h, SimPacket *p);
/* A hint that @p arrives soon, see erdma_xport_fetch() */
void sim_host_fetch(const SimHost *h, const SimPacket *p, unsigned stage);
/* Lets its transport do what it can now. */
void sim_host_poll(SimHost *h);

/* flow.c */
void sim_flow_free(SimFlow *f);
ErdmaXportRx sim_flow_rx(SimEnd *end, uint32_t msn, uint32_t off,
                         uint32_t len, bool is_last);
void sim_flow_msg_done(SimEnd *end, ErdmaXportMsg *msg);
void sim_flow_failed(SimEnd *end);
void sim_flow_trace(SimEnd *end, ErdmaXportEvent event, uint64_t a,
                    uint64_t b);

#endif /* ERDMA_SIM_SIM_INT_H */
