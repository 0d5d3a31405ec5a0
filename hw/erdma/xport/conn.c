/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: life of a connection, its timers, its turn to send. */

#include "qemu/osdep.h"
#include "conn.h"

/* This many transmissions are fetched ahead of an ack. */
#define FETCH_SENT  16

const ErdmaCcOps *erdma_conn_cc_ops(uint8_t cc)
{
    switch (cc) {
    case ERDMA_XPORT_CC_NEWRENO:
        return &erdma_cc_newreno;
    case ERDMA_XPORT_CC_HPCC_RTT:
        return &erdma_cc_hpcc_rtt;
    case ERDMA_XPORT_CC_HPCC_ECN:
        return &erdma_cc_hpcc_ecn;
    case ERDMA_XPORT_CC_HPCC_INT:
        return &erdma_cc_hpcc_int;
    case ERDMA_XPORT_CC_NONE:
        return &erdma_cc_none;
    default:
        return &erdma_cc_cubic;
    }
}

uint8_t erdma_conn_cc_code(const ErdmaCc *cc)
{
    uint8_t code = ERDMA_XPORT_CC_NEWRENO;

    while (code < ERDMA_XPORT_CC_NONE && erdma_conn_cc_ops(code) != cc->ops) {
        code++;
    }
    return code;
}

static void init_tx(ErdmaXportConn *c, const ErdmaXportConnParams *p,
                    uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    uint64_t pn0 = erdma_pn_first(p->tx_pn0);

    QTAILQ_INIT(&tx->msgs);
    tx->credit = c->x->cfg.rx_buffer;
    tx->next_ack = erdma_pn_first(p->rx_pn0) - ERDMA_CONN_PN_SLACK;
    erdma_sentmap_init(&tx->sent, &c->x->sent_pool, pn0);
    erdma_loss_init(&tx->loss, pn0, c->x->cfg.packet_threshold);
    erdma_rtt_init(&tx->rtt);
    erdma_pacer_init(&tx->pacer, now_ns);
    tx->cc.ops = erdma_conn_cc_ops(p->cc);
    tx->cc.cfg = &c->x->cfg.cc;
    tx->cc.mss = c->x->cfg.mtu;
    tx->cc.initial_window = c->x->cfg.initial_window;
    tx->cc.ops->init(&tx->cc);
    tx->round_end = pn0;
    tx->progress_ns = now_ns;
    tx->loss_ns = tx->pacer_ns = tx->persist_ns = ERDMA_XPORT_NEVER;
    /* Tells a peer that was early that we are here now. */
    tx->want_ping = true;
}

static void init_rx(ErdmaXportConn *c, const ErdmaXportConnParams *p,
                    uint64_t now_ns)
{
    ErdmaConnRx *rx = &c->rx;

    rx->pn0 = erdma_pn_first(p->rx_pn0) - ERDMA_CONN_PN_SLACK;
    erdma_recvmap_init(&rx->map, rx->pn0);
    erdma_reasm_init(&rx->reasm, &c->x->reasm_pool);
    rx->next_ack = erdma_pn_first(p->tx_pn0);
    rx->trigger_pn = rx->pn0 - 1;
    rx->trigger_ns = now_ns;
    rx->ack_ns = ERDMA_XPORT_NEVER;
}

ErdmaXportConn *erdma_xport_conn_open(ErdmaXport *x,
                                      const ErdmaXportConnParams *p,
                                      uint64_t now_ns)
{
    ErdmaXportConn *c;

    if (erdma_connmap_find(&x->conns, p->local_cookie)) {
        if (x->recorder) {
            erdma_recorder_opened(x->recorder, p, NULL, now_ns);
        }
        return NULL;
    }
    c = g_new0(ErdmaXportConn, 1);
    c->x = x;
    c->owner = p->owner;
    c->local_cookie = p->local_cookie;
    c->peer_cookie = p->peer_cookie;
    c->local_ip = p->local_ip;
    c->peer_ip = p->peer_ip;
    c->term_ns = ERDMA_XPORT_NEVER;
    init_tx(c, p, now_ns);
    init_rx(c, p, now_ns);
    erdma_connmap_add(&x->conns, c->local_cookie, c);
    erdma_conn_activate(c);
    if (x->recorder) {
        erdma_recorder_opened(x->recorder, p, c, now_ns);
    }
    return c;
}

void erdma_conn_destroy(ErdmaXportConn *c)
{
    if (c->tx.cc.ops->destroy) {
        c->tx.cc.ops->destroy(&c->tx.cc);
    }
    erdma_sentmap_destroy(&c->tx.sent);
    erdma_recvmap_destroy(&c->rx.map);
    erdma_reasm_destroy(&c->rx.reasm);
    g_free(c->rx.int_stack);
    g_free(c);
}

void erdma_xport_conn_close(ErdmaXportConn *c)
{
    ErdmaXport *x = c->x;

    if (x->recorder) {
        erdma_recorder_close(x->recorder, c);
    }
    erdma_connmap_remove(&x->conns, c->local_cookie);
    erdma_timerheap_cancel(&x->timers, &c->timer);
    if (c->is_active) {
        QTAILQ_REMOVE(&x->active, c, active_next);
        c->is_active = false;
    }
    c->is_closed = true;
    if (!c->depth) {
        erdma_conn_destroy(c);
    }
}

uint32_t erdma_xport_conn_n_held(const ErdmaXportConn *c)
{
    return c->rx.reasm.n;
}

void erdma_conn_fetch(const ErdmaXportConn *c)
{
    const ErdmaConnTx *tx = &c->tx;
    const ErdmaConnRx *rx = &c->rx;
    uint64_t pn;

    __builtin_prefetch(c->owner);
    if (tx->sent.ring) {
        uint64_t end = MIN(tx->sent.next + 1, tx->sent.base + FETCH_SENT);

        for (pn = tx->sent.base; pn < end; pn += 64 / sizeof(ErdmaSent)) {
            __builtin_prefetch(erdma_sentmap_get(&tx->sent, pn));
        }
    }
    if (!QTAILQ_EMPTY(&tx->msgs)) {
        erdma_fetch(QTAILQ_FIRST(&tx->msgs), sizeof(ErdmaXportMsg));
    }
    if (tx->unsent) {
        erdma_fetch(tx->unsent, sizeof(ErdmaXportMsg));
    }
    if (rx->map.n) {
        __builtin_prefetch(erdma_recvmap_at(&rx->map, rx->map.n - 1));
    }
    if (rx->reasm.n) {
        __builtin_prefetch(&rx->reasm.v[rx->reasm.head]);
    }
}

void erdma_conn_activate(ErdmaXportConn *c)
{
    if (!c->is_active && !c->is_closed) {
        c->is_active = true;
        QTAILQ_INSERT_TAIL(&c->x->active, c, active_next);
    }
}

void erdma_conn_enter(ErdmaXportConn *c)
{
    c->depth++;
    c->tx.cc.mss = c->x->cfg.mtu;
}

void erdma_conn_leave(ErdmaXportConn *c)
{
    if (--c->depth) {
        return;
    }
    if (c->is_closed) {
        erdma_conn_destroy(c);
    } else if (c->rx.is_refused && c->rx.reasm.n) {
        erdma_reasm_destroy(&c->rx.reasm);
    }
}

void erdma_xport_conn_send(ErdmaXportConn *c, ErdmaXportMsg *msg)
{
    ErdmaConnTx *tx = &c->tx;

    if (c->x->recorder) {
        erdma_recorder_send(c->x->recorder, c, &msg->hdr);
    }
    msg->msn = tx->next_msn++;
    msg->sent_len = 0;
    msg->is_sent = false;
    QTAILQ_INSERT_TAIL(&tx->msgs, msg, next);
    if (tx->is_dead) {
        return;
    }
    if (!tx->unsent) {
        tx->unsent = msg;
    }
    tx->n_unsent++;
    erdma_conn_activate(c);
}

uint32_t erdma_xport_conn_unsent(const ErdmaXportConn *c)
{
    return c->tx.n_unsent;
}

void erdma_xport_conn_expect(ErdmaXportConn *c, bool is_expecting)
{
    if (c->x->recorder) {
        erdma_recorder_expect(c->x->recorder, c, is_expecting);
    }
    if (c->tx.is_expecting != is_expecting) {
        c->tx.is_expecting = is_expecting;
        erdma_conn_activate(c);
    }
}

void erdma_xport_conn_rx_resume(ErdmaXportConn *c)
{
    if (c->x->recorder) {
        erdma_recorder_resume(c->x->recorder, c);
    }
    if (c->is_failed) {
        return;                 /* nothing is taken any more */
    }
    c->rx.want_resume = true;
    erdma_conn_activate(c);
}

/* Nothing that was to be sent, or to be acked, concerns us any more. */
static void stop_sending(ErdmaXportConn *c)
{
    ErdmaConnTx *tx = &c->tx;

    QTAILQ_INIT(&tx->msgs);
    tx->unsent = NULL;
    tx->n_unsent = 0;
    tx->undelivered = 0;
    tx->is_dead = true;
    tx->is_expecting = false;
    tx->want_probe = tx->want_resend = tx->want_ping = false;
    tx->loss_ns = tx->pacer_ns = tx->persist_ns = ERDMA_XPORT_NEVER;
    tx->loss.n_resend = 0;
    erdma_sentmap_destroy(&tx->sent);
    tx->sent.base = tx->sent.next;
    tx->sent.pipe = 0;
    tx->sent.n_inflight = 0;
}

void erdma_xport_conn_terminate(ErdmaXportConn *c, uint8_t status,
                                uint32_t msn)
{
    if (c->x->recorder) {
        erdma_recorder_terminate(c->x->recorder, c, status, msn);
    }
    if (c->term != ERDMA_TERM_NONE) {
        return;
    }
    stop_sending(c);
    c->rx.is_refused = true;
    if (c->is_peer_terminated) {
        /* It has ended the connection itself and wants to hear no more. */
        c->term = ERDMA_TERM_DONE;
        return;
    }
    c->term = ERDMA_TERM_SENDING;
    c->term_status = status;
    c->term_msn = msn;
    c->want_term = true;
    erdma_conn_activate(c);
}

void erdma_xport_conn_info(const ErdmaXportConn *c, ErdmaXportConnInfo *info)
{
    const ErdmaConnTx *tx = &c->tx;

    memset(info, 0, sizeof(*info));
    info->cc_name = tx->cc.ops->name;
    info->cwnd = tx->cc.cwnd;
    info->ssthresh = tx->cc.ssthresh;
    if (tx->cc.ops->info) {
        tx->cc.ops->info(&tx->cc, &info->cc);
    }
    info->local_cookie = c->local_cookie;
    info->peer_cookie = c->peer_cookie;
    info->local_ip = c->local_ip;
    info->peer_ip = c->peer_ip;
    info->is_in_recovery = tx->loss.is_in_recovery;
    info->is_ecn_on = c->x->cfg.use_ecn && !tx->is_ecn_off;
    info->is_peer_rnr = tx->is_peer_rnr;
    info->is_dead = tx->is_dead;
    info->n_timeouts = tx->n_timeouts;
    info->reordering = tx->loss.reo_mult;
    info->inflight = tx->sent.pipe;
    info->pacing_rate = c->x->cfg.is_paced ?
                        tx->cc.ops->rate(&tx->cc, tx->rtt.srtt_ns) : 0;
    info->srtt_ns = tx->rtt.srtt_ns;
    info->rttvar_ns = tx->rtt.rttvar_ns;
    info->min_rtt_ns = erdma_rtt_min(&tx->rtt);
    info->rto_ns = erdma_rtt_backoff(erdma_conn_rto(c), tx->n_timeouts,
                                     c->x->cfg.rto_max_ns);
    info->tx_msn = tx->next_msn;
    info->una_msn = tx->una_msn;
    info->rx_msn = c->rx.msn;
    info->unsent_msgs = tx->n_unsent;
    info->rx_held_bytes = c->rx.reasm.bytes;
    info->tx_packets = c->stats.tx_packets;
    info->rx_packets = c->stats.rx_packets;
    info->tx_delivered = c->stats.tx_delivered;
    info->rx_delivered = c->stats.rx_delivered;
    info->retransmits = c->stats.retransmits;
    info->lost = c->stats.lost;
    info->spurious = c->stats.spurious;
    info->probes = c->stats.probes;
    info->rtos = c->stats.rtos;
    info->ce_echoed = tx->ce_packets;
    info->int_samples = c->stats.int_samples;
    info->loss_episodes = c->stats.loss_episodes;
    info->ecn_episodes = c->stats.ecn_episodes;
    info->undos = c->stats.undos;
}

void erdma_conn_trace_cwnd(ErdmaXportConn *c)
{
    const ErdmaCc *cc = &c->tx.cc;
    ErdmaCcInfo info = { 0 };

    if (!c->x->ops->trace) {
        return;
    }
    if (cc->ops->info) {
        cc->ops->info(cc, &info);
    }
    erdma_conn_trace(c, ERDMA_XPORT_EV_CWND, cc->cwnd,
                     info.is_hpcc ? info.reference : cc->ssthresh);
}

uint64_t erdma_conn_rto(const ErdmaXportConn *c)
{
    const ErdmaXportConfig *cfg = &c->x->cfg;

    return erdma_rtt_rto(&c->tx.rtt, cfg->initial_rto_ns, cfg->rto_min_ns,
                         cfg->ack_delay_ns);
}

void erdma_conn_heard(ErdmaXportConn *c, bool is_ack, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    ErdmaLost lost;

    tx->is_answered = true;
    if (!tx->sent.n_inflight) {
        tx->n_timeouts = 0;
    }
    if (c->is_heard) {
        return;
    }
    c->is_heard = true;
    /*
     * We were early: the peer, which opened only now, cannot have received
     * what is outstanding.  Nothing was congested, so nothing slows down.
     */
    if (!is_ack && !tx->is_dead && !tx->loss.n_top && tx->sent.n_inflight) {
        erdma_loss_all(&tx->loss, &tx->sent, false, &lost);
        erdma_conn_note_lost(c, &lost);
        tx->n_timeouts = 0;
        erdma_conn_activate(c);
    }
}

static void fail(ErdmaXportConn *c, ErdmaXportError error)
{
    c->is_failed = true;
    c->tx.is_dead = true;
    c->rx.is_refused = true;
    c->rx.want_resume = false;
    c->tx.loss_ns = c->tx.pacer_ns = c->tx.persist_ns = ERDMA_XPORT_NEVER;
    c->rx.ack_ns = ERDMA_XPORT_NEVER;
    c->x->ops->conn_error(c->x->opaque, c->owner, error);
}

static uint64_t pto(const ErdmaXportConn *c)
{
    const ErdmaXportConfig *cfg = &c->x->cfg;

    /* A single packet may wait for its ack as long as the peer likes. */
    return erdma_rtt_pto(&c->tx.rtt, cfg->initial_rto_ns,
                         c->tx.sent.n_inflight == 1 ? cfg->ack_delay_ns : 0);
}

static uint64_t rto_deadline(const ErdmaXportConn *c)
{
    return c->tx.base_ns + erdma_rtt_backoff(erdma_conn_rto(c),
                                             c->tx.n_timeouts,
                                             c->x->cfg.rto_max_ns);
}

/* One probe per tail, and none once the timeout has fired */
static uint64_t probe_deadline(const ErdmaXportConn *c)
{
    const ErdmaConnTx *tx = &c->tx;

    return tx->is_probed || tx->n_timeouts ? ERDMA_XPORT_NEVER :
           MAX(tx->base_ns, tx->last_send_ns) + pto(c);
}

static bool is_rnr_over(const ErdmaXportConn *c, uint64_t now_ns)
{
    return now_ns - c->tx.progress_ns >= c->x->cfg.rnr_timeout_ns;
}

static void probe(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;

    /* If this comes late, the timeout shall still leave it a chance. */
    tx->base_ns = MAX(tx->base_ns, now_ns - MIN(now_ns, pto(c)));
    tx->is_probed = true;
    tx->want_probe = true;
    c->x->stats.probes++;
    c->stats.probes++;
    erdma_conn_trace(c, ERDMA_XPORT_EV_PROBE, (uint32_t)tx->sent.next,
                     now_ns - tx->base_ns);
}

static void timeout(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    uint64_t pipe = tx->sent.pipe;
    ErdmaLost lost;

    if (tx->is_peer_rnr && is_rnr_over(c, now_ns)) {
        fail(c, ERDMA_XPORT_ERR_RNR);
        return;
    }
    if (tx->n_timeouts >= c->x->cfg.retry_max) {
        fail(c, ERDMA_XPORT_ERR_RETRY);
        return;
    }
    tx->n_timeouts++;
    tx->base_ns = now_ns;
    c->x->stats.rtos++;
    c->stats.rtos++;
    erdma_conn_trace(c, ERDMA_XPORT_EV_RTO, tx->n_timeouts,
                     rto_deadline(c) - now_ns);
    erdma_loss_all(&tx->loss, &tx->sent, true, &lost);
    erdma_conn_note_lost(c, &lost);
    erdma_conn_trace(c, ERDMA_XPORT_EV_CONGESTION, ERDMA_XPORT_CAUSE_TIMEOUT,
                     tx->cc.cwnd);
    tx->cc.ops->timeout(&tx->cc, pipe, now_ns);
    erdma_conn_trace_cwnd(c);
}

/*
 * All was received, but nothing is consumed, or an answer does not come: is
 * the peer alive, and for how long?
 */
static bool is_waiting(const ErdmaXportConn *c)
{
    const ErdmaConnTx *tx = &c->tx;

    return !tx->sent.n_inflight && !tx->loss.n_resend && !tx->is_dead &&
           (tx->undelivered || tx->is_expecting) && !erdma_conn_has_credit(c);
}

static void persist(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;

    tx->persist_ns = ERDMA_XPORT_NEVER;
    if (!is_waiting(c)) {
        return;
    }
    if (tx->n_persist && !tx->is_answered) {
        if (tx->n_timeouts >= c->x->cfg.retry_max) {
            fail(c, ERDMA_XPORT_ERR_RETRY);
            return;
        }
        /* However long it was well: from now on as fast as a timeout. */
        tx->n_persist = tx->n_timeouts++;
    } else if (tx->undelivered && is_rnr_over(c, now_ns)) {
        fail(c, ERDMA_XPORT_ERR_RNR);
        return;
    }
    if (tx->n_persist < UINT8_MAX) {
        tx->n_persist++;
    }
    tx->is_answered = false;
    tx->want_ping = true;
}

static void plan_persist(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;
    uint64_t wait_ns;

    if (!is_waiting(c)) {
        tx->persist_ns = ERDMA_XPORT_NEVER;
        return;
    }
    if (tx->persist_ns == ERDMA_XPORT_NEVER) {
        wait_ns = erdma_rtt_backoff(erdma_conn_rto(c), tx->n_persist,
                                    c->x->cfg.rto_max_ns);
        tx->persist_ns = now_ns + wait_ns;
    }
}

static void term_timer(ErdmaXportConn *c, uint64_t now_ns)
{
    if (c->n_terms > c->x->cfg.retry_max) {
        c->term = ERDMA_TERM_DONE;
        c->term_ns = ERDMA_XPORT_NEVER;
    } else {
        c->term_ns = ERDMA_XPORT_NEVER;
        c->want_term = true;
    }
}

static void run_timers(ErdmaXportConn *c, uint64_t now_ns)
{
    ErdmaConnTx *tx = &c->tx;

    if (c->term_ns <= now_ns) {
        term_timer(c, now_ns);
    }
    if (c->rx.ack_ns <= now_ns) {
        c->rx.want_ack = true;
    }
    if (tx->is_dead) {
        return;
    }
    if (tx->loss_ns <= now_ns) {
        erdma_conn_detect_loss(c, now_ns);
    }
    if (tx->sent.n_inflight) {
        if (probe_deadline(c) <= now_ns) {
            probe(c, now_ns);
        } else if (rto_deadline(c) <= now_ns) {
            timeout(c, now_ns);
        }
    } else if (tx->persist_ns <= now_ns) {
        persist(c, now_ns);
    }
}

void erdma_conn_schedule(ErdmaXportConn *c)
{
    const ErdmaConnTx *tx = &c->tx;
    uint64_t when_ns = MIN(c->term_ns, c->rx.ack_ns);

    if (c->is_closed) {
        return;
    }
    if (!tx->is_dead) {
        when_ns = MIN(when_ns, tx->loss_ns);
        when_ns = MIN(when_ns, tx->pacer_ns);
        when_ns = MIN(when_ns, tx->persist_ns);
        if (tx->sent.n_inflight) {
            when_ns = MIN(when_ns, probe_deadline(c));
            when_ns = MIN(when_ns, rto_deadline(c));
        }
    }
    /*
     * Deadlines mostly move back, with every ack.  The heap only learns of
     * earlier ones; a timer that fires early finds nothing due.
     */
    if (when_ns != ERDMA_XPORT_NEVER &&
        (!c->timer.place || when_ns < c->timer.when_ns)) {
        erdma_timerheap_set(&c->x->timers, &c->timer, when_ns);
    }
}

/* Control packets that wait; false: no budget or no path for the rest */
static bool run_control(ErdmaXportConn *c, uint64_t now_ns, unsigned *budget)
{
    ErdmaXport *x = c->x;

    while (c->want_term_ack || c->want_term || c->rx.want_ack ||
           c->tx.want_ping) {
        if (!*budget || x->is_blocked) {
            return false;
        }
        (*budget)--;
        if (c->want_term_ack) {
            erdma_conn_tx_term_ack(c);
        } else if (c->want_term) {
            erdma_conn_tx_term(c);
            c->term_ns = now_ns + erdma_rtt_backoff(erdma_conn_rto(c),
                                                    c->n_terms - 1,
                                                    x->cfg.rto_max_ns);
        } else if (c->rx.want_ack) {
            erdma_conn_tx_ack(c, now_ns);
        } else {
            erdma_conn_tx_ping(c);
        }
        if (c->is_closed) {
            return false;
        }
    }
    return true;
}

/* Data packets; true when some are left that may leave now. */
static bool run_data(ErdmaXportConn *c, uint64_t now_ns, unsigned *budget)
{
    ErdmaXport *x = c->x;
    uint32_t n_unsent = c->tx.n_unsent;
    unsigned n = 0;
    bool is_more = true;

    while (n < ERDMA_CONN_QUANTUM && *budget && !x->is_blocked) {
        if (!erdma_conn_tx_data(c, now_ns)) {
            is_more = false;
            break;
        }
        n++;
        (*budget)--;
    }
    if (!c->is_closed && !c->tx.is_dead && c->tx.n_unsent < n_unsent &&
        c->tx.n_unsent < ERDMA_XPORT_LOW_WATER) {
        n_unsent = c->tx.n_unsent;
        x->ops->tx_room(x->opaque, c->owner);
        is_more |= c->tx.n_unsent > n_unsent;
    }
    return is_more && !c->is_closed && !c->tx.is_dead;
}

/* An owner that always says "again" must not keep us here for ever. */
static void run_resume(ErdmaXportConn *c, unsigned *budget)
{
    ErdmaConnRx *rx = &c->rx;

    if (rx->want_resume && *budget) {
        (*budget)--;
        rx->is_holding = false;
        rx->want_resume = false;
        if (erdma_conn_rx_drain(c)) {
            rx->want_resume = true;
        }
    }
}

bool erdma_conn_run(ErdmaXportConn *c, uint64_t now_ns, unsigned *budget)
{
    bool is_more = true;

    erdma_conn_enter(c);
    run_timers(c, now_ns);
    if (!c->is_closed) {
        run_resume(c, budget);
    }
    if (!c->is_closed && run_control(c, now_ns, budget)) {
        is_more = run_data(c, now_ns, budget);
    }
    if (c->is_closed) {
        is_more = false;
    } else {
        is_more |= c->rx.want_resume;
        if (!is_more) {
            plan_persist(c, now_ns);
        }
        erdma_conn_schedule(c);
    }
    erdma_conn_leave(c);
    return is_more;
}
