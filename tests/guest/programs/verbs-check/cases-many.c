/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Many of everything, up to the product's limits: QPs on one CQ, requests in
 * a queue, entries in a CQ, events at once.  They run only if asked for:
 *
 *   many/qps-on-a-cq      1026 connected QPs, each sends and receives
 *   many/deep-queues      8192 sends and 32768 receives posted at once
 *   many/cq-entries       a CQ of all entries, going round once
 *   many/event-bursts     64 CQs that complete together, for 100 rounds
 *   many/solicited-only   a CQ armed for solicited messages only
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"

#define SLOT 8u
#define N_PAIRS 513             /* 1026 QPs */
#define N_SENDS 8192
#define N_RECVS 32768
#define N_CQS 64
#define ROUNDS 100              /* 6400 events: the event queue has 4096 */

static void put(Client *c, size_t offset, uint64_t value)
{
    memcpy(c->ep.mem + offset, &value, sizeof(value));
}

static uint64_t get(Client *c, size_t offset)
{
    uint64_t value;

    memcpy(&value, c->ep.mem + offset, sizeof(value));
    return value;
}

/* The client's own connection, and a CQ for the pairs. */
static struct ibv_cq *make_cq(Client *c, int entries,
                              struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq = ibv_create_cq(c->ep.id->verbs, entries, NULL, channel,
                                      0);

    if (!cq) {
        fail(c, "ibv_create_cq with %d entries: %s", entries,
             strerror(errno));
    }
    return cq;
}

/* Every QP has sent once and received once, to and from its own peer. */
static bool check_each(Client *c, const Pairs *p, const struct ibv_wc *wc)
{
    static uint8_t seen[2 * N_PAIRS];

    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < 4 * N_PAIRS; i++) {
        unsigned at = wc[i].wr_id;
        uint8_t what = wc[i].opcode == IBV_WC_RECV ? 2 : 1;

        if (at >= 2 * N_PAIRS || wc[i].qp_num != pairs_qp(p, at)->qp_num) {
            fail(c, "completion %d is of QP %u", i, wc[i].qp_num);
            return false;
        }
        if (seen[at] & what) {
            fail(c, "QP %u completed twice", wc[i].qp_num);
            return false;
        }
        seen[at] |= what;
    }
    for (unsigned i = 0; i < 2 * N_PAIRS; i++) {
        if (get(c, RECV_BASE + i * SLOT) != c->seed + (i ^ 1)) {
            fail(c, "QP %u received wrong data", pairs_qp(p, i)->qp_num);
            return false;
        }
    }
    return true;
}

static bool use_each(Client *c, const Pairs *p, struct ibv_cq *cq)
{
    static struct ibv_wc wc[4 * N_PAIRS];

    for (unsigned i = 0; i < 2 * N_PAIRS; i++) {
        put(c, SOURCE + i * SLOT, c->seed + i);
        if (pairs_recv(c, pairs_qp(p, i), i, RECV_BASE + i * SLOT, SLOT)) {
            fail(c, "ibv_post_recv of QP %u", i);
            return false;
        }
    }
    for (unsigned i = 0; i < 2 * N_PAIRS; i++) {
        if (pairs_send(c, pairs_qp(p, i), i, SOURCE + i * SLOT, SLOT,
                       IBV_SEND_SIGNALED)) {
            fail(c, "ibv_post_send of QP %u", i);
            return false;
        }
    }
    return pairs_poll(c, cq, wc, 4 * N_PAIRS) && check_each(c, p, wc);
}

static void qps_case(Client *c)
{
    struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
    struct ibv_cq *cqs[2 * N_PAIRS], *cq;
    Pairs p;

    if (!begin(c, "many/qps-on-a-cq") || !need_connection(c, 32, false)) {
        return;
    }
    cq = make_cq(c, 4 * N_PAIRS, NULL);
    if (!cq) {
        return;
    }
    for (int i = 0; i < 2 * N_PAIRS; i++) {
        cqs[i] = cq;
    }
    if (pairs_open(&p, c, N_PAIRS, &cap, cqs)) {
        if (use_each(c, &p, cq)) {
            pass(c, NULL);
        }
        pairs_close(&p);
    }
    ibv_destroy_cq(cq);
}

/* Sends a whole send queue; the receives complete in order. */
static bool send_queue(Client *c, const Pairs *p, struct ibv_cq *cq,
                       unsigned first)
{
    static struct ibv_wc wc[N_SENDS + 1];
    unsigned next = first;

    for (unsigned i = 0; i < N_SENDS; i++) {
        put(c, SOURCE + i * SLOT, c->seed + first + i);
        if (pairs_send(c, pairs_qp(p, 0), N_RECVS, SOURCE + i * SLOT, SLOT,
                       i == N_SENDS - 1 ? IBV_SEND_SIGNALED : 0)) {
            fail(c, "ibv_post_send of request %u", i);
            return false;
        }
    }
    if (!pairs_poll(c, cq, wc, N_SENDS + 1)) {
        return false;
    }
    for (unsigned i = 0; i < N_SENDS + 1; i++) {
        if (wc[i].opcode == IBV_WC_SEND) {
            continue;
        }
        if (wc[i].wr_id != next || wc[i].byte_len != SLOT ||
            get(c, RECV_BASE + next * SLOT) != c->seed + next) {
            fail(c, "receive %u: number %u, %u bytes, value %u", next,
                 (unsigned)wc[i].wr_id, wc[i].byte_len,
                 (unsigned)get(c, RECV_BASE + next * SLOT));
            return false;
        }
        next++;
    }
    return true;
}

static void deep_case(Client *c)
{
    struct ibv_qp_cap cap = { N_SENDS, N_RECVS, 1, 1, 0 };
    struct ibv_cq *cqs[2];
    bool ok = true;
    Pairs p;

    if (!begin(c, "many/deep-queues") || !need_connection(c, 32, false)) {
        return;
    }
    cqs[0] = cqs[1] = make_cq(c, N_SENDS + N_RECVS, NULL);
    if (!cqs[0]) {
        return;
    }
    if (pairs_open(&p, c, 1, &cap, cqs)) {
        for (unsigned i = 0; ok && i < N_RECVS; i++) {
            ok = !pairs_recv(c, pairs_qp(&p, 1), i, RECV_BASE + i * SLOT,
                             SLOT);
        }
        if (!ok) {
            fail(c, "fewer than %d receives can be posted", N_RECVS);
        } else if (!pairs_recv(c, pairs_qp(&p, 1), 0, RECV_BASE, SLOT)) {
            fail(c, "a receive more than the queue has");
            ok = false;
        }
        for (unsigned i = 0; ok && i < N_RECVS; i += N_SENDS) {
            ok = send_queue(c, &p, cqs[0], i);
        }
        if (ok) {
            pass(c, NULL);
        }
        pairs_close(&p);
    }
    ibv_destroy_cq(cqs[0]);
}

/* More completions than the CQ has entries, all on this CQ. */
static bool go_round(Client *c, const Pairs *p, struct ibv_cq *cq, int total)
{
    static struct ibv_wc wc[N_SENDS];
    int batch = 1024;

    for (int done = 0; done < total; done += batch) {
        for (int i = 0; i < batch; i++) {
            struct ibv_send_wr wr = {
                .wr_id = done + i, .opcode = IBV_WR_RDMA_WRITE,
                .send_flags = IBV_SEND_SIGNALED,
                .wr.rdma = { (uintptr_t)c->ep.mem + TARGET, c->ep.mr->rkey },
            }, *bad;

            if (ibv_post_send(pairs_qp(p, i & 1), &wr, &bad)) {
                fail(c, "ibv_post_send of request %d", done + i);
                return false;
            }
        }
        if (!pairs_poll(c, cq, wc, batch)) {
            return false;
        }
        for (int i = 0, next[2] = { done, done + 1 }; i < batch; i++) {
            int which = wc[i].qp_num != pairs_qp(p, 0)->qp_num;

            if ((int)wc[i].wr_id != next[which]) {
                fail(c, "completion %d is number %d", done + i,
                     (int)wc[i].wr_id);
                return false;
            }
            next[which] += 2;
        }
    }
    return true;
}

static void cq_entries_case(Client *c)
{
    struct ibv_qp_cap cap = { N_SENDS, 1, 1, 1, 0 };
    struct ibv_device_attr attr;
    struct ibv_cq *cqs[2];
    char note[64];
    Pairs p;

    if (!begin(c, "many/cq-entries") || !need_connection(c, 32, false)) {
        return;
    }
    if (ibv_query_device(c->ep.id->verbs, &attr)) {
        fail(c, "ibv_query_device");
        return;
    }
    cqs[0] = cqs[1] = make_cq(c, attr.max_cqe, NULL);
    if (!cqs[0]) {
        return;
    }
    if (cqs[0]->cqe != attr.max_cqe) {
        fail(c, "%d entries instead of %d", cqs[0]->cqe, attr.max_cqe);
    } else if (pairs_open(&p, c, 1, &cap, cqs)) {
        if (go_round(c, &p, cqs[0], attr.max_cqe + 4096)) {
            snprintf(note, sizeof(note), "(%d entries)", attr.max_cqe);
            pass(c, note);
        }
        pairs_close(&p);
    }
    ibv_destroy_cq(cqs[0]);
}

/* An event from each CQ, and not one more. */
static bool take_events(Client *c, struct ibv_comp_channel *channel,
                        struct ibv_cq **cqs)
{
    struct pollfd fd = { channel->fd, POLLIN, 0 };
    bool seen[N_CQS] = { false };

    for (int n = 0; n < N_CQS; n++) {
        struct ibv_cq *cq;
        void *context;
        int i;

        if (poll(&fd, 1, 20000) <= 0 ||
            ibv_get_cq_event(channel, &cq, &context)) {
            fail(c, "%d of %d events", n, N_CQS);
            return false;
        }
        ibv_ack_cq_events(cq, 1);
        for (i = 0; i < N_CQS && cqs[i] != cq; i++) {
            continue;
        }
        if (i == N_CQS || seen[i]) {
            fail(c, "a second event of CQ %d", i);
            return false;
        }
        seen[i] = true;
    }
    return true;
}

static bool burst(Client *c, const Pairs *p, struct ibv_comp_channel *channel,
                  struct ibv_cq **cqs)
{
    struct ibv_wc wc[2];

    for (int i = 0; i < N_CQS; i++) {
        if (ibv_req_notify_cq(cqs[i], 0) ||
            pairs_recv(c, pairs_qp(p, i), i, RECV_BASE + i * SLOT, SLOT)) {
            fail(c, "arming CQ %d", i);
            return false;
        }
    }
    for (int i = 0; i < N_CQS; i++) {
        if (pairs_send(c, pairs_qp(p, i), i, SOURCE + i * SLOT, SLOT,
                       IBV_SEND_SIGNALED)) {
            fail(c, "ibv_post_send of QP %d", i);
            return false;
        }
    }
    if (!take_events(c, channel, cqs)) {
        return false;
    }
    for (int i = 0; i < N_CQS; i++) {
        if (!pairs_poll(c, cqs[i], wc, 2)) {
            return false;
        }
    }
    return true;
}

static void bursts_case(Client *c)
{
    struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
    struct ibv_cq *cqs[N_CQS] = { NULL };
    struct ibv_comp_channel *channel;
    bool ok;
    Pairs p;

    if (!begin(c, "many/event-bursts") || !need_connection(c, 32, false)) {
        return;
    }
    channel = ibv_create_comp_channel(c->ep.id->verbs);
    ok = channel != NULL;
    for (int i = 0; ok && i < N_CQS; i++) {
        cqs[i] = make_cq(c, 64, channel);
        ok = cqs[i] != NULL;
    }
    if (ok && pairs_open(&p, c, N_CQS / 2, &cap, cqs)) {
        for (int i = 0; ok && i < ROUNDS; i++) {
            ok = burst(c, &p, channel, cqs);
        }
        if (ok) {
            pass(c, NULL);
        }
        pairs_close(&p);
    }
    for (int i = 0; i < N_CQS && cqs[i]; i++) {
        ibv_destroy_cq(cqs[i]);
    }
    if (channel) {
        ibv_destroy_comp_channel(channel);
    }
}

/*
 * Sends a message and takes both its completions; no event may come, or one
 * must.
 */
static bool send_solicited(Client *c, const Pairs *p, struct ibv_cq **cqs,
                           bool is_solicited)
{
    struct pollfd fd = { cqs[1]->channel->fd, POLLIN, 0 };
    struct ibv_wc wc;
    int n;

    if (pairs_recv(c, pairs_qp(p, 1), 0, RECV_BASE, SLOT) ||
        pairs_send(c, pairs_qp(p, 0), 0, SOURCE, SLOT, IBV_SEND_SIGNALED |
                   (is_solicited ? IBV_SEND_SOLICITED : 0))) {
        fail(c, "posting");
        return false;
    }
    if (!pairs_poll(c, cqs[0], &wc, 1)) {
        return false;
    }
    n = poll(&fd, 1, is_solicited ? 20000 : 200);
    if (n != is_solicited) {
        fail(c, is_solicited ? "no event for a solicited message" :
             "an event for a message that was not solicited");
        return false;
    }
    return pairs_poll(c, cqs[1], &wc, 1);
}

static bool solicited(Client *c, const Pairs *p, struct ibv_cq **cqs)
{
    struct ibv_cq *cq;
    void *context;

    for (int i = 0; i < 3; i++) {
        if (ibv_req_notify_cq(cqs[1], 1)) {
            fail(c, "ibv_req_notify_cq");
            return false;
        }
        if (!send_solicited(c, p, cqs, false) ||
            !send_solicited(c, p, cqs, true) ||
            ibv_get_cq_event(cqs[1]->channel, &cq, &context)) {
            return false;
        }
        ibv_ack_cq_events(cq, 1);
    }
    return true;
}

static void solicited_case(Client *c)
{
    struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
    struct ibv_comp_channel *channel;
    struct ibv_cq *cqs[2];
    Pairs p;

    if (!begin(c, "many/solicited-only") || !need_connection(c, 32, false)) {
        return;
    }
    channel = ibv_create_comp_channel(c->ep.id->verbs);
    cqs[0] = make_cq(c, 64, NULL);
    cqs[1] = cqs[0] ? make_cq(c, 64, channel) : NULL;
    if (cqs[1] && pairs_open(&p, c, 1, &cap, cqs)) {
        if (solicited(c, &p, cqs)) {
            pass(c, NULL);
        }
        pairs_close(&p);
    }
    for (int i = 0; i < 2 && cqs[i]; i++) {
        ibv_destroy_cq(cqs[i]);
    }
    if (channel) {
        ibv_destroy_comp_channel(channel);
    }
}

void cases_many(Client *c)
{
    if (is_asked_for(c, "many/")) {
        qps_case(c);
        deep_case(c);
        bursts_case(c);
        solicited_case(c);
        cq_entries_case(c);
    }
}
