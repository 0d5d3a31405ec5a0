/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sparse table from a number to an object */

#include "qemu/osdep.h"
#include "engine/table.h"

#define CAPACITY    (1u << 20)

static int objs[8];

static void test_bounds(void)
{
    ErdmaTable t;

    erdma_table_init(&t, 1000);
    g_assert_null(erdma_table_get(&t, 0));
    g_assert_true(erdma_table_insert(&t, 0, &objs[0]));
    g_assert_true(erdma_table_insert(&t, 999, &objs[1]));
    g_assert_false(erdma_table_insert(&t, 1000, &objs[2]));
    /* In the last second level, but beyond the capacity */
    g_assert_false(erdma_table_insert(&t, 1023, &objs[2]));
    g_assert_false(erdma_table_insert(&t, UINT32_MAX, &objs[2]));
    g_assert_true(erdma_table_get(&t, 0) == &objs[0]);
    g_assert_true(erdma_table_get(&t, 999) == &objs[1]);
    g_assert_null(erdma_table_get(&t, 1000));
    g_assert_null(erdma_table_get(&t, UINT32_MAX));
    g_assert_null(erdma_table_remove(&t, 1000));
    g_assert_cmpuint(t.count, ==, 2);
    erdma_table_destroy(&t);
}

static void test_taken(void)
{
    ErdmaTable t;

    erdma_table_init(&t, CAPACITY);
    g_assert_true(erdma_table_insert(&t, 77, &objs[0]));
    g_assert_false(erdma_table_insert(&t, 77, &objs[1]));
    g_assert_true(erdma_table_get(&t, 77) == &objs[0]);
    g_assert_true(erdma_table_remove(&t, 77) == &objs[0]);
    g_assert_null(erdma_table_remove(&t, 77));
    g_assert_cmpuint(t.count, ==, 0);
    g_assert_true(erdma_table_insert(&t, 77, &objs[1]));
    erdma_table_destroy(&t);
}

static void test_walk(void)
{
    static const uint32_t at[] = { 0, 1, 255, 256, 70000, CAPACITY - 1 };
    uint32_t index = 0;
    ErdmaTable t;
    unsigned i;

    erdma_table_init(&t, CAPACITY);
    g_assert_null(erdma_table_next(&t, &index));
    for (i = 0; i < G_N_ELEMENTS(at); i++) {
        g_assert_true(erdma_table_insert(&t, at[i], &objs[i]));
    }
    for (i = 0, index = 0; i < G_N_ELEMENTS(at); i++, index++) {
        g_assert_true(erdma_table_next(&t, &index) == &objs[i]);
        g_assert_cmpuint(index, ==, at[i]);
    }
    g_assert_null(erdma_table_next(&t, &index));
    /* A walk that takes everything out leaves nothing behind. */
    index = 0;
    while (erdma_table_next(&t, &index)) {
        g_assert_nonnull(erdma_table_remove(&t, index));
    }
    g_assert_cmpuint(t.count, ==, 0);
    erdma_table_destroy(&t);
}

/* Numbering is cyclic: memory must follow what lives, not what lived. */
static void test_leaves_are_freed(void)
{
    uint32_t i, leaves = 0;
    ErdmaTable t;

    erdma_table_init(&t, CAPACITY);
    for (i = 0; i < CAPACITY; i++) {
        erdma_table_insert(&t, i, &objs[0]);
        erdma_table_remove(&t, i);
    }
    for (i = 0; i < CAPACITY / 256; i++) {
        leaves += t.leaves[i] != NULL;
    }
    g_assert_cmpuint(leaves, ==, 0);
    erdma_table_destroy(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/table/bounds", test_bounds);
    g_test_add_func("/engine/table/taken", test_taken);
    g_test_add_func("/engine/table/walk", test_walk);
    g_test_add_func("/engine/table/leaves-are-freed", test_leaves_are_freed);
    return g_test_run();
}
