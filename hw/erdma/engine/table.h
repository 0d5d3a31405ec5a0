/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sparse table from a guest-chosen number to an object.
 *
 * Two levels; second levels exist only where objects do, so that the
 * capacity that the device advertises costs nothing until it is used.
 */

#ifndef HW_ERDMA_TABLE_H
#define HW_ERDMA_TABLE_H

typedef struct ErdmaTableLeaf ErdmaTableLeaf;

typedef struct ErdmaTable {
    ErdmaTableLeaf **leaves;
    uint32_t capacity;
    uint32_t count;
} ErdmaTable;

void erdma_table_init(ErdmaTable *t, uint32_t capacity);
/* Frees the table itself; the objects are the caller's. */
void erdma_table_destroy(ErdmaTable *t);
/* NULL for an empty slot and for any @index beyond the capacity */
void *erdma_table_get(const ErdmaTable *t, uint32_t index);
/* Returns false when @index is beyond the capacity or taken. */
bool erdma_table_insert(ErdmaTable *t, uint32_t index, void *obj);
/* Returns the object that was there, or NULL. */
void *erdma_table_remove(ErdmaTable *t, uint32_t index);
/*
 * The first object at or after *@index, which is set to its slot; NULL when
 * there is none.  Removing the returned object is fine during a walk.
 */
void *erdma_table_next(const ErdmaTable *t, uint32_t *index);

#endif /* HW_ERDMA_TABLE_H */
