/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command handlers: what each accepts, and how each refuses.
 *
 * Requests come from the rig with garbage in every word that the driver does
 * not write; accepting that is part of each test.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "engine-rig.h"
#include "fake-xport.h"

#define REFUSED(rig, req, status, change) do { \
        ErigReq bad_ = *(req); \
        ErigReq *r = &bad_; \
        change; \
        g_assert_cmpuint(erig_cmd(rig, r, NULL), ==, (status)); \
    } while (0)

static ErdmaEngineCounts counts(EngineRig *rig)
{
    ErdmaEngineCounts c;

    erdma_engine_counts(rig->e, &c);
    return c;
}

static void test_query(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req;

    erig_req(rig, &req, 0, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, &cqe), ==, 0);
    g_assert_cmphex(cqe.resp0, ==, 0x14 * (1ull << 40) + 0xa80f0024);
    g_assert_cmphex(cqe.resp1, ==, 0xffffff0010010000);
    erig_req(rig, &req, 1, 2);
    g_assert_cmpuint(erig_cmd(rig, &req, &cqe), ==, 0);
    g_assert_cmphex(cqe.resp0, ==, 0x20022);
    g_assert_cmphex(cqe.resp1, ==, 0);
    erig_free(rig);
}

static void test_conf_mtu(void)
{
    static const uint32_t cases[][2] = {
        { 1500, 1500 }, { 8500, 8500 }, { 0, 256 }, { 255, 256 },
        { 65536, 65535 }, { UINT32_MAX, 65535 },
    };
    EngineRig *rig = erig_ready();
    ErigReq req;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        erig_req(rig, &req, 1, 3);
        erig_set32(&req, 8, cases[i][0]);
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
        g_assert_cmpuint(fake_xport.mtu, ==, cases[i][1]);
    }
    erig_free(rig);
}

static void test_get_stats(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_alloc(rig, 256, 256);
    ErigReq req;
    ErigTrace *t;

    fake_xport.stats.tx_packets = 77;
    erig_req(rig, &req, 1, 4);
    erig_set64(&req, 16, addr);
    erig_set32(&req, 24, 256);
    erig_forget_trace(rig);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmphex(erig_peek32(rig, addr) & 0xffff, ==, 0x5566);
    g_assert_cmpuint(erig_peek64(rig, addr + 24), ==, 77);
    /* The counters are there before the completion is. */
    t = (ErigTrace *)rig->trace->data;
    g_assert_cmpuint(rig->trace->len, ==, 4 + 1 + 2);
    g_assert_cmphex(t[4].addr, ==, addr);
    g_assert_cmpuint(t[4].len, <=, 256);

    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 24, 103));
    REFUSED(rig, &req, ERDMA_CMD_ERR_DMA, erig_set64(r, 16, 0x1000));
    erig_free(rig);
}

static void test_create_eq(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    erig_req_create_eq(rig, &req, 4);
    REFUSED(rig, &req, ERDMA_CMD_ERR_FORMAT, erig_set8(r, 19, 0));
    REFUSED(rig, &req, ERDMA_CMD_ERR_FORMAT, erig_set8(r, 19, 2));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 0));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 8));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 255));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 16, 8));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 16, 255));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set8(r, 18, 16));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set8(r, 18, 255));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set64(r, 8, ERIG_BASE + 8));
    REFUSED(rig, &req, ERDMA_CMD_ERR_BUSY, erig_set8(r, 17, 3));
    g_assert_cmpuint(counts(rig).n_eqs, ==, 3);
    erig_set8(&req, 18, 15);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(counts(rig).n_eqs, ==, 4);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_BUSY);
    erig_free(rig);
}

static void test_destroy_eq(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    erig_req(rig, &req, 1, 1);
    erig_set8(&req, 17, 3);
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 4));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 0));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 32));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set8(r, 17, 255));
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(counts(rig).n_eqs, ==, 2);
    erig_free(rig);
}

static void test_create_cq(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_alloc(rig, 4096, 4096);
    ErigReq req;

    erig_req_create_cq(rig, &req, 5, 7, 1, addr);
    /* CQN 0 and beyond twice the QPs; EQNs without an EQ */
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX,
            erig_set32(r, 8, 7 << 24 | 13 << 20));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX,
            erig_set32(r, 8, 7 << 24 | 13 << 20 | 2048));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX,
            erig_set32(r, 8, 7 << 24 | 13 << 20 | 0xfffff));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set32(r, 20, 1 << 16));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set32(r, 20, 1 << 16 | 4));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set32(r, 20, 1 << 16 | 32));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX,
            erig_set32(r, 20, 1 << 16 | 1023));
    /* Deeper than advertised, or absurdly so */
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 8, 21u << 24 | 13 << 20 | 5));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 8, 255u << 24 | 13 << 20 | 5));
    /* Memory that does not hold the ring */
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 20, 0 << 16 | 1));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 8, 8 << 24 | 0 << 20 | 5));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 8, 7 << 24 | 0 << 20 | 5); erig_set32(r, 32, 32));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 32, 0xffffffe0));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 32, 16));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 8, 20u << 24 | 0 << 20 | 5);
            erig_set32(r, 20, 8191u << 16 | 1 << 15 | 1));
    g_assert_cmpuint(counts(rig).n_cqs, ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_BUSY);
    g_assert_cmpuint(counts(rig).n_cqs, ==, 1);
    /* The highest number there is */
    erig_set32(&req, 8, 7 << 24 | 13 << 20 | 2047);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    /* The depth limit is the configured one. */
    rig->e->cfg.max_cqe_log2 = 8;
    erig_set32(&req, 8, 9 << 24 | 13 << 20 | 6);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_SIZE);
    erig_free(rig);
}

static void post(EngineRig *rig, uint32_t cqn)
{
    ErdmaCqe cqe = { .opcode = ERDMA_OP_SEND, .qpn = 0x123 };

    erdma_cq_post(rig->e, cqn, &cqe);
}

/* One page is direct, also when Linux 6.1 sets the level bit. */
static void test_create_cq_one_page(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;
    unsigned level;

    for (level = 0; level < 2; level++) {
        uint64_t addr = erig_alloc(rig, 8192, 8192);

        rig->wqebbs = level ? 2 : 4;
        erig_req_create_cq(rig, &req, 5 + level, 6, 1, addr);
        erig_set32(&req, 8, 6 << 24 | 1 << 20 | (5 + level));
        erig_set32(&req, 20, 1 << 16 | level << 15 | 1);
        erig_set32(&req, 32, 4096 + 64);
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
        post(rig, 5 + level);
        g_assert_cmphex(erig_peek32_be(rig, addr + 4096 + 64), ==,
                        0x80000000 | ERDMA_OP_SEND << 16);
        g_assert_cmphex(erig_peek32_be(rig, addr + 4096 + 72), ==, 0x123);
    }
    erig_free(rig);
}

static void test_create_cq_table(void)
{
    EngineRig *rig = erig_ready();
    uint64_t table = erig_alloc(rig, 24, 8);
    uint64_t pages[3];
    ErigReq req;
    unsigned i;

    for (i = 0; i < 3; i++) {
        pages[2 - i] = erig_alloc(rig, 8192, 4096);
        erig_poke64(rig, table + (2 - i) * 8, pages[2 - i]);
    }
    erig_req_create_cq(rig, &req, 5, 8, 1, table);
    erig_set32(&req, 8, 8 << 24 | 0 << 20 | 5);
    erig_set32(&req, 20, 3 << 16 | 1 << 15 | 1);
    erig_set32(&req, 32, 4096 - 32);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    for (i = 0; i < 256; i++) {
        post(rig, 5);
    }
    g_assert_cmphex(erig_peek32_be(rig, pages[0] + 4064) >> 31, ==, 1);
    g_assert_cmphex(erig_peek32_be(rig, pages[1]) >> 31, ==, 1);
    g_assert_cmphex(erig_peek32_be(rig, pages[1] + 4064) >> 31, ==, 1);
    g_assert_cmphex(erig_peek32_be(rig, pages[2] + 4032) >> 31, ==, 1);
    g_assert_cmphex(erig_peek32(rig, pages[2] + 4064), ==, 0);
    erig_free(rig);
}

static void test_destroy_cq(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, 5, 4, 1);
    g_assert_cmpuint(erig_destroy_cq(rig, 6), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(erig_destroy_cq(rig, 0), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(erig_destroy_cq(rig, UINT32_MAX), ==,
                     ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(erig_destroy_cq(rig, 5), ==, 0);
    g_assert_cmpuint(counts(rig).n_cqs, ==, 0);
    erig_free(rig);
}

static void test_qp(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req, op;

    erig_create_cq(rig, 5, 4, 1);
    erig_req_create_qp(rig, &req, 7, 5);
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set32(r, 8, 6 << 20 | 1024));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set32(r, 16, 8u << 28 | 6));
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX, erig_set32(r, 20, 8u << 28 | 6));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 8, 16 << 20 | 7));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 12, 16 << 20 | 5));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 12, 4095u << 20));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 40, 5 << 1));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE, erig_set32(r, 44, 0));
    g_assert_cmpuint(counts(rig).n_qps, ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, &cqe), ==, 0);
    /* The cookie names the QP. */
    g_assert_cmphex(cqe.resp0 & 0xfffff, ==, 7);
    g_assert_cmphex(cqe.resp0 >> 32, ==, 0);
    g_assert_cmphex(erdma_qp_get(rig->e, 7)->cookie, ==, cqe.resp0);
    g_assert_true(erdma_qp_get(rig->e, 7)->is_kernel);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_BUSY);

    erig_req(rig, &op, 0, 3);
    erig_set32(&op, 8, 2u << 24 | 1 << 20 | 7);
    erig_set32(&op, 12, 0x00300009);
    erig_set32_be(&op, 16, 0x0a000002);
    erig_set32_be(&op, 20, 0x0a000001);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), ==, 0);
    g_assert_cmpuint(fake_xport.n_conns, ==, 1);
    g_assert_cmphex(fake_xport.last_open.peer_cookie, ==, 0x00300009);
    g_assert_cmphex(fake_xport.last_open.peer_ip, ==, 0x0a000002);
    g_assert_cmphex(fake_xport.last_open.local_ip, ==, 0x0a000001);
    erig_set32(&op, 8, 2u << 24 | 8);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), !=, 0);

    /* REFLUSH of a QP in RTS does nothing, and succeeds. */
    erig_req(rig, &op, 0, 6);
    erig_set32(&op, 8, 7);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), ==, 0);
    erig_set32(&op, 8, 8);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), !=, 0);

    erig_req(rig, &op, 0, 2);
    erig_set32(&op, 8, 8);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), ==, ERDMA_CMD_ERR_INDEX);
    erig_set32(&op, 8, 7);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &op, NULL), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(fake_xport.n_conns, ==, 0);
    erig_free(rig);
}

static void modify_to_rts(EngineRig *rig, ErigReq *op, uint32_t qpn)
{
    erig_req(rig, op, 0, 3);
    erig_set32(op, 8, 2u << 24 | 1 << 20 | qpn);
    erig_set32(op, 12, 0x00300009);
    erig_set32_be(op, 16, 0x0a000002);
    erig_set32_be(op, 20, 0x0a000001);
}

/*
 * What ends a connection frees all that the peer has sent ahead: one of them
 * in a run.  What begins one does not cost much.
 */
static void test_modify_cost(void)
{
    EngineRig *rig = erig_ready();
    unsigned n = 0, i;
    ErigCmdCqe cqe;
    ErigReq req;

    erig_create_cq(rig, 5, 4, 1);
    for (i = 0; i < 8; i++) {
        erig_req_create_qp(rig, &req, 7 + i, 5);
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    }
    for (i = 0; i < 16; i++) {
        modify_to_rts(rig, &req, 7 + i % 8);
        erig_post(rig, &req);
    }
    erig_ring_cmdq(rig);
    erdma_engine_run(rig->e, rig->now);
    while (erig_poll_cmd(rig, &cqe)) {
        g_assert_cmpuint(cqe.status, ==, 0);
        n++;
    }
    g_assert_cmpuint(n, ==, 9);
    for (i = n; i < 16; i++) {
        erdma_engine_run(rig->e, rig->now);
        g_assert_true(erig_poll_cmd(rig, &cqe));
        g_assert_false(erig_poll_cmd(rig, &cqe));
    }
    g_assert_cmpuint(fake_xport.n_conns, ==, 8);
    erig_free(rig);
}

/* Linux 6.1: 64 bytes; what follows in the ring is an older command. */
static void test_short_create_qp(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    rig->wqebbs = 2;
    erig_create_cq(rig, 5, 4, 1);
    erig_req_create_qp(rig, &req, 7, 5);
    /* A table, even for one page; the doorbell bit is not defined. */
    erig_set32(&req, 40, 1 << 1 | 1);
    erig_set32(&req, 44, 1 << 1 | 1);
    erig_set32(&req, 16, 0u << 28 | 1u << 25 | 5);
    erig_set32(&req, 20, 0u << 28 | 5);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(erdma_qp_get(rig->e, 7)->db_ctx, ==, 0);
    g_assert_false(erdma_qp_get(rig->e, 7)->is_kernel);
    /* Inline pages 2 to 4 cannot be in there. */
    erig_set32(&req, 8, 6u << 20 | 8);
    erig_set32(&req, 40, 2 << 1);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_SIZE);
    rig->wqebbs = 4;
    erig_set32(&req, 16, 5);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_free(rig);
}

static void test_reg_mr(void)
{
    EngineRig *rig = erig_ready();
    uint64_t pages[4] = { 0 };
    ErdmaMrUse use = { .key = 9 << 8 | 0x5a, .pdn = ERIG_PD,
                       .access = ERDMA_MR_ACC_LR };
    ErigReq req;
    uint8_t raw[4];

    pages[0] = erig_alloc(rig, 4096, 4096);
    erig_poke64(rig, pages[0] + 8, 0x1122334455667788);
    erig_req_reg_mr(rig, &req, 9, 0x5000, 4096, 1, pages);
    REFUSED(rig, &req, ERDMA_CMD_ERR_INDEX,
            erig_set32(r, 8, 1u << 31 | 2048));
    REFUSED(rig, &req, ERDMA_CMD_ERR_FORMAT,
            erig_set32(r, 8, 1u << 31 | 3 << 28 | 9));
    REFUSED(rig, &req, ERDMA_CMD_ERR_FORMAT,
            erig_set32(r, 12, 3 << 6 | ERIG_PD << 12));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 28, 11u << 27 | 1));
    REFUSED(rig, &req, ERDMA_CMD_ERR_SIZE,
            erig_set32(r, 28, 12u << 27 | 2));
    g_assert_cmpuint(counts(rig).n_mrs, ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_BUSY);
    g_assert_cmpint(erdma_mr_read(rig->e, &use, 0x5008, raw, 4), ==,
                    ERDMA_MR_OK);
    g_assert_cmphex(ldl_le_p(raw), ==, 0x55667788);

    erig_req(rig, &req, 0, 9);
    erig_set32(&req, 8, 10);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_INDEX);
    /* The key byte may differ, bits above it are not looked at. */
    erig_set32(&req, 8, 0xf0100000 | 9);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpint(erdma_mr_read(rig->e, &use, 0x5008, raw, 4), ==,
                    ERDMA_MR_ERR_KEY);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/cmd/query", test_query);
    g_test_add_func("/engine/cmd/conf-mtu", test_conf_mtu);
    g_test_add_func("/engine/cmd/get-stats", test_get_stats);
    g_test_add_func("/engine/cmd/create-eq", test_create_eq);
    g_test_add_func("/engine/cmd/destroy-eq", test_destroy_eq);
    g_test_add_func("/engine/cmd/create-cq", test_create_cq);
    g_test_add_func("/engine/cmd/create-cq-one-page",
                    test_create_cq_one_page);
    g_test_add_func("/engine/cmd/create-cq-table", test_create_cq_table);
    g_test_add_func("/engine/cmd/destroy-cq", test_destroy_cq);
    g_test_add_func("/engine/cmd/qp", test_qp);
    g_test_add_func("/engine/cmd/modify-cost", test_modify_cost);
    g_test_add_func("/engine/cmd/short-create-qp", test_short_create_qp);
    g_test_add_func("/engine/cmd/reg-mr", test_reg_mr);
    return g_test_run();
}
