// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: which of the peer's ports belongs to the process that has the
 * QP?
 *
 * All ports are asked at once, but the one that last answered for this
 * address first.  Sockets are the program's, so only a few are open at any
 * time and other questions wait for their turn.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compat.h"

/*
 * The more questions are under way, the longer each of them takes: a peer's
 * driver has one worker for all.
 */
#define MAX_SOCKETS 24
#define N_KNOWN 64

typedef struct Probe {
    CompatLookup *lookup;
    uint64_t id;                /* never used twice */
    int fd;                     /* -1: done */
    uint16_t port;
    bool is_sent;
    size_t len;
    uint8_t buf[COMPAT_FRAME_MAX];
} Probe;

struct CompatLookup {
    TAILQ_ENTRY(CompatLookup) entry;
    CompatQp *qp;
    bool is_running;
    bool is_hint;               /* only the port that answered last */
    uint64_t deadline_ms;
    unsigned n_open;
    unsigned n_strangers;       /* compat mode, but without this QP */
    int error;                  /* the most telling one so far */
    unsigned n_probes;
    Probe probes[COMPAT_MAX_PORTS];
};

static TAILQ_HEAD(, CompatLookup) lookups = TAILQ_HEAD_INITIALIZER(lookups);
static unsigned n_sockets;
static uint64_t last_id = COMPAT_EVENT_PROBE;

typedef struct Known {
    uint32_t ip;
    uint16_t port;              /* that answered last, or 0 */
    uint64_t answered_ms;       /* when any did */
} Known;

static Known known[N_KNOWN];

static Known *known_peer(uint32_t ip)
{
    Known *k = &known[ip % N_KNOWN];

    if (k->ip != ip) {
        k->ip = ip;
        k->port = 0;
        k->answered_ms = 0;
    }
    return k;
}

static void probe_close(Probe *probe)
{
    if (probe->fd >= 0) {
        close(probe->fd);
        probe->fd = -1;
        probe->lookup->n_open--;
        n_sockets--;
    }
}

static void lookup_free(CompatLookup *lookup)
{
    unsigned i;

    for (i = 0; i < lookup->n_probes; i++) {
        probe_close(&lookup->probes[i]);
    }
    TAILQ_REMOVE(&lookups, lookup, entry);
    lookup->qp->lookup = NULL;
    free(lookup);
}

/* Refused by one port says nothing; that a network is away says all. */
static void lookup_note_error(CompatLookup *lookup, int error)
{
    if (!lookup->error || lookup->error == ECONNREFUSED) {
        lookup->error = error;
    }
}

static int probe_connect(Probe *probe, const CompatView *view)
{
    struct sockaddr_in local = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(view->local.ip),
    };
    struct sockaddr_in peer = {
        .sin_family = AF_INET,
        .sin_port = htons(probe->port),
        .sin_addr.s_addr = htonl(view->peer.ip),
    };
    struct epoll_event ev = { .events = EPOLLOUT, .data.u64 = probe->id };
    int one = 1;

    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->fd < 0) {
        return errno;
    }
    probe->lookup->n_open++;
    n_sockets++;
    /* RDMA_CM takes ports for its connections that it believes are free. */
    setsockopt(probe->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(probe->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
               sizeof(one));
    if (bind(probe->fd, (struct sockaddr *)&local, sizeof(local)) ||
        (connect(probe->fd, (struct sockaddr *)&peer, sizeof(peer)) &&
         errno != EINPROGRESS) ||
        epoll_ctl(compat_engine_epoll(), EPOLL_CTL_ADD, probe->fd, &ev)) {
        int err = errno;

        probe_close(probe);
        return err;
    }
    return 0;
}

static void lookup_add(CompatLookup *lookup, uint16_t port)
{
    Probe *probe = &lookup->probes[lookup->n_probes++];
    int err;

    probe->lookup = lookup;
    probe->id = ++last_id;
    probe->port = port;
    probe->fd = -1;
    probe->is_sent = false;
    probe->len = 0;
    err = probe_connect(probe, &lookup->qp->view);
    if (err) {
        lookup_note_error(lookup, err);
    }
}

static void lookup_finish(CompatLookup *lookup, CompatVerdict verdict,
                          int error, uint16_t port)
{
    CompatQp *qp = lookup->qp;

    compat_log(3, "QP %u: asked for QP %u: %s", qp->view.local.qpn,
               qp->view.peer.qpn, verdict ? compat_verdict_text(verdict) :
                                            strerror(error));
    lookup_free(lookup);
    compat_engine_found(qp, verdict, error, port);
}

static uint16_t lookup_hint(const CompatLookup *lookup)
{
    const CompatQp *qp = lookup->qp;

    return qp->peer_port ? qp->peer_port : known_peer(qp->view.peer.ip)->port;
}

static void lookup_ask(CompatLookup *lookup)
{
    CompatQp *qp = lookup->qp;
    uint16_t hint = lookup_hint(lookup);
    unsigned i;

    lookup->is_running = true;
    lookup->deadline_ms = compat_now_ms() + compat_config.timeout_ms;
    lookup->n_probes = 0;
    lookup->error = 0;
    lookup->is_hint = hint != 0;
    compat_log(3, "QP %u: asking for QP %u, port %u", qp->view.local.qpn,
               qp->view.peer.qpn, hint);
    if (hint) {
        lookup_add(lookup, hint);
        return;
    }
    for (i = 0; i < compat_config.n_ports; i++) {
        lookup_add(lookup, compat_config.port + i);
    }
}

/* One probe less; if it was the last one, nobody has the QP. */
static void lookup_settle(CompatLookup *lookup)
{
    if (lookup->n_open) {
        return;
    }
    if (lookup->is_hint) {
        lookup->qp->peer_port = 0;
        known_peer(lookup->qp->view.peer.ip)->port = 0;
        lookup_ask(lookup);
        if (lookup->n_open) {
            return;
        }
    }
    if (lookup->n_strangers) {
        lookup_finish(lookup, COMPAT_UNKNOWN, 0, 0);
    } else {
        lookup_finish(lookup, COMPAT_NONE,
                      lookup->error ? lookup->error : ECONNREFUSED, 0);
    }
}

void compat_lookup_start(CompatQp *qp)
{
    CompatLookup *lookup = calloc(1, sizeof(*lookup));

    if (!lookup) {
        compat_engine_found(qp, COMPAT_NONE, ENOMEM, 0);
        return;
    }
    lookup->qp = qp;
    lookup->deadline_ms = UINT64_MAX;
    qp->lookup = lookup;
    /* The peer's driver does not wait for ever for a request to be accepted. */
    if (qp->has_held) {
        TAILQ_INSERT_HEAD(&lookups, lookup, entry);
    } else {
        TAILQ_INSERT_TAIL(&lookups, lookup, entry);
    }
    compat_engine_kick();
}

void compat_lookup_cancel(CompatQp *qp)
{
    if (qp->lookup) {
        lookup_free(qp->lookup);
    }
}

/* Connected: send the question, and wait for the answer. */
static int probe_send(Probe *probe)
{
    CompatQp *qp = probe->lookup->qp;
    CompatAddr *addr = compat_dev_addr(qp->ctx->dev, qp->view.local.ip);
    CompatMsg msg = {
        .kind = qp->view.is_leaving ? COMPAT_END : COMPAT_HELLO,
        .src = qp->view.local,
        .dst = qp->view.peer,
        .port = addr ? addr->listen_port : 0,
    };
    struct epoll_event ev = { .events = EPOLLIN, .data.u64 = probe->id };
    uint8_t frame[COMPAT_FRAME_LEN];
    socklen_t len = sizeof(int);
    int err = 0;

    if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &err, &len)) {
        return errno;
    }
    if (err) {
        return err;
    }
    compat_mpa_request(frame, &msg);
    /* The first bytes of a connection always fit. */
    if (send(probe->fd, frame, sizeof(frame), MSG_NOSIGNAL) !=
        (ssize_t)sizeof(frame)) {
        return errno ? errno : EIO;
    }
    probe->is_sent = true;
    if (epoll_ctl(compat_engine_epoll(), EPOLL_CTL_MOD, probe->fd, &ev)) {
        return errno;
    }
    return 0;
}

/* Returns 1 with a message, 0 if more must come, or a negative errno. */
static int probe_receive(Probe *probe, CompatMsg *msg)
{
    ssize_t n = recv(probe->fd, probe->buf + probe->len,
                     sizeof(probe->buf) - probe->len, 0);
    int result;

    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    if (n == 0) {
        return -ECONNREFUSED;
    }
    probe->len += n;
    result = compat_mpa_reply(probe->buf, probe->len, msg);
    return result < 0 ? -ECONNREFUSED : result;
}

static void probe_answer(Probe *probe, const CompatMsg *msg)
{
    CompatLookup *lookup = probe->lookup;
    const CompatView *view = &lookup->qp->view;
    Known *peer = known_peer(view->peer.ip);

    peer->answered_ms = compat_now_ms();
    if (msg->verdict == COMPAT_UNKNOWN ||
        msg->src.qpn != view->peer.qpn || msg->dst.qpn != view->local.qpn) {
        lookup->n_strangers++;
        probe_close(probe);
        lookup_settle(lookup);
        return;
    }
    peer->port = probe->port;
    lookup_finish(lookup, msg->verdict, 0, probe->port);
}

/* NULL: a thread of the program has ended it meanwhile. */
static Probe *probe_find(uint64_t id)
{
    CompatLookup *lookup;
    unsigned i;

    TAILQ_FOREACH(lookup, &lookups, entry) {
        for (i = 0; i < lookup->n_probes; i++) {
            if (lookup->probes[i].id == id && lookup->probes[i].fd >= 0) {
                return &lookup->probes[i];
            }
        }
    }
    return NULL;
}

void compat_lookup_event(uint64_t id)
{
    Probe *probe = probe_find(id);
    CompatMsg msg;
    int result;

    if (!probe) {
        return;
    }
    if (!probe->is_sent) {
        result = -probe_send(probe);
    } else {
        result = probe_receive(probe, &msg);
    }
    if (result > 0) {
        probe_answer(probe, &msg);
    } else if (result < 0) {
        lookup_note_error(probe->lookup, -result);
        probe_close(probe);
        lookup_settle(probe->lookup);
    }
}

static bool may_ask(const CompatLookup *lookup)
{
    unsigned n = lookup_hint(lookup) ? 1 : compat_config.n_ports;

    return lookup->qp->has_held || !n_sockets || n_sockets + n <= MAX_SOCKETS;
}

/* Too long.  A peer that answers others is only busy: ask it again. */
static void lookup_expired(CompatLookup *lookup, uint64_t now_ms)
{
    Known *peer = known_peer(lookup->qp->view.peer.ip);
    unsigned i;

    if (now_ms < lookup->qp->wait_until_ms &&
        now_ms < peer->answered_ms + compat_config.timeout_ms) {
        for (i = 0; i < lookup->n_probes; i++) {
            probe_close(&lookup->probes[i]);
        }
        lookup->deadline_ms = UINT64_MAX;
        lookup->is_running = false;
        return;
    }
    lookup_finish(lookup, lookup->n_strangers ? COMPAT_UNKNOWN : COMPAT_NONE,
                  ETIMEDOUT, 0);
}

void compat_lookup_run(uint64_t now_ms)
{
    CompatLookup *lookup, *next;

    for (lookup = TAILQ_FIRST(&lookups); lookup; lookup = next) {
        next = TAILQ_NEXT(lookup, entry);
        if (now_ms >= lookup->deadline_ms) {
            lookup_expired(lookup, now_ms);
        } else if (!lookup->is_running && may_ask(lookup)) {
            lookup_ask(lookup);
            lookup_settle(lookup);
        }
    }
}

void compat_lookup_drop_all(void)
{
    CompatLookup *lookup;

    while ((lookup = TAILQ_FIRST(&lookups))) {
        lookup_free(lookup);
    }
}
