/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: data and immediate values.
 */
#include "cases.h"

#define TO              (32 * 1024)     /* where messages arrive */

static const u32 immediates[] = { 0, 1, 0x01020304, 0x80000000, 0xffffffff };

static int expect_immediate(const struct ib_wc *wc, enum ib_wc_opcode opcode,
                            u32 value, u32 len)
{
    if (wc->opcode != opcode || wc->byte_len != len) {
        return kv_fail("opcode %d, %u bytes", wc->opcode, wc->byte_len);
    }
    if (!(wc->wc_flags & IB_WC_WITH_IMM) ||
        be32_to_cpu(wc->ex.imm_data) != value) {
        return kv_fail("immediate %08x instead of %08x, flags %x",
                       be32_to_cpu(wc->ex.imm_data), value, wc->wc_flags);
    }
    return 0;
}

int kv_case_send_imm(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_SEND_WITH_IMM, .len = 40 };
    struct ib_wc wc;

    for (int i = 0; i < ARRAY_SIZE(immediates); i++) {
        op.id = i;
        op.ex = immediates[i];
        memset(p->b.buf, 0, 100);
        kv_fill(p->a.buf, op.len, i);
        if (kv_recv(&p->b, 100 + i, 0, 64) || kv_post(&p->a, &p->b, &op) ||
            kv_expect(p->b.rcq, &wc, 100 + i, IB_WC_SUCCESS) ||
            expect_immediate(&wc, IB_WC_RECV, op.ex, op.len) ||
            kv_expect_bytes(p->b.buf, op.len, i) ||
            kv_expect(p->a.scq, &wc, i, IB_WC_SUCCESS)) {
            return -EIO;
        }
    }
    return 0;
}

int kv_case_write_imm(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_RDMA_WRITE_WITH_IMM, .len = 5000,
                .remote_at = TO };
    struct ib_wc wc;

    if (kv_register(&p->b, TO, 8192, IB_ACCESS_LOCAL_WRITE |
                                     IB_ACCESS_REMOTE_WRITE)) {
        return -EIO;
    }
    op.rkey = p->b.mr->rkey;
    for (int i = 0; i < ARRAY_SIZE(immediates); i++) {
        op.id = i;
        op.ex = immediates[i];
        kv_fill(p->a.buf, op.len, i);
        if (kv_recv(&p->b, 100 + i, 0, 64) || kv_post(&p->a, &p->b, &op) ||
            kv_expect(p->b.rcq, &wc, 100 + i, IB_WC_SUCCESS) ||
            expect_immediate(&wc, IB_WC_RECV_RDMA_WITH_IMM, op.ex, op.len) ||
            kv_expect_bytes(p->b.buf + TO, op.len, i) ||
            kv_expect(p->a.scq, &wc, i, IB_WC_SUCCESS)) {
            return -EIO;
        }
    }
    return 0;
}

static int write_and_read_back(KvPair *p, const KvOp *write)
{
    KvOp read = { .opcode = IB_WR_RDMA_READ, .id = 2, .at = TO,
                  .len = write->len, .remote_at = TO, .rkey = write->rkey,
                  .lkey = p->a.mr->lkey };
    struct ib_wc wc;
    u32 seed = write->len + write->n_sge;

    memset(p->b.buf + TO, 0, write->len + KV_GUARD);
    memset(p->a.buf + TO, 0, write->len + KV_GUARD);
    kv_fill(p->a.buf, write->len, seed);
    if (kv_post(&p->a, &p->b, write) ||
        kv_expect(p->a.scq, &wc, write->id, IB_WC_SUCCESS) ||
        kv_post(&p->a, &p->b, &read) ||
        kv_expect(p->a.scq, &wc, read.id, IB_WC_SUCCESS) ||
        kv_expect_bytes(p->b.buf + TO, write->len, seed) ||
        kv_expect_bytes(p->a.buf + TO, write->len, seed)) {
        return kv_fail("%u bytes in %d pieces, flags %x", write->len,
                       write->n_sge, write->flags);
    }
    return 0;
}

/* Writes of all sizes and numbers of SGEs, also inline; each is read back. */
int kv_case_sweep(KvPair *p)
{
    static const u32 sizes[] = { 1, 8, 64, 95, 96, 97, 1439, 1440, 4096,
                                 4097, 16384 };
    int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
                 IB_ACCESS_REMOTE_READ;
    KvOp op = { .opcode = IB_WR_RDMA_WRITE, .id = 1, .remote_at = TO };

    if (kv_register(&p->a, TO, 20480, access) ||
        kv_register(&p->b, TO, 20480, access)) {
        return -EIO;
    }
    op.rkey = p->b.mr->rkey;
    for (int i = 0; i < ARRAY_SIZE(sizes); i++) {
        op.len = sizes[i];
        for (op.n_sge = 1; op.n_sge <= min_t(u32, op.len, KV_MAX_SGE);
             op.n_sge++) {
            op.flags = 0;
            if (write_and_read_back(p, &op)) {
                return -EIO;
            }
            op.flags = IB_SEND_INLINE;
            if (op.len <= 96 && write_and_read_back(p, &op)) {
                return -EIO;
            }
        }
    }
    return 0;
}

int kv_case_atomics(KvPair *p)
{
    KvOp op = { .id = 1, .at = 0, .len = 8, .remote_at = TO };
    u64 *there = (u64 *)(p->b.buf + TO), *here = (u64 *)p->a.buf;
    struct ib_wc wc;

    if (p->a.id->device->attrs.atomic_cap == IB_ATOMIC_NONE) {
        return KV_SKIPPED;
    }
    if (kv_register(&p->b, TO, 8, IB_ACCESS_LOCAL_WRITE |
                                  IB_ACCESS_REMOTE_ATOMIC)) {
        return -EIO;
    }
    op.rkey = p->b.mr->rkey;
    *there = 0x00000000ffffffffull;
    op.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
    op.compare_add = 0x0102030400000001ull;
    if (kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->a.scq, &wc, op.id, IB_WC_SUCCESS)) {
        return -EIO;
    }
    if (*here != 0xffffffffull || *there != 0x0102030500000000ull) {
        return kv_fail("fetch and add: %llx, %llx", *here, *there);
    }
    op.opcode = IB_WR_ATOMIC_CMP_AND_SWP;
    op.compare_add = 0x0102030500000000ull;
    op.swap = 0xfedcba9876543210ull;
    if (kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->a.scq, &wc, op.id, IB_WC_SUCCESS)) {
        return -EIO;
    }
    if (*here != op.compare_add || *there != op.swap) {
        return kv_fail("compare and swap: %llx, %llx", *here, *there);
    }
    op.swap = 1;                        /* what is there differs now */
    if (kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->a.scq, &wc, op.id, IB_WC_SUCCESS)) {
        return -EIO;
    }
    if (*here != 0xfedcba9876543210ull || *there != *here) {
        return kv_fail("swapped: %llx, %llx", *here, *there);
    }
    return 0;
}

/* A message longer than the receive: both sides hear of it. */
int kv_case_too_long(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_SEND, .id = 1, .len = 65 };
    struct ib_wc wc;

    return kv_recv(&p->b, 2, 0, 64) || kv_post(&p->a, &p->b, &op) ||
           kv_expect(p->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR) ||
           kv_expect(p->b.rcq, &wc, 2, IB_WC_REM_ACCESS_ERR) ? -EIO : 0;
}
