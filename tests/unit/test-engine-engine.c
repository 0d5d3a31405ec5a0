/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine as a whole: life cycle, reset, doorbells, the run loop */

#include "qemu/osdep.h"
#include "engine-rig.h"
#include "fake-xport.h"

static ErdmaEngineCounts counts(EngineRig *rig)
{
    ErdmaEngineCounts c;

    erdma_engine_counts(rig->e, &c);
    return c;
}

static void expect_empty(EngineRig *rig)
{
    ErdmaEngineCounts c = counts(rig);

    g_assert_cmpuint(c.n_eqs + c.n_cqs + c.n_qps + c.n_mrs + c.n_ext_db, ==,
                     0);
    g_assert_cmpuint(fake_xport.n_conns, ==, 0);
}

/* Some of everything, with work waiting everywhere */
static void fill(EngineRig *rig)
{
    uint64_t page = erig_alloc(rig, 4096, 4096);
    ErigReq req;
    unsigned i;

    erig_create_cq(rig, 5, 4, 1);
    erig_req_create_qp(rig, &req, 7, 5);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_req_reg_mr(rig, &req, 9, 0, 4096, 1, &page);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_req(rig, &req, 1, 8);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_req(rig, &req, 0, 3);
    erig_set32(&req, 8, 2u << 24 | 7);
    erig_set32(&req, 12, 0x12300007);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(fake_xport.n_conns, ==, 1);

    for (i = 0; i < 200; i++) {
        erdma_aeq_post(rig->e, ERDMA_AE_TYPE_OTHER, i);
    }
    erig_arm_cq(rig, 5, 0, false);
    erig_arm_cmdq(rig);
    erig_ring_ceq(rig, 2);
    erdma_engine_db_aeq(rig->e, 1u << 31 | 10);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ, 7ull << 32 | 4);
    erig_req(rig, &req, 1, 2);
    erig_post(rig, &req);
    erig_ring_cmdq(rig);
}

static void test_before_init(void)
{
    EngineRig *rig = erig_new();
    unsigned kind;

    erig_start(rig);
    g_assert_false(erdma_engine_is_ready(rig->e));
    erdma_engine_db_cmdq_sq(rig->e, 4);
    erdma_engine_db_cmdq_cq(rig->e, 1u << 31);
    erdma_engine_db_cmdq_eq(rig->e, 1u << 31);
    erdma_engine_db_aeq(rig->e, 1u << 31);
    erdma_engine_db_ceq(rig->e, 31, 1u << 31);
    for (kind = 0; kind < 3; kind++) {
        erdma_engine_db_queue(rig->e, kind, 1ull << 32 | 1);
    }
    erdma_engine_db_ext(rig->e, 0x80, 0, 1ull << 32 | 1);
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 9);
    erdma_aeq_post(rig->e, ERDMA_AE_TYPE_OTHER, 1);
    g_assert_cmpuint(erdma_engine_run(rig->e, rig->now), ==,
                     ERDMA_XPORT_NEVER);
    /* Vector 0's handler would follow a null pointer. */
    g_assert_cmpuint(rig->n_notify[0], ==, 0);
    g_assert_cmpuint(rig->n_reads + rig->n_writes + rig->n_kicks, ==, 0);
    erig_free(rig);
}

static void test_init_refused(void)
{
    EngineRig *rig = erig_new();
    ErdmaEngineInit good, bad;

    erig_start(rig);
    g_assert_true(erig_init(rig));
    good = rig->init;

#define BAD(field, val) do { \
        bad = good; \
        bad.field = (val); \
        rig->n_guest_errors = 0; \
        g_assert_false(erdma_engine_init(rig->e, &bad)); \
        g_assert_cmpuint(rig->n_guest_errors, ==, 1); \
        g_assert_false(erdma_engine_is_ready(rig->e)); \
    } while (0)

    BAD(cmdq_depth, 0);
    BAD(cmdq_depth, 500);
    BAD(cmdq_depth, 65536);
    BAD(cmdq_depth, 1u << 31);
    BAD(cmdq_eq_depth, 0);
    BAD(cmdq_eq_depth, 127);
    BAD(cmdq_eq_depth, UINT32_MAX);
    BAD(aeq_depth, 0);
    BAD(aeq_depth, 4095);
    BAD(cmdq_sq_addr, good.cmdq_sq_addr + 16);
    BAD(cmdq_cq_addr, good.cmdq_cq_addr + 16);
    BAD(cmdq_eq_addr, good.cmdq_eq_addr + 8);
    BAD(aeq_addr, good.aeq_addr + 8);
    good.aeq_depth = 4096;
    good.cmdq_depth = 256;
    g_assert_true(erdma_engine_init(rig->e, &good));
    g_assert_true(erdma_engine_is_ready(rig->e));
    erig_free(rig);
}

static void test_reset(void)
{
    EngineRig *rig = erig_ready();
    uint64_t lo, hi;
    ErigReq req;

    fill(rig);
    erdma_engine_reset(rig->e);
    g_assert_false(erdma_engine_is_ready(rig->e));
    expect_empty(rig);
    /* The driver frees all memory without another look at the device. */
    erig_forget_trace(rig);
    rig->hole = ERIG_BASE;
    rig->hole_len = ERIG_SIZE;
    erig_run(rig);
    g_assert_cmpuint(rig->e->stats.dma_errors, ==, 0);
    g_assert_cmpuint(rig->n_notify[0] + rig->n_notify[1], ==, 0);
    g_assert_cmpuint(rig->next, ==, ERDMA_XPORT_NEVER);
    rig->hole_len = 0;
    /* And starts over, with everything at zero. */
    g_assert_true(erig_init(rig));
    erig_create_eq(rig, 1, 6);
    erig_create_cq(rig, 5, 4, 1);
    erig_req(rig, &req, 1, 2);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(rig->n_notify[0], ==, 0);
    /* Events that waited for room went with the rest. */
    erdma_aeq_post(rig->e, ERDMA_AE_TYPE_OTHER, 9999);
    g_assert_true(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    g_assert_cmpuint(lo >> 32, ==, 9999);
    erdma_engine_db_aeq(rig->e, 1u << 31 | 1);
    erig_run(rig);
    g_assert_false(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    erig_free(rig);
}

/* A guest that was rebooted hard writes init without a reset. */
/*
 * The wire had no room and the shell, when there was some again, had to reset
 * first: what comes after the reset must not wait for ever.
 */
static void test_reset_unblocks(void)
{
    EngineRig *rig = erig_ready();
    unsigned n;

    fill(rig);
    n = fake_xport.n_unblocks;
    erdma_engine_reset(rig->e);
    g_assert_cmpuint(fake_xport.n_unblocks, ==, n + 1);
    erig_free(rig);
}

static void test_init_twice(void)
{
    EngineRig *rig = erig_ready();

    fill(rig);
    g_assert_true(erig_init(rig));
    expect_empty(rig);
    erig_create_eq(rig, 1, 6);
    g_assert_cmpuint(counts(rig).n_eqs, ==, 1);
    g_assert_cmpuint(rig->cmd_ci, ==, 1);
    erig_free(rig);
}

static void test_free_with_work(void)
{
    EngineRig *rig = erig_ready();

    fill(rig);
    erig_free(rig);
    g_assert_cmpuint(fake_xport.n_alive, ==, 0);
    g_assert_cmpuint(fake_xport.n_conns, ==, 0);
}

/* However many doorbells ring, the shell is told once per run. */
static void test_kick(void)
{
    EngineRig *rig = erig_ready();
    ErdmaDatagram dg = { 0 };
    unsigned n_unblocks;

    erig_create_cq(rig, 5, 4, 1);
    erig_forget_trace(rig);
    erig_arm_cq(rig, 5, 0, false);
    erig_arm_cq(rig, 5, 0, false);
    erig_ring_ceq(rig, 1);
    erig_arm_cmdq(rig);
    erdma_engine_input(rig->e, &dg, rig->now);
    n_unblocks = fake_xport.n_unblocks;
    erdma_engine_unblock(rig->e);
    g_assert_cmpuint(rig->n_kicks, ==, 1);
    /* Latched only: nothing was done. */
    g_assert_cmpuint(rig->n_reads + rig->n_writes, ==, 0);
    erig_run(rig);
    g_assert_cmpuint(rig->n_runs, ==, 1);
    g_assert_cmpuint(rig->n_kicks, ==, 1);
    erig_arm_cq(rig, 5, 0, false);
    g_assert_cmpuint(rig->n_kicks, ==, 2);
    g_assert_cmpuint(fake_xport.n_inputs, ==, 1);
    g_assert_cmpuint(fake_xport.n_unblocks, ==, n_unblocks + 1);
    /* A reset takes the promise back with the work. */
    erdma_engine_reset(rig->e);
    g_assert_true(erig_init(rig));
    erig_arm_cmdq(rig);
    g_assert_cmpuint(rig->n_kicks, ==, 3);
    erig_free(rig);
}

static void test_idle(void)
{
    EngineRig *rig = erig_ready();

    fake_xport.poll_result = 4711;
    rig->now = 4000;
    g_assert_cmpuint(erdma_engine_run(rig->e, 4000), ==, 4711);
    g_assert_cmpuint(rig->n_reads + rig->n_writes + rig->n_kicks, ==, 0);
    g_assert_cmpuint(fake_xport.n_polls, >, 0);
    g_assert_cmpuint(fake_xport.max_packets, >, 0);
    erig_free(rig);
}

/* A run is bounded, and says when it left something. */
static void test_budget(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req;
    unsigned i, n = 0;

    for (i = 0; i < 128; i++) {
        erig_req(rig, &req, 1, 2);
        erig_post(rig, &req);
    }
    erig_ring_cmdq(rig);
    g_assert_cmpuint(erdma_engine_run(rig->e, rig->now), ==, rig->now);
    while (erig_poll_cmd(rig, &cqe)) {
        n++;
    }
    g_assert_cmpuint(n, >, 0);
    g_assert_cmpuint(n, <, 128);
    erig_run(rig);
    while (erig_poll_cmd(rig, &cqe)) {
        n++;
    }
    g_assert_cmpuint(n, ==, 128);

    for (i = 1; i <= 1000; i++) {
        erig_create_cq(rig, i, 0, 1);
    }
    for (i = 1; i <= 1000; i++) {
        erig_arm_cq(rig, i, 0, false);
    }
    g_assert_cmpuint(erdma_engine_run(rig->e, rig->now), ==, rig->now);
    g_assert_cmpint(erdma_cq_get(rig->e, 1)->arm, ==, ERDMA_CQ_ARM_ANY);
    g_assert_cmpint(erdma_cq_get(rig->e, 1000)->arm, ==, ERDMA_CQ_ARM_NONE);
    erig_run(rig);
    g_assert_cmpint(erdma_cq_get(rig->e, 1000)->arm, ==, ERDMA_CQ_ARM_ANY);
    erig_free(rig);
}

/* Guest memory behind which our own registers are */
static void poke_own_bar(EngineRig *rig)
{
    erdma_engine_db_cmdq_sq(rig->e, 0x100);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ, 5ull << 32 | 1u << 31);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ, 7ull << 32 | 3);
    erdma_engine_reset(rig->e);
    g_assert_false(erdma_engine_init(rig->e, &rig->init));
}

static void test_own_dma(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    erig_create_cq(rig, 5, 4, 1);
    rig->on_dma = poke_own_bar;
    erig_req(rig, &req, 1, 2);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    rig->on_dma = NULL;
    g_assert_true(erdma_engine_is_ready(rig->e));
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 3 * (4 + 2));
    g_assert_cmpint(erdma_cq_get(rig->e, 5)->arm, ==, ERDMA_CQ_ARM_NONE);
    erig_free(rig);
}

/* CONF_MTU holds until the next driver; the wire's own comes back then. */
static void test_mtu(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    g_assert_cmpuint(fake_xport.mtu, ==, 1500);
    erdma_engine_set_mtu(rig->e, 4000);
    g_assert_cmpuint(fake_xport.mtu, ==, 4000);
    erig_req(rig, &req, 1, 3);
    erig_set32(&req, 8, 1000);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_cmpuint(fake_xport.mtu, ==, 1000);
    erdma_engine_reset(rig->e);
    g_assert_cmpuint(fake_xport.mtu, ==, 4000);
    erig_free(rig);
}

/* The incarnation goes on through a reset: old packets find nobody. */
static void test_cookie_after_reset(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe a, b;
    ErigReq req;

    erig_create_cq(rig, 5, 4, 1);
    erig_req_create_qp(rig, &req, 7, 5);
    g_assert_cmpuint(erig_cmd(rig, &req, &a), ==, 0);
    g_assert_true(erig_init(rig));
    erig_create_eq(rig, 1, 4);
    erig_create_cq(rig, 5, 4, 1);
    g_assert_cmpuint(erig_cmd(rig, &req, &b), ==, 0);
    g_assert_cmphex(a.resp0, !=, b.resp0);
    g_assert_cmphex(a.resp0 & 0xfffff, ==, b.resp0 & 0xfffff);
    erig_free(rig);
}

/* Nothing is shared between two of them. */
static void test_two(void)
{
    EngineRig *a = erig_ready();
    EngineRig *b = erig_ready();

    erig_create_cq(a, 5, 4, 1);
    g_assert_cmpuint(counts(b).n_cqs, ==, 0);
    erdma_engine_reset(a->e);
    g_assert_true(erdma_engine_is_ready(b->e));
    erig_create_cq(b, 5, 4, 1);
    erig_free(a);
    g_assert_cmpuint(counts(b).n_cqs, ==, 1);
    erig_free(b);
}

/* The product's limits: what is advertised costs nothing until created. */
static void test_largest(void)
{
    EngineRig *rig = erig_new();
    uint64_t page;
    ErigReq req;

    rig->cfg.qblocks = 512;
    rig->cfg.n_vectors = 32;
    erig_start(rig);
    g_assert_true(erig_init(rig));
    erig_create_eq(rig, 31, 4);
    erig_create_cq(rig, 0xfffff, 4, 31);
    erig_req_create_qp(rig, &req, 512 * 1024 - 1, 0xfffff);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    page = erig_alloc(rig, 4096, 4096);
    erig_req_reg_mr(rig, &req, 0xfffff, 0, 4096, 1, &page);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erdma_engine_db_ceq(rig->e, 31, 1u << 31);
    erig_run(rig);
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 0);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/engine/before-init", test_before_init);
    g_test_add_func("/engine/engine/init-refused", test_init_refused);
    g_test_add_func("/engine/engine/reset", test_reset);
    g_test_add_func("/engine/engine/reset-unblocks", test_reset_unblocks);
    g_test_add_func("/engine/engine/init-twice", test_init_twice);
    g_test_add_func("/engine/engine/free-with-work", test_free_with_work);
    g_test_add_func("/engine/engine/kick", test_kick);
    g_test_add_func("/engine/engine/idle", test_idle);
    g_test_add_func("/engine/engine/budget", test_budget);
    g_test_add_func("/engine/engine/own-dma", test_own_dma);
    g_test_add_func("/engine/engine/mtu", test_mtu);
    g_test_add_func("/engine/engine/cookie-after-reset",
                    test_cookie_after_reset);
    g_test_add_func("/engine/engine/two", test_two);
    g_test_add_func("/engine/engine/largest", test_largest);
    return g_test_run();
}
