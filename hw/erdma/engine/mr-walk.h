/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an address in a memory region to bus addresses: the walk through the
 * region's page list.
 */

#ifndef HW_ERDMA_MR_WALK_H
#define HW_ERDMA_MR_WALK_H

#include "engine/mr.h"

/* Nothing cached */
#define ERDMA_MR_NO_PAGE    UINT64_MAX

/* Number of pages that [@start, @start + @len) touches; no wrap-around */
uint64_t erdma_mr_pages_needed(uint64_t start, uint64_t len,
                               unsigned page_shift);
/* The most entries that a table of @level levels can hold */
uint64_t erdma_mr_table_capacity(unsigned level, unsigned table_shift);

/*
 * Copies between @buf and the region, which holds [@addr, @addr + @len).
 * Returns false when table or data cannot be reached; an unknown part has
 * been copied then, the lowest addresses first.
 */
bool erdma_mr_copy(struct ErdmaEngine *e, ErdmaMr *mr, uint64_t addr,
                   uint8_t *buf, uint32_t len, bool is_write);

#endif /* HW_ERDMA_MR_WALK_H */
