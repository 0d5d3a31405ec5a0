/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests of snapshots: two HCAs in the middle of everything. */

#ifndef BUSY_RIG_H
#define BUSY_RIG_H

#include "qp-rig.h"

#define BUSY_LEN    100000

typedef struct Busy {
    Rig *rig;
    RigQp *a, *b;
    ErdmaEngineSnap s;
} Busy;

static inline void busy_post(RigQp *qp, uint64_t buf, uint32_t key,
                             uint64_t rbuf, uint32_t rkey)
{
    static const uint8_t ops[] = {
        ERDMA_OP_WRITE, ERDMA_OP_READ, ERDMA_OP_ATOMIC_FAA, ERDMA_OP_SEND,
    };
    unsigned i;

    for (i = 0; i < 16; i++) {
        RigWr wr = {
            .op = ops[i % 4], .n_sges = 1, .rkey = rkey, .raddr = rbuf,
            .sges = { { buf, ops[i % 4] == ERDMA_OP_ATOMIC_FAA ? 8 : 20000,
                        key } },
        };

        rig_post_send(qp, &wr);
    }
    rig_post_send(qp, &(RigWr) { .op = ERDMA_OP_WRITE, .inline_data = "12345",
                                 .inline_len = 5, .rkey = rkey,
                                 .raddr = rbuf });
}

/* Two HCAs in the middle of something; the first one's snapshot */
static inline void busy_setup_cc(Busy *f, uint8_t cc)
{
    uint64_t buf[2];
    uint32_t key[2];
    char *error = NULL;
    unsigned i;

    f->rig = rig_new();
    f->rig->loss_percent = 10;
    f->rig->cc = cc;
    f->rig->is_stamping = cc == ERDMA_CC_HPCC_INT;
    rig_pair(f->rig, &f->a, &f->b);
    for (i = 0; i < 2; i++) {
        buf[i] = rig_alloc(&f->rig->hca[i], BUSY_LEN);
        key[i] = rig_mr(&f->rig->hca[i], buf[i], BUSY_LEN, RIG_ALL_RIGHTS);
    }
    rig_frmr(&f->rig->hca[0], 16);
    for (i = 0; i < 8; i++) {
        rig_post_recv(f->a, buf[0], BUSY_LEN, key[0]);
        rig_post_recv(f->b, buf[1], BUSY_LEN, key[1]);
    }
    busy_post(f->a, buf[0], key[0], buf[1], key[1]);
    busy_post(f->b, buf[1], key[1], buf[0], key[0]);
    for (i = 0; i < 1000; i++) {
        rig_run(f->rig, 5 * RIG_US);
        g_assert_true(erdma_engine_save(f->rig->hca[0].e, &f->s, f->rig->now,
                                        &error));
        if (f->s.n_responses && f->s.n_bytes && f->s.n_wqes > 8 &&
            f->s.xport.n_sents && f->s.qps[0].n_sends) {
            return;
        }
        erdma_engine_snap_clear(&f->s);
    }
    g_error("never busy");
}

static inline void busy_setup(Busy *f)
{
    busy_setup_cc(f, ERDMA_CC_CUBIC);
}

static inline void busy_teardown(Busy *f)
{
    erdma_engine_snap_clear(&f->s);
    rig_qp_free(f->a);
    rig_qp_free(f->b);
    rig_free(f->rig);
}

#endif /* BUSY_RIG_H */
