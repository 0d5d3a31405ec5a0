/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Injected faults: events and interrupts late or never, timers */

#include "qemu/osdep.h"
#include "fault-rules.h"

#define CQN         7

static const ErdmaCqe plain = {
    .opcode = ERDMA_OP_SEND, .qpn = 9, .index = 4,
};

static void fire(EngineRig *rig, uint32_t cqn)
{
    ErdmaCq *cq = erdma_cq_get(rig->e, cqn);

    cq->arm = ERDMA_CQ_ARM_ANY;
    erdma_cq_post(rig->e, cqn, &plain);
}

static void test_ceqe_drop(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;

    erig_create_cq(rig, CQN, 6, 2);
    r = rule_new(rig, ERDMA_FAULT_ON_CEQE, ERDMA_FAULT_DROP);
    fire(rig, CQN);
    erig_expect_no_ceqe(rig, 2);
    rule_free(r);
    r = rule_new(rig, ERDMA_FAULT_ON_CEQE, ERDMA_FAULT_DUPLICATE);
    fire(rig, CQN);
    erig_expect_ceqe(rig, 2, CQN);
    erig_expect_ceqe(rig, 2, CQN);
    erig_expect_no_ceqe(rig, 2);
    rule_free(r);
    erig_free(rig);
}

static void test_ceqe_delay(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;

    erig_create_cq(rig, CQN, 6, 2);
    erig_create_cq(rig, CQN + 1, 6, 2);
    r = rule_new(rig, ERDMA_FAULT_ON_CEQE, ERDMA_FAULT_DELAY);
    fire(rig, CQN);
    fire(rig, CQN + 1);
    erig_run(rig);
    erig_expect_no_ceqe(rig, 2);
    g_assert_cmpuint(rig->next, ==, rig->now + 5 * MS);
    /* It comes although the CQ has gone. */
    erdma_fault_enable(r, false);
    g_assert_cmpuint(erig_destroy_cq(rig, CQN), ==, 0);
    erig_expect_no_ceqe(rig, 2);
    rig->now += 5 * MS;
    erig_run(rig);
    erig_expect_ceqe(rig, 2, CQN);
    erig_expect_ceqe(rig, 2, CQN + 1);
    erig_expect_no_ceqe(rig, 2);
    g_assert_cmpuint(rig->n_notify[2], ==, 1);
    /* Not into an EQ that has gone. */
    erdma_fault_enable(r, true);
    fire(rig, CQN + 1);
    erig_destroy_eq(rig, 2);
    rig->now += 5 * MS;
    erig_run(rig);
    rule_free(r);
    erig_free(rig);
}

static void test_interrupt(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    ErdmaFaultConfig cfg;

    erig_create_cq(rig, CQN, 6, 2);
    erig_create_cq(rig, CQN + 1, 6, 3);
    r = rule_new(rig, ERDMA_FAULT_ON_INTERRUPT, ERDMA_FAULT_DROP);
    cfg = r->cfg;
    cfg.vector = 2;
    erdma_fault_set(r, &cfg);
    fire(rig, CQN);
    fire(rig, CQN + 1);
    erig_expect_ceqe(rig, 2, CQN);
    g_assert_cmpuint(rig->n_notify[2], ==, 0);
    g_assert_cmpuint(rig->n_notify[3], ==, 1);
    /* The queue is as if the interrupt had been raised: disarmed. */
    erig_ring_ceq(rig, 2);
    erig_run(rig);
    cfg.action = ERDMA_FAULT_DELAY;
    erdma_fault_set(r, &cfg);
    fire(rig, CQN);
    erig_run(rig);
    g_assert_cmpuint(rig->n_notify[2], ==, 0);
    rig->now += 5 * MS;
    erig_run(rig);
    g_assert_cmpuint(rig->n_notify[2], ==, 1);
    /* A stop delivers what is put off. */
    erig_expect_ceqe(rig, 2, CQN);
    erig_ring_ceq(rig, 2);
    erig_run(rig);
    fire(rig, CQN);
    erdma_engine_fault_flush(rig->e);
    g_assert_cmpuint(rig->n_notify[2], ==, 2);
    rule_free(r);
    erig_free(rig);
}

/* Timers */

static void test_timer(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    ErdmaFaultConfig cfg;
    unsigned i;

    erig_create_cq(rig, CQN, 6, 2);
    r = rule_new(rig, ERDMA_FAULT_ON_TIMER, ERDMA_FAULT_CEQE);
    cfg = r->cfg;
    cfg.period_ns = MS;
    cfg.count = 3;
    erdma_fault_set(r, &cfg);
    for (i = 0; i < 10; i++) {
        erig_run(rig);
        rig->now = i < 3 ? rig->next : rig->now + MS;
    }
    g_assert_cmpuint(rig->next, ==, ERDMA_XPORT_NEVER);
    for (i = 0; i < 3; i++) {
        erig_expect_ceqe(rig, 2, CQN);
    }
    erig_expect_no_ceqe(rig, 2);

    /* Once, at once; and again when it is switched on again */
    cfg = r->cfg;
    cfg.action = ERDMA_FAULT_INTERRUPT;
    cfg.vector = 3;
    cfg.period_ns = 0;
    cfg.count = 0;
    erdma_fault_set(r, &cfg);
    for (i = 1; i <= 2; i++) {
        erdma_fault_enable(r, false);
        erdma_fault_enable(r, true);
        erig_run(rig);
        erig_run(rig);
        g_assert_cmpuint(rig->n_notify[3], ==, i);
    }
    rule_free(r);
    erig_free(rig);
}

/* Every type, for a QP that is there, one that is not, and all of them */
static void test_timer_aeqe(void)
{
    EngineRig *rig = erig_ready();
    unsigned type, qpn, n = 0;
    uint64_t lo, hi;
    ErigReq req;

    erig_create_cq(rig, CQN, 6, 1);
    for (qpn = 3; qpn < 5; qpn++) {
        erig_req_create_qp(rig, &req, qpn, CQN);
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    }
    for (type = 0; type <= ERDMA_AE_TYPE_OTHER; type++) {
        ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_TIMER,
                                     ERDMA_FAULT_AEQE);
        ErdmaFaultConfig cfg = r->cfg;

        cfg.event = type;
        cfg.qpn = type == 4 ? 900 : type == 1 ? ERDMA_FAULT_ANY : 3;
        cfg.cqn = type == ERDMA_AE_TYPE_CQ_ERR ? CQN : ERDMA_FAULT_ANY;
        erdma_fault_set(r, &cfg);
        erig_run(rig);
        while (erig_poll_eq(rig, &rig->aeq, &lo, &hi)) {
            g_assert_cmpuint(extract64(lo, 16, 8), ==, type);
            g_assert_cmpuint(lo >> 32, ==, type == 4 ? 900 :
                             type == ERDMA_AE_TYPE_CQ_ERR ? CQN :
                             type == 1 ? 3 + n % 2 : 3);
            n += type == 1 ? 1 : 100;
        }
        rule_free(r);
    }
    g_assert_cmpuint(n, ==, 402);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fault-run/ceqe-drop", test_ceqe_drop);
    g_test_add_func("/fault-run/ceqe-delay", test_ceqe_delay);
    g_test_add_func("/fault-run/interrupt", test_interrupt);
    g_test_add_func("/fault-run/timer", test_timer);
    g_test_add_func("/fault-run/timer-aeqe", test_timer_aeqe);
    return g_test_run();
}
