/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults in traffic: requests that fail, QPs that fail or fall
 * silent; and that the same faults happen again.
 */

#include "qemu/osdep.h"
#include "qp-rig.h"

#define LEN     20000

typedef struct Traffic {
    Rig *rig;
    RigQp *a;
    RigQp *b;
    uint64_t src;
    uint64_t dst;
    uint32_t src_key;
    uint32_t dst_key;
} Traffic;

static void traffic_new(Traffic *t)
{
    t->rig = rig_new();
    rig_pair(t->rig, &t->a, &t->b);
    t->src = rig_alloc(t->a->hca, LEN);
    t->dst = rig_alloc(t->b->hca, LEN);
    t->src_key = rig_mr(t->a->hca, t->src, LEN, RIG_ALL_RIGHTS);
    t->dst_key = rig_mr(t->b->hca, t->dst, LEN, RIG_ALL_RIGHTS);
}

static void traffic_free(Traffic *t)
{
    rig_qp_free(t->a);
    rig_qp_free(t->b);
    rig_free(t->rig);
}

static uint16_t write_all(Traffic *t)
{
    RigWr wr = {
        .op = ERDMA_OP_WRITE, .n_sges = 1,
        .sges = { { t->src, LEN, t->src_key } },
        .rkey = t->dst_key, .raddr = t->dst,
    };

    return rig_post_send(t->a, &wr);
}

static void rule_new(ErdmaFaultRule *r, RigHca *hca, ErdmaFaultPoint on,
                     ErdmaFaultAction action, uint64_t after)
{
    ErdmaFaultConfig cfg;

    erdma_fault_init(r);
    cfg = r->cfg;
    cfg.on = on;
    cfg.action = action;
    cfg.after = after;
    cfg.count = 1;
    cfg.status = ERDMA_WC_SEND_PDID_ERR;
    erdma_fault_set(r, &cfg);
    erdma_fault_attach(r, hca->e);
}

/* The request fails as a bad one does: those before it complete. */
static void test_wqe_fail(void)
{
    ErdmaFaultRule r;
    uint16_t index[3];
    unsigned i;
    Traffic t;

    traffic_new(&t);
    rule_new(&r, t.a->hca, ERDMA_FAULT_ON_WQE, ERDMA_FAULT_FAIL, 1);
    for (i = 0; i < 3; i++) {
        index[i] = write_all(&t);
    }
    rig_run(t.rig, RIG_S);
    rig_expect(&t.a->scq, ERDMA_OP_WRITE, 0, index[0]);
    rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_SEND_PDID_ERR, index[1]);
    rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_FLUSH_ERR, index[2]);
    rig_expect_none(&t.a->scq);
    erdma_fault_destroy(&r);
    traffic_free(&t);
}

static void test_wqe_fatal(void)
{
    ErdmaFaultRule r;
    uint16_t index;
    Traffic t;

    traffic_new(&t);
    rule_new(&r, t.a->hca, ERDMA_FAULT_ON_WQE, ERDMA_FAULT_QP_FATAL, 0);
    index = write_all(&t);
    rig_run(t.rig, RIG_S);
    g_assert_cmpint(rig_poll_aeq(t.a->hca, t.a->qpn), ==,
                    ERDMA_AE_TYPE_QP_FATAL);
    rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_FLUSH_ERR, index);
    erdma_fault_destroy(&r);
    traffic_free(&t);
}

/* Nobody hears of it but by its silence; the driver can still flush it. */
static void test_dead(ErdmaFaultPoint on)
{
    ErdmaFaultRule r;
    uint16_t index, rq;
    Traffic t;

    traffic_new(&t);
    rq = rig_post_recv(t.b, t.dst, LEN, t.dst_key);
    rule_new(&r, on == ERDMA_FAULT_ON_WQE ? t.a->hca : t.b->hca, on,
             ERDMA_FAULT_QP_DEAD, 0);
    index = write_all(&t);
    rig_run(t.rig, 60 * RIG_S);
    if (on == ERDMA_FAULT_ON_WQE) {
        rig_expect_none(&t.a->scq);
        g_assert_cmpint(rig_modify(t.a, ERDMA_QPS_ERROR, NULL), ==, 0);
        rig_run(t.rig, RIG_S);
        rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_FLUSH_ERR, index);
    } else {
        rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_RETRY_EXC_ERR, index);
        rig_expect_none(&t.b->rcq);
        g_assert_cmpint(rig_modify(t.b, ERDMA_QPS_ERROR, NULL), ==, 0);
        rig_run(t.rig, RIG_S);
        rig_expect(&t.b->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, rq);
    }
    g_assert_cmpuint(r.fired, ==, 1);
    erdma_fault_destroy(&r);
    traffic_free(&t);
}

static void test_wqe_dead(void)
{
    test_dead(ERDMA_FAULT_ON_WQE);
}

static void test_message_dead(void)
{
    test_dead(ERDMA_FAULT_ON_MESSAGE);
}

static void test_timer_dead(void)
{
    test_dead(ERDMA_FAULT_ON_TIMER);
}

static void test_message_fatal(void)
{
    ErdmaFaultRule r;
    uint16_t index;
    Traffic t;

    traffic_new(&t);
    rule_new(&r, t.b->hca, ERDMA_FAULT_ON_MESSAGE, ERDMA_FAULT_QP_FATAL, 0);
    index = write_all(&t);
    rig_run(t.rig, RIG_S);
    g_assert_cmpint(rig_poll_aeq(t.b->hca, t.b->qpn), ==,
                    ERDMA_AE_TYPE_QP_FATAL);
    rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_FLUSH_ERR, index);
    erdma_fault_destroy(&r);
    traffic_free(&t);
}

static void test_payload_dma(void)
{
    ErdmaFaultConfig cfg;
    ErdmaFaultRule r;
    uint16_t index;
    Traffic t;

    traffic_new(&t);
    rule_new(&r, t.a->hca, ERDMA_FAULT_ON_DMA, ERDMA_FAULT_FAIL, 2);
    cfg = r.cfg;
    cfg.direction = ERDMA_FAULT_READ;
    cfg.min_size = 1000;
    erdma_fault_set(&r, &cfg);
    index = write_all(&t);
    rig_run(t.rig, RIG_S);
    rig_expect(&t.a->scq, ERDMA_OP_WRITE, ERDMA_WC_GENERAL_ERR, index);
    erdma_fault_destroy(&r);
    traffic_free(&t);
}

/* FNV-1a over every completion of a run with random faults */
static uint64_t run_hash(uint32_t seed, bool is_lossy)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    ErdmaFaultConfig cfg;
    ErdmaFaultRule r;
    RigCqe cqe;
    unsigned i;
    Traffic t;

    traffic_new(&t);
    rig_seed(t.rig, 1);
    t.rig->loss_percent = is_lossy ? 5 : 0;
    rule_new(&r, t.a->hca, ERDMA_FAULT_ON_CQE, ERDMA_FAULT_STATUS, 0);
    cfg = r.cfg;
    cfg.count = 0;
    cfg.probability = 0.4;
    cfg.seed = seed;
    erdma_fault_set(&r, &cfg);
    for (i = 0; i < 30; i++) {
        write_all(&t);
        rig_run(t.rig, RIG_S);
    }
    while (rig_poll(&t.a->scq, &cqe)) {
        hash = (hash ^ (cqe.index << 8 | cqe.status)) * 0x100000001b3ull;
    }
    g_assert_cmpuint(r.matched, ==, 30);
    erdma_fault_destroy(&r);
    traffic_free(&t);
    return hash;
}

/* Same seed, same faults, whatever the wire does. */
static void test_again(void)
{
    g_assert_cmphex(run_hash(1, false), ==, run_hash(1, false));
    g_assert_cmphex(run_hash(1, false), ==, run_hash(1, true));
    g_assert_cmphex(run_hash(1, false), !=, run_hash(2, false));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fault-qp/wqe-fail", test_wqe_fail);
    g_test_add_func("/fault-qp/wqe-fatal", test_wqe_fatal);
    g_test_add_func("/fault-qp/wqe-dead", test_wqe_dead);
    g_test_add_func("/fault-qp/message-dead", test_message_dead);
    g_test_add_func("/fault-qp/timer-dead", test_timer_dead);
    g_test_add_func("/fault-qp/message-fatal", test_message_fatal);
    g_test_add_func("/fault-qp/payload-dma", test_payload_dma);
    g_test_add_func("/fault-qp/again", test_again);
    return g_test_run();
}
