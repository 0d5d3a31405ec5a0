/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The emulated link: what it loses, marks, delays and counts.
 */

#include "qemu/osdep.h"
#include <math.h>
#include "netem/netem.h"

#define MS              1000000ull
#define PKT             1000
#define GBPS            1000000000ull

typedef struct Rig {
    NetemLink *link;
    unsigned n_live;            /* packets that somebody owns */
    uint64_t next_id;
    uint64_t stamp_time;
    uint64_t stamp_bytes;
    uint64_t stamp_queue;
} Rig;

typedef struct Packet {
    NetemPacket p;
    uint64_t id;
    uint64_t sent_ns;
    bool is_ect;
    bool is_ce;
    bool is_copy;
} Packet;

static Packet *rig_packet(Rig *r)
{
    Packet *k = g_new0(Packet, 1);

    k->p.len = PKT;
    k->id = r->next_id++;
    k->is_ect = true;
    r->n_live++;
    return k;
}

static bool rig_mark(void *opaque, NetemPacket *p)
{
    Packet *k = container_of(p, Packet, p);

    k->is_ce |= k->is_ect;
    return k->is_ect;
}

static bool rig_stamp(void *opaque, NetemPacket *p, uint64_t time_ns,
                      uint64_t tx_bytes, uint64_t queue)
{
    Rig *r = opaque;

    r->stamp_time = time_ns;
    r->stamp_bytes = tx_bytes;
    r->stamp_queue = queue;
    return true;
}

static NetemPacket *rig_copy(void *opaque, const NetemPacket *p)
{
    Packet *k = rig_packet(opaque);

    *k = *container_of(p, Packet, p);
    k->is_copy = true;
    return &k->p;
}

static void rig_free(void *opaque, NetemPacket *p)
{
    Rig *r = opaque;

    r->n_live--;
    g_free(container_of(p, Packet, p));
}

static const NetemOps rig_ops = {
    .mark = rig_mark,
    .stamp = rig_stamp,
    .copy = rig_copy,
    .free = rig_free,
};

static void rig_init(Rig *r, const NetemConfig *cfg)
{
    const char *allowed;

    memset(r, 0, sizeof(*r));
    g_assert_null(netem_config_check(cfg, &allowed));
    r->link = netem_link_new(&rig_ops, r, cfg);
}

static void rig_done(Rig *r)
{
    netem_link_free(r->link);
    g_assert_cmpuint(r->n_live, ==, 0);
}

static void rig_send(Rig *r, uint64_t now)
{
    Packet *k = rig_packet(r);

    k->sent_ns = now;
    netem_link_put(r->link, &k->p, now);
}

/* The next delivery; sets *@now to its time. */
static Packet *rig_next(Rig *r, uint64_t *now)
{
    NetemPacket *p;

    while (!(p = netem_link_take(r->link, *now))) {
        uint64_t at = netem_link_deadline(r->link);

        if (at == NETEM_NEVER) {
            return NULL;
        }
        g_assert_cmpuint(at, >, *now);
        *now = at;
    }
    return container_of(p, Packet, p);
}

static void rig_drain(Rig *r, uint64_t now)
{
    Packet *k;

    while ((k = rig_next(r, &now))) {
        rig_free(r, &k->p);
    }
}

/* Sends @n packets 1 us apart and returns what was delivered as a hash. */
static guint rig_trace(const NetemConfig *cfg, unsigned n)
{
    g_autoptr(GString) trace = g_string_new(NULL);
    uint64_t now = 0;
    Packet *k;
    Rig r;
    unsigned i;

    rig_init(&r, cfg);
    for (i = 0; i < n; i++) {
        rig_send(&r, i * 1000);
    }
    while ((k = rig_next(&r, &now))) {
        g_string_append_printf(trace, "%" PRIu64 "@%" PRIu64 "%s ", k->id,
                               now, k->is_ce ? "*" : "");
        rig_free(&r, &k->p);
    }
    rig_done(&r);
    return g_str_hash(trace->str);
}

/* One packet over a link: serialisation and delay, to the nanosecond */
static void test_one_packet(void)
{
    NetemConfig cfg = { .rate_bps = GBPS, .delay_ns = 5 * MS,
                        .overhead = 24, .link_id = 7 };
    uint64_t now = 100;
    Packet *k;
    Rig r;

    rig_init(&r, &cfg);
    rig_send(&r, now);
    k = rig_next(&r, &now);
    g_assert_cmpuint(now, ==, 100 + (PKT + 24) * 8 + 5 * MS);
    g_assert_cmpuint(r.stamp_time, ==, 100);
    g_assert_cmpuint(r.stamp_bytes, ==, 0);
    rig_free(&r, &k->p);
    rig_done(&r);
}

/* Twice the rate into a buffer of 50 packets: half of it is lost. */
static void test_overload(void)
{
    NetemConfig cfg = { .rate_bps = GBPS, .limit = 50 * PKT };
    uint64_t ser = PKT * 8, now = 0, delay_max = 0;
    const NetemStats *st;
    unsigned i, n = 20000;
    Packet *k;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < n; i++) {
        uint64_t at = i * ser / 2;

        while ((now = MIN(netem_link_deadline(r.link), at)) < at) {
            NetemPacket *p = netem_link_take(r.link, now);

            if (p) {
                k = container_of(p, Packet, p);
                delay_max = MAX(delay_max, now - k->sent_ns);
                rig_free(&r, p);
            }
        }
        rig_send(&r, at);
    }
    rig_drain(&r, now);
    st = netem_link_stats(r.link, now);
    g_assert_cmpuint(st->queue_max, <=, 50 * PKT);
    g_assert_cmpuint(st->queue_max, >=, 49 * PKT);
    g_assert_cmpuint(delay_max, <=, 51 * ser);
    /* n / 2 while it lasted, and the full queue at the end */
    g_assert_cmpuint(labs((long)st->delivered - (long)(n / 2 + 51)), <=, 2);
    g_assert_cmpuint(st->delivered + st->drop_queue, ==, n);
    g_assert_cmpuint(st->busy_ns, ==, st->delivered * ser);
    rig_done(&r);
}

static void test_loss(void)
{
    NetemConfig cfg = { .seed = 1, .loss = 0.01 };
    unsigned i, n = 1000000;
    double sigma = sqrt(0.01 * 0.99 * n);
    const NetemStats *st;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < n; i++) {
        rig_send(&r, i);
        rig_drain(&r, i);
    }
    st = netem_link_stats(r.link, n);
    g_assert_cmpfloat(fabs(st->drop_loss - 0.01 * n), <, 4 * sigma);
    g_assert_cmpuint(st->drop_loss + st->delivered, ==, n);
    rig_done(&r);
}

static void test_burst(void)
{
    NetemConfig cfg = { .seed = 1, .ge_enter = 0.001, .ge_leave = 0.1,
                        .ge_loss_bad = 1 };
    uint64_t lost = 0, bursts = 0, run = 0;
    unsigned i, n = 1000000;
    double rate, length;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < n; i++) {
        uint64_t before = netem_link_stats(r.link, i)->drop_burst;
        bool is_lost;

        rig_send(&r, i);
        is_lost = netem_link_stats(r.link, i)->drop_burst != before;
        lost += is_lost;
        bursts += is_lost && !run;
        run = is_lost ? run + 1 : 0;
        rig_drain(&r, i);
    }
    rate = (double)lost / n;
    length = (double)lost / bursts;
    g_assert_cmpfloat(fabs(rate / (0.001 / 0.101) - 1), <, 0.15);
    g_assert_cmpfloat(fabs(length / 10 - 1), <, 0.10);
    rig_done(&r);
}

/*
 * Marks on @n packets that each find exactly @queue bytes waiting: they come
 * as fast as the link sends.
 */
static uint64_t marks_at(uint64_t queue, unsigned n)
{
    NetemConfig cfg = { .seed = 3, .rate_bps = GBPS, .ecn_kmin = 20 * PKT,
                        .ecn_kmax = 40 * PKT, .ecn_pmax = 0.2 };
    uint64_t marks, ser = PKT * 8;
    unsigned i;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < queue / PKT + 2; i++) {
        Packet *k = rig_packet(&r);

        k->is_ect = false;
        netem_link_put(r.link, &k->p, 0);
    }
    for (i = 1; i <= n; i++) {
        rig_send(&r, i * ser);
        g_assert_cmpuint(netem_link_queue(r.link), ==, queue + PKT);
    }
    marks = netem_link_stats(r.link, n * ser)->marks;
    rig_done(&r);
    return marks;
}

static void test_ecn_ramp(void)
{
    unsigned n = 20000;
    double sigma = sqrt(0.1 * 0.9 * n);

    g_assert_cmpuint(marks_at(19 * PKT, n), ==, 0);
    g_assert_cmpfloat(fabs(marks_at(30 * PKT, n) - 0.1 * n), <, 4 * sigma);
    g_assert_cmpuint(marks_at(40 * PKT, n), ==, n);
}

/* What cannot be marked passes, or is dropped on request. */
static void test_not_ect(void)
{
    NetemConfig cfg = { .rate_bps = GBPS, .ecn_kmax = 1 };
    Rig r;
    int drop;

    for (drop = 0; drop <= 1; drop++) {
        unsigned i;

        cfg.ecn_drop_not_ect = drop;
        rig_init(&r, &cfg);
        for (i = 0; i < 3; i++) {
            Packet *k = rig_packet(&r);

            k->is_ect = false;
            netem_link_put(r.link, &k->p, 0);
        }
        g_assert_cmpuint(netem_link_stats(r.link, 0)->drop_not_ect, ==, drop);
        g_assert_cmpuint(netem_link_stats(r.link, 0)->marks, ==, 0);
        rig_done(&r);
    }
}

/* The INT counter counts what left, not what is leaving. */
static void test_stamp(void)
{
    NetemConfig cfg = { .rate_bps = GBPS, .overhead = 24, .link_id = 1 };
    uint64_t ser = (PKT + 24) * 8;
    unsigned i;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < 4; i++) {
        rig_send(&r, 0);
    }
    g_assert_cmpuint(netem_link_deadline(r.link), ==, ser);
    netem_link_stats(r.link, ser);
    g_assert_cmpuint(r.stamp_time, ==, ser);
    g_assert_cmpuint(r.stamp_bytes, ==, PKT + 24);
    g_assert_cmpuint(r.stamp_queue, ==, 2 * PKT);
    /* A caller that comes late finds the same stamps. */
    netem_link_stats(r.link, 100 * ser);
    g_assert_cmpuint(r.stamp_time, ==, 3 * ser);
    g_assert_cmpuint(r.stamp_bytes, ==, 3 * (PKT + 24));
    g_assert_cmpuint(netem_link_stats(r.link, 100 * ser)->stamps, ==, 4);
    rig_done(&r);
}

static void test_drop_list(void)
{
    NetemConfig cfg = { .drop_every = 10 };
    const uint64_t list[] = { 7, 0, 3 };
    uint64_t now = 0, expect[] = { 1, 2, 4, 5, 6, 8, 10, 11 };
    Packet *k;
    unsigned i;
    Rig r;

    rig_init(&r, &cfg);
    netem_link_set_drop_list(r.link, list, G_N_ELEMENTS(list));
    for (i = 0; i < 12; i++) {
        rig_send(&r, i);
    }
    now = 100;
    for (i = 0; i < G_N_ELEMENTS(expect); i++) {
        k = rig_next(&r, &now);
        g_assert_cmpuint(k->id, ==, expect[i]);
        rig_free(&r, &k->p);
    }
    g_assert_null(rig_next(&r, &now));
    g_assert_cmpuint(netem_link_stats(r.link, now)->drop_listed, ==, 4);
    rig_done(&r);
}

/* Is the order of delivery the order of sending?  Ids of copies repeat. */
static bool keeps_order(const NetemConfig *cfg, double *mean_delay)
{
    uint64_t now = 0, last = 0, sum = 0;
    unsigned i, n = 20000;
    bool ok = true;
    Packet *k;
    Rig r;

    rig_init(&r, cfg);
    for (i = 0; i < n; i++) {
        rig_send(&r, i * 1000);
    }
    while ((k = rig_next(&r, &now))) {
        ok = ok && k->id >= last;
        last = k->id;
        sum += now - k->sent_ns;
        rig_free(&r, &k->p);
    }
    *mean_delay = (double)sum / n;
    rig_done(&r);
    return ok;
}

static void test_jitter(void)
{
    const double mean[NETEM_JITTER_COUNT] = { 0, 0.5, 0.798, 1 };
    NetemConfig cfg = { .seed = 9, .delay_ns = MS, .jitter_ns = MS };
    double delay;
    unsigned i;

    for (i = NETEM_JITTER_UNIFORM; i < NETEM_JITTER_COUNT; i++) {
        cfg.jitter = i;
        cfg.jitter_reorders = false;
        g_assert_true(keeps_order(&cfg, &delay));
        cfg.jitter_reorders = true;
        g_assert_false(keeps_order(&cfg, &delay));
        g_assert_cmpfloat(fabs(delay / MS - 1 - mean[i]), <, 0.05);
    }
}

static void test_reorder_duplicate(void)
{
    NetemConfig cfg = { .seed = 2, .delay_ns = MS, .reorder = 0.1,
                        .reorder_ns = 10000 };
    double delay;
    Rig r;
    unsigned i;

    g_assert_false(keeps_order(&cfg, &delay));
    g_assert_cmpfloat(fabs(delay - MS - 1000), <, 100);

    cfg.reorder = 0;
    cfg.duplicate = 0.25;
    rig_init(&r, &cfg);
    for (i = 0; i < 10000; i++) {
        rig_send(&r, i);
    }
    rig_drain(&r, 0);
    g_assert_cmpuint(netem_link_stats(r.link, 0)->delivered, ==, 10000 +
                     netem_link_stats(r.link, 0)->duplicates);
    g_assert_cmpfloat(fabs(netem_link_stats(r.link, 0)->duplicates - 2500.0),
                      <, 4 * sqrt(10000 * 0.25 * 0.75));
    rig_done(&r);
}

/* Same seed, same trace; other impairments do not change which are lost. */
static void test_seeds(void)
{
    NetemConfig cfg = { .seed = 5, .loss = 0.05, .jitter_ns = MS,
                        .jitter = NETEM_JITTER_NORMAL, .duplicate = 0.1 };
    NetemConfig other = cfg;
    unsigned i;
    Rig a, b;

    g_assert_cmpuint(rig_trace(&cfg, 5000), ==, rig_trace(&cfg, 5000));
    other.seed = 6;
    g_assert_cmpuint(rig_trace(&cfg, 5000), !=, rig_trace(&other, 5000));

    other = (NetemConfig) { .seed = 5, .loss = 0.05, .corrupt = 0.1,
                            .ge_enter = 0.01, .ge_leave = 0.3,
                            .ge_loss_bad = 1 };
    rig_init(&a, &cfg);
    rig_init(&b, &other);
    for (i = 0; i < 5000; i++) {
        uint64_t before = netem_link_stats(b.link, i)->drop_loss;
        uint64_t lost = netem_link_stats(a.link, i)->drop_loss;

        rig_send(&a, i);
        rig_send(&b, i);
        lost = netem_link_stats(a.link, i)->drop_loss - lost;
        before = netem_link_stats(b.link, i)->drop_loss - before;
        g_assert_cmpuint(lost, ==, before);
    }
    rig_done(&a);
    rig_done(&b);
}

/* A long delay is no licence to hoard. */
static void test_hard_limit(void)
{
    NetemConfig cfg = { .delay_ns = 60000 * MS };
    unsigned i, n = NETEM_HARD_LIMIT / PKT + 1000;
    const NetemStats *st;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < n; i++) {
        rig_send(&r, i);
    }
    st = netem_link_stats(r.link, n);
    g_assert_cmpuint(r.n_live, ==, NETEM_HARD_LIMIT / PKT);
    g_assert_cmpuint(st->drop_queue, ==, n - r.n_live);
    rig_done(&r);
}

/* Rate and loss change while packets are waiting. */
static void test_change(void)
{
    NetemConfig cfg = { .rate_bps = GBPS };
    uint64_t ser = PKT * 8, now = 0;
    Packet *k;
    unsigned i;
    Rig r;

    rig_init(&r, &cfg);
    for (i = 0; i < 4; i++) {
        rig_send(&r, 0);
    }
    cfg.rate_bps = GBPS / 10;
    netem_link_set_config(r.link, &cfg, ser);
    for (i = 0; i < 4; i++) {
        /* Two had started at the old rate. */
        const uint64_t at[] = { 1, 2, 12, 22 };

        k = rig_next(&r, &now);
        g_assert_cmpuint(now, ==, at[i] * ser);
        rig_free(&r, &k->p);
    }
    cfg.loss = 1;
    netem_link_set_config(r.link, &cfg, now);
    rig_send(&r, now);
    g_assert_null(rig_next(&r, &now));
    rig_done(&r);
}

static void test_check(void)
{
    const struct {
        const char *bad;
        NetemConfig cfg;
    } cases[] = {
        { NULL, { .loss = 1 } },
        { "loss", { .loss = 1.01 } },
        { "loss", { .loss = NAN } },
        { "duplicate", { .duplicate = -0.1 } },
        { "burst-leave", { .ge_enter = 0.1 } },
        { "ecn-kmin", { .ecn_kmin = 2, .ecn_kmax = 1 } },
        { "limit", { .limit = NETEM_HARD_LIMIT + 1 } },
        { "rate", { .rate_bps = 1 } },
        { "overhead", { .overhead = 2000 } },
        { "delay-us", { .delay_ns = UINT64_MAX } },
        { "jitter-us", { .jitter_ns = UINT64_MAX } },
        { "reorder-us", { .reorder_ns = UINT64_MAX } },
        { "reorder-us", { .reorder = 0.1 } },
    };
    const char *allowed;
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        allowed = NULL;
        g_assert_cmpstr(netem_config_check(&cases[i].cfg, &allowed), ==,
                        cases[i].bad);
        g_assert_true(!cases[i].bad == !allowed);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/netem/one-packet", test_one_packet);
    g_test_add_func("/netem/overload", test_overload);
    g_test_add_func("/netem/loss", test_loss);
    g_test_add_func("/netem/burst", test_burst);
    g_test_add_func("/netem/ecn-ramp", test_ecn_ramp);
    g_test_add_func("/netem/not-ect", test_not_ect);
    g_test_add_func("/netem/stamp", test_stamp);
    g_test_add_func("/netem/drop-list", test_drop_list);
    g_test_add_func("/netem/jitter", test_jitter);
    g_test_add_func("/netem/reorder-duplicate", test_reorder_duplicate);
    g_test_add_func("/netem/seeds", test_seeds);
    g_test_add_func("/netem/hard-limit", test_hard_limit);
    g_test_add_func("/netem/change", test_change);
    g_test_add_func("/netem/check", test_check);
    return g_test_run();
}
