/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: all connections of one device.  Finds the connection that
 * a packet is for and gives those with work their turns.  What is idle is in
 * no list but the map, so it costs no time.
 */

#include "qemu/osdep.h"
#include "conn.h"

#define MS  (1000ULL * 1000)

/*
 * Connections that one run looks at, and timers that it takes for due: one
 * that has nothing to send costs no packet of the caller's budget, and all of
 * a guest's connections can be due at one time.
 */
#define RUN_MAX_VISITS  512

/* What all connections hold together may be so many times one's share. */
#define RX_SHARES       64

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

static void alloc_tx_buf(ErdmaXport *x)
{
    g_free(x->tx_buf);
    x->tx_buf = g_malloc(ERDMA_XPORT_HEADROOM +
                         MAX(x->cfg.mtu, ERDMA_WIRE_CONTROL_MAX));
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
    x->reasm_pool.limit = (uint64_t)RX_SHARES * x->cfg.rx_buffer;
    erdma_connmap_init(&x->conns);
    erdma_timerheap_init(&x->timers);
    QTAILQ_INIT(&x->active);
    alloc_tx_buf(x);
    return x;
}

ErdmaXport *erdma_xport_successor(ErdmaXport *x)
{
    ErdmaXport *next;

    if (x->recorder) {
        return NULL;
    }
    next = erdma_xport_new(x->ops, x->opaque, &x->cfg);
    next->conns.secret = x->conns.secret;
    erdma_connmap_reserve(&next->conns, (x->conns.mask + 1) / 2);
    next->stats = x->stats;
    next->is_blocked = x->is_blocked;
    /* Should a poll of it be under way, it ends here. */
    x->is_blocked = true;
    return next;
}

uint64_t erdma_xport_n_held(const ErdmaXport *x)
{
    return x->reasm_pool.held / ERDMA_REASM_MSG_COST;
}

void erdma_xport_free(ErdmaXport *x)
{
    uint32_t i;

    if (!x) {
        return;
    }
    /* An empty map may be a large one. */
    for (i = 0; x->conns.n && i <= x->conns.mask; i++) {
        if (x->conns.v[i].conn) {
            erdma_conn_destroy(x->conns.v[i].conn);
        }
    }
    erdma_connmap_destroy(&x->conns);
    erdma_sentpool_destroy(&x->sent_pool);
    g_free(x->timers.v);
    g_free(x->tx_buf);
    g_free(x);
}

void erdma_xport_set_secret(ErdmaXport *x, uint32_t secret)
{
    assert(!x->conns.n);
    x->conns.secret = secret;
}

void erdma_xport_reserve(ErdmaXport *x, uint32_t n_conns)
{
    erdma_connmap_reserve(&x->conns, n_conns);
}

void erdma_xport_set_mtu(ErdmaXport *x, uint32_t mtu)
{
    if (x->recorder) {
        erdma_recorder_set_mtu(x->recorder, mtu);
    }
    /* There may be many connections: each looks when its turn comes. */
    x->cfg.mtu = clamp_mtu(mtu);
    alloc_tx_buf(x);
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
    c = erdma_connmap_find(&x->conns, w->dst_cookie);
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

    if (x->recorder) {
        erdma_recorder_input(x->recorder, dg, now_ns);
    }
    x->stats.rx_packets++;
    x->stats.rx_bytes += dg->len;
    c = gate(x, dg, &w);
    if (!c) {
        return;
    }
    c->stats.rx_packets++;
    if (x->cfg.is_hollow && w.type == ERDMA_WIRE_DATA) {
        w.u.data.payload = NULL;
    }
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

/* The part that a packet is for, and what both need */
static void fetch_conn(const ErdmaXportConn *c, bool is_data)
{
    const char *begin = (const char *)c;
    size_t skip = is_data ? offsetof(ErdmaXportConn, tx.rtt) :
                            offsetof(ErdmaXportConn, rx);
    size_t on = is_data ? offsetof(ErdmaXportConn, tx.round_end) :
                          offsetof(ErdmaXportConn, rx.next_ack);

    erdma_fetch(begin, skip);
    erdma_fetch(begin + on, sizeof(*c) - on);
}

void erdma_xport_fetch(const ErdmaXport *x, const uint8_t *data,
                       unsigned stage)
{
    ErdmaXportConn *c;

    if (stage == 0) {
        erdma_fetch(x, offsetof(ErdmaXport, stats.retransmits));
        return;
    }
    if (stage == 1) {
        erdma_connmap_fetch(&x->conns, erdma_wire_dst_cookie(data));
        __builtin_prefetch(x->timers.v);
        return;
    }
    c = erdma_connmap_find(&x->conns, erdma_wire_dst_cookie(data));
    if (c) {
        if (stage == 2) {
            fetch_conn(c, erdma_wire_is_data(data));
        } else if (stage == 3) {
            erdma_conn_fetch(c);
        } else if (c->rx.reasm.n) {
            __builtin_prefetch(erdma_reasm_first(&c->rx.reasm));
        }
    }
}

void erdma_xport_unblock(ErdmaXport *x)
{
    if (x->recorder) {
        erdma_recorder_unblock(x->recorder);
    }
    x->is_blocked = false;
}

static void expire_timers(ErdmaXport *x, uint64_t now_ns)
{
    unsigned n;

    for (n = 0; n < RUN_MAX_VISITS && x->timers.n &&
         erdma_timerheap_first_ns(&x->timers) <= now_ns; n++) {
        ErdmaTimer *t = erdma_timerheap_first(&x->timers);
        ErdmaXportConn *c = container_of(t, ErdmaXportConn, timer);

        erdma_timerheap_cancel(&x->timers, t);
        erdma_conn_activate(c);
    }
}

void erdma_xport_fetch_due(ErdmaXport *x, uint64_t at_ns)
{
    const ErdmaXportConn *c;

    if (erdma_timerheap_first_ns(&x->timers) > at_ns || !x->timers.n) {
        return;
    }
    c = container_of(erdma_timerheap_first(&x->timers), ErdmaXportConn,
                     timer);
    if (c != x->fetched) {
        erdma_fetch(c, sizeof(*c));
        x->fetched = c;
        x->n_fetched = 0;
    } else if (!x->n_fetched++) {
        erdma_conn_fetch(c);
    }
}

static uint64_t run(ErdmaXport *x, uint64_t now_ns, unsigned max_packets)
{
    unsigned budget = max_packets, visits = RUN_MAX_VISITS;
    ErdmaXportConn *c;

    /*
     * A blocked path stops the clock of retransmissions too: what did not
     * leave yet is not late.
     */
    if (!x->is_blocked) {
        expire_timers(x, now_ns);
    }
    while (!x->is_blocked && budget && visits &&
           (c = QTAILQ_FIRST(&x->active)) != NULL) {
        visits--;
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
    return erdma_timerheap_first_ns(&x->timers);
}

uint64_t erdma_xport_poll(ErdmaXport *x, uint64_t now_ns,
                          unsigned max_packets)
{
    uint64_t next_ns;

    if (x->recorder) {
        erdma_recorder_poll(x->recorder, now_ns, max_packets);
    }
    next_ns = run(x, now_ns, max_packets);
    if (x->recorder) {
        erdma_recorder_polled(x->recorder, next_ns);
    }
    return next_ns;
}
