/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: one run of an experiment, and what is written about it. */

#ifndef ERDMA_SIM_REPORT_H
#define ERDMA_SIM_REPORT_H

#include "plan.h"

/*
 * Does run @number of @p.  Time series go to @dir/flows-LABEL.csv and
 * @dir/links-LABEL.csv unless @dir is NULL; the summary, a JSON object, to
 * @summary.  Returns NULL or what went wrong; the caller frees it.
 */
char *report_run(const Plan *p, unsigned number, const char *dir,
                 FILE *summary);

#endif /* ERDMA_SIM_REPORT_H */
