/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is recorded of a transport, replayed: the same comes out, and whatever
 * is changed in a recording is noticed.
 */

#include "qemu/osdep.h"
#include "replay.h"
#include "xport/record.h"
#include "xport-rig.h"

#define N_DAMAGED   3000

static void append(void *opaque, const uint8_t *data, size_t len)
{
    g_byte_array_append(opaque, data, len);
}

static RigFate lossy(XportRig *rig, RigPacket *p)
{
    GRand *rand = rig->opaque;
    RigFate fate = { .is_lost = g_rand_double(rand) < 0.1 };

    if (g_rand_double(rand) < 0.05) {
        fate.n_copies = 1;
        fate.extra_ns = 300 * RIG_US;
    }
    if (g_rand_double(rand) < 0.1) {
        p->ecn = 3;
    }
    return fate;
}

static unsigned n_not_ready;

static ErdmaXportRx hesitate(XportRig *rig, int end, uint32_t msn,
                             uint32_t off)
{
    if (off == 0 && msn % 7 == 3 && n_not_ready++ % 2 == 0) {
        erdma_xport_conn_rx_resume(rig->end[end].conn);
        return ERDMA_XPORT_RX_NOT_READY;
    }
    return ERDMA_XPORT_RX_OK;
}

/* From inside of a callback */
static void send_more(XportRig *rig, int end, uint32_t msn)
{
    if (msn < 20) {
        rig_send(rig, end, ERDMA_XPORT_OP_WRITE, 5000 + msn);
    }
}

/* Two ends talk over a bad wire; a recording per end. */
static void record(uint8_t cc, GByteArray **recording)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(cc + 1);
    ErdmaXportConfig cfg;
    XportRig *rig;
    unsigned i;

    rig_config(&cfg);
    cfg.is_paced = true;
    cfg.use_ecn = true;
    cfg.retry_max = 50;
    rig = rig_new(&cfg);
    rig->cc = cc;
    rig->pn0[0] = 0xfffffff0;
    rig->delay_ns = 50 * RIG_US;
    rig->bits_per_s = 1000 * 1000 * 1000;
    rig->is_blocking = true;
    rig->opaque = rand;
    rig->fate = lossy;
    rig->on_rx = hesitate;
    rig->on_done = send_more;
    for (i = 0; i < 2; i++) {
        recording[i] = g_byte_array_new();
        erdma_xport_record(rig->end[i].x, append, recording[i]);
    }
    rig_open_both(rig);
    for (i = 0; i < 40; i++) {
        rig_send(rig, i % 2, ERDMA_XPORT_OP_SEND + i % 10, i * 700);
    }
    g_assert_true(rig_run_done(rig, rig->now_ns + 100 * RIG_S));
    erdma_xport_set_mtu(rig->end[0].x, 900);
    /* The peer is asked now and then. */
    erdma_xport_conn_expect(rig->end[0].conn, true);
    rig_run(rig, rig->now_ns + 100 * RIG_MS);
    erdma_xport_conn_expect(rig->end[0].conn, false);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10000);
    g_assert_true(rig_run_done(rig, rig->now_ns + 100 * RIG_S));
    erdma_xport_conn_terminate(rig->end[1].conn, 7, 3);
    rig_run(rig, rig->now_ns + 100 * RIG_MS);
    rig_close(rig, 0);
    for (i = 0; i < 2; i++) {
        erdma_xport_record_end(rig->end[i].x);
    }
    rig_free(rig);
}

static void test_identical(gconstpointer opaque)
{
    GByteArray *recording[2];
    unsigned i;

    record(GPOINTER_TO_UINT(opaque), recording);
    for (i = 0; i < 2; i++) {
        ReplayResult r;
        char *problem = replay_data(recording[i]->data, recording[i]->len,
                                    &r);

        g_assert_cmpstr(problem, ==, NULL);
        g_assert_cmpuint(r.n_inputs, >, 500);
        g_assert_cmpuint(r.n_outputs, >, 500);
        g_byte_array_unref(recording[i]);
    }
}

/* Any bit of it, turned over */
static void test_damaged(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    GByteArray *recording[2];
    unsigned i, n_different = 0;

    record(ERDMA_XPORT_CC_CUBIC, recording);
    for (i = 0; i < N_DAMAGED; i++) {
        GByteArray *b = recording[i % 2];
        uint8_t *byte = &b->data[g_rand_int_range(rand, 0, b->len)];
        uint8_t bit = 1 << g_rand_int_range(rand, 0, 8);
        ReplayResult r;
        char *problem;

        *byte ^= bit;
        problem = replay_data(b->data, b->len, &r);
        *byte ^= bit;
        g_assert_nonnull(problem);
        n_different += strstr(problem, "different") != NULL;
        g_free(problem);
    }
    /* Most of them are found where they are and not only at the end. */
    g_assert_cmpuint(n_different, >, N_DAMAGED / 2);
    g_byte_array_unref(recording[0]);
    g_byte_array_unref(recording[1]);
}

/* The beginning of a recording, of any length */
static void test_truncated(void)
{
    GByteArray *recording[2];
    size_t len;

    record(ERDMA_XPORT_CC_NEWRENO, recording);
    for (len = 0; len < recording[0]->len; len += 1 + len / 300) {
        ReplayResult r;
        char *problem = replay_data(recording[0]->data, len, &r);

        g_assert_nonnull(problem);
        g_free(problem);
    }
    g_byte_array_unref(recording[0]);
    g_byte_array_unref(recording[1]);
}

/* Behind a good header, anything */
static void test_hostile(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    ErdmaXportConfig cfg;
    g_autofree char *config = NULL;
    unsigned i, k;

    rig_config(&cfg);
    config = erdma_record_config(&cfg);
    for (i = 0; i < 5000; i++) {
        GByteArray *b = g_byte_array_new();
        ReplayResult r;
        char *problem;

        append(b, (const uint8_t *)ERDMA_RECORD_HEADER,
               strlen(ERDMA_RECORD_HEADER));
        append(b, (const uint8_t *)config, strlen(config));
        append(b, (const uint8_t *)"\n", 1);
        for (k = 0; k < 300; k++) {
            /* Small numbers mostly, so that records make some sense */
            uint8_t byte = g_rand_int_range(rand, 0, 20) ?
                           g_rand_int_range(rand, 0, 12) :
                           g_rand_int_range(rand, 0, 256);

            append(b, &byte, 1);
        }
        problem = replay_data(b->data, b->len, &r);
        g_assert_nonnull(problem);
        g_free(problem);
        g_byte_array_unref(b);
    }
}

static void assert_problem(const char *text, const char *contains)
{
    ReplayResult r;
    g_autofree char *problem = replay_data((const uint8_t *)text,
                                           strlen(text), &r);

    g_assert_nonnull(problem);
    g_assert_nonnull(strstr(problem, contains));
}

static void test_header(void)
{
    ErdmaXportConfig cfg, back;
    g_autofree char *config = NULL;
    g_auto(GStrv) lines = NULL;

    assert_problem("", "not a recording");
    assert_problem("erdma-recording 2\n", "not a recording");
    assert_problem(ERDMA_RECORD_HEADER, "cut off in its header");
    assert_problem(ERDMA_RECORD_HEADER "\n", "'mtu' expected");
    assert_problem(ERDMA_RECORD_HEADER "mtu 1500\nfoo 1\n\n",
                   "'udp_port' expected, not 'foo 1'");
    assert_problem(ERDMA_RECORD_HEADER "mtu -1\n\n", "mtu: '-1'");
    assert_problem(ERDMA_RECORD_HEADER "mtu 5000000000\n\n", "mtu:");

    erdma_xport_config_default(&cfg);
    cfg.cc.eta = 0.1 + 0.2;
    config = erdma_record_config(&cfg);
    g_assert_cmpint(config[strlen(config) - 1], ==, '\n');
    config[strlen(config) - 1] = 0;
    lines = g_strsplit(config, "\n", -1);
    g_assert_cmpstr(erdma_record_config_parse(lines, &back), ==, NULL);
    g_assert_true(back.cc.eta == cfg.cc.eta);
    g_assert_cmpuint(back.rnr_timeout_ns, ==, cfg.rnr_timeout_ns);
    g_assert_cmpuint(back.cc.n_flows, ==, cfg.cc.n_flows);
    g_assert_true(back.use_ecn);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        ErdmaXportCc cc;
    } ccs[] = {
        { "newreno", ERDMA_XPORT_CC_NEWRENO },
        { "cubic", ERDMA_XPORT_CC_CUBIC },
        { "hpcc_rtt", ERDMA_XPORT_CC_HPCC_RTT },
        { "hpcc_ecn", ERDMA_XPORT_CC_HPCC_ECN },
        { "hpcc_int", ERDMA_XPORT_CC_HPCC_INT },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < ARRAY_SIZE(ccs); i++) {
        g_autofree char *name = g_strdup_printf(
            "/erdma/xport/record/identical/%s", ccs[i].name);

        g_test_add_data_func(name, GUINT_TO_POINTER(ccs[i].cc),
                             test_identical);
    }
    g_test_add_func("/erdma/xport/record/damaged", test_damaged);
    g_test_add_func("/erdma/xport/record/truncated", test_truncated);
    g_test_add_func("/erdma/xport/record/hostile", test_hostile);
    g_test_add_func("/erdma/xport/record/header", test_header);
    return g_test_run();
}
