/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What goes wrong around a connection: receives that are missing, QPs that
 * fail with requests in their queues, peers that die.  Every request is
 * completed once, and a new connection works afterwards.
 */
#include <stdio.h>
#include <string.h>

#include "client.h"

/* No receive ever; only by name, since the device waits for one for long. */
static void no_receive_case(Client *c)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = 3000 };
    char events[256] = "none";
    struct ibv_wc wc;
    int n = 1;

    if (!is_asked_for(c, "no-receive") || !begin(c, "no-receive")) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 16, false)) {
        return;
    }
    if (post(c, &op)) {
        fail(c, "ibv_post_send");
    } else if (!ep_poll(&c->ep, &wc, &n, 60000)) {
        fail(c, "%s", c->ep.problem);
    } else if (wc.status != IBV_WC_RETRY_EXC_ERR) {
        fail(c, "%s instead of retry-exceeded", status_name(wc.status));
    } else if (ask(c, "events 5000")) {
        char note[320];

        sscanf(c->answer, "events %255s", events);
        snprintf(note, sizeof(note), "(receiver: %s)", events);
        pass(c, note);
    }
    close_connection(c);
}

/* A message that comes before its receive is posted waits for it. */
static void late_receive_case(Client *c)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = 3000 };
    struct ibv_wc wc;
    int n = 1;

    if (!begin(c, "late-receive")) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 16, false)) {
        return;
    }
    pattern_fill(c->ep.mem + SOURCE, op.len, c->seed);
    if (post(c, &op)) {
        fail(c, "ibv_post_send");
        return;
    }
    ep_poll(&c->ep, &wc, &n, 500);
    if (n) {
        fail(c, "completed without a receive: %s", status_name(wc.status));
        return;
    }
    n = 1;
    if (!ask_ok(c, "recv %u %u 1", RECV_BASE, op.len)) {
        return;
    }
    if (!ep_poll(&c->ep, &wc, &n, 20000) || wc.status) {
        fail(c, "%s", n ? status_name(wc.status) : c->ep.problem);
    } else if (ask(c, "poll 1 10000") &&
               ask_ok(c, "check %u %u %u 0", RECV_BASE, op.len, c->seed)) {
        pass(c, NULL);
    }
}

/* Takes the flushed completions of n sends and n receives, sends in order. */
static bool take_flushed(Client *c, int n, uint64_t first_id)
{
    int total = 2 * n, got = total, recvs = 0, sends = 0;
    struct ibv_wc wc[64];

    if (!ep_poll(&c->ep, wc, &got, 20000)) {
        fail(c, "%s", c->ep.problem);
        return false;
    }
    for (int i = 0; i < total; i++) {
        if (wc[i].status != IBV_WC_WR_FLUSH_ERR) {
            fail(c, "completion %d: %s", i, status_name(wc[i].status));
            return false;
        }
        /* Receives have wr_id 0; sends have rising ones. */
        if (wc[i].wr_id == 0) {
            recvs++;
        } else if (wc[i].wr_id == first_id + sends) {
            sends++;
        } else {
            fail(c, "completion %d is out of order", i);
            return false;
        }
    }
    got = 1;
    if (recvs != n || sends != n) {
        fail(c, "%d receives and %d sends of %d each", recvs, sends, n);
        return false;
    }
    if (ep_poll(&c->ep, wc, &got, 300)) {
        fail(c, "more completions than requests");
        return false;
    }
    return true;
}

static bool post_both(Client *c, int n)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = 100 };

    for (int i = 0; i < n; i++) {
        c->seed++;
        if (!ep_post_recv(&c->ep, RECV_BASE, 100, 1) || post(c, &op)) {
            fail(c, "posting %d: %s", i, c->ep.problem);
            return false;
        }
    }
    return true;
}

/* The program itself puts the QP in error: all that is posted is flushed. */
static void flush_modify_case(Client *c, int n)
{
    uint64_t first;

    if (!begin(c, "flush/modify-%d", n)) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 64, false)) {
        return;
    }
    first = c->seed + 1;
    /* No receive at the peer: the sends stay outstanding. */
    if (!post_both(c, n)) {
        return;
    }
    if (!ep_set_error(&c->ep)) {
        fail(c, "%s", c->ep.problem);
        return;
    }
    if (take_flushed(c, n, first)) {
        pass(c, NULL);
        close_connection(c);
    }
}

/*
 * A request fails with n sends and n receives behind it; then come m more,
 * posted to a QP of which the device alone knows that it is dead.
 */
static void flush_error_case(Client *c, int n, int m)
{
    Op bad = {
        .opcode = IBV_WR_RDMA_WRITE, .local = SOURCE, .remote = TARGET,
        .len = 100,
    };
    struct ibv_wc wc;
    uint64_t first;
    int one = 1;

    if (!begin(c, "flush/error-%d+%d", n, m)) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 64, false)) {
        return;
    }
    bad.rkey = c->peer_rkey ^ 0x5500;
    if (post(c, &bad)) {
        fail(c, "ibv_post_send");
        return;
    }
    first = c->seed + 1;
    if (!post_both(c, n)) {
        return;
    }
    if (!ep_poll(&c->ep, &wc, &one, 20000) ||
        wc.status != IBV_WC_REM_ACCESS_ERR) {
        fail(c, "%s", one ? status_name(wc.status) : c->ep.problem);
        return;
    }
    if (n && !take_flushed(c, n, first)) {
        return;
    }
    first = c->seed + 1;
    if (post_both(c, m) && take_flushed(c, m, first)) {
        pass(c, NULL);
        close_connection(c);
    }
}

/* After all that a new connection works. */
static void recovery_case(Client *c)
{
    Op op = {
        .opcode = IBV_WR_RDMA_WRITE, .local = SOURCE, .remote = TARGET,
        .len = 100000,
    };

    if (!begin(c, "works-after-errors") || !need_connection(c, 32, false)) {
        return;
    }
    pattern_fill(c->ep.mem + SOURCE, op.len, c->seed);
    if (run_op(c, &op, NULL) &&
        ask_ok(c, "check %u %u %u 10000", TARGET, op.len, c->seed)) {
        pass(c, NULL);
    }
}

/* The server's process is killed while it has a connection. */
static void peer_death_case(Client *c)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = 100 };
    char events[200] = "";
    struct ibv_wc wc[8];
    int n = 4;

    if (!begin(c, "peer-killed")) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 16, false)) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (post(c, &op)) {
            fail(c, "ibv_post_send");
            return;
        }
    }
    ep_post_recv(&c->ep, RECV_BASE, 100, 1);
    dprintf(c->fd, "die\n");
    ep_events(&c->ep, 20000, 20000, events, sizeof(events));
    if (!strstr(events, "disconnected")) {
        fail(c, "events: %s", events);
        return;
    }
    if (!ep_poll(&c->ep, wc, &n, 20000)) {
        fail(c, "%s", c->ep.problem);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (wc[i].status == IBV_WC_SUCCESS) {
            fail(c, "request %d succeeded", i);
            return;
        }
    }
    pass(c, NULL);
    c->is_open = false;
    ep_destroy(&c->ep);
}

void cases_error(Client *c)
{
    late_receive_case(c);
    no_receive_case(c);
    flush_modify_case(c, 5);
    flush_error_case(c, 0, 5);
    flush_error_case(c, 7, 9);
    recovery_case(c);
    /* The last one: nobody serves us any more. */
    peer_death_case(c);
}
