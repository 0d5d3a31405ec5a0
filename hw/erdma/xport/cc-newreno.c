/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: NewReno (RFC 5681, RFC 9002 section 7), integers only. */

#include "qemu/osdep.h"
#include "cc.h"

static void newreno_init(ErdmaCc *cc)
{
    memset(&cc->u.reno, 0, sizeof(cc->u.reno));
    cc->cwnd = erdma_cc_initial_window(cc);
    cc->ssthresh = ERDMA_CC_NO_SSTHRESH;
}

static void newreno_ack(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcNewReno *s = &cc->u.reno;
    uint64_t growth;

    if (ack->is_in_recovery || !ack->is_limited) {
        return;
    }
    if (cc->cwnd < cc->ssthresh) {
        cc->cwnd += ack->bytes;
        return;
    }
    /* One packet per window, spread over the window's acks */
    growth = ack->bytes * cc->mss + s->remainder;
    s->remainder = growth % cc->cwnd;
    cc->cwnd += growth / cc->cwnd;
}

static void newreno_congestion(ErdmaCc *cc, ErdmaCcEvent event,
                               uint64_t now_ns)
{
    ErdmaCcNewReno *s = &cc->u.reno;
    uint64_t cwnd = cc->cwnd / 2;

    if (event == ERDMA_CC_ECN && cc->cfg->ecn_beta > 0) {
        cwnd = cc->cwnd * cc->cfg->ecn_beta;
    }
    s->prior_cwnd = cc->cwnd;
    s->prior_ssthresh = cc->ssthresh;
    s->remainder = 0;
    cc->ssthresh = MAX(cwnd, 2 * cc->mss);
    cc->cwnd = cc->ssthresh;
}

static void newreno_timeout(ErdmaCc *cc, uint64_t pipe, uint64_t now_ns)
{
    ErdmaCcNewReno *s = &cc->u.reno;

    /* Of several in a row the first one knows what worked before. */
    if (cc->cwnd > cc->mss) {
        s->prior_cwnd = cc->cwnd;
        s->prior_ssthresh = cc->ssthresh;
        cc->ssthresh = MAX(pipe / 2, 2 * cc->mss);
    }
    s->remainder = 0;
    cc->cwnd = cc->mss;
}

static void newreno_undo(ErdmaCc *cc)
{
    ErdmaCcNewReno *s = &cc->u.reno;

    if (cc->cwnd < s->prior_cwnd) {
        cc->cwnd = s->prior_cwnd;
        cc->ssthresh = s->prior_ssthresh;
    }
}

const ErdmaCcOps erdma_cc_newreno = {
    .name = "newreno",
    .init = newreno_init,
    .ack = newreno_ack,
    .congestion = newreno_congestion,
    .timeout = newreno_timeout,
    .undo = newreno_undo,
    .rate = erdma_cc_window_rate,
};
