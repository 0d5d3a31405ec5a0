/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: encoding and decoding of datagrams.
 *
 * The only file of the transport that knows the byte order.  The format is
 * drawn in wire.h and in docs/specs/erdma-wire.rst.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "wire.h"

/* Places in the common header */
enum {
    OFS_MAGIC = 0,
    OFS_TYPE = 2,
    OFS_FLAGS = 3,
    OFS_DST = 4,
    OFS_SRC = 8,
    OFS_NUMBER = 12,
    OFS_INT_INFO = 16,
    OFS_AUX = 17,
    OFS_LEN = 18,
};

/* Which fields the header of a message has on the wire, in wire order */
enum {
    HAS_RKEY_RADDR = 1 << 0,
    HAS_IMM = 1 << 1,
    HAS_READ_LEN = 1 << 2,
    HAS_REQ_MSN = 1 << 3,
    HAS_SWAP_ADD = 1 << 4,
    HAS_COMPARE = 1 << 5,
    HAS_ORIGINAL = 1 << 6,
};

static const uint8_t msg_fields[ERDMA_XPORT_OP_COUNT] = {
    [ERDMA_XPORT_OP_SEND] = 0,
    [ERDMA_XPORT_OP_SEND_IMM] = HAS_IMM,
    [ERDMA_XPORT_OP_SEND_INV] = HAS_IMM,
    [ERDMA_XPORT_OP_WRITE] = HAS_RKEY_RADDR,
    [ERDMA_XPORT_OP_WRITE_IMM] = HAS_RKEY_RADDR | HAS_IMM,
    [ERDMA_XPORT_OP_READ_REQ] = HAS_RKEY_RADDR | HAS_READ_LEN,
    [ERDMA_XPORT_OP_READ_RESP] = HAS_REQ_MSN,
    [ERDMA_XPORT_OP_ATOMIC_CAS] = HAS_RKEY_RADDR | HAS_SWAP_ADD | HAS_COMPARE,
    [ERDMA_XPORT_OP_ATOMIC_FAA] = HAS_RKEY_RADDR | HAS_SWAP_ADD,
    [ERDMA_XPORT_OP_ATOMIC_RESP] = HAS_REQ_MSN | HAS_ORIGINAL,
};

static bool op_is_valid(unsigned op)
{
    return op >= ERDMA_XPORT_OP_SEND && op < ERDMA_XPORT_OP_COUNT;
}

size_t erdma_wire_msg_hdr_len(ErdmaXportOp op)
{
    unsigned has = msg_fields[op];

    return ERDMA_WIRE_MSG_HDR_LEN +
           (has & HAS_RKEY_RADDR ? 12 : 0) + (has & HAS_IMM ? 4 : 0) +
           (has & HAS_READ_LEN ? 4 : 0) + (has & HAS_REQ_MSN ? 4 : 0) +
           (has & HAS_SWAP_ADD ? 8 : 0) + (has & HAS_COMPARE ? 8 : 0) +
           (has & HAS_ORIGINAL ? 8 : 0);
}

uint8_t erdma_wire_int_info(ErdmaWireIntForm form, unsigned hops)
{
    return form == ERDMA_WIRE_INT_NONE ? 0 : form << 4 | hops;
}

size_t erdma_wire_int_bytes(uint8_t int_info)
{
    unsigned hops = int_info & 0xf;

    if (!hops || hops > ERDMA_WIRE_INT_HOPS_MAX) {
        return 0;
    }
    switch (int_info >> 4) {
    case ERDMA_WIRE_INT_WIDE:
        return ERDMA_WIRE_INT_WIDE_HEAD + hops * ERDMA_WIRE_INT_WIDE_HOP;
    case ERDMA_WIRE_INT_COMPACT:
        return ERDMA_WIRE_INT_COMPACT_HEAD +
               hops * ERDMA_WIRE_INT_COMPACT_HOP;
    default:
        return 0;
    }
}

/* Bytes of everything behind the INT stack, without the payload of DATA */
static size_t body_len(const ErdmaWire *w)
{
    switch (w->type) {
    case ERDMA_WIRE_DATA:
        return ERDMA_WIRE_DATA_LEN +
               (w->u.data.is_first ?
                erdma_wire_msg_hdr_len(w->u.data.hdr.op) : 0);
    case ERDMA_WIRE_ACK:
        return ERDMA_WIRE_ACK_LEN + w->u.ack.n_ranges * ERDMA_WIRE_RANGE_LEN;
    case ERDMA_WIRE_TERM:
        return ERDMA_WIRE_TERM_LEN;
    default:
        return 0;
    }
}

size_t erdma_wire_len(const ErdmaWire *w)
{
    return ERDMA_WIRE_COMMON_LEN + erdma_wire_int_bytes(w->int_info) +
           body_len(w);
}

bool erdma_xport_is_ours(const uint8_t *data, size_t len)
{
    return len >= ERDMA_WIRE_COMMON_LEN &&
           lduw_be_p(data + OFS_MAGIC) == ERDMA_WIRE_MAGIC;
}

bool erdma_wire_is_data(const uint8_t *data)
{
    return (data[OFS_TYPE] & 0xf) == ERDMA_WIRE_DATA;
}

uint32_t erdma_wire_dst_cookie(const uint8_t *data)
{
    return ldl_be_p(data + OFS_DST);
}

static const uint8_t *get32(const uint8_t *p, uint32_t *v)
{
    *v = ldl_be_p(p);
    return p + 4;
}

static const uint8_t *get64(const uint8_t *p, uint64_t *v)
{
    *v = ldq_be_p(p);
    return p + 8;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    stl_be_p(p, v);
    return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
    stq_be_p(p, v);
    return p + 8;
}

/* @p has erdma_wire_msg_hdr_len(@op) bytes. */
static void parse_msg_hdr(ErdmaXportMsgHdr *hdr, unsigned op,
                          const uint8_t *p)
{
    unsigned has = msg_fields[op];

    memset(hdr, 0, sizeof(*hdr));
    hdr->op = op;
    hdr->is_solicited = p[0] & ERDMA_WIRE_MSG_F_SOLICITED;
    p = get32(p + 4, &hdr->len);
    if (has & HAS_RKEY_RADDR) {
        p = get32(p, &hdr->rkey);
        p = get64(p, &hdr->raddr);
    }
    if (has & HAS_IMM) {
        p = get32(p, &hdr->imm);
    }
    if (has & HAS_READ_LEN) {
        p = get32(p, &hdr->read_len);
    }
    if (has & HAS_REQ_MSN) {
        p = get32(p, &hdr->req_msn);
    }
    if (has & HAS_SWAP_ADD) {
        p = get64(p, &hdr->swap_add);
    }
    if (has & HAS_COMPARE) {
        p = get64(p, &hdr->compare);
    }
    if (has & HAS_ORIGINAL) {
        p = get64(p, &hdr->original);
    }
}

static uint8_t *encode_msg_hdr(const ErdmaXportMsgHdr *hdr, uint8_t *p)
{
    unsigned has = msg_fields[hdr->op];

    p[0] = hdr->is_solicited ? ERDMA_WIRE_MSG_F_SOLICITED : 0;
    p[1] = p[2] = p[3] = 0;
    p = put32(p + 4, hdr->len);
    if (has & HAS_RKEY_RADDR) {
        p = put32(p, hdr->rkey);
        p = put64(p, hdr->raddr);
    }
    if (has & HAS_IMM) {
        p = put32(p, hdr->imm);
    }
    if (has & HAS_READ_LEN) {
        p = put32(p, hdr->read_len);
    }
    if (has & HAS_REQ_MSN) {
        p = put32(p, hdr->req_msn);
    }
    if (has & HAS_SWAP_ADD) {
        p = put64(p, hdr->swap_add);
    }
    if (has & HAS_COMPARE) {
        p = put64(p, hdr->compare);
    }
    if (has & HAS_ORIGINAL) {
        p = put64(p, hdr->original);
    }
    return p;
}

/*
 * What one segment says about itself must agree; what it says about its
 * message is compared when the message's header is at hand.
 */
static bool data_is_consistent(const ErdmaWireData *d)
{
    if (d->is_first != (d->off == 0) || d->off > UINT32_MAX - d->len) {
        return false;
    }
    if (d->is_first) {
        return d->len <= d->hdr.len &&
               d->is_last == (d->len == d->hdr.len) &&
               (d->len || d->is_last);
    }
    return d->len > 0;
}

static bool parse_data(ErdmaWire *w, uint8_t flags, unsigned op,
                       uint32_t payload_len, const uint8_t *p, size_t len)
{
    ErdmaWireData *d = &w->u.data;
    size_t hdr_len;

    if (!op_is_valid(op)) {
        return false;
    }
    d->is_first = flags & ERDMA_WIRE_F_FIRST;
    d->is_last = flags & ERDMA_WIRE_F_LAST;
    d->is_ack_now = flags & ERDMA_WIRE_F_ACK_NOW;
    hdr_len = d->is_first ? erdma_wire_msg_hdr_len(op) : 0;
    if (len != ERDMA_WIRE_DATA_LEN + hdr_len + payload_len) {
        return false;
    }
    p = get32(p, &d->msn);
    p = get32(p, &d->off);
    if (d->is_first) {
        parse_msg_hdr(&d->hdr, op, p);
    } else {
        d->hdr.op = op;
    }
    d->payload = p + hdr_len;
    d->len = payload_len;
    return data_is_consistent(d);
}

/* Ranges must be ordered and disjoint, so that a walk over all is bounded. */
static bool ranges_are_sane(const ErdmaWireAck *a)
{
    uint32_t above = a->largest_pn + 1;
    unsigned i;

    if (a->n_ranges && a->ranges[0].last != a->largest_pn) {
        return false;
    }
    for (i = 0; i < a->n_ranges; i++) {
        const ErdmaWireRange *r = &a->ranges[i];

        if ((int32_t)(above - r->last) <= 0 ||
            (int32_t)(r->last - r->first) < 0) {
            return false;
        }
        above = r->first;
    }
    return true;
}

static bool parse_ack(ErdmaWire *w, uint8_t flags, unsigned n_ranges,
                      const uint8_t *p, size_t len)
{
    ErdmaWireAck *a = &w->u.ack;
    unsigned i;

    if (n_ranges > ERDMA_WIRE_RANGES_MAX ||
        len != ERDMA_WIRE_ACK_LEN + n_ranges * ERDMA_WIRE_RANGE_LEN) {
        return false;
    }
    a->is_rnr = flags & ERDMA_WIRE_F_RNR;
    a->is_nack = flags & ERDMA_WIRE_F_NACK;
    p = get32(p, &a->msn);
    p = get32(p, &a->off);
    p = get32(p, &a->largest_pn);
    p = get32(p, &a->trigger_pn);
    p = get32(p, &a->delay_ns);
    p = get32(p, &a->credit);
    p = get32(p, &a->ce_packets);
    p = get32(p, &a->ce_bytes);
    p = get32(p, &a->ect_packets);
    a->n_ranges = n_ranges;
    for (i = 0; i < n_ranges; i++) {
        p = get32(p, &a->ranges[i].first);
        p = get32(p, &a->ranges[i].last);
    }
    return ranges_are_sane(a);
}

static bool parse_term(ErdmaWire *w, uint8_t status, const uint8_t *p,
                       size_t len)
{
    ErdmaWireTerm *t = &w->u.term;

    if (len != ERDMA_WIRE_TERM_LEN) {
        return false;
    }
    t->status = status;
    p = get32(p, &t->msn);
    p = get32(p, &t->delivered_msn);
    get32(p, &t->delivered_off);
    return true;
}

ErdmaWireResult erdma_wire_parse(ErdmaWire *w, const uint8_t *data,
                                 size_t len)
{
    uint8_t flags;
    unsigned aux;
    uint32_t payload_len;
    size_t int_len;
    bool is_ok;

    if (!erdma_xport_is_ours(data, len)) {
        return ERDMA_WIRE_MALFORMED;
    }
    if (data[OFS_TYPE] >> 4 != ERDMA_WIRE_VERSION) {
        return ERDMA_WIRE_BAD_VERSION;
    }
    w->type = data[OFS_TYPE] & 0xf;
    flags = data[OFS_FLAGS];
    w->ecn = flags & ERDMA_WIRE_F_ECN;
    w->dst_cookie = ldl_be_p(data + OFS_DST);
    w->src_cookie = ldl_be_p(data + OFS_SRC);
    w->number = ldl_be_p(data + OFS_NUMBER);
    w->int_info = data[OFS_INT_INFO];
    aux = data[OFS_AUX];
    payload_len = lduw_be_p(data + OFS_LEN);

    int_len = erdma_wire_int_bytes(w->int_info);
    data += ERDMA_WIRE_COMMON_LEN;
    len -= ERDMA_WIRE_COMMON_LEN;
    if ((w->int_info && !int_len) || int_len > len) {
        return ERDMA_WIRE_MALFORMED;
    }
    w->int_stack = int_len ? data : NULL;
    data += int_len;
    len -= int_len;

    switch (w->type) {
    case ERDMA_WIRE_DATA:
        is_ok = parse_data(w, flags, aux, payload_len, data, len);
        break;
    case ERDMA_WIRE_ACK:
        is_ok = parse_ack(w, flags, aux, data, len);
        break;
    case ERDMA_WIRE_PING:
    case ERDMA_WIRE_TERM_ACK:
        is_ok = len == 0;
        break;
    case ERDMA_WIRE_TERM:
        is_ok = parse_term(w, aux, data, len);
        break;
    default:
        is_ok = false;
        break;
    }
    return is_ok ? ERDMA_WIRE_OK : ERDMA_WIRE_MALFORMED;
}

static uint8_t *encode_ack(const ErdmaWireAck *a, uint8_t *p)
{
    unsigned i;

    p = put32(p, a->msn);
    p = put32(p, a->off);
    p = put32(p, a->largest_pn);
    p = put32(p, a->trigger_pn);
    p = put32(p, a->delay_ns);
    p = put32(p, a->credit);
    p = put32(p, a->ce_packets);
    p = put32(p, a->ce_bytes);
    p = put32(p, a->ect_packets);
    for (i = 0; i < a->n_ranges; i++) {
        p = put32(p, a->ranges[i].first);
        p = put32(p, a->ranges[i].last);
    }
    return p;
}

static uint8_t wire_flags(const ErdmaWire *w)
{
    uint8_t flags = w->ecn;

    if (w->type == ERDMA_WIRE_DATA) {
        flags |= (w->u.data.is_first ? ERDMA_WIRE_F_FIRST : 0) |
                 (w->u.data.is_last ? ERDMA_WIRE_F_LAST : 0) |
                 (w->u.data.is_ack_now ? ERDMA_WIRE_F_ACK_NOW : 0);
    } else if (w->type == ERDMA_WIRE_ACK) {
        flags |= (w->u.ack.is_rnr ? ERDMA_WIRE_F_RNR : 0) |
                 (w->u.ack.is_nack ? ERDMA_WIRE_F_NACK : 0);
    }
    return flags;
}

size_t erdma_wire_encode(const ErdmaWire *w, uint8_t *buf)
{
    size_t int_len = erdma_wire_int_bytes(w->int_info);
    uint8_t *p = buf + ERDMA_WIRE_COMMON_LEN;
    uint8_t aux = 0;

    if (w->int_stack) {
        memcpy(p, w->int_stack, int_len);
    } else {
        memset(p, 0, int_len);
    }
    p += int_len;

    switch (w->type) {
    case ERDMA_WIRE_DATA:
        aux = w->u.data.hdr.op;
        p = put32(p, w->u.data.msn);
        p = put32(p, w->u.data.off);
        if (w->u.data.is_first) {
            p = encode_msg_hdr(&w->u.data.hdr, p);
        }
        break;
    case ERDMA_WIRE_ACK:
        aux = w->u.ack.n_ranges;
        p = encode_ack(&w->u.ack, p);
        break;
    case ERDMA_WIRE_TERM:
        aux = w->u.term.status;
        p = put32(p, w->u.term.msn);
        p = put32(p, w->u.term.delivered_msn);
        p = put32(p, w->u.term.delivered_off);
        break;
    default:
        break;
    }

    stw_be_p(buf + OFS_MAGIC, ERDMA_WIRE_MAGIC);
    buf[OFS_TYPE] = ERDMA_WIRE_VERSION << 4 | w->type;
    buf[OFS_FLAGS] = wire_flags(w);
    stl_be_p(buf + OFS_DST, w->dst_cookie);
    stl_be_p(buf + OFS_SRC, w->src_cookie);
    stl_be_p(buf + OFS_NUMBER, w->number);
    buf[OFS_INT_INFO] = w->int_info;
    buf[OFS_AUX] = aux;
    stw_be_p(buf + OFS_LEN, w->type == ERDMA_WIRE_DATA ? w->u.data.len : 0);
    return p - buf;
}
