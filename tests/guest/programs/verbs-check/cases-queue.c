/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Queues: wrap, signalling, events, fences, order, and both directions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"

#define MESSAGE 1000u

/* Messages one after the other, the queues wrapping several times. */
static void wrap_case(Client *c, const char *name, int depth, int total,
                      bool has_channel)
{
    struct ibv_wc wc[64];
    int sent = 0;

    if (!begin(c, "%s", name) || !need_connection(c, depth, has_channel)) {
        return;
    }
    while (sent < total) {
        int batch = depth / 2 < 32 ? depth / 2 : 32, n = batch, came, status;

        if (!ask_ok(c, "recv %u %u %d", RECV_BASE, MESSAGE, batch)) {
            return;
        }
        for (int i = 0; i < batch; i++) {
            Op op = {
                .opcode = IBV_WR_SEND, .local = SOURCE + i * MESSAGE,
                .len = MESSAGE,
            };

            pattern_fill(c->ep.mem + op.local, MESSAGE, sent + i);
            if (post(c, &op)) {
                fail(c, "ibv_post_send of message %d", sent + i);
                return;
            }
        }
        if (!ep_poll(&c->ep, wc, &n, 30000)) {
            fail(c, "%s after %d messages", c->ep.problem, sent);
            return;
        }
        for (int i = 0; i < n; i++) {
            if (wc[i].status) {
                fail(c, "message %d: %s", sent + i, status_name(wc[i].status));
                return;
            }
        }
        if (!ask(c, "poll %d 30000", batch)) {
            return;
        }
        if (sscanf(c->answer, "wc %d %d", &came, &status) != 2 ||
            came != batch || status) {
            fail(c, "the server after %d messages: %.60s", sent, c->answer);
            return;
        }
        for (int i = 0; i < batch; i++) {
            if (!ask_ok(c, "check %u %u %d 0", RECV_BASE + i * MESSAGE,
                        MESSAGE, sent + i)) {
                return;
            }
        }
        sent += batch;
    }
    pass(c, NULL);
}

/* Only every n-th request asks for a completion: writes and reads in turn. */
static void unsignalled_case(Client *c, int each)
{
    const uint32_t len = 100;
    const int total = 64;
    struct ibv_wc wc[64];
    int n = total / each;

    if (!begin(c, "signal-every/%d", each) ||
        !need_connection(c, 128, false)) {
        return;
    }
    for (int i = 0; i < total; i++) {
        pattern_fill(c->ep.mem + SOURCE + i * len, len, c->seed + i);
        if (i % 3 == 2 && !ask_ok(c, "fill %u %u %u", TARGET + i * len, len,
                                  c->seed + 1000 + i)) {
            return;
        }
    }
    for (int i = 0; i < total; i++) {
        Op op = {
            .opcode = i % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
            .local = SOURCE + i * len, .remote = TARGET + i * len, .len = len,
            .is_unsignalled = i % each != each - 1,
        };

        if (post(c, &op)) {
            fail(c, "ibv_post_send of request %d", i);
            return;
        }
    }
    if (!ep_poll(&c->ep, wc, &n, 20000)) {
        fail(c, "%s", c->ep.problem);
        return;
    }
    for (int i = 0; i < n; i++) {
        bool is_read = (i * each + each - 1) % 3 == 2;

        if (wc[i].status ||
            wc[i].opcode != (is_read ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE)) {
            fail(c, "completion %d: %s, opcode %d", i,
                 status_name(wc[i].status), wc[i].opcode);
            return;
        }
    }
    n = 1;
    if (ep_poll(&c->ep, wc, &n, 100)) {
        fail(c, "a completion nobody asked for");
        return;
    }
    for (int i = 0; i < total; i++) {
        if (i % 3 != 2) {
            if (!ask_ok(c, "check %u %u %u 10000", TARGET + i * len, len,
                        c->seed + i)) {
                return;
            }
        } else if (pattern_check(c->ep.mem + SOURCE + i * len, len,
                                 c->seed + 1000 + i) >= 0) {
            fail(c, "wrong data at read %d", i);
            return;
        }
    }
    pass(c, NULL);
}

/* A read, then a fenced send of what it brought. */
static void fence_case(Client *c)
{
    const uint32_t len = 60000;
    Op get = {
        .opcode = IBV_WR_RDMA_READ, .local = SOURCE, .remote = TARGET,
        .len = len,
    };
    Op send = {
        .opcode = IBV_WR_SEND, .local = SOURCE, .len = len,
        .flags = IBV_SEND_FENCE,
    };
    struct ibv_wc wc[2];
    int n = 2;

    if (!begin(c, "fence") || !need_connection(c, 32, false)) {
        return;
    }
    memset(c->ep.mem + SOURCE, 0, len);
    if (!ask_ok(c, "fill %u %u %u", TARGET, len, c->seed) ||
        !ask_ok(c, "recv %u %u 1", RECV_BASE, len)) {
        return;
    }
    if (post(c, &get) || post(c, &send)) {
        fail(c, "ibv_post_send");
    } else if (!ep_poll(&c->ep, wc, &n, 20000)) {
        fail(c, "%s", c->ep.problem);
    } else if (wc[0].status || wc[1].status ||
               wc[0].opcode != IBV_WC_RDMA_READ) {
        fail(c, "completions: %s, %s", status_name(wc[0].status),
             status_name(wc[1].status));
    } else if (ask(c, "poll 1 20000") &&
               ask_ok(c, "check %u %u %u 0", RECV_BASE, len, c->seed)) {
        pass(c, NULL);
    }
}

/* Messages with and without the flag arrive alike. */
static void solicited_case(Client *c)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = 64 };
    struct ibv_wc wc;

    if (!begin(c, "send-solicited") || !need_connection(c, 32, false)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        pattern_fill(c->ep.mem + SOURCE, 64, c->seed + i);
        op.flags = i & 1 ? IBV_SEND_SOLICITED : 0;
        if (!ask_ok(c, "recv %u 64 1", RECV_BASE) || !run_op(c, &op, &wc) ||
            !ask(c, "poll 1 20000") ||
            !ask_ok(c, "check %u 64 %u 0", RECV_BASE, c->seed + i)) {
            return;
        }
    }
    pass(c, NULL);
}

/* Both ends send at the same time. */
static void both_ways_case(Client *c)
{
    const uint32_t len = 300000;
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = len };
    struct ibv_wc wc[2];
    int n = 2;

    if (!begin(c, "both-ways") || !need_connection(c, 32, false)) {
        return;
    }
    pattern_fill(c->ep.mem + SOURCE, len, c->seed);
    if (!ask_ok(c, "fill %u %u %u", TARGET, len, c->seed + 1000) ||
        !ask_ok(c, "recv %u %u 1", RECV_BASE, len)) {
        return;
    }
    if (!ep_post_recv(&c->ep, RECV_BASE, len, 1) || post(c, &op)) {
        fail(c, "posting: %s", c->ep.problem);
        return;
    }
    if (!ask_ok(c, "send %u %u", TARGET, len)) {
        return;
    }
    if (!ep_poll(&c->ep, wc, &n, 20000) || wc[0].status || wc[1].status) {
        fail(c, "%s", n < 2 ? c->ep.problem : "a completion with an error");
        return;
    }
    if (pattern_check(c->ep.mem + RECV_BASE, len, c->seed + 1000) >= 0) {
        fail(c, "wrong data at the client");
    } else if (ask(c, "poll 2 20000") &&
               ask_ok(c, "check %u %u %u 0", RECV_BASE, len, c->seed)) {
        pass(c, NULL);
    }
}

/* Many reads and writes in flight, completions in the order of posting. */
static void mixed_case(Client *c)
{
    const int total = 60;
    const uint32_t len = 2000;
    struct ibv_wc wc[64];
    int n = total;

    if (!begin(c, "mixed-order") || !need_connection(c, 128, false)) {
        return;
    }
    if (!ask_ok(c, "fill %u %u %u", TARGET, total * len, c->seed)) {
        return;
    }
    for (int i = 0; i < total; i++) {
        Op op = {
            .opcode = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
            .local = SOURCE + i * len, .remote = TARGET + i * len, .len = len,
        };

        pattern_fill(c->ep.mem + op.local, len, c->seed + i);
        if (post(c, &op)) {
            fail(c, "ibv_post_send of request %d", i);
            return;
        }
    }
    if (!ep_poll(&c->ep, wc, &n, 30000)) {
        fail(c, "%s", c->ep.problem);
        return;
    }
    for (int i = 0; i < total; i++) {
        enum ibv_wc_opcode want = i % 2 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;

        if (wc[i].status || wc[i].opcode != want) {
            fail(c, "completion %d: %s, opcode %d", i,
                 status_name(wc[i].status), wc[i].opcode);
            return;
        }
    }
    for (int i = 0; i < total; i += 2) {
        if (!ask_ok(c, "check %u %u %u 10000", TARGET + i * len, len,
                    c->seed + i)) {
            return;
        }
    }
    pass(c, NULL);
}

void cases_queue(Client *c)
{
    static const int each[] = { 1, 2, 3, 8, 17, 64 };

    wrap_case(c, "wrap/depth-4", 4, 40, false);
    wrap_case(c, "wrap/depth-32", 32, 320, false);
    wrap_case(c, "events/depth-32", 32, 320, true);
    wrap_case(c, "events/depth-2", 2, 20, true);
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        unsignalled_case(c, each[i]);
    }
    fence_case(c);
    solicited_case(c);
    both_ways_case(c);
    mixed_case(c);
}
