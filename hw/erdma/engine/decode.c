/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory formats <-> plain structs: queue entries.
 *
 * Reference: docs/specs/erdma.rst
 */

#include "qemu/osdep.h"
#include "engine/decode.h"
#include "qemu/bitops.h"
#include "qemu/bswap.h"

static void decode_sge(const uint8_t *raw, ErdmaSge *sge)
{
    sge->addr = ldq_le_p(raw + A_ERDMA_SGE_ADDR);
    sge->len = ldl_le_p(raw + A_ERDMA_SGE_LENGTH);
    sge->key = ldl_le_p(raw + A_ERDMA_SGE_KEY);
}

void erdma_decode_sqe_hdr(const uint8_t *wqebb, ErdmaSqeHdr *hdr)
{
    uint64_t w = ldq_le_p(wqebb + A_ERDMA_SQE_HDR);

    hdr->pi = FIELD_EX64(w, ERDMA_SQE_HDR, PI);
    hdr->opcode = FIELD_EX64(w, ERDMA_SQE_HDR, OPCODE);
    hdr->n_wqebbs = FIELD_EX64(w, ERDMA_SQE_HDR, WQEBB_CNT) + 1;
    hdr->sgl_len = FIELD_EX64(w, ERDMA_SQE_HDR, SGL_LEN);
    hdr->is_inline = FIELD_EX64(w, ERDMA_SQE_HDR, INLINE);
    hdr->is_fenced = FIELD_EX64(w, ERDMA_SQE_HDR, FENCE);
    hdr->is_solicited = FIELD_EX64(w, ERDMA_SQE_HDR, SE);
    hdr->is_signalled = FIELD_EX64(w, ERDMA_SQE_HDR, CE);
    hdr->qpn = FIELD_EX64(w, ERDMA_SQE_HDR, QPN);
}

/* Bytes of the entry that exist */
static size_t sqe_size(const ErdmaSqe *sqe)
{
    return sqe->hdr.n_wqebbs * ERDMA_WQEBB_SIZE;
}

/* The payload of a send or write: SGEs or inline bytes from @off on */
static bool decode_source(const uint8_t *raw, size_t off, ErdmaSqe *sqe)
{
    uint8_t n = sqe->hdr.sgl_len;
    uint64_t total = 0;
    unsigned i;

    sqe->len = ldl_le_p(raw + A_ERDMA_SQE_LENGTH);
    if (sqe->hdr.is_inline) {
        if (n > ERDMA_MAX_INLINE || off + n > sqe_size(sqe) ||
            sqe->len != n) {
            return false;
        }
        sqe->inline_len = n;
        memcpy(sqe->inline_data, raw + off, n);
        return true;
    }

    if (n > ERDMA_MAX_SEND_SGE || off + n * ERDMA_SGE_SIZE > sqe_size(sqe)) {
        return false;
    }
    for (i = 0; i < n; i++) {
        decode_sge(raw + off + i * ERDMA_SGE_SIZE, &sqe->sges[i]);
        total += sqe->sges[i].len;
    }
    sqe->n_sges = n;
    /* Drivers add up in 32 bits: a sum that does not fit differs here. */
    return sqe->len == total;
}

static bool decode_send(const uint8_t *raw, ErdmaSqe *sqe)
{
    if (sqe->hdr.opcode == ERDMA_OP_SEND_WITH_IMM) {
        sqe->imm = ldl_be_p(raw + A_ERDMA_SQE_SEND_IMM);
    } else if (sqe->hdr.opcode == ERDMA_OP_SEND_WITH_INV) {
        sqe->inv_key = ldl_le_p(raw + A_ERDMA_SQE_SEND_IMM);
    }
    return decode_source(raw, ERDMA_SQE_SEND_SGL, sqe);
}

static bool decode_write(const uint8_t *raw, ErdmaSqe *sqe)
{
    if (sqe->hdr.opcode == ERDMA_OP_WRITE_WITH_IMM) {
        sqe->imm = ldl_be_p(raw + A_ERDMA_SQE_WRITE_IMM);
    }
    sqe->rkey = ldl_le_p(raw + A_ERDMA_SQE_WRITE_RKEY);
    /* The halves are in rising order: one 64-bit little-endian number */
    sqe->raddr = ldq_le_p(raw + A_ERDMA_SQE_WRITE_RADDR_L);
    return decode_source(raw, ERDMA_SQE_WRITE_SGL, sqe);
}

static bool decode_read(const uint8_t *raw, ErdmaSqe *sqe)
{
    if (sqe_size(sqe) < A_ERDMA_SQE_READ_RKEY + 4) {
        return false;
    }
    if (sqe->hdr.opcode == ERDMA_OP_READ_WITH_INV) {
        sqe->inv_key = ldl_le_p(raw + A_ERDMA_SQE_READ_INV_KEY);
    }
    sqe->len = ldl_le_p(raw + A_ERDMA_SQE_LENGTH);
    sqe->n_sges = 1;
    sqe->sges[0].key = ldl_le_p(raw + A_ERDMA_SQE_READ_LKEY);
    sqe->sges[0].addr = ldq_le_p(raw + A_ERDMA_SQE_READ_LADDR_L);
    sqe->sges[0].len = sqe->len;
    sqe->raddr = ldq_le_p(raw + A_ERDMA_SQE_READ_RADDR);
    sqe->rkey = ldl_le_p(raw + A_ERDMA_SQE_READ_RKEY);
    return true;
}

static bool decode_atomic(const uint8_t *raw, ErdmaSqe *sqe)
{
    if (sqe_size(sqe) < A_ERDMA_SQE_ATOMIC_LKEY + 4) {
        return false;
    }
    sqe->swap_add = ldq_le_p(raw + A_ERDMA_SQE_ATOMIC_SWAP_ADD);
    if (sqe->hdr.opcode == ERDMA_OP_ATOMIC_CAS) {
        sqe->compare = ldq_le_p(raw + A_ERDMA_SQE_ATOMIC_COMPARE);
    }
    sqe->raddr = ldq_le_p(raw + A_ERDMA_SQE_ATOMIC_RADDR);
    sqe->rkey = ldl_le_p(raw + A_ERDMA_SQE_ATOMIC_RKEY);
    sqe->n_sges = 1;
    sqe->sges[0].addr = ldq_le_p(raw + A_ERDMA_SQE_ATOMIC_LADDR);
    sqe->sges[0].len = ldl_le_p(raw + A_ERDMA_SQE_ATOMIC_LLEN);
    sqe->sges[0].key = ldl_le_p(raw + A_ERDMA_SQE_ATOMIC_LKEY);
    sqe->len = sizeof(uint64_t);
    return sqe->sges[0].len == sqe->len;
}

static bool decode_reg_mr(const uint8_t *raw, ErdmaSqe *sqe)
{
    uint32_t attr = ldl_le_p(raw + A_ERDMA_SQE_REG_MR_ATTR);
    ErdmaMrFastReg *reg = &sqe->reg;
    unsigned kind = FIELD_EX32(attr, ERDMA_SQE_REG_MR_ATTR, MTT_TYPE);
    unsigned i;

    reg->key = ldl_le_p(raw + A_ERDMA_SQE_REG_MR_KEY);
    reg->start = ldq_le_p(raw + A_ERDMA_SQE_REG_MR_START);
    reg->len = ldl_le_p(raw + A_ERDMA_SQE_REG_MR_LENGTH);
    reg->access = FIELD_EX32(attr, ERDMA_SQE_REG_MR_ATTR, ACCESS);
    reg->n_pages = FIELD_EX32(attr, ERDMA_SQE_REG_MR_ATTR, MTT_CNT);
    reg->is_inline = kind == ERDMA_REG_MR_INLINE;
    if (kind == ERDMA_REG_MR_TABLE) {
        return true;
    }
    if (kind != ERDMA_REG_MR_INLINE ||
        reg->n_pages > ERDMA_MR_INLINE_PAGES ||
        ERDMA_SQE_REG_MR_PAGES + reg->n_pages * 8 > sqe_size(sqe)) {
        return false;
    }
    for (i = 0; i < reg->n_pages; i++) {
        reg->pages[i] = ldq_le_p(raw + ERDMA_SQE_REG_MR_PAGES + i * 8);
    }
    return true;
}

bool erdma_decode_sqe(const uint8_t *raw, ErdmaSqe *sqe)
{
    memset(sqe, 0, sizeof(*sqe));
    erdma_decode_sqe_hdr(raw, &sqe->hdr);
    if (sqe->hdr.n_wqebbs > ERDMA_MAX_WQEBBS) {
        return false;
    }

    switch (sqe->hdr.opcode) {
    case ERDMA_OP_SEND:
    case ERDMA_OP_SEND_WITH_IMM:
    case ERDMA_OP_SEND_WITH_INV:
        return decode_send(raw, sqe);
    case ERDMA_OP_WRITE:
    case ERDMA_OP_WRITE_WITH_IMM:
        return decode_write(raw, sqe);
    case ERDMA_OP_READ:
    case ERDMA_OP_READ_WITH_INV:
        return decode_read(raw, sqe);
    case ERDMA_OP_ATOMIC_CAS:
    case ERDMA_OP_ATOMIC_FAA:
        return decode_atomic(raw, sqe);
    case ERDMA_OP_REG_MR:
        return decode_reg_mr(raw, sqe);
    case ERDMA_OP_LOCAL_INV:
        sqe->inv_key = ldl_le_p(raw + A_ERDMA_SQE_INV_KEY);
        return true;
    default:
        return false;
    }
}

void erdma_decode_rqe(const uint8_t *raw, ErdmaRqe *rqe)
{
    rqe->index = lduw_le_p(raw + A_ERDMA_RQE_QE_IDX);
    rqe->qpn = ldl_le_p(raw + A_ERDMA_RQE_QPN);
    rqe->sge.addr = ldq_le_p(raw + A_ERDMA_RQE_TO);
    rqe->sge.len = ldl_le_p(raw + A_ERDMA_RQE_LENGTH);
    rqe->sge.key = ldl_le_p(raw + A_ERDMA_RQE_STAG);
}

uint64_t erdma_decode_atomic(const uint8_t *raw)
{
    return ldq_le_p(raw);
}

void erdma_encode_atomic(uint8_t *raw, uint64_t value)
{
    stq_le_p(raw, value);
}

void erdma_encode_cqe(uint8_t *raw, const ErdmaCqe *cqe, bool phase)
{
    uint8_t opcode = cqe->opcode;
    uint32_t hdr = 0;

    /*
     * Drivers index a table with the opcode, without a check; the opcode of
     * a malformed send entry must not lead them astray.
     */
    if (opcode >= ERDMA_NUM_OPCODES) {
        opcode = ERDMA_OP_WRITE;
    }
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, SYNDROME, cqe->status);
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, QTYPE, cqe->qtype);
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, OPCODE, opcode);
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, OWNER, phase);

    memset(raw, 0, ERDMA_CQE_SIZE);
    stl_be_p(raw + A_ERDMA_CQE_HDR, hdr);
    stl_be_p(raw + A_ERDMA_CQE_QE_IDX, cqe->index);
    stl_be_p(raw + A_ERDMA_CQE_QPN, cqe->qpn);
    if (cqe->has_inv_key) {
        stl_be_p(raw + A_ERDMA_CQE_IMM, cqe->imm);
    } else {
        stl_le_p(raw + A_ERDMA_CQE_IMM, cqe->imm);
    }
    stl_be_p(raw + A_ERDMA_CQE_SIZE_BYTES, cqe->byte_len);
}

void erdma_encode_ceqe(uint8_t *raw, uint32_t cqn, uint32_t pi, bool phase)
{
    uint64_t w = 0;

    w = deposit64(w, R_ERDMA_CEQE_CQN_SHIFT, R_ERDMA_CEQE_CQN_LENGTH, cqn);
    w = deposit64(w, R_ERDMA_CEQE_OWNER_SHIFT, 1, phase);
    w = deposit64(w, R_ERDMA_CEQE_PI_SHIFT, R_ERDMA_CEQE_PI_LENGTH, pi);
    stq_le_p(raw, w);
    stq_le_p(raw + 8, 0);
}

void erdma_encode_aeqe(uint8_t *raw, uint8_t type, uint32_t id, bool phase)
{
    uint32_t hdr = 0;

    hdr = FIELD_DP32(hdr, ERDMA_AEQE_HDR, TYPE, type);
    hdr = FIELD_DP32(hdr, ERDMA_AEQE_HDR, OWNER, phase);
    memset(raw, 0, ERDMA_EQE_SIZE);
    stl_le_p(raw + A_ERDMA_AEQE_HDR, hdr);
    stl_le_p(raw + A_ERDMA_AEQE_DATA0, id);
}
