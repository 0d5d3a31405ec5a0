/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: the HPCC family.
 *
 * All three keep a reference window Wc that changes once per round trip, and
 * move towards a target utilisation: W = Wc * target / U + W_AI.  They differ
 * in where U comes from:
 *
 *   HPCC_INT   the stacks that the links stamp; target eta (below 1)
 *   HPCC_RTT   RTT / T, which equals 1 + queue / BDP; target 1 + delta
 *   HPCC_ECN   the marked share, smoothed as DCTCP does; additive otherwise
 *
 * What the product does in the latter two is not public: they are this
 * model's own, see docs/congestion-control.
 */

#include "qemu/osdep.h"
#include "cc.h"

#define U_MIN               0.001
#define ECN_GAIN            (1.0 / 16)
/*
 * How long a smallest RTT is believed before it is looked for again; the
 * first time is soon after the start, as a flow that joins others has only
 * seen their queue.
 */
#define REPROBE_NS          (10ULL * 1000 * 1000 * 1000)
#define FIRST_REPROBE       16      /* rounds */

/* Wraps of the compact stack's fields */
#define COMPACT_TIME_MASK   0xffffffULL
#define COMPACT_TX_MASK     0x7ffffffULL

static void set_window(ErdmaCc *cc, double w)
{
    const ErdmaCcHpcc *h = cc->u.hpcc;

    /*
     * Less than a packet is fine, the pacer spreads it; the floor is what
     * keeps a flow from stopping for good.
     */
    w = MAX(w, cc->mss / 16.0);
    w = MIN(w, MAX(h->w_max, (double)cc->mss));
    cc->cwnd = w;
}

/* T has become known, or changed. */
static void set_base_rtt(ErdmaCc *cc, uint64_t t_ns)
{
    const ErdmaCcConfig *cfg = cc->cfg;
    ErdmaCcHpcc *h = cc->u.hpcc;
    bool is_first = !h->t_ns;

    h->t_ns = t_ns;
    h->w_max = cfg->line_rate * (double)t_ns / 1e9;
    h->w_ai = cfg->w_ai;
    if (!cfg->w_ai) {
        h->w_ai = h->w_max * (1 - cfg->eta) / MAX(cfg->n_flows, 1);
    }
    if (is_first) {
        /* Start at line rate. */
        set_window(cc, h->w_max);
        h->wc = cc->cwnd;
    }
}

static void hpcc_init(ErdmaCc *cc)
{
    ErdmaCcHpcc *h = g_new0(ErdmaCcHpcc, 1);

    cc->u.hpcc = h;
    cc->cwnd = erdma_cc_initial_window(cc);
    cc->ssthresh = ERDMA_CC_NO_SSTHRESH;
    h->wc = cc->cwnd;
    h->u = 1;
    h->alpha = 1;
    if (cc->cfg->base_rtt_ns) {
        set_base_rtt(cc, cc->cfg->base_rtt_ns);
    }
}

static void hpcc_destroy(ErdmaCc *cc)
{
    g_free(cc->u.hpcc);
}

static uint64_t hpcc_rate(const ErdmaCc *cc, uint64_t srtt_ns)
{
    const ErdmaCcHpcc *h = cc->u.hpcc;

    return h->t_ns ? MAX(cc->cwnd * 1e9 / h->t_ns, 1.0) : 0;
}

/* An isolated loss is no signal here: the signal is U. */
static void hpcc_congestion(ErdmaCc *cc, ErdmaCcEvent event, uint64_t now_ns)
{
}

static void hpcc_timeout(ErdmaCc *cc, uint64_t pipe, uint64_t now_ns)
{
    ErdmaCcHpcc *h = cc->u.hpcc;

    set_window(cc, cc->mss);
    h->wc = cc->cwnd;
    h->stage = 0;
    h->has_history = false;
    h->round_min = 0;
}

static void hpcc_undo(ErdmaCc *cc)
{
}

static void hpcc_info(const ErdmaCc *cc, ErdmaCcInfo *info)
{
    const ErdmaCcHpcc *h = cc->u.hpcc;

    *info = (ErdmaCcInfo) {
        .is_hpcc = true,
        .reference = h->wc,
        .u = h->u,
        .alpha = h->alpha,
        .stage = h->stage,
        .base_rtt_ns = h->t_ns,
        .w_ai = h->w_ai,
    };
}

/* A full round trip of feedback since the last change of the reference? */
static bool round_is_over(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcHpcc *h = cc->u.hpcc;

    if (!h->has_round) {
        h->has_round = true;
        h->round_end = ack->next_pn;
        return false;
    }
    if (!ack->has_largest || ack->largest_pn < h->round_end) {
        return false;
    }
    h->round_end = ack->next_pn;
    cc->n_rounds++;
    return true;
}

/*
 * The control law, from the reference window and not from W, so that many
 * acks of one round do not compound.  Returns the stage that a commit of the
 * result would lead to.
 */
static unsigned control(ErdmaCc *cc, double u, double target,
                        unsigned max_stage)
{
    const ErdmaCcHpcc *h = cc->u.hpcc;

    if (u >= target || h->stage >= max_stage) {
        set_window(cc, h->wc * target / MAX(u, U_MIN) + h->w_ai);
        return 0;
    }
    set_window(cc, h->wc + h->w_ai);
    return h->stage + 1;
}

/* HPCC_INT */

static bool is_same_path(const ErdmaCcStack *a, const ErdmaCcStack *b)
{
    unsigned i;

    if (a->is_compact != b->is_compact || a->n_hops != b->n_hops ||
        a->path_id != b->path_id) {
        return false;
    }
    for (i = 0; i < a->n_hops; i++) {
        if (a->hop[i].link_id != b->hop[i].link_id ||
            a->hop[i].rate != b->hop[i].rate) {
            return false;
        }
    }
    return true;
}

/* After half a wrap of a compact field nobody can tell how often it did. */
static bool is_history_stale(const ErdmaCcHpcc *h, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - h->history_ns;
    unsigned i;

    if (!h->history.is_compact) {
        return false;
    }
    if (age_ns > COMPACT_TIME_MASK / 2) {
        return true;
    }
    for (i = 0; i < h->history.n_hops; i++) {
        if ((double)h->history.hop[i].rate * age_ns / 1e9 >
            COMPACT_TX_MASK / 2) {
            return true;
        }
    }
    return false;
}

/* Utilisation of one hop since the last stack; false: not newer */
static bool hop_utilisation(const ErdmaCcHpcc *h, const ErdmaCcHop *now,
                            const ErdmaCcHop *old, double *u, double *tau_ns)
{
    uint64_t dt = now->time_ns - old->time_ns;
    uint64_t dtx = now->tx_bytes - old->tx_bytes;
    double rate;

    if (h->history.is_compact) {
        dt &= COMPACT_TIME_MASK;
        dtx &= COMPACT_TX_MASK;
        if (dt > COMPACT_TIME_MASK / 2) {
            return false;
        }
    } else if ((int64_t)dt < 0 || (int64_t)dtx < 0) {
        return false;
    }
    if (!dt || !now->rate) {
        return false;
    }
    rate = dtx * 1e9 / dt;
    /* The smaller of two queue samples: one packet's noise is no queue. */
    *u = MIN(now->queue, old->queue) /
         ((double)now->rate * h->t_ns / 1e9) + rate / now->rate;
    *tau_ns = dt;
    return true;
}

/* The busiest hop; false: the stack says nothing new */
static bool measure(ErdmaCcHpcc *h, const ErdmaCcStack *stack)
{
    double max_u = 0, tau_ns = 0;
    bool is_new = false;
    unsigned i;

    for (i = 0; i < stack->n_hops; i++) {
        double u, dt_ns;

        if (hop_utilisation(h, &stack->hop[i], &h->history.hop[i], &u,
                            &dt_ns) && (!is_new || u > max_u)) {
            is_new = true;
            max_u = u;
            tau_ns = dt_ns;
        }
    }
    if (is_new) {
        double share = MIN(tau_ns, (double)h->t_ns) / h->t_ns;

        h->u = (1 - share) * h->u + share * MIN(max_u, ERDMA_CC_U_MAX);
    }
    return is_new;
}

static void hpcc_int_ack(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    const ErdmaCcConfig *cfg = cc->cfg;
    ErdmaCcHpcc *h = cc->u.hpcc;
    const ErdmaCcStack *stack = ack->stack;
    unsigned stage;

    if (!cfg->base_rtt_ns && ack->min_rtt_ns &&
        ack->min_rtt_ns != h->t_ns) {
        set_base_rtt(cc, ack->min_rtt_ns);
    }
    if (!h->t_ns) {
        return;
    }
    if (!stack) {
        /* No link on the way stamps: what is left is additive increase. */
        if (!h->has_history && round_is_over(cc, ack)) {
            set_window(cc, h->wc + h->w_ai);
            h->wc = cc->cwnd;
        }
        return;
    }
    if (!h->has_history || is_history_stale(h, ack->now_ns) ||
        !is_same_path(&h->history, stack)) {
        h->has_history = true;
        h->history = *stack;
        h->history_ns = ack->now_ns;
        if (!h->has_round) {
            round_is_over(cc, ack);
        }
        return;
    }
    if (!measure(h, stack)) {
        return;
    }
    stage = control(cc, h->u, cfg->eta, cfg->max_stage);
    if (round_is_over(cc, ack)) {
        h->wc = cc->cwnd;
        h->stage = stage;
    }
    h->history = *stack;
    h->history_ns = ack->now_ns;
}

/* A loss is no signal, unless nobody gives the real one. */
static void hpcc_int_congestion(ErdmaCc *cc, ErdmaCcEvent event,
                                uint64_t now_ns)
{
    ErdmaCcHpcc *h = cc->u.hpcc;

    if (event == ERDMA_CC_LOSS && !h->has_history) {
        set_window(cc, cc->cwnd / 2.0);
        h->wc = cc->cwnd;
    }
}

/* HPCC_RTT */

/*
 * The working T is the smallest RTT of late, but never less than what is
 * configured.  As the target is a standing queue, the true minimum has to be
 * looked for now and then: one round with a window of one packet.
 */
static void watch_base_rtt(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcHpcc *h = cc->u.hpcc;
    uint64_t t_ns = MAX(ack->min_rtt_ns, cc->cfg->base_rtt_ns);

    if (t_ns && t_ns != h->t_ns) {
        set_base_rtt(cc, t_ns);
    }
    if (!h->reprobe_ns) {
        h->reprobe_ns = ack->now_ns;
    }
}

/* At the end of a round: is it time for the small window? */
static bool begin_reprobe(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcHpcc *h = cc->u.hpcc;

    if (h->n_rounds < FIRST_REPROBE) {
        if (++h->n_rounds < FIRST_REPROBE) {
            return false;
        }
    } else if (ack->now_ns - h->reprobe_ns < REPROBE_NS) {
        return false;
    }
    /* One round until what is in flight has drained, one to measure */
    h->n_reprobes = 2;
    h->reprobe_ns = ack->now_ns;
    cc->cwnd = cc->mss;
    return true;
}

static void hpcc_rtt_ack(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcHpcc *h = cc->u.hpcc;
    double target = 1 + cc->cfg->delta;
    bool is_over;

    watch_base_rtt(cc, ack);
    if (!h->t_ns) {
        return;
    }
    is_over = round_is_over(cc, ack);
    if (h->n_reprobes) {
        if (is_over && --h->n_reprobes == 0) {
            h->round_min = 0;
            set_window(cc, h->wc);
        }
        return;
    }
    if (is_over && begin_reprobe(cc, ack)) {
        return;
    }
    if (ack->rtt_ns) {
        double u = (double)ack->rtt_ns / h->t_ns;

        /*
         * The round's smallest: noise only ever adds to an RTT, and shrinking
         * the window does not take it away.
         */
        h->round_min = h->round_min ? MIN(h->round_min, u) : u;
    }
    if (!h->round_min) {
        return;
    }
    if (is_over) {
        h->u = MIN(h->round_min, ERDMA_CC_U_MAX);
        h->stage = control(cc, h->u, target, cc->cfg->max_stage);
        h->wc = cc->cwnd;
        h->round_min = 0;
    } else if (h->round_min > h->u && h->round_min > target) {
        uint64_t cwnd = cc->cwnd;

        control(cc, h->round_min, target, 0);
        cc->cwnd = MIN(cc->cwnd, cwnd);
    }
}

/* HPCC_ECN */

static void ecn_round(ErdmaCc *cc)
{
    const ErdmaCcConfig *cfg = cc->cfg;
    ErdmaCcHpcc *h = cc->u.hpcc;
    double marked = 0;

    if (h->round_acked) {
        marked = (double)h->round_marked / h->round_acked;
        marked = MIN(marked, 1.0);
    }
    h->alpha = (1 - ECN_GAIN) * h->alpha + ECN_GAIN * marked;
    if (marked > 0) {
        h->wc = h->wc * (1 - h->alpha / 2) + h->w_ai;
        h->stage = 0;
    } else if (h->stage < cfg->max_stage_ecn || !cfg->has_ecn_probe) {
        h->wc += h->w_ai;
        h->stage++;
    } else {
        h->wc = h->wc / cfg->eta + h->w_ai;
    }
    set_window(cc, h->wc);
    h->wc = MIN(h->wc, h->w_max);
    h->wc = MAX(h->wc, cc->mss / 16.0);
    h->round_acked = h->round_marked = 0;
}

static void hpcc_ecn_ack(ErdmaCc *cc, const ErdmaCcAck *ack)
{
    ErdmaCcHpcc *h = cc->u.hpcc;

    if (!cc->cfg->base_rtt_ns && ack->min_rtt_ns &&
        ack->min_rtt_ns != h->t_ns) {
        set_base_rtt(cc, ack->min_rtt_ns);
    }
    h->round_acked += ack->bytes;
    h->round_marked += ack->ce_bytes;
    if (h->t_ns && round_is_over(cc, ack)) {
        ecn_round(cc);
    }
}

/* Where marks fail, a full queue drops: a loss counts as a mark. */
static void hpcc_ecn_congestion(ErdmaCc *cc, ErdmaCcEvent event,
                                uint64_t now_ns)
{
    if (event == ERDMA_CC_LOSS) {
        cc->u.hpcc->round_marked += cc->mss;
    }
}

const ErdmaCcOps erdma_cc_hpcc_int = {
    .name = "hpcc_int",
    .needs_int = true,
    .is_strict = true,
    .init = hpcc_init,
    .destroy = hpcc_destroy,
    .ack = hpcc_int_ack,
    .congestion = hpcc_int_congestion,
    .timeout = hpcc_timeout,
    .undo = hpcc_undo,
    .rate = hpcc_rate,
    .info = hpcc_info,
};

const ErdmaCcOps erdma_cc_hpcc_rtt = {
    .name = "hpcc_rtt",
    .is_strict = true,
    .init = hpcc_init,
    .destroy = hpcc_destroy,
    .ack = hpcc_rtt_ack,
    .congestion = hpcc_congestion,
    .timeout = hpcc_timeout,
    .undo = hpcc_undo,
    .rate = hpcc_rate,
    .info = hpcc_info,
};

const ErdmaCcOps erdma_cc_hpcc_ecn = {
    .name = "hpcc_ecn",
    .has_alpha = true,
    .is_strict = true,
    .init = hpcc_init,
    .destroy = hpcc_destroy,
    .ack = hpcc_ecn_ack,
    .congestion = hpcc_ecn_congestion,
    .timeout = hpcc_timeout,
    .undo = hpcc_undo,
    .rate = hpcc_rate,
    .info = hpcc_info,
};
