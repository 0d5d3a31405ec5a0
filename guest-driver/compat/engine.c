// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: the thread, its files, and fork().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "compat.h"
#include "conn.h"
#include "ucm.h"

#define STACK_SIZE (256 * 1024)

int compat_ucm_fd = -1;

static TAILQ_HEAD(, CompatQp) pending = TAILQ_HEAD_INITIALIZER(pending);
static bool is_running;
static int epoll_fd = -1, wake_fd = -1;

/* Times to keep */

void compat_engine_watch(CompatQp *qp, bool on)
{
    if (on != qp->is_pending) {
        qp->is_pending = on;
        if (on) {
            TAILQ_INSERT_TAIL(&pending, qp, pending);
        } else {
            TAILQ_REMOVE(&pending, qp, pending);
        }
    }
}

void compat_engine_kick(void)
{
    if (wake_fd >= 0) {
        eventfd_write(wake_fd, 1);
    }
}

/* The thread */

static int next_timeout(uint64_t now)
{
    uint64_t next = now + 1000;
    CompatQp *qp;

    if (TAILQ_EMPTY(&pending)) {
        return -1;
    }
    TAILQ_FOREACH(qp, &pending, pending) {
        if (qp->deadline_ms < next) {
            next = qp->deadline_ms;
        }
        if (qp->retry_ms && qp->retry_ms < next) {
            next = qp->retry_ms;
        }
    }
    return next > now ? (int)(next - now) : 0;
}

static void *engine_main(void *unused)
{
    struct epoll_event ev;
    CompatQp *qp, *next;
    eventfd_t count;
    uint64_t now;
    int timeout = 0, n;

    for (;;) {
        /* One at a time: handling one may close another one's socket. */
        n = epoll_wait(epoll_fd, &ev, 1, timeout);
        pthread_mutex_lock(&compat_lock);
        if (n == 1 && ev.data.u64 == COMPAT_EVENT_WAKE) {
            eventfd_read(wake_fd, &count);
        } else if (n == 1 && ev.data.u64 == COMPAT_EVENT_UCM) {
            compat_conn_event();
        } else if (n == 1) {
            compat_lookup_event(ev.data.u64);
        }
        now = compat_now_ms();
        for (qp = TAILQ_FIRST(&pending); qp; qp = next) {
            next = TAILQ_NEXT(qp, pending);
            compat_conn_time(qp, now);
        }
        compat_lookup_run(now);
        timeout = next_timeout(now);
        pthread_mutex_unlock(&compat_lock);
    }
    return unused;
}

static int engine_watch_fd(int fd, uint64_t what)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.u64 = what };

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? errno : 0;
}

static void engine_close(void)
{
    int *fds[] = { &compat_ucm_fd, &epoll_fd, &wake_fd };
    unsigned i;

    for (i = 0; i < 3; i++) {
        int fd = *fds[i];

        *fds[i] = -1;
        if (fd >= 0) {
            close(fd);
        }
    }
}

/* Signals are the program's: none may be handled in our thread. */
static int engine_thread(void)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&thread, &attr, engine_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (!err) {
        pthread_setname_np(thread, "erdma-compat");
    }
    return err;
}

static int engine_start(void)
{
    int err;

    if (is_running) {
        return 0;
    }
    compat_ucm_fd = ucm_open();
    if (compat_ucm_fd < 0) {
        err = -compat_ucm_fd;
        compat_ucm_fd = -1;
        return err;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    err = epoll_fd < 0 || wake_fd < 0 ? EMFILE : 0;
    if (!err) {
        err = engine_watch_fd(compat_ucm_fd, COMPAT_EVENT_UCM);
    }
    if (!err) {
        err = engine_watch_fd(wake_fd, COMPAT_EVENT_WAKE);
    }
    if (!err) {
        err = engine_thread();
    }
    if (err) {
        engine_close();
        return err;
    }
    is_running = true;
    return 0;
}

int compat_engine_serve(CompatDev *dev)
{
    char text[16];
    bool is_listening = false;
    unsigned i, j;
    int err = engine_start();

    if (err) {
        return err;
    }
    compat_dev_refresh(dev);
    if (!dev->n_addrs) {
        return EADDRNOTAVAIL;
    }
    for (i = 0; i < dev->n_addrs; i++) {
        CompatAddr *addr = &dev->addrs[i];

        for (j = 0; j < compat_config.n_ports && !addr->is_listening; j++) {
            err = compat_conn_listen(dev, addr, compat_config.port + j);
        }
        if (!addr->is_listening) {
            dev->listen_error = err;
            continue;
        }
        is_listening = true;
        if (j) {
            compat_log(3, "%s: listening on %s port %u", dev->name,
                       compat_ip_text(addr->ip, text), addr->listen_port);
        }
    }
    return is_listening ? 0 : err;
}

int compat_engine_epoll(void)
{
    return epoll_fd;
}

bool compat_engine_owns(int fd)
{
    return fd >= 0 && (fd == compat_ucm_fd || fd == epoll_fd || fd == wake_fd);
}

/* fork(): the thread and the QPs are the parent's. */

static void fork_prepare(void)
{
    pthread_mutex_lock(&compat_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&compat_lock);
}

static void fork_child(void)
{
    /* The parent's listeners must not live longer than the parent. */
    compat_lookup_drop_all();
    engine_close();
    compat_conn_drop_all();
    TAILQ_INIT(&pending);
    compat_qp_drop_all();
    compat_channel_drop_all();
    compat_dev_drop_all();
    is_running = false;
    pthread_mutex_unlock(&compat_lock);
}

static void __attribute__((constructor)) compat_init(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&compat_cond, &attr);
    pthread_condattr_destroy(&attr);
    compat_config_read();
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
