/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: loss detection, see loss.h. */

#include "qemu/osdep.h"
#include "loss.h"

void erdma_loss_init(ErdmaLoss *l, uint64_t pn0, uint8_t threshold)
{
    memset(l, 0, sizeof(*l));
    l->threshold = threshold;
    l->reo_mult = 1;
    l->cursor = l->resend = pn0;
    l->recovery_end = l->spurious_end = pn0;
}

/* Was everything that @e carries consumed by the peer? */
static bool is_delivered(const ErdmaSent *e, uint32_t una_msn,
                         uint32_t una_off)
{
    if (e->msn != una_msn) {
        return (int32_t)(e->msn - una_msn) < 0;
    }
    return e->len && una_off >= e->len && e->off <= una_off - e->len;
}

/* Numbers that matter at one time are closer together than 2^31. */
static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static void note_top(ErdmaLoss *l, uint64_t pn)
{
    unsigned i = l->n_top;

    while (i > 0 && is_before(l->top[i - 1], pn)) {
        i--;
    }
    if (i == l->threshold) {
        return;
    }
    if (l->n_top < l->threshold) {
        l->n_top++;
    }
    memmove(&l->top[i + 1], &l->top[i],
            (l->n_top - 1 - i) * sizeof(l->top[0]));
    l->top[i] = pn;
}

static void ack_one(ErdmaLoss *l, ErdmaSentMap *m, ErdmaSent *e, uint64_t pn,
                    ErdmaAcked *a)
{
    if (e->state == ERDMA_SENT_LOST) {
        a->n_spurious++;
        a->spurious_pn = pn;
        if (!e->is_resent) {
            l->n_resend--;
        }
    } else {
        a->bytes += e->bytes;
    }
    a->n++;
    a->n_ect += e->is_ect;
    if (!a->has_pn || pn > a->largest_pn) {
        a->has_pn = true;
        a->largest_pn = pn;
        a->largest_sent_ns = e->sent_ns;
    }
    if (pn == a->trigger_pn) {
        a->has_trigger = true;
        a->trigger_sent_ns = e->sent_ns;
    }
    erdma_sentmap_set(m, e, ERDMA_SENT_ACKED);
}

void erdma_loss_ack_begin(const ErdmaLoss *l, uint64_t trigger_pn,
                          ErdmaAcked *a)
{
    memset(a, 0, sizeof(*a));
    a->trigger_pn = trigger_pn;
    a->has_prior = l->n_top > 0;
    a->prior_pn = a->has_prior ? l->top[0] : 0;
}

void erdma_loss_ack_range(ErdmaLoss *l, ErdmaSentMap *m, uint64_t first,
                          uint64_t last, ErdmaAcked *a)
{
    uint64_t pn;

    if (last < m->base) {
        return;
    }
    first = MAX(first, m->base);
    for (pn = first; pn <= last; ) {
        ErdmaSent *e = erdma_sentmap_get(m, pn);
        uint32_t step = 1;

        if (e->state == ERDMA_SENT_ACKED) {
            /* Acks repeat their ranges: skip what is known in one step. */
            step = e->run;
        } else {
            /* Arrived after something that was sent later */
            if (a->has_prior && is_before(pn, a->prior_pn)) {
                l->is_reordering_seen = true;
            }
            ack_one(l, m, e, pn, a);
        }
        /*
         * Where we have been need not be gone over again, wherever the next
         * ack's ranges begin.
         */
        e->run = MAX(e->run, last - pn + 1);
        pn += step;
    }
    for (pn = last; pn >= first && last - pn < l->threshold; pn--) {
        bool is_known = false;
        unsigned i;

        for (i = 0; i < l->n_top; i++) {
            is_known |= l->top[i] == (uint32_t)pn;
        }
        if (!is_known) {
            note_top(l, pn);
        }
    }
}

static uint64_t reordering_window(const ErdmaLoss *l, const ErdmaRtt *rtt)
{
    return MIN(l->reo_mult * (erdma_rtt_min(rtt) / 4), rtt->srtt_ns);
}

static void note_spurious(ErdmaLoss *l, const ErdmaSentMap *m,
                          const ErdmaAcked *a)
{
    l->n_recoveries = 0;
    l->n_episode_spurious += a->n_spurious;
    l->is_reordering_seen = true;
    if (a->spurious_pn >= l->spurious_end) {
        l->spurious_end = m->next;
        if (l->reo_mult < UINT8_MAX) {
            l->reo_mult++;
        }
    }
}

bool erdma_loss_ack_done(ErdmaLoss *l, const ErdmaSentMap *m,
                         const ErdmaAcked *a, uint64_t now_ns)
{
    bool is_all_spurious = false;

    if (!a->has_pn) {
        return false;
    }
    if (!l->has_rack || a->largest_sent_ns >= l->rack_sent_ns) {
        l->has_rack = true;
        l->rack_sent_ns = a->largest_sent_ns;
        l->rack_rtt_ns = now_ns - a->largest_sent_ns;
    }
    if (a->n_spurious) {
        note_spurious(l, m, a);
        if (l->n_episode_lost &&
            l->n_episode_spurious >= l->n_episode_lost) {
            is_all_spurious = true;
            l->n_episode_lost = l->n_episode_spurious = 0;
        }
    }
    if (l->is_in_recovery && a->largest_pn >= l->recovery_end) {
        l->is_in_recovery = false;
        if (++l->n_recoveries >= ERDMA_LOSS_REO_RECOVERIES) {
            l->n_recoveries = 0;
            l->reo_mult = 1;
        }
    }
    return is_all_spurious;
}

static void enter_episode(ErdmaLoss *l, const ErdmaSentMap *m)
{
    l->is_in_recovery = true;
    l->recovery_end = m->next;
    l->n_episode_lost = l->n_episode_spurious = 0;
}

static void declare_lost(ErdmaLoss *l, ErdmaSentMap *m, ErdmaSent *e,
                         uint64_t pn, ErdmaLost *out)
{
    if (!out->n) {
        out->first_pn = pn;
    }
    out->n++;
    out->bytes += e->bytes;
    erdma_sentmap_set(m, e, ERDMA_SENT_LOST);
    if (!l->n_resend || pn < l->resend) {
        l->resend = pn;
    }
    l->n_resend++;
    l->has_resent = false;
}

/* May @e be declared lost now?  If only later, @deadline_ns says when. */
static bool is_lost(const ErdmaLoss *l, const ErdmaSent *e, uint64_t pn,
                    uint64_t reo_ns, uint64_t now_ns, uint64_t *deadline_ns)
{
    uint64_t when_ns;

    if (!l->is_reordering_seen && l->n_top == l->threshold &&
        is_before(pn, l->top[l->threshold - 1])) {
        return true;
    }
    when_ns = e->sent_ns + l->rack_rtt_ns + reo_ns;
    if (now_ns >= when_ns) {
        return true;
    }
    *deadline_ns = when_ns;
    return false;
}

void erdma_loss_detect(ErdmaLoss *l, ErdmaSentMap *m, const ErdmaRtt *rtt,
                       uint32_t una_msn, uint32_t una_off, uint64_t now_ns,
                       ErdmaLost *out)
{
    uint64_t reo_ns = reordering_window(l, rtt);

    memset(out, 0, sizeof(*out));
    out->deadline_ns = ERDMA_XPORT_NEVER;
    l->cursor = MAX(l->cursor, m->base);
    /*
     * Numbers rise with the time of sending, so the first one that is not
     * lost yet ends the walk, and no number is looked at twice in vain.
     */
    for (; l->cursor < m->next; l->cursor++) {
        ErdmaSent *e = erdma_sentmap_get(m, l->cursor);

        if (e->state != ERDMA_SENT_INFLIGHT) {
            continue;
        }
        if (is_delivered(e, una_msn, una_off)) {
            erdma_sentmap_set(m, e, ERDMA_SENT_ACKED);
            continue;
        }
        if (!l->has_rack || !l->n_top || is_before(l->top[0], l->cursor) ||
            !is_lost(l, e, l->cursor, reo_ns, now_ns, &out->deadline_ns)) {
            break;
        }
        if (l->cursor >= l->recovery_end) {
            out->is_new_episode = true;
        }
        declare_lost(l, m, e, l->cursor, out);
    }
    if (out->is_new_episode) {
        enter_episode(l, m);
    }
    l->n_episode_lost += out->n;
}

void erdma_loss_all(ErdmaLoss *l, ErdmaSentMap *m, bool is_episode,
                    ErdmaLost *out)
{
    memset(out, 0, sizeof(*out));
    out->deadline_ns = ERDMA_XPORT_NEVER;
    for (l->cursor = MAX(l->cursor, m->base); l->cursor < m->next;
         l->cursor++) {
        ErdmaSent *e = erdma_sentmap_get(m, l->cursor);

        if (e->state == ERDMA_SENT_INFLIGHT) {
            declare_lost(l, m, e, l->cursor, out);
        }
    }
    if (is_episode) {
        enter_episode(l, m);
        l->n_episode_lost = out->n;
    }
}

bool erdma_loss_congestion_episode(ErdmaLoss *l, const ErdmaSentMap *m)
{
    if (l->is_in_recovery) {
        return false;
    }
    enter_episode(l, m);
    return true;
}

ErdmaSent *erdma_loss_next_resend(ErdmaLoss *l, ErdmaSentMap *m,
                                  uint32_t una_msn, uint32_t una_off,
                                  uint64_t *pn)
{
    l->resend = MAX(l->resend, m->base);
    while (l->n_resend && l->resend < m->next) {
        ErdmaSent *e = erdma_sentmap_get(m, l->resend);

        if (e->state == ERDMA_SENT_LOST && !e->is_resent) {
            if (!is_delivered(e, una_msn, una_off)) {
                *pn = l->resend;
                return e;
            }
            erdma_loss_resent(l, e);
        }
        l->resend++;
    }
    return NULL;
}

/* Where @a begins relative to @b in the stream: less than 0 is before */
static int compare_place(const ErdmaSent *a, const ErdmaSent *b)
{
    int32_t diff = a->msn != b->msn ? a->msn - b->msn : a->off - b->off;

    return diff < 0 ? -1 : diff > 0;
}

/*
 * The first entry that waits has been told before, and nothing was lost since:
 * it is the same one as long as some of it is left, and then the one behind it
 * if that goes on where it ended.  NULL if this cannot be said.
 */
static ErdmaSent *continuation(const ErdmaLoss *l, ErdmaSentMap *m,
                               uint32_t una_msn, uint32_t una_off,
                               uint64_t *pn)
{
    ErdmaSent *last, *e, *next;
    bool follows;

    if (!l->has_resent || l->resent < m->base || l->resent >= m->next) {
        return NULL;
    }
    last = erdma_sentmap_get(m, l->resent);
    if (last->state != ERDMA_SENT_LOST) {
        return NULL;
    }
    *pn = l->resent;
    if (!last->is_resent) {
        return is_delivered(last, una_msn, una_off) ? NULL : last;
    }
    if (++*pn >= m->next) {
        return NULL;
    }
    e = erdma_sentmap_get(m, *pn);
    if (e->state != ERDMA_SENT_LOST || e->is_resent ||
        is_delivered(e, una_msn, una_off)) {
        return NULL;
    }
    /* What was sent of @last is cut off its beginning. */
    follows = e->msn == last->msn ? e->off == last->off :
              e->msn == last->msn + 1 && !e->off &&
              ((int32_t)(last->msn - una_msn) < 0 ||
               last->off == last->msg->hdr.len);
    /* Probes of the tail stand behind it; who looks at all sees that. */
    next = *pn + 1 < m->next ? erdma_sentmap_get(m, *pn + 1) : NULL;
    if (next && next->state == ERDMA_SENT_LOST && !next->is_resent &&
        compare_place(next, e) == 0) {
        return NULL;
    }
    return follows ? e : NULL;
}

/*
 * None from @from to @to waits.  Below the cursor nothing is declared lost any
 * more, so this stays true, and nobody need look at them again.
 */
static void note_gone(ErdmaLoss *l, uint64_t from, uint64_t to)
{
    to = MIN(to, l->cursor);
    if (to > from && to - from > l->n_gone) {
        l->gone_from = from;
        l->n_gone = to - from;
    }
}

ErdmaSent *erdma_loss_first_resend(ErdmaLoss *l, ErdmaSentMap *m,
                                   uint32_t una_msn, uint32_t una_off,
                                   uint64_t *pn)
{
    ErdmaSent *first = continuation(l, m, una_msn, una_off, pn);
    uint32_t n_left = l->n_resend;
    uint64_t i = MAX(l->resend, m->base), from = i;

    if (first) {
        l->resent = *pn;
        return first;
    }
    for (; n_left && i < m->next; i++) {
        ErdmaSent *e;
        int place;

        if (i >= l->gone_from && i - l->gone_from < l->n_gone) {
            i = l->gone_from + l->n_gone - 1;
            continue;
        }
        e = erdma_sentmap_get(m, i);
        if (e->state != ERDMA_SENT_LOST || e->is_resent) {
            continue;
        }
        note_gone(l, from, i);
        from = i + 1;
        n_left--;
        if (is_delivered(e, una_msn, una_off)) {
            erdma_loss_resent(l, e);
            continue;
        }
        place = first ? compare_place(e, first) : -1;
        if (place == 0 && e->len <= first->len) {
            /* A probe was a copy of it: once is enough. */
            erdma_loss_resent(l, e);
        } else if (place <= 0) {
            if (place == 0) {
                erdma_loss_resent(l, first);
            }
            first = e;
            *pn = i;
        }
    }
    note_gone(l, from, i);
    l->has_resent = first != NULL;
    if (first) {
        l->resent = *pn;
    }
    return first;
}

void erdma_loss_resent(ErdmaLoss *l, ErdmaSent *e)
{
    e->is_resent = true;
    l->n_resend--;
}
