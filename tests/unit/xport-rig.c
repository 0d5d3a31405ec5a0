/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two transports and a wire for the unit tests, see xport-rig.h. */

#include "qemu/osdep.h"
#include "xport/wire.h"
#include "xport-rig.h"

#define COOKIE(end)     (0x1000u + (end))
#define ADDRESS(end)    (0x0a000001u + (end))

/* A prime, and longer than a packet */
#define PATTERN_LEN     65521u

typedef struct Flying {
    uint64_t when_ns;
    uint64_t seq;
    int to;
    uint8_t ecn;
    size_t len;
    uint8_t data[];
} Flying;

/*
 * Noise, so that a byte in a wrong place is seen; a piece of a table, since
 * most of a fuzzer's time would go into making it.
 */
static const uint8_t *pattern(int from, uint32_t msn, uint32_t off)
{
    static uint8_t noise[2 * PATTERN_LEN];
    static bool is_made;
    uint32_t v = 1;
    unsigned i;

    for (i = 0; !is_made && i < PATTERN_LEN; i++) {
        v = v * 1664525 + 1013904223;
        noise[i] = noise[i + PATTERN_LEN] = v >> 24;
    }
    is_made = true;
    return noise + (off + msn * 7919ULL + from * 104729ULL) % PATTERN_LEN;
}

void rig_fill(int from, uint32_t msn, uint32_t off, uint8_t *buf,
              uint32_t len)
{
    uint32_t n;

    for (; len; len -= n, off += n, buf += n) {
        n = MIN(len, PATTERN_LEN);
        memcpy(buf, pattern(from, msn, off), n);
    }
}

static gint compare_flying(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const Flying *x = a, *y = b;

    if (x->when_ns != y->when_ns) {
        return x->when_ns < y->when_ns ? -1 : 1;
    }
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void launch(XportRig *rig, const RigPacket *p, uint64_t when_ns)
{
    Flying *f = g_malloc(sizeof(*f) + p->len);

    f->when_ns = when_ns;
    f->seq = rig->seq++;
    f->to = !p->from;
    f->ecn = p->ecn;
    f->len = p->len;
    memcpy(f->data, p->data, p->len);
    g_sequence_insert_sorted(rig->wire, f, compare_flying, NULL);
}

static bool rig_transmit(void *opaque, const ErdmaDatagram *dg)
{
    RigEnd *e = opaque;
    XportRig *rig = e->rig;
    uint8_t type = dg->data[2] & 0xf;
    RigPacket p = {
        .from = e->id,
        .index = e->n_packets++,
        .is_data = type == ERDMA_WIRE_DATA,
        .is_ack = type == ERDMA_WIRE_ACK,
        .is_ping = type == ERDMA_WIRE_PING,
        .data = dg->data,
        .len = dg->len,
        .ecn = dg->ecn,
    };
    RigFate fate = { 0 };
    uint64_t when_ns = rig->now_ns;
    unsigned i;

    g_assert_cmpuint(dg->src_ip, ==, ADDRESS(e->id));
    g_assert_cmpuint(dg->dst_ip, ==, ADDRESS(!e->id));
    if (p.is_data) {
        p.data_index = e->n_data++;
    }
    if (rig->fate) {
        fate = rig->fate(rig, &p);
    }
    if (rig->bits_per_s) {
        when_ns = MAX(when_ns, rig->busy_until[e->id]) +
                  (dg->len + ERDMA_XPORT_IP_UDP_LEN) * 8 * RIG_S /
                  rig->bits_per_s;
        rig->busy_until[e->id] = when_ns;
    }
    if (!fate.is_lost) {
        for (i = 0; i <= fate.n_copies; i++) {
            launch(rig, &p, when_ns + rig->delay_ns + fate.extra_ns);
        }
    }
    g_assert_cmpuint(e->unblock_ns, ==, ERDMA_XPORT_NEVER);
    if (rig->is_blocking) {
        e->unblock_ns = when_ns;
        return false;
    }
    return true;
}

static bool rig_pull(void *opaque, void *owner, ErdmaXportMsg *msg,
                     uint32_t off, uint8_t *buf, uint32_t len)
{
    RigEnd *e = opaque;

    g_assert_cmpuint(off, <=, msg->hdr.len);
    g_assert_cmpuint(len, <=, msg->hdr.len - off);
    rig_fill(e->id, msg->msn, off, buf, len);
    return !e->is_pull_broken;
}

static ErdmaXportRx rig_rx(void *opaque, void *owner,
                           const ErdmaXportMsgHdr *hdr, uint32_t msn,
                           uint32_t off, const uint8_t *data, uint32_t len,
                           bool is_last)
{
    RigEnd *e = opaque;
    RigEnd *peer = &e->rig->end[!e->id];
    RigMsg *m;
    ErdmaXportRx answer = ERDMA_XPORT_RX_OK;

    e->n_rx_calls++;
    if (e->rig->is_forgetful) {
        return ERDMA_XPORT_RX_OK;
    }
    g_assert_cmpuint(msn, ==, e->rx_msn);
    g_assert_cmpuint(off, ==, e->rx_off);
    g_assert_cmpuint(msn, <, peer->sent->len);
    m = g_ptr_array_index(peer->sent, msn);
    g_assert_cmpint(memcmp(hdr, &m->msg.hdr, sizeof(*hdr)), ==, 0);
    g_assert_cmpuint(off, <=, hdr->len);
    g_assert_cmpuint(len, <=, hdr->len - off);
    g_assert(is_last == (off + len == hdr->len));
    g_assert_cmpuint(len, <=, PATTERN_LEN);
    if (len && memcmp(data, pattern(!e->id, msn, off), len)) {
        g_error("wrong bytes in message %u at %u", msn, off);
    }
    if (e->rig->on_rx) {
        answer = e->rig->on_rx(e->rig, e->id, msn, off);
    }
    if (answer == ERDMA_XPORT_RX_OK) {
        e->rx_bytes += len;
        e->rx_off += len;
        if (is_last) {
            e->rx_msn++;
            e->rx_off = 0;
        }
    }
    return answer;
}

static void rig_msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    RigEnd *e = opaque;

    /* Forged acks can claim anything. */
    g_assert(e->rig->is_forgetful ||
             (msg->msn == e->n_done &&
              msg->msn < e->rig->end[!e->id].rx_msn));
    e->n_done++;
    if (e->rig->on_done) {
        e->rig->on_done(e->rig, e->id, msg->msn);
    }
}

static void rig_tx_room(void *opaque, void *owner)
{
    ((RigEnd *)opaque)->n_tx_room++;
}

static void rig_terminated(void *opaque, void *owner, uint8_t status,
                           uint32_t msn)
{
    RigEnd *e = opaque;

    e->n_terminated++;
    e->term_status = status;
    e->term_msn = msn;
}

static void rig_conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    RigEnd *e = opaque;

    e->n_errors++;
    e->error = error;
    e->error_ns = e->rig->now_ns;
}

static void rig_trace(void *opaque, void *owner, ErdmaXportEvent event,
                      uint64_t a, uint64_t b)
{
    RigEnd *e = opaque;
    XportRig *rig = e->rig;

    e->events[event]++;
    if (!rig->log) {
        return;
    }
    /* Packet numbers relative to where they start */
    switch (event) {
    case ERDMA_XPORT_EV_RETRANSMIT:
        b = (uint32_t)b - rig->pn0[e->id];
        /* fall through */
    case ERDMA_XPORT_EV_SEND:
    case ERDMA_XPORT_EV_LOST:
    case ERDMA_XPORT_EV_SPURIOUS:
    case ERDMA_XPORT_EV_PROBE:
        a = (uint32_t)a - rig->pn0[e->id];
        break;
    case ERDMA_XPORT_EV_DROP:
        b = (uint32_t)b - rig->pn0[!e->id];
        break;
    default:
        break;
    }
    g_string_append_printf(rig->log, "%" PRIu64 " %d %d %u %" PRIu64 "\n",
                           rig->now_ns, e->id, event, (uint32_t)a, b);
}

static const ErdmaXportOps rig_ops = {
    .transmit = rig_transmit,
    .pull = rig_pull,
    .rx = rig_rx,
    .msg_done = rig_msg_done,
    .tx_room = rig_tx_room,
    .terminated = rig_terminated,
    .conn_error = rig_conn_error,
    .trace = rig_trace,
};

void rig_config(ErdmaXportConfig *cfg)
{
    erdma_xport_config_default(cfg);
    cfg->initial_rto_ns = cfg->rto_min_ns = 1 * RIG_MS;
    cfg->rto_max_ns = 64 * RIG_MS;
    cfg->rnr_timeout_ns = 500 * RIG_MS;
    cfg->ack_every = 1;
    cfg->is_paced = false;
    cfg->pacing_quantum_ns = 0;
}

XportRig *rig_new(const ErdmaXportConfig *cfg)
{
    XportRig *rig = g_new0(XportRig, 1);
    ErdmaXportConfig def;
    int i;

    rig_config(&def);
    rig->cfg = cfg ? *cfg : def;
    rig->now_ns = 1 * RIG_S;
    rig->delay_ns = 50 * RIG_US;
    rig->poll_budget = 64;
    rig->cc = ERDMA_XPORT_CC_CUBIC;
    rig->wire = g_sequence_new(g_free);
    for (i = 0; i < 2; i++) {
        RigEnd *e = &rig->end[i];

        e->rig = rig;
        e->id = i;
        e->next_ns = e->unblock_ns = ERDMA_XPORT_NEVER;
        e->sent = g_ptr_array_new_with_free_func(g_free);
        e->x = erdma_xport_new(&rig_ops, e, &rig->cfg);
    }
    return rig;
}

void rig_free(XportRig *rig)
{
    int i;

    for (i = 0; i < 2; i++) {
        erdma_xport_free(rig->end[i].x);
        g_ptr_array_free(rig->end[i].sent, true);
    }
    g_sequence_free(rig->wire);
    g_free(rig);
}

void rig_open(XportRig *rig, int end)
{
    ErdmaXportConnParams p = {
        .local_cookie = COOKIE(end),
        .peer_cookie = COOKIE(!end),
        .local_ip = ADDRESS(end),
        .peer_ip = ADDRESS(!end),
        .tx_pn0 = rig->pn0[end],
        .rx_pn0 = rig->pn0[!end],
        .cc = rig->cc,
        .owner = &rig->end[end],
    };
    RigEnd *e = &rig->end[end];

    e->conn = erdma_xport_conn_open(e->x, &p, rig->now_ns);
    g_assert_nonnull(e->conn);
    g_assert_null(erdma_xport_conn_open(e->x, &p, rig->now_ns));
    rig_poll(rig, end);
}

/* Opens both and lets their greetings pass. */
void rig_open_both(XportRig *rig)
{
    rig_open(rig, 0);
    rig_open(rig, 1);
    rig_run(rig, rig->now_ns + 4 * rig->delay_ns);
}

void rig_close(XportRig *rig, int end)
{
    erdma_xport_conn_close(rig->end[end].conn);
    rig->end[end].conn = NULL;
}

void rig_send(XportRig *rig, int end, ErdmaXportOp op, uint32_t len)
{
    RigEnd *e = &rig->end[end];
    RigMsg *m = g_new0(RigMsg, 1);

    m->from = end;
    m->msg.hdr.op = op;
    m->msg.hdr.len = len;
    g_ptr_array_add(e->sent, m);
    erdma_xport_conn_send(e->conn, &m->msg);
    g_assert_cmpuint(m->msg.msn, ==, e->sent->len - 1);
    e->next_ns = rig->now_ns;
}

void rig_poll(XportRig *rig, int end)
{
    RigEnd *e = &rig->end[end];

    e->n_polls++;
    e->next_ns = erdma_xport_poll(e->x, rig->now_ns, rig->poll_budget);
    if (rig->tick_ns && e->next_ns > rig->now_ns &&
        e->next_ns != ERDMA_XPORT_NEVER) {
        e->next_ns = rig_round_up(e->next_ns, rig->tick_ns);
    }
    if (rig->on_polled) {
        rig->on_polled(rig, end);
    }
}

void rig_inject(XportRig *rig, int end, const uint8_t *data, size_t len)
{
    ErdmaDatagram dg = {
        .src_ip = ADDRESS(!end),
        .dst_ip = ADDRESS(end),
        .src_port = ERDMA_XPORT_UDP_PORT,
        .dst_port = ERDMA_XPORT_UDP_PORT,
        .data = (uint8_t *)data,
        .len = len,
    };

    erdma_xport_input(rig->end[end].x, &dg, rig->now_ns);
    rig_poll(rig, end);
}

static void arrive(XportRig *rig, GSequenceIter *it)
{
    Flying *f = g_sequence_get(it);
    ErdmaDatagram dg = {
        .src_ip = ADDRESS(!f->to),
        .dst_ip = ADDRESS(f->to),
        .src_port = ERDMA_XPORT_UDP_PORT,
        .dst_port = ERDMA_XPORT_UDP_PORT,
        .ecn = f->ecn,
        .data = f->data,
        .len = f->len,
    };

    erdma_xport_input(rig->end[f->to].x, &dg, rig->now_ns);
    rig_poll(rig, f->to);
    g_sequence_remove(it);
}

void rig_save(XportRig *rig, int end, ErdmaXportSnap *s)
{
    RigEnd *e = &rig->end[end];
    char *error = NULL;

    erdma_xport_save(e->x, s);
    erdma_xport_save_conn(e->conn, s, rig->now_ns);
    g_assert_true(erdma_xport_snap_fits(s, &error));
}

char *rig_load(XportRig *rig, int end, const ErdmaXportSnap *s)
{
    RigEnd *e = &rig->end[end];
    g_autofree ErdmaXportMsg **msgs = g_new0(ErdmaXportMsg *, e->sent->len);
    uint32_t n = 0, msn;
    ErdmaXportLoad l;
    char *error = NULL;

    erdma_xport_free(e->x);
    e->x = erdma_xport_new(&rig_ops, e, &rig->cfg);
    e->conn = NULL;
    e->unblock_ns = ERDMA_XPORT_NEVER;
    if (!erdma_xport_load(e->x, s, rig->now_ns, &l, &error)) {
        return error;
    }
    for (msn = s->conns[0].una_msn; msn < e->sent->len &&
         msn < s->conns[0].next_msn && !s->conns[0].is_dead; msn++) {
        msgs[n++] = &((RigMsg *)g_ptr_array_index(e->sent, msn))->msg;
    }
    e->conn = erdma_xport_load_conn(e->x, &l, e, msgs, n, &error);
    if (e->conn) {
        erdma_xport_load_end(&l, &error);
    }
    return error;
}

#define SAME(_a, _b, _array) \
    g_assert_cmpmem((_a)->_array, (_a)->n_##_array * sizeof(*(_a)->_array), \
                    (_b)->_array, (_b)->n_##_array * sizeof(*(_b)->_array))

void rig_move(XportRig *rig, int end)
{
    ErdmaXportSnap a = { 0 }, b = { 0 };

    rig_save(rig, end, &a);
    g_assert_cmpstr(rig_load(rig, end, &a), ==, NULL);
    rig_save(rig, end, &b);
    g_assert_cmpuint(a.mtu, ==, b.mtu);
    g_assert_cmpmem(a.counters, sizeof(a.counters), b.counters,
                    sizeof(b.counters));
    SAME(&a, &b, conns);
    SAME(&a, &b, sents);
    SAME(&a, &b, ranges);
    SAME(&a, &b, chunks);
    SAME(&a, &b, cubics);
    SAME(&a, &b, hpccs);
    SAME(&a, &b, hops);
    SAME(&a, &b, bytes);
    erdma_xport_snap_clear(&a);
    erdma_xport_snap_clear(&b);
    rig->n_moves++;
}

/* Of the two one, now and then */
static void move_some(XportRig *rig)
{
    int end;

    if (rig->moves && g_rand_double(rig->moves) < rig->move_chance) {
        end = g_rand_int_range(rig->moves, 0, 2);
        if (rig->end[end].conn) {
            rig_move(rig, end);
        }
    }
}

/* The next thing that happens; false: nothing before @until_ns */
static bool step(XportRig *rig, uint64_t until_ns)
{
    GSequenceIter *it = g_sequence_get_begin_iter(rig->wire);
    uint64_t wire_ns = ERDMA_XPORT_NEVER, next_ns;
    int i;

    if (!g_sequence_iter_is_end(it)) {
        wire_ns = ((Flying *)g_sequence_get(it))->when_ns;
    }
    next_ns = MIN(rig->end[0].next_ns, rig->end[1].next_ns);
    next_ns = MIN(wire_ns, next_ns);
    for (i = 0; i < 2; i++) {
        next_ns = MIN(next_ns, rig->end[i].unblock_ns);
    }
    if (next_ns > until_ns) {
        return false;
    }
    rig->now_ns = MAX(rig->now_ns, next_ns);
    move_some(rig);
    if (wire_ns <= next_ns) {
        arrive(rig, it);
        return true;
    }
    for (i = 0; i < 2; i++) {
        if (rig->end[i].unblock_ns <= rig->now_ns) {
            rig->end[i].unblock_ns = ERDMA_XPORT_NEVER;
            erdma_xport_unblock(rig->end[i].x);
            rig_poll(rig, i);
        } else if (rig->end[i].next_ns <= rig->now_ns) {
            rig_poll(rig, i);
        }
    }
    return true;
}

void rig_run(XportRig *rig, uint64_t until_ns)
{
    while (step(rig, until_ns)) {
        continue;
    }
    rig->now_ns = until_ns;
}

bool rig_is_done(const XportRig *rig)
{
    return rig->end[0].n_done == rig->end[0].sent->len &&
           rig->end[1].n_done == rig->end[1].sent->len;
}

bool rig_run_done(XportRig *rig, uint64_t until_ns)
{
    while (!rig_is_done(rig)) {
        if (!step(rig, until_ns)) {
            return false;
        }
    }
    return true;
}

void rig_info(const XportRig *rig, int end, ErdmaXportConnInfo *info)
{
    erdma_xport_conn_info(rig->end[end].conn, info);
}

const ErdmaXportStats *rig_stats(const XportRig *rig, int end)
{
    return erdma_xport_stats(rig->end[end].x);
}
