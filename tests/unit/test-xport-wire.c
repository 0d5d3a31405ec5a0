/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wire format: what is encoded is decoded, what is not exact is refused. */

#include "qemu/osdep.h"
#include "xport/link.h"
#include "xport/wire.h"

static void fill(ErdmaWire *w, ErdmaWireType type)
{
    memset(w, 0, sizeof(*w));
    w->type = type;
    w->ecn = ERDMA_WIRE_ECN_ECT0;
    w->dst_cookie = 0x01020304;
    w->src_cookie = 0xa1a2a3a4;
    w->number = 0xfffffffe;
}

static ErdmaWireData *fill_data(ErdmaWire *w, ErdmaXportOp op)
{
    ErdmaWireData *d = &w->u.data;

    fill(w, ERDMA_WIRE_DATA);
    d->msn = 0xdeadbeef;
    d->is_first = true;
    d->hdr = (ErdmaXportMsgHdr) {
        .op = op, .is_solicited = true, .len = 1000, .imm = 0x11223344,
        .rkey = 0x55667788, .raddr = 0x1122334455667788,
        .read_len = 0x99aabbcc, .req_msn = 0xddeeff00,
        .swap_add = 0x0102030405060708, .compare = 0x1112131415161718,
        .original = 0x2122232425262728,
    };
    d->len = 100;
    return d;
}

static void fill_ack(ErdmaWire *w, unsigned n_ranges)
{
    ErdmaWireAck *a = &w->u.ack;
    unsigned i;

    fill(w, ERDMA_WIRE_ACK);
    *a = (ErdmaWireAck) {
        .msn = 1, .off = 2, .largest_pn = 3, .trigger_pn = 4, .delay_ns = 5,
        .credit = 6, .ce_packets = 7, .ce_bytes = 8, .ect_packets = 9,
        .is_rnr = true, .is_nack = true, .n_ranges = n_ranges,
    };
    /* Downwards through zero */
    for (i = 0; i < n_ranges; i++) {
        a->ranges[i].last = 3 - 40 * i;
        a->ranges[i].first = a->ranges[i].last - i;
    }
}

static size_t encode(const ErdmaWire *w, uint8_t *buf)
{
    size_t len = erdma_wire_encode(w, buf);

    g_assert_cmpuint(len, ==, erdma_wire_len(w));
    return len + (w->type == ERDMA_WIRE_DATA ? w->u.data.len : 0);
}

static void assert_common(const ErdmaWire *a, const ErdmaWire *b)
{
    g_assert_cmpint(a->type, ==, b->type);
    g_assert_cmpuint(a->ecn, ==, b->ecn);
    g_assert_cmpuint(a->dst_cookie, ==, b->dst_cookie);
    g_assert_cmpuint(a->src_cookie, ==, b->src_cookie);
    g_assert_cmpuint(a->number, ==, b->number);
    g_assert_cmpuint(a->int_info, ==, b->int_info);
}

/* Every shorter and one longer length is refused. */
static void assert_exact(const uint8_t *buf, size_t len)
{
    ErdmaWire w;
    size_t i;

    for (i = 0; i < len; i++) {
        /* A copy of exactly this size, so that reading on is noticed */
        g_autofree uint8_t *copy = g_memdup2(buf, i);

        g_assert_cmpint(erdma_wire_parse(&w, copy, i), ==,
                        ERDMA_WIRE_MALFORMED);
    }
    g_assert_cmpint(erdma_wire_parse(&w, buf, len + 1), ==,
                    ERDMA_WIRE_MALFORMED);
    g_assert_cmpint(erdma_wire_parse(&w, buf, len), ==, ERDMA_WIRE_OK);
}

static void test_data(void)
{
    static const uint8_t lens[ERDMA_XPORT_OP_COUNT] = {
        [ERDMA_XPORT_OP_SEND] = 8, [ERDMA_XPORT_OP_SEND_IMM] = 12,
        [ERDMA_XPORT_OP_SEND_INV] = 12, [ERDMA_XPORT_OP_WRITE] = 20,
        [ERDMA_XPORT_OP_WRITE_IMM] = 24, [ERDMA_XPORT_OP_READ_REQ] = 24,
        [ERDMA_XPORT_OP_READ_RESP] = 12, [ERDMA_XPORT_OP_ATOMIC_CAS] = 36,
        [ERDMA_XPORT_OP_ATOMIC_FAA] = 28, [ERDMA_XPORT_OP_ATOMIC_RESP] = 20,
    };
    uint8_t buf[600] = { 0 };
    unsigned op;

    for (op = ERDMA_XPORT_OP_SEND; op < ERDMA_XPORT_OP_COUNT; op++) {
        ErdmaWire w, r;
        ErdmaWireData *d = fill_data(&w, op);
        const ErdmaXportMsgHdr *h = &r.u.data.hdr;
        size_t len = encode(&w, buf);

        g_assert_cmpuint(erdma_wire_msg_hdr_len(op), ==, lens[op]);
        g_assert_cmpuint(len, ==, 20 + 8 + lens[op] + 100);
        assert_exact(buf, len);
        g_assert_cmpint(erdma_wire_parse(&r, buf, len), ==, ERDMA_WIRE_OK);
        assert_common(&w, &r);
        g_assert_cmpuint(r.u.data.msn, ==, d->msn);
        g_assert_cmpuint(r.u.data.len, ==, 100);
        g_assert_true(r.u.data.payload == buf + len - 100);
        g_assert_true(r.u.data.is_first && !r.u.data.is_last);
        g_assert_cmpint(h->op, ==, op);
        g_assert_true(h->is_solicited);
        g_assert_cmpuint(h->len, ==, 1000);
        /* A field arrives, or it is 0. */
        g_assert_true(h->rkey == d->hdr.rkey || !h->rkey);
        g_assert_true(!h->rkey == !h->raddr);
        g_assert_cmpuint(h->imm, ==, op == ERDMA_XPORT_OP_SEND_IMM ||
                         op == ERDMA_XPORT_OP_SEND_INV ||
                         op == ERDMA_XPORT_OP_WRITE_IMM ? 0x11223344 : 0);
        g_assert_cmphex(h->compare, ==, op == ERDMA_XPORT_OP_ATOMIC_CAS ?
                        0x1112131415161718 : 0);
        g_assert_cmphex(h->original, ==, op == ERDMA_XPORT_OP_ATOMIC_RESP ?
                        0x2122232425262728 : 0);
        g_assert_cmphex(h->read_len, ==, op == ERDMA_XPORT_OP_READ_REQ ?
                        0x99aabbcc : 0);
    }
}

/* Bytes at their places: this is the format, whatever the code thinks. */
static void test_layout(void)
{
    static const uint8_t expected[] = {
        0x65, 0x52, 0x11, 0x4e, 1, 2, 3, 4, 0xa1, 0xa2, 0xa3, 0xa4,
        0xff, 0xff, 0xff, 0xfe, 0, 5, 0, 4,
        0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0,
        1, 0, 0, 0, 0, 0, 0, 4, 0x55, 0x66, 0x77, 0x88,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
        0x11, 0x22, 0x33, 0x44,
    };
    ErdmaWire w;
    ErdmaWireData *d = fill_data(&w, ERDMA_XPORT_OP_WRITE_IMM);
    uint8_t buf[100] = { 0 };

    d->hdr.len = d->len = 4;
    d->is_last = d->is_ack_now = true;
    g_assert_cmpuint(encode(&w, buf), ==, sizeof(expected) + 4);
    g_assert_cmpmem(buf, sizeof(expected), expected, sizeof(expected));
}

static void assert_refused(const ErdmaWire *w)
{
    uint8_t buf[600] = { 0 };
    ErdmaWire r;

    g_assert_cmpint(erdma_wire_parse(&r, buf, encode(w, buf)), ==,
                    ERDMA_WIRE_MALFORMED);
}

/* A segment that contradicts itself */
static void test_segments(void)
{
    ErdmaWire w;
    ErdmaWireData *d;

    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->is_last = true;                  /* 100 of 1000 */
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->hdr.len = 100;                   /* 100 of 100, but not LAST */
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->hdr.len = 99;
    d->is_last = true;
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->len = 0;                         /* nothing of something */
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->off = 1;                         /* FIRST in the middle */
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->is_first = false;                /* start without FIRST */
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->is_first = false;
    d->off = UINT32_MAX - 99;           /* ends above 32 bits */
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->is_first = false;
    d->off = 100;
    d->len = 0;
    assert_refused(&w);
    d = fill_data(&w, ERDMA_XPORT_OP_SEND);
    d->is_first = false;
    d->off = 100;
    d->hdr.op = ERDMA_XPORT_OP_COUNT;
    assert_refused(&w);
    d->hdr.op = 0;
    assert_refused(&w);
}

static void test_ack(void)
{
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX + 1] = { 0 };
    unsigned n;

    for (n = 0; n <= ERDMA_WIRE_RANGES_MAX; n++) {
        ErdmaWire w, r;
        size_t len;

        fill_ack(&w, n);
        len = encode(&w, buf);
        g_assert_cmpuint(len, ==, 20 + 36 + 8 * n);
        assert_exact(buf, len);
        g_assert_cmpint(erdma_wire_parse(&r, buf, len), ==, ERDMA_WIRE_OK);
        assert_common(&w, &r);
        g_assert_cmpmem(&r.u.ack.ranges, n * sizeof(r.u.ack.ranges[0]),
                        &w.u.ack.ranges, n * sizeof(r.u.ack.ranges[0]));
        g_assert_cmpuint(r.u.ack.off, ==, 2);
        g_assert_cmpuint(r.u.ack.trigger_pn, ==, 4);
        g_assert_cmpuint(r.u.ack.ect_packets, ==, 9);
        g_assert_true(r.u.ack.is_rnr && r.u.ack.is_nack);
    }
}

static void test_ranges(void)
{
    uint8_t buf[ERDMA_WIRE_CONTROL_MAX] = { 0 };
    ErdmaWire w;

    fill_ack(&w, 2);
    w.u.ack.largest_pn = 4;             /* not the end of the first */
    assert_refused(&w);
    fill_ack(&w, 2);
    w.u.ack.ranges[1].first = 0;        /* upside down */
    assert_refused(&w);
    fill_ack(&w, 2);
    w.u.ack.ranges[1] = w.u.ack.ranges[0];
    assert_refused(&w);
    fill_ack(&w, 3);
    w.u.ack.ranges[2].last = 0;         /* overlaps */
    assert_refused(&w);
    /* More than anybody may send */
    fill_ack(&w, ERDMA_WIRE_RANGES_MAX);
    encode(&w, buf);
    buf[17]++;
    g_assert_cmpint(erdma_wire_parse(&w, buf, sizeof(buf)), ==,
                    ERDMA_WIRE_MALFORMED);
}

static void test_control(void)
{
    static const ErdmaWireType types[] = {
        ERDMA_WIRE_PING, ERDMA_WIRE_TERM, ERDMA_WIRE_TERM_ACK,
    };
    uint8_t buf[100] = { 0 };
    unsigned i, b;
    ErdmaWire w, r;

    for (i = 0; i < ARRAY_SIZE(types); i++) {
        size_t len;

        fill(&w, types[i]);
        w.u.term.status = 9;
        w.u.term.msn = 0x31323334;
        w.u.term.delivered_msn = 0x41424344;
        w.u.term.delivered_off = 0x51525354;
        len = encode(&w, buf);
        assert_exact(buf, len);
        g_assert_cmpint(erdma_wire_parse(&r, buf, len), ==, ERDMA_WIRE_OK);
        assert_common(&w, &r);
        if (types[i] == ERDMA_WIRE_TERM) {
            g_assert_cmpuint(r.u.term.status, ==, 9);
            g_assert_cmphex(r.u.term.msn, ==, 0x31323334);
            g_assert_cmphex(r.u.term.delivered_msn, ==, 0x41424344);
            g_assert_cmphex(r.u.term.delivered_off, ==, 0x51525354);
        }
    }
    /* PING is the shortest: only its own version and type make one. */
    fill(&w, ERDMA_WIRE_PING);
    encode(&w, buf);
    for (b = 0; b < 256; b++) {
        ErdmaWireResult result;

        buf[2] = b;
        result = erdma_wire_parse(&r, buf, 20);
        g_assert_cmpint(result, ==, b >> 4 != 1 ? ERDMA_WIRE_BAD_VERSION :
                        b == 0x13 || b == 0x15 ? ERDMA_WIRE_OK :
                        ERDMA_WIRE_MALFORMED);
    }
    g_assert_true(erdma_xport_is_ours(buf, 20));
    g_assert_false(erdma_xport_is_ours(buf, 19));
    buf[0]++;
    g_assert_false(erdma_xport_is_ours(buf, 20));
}

/* INT: links write, the echo is read. */
static void test_int(void)
{
    static const size_t bytes[3][9] = {
        [ERDMA_WIRE_INT_WIDE] = { 0, 36, 68, 100, 132, 164, 196, 228, 260 },
        [ERDMA_WIRE_INT_COMPACT] = { 0, 10, 18, 26, 34, 42, 50, 58, 66 },
    };
    unsigned form, hops, i;

    for (form = ERDMA_WIRE_INT_WIDE; form <= ERDMA_WIRE_INT_COMPACT; form++) {
        for (hops = 1; hops <= ERDMA_WIRE_INT_HOPS_MAX; hops++) {
            uint8_t buf[600] = { 0 }, echo[600] = { 0 };
            ErdmaLinkStamp s = {
                .rate_bps = 25000000000, .time_ns = 0x123456789abcdef0,
                .tx_bytes = 0x0fedcba987654280, .queue = 80 * 1000,
            };
            ErdmaCcStack stack;
            ErdmaWire w, r;
            size_t len;

            fill_data(&w, ERDMA_XPORT_OP_WRITE);
            w.int_info = erdma_wire_int_info(form, hops);
            g_assert_cmpuint(erdma_wire_int_bytes(w.int_info), ==,
                             bytes[form][hops]);
            len = encode(&w, buf);
            g_assert_cmpuint(len, ==, 20 + bytes[form][hops] + 8 + 20 + 100);
            assert_exact(buf, len);
            erdma_wire_parse(&r, buf, len);
            g_assert_false(erdma_wire_int_decode(&r, &stack));
            for (i = 0; i < hops; i++) {
                s.link_id = i + 1;
                s.queue += 80;
                g_assert_true(erdma_link_stamp(buf, len, &s));
            }
            /* Back in an ack, where nobody stamps it any more */
            g_assert_cmpint(erdma_wire_parse(&r, buf, len), ==,
                            ERDMA_WIRE_OK);
            fill_ack(&w, 3);
            w.int_info = r.int_info;
            w.int_stack = r.int_stack;
            len = encode(&w, echo);
            assert_exact(echo, len);
            g_assert_false(erdma_link_stamp(echo, len, &s));
            g_assert_cmpint(erdma_wire_parse(&r, echo, len), ==,
                            ERDMA_WIRE_OK);
            g_assert_true(erdma_wire_int_decode(&r, &stack));
            g_assert_cmpuint(stack.n_hops, ==, hops);
            for (i = 0; i < hops; i++) {
                const ErdmaCcHop *h = &stack.hop[i];

                g_assert_cmpuint(h->rate, ==, s.rate_bps / 8);
                g_assert_cmpuint(h->queue, ==, 80 * (1001 + i));
                if (form == ERDMA_WIRE_INT_WIDE) {
                    g_assert_cmphex(h->time_ns, ==, s.time_ns);
                    g_assert_cmphex(h->tx_bytes, ==, s.tx_bytes);
                    g_assert_cmpuint(h->link_id, ==, i + 1);
                } else {
                    g_assert_cmphex(h->time_ns, ==, s.time_ns & 0xffffff);
                    g_assert_cmphex(h->tx_bytes, ==, s.tx_bytes & 0x7ffff80);
                }
            }
        }
    }
}

/* More hops than room: counted, nothing overwritten, not believed */
static void test_int_overflow(void)
{
    unsigned form, i;

    for (form = ERDMA_WIRE_INT_WIDE; form <= ERDMA_WIRE_INT_COMPACT; form++) {
        uint8_t buf[600] = { 0 };
        ErdmaLinkStamp s = { .rate_bps = 1000000000, .link_id = 1,
                             .tx_bytes = UINT64_MAX, .time_ns = UINT64_MAX };
        ErdmaCcStack stack;
        ErdmaWire w, r;
        size_t len;

        fill_data(&w, ERDMA_XPORT_OP_WRITE);
        w.int_info = erdma_wire_int_info(form, 2);
        len = encode(&w, buf);
        for (i = 0; i < 300; i++) {
            g_assert_true(erdma_link_stamp(buf, len, &s));
            g_assert_cmpint(erdma_wire_parse(&r, buf, len), ==,
                            ERDMA_WIRE_OK);
            g_assert_cmphex(r.u.data.msn, ==, 0xdeadbeef);
            g_assert_true(erdma_wire_int_decode(&r, &stack) == (i < 2));
        }
    }
}

static void test_int_refused(void)
{
    static const uint8_t bad[] = { 0x01, 0x10, 0x19, 0x1f, 0x20, 0x31, 0xf1 };
    uint8_t buf[600] = { 0 };
    ErdmaWire w;
    size_t len;
    unsigned i;

    fill(&w, ERDMA_WIRE_PING);
    len = encode(&w, buf);
    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        buf[16] = bad[i];
        g_assert_cmpint(erdma_wire_parse(&w, buf, len), ==,
                        ERDMA_WIRE_MALFORMED);
        g_assert_cmpint(erdma_wire_parse(&w, buf, sizeof(buf)), ==,
                        ERDMA_WIRE_MALFORMED);
    }
    /* A link does not trust what it sees either. */
    buf[2] = 0x11;
    buf[16] = 0x18;
    g_assert_false(erdma_link_stamp(buf, 20, &(ErdmaLinkStamp) { 0 }));
}

static void test_mark(void)
{
    uint8_t buf[600] = { 0 };
    ErdmaWire w;
    size_t len;

    fill_data(&w, ERDMA_XPORT_OP_WRITE);
    len = encode(&w, buf);
    g_assert_cmpuint(erdma_link_ecn(buf, len), ==, ERDMA_WIRE_ECN_ECT0);
    g_assert_true(erdma_link_mark(buf, len));
    g_assert_cmpuint(erdma_link_ecn(buf, len), ==, ERDMA_WIRE_ECN_CE);
    assert_exact(buf, len);
    w.ecn = ERDMA_WIRE_ECN_NOT_ECT;
    encode(&w, buf);
    g_assert_false(erdma_link_mark(buf, len));
}

/* Noise: nothing is read that is not there, whatever the answer. */
static void test_noise(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    uint8_t seed[3][600];
    size_t lens[3];
    ErdmaWire w;
    unsigned i, k;

    fill_data(&w, ERDMA_XPORT_OP_ATOMIC_CAS);
    w.int_info = 0x25;
    memset(seed, 0, sizeof(seed));
    lens[0] = encode(&w, seed[0]);
    fill_ack(&w, 5);
    lens[1] = encode(&w, seed[1]);
    fill(&w, ERDMA_WIRE_TERM);
    lens[2] = encode(&w, seed[2]);
    for (i = 0; i < 100000; i++) {
        size_t len = lens[i % 3];
        g_autofree uint8_t *copy = g_memdup2(seed[i % 3], len);

        for (k = g_rand_int_range(rand, 1, 4); k > 0; k--) {
            copy[g_rand_int_range(rand, 0, MIN(len, 64))] = g_rand_int(rand);
        }
        if (erdma_wire_parse(&w, copy, len) == ERDMA_WIRE_OK &&
            w.type == ERDMA_WIRE_DATA && w.u.data.len) {
            g_assert_true(w.u.data.payload + w.u.data.len == copy + len);
        }
        erdma_link_stamp(copy, len, &(ErdmaLinkStamp) { .link_id = 1 });
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/erdma/xport/wire/data", test_data);
    g_test_add_func("/erdma/xport/wire/layout", test_layout);
    g_test_add_func("/erdma/xport/wire/segments", test_segments);
    g_test_add_func("/erdma/xport/wire/ack", test_ack);
    g_test_add_func("/erdma/xport/wire/ranges", test_ranges);
    g_test_add_func("/erdma/xport/wire/control", test_control);
    g_test_add_func("/erdma/xport/wire/int", test_int);
    g_test_add_func("/erdma/xport/wire/int-overflow", test_int_overflow);
    g_test_add_func("/erdma/xport/wire/int-refused", test_int_refused);
    g_test_add_func("/erdma/xport/wire/mark", test_mark);
    g_test_add_func("/erdma/xport/wire/noise", test_noise);
    return g_test_run();
}
