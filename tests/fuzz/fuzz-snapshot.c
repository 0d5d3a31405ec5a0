/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A snapshot of a busy engine, whose congestion control the first byte chooses
 * and which the rest of the input changes: it is refused, with a
 * reason and with nothing left behind, or the engine that comes of it can
 * run, be saved, be loaded again and be freed.
 */

#include "qemu/osdep.h"
#include "../unit/busy-rig.h"
#include "fuzz.h"

#define CHANGES_MAX     64

/* An array, or the fields in front of them */
typedef struct Part {
    void *v;
    size_t len;
} Part;

#define PART(_s, _array)    { (_s)->_array, (_s)->n_##_array * \
                                            sizeof(*(_s)->_array) }

static void change(FuzzInput *in, ErdmaEngineSnap *s)
{
    Part parts[] = {
        { s, offsetof(ErdmaEngineSnap, aeqes) },
        PART(s, cqs),
        PART(s, mrs),
        PART(s, qps),
        PART(s, wqes),
        PART(s, sges),
        PART(s, responses),
        PART(&s->xport, conns),
        PART(&s->xport, sents),
        PART(&s->xport, ranges),
        PART(&s->xport, chunks),
        PART(&s->xport, cubics),
        PART(&s->xport, hpccs),
        PART(&s->xport, hops),
    };
    Part p = parts[fuzz_below(in, ARRAY_SIZE(parts))];
    size_t off = fuzz_u16(in), size = 1 << fuzz_below(in, 4);
    uint64_t val = fuzz_u64(in);

    if (p.len >= size) {
        memcpy((uint8_t *)p.v + off % (p.len - size + 1), &val, size);
    }
}

/* Counts that grew would lead beyond the arrays, as in no stream. */
static void limit_counts(ErdmaEngineSnap *s, const ErdmaEngineSnap *old)
{
    s->n_aeqes = MIN(s->n_aeqes, old->n_aeqes);
    s->n_cqs = MIN(s->n_cqs, old->n_cqs);
    s->n_held = MIN(s->n_held, old->n_held);
    s->n_mrs = MIN(s->n_mrs, old->n_mrs);
    s->n_ext_pages = MIN(s->n_ext_pages, old->n_ext_pages);
    s->n_qps = MIN(s->n_qps, old->n_qps);
    s->n_wqes = MIN(s->n_wqes, old->n_wqes);
    s->n_sges = MIN(s->n_sges, old->n_sges);
    s->n_responses = MIN(s->n_responses, old->n_responses);
    s->n_bytes = MIN(s->n_bytes, old->n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    FuzzInput in = { data, len };
    g_autofree char *error = NULL;
    ErdmaEngineSnap old;
    ErdmaEngine *e;
    Busy f = { 0 };
    unsigned i;

    busy_setup_cc(&f, fuzz_below(&in, ERDMA_CC_COUNT));
    old = f.s;
    for (i = 0; i < CHANGES_MAX && fuzz_more(&in); i++) {
        change(&in, &f.s);
        limit_counts(&f.s, &old);
    }
    e = f.rig->hca[0].e;
    if (erdma_engine_load(e, &f.s, f.rig->now, &error)) {
        rig_run(f.rig, 20 * RIG_MS);
        erdma_engine_snap_clear(&f.s);
        g_assert_true(erdma_engine_save(e, &f.s, f.rig->now, &error));
        /* Whatever it did, it is in a state that there can be. */
        if (!erdma_engine_load(e, &f.s, f.rig->now, &error)) {
            g_error("its own snapshot is refused: %s", error);
        }
    } else {
        g_assert_nonnull(error);
        g_assert_false(erdma_engine_is_ready(e));
        g_assert_cmpuint(e->qps.count + e->cqs.count + e->mrs.count, ==, 0);
    }
    rig_run(f.rig, RIG_MS);
    busy_teardown(&f);
    return 0;
}
