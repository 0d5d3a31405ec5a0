/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulated link: queue, serialiser, and the way to the far end.
 *
 * Reference: docs/congestion-control/netem.md
 */

#include "qemu/osdep.h"
#include "netem/impair.h"
#include "netem/netem.h"

struct NetemLink {
    const NetemOps *ops;
    void *opaque;
    NetemConfig cfg;
    NetemImpair impair;
    /* Waiting for the serialiser, in order of arrival */
    QTAILQ_HEAD(, NetemPacket) fifo;
    uint64_t queue;             /* their bytes */
    uint64_t free_ns;           /* when the serialiser is free again */
    uint64_t serialised_bytes;  /* what link_serialise_ns() computed last */
    uint64_t serialised_ns;
    uint64_t tx_bytes;          /* serialised so far: the INT counter */
    /*
     * Under way, by time of delivery; ties in order of departure.  Those that
     * keep their order need no more than a list.
     */
    QTAILQ_HEAD(, NetemPacket) flight;
    GSequence *stragglers;
    unsigned n_stragglers;
    uint64_t flight_bytes;
    uint64_t departures;        /* tie breaker */
    uint64_t last_ns;           /* latest delivery that was promised */
    uint64_t integral_ns;       /* queue_integral is true up to here */
    NetemStats stats;
};

static gint flight_compare(gconstpointer a, gconstpointer b, gpointer unused)
{
    const NetemPacket *x = a, *y = b;

    if (x->deliver_ns != y->deliver_ns) {
        return x->deliver_ns < y->deliver_ns ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

NetemLink *netem_link_new(const NetemOps *ops, void *opaque,
                          const NetemConfig *cfg)
{
    NetemLink *l = g_new0(NetemLink, 1);

    l->ops = ops;
    l->opaque = opaque;
    l->cfg = *cfg;
    QTAILQ_INIT(&l->fifo);
    QTAILQ_INIT(&l->flight);
    l->stragglers = g_sequence_new(NULL);
    netem_impair_init(&l->impair, cfg->seed);
    return l;
}

void netem_link_free(NetemLink *l)
{
    GSequenceIter *i;
    NetemPacket *p;

    if (!l) {
        return;
    }
    while ((p = QTAILQ_FIRST(&l->fifo))) {
        QTAILQ_REMOVE(&l->fifo, p, next);
        l->ops->free(l->opaque, p);
    }
    while ((p = QTAILQ_FIRST(&l->flight))) {
        QTAILQ_REMOVE(&l->flight, p, next);
        l->ops->free(l->opaque, p);
    }
    for (i = g_sequence_get_begin_iter(l->stragglers);
         !g_sequence_iter_is_end(i); i = g_sequence_iter_next(i)) {
        l->ops->free(l->opaque, g_sequence_get(i));
    }
    g_sequence_free(l->stragglers);
    netem_impair_destroy(&l->impair);
    g_free(l);
}

const NetemConfig *netem_link_config(const NetemLink *l)
{
    return &l->cfg;
}

void netem_link_set_drop_list(NetemLink *l, const uint64_t *index, size_t n)
{
    netem_impair_set_list(&l->impair, index, n);
}

uint64_t netem_link_queue(const NetemLink *l)
{
    return l->queue;
}

/* The queue was as long as it is since the last call. */
static void link_integrate(NetemLink *l, uint64_t at_ns)
{
    if (at_ns > l->integral_ns) {
        l->stats.queue_integral += (double)l->queue *
                                   (at_ns - l->integral_ns) / 1000000000;
        l->integral_ns = at_ns;
    }
}

static uint64_t link_wire_len(const NetemLink *l, const NetemPacket *p)
{
    return p->len + l->cfg.overhead;
}

/* Most packets are as long as the one before: no need to divide again. */
static uint64_t link_serialise_ns(NetemLink *l, uint64_t bytes)
{
    if (!l->cfg.rate_bps) {
        return 0;
    }
    if (bytes != l->serialised_bytes) {
        l->serialised_bytes = bytes;
        l->serialised_ns = bytes * 8 * 1000000000.0 / l->cfg.rate_bps;
    }
    return l->serialised_ns;
}

/* Step 3; returns false when the packet has to be dropped instead. */
static bool link_ecn(NetemLink *l, NetemPacket *p, uint64_t queue)
{
    if (!netem_impair_wants_mark(&l->impair, &l->cfg, queue)) {
        return true;
    }
    if (l->ops->mark(l->opaque, p)) {
        l->stats.marks++;
        return true;
    }
    if (l->cfg.ecn_drop_not_ect) {
        l->stats.drop_not_ect++;
        return false;
    }
    return true;
}

static void link_fly(NetemLink *l, NetemPacket *p, bool is_held)
{
    const NetemPacket *last = QTAILQ_LAST(&l->flight);

    p->order = l->departures++;
    l->flight_bytes += p->len;
    if (is_held || (last && last->deliver_ns > p->deliver_ns)) {
        l->n_stragglers++;
        g_sequence_insert_sorted(l->stragglers, p, flight_compare, NULL);
    } else {
        QTAILQ_INSERT_TAIL(&l->flight, p, next);
    }
}

/* The next one to arrive, or NULL */
static NetemPacket *link_next_flying(const NetemLink *l)
{
    NetemPacket *p = QTAILQ_FIRST(&l->flight);
    NetemPacket *straggler;

    if (!l->n_stragglers) {
        return p;
    }
    straggler = g_sequence_get(g_sequence_get_begin_iter(l->stragglers));
    return p && flight_compare(p, straggler, NULL) < 0 ? p : straggler;
}

static void link_land(NetemLink *l, NetemPacket *p)
{
    if (p == QTAILQ_FIRST(&l->flight)) {
        QTAILQ_REMOVE(&l->flight, p, next);
    } else {
        g_sequence_remove(g_sequence_get_begin_iter(l->stragglers));
        l->n_stragglers--;
    }
    l->flight_bytes -= p->len;
}

/* Steps 7 and 8 for a packet whose last bit left at @at_ns */
static void link_propagate(NetemLink *l, NetemPacket *p, uint64_t at_ns)
{
    NetemPacket *dup = NULL;

    if (netem_impair_hit(&l->impair, NETEM_RNG_DUPLICATE, l->cfg.duplicate)) {
        dup = l->ops->copy(l->opaque, p);
        l->stats.duplicates++;
    }
    while (p) {
        uint64_t due = at_ns + l->cfg.delay_ns +
                       netem_impair_jitter(&l->impair, &l->cfg);
        bool is_held;

        if (!l->cfg.jitter_reorders) {
            due = MAX(due, l->last_ns);
            l->last_ns = due;
        }
        /* The hold comes on top and lets the packets behind it pass. */
        is_held = netem_impair_hit(&l->impair, NETEM_RNG_REORDER,
                                   l->cfg.reorder);
        if (is_held) {
            due += l->cfg.reorder_ns;
            l->stats.reorders++;
        }
        p->deliver_ns = due;
        link_fly(l, p, is_held);
        p = dup;
        dup = NULL;
    }
}

/* A long queue is in no cache: the packet after the next one is on its way. */
static void fetch_second(const NetemLink *l)
{
    const NetemPacket *first = QTAILQ_FIRST(&l->fifo);

    if (first) {
        __builtin_prefetch(QTAILQ_NEXT(first, next));
    }
}

/* Serialises what could start up to and including @now_ns. */
static void link_run(NetemLink *l, uint64_t now_ns)
{
    NetemPacket *p;

    while ((p = QTAILQ_FIRST(&l->fifo))) {
        uint64_t start = MAX(l->free_ns, p->arrival_ns);
        uint64_t bytes = link_wire_len(l, p);
        uint64_t took;

        if (start > now_ns) {
            return;
        }
        link_integrate(l, start);
        QTAILQ_REMOVE(&l->fifo, p, next);
        l->queue -= p->len;
        fetch_second(l);
        if (l->cfg.ecn_at_dequeue && !link_ecn(l, p, l->queue)) {
            l->ops->free(l->opaque, p);
            continue;
        }
        if (l->cfg.link_id && l->ops->stamp &&
            l->ops->stamp(l->opaque, p, start, l->tx_bytes, l->queue)) {
            l->stats.stamps++;
        }
        took = link_serialise_ns(l, bytes);
        l->free_ns = start + took;
        l->tx_bytes += bytes;
        l->stats.busy_ns += took;
        l->stats.departures++;
        l->stats.departed_bytes += bytes;
        link_propagate(l, p, l->free_ns);
    }
}

/* Step 2 */
static bool link_admit(const NetemLink *l, const NetemPacket *p)
{
    uint64_t limit = l->cfg.limit ? l->cfg.limit : NETEM_HARD_LIMIT;

    /* A long delay is a buffer as well, and nobody's to fill at will. */
    return l->queue + p->len <= limit &&
           l->queue + l->flight_bytes + p->len <= NETEM_HARD_LIMIT;
}

static bool link_enter(NetemLink *l, NetemPacket *p)
{
    NetemDrop drop = netem_impair_drop(&l->impair, &l->cfg);

    switch (drop) {
    case NETEM_DROP_NONE:
        break;
    case NETEM_DROP_LOSS:
        l->stats.drop_loss++;
        return false;
    case NETEM_DROP_BURST:
        l->stats.drop_burst++;
        return false;
    case NETEM_DROP_LISTED:
        l->stats.drop_listed++;
        return false;
    case NETEM_DROP_CORRUPT:
        l->stats.drop_corrupt++;
        return false;
    }
    if (!link_admit(l, p)) {
        l->stats.drop_queue++;
        return false;
    }
    return l->cfg.ecn_at_dequeue || link_ecn(l, p, l->queue);
}

void netem_link_put(NetemLink *l, NetemPacket *p, uint64_t now_ns)
{
    link_run(l, now_ns);
    link_integrate(l, now_ns);
    l->stats.arrivals++;
    l->stats.arrived_bytes += p->len;
    if (!link_enter(l, p)) {
        l->ops->free(l->opaque, p);
        return;
    }
    p->arrival_ns = now_ns;
    QTAILQ_INSERT_TAIL(&l->fifo, p, next);
    l->queue += p->len;
    link_run(l, now_ns);
    /* What is being sent does not wait any more. */
    l->stats.queue_max = MAX(l->stats.queue_max, l->queue);
}

NetemPacket *netem_link_take(NetemLink *l, uint64_t now_ns)
{
    NetemPacket *p;

    link_run(l, now_ns);
    p = link_next_flying(l);
    if (!p || p->deliver_ns > now_ns) {
        return NULL;
    }
    link_land(l, p);
    l->stats.delivered++;
    return p;
}

unsigned netem_link_ahead(const NetemLink *l, NetemPacket **v, unsigned max)
{
    NetemPacket *p = QTAILQ_FIRST(&l->flight);
    unsigned n = 0;

    /* The last one is not looked at. */
    while (p && n < max) {
        v[n++] = p;
        p = n < max ? QTAILQ_NEXT(p, next) : NULL;
    }
    return n;
}

void netem_link_fetch(const NetemLink *l)
{
    const char *line = (const char *)l;

    for (; line < (const char *)(l + 1); line += 64) {
        __builtin_prefetch(line);
    }
}

uint64_t netem_link_deadline(const NetemLink *l)
{
    const NetemPacket *p = QTAILQ_FIRST(&l->fifo);
    const NetemPacket *flying = link_next_flying(l);
    uint64_t at = NETEM_NEVER;

    if (p) {
        at = MAX(l->free_ns, p->arrival_ns);
    }
    return flying ? MIN(at, flying->deliver_ns) : at;
}

uint64_t netem_link_next(NetemLink *l)
{
    const NetemPacket *p = QTAILQ_FIRST(&l->fifo);
    const NetemPacket *flying = link_next_flying(l);
    uint64_t at = NETEM_NEVER;

    if (p) {
        at = MAX(l->free_ns, p->arrival_ns) + l->cfg.delay_ns +
             link_serialise_ns(l, link_wire_len(l, p));
        at = l->cfg.jitter_reorders ? at : MAX(at, l->last_ns);
    }
    return flying ? MIN(at, flying->deliver_ns) : at;
}

void netem_link_set_config(NetemLink *l, const NetemConfig *cfg,
                           uint64_t now_ns)
{
    bool reseed = cfg->seed != l->cfg.seed;

    link_run(l, now_ns);
    l->cfg = *cfg;
    l->serialised_bytes = 0;
    if (reseed) {
        netem_impair_reseed(&l->impair, cfg->seed);
    }
}

const NetemStats *netem_link_stats(NetemLink *l, uint64_t now_ns)
{
    link_run(l, now_ns);
    link_integrate(l, now_ns);
    return &l->stats;
}

void netem_link_restart_max(NetemLink *l)
{
    l->stats.queue_max = l->queue;
}
