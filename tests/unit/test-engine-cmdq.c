/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command queue: order, completions, events, malformed entries */

#include "qemu/osdep.h"
#include "engine-rig.h"
#include "fake-xport.h"

static unsigned n_cmdq_events(EngineRig *rig)
{
    uint64_t lo, hi;
    unsigned n = 0;

    while (erig_poll_eq(rig, &rig->cmdq_eq, &lo, &hi)) {
        g_assert_cmphex(lo & 0xfffff, ==, 0);
        n++;
    }
    return n;
}

static void ring_cmdq_eq(EngineRig *rig)
{
    erdma_engine_db_cmdq_eq(rig->e, (rig->cmdq_eq.ci & 0xffff) | 1u << 31);
    erig_run(rig);
}

static void query_fw(EngineRig *rig, ErigReq *req)
{
    erig_req(rig, req, 1, 2);
}

static void test_order(void)
{
    EngineRig *rig = erig_ready();
    uint16_t first = rig->cmd_pi;
    ErigCmdCqe cqe;
    ErigReq req;
    unsigned i;

    /* As many as a driver can have outstanding: all slots */
    for (i = 0; i < 128; i++) {
        erig_req(rig, &req, 1, i % 2 ? 2 : 200 + i % 8);
        erig_post(rig, &req);
    }
    erig_ring_cmdq(rig);
    erig_run(rig);
    for (i = 0; i < 128; i++) {
        g_assert_true(erig_poll_cmd(rig, &cqe));
        g_assert_cmpuint(cqe.index, ==, (uint16_t)(first + i * 4));
        g_assert_cmpuint(cqe.opcode, ==, i % 2 ? 2 : 200 + i % 8);
        g_assert_cmpuint(cqe.status == 0, ==, i % 2);
    }
    g_assert_false(erig_poll_cmd(rig, &cqe));
    erig_free(rig);
}

/* The index in the completion runs freely through 16 bits. */
static void test_wrap(unsigned wqebbs)
{
    EngineRig *rig = erig_new();
    ErigCmdCqe cqe;
    ErigReq req;
    unsigned i;

    rig->wqebbs = wqebbs;
    rig->init.cmdq_depth = 512;
    rig->init.cmdq_eq_depth = 128;
    rig->init.aeq_depth = 64;
    erig_start(rig);
    g_assert_true(erig_init(rig));
    for (i = 0; i < 70000 / wqebbs; i++) {
        query_fw(rig, &req);
        g_assert_cmpuint(erig_cmd(rig, &req, &cqe), ==, 0);
        g_assert_cmphex(cqe.resp0, ==, 0x20022);
        g_array_set_size(rig->trace, 0);
    }
    erig_free(rig);
}

/* A full queue is worked off in turns, what is expensive in smaller ones. */
static void test_turns(void)
{
    EngineRig *rig = erig_new();
    uint64_t before;
    unsigned i, n_left;
    ErigReq req;

    rig->init.cmdq_depth = 4096;
    rig->init.cmdq_eq_depth = 4096;
    rig->init.aeq_depth = 64;
    erig_start(rig);
    g_assert_true(erig_init(rig));
    for (i = 0; i < 960 + 24; i++) {
        if (i < 960) {
            query_fw(rig, &req);
        } else {
            erig_req(rig, &req, 0, ERDMA_CMD_DESTROY_QP);
        }
        erig_post(rig, &req);
    }
    erig_ring_cmdq(rig);
    for (n_left = 960 + 24; n_left; n_left -= rig->e->stats.cmds - before) {
        before = rig->e->stats.cmds;
        erdma_engine_run(rig->e, rig->now);
        g_assert_cmpuint(rig->e->stats.cmds, >, before);
        g_assert_cmpuint(rig->e->stats.cmds - before, <=,
                         n_left > 24 ? 32 : 1);
    }
    erig_free(rig);
}

static void test_wrap_4(void)
{
    test_wrap(4);
}

/* Entries that lie at both ends of the ring */
static void test_wrap_3(void)
{
    test_wrap(3);
}

static void test_no_event_before_arm(void)
{
    EngineRig *rig = erig_ready();

    /* Three CREATE_EQs were completed, and polled for. */
    g_assert_cmpuint(rig->n_notify[0], ==, 0);
    g_assert_cmpuint(n_cmdq_events(rig), ==, 0);
    g_assert_cmpuint(rig->e->cmdq.cq.pi, ==, 3);
    /* The first arm, with all of them consumed, is no event either. */
    erig_arm_cmdq(rig);
    erig_run(rig);
    g_assert_cmpuint(n_cmdq_events(rig), ==, 0);
    g_assert_cmpuint(rig->n_notify[0], ==, 0);
    erig_free(rig);
}

static void test_event(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req;
    unsigned i;

    erig_arm_cmdq(rig);
    for (i = 1; i < 300; i++) {
        query_fw(rig, &req);
        erig_post(rig, &req);
        erig_ring_cmdq(rig);
        erig_run(rig);
        g_assert_cmpuint(rig->n_notify[0], ==, i);
        g_assert_cmpuint(n_cmdq_events(rig), ==, 1);
        g_assert_true(erig_poll_cmd(rig, &cqe));
        erig_arm_cmdq(rig);
        ring_cmdq_eq(rig);
    }
    /* Several completions, one event */
    for (i = 0; i < 5; i++) {
        query_fw(rig, &req);
        erig_post(rig, &req);
    }
    erig_ring_cmdq(rig);
    erig_run(rig);
    g_assert_cmpuint(n_cmdq_events(rig), ==, 1);
    erig_free(rig);
}

/* Nobody looks again after arming: the device has to. */
static void test_fire_on_arm(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req;

    erig_arm_cmdq(rig);
    query_fw(rig, &req);
    erig_post(rig, &req);
    erig_ring_cmdq(rig);
    erig_run(rig);
    g_assert_cmpuint(n_cmdq_events(rig), ==, 1);
    g_assert_true(erig_poll_cmd(rig, &cqe));
    /* One more arrives behind the driver's last look. */
    erig_post(rig, &req);
    erig_ring_cmdq(rig);
    erig_run(rig);
    erig_arm_cmdq(rig);
    ring_cmdq_eq(rig);
    g_assert_cmpuint(n_cmdq_events(rig), ==, 1);
    g_assert_cmpuint(rig->n_notify[0], ==, 2);
    g_assert_true(erig_poll_cmd(rig, &cqe));
    erig_free(rig);
}

static void test_every_opcode_completes(void)
{
    EngineRig *rig = erig_ready();
    unsigned sub, op;
    ErigReq req;

    for (sub = 0; sub < 4; sub++) {
        for (op = 0; op < 256; op++) {
            uint8_t status;

            erig_req(rig, &req, sub, op);
            memset(req.raw + 8, 0xff, sizeof(req.raw) - 8);
            status = erig_cmd(rig, &req, NULL);
            if (sub > 1 || op > 9 || (sub == 0 && op == 7) ||
                (sub == 1 && (op == 6 || op == 7))) {
                /* RoCEv2's commands among them */
                g_assert_cmpuint(status, ==, ERDMA_CMD_ERR_OPCODE);
            } else if (!(sub == 0 && op == 0) && !(sub == 1 && op == 2) &&
                       !(sub == 1 && op == 3) && !(sub == 1 && op == 8)) {
                g_assert_cmpuint(status, !=, 0);
            } else {
                g_assert_cmpuint(status, ==, 0);
            }
        }
    }
    g_assert_cmpuint(rig->n_events[ERDMA_EV_CMD], ==, 1024);
    g_assert_cmpuint(rig->n_events[ERDMA_EV_CMD_REFUSED], ==, 1020);
    g_assert_cmpuint(rig->e->stats.cmds_refused, ==, 1020);
    erig_free(rig);
}

static void test_doorbell_out_of_range(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;

    query_fw(rig, &req);
    erig_forget_trace(rig);
    /* One more than the ring holds, then backwards */
    erdma_engine_db_cmdq_sq(rig->e, (uint16_t)(rig->cmd_pi + 513));
    erdma_engine_db_cmdq_sq(rig->e, (uint16_t)(rig->cmd_pi - 4));
    erig_run(rig);
    g_assert_cmpuint(rig->n_guest_errors, ==, 2);
    g_assert_cmpuint(rig->n_reads + rig->n_writes, ==, 0);
    g_assert_cmpuint(rig->n_kicks, ==, 0);
    /* Between two doorbells, back to what was not fetched yet */
    erig_post(rig, &req);
    erig_post(rig, &req);
    erig_ring_cmdq(rig);
    erdma_engine_db_cmdq_sq(rig->e, (uint16_t)(rig->cmd_pi - 4));
    erig_run(rig);
    g_assert_cmpuint(rig->e->stats.cmds, ==, 3 + 2);
    /* And it lives. */
    rig->cmd_ci += 2;
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_free(rig);
}

/* A count that reaches beyond what was posted */
static void test_count_beyond_posted(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;
    unsigned n;

    for (n = 2; n <= 8; n++) {
        query_fw(rig, &req);
        erig_set64(&req, 0, 1 << 24 | 2 << 16 | (uint64_t)(n - 1) << 52);
        rig->wqebbs = 1;
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==,
                         ERDMA_CMD_ERR_FORMAT);
    }
    rig->wqebbs = 4;
    query_fw(rig, &req);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_free(rig);
}

/* Five to eight WQEBBs, all posted: refused, and skipped as a whole */
static void test_count_too_big(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req;
    unsigned n;

    for (n = 5; n <= 8; n++) {
        uint16_t first = rig->cmd_pi;

        query_fw(rig, &req);
        erig_set64(&req, 0, 1 << 24 | 2 << 16 | (uint64_t)(n - 1) << 52);
        rig->wqebbs = 1;
        erig_post(rig, &req);
        rig->cmd_pi = first + n;
        rig->wqebbs = 4;
        query_fw(rig, &req);
        erig_post(rig, &req);
        erig_ring_cmdq(rig);
        erig_run(rig);
        g_assert_true(erig_poll_cmd(rig, &cqe));
        g_assert_cmpuint(cqe.status, ==, ERDMA_CMD_ERR_FORMAT);
        g_assert_cmpuint(cqe.index, ==, first);
        g_assert_true(erig_poll_cmd(rig, &cqe));
        g_assert_cmpuint(cqe.status, ==, 0);
        g_assert_cmpuint(cqe.index, ==, first + n);
        g_assert_false(erig_poll_cmd(rig, &cqe));
    }
    erig_free(rig);
}

/* Fields that the entry's count does not cover are not the driver's. */
static void test_too_short(void)
{
    static const uint8_t need_two[] = { 1, 3, 4, 8 };
    EngineRig *rig = erig_ready();
    ErigReq req;
    unsigned i;

    for (i = 0; i < sizeof(need_two); i++) {
        erig_req(rig, &req, 0, need_two[i]);
        memset(req.raw + 8, 0xff, 64);
        if (need_two[i] == 8) {
            erig_set32(&req, 12, 2 << 6);
        }
        rig->wqebbs = 1;
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==,
                         ERDMA_CMD_ERR_FORMAT);
        rig->wqebbs = 2;
        g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==,
                         ERDMA_CMD_ERR_INDEX);
    }
    /* One is enough for what has its fields in there. */
    rig->wqebbs = 1;
    erig_req(rig, &req, 0, 0);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_req_create_eq(rig, &req, 5);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_free(rig);
}

static void test_unreadable(void)
{
    EngineRig *rig = erig_ready();
    ErigCmdCqe cqe;
    ErigReq req;
    uint16_t first;

    /* The second half of an entry: it fails, the next one does not. */
    query_fw(rig, &req);
    erig_post(rig, &req);
    first = rig->cmd_pi;
    erig_post(rig, &req);
    rig->hole = rig->init.cmdq_sq_addr + (uint16_t)(first - 4) * 32 + 64;
    rig->hole_len = 1;
    erig_ring_cmdq(rig);
    erig_run(rig);
    g_assert_true(erig_poll_cmd(rig, &cqe));
    g_assert_cmpuint(cqe.status, ==, ERDMA_CMD_ERR_DMA);
    g_assert_true(erig_poll_cmd(rig, &cqe));
    g_assert_cmpuint(cqe.status, ==, 0);
    g_assert_cmpuint(cqe.index, ==, first);
    /* The head of an entry: its length is unknown. */
    first = rig->cmd_pi;
    erig_post(rig, &req);
    erig_post(rig, &req);
    rig->hole = rig->init.cmdq_sq_addr + first * 32;
    rig->hole_len = 1;
    erig_ring_cmdq(rig);
    erig_run(rig);
    g_assert_true(erig_poll_cmd(rig, &cqe));
    g_assert_cmpuint(cqe.status, ==, ERDMA_CMD_ERR_DMA);
    g_assert_cmpuint(cqe.index, ==, first);
    g_assert_false(erig_poll_cmd(rig, &cqe));
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    erig_free(rig);
}

static void test_unwritable_cq(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;
    unsigned i;

    erig_arm_cmdq(rig);
    query_fw(rig, &req);
    rig->hole = rig->init.cmdq_cq_addr;
    rig->hole_len = 512 * 32;
    for (i = 0; i < 10; i++) {
        erig_post(rig, &req);
        erig_ring_cmdq(rig);
        erig_run(rig);
    }
    g_assert_cmpuint(rig->n_guest_errors, ==, 1);
    g_assert_cmpuint(rig->n_notify[0], ==, 0);
    g_assert_cmpuint(n_cmdq_events(rig), ==, 0);
    erig_free(rig);
}

/* Whatever the guest writes: each command completes, once. */
static void test_garbage(void)
{
    EngineRig *rig = erig_ready();
    ErigReq req;
    unsigned i, j;

    for (i = 0; i < 30000; i++) {
        unsigned op = g_rand_int_range(rig->rand, 0, 20);

        erig_req(rig, &req, g_rand_int_range(rig->rand, 0, 2), op);
        /* Mostly small numbers, so that checks let something through */
        for (j = 2; j < 32; j++) {
            static const uint32_t masks[] = {
                0, 0x3, 0xff, 0x30ff000f, 0xff00003f, UINT32_MAX,
            };

            erig_set32(&req, j * 4, g_rand_int(rig->rand) &
                       masks[g_rand_int_range(rig->rand, 0, 6)]);
        }
        rig->wqebbs = g_rand_int_range(rig->rand, 1, 5);
        erig_cmd(rig, &req, NULL);
        g_array_set_size(rig->trace, 0);
        if (i % 64 == 0) {
            erdma_engine_db_queue(rig->e, i / 64 % 3, g_rand_int(rig->rand) |
                                  (uint64_t)(i % 5) << 32);
        }
    }
    g_assert_cmpuint(rig->e->stats.cmds, ==, 3 + 30000);
    /* The test is about something only if some of them succeed. */
    g_assert_cmpuint(rig->e->mrs.count, >, 10);
    g_assert_cmpuint(rig->e->stats.cmds_refused, <, 29000);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/cmdq/turns", test_turns);
    g_test_add_func("/engine/cmdq/order", test_order);
    g_test_add_func("/engine/cmdq/wrap-4", test_wrap_4);
    g_test_add_func("/engine/cmdq/wrap-3", test_wrap_3);
    g_test_add_func("/engine/cmdq/no-event-before-arm",
                    test_no_event_before_arm);
    g_test_add_func("/engine/cmdq/event", test_event);
    g_test_add_func("/engine/cmdq/fire-on-arm", test_fire_on_arm);
    g_test_add_func("/engine/cmdq/every-opcode-completes",
                    test_every_opcode_completes);
    g_test_add_func("/engine/cmdq/doorbell-out-of-range",
                    test_doorbell_out_of_range);
    g_test_add_func("/engine/cmdq/count-beyond-posted",
                    test_count_beyond_posted);
    g_test_add_func("/engine/cmdq/count-too-big", test_count_too_big);
    g_test_add_func("/engine/cmdq/too-short", test_too_short);
    g_test_add_func("/engine/cmdq/unreadable", test_unreadable);
    g_test_add_func("/engine/cmdq/unwritable-cq", test_unwritable_cq);
    g_test_add_func("/engine/cmdq/garbage", test_garbage);
    return g_test_run();
}
