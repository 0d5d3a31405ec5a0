/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command requests and responses <-> plain structs.
 *
 * Reference: docs/specs/erdma.rst, "Commands"
 */

#include "qemu/osdep.h"
#include "engine/decode-cmd.h"
#include "qemu/bitops.h"
#include "qemu/bswap.h"

void erdma_decode_cmd_hdr(const uint8_t *raw, ErdmaCmdHdr *hdr)
{
    uint64_t w = ldq_le_p(raw + A_ERDMA_CMD_HDR);

    hdr->pi = FIELD_EX64(w, ERDMA_CMD_HDR, PI);
    hdr->opcode = FIELD_EX64(w, ERDMA_CMD_HDR, OPCODE);
    hdr->sub_mod = FIELD_EX64(w, ERDMA_CMD_HDR, SUB_MOD);
    hdr->n_wqebbs = FIELD_EX64(w, ERDMA_CMD_HDR, WQEBB_CNT) + 1;
}

void erdma_decode_destroy_eq(const uint8_t *raw, ErdmaCmdEq *eq)
{
    memset(eq, 0, sizeof(*eq));
    eq->vector = raw[A_ERDMA_CMD_EQ_VECTOR];
    eq->eqn = raw[A_ERDMA_CMD_EQ_EQN];
    eq->type = raw[A_ERDMA_CMD_EQ_TYPE];
}

void erdma_decode_create_eq(const uint8_t *raw, ErdmaCmdEq *eq)
{
    erdma_decode_destroy_eq(raw, eq);
    eq->addr = ldq_le_p(raw + A_ERDMA_CMD_CREATE_EQ_ADDR);
    eq->depth_log2 = raw[A_ERDMA_CMD_CREATE_EQ_DEPTH];
    /* Low and high half side by side */
    eq->dbrec = ldq_le_p(raw + A_ERDMA_CMD_CREATE_EQ_DBREC_L);
}

void erdma_decode_create_cq(const uint8_t *raw, size_t len,
                            ErdmaCmdCreateCq *cq)
{
    uint32_t cfg0 = ldl_le_p(raw + A_ERDMA_CMD_CREATE_CQ_CFG0);
    uint32_t cfg1 = ldl_le_p(raw + A_ERDMA_CMD_CREATE_CQ_CFG1);

    memset(cq, 0, sizeof(*cq));
    cq->cqn = FIELD_EX32(cfg0, ERDMA_CMD_CREATE_CQ_CFG0, CQN);
    cq->depth_log2 = FIELD_EX32(cfg0, ERDMA_CMD_CREATE_CQ_CFG0, DEPTH);
    cq->page_shift = ERDMA_PAGE_SHIFT_MIN +
        FIELD_EX32(cfg0, ERDMA_CMD_CREATE_CQ_CFG0, PAGE_SIZE);
    cq->addr = ldq_le_p(raw + A_ERDMA_CMD_CREATE_CQ_ADDR_L);
    cq->eqn = FIELD_EX32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, EQN);
    cq->n_pages = FIELD_EX32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, MTT_CNT);
    cq->dbrec = ldq_le_p(raw + A_ERDMA_CMD_CREATE_CQ_DBREC);
    cq->first_off = ldl_le_p(raw + A_ERDMA_CMD_CREATE_CQ_OFFSET);
    if (FIELD_EX32(cfg1, ERDMA_CMD_CREATE_CQ_CFG1, DB_CFG_EN) &&
        len >= A_ERDMA_CMD_CREATE_CQ_CFG2 + 4) {
        cq->has_db_page = true;
        cq->db_page = FIELD_EX32(ldl_le_p(raw + A_ERDMA_CMD_CREATE_CQ_CFG2),
                                 ERDMA_CMD_CREATE_CQ_CFG2, DB_PAGE);
    }
}

/* How one of the two queues of CREATE_QP lies in memory */
typedef struct QpMem {
    uint32_t off;
    uint32_t n_pages;
    bool has_table;
    uint64_t pages[ERDMA_QP_INLINE_PAGES];
} QpMem;

static void decode_qp_mem(const uint8_t *raw, size_t len, size_t a_mtt,
                          size_t a_addr, size_t a_pages, QpMem *mem)
{
    uint32_t mtt = ldl_le_p(raw + a_mtt);
    unsigned i;

    /* The field is the offset's upper bits; it is not shifted. */
    mem->off = mtt & R_ERDMA_CMD_CREATE_QP_SQ_MTT_OFFSET_MASK;
    mem->n_pages = FIELD_EX32(mtt, ERDMA_CMD_CREATE_QP_SQ_MTT, CNT);
    mem->has_table = FIELD_EX32(mtt, ERDMA_CMD_CREATE_QP_SQ_MTT, TYPE);
    memset(mem->pages, 0, sizeof(mem->pages));
    mem->pages[0] = ldq_le_p(raw + a_addr);
    if (mem->has_table) {
        return;
    }
    for (i = 1; i < ERDMA_QP_INLINE_PAGES && i < mem->n_pages; i++) {
        mem->pages[i] = ldq_le_p(raw + a_pages + (i - 1) * 8);
    }
    /*
     * An older driver's request ends before the further pages: no pages,
     * which no queue can do with.
     */
    if (mem->n_pages > 1 && len < a_pages + 3 * 8) {
        mem->n_pages = 0;
    }
}

void erdma_decode_create_qp(const uint8_t *raw, size_t len,
                            ErdmaCreateQp *qp, ErdmaCmdQpDb *db)
{
    uint32_t cfg0 = ldl_le_p(raw + A_ERDMA_CMD_CREATE_QP_CFG0);
    uint32_t cfg1 = ldl_le_p(raw + A_ERDMA_CMD_CREATE_QP_CFG1);
    uint32_t sq = ldl_le_p(raw + A_ERDMA_CMD_CREATE_QP_SQ_CFG);
    uint32_t rq = ldl_le_p(raw + A_ERDMA_CMD_CREATE_QP_RQ_CFG);
    uint32_t sq_ps = FIELD_EX32(sq, ERDMA_CMD_CREATE_QP_SQ_CFG, PAGE_SIZE);
    uint32_t rq_ps = FIELD_EX32(rq, ERDMA_CMD_CREATE_QP_RQ_CFG, PAGE_SIZE);
    uint32_t cfg;
    QpMem mem;

    memset(qp, 0, sizeof(*qp));
    memset(db, 0, sizeof(*db));
    qp->qpn = FIELD_EX32(cfg0, ERDMA_CMD_CREATE_QP_CFG0, QPN);
    qp->sq_depth_log2 = FIELD_EX32(cfg0, ERDMA_CMD_CREATE_QP_CFG0, SQ_DEPTH);
    qp->pdn = FIELD_EX32(cfg1, ERDMA_CMD_CREATE_QP_CFG1, PDN);
    qp->rq_depth_log2 = FIELD_EX32(cfg1, ERDMA_CMD_CREATE_QP_CFG1, RQ_DEPTH);
    qp->sq_cqn = FIELD_EX32(sq, ERDMA_CMD_CREATE_QP_SQ_CFG, CQN);
    qp->rq_cqn = FIELD_EX32(rq, ERDMA_CMD_CREATE_QP_RQ_CFG, CQN);
    qp->sq_page_shift = ERDMA_PAGE_SHIFT_MIN + sq_ps;
    qp->rq_page_shift = ERDMA_PAGE_SHIFT_MIN + rq_ps;
    qp->is_kernel = sq_ps == ERDMA_QP_PAGE_SIZE_KERNEL &&
                    rq_ps == ERDMA_QP_PAGE_SIZE_KERNEL;
    qp->sq_dbrec = ldq_le_p(raw + A_ERDMA_CMD_CREATE_QP_SQ_DBREC);
    qp->rq_dbrec = ldq_le_p(raw + A_ERDMA_CMD_CREATE_QP_RQ_DBREC);

    decode_qp_mem(raw, len, A_ERDMA_CMD_CREATE_QP_SQ_MTT,
                  A_ERDMA_CMD_CREATE_QP_SQ_ADDR,
                  A_ERDMA_CMD_CREATE_QP_SQ_PAGES, &mem);
    qp->sq_off = mem.off;
    qp->sq_n_pages = mem.n_pages;
    qp->sq_has_table = mem.has_table;
    memcpy(qp->sq_pages, mem.pages, sizeof(qp->sq_pages));
    decode_qp_mem(raw, len, A_ERDMA_CMD_CREATE_QP_RQ_MTT,
                  A_ERDMA_CMD_CREATE_QP_RQ_ADDR,
                  A_ERDMA_CMD_CREATE_QP_RQ_PAGES, &mem);
    qp->rq_off = mem.off;
    qp->rq_n_pages = mem.n_pages;
    qp->rq_has_table = mem.has_table;
    memcpy(qp->rq_pages, mem.pages, sizeof(qp->rq_pages));

    if (FIELD_EX32(sq, ERDMA_CMD_CREATE_QP_SQ_CFG, DB_CFG_EN) &&
        len >= A_ERDMA_CMD_CREATE_QP_DB_CFG + 4) {
        cfg = ldl_le_p(raw + A_ERDMA_CMD_CREATE_QP_DB_CFG);
        db->has_db_pages = true;
        db->sq_page = FIELD_EX32(cfg, ERDMA_CMD_CREATE_QP_DB_CFG, SQ_PAGE);
        db->rq_page = FIELD_EX32(cfg, ERDMA_CMD_CREATE_QP_DB_CFG, RQ_PAGE);
    }
}

void erdma_decode_modify_qp(const uint8_t *raw, ErdmaModifyQp *m)
{
    uint32_t cfg = ldl_le_p(raw + A_ERDMA_CMD_MODIFY_QP_CFG);

    m->qpn = FIELD_EX32(cfg, ERDMA_CMD_MODIFY_QP_CFG, QPN);
    m->state = FIELD_EX32(cfg, ERDMA_CMD_MODIFY_QP_CFG, STATE);
    m->cc = FIELD_EX32(cfg, ERDMA_CMD_MODIFY_QP_CFG, CC);
    m->cookie = ldl_le_p(raw + A_ERDMA_CMD_MODIFY_QP_COOKIE);
    m->peer_ip = ldl_be_p(raw + A_ERDMA_CMD_MODIFY_QP_DIP);
    m->local_ip = ldl_be_p(raw + A_ERDMA_CMD_MODIFY_QP_SIP);
    m->local_port = lduw_be_p(raw + A_ERDMA_CMD_MODIFY_QP_SPORT);
    m->peer_port = lduw_be_p(raw + A_ERDMA_CMD_MODIFY_QP_DPORT);
    m->send_nxt = ldl_le_p(raw + A_ERDMA_CMD_MODIFY_QP_SEND_NXT);
    m->recv_nxt = ldl_le_p(raw + A_ERDMA_CMD_MODIFY_QP_RECV_NXT);
}

void erdma_decode_reflush(const uint8_t *raw, ErdmaCmdReflush *r)
{
    r->qpn = ldl_le_p(raw + A_ERDMA_CMD_REFLUSH_QPN);
    r->sq_pi = lduw_le_p(raw + A_ERDMA_CMD_REFLUSH_SQ_PI);
    r->rq_pi = lduw_le_p(raw + A_ERDMA_CMD_REFLUSH_RQ_PI);
}

void erdma_decode_reg_mr(const uint8_t *raw, ErdmaRegMr *reg)
{
    uint32_t cfg0 = ldl_le_p(raw + A_ERDMA_CMD_REG_MR_CFG0);
    uint32_t cfg1 = ldl_le_p(raw + A_ERDMA_CMD_REG_MR_CFG1);
    uint32_t cfg2 = ldl_le_p(raw + A_ERDMA_CMD_REG_MR_CFG2);
    uint32_t len = ldl_le_p(raw + A_ERDMA_CMD_REG_MR_LEN);
    uint32_t high;
    unsigned i;

    memset(reg, 0, sizeof(*reg));
    reg->index = FIELD_EX32(cfg0, ERDMA_CMD_REG_MR_CFG0, INDEX);
    reg->key = FIELD_EX32(cfg0, ERDMA_CMD_REG_MR_CFG0, KEY);
    reg->version = FIELD_EX32(cfg0, ERDMA_CMD_REG_MR_CFG0, VERSION);
    reg->is_valid = FIELD_EX32(cfg0, ERDMA_CMD_REG_MR_CFG0, VALID);
    reg->access = FIELD_EX32(cfg1, ERDMA_CMD_REG_MR_CFG1, ACCESS);
    reg->type = FIELD_EX32(cfg1, ERDMA_CMD_REG_MR_CFG1, TYPE);
    reg->pdn = FIELD_EX32(cfg1, ERDMA_CMD_REG_MR_CFG1, PDN);
    reg->start = ldq_le_p(raw + A_ERDMA_CMD_REG_MR_START);
    reg->len = len;
    reg->is_len_cut = reg->version == 0;
    reg->n_pages = FIELD_EX32(cfg2, ERDMA_CMD_REG_MR_CFG2, MTT_CNT);
    reg->level = FIELD_EX32(cfg2, ERDMA_CMD_REG_MR_CFG2, MTT_LEVEL);
    reg->page_shift = FIELD_EX32(cfg2, ERDMA_CMD_REG_MR_CFG2, PAGE_SIZE);
    reg->table_shift = ERDMA_PAGE_SHIFT_MIN;
    if (reg->version == 1) {
        reg->table_shift += FIELD_EX32(cfg2, ERDMA_CMD_REG_MR_CFG2,
                                       MTT_PAGE_SIZE);
        high = ldl_le_p(raw + A_ERDMA_CMD_REG_MR_LEN_H);
        reg->len |= (uint64_t)high << 32;
        high = ldl_le_p(raw + A_ERDMA_CMD_REG_MR_MTT_CNT_H);
        reg->n_pages |= (uint64_t)high
                        << R_ERDMA_CMD_REG_MR_CFG2_MTT_CNT_LENGTH;
    }
    reg->pages[0] = ldq_le_p(raw + A_ERDMA_CMD_REG_MR_PAGES);
    for (i = 1; i < ERDMA_MR_INLINE_PAGES && !reg->level; i++) {
        reg->pages[i] = ldq_le_p(raw + A_ERDMA_CMD_REG_MR_PAGES + i * 8);
    }
}

uint32_t erdma_decode_dereg_mr(const uint8_t *raw)
{
    return FIELD_EX32(ldl_le_p(raw + A_ERDMA_CMD_DEREG_MR_CFG),
                      ERDMA_CMD_DEREG_MR_CFG, INDEX);
}

uint32_t erdma_decode_destroy(const uint8_t *raw)
{
    QEMU_BUILD_BUG_ON((int)A_ERDMA_CMD_DESTROY_CQ_CQN !=
                      (int)A_ERDMA_CMD_DESTROY_QP_QPN);
    return ldl_le_p(raw + A_ERDMA_CMD_DESTROY_CQ_CQN);
}

/* CREATE_QP, MODIFY_QP, REFLUSH and CREATE_CQ have it in the same place. */
uint32_t erdma_decode_cmd_object(const uint8_t *raw)
{
    return FIELD_EX32(ldl_le_p(raw + A_ERDMA_CMD_CREATE_QP_CFG0),
                      ERDMA_CMD_CREATE_QP_CFG0, QPN);
}

bool erdma_decode_conf_device(const uint8_t *raw, unsigned *page_shift)
{
    uint32_t cfg = ldl_le_p(raw + A_ERDMA_CMD_CONF_DEVICE_CFG);

    *page_shift = FIELD_EX32(cfg, ERDMA_CMD_CONF_DEVICE_CFG, PS);
    return FIELD_EX32(cfg, ERDMA_CMD_CONF_DEVICE_CFG, PS_EN);
}

uint32_t erdma_decode_conf_mtu(const uint8_t *raw)
{
    return ldl_le_p(raw + A_ERDMA_CMD_CONF_MTU_MTU);
}

void erdma_decode_get_stats(const uint8_t *raw, uint64_t *addr, uint32_t *len)
{
    *addr = ldq_le_p(raw + A_ERDMA_CMD_GET_STATS_ADDR);
    *len = ldl_le_p(raw + A_ERDMA_CMD_GET_STATS_LEN);
}

void erdma_decode_free_db(const uint8_t *raw, ErdmaExtPages *pages)
{
    pages->r = lduw_le_p(raw + A_ERDMA_CMD_EXT_DB_RDB);
    pages->s = lduw_le_p(raw + A_ERDMA_CMD_EXT_DB_SDB);
    pages->c = lduw_le_p(raw + A_ERDMA_CMD_EXT_DB_CDB);
}

#define DP64(word, reg, field, val) \
    ((word) = deposit64((word), R_##reg##_##field##_SHIFT, \
                        R_##reg##_##field##_LENGTH, (val)))

void erdma_encode_query_device(const ErdmaEngineConfig *cfg, uint64_t *resp0,
                               uint64_t *resp1)
{
    uint8_t flags = (cfg->has_ext_db ? ERDMA_CAP_FLAG_EXTEND_DB : 0) |
                    (cfg->has_mtt_va ? ERDMA_CAP_FLAG_MTT_VA : 0) |
                    (cfg->has_atomics ? ERDMA_CAP_FLAG_ATOMIC : 0);

    *resp0 = 0;
    DP64(*resp0, ERDMA_DEV_CAP0, MAX_MR_SIZE, cfg->max_mr_size_log2);
    DP64(*resp0, ERDMA_DEV_CAP0, MAX_AH, cfg->max_ah_log2);
    DP64(*resp0, ERDMA_DEV_CAP0, MAX_RECV_WR, cfg->max_recv_wr_log2);
    DP64(*resp0, ERDMA_DEV_CAP0, FLAGS, flags);
    DP64(*resp0, ERDMA_DEV_CAP0, MAX_CQE, cfg->max_cqe_log2);
    DP64(*resp0, ERDMA_DEV_CAP0, MAX_GID, cfg->max_gid_log2);
    *resp1 = 0;
    DP64(*resp1, ERDMA_DEV_CAP1, MAX_MW, cfg->max_mw_log2);
    DP64(*resp1, ERDMA_DEV_CAP1, QBLOCK, cfg->qblocks);
    DP64(*resp1, ERDMA_DEV_CAP1, DEFAULT_CC, cfg->default_cc);
    DP64(*resp1, ERDMA_DEV_CAP1, DMA_LOCAL_KEY, cfg->dma_local_key);
}

uint64_t erdma_encode_alloc_db(const ErdmaExtPages *pages)
{
    uint64_t resp = 0;

    DP64(resp, ERDMA_ALLOC_DB_RESP, SDB, pages->s);
    DP64(resp, ERDMA_ALLOC_DB_RESP, CDB, pages->c);
    DP64(resp, ERDMA_ALLOC_DB_RESP, RDB, pages->r);
    return resp;
}

void erdma_encode_stats(uint8_t *raw, const ErdmaEngineStats *es,
                        const ErdmaXportStats *xs)
{
    uint64_t rx_drops = 0;
    unsigned i;

    for (i = 0; i < ERDMA_XPORT_DROP_COUNT; i++) {
        rx_drops += xs->drops[i];
    }
    memset(raw, 0, ERDMA_STATS_SIZE);
    stl_le_p(raw + A_ERDMA_STATS_HDR, ERDMA_STATS_MAGIC);
    stq_le_p(raw + A_ERDMA_STATS_TX_REQS, es->tx_requests);
    stq_le_p(raw + A_ERDMA_STATS_TX_PKTS, xs->tx_packets);
    stq_le_p(raw + A_ERDMA_STATS_TX_BYTES, xs->tx_bytes);
    stq_le_p(raw + A_ERDMA_STATS_RX_PKTS, xs->rx_packets);
    stq_le_p(raw + A_ERDMA_STATS_RX_BYTES, xs->rx_bytes);
    stq_le_p(raw + A_ERDMA_STATS_RX_DISABLE_DROP, rx_drops);
}

void erdma_encode_cmd_cqe(uint8_t *raw, const ErdmaCmdCqe *cqe, bool phase)
{
    uint32_t hdr = 0;

    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, SYNDROME, cqe->status);
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, QTYPE, ERDMA_CQE_QTYPE_CMDQ);
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, OPCODE, cqe->opcode);
    hdr = FIELD_DP32(hdr, ERDMA_CQE_HDR, OWNER, phase);

    memset(raw, 0, ERDMA_CQE_SIZE);
    stl_be_p(raw + A_ERDMA_CMD_CQE_HDR, hdr);
    stl_be_p(raw + A_ERDMA_CMD_CQE_INDEX, cqe->index);
    stl_be_p(raw + A_ERDMA_CMD_CQE_RESP0_L, cqe->resp0);
    stl_be_p(raw + A_ERDMA_CMD_CQE_RESP0_H, cqe->resp0 >> 32);
    stl_be_p(raw + A_ERDMA_CMD_CQE_RESP1_L, cqe->resp1);
    stl_be_p(raw + A_ERDMA_CMD_CQE_RESP1_H, cqe->resp1 >> 32);
}
