/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: round-trip time estimator and the timeouts derived from it
 * (RFC 6298, RFC 9002 section 5).  All times are nanoseconds.
 */

#ifndef HW_ERDMA_XPORT_RTT_H
#define HW_ERDMA_XPORT_RTT_H

typedef struct ErdmaRtt {
    bool has_sample;
    uint64_t latest_ns;         /* without the peer's ack delay */
    uint64_t srtt_ns;
    uint64_t rttvar_ns;
    /* Minimum over the last 10 s at least: two buckets of 10 s */
    uint64_t min_ns[2];
    uint64_t bucket_start_ns;
} ErdmaRtt;

void erdma_rtt_init(ErdmaRtt *r);

/*
 * @rtt_ns: from sending to the ack; @delay_ns: how long the peer says that it
 * held the ack.  The delay is believed only down to the minimum seen, so that
 * a peer cannot talk the estimate down to nothing.
 */
void erdma_rtt_sample(ErdmaRtt *r, uint64_t now_ns, uint64_t rtt_ns,
                      uint64_t delay_ns);

/* 0 without a sample */
uint64_t erdma_rtt_min(const ErdmaRtt *r);

/* Time without an ack after which the tail is probed */
uint64_t erdma_rtt_pto(const ErdmaRtt *r, uint64_t initial_ns,
                       uint64_t ack_delay_ns);

/*
 * Time without an ack after which everything is given up, before back-off.
 * Always at least one round trip behind the probe, which would be useless
 * otherwise.
 */
uint64_t erdma_rtt_rto(const ErdmaRtt *r, uint64_t initial_ns,
                       uint64_t min_ns, uint64_t ack_delay_ns);

/* @rto_ns doubled @shift times, at most @max_ns */
uint64_t erdma_rtt_backoff(uint64_t rto_ns, unsigned shift, uint64_t max_ns);

#endif /* HW_ERDMA_XPORT_RTT_H */
