/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many connections of one transport: turns, budget, a path that blocks, and
 * what idle ones cost.  Both ends are connections of the same transport.
 */

#include "qemu/osdep.h"
#include <malloc.h>
#include "xport/xport.h"

#define US      1000ULL
#define MS      (1000 * US)
#define S       (1000 * MS)
#define DELAY   (50 * US)

typedef struct Flying {
    uint64_t when_ns;
    ErdmaDatagram dg;
} Flying;

typedef struct Host {
    ErdmaXport *x;
    ErdmaXportConn **conn;      /* 2 * i sends to 2 * i + 1 */
    ErdmaXportMsg *msg;         /* one per pair */
    uint64_t *rx_bytes;
    unsigned n_pairs;
    unsigned n_done;
    GQueue wire;
    uint64_t now_ns;
    unsigned n_transmits;
    unsigned block_after;       /* 0: never */
} Host;

static bool host_transmit(void *opaque, const ErdmaDatagram *dg)
{
    Host *h = opaque;
    Flying *f = g_new(Flying, 1);

    f->when_ns = h->now_ns + DELAY;
    f->dg = *dg;
    f->dg.data = g_memdup2(dg->data, dg->len);
    g_queue_push_tail(&h->wire, f);
    h->n_transmits++;
    return !h->block_after || h->n_transmits % h->block_after;
}

static bool host_pull(void *opaque, void *owner, ErdmaXportMsg *msg,
                      uint32_t off, uint8_t *buf, uint32_t len)
{
    memset(buf, 0x5a, len);
    return true;
}

static ErdmaXportRx host_rx(void *opaque, void *owner,
                            const ErdmaXportMsgHdr *hdr, uint32_t msn,
                            uint32_t off, const uint8_t *data, uint32_t len,
                            bool is_last)
{
    Host *h = opaque;

    h->rx_bytes[GPOINTER_TO_UINT(owner) / 2] += len;
    return ERDMA_XPORT_RX_OK;
}

static void host_msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    ((Host *)opaque)->n_done++;
}

static void host_tx_room(void *opaque, void *owner)
{
}

static void host_terminated(void *opaque, void *owner, uint8_t status,
                            uint32_t msn)
{
}

static void host_error(void *opaque, void *owner, ErdmaXportError error)
{
    g_error("connection %u: error %d", GPOINTER_TO_UINT(owner), error);
}

static const ErdmaXportOps host_ops = {
    .transmit = host_transmit,
    .pull = host_pull,
    .rx = host_rx,
    .msg_done = host_msg_done,
    .tx_room = host_tx_room,
    .terminated = host_terminated,
    .conn_error = host_error,
};

static void host_init(Host *h, unsigned n_pairs)
{
    ErdmaXportConfig cfg;
    unsigned i;

    memset(h, 0, sizeof(*h));
    erdma_xport_config_default(&cfg);
    h->now_ns = S;
    h->x = erdma_xport_new(&host_ops, h, &cfg);
    h->n_pairs = n_pairs;
    h->conn = g_new0(ErdmaXportConn *, 2 * n_pairs);
    h->msg = g_new0(ErdmaXportMsg, n_pairs);
    h->rx_bytes = g_new0(uint64_t, n_pairs);
    g_queue_init(&h->wire);
    for (i = 0; i < 2 * n_pairs; i++) {
        ErdmaXportConnParams p = {
            .local_cookie = i, .peer_cookie = i ^ 1,
            .local_ip = 1, .peer_ip = 1,
            .tx_pn0 = 77 * i, .rx_pn0 = 77 * (i ^ 1),
            .cc = i % 2, .owner = GUINT_TO_POINTER(i),
        };

        h->conn[i] = erdma_xport_conn_open(h->x, &p, h->now_ns);
        g_assert_nonnull(h->conn[i]);
    }
}

static void flying_free(gpointer data)
{
    Flying *f = data;

    g_free(f->dg.data);
    g_free(f);
}

static void host_destroy(Host *h)
{
    erdma_xport_free(h->x);
    g_queue_clear_full(&h->wire, flying_free);
    g_free(h->conn);
    g_free(h->msg);
    g_free(h->rx_bytes);
}

static void send(Host *h, unsigned pair, uint32_t len)
{
    h->msg[pair].hdr = (ErdmaXportMsgHdr) {
        .op = ERDMA_XPORT_OP_WRITE, .len = len,
    };
    erdma_xport_conn_send(h->conn[2 * pair], &h->msg[pair]);
}

/* Returns the number of polls until nothing is left to do. */
static unsigned run(Host *h, uint64_t until_ns, unsigned budget)
{
    unsigned n = 0;

    for (;;) {
        unsigned before = h->n_transmits;
        uint64_t next_ns = erdma_xport_poll(h->x, h->now_ns, budget);
        Flying *f = g_queue_peek_head(&h->wire);

        n++;
        g_assert_cmpuint(h->n_transmits - before, <=, budget);
        if (h->block_after) {
            erdma_xport_unblock(h->x);
            next_ns = MIN(next_ns, h->now_ns + 1);
        }
        if (f) {
            next_ns = MIN(next_ns, f->when_ns);
        }
        if (next_ns > until_ns) {
            return n;
        }
        h->now_ns = MAX(h->now_ns, next_ns);
        while ((f = g_queue_peek_head(&h->wire)) != NULL &&
               f->when_ns <= h->now_ns) {
            g_queue_pop_head(&h->wire);
            erdma_xport_input(h->x, &f->dg, h->now_ns);
            flying_free(f);
        }
        if (h->block_after && h->n_done == h->n_pairs) {
            return n;
        }
    }
}

static void test_many(void)
{
    unsigned i, n = 1000;
    Host h;

    host_init(&h, n);
    run(&h, h.now_ns + 10 * MS, 64);
    for (i = 0; i < n; i++) {
        send(&h, i, 10000 + i);
    }
    run(&h, h.now_ns + S, 64);
    g_assert_cmpuint(h.n_done, ==, n);
    for (i = 0; i < n; i++) {
        g_assert_cmpuint(h.rx_bytes[i], ==, 10000 + i);
    }
    g_assert_cmpuint(erdma_xport_stats(h.x)->retransmits, ==, 0);
    host_destroy(&h);
}

/* With little budget everybody gets a turn before anybody gets a second. */
static void test_turns(void)
{
    unsigned i, n = 50;
    uint64_t min = UINT64_MAX, max = 0;
    Host h;

    host_init(&h, n);
    run(&h, h.now_ns + 10 * MS, 64);
    for (i = 0; i < n; i++) {
        send(&h, i, 10000000);
    }
    for (i = 0; i < 10 * n; i++) {
        unsigned before = h.n_transmits;

        erdma_xport_poll(h.x, h.now_ns, 1);
        g_assert_cmpuint(h.n_transmits - before, ==, 1);
    }
    h.now_ns += DELAY;
    run(&h, h.now_ns, 1000000);
    for (i = 0; i < n; i++) {
        min = MIN(min, h.rx_bytes[i]);
        max = MAX(max, h.rx_bytes[i]);
    }
    g_assert_cmpuint(min, ==, max);
    g_assert_cmpuint(min, >, 0);
    host_destroy(&h);
}

/* A path that blocks after every few packets delays, and that is all. */
static void test_blocked(void)
{
    unsigned i, n = 20;
    Host h;

    host_init(&h, n);
    run(&h, h.now_ns + 10 * MS, 64);
    for (i = 0; i < n; i++) {
        send(&h, i, 100000);
    }
    h.block_after = 3;
    run(&h, h.now_ns + 10 * S, 64);
    g_assert_cmpuint(h.n_done, ==, n);
    g_assert_cmpuint(erdma_xport_stats(h.x)->retransmits, ==, 0);
    host_destroy(&h);
}

/* While it is blocked nothing is sent, and no timeout is counted. */
static void test_blocked_long(void)
{
    unsigned before;
    Host h;

    host_init(&h, 2);
    run(&h, h.now_ns + 10 * MS, 64);
    h.block_after = h.n_transmits + 1;
    send(&h, 0, 10);
    send(&h, 1, 10);
    g_assert_cmpuint(erdma_xport_poll(h.x, h.now_ns, 64), ==,
                     ERDMA_XPORT_NEVER);
    before = h.n_transmits;
    h.now_ns += 100 * S;
    g_assert_cmpuint(erdma_xport_poll(h.x, h.now_ns, 64), ==,
                     ERDMA_XPORT_NEVER);
    g_assert_cmpuint(h.n_transmits, ==, before);
    h.block_after = 0;
    erdma_xport_unblock(h.x);
    run(&h, h.now_ns + S, 64);
    g_assert_cmpuint(h.n_done, ==, 2);
    host_destroy(&h);
}

/* Idle connections are in no list and take little room. */
static void test_idle(void)
{
    unsigned i, n = 10000;
    size_t used;
    struct mallinfo2 before = mallinfo2(), after;
    Host h;

    host_init(&h, n);
    run(&h, h.now_ns + 10 * MS, 64);
    for (i = 0; i < n; i++) {
        send(&h, i, 10000);
    }
    run(&h, h.now_ns + S, 64);
    g_assert_cmpuint(h.n_done, ==, n);
    g_assert_cmpuint(erdma_xport_poll(h.x, h.now_ns + S, 64), ==,
                     ERDMA_XPORT_NEVER);
    after = mallinfo2();
    /*
     * One KiB, 64 bytes of counters, its places in hash table and heap, and
     * what the test itself keeps.  Under a sanitizer this measures nothing.
     */
    used = (after.uordblks - before.uordblks) / (2 * n);
    g_test_message("%zu bytes per connection",
                   used - MIN(used, (24 + sizeof(ErdmaXportMsg)) / 2));
    g_assert_cmpuint(used, <=, 1024 + 64 + 64 +
                     (24 + sizeof(ErdmaXportMsg)) / 2);

    /* One busy pair: a poll for each packet or so, not for each idle one */
    h.n_done = 0;
    send(&h, 7, 1000000);
    i = h.n_transmits;
    g_assert_cmpuint(run(&h, h.now_ns + S, 64), <, 1000);
    g_assert_cmpuint(h.n_done, ==, 1);
    g_assert_cmpuint(h.n_transmits - i, <, 1500);
    host_destroy(&h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/mux/many", test_many);
    g_test_add_func("/erdma/xport/mux/turns", test_turns);
    g_test_add_func("/erdma/xport/mux/blocked", test_blocked);
    g_test_add_func("/erdma/xport/mux/blocked-long", test_blocked_long);
    g_test_add_func("/erdma/xport/mux/idle", test_idle);
    return g_test_run();
}
