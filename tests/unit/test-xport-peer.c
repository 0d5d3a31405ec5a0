/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a peer, or somebody who pretends to be one, can make the transport
 * hold, send or believe: each case has a bound.
 */

#include "qemu/osdep.h"
#include <malloc.h>
#include "xport/conn.h"
#include "xport-rig.h"

#define PN0     0x20000000u     /* of the peer, end 1 */

/* As the rig's end 1 would say it */
static void forge(ErdmaWire *w, ErdmaWireType type, uint32_t number)
{
    memset(w, 0, sizeof(*w));
    w->type = type;
    w->dst_cookie = 0x1000;
    w->src_cookie = 0x1001;
    w->number = number;
}

static void inject(XportRig *rig, const ErdmaWire *w)
{
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX];

    rig_inject(rig, 0, buf, erdma_wire_encode(w, buf));
}

static RigFate lose_all(XportRig *rig, RigPacket *p)
{
    return (RigFate) { .is_lost = true };
}

static XportRig *open_rig(uint8_t cc)
{
    XportRig *rig = rig_new(NULL);

    rig->cc = cc;
    rig->pn0[1] = PN0;
    rig_open_both(rig);
    rig->fate = lose_all;
    rig_poll(rig, 0);
    return rig;
}

static size_t heap(void)
{
    return mallinfo2().uordblks;
}

/* Packets for connections that do not exist: counted, and that is all. */
static void test_flood(void)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    const ErdmaXportStats *s = rig_stats(rig, 0);
    uint64_t sent = s->tx_packets;
    const unsigned n = 200000;
    size_t before = heap();
    ErdmaWire w;
    unsigned i;

    for (i = 0; i < n; i++) {
        forge(&w, i % 2 ? ERDMA_WIRE_PING : ERDMA_WIRE_TERM, i);
        w.dst_cookie = 0x2000 + i * 2654435761u;
        w.src_cookie = i;
        inject(rig, &w);
    }
    rig_poll(rig, 0);
    g_assert_cmpuint(s->drops[ERDMA_XPORT_DROP_NO_CONN], ==, n);
    /* Nobody is answered whom we do not know: no packet is reflected. */
    g_assert_cmpuint(s->tx_packets, ==, sent);
    g_assert_cmpuint(heap(), ==, before);
    rig_free(rig);
}

/* Is a TERM with this bit of cookies and addresses flipped believed? */
static bool believed(unsigned bit)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX];
    uint32_t flip = 1u << bit % 32;
    ErdmaDatagram dg = {
        .src_ip = 0x0a000002, .dst_ip = 0x0a000001, .data = buf,
    };
    ErdmaWire w;
    bool ret;

    forge(&w, ERDMA_WIRE_TERM, PN0);
    w.dst_cookie ^= bit / 32 == 0 ? flip : 0;
    w.src_cookie ^= bit / 32 == 1 ? flip : 0;
    dg.src_ip ^= bit / 32 == 2 ? flip : 0;
    dg.dst_ip ^= bit / 32 == 3 ? flip : 0;
    dg.len = erdma_wire_encode(&w, buf);
    erdma_xport_input(rig->end[0].x, &dg, rig->now_ns);
    ret = rig->end[0].n_terminated;
    rig_free(rig);
    return ret;
}

/*
 * Who cannot read the wire has to guess both cookies, 64 bits, and a packet
 * number: at most one in 2^11 of those is in the window.
 */
static void test_guess(void)
{
    XportRig *rig;
    unsigned bit, n = 0, i;
    ErdmaWire w;

    g_assert_true(believed(128));
    for (bit = 0; bit < 128; bit++) {
        g_assert_false(believed(bit));
    }
    rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    for (i = 0; i < 1 << 16; i++) {
        uint64_t drops = rig_stats(rig, 0)->drops[ERDMA_XPORT_DROP_WINDOW];

        forge(&w, ERDMA_WIRE_PING, i << 16 | 0x1234);
        inject(rig, &w);
        n += drops == rig_stats(rig, 0)->drops[ERDMA_XPORT_DROP_WINDOW];
    }
    g_test_message("%u of 2^16 packet numbers are taken", n);
    g_assert_cmpuint(n, >, 0);
    g_assert_cmpuint(n, <=, 1 << 5);
    rig_free(rig);
}

/*
 * A cookie that was good is not good for the next connection of the QP, nor
 * is one that will be.
 */
static void test_incarnations(void)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    ErdmaWire w;

    /* What the peer of the life before, and of the one after, would send */
    forge(&w, ERDMA_WIRE_TERM, PN0);
    w.dst_cookie = 0x1000 - (1 << 20);
    inject(rig, &w);
    w.dst_cookie = 0x1000 + (1 << 20);
    inject(rig, &w);
    g_assert_cmpuint(rig_stats(rig, 0)->drops[ERDMA_XPORT_DROP_NO_CONN], ==,
                     2);
    forge(&w, ERDMA_WIRE_TERM, PN0);
    w.src_cookie = 0x1001 - (1 << 20);
    inject(rig, &w);
    g_assert_cmpuint(rig_stats(rig, 0)->drops[ERDMA_XPORT_DROP_PEER], ==, 1);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 0);
    rig_free(rig);
}

static const uint8_t loss_based[] = {
    ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC,
};

/* An ack for every byte opens the window for no more than the bytes. */
static void test_ack_division(void)
{
    ErdmaXportConnInfo before, after;
    unsigned i, off;
    ErdmaWire w;

    for (i = 0; i < ARRAY_SIZE(loss_based); i++) {
        XportRig *rig = open_rig(loss_based[i]);

        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 1000000);
        rig_poll(rig, 0);
        rig_info(rig, 0, &before);
        for (off = 1; off <= 1400; off++) {
            forge(&w, ERDMA_WIRE_ACK, PN0 + off);
            w.u.ack.off = off;
            w.u.ack.credit = 1 << 20;
            w.u.ack.largest_pn = w.u.ack.trigger_pn = 0;
            w.u.ack.n_ranges = 1;
            inject(rig, &w);
        }
        rig_info(rig, 0, &after);
        g_assert_cmpuint(after.tx_delivered, ==, 1400);
        g_assert_cmpuint(after.cwnd, >, before.cwnd);
        g_assert_cmpuint(after.cwnd, <=, before.cwnd + 1500);
        rig_free(rig);
    }
}

/*
 * Acks for packets that were sent, before they can have arrived: the window
 * grows as for an honest peer whose round trip is that short, no faster, and
 * nothing that was not sent is ever outstanding.
 */
static void test_optimistic_acks(void)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    const ErdmaXportStats *s = rig_stats(rig, 0);
    ErdmaXportConnInfo info;
    uint64_t sent = 0, cwnd;
    unsigned round;
    ErdmaWire w;

    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100 << 20);
    rig_poll(rig, 0);
    for (round = 1; round <= 12; round++) {
        rig_info(rig, 0, &info);
        cwnd = info.cwnd;
        g_assert_cmpuint(info.inflight, <=, cwnd + 1500);
        sent = s->tx_data_packets;
        forge(&w, ERDMA_WIRE_ACK, PN0 + round);
        w.u.ack.credit = UINT32_MAX;
        w.u.ack.n_ranges = 1;
        w.u.ack.ranges[0] = (ErdmaWireRange) { 0, sent - 1 };
        w.u.ack.largest_pn = w.u.ack.trigger_pn = sent - 1;
        inject(rig, &w);
        rig_info(rig, 0, &info);
        g_assert_cmpuint(info.cwnd, <=, 2 * cwnd + 1500);
        while (rig->end[0].next_ns <= rig->now_ns) {
            rig_poll(rig, 0);
        }
        rig_poll(rig, 0);
    }
    rig_free(rig);
}

/* No credit, for ever: asked for at growing intervals, then given up. */
static void test_no_credit(void)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    const ErdmaXportStats *s = rig_stats(rig, 0);
    uint64_t sent;
    unsigned i;
    ErdmaWire w;

    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 1 << 20);
    rig_poll(rig, 0);
    sent = s->tx_data_packets;
    forge(&w, ERDMA_WIRE_ACK, PN0);
    w.u.ack.n_ranges = 1;
    w.u.ack.ranges[0] = (ErdmaWireRange) { 0, sent - 1 };
    w.u.ack.largest_pn = w.u.ack.trigger_pn = sent - 1;
    inject(rig, &w);
    sent = s->tx_packets;
    /* It says so again and again, for a minute. */
    for (i = 1; i <= 600 && !rig->end[0].n_errors; i++) {
        rig_run(rig, rig->now_ns + 100 * RIG_MS);
        w.number = PN0 + i;
        inject(rig, &w);
    }
    g_assert_cmpuint(rig->end[0].n_errors, ==, 1);
    g_assert_cmpuint(s->tx_packets - sent, <, 100);
    rig_free(rig);
}

/* What end 0 has sent and the peer has not taken, with each message's cost */
static uint64_t undelivered(const XportRig *rig)
{
    return rig->end[0].conn->tx.undelivered;
}

/*
 * Credit that comes and goes: what is sent is never more than the credit that
 * counts at that time, and what was given and taken back is forgotten.
 */
static void test_credit_games(void)
{
    static const uint32_t credits[] = {
        0, 50000, 1, 20000, 0, UINT32_MAX, 1u << 31, 0, 3000, 100000, 0,
    };
    XportRig *rig = open_rig(ERDMA_XPORT_CC_NONE);
    const ErdmaXportStats *s = rig_stats(rig, 0);
    uint64_t before, n_data;
    unsigned i;
    ErdmaWire w;

    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 4 << 20);
    rig_poll(rig, 0);
    for (i = 0; i < ARRAY_SIZE(credits); i++) {
        /* All packets have arrived, and none of them was taken. */
        forge(&w, ERDMA_WIRE_ACK, PN0 + 1 + i);
        w.u.ack.credit = credits[i];
        w.u.ack.n_ranges = 1;
        n_data = s->tx_data_packets;
        w.u.ack.ranges[0] = (ErdmaWireRange) { 0, n_data - 1 };
        w.u.ack.largest_pn = w.u.ack.trigger_pn = n_data - 1;
        before = undelivered(rig);
        inject(rig, &w);
        rig_poll(rig, 0);
        g_assert_cmpuint(undelivered(rig), <=,
                         MAX(before, (uint64_t)credits[i] + 1500));
        if (!credits[i]) {
            g_assert_cmpuint(undelivered(rig), ==, before);
        }
    }
    g_assert_cmpuint(undelivered(rig), >, 50000);
    rig_free(rig);
}

/* Out of order, never in order: a connection keeps its share, no more. */
static void test_reorder_buffer(void)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_CUBIC);
    const ErdmaXportStats *s = rig_stats(rig, 0);
    size_t before = heap(), grown;
    ErdmaXportConnInfo info;
    uint8_t buf[256] = { 0 };
    ErdmaWire w;
    unsigned i;
    ErdmaXportConfig cfg;

    rig_config(&cfg);
    for (i = 0; i < 100000; i++) {
        size_t len;

        forge(&w, ERDMA_WIRE_DATA, PN0 + i);
        w.u.data.msn = 1 + i;
        w.u.data.hdr.op = ERDMA_XPORT_OP_SEND;
        w.u.data.hdr.len = w.u.data.len = 1;
        w.u.data.is_first = w.u.data.is_last = true;
        len = erdma_wire_encode(&w, buf);
        rig_inject(rig, 0, buf, len + 1);
    }
    rig_info(rig, 0, &info);
    grown = heap() - before;
    g_test_message("a reorder buffer of %u bytes takes %zu bytes of memory",
                   cfg.rx_buffer, grown);
    g_assert_cmpuint(info.rx_held_bytes, <=, cfg.rx_buffer);
    g_assert_cmpuint(s->drops[ERDMA_XPORT_DROP_NO_BUFFER], >, 0);
    g_assert_cmpuint(grown, <, 2 * cfg.rx_buffer);
    rig_free(rig);
}

/* Many connections, each of which is made to keep as much as it may */

static bool take_transmit(void *opaque, const ErdmaDatagram *dg)
{
    return true;
}

static ErdmaXportRx take_rx(void *opaque, void *owner,
                            const ErdmaXportMsgHdr *hdr, uint32_t msn,
                            uint32_t off, const uint8_t *data, uint32_t len,
                            bool is_last)
{
    return ERDMA_XPORT_RX_OK;
}

static const ErdmaXportOps take_ops = {
    .transmit = take_transmit,
    .rx = take_rx,
};

static void inject_ahead(ErdmaXport *x, unsigned conn, uint32_t number,
                         uint32_t msn)
{
    uint8_t buf[9000] = { 0 };
    ErdmaDatagram dg = { .src_ip = 2, .dst_ip = 1, .data = buf };
    ErdmaWire w;

    forge(&w, ERDMA_WIRE_DATA, number);
    w.dst_cookie = conn;
    w.src_cookie = ~conn;
    w.u.data.msn = msn;
    w.u.data.hdr.op = ERDMA_XPORT_OP_SEND;
    w.u.data.hdr.len = w.u.data.len = 8000;
    w.u.data.is_first = w.u.data.is_last = true;
    dg.len = erdma_wire_encode(&w, buf) + 8000;
    erdma_xport_input(x, &dg, RIG_S);
}

static void test_reorder_buffers(void)
{
    enum { CONNS = 300, EACH = 40 };
    ErdmaXportConfig cfg;
    ErdmaXport *x;
    const ErdmaXportStats *s;
    ErdmaXportConn *conn[CONNS];
    ErdmaXportConnInfo info;
    uint64_t held = 0;
    unsigned i, k;

    erdma_xport_config_default(&cfg);
    cfg.rx_buffer = 1 << 18;
    x = erdma_xport_new(&take_ops, NULL, &cfg);
    s = erdma_xport_stats(x);
    for (i = 0; i < CONNS; i++) {
        ErdmaXportConnParams p = {
            .local_cookie = i, .peer_cookie = ~i, .local_ip = 1, .peer_ip = 2,
            .rx_pn0 = 100,
        };

        conn[i] = erdma_xport_conn_open(x, &p, RIG_S);
        for (k = 0; k < EACH; k++) {
            inject_ahead(x, i, 101 + k, 1 + k);
        }
    }
    for (i = 0; i < CONNS; i++) {
        erdma_xport_conn_info(conn[i], &info);
        held += info.rx_held_bytes;
    }
    g_test_message("%" PRIu64 " bytes held", held);
    g_assert_cmpuint(held, >, 60 * cfg.rx_buffer);
    g_assert_cmpuint(held, <=, 64 * cfg.rx_buffer);
    /* The last one was left nothing, but what comes in order needs none. */
    g_assert_cmpuint(info.rx_held_bytes, ==, 0);
    inject_ahead(x, CONNS - 1, 100, 0);
    inject_ahead(x, CONNS - 1, 101, 1);
    erdma_xport_conn_info(conn[CONNS - 1], &info);
    g_assert_cmpuint(info.rx_delivered, ==, 16000);
    /* One that goes gives back what it had. */
    erdma_xport_conn_close(conn[0]);
    k = s->drops[ERDMA_XPORT_DROP_NO_BUFFER];
    inject_ahead(x, CONNS - 1, 103, 3);
    g_assert_cmpuint(s->drops[ERDMA_XPORT_DROP_NO_BUFFER], ==, k);
    erdma_xport_free(x);
}

/* INT headers that claim more hops than they have room for, up to 255 */
static void test_int_hops(void)
{
    XportRig *rig = open_rig(ERDMA_XPORT_CC_HPCC_INT);
    const ErdmaXportStats *s = rig_stats(rig, 0);
    unsigned info, hops, n = 0;

    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 1000000);
    rig_poll(rig, 0);
    for (info = 0; info < 256; info++) {
        for (hops = 0; hops < 256; hops++) {
            uint8_t buf[2000] = { 0 };
            ErdmaWire w;
            size_t len;

            forge(&w, ERDMA_WIRE_ACK, PN0 + ++n);
            w.u.ack.credit = 1 << 20;
            w.u.ack.n_ranges = 1;
            len = erdma_wire_encode(&w, buf);
            /* The info byte, and a stack behind the common header */
            buf[16] = info;
            memmove(buf + 20 + erdma_wire_int_bytes(info), buf + 20,
                    len - 20);
            if (erdma_wire_int_bytes(info)) {
                memset(buf + 20, 0xff, erdma_wire_int_bytes(info));
                buf[20] = hops;
            }
            rig_inject(rig, 0, buf, len + erdma_wire_int_bytes(info));
        }
    }
    /* Of each form and size those are believed whose hops had room. */
    g_assert_cmpuint(s->int_samples, >, 0);
    g_assert_cmpuint(s->int_samples, <=,
                     8 * 9 / 2 + 16 * 8 * 9 / 2);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/peer/flood", test_flood);
    g_test_add_func("/erdma/xport/peer/guess", test_guess);
    g_test_add_func("/erdma/xport/peer/incarnations", test_incarnations);
    g_test_add_func("/erdma/xport/peer/ack-division", test_ack_division);
    g_test_add_func("/erdma/xport/peer/optimistic-acks",
                    test_optimistic_acks);
    g_test_add_func("/erdma/xport/peer/no-credit", test_no_credit);
    g_test_add_func("/erdma/xport/peer/credit-games", test_credit_games);
    g_test_add_func("/erdma/xport/peer/reorder-buffer", test_reorder_buffer);
    g_test_add_func("/erdma/xport/peer/reorder-buffers",
                    test_reorder_buffers);
    g_test_add_func("/erdma/xport/peer/int-hops", test_int_hops);
    return g_test_run();
}
