/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion queues: arm rules, wrap, unreachable memory */

#include "qemu/osdep.h"
#include "engine-rig.h"

#define CQN 3
#define EQN 1

static void post(EngineRig *rig, bool is_solicited, uint8_t status)
{
    ErdmaCqe cqe = {
        .opcode = ERDMA_OP_RECEIVE,
        .qtype = ERDMA_CQE_QTYPE_RQ,
        .status = status,
        .is_solicited = is_solicited,
        .qpn = 17,
    };

    erdma_cq_post(rig->e, CQN, &cqe);
}

static void arm(EngineRig *rig, uint32_t ci, bool is_solicited)
{
    erig_arm_cq(rig, CQN, ci, is_solicited);
    erig_run(rig);
}

static EngineRig *new_rig(void)
{
    EngineRig *rig = erig_ready();

    erig_create_cq(rig, CQN, 4, EQN);
    return rig;
}

static void test_not_armed_at_creation(void)
{
    EngineRig *rig = new_rig();

    post(rig, true, 0);
    post(rig, false, 15);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

static void test_arm_any(void)
{
    EngineRig *rig = new_rig();

    arm(rig, 0, false);
    erig_expect_no_ceqe(rig, EQN);
    post(rig, false, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    /* One arm, one event */
    post(rig, true, 0);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

static void test_arm_solicited(void)
{
    EngineRig *rig = new_rig();

    arm(rig, 0, true);
    post(rig, false, 0);
    erig_expect_no_ceqe(rig, EQN);
    post(rig, true, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    post(rig, true, 0);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

/* An error is an event for whoever waits for solicited ones. */
static void test_error_is_solicited(void)
{
    EngineRig *rig = new_rig();

    arm(rig, 0, true);
    post(rig, false, 15);
    erig_expect_ceqe(rig, EQN, CQN);
    /* And so it is for an arm that comes late. */
    post(rig, false, 15);
    arm(rig, 1, true);
    erig_expect_ceqe(rig, EQN, CQN);
    erig_free(rig);
}

/* Written between the guest's last look and its arm */
static void test_fire_on_arm(void)
{
    EngineRig *rig = new_rig();

    post(rig, false, 0);
    post(rig, false, 0);
    arm(rig, 2, false);
    erig_expect_no_ceqe(rig, EQN);
    post(rig, false, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    post(rig, false, 0);
    arm(rig, 3, false);
    erig_expect_ceqe(rig, EQN, CQN);
    /* That used the arm up. */
    post(rig, false, 0);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

/* Armed on the event, polled afterwards: no second event for the same CQE */
static void test_no_event_twice(void)
{
    EngineRig *rig = new_rig();

    arm(rig, 0, false);
    post(rig, true, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    arm(rig, 0, false);
    arm(rig, 0, true);
    erig_expect_no_ceqe(rig, EQN);
    post(rig, true, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    /* Nobody was told of the next one, consumed or not what is before it. */
    post(rig, true, 0);
    arm(rig, 0, true);
    erig_expect_ceqe(rig, EQN, CQN);
    erig_free(rig);
}

static void test_fire_on_solicited_arm(void)
{
    EngineRig *rig = new_rig();

    post(rig, false, 0);
    post(rig, true, 0);
    post(rig, false, 0);
    /* The solicited one, at 1, was consumed already. */
    arm(rig, 2, true);
    erig_expect_no_ceqe(rig, EQN);
    arm(rig, 1, true);
    erig_expect_ceqe(rig, EQN, CQN);
    post(rig, true, 0);
    post(rig, false, 0);
    arm(rig, 0, true);
    erig_expect_ceqe(rig, EQN, CQN);
    arm(rig, 5, true);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

static void test_solicited_does_not_weaken_any(void)
{
    EngineRig *rig = new_rig();

    arm(rig, 0, false);
    arm(rig, 0, true);
    post(rig, false, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    /* Both before one run */
    erig_arm_cq(rig, CQN, 1, false);
    erig_arm_cq(rig, CQN, 1, true);
    erig_run(rig);
    post(rig, false, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    /* Any strengthens solicited. */
    arm(rig, 2, true);
    arm(rig, 2, false);
    post(rig, false, 0);
    erig_expect_ceqe(rig, EQN, CQN);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

/* The doorbell has 24 bits of an index that has more. */
static void test_index_has_24_bits(void)
{
    EngineRig *rig = new_rig();
    ErdmaCq *cq = erdma_cq_get(rig->e, CQN);

    cq->pi = 0x3000010;
    cq->announced_pi = 0x300000f;
    arm(rig, 0x3000010, false);
    erig_expect_no_ceqe(rig, EQN);
    cq->arm = ERDMA_CQ_ARM_NONE;
    arm(rig, 0x300000f, false);
    erig_expect_ceqe(rig, EQN, CQN);
    /* Across the wrap of both counters */
    cq->pi = UINT32_MAX;
    cq->announced_pi = UINT32_MAX;
    post(rig, true, 0);
    post(rig, false, 0);
    g_assert_cmpuint(cq->pi, ==, 1);
    arm(rig, 0, true);
    erig_expect_no_ceqe(rig, EQN);
    arm(rig, 0xffffff, true);
    erig_expect_ceqe(rig, EQN, CQN);
    erig_free(rig);
}

static void test_doorbell_needs_arm_bit(void)
{
    EngineRig *rig = new_rig();

    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ, (uint64_t)CQN << 32);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ,
                          4711ull << 32 | 1u << 31);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ,
                          0xffffffull << 32 | 1u << 31);
    g_assert_cmpuint(rig->e->stats.db_ignored, ==, 3);
    erig_run(rig);
    post(rig, true, 0);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

/* The sequence number and the arm counter are not filtered on. */
static void test_other_doorbell_fields(void)
{
    EngineRig *rig = new_rig();
    unsigned i;

    for (i = 0; i < 8; i++) {
        erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ,
                              (uint64_t)(i * 77) << 56 |
                              (uint64_t)CQN << 32 | 1u << 31 |
                              (i & 3) << 28 | i);
        erig_run(rig);
        post(rig, false, 0);
        erig_expect_ceqe(rig, EQN, CQN);
    }
    erig_free(rig);
}

/*
 * Long enough for one event of a thousand to be missed, and for the EQ and
 * both of its 16-bit indices to wrap: each arm has its one event, and what is
 * told of is all that was written.
 */
static void test_every_event(void)
{
    EngineRig *rig = new_rig();
    ErdmaCq *cq = erdma_cq_get(rig->e, CQN);
    unsigned i;

    for (i = 0; i < 70000; i++) {
        uint32_t ci = cq->pi;

        switch (i % 5) {
        case 0:         /* written before the arm */
            post(rig, false, 0);
            arm(rig, ci, false);
            break;
        case 1:
            arm(rig, ci, true);
            post(rig, false, 0);
            erig_expect_no_ceqe(rig, EQN);
            post(rig, true, 0);
            break;
        case 2:         /* and one before a solicited arm */
            post(rig, true, 0);
            arm(rig, ci, true);
            break;
        default:        /* armed first, as programs that sleep do */
            arm(rig, ci, false);
            post(rig, false, 0);
            break;
        }
        erig_expect_ceqe(rig, EQN, CQN);
        erig_expect_no_ceqe(rig, EQN);
        g_assert_cmpuint(cq->n_events, ==, i + 1);
        g_assert_cmpuint(cq->announced_pi, ==, cq->pi);
        g_assert_cmpuint(cq->arm, ==, ERDMA_CQ_ARM_NONE);
        erig_ring_ceq(rig, EQN);
        erig_run(rig);
        g_assert_cmpuint(rig->n_notify[EQN], ==, 1);
        erig_forget_trace(rig);
    }
    erig_free(rig);
}

/* Polled CQs never report their index: no "full" */
static void test_wraps_without_arms(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_create_cq(rig, CQN, 2, EQN);
    unsigned i;

    for (i = 0; i < 50; i++) {
        post(rig, false, 0);
        g_assert_cmphex(erig_peek32_be(rig, addr + i % 4 * 32) >> 31, ==,
                        !(i & 4));
    }
    g_assert_cmpuint(rig->n_guest_errors, ==, 0);
    erig_free(rig);
}

static void test_destroy(void)
{
    EngineRig *rig = new_rig();

    erig_arm_cq(rig, CQN, 0, false);
    g_assert_cmpuint(erig_destroy_cq(rig, CQN), ==, 0);
    erig_forget_trace(rig);
    erig_run(rig);
    post(rig, true, 0);
    g_assert_cmpuint(rig->n_writes, ==, 0);
    g_assert_cmpuint(erig_destroy_cq(rig, CQN), !=, 0);
    /* A new one of the number starts from scratch. */
    erig_create_cq(rig, CQN, 4, EQN);
    post(rig, true, 0);
    erig_expect_no_ceqe(rig, EQN);
    erig_free(rig);
}

static void test_unwritable(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_create_cq(rig, CQN, 4, EQN);
    uint64_t lo, hi;
    unsigned i;

    rig->hole = addr + 32;
    rig->hole_len = 32;
    arm(rig, 0, false);
    for (i = 0; i < 5; i++) {
        post(rig, true, 0);
    }
    /* The one that could be written fired; the driver hears of the rest. */
    erig_expect_ceqe(rig, EQN, CQN);
    erig_expect_no_ceqe(rig, EQN);
    g_assert_true(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    g_assert_cmphex(lo, ==, (uint64_t)CQN << 32 | 1u << 31 | 3 << 16);
    g_assert_false(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    /* Nothing behind the hole: the consumer cannot get there. */
    g_assert_cmphex(erig_peek32(rig, addr + 64), ==, 0);
    erig_free(rig);
}

static void test_eq_is_gone(void)
{
    EngineRig *rig = new_rig();

    arm(rig, 0, false);
    erig_destroy_eq(rig, EQN);
    erig_forget_trace(rig);
    post(rig, true, 0);
    g_assert_cmpuint(rig->n_notify[EQN], ==, 0);
    g_assert_cmpuint(rig->n_writes, ==, 2);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/cq/not-armed-at-creation",
                    test_not_armed_at_creation);
    g_test_add_func("/engine/cq/arm-any", test_arm_any);
    g_test_add_func("/engine/cq/arm-solicited", test_arm_solicited);
    g_test_add_func("/engine/cq/error-is-solicited", test_error_is_solicited);
    g_test_add_func("/engine/cq/fire-on-arm", test_fire_on_arm);
    g_test_add_func("/engine/cq/no-event-twice", test_no_event_twice);
    g_test_add_func("/engine/cq/fire-on-solicited-arm",
                    test_fire_on_solicited_arm);
    g_test_add_func("/engine/cq/solicited-does-not-weaken-any",
                    test_solicited_does_not_weaken_any);
    g_test_add_func("/engine/cq/index-has-24-bits", test_index_has_24_bits);
    g_test_add_func("/engine/cq/doorbell-needs-arm-bit",
                    test_doorbell_needs_arm_bit);
    g_test_add_func("/engine/cq/other-doorbell-fields",
                    test_other_doorbell_fields);
    g_test_add_func("/engine/cq/every-event", test_every_event);
    g_test_add_func("/engine/cq/wraps-without-arms", test_wraps_without_arms);
    g_test_add_func("/engine/cq/destroy", test_destroy);
    g_test_add_func("/engine/cq/unwritable", test_unwritable);
    g_test_add_func("/engine/cq/eq-is-gone", test_eq_is_gone);
    return g_test_run();
}
