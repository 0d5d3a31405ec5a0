/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A system call that waits to be made, and what is done around it.  None of
 * these functions is called with the lock held.
 */
#ifndef COMPAT_CALL_H
#define COMPAT_CALL_H

#include <rdma/rdma_user_ioctl_cmds.h>

#include "compat.h"

typedef struct Call {
    int fd;
    struct ib_uverbs_ioctl_hdr *hdr;    /* NULL: it is a write */
    const void *buf;
    size_t len;
} Call;

/* Makes the call @opaque (a CompatPass): 0 or errno. */
int call_make(void *opaque);

/*
 * Locks, if @fd is still a device of ours.  Commands that only need the
 * lock for what comes after them are made without it: some take long.
 */
CompatCtx *call_enter(int fd);
void call_leave(void);

/* The driver has made a QP; one is to be destroyed. */
void call_note_qp(int fd, uint32_t handle, uint32_t qpn,
                  const uint32_t cqs[2]);
int call_end_qp(Call *call, uint32_t handle);

/* The driver has made a completion channel. */
void call_note_channel(int fd, int channel_fd);

/*
 * A CQ is to be made with the program's channel: NULL if that is none of
 * ours.  Afterwards call_made_cq() is told how it went.
 */
CompatCq *call_new_cq(int fd, int channel_fd);
void call_made_cq(int fd, CompatCq *cq, int err, uint32_t handle);
int call_end_cq(Call *call, uint32_t handle);

/* The port as the program shall see it. */
void call_show_port(int fd, struct ib_uverbs_query_port_resp *resp);

#endif
