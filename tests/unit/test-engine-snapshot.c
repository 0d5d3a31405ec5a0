/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots of an engine that somebody has tampered with: refused with the
 * field's name, or harmless.  That a good one changes nothing is what the
 * tests *-moving are for.
 */

#include "qemu/osdep.h"
#include "busy-rig.h"
#include "hostile.h"

#define BAD_QP(_field, _val) BAD(ErdmaQpSnap, qps, _field, _val, NULL)
#define BAD_WQE(_field, _val) BAD(ErdmaWqeSnap, wqes, _field, _val, NULL)

static const Hostile hostile[] = {
    BAD(ErdmaEngineSnap, snap, is_ready, 0, NULL),
    BAD(ErdmaEngineSnap, snap, guest_page_shift, 11, NULL),
    BAD(ErdmaEngineSnap, snap, guest_page_shift, 20, NULL),
    BAD(ErdmaEngineSnap, snap, cmdq_depth_log2, 16, NULL),
    BAD(ErdmaEngineSnap, snap, cmdq_addr, 1, NULL),
    BAD(ErdmaEngineSnap, snap, cmdq_pi, 1000, NULL),
    BAD(ErdmaEngineSnap, snap, cmdq_cq.ring.depth_log2, 21, "depth_log2"),
    BAD(ErdmaEngineSnap, snap, cmdq_cq.arm, 3, "arm"),
    BAD(ErdmaEngineSnap, snap, ext_hint, 5, NULL),
    BAD(ErdmaEngineSnap, snap, eqs[0].is_live, 0, "is_live"),
    BAD(ErdmaEngineSnap, snap, eqs[32].is_live, 0, "is_live"),
    BAD(ErdmaEngineSnap, snap, eqs[0].vector, 2, "vector"),
    BAD(ErdmaEngineSnap, snap, eqs[2].is_live, 1, "vector"),
    BAD(ErdmaEngineSnap, snap, eqs[0].depth_log2, 16, "depth_log2"),
    BAD(ErdmaEngineSnap, snap, eqs[0].addr, 8, "addr"),
    BAD(ErdmaEngineSnap, snap, eqs[0].ci, 0x8000, "ci"),
    BAD(ErdmaEngineSnap, snap, n_aeqes, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_cqs, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_held, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_mrs, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_ext_pages, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_qps, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_wqes, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_sges, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_responses, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_bytes, MANY, NULL),
    BAD(ErdmaEngineSnap, snap, n_qps, 0, "more elements"),
    BAD(ErdmaEngineSnap, snap, n_wqes, 1, "n_sends"),
    BAD(ErdmaEngineSnap, snap, n_sges, 0, NULL),
    BAD(ErdmaEngineSnap, snap, n_bytes, 0, "n_inline"),
    BAD(ErdmaEngineSnap, snap, n_responses, 0, NULL),
    BAD(ErdmaEngineSnap, snap, xport.mtu, 0, "mtu"),
    BAD(ErdmaEngineSnap, snap, xport.n_conns, 0, "has_conn"),
    BAD(ErdmaCqSnap, cqs, cqn, 0, NULL),
    BAD(ErdmaCqSnap, cqs, cqn, 2048, NULL),
    BAD(ErdmaCqSnap, cqs, eqn, 32, NULL),
    BAD(ErdmaCqSnap, cqs, cqn, 2, "twice"),
    BAD(ErdmaCqSnap, cqs, arm, 3, NULL),
    BAD(ErdmaCqSnap, cqs, ring.depth_log2, 21, "depth_log2"),
    BAD(ErdmaCqSnap, cqs, ring.page_shift, 40, "page_shift"),
    BAD(ErdmaCqSnap, cqs, ring.n_pages, 0, "n_pages"),
    BAD(ErdmaCqSnap, cqs, ring.first_off, 16, "first_off"),
    BAD(ErdmaMrSnap, mrs, index, 1 << 20, NULL),
    BAD(ErdmaMrSnap, mrs, index, 2, "MR 2"),
    BAD(ErdmaMrSnap, mrs, type, 3, NULL),
    BAD(ErdmaMrSnap, mrs, level, 4, NULL),
    BAD(ErdmaMrSnap, mrs, table_shift, 200, NULL),
    BAD(ErdmaMrSnap, mrs, page_shift, 31, "MR 1"),
    BAD(ErdmaMrSnap, mrs, n_pages, 2, NULL),
    BAD(ErdmaMrSnap, mrs, len, 1ull << 40, NULL),
    BAD_QP(qpn, 0),
    BAD_QP(qpn, 1024),
    BAD_QP(cookie, 0),
    BAD_QP(state, 4),
    BAD_QP(state, ERDMA_QP_CREATED),
    BAD(ErdmaQpSnap, qps, state, ERDMA_QP_FLUSHING, "n_sends"),
    BAD_QP(has_conn, 0),
    BAD_QP(sq_wait, 5),
    BAD_QP(sq_wait, ERDMA_SQ_WAIT_ERROR),
    BAD_QP(sq_cqn, 2048),
    BAD_QP(rq_cqn, 2048),
    BAD(ErdmaQpSnap, qps, sq.depth_log2, 16, "depth_log2"),
    BAD(ErdmaQpSnap, qps, rq.depth_log2, 16, "depth_log2"),
    BAD(ErdmaQpSnap, qps, rq.n_pages, 0, "n_pages"),
    BAD_QP(sq_pi, 0x8000),
    BAD_QP(sq_next, 0x8000),
    BAD_QP(rq_pi, 0x8000),
    BAD_QP(n_sends, MANY),
    BAD_QP(n_sends, 257),
    BAD_QP(n_orphans, 257),
    BAD_QP(n_responses, 257),
    BAD_QP(n_responses, 0x80000000),
    BAD(ErdmaQpSnap, qps, n_sends, 0, "sq_next"),
    BAD_WQE(index, 0x7777),
    BAD_WQE(n_wqebbs, 0),
    BAD_WQE(n_wqebbs, 5),
    BAD_WQE(opcode, ERDMA_OP_REG_MR),
    BAD_WQE(opcode, 255),
    BAD(ErdmaWqeSnap, wqes, hdr.op, ERDMA_XPORT_OP_READ_RESP, "hdr.op"),
    BAD(ErdmaWqeSnap, wqes, hdr.op, 0, "hdr.op"),
    BAD(ErdmaWqeSnap, wqes, hdr.len, 7, "len"),
    BAD_WQE(len, 7),
    BAD_WQE(n_sges, 7),
    BAD_WQE(n_sges, 0),
    BAD_WQE(n_inline, 97),
    BAD_WQE(is_unanswered, 1),
    BAD_WQE(is_done, 1),
    BAD_WQE(is_held, 0),
    BAD_WQE(status, 1),
    BAD(ErdmaWqeSnap, wqes, msn, 0x12345678, "messages"),
    BAD(ErdmaSgeSnap, sges, len, 1, "len"),
    BAD(ErdmaResponseSnap, responses, hdr.op, ERDMA_XPORT_OP_SEND, "hdr.op"),
    BAD(ErdmaResponseSnap, responses, msn, 0x12345678, "messages"),
};

static void *hostile_place(const Hostile *h, ErdmaEngineSnap *s)
{
    void *v = s;
    uint32_t i;

    if (!strcmp(h->array, "cqs")) {
        v = s->cqs;
    } else if (!strcmp(h->array, "mrs")) {
        v = s->mrs;
    } else if (!strcmp(h->array, "qps")) {
        v = s->qps;
    } else if (!strcmp(h->array, "wqes")) {
        /* One that is waiting for its ack */
        for (i = 0; i < s->n_wqes; i++) {
            if (s->wqes[i].is_held && !s->wqes[i].is_unanswered &&
                !s->wqes[i].is_done && s->wqes[i].n_sges) {
                v = &s->wqes[i];
                break;
            }
        }
        g_assert_true(v != s);
    } else if (!strcmp(h->array, "sges")) {
        v = s->sges;
    } else if (!strcmp(h->array, "responses")) {
        v = s->responses;
    }
    return (char *)v + h->offset;
}

static void test_hostile(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(hostile); i++) {
        const Hostile *h = &hostile[i];
        g_autofree char *error = NULL;
        ErdmaEngine *e;
        uint64_t old = 0;
        Busy f = { 0 };
        void *p;

        busy_setup(&f);
        e = f.rig->hca[0].e;
        p = hostile_place(h, &f.s);
        memcpy(&old, p, h->size);
        hostile_set(h, p);
        erdma_engine_load(e, &f.s, f.rig->now, &error);
        hostile_expect(h, error);
        /* Nothing is half there. */
        g_assert_false(erdma_engine_is_ready(e));
        g_assert_cmpuint(e->qps.count + e->cqs.count + e->mrs.count, ==, 0);
        g_assert_cmpuint(e->n_sends + e->n_responses, ==, 0);
        memcpy(p, &old, h->size);
        /* What is right again can be loaded afterwards. */
        g_free(g_steal_pointer(&error));
        g_assert_true(erdma_engine_load(e, &f.s, f.rig->now, &error));
        rig_run(f.rig, 10 * RIG_S);
        rig_expect(&f.a->scq, ERDMA_OP_WRITE, 0, 0);
        busy_teardown(&f);
    }
}

/* Random bytes: refused, or at least harmless */
static void test_garbage(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    unsigned n_loaded = 0, i, n;

    for (i = 0; i < 500; i++) {
        g_autofree char *error = NULL;
        Busy f = { 0 };

        busy_setup(&f);
        for (n = g_rand_int_range(rand, 1, 4); n; n--) {
            const struct {
                void *v;
                size_t len;
            } a[] = {
                { f.s.qps, f.s.n_qps * sizeof(*f.s.qps) },
                { f.s.wqes, f.s.n_wqes * sizeof(*f.s.wqes) },
                { f.s.sges, f.s.n_sges * sizeof(*f.s.sges) },
                { f.s.responses, f.s.n_responses * sizeof(*f.s.responses) },
                { f.s.cqs, f.s.n_cqs * sizeof(*f.s.cqs) },
                { f.s.mrs, f.s.n_mrs * sizeof(*f.s.mrs) },
                { &f.s, offsetof(ErdmaEngineSnap, n_aeqes) },
                { f.s.xport.conns, sizeof(*f.s.xport.conns) },
            };
            unsigned k = g_rand_int_range(rand, 0, G_N_ELEMENTS(a));

            ((uint8_t *)a[k].v)[g_rand_int_range(rand, 0, a[k].len)] =
                g_rand_int(rand);
        }
        if (erdma_engine_load(f.rig->hca[0].e, &f.s, f.rig->now, &error)) {
            n_loaded++;
        }
        rig_run(f.rig, 50 * RIG_MS);
        busy_teardown(&f);
    }
    g_assert_cmpuint(n_loaded, >, 50);
    g_assert_cmpuint(n_loaded, <, 450);
}

/* Saved and loaded a thousand times, what was sent is there, once. */
static void test_again(void)
{
    Busy f = { 0 };
    unsigned i;

    busy_setup(&f);
    for (i = 0; i < 1000; i++) {
        rig_move(&f.rig->hca[i % 2]);
        rig_run(f.rig, 10 * RIG_US);
    }
    rig_run(f.rig, 10 * RIG_S);
    for (i = 0; i < 17; i++) {
        RigCqe cqe;

        cqe = rig_next(&f.a->scq);
        g_assert_cmpuint(cqe.status, ==, 0);
        cqe = rig_next(&f.b->scq);
        g_assert_cmpuint(cqe.status, ==, 0);
    }
    rig_expect_none(&f.a->scq);
    rig_expect_none(&f.b->scq);
    g_assert_cmpuint(f.rig->n_moves, ==, 1000);
    busy_teardown(&f);
}

/*
 * Whatever a guest has brought about can move: an entry that could not even
 * be read, and that waits for those before it.
 */
static void test_unreadable(void)
{
    RigWr wr = { .op = ERDMA_OP_WRITE };
    Rig *rig = rig_new();
    RigQp *a, *b;

    rig_pair(rig, &a, &b);
    rig->is_cut = true;
    rig_post_send(a, &wr);
    a->hca->hole = a->sq + ERDMA_WQEBB_SIZE;
    a->hca->hole_len = ERDMA_WQEBB_SIZE;
    rig_post_send(a, &wr);
    rig_run(rig, 100 * RIG_US);
    g_assert_cmpuint(erdma_qp_get(a->hca->e, a->qpn)->sq_wait, ==,
                     ERDMA_SQ_WAIT_ERROR);
    rig_move(a->hca);
    rig->is_cut = false;
    rig_run(rig, RIG_S);
    rig_expect(&a->scq, ERDMA_OP_WRITE, ERDMA_WC_SUCCESS, 0);
    rig_expect(&a->scq, ERDMA_OP_WRITE, ERDMA_WC_GENERAL_ERR, 1);
    rig_expect_none(&a->scq);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* The largest regions of each kind of table that can be made can move. */
static void test_large_regions(void)
{
    static const struct {
        uint8_t type;
        uint8_t level;
        uint8_t table_shift;
        uint64_t n_pages;
    } regions[] = {
        { ERDMA_MR_TYPE_FRMR, 1, 12, UINT32_MAX },
        { ERDMA_MR_TYPE_FRMR, 1, 12, 1ull << 32 },
        { ERDMA_MR_TYPE_FRMR, 2, 19, 1ull << 32 },
        { ERDMA_MR_TYPE_FRMR, 3, 19, 1ull << 32 },
        { ERDMA_MR_TYPE_FRMR, 3, 19, (1ull << 33) - 1 },
        { ERDMA_MR_TYPE_NORMAL, 3, 19, 1ull << 24 },
    };
    Rig *rig = rig_new();
    RigHca *hca = &rig->hca[0];
    unsigned n_made = 0, i;

    for (i = 0; i < G_N_ELEMENTS(regions); i++) {
        ErdmaRegMr reg = {
            .index = 1 + i,
            .version = 1,
            .type = regions[i].type,
            .level = regions[i].level,
            .table_shift = regions[i].table_shift,
            .n_pages = regions[i].n_pages,
            .page_shift = 12,
            .is_valid = true,
            .pdn = RIG_PD,
        };

        if (reg.type == ERDMA_MR_TYPE_NORMAL) {
            reg.len = reg.n_pages << reg.page_shift;
        }
        n_made += !erdma_mr_create(hca->e, &reg);
    }
    g_assert_cmpuint(n_made, >=, 2);
    rig_move(hca);
    rig_free(rig);
}

/* A size of tables that there cannot be, of a region that uses one */
static void test_table_shift(void)
{
    g_autofree char *error = NULL;
    Busy f = { 0 };
    uint32_t i;

    busy_setup(&f);
    for (i = 0; i < f.s.n_mrs; i++) {
        if (f.s.mrs[i].level == 1) {
            f.s.mrs[i].table_shift = 0;
        }
    }
    g_assert_false(erdma_engine_load(f.rig->hca[0].e, &f.s, f.rig->now,
                                     &error));
    g_assert_nonnull(strstr(error, "table_shift"));
    busy_teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/snapshot/hostile", test_hostile);
    g_test_add_func("/engine/snapshot/garbage", test_garbage);
    g_test_add_func("/engine/snapshot/again", test_again);
    g_test_add_func("/engine/snapshot/unreadable", test_unreadable);
    g_test_add_func("/engine/snapshot/large-regions", test_large_regions);
    g_test_add_func("/engine/snapshot/table-shift", test_table_shift);
    return g_test_run();
}
