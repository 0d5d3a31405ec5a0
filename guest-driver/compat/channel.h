/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion channels: which events a program gets to see.
 *
 * A QP that is destroyed with receives posted has them flushed, and if its CQ
 * is armed that makes an event.  Destroying an RC QP of InfiniBand completes
 * nothing, so programs do not expect one: it would be an event that nobody
 * acknowledges, and ibv_destroy_cq() would wait for that.
 *
 * So events of a CQ without any QP are held back.  If it gets a QP again they
 * are shown, as one of them has used up what the program armed; if it is
 * destroyed the kernel drops them.
 *
 * For that each CQ has a channel of its own, and the program's channel is a
 * set (epoll) of them: it can be waited for in the same ways, and read()
 * takes an event from whichever has one.
 */
#ifndef COMPAT_CHANNEL_H
#define COMPAT_CHANNEL_H

#include <sys/types.h>

#include "compat.h"

/* No lock is needed for these four. */

/* Whether @fd is a program's completion channel. */
bool compat_channel_knows(int fd);
/* Whether @fd is ours, not the program's. */
bool compat_channel_owns(int fd);
/* read() of a completion channel. */
ssize_t compat_channel_read(int fd, void *buf, size_t len);
/* The program is about to close its channel. */
void compat_channel_close(int fd);

/* The driver has made the channel @fd: makes it a set. */
void compat_channel_add(CompatCtx *ctx, int fd);

/*
 * A CQ that the driver is about to make, where the program asked for the
 * channel @fd; NULL: no memory.  compat_cq_fd() is the channel to ask the
 * driver for.  compat_cq_gone() if it made none.
 */
CompatCq *compat_cq_new(CompatCtx *ctx, int fd);
int compat_cq_fd(const CompatCq *cq);
CompatCtx *compat_cq_ctx(const CompatCq *cq);
/* It is made; again, after compat_cq_take(), if it was not destroyed. */
void compat_cq_add(CompatCq *cq, uint32_t handle);

/* Takes a CQ out of all tables while the driver destroys it; NULL: none. */
CompatCq *compat_cq_take(CompatCtx *ctx, uint32_t handle);
void compat_cq_gone(CompatCq *cq);

/* A QP that uses the CQ comes or goes, with each of its two queues. */
void compat_cq_use(CompatCtx *ctx, uint32_t handle);
void compat_cq_unuse(CompatCtx *ctx, uint32_t handle);

/* The device file is closed. */
void compat_cq_remove_all(CompatCtx *ctx);
/* Forgets everything: we are a child of fork(). */
void compat_channel_drop_all(void);

#endif
