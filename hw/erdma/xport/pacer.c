/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: pacer, see pacer.h. */

#include "qemu/osdep.h"
#include "pacer.h"

/* Rounding of the deadline to nanoseconds must not cost another wake-up. */
#define DEBT_EPSILON    0.5

void erdma_pacer_init(ErdmaPacer *p, uint64_t now_ns)
{
    p->last_ns = now_ns;
    p->debt = 0;
}

bool erdma_pacer_is_open(ErdmaPacer *p, uint64_t now_ns, uint64_t rate,
                         uint64_t burst)
{
    if (now_ns > p->last_ns) {
        double paid = (double)rate * (now_ns - p->last_ns) / 1e9;

        p->debt -= paid;
        if (p->debt < -(double)burst) {
            p->debt = -(double)burst;
        }
        p->last_ns = now_ns;
    }
    return p->debt < DEBT_EPSILON;
}

void erdma_pacer_sent(ErdmaPacer *p, uint32_t bytes)
{
    p->debt += bytes;
}

uint64_t erdma_pacer_next(const ErdmaPacer *p, uint64_t rate,
                          uint64_t slack_ns)
{
    double wait_ns;

    if (p->debt < DEBT_EPSILON) {
        return p->last_ns;
    }
    wait_ns = p->debt * 1e9 / rate;
    /* A rate near nothing must not overflow: an hour is as good as never. */
    wait_ns = MIN(wait_ns, 3.6e12);
    return p->last_ns + (uint64_t)wait_ns + 1 + slack_ns;
}
