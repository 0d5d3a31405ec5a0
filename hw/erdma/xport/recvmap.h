/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: which packet numbers were received.
 *
 * Numbers are extended to 64 bits.  The map keeps a bounded number of ranges;
 * what lies below the oldest one counts as received, so that an old duplicate
 * is never mistaken for something new.  (A packet that was really missing
 * down there is not acked, and the sender sends its payload again under a new
 * number.)
 */

#ifndef HW_ERDMA_XPORT_RECVMAP_H
#define HW_ERDMA_XPORT_RECVMAP_H

#include "wire.h"

#define ERDMA_RECVMAP_RANGES    32
/* A range that has not changed is reported in this many acks. */
#define ERDMA_RECVMAP_REPORTS   8

typedef struct ErdmaPnRange {
    uint64_t first;
    uint64_t last:56;           /* inclusive */
    uint64_t n_reports:8;
} ErdmaPnRange;

/*
 * The ranges lie in a ring: what is lost is sent again under a new number, so
 * on a lossy path the map is always full and forgets its oldest range for
 * each new one.
 */
typedef struct ErdmaRecvMap {
    uint64_t floor;             /* everything below counts as received */
    ErdmaPnRange *v;            /* rising, never adjacent */
    uint32_t fresh;             /* bit i: range i is to be reported again */
    uint8_t head;               /* place of range 0 */
    uint8_t n;
    uint8_t cap;                /* power of two, or 0 */
} ErdmaRecvMap;

QEMU_BUILD_BUG_ON(ERDMA_RECVMAP_RANGES > 32);

void erdma_recvmap_init(ErdmaRecvMap *m, uint64_t pn0);
void erdma_recvmap_destroy(ErdmaRecvMap *m);

/* Range @i of m->n */
static inline ErdmaPnRange *erdma_recvmap_at(const ErdmaRecvMap *m,
                                             unsigned i)
{
    return &m->v[(m->head + i) & (m->cap - 1)];
}

/* pn0 - 1 when nothing was received */
static inline uint64_t erdma_recvmap_largest(const ErdmaRecvMap *m)
{
    return m->n ? erdma_recvmap_at(m, m->n - 1)->last : m->floor - 1;
}

bool erdma_recvmap_has(const ErdmaRecvMap *m, uint64_t pn);
/* @pn is not in the map. */
void erdma_recvmap_add(ErdmaRecvMap *m, uint64_t pn);

/*
 * Ranges for an ack, descending: the one with the largest number, the one
 * with @trigger, and of the others those that changed lately.  Returns how
 * many, at most @max.
 */
unsigned erdma_recvmap_report(ErdmaRecvMap *m, uint64_t trigger,
                              ErdmaWireRange *out, unsigned max);

#endif /* HW_ERDMA_XPORT_RECVMAP_H */
