/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What several of the programs need.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

void die(const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    exit(1);
}

void need(bool is_good, const char *what)
{
    if (!is_good) {
        die("%s: %m", what);
    }
}

uint64_t number(const char *text, uint64_t min, uint64_t max)
{
    uint64_t n;
    char rest;

    if (*text < '0' || *text > '9' ||
        sscanf(text, "%" SCNu64 "%c", &n, &rest) != 1 || n < min || n > max) {
        die("'%s' is not a number from %" PRIu64 " to %" PRIu64, text, min,
            max);
    }
    return n;
}

struct rdma_addrinfo *address(const char *host, const char *port, int flags)
{
    struct rdma_addrinfo hints = {
        .ai_flags = flags, .ai_port_space = RDMA_PS_TCP,
    };
    struct rdma_addrinfo *info;

    need(!rdma_getaddrinfo(host, port, &hints, &info), "rdma_getaddrinfo");
    return info;
}
