/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions and extended doorbell pages in snapshots.
 *
 * A region comes back by the same way that the guest made it, through REG_MR
 * and register-memory entries, so that it passes the same checks.
 */

#include "qemu/osdep.h"
#include "engine/snapshot-int.h"

#define MR_MAX_LEVEL        3
#define MR_MAX_TABLE_SHIFT  (ERDMA_PAGE_SHIFT_MIN + 7)

void erdma_snap_save_mrs(ErdmaEngine *e, ErdmaEngineSnap *s)
{
    uint32_t index = 0;
    const ErdmaMr *mr;

    for (; (mr = erdma_table_next(&e->mrs, &index)); index++) {
        ErdmaMrSnap *k = ERDMA_SNAP_ADD(s, mrs);

        *k = (ErdmaMrSnap) {
            .index = mr->index,
            .key = mr->key,
            .type = mr->type,
            .access = mr->access,
            .is_valid = mr->is_valid,
            .pdn = mr->pdn,
            .start = mr->start,
            .len = mr->len,
            .page_shift = mr->page_shift,
            .level = mr->level,
            .table_shift = mr->table_shift,
            .n_pages = mr->n_pages,
            .max_pages = mr->max_pages,
            .is_inline = mr->is_inline,
            .table = mr->table,
        };
        memcpy(k->pages, mr->pages, sizeof(k->pages));
    }
}

static void mr_request(const ErdmaMrSnap *s, ErdmaRegMr *reg)
{
    *reg = (ErdmaRegMr) {
        .index = s->index,
        .key = s->key,
        .version = s->level > 0,
        .is_valid = s->is_valid,
        .access = s->access,
        .type = s->type,
        .pdn = s->pdn,
        .start = s->start,
        .len = s->len,
        .n_pages = s->type == ERDMA_MR_TYPE_FRMR ? s->max_pages : s->n_pages,
        .level = s->level,
        .table_shift = s->table_shift,
        .page_shift = s->page_shift,
    };
    memcpy(reg->pages, s->pages, sizeof(reg->pages));
    if (s->level) {
        reg->pages[0] = s->table;
    }
}

/* What the last register-memory entry made of the region */
static bool load_fast(ErdmaEngine *e, const ErdmaMrSnap *s, char **error)
{
    ErdmaMr *mr = erdma_table_get(&e->mrs, s->index);
    ErdmaMrFastReg reg = {
        .key = s->index << 8 | s->key,
        .start = s->start,
        .len = s->len,
        .access = s->access,
        .n_pages = s->n_pages,
        .is_inline = s->is_inline,
    };

    memcpy(reg.pages, s->pages, sizeof(reg.pages));
    if (reg.len != s->len || reg.n_pages != s->n_pages ||
        erdma_mr_fast_reg(e, s->pdn, &reg) != ERDMA_MR_OK) {
        return erdma_snap_fail(error, "MR %u: start 0x%" PRIx64 ", len %"
                               PRIu64 ", n_pages %" PRIu64 " is not within "
                               "the region", s->index, s->start, s->len,
                               s->n_pages);
    }
    mr->is_valid = s->is_valid;
    return true;
}

bool erdma_snap_load_mrs(ErdmaEngine *e, const ErdmaEngineSnap *s,
                         char **error)
{
    uint32_t i;

    for (i = 0; i < s->n_mrs; i++) {
        const ErdmaMrSnap *k = &s->mrs[i];
        ErdmaRegMr reg;
        uint8_t status;

        if (k->level > MR_MAX_LEVEL || k->table_shift > MR_MAX_TABLE_SHIFT ||
            (k->level && k->table_shift < ERDMA_PAGE_SHIFT_MIN)) {
            return erdma_snap_fail(error, "MR %u: level is %u, table_shift "
                                   "%u, must be at most %d and %d to %d",
                                   k->index, k->level, k->table_shift,
                                   MR_MAX_LEVEL, ERDMA_PAGE_SHIFT_MIN,
                                   MR_MAX_TABLE_SHIFT);
        }
        mr_request(k, &reg);
        status = erdma_mr_create(e, &reg);
        if (status) {
            return erdma_snap_fail(error, "MR %u: index, type %u, start 0x%"
                                   PRIx64 ", len %" PRIu64 ", n_pages %"
                                   PRIu64 ": REG_MR fails with %u", k->index,
                                   k->type, k->start, k->len, reg.n_pages,
                                   status);
        }
        if (k->type == ERDMA_MR_TYPE_FRMR && !load_fast(e, k, error)) {
            return false;
        }
    }
    return true;
}

void erdma_snap_save_ext_db(const ErdmaEngine *e, ErdmaEngineSnap *s)
{
    const ErdmaExtDb *x = &e->ext_db;
    uint32_t i;

    s->last_ctx = x->last_ctx;
    s->ext_hint = x->hint;
    for (i = 0; i < x->n_pages; i++) {
        if (x->pages[i].ctx) {
            *ERDMA_SNAP_ADD(s, ext_pages) = (ErdmaExtPageSnap) {
                .page = i,
                .ctx = x->pages[i].ctx,
                .role = x->pages[i].role,
            };
        }
    }
}

static bool load_layout(ErdmaEngine *e, const ErdmaEngineSnap *s,
                        char **error)
{
    if (s->guest_page_shift < ERDMA_PAGE_SHIFT_MIN ||
        s->guest_page_shift > ERDMA_GUEST_PAGE_SHIFT_MAX ||
        (e->cfg.has_ext_db && s->guest_page_shift != e->guest_page_shift &&
         !erdma_extdb_layout(e, s->guest_page_shift))) {
        return erdma_snap_fail(error, "engine: guest_page_shift is %u, must "
                               "be %d to %d, and leave room for doorbell "
                               "pages", s->guest_page_shift,
                               ERDMA_PAGE_SHIFT_MIN,
                               ERDMA_GUEST_PAGE_SHIFT_MAX);
    }
    e->guest_page_shift = s->guest_page_shift;
    return true;
}

bool erdma_snap_load_ext_db(ErdmaEngine *e, const ErdmaEngineSnap *s,
                            char **error)
{
    ErdmaExtDb *x = &e->ext_db;
    uint32_t i;

    if (!load_layout(e, s, error)) {
        return false;
    }
    if (s->ext_hint && s->ext_hint >= x->n_pages) {
        return erdma_snap_fail(error, "engine: ext_hint is %u, must be below "
                               "%u", s->ext_hint, x->n_pages);
    }
    x->last_ctx = s->last_ctx;
    x->hint = s->ext_hint;
    for (i = 0; i < s->n_ext_pages; i++) {
        const ErdmaExtPageSnap *k = &s->ext_pages[i];

        if (k->page >= x->n_pages || x->pages[k->page].ctx || !k->ctx ||
            k->ctx > s->last_ctx || k->role < ERDMA_EXT_S ||
            k->role > ERDMA_EXT_C) {
            return erdma_snap_fail(error, "ext_pages[%u]: page %u, ctx %u, "
                                   "role %u, must be below %u, 1 to %u, %d "
                                   "to %d, and once", i, k->page, k->ctx,
                                   k->role, x->n_pages, s->last_ctx,
                                   ERDMA_EXT_S, ERDMA_EXT_C);
        }
        x->pages[k->page].ctx = k->ctx;
        x->pages[k->page].role = k->role;
        x->n_used++;
    }
    return true;
}
