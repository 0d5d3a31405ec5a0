/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots: a connection that is carried elsewhere at any moment goes on
 * exactly as if it had stayed, and a snapshot that somebody has tampered with
 * is refused or does no harm.
 */

#include "qemu/osdep.h"
#include "xport/link.h"
#include "hostile.h"
#include "seeds.h"
#include "xport-rig.h"

#define N_CASES     120

typedef struct Network {
    GRand *rand;
    double loss;
    double duplicate;
    double reorder;
    double not_ready;
    uint64_t reorder_ns;
    bool is_holding[2];
} Network;

static RigFate random_fate(XportRig *rig, RigPacket *p)
{
    Network *n = rig->opaque;
    ErdmaLinkStamp stamp = { .rate_bps = 10000000000ull, .link_id = 1 };
    RigFate fate = { 0 };

    fate.is_lost = g_rand_double(n->rand) < n->loss;
    if (g_rand_double(n->rand) < n->duplicate) {
        fate.n_copies = 1;
    }
    if (g_rand_double(n->rand) < n->reorder) {
        fate.extra_ns = n->reorder_ns;
    }
    if (g_rand_double(n->rand) < 0.05) {
        p->ecn |= 3;
        p->data[3] |= 3;
    }
    stamp.time_ns = rig->now_ns;
    stamp.tx_bytes = p->index * 1000;
    erdma_link_stamp(p->data, p->len, &stamp);
    return fate;
}

/* Now and then the owner lacks a receive; the next message done brings it. */
static ErdmaXportRx random_rx(XportRig *rig, int end, uint32_t msn,
                              uint32_t off)
{
    Network *n = rig->opaque;

    if (g_rand_double(n->rand) < n->not_ready) {
        erdma_xport_conn_rx_resume(rig->end[end].conn);
        return ERDMA_XPORT_RX_NOT_READY;
    }
    return ERDMA_XPORT_RX_OK;
}

static const uint8_t all_cc[] = {
    ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC, ERDMA_XPORT_CC_HPCC_RTT,
    ERDMA_XPORT_CC_HPCC_ECN, ERDMA_XPORT_CC_HPCC_INT, ERDMA_XPORT_CC_NONE,
};

static XportRig *rig_for(unsigned seed, Network *net)
{
    static const uint32_t mtus[] = { 256, 1500, 9000 };
    ErdmaXportConfig cfg;
    XportRig *rig;
    unsigned end, i;

    net->rand = g_rand_new_with_seed(seed);
    rig_config(&cfg);
    cfg.mtu = mtus[g_rand_int_range(net->rand, 0, 3)];
    cfg.rx_buffer = 1 << g_rand_int_range(net->rand, 14, 20);
    cfg.ack_every = g_rand_int_range(net->rand, 1, 5);
    cfg.ack_delay_ns = g_rand_int_range(net->rand, 0, 3) * 100 * RIG_US;
    cfg.is_paced = g_rand_boolean(net->rand);
    cfg.pacing_quantum_ns = g_rand_int_range(net->rand, 0, 2) * 100 * RIG_US;
    cfg.retry_max = 100;
    cfg.is_go_back_n = seed % 12 == 1;
    rig = rig_new(&cfg);
    rig->cc = all_cc[seed % G_N_ELEMENTS(all_cc)];
    rig->pn0[0] = g_rand_int(net->rand);
    rig->pn0[1] = -g_rand_int_range(net->rand, 0, 100);
    rig->delay_ns = g_rand_int_range(net->rand, 1, 300) * RIG_US;
    net->loss = g_rand_double_range(net->rand, 0, 0.2);
    net->duplicate = g_rand_double_range(net->rand, 0, 0.1);
    net->reorder = g_rand_double_range(net->rand, 0, 0.2);
    net->not_ready = g_rand_double_range(net->rand, 0, 0.1);
    net->reorder_ns = 2 * rig->delay_ns;
    if (cfg.is_go_back_n) {
        net->reorder = net->not_ready = 0;
    }
    rig->opaque = net;
    rig->fate = random_fate;
    rig->on_rx = random_rx;
    rig->log = g_string_new(NULL);
    rig_open(rig, 0);
    rig_open(rig, 1);
    for (end = 0; end < 2; end++) {
        for (i = g_rand_int_range(net->rand, 1, 8); i > 0; i--) {
            rig_send(rig, end, g_rand_int_range(net->rand,
                                                ERDMA_XPORT_OP_SEND,
                                                ERDMA_XPORT_OP_COUNT),
                     g_rand_int_range(net->rand, 0, 60000));
        }
    }
    return rig;
}

static void rig_done(XportRig *rig, Network *net, unsigned seed)
{
    if (!rig_run_done(rig, rig->now_ns + 1000 * RIG_S)) {
        g_error("seed %u: not done after %u moves", seed, rig->n_moves);
    }
    g_assert_cmpuint(rig->end[0].n_errors + rig->end[1].n_errors, ==, 0);
    g_rand_free(net->rand);
}

static unsigned n_runs, n_moves;

/* Every event of a run that moves is one of a run that does not. */
static void run_case(unsigned seed)
{
    g_autoptr(GRand) moves = g_rand_new_with_seed(seed);
    Network stay_net = { 0 }, move_net = { 0 };
    XportRig *stay = rig_for(seed, &stay_net);
    XportRig *move = rig_for(seed, &move_net);

    move->moves = moves;
    move->move_chance = g_rand_double_range(moves, 0.01, 0.2);
    rig_done(stay, &stay_net, seed);
    rig_done(move, &move_net, seed);
    if (strcmp(stay->log->str, move->log->str)) {
        g_error("seed %u: goes on otherwise than if it had stayed", seed);
    }
    n_runs++;
    n_moves += move->n_moves;
    g_string_free(stay->log, true);
    g_string_free(move->log, true);
    rig_free(stay);
    rig_free(move);
}

static void test_random(void)
{
    for_seeds(N_CASES, run_case);
    /* On average; a single one that was asked for may have fewer. */
    g_assert_true(n_runs < N_CASES || n_moves > 10 * n_runs);
}

/* The end of a connection, moved whenever something happens */
static void test_end(void)
{
    XportRig *rig = rig_new(NULL);

    rig->moves = g_rand_new_with_seed(1);
    rig->move_chance = 1;
    rig_open_both(rig);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 5000);
    rig_send(rig, 1, ERDMA_XPORT_OP_SEND, 5000);
    erdma_xport_conn_terminate(rig->end[0].conn, 7, 9);
    rig_move(rig, 0);
    rig_poll(rig, 0);
    rig_run(rig, rig->now_ns + 5 * RIG_S);
    g_assert_cmpuint(rig->end[1].n_terminated, ==, 1);
    g_assert_cmpuint(rig->end[1].term_status, ==, 7);
    g_assert_cmpuint(rig->end[1].term_msn, ==, 9);
    g_assert_cmpuint(rig->end[0].n_errors + rig->end[1].n_errors, ==, 0);
    g_assert_cmpuint(rig->end[0].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->end[1].next_ns, ==, ERDMA_XPORT_NEVER);
    g_assert_cmpuint(rig->n_moves, >, 5);
    g_rand_free(rig->moves);
    rig_free(rig);
}

static RigFate all_lost(XportRig *rig, RigPacket *p)
{
    return (RigFate) { .is_lost = true };
}

/* A peer that is gone is noticed as soon as it would have been. */
static uint64_t time_of_error(double move_chance, bool is_expecting)
{
    XportRig *rig = rig_new(NULL);
    uint64_t error_ns;

    rig->moves = g_rand_new_with_seed(2);
    rig_open_both(rig);
    rig->fate = all_lost;
    rig->move_chance = move_chance;
    if (is_expecting) {
        erdma_xport_conn_expect(rig->end[0].conn, true);
    } else {
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 5000);
    }
    rig_poll(rig, 0);
    rig_run(rig, rig->now_ns + 100 * RIG_S);
    g_assert_cmpuint(rig->end[0].n_errors, ==, 1);
    g_assert_cmpint(rig->end[0].error, ==, ERDMA_XPORT_ERR_RETRY);
    error_ns = rig->end[0].error_ns;
    g_rand_free(rig->moves);
    rig_free(rig);
    return error_ns;
}

static void test_error(void)
{
    g_assert_cmpuint(time_of_error(1, false), ==, time_of_error(0, false));
    g_assert_cmpuint(time_of_error(1, true), ==, time_of_error(0, true));
}

/* The clock of the new place may show any time. */
static void test_clock(void)
{
    static const uint64_t clocks[] = { 0, 1, 500 * RIG_MS, 3600 * RIG_S };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(clocks); i++) {
        ErdmaXportSnap s = { 0 };
        XportRig *rig = rig_new(NULL);

        rig_open_both(rig);
        rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 50000);
        rig->fate = all_lost;
        rig_run(rig, rig->now_ns + 3 * RIG_MS);
        rig->fate = NULL;
        rig_save(rig, 0, &s);
        rig->now_ns = clocks[i];
        rig_move(rig, 1);
        g_assert_cmpstr(rig_load(rig, 0, &s), ==, NULL);
        rig_poll(rig, 0);
        rig_poll(rig, 1);
        g_assert_true(rig_run_done(rig, clocks[i] + RIG_S));
        erdma_xport_snap_clear(&s);
        rig_free(rig);
    }
}

/* A connection with something in every array */
static XportRig *busy_rig(Network *net, ErdmaXportSnap *s)
{
    XportRig *rig = rig_for(4, net);        /* HPCC_INT */
    ErdmaXportSnap t = { 0 };

    for (;;) {
        rig_run(rig, rig->now_ns + 10 * RIG_US);
        rig_save(rig, 0, &t);
        if (t.n_sents > 3 && t.n_chunks && t.n_ranges > 1 && t.n_hops &&
            t.conns[0].rx_off && t.conns[0].una_off) {
            break;
        }
        erdma_xport_snap_clear(&t);
    }
    *s = t;
    return rig;
}

#define BAD_CONN(_field, _val) BAD(ErdmaConnSnap, conns, _field, _val, NULL)

#define HUGE    0xfffffffffffffff0ull

static const Hostile hostile[] = {
    BAD_CONN(term, 3),
    BAD(ErdmaConnSnap, conns, term, 1, "is_dead"),
    BAD(ErdmaConnSnap, conns, is_failed, 1, "is_dead"),
    BAD(ErdmaConnSnap, conns, is_peer_terminated, 1, "is_dead"),
    BAD_CONN(next_msn, MANY),
    BAD_CONN(una_msn, MANY),
    BAD_CONN(una_off, MANY),
    BAD_CONN(unsent_msn, MANY),
    BAD_CONN(unsent_off, MANY),
    BAD_CONN(credit, HUGE),
    BAD_CONN(next_ack, HUGE),
    BAD_CONN(next_ack, 0),
    BAD_CONN(base, HUGE),
    BAD_CONN(base, 0),
    BAD_CONN(n_sents, MANY),
    BAD(ErdmaConnSnap, conns, n_sents, 1, "more elements"),
    BAD_CONN(n_top, 9),
    BAD_CONN(reo_mult, 0),
    BAD_CONN(n_recoveries, 200),
    BAD_CONN(rack_rtt_ns, HUGE),
    BAD_CONN(recovery_end, HUGE),
    BAD_CONN(spurious_end, HUGE),
    BAD_CONN(latest_ns, HUGE),
    BAD_CONN(srtt_ns, HUGE),
    BAD_CONN(rttvar_ns, HUGE),
    BAD_CONN(round_end, HUGE),
    BAD_CONN(max_pipe0, HUGE),
    BAD_CONN(max_pipe1, HUGE),
    BAD_CONN(n_timeouts, 255),
    BAD_CONN(pacer_debt, 0x7ff8000000000000ull),
    BAD_CONN(pacer_debt, 0x7ff0000000000000ull),
    BAD_CONN(is_dead, 1),
    BAD_CONN(cc, 5),
    BAD(ErdmaConnSnap, conns, cc, ERDMA_XPORT_CC_CUBIC, "n_cubics"),
    BAD(ErdmaConnSnap, conns, cc, ERDMA_XPORT_CC_NONE, "more elements"),
    BAD_CONN(cwnd, 0),
    BAD_CONN(cwnd, HUGE),
    BAD_CONN(reno_remainder, HUGE),
    BAD_CONN(reno_prior_cwnd, HUGE),
    BAD_CONN(pn0, 0),
    BAD_CONN(pn0, HUGE),
    BAD_CONN(floor, 0),
    BAD(ErdmaConnSnap, conns, floor, 1ull << 50, "ranges[0]"),
    BAD_CONN(n_ranges, MANY),
    BAD_CONN(n_chunks, MANY),
    BAD_CONN(rx_off, MANY),
    BAD_CONN(rx_next_ack, 0),
    BAD_CONN(trigger_pn, 0),
    BAD_CONN(gap_pn, HUGE),
    BAD_CONN(ahead_pn, HUGE),
    BAD(ErdmaConnSnap, conns, rx_msn, 0x40000000, "chunks[0]"),
    BAD_CONN(int_info, 0xff),
    BAD(ErdmaSentSnap, sents, state, 3, NULL),
    BAD(ErdmaSentSnap, sents, msn, 0x7ffffff0, NULL),
    BAD(ErdmaRangeSnap, ranges, first, HUGE, "ranges[0]"),
    BAD(ErdmaRangeSnap, ranges, last, 0, "ranges[0]"),
    BAD(ErdmaRangeSnap, ranges, last, HUGE, "ranges[0]"),
    BAD(ErdmaChunkSnap, chunks, msn, 0x40000000, "chunks[0]"),
    BAD(ErdmaChunkSnap, chunks, len, MANY, "chunks[0]"),
    BAD(ErdmaChunkSnap, chunks, off, MANY, "chunks[0]"),
    BAD(ErdmaHpccSnap, hpccs, t_ns, HUGE, NULL),
    BAD(ErdmaHpccSnap, hpccs, t_ns, 0, NULL),
    BAD(ErdmaHpccSnap, hpccs, w_max, 0xbff0000000000000ull, NULL),
    BAD(ErdmaHpccSnap, hpccs, w_ai, 0xbff0000000000000ull, NULL),
    BAD(ErdmaHpccSnap, hpccs, wc, 0x7ff0000000000000ull, NULL),
    BAD(ErdmaHpccSnap, hpccs, u, 0x7ff8000000000000ull, NULL),
    BAD(ErdmaHpccSnap, hpccs, alpha, 0x4000000000000000ull, NULL),
    BAD(ErdmaHpccSnap, hpccs, round_min, 0xbff0000000000000ull, NULL),
    BAD(ErdmaHpccSnap, hpccs, round_end, HUGE, NULL),
    BAD(ErdmaHpccSnap, hpccs, n_reprobes, 3, NULL),
    BAD(ErdmaHpccSnap, hpccs, n_hops, 9, NULL),
    BAD(ErdmaHpccSnap, hpccs, n_hops, 2, NULL),
    BAD(ErdmaXportSnap, snap, mtu, 255, NULL),
    BAD(ErdmaXportSnap, snap, mtu, 65536, NULL),
    BAD(ErdmaXportSnap, snap, n_conns, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_sents, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_ranges, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_chunks, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_cubics, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_hpccs, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_hops, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_bytes, MANY, NULL),
    BAD(ErdmaXportSnap, snap, n_conns, 0, NULL),
    BAD(ErdmaXportSnap, snap, n_hpccs, 0, NULL),
    BAD(ErdmaXportSnap, snap, n_bytes, 3, "no stack"),
};

/* Where the first element of @h->array is */
static void *hostile_place(const Hostile *h, ErdmaXportSnap *s)
{
    void *v = !strcmp(h->array, "conns") ? (void *)s->conns :
              !strcmp(h->array, "sents") ? (void *)s->sents :
              !strcmp(h->array, "ranges") ? (void *)s->ranges :
              !strcmp(h->array, "chunks") ? (void *)s->chunks :
              !strcmp(h->array, "hpccs") ? (void *)s->hpccs : s;

    return (char *)v + h->offset;
}

static void test_hostile(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(hostile); i++) {
        const Hostile *h = &hostile[i];
        ErdmaXportSnap s = { 0 };
        g_autofree char *error = NULL;
        Network net = { 0 };
        XportRig *rig = busy_rig(&net, &s);
        void *p = hostile_place(h, &s);
        uint64_t old = 0;

        memcpy(&old, p, h->size);
        hostile_set(h, p);
        error = rig_load(rig, 0, &s);
        hostile_expect(h, error);
        memcpy(p, &old, h->size);
        erdma_xport_snap_clear(&s);
        g_string_free(rig->log, true);
        g_rand_free(net.rand);
        rig_free(rig);
    }
}

/* Whatever it is: refused, or at least harmless */
static void test_garbage(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    unsigned n_loaded = 0, i, n;

    for (i = 0; i < 500; i++) {
        ErdmaXportSnap s = { 0 };
        Network net = { 0 };
        XportRig *rig = busy_rig(&net, &s);
        g_autofree char *error = NULL;

        for (n = g_rand_int_range(rand, 1, 4); n; n--) {
            uint8_t *p;
            size_t len;

            switch (g_rand_int_range(rand, 0, 6)) {
            case 0:
                p = (uint8_t *)s.sents;
                len = s.n_sents * sizeof(*s.sents);
                break;
            case 1:
                p = (uint8_t *)s.chunks;
                len = s.n_chunks * sizeof(*s.chunks);
                break;
            case 2:
                p = (uint8_t *)s.hpccs;
                len = sizeof(*s.hpccs);
                break;
            default:
                /* The rig looks at addresses. */
                p = &s.conns->is_active;
                len = sizeof(*s.conns) - offsetof(ErdmaConnSnap, is_active);
                break;
            }
            p[g_rand_int_range(rand, 0, len)] = g_rand_int(rand);
        }
        rig->is_forgetful = true;
        error = rig_load(rig, 0, &s);
        if (rig->end[0].conn && !error) {
            n_loaded++;
            rig_run(rig, rig->now_ns + 20 * RIG_MS);
        }
        erdma_xport_snap_clear(&s);
        g_string_free(rig->log, true);
        g_rand_free(net.rand);
        rig_free(rig);
    }
    g_assert_cmpuint(n_loaded, >, 25);
    g_assert_cmpuint(n_loaded, <, 475);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/snapshot/random", test_random);
    g_test_add_func("/erdma/xport/snapshot/end", test_end);
    g_test_add_func("/erdma/xport/snapshot/error", test_error);
    g_test_add_func("/erdma/xport/snapshot/clock", test_clock);
    g_test_add_func("/erdma/xport/snapshot/hostile", test_hostile);
    g_test_add_func("/erdma/xport/snapshot/garbage", test_garbage);
    return g_test_run();
}
