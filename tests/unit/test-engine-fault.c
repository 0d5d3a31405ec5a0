/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults without traffic: rules, names, commands, completions, DMA.
 */

#include "qemu/osdep.h"
#include <math.h>
#include "fault-rules.h"

#define CQN         7
#define DESTROY_CQ  ERDMA_CMD_DESTROY_CQ

static const ErdmaCqe plain = {
    .opcode = ERDMA_OP_SEND, .qpn = 9, .index = 4,
};

/* A poll that leaves nothing behind: does an answer come? */
static bool answered(EngineRig *rig, uint8_t *status)
{
    ErigCmdCqe cqe;

    erig_run(rig);
    if (!erig_poll_cmd(rig, &cqe)) {
        return false;
    }
    *status = cqe.status;
    return true;
}

static void post_destroy_cq(EngineRig *rig, uint32_t cqn)
{
    ErigReq req;

    erig_req(rig, &req, 0, DESTROY_CQ);
    erig_set32(&req, 8, cqn);
    erig_post(rig, &req);
    erig_ring_cmdq(rig);
}

/* Rules */

static void expect_refused(const ErdmaFaultConfig *cfg, const char *key,
                           const char *word)
{
    g_autofree char *allowed = NULL;
    const char *got = erdma_fault_config_check(cfg, &allowed);

    g_assert_cmpstr(got, ==, key);
    g_assert_nonnull(strstr(allowed, word));
}

static void test_check(void)
{
    ErdmaFaultConfig good, cfg;
    g_autofree char *allowed = NULL;

    erdma_fault_config_default(&good);
    g_assert_null(erdma_fault_config_check(&good, &allowed));
    cfg = good;
    cfg.action = ERDMA_FAULT_INDEX;
    expect_refused(&cfg, "action", "delay, fail, drop, duplicate, aeqe");
    cfg = good;
    cfg.queue = ERDMA_FAULT_QUEUE_SQ;
    expect_refused(&cfg, "queue", "on=cqe");
    cfg = good;
    cfg.min_size = 1;
    expect_refused(&cfg, "min-size", "on=dma");
    cfg = good;
    cfg.every = 0;
    expect_refused(&cfg, "every", "at least 1");
    cfg = good;
    cfg.probability = 1.5;
    expect_refused(&cfg, "probability", "0 to 1");
    cfg.probability = NAN;
    expect_refused(&cfg, "probability", "0 to 1");
    cfg = good;
    cfg.status = 0;
    expect_refused(&cfg, "status", "1 to 255");
    cfg.status = 256;
    expect_refused(&cfg, "status", "255");
    cfg = good;
    cfg.action = ERDMA_FAULT_DELAY;
    expect_refused(&cfg, "delay-us", "more than 0");
    cfg.delay_ns = UINT64_MAX;
    expect_refused(&cfg, "delay-us", "hour");
    cfg = good;
    cfg.on = ERDMA_FAULT_ON_INTERRUPT;
    cfg.action = ERDMA_FAULT_DROP;
    cfg.vector = 32;
    expect_refused(&cfg, "vector", "0 to 31");
}

static void test_names(void)
{
    unsigned names, value;
    uint32_t back;

    for (names = 0; names <= ERDMA_FAULT_NAMES_DIRECTION; names++) {
        g_autofree char *list = erdma_fault_list(names);

        for (value = 0; value < 512; value++) {
            const char *name = erdma_fault_name(names, value);

            if (name) {
                g_assert_true(erdma_fault_value(names, name, &back));
                g_assert_cmpuint(back, ==, value);
                g_assert_nonnull(strstr(list, name));
            }
        }
        g_assert_false(erdma_fault_value(names, "", &back));
        g_assert_false(erdma_fault_value(names, "nonsense", &back));
    }
    for (value = 0; value < ERDMA_FAULT_ON_COUNT; value++) {
        g_assert_nonnull(erdma_fault_name(ERDMA_FAULT_NAMES_ON, value));
    }
    for (value = 0; value < ERDMA_FAULT_ACTION_COUNT; value++) {
        g_assert_nonnull(erdma_fault_name(ERDMA_FAULT_NAMES_ACTION, value));
    }
    for (value = 0; value < ERDMA_NUM_WC_STATUS; value++) {
        g_assert_nonnull(erdma_fault_name(ERDMA_FAULT_NAMES_WC_STATUS,
                                          value));
    }
}

/* Which of 20 commands fail, as a string of 0 and 1 */
static char *pattern(EngineRig *rig, ErdmaFaultRule *r)
{
    GString *s = g_string_new(NULL);
    ErigReq req;
    unsigned i;

    erdma_fault_enable(r, false);
    erdma_fault_enable(r, true);
    for (i = 0; i < 20; i++) {
        erig_req(rig, &req, 1, ERDMA_CMD_QUERY_FW_INFO);
        g_string_append_c(s, erig_cmd(rig, &req, NULL) ? '1' : '0');
    }
    return g_string_free(s, false);
}

static void test_which(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_COMMAND,
                                 ERDMA_FAULT_FAIL);
    g_autofree char *all = pattern(rig, r), *some = NULL, *lucky = NULL;
    g_autofree char *again = NULL, *other = NULL;
    ErdmaFaultConfig cfg = r->cfg;

    g_assert_cmpstr(all, ==, "11111111111111111111");
    cfg.after = 3;
    cfg.every = 3;
    cfg.count = 3;
    erdma_fault_set(r, &cfg);
    some = pattern(rig, r);
    g_assert_cmpstr(some, ==, "00010010010000000000");
    g_assert_cmpuint(r->matched, ==, 20);
    g_assert_cmpuint(r->fired, ==, 3);

    cfg = (ErdmaFaultConfig) { 0 };
    erdma_fault_config_default(&cfg);
    cfg.probability = 0.5;
    cfg.seed = 1;
    erdma_fault_set(r, &cfg);
    lucky = pattern(rig, r);
    again = pattern(rig, r);
    g_assert_cmpstr(lucky, ==, again);
    g_assert_cmpuint(r->fired, >, 2);
    g_assert_cmpuint(r->fired, <, 18);
    cfg.seed = 2;
    erdma_fault_set(r, &cfg);
    other = pattern(rig, r);
    g_assert_cmpstr(lucky, !=, other);
    rule_free(r);
    erig_free(rig);
}

/* What one rule hits does not depend on another; the first one changes. */
static void test_two_rules(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *a = rule_new(rig, ERDMA_FAULT_ON_COMMAND,
                                 ERDMA_FAULT_FAIL);
    ErdmaFaultRule *b = rule_new(rig, ERDMA_FAULT_ON_COMMAND,
                                 ERDMA_FAULT_FAIL);
    ErdmaFaultConfig cfg = a->cfg;
    ErigReq req;
    unsigned i;

    cfg.every = 2;
    cfg.status = 77;
    erdma_fault_set(a, &cfg);
    for (i = 0; i < 10; i++) {
        erig_req(rig, &req, 1, ERDMA_CMD_QUERY_FW_INFO);
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, i % 2 ? 1 : 77);
    }
    g_assert_cmpuint(a->fired, ==, 5);
    g_assert_cmpuint(b->fired, ==, 5);
    g_assert_cmpuint(b->matched, ==, 10);
    rule_free(a);
    rule_free(b);
    /* And without them all is as ever. */
    g_assert_cmpuint(rig->e->faults.points, ==, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_free(rig);
}

/* The rule outlives the device. */
static void test_device_goes(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_CQE, ERDMA_FAULT_DROP);

    erig_free(rig);
    g_assert_null(r->e);
    rule_free(r);
}

/* Commands */

static void test_command_fail(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_COMMAND,
                                 ERDMA_FAULT_FAIL);
    ErdmaFaultConfig cfg = r->cfg;

    cfg.opcode = DESTROY_CQ;
    cfg.cqn = CQN;
    cfg.status = 200;
    erdma_fault_set(r, &cfg);
    erig_create_cq(rig, CQN, 6, 1);
    erig_create_cq(rig, CQN + 1, 6, 1);
    g_assert_cmpuint(erig_destroy_cq(rig, CQN), ==, 200);
    g_assert_nonnull(erdma_cq_get(rig->e, CQN));
    g_assert_cmpuint(erig_destroy_cq(rig, CQN + 1), ==, 0);
    cfg.is_executed = true;
    erdma_fault_set(r, &cfg);
    g_assert_cmpuint(erig_destroy_cq(rig, CQN), ==, 200);
    g_assert_null(erdma_cq_get(rig->e, CQN));
    g_assert_cmpuint(r->fired, ==, 2);
    rule_free(r);
    erig_free(rig);
}

static void test_command_drop(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_COMMAND,
                                 ERDMA_FAULT_DROP);
    ErdmaFaultConfig cfg = r->cfg;
    uint8_t status;

    cfg.opcode = DESTROY_CQ;
    erdma_fault_set(r, &cfg);
    erig_create_cq(rig, CQN, 6, 1);
    post_destroy_cq(rig, CQN);
    g_assert_false(answered(rig, &status));
    g_assert_nonnull(erdma_cq_get(rig->e, CQN));
    /* Others are answered. */
    erig_create_cq(rig, CQN + 1, 6, 1);
    cfg.is_executed = true;
    erdma_fault_set(r, &cfg);
    post_destroy_cq(rig, CQN);
    g_assert_false(answered(rig, &status));
    g_assert_null(erdma_cq_get(rig->e, CQN));
    rule_free(r);
    erig_free(rig);
}

static void test_command_duplicate(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    ErigCmdCqe first, second, third;

    erig_create_cq(rig, CQN, 6, 1);
    r = rule_new(rig, ERDMA_FAULT_ON_COMMAND, ERDMA_FAULT_DUPLICATE);
    post_destroy_cq(rig, CQN);
    erig_run(rig);
    g_assert_true(erig_poll_cmd(rig, &first));
    g_assert_true(erig_poll_cmd(rig, &second));
    g_assert_false(erig_poll_cmd(rig, &third));
    g_assert_cmpuint(first.index, ==, second.index);
    g_assert_cmpuint(second.status, ==, 0);
    rule_free(r);
    erig_free(rig);
}

static void test_command_delay(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    uint64_t began = rig->now;
    uint8_t status;

    erig_create_cq(rig, CQN, 6, 1);
    erig_create_cq(rig, CQN + 1, 6, 1);
    r = rule_new(rig, ERDMA_FAULT_ON_COMMAND, ERDMA_FAULT_DELAY);
    post_destroy_cq(rig, CQN);
    g_assert_false(answered(rig, &status));
    /* Nothing has happened, and those behind it wait, too. */
    g_assert_nonnull(erdma_cq_get(rig->e, CQN));
    post_destroy_cq(rig, CQN + 1);
    g_assert_false(answered(rig, &status));
    g_assert_cmpuint(rig->next, ==, began + 5 * MS);
    rig->now = began + 5 * MS - 1;
    g_assert_false(answered(rig, &status));
    rig->now = began + 5 * MS;
    g_assert_true(answered(rig, &status));
    g_assert_cmpuint(status, ==, 0);
    g_assert_null(erdma_cq_get(rig->e, CQN));
    /* The second is delayed for itself. */
    g_assert_false(answered(rig, &status));
    g_assert_cmpuint(rig->next, ==, began + 10 * MS);
    /* A machine that is about to stop does not wait. */
    erdma_engine_fault_flush(rig->e);
    g_assert_true(answered(rig, &status));
    g_assert_cmpuint(r->fired, ==, 2);
    rule_free(r);
    erig_free(rig);
}

static void test_command_delay_reset(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_COMMAND,
                                 ERDMA_FAULT_DELAY);
    uint8_t status;

    post_destroy_cq(rig, CQN);
    g_assert_false(answered(rig, &status));
    erdma_fault_enable(r, false);
    g_assert_true(erig_init(rig));
    erig_create_eq(rig, 1, 6);
    erig_create_cq(rig, CQN, 6, 1);
    rule_free(r);
    erig_free(rig);
}

static void test_command_aeqe(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    ErdmaFaultConfig cfg;
    uint64_t lo, hi;
    ErigReq req;

    erig_create_cq(rig, CQN, 6, 1);
    erig_req_create_qp(rig, &req, 3, CQN);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    r = rule_new(rig, ERDMA_FAULT_ON_COMMAND, ERDMA_FAULT_AEQE);
    cfg = r->cfg;
    cfg.opcode = ERDMA_CMD_DESTROY_QP;
    cfg.event = ERDMA_AE_TYPE_ACC_ERR;
    erdma_fault_set(r, &cfg);
    erig_req(rig, &req, 0, ERDMA_CMD_DESTROY_QP);
    erig_set32(&req, 8, 3);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    g_assert_true(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    g_assert_cmpuint(extract64(lo, 16, 8), ==, ERDMA_AE_TYPE_ACC_ERR);
    g_assert_cmpuint(lo >> 32, ==, 3);
    g_assert_false(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    rule_free(r);
    erig_free(rig);
}

/* Completions */

static uint8_t cqe_status(EngineRig *rig, uint64_t cq, unsigned i)
{
    return erig_peek32_be(rig, cq + i * ERDMA_CQE_SIZE) & 0xff;
}

static void test_cqe(void)
{
    EngineRig *rig = erig_ready();
    uint64_t cq = erig_create_cq(rig, CQN, 6, 1);
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_CQE,
                                 ERDMA_FAULT_STATUS);
    ErdmaFaultConfig cfg = r->cfg;
    ErdmaCq *object = erdma_cq_get(rig->e, CQN);

    cfg.status = ERDMA_WC_RETRY_EXC_ERR;
    cfg.queue = ERDMA_FAULT_QUEUE_SQ;
    cfg.opcode = ERDMA_OP_SEND;
    cfg.qpn = 9;
    erdma_fault_set(r, &cfg);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(cqe_status(rig, cq, 0), ==, ERDMA_WC_RETRY_EXC_ERR);
    cfg.action = ERDMA_FAULT_INDEX;
    cfg.offset = -3;
    erdma_fault_set(r, &cfg);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(erig_peek32_be(rig, cq + 32 + 4), ==, 4 - 3);
    cfg.action = ERDMA_FAULT_DUPLICATE;
    erdma_fault_set(r, &cfg);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(object->pi, ==, 4);
    cfg.action = ERDMA_FAULT_DROP;
    erdma_fault_set(r, &cfg);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(object->pi, ==, 4);
    /* Another queue's, another QP's are not meant. */
    cfg.queue = ERDMA_FAULT_QUEUE_RQ;
    erdma_fault_set(r, &cfg);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(object->pi, ==, 5);
    cfg.queue = ERDMA_FAULT_QUEUE_ANY;
    cfg.qpn = 10;
    erdma_fault_set(r, &cfg);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(object->pi, ==, 6);
    g_assert_cmpuint(r->fired, ==, 4);
    rule_free(r);
    erig_free(rig);
}

static void test_overrun(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    uint64_t lo, hi;

    erig_create_cq(rig, CQN, 6, 1);
    r = rule_new(rig, ERDMA_FAULT_ON_CQE, ERDMA_FAULT_OVERRUN);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_true(erig_poll_eq(rig, &rig->aeq, &lo, &hi));
    g_assert_cmpuint(extract64(lo, 16, 8), ==, ERDMA_AE_TYPE_CQ_ERR);
    g_assert_cmpuint(lo >> 32, ==, CQN);
    rule_free(r);
    erdma_cq_post(rig->e, CQN, &plain);
    g_assert_cmpuint(erdma_cq_get(rig->e, CQN)->pi, ==, 0);
    erig_free(rig);
}

static void test_dma(void)
{
    EngineRig *rig = erig_ready();
    uint64_t errors = rig->e->stats.dma_errors;
    ErdmaFaultRule *r = rule_new(rig, ERDMA_FAULT_ON_DMA, ERDMA_FAULT_FAIL);
    ErdmaFaultConfig cfg = r->cfg;
    uint64_t addr = erig_alloc(rig, 4096, 4096);
    uint8_t buf[256] = { 0 };

    cfg.direction = ERDMA_FAULT_WRITE;
    cfg.min_size = 200;
    cfg.count = 1;
    erdma_fault_set(r, &cfg);
    g_assert_true(erdma_dma_read(rig->e, addr, buf, 256));
    g_assert_true(erdma_dma_write(rig->e, addr, buf, 199));
    g_assert_false(erdma_dma_write(rig->e, addr, buf, 200));
    g_assert_true(erdma_dma_write(rig->e, addr, buf, 200));
    g_assert_cmpuint(rig->e->stats.dma_errors, ==, errors + 1);
    rule_free(r);
    erig_free(rig);
}

/* The shell's points */
static void test_version_init(void)
{
    EngineRig *rig = erig_ready();
    ErdmaFaultRule *r;
    uint64_t delay;

    g_assert_false(erdma_engine_fault_version(rig->e));
    g_assert_true(erdma_engine_fault_init(rig->e, &delay));
    g_assert_cmpuint(delay, ==, 0);
    r = rule_new(rig, ERDMA_FAULT_ON_VERSION, ERDMA_FAULT_ABSENT);
    g_assert_true(erdma_engine_fault_version(rig->e));
    rule_free(r);
    r = rule_new(rig, ERDMA_FAULT_ON_INIT, ERDMA_FAULT_DELAY);
    g_assert_true(erdma_engine_fault_init(rig->e, &delay));
    g_assert_cmpuint(delay, ==, 5 * MS);
    rule_free(r);
    r = rule_new(rig, ERDMA_FAULT_ON_INIT, ERDMA_FAULT_FAIL);
    g_assert_false(erdma_engine_fault_init(rig->e, &delay));
    rule_free(r);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fault/check", test_check);
    g_test_add_func("/fault/names", test_names);
    g_test_add_func("/fault/which", test_which);
    g_test_add_func("/fault/two-rules", test_two_rules);
    g_test_add_func("/fault/device-goes", test_device_goes);
    g_test_add_func("/fault/command-fail", test_command_fail);
    g_test_add_func("/fault/command-drop", test_command_drop);
    g_test_add_func("/fault/command-duplicate", test_command_duplicate);
    g_test_add_func("/fault/command-delay", test_command_delay);
    g_test_add_func("/fault/command-delay-reset", test_command_delay_reset);
    g_test_add_func("/fault/command-aeqe", test_command_aeqe);
    g_test_add_func("/fault/cqe", test_cqe);
    g_test_add_func("/fault/overrun", test_overrun);
    g_test_add_func("/fault/dma", test_dma);
    g_test_add_func("/fault/version-init", test_version_init);
    return g_test_run();
}
