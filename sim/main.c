/* SPDX-License-Identifier: GPL-2.0-or-later */
/* erdma-sim: runs experiment files. */

#include "qemu/osdep.h"
#include <errno.h>
#include <glib/gstdio.h>
#include <unistd.h>
#include "bench.h"
#include "report.h"

static const char usage_text[] =
    "usage: erdma-sim [-o DIR] FILE [KEY=VALUE...]\n"
    "       erdma-sim -c FILE [KEY=VALUE...]\n"
    "       erdma-sim --keys\n"
    "       erdma-sim --bench [FLOWS]\n"
    "\n"
    "Runs the experiment in FILE (\"-\": standard input) once per algorithm\n"
    "and seed, and prints a summary per run as a JSON list.  KEY=VALUE\n"
    "replaces what the file says.\n"
    "\n"
    "  -o DIR    write time series (with key interval) and summary.json there\n"
    "  -c        only check FILE\n"
    "  --keys    list the keys of an experiment file\n"
    "  --bench   measure packets per second, cost per packet and memory\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage or experiment.\n";

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

/* Keys of the command line come last and belong to no group of flows. */
static char *load(Experiment *e, const char *path, char **keys, int n_keys)
{
    g_autofree char *text = NULL;
    char *problem = read_file(path, &text);
    int i;

    if (problem) {
        return problem;
    }
    /* The file as a whole first, so that line numbers are the file's. */
    problem = experiment_parse(e, path, text);
    for (i = 0; i < n_keys && !problem; i++) {
        FlowGroup *kept = e->groups;
        unsigned n_kept = e->n_groups;

        e->groups = NULL;
        e->n_groups = 0;
        problem = experiment_parse(e, "command line", keys[i]);
        g_free(e->groups);
        e->groups = kept;
        e->n_groups = n_kept;
    }
    return problem ? problem : experiment_finish(e);
}

static char *run_all(const Experiment *e, const char *dir, FILE *f)
{
    bool is_first = true;
    unsigned a;
    uint64_t k;

    fprintf(f, "[\n");
    for (a = 0; a < e->n_algorithms; a++) {
        for (k = 0; k < e->repetitions; k++) {
            char *problem;

            fputs(is_first ? "" : ",\n", f);
            is_first = false;
            problem = report_run(e, e->algorithms[a], e->seed + k, dir, f);
            if (problem) {
                return problem;
            }
        }
    }
    fprintf(f, "\n]\n");
    return NULL;
}

static int run_file(const char *path, char **keys, int n_keys,
                    const char *dir, bool is_check)
{
    Experiment *e = experiment_new();
    char *problem = load(e, path, keys, n_keys), *warnings;
    FILE *f = stdout;
    int status = 2;

    if (!problem) {
        warnings = experiment_warnings(e);
        if (warnings) {
            g_auto(GStrv) lines = g_strsplit(g_strchomp(warnings), "\n", 0);
            unsigned i;

            for (i = 0; lines[i]; i++) {
                fprintf(stderr, "erdma-sim: warning: %s\n", lines[i]);
            }
            g_free(warnings);
        }
    }
    if (!problem && !is_check) {
        g_autofree char *name = dir ? g_strdup_printf("%s/summary.json", dir)
                                    : NULL;

        status = 1;
        if (dir) {
            g_mkdir_with_parents(dir, 0777);
            f = fopen(name, "w");
        }
        if (!f) {
            problem = g_strdup_printf("%s: %s", name, g_strerror(errno));
        } else {
            problem = run_all(e, dir, f);
            if (fflush(f) && !problem) {
                problem = g_strdup_printf("writing the summary: %s",
                                          g_strerror(errno));
            }
        }
        if (f && f != stdout) {
            fclose(f);
        }
    }
    experiment_free(e);
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

int main(int argc, char **argv)
{
    const char *dir = NULL;
    bool is_check = false;
    int i = 1;

    if (!g_getenv("GLIBC_TUNABLES") && !g_getenv("ERDMA_SIM_IS_AGAIN")) {
        use_large_pages(argv);
    }

    if (argc > 1 && !strcmp(argv[1], "--keys")) {
        experiment_print_keys();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "--bench")) {
        bench(argc > 2 ? g_ascii_strtoull(argv[2], NULL, 10) : 0);
        return 0;
    }
    if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
        fputs(usage_text, stdout);
        return 0;
    }
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (!strcmp(argv[i], "-c")) {
            is_check = true;
        } else if (!strcmp(argv[i], "-o") && i + 1 < argc) {
            dir = argv[++i];
        } else {
            fputs(usage_text, stderr);
            return 2;
        }
    }
    if (i >= argc) {
        fputs(usage_text, stderr);
        return 2;
    }
    return run_file(argv[i], argv + i + 1, argc - i - 1, dir, is_check);
}
