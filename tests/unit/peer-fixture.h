/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of requester and responder: one QP in RTS, and a peer that does
 * what it likes.
 */

#ifndef PEER_FIXTURE_H
#define PEER_FIXTURE_H

#include "qp-rig.h"

#define LEN 256

typedef struct Fixture {
    Rig *rig;
    RigHca *hca;
    RigQp *qp;
    RigPeer *peer;
    uint64_t buf;               /* LEN bytes */
    uint32_t all;               /* region over buf with all rights */
    uint32_t none;              /* with none that the test is about */
    uint32_t other_pd;
} Fixture;

/* @access: what the region "none" has */
static inline void setup_qp(Fixture *f, const RigQpOpts *opts, uint8_t access)
{
    f->rig = rig_new();
    f->hca = &f->rig->hca[0];
    f->qp = rig_qp(f->hca, 5, opts);
    f->buf = rig_alloc(f->hca, LEN);
    f->all = rig_mr(f->hca, f->buf, LEN, RIG_ALL_RIGHTS);
    f->none = rig_mr(f->hca, f->buf, LEN, access);
    f->other_pd = rig_mr_pd(f->hca, f->buf, LEN, RIG_ALL_RIGHTS, RIG_PD + 1);
    f->peer = rig_peer(f->rig, f->qp);
    rig_run(f->rig, RIG_MS);
}

static inline void teardown(Fixture *f, gconstpointer data)
{
    rig_qp_free(f->qp);
    rig_free(f->rig);
}

#endif /* PEER_FIXTURE_H */
