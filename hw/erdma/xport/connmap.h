/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: from a cookie to its connection.
 *
 * Every packet is looked up here, so this is one cache line per lookup where
 * a GHashTable takes three, and the line can be fetched ahead of the packet.
 * Peers have no say in cookies, but the guest has: it chooses when it creates
 * which QP.  The hash has a secret so that it cannot make them meet.
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
    uint32_t secret;            /* 0: cookies are not a guest's */
} ErdmaConnMap;

void erdma_connmap_init(ErdmaConnMap *m);
/*
 * So many have room from now on: moving all that there are takes milliseconds
 * when there are 100,000.  The map is empty.
 */
void erdma_connmap_reserve(ErdmaConnMap *m, uint32_t n);
/* The connections are the caller's. */
void erdma_connmap_destroy(ErdmaConnMap *m);

/* @cookie is not in the map. */
void erdma_connmap_add(ErdmaConnMap *m, uint32_t cookie, ErdmaXportConn *conn);
/* @cookie is in the map. */
void erdma_connmap_remove(ErdmaConnMap *m, uint32_t cookie);

/* Where the search for @cookie begins (finalizer of MurmurHash3) */
static inline uint32_t erdma_connmap_home(const ErdmaConnMap *m,
                                          uint32_t cookie)
{
    uint32_t hash = cookie ^ m->secret;

    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
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
