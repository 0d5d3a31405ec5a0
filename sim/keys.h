/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: the keys of experiment files, each with its type, its limits and
 * its place in an Experiment.
 */

#ifndef ERDMA_SIM_KEYS_H
#define ERDMA_SIM_KEYS_H

#include "experiment.h"

typedef struct Key Key;

/* NULL: no such key.  Keys of flow groups are apart from the others. */
const Key *key_find(const char *name, bool is_flow);
/* "a, b, c"; the caller frees it */
char *key_names(bool is_flow);
const char *key_name(const Key *key);
/* May a list of values stand there, one run each? */
bool key_is_swept(const Key *key);
/*
 * Sets the key in @e, of group @group if it belongs to flows.  Returns NULL
 * or what is allowed.
 */
const char *key_set(const Key *key, Experiment *e, unsigned group,
                    const char *text);
/* Prints all of @e as JSON members, in ns, bytes, bit/s, 0..1, true/false. */
void key_print_settings(const Experiment *e, FILE *f);
void key_print_group(const Experiment *e, unsigned group, FILE *f);
/* Prints every key with what it means. */
void key_print_help(void);

/* The plots that a file can ask for; NULL-terminated */
extern const char *const key_plots[];

#endif /* ERDMA_SIM_KEYS_H */
