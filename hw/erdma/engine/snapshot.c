/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine's state as flat data: the whole, see snapshot.h. */

#include "qemu/osdep.h"
#include "engine/snapshot-int.h"

QEMU_BUILD_BUG_ON(sizeof(ErdmaEngineStats) !=
                  ERDMA_ENGINE_SNAP_COUNTERS * sizeof(uint64_t));

bool erdma_engine_snap_fits(const ErdmaEngineSnap *s, char **error)
{
    const struct {
        const char *name;
        uint32_t n;
        uint32_t max;
    } a[] = {
        { "aeqes", s->n_aeqes, ERDMA_SNAP_MAX_AEQES },
        { "cqs", s->n_cqs, 2 * ERDMA_SNAP_MAX_CONNS },
        { "held", s->n_held, 2 * ERDMA_SNAP_MAX_CONNS },
        { "mrs", s->n_mrs, 2 * ERDMA_SNAP_MAX_CONNS },
        { "ext_pages", s->n_ext_pages, ERDMA_SNAP_MAX_EXT_PAGES },
        { "qps", s->n_qps, ERDMA_SNAP_MAX_CONNS },
        { "wqes", s->n_wqes, ERDMA_SNAP_MAX_ITEMS },
        { "sges", s->n_sges, ERDMA_SNAP_MAX_ITEMS },
        { "responses", s->n_responses, ERDMA_SNAP_MAX_ITEMS },
        { "bytes", s->n_bytes, ERDMA_SNAP_MAX_BYTES },
    };
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(a); i++) {
        if (a[i].n > a[i].max) {
            return erdma_snap_fail(error, "engine: n_%s is %u, must be at "
                                   "most %u", a[i].name, a[i].n, a[i].max);
        }
    }
    return erdma_xport_snap_fits(&s->xport, error);
}

void erdma_engine_snap_clear(ErdmaEngineSnap *s)
{
    g_free(s->aeqes);
    g_free(s->cqs);
    g_free(s->held);
    g_free(s->mrs);
    g_free(s->ext_pages);
    g_free(s->qps);
    g_free(s->wqes);
    g_free(s->sges);
    g_free(s->responses);
    g_free(s->bytes);
    erdma_xport_snap_clear(&s->xport);
    memset(s, 0, sizeof(*s));
}

bool erdma_engine_save(ErdmaEngine *e, ErdmaEngineSnap *s, uint64_t now_ns,
                       char **error)
{
    uint32_t qpn = 0;
    ErdmaQp *qp;

    s->is_ready = e->is_ready;
    s->guest_page_shift = e->guest_page_shift;
    s->incarnation = e->incarnation;
    memcpy(s->counters, &e->stats, sizeof(e->stats));
    erdma_xport_save(e->xport, &s->xport);
    erdma_snap_save_queues(e, s);
    erdma_snap_save_mrs(e, s);
    erdma_snap_save_ext_db(e, s);
    while ((qp = erdma_table_next(&e->qps, &qpn))) {
        erdma_snap_save_qp(qp, s, now_ns);
        qpn++;
    }
    return erdma_engine_snap_fits(s, error);
}

static bool load_qps(ErdmaEngine *e, const ErdmaEngineSnap *s,
                     ErdmaEngineLoad *l, char **error)
{
    uint32_t i;

    for (i = 0; i < s->n_qps; i++) {
        if (!erdma_snap_load_qp(e, &s->qps[i], l, error)) {
            return false;
        }
    }
    if (l->wqe != s->n_wqes || l->sge != s->n_sges ||
        l->response != s->n_responses || l->byte != s->n_bytes) {
        return erdma_snap_fail(error, "engine: an array has more elements "
                               "than the QPs say");
    }
    return erdma_xport_load_end(&l->xport, error);
}

/* An engine in reset has nothing. */
static bool check_ready(const ErdmaEngineSnap *s, char **error)
{
    if (!s->is_ready && (s->n_aeqes || s->n_cqs || s->n_held || s->n_mrs ||
                         s->n_ext_pages || s->n_qps)) {
        return erdma_snap_fail(error, "engine: is_ready is 0, must not be "
                               "with objects");
    }
    return true;
}

static bool load(ErdmaEngine *e, const ErdmaEngineSnap *s, uint64_t now_ns,
                 char **error)
{
    ErdmaEngineLoad l = { .snap = s };

    if (!erdma_engine_snap_fits(s, error) || !check_ready(s, error) ||
        !erdma_xport_load(e->xport, &s->xport, now_ns, &l.xport, error) ||
        !erdma_snap_load_ext_db(e, s, error)) {
        return false;
    }
    e->is_ready = s->is_ready;
    e->incarnation = s->incarnation;
    memcpy(&e->stats, s->counters, sizeof(e->stats));
    return (!s->is_ready || erdma_snap_load_queues(e, s, error)) &&
           erdma_snap_load_mrs(e, s, error) && load_qps(e, s, &l, error);
}

bool erdma_engine_load(ErdmaEngine *e, const ErdmaEngineSnap *s,
                       uint64_t now_ns, char **error)
{
    erdma_engine_reset(e);
    e->now_ns = now_ns;
    if (!load(e, s, now_ns, error)) {
        erdma_engine_reset(e);
        return false;
    }
    erdma_engine_kick(e);
    return true;
}
