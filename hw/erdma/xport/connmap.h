/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: from a cookie to its connection.
 *
 * Every packet is looked up here, so this is one cache line per lookup where
 * a GHashTable takes three, and the line can be fetched ahead of the packet.
 * Cookies are ours, not the network's: nobody else can make them collide.
 */

#ifndef HW_ERDMA_XPORT_CONNMAP_H
#define HW_ERDMA_XPORT_CONNMAP_H

#include "xport.h"

typedef struct ErdmaConnSlot {
    uint32_t cookie;
    ErdmaXportConn *conn;       /* NULL: free */
} ErdmaConnSlot;

typedef struct ErdmaConnMap {
    ErdmaConnSlot *v;
    uint32_t mask;              /* number of slots - 1 */
    uint32_t n;                 /* at most half of them */
} ErdmaConnMap;

void erdma_connmap_init(ErdmaConnMap *m);
/* The connections are the caller's. */
void erdma_connmap_destroy(ErdmaConnMap *m);

/* @cookie is not in the map. */
void erdma_connmap_add(ErdmaConnMap *m, uint32_t cookie, ErdmaXportConn *conn);
/* @cookie is in the map. */
void erdma_connmap_remove(ErdmaConnMap *m, uint32_t cookie);

/* Where the search for @cookie begins (Knuth's multiplicative hash) */
static inline uint32_t erdma_connmap_home(const ErdmaConnMap *m,
                                          uint32_t cookie)
{
    uint32_t hash = cookie * 0x9e3779b1u;

    return (hash ^ hash >> 16) & m->mask;
}

/* See erdma_xport_fetch() */
static inline void erdma_connmap_fetch(const ErdmaConnMap *m, uint32_t cookie)
{
    __builtin_prefetch(&m->v[erdma_connmap_home(m, cookie)]);
}

/* NULL: not in the map */
static inline ErdmaXportConn *erdma_connmap_find(const ErdmaConnMap *m,
                                                 uint32_t cookie)
{
    uint32_t i = erdma_connmap_home(m, cookie);

    while (m->v[i].conn && m->v[i].cookie != cookie) {
        i = (i + 1) & m->mask;
    }
    return m->v[i].conn;
}

#endif /* HW_ERDMA_XPORT_CONNMAP_H */
