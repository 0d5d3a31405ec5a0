/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos driver for the eRDMA device: the commands that make, connect and
 * remove objects, and the memory that goes with them.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "erdma.h"

#define QERDMA_PAGE_SIZE 4096u

static bool qerdma_is_6_1(const QErdma *d)
{
    return d->opt.flavor == QERDMA_LINUX_6_1;
}

/* ---- memory ---- */

uint64_t qerdma_buf_addr(const QErdmaBuf *buf, uint64_t off)
{
    uint64_t pos = buf->offset + off;
    uint64_t page = pos >> buf->page_shift;

    g_assert_cmpuint(page, <, buf->n_pages);
    return buf->pages[page] + (pos & ((1ull << buf->page_shift) - 1));
}

void qerdma_buf_init_kernel(QErdma *d, QErdmaBuf *buf, size_t size,
                            unsigned page_shift)
{
    *buf = (QErdmaBuf) {
        .pages = { qerdma_alloc(d, size) },
        .n_pages = 1,
        .page_shift = page_shift,
    };
}

void qerdma_buf_init_user(QErdma *d, QErdmaBuf *buf, size_t size,
                          uint32_t offset)
{
    unsigned n = DIV_ROUND_UP(offset + size, QERDMA_PAGE_SIZE);
    uint64_t base = qerdma_alloc(d, n * QERDMA_PAGE_SIZE);
    unsigned i;

    g_assert_cmpuint(n, <=, QERDMA_MAX_PAGES);
    *buf = (QErdmaBuf) {
        .n_pages = n,
        .page_shift = 12,
        .offset = offset,
        .table = qerdma_alloc(d, n * 8),
    };
    for (i = 0; i < n; i++) {
        buf->pages[i] = base + (n - 1 - i) * QERDMA_PAGE_SIZE;
        qtest_writeq(d->qts, buf->table + i * 8, buf->pages[i]);
    }
}

/* ---- event queues, device ---- */

void qerdma_create_eq_cmd(QErdma *d, QErdmaCmd *cmd, unsigned eqn,
                          uint8_t log2)
{
    QErdmaEq *eq = &d->ceqs[eqn];
    size_t size = (size_t)ERDMA_EQE_SIZE << log2;

    *eq = (QErdmaEq) {
        .addr = qerdma_alloc(d, size + 8),
        .depth = 1u << log2,
        .vector = eqn,
        .db = A_ERDMA_CEQ_DB + 8 * eqn,
    };
    eq->dbrec = qerdma_is_6_1(d) ? eq->addr + size : qerdma_alloc(d, 8);

    qerdma_cmd_init(cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_CREATE_EQ);
    qerdma_cmd_set64(cmd, A_ERDMA_CMD_CREATE_EQ_ADDR, eq->addr);
    cmd->raw[A_ERDMA_CMD_EQ_VECTOR] = eqn;
    cmd->raw[A_ERDMA_CMD_EQ_EQN] = eqn;
    cmd->raw[A_ERDMA_CMD_CREATE_EQ_DEPTH] = log2;
    cmd->raw[A_ERDMA_CMD_EQ_TYPE] = ERDMA_EQ_TYPE_CEQ;
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_EQ_DBREC_L, eq->dbrec);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_EQ_DBREC_H, eq->dbrec >> 32);
}

uint8_t qerdma_create_eq(QErdma *d, unsigned eqn, uint8_t log2)
{
    QErdmaCmd cmd;

    qerdma_create_eq_cmd(d, &cmd, eqn, log2);
    return qerdma_cmd_exec(d, &cmd, NULL);
}

uint8_t qerdma_destroy_eq(QErdma *d, unsigned eqn)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_DESTROY_EQ);
    cmd.raw[A_ERDMA_CMD_EQ_VECTOR] = eqn;
    cmd.raw[A_ERDMA_CMD_EQ_EQN] = eqn;
    cmd.raw[A_ERDMA_CMD_EQ_TYPE] = ERDMA_EQ_TYPE_CEQ;
    return qerdma_cmd_exec(d, &cmd, NULL);
}

uint8_t qerdma_query_device(QErdma *d)
{
    QErdmaCmd cmd;
    uint64_t resp[2];
    uint8_t status;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    status = qerdma_cmd_exec(d, &cmd, resp);
    d->cap0 = resp[0];
    d->cap1 = resp[1];
    d->local_key = FIELD_EX64(resp[1], ERDMA_DEV_CAP1, DMA_LOCAL_KEY);
    return status;
}

uint8_t qerdma_alloc_db(QErdma *d, QErdmaCtx *ctx)
{
    QErdmaCmd cmd;
    uint64_t resp[2];
    uint8_t status;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_ALLOC_DB);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_EXT_DB_CFG, 7);
    qerdma_cmd_set16(&cmd, A_ERDMA_CMD_EXT_DB_RDB, 0);
    qerdma_cmd_set16(&cmd, A_ERDMA_CMD_EXT_DB_SDB, 0);
    qerdma_cmd_set16(&cmd, A_ERDMA_CMD_EXT_DB_CDB, 0);
    status = qerdma_cmd_exec(d, &cmd, resp);
    ctx->sdb = FIELD_EX64(resp[0], ERDMA_ALLOC_DB_RESP, SDB);
    ctx->rdb = FIELD_EX64(resp[0], ERDMA_ALLOC_DB_RESP, RDB);
    ctx->cdb = FIELD_EX64(resp[0], ERDMA_ALLOC_DB_RESP, CDB);
    return status;
}

void qerdma_open_ctx(QErdma *d, QErdmaCtx *ctx)
{
    if (qerdma_is_6_1(d)) {
        *ctx = (QErdmaCtx) { .sdb = 0x5f, .rdb = 0x79, .cdb = 0x61 };
    } else {
        g_assert_cmpint(qerdma_alloc_db(d, ctx), ==, 0);
    }
}

uint8_t qerdma_free_db(QErdma *d, const QErdmaCtx *ctx)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_FREE_DB);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_EXT_DB_CFG, 7);
    qerdma_cmd_set16(&cmd, A_ERDMA_CMD_EXT_DB_RDB, ctx->rdb);
    qerdma_cmd_set16(&cmd, A_ERDMA_CMD_EXT_DB_SDB, ctx->sdb);
    qerdma_cmd_set16(&cmd, A_ERDMA_CMD_EXT_DB_CDB, ctx->cdb);
    return qerdma_cmd_exec(d, &cmd, NULL);
}

/* ---- completion queues ---- */

static void qerdma_cq_prepare(QErdma *d, QErdmaCq *cq)
{
    size_t size;

    cq->dev = d;
    cq->log2 = cq->log2 ?: 6;
    cq->eqn = cq->eqn ?: 1;
    cq->cqn = cq->cqn ?: d->next_cqn++;
    cq->ci = 0;
    cq->arm_count = 0;
    cq->sn = 0;
    size = (size_t)ERDMA_CQE_SIZE << cq->log2;
    if (cq->buf.n_pages) {
        return;
    }
    if (cq->ctx) {
        qerdma_buf_init_user(d, &cq->buf, size, 0);
        cq->dbrec = qerdma_alloc(d, 16);
        /* What a provider leaves there until after the creation */
        qtest_memset(d->qts, cq->dbrec, QERDMA_GARBAGE, 16);
    } else {
        qerdma_buf_init_kernel(d, &cq->buf, size + 8,
                               ERDMA_CQ_PAGE_SIZE_KERNEL + 12);
        cq->dbrec = qerdma_is_6_1(d) ? cq->buf.pages[0] + size :
                    qerdma_alloc(d, 8);
    }
}

void qerdma_create_cq_cmd(QErdma *d, QErdmaCq *cq, QErdmaCmd *cmd)
{
    uint64_t addr;
    uint32_t cfg0 = 0;
    uint32_t cfg1 = 0;
    bool has_db_cfg = cq->ctx && !qerdma_is_6_1(d);
    bool has_table;

    qerdma_cq_prepare(d, cq);
    /* One page is direct; 6.1 sets the level bit even then. */
    has_table = cq->buf.n_pages > 1;
    addr = has_table ? cq->buf.table : cq->buf.pages[0];
    has_table |= cq->ctx && qerdma_is_6_1(d);

    cfg0 = FIELD_DP32(cfg0, ERDMA_CMD_CREATE_CQ_CFG0, CQN, cq->cqn);
    cfg0 = FIELD_DP32(cfg0, ERDMA_CMD_CREATE_CQ_CFG0, PAGE_SIZE,
                      cq->buf.page_shift - 12);
    cfg0 = FIELD_DP32(cfg0, ERDMA_CMD_CREATE_CQ_CFG0, DEPTH, cq->log2);
    cfg1 = FIELD_DP32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, EQN, cq->eqn);
    cfg1 = FIELD_DP32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, DB_CFG_EN, has_db_cfg);
    cfg1 = FIELD_DP32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, MTT_TYPE, has_table);
    cfg1 = FIELD_DP32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, MTT_CNT,
                      cq->buf.n_pages);

    qerdma_cmd_init(cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_CREATE_CQ);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_CQ_CFG0, cfg0);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_CQ_ADDR_L, addr);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_CQ_ADDR_H, addr >> 32);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_CQ_CFG1, cfg1);
    qerdma_cmd_set64(cmd, A_ERDMA_CMD_CREATE_CQ_DBREC, cq->dbrec);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_CQ_OFFSET, cq->buf.offset);
    if (has_db_cfg) {
        qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_CQ_CFG2, cq->ctx->cdb);
    }
}

uint8_t qerdma_create_cq(QErdma *d, QErdmaCq *cq)
{
    QErdmaCmd cmd;
    uint8_t status;

    qerdma_create_cq_cmd(d, cq, &cmd);
    status = qerdma_cmd_exec(d, &cmd, NULL);
    if (!status && cq->ctx) {
        /* U65's preset: counter 0xff, sequence 3, not armed */
        qtest_writeq(d->qts, cq->dbrec, 0xff00000030000000ull |
                     (uint64_t)cq->cqn << 32);
    }
    return status;
}

uint8_t qerdma_destroy_cq(QErdmaCq *cq)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_DESTROY_CQ);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_DESTROY_CQ_CQN, cq->cqn);
    return qerdma_cmd_exec(cq->dev, &cmd, NULL);
}

/* ---- queue pairs ---- */

static void qerdma_qp_alloc_queue(QErdma *d, const QErdmaQp *qp,
                                  QErdmaBuf *buf, size_t size,
                                  uint64_t *dbrec)
{
    if (buf->n_pages) {
        return;
    }
    if (qp->ctx) {
        qerdma_buf_init_user(d, buf, size, 0);
        return;
    }
    qerdma_buf_init_kernel(d, buf, size + 8, ERDMA_QP_PAGE_SIZE_KERNEL + 12);
    *dbrec = qerdma_is_6_1(d) ? buf->pages[0] + size : qerdma_alloc(d, 8);
}

static void qerdma_qp_prepare(QErdma *d, QErdmaQp *qp)
{
    qp->dev = d;
    qp->qpn = qp->qpn ?: d->next_qpn++;
    qp->sq_log2 = qp->sq_log2 ?: 6;
    qp->rq_log2 = qp->rq_log2 ?: 6;
    qp->sq_pi = 0;
    qp->rq_pi = 0;
    if (qp->ctx && !qp->sq_dbrec) {
        qp->sq_dbrec = qerdma_alloc(d, 16);
        qp->rq_dbrec = qp->sq_dbrec + 8;
        qtest_memset(d->qts, qp->sq_dbrec, QERDMA_GARBAGE, 16);
    }
    qerdma_qp_alloc_queue(d, qp, &qp->sq,
                          (size_t)ERDMA_WQEBB_SIZE << qp->sq_log2,
                          &qp->sq_dbrec);
    qerdma_qp_alloc_queue(d, qp, &qp->rq,
                          (size_t)ERDMA_RQE_SIZE << qp->rq_log2,
                          &qp->rq_dbrec);
}

/* 6.1 gives user queues a table always, later drivers above four pages. */
static bool qerdma_qp_has_table(const QErdma *d, const QErdmaQp *qp,
                                const QErdmaBuf *buf)
{
    return buf->n_pages > ERDMA_QP_INLINE_PAGES ||
        (qp->ctx && qerdma_is_6_1(d));
}

static void qerdma_qp_set_pages(QErdma *d, QErdmaCmd *cmd, const QErdmaQp *qp,
                                const QErdmaBuf *buf, bool is_rq)
{
    bool has_table = qerdma_qp_has_table(d, qp, buf);
    uint32_t mtt = buf->offset;
    unsigned i;

    mtt = FIELD_DP32(mtt, ERDMA_CMD_CREATE_QP_SQ_MTT, TYPE, has_table);
    mtt = FIELD_DP32(mtt, ERDMA_CMD_CREATE_QP_SQ_MTT, CNT, buf->n_pages);
    qerdma_cmd_set32(cmd, is_rq ? A_ERDMA_CMD_CREATE_QP_RQ_MTT :
                     A_ERDMA_CMD_CREATE_QP_SQ_MTT, mtt);
    qerdma_cmd_set64(cmd, is_rq ? A_ERDMA_CMD_CREATE_QP_RQ_ADDR :
                     A_ERDMA_CMD_CREATE_QP_SQ_ADDR,
                     has_table ? buf->table : buf->pages[0]);
    if (!has_table) {
        for (i = 1; i < buf->n_pages; i++) {
            qerdma_cmd_set64(cmd, (is_rq ? A_ERDMA_CMD_CREATE_QP_RQ_PAGES :
                                   A_ERDMA_CMD_CREATE_QP_SQ_PAGES) +
                             (i - 1) * 8, buf->pages[i]);
        }
    }
}

void qerdma_create_qp_cmd(QErdma *d, QErdmaQp *qp, QErdmaCmd *cmd)
{
    uint32_t cfg;

    qerdma_qp_prepare(d, qp);
    qerdma_cmd_init(cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_CREATE_QP);

    cfg = FIELD_DP32(0, ERDMA_CMD_CREATE_QP_CFG0, QPN, qp->qpn);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_CREATE_QP_CFG0, SQ_DEPTH, qp->sq_log2);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_QP_CFG0, cfg);
    cfg = FIELD_DP32(0, ERDMA_CMD_CREATE_QP_CFG1, PDN, qp->pdn);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_CREATE_QP_CFG1, RQ_DEPTH, qp->rq_log2);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_QP_CFG1, cfg);

    cfg = FIELD_DP32(0, ERDMA_CMD_CREATE_QP_SQ_CFG, CQN, qp->scq->cqn);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_CREATE_QP_SQ_CFG, DB_CFG_EN,
                     qp->ctx && !qerdma_is_6_1(d));
    cfg = FIELD_DP32(cfg, ERDMA_CMD_CREATE_QP_SQ_CFG, PAGE_SIZE,
                     qp->sq.page_shift - 12);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_QP_SQ_CFG, cfg);
    cfg = FIELD_DP32(0, ERDMA_CMD_CREATE_QP_RQ_CFG, CQN, qp->rcq->cqn);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_CREATE_QP_RQ_CFG, PAGE_SIZE,
                     qp->rq.page_shift - 12);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_QP_RQ_CFG, cfg);

    qerdma_qp_set_pages(d, cmd, qp, &qp->sq, false);
    qerdma_qp_set_pages(d, cmd, qp, &qp->rq, true);
    qerdma_cmd_set64(cmd, A_ERDMA_CMD_CREATE_QP_SQ_DBREC, qp->sq_dbrec);
    qerdma_cmd_set64(cmd, A_ERDMA_CMD_CREATE_QP_RQ_DBREC, qp->rq_dbrec);
    if (qp->ctx && !qerdma_is_6_1(d)) {
        cfg = FIELD_DP32(0, ERDMA_CMD_CREATE_QP_DB_CFG, SQ_PAGE, qp->ctx->sdb);
        cfg = FIELD_DP32(cfg, ERDMA_CMD_CREATE_QP_DB_CFG, RQ_PAGE,
                         qp->ctx->rdb);
        qerdma_cmd_set32(cmd, A_ERDMA_CMD_CREATE_QP_DB_CFG, cfg);
    }
}

uint8_t qerdma_create_qp(QErdma *d, QErdmaQp *qp)
{
    QErdmaCmd cmd;
    uint64_t resp[2];
    uint8_t status;

    qerdma_create_qp_cmd(d, qp, &cmd);
    status = qerdma_cmd_exec(d, &cmd, resp);
    qp->cookie = resp[0];
    return status;
}

static uint32_t qerdma_modify_cfg(const QErdmaQp *qp, uint8_t state)
{
    uint32_t cfg = 0;

    cfg = FIELD_DP32(cfg, ERDMA_CMD_MODIFY_QP_CFG, QPN, qp->qpn);
    /* What the device proposed, as both ends have the same. */
    cfg = FIELD_DP32(cfg, ERDMA_CMD_MODIFY_QP_CFG, CC,
                     FIELD_EX64(qp->dev->cap1, ERDMA_DEV_CAP1, DEFAULT_CC));
    return FIELD_DP32(cfg, ERDMA_CMD_MODIFY_QP_CFG, STATE, state);
}

uint8_t qerdma_modify_qp(QErdmaQp *qp, uint8_t state)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_MODIFY_QP);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_MODIFY_QP_CFG,
                     qerdma_modify_cfg(qp, state));
    return qerdma_cmd_exec(qp->dev, &cmd, NULL);
}

void qerdma_rts_cmd(QErdmaCmd *cmd, const QErdmaQp *qp, const QErdmaQp *peer)
{
    bool is_first = qp->cookie < peer->cookie;

    qerdma_cmd_init(cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_MODIFY_QP);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_MODIFY_QP_CFG,
                     qerdma_modify_cfg(qp, ERDMA_QPS_RTS));
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_MODIFY_QP_COOKIE, peer->cookie);
    stl_be_p(cmd->raw + A_ERDMA_CMD_MODIFY_QP_DIP, peer->dev->ip);
    stl_be_p(cmd->raw + A_ERDMA_CMD_MODIFY_QP_SIP, qp->dev->ip);
    stw_be_p(cmd->raw + A_ERDMA_CMD_MODIFY_QP_SPORT, is_first ? 7471 : 40000);
    stw_be_p(cmd->raw + A_ERDMA_CMD_MODIFY_QP_DPORT, is_first ? 40000 : 7471);
    /* One end's send number is the other's receive number. */
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_MODIFY_QP_SEND_NXT,
                     0xfffffff0u + qp->cookie);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_MODIFY_QP_RECV_NXT,
                     0xfffffff0u + peer->cookie);
}

void qerdma_connect(QErdmaQp *active, QErdmaQp *passive)
{
    QErdmaCmd cmd;

    qerdma_rts_cmd(&cmd, passive, active);
    g_assert_cmpint(qerdma_cmd_exec(passive->dev, &cmd, NULL), ==, 0);
    qerdma_rts_cmd(&cmd, active, passive);
    g_assert_cmpint(qerdma_cmd_exec(active->dev, &cmd, NULL), ==, 0);
}

uint8_t qerdma_destroy_qp(QErdmaQp *qp)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_DESTROY_QP);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_DESTROY_QP_QPN, qp->qpn);
    return qerdma_cmd_exec(qp->dev, &cmd, NULL);
}

uint8_t qerdma_reflush(QErdmaQp *qp, uint16_t sq_pi, uint16_t rq_pi)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_REFLUSH);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_REFLUSH_QPN, qp->qpn);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_REFLUSH_SQ_PI, sq_pi);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_REFLUSH_RQ_PI, rq_pi);
    return qerdma_cmd_exec(qp->dev, &cmd, NULL);
}

void qerdma_pair_create(QErdmaPair *p, QErdma *d0, QErdma *d1, uint32_t pdn,
                        bool is_user)
{
    QErdma *d[2] = { d0, d1 };
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (is_user) {
            qerdma_open_ctx(d[i], &p->ctx[i]);
            p->cq[i].ctx = p->qp[i].ctx = &p->ctx[i];
        }
        p->cq[i].eqn = i + 1;
        g_assert_cmpint(qerdma_create_cq(d[i], &p->cq[i]), ==, 0);
        p->qp[i].scq = p->qp[i].rcq = &p->cq[i];
        p->qp[i].pdn = pdn;
        g_assert_cmpint(qerdma_create_qp(d[i], &p->qp[i]), ==, 0);
    }
}

void qerdma_pair_init(QErdmaPair *p, QErdma *d0, QErdma *d1, uint32_t pdn,
                      bool is_user)
{
    memset(p, 0, sizeof(*p));
    qerdma_pair_create(p, d0, d1, pdn, is_user);
    qerdma_connect(&p->qp[0], &p->qp[1]);
}

/* ---- memory regions ---- */

/*
 * Writes @n addresses to consecutive tables of 2^@shift bytes (one table of
 * any size if 0); @tables gets the address of each.  Returns their number.
 */
static uint64_t qerdma_write_tables(QErdma *d, const uint64_t *entries,
                                    uint64_t n, unsigned shift,
                                    uint64_t **tables)
{
    uint64_t per_table = shift ? 1ull << (shift - 3) : n;
    uint64_t n_tables = DIV_ROUND_UP(n, per_table);
    uint64_t t, i;

    *tables = g_new(uint64_t, n_tables);
    for (t = 0; t < n_tables; t++) {
        uint64_t count = MIN(per_table, n - t * per_table);
        g_autofree uint64_t *le = g_new(uint64_t, count);

        for (i = 0; i < count; i++) {
            le[i] = cpu_to_le64(entries[t * per_table + i]);
        }
        (*tables)[t] = qerdma_alloc(d, shift ? 1u << shift : count * 8);
        qtest_memwrite(d->qts, (*tables)[t], le, count * 8);
    }
    return n_tables;
}

/* The top table of @level levels over the pages */
static uint64_t qerdma_build_mtt(QErdma *d, const QErdmaRegMr *reg)
{
    g_autofree uint64_t *entries = NULL;
    uint64_t n = reg->n_pages;
    unsigned i;

    entries = g_memdup2(reg->pages, n * sizeof(*entries));
    for (i = 0; i < reg->level; i++) {
        g_autofree uint64_t *below = g_steal_pointer(&entries);
        unsigned shift = reg->level == 1 ? 0 : (reg->table_shift ?: 12);

        n = qerdma_write_tables(d, below, n, shift, &entries);
    }
    g_assert_cmpuint(n, ==, 1);
    return entries[0];
}

void qerdma_reg_mr_cmd(QErdma *d, QErdmaMr *mr, const QErdmaRegMr *reg,
                       QErdmaCmd *cmd)
{
    bool is_normal = reg->type == ERDMA_MR_TYPE_NORMAL;
    uint64_t pages[ERDMA_MR_INLINE_PAGES];
    uint32_t cfg;
    unsigned i;

    mr->dev = d;
    if (!mr->key) {
        mr->index = d->next_mr++;
        mr->key = mr->index << 8 | (0x40 + mr->index % 64);
    }
    mr->addr = reg->start;
    mr->len = reg->len;

    qerdma_cmd_init(cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_REG_MR);
    cfg = FIELD_DP32(0, ERDMA_CMD_REG_MR_CFG0, INDEX, mr->key >> 8);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG0, KEY, mr->key & 0xff);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG0, VERSION, reg->is_version_1);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG0, VALID, is_normal);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_REG_MR_CFG0, cfg);
    cfg = FIELD_DP32(0, ERDMA_CMD_REG_MR_CFG1, ACCESS, reg->access);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG1, TYPE, reg->type);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG1, PDN, mr->pdn);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_REG_MR_CFG1, cfg);
    if (is_normal) {
        qerdma_cmd_set64(cmd, A_ERDMA_CMD_REG_MR_START, reg->start);
        qerdma_cmd_set32(cmd, A_ERDMA_CMD_REG_MR_LEN, reg->len);
    }
    cfg = FIELD_DP32(0, ERDMA_CMD_REG_MR_CFG2, MTT_CNT,
                     reg->n_pages & 0xfffff);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG2, MTT_LEVEL, reg->level);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG2, MTT_PAGE_SIZE,
                     reg->table_shift ? reg->table_shift - 12 : 0);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_REG_MR_CFG2, PAGE_SIZE,
                     reg->page_shift ?: 12);
    qerdma_cmd_set32(cmd, A_ERDMA_CMD_REG_MR_CFG2, cfg);

    if (reg->level) {
        pages[0] = qerdma_build_mtt(d, reg);
        qerdma_cmd_set64(cmd, A_ERDMA_CMD_REG_MR_PAGES, pages[0]);
    } else {
        for (i = 0; i < MIN(reg->n_pages, ERDMA_MR_INLINE_PAGES); i++) {
            qerdma_cmd_set64(cmd, A_ERDMA_CMD_REG_MR_PAGES + i * 8,
                             reg->pages[i]);
        }
    }
    if (reg->is_version_1) {
        qerdma_cmd_set32(cmd, A_ERDMA_CMD_REG_MR_LEN_H, reg->len >> 32);
        qerdma_cmd_set32(cmd, A_ERDMA_CMD_REG_MR_MTT_CNT_H,
                         reg->n_pages >> 20);
    }
}

uint8_t qerdma_reg_mr(QErdma *d, QErdmaMr *mr, const QErdmaRegMr *reg)
{
    QErdmaCmd cmd;

    qerdma_reg_mr_cmd(d, mr, reg, &cmd);
    return qerdma_cmd_exec(d, &cmd, NULL);
}

void qerdma_reg_simple(QErdma *d, QErdmaMr *mr, uint32_t pdn, size_t len,
                       uint8_t access)
{
    uint64_t n = DIV_ROUND_UP(len, QERDMA_PAGE_SIZE);
    g_autofree uint64_t *pages = g_new(uint64_t, n);
    QErdmaRegMr reg = {
        .access = access | ERDMA_MR_ACC_LR,
        .level = n > ERDMA_MR_INLINE_PAGES,
        .len = len,
        .n_pages = n,
        .pages = pages,
    };
    uint64_t i;

    mr->pdn = pdn;
    mr->mem = qerdma_alloc(d, len);
    for (i = 0; i < n; i++) {
        pages[i] = mr->mem + i * QERDMA_PAGE_SIZE;
    }
    /* I/O addresses are the application's, unrelated to bus addresses. */
    reg.start = 0x7f0000000000ull + mr->mem;
    g_assert_cmpint(qerdma_reg_mr(d, mr, &reg), ==, 0);
}

uint8_t qerdma_dereg_mr(QErdmaMr *mr)
{
    QErdmaCmd cmd;
    uint32_t cfg = 0;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_DEREG_MR);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_DEREG_MR_CFG, INDEX, mr->key >> 8);
    cfg = FIELD_DP32(cfg, ERDMA_CMD_DEREG_MR_CFG, KEY, mr->key & 0xff);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_DEREG_MR_CFG, cfg);
    return qerdma_cmd_exec(mr->dev, &cmd, NULL);
}
