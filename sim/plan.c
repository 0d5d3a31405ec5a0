/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: experiment files and the runs they ask for, see plan.h. */

#include "qemu/osdep.h"
#include "plan-int.h"

#define MAX_GROUPS  1000

static void setting_free(void *opaque)
{
    Setting *s = opaque;

    g_strfreev(s->values);
    g_free(s);
}

Plan *plan_new(bool is_for_guests)
{
    Plan *p = g_new0(Plan, 1);

    p->is_for_guests = is_for_guests;
    p->settings = g_ptr_array_new_with_free_func(setting_free);
    p->guests = g_ptr_array_new_with_free_func(setting_free);
    p->axes = g_ptr_array_new();
    return p;
}

void plan_free(Plan *p)
{
    g_ptr_array_free(p->settings, true);
    g_ptr_array_free(p->guests, true);
    g_ptr_array_free(p->axes, true);
    g_free(p->name);
    g_free(p);
}

char *plan_where(const Plan *p, unsigned line)
{
    return line ? g_strdup_printf("%s:%u", p->name, line) :
                  g_strdup("command line");
}

static char *complain(const Plan *p, unsigned line, char *problem)
{
    g_autofree char *at = plan_where(p, line);
    char *message = g_strdup_printf("%s: %s", at, problem);

    g_free(problem);
    return message;
}

static void split(Setting *s, const char *text)
{
    unsigned i;

    if (key_is_swept(s->key)) {
        s->values = g_strsplit(text, ",", 0);
    } else {
        s->values = g_new0(char *, 2);
        s->values[0] = g_strdup(text);
    }
    for (i = 0; s->values[i]; i++) {
        g_strstrip(s->values[i]);
    }
    s->n = i;
}

/* Each value for itself; what belongs together comes in plan_finish(). */
static char *check_values(const Setting *s)
{
    Experiment *e = experiment_new(1);
    const char *allowed = s->n ? NULL : "a value";
    unsigned i, k;
    char *problem = NULL;

    for (i = 0; i < s->n && !problem; i++) {
        allowed = key_set(s->key, e, 0, s->values[i]);
        if (allowed) {
            problem = g_strdup_printf("%s: '%s' is not %s", key_name(s->key),
                                      s->values[i], allowed);
        }
        for (k = 0; k < i && !problem; k++) {
            if (!strcmp(s->values[i], s->values[k])) {
                problem = g_strdup_printf("%s: '%s' is twice in the list",
                                          key_name(s->key), s->values[i]);
            }
        }
    }
    if (!s->n) {
        problem = g_strdup_printf("%s: must have a value", key_name(s->key));
    }
    experiment_free(e);
    return problem;
}

static Setting *find(GPtrArray *list, const Key *key, unsigned group)
{
    guint i;

    for (i = 0; i < list->len; i++) {
        Setting *s = list->pdata[i];

        if (s->key == key && s->group == group) {
            return s;
        }
    }
    return NULL;
}

/* "KEY", and where groups can be meant "flows.KEY", "flows.N.KEY" */
static char *find_key(const char *name, bool has_prefix, Setting *s)
{
    bool is_flow = s->group != NO_GROUP;
    const char *rest = name;
    g_autofree char *names = NULL;

    if (has_prefix && g_str_has_prefix(name, "flows.")) {
        uint64_t n;
        char *end;

        rest = name + strlen("flows.");
        n = g_ascii_strtoull(rest, &end, 10);
        is_flow = true;
        s->group = ALL_GROUPS;
        if (end != rest && *end == '.') {
            if (!n || n > MAX_GROUPS) {
                return g_strdup_printf("%s: groups count from 1", name);
            }
            s->group = n;
            rest = end + 1;
        }
    }
    s->key = key_find(rest, is_flow);
    if (s->key) {
        return NULL;
    }
    names = key_names(is_flow);
    return g_strdup_printf("unknown key '%s'%s; allowed: %s", name,
                           is_flow ? " of [flows]" : "", names);
}

/* Splits and checks "key = value"; on success *@out is the caller's. */
static char *parse_setting(char *text, unsigned line, unsigned group,
                           bool has_prefix, Setting **out)
{
    char *equals = strchr(text, '=');
    Setting *s;
    char *problem;

    if (!equals) {
        return g_strdup("neither \"key = value\" nor \"[flows]\" nor "
                        "\"[guests]\"");
    }
    *equals = 0;
    s = g_new0(Setting, 1);
    s->line = line;
    s->group = group;
    problem = find_key(g_strstrip(text), has_prefix, s);
    if (!problem) {
        split(s, g_strstrip(equals + 1));
        problem = check_values(s);
    }
    if (problem) {
        setting_free(s);
        return problem;
    }
    *out = s;
    return NULL;
}

static char *parse_line(Plan *p, char *text, unsigned line, bool *is_guests)
{
    GPtrArray *list;
    Setting *s, *before;
    char *problem;

    if (!strcmp(text, "[flows]") && p->n_groups < MAX_GROUPS) {
        p->n_groups++;
        *is_guests = false;
        return NULL;
    }
    if (!strcmp(text, "[guests]")) {
        *is_guests = true;
        return NULL;
    }
    problem = parse_setting(text, line, *is_guests ? NO_GROUP : p->n_groups,
                            *is_guests, &s);
    if (problem) {
        return problem;
    }
    list = *is_guests ? p->guests : p->settings;
    before = find(list, s->key, s->group);
    if (before) {
        setting_free(s);
        return g_strdup_printf("%s: again, first in line %u",
                               key_name(before->key), before->line);
    }
    g_ptr_array_add(list, s);
    return NULL;
}

char *plan_read(Plan *p, const char *name, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", 0);
    bool is_guests = false;
    unsigned i;

    p->name = g_strdup(name);
    if (!g_utf8_validate(text, -1, NULL)) {
        return g_strdup_printf("%s: is not UTF-8 text", name);
    }
    for (i = 0; lines[i]; i++) {
        char *comment = strchr(lines[i], '#');
        char *problem;

        if (comment) {
            *comment = 0;
        }
        if (!*g_strstrip(lines[i])) {
            continue;
        }
        problem = parse_line(p, lines[i], i + 1, &is_guests);
        if (problem) {
            return complain(p, i + 1, problem);
        }
    }
    return NULL;
}

/* Takes @s over.  It stands where the line stood that it replaces. */
static char *replace(Plan *p, Setting *s)
{
    gint at = -1;
    guint i = 0;

    if (s->group != NO_GROUP && !p->n_groups) {
        p->n_groups = 1;
    }
    if (s->group != ALL_GROUPS && s->group > p->n_groups) {
        unsigned group = s->group;

        setting_free(s);
        return g_strdup_printf("flows.%u: the number of groups is %u", group,
                               p->n_groups);
    }
    while (i < p->settings->len) {
        const Setting *before = p->settings->pdata[i];

        if (before->key == s->key && (before->group == s->group ||
                                      s->group == ALL_GROUPS)) {
            at = at < 0 ? (gint)i : at;
            g_ptr_array_remove_index(p->settings, i);
        } else {
            i++;
        }
    }
    g_ptr_array_insert(p->settings, at, s);
    return NULL;
}

char *plan_use_guests(Plan *p)
{
    while (p->is_for_guests && p->guests->len) {
        Setting *s = g_ptr_array_steal_index(p->guests, 0);
        unsigned line = s->line;
        char *problem = replace(p, s);

        if (problem) {
            return complain(p, line, problem);
        }
    }
    return NULL;
}

char *plan_replace(Plan *p, const char *assignment)
{
    g_autofree char *text = g_strdup(assignment);
    Setting *s;
    char *problem = plan_use_guests(p);

    if (problem) {
        return problem;
    }
    problem = strchr(text, '=') ?
        parse_setting(text, 0, NO_GROUP, true, &s) :
        g_strdup_printf("'%s' is not KEY=VALUE", text);
    if (!problem) {
        problem = replace(p, s);
    }
    return problem ? complain(p, 0, problem) : NULL;
}
