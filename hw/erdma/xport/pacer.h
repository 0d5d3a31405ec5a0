/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: pacer.
 *
 * Counts the bytes that were sent ahead of the rate.  A debt of bytes instead
 * of a time of next transmission means that a changed rate at once applies to
 * what is already scheduled.  Idle time is forgotten but for one burst.
 */

#ifndef HW_ERDMA_XPORT_PACER_H
#define HW_ERDMA_XPORT_PACER_H

typedef struct ErdmaPacer {
    uint64_t last_ns;
    double debt;                /* bytes; negative: burst that is allowed */
} ErdmaPacer;

void erdma_pacer_init(ErdmaPacer *p, uint64_t now_ns);

/*
 * May a packet leave now?  @rate in bytes per second, more than 0;
 * @burst: bytes that may catch up at once.
 */
bool erdma_pacer_is_open(ErdmaPacer *p, uint64_t now_ns, uint64_t rate,
                         uint64_t burst);
void erdma_pacer_sent(ErdmaPacer *p, uint32_t bytes);

/*
 * When the pacer opens if nothing changes, @slack_ns later so that a burst is
 * worth the wake-up.
 */
uint64_t erdma_pacer_next(const ErdmaPacer *p, uint64_t rate,
                          uint64_t slack_ns);

#endif /* HW_ERDMA_XPORT_PACER_H */
