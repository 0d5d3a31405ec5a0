/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: the receiving side of a connection in snapshots. */

#include "qemu/osdep.h"
#include "snapshot-int.h"

static void save_ranges(const ErdmaRecvMap *m, ErdmaXportSnap *s)
{
    unsigned i;

    for (i = 0; i < m->n; i++) {
        const ErdmaPnRange *r = erdma_recvmap_at(m, i);

        *ERDMA_SNAP_ADD(s, ranges) = (ErdmaRangeSnap) {
            .first = r->first,
            .last = r->last,
            .n_reports = r->n_reports,
            .is_fresh = m->fresh >> i & 1,
        };
    }
}

static void save_bytes(ErdmaXportSnap *s, const uint8_t *data, size_t len)
{
    uint8_t *to = erdma_snap_add_bytes(&s->bytes, &s->n_bytes, len);

    if (to && len) {
        memcpy(to, data, len);
    }
}

static void save_chunks(const ErdmaReasm *m, ErdmaXportSnap *s)
{
    uint32_t i;

    for (i = 0; i < m->n; i++) {
        const ErdmaRxChunk *c = m->v[m->head + i];
        ErdmaChunkSnap *k = ERDMA_SNAP_ADD(s, chunks);

        k->msn = c->msn;
        k->off = c->off;
        k->len = c->len;
        k->is_last = c->is_last;
        if (c->is_first) {
            erdma_snap_save_hdr(&c->hdr, &k->hdr);
        }
        save_bytes(s, c->data, c->len);
    }
}

void erdma_snap_save_rx(const ErdmaConnRx *rx, ErdmaConnSnap *k,
                        ErdmaXportSnap *s, uint64_t now_ns)
{
    k->pn0 = rx->pn0;
    k->floor = rx->map.floor;
    k->n_ranges = rx->map.n;
    k->n_chunks = rx->reasm.n;
    k->rx_msn = rx->msn;
    k->rx_off = rx->off;
    if (rx->off) {
        erdma_snap_save_hdr(&rx->hdr, &k->hdr);
    }
    k->rx_next_ack = rx->next_ack;
    k->trigger_pn = rx->trigger_pn;
    k->trigger_age_ns = erdma_snap_age(rx->trigger_ns, now_ns);
    k->ack_in_ns = erdma_snap_in(rx->ack_ns, now_ns);
    k->gap_pn = rx->gap_pn;
    k->ahead_pn = rx->ahead_pn;
    k->ahead_msn = rx->ahead_msn;
    k->ahead_off = rx->ahead_off;
    k->n_unacked = rx->n_unacked;
    k->rx_ce_packets = rx->ce_packets;
    k->rx_ce_bytes = rx->ce_bytes;
    k->rx_ect_packets = rx->ect_packets;
    k->int_info = rx->int_info;
    k->is_last_ce = rx->is_last_ce;
    k->is_holding = rx->is_holding;
    k->is_refused = rx->is_refused;
    k->want_ack = rx->want_ack;
    k->want_nack = rx->want_nack;
    k->is_nacked = rx->is_nacked;
    k->want_resume = rx->want_resume;
    save_ranges(&rx->map, s);
    save_bytes(s, rx->int_stack, erdma_wire_int_bytes(rx->int_info));
    save_chunks(&rx->reasm, s);
}

/* They rise and do not touch. */
static bool load_ranges(ErdmaRecvMap *m, const ErdmaConnSnap *k,
                        ErdmaXportLoad *l, char **error)
{
    uint64_t above = k->floor;
    unsigned i;

    if (k->floor < k->pn0) {
        return FAIL(k, error, "floor is %" PRIu64 ", must be at least pn0 (%"
                    PRIu64 ")", k->floor, k->pn0);
    }
    erdma_recvmap_init(m, k->floor);
    if (!k->n_ranges) {
        return true;
    }
    m->cap = ERDMA_RECVMAP_RANGES;
    m->v = g_new0(ErdmaPnRange, m->cap);
    for (i = 0; i < k->n_ranges; i++) {
        const ErdmaRangeSnap *r = &l->snap->ranges[l->range++];

        if (r->first < above || r->last < r->first ||
            r->last > ERDMA_SNAP_PN_MAX) {
            return FAIL(k, error, "ranges[%u] is %" PRIu64 " to %" PRIu64
                        ", must be above %" PRIu64, i, r->first, r->last,
                        above);
        }
        above = r->last + 2;
        m->v[i].first = r->first;
        m->v[i].last = r->last;
        m->v[i].n_reports = MIN(r->n_reports, ERDMA_RECVMAP_REPORTS);
        m->fresh |= (uint32_t)!!r->is_fresh << i;
        m->n++;
    }
    return true;
}

/* The bytes that come next, or NULL when there are not so many */
static const uint8_t *take_bytes(ErdmaXportLoad *l, uint32_t len)
{
    const uint8_t *p = l->snap->bytes + l->byte;

    if (len > l->snap->n_bytes - l->byte) {
        return NULL;
    }
    l->byte += len;
    return p;
}

static bool load_int_stack(ErdmaConnRx *rx, const ErdmaConnSnap *k,
                           ErdmaXportLoad *l, char **error)
{
    size_t len = erdma_wire_int_bytes(k->int_info);
    const uint8_t *p;

    if (!k->int_info) {
        return true;
    }
    p = len ? take_bytes(l, len) : NULL;
    if (!p) {
        return FAIL(k, error, "int_info is 0x%02x, has no stack",
                    k->int_info);
    }
    rx->int_info = k->int_info;
    rx->int_stack = g_malloc(ERDMA_WIRE_INT_MAX);
    memcpy(rx->int_stack, p, len);
    return true;
}

/* What the parse gate would say, had the segment just arrived */
static bool chunk_to_data(const ErdmaConnSnap *k, const ErdmaChunkSnap *s,
                          ErdmaWireData *d)
{
    int32_t ahead = s->msn - k->rx_msn;

    *d = (ErdmaWireData) {
        .msn = s->msn,
        .off = s->off,
        .len = s->len,
        .is_first = !s->off,
        .is_last = s->is_last,
    };
    if (ahead < -(int32_t)ERDMA_CONN_MSN_WINDOW ||
        ahead > (int32_t)ERDMA_CONN_MSN_WINDOW || s->len > UINT16_MAX ||
        s->off > UINT32_MAX - s->len) {
        return false;
    }
    if (d->is_first) {
        return erdma_snap_load_hdr(&d->hdr, &s->hdr) && s->len <= s->hdr.len &&
               d->is_last == (s->len == s->hdr.len) && (s->len || s->is_last);
    }
    return s->len > 0;
}

static bool load_chunks(ErdmaXportConn *c, const ErdmaConnSnap *k,
                        ErdmaXportLoad *l, char **error)
{
    uint32_t i;

    for (i = 0; i < k->n_chunks; i++) {
        const ErdmaChunkSnap *s = &l->snap->chunks[l->chunk++];
        ErdmaWireData d;

        if (!chunk_to_data(k, s, &d)) {
            return FAIL(k, error, "chunks[%u]: msn %u, off %u, len %u is no "
                        "segment", i, s->msn, s->off, s->len);
        }
        d.payload = take_bytes(l, s->len);
        if (!d.payload && s->len) {
            return FAIL(k, error, "chunks[%u]: len is %u, n_bytes is less",
                        i, s->len);
        }
        /* One that another covers is not needed. */
        if (erdma_reasm_insert(&c->rx.reasm, &d, c->x->cfg.rx_buffer) ==
            ERDMA_REASM_FULL) {
            return FAIL(k, error, "chunks[%u]: more than rx-buffer (%u "
                        "bytes) allows is held", i, c->x->cfg.rx_buffer);
        }
    }
    return true;
}

bool erdma_snap_load_rx(ErdmaXportConn *c, const ErdmaConnSnap *k,
                        ErdmaXportLoad *l, char **error)
{
    ErdmaConnRx *rx = &c->rx;

    rx->pn0 = k->pn0;
    rx->msn = k->rx_msn;
    rx->off = k->rx_off;
    if (k->rx_off && (!erdma_snap_load_hdr(&rx->hdr, &k->hdr) ||
                      k->rx_off >= k->hdr.len)) {
        return FAIL(k, error, "rx_off is %u, beyond the message's end (%u)",
                    k->rx_off, k->hdr.len);
    }
    if (!load_ranges(&rx->map, k, l, error) ||
        !load_int_stack(rx, k, l, error) || !load_chunks(c, k, l, error)) {
        return false;
    }
    rx->next_ack = k->rx_next_ack;
    rx->trigger_pn = k->trigger_pn;
    rx->trigger_ns = erdma_snap_ago(k->trigger_age_ns, l->now_ns);
    rx->ack_ns = erdma_snap_at(k->ack_in_ns, l->now_ns);
    rx->gap_pn = k->gap_pn;
    rx->ahead_pn = k->ahead_pn;
    rx->ahead_msn = k->ahead_msn;
    rx->ahead_off = k->ahead_off;
    rx->n_unacked = k->n_unacked;
    rx->ce_packets = k->rx_ce_packets;
    rx->ce_bytes = k->rx_ce_bytes;
    rx->ect_packets = k->rx_ect_packets;
    rx->is_last_ce = k->is_last_ce;
    rx->is_holding = k->is_holding;
    rx->is_refused = k->is_refused;
    rx->want_ack = k->want_ack;
    rx->want_nack = k->want_nack;
    rx->is_nacked = k->is_nacked;
    rx->want_resume = k->want_resume;
    return true;
}
