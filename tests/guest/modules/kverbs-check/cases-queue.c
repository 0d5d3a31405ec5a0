/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: order, events, and what is left when a QP fails.
 */
#include <linux/delay.h>

#include "cases.h"

#define REGION          8192

/* A send of what the read before it brings, though nobody waits for it. */
int kv_case_fence(KvPair *p)
{
    KvOp read = { .opcode = IB_WR_RDMA_READ, .id = 1, .at = REGION,
                  .len = 16384, .remote_at = REGION, .silent = true };
    KvOp send = { .opcode = IB_WR_SEND, .id = 2, .at = REGION,
                  .len = 16384, .flags = IB_SEND_FENCE };
    struct ib_wc wc;

    if (kv_register(&p->a, REGION, 16384, IB_ACCESS_LOCAL_WRITE |
                                          IB_ACCESS_REMOTE_WRITE) ||
        kv_register(&p->b, REGION, 16384, IB_ACCESS_LOCAL_WRITE |
                                          IB_ACCESS_REMOTE_READ)) {
        return -EIO;
    }
    read.lkey = p->a.mr->lkey;
    read.rkey = p->b.mr->rkey;
    for (int i = 0; i < 20; i++) {
        kv_fill(p->b.buf + REGION, read.len, i);
        memset(p->b.buf + 32768, 0, read.len + KV_GUARD);
        if (kv_recv(&p->b, 3, 32768, read.len) ||
            kv_post(&p->a, &p->b, &read) || kv_post(&p->a, &p->b, &send) ||
            kv_expect(p->b.rcq, &wc, 3, IB_WC_SUCCESS) ||
            kv_expect_bytes(p->b.buf + 32768, read.len, i) ||
            kv_expect(p->a.scq, &wc, 2, IB_WC_SUCCESS)) {
            return -EIO;
        }
    }
    return 0;
}

static int wait_events(KvEnd *e, int n)
{
    for (int i = 0; i < 2000; i++) {
        if (atomic_read(&e->n_events) >= n) {
            return 0;
        }
        msleep(5);
    }
    return kv_fail("no event");
}

/* A CQ that wants solicited events only has none of other messages. */
int kv_case_solicited(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_SEND, .len = 10 };
    struct ib_wc wc;

    ib_req_notify_cq(p->b.rcq, IB_CQ_SOLICITED);
    for (int i = 0; i < 4; i++) {
        op.id = i;
        op.flags = i == 3 ? IB_SEND_SOLICITED : 0;
        if (kv_recv(&p->b, i, 0, 64) || kv_post(&p->a, &p->b, &op) ||
            kv_expect(p->a.scq, &wc, i, IB_WC_SUCCESS)) {
            return -EIO;
        }
        if (i == 2) {
            msleep(100);
            if (atomic_read(&p->b.n_events)) {
                return kv_fail("an event that nobody asked for");
            }
        }
    }
    if (wait_events(&p->b, 1) || kv_poll(p->b.rcq, NULL, 4)) {
        return -EIO;
    }
    /* Armed for all, one that is not solicited is enough; and only one. */
    ib_req_notify_cq(p->b.rcq, IB_CQ_NEXT_COMP);
    op.flags = 0;
    for (int i = 0; i < 2; i++) {
        if (kv_recv(&p->b, i, 0, 64) || kv_post(&p->a, &p->b, &op) ||
            kv_poll(p->a.scq, NULL, 1) || wait_events(&p->b, 2)) {
            return -EIO;
        }
    }
    msleep(100);
    if (atomic_read(&p->b.n_events) != 2) {
        return kv_fail("%d events", atomic_read(&p->b.n_events));
    }
    return 0;
}

int kv_case_signal_every(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_SEND, .len = 10 };
    struct ib_wc wc;

    for (int n = 2; n <= 7; n++) {
        for (int i = 0; i < 6 * n; i++) {
            op.id = i;
            op.silent = (i + 1) % n != 0;
            if (kv_recv(&p->b, i, 0, 64) || kv_post(&p->a, &p->b, &op) ||
                kv_expect(p->b.rcq, &wc, i, IB_WC_SUCCESS) ||
                (!op.silent &&
                 kv_expect(p->a.scq, &wc, i, IB_WC_SUCCESS))) {
                return kv_fail("every %d", n);
            }
        }
        if (kv_expect_none(p->a.scq, 20)) {
            return -EIO;
        }
    }
    return 0;
}

#define SLOT            128             /* of a message's buffer */
#define BATCH           16
#define N_BATCHES       4200

static KvOp wrap_op(int i)
{
    KvOp op = { .opcode = IB_WR_SEND_WITH_IMM, .id = i, .ex = i * 0x10001,
                .at = i % BATCH * SLOT, .len = i % 97 };

    op.n_sge = op.len < KV_MAX_SGE ? 1 : 1 + i % KV_MAX_SGE;
    op.flags = i % 3 ? 0 : IB_SEND_INLINE;
    return op;
}

static int wrap_post(KvPair *p, int i)
{
    KvOp op = wrap_op(i);

    kv_fill(p->a.buf + op.at, op.len, i);
    memset(p->b.buf + op.at, 0, SLOT);
    return kv_recv(&p->b, i, op.at, 100) ?: kv_post(&p->a, &p->b, &op);
}

static int wrap_take(KvPair *p, int i)
{
    KvOp op = wrap_op(i);
    struct ib_wc wc;

    if (kv_expect(p->b.rcq, &wc, i, IB_WC_SUCCESS) ||
        kv_expect_bytes(p->b.buf + op.at, op.len, i)) {
        return -EIO;
    }
    if (wc.byte_len != op.len || be32_to_cpu(wc.ex.imm_data) != op.ex) {
        return kv_fail("%u bytes, immediate %x", wc.byte_len,
                       be32_to_cpu(wc.ex.imm_data));
    }
    return kv_expect(p->a.scq, &wc, i, IB_WC_SUCCESS);
}

/* Requests of one to several entries, until all 16-bit indices wrapped. */
int kv_case_wrap(KvPair *p)
{
    for (int batch = 0; batch < N_BATCHES; batch++) {
        int first = batch * BATCH;

        for (int i = first; i < first + BATCH; i++) {
            if (wrap_post(p, i)) {
                return kv_fail("message %d", i);
            }
        }
        for (int i = first; i < first + BATCH; i++) {
            if (wrap_take(p, i)) {
                return kv_fail("message %d", i);
            }
        }
    }
    return 0;
}

static int post_both(KvPair *p, int first, int n)
{
    KvOp op = { .opcode = IB_WR_SEND, .len = 10 };

    for (int i = first; i < first + n; i++) {
        op.id = i;
        if (kv_recv(&p->a, i, 0, 64) || kv_post(&p->a, &p->b, &op)) {
            return -EIO;
        }
    }
    return 0;
}

/* All that a has posted comes back flushed, once each, in order. */
static int expect_flushed(KvPair *p, int first, int n)
{
    struct ib_wc wc;

    for (int i = first; i < first + n; i++) {
        if (kv_expect(p->a.scq, &wc, i, IB_WC_WR_FLUSH_ERR) ||
            kv_expect(p->a.rcq, &wc, i, IB_WC_WR_FLUSH_ERR)) {
            return -EIO;
        }
    }
    return kv_expect_none(p->a.scq, 50) ?: kv_expect_none(p->a.rcq, 0);
}

/* N are posted, the QP fails, M are posted: N + M are flushed. */
int kv_case_flush(KvPair *p)
{
    struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
    int ret;

    if (post_both(p, 0, 20)) {          /* b has no receives */
        return -EIO;
    }
    ret = ib_modify_qp(p->a.qp, &attr, IB_QP_STATE);
    if (ret) {
        return kv_fail("ib_modify_qp: %d", ret);
    }
    /* Some before the first ones are taken, some after, one at a time. */
    if (post_both(p, 20, 10) || expect_flushed(p, 0, 30)) {
        return -EIO;
    }
    for (int i = 30; i < 40; i++) {
        if (post_both(p, i, 1) || expect_flushed(p, i, 1)) {
            return -EIO;
        }
    }
    return 0;
}

/* The same when a request of its own is what makes the QP fail. */
int kv_case_flush_violation(KvPair *p)
{
    KvOp op = { .opcode = IB_WR_RDMA_WRITE, .id = 99, .len = 10,
                .rkey = 0x123400 };
    struct ib_wc wc;

    if (kv_recv(&p->a, 0, 0, 64) || kv_post(&p->a, &p->b, &op) ||
        kv_expect(p->a.scq, &wc, 99, IB_WC_REM_ACCESS_ERR) ||
        kv_expect(p->a.rcq, &wc, 0, IB_WC_WR_FLUSH_ERR)) {
        return -EIO;
    }
    return post_both(p, 1, 12) ?: expect_flushed(p, 1, 12);
}
