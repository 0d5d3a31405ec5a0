/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: binary heap of deadlines, see timerheap.h. */

#include "qemu/osdep.h"
#include "timerheap.h"

void erdma_timerheap_init(ErdmaTimerHeap *h)
{
    memset(h, 0, sizeof(*h));
}

void erdma_timerheap_destroy(ErdmaTimerHeap *h)
{
    uint32_t i;

    for (i = 0; i < h->n; i++) {
        h->v[i].timer->place = 0;
    }
    g_free(h->v);
    memset(h, 0, sizeof(*h));
}

static void place(ErdmaTimerHeap *h, uint32_t i, ErdmaTimerSlot slot)
{
    h->v[i] = slot;
    slot.timer->place = i + 1;
}

static void sift_up(ErdmaTimerHeap *h, uint32_t i, ErdmaTimerSlot slot)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / 2;

        if (h->v[parent].when_ns <= slot.when_ns) {
            break;
        }
        place(h, i, h->v[parent]);
        i = parent;
    }
    place(h, i, slot);
}

static void sift_down(ErdmaTimerHeap *h, uint32_t i, ErdmaTimerSlot slot)
{
    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= h->n) {
            break;
        }
        if (child + 1 < h->n &&
            h->v[child + 1].when_ns < h->v[child].when_ns) {
            child++;
        }
        if (h->v[child].when_ns >= slot.when_ns) {
            break;
        }
        place(h, i, h->v[child]);
        i = child;
    }
    place(h, i, slot);
}

void erdma_timerheap_set(ErdmaTimerHeap *h, ErdmaTimer *t, uint64_t when_ns)
{
    uint64_t old_ns = t->when_ns;
    ErdmaTimerSlot slot = { when_ns, t };

    t->when_ns = when_ns;
    if (!t->place) {
        if (h->n == h->cap) {
            h->cap = h->cap ? 2 * h->cap : 16;
            h->v = g_renew(ErdmaTimerSlot, h->v, h->cap);
        }
        sift_up(h, h->n++, slot);
    } else if (when_ns < old_ns) {
        sift_up(h, t->place - 1, slot);
    } else {
        sift_down(h, t->place - 1, slot);
    }
}

void erdma_timerheap_cancel(ErdmaTimerHeap *h, ErdmaTimer *t)
{
    uint32_t i = t->place - 1;
    ErdmaTimerSlot last;

    if (!t->place) {
        return;
    }
    t->place = 0;
    last = h->v[--h->n];
    if (last.timer == t) {
        return;
    }
    if (last.when_ns < t->when_ns) {
        sift_up(h, i, last);
    } else {
        sift_down(h, i, last);
    }
}
