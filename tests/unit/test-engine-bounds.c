/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one erdma_engine_run() does at most, whatever the guest has put into
 * its memory: DMA transfers, packets, changes of state.  What that takes is
 * told and not judged; "./erdma check bounds" runs this at full scale.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include <malloc.h>
#include <time.h>
#include "qp-rig.h"

/*
 * Two shares of transfers, what one visit of a queue or a full command queue
 * may take beyond them, and the packets.
 */
#define MAX_DMA         (2048 + 1024 + 1536)
#define MAX_EVENT_DMA   (1024 + 1)
#define MAX_ARMS        256
#define MAX_PACKETS     128
#define DMA_PER_PACKET  24
#define MAX_STATES      (512 + 64 + 32)

#define RING_LOG2       15
#define NOWHERE_IP      0x0a0000fe

typedef struct Worst {
    uint64_t n_runs;
    uint64_t n_dma;
    uint64_t n_packets;
    uint64_t n_states;
    GArray *ns;                 /* of each run */
} Worst;

/* QPs that a test makes: a number to remember, or the most there can be */
static unsigned n_qps = 1023;

/* Of our own, not of what else the host does */
static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * RIG_S + ts.tv_nsec;
}

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static Rig *big_rig(void)
{
    return rig_new_with(n_qps / 1024 + 1, 9000);
}

/* One run; true when there is more to do right away */
static bool step(RigHca *hca, Worst *w)
{
    uint64_t dma = hca->n_dma, packets = hca->rig->n_sent;
    uint64_t states = hca->n_states, start = cpu_ns();
    uint64_t next = erdma_engine_run(hca->e, hca->rig->now);

    w->n_runs++;
    start = cpu_ns() - start;
    if (!w->ns) {
        w->ns = g_array_new(FALSE, FALSE, sizeof(start));
    }
    g_array_append_val(w->ns, start);
    w->n_dma = MAX(w->n_dma, hca->n_dma - dma);
    w->n_packets = MAX(w->n_packets, hca->rig->n_sent - packets);
    w->n_states = MAX(w->n_states, hca->n_states - states);
    hca->next_ns = next;
    return next <= hca->rig->now;
}

static void settle(RigHca *hca, Worst *w)
{
    uint64_t n = 0;

    while (step(hca, w)) {
        g_assert_cmpuint(++n, <, 100 * 1000 * 1000);
    }
}

static int compare_ns(gconstpointer a, gconstpointer b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Microseconds that @percent of the runs did not exceed */
static uint64_t quantile(const Worst *w, double percent)
{
    unsigned i = MIN(w->ns->len * percent / 100, w->ns->len - 1);

    return g_array_index(w->ns, uint64_t, i) / 1000;
}

/* The last; the slowest runs of many are the host's affairs, mostly. */
static void judge(const char *what, Worst *w)
{
    g_array_sort(w->ns, compare_ns);
    g_test_message("%s: %" PRIu64 " runs; at most %" PRIu64
                   " transfers, %" PRIu64 " packets, %" PRIu64
                   " states; median %" PRIu64 ", 99 %% %" PRIu64
                   ", slowest %" PRIu64 " us", what, w->n_runs, w->n_dma,
                   w->n_packets, w->n_states, quantile(w, 50),
                   quantile(w, 99), quantile(w, 100));
    g_array_unref(w->ns);
    g_assert_cmpuint(w->n_packets, <=, MAX_PACKETS);
    g_assert_cmpuint(w->n_dma, <=,
                     MAX_DMA + w->n_packets * DMA_PER_PACKET);
    g_assert_cmpuint(w->n_states, <=, MAX_STATES);
}

/* A QP whose rings are everybody's; CQ 1 is there. */
static uint32_t shared_qp(RigHca *hca, uint32_t qpn, uint64_t ring,
                          bool has_table)
{
    uint32_t cookie;
    ErdmaCreateQp c = {
        .qpn = qpn, .pdn = RIG_PD, .sq_cqn = 1, .rq_cqn = 1,
        .sq_depth_log2 = RING_LOG2, .rq_depth_log2 = RING_LOG2,
        .sq_page_shift = has_table ? 5 : 20,
        .rq_page_shift = has_table ? 5 : 20,
        .sq_n_pages = has_table ? 1 << RING_LOG2 : 1,
        .rq_n_pages = has_table ? 1 << RING_LOG2 : 1,
        .sq_has_table = has_table, .rq_has_table = has_table,
        .sq_pages = { ring }, .rq_pages = { ring },
        .is_kernel = true,
    };

    g_assert_cmpuint(erdma_qp_create(hca->e, &c, &cookie), ==, 0);
    return cookie;
}

static void connect_nowhere(RigHca *hca, uint32_t qpn)
{
    ErdmaModifyQp m = {
        .qpn = qpn, .state = ERDMA_QPS_RTS, .cc = ERDMA_CC_CUBIC,
        .cookie = 0x12345678 + qpn, .local_ip = hca->ip,
        .peer_ip = NOWHERE_IP, .send_nxt = qpn, .recv_nxt = ~qpn,
    };

    g_assert_cmpuint(erdma_qp_modify(hca->e, &m, hca->rig->now), ==, 0);
}

static void ring_both(RigHca *hca, uint32_t qpn, uint16_t pi)
{
    uint64_t payload = (uint64_t)qpn << 32 | pi;

    erdma_engine_db_queue(hca->e, ERDMA_DB_KIND_SQ, payload);
    erdma_engine_db_queue(hca->e, ERDMA_DB_KIND_RQ, payload);
}

/* @n QPs in RTS with rings at @ring, all of them full by their doorbells */
static void fill_all(RigHca *hca, unsigned n, uint64_t ring, bool has_table)
{
    unsigned i;

    rig_cq(hca, 10);
    for (i = 1; i <= n; i++) {
        shared_qp(hca, i, ring, has_table);
        connect_nowhere(hca, i);
        ring_both(hca, i, 1 << RING_LOG2);
    }
}

/* Rings of the greatest depth, full of anything */
static void test_nonsense(void)
{
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    uint64_t ring = rig_alloc(hca, 32 << RING_LOG2), i;
    Worst w = { 0 };

    for (i = 0; i < 8 << RING_LOG2; i++) {
        stl_le_p(rig_ptr(hca, ring + 4 * i), g_rand_int(rig->rand));
    }
    fill_all(hca, 64, ring, false);
    settle(hca, &w);
    judge("rings of nonsense", &w);
    g_assert_cmpuint(erdma_engine_stats(hca->e)->flushed, >,
                     64 << RING_LOG2);
    rig_free(rig);
}

/* The same through page tables that lead to themselves, an entry a page */
static void test_tables(void)
{
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    uint64_t table = rig_alloc(hca, 8 << RING_LOG2), i;
    Worst w = { 0 };

    for (i = 0; i < 1 << RING_LOG2; i++) {
        stq_le_p(rig_ptr(hca, table + 8 * i), table);
    }
    fill_all(hca, 64, table, true);
    settle(hca, &w);
    judge("tables that lead to themselves", &w);
    rig_free(rig);
}

/* Rings where no DMA goes, such as the device's own BAR */
static void test_unreachable(void)
{
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    uint64_t bar = rig_alloc(hca, 4096);
    Worst w = { 0 };

    hca->hole = bar;
    hca->hole_len = 4096;
    fill_all(hca, MIN(n_qps, 2048), bar, true);
    settle(hca, &w);
    judge("rings in the device's own BAR", &w);
    rig_free(rig);
}

/*
 * A region of three levels whose one table names itself, and no two pages of
 * which are neighbours: each page costs as many reads as can be.
 */
static uint32_t cyclic_mr(RigHca *hca)
{
    ErdmaRegMr reg = {
        .index = hca->next_mr++, .key = 1, .version = 1, .is_valid = true,
        .access = RIG_ALL_RIGHTS, .type = ERDMA_MR_TYPE_NORMAL,
        .pdn = RIG_PD, .len = 1ull << 34, .n_pages = 1ull << 22,
        .level = 3, .table_shift = 12, .page_shift = 12,
    };
    uint64_t table = rig_alloc(hca, 4096);
    unsigned i;

    for (i = 0; i < 512; i++) {
        stq_le_p(rig_ptr(hca, table + 8 * i), table);
    }
    reg.pages[0] = table;
    g_assert_cmpuint(erdma_mr_create(hca->e, &reg), ==, 0);
    return reg.index << 8 | reg.key;
}

static void test_cyclic_mtt(void)
{
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    uint32_t key = cyclic_mr(hca);
    RigQp *qp[64];
    Worst w = { 0 };
    unsigned i, k;
    RigWr wr = { .op = ERDMA_OP_WRITE, .n_sges = 6 };

    /* Each of the entries begins in another table of the lowest level. */
    for (i = 0; i < wr.n_sges; i++) {
        wr.sges[i] = (RigSge) { ((uint64_t)i << 21) + 4095, 1500, key };
    }
    for (i = 0; i < ARRAY_SIZE(qp); i++) {
        qp[i] = rig_qp(hca, i + 1, &(RigQpOpts) { .sq_depth_log2 = 8 });
        connect_nowhere(hca, i + 1);
        for (k = 0; k < 60; k++) {
            rig_write_sqe(qp[i], &wr);
        }
        rig_ring_sq(qp[i]);
    }
    settle(hca, &w);
    g_assert_cmpuint(w.n_packets, ==, MAX_PACKETS);
    judge("cyclic page tables", &w);
    for (i = 0; i < ARRAY_SIZE(qp); i++) {
        rig_qp_free(qp[i]);
    }
    rig_free(rig);
}

/* Every doorbell there is, again and again */
static void test_doorbells(void)
{
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    uint64_t ring = rig_alloc(hca, 32 << RING_LOG2);
    Worst w = { 0 };
    unsigned i, k;

    fill_all(hca, n_qps, ring, false);
    for (k = 0; k < 3; k++) {
        for (i = 0; i < n_qps; i++) {
            ring_both(hca, i + 1, 1 << RING_LOG2);
            erdma_engine_db_queue(hca->e, ERDMA_DB_KIND_CQ,
                                  (uint64_t)(i + 1) << 32 | 1u << 31);
        }
        erdma_engine_db_cmdq_sq(hca->e, 64);
        erdma_engine_db_cmdq_cq(hca->e, 1u << 31);
        step(hca, &w);
    }
    /* Until the end it would take a while. */
    for (k = 0; k < 1000; k++) {
        step(hca, &w);
    }
    judge("doorbells of all queues", &w);
    rig_free(rig);
}

/*
 * As many connections as there can be, to nobody; then all their timers are
 * due at one time, until the last has given up.
 */
static void test_nowhere(void)
{
    size_t before = heap(), after;
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    uint64_t ring = rig_alloc(hca, 4096), start, slowest = 0;
    Worst w = { 0 };
    ErdmaEngineCounts counts;
    unsigned i;

    rig_cq(hca, 10);
    for (i = 1; i <= n_qps; i++) {
        shared_qp(hca, i, ring, false);
    }
    after = heap();
    g_test_message("a QP: %zu bytes", (after - before) / n_qps);
    for (i = 1; i <= n_qps; i++) {
        start = cpu_ns();
        connect_nowhere(hca, i);
        slowest = MAX(slowest, cpu_ns() - start);
        /* Something that has to be waited for */
        erdma_xport_conn_expect(erdma_qp_get(hca->e, i)->conn, true);
    }
    g_test_message("the slowest connect: %" PRIu64 " us", slowest / 1000);
    settle(hca, &w);
    g_test_message("and its connection: %zu bytes",
                   (heap() - after) / n_qps);
    /* Looking at one that has nothing to send is work, too. */
    for (i = 1; i <= n_qps; i++) {
        erdma_xport_conn_expect(erdma_qp_get(hca->e, i)->conn, false);
        erdma_xport_conn_expect(erdma_qp_get(hca->e, i)->conn, true);
    }
    g_assert_true(step(hca, &w) || n_qps <= 512);
    settle(hca, &w);
    start = cpu_ns();
    erdma_xport_set_mtu(hca->e->xport, 1500);
    g_test_message("a new MTU: %" PRIu64 " us",
                   (cpu_ns() - start) / 1000);
    for (i = 0; i < 40; i++) {
        rig->now += 100 * RIG_S;
        settle(hca, &w);
    }
    g_assert_cmpuint(hca->n_states, >=, 2 * n_qps);
    erdma_engine_counts(hca->e, &counts);
    g_assert_cmpuint(counts.n_qps, ==, n_qps);
    judge("connections to nowhere", &w);
    after = heap();
    start = cpu_ns();
    erdma_engine_reset(hca->e);
    g_test_message("a reset with all of them: %" PRIu64 " us",
                   (cpu_ns() - start) / 1000);
    erdma_engine_counts(hca->e, &counts);
    g_assert_cmpuint(counts.n_qps + counts.n_cqs, ==, 0);
    /* What is left of them goes bit by bit. */
    w = (Worst) { 0 };
    settle(hca, &w);
    g_assert_cmpuint(w.n_runs, >=, n_qps / 256);
    g_assert_cmpuint(heap(), <=, after);
    judge("what a reset has left", &w);
    rig_free(rig);
}

static void fire_all_cqs(RigHca *hca, unsigned n_cqs)
{
    ErdmaCqe cqe = { 0 };
    unsigned i;

    for (i = 1; i <= n_cqs; i++) {
        erdma_cq_get(hca->e, i)->arm = ERDMA_CQ_ARM_ANY;
        erdma_cq_post(hca->e, i, &cqe);
    }
}

/* An event queue that is read at last, when every CQ waits for it */
static void test_events(void)
{
    unsigned n_cqs = MAX(2 * n_qps, 8000), depth_log2 = 12, i;
    Rig *rig = rig_new_with(MAX(n_qps / 1024 + 1, 4), 1500);
    RigHca *hca = &rig->hca[0];
    uint64_t ring = rig_alloc(hca, 4096), start;
    Worst w = { 0 };
    ErdmaCq *cq;
    ErdmaEq *eq = &hca->e->ceqs[1];
    uint64_t eq_addr;

    if (n_cqs > 1 << ERDMA_MAX_EQ_LOG2) {
        depth_log2 = ERDMA_MAX_EQ_LOG2;
    }
    eq_addr = rig_alloc(hca, 16 << depth_log2);
    erdma_eq_create(hca->e, eq, eq_addr, depth_log2, 0, 0);
    for (i = 1; i <= n_cqs; i++) {
        cq = g_new0(ErdmaCq, 1);
        cq->cqn = i;
        cq->eqn = 1;
        erdma_ring_init_flat(&cq->ring, ring, 0, ERDMA_CQE_SHIFT);
        g_assert_true(erdma_cq_add(hca->e, cq));
    }
    fire_all_cqs(hca, n_cqs);
    g_assert_cmpuint(eq->pi, ==, 1 << depth_log2);
    for (i = 1 << depth_log2; i < n_cqs; i = eq->pi) {
        erdma_engine_db_ceq(hca->e, 1, 1u << 31 | (eq->pi & 0xffff));
        settle(hca, &w);
    }
    g_assert_cmpuint(w.n_dma, <=, MAX_EVENT_DMA);
    /* Each of them once, nobody forgotten on the way */
    g_assert_cmpuint(eq->pi, ==, n_cqs);
    g_assert_true(QTAILQ_EMPTY(&eq->held));
    judge("events that were held back", &w);

    fire_all_cqs(hca, n_cqs);
    g_assert_true(erdma_eq_holds(eq, erdma_cq_get(hca->e, n_cqs)));
    start = cpu_ns();
    erdma_eq_destroy(eq);
    g_test_message("to destroy a CEQ that all wait for: %" PRIu64
                   " us", (cpu_ns() - start) / 1000);

    /* What waited for it does not wait for the next one of this number. */
    erdma_eq_create(hca->e, eq, eq_addr, depth_log2, 0, 0);
    g_assert_false(erdma_eq_holds(eq, erdma_cq_get(hca->e, n_cqs)));
    fire_all_cqs(hca, n_cqs);
    g_assert_true(erdma_eq_holds(eq, erdma_cq_get(hca->e, n_cqs)));
    erdma_eq_forget_cq(hca->e, erdma_cq_get(hca->e, n_cqs - 1));
    w = (Worst) { 0 };
    for (i = 1 << depth_log2; i < n_cqs - 1; i = eq->pi) {
        erdma_engine_db_ceq(hca->e, 1, 1u << 31 | (eq->pi & 0xffff));
        settle(hca, &w);
    }
    g_assert_cmpuint(eq->pi, ==, n_cqs - 1);
    judge("events of a queue made anew", &w);
    rig_free(rig);
}

/* All CQs are armed at one time, and each has something to tell. */
static void test_arms(void)
{
    unsigned n_cqs = MIN(2 * n_qps, 1 << ERDMA_MAX_EQ_LOG2), i;
    Rig *rig = big_rig();
    RigHca *hca = &rig->hca[0];
    ErdmaEq *eq = &hca->e->ceqs[1];
    uint32_t pi = 0;
    ErdmaCqe cqe = { 0 };
    Worst w = { 0 };
    bool more;

    erdma_eq_create(hca->e, eq, rig_alloc(hca, 16 << ERDMA_MAX_EQ_LOG2),
                    ERDMA_MAX_EQ_LOG2, 0, 0);
    for (i = 1; i <= n_cqs; i++) {
        ErdmaCq *cq = g_new0(ErdmaCq, 1);

        cq->cqn = i;
        cq->eqn = 1;
        erdma_ring_init_flat(&cq->ring, rig_alloc_at(hca, 64, 64, 0), 1,
                             ERDMA_CQE_SHIFT);
        g_assert_true(erdma_cq_add(hca->e, cq));
        erdma_cq_post(hca->e, i, &cqe);
        erdma_engine_db_queue(hca->e, ERDMA_DB_KIND_CQ,
                              (uint64_t)i << 32 | 1u << 31);
    }
    do {
        more = step(hca, &w);
        g_assert_cmpuint(eq->pi - pi, <=, MAX_ARMS);
        pi = eq->pi;
    } while (more);
    g_assert_cmpuint(pi, ==, n_cqs);
    judge("arms of all CQs", &w);
    rig_free(rig);
}

/*
 * What QPs have fetched is memory of ours: beyond a number of entries in all,
 * each has a few.  All are executed nevertheless.
 */
static void test_sends(void)
{
    const uint32_t many = 65536;
    Rig *rig = rig_new();
    RigQp *a, *b;
    RigWr wr = { .op = ERDMA_OP_WRITE };
    unsigned i;

    rig_pair(rig, &a, &b);
    for (i = 0; i < 100; i++) {
        rig_write_sqe(a, &wr);
    }
    a->hca->e->n_sends += many;
    rig_ring_sq(a);
    erdma_engine_run(a->hca->e, rig->now);
    g_assert_cmpuint(a->hca->e->n_sends, ==, many + 4);
    rig_run(rig, RIG_S);
    g_assert_cmpuint(a->hca->e->n_sends, ==, many);
    for (i = 0; i < 100; i++) {
        rig_expect(&a->scq, ERDMA_OP_WRITE, ERDMA_WC_SUCCESS, i);
    }
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* The same with answers to a peer's reads */
static void test_responses(void)
{
    const uint32_t many = 65536;
    Rig *rig = rig_new();
    RigQp *a, *b;
    uint64_t from, to;
    uint32_t most = 0;
    unsigned i;
    RigWr wr = { .op = ERDMA_OP_READ, .n_sges = 1 };

    rig_pair(rig, &a, &b);
    from = rig_alloc(b->hca, 100);
    to = rig_alloc(a->hca, 100);
    memset(rig_ptr(b->hca, from), 0x77, 100);
    wr.rkey = rig_mr(b->hca, from, 100, ERDMA_MR_ACC_RR);
    wr.sges[0].key = rig_mr(a->hca, to, 100, ERDMA_MR_ACC_LW);
    wr.sges[0].len = 1;
    for (i = 0; i < 100; i++) {
        wr.raddr = from + i;
        wr.sges[0].addr = to + i;
        rig_write_sqe(a, &wr);
    }
    b->hca->e->n_responses += many;
    rig_ring_sq(a);
    for (i = 0; i < 1000; i++) {
        rig_run(rig, 10 * RIG_US);
        most = MAX(most, b->hca->e->n_responses);
    }
    rig_run(rig, RIG_S);
    g_assert_cmpuint(most, ==, many + 4);
    g_assert_cmpuint(b->hca->e->n_responses, ==, many);
    for (i = 0; i < 100; i++) {
        g_assert_cmpuint(*(uint8_t *)rig_ptr(a->hca, to + i), ==, 0x77);
        rig_next(&a->scq);
    }
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    const char *number = getenv("ERDMA_BOUNDS_QPS");

    g_test_init(&argc, &argv, NULL);
    if (number) {
        n_qps = CLAMP(atoi(number), 64, 131071);
    }
    g_test_add_func("/bounds/nonsense", test_nonsense);
    g_test_add_func("/bounds/tables", test_tables);
    g_test_add_func("/bounds/unreachable", test_unreachable);
    g_test_add_func("/bounds/cyclic-mtt", test_cyclic_mtt);
    g_test_add_func("/bounds/doorbells", test_doorbells);
    g_test_add_func("/bounds/nowhere", test_nowhere);
    g_test_add_func("/bounds/events", test_events);
    g_test_add_func("/bounds/arms", test_arms);
    g_test_add_func("/bounds/sends", test_sends);
    g_test_add_func("/bounds/responses", test_responses);
    return g_test_run();
}
