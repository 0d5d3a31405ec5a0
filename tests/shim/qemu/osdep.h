/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in for QEMU's qemu/osdep.h where the engine and the transport are
 * built without QEMU: what those, and the QEMU headers that they may include,
 * take for granted.
 */

#ifndef ERDMA_SHIM_OSDEP_H
#define ERDMA_SHIM_OSDEP_H

/* MIN(x, 1) with an unsigned x is no mistake, as QEMU sees it. */
#pragma GCC system_header

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <glib.h>

#include "qemu/compiler.h"

#undef MIN
#define MIN(a, b)                                       \
    ({ __typeof__(a) min_a_ = (a);                      \
       __typeof__(b) min_b_ = (b);                      \
       min_a_ < min_b_ ? min_a_ : min_b_; })
#undef MAX
#define MAX(a, b)                                       \
    ({ __typeof__(a) max_a_ = (a);                      \
       __typeof__(b) max_b_ = (b);                      \
       max_a_ > max_b_ ? max_a_ : max_b_; })
#define MIN_CONST(a, b) ((a) < (b) ? (a) : (b))
#define MAX_CONST(a, b) ((a) > (b) ? (a) : (b))
#define ROUND_UP(n, d) (((n) + (d) - 1) & -((0 ? (n) : 0) + (d)))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))
#endif

#endif
