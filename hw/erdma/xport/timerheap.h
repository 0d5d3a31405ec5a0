/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: deadlines of many connections, a binary heap.  Only those
 * that wait for something are in it, so idle connections cost nothing.
 */

#ifndef HW_ERDMA_XPORT_TIMERHEAP_H
#define HW_ERDMA_XPORT_TIMERHEAP_H

/* Embedded in whatever waits. */
typedef struct ErdmaTimer {
    uint64_t when_ns;           /* valid while in the heap */
    uint32_t place;             /* index + 1, 0: not in the heap */
} ErdmaTimer;

/* The deadline is here too: sorting need not fetch the timers. */
typedef struct ErdmaTimerSlot {
    uint64_t when_ns;
    ErdmaTimer *timer;
} ErdmaTimerSlot;

typedef struct ErdmaTimerHeap {
    ErdmaTimerSlot *v;
    uint32_t n;
    uint32_t cap;
} ErdmaTimerHeap;

void erdma_timerheap_init(ErdmaTimerHeap *h);
/* Timers that are still in the heap are forgotten. */
void erdma_timerheap_destroy(ErdmaTimerHeap *h);

/* Adds @t or moves it. */
void erdma_timerheap_set(ErdmaTimerHeap *h, ErdmaTimer *t, uint64_t when_ns);
/* Fine for a timer that is not in the heap. */
void erdma_timerheap_cancel(ErdmaTimerHeap *h, ErdmaTimer *t);

/* The earliest, or NULL */
static inline ErdmaTimer *erdma_timerheap_first(const ErdmaTimerHeap *h)
{
    return h->n ? h->v[0].timer : NULL;
}

/* Its deadline; UINT64_MAX: there is none */
static inline uint64_t erdma_timerheap_first_ns(const ErdmaTimerHeap *h)
{
    return h->n ? h->v[0].when_ns : UINT64_MAX;
}

#endif /* HW_ERDMA_XPORT_TIMERHEAP_H */
