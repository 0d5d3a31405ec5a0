/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of file descriptors that are looked up without a lock, since every
 * system call of the program asks them.
 */
#ifndef COMPAT_FDSET_H
#define COMPAT_FDSET_H

#include <stdatomic.h>
#include <stdbool.h>

/* Files with higher numbers are not ours to handle. */
#define FDSET_MAX 65536

typedef struct FdSet {
    atomic_uchar bits[FDSET_MAX / 8];
} FdSet;

static inline bool fdset_has(FdSet *set, int fd)
{
    return fd >= 0 && fd < FDSET_MAX &&
           (atomic_load(&set->bits[fd / 8]) & 1 << fd % 8);
}

static inline void fdset_put(FdSet *set, int fd, bool on)
{
    if (on) {
        atomic_fetch_or(&set->bits[fd / 8], 1 << fd % 8);
    } else {
        atomic_fetch_and(&set->bits[fd / 8], (unsigned char)~(1 << fd % 8));
    }
}

#endif
