/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: keys, rights, ranges, and the walk through their tables.
 *
 * Whoever wants to touch guest memory by key says what for (ErdmaMrUse) and
 * gets the bytes or the reason why not.  Everything is looked up again on
 * each use, so that a region that the guest takes away is gone at once.
 */

#ifndef HW_ERDMA_MR_H
#define HW_ERDMA_MR_H

#include "erdma-abi.h"

struct ErdmaEngine;

typedef struct ErdmaMr {
    uint32_t index;
    uint8_t key;                /* low byte of the key */
    uint8_t type;               /* enum ERDMA_MR_TYPE_* */
    uint8_t access;             /* ERDMA_MR_ACC_* */
    bool is_valid;              /* usable now */
    uint32_t pdn;
    uint64_t start;             /* I/O address of the first byte */
    uint64_t len;
    uint8_t page_shift;
    uint8_t level;              /* of the table: 0 inline, 1..3 */
    uint8_t table_shift;        /* page size of tables of level 2 and 3 */
    uint64_t n_pages;           /* entries in use */
    uint64_t max_pages;         /* FRMR: entries of REG_MR's table */
    bool is_inline;             /* pages[] holds them, no table */
    uint64_t pages[ERDMA_MR_INLINE_PAGES];
    uint64_t table;             /* of level 1..3: the top one */
    /* last table entry looked up; UINT64_MAX: none */
    uint64_t cached_page;
    uint64_t cached_addr;
    /* last table of the lowest level, by page number / its entries; same */
    uint64_t cached_leaf;
    uint64_t cached_leaf_addr;
} ErdmaMr;

typedef enum ErdmaMrStatus {
    ERDMA_MR_OK,
    ERDMA_MR_ERR_KEY,           /* no such region, wrong key, invalid */
    ERDMA_MR_ERR_PD,
    ERDMA_MR_ERR_RIGHT,
    ERDMA_MR_ERR_WRAP,          /* address + length wraps around */
    ERDMA_MR_ERR_RANGE,
    ERDMA_MR_ERR_DMA,           /* table or data not reachable */
} ErdmaMrStatus;

typedef struct ErdmaMrUse {
    uint32_t key;
    uint32_t pdn;
    uint8_t access;             /* all of these rights are needed */
    bool allow_dma_key;         /* local use by a kernel QP */
} ErdmaMrUse;

/* A length of 0 is always fine: its key is not looked at. */
ErdmaMrStatus erdma_mr_check(struct ErdmaEngine *e, const ErdmaMrUse *use,
                             uint64_t addr, uint64_t len);
/* Check, then copy.  On any error nothing more than DMA can be partial. */
ErdmaMrStatus erdma_mr_read(struct ErdmaEngine *e, const ErdmaMrUse *use,
                            uint64_t addr, void *buf, uint32_t len);
ErdmaMrStatus erdma_mr_write(struct ErdmaEngine *e, const ErdmaMrUse *use,
                             uint64_t addr, const void *buf, uint32_t len);

/*
 * REG_MR, decoded but not validated.  @n_pages and @len are put together
 * from their parts; @is_len_cut says that only 32 bits of @len are known.
 */
typedef struct ErdmaRegMr {
    uint32_t index;
    uint8_t key;
    uint8_t version;
    bool is_valid;
    uint8_t access;
    uint8_t type;
    uint32_t pdn;
    uint64_t start;
    uint64_t len;
    bool is_len_cut;
    uint64_t n_pages;
    uint8_t level;
    uint8_t table_shift;
    uint8_t page_shift;
    uint64_t pages[ERDMA_MR_INLINE_PAGES];  /* or pages[0] = the table */
} ErdmaRegMr;

/* 0 or ERDMA_CMD_ERR_* of cmdq.h */
uint8_t erdma_mr_create(struct ErdmaEngine *e, const ErdmaRegMr *reg);
/* Nothing is read or written through the region after the return. */
uint8_t erdma_mr_destroy(struct ErdmaEngine *e, uint32_t index);
void erdma_mr_free_all(struct ErdmaEngine *e);

/* The parts of a register-MR WQE that concern the region */
typedef struct ErdmaMrFastReg {
    uint32_t key;               /* index << 8 | key byte */
    uint64_t start;
    uint32_t len;
    uint8_t access;
    uint32_t n_pages;
    bool is_inline;
    uint64_t pages[ERDMA_MR_INLINE_PAGES];
} ErdmaMrFastReg;

ErdmaMrStatus erdma_mr_fast_reg(struct ErdmaEngine *e, uint32_t pdn,
                                const ErdmaMrFastReg *reg);
/* Local and remote invalidate: fast-register regions of @pdn only */
ErdmaMrStatus erdma_mr_invalidate(struct ErdmaEngine *e, uint32_t pdn,
                                  uint32_t key);
/* The same for read with invalidate, whose key byte is not looked at. */
ErdmaMrStatus erdma_mr_invalidate_index(struct ErdmaEngine *e, uint32_t pdn,
                                        uint32_t index);

#endif /* HW_ERDMA_MR_H */
