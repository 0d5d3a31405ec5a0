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
    m->n = m->cap = 0;
}

/* Index of the range after the last one that starts at or before @pn */
static unsigned upper_bound(const ErdmaRecvMap *m, uint64_t pn)
{
    unsigned i = m->n;

    /* From the top: almost everything that arrives is new. */
    while (i > 0 && m->v[i - 1].first > pn) {
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
    if (!m->n || pn > m->v[m->n - 1].last) {
        return false;
    }
    i = upper_bound(m, pn);
    return i > 0 && pn <= m->v[i - 1].last;
}

static void remove_at(ErdmaRecvMap *m, unsigned i)
{
    m->n--;
    memmove(&m->v[i], &m->v[i + 1], (m->n - i) * sizeof(m->v[0]));
}

static void insert_at(ErdmaRecvMap *m, unsigned i, uint64_t pn)
{
    if (m->n == ERDMA_RECVMAP_RANGES) {
        if (i == 0) {
            /* Older than all that we can remember: forget it again. */
            m->floor = pn + 1;
            return;
        }
        m->floor = m->v[0].last + 1;
        remove_at(m, 0);
        i--;
    }
    if (m->n == m->cap) {
        m->cap = m->cap ? MIN(2 * m->cap, ERDMA_RECVMAP_RANGES) : FIRST_CAP;
        m->v = g_renew(ErdmaPnRange, m->v, m->cap);
    }
    memmove(&m->v[i + 1], &m->v[i], (m->n - i) * sizeof(m->v[0]));
    m->v[i] = (ErdmaPnRange) { .first = pn, .last = pn };
    m->n++;
}

void erdma_recvmap_add(ErdmaRecvMap *m, uint64_t pn)
{
    unsigned i = upper_bound(m, pn);
    bool is_below = i > 0 && m->v[i - 1].last + 1 == pn;
    bool is_above = i < m->n && m->v[i].first == pn + 1;

    if (is_below && is_above) {
        m->v[i - 1].last = m->v[i].last;
        remove_at(m, i);
        m->v[i - 1].n_reports = 0;
    } else if (is_below) {
        m->v[i - 1].last = pn;
        m->v[i - 1].n_reports = 0;
    } else if (is_above) {
        m->v[i].first = pn;
        m->v[i].n_reports = 0;
    } else {
        insert_at(m, i, pn);
    }
}

unsigned erdma_recvmap_report(ErdmaRecvMap *m, uint64_t trigger,
                              ErdmaWireRange *out, unsigned max)
{
    unsigned n = 0;
    unsigned i;

    for (i = m->n; i > 0 && n < max; i--) {
        ErdmaPnRange *r = &m->v[i - 1];

        /* The trigger's own range has just changed, so it is not left out. */
        if (i != m->n) {
            if (r->n_reports >= ERDMA_RECVMAP_REPORTS) {
                continue;
            }
            /* The last place is the trigger's, if it is still to come. */
            if (n + 1 == max && trigger < r->first && trigger >= m->floor) {
                continue;
            }
        }
        if (r->n_reports < ERDMA_RECVMAP_REPORTS) {
            r->n_reports++;
        }
        out[n].first = r->first;
        out[n].last = r->last;
        n++;
    }
    return n;
}
