/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: snapshots, the parts that all of them share, and what the
 * transport has beside its connections.
 */

#include "qemu/osdep.h"
#include "snapshot-int.h"

QEMU_BUILD_BUG_ON(sizeof(ErdmaXportStats) !=
                  ERDMA_XPORT_SNAP_COUNTERS * sizeof(uint64_t));

void *erdma_snap_grow(void *v, uint32_t *n, size_t size)
{
    /* Full whenever there is a power of two of them. */
    if (!(*n & (*n - 1))) {
        v = g_realloc_n(v, *n ? 2 * (size_t)*n : 1, size);
    }
    memset((char *)v + *n * size, 0, size);
    (*n)++;
    return v;
}

/* What erdma_snap_grow() has allocated for @n */
static size_t capacity(size_t n)
{
    size_t cap = 1;

    while (cap < n) {
        cap *= 2;
    }
    return cap;
}

uint8_t *erdma_snap_add_bytes(uint8_t **bytes, uint32_t *n_bytes, size_t len)
{
    size_t n = *n_bytes;

    /* Stays above the limit once it is there: it will not fit. */
    if (n > ERDMA_SNAP_MAX_BYTES || len > ERDMA_SNAP_MAX_BYTES - n) {
        *n_bytes = ERDMA_SNAP_MAX_BYTES + 1;
        return NULL;
    }
    if (!*bytes || capacity(n + len) > capacity(n)) {
        *bytes = g_realloc(*bytes, capacity(n + len));
    }
    *n_bytes = n + len;
    return *bytes + n;
}

bool erdma_snap_fail(char **error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    *error = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return false;
}

static uint64_t field_value(const ErdmaSnapRange *r, const void *obj)
{
    const void *p = (const char *)obj + r->offset;

    switch (r->size) {
    case 1:
        return *(const uint8_t *)p;
    case 2:
        return *(const uint16_t *)p;
    case 4:
        return *(const uint32_t *)p;
    default:
        return *(const uint64_t *)p;
    }
}

bool erdma_snap_check(const ErdmaSnapRange *r, size_t n, const void *obj,
                      const char *what, uint32_t number, char **error)
{
    size_t i;

    for (i = 0; i < n; i++) {
        uint64_t val = field_value(&r[i], obj);

        if (r[i].is_double) {
            double d = erdma_snap_double(val);

            /* Also not for what is no number */
            if (!(d >= 0 && d <= (double)r[i].max)) {
                return erdma_snap_fail(error, "%s 0x%x: %s is %g, must be 0 "
                                       "to %" PRIu64, what, number,
                                       r[i].name, d, r[i].max);
            }
        } else if (val < r[i].min || val > r[i].max) {
            return erdma_snap_fail(error, "%s 0x%x: %s is %" PRIu64
                                   ", must be %" PRIu64 " to %" PRIu64, what,
                                   number, r[i].name, val, r[i].min,
                                   r[i].max);
        }
    }
    return true;
}

void erdma_snap_save_hdr(const ErdmaXportMsgHdr *hdr, ErdmaHdrSnap *s)
{
    *s = (ErdmaHdrSnap) {
        .op = hdr->op,
        .is_solicited = hdr->is_solicited,
        .len = hdr->len,
        .imm = hdr->imm,
        .rkey = hdr->rkey,
        .raddr = hdr->raddr,
        .read_len = hdr->read_len,
        .req_msn = hdr->req_msn,
        .swap_add = hdr->swap_add,
        .compare = hdr->compare,
        .original = hdr->original,
    };
}

bool erdma_snap_load_hdr(ErdmaXportMsgHdr *hdr, const ErdmaHdrSnap *s)
{
    if (s->op < ERDMA_XPORT_OP_SEND || s->op >= ERDMA_XPORT_OP_COUNT) {
        return false;
    }
    /* The recorder and the tests compare headers as a whole. */
    memset(hdr, 0, sizeof(*hdr));
    hdr->op = s->op;
    hdr->is_solicited = s->is_solicited;
    hdr->len = s->len;
    hdr->imm = s->imm;
    hdr->rkey = s->rkey;
    hdr->raddr = s->raddr;
    hdr->read_len = s->read_len;
    hdr->req_msn = s->req_msn;
    hdr->swap_add = s->swap_add;
    hdr->compare = s->compare;
    hdr->original = s->original;
    return true;
}

void erdma_xport_save(const ErdmaXport *x, ErdmaXportSnap *s)
{
    s->mtu = x->cfg.mtu;
    memcpy(s->counters, &x->stats, sizeof(x->stats));
}

bool erdma_xport_snap_fits(const ErdmaXportSnap *s, char **error)
{
    const struct {
        const char *name;
        uint32_t n;
        uint32_t max;
    } a[] = {
        { "conns", s->n_conns, ERDMA_SNAP_MAX_CONNS },
        { "sents", s->n_sents, ERDMA_SNAP_MAX_ITEMS },
        { "ranges", s->n_ranges, ERDMA_SNAP_MAX_ITEMS },
        { "chunks", s->n_chunks, ERDMA_SNAP_MAX_ITEMS },
        { "cubics", s->n_cubics, ERDMA_SNAP_MAX_CONNS },
        { "hpccs", s->n_hpccs, ERDMA_SNAP_MAX_CONNS },
        { "hops", s->n_hops, ERDMA_SNAP_MAX_ITEMS },
        { "bytes", s->n_bytes, ERDMA_SNAP_MAX_BYTES },
    };
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(a); i++) {
        if (a[i].n > a[i].max) {
            return erdma_snap_fail(error, "transport: n_%s is %u, must be at "
                                   "most %u", a[i].name, a[i].n, a[i].max);
        }
    }
    return true;
}

void erdma_xport_snap_clear(ErdmaXportSnap *s)
{
    g_free(s->conns);
    g_free(s->sents);
    g_free(s->ranges);
    g_free(s->chunks);
    g_free(s->cubics);
    g_free(s->hpccs);
    g_free(s->hops);
    g_free(s->bytes);
    memset(s, 0, sizeof(*s));
}

bool erdma_xport_load(ErdmaXport *x, const ErdmaXportSnap *s,
                      uint64_t now_ns, ErdmaXportLoad *l, char **error)
{
    assert(!x->conns.n && !x->recorder);
    *l = (ErdmaXportLoad) { .snap = s, .now_ns = now_ns };
    if (!erdma_xport_snap_fits(s, error)) {
        return false;
    }
    if (s->mtu < ERDMA_XPORT_MTU_MIN || s->mtu > ERDMA_XPORT_MTU_MAX) {
        return erdma_snap_fail(error, "transport: mtu is %u, must be %d to "
                               "%d", s->mtu, ERDMA_XPORT_MTU_MIN,
                               ERDMA_XPORT_MTU_MAX);
    }
    erdma_xport_set_mtu(x, s->mtu);
    memcpy(&x->stats, s->counters, sizeof(x->stats));
    x->is_blocked = false;
    return true;
}

bool erdma_xport_load_end(const ErdmaXportLoad *l, char **error)
{
    const ErdmaXportSnap *s = l->snap;

    if (l->conn != s->n_conns || l->sent != s->n_sents ||
        l->range != s->n_ranges || l->chunk != s->n_chunks ||
        l->cubic != s->n_cubics || l->hpcc != s->n_hpccs ||
        l->hop != s->n_hops || l->byte != s->n_bytes) {
        return erdma_snap_fail(error, "transport: an array has more elements "
                               "than the connections say");
    }
    return true;
}
