/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: send-side scoreboard, one entry per transmission.
 *
 * A retransmission is a new transmission with a new packet number, so every
 * ack says exactly which of them arrived.  Entries are kept in a ring indexed
 * by packet number; an entry that was declared lost stays for a while, which
 * is how a late ack shows that it was not.
 */

#ifndef HW_ERDMA_XPORT_SENTMAP_H
#define HW_ERDMA_XPORT_SENTMAP_H

#include "xport.h"

/*
 * New data stops at this many entries; what is sent again may take twice as
 * many, so that it is never new data that keeps a retransmission waiting.
 */
#define ERDMA_SENTMAP_MAX   (1u << 17)
/*
 * The same for all connections of a device together, but for the rings of the
 * first size, which nobody is denied: 64 MiB, and as much again to resend.
 */
#define ERDMA_SENTMAP_TOTAL (1u << 21)
/* Size of the first ring of a connection that begins to send */
#define ERDMA_SENTMAP_MIN   16
/* First rings that are kept for whoever is next to send */
#define ERDMA_SENTMAP_SPARE 64

typedef enum ErdmaSentState {
    ERDMA_SENT_INFLIGHT,
    ERDMA_SENT_ACKED,           /* or known to be delivered */
    ERDMA_SENT_LOST,
} ErdmaSentState;

typedef struct ErdmaSent {
    uint64_t sent_ns;
    ErdmaXportMsg *msg;         /* only valid while msn is not delivered */
    uint32_t msn;
    union {
        uint32_t off;
        uint32_t run;           /* ACKED: length of the acked run known here */
    };
    uint16_t len;               /* payload still to be sent again if lost */
    uint16_t bytes;             /* as an IP packet: what counts in pipe */
    uint8_t state;              /* ErdmaSentState */
    bool is_ect:1;
    bool is_resent:1;           /* lost, and its payload was sent again */
} ErdmaSent;

/*
 * A connection has a ring only while something is outstanding.  Rings of the
 * first size go round among the connections, so that a message now and then
 * costs no allocation.
 */
typedef struct ErdmaSentPool {
    ErdmaSent *ring[ERDMA_SENTMAP_SPARE];
    unsigned n;
    uint32_t total;             /* entries of all rings of larger sizes */
} ErdmaSentPool;

typedef struct ErdmaSentMap {
    ErdmaSentPool *pool;
    ErdmaSent *ring;            /* NULL when nothing is outstanding */
    uint32_t cap;               /* power of two, or 0 */
    uint32_t n_inflight;
    uint64_t base;              /* oldest entry */
    uint64_t next;              /* next packet number */
    uint64_t pipe;              /* bytes neither acked nor lost */
} ErdmaSentMap;

void erdma_sentmap_init(ErdmaSentMap *m, ErdmaSentPool *pool, uint64_t pn0);
/* Gives the ring back. */
void erdma_sentmap_destroy(ErdmaSentMap *m);
void erdma_sentpool_destroy(ErdmaSentPool *pool);

static inline bool erdma_sentmap_has(const ErdmaSentMap *m, uint64_t pn)
{
    return pn >= m->base && pn < m->next;
}

/* @pn is in the map. */
static inline ErdmaSent *erdma_sentmap_get(const ErdmaSentMap *m, uint64_t pn)
{
    return &m->ring[pn & (m->cap - 1)];
}

/* May no entry be added, now? */
static inline bool erdma_sentmap_is_full(const ErdmaSentMap *m, bool is_resend)
{
    uint64_t n = m->next - m->base;

    /* A ring that grows is there twice for a moment. */
    return n >= ERDMA_SENTMAP_MAX << is_resend ||
           (n && n == m->cap &&
            m->pool->total + m->cap > ERDMA_SENTMAP_TOTAL << is_resend);
}

/*
 * Adds an entry in state INFLIGHT under number m->next; the caller fills the
 * rest.  The map is not full.  The pointer is good until the next call.
 */
ErdmaSent *erdma_sentmap_add(ErdmaSentMap *m, uint16_t bytes);

/* Leaves INFLIGHT for ACKED or LOST, or LOST for ACKED. */
void erdma_sentmap_set(ErdmaSentMap *m, ErdmaSent *e, ErdmaSentState state);

/*
 * Forgets the oldest entries as far as they are acked, or lost, sent again
 * and sent before @lost_before_ns.
 */
void erdma_sentmap_trim(ErdmaSentMap *m, uint64_t lost_before_ns);

#endif /* HW_ERDMA_XPORT_SENTMAP_H */
