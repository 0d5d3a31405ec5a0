/* SPDX-License-Identifier: GPL-2.0-or-later */
/* erdma-sim: runs experiment files. */

#include "qemu/osdep.h"
#include <errno.h>
#include <glib/gstdio.h>
#include <unistd.h>
#include "bench.h"
#include "keys.h"
#include "replay.h"
#include "report.h"

static const char usage_text[] =
    "usage: erdma-sim [-o DIR] [--run LABEL] FILE [KEY=VALUE...]\n"
    "       erdma-sim -c [--guests] FILE [KEY=VALUE...]\n"
    "       erdma-sim --plan [--guests] FILE [KEY=VALUE...]\n"
    "       erdma-sim --keys\n"
    "       erdma-sim --bench [FLOWS]\n"
    "       erdma-sim --replay RECORDING\n"
    "\n"
    "Runs the experiment in FILE (\"-\": standard input) once per value of\n"
    "each list and per seed, and prints a summary per run as a JSON list.\n"
    "KEY=VALUE replaces what the file says; flows.KEY=VALUE does so for all\n"
    "groups of flows, flows.N.KEY=VALUE for the N-th.\n"
    "\n"
    "  -o DIR       write time series (with key interval) and summary.json\n"
    "               there\n"
    "  --run LABEL  only this run\n"
    "  -c           only check FILE\n"
    "  --plan       print as JSON what FILE asks for\n"
    "  --guests     with what its section [guests] says\n"
    "  --keys       list the keys of an experiment file\n"
    "  --bench      measure packets per second, cost per packet and memory\n"
    "  --replay     feed the transport with what a device recorded, compare\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage or experiment.\n";

typedef struct Arguments {
    const char *dir;
    const char *label;
    bool is_check;
    bool is_plan;
    bool is_for_guests;
} Arguments;

static int complain(char *problem, int status)
{
    fprintf(stderr, "erdma-sim: %s\n", problem);
    g_free(problem);
    return status;
}

static char *read_file(const char *path, char **text)
{
    GError *error = NULL;
    char *problem;

    if (!strcmp(path, "-")) {
        path = "/dev/stdin";
    }
    if (g_file_get_contents(path, text, NULL, &error)) {
        return NULL;
    }
    problem = g_strdup(error->message);
    g_error_free(error);
    return problem;
}

static char *load(Plan *p, const char *path, char **keys, int n_keys)
{
    g_autofree char *text = NULL;
    char *problem = read_file(path, &text);
    int i;

    if (!problem) {
        problem = plan_read(p, path, text);
    }
    for (i = 0; i < n_keys && !problem; i++) {
        problem = plan_replace(p, keys[i]);
    }
    return problem ? problem : plan_finish(p);
}

static void show_warnings(const Plan *p)
{
    g_autofree char *warnings = plan_warnings(p);
    g_auto(GStrv) lines = g_strsplit(warnings ? g_strchomp(warnings) : "",
                                     "\n", 0);
    unsigned i;

    for (i = 0; lines[i]; i++) {
        fprintf(stderr, "erdma-sim: warning: %s\n", lines[i]);
    }
}

static char *run_all(const Plan *p, const Arguments *a, FILE *f)
{
    bool is_first = true;
    unsigned i;

    fprintf(f, "[\n");
    for (i = 0; i < plan_n_runs(p); i++) {
        g_autofree char *label = plan_label(p, i);
        char *problem;

        if (a->label && strcmp(a->label, label)) {
            continue;
        }
        fputs(is_first ? "" : ",\n", f);
        is_first = false;
        problem = report_run(p, i, a->dir, f);
        if (problem) {
            return problem;
        }
    }
    fprintf(f, "\n]\n");
    return is_first ? g_strdup_printf("no run is called '%s'", a->label) :
                      NULL;
}

/* To @a->dir/summary.json, or to standard output */
static char *run_and_write(const Plan *p, const Arguments *a)
{
    g_autofree char *name = a->dir ? g_strdup_printf("%s/summary.json",
                                                     a->dir) : NULL;
    FILE *f = stdout;
    char *problem;
    bool is_bad;

    if (a->dir) {
        g_mkdir_with_parents(a->dir, 0777);
        f = a->label ? stdout : fopen(name, "w");
    }
    if (!f) {
        return g_strdup_printf("%s: %s", name, g_strerror(errno));
    }
    problem = run_all(p, a, f);
    is_bad = fflush(f) || ferror(f);
    if (is_bad && !problem) {
        problem = g_strdup_printf("writing the summary: %s",
                                  g_strerror(errno));
    }
    if (f != stdout) {
        fclose(f);
    }
    return problem;
}

static int run_file(const Arguments *a, const char *path, char **keys,
                    int n_keys)
{
    Plan *p = plan_new(a->is_for_guests);
    char *problem = load(p, path, keys, n_keys);
    int status = 2;

    if (!problem && a->is_plan) {
        plan_print(p, stdout);
    } else if (!problem) {
        if (!a->label) {
            show_warnings(p);
        }
        if (!a->is_check) {
            status = 1;
            problem = run_and_write(p, a);
        }
    }
    plan_free(p);
    return problem ? complain(problem, status) : 0;
}

/*
 * Thousands of connections are spread over more small pages than a TLB
 * covers.  The C library takes large ones only if told before it starts.
 */
static void use_large_pages(char **argv)
{
    if (g_setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", false) &&
        g_setenv("ERDMA_SIM_IS_AGAIN", "1", false)) {
        execv("/proc/self/exe", argv);
    }
}

static int replay(const char *path)
{
    ReplayResult r;
    char *problem = replay_file(path, &r);

    if (problem) {
        return complain(problem, 1);
    }
    printf("identical, %" PRIu64 " inputs, %" PRIu64 " outputs, %.3f s, "
           "hash %016" PRIx64 "\n", r.n_inputs, r.n_outputs,
           (r.end_ns - r.begin_ns) / 1e9, r.hash);
    return 0;
}

int main(int argc, char **argv)
{
    Arguments a = { .dir = NULL };
    int i = 1;

    if (!g_getenv("GLIBC_TUNABLES") && !g_getenv("ERDMA_SIM_IS_AGAIN")) {
        use_large_pages(argv);
    }

    if (argc > 1 && !strcmp(argv[1], "--keys")) {
        key_print_help();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "--bench")) {
        bench(argc > 2 ? g_ascii_strtoull(argv[2], NULL, 10) : 0);
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "--replay")) {
        return replay(argv[2]);
    }
    if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
        fputs(usage_text, stdout);
        return 0;
    }
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (!strcmp(argv[i], "-c")) {
            a.is_check = true;
        } else if (!strcmp(argv[i], "--plan")) {
            a.is_plan = true;
        } else if (!strcmp(argv[i], "--guests")) {
            a.is_for_guests = true;
        } else if (!strcmp(argv[i], "-o") && i + 1 < argc) {
            a.dir = argv[++i];
        } else if (!strcmp(argv[i], "--run") && i + 1 < argc) {
            a.label = argv[++i];
        } else {
            fputs(usage_text, stderr);
            return 2;
        }
    }
    if (i >= argc || (a.is_for_guests && !a.is_check && !a.is_plan)) {
        fputs(usage_text, stderr);
        return 2;
    }
    return run_file(&a, argv[i], argv + i + 1, argc - i - 1);
}
