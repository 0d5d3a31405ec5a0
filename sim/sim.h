/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Discrete-event simulator of the eRDMA transport.
 *
 * It runs the transport, the congestion control and the emulated links of
 * the device model itself, object for object, on a virtual clock: what is
 * measured here is what guests get.  Hosts have one transport and one link
 * into the network; switches have a link, hence a queue, per port.
 *
 * Deterministic: the same calls with the same seed give the same packets at
 * the same nanoseconds, see sim_hash().
 *
 * Units: nanoseconds, bytes, bits per second.  Packets on a link count with
 * their IP and UDP header.  Threading: none, one Sim per thread.
 *
 * Wrong use (an index that does not exist) aborts: the caller is a program
 * of this repository, not a guest.
 *
 * Reference: docs/congestion-control/simulator.md
 */

#ifndef ERDMA_SIM_SIM_H
#define ERDMA_SIM_SIM_H

#include "netem/netem.h"
#include "xport/xport.h"

typedef struct Sim Sim;

typedef struct SimConfig {
    uint64_t seed;
    /*
     * Events of the same nanosecond fire in random order instead of the
     * order of their scheduling.  Equal senders in lock-step would starve
     * each other otherwise.
     */
    bool has_random_ties;
    ErdmaXportConfig xport;     /* of every host */
} SimConfig;

typedef struct SimFlowSpec {
    unsigned src;               /* hosts, as sim_add_host() numbered them */
    unsigned dst;
    uint8_t cc;                 /* ErdmaXportCc, both directions */
    uint32_t msg_len;
    uint64_t n_msgs;            /* 0: without end */
    uint32_t depth;             /* messages outstanding at once; 0: 2 */
    uint64_t start_ns;
    uint64_t stop_ns;           /* no new message from then on; 0: never */
    uint32_t pn0;               /* first packet number */
} SimFlowSpec;

/* What became of a flow.  Times are 0 as long as it did not happen. */
typedef struct SimFlowStats {
    uint64_t delivered_bytes;   /* consumed by the receiver, in order, once */
    uint64_t delivered_msgs;
    uint64_t done_msgs;         /* the sender knows it */
    uint64_t first_delivered_ns;    /* last byte of the first message */
    uint64_t last_delivered_ns;     /* of the latest one */
    uint64_t first_done_ns;     /* its sender learned it */
    uint64_t last_done_ns;
    uint64_t order_errors;      /* not in order, or not once: never */
    bool is_failed;             /* the transport gave up */
} SimFlowStats;

/* Fills @cfg: transport of a data centre (1 ms timers, ack per packet). */
void sim_config_default(SimConfig *cfg);

Sim *sim_new(const SimConfig *cfg);
void sim_free(Sim *s);

/* Building; a host's number is its own, a node's covers hosts and switches */
unsigned sim_add_host(Sim *s);
unsigned sim_add_switch(Sim *s);
unsigned sim_host_node(const Sim *s, unsigned host);
/*
 * A link from one node to another, one direction; returns its number.  A
 * @cfg->seed of 0 becomes one of the link's own.  A host's first link is the
 * one it sends on.  A link whose @cfg is all 0 is passed in no time, it has
 * no counters and cannot be configured later.
 */
unsigned sim_add_link(Sim *s, unsigned from, unsigned to,
                      const NetemConfig *cfg);
/* Finds the shortest paths, after the last link and before the first flow. */
void sim_route(Sim *s);
/*
 * Opens the connection now, and sends from @spec->start_ns on.  Returns the
 * flow's number.
 */
unsigned sim_add_flow(Sim *s, const SimFlowSpec *spec);

/* Runs up to and including @until_ns. */
void sim_run(Sim *s, uint64_t until_ns);
/* The same, but ends early when every flow with an end has ended. */
void sim_run_to_end(Sim *s, uint64_t until_ns);
uint64_t sim_now(const Sim *s);

/* Looking */
unsigned sim_n_flows(const Sim *s);
unsigned sim_n_hosts(const Sim *s);
unsigned sim_n_links(const Sim *s);
const SimFlowSpec *sim_flow_spec(const Sim *s, unsigned flow);
const SimFlowStats *sim_flow_stats(const Sim *s, unsigned flow);
/* The sender's connection */
void sim_flow_info(const Sim *s, unsigned flow, ErdmaXportConnInfo *info);
NetemLink *sim_link(const Sim *s, unsigned link);
/* Name of a link: "host0>sw0" */
const char *sim_link_name(const Sim *s, unsigned link);
const NetemStats *sim_link_stats(Sim *s, unsigned link);
const ErdmaXportStats *sim_host_stats(const Sim *s, unsigned host);

/*
 * Round trip of a packet of @len bytes (IP header and all) and its ack of
 * @ack_len bytes with nothing in the way.
 */
uint64_t sim_base_rtt(const Sim *s, unsigned src, unsigned dst, uint32_t len,
                      uint32_t ack_len);
/* One way: sum over links of serialisation and delay */
uint64_t sim_path_ns(const Sim *s, unsigned src, unsigned dst, uint32_t len);

/*
 * Hash of everything that happened so far: each packet that arrived over a
 * link, each step of a transport.  Packet numbers count from the flow's
 * first, so two runs that only differ in pn0 are the same.
 */
uint64_t sim_hash(const Sim *s);

/* Called for each step of a sending transport; NULL: nobody */
typedef void SimTrace(void *opaque, unsigned flow, uint64_t now_ns,
                      ErdmaXportEvent event, uint64_t a, uint64_t b);
void sim_set_trace(Sim *s, SimTrace *trace, void *opaque);
/* Called for each datagram that reaches a host; its @data is read-only. */
typedef void SimTap(void *opaque, unsigned host, uint64_t now_ns,
                    const uint8_t *data, size_t len);
void sim_set_tap(Sim *s, SimTap *tap, void *opaque);

/* The cost of the simulation itself */
typedef struct SimCost {
    uint64_t events;
    uint64_t packets;           /* datagrams that hosts handed to the net */
    uint64_t hops;              /* datagrams that arrived over a link */
    uint64_t pool_packets;      /* memory held for packets under way */
    uint64_t pool_bytes;
} SimCost;

void sim_cost(const Sim *s, SimCost *cost);

#endif /* ERDMA_SIM_SIM_H */
