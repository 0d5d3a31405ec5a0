/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings in guest memory: index arithmetic and address translation.
 *
 * The one place that knows how a free-running index becomes a slot, a phase
 * bit and a bus address (docs/specs/erdma.rst, "Queues").
 */

#ifndef HW_ERDMA_RING_H
#define HW_ERDMA_RING_H

#include "erdma-abi.h"

struct ErdmaEngine;

/*
 * Memory of one ring.  Byte b lies at page[(first_off + b) >> page_shift]
 * plus the rest of the offset.  Pages are added to, never masked: the "page"
 * of a kernel queue is not aligned to its size.
 */
typedef struct ErdmaRing {
    uint32_t depth_log2;        /* entries */
    uint8_t entry_shift;        /* log2 of the entry size */
    uint8_t page_shift;
    uint32_t first_off;
    uint32_t n_pages;
    bool has_table;             /* @table is the address of LE64 addresses */
    uint64_t table;
    uint64_t pages[ERDMA_QP_INLINE_PAGES];
    /* the last page that was looked up in the table; UINT32_MAX: none */
    uint32_t cached_page;
    uint64_t cached_addr;
} ErdmaRing;

/* A physically contiguous ring at @addr */
void erdma_ring_init_flat(ErdmaRing *r, uint64_t addr, uint32_t depth_log2,
                          uint8_t entry_shift);

/*
 * Does the description cover the ring?  Checks that the pages hold
 * first_off + depth * entry bytes, and nothing about their contents.
 */
bool erdma_ring_is_valid(const ErdmaRing *r);

static inline uint32_t erdma_ring_depth(const ErdmaRing *r)
{
    return 1u << r->depth_log2;
}

static inline uint32_t erdma_ring_slot(const ErdmaRing *r, uint32_t index)
{
    return index & (erdma_ring_depth(r) - 1);
}

/* Phase of the entry at free-running @index: true on the first lap */
static inline bool erdma_ring_phase(const ErdmaRing *r, uint32_t index)
{
    return !(index & erdma_ring_depth(r));
}

/*
 * Copies one entry of the ring out of guest memory.  Returns false when the
 * memory or the table cannot be read.
 */
bool erdma_ring_read(struct ErdmaEngine *e, ErdmaRing *r, uint32_t index,
                     void *entry);
/*
 * Writes one entry of @len bytes (at most the entry size, a multiple of 4),
 * all but the word of @phase_len (4 or 8) bytes at offset 0 first, that word
 * last and as one store.
 */
bool erdma_ring_write(struct ErdmaEngine *e, ErdmaRing *r, uint32_t index,
                      const void *entry, size_t len, size_t phase_len);

#endif /* HW_ERDMA_RING_H */
