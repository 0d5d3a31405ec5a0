/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory regions: creation, checks, tables, fast registration */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "engine/mr-walk.h"
#include "engine-rig.h"

#define GiB         (1ull << 30)
#define LR          (1u << 1)
#define LW          (1u << 2)
#define RR          (1u << 3)
#define RW          (1u << 4)
#define KEY(index)  ((uint32_t)(index) << 8 | 0x5a)

static ErdmaRegMr base(uint32_t index, uint64_t start, uint64_t len,
                       uint64_t n_pages)
{
    return (ErdmaRegMr) {
        .index = index,
        .key = 0x5a,
        .is_valid = true,
        .access = ERIG_ALL,
        .type = ERDMA_MR_TYPE_NORMAL,
        .pdn = ERIG_PD,
        .start = start,
        .len = (uint32_t)len,
        .is_len_cut = true,
        .n_pages = n_pages,
        .page_shift = 12,
        .table_shift = 12,
    };
}

/* Version 1, with a table of several levels */
static ErdmaRegMr deep(uint32_t index, uint64_t start, uint64_t len,
                       unsigned level, uint64_t table)
{
    ErdmaRegMr reg = base(index, start, 0, 0);

    reg.version = 1;
    reg.is_len_cut = false;
    reg.len = len;
    reg.n_pages = erdma_mr_pages_needed(start, len, 12);
    reg.level = level;
    reg.pages[0] = table;
    return reg;
}

static ErdmaMrUse use(uint32_t key, uint8_t access)
{
    return (ErdmaMrUse) { .key = key, .pdn = ERIG_PD, .access = access };
}

static uint64_t mr_len(EngineRig *rig, uint32_t index)
{
    ErdmaMr *mr = erdma_table_get(&rig->e->mrs, index);

    g_assert_nonnull(mr);
    return mr->len;
}

static void test_pages_needed(void)
{
    g_assert_cmpuint(erdma_mr_pages_needed(0, 0, 12), ==, 0);
    g_assert_cmpuint(erdma_mr_pages_needed(0, 1, 12), ==, 1);
    g_assert_cmpuint(erdma_mr_pages_needed(0, 4096, 12), ==, 1);
    g_assert_cmpuint(erdma_mr_pages_needed(0, 4097, 12), ==, 2);
    g_assert_cmpuint(erdma_mr_pages_needed(4095, 2, 12), ==, 2);
    g_assert_cmpuint(erdma_mr_pages_needed(UINT64_MAX - 4095, 4096, 12), ==,
                     1);
    g_assert_cmpuint(erdma_mr_table_capacity(2, 12), ==, 512 * 512);
    g_assert_cmpuint(erdma_mr_table_capacity(3, 16), ==, 1ull << 39);
}

static void test_create_refused(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr ok = base(7, 0x10000, 8192, 2);
    ErdmaRegMr r;

#define REFUSED(status, change) do { \
        r = ok; \
        change; \
        g_assert_cmpuint(erdma_mr_create(rig->e, &r), ==, (status)); \
    } while (0)

    REFUSED(ERDMA_CMD_ERR_INDEX, r.index = 2048);
    REFUSED(ERDMA_CMD_ERR_INDEX, r.index = 0xfffff);
    REFUSED(ERDMA_CMD_ERR_FORMAT, r.type = 3);
    REFUSED(ERDMA_CMD_ERR_FORMAT, r.version = 2);
    REFUSED(ERDMA_CMD_ERR_FORMAT, r.version = 1);
    REFUSED(ERDMA_CMD_ERR_FORMAT, r.level = 2);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.page_shift = 11);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.page_shift = 31);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.n_pages = 0);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.n_pages = 1);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.n_pages = 3);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.n_pages = 5; r.len = 5 * 4096);
    REFUSED(ERDMA_CMD_ERR_SIZE, r.start = UINT64_MAX - 8191 + 4096);
    /* A table cannot hold what the length needs. */
    REFUSED(ERDMA_CMD_ERR_SIZE,
            r = deep(7, 0, (uint64_t)(512 * 512 + 1) * 4096, 2, 0));
    REFUSED(ERDMA_CMD_ERR_SIZE, r = deep(7, 0, 64 * GiB + 1, 3, 0));
    REFUSED(ERDMA_CMD_ERR_SIZE,
            r = deep(7, 0, GiB, 3, 0); r.n_pages = 1ull << 51);
    REFUSED(ERDMA_CMD_ERR_SIZE,
            r = deep(7, 0, GiB, 1, 0); r.type = ERDMA_MR_TYPE_FRMR;
            r.n_pages = 1ull << 33);
    REFUSED(ERDMA_CMD_ERR_SIZE,
            r = deep(7, 0, GiB, 3, 0); r.n_pages--);
    REFUSED(ERDMA_CMD_ERR_SIZE,
            r = deep(7, 0, GiB, 2, 0); r.len = UINT64_MAX);
    g_assert_cmpuint(rig->e->mrs.count, ==, 0);
    g_assert_cmpuint(erdma_mr_create(rig->e, &ok), ==, 0);
    REFUSED(ERDMA_CMD_ERR_BUSY, r.pdn++);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 7), ==, 0);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 7), ==, ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, UINT32_MAX), ==,
                     ERDMA_CMD_ERR_INDEX);
    g_assert_cmpuint(erdma_mr_create(rig->e, &ok), ==, 0);
    erig_free(rig);
}

/* Index 0 and PD 0 exist once the driver's allocators have wrapped. */
static void test_zero_is_a_number(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(0, 0x1000, 16, 1);
    ErdmaMrUse u = { .key = 0, .pdn = 0, .access = LR };

    reg.pdn = 0;
    reg.key = 0;
    reg.pages[0] = erig_alloc(rig, 4096, 4096);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_check(rig->e, &u, 0x1000, 16), ==, ERDMA_MR_OK);
    erig_free(rig);
}

/* Only 32 bits of the length arrive; the page count has the rest. */
static void test_recover_len(void)
{
    static const struct {
        uint64_t start;
        uint64_t len;
        unsigned page_shift;
    } cases[] = {
        { 0, 1, 12 }, { 4095, 1, 12 }, { 0xfff, 0x1001, 12 },
        { 0, 4 * GiB - 1, 21 }, { 0, 4 * GiB, 21 }, { 0, 4 * GiB + 1, 21 },
        { 0x12345, 4 * GiB, 30 }, { 0x3fffffff, 4 * GiB, 30 },
        { 0x3fffffff, 1, 30 }, { 0x3fffffff, 2, 30 },
        { 0x7f0012345678, 31 * GiB + 17, 30 }, { 1, 64 * GiB, 30 },
        { GiB - 1, 8 * GiB - 1, 30 }, { 0, 2 * GiB, 12 },
    };
    EngineRig *rig = erig_ready();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        ErdmaRegMr reg = base(1 + i, cases[i].start, cases[i].len, 0);

        reg.page_shift = cases[i].page_shift;
        reg.n_pages = erdma_mr_pages_needed(cases[i].start, cases[i].len,
                                            reg.page_shift);
        reg.level = reg.n_pages > 4;
        g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
        g_assert_cmphex(mr_len(rig, 1 + i), ==, cases[i].len);
    }
    erig_free(rig);
}

static void test_check(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(9, 0x10100, 0x1e00, 2);
    ErdmaMrUse u = use(KEY(9), RR);

    reg.access = LR | RR;
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);

#define CHECK(addr, len, status) \
    g_assert_cmpint(erdma_mr_check(rig->e, &u, (addr), (len)), ==, \
                    ERDMA_MR_##status)

    CHECK(0x10100, 0x1e00, OK);
    CHECK(0x11eff, 1, OK);
    CHECK(0x100ff, 1, ERR_RANGE);
    CHECK(0x11eff, 2, ERR_RANGE);
    CHECK(0x11f00, 1, ERR_RANGE);
    CHECK(0x10100, 0x1e01, ERR_RANGE);
    CHECK(0x10100, UINT64_MAX - 0x10100, ERR_RANGE);
    CHECK(UINT64_MAX, 2, ERR_WRAP);
    CHECK(0x10100, UINT64_MAX, ERR_WRAP);
    /* Up to the last byte of the address space is no wrap. */
    CHECK(UINT64_MAX, 1, ERR_RANGE);
    u.access = RR | RW;
    CHECK(0x10100, 1, ERR_RIGHT);
    u.access = ERDMA_MR_ACC_RA;
    CHECK(0x10100, 1, ERR_RIGHT);
    /* The order of the checks is the order of the statuses. */
    u.pdn++;
    CHECK(UINT64_MAX, 2, ERR_PD);
    u.key ^= 1;
    CHECK(0x10100, 1, ERR_KEY);
    u.key = KEY(10);
    CHECK(0x10100, 1, ERR_KEY);
    u.key = UINT32_MAX;
    CHECK(0x10100, 1, ERR_KEY);
    /* Of nothing no key is asked. */
    CHECK(UINT64_MAX, 0, OK);
    erig_free(rig);
}

static void test_invalid_mr(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(9, 0, 4096, 1);
    ErdmaMrUse u = use(KEY(9), LR);

    reg.is_valid = false;
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    CHECK(0, 1, ERR_KEY);
    erig_free(rig);
}

/* "valid" is 0 and the page size nonsense, as the driver writes them */
static void test_dma_mr(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_alloc(rig, 4096, 4096);
    ErdmaMrUse u = use(KEY(9), LR | LW);
    ErdmaRegMr reg = base(9, 0xdeadbeef, 0xbad, 0);
    uint8_t buf[100] = { 1, 2, 3 };

    reg.type = ERDMA_MR_TYPE_DMA;
    reg.is_valid = false;
    reg.page_shift = 31;
    reg.version = 7;
    reg.access = LR | LW | RR;
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_write(rig->e, &u, addr + 4000, buf, 96), ==,
                    ERDMA_MR_OK);
    g_assert_cmphex(erig_peek32(rig, addr + 4000), ==, 0x030201);
    CHECK(0, UINT64_MAX, OK);
    CHECK(1, UINT64_MAX, OK);
    CHECK(2, UINT64_MAX, ERR_WRAP);
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 0, buf, 4), ==,
                    ERDMA_MR_ERR_DMA);
    u.access = RW;
    CHECK(0, 1, ERR_RIGHT);
    u = use(KEY(9), LR);
    u.pdn++;
    CHECK(0, 1, ERR_PD);
    erig_free(rig);
}

static void test_local_dma_key(void)
{
    EngineRig *rig = erig_ready();
    uint64_t addr = erig_alloc(rig, 4096, 4096);
    ErdmaMrUse u = use(ERIG_DMA_KEY, LR);
    uint8_t buf[8] = { 0 };

    /* A user's queue */
    CHECK(addr, 8, ERR_KEY);
    u.allow_dma_key = true;
    CHECK(addr, 8, OK);
    g_assert_cmpint(erdma_mr_read(rig->e, &u, addr, buf, 8), ==, ERDMA_MR_OK);
    u.access = LW;
    g_assert_cmpint(erdma_mr_write(rig->e, &u, addr, buf, 8), ==,
                    ERDMA_MR_OK);
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 16, buf, 8), ==,
                    ERDMA_MR_ERR_DMA);
    CHECK(UINT64_MAX, 2, ERR_WRAP);
    /* In a peer's name: never */
    u.access = RR;
    CHECK(addr, 8, ERR_KEY);
    u.access = LR | RW;
    CHECK(addr, 8, ERR_KEY);
    u.access = ERDMA_MR_ACC_RA;
    CHECK(addr, 8, ERR_KEY);
    erig_free(rig);
}

static void test_level_0(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(9, 0x7000123, 4 * 4096 - 0x123, 4);

    erig_shuffled_pages(rig, reg.pages, 4);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    erig_check_region(rig, KEY(9), reg.start, reg.pages, 4);
    erig_free(rig);
}

static void test_level_1(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(9, 0x7000ff0, 700 * 4096 - 0xff0, 700);
    uint64_t pages[700];
    unsigned i;

    erig_shuffled_pages(rig, pages, 700);
    reg.level = 1;
    /* A kmalloc'ed table: contiguous, aligned to 8, longer than a page */
    reg.pages[0] = erig_alloc(rig, 701 * 8, 4096) + 8;
    for (i = 0; i < 700; i++) {
        erig_poke64(rig, reg.pages[0] + i * 8, pages[i]);
    }
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    erig_check_region(rig, KEY(9), reg.start, pages, 700);
    erig_free(rig);
}

static uint64_t table_of(EngineRig *rig, const uint64_t *entries, unsigned n,
                         unsigned *n_tables, uint64_t *tables)
{
    unsigned i;

    *n_tables = (n + 511) / 512;
    for (i = 0; i < n; i++) {
        if (i % 512 == 0) {
            tables[i / 512] = erig_alloc(rig, 4096, 4096);
            erig_alloc(rig, 4096, 4096);    /* tables are not contiguous */
        }
        erig_poke64(rig, tables[i / 512] + i % 512 * 8, entries[i]);
    }
    return tables[0];
}

static void check_deep(unsigned level, unsigned n)
{
    EngineRig *rig = erig_ready();
    g_autofree uint64_t *pages = g_new(uint64_t, n);
    uint64_t tables[16], tops[16], top;
    unsigned n_tables, n_tops;
    ErdmaRegMr reg;

    erig_shuffled_pages(rig, pages, n);
    table_of(rig, pages, n, &n_tables, tables);
    top = table_of(rig, tables, n_tables, &n_tops, tops);
    if (level == 3) {
        uint64_t tip[1];

        top = table_of(rig, tops, n_tops, &n_tops, tip);
    }
    reg = deep(9, 0x70001230, (uint64_t)n * 4096 - 0x230, level, top);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmphex(mr_len(rig, 9), ==, reg.len);
    erig_check_region(rig, KEY(9), reg.start, pages, n);
    erig_free(rig);
}

static void test_level_2(void)
{
    check_deep(2, 1500);
}

static void test_level_3(void)
{
    check_deep(3, 1025);
}

/* 64 GiB in three levels: the last page, without having all the others */
static void test_level_3_far(void)
{
    EngineRig *rig = erig_ready();
    uint64_t top = erig_alloc(rig, 4096, 4096);
    uint64_t mid = erig_alloc(rig, 4096, 4096);
    uint64_t leaf = erig_alloc(rig, 4096, 4096);
    uint64_t data = erig_alloc(rig, 4096, 4096);
    ErdmaRegMr reg = deep(9, 0, 64 * GiB, 3, top);
    ErdmaMrUse u = use(KEY(9), LR | LW);
    uint64_t page = 64 * GiB / 4096 - 1;
    uint8_t raw[4];

    stl_le_p(raw, 0x12345678);
    erig_poke64(rig, top + (page >> 18) * 8, mid);
    erig_poke64(rig, mid + (page >> 9 & 511) * 8, leaf);
    erig_poke64(rig, leaf + (page & 511) * 8, data);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 64 * GiB - 4, raw, 4), ==,
                    ERDMA_MR_OK);
    g_assert_cmphex(erig_peek32(rig, data + 4092), ==, 0x12345678);
    /* The page before has a leaf but no entry, the first one no leaf. */
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 64 * GiB - 4100, raw, 4), ==,
                    ERDMA_MR_ERR_DMA);
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 0, raw, 4), ==,
                    ERDMA_MR_ERR_DMA);
    erig_free(rig);
}

/* What a packet costs: one access when its bytes lie side by side */
static void test_coalescing(void)
{
    EngineRig *rig = erig_ready();
    uint64_t data = erig_alloc(rig, 64 * 4096, 4096);
    ErdmaRegMr reg = base(9, 0, 64 * 4096, 64);
    ErdmaMrUse u = use(KEY(9), LR | LW);
    uint8_t buf[8192] = { 0 };
    unsigned i;

    reg.level = 1;
    reg.pages[0] = erig_alloc(rig, 64 * 8, 8);
    for (i = 0; i < 64; i++) {
        erig_poke64(rig, reg.pages[0] + i * 8, data + i * 4096);
    }
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    erig_forget_trace(rig);
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 100, buf, 1400), ==, 0);
    g_assert_cmpuint(rig->n_writes, ==, 1);
    g_assert_cmpuint(rig->n_reads, ==, 1);
    /* The same page again: the entry is known. */
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 1500, buf, 1400), ==, 0);
    g_assert_cmpuint(rig->n_reads, ==, 1);
    /* Across three neighbours */
    g_assert_cmpint(erdma_mr_write(rig->e, &u, 4000, buf, 8192), ==, 0);
    g_assert_cmpuint(rig->n_writes, ==, 3);
    g_assert_cmpuint(rig->n_reads, ==, 3);
    /* A whole stream reads each entry once. */
    erig_forget_trace(rig);
    for (i = 0; i < 64 * 4096; i += 1024) {
        g_assert_cmpint(erdma_mr_read(rig->e, &u, i, buf, 1024), ==, 0);
    }
    g_assert_cmpuint(rig->n_reads, ==, 64 + 256);
    erig_free(rig);
}

static void test_holes(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(9, 0, 5 * 4096, 5);
    ErdmaMrUse u = use(KEY(9), LR | LW);
    uint8_t buf[32] = { 0 };

    /* No table; then no data */
    reg.level = 1;
    reg.pages[0] = 0x1000;
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 0, buf, 8), ==,
                    ERDMA_MR_ERR_DMA);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 9), ==, 0);
    reg.pages[0] = erig_alloc(rig, 40, 8);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 0, buf, 8), ==,
                    ERDMA_MR_ERR_DMA);
    /* A failed read of the table leaves nothing half cached. */
    erig_poke64(rig, reg.pages[0] + 8, erig_alloc(rig, 4096, 4096));
    rig->hole = reg.pages[0] + 8;
    rig->hole_len = 8;
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 4096, buf, 8), ==,
                    ERDMA_MR_ERR_DMA);
    rig->hole_len = 0;
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 4096, buf, 8), ==, ERDMA_MR_OK);
    g_assert_cmpuint(rig->e->stats.dma_errors, ==, 3);
    erig_free(rig);
}

static void test_destroy_ends_access(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = base(9, 0, 4096, 1);
    ErdmaMrUse u = use(KEY(9), LR);
    uint8_t buf[8];

    reg.pages[0] = erig_alloc(rig, 4096, 4096);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 0, buf, 8), ==, ERDMA_MR_OK);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 9), ==, 0);
    erig_forget_trace(rig);
    g_assert_cmpint(erdma_mr_read(rig->e, &u, 0, buf, 8), ==,
                    ERDMA_MR_ERR_KEY);
    g_assert_cmpuint(rig->n_reads, ==, 0);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/mr/pages-needed", test_pages_needed);
    g_test_add_func("/engine/mr/create-refused", test_create_refused);
    g_test_add_func("/engine/mr/zero-is-a-number", test_zero_is_a_number);
    g_test_add_func("/engine/mr/recover-len", test_recover_len);
    g_test_add_func("/engine/mr/check", test_check);
    g_test_add_func("/engine/mr/invalid-mr", test_invalid_mr);
    g_test_add_func("/engine/mr/dma-mr", test_dma_mr);
    g_test_add_func("/engine/mr/local-dma-key", test_local_dma_key);
    g_test_add_func("/engine/mr/level-0", test_level_0);
    g_test_add_func("/engine/mr/level-1", test_level_1);
    g_test_add_func("/engine/mr/level-2", test_level_2);
    g_test_add_func("/engine/mr/level-3", test_level_3);
    g_test_add_func("/engine/mr/level-3-far", test_level_3_far);
    g_test_add_func("/engine/mr/coalescing", test_coalescing);
    g_test_add_func("/engine/mr/holes", test_holes);
    g_test_add_func("/engine/mr/destroy-ends-access",
                    test_destroy_ends_access);
    return g_test_run();
}
