/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rings in guest memory: slots, phases, addresses */

#include "qemu/osdep.h"
#include "engine-rig.h"

static ErdmaRing paged(uint32_t depth_log2, uint32_t n_pages, bool has_table)
{
    return (ErdmaRing) {
        .depth_log2 = depth_log2,
        .entry_shift = 5,
        .page_shift = 12,
        .n_pages = n_pages,
        .has_table = has_table,
        .cached_page = UINT32_MAX,
    };
}

static void test_phase(void)
{
    ErdmaRing r;
    uint32_t i;

    erdma_ring_init_flat(&r, 0, 3, 5);
    g_assert_cmpuint(erdma_ring_depth(&r), ==, 8);
    for (i = 0; i < 64; i++) {
        g_assert_cmpuint(erdma_ring_slot(&r, i), ==, i % 8);
        /* The first lap writes 1: memory is zero at the start. */
        g_assert_cmpint(erdma_ring_phase(&r, i), ==, i / 8 % 2 == 0);
    }
    /* Free-running indices wrap without a seam. */
    g_assert_cmpuint(erdma_ring_slot(&r, UINT32_MAX), ==, 7);
    g_assert_false(erdma_ring_phase(&r, UINT32_MAX));
    /* A ring of one entry alternates. */
    erdma_ring_init_flat(&r, 0, 0, 5);
    g_assert_true(erdma_ring_phase(&r, 0));
    g_assert_false(erdma_ring_phase(&r, 1));
}

static void test_is_valid(void)
{
    ErdmaRing r = paged(7, 1, false);

    /* 128 entries of 32 bytes are exactly one page. */
    g_assert_true(erdma_ring_is_valid(&r));
    r.first_off = 32;
    g_assert_false(erdma_ring_is_valid(&r));
    r.n_pages = 2;
    g_assert_true(erdma_ring_is_valid(&r));
    r.n_pages = 4;
    g_assert_true(erdma_ring_is_valid(&r));
    /* Only four fit inline. */
    r.n_pages = 5;
    g_assert_false(erdma_ring_is_valid(&r));
    r.has_table = true;
    g_assert_true(erdma_ring_is_valid(&r));
    r.n_pages = 0;
    g_assert_false(erdma_ring_is_valid(&r));
    /* An entry must not lie across pages. */
    r = paged(6, 4, true);
    r.first_off = 40;
    g_assert_false(erdma_ring_is_valid(&r));
    /* Offsets so big that sums would wrap in 32 bits */
    r = paged(7, 1, false);
    r.first_off = 0xffffffe0;
    g_assert_false(erdma_ring_is_valid(&r));
    r = paged(20, 65535, true);
    g_assert_true(erdma_ring_is_valid(&r));
    r.depth_log2 = 21;
    g_assert_false(erdma_ring_is_valid(&r));
    r.depth_log2 = 4095;
    g_assert_false(erdma_ring_is_valid(&r));
}

static void write_entry(EngineRig *rig, ErdmaRing *r, uint32_t index,
                        uint8_t fill)
{
    uint8_t entry[32];

    memset(entry, fill, sizeof(entry));
    g_assert_true(erdma_ring_write(rig->e, r, index, entry, 32, 4));
}

/* A kernel queue's "page" is a size, its address is not aligned to it. */
static void test_add_not_mask(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_alloc(rig, 8 * 32, 4096);
    ErdmaRing r = paged(3, 1, false);
    uint8_t entry[32];

    r.page_shift = 25;
    r.pages[0] = addr;
    write_entry(rig, &r, 9, 0x77);
    g_assert_cmphex(erig_peek32(rig, addr + 32), ==, 0x77777777);
    g_assert_true(erdma_ring_read(rig->e, &r, 1, entry));
    g_assert_cmphex(entry[31], ==, 0x77);
    erig_free(rig);
}

/* Pages anywhere, in any order, the ring beginning inside the first */
static void check_pages(bool has_table)
{
    EngineRig *rig = erig_ready();
    ErdmaRing r = paged(8, 3, has_table);
    uint64_t pages[3];
    unsigned i;

    for (i = 0; i < 3; i++) {
        pages[i] = erig_alloc(rig, 3 * 4096, 4096) + (2 - i) * 4096;
        r.pages[i] = pages[i];
    }
    if (has_table) {
        r.table = erig_alloc(rig, 3 * 8, 8);
        for (i = 0; i < 3; i++) {
            erig_poke64(rig, r.table + i * 8, pages[i]);
        }
    }
    r.first_off = 4096 - 64;
    g_assert_true(erdma_ring_is_valid(&r));
    write_entry(rig, &r, 1, 0x11);
    write_entry(rig, &r, 2, 0x22);
    write_entry(rig, &r, 129, 0x33);
    write_entry(rig, &r, 130, 0x44);
    write_entry(rig, &r, 256, 0x55);
    g_assert_cmphex(erig_peek32(rig, pages[0] + 4064), ==, 0x11111111);
    g_assert_cmphex(erig_peek32(rig, pages[1]), ==, 0x22222222);
    g_assert_cmphex(erig_peek32(rig, pages[1] + 4064), ==, 0x33333333);
    g_assert_cmphex(erig_peek32(rig, pages[2]), ==, 0x44444444);
    g_assert_cmphex(erig_peek32(rig, pages[0] + 4032), ==, 0x55555555);
    erig_free(rig);
}

static void test_inline_pages(void)
{
    check_pages(false);
}

static void test_table(void)
{
    check_pages(true);
}

static void test_table_is_read_once_a_page(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRing r = paged(8, 2, true);
    uint8_t entry[32];
    uint32_t i;

    r.table = erig_alloc(rig, 16, 8);
    erig_poke64(rig, r.table, erig_alloc(rig, 4096, 4096));
    erig_poke64(rig, r.table + 8, erig_alloc(rig, 4096, 4096));
    rig->n_reads = 0;
    for (i = 0; i < 256; i++) {
        g_assert_true(erdma_ring_read(rig->e, &r, i, entry));
    }
    g_assert_cmpuint(rig->n_reads, ==, 256 + 2);
    erig_free(rig);
}

/* The word with the phase bit is stored last and in one piece. */
static void test_write_order(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_alloc(rig, 64, 4096);
    uint8_t entry[32] = { 0 };
    ErigTrace *t;
    ErdmaRing r;

    erdma_ring_init_flat(&r, addr, 1, 5);
    erig_forget_trace(rig);
    g_assert_true(erdma_ring_write(rig->e, &r, 1, entry, 32, 4));
    t = (ErigTrace *)rig->trace->data;
    g_assert_cmpuint(rig->trace->len, ==, 2);
    g_assert_cmphex(t[0].addr, ==, addr + 36);
    g_assert_cmpuint(t[0].len, ==, 28);
    g_assert_cmphex(t[1].addr, ==, addr + 32);
    g_assert_cmpuint(t[1].len, ==, 4);
    erig_free(rig);
}

static void test_holes(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRing r = paged(7, 1, true);
    uint8_t entry[32] = { 0 };

    r.table = erig_alloc(rig, 8, 4096);
    erig_poke64(rig, r.table, erig_alloc(rig, 4096, 4096));
    rig->hole = r.table;
    rig->hole_len = 8;
    g_assert_false(erdma_ring_read(rig->e, &r, 0, entry));
    g_assert_false(erdma_ring_write(rig->e, &r, 0, entry, 32, 4));
    /* A failed look-up is not remembered. */
    rig->hole_len = 0;
    g_assert_true(erdma_ring_read(rig->e, &r, 0, entry));
    rig->hole = erig_peek64(rig, r.table) + 36;
    rig->hole_len = 1;
    g_assert_true(erdma_ring_write(rig->e, &r, 0, entry, 32, 4));
    g_assert_false(erdma_ring_write(rig->e, &r, 1, entry, 32, 4));
    g_assert_cmpuint(rig->e->stats.dma_errors, ==, 3);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/ring/phase", test_phase);
    g_test_add_func("/engine/ring/is-valid", test_is_valid);
    g_test_add_func("/engine/ring/add-not-mask", test_add_not_mask);
    g_test_add_func("/engine/ring/inline-pages", test_inline_pages);
    g_test_add_func("/engine/ring/table", test_table);
    g_test_add_func("/engine/ring/table-is-read-once-a-page",
                    test_table_is_read_once_a_page);
    g_test_add_func("/engine/ring/write-order", test_write_order);
    g_test_add_func("/engine/ring/holes", test_holes);
    return g_test_run();
}
