/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * verbs-check: checks every operation of an RC connection by its effects.
 *
 *   verbs-check server
 *   verbs-check client HOST [CASE-PREFIX]...
 *
 * The client prints a line per case: "ok NAME [note]", "not ok NAME - why" or
 * "ok NAME # SKIP why", and ends with status 0 if no case failed.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"

bool control_say(int fd, const char *format, ...)
{
    char line[LINE_LEN];
    va_list ap;
    int len;

    va_start(ap, format);
    len = vsnprintf(line, sizeof(line) - 1, format, ap);
    va_end(ap);
    if (len < 0 || len > (int)sizeof(line) - 2) {
        return false;
    }
    line[len++] = '\n';
    return send(fd, line, len, MSG_NOSIGNAL) == len;
}

bool control_hear(int fd, char *line, size_t size)
{
    size_t len = 0;
    char c;

    while (recv(fd, &c, 1, 0) == 1) {
        if (c == '\n') {
            line[len] = 0;
            return true;
        }
        if (len < size - 1) {
            line[len++] = c;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && !strcmp(argv[1], "server")) {
        return server_main();
    }
    if (argc >= 3 && !strcmp(argv[1], "client")) {
        return client_main(argv[2], argv + 3, argc - 3);
    }
    fprintf(stderr, "usage: verbs-check server\n"
                    "       verbs-check client HOST [CASE-PREFIX]...\n");
    return 2;
}
