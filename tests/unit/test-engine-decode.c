/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entry formats.  Offsets and values are written out as numbers here, from
 * the description of the interface: not the code under test's own names.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "engine/decode.h"
#include "engine/decode-cmd.h"

#define QPN     0xabcde
#define SIG     (1u << 22)
#define SE      (1u << 23)
#define FENCE   (1u << 24)
#define INL     (1u << 25)

static uint8_t raw[128];
static ErdmaSqe sqe;

/* Garbage everywhere, then a header */
static void start(unsigned op, unsigned n_wqebbs, unsigned sgl_len,
                  uint32_t flags)
{
    unsigned i;

    for (i = 0; i < sizeof(raw); i++) {
        raw[i] = 0xd0 + i;
    }
    stq_le_p(raw, (uint64_t)sgl_len << 56 | (uint64_t)(n_wqebbs - 1) << 52 |
             (uint64_t)QPN << 32 | op << 27 | flags | 0x1234);
}

static void put_sge(unsigned off, uint64_t addr, uint32_t len, uint32_t key)
{
    stq_le_p(raw + off, addr);
    stl_le_p(raw + off + 8, len);
    stl_le_p(raw + off + 12, key);
}

static bool decode(void)
{
    memset(&sqe, 0xee, sizeof(sqe));
    return erdma_decode_sqe(raw, &sqe);
}

static void test_header(void)
{
    ErdmaSqeHdr h;

    start(13, 8, 255, 0);
    erdma_decode_sqe_hdr(raw, &h);
    g_assert_cmphex(h.pi, ==, 0x1234);
    g_assert_cmpuint(h.opcode, ==, 13);
    g_assert_cmpuint(h.n_wqebbs, ==, 8);
    g_assert_cmpuint(h.sgl_len, ==, 255);
    g_assert_cmphex(h.qpn, ==, QPN);
    g_assert_false(h.is_inline || h.is_fenced || h.is_solicited ||
                   h.is_signalled);
    start(31, 1, 0, SIG);
    erdma_decode_sqe_hdr(raw, &h);
    g_assert_cmpuint(h.opcode, ==, 31);
    g_assert_true(h.is_signalled && !h.is_solicited);
    start(0, 1, 0, SE);
    erdma_decode_sqe_hdr(raw, &h);
    g_assert_true(h.is_solicited && !h.is_signalled && !h.is_fenced);
    start(0, 1, 0, FENCE);
    erdma_decode_sqe_hdr(raw, &h);
    g_assert_true(h.is_fenced && !h.is_inline);
    start(0, 1, 0, INL);
    erdma_decode_sqe_hdr(raw, &h);
    g_assert_true(h.is_inline);
}

static void test_send(void)
{
    unsigned n, i;

    for (n = 0; n <= 6; n++) {
        start(2, (16 + 16 * n + 31) / 32, n, SIG);
        stl_le_p(raw + 12, 100 * n);
        for (i = 0; i < n; i++) {
            put_sge(16 + 16 * i, 0x1000000000 + i, 100, 0x500 + i);
        }
        g_assert_true(decode());
        g_assert_cmpuint(sqe.n_sges, ==, n);
        g_assert_cmpuint(sqe.len, ==, 100 * n);
        for (i = 0; i < n; i++) {
            g_assert_cmphex(sqe.sges[i].addr, ==, 0x1000000000 + i);
            g_assert_cmpuint(sqe.sges[i].len, ==, 100);
            g_assert_cmphex(sqe.sges[i].key, ==, 0x500 + i);
        }
        /* What the opcode does not define stays out. */
        g_assert_cmphex(sqe.imm, ==, 0);
        g_assert_cmphex(sqe.inv_key, ==, 0);
    }
}

static void test_send_imm_and_inv(void)
{
    start(3, 1, 0, 0);
    stl_le_p(raw + 12, 0);
    memcpy(raw + 8, "\x11\x22\x33\x44", 4);
    g_assert_true(decode());
    g_assert_cmphex(sqe.imm, ==, 0x11223344);
    g_assert_cmphex(sqe.inv_key, ==, 0);
    raw[3] = (raw[3] & 7) | 13 << 3;
    g_assert_true(decode());
    g_assert_cmphex(sqe.inv_key, ==, 0x44332211);
    g_assert_cmphex(sqe.imm, ==, 0);
}

static void test_write(void)
{
    start(9, 2, 1, SE);
    memcpy(raw + 8, "\x11\x22\x33\x44", 4);
    stl_le_p(raw + 12, 4096);
    stl_le_p(raw + 16, 0x777);
    stl_le_p(raw + 20, 0x89abcdef);
    stl_le_p(raw + 24, 0x01234567);
    put_sge(32, 0xfeed, 4096, 0x888);
    g_assert_true(decode());
    g_assert_cmphex(sqe.imm, ==, 0x11223344);
    g_assert_cmphex(sqe.rkey, ==, 0x777);
    g_assert_cmphex(sqe.raddr, ==, 0x0123456789abcdef);
    g_assert_cmphex(sqe.sges[0].addr, ==, 0xfeed);
    g_assert_cmphex(sqe.sges[0].key, ==, 0x888);
    g_assert_true(sqe.hdr.is_solicited);
    raw[3] = raw[3] & 7;
    g_assert_true(decode());
    g_assert_cmphex(sqe.imm, ==, 0);
}

static void test_inline(void)
{
    unsigned n;

    for (n = 0; n <= 96; n++) {
        start(2, (16 + n + 31) / 32, n, INL);
        stl_le_p(raw + 12, n);
        g_assert_true(decode());
        g_assert_cmpuint(sqe.inline_len, ==, n);
        g_assert_cmpuint(sqe.n_sges, ==, 0);
        g_assert_cmpint(memcmp(sqe.inline_data, raw + 16, n), ==, 0);

        start(0, (32 + n + 31) / 32, n, INL);
        stl_le_p(raw + 12, n);
        g_assert_true(decode());
        g_assert_cmpuint(sqe.len, ==, n);
        g_assert_cmpint(memcmp(sqe.inline_data, raw + 32, n), ==, 0);
    }
    start(2, 4, 97, INL);
    stl_le_p(raw + 12, 97);
    g_assert_false(decode());
    /* One byte more than the entry has */
    start(2, 1, 17, INL);
    stl_le_p(raw + 12, 17);
    g_assert_false(decode());
    start(2, 1, 16, INL);
    stl_le_p(raw + 12, 15);
    g_assert_false(decode());
}

static void test_read(void)
{
    /* The inline flag comes along with every opcode and means nothing. */
    start(16, 2, 0, INL | FENCE);
    stl_le_p(raw + 8, 0x4321);
    stl_le_p(raw + 12, 5000);
    stl_le_p(raw + 16, 0x111);
    stl_le_p(raw + 20, 0xaaaaaaaa);
    stl_le_p(raw + 24, 0xbbbbbbbb);
    stq_le_p(raw + 32, 0x1122334455667788);
    stl_le_p(raw + 44, 0x222);
    g_assert_true(decode());
    g_assert_cmphex(sqe.inv_key, ==, 0x4321);
    g_assert_cmpuint(sqe.len, ==, 5000);
    g_assert_cmpuint(sqe.n_sges, ==, 1);
    g_assert_cmphex(sqe.sges[0].key, ==, 0x111);
    g_assert_cmphex(sqe.sges[0].addr, ==, 0xbbbbbbbbaaaaaaaa);
    g_assert_cmpuint(sqe.sges[0].len, ==, 5000);
    g_assert_cmphex(sqe.raddr, ==, 0x1122334455667788);
    g_assert_cmphex(sqe.rkey, ==, 0x222);
    g_assert_cmpuint(sqe.inline_len, ==, 0);
    raw[3] = (raw[3] & 7) | 1 << 3;
    g_assert_true(decode());
    g_assert_cmphex(sqe.inv_key, ==, 0);
    start(1, 1, 0, 0);
    g_assert_false(decode());
}

static void test_atomic(void)
{
    start(17, 2, 0, INL);
    stq_le_p(raw + 16, 0x1111);
    stq_le_p(raw + 24, 0x2222);
    stq_le_p(raw + 32, 0x3333);
    stl_le_p(raw + 44, 0x444);
    put_sge(48, 0x5555, 8, 0x666);
    g_assert_true(decode());
    g_assert_cmphex(sqe.swap_add, ==, 0x1111);
    g_assert_cmphex(sqe.compare, ==, 0x2222);
    g_assert_cmphex(sqe.raddr, ==, 0x3333);
    g_assert_cmphex(sqe.rkey, ==, 0x444);
    g_assert_cmphex(sqe.sges[0].addr, ==, 0x5555);
    g_assert_cmphex(sqe.sges[0].key, ==, 0x666);
    g_assert_cmpuint(sqe.len, ==, 8);
    raw[3] = (raw[3] & 7) | 18 << 3;
    g_assert_true(decode());
    g_assert_cmphex(sqe.compare, ==, 0);
    stl_le_p(raw + 56, 4);
    g_assert_false(decode());
    start(18, 1, 0, 0);
    g_assert_false(decode());
}

static void test_reg_mr(void)
{
    unsigned i;

    start(14, 2, 0, INL);
    stq_le_p(raw + 8, 0x7000);
    stl_le_p(raw + 16, 0x3000);
    stl_le_p(raw + 20, 0x1234ff);
    stl_le_p(raw + 24, 3u << 12 | 0 << 6 | 0x16 << 1);
    for (i = 0; i < 4; i++) {
        stq_le_p(raw + 32 + i * 8, 0x100000 * (i + 1));
    }
    g_assert_true(decode());
    g_assert_cmphex(sqe.reg.start, ==, 0x7000);
    g_assert_cmphex(sqe.reg.len, ==, 0x3000);
    g_assert_cmphex(sqe.reg.key, ==, 0x1234ff);
    g_assert_cmphex(sqe.reg.access, ==, 0x16);
    g_assert_cmpuint(sqe.reg.n_pages, ==, 3);
    g_assert_true(sqe.reg.is_inline);
    g_assert_cmphex(sqe.reg.pages[2], ==, 0x300000);
    g_assert_cmphex(sqe.reg.pages[3], ==, 0);
    /* More than fit, more than the entry has, a kind that does not exist */
    stl_le_p(raw + 24, 5u << 12);
    g_assert_false(decode());
    stl_le_p(raw + 24, 1u << 12 | 2 << 6);
    g_assert_false(decode());
    start(14, 1, 0, 0);
    stl_le_p(raw + 24, 1u << 12);
    g_assert_false(decode());
    /* A table needs no more than the first WQEBB. */
    stl_le_p(raw + 24, 0xfffffu << 12 | 1 << 6);
    g_assert_true(decode());
    g_assert_false(sqe.reg.is_inline);
    g_assert_cmpuint(sqe.reg.n_pages, ==, 0xfffff);
}

static void test_local_inv(void)
{
    start(15, 1, 0, INL);
    stl_le_p(raw + 20, 0xcafe01);
    g_assert_true(decode());
    g_assert_cmphex(sqe.inv_key, ==, 0xcafe01);
}

static void test_malformed(void)
{
    static const uint8_t unknown[] = { 4, 5, 6, 7, 8, 10, 11, 12, 19, 31 };
    unsigned i;

    for (i = 0; i < sizeof(unknown); i++) {
        start(unknown[i], 2, 0, 0);
        stl_le_p(raw + 12, 0);
        g_assert_false(decode());
        g_assert_cmpuint(sqe.hdr.opcode, ==, unknown[i]);
    }
    /* Seven SGEs, more SGEs than WQEBBs, five WQEBBs */
    start(2, 4, 7, 0);
    for (i = 0; i < 7; i++) {
        put_sge(16 + 16 * i, 0, 0, 0);
    }
    stl_le_p(raw + 12, 0);
    g_assert_false(decode());
    start(2, 1, 2, 0);
    put_sge(16, 0, 0, 0);
    put_sge(32, 0, 0, 0);
    stl_le_p(raw + 12, 0);
    g_assert_false(decode());
    start(2, 5, 0, 0);
    stl_le_p(raw + 12, 0);
    g_assert_false(decode());
    /* A sum beyond 32 bits, which the driver cut */
    start(2, 2, 2, 0);
    put_sge(16, 0, 0x80000000, 0);
    put_sge(32, 0, 0x80000001, 0);
    stl_le_p(raw + 12, 1);
    g_assert_false(decode());
}

static void test_rqe(void)
{
    ErdmaRqe rqe;

    memset(raw, 0xa5, 32);
    stw_le_p(raw, 0x1235);
    stl_le_p(raw + 4, 0x55555);
    put_sge(16, 0x123456789a, 2048, 0x4400);
    erdma_decode_rqe(raw, &rqe);
    g_assert_cmphex(rqe.index, ==, 0x1235);
    g_assert_cmphex(rqe.qpn, ==, 0x55555);
    g_assert_cmphex(rqe.sge.addr, ==, 0x123456789a);
    g_assert_cmpuint(rqe.sge.len, ==, 2048);
    g_assert_cmphex(rqe.sge.key, ==, 0x4400);
}

static void test_cqe(void)
{
    static const uint8_t want[20] = {
        0x80, 12, 1, 0,  0, 0, 0xff, 0xfe,  0, 0x0a, 0xbc, 0xde,
        0x44, 0x33, 0x22, 0x11,  0, 0, 0x10, 0,
    };
    ErdmaCqe cqe = {
        .opcode = 12, .qtype = 1, .index = 0xfffe, .qpn = QPN,
        .imm = 0x11223344, .byte_len = 4096,
    };
    uint8_t out[32];

    memset(out, 0x5a, sizeof(out));
    erdma_encode_cqe(out, &cqe, true);
    g_assert_cmpmem(out, 20, want, 20);
    g_assert_cmphex(ldl_be_p(out + 28), ==, 0);
    /* The key in the immediate's place is the other way round. */
    cqe.opcode = 6;
    cqe.has_inv_key = true;
    cqe.status = 15;
    erdma_encode_cqe(out, &cqe, false);
    g_assert_cmphex(ldl_be_p(out), ==, 6 << 16 | 1 << 8 | 15);
    g_assert_cmphex(ldl_be_p(out + 12), ==, 0x11223344);
    /* Drivers index a table of 19 with it. */
    cqe.opcode = 31;
    erdma_encode_cqe(out, &cqe, false);
    g_assert_cmpuint(out[1], <, 19);
}

static void test_events(void)
{
    uint8_t out[16];

    erdma_encode_ceqe(out, 0xfffff, 0x12345678, true);
    g_assert_cmphex(ldq_le_p(out), ==, 0x345678800fffff);
    erdma_encode_ceqe(out, 1, 0, false);
    g_assert_cmphex(ldq_le_p(out), ==, 1);
    erdma_encode_aeqe(out, 2, 77, true);
    g_assert_cmphex((uint32_t)ldl_le_p(out), ==, 0x80020000);
    g_assert_cmpuint(ldl_le_p(out + 4), ==, 77);
    g_assert_cmphex(ldq_le_p(out + 8), ==, 0);
}

/* The example in the description of QUERY_DEVICE */
static void test_query_device(void)
{
    ErdmaEngineConfig cfg = {
        .qblocks = 128, .max_mr_size_log2 = 36, .max_recv_wr_log2 = 15,
        .max_cqe_log2 = 20, .has_atomics = true, .has_mtt_va = true,
        .has_ext_db = true, .default_cc = 1, .dma_local_key = 0xffffff00,
    };
    uint64_t r0, r1;

    erdma_encode_query_device(&cfg, &r0, &r1);
    g_assert_cmphex(r0, ==, 0x00001400a80f0024);
    g_assert_cmphex(r1, ==, 0xffffff0010800000);
    cfg = (ErdmaEngineConfig) {
        .qblocks = 512, .max_gid_log2 = 8, .max_ah_log2 = 20,
        .max_mw_log2 = 3, .default_cc = 4,
    };
    erdma_encode_query_device(&cfg, &r0, &r1);
    g_assert_cmphex(r0, ==, 0x0008000000001400);
    g_assert_cmphex(r1, ==, 0x42000003);
}

static void test_modify_qp(void)
{
    ErdmaModifyQp m;

    memset(raw, 0, sizeof(raw));
    stl_le_p(raw + 8, 2u << 24 | 3 << 20 | QPN);
    stl_le_p(raw + 12, 0x11223344);
    memcpy(raw + 16, "\x0a\x00\x00\x02\x0a\x00\x00\x01", 8);
    memcpy(raw + 24, "\x12\x34\x00\x50", 4);
    stl_le_p(raw + 28, 1000);
    stl_le_p(raw + 32, 2000);
    erdma_decode_modify_qp(raw, &m);
    g_assert_cmpuint(m.state, ==, 2);
    g_assert_cmpuint(m.cc, ==, 3);
    g_assert_cmphex(m.qpn, ==, QPN);
    g_assert_cmphex(m.cookie, ==, 0x11223344);
    g_assert_cmphex(m.peer_ip, ==, 0x0a000002);
    g_assert_cmphex(m.local_ip, ==, 0x0a000001);
    g_assert_cmphex(m.local_port, ==, 0x1234);
    g_assert_cmphex(m.peer_port, ==, 80);
    g_assert_cmpuint(m.send_nxt, ==, 1000);
    g_assert_cmpuint(m.recv_nxt, ==, 2000);
}

static void build_create_qp(uint32_t sq_mtt, uint32_t rq_mtt)
{
    unsigned i;

    for (i = 8; i < 128; i += 8) {
        stq_le_p(raw + i, 0xeeeeeeeeeeeee000);
    }
    stl_le_p(raw + 8, 10u << 20 | QPN);
    stl_le_p(raw + 12, 9u << 20 | 0x1ffff);
    stl_le_p(raw + 16, 2u << 28 | 1u << 25 | 0x12345);
    stl_le_p(raw + 20, 3u << 28 | 0x54321);
    stq_le_p(raw + 24, 0x10000);
    stq_le_p(raw + 32, 0x20000);
    stl_le_p(raw + 40, sq_mtt);
    stl_le_p(raw + 44, rq_mtt);
    stq_le_p(raw + 48, 0x30000);
    stq_le_p(raw + 56, 0x40000);
    for (i = 0; i < 3; i++) {
        stq_le_p(raw + 64 + i * 8, 0x11000 + i);
        stq_le_p(raw + 88 + i * 8, 0x21000 + i);
    }
    stl_le_p(raw + 112, 0x90u << 16 | 0x91);
}

static void test_create_qp(void)
{
    ErdmaCreateQp qp;
    ErdmaCmdQpDb db;

    build_create_qp(3u << 1 | 0x7000, 500u << 1 | 1);
    erdma_decode_create_qp(raw, 128, &qp, &db);
    g_assert_cmphex(qp.qpn, ==, QPN);
    g_assert_cmphex(qp.pdn, ==, 0x1ffff);
    g_assert_cmpuint(qp.sq_depth_log2, ==, 10);
    g_assert_cmpuint(qp.rq_depth_log2, ==, 9);
    g_assert_cmphex(qp.sq_cqn, ==, 0x12345);
    g_assert_cmphex(qp.rq_cqn, ==, 0x54321);
    g_assert_cmpuint(qp.sq_page_shift, ==, 14);
    g_assert_cmpuint(qp.rq_page_shift, ==, 15);
    g_assert_cmphex(qp.sq_off, ==, 0x7000);
    g_assert_cmpuint(qp.sq_n_pages, ==, 3);
    g_assert_false(qp.sq_has_table);
    g_assert_cmphex(qp.sq_pages[0], ==, 0x10000);
    g_assert_cmphex(qp.sq_pages[2], ==, 0x11001);
    g_assert_cmphex(qp.sq_pages[3], ==, 0);
    g_assert_true(qp.rq_has_table);
    g_assert_cmpuint(qp.rq_n_pages, ==, 500);
    g_assert_cmphex(qp.rq_pages[0], ==, 0x20000);
    g_assert_cmphex(qp.rq_pages[1], ==, 0);
    g_assert_cmphex(qp.sq_dbrec, ==, 0x30000);
    g_assert_cmphex(qp.rq_dbrec, ==, 0x40000);
    g_assert_false(qp.is_kernel);
    g_assert_true(db.has_db_pages);
    g_assert_cmphex(db.sq_page, ==, 0x90);
    g_assert_cmphex(db.rq_page, ==, 0x91);
}

/* Linux 6.1: 64 bytes, no further pages, no doorbell configuration */
static void test_create_qp_short(void)
{
    ErdmaCreateQp qp;
    ErdmaCmdQpDb db;

    build_create_qp(1u << 1 | 1, 1u << 1 | 1);
    erdma_decode_create_qp(raw, 64, &qp, &db);
    g_assert_cmpuint(qp.sq_n_pages, ==, 1);
    g_assert_true(qp.sq_has_table);
    g_assert_false(db.has_db_pages);
    /* More inline pages than it can have: not a garbage page, but none. */
    build_create_qp(2u << 1, 1u << 1);
    erdma_decode_create_qp(raw, 64, &qp, &db);
    g_assert_cmpuint(qp.sq_n_pages, ==, 0);
    g_assert_cmpuint(qp.rq_n_pages, ==, 1);
    /* And without the bit the word is garbage. */
    stl_le_p(raw + 16, 8u << 28 | 5);
    stl_le_p(raw + 20, 8u << 28 | 5);
    erdma_decode_create_qp(raw, 128, &qp, &db);
    g_assert_false(db.has_db_pages);
    g_assert_true(qp.is_kernel);
    stl_le_p(raw + 20, 7u << 28 | 5);
    erdma_decode_create_qp(raw, 128, &qp, &db);
    g_assert_false(qp.is_kernel);
}

static void test_create_cq(void)
{
    ErdmaCmdCreateCq cq;

    memset(raw, 0xff, sizeof(raw));
    stl_le_p(raw + 8, 20u << 24 | 13 << 20 | 0xfedcb);
    stl_le_p(raw + 12, 0x89abc000);
    stl_le_p(raw + 16, 0x7);
    stl_le_p(raw + 20, 0x1234u << 16 | 1 << 15 | 1 << 11 | 31);
    stq_le_p(raw + 24, 0xd0);
    stl_le_p(raw + 32, 0x1000);
    stl_le_p(raw + 36, 0xdead0082);
    erdma_decode_create_cq(raw, 64, &cq);
    g_assert_cmphex(cq.cqn, ==, 0xfedcb);
    g_assert_cmpuint(cq.depth_log2, ==, 20);
    g_assert_cmpuint(cq.page_shift, ==, 25);
    g_assert_cmphex(cq.addr, ==, 0x789abc000);
    g_assert_cmpuint(cq.n_pages, ==, 0x1234);
    g_assert_cmpuint(cq.eqn, ==, 31);
    g_assert_cmphex(cq.dbrec, ==, 0xd0);
    g_assert_cmphex(cq.first_off, ==, 0x1000);
    g_assert_true(cq.has_db_page);
    g_assert_cmphex(cq.db_page, ==, 0x82);
    stl_le_p(raw + 20, 1u << 16 | 31);
    erdma_decode_create_cq(raw, 64, &cq);
    g_assert_false(cq.has_db_page);
}

static void test_reg_mr_cmd(void)
{
    ErdmaRegMr reg;
    unsigned i;

    memset(raw, 0xff, sizeof(raw));
    stl_le_p(raw + 8, 1u << 31 | 0x5a << 20 | 0x12345);
    stl_le_p(raw + 12, 0x1fffeu << 12 | 1 << 6 | 0x15 << 1);
    stq_le_p(raw + 16, 0x7f0000000000);
    stl_le_p(raw + 24, 0x80001000);
    stl_le_p(raw + 28, 30u << 27 | 7 << 24 | 1 << 20 | 0xabcde);
    for (i = 0; i < 4; i++) {
        stq_le_p(raw + 32 + i * 8, 0x1000 * (i + 1));
    }
    erdma_decode_reg_mr(raw, &reg);
    g_assert_cmphex(reg.index, ==, 0x12345);
    g_assert_cmphex(reg.key, ==, 0x5a);
    g_assert_cmpuint(reg.version, ==, 0);
    g_assert_true(reg.is_valid);
    g_assert_cmphex(reg.pdn, ==, 0x1fffe);
    g_assert_cmpuint(reg.type, ==, 1);
    g_assert_cmphex(reg.access, ==, 0x15);
    g_assert_cmphex(reg.start, ==, 0x7f0000000000);
    g_assert_cmphex(reg.len, ==, 0x80001000);
    g_assert_true(reg.is_len_cut);
    g_assert_cmphex(reg.n_pages, ==, 0xabcde);
    g_assert_cmpuint(reg.level, ==, 1);
    g_assert_cmpuint(reg.page_shift, ==, 30);
    /* Not defined before version 1 */
    g_assert_cmpuint(reg.table_shift, ==, 12);
    g_assert_cmphex(reg.pages[0], ==, 0x1000);
    g_assert_cmphex(reg.pages[1], ==, 0);

    stl_le_p(raw + 8, 1u << 28);
    stl_le_p(raw + 28, 12u << 27 | 4 << 24 | 3 << 20 | 5);
    stl_le_p(raw + 40, 0x10);
    stl_le_p(raw + 44, 0x80000002);
    erdma_decode_reg_mr(raw, &reg);
    g_assert_cmpuint(reg.version, ==, 1);
    g_assert_false(reg.is_valid || reg.is_len_cut);
    g_assert_cmphex(reg.len, ==, 0x1080001000);
    g_assert_cmphex(reg.n_pages, ==, 0x8000000200005);
    g_assert_cmpuint(reg.table_shift, ==, 16);
    g_assert_cmpuint(reg.level, ==, 3);

    stl_le_p(raw + 8, 0);
    stl_le_p(raw + 28, 12u << 27 | 4);
    erdma_decode_reg_mr(raw, &reg);
    g_assert_cmphex(reg.pages[3], ==, 0x4000);
    g_assert_cmphex(reg.n_pages, ==, 4);
}

static void test_cmd_cqe(void)
{
    static const uint8_t want[24] = {
        0x80, 7, 2, 4,  0, 0, 0x12, 0x34,
        0x55, 0x66, 0x77, 0x88,  0x11, 0x22, 0x33, 0x44,
        0xdd, 0xee, 0xff, 0x00,  0x99, 0xaa, 0xbb, 0xcc,
    };
    ErdmaCmdCqe cqe = {
        .opcode = 7, .status = 4, .index = 0x1234,
        .resp0 = 0x1122334455667788, .resp1 = 0x99aabbccddeeff00,
    };
    uint8_t out[32];

    erdma_encode_cmd_cqe(out, &cqe, true);
    g_assert_cmpmem(out, 24, want, 24);
    erdma_encode_cmd_cqe(out, &cqe, false);
    g_assert_cmphex(out[0], ==, 0);
}

static void test_stats(void)
{
    ErdmaEngineStats es = { .tx_requests = 1 };
    ErdmaXportStats xs = {
        .tx_packets = 2, .tx_bytes = 3, .rx_packets = 7,
        .rx_bytes = 0x0123456789abcdef,
    };
    uint8_t out[ERDMA_STATS_SIZE];

    xs.drops[0] = 4;
    xs.drops[ERDMA_XPORT_DROP_COUNT - 1] = 5;
    erdma_encode_stats(out, &es, &xs);
    g_assert_cmphex(lduw_le_p(out), ==, 0x5566);
    g_assert_cmpuint(ldq_le_p(out + 16), ==, 1);
    g_assert_cmpuint(ldq_le_p(out + 24), ==, 2);
    g_assert_cmpuint(ldq_le_p(out + 32), ==, 3);
    g_assert_cmpuint(ldq_le_p(out + 64), ==, 7);
    g_assert_cmphex(ldq_le_p(out + 72), ==, 0x0123456789abcdef);
    g_assert_cmpuint(ldq_le_p(out + 80), ==, 9);
}

static void test_ext_db(void)
{
    ErdmaExtPages p = { .s = 0x1111, .r = 0x2222, .c = 0x3333 };

    g_assert_cmphex(erdma_encode_alloc_db(&p), ==, 0x2222333300001111);
    memset(raw, 0xff, sizeof(raw));
    stw_le_p(raw + 12, 0x2222);
    stw_le_p(raw + 14, 0x1111);
    stw_le_p(raw + 18, 0x3333);
    memset(&p, 0, sizeof(p));
    erdma_decode_free_db(raw, &p);
    g_assert_cmphex(p.s, ==, 0x1111);
    g_assert_cmphex(p.r, ==, 0x2222);
    g_assert_cmphex(p.c, ==, 0x3333);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/decode/header", test_header);
    g_test_add_func("/engine/decode/send", test_send);
    g_test_add_func("/engine/decode/send-imm-and-inv", test_send_imm_and_inv);
    g_test_add_func("/engine/decode/write", test_write);
    g_test_add_func("/engine/decode/inline", test_inline);
    g_test_add_func("/engine/decode/read", test_read);
    g_test_add_func("/engine/decode/atomic", test_atomic);
    g_test_add_func("/engine/decode/reg-mr", test_reg_mr);
    g_test_add_func("/engine/decode/local-inv", test_local_inv);
    g_test_add_func("/engine/decode/malformed", test_malformed);
    g_test_add_func("/engine/decode/rqe", test_rqe);
    g_test_add_func("/engine/decode/cqe", test_cqe);
    g_test_add_func("/engine/decode/events", test_events);
    g_test_add_func("/engine/decode-cmd/query-device", test_query_device);
    g_test_add_func("/engine/decode-cmd/modify-qp", test_modify_qp);
    g_test_add_func("/engine/decode-cmd/create-qp", test_create_qp);
    g_test_add_func("/engine/decode-cmd/create-qp-short",
                    test_create_qp_short);
    g_test_add_func("/engine/decode-cmd/create-cq", test_create_cq);
    g_test_add_func("/engine/decode-cmd/reg-mr", test_reg_mr_cmd);
    g_test_add_func("/engine/decode-cmd/cqe", test_cmd_cqe);
    g_test_add_func("/engine/decode-cmd/stats", test_stats);
    g_test_add_func("/engine/decode-cmd/ext-db", test_ext_db);
    return g_test_run();
}
