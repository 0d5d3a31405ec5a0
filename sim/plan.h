/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: an experiment, as a file describes it, and the runs it asks for.
 *
 * Lines of "key = value"; "#" starts a comment.  A line "[flows]" starts a
 * group of flows, whose keys follow; without any group each sender has one
 * flow.  A line "[guests]" starts what replaces the lines before when linked
 * guests, and not the simulator, run the file.  A list of values is one run
 * each: lists are combined, the first key of the file varies slowest, and
 * every combination has as many repetitions as the file says.
 *
 * All keys: docs/congestion-control/simulator.md, or erdma-sim --keys.
 */

#ifndef ERDMA_SIM_PLAN_H
#define ERDMA_SIM_PLAN_H

#include "experiment.h"

typedef struct Plan Plan;

Plan *plan_new(bool is_for_guests);
void plan_free(Plan *p);
/*
 * Reads @text, the file @name.  This and the next two return NULL or a
 * message that names file, line, key and what is allowed; the caller frees
 * it.
 */
char *plan_read(Plan *p, const char *name, const char *text);
/* "KEY=VALUE": replaces what the file says.  After plan_read(). */
char *plan_replace(Plan *p, const char *assignment);
/* Checks every run; after this the rest may be called. */
char *plan_finish(Plan *p);

unsigned plan_n_runs(const Plan *p);
/* Run @i's experiment; the caller frees it. */
Experiment *plan_run(const Plan *p, unsigned i);
/* Algorithm, values of lists, seed: the name of a run; the caller frees it. */
char *plan_label(const Plan *p, unsigned i);
/* What will hardly work as meant, a line each, or NULL; the caller frees it */
char *plan_warnings(const Plan *p);
/* The algorithm of flows that name none, or "mixed" if all do */
const char *plan_algorithm(const Experiment *e);
/* Of run @i, a JSON object: key -> value, for each key that has a list */
void plan_print_point(const Plan *p, unsigned i, FILE *f);
/* All of it as JSON */
void plan_print(const Plan *p, FILE *f);

#endif /* ERDMA_SIM_PLAN_H */
