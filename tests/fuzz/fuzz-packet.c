/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gate: what comes from the wire, before any state is looked at.  A frame's
 * way in (Ethernet, IPv4, UDP, ARP) and a datagram's (the eRDMA header).
 *
 * The first byte chooses: bit 0 a datagram, else a frame; bit 1 the NIC
 * vouches for its UDP checksum; bit 2 its IPv4 header gets the checksum that
 * chance would not find.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "erdma-csum.h"
#include "erdma-frame.h"
#include "xport/wire.h"
#include "fuzz.h"

static void inside(const uint8_t *data, size_t len, const uint8_t *p,
                   size_t n)
{
    g_assert(p >= data && n <= len && (size_t)(p - data) <= len - n);
}

/* What was understood says the same when it is written and read again. */
static void check_round_trip(const ErdmaWire *w)
{
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX];
    ErdmaWire back = { 0 };
    size_t len = erdma_wire_len(w);

    g_assert_cmpuint(len, <=, sizeof(buf));
    g_assert_cmpuint(erdma_wire_encode(w, buf), ==, len);
    g_assert_cmpint(erdma_wire_parse(&back, buf, len), ==, ERDMA_WIRE_OK);
    g_assert_cmpint(back.type, ==, w->type);
    g_assert_cmphex(back.dst_cookie, ==, w->dst_cookie);
    g_assert_cmphex(back.src_cookie, ==, w->src_cookie);
    g_assert_cmphex(back.number, ==, w->number);
    g_assert_cmphex(back.int_info, ==, w->int_info);
    if (w->type == ERDMA_WIRE_ACK) {
        g_assert_cmpmem(&back.u.ack, sizeof(back.u.ack), &w->u.ack,
                        sizeof(w->u.ack));
    }
    if (w->type == ERDMA_WIRE_TERM) {
        g_assert_cmpuint(back.u.term.status, ==, w->u.term.status);
        g_assert_cmpuint(back.u.term.msn, ==, w->u.term.msn);
    }
}

static void datagram(const uint8_t *data, size_t len)
{
    ErdmaCcStack stack;
    ErdmaWire w;

    memset(&w, 0, sizeof(w));
    if (erdma_wire_parse(&w, data, len) != ERDMA_WIRE_OK) {
        return;
    }
    g_assert_true(erdma_xport_is_ours(data, len));
    if (w.int_info) {
        inside(data, len, w.int_stack, erdma_wire_int_bytes(w.int_info));
        if (erdma_wire_int_decode(&w, &stack)) {
            g_assert_cmpuint(stack.n_hops, <=, ERDMA_CC_HOPS_MAX);
        }
    }
    if (w.type == ERDMA_WIRE_DATA) {
        inside(data, len, w.u.data.payload, w.u.data.len);
        if (w.u.data.is_first) {
            g_assert_cmpuint(w.u.data.off, ==, 0);
            g_assert_cmpuint(w.u.data.hdr.op, <, ERDMA_XPORT_OP_COUNT);
        }
    } else {
        check_round_trip(&w);
    }
}

static void frame(const uint8_t *data, size_t len, bool is_csum_ok)
{
    static const uint8_t mac[ERDMA_MAC_LEN] = { 0x52, 0x54, 0, 9, 0, 1 };
    uint8_t hop[ERDMA_MAC_LEN];
    ErdmaDatagram dg;
    ErdmaArp arp;
    uint32_t ip;

    if (erdma_frame_parse(data, len, is_csum_ok, &dg) ==
        ERDMA_FRAME_DATAGRAM) {
        inside(data, len, dg.data, dg.len);
        datagram(dg.data, dg.len);
    }
    erdma_frame_next_hop(data, len, mac, &ip, hop);
    erdma_arp_parse(data, len, &arp);
}

static void fix_checksum(uint8_t *data, size_t len)
{
    uint8_t *ip = data + ERDMA_ETH_LEN;
    size_t hdr_len;

    if (len < ERDMA_FRAME_LEN) {
        return;
    }
    hdr_len = (ip[0] & 15) * 4;
    if (hdr_len >= 20 && hdr_len <= len - ERDMA_ETH_LEN) {
        stw_be_p(ip + 10, 0);
        stw_be_p(ip + 10, erdma_csum_finish(erdma_csum_sum(ip, hdr_len)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autofree uint8_t *copy = NULL;
    uint8_t choice;

    if (len < 2) {
        return 0;
    }
    choice = data[0];
    data++;
    len--;
    if (choice & 1) {
        datagram(data, len);
        return 0;
    }
    /* Exactly as long as the frame, so that reading on is seen */
    copy = g_malloc(len);
    memcpy(copy, data, len);
    if (choice & 4) {
        fix_checksum(copy, len);
    }
    frame(copy, len, choice & 2);
    return 0;
}
