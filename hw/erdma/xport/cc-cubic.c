/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: CUBIC (RFC 9438).
 *
 * Windows are kept as doubles in bytes; the RFC's formulas are in segments,
 * so its constant C appears here multiplied by the segment size.
 */

#include "qemu/osdep.h"
#include "cc.h"

#define CUBIC_C         0.4     /* segments per second^3 */
#define CUBIC_BETA      0.7
#define CUBIC_ALPHA     (3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA))

/* Newton's method: the same bits on every host, which cbrt() may not give. */
static double cube_root(double x)
{
    double y = x > 1 ? x : 1;
    int i;

    if (x <= 0) {
        return 0;
    }
    for (i = 0; i < 200; i++) {
        double next = (2 * y + x / (y * y)) / 3;

        if (next >= y) {
            break;
        }
        y = next;
    }
    return y;
}

static void cubic_init(ErdmaCc *cc)
{
    ErdmaCcCubic *c = &cc->u.cubic;

    memset(c, 0, sizeof(*c));
    cc->cwnd = erdma_cc_initial_window(cc);
    cc->ssthresh = ERDMA_CC_NO_SSTHRESH;
    c->s.cwnd = cc->cwnd;
    /* Slow start that ends without a loss has found no W_max. */
    c->s.is_k_zero = true;
}

static void publish(ErdmaCc *cc)
{
    cc->cwnd = cc->u.cubic.s.cwnd;
    cc->ssthresh = cc->u.cubic.s.ssthresh ? cc->u.cubic.s.ssthresh :
                   ERDMA_CC_NO_SSTHRESH;
}

static void begin_epoch(ErdmaCc *cc, uint64_t now_ns)
{
    ErdmaCubicState *s = &cc->u.cubic.s;

    s->has_epoch = true;
    s->epoch_ns = now_ns;
    s->w_est = s->cwnd;
    if (s->is_k_zero || s->cwnd >= s->w_max) {
        s->k = 0;
        s->w_max = s->cwnd;
    } else {
        s->k = cube_root((s->w_max - s->cwnd) / (CUBIC_C * cc->mss));
    }
    s->is_k_zero = false;
}

static double w_cubic(const ErdmaCc *cc, double t)
{
    const ErdmaCubicState *s = &cc->u.cubic.s;
    double d = t - s->k;

    return CUBIC_C * cc->mss * d * d * d + s->w_max;
}

static void avoid_congestion(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCubicState *s = &cc->u.cubic.s;
    double bytes = ack->bytes;
    double t, target, alpha;

    if (!s->has_epoch) {
        begin_epoch(cc, ack->now_ns);
    }
    t = (ack->now_ns - s->epoch_ns) / 1e9;

    alpha = s->w_est >= s->cwnd_prior ? 1.0 : CUBIC_ALPHA;
    s->w_est += alpha * bytes * cc->mss / s->cwnd;
    if (w_cubic(cc, t) < s->w_est) {
        s->cwnd = MAX(s->cwnd, s->w_est);
        return;
    }
    target = w_cubic(cc, t + ack->srtt_ns / 1e9);
    target = MAX(target, s->cwnd);
    target = MIN(target, 1.5 * s->cwnd);
    s->cwnd += bytes * (target - s->cwnd) / s->cwnd;
}

static void cubic_ack(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcCubic *c = &cc->u.cubic;
    uint64_t last_ns = c->last_ns;

    c->last_ns = ack->now_ns;
    if (ack->is_in_recovery) {
        return;
    }
    if (!ack->is_limited) {
        /* The curve stands still while the application is the limit. */
        if (c->s.has_epoch && last_ns > c->s.epoch_ns) {
            c->s.epoch_ns += ack->now_ns - last_ns;
        }
        return;
    }
    if (cc->cwnd < cc->ssthresh) {
        c->s.cwnd += ack->bytes;
    } else {
        avoid_congestion(cc, ack);
    }
    publish(cc);
}

static void cubic_congestion(ErdmaCc *cc, ErdmaCcEvent event,
                             uint64_t now_ns)
{
    ErdmaCcCubic *c = &cc->u.cubic;
    ErdmaCubicState *s = &c->s;
    double beta = CUBIC_BETA;

    if (event == ERDMA_CC_ECN && cc->cfg->ecn_beta > 0) {
        beta = cc->cfg->ecn_beta;
    }
    c->prior = *s;
    c->has_prior = true;

    s->cwnd_prior = s->cwnd;
    if (cc->cfg->has_fast_convergence && s->cwnd < s->w_max) {
        s->w_max = s->cwnd * (1 + CUBIC_BETA) / 2;
    } else {
        s->w_max = s->cwnd;
    }
    s->cwnd = MAX(beta * s->cwnd, 2.0 * cc->mss);
    s->ssthresh = s->cwnd;
    s->has_epoch = false;
    s->is_k_zero = false;
    publish(cc);
}

static void cubic_timeout(ErdmaCc *cc, uint64_t pipe, uint64_t now_ns)
{
    ErdmaCcCubic *c = &cc->u.cubic;
    ErdmaCubicState *s = &c->s;

    /* Of several in a row the first one knows what worked before. */
    if (s->cwnd > cc->mss) {
        c->prior = *s;
        c->has_prior = true;
        s->cwnd_prior = s->cwnd;
        s->ssthresh = MAX(CUBIC_BETA * pipe, 2.0 * cc->mss);
    }
    s->cwnd = cc->mss;
    s->has_epoch = false;
    s->is_k_zero = true;
    publish(cc);
}

static void cubic_undo(ErdmaCc *cc)
{
    ErdmaCcCubic *c = &cc->u.cubic;

    if (c->has_prior && c->s.cwnd < c->prior.cwnd) {
        c->s = c->prior;
        publish(cc);
    }
    c->has_prior = false;
}

const ErdmaCcOps erdma_cc_cubic = {
    .name = "cubic",
    .init = cubic_init,
    .ack = cubic_ack,
    .congestion = cubic_congestion,
    .timeout = cubic_timeout,
    .undo = cubic_undo,
    .rate = erdma_cc_window_rate,
};
