// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: completion channels.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"
#include "fdset.h"

/* A program's channel; its number is that of an epoll file. */
typedef struct Channel {
    LIST_ENTRY(Channel) entry;
    int fd;
    int shared_fd;              /* what the driver made for the program */
} Channel;

struct CompatCq {
    LIST_ENTRY(CompatCq) entry;
    CompatCtx *ctx;
    uint32_t handle;
    int set_fd;                 /* the program's channel */
    int fd;                     /* the driver's */
    int own_fd;                 /* the same, if it is this CQ's alone */
    unsigned n_uses;            /* queues of QPs */
    bool is_held;
};

static LIST_HEAD(, Channel) channels = LIST_HEAD_INITIALIZER(channels);
static LIST_HEAD(, CompatCq) cqs = LIST_HEAD_INITIALIZER(cqs);
static FdSet known, ours;

bool compat_channel_knows(int fd)
{
    return fdset_has(&known, fd);
}

bool compat_channel_owns(int fd)
{
    return fdset_has(&ours, fd);
}

/* Our own files are closed without our own close(). */
static void close_ours(int fd)
{
    fdset_put(&ours, fd, false);
    syscall(SYS_close, fd);
}

/* Reads of our files are tried, and must not wait. */
static bool make_ours(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (fd >= FDSET_MAX || flags < 0 ||
        fcntl(fd, F_SETFL, flags | O_NONBLOCK)) {
        syscall(SYS_close, fd);
        return false;
    }
    fdset_put(&ours, fd, true);
    return true;
}

/* Whether the set shows events of @fd. */
static int set_watch(int set_fd, int fd, bool on)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

    return epoll_ctl(set_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &ev);
}

static Channel *channel_find(int fd)
{
    Channel *channel;

    LIST_FOREACH(channel, &channels, entry) {
        if (channel->fd == fd) {
            return channel;
        }
    }
    return NULL;
}

/* Puts a set, with the driver's channel in it, in the place of that. */
static bool channel_make_set(Channel *channel)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    bool is_made;

    if (set < 0) {
        return false;
    }
    is_made = !set_watch(set, channel->shared_fd, true) &&
              dup3(set, channel->fd, O_CLOEXEC) >= 0;
    syscall(SYS_close, set);
    return is_made;
}

void compat_channel_add(CompatCtx *ctx, int fd)
{
    Channel *channel = calloc(1, sizeof(*channel));
    int shared = -1;

    if (channel && fd < FDSET_MAX) {
        shared = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    if (shared >= 0) {
        channel->fd = fd;
        channel->shared_fd = shared;
        if (channel_make_set(channel) && make_ours(shared)) {
            LIST_INSERT_HEAD(&channels, channel, entry);
            fdset_put(&known, fd, true);
            return;
        }
        syscall(SYS_close, shared);
    }
    /* The program has the driver's channel, then. */
    free(channel);
    compat_log(1, "%s: no room for a completion channel of our own",
               ctx->dev->name);
}

void compat_channel_close(int fd)
{
    Channel *channel;

    pthread_mutex_lock(&compat_lock);
    channel = channel_find(fd);
    if (channel) {
        close_ours(channel->shared_fd);
        LIST_REMOVE(channel, entry);
        free(channel);
    }
    fdset_put(&known, fd, false);
    pthread_mutex_unlock(&compat_lock);
}

/* CQs */

CompatCq *compat_cq_new(CompatCtx *ctx, int fd)
{
    Channel *channel = channel_find(fd);
    CompatCq *cq = calloc(1, sizeof(*cq));
    int own_fd;

    if (!cq) {
        return NULL;
    }
    cq->ctx = ctx;
    cq->set_fd = fd;
    cq->fd = channel ? channel->shared_fd : fd;
    cq->own_fd = -1;
    own_fd = channel ? compat_command_make_channel(ctx) : -1;
    if (own_fd < 0 || !make_ours(own_fd)) {
        return cq;
    }
    if (set_watch(fd, own_fd, true)) {
        close_ours(own_fd);
        return cq;
    }
    cq->fd = cq->own_fd = own_fd;
    return cq;
}

int compat_cq_fd(const CompatCq *cq)
{
    return cq->fd;
}

CompatCtx *compat_cq_ctx(const CompatCq *cq)
{
    return cq->ctx;
}

void compat_cq_add(CompatCq *cq, uint32_t handle)
{
    cq->handle = handle;
    LIST_INSERT_HEAD(&cqs, cq, entry);
}

static CompatCq *cq_find(CompatCtx *ctx, uint32_t handle)
{
    CompatCq *cq;

    LIST_FOREACH(cq, &cqs, entry) {
        if (cq->ctx == ctx && cq->handle == handle) {
            return cq;
        }
    }
    return NULL;
}

CompatCq *compat_cq_take(CompatCtx *ctx, uint32_t handle)
{
    CompatCq *cq = cq_find(ctx, handle);

    if (cq) {
        LIST_REMOVE(cq, entry);
    }
    return cq;
}

void compat_cq_gone(CompatCq *cq)
{
    if (cq->own_fd >= 0) {
        if (!cq->is_held && compat_channel_knows(cq->set_fd)) {
            set_watch(cq->set_fd, cq->own_fd, false);
        }
        close_ours(cq->own_fd);
    }
    free(cq);
}

static void cq_hold(CompatCq *cq, bool on)
{
    if (cq->own_fd >= 0 && cq->is_held != on) {
        cq->is_held = on;
        if (compat_channel_knows(cq->set_fd)) {
            set_watch(cq->set_fd, cq->own_fd, !on);
        }
    }
}

void compat_cq_use(CompatCtx *ctx, uint32_t handle)
{
    CompatCq *cq = cq_find(ctx, handle);

    if (cq) {
        cq->n_uses++;
        cq_hold(cq, false);
    }
}

void compat_cq_unuse(CompatCtx *ctx, uint32_t handle)
{
    CompatCq *cq = cq_find(ctx, handle);

    if (cq && !--cq->n_uses) {
        cq_hold(cq, true);
    }
}

void compat_cq_remove_all(CompatCtx *ctx)
{
    CompatCq *cq, *next;

    for (cq = LIST_FIRST(&cqs); cq; cq = next) {
        next = LIST_NEXT(cq, entry);
        if (cq->ctx == ctx) {
            LIST_REMOVE(cq, entry);
            compat_cq_gone(cq);
        }
    }
}

void compat_channel_drop_all(void)
{
    Channel *channel;
    CompatCq *cq;

    while ((channel = LIST_FIRST(&channels))) {
        /* The set is the parent's, too. */
        fdset_put(&known, channel->fd, false);
        close_ours(channel->shared_fd);
        LIST_REMOVE(channel, entry);
        free(channel);
    }
    while ((cq = LIST_FIRST(&cqs))) {
        LIST_REMOVE(cq, entry);
        compat_cq_gone(cq);
    }
}

/* Reading */

/* Whether the kernel would go on with a read() after any signal. */
static bool signals_restart(void)
{
    struct sigaction act;
    int sig;

    for (sig = 1; sig < NSIG; sig++) {
        if (!sigaction(sig, NULL, &act) && act.sa_handler != SIG_DFL &&
            act.sa_handler != SIG_IGN && !(act.sa_flags & SA_RESTART)) {
            return false;
        }
    }
    return true;
}

/*
 * An event that is there.  With the lock held, as the file that has one could
 * otherwise be closed before it is read; so no C library function may end the
 * thread here.
 */
static ssize_t channel_take(int fd, void *buf, size_t len)
{
    struct epoll_event ev;
    ssize_t n;

    pthread_mutex_lock(&compat_lock);
    n = syscall(SYS_epoll_pwait, fd, &ev, 1, 0, NULL, 0);
    if (n == 1) {
        n = syscall(SYS_read, ev.data.fd, buf, len);
    } else if (n == 0) {
        n = -1;
        errno = EAGAIN;
    }
    pthread_mutex_unlock(&compat_lock);
    return n;
}

ssize_t compat_channel_read(int fd, void *buf, size_t len)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    ssize_t n;
    int flags;

    for (;;) {
        n = channel_take(fd, buf, len);
        if (n >= 0 || errno != EAGAIN) {
            return n;
        }
        flags = fcntl(fd, F_GETFL);
        if (flags < 0 || flags & O_NONBLOCK) {
            errno = flags < 0 ? errno : EAGAIN;
            return -1;
        }
        /* Unlike read() it never goes on after a signal. */
        if (poll(&pfd, 1, -1) < 0 && (errno != EINTR || !signals_restart())) {
            return -1;
        }
    }
}
