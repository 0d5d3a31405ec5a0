/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: segments that cannot be consumed yet, because something
 * before them is missing or because the owner is not ready.
 *
 * Ordered by (MSN, offset).  Bounded in bytes and in number; what is in here
 * has been acked and is never dropped to make room.
 */

#ifndef HW_ERDMA_XPORT_REASM_H
#define HW_ERDMA_XPORT_REASM_H

#include "wire.h"

/*
 * Receive credit that a message costs beside its bytes.  It pays for a chunk
 * of a message that is smaller than a packet.
 */
#define ERDMA_REASM_MSG_COST    128

typedef struct ErdmaRxChunk {
    uint32_t msn;
    uint32_t off;
    uint32_t len;
    bool is_first;              /* hdr is valid */
    bool is_last;
    ErdmaXportMsgHdr hdr;
    uint8_t data[];
} ErdmaRxChunk;

/*
 * What all stores of a device hold together.  A peer needs only a connection
 * to fill one, and a guest decides how many connections there are.
 */
typedef struct ErdmaReasmPool {
    uint64_t held;              /* bytes, and MSG_COST for each chunk */
    uint64_t limit;
} ErdmaReasmPool;

typedef struct ErdmaReasm {
    ErdmaReasmPool *pool;
    ErdmaRxChunk **v;           /* [head, head + n) is used */
    uint32_t head;
    uint32_t n;
    uint32_t cap;
    uint32_t bytes;
} ErdmaReasm;

typedef enum ErdmaReasmResult {
    ERDMA_REASM_STORED,
    ERDMA_REASM_DUPLICATE,      /* one chunk has all of it already */
    ERDMA_REASM_FULL,           /* this one, or all together */
} ErdmaReasmResult;

void erdma_reasm_init(ErdmaReasm *m, ErdmaReasmPool *pool);
void erdma_reasm_destroy(ErdmaReasm *m);

/* Copies a segment. @limit: the connection's rx_buffer */
ErdmaReasmResult erdma_reasm_insert(ErdmaReasm *m, const ErdmaWireData *d,
                                    uint32_t limit);

/* The first in order, or NULL; stays in the store */
static inline ErdmaRxChunk *erdma_reasm_first(const ErdmaReasm *m)
{
    return m->n ? m->v[m->head] : NULL;
}

/* Frees the first. */
void erdma_reasm_pop(ErdmaReasm *m);

#endif /* HW_ERDMA_XPORT_REASM_H */
