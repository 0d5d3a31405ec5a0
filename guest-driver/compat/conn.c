// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: connecting QPs.
 *
 * Both sides of a pair ask each other when their program goes to RTR.  What
 * comes first, the own question's answer or the peer's question, tells that
 * both are in RTR.  Then the lower (address, QPN) connects through RDMA_CM
 * and the other one accepts.  So the driver is only asked for connections
 * that will be accepted, and a QP has one attempt at a time: the driver's
 * QP would not survive anything else.
 *
 * Before it accepts, the other one asks once more.  The driver that connects
 * is deaf between sending its request and noting that it has: a reply that
 * comes then is never read.  It serves connections one by one, though, so a
 * question that it answers after it sent the request proves that it has gone
 * on to listen for the reply.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "conn.h"
#include "ucm.h"

#define LISTEN_BACKLOG 512
#define RETRY_MIN_MS 250
#define RETRY_MAX_MS 4000
/* The accepting side lets the other one ask first. */
#define PASSIVE_MS 30
/* It looks this often whether the other one is still there. */
#define ALIVE_MS 10000
/* The driver gives each 10 s: as many as a slow machine makes in that. */
#define MAX_CONNECTING 16
#define TURN_MS 50
#define MAX_TRIES 16
/* The driver gives up on a connection after 10 + 10 s. */
#define DRIVER_MS 20000
/* An attempt that failed is off the driver's work queue by then. */
#define QUIET_MS 1000

typedef enum ConnStep {
    CONN_LISTEN, CONN_ADDR, CONN_ROUTE, CONN_CONNECT, CONN_ACCEPT, CONN_UP,
} ConnStep;

/* An RDMA_CM identifier of ours. */
typedef struct Conn {
    LIST_ENTRY(Conn) entry;
    uint64_t uid;
    uint32_t id;
    ConnStep step;
    CompatQp *qp;               /* NULL: nobody is interested any more */
    CompatDev *dev;             /* of listeners */
    uint32_t ip;
} Conn;

static LIST_HEAD(, Conn) conns = LIST_HEAD_INITIALIZER(conns);
static uint64_t last_uid;
static uint64_t last_stranger_ms;

static Conn *conn_new(ConnStep step, CompatQp *qp)
{
    Conn *conn = calloc(1, sizeof(*conn));

    if (conn) {
        conn->uid = ++last_uid;
        conn->step = step;
        conn->qp = qp;
        LIST_INSERT_HEAD(&conns, conn, entry);
    }
    return conn;
}

static void conn_free(Conn *conn)
{
    if (conn->qp) {
        conn->qp->conn = 0;
    }
    LIST_REMOVE(conn, entry);
    free(conn);
}

static void conn_destroy(Conn *conn)
{
    ucm_destroy(compat_ucm_fd, conn->id);
    conn_free(conn);
}

static Conn *conn_find(uint64_t uid)
{
    Conn *conn;

    LIST_FOREACH(conn, &conns, entry) {
        if (conn->uid == uid) {
            return conn;
        }
    }
    return NULL;
}

static void log_end(CompatQp *qp, unsigned level, const char *what,
                    const char *why)
{
    char local[16], peer[16];

    compat_log(level, "QP %u (%s): %s QP %u of %s%s%s",
               qp->view.local.qpn, compat_ip_text(qp->view.local.ip, local),
               what, qp->view.peer.qpn,
               compat_ip_text(qp->view.peer.ip, peer), why ? ": " : "",
               why ? why : "");
}

static void held_drop(CompatQp *qp)
{
    if (qp->has_held) {
        qp->has_held = false;
        ucm_reject(compat_ucm_fd, qp->held_id, NULL, 0);
        ucm_destroy(compat_ucm_fd, qp->held_id);
    }
}

static void qp_fail(CompatQp *qp, int error, const char *why)
{
    compat_lookup_cancel(qp);
    held_drop(qp);
    log_end(qp, 1, "no connection to", why ? why : strerror(error));
    compat_qp_phase(qp, COMPAT_FAILED, error);
}

/* Connecting */

static unsigned n_connecting(void)
{
    unsigned n = 0;
    Conn *conn;

    LIST_FOREACH(conn, &conns, entry) {
        n += conn->step >= CONN_ADDR && conn->step <= CONN_CONNECT;
    }
    return n;
}

static void connect_start(CompatQp *qp)
{
    uint64_t now = compat_now_ms();
    Conn *conn;
    int err;

    if (now < qp->quiet_ms || n_connecting() >= MAX_CONNECTING) {
        qp->retry_ms = now + TURN_MS;
        qp->deadline_ms = UINT64_MAX;
        compat_qp_phase(qp, COMPAT_AGREED, 0);
        return;
    }
    conn = conn_new(CONN_ADDR, qp);
    if (!conn) {
        qp_fail(qp, ENOMEM, NULL);
        return;
    }
    err = ucm_create(compat_ucm_fd, conn->uid, &conn->id);
    if (err) {
        conn_free(conn);
        qp_fail(qp, err, NULL);
        return;
    }
    err = ucm_resolve_addr(compat_ucm_fd, conn->id, qp->view.local.ip,
                           qp->view.peer.ip, qp->peer_port,
                           compat_config.timeout_ms);
    if (err) {
        conn_destroy(conn);
        qp_fail(qp, err, NULL);
        return;
    }
    qp->conn = conn->uid;
    qp->retry_ms = 0;
    qp->deadline_ms = now + 2 * compat_config.timeout_ms + DRIVER_MS;
    compat_qp_phase(qp, COMPAT_CONNECTING, 0);
}

void compat_engine_agreed(CompatQp *qp, uint16_t port)
{
    uint64_t now = compat_now_ms();

    compat_lookup_cancel(qp);
    if (port >= compat_config.port &&
        port - compat_config.port < compat_config.n_ports) {
        qp->peer_port = port;
    }
    compat_engine_watch(qp, true);
    if (compat_is_active(&qp->view.local, &qp->view.peer)) {
        connect_start(qp);
    } else {
        qp->retry_ms = now + ALIVE_MS;
        qp->deadline_ms = now + 2 * compat_config.timeout_ms + DRIVER_MS;
        compat_qp_phase(qp, COMPAT_AGREED, 0);
    }
}

static void accept_conn(CompatQp *qp);

void compat_engine_found(CompatQp *qp, CompatVerdict verdict, int error,
                         uint16_t port)
{
    uint64_t now = compat_now_ms();

    if (qp->view.is_leaving) {
        /* Nobody there, or a peer that is gone, needs no time either. */
        qp->may_leave |= verdict != COMPAT_EARLY;
        pthread_cond_broadcast(&compat_cond);
        return;
    }
    switch (verdict) {
    case COMPAT_NONE:
        qp_fail(qp, error, error == ECONNREFUSED ? "nobody listens there: "
                "the peer is not in compat mode, or has ended" : NULL);
        return;
    case COMPAT_READY:
        if (qp->has_held) {
            accept_conn(qp);
        } else {
            compat_engine_agreed(qp, port);
        }
        return;
    case COMPAT_EARLY:
        qp->retry_ms = now + (RETRY_MIN_MS << qp->n_tries);
        if (qp->retry_ms > now + RETRY_MAX_MS) {
            qp->retry_ms = now + RETRY_MAX_MS;
        } else {
            qp->n_tries++;
        }
        qp->deadline_ms = qp->wait_until_ms;
        compat_engine_watch(qp, true);
        compat_qp_phase(qp, COMPAT_WAITING, 0);
        return;
    default:
        qp_fail(qp, compat_verdict_errno(verdict),
                compat_verdict_text(verdict));
    }
}

void compat_engine_connect(CompatQp *qp)
{
    uint64_t now = compat_now_ms();

    qp->n_tries = 0;
    qp->error = 0;
    qp->peer_port = 0;
    qp->retry_ms = 0;
    qp->wait_until_ms = now + compat_config.wait_ms;
    qp->deadline_ms = UINT64_MAX;       /* the lookup has its own */
    compat_qp_phase(qp, COMPAT_ASKING, 0);
    compat_engine_watch(qp, true);
    if (compat_is_active(&qp->view.local, &qp->view.peer)) {
        compat_lookup_start(qp);
    } else {
        qp->retry_ms = now + PASSIVE_MS;
        compat_engine_kick();
    }
}

void compat_engine_ask_end(CompatQp *qp)
{
    if (compat_is_active(&qp->view.local, &qp->view.peer)) {
        compat_lookup_start(qp);
    } else {
        qp->deadline_ms = UINT64_MAX;
        qp->retry_ms = compat_now_ms() + PASSIVE_MS;
        compat_engine_watch(qp, true);
        compat_engine_kick();
    }
}

void compat_engine_forget(CompatQp *qp)
{
    Conn *conn = qp->conn ? conn_find(qp->conn) : NULL;

    compat_lookup_cancel(qp);
    held_drop(qp);
    compat_engine_watch(qp, false);
    qp->conn = 0;
    if (!conn) {
        return;
    }
    conn->qp = NULL;
    if (conn->step == CONN_ADDR || conn->step == CONN_ROUTE) {
        conn_destroy(conn);
    } else {
        qp->is_spent = true;
    }
}

void compat_engine_reap(uint64_t uid)
{
    Conn *conn = uid ? conn_find(uid) : NULL;

    /* While the driver connects, destroying would wait for it. */
    if (conn && !conn->qp && conn->step != CONN_CONNECT) {
        conn_destroy(conn);
    }
}

/* Being asked */

static void answer(uint32_t id, const CompatMsg *question,
                   CompatVerdict verdict, uint16_t port)
{
    CompatMsg msg = {
        .kind = COMPAT_ANSWER,
        .verdict = verdict,
        .src = question->dst,
        .dst = question->src,
        .port = port,
    };
    uint8_t buf[COMPAT_MSG_LEN];

    compat_msg_pack(buf, &msg);
    ucm_reject(compat_ucm_fd, id, buf, sizeof(buf));
    ucm_destroy(compat_ucm_fd, id);
}

/* One line per second: a scanner must not fill the disk. */
static void log_stranger(uint32_t ip, const char *what)
{
    uint64_t now = compat_now_ms();
    char text[16];

    if (now >= last_stranger_ms + 1000 || !last_stranger_ms) {
        last_stranger_ms = now;
        compat_log(1, "%s: %s", compat_ip_text(ip, text), what);
    }
}

/* Is the peer ready for our reply? */
static void hold_conn(CompatQp *qp, uint32_t id, uint16_t port)
{
    compat_lookup_cancel(qp);
    held_drop(qp);
    qp->has_held = true;
    qp->held_id = id;
    compat_engine_agreed(qp, port);
    compat_lookup_start(qp);
}

static void accept_conn(CompatQp *qp)
{
    Conn *conn = conn_new(CONN_ACCEPT, qp);
    int err;

    if (!conn) {
        qp_fail(qp, ENOMEM, NULL);
        return;
    }
    conn->id = qp->held_id;
    qp->has_held = false;
    err = ucm_accept(compat_ucm_fd, conn->id, conn->uid, qp->view.local.qpn);
    if (err) {
        conn_destroy(conn);
        qp_fail(qp, err, NULL);
        return;
    }
    qp->conn = conn->uid;
    qp->retry_ms = 0;
    qp->deadline_ms = compat_now_ms() + DRIVER_MS;
    compat_engine_watch(qp, true);
    compat_qp_phase(qp, COMPAT_CONNECTING, 0);
}

static const char *kind_text(CompatKind kind)
{
    switch (kind) {
    case COMPAT_HELLO:
        return "question";
    case COMPAT_CONNECT:
        return "connection";
    default:
        return "end";
    }
}

static void on_request(Conn *listener, const UcmEvent *ev)
{
    CompatAddr *addr = compat_dev_addr(listener->dev, listener->ip);
    uint16_t port = addr ? addr->listen_port : 0;
    uint32_t remote_ip = 0;
    CompatVerdict verdict;
    CompatMsg msg;
    CompatQp *qp;

    ucm_query(compat_ucm_fd, ev->id, NULL, NULL, &remote_ip);
    if (!compat_msg_parse(ev->data, ev->len, &msg)) {
        log_stranger(remote_ip, "a connection that is not compat mode's");
        ucm_reject(compat_ucm_fd, ev->id, NULL, 0);
        ucm_destroy(compat_ucm_fd, ev->id);
        return;
    }
    qp = compat_qp_of_device(listener->dev, msg.dst.qpn);
    verdict = compat_judge(qp ? &qp->view : NULL, &msg, remote_ip);
    compat_log(3, "QP %u: %s of QP %u: %s", msg.dst.qpn,
               kind_text(msg.kind), msg.src.qpn,
               compat_verdict_text(verdict));
    if (verdict == COMPAT_BAD) {
        log_stranger(remote_ip, "a question that makes no sense");
    } else if (verdict == COMPAT_OTHER) {
        log_end(qp, 1, "somebody else claims it; it is meant for", NULL);
    }
    if (msg.kind == COMPAT_CONNECT && verdict == COMPAT_READY) {
        hold_conn(qp, ev->id, msg.port);
        return;
    }
    answer(ev->id, &msg, verdict, port);
    if (msg.kind == COMPAT_END) {
        if (verdict == COMPAT_READY || verdict == COMPAT_EARLY) {
            qp->may_leave = true;
            pthread_cond_broadcast(&compat_cond);
        }
        return;
    }
    if (verdict == COMPAT_READY && (qp->view.phase == COMPAT_ASKING ||
                                    qp->view.phase == COMPAT_WAITING)) {
        compat_engine_agreed(qp, msg.port);
    }
}

/* What RDMA_CM says of a connection */

static int on_addr(Conn *conn)
{
    uint64_t guid = 0;
    int err = ucm_query(compat_ucm_fd, conn->id, &guid, NULL, NULL);

    if (!err && guid != conn->qp->ctx->dev->guid) {
        err = ENODEV;
    }
    if (!err) {
        err = ucm_resolve_route(compat_ucm_fd, conn->id,
                                compat_config.timeout_ms);
    }
    conn->step = CONN_ROUTE;
    return err;
}

static int on_route(Conn *conn)
{
    CompatAddr *addr = compat_dev_addr(conn->qp->ctx->dev,
                                       conn->qp->view.local.ip);
    CompatMsg msg = {
        .kind = COMPAT_CONNECT,
        .src = conn->qp->view.local,
        .dst = conn->qp->view.peer,
        .port = addr ? addr->listen_port : 0,
    };
    uint8_t buf[COMPAT_MSG_LEN];
    int err;

    compat_msg_pack(buf, &msg);
    err = ucm_connect(compat_ucm_fd, conn->id, conn->qp->view.local.qpn, buf,
                      sizeof(buf));
    if (!err) {
        conn->step = CONN_CONNECT;
    }
    return err;
}

/* A connection that did not come up.  @error as RDMA_CM knows it. */
static void on_failure(Conn *conn, const UcmEvent *ev, int error)
{
    CompatQp *qp = conn->qp;
    const char *why = NULL;
    CompatMsg msg;

    if (ev->event == UCM_REJECTED &&
        compat_msg_parse(ev->data, ev->len, &msg) &&
        msg.kind == COMPAT_ANSWER) {
        error = compat_verdict_errno(msg.verdict);
        why = compat_verdict_text(msg.verdict);
    }
    conn_destroy(conn);
    /* RDMA_CM chose a port that a TCP socket has; it will choose another. */
    if (qp && ev->event == UCM_ROUTE_RESOLVED && qp->n_tries < MAX_TRIES &&
        (error == EADDRINUSE || error == EADDRNOTAVAIL)) {
        qp->n_tries++;
        qp->retry_ms = compat_now_ms() + TURN_MS;
        compat_qp_phase(qp, COMPAT_AGREED, 0);
        return;
    }
    if (qp) {
        qp->quiet_ms = compat_now_ms() + QUIET_MS;
        qp_fail(qp, error ? error : ECONNREFUSED, why);
    }
}

static void on_conn_event(Conn *conn, const UcmEvent *ev)
{
    CompatQp *qp = conn->qp;
    int err = 0;

    switch (ev->event) {
    case UCM_ADDR_RESOLVED:
        err = qp ? on_addr(conn) : ECANCELED;
        break;
    case UCM_ROUTE_RESOLVED:
        err = qp ? on_route(conn) : ECANCELED;
        break;
    case UCM_ESTABLISHED:
        conn->step = CONN_UP;
        if (!qp) {
            conn_destroy(conn);
            return;
        }
        log_end(qp, 2, "connected to", NULL);
        compat_qp_phase(qp, COMPAT_UP, 0);
        return;
    case UCM_DISCONNECTED:
    case UCM_DEVICE_REMOVAL:
        conn_destroy(conn);
        if (qp) {
            log_end(qp, 2, "lost the connection to", NULL);
            compat_qp_phase(qp, COMPAT_DOWN, ECONNRESET);
        }
        return;
    case UCM_ADDR_ERROR:
    case UCM_ROUTE_ERROR:
        err = ev->status ? ev->status : EHOSTUNREACH;
        break;
    case UCM_UNREACHABLE:
        err = ev->status ? ev->status : ETIMEDOUT;
        break;
    case UCM_CONNECT_ERROR:
    case UCM_REJECTED:
        err = ev->status ? ev->status : ECONNREFUSED;
        break;
    default:
        return;
    }
    if (err) {
        on_failure(conn, ev, err);
    }
}

void compat_conn_event(void)
{
    UcmEvent ev;
    Conn *conn;

    if (ucm_get_event(compat_ucm_fd, &ev)) {
        return;
    }
    conn = conn_find(ev.uid);
    if (conn && conn->step == CONN_LISTEN) {
        if (ev.event == UCM_CONNECT_REQUEST) {
            on_request(conn, &ev);
        } else if (ev.event == UCM_DEVICE_REMOVAL) {
            CompatAddr *addr = compat_dev_addr(conn->dev, conn->ip);

            if (addr) {
                addr->is_listening = false;
            }
            conn_destroy(conn);
        }
    } else if (conn) {
        on_conn_event(conn, &ev);
    } else if (ev.event == UCM_CONNECT_REQUEST) {
        ucm_reject(compat_ucm_fd, ev.id, NULL, 0);
        ucm_destroy(compat_ucm_fd, ev.id);
    }
}

void compat_conn_time(CompatQp *qp, uint64_t now)
{
    if (now >= qp->deadline_ms) {
        /* An identifier that connects is dropped when it is done. */
        compat_engine_forget(qp);
        qp_fail(qp, ETIMEDOUT, qp->view.phase == COMPAT_WAITING ?
                "its program did not go to RTR" : NULL);
    } else if (qp->retry_ms && now >= qp->retry_ms) {
        qp->retry_ms = 0;
        if (qp->view.phase == COMPAT_AGREED &&
            compat_is_active(&qp->view.local, &qp->view.peer)) {
            connect_start(qp);
        } else if (qp->view.phase != COMPAT_CONNECTING && !qp->lookup) {
            compat_lookup_start(qp);
        }
    }
}

int compat_conn_listen(CompatDev *dev, CompatAddr *addr, uint16_t port)
{
    Conn *conn = conn_new(CONN_LISTEN, NULL);
    int err;

    if (!conn) {
        return ENOMEM;
    }
    conn->dev = dev;
    conn->ip = addr->ip;
    err = ucm_create(compat_ucm_fd, conn->uid, &conn->id);
    if (err) {
        conn_free(conn);
        return err;
    }
    err = ucm_bind(compat_ucm_fd, conn->id, addr->ip, port);
    if (!err) {
        err = ucm_listen(compat_ucm_fd, conn->id, LISTEN_BACKLOG);
    }
    if (err) {
        conn_destroy(conn);
        return err;
    }
    addr->is_listening = true;
    addr->listen_id = conn->id;
    addr->listen_port = port;
    return 0;
}

void compat_conn_drop_all(void)
{
    Conn *conn;

    while ((conn = LIST_FIRST(&conns))) {
        LIST_REMOVE(conn, entry);
        free(conn);
    }
}
