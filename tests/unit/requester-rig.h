/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of the requester: what they post, and how the peer answers.
 */

#ifndef REQUESTER_RIG_H
#define REQUESTER_RIG_H

#include "peer-fixture.h"

static inline void setup(Fixture *f, gconstpointer data)
{
    setup_qp(f, &(RigQpOpts) { .sq_depth_log2 = 9 }, ERDMA_MR_ACC_RR);
}

static inline void setup_user(Fixture *f, gconstpointer data)
{
    setup_qp(f, &(RigQpOpts) { .is_user = true }, ERDMA_MR_ACC_RR);
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

#endif /* REQUESTER_RIG_H */
