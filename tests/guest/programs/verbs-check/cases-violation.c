/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Access violations of every kind: the right completion status at the
 * requester, what the responder sees, and every request completed once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"

#define FULL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define AREA 8192u

typedef enum Twist {
    BAD_RKEY, OLD_KEY, BEFORE, BEFORE_8, BEYOND, STRADDLE, NO_RIGHT,
    OTHER_PD, MISALIGNED, BAD_LKEY, LOCAL_NO_WRITE, LOCAL_BEYOND,
    LOCAL_OTHER_PD,
} Twist;

typedef struct Violation {
    const char *name;
    enum ibv_wr_opcode opcode;
    Twist twist;
    int access;             /* of the target (or of the local MR) */
    int status, vendor;     /* wanted; vendor -1 = any */
} Violation;

#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ
#define IMM IBV_WR_RDMA_WRITE_WITH_IMM
#define CAS IBV_WR_ATOMIC_CMP_AND_SWP
#define FAA IBV_WR_ATOMIC_FETCH_AND_ADD
#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define REMOTE IBV_WC_REM_ACCESS_ERR
#define LOCAL IBV_WC_LOC_ACCESS_ERR

static const Violation violations[] = {
    { "write-bad-rkey", WRITE, BAD_RKEY, FULL, REMOTE, 2 },
    { "read-bad-rkey", READ, BAD_RKEY, FULL, REMOTE, 2 },
    { "atomic-bad-rkey", FAA, BAD_RKEY, FULL, REMOTE, 2 },
    { "write-imm-bad-rkey", IMM, BAD_RKEY, FULL, REMOTE, 2 },
    { "write-old-key", WRITE, OLD_KEY, FULL, REMOTE, 2 },
    { "read-old-key", READ, OLD_KEY, FULL, REMOTE, 2 },
    { "write-before", WRITE, BEFORE, FULL, REMOTE, 3 },
    { "write-beyond", WRITE, BEYOND, FULL, REMOTE, 3 },
    { "write-straddle", WRITE, STRADDLE, FULL, REMOTE, 3 },
    { "write-imm-straddle", IMM, STRADDLE, FULL, REMOTE, 3 },
    { "read-before", READ, BEFORE, FULL, REMOTE, 3 },
    { "read-beyond", READ, BEYOND, FULL, REMOTE, 3 },
    { "read-straddle", READ, STRADDLE, FULL, REMOTE, 3 },
    { "atomic-before", FAA, BEFORE_8, FULL, REMOTE, 3 },
    { "atomic-beyond", FAA, BEYOND, FULL, REMOTE, 3 },
    { "write-no-right", WRITE, NO_RIGHT, LW | RR, REMOTE, 4 },
    { "read-no-right", READ, NO_RIGHT, LW | RW, REMOTE, 4 },
    { "write-imm-no-right", IMM, NO_RIGHT, LW | RR, REMOTE, 4 },
    { "cas-no-right", CAS, NO_RIGHT, LW | RR | RW, REMOTE, 4 },
    { "atomic-no-right", FAA, NO_RIGHT, LW | RR | RW, REMOTE, 4 },
    { "write-other-pd", WRITE, OTHER_PD, FULL, REMOTE, 5 },
    { "read-other-pd", READ, OTHER_PD, FULL, REMOTE, 5 },
    { "atomic-other-pd", FAA, OTHER_PD, FULL, REMOTE, 5 },
    { "cas-misaligned", CAS, MISALIGNED, FULL, -1, -1 },
    { "atomic-misaligned", FAA, MISALIGNED, FULL, -1, -1 },
    { "local-bad-key", WRITE, BAD_LKEY, FULL, LOCAL, 0x30 },
    { "local-beyond", WRITE, LOCAL_BEYOND, FULL, LOCAL, 0x31 },
    { "local-read-into-readonly", READ, LOCAL_NO_WRITE, 0, LOCAL, 0x32 },
    { "local-other-pd", WRITE, LOCAL_OTHER_PD, FULL, LOCAL, 0x33 },
};

/* Waits for the first completion of n posted ones and drains the rest. */
static bool first_wc(Client *c, struct ibv_wc *wc, int n)
{
    struct ibv_wc rest[64];
    int one = 1;

    if (!ep_poll(&c->ep, wc, &one, 30000)) {
        fail(c, "%s", c->ep.problem);
        return false;
    }
    for (int i = 1; i < n; i++) {
        one = 1;
        if (!ep_poll(&c->ep, rest, &one, 10000)) {
            fail(c, "request %d of %d has no completion", i, n);
            return false;
        }
        if (rest[0].status != IBV_WC_WR_FLUSH_ERR) {
            fail(c, "request %d: %s instead of flushed", i,
                 status_name(rest[0].status));
            return false;
        }
    }
    one = 1;
    if (ep_poll(&c->ep, rest, &one, 200)) {
        fail(c, "more completions than requests");
        return false;
    }
    return true;
}

static bool is_atomic(const Violation *v)
{
    return v->opcode == FAA || v->opcode == CAS;
}

static bool violation_setup(Client *c, const Violation *v, Op *op)
{
    int access = v->access;

    if (!c->ep.has_remote_atomic) {
        access &= ~IBV_ACCESS_REMOTE_ATOMIC;
    }
    *op = (Op) {
        .opcode = v->opcode, .local = SOURCE, .remote = TARGET + AREA,
        .len = is_atomic(v) ? 8 : 3000, .compare_add = 1,
    };
    switch (v->twist) {
    case BAD_LKEY:
        op->lkey = c->ep.mr->lkey ^ 0x5500;
        return true;
    case LOCAL_NO_WRITE:
    case LOCAL_BEYOND:
    case LOCAL_OTHER_PD:
        if (!ep_register(&c->ep, SOURCE, 2048, access,
                         v->twist == LOCAL_OTHER_PD)) {
            fail(c, "%s", c->ep.problem);
            return false;
        }
        op->lkey = c->ep.aux_mr->lkey;
        op->len = v->twist == LOCAL_BEYOND ? 2049 : 2000;
        return true;
    default:
        break;
    }
    if (!ask(c, "mr %u %u %d %d", TARGET + AREA, AREA, access,
             v->twist == OTHER_PD)) {
        return false;
    }
    if (sscanf(c->answer, "mr %*u %" SCNu32, &op->rkey) != 1) {
        fail(c, "server: %s", c->answer);
        return false;
    }
    switch (v->twist) {
    case BAD_RKEY:
        op->rkey ^= 0x5500;
        break;
    case OLD_KEY:
        /* The region is right, but registered under another key since. */
        op->rkey ^= 0x55;
        break;
    case BEFORE:
        op->remote -= 1;
        break;
    case BEFORE_8:
        op->remote -= 8;
        break;
    case BEYOND:
        op->remote += AREA;
        break;
    case STRADDLE:
        op->remote += AREA - op->len + 1;
        break;
    case MISALIGNED:
        op->remote += 4;
        break;
    default:
        break;
    }
    return true;
}

static void violation_case(Client *c, const Violation *v)
{
    char note[400], events[256] = "none";
    bool is_local = v->twist >= BAD_LKEY;
    const int follow = 3;
    struct ibv_wc wc;
    Op op, later;

    if (!begin(c, "violation/%s", v->name)) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 16, false)) {
        return;
    }
    if (is_atomic(v) && !c->ep.has_remote_atomic) {
        skip(c, "the device has no atomics");
        return;
    }
    /* A receive at the responder, to see it flushed. */
    if (!violation_setup(c, v, &op) ||
        !ask_ok(c, "fill %u %u 99", TARGET, 3 * AREA) ||
        !ask_ok(c, "recv %u 64 1", RECV_BASE)) {
        return;
    }
    later = (Op) {
        .opcode = WRITE, .local = SOURCE, .remote = TARGET, .len = 8,
    };
    if (post(c, &op)) {
        fail(c, "ibv_post_send");
        return;
    }
    for (int i = 0; i < follow; i++) {
        post(c, &later);
    }
    if (!first_wc(c, &wc, 1 + follow)) {
        return;
    }
    /* Nothing tells a responder of what is wrong at the requester. */
    if (!ask(c, "events %d", is_local ? 300 : 5000)) {
        return;
    }
    sscanf(c->answer, "events %255s", events);
    if (wc.status == IBV_WC_SUCCESS ||
        (v->status >= 0 && wc.status != (enum ibv_wc_status)v->status) ||
        (v->vendor >= 0 && wc.vendor_err != (uint32_t)v->vendor)) {
        fail(c, "%s, vendor code %#x; wanted %s, %#x (responder: %s)",
             status_name(wc.status), wc.vendor_err, status_name(v->status),
             v->vendor, events);
        return;
    }
    /* The driver has one name for all errors of a QP. */
    if (!is_local && v->twist != MISALIGNED && !strstr(events, "qp-fatal")) {
        fail(c, "the responder got no QP error: %s", events);
        return;
    }
    /* Nothing was written, and the responder's receive was flushed. */
    if (!ask_ok(c, "check %u %u 99 0", TARGET, 3 * AREA) ||
        !ask(c, "poll 1 10000")) {
        return;
    }
    if (strncmp(c->answer, "wc 1 5:", 7)) {
        fail(c, "the responder's receive was not flushed: %s", c->answer);
        return;
    }
    snprintf(note, sizeof(note), "(requester: %s %#x, responder: %s)",
             status_name(wc.status), wc.vendor_err, events);
    pass(c, note);
    close_connection(c);
}

static void too_long_case(Client *c)
{
    Op op = { .opcode = IBV_WR_SEND, .local = SOURCE, .len = 5000 };
    int n, status, sender;
    struct ibv_wc wc;
    char note[120];

    if (!begin(c, "violation/send-too-long")) {
        return;
    }
    close_connection(c);
    if (!need_connection(c, 16, false) ||
        !ask_ok(c, "fill %u 8000 99", RECV_BASE) ||
        !ask_ok(c, "recv %u 4999 1", RECV_BASE)) {
        return;
    }
    if (post(c, &op)) {
        fail(c, "ibv_post_send");
        return;
    }
    if (!first_wc(c, &wc, 1) || !ask(c, "poll 1 10000")) {
        return;
    }
    sender = wc.status;
    if (sscanf(c->answer, "wc %d %d:", &n, &status) != 2 || n != 1) {
        fail(c, "no completion at the receiver: %s", c->answer);
    } else if (sender == IBV_WC_SUCCESS || status == IBV_WC_SUCCESS) {
        fail(c, "sender %s, receiver %s", status_name(sender),
             status_name(status));
    } else if (sender != REMOTE || status != REMOTE) {
        fail(c, "sender %s, receiver %s, wanted remote-access on both",
             status_name(sender), status_name(status));
    } else {
        snprintf(note, sizeof(note), "(sender: %s, receiver: %s)",
                 status_name(sender), status_name(status));
        pass(c, note);
    }
    close_connection(c);
}

void cases_violation(Client *c)
{
    for (size_t i = 0; i < sizeof(violations) / sizeof(violations[0]); i++) {
        violation_case(c, &violations[i]);
    }
    too_long_case(c);
}
