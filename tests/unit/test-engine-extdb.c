/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extended doorbell pages: allocation, decoding, isolation */

#include "qemu/osdep.h"
#include "engine-rig.h"

typedef struct Ctx {
    uint16_t s, r, c;
} Ctx;

static uint8_t alloc_db(EngineRig *rig, Ctx *ctx)
{
    ErigCmdCqe cqe;
    ErigReq req;
    uint8_t status;

    erig_req(rig, &req, 1, 8);
    memset(req.raw + 8, 0, 120);
    erig_set32(&req, 8, 7);
    status = erig_cmd(rig, &req, &cqe);
    ctx->s = cqe.resp0;
    ctx->c = cqe.resp0 >> 32;
    ctx->r = cqe.resp0 >> 48;
    return status;
}

static uint8_t free_db(EngineRig *rig, uint16_t s, uint16_t r, uint16_t c)
{
    ErigReq req;

    erig_req(rig, &req, 1, 9);
    erig_set16(&req, 12, r);
    erig_set16(&req, 14, s);
    erig_set16(&req, 18, c);
    return erig_cmd(rig, &req, NULL);
}

/* A user's CQ and QP, which name the pages as the driver does */
static uint8_t create_cq(EngineRig *rig, uint32_t cqn, uint16_t page)
{
    ErigReq req;

    erig_req_create_cq(rig, &req, cqn, 4, 1, erig_alloc(rig, 4096, 4096));
    erig_set32(&req, 20, 1 << 16 | 1 << 11 | 1);
    erig_set32(&req, 36, 0xdead0000 | page);
    return erig_cmd(rig, &req, NULL);
}

static uint8_t create_qp(EngineRig *rig, uint32_t qpn, uint32_t cqn,
                         uint16_t s, uint16_t r)
{
    ErigReq req;

    erig_req_create_qp(rig, &req, qpn, cqn);
    erig_set32(&req, 16, 1u << 25 | cqn);
    erig_set32(&req, 20, cqn);
    erig_set32(&req, 112, (uint32_t)s << 16 | r);
    return erig_cmd(rig, &req, NULL);
}

static void make_user(EngineRig *rig, Ctx *ctx, uint32_t qpn, uint32_t cqn)
{
    g_assert_cmpuint(alloc_db(rig, ctx), ==, 0);
    g_assert_cmpuint(create_cq(rig, cqn, ctx->c), ==, 0);
    g_assert_cmpuint(create_qp(rig, qpn, cqn, ctx->s, ctx->r), ==, 0);
}

static uint64_t sq_db(uint32_t qpn, uint16_t pi)
{
    return (uint64_t)qpn << 32 | pi;
}

/* The half-word between is whatever the buffer had in it. */
static uint64_t rq_db(uint32_t qpn, uint16_t pi)
{
    return (uint64_t)qpn << 32 | 0xc3a50000 | pi;
}

static uint64_t cq_db(uint32_t cqn, uint32_t ci)
{
    return 0x37ull << 56 | (uint64_t)cqn << 32 | 1u << 31 | ci;
}

static uint32_t sq_off(uint32_t qpn)
{
    return qpn % 32 * 128;
}

static uint32_t rq_off(uint32_t qpn)
{
    return qpn % 128 * 32;
}

static uint32_t cq_off(uint32_t cqn)
{
    return cqn % 512 * 8;
}

static bool cq_is_armed(EngineRig *rig, uint32_t cqn)
{
    ErdmaCq *cq = erdma_cq_get(rig->e, cqn);
    bool is_armed;

    erig_run(rig);
    is_armed = cq->arm != ERDMA_CQ_ARM_NONE;
    cq->arm = ERDMA_CQ_ARM_NONE;
    return is_armed;
}

static void test_alloc(void)
{
    EngineRig *rig = erig_ready();
    bool seen[64] = { false };
    Ctx ctx[22];
    unsigned i, j;

    for (i = 0; i < 21; i++) {
        uint16_t pages[3];

        g_assert_cmpuint(alloc_db(rig, &ctx[i]), ==, 0);
        pages[0] = ctx[i].s;
        pages[1] = ctx[i].r;
        pages[2] = ctx[i].c;
        for (j = 0; j < 3; j++) {
            g_assert_cmpuint(pages[j], >=, 0x80);
            g_assert_cmpuint(pages[j], <, 0x80 + 64);
            g_assert_false(seen[pages[j] - 0x80]);
            seen[pages[j] - 0x80] = true;
        }
    }
    /* One page is left, which is not enough. */
    g_assert_cmpuint(alloc_db(rig, &ctx[21]), ==, ERDMA_CMD_ERR_LIMIT);
    g_assert_cmpuint(free_db(rig, ctx[7].s, ctx[7].r, ctx[7].c), ==, 0);
    g_assert_cmpuint(alloc_db(rig, &ctx[7]), ==, 0);
    g_assert_cmpuint(alloc_db(rig, &ctx[21]), ==, ERDMA_CMD_ERR_LIMIT);
    for (i = 0; i < 21; i++) {
        g_assert_cmpuint(free_db(rig, ctx[i].s, ctx[i].r, ctx[i].c), ==, 0);
    }
    g_assert_cmpuint(rig->e->ext_db.n_used, ==, 0);
    erig_free(rig);
}

static void test_free_refused(void)
{
    EngineRig *rig = erig_ready();
    Ctx a, b;

    g_assert_cmpuint(alloc_db(rig, &a), ==, 0);
    g_assert_cmpuint(alloc_db(rig, &b), ==, 0);
    g_assert_cmpuint(free_db(rig, a.s, a.r, b.c), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(free_db(rig, a.s, a.c, a.r), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(free_db(rig, a.r, a.r, a.c), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(free_db(rig, 0, 0, 0), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(free_db(rig, 0xffff, 0xffff, 0xffff), ==,
                     ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(rig->e->ext_db.n_used, ==, 6);
    g_assert_cmpuint(free_db(rig, a.s, a.r, a.c), ==, 0);
    g_assert_cmpuint(free_db(rig, a.s, a.r, a.c), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(rig->e->ext_db.n_used, ==, 3);
    erig_free(rig);
}

/* The driver rings RQs on page C and CQs on page R. */
static void test_crossing(void)
{
    EngineRig *rig = erig_ready();
    ErdmaQp *qp;
    Ctx u;

    make_user(rig, &u, 200, 300);
    qp = erdma_qp_get(rig->e, 200);
    erdma_engine_db_ext(rig->e, u.s, sq_off(200), sq_db(200, 3));
    g_assert_cmpuint(qp->sq_pi, ==, 3);
    erdma_engine_db_ext(rig->e, u.c, rq_off(200), rq_db(200, 5));
    g_assert_cmpuint(qp->rq_pi, ==, 5);
    erdma_engine_db_ext(rig->e, u.r, cq_off(300), cq_db(300, 0));
    g_assert_true(cq_is_armed(rig, 300));
    /* And the other way round, should a driver do as it says */
    erdma_engine_db_ext(rig->e, u.r, rq_off(200), rq_db(200, 6));
    g_assert_cmpuint(qp->rq_pi, ==, 6);
    erdma_engine_db_ext(rig->e, u.c, cq_off(300), cq_db(300, 0));
    g_assert_true(cq_is_armed(rig, 300));
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 0);
    /* No doorbell: an offset that fits neither, a CQ's without arm bit */
    erdma_engine_db_ext(rig->e, u.c, 4, rq_db(200, 7));
    erdma_engine_db_ext(rig->e, u.r, cq_off(300) + 8, cq_db(300, 0));
    erdma_engine_db_ext(rig->e, u.r, cq_off(300), 300ull << 32);
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 3);
    g_assert_cmpuint(qp->rq_pi, ==, 6);
    erig_free(rig);
}

/* Numbers for which both kinds have the same offset: the page decides. */
static void test_ambiguous(void)
{
    EngineRig *rig = erig_ready();
    ErdmaQp *qp;
    Ctx u;

    make_user(rig, &u, 512, 512);
    qp = erdma_qp_get(rig->e, 512);
    erdma_engine_db_ext(rig->e, u.c, 0, rq_db(512, 5));
    g_assert_cmpuint(qp->rq_pi, ==, 5);
    g_assert_false(cq_is_armed(rig, 512));
    erdma_engine_db_ext(rig->e, u.r, 0, cq_db(512, 0));
    g_assert_true(cq_is_armed(rig, 512));
    g_assert_cmpuint(qp->rq_pi, ==, 5);
    /* A CQ's always arms, so this is the RQ's whatever the page says. */
    erdma_engine_db_ext(rig->e, u.r, 0, 512ull << 32 | 6);
    g_assert_cmpuint(qp->rq_pi, ==, 6);
    erig_free(rig);
}

/* Every number, on the pages that the driver uses */
static void test_all_numbers(void)
{
    EngineRig *rig = erig_ready();
    ErdmaDbKind kind;
    uint32_t i, ctx;
    Ctx u;

    g_assert_cmpuint(alloc_db(rig, &u), ==, 0);
    for (i = 1; i < 1 << 18; i++) {
        g_assert_true(erdma_extdb_decode(rig->e, u.c, rq_off(i), rq_db(i, i),
                                         &kind, &ctx));
        g_assert_cmpint(kind, ==, ERDMA_DB_KIND_RQ);
        g_assert_true(erdma_extdb_decode(rig->e, u.r, cq_off(i), cq_db(i, i),
                                         &kind, &ctx));
        g_assert_cmpint(kind, ==, ERDMA_DB_KIND_CQ);
    }
    erig_free(rig);
}

static void test_isolation(void)
{
    EngineRig *rig = erig_ready();
    ErdmaQp *mine, *kernel;
    ErigReq req;
    Ctx a, b, none;

    make_user(rig, &a, 200, 300);
    make_user(rig, &b, 201, 301);
    erig_create_cq(rig, 302, 4, 1);
    erig_req_create_qp(rig, &req, 202, 302);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    mine = erdma_qp_get(rig->e, 200);
    kernel = erdma_qp_get(rig->e, 202);

    /* b rings a's queues, the kernel's, and a rings the kernel's. */
    erdma_engine_db_ext(rig->e, b.s, sq_off(200), sq_db(200, 3));
    erdma_engine_db_ext(rig->e, b.c, rq_off(200), rq_db(200, 3));
    erdma_engine_db_ext(rig->e, b.r, cq_off(300), cq_db(300, 0));
    erdma_engine_db_ext(rig->e, a.s, sq_off(202), sq_db(202, 3));
    erdma_engine_db_ext(rig->e, a.c, rq_off(202), rq_db(202, 3));
    erdma_engine_db_ext(rig->e, a.r, cq_off(302), cq_db(302, 0));
    /* The static space is the kernel's. */
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ, sq_db(200, 3));
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_RQ, rq_db(200, 3));
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ, cq_db(300, 0));
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 9);
    g_assert_cmpuint(mine->sq_pi + mine->rq_pi, ==, 0);
    g_assert_cmpuint(kernel->sq_pi + kernel->rq_pi, ==, 0);
    g_assert_false(cq_is_armed(rig, 300) || cq_is_armed(rig, 302));
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ, sq_db(202, 3));
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_RQ, rq_db(202, 3));
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ, cq_db(302, 0));
    g_assert_cmpuint(kernel->sq_pi, ==, 3);
    g_assert_cmpuint(kernel->rq_pi, ==, 3);
    g_assert_true(cq_is_armed(rig, 302));

    /* Pages that nobody has, before and behind the area */
    erdma_engine_db_ext(rig->e, 0x7f, sq_off(200), sq_db(200, 3));
    erdma_engine_db_ext(rig->e, 0x80 + 63, sq_off(200), sq_db(200, 3));
    erdma_engine_db_ext(rig->e, 0x80 + 64, sq_off(200), sq_db(200, 3));
    erdma_engine_db_ext(rig->e, UINT32_MAX, sq_off(200), sq_db(200, 3));
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 13);

    /* A context that got a's pages does not get its queues. */
    g_assert_cmpuint(free_db(rig, a.s, a.r, a.c), ==, 0);
    erdma_engine_db_ext(rig->e, a.s, sq_off(200), sq_db(200, 3));
    g_assert_cmpuint(alloc_db(rig, &none), ==, 0);
    g_assert_true(none.s == a.s || none.s == a.r || none.s == a.c);
    erdma_engine_db_ext(rig->e, none.s, sq_off(200), sq_db(200, 3));
    g_assert_cmpuint(mine->sq_pi, ==, 0);
    erig_free(rig);
}

static void test_create_refused(void)
{
    EngineRig *rig = erig_ready();
    Ctx a, b;

    g_assert_cmpuint(alloc_db(rig, &a), ==, 0);
    g_assert_cmpuint(alloc_db(rig, &b), ==, 0);
    g_assert_cmpuint(create_cq(rig, 5, 0x61), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(create_cq(rig, 5, 0x80 + 63), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(create_cq(rig, 5, a.c), ==, 0);
    g_assert_cmpuint(create_qp(rig, 6, 5, a.s, b.r), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(create_qp(rig, 6, 5, 0, 0), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(create_qp(rig, 6, 5, a.s, a.r), ==, 0);
    erig_free(rig);
}

static uint8_t conf_device(EngineRig *rig, uint32_t word)
{
    ErigReq req;

    erig_req(rig, &req, 1, 5);
    erig_set32(&req, 8, word);
    return erig_cmd(rig, &req, NULL);
}

/* 64 KiB guest pages: numbers are scaled, offsets span 16 of our pages. */
static void test_big_pages(void)
{
    EngineRig *rig = erig_new();
    Ctx u, v;

    rig->cfg.ext_db_first = 0x7a;
    rig->cfg.n_ext_db = 6 * 16 + 10;
    erig_start(rig);
    g_assert_true(erig_init(rig));
    erig_create_eq(rig, 1, 4);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 16), ==, 0);
    g_assert_cmpuint(alloc_db(rig, &u), ==, 0);
    /* Whole, aligned pages only: 0x80 is the first, six of them fit. */
    g_assert_cmpuint(u.s, >=, 8);
    g_assert_cmpuint(u.s, <, 8 + 6);
    g_assert_cmpuint(create_cq(rig, 300, u.c), ==, 0);
    g_assert_cmpuint(create_qp(rig, 200, 300, u.s, u.r), ==, 0);
    erdma_engine_db_ext(rig->e, u.s * 16, sq_off(200), sq_db(200, 3));
    g_assert_cmpuint(erdma_qp_get(rig->e, 200)->sq_pi, ==, 3);
    erdma_engine_db_ext(rig->e, u.c * 16, rq_off(200), rq_db(200, 4));
    g_assert_cmpuint(erdma_qp_get(rig->e, 200)->rq_pi, ==, 4);
    erdma_engine_db_ext(rig->e, u.c * 16 + 1, rq_off(200), rq_db(200, 5));
    g_assert_cmpuint(erdma_qp_get(rig->e, 200)->rq_pi, ==, 4);
    g_assert_cmpuint(alloc_db(rig, &v), ==, 0);
    g_assert_cmpuint(alloc_db(rig, &v), ==, ERDMA_CMD_ERR_LIMIT);
    erig_free(rig);
}

static void test_conf_device(void)
{
    EngineRig *rig = erig_ready();
    Ctx u;

    g_assert_cmpuint(conf_device(rig, 1u << 31 | 12), ==, 0);
    /* Not valid: nothing happens. */
    g_assert_cmpuint(conf_device(rig, 13), ==, 0);
    g_assert_cmpuint(rig->e->guest_page_shift, ==, 12);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 11), ==, ERDMA_CMD_ERR_SIZE);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 0), ==, ERDMA_CMD_ERR_SIZE);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 31), ==, ERDMA_CMD_ERR_SIZE);
    /* 64 pages of ours are no three of 128 KiB. */
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 17), ==, ERDMA_CMD_ERR_SIZE);
    g_assert_cmpuint(rig->e->guest_page_shift, ==, 12);
    g_assert_cmpuint(alloc_db(rig, &u), ==, 0);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 13), ==, ERDMA_CMD_ERR_BUSY);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 12), ==, 0);
    g_assert_cmpuint(free_db(rig, u.s, u.r, u.c), ==, 0);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 13), ==, 0);
    g_assert_cmpuint(rig->e->guest_page_shift, ==, 13);
    /* A new driver starts over. */
    erdma_engine_reset(rig->e);
    g_assert_cmpuint(rig->e->guest_page_shift, ==, 12);
    erig_free(rig);
}

static void test_without(void)
{
    EngineRig *rig = erig_new();
    Ctx u;

    rig->cfg.has_ext_db = false;
    erig_start(rig);
    g_assert_true(erig_init(rig));
    erig_create_eq(rig, 1, 4);
    g_assert_cmpuint(alloc_db(rig, &u), ==, ERDMA_CMD_ERR_OPCODE);
    g_assert_cmpuint(free_db(rig, 0, 0, 0), ==, ERDMA_CMD_ERR_OPCODE);
    g_assert_cmpuint(conf_device(rig, 1u << 31 | 16), ==, 0);
    erdma_engine_db_ext(rig->e, 0x80, 0, sq_db(1, 1));
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 1);
    /* User queues are in the static space then, whatever they name. */
    g_assert_cmpuint(create_cq(rig, 5, 0x99), ==, 0);
    g_assert_cmpuint(create_qp(rig, 6, 5, 0x99, 0x9a), ==, 0);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ, sq_db(6, 3));
    g_assert_cmpuint(erdma_qp_get(rig->e, 6)->sq_pi, ==, 3);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/extdb/alloc", test_alloc);
    g_test_add_func("/engine/extdb/free-refused", test_free_refused);
    g_test_add_func("/engine/extdb/crossing", test_crossing);
    g_test_add_func("/engine/extdb/ambiguous", test_ambiguous);
    g_test_add_func("/engine/extdb/all-numbers", test_all_numbers);
    g_test_add_func("/engine/extdb/isolation", test_isolation);
    g_test_add_func("/engine/extdb/create-refused", test_create_refused);
    g_test_add_func("/engine/extdb/big-pages", test_big_pages);
    g_test_add_func("/engine/extdb/conf-device", test_conf_device);
    g_test_add_func("/engine/extdb/without", test_without);
    return g_test_run();
}
