/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets for the test of the Wireshark dissector.
 *
 * usage: samples PCAP EXPECTED [MUTATIONS]
 *
 * Writes a capture of every packet type, made by the transport's own encoder,
 * and beside it what a dissector has to find in each frame:
 *
 *   frame NAME VERDICT      VERDICT: ok, malformed, version or foreign, by
 *                           the transport's own parser
 *   field=value             once per field; only for "ok"
 *
 * MUTATIONS frames follow in which bytes or the length of a sample were
 * changed; of these only the verdict is of interest.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "xport/wire.h"

#define ETH_LEN         14
#define IP_LEN          20
#define UDP_LEN         8
#define FRAME_MAX       2048
#define OTHER_PORT      5000
#define COOKIE_A        0x12300005
#define COOKIE_B        0xfff00abc
#define SAMPLES_MAX     64

static FILE *pcap;
static FILE *expected;
static unsigned n_frames;

/* What was sent, as raw material for mutations */
static struct {
    uint8_t data[FRAME_MAX];
    size_t len;
} samples[SAMPLES_MAX];
static unsigned n_samples;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void put(FILE *f, const void *data, size_t len)
{
    if (fwrite(data, 1, len, f) != len) {
        die("write");
    }
}

static void pcap_start(void)
{
    uint8_t head[24] = { 0 };

    stl_le_p(head, 0xa1b2c3d4);
    stw_le_p(head + 4, 2);
    stw_le_p(head + 6, 4);
    stl_le_p(head + 16, 65535);
    stl_le_p(head + 20, 1);             /* Ethernet */
    put(pcap, head, sizeof(head));
}

/* One frame per millisecond.  @is_back: from B to A */
static void pcap_frame(const uint8_t *data, size_t len, bool is_back,
                       uint16_t port, uint8_t ecn)
{
    uint8_t rec[16] = { 0 };
    uint8_t head[ETH_LEN + IP_LEN + UDP_LEN] = { 0 };
    uint8_t *ip = head + ETH_LEN;
    uint8_t *udp = ip + IP_LEN;

    head[5] = is_back ? 1 : 2;
    head[11] = is_back ? 2 : 1;
    stw_be_p(head + 12, 0x0800);
    ip[0] = 0x45;
    ip[1] = ecn;
    stw_be_p(ip + 2, IP_LEN + UDP_LEN + len);
    ip[8] = 64;
    ip[9] = 17;
    stl_be_p(ip + 12, is_back ? 0x0a000002 : 0x0a000001);
    stl_be_p(ip + 16, is_back ? 0x0a000001 : 0x0a000002);
    stw_be_p(udp, port);
    stw_be_p(udp + 2, port);
    stw_be_p(udp + 4, UDP_LEN + len);

    stl_le_p(rec, 1700000000 + n_frames / 1000);
    stl_le_p(rec + 4, n_frames % 1000 * 1000);
    stl_le_p(rec + 8, sizeof(head) + len);
    stl_le_p(rec + 12, sizeof(head) + len);
    put(pcap, rec, sizeof(rec));
    put(pcap, head, sizeof(head));
    put(pcap, data, len);
    n_frames++;
}

static const char *verdict(const uint8_t *data, size_t len)
{
    ErdmaWire w;

    if (!erdma_xport_is_ours(data, len)) {
        return "foreign";
    }
    switch (erdma_wire_parse(&w, data, len)) {
    case ERDMA_WIRE_OK:
        return "ok";
    case ERDMA_WIRE_BAD_VERSION:
        return "version";
    default:
        return "malformed";
    }
}

static void expect(const char *field, uint64_t value)
{
    fprintf(expected, "erdma.%s=%" PRIu64 "\n", field, value);
}

static void expect_msg(const ErdmaXportMsgHdr *h)
{
    expect("msg.flags", h->is_solicited);
    expect("msg.flags.solicited", h->is_solicited);
    expect("msg.len", h->len);
    switch (h->op) {
    case ERDMA_XPORT_OP_WRITE:
    case ERDMA_XPORT_OP_WRITE_IMM:
    case ERDMA_XPORT_OP_READ_REQ:
    case ERDMA_XPORT_OP_ATOMIC_CAS:
    case ERDMA_XPORT_OP_ATOMIC_FAA:
        expect("msg.rkey", h->rkey);
        expect("msg.raddr", h->raddr);
        break;
    case ERDMA_XPORT_OP_READ_RESP:
    case ERDMA_XPORT_OP_ATOMIC_RESP:
        expect("msg.req_msn", h->req_msn);
        break;
    default:
        break;
    }
    switch (h->op) {
    case ERDMA_XPORT_OP_SEND_IMM:
    case ERDMA_XPORT_OP_WRITE_IMM:
        expect("msg.imm", h->imm);
        break;
    case ERDMA_XPORT_OP_SEND_INV:
        expect("msg.inv_key", h->imm);
        break;
    case ERDMA_XPORT_OP_READ_REQ:
        expect("msg.read_len", h->read_len);
        break;
    case ERDMA_XPORT_OP_ATOMIC_CAS:
        expect("msg.swap", h->swap_add);
        expect("msg.compare", h->compare);
        break;
    case ERDMA_XPORT_OP_ATOMIC_FAA:
        expect("msg.add", h->swap_add);
        break;
    case ERDMA_XPORT_OP_ATOMIC_RESP:
        expect("msg.original", h->original);
        break;
    default:
        break;
    }
}

static void expect_data(const ErdmaWireData *d)
{
    expect("op", d->hdr.op);
    expect("len", d->len);
    expect("msn", d->msn);
    expect("offset", d->off);
    if (d->is_first) {
        expect_msg(&d->hdr);
    }
    if (d->len) {
        expect("payload", d->len);      /* compared by length */
    }
}

static void expect_ack(const ErdmaWireAck *a)
{
    unsigned i;

    expect("ack.n_ranges", a->n_ranges);
    expect("len", 0);
    expect("ack.msn", a->msn);
    expect("ack.offset", a->off);
    expect("ack.largest", a->largest_pn);
    expect("ack.trigger", a->trigger_pn);
    expect("ack.delay", a->delay_ns);
    expect("ack.credit", a->credit);
    expect("ack.ce_packets", a->ce_packets);
    expect("ack.ce_bytes", a->ce_bytes);
    expect("ack.ect_packets", a->ect_packets);
    for (i = 0; i < a->n_ranges; i++) {
        expect("ack.range.first", a->ranges[i].first);
        expect("ack.range.last", a->ranges[i].last);
    }
    if (a->ce_packets) {
        expect("congestion", 1);
    }
    if (a->is_rnr) {
        expect("receiver_not_ready", 1);
    }
}

static void expect_term(const ErdmaWireTerm *t)
{
    expect("term.status", t->status);
    expect("len", 0);
    expect("term.msn", t->msn);
    expect("term.delivered_msn", t->delivered_msn);
    expect("term.delivered_offset", t->delivered_off);
    expect("terminated", 1);
}

static void expect_flags(const ErdmaWire *w)
{
    bool is_data = w->type == ERDMA_WIRE_DATA;
    bool is_ack = w->type == ERDMA_WIRE_ACK;

    expect("flags.ecn", w->ecn);
    expect("flags.first", is_data && w->u.data.is_first);
    expect("flags.last", is_data && w->u.data.is_last);
    expect("flags.ack_now", is_data && w->u.data.is_ack_now);
    expect("flags.rnr", is_ack && w->u.ack.is_rnr);
    expect("flags.nack", is_ack && w->u.ack.is_nack);
    if (w->ecn == ERDMA_WIRE_ECN_CE) {
        expect("congestion", 1);
    }
}

static void expect_wire(const ErdmaWire *w)
{
    expect("magic", 0x6552);
    expect("version", 1);
    expect("type", w->type);
    expect_flags(w);
    expect("dst_cookie", w->dst_cookie);
    expect("dst_qpn", w->dst_cookie & 0xfffff);
    expect("src_cookie", w->src_cookie);
    expect("src_qpn", w->src_cookie & 0xfffff);
    expect("number", w->number);
    expect("int.form", w->int_info >> 4);
    expect("int.room", w->int_info & 0xf);
    switch (w->type) {
    case ERDMA_WIRE_DATA:
        expect_data(&w->u.data);
        break;
    case ERDMA_WIRE_ACK:
        expect_ack(&w->u.ack);
        break;
    case ERDMA_WIRE_TERM:
        expect_term(&w->u.term);
        break;
    default:
        expect("aux", 0);
        expect("len", 0);
        break;
    }
}

static void keep(const uint8_t *data, size_t len)
{
    assert(n_samples < SAMPLES_MAX);
    memcpy(samples[n_samples].data, data, len);
    samples[n_samples].len = len;
    n_samples++;
}

static size_t encode(const ErdmaWire *w, uint8_t *buf)
{
    size_t len = erdma_wire_encode(w, buf);
    uint32_t i;

    if (w->type == ERDMA_WIRE_DATA) {
        for (i = 0; i < w->u.data.len; i++) {
            buf[len + i] = w->u.data.off + i;
        }
        len += w->u.data.len;
    }
    return len;
}

/* More expect() calls may follow. */
static void sample_on(const char *name, const ErdmaWire *w, uint16_t port)
{
    uint8_t buf[FRAME_MAX];
    size_t len = encode(w, buf);

    fprintf(expected, "frame %s %s\n", name, verdict(buf, len));
    expect_wire(w);
    pcap_frame(buf, len, w->src_cookie == COOKIE_B, port, w->ecn);
    keep(buf, len);
}

static void sample(const char *name, const ErdmaWire *w)
{
    sample_on(name, w, ERDMA_XPORT_UDP_PORT);
}

static ErdmaWire packet(ErdmaWireType type, bool is_back, uint32_t number)
{
    ErdmaWire w = {
        .type = type,
        .dst_cookie = is_back ? COOKIE_A : COOKIE_B,
        .src_cookie = is_back ? COOKIE_B : COOKIE_A,
        .number = number,
    };

    return w;
}

/* A message in one segment, from A to B */
static ErdmaWire message(ErdmaXportOp op, uint32_t pn, uint32_t msn,
                         uint32_t len)
{
    ErdmaWire w = packet(ERDMA_WIRE_DATA, false, pn);

    w.ecn = ERDMA_WIRE_ECN_ECT0;
    w.u.data.msn = msn;
    w.u.data.is_first = true;
    w.u.data.is_last = true;
    w.u.data.hdr.op = op;
    w.u.data.hdr.len = len;
    w.u.data.len = len;
    return w;
}

static void turn(ErdmaWire *w)
{
    uint32_t cookie = w->dst_cookie;

    w->dst_cookie = w->src_cookie;
    w->src_cookie = cookie;
}

static void sends(void)
{
    ErdmaWire w = message(ERDMA_XPORT_OP_SEND, 1000, 1, 32);

    sample("send", &w);
    w = message(ERDMA_XPORT_OP_SEND, 1001, 2, 0);
    w.u.data.hdr.is_solicited = true;
    sample("send-empty-solicited", &w);
    w = message(ERDMA_XPORT_OP_SEND_IMM, 1002, 3, 1);
    w.u.data.hdr.imm = 0x11223344;
    w.u.data.is_ack_now = true;
    sample("send-imm", &w);
    w = message(ERDMA_XPORT_OP_SEND_INV, 1003, 4, 5);
    w.u.data.hdr.imm = 0xabcdef01;
    sample("send-inv", &w);
}

/* Three segments, the second of them marked, sent again and in between */
static void writes(void)
{
    ErdmaWire w = message(ERDMA_XPORT_OP_WRITE, UINT32_MAX, 5, 1000);
    unsigned first;

    w.u.data.hdr.len = 2500;
    w.u.data.hdr.rkey = 0x00012345;
    w.u.data.hdr.raddr = 0x8899aabbccddeeff;
    w.u.data.is_last = false;
    sample("write-first", &w);

    w.number = 0;
    w.ecn = ERDMA_WIRE_ECN_CE;
    w.u.data.is_first = false;
    w.u.data.off = 1000;
    sample("write-middle", &w);
    first = n_frames;

    w.number = 1;
    w.ecn = ERDMA_WIRE_ECN_NOT_ECT;
    w.u.data.off = 2000;
    w.u.data.len = 500;
    w.u.data.is_last = true;
    sample("write-last", &w);

    w.number = 2;
    w.u.data.off = 1000;
    w.u.data.len = 1000;
    w.u.data.is_last = false;
    sample("write-again", &w);
    expect("repeat_of", first);
    expect("retransmission", 1);

    w = message(ERDMA_XPORT_OP_WRITE_IMM, 3, 6, 8);
    w.ecn = ERDMA_WIRE_ECN_ECT1;
    w.u.data.hdr.rkey = UINT32_MAX;
    w.u.data.hdr.raddr = UINT64_MAX;
    w.u.data.hdr.imm = 0x80000001;
    sample("write-imm", &w);
}

/* Requests of A, the answers of B one millisecond per frame later */
static void requests(void)
{
    static const ErdmaXportOp ops[] = {
        ERDMA_XPORT_OP_READ_REQ,
        ERDMA_XPORT_OP_ATOMIC_CAS,
        ERDMA_XPORT_OP_ATOMIC_FAA,
    };
    static const char * const names[] = { "read-req", "cas", "faa" };
    static const char * const answers[] = {
        "read-resp", "cas-resp", "faa-resp"
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        ErdmaWire w = message(ops[i], 10 + i, 7 + i, 0);

        w.u.data.hdr.rkey = 0x200 + i;
        w.u.data.hdr.raddr = 0x7f0000001000 + 8 * i;
        w.u.data.hdr.read_len = 64;
        w.u.data.hdr.swap_add = 0x0102030405060708 + i;
        w.u.data.hdr.compare = 0x8070605040302010;
        sample(names[i], &w);
        expect("response_in", n_frames + ARRAY_SIZE(ops));
    }
    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        ErdmaWire w = message(i ? ERDMA_XPORT_OP_ATOMIC_RESP :
                              ERDMA_XPORT_OP_READ_RESP, 500 + i, 1 + i,
                              i ? 0 : 64);

        turn(&w);
        w.u.data.hdr.req_msn = 7 + i;
        w.u.data.hdr.original = 0xfedcba9876543210;
        sample(answers[i], &w);
        expect("request_in", n_frames - ARRAY_SIZE(ops));
        expect("response_time", 3);     /* ms */
    }
}

static void acks(void)
{
    ErdmaWire w = packet(ERDMA_WIRE_ACK, true, 1);
    ErdmaWireAck *a = &w.u.ack;
    unsigned i;

    a->msn = 4;
    a->off = 123;
    a->largest_pn = 1003;
    a->trigger_pn = 1003;
    a->credit = 1 << 20;
    sample("ack", &w);

    w.number = 2;
    a->largest_pn = 2;                  /* ranges across the wrap */
    a->trigger_pn = 1;
    a->delay_ns = 4000000000;
    a->ce_packets = 1;
    a->ce_bytes = 1000;
    a->ect_packets = 9;
    a->n_ranges = 2;
    a->ranges[0].first = 1;
    a->ranges[0].last = 2;
    a->ranges[1].first = 0xfffffff0;
    a->ranges[1].last = UINT32_MAX;
    sample("ack-ranges-wrap", &w);

    w.number = 3;
    a->is_rnr = true;
    a->is_nack = true;
    a->largest_pn = 1000;
    a->n_ranges = ERDMA_WIRE_RANGES_MAX;
    for (i = 0; i < a->n_ranges; i++) {
        a->ranges[i].last = 1000 - 10 * i;
        a->ranges[i].first = 1000 - 10 * i - 5;
    }
    sample("ack-ranges-max", &w);
}

static void control(void)
{
    ErdmaWire w = packet(ERDMA_WIRE_PING, false, 77);

    sample("ping", &w);
    w = packet(ERDMA_WIRE_TERM, true, 78);
    w.u.term.status = 5;
    w.u.term.msn = 9;
    w.u.term.delivered_msn = 8;
    w.u.term.delivered_off = 7;
    sample("term", &w);
    w = packet(ERDMA_WIRE_TERM_ACK, false, 78);
    sample("term-ack", &w);
}

static void expect_int_wide(unsigned n_hops)
{
    unsigned i;

    expect("int.n_hops", n_hops);
    expect("int.path_id", 0xbeef);
    for (i = 0; i < n_hops && n_hops <= 2; i++) {
        expect("int.rate", 100000000000 + i);
        expect("int.time", 0x1122334455667788 + i);
        expect("int.tx_bytes", 0x99aabbccddee + i);
        expect("int.q_len", 65536 + i);
        expect("int.link_id", 0x1234 + i);
    }
}

static void int_wide(void)
{
    uint8_t stack[ERDMA_WIRE_INT_WIDE_HEAD + 2 * ERDMA_WIRE_INT_WIDE_HOP] = {
        2, 0, 0xbe, 0xef
    };
    ErdmaWire w;
    unsigned i;

    for (i = 0; i < 2; i++) {
        uint8_t *hop = stack + ERDMA_WIRE_INT_WIDE_HEAD +
                       i * ERDMA_WIRE_INT_WIDE_HOP;

        stq_be_p(hop, 100000000000 + i);
        stq_be_p(hop + 8, 0x1122334455667788 + i);
        stq_be_p(hop + 16, 0x99aabbccddee + i);
        stl_be_p(hop + 24, 65536 + i);
        stw_be_p(hop + 28, 0x1234 + i);
    }
    w = message(ERDMA_XPORT_OP_SEND, 20, 20, 4);
    w.int_info = erdma_wire_int_info(ERDMA_WIRE_INT_WIDE, 2);
    w.int_stack = stack;
    sample("int-wide", &w);
    expect_int_wide(2);

    w = packet(ERDMA_WIRE_ACK, true, 4);
    w.u.ack.largest_pn = 20;
    w.int_info = erdma_wire_int_info(ERDMA_WIRE_INT_WIDE, 2);
    w.int_stack = stack;
    sample("int-wide-echo", &w);
    expect_int_wide(2);

    stack[0] = 3;
    w.number = 5;
    sample("int-wide-overflow", &w);
    expect_int_wide(3);
    expect("int_overflow", 1);
}

static void int_compact(void)
{
    /* 1 of 3 hops on path 0xabc; code 5, time 0x123456, 0x789ab, 0xcdef */
    uint8_t stack[ERDMA_WIRE_INT_COMPACT_HEAD +
                  3 * ERDMA_WIRE_INT_COMPACT_HOP] = {
        0x1a, 0xbc, 0x51, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef
    };
    ErdmaWire w = packet(ERDMA_WIRE_PING, false, 21);

    w.int_info = erdma_wire_int_info(ERDMA_WIRE_INT_COMPACT, 3);
    w.int_stack = stack;
    sample("int-compact", &w);
    expect("int.n_hops", 1);
    expect("int.path_id", 0xabc);
    expect("int.rate_code", 5);
    expect("int.time", 0x123456);
    expect("int.tx_bytes", 0x789abull * 128);
    expect("int.q_len", 0xcdef * 80);

    w.int_stack = NULL;
    w.number = 22;
    sample("int-compact-empty", &w);
    expect("int.n_hops", 0);
    expect("int.path_id", 0);
}

static void bare(const char *name, const uint8_t *data, size_t len)
{
    fprintf(expected, "frame %s %s\n", name, verdict(data, len));
    pcap_frame(data, len, false, ERDMA_XPORT_UDP_PORT, 0);
}

static void edges(void)
{
    ErdmaWire w = message(ERDMA_XPORT_OP_SEND, 30, 30, 16);
    uint8_t buf[FRAME_MAX];
    size_t len = encode(&w, buf);

    sample_on("other-port", &w, OTHER_PORT);
    bare("trailing-byte", buf, len + 1);
    bare("truncated", buf, len - 1);
    bare("header-cut", buf, ERDMA_WIRE_COMMON_LEN - 1);
    bare("no-body", buf, ERDMA_WIRE_COMMON_LEN);
    buf[2] = 0x21;
    bare("version-2", buf, len);
    buf[2] = 0x1f;
    bare("type-15", buf, len);
    buf[0]++;
    bare("foreign", buf, len);
}

/* Packets that contradict themselves, by one step */
static void contradictions(void)
{
    ErdmaWire w = message(ERDMA_XPORT_OP_WRITE, 40, 40, 4);
    uint8_t buf[FRAME_MAX];

    w.u.data.is_first = false;
    w.u.data.off = UINT32_MAX - 4;
    bare("offset-max", buf, encode(&w, buf));
    w.u.data.off++;
    bare("offset-wraps", buf, encode(&w, buf));
    w.u.data.off = 0;
    bare("offset-0-not-first", buf, encode(&w, buf));
    w.u.data.off = 4;
    w.u.data.len = 0;
    bare("empty-segment", buf, encode(&w, buf));

    w = message(ERDMA_XPORT_OP_WRITE, 40, 40, 4);
    w.u.data.hdr.len = 3;
    bare("longer-than-message", buf, encode(&w, buf));
    w.u.data.hdr.len = 5;
    bare("last-too-soon", buf, encode(&w, buf));
    w.u.data.hdr.len = 4;
    w.u.data.is_last = false;
    bare("last-missing", buf, encode(&w, buf));

    w = packet(ERDMA_WIRE_ACK, true, 1);
    w.u.ack.largest_pn = 9;
    w.u.ack.n_ranges = 2;
    w.u.ack.ranges[0] = (ErdmaWireRange) { 8, 9 };
    w.u.ack.ranges[1] = (ErdmaWireRange) { 5, 7 };
    bare("ranges-touch", buf, encode(&w, buf));
    w.u.ack.ranges[1].last = 8;
    bare("ranges-overlap", buf, encode(&w, buf));
    w.u.ack.ranges[1] = (ErdmaWireRange) { 7, 6 };
    bare("range-backwards", buf, encode(&w, buf));
    w.u.ack.n_ranges = 1;
    w.u.ack.ranges[0].last = 8;
    bare("range-below-largest", buf, encode(&w, buf));
}

static void mutations(unsigned n)
{
    GRand *rand = g_rand_new_with_seed(1);
    unsigned i;

    for (i = 0; i < n; i++) {
        unsigned which = g_rand_int_range(rand, 0, n_samples);
        unsigned n_flips = g_rand_int_range(rand, 0, 3);
        uint8_t buf[FRAME_MAX];
        size_t len = samples[which].len;
        size_t head = MIN(len, (size_t)64);     /* where the headers are */

        memcpy(buf, samples[which].data, len);
        while (n_flips--) {
            buf[g_rand_int_range(rand, 2, head)] ^=
                1 << g_rand_int_range(rand, 0, 8);
        }
        if (g_rand_int_range(rand, 0, 4) == 0) {
            len = g_rand_int_range(rand, ERDMA_WIRE_COMMON_LEN, len + 1);
        }
        bare("mutation", buf, len);
    }
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: samples PCAP EXPECTED [MUTATIONS]\n");
        return 2;
    }
    pcap = fopen(argv[1], "wb");
    expected = fopen(argv[2], "w");
    if (!pcap || !expected) {
        die("open");
    }
    pcap_start();
    sends();
    writes();
    requests();
    acks();
    control();
    int_wide();
    int_compact();
    edges();
    contradictions();
    mutations(argc > 3 ? atoi(argv[3]) : 0);
    if (fclose(pcap) || fclose(expected)) {
        die("close");
    }
    return 0;
}
