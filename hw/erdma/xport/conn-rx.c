/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: receiving side of a connection. */

#include "qemu/osdep.h"
#include "conn.h"

/* Why a segment was not kept; DROP_COUNT: it was */
#define KEPT    ERDMA_XPORT_DROP_COUNT

/* Extends the number of a DATA, PING or TERM; false: not of this connection */
static bool extend_pn(ErdmaXportConn *c, uint32_t number, uint64_t *pn)
{
    uint64_t expected = erdma_recvmap_largest(&c->rx.map) + 1;

    *pn = erdma_pn_extend(expected, number);
    return *pn >= c->rx.pn0 && erdma_pn_is_near(expected, *pn);
}

/* Does message header @hdr allow the segment? */
static bool fits_message(const ErdmaXportMsgHdr *hdr, uint32_t off,
                         uint32_t len, bool is_last)
{
    return off <= hdr->len && len <= hdr->len - off &&
           is_last == (len == hdr->len - off);
}

/*
 * Offers the segment [@off, @off + @len) of the message that is next in
 * order; it contains the position.
 */
static ErdmaXportRx deliver(ErdmaXportConn *c, const ErdmaXportMsgHdr *hdr,
                            uint32_t off, uint32_t len, bool is_last,
                            const uint8_t *data)
{
    ErdmaConnRx *rx = &c->rx;
    uint32_t skip = rx->off - off;
    ErdmaXportRx answer;

    if (rx->off == 0) {
        rx->hdr = *hdr;
    }
    answer = c->x->ops->rx(c->x->opaque, c->owner, &rx->hdr, rx->msn,
                           rx->off, data ? data + skip : NULL, len - skip,
                           is_last);
    switch (answer) {
    case ERDMA_XPORT_RX_OK:
        c->x->stats.rx_payload_bytes += len - skip;
        c->stats.rx_delivered += len - skip;
        rx->off = off + len;
        if (is_last) {
            rx->msn++;
            rx->off = 0;
        }
        break;
    case ERDMA_XPORT_RX_NOT_READY:
        c->x->stats.rx_not_ready++;
        rx->is_holding = true;
        break;
    default:
        rx->is_refused = true;
        break;
    }
    return answer;
}

/* Where does a segment lie relative to the position? */
typedef enum Place {
    PLACE_BEFORE,
    PLACE_NEXT,
    PLACE_AHEAD,
} Place;

static Place place_of(const ErdmaConnRx *rx, uint32_t msn, uint32_t off,
                      uint32_t len)
{
    if (msn != rx->msn) {
        return (int32_t)(msn - rx->msn) < 0 ? PLACE_BEFORE : PLACE_AHEAD;
    }
    if (off > rx->off) {
        return PLACE_AHEAD;
    }
    /* Only a whole message is empty, and then it was not delivered yet. */
    return len && off + len <= rx->off ? PLACE_BEFORE : PLACE_NEXT;
}

bool erdma_conn_rx_drain(ErdmaXportConn *c)
{
    ErdmaConnRx *rx = &c->rx;
    unsigned n = 0;
    ErdmaRxChunk *k;

    while (!c->is_closed && !rx->is_refused && !rx->is_holding &&
           (k = erdma_reasm_first(&rx->reasm)) != NULL) {
        Place place = place_of(rx, k->msn, k->off, k->len);

        if (place == PLACE_AHEAD) {
            break;
        }
        if (n++ == ERDMA_CONN_QUANTUM) {
            return true;
        }
        if (place == PLACE_NEXT) {
            const ErdmaXportMsgHdr *hdr = rx->off ? &rx->hdr : &k->hdr;

            /* What follows fills an old gap: tell the peer at once. */
            rx->want_ack = true;
            if (!fits_message(hdr, k->off, k->len, k->is_last)) {
                erdma_conn_drop(c, ERDMA_XPORT_DROP_MALFORMED, k->msn);
            } else if (deliver(c, hdr, k->off, k->len, k->is_last, k->data) !=
                       ERDMA_XPORT_RX_OK) {
                break;
            }
        }
        if (!c->is_closed) {
            erdma_reasm_pop(&rx->reasm);
        }
    }
    return false;
}

static ErdmaXportDrop store(ErdmaXportConn *c, const ErdmaWireData *d)
{
    switch (erdma_reasm_insert(&c->rx.reasm, d, c->x->cfg.rx_buffer)) {
    case ERDMA_REASM_FULL:
        return ERDMA_XPORT_DROP_NO_BUFFER;
    case ERDMA_REASM_DUPLICATE:
        c->x->stats.drops[ERDMA_XPORT_DROP_DUPLICATE]++;
        return KEPT;
    default:
        return KEPT;
    }
}

/*
 * Go-back-N: one NACK per gap, and another one when the sender has gone back
 * (its position did, under later numbers) and what is missing was lost again.
 */
static void note_gap(ErdmaConnRx *rx, const ErdmaWireData *d, uint64_t pn)
{
    bool is_back = pn > rx->ahead_pn &&
                   ((int32_t)(d->msn - rx->ahead_msn) < 0 ||
                    (d->msn == rx->ahead_msn && d->off <= rx->ahead_off));

    rx->want_nack |= !rx->is_nacked || is_back;
    rx->is_nacked = true;
    if (pn > rx->ahead_pn) {
        rx->ahead_pn = pn;
        rx->ahead_msn = d->msn;
        rx->ahead_off = d->off;
    }
}

/*
 * A segment under a new packet number.  Returns KEPT when the number may be
 * acked: the payload was consumed, is stored, or is known already.
 */
static ErdmaXportDrop take_segment(ErdmaXportConn *c, const ErdmaWireData *d,
                                   uint64_t pn)
{
    ErdmaConnRx *rx = &c->rx;
    const ErdmaXportMsgHdr *hdr = rx->off ? &rx->hdr : &d->hdr;

    if ((int32_t)(d->msn - rx->msn) > (int32_t)ERDMA_CONN_MSN_WINDOW) {
        return ERDMA_XPORT_DROP_WINDOW;
    }
    switch (place_of(rx, d->msn, d->off, d->len)) {
    case PLACE_BEFORE:
        /* Its ack was lost, or it was resent without need. */
        c->x->stats.drops[ERDMA_XPORT_DROP_DUPLICATE]++;
        rx->want_ack = true;
        return KEPT;
    case PLACE_AHEAD:
        c->x->stats.rx_out_of_order++;
        if (c->x->cfg.is_go_back_n) {
            note_gap(rx, d, pn);
            return ERDMA_XPORT_DROP_NO_BUFFER;
        }
        return store(c, d);
    default:
        break;
    }
    if (rx->is_holding) {
        return store(c, d);
    }
    if (!fits_message(hdr, d->off, d->len, d->is_last)) {
        return ERDMA_XPORT_DROP_MALFORMED;
    }
    rx->is_nacked = false;
    switch (deliver(c, hdr, d->off, d->len, d->is_last, d->payload)) {
    case ERDMA_XPORT_RX_OK:
        if (!c->is_closed && rx->reasm.n && erdma_conn_rx_drain(c)) {
            rx->want_resume = true;
        }
        return KEPT;
    case ERDMA_XPORT_RX_NOT_READY:
        return c->is_closed ? ERDMA_XPORT_DROP_NO_CONN : store(c, d);
    default:
        return ERDMA_XPORT_DROP_REFUSED;
    }
}

/* Counters for the echo; a change of the mark is reported at once. */
static void count_ecn(ErdmaXportConn *c, uint8_t ecn, size_t len)
{
    ErdmaConnRx *rx = &c->rx;
    bool is_ce = ecn == ERDMA_WIRE_ECN_CE;

    if (is_ce) {
        rx->ce_packets++;
        rx->ce_bytes += len + ERDMA_XPORT_IP_UDP_LEN;
        c->x->stats.rx_ce++;
    } else if (ecn != ERDMA_WIRE_ECN_NOT_ECT) {
        rx->ect_packets++;
    }
    if (is_ce != rx->is_last_ce) {
        rx->want_ack = true;
    }
    rx->is_last_ce = is_ce;
}

static void keep_stack(ErdmaConnRx *rx, const ErdmaWire *w)
{
    rx->int_info = w->int_info;
    if (w->int_stack) {
        if (!rx->int_stack) {
            rx->int_stack = g_malloc(ERDMA_WIRE_INT_MAX);
        }
        memcpy(rx->int_stack, w->int_stack, erdma_wire_int_bytes(w->int_info));
    }
}

/* When does the ack for new number @pn have to leave? */
static void plan_ack(ErdmaXportConn *c, const ErdmaWire *w, uint64_t pn,
                     bool is_in_order, uint64_t now_ns)
{
    ErdmaConnRx *rx = &c->rx;
    const ErdmaXportConfig *cfg = &c->x->cfg;

    rx->trigger_pn = pn;
    rx->trigger_ns = now_ns;
    keep_stack(rx, w);
    rx->n_unacked++;
    if (!is_in_order) {
        rx->gap_pn = pn;
    }
    /*
     * The packets right behind a gap are acked one by one: they are what the
     * sender counts to see the loss.
     */
    if (!is_in_order || w->u.data.is_ack_now || !cfg->ack_delay_ns ||
        rx->n_unacked >= cfg->ack_every ||
        (rx->gap_pn && pn - rx->gap_pn < cfg->packet_threshold)) {
        rx->want_ack = true;
    } else if (rx->ack_ns == ERDMA_XPORT_NEVER) {
        rx->ack_ns = now_ns + cfg->ack_delay_ns;
    }
}

void erdma_conn_rx_data(ErdmaXportConn *c, const ErdmaWire *w, uint8_t ip_ecn,
                        size_t len, uint64_t now_ns)
{
    ErdmaConnRx *rx = &c->rx;
    uint64_t pn;
    bool is_in_order;
    ErdmaXportDrop why;

    if (!extend_pn(c, w->number, &pn)) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_WINDOW, w->number);
        return;
    }
    erdma_conn_heard(c, false, now_ns);
    if (rx->is_refused) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_REFUSED, w->number);
        return;
    }
    c->x->stats.rx_data_packets++;
    if (erdma_recvmap_has(&rx->map, pn)) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_DUPLICATE, w->number);
        rx->want_ack = true;
        erdma_conn_activate(c);
        return;
    }

    why = take_segment(c, &w->u.data, pn);
    if (c->is_closed) {
        return;
    }
    if (why != KEPT) {
        erdma_conn_drop(c, why, w->number);
        /* Where we stand is all that we can say; not to a refused one. */
        if (why == ERDMA_XPORT_DROP_NO_BUFFER &&
            (!c->x->cfg.is_go_back_n || rx->want_nack)) {
            rx->want_ack = true;
            erdma_conn_activate(c);
        }
        return;
    }
    is_in_order = !rx->map.n || pn == erdma_recvmap_largest(&rx->map) + 1;
    erdma_recvmap_add(&rx->map, pn);
    count_ecn(c, ip_ecn == ERDMA_WIRE_ECN_CE ? ip_ecn : w->ecn, len);
    plan_ack(c, w, pn, is_in_order, now_ns);
    if (rx->want_ack || rx->want_resume) {
        erdma_conn_activate(c);
    }
}

void erdma_conn_rx_ping(ErdmaXportConn *c, const ErdmaWire *w,
                        uint64_t now_ns)
{
    uint64_t pn;

    if (!extend_pn(c, w->number, &pn)) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_WINDOW, w->number);
        return;
    }
    erdma_conn_heard(c, false, now_ns);
    if (c->term == ERDMA_TERM_NONE) {
        c->rx.want_ack = true;
    } else {
        /* It waits for something, so it has not heard that this is over. */
        c->want_term = true;
    }
    erdma_conn_activate(c);
}

void erdma_conn_rx_term(ErdmaXportConn *c, const ErdmaWire *w,
                        uint64_t now_ns)
{
    const ErdmaWireTerm *t = &w->u.term;
    uint64_t pn;

    if (!extend_pn(c, w->number, &pn)) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_WINDOW, w->number);
        return;
    }
    erdma_conn_heard(c, false, now_ns);
    c->want_term_ack = true;
    c->term_ack_number = w->number;
    erdma_conn_activate(c);
    if (c->is_peer_terminated) {
        return;
    }
    c->is_peer_terminated = true;
    c->x->stats.terminates_received++;
    /* What came before the failed message did succeed. */
    if (c->term == ERDMA_TERM_NONE &&
        erdma_conn_delivered(c, t->delivered_msn, t->delivered_off, now_ns)) {
        erdma_conn_msgs_done(c);
    }
    if (c->is_closed) {
        return;
    }
    c->tx.is_dead = true;
    if (!c->is_failed) {
        c->x->ops->terminated(c->x->opaque, c->owner, t->status, t->msn);
    }
}

void erdma_conn_rx_term_ack(ErdmaXportConn *c, const ErdmaWire *w,
                            uint64_t now_ns)
{
    if (c->term != ERDMA_TERM_SENDING ||
        w->number != (uint32_t)c->tx.sent.next) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_WINDOW, w->number);
        return;
    }
    c->term = ERDMA_TERM_DONE;
    c->term_ns = ERDMA_XPORT_NEVER;
    c->want_term = false;
}
