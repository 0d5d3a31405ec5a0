/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: the event heap.  Four children per node: half the depth of a
 * binary heap, and the children of a node share two cache lines.
 */

#include "qemu/osdep.h"
#include "event.h"

#define ARITY   4

static bool is_before(const SimHeapSlot *a, const SimHeapSlot *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns :
                                      a->tie < b->tie;
}

static void put(SimHeap *h, size_t i, SimHeapSlot slot)
{
    h->v[i] = slot;
    slot.event->place = i + 1;
}

static void sift_up(SimHeap *h, size_t i, SimHeapSlot slot)
{
    while (i) {
        size_t parent = (i - 1) / ARITY;

        if (!is_before(&slot, &h->v[parent])) {
            break;
        }
        put(h, i, h->v[parent]);
        i = parent;
    }
    put(h, i, slot);
}

static void sift_down(SimHeap *h, size_t i, SimHeapSlot slot)
{
    for (;;) {
        size_t first = i * ARITY + 1;
        size_t end = MIN(first + ARITY, h->n);
        size_t best = first, k;

        if (first >= h->n) {
            break;
        }
        for (k = first + 1; k < end; k++) {
            if (is_before(&h->v[k], &h->v[best])) {
                best = k;
            }
        }
        if (!is_before(&h->v[best], &slot)) {
            break;
        }
        put(h, i, h->v[best]);
        i = best;
    }
    put(h, i, slot);
}

/* @slot goes to where @i was. */
static void settle(SimHeap *h, size_t i, SimHeapSlot slot)
{
    if (i && is_before(&slot, &h->v[(i - 1) / ARITY])) {
        sift_up(h, i, slot);
    } else {
        sift_down(h, i, slot);
    }
}

void sim_heap_destroy(SimHeap *h)
{
    g_free(h->v);
    memset(h, 0, sizeof(*h));
}

void sim_heap_set(SimHeap *h, SimEvent *e, uint64_t when_ns, uint64_t tie)
{
    SimHeapSlot slot = { when_ns, tie, e };

    e->when_ns = when_ns;
    e->is_firing = false;
    if (e->place) {
        settle(h, e->place - 1, slot);
        return;
    }
    if (h->n == h->size) {
        h->size = MAX(64, 2 * h->size);
        h->v = g_renew(SimHeapSlot, h->v, h->size);
    }
    sift_up(h, h->n++, slot);
}

void sim_heap_cancel(SimHeap *h, SimEvent *e)
{
    size_t i = e->place;
    SimHeapSlot last;

    if (!i) {
        return;
    }
    e->place = 0;
    last = h->v[--h->n];
    if (last.event != e) {
        settle(h, i - 1, last);
    }
}

/* The next one is among the children of the first one. */
static void prepare_next(const SimHeap *h)
{
    size_t i, end = MIN(ARITY + 1, h->n);

    for (i = 1; i < end; i++) {
        const SimEvent *e = h->v[i].event;

        if (e->prepare) {
            e->prepare(e);
        }
    }
}

SimEvent *sim_heap_due(SimHeap *h, uint64_t until_ns)
{
    SimEvent *e;

    if (!h->n || h->v[0].when_ns > until_ns) {
        return NULL;
    }
    prepare_next(h);
    e = h->v[0].event;
    e->is_firing = true;
    return e;
}

void sim_heap_fired(SimHeap *h, SimEvent *e)
{
    if (e->is_firing) {
        e->is_firing = false;
        sim_heap_cancel(h, e);
    }
}
