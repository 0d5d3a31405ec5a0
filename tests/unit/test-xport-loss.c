/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scoreboard and loss detection, packet by packet. */

#include "qemu/osdep.h"
#include "xport/loss.h"

#define PN0     (1ULL << 32)
#define US      1000ULL
#define RTT     (100 * US)

static ErdmaSentPool pool;

typedef struct Board {
    ErdmaSentMap m;
    ErdmaLoss l;
    ErdmaRtt rtt;
    ErdmaXportMsg msg;
    ErdmaLost lost;
    bool is_spurious;           /* the latest ack showed that */
} Board;

static void board_init(Board *b)
{
    memset(b, 0, sizeof(*b));
    erdma_sentmap_init(&b->m, &pool, PN0);
    erdma_loss_init(&b->l, PN0, 3);
    erdma_rtt_init(&b->rtt);
    erdma_rtt_sample(&b->rtt, 0, RTT, 0);
}

/* @n packets of 1000 bytes, 1 us apart */
static void send(Board *b, unsigned n, uint64_t now_ns)
{
    while (n--) {
        ErdmaSent *e = erdma_sentmap_add(&b->m, 1000);

        e->sent_ns = now_ns;
        e->msg = &b->msg;
        e->msn = 5;
        e->off = (b->m.next - PN0 - 1) * 900;
        e->len = 900;
        now_ns += US;
    }
}

static ErdmaAcked ack(Board *b, unsigned first, unsigned last,
                      uint64_t now_ns)
{
    ErdmaAcked a;

    erdma_loss_ack_begin(&b->l, PN0 + last, &a);
    erdma_loss_ack_range(&b->l, &b->m, PN0 + first, PN0 + last, &a);
    b->is_spurious = erdma_loss_ack_done(&b->l, &b->m, &a, now_ns);
    erdma_loss_detect(&b->l, &b->m, &b->rtt, 5, 0, now_ns, &b->lost);
    return a;
}

static unsigned state(Board *b, unsigned i)
{
    return erdma_sentmap_get(&b->m, PN0 + i)->state;
}

static void test_threshold(void)
{
    Board b;
    ErdmaAcked a;

    board_init(&b);
    send(&b, 10, 0);
    g_assert_cmpuint(b.m.pipe, ==, 10000);
    a = ack(&b, 0, 0, RTT);
    g_assert_cmpuint(a.bytes, ==, 1000);
    g_assert_true(a.has_trigger);
    ack(&b, 2, 2, RTT + 2 * US);
    ack(&b, 2, 3, RTT + 3 * US);
    g_assert_cmpuint(b.lost.n, ==, 0);
    /* Until the third, time would tell. */
    g_assert_cmpuint(b.lost.deadline_ns, ==, 1 * US + RTT + RTT / 4);
    a = ack(&b, 2, 4, RTT + 4 * US);
    g_assert_cmpuint(a.n, ==, 1);
    g_assert_cmpuint(b.lost.n, ==, 1);
    g_assert_cmpuint(b.lost.first_pn, ==, PN0 + 1);
    g_assert_true(b.lost.is_new_episode);
    g_assert_cmpuint(b.m.pipe, ==, 5000);
    /* A second loss of the same flight belongs to the same episode. */
    ack(&b, 7, 9, RTT + 9 * US);
    g_assert_cmpuint(b.lost.n, ==, 2);
    g_assert_false(b.lost.is_new_episode);
    g_assert_true(b.l.is_in_recovery);
    send(&b, 5, RTT + 10 * US);
    ack(&b, 10, 10, 2 * RTT + 10 * US);
    g_assert_false(b.l.is_in_recovery);
    erdma_sentmap_destroy(&b.m);
}

/* As many later packets as are asked for, not one less */
static void test_other_threshold(void)
{
    static const uint8_t thresholds[] = {
        1, 2, 5, ERDMA_XPORT_PACKET_THRESHOLD_MAX,
    };
    unsigned i, k;

    for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
        unsigned n = thresholds[i];
        Board b;

        board_init(&b);
        erdma_loss_init(&b.l, PN0, n);
        send(&b, 20, 0);
        ack(&b, 0, 0, RTT);
        for (k = 1; k < n; k++) {
            ack(&b, 2, 1 + k, RTT + k * US);
            g_assert_cmpuint(b.lost.n, ==, 0);
        }
        ack(&b, 2, 1 + n, RTT + n * US);
        g_assert_cmpuint(b.lost.n, ==, 1);
        g_assert_cmpuint(b.lost.first_pn, ==, PN0 + 1);
        erdma_sentmap_destroy(&b.m);
    }
}

static void test_time(void)
{
    Board b;

    board_init(&b);
    send(&b, 2, 0);
    ack(&b, 1, 1, RTT + 1 * US);
    g_assert_cmpuint(b.lost.n, ==, 0);
    g_assert_cmpuint(b.lost.deadline_ns, ==, RTT + RTT / 4);
    erdma_loss_detect(&b.l, &b.m, &b.rtt, 5, 0, RTT + RTT / 4 - 1, &b.lost);
    g_assert_cmpuint(b.lost.n, ==, 0);
    erdma_loss_detect(&b.l, &b.m, &b.rtt, 5, 0, RTT + RTT / 4, &b.lost);
    g_assert_cmpuint(b.lost.n, ==, 1);
    g_assert_cmpuint(b.lost.deadline_ns, ==, ERDMA_XPORT_NEVER);
    erdma_sentmap_destroy(&b.m);
}

/* Once something came late, three later ones mean nothing. */
static void test_reordering(void)
{
    Board b;

    board_init(&b);
    send(&b, 10, 0);
    ack(&b, 1, 1, RTT + 1 * US);
    ack(&b, 0, 1, RTT + 2 * US);
    g_assert_true(b.l.is_reordering_seen);
    ack(&b, 3, 8, RTT + 8 * US);
    g_assert_cmpuint(b.lost.n, ==, 0);
    g_assert_cmpuint(b.lost.deadline_ns, ==, 2 * US + RTT + RTT / 4);
    erdma_sentmap_destroy(&b.m);
}

/* Two ranges in one ack are no reordering. */
static void test_two_ranges(void)
{
    ErdmaAcked a;
    Board b;

    board_init(&b);
    send(&b, 10, 0);
    erdma_loss_ack_begin(&b.l, PN0 + 6, &a);
    erdma_loss_ack_range(&b.l, &b.m, PN0 + 5, PN0 + 6, &a);
    erdma_loss_ack_range(&b.l, &b.m, PN0 + 0, PN0 + 3, &a);
    g_assert_false(b.l.is_reordering_seen);
    g_assert_cmpuint(a.n, ==, 6);
    g_assert_cmpuint(a.largest_pn, ==, PN0 + 6);
    /* Three later ones delivered, not three numbers later */
    erdma_loss_ack_done(&b.l, &b.m, &a, RTT);
    erdma_loss_detect(&b.l, &b.m, &b.rtt, 5, 0, RTT, &b.lost);
    g_assert_cmpuint(b.lost.n, ==, 0);
    ack(&b, 5, 7, RTT + US);
    g_assert_cmpuint(b.lost.n, ==, 1);
    erdma_sentmap_destroy(&b.m);
}

static void test_spurious(void)
{
    Board b;
    ErdmaAcked a;

    board_init(&b);
    send(&b, 10, 0);
    ack(&b, 1, 3, RTT);
    g_assert_cmpuint(b.lost.n, ==, 1);
    g_assert_cmpuint(b.l.n_resend, ==, 1);
    a = ack(&b, 0, 3, RTT + US);
    g_assert_cmpuint(a.n_spurious, ==, 1);
    g_assert_cmpuint(a.bytes, ==, 0);
    g_assert_true(b.is_spurious);
    g_assert_cmpuint(b.l.reo_mult, ==, 2);
    /* It needs not be sent again any more. */
    g_assert_cmpuint(b.l.n_resend, ==, 0);
    erdma_sentmap_destroy(&b.m);
}

/* One mistake among real losses does not take the episode back. */
static void test_half_spurious(void)
{
    Board b;

    board_init(&b);
    send(&b, 10, 0);
    ack(&b, 2, 5, RTT);
    g_assert_cmpuint(b.lost.n, ==, 2);
    ack(&b, 1, 5, RTT + US);
    g_assert_false(b.is_spurious);
    ack(&b, 0, 5, RTT + 2 * US);
    g_assert_true(b.is_spurious);
    erdma_sentmap_destroy(&b.m);
}

static void test_resend(void)
{
    uint64_t pn;
    ErdmaSent *e;
    Board b;

    board_init(&b);
    send(&b, 10, 0);
    ack(&b, 3, 9, RTT);
    g_assert_cmpuint(b.l.n_resend, ==, 3);
    e = erdma_loss_next_resend(&b.l, &b.m, 5, 0, &pn);
    g_assert_cmpuint(pn, ==, PN0);
    erdma_loss_resent(&b.l, e);
    /* Delivered in the meantime: skipped */
    e = erdma_loss_next_resend(&b.l, &b.m, 5, 1800, &pn);
    g_assert_cmpuint(pn, ==, PN0 + 2);
    erdma_loss_resent(&b.l, e);
    g_assert_null(erdma_loss_next_resend(&b.l, &b.m, 5, 1800, &pn));
    g_assert_cmpuint(b.l.n_resend, ==, 0);
    /* They stay, to recognise a late ack, but not for ever. */
    erdma_sentmap_trim(&b.m, 0);
    g_assert_cmpuint(b.m.base, ==, PN0);
    erdma_sentmap_trim(&b.m, 1 * US + 1);
    g_assert_cmpuint(b.m.base, ==, PN0 + 2);
    erdma_sentmap_trim(&b.m, RTT);
    g_assert_cmpuint(b.m.base, ==, PN0 + 10);
    erdma_sentmap_destroy(&b.m);
}

/* Sends a packet with the payload of packet @i. */
static void send_copy(Board *b, unsigned i)
{
    send(b, 1, 0);
    erdma_sentmap_get(&b->m, b->m.next - 1)->off = i * 900;
}

static void expect_first(Board *b, unsigned i)
{
    uint64_t pn = 0;
    ErdmaSent *e = erdma_loss_first_resend(&b->l, &b->m, 5, 0, &pn);

    g_assert_nonnull(e);
    g_assert_cmpuint(pn, ==, PN0 + i);
    erdma_loss_resent(&b->l, e);
}

/*
 * Go-back-N: what is lost again on its way the second time comes before what
 * was to follow it, which has lower numbers; a copy is not sent twice.
 */
static void test_first_resend(void)
{
    uint64_t pn;
    Board b;

    board_init(&b);
    send(&b, 4, 0);
    erdma_loss_all(&b.l, &b.m, false, &b.lost);
    expect_first(&b, 0);
    send_copy(&b, 0);
    expect_first(&b, 1);
    send_copy(&b, 1);
    erdma_loss_all(&b.l, &b.m, false, &b.lost);
    g_assert_cmpuint(b.l.n_resend, ==, 4);
    expect_first(&b, 4);
    expect_first(&b, 5);
    expect_first(&b, 2);
    send_copy(&b, 3);
    send_copy(&b, 3);
    erdma_loss_all(&b.l, &b.m, false, &b.lost);
    g_assert_cmpuint(b.l.n_resend, ==, 3);
    /* The longest of them: a smaller MTU may have cut another one. */
    erdma_sentmap_get(&b.m, PN0 + 3)->len = 400;
    expect_first(&b, 6);
    g_assert_cmpuint(b.l.n_resend, ==, 0);
    g_assert_null(erdma_loss_first_resend(&b.l, &b.m, 5, 0, &pn));
    /* Delivered in the meantime: skipped */
    send_copy(&b, 2);
    erdma_loss_all(&b.l, &b.m, false, &b.lost);
    g_assert_null(erdma_loss_first_resend(&b.l, &b.m, 5, 3600, &pn));
    g_assert_cmpuint(b.l.n_resend, ==, 0);
    erdma_sentmap_destroy(&b.m);
}

/* Sends the first @bytes of what is told to be the first, packet @i. */
static void resend_part(Board *b, unsigned i, uint16_t bytes)
{
    uint64_t pn = 0;
    ErdmaSent *e = erdma_loss_first_resend(&b->l, &b->m, 5, 0, &pn);

    g_assert_nonnull(e);
    g_assert_cmpuint(pn, ==, PN0 + i);
    e->off += bytes;
    e->len -= bytes;
    if (!e->len) {
        erdma_loss_resent(&b->l, e);
    }
}

/*
 * Go-back-N: messages of three packets, in order and each once, some in two
 * parts, the tail with two probes behind it; a loss on the way begins anew.
 */
static void test_resend_in_order(void)
{
    enum { N = 3000, LOST_AGAIN = 700 };
    unsigned i;
    uint64_t pn;
    Board b;

    board_init(&b);
    b.msg.hdr.len = 3 * 900;
    send(&b, N, 0);
    for (i = 0; i < N; i++) {
        erdma_sentmap_get(&b.m, PN0 + i)->msn = 5 + i / 3;
        erdma_sentmap_get(&b.m, PN0 + i)->off = i % 3 * 900;
    }
    for (i = 0; i < 2; i++) {
        ErdmaSent tail = *erdma_sentmap_get(&b.m, PN0 + N - 1);
        ErdmaSent *e = erdma_sentmap_add(&b.m, 1000);

        e->msg = tail.msg;
        e->msn = tail.msn;
        e->off = tail.off;
        e->len = tail.len;
    }
    erdma_loss_all(&b.l, &b.m, false, &b.lost);
    for (i = 0; i < N; i++) {
        if (i % 5 == 0) {
            resend_part(&b, i, 500);
            resend_part(&b, i, 400);
        } else {
            resend_part(&b, i, 900);
        }
        if (i == LOST_AGAIN) {
            /* The second packet again, as N + 2 */
            ErdmaSent *e = erdma_sentmap_add(&b.m, 1000);

            e->msg = &b.msg;
            e->msn = 5;
            e->off = e->len = 900;
            erdma_loss_all(&b.l, &b.m, false, &b.lost);
            resend_part(&b, N + 2, 900);
        }
    }
    g_assert_cmpuint(b.l.n_resend, ==, 0);
    g_assert_null(erdma_loss_first_resend(&b.l, &b.m, 5, 0, &pn));
    erdma_sentmap_destroy(&b.m);
}

/*
 * Go-back-N: one packet is lost again and again while others wait.  Its copies
 * are remembered for a while; to find the last one must not cost a look at all
 * of them.
 */
static void test_resend_again(void)
{
    unsigned i;
    Board b;

    board_init(&b);
    send(&b, 10, 0);
    erdma_loss_all(&b.l, &b.m, false, &b.lost);
    expect_first(&b, 0);
    for (i = 10; i < 20000; i++) {
        send_copy(&b, 0);
        erdma_loss_all(&b.l, &b.m, false, &b.lost);
        expect_first(&b, i);
        g_assert_cmpuint(b.l.n_resend, ==, 9);
        if (i > 12) {
            g_assert_cmpuint(b.l.gone_from, ==, PN0 + 10);
            g_assert_cmpuint(b.l.n_gone, ==, i - 10);
        }
    }
    for (i = 1; i < 10; i++) {
        expect_first(&b, i);
    }
    erdma_sentmap_destroy(&b.m);
}

/* What the peer consumed is never lost: another copy arrived. */
static void test_delivered(void)
{
    Board b;

    board_init(&b);
    send(&b, 10, 0);
    ack(&b, 5, 9, RTT - US);
    g_assert_cmpuint(b.lost.n, ==, 5);
    send(&b, 5, RTT);
    erdma_loss_detect(&b.l, &b.m, &b.rtt, 6, 0, RTT, &b.lost);
    g_assert_cmpuint(b.lost.n, ==, 0);
    g_assert_cmpuint(b.m.n_inflight, ==, 0);
    g_assert_cmpuint(b.m.pipe, ==, 0);
    erdma_sentmap_destroy(&b.m);
}

/* Acks repeat the same ranges: the work is done once. */
static void test_repeat(void)
{
    unsigned n = 50000, i;
    Board b;

    board_init(&b);
    send(&b, n, 0);
    for (i = 2; i < n; i++) {
        ack(&b, 1, i, RTT);
    }
    g_assert_cmpuint(erdma_sentmap_get(&b.m, PN0 + 1)->run, ==, n - 1);
    g_assert_cmpuint(state(&b, 0), ==, ERDMA_SENT_LOST);
    g_assert_cmpuint(b.m.n_inflight, ==, 0);
    erdma_sentmap_destroy(&b.m);
}

/* The ring grows while it is shifted, and shrinks when it is empty. */
static void test_ring(void)
{
    unsigned i, sent = 0, acked = 0;
    Board b;

    board_init(&b);
    for (i = 2; i < 300; i++) {
        send(&b, i, i * US);
        sent += i;
        ack(&b, acked, acked + i / 2, i * US);
        acked += i / 2 + 1;
        erdma_sentmap_trim(&b.m, 0);
        g_assert_cmpuint(b.m.next, ==, PN0 + sent);
        g_assert_cmpuint(b.m.pipe, ==, 1000 * b.m.n_inflight);
    }
    erdma_loss_all(&b.l, &b.m, true, &b.lost);
    g_assert_cmpuint(b.lost.n, ==, sent - acked);
    g_assert_cmpuint(b.m.pipe, ==, 0);
    ack(&b, acked, sent - 1, RTT);
    g_assert_true(b.is_spurious);
    erdma_sentmap_trim(&b.m, 0);
    g_assert_null(b.m.ring);
    erdma_sentmap_destroy(&b.m);
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/loss/threshold", test_threshold);
    g_test_add_func("/erdma/xport/loss/other-threshold",
                    test_other_threshold);
    g_test_add_func("/erdma/xport/loss/time", test_time);
    g_test_add_func("/erdma/xport/loss/reordering", test_reordering);
    g_test_add_func("/erdma/xport/loss/two-ranges", test_two_ranges);
    g_test_add_func("/erdma/xport/loss/spurious", test_spurious);
    g_test_add_func("/erdma/xport/loss/half-spurious", test_half_spurious);
    g_test_add_func("/erdma/xport/loss/resend", test_resend);
    g_test_add_func("/erdma/xport/loss/first-resend", test_first_resend);
    g_test_add_func("/erdma/xport/loss/resend-again", test_resend_again);
    g_test_add_func("/erdma/xport/loss/resend-in-order",
                    test_resend_in_order);
    g_test_add_func("/erdma/xport/loss/delivered", test_delivered);
    g_test_add_func("/erdma/xport/loss/repeat", test_repeat);
    g_test_add_func("/erdma/xport/loss/ring", test_ring);
    ret = g_test_run();
    g_assert_cmpuint(pool.n, >, 0);
    erdma_sentpool_destroy(&pool);
    return ret;
}
