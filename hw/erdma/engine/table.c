/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sparse table from a guest-chosen number to an object.
 */

#include "qemu/osdep.h"
#include "engine/table.h"

#define LEAF_SHIFT      8
#define LEAF_SLOTS      (1u << LEAF_SHIFT)

struct ErdmaTableLeaf {
    uint32_t used;
    void *slots[LEAF_SLOTS];
};

static uint32_t table_leaves(const ErdmaTable *t)
{
    return (t->capacity + LEAF_SLOTS - 1) >> LEAF_SHIFT;
}

void erdma_table_init(ErdmaTable *t, uint32_t capacity)
{
    t->capacity = capacity;
    t->count = 0;
    t->leaves = g_new0(ErdmaTableLeaf *, table_leaves(t));
}

void erdma_table_destroy(ErdmaTable *t)
{
    uint32_t i;

    for (i = 0; i < table_leaves(t); i++) {
        g_free(t->leaves[i]);
    }
    g_free(t->leaves);
    memset(t, 0, sizeof(*t));
}

void *erdma_table_get(const ErdmaTable *t, uint32_t index)
{
    const ErdmaTableLeaf *leaf;

    if (index >= t->capacity) {
        return NULL;
    }
    leaf = t->leaves[index >> LEAF_SHIFT];
    return leaf ? leaf->slots[index & (LEAF_SLOTS - 1)] : NULL;
}

bool erdma_table_insert(ErdmaTable *t, uint32_t index, void *obj)
{
    ErdmaTableLeaf **leaf;
    void **slot;

    assert(obj);
    if (index >= t->capacity) {
        return false;
    }
    leaf = &t->leaves[index >> LEAF_SHIFT];
    if (!*leaf) {
        *leaf = g_new0(ErdmaTableLeaf, 1);
    }
    slot = &(*leaf)->slots[index & (LEAF_SLOTS - 1)];
    if (*slot) {
        return false;
    }
    *slot = obj;
    (*leaf)->used++;
    t->count++;
    return true;
}

void *erdma_table_remove(ErdmaTable *t, uint32_t index)
{
    ErdmaTableLeaf **leaf;
    void **slot;
    void *obj;

    if (!erdma_table_get(t, index)) {
        return NULL;
    }
    leaf = &t->leaves[index >> LEAF_SHIFT];
    slot = &(*leaf)->slots[index & (LEAF_SLOTS - 1)];
    obj = *slot;
    *slot = NULL;
    t->count--;
    /* Drivers number cyclically: leaves would pile up otherwise. */
    if (!--(*leaf)->used) {
        g_free(*leaf);
        *leaf = NULL;
    }
    return obj;
}

void *erdma_table_next(const ErdmaTable *t, uint32_t *index)
{
    uint32_t i = *index;

    while (i < t->capacity) {
        const ErdmaTableLeaf *leaf = t->leaves[i >> LEAF_SHIFT];
        void *obj = leaf ? leaf->slots[i & (LEAF_SLOTS - 1)] : NULL;

        if (obj) {
            *index = i;
            return obj;
        }
        i = leaf ? i + 1 : (i | (LEAF_SLOTS - 1)) + 1;
    }
    return NULL;
}
