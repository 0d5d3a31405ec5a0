/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: events in the order of virtual time.
 *
 * An event belongs to the thing it wakes (a host, a link) and is embedded in
 * it, so there are never more of them than things, and none is allocated.
 * Events of the same nanosecond fire in the order of their ties, which the
 * caller draws: chance, or a count.
 */

#ifndef ERDMA_SIM_EVENT_H
#define ERDMA_SIM_EVENT_H

#define SIM_NEVER   UINT64_MAX

typedef struct SimEvent {
    uint64_t when_ns;
    uint32_t place;             /* in the heap, from 1; 0: not queued */
    bool is_firing;             /* queued no more unless set again */
    void (*fire)(struct SimEvent *e, uint64_t now_ns);
    /* It fires soon: fetches what that will touch.  May be NULL. */
    void (*prepare)(const struct SimEvent *e);
} SimEvent;

typedef struct SimHeapSlot {
    uint64_t when_ns;
    uint64_t tie;
    SimEvent *event;
} SimHeapSlot;

typedef struct SimHeap {
    SimHeapSlot *v;
    size_t n;
    size_t size;
} SimHeap;

void sim_heap_destroy(SimHeap *h);
/* Queues @e, or moves it. */
void sim_heap_set(SimHeap *h, SimEvent *e, uint64_t when_ns, uint64_t tie);
void sim_heap_cancel(SimHeap *h, SimEvent *e);
static inline bool sim_event_is_queued(const SimEvent *e)
{
    return e->place && !e->is_firing;
}

/*
 * The first one if it is due; NULL: none is.  It keeps its place in the heap
 * until sim_heap_fired(), as most events are set again when they fire.
 */
SimEvent *sim_heap_due(SimHeap *h, uint64_t until_ns);
void sim_heap_fired(SimHeap *h, SimEvent *e);

#endif /* ERDMA_SIM_EVENT_H */
