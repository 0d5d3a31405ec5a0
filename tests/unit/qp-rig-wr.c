/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest writes into its queues, and reads from them.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qp-rig.h"

static void put_sges(uint8_t *p, const RigWr *wr)
{
    unsigned i;

    for (i = 0; i < wr->n_sges; i++, p += 16) {
        stq_le_p(p, wr->sges[i].addr);
        stl_le_p(p + 8, wr->sges[i].len);
        stl_le_p(p + 12, wr->sges[i].key);
    }
}

/* Payload of a send or write from @off on; returns the entry's size. */
static size_t put_source(uint8_t *raw, size_t off, const RigWr *wr)
{
    uint32_t total = 0;
    unsigned i;

    if (wr->inline_data) {
        memcpy(raw + off, wr->inline_data, wr->inline_len);
        stl_le_p(raw + 12, wr->inline_len);
        return off + wr->inline_len;
    }
    for (i = 0; i < wr->n_sges; i++) {
        total += wr->sges[i].len;
    }
    put_sges(raw + off, wr);
    stl_le_p(raw + 12, total);
    return off + 16 * wr->n_sges;
}

static size_t put_body(uint8_t *raw, const RigWr *wr)
{
    unsigned i;

    switch (wr->op) {
    case ERDMA_OP_SEND_WITH_INV:
        stl_le_p(raw + 8, wr->inv_key);
        return put_source(raw, 16, wr);
    case ERDMA_OP_SEND:
    case ERDMA_OP_SEND_WITH_IMM:
        stl_be_p(raw + 8, wr->imm);
        return put_source(raw, 16, wr);
    case ERDMA_OP_WRITE:
    case ERDMA_OP_WRITE_WITH_IMM:
        stl_be_p(raw + 8, wr->imm);
        stl_le_p(raw + 16, wr->rkey);
        stq_le_p(raw + 20, wr->raddr);
        return put_source(raw, 32, wr);
    case ERDMA_OP_READ:
    case ERDMA_OP_READ_WITH_INV:
        stl_le_p(raw + 8, wr->inv_key);
        stl_le_p(raw + 12, wr->sges[0].len);
        stl_le_p(raw + 16, wr->sges[0].key);
        stq_le_p(raw + 20, wr->sges[0].addr);
        stq_le_p(raw + 32, wr->raddr);
        stl_le_p(raw + 40, wr->sges[0].len);
        stl_le_p(raw + 44, wr->rkey);
        return 48;
    case ERDMA_OP_ATOMIC_CAS:
    case ERDMA_OP_ATOMIC_FAA:
        stq_le_p(raw + 16, wr->swap_add);
        stq_le_p(raw + 24, wr->compare);
        stq_le_p(raw + 32, wr->raddr);
        stl_le_p(raw + 44, wr->rkey);
        put_sges(raw + 48, wr);
        return 64;
    case ERDMA_OP_REG_MR:
        stq_le_p(raw + 8, wr->start);
        stl_le_p(raw + 16, wr->len);
        stl_le_p(raw + 20, wr->inv_key);
        stl_le_p(raw + 24, wr->n_pages << 12 | wr->access << 1);
        for (i = 0; i < ARRAY_SIZE(wr->pages); i++) {
            stq_le_p(raw + 32 + 8 * i, wr->pages[i]);
        }
        return 32 + 8 * wr->n_pages;
    default:
        stl_le_p(raw + 20, wr->inv_key);
        return 32;
    }
}

uint16_t rig_write_sqe(RigQp *qp, const RigWr *wr)
{
    uint8_t raw[256];
    uint16_t index = qp->sq_pi;
    size_t n, i;

    memset(raw, 0x5a, sizeof(raw));
    n = DIV_ROUND_UP(put_body(raw, wr), 32);
    qp->sq_pi += n;
    stq_le_p(raw, (uint64_t)(wr->inline_data ? wr->inline_len :
                             wr->op == ERDMA_OP_READ ||
                             wr->op >= ERDMA_OP_REG_MR ? 0 : wr->n_sges) << 56 |
             (uint64_t)(n - 1) << 52 | (uint64_t)qp->qpn << 32 |
             (uint64_t)wr->op << 27 | (uint64_t)!!wr->inline_data << 25 |
             wr->is_fenced << 24 | wr->is_solicited << 23 |
             !wr->is_unsignalled << 22 | qp->sq_pi);
    for (i = 0; i < n; i++) {
        memcpy(rig_ptr(qp->hca, qp->sq + 32 *
                       ((index + i) & (qp->sq_depth - 1))), raw + 32 * i, 32);
    }
    return index;
}

void rig_ring_sq(RigQp *qp)
{
    erdma_engine_db_queue(qp->hca->e, ERDMA_DB_KIND_SQ,
                          (uint64_t)qp->qpn << 32 | qp->sq_pi);
}

uint16_t rig_post_send(RigQp *qp, const RigWr *wr)
{
    uint16_t index = rig_write_sqe(qp, wr);

    rig_ring_sq(qp);
    return index;
}

uint16_t rig_post_recv(RigQp *qp, uint64_t addr, uint32_t len, uint32_t key)
{
    uint16_t index = qp->rq_pi++;
    uint8_t *raw = rig_ptr(qp->hca, qp->rq + 32 *
                           (index & (qp->rq_depth - 1)));

    memset(raw, 0x77, 32);
    stw_le_p(raw, qp->rq_pi);
    stl_le_p(raw + 4, qp->qpn);
    stq_le_p(raw + 16, addr);
    stl_le_p(raw + 24, len);
    stl_le_p(raw + 28, key);
    erdma_engine_db_queue(qp->hca->e, ERDMA_DB_KIND_RQ, ldq_le_p(raw));
    return index;
}

/* Completions */

bool rig_poll(RigCq *cq, RigCqe *cqe)
{
    const uint8_t *raw = rig_ptr(cq->hca, cq->addr +
                                 32 * (cq->ci & (cq->depth - 1)));
    uint32_t hdr = ldl_be_p(raw);

    if (hdr >> 31 == !!(cq->ci & cq->depth)) {
        return false;
    }
    cq->ci++;
    cqe->opcode = hdr >> 16;
    cqe->qtype = hdr >> 8;
    cqe->status = hdr;
    cqe->index = ldl_be_p(raw + 4);
    cqe->qpn = ldl_be_p(raw + 8);
    cqe->imm = ldl_le_p(raw + 12);
    cqe->inv_key = ldl_be_p(raw + 12);
    cqe->len = ldl_be_p(raw + 16);
    return true;
}

RigCqe rig_next(RigCq *cq)
{
    RigCqe cqe = { 0 };

    g_assert_true(rig_poll(cq, &cqe));
    return cqe;
}

void rig_expect(RigCq *cq, uint8_t opcode, uint8_t status, uint16_t index)
{
    RigCqe cqe = rig_next(cq);

    g_assert_cmpuint(cqe.opcode, ==, opcode);
    g_assert_cmpuint(cqe.status, ==, status);
    g_assert_cmpuint(cqe.index & 0xffff, ==, index);
}

void rig_expect_none(RigCq *cq)
{
    RigCqe cqe;

    g_assert_false(rig_poll(cq, &cqe));
}
