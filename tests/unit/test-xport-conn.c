/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Life of a connection: what is sent arrives; a peer that is late, not ready,
 * silent, small or of another time.
 */

#include "qemu/osdep.h"
#include "xport/wire.h"
#include "xport-rig.h"

static void test_sizes(void)
{
    static const uint32_t sizes[] = {
        0, 1, 31, 96, 1424, 1425, 1444, 1500, 65536, 1048577,
    };
    XportRig *rig = rig_new(NULL);
    unsigned i, op;

    rig_open_both(rig);
    for (op = ERDMA_XPORT_OP_SEND; op < ERDMA_XPORT_OP_COUNT; op++) {
        for (i = 0; i < ARRAY_SIZE(sizes); i++) {
            rig_send(rig, 0, op, sizes[i]);
            rig_send(rig, 1, op, sizes[ARRAY_SIZE(sizes) - 1 - i]);
        }
    }
    g_assert_true(rig_run_done(rig, rig->now_ns + 10 * RIG_S));
    g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 0)->probes, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 1)->rtos, ==, 0);
    g_assert_cmpuint(rig->end[0].rx_bytes, ==, rig->end[1].rx_bytes);
    g_assert_cmpuint(rig->end[0].n_tx_room, >, 0);
    /* Nothing happens any more once everything is done. */
    rig_run(rig, rig->now_ns + RIG_S);
    g_assert_cmpuint(rig->end[0].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->end[1].next_ns, ==, ERDMA_XPORT_NEVER);
    rig_free(rig);
}

/* One end sends before the other one has opened. */
static void test_early_data(void)
{
    XportRig *rig = rig_new(NULL);
    ErdmaXportConnInfo info;
    uint64_t start_ns;

    rig_open(rig, 0);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 5000);
    rig_run(rig, rig->now_ns + 200 * RIG_US);
    g_assert_cmpuint(rig_stats(rig, 1)->drops[ERDMA_XPORT_DROP_NO_CONN], ==,
                     5);
    start_ns = rig->now_ns;
    rig_open(rig, 1);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    /* Greeting, data, ack: no timeout (1 ms) was waited for, no window cut */
    g_assert_cmpuint(rig->now_ns - start_ns, ==, 3 * rig->delay_ns);
    rig_info(rig, 0, &info);
    g_assert_cmpuint(info.cwnd, >=, 15000);
    g_assert_cmpuint(info.ssthresh, ==, UINT64_MAX);
    g_assert_cmpuint(info.rtos, ==, 0);
    rig_free(rig);
}

/* The guests' sockets counted differently: by a little is no matter. */
static void test_start(void)
{
    static const int32_t off[] = { 1, -1, 100, -100, 60000, -60000 };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(off); i++) {
        XportRig *rig = rig_new(NULL);

        rig->pn0[0] = -5;
        rig_open(rig, 0);
        rig->pn0[0] += off[i];
        rig_open(rig, 1);
        rig_run(rig, rig->now_ns + 200 * RIG_US);
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 300000);
        rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 300000);
        g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
        g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 0);
        g_assert_cmpuint(rig_stats(rig, 1)->retransmits, ==, 0);
        rig_free(rig);
    }
}

/* Receiver not ready */
typedef struct Rnr {
    unsigned n_refuse;          /* from message 1 on */
    bool is_ack_lost;
} Rnr;

static ErdmaXportRx rnr_rx(XportRig *rig, int end, uint32_t msn, uint32_t off)
{
    Rnr *rnr = rig->opaque;

    if (msn >= 1 && rnr->n_refuse) {
        rnr->n_refuse--;
        return ERDMA_XPORT_RX_NOT_READY;
    }
    return ERDMA_XPORT_RX_OK;
}

static RigFate rnr_fate(XportRig *rig, RigPacket *p)
{
    Rnr *rnr = rig->opaque;

    return (RigFate) { .is_lost = rnr->is_ack_lost && p->is_ack };
}

static void test_rnr_resume(void)
{
    Rnr rnr = { .n_refuse = 2 };
    XportRig *rig = rig_new(NULL);
    ErdmaXportConnInfo info;
    uint64_t start_ns;
    int i;

    rig->opaque = &rnr;
    rig->on_rx = rnr_rx;
    rig->fate = rnr_fate;
    rig_open_both(rig);
    for (i = 0; i < 4; i++) {
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 3000);
    }
    g_assert_false(rig_run_done(rig, rig->now_ns + 20 * RIG_MS));
    g_assert_cmpuint(rig->end[0].n_done, ==, 1);
    g_assert_cmpuint(rig->end[1].rx_msn, ==, 1);
    /* All of it was acked: held, not lost */
    rig_info(rig, 0, &info);
    g_assert_cmpuint(info.inflight, ==, 0);
    g_assert_cmpuint(info.retransmits, ==, 0);
    rig_info(rig, 1, &info);
    g_assert_cmpuint(info.rx_held_bytes, ==, 9000);

    /* Still not ready: nothing is consumed. */
    erdma_xport_conn_rx_resume(rig->end[1].conn);
    rig_poll(rig, 1);
    g_assert_cmpuint(rig->end[1].rx_msn, ==, 1);

    /* Ready; but what says so is lost, and the sender has to ask. */
    rnr.is_ack_lost = true;
    erdma_xport_conn_rx_resume(rig->end[1].conn);
    rig_poll(rig, 1);
    g_assert_cmpuint(rig->end[1].rx_msn, ==, 4);
    rnr.is_ack_lost = false;
    start_ns = rig->now_ns;
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    g_assert_cmpuint(rig->now_ns - start_ns, <, 64 * RIG_MS);
    g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 0);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
    rig_free(rig);
}

static void test_rnr_timeout(void)
{
    Rnr rnr = { .n_refuse = UINT_MAX };
    XportRig *rig = rig_new(NULL);
    uint64_t start_ns;

    rig->opaque = &rnr;
    rig->on_rx = rnr_rx;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    start_ns = rig->now_ns;
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10);
    rig_run(rig, rig->now_ns + 5 * RIG_S);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 1);
    g_assert_cmpint(rig->end[0].error, ==, ERDMA_XPORT_ERR_RNR);
    g_assert_cmpuint(rig->end[0].error_ns - start_ns, >=, 500 * RIG_MS);
    g_assert_cmpuint(rig->end[0].error_ns - start_ns, <, 600 * RIG_MS);
    g_assert_cmpuint(rig->end[0].n_polls, <, 100);
    rig_free(rig);
}

/*
 * A packet that is larger than what the receiver can hold is dropped while
 * the receiver is not ready.  The sender hears why, so it is patient.
 */
static void test_rnr_large(void)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        Rnr rnr = { .n_refuse = UINT_MAX };
        ErdmaXportConfig cfg;
        XportRig *rig;
        uint64_t start_ns;

        rig_config(&cfg);
        cfg.mtu = 9000;
        cfg.rx_buffer = 4096;
        rig = rig_new(&cfg);
        rig->opaque = &rnr;
        rig->on_rx = rnr_rx;
        rig_open_both(rig);
        start_ns = rig->now_ns;
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 8000);
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 8000);
        rig_run(rig, start_ns + 400 * RIG_MS);
        g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
        if (i) {
            rnr.n_refuse = 0;
            erdma_xport_conn_rx_resume(rig->end[1].conn);
            rig_poll(rig, 1);
            g_assert_true(rig_run_done(rig, start_ns + 480 * RIG_MS));
        } else {
            rig_run(rig, start_ns + RIG_S);
            g_assert_cmpuint(rig->end[0].n_errors, ==, 1);
            g_assert_cmpint(rig->end[0].error, ==, ERDMA_XPORT_ERR_RNR);
        }
        rig_free(rig);
    }
}

/* An owner that says "not ready" and "again" in one breath */
static ErdmaXportRx again_rx(XportRig *rig, int end, uint32_t msn,
                             uint32_t off)
{
    unsigned *n = rig->opaque;

    if (--*n) {
        erdma_xport_conn_rx_resume(rig->end[end].conn);
        return ERDMA_XPORT_RX_NOT_READY;
    }
    return ERDMA_XPORT_RX_OK;
}

static void test_rnr_again(void)
{
    unsigned n = 1000;
    XportRig *rig = rig_new(NULL);

    rig->opaque = &n;
    rig->on_rx = again_rx;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    g_assert_cmpuint(rig->end[1].n_rx_calls, ==, 1000);
    g_assert_cmpuint(rig->end[1].n_polls, >, 1000 / rig->poll_budget);
    rig_free(rig);
}

/* More than the receiver keeps, while it is not ready */
static void test_credit(void)
{
    Rnr rnr = { .n_refuse = 1 };
    ErdmaXportConfig cfg;
    ErdmaXportConnInfo info;
    XportRig *rig;
    int i;

    rig_config(&cfg);
    cfg.rx_buffer = 16384;
    rig = rig_new(&cfg);
    rig->opaque = &rnr;
    rig->on_rx = rnr_rx;
    rig_open_both(rig);
    for (i = 0; i < 10; i++) {
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10000);
    }
    g_assert_false(rig_run_done(rig, rig->now_ns + 50 * RIG_MS));
    rig_info(rig, 1, &info);
    g_assert_cmpuint(info.rx_held_bytes, >, 10000);
    g_assert_cmpuint(info.rx_held_bytes, <=, 16384);
    g_assert_cmpuint(rig_stats(rig, 1)->drops[ERDMA_XPORT_DROP_NO_BUFFER], ==,
                     0);
    g_assert_cmpuint(rig_stats(rig, 0)->retransmits, ==, 0);
    erdma_xport_conn_rx_resume(rig->end[1].conn);
    rig_poll(rig, 1);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    rig_free(rig);
}

static RigFate lose_all(XportRig *rig, RigPacket *p)
{
    return (RigFate) { .is_lost = true };
}

/* Silence: the configured number of timeouts, each twice the last */
static void test_retry(void)
{
    ErdmaXportConfig cfg;
    uint64_t start_ns, expected_ns = 0;
    XportRig *rig;
    unsigned i;

    rig_config(&cfg);
    cfg.retry_max = 4;
    cfg.rto_max_ns = 8 * RIG_MS;
    rig = rig_new(&cfg);
    rig_open_both(rig);
    rig->fate = lose_all;
    start_ns = rig->now_ns;
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10000);
    /* No sample yet: twice the initial timeout, then doubled up to the cap */
    for (i = 0; i <= cfg.retry_max; i++) {
        expected_ns += MIN(2 * RIG_MS << i, cfg.rto_max_ns);
    }
    rig_run(rig, rig->now_ns + 10 * RIG_S);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 1);
    g_assert_cmpint(rig->end[0].error, ==, ERDMA_XPORT_ERR_RETRY);
    g_assert_cmpuint(rig->end[0].error_ns - start_ns, ==, expected_ns);
    g_assert_cmpuint(rig_stats(rig, 0)->rtos, ==, cfg.retry_max);
    /* The one that received nothing has nothing to complain about. */
    g_assert_cmpuint(rig->end[1].n_errors, ==, 0);
    rig_close(rig, 0);
    rig_free(rig);
}

static RigFate lose_most(XportRig *rig, RigPacket *p)
{
    /* Every third packet of each end gets through. */
    return (RigFate) { .is_lost = p->index % 3 != 2 };
}

static void test_terminate(void)
{
    XportRig *rig = rig_new(NULL);

    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 1000);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 1000000);
    rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 1000000);
    rig_run(rig, rig->now_ns + 300 * RIG_US);
    rig->fate = lose_most;
    erdma_xport_conn_terminate(rig->end[1].conn, 5, 1);
    erdma_xport_conn_terminate(rig->end[1].conn, 6, 2);
    rig_poll(rig, 1);
    rig_run(rig, rig->now_ns + RIG_S);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 1);
    g_assert_cmpuint(rig->end[0].term_status, ==, 5);
    g_assert_cmpuint(rig->end[0].term_msn, ==, 1);
    /* The first message was consumed before. */
    g_assert_cmpuint(rig->end[0].n_done, ==, 1);
    g_assert_cmpuint(rig->end[1].n_done, ==, 0);
    g_assert_cmpuint(rig->end[0].n_errors + rig->end[1].n_errors, ==, 0);
    g_assert_cmpuint(rig_stats(rig, 1)->terminates_sent, ==, 1);
    g_assert_cmpuint(rig_stats(rig, 0)->terminates_received, ==, 1);
    g_assert_cmpuint(rig->end[0].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->end[1].next_ns, ==, ERDMA_XPORT_NEVER);
    rig_free(rig);
}

/* What was consumed before a terminate is done even if its ack was lost. */
static void test_terminate_done(void)
{
    Rnr rnr = { .is_ack_lost = true };
    XportRig *rig = rig_new(NULL);

    rig->opaque = &rnr;
    rig->fate = rnr_fate;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10);
    rig_run(rig, rig->now_ns + 60 * RIG_US);
    g_assert_cmpuint(rig->end[0].n_done, ==, 0);
    erdma_xport_conn_terminate(rig->end[1].conn, 5, 1);
    rig_poll(rig, 1);
    rig_run(rig, rig->now_ns + 60 * RIG_US);
    g_assert_cmpuint(rig->end[0].n_done, ==, 1);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 1);
    rig_free(rig);
}

/* A peer that is gone: terminating ends in silence, not in an error. */
static void test_terminate_alone(void)
{
    XportRig *rig = rig_new(NULL);

    rig_open_both(rig);
    rig->fate = lose_all;
    erdma_xport_conn_terminate(rig->end[0].conn, 1, 0);
    rig_poll(rig, 0);
    rig_run(rig, rig->now_ns + 10 * RIG_S);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
    g_assert_cmpuint(rig->end[0].n_packets, ==, 1 + 1 + 8);
    g_assert_cmpuint(rig->end[0].next_ns, ==, ERDMA_XPORT_NEVER);
    rig_free(rig);
}

static RigFate lose_some(XportRig *rig, RigPacket *p)
{
    uint32_t *mtu = rig->opaque;

    /* Nothing longer than the path allows gets through. */
    return (RigFate) {
        .is_lost = p->len + ERDMA_XPORT_IP_UDP_LEN > *mtu ||
                   (p->is_data && p->data_index % 10 == 3),
    };
}

static void test_mtu(void)
{
    static const uint32_t mtus[] = { 9000, 1500, 577, 256, 4000, 65535 };
    uint32_t mtu = 9000;
    ErdmaXportConfig cfg;
    XportRig *rig;
    unsigned i;

    rig_config(&cfg);
    cfg.mtu = mtu;
    cfg.retry_max = 20;
    rig = rig_new(&cfg);
    rig->opaque = &mtu;
    rig->fate = lose_some;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_ATOMIC_CAS, 3000000);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100000);
    for (i = 0; i < ARRAY_SIZE(mtus); i++) {
        mtu = mtus[i];
        erdma_xport_set_mtu(rig->end[0].x, mtu);
        rig_run(rig, rig->now_ns + 300 * RIG_US);
        g_assert_cmpuint(rig->end[1].rx_msn, ==, 0);
    }
    g_assert_true(rig_run_done(rig, rig->now_ns + 10 * RIG_S));
    rig_free(rig);
}

/* Everything twice: nothing is consumed, counted or marked twice. */
static RigFate double_all(XportRig *rig, RigPacket *p)
{
    if (p->is_data && p->data_index % 10 == 3) {
        p->ecn = ERDMA_WIRE_ECN_CE;
    }
    return (RigFate) { .n_copies = 1 };
}

static void test_duplicates(void)
{
    XportRig *rig = rig_new(NULL);
    const ErdmaXportStats *s = rig_stats(rig, 1);
    ErdmaXportConnInfo info;

    rig_open_both(rig);
    rig->fate = double_all;
    rig->cc = ERDMA_XPORT_CC_NONE;
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 100000);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    rig_run(rig, rig->now_ns + RIG_MS);
    g_assert_cmpuint(s->drops[ERDMA_XPORT_DROP_DUPLICATE], ==,
                     rig->end[0].n_data);
    g_assert_cmpuint(s->rx_ce, ==, (rig->end[0].n_data + 6) / 10);
    rig_info(rig, 0, &info);
    g_assert_cmpuint(info.ce_echoed, ==, s->rx_ce);
    g_assert_cmpuint(info.retransmits, ==, 0);
    rig_free(rig);
}

/* Marks: one reduction per round trip, and none when the path is no good */
static RigFate mark_some(XportRig *rig, RigPacket *p)
{
    bool *is_bleaching = rig->opaque;

    if (p->is_data && *is_bleaching) {
        p->ecn = 0;
        p->data[3] &= ~ERDMA_WIRE_F_ECN;
    } else if (p->is_data && p->data_index >= 20 && p->data_index < 24) {
        g_assert_cmpuint(p->ecn, ==, ERDMA_WIRE_ECN_ECT0);
        /* One place is enough; either may be lost on the way. */
        if (p->data_index & 1) {
            p->ecn = ERDMA_WIRE_ECN_CE;
        } else {
            p->data[3] |= ERDMA_WIRE_ECN_CE;
        }
    }
    return (RigFate) { 0 };
}

static void test_ecn(void)
{
    bool is_bleaching = false;
    XportRig *rig = rig_new(NULL);
    ErdmaXportConnInfo info;

    rig->cc = ERDMA_XPORT_CC_NEWRENO;
    rig->opaque = &is_bleaching;
    rig->fate = mark_some;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 200000);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    rig_info(rig, 0, &info);
    g_assert_cmpuint(info.ce_echoed, ==, 4);
    g_assert_cmpuint(rig_stats(rig, 1)->rx_ce, ==, 4);
    g_assert_cmpuint(info.lost, ==, 0);
    /* Cut once, from between 20 and 40 packets */
    g_assert_cmpuint(info.ssthresh, >=, 10 * 1500);
    g_assert_cmpuint(info.ssthresh, <=, 20 * 1500);
    g_assert_cmpuint(rig_stats(rig, 0)->ecn_failures, ==, 0);

    is_bleaching = true;
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 200000);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    g_assert_cmpuint(rig_stats(rig, 0)->ecn_failures, ==, 1);
    rig_free(rig);
}

/* Memory that is gone: nothing more is sent, no error but the owner's */
static void test_pull(void)
{
    XportRig *rig = rig_new(NULL);

    rig_open_both(rig);
    rig->end[0].is_pull_broken = true;
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 100);
    rig_run(rig, rig->now_ns + RIG_S);
    g_assert_cmpuint(rig->end[0].n_data, ==, 0);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
    erdma_xport_conn_terminate(rig->end[0].conn, 7, 0);
    rig_poll(rig, 0);
    rig_run(rig, rig->now_ns + RIG_S);
    g_assert_cmpuint(rig->end[1].term_status, ==, 7);
    rig_free(rig);
}

/* Closing, terminating and sending from inside callbacks */
static ErdmaXportRx close_in_rx(XportRig *rig, int end, uint32_t msn,
                                uint32_t off)
{
    unsigned *what = rig->opaque;

    if (msn < 3) {
        return ERDMA_XPORT_RX_OK;
    }
    if (*what == 0) {
        rig_close(rig, end);
    } else {
        erdma_xport_conn_terminate(rig->end[end].conn, 1, msn);
    }
    return *what == 2 ? ERDMA_XPORT_RX_NOT_READY :
           *what == 3 ? ERDMA_XPORT_RX_REFUSED : ERDMA_XPORT_RX_OK;
}

static void close_in_done(XportRig *rig, int end, uint32_t msn)
{
    unsigned *what = rig->opaque;

    if (msn == 1) {
        if (*what == 0) {
            rig_close(rig, end);
        } else {
            erdma_xport_conn_terminate(rig->end[end].conn, 1, msn);
        }
        /* The owner may free its messages now. */
        rig->is_forgetful = true;
        g_ptr_array_set_size(rig->end[end].sent, 2);
    }
}

/* One packet late, so that another one delivers several messages at once */
static RigFate delay_fifth(XportRig *rig, RigPacket *p)
{
    return (RigFate) {
        .extra_ns = p->is_data && p->data_index == 4 ? 20 * RIG_US : 0,
    };
}

static void test_inside(void)
{
    unsigned what, where, i;

    for (where = 0; where < 2; where++) {
        for (what = 0; what < 4; what++) {
            XportRig *rig = rig_new(NULL);

            rig->opaque = &what;
            if (where) {
                rig->on_done = close_in_done;
            } else {
                rig->on_rx = close_in_rx;
            }
            rig->fate = delay_fifth;
            rig_open_both(rig);
            for (i = 0; i < 10; i++) {
                rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 4000);
                rig_send(rig, !where, ERDMA_XPORT_OP_SEND, 10);
            }
            rig_run(rig, rig->now_ns + 20 * RIG_MS);
            g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
            rig_free(rig);
        }
    }
}

/* Go-back-N: the same bytes, with many more packets */
static RigFate lose_tenth(XportRig *rig, RigPacket *p)
{
    return (RigFate) { .is_lost = p->is_data && p->data_index % 50 == 40 };
}

static void test_go_back_n(void)
{
    uint64_t packets[2];
    int i;

    for (i = 0; i < 2; i++) {
        ErdmaXportConfig cfg;
        XportRig *rig;

        rig_config(&cfg);
        cfg.is_go_back_n = i;
        cfg.initial_window = 60000;
        rig = rig_new(&cfg);
        rig->cc = ERDMA_XPORT_CC_NONE;
        rig->fate = lose_tenth;
        rig_open_both(rig);
        rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 1000000);
        g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
        packets[i] = rig->end[0].n_data;
        g_assert_cmpuint(rig_stats(rig, 0)->rtos, ==, 0);
        rig_free(rig);
    }
    g_assert_cmpuint(packets[0], <, 720);
    g_assert_cmpuint(packets[1], >, 1000);
}

/*
 * A host whose timers fire every 5 ms, and which looks at its network as
 * seldom: pacing must not cost what it did not ask for.
 */
#define COARSE_NS   (5 * RIG_MS)

static RigFate coarse_fate(XportRig *rig, RigPacket *p)
{
    uint64_t at = rig->now_ns + rig->delay_ns;

    return (RigFate) {
        .is_lost = p->is_data && p->data_index % 200 == 199,
        .extra_ns = rig_round_up(at, COARSE_NS) - at,
    };
}

static uint64_t coarse_bytes(bool is_paced)
{
    ErdmaXportConfig cfg;
    XportRig *rig;
    uint64_t bytes;

    rig_config(&cfg);
    cfg.initial_rto_ns = cfg.rto_min_ns = 500 * RIG_MS;
    cfg.rto_max_ns = 4 * RIG_S;
    cfg.is_paced = is_paced;
    cfg.pacing_quantum_ns = RIG_MS;
    rig = rig_new(&cfg);
    rig->cc = ERDMA_XPORT_CC_NEWRENO;
    rig->delay_ns = 10 * RIG_MS;
    rig->tick_ns = COARSE_NS;
    rig->fate = coarse_fate;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_WRITE, 100000000);
    rig_run(rig, rig->now_ns + 20 * RIG_S);
    g_assert_cmpuint(rig_stats(rig, 0)->rtos, ==, 0);
    bytes = rig->end[1].rx_bytes;
    rig_free(rig);
    return bytes;
}

static void test_late_timers(void)
{
    uint64_t unpaced = coarse_bytes(false), paced = coarse_bytes(true);

    g_test_message("%" PRIu64 " bytes paced, %" PRIu64 " unpaced", paced,
                   unpaced);
    g_assert_cmpuint(paced, >, unpaced * 9 / 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/conn/sizes", test_sizes);
    g_test_add_func("/erdma/xport/conn/early-data", test_early_data);
    g_test_add_func("/erdma/xport/conn/start", test_start);
    g_test_add_func("/erdma/xport/conn/rnr-resume", test_rnr_resume);
    g_test_add_func("/erdma/xport/conn/rnr-timeout", test_rnr_timeout);
    g_test_add_func("/erdma/xport/conn/rnr-large", test_rnr_large);
    g_test_add_func("/erdma/xport/conn/rnr-again", test_rnr_again);
    g_test_add_func("/erdma/xport/conn/credit", test_credit);
    g_test_add_func("/erdma/xport/conn/retry", test_retry);
    g_test_add_func("/erdma/xport/conn/terminate", test_terminate);
    g_test_add_func("/erdma/xport/conn/terminate-done", test_terminate_done);
    g_test_add_func("/erdma/xport/conn/terminate-alone",
                    test_terminate_alone);
    g_test_add_func("/erdma/xport/conn/mtu", test_mtu);
    g_test_add_func("/erdma/xport/conn/duplicates", test_duplicates);
    g_test_add_func("/erdma/xport/conn/ecn", test_ecn);
    g_test_add_func("/erdma/xport/conn/pull", test_pull);
    g_test_add_func("/erdma/xport/conn/inside", test_inside);
    g_test_add_func("/erdma/xport/conn/go-back-n", test_go_back_n);
    g_test_add_func("/erdma/xport/conn/late-timers", test_late_timers);
    return g_test_run();
}
