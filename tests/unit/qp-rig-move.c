/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HCAs of the rig that are saved and loaded in the middle of it all. */

#include "qemu/osdep.h"
#include "qp-rig.h"

#ifndef RIG_IS_MOVING
#define RIG_IS_MOVING   0       /* -D: all of them, now and then */
#endif

void rig_move_init(Rig *rig)
{
    rig->moves = RIG_IS_MOVING ? g_rand_new_with_seed(1) : NULL;
}

#define SAME(_array) \
    g_assert_cmpmem(a._array, a.n_##_array * sizeof(*a._array), \
                    b._array, b.n_##_array * sizeof(*b._array))
#define SAME_XPORT(_array) \
    g_assert_cmpmem(a.xport._array, \
                    a.xport.n_##_array * sizeof(*a.xport._array), \
                    b.xport._array, \
                    b.xport.n_##_array * sizeof(*b.xport._array))

void rig_move(RigHca *hca)
{
    ErdmaEngineSnap a = { 0 }, b = { 0 };
    uint64_t now = hca->rig->now;
    char *error = NULL;

    if (!erdma_engine_save(hca->e, &a, now, &error) ||
        !erdma_engine_load(hca->e, &a, now, &error) ||
        !erdma_engine_save(hca->e, &b, now, &error)) {
        g_error("%s", error);
    }
    /* What is not an array */
    g_assert_cmpmem(&a, offsetof(ErdmaEngineSnap, aeqes), &b,
                    offsetof(ErdmaEngineSnap, aeqes));
    SAME(aeqes);
    SAME(cqs);
    SAME(held);
    SAME(mrs);
    SAME(ext_pages);
    SAME(qps);
    SAME(wqes);
    SAME(sges);
    SAME(responses);
    SAME(bytes);
    SAME_XPORT(conns);
    SAME_XPORT(sents);
    SAME_XPORT(ranges);
    SAME_XPORT(chunks);
    SAME_XPORT(cubics);
    SAME_XPORT(bytes);
    erdma_engine_snap_clear(&a);
    erdma_engine_snap_clear(&b);
    hca->rig->n_moves++;
}

void rig_move_some(Rig *rig)
{
    if (rig->moves && !g_rand_int_range(rig->moves, 0, 8)) {
        rig_move(&rig->hca[g_rand_int_range(rig->moves, 0, 2)]);
    }
}
