/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: sending side of a connection, building packets. */

#include "qemu/osdep.h"
#include "conn.h"

static void fill_common(const ErdmaXportConn *c, ErdmaWire *w,
                        ErdmaWireType type, uint32_t number)
{
    w->type = type;
    w->ecn = ERDMA_WIRE_ECN_NOT_ECT;
    w->dst_cookie = c->peer_cookie;
    w->src_cookie = c->local_cookie;
    w->number = number;
    w->int_info = 0;
    w->int_stack = NULL;
}

static uint8_t *tx_payload(ErdmaXportConn *c)
{
    return c->x->tx_buf + ERDMA_XPORT_HEADROOM;
}

/* Hands the first @len bytes of the buffer to the path. */
static void transmit(ErdmaXportConn *c, size_t len, uint8_t ecn)
{
    ErdmaXport *x = c->x;
    ErdmaDatagram dg = {
        .src_ip = c->local_ip,
        .dst_ip = c->peer_ip,
        .src_port = x->cfg.udp_port,
        .dst_port = x->cfg.udp_port,
        .ecn = ecn,
        .data = tx_payload(c),
        .len = len,
    };

    x->stats.tx_packets++;
    x->stats.tx_bytes += len;
    c->stats.tx_packets++;
    if (!x->ops->transmit(x->opaque, &dg)) {
        x->is_blocked = true;
    }
}

static void transmit_control(ErdmaXportConn *c, const ErdmaWire *w)
{
    size_t len = erdma_wire_encode(w, tx_payload(c));

    transmit(c, len, ERDMA_WIRE_ECN_NOT_ECT);
}

void erdma_conn_tx_ack(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnRx *rx = &c->rx;
    ErdmaWire w;
    ErdmaWireAck *a = &w.u.ack;

    fill_common(c, &w, ERDMA_WIRE_ACK, rx->next_ack++);
    w.int_info = rx->int_info;
    w.int_stack = rx->int_info ? rx->int_stack : NULL;
    a->msn = rx->msn;
    a->off = rx->off;
    a->largest_pn = erdma_recvmap_largest(&rx->map);
    a->trigger_pn = rx->trigger_pn;
    a->delay_ns = MIN(now_ns - rx->trigger_ns, UINT32_MAX);
    a->credit = c->x->cfg.rx_buffer;
    a->ce_packets = rx->ce_packets;
    a->ce_bytes = rx->ce_bytes;
    a->ect_packets = rx->ect_packets;
    a->is_rnr = rx->is_holding;
    a->is_nack = rx->want_nack;
    a->n_ranges = erdma_recvmap_report(&rx->map, rx->trigger_pn, a->ranges,
                                       ERDMA_CONN_ACK_RANGES);
    rx->want_ack = rx->want_nack = false;
    rx->ack_ns = ERDMA_XPORT_NEVER;
    rx->n_unacked = 0;
    c->x->stats.tx_acks++;
    transmit_control(c, &w);
}

void erdma_conn_tx_ping(ErdmaXportConn *c)
{
    ErdmaWire w;

    c->tx.want_ping = false;
    fill_common(c, &w, ERDMA_WIRE_PING, c->tx.sent.next);
    transmit_control(c, &w);
}

void erdma_conn_tx_term(ErdmaXportConn *c)
{
    ErdmaWire w;

    c->want_term = false;
    if (!c->n_terms) {
        c->x->stats.terminates_sent++;
    }
    c->n_terms = MIN(c->n_terms + 1, UINT8_MAX);
    fill_common(c, &w, ERDMA_WIRE_TERM, c->tx.sent.next);
    w.u.term.status = c->term_status;
    w.u.term.msn = c->term_msn;
    w.u.term.delivered_msn = c->rx.msn;
    w.u.term.delivered_off = c->rx.off;
    transmit_control(c, &w);
}

void erdma_conn_tx_term_ack(ErdmaXportConn *c)
{
    ErdmaWire w;

    c->want_term_ack = false;
    fill_common(c, &w, ERDMA_WIRE_TERM_ACK, c->term_ack_number);
    transmit_control(c, &w);
}

static uint8_t int_info(const ErdmaXportConfig *cfg)
{
    return erdma_wire_int_info(cfg->is_int_compact ? ERDMA_WIRE_INT_COMPACT :
                               ERDMA_WIRE_INT_WIDE, cfg->int_hops);
}

/* The message has to get through first. */
bool erdma_xport_int_fits(const ErdmaXportConfig *cfg)
{
    return cfg->int_hops && erdma_wire_int_bytes(int_info(cfg)) <=
           (cfg->mtu - ERDMA_XPORT_IP_UDP_LEN - ERDMA_WIRE_COMMON_LEN) / 2;
}

/* What one packet carries */
typedef struct Segment {
    ErdmaXportMsg *msg;
    uint32_t off;
    uint32_t len;
    uint8_t int_info;
    bool is_ack_now;
} Segment;

/* Cuts [@off, @off + @len) of @msg to what fits now. */
static Segment cut(const ErdmaXportConn *c, ErdmaXportMsg *msg, uint32_t off,
                   uint32_t len)
{
    const ErdmaXportConfig *cfg = &c->x->cfg;
    Segment s = { .msg = msg, .off = off };
    uint32_t room = cfg->mtu - ERDMA_XPORT_IP_UDP_LEN -
                    ERDMA_WIRE_COMMON_LEN - ERDMA_WIRE_DATA_LEN;

    if (c->tx.cc.ops->needs_int && erdma_xport_int_fits(cfg)) {
        s.int_info = int_info(cfg);
        room -= erdma_wire_int_bytes(s.int_info);
    }
    if (off == 0) {
        room -= erdma_wire_msg_hdr_len(msg->hdr.op);
    }
    s.len = MIN(len, room);
    return s;
}

static uint32_t packet_bytes(const Segment *s)
{
    return ERDMA_XPORT_IP_UDP_LEN + ERDMA_WIRE_COMMON_LEN +
           ERDMA_WIRE_DATA_LEN + erdma_wire_int_bytes(s->int_info) +
           (s->off ? 0 : erdma_wire_msg_hdr_len(s->msg->hdr.op)) + s->len;
}

static void note_sent(ErdmaXportConn *c, const Segment *s, uint32_t bytes,
                      bool is_ect, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaSent *e;

    if (!tx->sent.n_inflight) {
        tx->base_ns = now_ns;
        tx->is_probed = false;
    }
    tx->last_send_ns = now_ns;
    e = erdma_sentmap_add(&tx->sent, bytes);
    e->sent_ns = now_ns;
    e->msg = s->msg;
    e->msn = s->msg->msn;
    e->off = s->off;
    e->len = s->len;
    e->is_ect = is_ect;
    tx->max_pipe[0] = MAX(tx->max_pipe[0], tx->sent.pipe);
    erdma_pacer_sent(&tx->pacer, bytes);
    c->x->stats.tx_data_packets++;
    c->x->stats.tx_payload_bytes += s->len;
}

/*
 * Sends @s under a new packet number.  False: the payload cannot be had, or
 * the owner did away with the connection while it was asked for it.
 */
static bool send_segment(ErdmaXportConn *c, const Segment *s, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    bool is_ect = c->x->cfg.use_ecn && !tx->is_ecn_off;
    uint32_t bytes = packet_bytes(s);
    ErdmaWire w;
    ErdmaWireData *d = &w.u.data;
    size_t hdr_len;

    fill_common(c, &w, ERDMA_WIRE_DATA, tx->sent.next);
    w.ecn = is_ect ? ERDMA_WIRE_ECN_ECT0 : ERDMA_WIRE_ECN_NOT_ECT;
    w.int_info = s->int_info;
    d->msn = s->msg->msn;
    d->off = s->off;
    d->len = s->len;
    d->is_first = s->off == 0;
    d->is_last = s->len == s->msg->hdr.len - s->off;
    d->is_ack_now = s->is_ack_now;
    d->hdr.op = s->msg->hdr.op;
    if (d->is_first) {
        d->hdr = s->msg->hdr;
    }
    hdr_len = erdma_wire_encode(&w, tx_payload(c));
    if (s->len && !c->x->ops->pull(c->x->opaque, c->owner, s->msg, s->off,
                                   tx_payload(c) + hdr_len, s->len)) {
        tx->is_dead = true;
    }
    if (tx->is_dead || c->is_closed) {
        return false;
    }
    note_sent(c, s, bytes, is_ect, now_ns);
    transmit(c, hdr_len + s->len, w.ecn);
    return !c->is_closed && !tx->is_dead;
}

/* The last transmission that the peer may have missed, or NULL */
static ErdmaSent *last_in_flight(const ErdmaConnTx *tx, uint64_t *pn)
{
    for (*pn = tx->sent.next; (*pn)-- > tx->sent.base; ) {
        ErdmaSent *e = erdma_sentmap_get(&tx->sent, *pn);

        if (e->state == ERDMA_SENT_INFLIGHT &&
            (int32_t)(e->msn - tx->una_msn) >= 0) {
            return e;
        }
    }
    return NULL;
}

bool erdma_conn_has_credit(const ErdmaXportConn *c)
{
    const ErdmaConnTx *tx = &c->tx;

    /* With nothing outstanding one packet always goes, against deadlock. */
    return tx->unsent && (!tx->undelivered || tx->undelivered +
                          ERDMA_REASM_MSG_COST + c->x->cfg.mtu <= tx->credit);
}

/* Does window, and then pacer, allow @bytes now? */
static bool may_send(ErdmaXportConn *c, uint32_t bytes, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    const ErdmaXportConfig *cfg = &c->x->cfg;
    uint64_t rate, burst = 0;

    if (tx->sent.pipe && !tx->want_resend &&
        tx->sent.pipe + (tx->cc.ops->is_strict ? bytes : bytes / 2) >
        tx->cc.cwnd) {
        return false;
    }
    if (!cfg->is_paced) {
        return true;
    }
    rate = tx->cc.ops->rate(&tx->cc, tx->rtt.srtt_ns);
    if (!rate) {
        return true;
    }
    if (cfg->pacing_quantum_ns) {
        burst = MAX(2.0 * cfg->mtu,
                    2.0 * rate * cfg->pacing_quantum_ns / 1e9);
        /*
         * On a busy host the timer is late by more than the burst.  Time spent
         * in waiting for it must not be lost: we would never reach the rate,
         * nor fill the window and let it grow.
         */
        burst = tx->is_held ? UINT64_MAX : burst;
    }
    if (erdma_pacer_is_open(&tx->pacer, now_ns, rate, burst)) {
        return true;
    }
    tx->pacer_ns = erdma_pacer_next(&tx->pacer, rate, cfg->pacing_quantum_ns);
    return false;
}

static bool tx_resend(ErdmaXportConn *c, ErdmaSent *e, uint64_t pn,
                      bool is_forced, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    Segment s = cut(c, e->msg, e->off, e->len);

    if (!is_forced && !may_send(c, packet_bytes(&s), now_ns)) {
        return false;
    }
    s.is_ack_now = !tx->unsent && tx->loss.n_resend <= 1;
    tx->want_probe = tx->want_resend = false;
    erdma_conn_trace(c, ERDMA_XPORT_EV_RETRANSMIT, (uint32_t)tx->sent.next,
                     (uint32_t)pn);
    c->x->stats.retransmits++;
    c->stats.retransmits++;
    if (!send_segment(c, &s, now_ns)) {
        return false;
    }
    /* The ring may have moved. */
    e = erdma_sentmap_get(&tx->sent, pn);
    if (e->state == ERDMA_SENT_LOST && !e->is_resent) {
        e->off += s.len;
        e->len -= s.len;
        if (!e->len) {
            erdma_loss_resent(&tx->loss, e);
        }
    }
    return true;
}

static bool tx_new(ErdmaXportConn *c, bool is_forced, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaXportMsg *msg = tx->unsent;
    Segment s = cut(c, msg, msg->sent_len, msg->hdr.len - msg->sent_len);
    bool is_last = s.len == msg->hdr.len - s.off;

    if (!is_forced && !may_send(c, packet_bytes(&s), now_ns)) {
        return false;
    }
    /* Nobody else will make the peer ack the last packet for now. */
    s.is_ack_now = is_last && !QTAILQ_NEXT(msg, next);
    tx->want_probe = false;
    erdma_conn_trace(c, ERDMA_XPORT_EV_SEND, (uint32_t)tx->sent.next, s.len);
    if (!send_segment(c, &s, now_ns)) {
        return false;
    }
    if (!tx->undelivered) {
        tx->progress_ns = now_ns;
    }
    tx->undelivered += s.len + (s.off ? 0 : ERDMA_REASM_MSG_COST);
    msg->sent_len += s.len;
    if (is_last) {
        msg->is_sent = true;
        tx->unsent = QTAILQ_NEXT(msg, next);
        tx->n_unsent--;
    }
    return true;
}

/*
 * Is there room to remember one more transmission?  If not, time makes some:
 * what was lost and sent again is forgotten after a while.
 */
static bool has_room(ErdmaXportConn *c, bool is_resend, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    uint64_t rto_ns;

    if (!erdma_sentmap_is_full(&tx->sent, is_resend)) {
        return true;
    }
    rto_ns = erdma_conn_rto(c);
    erdma_sentmap_trim(&tx->sent, now_ns - MIN(now_ns, rto_ns));
    if (!erdma_sentmap_is_full(&tx->sent, is_resend)) {
        return true;
    }
    tx->pacer_ns = now_ns + rto_ns;
    return false;
}

static ErdmaSent *next_resend(ErdmaXportConn *c, uint64_t *pn)
{
    ErdmaConnTx *tx = &c->tx;

    if (c->x->cfg.is_go_back_n) {
        return erdma_loss_first_resend(&tx->loss, &tx->sent, tx->una_msn,
                                       tx->una_off, pn);
    }
    return erdma_loss_next_resend(&tx->loss, &tx->sent, tx->una_msn,
                                  tx->una_off, pn);
}

bool erdma_conn_tx_data(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    bool is_forced = tx->want_probe;
    uint64_t pn;
    ErdmaSent *e;

    tx->is_held = tx->pacer_ns != ERDMA_XPORT_NEVER;
    tx->pacer_ns = ERDMA_XPORT_NEVER;
    if (tx->is_dead) {
        tx->want_probe = tx->want_resend = false;
        return false;
    }
    if (!has_room(c, tx->loss.n_resend > 0, now_ns)) {
        return false;
    }
    e = next_resend(c, &pn);
    if (e) {
        return tx_resend(c, e, pn, is_forced, now_ns);
    }
    tx->want_resend = false;
    if (erdma_conn_has_credit(c)) {
        return tx_new(c, is_forced, now_ns);
    }
    if (is_forced) {
        e = last_in_flight(tx, &pn);
        tx->want_probe = false;
        if (e) {
            /* A copy; which of the two arrives does not matter. */
            return tx_resend(c, e, pn, true, now_ns);
        }
    }
    return false;
}
