/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: what one run needs, see experiment.h. */

#include "qemu/osdep.h"
#include <math.h>
#include "experiment.h"

#define GIB             (1024ULL * 1024 * 1024)
#define MANY_PACKETS    2e8

static const char *const cc_names[] = {
    "newreno", "cubic", "hpcc_rtt", "hpcc_ecn", "hpcc_int",
};

int sim_cc_from_name(const char *name)
{
    g_autofree char *plain = g_strdelimit(g_strdup(name), "-", '_');
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(cc_names); i++) {
        if (!strcmp(plain, cc_names[i])) {
            return i;
        }
    }
    return strcmp(plain, "none") ? -1 : ERDMA_XPORT_CC_NONE;
}

const char *sim_cc_name(uint8_t cc)
{
    return cc < ARRAY_SIZE(cc_names) ? cc_names[cc] : "none";
}

static const FlowGroup default_group = {
    .per_sender = 1, .cc = -1, .message = { 1000000, false }, .depth = 2,
};

Experiment *experiment_new(unsigned n_groups)
{
    Experiment *e = g_new0(Experiment, 1);
    SimConfig cfg;
    unsigned i;

    sim_config_default(&cfg);
    e->xport = cfg.xport;
    e->topology = SIM_TOPO_DUMBBELL;
    e->senders = 1;
    e->hops = 1;
    e->rate_bps = 25000000000ULL;
    e->rtt_ns = 40000;
    e->mtu.value = cfg.xport.mtu;
    e->queue = (SimSize) { 1, true };
    e->link.ecn_pmax = 1;
    e->link.ge_loss_bad = 1;
    e->base_rtt_ns = UINT64_MAX;
    e->cc = ERDMA_XPORT_CC_CUBIC;
    e->seed = 1;
    e->repetitions = 1;
    e->duration_ns = 20000000;
    e->n_groups = MAX(n_groups, 1);
    e->groups = g_new(FlowGroup, e->n_groups);
    for (i = 0; i < e->n_groups; i++) {
        e->groups[i] = default_group;
    }
    return e;
}

void experiment_free(Experiment *e)
{
    if (e) {
        g_free(e->groups);
        g_free(e);
    }
}

uint64_t experiment_size(const Experiment *e, SimSize size)
{
    return llround(size.is_bdp ? size.value * e->rate_bps / 8e9 * e->rtt_ns :
                   size.value);
}

uint64_t experiment_n_pairs(const Experiment *e)
{
    return e->topology == SIM_TOPO_PARKING_LOT ? e->hops + 1 : e->senders;
}

bool experiment_is_finite(const Experiment *e)
{
    unsigned i;

    for (i = 0; i < e->n_groups; i++) {
        if (!e->groups[i].messages) {
            return false;
        }
    }
    return true;
}

void experiment_config(const Experiment *e, SimConfig *cfg, SimTopoSpec *topo)
{
    bool is_many = experiment_n_pairs(e) > 1;
    uint64_t packet_ns;

    sim_config_default(cfg);
    cfg->seed = e->seed;
    cfg->xport = e->xport;
    cfg->xport.mtu = experiment_size(e, e->mtu);
    cfg->xport.initial_window = experiment_size(e, e->initial_window);
    cfg->xport.int_hops = MIN(e->hops, 8);
    cfg->xport.cc.w_ai = experiment_size(e, e->w_ai);

    memset(topo, 0, sizeof(*topo));
    topo->kind = e->topology;
    topo->n = e->senders;
    topo->n_hops = e->hops;
    topo->link = e->link;
    topo->link.rate_bps = e->rate_bps;
    topo->link.overhead = experiment_size(e, e->overhead);
    topo->link.limit = experiment_size(e, e->queue);
    topo->link.ecn_kmin = experiment_size(e, e->ecn_min);
    topo->link.ecn_kmax = experiment_size(e, e->ecn_max);
    topo->link.jitter = e->link.jitter_ns ? NETEM_JITTER_UNIFORM :
                                            NETEM_JITTER_NONE;
    topo->back.loss = e->ack_loss;
    topo->nic_bps = e->has_nic ? e->nic_bps :
                    is_many ? e->rate_bps : 4 * e->rate_bps;
    packet_ns = e->rate_bps ? (cfg->xport.mtu + topo->link.overhead) * 8e9 /
                              e->rate_bps : 0;
    topo->nic_jitter_ns = e->has_send_jitter ? e->send_jitter_ns :
                          is_many ? packet_ns : 0;
    topo->rtt_ns = e->rtt_ns;
    topo->extra_ns = e->n_extra ? e->extra_ns : NULL;
    cfg->xport.cc.line_rate = (topo->nic_bps ? topo->nic_bps :
                               e->rate_bps) / 8;
    /* The jitter's mean is part of what a packet sees of an empty path. */
    cfg->xport.cc.base_rtt_ns = e->base_rtt_ns != UINT64_MAX ?
        e->base_rtt_ns : e->rtt_ns + topo->nic_jitter_ns / 2;
}

static char *check_network(const Experiment *e, const char **key)
{
    uint64_t mtu = experiment_size(e, e->mtu);

    if (mtu < ERDMA_XPORT_MTU_MIN || mtu > ERDMA_XPORT_MTU_MAX) {
        *key = "mtu";
        return g_strdup_printf("%" PRIu64 " B is not %u B to %u B", mtu,
                               ERDMA_XPORT_MTU_MIN, ERDMA_XPORT_MTU_MAX);
    }
    if (!e->rtt_ns) {
        *key = "rtt";
        return g_strdup("must not be 0");
    }
    if (e->n_extra && e->n_extra != experiment_n_pairs(e)) {
        *key = "rtt-extra";
        return g_strdup_printf("%u times for %" PRIu64 " senders", e->n_extra,
                               experiment_n_pairs(e));
    }
    if (experiment_size(e, e->ecn_min) > experiment_size(e, e->ecn_max)) {
        *key = "ecn-min";
        return g_strdup("must not be above ecn-max");
    }
    if (experiment_size(e, e->initial_window) > GIB) {
        *key = "initial-window";
        return g_strdup("must be at most 1 GiB");
    }
    if (experiment_size(e, e->w_ai) > GIB) {
        *key = "w-ai";
        return g_strdup("must be at most 1 GiB");
    }
    return NULL;
}

/* Gilbert-Elliott by what people know of it */
static char *set_bursts(Experiment *e, const char **key)
{
    if (!e->burst_share && !e->burst_length) {
        return NULL;
    }
    if (e->link.ge_enter || e->link.ge_leave) {
        *key = e->burst_share ? "burst-share" : "burst-length";
        return g_strdup("not together with burst-enter or burst-leave");
    }
    if (!e->burst_length) {
        *key = "burst-share";
        return g_strdup("needs burst-length");
    }
    if (e->burst_share > 0.5) {
        *key = "burst-share";
        return g_strdup("must be at most 0.5");
    }
    e->link.ge_leave = 1 / e->burst_length;
    e->link.ge_enter = e->burst_share * e->link.ge_leave /
                       (1 - e->burst_share);
    return NULL;
}

static char *check_time(const Experiment *e, const char **key)
{
    if (!e->duration_ns) {
        *key = "duration";
        return g_strdup("must not be 0");
    }
    if (e->warm_up_ns >= e->duration_ns) {
        *key = "warm-up";
        return g_strdup("must be shorter than duration");
    }
    if (e->interval_ns && e->duration_ns / e->interval_ns > 1000000) {
        *key = "interval";
        return g_strdup("more than 1000000 rows in duration");
    }
    if (e->xport.rto_max_ns < e->xport.rto_min_ns) {
        *key = "rto-max";
        return g_strdup("shorter than rto-min");
    }
    return NULL;
}

static char *check_group(const Experiment *e, const FlowGroup *g,
                         const char **key)
{
    uint64_t len = experiment_size(e, g->message);
    uint64_t n = experiment_n_pairs(e);

    if (!len || len > UINT32_MAX) {
        *key = "message";
        return g_strdup("must be 1 B to 4294967295 B");
    }
    if (g->first >= n) {
        *key = "first";
        return g_strdup_printf("there are senders 0 to %" PRIu64, n - 1);
    }
    if (g->count > n - g->first) {
        *key = "count";
        return g_strdup_printf("there are %" PRIu64 " senders from %" PRIu64
                               " on", n - g->first, g->first);
    }
    if (g->stop_ns && g->stop_ns <= g->start_ns) {
        *key = "stop";
        return g_strdup("must be later than start");
    }
    return NULL;
}

/* netem's fields have other names than the keys. */
static const char *link_key(const char *field)
{
    static const char *const names[][2] = {
        { "limit", "queue" }, { "ecn-kmin", "ecn-min" },
        { "ecn-kmax", "ecn-max" }, { "ecn-pmax", "ecn-probability" },
        { "delay", "rtt" },
    };
    size_t i;

    for (i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(field, names[i][0])) {
            return names[i][1];
        }
    }
    return field;
}

char *experiment_finish(Experiment *e, ExperimentPlace *at)
{
    SimConfig cfg;
    SimTopoSpec topo;
    const char *field, *allowed;
    char *problem;
    unsigned i;

    if (e->topology != SIM_TOPO_PARKING_LOT && e->topology != SIM_TOPO_CHAIN) {
        e->hops = 1;
    }
    at->group = 0;
    problem = check_network(e, &at->key);
    if (!problem) {
        problem = check_time(e, &at->key);
    }
    if (!problem) {
        problem = set_bursts(e, &at->key);
    }
    for (i = 0; i < e->n_groups && !problem; i++) {
        FlowGroup *g = &e->groups[i];

        problem = check_group(e, g, &at->key);
        at->group = problem ? i + 1 : 0;
        g->count = g->count ? g->count : experiment_n_pairs(e) - g->first;
    }
    if (problem) {
        return problem;
    }
    experiment_config(e, &cfg, &topo);
    /* Defaults that depend on others, for whoever looks */
    e->nic_bps = topo.nic_bps;
    e->has_nic = true;
    e->send_jitter_ns = topo.nic_jitter_ns;
    e->has_send_jitter = true;
    e->base_rtt_ns = cfg.xport.cc.base_rtt_ns;
    field = netem_config_check(&topo.link, &allowed);
    if (!field) {
        return NULL;
    }
    at->key = link_key(field);
    return g_strdup_printf("must be %s", allowed);
}

static void warn_of_paths(const Experiment *e, const SimConfig *cfg,
                          const SimTopoSpec *topo, ExperimentWarning *warn,
                          void *opaque)
{
    uint64_t rtt_ns = e->rtt_ns;
    double packets;
    unsigned i;

    for (i = 0; i < e->n_extra; i++) {
        rtt_ns = MAX(rtt_ns, e->rtt_ns + e->extra_ns[i]);
    }
    if (topo->nic_bps && e->rate_bps && e->topology != SIM_TOPO_PARKING_LOT &&
        (double)topo->nic_bps * e->senders <= e->rate_bps) {
        warn(opaque, "rate", "the bottleneck is not slower than the senders "
             "together (nic-rate), nothing will queue");
    }
    if (cfg->xport.rto_min_ns < rtt_ns) {
        warn(opaque, "rto-min", "below rtt, packets time out that are on "
             "their way");
    } else if (cfg->xport.rto_min_ns < 3 * rtt_ns) {
        warn(opaque, "rto-min", "below 3 rtt, the timeout comes before the "
             "tail-loss probe can help");
    }
    packets = (double)e->rate_bps * e->hops * e->duration_ns / 8e9 /
              cfg->xport.mtu;
    if (packets > MANY_PACKETS) {
        warn(opaque, "duration", "more than 200 million packets at rate: "
             "hours of computing");
    }
    if (experiment_n_pairs(e) > 1 && e->has_send_jitter &&
        !e->send_jitter_ns) {
        warn(opaque, "send-jitter", "0 with several senders: equal ones in "
             "lock-step starve each other");
    }
    if (topo->link.limit && topo->link.limit < 2 * cfg->xport.mtu) {
        warn(opaque, "queue", "holds less than two packets");
    }
    if (e->burst_length && !e->burst_share) {
        warn(opaque, "burst-length", "without burst-share (0) there are no "
             "bursts");
    }
    if (e->link.reorder > 0 && !e->link.reorder_ns) {
        warn(opaque, "reorder-hold", "0: nothing is held back, nothing is "
             "reordered");
    }
}

static void warn_of_algorithm(const Experiment *e, uint8_t cc,
                              const SimConfig *cfg, const SimTopoSpec *topo,
                              ExperimentWarning *warn, void *opaque)
{
    bool is_hpcc = cc >= ERDMA_XPORT_CC_HPCC_RTT &&
                   cc <= ERDMA_XPORT_CC_HPCC_INT;

    if (cc == ERDMA_XPORT_CC_HPCC_ECN &&
        (!topo->link.ecn_kmax || !cfg->xport.use_ecn)) {
        warn(opaque, "algorithm", "hpcc_ecn without ecn-max or with ecn = off "
             "sees no mark");
    }
    if (cc == ERDMA_XPORT_CC_HPCC_INT &&
        e->hops > (cfg->xport.is_int_compact ? 5 : 8)) {
        warn(opaque, "hops", "more than an INT stack of hpcc_int has room "
             "for (8, compact 5)");
    }
    if (is_hpcc && e->base_rtt_ns && e->base_rtt_ns < e->rtt_ns) {
        warn(opaque, "base-rtt", "below rtt, HPCC sees congestion without "
             "end");
    }
    if (is_hpcc && !cfg->xport.is_paced) {
        warn(opaque, "pacing", "off: HPCC's bursts look like congestion to "
             "it");
    }
}

void experiment_warn(const Experiment *e, ExperimentWarning *warn,
                     void *opaque)
{
    SimConfig cfg;
    SimTopoSpec topo;
    unsigned i;

    experiment_config(e, &cfg, &topo);
    warn_of_paths(e, &cfg, &topo, warn, opaque);
    for (i = 0; i < e->n_groups; i++) {
        const FlowGroup *g = &e->groups[i];
        uint64_t n_flows = g->count * g->per_sender;

        warn_of_algorithm(e, g->cc < 0 ? e->cc : g->cc, &cfg, &topo, warn,
                          opaque);
        if (g->start_ns + (n_flows - 1) * g->stagger_ns >= e->duration_ns) {
            warn(opaque, "start", "some flows start after the end (duration)");
        }
    }
}
