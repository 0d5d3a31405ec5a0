/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: no congestion control, a fixed window.  For experiments
 * that want to see the link or the loss recovery alone.
 */

#include "qemu/osdep.h"
#include "cc.h"

static void none_init(ErdmaCc *cc)
{
    cc->cwnd = erdma_cc_initial_window(cc);
    cc->ssthresh = ERDMA_CC_NO_SSTHRESH;
}

static void none_ack(ErdmaCc *cc, const ErdmaCcAck *ack)
{
}

static void none_congestion(ErdmaCc *cc, ErdmaCcEvent event, uint64_t now_ns)
{
}

static void none_timeout(ErdmaCc *cc, uint64_t pipe, uint64_t now_ns)
{
}

static void none_undo(ErdmaCc *cc)
{
}

/* Whoever fixes the window wants to see it sent: nothing to pace. */
static uint64_t none_rate(const ErdmaCc *cc, uint64_t srtt_ns)
{
    return 0;
}

const ErdmaCcOps erdma_cc_none = {
    .name = "none",
    .init = none_init,
    .ack = none_ack,
    .congestion = none_congestion,
    .timeout = none_timeout,
    .undo = none_undo,
    .rate = none_rate,
};
