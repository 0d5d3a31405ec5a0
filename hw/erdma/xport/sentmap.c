/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: send-side scoreboard, see sentmap.h. */

#include "qemu/osdep.h"
#include "sentmap.h"

QEMU_BUILD_BUG_ON(sizeof(ErdmaSent) > 32);

static ErdmaSent *ring_new(ErdmaSentMap *m, uint32_t cap)
{
    if (cap == ERDMA_SENTMAP_MIN && m->pool->n) {
        return m->pool->ring[--m->pool->n];
    }
    if (cap > ERDMA_SENTMAP_MIN) {
        m->pool->total += cap;
    }
    return g_new(ErdmaSent, cap);
}

static void ring_free(ErdmaSentMap *m)
{
    if (m->cap == ERDMA_SENTMAP_MIN && m->pool->n < ERDMA_SENTMAP_SPARE) {
        m->pool->ring[m->pool->n++] = m->ring;
    } else {
        if (m->cap > ERDMA_SENTMAP_MIN) {
            m->pool->total -= m->cap;
        }
        g_free(m->ring);
    }
}

void erdma_sentpool_destroy(ErdmaSentPool *pool)
{
    while (pool->n) {
        g_free(pool->ring[--pool->n]);
    }
}

void erdma_sentmap_init(ErdmaSentMap *m, ErdmaSentPool *pool, uint64_t pn0)
{
    memset(m, 0, sizeof(*m));
    m->pool = pool;
    m->base = m->next = pn0;
}

void erdma_sentmap_destroy(ErdmaSentMap *m)
{
    ring_free(m);
    m->ring = NULL;
    m->cap = 0;
}

static void grow(ErdmaSentMap *m)
{
    uint32_t cap = m->cap ? 2 * m->cap : ERDMA_SENTMAP_MIN;
    ErdmaSent *ring = ring_new(m, cap);
    uint64_t pn;

    for (pn = m->base; pn < m->next; pn++) {
        ring[pn & (cap - 1)] = *erdma_sentmap_get(m, pn);
    }
    ring_free(m);
    m->ring = ring;
    m->cap = cap;
}

ErdmaSent *erdma_sentmap_add(ErdmaSentMap *m, uint16_t bytes)
{
    ErdmaSent *e;

    assert(!erdma_sentmap_is_full(m, true));
    if (m->next - m->base == m->cap) {
        grow(m);
    }
    e = erdma_sentmap_get(m, m->next++);
    memset(e, 0, sizeof(*e));
    e->bytes = bytes;
    m->pipe += bytes;
    m->n_inflight++;
    return e;
}

void erdma_sentmap_set(ErdmaSentMap *m, ErdmaSent *e, ErdmaSentState state)
{
    if (e->state == ERDMA_SENT_INFLIGHT) {
        m->pipe -= e->bytes;
        m->n_inflight--;
    }
    e->state = state;
    if (state == ERDMA_SENT_ACKED) {
        e->run = 1;
    }
}

void erdma_sentmap_trim(ErdmaSentMap *m, uint64_t lost_before_ns)
{
    while (m->base < m->next) {
        ErdmaSent *e = erdma_sentmap_get(m, m->base);

        if (e->state == ERDMA_SENT_INFLIGHT ||
            (e->state == ERDMA_SENT_LOST &&
             (!e->is_resent || e->sent_ns >= lost_before_ns))) {
            return;
        }
        m->base++;
    }
    /* Nothing outstanding: a connection that was busy once stays small. */
    erdma_sentmap_destroy(m);
}
