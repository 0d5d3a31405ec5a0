/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the transport tells of itself: each decision has its event and its
 * counter, and the numbers are those of what happened.
 */

#include "qemu/osdep.h"
#include "xport/link.h"
#include "xport-rig.h"

#define LEN     1000000
#define CE      3

/* Troubles of the wire, for data packets of end 0 by index */
typedef struct Plan {
    uint64_t lose;
    uint64_t n_lose;
    uint64_t mark;
    uint64_t n_mark;
    uint64_t delay;
    uint64_t outage_ns;         /* all are lost, from 250 us on */
    uint64_t n_stamps;
    bool is_stamping;
} Plan;

static RigFate plan_fate(XportRig *rig, RigPacket *p)
{
    Plan *plan = rig->opaque;
    RigFate fate = { 0 };
    ErdmaLinkStamp stamp = {
        .rate_bps = 10ULL * 1000 * 1000 * 1000, .time_ns = rig->now_ns,
        .link_id = 1, .tx_bytes = plan->n_stamps * 1500,
    };

    if (p->from || !p->is_data) {
        return fate;
    }
    fate.is_lost = p->data_index - plan->lose < plan->n_lose;
    fate.is_lost |= rig->now_ns - RIG_S - 250 * RIG_US < plan->outage_ns;
    if (p->data_index - plan->mark < plan->n_mark) {
        p->ecn = CE;
    }
    if (p->data_index == plan->delay) {
        fate.extra_ns = 60 * RIG_US;
    }
    if (plan->is_stamping && erdma_link_stamp(p->data, p->len, &stamp)) {
        plan->n_stamps++;
    }
    return fate;
}

static XportRig *run(Plan *plan, uint8_t cc, ErdmaXportConnInfo *info)
{
    ErdmaXportConfig cfg;
    XportRig *rig;

    rig_config(&cfg);
    cfg.initial_window = 200000;
    rig = rig_new(&cfg);
    rig->cc = cc;
    rig->opaque = plan;
    rig->fate = plan_fate;
    rig->bits_per_s = 10ULL * 1000 * 1000 * 1000;
    rig->is_blocking = true;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, LEN);
    g_assert_true(rig_run_done(rig, rig->now_ns + 10 * RIG_S));
    rig_info(rig, 0, info);
    return rig;
}

static unsigned n_events(const XportRig *rig, ErdmaXportEvent event)
{
    return rig->end[0].events[event];
}

static const Plan quiet = { .lose = -1, .mark = -1, .delay = -1 };

static void test_nothing(void)
{
    Plan plan = quiet;
    ErdmaXportConnInfo info;
    XportRig *rig = run(&plan, ERDMA_XPORT_CC_CUBIC, &info);

    g_assert_cmpuint(info.tx_delivered, ==, LEN);
    g_assert_cmpuint(info.rx_delivered, ==, 0);
    g_assert_cmpuint(info.lost + info.loss_episodes + info.ecn_episodes +
                     info.undos + info.int_samples + info.ce_echoed, ==, 0);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_CONGESTION), ==, 0);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_RECOVERED), ==, 0);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_CWND), >, 0);
    rig_info(rig, 1, &info);
    g_assert_cmpuint(info.rx_delivered, ==, LEN);
    rig_free(rig);
}

static void test_loss(void)
{
    Plan plan = { .lose = 50, .n_lose = 3, .mark = -1, .delay = -1 };
    ErdmaXportConnInfo info;
    XportRig *rig = run(&plan, ERDMA_XPORT_CC_NEWRENO, &info);

    g_assert_cmpuint(info.lost, ==, 3);
    g_assert_cmpuint(info.retransmits, ==, 3);
    g_assert_cmpuint(info.loss_episodes, ==, 1);
    g_assert_cmpuint(info.tx_delivered, ==, LEN);
    g_assert_cmpuint(rig_stats(rig, 0)->loss_episodes, ==, 1);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_CONGESTION), ==, 1);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_RECOVERED), ==, 1);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_UNDO), ==, 0);
    rig_free(rig);
}

static void test_mark(void)
{
    Plan plan = { .mark = 50, .n_mark = 4, .lose = -1, .delay = -1 };
    ErdmaXportConnInfo info;
    XportRig *rig = run(&plan, ERDMA_XPORT_CC_CUBIC, &info);

    g_assert_cmpuint(info.ce_echoed, ==, 4);
    g_assert_cmpuint(info.ecn_episodes, ==, 1);
    g_assert_cmpuint(info.loss_episodes, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 0)->ce_echoed, ==, 4);
    g_assert_cmpuint(rig_stats(rig, 0)->ecn_episodes, ==, 1);
    g_assert_cmpuint(rig_stats(rig, 1)->rx_ce, ==, 4);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_CONGESTION), ==, 1);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_RECOVERED), ==, 1);
    rig_free(rig);
}

static void test_undo(void)
{
    Plan plan = { .delay = 20, .lose = -1, .mark = -1 };
    ErdmaXportConnInfo info;
    XportRig *rig = run(&plan, ERDMA_XPORT_CC_CUBIC, &info);

    g_assert_cmpuint(info.spurious, ==, 1);
    g_assert_cmpuint(info.loss_episodes, ==, 1);
    g_assert_cmpuint(info.undos, ==, 1);
    g_assert_cmpuint(rig_stats(rig, 0)->undos, ==, 1);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_UNDO), ==, 1);
    rig_free(rig);
}

/* All that is in flight, the probe that follows, and what the timeout sends */
static void test_timeout(void)
{
    Plan plan = { .outage_ns = 5 * RIG_MS, .lose = -1, .mark = -1,
                  .delay = -1 };
    ErdmaXportConnInfo info;
    XportRig *rig = run(&plan, ERDMA_XPORT_CC_NEWRENO, &info);

    g_assert_cmpuint(info.rtos, >, 0);
    g_assert_cmpuint(info.probes, >, 0);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_RTO), ==, info.rtos);
    g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_CONGESTION), ==,
                     info.rtos + info.loss_episodes);
    rig_free(rig);
}

static void test_rounds(void)
{
    static const uint8_t ccs[] = {
        ERDMA_XPORT_CC_HPCC_RTT, ERDMA_XPORT_CC_HPCC_ECN,
        ERDMA_XPORT_CC_HPCC_INT,
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ccs); i++) {
        Plan plan = { .lose = -1, .mark = -1, .delay = -1,
                      .is_stamping = true };
        bool is_ecn = ccs[i] == ERDMA_XPORT_CC_HPCC_ECN;
        bool is_int = ccs[i] == ERDMA_XPORT_CC_HPCC_INT;
        ErdmaXportConnInfo info;
        XportRig *rig = run(&plan, ccs[i], &info);

        g_assert_true(info.cc.is_hpcc);
        g_assert_cmpuint(info.cc.base_rtt_ns, ==, info.min_rtt_ns);
        if (is_ecn) {
            g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_ALPHA), >, 3);
            g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_ROUND), ==, 0);
        } else {
            g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_ROUND), >, 3);
            g_assert_cmpuint(n_events(rig, ERDMA_XPORT_EV_ALPHA), ==, 0);
        }
        if (is_int) {
            g_assert_cmpuint(info.int_samples, >, 100);
            g_assert_cmpuint(info.int_samples, <=, plan.n_stamps);
        } else {
            g_assert_cmpuint(plan.n_stamps + info.int_samples, ==, 0);
        }
        rig_free(rig);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/events/nothing", test_nothing);
    g_test_add_func("/erdma/xport/events/loss", test_loss);
    g_test_add_func("/erdma/xport/events/mark", test_mark);
    g_test_add_func("/erdma/xport/events/undo", test_undo);
    g_test_add_func("/erdma/xport/events/timeout", test_timeout);
    g_test_add_func("/erdma/xport/events/rounds", test_rounds);
    return g_test_run();
}
