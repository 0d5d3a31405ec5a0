/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two ends of the transport and the network between them, which the input
 * plays: it decides what the ends' owners do and what becomes of each packet.
 *
 * An honest network (first byte even) loses, copies and delays; then every
 * message must arrive whole, once and in order, which the rig asserts.  A
 * hostile one also changes bytes and makes packets up, with the cookies of
 * the connection; then nothing must break, and what the ends hold stays
 * bounded.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "xport/link.h"
#include "xport/wire.h"
#include "../unit/xport-rig.h"
#include "fuzz.h"

/* Enough for an input of a few KB; a connection's end needs more time. */
#define STEPS_MAX       400
#define MESSAGES_MAX    64
/* Then the network is cut: in its own time a peer may send for ever. */
#define PACKETS_MAX     20000

typedef struct Game {
    FuzzInput in;
    XportRig *rig;
    bool is_hostile;
    bool is_not_ready;
    unsigned n_packets;
    uint64_t link_bytes;
} Game;

/* Honest links say what they see, others anything. */
static void pass_link(Game *g, RigPacket *p)
{
    uint8_t what = fuzz_u8(&g->in);
    ErdmaLinkStamp stamp = {
        .rate_bps = 1000000000ull << (what & 7),
        .time_ns = g->rig->now_ns,
        .tx_bytes = g->link_bytes += p->len,
        .queue = fuzz_u16(&g->in),
        .link_id = 1 + (what >> 3 & 3),
    };

    if (g->is_hostile && what & 0x80) {
        stamp.time_ns = fuzz_u64(&g->in);
        stamp.tx_bytes = fuzz_u64(&g->in);
        stamp.queue = fuzz_u32(&g->in);
        stamp.rate_bps = fuzz_u64(&g->in);
    }
    erdma_link_stamp(p->data, p->len, &stamp);
    if (what & 0x40) {
        erdma_link_stamp(p->data, p->len, &stamp);
    }
}

static RigFate fate(XportRig *rig, RigPacket *p)
{
    Game *g = rig->opaque;
    RigFate f = { 0 };
    unsigned stage;

    if (g->n_packets++ > PACKETS_MAX) {
        f.is_lost = true;
        return f;
    }
    /* As the simulator does, who knows what comes next */
    for (stage = 0; stage < 5; stage++) {
        erdma_xport_fetch(rig->end[!p->from].x, p->data, stage);
    }
    erdma_xport_fetch_due(rig->end[!p->from].x, rig->now_ns);
    switch (fuzz_more(&g->in) ? fuzz_below(&g->in, 16) : 15) {
    case 0:
    case 1:
        f.is_lost = true;
        break;
    case 2:
        f.n_copies = 1 + fuzz_below(&g->in, 3);
        break;
    case 3:
        f.extra_ns = fuzz_u16(&g->in) * RIG_US;
        break;
    case 4:
        if (p->ecn) {
            p->ecn = ERDMA_WIRE_ECN_CE;
            p->data[3] |= ERDMA_WIRE_ECN_CE;
        }
        break;
    case 5:
        if (g->is_hostile) {
            p->data[fuzz_u16(&g->in) % p->len] ^= 1 + fuzz_below(&g->in, 255);
        }
        break;
    case 6:
        if (g->is_hostile) {
            p->len = fuzz_u16(&g->in) % (p->len + 1);
        }
        break;
    case 7:
    case 8:
        pass_link(g, p);
        break;
    }
    return f;
}

static ErdmaXportRx on_rx(XportRig *rig, int end, uint32_t msn, uint32_t off)
{
    Game *g = rig->opaque;

    return g->is_not_ready && !off ? ERDMA_XPORT_RX_NOT_READY :
                                     ERDMA_XPORT_RX_OK;
}

/* A packet that only says that it comes from the other end */
static void forge(Game *g, int end)
{
    uint8_t buf[512];
    size_t len = ERDMA_WIRE_COMMON_LEN + fuzz_below(&g->in, 200);

    fuzz_bytes(&g->in, buf, len);
    stw_be_p(buf, ERDMA_WIRE_MAGIC);
    buf[2] = ERDMA_WIRE_VERSION << 4 | (buf[2] & 0xf);
    stl_be_p(buf + 4, 0x1000 + end);
    stl_be_p(buf + 8, 0x1000 + !end);
    /* Numbers that are far away are refused at once. */
    stl_be_p(buf + 12, g->rig->pn0[!end] + buf[15] - 16);
    if (buf[19] & 1) {
        /* A length that fits is worth more than one that does not. */
        stw_be_p(buf + 18, buf[18] % len);
    }
    rig_inject(g->rig, end, buf, len);
}

static void owner_acts(Game *g, int end)
{
    RigEnd *e = &g->rig->end[end];
    uint32_t len;

    if (!e->conn) {
        return;
    }
    switch (fuzz_below(&g->in, 16)) {
    case 0:
        erdma_xport_conn_terminate(e->conn, fuzz_u8(&g->in), e->rx_msn);
        break;
    case 1:
        rig_close(g->rig, end);
        break;
    case 2:
        g->is_not_ready = !g->is_not_ready;
        erdma_xport_conn_rx_resume(e->conn);
        break;
    case 3:
        erdma_xport_set_mtu(e->x, fuzz_u16(&g->in));
        break;
    case 4:
        /* Whatever the network has brought about can move. */
        rig_move(g->rig, end);
        break;
    default:
        if (e->sent->len < MESSAGES_MAX && !e->n_errors) {
            len = fuzz_u16(&g->in);
            rig_send(g->rig, end, ERDMA_XPORT_OP_SEND +
                     fuzz_below(&g->in, ERDMA_XPORT_OP_COUNT - 1),
                     len & 0x8000 ? (len & 0x7fff) * 4 : len & 0x7ff);
        }
        break;
    }
    rig_poll(g->rig, end);
}

static void configure(FuzzInput *in, ErdmaXportConfig *cfg)
{
    uint8_t bits = fuzz_u8(in);

    rig_config(cfg);
    cfg->mtu = 256 + fuzz_u8(in) * 16;
    cfg->rx_buffer = 4096 << fuzz_below(in, 8);
    cfg->ack_every = 1 + fuzz_below(in, 4);
    cfg->ack_delay_ns = bits & 1 ? 100 * RIG_US : 0;
    cfg->is_paced = bits & 2;
    cfg->use_ecn = bits & 4;
    cfg->is_go_back_n = bits & 8;
    cfg->is_int_compact = bits & 16;
    cfg->int_hops = 1 + (bits >> 5);
    cfg->retry_max = 1 + fuzz_below(in, 7);
}

static void check_bounds(const Game *g, const ErdmaXportConfig *cfg)
{
    ErdmaXportConnInfo info;
    int end;

    for (end = 0; end < 2; end++) {
        if (!g->rig->end[end].conn) {
            continue;
        }
        rig_info(g->rig, end, &info);
        g_assert_cmpuint(info.rx_held_bytes, <=,
                         cfg->rx_buffer + ERDMA_XPORT_MTU_MAX);
        g_assert_cmpuint(info.una_msn, <=, info.tx_msn);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const uint8_t algorithms[] = {
        ERDMA_XPORT_CC_NEWRENO, ERDMA_XPORT_CC_CUBIC, ERDMA_XPORT_CC_HPCC_RTT,
        ERDMA_XPORT_CC_HPCC_ECN, ERDMA_XPORT_CC_HPCC_INT, ERDMA_XPORT_CC_NONE,
    };
    Game g = { .in = { data, len } };
    ErdmaXportConfig cfg;
    unsigned i, algorithm;

    g.is_hostile = fuzz_u8(&g.in) & 1;
    configure(&g.in, &cfg);
    g.rig = rig_new(&cfg);
    g.rig->opaque = &g;
    algorithm = fuzz_u8(&g.in);
    g.rig->cc = algorithms[algorithm % ARRAY_SIZE(algorithms)];
    g.rig->is_blocking = algorithm & 0x80;
    g.rig->pn0[0] = fuzz_u32(&g.in);
    g.rig->pn0[1] = fuzz_u32(&g.in);
    g.rig->is_forgetful = g.is_hostile;
    g.rig->fate = fate;
    g.rig->on_rx = on_rx;
    rig_open(g.rig, 0);
    rig_open(g.rig, 1);
    for (i = 0; i < STEPS_MAX && fuzz_more(&g.in); i++) {
        unsigned what = fuzz_u8(&g.in);

        switch (what >> 1 & 7) {
        case 0:
        case 1:
        case 2:
            owner_acts(&g, what & 1);
            break;
        case 3:
            if (g.is_hostile) {
                forge(&g, what & 1);
            }
            break;
        default:
            rig_run(g.rig, g.rig->now_ns + (what >> 4) * 64 * RIG_US);
            break;
        }
        check_bounds(&g, &cfg);
    }
    g.is_not_ready = false;
    rig_run(g.rig, g.rig->now_ns + 300 * RIG_MS);
    check_bounds(&g, &cfg);
    rig_free(g.rig);
    return 0;
}
