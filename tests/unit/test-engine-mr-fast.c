/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fast-register memory regions */

#include "qemu/osdep.h"
#include "engine-rig.h"

#define LR          (1u << 1)
#define LW          (1u << 2)
#define RR          (1u << 3)
#define RW          (1u << 4)
#define KEY(index)  ((uint32_t)(index) << 8 | 0x5a)

#define CHECK(addr, len, status) \
    g_assert_cmpint(erdma_mr_check(rig->e, &u, (addr), (len)), ==, \
                    ERDMA_MR_##status)

static ErdmaMrUse use(uint32_t key, uint8_t access)
{
    return (ErdmaMrUse) { .key = key, .pdn = ERIG_PD, .access = access };
}

/* A region of one page, of the kind that cannot be registered fast */
static ErdmaRegMr normal(void)
{
    return (ErdmaRegMr) {
        .index = 9,
        .key = 0x5a,
        .is_valid = true,
        .access = ERIG_ALL,
        .type = ERDMA_MR_TYPE_NORMAL,
        .pdn = ERIG_PD,
        .len = 4096,
        .is_len_cut = true,
        .n_pages = 1,
        .page_shift = 12,
        .table_shift = 12,
    };
}

static ErdmaRegMr frmr(EngineRig *rig, unsigned max_pages)
{
    ErdmaRegMr reg = normal();

    reg.type = ERDMA_MR_TYPE_FRMR;
    reg.is_valid = false;
    reg.start = 0xbad;
    reg.len = 0xbad;
    reg.n_pages = max_pages;
    reg.level = 1;
    reg.pages[0] = erig_alloc(rig, max_pages * 8, 8);
    return reg;
}

static ErdmaMrFastReg fast(uint32_t key, uint64_t start, uint32_t len,
                           uint32_t n_pages)
{
    return (ErdmaMrFastReg) {
        .key = key, .start = start, .len = len, .access = LR | LW | RR,
        .n_pages = n_pages,
    };
}

static void test_fast_reg_table(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = frmr(rig, 16);
    ErdmaMrFastReg f = fast(9 << 8 | 0x77, 0x500100, 8 * 4096 - 0x100, 8);
    ErdmaMrUse u = use(9 << 8 | 0x77, LR);
    uint64_t pages[16];
    unsigned i;

    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    CHECK(0x500100, 1, ERR_KEY);
    u.key = KEY(9);
    CHECK(0x500100, 1, ERR_KEY);
    erig_shuffled_pages(rig, pages, 16);
    for (i = 0; i < 16; i++) {
        erig_poke64(rig, reg.pages[0] + i * 8, pages[i]);
    }
    g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==, ERDMA_MR_OK);
    erig_check_region(rig, f.key, f.start, pages, 8);
    u.key = f.key;
    u.access = RR;
    CHECK(0x500100, 8 * 4096 - 0x100, OK);
    CHECK(0x500100, 8 * 4096 - 0x100 + 1, ERR_RANGE);
    u.access = RW;
    CHECK(0x500100, 1, ERR_RIGHT);
    /* The key of before is not the region's any more. */
    u = use(KEY(9), LR);
    CHECK(0x500100, 1, ERR_KEY);

    /* Again, after it was taken back, with other pages and another start */
    g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD, f.key), ==,
                    ERDMA_MR_OK);
    u.key = f.key;
    CHECK(0x500100, 1, ERR_KEY);
    f = fast(9 << 8 | 0x78, 0x900000, 16 * 4096, 16);
    for (i = 0; i < 16; i++) {
        erig_poke64(rig, reg.pages[0] + i * 8, pages[15 - i]);
    }
    for (i = 0; i < 8; i++) {
        uint64_t tmp = pages[i];

        pages[i] = pages[15 - i];
        pages[15 - i] = tmp;
    }
    g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==, ERDMA_MR_OK);
    erig_check_region(rig, f.key, f.start, pages, 16);
    /* DEREG_MR comes with the driver's idea of the key byte. */
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 9), ==, 0);
    erig_free(rig);
}

/* What was looked up for one life of the region is gone in the next. */
static void test_fast_reg_forgets(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = frmr(rig, 16);
    ErdmaMrFastReg f = fast(KEY(9), 0x1000, 4096, 1);
    unsigned i;

    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    for (i = 0; i < 3; i++) {
        uint64_t page = erig_alloc(rig, 4096, 4096);

        erig_poke64(rig, reg.pages[0], page);
        g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==,
                        ERDMA_MR_OK);
        erig_check_region(rig, f.key, f.start, &page, 1);
        g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD, f.key), ==,
                        ERDMA_MR_OK);
    }
    erig_free(rig);
}

static void test_fast_reg_inline(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = frmr(rig, 16);
    ErdmaMrFastReg f = fast(KEY(9), 0x1000, 3 * 4096, 3);

    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    f.is_inline = true;
    erig_shuffled_pages(rig, f.pages, 3);
    g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==, ERDMA_MR_OK);
    erig_check_region(rig, f.key, f.start, f.pages, 3);
    erig_free(rig);
}

static void test_fast_reg_refused(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = frmr(rig, 16);
    ErdmaMrFastReg f;

#define FAST(status, pdn, change) do { \
        f = (ErdmaMrFastReg) { .key = KEY(9), .len = 4096, .n_pages = 1 }; \
        change; \
        g_assert_cmpint(erdma_mr_fast_reg(rig->e, (pdn), &f), ==, \
                        ERDMA_MR_##status); \
    } while (0)

    FAST(ERR_KEY, ERIG_PD, f.is_inline = false);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    FAST(ERR_PD, ERIG_PD + 1, f.is_inline = false);
    FAST(ERR_RANGE, ERIG_PD, f.n_pages = 17);
    FAST(ERR_RANGE, ERIG_PD, f.n_pages = 5; f.is_inline = true);
    FAST(ERR_RANGE, ERIG_PD, f.n_pages = 0);
    FAST(ERR_RANGE, ERIG_PD, f.len = 4097);
    FAST(ERR_RANGE, ERIG_PD, f.start = 1);
    FAST(ERR_RANGE, ERIG_PD, f.n_pages = 16; f.len = 16 * 4096 + 1);
    FAST(ERR_WRAP, ERIG_PD, f.start = UINT64_MAX - 4094);
    FAST(OK, ERIG_PD, f.is_inline = true);
    /* Twice, without an invalidate between */
    FAST(ERR_RIGHT, ERIG_PD, f.is_inline = true);
    /* Not of this kind */
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 9), ==, 0);
    reg = normal();
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    FAST(ERR_RIGHT, ERIG_PD, f.is_inline = true);
    erig_free(rig);
}

static void test_invalidate_refused(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = normal();

    g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD, KEY(9)), ==,
                    ERDMA_MR_ERR_KEY);
    /* A region that the peer may not touch */
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD, KEY(9)), ==,
                    ERDMA_MR_ERR_KEY);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 9), ==, 0);
    reg = frmr(rig, 4);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD, KEY(9) ^ 1), ==,
                    ERDMA_MR_ERR_KEY);
    g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD + 1, KEY(9)), ==,
                    ERDMA_MR_ERR_PD);
    g_assert_cmpint(erdma_mr_invalidate(rig->e, ERIG_PD, KEY(9)), ==,
                    ERDMA_MR_OK);
    erig_free(rig);
}

/* What read with invalidate does: any key byte, but the rest is checked. */
static void test_invalidate_index(void)
{
    EngineRig *rig = erig_ready();
    ErdmaRegMr reg = normal();
    ErdmaMrFastReg f = fast(KEY(9), 0x1000, 4096, 1);

    g_assert_cmpint(erdma_mr_invalidate_index(rig->e, ERIG_PD, 9), ==,
                    ERDMA_MR_ERR_KEY);
    g_assert_cmpint(erdma_mr_invalidate_index(rig->e, ERIG_PD, UINT32_MAX),
                    ==, ERDMA_MR_ERR_KEY);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_invalidate_index(rig->e, ERIG_PD, 9), ==,
                    ERDMA_MR_ERR_KEY);
    g_assert_cmpuint(erdma_mr_destroy(rig->e, 9), ==, 0);
    reg = frmr(rig, 4);
    g_assert_cmpuint(erdma_mr_create(rig->e, &reg), ==, 0);
    g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==, ERDMA_MR_OK);
    g_assert_cmpint(erdma_mr_invalidate_index(rig->e, ERIG_PD + 1, 9), ==,
                    ERDMA_MR_ERR_PD);
    g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==,
                    ERDMA_MR_ERR_RIGHT);
    g_assert_cmpint(erdma_mr_invalidate_index(rig->e, ERIG_PD, 9), ==,
                    ERDMA_MR_OK);
    g_assert_cmpint(erdma_mr_fast_reg(rig->e, ERIG_PD, &f), ==, ERDMA_MR_OK);
    erig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/mr-fast/table", test_fast_reg_table);
    g_test_add_func("/engine/mr-fast/forgets", test_fast_reg_forgets);
    g_test_add_func("/engine/mr-fast/inline", test_fast_reg_inline);
    g_test_add_func("/engine/mr-fast/refused", test_fast_reg_refused);
    g_test_add_func("/engine/mr-fast/invalidate-refused",
                    test_invalidate_refused);
    g_test_add_func("/engine/mr-fast/invalidate-index",
                    test_invalidate_index);
    return g_test_run();
}
