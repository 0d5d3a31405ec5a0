/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several flows over one bottleneck: each algorithm finds the equilibrium
 * that its formula predicts.  A link with a queue, ECN marking and INT
 * stamping in virtual time, 25 Gbit/s and 40 us, so that 125 packets of
 * 1000 bytes are one bandwidth-delay product.
 */

#include "qemu/osdep.h"
#include "xport/link.h"
#include "xport/xport.h"

#define US          1000ULL
#define RATE_BPS    25000000000ULL
#define MTU         1000
#define SER_NS      (MTU * 8ULL * 1000000000 / RATE_BPS)
#define DELAY_NS    (20 * US - SER_NS / 2)
#define RTT_NS      (2 * DELAY_NS + SER_NS)
#define BDP         125000.0
#define MAX_FLOWS   32
#define MSG_LEN     1000000

typedef struct Packet {
    uint64_t when_ns;
    uint32_t len;
    uint8_t ecn;
    uint8_t data[MTU];
} Packet;

typedef struct Fifo {
    GQueue q;
} Fifo;

typedef struct Dumbbell {
    unsigned n;
    ErdmaXport *x[2];
    ErdmaXportConn *conn[2][MAX_FLOWS];
    ErdmaXportMsg msg[MAX_FLOWS][2];
    uint64_t rx_bytes[MAX_FLOWS];
    uint64_t now_ns;
    uint64_t next_ns[2];
    Fifo queue;                 /* bottleneck */
    Fifo wire[2];               /* towards receiver, towards sender */
    uint64_t free_ns;           /* the bottleneck sends until then */
    uint64_t queue_bytes;       /* waiting, not counting the one being sent */
    uint64_t tx_bytes;
    uint64_t limit;             /* drop-tail, bytes */
    uint64_t kmin, kmax;        /* marking, bytes; kmin = kmax: step */
    double pmax;
    double loss;                /* before the bottleneck */
    bool is_plain;              /* stamps nothing */
    GRand *rand;
    /* measured */
    double queue_integral;
    uint64_t measured_ns;
    uint64_t last_ns;
    uint64_t tx_start;
    uint64_t n_marks;
    uint64_t n_drops;
    uint64_t max_queue;
} Dumbbell;

static void enqueue(Dumbbell *d, Packet *p)
{
    double mark = 0;

    if (d->loss && g_rand_double(d->rand) < d->loss) {
        g_free(p);
        return;
    }
    if (d->limit && d->queue_bytes + p->len + 28 > d->limit) {
        d->n_drops++;
        g_free(p);
        return;
    }
    if (d->kmax && d->queue_bytes >= d->kmax) {
        mark = 1;
    } else if (d->kmax && d->queue_bytes > d->kmin) {
        mark = d->pmax * (d->queue_bytes - d->kmin) / (d->kmax - d->kmin);
    }
    if (mark > 0 && g_rand_double(d->rand) < mark &&
        erdma_link_mark(p->data, p->len)) {
        d->n_marks++;
    }
    d->queue_bytes += p->len + 28;
    d->max_queue = MAX(d->max_queue, d->queue_bytes);
    g_queue_push_tail(&d->queue.q, p);
}

/* Starts to send the head of the queue. */
static void dequeue(Dumbbell *d)
{
    Packet *p = g_queue_pop_head(&d->queue.q);
    ErdmaLinkStamp s = {
        .rate_bps = RATE_BPS, .time_ns = d->now_ns, .tx_bytes = d->tx_bytes,
        .link_id = 1,
    };

    d->queue_bytes -= p->len + 28;
    s.queue = d->queue_bytes;
    if (!d->is_plain) {
        erdma_link_stamp(p->data, p->len, &s);
    }
    d->tx_bytes += p->len + 28;
    d->free_ns = d->now_ns + (p->len + 28) * 8ULL * 1000000000 / RATE_BPS;
    p->when_ns = d->free_ns + DELAY_NS;
    g_queue_push_tail(&d->wire[0].q, p);
}

static bool transmit(Dumbbell *d, int from, const ErdmaDatagram *dg)
{
    Packet *p = g_new(Packet, 1);

    p->len = dg->len;
    p->ecn = 0;
    memcpy(p->data, dg->data, dg->len);
    if (from == 0) {
        enqueue(d, p);
    } else {
        p->when_ns = d->now_ns + DELAY_NS;
        g_queue_push_tail(&d->wire[1].q, p);
    }
    return true;
}

static bool transmit0(void *opaque, const ErdmaDatagram *dg)
{
    return transmit(opaque, 0, dg);
}

static bool transmit1(void *opaque, const ErdmaDatagram *dg)
{
    return transmit(opaque, 1, dg);
}

static bool pull(void *opaque, void *owner, ErdmaXportMsg *msg, uint32_t off,
                 uint8_t *buf, uint32_t len)
{
    return true;
}

static ErdmaXportRx rx(void *opaque, void *owner, const ErdmaXportMsgHdr *hdr,
                       uint32_t msn, uint32_t off, const uint8_t *data,
                       uint32_t len, bool is_last)
{
    Dumbbell *d = opaque;

    d->rx_bytes[GPOINTER_TO_UINT(owner)] += len;
    return ERDMA_XPORT_RX_OK;
}

static void msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    Dumbbell *d = opaque;

    erdma_xport_conn_send(d->conn[0][GPOINTER_TO_UINT(owner)], msg);
}

static void tx_room(void *opaque, void *owner)
{
}

static void terminated(void *opaque, void *owner, uint8_t status,
                       uint32_t msn)
{
}

static void conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    g_error("flow %u failed", GPOINTER_TO_UINT(owner));
}

static const ErdmaXportOps ops[2] = {
    { transmit0, pull, rx, msg_done, tx_room, terminated, conn_error, NULL },
    { transmit1, pull, rx, msg_done, tx_room, terminated, conn_error, NULL },
};

static void config(ErdmaXportConfig *cfg)
{
    erdma_xport_config_default(cfg);
    cfg->mtu = MTU;
    cfg->initial_rto_ns = cfg->rto_min_ns = 1000 * US;
    cfg->ack_every = 1;
    cfg->is_paced = true;
    cfg->pacing_quantum_ns = 0;
    cfg->int_hops = 1;
    cfg->cc.line_rate = RATE_BPS / 8;
    cfg->cc.base_rtt_ns = RTT_NS;
}

static Dumbbell *dumbbell_new(unsigned n, uint8_t cc,
                              const ErdmaXportConfig *cfg)
{
    Dumbbell *d = g_new0(Dumbbell, 1);
    unsigned i, end;

    d->n = n;
    d->now_ns = d->last_ns = 1000000 * US;
    d->rand = g_rand_new_with_seed(9);
    for (end = 0; end < 2; end++) {
        d->x[end] = erdma_xport_new(&ops[end], d, cfg);
        d->next_ns[end] = d->now_ns;
    }
    for (i = 0; i < n; i++) {
        for (end = 0; end < 2; end++) {
            ErdmaXportConnParams p = {
                .local_cookie = i, .peer_cookie = i,
                .local_ip = 1 + end, .peer_ip = 2 - end,
                .cc = cc, .owner = GUINT_TO_POINTER(i),
            };

            d->conn[end][i] = erdma_xport_conn_open(d->x[end], &p, d->now_ns);
        }
    }
    return d;
}

static void dumbbell_free(Dumbbell *d)
{
    int i;

    for (i = 0; i < 2; i++) {
        erdma_xport_free(d->x[i]);
        g_queue_clear_full(&d->wire[i].q, g_free);
    }
    g_queue_clear_full(&d->queue.q, g_free);
    g_rand_free(d->rand);
    g_free(d);
}

static void start(Dumbbell *d, unsigned i)
{
    unsigned k;

    for (k = 0; k < 2; k++) {
        d->msg[i][k].hdr.op = ERDMA_XPORT_OP_WRITE;
        d->msg[i][k].hdr.len = MSG_LEN;
        erdma_xport_conn_send(d->conn[0][i], &d->msg[i][k]);
    }
    d->next_ns[0] = d->now_ns;
}

static uint64_t head_ns(const Fifo *f)
{
    const Packet *p = g_queue_peek_head((GQueue *)&f->q);

    return p ? p->when_ns : UINT64_MAX;
}

static void advance(Dumbbell *d, uint64_t now_ns)
{
    d->queue_integral += (double)d->queue_bytes * (now_ns - d->last_ns);
    d->measured_ns += now_ns - d->last_ns;
    d->last_ns = now_ns;
    d->now_ns = now_ns;
}

static void run(Dumbbell *d, uint64_t ns)
{
    uint64_t end_ns = d->now_ns + ns;
    int end;

    for (;;) {
        uint64_t t = MIN(d->next_ns[0], d->next_ns[1]);
        uint64_t w0 = head_ns(&d->wire[0]), w1 = head_ns(&d->wire[1]);

        t = MIN(t, w0);
        t = MIN(t, w1);
        if (!g_queue_is_empty(&d->queue.q)) {
            uint64_t start_ns = MAX(d->free_ns, d->now_ns);

            t = MIN(t, start_ns);
        }
        if (t > end_ns) {
            break;
        }
        advance(d, MAX(t, d->now_ns));
        for (end = 0; end < 2; end++) {
            while (head_ns(&d->wire[!end]) <= d->now_ns) {
                Packet *p = g_queue_pop_head(&d->wire[!end].q);
                ErdmaDatagram dg = {
                    .src_ip = 2 - end, .dst_ip = 1 + end, .data = p->data,
                    .len = p->len, .ecn = p->ecn,
                };

                erdma_xport_input(d->x[end], &dg, d->now_ns);
                g_free(p);
                d->next_ns[end] = erdma_xport_poll(d->x[end], d->now_ns, 64);
            }
            if (d->next_ns[end] <= d->now_ns) {
                d->next_ns[end] = erdma_xport_poll(d->x[end], d->now_ns, 64);
            }
        }
        if (d->free_ns <= d->now_ns && !g_queue_is_empty(&d->queue.q)) {
            dequeue(d);
        }
    }
    advance(d, end_ns);
}

static void measure_from_here(Dumbbell *d)
{
    d->queue_integral = 0;
    d->measured_ns = 0;
    d->max_queue = 0;
    d->tx_start = d->tx_bytes;
    memset(d->rx_bytes, 0, sizeof(d->rx_bytes));
}

static double utilisation(const Dumbbell *d)
{
    return (d->tx_bytes - d->tx_start) * 8e9 / d->measured_ns / RATE_BPS;
}

/* Mean queue with the packet that is being sent */
static double queue_bdp(const Dumbbell *d)
{
    return d->queue_integral / d->measured_ns / BDP +
           utilisation(d) * MTU / BDP;
}

static double jain(const Dumbbell *d)
{
    double sum = 0, square = 0;
    unsigned i;

    for (i = 0; i < d->n; i++) {
        sum += d->rx_bytes[i];
        square += (double)d->rx_bytes[i] * d->rx_bytes[i];
    }
    return sum * sum / (d->n * square);
}

static void report(const Dumbbell *d, const char *what)
{
    const ErdmaXportStats *s = erdma_xport_stats(d->x[0]);

    g_test_message("%s n=%u: utilisation %.3f, queue %.3f BDP (max %.2f), "
                   "Jain %.3f, %" PRIu64 " lost, %" PRIu64 " rtos", what,
                   d->n, utilisation(d), queue_bdp(d), d->max_queue / BDP,
                   jain(d), s->lost, s->rtos);
}

static void near(double value, double expected, double below, double above)
{
    if (value < expected - below || value > expected + above) {
        g_error("%f is not %f", value, expected);
    }
}

/* All flows from the start, warm-up, measurement */
static Dumbbell *steady(unsigned n, uint8_t cc, const ErdmaXportConfig *cfg,
                        void (*link)(Dumbbell *d), uint64_t warm_ns,
                        uint64_t ns, const char *what)
{
    Dumbbell *d = dumbbell_new(n, cc, cfg);
    unsigned i;

    if (link) {
        link(d);
    }
    run(d, 3 * RTT_NS);
    for (i = 0; i < n; i++) {
        run(d, 300);
        start(d, i);
    }
    run(d, warm_ns);
    measure_from_here(d);
    run(d, ns);
    report(d, what);
    return d;
}

/* U* = eta + N * W_AI / BDP */
static void test_hpcc_int(void)
{
    static const struct {
        unsigned n, w_ai;
    } cases[] = {
        { 4, 400 }, { 8, 400 }, { 16, 400 }, { 32, 400 }, { 16, 1600 },
        { 32, 1600 },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        double u = 0.95 + cases[i].n * cases[i].w_ai / BDP;
        ErdmaXportConfig cfg;
        Dumbbell *d;

        config(&cfg);
        cfg.cc.w_ai = cases[i].w_ai;
        d = steady(cases[i].n, ERDMA_XPORT_CC_HPCC_INT, &cfg, NULL,
                   200 * RTT_NS, 300 * RTT_NS, "hpcc_int");
        near(utilisation(d), MIN(u, 1), 0.02, 0.01);
        if (u < 0.99) {
            g_assert_cmpfloat(queue_bdp(d), <, 0.025);
        } else if (u > 1.04) {
            near(queue_bdp(d), u - 1, 0.12 * (u - 1) + 2 / 125.0,
                 0.12 * (u - 1) + 2 / 125.0);
        }
        g_assert_cmpfloat(jain(d), >, 0.9);
        g_assert_cmpuint(erdma_xport_stats(d->x[0])->lost, ==, 0);
        dumbbell_free(d);
    }
}

static void half_percent(Dumbbell *d)
{
    d->loss = 0.005;
}

/* A loss is no signal: the same utilisation with it. */
static void test_hpcc_int_loss(void)
{
    ErdmaXportConfig cfg;
    Dumbbell *d;
    const ErdmaXportStats *s;

    config(&cfg);
    cfg.cc.w_ai = 400;
    d = steady(4, ERDMA_XPORT_CC_HPCC_INT, &cfg, half_percent, 200 * RTT_NS,
               500 * RTT_NS, "hpcc_int, loss");
    s = erdma_xport_stats(d->x[0]);
    near(utilisation(d), 0.956, 0.015, 0.01);
    near((double)s->retransmits / s->tx_data_packets, 0.005, 0.001, 0.001);
    g_assert_cmpuint(s->rtos, ==, 0);
    g_assert_cmpuint(s->spurious, ==, 0);
    dumbbell_free(d);
}

/* Compact stacks say nearly the same. */
static void test_hpcc_int_compact(void)
{
    ErdmaXportConfig cfg;
    Dumbbell *d;

    config(&cfg);
    cfg.cc.w_ai = 400;
    cfg.is_int_compact = true;
    d = steady(8, ERDMA_XPORT_CC_HPCC_INT, &cfg, NULL, 200 * RTT_NS,
               300 * RTT_NS, "hpcc_int, compact");
    near(utilisation(d), 0.976, 0.03, 0.02);
    dumbbell_free(d);
}

static void plain_drop_tail(Dumbbell *d)
{
    d->is_plain = true;
    d->limit = BDP;
}

/* Links that stamp nothing: losses have to do, and they do. */
static void test_hpcc_int_plain(void)
{
    ErdmaXportConfig cfg;
    Dumbbell *d;

    config(&cfg);
    cfg.cc.w_ai = 400;
    d = steady(4, ERDMA_XPORT_CC_HPCC_INT, &cfg, plain_drop_tail,
               500 * RTT_NS, 2000 * RTT_NS, "hpcc_int, no stamps");
    g_assert_cmpfloat(utilisation(d), >, 0.9);
    g_assert_cmpfloat(jain(d), >, 0.7);
    g_assert_cmpuint(d->n_drops, <, 1000);
    dumbbell_free(d);
}

/* q* = delta * BDP + N * W_AI + one packet */
static void test_hpcc_rtt(void)
{
    static const struct {
        unsigned n, w_ai;
        double delta;
    } cases[] = {
        { 4, 400, 0.05 }, { 16, 400, 0.05 }, { 16, 400, 0.10 },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        double q = cases[i].delta + (cases[i].n * cases[i].w_ai + MTU) / BDP;
        ErdmaXportConfig cfg;
        Dumbbell *d;

        config(&cfg);
        cfg.cc.w_ai = cases[i].w_ai;
        cfg.cc.delta = cases[i].delta;
        d = steady(cases[i].n, ERDMA_XPORT_CC_HPCC_RTT, &cfg, NULL,
                   400 * RTT_NS, 500 * RTT_NS, "hpcc_rtt");
        near(queue_bdp(d), q, 0.2 * q + 1 / 125.0, 0.2 * q + 1 / 125.0);
        g_assert_cmpfloat(utilisation(d), >=, 0.98);
        g_assert_cmpfloat(jain(d), >=, 0.97);
        dumbbell_free(d);
    }
}

static void step_20(Dumbbell *d)
{
    d->kmin = d->kmax = 20000;
}

static void red(Dumbbell *d)
{
    d->kmin = 25000;
    d->kmax = 100000;
    d->pmax = 0.2;
}

/* Additive mode: the closed forms of a step and of a ramp */
static void test_hpcc_ecn(void)
{
    static const unsigned n[] = { 2, 4, 8, 16 };
    static const double step_pkt[] = { 16, 15.5, 16, 19 };
    static const unsigned red_n[] = { 4, 8, 16, 32 };
    static const double red_kb[] = { 35.8, 45.3, 61.7, 88.4 };
    unsigned i;

    for (i = 0; i < 4; i++) {
        ErdmaXportConfig cfg;
        Dumbbell *d;

        config(&cfg);
        cfg.cc.has_ecn_probe = false;
        cfg.cc.w_ai = 1000;
        d = steady(n[i], ERDMA_XPORT_CC_HPCC_ECN, &cfg, step_20,
                   1000 * RTT_NS, 1000 * RTT_NS, "hpcc_ecn, step");
        near(queue_bdp(d) * 125, step_pkt[i], 0.2 * step_pkt[i],
             0.2 * step_pkt[i]);
        g_assert_cmpfloat(utilisation(d), >, 0.96);
        g_assert_cmpfloat(jain(d), >, 0.95);
        dumbbell_free(d);

        cfg.cc.w_ai = 400;
        d = steady(red_n[i], ERDMA_XPORT_CC_HPCC_ECN, &cfg, red,
                   1000 * RTT_NS, 1000 * RTT_NS, "hpcc_ecn, red");
        near(queue_bdp(d) * 125, red_kb[i], 0.06 * red_kb[i],
             0.06 * red_kb[i]);
        dumbbell_free(d);
    }
}

static void drop_tail(Dumbbell *d)
{
    d->limit = BDP;
}

/* Loss-based ones share a drop-tail queue of one BDP. */
static void test_loss_based(void)
{
    static const uint8_t ccs[] = {
        ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC,
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ccs); i++) {
        ErdmaXportConfig cfg;
        Dumbbell *d;

        config(&cfg);
        cfg.use_ecn = false;
        d = steady(4, ccs[i], &cfg, drop_tail, 1000 * RTT_NS, 2000 * RTT_NS,
                   i ? "cubic" : "newreno");
        g_assert_cmpfloat(utilisation(d), >, 0.98);
        g_assert_cmpfloat(jain(d), >, 0.9);
        g_assert_cmpuint(d->n_drops, >, 0);
        g_assert_cmpuint(erdma_xport_stats(d->x[0])->rtos, ==, 0);
        dumbbell_free(d);
    }
}

/* A selector that selects nothing would go unnoticed otherwise. */
static void lossy_red(Dumbbell *d)
{
    red(d);
    d->loss = 0.001;
}

static void test_different(void)
{
    uint64_t tx[5];
    unsigned i, k;

    for (i = 0; i < 5; i++) {
        ErdmaXportConfig cfg;
        Dumbbell *d;

        config(&cfg);
        cfg.cc.w_ai = 400;
        d = steady(4, i, &cfg, lossy_red, 0, 200 * RTT_NS, "different");
        tx[i] = d->tx_bytes;
        dumbbell_free(d);
        for (k = 0; k < i; k++) {
            g_assert_cmpuint(tx[i], !=, tx[k]);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/dumbbell/loss-based", test_loss_based);
    g_test_add_func("/erdma/xport/dumbbell/hpcc-int", test_hpcc_int);
    g_test_add_func("/erdma/xport/dumbbell/hpcc-int-loss",
                    test_hpcc_int_loss);
    g_test_add_func("/erdma/xport/dumbbell/hpcc-int-compact",
                    test_hpcc_int_compact);
    g_test_add_func("/erdma/xport/dumbbell/hpcc-int-plain",
                    test_hpcc_int_plain);
    g_test_add_func("/erdma/xport/dumbbell/hpcc-rtt", test_hpcc_rtt);
    g_test_add_func("/erdma/xport/dumbbell/hpcc-ecn", test_hpcc_ecn);
    g_test_add_func("/erdma/xport/dumbbell/different", test_different);
    return g_test_run();
}
