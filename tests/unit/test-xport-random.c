/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random traffic over random networks: whatever is lost, doubled, delayed or
 * damaged, every byte arrives once and in order, every message is done once
 * and in order, and nobody wakes up more often than there is work.
 */

#include "qemu/osdep.h"
#include "seeds.h"
#include "xport-rig.h"

#define N_CASES     1000
#define MAX_SIZE    (200 * 1024)

typedef struct Network {
    GRand *rand;
    double loss;
    double duplicate;
    double reorder;
    double damage;
    uint64_t reorder_ns;
    uint64_t jitter_ns;
} Network;

static RigFate random_fate(XportRig *rig, RigPacket *p)
{
    Network *n = rig->opaque;
    RigFate fate = { 0 };

    if (g_rand_double(n->rand) < n->loss) {
        fate.is_lost = true;
    }
    if (g_rand_double(n->rand) < n->duplicate) {
        fate.n_copies = g_rand_int_range(n->rand, 1, 3);
    }
    if (n->jitter_ns) {
        fate.extra_ns = g_rand_int_range(n->rand, 0, n->jitter_ns);
    }
    if (g_rand_double(n->rand) < n->reorder) {
        fate.extra_ns += n->reorder_ns;
    }
    /* As a checksum would find it: what is broken never gets through. */
    if (g_rand_double(n->rand) < n->damage) {
        p->len = g_rand_int_range(n->rand, 0, p->len);
    }
    return fate;
}

static uint32_t random_size(GRand *rand)
{
    switch (g_rand_int_range(rand, 0, 4)) {
    case 0:
        return g_rand_int_range(rand, 0, 100);
    case 1:
        return g_rand_int_range(rand, 0, 3000);
    case 2:
        return g_rand_int_range(rand, 0, 20000);
    default:
        return g_rand_int_range(rand, 0, MAX_SIZE);
    }
}

static void random_config(GRand *rand, ErdmaXportConfig *cfg)
{
    static const uint32_t mtus[] = { 256, 576, 1000, 1500, 9000, 65535 };
    static const uint32_t buffers[] = { 4096, 16384, 65536, 1048576 };

    rig_config(cfg);
    cfg->mtu = mtus[g_rand_int_range(rand, 0, ARRAY_SIZE(mtus))];
    cfg->rx_buffer = buffers[g_rand_int_range(rand, 0, ARRAY_SIZE(buffers))];
    cfg->ack_every = g_rand_int_range(rand, 1, 20);
    cfg->ack_delay_ns = g_rand_int_range(rand, 0, 3) * 100 * RIG_US;
    cfg->is_paced = g_rand_boolean(rand);
    cfg->pacing_quantum_ns = g_rand_int_range(rand, 0, 2) * 100 * RIG_US;
    cfg->use_ecn = g_rand_boolean(rand);
    /* 30 % each way: a hundred in a row fail once in a blue moon. */
    cfg->retry_max = 100;
}

static void run_case(unsigned seed)
{
    static const uint8_t ccs[] = {
        ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC, ERDMA_XPORT_CC_NONE,
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Network net = { .rand = rand };
    ErdmaXportConfig cfg;
    XportRig *rig;
    uint64_t start_ns, n_packets, n_polls;
    unsigned i, end;

    random_config(rand, &cfg);
    rig = rig_new(&cfg);
    rig->cc = ccs[g_rand_int_range(rand, 0, ARRAY_SIZE(ccs))];
    rig->pn0[0] = g_rand_int(rand);
    rig->pn0[1] = -g_rand_int_range(rand, 0, 100);
    rig->poll_budget = g_rand_int_range(rand, 1, 100);
    rig->delay_ns = g_rand_int_range(rand, 1, 500) * RIG_US;
    net.loss = g_rand_double_range(rand, 0, 0.3);
    net.duplicate = g_rand_double_range(rand, 0, 0.1);
    net.reorder = g_rand_double_range(rand, 0, 0.2);
    net.damage = g_rand_double_range(rand, 0, 0.05);
    net.reorder_ns = g_rand_int_range(rand, 1, 3) * rig->delay_ns;
    net.jitter_ns = g_rand_boolean(rand) ? rig->delay_ns / 2 : 0;
    rig->opaque = &net;
    rig->fate = random_fate;
    start_ns = rig->now_ns;

    rig_open(rig, 0);
    rig_open(rig, 1);
    for (end = 0; end < 2; end++) {
        for (i = g_rand_int_range(rand, 1, 6); i > 0; i--) {
            rig_send(rig, end, g_rand_int_range(rand, ERDMA_XPORT_OP_SEND,
                                                ERDMA_XPORT_OP_COUNT),
                     random_size(rand));
        }
    }
    if (!rig_run_done(rig, start_ns + 1000 * RIG_S)) {
        g_error("seed %u: not done after 1000 s", seed);
    }
    for (end = 0; end < 2; end++) {
        g_assert_cmpuint(rig->end[end].n_errors, ==, 0);
    }
    /* One wake-up per packet or timer, and few timers beside packets */
    n_packets = rig->end[0].n_packets + rig->end[1].n_packets;
    n_polls = rig->end[0].n_polls + rig->end[1].n_polls;
    if (n_polls > 4 * n_packets + 1000) {
        g_error("%u: %" PRIu64 " polls, %" PRIu64 " packets", seed,
                n_polls, n_packets);
    }
    /* Afterwards there is silence. */
    rig->fate = NULL;
    rig_run(rig, rig->now_ns + 300 * RIG_S);
    g_assert_cmpuint(rig->end[0].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->end[1].next_ns, ==, ERDMA_XPORT_NEVER);
    rig_free(rig);
}

static void test_random(void)
{
    for_seeds(N_CASES, run_case);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/random", test_random);
    return g_test_run();
}
