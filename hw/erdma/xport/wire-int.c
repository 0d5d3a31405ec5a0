/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: the INT stack, as links write it and as the sender reads
 * it from an ack; and the ECN bits.  The format is drawn in wire.h.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "link.h"
#include "wire.h"

enum {
    OFS_TYPE = 2,
    OFS_FLAGS = 3,
    OFS_INT_INFO = 16,
};

#define COMPACT_TX_UNIT     128
#define COMPACT_QUEUE_UNIT  80
#define COMPACT_PATH_MASK   0x0fff

/* Rates that the compact form can say, bits per second; code 0: unknown */
static const uint64_t compact_rates[16] = {
    0, 10000000, 100000000, 200000000, 500000000, 1000000000, 2500000000,
    5000000000, 10000000000, 25000000000, 40000000000, 50000000000,
    100000000000, 200000000000, 400000000000, 800000000000,
};

/* The code of the nearest rate that is not higher */
static unsigned rate_code(uint64_t bps)
{
    unsigned code = 0;

    while (code < 15 && compact_rates[code + 1] <= bps) {
        code++;
    }
    return code;
}

uint8_t erdma_link_ecn(const uint8_t *data, size_t len)
{
    return erdma_xport_is_ours(data, len) ?
           data[OFS_FLAGS] & ERDMA_WIRE_F_ECN : ERDMA_WIRE_ECN_NOT_ECT;
}

bool erdma_link_mark(uint8_t *data, size_t len)
{
    if (erdma_link_ecn(data, len) == ERDMA_WIRE_ECN_NOT_ECT) {
        return false;
    }
    data[OFS_FLAGS] |= ERDMA_WIRE_ECN_CE;
    return true;
}

static void stamp_wide(uint8_t *p, unsigned room, const ErdmaLinkStamp *s)
{
    unsigned n = p[0];
    uint8_t *hop = p + ERDMA_WIRE_INT_WIDE_HEAD + n * ERDMA_WIRE_INT_WIDE_HOP;

    if (n < room) {
        stq_be_p(hop, s->rate_bps);
        stq_be_p(hop + 8, s->time_ns);
        stq_be_p(hop + 16, s->tx_bytes);
        stl_be_p(hop + 24, s->queue);
        stw_be_p(hop + 28, s->link_id);
        stw_be_p(hop + 30, 0);
    }
    p[0] = MIN(n + 1, UINT8_MAX);
    stw_be_p(p + 2, lduw_be_p(p + 2) ^ s->link_id);
}

static void stamp_compact(uint8_t *p, unsigned room, const ErdmaLinkStamp *s)
{
    uint16_t head = lduw_be_p(p);
    unsigned n = head >> 12;
    uint8_t *hop = p + ERDMA_WIRE_INT_COMPACT_HEAD +
                   n * ERDMA_WIRE_INT_COMPACT_HOP;
    uint64_t tx = s->tx_bytes / COMPACT_TX_UNIT;
    uint64_t queue = MIN(s->queue / COMPACT_QUEUE_UNIT, UINT16_MAX);

    if (n < room) {
        stq_be_p(hop, (uint64_t)rate_code(s->rate_bps) << 60 |
                 (s->time_ns & 0xffffff) << 36 | (tx & 0xfffff) << 16 | queue);
    }
    head = (head ^ s->link_id) & COMPACT_PATH_MASK;
    stw_be_p(p, MIN(n + 1, 15) << 12 | head);
}

bool erdma_link_stamp(uint8_t *data, size_t len, const ErdmaLinkStamp *s)
{
    uint8_t info;
    size_t bytes;
    uint8_t *p = data + ERDMA_WIRE_COMMON_LEN;

    if (!erdma_xport_is_ours(data, len) ||
        data[OFS_TYPE] != (ERDMA_WIRE_VERSION << 4 | ERDMA_WIRE_DATA)) {
        return false;
    }
    info = data[OFS_INT_INFO];
    bytes = erdma_wire_int_bytes(info);
    if (!bytes || bytes > len - ERDMA_WIRE_COMMON_LEN) {
        return false;
    }
    if (info >> 4 == ERDMA_WIRE_INT_WIDE) {
        stamp_wide(p, info & 0xf, s);
    } else {
        stamp_compact(p, info & 0xf, s);
    }
    return true;
}

static void decode_wide(const uint8_t *p, ErdmaCcStack *stack)
{
    unsigned i;

    stack->is_compact = false;
    stack->n_hops = p[0];
    stack->path_id = lduw_be_p(p + 2);
    p += ERDMA_WIRE_INT_WIDE_HEAD;
    for (i = 0; i < MIN(stack->n_hops, ERDMA_CC_HOPS_MAX); i++) {
        stack->hop[i].rate = ldq_be_p(p) / 8;
        stack->hop[i].time_ns = ldq_be_p(p + 8);
        stack->hop[i].tx_bytes = ldq_be_p(p + 16);
        stack->hop[i].queue = ldl_be_p(p + 24);
        stack->hop[i].link_id = lduw_be_p(p + 28);
        p += ERDMA_WIRE_INT_WIDE_HOP;
    }
}

static void decode_compact(const uint8_t *p, ErdmaCcStack *stack)
{
    uint16_t head = lduw_be_p(p);
    unsigned i;

    stack->is_compact = true;
    stack->n_hops = head >> 12;
    stack->path_id = head & COMPACT_PATH_MASK;
    p += ERDMA_WIRE_INT_COMPACT_HEAD;
    for (i = 0; i < MIN(stack->n_hops, ERDMA_CC_HOPS_MAX); i++) {
        uint64_t v = ldq_be_p(p);

        stack->hop[i].rate = compact_rates[v >> 60] / 8;
        stack->hop[i].time_ns = v >> 36 & 0xffffff;
        stack->hop[i].tx_bytes = (v >> 16 & 0xfffff) * COMPACT_TX_UNIT;
        stack->hop[i].queue = (v & 0xffff) * COMPACT_QUEUE_UNIT;
        stack->hop[i].link_id = 0;
        p += ERDMA_WIRE_INT_COMPACT_HOP;
    }
}

bool erdma_wire_int_decode(const ErdmaWire *w, ErdmaCcStack *stack)
{
    unsigned room = w->int_info & 0xf;
    const uint8_t *p = w->int_stack;
    unsigned n;

    if (!p) {
        return false;
    }
    n = w->int_info >> 4 == ERDMA_WIRE_INT_WIDE ? p[0] : p[0] >> 4;
    /* A hop without room left nothing: what is there is not the path. */
    if (!n || n > room) {
        return false;
    }
    if (w->int_info >> 4 == ERDMA_WIRE_INT_WIDE) {
        decode_wide(p, stack);
    } else {
        decode_compact(p, stack);
    }
    return true;
}
