/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: every operation and size, by content;
 * between two devices on one hub, and between two QPs of one device.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define PDN         3
#define BUF_SIZE    (1024 * 1024 + 4096)
#define GUARD       16

typedef struct Setup {
    const char *name;
    bool is_loopback;
    bool is_user;
    QErdmaFlavor flavor;
} Setup;

static const Setup setups[] = {
    { "two-kernel", false, false, QERDMA_LINUX_7_3 },
    { "two-user", false, true, QERDMA_LINUX_7_3 },
    { "two-kernel-6.1", false, false, QERDMA_LINUX_6_1 },
    { "loopback-user", true, true, QERDMA_LINUX_7_3 },
    { "loopback-user-6.1", true, true, QERDMA_LINUX_6_1 },
};

typedef struct Fixture {
    QErdma *d[2];
    bool is_loopback;
    QErdmaPair p;
    QErdmaMr mr[2];
} Fixture;

static void setup(Fixture *f, const Setup *s)
{
    QErdmaOptions opt = { .flavor = s->flavor };
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->is_loopback = s->is_loopback;
    if (s->is_loopback) {
        f->d[0] = f->d[1] = qerdma_boot_one(NULL);
        qerdma_start(f->d[0], &opt);
    } else {
        qerdma_boot_two(f->d, NULL, NULL);
        qerdma_meet(f->d);
        qerdma_start(f->d[0], &opt);
        qerdma_start(f->d[1], &opt);
    }
    qerdma_pair_init(&f->p, f->d[0], f->d[1], PDN, s->is_user);
    for (i = 0; i < 2; i++) {
        qerdma_reg_simple(f->d[i], &f->mr[i], PDN, BUF_SIZE, QERDMA_ACC_ALL);
    }
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d[0], f->is_loopback ? NULL : f->d[1]);
}

static QErdmaSge sge_of(const QErdmaMr *mr, uint64_t off, uint32_t len)
{
    return (QErdmaSge) { mr->addr + off, len, mr->key };
}

/* Posts on QP 0 and waits. */
static void run(Fixture *f, const QErdmaSend *wr)
{
    uint16_t index = qerdma_post_send(&f->p.qp[0], wr);

    qerdma_expect_send(&f->p.qp[0], index, wr->opcode, ERDMA_WC_SUCCESS);
}

/* ---- every size ---- */

static const uint32_t sizes[] = {
    0, 1, 31, 32, 95, 96, 97, 1023, 1024, 1399, 1400, 1401, 1439, 1440, 1441,
    1471, 1472, 1473, 1499, 1500, 1501, 4096, 65536, 1024 * 1024 + 1,
};

static void set_guards(QErdma *d, uint64_t addr, uint32_t len)
{
    qtest_memset(d->qts, addr - GUARD, 0xee, GUARD);
    qtest_memset(d->qts, addr, 0, len);
    qtest_memset(d->qts, addr + len, 0xee, GUARD);
}

static void check_guards(QErdma *d, uint64_t addr, uint32_t len)
{
    unsigned i;

    for (i = 0; i < GUARD; i += 8) {
        g_assert_cmphex(qtest_readq(d->qts, addr - GUARD + i), ==,
                        0xeeeeeeeeeeeeeeeeull);
        g_assert_cmphex(qtest_readq(d->qts, addr + len + i), ==,
                        0xeeeeeeeeeeeeeeeeull);
    }
}

static bool is_send(uint8_t opcode)
{
    return opcode == ERDMA_OP_SEND || opcode == ERDMA_OP_SEND_WITH_IMM;
}

static bool has_imm(uint8_t opcode)
{
    return opcode == ERDMA_OP_SEND_WITH_IMM ||
        opcode == ERDMA_OP_WRITE_WITH_IMM;
}

static uint8_t recv_opcode(uint8_t opcode)
{
    switch (opcode) {
    case ERDMA_OP_SEND_WITH_IMM:
        return ERDMA_OP_RSP_SEND_IMM;
    case ERDMA_OP_WRITE_WITH_IMM:
        return ERDMA_OP_RECV_IMM;
    default:
        return ERDMA_OP_RECEIVE;
    }
}

/* Moves @len bytes from an odd address to another one and looks at both. */
static void try_size(Fixture *f, uint8_t opcode, uint32_t len, bool is_inline,
                     uint32_t seed)
{
    bool is_read = opcode == ERDMA_OP_READ;
    unsigned from = is_read ? 1 : 0;
    uint32_t src = 100 + seed % 64;
    uint32_t dst = 1000 + seed % 61;
    g_autofree uint8_t *data = g_malloc(len + 1);
    QErdmaSend wr = {
        .opcode = opcode,
        .n_sges = 1,
        .sges[0] = sge_of(&f->mr[0], is_read ? dst : src, len),
        .raddr = f->mr[1].addr + (is_read ? src : dst),
        .rkey = f->mr[1].key,
        .imm = 0x11223344 + seed,
        .is_inline = is_inline,
        .data = data,
        .data_len = len,
    };
    QErdma *to = f->d[!from];
    uint64_t at = f->mr[!from].mem + dst;
    uint16_t position = 0;
    uint8_t imm[4];
    QErdmaWc wc;

    qerdma_pattern(data, len, seed);
    set_guards(to, at, len);
    if (is_inline) {
        wr.n_sges = 0;
    } else {
        qerdma_fill(f->d[from], f->mr[from].mem + src, len, seed);
    }
    if (is_send(opcode)) {
        position = qerdma_post_recv(&f->p.qp[1], f->mr[1].addr + dst, len,
                                    f->mr[1].key);
    } else if (has_imm(opcode)) {
        position = qerdma_post_recv(&f->p.qp[1], 0, 0, 0);
    }
    run(f, &wr);
    if (is_send(opcode) || has_imm(opcode)) {
        qerdma_expect_recv(&f->p.qp[1], position, recv_opcode(opcode), 0,
                           len, &wc);
        if (has_imm(opcode)) {
            /* big-endian in the request, little-endian here */
            stl_le_p(imm, 0x11223344 + seed);
            g_assert_cmpmem(wc.imm_raw, 4, imm, 4);
        }
    }
    qerdma_check(to, at, len, seed);
    check_guards(to, at, len);
}

static void test_sizes(const void *opaque)
{
    static const uint8_t ops[] = {
        ERDMA_OP_WRITE, ERDMA_OP_WRITE_WITH_IMM, ERDMA_OP_SEND,
        ERDMA_OP_SEND_WITH_IMM, ERDMA_OP_READ,
    };
    const Setup *s = opaque;
    Fixture f;
    unsigned i, j;

    setup(&f, opaque);
    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        for (j = 0; j < ARRAY_SIZE(sizes); j++) {
            /* the largest take longest, and know no driver versions */
            if (s->flavor == QERDMA_LINUX_7_3 || sizes[j] <= 65536) {
                try_size(&f, ops[i], sizes[j], false, i * 100 + j);
            }
        }
    }
    teardown(&f);
}

static void test_inline(const void *opaque)
{
    static const uint8_t ops[] = {
        ERDMA_OP_WRITE, ERDMA_OP_WRITE_WITH_IMM, ERDMA_OP_SEND,
        ERDMA_OP_SEND_WITH_IMM,
    };
    static const uint32_t lens[] = {
        0, 1, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 79, 80, 81, 95, 96,
    };
    Fixture f;
    unsigned i, j;

    setup(&f, opaque);
    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        for (j = 0; j < ARRAY_SIZE(lens); j++) {
            try_size(&f, ops[i], lens[j], true, i * 100 + j);
        }
    }
    teardown(&f);
}

/*
 * The flag is copied from the request for every opcode.  Where there is
 * nothing to be inline it means nothing.
 */
static void test_inline_flag(const void *opaque)
{
    Fixture f;
    QErdmaSend wr = {
        .opcode = ERDMA_OP_READ, .is_inline = true, .n_sges = 1,
    };

    setup(&f, opaque);
    qerdma_fill(f.d[1], f.mr[1].mem, 5000, 1);
    wr.sges[0] = sge_of(&f.mr[0], 7, 5000);
    wr.raddr = f.mr[1].addr;
    wr.rkey = f.mr[1].key;
    run(&f, &wr);
    qerdma_check(f.d[0], f.mr[0].mem + 7, 5000, 1);

    wr.opcode = ERDMA_OP_ATOMIC_FAA;
    wr.sges[0].len = 8;
    wr.swap_add = 1;
    run(&f, &wr);
    qerdma_check(f.d[0], f.mr[0].mem + 7, 8, 1);
    teardown(&f);
}

/* One to six pieces, of odd lengths, some of them empty */
static void test_sges(const void *opaque)
{
    static const uint32_t lens[][ERDMA_MAX_SEND_SGE] = {
        { 1, 2, 3, 4, 5, 6 },
        { 0, 700, 0, 1, 3000, 0 },
        { 1460, 1460, 1, 1459, 8, 20000 },
    };
    Fixture f;
    unsigned n, i, t;

    setup(&f, opaque);
    for (t = 0; t < 2 * ARRAY_SIZE(lens); t++) {
        for (n = 0; n <= ERDMA_MAX_SEND_SGE; n++) {
            QErdmaSend wr = {
                .opcode = t & 1 ? ERDMA_OP_SEND : ERDMA_OP_WRITE,
                .n_sges = n, .raddr = f.mr[1].addr, .rkey = f.mr[1].key,
            };
            uint32_t seed = t * 10 + n;
            g_autofree uint8_t *data = NULL;
            uint32_t len = 0;

            for (i = 0; i < n; i++) {
                len += lens[t / 2][i];
            }
            data = g_malloc(len + 1);
            qerdma_pattern(data, len, seed);
            len = 0;
            for (i = 0; i < n; i++) {
                /* the later the piece, the lower it lies */
                uint32_t at = (6 - i) * 40000 + i;

                wr.sges[i] = sge_of(&f.mr[0], at, lens[t / 2][i]);
                qtest_memwrite(f.d[0]->qts, f.mr[0].mem + at, data + len,
                               lens[t / 2][i]);
                len += lens[t / 2][i];
            }
            if (t & 1) {
                qerdma_post_recv(&f.p.qp[1], f.mr[1].addr, len, f.mr[1].key);
            }
            run(&f, &wr);
            qerdma_check(f.d[1], f.mr[1].mem, len, seed);
        }
    }
    teardown(&f);
}

/* ---- atomics ---- */

static uint64_t atomic(Fixture *f, uint8_t opcode, uint64_t a, uint64_t b)
{
    QErdmaSend wr = {
        .opcode = opcode, .n_sges = 1, .sges[0] = sge_of(&f->mr[0], 3, 8),
        .raddr = f->mr[1].addr + 64, .rkey = f->mr[1].key,
        .swap_add = a, .compare = b,
    };

    qtest_memset(f->d[0]->qts, f->mr[0].mem, 0xcc, 16);
    run(f, &wr);
    g_assert_cmphex(qtest_readb(f->d[0]->qts, f->mr[0].mem + 2), ==, 0xcc);
    g_assert_cmphex(qtest_readb(f->d[0]->qts, f->mr[0].mem + 11), ==, 0xcc);
    return qtest_readq(f->d[0]->qts, f->mr[0].mem + 3);
}

static void test_atomics(const void *opaque)
{
    const uint64_t x = 0x0123456789abcdefull;
    Fixture f;
    uint64_t mem;

    setup(&f, opaque);
    mem = f.mr[1].mem + 64;
    qtest_writeq(f.d[1]->qts, mem, x);
    qtest_writeq(f.d[1]->qts, mem + 8, UINT64_MAX);

    g_assert_cmphex(atomic(&f, ERDMA_OP_ATOMIC_FAA, 0x11, 0), ==, x);
    g_assert_cmphex(qtest_readq(f.d[1]->qts, mem), ==, x + 0x11);
    g_assert_cmphex(atomic(&f, ERDMA_OP_ATOMIC_FAA, -0x11ull, 0), ==,
                    x + 0x11);
    g_assert_cmphex(qtest_readq(f.d[1]->qts, mem), ==, x);
    /* no match */
    g_assert_cmphex(atomic(&f, ERDMA_OP_ATOMIC_CAS, 5, x + 1), ==, x);
    g_assert_cmphex(qtest_readq(f.d[1]->qts, mem), ==, x);
    /* a match */
    g_assert_cmphex(atomic(&f, ERDMA_OP_ATOMIC_CAS, 5, x), ==, x);
    g_assert_cmphex(qtest_readq(f.d[1]->qts, mem), ==, 5);
    g_assert_cmphex(qtest_readq(f.d[1]->qts, mem + 8), ==, UINT64_MAX);
    teardown(&f);
}

/* More than may be under way at a time; each happens exactly once. */
static void test_many_atomics(const void *opaque)
{
    enum { N = 300 };
    Fixture f;
    QErdmaSend wr = { .opcode = ERDMA_OP_ATOMIC_FAA, .n_sges = 1 };
    QErdmaQp *qp = &f.p.qp[0];
    uint16_t index[N];
    unsigned i;

    setup(&f, opaque);
    f.p = (QErdmaPair) { .qp[0].sq_log2 = 10, .cq[0].log2 = 10 };
    qerdma_pair_create(&f.p, f.d[0], f.d[1], PDN, false);
    qerdma_connect(&f.p.qp[0], &f.p.qp[1]);
    wr.raddr = f.mr[1].addr;
    wr.rkey = f.mr[1].key;
    wr.swap_add = 1ull << 32 | 1;
    for (i = 0; i < N; i++) {
        wr.sges[0] = sge_of(&f.mr[0], i * 8, 8);
        index[i] = qerdma_queue_send(qp, &wr);
    }
    qerdma_sq_db(qp);
    for (i = 0; i < N; i++) {
        qerdma_expect_send(qp, index[i], wr.opcode, 0);
    }
    for (i = 0; i < N; i++) {
        g_assert_cmphex(qtest_readq(f.d[0]->qts, f.mr[0].mem + i * 8), ==,
                        (1ull << 32 | 1) * i);
    }
    g_assert_cmphex(qtest_readq(f.d[1]->qts, f.mr[1].mem), ==,
                    (1ull << 32 | 1) * N);
    teardown(&f);
}

/* ---- order ---- */

/* A fenced write takes its bytes only when the read before it is done. */
static void test_fence(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend read = { .opcode = ERDMA_OP_READ, .n_sges = 1 };
    QErdmaSend write = {
        .opcode = ERDMA_OP_WRITE, .is_fenced = true, .n_sges = 1,
    };
    uint16_t first, second;

    setup(&f, opaque);
    qerdma_fill(f.d[1], f.mr[1].mem, 300000, 1);
    read.sges[0] = write.sges[0] = sge_of(&f.mr[0], 0, 300000);
    read.raddr = f.mr[1].addr;
    write.raddr = f.mr[1].addr + 400000;
    read.rkey = write.rkey = f.mr[1].key;
    first = qerdma_queue_send(qp, &read);
    second = qerdma_queue_send(qp, &write);
    qerdma_sq_db(qp);
    qerdma_expect_send(qp, first, ERDMA_OP_READ, 0);
    qerdma_expect_send(qp, second, ERDMA_OP_WRITE, 0);
    qerdma_check(f.d[1], f.mr[1].mem + 400000, 300000, 1);
    teardown(&f);
}

/* A slow read in front of quick writes still completes first. */
static void test_order(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr = { .n_sges = 1 };
    uint16_t index[8];
    unsigned i;

    setup(&f, opaque);
    wr.rkey = f.mr[1].key;
    wr.raddr = f.mr[1].addr;
    for (i = 0; i < 8; i++) {
        wr.opcode = i % 4 ? ERDMA_OP_WRITE : ERDMA_OP_READ;
        wr.sges[0] = sge_of(&f.mr[0], i * 65536, i % 4 ? 8 : 60000);
        index[i] = qerdma_queue_send(qp, &wr);
    }
    qerdma_sq_db(qp);
    for (i = 0; i < 8; i++) {
        qerdma_expect_send(qp, index[i],
                           i % 4 ? ERDMA_OP_WRITE : ERDMA_OP_READ, 0);
    }
    teardown(&f);
}

/* Only what asks for a completion gets one. */
static void test_silent(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    QErdmaSend wr = {
        .opcode = ERDMA_OP_WRITE, .is_inline = true, .data_len = 4,
    };
    uint16_t index = 0;
    uint32_t i;

    setup(&f, opaque);
    wr.rkey = f.mr[1].key;
    for (i = 0; i < 30; i++) {
        wr.raddr = f.mr[1].addr + i * 4;
        wr.data = &i;
        wr.is_silent = i % 10 != 9;
        index = qerdma_post_send(qp, &wr);
        if (i % 10 == 9) {
            qerdma_expect_send(qp, index, ERDMA_OP_WRITE, 0);
        }
    }
    for (i = 0; i < 30; i++) {
        g_assert_cmpuint(qtest_readl(f.d[1]->qts, f.mr[1].mem + i * 4), ==, i);
    }
    qerdma_expect_no_cqe(&f.p.cq[0]);
    teardown(&f);
}

/* Both directions, all operations, several QPs at once */
static void test_crowd(const void *opaque)
{
    enum { N_PAIRS = 8, LEN = 20000 };
    const Setup *s = opaque;
    Fixture f;
    g_autofree QErdmaPair *p = g_new0(QErdmaPair, N_PAIRS);
    unsigned i, side;

    setup(&f, opaque);
    qerdma_fill(f.d[0], f.mr[0].mem, N_PAIRS * LEN, 1);
    qerdma_fill(f.d[1], f.mr[1].mem, N_PAIRS * LEN, 2);
    for (i = 0; i < N_PAIRS; i++) {
        qerdma_pair_init(&p[i], f.d[0], f.d[1], PDN, s->is_user);
    }
    for (i = 0; i < N_PAIRS; i++) {
        for (side = 0; side < 2; side++) {
            QErdmaSend wr = {
                .opcode = (i + side) % 2 ? ERDMA_OP_READ : ERDMA_OP_WRITE,
                .n_sges = 1,
                .rkey = f.mr[!side].key,
            };
            uint32_t from = i * LEN;
            uint32_t to = (N_PAIRS + i) * LEN;

            if (wr.opcode == ERDMA_OP_READ) {
                wr.sges[0] = sge_of(&f.mr[side], to, LEN);
                wr.raddr = f.mr[!side].addr + from;
            } else {
                wr.sges[0] = sge_of(&f.mr[side], from, LEN);
                wr.raddr = f.mr[!side].addr + to;
            }
            qerdma_post_send(&p[i].qp[side], &wr);
        }
    }
    for (i = 0; i < N_PAIRS; i++) {
        for (side = 0; side < 2; side++) {
            qerdma_expect_send(&p[i].qp[side], 0, (i + side) % 2 ?
                               ERDMA_OP_READ : ERDMA_OP_WRITE, 0);
        }
    }
    for (i = 0; i < N_PAIRS; i++) {
        /* even pairs: side 0 writes, side 1 reads; both fill side 1 */
        unsigned to = !(i % 2);
        g_autofree uint8_t *want = g_malloc(N_PAIRS * LEN);
        g_autofree uint8_t *have = g_malloc(LEN);

        qerdma_pattern(want, N_PAIRS * LEN, to ? 1 : 2);
        qtest_bufread(f.d[to]->qts, f.mr[to].mem + (N_PAIRS + i) * LEN, have,
                      LEN);
        g_assert_cmpmem(have, LEN, want + i * LEN, LEN);
    }
    teardown(&f);
}

/* Entries that cross the ring's end and its pages' ends */
static void test_ring_wrap(const void *opaque)
{
    const Setup *s = opaque;
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    unsigned i, j;

    setup(&f, opaque);
    /* user: two pages, and 128 WQEBBs are no multiple of 3 */
    f.p = (QErdmaPair) {
        .qp[0].sq_log2 = 8, .qp[0].rq_log2 = 2,
        .qp[1].sq_log2 = 2, .qp[1].rq_log2 = 8,
        .cq[0].log2 = 2, .cq[1].log2 = 7,
    };
    qerdma_pair_create(&f.p, f.d[0], f.d[1], PDN, s->is_user);
    qerdma_connect(&f.p.qp[0], &f.p.qp[1]);
    for (i = 0; i < 200; i++) {
        QErdmaSend wr = { .opcode = ERDMA_OP_SEND, .n_sges = 4 };

        qerdma_fill(f.d[0], f.mr[0].mem, 40, i);
        for (j = 0; j < 4; j++) {
            wr.sges[j] = sge_of(&f.mr[0], j * 10, 10);
        }
        qerdma_post_recv(qp + 1, f.mr[1].addr + i, 40, f.mr[1].key);
        run(&f, &wr);
        qerdma_expect_recv(qp + 1, i, ERDMA_OP_RECEIVE, 0, 40, NULL);
        qerdma_check(f.d[1], f.mr[1].mem + i, 40, i);
    }
    teardown(&f);
}

/*
 * More than 65536 messages: the 16-bit indices of both queues wrap.  The
 * rings are written a lap at a time, as every entry looks alike.
 */
static void test_index_wrap(const void *opaque)
{
    enum { LAP = 4096, LAPS = 18 };
    Fixture f;
    g_autofree uint8_t *sq = g_malloc(LAP * ERDMA_WQEBB_SIZE);
    g_autofree uint8_t *rq = g_malloc0(LAP * ERDMA_RQE_SIZE);
    unsigned lap, i;

    setup(&f, opaque);
    f.p = (QErdmaPair) {
        .qp[0].sq_log2 = 12, .qp[1].rq_log2 = 12, .cq[1].log2 = 13,
    };
    qerdma_pair_create(&f.p, f.d[0], f.d[1], PDN, false);
    qerdma_connect(&f.p.qp[0], &f.p.qp[1]);
    for (lap = 0; lap < LAPS; lap++) {
        QErdmaQp *qp = &f.p.qp[0];
        QErdmaQp *peer = &f.p.qp[1];
        uint16_t first = qp->sq_pi;

        for (i = 0; i < LAP; i++) {
            QErdmaSend wr = {
                .opcode = ERDMA_OP_SEND, .is_silent = i != LAP - 1,
            };
            uint8_t raw[ERDMA_CMD_MAX_SIZE];

            g_assert_cmpuint(qerdma_build_sqe(qp, &wr, raw), ==, 1);
            memcpy(sq + i * ERDMA_WQEBB_SIZE, raw, ERDMA_WQEBB_SIZE);
            qp->sq_pi++;
            peer->rq_pi++;
            stw_le_p(rq + i * ERDMA_RQE_SIZE, peer->rq_pi);
            stl_le_p(rq + i * ERDMA_RQE_SIZE + 4, peer->qpn);
        }
        qtest_bufwrite(f.d[1]->qts, peer->rq.pages[0], rq,
                       LAP * ERDMA_RQE_SIZE);
        qerdma_rq_db(peer, 0xffff);
        qtest_bufwrite(f.d[0]->qts, qp->sq.pages[0], sq,
                       LAP * ERDMA_WQEBB_SIZE);
        qerdma_sq_db(qp);
        qerdma_expect_send(qp, (uint16_t)(first + LAP - 1), ERDMA_OP_SEND, 0);
        /* the newest of them all is in its place */
        f.p.cq[1].ci = (lap + 1) * LAP - 1;
        qerdma_expect_recv(peer, peer->rq_pi - 1, ERDMA_OP_RECEIVE, 0, 0,
                           NULL);
    }
    g_assert_cmphex(f.p.qp[0].sq_pi, ==, (uint16_t)(LAP * LAPS));
    teardown(&f);
}

/* The counters that a driver can ask for */
static void test_stats(const void *opaque)
{
    enum { N = 10, LEN = 10000 };
    Fixture f;
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE, .n_sges = 1 };
    uint64_t buf, packets;
    QErdmaCmd cmd;
    unsigned i;

    setup(&f, opaque);
    wr.sges[0] = sge_of(&f.mr[0], 0, LEN);
    wr.raddr = f.mr[1].addr;
    wr.rkey = f.mr[1].key;
    for (i = 0; i < N; i++) {
        run(&f, &wr);
    }
    buf = qerdma_alloc(f.d[0], 256);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_GET_STATS);
    qerdma_cmd_set64(&cmd, A_ERDMA_CMD_GET_STATS_ADDR, buf);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_GET_STATS_LEN, 256);
    g_assert_cmpint(qerdma_cmd_exec(f.d[0], &cmd, NULL), ==, 0);
    g_assert_cmpuint(qtest_readq(f.d[0]->qts, buf + A_ERDMA_STATS_TX_REQS),
                     ==, N);
    packets = qtest_readq(f.d[0]->qts, buf + A_ERDMA_STATS_TX_PKTS);
    g_assert_cmpuint(packets, >=, N * LEN / 1500);
    g_assert_cmpuint(packets, <, 3 * N * LEN / 1500);
    g_assert_cmpuint(qtest_readq(f.d[0]->qts, buf + A_ERDMA_STATS_TX_BYTES),
                     >=, N * LEN);
    g_assert_cmpuint(qtest_readq(f.d[0]->qts, buf + A_ERDMA_STATS_RX_PKTS),
                     >, 0);
    g_assert_cmpuint(qtest_readl(f.d[0]->qts, f.d[0]->bar.addr +
                                 A_ERDMA_TSO_IN_PKTS), ==, N);
    g_assert_cmpuint(qtest_readl(f.d[0]->qts, f.d[0]->bar.addr +
                                 A_ERDMA_TSO_OUT_BYTES), ==, N * LEN);
    teardown(&f);
}

static void add(const char *name, const Setup *s, void (*fn)(const void *))
{
    g_autofree char *path = g_strdup_printf("/erdma/data/%s/%s", name,
                                            s->name);

    qtest_add_data_func(path, s, fn);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < ARRAY_SIZE(setups); i++) {
        if (i == ARRAY_SIZE(setups) - 1) {
            add("ring-wrap", &setups[i], test_ring_wrap);
        }
        add("sizes", &setups[i], test_sizes);
        add("inline", &setups[i], test_inline);
        add("sges", &setups[i], test_sges);
    }
    /* what does not depend on the driver, one kind of each */
    for (i = 1; i < ARRAY_SIZE(setups); i += 2) {
        add("inline-flag", &setups[i], test_inline_flag);
        add("atomics", &setups[i], test_atomics);
        add("many-atomics", &setups[i], test_many_atomics);
        add("fence", &setups[i], test_fence);
        add("order", &setups[i], test_order);
        add("silent", &setups[i], test_silent);
        add("crowd", &setups[i], test_crowd);
        add("ring-wrap", &setups[i], test_ring_wrap);
        add("index-wrap", &setups[i], test_index_wrap);
        add("stats", &setups[i], test_stats);
    }
    return g_test_run();
}
