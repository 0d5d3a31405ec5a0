// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: QPs as the program sees them.
 *
 * The driver's QP knows "not connected", "connected" and "was connected".
 * What else an RC QP remembers is kept here: the state between RESET and
 * RTS, and the attributes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "compat.h"

#define N_BUCKETS 1024
/* The engine keeps its own times; this is only a net below it. */
#define RTS_SLACK_MS 30000
/*
 * What is destroyed takes the connection along, which the peer's program
 * notices: its receives are flushed, and a send of which it has not yet heard
 * that it arrived is, too.  An RC QP's peer would notice nothing before it
 * sends again.  Programs mostly end together, so wait for each other.  After
 * a peer that does not end, be short for a while.
 */
#define IMPATIENT_MS 10000
#define SHORT_MS 20
#define SHORT_EVERY_MS 100

LIST_HEAD(QpList, CompatQp);

pthread_mutex_t compat_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t compat_cond;

static CompatCtx *ctxs;
static struct QpList by_handle[N_BUCKETS];
static struct QpList by_qpn[N_BUCKETS];
static uint64_t last_serial;
static uint64_t impatient_until_ms, last_short_ms;

CompatCtx *compat_ctx_find(int fd)
{
    CompatCtx *ctx = ctxs;

    while (ctx && ctx->fd != fd) {
        ctx = ctx->next;
    }
    return ctx;
}

void compat_ctx_add(int fd, CompatDev *dev)
{
    CompatCtx *ctx = compat_ctx_find(fd);

    if (ctx) {
        compat_ctx_remove(ctx);
    }
    ctx = calloc(1, sizeof(*ctx));
    if (!ctx) {
        return;
    }
    ctx->fd = fd;
    ctx->dev = dev;
    ctx->next = ctxs;
    ctxs = ctx;
}

static struct QpList *handle_bucket(const CompatCtx *ctx, uint32_t handle)
{
    return &by_handle[(handle + ctx->fd * 37) % N_BUCKETS];
}

static struct QpList *qpn_bucket(uint32_t qpn)
{
    return &by_qpn[qpn % N_BUCKETS];
}

CompatQp *compat_qp_find(CompatCtx *ctx, uint32_t handle)
{
    CompatQp *qp;

    LIST_FOREACH(qp, handle_bucket(ctx, handle), by_handle) {
        if (qp->ctx == ctx && qp->handle == handle) {
            return qp;
        }
    }
    return NULL;
}

CompatQp *compat_qp_of_device(CompatDev *dev, uint32_t qpn)
{
    CompatQp *qp;

    LIST_FOREACH(qp, qpn_bucket(qpn), by_qpn) {
        if (qp->ctx->dev == dev && qp->view.local.qpn == qpn) {
            return qp;
        }
    }
    return NULL;
}

static void qp_insert(CompatQp *qp)
{
    LIST_INSERT_HEAD(handle_bucket(qp->ctx, qp->handle), qp, by_handle);
    LIST_INSERT_HEAD(qpn_bucket(qp->view.local.qpn), qp, by_qpn);
}

static void qp_remove(CompatQp *qp)
{
    LIST_REMOVE(qp, by_handle);
    LIST_REMOVE(qp, by_qpn);
}

/* The CQs are those of a living QP, or they are not. */
static void qp_use_cqs(const CompatQp *qp, bool on)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (on) {
            compat_cq_use(qp->ctx, qp->cqs[i]);
        } else {
            compat_cq_unuse(qp->ctx, qp->cqs[i]);
        }
    }
}

void compat_qp_add(CompatCtx *ctx, uint32_t handle, uint32_t qpn,
                   const uint32_t cqs[2])
{
    CompatQp *qp = calloc(1, sizeof(*qp));
    int err;

    if (!qp) {
        return;
    }
    qp->ctx = ctx;
    qp->handle = handle;
    memcpy(qp->cqs, cqs, sizeof(qp->cqs));
    qp->serial = ++last_serial;
    qp->view.local.qpn = qpn;
    qp->state = COMPAT_QPS_RESET;
    qp_insert(qp);
    qp_use_cqs(qp, true);
    /*
     * From now on a peer can learn the number, and expects an answer.  That
     * there are no ports left only matters if the QP goes to RTR: a program
     * may use RDMA_CM itself.
     */
    err = compat_engine_serve(ctx->dev);
    if (err) {
        compat_log(2, "QP %u: no port to listen on: %s", qpn, strerror(err));
    }
}

static void qp_free(CompatQp *qp)
{
    compat_engine_forget(qp);
    qp_remove(qp);
    free(qp);
}

void compat_ctx_remove(CompatCtx *ctx)
{
    CompatCtx **p = &ctxs;
    CompatQp *qp, *next;
    unsigned i;

    for (i = 0; i < N_BUCKETS; i++) {
        for (qp = LIST_FIRST(&by_handle[i]); qp; qp = next) {
            next = LIST_NEXT(qp, by_handle);
            if (qp->ctx == ctx) {
                uint64_t conn = qp->conn;

                qp_free(qp);
                compat_engine_reap(conn);
            }
        }
    }
    compat_cq_remove_all(ctx);
    while (*p != ctx) {
        p = &(*p)->next;
    }
    *p = ctx->next;
    free(ctx);
}

void compat_qp_drop_all(void)
{
    CompatCtx *ctx;
    CompatQp *qp;
    unsigned i;

    for (i = 0; i < N_BUCKETS; i++) {
        while ((qp = LIST_FIRST(&by_handle[i]))) {
            qp_remove(qp);
            free(qp);
        }
    }
    while ((ctx = ctxs)) {
        ctxs = ctx->next;
        free(ctx);
    }
}

/* Attributes */

#define SAVE(bit, field) \
    do { \
        if (mask & (bit)) { \
            to->field = from->field; \
        } \
    } while (0)

static void qp_save(CompatQp *qp, const struct ib_uverbs_modify_qp *from)
{
    struct ib_uverbs_modify_qp *to = &qp->attr;
    uint32_t mask = from->attr_mask;

    SAVE(COMPAT_ATTR_AV, dest);
    SAVE(COMPAT_ATTR_ACCESS, qp_access_flags);
    SAVE(COMPAT_ATTR_PKEY_INDEX, pkey_index);
    SAVE(COMPAT_ATTR_PORT, port_num);
    SAVE(COMPAT_ATTR_PATH_MTU, path_mtu);
    SAVE(COMPAT_ATTR_TIMEOUT, timeout);
    SAVE(COMPAT_ATTR_RETRY_CNT, retry_cnt);
    SAVE(COMPAT_ATTR_RNR_RETRY, rnr_retry);
    SAVE(COMPAT_ATTR_RQ_PSN, rq_psn);
    SAVE(COMPAT_ATTR_SQ_PSN, sq_psn);
    SAVE(COMPAT_ATTR_MAX_RD, max_rd_atomic);
    SAVE(COMPAT_ATTR_MAX_DEST_RD, max_dest_rd_atomic);
    SAVE(COMPAT_ATTR_MIN_RNR, min_rnr_timer);
    SAVE(COMPAT_ATTR_DEST_QPN, dest_qp_num);
    qp->attr_mask |= mask;
}

#undef SAVE
#define SHOW(bit, field) \
    do { \
        if (qp->attr_mask & (bit)) { \
            resp->field = qp->attr.field; \
        } \
    } while (0)

/* What to say of the state when the driver says @driver. */
static int qp_shown_state(const CompatQp *qp, int driver)
{
    if (qp->state == COMPAT_QPS_RESET && driver == COMPAT_QPS_INIT) {
        return COMPAT_QPS_RESET;
    }
    if (qp->view.phase == COMPAT_IDLE) {
        return qp->is_spent ? qp->state : driver;
    }
    if (driver == COMPAT_QPS_ERR) {
        return COMPAT_QPS_ERR;
    }
    return qp->state;
}

void compat_qp_query(CompatQp *qp, struct ib_uverbs_query_qp_resp *resp)
{
    resp->qp_state = qp_shown_state(qp, resp->qp_state);
    resp->cur_qp_state = resp->qp_state;
    SHOW(COMPAT_ATTR_AV, dest);
    SHOW(COMPAT_ATTR_ACCESS, qp_access_flags);
    SHOW(COMPAT_ATTR_PKEY_INDEX, pkey_index);
    SHOW(COMPAT_ATTR_PORT, port_num);
    SHOW(COMPAT_ATTR_PATH_MTU, path_mtu);
    SHOW(COMPAT_ATTR_TIMEOUT, timeout);
    SHOW(COMPAT_ATTR_RETRY_CNT, retry_cnt);
    SHOW(COMPAT_ATTR_RNR_RETRY, rnr_retry);
    SHOW(COMPAT_ATTR_RQ_PSN, rq_psn);
    SHOW(COMPAT_ATTR_SQ_PSN, sq_psn);
    SHOW(COMPAT_ATTR_MAX_RD, max_rd_atomic);
    SHOW(COMPAT_ATTR_MAX_DEST_RD, max_dest_rd_atomic);
    SHOW(COMPAT_ATTR_MIN_RNR, min_rnr_timer);
    SHOW(COMPAT_ATTR_DEST_QPN, dest_qp_num);
}

#undef SHOW

/* State */

void compat_qp_phase(CompatQp *qp, CompatPhase phase, int error)
{
    if (qp->view.phase == phase) {
        return;
    }
    qp->view.phase = phase;
    if (phase == COMPAT_FAILED || phase == COMPAT_DOWN) {
        qp->error = error;
        compat_engine_watch(qp, false);
        /* In RTS work may wait that nobody will ever do: have it flushed. */
        if (qp->state == COMPAT_QPS_RTS) {
            qp->state = COMPAT_QPS_ERR;
            if (phase == COMPAT_FAILED) {
                qp->is_spent = true;
                compat_command_fail_qp(qp);
            }
        }
    }
    if (phase == COMPAT_UP) {
        qp->is_spent = true;
        compat_engine_watch(qp, false);
    }
    pthread_cond_broadcast(&compat_cond);
}

static int refuse(CompatQp *qp, int err, const char *why)
{
    compat_log(1, "QP %u: %s", qp->view.local.qpn, why);
    return err;
}

static int qp_check_path(CompatQp *qp, const struct ib_uverbs_modify_qp *cmd,
                         CompatAddr **addr)
{
    CompatDev *dev = qp->ctx->dev;
    CompatEnd *peer = &qp->view.peer;
    unsigned index = cmd->dest.sgid_index / 2;
    int err;

    if (!cmd->dest.is_global) {
        return refuse(qp, EINVAL, "to RTR without a GID: was the program "
                      "told a GID index, and is the peer in compat mode?");
    }
    if (!compat_gid_to_ip(cmd->dest.dgid, &peer->ip)) {
        return refuse(qp, EINVAL, "the peer's GID is no IPv4 address: is the "
                      "peer in compat mode?");
    }
    peer->qpn = cmd->dest_qp_num;
    if (!peer->qpn || peer->qpn > 0xffffff) {
        return refuse(qp, EINVAL, "the peer's QP number is not possible");
    }
    err = compat_engine_serve(dev);
    if (!err && index >= dev->n_addrs) {
        return refuse(qp, EINVAL, "there is no such GID index");
    }
    if (!err && !dev->addrs[index].is_listening) {
        err = dev->listen_error;
    }
    if (err) {
        compat_log(1, "QP %u: no port of %u to %u is free: %s",
                   qp->view.local.qpn, compat_config.port,
                   compat_config.port + compat_config.n_ports - 1,
                   strerror(err));
        return err;
    }
    *addr = &dev->addrs[index];
    return 0;
}

static int qp_to_rtr(CompatQp *qp, const struct ib_uverbs_modify_qp *cmd)
{
    CompatAddr *addr;
    int err = compat_check_modify(qp->state, COMPAT_QPS_RTR, cmd->attr_mask);

    if (err) {
        return err;
    }
    if (qp->is_spent) {
        return refuse(qp, EOPNOTSUPP, "the driver connects a QP only once: "
                      "destroy it and create another one");
    }
    if (cmd->path_mtu < 1 || cmd->path_mtu > 5) {
        return EINVAL;
    }
    err = qp_check_path(qp, cmd, &addr);
    if (err) {
        return err;
    }
    qp->view.local.ip = addr->ip;
    if (qp->view.local.ip == qp->view.peer.ip &&
        qp->view.local.qpn == qp->view.peer.qpn) {
        return refuse(qp, EOPNOTSUPP, "the driver cannot connect a QP to "
                      "itself");
    }
    qp_save(qp, cmd);
    qp->state = COMPAT_QPS_RTR;
    compat_engine_connect(qp);
    return 0;
}

/* What RTS has to say, or EAGAIN. */
static int qp_outcome(const CompatQp *qp)
{
    switch (qp->view.phase) {
    case COMPAT_UP:
        return 0;
    case COMPAT_WAITING:
        /*
         * The peer's process is alive and knows the number: an RC QP would
         * be in RTS now.  The device keeps what is posted until the
         * connection is there.  Waiting could wait for ever, since the peer
         * may need to hear from this program before it goes to RTR.
         */
        return 0;
    case COMPAT_FAILED:
        return qp->error;
    case COMPAT_DOWN:
        return ECONNRESET;
    case COMPAT_IDLE:
        return EINVAL;
    default:
        return EAGAIN;
    }
}

static int qp_to_rts(CompatQp *qp, const struct ib_uverbs_modify_qp *cmd)
{
    CompatCtx *ctx = qp->ctx;
    uint32_t handle = qp->handle;
    uint64_t serial = qp->serial;
    int fd = ctx->fd;
    uint64_t end_ms = compat_now_ms() + 3 * compat_config.timeout_ms +
                      RTS_SLACK_MS;
    struct timespec end = {
        .tv_sec = end_ms / 1000,
        .tv_nsec = end_ms % 1000 * 1000000,
    };
    int err = compat_check_modify(qp->state, COMPAT_QPS_RTS, cmd->attr_mask);

    if (err) {
        return err;
    }
    while (qp->state == COMPAT_QPS_RTR &&
           (err = qp_outcome(qp)) == EAGAIN) {
        if (pthread_cond_timedwait(&compat_cond, &compat_lock, &end)) {
            return ETIMEDOUT;
        }
        /* Another thread may have destroyed it. */
        if (compat_ctx_find(fd) != ctx) {
            return ENOENT;
        }
        qp = compat_qp_find(ctx, handle);
        if (!qp || qp->serial != serial) {
            return ENOENT;
        }
    }
    if (qp->state != COMPAT_QPS_RTR && qp->state != COMPAT_QPS_RTS) {
        return EINVAL;
    }
    if (!err) {
        qp_save(qp, cmd);
        qp->state = COMPAT_QPS_RTS;
    }
    return err;
}

/* The driver leaves a connected QP as it is: at least stop the traffic. */
static int qp_to_reset(CompatQp *qp, CompatPass *pass, void *opaque)
{
    int err = 0;

    if (qp->view.phase == COMPAT_IDLE && !qp->is_spent) {
        err = pass(opaque);
    } else {
        if (qp->is_spent) {
            err = compat_command_fail_qp(qp);
        }
        compat_engine_forget(qp);
        compat_qp_phase(qp, COMPAT_IDLE, 0);
    }
    if (!err) {
        qp->state = COMPAT_QPS_RESET;
        qp->attr_mask = 0;
    }
    return err;
}

static int qp_to_error(CompatQp *qp, CompatPass *pass, void *opaque)
{
    int err = pass(opaque);

    if (err) {
        return err;
    }
    if (qp->view.phase != COMPAT_IDLE && qp->view.phase != COMPAT_UP &&
        qp->view.phase != COMPAT_DOWN) {
        compat_engine_forget(qp);
        compat_qp_phase(qp, COMPAT_FAILED, ECANCELED);
    }
    qp->is_spent = true;
    qp->state = COMPAT_QPS_ERR;
    return 0;
}

static int qp_to_state(CompatQp *qp, const struct ib_uverbs_modify_qp *cmd,
                       CompatPass *pass, void *opaque)
{
    bool is_ours = qp->view.phase != COMPAT_IDLE;
    int err;

    switch (cmd->qp_state) {
    case COMPAT_QPS_RESET:
        return qp_to_reset(qp, pass, opaque);
    case COMPAT_QPS_INIT:
        if (is_ours || qp->is_spent) {
            err = compat_check_modify(qp->state, COMPAT_QPS_INIT,
                                      cmd->attr_mask);
        } else {
            err = pass(opaque);
        }
        if (!err) {
            qp_save(qp, cmd);
            qp->state = COMPAT_QPS_INIT;
        }
        return err;
    case COMPAT_QPS_RTR:
        /* Without a peer it is not meant for us. */
        if (!(cmd->attr_mask & COMPAT_ATTR_AV)) {
            return pass(opaque);
        }
        return qp_to_rtr(qp, cmd);
    case COMPAT_QPS_RTS:
        return is_ours ? qp_to_rts(qp, cmd) : pass(opaque);
    case COMPAT_QPS_ERR:
        return qp_to_error(qp, pass, opaque);
    case COMPAT_QPS_SQD:
        /* The driver takes SQD for the end of the connection. */
        if (is_ours) {
            return refuse(qp, EOPNOTSUPP, "the driver cannot drain a send "
                          "queue (SQD)");
        }
        return pass(opaque);
    default:
        return pass(opaque);
    }
}

int compat_qp_modify(CompatCtx *ctx, const struct ib_uverbs_modify_qp *cmd,
                     CompatPass *pass, void *opaque)
{
    CompatQp *qp = compat_qp_find(ctx, cmd->qp_handle);
    int err;

    if (!qp) {
        return pass(opaque);
    }
    if (cmd->attr_mask & COMPAT_ATTR_STATE) {
        return qp_to_state(qp, cmd, pass, opaque);
    }
    err = pass(opaque);
    if (!err) {
        qp_save(qp, cmd);
    }
    return err;
}

/* How long to wait for the peer's program before @qp is destroyed. */
static unsigned leave_ms(CompatQp *qp, uint64_t now)
{
    /* It waits for us, or is this program, which cannot do two things. */
    if (qp->may_leave ||
        (compat_dev_addr(qp->ctx->dev, qp->view.peer.ip) &&
         compat_qp_of_device(qp->ctx->dev, qp->view.peer.qpn))) {
        return 0;
    }
    if (now >= impatient_until_ms && compat_config.end_ms) {
        return compat_config.end_ms;
    }
    if (now >= last_short_ms + SHORT_EVERY_MS) {
        last_short_ms = now;
        return SHORT_MS;
    }
    return 0;
}

/*
 * Waits until the peer's program comes to the end of its QP as well: it then
 * ends the connection.  Returns @qp, or NULL if another thread of ours has
 * taken it away.
 */
static CompatQp *qp_leave(CompatQp *qp)
{
    uint64_t now = compat_now_ms(), end_ms;
    CompatCtx *ctx = qp->ctx;
    uint64_t serial = qp->serial;
    uint32_t handle = qp->handle;
    int fd = ctx->fd, late = 0;
    unsigned ms = leave_ms(qp, now);
    struct timespec end;

    if (!ms) {
        return qp;
    }
    end_ms = now + ms;
    end = (struct timespec) {
        .tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000,
    };
    qp->view.is_leaving = true;
    compat_engine_ask_end(qp);
    while (qp && qp->view.phase == COMPAT_UP && !qp->may_leave && !late) {
        late = pthread_cond_timedwait(&compat_cond, &compat_lock, &end);
        qp = compat_ctx_find(fd) == ctx ? compat_qp_find(ctx, handle) : NULL;
        if (qp && qp->serial != serial) {
            qp = NULL;
        }
    }
    if (late && ms > SHORT_MS) {
        impatient_until_ms = compat_now_ms() + IMPATIENT_MS;
    }
    return qp;
}

int compat_qp_destroy(CompatCtx *ctx, uint32_t handle, CompatPass *pass,
                      void *opaque)
{
    CompatQp *qp = compat_qp_find(ctx, handle);
    int fd = ctx->fd;
    uint64_t conn;
    int err;

    if (qp) {
        qp_use_cqs(qp, false);
        if (qp->view.phase == COMPAT_UP && !qp->view.is_leaving) {
            qp = qp_leave(qp);
        }
    }
    if (!qp) {
        return pass(opaque);
    }
    /*
     * The driver must not be asked to accept or connect for a QP that it is
     * destroying, so the engine has to forget it first.  The driver's work
     * can take as long as a connection that is being made.
     */
    conn = qp->conn;
    compat_engine_forget(qp);
    qp_remove(qp);
    pthread_cond_broadcast(&compat_cond);
    pthread_mutex_unlock(&compat_lock);
    err = pass(opaque);
    pthread_mutex_lock(&compat_lock);
    if (!err) {
        compat_engine_reap(conn);
        free(qp);
        return 0;
    }
    /* Still there, but its connection is no longer watched. */
    qp->view.phase = COMPAT_IDLE;
    qp->view.is_leaving = false;
    qp->is_spent = true;
    if (compat_ctx_find(fd) == ctx) {
        qp_insert(qp);
        qp_use_cqs(qp, true);
    } else {
        free(qp);
    }
    return err;
}
