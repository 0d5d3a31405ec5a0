/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No connection is forgotten: whatever a connection waits for, it has a
 * deadline, or it is an event that somebody else is bound to bring.
 *
 * Random traffic over random networks, with owners that are not ready, start
 * messages in their own time and wait for answers.  After each poll the state
 * is looked at from inside.  A stall of seconds that heals by itself would
 * pass every test that only looks at what arrives in the end.
 */

#include "qemu/osdep.h"
#include "xport/conn.h"
#include "seeds.h"
#include "xport-rig.h"

#define N_CASES     150

typedef struct Owner {
    bool is_waiting;            /* said "not ready", has to resume */
    uint64_t resume_ns;
    uint64_t send_ns;           /* when the next message comes */
    unsigned n_left;
    /* The position that the latest ack told the peer */
    uint32_t told_msn;
    uint32_t told_off;
} Owner;

typedef struct Case {
    unsigned seed;
    GRand *rand;
    double loss;
    double duplicate;
    double reorder;
    double not_ready;
    uint64_t gap_ns;            /* between messages, at most */
    Owner owner[2];
} Case;

#define CHECK(cond)                                                         \
    do {                                                                    \
        if (!(cond)) {                                                      \
            fail(rig, end, #cond);                                          \
        }                                                                   \
    } while (0)

static void G_NORETURN fail(const XportRig *rig, int end, const char *what)
{
    const Case *k = rig->opaque;
    const ErdmaXportConn *c = rig->end[end].conn;
    const ErdmaConnTx *tx = &c->tx;
    const ErdmaConnRx *rx = &c->rx;

    g_error("seed %u, end %d, %" PRIu64 " ns: %s\n"
            "pipe %" PRIu64 " of %u packets, window %" PRIu64 ", lost %u, "
            "unsent %u, undelivered %" PRIu64 " of %" PRIu64 "\n"
            "due: loss %" PRIu64 ", pacer %" PRIu64 ", persist %" PRIu64
            ", ack %" PRIu64 ", timer %" PRIu64 " (%u), poll %" PRIu64 "\n"
            "active %d, holding %d, resume %d, next in order %u:%u, told "
            "%u:%u, kept %u", k->seed, end, rig->now_ns, what, tx->sent.pipe,
            tx->sent.n_inflight, tx->cc.cwnd, tx->loss.n_resend, tx->n_unsent,
            tx->undelivered, tx->credit, tx->loss_ns, tx->pacer_ns,
            tx->persist_ns, rx->ack_ns, c->timer.when_ns, c->timer.place,
            rig->end[end].next_ns, c->is_active, rx->is_holding,
            rx->want_resume, rx->msn, rx->off, k->owner[end].told_msn,
            k->owner[end].told_off, rx->reasm.n);
}

static RigFate random_fate(XportRig *rig, RigPacket *p)
{
    Case *k = rig->opaque;
    RigFate fate = { 0 };
    ErdmaWire w;

    if (p->is_ack) {
        g_assert_cmpint(erdma_wire_parse(&w, p->data, p->len), ==,
                        ERDMA_WIRE_OK);
        k->owner[p->from].told_msn = w.u.ack.msn;
        k->owner[p->from].told_off = w.u.ack.off;
    }
    fate.is_lost = g_rand_double(k->rand) < k->loss;
    fate.n_copies = g_rand_double(k->rand) < k->duplicate;
    if (g_rand_double(k->rand) < k->reorder) {
        fate.extra_ns = g_rand_int_range(k->rand, 0, 3 * rig->delay_ns);
    }
    return fate;
}

static ErdmaXportRx random_rx(XportRig *rig, int end, uint32_t msn,
                              uint32_t off)
{
    Case *k = rig->opaque;
    Owner *o = &k->owner[end];

    g_assert(!o->is_waiting);
    if (g_rand_double(k->rand) >= k->not_ready) {
        return ERDMA_XPORT_RX_OK;
    }
    o->is_waiting = true;
    o->resume_ns = rig->now_ns + g_rand_int_range(k->rand, 0, 20 * RIG_MS);
    return ERDMA_XPORT_RX_NOT_READY;
}

/* The counters that decide are those of the scoreboard. */
static void check_scoreboard(XportRig *rig, int end)
{
    const ErdmaConnTx *tx = &rig->end[end].conn->tx;
    uint64_t pn, pipe = 0;
    uint32_t n_inflight = 0, n_resend = 0;

    for (pn = tx->sent.base; pn < tx->sent.next; pn++) {
        const ErdmaSent *e = erdma_sentmap_get(&tx->sent, pn);

        if (e->state == ERDMA_SENT_INFLIGHT) {
            pipe += e->bytes;
            n_inflight++;
            CHECK(pn >= tx->loss.cursor);
        } else if (e->state == ERDMA_SENT_LOST && !e->is_resent) {
            n_resend++;
            CHECK(pn >= tx->loss.resend);
        }
    }
    CHECK(pipe == tx->sent.pipe);
    CHECK(n_inflight == tx->sent.n_inflight);
    CHECK(n_resend == tx->loss.n_resend);
}

/* What was sent and not delivered is what counts against the credit. */
static void check_credit(XportRig *rig, int end)
{
    const ErdmaConnTx *tx = &rig->end[end].conn->tx;
    const ErdmaXportMsg *msg, *unsent = NULL;
    uint64_t undelivered = 0;
    uint32_t n_unsent = 0;

    QTAILQ_FOREACH(msg, &tx->msgs, next) {
        uint32_t from = msg->msn == tx->una_msn ? tx->una_off : 0;

        CHECK((int32_t)(msg->msn - tx->una_msn) >= 0);
        if (!msg->is_sent) {
            unsent = unsent ? unsent : msg;
            n_unsent++;
        }
        if (msg->sent_len || msg->is_sent) {
            undelivered += msg->sent_len - from;
            undelivered += from ? 0 : ERDMA_REASM_MSG_COST;
        }
    }
    CHECK(unsent == tx->unsent);
    CHECK(n_unsent == tx->n_unsent);
    CHECK(undelivered == tx->undelivered);
}

/* A connection with something to send waits for something. */
static void check_sender(XportRig *rig, int end)
{
    const ErdmaXportConn *c = rig->end[end].conn;
    const ErdmaConnTx *tx = &c->tx;
    uint64_t latest_ns = rig->now_ns + c->x->cfg.rto_max_ns;

    if ((QTAILQ_EMPTY(&tx->msgs) && !tx->is_expecting) || c->is_active) {
        return;
    }
    /* For an ack, for the pacer, or for the peer's owner */
    CHECK(tx->sent.n_inflight || tx->pacer_ns != ERDMA_XPORT_NEVER ||
          tx->persist_ns != ERDMA_XPORT_NEVER);
    CHECK(c->timer.place);
    CHECK(c->timer.when_ns <= latest_ns);
}

/*
 * What arrived and can be offered was, unless the owner has still to say that
 * it is ready; what was consumed the peer was told of, or soon will be.
 */
static void check_receiver(XportRig *rig, int end)
{
    const Case *k = rig->opaque;
    const Owner *o = &k->owner[end];
    const ErdmaXportConn *c = rig->end[end].conn;
    const ErdmaConnRx *rx = &c->rx;
    const ErdmaRxChunk *first = erdma_reasm_first(&rx->reasm);

    CHECK(rx->is_holding == o->is_waiting || rx->want_resume);
    if (c->is_active) {
        return;
    }
    CHECK(!rx->want_resume && !rx->want_ack);
    if (first && !rx->is_holding) {
        CHECK((int32_t)(first->msn - rx->msn) > 0 ||
              (first->msn == rx->msn && first->off > rx->off));
    }
    if (o->told_msn != rx->msn || o->told_off != rx->off) {
        CHECK(rx->ack_ns != ERDMA_XPORT_NEVER);
        CHECK(rx->ack_ns <= rig->now_ns + c->x->cfg.ack_delay_ns);
        CHECK(c->timer.place && c->timer.when_ns <= rx->ack_ns);
    }
}

static void check(XportRig *rig, int end)
{
    const ErdmaXport *x = rig->end[end].x;
    const ErdmaXportConn *c = rig->end[end].conn;
    uint64_t next_ns = rig->end[end].next_ns;
    uint64_t due_ns = c->timer.when_ns;

    check_scoreboard(rig, end);
    check_credit(rig, end);
    if (x->is_blocked) {
        /* Somebody calls erdma_xport_unblock(). */
        CHECK(rig->end[end].unblock_ns != ERDMA_XPORT_NEVER);
        return;
    }
    CHECK(!c->is_active || next_ns <= rig->now_ns);
    due_ns = rig->tick_ns ? rig_round_up(due_ns, rig->tick_ns) : due_ns;
    CHECK(!c->timer.place || next_ns <= due_ns);
    check_sender(rig, end);
    check_receiver(rig, end);
}

/* What the owner of @end does by now; returns when it will do more. */
static uint64_t act(XportRig *rig, int end)
{
    Case *k = rig->opaque;
    Owner *o = &k->owner[end];
    uint64_t next_ns = ERDMA_XPORT_NEVER;

    if (o->is_waiting && o->resume_ns <= rig->now_ns) {
        o->is_waiting = false;
        erdma_xport_conn_rx_resume(rig->end[end].conn);
        rig_poll(rig, end);
    }
    while (o->n_left && o->send_ns <= rig->now_ns) {
        o->n_left--;
        o->send_ns += g_rand_int_range(k->rand, 0, k->gap_ns);
        erdma_xport_conn_expect(rig->end[end].conn,
                                g_rand_boolean(k->rand) && o->n_left);
        rig_send(rig, end, g_rand_int_range(k->rand, ERDMA_XPORT_OP_SEND,
                                            ERDMA_XPORT_OP_COUNT),
                 g_rand_int_range(k->rand, 0,
                                  g_rand_boolean(k->rand) ? 64 : 65536));
        if (g_rand_boolean(k->rand)) {
            rig_poll(rig, end);
        }
    }
    if (o->is_waiting) {
        next_ns = o->resume_ns;
    }
    return o->n_left ? MIN(next_ns, o->send_ns) : next_ns;
}

static void random_config(GRand *rand, ErdmaXportConfig *cfg)
{
    static const uint32_t mtus[] = { 256, 1000, 1500, 9000 };
    static const uint32_t buffers[] = { 4096, 65536, 2097152 };

    rig_config(cfg);
    cfg->mtu = mtus[g_rand_int_range(rand, 0, ARRAY_SIZE(mtus))];
    cfg->rx_buffer = buffers[g_rand_int_range(rand, 0, ARRAY_SIZE(buffers))];
    cfg->ack_every = g_rand_int_range(rand, 1, 20);
    cfg->ack_delay_ns = g_rand_int_range(rand, 0, 3) * 100 * RIG_US;
    cfg->is_paced = g_rand_boolean(rand);
    cfg->pacing_quantum_ns = g_rand_int_range(rand, 0, 3) * 100 * RIG_US;
    cfg->is_go_back_n = g_rand_int_range(rand, 0, 5) == 0;
    cfg->retry_max = 200;
    cfg->rnr_timeout_ns = 1000 * RIG_S;
}

static XportRig *random_case(Case *k)
{
    static const uint8_t ccs[] = {
        ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC, ERDMA_XPORT_CC_HPCC_RTT,
        ERDMA_XPORT_CC_HPCC_ECN, ERDMA_XPORT_CC_HPCC_INT, ERDMA_XPORT_CC_NONE,
    };
    GRand *rand = k->rand;
    ErdmaXportConfig cfg;
    XportRig *rig;
    int end;

    random_config(rand, &cfg);
    rig = rig_new(&cfg);
    rig->opaque = k;
    rig->cc = ccs[g_rand_int_range(rand, 0, ARRAY_SIZE(ccs))];
    rig->pn0[0] = g_rand_int(rand);
    rig->pn0[1] = -g_rand_int_range(rand, 0, 100);
    rig->poll_budget = g_rand_int_range(rand, 1, 100);
    rig->delay_ns = g_rand_int_range(rand, 1, 500) * RIG_US;
    rig->bits_per_s = g_rand_boolean(rand) ? 1000 * 1000 * 1000 : 0;
    rig->is_blocking = rig->bits_per_s && g_rand_boolean(rand);
    /* As on a busy host, or exact */
    rig->tick_ns = g_rand_boolean(rand) ? 0 : 700 * RIG_US;
    k->loss = g_rand_double_range(rand, 0, 0.2);
    k->duplicate = g_rand_double_range(rand, 0, 0.1);
    k->reorder = g_rand_double_range(rand, 0, 0.2);
    k->not_ready = g_rand_boolean(rand) ? 0.02 : 0;
    k->gap_ns = g_rand_int_range(rand, 1, 3000) * RIG_US;
    for (end = 0; end < 2; end++) {
        k->owner[end].n_left = g_rand_int_range(rand, 1, 40);
        k->owner[end].send_ns = rig->now_ns;
    }
    return rig;
}

static void run_case(unsigned seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Case kase = { .seed = seed, .rand = rand }, *k = &kase;
    XportRig *rig = random_case(k);
    uint64_t end_ns = rig->now_ns + 60 * RIG_S;

    rig_open(rig, 0);
    rig_open(rig, 1);
    rig->fate = random_fate;
    rig->on_rx = random_rx;
    rig->on_polled = check;
    while (k->owner[0].n_left || k->owner[1].n_left || !rig_is_done(rig)) {
        uint64_t next_ns = act(rig, 0), other_ns = act(rig, 1);

        if (rig->now_ns >= end_ns) {
            fail(rig, 0, "done in time");
        }
        /* Not further than one of the owners is quiet */
        next_ns = MIN(MIN(next_ns, other_ns), rig->now_ns + 1 * RIG_MS);
        rig_run(rig, next_ns);
    }
    g_assert_cmpuint(rig->end[0].n_errors + rig->end[1].n_errors, ==, 0);
    rig_free(rig);
}

static void test_liveness(void)
{
    for_seeds(N_CASES, run_case);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/liveness", test_liveness);
    return g_test_run();
}
