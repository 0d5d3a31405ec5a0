// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: what is done around the driver's work.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call.h"
#include "channel.h"

/* Message lengths are signed in many programs. */
#define MAX_MSG_SIZE (1u << 31)
/* "4x" and "EDR": what to show for a link whose speed nobody knows. */
#define WIDTH_4X 2
#define SPEED_EDR 32

static __thread int cancel_state;

int call_make(void *opaque)
{
    Call *call = opaque;
    long n;

    if (call->hdr) {
        n = syscall(SYS_ioctl, call->fd, RDMA_VERBS_IOCTL, call->hdr);
        return n < 0 ? errno : 0;
    }
    n = syscall(SYS_write, call->fd, call->buf, call->len);
    return n < 0 ? errno : 0;
}

/* A thread that is cancelled must not take the lock along. */
CompatCtx *call_enter(int fd)
{
    CompatCtx *ctx;
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&compat_lock);
    ctx = compat_ctx_find(fd);
    cancel_state = cancel;
    if (!ctx) {
        call_leave();
    }
    return ctx;
}

void call_leave(void)
{
    pthread_mutex_unlock(&compat_lock);
    pthread_setcancelstate(cancel_state, NULL);
}

void call_note_qp(int fd, uint32_t handle, uint32_t qpn,
                  const uint32_t cqs[2])
{
    CompatCtx *ctx = call_enter(fd);

    if (ctx) {
        compat_qp_add(ctx, handle, qpn, cqs);
        call_leave();
    }
}

int call_end_qp(Call *call, uint32_t handle)
{
    CompatCtx *ctx = call_enter(call->fd);
    int err;

    if (!ctx) {
        return call_make(call);
    }
    err = compat_qp_destroy(ctx, handle, call_make, call);
    call_leave();
    return err;
}

void call_show_port(int fd, struct ib_uverbs_query_port_resp *resp)
{
    CompatCtx *ctx = call_enter(fd);
    unsigned n;

    if (!ctx) {
        return;
    }
    compat_dev_refresh(ctx->dev);
    n = ctx->dev->n_addrs;
    call_leave();
    if (!n) {
        return;
    }
    resp->gid_tbl_len = 2 * n;
    resp->flags |= IB_UVERBS_QPF_GRH_REQUIRED;
    resp->port_cap_flags |= IB_UVERBS_PCF_IP_BASED_GIDS;
    if (resp->max_msg_sz > MAX_MSG_SIZE) {
        resp->max_msg_sz = MAX_MSG_SIZE;
    }
    if (!resp->active_width) {
        resp->active_width = WIDTH_4X;
    }
    if (!resp->active_speed) {
        resp->active_speed = SPEED_EDR;
    }
}

void call_note_channel(int fd, int channel_fd)
{
    CompatCtx *ctx = call_enter(fd);

    if (ctx) {
        compat_channel_add(ctx, channel_fd);
        call_leave();
    }
}

CompatCq *call_new_cq(int fd, int channel_fd)
{
    CompatCtx *ctx = channel_fd >= 0 ? call_enter(fd) : NULL;
    CompatCq *cq = NULL;

    if (ctx) {
        cq = compat_cq_new(ctx, channel_fd);
        call_leave();
    }
    return cq;
}

void call_made_cq(int fd, CompatCq *cq, int err, uint32_t handle)
{
    pthread_mutex_lock(&compat_lock);
    if (!err && compat_ctx_find(fd) == compat_cq_ctx(cq)) {
        compat_cq_add(cq, handle);
    } else {
        compat_cq_gone(cq);
    }
    pthread_mutex_unlock(&compat_lock);
}

int call_end_cq(Call *call, uint32_t handle)
{
    CompatCtx *ctx = call_enter(call->fd);
    CompatCq *cq = NULL;
    int err;

    if (ctx) {
        cq = compat_cq_take(ctx, handle);
        call_leave();
    }
    err = call_make(call);
    if (cq) {
        /* If it is still there, so is its handle. */
        call_made_cq(call->fd, cq, !err, handle);
    }
    return err;
}
