/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Extended doorbell pages.
 *
 * The driver rings receive queues on the page that the ALLOC_DB response
 * calls C and completion queues on R, though CREATE_QP names R and CREATE_CQ
 * names C.  So the page says whose doorbell it is, and on R and C the offset
 * in the page says which kind.
 *
 * Reference: docs/specs/erdma.rst, "Extended doorbells"
 */

#include "qemu/osdep.h"
#include "engine/extdb.h"
#include "engine/state.h"
#include "qemu/bitops.h"

#define PAGES_PER_CTX       3

bool erdma_extdb_layout(ErdmaEngine *e, unsigned shift)
{
    ErdmaExtDb *x = &e->ext_db;
    unsigned extra = shift - ERDMA_PAGE_SHIFT_MIN;
    uint64_t first = e->cfg.ext_db_first;
    uint64_t end = first + e->cfg.n_ext_db;

    /* Whole guest pages, with numbers of 16 bits */
    first = (first + ((uint64_t)1 << extra) - 1) >> extra;
    end = MIN(end >> extra, (uint64_t)UINT16_MAX + 1);
    if (!e->cfg.has_ext_db || end < first + PAGES_PER_CTX) {
        return false;
    }
    g_free(x->pages);
    x->pages = g_new0(ErdmaExtPage, end - first);
    x->first = first;
    x->n_pages = end - first;
    x->n_used = 0;
    x->hint = 0;
    return true;
}

void erdma_extdb_destroy(ErdmaEngine *e)
{
    g_free(e->ext_db.pages);
    memset(&e->ext_db, 0, sizeof(e->ext_db));
}

static const ErdmaExtPage *ext_page(const ErdmaExtDb *x, uint32_t page)
{
    if (page < x->first || page - x->first >= x->n_pages) {
        return NULL;
    }
    return &x->pages[page - x->first];
}

uint32_t erdma_extdb_owner(const ErdmaEngine *e, uint32_t page)
{
    const ErdmaExtPage *p = ext_page(&e->ext_db, page);

    return p ? p->ctx : 0;
}

/* A free page exists. */
static uint16_t ext_take(ErdmaExtDb *x, uint32_t ctx, ErdmaExtRole role)
{
    while (x->pages[x->hint].ctx) {
        x->hint = (x->hint + 1) % x->n_pages;
    }
    x->pages[x->hint].ctx = ctx;
    x->pages[x->hint].role = role;
    x->n_used++;
    return x->first + x->hint;
}

static void ext_give_back(ErdmaExtDb *x, uint16_t page)
{
    x->hint = page - x->first;
    x->pages[x->hint].ctx = 0;
    x->pages[x->hint].role = ERDMA_EXT_FREE;
    x->n_used--;
}

uint8_t erdma_extdb_alloc(ErdmaEngine *e, ErdmaExtPages *pages)
{
    ErdmaExtDb *x = &e->ext_db;

    /*
     * A context number that came around could still be written on queues of
     * its first owner; four billion contexts later there are no more.
     */
    if (x->n_pages - x->n_used < PAGES_PER_CTX ||
        x->last_ctx == UINT32_MAX) {
        return ERDMA_CMD_ERR_LIMIT;
    }
    x->last_ctx++;
    pages->s = ext_take(x, x->last_ctx, ERDMA_EXT_S);
    pages->c = ext_take(x, x->last_ctx, ERDMA_EXT_C);
    pages->r = ext_take(x, x->last_ctx, ERDMA_EXT_R);
    return ERDMA_CMD_OK;
}

static bool ext_is(const ErdmaExtDb *x, uint32_t page, uint32_t ctx,
                   ErdmaExtRole role)
{
    const ErdmaExtPage *p = ext_page(x, page);

    return p && p->ctx == ctx && p->role == role;
}

uint8_t erdma_extdb_free(ErdmaEngine *e, const ErdmaExtPages *pages)
{
    ErdmaExtDb *x = &e->ext_db;
    uint32_t ctx = erdma_extdb_owner(e, pages->s);

    if (!ctx || !ext_is(x, pages->s, ctx, ERDMA_EXT_S) ||
        !ext_is(x, pages->r, ctx, ERDMA_EXT_R) ||
        !ext_is(x, pages->c, ctx, ERDMA_EXT_C)) {
        return ERDMA_CMD_ERR_INDEX;
    }
    ext_give_back(x, pages->s);
    ext_give_back(x, pages->r);
    ext_give_back(x, pages->c);
    return ERDMA_CMD_OK;
}

/*
 * Receive or completion queue?  Providers place doorbells by number: 128
 * slots of 32 bytes for QPs, 512 of 8 bytes for CQs.  Both give the same
 * offset for numbers divisible by 512 only, where the page's role decides.
 */
static bool decode_rq_or_cq(uint32_t offset, uint64_t payload,
                            ErdmaExtRole role, ErdmaDbKind *kind)
{
    uint32_t cqn = FIELD_EX64(payload, ERDMA_DB_CQ, CQN);
    uint32_t qpn = FIELD_EX64(payload, ERDMA_DB_RQ, QPN);
    bool is_cq = offset == (cqn % 512) * 8 &&
                 FIELD_EX64(payload, ERDMA_DB_CQ, ARM);
    bool is_rq = offset == (qpn % 128) * 32;

    if (is_cq && is_rq) {
        is_rq = role == ERDMA_EXT_C;
    }
    *kind = is_rq ? ERDMA_DB_KIND_RQ : ERDMA_DB_KIND_CQ;
    return is_rq || is_cq;
}

bool erdma_extdb_decode(const ErdmaEngine *e, uint32_t page, uint32_t offset,
                        uint64_t payload, ErdmaDbKind *kind, uint32_t *ctx)
{
    unsigned extra = e->guest_page_shift - ERDMA_PAGE_SHIFT_MIN;
    const ErdmaExtPage *p = ext_page(&e->ext_db, page >> extra);

    if (!p || !p->ctx) {
        return false;
    }
    offset += (page & ((1u << extra) - 1)) << ERDMA_PAGE_SHIFT_MIN;
    *ctx = p->ctx;
    if (p->role == ERDMA_EXT_S) {
        *kind = ERDMA_DB_KIND_SQ;
        return true;
    }
    return decode_rq_or_cq(offset, payload, p->role, kind);
}
