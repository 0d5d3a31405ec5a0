/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: two connected kernel QPs of one adapter, and what to do with
 * them.  What says int returns 0 or a negative errno, and has told the reason.
 */
#ifndef KVERBS_CHECK_PAIR_H
#define KVERBS_CHECK_PAIR_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define KV_BUF_SIZE     (64 * 1024)
#define KV_MAX_SGE      6
#define KV_WAIT_MS      20000

/* One side: buffer, QP, a CQ for each of its queues, and a region. */
typedef struct KvEnd {
    struct rdma_cm_id *id;
    struct completion changed;  /* the connection's state */
    int status;                 /* what the change was: 0 or an errno */
    struct ib_pd *pd;
    struct ib_cq *scq, *rcq;
    struct ib_qp *qp;
    struct ib_mr *mr;           /* not registered yet */
    atomic_t n_events;          /* of rcq */
    u8 key_byte;                /* of the last registration */
    u8 *buf;
    dma_addr_t dma;
} KvEnd;

typedef struct KvPair {
    KvEnd a, b;                 /* the one that connects, and the other one */
} KvPair;

/* A request; offsets are in the buffers. */
typedef struct KvOp {
    enum ib_wr_opcode opcode;
    int flags;                  /* IB_SEND_*, beside IB_SEND_SIGNALED */
    bool silent;                /* not signalled */
    u64 id;
    u32 at, len;
    int n_sge;                  /* the data are in so many pieces; 0: 1 */
    u32 lkey;                   /* 0: the one for all of memory */
    u32 remote_at, rkey;
    u32 ex;                     /* immediate value, or key to invalidate */
    u64 compare_add, swap;
} KvOp;

/* Where the second ends wait; there is one listener at a time. */
int kv_listen(const struct sockaddr_in *address);
void kv_stop_listening(void);

/* depth: of all queues; an error leaves something to close, too. */
int kv_open(KvPair *p, u32 depth);
void kv_close(KvPair *p);

/* The region is [at, at + len) of the buffer now, with a new key in e->mr. */
int kv_register(KvEnd *e, u32 at, u32 len, int access);

int kv_recv(KvEnd *e, u64 id, u32 at, u32 len);
int kv_post(KvEnd *e, KvEnd *peer, const KvOp *op);

/* Takes n completions, in wc if that is not NULL. */
int kv_poll(struct ib_cq *cq, struct ib_wc *wc, int n);
/* Takes one, which must be of request id and have that status. */
int kv_expect(struct ib_cq *cq, struct ib_wc *wc, u64 id,
              enum ib_wc_status status);
/* There must not be one within so many milliseconds. */
int kv_expect_none(struct ib_cq *cq, unsigned ms);

/* Bytes that depend on the seed and on where they are in a message. */
void kv_fill(u8 *to, u32 len, u32 seed);
/* They must be there, and none beside them: the guard is 16 bytes. */
int kv_expect_bytes(const u8 *at, u32 len, u32 seed);
#define KV_GUARD        16

/* The reason that a case fails for. */
int kv_fail(const char *format, ...) __printf(1, 2);

#endif
