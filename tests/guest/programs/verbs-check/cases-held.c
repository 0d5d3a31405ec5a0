/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Cases for a link that somebody spoils at a certain packet.  Before its one
 * request and after the request's completion a case stops, says so and waits
 * for a line on standard input; in between nothing but this request and its
 * answers is on the link.  They run only if asked for by name:
 *
 *   held/OP/LEN        OP is write, send, read or faa (LEN 8)
 *   held-close/LEN     a send; the server closes as soon as it has it
 *   held-dead/OP/LEN   nothing comes through: the retry error is what we want
 *
 * LEN goes up to 1 MiB.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "control.h"

#define DEPTH 32
#define MAX_LEN (1u << 20)
/* As long as a connection may take to give up, and more. */
#define HELD_MS 120000

static const struct {
    const char *name;
    enum ibv_wr_opcode opcode;
    uint32_t max_len;
} ops[] = {
    { "write", IBV_WR_RDMA_WRITE, MAX_LEN },
    { "send", IBV_WR_SEND, MAX_LEN },
    { "read", IBV_WR_RDMA_READ, MAX_LEN },
    { "faa", IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
};

static bool prepare(Client *c, const Op *op)
{
    if (op->opcode == IBV_WR_RDMA_READ) {
        memset(c->ep.mem + SOURCE, 0, op->len);
        return ask_ok(c, "fill %u %u %u", TARGET, op->len, c->seed);
    }
    if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        return ask_ok(c, "put %u 41", TARGET);
    }
    pattern_fill(c->ep.mem + SOURCE, op->len, c->seed);
    return ask_ok(c, "fill %u %u 0", TARGET, op->len) &&
           (op->opcode != IBV_WR_SEND ||
            ask_ok(c, "recv %u %u 1", TARGET, op->len));
}

/* Did it happen, and only once? */
static bool verify(Client *c, const Op *op)
{
    if (op->opcode == IBV_WR_RDMA_READ) {
        long bad = pattern_check(c->ep.mem + SOURCE, op->len, c->seed);

        if (bad >= 0) {
            fail(c, "wrong byte at %ld of %u", bad, op->len);
        }
        return bad < 0;
    }
    if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        if (!ask(c, "get %u", TARGET)) {
            return false;
        }
        if (strcmp(c->answer, "value 42")) {
            fail(c, "the server has %s instead of 42", c->answer);
            return false;
        }
        return true;
    }
    if (op->opcode == IBV_WR_SEND) {
        if (!ask(c, "poll 2 500")) {
            return false;
        }
        if (strncmp(c->answer, "wc 1 0:", 7)) {
            fail(c, "completions at the server: %.60s", c->answer);
            return false;
        }
    }
    return ask_ok(c, "check %u %u %u 0", TARGET, op->len, c->seed);
}

/* The one request, between the two stops */
static bool run_held(Client *c, const Op *op, int want_status)
{
    struct ibv_wc wc;
    int err, n = 1;
    int64_t began;

    hold("held", 0);
    began = now_ms();
    err = post(c, op);
    if (err) {
        fail(c, "ibv_post_send: %s", strerror(err));
        return false;
    }
    if (!ep_poll(&c->ep, &wc, &n, HELD_MS)) {
        hold("done", now_ms() - began);
        fail(c, "%s", c->ep.problem);
        return false;
    }
    hold("done", now_ms() - began);
    if ((int)wc.status != want_status || wc.wr_id != c->seed) {
        fail(c, "completion: %s instead of %s", status_name(wc.status),
             status_name(want_status));
        return false;
    }
    return true;
}

static void held_case(Client *c, unsigned i, uint32_t len, bool is_dead)
{
    Op op = {
        .opcode = ops[i].opcode, .local = SOURCE, .remote = TARGET,
        .len = len, .compare_add = 1,
    };

    if (!begin(c, "%s/%s/%u", is_dead ? "held-dead" : "held", ops[i].name,
               len) ||
        !need_connection(c, DEPTH, false) || !prepare(c, &op) ||
        !run_held(c, &op, is_dead ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS)) {
        return;
    }
    if (is_dead) {
        pass(c, NULL);
        close_connection(c);
    } else if (verify(c, &op)) {
        pass(c, NULL);
    }
}

/* The server's QP is gone before we hear that it has our message. */
static void held_close_case(Client *c, uint32_t len)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = len };

    if (!begin(c, "held-close/%u", len) ||
        !need_connection(c, DEPTH, false) || !prepare(c, &op)) {
        return;
    }
    /* It does this on its own, without another word from us. */
    if (!control_say(c->fd, "poll 1 %d", HELD_MS) ||
        !control_say(c->fd, "close")) {
        fail(c, "the server is gone");
        return;
    }
    if (!run_held(c, &op, IBV_WC_SUCCESS)) {
        return;
    }
    if (!control_hear(c->fd, c->answer, sizeof(c->answer)) ||
        strncmp(c->answer, "wc 1 0:", 7)) {
        fail(c, "completions at the server: %.60s", c->answer);
        return;
    }
    control_hear(c->fd, c->answer, sizeof(c->answer));
    pass(c, NULL);
    close_connection(c);
}

void cases_held(Client *c)
{
    for (int i = 0; i < c->n_prefixes; i++) {
        const char *text = c->prefixes[i];
        char name[8];
        uint32_t len;

        if (sscanf(text, "held-close/%" SCNu32, &len) == 1 &&
            len <= MAX_LEN) {
            held_close_case(c, len);
            continue;
        }
        if (sscanf(text, "held/%7[a-z]/%" SCNu32, name, &len) != 2 &&
            sscanf(text, "held-dead/%7[a-z]/%" SCNu32, name, &len) != 2) {
            continue;
        }
        for (unsigned j = 0; j < sizeof(ops) / sizeof(ops[0]); j++) {
            if (!strcmp(name, ops[j].name) && len <= ops[j].max_len) {
                held_case(c, j, len, text[4] == '-');
            }
        }
    }
}
