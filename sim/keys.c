/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: the keys of experiment files, see keys.h. */

#include "qemu/osdep.h"
#include "json.h"
#include "keys.h"

typedef enum KeyType {
    KEY_RATE,
    KEY_TIME,
    KEY_SIZE,
    KEY_SHARE,
    KEY_NUMBER,
    KEY_COUNT,
    KEY_COUNT32,
    KEY_SWITCH,
    KEY_TOPOLOGY,
    KEY_ALGORITHM,
    KEY_EXTRA,                  /* a list of times */
    KEY_TITLE,                  /* any text, for people */
    KEY_PLOTS,
} KeyType;

struct Key {
    const char *name;
    KeyType type;
    size_t offset;
    size_t flag;                /* a bool that says "given"; 0: none */
    const char *help;
};

/* Of numbers and times; those of sizes, see experiment_finish() */
typedef struct Limit {
    const char *name;
    double min;
    double max;
    const char *words;
} Limit;

#define E(member)   offsetof(Experiment, member)
#define X(member)   (offsetof(Experiment, xport) + \
                     offsetof(ErdmaXportConfig, member))
#define L(member)   (offsetof(Experiment, link) + \
                     offsetof(NetemConfig, member))
#define G(member)   offsetof(FlowGroup, member)
#define MS          1e6
#define S           1e9

static const Key keys[] = {
    { "title", KEY_TITLE, 0, 0, "of the experiment, for the plots" },
    { "plots", KEY_PLOTS, 0, 0,
      "list, what ./erdma lab draws: window, rate, queue, utilisation, "
      "goodput, jain, queue-mean, retransmits, flows, fct, none" },
    { "topology", KEY_TOPOLOGY, E(topology), 0,
      "dumbbell, incast, parking-lot, chain" },
    { "senders", KEY_COUNT, E(senders), 0, "not for a parking lot" },
    { "hops", KEY_COUNT, E(hops), 0, "bottlenecks of parking lot and chain" },
    { "rate", KEY_RATE, E(rate_bps), 0, "of each bottleneck" },
    { "nic-rate", KEY_RATE, E(nic_bps), E(has_nic),
      "of each sender; default: as rate with several senders, else 4 times" },
    { "rtt", KEY_TIME, E(rtt_ns), 0,
      "of a full packet and its ack, without queues" },
    { "rtt-extra", KEY_EXTRA, 0, 0, "list, per sender, on top of rtt" },
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
    { "burst-share", KEY_SHARE, E(burst_share), 0,
      "of packets in the bad state; with burst-length instead of "
      "burst-enter and burst-leave" },
    { "burst-length", KEY_NUMBER, E(burst_length), 0,
      "packets in a row in the bad state, mean" },
    { "drop-every", KEY_COUNT, L(drop_every), 0, "each n-th packet" },
    { "corrupt", KEY_SHARE, L(corrupt), 0, "dropped, counted apart" },
    { "duplicate", KEY_SHARE, L(duplicate), 0, "of packets" },
    { "reorder", KEY_SHARE, L(reorder), 0, "of packets, held back" },
    { "reorder-hold", KEY_TIME, L(reorder_ns), 0, "for this long" },
    { "jitter", KEY_TIME, L(jitter_ns), 0, "uniform, keeps the order" },
    { "ack-loss", KEY_SHARE, E(ack_loss), 0, "on the way back" },
    { "send-jitter", KEY_TIME, E(send_jitter_ns), E(has_send_jitter),
      "default: up to one packet's time if there are several senders" },
    { "algorithm", KEY_ALGORITHM, E(cc), 0,
      "newreno, cubic, hpcc_rtt, hpcc_ecn, hpcc_int, none" },
    { "seed", KEY_COUNT, E(seed), 0, "of the first repetition" },
    { "repetitions", KEY_COUNT, E(repetitions), 0, "with seeds that follow" },
    { "duration", KEY_TIME, E(duration_ns), 0,
      "of a run; flows that all have an end may end it earlier" },
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
    { "algorithm", KEY_ALGORITHM, G(cc), 0, "default: the one above" },
    { "message", KEY_SIZE, G(message), 0, "size of each" },
    { "messages", KEY_COUNT, G(messages), 0, "0: without end" },
    { "depth", KEY_COUNT, G(depth), 0, "messages outstanding" },
    { "start", KEY_TIME, G(start_ns), 0, "of the first flow" },
    { "stagger", KEY_TIME, G(stagger_ns), 0, "each flow later by this" },
    { "stop", KEY_TIME, G(stop_ns), 0, "no new message; 0: never" },
};

static const Limit limits[] = {
    { "senders", 1, 100000, "1 to 100000" },
    { "hops", 1, 64, "1 to 64" },
    { "repetitions", 1, 1000, "1 to 1000" },
    { "rto-min", 1000, 60 * S, "1us to 60s" },
    { "rto-max", 1 * MS, 600 * S, "1ms to 600s" },
    { "rto-initial", 1000, 60 * S, "1us to 60s" },
    { "retries", 1, 200, "1 to 200" },
    { "ack-every", 1, 1000, "1 to 1000" },
    { "ack-delay", 0, 1 * S, "0 to 1s" },
    { "pacing-quantum", 0, 1 * S, "0 to 1s" },
    { "burst-length", 1, 1e6, "1 to 1000000" },
    { "eta", 0.1, 1, "0.1 to 1" },
    { "delta", 0.001, 10, "0.001 to 10" },
    { "n-flows", 1, 1000000, "1 to 1000000" },
    { "per-sender", 1, 10000, "1 to 10000" },
    { "depth", 1, 4096, "1 to 4096" },
};

const char *const key_plots[] = {
    "window", "rate", "queue", "utilisation", "goodput", "jain",
    "queue-mean", "retransmits", "flows", "fct", "none", NULL,
};

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
    return *out < 0 ? "newreno, cubic, hpcc_rtt, hpcc_ecn, hpcc_int or none"
                    : NULL;
}

static const char *set_count32(uint32_t *out, const char *text)
{
    uint64_t value;
    const char *allowed = sim_parse_count(text, &value);

    if (allowed) {
        return allowed;
    }
    *out = MIN(value, INT32_MAX);
    return value > INT32_MAX ? "a number below 2147483648" : NULL;
}

static const char *check_plots(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, ",", 0);
    unsigned i;

    for (i = 0; words[i]; i++) {
        if (!g_strv_contains(key_plots, g_strstrip(words[i]))) {
            return "a list of window, rate, queue, utilisation, goodput, "
                   "jain, queue-mean, retransmits, flows, fct; or none";
        }
    }
    return i ? NULL : "at least one plot, or none";
}

static const char *set_value(const Key *key, Experiment *e, void *at,
                             const char *text)
{
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
    case KEY_EXTRA:
        return set_extra(e, text);
    case KEY_COUNT32:
        return set_count32(at, text);
    case KEY_COUNT:
        return sim_parse_count(text, at);
    case KEY_PLOTS:
        return check_plots(text);
    case KEY_TITLE:
        return *text ? NULL : "some text";
    }
    return NULL;
}

/* What was set, for the limits; those of sizes are not the key's alone. */
static double value_of(const Key *key, const void *at)
{
    switch (key->type) {
    case KEY_NUMBER:
        return *(const double *)at;
    case KEY_COUNT32:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static bool is_flow_key(const Key *key)
{
    return key >= flow_keys && key < flow_keys + ARRAY_SIZE(flow_keys);
}

static void *place(const Key *key, const Experiment *e, unsigned group)
{
    return (char *)(is_flow_key(key) ? (void *)&e->groups[group] : (void *)e)
           + key->offset;
}

static const Limit *limit_of(const Key *key)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(limits); i++) {
        if (!strcmp(limits[i].name, key->name)) {
            return &limits[i];
        }
    }
    return NULL;
}

const char *key_set(const Key *key, Experiment *e, unsigned group,
                    const char *text)
{
    void *at = place(key, e, group);
    const char *allowed = set_value(key, e, at, text);
    const Limit *limit = limit_of(key);

    if (allowed) {
        return allowed;
    }
    if (key->flag) {
        *(bool *)((char *)e + key->flag) = true;
    }
    return limit && (value_of(key, at) < limit->min ||
                     value_of(key, at) > limit->max) ? limit->words : NULL;
}

const Key *key_find(const char *name, bool is_flow)
{
    const Key *list = is_flow ? flow_keys : keys;
    size_t n = is_flow ? ARRAY_SIZE(flow_keys) : ARRAY_SIZE(keys), i;

    for (i = 0; i < n; i++) {
        if (!strcmp(list[i].name, name)) {
            return &list[i];
        }
    }
    return NULL;
}

char *key_names(bool is_flow)
{
    const Key *list = is_flow ? flow_keys : keys;
    size_t n = is_flow ? ARRAY_SIZE(flow_keys) : ARRAY_SIZE(keys), i;
    GString *s = g_string_new(NULL);

    for (i = 0; i < n; i++) {
        g_string_append_printf(s, "%s%s", i ? ", " : "", list[i].name);
    }
    return g_string_free(s, false);
}

const char *key_name(const Key *key)
{
    return key->name;
}

bool key_is_swept(const Key *key)
{
    static const char *const single[] = {
        "seed", "repetitions", "interval", NULL
    };

    return key->type != KEY_EXTRA && key->type != KEY_TITLE &&
           key->type != KEY_PLOTS && !g_strv_contains(single, key->name);
}

static void print_extra(const Experiment *e, FILE *f)
{
    unsigned i;

    fputc('[', f);
    for (i = 0; i < e->n_extra; i++) {
        fprintf(f, "%s%" PRIu64, i ? ", " : "", e->extra_ns[i]);
    }
    fputc(']', f);
}

static void print_value(const Key *key, const Experiment *e, const void *at,
                        FILE *f)
{
    switch (key->type) {
    case KEY_SIZE:
        fprintf(f, "%" PRIu64, experiment_size(e, *(const SimSize *)at));
        break;
    case KEY_SHARE:
    case KEY_NUMBER:
        fprintf(f, "%.17g", *(const double *)at);
        break;
    case KEY_COUNT32:
        fprintf(f, "%" PRIu32, *(const uint32_t *)at);
        break;
    case KEY_SWITCH:
        fputs(*(const bool *)at ? "true" : "false", f);
        break;
    case KEY_TOPOLOGY:
        json_string(f, sim_topo_names[*(const int *)at]);
        break;
    case KEY_ALGORITHM:
        json_string(f, *(const int *)at < 0 ? sim_cc_name(e->cc) :
                       sim_cc_name(*(const int *)at));
        break;
    case KEY_EXTRA:
        print_extra(e, f);
        break;
    default:
        fprintf(f, "%" PRIu64, *(const uint64_t *)at);
        break;
    }
}

static void print_members(const Key *list, size_t n, const Experiment *e,
                          unsigned group, FILE *f)
{
    bool is_first = true;
    size_t i;

    for (i = 0; i < n; i++) {
        if (list[i].type != KEY_TITLE && list[i].type != KEY_PLOTS) {
            fputs(is_first ? "" : ", ", f);
            is_first = false;
            json_string(f, list[i].name);
            fputs(": ", f);
            print_value(&list[i], e, place(&list[i], e, group), f);
        }
    }
}

void key_print_settings(const Experiment *e, FILE *f)
{
    print_members(keys, ARRAY_SIZE(keys), e, 0, f);
}

void key_print_group(const Experiment *e, unsigned group, FILE *f)
{
    print_members(flow_keys, ARRAY_SIZE(flow_keys), e, group, f);
}

static void print_help(const Key *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const Limit *limit = limit_of(&list[i]);

        printf("  %-16s  %s%s%s\n", list[i].name, list[i].help,
               limit ? "; " : "", limit ? limit->words : "");
    }
}

void key_print_help(void)
{
    print_help(keys, ARRAY_SIZE(keys));
    printf("\n[flows]\n");
    print_help(flow_keys, ARRAY_SIZE(flow_keys));
    printf("\n[guests]\n  any key of the first list, flows.KEY, "
           "flows.N.KEY: replace those above\n  when guests run the file\n");
}
