/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Extended doorbell pages: who owns which page of BAR 0 behind the static
 * doorbell space, and what a write to it means.
 *
 * Each user context gets three pages of its own.  A context's pages ring
 * only queues whose CREATE command named them, so that one guest process
 * cannot reach the queues of another.
 */

#ifndef HW_ERDMA_EXTDB_H
#define HW_ERDMA_EXTDB_H

#include "engine/engine.h"

struct ErdmaEngine;

/* A guest page may be as big as a user queue's, and no bigger. */
#define ERDMA_GUEST_PAGE_SHIFT_MAX  19

/* The three pages of a context, named as the ALLOC_DB response names them */
typedef enum ErdmaExtRole {
    ERDMA_EXT_FREE,
    ERDMA_EXT_S,                /* SQ doorbells */
    ERDMA_EXT_R,                /* CQ doorbells: the driver crosses R and C */
    ERDMA_EXT_C,                /* RQ doorbells */
} ErdmaExtRole;

typedef struct ErdmaExtPage {
    uint32_t ctx;
    uint8_t role;
} ErdmaExtPage;

typedef struct ErdmaExtDb {
    ErdmaExtPage *pages;        /* in units of guest pages */
    uint32_t first;             /* page number of pages[0] in BAR 0 */
    uint32_t n_pages;
    uint32_t n_used;
    uint32_t last_ctx;          /* numbers are not reused, 0 is none */
    uint32_t hint;              /* where to look for a free page */
} ErdmaExtDb;

/* Page numbers relative to BAR 0, in guest pages */
typedef struct ErdmaExtPages {
    uint16_t s;
    uint16_t r;
    uint16_t c;
} ErdmaExtPages;

/*
 * Forgets all contexts and lays the area out for guest pages of 2^@shift
 * bytes.  Returns false, with nothing changed, when not even one context
 * fits.
 */
bool erdma_extdb_layout(struct ErdmaEngine *e, unsigned shift);
void erdma_extdb_destroy(struct ErdmaEngine *e);

/* 0 or ERDMA_CMD_ERR_* of cmdq.h */
uint8_t erdma_extdb_alloc(struct ErdmaEngine *e, ErdmaExtPages *pages);
uint8_t erdma_extdb_free(struct ErdmaEngine *e, const ErdmaExtPages *pages);

/* The context that owns page @page (guest pages), or 0 */
uint32_t erdma_extdb_owner(const struct ErdmaEngine *e, uint32_t page);

/*
 * What a write of @payload at @offset of BAR 0 page @page (both in 4 KiB
 * terms) rings, and in whose name.  Returns false when the page belongs to
 * nobody or the write is no doorbell.
 */
bool erdma_extdb_decode(const struct ErdmaEngine *e, uint32_t page,
                        uint32_t offset, uint64_t payload, ErdmaDbKind *kind,
                        uint32_t *ctx);

#endif /* HW_ERDMA_EXTDB_H */
