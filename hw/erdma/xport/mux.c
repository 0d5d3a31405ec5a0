/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: all connections of one device.  Finds the connection that
 * a packet is for and gives those with work their turns.  What is idle is in
 * no list but the hash table, so it costs no time.
 */

#include "qemu/osdep.h"
#include "conn.h"

#define MS  (1000ULL * 1000)

void erdma_xport_config_default(ErdmaXportConfig *cfg)
{
    *cfg = (ErdmaXportConfig) {
        .mtu = 1500,
        .udp_port = ERDMA_XPORT_UDP_PORT,
        .initial_rto_ns = 20 * MS,
        .rto_min_ns = 20 * MS,
        .rto_max_ns = 4000 * MS,
        .retry_max = 7,
        .rnr_timeout_ns = 10000 * MS,
        .ack_every = 2,
        .rx_buffer = 2 * 1024 * 1024,
        .is_paced = true,
        .pacing_quantum_ns = 1 * MS,
        .use_ecn = true,
        .packet_threshold = 3,
        .int_hops = 5,
        .cc = {
            .has_fast_convergence = true,
            .line_rate = 10ULL * 1000 * 1000 * 1000 / 8,
            .eta = 0.95,
            .delta = 0.05,
            .max_stage_ecn = 5,
            .has_ecn_probe = true,
            .n_flows = 16,
        },
    };
}

static uint32_t clamp_mtu(uint32_t mtu)
{
    return MAX(ERDMA_XPORT_MTU_MIN, MIN(mtu, ERDMA_XPORT_MTU_MAX));
}

ErdmaXport *erdma_xport_new(const ErdmaXportOps *ops, void *opaque,
                            const ErdmaXportConfig *cfg)
{
    ErdmaXport *x = g_new0(ErdmaXport, 1);

    x->ops = ops;
    x->opaque = opaque;
    x->cfg = *cfg;
    x->cfg.mtu = clamp_mtu(cfg->mtu);
    x->cfg.initial_rto_ns = MAX(cfg->initial_rto_ns, 1);
    x->cfg.rto_min_ns = MAX(cfg->rto_min_ns, 1);
    x->cfg.rto_max_ns = MAX(cfg->rto_max_ns, x->cfg.rto_min_ns);
    x->cfg.retry_max = MIN(cfg->retry_max, 200);
    x->cfg.ack_every = MAX(cfg->ack_every, 1);
    x->cfg.rx_buffer = MAX(cfg->rx_buffer, 4096);
    x->cfg.packet_threshold = MAX(1, MIN(cfg->packet_threshold,
                                         ERDMA_XPORT_PACKET_THRESHOLD_MAX));
    x->cfg.int_hops = MIN(cfg->int_hops, ERDMA_WIRE_INT_HOPS_MAX);
    x->conns = g_hash_table_new(NULL, NULL);
    erdma_timerheap_init(&x->timers);
    QTAILQ_INIT(&x->active);
    x->tx_buf = g_malloc(ERDMA_XPORT_HEADROOM + ERDMA_XPORT_MTU_MAX);
    return x;
}

void erdma_xport_free(ErdmaXport *x)
{
    GHashTableIter iter;
    gpointer c;

    if (!x) {
        return;
    }
    g_hash_table_iter_init(&iter, x->conns);
    while (g_hash_table_iter_next(&iter, NULL, &c)) {
        erdma_conn_destroy(c);
    }
    g_hash_table_destroy(x->conns);
    erdma_sentpool_destroy(&x->sent_pool);
    g_free(x->timers.v);
    g_free(x->tx_buf);
    g_free(x);
}

void erdma_xport_set_mtu(ErdmaXport *x, uint32_t mtu)
{
    GHashTableIter iter;
    gpointer c;

    x->cfg.mtu = clamp_mtu(mtu);
    g_hash_table_iter_init(&iter, x->conns);
    while (g_hash_table_iter_next(&iter, NULL, &c)) {
        ((ErdmaXportConn *)c)->tx.cc.mss = x->cfg.mtu;
    }
}

uint32_t erdma_xport_mtu(const ErdmaXport *x)
{
    return x->cfg.mtu;
}

const ErdmaXportStats *erdma_xport_stats(const ErdmaXport *x)
{
    return &x->stats;
}

static void drop(ErdmaXport *x, ErdmaXportDrop why, uint32_t number)
{
    x->stats.drops[why]++;
    if (x->ops->trace) {
        x->ops->trace(x->opaque, NULL, ERDMA_XPORT_EV_DROP, why, number);
    }
}

/* The parse gate; NULL: dropped and counted */
static ErdmaXportConn *gate(ErdmaXport *x, const ErdmaDatagram *dg,
                            ErdmaWire *w)
{
    ErdmaXportConn *c;

    switch (erdma_wire_parse(w, dg->data, dg->len)) {
    case ERDMA_WIRE_OK:
        break;
    case ERDMA_WIRE_BAD_VERSION:
        drop(x, ERDMA_XPORT_DROP_VERSION, 0);
        return NULL;
    default:
        drop(x, ERDMA_XPORT_DROP_MALFORMED, 0);
        return NULL;
    }
    c = g_hash_table_lookup(x->conns, GUINT_TO_POINTER(w->dst_cookie));
    if (!c) {
        drop(x, ERDMA_XPORT_DROP_NO_CONN, w->number);
        return NULL;
    }
    if (w->src_cookie != c->peer_cookie || dg->src_ip != c->peer_ip ||
        dg->dst_ip != c->local_ip) {
        erdma_conn_drop(c, ERDMA_XPORT_DROP_PEER, w->number);
        return NULL;
    }
    return c;
}

void erdma_xport_input(ErdmaXport *x, const ErdmaDatagram *dg,
                       uint64_t now_ns)
{
    ErdmaWire w;
    ErdmaXportConn *c;

    x->stats.rx_packets++;
    x->stats.rx_bytes += dg->len;
    c = gate(x, dg, &w);
    if (!c) {
        return;
    }
    c->stats.rx_packets++;
    erdma_conn_enter(c);
    switch (w.type) {
    case ERDMA_WIRE_DATA:
        erdma_conn_rx_data(c, &w, dg->ecn, dg->len, now_ns);
        break;
    case ERDMA_WIRE_ACK:
        erdma_conn_rx_ack(c, &w, now_ns);
        break;
    case ERDMA_WIRE_PING:
        erdma_conn_rx_ping(c, &w, now_ns);
        break;
    case ERDMA_WIRE_TERM:
        erdma_conn_rx_term(c, &w, now_ns);
        break;
    case ERDMA_WIRE_TERM_ACK:
        erdma_conn_rx_term_ack(c, &w, now_ns);
        break;
    }
    /* A connection in the list of active ones is scheduled when it ran. */
    if (!c->is_closed && !c->is_active) {
        erdma_conn_schedule(c);
    }
    erdma_conn_leave(c);
}

void erdma_xport_unblock(ErdmaXport *x)
{
    x->is_blocked = false;
}

static void expire_timers(ErdmaXport *x, uint64_t now_ns)
{
    ErdmaTimer *t;

    while ((t = erdma_timerheap_first(&x->timers)) != NULL &&
           t->when_ns <= now_ns) {
        ErdmaXportConn *c = container_of(t, ErdmaXportConn, timer);

        erdma_timerheap_cancel(&x->timers, t);
        erdma_conn_activate(c);
    }
}

uint64_t erdma_xport_poll(ErdmaXport *x, uint64_t now_ns,
                          unsigned max_packets)
{
    unsigned budget = max_packets;
    ErdmaXportConn *c;
    ErdmaTimer *t;

    /*
     * A blocked path stops the clock of retransmissions too: what did not
     * leave yet is not late.
     */
    if (!x->is_blocked) {
        expire_timers(x, now_ns);
    }
    while (!x->is_blocked && budget &&
           (c = QTAILQ_FIRST(&x->active)) != NULL) {
        QTAILQ_REMOVE(&x->active, c, active_next);
        c->is_active = false;
        erdma_conn_enter(c);
        if (erdma_conn_run(c, now_ns, &budget)) {
            erdma_conn_activate(c);
        }
        erdma_conn_leave(c);
    }
    if (x->is_blocked) {
        return ERDMA_XPORT_NEVER;
    }
    if (!QTAILQ_EMPTY(&x->active)) {
        return now_ns;
    }
    t = erdma_timerheap_first(&x->timers);
    return t ? t->when_ns : ERDMA_XPORT_NEVER;
}
