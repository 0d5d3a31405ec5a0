/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections from their first command to their last, thousands of them, that
 * end in every way there is: nothing of them stays.  Everything is made and
 * unmade by commands, as drivers do it; several live at a time, over a wire
 * that loses and reorders.
 *
 * Under ASan, what is left and not reachable is found when the program ends;
 * that nothing piles up in reach is what this compares.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qp-rig.h"
#include "xport/conn.h"

#define N_ALIVE     8
#define DEPTH_LOG2  6
#define DEPTH       (1 << DEPTH_LOG2)
#define CQ_LOG2     8
#define BUF_LEN     65536
#define EQ_DEPTH    4096
#define ALL_QPS     1022            /* numbers to use: 1 to so many */
#define N_FIRST     1000
#define N_MORE      9000
/* GLib keeps some list nodes; 1000 times the smallest leak is four times it. */
#define MAX_GROWTH  4096

typedef enum Kind {
    ORDERLY,                        /* both close, nothing is left to do */
    PEER_GONE,                      /* one end hears of it by its retries */
    VIOLATION,                      /* of the peer's memory */
    BUSY,                           /* destroyed with all under way */
    NO_RECEIVE,                     /* destroyed while the peer waits */
    FLUSH,                          /* receives that are not used */
    REVOKED,                        /* the region goes while it is used */
    AGAIN,                          /* closed, connected again, closed */
    N_KINDS,
} Kind;

/* One end, all of whose memory is its slot's and used again */
typedef struct End {
    RigQp qp;
    uint64_t buf;
    uint64_t cq;
    uint32_t mr;                    /* its index, 0: none */
    uint32_t key;
} End;

typedef struct Life {
    End end[2];
    bool is_alive;
    Kind kind;
} Life;

typedef struct Guest {
    uint16_t cmd_pi;
    uint32_t cmd_ci;
    uint64_t eq;
    uint32_t eq_ci;
    unsigned n_events;              /* of CQs */
    unsigned n_aes;
} Guest;

typedef struct World {
    Rig *rig;
    Guest guest[2];
    Life life[N_ALIVE];
    unsigned n_begun;
    unsigned n_failed[N_KINDS];     /* completions in error */
} World;

/* Of ASan, which has an allocator of its own; without it nothing is compared */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* Without the rings that are kept for the next connections, at most 64 */
static int64_t heap_in_use(const World *w)
{
    int64_t bytes;
    unsigned i;

    if (!__sanitizer_get_current_allocated_bytes) {
        return 0;
    }
    bytes = __sanitizer_get_current_allocated_bytes();
    for (i = 0; i < 2; i++) {
        bytes -= w->rig->hca[i].e->xport->sent_pool.n *
                 ERDMA_SENTMAP_MIN * sizeof(ErdmaSent);
    }
    return bytes;
}

/* ---- commands ---- */

typedef uint8_t Req[128];

/* What has no name is garbage, as drivers leave it. */
static void req_init(World *w, Req req, unsigned sub_mod, unsigned opcode)
{
    unsigned i;

    for (i = 0; i < sizeof(Req); i++) {
        req[i] = g_rand_int(w->rig->rand);
    }
    stq_le_p(req, (uint64_t)sub_mod << 24 | opcode << 16);
}

/* Response 0 of a command that has to succeed */
static uint64_t command(World *w, RigHca *hca, Req req)
{
    Guest *g = &w->guest[hca - w->rig->hca];
    uint32_t slot = g->cmd_pi & (RIG_CMDQ_DEPTH - 1);
    const uint8_t *cqe = rig_ptr(hca, hca->cmdq_cq +
                                 (g->cmd_ci & (RIG_CMDQ_DEPTH - 1)) * 32);
    uint32_t hdr;

    g->cmd_pi += sizeof(Req) / 32;
    stq_le_p(req, ldq_le_p(req) | g->cmd_pi | 3ull << 52);
    memcpy(rig_ptr(hca, hca->cmdq_sq + slot * 32), req, sizeof(Req));
    erdma_engine_db_cmdq_sq(hca->e, g->cmd_pi);
    rig_run(w->rig, RIG_US);
    hdr = ldl_be_p(cqe);
    g_assert_cmpuint(hdr >> 31, ==, !(g->cmd_ci & RIG_CMDQ_DEPTH));
    g_assert_cmpuint(hdr & 0xff, ==, ERDMA_CMD_OK);
    g->cmd_ci++;
    return ldl_be_p(cqe + 8) | (uint64_t)ldl_be_p(cqe + 12) << 32;
}

static void create_eq(World *w, RigHca *hca)
{
    Guest *g = &w->guest[hca - w->rig->hca];
    Req req;

    g->eq = rig_alloc(hca, EQ_DEPTH * 16);
    req_init(w, req, 1, ERDMA_CMD_CREATE_EQ);
    stq_le_p(req + 8, g->eq);
    req[16] = req[17] = req[19] = 1;
    req[18] = ctz32(EQ_DEPTH);
    stq_le_p(req + 20, 0);
    command(w, hca, req);
}

static void create_cq(World *w, End *end, uint32_t cqn)
{
    RigCq cq = { .hca = end->qp.hca, .cqn = cqn, .addr = end->cq,
                 .depth = 1 << CQ_LOG2 };
    Req req;

    memset(rig_ptr(cq.hca, cq.addr), 0, 32 << CQ_LOG2);
    req_init(w, req, 0, ERDMA_CMD_CREATE_CQ);
    stl_le_p(req + 8, CQ_LOG2 << 24 | 13 << 20 | cqn);
    stq_le_p(req + 12, cq.addr);
    stl_le_p(req + 20, 1 << 16 | 1);
    stq_le_p(req + 24, 0);
    stl_le_p(req + 32, 0);
    command(w, cq.hca, req);
    end->qp.scq = end->qp.rcq = cq;
}

static void reg_mr(World *w, End *end, uint32_t index)
{
    unsigned i;
    Req req;

    req_init(w, req, 0, ERDMA_CMD_REG_MR);
    stl_le_p(req + 8, 1u << 31 | 0x5a << 20 | index);
    stl_le_p(req + 12, RIG_PD << 12 | RIG_ALL_RIGHTS << 1);
    stq_le_p(req + 16, end->buf);
    stl_le_p(req + 24, BUF_LEN);
    stl_le_p(req + 28, 16u << 27 | 1);
    for (i = 0; i < 4; i++) {
        stq_le_p(req + 32 + 8 * i, end->buf);
    }
    command(w, end->qp.hca, req);
    end->mr = index;
    end->key = index << 8 | 0x5a;
}

static void create_qp(World *w, End *end, uint32_t qpn)
{
    RigQp *qp = &end->qp;
    Req req;

    qp->qpn = qpn;
    qp->sq_depth = qp->rq_depth = DEPTH;
    qp->sq_pi = qp->rq_pi = 0;
    req_init(w, req, 0, ERDMA_CMD_CREATE_QP);
    stl_le_p(req + 8, DEPTH_LOG2 << 20 | qpn);
    stl_le_p(req + 12, DEPTH_LOG2 << 20 | RIG_PD);
    stl_le_p(req + 16, 8u << 28 | qp->scq.cqn);
    stl_le_p(req + 20, 8u << 28 | qp->rcq.cqn);
    stq_le_p(req + 24, qp->sq);
    stq_le_p(req + 32, qp->rq);
    stl_le_p(req + 40, 1 << 1);
    stl_le_p(req + 44, 1 << 1);
    qp->cookie = command(w, qp->hca, req);
}

static void modify(World *w, RigQp *qp, uint8_t state, const RigQp *peer)
{
    Req req;

    req_init(w, req, 0, ERDMA_CMD_MODIFY_QP);
    stl_le_p(req + 8, qp->qpn | ERDMA_CC_CUBIC << 20 |
             (uint32_t)state << 24);
    if (peer) {
        stl_le_p(req + 12, peer->cookie);
        stl_be_p(req + 16, peer->hca->ip);
        stl_be_p(req + 20, qp->hca->ip);
        stl_le_p(req + 28, qp->cookie ^ 0x55aa55aa);
        stl_le_p(req + 32, peer->cookie ^ 0x55aa55aa);
    }
    command(w, qp->hca, req);
}

static void destroy(World *w, RigHca *hca, unsigned opcode, uint32_t number)
{
    Req req;

    req_init(w, req, 0, opcode);
    stl_le_p(req + 8, number);
    command(w, hca, req);
}

static void end_free(World *w, End *end)
{
    if (end->qp.qpn) {
        destroy(w, end->qp.hca, ERDMA_CMD_DESTROY_QP, end->qp.qpn);
        end->qp.qpn = 0;
    }
    if (end->mr) {
        destroy(w, end->qp.hca, ERDMA_CMD_DEREG_MR, end->mr);
        end->mr = 0;
    }
    if (end->qp.scq.cqn) {
        destroy(w, end->qp.hca, ERDMA_CMD_DESTROY_CQ, end->qp.scq.cqn);
        end->qp.scq.cqn = 0;
    }
}

/* ---- what guests do all the time ---- */

static void take_events(World *w)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        RigHca *hca = &w->rig->hca[i];
        Guest *g = &w->guest[i];
        unsigned n = g->n_events, n_aes = g->n_aes;

        while (!(ldl_le_p(rig_ptr(hca, g->eq + g->eq_ci % EQ_DEPTH * 16))
                 >> 31) == !!(g->eq_ci & EQ_DEPTH)) {
            g->eq_ci++;
            g->n_events++;
        }
        if (g->n_events > n) {
            erdma_engine_db_ceq(hca->e, 1, 1u << 31 | (g->eq_ci & 0xffff));
        }
        while (!(ldl_le_p(rig_ptr(hca, hca->aeq +
                                  hca->aeq_ci % RIG_AEQ_DEPTH * 16)) >> 31)
               == !!(hca->aeq_ci & RIG_AEQ_DEPTH)) {
            hca->aeq_ci++;
            g->n_aes++;
        }
        if (g->n_aes > n_aes) {
            erdma_engine_db_aeq(hca->e, 1u << 31 | (hca->aeq_ci & 0xffff));
        }
    }
}

static void run(World *w, uint64_t ns)
{
    rig_run(w->rig, ns);
    take_events(w);
}

/* Takes completions until there were @n of this end; how many failed? */
static unsigned wait_cqes(World *w, End *end, unsigned n)
{
    unsigned failed = 0, rounds = 0;
    RigCqe cqe;

    while (n) {
        if (rig_poll(&end->qp.scq, &cqe)) {
            failed += cqe.status != ERDMA_WC_SUCCESS;
            n--;
            continue;
        }
        g_assert_cmpuint(rounds++, <, 10000);
        run(w, 10 * RIG_MS);
    }
    return failed;
}

static void arm(End *end)
{
    erdma_engine_db_queue(end->qp.hca->e, ERDMA_DB_KIND_CQ,
                          (uint64_t)end->qp.scq.cqn << 32 | 1u << 31 |
                          (end->qp.scq.ci & 0xffffff));
}

static void post(Life *l, uint8_t op, uint32_t len)
{
    End *a = &l->end[0], *b = &l->end[1];

    rig_post_send(&a->qp, &(RigWr) {
        .op = op, .n_sges = 1, .rkey = b->key, .raddr = b->buf,
        .sges = { { a->buf, len, a->key } },
    });
}

/* ---- a life ---- */

static void connect(World *w, Life *l)
{
    modify(w, &l->end[0].qp, ERDMA_QPS_RTS, &l->end[1].qp);
    modify(w, &l->end[1].qp, ERDMA_QPS_RTS, &l->end[0].qp);
}

static void begin(World *w, Life *l)
{
    /* Numbers go round; some lives are alive at any time. */
    uint32_t n = w->n_begun % ALL_QPS + 1;
    unsigned i;

    l->kind = w->n_begun++ % N_KINDS;
    l->is_alive = true;
    for (i = 0; i < 2; i++) {
        create_cq(w, &l->end[i], 2 * n);
        reg_mr(w, &l->end[i], n);
        create_qp(w, &l->end[i], n);
        arm(&l->end[i]);
    }
    connect(w, l);
    rig_post_recv(&l->end[1].qp, l->end[1].buf, 5000, l->end[1].key);
    post(l, ERDMA_OP_SEND, 5000);
    post(l, ERDMA_OP_WRITE, 20000);
    post(l, ERDMA_OP_READ, 20000);
    post(l, ERDMA_OP_ATOMIC_FAA, 8);
    run(w, 20 * RIG_US);
}

static void close_both(World *w, Life *l)
{
    modify(w, &l->end[0].qp, ERDMA_QPS_CLOSING, NULL);
    modify(w, &l->end[1].qp, ERDMA_QPS_CLOSING, NULL);
}

/* How it comes to its end; returns the completions in error. */
static unsigned last_words(World *w, Life *l)
{
    End *a = &l->end[0], *b = &l->end[1];
    unsigned i;

    g_assert_cmpuint(wait_cqes(w, a, 4), ==, 0);
    g_assert_cmpuint(wait_cqes(w, b, 1), ==, 0);
    switch (l->kind) {
    case ORDERLY:
        close_both(w, l);
        return 0;
    case AGAIN:
        close_both(w, l);
        run(w, RIG_MS);
        connect(w, l);
        post(l, ERDMA_OP_WRITE, 5000);
        g_assert_cmpuint(wait_cqes(w, a, 1), ==, 0);
        close_both(w, l);
        return 0;
    case PEER_GONE:
        end_free(w, b);
        post(l, ERDMA_OP_WRITE, 5000);
        return wait_cqes(w, a, 1);
    case VIOLATION:
        b->key++;
        post(l, ERDMA_OP_WRITE, 5000);
        return wait_cqes(w, a, 1);
    case BUSY:
        for (i = 0; i < 15; i++) {
            post(l, i & 1 ? ERDMA_OP_READ : ERDMA_OP_WRITE, BUF_LEN);
        }
        run(w, (1 + w->n_begun % 60) * RIG_US);
        return 0;
    case NO_RECEIVE:
        post(l, ERDMA_OP_SEND, 20000);
        run(w, 50 * RIG_MS);
        return 0;
    case FLUSH:
        for (i = 0; i < 8; i++) {
            rig_post_recv(&b->qp, b->buf, 5000, b->key);
        }
        modify(w, &b->qp, ERDMA_QPS_ERROR, NULL);
        modify(w, &a->qp, ERDMA_QPS_TERMINATE, NULL);
        return wait_cqes(w, b, 8);
    case REVOKED:
        for (i = 0; i < 15; i++) {
            post(l, ERDMA_OP_WRITE, BUF_LEN);
        }
        run(w, 30 * RIG_US);
        destroy(w, b->qp.hca, ERDMA_CMD_DEREG_MR, b->mr);
        b->mr = 0;
        return wait_cqes(w, a, 15);
    default:
        g_assert_not_reached();
    }
}

static void finish(World *w, Life *l)
{
    unsigned failed;

    if (!l->is_alive) {
        return;
    }
    failed = last_words(w, l);
    if (l->kind == PEER_GONE || l->kind == VIOLATION || l->kind == FLUSH ||
        l->kind == REVOKED) {
        g_assert_cmpuint(failed, >, 0);
    }
    w->n_failed[l->kind] += failed;
    /* Now this one first, now that */
    end_free(w, &l->end[w->n_begun & 1]);
    end_free(w, &l->end[~w->n_begun & 1]);
    l->is_alive = false;
}

/* All are gone, and so is all that they had. */
static void check_empty(World *w)
{
    unsigned i;

    for (i = 0; i < N_ALIVE; i++) {
        finish(w, &w->life[i]);
    }
    g_assert_true(rig_run(w->rig, 1000 * RIG_S));
    take_events(w);
    for (i = 0; i < 2; i++) {
        const ErdmaEngine *e = w->rig->hca[i].e;
        ErdmaEngineCounts c;

        erdma_engine_counts(e, &c);
        g_assert_cmpuint(c.n_qps + c.n_cqs + c.n_mrs, ==, 0);
        g_assert_cmpuint(e->n_sends + e->n_responses, ==, 0);
        g_assert_true(QTAILQ_EMPTY(&e->qp_work));
        g_assert_true(QTAILQ_EMPTY(&e->cq_work));
        g_assert_cmpuint(e->xport->conns.n, ==, 0);
        g_assert_cmpuint(e->xport->timers.n, ==, 0);
        g_assert_cmpuint(e->xport->reasm_pool.held, ==, 0);
        g_assert_cmpuint(e->xport->sent_pool.total, ==, 0);
        g_assert_true(QTAILQ_EMPTY(&e->xport->active));
    }
}

static void world_init(World *w)
{
    unsigned i, k;

    w->rig = rig_new();
    w->rig->loss_percent = 2;
    w->rig->reorder_percent = 10;
    for (k = 0; k < 2; k++) {
        RigHca *hca = &w->rig->hca[k];

        create_eq(w, hca);
        for (i = 0; i < N_ALIVE; i++) {
            End *end = &w->life[i].end[k];

            end->qp.hca = hca;
            end->qp.sq = rig_alloc(hca, 32 * DEPTH);
            end->qp.rq = rig_alloc(hca, 32 * DEPTH);
            end->cq = rig_alloc(hca, 32 << CQ_LOG2);
            end->buf = rig_alloc_at(hca, BUF_LEN, BUF_LEN, 0);
        }
    }
}

static void live(World *w, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        Life *l = &w->life[i % N_ALIVE];

        finish(w, l);
        begin(w, l);
    }
    check_empty(w);
}

static void test_lives(void)
{
    World w = { 0 };
    int64_t before, after;
    unsigned i;

    world_init(&w);
    /* What is kept for the next ones, such as tables that have grown */
    live(&w, N_FIRST);
    before = heap_in_use(&w);
    live(&w, N_MORE);
    after = heap_in_use(&w);
    g_test_message("%u connections, %u and %u events of CQs, %u and %u "
                   "asynchronous ones; heap %" PRId64 " bytes, then %" PRId64,
                   w.n_begun,
                   w.guest[0].n_events, w.guest[1].n_events,
                   w.guest[0].n_aes, w.guest[1].n_aes, before, after);
    for (i = 0; i < 2; i++) {
        g_assert_cmpuint(w.guest[i].n_events, >=, w.n_begun);
    }
    /* The other end of a failure hears of it in a completion. */
    g_assert_cmpuint(w.guest[1].n_aes, >=, 2 * (w.n_begun / N_KINDS));
    g_assert_cmpint(after - before, <, MAX_GROWTH);
    rig_free(w.rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lives/all", test_lives);
    return g_test_run();
}
