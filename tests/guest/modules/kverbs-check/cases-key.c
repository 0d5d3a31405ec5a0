/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: keys come and go by requests.  In each case the key is used
 * before and after it is invalidated.
 */
#include "cases.h"

#define REGION          8192            /* where the region is */
#define LEN             4096
#define ALL_ACCESS      (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
                         IB_ACCESS_REMOTE_READ)

/* The end a writes where b's region is. */
static int write_with(KvPair *p, u32 rkey, enum ib_wc_status status)
{
    KvOp op = { .opcode = IB_WR_RDMA_WRITE, .id = 77, .len = LEN,
                .remote_at = REGION, .rkey = rkey };
    struct ib_wc wc;
    u32 seed = rkey;

    memset(p->b.buf + REGION, 0, LEN + KV_GUARD);
    kv_fill(p->a.buf, LEN, seed);
    if (kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->a.scq, &wc, op.id, status)) {
        return kv_fail("write with key %x", rkey);
    }
    if (status == IB_WC_SUCCESS) {
        return kv_expect_bytes(p->b.buf + REGION, LEN, seed);
    }
    if (memchr_inv(p->b.buf + REGION, 0, LEN)) {
        return kv_fail("written in spite of the error");
    }
    return 0;
}

int kv_case_send_inv(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_SEND_WITH_INV, .id = 1, .len = 20 };
    struct ib_wc wc;

    if (kv_register(&p->b, REGION, LEN, ALL_ACCESS) ||
        write_with(p, p->b.mr->rkey, IB_WC_SUCCESS)) {
        return -EIO;
    }
    op.ex = p->b.mr->rkey;
    kv_fill(p->a.buf, op.len, 5);
    memset(p->b.buf, 0, 64);
    if (kv_recv(&p->b, 2, 0, 64) || kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->b.rcq, &wc, 2, IB_WC_SUCCESS) ||
        kv_expect_bytes(p->b.buf, op.len, 5)) {
        return -EIO;
    }
    if (!(wc.wc_flags & IB_WC_WITH_INVALIDATE) ||
        wc.ex.invalidate_rkey != op.ex) {
        return kv_fail("key %x instead of %x, flags %x",
                       wc.ex.invalidate_rkey, op.ex, wc.wc_flags);
    }
    return kv_expect(p->a.scq, &wc, 1, IB_WC_SUCCESS) ?:
           write_with(p, op.ex, IB_WC_REM_ACCESS_ERR);
}

/* The region that a read brings its data to is invalid afterwards. */
int kv_case_read_inv(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_RDMA_READ_WITH_INV, .id = 1, .at = REGION,
                .len = LEN, .remote_at = REGION };
    struct ib_wc wc;

    if (kv_register(&p->a, REGION, LEN, ALL_ACCESS) ||
        kv_register(&p->b, REGION, LEN, ALL_ACCESS)) {
        return -EIO;
    }
    op.lkey = op.ex = p->a.mr->lkey;
    op.rkey = p->b.mr->rkey;
    kv_fill(p->b.buf + REGION, LEN, 9);
    if (kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->a.scq, &wc, 1, IB_WC_SUCCESS) ||
        kv_expect_bytes(p->a.buf + REGION, LEN, 9)) {
        return -EIO;
    }
    op.opcode = IB_WR_RDMA_READ;
    op.ex = 0;
    return kv_post(&p->a, &p->b, &op) ?:
           kv_expect(p->a.scq, &wc, 1, IB_WC_LOC_ACCESS_ERR);
}

int kv_case_local_inv(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_LOCAL_INV, .id = 1 };
    struct ib_wc wc;

    if (kv_register(&p->b, REGION, LEN, ALL_ACCESS) ||
        write_with(p, p->b.mr->rkey, IB_WC_SUCCESS)) {
        return -EIO;
    }
    op.ex = p->b.mr->rkey;
    return kv_post(&p->b, &p->a, &op) ?:
           kv_expect(p->b.scq, &wc, 1, IB_WC_SUCCESS) ?:
           write_with(p, op.ex, IB_WC_REM_ACCESS_ERR);
}

/* Registered again, the region has a key of its own: the old one is void. */
int kv_case_new_key(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_LOCAL_INV, .id = 1 };
    struct ib_wc wc;
    u32 old = 0;

    for (int i = 0; i < 300; i++) {     /* the key byte goes round */
        if (kv_register(&p->b, REGION, LEN, ALL_ACCESS) ||
            write_with(p, p->b.mr->rkey, IB_WC_SUCCESS)) {
            return -EIO;
        }
        if (i == 299) {
            break;
        }
        op.ex = old = p->b.mr->rkey;
        if (kv_post(&p->b, &p->a, &op) ||
            kv_expect(p->b.scq, &wc, 1, IB_WC_SUCCESS)) {
            return -EIO;
        }
    }
    return write_with(p, old, IB_WC_REM_ACCESS_ERR);
}
