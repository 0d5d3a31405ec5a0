/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet, ARP, IPv4 and UDP headers: the gate for raw frames.
 *
 * Reference: docs/specs/erdma-wire.rst; RFC 768, 791, 826
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "erdma-csum.h"
#include "erdma-frame.h"

#define ETH_TYPE                12
#define ETH_TYPE_IP             0x0800
#define ETH_TYPE_ARP            0x0806

#define IPV4_MIN_LEN            20
#define IPV4_TOS                1
#define IPV4_TOTAL_LEN          2
#define IPV4_FRAG               6
#define IPV4_FRAG_DF            0x4000
#define IPV4_FRAG_OR_MORE       0x3fff
#define IPV4_TTL                8
#define IPV4_PROTO              9
#define IPV4_CSUM               10
#define IPV4_SRC                12
#define IPV4_DST                16
#define IPV4_ECN_MASK           3
#define IPV4_DEFAULT_TTL        64
#define IPV4_VERSION_4_LEN_20   0x45

#define UDP_LEN                 8
#define UDP_SPORT               0
#define UDP_DPORT               2
#define UDP_TOTAL_LEN           4
#define UDP_CSUM                6
#define UDP_PROTO               17

#define ARP_LEN                 28
#define ARP_ETHERNET_IP         0x0001080006040000ull
#define ARP_OP                  6
#define ARP_SHA                 8
#define ARP_SPA                 14
#define ARP_THA                 18
#define ARP_TPA                 24

bool erdma_mac_is_unicast(const uint8_t *mac)
{
    static const uint8_t zero[ERDMA_MAC_LEN];

    return !(mac[0] & 1) && memcmp(mac, zero, ERDMA_MAC_LEN);
}

bool erdma_ip_is_unicast(uint32_t ip)
{
    return ip && ip < 0xe0000000;
}

static uint64_t erdma_pseudo_sum(const uint8_t *ip, size_t udp_len)
{
    return (uint64_t)erdma_csum_sum(ip + IPV4_SRC, 8) + UDP_PROTO + udp_len;
}

ErdmaFrameKind erdma_frame_parse(const uint8_t *frame, size_t len,
                                 bool is_csum_ok, ErdmaDatagram *dg)
{
    const uint8_t *ip, *udp;
    size_t ip_len, hdr_len, udp_len;

    if (len < ERDMA_FRAME_LEN || lduw_be_p(frame + ETH_TYPE) != ETH_TYPE_IP) {
        return ERDMA_FRAME_OTHER;
    }
    ip = frame + ERDMA_ETH_LEN;
    hdr_len = (ip[0] & 15) * 4;
    ip_len = lduw_be_p(ip + IPV4_TOTAL_LEN);
    if (ip[0] >> 4 != 4 || hdr_len < IPV4_MIN_LEN ||
        ip_len < hdr_len + UDP_LEN || ip_len > len - ERDMA_ETH_LEN ||
        ip[IPV4_PROTO] != UDP_PROTO ||
        lduw_be_p(ip + IPV4_FRAG) & IPV4_FRAG_OR_MORE ||
        erdma_csum_finish(erdma_csum_sum(ip, hdr_len))) {
        return ERDMA_FRAME_OTHER;
    }
    udp = ip + hdr_len;
    udp_len = lduw_be_p(udp + UDP_TOTAL_LEN);
    if (udp_len < UDP_LEN || udp_len > ip_len - hdr_len) {
        return ERDMA_FRAME_OTHER;
    }
    dg->src_ip = ldl_be_p(ip + IPV4_SRC);
    dg->dst_ip = ldl_be_p(ip + IPV4_DST);
    dg->src_port = lduw_be_p(udp + UDP_SPORT);
    dg->dst_port = lduw_be_p(udp + UDP_DPORT);
    dg->ecn = ip[IPV4_TOS] & IPV4_ECN_MASK;
    dg->data = (uint8_t *)udp + UDP_LEN;
    dg->len = udp_len - UDP_LEN;
    if (!is_csum_ok && lduw_be_p(udp + UDP_CSUM) &&
        erdma_csum_finish(erdma_pseudo_sum(ip, udp_len) +
                          erdma_csum_sum(udp, udp_len))) {
        return ERDMA_FRAME_BROKEN;
    }
    return ERDMA_FRAME_DATAGRAM;
}

static void erdma_eth_build(uint8_t *frame, const uint8_t *src,
                            const uint8_t *dst, uint16_t type)
{
    memcpy(frame, dst, ERDMA_MAC_LEN);
    memcpy(frame + ERDMA_MAC_LEN, src, ERDMA_MAC_LEN);
    stw_be_p(frame + ETH_TYPE, type);
}

uint8_t *erdma_frame_build(const ErdmaDatagram *dg, const uint8_t *src_mac,
                           const uint8_t *dst_mac, bool has_csum)
{
    uint8_t *udp = dg->data - UDP_LEN;
    uint8_t *ip = udp - IPV4_MIN_LEN;
    uint8_t *frame = ip - ERDMA_ETH_LEN;
    size_t udp_len = UDP_LEN + dg->len;
    uint16_t csum;

    assert(udp_len <= UINT16_MAX - IPV4_MIN_LEN);
    erdma_eth_build(frame, src_mac, dst_mac, ETH_TYPE_IP);

    memset(ip, 0, IPV4_MIN_LEN);
    ip[0] = IPV4_VERSION_4_LEN_20;
    ip[IPV4_TOS] = dg->ecn & IPV4_ECN_MASK;
    stw_be_p(ip + IPV4_TOTAL_LEN, IPV4_MIN_LEN + udp_len);
    /* The identification may be 0 as we never let fragment (RFC 6864). */
    stw_be_p(ip + IPV4_FRAG, IPV4_FRAG_DF);
    ip[IPV4_TTL] = IPV4_DEFAULT_TTL;
    ip[IPV4_PROTO] = UDP_PROTO;
    stl_be_p(ip + IPV4_SRC, dg->src_ip);
    stl_be_p(ip + IPV4_DST, dg->dst_ip);
    csum = erdma_csum_finish(erdma_csum_sum(ip, IPV4_MIN_LEN));
    stw_be_p(ip + IPV4_CSUM, csum);

    stw_be_p(udp + UDP_SPORT, dg->src_port);
    stw_be_p(udp + UDP_DPORT, dg->dst_port);
    stw_be_p(udp + UDP_TOTAL_LEN, udp_len);
    stw_be_p(udp + UDP_CSUM, 0);
    if (has_csum) {
        csum = erdma_csum_finish(erdma_pseudo_sum(ip, udp_len) +
                                 erdma_csum_sum(udp, udp_len));
        /* 0 on the wire says "no checksum" (RFC 768). */
        stw_be_p(udp + UDP_CSUM, csum ? csum : 0xffff);
    }
    return frame;
}

bool erdma_frame_next_hop(const uint8_t *frame, size_t len,
                          const uint8_t *mac, uint32_t *ip,
                          uint8_t *hop_mac)
{
    if (len < ERDMA_FRAME_HOP_LEN ||
        lduw_be_p(frame + ETH_TYPE) != ETH_TYPE_IP ||
        frame[ERDMA_ETH_LEN] >> 4 != 4 ||
        !erdma_mac_is_unicast(frame) ||
        memcmp(frame + ERDMA_MAC_LEN, mac, ERDMA_MAC_LEN)) {
        return false;
    }
    *ip = ldl_be_p(frame + ERDMA_ETH_LEN + IPV4_DST);
    memcpy(hop_mac, frame, ERDMA_MAC_LEN);
    return erdma_ip_is_unicast(*ip);
}

bool erdma_arp_parse(const uint8_t *frame, size_t len, ErdmaArp *arp)
{
    const uint8_t *p = frame + ERDMA_ETH_LEN;

    if (len < ERDMA_ETH_LEN + ARP_LEN ||
        lduw_be_p(frame + ETH_TYPE) != ETH_TYPE_ARP ||
        (ldq_be_p(p) & ~0xffffull) != ARP_ETHERNET_IP) {
        return false;
    }
    arp->op = lduw_be_p(p + ARP_OP);
    memcpy(arp->sender_mac, p + ARP_SHA, ERDMA_MAC_LEN);
    arp->sender_ip = ldl_be_p(p + ARP_SPA);
    arp->target_ip = ldl_be_p(p + ARP_TPA);
    return erdma_mac_is_unicast(arp->sender_mac);
}

void erdma_arp_build(uint8_t *frame, const ErdmaArp *arp,
                     const uint8_t *dst_mac)
{
    static const uint8_t broadcast[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    uint8_t *p = frame + ERDMA_ETH_LEN;

    memset(frame, 0, ERDMA_ARP_FRAME_LEN);
    erdma_eth_build(frame, arp->sender_mac, dst_mac ? dst_mac : broadcast,
                    ETH_TYPE_ARP);
    stq_be_p(p, ARP_ETHERNET_IP);
    stw_be_p(p + ARP_OP, arp->op);
    memcpy(p + ARP_SHA, arp->sender_mac, ERDMA_MAC_LEN);
    stl_be_p(p + ARP_SPA, arp->sender_ip);
    if (dst_mac) {
        memcpy(p + ARP_THA, dst_mac, ERDMA_MAC_LEN);
    }
    stl_be_p(p + ARP_TPA, arp->target_ip);
}
