/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random cases by number.  ERDMA_CASES=n: that many instead of @n_cases;
 * ERDMA_SEED=n: only this one, to look at what failed.
 */

#ifndef SEEDS_H
#define SEEDS_H

static inline void for_seeds(unsigned n_cases, void (*run_case)(unsigned seed))
{
    const char *only = g_getenv("ERDMA_SEED");
    const char *limit = g_getenv("ERDMA_CASES");
    unsigned seed;

    if (only) {
        run_case(g_ascii_strtoull(only, NULL, 10));
        return;
    }
    n_cases = limit ? g_ascii_strtoull(limit, NULL, 10) : n_cases;
    for (seed = 0; seed < n_cases; seed++) {
        run_case(seed);
    }
}

#endif /* SEEDS_H */
