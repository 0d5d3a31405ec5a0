/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: congestion control in snapshots, see snapshot.h. */

#include "qemu/osdep.h"
#include "snapshot-int.h"

static void save_cubic_state(const ErdmaCubicState *c, ErdmaCubicStateSnap *s,
                             uint64_t now_ns)
{
    *s = (ErdmaCubicStateSnap) {
        .cwnd = erdma_snap_bits(c->cwnd),
        .w_max = erdma_snap_bits(c->w_max),
        .k = erdma_snap_bits(c->k),
        .w_est = erdma_snap_bits(c->w_est),
        .cwnd_prior = erdma_snap_bits(c->cwnd_prior),
        .epoch_age_ns = erdma_snap_age(c->epoch_ns, now_ns),
        .ssthresh = c->ssthresh,
        .has_epoch = c->has_epoch,
        .is_k_zero = c->is_k_zero,
    };
}

static void save_cubic(const ErdmaCcCubic *c, ErdmaCubicSnap *s,
                       uint64_t now_ns)
{
    save_cubic_state(&c->s, &s->s, now_ns);
    save_cubic_state(&c->prior, &s->prior, now_ns);
    s->has_prior = c->has_prior;
    s->last_age_ns = erdma_snap_age(c->last_ns, now_ns);
}

static void save_hpcc(const ErdmaCcHpcc *h, ErdmaXportSnap *s,
                      uint64_t now_ns)
{
    const ErdmaCcStack *stack = &h->history;
    unsigned i;

    *ERDMA_SNAP_ADD(s, hpccs) = (ErdmaHpccSnap) {
        .t_ns = h->t_ns,
        .w_max = erdma_snap_bits(h->w_max),
        .w_ai = erdma_snap_bits(h->w_ai),
        .wc = erdma_snap_bits(h->wc),
        .u = erdma_snap_bits(h->u),
        .stage = h->stage,
        .has_round = h->has_round,
        .round_end = h->round_end,
        .round_min = erdma_snap_bits(h->round_min),
        .has_reprobe = h->reprobe_ns != 0,
        .reprobe_age_ns = erdma_snap_age(h->reprobe_ns, now_ns),
        .n_rounds = h->n_rounds,
        .n_reprobes = h->n_reprobes,
        .alpha = erdma_snap_bits(h->alpha),
        .round_acked = h->round_acked,
        .round_marked = h->round_marked,
        .has_history = h->has_history,
        .history_age_ns = erdma_snap_age(h->history_ns, now_ns),
        .is_compact = stack->is_compact,
        .path_id = stack->path_id,
        .n_hops = stack->n_hops,
    };
    for (i = 0; i < stack->n_hops; i++) {
        *ERDMA_SNAP_ADD(s, hops) = (ErdmaHopSnap) {
            .rate = stack->hop[i].rate,
            .time_ns = stack->hop[i].time_ns,
            .tx_bytes = stack->hop[i].tx_bytes,
            .queue = stack->hop[i].queue,
            .link_id = stack->hop[i].link_id,
        };
    }
}

void erdma_snap_save_cc(const ErdmaCc *cc, ErdmaConnSnap *k,
                        ErdmaXportSnap *s, uint64_t now_ns)
{
    k->cc = erdma_conn_cc_code(cc);
    k->cwnd = cc->cwnd;
    k->ssthresh = cc->ssthresh;
    k->n_rounds = cc->n_rounds;
    switch (k->cc) {
    case ERDMA_XPORT_CC_NONE:
        break;
    case ERDMA_XPORT_CC_NEWRENO:
        k->reno_remainder = cc->u.reno.remainder;
        k->reno_prior_cwnd = cc->u.reno.prior_cwnd;
        k->reno_prior_ssthresh = cc->u.reno.prior_ssthresh;
        break;
    case ERDMA_XPORT_CC_CUBIC:
        save_cubic(&cc->u.cubic, ERDMA_SNAP_ADD(s, cubics), now_ns);
        break;
    default:
        save_hpcc(cc->u.hpcc, s, now_ns);
        break;
    }
}

#define CUBIC(_field, _max) \
    ERDMA_SNAP_DOUBLE(ErdmaCubicStateSnap, _field, _max)

static const ErdmaSnapRange cubic_ranges[] = {
    CUBIC(cwnd, ERDMA_SNAP_WINDOW_MAX),
    CUBIC(w_max, ERDMA_SNAP_WINDOW_MAX),
    CUBIC(k, ERDMA_SNAP_TIME_MAX),
    CUBIC(w_est, ERDMA_SNAP_WINDOW_MAX),
    CUBIC(cwnd_prior, ERDMA_SNAP_WINDOW_MAX),
};

static bool load_cubic_state(ErdmaCubicState *c, const ErdmaCubicStateSnap *s,
                             const char *what, const ErdmaConnSnap *k,
                             uint64_t now_ns, char **error)
{
    if (!erdma_snap_check(cubic_ranges, G_N_ELEMENTS(cubic_ranges), s, what,
                          k->local_cookie, error)) {
        return false;
    }
    *c = (ErdmaCubicState) {
        .cwnd = erdma_snap_double(s->cwnd),
        .w_max = erdma_snap_double(s->w_max),
        .k = erdma_snap_double(s->k),
        .w_est = erdma_snap_double(s->w_est),
        .cwnd_prior = erdma_snap_double(s->cwnd_prior),
        .epoch_ns = erdma_snap_ago(s->epoch_age_ns, now_ns),
        .ssthresh = s->ssthresh,
        .has_epoch = s->has_epoch,
        .is_k_zero = s->is_k_zero,
    };
    return true;
}

static bool load_cubic(ErdmaCcCubic *c, const ErdmaConnSnap *k,
                       ErdmaXportLoad *l, char **error)
{
    const ErdmaCubicSnap *s;

    if (l->cubic == l->snap->n_cubics) {
        return erdma_snap_fail(error, "transport: n_cubics is %u, too few "
                               "for the connections", l->cubic);
    }
    s = &l->snap->cubics[l->cubic++];
    if (!load_cubic_state(&c->s, &s->s, "CUBIC of connection", k, l->now_ns,
                          error) ||
        !load_cubic_state(&c->prior, &s->prior,
                          "earlier CUBIC of connection", k, l->now_ns,
                          error)) {
        return false;
    }
    /* It divides by this one. */
    if (c->s.cwnd < 1 || (s->has_prior && c->prior.cwnd < 1)) {
        return erdma_snap_fail(error, "CUBIC of connection 0x%x: cwnd is "
                               "less than 1", k->local_cookie);
    }
    c->has_prior = s->has_prior;
    c->last_ns = erdma_snap_ago(s->last_age_ns, l->now_ns);
    return true;
}

#define HPCC(_field, _max) \
    ERDMA_SNAP_DOUBLE(ErdmaHpccSnap, _field, _max)

static const ErdmaSnapRange hpcc_ranges[] = {
    ERDMA_SNAP_RANGE(ErdmaHpccSnap, t_ns, 0, ERDMA_SNAP_TIME_MAX),
    HPCC(w_max, 1ULL << 62),
    HPCC(w_ai, UINT64_MAX),
    HPCC(wc, ERDMA_SNAP_WINDOW_MAX),
    HPCC(u, ERDMA_CC_U_MAX),
    HPCC(round_min, UINT64_MAX),
    HPCC(alpha, 1),
    ERDMA_SNAP_RANGE(ErdmaHpccSnap, round_end, 0, ERDMA_SNAP_PN_MAX),
    ERDMA_SNAP_RANGE(ErdmaHpccSnap, n_reprobes, 0, 2),
    ERDMA_SNAP_RANGE(ErdmaHpccSnap, n_hops, 0, ERDMA_CC_HOPS_MAX),
};

static bool load_history(ErdmaCcStack *stack, const ErdmaHpccSnap *s,
                         ErdmaXportLoad *l, char **error)
{
    unsigned i;

    if (s->n_hops > l->snap->n_hops - l->hop) {
        return erdma_snap_fail(error, "transport: n_hops is %u, too few for "
                               "the connections", l->snap->n_hops);
    }
    stack->is_compact = s->is_compact;
    stack->path_id = s->path_id;
    stack->n_hops = s->n_hops;
    for (i = 0; i < s->n_hops; i++) {
        const ErdmaHopSnap *hop = &l->snap->hops[l->hop++];

        stack->hop[i] = (ErdmaCcHop) {
            .rate = hop->rate,
            .time_ns = hop->time_ns,
            .tx_bytes = hop->tx_bytes,
            .queue = hop->queue,
            .link_id = hop->link_id,
        };
    }
    return true;
}

static bool load_hpcc(ErdmaCcHpcc *h, const ErdmaConnSnap *k,
                      ErdmaXportLoad *l, char **error)
{
    const ErdmaHpccSnap *s;

    if (l->hpcc == l->snap->n_hpccs) {
        return erdma_snap_fail(error, "transport: n_hpccs is %u, too few for "
                               "the connections", l->hpcc);
    }
    s = &l->snap->hpccs[l->hpcc++];
    if (!erdma_snap_check(hpcc_ranges, G_N_ELEMENTS(hpcc_ranges), s,
                          "HPCC of connection", k->local_cookie, error) ||
        !load_history(&h->history, s, l, error)) {
        return false;
    }
    if (s->has_history && !s->t_ns) {
        return erdma_snap_fail(error, "HPCC of connection 0x%x: t_ns is 0, "
                               "must not be with has_history",
                               k->local_cookie);
    }
    h->t_ns = s->t_ns;
    h->w_max = erdma_snap_double(s->w_max);
    h->w_ai = erdma_snap_double(s->w_ai);
    h->wc = erdma_snap_double(s->wc);
    h->u = erdma_snap_double(s->u);
    h->stage = s->stage;
    h->has_round = s->has_round;
    h->round_end = s->round_end;
    h->round_min = erdma_snap_double(s->round_min);
    h->reprobe_ns = s->has_reprobe ?
                    MAX(erdma_snap_ago(s->reprobe_age_ns, l->now_ns), 1) : 0;
    h->n_rounds = s->n_rounds;
    h->n_reprobes = s->n_reprobes;
    h->alpha = erdma_snap_double(s->alpha);
    h->round_acked = s->round_acked;
    h->round_marked = s->round_marked;
    h->has_history = s->has_history;
    h->history_ns = erdma_snap_ago(s->history_age_ns, l->now_ns);
    return true;
}

bool erdma_snap_load_cc(ErdmaCc *cc, const ErdmaConnSnap *k,
                        ErdmaXportLoad *l, char **error)
{
    cc->cwnd = k->cwnd;
    cc->ssthresh = k->ssthresh;
    cc->n_rounds = k->n_rounds;
    switch (k->cc) {
    case ERDMA_XPORT_CC_NONE:
        return true;
    case ERDMA_XPORT_CC_NEWRENO:
        cc->u.reno.remainder = k->reno_remainder;
        cc->u.reno.prior_cwnd = k->reno_prior_cwnd;
        cc->u.reno.prior_ssthresh = k->reno_prior_ssthresh;
        return true;
    case ERDMA_XPORT_CC_CUBIC:
        return load_cubic(&cc->u.cubic, k, l, error);
    default:
        return load_hpcc(cc->u.hpcc, k, l, error);
    }
}
