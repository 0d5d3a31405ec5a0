/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: what only kernel users have - fast
 * registration, invalidation, regions over all of the bus, and the local DMA
 * key.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "libqos/erdma.h"

#define PDN     9
#define PAGE    4096ull
#define START   0x1234567000ull

typedef struct Fixture {
    QErdma *d;
    QErdmaPair p;
    QErdmaMr local;             /* 64 KiB, all rights */
    QErdmaMr frmr;
    uint64_t pages[8];
    uint64_t table;             /* of REG_MR, 8 entries */
} Fixture;

static void make_frmr(Fixture *f, uint32_t pdn)
{
    QErdmaRegMr reg = {
        .type = ERDMA_MR_TYPE_FRMR, .level = 1, .n_pages = 8,
        .pages = f->pages, .access = ERDMA_MR_ACC_LR,
    };
    QErdmaCmd cmd;

    f->frmr = (QErdmaMr) { .pdn = pdn };
    qerdma_reg_mr_cmd(f->d, &f->frmr, &reg, &cmd);
    f->table = qerdma_alloc(f->d, 8 * 8);
    qerdma_cmd_set64(&cmd, A_ERDMA_CMD_REG_MR_PAGES, f->table);
    g_assert_cmpint(qerdma_cmd_exec(f->d, &cmd, NULL), ==, 0);
}

static void setup(Fixture *f, bool is_user)
{
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->d = qerdma_boot_one(NULL);
    qerdma_start(f->d, NULL);
    qerdma_pair_init(&f->p, f->d, f->d, PDN, is_user);
    qerdma_reg_simple(f->d, &f->local, PDN, 64 * 1024, QERDMA_ACC_ALL);
    for (i = 0; i < 8; i++) {
        f->pages[7 - i] = qerdma_alloc(f->d, PAGE);
    }
    make_frmr(f, PDN);
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d, NULL);
}

static void reconnect(Fixture *f)
{
    qerdma_pair_init(&f->p, f->d, f->d, PDN, false);
}

/* A register-MR request for the whole region with another key byte */
static QErdmaSend reg_wr(Fixture *f, uint8_t key, unsigned n_pages)
{
    QErdmaSend wr = {
        .opcode = ERDMA_OP_REG_MR,
        .reg_key = (f->frmr.key & ~0xffu) | key,
        .reg_start = START,
        .reg_len = n_pages * PAGE,
        .reg_access = QERDMA_ACC_ALL,
        .reg_n_pages = n_pages,
        .reg_use_table = n_pages > 4,
    };
    unsigned i;

    for (i = 0; i < n_pages; i++) {
        if (n_pages <= 4) {
            wr.reg_pages[i] = f->pages[i];
        } else {
            qtest_writeq(f->d->qts, f->table + i * 8, f->pages[i]);
        }
    }
    return wr;
}

/* Posts on QP @i and waits for the status. */
static void run(Fixture *f, unsigned i, const QErdmaSend *wr, uint8_t status)
{
    uint16_t index = qerdma_post_send(&f->p.qp[i], wr);

    qerdma_expect_send(&f->p.qp[i], index, wr->opcode, status);
}

static void write_to(Fixture *f, uint64_t raddr, uint32_t rkey, uint32_t len,
                     uint32_t seed, uint8_t status)
{
    QErdmaSend wr = {
        .opcode = ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { f->local.addr, len, f->local.key },
        .raddr = raddr, .rkey = rkey,
    };

    qerdma_fill(f->d, f->local.mem, len, seed);
    run(f, 0, &wr, status);
}

static void check_pages(Fixture *f, unsigned n, uint32_t seed)
{
    g_autofree uint8_t *want = g_malloc(n * PAGE);
    uint8_t have[PAGE];
    unsigned i;

    qerdma_pattern(want, n * PAGE, seed);
    for (i = 0; i < n; i++) {
        qtest_memread(f->d->qts, f->pages[i], have, PAGE);
        g_assert_cmpmem(have, PAGE, want + i * PAGE, PAGE);
    }
}

/* The life of a fast-register region, several times over */
static void test_cycle(void)
{
    Fixture f;
    uint8_t key;

    setup(&f, false);
    for (key = 1; key <= 8; key++) {
        QErdmaSend reg = reg_wr(&f, key, key);
        QErdmaSend inv = {
            .opcode = ERDMA_OP_LOCAL_INV, .inv_key = reg.reg_key,
        };

        run(&f, 1, &reg, ERDMA_WC_SUCCESS);
        write_to(&f, START, reg.reg_key, key * PAGE, key, 0);
        check_pages(&f, key, key);
        run(&f, 1, &inv, ERDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(qerdma_stat(f.d, "mr-fast-registrations"), ==, 8);
    g_assert_cmpuint(qerdma_stat(f.d, "mr-local-invalidates"), ==, 8);
    g_assert_cmpint(qerdma_dereg_mr(&f.frmr), ==, 0);
    teardown(&f);
}

/* Not registered yet, or not any more, or under an old key */
static void test_invalid(void)
{
    Fixture f;
    QErdmaSend reg, inv;

    setup(&f, false);
    write_to(&f, START, f.frmr.key, 8, 1, ERDMA_WC_RECV_STAG_INVALID_ERR);
    reconnect(&f);

    reg = reg_wr(&f, 0x11, 4);
    run(&f, 1, &reg, 0);
    write_to(&f, START, f.frmr.key, 8, 1, ERDMA_WC_RECV_STAG_INVALID_ERR);
    reconnect(&f);

    inv = (QErdmaSend) {
        .opcode = ERDMA_OP_LOCAL_INV, .inv_key = reg.reg_key,
    };
    run(&f, 1, &inv, 0);
    write_to(&f, START, reg.reg_key, 8, 1, ERDMA_WC_RECV_STAG_INVALID_ERR);
    reconnect(&f);

    /* the range and the rights are those of the request */
    reg = reg_wr(&f, 0x12, 2);
    reg.reg_len = 2 * PAGE - 100;
    reg.reg_access = ERDMA_MR_ACC_LR | ERDMA_MR_ACC_RW;
    run(&f, 1, &reg, 0);
    write_to(&f, START + PAGE, reg.reg_key, PAGE - 100, 1, 0);
    write_to(&f, START + PAGE, reg.reg_key, PAGE - 99, 1,
             ERDMA_WC_RECV_ADDR_VIOLATION_ERR);
    reconnect(&f);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_READ, .n_sges = 1,
        .sges[0] = { f.local.addr, 8, f.local.key },
        .raddr = START, .rkey = reg.reg_key,
    }, ERDMA_WC_RECV_RIGHT_VIOLATION_ERR);
    teardown(&f);
}

static void test_reg_refused(void)
{
    Fixture f;
    QErdmaSend reg;

    setup(&f, false);
    /* already valid */
    reg = reg_wr(&f, 1, 4);
    run(&f, 1, &reg, 0);
    run(&f, 1, &reg, ERDMA_WC_SEND_RIGHT_VIOLATION_ERR);
    reconnect(&f);

    /* not a fast-register region */
    reg = reg_wr(&f, 1, 4);
    reg.reg_key = f.local.key;
    run(&f, 1, &reg, ERDMA_WC_SEND_RIGHT_VIOLATION_ERR);
    reconnect(&f);

    /* somebody else's */
    make_frmr(&f, PDN + 1);
    reg = reg_wr(&f, 1, 4);
    run(&f, 1, &reg, ERDMA_WC_SEND_PDID_ERR);
    reconnect(&f);

    /* nobody's */
    reg.reg_key = 4242 << 8;
    run(&f, 1, &reg, ERDMA_WC_SEND_STAG_INVALID_ERR);
    teardown(&f);
}

/* More pages than REG_MR announced, or fewer than the length needs */
static void test_reg_size(void)
{
    Fixture f;
    unsigned i;

    setup(&f, false);
    for (i = 0; i < 3; i++) {
        QErdmaSend reg = reg_wr(&f, 1, 8);
        QErdmaWc wc;

        if (i == 0) {
            reg.reg_n_pages = 9;
            reg.reg_len = 9 * PAGE;
        } else if (i == 1) {
            reg.reg_n_pages = 7;
        } else {
            reg.reg_n_pages = 0;
        }
        qerdma_post_send(&f.p.qp[1], &reg);
        qerdma_wait_cqe(&f.p.cq[1], &wc);
        g_assert_cmpint(wc.status, !=, 0);
        reconnect(&f);
        write_to(&f, START, reg.reg_key, 8, 1,
                 ERDMA_WC_RECV_STAG_INVALID_ERR);
        reconnect(&f);
    }
    teardown(&f);
}

static void test_inv_refused(void)
{
    Fixture f;
    QErdmaSend inv = { .opcode = ERDMA_OP_LOCAL_INV };

    setup(&f, false);
    inv.inv_key = 4242 << 8;
    run(&f, 1, &inv, ERDMA_WC_SEND_STAG_INVALID_ERR);
    reconnect(&f);
    inv.inv_key = f.local.key;
    run(&f, 1, &inv, ERDMA_WC_SEND_STAG_INVALID_ERR);
    reconnect(&f);
    /* and the ordinary region still works */
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { f.local.addr, 8, f.local.key },
        .raddr = f.local.addr, .rkey = f.local.key,
    }, 0);
    teardown(&f);
}

/* Send with invalidate: the peer's region, and its key in the completion */
static void test_send_inv(void)
{
    Fixture f;
    QErdmaSend reg, send;
    QErdmaWc wc;
    uint16_t position;

    setup(&f, false);
    reg = reg_wr(&f, 0x77, 4);
    run(&f, 1, &reg, 0);
    position = qerdma_post_recv(&f.p.qp[1], f.local.addr, 64, f.local.key);
    send = (QErdmaSend) {
        .opcode = ERDMA_OP_SEND_WITH_INV, .inv_key = reg.reg_key,
        .is_inline = true, .data = "invalidate!", .data_len = 11,
    };
    run(&f, 0, &send, 0);
    qerdma_expect_recv(&f.p.qp[1], position, ERDMA_OP_RECV_INV, 0, 11, &wc);
    /* big-endian, unlike an immediate in the same place */
    g_assert_cmphex(wc.imm_raw[0], ==, reg.reg_key >> 24);
    g_assert_cmphex(wc.imm_raw[3], ==, 0x77);
    g_assert_cmpuint(qerdma_stat(f.d, "mr-remote-invalidates"), ==, 1);
    write_to(&f, START, reg.reg_key, 8, 1, ERDMA_WC_RECV_STAG_INVALID_ERR);
    teardown(&f);
}

/* Read with invalidate: the own region that the data arrived in */
static void test_read_inv(void)
{
    Fixture f;
    QErdmaSend reg, read;

    setup(&f, false);
    reg = reg_wr(&f, 0x55, 4);
    run(&f, 0, &reg, 0);
    qerdma_fill(f.d, f.local.mem, 2 * PAGE, 5);
    /* Linux's storage targets name the key byte of the time before. */
    read = (QErdmaSend) {
        .opcode = ERDMA_OP_READ_WITH_INV, .inv_key = reg.reg_key - 1,
        .n_sges = 1, .sges[0] = { START, 2 * PAGE, reg.reg_key },
        .raddr = f.local.addr, .rkey = f.local.key,
    };
    run(&f, 0, &read, 0);
    check_pages(&f, 2, 5);
    g_assert_cmpuint(qerdma_stat(f.d, "mr-read-invalidates"), ==, 1);
    /* gone */
    read.opcode = ERDMA_OP_READ;
    run(&f, 0, &read, ERDMA_WC_SEND_STAG_INVALID_ERR);
    teardown(&f);
}

/* ---- keys without bounds ---- */

/* A DMA region is usable although its "valid" bit is 0. */
static void test_dma_mr(void)
{
    Fixture f;
    QErdmaMr mr = { .pdn = PDN };
    QErdmaRegMr reg = {
        .type = ERDMA_MR_TYPE_DMA, .access = QERDMA_ACC_ALL,
        .page_shift = 31,
    };
    uint64_t a, b;

    setup(&f, false);
    g_assert_cmpint(qerdma_reg_mr(f.d, &mr, &reg), ==, 0);
    a = qerdma_alloc(f.d, 3 * PAGE);
    b = qerdma_alloc(f.d, 3 * PAGE);
    qerdma_fill(f.d, a + 5, 10000, 1);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { a + 5, 10000, mr.key }, .raddr = b + 7, .rkey = mr.key,
    }, 0);
    qerdma_check(f.d, b + 7, 10000, 1);
    teardown(&f);
}

static void test_local_key(void)
{
    Fixture f;
    uint64_t a, b;
    uint16_t position;

    setup(&f, false);
    a = qerdma_alloc(f.d, 3 * PAGE);
    b = qerdma_alloc(f.d, 3 * PAGE);
    qerdma_fill(f.d, a, 10000, 1);
    position = qerdma_post_recv(&f.p.qp[1], b, 10000, f.d->local_key);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_SEND, .n_sges = 1,
        .sges[0] = { a, 10000, f.d->local_key },
    }, 0);
    qerdma_expect_recv(&f.p.qp[1], position, ERDMA_OP_RECEIVE, 0, 10000,
                       NULL);
    qerdma_check(f.d, b, 10000, 1);

    /* as the sink of a read */
    qerdma_fill(f.d, f.local.mem, 5000, 2);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_READ, .n_sges = 1,
        .sges[0] = { b + 1, 5000, f.d->local_key },
        .raddr = f.local.addr, .rkey = f.local.key,
    }, 0);
    qerdma_check(f.d, b + 1, 5000, 2);

    /* from outside it opens nothing */
    write_to(&f, b, f.d->local_key, 8, 3, ERDMA_WC_RECV_STAG_INVALID_ERR);
    teardown(&f);
}

/* A process that knows the key must not read all memory with it. */
static void test_local_key_user(void)
{
    Fixture f;
    uint64_t a;
    uint16_t position;

    setup(&f, true);
    a = qerdma_alloc(f.d, PAGE);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_SEND, .n_sges = 1,
        .sges[0] = { a, 8, f.d->local_key },
    }, ERDMA_WC_SEND_STAG_INVALID_ERR);

    qerdma_pair_init(&f.p, f.d, f.d, PDN, true);
    position = qerdma_post_recv(&f.p.qp[1], a, 8, f.d->local_key);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_SEND, .is_inline = true,
        .data = "12345678", .data_len = 8,
    }, ERDMA_WC_GENERAL_ERR);
    qerdma_expect_recv(&f.p.qp[1], position, ERDMA_OP_RECEIVE,
                       ERDMA_WC_RECV_STAG_INVALID_ERR, 0, NULL);
    g_assert_cmphex(qtest_readq(f.d->qts, a), ==, 0);

    qerdma_pair_init(&f.p, f.d, f.d, PDN, true);
    run(&f, 0, &(QErdmaSend) {
        .opcode = ERDMA_OP_READ, .n_sges = 1,
        .sges[0] = { a, 8, f.d->local_key },
        .raddr = f.local.addr, .rkey = f.local.key,
    }, ERDMA_WC_SEND_STAG_INVALID_ERR);
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/frmr/cycle", test_cycle);
    qtest_add_func("/erdma/frmr/invalid", test_invalid);
    qtest_add_func("/erdma/frmr/reg-refused", test_reg_refused);
    qtest_add_func("/erdma/frmr/reg-size", test_reg_size);
    qtest_add_func("/erdma/frmr/inv-refused", test_inv_refused);
    qtest_add_func("/erdma/frmr/send-inv", test_send_inv);
    qtest_add_func("/erdma/frmr/read-inv", test_read_inv);
    qtest_add_func("/erdma/frmr/dma-mr", test_dma_mr);
    qtest_add_func("/erdma/frmr/local-key", test_local_key);
    qtest_add_func("/erdma/frmr/local-key-user", test_local_key_user);
    return g_test_run();
}
