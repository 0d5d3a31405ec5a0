/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event queues: arming, interrupts, full queues */

#include "qemu/osdep.h"
#include "engine-rig.h"

static const ErdmaCqe plain = { .opcode = ERDMA_OP_SEND, .qpn = 9 };

/* An event of CQ @cqn */
static void fire(EngineRig *rig, uint32_t cqn)
{
    ErdmaCq *cq = erdma_cq_get(rig->e, cqn);

    cq->arm = ERDMA_CQ_ARM_ANY;
    erdma_cq_post(rig->e, cqn, &plain);
}

static void ring(EngineRig *rig, unsigned eqn)
{
    erig_ring_ceq(rig, eqn);
    erig_run(rig);
}

static void test_armed_at_creation(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, 1, 6, 2);
    erig_create_cq(rig, 2, 6, 2);
    g_assert_cmpuint(rig->n_notify[2], ==, 0);
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[2], ==, 1);
    /* One interrupt disarms. */
    fire(rig, 2);
    g_assert_cmpuint(rig->n_notify[2], ==, 1);
    erig_expect_ceqe(rig, 2, 1);
    erig_expect_ceqe(rig, 2, 2);
    erig_expect_no_ceqe(rig, 2);
    /* And nobody else's vector is raised. */
    g_assert_cmpuint(rig->n_notify[0] + rig->n_notify[1] + rig->n_notify[3],
                     ==, 0);
    erig_free(rig);
}

static void test_doorbell_all_consumed(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, 1, 6, 1);
    fire(rig, 1);
    erig_expect_ceqe(rig, 1, 1);
    /* Vector 0's handler rings queues that had nothing: no answer. */
    ring(rig, 1);
    ring(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 1);
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 2);
    erig_free(rig);
}

/* A handler takes 16 and promises to come back. */
static void test_doorbell_with_a_rest(void)
{
    EngineRig *rig = erig_ready();
    unsigned i;

    for (i = 1; i <= 40; i++) {
        erig_create_cq(rig, i, 0, 1);
        fire(rig, i);
    }
    g_assert_cmpuint(rig->n_notify[1], ==, 1);
    for (i = 1; i <= 16; i++) {
        erig_expect_ceqe(rig, 1, i);
    }
    ring(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 2);
    /* It stays disarmed: the interrupt is on its way. */
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 2);
    for (i = 17; i <= 40; i++) {
        erig_expect_ceqe(rig, 1, i);
    }
    erig_expect_ceqe(rig, 1, 1);
    ring(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 2);
    erig_free(rig);
}

/* The driver's counter has 16 bits, and the doorbell may have more set. */
static void test_index_wraps(void)
{
    EngineRig *rig = erig_ready();
    unsigned i;

    erig_create_cq(rig, 1, 4, 1);
    for (i = 0; i < 70000; i++) {
        fire(rig, 1);
        g_assert_cmpuint(rig->n_notify[1], ==, i + 1);
        erig_expect_ceqe(rig, 1, 1);
        erdma_engine_db_ceq(rig->e, 1, (rig->ceqs[1].ci & 0xffff) |
                            0xa50000 | 1u << 31);
        erig_run(rig);
        g_array_set_size(rig->trace, 0);
    }
    erig_expect_no_ceqe(rig, 1);
    g_assert_cmpuint(rig->n_guest_errors, ==, 0);
    erig_free(rig);
}

static void test_full(void)
{
    EngineRig *rig = erig_ready();
    unsigned i;

    erig_create_eq(rig, 4, 2);
    for (i = 1; i <= 10; i++) {
        erig_create_cq(rig, i, 4, 4);
        fire(rig, i);
    }
    /* Again, while held: one event will do. */
    fire(rig, 7);
    fire(rig, 7);
    for (i = 1; i <= 4; i++) {
        erig_expect_ceqe(rig, 4, i);
    }
    /* Nothing was overwritten. */
    erig_expect_no_ceqe(rig, 4);
    ring(rig, 4);
    g_assert_cmpuint(rig->n_notify[4], ==, 2);
    for (i = 5; i <= 8; i++) {
        erig_expect_ceqe(rig, 4, i);
    }
    erig_expect_no_ceqe(rig, 4);
    /* Nobody overtakes those that wait. */
    rig->ceqs[4].ci--;
    ring(rig, 4);
    fire(rig, 1);
    rig->ceqs[4].ci++;
    erig_expect_ceqe(rig, 4, 9);
    ring(rig, 4);
    erig_expect_ceqe(rig, 4, 10);
    erig_expect_ceqe(rig, 4, 1);
    erig_expect_no_ceqe(rig, 4);
    erig_free(rig);
}

static void test_held_cq_is_destroyed(void)
{
    EngineRig *rig = erig_ready();
    unsigned i;

    erig_create_eq(rig, 4, 1);
    for (i = 1; i <= 4; i++) {
        erig_create_cq(rig, i, 4, 4);
        fire(rig, i);
    }
    g_assert_cmpuint(erig_destroy_cq(rig, 3), ==, 0);
    erig_expect_ceqe(rig, 4, 1);
    erig_expect_ceqe(rig, 4, 2);
    ring(rig, 4);
    erig_expect_ceqe(rig, 4, 4);
    erig_expect_no_ceqe(rig, 4);
    erig_free(rig);
}

static void test_destroy(void)
{
    EngineRig *rig = erig_ready();
    unsigned i;

    erig_create_eq(rig, 4, 1);
    for (i = 1; i <= 4; i++) {
        erig_create_cq(rig, i, 4, 4);
        fire(rig, i);
    }
    erig_ring_ceq(rig, 4);
    erig_destroy_eq(rig, 4);
    rig->hole = rig->ceqs[4].addr;
    rig->hole_len = 32;
    erig_forget_trace(rig);
    /* Memory is the guest's again: neither entries nor interrupts */
    fire(rig, 1);
    ring(rig, 4);
    g_assert_cmpuint(rig->n_notify[4], ==, 0);
    g_assert_cmpuint(rig->e->stats.dma_errors, ==, 0);
    /* The CQs that waited fire into a new one of the same number. */
    rig->hole_len = 0;
    erig_create_eq(rig, 4, 3);
    fire(rig, 4);
    erig_expect_ceqe(rig, 4, 4);
    g_assert_cmpuint(rig->n_notify[4], ==, 1);
    erig_free(rig);
}

static void test_vector_is_not_the_number(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    erig_req_create_eq(rig, &req, 5);
    erig_set64(&req, 8, erig_alloc(rig, 1024, 4096));
    erig_set8(&req, 16, 6);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_create_cq(rig, 1, 4, 5);
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[5], ==, 0);
    g_assert_cmpuint(rig->n_notify[6], ==, 1);
    erig_free(rig);
}

static void test_doorbell_out_of_range(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, 1, 4, 1);
    fire(rig, 1);
    erdma_engine_db_ceq(rig->e, 1, 1u << 31 | 500);
    erig_run(rig);
    g_assert_cmpuint(rig->n_guest_errors, ==, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 1);
    erig_expect_ceqe(rig, 1, 1);
    ring(rig, 1);
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 2);
    erig_free(rig);
}

static void test_doorbell_without_arm(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, 1, 4, 1);
    fire(rig, 1);
    erig_expect_ceqe(rig, 1, 1);
    erdma_engine_db_ceq(rig->e, 1, rig->ceqs[1].ci);
    erig_run(rig);
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 1);
    /* Two between runs: the arm of the first is not lost. */
    erig_expect_ceqe(rig, 1, 1);
    erig_ring_ceq(rig, 1);
    erdma_engine_db_ceq(rig->e, 1, rig->ceqs[1].ci);
    erig_run(rig);
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 2);
    erig_free(rig);
}

/* CQE, then the event in one store, then the interrupt */
static void test_order(void)
{
    EngineRig *rig = erig_ready();
    uint64_t cq = erig_create_cq(rig, 1, 4, 1);
    ErigTrace *t;

    erig_forget_trace(rig);
    fire(rig, 1);
    t = (ErigTrace *)rig->trace->data;
    g_assert_cmpuint(rig->trace->len, ==, 4);
    g_assert_cmphex(t[0].addr, ==, cq + 4);
    g_assert_cmphex(t[1].addr, ==, cq);
    g_assert_cmphex(t[2].addr, ==, rig->ceqs[1].addr);
    g_assert_cmpuint(t[2].len, ==, 8);
    g_assert_cmpint(t[3].kind, ==, ERIG_NOTIFY);
    erig_free(rig);
}

static void test_unwritable(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, 1, 4, 1);
    rig->hole = rig->ceqs[1].addr;
    rig->hole_len = 16;
    fire(rig, 1);
    g_assert_cmpuint(rig->n_notify[1], ==, 0);
    g_assert_cmpuint(rig->n_guest_errors, ==, 1);
    /* The consumer waits at the slot that was not written. */
    rig->hole_len = 0;
    fire(rig, 1);
    erig_expect_ceqe(rig, 1, 1);
    erig_free(rig);
}

static void test_aeq(void)
{
    EngineRig *rig = erig_ready();
    uint64_t lo, hi;
    ErigTrace *t;

    erdma_aeq_post(rig->e, ERDMA_AE_TYPE_ACC_ERR, 0x12345);
    t = (ErigTrace *)rig->trace->data;
    g_assert_cmpuint(rig->trace->len, ==, 3);
    g_assert_cmphex(t[0].addr, ==, rig->aeq.addr + 8);
    g_assert_cmphex(t[1].addr, ==, rig->aeq.addr);
    g_assert_cmpuint(t[1].len, ==, 8);
    g_assert_cmpuint(rig->n_notify[0], ==, 1);
    g_assert_true(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    g_assert_cmphex(lo, ==, 0x12345ull << 32 | 1u << 31 | 2 << 16);
    g_assert_false(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    erdma_engine_db_aeq(rig->e, 1u << 31 | 1);
    erig_run(rig);
    g_assert_cmpuint(rig->n_notify[0], ==, 1);
    erdma_aeq_post(rig->e, ERDMA_AE_TYPE_CQ_ERR, 7);
    g_assert_cmpuint(rig->n_notify[0], ==, 2);
    g_assert_true(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    g_assert_cmphex(lo, ==, 7ull << 32 | 1u << 31 | 3 << 16);
    erig_free(rig);
}

/* Nothing is overwritten, what waits is bounded. */
static void test_aeq_full(void)
{
    EngineRig *rig = erig_ready();
    unsigned n_posted = 64 + 4096 + 100;
    unsigned i, got = 0;
    uint64_t lo, hi;

    for (i = 0; i < n_posted; i++) {
        erdma_aeq_post(rig->e, ERDMA_AE_TYPE_QP_FATAL, i);
    }
    g_assert_cmpuint(rig->n_guest_errors, ==, 100);
    g_assert_cmpuint(rig->n_notify[0], ==, 1);
    for (i = 0; i < 100; i++) {
        while (erig_poll_eq(rig, &rig->aeq, &lo, &hi)) {
            g_assert_cmpuint(lo >> 32, ==, got);
            got++;
        }
        erdma_engine_db_aeq(rig->e, 1u << 31 | (rig->aeq.ci & 0xffff));
        erig_run(rig);
    }
    g_assert_cmpuint(got, ==, 64 + 4096);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/eq/armed-at-creation", test_armed_at_creation);
    g_test_add_func("/engine/eq/doorbell-all-consumed",
                    test_doorbell_all_consumed);
    g_test_add_func("/engine/eq/doorbell-with-a-rest",
                    test_doorbell_with_a_rest);
    g_test_add_func("/engine/eq/index-wraps", test_index_wraps);
    g_test_add_func("/engine/eq/full", test_full);
    g_test_add_func("/engine/eq/held-cq-is-destroyed",
                    test_held_cq_is_destroyed);
    g_test_add_func("/engine/eq/destroy", test_destroy);
    g_test_add_func("/engine/eq/vector-is-not-the-number",
                    test_vector_is_not_the_number);
    g_test_add_func("/engine/eq/doorbell-out-of-range",
                    test_doorbell_out_of_range);
    g_test_add_func("/engine/eq/doorbell-without-arm",
                    test_doorbell_without_arm);
    g_test_add_func("/engine/eq/order", test_order);
    g_test_add_func("/engine/eq/unwritable", test_unwritable);
    g_test_add_func("/engine/eq/aeq", test_aeq);
    g_test_add_func("/engine/eq/aeq-full", test_aeq_full);
    return g_test_run();
}
