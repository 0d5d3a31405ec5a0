/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Cases in which connections do not come up, or end.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

static void expect(int err, int want, const char *what)
{
    check(err == want, "%s: %s instead of %s", what, strerror(err),
          strerror(want));
}

static void open_pair(struct end *end, struct pair *pair)
{
    end_open(end, 1);
    pair_create(end, pair, 0);
    pair_swap(end, pair);
}

static void close_pair(struct end *end, struct pair *pair)
{
    pair_destroy(pair);
    end_close(end);
}

/* What was posted comes back, unsuccessful, and the QP is in error. */
static void expect_flush(struct end *end, struct pair *pair, int n,
                         double seconds)
{
    double stop = now() + seconds;
    struct ibv_wc wc;

    while (n--) {
        check(end_poll(end, &wc, seconds, false), "nothing was flushed");
        check(wc.status != IBV_WC_SUCCESS, "success");
        check(wc.qp_num == pair->qp->qp_num, "QP %u", wc.qp_num);
    }
    /* The device is quicker than the driver to see a peer's end. */
    while (pair_state(pair) != IBV_QPS_ERR) {
        check(now() < stop, "state %d", pair_state(pair));
        usleep(1000);
    }
}

static void modify_state(struct pair *pair, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int err = verbs.modify_qp(pair->qp, &attr, IBV_QP_STATE);

    check(!err, "to %d: %s", state, strerror(err));
}

/* No such QP over there; afterwards the same QP connects to the right one. */
static void case_wrong_qpn(struct end *end)
{
    struct address wrong;
    struct pair pair;
    double began;

    open_pair(end, &pair);
    if (end->is_client) {
        wrong = pair.theirs;
        wrong.qpn += 50000;
        expect(pair_rtr(&pair, &wrong), 0, "RTR");
        began = now();
        expect(pair_rts(&pair), ECONNREFUSED, "RTS");
        check(now() - began < 15, "%.1f s", now() - began);
        modify_state(&pair, IBV_QPS_RESET);
        check(pair_state(&pair) == IBV_QPS_RESET, "%d", pair_state(&pair));
        expect(pair_init(&pair), 0, "INIT");
    }
    meet(end);
    pair_connect(&pair);
    meet(end);
    pairs_talk(end, &pair, 1);
    close_pair(end, &pair);
}

/* Bad arguments, each with an errno of its own. */
static void case_bad_path(struct end *end)
{
    struct address wrong;
    struct pair pair;
    double began;

    open_pair(end, &pair);
    wrong = pair.theirs;
    memset(wrong.gid.raw, 0, 16);
    memcpy(wrong.gid.raw, "\x52\x54\0\x09\0\x02", 6);
    expect(pair_rtr(&pair, &wrong), EINVAL, "a GID of the driver");
    wrong = pair.theirs;
    wrong.qpn = 0;
    expect(pair_rtr(&pair, &wrong), EINVAL, "QPN 0");
    expect(pair_rtr(&pair, &pair.mine), EOPNOTSUPP, "itself");
    check(pair_state(&pair) == IBV_QPS_INIT, "state %d", pair_state(&pair));
    if (end->is_client) {
        wrong = pair.theirs;
        wrong.gid.raw[15] = 99;
        expect(pair_rtr(&pair, &wrong), 0, "RTR");
        began = now();
        expect(pair_rts(&pair), EHOSTUNREACH, "nobody has that address");
        check(now() - began < 20, "%.1f s", now() - began);
    }
    close_pair(end, &pair);
    meet(end);
}

/*
 * The server's QP is told to connect to the client's first one; the client's
 * second one claims it.
 */
static void case_mismatch(struct end *end)
{
    struct pair first, second;

    end_open(end, 2);
    pair_create(end, &first, 0);
    pair_swap(end, &first);
    pair_create(end, &second, 1);
    if (!end->is_client) {
        pair_connect(&first);
    }
    meet(end);
    if (end->is_client) {
        expect(pair_rtr(&second, &first.theirs), 0, "RTR");
        expect(pair_rts(&second), EADDRNOTAVAIL, "RTS");
        pair_connect(&first);
    }
    meet(end);
    pairs_talk(end, &first, 1);
    pair_destroy(&second);
    close_pair(end, &first);
}

/* Two QPs claim one before it has decided. */
static void case_two_claims(struct end *end)
{
    struct pair first, second;

    end_open(end, 2);
    pair_create(end, &first, 0);
    pair_swap(end, &first);
    pair_create(end, &second, 1);
    if (end->is_client) {
        expect(pair_rtr(&second, &first.theirs), 0, "RTR");
        expect(pair_rts(&second), 0, "RTS");
        pair_post_recv(end, &second, 1);
        pair_post_send(end, &second, 2);
        pair_connect(&first);
    }
    meet(end);
    if (!end->is_client) {
        pair_connect(&first);
    }
    meet(end);
    if (end->is_client) {
        expect_flush(end, &second, 2, 15);
    }
    meet(end);
    pairs_talk(end, &first, 1);
    pair_destroy(&second);
    close_pair(end, &first);
}

/* The other program never goes to RTR. */
static void case_never(struct end *end)
{
    struct pair pair;

    open_pair(end, &pair);
    if (end->is_client) {
        pair_connect(&pair);
        pair_post_recv(end, &pair, 1);
        pair_post_send(end, &pair, 2);
        expect_flush(end, &pair, 2, 15);
    }
    meet(end);
    close_pair(end, &pair);
}

/* The other QP is destroyed while we wait for it. */
static void case_vanishes(struct end *end)
{
    struct pair pair;

    open_pair(end, &pair);
    if (end->is_client) {
        pair_connect(&pair);
        pair_post_recv(end, &pair, 1);
    }
    meet(end);
    if (!end->is_client) {
        pair_destroy(&pair);
    } else {
        expect_flush(end, &pair, 1, 15);
        pair_destroy(&pair);
    }
    meet(end);
    end_close(end);
}

/* And while we are connected to it. */
static void case_peer_destroys(struct end *end)
{
    struct pair pair;

    open_pair(end, &pair);
    pair_connect(&pair);
    meet(end);
    pairs_talk(end, &pair, 1);
    if (!end->is_client) {
        pair_destroy(&pair);
    } else {
        pair_post_recv(end, &pair, 1);
        expect_flush(end, &pair, 1, 15);
        pair_destroy(&pair);
    }
    meet(end);
    end_close(end);
}

static void case_peer_dies(struct end *end)
{
    struct pair pair;
    int status;
    pid_t pid = 0;

    if (!end->is_client) {
        pid = fork();
        check(pid >= 0, "fork");
    }
    if (!pid) {
        open_pair(end, &pair);
        pair_connect(&pair);
        meet(end);
        pairs_talk(end, &pair, 1);
        if (!end->is_client) {
            raise(SIGKILL);
        }
        pair_post_recv(end, &pair, 1);
        expect_flush(end, &pair, 1, 15);
        close_pair(end, &pair);
    } else {
        check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "%#x",
              status);
    }
    meet(end);
}

/* The driver's QP cannot be used again: that is said, and at once. */
static void case_reset(struct end *end)
{
    struct pair pair;

    open_pair(end, &pair);
    pair_connect(&pair);
    meet(end);
    pairs_talk(end, &pair, 1);
    if (end->is_client) {
        modify_state(&pair, IBV_QPS_RESET);
        check(pair_state(&pair) == IBV_QPS_RESET, "%d", pair_state(&pair));
        expect(pair_init(&pair), 0, "INIT");
        check(pair_state(&pair) == IBV_QPS_INIT, "%d", pair_state(&pair));
        expect(pair_rtr(&pair, &pair.theirs), EOPNOTSUPP, "RTR");
    } else {
        pair_post_recv(end, &pair, 1);
        expect_flush(end, &pair, 1, 15);
    }
    meet(end);
    close_pair(end, &pair);
}

/* To the error state while the connection is being waited for. */
static void case_to_error(struct end *end)
{
    struct pair pair;

    open_pair(end, &pair);
    if (end->is_client) {
        pair_connect(&pair);
        pair_post_recv(end, &pair, 1);
        modify_state(&pair, IBV_QPS_ERR);
        expect_flush(end, &pair, 1, 5);
    }
    meet(end);
    if (!end->is_client) {
        expect(pair_rtr(&pair, &pair.theirs), 0, "RTR");
        expect(pair_rts(&pair), ECONNRESET, "RTS");
    }
    meet(end);
    close_pair(end, &pair);
}

const struct test_case error_cases[] = {
    { "wrong-qpn", case_wrong_qpn },
    { "bad-path", case_bad_path },
    { "mismatch", case_mismatch },
    { "two-claims", case_two_claims },
    { "never", case_never },
    { "vanishes", case_vanishes },
    { "peer-destroys", case_peer_destroys },
    { "peer-dies", case_peer_dies },
    { "reset", case_reset },
    { "to-error", case_to_error },
    { NULL, NULL },
};
