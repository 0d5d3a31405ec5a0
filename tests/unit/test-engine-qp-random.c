/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs of guests that lie: random entries, random calls.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qp-rig.h"

static void ring(RigQp *qp, ErdmaDbKind kind, uint16_t pi)
{
    /* Bits 31:16 of a receive doorbell are anything. */
    erdma_engine_db_queue(qp->hca->e, kind, (uint64_t)qp->qpn << 32 |
                          (kind == ERDMA_DB_KIND_RQ ? 0xbeef0000 : 0) | pi);
}

/* Random bytes for entries: each is one completion, and nothing breaks. */
static void test_random_entries(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    unsigned round, i, n = 0;

    for (round = 0; round < 400; round++) {
        Rig *rig = rig_new();
        RigQp *a, *b;
        uint32_t key;
        RigCqe cqe;

        rig_pair(rig, &a, &b);
        key = rig_mr(a->hca, RIG_MEM_BASE + (8 << 20), 1 << 20,
                     RIG_ALL_RIGHTS);
        for (i = 0; i < a->sq_depth; i++) {
            uint8_t *raw = rig_ptr(a->hca, a->sq + 32 * i);
            uint64_t hdr;
            unsigned k;

            for (k = 0; k < 32; k += 4) {
                uint32_t v = g_rand_int(rand);

                switch (g_rand_int_range(rand, 0, 6)) {
                case 0:
                    v = key;
                    break;
                case 1:
                    v = (uint32_t)(RIG_MEM_BASE + (8 << 20) + (v & 0xffff));
                    break;
                case 2:
                    v &= 0x3ff;
                    break;
                case 3:
                    v = RIG_MEM_BASE >> 32;
                    break;
                }
                stl_le_p(raw + k, v);
            }
            /* Half of the headers look right. */
            if (g_rand_boolean(rand)) {
                unsigned n_wqebbs = g_rand_int_range(rand, 1, 5);

                hdr = ldq_le_p(raw) & ~(0xffffull | 0xfffffull << 32 |
                                        7ull << 52);
                hdr |= (uint64_t)a->qpn << 32 | (i + n_wqebbs) |
                       (uint64_t)(n_wqebbs - 1) << 52;
                stq_le_p(raw, hdr);
            }
            n++;
        }
        for (i = 0; i < a->rq_depth; i++) {
            rig_post_recv(a, g_rand_int(rand), g_rand_int(rand), key);
            rig_post_recv(b, RIG_MEM_BASE + (8 << 20), 4096, key);
        }
        for (i = 0; i <= a->sq_depth; i += g_rand_int_range(rand, 1, 60)) {
            ring(a, ERDMA_DB_KIND_SQ, i);
            rig_run(rig, 10 * RIG_US);
        }
        rig_run(rig, 10 * RIG_S);
        while (rig_poll(&a->scq, &cqe)) {
            g_assert_cmpuint(cqe.opcode, <, ERDMA_NUM_OPCODES);
            g_assert_cmpuint(cqe.status, <, ERDMA_NUM_WC_STATUS);
        }
        rig_qp_free(a);
        rig_qp_free(b);
        rig_free(rig);
    }
    g_assert_cmpuint(n, >=, 100000);
    g_rand_free(rand);
}

/* Any order of commands and doorbells, on few QPs that come and go */
static void test_random_calls(void)
{
    GRand *rand = g_rand_new_with_seed(8);
    Rig *rig = rig_new();
    RigQp *qps[2][4] = { { NULL } };
    uint64_t used[2];
    unsigned i;

    used[0] = rig->hca[0].used;
    used[1] = rig->hca[1].used;
    for (i = 0; i < 60000; i++) {
        unsigned h = g_rand_int_range(rand, 0, 2);
        unsigned n = g_rand_int_range(rand, 0, 4);
        RigQp **slot = &qps[h][n], *qp = *slot;
        RigQp *peer = qps[g_rand_int_range(rand, 0, 2)]
                         [g_rand_int_range(rand, 0, 4)];

        if (!qp) {
            if (rig->hca[h].used > (24 << 20)) {
                continue;
            }
            *slot = rig_qp(&rig->hca[h], 1 + n, NULL);
            continue;
        }
        switch (g_rand_int_range(rand, 0, 16)) {
        case 0:
            if (peer) {
                rig_modify(qp, ERDMA_QPS_RTS, peer);
            }
            break;
        case 1:
            if (g_rand_int_range(rand, 0, 8) == 0) {
                rig_modify(qp, g_rand_int_range(rand, 0, 7), NULL);
            }
            break;
        case 2:
            if (g_rand_int_range(rand, 0, 20) == 0) {
                erdma_qp_destroy(qp->hca->e, qp->qpn);
                erdma_cq_destroy(qp->hca->e, qp->scq.cqn);
                erdma_cq_destroy(qp->hca->e, qp->rcq.cqn);
                rig_qp_free(qp);
                *slot = NULL;
            }
            break;
        case 3:
            erdma_qp_reflush(qp->hca->e, qp->qpn, g_rand_int(rand),
                             g_rand_int(rand));
            break;
        case 4:
            if (g_rand_int_range(rand, 0, 20) == 0) {
                ring(qp, ERDMA_DB_KIND_SQ, g_rand_int(rand));
            }
            break;
        case 5:
        case 6:
        case 7:
            rig_post_recv(qp, 0, 0, 0);
            break;
        case 8:
        case 9:
        case 10:
            rig_post_send(qp, &(RigWr) { .op = ERDMA_OP_SEND });
            break;
        default:
            rig_run(rig, g_rand_int_range(rand, 1, 200) * RIG_US);
            break;
        }
    }
    for (i = 0; i < 8; i++) {
        rig_qp_free(qps[i / 4][i % 4]);
    }
    g_assert_cmpuint(rig->hca[0].used, >, used[0]);
    g_assert_cmpuint(rig->hca[1].used, >, used[1]);
    g_rand_free(rand);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qp/random/entries", test_random_entries);
    g_test_add_func("/qp/random/calls", test_random_calls);
    return g_test_run();
}
