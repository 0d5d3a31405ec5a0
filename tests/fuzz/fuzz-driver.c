/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A whole conversation of a driver with its device, which the input may
 * change anywhere: writes of registers and doorbells, and what the device
 * reads of the guest's memory.  Seeds are those of unmodified drivers, see
 * seeds.py.  What is sent comes back to the same device.
 *
 * Memory is not there: each read takes the next of the pieces that were named
 * before the last writes, from the first one again behind the last one.
 *
 * Whatever is said, each run of the engine comes to an end, the device can be
 * looked at and be moved, and is then the same.
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/bswap.h"
#include "engine/fault.h"
#include "engine/inspect.h"
#include "engine/snapshot.h"
#include "engine/state.h"
#include "xport/link.h"
#include "fuzz.h"

#define STEPS_MAX       2000
#define PIECES_MAX      64
#define WIRE_MAX        64
/* Then the network is cut, so that an input does not take seconds */
#define PACKETS_MAX     4000
#define RUNS_MAX        2000
#define RULES_MAX       4

/* BAR 0: behind the static doorbells */
#define EXT_DB_START    0x7a000
#define DB_PAGE_SHIFT   12

typedef struct Piece {
    const uint8_t *data;
    size_t len;
} Piece;

typedef struct Packet {
    ErdmaDatagram dg;
    uint8_t data[];
} Packet;

typedef struct Game {
    FuzzInput in;
    ErdmaEngine *e;
    uint64_t now;
    uint32_t latched[0x80 / 4];
    Piece pieces[PIECES_MAX];
    unsigned n_pieces, next_piece;
    bool is_answering;          /* writes have begun */
    bool is_dma_broken;
    bool is_deaf;               /* takes no events */
    GQueue wire;
    unsigned n_packets;
    unsigned loss;              /* every so many, 0: none */
    bool is_marking;
    unsigned n_rules;
    ErdmaFaultRule rules[RULES_MAX];
} Game;

static bool dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    Game *g = opaque;
    Piece p = { 0 };

    g_assert_cmpuint(len, >, 0);
    if (g->is_dma_broken) {
        return false;
    }
    if (g->n_pieces) {
        p = g->pieces[g->next_piece++ % g->n_pieces];
    }
    memset(buf, 0, len);
    if (p.len) {
        memcpy(buf, p.data, MIN(p.len, len));
    }
    return true;
}

static bool dma_write(void *opaque, uint64_t addr, const void *buf,
                      size_t len)
{
    Game *g = opaque;

    g_assert_cmpuint(len, >, 0);
    return !g->is_dma_broken;
}

static void notify(void *opaque, unsigned vector)
{
    g_assert_cmpuint(vector, <, ERDMA_MAX_VECTORS);
}

static void kick(void *opaque)
{
}

static bool transmit(void *opaque, const ErdmaDatagram *dg)
{
    Game *g = opaque;
    Packet *p;

    g->n_packets++;
    if (g->n_packets > PACKETS_MAX || g->wire.length >= WIRE_MAX ||
        (g->loss && !(g->n_packets % g->loss))) {
        return true;
    }
    p = g_malloc(sizeof(*p) + dg->len);
    p->dg = *dg;
    memcpy(p->data, dg->data, dg->len);
    p->dg.data = p->data;
    if (g->is_marking) {
        ErdmaLinkStamp stamp = {
            .rate_bps = 10000000000ull, .time_ns = g->now,
            .tx_bytes = g->n_packets * 1000, .queue = g->wire.length * 1000,
            .link_id = 1,
        };

        erdma_link_stamp(p->data, dg->len, &stamp);
        if (g->n_packets % 3 == 0) {
            erdma_link_mark(p->data, dg->len);
        }
    }
    g_queue_push_tail(&g->wire, p);
    return g->wire.length < WIRE_MAX;
}

static void G_GNUC_PRINTF(2, 3)
guest_error(void *opaque, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_assert_null(strchr(text, '\n'));
}

static void trace(void *opaque, ErdmaEvent event, uint32_t id, uint64_t a,
                  uint64_t b)
{
    g_assert_cmpuint(event, <, ERDMA_EV_COUNT);
}

static void xport_trace(void *opaque, uint32_t qpn, ErdmaXportEvent event,
                        uint64_t a, uint64_t b)
{
    g_assert_cmpuint(event, <, ERDMA_XPORT_EV_COUNT);
}

static const ErdmaPort port = {
    .dma_read = dma_read,
    .dma_write = dma_write,
    .notify = notify,
    .kick = kick,
    .transmit = transmit,
    .guest_error = guest_error,
    .trace = trace,
    .xport_trace = xport_trace,
};

/* As the device is by default; the seeds' cookies need the seed. */
static ErdmaEngine *new_engine(Game *g)
{
    uint8_t bits = fuzz_u8(&g->in);
    ErdmaEngineConfig cfg = {
        .qblocks = 1,
        .max_mr_size_log2 = 36,
        .max_recv_wr_log2 = 15,
        .max_cqe_log2 = 20,
        .has_atomics = true,
        .has_mtt_va = true,
        .has_ext_db = !(bits & 1),
        .is_cc_off = bits & 2,
        .default_cc = ERDMA_CC_CUBIC,
        .dma_local_key = 0xffffff00,
        .n_vectors = 32,
        .ext_db_first = EXT_DB_START >> DB_PAGE_SHIFT,
        .n_ext_db = 390,
        .seed = 1,
    };

    erdma_xport_config_default(&cfg.xport);
    cfg.xport.is_go_back_n = bits & 4;
    cfg.xport.is_int_compact = bits & 8;
    cfg.xport.int_hops = 1 + (bits >> 4 & 3);
    g->is_marking = bits & 0x40;
    if (bits & 0x80) {
        g->loss = 2 + fuzz_below(&g->in, 30);
    }
    return erdma_engine_new(&port, g, &cfg);
}

/* Until it waits for time to pass, or has had enough */
static uint64_t run(Game *g)
{
    unsigned n = 0;
    uint64_t next;

    do {
        Packet *p = g_queue_pop_head(&g->wire);

        if (p) {
            erdma_engine_input(g->e, &p->dg, g->now);
            g_free(p);
            erdma_engine_unblock(g->e);
        }
        next = erdma_engine_run(g->e, g->now);
    } while ((next <= g->now || g->wire.length) && n++ < RUNS_MAX);
    return next;
}

/* What the device waits for comes to pass, as far as there is time. */
static void sleep_ns(Game *g, uint64_t ns)
{
    uint64_t until = g->now + ns, next;
    unsigned n;

    for (n = 0; n < 50; n++) {
        next = run(g);
        if (next > until) {
            break;
        }
        g->now = MAX(next, g->now + 1);
    }
    g->now = MAX(g->now, until);
    run(g);
}

static uint64_t latched64(const Game *g, unsigned addr)
{
    return deposit64(g->latched[addr / 4], 32, 32, g->latched[addr / 4 + 1]);
}

static void control(Game *g, uint64_t val)
{
    ErdmaEngineInit init = {
        .cmdq_sq_addr = latched64(g, A_ERDMA_CMDQ_SQ_ADDR_L),
        .cmdq_cq_addr = latched64(g, A_ERDMA_CMDQ_CQ_ADDR_L),
        .cmdq_eq_addr = latched64(g, A_ERDMA_CMDQ_EQ_ADDR_L),
        .aeq_addr = latched64(g, A_ERDMA_AEQ_ADDR_L),
        .cmdq_depth = g->latched[A_ERDMA_CMDQ_DEPTH / 4],
        .cmdq_eq_depth = g->latched[A_ERDMA_CMDQ_EQ_DEPTH / 4],
        .aeq_depth = g->latched[A_ERDMA_AEQ_DEPTH / 4],
        .cmdq_sq_dbrec = latched64(g, A_ERDMA_CMDQ_SQ_DB_RECORD),
        .cmdq_cq_dbrec = latched64(g, A_ERDMA_CMDQ_CQ_DB_RECORD),
        .cmdq_eq_dbrec = latched64(g, A_ERDMA_CMDQ_EQ_DB_RECORD),
        .aeq_dbrec = latched64(g, A_ERDMA_AEQ_DB_RECORD),
    };
    uint64_t delay_ns;

    erdma_engine_reset(g->e);
    if (val & R_ERDMA_DEV_CTRL_INIT_MASK &&
        erdma_engine_fault_init(g->e, &delay_ns)) {
        erdma_engine_init(g->e, &init);
    }
}

static bool is_eq_doorbell(unsigned addr)
{
    return addr == A_ERDMA_AEQ_DB ||
           (addr >= A_ERDMA_CEQ_DB &&
            addr < A_ERDMA_CEQ_DB + ERDMA_MAX_VECTORS * 8);
}

static void write_register(Game *g, unsigned addr, uint64_t val)
{
    if (g->is_deaf && is_eq_doorbell(addr)) {
        return;
    }
    if (addr == A_ERDMA_DEV_CTRL) {
        control(g, val);
    } else if (addr == A_ERDMA_AEQ_DB) {
        erdma_engine_db_aeq(g->e, val);
    } else if (addr == A_ERDMA_CMDQ_SQ_DB) {
        erdma_engine_db_cmdq_sq(g->e, val);
    } else if (addr == A_ERDMA_CMDQ_CQ_DB) {
        erdma_engine_db_cmdq_cq(g->e, val);
    } else if (addr == A_ERDMA_CEQ_DB) {
        erdma_engine_db_cmdq_eq(g->e, val);
    } else if (addr >= A_ERDMA_CEQ_DB + 8 &&
               addr < A_ERDMA_CEQ_DB + ERDMA_MAX_VECTORS * 8) {
        erdma_engine_db_ceq(g->e, (addr - A_ERDMA_CEQ_DB) / 8, val);
    } else if (addr < sizeof(g->latched)) {
        g->latched[addr / 4] = val;
        if (addr >= A_ERDMA_AEQ_DB && addr / 4 + 1 < ARRAY_SIZE(g->latched)) {
            g->latched[addr / 4 + 1] = val >> 32;
        }
    }
}

static void write_doorbell(Game *g, uint32_t addr, uint64_t val)
{
    if (addr < ERDMA_RQ_DB_SPACE) {
        erdma_engine_db_queue(g->e, ERDMA_DB_KIND_SQ, val);
    } else if (addr < ERDMA_CQ_DB_SPACE) {
        erdma_engine_db_queue(g->e, ERDMA_DB_KIND_RQ, val);
    } else if (addr < EXT_DB_START) {
        erdma_engine_db_queue(g->e, ERDMA_DB_KIND_CQ, val);
    } else {
        erdma_engine_db_ext(g->e, addr >> DB_PAGE_SHIFT,
                            addr & ((1u << DB_PAGE_SHIFT) - 1), val);
    }
}

static void name_piece(Game *g)
{
    Piece p = { .len = fuzz_u8(&g->in) };

    p.len = MIN(p.len, g->in.len);
    p.data = g->in.data;
    g->in.data += p.len;
    g->in.len -= p.len;
    if (g->is_answering) {
        g->is_answering = false;
        g->n_pieces = g->next_piece = 0;
    }
    if (g->n_pieces < PIECES_MAX) {
        g->pieces[g->n_pieces++] = p;
    }
}

static void inspect(Game *g)
{
    ErdmaDeviceSnapshot dev;
    ErdmaQpSnapshot qp;
    ErdmaCqSnapshot cq;
    ErdmaEqSnapshot eq;
    ErdmaMrSnapshot mr;
    ErdmaEngineCounts counts;
    uint32_t i;

    erdma_engine_counts(g->e, &counts);
    erdma_inspect_device(g->e, &dev);
    for (i = 0; erdma_inspect_qp(g->e, &i, &qp); i++) {
        g_assert_nonnull(erdma_inspect_sq_wait(qp.sq_wait));
        counts.n_qps--;
    }
    for (i = 0; erdma_inspect_cq(g->e, &i, &cq); i++) {
        counts.n_cqs--;
    }
    for (i = 0; erdma_inspect_mr(g->e, &i, &mr); i++) {
        counts.n_mrs--;
    }
    for (i = 0; erdma_inspect_eq(g->e, &i, &eq); i++) {
        g_assert_cmpuint(i, <=, ERDMA_MAX_VECTORS);
    }
    g_assert_cmpuint(counts.n_qps + counts.n_cqs + counts.n_mrs, ==, 0);
}

/* What a guest has made of its device can move elsewhere. */
static void move(Game *g)
{
    g_autofree char *error = NULL;
    ErdmaEngineSnap s = { 0 };

    erdma_engine_fault_flush(g->e);
    if (!erdma_engine_save(g->e, &s, g->now, &error)) {
        g_assert_nonnull(error);
    } else if (!erdma_engine_load(g->e, &s, g->now, &error)) {
        g_error("its own snapshot is refused: %s", error);
    }
    erdma_engine_snap_clear(&s);
}

/* The host's user asks for a fault; the guest has to live with it. */
static void fault(Game *g)
{
    ErdmaFaultConfig cfg;
    g_autofree char *allowed = NULL;
    ErdmaFaultRule *r;
    uint8_t bits;

    erdma_fault_config_default(&cfg);
    cfg.on = fuzz_below(&g->in, ERDMA_FAULT_ON_COUNT);
    cfg.action = fuzz_below(&g->in, ERDMA_FAULT_ACTION_COUNT);
    bits = fuzz_u8(&g->in);
    cfg.opcode = bits & 1 ? fuzz_u16(&g->in) : ERDMA_FAULT_ANY;
    cfg.qpn = bits & 2 ? fuzz_below(&g->in, 4) : ERDMA_FAULT_ANY;
    cfg.cqn = bits & 4 ? fuzz_below(&g->in, 4) : ERDMA_FAULT_ANY;
    cfg.vector = bits & 8 ? fuzz_below(&g->in, 4) : ERDMA_FAULT_ANY;
    cfg.queue = (bits >> 4 & 3) % 3;
    cfg.direction = (bits >> 6) % 3;
    bits = fuzz_u8(&g->in);
    cfg.min_size = bits & 1 ? fuzz_u8(&g->in) : 0;
    cfg.after = bits & 2 ? fuzz_u8(&g->in) : 0;
    cfg.every = bits & 4 ? fuzz_u8(&g->in) : 1;
    cfg.count = bits & 8 ? fuzz_u8(&g->in) : 0;
    cfg.probability = bits & 16 ? fuzz_u8(&g->in) / 255.0 : 1;
    cfg.delay_ns = bits & 32 ? fuzz_u32(&g->in) : 0;
    cfg.period_ns = bits & 64 ? fuzz_u32(&g->in) : 0;
    cfg.is_executed = bits & 128;
    cfg.status = fuzz_u8(&g->in);
    cfg.event = fuzz_u8(&g->in);
    cfg.offset = (int8_t)fuzz_u8(&g->in);
    if (erdma_fault_config_check(&cfg, &allowed)) {
        g_assert_nonnull(allowed);
        return;
    }
    r = &g->rules[g->n_rules++ % RULES_MAX];
    erdma_fault_enable(r, false);
    erdma_fault_attach(r, NULL);
    erdma_fault_set(r, &cfg);
    erdma_fault_attach(r, g->e);
    erdma_fault_enable(r, true);
}

static void step(Game *g)
{
    uint32_t addr;

    switch (fuzz_below(&g->in, 16)) {
    case 0:
        name_piece(g);
        return;
    case 1:
        addr = fuzz_u16(&g->in);
        write_register(g, addr & 0xffc, fuzz_u64(&g->in));
        break;
    case 2:
        addr = fuzz_u32(&g->in);
        write_doorbell(g, addr & 0x1ffff8, fuzz_u64(&g->in));
        break;
    case 3:
        sleep_ns(g, fuzz_u32(&g->in));
        break;
    case 4:
        g->is_dma_broken = !g->is_dma_broken;
        break;
    case 5:
        inspect(g);
        break;
    case 6:
        move(g);
        break;
    case 7:
        fault(g);
        break;
    case 8:
        erdma_engine_set_mtu(g->e, 576 + fuzz_u16(&g->in) % 8000);
        break;
    case 9:
        g->is_deaf = !g->is_deaf;
        return;
    default:
        return;
    }
    g->is_answering = true;
    sleep_ns(g, 20 * 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    Game g = { .in = { data, len }, .now = 1000000000 };
    unsigned i;

    g_queue_init(&g.wire);
    for (i = 0; i < RULES_MAX; i++) {
        erdma_fault_init(&g.rules[i]);
    }
    g.e = new_engine(&g);
    for (i = 0; i < STEPS_MAX && fuzz_more(&g.in); i++) {
        step(&g);
    }
    sleep_ns(&g, 200000000);
    inspect(&g);
    move(&g);
    for (i = 0; i < RULES_MAX; i++) {
        erdma_fault_destroy(&g.rules[i]);
    }
    g_queue_clear_full(&g.wire, g_free);
    erdma_engine_free(g.e);
    return 0;
}
