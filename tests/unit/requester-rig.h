/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of the requester: one QP, and a peer that does what it likes.
 */

#ifndef REQUESTER_RIG_H
#define REQUESTER_RIG_H

#include "qp-rig.h"

#define LEN 256

typedef struct Fixture {
    Rig *rig;
    RigHca *hca;
    RigQp *qp;
    RigPeer *peer;
    uint64_t buf;               /* LEN bytes */
    uint32_t all;
    uint32_t none;              /* a region without LR and LW */
    uint32_t other_pd;
} Fixture;

static inline void setup_qp(Fixture *f, const RigQpOpts *opts)
{
    f->rig = rig_new();
    f->hca = &f->rig->hca[0];
    f->qp = rig_qp(f->hca, 5, opts);
    f->buf = rig_alloc(f->hca, LEN);
    f->all = rig_mr(f->hca, f->buf, LEN, RIG_ALL_RIGHTS);
    f->none = rig_mr(f->hca, f->buf, LEN, ERDMA_MR_ACC_RR);
    f->other_pd = rig_mr_pd(f->hca, f->buf, LEN, RIG_ALL_RIGHTS, RIG_PD + 1);
    f->peer = rig_peer(f->rig, f->qp);
    rig_run(f->rig, RIG_MS);
}

static inline void setup(Fixture *f, gconstpointer data)
{
    setup_qp(f, &(RigQpOpts) { .sq_depth_log2 = 9 });
}

static inline void setup_user(Fixture *f, gconstpointer data)
{
    setup_qp(f, &(RigQpOpts) { .is_user = true });
}

static inline void teardown(Fixture *f, gconstpointer data)
{
    rig_qp_free(f->qp);
    rig_free(f->rig);
}

static inline RigWr wr_of(Fixture *f, uint8_t op, uint32_t len)
{
    RigWr wr = { .op = op, .n_sges = 1, .rkey = 0x1234, .raddr = 0x5678,
                 .sges = { { f->buf, len, f->all } } };

    return wr;
}

static inline uint16_t post(Fixture *f, uint8_t op, uint32_t len)
{
    RigWr wr = wr_of(f, op, len);

    return rig_post_send(f->qp, &wr);
}

static inline void answer(Fixture *f, const RigMsg *req)
{
    ErdmaXportMsgHdr hdr = { .op = ERDMA_XPORT_OP_READ_RESP,
                             .len = req->hdr.read_len,
                             .req_msn = req->msn };

    rig_peer_send(f->peer, &hdr, NULL);
}

static inline bool is_silent(Fixture *f)
{
    rig_run(f->rig, 10 * RIG_MS);
    return g_queue_is_empty(&f->peer->rx);
}

#define ADD(name, func) \
    g_test_add("/requester/" name, Fixture, NULL, setup, func, teardown)

static inline void add_numbered(const char *name, unsigned n,
                                void (*func)(Fixture *, gconstpointer))
{
    g_autofree char *path = g_strdup_printf("/requester/%s/%u", name, n);

    g_test_add(path, Fixture, GUINT_TO_POINTER(n), setup, func, teardown);
}

#endif
