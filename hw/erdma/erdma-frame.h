/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet, ARP, IPv4 and UDP headers around the transport's datagrams.
 *
 * Pure functions on bytes.  Addresses and ports are numbers, MAC addresses
 * six bytes in the order of the wire.
 *
 * Reference: docs/specs/erdma-wire.rst
 */

#ifndef HW_ERDMA_FRAME_H
#define HW_ERDMA_FRAME_H

#include "xport/xport.h"

#define ERDMA_MAC_LEN           6
#define ERDMA_ETH_LEN           14
#define ERDMA_FRAME_LEN         (ERDMA_ETH_LEN + ERDMA_XPORT_IP_UDP_LEN)
#define ERDMA_ARP_FRAME_LEN     60      /* padded to Ethernet's minimum */
#define ERDMA_ARP_REQUEST       1
#define ERDMA_ARP_REPLY         2

/* What became of a frame from the wire */
typedef enum ErdmaFrameKind {
    ERDMA_FRAME_OTHER,          /* not for us: belongs to somebody else */
    ERDMA_FRAME_DATAGRAM,       /* a whole UDP datagram over IPv4 */
    ERDMA_FRAME_BROKEN,         /* the same, but its UDP checksum is wrong */
} ErdmaFrameKind;

/*
 * Parses an untrusted frame.  @dg->data points into @frame.  The UDP checksum
 * is not looked at with @is_csum_ok (the host vouches for it).
 */
ErdmaFrameKind erdma_frame_parse(const uint8_t *frame, size_t len,
                                 bool is_csum_ok, ErdmaDatagram *dg);

/*
 * Writes the ERDMA_FRAME_LEN header bytes in front of @dg->data, which must
 * be writable, and returns the start of the frame.
 */
uint8_t *erdma_frame_build(const ErdmaDatagram *dg, const uint8_t *src_mac,
                           const uint8_t *dst_mac, bool has_csum);

/*
 * An untagged unicast IPv4 frame from @mac to a unicast address: who is its
 * next hop?  Only the first ERDMA_FRAME_HOP_LEN bytes are looked at.
 */
#define ERDMA_FRAME_HOP_LEN     34
bool erdma_frame_next_hop(const uint8_t *frame, size_t len,
                          const uint8_t *mac, uint32_t *ip,
                          uint8_t *hop_mac);

typedef struct ErdmaArp {
    uint16_t op;
    uint8_t sender_mac[ERDMA_MAC_LEN];
    uint32_t sender_ip;
    uint32_t target_ip;
} ErdmaArp;

bool erdma_arp_parse(const uint8_t *frame, size_t len, ErdmaArp *arp);
/* @dst_mac NULL: broadcast.  @frame has room for ERDMA_ARP_FRAME_LEN bytes. */
void erdma_arp_build(uint8_t *frame, const ErdmaArp *arp,
                     const uint8_t *dst_mac);

bool erdma_mac_is_unicast(const uint8_t *mac);
bool erdma_ip_is_unicast(uint32_t ip);

#endif /* HW_ERDMA_FRAME_H */
