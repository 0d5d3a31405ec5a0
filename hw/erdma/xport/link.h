/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: what a link on the way may read and write in a datagram.
 *
 * For emulated links (a net filter, the simulator).  All of it sits at fixed
 * places in front of the body, so a link needs no state and no parser.  A
 * caller that keeps UDP checksums has to update them.
 */

#ifndef HW_ERDMA_XPORT_LINK_H
#define HW_ERDMA_XPORT_LINK_H

/* A link's own numbers at the moment when a packet starts to leave */
typedef struct ErdmaLinkStamp {
    uint64_t rate_bps;          /* bits per second */
    uint64_t time_ns;
    uint64_t tx_bytes;          /* sent so far, without this packet */
    uint32_t queue;             /* bytes still waiting */
    uint16_t link_id;           /* not 0 */
} ErdmaLinkStamp;

/* The ECN codepoint (two bits as in the IP header) of a datagram of ours */
uint8_t erdma_link_ecn(const uint8_t *data, size_t len);
/* Sets "congestion experienced"; false: not ours or not ECN-capable */
bool erdma_link_mark(uint8_t *data, size_t len);
/* Adds a hop to the INT stack of a DATA packet; false: it has none */
bool erdma_link_stamp(uint8_t *data, size_t len, const ErdmaLinkStamp *s);

#endif /* HW_ERDMA_XPORT_LINK_H */
