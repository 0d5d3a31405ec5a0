/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of the older kind: a number and structures, whether they come by
 * write() or wrapped into an ioctl().
 */
#ifndef COMPAT_COMMAND_H
#define COMPAT_COMMAND_H

#include "call.h"

typedef struct Command {
    uint32_t number;            /* without the flag for "extended" */
    bool is_extended;
    const void *in;
    size_t in_len;
    void *out;
    size_t out_len;
} Command;

/* Does the command: 0 or errno. */
int command_run(const Command *cmd, Call *call);

#endif
