/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loss recovery between two ends, to the microsecond where there is a formula
 * for it, and the same at every starting number.
 */

#include "qemu/osdep.h"
#include "xport/wire.h"
#include "xport-rig.h"

/* Packets to lose: data packets of end 0, or acks of end 1, by index */
typedef struct Plan {
    uint64_t data;
    uint64_t ack_from;
    uint64_t n_acks;
    uint64_t ack_seen;
    GRand *rand;
    double loss;
    double reorder;
} Plan;

static RigFate plan_fate(XportRig *rig, RigPacket *p)
{
    Plan *plan = rig->opaque;
    RigFate fate = { 0 };

    if (p->from == 0 && p->is_data && p->data_index == plan->data) {
        fate.is_lost = true;
    }
    if (p->from == 1 && p->is_ack && plan->n_acks) {
        uint64_t i = plan->ack_seen++;

        fate.is_lost = i >= plan->ack_from &&
                       i - plan->ack_from < plan->n_acks;
    }
    if (plan->rand) {
        fate.is_lost |= g_rand_double(plan->rand) < plan->loss;
        if (g_rand_double(plan->rand) < plan->reorder) {
            fate.extra_ns = 3 * rig->delay_ns;
        }
    }
    return fate;
}

/* 100 packets of 1000 bytes at once over 10 Gbit/s and 100 us */
static XportRig *hundred_packets(Plan *plan, uint8_t cc)
{
    ErdmaXportConfig cfg;
    XportRig *rig;

    rig_config(&cfg);
    cfg.mtu = 1000;
    cfg.initial_window = 1000000;
    rig = rig_new(&cfg);
    rig->cc = cc;
    rig->bits_per_s = 10ULL * 1000 * 1000 * 1000;
    rig->is_blocking = true;
    rig->opaque = plan;
    rig_open_both(rig);
    plan->ack_seen = 0;
    rig->fate = plan_fate;
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 924 + 99 * 944);
    return rig;
}

static double run_us(XportRig *rig)
{
    uint64_t start_ns = rig->now_ns;

    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    return (rig->now_ns - start_ns) / 1e3;
}

static void assert_near(double value, double expected, double tolerance)
{
    if (value < expected - tolerance || value > expected + tolerance) {
        g_error("%f is not %f +- %f", value, expected, tolerance);
    }
}

static void test_lossless(void)
{
    Plan plan = { .data = -1 };
    XportRig *rig = hundred_packets(&plan, ERDMA_XPORT_CC_NONE);

    assert_near(run_us(rig), 180, 1);
    g_assert_cmpuint(rig->end[0].n_data, ==, 100);
    rig_free(rig);
}

/* (k + 3) * serialisation + two round trips */
static void test_middle(void)
{
    Plan plan = { .data = 49 };
    XportRig *rig = hundred_packets(&plan, ERDMA_XPORT_CC_NONE);

    assert_near(run_us(rig), 53 * 0.8 + 200, 2);
    g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 1);
    g_assert_cmpuint(rig_stats(rig, 0)->lost, ==, 1);
    g_assert_cmpuint(rig_stats(rig, 0)->probes, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 0)->rtos, ==, 0);
    rig_free(rig);
}

/* The lossless time, two smoothed round trips, one round trip */
static void test_last(void)
{
    static const uint8_t ccs[] = {
        ERDMA_XPORT_CC_NONE, ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC,
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ccs); i++) {
        Plan plan = { .data = 99 };
        XportRig *rig = hundred_packets(&plan, ccs[i]);
        ErdmaXportConnInfo info;
        double us = run_us(rig);

        rig_info(rig, 0, &info);
        assert_near(us, 180 + 201.6 + 100, 3);
        g_assert_cmpuint(rig_stats(rig, 0)->probes, ==, 1);
        g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 1);
        g_assert_cmpuint(rig_stats(rig, 0)->rtos, ==, 0);
        /* The probe repaired it: no window was cut. */
        g_assert_cmpuint(info.cwnd, >=, 1000000);
        rig_free(rig);
    }
}

/* A message of one packet, the ack or several acks of which are lost */
static void test_last_ack(void)
{
    unsigned n;

    for (n = 1; n <= 3; n++) {
        Plan plan = { .data = -1, .n_acks = n };
        ErdmaXportConfig cfg;
        XportRig *rig;
        uint64_t start_ns;

        rig_config(&cfg);
        rig = rig_new(&cfg);
        rig->opaque = &plan;
        rig_open_both(rig);
        plan.ack_seen = 0;
        rig->fate = plan_fate;
        start_ns = rig->now_ns;
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 8);
        g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
        g_assert_cmpuint(rig->now_ns - start_ns, <,
                         (n < 2 ? 3 : 8) * cfg.rto_min_ns);
        g_assert_cmpuint(rig->end[1].n_rx_calls, ==, 1);
        rig_free(rig);
    }
}

static char *wrap_trace(uint32_t pn0)
{
    Plan plan = {
        .data = -1,
        .rand = g_rand_new_with_seed(7),
        .loss = 0.05,
        .reorder = 0.05,
    };
    XportRig *rig = rig_new(NULL);
    char *log;
    int i;

    rig->pn0[0] = rig->pn0[1] = pn0;
    rig->opaque = &plan;
    rig->fate = plan_fate;
    rig->log = g_string_new(NULL);
    rig_open_both(rig);
    for (i = 0; i < 20; i++) {
        rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 30000);
        rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 5000);
    }
    g_assert_true(rig_run_done(rig, rig->now_ns + 100 * RIG_S));
    g_assert_cmpuint(rig_stats(rig, 0)->retransmits, >, 10);
    log = g_string_free(rig->log, false);
    rig_free(rig);
    g_rand_free(plan.rand);
    return log;
}

static void test_wrap(void)
{
    static const uint32_t starts[] = {
        0xffffff9c, 0x7fffff9c, 0xffff9c, 1, 0xffffffff,
    };
    g_autofree char *reference = wrap_trace(0);
    unsigned i;

    g_assert_cmpuint(strlen(reference), >, 10000);
    for (i = 0; i < ARRAY_SIZE(starts); i++) {
        g_autofree char *log = wrap_trace(starts[i]);

        g_assert_cmpstr(log, ==, reference);
    }
}

/* Reordering is not loss: a few mistakes teach it, then none are made. */
static void test_reordering(void)
{
    Plan plan = { .data = -1, .rand = g_rand_new_with_seed(3),
                  .reorder = 0.02 };
    XportRig *rig = rig_new(NULL);
    uint64_t spurious, lost;

    rig->opaque = &plan;
    rig->fate = plan_fate;
    rig->cc = ERDMA_XPORT_CC_NONE;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 2000000);
    g_assert_true(rig_run_done(rig, rig->now_ns + 100 * RIG_S));
    spurious = rig_stats(rig, 0)->spurious;
    lost = rig_stats(rig, 0)->lost;
    /* All of them were mistakes, except where the late ack came too late. */
    g_assert_cmpuint(spurious, >, 0);
    g_assert_cmpuint(spurious, <=, lost);
    g_assert_cmpuint(lost, <, 28);
    g_assert_cmpuint(rig_stats(rig, 0)->rtos, ==, 0);
    rig_free(rig);
    g_rand_free(plan.rand);
}

/* A mistaken loss must leave no trace in the window. */
static RigFate delay_one(XportRig *rig, RigPacket *p)
{
    RigFate fate = { 0 };

    if (p->from == 0 && p->is_data && p->data_index == 20) {
        fate.extra_ns = 60 * RIG_US;
    }
    return fate;
}

static void test_undo(void)
{
    static const uint8_t ccs[] = {
        ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC,
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ccs); i++) {
        Plan plan = { .data = -1 };
        XportRig *rig = hundred_packets(&plan, ccs[i]);
        ErdmaXportConnInfo info;

        rig->fate = delay_one;
        g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
        rig_info(rig, 0, &info);
        g_assert_cmpuint(info.lost, ==, 1);
        g_assert_cmpuint(info.spurious, ==, 1);
        g_assert_cmpuint(info.cwnd, >=, 1000000);
        rig_free(rig);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/recovery/lossless", test_lossless);
    g_test_add_func("/erdma/xport/recovery/middle", test_middle);
    g_test_add_func("/erdma/xport/recovery/last", test_last);
    g_test_add_func("/erdma/xport/recovery/last-ack", test_last_ack);
    g_test_add_func("/erdma/xport/recovery/wrap", test_wrap);
    g_test_add_func("/erdma/xport/recovery/reordering", test_reordering);
    g_test_add_func("/erdma/xport/recovery/undo", test_undo);
    return g_test_run();
}
