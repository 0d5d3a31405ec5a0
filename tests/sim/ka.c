/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: known-answers [-l] [-t] [-s SEED] [NUMBER...]
 *
 *   -l  long: more cycles, more cases
 *   -t  a table in Markdown instead of TAP
 *   -s  seed of all runs, default 1
 *
 * Runs the known answers with these numbers, or all.
 */

#include "qemu/osdep.h"
#include <math.h>
#include <time.h>
#include <unistd.h>
#include "ka.h"

static struct {
    const char *name;
    unsigned n;
    unsigned n_failed;
    bool is_long;
    bool is_table;
    uint64_t seed;
} ka_state = { .seed = 1 };

void ka_begin(const char *name)
{
    ka_state.name = name;
}

bool ka_is_long(void)
{
    return ka_state.is_long;
}

uint64_t ka_seed(void)
{
    return ka_state.seed;
}

static void point(bool is_good, const char *what, const char *unit,
                  double value, const char *expected)
{
    const char *space = *unit ? " " : "";

    ka_state.n++;
    ka_state.n_failed += !is_good;
    if (ka_state.is_table) {
        printf("| %s | %s | %s%s%s | %.6g%s%s | %s |\n", ka_state.name, what,
               expected, space, unit, value, space, unit,
               is_good ? "yes" : "**no**");
    } else {
        printf("%sok %u - %s, %s: %.6g%s%s (expected %s)\n",
               is_good ? "" : "not ", ka_state.n, ka_state.name, what, value,
               space, unit, expected);
    }
    fflush(stdout);
}

void ka_range(const char *what, const char *unit, double value,
              double expected, double below, double above)
{
    g_autofree char *text = below == above ?
        g_strdup_printf("%.6g ± %.3g", expected, above) :
        g_strdup_printf("%.6g -%.3g +%.3g", expected, below, above);

    point(value >= expected - below && value <= expected + above, what, unit,
          value, text);
}

void ka_near(const char *what, const char *unit, double value,
             double expected, double share)
{
    g_autofree char *text = g_strdup_printf("%.6g ± %.3g %%", expected,
                                            share * 100);

    point(fabs(value - expected) <= share * fabs(expected), what, unit,
          value, text);
}

void ka_at_least(const char *what, const char *unit, double value,
                 double bound)
{
    g_autofree char *text = g_strdup_printf("at least %.6g", bound);

    point(value >= bound, what, unit, value, text);
}

void ka_at_most(const char *what, const char *unit, double value,
                double bound)
{
    g_autofree char *text = g_strdup_printf("at most %.6g", bound);

    point(value <= bound, what, unit, value, text);
}

void ka_exact(const char *what, const char *unit, uint64_t value,
              uint64_t expected)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, expected);

    point(value == expected, what, unit, value, text);
}

static void (*const all[])(void) = {
    ka_1, ka_2, ka_3, ka_4, ka_5, ka_6, ka_7, ka_8, ka_9, ka_10, ka_11,
    ka_12, ka_13, ka_14, ka_15, ka_16, ka_17, ka_18, ka_19, ka_20,
};

static void run(unsigned i)
{
    clock_t began = clock();

    all[i]();
    if (!ka_state.is_table) {
        printf("# KA-%u took %.1f s\n", i + 1,
               (double)(clock() - began) / CLOCKS_PER_SEC);
    }
}

static int usage(void)
{
    fprintf(stderr, "usage: known-answers [-l] [-t] [-s SEED] [1..%zu]...\n",
            G_N_ELEMENTS(all));
    return 2;
}

int main(int argc, char **argv)
{
    int option, i;

    while ((option = getopt(argc, argv, "lts:")) != -1) {
        switch (option) {
        case 'l':
            ka_state.is_long = true;
            break;
        case 't':
            ka_state.is_table = true;
            break;
        case 's':
            ka_state.seed = g_ascii_strtoull(optarg, NULL, 10);
            break;
        default:
            return usage();
        }
    }
    for (i = optind; i < argc; i++) {
        uint64_t number = g_ascii_strtoull(argv[i], NULL, 10);

        if (number < 1 || number > G_N_ELEMENTS(all)) {
            return usage();
        }
    }
    if (ka_state.is_table) {
        printf("| | What | Expected | Simulator | Met |\n|-|-|-|-|-|\n");
    }
    for (i = optind; i < argc; i++) {
        run(atoi(argv[i]) - 1);
    }
    for (i = 0; optind == argc && i < (int)G_N_ELEMENTS(all); i++) {
        run(i);
    }
    if (!ka_state.is_table) {
        printf("1..%u\n", ka_state.n);
    }
    return ka_state.n_failed != 0;
}
