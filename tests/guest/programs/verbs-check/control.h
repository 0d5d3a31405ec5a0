/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The TCP connection over which the client directs the server: one line a
 * command, one line an answer.  An answer that begins with "error" is one.
 */
#ifndef VERBS_CHECK_CONTROL_H
#define VERBS_CHECK_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#define LINE_LEN 4096

/* Sends a line; printf-like. */
bool control_say(int fd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Receives a line without its end; false when the peer is gone. */
bool control_hear(int fd, char *line, size_t size);

/* Serves clients for ever (each in a process of its own). */
int server_main(void);
/* Runs the cases whose names begin with one of the n prefixes (all if 0). */
int client_main(const char *host, char **prefixes, int n);

#endif
