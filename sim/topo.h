/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: ready-made networks.
 *
 *   dumbbell      n senders - switch = bottleneck = switch - n receivers
 *   incast        n senders - switch = bottleneck = one receiver
 *   parking lot   switches in a row, h bottlenecks; pair 0 goes through all
 *                 of them, pairs 1 to h through one each
 *   chain         the same row, n pairs through all of it
 *
 * The way back is as long and never congested.  Links into and out of
 * receivers only add delay.  INT hops are the bottlenecks.
 */

#ifndef ERDMA_SIM_TOPO_H
#define ERDMA_SIM_TOPO_H

#include "sim.h"

typedef enum SimTopoKind {
    SIM_TOPO_DUMBBELL,
    SIM_TOPO_INCAST,
    SIM_TOPO_PARKING_LOT,
    SIM_TOPO_CHAIN,
    SIM_TOPO_COUNT,
} SimTopoKind;

typedef struct SimTopoSpec {
    SimTopoKind kind;
    unsigned n;                 /* senders; not for parking lots */
    unsigned n_hops;            /* bottlenecks of parking lot and chain */
    NetemConfig link;           /* each bottleneck; delay_ns is computed */
    NetemConfig back;           /* what acks meet; delay_ns is computed */
    uint64_t nic_bps;           /* 0: infinite */
    /* Sending times vary by up to this much: against lock-step */
    uint64_t nic_jitter_ns;
    /*
     * Round trip of a full packet and its ack, empty queues, serialisation
     * and all, for a pair through every bottleneck.
     */
    uint64_t rtt_ns;
    /* Pair i's round trip is longer by extra_ns[i]; NULL: none */
    const uint64_t *extra_ns;
} SimTopoSpec;

typedef struct SimTopo {
    unsigned n_pairs;
    unsigned *src;              /* hosts */
    unsigned *dst;
    unsigned n_links;
    unsigned *link;             /* the bottlenecks */
    unsigned *nic;              /* the sender's link of each pair */
} SimTopo;

/*
 * Builds @spec in @s, which is empty.  Returns NULL and the reason in *@why
 * when it is impossible (a round trip shorter than the serialisation).
 */
SimTopo *sim_topo_new(Sim *s, const SimTopoSpec *spec, uint32_t mtu,
                      const char **why);
void sim_topo_free(SimTopo *t);

/* NULL-terminated, by kind */
extern const char *const sim_topo_names[];

#endif /* ERDMA_SIM_TOPO_H */
