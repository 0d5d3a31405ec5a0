/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An experiment's file, as the laboratory and erdma-sim read it, and what
 * their command lines say in addition.  Whatever it is, the answer is a plan
 * or one message.
 *
 * The first byte chooses for whom the plan is; then comes the file, and behind
 * each NUL an assignment.
 */

#include "qemu/osdep.h"
#include "plan.h"
#include "fuzz.h"

#define ASSIGNMENTS_MAX 4
#define RUNS_MAX        64

/* Takes a message away; true if there was one, which is one line. */
static bool is_refused(char *message)
{
    if (message) {
        g_assert_cmpuint(strlen(message), >, 0);
        g_assert_null(strchr(message, '\n'));
    }
    g_free(message);
    return message;
}

/* What a plan that was accepted is asked for */
static void use(const Plan *p)
{
    unsigned i, n = MIN(plan_n_runs(p), RUNS_MAX);
    size_t len;
    char *json = NULL;
    FILE *f = open_memstream(&json, &len);

    g_assert_cmpuint(plan_n_runs(p), >, 0);
    for (i = 0; i < n; i++) {
        Experiment *e = plan_run(p, i);
        g_autofree char *label = plan_label(p, i);

        g_assert_nonnull(plan_algorithm(e));
        g_assert_cmpuint(strlen(label), >, 0);
        plan_print_point(p, i, f);
        experiment_free(e);
    }
    if (n < RUNS_MAX) {
        plan_print(p, f);
    }
    fclose(f);
    /* Only printed: whether it is JSON is tests/lab's affair. */
    free(json);
    g_free(plan_warnings(p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    FuzzInput in = { data, len };
    Plan *p = plan_new(fuzz_u8(&in) & 1);
    g_autofree char *text = g_malloc(in.len + 1);
    char *at = text, *end = text + in.len;
    bool is_ok;
    unsigned i;

    memcpy(text, in.data, in.len);
    text[in.len] = '\0';
    is_ok = !is_refused(plan_read(p, "file", text));
    for (i = 0; is_ok && i < ASSIGNMENTS_MAX; i++) {
        at += strlen(at) + 1;
        if (at >= end) {
            break;
        }
        /* It is quoted as it is; a line of a file cannot have these. */
        g_strdelimit(at, "\n\r", ' ');
        is_ok = !is_refused(plan_replace(p, at));
    }
    if (is_ok && !is_refused(plan_finish(p))) {
        use(p);
    }
    plan_free(p);
    return 0;
}
