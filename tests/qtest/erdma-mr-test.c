/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: memory regions of every kind, the
 * walk through their tables, rights, and fast registration.
 *
 * Data moves between two QPs of the one device.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define PDN     9
#define PAGE    4096ull
#define MAX_MR  (2 * 128 * 1024)

typedef struct Fixture {
    QErdma *d;
    QErdmaPair p;
    QErdmaMr local;             /* 64 KiB, all rights */
} Fixture;

static void setup(Fixture *f, bool is_user)
{
    memset(f, 0, sizeof(*f));
    f->d = qerdma_boot_one(NULL);
    qerdma_start(f->d, NULL);
    qerdma_pair_init(&f->p, f->d, f->d, PDN, is_user);
    qerdma_reg_simple(f->d, &f->local, PDN, 64 * 1024, QERDMA_ACC_ALL);
}

/* Fresh QPs after an error took the others down */
static void reconnect(Fixture *f, bool is_user)
{
    qerdma_pair_init(&f->p, f->d, f->d, PDN, is_user);
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d, NULL);
}

/* Writes @len bytes of pattern @seed to @raddr and waits. */
static void rdma_write(Fixture *f, uint64_t raddr, uint32_t rkey,
                       uint32_t len, uint32_t seed, uint8_t status)
{
    QErdmaSend wr = {
        .opcode = ERDMA_OP_WRITE,
        .n_sges = 1,
        .sges[0] = { f->local.addr, len, f->local.key },
        .raddr = raddr,
        .rkey = rkey,
    };
    uint16_t index;

    qerdma_fill(f->d, f->local.mem, len, seed);
    index = qerdma_post_send(&f->p.qp[0], &wr);
    qerdma_expect_send(&f->p.qp[0], index, ERDMA_OP_WRITE, status);
}

/* ---- commands ---- */

static void test_numbers(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    static const uint32_t indices[] = { 0, 1, MAX_MR - 1 };
    unsigned i;

    qerdma_start(d, NULL);
    for (i = 0; i < ARRAY_SIZE(indices); i++) {
        QErdmaMr mr = { .key = indices[i] << 8 | 0x80 };

        qerdma_reg_simple(d, &mr, 0, 100, QERDMA_ACC_ALL);
        /* the driver's idea of the key byte may be an old one */
        mr.key ^= 0x7f;
        g_assert_cmpint(qerdma_dereg_mr(&mr), ==, 0);
        g_assert_cmpint(qerdma_dereg_mr(&mr), !=, 0);
    }
    qerdma_quit(d, NULL);
}

typedef struct Bad {
    unsigned off;
    uint32_t mask;
    uint32_t val;
} Bad;

/* @reg is fine, but not with any of these */
static void expect_refused(QErdma *d, const QErdmaRegMr *reg, const Bad *bad,
                           size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        QErdmaMr mr = { .key = 7 << 8 };
        QErdmaCmd cmd;
        uint32_t word;

        qerdma_reg_mr_cmd(d, &mr, reg, &cmd);
        word = ldl_le_p(cmd.raw + bad[i].off);
        word = (word & ~bad[i].mask) | bad[i].val;
        qerdma_cmd_set32(&cmd, bad[i].off, word);
        if (!qerdma_cmd_exec(d, &cmd, NULL)) {
            g_test_message("@0x%x mask 0x%x value 0x%x accepted", bad[i].off,
                           bad[i].mask, bad[i].val);
            g_test_fail();
            g_assert_cmpint(qerdma_dereg_mr(&mr), ==, 0);
        }
    }
}

static void test_refused(void)
{
    static const Bad any[] = {
        { A_ERDMA_CMD_REG_MR_CFG0, 0xfffff, 5 },        /* in use */
        { A_ERDMA_CMD_REG_MR_CFG0, 0xfffff, MAX_MR },
        { A_ERDMA_CMD_REG_MR_CFG0, 0xfffff, 0xfffff },
        { A_ERDMA_CMD_REG_MR_CFG1, 0xc0, 3 << 6 },      /* type */
        { A_ERDMA_CMD_REG_MR_CFG2, 0xf8000000, 11u << 27 },
        { A_ERDMA_CMD_REG_MR_CFG2, 0xf8000000, 0 },
        { A_ERDMA_CMD_REG_MR_CFG2, 0xf8000000, 31u << 27 },
    };
    static const Bad inline_pages[] = {
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 0 },
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 2 },        /* length says 3 */
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 4 },
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 5 },
        { A_ERDMA_CMD_REG_MR_LEN, UINT32_MAX, 3 * PAGE + 1 },
        { A_ERDMA_CMD_REG_MR_LEN, UINT32_MAX, UINT32_MAX },
    };
    static const Bad table[] = {
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 8 },
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 10 },
        { A_ERDMA_CMD_REG_MR_CFG2, 0xfffff, 0xfffff },
        { A_ERDMA_CMD_REG_MR_MTT_CNT_H, UINT32_MAX, 1 },
        { A_ERDMA_CMD_REG_MR_LEN_H, UINT32_MAX, 1 },
        { A_ERDMA_CMD_REG_MR_LEN_H, UINT32_MAX, UINT32_MAX },
        /* start + length wraps */
        { A_ERDMA_CMD_REG_MR_START + 4, UINT32_MAX, UINT32_MAX },
    };
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaMr five = { .key = 5 << 8 };
    uint64_t pages[9];
    QErdmaRegMr reg = { .pages = pages, .access = QERDMA_ACC_ALL };
    unsigned i;

    qerdma_start(d, NULL);
    qerdma_reg_simple(d, &five, PDN, PAGE, QERDMA_ACC_ALL);
    pages[0] = qerdma_alloc(d, 9 * PAGE);
    for (i = 1; i < 9; i++) {
        pages[i] = pages[0] + i * PAGE;
    }
    reg.n_pages = 3;
    reg.len = 3 * PAGE;
    expect_refused(d, &reg, any, ARRAY_SIZE(any));
    expect_refused(d, &reg, inline_pages, ARRAY_SIZE(inline_pages));
    reg.n_pages = 9;
    reg.len = 9 * PAGE;
    reg.start = 0xfffff000;
    reg.level = 2;
    reg.is_version_1 = true;
    expect_refused(d, &reg, table, ARRAY_SIZE(table));
    g_assert_cmpint(qerdma_reg_mr(d, &(QErdmaMr) { .key = 7 << 8 }, &reg), ==,
                    0);
    five.key = 12345 << 8;
    g_assert_cmpint(qerdma_dereg_mr(&five), !=, 0);
    five.key = UINT32_MAX;
    g_assert_cmpint(qerdma_dereg_mr(&five), !=, 0);
    qerdma_quit(d, NULL);
}

/* ---- tables ---- */

/*
 * A region of @n pages in an order of no system, starting inside of the
 * first; writes into it across pages and tables, and looks at every page.
 */
static void try_level(Fixture *f, uint8_t level, uint64_t n, bool is_v1)
{
    g_autofree uint64_t *pages = g_new(uint64_t, n);
    uint32_t off = 0x123;
    uint64_t base = qerdma_alloc(f->d, n * PAGE);
    QErdmaRegMr reg = {
        .access = ERDMA_MR_ACC_LR | ERDMA_MR_ACC_RW,
        .level = level,
        .start = 0x555500000000ull + off,
        .len = n * PAGE - off - 7,
        .n_pages = n,
        .pages = pages,
        .is_version_1 = is_v1,
    };
    QErdmaMr mr = { .pdn = PDN };
    static const uint32_t lens[] = { 1, 4096, 12345, 60000 };
    g_autofree uint8_t *want = g_malloc(64 * 1024);
    uint64_t i, pos, done;
    unsigned t;

    for (i = 0; i < n; i++) {
        /* 7 and n have no common divisor in the tests below */
        pages[i] = base + (i * 7 + 3) % n * PAGE;
    }
    g_assert_cmpint(qerdma_reg_mr(f->d, &mr, &reg), ==, 0);
    for (t = 0; t < 2 * ARRAY_SIZE(lens); t++) {
        uint64_t len = MIN(lens[t / 2], reg.len);

        /* at the start, and up to the last byte */
        pos = t % 2 ? reg.len - len : 0;
        rdma_write(f, reg.start + pos, mr.key, len, 100 + t, 0);
        qerdma_pattern(want, len, 100 + t);
        for (done = 0; done < len; ) {
            uint64_t at = off + pos + done;
            uint64_t count = MIN(len - done, PAGE - at % PAGE);
            uint8_t have[PAGE];

            qtest_memread(f->d->qts, pages[at / PAGE] + at % PAGE, have,
                          count);
            g_assert_cmpmem(have, count, want + done, count);
            done += count;
        }
    }
    g_assert_cmpint(qerdma_dereg_mr(&mr), ==, 0);
}

static void test_levels(void)
{
    Fixture f;

    setup(&f, true);
    try_level(&f, 0, 1, false);
    try_level(&f, 0, 4, false);
    try_level(&f, 1, 5, false);
    try_level(&f, 1, 512, false);
    try_level(&f, 1, 601, false);
    try_level(&f, 2, 513, true);
    try_level(&f, 2, 1201, true);
    try_level(&f, 3, 1201, true);
    teardown(&f);
}

/* The middle tables of level 3 matter only above 2^18 pages. */
static void test_level_3(void)
{
    enum { N = (1 << 18) + 600 };
    Fixture f;
    g_autofree uint64_t *pages = g_new(uint64_t, N);
    QErdmaRegMr reg = {
        .access = ERDMA_MR_ACC_LR | ERDMA_MR_ACC_RW,
        .level = 3,
        .start = 0x10000000000ull,
        .len = N * PAGE,
        .n_pages = N,
        .pages = pages,
        .is_version_1 = true,
    };
    static const uint64_t at[] = { 0, 511, 512, N - 601, N - 600, N - 1 };
    QErdmaMr mr = { .pdn = PDN };
    uint64_t mem;
    unsigned i;

    setup(&f, true);
    mem = qerdma_alloc(f.d, ARRAY_SIZE(at) * PAGE);
    for (i = 0; i < N; i++) {
        pages[i] = 0xc0000000;          /* nobody home */
    }
    for (i = 0; i < ARRAY_SIZE(at); i++) {
        pages[at[i]] = mem + i * PAGE;
    }
    g_assert_cmpint(qerdma_reg_mr(f.d, &mr, &reg), ==, 0);
    for (i = 0; i < ARRAY_SIZE(at); i++) {
        rdma_write(&f, reg.start + at[i] * PAGE, mr.key, PAGE, i, 0);
    }
    for (i = 0; i < ARRAY_SIZE(at); i++) {
        qerdma_check(f.d, mem + i * PAGE, PAGE, i);
    }
    teardown(&f);
}

/*
 * Version 0 says only the low half of the length.  The pages here are the
 * first GiB of the bus again and again, so far offsets are near addresses.
 */
static void test_cut_length(void)
{
    static const uint64_t zeros[9];
    static const struct {
        uint8_t level;
        uint64_t n;
        uint64_t len;
    } cases[] = {
        { 0, 4, 1ull << 32 },                   /* the word is 0 */
        { 1, 5, (1ull << 32) + (96 << 20) },
        { 1, 9, 9ull << 30 },
        { 1, 9, (8ull << 30) + (96 << 20) },
    };
    Fixture f;
    uint64_t mem, len;
    unsigned i;

    setup(&f, true);
    mem = qerdma_alloc(f.d, PAGE);
    g_assert_cmphex(mem, <, 96 << 20);
    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        QErdmaMr mr = { .pdn = PDN };
        QErdmaRegMr reg = {
            .access = ERDMA_MR_ACC_LR | ERDMA_MR_ACC_RW,
            .level = cases[i].level,
            .page_shift = 30,
            .start = 0x4000000000ull,
            .len = cases[i].len,
            .n_pages = cases[i].n,
            .pages = zeros,
        };

        len = cases[i].len;
        g_assert_cmpint(qerdma_reg_mr(f.d, &mr, &reg), ==, 0);
        rdma_write(&f, reg.start + ((reg.n_pages - 1) << 30) + mem, mr.key,
                   PAGE, i, 0);
        qerdma_check(f.d, mem, PAGE, i);
        rdma_write(&f, reg.start + len - 1, mr.key, 2, i,
                   ERDMA_WC_RECV_ADDR_VIOLATION_ERR);
        reconnect(&f, true);
    }
    teardown(&f);
}

/* Tables and pages that are not memory are an error, not a crash. */
static void test_unreachable(void)
{
    Fixture f;
    QErdmaMr mr = { .pdn = PDN };
    uint64_t pages[5] = { 0xc0000000, 0xc0001000 };
    QErdmaRegMr reg = {
        .access = QERDMA_ACC_ALL, .level = 0, .start = 0x1000,
        .len = 2 * PAGE, .n_pages = 2, .pages = pages,
    };
    QErdmaCmd cmd;

    setup(&f, true);
    g_assert_cmpint(qerdma_reg_mr(f.d, &mr, &reg), ==, 0);
    rdma_write(&f, mr.addr, mr.key, 8, 1, ERDMA_WC_GENERAL_ERR);
    reconnect(&f, true);

    mr = (QErdmaMr) { .pdn = PDN };
    reg.level = 1;
    reg.n_pages = 5;
    reg.len = 5 * PAGE;
    qerdma_reg_mr_cmd(f.d, &mr, &reg, &cmd);
    qerdma_cmd_set64(&cmd, A_ERDMA_CMD_REG_MR_PAGES, 0xc0000000);
    if (!qerdma_cmd_exec(f.d, &cmd, NULL)) {
        rdma_write(&f, mr.addr, mr.key, 8, 1, ERDMA_WC_GENERAL_ERR);
    }
    teardown(&f);
}

/* ---- keys, domains, rights, ranges ---- */

/* What is wrong, how the requester sees it, on which end it is */
static const struct {
    const char *what;
    uint8_t local_status;
    uint8_t remote_status;
} wrong[] = {
    { "key byte", ERDMA_WC_SEND_STAG_INVALID_ERR,
      ERDMA_WC_RECV_STAG_INVALID_ERR },
    { "index", ERDMA_WC_SEND_STAG_INVALID_ERR,
      ERDMA_WC_RECV_STAG_INVALID_ERR },
    { "domain", ERDMA_WC_SEND_PDID_ERR, ERDMA_WC_RECV_PDID_ERR },
    { "right", ERDMA_WC_SEND_RIGHT_VIOLATION_ERR,
      ERDMA_WC_RECV_RIGHT_VIOLATION_ERR },
    { "wrap", ERDMA_WC_SEND_WARRPING_ERR, ERDMA_WC_RECV_WARRPING_ERR },
    { "end", ERDMA_WC_SEND_ADDR_VIOLATION_ERR,
      ERDMA_WC_RECV_ADDR_VIOLATION_ERR },
    { "before", ERDMA_WC_SEND_ADDR_VIOLATION_ERR,
      ERDMA_WC_RECV_ADDR_VIOLATION_ERR },
};

typedef struct Target {
    uint64_t addr;
    uint32_t key;
} Target;

/*
 * One of the mistakes above.  A region without @right is made for the wrong
 * right, one in another domain for the wrong domain.
 */
static Target make_wrong(Fixture *f, unsigned which, uint8_t right)
{
    QErdmaMr mr = { 0 };
    Target t;

    qerdma_reg_simple(f->d, &mr, which == 2 ? PDN + 1 : PDN, PAGE,
                      which == 3 ? QERDMA_ACC_ALL & ~right : QERDMA_ACC_ALL);
    t = (Target) { mr.addr, mr.key };
    switch (which) {
    case 0:
        t.key ^= 1;
        break;
    case 1:
        t.key += 77 << 8;
        break;
    case 4:
        t.addr = UINT64_MAX - 7;
        break;
    case 5:
        t.addr += PAGE - 8;
        break;
    case 6:
        t.addr -= 1;
        break;
    default:
        break;
    }
    return t;
}

static void try_local(Fixture *f, unsigned which, uint8_t opcode,
                      uint8_t right)
{
    Target t = make_wrong(f, which, right);
    QErdmaMr ok = { 0 };
    QErdmaSend wr = {
        .opcode = opcode, .is_silent = true, .n_sges = 1,
        .sges[0] = { t.addr, 16, t.key },
    };
    uint16_t index;

    qerdma_reg_simple(f->d, &ok, PDN, PAGE, QERDMA_ACC_ALL);
    wr.raddr = ok.addr;
    wr.rkey = ok.key;
    qerdma_post_recv(&f->p.qp[1], f->local.addr, 16, f->local.key);
    index = qerdma_post_send(&f->p.qp[0], &wr);
    qerdma_expect_send(&f->p.qp[0], index, opcode, wrong[which].local_status);
    reconnect(f, true);
}

static void test_local(void)
{
    Fixture f;
    unsigned i;

    setup(&f, true);
    for (i = 0; i < ARRAY_SIZE(wrong); i++) {
        g_test_message("%s", wrong[i].what);
        if (i != 3) {
            /* the driver always grants local read */
            try_local(&f, i, ERDMA_OP_SEND, 0);
            try_local(&f, i, ERDMA_OP_WRITE, 0);
        }
        try_local(&f, i, ERDMA_OP_READ, ERDMA_MR_ACC_LW);
    }
    teardown(&f);
}

static void try_remote(Fixture *f, unsigned which, uint8_t opcode,
                       uint8_t right)
{
    Target t = make_wrong(f, which, right);
    bool is_atomic = opcode >= ERDMA_OP_ATOMIC_CAS;
    QErdmaSend wr = {
        .opcode = opcode, .is_silent = true, .n_sges = 1,
        .sges[0] = { f->local.addr, is_atomic ? 8 : 16, f->local.key },
        .raddr = t.addr, .rkey = t.key,
    };
    QErdmaSend next = { .opcode = ERDMA_OP_SEND, .is_silent = true };
    uint16_t index, next_index, position;

    position = qerdma_post_recv(&f->p.qp[1], 0, 0, 0);
    index = qerdma_post_send(&f->p.qp[0], &wr);
    next_index = qerdma_post_send(&f->p.qp[0], &next);
    qerdma_expect_send(&f->p.qp[0], index, opcode,
                       wrong[which].remote_status);
    /* both ends are down; the responder's owner hears of it */
    qerdma_expect_send(&f->p.qp[0], next_index, ERDMA_OP_SEND,
                       ERDMA_WC_FLUSH_ERR);
    qerdma_expect_recv(&f->p.qp[1], position, ERDMA_OP_RECEIVE,
                       ERDMA_WC_FLUSH_ERR, 0, NULL);
    qerdma_expect_aeqe(f->d, ERDMA_AE_TYPE_ACC_ERR, f->p.qp[1].qpn);
    reconnect(f, true);
}

static void test_remote(void)
{
    static const struct {
        uint8_t opcode;
        uint8_t right;
    } ops[] = {
        { ERDMA_OP_WRITE, ERDMA_MR_ACC_RW },
        { ERDMA_OP_WRITE_WITH_IMM, ERDMA_MR_ACC_RW },
        { ERDMA_OP_READ, ERDMA_MR_ACC_RR },
        { ERDMA_OP_ATOMIC_CAS, ERDMA_MR_ACC_RA },
        { ERDMA_OP_ATOMIC_FAA, ERDMA_MR_ACC_RA },
    };
    Fixture f;
    unsigned i, j;

    setup(&f, true);
    for (i = 0; i < ARRAY_SIZE(wrong); i++) {
        for (j = 0; j < ARRAY_SIZE(ops); j++) {
            /* an atomic's addresses must be aligned before all else */
            if (i < 4 || ops[j].opcode < ERDMA_OP_ATOMIC_CAS) {
                g_test_message("%s, opcode %u", wrong[i].what, ops[j].opcode);
                try_remote(&f, i, ops[j].opcode, ops[j].right);
            }
        }
    }
    teardown(&f);
}

/* The receive buffer is the receiver's mistake; the sender hears no details. */
static void try_recv(Fixture *f, unsigned which)
{
    Target t = make_wrong(f, which, ERDMA_MR_ACC_LW);
    QErdmaSend wr = {
        .opcode = ERDMA_OP_SEND, .n_sges = 1,
        .sges[0] = { f->local.addr, 16, f->local.key },
    };
    uint8_t status = wrong[which].remote_status;
    uint16_t position, index;

    position = qerdma_post_recv(&f->p.qp[1], t.addr, 16, t.key);
    index = qerdma_post_send(&f->p.qp[0], &wr);
    qerdma_expect_send(&f->p.qp[0], index, ERDMA_OP_SEND,
                       ERDMA_WC_GENERAL_ERR);
    qerdma_expect_recv(&f->p.qp[1], position, ERDMA_OP_RECEIVE, status, 0,
                       NULL);
    reconnect(f, true);
}

static void test_recv(void)
{
    Fixture f;
    unsigned i;

    setup(&f, true);
    for (i = 0; i < ARRAY_SIZE(wrong); i++) {
        g_test_message("%s", wrong[i].what);
        try_recv(&f, i);
    }
    teardown(&f);
}

/* Ranges of no bytes need no key, at either end. */
static void test_zero_length(void)
{
    Fixture f;
    static const uint8_t ops[] = {
        ERDMA_OP_SEND, ERDMA_OP_WRITE, ERDMA_OP_READ,
    };
    unsigned i;

    setup(&f, true);
    for (i = 0; i < ARRAY_SIZE(ops); i++) {
        QErdmaSend wr = {
            .opcode = ops[i], .n_sges = 1,
            .sges[0] = { UINT64_MAX, 0, 0xdeadbeef },
            .raddr = UINT64_MAX, .rkey = 0xdeadbeef,
        };
        uint16_t index;

        qerdma_post_recv(&f.p.qp[1], 0, 0, 0);
        index = qerdma_post_send(&f.p.qp[0], &wr);
        qerdma_expect_send(&f.p.qp[0], index, ops[i], ERDMA_WC_SUCCESS);
    }
    teardown(&f);
}

/* A region that is gone is gone for the next packet. */
static void test_dereg(void)
{
    Fixture f;
    QErdmaMr mr = { 0 };

    setup(&f, true);
    qerdma_reg_simple(f.d, &mr, PDN, PAGE, QERDMA_ACC_ALL);
    rdma_write(&f, mr.addr, mr.key, 100, 1, 0);
    g_assert_cmpint(qerdma_dereg_mr(&mr), ==, 0);
    rdma_write(&f, mr.addr, mr.key, 100, 2, ERDMA_WC_RECV_STAG_INVALID_ERR);
    qerdma_check(f.d, mr.mem, 100, 1);
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/mr/numbers", test_numbers);
    qtest_add_func("/erdma/mr/refused", test_refused);
    qtest_add_func("/erdma/mr/levels", test_levels);
    qtest_add_func("/erdma/mr/level-3", test_level_3);
    qtest_add_func("/erdma/mr/cut-length", test_cut_length);
    qtest_add_func("/erdma/mr/unreachable", test_unreachable);
    qtest_add_func("/erdma/mr/local", test_local);
    qtest_add_func("/erdma/mr/remote", test_remote);
    qtest_add_func("/erdma/mr/recv", test_recv);
    qtest_add_func("/erdma/mr/zero-length", test_zero_length);
    qtest_add_func("/erdma/mr/dereg", test_dereg);
    return g_test_run();
}
