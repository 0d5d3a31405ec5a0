/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: experiment files, see experiment.h. */

#include "qemu/osdep.h"
#include <math.h>
#include "experiment.h"

typedef enum KeyType {
    KEY_RATE,
    KEY_TIME,
    KEY_SIZE,
    KEY_SHARE,
    KEY_NUMBER,
    KEY_COUNT,
    KEY_COUNT32,
    KEY_COUNT8,
    KEY_SWITCH,
    KEY_TOPOLOGY,
    KEY_ALGORITHM,
    KEY_ALGORITHMS,
    KEY_TIMES,
} KeyType;

typedef struct Key {
    const char *name;
    KeyType type;
    size_t offset;
    size_t flag;                /* a bool that says "given"; 0: none */
    const char *help;
} Key;

#define E(member)   offsetof(Experiment, member)
#define X(member)   (offsetof(Experiment, xport) + \
                     offsetof(ErdmaXportConfig, member))
#define L(member)   (offsetof(Experiment, link) + \
                     offsetof(NetemConfig, member))
#define G(member)   offsetof(FlowGroup, member)

static const Key keys[] = {
    { "topology", KEY_TOPOLOGY, E(topology), 0,
      "dumbbell, incast, parking-lot, chain" },
    { "senders", KEY_COUNT, E(senders), 0, "not for a parking lot" },
    { "hops", KEY_COUNT, E(hops), 0, "bottlenecks of parking lot and chain" },
    { "rate", KEY_RATE, E(rate_bps), 0, "of each bottleneck" },
    { "nic-rate", KEY_RATE, E(nic_bps), E(has_nic),
      "of each sender; default: as rate with several senders, else 4 times" },
    { "rtt", KEY_TIME, E(rtt_ns), 0,
      "of a full packet and its ack, without queues" },
    { "rtt-extra", KEY_TIMES, 0, 0, "list, per sender, on top of rtt" },
    { "mtu", KEY_SIZE, E(mtu), 0, "IP packet" },
    { "overhead", KEY_SIZE, E(overhead), 0, "framing per packet" },
    { "queue", KEY_SIZE, E(queue), 0, "of each bottleneck; 0: 64 MiB" },
    { "ecn-min", KEY_SIZE, E(ecn_min), 0, "marks from this queue on" },
    { "ecn-max", KEY_SIZE, E(ecn_max), 0, "marks all from here; 0: no ECN" },
    { "ecn-probability", KEY_SHARE, L(ecn_pmax), 0, "just below ecn-max" },
    { "loss", KEY_SHARE, L(loss), 0, "of packets, independently" },
    { "burst-enter", KEY_SHARE, L(ge_enter), 0,
      "Gilbert-Elliott: good to bad, per packet" },
    { "burst-leave", KEY_SHARE, L(ge_leave), 0, "bad to good" },
    { "burst-loss", KEY_SHARE, L(ge_loss_bad), 0, "in the bad state" },
    { "drop-every", KEY_COUNT, L(drop_every), 0, "each n-th packet" },
    { "corrupt", KEY_SHARE, L(corrupt), 0, "dropped, counted apart" },
    { "duplicate", KEY_SHARE, L(duplicate), 0, "of packets" },
    { "reorder", KEY_SHARE, L(reorder), 0, "of packets, held back" },
    { "reorder-hold", KEY_TIME, L(reorder_ns), 0, "for this long" },
    { "jitter", KEY_TIME, L(jitter_ns), 0, "uniform, keeps the order" },
    { "ack-loss", KEY_SHARE, E(ack_loss), 0, "on the way back" },
    { "send-jitter", KEY_TIME, E(send_jitter_ns), E(has_send_jitter),
      "default: up to one packet's time if there are several senders" },
    { "algorithm", KEY_ALGORITHMS, 0, 0,
      "list, one run each: newreno, cubic, hpcc_rtt, hpcc_ecn, hpcc_int, "
      "none" },
    { "seed", KEY_COUNT, E(seed), 0, "of the first repetition" },
    { "repetitions", KEY_COUNT, E(repetitions), 0, "with seeds that follow" },
    { "duration", KEY_TIME, E(duration_ns), 0, "of a run" },
    { "warm-up", KEY_TIME, E(warm_up_ns), 0, "not in the results" },
    { "interval", KEY_TIME, E(interval_ns), 0, "of the series; 0: none" },
    { "initial-window", KEY_SIZE, E(initial_window), 0,
      "0: ten packets; the whole window of algorithm none" },
    { "rto-min", KEY_TIME, X(rto_min_ns), 0, "shortest timeout" },
    { "rto-max", KEY_TIME, X(rto_max_ns), 0, "longest" },
    { "rto-initial", KEY_TIME, X(initial_rto_ns), 0, "before any sample" },
    { "retries", KEY_COUNT32, X(retry_max), 0, "timeouts before giving up" },
    { "ack-every", KEY_COUNT32, X(ack_every), 0, "packets per ack" },
    { "ack-delay", KEY_TIME, X(ack_delay_ns), 0, "at most" },
    { "pacing", KEY_SWITCH, X(is_paced), 0, "on, off" },
    { "pacing-quantum", KEY_TIME, X(pacing_quantum_ns), 0, "burst" },
    { "ecn", KEY_SWITCH, X(use_ecn), 0, "are packets ECN-capable?" },
    { "go-back-n", KEY_SWITCH, X(is_go_back_n), 0, "no selective repeat" },
    { "int-compact", KEY_SWITCH, X(is_int_compact), 0, "42 bytes, 5 hops" },
    { "base-rtt", KEY_TIME, E(base_rtt_ns), 0,
      "HPCC's T; 0: measured; default: rtt" },
    { "eta", KEY_NUMBER, X(cc.eta), 0, "HPCC_INT, HPCC_ECN: target" },
    { "delta", KEY_NUMBER, X(cc.delta), 0, "HPCC_RTT: target - 1" },
    { "max-stage", KEY_COUNT32, X(cc.max_stage), 0, "HPCC_INT, HPCC_RTT" },
    { "max-stage-ecn", KEY_COUNT32, X(cc.max_stage_ecn), 0, "HPCC_ECN" },
    { "ecn-probe", KEY_SWITCH, X(cc.has_ecn_probe), 0,
      "HPCC_ECN: multiplicative increase" },
    { "w-ai", KEY_SIZE, E(w_ai), 0, "HPCC; 0: from n-flows" },
    { "n-flows", KEY_COUNT32, X(cc.n_flows), 0, "to compute w-ai" },
    { "ecn-beta", KEY_SHARE, X(cc.ecn_beta), 0,
      "loss-based: window's factor on a mark; 0: as on a loss" },
    { "fast-convergence", KEY_SWITCH, X(cc.has_fast_convergence), 0,
      "CUBIC" },
};

static const Key flow_keys[] = {
    { "first", KEY_COUNT, G(first), 0, "sender, from 0" },
    { "count", KEY_COUNT, G(count), 0, "senders; 0: all that follow" },
    { "per-sender", KEY_COUNT, G(per_sender), 0, "flows of each" },
    { "algorithm", KEY_ALGORITHM, G(cc), 0, "default: what is swept" },
    { "message", KEY_SIZE, G(message), 0, "size of each" },
    { "messages", KEY_COUNT, G(messages), 0, "0: without end" },
    { "depth", KEY_COUNT, G(depth), 0, "messages outstanding" },
    { "start", KEY_TIME, G(start_ns), 0, "of the first flow" },
    { "stagger", KEY_TIME, G(stagger_ns), 0, "each flow later by this" },
    { "stop", KEY_TIME, G(stop_ns), 0, "no new message; 0: never" },
};

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

Experiment *experiment_new(void)
{
    Experiment *e = g_new0(Experiment, 1);
    SimConfig cfg;

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
    e->algorithms[0] = ERDMA_XPORT_CC_CUBIC;
    e->n_algorithms = 1;
    e->seed = 1;
    e->repetitions = 1;
    e->duration_ns = 20000000;
    return e;
}

void experiment_free(Experiment *e)
{
    g_free(e->groups);
    g_free(e);
}

static const char *set_topology(int *out, const char *text)
{
    int i;

    for (i = 0; sim_topo_names[i]; i++) {
        if (!strcmp(text, sim_topo_names[i])) {
            *out = i;
            return NULL;
        }
    }
    return "dumbbell, incast, parking-lot or chain";
}

static const char *const cc_allowed =
    "newreno, cubic, hpcc_rtt, hpcc_ecn, hpcc_int or none";

static const char *set_algorithms(Experiment *e, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, ",", 0);
    unsigned i;

    for (i = 0; words[i]; i++) {
        int cc = sim_cc_from_name(g_strstrip(words[i]));

        if (cc < 0 || i == EXPERIMENT_MAX_ALGORITHMS) {
            return "a list of newreno, cubic, hpcc_rtt, hpcc_ecn, hpcc_int, "
                   "none";
        }
        e->algorithms[i] = cc;
    }
    e->n_algorithms = i;
    return i ? NULL : cc_allowed;
}

static const char *set_extra(Experiment *e, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, ",", 0);
    unsigned i;

    for (i = 0; words[i]; i++) {
        const char *allowed;

        if (i == EXPERIMENT_MAX_EXTRA) {
            return "at most 64 times";
        }
        allowed = sim_parse_time(g_strstrip(words[i]), &e->extra_ns[i]);
        if (allowed) {
            return allowed;
        }
    }
    e->n_extra = i;
    return NULL;
}

static const char *set_cc(int *out, const char *text)
{
    *out = sim_cc_from_name(text);
    return *out < 0 ? cc_allowed : NULL;
}

static const char *set_count(void *at, KeyType type, const char *text)
{
    uint64_t value, max = type == KEY_COUNT8 ? UINT8_MAX :
                          type == KEY_COUNT32 ? INT32_MAX : UINT64_MAX;
    const char *allowed = sim_parse_count(text, &value);

    if (allowed) {
        return allowed;
    }
    if (value > max) {
        return "a smaller number";
    }
    if (type == KEY_COUNT32) {
        *(uint32_t *)at = value;
    } else {
        *(uint64_t *)at = value;
    }
    return NULL;
}

static const char *set_value(Experiment *e, void *base, const Key *key,
                             const char *text)
{
    void *at = (char *)base + key->offset;

    if (key->flag) {
        *(bool *)((char *)base + key->flag) = true;
    }
    switch (key->type) {
    case KEY_RATE:
        return sim_parse_rate(text, at);
    case KEY_TIME:
        return sim_parse_time(text, at);
    case KEY_SIZE:
        return sim_parse_size(text, at);
    case KEY_SHARE:
        return sim_parse_share(text, at);
    case KEY_NUMBER:
        return sim_parse_number(text, at);
    case KEY_SWITCH:
        return sim_parse_switch(text, at);
    case KEY_TOPOLOGY:
        return set_topology(at, text);
    case KEY_ALGORITHM:
        return set_cc(at, text);
    case KEY_ALGORITHMS:
        return set_algorithms(e, text);
    case KEY_TIMES:
        return set_extra(e, text);
    default:
        return set_count(at, key->type, text);
    }
}

static const Key *find(const char *name, const Key *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!strcmp(list[i].name, name)) {
            return &list[i];
        }
    }
    return NULL;
}

static char *names_of(const Key *list, size_t n)
{
    GString *s = g_string_new(NULL);
    size_t i;

    for (i = 0; i < n; i++) {
        g_string_append_printf(s, "%s%s", i ? ", " : "", list[i].name);
    }
    return g_string_free(s, false);
}

/* One line without comment and surrounding space, not empty */
static char *parse_line(Experiment *e, char *line)
{
    bool is_flow = e->n_groups != 0;
    const Key *list = is_flow ? flow_keys : keys;
    size_t n = is_flow ? ARRAY_SIZE(flow_keys) : ARRAY_SIZE(keys);
    char *equals = strchr(line, '=');
    const Key *key;
    const char *allowed;

    if (!strcmp(line, "[flows]")) {
        e->groups = g_renew(FlowGroup, e->groups, e->n_groups + 1);
        e->groups[e->n_groups++] = default_group;
        return NULL;
    }
    if (!equals) {
        return g_strdup("neither \"key = value\" nor \"[flows]\"");
    }
    *equals = 0;
    g_strchomp(line);
    key = find(line, list, n);
    if (!key) {
        g_autofree char *names = names_of(list, n);

        return g_strdup_printf("unknown key '%s'%s; allowed: %s", line,
                               is_flow ? " of [flows]" : "", names);
    }
    allowed = set_value(e, is_flow ? (void *)&e->groups[e->n_groups - 1] : e,
                        key, g_strchug(equals + 1));
    return allowed ? g_strdup_printf("%s: '%s' is not %s", key->name,
                                     equals + 1 + strspn(equals + 1, " "),
                                     allowed) : NULL;
}

char *experiment_parse(Experiment *e, const char *name, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", 0);
    unsigned i;

    for (i = 0; lines[i]; i++) {
        char *comment = strchr(lines[i], '#');
        char *problem;

        if (comment) {
            *comment = 0;
        }
        if (!*g_strstrip(lines[i])) {
            continue;
        }
        problem = parse_line(e, lines[i]);
        if (problem) {
            char *message = g_strdup_printf("%s:%u: %s", name, i + 1,
                                            problem);

            g_free(problem);
            return message;
        }
    }
    return NULL;
}

uint64_t experiment_size(const Experiment *e, SimSize size)
{
    return llround(size.is_bdp ? size.value * e->rate_bps / 8e9 * e->rtt_ns :
                   size.value);
}

static unsigned n_pairs(const Experiment *e)
{
    return e->topology == SIM_TOPO_PARKING_LOT ? e->hops + 1 : e->senders;
}

void experiment_config(const Experiment *e, uint64_t seed, SimConfig *cfg,
                       SimTopoSpec *topo)
{
    bool is_many = n_pairs(e) > 1;
    uint64_t packet_ns;

    sim_config_default(cfg);
    cfg->seed = seed;
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

static char *check(const Experiment *e)
{
    uint64_t mtu = experiment_size(e, e->mtu);
    unsigned i;

    if (mtu < ERDMA_XPORT_MTU_MIN || mtu > ERDMA_XPORT_MTU_MAX) {
        return g_strdup("mtu: must be 256B to 65535B");
    }
    if (!e->senders || e->senders > 100000 || !e->hops || e->hops > 64) {
        return g_strdup("senders must be 1 to 100000, hops 1 to 64");
    }
    if (!e->duration_ns || e->warm_up_ns >= e->duration_ns) {
        return g_strdup("duration: must be longer than warm-up");
    }
    if (e->n_extra && e->n_extra != n_pairs(e)) {
        return g_strdup_printf("rtt-extra: %u times for %u senders",
                               e->n_extra, n_pairs(e));
    }
    if (!e->repetitions || e->repetitions > 1000) {
        return g_strdup("repetitions: must be 1 to 1000");
    }
    for (i = 0; i < e->n_groups; i++) {
        const FlowGroup *g = &e->groups[i];
        uint64_t len = experiment_size(e, g->message);

        if (!len || len > UINT32_MAX || g->first + g->count > n_pairs(e) ||
            g->first >= n_pairs(e) || !g->per_sender ||
            g->per_sender > 10000 || !g->depth || g->depth > 4096) {
            return g_strdup_printf("[flows] %u: message must be 1B to 4GB, "
                                   "first + count at most %u (senders), "
                                   "per-sender 1 to 10000, depth 1 to 4096",
                                   i + 1, n_pairs(e));
        }
    }
    return NULL;
}

char *experiment_finish(Experiment *e)
{
    SimConfig cfg;
    SimTopoSpec topo;
    const char *field, *allowed;
    char *problem;

    if (!e->n_groups) {
        e->groups = g_new(FlowGroup, 1);
        e->groups[0] = default_group;
        e->n_groups = 1;
    }
    if (e->topology != SIM_TOPO_PARKING_LOT && e->topology != SIM_TOPO_CHAIN) {
        e->hops = 1;
    }
    problem = check(e);
    if (problem) {
        return problem;
    }
    experiment_config(e, e->seed, &cfg, &topo);
    field = netem_config_check(&topo.link, &allowed);
    return field ? g_strdup_printf("link, %s: %s", field, allowed) : NULL;
}

char *experiment_warnings(const Experiment *e)
{
    GString *s = g_string_new(NULL);
    SimConfig cfg;
    SimTopoSpec topo;
    unsigned i;

    experiment_config(e, e->seed, &cfg, &topo);
    if (topo.nic_bps && e->rate_bps && e->topology != SIM_TOPO_PARKING_LOT &&
        topo.nic_bps * e->senders <= e->rate_bps) {
        g_string_append(s, "rate: the bottleneck is not slower than the "
                        "senders together, nothing will queue\n");
    }
    if (cfg.xport.rto_min_ns < e->rtt_ns) {
        g_string_append(s, "rto-min: below rtt, every packet times out\n");
    }
    for (i = 0; i < e->n_algorithms; i++) {
        if (e->algorithms[i] == ERDMA_XPORT_CC_HPCC_ECN &&
            (!topo.link.ecn_kmax || !cfg.xport.use_ecn)) {
            g_string_append(s, "algorithm: hpcc_ecn without ecn-max or with "
                            "ecn = off sees no mark\n");
        }
        if (e->algorithms[i] == ERDMA_XPORT_CC_HPCC_INT && e->hops > 8) {
            g_string_append(s, "algorithm: hpcc_int has room for 8 hops, "
                            "more make its stacks useless\n");
        }
    }
    return s->len ? g_string_free(s, false) :
                    (g_string_free(s, true), (char *)NULL);
}

static void print_keys(const Key *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        printf("  %-16s  %s\n", list[i].name, list[i].help);
    }
}

void experiment_print_keys(void)
{
    print_keys(keys, ARRAY_SIZE(keys));
    printf("\n[flows]\n");
    print_keys(flow_keys, ARRAY_SIZE(flow_keys));
}
