/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings in guest memory: index arithmetic and address translation.
 *
 * Reference: docs/specs/erdma.rst
 */

#include "qemu/osdep.h"
#include "engine/ring.h"
#include "engine/state.h"
#include "qemu/bswap.h"

#define RING_NO_PAGE    UINT32_MAX

void erdma_ring_init_flat(ErdmaRing *r, uint64_t addr, uint32_t depth_log2,
                          uint8_t entry_shift)
{
    memset(r, 0, sizeof(*r));
    r->depth_log2 = depth_log2;
    r->entry_shift = entry_shift;
    r->page_shift = depth_log2 + entry_shift;
    r->n_pages = 1;
    r->pages[0] = addr;
    r->cached_page = RING_NO_PAGE;
}

bool erdma_ring_is_valid(const ErdmaRing *r)
{
    uint64_t size;

    if (r->depth_log2 > ERDMA_MAX_CQ_LOG2 ||
        r->entry_shift > ERDMA_WQEBB_SHIFT || r->page_shift > 31 ||
        r->page_shift < r->entry_shift) {
        return false;
    }
    if (!r->n_pages || (!r->has_table && r->n_pages > G_N_ELEMENTS(r->pages))) {
        return false;
    }
    /* An entry must not lie across two pages. */
    if (r->first_off & ((1u << r->entry_shift) - 1)) {
        return false;
    }
    /* None of these can overflow: 2^32 + 2^25 and 2^32 * 2^31 */
    size = r->first_off + ((uint64_t)1 << (r->depth_log2 + r->entry_shift));
    return size <= (uint64_t)r->n_pages << r->page_shift;
}

/* The bus address of @page; its number is below n_pages. */
static bool ring_page(ErdmaEngine *e, ErdmaRing *r, uint32_t page,
                      uint64_t *addr)
{
    uint64_t entry;

    if (!r->has_table) {
        *addr = r->pages[page];
        return true;
    }
    /* The table of a queue does not change while the queue exists. */
    if (page != r->cached_page) {
        if (!erdma_dma_read(e, r->table + page * sizeof(entry), &entry,
                            sizeof(entry))) {
            return false;
        }
        r->cached_addr = le64_to_cpu(entry);
        r->cached_page = page;
    }
    *addr = r->cached_addr;
    return true;
}

static bool ring_entry(ErdmaEngine *e, ErdmaRing *r, uint32_t index,
                       uint64_t *addr)
{
    uint64_t off = r->first_off +
                   ((uint64_t)erdma_ring_slot(r, index) << r->entry_shift);

    if (!ring_page(e, r, off >> r->page_shift, addr)) {
        return false;
    }
    *addr += off & (((uint64_t)1 << r->page_shift) - 1);
    return true;
}

bool erdma_ring_read(ErdmaEngine *e, ErdmaRing *r, uint32_t index,
                     void *entry)
{
    uint64_t addr;

    return ring_entry(e, r, index, &addr) &&
           erdma_dma_read(e, addr, entry, (size_t)1 << r->entry_shift);
}

bool erdma_ring_write(ErdmaEngine *e, ErdmaRing *r, uint32_t index,
                      const void *entry, size_t len, size_t phase_len)
{
    uint64_t addr;

    assert(len >= phase_len && len <= (size_t)1 << r->entry_shift);
    if (!ring_entry(e, r, index, &addr)) {
        return false;
    }
    if (len > phase_len &&
        !erdma_dma_write(e, addr + phase_len,
                         (const uint8_t *)entry + phase_len,
                         len - phase_len)) {
        return false;
    }
    return erdma_dma_write(e, addr, entry, phase_len);
}
