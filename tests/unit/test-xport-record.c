/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is recorded of a transport, replayed: the same comes out, and whatever
 * is changed in a recording is noticed.
 */

#include "qemu/osdep.h"
#include "replay.h"
#include "xport/record.h"
#include "xport-recording.h"
#include "xport-rig.h"

#define N_DAMAGED   3000
#define N_MESSAGES  40

static void test_identical(gconstpointer opaque)
{
    GByteArray *recording[2];
    unsigned i;

    rig_record(GPOINTER_TO_UINT(opaque), N_MESSAGES, recording);
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

    rig_record(ERDMA_XPORT_CC_CUBIC, N_MESSAGES, recording);
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

    rig_record(ERDMA_XPORT_CC_NEWRENO, N_MESSAGES, recording);
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

        g_byte_array_append(b, (const uint8_t *)ERDMA_RECORD_HEADER,
                            strlen(ERDMA_RECORD_HEADER));
        g_byte_array_append(b, (const uint8_t *)config, strlen(config));
        g_byte_array_append(b, (const uint8_t *)"\n", 1);
        for (k = 0; k < 300; k++) {
            /* Small numbers mostly, so that records make some sense */
            uint8_t byte = g_rand_int_range(rand, 0, 20) ?
                           g_rand_int_range(rand, 0, 12) :
                           g_rand_int_range(rand, 0, 256);

            g_byte_array_append(b, &byte, 1);
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
    g_autofree char *empty = NULL;
    g_auto(GStrv) lines = NULL;
    ReplayResult r;

    /* How an empty file is mapped */
    empty = replay_data(NULL, 0, &r);
    g_assert_nonnull(empty);
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
