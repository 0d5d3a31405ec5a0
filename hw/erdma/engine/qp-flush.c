/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flushing: one completion for each entry that a dead QP will not execute.
 *
 * Only the rings matter here; whatever the requester knew about the entries
 * between ci and pi was forgotten when the QP stopped.
 *
 * Reference: docs/specs/erdma.rst, "Flushing"
 */

#include "qemu/osdep.h"
#include "engine/decode.h"
#include "engine/state.h"
#include "engine/status.h"

/* Entries flushed in one visit of a QP */
#define FLUSH_BUDGET            64

static void flush_sqe(ErdmaEngine *e, ErdmaQp *qp)
{
    uint16_t left = qp->sq_pi - qp->sq_ci;
    uint8_t raw[ERDMA_WQEBB_SIZE];
    uint16_t n_wqebbs = left;
    ErdmaSqeHdr hdr = { 0 };
    ErdmaCqe cqe = {
        .qtype = ERDMA_CQE_QTYPE_SQ,
        .status = ERDMA_WC_FLUSH_ERR,
        .index = qp->sq_ci,
        .qpn = qp->qpn,
    };

    /*
     * The consumer advances by the count in the header, sane or not.  One
     * that leads beyond pi, or cannot be read, says nothing about where the
     * next entry begins: what is left is reported as one entry then.
     */
    if (erdma_ring_read(e, &qp->sq, qp->sq_ci, raw)) {
        erdma_decode_sqe_hdr(raw, &hdr);
        n_wqebbs = MIN(left, hdr.n_wqebbs);
    }
    cqe.opcode = erdma_status_sq_opcode(hdr.opcode);
    if (qp->has_failed_wqe && qp->failed_index == qp->sq_ci) {
        qp->has_failed_wqe = false;
        cqe.status = qp->failed_status;
    }
    qp->sq_ci += n_wqebbs;
    qp->sq_next = qp->sq_ci;
    erdma_cq_post(e, qp->sq_cqn, &cqe);
}

static void flush_rqe(ErdmaEngine *e, ErdmaQp *qp)
{
    ErdmaCqe cqe = {
        .opcode = ERDMA_OP_RECEIVE,
        .qtype = ERDMA_CQE_QTYPE_RQ,
        .status = ERDMA_WC_FLUSH_ERR,
        .index = qp->rq_ci,
        .qpn = qp->qpn,
    };

    qp->rq_ci++;
    erdma_cq_post(e, qp->rq_cqn, &cqe);
}

bool erdma_qp_flush_run(ErdmaEngine *e, ErdmaQp *qp)
{
    unsigned n_sq = 0, n_rq = 0;

    while (qp->sq_ci != qp->sq_pi && n_sq < FLUSH_BUDGET && e->dma_left) {
        flush_sqe(e, qp);
        n_sq++;
    }
    while (qp->rq_ci != qp->rq_pi && n_sq + n_rq < FLUSH_BUDGET &&
           e->dma_left) {
        flush_rqe(e, qp);
        n_rq++;
    }
    if (n_sq + n_rq) {
        e->stats.flushed += n_sq + n_rq;
        erdma_trace(e, ERDMA_EV_FLUSH, qp->qpn, n_sq, n_rq);
    }
    return qp->sq_ci != qp->sq_pi || qp->rq_ci != qp->rq_pi;
}
