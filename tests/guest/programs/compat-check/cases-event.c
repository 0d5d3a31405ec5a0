/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Cases about completion events, and about ends that come one after the
 * other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"

/* A CQ with a channel in the place of the end's own, and who listens to it. */
struct listener {
    struct end *end;
    struct ibv_comp_channel *channel;
    pthread_t thread;
    atomic_bool is_over;
    atomic_int n_events;
};

/*
 * Takes events as gloo does: without waiting in the read, and it is somebody
 * else who acknowledges them, later.
 */
static void *listen_main(void *opaque)
{
    struct listener *l = opaque;
    struct pollfd pfd = { .fd = l->channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *arg;

    while (!l->is_over) {
        if (poll(&pfd, 1, 10) != 1) {
            continue;
        }
        check(!verbs.get_cq_event(l->channel, &cq, &arg), "an event: %s",
              strerror(errno));
        check(cq == l->end->cq && arg == l->end, "of another CQ");
        l->n_events++;
        check(!ibv_req_notify_cq(cq, 0), "not armed");
    }
    return NULL;
}

static void open_channel(struct listener *l, struct end *end)
{
    memset(l, 0, sizeof(*l));
    l->end = end;
    check(!verbs.destroy_cq(end->cq), "the end's CQ");
    l->channel = verbs.create_comp_channel(end->context);
    check(l->channel, "%s", strerror(errno));
    end->cq = verbs.create_cq(end->context, 2 * QUEUE_DEPTH * end->n_slots,
                              end, l->channel, 0);
    check(end->cq, "%s", strerror(errno));
    check(!ibv_req_notify_cq(end->cq, 0), "not armed");
}

static void set_blocking(struct listener *l, bool on)
{
    int flags = fcntl(l->channel->fd, F_GETFL);

    check(flags >= 0, "%s", strerror(errno));
    flags = on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
    check(!fcntl(l->channel->fd, F_SETFL, flags), "%s", strerror(errno));
}

static void start_listening(struct listener *l)
{
    set_blocking(l, false);
    check(!pthread_create(&l->thread, NULL, listen_main, l), "thread");
}

static void stop_listening(struct listener *l)
{
    l->is_over = true;
    pthread_join(l->thread, NULL);
}

/* All receives stay posted, and the CQ is armed, when the QP is destroyed. */
static void case_late_event(struct end *end)
{
    struct listener l;
    struct pair pair;
    int i, n;

    end_open(end, 1);
    open_channel(&l, end);
    pair_create(end, &pair, 0);
    pair_swap(end, &pair);
    start_listening(&l);
    pair_connect(&pair);
    meet(end);
    pairs_talk(end, &pair, 1);
    for (i = 0; i < QUEUE_DEPTH; i++) {
        pair_post_recv(end, &pair, i);
    }
    for (i = 0; i < 500 && !l.n_events; i++) {
        usleep(10000);
    }
    /* What the last completion made has come, too. */
    usleep(100000);
    n = l.n_events;
    check(n, "no event for what completed");
    verbs.ack_cq_events(end->cq, n);
    pair_destroy(&pair);
    usleep(200000);
    check(l.n_events == n, "%d events for a QP that is gone", l.n_events - n);
    check(!verbs.destroy_cq(end->cq), "CQ");
    stop_listening(&l);
    check(!verbs.destroy_comp_channel(l.channel), "channel");
    end->cq = verbs.create_cq(end->context, 16, NULL, NULL, 0);
    end_close(end);
}

/* An armed CQ stays armed, whatever became of its first QP. */
static void case_next_qp(struct end *end)
{
    struct ibv_cq *cq;
    struct listener l;
    struct pair pair;
    struct ibv_wc wc;
    int round, n;
    void *arg;

    end_open(end, 1);
    open_channel(&l, end);
    for (round = 0; round < 3; round++) {
        pair_create(end, &pair, 0);
        pair_swap(end, &pair);
        pair_post_recv(end, &pair, 1);
        pair_post_recv(end, &pair, 2);
        pair_connect(&pair);
        meet(end);
        pair_post_send(end, &pair, 3);
        /* Our send and their send; an event may tell of nothing. */
        for (n = 0; n < 2;) {
            check(!verbs.get_cq_event(l.channel, &cq, &arg), "%s",
                  strerror(errno));
            verbs.ack_cq_events(cq, 1);
            check(!ibv_req_notify_cq(cq, 0), "not armed");
            while (end_poll(end, &wc, 0, true)) {
                n++;
            }
        }
        check(n == 2, "%d completions", n);
        meet(end);
        /* With a receive that is flushed by that */
        pair_destroy(&pair);
    }
    set_blocking(&l, false);
    check(verbs.get_cq_event(l.channel, &cq, &arg) && errno == EAGAIN,
          "an event of a CQ without a QP");
    check(!verbs.destroy_cq(end->cq), "CQ");
    check(!verbs.destroy_comp_channel(l.channel), "channel");
    end->cq = verbs.create_cq(end->context, 16, NULL, NULL, 0);
    end_close(end);
}

/* The client destroys its QP later, and must not notice the server's end. */
static void case_ends_later(struct end *end)
{
    struct pair pair;
    struct ibv_wc wc;
    double began;

    end_open(end, 1);
    pair_create(end, &pair, 0);
    pair_swap(end, &pair);
    pair_connect(&pair);
    meet(end);
    pairs_talk(end, &pair, 1);
    if (end->is_client) {
        pair_post_recv(end, &pair, 1);
        check(!end_poll(end, &wc, 0.5, false), "status %d while it is in use",
              wc.status);
        check(pair_state(&pair) == IBV_QPS_RTS, "%d", pair_state(&pair));
    }
    began = now();
    pair_destroy(&pair);
    if (!end->is_client) {
        check(now() - began > 0.3, "did not wait: %.3f s", now() - began);
    }
    meet(end);
    end_close(end);
}

const struct test_case event_cases[] = {
    { "late-event", case_late_event },
    { "next-qp", case_next_qp },
    { "ends-later", case_ends_later },
    { NULL, NULL },
};
