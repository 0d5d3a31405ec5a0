/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: the runs that an experiment file asks for, see plan.h. */

#include "qemu/osdep.h"
#include "plan-int.h"

#define MAX_RUNS    10000

unsigned plan_value_index(const Plan *p, unsigned axis, unsigned run)
{
    unsigned point = run / p->repetitions, i;

    for (i = p->axes->len - 1; i > axis; i--) {
        point /= ((Setting *)p->axes->pdata[i])->n;
    }
    return point % ((Setting *)p->axes->pdata[axis])->n;
}

static const char *value_in_run(const Plan *p, const Setting *s,
                                unsigned run)
{
    unsigned i;

    for (i = 0; i < p->axes->len; i++) {
        if (p->axes->pdata[i] == s) {
            return s->values[plan_value_index(p, i, run)];
        }
    }
    return s->values[0];
}

static void apply(const Plan *p, const Setting *s, Experiment *e,
                  unsigned run)
{
    unsigned first = s->group == ALL_GROUPS || s->group == NO_GROUP ? 1 :
                     s->group;
    unsigned last = s->group == ALL_GROUPS ? p->n_groups : first, i;

    for (i = first; i <= last; i++) {
        const char *allowed = key_set(s->key, e, i - 1,
                                      value_in_run(p, s, run));

        g_assert(!allowed);
    }
}

/* Everything that it says, not checked as a whole */
static Experiment *make_run(const Plan *p, unsigned run)
{
    Experiment *e = experiment_new(p->n_groups);
    guint i;

    for (i = 0; i < p->settings->len; i++) {
        apply(p, p->settings->pdata[i], e, run);
    }
    e->seed += run % p->repetitions;
    return e;
}

Experiment *plan_run(const Plan *p, unsigned run)
{
    Experiment *e = make_run(p, run);
    ExperimentPlace at;
    char *problem = experiment_finish(e, &at);

    g_assert(!problem);
    return e;
}

static const Setting *who_says(const Plan *p, const char *key,
                               unsigned group)
{
    bool is_flow = group != NO_GROUP;
    const Setting *found = NULL;
    guint i;

    for (i = 0; i < p->settings->len; i++) {
        const Setting *s = p->settings->pdata[i];

        if (s->key == key_find(key, is_flow) &&
            (s->group == group || s->group == ALL_GROUPS)) {
            found = s;
        }
    }
    return found;
}

static char *locate(const Plan *p, const char *key, unsigned group,
                    const char *text)
{
    const Setting *s = who_says(p, key, group);
    g_autofree char *at = s ? plan_where(p, s->line) : g_strdup(p->name);

    return group != NO_GROUP && !s ?
        g_strdup_printf("%s: [flows] %u: %s: %s", at, group, key, text) :
        g_strdup_printf("%s: %s: %s", at, key, text);
}

static char *check_run(const Plan *p, unsigned run)
{
    Experiment *e = make_run(p, run);
    ExperimentPlace at = { .key = NULL };
    char *problem = experiment_finish(e, &at), *message = NULL;
    const char *why;

    if (!problem) {
        SimConfig cfg;
        SimTopoSpec topo;
        Sim *s;
        SimTopo *t;

        /* Only building it shows whether the round trip is long enough. */
        experiment_config(e, &cfg, &topo);
        topo.n = MIN(topo.n, 2);
        topo.extra_ns = NULL;
        s = sim_new(&cfg);
        t = sim_topo_new(s, &topo, cfg.xport.mtu, &why);
        if (!t) {
            at.key = "rtt";
            problem = g_strdup(why);
        }
        sim_topo_free(t);
        sim_free(s);
    }
    if (problem) {
        message = locate(p, at.key, at.group, problem);
        g_free(problem);
    }
    experiment_free(e);
    return message;
}

static void find_axes(Plan *p)
{
    guint i;

    p->n_points = 1;
    for (i = 0; i < p->settings->len; i++) {
        Setting *s = p->settings->pdata[i];

        if (s->n > 1) {
            g_ptr_array_add(p->axes, s);
            p->n_points = MIN(p->n_points * s->n, MAX_RUNS + 1);
        }
    }
}

static char *check_labels(const Plan *p)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash,
                                                       g_str_equal, g_free,
                                                       NULL);
    unsigned i;

    for (i = 0; i < plan_n_runs(p); i++) {
        char *label = plan_label(p, i);

        if (!g_hash_table_add(seen, label)) {
            return g_strdup_printf("%s: two values of a list differ only in "
                                   "how they are written", p->name);
        }
    }
    return NULL;
}

char *plan_finish(Plan *p)
{
    char *problem = plan_use_guests(p);
    Experiment *e;
    unsigned i;

    if (problem) {
        return problem;
    }
    p->repetitions = 1;
    find_axes(p);
    e = make_run(p, 0);
    p->repetitions = e->repetitions;
    experiment_free(e);
    if ((uint64_t)p->n_points * p->repetitions > MAX_RUNS) {
        return g_strdup_printf("%s: more than %u runs: shorten a list, or "
                               "repetitions", p->name, MAX_RUNS);
    }
    for (i = 0; i < plan_n_runs(p) && !problem; i += p->repetitions) {
        problem = check_run(p, i);
    }
    return problem ? problem : check_labels(p);
}

unsigned plan_n_runs(const Plan *p)
{
    return p->n_points * p->repetitions;
}

const char *plan_algorithm(const Experiment *e)
{
    unsigned i;
    int cc = e->groups[0].cc;

    for (i = 0; i < e->n_groups; i++) {
        if (e->groups[i].cc < 0) {
            return sim_cc_name(e->cc);
        }
        if (e->groups[i].cc != cc) {
            cc = -1;
        }
    }
    return cc < 0 ? "mixed" : sim_cc_name(cc);
}

/* What may stand in a file name on any system */
static void append_word(GString *s, const char *text)
{
    for (; *text; text++) {
        if (g_ascii_isalnum(*text) || strchr("._-", *text)) {
            g_string_append_c(s, *text);
        } else if (*text == '%') {
            g_string_append(s, "pct");
        }
    }
}

char *plan_label(const Plan *p, unsigned run)
{
    GString *s = g_string_new(NULL);
    Experiment *e = plan_run(p, run);
    unsigned i;

    g_string_append(s, plan_algorithm(e));
    for (i = 0; i < p->axes->len; i++) {
        const Setting *axis = p->axes->pdata[i];

        if (axis->group != NO_GROUP ||
            strcmp(key_name(axis->key), "algorithm")) {
            g_string_append_c(s, '-');
            append_word(s, axis->values[plan_value_index(p, i, run)]);
        }
    }
    g_string_append_printf(s, "-%" PRIu64, e->seed);
    experiment_free(e);
    return g_string_free(s, false);
}

typedef struct Warnings {
    const Plan *p;
    GString *lines;
    GHashTable *seen;
} Warnings;

static void add_warning(void *opaque, const char *key, const char *text)
{
    Warnings *w = opaque;
    const Key *k = key_find(key, false);
    char *line = locate(w->p, key, k ? NO_GROUP : 1, text);

    if (g_hash_table_add(w->seen, line)) {
        g_string_append_printf(w->lines, "%s\n", line);
    }
}

char *plan_warnings(const Plan *p)
{
    Warnings w = { .p = p, .lines = g_string_new(NULL) };
    unsigned i;

    w.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (i = 0; i < plan_n_runs(p); i += p->repetitions) {
        Experiment *e = plan_run(p, i);

        experiment_warn(e, add_warning, &w);
        experiment_free(e);
    }
    g_hash_table_destroy(w.seen);
    return g_string_free(w.lines, !w.lines->len);
}
