/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: runs an experiment and writes down what happens. */

#include "qemu/osdep.h"
#include <errno.h>
#include "json.h"
#include "report.h"

typedef struct Run {
    const Plan *plan;
    unsigned number;
    Experiment *e;
    Sim *s;
    SimTopo *t;
    FILE *flows;
    FILE *links;
    uint64_t *last_bytes;       /* per flow, at the sample before */
    uint64_t *last_departed;    /* per bottleneck */
    /*
     * Time 0 of the experiment: connections were opened a round trip ago, so
     * that each end has heard of the other.
     */
    uint64_t zero_ns;
    /* where results begin */
    uint64_t from_ns;
    uint64_t *from_bytes;
    ErdmaXportConnInfo *from_info;
    NetemStats *from_link;
} Run;

static FILE *open_csv(const char *dir, const char *what, const char *label,
                      char **problem)
{
    g_autofree char *path = g_strdup_printf("%s/%s-%s.csv", dir, what, label);
    FILE *f = fopen(path, "w");

    if (!f && !*problem) {
        *problem = g_strdup_printf("%s: %s", path, g_strerror(errno));
    }
    return f;
}

/* Of the experiment's own clock */
static uint64_t now_ns(const Run *r)
{
    return sim_now(r->s) - r->zero_ns;
}

static void add_flows(Run *r)
{
    const Experiment *e = r->e;
    unsigned i;

    for (i = 0; i < e->n_groups; i++) {
        const FlowGroup *g = &e->groups[i];
        uint64_t k, n = 0;

        for (k = 0; k < g->count * g->per_sender; k++) {
            unsigned pair = g->first + k / g->per_sender;
            SimFlowSpec flow = {
                .src = r->t->src[pair],
                .dst = r->t->dst[pair],
                .cc = g->cc < 0 ? e->cc : g->cc,
                .msg_len = experiment_size(e, g->message),
                .n_msgs = g->messages,
                .depth = g->depth,
                .start_ns = r->zero_ns + g->start_ns +
                            n++ * g->stagger_ns,
                .stop_ns = g->stop_ns ? r->zero_ns + g->stop_ns : 0,
            };

            sim_add_flow(r->s, &flow);
        }
    }
}

static void sample_flows(Run *r, double seconds)
{
    unsigned i;

    for (i = 0; i < sim_n_flows(r->s); i++) {
        const SimFlowStats *st = sim_flow_stats(r->s, i);
        ErdmaXportConnInfo c;
        uint64_t new_bytes = st->delivered_bytes - r->last_bytes[i];

        sim_flow_info(r->s, i, &c);
        r->last_bytes[i] = st->delivered_bytes;
        fprintf(r->flows, "%.3f,%u,%s,%" PRIu64 ",%" PRIu64 ",%" PRId64
                ",%" PRIu64 ",%.0f,%" PRIu64 ",%.3f,%.3f,%.5f,%.5f,%" PRIu64
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 "\n", now_ns(r) / 1e3, i, c.cc_name, c.cwnd,
                c.cc.reference, c.ssthresh == UINT64_MAX ? -1 :
                (int64_t)c.ssthresh, c.pacing_rate * 8,
                seconds > 0 ? new_bytes * 8 / seconds : 0, c.inflight,
                c.srtt_ns / 1e3, c.min_rtt_ns / 1e3, c.cc.u, c.cc.alpha,
                st->delivered_bytes, c.retransmits, c.lost, c.spurious,
                c.probes, c.rtos, c.ce_echoed);
    }
}

static void sample_links(Run *r, double seconds)
{
    unsigned i;

    for (i = 0; i < r->t->n_links; i++) {
        unsigned link = r->t->link[i];
        const NetemStats *st = sim_link_stats(r->s, link);
        uint64_t rate = netem_link_config(sim_link(r->s, link))->rate_bps;
        double bits = (st->departed_bytes - r->last_departed[i]) * 8.0;

        r->last_departed[i] = st->departed_bytes;
        fprintf(r->links, "%.3f,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.5f\n",
                now_ns(r) / 1e3, sim_link_name(r->s, link),
                netem_link_queue(sim_link(r->s, link)), st->queue_max,
                st->arrivals, st->drop_queue, st->drop_loss +
                st->drop_burst + st->drop_listed + st->drop_corrupt,
                st->marks, st->departed_bytes,
                rate && seconds > 0 ? bits / seconds / rate : 0);
    }
}

static void begin_results(Run *r)
{
    unsigned i;

    r->from_ns = MAX(sim_now(r->s), r->zero_ns);
    for (i = 0; i < sim_n_flows(r->s); i++) {
        r->from_bytes[i] = sim_flow_stats(r->s, i)->delivered_bytes;
        sim_flow_info(r->s, i, &r->from_info[i]);
    }
    for (i = 0; i < r->t->n_links; i++) {
        r->from_link[i] = *sim_link_stats(r->s, r->t->link[i]);
        netem_link_restart_max(sim_link(r->s, r->t->link[i]));
    }
}

/* Flows that all have an end end the run, too. */
static void run_until(Run *r, uint64_t until_ns)
{
    if (experiment_is_finite(r->e)) {
        sim_run_to_end(r->s, r->zero_ns + until_ns);
    } else {
        sim_run(r->s, r->zero_ns + until_ns);
    }
}

static void run(Run *r)
{
    const Experiment *e = r->e;
    uint64_t step = r->flows && e->interval_ns ? e->interval_ns :
                    e->duration_ns;
    uint64_t next = 0, last = 0;

    /* The counters begin before the first packet. */
    sim_run(r->s, r->zero_ns - 1);
    begin_results(r);
    sim_run(r->s, r->zero_ns);
    while (next < e->duration_ns && now_ns(r) == next) {
        uint64_t now;

        next = MIN(next + step, e->duration_ns);
        if (last < e->warm_up_ns && next >= e->warm_up_ns) {
            run_until(r, e->warm_up_ns);
            begin_results(r);
        }
        run_until(r, next);
        now = now_ns(r);
        if (r->flows && now > last) {
            sample_flows(r, (now - last) / 1e9);
            sample_links(r, (now - last) / 1e9);
        }
        last = now;
    }
}

static void summarise_links(Run *r, double seconds, FILE *f)
{
    unsigned i;

    fprintf(f, "  \"links\": [");
    for (i = 0; i < r->t->n_links; i++) {
        unsigned link = r->t->link[i];
        const NetemStats *st = sim_link_stats(r->s, link);
        const NetemStats *from = &r->from_link[i];

        fprintf(f, "%s\n    {\"link\": \"%s\", \"utilisation\": %.6f, "
                "\"queue_mean\": %.1f, \"queue_max\": %" PRIu64
                ", \"arrivals\": %" PRIu64 ", \"drop_queue\": %" PRIu64
                ", \"drop_loss\": %" PRIu64 ", \"marks\": %" PRIu64 "}",
                i ? "," : "", sim_link_name(r->s, link),
                (st->busy_ns - from->busy_ns) / 1e9 / seconds,
                (st->queue_integral - from->queue_integral) / seconds,
                st->queue_max, st->arrivals - from->arrivals,
                st->drop_queue - from->drop_queue, st->drop_loss +
                st->drop_burst + st->drop_listed + st->drop_corrupt -
                from->drop_loss - from->drop_burst - from->drop_listed -
                from->drop_corrupt, st->marks - from->marks);
    }
    fprintf(f, "\n  ],\n");
}

static void summarise_flows(Run *r, double seconds, FILE *f)
{
    unsigned n = sim_n_flows(r->s), i;
    double sum = 0, squares = 0;

    fprintf(f, "  \"flows\": [");
    for (i = 0; i < n; i++) {
        const SimFlowSpec *spec = sim_flow_spec(r->s, i);
        const SimFlowStats *st = sim_flow_stats(r->s, i);
        const ErdmaXportConnInfo *from = &r->from_info[i];
        double rate = (st->delivered_bytes - r->from_bytes[i]) * 8 /
                      seconds;
        ErdmaXportConnInfo c;

        sum += rate;
        squares += rate * rate;
        sim_flow_info(r->s, i, &c);
        fprintf(f, "%s\n    {\"flow\": %u, \"algorithm\": \"%s\", "
                "\"goodput_bps\": %.0f, \"delivered\": %" PRIu64
                ", \"messages\": %" PRIu64 ", \"completion_us\": %.3f, "
                "\"sent\": %" PRIu64 ", \"retransmits\": %" PRIu64
                ", \"lost\": %" PRIu64 ", \"spurious\": %" PRIu64
                ", \"probes\": %" PRIu64 ", \"rtos\": %" PRIu64
                ", \"marks\": %" PRIu64 ", \"failed\": %s}",
                i ? "," : "", i, c.cc_name, rate, st->delivered_bytes,
                st->done_msgs, st->last_done_ns && spec->n_msgs &&
                st->done_msgs == spec->n_msgs ?
                (st->last_done_ns - spec->start_ns) / 1e3 : -1.0,
                c.tx_packets - from->tx_packets,
                c.retransmits - from->retransmits, c.lost - from->lost,
                c.spurious - from->spurious, c.probes - from->probes,
                c.rtos - from->rtos, c.ce_echoed - from->ce_echoed,
                st->is_failed ? "true" : "false");
    }
    fprintf(f, "\n  ],\n  \"goodput_bps\": %.0f,\n  \"jain\": %.6f,\n", sum,
            squares > 0 ? sum * sum / (n * squares) : 0);
}

static void summarise(Run *r, const char *label, FILE *f)
{
    const Experiment *e = r->e;
    double seconds = (sim_now(r->s) - r->from_ns) / 1e9;
    SimCost cost;

    sim_cost(r->s, &cost);
    fprintf(f, "{\n  \"label\": ");
    json_string(f, label);
    fprintf(f, ",\n  \"algorithm\": \"%s\",\n  \"point\": ",
            plan_algorithm(e));
    plan_print_point(r->plan, r->number, f);
    fprintf(f, ",\n  \"seed\": %" PRIu64 ",\n  \"bdp\": %.0f,\n"
            "  \"measured_s\": %.9f,\n", e->seed,
            e->rate_bps / 8e9 * e->rtt_ns, seconds);
    if (seconds <= 0) {
        seconds = 1;            /* everything ended within the warm-up */
    }
    summarise_links(r, seconds, f);
    summarise_flows(r, seconds, f);
    fprintf(f, "  \"packets\": %" PRIu64 ",\n  \"hash\": \"%016" PRIx64
            "\"\n}", cost.packets, sim_hash(r->s));
}

static char *close_csv(FILE *f)
{
    bool is_bad = ferror(f);

    return fclose(f) || is_bad ?
        g_strdup_printf("writing a time series: %s", g_strerror(errno)) :
        NULL;
}

static char *run_free(Run *r)
{
    char *problem = r->flows ? close_csv(r->flows) : NULL;
    char *other = r->links ? close_csv(r->links) : NULL;

    sim_topo_free(r->t);
    sim_free(r->s);
    experiment_free(r->e);
    g_free(r->last_bytes);
    g_free(r->last_departed);
    g_free(r->from_bytes);
    g_free(r->from_info);
    g_free(r->from_link);
    if (problem) {
        g_free(other);
    }
    return problem ? problem : other;
}

static void prepare(Run *r, const SimTopoSpec *topo)
{
    uint64_t longest_ns = 0;
    unsigned n, i;

    for (i = 0; topo->extra_ns && i < r->t->n_pairs; i++) {
        longest_ns = MAX(longest_ns, topo->extra_ns[i]);
    }
    r->zero_ns = topo->rtt_ns + longest_ns + topo->nic_jitter_ns +
                 topo->link.jitter_ns;
    add_flows(r);
    n = sim_n_flows(r->s);
    r->last_bytes = g_new0(uint64_t, n);
    r->from_bytes = g_new0(uint64_t, n);
    r->from_info = g_new0(ErdmaXportConnInfo, n);
    r->last_departed = g_new0(uint64_t, r->t->n_links);
    r->from_link = g_new0(NetemStats, r->t->n_links);
    if (r->flows) {
        fprintf(r->flows, "time_us,flow,algorithm,cwnd,reference,ssthresh,"
                "pacing_bps,goodput_bps,inflight,srtt_us,min_rtt_us,u,"
                "alpha,delivered,retransmits,lost,spurious,probes,rtos,"
                "marks\n");
        fprintf(r->links, "time_us,link,queue,queue_max,arrivals,"
                "drop_queue,drop_loss,marks,departed,utilisation\n");
    }
}

char *report_run(const Plan *p, unsigned number, const char *dir,
                 FILE *summary)
{
    Run r = { .plan = p, .number = number, .e = plan_run(p, number) };
    g_autofree char *label = plan_label(p, number);
    const char *why = NULL;
    char *problem = NULL, *other;
    SimConfig cfg;
    SimTopoSpec topo;

    experiment_config(r.e, &cfg, &topo);
    r.s = sim_new(&cfg);
    r.t = sim_topo_new(r.s, &topo, cfg.xport.mtu, &why);
    if (!r.t) {
        problem = g_strdup_printf("rtt: %s", why);
    } else if (dir && r.e->interval_ns) {
        r.flows = open_csv(dir, "flows", label, &problem);
        r.links = open_csv(dir, "links", label, &problem);
    }
    if (!problem) {
        prepare(&r, &topo);
        run(&r);
        summarise(&r, label, summary);
    }
    other = run_free(&r);
    if (problem) {
        g_free(other);
    }
    return problem ? problem : other;
}
