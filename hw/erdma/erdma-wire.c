/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the transport's datagrams and Ethernet frames, for both kinds of
 * wire: next hops, ARP, back-pressure, and datagrams to ourselves.
 *
 * A datagram that cannot leave (no NIC, link down, next hop unknown) is
 * dropped and counted; the transport sends it again.  One that the backend
 * cannot take at once is queued there and stops the transport until it left.
 *
 * Frames leave when the engine has returned.  Who gets them at once, another
 * NIC of this guest, writes them where the guest wants them: to a register
 * that resets or unplugs us, say.
 *
 * Reference: docs/specs/erdma-wire.rst
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "erdma.h"
#include "erdma-frame.h"
#include "trace.h"

/* virtio_net_hdr_v1_hash, the longest header in front of a frame */
#define ERDMA_WIRE_MAX_VNET     20

QEMU_BUILD_BUG_ON(ERDMA_FRAME_LEN + ERDMA_WIRE_MAX_VNET >
                  ERDMA_XPORT_HEADROOM);

/*
 * A frame that leaves soon: @len bytes behind ERDMA_WIRE_MAX_VNET of room for
 * the header that the netdev wants
 */
struct ErdmaOutFrame {
    QTAILQ_ENTRY(ErdmaOutFrame) next;
    size_t len;
    uint8_t data[];
};

struct ErdmaLoopPacket {
    QTAILQ_ENTRY(ErdmaLoopPacket) next;
    ErdmaDatagram dg;
    uint8_t data[];
};

/*
 * NetPacketSent says only whose packet left.  That NIC may be gone, so it is
 * looked up here by its address and not followed.
 */
static QLIST_HEAD(, ErdmaState) erdma_blocked =
    QLIST_HEAD_INITIALIZER(erdma_blocked);

static void erdma_wire_drop(ErdmaState *s, uint64_t *counter, const char *why)
{
    (*counter)++;
    trace_erdma_wire_drop(s->name, why);
}

static uint64_t erdma_wire_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* May be called from inside transmit(): the engine hears of it later. */
void erdma_wire_unblock(ErdmaState *s)
{
    if (s->wire.blocked_on) {
        s->wire.blocked_on = NULL;
        QLIST_REMOVE(s, wire.next_blocked);
        trace_erdma_wire_unblock(s->name);
        s->wire.has_room = true;
        erdma_port_kick(s);
    }
}

static void erdma_wire_sent(NetClientState *sender, ssize_t len)
{
    ErdmaState *s, *next;

    QLIST_FOREACH_SAFE(s, &erdma_blocked, wire.next_blocked, next) {
        if (s->wire.blocked_on == sender) {
            erdma_wire_unblock(s);
        }
    }
}

static void erdma_wire_block(ErdmaState *s, NetClientState *nic)
{
    s->wire.stats.tx_blocked++;
    if (!s->wire.blocked_on) {
        QLIST_INSERT_HEAD(&erdma_blocked, s, wire.next_blocked);
    }
    s->wire.blocked_on = nic;
}

/* The NIC whose name our frames carry */
static NetClientState *erdma_wire_nic(ErdmaState *s, unsigned *vnet_len)
{
    NetClientState *nc;

    *vnet_len = 0;
    if (s->wire.nic) {
        nc = qemu_get_queue(s->wire.nic);
    } else {
        nc = erdma_eni_nic(s, vnet_len);
    }
    if (!nc || nc->link_down || !nc->peer || *vnet_len > ERDMA_WIRE_MAX_VNET) {
        return NULL;
    }
    return nc;
}

/*
 * False: blocked.  Frames that are one too many are lost: the backend does
 * not move, and who asks or answers goes on all the same.
 */
static bool erdma_wire_queue(ErdmaState *s, const uint8_t *frame, size_t len)
{
    ErdmaWire *w = &s->wire;
    ErdmaOutFrame *f;

    if (w->n_out == ERDMA_WIRE_MAX_OUT) {
        erdma_wire_drop(s, &w->stats.tx_no_wire, "too many wait");
        return !w->blocked_on;
    }
    f = g_malloc(sizeof(*f) + ERDMA_WIRE_MAX_VNET + len);
    f->len = len;
    memcpy(f->data + ERDMA_WIRE_MAX_VNET, frame, len);
    QTAILQ_INSERT_TAIL(&w->out, f, next);
    w->n_out++;
    if (!s->is_in_engine) {
        erdma_port_kick(s);
    }
    return !w->blocked_on;
}

static ErdmaOutFrame *erdma_wire_next(ErdmaWire *w)
{
    ErdmaOutFrame *f = QTAILQ_FIRST(&w->out);

    if (f) {
        QTAILQ_REMOVE(&w->out, f, next);
        w->n_out--;
    }
    return f;
}

/* The device may be reset or gone afterwards. */
static void erdma_wire_send(ErdmaState *s, ErdmaOutFrame *f)
{
    ErdmaWire *w = &s->wire;
    unsigned vnet_len;
    NetClientState *nic = erdma_wire_nic(s, &vnet_len);
    uint8_t *frame;
    ssize_t ret;

    if (!nic) {
        erdma_wire_drop(s, &w->stats.tx_no_wire, "no link");
        return;
    }
    frame = f->data + ERDMA_WIRE_MAX_VNET - vnet_len;
    memset(frame, 0, vnet_len);         /* no offloads */
    w->is_sending = true;
    ret = qemu_send_packet_async(nic, frame, vnet_len + f->len,
                                 erdma_wire_sent);
    w->is_sending = false;
    if (ret == 0 && s->engine) {
        erdma_wire_block(s, nic);
    }
}

void erdma_wire_flush(ErdmaState *s)
{
    ErdmaWire *w = &s->wire;
    ErdmaOutFrame *f;

    while (!w->blocked_on && (f = erdma_wire_next(w))) {
        erdma_wire_send(s, f);
        g_free(f);
    }
}

static void erdma_wire_send_arp(ErdmaState *s, uint16_t op, uint32_t own_ip,
                                uint32_t target_ip, const uint8_t *dst_mac)
{
    uint8_t frame[ERDMA_ARP_FRAME_LEN];
    ErdmaArp arp = { .op = op, .sender_ip = own_ip, .target_ip = target_ip };

    memcpy(arp.sender_mac, s->mac.a, ERDMA_MAC_LEN);
    erdma_arp_build(frame, &arp, dst_mac);
    erdma_wire_queue(s, frame, sizeof(frame));
}

static void erdma_wire_ask(ErdmaState *s, uint32_t own_ip, uint32_t ip)
{
    if (erdma_neigh_ask(s->wire.hops, ip, erdma_wire_now())) {
        s->wire.stats.arp_asked++;
        trace_erdma_neigh_ask(s->name, ip);
        erdma_wire_send_arp(s, ERDMA_ARP_REQUEST, own_ip, ip, NULL);
    }
}

/* Our own addresses are next hops, too. */
static bool erdma_wire_is_own(const ErdmaState *s, const uint8_t *hop)
{
    return hop && !memcmp(hop, s->mac.a, ERDMA_MAC_LEN);
}

/*
 * Ask before the first packet has to wait, and answer from now on: the end
 * that only listens at first would never show its address otherwise.
 */
void erdma_wire_conn_open(ErdmaState *s, uint32_t local_ip, uint32_t peer_ip)
{
    erdma_neigh_learn(s->wire.hops, local_ip, s->mac.a);
    if (!erdma_neigh_lookup(s->wire.hops, peer_ip)) {
        erdma_wire_ask(s, local_ip, peer_ip);
    }
}

static void erdma_wire_announce_ip(void *opaque, uint32_t ip,
                                   const uint8_t *mac)
{
    ErdmaState *s = opaque;

    if (erdma_wire_is_own(s, mac)) {
        erdma_wire_send_arp(s, ERDMA_ARP_REQUEST, ip, ip, NULL);
    }
}

void erdma_wire_announce(ErdmaState *s)
{
    erdma_neigh_foreach(s->wire.hops, erdma_wire_announce_ip, s);
}

bool erdma_wire_transmit(ErdmaState *s, const ErdmaDatagram *dg)
{
    ErdmaWire *w = &s->wire;
    unsigned vnet_len;
    const uint8_t *hop;
    uint8_t *frame;
    bool is_open;

    hop = erdma_neigh_lookup(w->hops, dg->dst_ip);
    if (dg->dst_ip == dg->src_ip || erdma_wire_is_own(s, hop)) {
        w->stats.tx_loopback++;
        return erdma_wire_defer(s, dg);
    }
    if (!erdma_wire_nic(s, &vnet_len)) {
        erdma_wire_drop(s, &w->stats.tx_no_wire, "no link");
        return true;
    }
    if (!hop) {
        erdma_wire_drop(s, &w->stats.tx_no_hop, "next hop unknown");
        erdma_wire_ask(s, dg->src_ip, dg->dst_ip);
        return !w->blocked_on;
    }
    frame = erdma_frame_build(dg, s->mac.a, hop, s->has_udp_checksum);
    is_open = erdma_wire_queue(s, frame, ERDMA_FRAME_LEN + dg->len);
    trace_erdma_wire_tx(s->name, dg->dst_ip, dg->len, !is_open);
    return is_open;
}

bool erdma_wire_defer(ErdmaState *s, const ErdmaDatagram *dg)
{
    ErdmaWire *w = &s->wire;
    ErdmaLoopPacket *p;

    if (w->n_loop == ERDMA_WIRE_MAX_LOOP) {
        return false;
    }
    p = g_malloc(sizeof(*p) + dg->len);
    p->dg = *dg;
    p->dg.data = p->data;
    memcpy(p->data, dg->data, dg->len);
    QTAILQ_INSERT_TAIL(&w->loop, p, next);
    w->n_loop++;
    erdma_port_kick(s);
    return w->n_loop < ERDMA_WIRE_MAX_LOOP;
}

void erdma_wire_foreach_loop(ErdmaState *s,
                             void (*func)(void *opaque,
                                          const ErdmaDatagram *dg),
                             void *opaque)
{
    ErdmaLoopPacket *p;

    QTAILQ_FOREACH(p, &s->wire.loop, next) {
        func(opaque, &p->dg);
    }
}

static ErdmaLoopPacket *erdma_wire_pop(ErdmaWire *w)
{
    ErdmaLoopPacket *p = QTAILQ_FIRST(&w->loop);

    if (p) {
        QTAILQ_REMOVE(&w->loop, p, next);
        w->n_loop--;
    }
    return p;
}

void erdma_wire_drain(ErdmaState *s, uint64_t now_ns)
{
    ErdmaWire *w = &s->wire;
    /* What these cause to be queued waits for the next round. */
    unsigned n = w->n_loop;
    ErdmaLoopPacket *p;

    if (n == ERDMA_WIRE_MAX_LOOP) {
        w->has_room = true;
    }
    while (n-- && (p = erdma_wire_pop(w))) {
        erdma_engine_input(s->engine, &p->dg, now_ns);
        g_free(p);
    }
    if (w->has_room && !w->blocked_on) {
        w->has_room = false;
        erdma_engine_unblock(s->engine);
    }
}

/*
 * Others announce themselves or answer.  In an ENI's company we only take
 * note; on a wire of our own nobody else answers for our addresses.
 */
static void erdma_wire_arp(ErdmaState *s, const ErdmaArp *arp)
{
    ErdmaWire *w = &s->wire;

    if (!memcmp(arp->sender_mac, s->mac.a, ERDMA_MAC_LEN)) {
        return;
    }
    if (erdma_neigh_update(w->hops, arp->sender_ip, arp->sender_mac)) {
        g_autofree char *mac = qemu_mac_strdup_printf(arp->sender_mac);

        trace_erdma_neigh_learn(s->name, arp->sender_ip, mac);
    }
    if (w->nic && arp->op == ERDMA_ARP_REQUEST &&
        erdma_wire_is_own(s, erdma_neigh_lookup(w->hops, arp->target_ip))) {
        w->stats.arp_answered++;
        erdma_wire_send_arp(s, ERDMA_ARP_REPLY, arp->target_ip,
                            arp->sender_ip, arp->sender_mac);
    }
}

bool erdma_wire_rx(ErdmaState *s, const uint8_t *frame, size_t len,
                   bool is_csum_ok)
{
    ErdmaWire *w = &s->wire;
    ErdmaDatagram dg;
    ErdmaArp arp;
    ErdmaFrameKind kind;

    if (erdma_arp_parse(frame, len, &arp)) {
        if (s->is_running) {
            erdma_wire_arp(s, &arp);
        }
        return false;
    }
    if (len < ERDMA_MAC_LEN || memcmp(frame, s->mac.a, ERDMA_MAC_LEN)) {
        return false;
    }
    kind = erdma_frame_parse(frame, len, is_csum_ok, &dg);
    if (kind == ERDMA_FRAME_OTHER || dg.dst_port != s->xport.udp_port ||
        !erdma_xport_is_ours(dg.data, dg.len)) {
        return false;
    }
    if (kind == ERDMA_FRAME_BROKEN) {
        erdma_wire_drop(s, &w->stats.rx_bad_checksum, "UDP checksum");
    } else if (!s->is_running) {
        erdma_wire_drop(s, &w->stats.rx_stopped, "machine stopped");
    } else {
        trace_erdma_wire_rx(s->name, dg.src_ip, dg.len);
        erdma_port_input(s, &dg);
    }
    return true;
}

void erdma_wire_forget(ErdmaState *s)
{
    erdma_neigh_clear(s->wire.hops);
}

void erdma_wire_reset(ErdmaState *s)
{
    ErdmaLoopPacket *p;
    ErdmaOutFrame *f;

    while ((p = erdma_wire_pop(&s->wire))) {
        g_free(p);
    }
    while ((f = erdma_wire_next(&s->wire))) {
        g_free(f);
    }
    s->wire.has_room = false;
}

void erdma_wire_init(ErdmaState *s)
{
    QTAILQ_INIT(&s->wire.out);
    QTAILQ_INIT(&s->wire.loop);
    s->wire.hops = erdma_neigh_new(ERDMA_WIRE_MAX_HOPS);
}

void erdma_wire_exit(ErdmaState *s)
{
    erdma_wire_reset(s);
    if (s->wire.blocked_on) {
        QLIST_REMOVE(s, wire.next_blocked);
        s->wire.blocked_on = NULL;
    }
    erdma_neigh_free(s->wire.hops);
    s->wire.hops = NULL;
}
