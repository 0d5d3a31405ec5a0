/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: store of out-of-order segments, see reasm.h. */

#include "qemu/osdep.h"
#include "reasm.h"

#define FIRST_CAP   16

void erdma_reasm_init(ErdmaReasm *m, ErdmaReasmPool *pool)
{
    memset(m, 0, sizeof(*m));
    m->pool = pool;
}

void erdma_reasm_destroy(ErdmaReasm *m)
{
    while (m->n) {
        erdma_reasm_pop(m);
    }
}

void erdma_reasm_pop(ErdmaReasm *m)
{
    ErdmaRxChunk *c = m->v[m->head];

    m->bytes -= c->len;
    m->pool->held -= c->len + ERDMA_REASM_MSG_COST;
    g_free(c);
    m->head++;
    if (--m->n == 0) {
        /* An idle connection keeps nothing. */
        g_free(m->v);
        m->v = NULL;
        m->head = m->cap = 0;
    }
}

/* Serial order of (@msn, @off) and @c: negative when @c comes first */
static int compare(const ErdmaRxChunk *c, uint32_t msn, uint32_t off)
{
    if (c->msn != msn) {
        return (int32_t)(c->msn - msn) < 0 ? -1 : 1;
    }
    return c->off < off ? -1 : c->off > off;
}

/* Index, relative to head, of the first chunk at or after the position */
static uint32_t lower_bound(const ErdmaReasm *m, uint32_t msn, uint32_t off)
{
    ErdmaRxChunk **v;
    uint32_t lo = 0, hi = m->n;

    if (!m->n) {
        return 0;
    }
    v = m->v + m->head;
    if (compare(v[m->n - 1], msn, off) < 0) {
        return m->n;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (compare(v[mid], msn, off) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool covers(const ErdmaRxChunk *c, const ErdmaWireData *d)
{
    return c->msn == d->msn && c->off <= d->off &&
           c->off + c->len >= d->off + d->len;
}

/*
 * Room behind the last one.  Compacts only when that gains enough to pay for
 * it, so that the cost per insertion stays constant.
 */
static void make_tail_room(ErdmaReasm *m)
{
    if (m->head + m->n < m->cap) {
        return;
    }
    if (m->cap && m->head >= m->cap / 4) {
        memmove(m->v, m->v + m->head, m->n * sizeof(*m->v));
        m->head = 0;
        return;
    }
    m->cap = m->cap ? 2 * m->cap : FIRST_CAP;
    m->v = g_renew(ErdmaRxChunk *, m->v, m->cap);
}

/* Opens a place at @i, moving the shorter side. */
static void make_place(ErdmaReasm *m, uint32_t i)
{
    ErdmaRxChunk **v;

    if (m->head > 0 && i < m->n / 2) {
        m->head--;
        v = m->v + m->head;
        memmove(v, v + 1, i * sizeof(*v));
    } else {
        make_tail_room(m);
        v = m->v + m->head;
        memmove(v + i + 1, v + i, (m->n - i) * sizeof(*v));
    }
    m->n++;
}

ErdmaReasmResult erdma_reasm_insert(ErdmaReasm *m, const ErdmaWireData *d,
                                    uint32_t limit)
{
    uint32_t i = lower_bound(m, d->msn, d->off);
    ErdmaRxChunk *c;

    if ((i < m->n && covers(m->v[m->head + i], d)) ||
        (i > 0 && covers(m->v[m->head + i - 1], d))) {
        return ERDMA_REASM_DUPLICATE;
    }
    if (m->bytes > limit || d->len > limit - m->bytes ||
        m->n > limit / ERDMA_REASM_MSG_COST ||
        m->pool->held + d->len + ERDMA_REASM_MSG_COST > m->pool->limit) {
        return ERDMA_REASM_FULL;
    }
    c = g_malloc(sizeof(*c) + (d->payload ? d->len : 0));
    c->msn = d->msn;
    c->off = d->off;
    c->len = d->len;
    c->is_first = d->is_first;
    c->is_last = d->is_last;
    if (d->is_first) {
        c->hdr = d->hdr;
    }
    if (d->len && d->payload) {
        memcpy(c->data, d->payload, d->len);
    }
    make_place(m, i);
    m->v[m->head + i] = c;
    m->bytes += d->len;
    m->pool->held += d->len + ERDMA_REASM_MSG_COST;
    return ERDMA_REASM_STORED;
}
