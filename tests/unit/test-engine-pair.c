/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two HCAs on a wire: every opcode moves the right bytes, completes once on
 * the right queues, and in order, whatever the wire does.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qp-rig.h"

#define GUARD 64

static const uint32_t sizes[] = {
    0, 1, 7, 31, 32, 95, 96, 97, 1023, 1399, 1400, 1401, 1440, 1472,
    1499, 1500, 1501, 4096, 65536, (1 << 20) + 1,
};

/* A buffer with a guarded surrounding, and a region over just the buffer */
typedef struct Buf {
    RigHca *hca;
    uint64_t addr;
    uint32_t len;
    uint32_t key;
} Buf;

static Buf buf_new(RigHca *hca, uint32_t len, uint8_t access)
{
    Buf b = { .hca = hca, .len = len };

    b.addr = rig_alloc_at(hca, len + GUARD, 4096, GUARD + 13);
    b.key = rig_mr(hca, b.addr, MAX(len, 1u), access);
    memset(rig_ptr(hca, b.addr - GUARD), 0xee, len + 2 * GUARD);
    return b;
}

static void buf_fill(Buf *b, uint32_t seed)
{
    uint8_t *p = rig_ptr(b->hca, b->addr);
    uint32_t i, x = seed * 2654435761u + 1;

    for (i = 0; i < b->len; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = x >> 24;
    }
}

static void buf_clear(Buf *b)
{
    memset(rig_ptr(b->hca, b->addr), 0xee, b->len);
}

static void buf_check(const Buf *got, const Buf *want)
{
    const uint8_t *p = rig_ptr(got->hca, got->addr);
    int i;

    g_assert_cmpint(memcmp(p, rig_ptr(want->hca, want->addr), want->len), ==,
                    0);
    for (i = 1; i <= GUARD; i++) {
        g_assert_cmphex(p[-i], ==, 0xee);
        g_assert_cmphex(p[got->len + i - 1], ==, 0xee);
    }
}

static uint32_t frmr_valid(RigHca *hca, RigQp *qp)
{
    uint32_t key = rig_frmr(hca, 16);
    uint64_t page = rig_alloc(hca, 4096);
    RigWr wr = {
        .op = ERDMA_OP_REG_MR, .inv_key = key ^ 0x42, .start = 0x1000,
        .len = 4096, .access = RIG_ALL_RIGHTS, .n_pages = 1,
        .pages = { page },
    };
    uint16_t index = rig_post_send(qp, &wr);

    rig_run(hca->rig, RIG_S);
    rig_expect(&qp->scq, ERDMA_OP_REG_MR, 0, index);
    return key ^ 0x42;
}

/*
 * The region is invalid now: it can be registered anew.  @n is the counter
 * of what made it so, before and after.
 */
static void check_is_invalid(RigQp *qp, uint32_t key, const uint64_t n[2])
{
    ErdmaMrFastReg reg = { .key = key, .len = 1, .n_pages = 1,
                           .is_inline = true };

    g_assert_cmpuint(n[1], ==, n[0] + 1);
    g_assert_cmpint(erdma_mr_fast_reg(qp->hca->e, RIG_PD, &reg), ==,
                    ERDMA_MR_OK);
}

/* One operation of each kind, both completions checked */
static void do_op(Rig *rig, RigQp *a, RigQp *b, uint8_t op, uint32_t len)
{
    bool is_read = op == ERDMA_OP_READ || op == ERDMA_OP_READ_WITH_INV;
    Buf src = buf_new(is_read ? b->hca : a->hca, len, RIG_ALL_RIGHTS);
    Buf dst = buf_new(is_read ? a->hca : b->hca, len, RIG_ALL_RIGHTS);
    uint64_t used[2] = { rig->hca[0].used, rig->hca[1].used };
    RigWr wr = {
        .op = op, .n_sges = 1, .imm = 0x11223344,
        .rkey = is_read ? src.key : dst.key,
        .raddr = is_read ? src.addr : dst.addr,
    };
    const uint64_t *count_invs = is_read ? &a->hca->e->stats.mr_read_invs
                                         : &b->hca->e->stats.mr_remote_invs;
    uint64_t n_invs[2] = { *count_invs };
    uint16_t si, ri = 0;
    uint8_t rop = 0xff;
    RigCqe cqe;

    wr.sges[0] = is_read ? (RigSge) { dst.addr, len, dst.key }
                         : (RigSge) { src.addr, len, src.key };
    buf_fill(&src, len + op);
    if (op == ERDMA_OP_READ_WITH_INV) {
        /* with an old key byte, as Linux's storage targets do it */
        wr.inv_key = frmr_valid(a->hca, a) - 1;
    } else if (op == ERDMA_OP_SEND_WITH_INV) {
        wr.inv_key = frmr_valid(b->hca, b);
        rop = ERDMA_OP_RECV_INV;
    } else if (op == ERDMA_OP_SEND) {
        rop = ERDMA_OP_RECEIVE;
    } else if (op == ERDMA_OP_SEND_WITH_IMM) {
        rop = ERDMA_OP_RSP_SEND_IMM;
    } else if (op == ERDMA_OP_WRITE_WITH_IMM) {
        rop = ERDMA_OP_RECV_IMM;
    }
    if (rop != 0xff) {
        /* The key of an empty receive is stale. */
        bool is_empty = rop == ERDMA_OP_RECV_IMM || !len;

        ri = rig_post_recv(b, is_empty ? 0xdead : dst.addr,
                           is_empty ? 0 : len, is_empty ? 0xbad : dst.key);
    }
    rig->hca[0].watch_went_back = rig->hca[1].watch_went_back = false;
    dst.hca->watch = dst.addr;
    dst.hca->watch_len = len;
    dst.hca->watch_end = 0;
    si = rig_post_send(a, &wr);
    rig_run(rig, 60 * RIG_S);
    g_assert_false(dst.hca->watch_went_back);
    dst.hca->watch_len = 0;

    cqe = rig_next(&a->scq);
    g_assert_cmpuint(cqe.status, ==, 0);
    g_assert_cmpuint(cqe.opcode, ==, op);
    g_assert_cmpuint(cqe.qtype, ==, ERDMA_CQE_QTYPE_SQ);
    g_assert_cmpuint(cqe.index, ==, si);
    g_assert_cmpuint(cqe.qpn, ==, a->qpn);
    if (is_read) {
        g_assert_cmpuint(cqe.len, ==, len);
    }
    rig_expect_none(&a->scq);
    if (rop != 0xff) {
        cqe = rig_next(&b->rcq);
        g_assert_cmpuint(cqe.status, ==, 0);
        g_assert_cmpuint(cqe.opcode, ==, rop);
        g_assert_cmpuint(cqe.qtype, ==, ERDMA_CQE_QTYPE_RQ);
        g_assert_cmpuint(cqe.index, ==, ri);
        g_assert_cmpuint(cqe.qpn, ==, b->qpn);
        g_assert_cmpuint(cqe.len, ==, len);
        if (rop == ERDMA_OP_RECV_INV) {
            g_assert_cmphex(cqe.inv_key, ==, wr.inv_key);
        } else if (rop != ERDMA_OP_RECEIVE) {
            g_assert_cmphex(cqe.imm, ==, 0x11223344);
        }
    }
    rig_expect_none(&b->rcq);
    if (wr.inv_key) {
        n_invs[1] = *count_invs;
        check_is_invalid(is_read ? a : b, wr.inv_key, n_invs);
    }
    buf_check(&dst, &src);
    rig_dereg(src.hca, src.key);
    rig_dereg(dst.hca, dst.key);
    if (!wr.inv_key) {
        rig->hca[0].used = used[0] - len;
        rig->hca[1].used = used[1] - len;
    }
}

static void test_op(gconstpointer data)
{
    uint8_t op = GPOINTER_TO_UINT(data);
    Rig *rig = rig_new();
    RigQp *a, *b;
    unsigned i;

    rig_pair(rig, &a, &b);
    for (i = 0; i < ARRAY_SIZE(sizes); i++) {
        do_op(rig, a, b, op, sizes[i]);
    }
    /* and in the other direction */
    do_op(rig, b, a, op, 5000);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

static void test_lossy_op(gconstpointer data)
{
    uint8_t op = GPOINTER_TO_UINT(data);
    Rig *rig = rig_new();
    RigQp *a, *b;
    unsigned i;

    rig_pair(rig, &a, &b);
    rig_seed(rig, op + 1);
    rig->loss_percent = 10;
    rig->dup_percent = 5;
    rig->reorder_percent = 10;
    for (i = 0; i < ARRAY_SIZE(sizes) - 1; i++) {
        do_op(rig, a, b, op, sizes[i]);
    }
    do_op(rig, b, a, op, 200000);
    g_assert_cmpuint(rig->n_lost, >, 0);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

static void test_sges(void)
{
    static const uint8_t ops[] = {
        ERDMA_OP_SEND, ERDMA_OP_SEND_WITH_IMM, ERDMA_OP_WRITE,
        ERDMA_OP_WRITE_WITH_IMM,
    };
    Rig *rig = rig_new();
    unsigned o, n, i;
    RigQp *a, *b;
    Buf src, dst;

    rig_pair(rig, &a, &b);
    src = buf_new(&rig->hca[0], 30000, ERDMA_MR_ACC_LR);
    dst = buf_new(&rig->hca[1], 30000, ERDMA_MR_ACC_LW | ERDMA_MR_ACC_RW);
    buf_fill(&src, 1);
    for (o = 0; o < ARRAY_SIZE(ops); o++) {
        for (n = 0; n <= ERDMA_MAX_SEND_SGE; n++) {
            RigWr wr = { .op = ops[o], .n_sges = n, .rkey = dst.key,
                         .raddr = dst.addr };
            uint32_t total = 0;
            uint16_t index;
            RigCqe cqe;

            buf_clear(&dst);
            for (i = 0; i < n; i++) {
                /* one of them empty, with a key that means nothing */
                wr.sges[i] = (RigSge) { src.addr + total, 1700 * i + n,
                                        src.key };
                if (i == 1) {
                    wr.sges[i] = (RigSge) { 1, 0, 0x31337 };
                }
                total += wr.sges[i].len;
            }
            rig_post_recv(b, dst.addr, dst.len, dst.key);
            index = rig_post_send(a, &wr);
            rig_run(rig, RIG_S);
            rig_expect(&a->scq, ops[o], 0, index);
            if (rig_poll(&b->rcq, &cqe)) {
                g_assert_cmpuint(cqe.len, ==, total);
            }
            g_assert_cmpint(memcmp(rig_ptr(&rig->hca[0], src.addr),
                                   rig_ptr(&rig->hca[1], dst.addr), total),
                            ==, 0);
            g_assert_cmphex(*(uint8_t *)rig_ptr(&rig->hca[1],
                                                dst.addr + total), ==, 0xee);
        }
    }
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

static void test_inline(void)
{
    static const uint8_t ops[] = { ERDMA_OP_SEND, ERDMA_OP_WRITE };
    Rig *rig = rig_new();
    uint8_t data[96];
    unsigned o, n;
    RigQp *a, *b;
    Buf dst;

    rig_pair(rig, &a, &b);
    dst = buf_new(&rig->hca[1], 96, ERDMA_MR_ACC_LW | ERDMA_MR_ACC_RW);
    for (o = 0; o < ARRAY_SIZE(ops); o++) {
        for (n = 0; n <= sizeof(data); n++) {
            RigWr wr = { .op = ops[o], .inline_data = data, .inline_len = n,
                         .rkey = dst.key, .raddr = dst.addr };
            uint16_t index;

            buf_clear(&dst);
            memset(data, n + 1, sizeof(data));
            if (ops[o] == ERDMA_OP_SEND) {
                rig_post_recv(b, dst.addr, dst.len, dst.key);
            }
            index = rig_post_send(a, &wr);
            /* The slot is the guest's only after the completion. */
            rig_run(rig, RIG_S);
            rig_expect(&a->scq, ops[o], 0, index);
            g_assert_cmpint(memcmp(data, rig_ptr(&rig->hca[1], dst.addr), n),
                            ==, 0);
            g_assert_cmphex(*(uint8_t *)rig_ptr(&rig->hca[1], dst.addr + n),
                            ==, 0xee);
        }
    }
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* Indices run past 65535, entries over the end of the ring; deep queue */
static void test_wrap(void)
{
    Rig *rig = rig_new();
    unsigned posted = 0, done = 0, received = 0, i;
    uint16_t index[64];
    RigQp *a, *b;
    Buf src, dst;
    RigCqe cqe;

    rig_pair(rig, &a, &b);
    src = buf_new(&rig->hca[0], 4096, ERDMA_MR_ACC_LR);
    dst = buf_new(&rig->hca[1], 4096, ERDMA_MR_ACC_LW);
    for (i = 0; i < 32; i++) {
        rig_post_recv(b, dst.addr, dst.len, dst.key);
    }
    while (done < 30000) {
        while (posted - done < 60 && posted < 30000) {
            RigWr wr = { .op = ERDMA_OP_SEND_WITH_IMM, .imm = posted,
                         .n_sges = 1 + posted % 5 };

            for (i = 0; i < wr.n_sges; i++) {
                wr.sges[i] = (RigSge) { src.addr, 1 + posted % 100, src.key };
            }
            index[posted % 64] = rig_post_send(a, &wr);
            posted++;
        }
        rig_run(rig, 200 * RIG_US);
        while (rig_poll(&a->scq, &cqe)) {
            g_assert_cmpuint(cqe.status, ==, 0);
            g_assert_cmpuint(cqe.index, ==, index[done % 64]);
            done++;
        }
        while (rig_poll(&b->rcq, &cqe)) {
            g_assert_cmpuint(cqe.status, ==, 0);
            g_assert_cmpuint(cqe.imm, ==, received);
            g_assert_cmpuint(cqe.index & 63, ==, received % 64);
            received++;
            rig_post_recv(b, dst.addr, dst.len, dst.key);
        }
    }
    rig_run(rig, RIG_S);
    rig_expect_none(&a->scq);
    g_assert_cmpuint(received, ==, 30000);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* Only signalled entries are reported, and all of them are executed. */
static void test_unsignalled(void)
{
    Rig *rig = rig_new();
    RigQp *a, *b;
    Buf src, dst;
    unsigned i;

    rig_pair(rig, &a, &b);
    src = buf_new(&rig->hca[0], 64, ERDMA_MR_ACC_LR);
    dst = buf_new(&rig->hca[1], 64, ERDMA_MR_ACC_RW);
    buf_fill(&src, 3);
    for (i = 0; i < 64; i++) {
        RigWr wr = { .op = ERDMA_OP_WRITE, .n_sges = 1, .rkey = dst.key,
                     .raddr = dst.addr + i, .is_unsignalled = i % 16 != 15,
                     .sges = { { src.addr + i, 1, src.key } } };
        uint16_t index = rig_post_send(a, &wr);

        if (i % 16 == 15) {
            rig_run(rig, RIG_S);
            rig_expect(&a->scq, ERDMA_OP_WRITE, 0, index);
            rig_expect_none(&a->scq);
        }
    }
    buf_check(&dst, &src);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

static uint64_t counter_at(Buf *b)
{
    return ldq_le_p(rig_ptr(b->hca, b->addr));
}

static void test_atomics(void)
{
    Rig *rig = rig_new();
    uint64_t aligned;
    RigQp *a, *b;
    Buf old, mem;
    RigWr wr;
    RigCqe cqe;

    rig_pair(rig, &a, &b);
    old = buf_new(&rig->hca[0], 8, ERDMA_MR_ACC_LW);
    mem.hca = &rig->hca[1];
    mem.addr = aligned = rig_alloc(&rig->hca[1], 64);
    mem.key = rig_mr(&rig->hca[1], aligned, 64, ERDMA_MR_ACC_RA);
    stq_le_p(rig_ptr(mem.hca, aligned), 0x1122334455667788ull);

    wr = (RigWr) { .op = ERDMA_OP_ATOMIC_FAA, .n_sges = 1, .rkey = mem.key,
                   .raddr = aligned, .swap_add = 0x0100000000000001ull,
                   .compare = 99, .sges = { { old.addr, 8, old.key } } };
    rig_post_send(a, &wr);
    rig_run(rig, RIG_S);
    cqe = rig_next(&a->scq);
    g_assert_cmpuint(cqe.opcode, ==, ERDMA_OP_ATOMIC_FAA);
    g_assert_cmpuint(cqe.status, ==, 0);
    g_assert_cmpuint(cqe.len, ==, 8);
    g_assert_cmphex(counter_at(&old), ==, 0x1122334455667788ull);
    g_assert_cmphex(counter_at(&mem), ==, 0x1222334455667789ull);

    wr.op = ERDMA_OP_ATOMIC_CAS;
    wr.compare = 1;
    wr.swap_add = 5;
    rig_post_send(a, &wr);
    rig_run(rig, RIG_S);
    g_assert_cmpuint(rig_next(&a->scq).status, ==, 0);
    g_assert_cmphex(counter_at(&old), ==, 0x1222334455667789ull);
    g_assert_cmphex(counter_at(&mem), ==, 0x1222334455667789ull);

    wr.compare = 0x1222334455667789ull;
    rig_post_send(a, &wr);
    rig_run(rig, RIG_S);
    g_assert_cmpuint(rig_next(&a->scq).status, ==, 0);
    g_assert_cmphex(counter_at(&old), ==, 0x1222334455667789ull);
    g_assert_cmphex(counter_at(&mem), ==, 5);
    rig_expect_none(&a->scq);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* Each addition happens once, and each answer is a different number. */
static void test_atomics_lossy(void)
{
    enum { N = 2000 };
    Rig *rig = rig_new();
    unsigned posted = 0, done = 0, rounds = 0;
    g_autofree bool *seen = g_new0(bool, N);
    RigQp *a, *b;
    Buf old, mem;
    RigCqe cqe;

    rig_pair(rig, &a, &b);
    rig_seed(rig, 77);
    rig->loss_percent = 15;
    rig->dup_percent = 10;
    rig->reorder_percent = 10;
    old = buf_new(&rig->hca[0], 8 * N, ERDMA_MR_ACC_LW);
    mem.hca = &rig->hca[1];
    mem.addr = rig_alloc(&rig->hca[1], 64);
    mem.key = rig_mr(&rig->hca[1], mem.addr, 64, ERDMA_MR_ACC_RA);
    memset(rig_ptr(mem.hca, mem.addr), 0, 8);
    while (done < N) {
        while (posted < N && posted - done < 100) {
            RigWr wr = { .op = ERDMA_OP_ATOMIC_FAA, .n_sges = 1,
                         .rkey = mem.key, .raddr = mem.addr, .swap_add = 1,
                         .sges = { { old.addr + 8 * posted, 8, old.key } } };

            rig_post_send(a, &wr);
            posted++;
        }
        rig_run(rig, RIG_MS);
        while (rig_poll(&a->scq, &cqe)) {
            uint64_t v;

            g_assert_cmpuint(cqe.status, ==, 0);
            v = ldq_le_p(rig_ptr(old.hca, old.addr + 8 * done));
            g_assert_cmpuint(v, <, N);
            g_assert_false(seen[v]);
            seen[v] = true;
            done++;
        }
        g_assert_cmpuint(rounds++, <, 600000);
    }
    g_assert_cmpuint(counter_at(&mem), ==, N);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/*
 * A receiver that polls a counter, which the sender raises after each of its
 * writes, finds the data whole whenever the counter has moved.
 */
static void test_counter_after_data(void)
{
    enum { N = 10000, LEN = 65536 };
    Rig *rig = rig_new();
    RigHca *receiver = &rig->hca[1];
    Buf data, old, dst, counter;
    unsigned round, spins;
    RigQp *a, *b;
    RigCqe cqe;

    rig_pair(rig, &a, &b);
    rig_seed(rig, 12);
    rig->loss_percent = 1;
    rig->reorder_percent = 5;
    data = buf_new(&rig->hca[0], LEN, ERDMA_MR_ACC_LR);
    old = buf_new(&rig->hca[0], 8, ERDMA_MR_ACC_LW);
    dst = buf_new(receiver, LEN, ERDMA_MR_ACC_RW);
    counter.hca = receiver;
    counter.addr = rig_alloc(receiver, 64);
    counter.key = rig_mr(receiver, counter.addr, 64, ERDMA_MR_ACC_RA);
    memset(rig_ptr(receiver, counter.addr), 0, 8);
    for (round = 1; round <= N; round++) {
        RigWr write = { .op = ERDMA_OP_WRITE, .is_unsignalled = true,
                        .n_sges = 1, .rkey = dst.key, .raddr = dst.addr,
                        .sges = { { data.addr, LEN, data.key } } };
        RigWr raise = { .op = ERDMA_OP_ATOMIC_FAA, .n_sges = 1,
                        .rkey = counter.key, .raddr = counter.addr,
                        .swap_add = 1, .sges = { { old.addr, 8, old.key } } };

        memset(rig_ptr(data.hca, data.addr), round, LEN);
        rig_post_send(a, &write);
        rig_post_send(a, &raise);
        for (spins = 0; counter_at(&counter) < round; spins++) {
            g_assert_cmpuint(spins, <, 1000000);
            rig_run(rig, 5 * RIG_US);
        }
        g_assert_cmpint(memcmp(rig_ptr(receiver, dst.addr),
                               rig_ptr(data.hca, data.addr), LEN), ==, 0);
        while (!rig_poll(&a->scq, &cqe)) {
            rig_run(rig, RIG_MS);
        }
        g_assert_cmpuint(cqe.status, ==, 0);
    }
    g_assert_cmpuint(rig->n_lost, >, N / 10);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* Both directions at once, mixed operations, loss: a storm to survive */
static void test_bidirectional(void)
{
    enum { N = 600, LEN = 3000 };
    Rig *rig = rig_new();
    unsigned posted[2] = { 0 }, done[2] = { 0 }, got[2] = { 0 }, rounds = 0;
    RigQp *qp[2];
    Buf src[2], dst[2];
    RigCqe cqe;
    unsigned i;

    rig_pair(rig, &qp[0], &qp[1]);
    rig_seed(rig, 5);
    rig->loss_percent = 5;
    rig->reorder_percent = 5;
    for (i = 0; i < 2; i++) {
        src[i] = buf_new(&rig->hca[i], LEN, RIG_ALL_RIGHTS);
        dst[i] = buf_new(&rig->hca[i], LEN, RIG_ALL_RIGHTS);
        buf_fill(&src[i], 8 + i);
    }
    for (i = 0; i < 2 * 40; i++) {
        rig_post_recv(qp[i & 1], dst[i & 1].addr, LEN, dst[i & 1].key);
    }
    while (done[0] + done[1] < 2 * N) {
        for (i = 0; i < 2; i++) {
            while (posted[i] < N && posted[i] - done[i] < 50) {
                static const uint8_t ops[] = {
                    ERDMA_OP_SEND, ERDMA_OP_READ, ERDMA_OP_WRITE,
                    ERDMA_OP_SEND_WITH_IMM, ERDMA_OP_WRITE_WITH_IMM,
                };
                uint8_t op = ops[posted[i] % 5];
                RigWr wr = { .op = op, .n_sges = 1, .imm = posted[i],
                             .rkey = dst[!i].key, .raddr = dst[!i].addr,
                             .is_fenced = posted[i] % 7 == 0,
                             .sges = { { src[i].addr, LEN, src[i].key } } };

                if (op == ERDMA_OP_READ) {
                    wr.rkey = src[!i].key;
                    wr.raddr = src[!i].addr;
                    wr.sges[0] = (RigSge) { dst[i].addr, LEN, dst[i].key };
                }
                rig_post_send(qp[i], &wr);
                posted[i]++;
            }
        }
        rig_run(rig, RIG_MS);
        for (i = 0; i < 2; i++) {
            while (rig_poll(&qp[i]->scq, &cqe)) {
                g_assert_cmpuint(cqe.status, ==, 0);
                done[i]++;
            }
            while (rig_poll(&qp[i]->rcq, &cqe)) {
                g_assert_cmpuint(cqe.status, ==, 0);
                g_assert_cmpuint(cqe.len, ==, LEN);
                got[i]++;
                rig_post_recv(qp[i], dst[i].addr, LEN, dst[i].key);
            }
        }
        g_assert_cmpuint(rounds++, <, 600000);
    }
    for (i = 0; i < 2; i++) {
        rig_expect_none(&qp[i]->scq);
        g_assert_cmpuint(got[i], ==, N / 5 * 3);
        buf_check(&dst[i], &src[!i]);
        rig_qp_free(qp[i]);
    }
    rig_free(rig);
}

/* Both ends on one HCA */
static void test_loopback(void)
{
    Rig *rig = rig_new();
    RigHca *hca = &rig->hca[0];
    RigQp *a = rig_qp(hca, 5, NULL), *b = rig_qp(hca, 6, NULL);
    Buf src = buf_new(hca, 9000, RIG_ALL_RIGHTS);
    Buf dst = buf_new(hca, 9000, RIG_ALL_RIGHTS);
    RigWr wr = { .op = ERDMA_OP_SEND, .n_sges = 1,
                 .sges = { { src.addr, src.len, src.key } } };

    rig_connect(a, b);
    buf_fill(&src, 4);
    rig_post_recv(b, dst.addr, dst.len, dst.key);
    rig_post_send(a, &wr);
    rig_run(rig, RIG_S);
    rig_expect(&a->scq, ERDMA_OP_SEND, 0, 0);
    rig_expect(&b->rcq, ERDMA_OP_RECEIVE, 0, 0);
    buf_check(&dst, &src);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

/* What the passive side sends early waits for the active one. */
static void test_early_data(void)
{
    Rig *rig = rig_new();
    RigQp *a = rig_qp(&rig->hca[0], 5, NULL);
    RigQp *b = rig_qp(&rig->hca[1], 9, NULL);
    RigWr wr = { .op = ERDMA_OP_SEND };

    g_assert_cmpuint(rig_modify(b, ERDMA_QPS_RTS, a), ==, 0);
    rig_post_send(b, &wr);
    rig_run(rig, 2 * RIG_MS);
    rig_expect_none(&b->scq);
    rig_post_recv(a, 0, 0, 0);
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_RTS, b), ==, 0);
    rig_run(rig, 5 * RIG_S);
    rig_expect(&b->scq, ERDMA_OP_SEND, 0, 0);
    rig_expect(&a->rcq, ERDMA_OP_RECEIVE, 0, 0);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint8_t op;
    } ops[] = {
        { "send", ERDMA_OP_SEND },
        { "send-imm", ERDMA_OP_SEND_WITH_IMM },
        { "send-inv", ERDMA_OP_SEND_WITH_INV },
        { "write", ERDMA_OP_WRITE },
        { "write-imm", ERDMA_OP_WRITE_WITH_IMM },
        { "read", ERDMA_OP_READ },
        { "read-inv", ERDMA_OP_READ_WITH_INV },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        g_autofree char *path = g_strdup_printf("/pair/%s", ops[i].name);
        g_autofree char *lossy = g_strdup_printf("/pair/lossy/%s",
                                                 ops[i].name);

        g_test_add_data_func(path, GUINT_TO_POINTER(ops[i].op), test_op);
        g_test_add_data_func(lossy, GUINT_TO_POINTER(ops[i].op),
                             test_lossy_op);
    }
    g_test_add_func("/pair/sges", test_sges);
    g_test_add_func("/pair/inline", test_inline);
    g_test_add_func("/pair/wrap", test_wrap);
    g_test_add_func("/pair/unsignalled", test_unsignalled);
    g_test_add_func("/pair/atomics", test_atomics);
    g_test_add_func("/pair/atomics-lossy", test_atomics_lossy);
    g_test_add_func("/pair/counter-after-data", test_counter_after_data);
    g_test_add_func("/pair/bidirectional", test_bidirectional);
    g_test_add_func("/pair/loopback", test_loopback);
    g_test_add_func("/pair/early-data", test_early_data);
    return g_test_run();
}
