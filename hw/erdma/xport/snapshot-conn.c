/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: a connection in snapshots, see snapshot.h. */

#include "qemu/osdep.h"
#include "snapshot-int.h"

static void save_stats(const ErdmaXportConn *c, ErdmaConnSnap *k)
{
    k->tx_packets = c->stats.tx_packets;
    k->rx_packets = c->stats.rx_packets;
    k->tx_delivered = c->stats.tx_delivered;
    k->rx_delivered = c->stats.rx_delivered;
    k->retransmits = c->stats.retransmits;
    k->lost = c->stats.lost;
    k->spurious = c->stats.spurious;
    k->probes = c->stats.probes;
    k->rtos = c->stats.rtos;
    k->int_samples = c->stats.int_samples;
    k->loss_episodes = c->stats.loss_episodes;
    k->ecn_episodes = c->stats.ecn_episodes;
    k->undos = c->stats.undos;
}

void erdma_xport_save_conn(const ErdmaXportConn *c, ErdmaXportSnap *s,
                           uint64_t now_ns)
{
    ErdmaConnSnap k = {
        .local_cookie = c->local_cookie,
        .peer_cookie = c->peer_cookie,
        .local_ip = c->local_ip,
        .peer_ip = c->peer_ip,
        .is_active = c->is_active,
        .timer_in_ns = c->timer.place ?
                       erdma_snap_in(c->timer.when_ns, now_ns) :
                       ERDMA_XPORT_NEVER,
        .is_failed = c->is_failed,
        .is_heard = c->is_heard,
        .is_peer_terminated = c->is_peer_terminated,
        .want_term = c->want_term,
        .want_term_ack = c->want_term_ack,
        .term = c->term,
        .term_status = c->term_status,
        .n_terms = c->n_terms,
        .term_msn = c->term_msn,
        .term_ack_number = c->term_ack_number,
        .term_in_ns = erdma_snap_in(c->term_ns, now_ns),
    };

    /* The simulator's payloads have no content. */
    assert(!c->depth && !c->x->cfg.is_hollow);
    erdma_snap_save_tx(&c->tx, &k, s, now_ns);
    erdma_snap_save_cc(&c->tx.cc, &k, s, now_ns);
    erdma_snap_save_rx(&c->rx, &k, s, now_ns);
    save_stats(c, &k);
    *ERDMA_SNAP_ADD(s, conns) = k;
}

#define CONN(_field, _max)  ERDMA_SNAP_RANGE(ErdmaConnSnap, _field, 0, _max)
#define PN(_field) \
    ERDMA_SNAP_RANGE(ErdmaConnSnap, _field, ERDMA_SNAP_PN_MIN, \
                     ERDMA_SNAP_PN_MAX)
#define WINDOW(_field) \
    ERDMA_SNAP_RANGE(ErdmaConnSnap, _field, 1, ERDMA_SNAP_WINDOW_MAX)

static const ErdmaSnapRange conn_ranges[] = {
    CONN(term, ERDMA_TERM_DONE),
    CONN(credit, UINT32_MAX),
    PN(next_ack),
    PN(base),
    CONN(n_sents, ERDMA_SENTMAP_MAX << 1),
    CONN(n_top, ERDMA_SNAP_TOP),
    ERDMA_SNAP_RANGE(ErdmaConnSnap, reo_mult, 1, UINT8_MAX),
    CONN(n_recoveries, ERDMA_LOSS_REO_RECOVERIES),
    CONN(rack_rtt_ns, ERDMA_SNAP_TIME_MAX),
    CONN(recovery_end, ERDMA_SNAP_PN_MAX),
    CONN(spurious_end, ERDMA_SNAP_PN_MAX),
    CONN(latest_ns, ERDMA_SNAP_TIME_MAX),
    CONN(srtt_ns, ERDMA_SNAP_TIME_MAX),
    CONN(rttvar_ns, ERDMA_SNAP_TIME_MAX),
    CONN(round_end, ERDMA_SNAP_PN_MAX),
    CONN(max_pipe0, ERDMA_SNAP_WINDOW_MAX),
    CONN(max_pipe1, ERDMA_SNAP_WINDOW_MAX),
    CONN(n_timeouts, 200),
    WINDOW(cwnd),
    CONN(reno_prior_cwnd, ERDMA_SNAP_WINDOW_MAX),
    CONN(reno_remainder, ERDMA_SNAP_WINDOW_MAX),
    PN(pn0),
    PN(floor),
    CONN(n_ranges, ERDMA_RECVMAP_RANGES),
    PN(rx_next_ack),
    PN(trigger_pn),
    CONN(gap_pn, ERDMA_SNAP_PN_MAX),
    CONN(ahead_pn, ERDMA_SNAP_PN_MAX),
};

static bool check_cc(const ErdmaConnSnap *k, char **error)
{
    double debt = erdma_snap_double(k->pacer_debt);
    double max = ERDMA_SNAP_WINDOW_MAX;

    if (k->cc > ERDMA_XPORT_CC_HPCC_INT && k->cc != ERDMA_XPORT_CC_NONE) {
        return FAIL(k, error, "cc is %u, must be 0 to %d or %d", k->cc,
                    ERDMA_XPORT_CC_HPCC_INT, ERDMA_XPORT_CC_NONE);
    }
    /* The pacer's debt is the one double that can be negative. */
    if (!(debt <= max && debt >= -max)) {
        return FAIL(k, error, "pacer_debt is %g, must be %g to %g", debt,
                    -max, max);
    }
    return true;
}

/* Does the end that @k has come to stop what it has to? */
static bool check_end(const ErdmaConnSnap *k, char **error)
{
    bool is_over = k->is_failed || k->term != ERDMA_TERM_NONE;

    if ((is_over || k->is_peer_terminated) && !k->is_dead) {
        return FAIL(k, error, "is_dead is 0, must not be after the end");
    }
    if (is_over && !k->is_refused) {
        return FAIL(k, error, "is_refused is 0, must not be after the end");
    }
    if (k->is_failed && k->want_resume) {
        return FAIL(k, error, "want_resume is %u, must be 0 with is_failed",
                    k->want_resume);
    }
    return true;
}

/* Are there as many elements as @k says? */
static bool check_counts(const ErdmaConnSnap *k, const ErdmaXportLoad *l,
                         char **error)
{
    const ErdmaXportSnap *s = l->snap;

    if (k->n_sents > s->n_sents - l->sent) {
        return FAIL(k, error, "n_sents is %u, must be at most %u",
                    k->n_sents, s->n_sents - l->sent);
    }
    if (k->n_ranges > s->n_ranges - l->range) {
        return FAIL(k, error, "n_ranges is %u, must be at most %u",
                    k->n_ranges, s->n_ranges - l->range);
    }
    if (k->n_chunks > s->n_chunks - l->chunk) {
        return FAIL(k, error, "n_chunks is %u, must be at most %u",
                    k->n_chunks, s->n_chunks - l->chunk);
    }
    return true;
}

static void load_life(ErdmaXportConn *c, const ErdmaConnSnap *k,
                      uint64_t now_ns)
{
    c->is_failed = k->is_failed;
    c->is_heard = k->is_heard;
    c->is_peer_terminated = k->is_peer_terminated;
    c->want_term = k->want_term;
    c->want_term_ack = k->want_term_ack;
    c->term = k->term;
    c->term_status = k->term_status;
    c->n_terms = k->n_terms;
    c->term_msn = k->term_msn;
    c->term_ack_number = k->term_ack_number;
    c->term_ns = erdma_snap_at(k->term_in_ns, now_ns);
    if (k->timer_in_ns != ERDMA_XPORT_NEVER) {
        erdma_timerheap_set(&c->x->timers, &c->timer,
                            erdma_snap_at(k->timer_in_ns, now_ns));
    }
}

static void load_stats(ErdmaXportConn *c, const ErdmaConnSnap *k)
{
    c->stats.tx_packets = k->tx_packets;
    c->stats.rx_packets = k->rx_packets;
    c->stats.tx_delivered = k->tx_delivered;
    c->stats.rx_delivered = k->rx_delivered;
    c->stats.retransmits = k->retransmits;
    c->stats.lost = k->lost;
    c->stats.spurious = k->spurious;
    c->stats.probes = k->probes;
    c->stats.rtos = k->rtos;
    c->stats.int_samples = k->int_samples;
    c->stats.loss_episodes = k->loss_episodes;
    c->stats.ecn_episodes = k->ecn_episodes;
    c->stats.undos = k->undos;
}

ErdmaXportConn *erdma_xport_load_conn(ErdmaXport *x, ErdmaXportLoad *l,
                                      void *owner,
                                      ErdmaXportMsg *const *msgs,
                                      uint32_t n_msgs, char **error)
{
    const ErdmaConnSnap *k = erdma_xport_load_peek(l);
    ErdmaXportConnParams p = { .owner = owner };
    ErdmaXportConn *c;

    if (!k) {
        erdma_snap_fail(error, "transport: n_conns is %u, too few", l->conn);
        return NULL;
    }
    if (!erdma_snap_check(conn_ranges, G_N_ELEMENTS(conn_ranges), k,
                          "connection", k->local_cookie, error) ||
        !check_cc(k, error) || !check_end(k, error) ||
        !check_counts(k, l, error)) {
        return NULL;
    }
    p.local_cookie = k->local_cookie;
    p.peer_cookie = k->peer_cookie;
    p.local_ip = k->local_ip;
    p.peer_ip = k->peer_ip;
    p.cc = k->cc;
    c = erdma_xport_conn_open(x, &p, l->now_ns);
    if (!c) {
        FAIL(k, error, "local_cookie is there twice");
        return NULL;
    }
    if (!erdma_snap_load_tx(c, k, msgs, n_msgs, l, error) ||
        !erdma_snap_load_rx(c, k, l, error)) {
        erdma_xport_conn_close(c);
        return NULL;
    }
    l->conn++;
    load_life(c, k, l->now_ns);
    load_stats(c, k);
    if (!k->is_active) {
        QTAILQ_REMOVE(&x->active, c, active_next);
        c->is_active = false;
        erdma_conn_schedule(c);
    }
    return c;
}
