/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: the wire format, version 1.
 *
 * Everything is big-endian.  Byte order lives in wire.c only; nothing else
 * looks at the bytes of a datagram.  erdma_wire_parse() is the gate for what
 * the network sends: behind it every length has been checked.
 *
 * A datagram is one UDP payload:
 *
 *   common header    20 bytes, all types
 *   INT stack         0 or more bytes, all types (see int_info)
 *   body             by type
 *
 * and ends exactly there: trailing bytes are malformed.
 *
 * Common header
 *   0  u16  magic 0x6552
 *   2  u8   version (high nibble), type (low nibble)
 *   3  u8   flags: ERDMA_WIRE_F_*; the low two bits are the ECN codepoint
 *           with the meaning of the same two bits of an IP header, so that a
 *           link can mark a packet here
 *   4  u32  destination cookie
 *   8  u32  source cookie
 *  12  u32  number: DATA, PING, TERM: packet number; ACK: ack number;
 *           TERM_ACK: number of the TERM that it answers
 *  16  u8   int_info: form of the INT stack (high nibble: 0 none, 1 wide,
 *           2 compact), hops that it has room for (low nibble, 1..8)
 *  17  u8   aux: DATA: operation of the message (ErdmaXportOp); ACK: number
 *           of ranges; TERM: status; else 0
 *  18  u16  payload length of DATA, else 0
 *
 * INT stack, at byte 20 when int_info is not 0.  A link stamps the next free
 * hop of a DATA packet; in an ACK the stack is the echo of the data packet
 * that triggered it and is never stamped.
 *   wide     u8 n_hop, u8 0, u16 path_id, then per hop 32 bytes:
 *            u64 rate (bit/s), u64 time (ns), u64 bytes sent, u32 bytes
 *            queued, u16 link id, u16 0
 *   compact  u16: n_hop (4 bits), path_id (12 bits), then per hop 8 bytes:
 *            rate code (4 bits), time in ns (24 bits), bytes sent in units
 *            of 128 (20 bits), bytes queued in units of 80 (16 bits)
 * n_hop counts every hop and may exceed the room: then the stack is useless
 * and ignored.
 *
 * DATA body
 *   u32 MSN, u32 offset, [message header if FIRST], payload
 *   FIRST exactly when the offset is 0; LAST ends the message.
 *   Message header:
 *     u8  message flags (bit 0: solicited), 3 bytes 0, u32 message length,
 *     then by operation, fields in this order, those that apply:
 *       SEND       -                       WRITE       rkey raddr
 *       SEND_IMM   imm                     WRITE_IMM   rkey raddr imm
 *       SEND_INV   imm (the key)           READ_REQ    rkey raddr read_len
 *       READ_RESP  req_msn                 ATOMIC_RESP req_msn original
 *       ATOMIC_CAS rkey raddr swap compare ATOMIC_FAA  rkey raddr add
 *     rkey, imm, read_len, req_msn are u32; raddr, swap, add, compare,
 *     original are u64.
 *
 * ACK body
 *   u32 delivered MSN, u32 delivered offset: everything before this position
 *       was consumed by the receiver of the messages
 *   u32 largest packet number received
 *   u32 packet number that triggered this ack
 *   u32 time in ns between the arrival of that packet and this ack
 *   u32 receive credit, bytes
 *   u32 CE packets, u32 CE bytes, u32 ECT packets: running totals of data
 *       packets, not counting duplicates
 *   aux times { u32 first, u32 last }: packet numbers received, inclusive,
 *       disjoint, descending
 *
 * PING body      none; is answered by an ACK
 * TERM body      u32 MSN that failed, u32 delivered MSN, u32 delivered offset
 * TERM_ACK body  none
 *
 * Unknown flags and the bytes given as 0 are ignored on receipt.  Another
 * version or type is never interpreted.
 *
 * Specification: docs/specs/erdma-wire.rst
 */

#ifndef HW_ERDMA_XPORT_WIRE_H
#define HW_ERDMA_XPORT_WIRE_H

#include "xport.h"

#define ERDMA_WIRE_MAGIC            0x6552
#define ERDMA_WIRE_VERSION          1

#define ERDMA_WIRE_COMMON_LEN       20
#define ERDMA_WIRE_DATA_LEN         8       /* MSN and offset */
#define ERDMA_WIRE_MSG_HDR_LEN      8       /* part that all operations have */
#define ERDMA_WIRE_MSG_HDR_MAX      36
#define ERDMA_WIRE_ACK_LEN          36      /* without ranges */
#define ERDMA_WIRE_RANGE_LEN        8
#define ERDMA_WIRE_TERM_LEN         12

#define ERDMA_WIRE_INT_WIDE_HEAD    4
#define ERDMA_WIRE_INT_WIDE_HOP     32
#define ERDMA_WIRE_INT_COMPACT_HEAD 2
#define ERDMA_WIRE_INT_COMPACT_HOP  8
#define ERDMA_WIRE_INT_HOPS_MAX     8
#define ERDMA_WIRE_INT_MAX          (ERDMA_WIRE_INT_WIDE_HEAD + \
                                     ERDMA_WIRE_INT_HOPS_MAX * \
                                     ERDMA_WIRE_INT_WIDE_HOP)

/* A parser accepts this many ranges; a sender need not use them all. */
#define ERDMA_WIRE_RANGES_MAX       32
/* No packet that is not DATA is longer than this. */
#define ERDMA_WIRE_CONTROL_MAX      (ERDMA_WIRE_COMMON_LEN + \
                                     ERDMA_WIRE_INT_MAX + \
                                     ERDMA_WIRE_ACK_LEN + \
                                     ERDMA_WIRE_RANGES_MAX * \
                                     ERDMA_WIRE_RANGE_LEN)

#define ERDMA_WIRE_F_ECN            0x03    /* all types */
#define ERDMA_WIRE_F_FIRST          0x04    /* DATA: has a message header */
#define ERDMA_WIRE_F_LAST           0x08    /* DATA: ends its message */
#define ERDMA_WIRE_F_RNR            0x10    /* ACK: a message waits here */
#define ERDMA_WIRE_F_NACK           0x20    /* ACK: go back to the position */
#define ERDMA_WIRE_F_ACK_NOW        0x40    /* DATA: do not delay the ack */

#define ERDMA_WIRE_ECN_NOT_ECT      0
#define ERDMA_WIRE_ECN_ECT1         1
#define ERDMA_WIRE_ECN_ECT0         2
#define ERDMA_WIRE_ECN_CE           3

#define ERDMA_WIRE_MSG_F_SOLICITED  0x01

typedef enum ErdmaWireType {
    ERDMA_WIRE_DATA = 1,
    ERDMA_WIRE_ACK,
    ERDMA_WIRE_PING,
    ERDMA_WIRE_TERM,
    ERDMA_WIRE_TERM_ACK,
} ErdmaWireType;

typedef enum ErdmaWireIntForm {
    ERDMA_WIRE_INT_NONE,
    ERDMA_WIRE_INT_WIDE,
    ERDMA_WIRE_INT_COMPACT,
} ErdmaWireIntForm;

typedef struct ErdmaWireRange {
    uint32_t first;
    uint32_t last;              /* inclusive */
} ErdmaWireRange;

typedef struct ErdmaWireData {
    uint32_t msn;
    uint32_t off;
    bool is_first;
    bool is_last;
    bool is_ack_now;
    ErdmaXportMsgHdr hdr;       /* all fields valid when is_first */
    const uint8_t *payload;     /* points into the datagram */
    uint32_t len;
} ErdmaWireData;

typedef struct ErdmaWireAck {
    uint32_t msn;               /* delivered position */
    uint32_t off;
    uint32_t largest_pn;
    uint32_t trigger_pn;
    uint32_t delay_ns;
    uint32_t credit;
    uint32_t ce_packets;
    uint32_t ce_bytes;
    uint32_t ect_packets;
    bool is_rnr;
    bool is_nack;
    unsigned n_ranges;
    ErdmaWireRange ranges[ERDMA_WIRE_RANGES_MAX];
} ErdmaWireAck;

typedef struct ErdmaWireTerm {
    uint8_t status;
    uint32_t msn;
    uint32_t delivered_msn;
    uint32_t delivered_off;
} ErdmaWireTerm;

/* One packet, decoded. */
typedef struct ErdmaWire {
    ErdmaWireType type;
    uint8_t ecn;
    uint32_t dst_cookie;
    uint32_t src_cookie;
    uint32_t number;
    /* The stack as it is on the wire: to be echoed or decoded */
    uint8_t int_info;
    const uint8_t *int_stack;   /* erdma_wire_int_bytes(int_info) bytes */
    union {
        ErdmaWireData data;
        ErdmaWireAck ack;
        ErdmaWireTerm term;
    } u;
} ErdmaWire;

typedef enum ErdmaWireResult {
    ERDMA_WIRE_OK,
    ERDMA_WIRE_MALFORMED,
    ERDMA_WIRE_BAD_VERSION,
} ErdmaWireResult;

/* Decodes @data; pointers in @w point into it.  @w is undefined on failure. */
ErdmaWireResult erdma_wire_parse(ErdmaWire *w, const uint8_t *data,
                                 size_t len);

/*
 * Bytes that @w takes without the payload of DATA.  For DATA the payload
 * belongs at this place of the buffer.
 */
size_t erdma_wire_len(const ErdmaWire *w);

/*
 * Encodes all but the payload of DATA; returns erdma_wire_len().  @buf has
 * room for it.  A stack without @int_stack is encoded empty.
 */
size_t erdma_wire_encode(const ErdmaWire *w, uint8_t *buf);

/* Of a datagram that has a common header */
uint32_t erdma_wire_dst_cookie(const uint8_t *data);
bool erdma_wire_is_data(const uint8_t *data);

/* Bytes of the message header that travels with offset 0 */
size_t erdma_wire_msg_hdr_len(ErdmaXportOp op);

/* Bytes of an INT stack; 0 when @int_info is 0 or not valid */
size_t erdma_wire_int_bytes(uint8_t int_info);
uint8_t erdma_wire_int_info(ErdmaWireIntForm form, unsigned hops);
/* Decodes the stack of @w; false: there is none, or more hops than room */
bool erdma_wire_int_decode(const ErdmaWire *w, ErdmaCcStack *stack);

#endif /* HW_ERDMA_XPORT_WIRE_H */
