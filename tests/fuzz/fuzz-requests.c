/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs between guests that lie about their requests, or between a
 * guest and a peer that does: work queue entries with some bytes changed,
 * regions and QPs that go away while they are used, memory that fails,
 * messages that nobody asked for.
 *
 * Completions must at least be well-formed, and everything comes to an end.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "../unit/qp-rig.h"
#include "fuzz.h"

#define STEPS_MAX   200
#define DATA        (RIG_MEM_BASE + (8 << 20))
#define DATA_LEN    (1 << 18)
#define N_KEYS      7

typedef struct Game {
    FuzzInput in;
    Rig *rig;
    RigQp *qp[2];               /* the second only without a bare peer */
    uint32_t keys[2][N_KEYS];   /* of each HCA's guest */
} Game;

static uint32_t some_key(Game *g, unsigned side)
{
    uint8_t choice = fuzz_u8(&g->in);

    return choice < 0xf0 ? g->keys[side][choice % N_KEYS] :
                           fuzz_u32(&g->in);
}

static uint64_t some_address(Game *g)
{
    uint8_t choice = fuzz_u8(&g->in);

    switch (choice & 7) {
    case 0:
        return fuzz_u64(&g->in);
    case 1:
        /* The queues themselves */
        return RIG_MEM_BASE + fuzz_u16(&g->in) * 8;
    case 2:
        return DATA + DATA_LEN - (choice >> 3);
    default:
        return DATA + fuzz_u16(&g->in) * (choice & 8 ? 1 : 8);
    }
}

static uint32_t some_length(Game *g)
{
    uint8_t choice = fuzz_u8(&g->in);

    switch (choice >> 5) {
    case 0:
        return fuzz_u32(&g->in);
    case 1:
        return fuzz_u16(&g->in);
    case 2:
        return 1u << (choice & 31);
    default:
        return choice & 31;
    }
}

static void post_send(Game *g, unsigned side)
{
    static const uint8_t text[96] = "inline";
    RigQp *qp = g->qp[side];
    /* Each that there is, and one that there is not */
    RigWr wr = { .op = fuzz_below(&g->in, ERDMA_NUM_OPCODES + 1) };
    uint8_t bits = fuzz_u8(&g->in);
    uint16_t index;
    uint8_t *raw;
    unsigned i, n;

    wr.is_unsignalled = bits & 1;
    wr.is_solicited = bits & 2;
    wr.is_fenced = bits & 4;
    if (bits & 8) {
        wr.inline_data = text;
        wr.inline_len = fuzz_below(&g->in, 97);
    }
    wr.n_sges = fuzz_below(&g->in, 8);
    for (i = 0; i < wr.n_sges; i++) {
        wr.sges[i] = (RigSge) {
            some_address(g), some_length(g), some_key(g, side),
        };
    }
    wr.rkey = some_key(g, !side);
    wr.inv_key = some_key(g, bits & 16 ? side : !side);
    wr.raddr = some_address(g);
    wr.swap_add = wr.raddr >> 3;
    wr.compare = bits & 0x10 ? 0 : wr.swap_add;
    if (wr.op >= ERDMA_OP_REG_MR) {
        wr.start = some_address(g);
        wr.len = some_length(g);
        wr.access = fuzz_below(&g->in, 32);
        wr.n_pages = fuzz_below(&g->in, 5);
        for (i = 0; i < wr.n_pages; i++) {
            wr.pages[i] = some_address(g);
        }
    }
    index = rig_write_sqe(qp, &wr);
    raw = rig_ptr(qp->hca, qp->sq + 32 * (index & (qp->sq_depth - 1)));
    for (n = fuzz_below(&g->in, 4); n; n--) {
        raw[fuzz_below(&g->in, 32)] = fuzz_u8(&g->in);
    }
    if (bits & 0xe0) {
        rig_ring_sq(qp);
    }
}

static void peer_sends(Game *g)
{
    static const uint8_t payload[4096];
    ErdmaXportMsgHdr hdr = {
        .op = ERDMA_XPORT_OP_SEND +
              fuzz_below(&g->in, ERDMA_XPORT_OP_COUNT - 1),
        .is_solicited = fuzz_u8(&g->in) & 1,
        .len = fuzz_u16(&g->in) & (sizeof(payload) - 1),
        .imm = some_key(g, 0),
        .rkey = some_key(g, 0),
        .raddr = some_address(g),
        .read_len = some_length(g),
        .req_msn = fuzz_below(&g->in, 64),
        .swap_add = fuzz_u16(&g->in),
        .compare = fuzz_u16(&g->in),
    };

    if (g->rig->peer->n_errors || g->rig->peer->n_terminated) {
        return;
    }
    rig_peer_send(g->rig->peer, &hdr, payload);
}

static void trouble(Game *g, unsigned side)
{
    RigQp *qp = g->qp[side];
    RigHca *hca = qp->hca;

    switch (fuzz_below(&g->in, 8)) {
    case 0:
        erdma_mr_destroy(hca->e, some_key(g, side) >> 8);
        break;
    case 1:
        rig_modify(qp, fuzz_below(&g->in, 8), NULL);
        break;
    case 2:
        hca->hole = DATA + fuzz_u32(&g->in) % DATA_LEN;
        hca->hole_len = fuzz_u16(&g->in);
        break;
    case 3:
        hca->hole_len = 0;
        break;
    case 4:
        erdma_qp_reflush(hca->e, qp->qpn, fuzz_u16(&g->in),
                         fuzz_u16(&g->in));
        break;
    case 5:
        erdma_engine_db_queue(hca->e, fuzz_below(&g->in, 3),
                              (uint64_t)qp->qpn << 32 | fuzz_u16(&g->in));
        break;
    case 6:
        g->rig->loss_percent = fuzz_below(&g->in, 60);
        g->rig->reorder_percent = fuzz_below(&g->in, 60);
        g->rig->dup_percent = fuzz_below(&g->in, 60);
        break;
    default:
        erdma_qp_destroy(hca->e, qp->qpn);
        break;
    }
}

static void check_completions(RigCq *cq)
{
    RigCqe cqe;
    unsigned n = 0;

    while (n < cq->depth && rig_poll(cq, &cqe)) {
        n++;
    }
}

/* A region of scattered pages behind @level tables */
static uint32_t deep_region(RigHca *hca, unsigned level)
{
    unsigned n = DATA_LEN / 4096, i;
    uint64_t table = rig_alloc(hca, n * 8), top;
    ErdmaRegMr reg = {
        .index = hca->next_mr++,
        .key = 0x5a,
        .version = 1,
        .is_valid = true,
        .access = RIG_ALL_RIGHTS,
        .type = ERDMA_MR_TYPE_NORMAL,
        .pdn = RIG_PD,
        .start = DATA,
        .len = DATA_LEN,
        .n_pages = n,
        .page_shift = 12,
        .table_shift = 12,
        .level = level,
    };

    for (i = 0; i < n; i++) {
        /* Some are neighbours. */
        stq_le_p(rig_ptr(hca, table + i * 8), DATA + (i ^ 6) * 4096);
    }
    while (--level) {
        top = rig_alloc(hca, 8);
        stq_le_p(rig_ptr(hca, top), table);
        table = top;
    }
    reg.pages[0] = table;
    g_assert_cmpuint(erdma_mr_create(hca->e, &reg), ==, 0);
    return reg.index << 8 | reg.key;
}

static void setup(Game *g, bool is_peer)
{
    unsigned side, i;

    for (side = 0; side < 2; side++) {
        RigHca *hca = &g->rig->hca[side];
        uint32_t *keys = g->keys[side];

        keys[0] = rig_mr(hca, DATA, DATA_LEN, RIG_ALL_RIGHTS);
        keys[1] = rig_mr(hca, DATA, 4096, 1 << fuzz_below(&g->in, 5));
        keys[2] = rig_mr_pd(hca, DATA, DATA_LEN, RIG_ALL_RIGHTS, RIG_PD + 1);
        keys[3] = rig_frmr(hca, 8);
        keys[4] = 0xffffff00;           /* the local DMA key */
        keys[5] = deep_region(hca, 1);
        keys[6] = deep_region(hca, 3);
    }
    if (is_peer) {
        g->qp[0] = rig_qp(&g->rig->hca[0], 5, NULL);
        rig_peer(g->rig, g->qp[0]);
    } else {
        RigQpOpts user = { .is_user = true };

        g->qp[0] = rig_qp(&g->rig->hca[0], 5, NULL);
        g->qp[1] = rig_qp(&g->rig->hca[1], 9,
                          fuzz_u8(&g->in) & 1 ? &user : NULL);
        rig_connect(g->qp[0], g->qp[1]);
    }
    for (i = 0; i < 8; i++) {
        rig_post_recv(g->qp[0], DATA, 4096, g->keys[0][0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    Game g = { .in = { data, len } };
    bool is_peer = fuzz_u8(&g.in) & 1;
    unsigned i;

    g.rig = rig_new();
    setup(&g, is_peer);
    for (i = 0; i < STEPS_MAX && fuzz_more(&g.in); i++) {
        unsigned what = fuzz_u8(&g.in), side = !is_peer && what & 1;

        switch (what >> 1 & 7) {
        case 0:
        case 1:
        case 2:
            post_send(&g, side);
            break;
        case 3:
            rig_post_recv(g.qp[side], some_address(&g), some_length(&g),
                          some_key(&g, side));
            break;
        case 4:
            if (is_peer) {
                peer_sends(&g);
            } else {
                rig_post_recv(g.qp[side], DATA, 65536, g.keys[side][0]);
            }
            break;
        case 5:
            trouble(&g, side);
            break;
        default:
            rig_run(g.rig, (what >> 4) * 50 * RIG_US);
            break;
        }
    }
    rig_run(g.rig, 100 * RIG_MS);
    for (i = 0; i < 2; i++) {
        if (g.qp[i]) {
            check_completions(&g.qp[i]->scq);
            check_completions(&g.qp[i]->rcq);
            rig_qp_free(g.qp[i]);
        }
    }
    rig_free(g.rig);
    return 0;
}
