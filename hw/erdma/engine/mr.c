/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: life cycle, keys, rights and ranges.
 *
 * Reference: docs/specs/erdma.rst, "Memory regions"
 */

#include "qemu/osdep.h"
#include "engine/mr.h"
#include "engine/mr-walk.h"
#include "engine/state.h"

#define MR_PAGE_SHIFT_MAX   30
#define MR_LOCAL_RIGHTS     (ERDMA_MR_ACC_LR | ERDMA_MR_ACC_LW)

static ErdmaMr *mr_get(ErdmaEngine *e, uint32_t key)
{
    return erdma_table_get(&e->mrs, key >> 8);
}

/* Does [@start, @start + @len) run over the end of the address space? */
static bool wraps(uint64_t start, uint64_t len)
{
    return len && start + (len - 1) < start;
}

/*
 * With version 0 of REG_MR only 32 bits of the length arrive.  The page
 * count says which of the lengths with these low bits is meant: pages are
 * smaller than 4 GiB, so there is at most one.
 */
static bool recover_len(const ErdmaRegMr *reg, uint64_t *len)
{
    uint64_t off = reg->start & (((uint64_t)1 << reg->page_shift) - 1);
    uint64_t space = (reg->n_pages << reg->page_shift) - off;
    uint32_t low = reg->len;

    if (space < low) {
        return false;
    }
    *len = low + ((space - low) & ~(uint64_t)UINT32_MAX);
    return true;
}

/* Page size, table shape and page count of a region that has pages */
static uint8_t check_pages(const ErdmaRegMr *reg)
{
    if (reg->page_shift < ERDMA_PAGE_SHIFT_MIN ||
        reg->page_shift > MR_PAGE_SHIFT_MAX) {
        return ERDMA_CMD_ERR_SIZE;
    }
    /*
     * Version 1's long length lies over the inline pages; version 0 cannot
     * say how big tables of several levels are.
     */
    if (reg->version > 1 || (reg->version == 1 && !reg->level) ||
        (reg->version == 0 && reg->level > 1)) {
        return ERDMA_CMD_ERR_FORMAT;
    }
    /* 2^33 pages of 2^30 bytes: the products below cannot overflow. */
    if (!reg->n_pages || reg->n_pages >> 33 ||
        reg->n_pages > erdma_mr_table_capacity(reg->level,
                                               reg->table_shift)) {
        return ERDMA_CMD_ERR_SIZE;
    }
    return ERDMA_CMD_OK;
}

static uint8_t check_normal(ErdmaEngine *e, const ErdmaRegMr *reg,
                            uint64_t *len)
{
    uint64_t needed;

    *len = reg->len;
    if (reg->is_len_cut && !recover_len(reg, len)) {
        return ERDMA_CMD_ERR_SIZE;
    }
    if (*len > (uint64_t)1 << e->cfg.max_mr_size_log2 ||
        wraps(reg->start, *len)) {
        return ERDMA_CMD_ERR_SIZE;
    }
    needed = erdma_mr_pages_needed(reg->start, *len, reg->page_shift);
    /* An empty region still has a page that it begins in. */
    if (reg->n_pages != (needed ? needed : 1)) {
        return ERDMA_CMD_ERR_SIZE;
    }
    return ERDMA_CMD_OK;
}

static void mr_set_pages(ErdmaMr *mr, const ErdmaRegMr *reg)
{
    mr->page_shift = reg->page_shift;
    mr->level = reg->level;
    mr->table_shift = reg->table_shift;
    mr->n_pages = reg->n_pages;
    mr->is_inline = !reg->level;
    mr->table = reg->pages[0];
    memcpy(mr->pages, reg->pages, sizeof(mr->pages));
}

uint8_t erdma_mr_create(ErdmaEngine *e, const ErdmaRegMr *reg)
{
    ErdmaMr mr = {
        .index = reg->index,
        .key = reg->key,
        .type = reg->type,
        .access = reg->access,
        .pdn = reg->pdn,
        .cached_page = ERDMA_MR_NO_PAGE,
        .cached_leaf = ERDMA_MR_NO_PAGE,
    };
    uint8_t status;

    if (reg->index >= e->mrs.capacity) {
        return ERDMA_CMD_ERR_INDEX;
    }
    switch (reg->type) {
    case ERDMA_MR_TYPE_NORMAL:
        status = check_pages(reg);
        if (!status) {
            status = check_normal(e, reg, &mr.len);
        }
        if (status) {
            return status;
        }
        mr_set_pages(&mr, reg);
        mr.start = reg->start;
        mr.is_valid = reg->is_valid;
        break;
    case ERDMA_MR_TYPE_FRMR:
        status = check_pages(reg);
        if (status) {
            return status;
        }
        /* As many as an entry of a send queue can name, and more than that */
        if (reg->n_pages > UINT32_MAX) {
            return ERDMA_CMD_ERR_SIZE;
        }
        mr_set_pages(&mr, reg);
        mr.max_pages = reg->n_pages;
        break;
    case ERDMA_MR_TYPE_DMA:
        /* All of the bus, at once; nothing else in the request has meaning. */
        mr.is_valid = true;
        break;
    default:
        return ERDMA_CMD_ERR_FORMAT;
    }
    if (erdma_table_get(&e->mrs, reg->index)) {
        return ERDMA_CMD_ERR_BUSY;
    }
    erdma_table_insert(&e->mrs, reg->index, g_memdup2(&mr, sizeof(mr)));
    return ERDMA_CMD_OK;
}

uint8_t erdma_mr_destroy(ErdmaEngine *e, uint32_t index)
{
    ErdmaMr *mr = erdma_table_remove(&e->mrs, index);

    if (!mr) {
        return ERDMA_CMD_ERR_INDEX;
    }
    g_free(mr);
    return ERDMA_CMD_OK;
}

void erdma_mr_free_all(ErdmaEngine *e)
{
    uint32_t index = 0;

    while (erdma_table_next(&e->mrs, &index)) {
        erdma_mr_destroy(e, index);
    }
}

/*
 * The local DMA key stands for all of guest memory: only kernel queues may
 * use it, and never in the name of a peer.
 */
static bool is_dma_key(const ErdmaEngine *e, const ErdmaMrUse *use)
{
    return use->allow_dma_key && use->key == e->cfg.dma_local_key &&
           !(use->access & ~MR_LOCAL_RIGHTS);
}

/*
 * Checks a use of [@addr, @addr + @len), @len not 0.  On success *@mrp is
 * the region, or NULL for the local DMA key.
 */
static ErdmaMrStatus mr_lookup(ErdmaEngine *e, const ErdmaMrUse *use,
                               uint64_t addr, uint64_t len, ErdmaMr **mrp)
{
    ErdmaMr *mr;

    *mrp = NULL;
    if (is_dma_key(e, use)) {
        return wraps(addr, len) ? ERDMA_MR_ERR_WRAP : ERDMA_MR_OK;
    }
    mr = mr_get(e, use->key);
    if (!mr || !mr->is_valid || mr->key != (use->key & 0xff)) {
        return ERDMA_MR_ERR_KEY;
    }
    if (mr->pdn != use->pdn) {
        return ERDMA_MR_ERR_PD;
    }
    if (use->access & ~mr->access) {
        return ERDMA_MR_ERR_RIGHT;
    }
    if (wraps(addr, len)) {
        return ERDMA_MR_ERR_WRAP;
    }
    if (mr->type != ERDMA_MR_TYPE_DMA &&
        (addr < mr->start || len > mr->len ||
         addr - mr->start > mr->len - len)) {
        return ERDMA_MR_ERR_RANGE;
    }
    *mrp = mr;
    return ERDMA_MR_OK;
}

ErdmaMrStatus erdma_mr_check(ErdmaEngine *e, const ErdmaMrUse *use,
                             uint64_t addr, uint64_t len)
{
    ErdmaMr *mr;

    return len ? mr_lookup(e, use, addr, len, &mr) : ERDMA_MR_OK;
}

static ErdmaMrStatus mr_access(ErdmaEngine *e, const ErdmaMrUse *use,
                               uint64_t addr, uint8_t *buf, uint32_t len,
                               bool is_write)
{
    ErdmaMrStatus status;
    ErdmaMr *mr;
    bool ok;

    if (!len) {
        return ERDMA_MR_OK;
    }
    status = mr_lookup(e, use, addr, len, &mr);
    if (status != ERDMA_MR_OK) {
        return status;
    }
    if (mr) {
        ok = erdma_mr_copy(e, mr, addr, buf, len, is_write);
    } else {
        ok = is_write ? erdma_dma_write(e, addr, buf, len)
                      : erdma_dma_read(e, addr, buf, len);
    }
    return ok ? ERDMA_MR_OK : ERDMA_MR_ERR_DMA;
}

ErdmaMrStatus erdma_mr_read(ErdmaEngine *e, const ErdmaMrUse *use,
                            uint64_t addr, void *buf, uint32_t len)
{
    return mr_access(e, use, addr, buf, len, false);
}

ErdmaMrStatus erdma_mr_write(ErdmaEngine *e, const ErdmaMrUse *use,
                             uint64_t addr, const void *buf, uint32_t len)
{
    return mr_access(e, use, addr, (uint8_t *)buf, len, true);
}

ErdmaMrStatus erdma_mr_fast_reg(ErdmaEngine *e, uint32_t pdn,
                                const ErdmaMrFastReg *reg)
{
    ErdmaMr *mr = mr_get(e, reg->key);

    if (!mr) {
        return ERDMA_MR_ERR_KEY;
    }
    if (mr->pdn != pdn) {
        return ERDMA_MR_ERR_PD;
    }
    if (mr->type != ERDMA_MR_TYPE_FRMR || mr->is_valid) {
        return ERDMA_MR_ERR_RIGHT;
    }
    /* Without a table from REG_MR there is nothing to point to. */
    if (!reg->is_inline && !mr->level) {
        return ERDMA_MR_ERR_RIGHT;
    }
    if (wraps(reg->start, reg->len)) {
        return ERDMA_MR_ERR_WRAP;
    }
    if (reg->n_pages > mr->max_pages ||
        (reg->is_inline && reg->n_pages > ERDMA_MR_INLINE_PAGES) ||
        erdma_mr_pages_needed(reg->start, reg->len, mr->page_shift) >
        reg->n_pages) {
        return ERDMA_MR_ERR_RANGE;
    }

    mr->key = reg->key & 0xff;
    mr->access = reg->access;
    mr->start = reg->start;
    mr->len = reg->len;
    mr->n_pages = reg->n_pages;
    mr->is_inline = reg->is_inline;
    memcpy(mr->pages, reg->pages, sizeof(mr->pages));
    mr->cached_page = ERDMA_MR_NO_PAGE;
    mr->cached_leaf = ERDMA_MR_NO_PAGE;
    mr->is_valid = true;
    return ERDMA_MR_OK;
}

static ErdmaMrStatus mr_invalidate(ErdmaMr *mr, uint32_t pdn)
{
    if (mr->type != ERDMA_MR_TYPE_FRMR) {
        return ERDMA_MR_ERR_KEY;
    }
    if (mr->pdn != pdn) {
        return ERDMA_MR_ERR_PD;
    }
    mr->is_valid = false;
    return ERDMA_MR_OK;
}

ErdmaMrStatus erdma_mr_invalidate(ErdmaEngine *e, uint32_t pdn, uint32_t key)
{
    ErdmaMr *mr = mr_get(e, key);

    if (!mr || mr->key != (key & 0xff)) {
        return ERDMA_MR_ERR_KEY;
    }
    return mr_invalidate(mr, pdn);
}

ErdmaMrStatus erdma_mr_invalidate_index(ErdmaEngine *e, uint32_t pdn,
                                        uint32_t index)
{
    ErdmaMr *mr = erdma_table_get(&e->mrs, index);

    return mr ? mr_invalidate(mr, pdn) : ERDMA_MR_ERR_KEY;
}
