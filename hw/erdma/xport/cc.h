/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: congestion control, one file per algorithm.
 *
 * An algorithm sees what its connection learned and sets a window and, if it
 * likes, a rate.  It knows no connection, no packet and no clock.  Windows
 * are bytes of IP packets, times nanoseconds, rates bytes per second.
 * Doubles are evaluated in a fixed order, so that the same input gives the
 * same window wherever this runs.
 */

#ifndef HW_ERDMA_XPORT_CC_H
#define HW_ERDMA_XPORT_CC_H

#define ERDMA_CC_NO_SSTHRESH    UINT64_MAX
#define ERDMA_CC_HOPS_MAX       8

/* One hop's report, decoded from an INT stack */
typedef struct ErdmaCcHop {
    uint64_t rate;              /* bytes per second */
    uint64_t time_ns;
    uint64_t tx_bytes;
    uint32_t queue;             /* bytes */
    uint16_t link_id;
} ErdmaCcHop;

typedef struct ErdmaCcStack {
    bool is_compact;            /* time and tx_bytes wrap, link_id is 0 */
    unsigned n_hops;
    uint16_t path_id;
    ErdmaCcHop hop[ERDMA_CC_HOPS_MAX];
} ErdmaCcStack;

/* Parameters, one set for all connections of a transport */
typedef struct ErdmaCcConfig {
    double ecn_beta;            /* window's factor on a mark; 0: as on loss */
    bool has_fast_convergence;  /* CUBIC */
    /* HPCC */
    uint64_t line_rate;         /* of the sender's own link */
    uint64_t base_rtt_ns;       /* without queues; 0: smallest seen */
    double eta;                 /* HPCC_INT and HPCC_ECN: target utilisation */
    double delta;               /* HPCC_RTT: target is 1 + delta */
    unsigned max_stage;         /* HPCC_INT and HPCC_RTT */
    unsigned max_stage_ecn;     /* HPCC_ECN */
    bool has_ecn_probe;         /* HPCC_ECN: multiplicative increase */
    uint32_t w_ai;              /* additive increase, bytes; 0: computed */
    uint32_t n_flows;           /* to compute w_ai */
} ErdmaCcConfig;

/* What an ack told */
typedef struct ErdmaCcAck {
    uint64_t now_ns;
    uint64_t bytes;             /* newly acked */
    uint64_t pipe;              /* still in flight */
    bool has_largest;           /* largest_pn is newly acked */
    uint64_t largest_pn;
    uint64_t next_pn;           /* number of the next transmission */
    uint64_t rtt_ns;            /* this ack's sample, 0: none */
    uint64_t srtt_ns;
    uint64_t min_rtt_ns;
    uint32_t ce_packets;        /* newly reported */
    uint32_t ce_bytes;
    bool is_limited;            /* the window limited this round */
    bool is_in_recovery;
    const ErdmaCcStack *stack;  /* or NULL */
} ErdmaCcAck;

typedef enum ErdmaCcEvent {
    ERDMA_CC_LOSS,              /* a new recovery episode */
    ERDMA_CC_ECN,               /* a mark outside of one */
} ErdmaCcEvent;

typedef struct ErdmaCc ErdmaCc;

/* What the HPCC family works with, for introspection; else all 0 */
typedef struct ErdmaCcInfo {
    bool is_hpcc;
    uint64_t reference;         /* window, bytes */
    double u;                   /* measured utilisation */
    double alpha;               /* HPCC_ECN: smoothed share of marks */
    unsigned stage;
    uint64_t base_rtt_ns;       /* T as used now, 0: not known yet */
    double w_ai;                /* additive increase, bytes */
} ErdmaCcInfo;

typedef struct ErdmaCcOps {
    const char *name;
    bool needs_int;             /* wants INT stacks in its packets */
    /*
     * Never more than the window is in flight.  Otherwise half a packet more
     * may be, so that on average it is the window.
     */
    bool is_strict;
    bool has_alpha;             /* alpha steers it, not U */
    void (*init)(ErdmaCc *cc);
    void (*destroy)(ErdmaCc *cc);       /* NULL: nothing to free */
    void (*ack)(ErdmaCc *cc, const ErdmaCcAck *ack);
    void (*congestion)(ErdmaCc *cc, ErdmaCcEvent event, uint64_t now_ns);
    /* @pipe: what was in flight before all of it was given up */
    void (*timeout)(ErdmaCc *cc, uint64_t pipe, uint64_t now_ns);
    /* The latest congestion() or timeout() was a mistake. */
    void (*undo)(ErdmaCc *cc);
    /* Bytes per second; 0: unknown yet, send unpaced */
    uint64_t (*rate)(const ErdmaCc *cc, uint64_t srtt_ns);
    /* Fills @info, which is all 0; NULL: nothing to tell */
    void (*info)(const ErdmaCc *cc, ErdmaCcInfo *info);
} ErdmaCcOps;

typedef struct ErdmaCcNewReno {
    uint64_t remainder;         /* of the latest division by cwnd */
    uint64_t prior_cwnd;
    uint64_t prior_ssthresh;
} ErdmaCcNewReno;

/* What CUBIC's undo restores as a whole.  Windows in bytes, k in seconds */
typedef struct ErdmaCubicState {
    double cwnd;
    double w_max;
    double k;
    double w_est;
    double cwnd_prior;
    uint64_t epoch_ns;          /* start, moved on by idle time */
    uint64_t ssthresh;
    bool has_epoch;
    bool is_k_zero;             /* next epoch starts on the plateau */
} ErdmaCubicState;

typedef struct ErdmaCcCubic {
    ErdmaCubicState s;
    ErdmaCubicState prior;
    bool has_prior;
    uint64_t last_ns;           /* of the last ack */
} ErdmaCcCubic;

/* More than any path has; what a peer says of one may be any number. */
#define ERDMA_CC_U_MAX  1000000000000ULL

typedef struct ErdmaCcHpcc {
    uint64_t t_ns;              /* base round trip T; 0: not known yet */
    double w_max;               /* line rate times T */
    double w_ai;
    double wc;                  /* reference window */
    double u;                   /* up to ERDMA_CC_U_MAX */
    unsigned stage;
    bool has_round;
    uint64_t round_end;         /* acking this number ends the round */
    /* HPCC_RTT */
    double round_min;           /* smallest RTT / T, 0: none */
    uint64_t reprobe_ns;        /* when T was last looked for */
    unsigned n_rounds;          /* up to the first time */
    unsigned n_reprobes;        /* rounds left with a window of a packet */
    /* HPCC_ECN */
    double alpha;
    uint64_t round_acked;
    uint64_t round_marked;
    /* HPCC_INT: the previous stack */
    bool has_history;
    uint64_t history_ns;
    ErdmaCcStack history;
} ErdmaCcHpcc;

struct ErdmaCc {
    const ErdmaCcOps *ops;
    const ErdmaCcConfig *cfg;
    uint32_t mss;               /* full packet; the connection keeps it */
    uint32_t initial_window;    /* bytes, 0: ten full packets */
    uint64_t cwnd;
    uint64_t ssthresh;          /* NO_SSTHRESH: not set */
    uint32_t n_rounds;          /* HPCC: changes of the reference window */
    union {
        ErdmaCcNewReno reno;
        ErdmaCcCubic cubic;
        ErdmaCcHpcc *hpcc;
    } u;
};

extern const ErdmaCcOps erdma_cc_newreno;
extern const ErdmaCcOps erdma_cc_cubic;
extern const ErdmaCcOps erdma_cc_hpcc_rtt;
extern const ErdmaCcOps erdma_cc_hpcc_ecn;
extern const ErdmaCcOps erdma_cc_hpcc_int;
extern const ErdmaCcOps erdma_cc_none;

static inline uint64_t erdma_cc_initial_window(const ErdmaCc *cc)
{
    return cc->initial_window ? cc->initial_window : 10 * cc->mss;
}

/* Rate of a loss-based algorithm: twice as fast while it searches */
static inline uint64_t erdma_cc_window_rate(const ErdmaCc *cc,
                                            uint64_t srtt_ns)
{
    double k = cc->cwnd < cc->ssthresh ? 2.0 : 1.25;

    /* What a migration stream says of window and RTT has no sane quotient. */
    return srtt_ns ? MIN(k * cc->cwnd * 1e9 / srtt_ns, 1e18) : 0;
}

#endif /* HW_ERDMA_XPORT_CC_H */
