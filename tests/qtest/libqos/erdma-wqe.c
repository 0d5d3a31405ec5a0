/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos driver for the eRDMA device: work requests, their doorbells, and
 * completions.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "erdma.h"

#define QERDMA_CQE_NS       (20ll * 1000 * 1000 * 1000)
#define QERDMA_LEFTOVER     0x5a    /* what slots of a ring hold before */
#define QERDMA_KERNEL_SQ_DB 0x5f000

static void qerdma_put_sge(uint8_t *p, const QErdmaSge *sge)
{
    stq_le_p(p + A_ERDMA_SGE_ADDR, sge->addr);
    stl_le_p(p + A_ERDMA_SGE_LENGTH, sge->len);
    stl_le_p(p + A_ERDMA_SGE_KEY, sge->key);
}

/* Scatter list or inline bytes from @off; returns the end of the entry. */
static unsigned qerdma_put_payload(uint8_t *raw, const QErdmaSend *wr,
                                   unsigned off)
{
    uint32_t len = wr->data_len;
    unsigned i;

    if (wr->is_inline) {
        g_assert_cmpuint(off + len, <=, ERDMA_CMD_MAX_SIZE);
        memcpy(raw + off, wr->data, len);
        stl_le_p(raw + A_ERDMA_SQE_LENGTH, len);
        return off + len;
    }
    len = 0;
    for (i = 0; i < wr->n_sges; i++) {
        qerdma_put_sge(raw + off + i * ERDMA_SGE_SIZE, &wr->sges[i]);
        len += wr->sges[i].len;
    }
    stl_le_p(raw + A_ERDMA_SQE_LENGTH, len);
    return off + wr->n_sges * ERDMA_SGE_SIZE;
}

static unsigned qerdma_put_read(uint8_t *raw, const QErdmaSend *wr)
{
    const QErdmaSge *sink = &wr->sges[0];

    if (wr->opcode == ERDMA_OP_READ_WITH_INV) {
        stl_le_p(raw + A_ERDMA_SQE_READ_INV_KEY, wr->inv_key);
    }
    stl_le_p(raw + A_ERDMA_SQE_LENGTH, sink->len);
    stl_le_p(raw + A_ERDMA_SQE_READ_LKEY, sink->key);
    stl_le_p(raw + A_ERDMA_SQE_READ_LADDR_L, sink->addr);
    stl_le_p(raw + A_ERDMA_SQE_READ_LADDR_H, sink->addr >> 32);
    stq_le_p(raw + A_ERDMA_SQE_READ_RADDR, wr->raddr);
    stl_le_p(raw + A_ERDMA_SQE_READ_RLEN, sink->len);
    stl_le_p(raw + A_ERDMA_SQE_READ_RKEY, wr->rkey);
    return 48;
}

static unsigned qerdma_put_atomic(uint8_t *raw, const QErdmaSend *wr)
{
    const QErdmaSge *sink = &wr->sges[0];

    stq_le_p(raw + A_ERDMA_SQE_ATOMIC_SWAP_ADD, wr->swap_add);
    if (wr->opcode == ERDMA_OP_ATOMIC_CAS) {
        stq_le_p(raw + A_ERDMA_SQE_ATOMIC_COMPARE, wr->compare);
    }
    stq_le_p(raw + A_ERDMA_SQE_ATOMIC_RADDR, wr->raddr);
    stl_le_p(raw + A_ERDMA_SQE_ATOMIC_RKEY, wr->rkey);
    stq_le_p(raw + A_ERDMA_SQE_ATOMIC_LADDR, sink->addr);
    stl_le_p(raw + A_ERDMA_SQE_ATOMIC_LLEN, sink->len);
    stl_le_p(raw + A_ERDMA_SQE_ATOMIC_LKEY, sink->key);
    return 64;
}

static unsigned qerdma_put_reg_mr(uint8_t *raw, const QErdmaSend *wr)
{
    uint32_t attr = 0;
    unsigned i;

    attr = FIELD_DP32(attr, ERDMA_SQE_REG_MR_ATTR, ACCESS, wr->reg_access);
    attr = FIELD_DP32(attr, ERDMA_SQE_REG_MR_ATTR, MTT_TYPE,
                      wr->reg_use_table ? ERDMA_REG_MR_TABLE :
                      ERDMA_REG_MR_INLINE);
    attr = FIELD_DP32(attr, ERDMA_SQE_REG_MR_ATTR, MTT_CNT, wr->reg_n_pages);
    stq_le_p(raw + A_ERDMA_SQE_REG_MR_START, wr->reg_start);
    stl_le_p(raw + A_ERDMA_SQE_REG_MR_LENGTH, wr->reg_len);
    stl_le_p(raw + A_ERDMA_SQE_REG_MR_KEY, wr->reg_key);
    stl_le_p(raw + A_ERDMA_SQE_REG_MR_ATTR, attr);
    if (wr->reg_use_table) {
        return 32;
    }
    for (i = 0; i < wr->reg_n_pages; i++) {
        stq_le_p(raw + ERDMA_SQE_REG_MR_PAGES + i * 8, wr->reg_pages[i]);
    }
    return 64;
}

/* The opcode's own part; returns the bytes of the entry. */
static unsigned qerdma_put_body(uint8_t *raw, const QErdmaSend *wr)
{
    switch (wr->opcode) {
    case ERDMA_OP_SEND_WITH_IMM:
        stl_be_p(raw + A_ERDMA_SQE_SEND_IMM, wr->imm);
        return qerdma_put_payload(raw, wr, ERDMA_SQE_SEND_SGL);
    case ERDMA_OP_SEND_WITH_INV:
        stl_le_p(raw + A_ERDMA_SQE_SEND_IMM, wr->inv_key);
        return qerdma_put_payload(raw, wr, ERDMA_SQE_SEND_SGL);
    case ERDMA_OP_SEND:
        return qerdma_put_payload(raw, wr, ERDMA_SQE_SEND_SGL);
    case ERDMA_OP_WRITE_WITH_IMM:
        stl_be_p(raw + A_ERDMA_SQE_WRITE_IMM, wr->imm);
        /* fall through */
    case ERDMA_OP_WRITE:
        stl_le_p(raw + A_ERDMA_SQE_WRITE_RKEY, wr->rkey);
        stl_le_p(raw + A_ERDMA_SQE_WRITE_RADDR_L, wr->raddr);
        stl_le_p(raw + A_ERDMA_SQE_WRITE_RADDR_H, wr->raddr >> 32);
        return qerdma_put_payload(raw, wr, ERDMA_SQE_WRITE_SGL);
    case ERDMA_OP_READ:
    case ERDMA_OP_READ_WITH_INV:
        return qerdma_put_read(raw, wr);
    case ERDMA_OP_ATOMIC_CAS:
    case ERDMA_OP_ATOMIC_FAA:
        return qerdma_put_atomic(raw, wr);
    case ERDMA_OP_REG_MR:
        return qerdma_put_reg_mr(raw, wr);
    case ERDMA_OP_LOCAL_INV:
        stl_le_p(raw + A_ERDMA_SQE_INV_KEY, wr->inv_key);
        return 32;
    default:
        /* a test of unknown opcodes */
        return 32;
    }
}

static bool qerdma_has_payload(uint8_t opcode)
{
    return opcode == ERDMA_OP_SEND || opcode == ERDMA_OP_SEND_WITH_IMM ||
        opcode == ERDMA_OP_SEND_WITH_INV || opcode == ERDMA_OP_WRITE ||
        opcode == ERDMA_OP_WRITE_WITH_IMM;
}

unsigned qerdma_build_sqe(const QErdmaQp *qp, const QErdmaSend *wr,
                          uint8_t raw[ERDMA_CMD_MAX_SIZE])
{
    uint64_t hdr = 0;
    unsigned sgl_len = 0;
    unsigned n;

    memset(raw, QERDMA_LEFTOVER, ERDMA_CMD_MAX_SIZE);
    n = DIV_ROUND_UP(qerdma_put_body(raw, wr), ERDMA_WQEBB_SIZE);
    if (qerdma_has_payload(wr->opcode)) {
        sgl_len = wr->is_inline ? wr->data_len : wr->n_sges;
    }
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, PI, (uint16_t)(qp->sq_pi + n));
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, CE, !wr->is_silent);
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, SE, wr->is_solicited);
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, FENCE, wr->is_fenced);
    /* copied from the request for every opcode */
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, INLINE, wr->is_inline);
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, OPCODE, wr->opcode);
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, QPN, qp->qpn);
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, WQEBB_CNT, n - 1);
    hdr = FIELD_DP64(hdr, ERDMA_SQE_HDR, SGL_LEN, sgl_len);
    stq_le_p(raw, hdr);
    return n;
}

void qerdma_put_sqe(QErdmaQp *qp, const uint8_t *raw, unsigned n)
{
    uint16_t mask = (1u << qp->sq_log2) - 1;
    unsigned i;

    for (i = 0; i < n; i++, qp->sq_pi++) {
        uint64_t off = (qp->sq_pi & mask) * ERDMA_WQEBB_SIZE;

        qtest_memwrite(qp->dev->qts, qerdma_buf_addr(&qp->sq, off),
                       raw + i * ERDMA_WQEBB_SIZE, ERDMA_WQEBB_SIZE);
    }
}

void qerdma_sq_db(QErdmaQp *qp)
{
    uint64_t db = 0;
    uint64_t off = QERDMA_KERNEL_SQ_DB;

    db = FIELD_DP64(db, ERDMA_DB_SQ, PI, qp->sq_pi);
    db = FIELD_DP64(db, ERDMA_DB_SQ, QPN, qp->qpn);
    qtest_writeq(qp->dev->qts, qp->sq_dbrec, db);
    if (qp->ctx) {
        off = qp->ctx->sdb * 4096ull + (qp->qpn % 32) * 128;
    }
    qerdma_write64(qp->dev, off, db);
}

uint16_t qerdma_queue_send(QErdmaQp *qp, const QErdmaSend *wr)
{
    uint8_t raw[ERDMA_CMD_MAX_SIZE];
    uint16_t index = qp->sq_pi;

    qerdma_put_sqe(qp, raw, qerdma_build_sqe(qp, wr, raw));
    return index;
}

uint16_t qerdma_post_send(QErdmaQp *qp, const QErdmaSend *wr)
{
    uint16_t index = qerdma_queue_send(qp, wr);

    qerdma_sq_db(qp);
    return index;
}

void qerdma_rq_db(QErdmaQp *qp, uint16_t garbage)
{
    uint64_t off = ERDMA_RQ_DB_SPACE;
    uint64_t db = 0;

    db = FIELD_DP64(db, ERDMA_DB_RQ, PI, qp->rq_pi);
    db = FIELD_DP64(db, ERDMA_DB_RQ, QPN, qp->qpn);
    db |= (uint64_t)garbage << 16;
    qtest_writeq(qp->dev->qts, qp->rq_dbrec, db);
    if (qp->ctx) {
        /* the driver maps the page named C for receives */
        off = qp->ctx->cdb * 4096ull + (qp->qpn % 128) * 32;
    }
    qerdma_write64(qp->dev, off, db);
}

uint16_t qerdma_post_recv(QErdmaQp *qp, uint64_t addr, uint32_t len,
                          uint32_t key)
{
    uint16_t position = qp->rq_pi;
    uint64_t off = (position & ((1u << qp->rq_log2) - 1)) * ERDMA_RQE_SIZE;
    uint8_t raw[ERDMA_RQE_SIZE];

    memset(raw, QERDMA_LEFTOVER, sizeof(raw));
    qp->rq_pi++;
    stw_le_p(raw + A_ERDMA_RQE_QE_IDX, qp->rq_pi);
    stl_le_p(raw + A_ERDMA_RQE_QPN, qp->qpn);
    stl_le_p(raw + A_ERDMA_RQE_LENGTH, len);
    if (len) {
        stq_le_p(raw + A_ERDMA_RQE_TO, addr);
        stl_le_p(raw + A_ERDMA_RQE_STAG, key);
    }
    qtest_memwrite(qp->dev->qts, qerdma_buf_addr(&qp->rq, off), raw,
                   sizeof(raw));
    qerdma_rq_db(qp, QERDMA_LEFTOVER << 8 | QERDMA_LEFTOVER);
    return position;
}

bool qerdma_poll_cq(QErdmaCq *cq, QErdmaWc *wc)
{
    uint32_t depth = 1u << cq->log2;
    uint64_t off = (uint64_t)(cq->ci & (depth - 1)) * ERDMA_CQE_SIZE;
    uint8_t raw[ERDMA_CQE_SIZE];
    uint32_t hdr;

    qtest_memread(cq->dev->qts, qerdma_buf_addr(&cq->buf, off), raw,
                  sizeof(raw));
    hdr = ldl_be_p(raw + A_ERDMA_CQE_HDR);
    if (FIELD_EX32(hdr, ERDMA_CQE_HDR, OWNER) == !!(cq->ci & depth)) {
        return false;
    }
    cq->ci++;
    wc->status = FIELD_EX32(hdr, ERDMA_CQE_HDR, SYNDROME);
    wc->qtype = FIELD_EX32(hdr, ERDMA_CQE_HDR, QTYPE);
    wc->opcode = FIELD_EX32(hdr, ERDMA_CQE_HDR, OPCODE);
    wc->index = ldl_be_p(raw + A_ERDMA_CQE_QE_IDX);
    wc->qpn = ldl_be_p(raw + A_ERDMA_CQE_QPN);
    memcpy(wc->imm_raw, raw + A_ERDMA_CQE_IMM, 4);
    wc->byte_len = ldl_be_p(raw + A_ERDMA_CQE_SIZE_BYTES);
    /* The driver's table of opcodes has this many entries. */
    g_assert_cmpuint(wc->opcode, <, ERDMA_NUM_OPCODES);
    return true;
}

typedef struct QErdmaCqeWait {
    QErdmaCq *cq;
    QErdmaWc *wc;
} QErdmaCqeWait;

static bool qerdma_cqe_cond(void *opaque)
{
    QErdmaCqeWait *w = opaque;

    return qerdma_poll_cq(w->cq, w->wc);
}

void qerdma_wait_cqe(QErdmaCq *cq, QErdmaWc *wc)
{
    QErdmaCqeWait w = { cq, wc };

    g_assert_true(qerdma_wait(cq->dev, qerdma_cqe_cond, &w, QERDMA_CQE_NS));
}

void qerdma_expect_no_cqe(QErdmaCq *cq)
{
    QErdmaWc wc;

    qerdma_settle(cq->dev);
    g_assert_false(qerdma_poll_cq(cq, &wc));
}

void qerdma_expect_send(QErdmaQp *qp, uint16_t index, uint8_t opcode,
                        uint8_t status)
{
    QErdmaWc wc;

    qerdma_wait_cqe(qp->scq, &wc);
    g_assert_cmpint(wc.status, ==, status);
    g_assert_cmpint(wc.qtype, ==, ERDMA_CQE_QTYPE_SQ);
    g_assert_cmphex(wc.qpn, ==, qp->qpn);
    /* free-running, and the entry's first WQEBB: consumers depend on it */
    g_assert_cmphex(wc.index & 0xffff, ==, index);
    g_assert_cmpint(wc.opcode, ==, opcode);
}

void qerdma_expect_recv(QErdmaQp *qp, uint16_t position, uint8_t opcode,
                        uint8_t status, uint32_t byte_len, QErdmaWc *wc)
{
    uint16_t mask = (1u << qp->rq_log2) - 1;
    QErdmaWc local;

    wc = wc ?: &local;
    qerdma_wait_cqe(qp->rcq, wc);
    g_assert_cmpint(wc->status, ==, status);
    g_assert_cmpint(wc->qtype, ==, ERDMA_CQE_QTYPE_RQ);
    g_assert_cmphex(wc->qpn, ==, qp->qpn);
    g_assert_cmphex(wc->index & mask, ==, position & mask);
    g_assert_cmpint(wc->opcode, ==, opcode);
    if (status == ERDMA_WC_SUCCESS) {
        g_assert_cmpuint(wc->byte_len, ==, byte_len);
    }
}

uint64_t qerdma_cq_db_payload(QErdmaCq *cq, bool is_solicited)
{
    uint64_t db = 0;

    db = FIELD_DP64(db, ERDMA_DB_CQ, IDX, cq->arm_count);
    db = FIELD_DP64(db, ERDMA_DB_CQ, CQN, cq->cqn);
    db = FIELD_DP64(db, ERDMA_DB_CQ, ARM, 1);
    db = FIELD_DP64(db, ERDMA_DB_CQ, SOL, is_solicited);
    db = FIELD_DP64(db, ERDMA_DB_CQ, CMDSN, cq->sn & 3);
    return FIELD_DP64(db, ERDMA_DB_CQ, CI, cq->ci & 0xffffff);
}

void qerdma_arm_cq(QErdmaCq *cq, bool is_solicited)
{
    uint64_t db = qerdma_cq_db_payload(cq, is_solicited);
    uint64_t off = ERDMA_CQ_DB_SPACE;

    qtest_writeq(cq->dev->qts, cq->dbrec, db);
    if (cq->ctx) {
        /* the driver maps the page named R for completion queues */
        off = cq->ctx->rdb * 4096ull + (cq->cqn % 512) * 8;
    }
    qerdma_write64(cq->dev, off, db);
    cq->arm_count++;
}

void qerdma_pattern(uint8_t *buf, size_t len, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;
    size_t i;

    for (i = 0; i < len; i++) {
        x = x * 1103515245u + 12345;
        buf[i] = x >> 16;
    }
}

void qerdma_fill(QErdma *d, uint64_t addr, size_t len, uint32_t seed)
{
    g_autofree uint8_t *buf = g_malloc(len + 1);

    if (!len) {
        return;
    }
    qerdma_pattern(buf, len, seed);
    qtest_bufwrite(d->qts, addr, buf, len);
}

void qerdma_check(QErdma *d, uint64_t addr, size_t len, uint32_t seed)
{
    g_autofree uint8_t *want = g_malloc(len + 1);
    g_autofree uint8_t *have = g_malloc(len + 1);
    size_t i;

    if (!len) {
        return;
    }
    qerdma_pattern(want, len, seed);
    qtest_bufread(d->qts, addr, have, len);
    for (i = 0; i < len && want[i] == have[i]; i++) {
        /* find the first difference */
    }
    g_assert_cmpuint(i, ==, len);
}
