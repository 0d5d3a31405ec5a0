/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an address in a memory region to bus addresses.
 *
 * Reference: docs/specs/erdma.rst, "Memory regions"
 */

#include "qemu/osdep.h"
#include "engine/mr-walk.h"
#include "engine/state.h"
#include "qemu/bswap.h"

#define MTT_ENTRY_SHIFT     3

uint64_t erdma_mr_pages_needed(uint64_t start, uint64_t len,
                               unsigned page_shift)
{
    uint64_t last = start + len - 1;

    if (!len) {
        return 0;
    }
    return (last >> page_shift) - (start >> page_shift) + 1;
}

uint64_t erdma_mr_table_capacity(unsigned level, unsigned table_shift)
{
    switch (level) {
    case 0:
        return ERDMA_MR_INLINE_PAGES;
    case 1:
        return UINT64_MAX;
    default:
        return (uint64_t)1 << ((table_shift - MTT_ENTRY_SHIFT) * level);
    }
}

static bool mtt_entry(ErdmaEngine *e, uint64_t table, uint64_t index,
                      uint64_t *addr)
{
    if (!erdma_dma_read(e, table + (index << MTT_ENTRY_SHIFT), addr,
                        sizeof(*addr))) {
        return false;
    }
    *addr = le64_to_cpu(*addr);
    return true;
}

/*
 * The table with the data pages' addresses for @page.  With one level it is
 * contiguous, however long; else each table fills one table page.
 */
static bool mr_leaf(ErdmaEngine *e, ErdmaMr *mr, uint64_t page,
                    uint64_t *addr, uint64_t *index)
{
    unsigned bits = mr->table_shift - MTT_ENTRY_SHIFT;
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t base = mr->table;
    unsigned level;

    if (mr->level == 1) {
        *addr = base;
        *index = page;
        return true;
    }
    *index = page & mask;
    if (page >> bits != mr->cached_leaf) {
        for (level = mr->level - 1; level; level--) {
            if (!mtt_entry(e, base, (page >> (bits * level)) & mask, &base)) {
                return false;
            }
        }
        mr->cached_leaf = page >> bits;
        mr->cached_leaf_addr = base;
    }
    *addr = mr->cached_leaf_addr;
    return true;
}

/* The bus address of page @page, which is below mr->n_pages */
static bool mr_page(ErdmaEngine *e, ErdmaMr *mr, uint64_t page,
                    uint64_t *addr)
{
    uint64_t leaf, index;

    assert(page < mr->n_pages);
    if (mr->is_inline) {
        *addr = mr->pages[page];
        return true;
    }
    if (page != mr->cached_page) {
        if (!mr_leaf(e, mr, page, &leaf, &index) ||
            !mtt_entry(e, leaf, index, &mr->cached_addr)) {
            mr->cached_page = ERDMA_MR_NO_PAGE;
            return false;
        }
        mr->cached_page = page;
    }
    *addr = mr->cached_addr;
    return true;
}

/*
 * The bus address of @addr, and how many of the @len bytes from there on lie
 * side by side.
 */
static bool mr_extent(ErdmaEngine *e, ErdmaMr *mr, uint64_t addr,
                      uint32_t len, uint64_t *bus, uint32_t *n)
{
    uint64_t size = (uint64_t)1 << mr->page_shift;
    uint64_t off = addr & (size - 1);
    uint64_t page = (addr >> mr->page_shift) - (mr->start >> mr->page_shift);
    uint64_t got, next;

    if (!mr_page(e, mr, page, bus)) {
        return false;
    }
    *bus += off;
    got = MIN(size - off, len);
    while (got < len) {
        /* Neighbours are worth one look each: they often are contiguous. */
        if (!mr_page(e, mr, ++page, &next)) {
            return false;
        }
        if (next != *bus + got) {
            break;
        }
        got += MIN(size, len - got);
    }
    *n = got;
    return true;
}

bool erdma_mr_copy(ErdmaEngine *e, ErdmaMr *mr, uint64_t addr, uint8_t *buf,
                   uint32_t len, bool is_write)
{
    uint64_t bus = addr;
    uint32_t n = len;

    while (len) {
        if (mr->type != ERDMA_MR_TYPE_DMA &&
            !mr_extent(e, mr, addr, len, &bus, &n)) {
            return false;
        }
        if (!(is_write ? erdma_dma_write(e, bus, buf, n)
                       : erdma_dma_read(e, bus, buf, n))) {
            return false;
        }
        addr += n;
        buf += n;
        len -= n;
    }
    return true;
}
