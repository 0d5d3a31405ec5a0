/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots: order and bounds of the walks, words, what waits */

#include "qemu/osdep.h"
#include "engine/inspect.h"
#include "engine-rig.h"

#define EQN 4

static void test_words(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    unsigned i;

    for (i = 0; i <= ERDMA_WC_RETRY_EXC_ERR; i++) {
        const char *word = erdma_inspect_status(i);

        g_assert_cmpstr(word, !=, "unknown");
        g_assert_true(g_hash_table_add(seen, (void *)word));
    }
    g_assert_cmpstr(erdma_inspect_status(i), ==, "unknown");
    g_assert_cmpstr(erdma_inspect_status(255), ==, "unknown");
    for (i = 0; i <= ERDMA_SQ_WAIT_ERROR; i++) {
        g_assert_true(g_hash_table_add(seen,
                                       (void *)erdma_inspect_sq_wait(i)));
    }
    g_assert_cmpstr(erdma_inspect_sq_wait(i), ==, "unknown");
}

static void test_walk(void)
{
    static const uint32_t qpns[] = { 5, 700, 1023 };
    EngineRig *rig = erig_ready();
    ErdmaQpSnapshot qp;
    ErigReq req;
    uint32_t n = 0;
    unsigned i;

    erig_create_cq(rig, 3, 4, 1);
    for (i = 0; i < ARRAY_SIZE(qpns); i++) {
        erig_req_create_qp(rig, &req, qpns[i], 3);
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    }
    for (i = 0; erdma_inspect_qp(rig->e, &n, &qp); i++, n++) {
        g_assert_cmpuint(n, ==, qpns[i]);
        g_assert_cmpuint(qp.qpn, ==, qpns[i]);
        g_assert_cmpuint(qp.state, ==, ERDMA_QP_CREATED);
        g_assert_cmpuint(qp.sq_cqn, ==, 3);
        g_assert_false(qp.has_conn);
    }
    g_assert_cmpuint(i, ==, ARRAY_SIZE(qpns));
    n = UINT32_MAX;
    g_assert_false(erdma_inspect_qp(rig->e, &n, &qp));
    erig_free(rig);
}

/* Two of three events fit into the queue. */
static void test_held(void)
{
    EngineRig *rig = erig_ready();
    ErdmaCqe cqe = { .opcode = ERDMA_OP_RECEIVE };
    ErdmaEqSnapshot eq;
    ErdmaCqSnapshot cq;
    uint32_t n = EQN;
    unsigned i;

    erig_create_eq(rig, EQN, 1);
    for (i = 1; i <= 3; i++) {
        erig_create_cq(rig, i, 4, EQN);
        n = i;
        g_assert_true(erdma_inspect_cq(rig->e, &n, &cq));
        g_assert_false(cq.has_ci);
        erig_arm_cq(rig, i, 0, false);
        erig_run(rig);
        g_assert_true(erdma_inspect_cq(rig->e, &n, &cq));
        g_assert_true(cq.has_ci);
        g_assert_cmpuint(cq.arm, ==, ERDMA_CQ_ARM_ANY);
        g_assert_cmpuint(cq.announced_pi, ==, 0);
        erdma_cq_post(rig->e, i, &cqe);
    }
    n = EQN;
    g_assert_true(erdma_inspect_eq(rig->e, &n, &eq));
    g_assert_cmpuint(n, ==, EQN);
    g_assert_cmpuint(eq.kind, ==, ERDMA_EQ_KIND_COMPLETION);
    g_assert_cmpuint(eq.depth, ==, 2);
    g_assert_cmpuint(eq.pi, ==, 2);
    g_assert_cmpuint(eq.pending, ==, 2);
    g_assert_cmpuint(eq.n_held, ==, 1);
    g_assert_cmpuint(eq.n_interrupts, ==, 1);
    g_assert_false(eq.is_armed);
    for (n = 1; erdma_inspect_cq(rig->e, &n, &cq); n++) {
        g_assert_cmpuint(cq.pi, ==, 1);
        g_assert_cmpuint(cq.announced_pi, ==, 1);
        g_assert_cmpuint(cq.n_events, ==, 1);
        g_assert_cmpint(cq.is_held, ==, n == 3);
        g_assert_cmpuint(cq.arm, ==, ERDMA_CQ_ARM_NONE);
    }
    erig_free(rig);
}

static void test_eqs(void)
{
    EngineRig *rig = erig_ready();
    ErdmaEqSnapshot eq;
    uint32_t n = 0;
    unsigned i;

    for (i = 0; erdma_inspect_eq(rig->e, &n, &eq); i++, n++) {
        g_assert_cmpuint(eq.kind, ==, i == 0 ? ERDMA_EQ_KIND_COMMAND :
                         i < 4 ? ERDMA_EQ_KIND_COMPLETION :
                         ERDMA_EQ_KIND_ASYNC);
    }
    g_assert_cmpuint(i, ==, 5);
    erdma_engine_reset(rig->e);
    n = 0;
    g_assert_false(erdma_inspect_eq(rig->e, &n, &eq));
    erig_free(rig);
}

static void test_device(void)
{
    EngineRig *rig = erig_ready();
    ErdmaDeviceSnapshot dev;

    erdma_engine_set_mtu(rig->e, 4000);
    erdma_inspect_device(rig->e, &dev);
    g_assert_true(dev.is_ready);
    g_assert_cmpuint(dev.mtu, ==, 4000);
    g_assert_cmpuint(dev.page_size, ==, 4096);
    g_assert_cmpuint(dev.max_qp, ==, rig->cfg.qblocks * 1024 - 1);
    g_assert_cmpuint(dev.cmdq_depth, ==, rig->init.cmdq_depth);
    g_assert_cmpuint(dev.cmdq_pi, ==, rig->cmd_pi);
    g_assert_cmpuint(dev.cmdq_ci, ==, rig->cmd_pi);
    erdma_engine_reset(rig->e);
    erdma_inspect_device(rig->e, &dev);
    g_assert_false(dev.is_ready);
    g_assert_cmpuint(dev.cmdq_depth, ==, 0);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/engine/inspect/words", test_words);
    g_test_add_func("/erdma/engine/inspect/walk", test_walk);
    g_test_add_func("/erdma/engine/inspect/held", test_held);
    g_test_add_func("/erdma/engine/inspect/eqs", test_eqs);
    g_test_add_func("/erdma/engine/inspect/device", test_device);
    return g_test_run();
}
