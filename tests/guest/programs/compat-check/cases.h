/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The cases.  Both ends run the same function, at the same time.
 */
#ifndef COMPAT_CHECK_CASES_H
#define COMPAT_CHECK_CASES_H

#include "end.h"

struct test_case {
    const char *name;
    void (*run)(struct end *end);
};

extern const struct test_case connect_cases[];
extern const struct test_case error_cases[];
extern const struct test_case event_cases[];

/* Sends strange things to a port of @host; returns an exit status. */
int noise_main(const char *host, int port, unsigned seed, int n);

#endif
