/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: the recorder, see record.h.  It puts itself between the
 * transport and its owner's callbacks and is told of the owner's calls.
 */

#include "qemu/osdep.h"
#include "conn.h"
#include "record.h"
#include "recorder.h"

/* Owner of a connection while it is recorded */
typedef struct Owner {
    void *real;
    uint32_t cookie;
    QTAILQ_ENTRY(Owner) next;
} Owner;

struct ErdmaRecorder {
    const ErdmaXportOps *ops;   /* the owner's */
    void *opaque;
    ErdmaXportWrite *write;
    void *write_opaque;
    uint64_t last_ns;
    uint64_t n_inputs;
    uint64_t hash;
    /* Of closed connections: the call that we are in may still name them. */
    QTAILQ_HEAD(, Owner) closed;
};

static void emit(ErdmaRecorder *r, const uint8_t *data, size_t len)
{
    r->hash = erdma_record_hash(r->hash, data, len);
    r->write(r->write_opaque, data, len);
}

static void put(ErdmaRecorder *r, ErdmaRecordType type, const uint64_t *arg)
{
    uint8_t buf[1 + ERDMA_RECORD_ARGS_MAX * 10], *p = buf;
    unsigned i;

    if (type <= ERDMA_RECORD_RETURN) {
        r->n_inputs++;
    }
    *p++ = type;
    for (i = 0; i < erdma_record_types[type].n_args; i++) {
        uint64_t v = arg[i];

        for (; v >= 0x80; v >>= 7) {
            *p++ = v | 0x80;
        }
        *p++ = v;
    }
    emit(r, buf, p - buf);
}

#define PUT(r, type, ...)   put(r, type, (const uint64_t[]) { __VA_ARGS__ })

static uint64_t elapsed(ErdmaRecorder *r, uint64_t now_ns)
{
    uint64_t ns = now_ns - r->last_ns;

    r->last_ns = now_ns;
    return ns;
}

/* A call of the owner's that is not inside of another one */
static void begin(ErdmaRecorder *r)
{
    Owner *o;

    while ((o = QTAILQ_FIRST(&r->closed)) != NULL) {
        QTAILQ_REMOVE(&r->closed, o, next);
        g_free(o);
    }
}

static uint32_t cookie(const Owner *o)
{
    return o ? o->cookie : 0;
}

void erdma_recorder_opened(ErdmaRecorder *r, const ErdmaXportConnParams *p,
                           ErdmaXportConn *c, uint64_t now_ns)
{
    PUT(r, ERDMA_RECORD_OPEN, elapsed(r, now_ns), p->local_cookie,
        p->peer_cookie, p->local_ip, p->peer_ip, p->tx_pn0, p->rx_pn0,
        p->cc, c != NULL);
    if (c) {
        Owner *o = g_new0(Owner, 1);

        o->real = c->owner;
        o->cookie = p->local_cookie;
        c->owner = o;
    }
}

void erdma_recorder_close(ErdmaRecorder *r, ErdmaXportConn *c)
{
    Owner *o = c->owner;

    PUT(r, ERDMA_RECORD_CLOSE, o->cookie);
    QTAILQ_INSERT_TAIL(&r->closed, o, next);
}

void erdma_recorder_send(ErdmaRecorder *r, ErdmaXportConn *c,
                         const ErdmaXportMsgHdr *h)
{
    PUT(r, ERDMA_RECORD_SEND, cookie(c->owner), h->op, h->is_solicited,
        h->len, h->imm, h->rkey, h->raddr, h->read_len, h->req_msn,
        h->swap_add, h->compare, h->original);
}

void erdma_recorder_expect(ErdmaRecorder *r, ErdmaXportConn *c,
                           bool is_expecting)
{
    PUT(r, ERDMA_RECORD_EXPECT, cookie(c->owner), is_expecting);
}

void erdma_recorder_resume(ErdmaRecorder *r, ErdmaXportConn *c)
{
    PUT(r, ERDMA_RECORD_RESUME, cookie(c->owner));
}

void erdma_recorder_terminate(ErdmaRecorder *r, ErdmaXportConn *c,
                              uint8_t status, uint32_t msn)
{
    PUT(r, ERDMA_RECORD_TERMINATE, cookie(c->owner), status, msn);
}

void erdma_recorder_input(ErdmaRecorder *r, const ErdmaDatagram *dg,
                          uint64_t now_ns)
{
    size_t len = erdma_record_head_len(dg->data, dg->len);

    begin(r);
    PUT(r, ERDMA_RECORD_INPUT, elapsed(r, now_ns), dg->src_ip, dg->dst_ip,
        dg->ecn, dg->len, len);
    emit(r, dg->data, len);
}

void erdma_recorder_unblock(ErdmaRecorder *r)
{
    put(r, ERDMA_RECORD_UNBLOCK, NULL);
}

void erdma_recorder_poll(ErdmaRecorder *r, uint64_t now_ns, unsigned max)
{
    begin(r);
    PUT(r, ERDMA_RECORD_POLL, elapsed(r, now_ns), max);
}

void erdma_recorder_polled(ErdmaRecorder *r, uint64_t next_ns)
{
    /* Small for a deadline, 0 for none */
    PUT(r, ERDMA_RECORD_POLLED, next_ns == ERDMA_XPORT_NEVER ? 0 :
        next_ns - r->last_ns + 1);
}

void erdma_recorder_set_mtu(ErdmaRecorder *r, uint32_t mtu)
{
    PUT(r, ERDMA_RECORD_SET_MTU, mtu);
}

static bool rec_transmit(void *opaque, const ErdmaDatagram *dg)
{
    ErdmaRecorder *r = opaque;
    bool go_on;

    PUT(r, ERDMA_RECORD_TRANSMIT, dg->src_ip, dg->dst_ip, dg->ecn, dg->len,
        erdma_record_head_digest(dg->data, dg->len));
    go_on = r->ops->transmit(r->opaque, dg);
    PUT(r, ERDMA_RECORD_RETURN, go_on);
    return go_on;
}

static bool rec_pull(void *opaque, void *owner, ErdmaXportMsg *msg,
                     uint32_t off, uint8_t *buf, uint32_t len)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;
    bool is_there;

    PUT(r, ERDMA_RECORD_PULL, o->cookie, msg->msn, off, len);
    is_there = r->ops->pull(r->opaque, o->real, msg, off, buf, len);
    PUT(r, ERDMA_RECORD_RETURN, is_there);
    return is_there;
}

static ErdmaXportRx rec_rx(void *opaque, void *owner,
                           const ErdmaXportMsgHdr *hdr, uint32_t msn,
                           uint32_t off, const uint8_t *data, uint32_t len,
                           bool is_last)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;
    ErdmaXportRx answer;

    PUT(r, ERDMA_RECORD_RX, o->cookie, msn, off, len, is_last,
        erdma_record_hdr_digest(hdr));
    answer = r->ops->rx(r->opaque, o->real, hdr, msn, off, data, len,
                        is_last);
    PUT(r, ERDMA_RECORD_RETURN, answer);
    return answer;
}

static void rec_msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;

    PUT(r, ERDMA_RECORD_MSG_DONE, o->cookie, msg->msn);
    r->ops->msg_done(r->opaque, o->real, msg);
    PUT(r, ERDMA_RECORD_RETURN, 0);
}

static void rec_tx_room(void *opaque, void *owner)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;

    PUT(r, ERDMA_RECORD_TX_ROOM, o->cookie);
    r->ops->tx_room(r->opaque, o->real);
    PUT(r, ERDMA_RECORD_RETURN, 0);
}

static void rec_terminated(void *opaque, void *owner, uint8_t status,
                           uint32_t msn)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;

    PUT(r, ERDMA_RECORD_TERMINATED, o->cookie, status, msn);
    r->ops->terminated(r->opaque, o->real, status, msn);
    PUT(r, ERDMA_RECORD_RETURN, 0);
}

static void rec_conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;

    PUT(r, ERDMA_RECORD_CONN_ERROR, o->cookie, error);
    r->ops->conn_error(r->opaque, o->real, error);
    PUT(r, ERDMA_RECORD_RETURN, 0);
}

static void rec_trace(void *opaque, void *owner, ErdmaXportEvent event,
                      uint64_t a, uint64_t b)
{
    ErdmaRecorder *r = opaque;
    Owner *o = owner;

    PUT(r, ERDMA_RECORD_TRACE, cookie(o), event, a, b);
    if (r->ops->trace) {
        r->ops->trace(r->opaque, o ? o->real : NULL, event, a, b);
    }
}

static const ErdmaXportOps recorder_ops = {
    .transmit = rec_transmit,
    .pull = rec_pull,
    .rx = rec_rx,
    .msg_done = rec_msg_done,
    .tx_room = rec_tx_room,
    .terminated = rec_terminated,
    .conn_error = rec_conn_error,
    .trace = rec_trace,
};

void erdma_xport_record(ErdmaXport *x, ErdmaXportWrite *write, void *opaque)
{
    ErdmaRecorder *r = g_new0(ErdmaRecorder, 1);
    g_autofree char *config = erdma_record_config(&x->cfg);
    g_autofree char *text = g_strconcat(ERDMA_RECORD_HEADER, config, "\n",
                                        NULL);

    assert(!x->recorder && !x->conns.n);
    r->ops = x->ops;
    r->opaque = x->opaque;
    r->write = write;
    r->write_opaque = opaque;
    r->hash = ERDMA_RECORD_HASH_BEGIN;
    QTAILQ_INIT(&r->closed);
    emit(r, (const uint8_t *)text, strlen(text));
    x->ops = &recorder_ops;
    x->opaque = r;
    x->recorder = r;
}

void erdma_xport_record_end(ErdmaXport *x)
{
    ErdmaRecorder *r = x->recorder;
    uint32_t i;

    if (!r) {
        return;
    }
    PUT(r, ERDMA_RECORD_END, r->n_inputs, r->hash);
    begin(r);
    for (i = 0; i <= x->conns.mask; i++) {
        ErdmaXportConn *c = x->conns.v[i].conn;

        if (c) {
            Owner *o = c->owner;

            c->owner = o->real;
            g_free(o);
        }
    }
    x->ops = r->ops;
    x->opaque = r->opaque;
    x->recorder = NULL;
    g_free(r);
}
