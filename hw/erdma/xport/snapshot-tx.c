/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: the sending side of a connection in snapshots.
 *
 * What can be computed from the rest is, when it is loaded: bytes in flight,
 * what waits to be sent again, the cost of what is not delivered.  So no two
 * fields can contradict each other in it.
 */

#include "qemu/osdep.h"
#include "snapshot-int.h"

static void save_sents(const ErdmaConnTx *tx, ErdmaXportSnap *s,
                       uint64_t now_ns)
{
    uint64_t pn;

    for (pn = tx->sent.base; pn < tx->sent.next; pn++) {
        const ErdmaSent *e = erdma_sentmap_get(&tx->sent, pn);

        *ERDMA_SNAP_ADD(s, sents) = (ErdmaSentSnap) {
            .age_ns = erdma_snap_age(e->sent_ns, now_ns),
            .msn = e->msn,
            /* What lies there once it is acked says nothing any more. */
            .off = e->state == ERDMA_SENT_ACKED ? 0 : e->off,
            .len = e->state == ERDMA_SENT_ACKED ? 0 : e->len,
            .bytes = e->bytes,
            .state = e->state,
            .is_ect = e->is_ect,
            .is_resent = e->is_resent,
        };
    }
}

static void save_loss(const ErdmaLoss *l, ErdmaConnSnap *k, uint64_t now_ns)
{
    k->n_top = l->n_top;
    memcpy(k->top, l->top, l->n_top * sizeof(l->top[0]));
    k->has_rack = l->has_rack;
    k->is_reordering_seen = l->is_reordering_seen;
    k->is_in_recovery = l->is_in_recovery;
    k->reo_mult = l->reo_mult;
    k->n_recoveries = l->n_recoveries;
    k->rack_age_ns = erdma_snap_age(l->rack_sent_ns, now_ns);
    k->rack_rtt_ns = l->rack_rtt_ns;
    k->recovery_end = l->recovery_end;
    k->spurious_end = l->spurious_end;
    k->n_episode_lost = l->n_episode_lost;
    k->n_episode_spurious = l->n_episode_spurious;
}

static void save_rtt(const ErdmaRtt *r, ErdmaConnSnap *k, uint64_t now_ns)
{
    k->has_rtt = r->has_sample;
    k->latest_ns = r->latest_ns;
    k->srtt_ns = r->srtt_ns;
    k->rttvar_ns = r->rttvar_ns;
    k->min0_ns = r->min_ns[0];
    k->min1_ns = r->min_ns[1];
    k->bucket_age_ns = erdma_snap_age(r->bucket_start_ns, now_ns);
}

static void save_tx_timers(const ErdmaConnTx *tx, ErdmaConnSnap *k,
                           uint64_t now_ns)
{
    k->base_age_ns = erdma_snap_age(tx->base_ns, now_ns);
    k->last_send_age_ns = erdma_snap_age(tx->last_send_ns, now_ns);
    k->loss_in_ns = erdma_snap_in(tx->loss_ns, now_ns);
    k->pacer_in_ns = erdma_snap_in(tx->pacer_ns, now_ns);
    k->persist_in_ns = erdma_snap_in(tx->persist_ns, now_ns);
    k->progress_age_ns = erdma_snap_age(tx->progress_ns, now_ns);
    k->pacer_age_ns = erdma_snap_age(tx->pacer.last_ns, now_ns);
    k->pacer_debt = erdma_snap_bits(tx->pacer.debt);
    k->n_timeouts = tx->n_timeouts;
    k->n_persist = tx->n_persist;
}

void erdma_snap_save_tx(const ErdmaConnTx *tx, ErdmaConnSnap *k,
                        ErdmaXportSnap *s, uint64_t now_ns)
{
    k->next_msn = tx->next_msn;
    k->una_msn = tx->una_msn;
    k->una_off = tx->una_off;
    k->unsent_msn = tx->unsent ? tx->unsent->msn : tx->next_msn;
    k->unsent_off = tx->unsent ? tx->unsent->sent_len : 0;
    k->credit = tx->credit;
    k->next_ack = tx->next_ack;
    k->base = tx->sent.base;
    k->n_sents = tx->sent.next - tx->sent.base;
    if (tx->is_dead) {
        /* Nobody will look at what was sent, nor at the messages. */
        k->una_msn = k->unsent_msn = tx->next_msn;
        k->una_off = k->unsent_off = 0;
        k->base = tx->sent.next;
        k->n_sents = 0;
    } else {
        save_sents(tx, s, now_ns);
    }
    save_loss(&tx->loss, k, now_ns);
    save_rtt(&tx->rtt, k, now_ns);
    save_tx_timers(tx, k, now_ns);
    k->round_end = tx->round_end;
    k->max_pipe0 = tx->max_pipe[0];
    k->max_pipe1 = tx->max_pipe[1];
    k->tx_ce_packets = tx->ce_packets;
    k->tx_ce_bytes = tx->ce_bytes;
    k->tx_ect_packets = tx->ect_packets;
    k->ect_acked = tx->ect_acked;
    k->is_held = tx->is_held;
    k->is_probed = tx->is_probed;
    k->is_dead = tx->is_dead;
    k->is_peer_rnr = tx->is_peer_rnr;
    k->is_answered = tx->is_answered;
    k->is_ecn_off = tx->is_ecn_off;
    k->is_expecting = tx->is_expecting;
    k->want_probe = tx->want_probe;
    k->want_resend = tx->want_resend;
    k->want_ping = tx->want_ping;
}

/* Number of the message with @msn, or @n_msgs and above for others */
static uint32_t msg_number(const ErdmaConnSnap *k, uint32_t msn)
{
    return msn - k->una_msn;
}

static uint32_t msg_len(const ErdmaConnSnap *k, ErdmaXportMsg *const *msgs,
                        uint32_t msn)
{
    return msgs[msg_number(k, msn)]->hdr.len;
}

/* The delivered position, the one of sending, and the end, in this order */
static bool check_positions(const ErdmaConnSnap *k,
                            ErdmaXportMsg *const *msgs, uint32_t n_msgs,
                            char **error)
{
    uint32_t n_sent = msg_number(k, k->unsent_msn);

    if (k->next_msn - k->una_msn != n_msgs) {
        return FAIL(k, error, "next_msn is %u, must be una_msn (%u) plus %u",
                    k->next_msn, k->una_msn, n_msgs);
    }
    if (n_sent > n_msgs) {
        return FAIL(k, error, "unsent_msn is %u, must be %u to %u",
                    k->unsent_msn, k->una_msn, k->next_msn);
    }
    if (k->unsent_off && (n_sent == n_msgs || k->unsent_off >=
                          msg_len(k, msgs, k->unsent_msn))) {
        return FAIL(k, error, "unsent_off is %u, beyond the message's end",
                    k->unsent_off);
    }
    if (k->una_off && (!n_msgs || k->una_off >= msgs[0]->hdr.len ||
                       (!n_sent && k->una_off > k->unsent_off))) {
        return FAIL(k, error, "una_off is %u, beyond what was sent",
                    k->una_off);
    }
    return true;
}

static bool load_msgs(ErdmaXportConn *c, const ErdmaConnSnap *k,
                      ErdmaXportMsg *const *msgs, uint32_t n_msgs,
                      char **error)
{
    ErdmaConnTx *tx = &c->tx;
    uint32_t n_sent = msg_number(k, k->unsent_msn);
    uint32_t i;

    if (k->is_dead && (n_msgs || k->n_sents)) {
        return FAIL(k, error, "is_dead, must not have messages or n_sents");
    }
    for (i = 0; i < n_msgs; i++) {
        if (msgs[i]->hdr.op < ERDMA_XPORT_OP_SEND ||
            msgs[i]->hdr.op >= ERDMA_XPORT_OP_COUNT) {
            return FAIL(k, error, "message %u has no operation",
                        k->una_msn + i);
        }
    }
    if (!check_positions(k, msgs, n_msgs, error)) {
        return false;
    }
    tx->next_msn = k->next_msn;
    tx->una_msn = k->una_msn;
    tx->una_off = k->una_off;
    for (i = 0; i < n_msgs; i++) {
        ErdmaXportMsg *msg = msgs[i];
        uint32_t from = i ? 0 : k->una_off;

        msg->msn = k->una_msn + i;
        msg->is_sent = i < n_sent;
        msg->sent_len = i < n_sent ? msg->hdr.len :
                        i == n_sent ? k->unsent_off : 0;
        if (msg->is_sent || msg->sent_len) {
            tx->undelivered += msg->sent_len - from +
                               (from ? 0 : ERDMA_REASM_MSG_COST);
        }
        QTAILQ_INSERT_TAIL(&tx->msgs, msg, next);
    }
    tx->unsent = n_sent < n_msgs ? msgs[n_sent] : NULL;
    tx->n_unsent = n_msgs - n_sent;
    return true;
}

/* Was all of what @e carries sent, and is it a part of its message? */
static bool is_sent_part(const ErdmaConnSnap *k, const ErdmaSentSnap *e,
                         ErdmaXportMsg *const *msgs)
{
    const ErdmaXportMsg *msg = msgs[msg_number(k, e->msn)];
    bool is_all = msg->is_sent;

    return (is_all || msg->sent_len) && e->off <= msg->sent_len &&
           e->len <= msg->sent_len - e->off;
}

static bool check_sent(const ErdmaConnSnap *k, const ErdmaSentSnap *e,
                       ErdmaXportMsg *const *msgs, uint32_t n_msgs,
                       uint32_t i, char **error)
{
    if (e->state > ERDMA_SENT_LOST) {
        return FAIL(k, error, "sents[%u]: state is %u, must be at most %d", i,
                    e->state, ERDMA_SENT_LOST);
    }
    if (e->is_resent && e->state != ERDMA_SENT_LOST) {
        /* Acked late: nothing looks at it any more. */
        return e->state == ERDMA_SENT_ACKED ||
               FAIL(k, error, "sents[%u]: is_resent, must be lost", i);
    }
    if (e->state == ERDMA_SENT_ACKED || (int32_t)(e->msn - k->una_msn) < 0) {
        return true;
    }
    if (msg_number(k, e->msn) >= n_msgs || !is_sent_part(k, e, msgs)) {
        return FAIL(k, error, "sents[%u]: msn %u, off %u, len %u was never "
                    "sent", i, e->msn, e->off, e->len);
    }
    return true;
}

static bool load_sents(ErdmaXportConn *c, const ErdmaConnSnap *k,
                       ErdmaXportMsg *const *msgs, uint32_t n_msgs,
                       ErdmaXportLoad *l, char **error)
{
    ErdmaSentMap *m = &c->tx.sent;
    uint32_t i;

    erdma_sentmap_init(m, &c->x->sent_pool, k->base);
    for (i = 0; i < k->n_sents; i++) {
        const ErdmaSentSnap *s = &l->snap->sents[l->sent++];
        uint32_t number = msg_number(k, s->msn);
        ErdmaSent *e;

        if (!check_sent(k, s, msgs, n_msgs, i, error)) {
            return false;
        }
        if (erdma_sentmap_is_full(m, true)) {
            return FAIL(k, error, "sents[%u]: there are more than all "
                        "connections may have", i);
        }
        e = erdma_sentmap_add(m, s->bytes);
        e->sent_ns = erdma_snap_ago(s->age_ns, l->now_ns);
        e->msg = number < n_msgs ? msgs[number] : NULL;
        e->msn = s->msn;
        e->off = s->off;
        e->len = s->len;
        e->is_ect = s->is_ect;
        e->is_resent = s->is_resent;
        if (s->state != ERDMA_SENT_INFLIGHT) {
            erdma_sentmap_set(m, e, s->state);
        }
    }
    return true;
}

/* After the transmissions: what follows from them, and the rest */
static void load_loss(ErdmaXportConn *c, const ErdmaConnSnap *k,
                      uint64_t now_ns)
{
    ErdmaSentMap *m = &c->tx.sent;
    ErdmaLoss *l = &c->tx.loss;
    uint64_t pn;

    l->n_top = MIN(k->n_top, l->threshold);
    memcpy(l->top, k->top, l->n_top * sizeof(l->top[0]));
    l->has_rack = k->has_rack;
    l->is_reordering_seen = k->is_reordering_seen;
    l->is_in_recovery = k->is_in_recovery;
    l->reo_mult = k->reo_mult;
    l->n_recoveries = k->n_recoveries;
    l->rack_sent_ns = erdma_snap_ago(k->rack_age_ns, now_ns);
    l->rack_rtt_ns = k->rack_rtt_ns;
    l->recovery_end = k->recovery_end;
    l->spurious_end = k->spurious_end;
    l->n_episode_lost = k->n_episode_lost;
    l->n_episode_spurious = k->n_episode_spurious;
    l->cursor = l->resend = m->next;
    for (pn = m->next; pn-- > m->base; ) {
        ErdmaSent *e = erdma_sentmap_get(m, pn);

        if (e->state == ERDMA_SENT_INFLIGHT) {
            l->cursor = pn;
        } else if (e->state == ERDMA_SENT_LOST && !e->is_resent) {
            l->resend = pn;
            l->n_resend++;
        }
    }
}

static void load_rtt(ErdmaRtt *r, const ErdmaConnSnap *k, uint64_t now_ns)
{
    r->has_sample = k->has_rtt;
    r->latest_ns = k->latest_ns;
    r->srtt_ns = k->srtt_ns;
    r->rttvar_ns = k->rttvar_ns;
    r->min_ns[0] = k->min0_ns;
    r->min_ns[1] = k->min1_ns;
    r->bucket_start_ns = erdma_snap_ago(k->bucket_age_ns, now_ns);
}

static void load_tx_timers(ErdmaConnTx *tx, const ErdmaConnSnap *k,
                           uint64_t now_ns)
{
    tx->base_ns = erdma_snap_ago(k->base_age_ns, now_ns);
    tx->last_send_ns = erdma_snap_ago(k->last_send_age_ns, now_ns);
    tx->loss_ns = erdma_snap_at(k->loss_in_ns, now_ns);
    tx->pacer_ns = erdma_snap_at(k->pacer_in_ns, now_ns);
    tx->persist_ns = erdma_snap_at(k->persist_in_ns, now_ns);
    tx->progress_ns = erdma_snap_ago(k->progress_age_ns, now_ns);
    tx->pacer.last_ns = erdma_snap_ago(k->pacer_age_ns, now_ns);
    tx->pacer.debt = erdma_snap_double(k->pacer_debt);
    tx->n_timeouts = k->n_timeouts;
    tx->n_persist = k->n_persist;
}

bool erdma_snap_load_tx(ErdmaXportConn *c, const ErdmaConnSnap *k,
                        ErdmaXportMsg *const *msgs, uint32_t n_msgs,
                        ErdmaXportLoad *l, char **error)
{
    ErdmaConnTx *tx = &c->tx;

    if (!load_msgs(c, k, msgs, n_msgs, error) ||
        !load_sents(c, k, msgs, n_msgs, l, error) ||
        !erdma_snap_load_cc(&tx->cc, k, l, error)) {
        return false;
    }
    load_loss(c, k, l->now_ns);
    load_rtt(&tx->rtt, k, l->now_ns);
    load_tx_timers(tx, k, l->now_ns);
    tx->credit = k->credit;
    tx->next_ack = k->next_ack;
    tx->round_end = k->round_end;
    tx->max_pipe[0] = k->max_pipe0;
    tx->max_pipe[1] = k->max_pipe1;
    tx->ce_packets = k->tx_ce_packets;
    tx->ce_bytes = k->tx_ce_bytes;
    tx->ect_packets = k->tx_ect_packets;
    tx->ect_acked = k->ect_acked;
    tx->is_held = k->is_held;
    tx->is_probed = k->is_probed;
    tx->is_dead = k->is_dead;
    tx->is_peer_rnr = k->is_peer_rnr;
    tx->is_answered = k->is_answered;
    tx->is_ecn_off = k->is_ecn_off;
    tx->is_expecting = k->is_expecting;
    tx->want_probe = k->want_probe;
    tx->want_resend = k->want_resend;
    tx->want_ping = k->want_ping;
    return true;
}
