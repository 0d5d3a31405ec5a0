/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection and packets that no sound peer sends.
 */

#include "qemu/osdep.h"
#include "xport/wire.h"
#include "xport-rig.h"

static RigFate lose_all(XportRig *rig, RigPacket *p)
{
    return (RigFate) { .is_lost = true };
}

static void forge(ErdmaWire *w, ErdmaWireType type, uint32_t number)
{
    memset(w, 0, sizeof(*w));
    w->type = type;
    w->dst_cookie = 0x1000;     /* end 0 */
    w->src_cookie = 0x1001;
    w->number = number;
}

static void inject(XportRig *rig, const ErdmaWire *w)
{
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX];

    rig_inject(rig, 0, buf, erdma_wire_encode(w, buf));
}

/* Acks for what was never sent, or again and again for the same */
static void test_forged_ack(void)
{
    XportRig *rig = rig_new(NULL);
    const uint64_t *drops = rig_stats(rig, 0)->drops;
    ErdmaXportConnInfo before, after;
    ErdmaWire w;
    unsigned i;

    rig->pn0[0] = 1000;
    rig->pn0[1] = 2000;
    rig_open_both(rig);
    rig->fate = lose_all;
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 1000000);
    rig_poll(rig, 0);
    rig_info(rig, 0, &before);

    /* A packet number not sent yet */
    forge(&w, ERDMA_WIRE_ACK, 2010);
    w.u.ack.n_ranges = 1;
    w.u.ack.ranges[0] = (ErdmaWireRange) { 1000, 1020 };
    w.u.ack.largest_pn = w.u.ack.trigger_pn = 1020;
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_WINDOW], ==, 1);

    /* A position beyond what was sent, beyond the message */
    w.u.ack.ranges[0].last = w.u.ack.largest_pn = 1009;
    w.u.ack.msn = 1;
    w.u.ack.off = 1000000;
    inject(rig, &w);
    w.u.ack.off = 20000;
    inject(rig, &w);
    w.u.ack.msn = 2;
    w.u.ack.off = 0;
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_WINDOW], ==, 4);

    /* The end of a message, said as an offset in it */
    w.u.ack.msn = 0;
    w.u.ack.off = 100;
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_WINDOW], ==, 5);
    w.u.ack.off = 0;

    /* An ack number from another life */
    w.number = 2000 + (1 << 21);
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_WINDOW], ==, 6);
    rig_info(rig, 0, &after);
    g_assert_cmpuint(before.inflight, ==, after.inflight);
    g_assert_cmpuint(before.cwnd, ==, after.cwnd);

    /* One packet acked a hundred times opens the window for one packet. */
    w.number = 2010;
    w.u.ack.ranges[0].last = w.u.ack.largest_pn = 1000;
    w.u.ack.trigger_pn = 1000;
    w.u.ack.credit = 1 << 20;
    for (i = 0; i < 100; i++) {
        w.number++;
        inject(rig, &w);
    }
    rig_info(rig, 0, &after);
    g_assert_cmpuint(after.cwnd, ==, before.cwnd + 28 + 20 + 8 + 8 + 100);
    rig_free(rig);
}

static void test_strangers(void)
{
    XportRig *rig = rig_new(NULL);
    const uint64_t *drops = rig_stats(rig, 0)->drops;
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX];
    ErdmaDatagram dg = {
        .src_ip = 0x0a000009, .dst_ip = 0x0a000001, .data = buf,
    };
    ErdmaWire w;

    rig->pn0[1] = 5000;
    rig_open_both(rig);

    forge(&w, ERDMA_WIRE_TERM, 5000);
    w.dst_cookie = 0x77;
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_NO_CONN], ==, 1);

    /* The same connection in an earlier life of the peer */
    forge(&w, ERDMA_WIRE_TERM, 5000);
    w.src_cookie = 0x2001;
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_PEER], ==, 1);

    /* Everything right but the sender's address */
    forge(&w, ERDMA_WIRE_TERM, 5000);
    dg.len = erdma_wire_encode(&w, buf);
    erdma_xport_input(rig->end[0].x, &dg, rig->now_ns);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_PEER], ==, 2);

    /* Packet numbers far before the first and far behind it */
    forge(&w, ERDMA_WIRE_TERM, 5000 - (1 << 16) - 1);
    inject(rig, &w);
    forge(&w, ERDMA_WIRE_PING, 5000 + (1 << 21));
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_WINDOW], ==, 2);

    /* An answer to a question that was not asked */
    forge(&w, ERDMA_WIRE_TERM_ACK, 0);
    inject(rig, &w);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_WINDOW], ==, 3);

    buf[0] = 0x65;
    buf[1] = 0x52;
    buf[2] = 0x21;
    rig_inject(rig, 0, buf, 20);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_VERSION], ==, 1);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 0);

    forge(&w, ERDMA_WIRE_TERM, 5000);
    inject(rig, &w);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 1);
    rig_free(rig);
}

/* One segment of the first message of end 1, made by hand */
static void inject_segment(XportRig *rig, uint32_t pn, uint32_t off,
                           uint32_t len, uint32_t msg_len, bool is_last)
{
    uint8_t buf[2000] = { 0 };
    ErdmaWire w;
    size_t hdr_len;

    forge(&w, ERDMA_WIRE_DATA, pn);
    w.u.data.hdr.op = ERDMA_XPORT_OP_SEND;
    w.u.data.hdr.len = msg_len;
    w.u.data.off = off;
    w.u.data.len = len;
    w.u.data.is_first = off == 0;
    w.u.data.is_last = is_last;
    hdr_len = erdma_wire_encode(&w, buf);
    rig_fill(1, 0, off, buf + hdr_len, len);
    rig_inject(rig, 0, buf, hdr_len + len);
}

/*
 * Segments that contradict their message are dropped, whether they come in
 * order or have to wait.
 */
static void test_inconsistent(void)
{
    XportRig *rig = rig_new(NULL);
    const uint64_t *drops = rig_stats(rig, 0)->drops;

    rig_open_both(rig);
    /* The rig checks what is delivered against this message. */
    rig->fate = lose_all;
    rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 100);

    inject_segment(rig, 0, 70, 20, 100, true);      /* LAST too early */
    inject_segment(rig, 1, 50, 100, 100, true);     /* too long */
    g_assert_cmpuint(rig_stats(rig, 0)->rx_out_of_order, ==, 2);
    inject_segment(rig, 2, 0, 60, 100, false);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_MALFORMED], ==, 1);
    inject_segment(rig, 3, 60, 20, 100, false);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_MALFORMED], ==, 2);
    inject_segment(rig, 4, 80, 10, 100, true);
    inject_segment(rig, 5, 80, 21, 100, true);
    inject_segment(rig, 6, 80, 20, 100, false);
    g_assert_cmpuint(drops[ERDMA_XPORT_DROP_MALFORMED], ==, 5);
    g_assert_cmpuint(rig->end[0].rx_off, ==, 80);
    inject_segment(rig, 7, 80, 20, 100, true);
    g_assert_cmpuint(rig->end[0].rx_msn, ==, 1);
    rig_free(rig);
}

/* A held message that arrives again is not offered again. */
static ErdmaXportRx hold_once(XportRig *rig, int end, uint32_t msn,
                              uint32_t off)
{
    return rig->end[end].n_rx_calls == 1 ? ERDMA_XPORT_RX_NOT_READY :
           ERDMA_XPORT_RX_OK;
}

static void test_held_again(void)
{
    XportRig *rig = rig_new(NULL);

    rig_open_both(rig);
    rig->fate = lose_all;
    rig->on_rx = hold_once;
    rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 100);
    inject_segment(rig, 0, 0, 100, 100, true);
    inject_segment(rig, 1, 0, 100, 100, true);
    inject_segment(rig, 2, 0, 60, 100, false);
    g_assert_cmpuint(rig->end[0].n_rx_calls, ==, 1);
    erdma_xport_conn_rx_resume(rig->end[0].conn);
    rig_poll(rig, 0);
    g_assert_cmpuint(rig->end[0].n_rx_calls, ==, 2);
    g_assert_cmpuint(rig->end[0].rx_msn, ==, 1);
    rig_free(rig);
}

/* Cut differently each time, as after a change of the MTU; the rig checks. */
static void test_overlap(void)
{
    XportRig *rig = rig_new(NULL);

    rig_open_both(rig);
    rig->fate = lose_all;
    rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 1000);
    inject_segment(rig, 0, 0, 300, 1000, false);
    inject_segment(rig, 1, 100, 100, 1000, false);  /* all known */
    inject_segment(rig, 2, 200, 300, 1000, false);  /* a part known */
    g_assert_cmpuint(rig->end[0].rx_off, ==, 500);
    inject_segment(rig, 3, 600, 100, 1000, false);  /* stored, overlapping */
    inject_segment(rig, 4, 650, 250, 1000, false);
    inject_segment(rig, 5, 620, 50, 1000, false);
    g_assert_cmpuint(rig->end[0].rx_off, ==, 500);
    inject_segment(rig, 6, 450, 200, 1000, false);  /* joins them */
    g_assert_cmpuint(rig->end[0].rx_off, ==, 900);
    inject_segment(rig, 7, 0, 1000, 1000, true);
    g_assert_cmpuint(rig->end[0].rx_msn, ==, 1);
    g_assert_cmpuint(rig->end[0].rx_bytes, ==, 1000);
    g_assert_cmpuint(rig->end[0].n_rx_calls, ==, 6);
    rig_free(rig);
}

/* What failed is not asked to go on: it would be polled for ever. */
static void test_resume_failed(void)
{
    XportRig *rig = rig_new(NULL);
    RigEnd *e = &rig->end[0];

    rig_open_both(rig);
    rig->fate = lose_all;
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
    while (!e->n_errors) {
        rig->now_ns = MAX(rig->now_ns, e->next_ns);
        erdma_xport_conn_rx_resume(e->conn);
        rig_poll(rig, 0);
    }
    g_assert_cmpuint(e->next_ns, >, rig->now_ns);
    erdma_xport_conn_rx_resume(e->conn);
    rig_poll(rig, 0);
    g_assert_cmpuint(e->next_ns, >, rig->now_ns);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/hostile/forged-ack", test_forged_ack);
    g_test_add_func("/erdma/xport/hostile/strangers", test_strangers);
    g_test_add_func("/erdma/xport/hostile/inconsistent", test_inconsistent);
    g_test_add_func("/erdma/xport/hostile/held-again", test_held_again);
    g_test_add_func("/erdma/xport/hostile/overlap", test_overlap);
    g_test_add_func("/erdma/xport/hostile/resume-failed", test_resume_failed);
    return g_test_run();
}
