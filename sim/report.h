/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: one run of an experiment, and what is written about it. */

#ifndef ERDMA_SIM_REPORT_H
#define ERDMA_SIM_REPORT_H

#include "experiment.h"

/*
 * Runs @e with one algorithm and seed.  Time series go to
 * @dir/flows-ALGORITHM-SEED.csv and @dir/links-ALGORITHM-SEED.csv unless
 * @dir is NULL; the summary, a JSON object, to @summary.  Returns NULL or
 * what went wrong; the caller frees it.
 */
char *report_run(const Experiment *e, uint8_t cc, uint64_t seed,
                 const char *dir, FILE *summary);

#endif /* ERDMA_SIM_REPORT_H */
