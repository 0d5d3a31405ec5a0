/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: what an ack tells the sending side of a connection. */

#include "qemu/osdep.h"
#include "conn.h"

/* Was everything before this position sent? */
static bool was_sent(const ErdmaConnTx *tx, uint32_t msn, uint32_t off)
{
    uint32_t end_msn = tx->unsent ? tx->unsent->msn : tx->next_msn;
    uint32_t end_off = tx->unsent ? tx->unsent->sent_len : 0;

    if (msn != end_msn) {
        return (int32_t)(msn - end_msn) < 0;
    }
    return off <= end_off;
}

/* The message with @msn, which is not delivered; NULL: not queued */
static ErdmaXportMsg *find_msg(const ErdmaConnTx *tx, uint32_t msn)
{
    ErdmaXportMsg *msg;

    /* Delivered ones wait in front for their callback. */
    QTAILQ_FOREACH(msg, &tx->msgs, next) {
        if (msg->msn == msn) {
            return msg;
        }
    }
    return NULL;
}

/*
 * Takes what lies between the old and the new position off the credit.  A
 * message's own cost goes with its first byte, so that nothing is left when
 * all that was sent is delivered.
 */
static void release(ErdmaXportConn *c, uint32_t msn, uint32_t off)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaXportMsg *msg = find_msg(tx, tx->una_msn);
    uint32_t from = tx->una_off;
    uint64_t bytes = 0;

    while (msg && msg->msn != msn) {
        bytes += msg->hdr.len - from;
        tx->undelivered -= from ? 0 : ERDMA_REASM_MSG_COST;
        from = 0;
        msg = QTAILQ_NEXT(msg, next);
    }
    if (off) {
        bytes += off - from;
        tx->undelivered -= from ? 0 : ERDMA_REASM_MSG_COST;
    }
    tx->undelivered -= bytes;
    c->stats.tx_delivered += bytes;
}

bool erdma_conn_delivered(ErdmaXportConn *c, uint32_t msn, uint32_t off,
                          uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    int32_t n = msn - tx->una_msn;
    ErdmaXportMsg *msg;

    if (n < 0 || (n == 0 && off <= tx->una_off)) {
        return true;            /* old news */
    }
    if (!was_sent(tx, msn, off)) {
        return false;
    }
    if (off) {
        msg = find_msg(tx, msn);
        /* The end of a message is the start of the next one. */
        if (!msg || off >= msg->hdr.len) {
            return false;
        }
    }
    release(c, msn, off);
    tx->una_msn = msn;
    tx->una_off = off;
    tx->progress_ns = now_ns;
    tx->n_persist = 0;
    tx->persist_ns = ERDMA_XPORT_NEVER;
    return true;
}

void erdma_conn_msgs_done(ErdmaXportConn *c)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaXportMsg *msg;

    /* A callback may close the connection or forget its messages. */
    while (!c->is_closed && (msg = QTAILQ_FIRST(&tx->msgs)) != NULL &&
           (int32_t)(msg->msn - tx->una_msn) < 0) {
        QTAILQ_REMOVE(&tx->msgs, msg, next);
        c->x->ops->msg_done(c->x->opaque, c->owner, msg);
    }
}

/*
 * Marks what the ranges say.  The walk is sequential in 64 bits, so ranges
 * that wrap around cannot come back from above.
 */
static void mark_ranges(ErdmaConnTx *tx, const ErdmaWireAck *a,
                        uint64_t largest, ErdmaAcked *acked)
{
    uint64_t above = largest;
    unsigned i;

    for (i = 0; i < a->n_ranges; i++) {
        uint32_t gap = (uint32_t)above - a->ranges[i].last;
        uint32_t len = a->ranges[i].last - a->ranges[i].first;
        uint64_t last = above - gap;

        if (above < tx->sent.base + gap) {
            break;
        }
        above = last - MIN(len, last - tx->sent.base);
        erdma_loss_ack_range(&tx->loss, &tx->sent, above, last, acked);
    }
}

static uint64_t sample_rtt(ErdmaXportConn *c, const ErdmaWireAck *a,
                           const ErdmaAcked *acked, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;

    if (!acked->has_trigger) {
        return 0;
    }
    erdma_rtt_sample(&tx->rtt, now_ns, now_ns - acked->trigger_sent_ns,
                     a->delay_ns);
    return tx->rtt.latest_ns;
}

/*
 * New marks, from the running totals of an ack that is newer than all before.
 * Totals that go back, or that miss packets known to have arrived, mean that
 * somebody on the way does not do ECN properly: then we do without.
 */
static void note_ecn(ErdmaXportConn *c, const ErdmaWireAck *a,
                     uint32_t *ce_packets, uint32_t *ce_bytes)
{
    ErdmaConnTx *tx = &c->tx;
    uint32_t ce = a->ce_packets - tx->ce_packets;
    uint32_t ect = a->ect_packets - tx->ect_packets;
    uint32_t seen = a->ce_packets + a->ect_packets;

    if (!c->x->cfg.use_ecn || tx->is_ecn_off) {
        return;
    }
    if ((int32_t)ce < 0 || (int32_t)ect < 0 ||
        (int32_t)(seen - tx->ect_acked) < 0) {
        tx->is_ecn_off = true;
        c->x->stats.ecn_failures++;
        erdma_conn_trace(c, ERDMA_XPORT_EV_ECN_OFF, a->ce_packets,
                         a->ect_packets);
        return;
    }
    *ce_packets = ce;
    *ce_bytes = a->ce_bytes - tx->ce_bytes;
    tx->ce_packets = a->ce_packets;
    tx->ce_bytes = a->ce_bytes;
    tx->ect_packets = a->ect_packets;
    if (ce) {
        c->x->stats.ce_echoed += ce;
        erdma_conn_trace(c, ERDMA_XPORT_EV_CE, ce, ect);
    }
}

/* Did the window limit us in this round or the last? */
static bool is_window_limited(const ErdmaConnTx *tx)
{
    uint64_t pipe = MAX(tx->max_pipe[0], tx->max_pipe[1]);

    if (tx->cc.cwnd < tx->cc.ssthresh) {
        return 2 * pipe >= tx->cc.cwnd;
    }
    return pipe + tx->cc.mss >= tx->cc.cwnd;
}

static void next_round(ErdmaConnTx *tx, const ErdmaAcked *acked)
{
    if (acked->has_pn && acked->largest_pn >= tx->round_end) {
        tx->round_end = tx->sent.next;
        tx->max_pipe[1] = tx->max_pipe[0];
        tx->max_pipe[0] = tx->sent.pipe;
    }
}

void erdma_conn_note_lost(ErdmaXportConn *c, const ErdmaLost *lost)
{
    if (lost->n) {
        c->x->stats.lost += lost->n;
        c->stats.lost += lost->n;
        erdma_conn_trace(c, ERDMA_XPORT_EV_LOST, (uint32_t)lost->first_pn,
                         lost->bytes);
    }
    c->tx.loss_ns = lost->deadline_ns;
}

/* A new episode: the algorithm reacts. */
static void congestion(ErdmaXportConn *c, ErdmaCcEvent event,
                       uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;

    if (event == ERDMA_CC_LOSS) {
        c->x->stats.loss_episodes++;
        c->stats.loss_episodes++;
    } else {
        c->x->stats.ecn_episodes++;
        c->stats.ecn_episodes++;
    }
    erdma_conn_trace(c, ERDMA_XPORT_EV_CONGESTION, event == ERDMA_CC_LOSS ?
                     ERDMA_XPORT_CAUSE_LOSS : ERDMA_XPORT_CAUSE_MARK,
                     tx->cc.cwnd);
    tx->cc.ops->congestion(&tx->cc, event, now_ns);
    erdma_conn_trace_cwnd(c);
}

void erdma_conn_detect_loss(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaLost lost;

    erdma_loss_detect(&tx->loss, &tx->sent, &tx->rtt, tx->una_msn,
                      tx->una_off, now_ns, &lost);
    erdma_conn_note_lost(c, &lost);
    if (lost.is_new_episode) {
        tx->want_resend = true;
        congestion(c, ERDMA_CC_LOSS, now_ns);
    }
}

/* An HPCC round has ended: what does the next one build on? */
static void trace_round(ErdmaXportConn *c)
{
    const ErdmaCc *cc = &c->tx.cc;
    ErdmaCcInfo info = { 0 };

    if (!c->x->ops->trace) {
        return;
    }
    cc->ops->info(cc, &info);
    if (cc->ops->has_alpha) {
        erdma_conn_trace(c, ERDMA_XPORT_EV_ALPHA, info.alpha * 1e6,
                         info.stage);
    } else {
        erdma_conn_trace(c, ERDMA_XPORT_EV_ROUND, info.u * 1e6, info.stage);
    }
}

static void control_congestion(ErdmaXportConn *c, const ErdmaWire *w,
                               bool is_newest, const ErdmaAcked *acked,
                               uint64_t rtt_ns, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaCcStack stack;
    uint64_t cwnd;
    uint32_t n_rounds = tx->cc.n_rounds;
    ErdmaCcAck ack = {
        .now_ns = now_ns,
        .bytes = acked->bytes,
        .pipe = tx->sent.pipe,
        .has_largest = acked->has_pn,
        .largest_pn = acked->largest_pn,
        .next_pn = tx->sent.next,
        .rtt_ns = rtt_ns,
        .srtt_ns = tx->rtt.srtt_ns,
        .min_rtt_ns = erdma_rtt_min(&tx->rtt),
        .is_limited = is_window_limited(tx),
    };

    if (is_newest) {
        note_ecn(c, &w->u.ack, &ack.ce_packets, &ack.ce_bytes);
    }
    if (ack.ce_packets &&
        erdma_loss_congestion_episode(&tx->loss, &tx->sent)) {
        congestion(c, ERDMA_CC_ECN, now_ns);
    }
    ack.is_in_recovery = tx->loss.is_in_recovery;
    if (tx->cc.ops->needs_int && erdma_wire_int_decode(w, &stack)) {
        c->x->stats.int_samples++;
        c->stats.int_samples++;
        ack.stack = &stack;
    }
    cwnd = tx->cc.cwnd;
    tx->cc.ops->ack(&tx->cc, &ack);
    if (tx->cc.n_rounds != n_rounds) {
        trace_round(c);
    }
    if (tx->cc.cwnd != cwnd) {
        erdma_conn_trace_cwnd(c);
    }
}

/* Only what was sent can be acked. */
static bool extend_ack(ErdmaXportConn *c, const ErdmaWire *w,
                       uint64_t *number, uint64_t *largest)
{
    ErdmaConnTx *tx = &c->tx;
    const ErdmaWireAck *a = &w->u.ack;

    *number = erdma_pn_extend(tx->next_ack, w->number);
    if (!erdma_pn_is_near(tx->next_ack, *number)) {
        return false;
    }
    *largest = erdma_pn_extend(tx->sent.next, a->largest_pn);
    return !a->n_ranges || *largest < tx->sent.next;
}

static void after_progress(ErdmaXportConn *c, const ErdmaAcked *acked,
                           uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;

    if (acked->n) {
        tx->base_ns = now_ns;
        tx->is_probed = false;
    }
    if (acked->n || tx->is_peer_rnr) {
        tx->n_timeouts = 0;
    }
}

/* The receiver of a go-back-N connection misses what comes at its position. */
static void go_back(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaLost lost;
    bool is_new = !tx->loss.is_in_recovery;

    erdma_loss_all(&tx->loss, &tx->sent, is_new, &lost);
    erdma_conn_note_lost(c, &lost);
    if (is_new && lost.n) {
        congestion(c, ERDMA_CC_LOSS, now_ns);
    }
}

/* Was the ack the end of an episode, or is it known to be a mistake? */
static void end_episode(ErdmaXportConn *c, const ErdmaAcked *acked,
                        uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    bool was_in_recovery = tx->loss.is_in_recovery;
    uint32_t n_lost = tx->loss.n_episode_lost;
    uint64_t cwnd = tx->cc.cwnd;

    if (erdma_loss_ack_done(&tx->loss, &tx->sent, acked, now_ns)) {
        c->x->stats.undos++;
        c->stats.undos++;
        tx->cc.ops->undo(&tx->cc);
        erdma_conn_trace(c, ERDMA_XPORT_EV_UNDO, cwnd, tx->cc.cwnd);
        erdma_conn_trace_cwnd(c);
    }
    if (was_in_recovery && !tx->loss.is_in_recovery) {
        erdma_conn_trace(c, ERDMA_XPORT_EV_RECOVERED, n_lost, tx->cc.cwnd);
    }
}

void erdma_conn_rx_ack(ErdmaXportConn *c, const ErdmaWire *w,
                       uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    const ErdmaWireAck *a = &w->u.ack;
    uint64_t number, largest, rtt_ns;
    bool is_newest;
    ErdmaAcked acked;

    if (!extend_ack(c, w, &number, &largest)) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_WINDOW, w->number);
        return;
    }
    c->x->stats.rx_acks++;
    if (c->term != ERDMA_TERM_NONE || c->is_peer_terminated || c->is_failed) {
        return;
    }
    if (!erdma_conn_delivered(c, a->msn, a->off, now_ns)) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_WINDOW, w->number);
        return;
    }
    erdma_conn_heard(c, true, now_ns);
    is_newest = number >= tx->next_ack;
    if (is_newest) {
        tx->next_ack = number + 1;
        tx->credit = a->credit;
        tx->is_peer_rnr = a->is_rnr;
    }

    erdma_loss_ack_begin(&tx->loss, erdma_pn_extend(largest, a->trigger_pn),
                         &acked);
    mark_ranges(tx, a, largest, &acked);
    tx->ect_acked += acked.n_ect;
    rtt_ns = sample_rtt(c, a, &acked, now_ns);
    if (acked.n) {
        erdma_conn_trace(c, ERDMA_XPORT_EV_ACKED, acked.bytes, rtt_ns);
    }
    if (acked.n_spurious) {
        c->x->stats.spurious += acked.n_spurious;
        c->stats.spurious += acked.n_spurious;
    }
    end_episode(c, &acked, now_ns);
    if (acked.n_spurious) {
        erdma_conn_trace(c, ERDMA_XPORT_EV_SPURIOUS,
                         (uint32_t)acked.spurious_pn, tx->loss.reo_mult);
    }
    after_progress(c, &acked, now_ns);
    erdma_conn_detect_loss(c, now_ns);
    if (a->is_nack && is_newest && c->x->cfg.is_go_back_n) {
        go_back(c, now_ns);
    }
    control_congestion(c, w, is_newest, &acked, rtt_ns, now_ns);
    next_round(tx, &acked);
    erdma_sentmap_trim(&tx->sent, now_ns - MIN(now_ns, erdma_conn_rto(c)));
    erdma_conn_activate(c);
    erdma_conn_msgs_done(c);
}
