/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory formats <-> plain structs.  The only file of the engine that
 * knows byte order and offsets: an entry is copied in once, decoded once, and
 * its raw bytes are not looked at again.
 *
 * Decoding never fails; it reads only bytes that the entry's WQEBB count
 * covers (the rest decodes as 0).  Meaning is checked by who asked.
 */

#ifndef HW_ERDMA_DECODE_H
#define HW_ERDMA_DECODE_H

#include "engine/cq.h"
#include "engine/mr.h"
#include "engine/qp.h"

typedef struct ErdmaSge {
    uint64_t addr;
    uint32_t len;
    uint32_t key;
} ErdmaSge;

/* Header of a send queue entry, from its first WQEBB */
typedef struct ErdmaSqeHdr {
    uint16_t pi;
    uint8_t opcode;
    uint8_t n_wqebbs;           /* 1..8 as written; sane is 1..4 */
    uint8_t sgl_len;            /* SGEs, or inline bytes */
    bool is_inline;
    bool is_fenced;
    bool is_solicited;
    bool is_signalled;
    uint32_t qpn;
} ErdmaSqeHdr;

/* A send queue entry; only what the opcode defines is set. */
typedef struct ErdmaSqe {
    ErdmaSqeHdr hdr;
    uint32_t len;               /* total length as the driver says */
    uint32_t imm;               /* number */
    uint32_t inv_key;
    uint32_t rkey;
    uint64_t raddr;
    uint64_t swap_add;
    uint64_t compare;
    uint8_t n_sges;
    /* sources, or the one destination of a read or atomic */
    ErdmaSge sges[ERDMA_MAX_SEND_SGE];
    uint8_t inline_len;
    uint8_t inline_data[ERDMA_MAX_INLINE];
    ErdmaMrFastReg reg;
} ErdmaSqe;

void erdma_decode_sqe_hdr(const uint8_t *wqebb, ErdmaSqeHdr *hdr);
/*
 * @raw holds hdr.n_wqebbs WQEBBs, already unwrapped; n_wqebbs <= 4.  Returns
 * false when the opcode is unknown, or SGE count, inline length or an
 * operation's fixed lengths do not fit the entry.
 */
bool erdma_decode_sqe(const uint8_t *raw, ErdmaSqe *sqe);

typedef struct ErdmaRqe {
    uint16_t index;             /* as written: position + 1 */
    uint32_t qpn;
    ErdmaSge sge;
} ErdmaRqe;
void erdma_decode_rqe(const uint8_t *raw, ErdmaRqe *rqe);

/* The 8 bytes that an atomic works on, as they lie in guest memory */
uint64_t erdma_decode_atomic(const uint8_t *raw);
void erdma_encode_atomic(uint8_t *raw, uint64_t value);

/* Builds the 32 bytes of a CQE, phase bit included. */
void erdma_encode_cqe(uint8_t *raw, const ErdmaCqe *cqe, bool phase);
void erdma_encode_ceqe(uint8_t *raw, uint32_t cqn, uint32_t pi, bool phase);
void erdma_encode_aeqe(uint8_t *raw, uint8_t type, uint32_t id, bool phase);

#endif /* HW_ERDMA_DECODE_H */
