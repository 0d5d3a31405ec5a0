/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: received packet numbers, see recvmap.h. */

#include "qemu/osdep.h"
#include "recvmap.h"

#define FIRST_CAP   2

void erdma_recvmap_init(ErdmaRecvMap *m, uint64_t pn0)
{
    memset(m, 0, sizeof(*m));
    m->floor = pn0;
}

void erdma_recvmap_destroy(ErdmaRecvMap *m)
{
    g_free(m->v);
    m->v = NULL;
    m->n = m->cap = m->head = 0;
    m->fresh = 0;
}

/* Index of the range after the last one that starts at or before @pn */
static unsigned upper_bound(const ErdmaRecvMap *m, uint64_t pn)
{
    unsigned i = m->n;

    /* From the top: almost everything that arrives is new. */
    while (i > 0 && erdma_recvmap_at(m, i - 1)->first > pn) {
        i--;
    }
    return i;
}

bool erdma_recvmap_has(const ErdmaRecvMap *m, uint64_t pn)
{
    unsigned i;

    if (pn < m->floor) {
        return true;
    }
    if (!m->n || pn > erdma_recvmap_largest(m)) {
        return false;
    }
    i = upper_bound(m, pn);
    return i > 0 && pn <= erdma_recvmap_at(m, i - 1)->last;
}

/* The bits below @i */
static uint32_t below(unsigned i)
{
    return (1ULL << i) - 1;
}

static void remove_at(ErdmaRecvMap *m, unsigned i)
{
    m->n--;
    m->fresh = (m->fresh & below(i)) | (m->fresh >> 1 & ~below(i));
    if (i == 0) {
        m->head = (m->head + 1) & (m->cap - 1);
        return;
    }
    for (; i < m->n; i++) {
        *erdma_recvmap_at(m, i) = *erdma_recvmap_at(m, i + 1);
    }
}

static void grow(ErdmaRecvMap *m)
{
    ErdmaRecvMap old = *m;
    unsigned i;

    m->cap = m->cap ? 2 * m->cap : FIRST_CAP;
    m->v = g_new(ErdmaPnRange, m->cap);
    m->head = 0;
    for (i = 0; i < m->n; i++) {
        m->v[i] = *erdma_recvmap_at(&old, i);
    }
    g_free(old.v);
}

static void touch(ErdmaRecvMap *m, unsigned i)
{
    erdma_recvmap_at(m, i)->n_reports = 0;
    m->fresh |= 1u << i;
}

static void insert_at(ErdmaRecvMap *m, unsigned i, uint64_t pn)
{
    unsigned k;

    if (m->n == ERDMA_RECVMAP_RANGES) {
        if (i == 0) {
            /* Older than all that we can remember: forget it again. */
            m->floor = pn + 1;
            return;
        }
        m->floor = erdma_recvmap_at(m, 0)->last + 1;
        remove_at(m, 0);
        i--;
    }
    if (m->n == m->cap) {
        grow(m);
    }
    m->fresh = (m->fresh & below(i)) | (m->fresh & ~below(i)) << 1;
    for (k = m->n++; k > i; k--) {
        *erdma_recvmap_at(m, k) = *erdma_recvmap_at(m, k - 1);
    }
    *erdma_recvmap_at(m, i) = (ErdmaPnRange) { .first = pn, .last = pn };
    touch(m, i);
}

void erdma_recvmap_add(ErdmaRecvMap *m, uint64_t pn)
{
    unsigned i = upper_bound(m, pn);
    bool is_below = i > 0 && erdma_recvmap_at(m, i - 1)->last + 1 == pn;
    bool is_above = i < m->n && erdma_recvmap_at(m, i)->first == pn + 1;

    if (is_below && is_above) {
        erdma_recvmap_at(m, i - 1)->last = erdma_recvmap_at(m, i)->last;
        remove_at(m, i);
        touch(m, i - 1);
    } else if (is_below) {
        erdma_recvmap_at(m, i - 1)->last = pn;
        touch(m, i - 1);
    } else if (is_above) {
        erdma_recvmap_at(m, i)->first = pn;
        touch(m, i);
    } else {
        insert_at(m, i, pn);
    }
}

unsigned erdma_recvmap_report(ErdmaRecvMap *m, uint64_t trigger,
                              ErdmaWireRange *out, unsigned max)
{
    /* The trigger's own range has just changed; the top one is always told. */
    uint32_t todo = m->n ? m->fresh | 1u << (m->n - 1) : 0;
    unsigned n = 0;

    while (todo && n < max) {
        unsigned i = 31 - __builtin_clz(todo);
        ErdmaPnRange *r = erdma_recvmap_at(m, i);

        todo &= below(i);
        /* The last place is the trigger's, if it is still to come. */
        if (i != m->n - 1u && n + 1 == max && trigger < r->first &&
            trigger >= m->floor) {
            continue;
        }
        if (r->n_reports < ERDMA_RECVMAP_REPORTS &&
            ++r->n_reports == ERDMA_RECVMAP_REPORTS) {
            m->fresh &= ~(1u << i);
        }
        out[n].first = r->first;
        out[n].last = r->last;
        n++;
    }
    return n;
}
