/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: from a cookie to its connection, see connmap.h. */

#include "qemu/osdep.h"
#include "connmap.h"

#define FIRST_SIZE  16

void erdma_connmap_init(ErdmaConnMap *m)
{
    m->v = g_new0(ErdmaConnSlot, FIRST_SIZE);
    m->mask = FIRST_SIZE - 1;
    m->n = 0;
    m->secret = 0;
}

void erdma_connmap_reserve(ErdmaConnMap *m, uint32_t n)
{
    uint32_t size = FIRST_SIZE;

    assert(!m->n && n <= UINT32_MAX / 4);
    while (size < 2 * n) {
        size *= 2;
    }
    g_free(m->v);
    m->v = g_new0(ErdmaConnSlot, size);
    m->mask = size - 1;
}

void erdma_connmap_destroy(ErdmaConnMap *m)
{
    g_free(m->v);
    m->v = NULL;
}

static void put(ErdmaConnMap *m, uint32_t cookie, ErdmaXportConn *conn)
{
    uint32_t i = erdma_connmap_home(m, cookie);

    while (m->v[i].conn) {
        i = (i + 1) & m->mask;
    }
    m->v[i] = (ErdmaConnSlot) { cookie, conn };
}

void erdma_connmap_add(ErdmaConnMap *m, uint32_t cookie, ErdmaXportConn *conn)
{
    ErdmaConnSlot *old = m->v;
    uint32_t size = m->mask + 1, i;

    if (2 * ++m->n > size) {
        m->v = g_new0(ErdmaConnSlot, 2 * size);
        m->mask = 2 * size - 1;
        for (i = 0; i < size; i++) {
            if (old[i].conn) {
                put(m, old[i].cookie, old[i].conn);
            }
        }
        g_free(old);
    }
    put(m, cookie, conn);
}

void erdma_connmap_remove(ErdmaConnMap *m, uint32_t cookie)
{
    uint32_t i = erdma_connmap_home(m, cookie), k;

    while (m->v[i].cookie != cookie || !m->v[i].conn) {
        i = (i + 1) & m->mask;
    }
    /*
     * A search must not end at the gap that this leaves: what comes behind
     * and may lie in the gap moves there.
     */
    for (k = (i + 1) & m->mask; m->v[k].conn; k = (k + 1) & m->mask) {
        uint32_t home = erdma_connmap_home(m, m->v[k].cookie);

        if (((k - home) & m->mask) >= ((k - i) & m->mask)) {
            m->v[i] = m->v[k];
            i = k;
        }
    }
    m->v[i].conn = NULL;
    m->n--;
}
