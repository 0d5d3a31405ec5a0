/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: a plan for programs to read, see plan.h. */

#include "qemu/osdep.h"
#include "json.h"
#include "plan-int.h"

/* The key as it is written outside of [flows] */
static char *axis_name(const Plan *p, const Setting *s)
{
    if (s->group == NO_GROUP) {
        return g_strdup(key_name(s->key));
    }
    return s->group == ALL_GROUPS || p->n_groups == 1 ?
        g_strdup_printf("flows.%s", key_name(s->key)) :
        g_strdup_printf("flows.%u.%s", s->group, key_name(s->key));
}

void plan_print_point(const Plan *p, unsigned run, FILE *f)
{
    unsigned i;

    fputc('{', f);
    for (i = 0; i < p->axes->len; i++) {
        const Setting *s = p->axes->pdata[i];
        g_autofree char *name = axis_name(p, s);

        fputs(i ? ", " : "", f);
        json_string(f, name);
        fputs(": ", f);
        json_string(f, s->values[plan_value_index(p, i, run)]);
    }
    fputc('}', f);
}

static void print_text(const Plan *p, const char *key, FILE *f)
{
    const char *text = NULL;
    guint i;

    for (i = 0; i < p->settings->len; i++) {
        const Setting *s = p->settings->pdata[i];

        text = s->key == key_find(key, false) ? s->values[0] : text;
    }
    fprintf(f, "  \"%s\": ", key);
    if (text) {
        json_string(f, text);
    } else {
        fputs("null", f);
    }
    fputs(",\n", f);
}

static void print_axes(const Plan *p, FILE *f)
{
    unsigned i, k;

    fputs("  \"axes\": [", f);
    for (i = 0; i < p->axes->len; i++) {
        const Setting *s = p->axes->pdata[i];
        g_autofree char *name = axis_name(p, s);

        fputs(i ? ", {\"key\": " : "{\"key\": ", f);
        json_string(f, name);
        fputs(", \"values\": [", f);
        for (k = 0; k < s->n; k++) {
            fputs(k ? ", " : "", f);
            json_string(f, s->values[k]);
        }
        fputs("]}", f);
    }
    fputs("],\n", f);
}

static void print_warnings(const Plan *p, FILE *f)
{
    g_autofree char *text = plan_warnings(p);
    g_auto(GStrv) lines = g_strsplit(text ? g_strchomp(text) : "", "\n", 0);
    unsigned i;

    fputs("  \"warnings\": [", f);
    for (i = 0; lines[i]; i++) {
        fputs(i ? ", " : "", f);
        json_string(f, lines[i]);
    }
    fputs("],\n", f);
}

static void print_run(const Plan *p, unsigned run, FILE *f)
{
    g_autofree char *label = plan_label(p, run);
    Experiment *e = plan_run(p, run);
    unsigned i;

    fputs("    {\"label\": ", f);
    json_string(f, label);
    fprintf(f, ", \"algorithm\": \"%s\", \"seed\": %" PRIu64
            ", \"bdp\": %.0f,\n     \"point\": ", plan_algorithm(e), e->seed,
            e->rate_bps / 8e9 * e->rtt_ns);
    plan_print_point(p, run, f);
    fputs(",\n     \"settings\": {", f);
    key_print_settings(e, f);
    fputs("},\n     \"flows\": [", f);
    for (i = 0; i < e->n_groups; i++) {
        fputs(i ? ", {" : "{", f);
        key_print_group(e, i, f);
        fputc('}', f);
    }
    fputs("]}", f);
    experiment_free(e);
}

void plan_print(const Plan *p, FILE *f)
{
    unsigned i;

    fputs("{\n", f);
    print_text(p, "title", f);
    print_text(p, "plots", f);
    print_warnings(p, f);
    print_axes(p, f);
    fputs("  \"runs\": [\n", f);
    for (i = 0; i < plan_n_runs(p); i++) {
        fputs(i ? ",\n" : "", f);
        print_run(p, i, f);
    }
    fputs("\n  ]\n}\n", f);
}
