/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: an experiment, as a file describes it.
 *
 * Lines of "key = value"; "#" starts a comment.  A line "[flows]" starts a
 * group of flows, whose keys follow; without any group each sender has one
 * flow.  All keys: docs/congestion-control/simulator.md, or erdma-sim --keys.
 */

#ifndef ERDMA_SIM_EXPERIMENT_H
#define ERDMA_SIM_EXPERIMENT_H

#include "topo.h"
#include "units.h"

#define EXPERIMENT_MAX_ALGORITHMS   6
#define EXPERIMENT_MAX_EXTRA        64

/* The same algorithm for a number of senders */
typedef struct FlowGroup {
    uint64_t first;             /* sender */
    uint64_t count;             /* senders; 0: all from there on */
    uint64_t per_sender;        /* flows of each */
    int cc;                     /* -1: the one that is swept */
    SimSize message;
    uint64_t messages;          /* 0: without end */
    uint64_t depth;
    uint64_t start_ns;
    uint64_t stagger_ns;
    uint64_t stop_ns;
} FlowGroup;

typedef struct Experiment {
    /* network */
    int topology;
    uint64_t senders;
    uint64_t hops;
    uint64_t rate_bps;
    uint64_t nic_bps;
    bool has_nic;
    uint64_t rtt_ns;
    uint64_t extra_ns[EXPERIMENT_MAX_EXTRA];
    unsigned n_extra;
    SimSize mtu;
    SimSize overhead;
    SimSize queue;
    SimSize ecn_min;
    SimSize ecn_max;
    NetemConfig link;           /* impairments of the bottlenecks */
    double ack_loss;
    uint64_t send_jitter_ns;
    bool has_send_jitter;       /* else one packet's time if several send */
    /* transport */
    ErdmaXportConfig xport;
    SimSize initial_window;
    SimSize w_ai;
    uint64_t base_rtt_ns;
    /* what is varied */
    uint8_t algorithms[EXPERIMENT_MAX_ALGORITHMS];
    unsigned n_algorithms;
    uint64_t seed;
    uint64_t repetitions;
    /* time */
    uint64_t duration_ns;
    uint64_t warm_up_ns;
    uint64_t interval_ns;       /* of the time series; 0: none */
    FlowGroup *groups;
    unsigned n_groups;
} Experiment;

Experiment *experiment_new(void);
void experiment_free(Experiment *e);
/*
 * Reads @text.  Returns NULL or a message that names @name, the line, the
 * key and what is allowed; the caller frees it.
 */
char *experiment_parse(Experiment *e, const char *name, const char *text);
/* After all of it: checks what belongs together; the same result */
char *experiment_finish(Experiment *e);
/* Says what will work but hardly as meant; lines, or NULL */
char *experiment_warnings(const Experiment *e);
/* Prints every key with what it means. */
void experiment_print_keys(void);

/* Bytes */
uint64_t experiment_size(const Experiment *e, SimSize size);
/* What the keys say, for one run */
void experiment_config(const Experiment *e, uint64_t seed, SimConfig *cfg,
                       SimTopoSpec *topo);

/* -1: unknown */
int sim_cc_from_name(const char *name);
const char *sim_cc_name(uint8_t cc);

#endif /* ERDMA_SIM_EXPERIMENT_H */
