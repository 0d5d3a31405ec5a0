/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: waiting for the peer's answer with nothing outstanding. */

#include "qemu/osdep.h"
#include "xport-rig.h"

/* Everything of ours arrived, and now it is the peer's turn. */
static XportRig *rig_waiting(void)
{
    ErdmaXportConfig cfg;
    XportRig *rig;

    rig_config(&cfg);
    cfg.retry_max = 4;
    cfg.rto_max_ns = 100 * RIG_MS;
    rig = rig_new(&cfg);
    rig_open_both(rig);
    erdma_xport_conn_expect(rig->end[0].conn, true);
    rig_send(rig, 0, ERDMA_XPORT_OP_READ_REQ, 0);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));
    return rig;
}

static RigFate count_pings(XportRig *rig, RigPacket *p)
{
    unsigned *n = rig->opaque;

    *n += p->is_ping;
    return (RigFate) { 0 };
}

/* A peer that takes its time is asked now and then, however long it takes. */
static void test_patience(void)
{
    XportRig *rig = rig_waiting();
    unsigned n = 0;

    rig->opaque = &n;
    rig->fate = count_pings;
    rig_run(rig, rig->now_ns + 60 * RIG_S);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
    g_assert_cmpuint(n, >, 60 * RIG_S / (200 * RIG_MS));
    g_assert_cmpuint(n, <, 60 * RIG_S / (50 * RIG_MS));
    rig_send(rig, 1, ERDMA_XPORT_OP_READ_RESP, 100);
    g_assert_true(rig_run_done(rig, rig->now_ns + RIG_S));

    /* Nobody waits any more: silence. */
    erdma_xport_conn_expect(rig->end[0].conn, false);
    n = 0;
    rig_run(rig, rig->now_ns + 60 * RIG_S);
    g_assert_cmpuint(n, ==, 0);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
    rig_free(rig);
}

/* A peer that is gone will not answer: an error, with what we sent acked. */
static void test_gone(void)
{
    unsigned late;

    for (late = 0; late < 2; late++) {
        XportRig *rig = rig_waiting();
        uint64_t start_ns;

        if (late) {
            rig_run(rig, rig->now_ns + 10 * RIG_S);
        }
        start_ns = rig->now_ns;
        rig_close(rig, 1);
        rig_run(rig, start_ns + 60 * RIG_S);
        g_assert_cmpuint(rig->end[0].n_errors, ==, 1);
        g_assert_cmpint(rig->end[0].error, ==, ERDMA_XPORT_ERR_RETRY);
        /* One ping may have been answered; then all that retries may take */
        g_assert_cmpuint(rig->end[0].error_ns - start_ns, <=,
                         (1 + 1 + 4) * 100 * RIG_MS);
        rig_close(rig, 0);
        rig_free(rig);
    }
}

static RigFate lose_terms(XportRig *rig, RigPacket *p)
{
    return (RigFate) {
        .is_lost = p->from == 1 && !p->is_data && !p->is_ack && !p->is_ping,
    };
}

/* It has ended, but every word of that was lost: it says so when asked. */
static void test_ended(void)
{
    XportRig *rig = rig_waiting();

    rig_run(rig, rig->now_ns + RIG_S);
    rig->fate = lose_terms;
    erdma_xport_conn_terminate(rig->end[1].conn, 5, 1);
    rig_poll(rig, 1);
    rig_run(rig, rig->now_ns + 90 * RIG_MS);
    rig->fate = NULL;
    g_assert_cmpuint(rig->end[1].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 0);
    rig_run(rig, rig->now_ns + RIG_S);
    g_assert_cmpuint(rig->end[0].n_terminated, ==, 1);
    g_assert_cmpuint(rig->end[0].term_status, ==, 5);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 0);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/expect/patience", test_patience);
    g_test_add_func("/erdma/xport/expect/gone", test_gone);
    g_test_add_func("/erdma/xport/expect/ended", test_ended);
    return g_test_run();
}
