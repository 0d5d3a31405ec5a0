/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: what the files of plan.h share. */

#ifndef ERDMA_SIM_PLAN_INT_H
#define ERDMA_SIM_PLAN_INT_H

#include "keys.h"
#include "plan.h"

/* A key without group; for all groups */
#define NO_GROUP    0u
#define ALL_GROUPS  UINT_MAX

/* A line of a file, or an argument */
typedef struct Setting {
    const Key *key;
    unsigned group;             /* from 1 on */
    unsigned line;              /* 0: command line */
    char **values;              /* one, or a list */
    unsigned n;
} Setting;

struct Plan {
    char *name;
    bool is_for_guests;
    unsigned n_groups;
    GPtrArray *settings;        /* what holds; in the order of the file */
    GPtrArray *guests;          /* from [guests] */
    GPtrArray *axes;            /* settings that make the points */
    unsigned n_points;
    unsigned repetitions;
};

/* plan.c: [guests] replaces what stands before, if it is to */
char *plan_use_guests(Plan *p);
/* "name:line" of a line, "command line" of line 0; the caller frees it */
char *plan_where(const Plan *p, unsigned line);

/* plan-runs.c: which of its values axis @axis has in a run */
unsigned plan_value_index(const Plan *p, unsigned axis, unsigned run);

#endif /* ERDMA_SIM_PLAN_INT_H */
