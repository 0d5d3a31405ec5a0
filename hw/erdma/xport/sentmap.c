/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: send-side scoreboard, see sentmap.h. */

#include "qemu/osdep.h"
#include "sentmap.h"

QEMU_BUILD_BUG_ON(sizeof(ErdmaSent) > 32);

void erdma_sentmap_init(ErdmaSentMap *m, uint64_t pn0)
{
    memset(m, 0, sizeof(*m));
    m->base = m->next = pn0;
}

void erdma_sentmap_destroy(ErdmaSentMap *m)
{
    g_free(m->ring);
    m->ring = NULL;
    m->cap = 0;
}

static void grow(ErdmaSentMap *m)
{
    uint32_t cap = m->cap ? 2 * m->cap : ERDMA_SENTMAP_MIN;
    ErdmaSent *ring = g_new(ErdmaSent, cap);
    uint64_t pn;

    for (pn = m->base; pn < m->next; pn++) {
        ring[pn & (cap - 1)] = *erdma_sentmap_get(m, pn);
    }
    g_free(m->ring);
    m->ring = ring;
    m->cap = cap;
}

ErdmaSent *erdma_sentmap_add(ErdmaSentMap *m, uint16_t bytes)
{
    ErdmaSent *e;

    assert(!erdma_sentmap_is_full(m));
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
    if (m->cap > ERDMA_SENTMAP_MIN) {
        erdma_sentmap_destroy(m);
    }
}
