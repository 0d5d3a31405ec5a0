/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Cases in which connections come up.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define N_MANY 256
#define N_THREADS 8
#define N_PER_THREAD 8
#define N_ROUNDS 40

static void check_state(struct pair *pair, int want)
{
    int state = pair_state(pair);

    check(state == want, "state %d instead of %d", state, want);
}

/* One pair, looked at in every state. */
static void case_basic(struct end *end)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct pair pair;
    int err;

    end_open(end, 1);
    pair_create(end, &pair, 0);
    check_state(&pair, IBV_QPS_INIT);
    err = pair_rts(&pair);
    check(err == EINVAL, "RTS out of INIT: %s", strerror(err));
    pair_swap(end, &pair);
    err = pair_rtr(&pair, &pair.theirs);
    check(!err, "%s", strerror(err));
    check_state(&pair, IBV_QPS_RTR);
    err = pair_rtr(&pair, &pair.theirs);
    check(err == EINVAL, "RTR out of RTR: %s", strerror(err));
    err = pair_rts(&pair);
    check(!err, "%s", strerror(err));
    check_state(&pair, IBV_QPS_RTS);
    err = pair_rts(&pair);
    check(!err, "RTS out of RTS: %s", strerror(err));
    memset(&attr, 0, sizeof(attr));
    err = verbs.query_qp(pair.qp, &attr, 0x1fffff, &init);
    check(!err, "%s", strerror(err));
    check(attr.dest_qp_num == pair.theirs.qpn, "%u", attr.dest_qp_num);
    check(attr.rq_psn == pair.theirs.psn, "%u", attr.rq_psn);
    check(attr.sq_psn == pair.mine.psn, "%u", attr.sq_psn);
    check(attr.path_mtu == IBV_MTU_1024, "%d", attr.path_mtu);
    check(attr.timeout == 14 && attr.retry_cnt == 7 && attr.rnr_retry == 7,
          "%d %d %d", attr.timeout, attr.retry_cnt, attr.rnr_retry);
    check(attr.min_rnr_timer == 12 && attr.max_rd_atomic == 4 &&
          attr.max_dest_rd_atomic == 4, "%d %d %d", attr.min_rnr_timer,
          attr.max_rd_atomic, attr.max_dest_rd_atomic);
    check(attr.port_num == 1 && attr.qp_access_flags ==
          (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ), "%d %#x",
          attr.port_num, attr.qp_access_flags);
    check(attr.ah_attr.is_global && attr.ah_attr.grh.sgid_index == GID_INDEX &&
          !memcmp(&attr.ah_attr.grh.dgid, &pair.theirs.gid, 16),
          "address vector");
    pairs_talk(end, &pair, 1);
    pair_destroy(&pair);
    end_close(end);
}

/*
 * One end goes to RTS, and posts, before the other one has heard of its QP:
 * the order of ibv_rc_pingpong's server.
 */
static void case_order(struct end *end, bool client_first)
{
    bool first = end->is_client == client_first;
    struct pair pair;
    struct ibv_wc wc;
    int err;

    end_open(end, 1);
    pair_create(end, &pair, 0);
    pair_swap(end, &pair);
    if (first) {
        pair_connect(&pair);
        check_state(&pair, IBV_QPS_RTS);
        pair_post_recv(end, &pair, 1);
        pair_post_send(end, &pair, 2);
        check(!end_poll(end, &wc, 0.3, true), "completed without a peer");
    }
    meet(end);
    if (!first) {
        pair_post_recv(end, &pair, 1);
        err = pair_rtr(&pair, &pair.theirs);
        check(!err, "%s", strerror(err));
        err = pair_rts(&pair);
        check(!err, "%s", strerror(err));
        pair_post_send(end, &pair, 2);
    }
    check(end_poll(end, &wc, 10, true), "no completion");
    check(end_poll(end, &wc, 10, true), "no second completion");
    meet(end);
    pairs_talk(end, &pair, 1);
    pair_destroy(&pair);
    end_close(end);
}

static void case_client_first(struct end *end)
{
    case_order(end, true);
}

static void case_server_first(struct end *end)
{
    case_order(end, false);
}

/* Many QPs at once; the ends go through them from both sides. */
static void case_many(struct end *end)
{
    struct pair *pairs = calloc(N_MANY, sizeof(*pairs));
    int i, err;

    check(pairs, "memory");
    end_open(end, N_MANY);
    for (i = 0; i < N_MANY; i++) {
        pair_create(end, &pairs[i], i);
        pair_swap(end, &pairs[i]);
    }
    for (i = 0; i < N_MANY; i++) {
        struct pair *pair = &pairs[end->is_client ? i : N_MANY - 1 - i];

        err = pair_rtr(pair, &pair->theirs);
        check(!err, "RTR %d: %s", i, strerror(err));
    }
    for (i = 0; i < N_MANY; i++) {
        err = pair_rts(&pairs[i]);
        check(!err, "RTS %d: %s", i, strerror(err));
    }
    meet(end);
    pairs_talk(end, pairs, N_MANY);
    for (i = 0; i < N_MANY; i++) {
        pair_destroy(&pairs[i]);
    }
    end_close(end);
    free(pairs);
}

struct worker {
    struct end *end;
    struct pair *pairs;
};

static void *worker_main(void *opaque)
{
    struct worker *worker = opaque;
    int i;

    for (i = 0; i < N_PER_THREAD; i++) {
        pair_connect(&worker->pairs[i]);
    }
    return NULL;
}

static void case_threads(struct end *end)
{
    struct pair pairs[N_THREADS * N_PER_THREAD];
    struct worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    int i, n = N_THREADS * N_PER_THREAD;

    end_open(end, n);
    for (i = 0; i < n; i++) {
        pair_create(end, &pairs[i], i);
        pair_swap(end, &pairs[i]);
    }
    for (i = 0; i < N_THREADS; i++) {
        workers[i].end = end;
        workers[i].pairs = &pairs[i * N_PER_THREAD];
        check(!pthread_create(&threads[i], NULL, worker_main, &workers[i]),
              "thread");
    }
    for (i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    meet(end);
    pairs_talk(end, pairs, n);
    for (i = 0; i < n; i++) {
        pair_destroy(&pairs[i]);
    }
    end_close(end);
}

/* New QPs for old ones, some of them never connected. */
static void case_reconnect(struct end *end)
{
    struct pair pairs[4];
    uint32_t mine, theirs = 0;
    int i, round, n;

    end_open(end, 4);
    for (round = 0; round < N_ROUNDS; round++) {
        mine = end->is_client ? (uint32_t)random() : 0;
        swap(end, &mine, &theirs, sizeof(mine));
        mine |= theirs;
        n = 1 + mine % 4;
        for (i = 0; i < n; i++) {
            pair_create(end, &pairs[i], i);
            pair_swap(end, &pairs[i]);
        }
        if (mine & 0x100) {
            meet(end);
        } else {
            for (i = 0; i < n; i++) {
                pair_connect(&pairs[i]);
            }
            meet(end);
            pairs_talk(end, pairs, n);
        }
        if (mine & 0x200) {
            /* The other end sees the loss first, or destroys first. */
            usleep(end->is_client ? 2000 : 0);
        }
        for (i = 0; i < n; i++) {
            pair_destroy(&pairs[i]);
        }
    }
    end_close(end);
}

/* Two QPs of one process, connected by one thread. */
static void case_loopback(struct end *end)
{
    struct pair a, b;
    struct ibv_wc wc;
    int i;

    end_open(end, 2);
    pair_create(end, &a, 0);
    pair_create(end, &b, 1);
    a.theirs = b.mine;
    b.theirs = a.mine;
    pair_connect(&a);
    pair_connect(&b);
    pair_post_recv(end, &a, 1);
    pair_post_recv(end, &b, 2);
    pair_post_send(end, &a, 3);
    pair_post_send(end, &b, 4);
    for (i = 0; i < 4; i++) {
        check(end_poll(end, &wc, 10, true), "%d completions", i);
    }
    pair_destroy(&a);
    pair_destroy(&b);
    end_close(end);
    meet(end);
}

/* A child connects a device of its own; the parent's goes on. */
static void case_fork(struct end *end)
{
    struct end inner = { .is_client = end->is_client, .fd = end->fd };
    struct pair outer_pair, inner_pair;
    int status;
    pid_t pid;

    check(!verbs.fork_init(), "fork_init");
    end_open(end, 1);
    pair_create(end, &outer_pair, 0);
    pair_swap(end, &outer_pair);
    pair_connect(&outer_pair);
    meet(end);
    pid = fork();
    check(pid >= 0, "fork");
    if (!pid) {
        end_open(&inner, 1);
        pair_create(&inner, &inner_pair, 0);
        pair_swap(&inner, &inner_pair);
        pair_connect(&inner_pair);
        meet(&inner);
        pairs_talk(&inner, &inner_pair, 1);
        pair_destroy(&inner_pair);
        end_close(&inner);
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid && status == 0, "child: %#x",
          status);
    pairs_talk(end, &outer_pair, 1);
    pair_destroy(&outer_pair);
    end_close(end);
}

const struct test_case connect_cases[] = {
    { "basic", case_basic },
    { "client-first", case_client_first },
    { "server-first", case_server_first },
    { "loopback", case_loopback },
    { "threads", case_threads },
    { "fork", case_fork },
    { "reconnect", case_reconnect },
    { "many", case_many },
    { NULL, NULL },
};
