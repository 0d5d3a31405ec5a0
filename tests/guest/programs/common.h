/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What several of the programs need. A program has it compiled in if one of
 * its files includes this.
 */
#ifndef COMMON_H
#define COMMON_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

/* Ends the program with status 1 and a line that begins with its name. */
void die(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/* Ends it with @what and what errno says, unless @is_good. */
void need(bool is_good, const char *what);

/* A decimal number from @min to @max; another text ends the program. */
uint64_t number(const char *text, uint64_t min, uint64_t max);

/* Never NULL. @flags: RAI_*. */
struct rdma_addrinfo *address(const char *host, const char *port, int flags);

#endif
