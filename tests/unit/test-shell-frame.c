/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet, ARP, IPv4 and UDP around datagrams; their checksums */

#include "qemu/osdep.h"
#include "erdma-csum.h"
#include "erdma-frame.h"

static const uint8_t mac_a[] = { 0x52, 0x54, 0, 0, 0, 1 };
static const uint8_t mac_b[] = { 0x52, 0x54, 0, 0, 0, 2 };

/* The definition, byte by byte */
static uint16_t slow_csum(const uint8_t *data, size_t len)
{
    uint32_t sum = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        sum += i % 2 ? data[i] : data[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

static void test_csum(void)
{
    uint8_t data[200];
    size_t len, off, i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = g_test_rand_int();
    }
    for (off = 0; off < 8; off++) {
        for (len = 0; len + off <= sizeof(data); len++) {
            g_assert_cmphex(
                erdma_csum_finish(erdma_csum_sum(data + off, len)), ==,
                slow_csum(data + off, len));
        }
    }
    memset(data, 0xff, sizeof(data));
    g_assert_cmphex(erdma_csum_finish(erdma_csum_sum(data, 200)), ==, 0);
    g_assert_cmphex(erdma_csum_finish(UINT64_MAX), ==, 0);
    g_assert_cmphex(erdma_csum_finish(0), ==, 0xffff);
}

typedef struct Packet {
    uint8_t buf[ERDMA_XPORT_HEADROOM + 1500];
    ErdmaDatagram dg;
    uint8_t *frame;
    size_t len;
} Packet;

static void packet_build(Packet *p, size_t len, bool has_csum)
{
    size_t i;

    memset(p->buf, 0xee, sizeof(p->buf));
    p->dg = (ErdmaDatagram) {
        .src_ip = 0x0a000001, .dst_ip = 0x0a000002,
        .src_port = 1234, .dst_port = 64791, .ecn = 2,
        .data = p->buf + ERDMA_XPORT_HEADROOM, .len = len,
    };
    for (i = 0; i < len; i++) {
        p->dg.data[i] = i * 7;
    }
    p->frame = erdma_frame_build(&p->dg, mac_a, mac_b, has_csum);
    p->len = ERDMA_FRAME_LEN + len;
}

/* The IP header's checksum covers what a test has changed. */
static void packet_fix_ip(Packet *p)
{
    uint8_t *ip = p->frame + ERDMA_ETH_LEN;
    uint16_t csum;

    ip[10] = ip[11] = 0;
    csum = slow_csum(ip, (ip[0] & 15) * 4);
    ip[10] = csum >> 8;
    ip[11] = csum;
}

static ErdmaFrameKind parse(const Packet *p, size_t len, ErdmaDatagram *dg)
{
    /* In memory of its own, so that a sanitizer sees a read beyond it */
    g_autofree uint8_t *copy = g_memdup2(p->frame, len);
    ErdmaFrameKind kind = erdma_frame_parse(copy, len, false, dg);

    if (kind == ERDMA_FRAME_DATAGRAM) {
        g_assert_true(dg->data >= copy && dg->data + dg->len <= copy + len);
    }
    return kind;
}

static void test_round_trip(void)
{
    static const size_t lens[] = { 0, 1, 2, 31, 64, 1471, 1472 };
    ErdmaDatagram dg;
    ErdmaFrameKind kind;
    Packet p;
    size_t i;
    int has_csum;

    for (i = 0; i < G_N_ELEMENTS(lens); i++) {
        for (has_csum = 0; has_csum < 2; has_csum++) {
            packet_build(&p, lens[i], has_csum);
            /* Nothing in front of the frame was touched. */
            g_assert_cmphex(p.frame[-1], ==, 0xee);
            kind = erdma_frame_parse(p.frame, p.len, false, &dg);
            g_assert_cmpint(kind, ==, ERDMA_FRAME_DATAGRAM);
            g_assert_cmphex(dg.src_ip, ==, 0x0a000001);
            g_assert_cmphex(dg.dst_ip, ==, 0x0a000002);
            g_assert_cmpuint(dg.src_port, ==, 1234);
            g_assert_cmpuint(dg.dst_port, ==, 64791);
            g_assert_cmpuint(dg.ecn, ==, 2);
            g_assert_true(dg.data == p.dg.data);
            g_assert_cmpuint(dg.len, ==, lens[i]);
            /* Ethernet's padding is not payload. */
            kind = erdma_frame_parse(p.frame, p.len + 9, false, &dg);
            g_assert_cmpint(kind, ==, ERDMA_FRAME_DATAGRAM);
            g_assert_cmpuint(dg.len, ==, lens[i]);
        }
    }
}

static void test_headers(void)
{
    Packet p;

    packet_build(&p, 10, true);
    g_assert_cmpmem(p.frame, 6, mac_b, 6);
    g_assert_cmpmem(p.frame + 6, 6, mac_a, 6);
    g_assert_cmphex(p.frame[12] << 8 | p.frame[13], ==, 0x0800);
    g_assert_cmphex(p.frame[14], ==, 0x45);
    g_assert_cmphex(p.frame[20], ==, 0x40);     /* do not fragment */
    g_assert_cmpuint(p.frame[22], ==, 64);      /* time to live */
    g_assert_cmphex(slow_csum(p.frame + 14, 20), ==, 0);
}

static void test_broken_checksum(void)
{
    ErdmaDatagram dg;
    Packet p;
    size_t i;

    packet_build(&p, 101, true);
    for (i = 0; i < p.dg.len; i++) {
        p.dg.data[i] ^= 0x40;
        g_assert_cmpint(parse(&p, p.len, &dg), ==, ERDMA_FRAME_BROKEN);
        g_assert_cmpint(erdma_frame_parse(p.frame, p.len, true, &dg), ==,
                        ERDMA_FRAME_DATAGRAM);
        p.dg.data[i] ^= 0x40;
    }
    /* A NAT that forgot the checksum */
    p.frame[ERDMA_ETH_LEN + 15] ^= 1;
    packet_fix_ip(&p);
    g_assert_cmpint(parse(&p, p.len, &dg), ==, ERDMA_FRAME_BROKEN);
    /* No checksum, no complaint */
    p.frame[ERDMA_ETH_LEN + 26] = p.frame[ERDMA_ETH_LEN + 27] = 0;
    g_assert_cmpint(parse(&p, p.len, &dg), ==, ERDMA_FRAME_DATAGRAM);
}

typedef struct Change {
    unsigned at;                /* in the frame */
    uint8_t value;
    bool keep_csum;
} Change;

static void test_others(void)
{
    static const Change changes[] = {
        { 12, 0x86, true },                     /* not IPv4 */
        { 14, 0x65, false },                    /* IP version 6 */
        { 14, 0x44, false },                    /* header too short */
        { 14, 0x4f, false },                    /* longer than the packet */
        { 17, 27, false },                      /* total length too short */
        { 17, 255, false },                     /* longer than the frame */
        { 20, 0x20, false },                    /* more fragments */
        { 21, 1, false },                       /* a later fragment */
        { 23, 6, false },                       /* TCP */
        { 24, 0x12, true },                     /* IP checksum */
        { 39, 7, false },                       /* UDP length too short */
        { 39, 200, false },                     /* longer than the packet */
    };
    ErdmaDatagram dg;
    Packet p;
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(changes); i++) {
        packet_build(&p, 8, true);
        g_assert_cmphex(p.frame[changes[i].at], !=, changes[i].value);
        p.frame[changes[i].at] = changes[i].value;
        if (!changes[i].keep_csum && p.frame[14] != 0x4f) {
            packet_fix_ip(&p);
        }
        g_assert_cmpint(parse(&p, p.len, &dg), ==, ERDMA_FRAME_OTHER);
    }
    /* Cut short anywhere it is nobody's. */
    packet_build(&p, 8, true);
    for (i = 0; i < p.len; i++) {
        g_assert_cmpint(parse(&p, i, &dg), ==, ERDMA_FRAME_OTHER);
    }
}

static void test_ip_options(void)
{
    ErdmaDatagram dg;
    Packet p;
    uint8_t buf[128] = { 0 };

    packet_build(&p, 8, false);
    memcpy(buf, p.frame, 34);
    memcpy(buf + 34 + 8, p.frame + 34, p.len - 34);
    memset(buf + 34, 1, 8);                     /* eight times "no operation" */
    buf[14] = 0x47;
    buf[17] += 8;
    p.frame = buf;
    packet_fix_ip(&p);
    g_assert_cmpint(erdma_frame_parse(buf, p.len + 8, false, &dg), ==,
                    ERDMA_FRAME_DATAGRAM);
    g_assert_cmpuint(dg.len, ==, 8);
    g_assert_true(dg.data == buf + 34 + 8 + 8);
    /* Options that reach beyond the packet */
    g_assert_cmpint(erdma_frame_parse(buf, 40, false, &dg), ==,
                    ERDMA_FRAME_OTHER);
}

static void test_next_hop(void)
{
    uint8_t hop[6];
    uint32_t ip;
    Packet p;

    packet_build(&p, 0, false);
    g_assert_true(erdma_frame_next_hop(p.frame, p.len, mac_a, &ip, hop));
    g_assert_cmphex(ip, ==, 0x0a000002);
    g_assert_cmpmem(hop, 6, mac_b, 6);
    /* somebody else's, cut short, not IPv4, to a group, to all */
    g_assert_false(erdma_frame_next_hop(p.frame, p.len, mac_b, &ip, hop));
    g_assert_false(erdma_frame_next_hop(p.frame, 33, mac_a, &ip, hop));
    p.frame[13] = 6;
    g_assert_false(erdma_frame_next_hop(p.frame, p.len, mac_a, &ip, hop));
    p.frame[13] = 0;
    p.frame[0] |= 1;
    g_assert_false(erdma_frame_next_hop(p.frame, p.len, mac_a, &ip, hop));
    p.frame[0] &= ~1;
    p.frame[30] = 239;
    g_assert_false(erdma_frame_next_hop(p.frame, p.len, mac_a, &ip, hop));
    memset(p.frame + 30, 255, 4);
    g_assert_false(erdma_frame_next_hop(p.frame, p.len, mac_a, &ip, hop));
}

static void test_arp(void)
{
    ErdmaArp in = { .op = ERDMA_ARP_REQUEST, .sender_ip = 0x0a000001,
                    .target_ip = 0x0a000002 };
    uint8_t frame[ERDMA_ARP_FRAME_LEN];
    ErdmaArp out;
    size_t len;

    memcpy(in.sender_mac, mac_a, 6);
    erdma_arp_build(frame, &in, NULL);
    g_assert_cmphex(frame[0], ==, 0xff);
    g_assert_true(erdma_arp_parse(frame, 42, &out));
    g_assert_cmpuint(out.op, ==, ERDMA_ARP_REQUEST);
    g_assert_cmpmem(out.sender_mac, 6, mac_a, 6);
    g_assert_cmphex(out.sender_ip, ==, 0x0a000001);
    g_assert_cmphex(out.target_ip, ==, 0x0a000002);
    for (len = 0; len < 42; len++) {
        g_assert_false(erdma_arp_parse(frame, len, &out));
    }
    in.op = ERDMA_ARP_REPLY;
    erdma_arp_build(frame, &in, mac_b);
    g_assert_cmpmem(frame, 6, mac_b, 6);
    g_assert_cmpmem(frame + 32, 6, mac_b, 6);
    g_assert_true(erdma_arp_parse(frame, sizeof(frame), &out));
    g_assert_cmpuint(out.op, ==, ERDMA_ARP_REPLY);
    /* a sender that cannot be one; another kind of hardware */
    frame[22] |= 1;
    g_assert_false(erdma_arp_parse(frame, sizeof(frame), &out));
    frame[22] &= ~1;
    frame[15] = 6;
    g_assert_false(erdma_arp_parse(frame, sizeof(frame), &out));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/shell/frame/csum", test_csum);
    g_test_add_func("/shell/frame/round-trip", test_round_trip);
    g_test_add_func("/shell/frame/headers", test_headers);
    g_test_add_func("/shell/frame/broken-checksum", test_broken_checksum);
    g_test_add_func("/shell/frame/others", test_others);
    g_test_add_func("/shell/frame/ip-options", test_ip_options);
    g_test_add_func("/shell/frame/next-hop", test_next_hop);
    g_test_add_func("/shell/frame/arp", test_arp);
    return g_test_run();
}
