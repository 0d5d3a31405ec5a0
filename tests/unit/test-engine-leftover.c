/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reset forgets everything at once, and frees it later: nobody can tell,
 * and a guest that resets all the time gains no memory by it.
 */

#include "qemu/osdep.h"
#include "qp-rig.h"
#include "xport/conn.h"

#define N_QPS       1000
#define LEN         3000

/* Blocks that one run frees: the unit of what costs more than others */
#define PER_RUN     1024

static unsigned n_left(const ErdmaEngine *e)
{
    const ErdmaLeftover *left;
    unsigned n = 0;

    QTAILQ_FOREACH(left, &e->leftovers, next) {
        n += left->qps.count + left->cqs.count + left->mrs.count;
    }
    return n;
}

static void start_again(RigHca *hca)
{
    ErdmaEngineInit init = {
        .cmdq_depth = RIG_CMDQ_DEPTH, .cmdq_eq_depth = RIG_CMDQ_DEPTH,
        .aeq_depth = RIG_AEQ_DEPTH,
        .cmdq_sq_addr = hca->cmdq_sq, .cmdq_cq_addr = hca->cmdq_cq,
        .cmdq_eq_addr = hca->cmdq_sq, .aeq_addr = hca->aeq,
    };

    memset(rig_ptr(hca, hca->aeq), 0, RIG_AEQ_DEPTH * 16);
    hca->aeq_ci = 0;
    hca->next_cqn = hca->next_mr = 1;
    g_assert_true(erdma_engine_init(hca->e, &init));
}

/* A QP whose queues are the same memory as those of all others */
static RigQp many_qp(RigHca *hca, uint32_t qpn, const RigQp *like)
{
    RigQp qp = *like;
    ErdmaCreateQp c = {
        .qpn = qpn, .pdn = RIG_PD, .sq_cqn = like->scq.cqn,
        .rq_cqn = like->rcq.cqn, .sq_depth_log2 = ctz32(like->sq_depth),
        .rq_depth_log2 = ctz32(like->rq_depth), .is_kernel = true,
        .sq_page_shift = 20, .rq_page_shift = 20, .sq_n_pages = 1,
        .rq_n_pages = 1, .sq_pages = { like->sq }, .rq_pages = { like->rq },
    };

    qp.qpn = qpn;
    g_assert_cmpuint(erdma_qp_create(hca->e, &c, &qp.cookie), ==, 0);
    return qp;
}

typedef struct Many {
    Rig *rig;
    RigQp *first[2];
    RigQp qp[2][N_QPS];
} Many;

/* QPs of all kinds: connected, with requests under way, with doorbells */
static void fill(Many *m)
{
    static const uint8_t ops[] = { ERDMA_OP_WRITE, ERDMA_OP_READ };
    uint64_t buf[2];
    uint32_t key[2];
    unsigned i, k;

    for (k = 0; k < 2; k++) {
        buf[k] = rig_alloc(&m->rig->hca[k], LEN);
        key[k] = rig_mr(&m->rig->hca[k], buf[k], LEN, RIG_ALL_RIGHTS);
        m->first[k] = rig_qp(&m->rig->hca[k], N_QPS + 1, NULL);
    }
    for (i = 0; i < N_QPS; i++) {
        for (k = 0; k < 2; k++) {
            m->qp[k][i] = many_qp(&m->rig->hca[k], i + 1, m->first[k]);
        }
        rig_connect(&m->qp[0][i], &m->qp[1][i]);
    }
    for (i = 0; i < 200; i++) {
        for (k = 0; k < 2; k++) {
            rig_post_send(&m->qp[k][i], &(RigWr) {
                .op = ops[i % 2], .n_sges = 1, .rkey = key[!k],
                .raddr = buf[!k], .sges = { { buf[k], LEN, key[k] } },
            });
        }
    }
    rig_run(m->rig, 20 * RIG_US);
    for (i = 200; i < 400; i++) {
        rig_post_send(&m->qp[0][i], &(RigWr) { .op = ERDMA_OP_WRITE });
    }
    for (k = 0; k < 2; k++) {
        erdma_engine_db_queue(m->rig->hca[k].e, ERDMA_DB_KIND_CQ,
                              (uint64_t)m->first[k]->scq.cqn << 32 |
                              1u << 31);
    }
}

static Many *many_new(void)
{
    Many *m = g_new0(Many, 1);

    m->rig = rig_new();
    m->rig->reorder_percent = 20;
    fill(m);
    return m;
}

static void many_free(Many *m)
{
    rig_free(m->rig);
    rig_qp_free(m->first[0]);
    rig_qp_free(m->first[1]);
    g_free(m);
}

static void check_nothing_is_there(const ErdmaEngine *e)
{
    ErdmaEngineCounts c;

    erdma_engine_counts(e, &c);
    g_assert_cmpuint(c.n_qps + c.n_cqs + c.n_mrs, ==, 0);
    g_assert_cmpuint(e->n_sends + e->n_responses, ==, 0);
    g_assert_true(QTAILQ_EMPTY(&e->qp_work));
    g_assert_true(QTAILQ_EMPTY(&e->cq_work));
    g_assert_cmpuint(e->xport->conns.n + e->xport->timers.n, ==, 0);
    g_assert_true(QTAILQ_EMPTY(&e->xport->active));
}

/* In reset: it goes bit by bit, and nothing else happens. */
static void test_piecemeal(void)
{
    Many *m = many_new();
    RigHca *hca = &m->rig->hca[0];
    uint64_t sent, n_dma;
    unsigned before, runs = 0;
    ErdmaXportStats stats = *erdma_engine_xport_stats(hca->e);

    hca->next_ns = UINT64_MAX;
    erdma_engine_reset(hca->e);
    check_nothing_is_there(hca->e);
    g_assert_cmpmem(&stats, sizeof(stats),
                    erdma_engine_xport_stats(hca->e), sizeof(stats));
    before = n_left(hca->e);
    g_assert_cmpuint(before, >=, N_QPS + 2);
    /* The shell was told that there is something to do. */
    g_assert_cmpuint(hca->next_ns, ==, 0);
    sent = m->rig->n_sent;
    n_dma = hca->n_dma;
    while (erdma_engine_run(hca->e, m->rig->now) <= m->rig->now) {
        g_assert_cmpuint(n_left(hca->e), <, before);
        g_assert_cmpuint(before - n_left(hca->e), <=, PER_RUN);
        before = n_left(hca->e);
        runs++;
    }
    g_assert_cmpuint(runs, >=, N_QPS * 4 / PER_RUN);
    g_assert_true(QTAILQ_EMPTY(&hca->e->leftovers));
    g_assert_cmpuint(hca->e->n_sends + hca->e->n_responses, ==, 0);
    g_assert_cmpuint(m->rig->n_sent, ==, sent);
    g_assert_cmpuint(hca->n_dma, ==, n_dma);
    many_free(m);
}

/* The next life begins at once, with the same numbers. */
static void test_next_life(void)
{
    Many *m = many_new();
    RigHca *hca = &m->rig->hca[0];
    uint64_t drops;
    RigQp *a, *b;
    unsigned i;

    erdma_engine_reset(hca->e);
    start_again(hca);
    g_assert_cmpuint(n_left(hca->e), >=, N_QPS);
    a = rig_qp(hca, 1, NULL);
    b = rig_qp(&m->rig->hca[1], N_QPS + 5, NULL);
    g_assert_cmpuint(a->cookie, !=, m->qp[0][0].cookie);
    rig_connect(a, b);
    for (i = 0; i < 50; i++) {
        rig_post_recv(a, 0, 0, 0);
        rig_post_send(b, &(RigWr) { .op = ERDMA_OP_SEND });
        rig_post_send(a, &(RigWr) { .op = ERDMA_OP_WRITE });
    }
    drops = erdma_engine_xport_stats(hca->e)->drops[ERDMA_XPORT_DROP_NO_CONN];
    rig_run(m->rig, 30 * RIG_S);
    for (i = 0; i < 50; i++) {
        g_assert_cmpuint(rig_next(&a->scq).status, ==, 0);
        g_assert_cmpuint(rig_next(&a->rcq).status, ==, 0);
        g_assert_cmpuint(rig_next(&b->scq).status, ==, 0);
    }
    /* What was on its way to the other life has arrived, at nobody. */
    g_assert_cmpuint(erdma_engine_xport_stats(hca->e)
                     ->drops[ERDMA_XPORT_DROP_NO_CONN], >, drops);
    g_assert_true(QTAILQ_EMPTY(&hca->e->leftovers));
    rig_qp_free(a);
    rig_qp_free(b);
    many_free(m);
}

/*
 * A guest that makes as much as it can between resets: what is left of all its
 * lives is never more than the first one had.
 */
static void test_again_and_again(void)
{
    Many *m = many_new();
    RigHca *hca = &m->rig->hca[0];
    unsigned most, round, i;
    RigQp *like;

    erdma_engine_reset(hca->e);
    most = n_left(hca->e);
    for (round = 0; round < 100; round++) {
        start_again(hca);
        hca->used = 16 << 20;
        like = rig_qp(hca, N_QPS + 1, NULL);
        /* As many as the commands of one run */
        for (i = 1; i < 32; i++) {
            many_qp(hca, i, like);
        }
        erdma_engine_run(hca->e, m->rig->now);
        rig_qp_free(like);
        erdma_engine_reset(hca->e);
        g_assert_cmpuint(n_left(hca->e), <=, most);
    }
    g_assert_cmpuint(n_left(hca->e), ==, 0);
    many_free(m);
}

/* Resets behind each other, a life that does not fit in one of them */
static void test_two(void)
{
    Many *m = many_new();
    RigHca *hca = &m->rig->hca[0];
    unsigned once, i;
    RigQp *like;

    erdma_engine_reset(hca->e);
    once = n_left(hca->e);
    start_again(hca);
    hca->used = 16 << 20;
    like = rig_qp(hca, N_QPS + 1, NULL);
    for (i = 1; i <= N_QPS; i++) {
        many_qp(hca, i, like);
    }
    rig_qp_free(like);
    erdma_engine_reset(hca->e);
    g_assert_cmpuint(n_left(hca->e), >=, once + N_QPS);
    check_nothing_is_there(hca->e);
    while (erdma_engine_run(hca->e, m->rig->now) <= m->rig->now) {
        /* both go */
    }
    g_assert_cmpuint(n_left(hca->e), ==, 0);
    many_free(m);
}

/* Few are freed at once; an HCA that ends frees all. */
static void test_at_once(void)
{
    Rig *rig = rig_new();
    RigQp *a, *b;
    Many *m;

    rig_pair(rig, &a, &b);
    rig_post_send(a, &(RigWr) { .op = ERDMA_OP_WRITE });
    erdma_engine_reset(a->hca->e);
    g_assert_true(QTAILQ_EMPTY(&a->hca->e->leftovers));
    check_nothing_is_there(a->hca->e);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);

    m = many_new();
    erdma_engine_reset(m->rig->hca[0].e);
    g_assert_cmpuint(n_left(m->rig->hca[0].e), >, 0);
    many_free(m);
}

/* A snapshot knows nothing of them, and can be loaded over them. */
static void test_snapshot(void)
{
    Many *m = many_new();
    RigHca *hca = &m->rig->hca[0];
    ErdmaEngineSnap s = { 0 };
    char *error = NULL;
    unsigned n;

    g_assert_true(erdma_engine_save(hca->e, &s, m->rig->now, &error));
    n = s.n_qps;
    g_assert_cmpuint(n, ==, N_QPS + 1);
    g_assert_true(erdma_engine_load(hca->e, &s, m->rig->now, &error));
    erdma_engine_snap_clear(&s);
    g_assert_cmpuint(n_left(hca->e), >=, N_QPS);
    g_assert_true(erdma_engine_save(hca->e, &s, m->rig->now, &error));
    g_assert_cmpuint(s.n_qps, ==, n);
    erdma_engine_snap_clear(&s);
    rig_run(m->rig, 30 * RIG_S);
    g_assert_cmpuint(n_left(hca->e), ==, 0);
    erdma_engine_reset(hca->e);
    g_assert_true(erdma_engine_save(hca->e, &s, m->rig->now, &error));
    g_assert_cmpuint(s.n_qps, ==, 0);
    erdma_engine_snap_clear(&s);
    many_free(m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/leftover/piecemeal", test_piecemeal);
    g_test_add_func("/leftover/next-life", test_next_life);
    g_test_add_func("/leftover/again-and-again", test_again_and_again);
    g_test_add_func("/leftover/two", test_two);
    g_test_add_func("/leftover/at-once", test_at_once);
    g_test_add_func("/leftover/snapshot", test_snapshot);
    return g_test_run();
}
