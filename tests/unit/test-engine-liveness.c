/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No queue pair is forgotten: between two steps of random traffic each one
 * that has something to do waits for the transport, for the peer's answer or
 * for the guest, and whoever it waits for knows.  The transport's half of it
 * is test-xport-liveness.c.
 */

#include "qemu/osdep.h"
#include "qp-rig.h"
#include "seeds.h"
#include "xport/conn.h"

#define N_PAIRS     4
#define N_QPS       (2 * N_PAIRS)
#define N_WRS       400         /* per QP */
#define MAX_LEN     20000
#define N_CASES     40

typedef struct Side {
    RigQp *qp;
    uint64_t addr;              /* of its region, which the peer may use */
    uint32_t key;
    unsigned n_posted;
    unsigned n_signalled;
    unsigned n_cqes;
    unsigned n_left;            /* requests that are still to be posted */
    unsigned n_recvs;           /* receives that are still to be posted */
} Side;

typedef struct Case {
    Rig *rig;
    GRand *rand;
    Side side[N_QPS];           /* the peer of i is i ^ 1 */
    unsigned seed;
} Case;

#define CHECK(cond)                                                         \
    do {                                                                    \
        if (!(cond)) {                                                      \
            g_error("seed %u, QP %u at %" PRIu64 " ns: %s", k->seed,        \
                    qp->qpn, k->rig->now, #cond);                           \
        }                                                                   \
    } while (0)

/* A send queue with entries that nobody looked at waits for something. */
static void check_requester(const Case *k, const ErdmaQp *qp)
{
    const ErdmaConnTx *tx = &qp->conn->tx;
    bool has_sent = !QTAILQ_EMPTY(&tx->msgs);

    if (qp->sq_next != qp->sq_pi) {
        switch (qp->sq_wait) {
        case ERDMA_SQ_WAIT_NONE:
            CHECK(has_sent);
            break;
        case ERDMA_SQ_WAIT_ORD:
            CHECK(qp->n_reads >= ERDMA_MAX_ORD);
            break;
        case ERDMA_SQ_WAIT_READS:
            CHECK(qp->n_reads);
            break;
        case ERDMA_SQ_WAIT_ALL:
            CHECK(!QTAILQ_EMPTY(&qp->sends));
            break;
        case ERDMA_SQ_WAIT_ERROR:
            CHECK(!"an error");
        }
    }
    /* What was fetched is with the transport, or an answer is to come. */
    CHECK(QTAILQ_EMPTY(&qp->sends) || has_sent || qp->n_reads);
    CHECK(tx->is_expecting == (qp->n_reads > 0));
    CHECK(!QTAILQ_EMPTY(&qp->reads) == (qp->n_reads > 0));
}

static void check_responder(const Case *k, const ErdmaQp *qp)
{
    const ErdmaConnRx *rx = &qp->conn->rx;

    CHECK(!qp->is_rnr || qp->rq_ci == qp->rq_pi);
    CHECK(!qp->is_full || qp->n_responses);
    CHECK(rx->is_holding == (qp->is_rnr || qp->is_full));
    CHECK(!qp->n_responses || !QTAILQ_EMPTY(&qp->conn->tx.msgs));
}

static void check_transport(const Case *k, const ErdmaQp *qp)
{
    const ErdmaXportConn *c = qp->conn;
    const ErdmaConnTx *tx = &c->tx;

    CHECK(!tx->is_dead && !c->is_active);
    if (!QTAILQ_EMPTY(&tx->msgs) || tx->is_expecting) {
        CHECK(c->timer.place);
        CHECK(c->timer.when_ns <= k->rig->now + c->x->cfg.rto_max_ns);
    }
}

/* All that is due by now has been done. */
static void check(const Case *k)
{
    unsigned i;

    for (i = 0; i < N_QPS; i++) {
        const RigHca *hca = k->side[i].qp->hca;
        const ErdmaQp *qp = erdma_qp_get(hca->e, k->side[i].qp->qpn);

        CHECK(hca->next_ns > k->rig->now);
        CHECK(QTAILQ_EMPTY(&hca->e->qp_work) && !qp->has_work);
        CHECK(QTAILQ_EMPTY(&hca->e->cq_work) && !hca->e->eq_work);
        CHECK(qp->state == ERDMA_QP_RTS);
        check_requester(k, qp);
        check_responder(k, qp);
        check_transport(k, qp);
    }
}

static void post(Case *k, unsigned i)
{
    static const uint8_t ops[] = {
        ERDMA_OP_SEND, ERDMA_OP_WRITE, ERDMA_OP_READ, ERDMA_OP_ATOMIC_FAA,
        ERDMA_OP_SEND_WITH_IMM, ERDMA_OP_WRITE_WITH_IMM,
    };
    Side *s = &k->side[i], *peer = &k->side[i ^ 1];
    uint8_t op = ops[g_rand_int_range(k->rand, 0, ARRAY_SIZE(ops))];
    uint32_t len = g_rand_int_range(k->rand, 0,
                                    g_rand_boolean(k->rand) ? 64 : MAX_LEN);
    RigWr wr = {
        .op = op, .n_sges = 1, .rkey = peer->key, .raddr = peer->addr,
        .is_fenced = g_rand_int_range(k->rand, 0, 8) == 0,
        /* The last one tells that all are done. */
        .is_unsignalled = s->n_left > 1 && g_rand_boolean(k->rand),
        .sges = { { s->addr, len, s->key } },
    };

    if (op == ERDMA_OP_ATOMIC_FAA) {
        wr.sges[0].len = 8;
        wr.swap_add = 1;
    }
    if (op == ERDMA_OP_SEND || op == ERDMA_OP_SEND_WITH_IMM ||
        op == ERDMA_OP_WRITE_WITH_IMM) {
        peer->n_recvs++;
    }
    rig_post_send(s->qp, &wr);
    s->n_posted++;
    s->n_signalled += !wr.is_unsignalled;
    s->n_left--;
}

/* What the guests do now: post some, post receives late, poll. */
static void act(Case *k)
{
    unsigned i, n;
    RigCqe cqe;

    for (i = 0; i < N_QPS; i++) {
        Side *s = &k->side[i];
        uint16_t room = s->qp->sq_depth;
        const ErdmaQp *qp = erdma_qp_get(s->qp->hca->e, s->qp->qpn);

        room -= (uint16_t)(qp->sq_pi - qp->sq_ci);
        n = g_rand_int_range(k->rand, 0, 12) ? 0 :
            g_rand_int_range(k->rand, 1, 60);
        while (n-- && s->n_left && room >= 8) {
            post(k, i);
            room -= 4;
        }
        n = g_rand_int_range(k->rand, 0, 20);
        while (n-- && s->n_recvs &&
               (uint16_t)(qp->rq_pi - qp->rq_ci) < s->qp->rq_depth) {
            rig_post_recv(s->qp, s->addr, MAX_LEN, s->key);
            s->n_recvs--;
        }
        while (rig_poll(&s->qp->scq, &cqe)) {
            g_assert_cmpuint(cqe.status, ==, 0);
            s->n_cqes++;
        }
        while (rig_poll(&s->qp->rcq, &cqe)) {
            g_assert_cmpuint(cqe.status, ==, 0);
        }
    }
}

static bool is_done(const Case *k)
{
    unsigned i;

    for (i = 0; i < N_QPS; i++) {
        if (k->side[i].n_left || k->side[i].n_cqes < k->side[i].n_signalled) {
            return false;
        }
    }
    return true;
}

static void run_case(unsigned seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Case kase = { .rig = rig_new(), .rand = rand, .seed = seed }, *k = &kase;
    unsigned i, rounds;

    rig_seed(k->rig, seed);
    for (i = 0; i < N_QPS; i += 2) {
        k->side[i].qp = rig_qp(&k->rig->hca[0], 10 + i, NULL);
        k->side[i + 1].qp = rig_qp(&k->rig->hca[1], 10 + i, NULL);
        rig_connect(k->side[i].qp, k->side[i + 1].qp);
    }
    for (i = 0; i < N_QPS; i++) {
        Side *s = &k->side[i];

        s->addr = rig_alloc(s->qp->hca, MAX_LEN);
        s->key = rig_mr(s->qp->hca, s->addr, MAX_LEN, RIG_ALL_RIGHTS);
        s->n_left = N_WRS;
    }
    k->rig->loss_percent = g_rand_int_range(rand, 0, 10);
    k->rig->dup_percent = g_rand_int_range(rand, 0, 5);
    k->rig->reorder_percent = g_rand_int_range(rand, 0, 10);
    for (rounds = 0; !is_done(k); rounds++) {
        g_assert_cmpuint(rounds, <, 1000000);
        act(k);
        rig_run(k->rig, g_rand_int_range(rand, 1, 200) * RIG_US);
        check(k);
    }
    for (i = 0; i < N_QPS; i++) {
        rig_qp_free(k->side[i].qp);
    }
    rig_free(k->rig);
}

static void test_liveness(void)
{
    for_seeds(N_CASES, run_case);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/liveness", test_liveness);
    return g_test_run();
}
