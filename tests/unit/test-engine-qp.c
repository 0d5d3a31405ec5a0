/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: commands, doorbells, states, flushing.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qp-rig.h"

/* Creation */

static ErdmaCreateQp good_create(RigHca *hca, RigCq *cq)
{
    ErdmaCreateQp c = {
        .qpn = 3, .pdn = RIG_PD, .sq_cqn = cq->cqn, .rq_cqn = cq->cqn,
        .sq_depth_log2 = 4, .rq_depth_log2 = 4, .sq_page_shift = 12,
        .rq_page_shift = 12, .sq_n_pages = 1, .rq_n_pages = 1,
    };

    c.sq_pages[0] = rig_alloc(hca, 4096);
    c.rq_pages[0] = rig_alloc(hca, 4096);
    return c;
}

#define REFUSED(field, value) do {                                      \
        ErdmaCreateQp c_ = good;                                        \
        c_.field = (value);                                             \
        g_assert_cmpuint(erdma_qp_create(hca->e, &c_, &cookie), !=, 0); \
    } while (0)

static void test_create(void)
{
    Rig *rig = rig_new();
    RigHca *hca = &rig->hca[0];
    RigCq cq = rig_cq(hca, 4);
    ErdmaCreateQp good = good_create(hca, &cq);
    ErdmaEngineCounts counts;
    uint32_t cookie;

    REFUSED(qpn, 0);
    REFUSED(qpn, 1024);
    REFUSED(qpn, 0xfffff);
    REFUSED(sq_cqn, 77);
    REFUSED(rq_cqn, 0);
    REFUSED(rq_cqn, 0xffffff);
    REFUSED(sq_depth_log2, 16);
    REFUSED(rq_depth_log2, 16);
    REFUSED(sq_depth_log2, 0xfff);
    REFUSED(rq_depth_log2, 0xfff);
    /* The pages named do not hold the queue. */
    REFUSED(sq_depth_log2, 8);
    REFUSED(rq_n_pages, 0);
    REFUSED(sq_n_pages, 0);
    REFUSED(sq_off, 0xfff00000);
    g_assert_cmpuint(erdma_qp_create(hca->e, &good, &cookie), ==, 0);
    g_assert_cmpuint(cookie & 0xfffff, ==, 3);
    /* in use */
    g_assert_cmpuint(erdma_qp_create(hca->e, &good, &cookie), !=, 0);
    good.qpn = 1023;
    g_assert_cmpuint(erdma_qp_create(hca->e, &good, &cookie), ==, 0);
    erdma_engine_counts(hca->e, &counts);
    g_assert_cmpuint(counts.n_qps, ==, 2);
    g_assert_cmpuint(erdma_qp_destroy(hca->e, 3), ==, 0);
    g_assert_cmpuint(erdma_qp_destroy(hca->e, 3), !=, 0);
    g_assert_cmpuint(erdma_qp_destroy(hca->e, 4), !=, 0);
    g_assert_cmpuint(erdma_qp_destroy(hca->e, 0xfffff), !=, 0);
    rig_free(rig);
}

/* A QP is never taken for its predecessor, not even across a reset. */
static void test_cookie(void)
{
    Rig *rig = rig_new();
    RigHca *hca = &rig->hca[0];
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    RigCq cq = rig_cq(hca, 4);
    ErdmaCreateQp c = good_create(hca, &cq);
    unsigned i;

    for (i = 0; i < 4096; i++) {
        uint32_t cookie = 0;

        g_assert_cmpuint(erdma_qp_create(hca->e, &c, &cookie), ==, 0);
        g_assert_true(g_hash_table_add(seen, GUINT_TO_POINTER(cookie)));
        if (i == 100) {
            erdma_qp_free_all(hca->e);
        } else {
            g_assert_cmpuint(erdma_qp_destroy(hca->e, 3), ==, 0);
        }
    }
    rig_free(rig);
}

/* An idle QP is small; the entries of its queues are the guest's memory. */
static void test_size(void)
{
    g_assert_cmpuint(sizeof(ErdmaQp), <, 1024);
}

/* Helpers */

static void post_nops(RigQp *qp, unsigned n)
{
    static const uint8_t ops[] = {
        ERDMA_OP_WRITE, ERDMA_OP_SEND, ERDMA_OP_READ, ERDMA_OP_LOCAL_INV,
        ERDMA_OP_ATOMIC_CAS, ERDMA_OP_SEND_WITH_INV, ERDMA_OP_REG_MR,
    };
    unsigned i;

    for (i = 0; i < n; i++) {
        RigWr wr = { .op = ops[i % ARRAY_SIZE(ops)], .n_sges = i % 7,
                     .is_unsignalled = i & 1 };

        rig_write_sqe(qp, &wr);
    }
    rig_ring_sq(qp);
}

/* Exactly @n flushes of what post_nops() wrote, in order */
static unsigned count_flushed(RigCq *cq, uint16_t *next)
{
    unsigned n = 0;
    RigCqe cqe;

    while (rig_poll(cq, &cqe)) {
        g_assert_cmpuint(cqe.status, ==, ERDMA_WC_FLUSH_ERR);
        if (next) {
            g_assert_cmpuint(cqe.index & 0xffff, ==, *next);
            if (cqe.qtype == ERDMA_CQE_QTYPE_RQ) {
                g_assert_cmpuint(cqe.opcode, ==, ERDMA_OP_RECEIVE);
                (*next)++;
            }
        }
        n++;
    }
    return n;
}

/* Flushing */

static void test_flush(gconstpointer data)
{
    uint8_t state = GPOINTER_TO_UINT(data);
    RigQpOpts opts = { .sq_depth_log2 = 10, .rq_depth_log2 = 9 };
    Rig *rig = rig_new();
    RigQp *a = rig_qp(&rig->hca[0], 5, &opts);
    RigQp *b = rig_qp(&rig->hca[1], 9, &opts);
    uint16_t next = 0;
    unsigned i;

    rig_connect(a, b);
    rig->is_cut = true;
    for (i = 0; i < 300; i++) {
        rig_post_recv(a, 0, 0, 0);
    }
    post_nops(a, 200);
    rig_run(rig, RIG_MS);
    /* Sends may have failed by themselves: not what is tested here. */
    g_assert_cmpuint(rig_modify(a, state, NULL), ==, 0);
    rig_run(rig, 10 * RIG_S);
    i = 0;
    while (true) {
        RigCqe cqe;

        if (!rig_poll(&a->scq, &cqe)) {
            break;
        }
        i++;
    }
    g_assert_cmpuint(i, ==, 200);
    g_assert_cmpuint(count_flushed(&a->rcq, &next), ==, 300);

    /* again, and again with new entries, by doorbell alone */
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_ERROR, NULL), ==, 0);
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_CLOSING, NULL), ==, 0);
    rig_run(rig, 10 * RIG_S);
    rig_expect_none(&a->scq);
    rig_expect_none(&a->rcq);
    post_nops(a, 33);
    rig_post_recv(a, 0, 0, 0);
    rig_run(rig, 10 * RIG_S);
    g_assert_cmpuint(count_flushed(&a->scq, NULL), ==, 33);
    g_assert_cmpuint(count_flushed(&a->rcq, &next), ==, 1);
    g_assert_cmpint(rig_poll_aeq(a->hca, 5), ==, -1);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* Never connected: nothing happens until state 5, then everything flushes. */
static void test_flush_unconnected(void)
{
    Rig *rig = rig_new();
    RigQp *qp = rig_qp(&rig->hca[0], 5, NULL);

    post_nops(qp, 20);
    rig_post_recv(qp, 0, 0, 0);
    rig_run(rig, RIG_S);
    rig_expect_none(&qp->scq);
    rig_expect_none(&qp->rcq);
    g_assert_cmpuint(rig_modify(qp, ERDMA_QPS_ERROR, NULL), ==, 0);
    rig_run(rig, RIG_S);
    g_assert_cmpuint(count_flushed(&qp->scq, NULL), ==, 20);
    g_assert_cmpuint(count_flushed(&qp->rcq, NULL), ==, 1);
    rig_qp_free(qp);
    rig_free(rig);
}

/* A run of the engine does a bounded amount of it. */
static void test_flush_bounded(void)
{
    RigQpOpts opts = { .sq_depth_log2 = 13, .rq_depth_log2 = 13 };
    Rig *rig = rig_new();
    RigQp *qp = rig_qp(&rig->hca[0], 5, &opts);
    unsigned runs = 0, n = 0;
    RigWr wr = { .op = ERDMA_OP_SEND };
    unsigned i;

    for (i = 0; i < 8192; i++) {
        rig_write_sqe(qp, &wr);
        rig_post_recv(qp, 0, 0, 0);
    }
    rig_ring_sq(qp);
    rig_modify(qp, ERDMA_QPS_ERROR, NULL);
    while (n < 2 * 8192) {
        unsigned got;

        erdma_engine_run(qp->hca->e, rig->now);
        got = count_flushed(&qp->scq, NULL) + count_flushed(&qp->rcq, NULL);
        g_assert_cmpuint(got, >, 0);
        g_assert_cmpuint(got, <, 8192);
        n += got;
        runs++;
    }
    g_assert_cmpuint(n, ==, 2 * 8192);
    g_assert_cmpuint(runs, >, 2);
    rig_qp_free(qp);
    rig_free(rig);
}

/* Nothing is written for a QP after it was destroyed, in whatever state. */
static void test_destroy(gconstpointer data)
{
    unsigned when = GPOINTER_TO_UINT(data);
    Rig *rig = rig_new();
    uint64_t buf, dst;
    RigWr wr = { .op = ERDMA_OP_SEND, .n_sges = 1 };
    RigQp *a, *b;
    unsigned i;

    rig_pair(rig, &a, &b);
    buf = rig_alloc(a->hca, 100000);
    dst = rig_alloc(b->hca, 100000);
    wr.sges[0] = (RigSge) { buf, 100000,
                            rig_mr(a->hca, buf, 100000, RIG_ALL_RIGHTS) };
    for (i = 0; i < 20; i++) {
        rig_post_recv(b, dst, 100000,
                      rig_mr(b->hca, dst, 100000, RIG_ALL_RIGHTS));
        rig_post_send(a, &wr);
    }
    rig_run(rig, when * 10 * RIG_US);
    if (when & 1) {
        rig_modify(b, ERDMA_QPS_ERROR, NULL);
        erdma_engine_run(b->hca->e, rig->now);
    }
    g_assert_cmpuint(erdma_qp_destroy(b->hca->e, 9), ==, 0);
    b->hca->watch = RIG_MEM_BASE;
    b->hca->watch_len = RIG_MEM_SIZE;
    b->hca->watch_end = 0;
    rig_post_recv(b, 0, 0, 0);          /* a doorbell for nobody */
    rig_run(rig, 3600 * RIG_S);
    g_assert_cmpuint(b->hca->watch_end, ==, 0);
    /* The other end hears the end, or notices. */
    rig_post_send(a, &wr);
    rig_run(rig, 3600 * RIG_S);
    i = 0;
    while (true) {
        RigCqe cqe;

        if (!rig_poll(&a->scq, &cqe)) {
            break;
        }
        g_assert_cmpuint(cqe.index, ==, i);
        i++;
    }
    g_assert_cmpuint(i, ==, 21);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* A reset in the middle of a transfer is the last that is heard of it. */
static void test_reset(gconstpointer data)
{
    unsigned when = GPOINTER_TO_UINT(data);
    Rig *rig = rig_new();
    RigWr wr = { .op = ERDMA_OP_READ, .n_sges = 1 };
    ErdmaEngineCounts counts;
    uint64_t buf, src;
    RigQp *a, *b;
    unsigned i;

    rig_pair(rig, &a, &b);
    buf = rig_alloc(a->hca, 100000);
    src = rig_alloc(b->hca, 100000);
    wr.sges[0] = (RigSge) { buf, 100000,
                            rig_mr(a->hca, buf, 100000, RIG_ALL_RIGHTS) };
    wr.rkey = rig_mr(b->hca, src, 100000, RIG_ALL_RIGHTS);
    wr.raddr = src;
    for (i = 0; i < 20; i++) {
        rig_post_send(a, &wr);
    }
    rig_run(rig, when * 10 * RIG_US);
    erdma_engine_reset(a->hca->e);
    erdma_engine_counts(a->hca->e, &counts);
    g_assert_cmpuint(counts.n_qps, ==, 0);
    a->hca->watch = RIG_MEM_BASE;
    a->hca->watch_len = RIG_MEM_SIZE;
    a->hca->watch_end = 0;
    rig_run(rig, 3600 * RIG_S);
    g_assert_cmpuint(a->hca->watch_end, ==, 0);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* "Send, wait for the completion, disconnect" is safe, last ack or not. */
static void test_close_after_receive(void)
{
    unsigned i;

    for (i = 0; i < 50; i++) {
        Rig *rig = rig_new();
        RigQp *a, *b;

        rig_pair(rig, &a, &b);
        rig_run(rig, RIG_S);
        rig_seed(rig, i);
        rig->loss_percent = 30;
        rig_post_recv(b, 0, 0, 0);
        rig_post_send(a, &(RigWr) { .op = ERDMA_OP_SEND });
        while (erdma_cq_get(b->hca->e, b->rcq.cqn)->pi == 0) {
            rig_run(rig, RIG_US);
        }
        /* The receiver has it, and leaves before it acknowledges. */
        rig_expect(&b->rcq, ERDMA_OP_RECEIVE, 0, 0);
        rig_modify(b, ERDMA_QPS_CLOSING, NULL);
        rig_run(rig, 60 * RIG_S);
        rig_expect(&a->scq, ERDMA_OP_SEND, 0, 0);
        rig_qp_free(a);
        rig_qp_free(b);
        rig_free(rig);
    }
}

/* When the peer closes, everything here ends without blame. */
static void test_peer_closes(void)
{
    Rig *rig = rig_new();
    RigQp *a, *b;

    rig_pair(rig, &a, &b);
    rig_post_recv(a, 0, 0, 0);
    rig_post_send(a, &(RigWr) { .op = ERDMA_OP_SEND });
    rig_run(rig, 10 * RIG_MS);
    rig_modify(b, ERDMA_QPS_CLOSING, NULL);
    rig_run(rig, 10 * RIG_S);
    rig_expect(&a->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 0);
    rig_expect(&a->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0);
    g_assert_cmpint(rig_poll_aeq(a->hca, 5), ==, -1);
    g_assert_cmpint(rig_poll_aeq(b->hca, 9), ==, -1);
    /* Its own driver gets round to it later. */
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_CLOSING, NULL), ==, 0);
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_ERROR, NULL), ==, 0);
    rig_run(rig, 10 * RIG_S);
    rig_expect_none(&a->scq);
    rig_expect_none(&a->rcq);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* MODIFY_QP */

static void test_modify(void)
{
    Rig *rig = rig_new();
    RigQp *a = rig_qp(&rig->hca[0], 5, NULL);
    RigQp *b = rig_qp(&rig->hca[1], 9, NULL);
    RigQp nobody = { .hca = &rig->hca[0], .qpn = 6 };
    unsigned i;

    g_assert_cmpuint(rig_modify(&nobody, ERDMA_QPS_RTS, b), !=, 0);
    g_assert_cmpuint(rig_modify(&nobody, ERDMA_QPS_ERROR, NULL), !=, 0);
    for (i = 0; i < 256; i++) {
        if (i < ERDMA_QPS_RTS || i > ERDMA_QPS_ERROR) {
            g_assert_cmpuint(rig_modify(a, i, b), !=, 0);
        }
    }
    rig_connect(a, b);
    /* not again while something is outstanding */
    rig_post_recv(a, 0, 0, 0);
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_RTS, b), !=, 0);
    rig_post_recv(b, 0, 0, 0);
    rig_post_send(a, &(RigWr) { .op = ERDMA_OP_SEND });
    rig_run(rig, RIG_S);
    rig_expect(&a->scq, ERDMA_OP_SEND, 0, 0);
    rig_expect(&b->rcq, ERDMA_OP_RECEIVE, 0, 0);
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_ERROR, NULL), ==, 0);
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_RTS, b), !=, 0);
    rig_run(rig, RIG_S);
    rig_expect(&a->rcq, ERDMA_OP_RECEIVE, ERDMA_WC_FLUSH_ERR, 0);

    /* Everything was reported: a new connection over the same QPs */
    g_assert_cmpuint(rig_modify(b, ERDMA_QPS_ERROR, NULL), ==, 0);
    rig_run(rig, RIG_S);
    rig_connect(a, b);
    rig_post_recv(b, 0, 0, 0);
    rig_post_send(a, &(RigWr) { .op = ERDMA_OP_SEND });
    rig_run(rig, 10 * RIG_S);
    rig_expect(&a->scq, ERDMA_OP_SEND, 0, 1);
    rig_expect(&b->rcq, ERDMA_OP_RECEIVE, 0, 1);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* Any number in the congestion control field makes a connection. */
static void test_cc(void)
{
    unsigned cc;

    for (cc = 0; cc < 16; cc++) {
        Rig *rig = rig_new();
        RigQp *qp = rig_qp(&rig->hca[0], 5, NULL);
        ErdmaModifyQp m = { .qpn = 5, .state = ERDMA_QPS_RTS, .cc = cc,
                            .cookie = 1, .peer_ip = 2, .local_ip = 3 };

        g_assert_cmpuint(erdma_qp_modify(qp->hca->e, &m, 1), ==, 0);
        rig_run(rig, RIG_S);
        rig_qp_free(qp);
        rig_free(rig);
    }
}

/* Doorbells and REFLUSH */

static void ring(RigQp *qp, ErdmaDbKind kind, uint16_t pi)
{
    /* Bits 31:16 of a receive doorbell are anything. */
    erdma_engine_db_queue(qp->hca->e, kind, (uint64_t)qp->qpn << 32 |
                          (kind == ERDMA_DB_KIND_RQ ? 0xbeef0000 : 0) | pi);
}

static void test_doorbell(void)
{
    const ErdmaEngineStats *stats;
    Rig *rig = rig_new();
    RigHca *hca = &rig->hca[0];
    RigQp *qp = rig_qp(hca, 5, NULL);
    uint64_t ignored;
    RigQp nobody = { .hca = hca, .qpn = 1000 };

    stats = erdma_engine_stats(hca->e);
    ignored = stats->db_ignored;
    ring(&nobody, ERDMA_DB_KIND_SQ, 1);
    ring(&nobody, ERDMA_DB_KIND_RQ, 1);
    g_assert_cmpuint(stats->db_ignored, ==, ignored + 2);

    /* A full queue is fine, on both sides. */
    qp->sq_pi = 0;
    while (qp->sq_pi < qp->sq_depth) {
        rig_write_sqe(qp, &(RigWr) { .op = ERDMA_OP_SEND });
    }
    ring(qp, ERDMA_DB_KIND_SQ, qp->sq_depth);
    ring(qp, ERDMA_DB_KIND_RQ, qp->rq_depth);
    rig_run(rig, RIG_S);
    g_assert_cmpuint(hca->n_guest_errors, ==, 0);
    /* More is not: the QP is dead, what was posted before flushes. */
    ring(qp, ERDMA_DB_KIND_SQ, qp->sq_depth + 1);
    rig_run(rig, RIG_S);
    g_assert_cmpuint(hca->n_guest_errors, ==, 1);
    g_assert_cmpint(rig_poll_aeq(hca, 5), ==, ERDMA_AE_TYPE_QP_FATAL);
    g_assert_cmpuint(count_flushed(&qp->scq, NULL), ==, qp->sq_depth);
    g_assert_cmpuint(count_flushed(&qp->rcq, NULL), ==, qp->rq_depth);
    /* and stays so, quietly */
    ring(qp, ERDMA_DB_KIND_RQ, 3 * qp->rq_depth);
    ring(qp, ERDMA_DB_KIND_SQ, 0);
    rig_run(rig, RIG_S);
    rig_expect_none(&qp->scq);
    rig_expect_none(&qp->rcq);
    g_assert_cmpint(rig_poll_aeq(hca, 5), ==, -1);
    rig_qp_free(qp);
    rig_free(rig);
}

/* An old index that arrives late does not turn the queue back. */
static void test_old_doorbell(void)
{
    Rig *rig = rig_new();
    RigQp *a, *b;
    unsigned i;

    rig_pair(rig, &a, &b);
    for (i = 0; i < 5; i++) {
        rig_post_send(a, &(RigWr) { .op = ERDMA_OP_SEND });
    }
    rig_run(rig, RIG_MS);
    ring(a, ERDMA_DB_KIND_SQ, 3);
    ring(b, ERDMA_DB_KIND_RQ, 0);
    rig_run(rig, RIG_MS);
    g_assert_cmpuint(erdma_qp_get(a->hca->e, 5)->n_sends, ==, 5);
    for (i = 0; i < 5; i++) {
        rig_post_recv(b, 0, 0, 0);
    }
    rig_run(rig, 10 * RIG_S);
    for (i = 0; i < 5; i++) {
        rig_expect(&a->scq, ERDMA_OP_SEND, 0, i);
    }
    rig_expect_none(&a->scq);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

static void test_reflush(void)
{
    Rig *rig = rig_new();
    ErdmaEngine *e;
    RigQp *a, *b;
    unsigned i;

    rig_pair(rig, &a, &b);
    e = a->hca->e;
    g_assert_cmpuint(erdma_qp_reflush(e, 1000, 0, 0), !=, 0);
    /* In RTS it does nothing: not even take the indices. */
    rig_post_recv(b, 0, 0, 0);
    rig_write_sqe(a, &(RigWr) { .op = ERDMA_OP_SEND });
    g_assert_cmpuint(erdma_qp_reflush(e, 5, 1, 1), ==, 0);
    rig_run(rig, RIG_S);
    rig_expect_none(&a->scq);
    rig_expect_none(&a->rcq);

    rig_modify(a, ERDMA_QPS_ERROR, NULL);
    g_assert_cmpuint(erdma_qp_reflush(e, 5, 1, 2), ==, 0);
    rig_run(rig, RIG_S);
    rig_expect(&a->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 0);
    g_assert_cmpuint(count_flushed(&a->rcq, NULL), ==, 2);
    /* The doorbell of the same entry, late; and the same command again */
    ring(a, ERDMA_DB_KIND_SQ, 1);
    ring(a, ERDMA_DB_KIND_RQ, 1);
    g_assert_cmpuint(erdma_qp_reflush(e, 5, 1, 2), ==, 0);
    /* older than that */
    g_assert_cmpuint(erdma_qp_reflush(e, 5, 0, 1), ==, 0);
    rig_run(rig, RIG_S);
    rig_expect_none(&a->scq);
    rig_expect_none(&a->rcq);
    /* over the end of the index range */
    for (i = 0; i < 1100; i++) {
        uint16_t pi = 2 + 60 * (i + 1);

        g_assert_cmpuint(erdma_qp_reflush(e, 5, 1, pi), ==, 0);
        rig_run(rig, RIG_S);
        g_assert_cmpuint(count_flushed(&a->rcq, NULL), ==, 60);
        g_assert_cmpuint(erdma_qp_reflush(e, 5, 1, pi - 1), ==, 0);
    }
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qp/create", test_create);
    g_test_add_func("/qp/cookie", test_cookie);
    g_test_add_func("/qp/size", test_size);
    for (i = ERDMA_QPS_CLOSING; i <= ERDMA_QPS_ERROR; i++) {
        g_autofree char *path = g_strdup_printf("/qp/flush/state-%u", i);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_flush);
    }
    g_test_add_func("/qp/flush/unconnected", test_flush_unconnected);
    g_test_add_func("/qp/flush/bounded", test_flush_bounded);
    for (i = 0; i < 12; i++) {
        g_autofree char *path = g_strdup_printf("/qp/destroy/%u", i);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_destroy);
    }
    for (i = 0; i < 6; i++) {
        g_autofree char *path = g_strdup_printf("/qp/reset/%u", i);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_reset);
    }
    g_test_add_func("/qp/close/after-receive", test_close_after_receive);
    g_test_add_func("/qp/close/peer", test_peer_closes);
    g_test_add_func("/qp/modify", test_modify);
    g_test_add_func("/qp/cc", test_cc);
    g_test_add_func("/qp/doorbell", test_doorbell);
    g_test_add_func("/qp/doorbell-old", test_old_doorbell);
    g_test_add_func("/qp/reflush", test_reflush);
    return g_test_run();
}
