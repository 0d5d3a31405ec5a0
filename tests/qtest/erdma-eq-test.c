/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: event queues, interrupts, and how the
 * command queue uses them.
 *
 * Completions to make events of come from queue pairs in the flushing state:
 * every work request posted there completes at once.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "libqos/erdma.h"

/* A CQ, and a QP that makes a completion in it on demand */
typedef struct Source {
    QErdmaCq cq;
    QErdmaQp qp;
} Source;

static void source_init(QErdma *d, Source *s, unsigned eqn)
{
    *s = (Source) { .cq.eqn = eqn, .cq.log2 = 8 };
    g_assert_cmpint(qerdma_create_cq(d, &s->cq), ==, 0);
    s->qp.scq = s->qp.rcq = &s->cq;
    g_assert_cmpint(qerdma_create_qp(d, &s->qp), ==, 0);
    g_assert_cmpint(qerdma_modify_qp(&s->qp, ERDMA_QPS_ERROR), ==, 0);
}

static void source_complete(Source *s)
{
    qerdma_post_recv(&s->qp, 0, 0, 0);
}

/* Takes what is there, as a driver does before it arms. */
static void source_drain(Source *s)
{
    QErdmaWc wc;

    while (qerdma_poll_cq(&s->cq, &wc)) {
        g_assert_cmpint(wc.status, ==, ERDMA_WC_FLUSH_ERR);
    }
}

static void expect_ceqe(QErdma *d, QErdmaEq *eq, const QErdmaCq *cq)
{
    uint64_t entry;

    g_assert_true(qerdma_eq_poll(d, eq, &entry));
    g_assert_cmphex(FIELD_EX64(entry, ERDMA_CEQE, CQN), ==, cq->cqn);
    g_assert_cmpint(FIELD_EX64(entry, ERDMA_CEQE, DB), ==, 0);
}

static void expect_no_ceqe(QErdma *d, QErdmaEq *eq)
{
    uint64_t entry;

    g_assert_false(qerdma_eq_poll(d, eq, &entry));
}

/* A CEQ interrupts before its first doorbell, and once. */
static void test_armed_at_creation(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s;

    qerdma_start(d, NULL);
    source_init(d, &s, 1);
    qerdma_arm_cq(&s.cq, false);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));

    source_complete(&s);
    g_assert_true(qerdma_wait_irq(d, 1));
    expect_ceqe(d, &d->ceqs[1], &s.cq);
    expect_no_ceqe(d, &d->ceqs[1]);

    /* no second event without a second arm */
    source_complete(&s);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));
    expect_no_ceqe(d, &d->ceqs[1]);
    qerdma_quit(d, NULL);
}

/* An event on a disarmed queue is written, but does not interrupt. */
static void test_disarmed(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    Source s;

    qerdma_start(d, NULL);
    source_init(d, &s, 1);
    qerdma_arm_cq(&s.cq, false);
    source_complete(&s);
    g_assert_true(qerdma_wait_irq(d, 1));
    expect_ceqe(d, &d->ceqs[1], &s.cq);

    source_drain(&s);
    qerdma_arm_cq(&s.cq, false);
    source_complete(&s);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));

    /* the doorbell says that only one was taken: interrupt now */
    qerdma_eq_db(d, &d->ceqs[1]);
    g_assert_true(qerdma_wait_irq(d, 1));
    expect_ceqe(d, &d->ceqs[1], &s.cq);

    /* everything was taken: no interrupt, but armed */
    qerdma_eq_db(d, &d->ceqs[1]);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));
    source_drain(&s);
    qerdma_arm_cq(&s.cq, false);
    source_complete(&s);
    g_assert_true(qerdma_wait_irq(d, 1));
    qerdma_quit(d, NULL);
}

/* Ringing with nothing new must not interrupt, however often. */
static void test_no_storm(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    int i;

    qerdma_start(d, NULL);
    for (i = 0; i < 10; i++) {
        qerdma_eq_db(d, &d->cmd_eq);
        qerdma_eq_db(d, &d->aeq);
        qerdma_eq_db(d, &d->ceqs[1]);
        qerdma_settle(d);
        g_assert_false(qerdma_irq(d, 0));
        g_assert_false(qerdma_irq(d, 1));
    }
    qerdma_quit(d, NULL);
}

/* CEQ n uses vector n and the doorbell at 0x100 + 8n, all of them. */
static void test_vectors(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .n_ceqs = ERDMA_MAX_CEQS, .ceq_log2 = 8 };
    g_autofree Source *s = g_new0(Source, ERDMA_MAX_VECTORS);
    unsigned i, j;

    qerdma_start(d, &opt);
    for (i = 1; i < ERDMA_MAX_VECTORS; i++) {
        source_init(d, &s[i], i);
        qerdma_arm_cq(&s[i].cq, false);
    }
    for (i = 1; i < ERDMA_MAX_VECTORS; i++) {
        source_complete(&s[i]);
        g_assert_true(qerdma_wait_irq(d, i));
        for (j = 0; j < ERDMA_MAX_VECTORS; j++) {
            g_assert_false(qerdma_irq(d, j));
        }
        expect_ceqe(d, &d->ceqs[i], &s[i].cq);
        qerdma_eq_db(d, &d->ceqs[i]);
    }
    for (i = 1; i < ERDMA_MAX_VECTORS; i++) {
        source_drain(&s[i]);
        qerdma_arm_cq(&s[i].cq, false);
        source_complete(&s[i]);
        g_assert_true(qerdma_wait_irq(d, i));
    }
    qerdma_quit(d, NULL);
}

/* A masked vector is remembered and delivered when it is unmasked. */
static void test_masked(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QPCIDevice *pci = d->pci;
    uint64_t ctrl = pci->msix_table_off + 1 * 16 + 12;
    Source s;

    qerdma_start(d, NULL);
    source_init(d, &s, 1);
    qpci_io_writel(pci, pci->msix_table_bar, ctrl, 1);
    qerdma_arm_cq(&s.cq, false);
    source_complete(&s);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));
    g_assert_true(qpci_msix_pending(pci, 1));
    qpci_io_writel(pci, pci->msix_table_bar, ctrl, 0);
    g_assert_true(qerdma_wait_irq(d, 1));
    g_assert_false(qpci_msix_pending(pci, 1));
    qerdma_quit(d, NULL);
}

/*
 * The driver's handler takes sixteen events and rings; the rest must cause
 * the next interrupt.
 */
static void test_burst(void)
{
    enum { N = 40 };
    QErdma *d = qerdma_boot_one(NULL);
    g_autofree Source *s = g_new0(Source, N);
    unsigned i, taken = 0;
    uint64_t entry;

    qerdma_start(d, NULL);
    for (i = 0; i < N; i++) {
        source_init(d, &s[i], 1);
        qerdma_arm_cq(&s[i].cq, false);
    }
    for (i = 0; i < N; i++) {
        source_complete(&s[i]);
    }
    while (taken < N) {
        g_assert_true(qerdma_wait_irq(d, 1));
        for (i = 0; i < 16 && qerdma_eq_poll(d, &d->ceqs[1], &entry); i++) {
            g_assert_cmphex(FIELD_EX64(entry, ERDMA_CEQE, CQN), ==,
                            s[taken].cq.cqn);
            taken++;
        }
        qerdma_eq_db(d, &d->ceqs[1]);
    }
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));
    expect_no_ceqe(d, &d->ceqs[1]);
    qerdma_quit(d, NULL);
}

/* Events that do not fit wait for a doorbell, in order; none is lost. */
static void test_full(void)
{
    enum { N = 20 };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .ceq_log2 = 3 };
    g_autofree Source *s = g_new0(Source, N);
    unsigned i, taken = 0;
    uint64_t entry;

    qerdma_start(d, &opt);
    for (i = 0; i < N; i++) {
        source_init(d, &s[i], 1);
        qerdma_arm_cq(&s[i].cq, false);
    }
    for (i = 0; i < N; i++) {
        source_complete(&s[i]);
    }
    while (taken < N) {
        unsigned before = taken;

        g_assert_true(qerdma_wait_irq(d, 1));
        while (qerdma_eq_poll(d, &d->ceqs[1], &entry)) {
            g_assert_cmphex(FIELD_EX64(entry, ERDMA_CEQE, CQN), ==,
                            s[taken].cq.cqn);
            taken++;
        }
        g_assert_cmpuint(taken - before, <=, 8);
        qerdma_eq_db(d, &d->ceqs[1]);
    }
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));
    qerdma_quit(d, NULL);
}

/* A CQ that is destroyed takes its waiting event with it. */
static void test_full_destroy(void)
{
    enum { N = 12 };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .ceq_log2 = 3 };
    g_autofree Source *s = g_new0(Source, N);
    unsigned i;

    qerdma_start(d, &opt);
    for (i = 0; i < N; i++) {
        source_init(d, &s[i], 1);
        qerdma_arm_cq(&s[i].cq, false);
        source_complete(&s[i]);
    }
    g_assert_true(qerdma_wait_irq(d, 1));
    qerdma_settle(d);
    g_assert_cmpint(qerdma_destroy_qp(&s[9].qp), ==, 0);
    g_assert_cmpint(qerdma_destroy_cq(&s[9].cq), ==, 0);
    for (i = 0; i < 8; i++) {
        expect_ceqe(d, &d->ceqs[1], &s[i].cq);
    }
    expect_no_ceqe(d, &d->ceqs[1]);
    qerdma_eq_db(d, &d->ceqs[1]);
    g_assert_true(qerdma_wait_irq(d, 1));
    expect_ceqe(d, &d->ceqs[1], &s[8].cq);
    expect_ceqe(d, &d->ceqs[1], &s[10].cq);
    expect_ceqe(d, &d->ceqs[1], &s[11].cq);
    expect_no_ceqe(d, &d->ceqs[1]);
    qerdma_quit(d, NULL);
}

/* Slots and phases wrap; bits 23:16 of a doorbell's CI say nothing. */
static void test_wrap(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .ceq_log2 = 2 };
    QErdmaEq *eq = &d->ceqs[1];
    Source s;
    unsigned i;

    qerdma_start(d, &opt);
    source_init(d, &s, 1);
    for (i = 0; i < 50; i++) {
        source_drain(&s);
        qerdma_arm_cq(&s.cq, false);
        source_complete(&s);
        g_assert_true(qerdma_wait_irq(d, 1));
        expect_ceqe(d, eq, &s.cq);
        qerdma_write64(d, eq->db, 1u << 31 | (i & 0xff) << 16 | eq->ci);
        qerdma_settle(d);
        g_assert_false(qerdma_irq(d, 1));
    }
    qerdma_quit(d, NULL);
}

/* ---- vector 0 and the command queue ---- */

/* No event before the first arm, although completions are written. */
static void test_cmd_before_arm(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    uint64_t entry;

    qerdma_start(d, &(QErdmaOptions) { .is_polled = true, .n_ceqs = 8 });
    g_assert_false(qerdma_irq(d, 0));
    g_assert_false(qerdma_eq_poll(d, &d->cmd_eq, &entry));

    /* all of them were consumed: the arm itself is no event either */
    d->has_events = true;
    qerdma_cmd_arm(d);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 0));
    g_assert_false(qerdma_eq_poll(d, &d->cmd_eq, &entry));
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
    qerdma_quit(d, NULL);
}

/* A completion that was written before the arm, and not taken, is one. */
static void test_cmd_fire_on_arm(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCmd cmd;
    QErdmaDone done;
    uint64_t entry;

    qerdma_start(d, &(QErdmaOptions) { .is_polled = true });
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 0));
    qerdma_cmd_arm(d);
    g_assert_true(qerdma_wait_irq(d, 0));
    g_assert_true(qerdma_eq_poll(d, &d->cmd_eq, &entry));
    g_assert_false(qerdma_eq_poll(d, &d->cmd_eq, &entry));
    g_assert_true(qerdma_cmd_poll(d, &done));
    qerdma_quit(d, NULL);
}

/*
 * With many commands under way the number of events may vary, but an event
 * without a completion stops the driver of Linux 6.1 for good.
 */
static void test_cmd_no_spurious(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .flavor = QERDMA_LINUX_6_1 };
    QErdmaCmd cmd;
    unsigned round, i;

    qerdma_start(d, &opt);
    for (round = 0; round < 20; round++) {
        unsigned n = 1 + round * 5 % 64;
        unsigned seen = 0;

        for (i = 0; i < n; i++) {
            qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_QUERY_DEVICE);
            qerdma_cmd_queue(d, &cmd);
            qerdma_cmd_ring_db(d);
        }
        while (seen < n) {
            unsigned now;

            g_assert_true(qerdma_wait_irq(d, 0));
            now = qerdma_vector0(d);
            g_assert_cmpuint(now, >, 0);
            seen += now;
        }
        g_queue_clear_full(&d->done, g_free);
    }
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 0));
    qerdma_quit(d, NULL);
}

/* More events than the command EQ has entries, over time */
static void test_cmd_eq_wrap(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .cmdq_eq_depth = 2, .aeq_depth = 2 };
    unsigned i;

    qerdma_start(d, &opt);
    for (i = 0; i < 20; i++) {
        g_assert_cmpint(qerdma_query_device(d), ==, 0);
    }
    qerdma_quit(d, NULL);
}

/* Asynchronous events that do not fit wait as well, in order. */
static void test_aeq_full(void)
{
    enum { N = 7 };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaOptions opt = { .aeq_depth = 2 };
    QErdmaCq cq = { 0 };
    QErdmaQp qps[N] = { 0 };
    unsigned i;

    qerdma_start(d, &opt);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    for (i = 0; i < N; i++) {
        qps[i].scq = qps[i].rcq = &cq;
        g_assert_cmpint(qerdma_create_qp(d, &qps[i]), ==, 0);
    }
    for (i = 0; i < N; i++) {
        /* more than the queue holds */
        qps[i].rq_pi = 1000;
        qerdma_rq_db(&qps[i], 0);
    }
    qerdma_settle(d);
    for (i = 0; i < N; i++) {
        qerdma_expect_aeqe(d, ERDMA_AE_TYPE_QP_FATAL, qps[i].qpn);
    }
    qerdma_expect_no_aeqe(d);
    qerdma_quit(d, NULL);
}

/* Nothing of a destroyed EQ, or of the CQ behind it, is written any more. */
static void test_destroy(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    uint64_t entry;
    Source s;

    qerdma_start(d, NULL);
    source_init(d, &s, 1);
    qerdma_arm_cq(&s.cq, false);
    g_assert_cmpint(qerdma_destroy_eq(d, 1), ==, 0);
    source_complete(&s);
    qerdma_eq_db(d, &d->ceqs[1]);
    qerdma_settle(d);
    g_assert_false(qerdma_irq(d, 1));
    g_assert_false(qerdma_eq_poll(d, &d->ceqs[1], &entry));
    qerdma_quit(d, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/eq/armed-at-creation", test_armed_at_creation);
    qtest_add_func("/erdma/eq/disarmed", test_disarmed);
    qtest_add_func("/erdma/eq/no-storm", test_no_storm);
    qtest_add_func("/erdma/eq/vectors", test_vectors);
    qtest_add_func("/erdma/eq/masked", test_masked);
    qtest_add_func("/erdma/eq/burst", test_burst);
    qtest_add_func("/erdma/eq/full", test_full);
    qtest_add_func("/erdma/eq/full-destroy", test_full_destroy);
    qtest_add_func("/erdma/eq/wrap", test_wrap);
    qtest_add_func("/erdma/eq/cmd-before-arm", test_cmd_before_arm);
    qtest_add_func("/erdma/eq/cmd-fire-on-arm", test_cmd_fire_on_arm);
    qtest_add_func("/erdma/eq/cmd-no-spurious", test_cmd_no_spurious);
    qtest_add_func("/erdma/eq/cmd-eq-wrap", test_cmd_eq_wrap);
    qtest_add_func("/erdma/eq/aeq-full", test_aeq_full);
    qtest_add_func("/erdma/eq/destroy", test_destroy);
    return g_test_run();
}
