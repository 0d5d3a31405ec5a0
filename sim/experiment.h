/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: an experiment of which nothing is varied any more, that is what
 * one run needs.  sim/plan.h makes it from a file.
 */

#ifndef ERDMA_SIM_EXPERIMENT_H
#define ERDMA_SIM_EXPERIMENT_H

#include "topo.h"
#include "units.h"

#define EXPERIMENT_MAX_EXTRA        64

/* The same algorithm for a number of senders */
typedef struct FlowGroup {
    uint64_t first;             /* sender */
    uint64_t count;             /* senders; 0: all from there on */
    uint64_t per_sender;        /* flows of each */
    int cc;                     /* -1: the experiment's */
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
    double burst_share;         /* the same as two of link's; 0: not given */
    double burst_length;
    double ack_loss;
    uint64_t send_jitter_ns;
    bool has_send_jitter;       /* else one packet's time if several send */
    /* transport */
    ErdmaXportConfig xport;
    SimSize initial_window;
    SimSize w_ai;
    uint64_t base_rtt_ns;       /* UINT64_MAX: from rtt_ns */
    int cc;
    uint64_t seed;
    uint64_t repetitions;
    /* time */
    uint64_t duration_ns;
    uint64_t warm_up_ns;
    uint64_t interval_ns;       /* of the time series; 0: none */
    FlowGroup *groups;
    unsigned n_groups;
} Experiment;

/* The defaults, with at least one group of flows */
Experiment *experiment_new(unsigned n_groups);
void experiment_free(Experiment *e);
/* What a problem is about; @group counts from 1, 0: no key of flows */
typedef struct ExperimentPlace {
    const char *key;
    unsigned group;
} ExperimentPlace;

/*
 * Completes @e and checks what belongs together.  Returns NULL or what is
 * wrong, to be freed, and where in *@at.
 */
char *experiment_finish(Experiment *e, ExperimentPlace *at);
/* Called for what will work but hardly as meant, by @key */
typedef void ExperimentWarning(void *opaque, const char *key,
                               const char *text);
void experiment_warn(const Experiment *e, ExperimentWarning *warn,
                     void *opaque);

/* Bytes */
uint64_t experiment_size(const Experiment *e, SimSize size);
uint64_t experiment_n_pairs(const Experiment *e);
/* Does every flow have an end? */
bool experiment_is_finite(const Experiment *e);
void experiment_config(const Experiment *e, SimConfig *cfg,
                       SimTopoSpec *topo);

/* -1: unknown */
int sim_cc_from_name(const char *name);
const char *sim_cc_name(uint8_t cc);

#endif /* ERDMA_SIM_EXPERIMENT_H */
