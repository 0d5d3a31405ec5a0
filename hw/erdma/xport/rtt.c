/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: round-trip time estimator, see rtt.h. */

#include "qemu/osdep.h"
#include "rtt.h"

#define MIN_BUCKET_NS   (10ULL * 1000 * 1000 * 1000)
/* Clock granularity of RFC 6298 */
#define GRANULARITY_NS  1000

void erdma_rtt_init(ErdmaRtt *r)
{
    memset(r, 0, sizeof(*r));
    r->min_ns[0] = r->min_ns[1] = UINT64_MAX;
}

static void min_sample(ErdmaRtt *r, uint64_t now_ns, uint64_t rtt_ns)
{
    if (!r->has_sample) {
        r->bucket_start_ns = now_ns;
    } else if (now_ns - r->bucket_start_ns >= MIN_BUCKET_NS) {
        r->min_ns[1] = r->min_ns[0];
        r->min_ns[0] = UINT64_MAX;
        r->bucket_start_ns = now_ns;
    }
    r->min_ns[0] = MIN(r->min_ns[0], rtt_ns);
}

uint64_t erdma_rtt_min(const ErdmaRtt *r)
{
    return r->has_sample ? MIN(r->min_ns[0], r->min_ns[1]) : 0;
}

void erdma_rtt_sample(ErdmaRtt *r, uint64_t now_ns, uint64_t rtt_ns,
                      uint64_t delay_ns)
{
    uint64_t min_ns, err_ns;

    min_sample(r, now_ns, rtt_ns);
    min_ns = MIN(r->min_ns[0], r->min_ns[1]);
    rtt_ns = rtt_ns - min_ns > delay_ns ? rtt_ns - delay_ns : min_ns;

    r->latest_ns = rtt_ns;
    if (!r->has_sample) {
        r->has_sample = true;
        r->srtt_ns = rtt_ns;
        r->rttvar_ns = rtt_ns / 2;
        return;
    }
    err_ns = r->srtt_ns > rtt_ns ? r->srtt_ns - rtt_ns : rtt_ns - r->srtt_ns;
    r->rttvar_ns = (3 * r->rttvar_ns + err_ns) / 4;
    r->srtt_ns = (7 * r->srtt_ns + rtt_ns) / 8;
}

uint64_t erdma_rtt_pto(const ErdmaRtt *r, uint64_t initial_ns,
                       uint64_t ack_delay_ns)
{
    if (!r->has_sample) {
        return initial_ns;
    }
    /*
     * Two HCAs of one machine may see no time pass: a probe that is due at
     * once would answer each ack, for ever.
     */
    return MAX(2 * r->srtt_ns, GRANULARITY_NS) + ack_delay_ns;
}

uint64_t erdma_rtt_rto(const ErdmaRtt *r, uint64_t initial_ns,
                       uint64_t min_ns, uint64_t ack_delay_ns)
{
    uint64_t rto_ns;

    if (!r->has_sample) {
        return MAX(2 * initial_ns, min_ns);
    }
    rto_ns = r->srtt_ns + MAX(4 * r->rttvar_ns, GRANULARITY_NS);
    rto_ns = MAX(rto_ns, 3 * r->srtt_ns) + ack_delay_ns;
    return MAX(rto_ns, min_ns);
}

uint64_t erdma_rtt_backoff(uint64_t rto_ns, unsigned shift, uint64_t max_ns)
{
    if (shift >= 63 || rto_ns > max_ns >> shift) {
        return max_ns;
    }
    return rto_ns << shift;
}
