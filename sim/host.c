/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: a host, that is a transport and its link into the network. */

#include "qemu/osdep.h"
#include "sim-int.h"
#include "xport/wire.h"

/* One call of the transport's may send this many packets. */
#define POLL_PACKETS    64
/* Common header, MSN and offset, the longest message header; no INT */
#define DATA_HEAD_MAX   (ERDMA_WIRE_COMMON_LEN + ERDMA_WIRE_DATA_LEN + \
                         ERDMA_WIRE_MSG_HDR_LEN + 28)

/*
 * What lies in front of the payload.  Only this much of a packet is copied:
 * links and transport look at nothing else, and the payload has no content.
 */
static size_t head_len(const ErdmaDatagram *dg)
{
    size_t body = (dg->data[2] & 0xf) == ERDMA_WIRE_DATA ? DATA_HEAD_MAX :
                  ERDMA_WIRE_CONTROL_MAX - ERDMA_WIRE_INT_MAX;

    return MIN(dg->len, body + erdma_wire_int_bytes(dg->data[16]));
}

/*
 * The transport is next to the wire: a packet leaves when the wire is free
 * and not before, so what waits is not in a queue that nobody controls but
 * still subject to window and pacer.
 */
static bool take_wire(SimHost *h, uint32_t len)
{
    Sim *s = h->sim;
    const NetemConfig *cfg = netem_link_config(h->out->net);

    h->wire_free_ns = s->now_ns + sim_serialise_ns(cfg, len);
    h->is_blocked = h->wire_free_ns > s->now_ns;
    return !h->is_blocked;
}

static bool transmit(void *opaque, const ErdmaDatagram *dg)
{
    SimHost *h = opaque;
    Sim *s = h->sim;
    SimPacket *p = sim_packet_new(s);

    p->src = h->number;
    p->dst = dg->dst_ip - SIM_IP_BASE;
    p->ecn = dg->ecn;
    p->net.len = dg->len + ERDMA_XPORT_IP_UDP_LEN;
    p->head_len = head_len(dg);
    memcpy(p->data, dg->data, p->head_len);
    s->cost.packets++;
    sim_link_put(h->out, p);
    return take_wire(h, dg->len + ERDMA_XPORT_IP_UDP_LEN);
}

static bool pull(void *opaque, void *owner, ErdmaXportMsg *msg, uint32_t off,
                 uint8_t *buf, uint32_t len)
{
    return true;
}

static ErdmaXportRx rx(void *opaque, void *owner, const ErdmaXportMsgHdr *hdr,
                       uint32_t msn, uint32_t off, const uint8_t *data,
                       uint32_t len, bool is_last)
{
    return sim_flow_rx(owner, msn, off, len, is_last);
}

static void msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    sim_flow_msg_done(owner, msg);
}

static void tx_room(void *opaque, void *owner)
{
}

static void terminated(void *opaque, void *owner, uint8_t status,
                       uint32_t msn)
{
    sim_flow_failed(owner);
}

static void conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    sim_flow_failed(owner);
}

static void trace(void *opaque, void *owner, ErdmaXportEvent event,
                  uint64_t a, uint64_t b)
{
    if (owner) {
        sim_flow_trace(owner, event, a, b);
    }
}

static const ErdmaXportOps host_ops = {
    .transmit = transmit,
    .pull = pull,
    .rx = rx,
    .msg_done = msg_done,
    .tx_room = tx_room,
    .terminated = terminated,
    .conn_error = conn_error,
    .trace = trace,
};

void sim_host_poll(SimHost *h)
{
    Sim *s = h->sim;
    uint64_t at_ns;

    if (h->is_blocked && h->wire_free_ns <= s->now_ns) {
        h->is_blocked = false;
        erdma_xport_unblock(h->x);
    }
    s->is_polling = true;
    do {
        at_ns = h->is_blocked ? ERDMA_XPORT_NEVER :
                erdma_xport_poll(h->x, s->now_ns, POLL_PACKETS);
    } while (at_ns <= s->now_ns);
    s->is_polling = false;
    if (h->is_blocked) {
        at_ns = h->wire_free_ns;
    }
    if (at_ns != ERDMA_XPORT_NEVER) {
        sim_schedule_by(s, &h->event, at_ns);
    }
}

static void host_fire(SimEvent *e, uint64_t now_ns)
{
    sim_host_poll((SimHost *)e);
}

static void host_prepare(const SimEvent *e)
{
    const SimHost *h = (const SimHost *)e;

    if (!h->is_blocked) {
        erdma_xport_fetch_due(h->x, e->when_ns);
    }
}

void sim_host_input(SimHost *h, SimPacket *p)
{
    Sim *s = h->sim;
    ErdmaDatagram dg = {
        .src_ip = SIM_IP_BASE + p->src,
        .dst_ip = SIM_IP_BASE + p->dst,
        .src_port = s->cfg.xport.udp_port,
        .dst_port = s->cfg.xport.udp_port,
        .ecn = p->ecn,
        .data = p->data,
        .len = p->net.len - ERDMA_XPORT_IP_UDP_LEN,
    };

    if (s->tap) {
        s->tap(s->tap_opaque, h->number, s->now_ns, dg.data, dg.len);
    }
    erdma_xport_input(h->x, &dg, s->now_ns);
    sim_host_poll(h);
}

void sim_host_fetch(const SimHost *h, const SimPacket *p, unsigned stage)
{
    switch (stage) {
    case 0:
        __builtin_prefetch(h);
        __builtin_prefetch((const char *)h + 64);
        return;
    case 2:
        /* What it makes the host send */
        __builtin_prefetch(h->out);
        __builtin_prefetch(h->in);
        break;
    case 3:
        if (!h->out->is_plain) {
            netem_link_fetch(h->out->net);
        }
        break;
    }
    erdma_xport_fetch(h->x, p->data, stage - 1);
}

SimHost *sim_host_new(Sim *s, unsigned number, unsigned node)
{
    SimHost *h = sim_alloc(sizeof(*h));

    h->sim = s;
    h->number = number;
    h->node = node;
    h->event.fire = host_fire;
    h->event.prepare = host_prepare;
    h->x = erdma_xport_new(&host_ops, h, &s->cfg.xport);
    return h;
}

void sim_host_free(SimHost *h)
{
    erdma_xport_free(h->x);
    free(h);
}
