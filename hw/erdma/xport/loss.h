/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: loss detection over the scoreboard (RFC 8985 RACK with a
 * packet threshold until reordering was seen), recovery episodes, and the
 * queue of what must be sent again.
 *
 * Knows neither connections nor congestion control; the caller says what was
 * acked and acts on what comes out.
 */

#ifndef HW_ERDMA_XPORT_LOSS_H
#define HW_ERDMA_XPORT_LOSS_H

#include "rtt.h"
#include "sentmap.h"

/* Recoveries without a spurious one after which the window shrinks again */
#define ERDMA_LOSS_REO_RECOVERIES       16

typedef struct ErdmaLoss {
    /* This many later transmissions delivered: lost, while nothing reorders */
    uint8_t threshold;
    uint8_t n_top;
    bool has_rack;
    bool is_reordering_seen;
    bool is_in_recovery;
    uint8_t reo_mult;
    uint8_t n_recoveries;       /* without a spurious retransmission */
    bool has_resent;            /* @resent is valid */
    /* The largest numbers acked, falling; low 32 bits of @n_top numbers */
    uint32_t top[ERDMA_XPORT_PACKET_THRESHOLD_MAX];
    uint64_t rack_sent_ns;      /* latest send time among acked ones */
    uint64_t rack_rtt_ns;
    uint64_t cursor;            /* everything below is acked or lost */
    uint64_t resend;            /* no lost entry below waits */
    uint32_t n_resend;          /* lost entries that were not sent again */
    uint32_t n_gone;            /* so many from gone_from are none of these */
    uint64_t gone_from;
    /* Go-back-N: what erdma_loss_first_resend() said; nothing was lost since */
    uint64_t resent;
    uint64_t recovery_end;      /* first number after the episode's start */
    uint64_t spurious_end;      /* the same for a widening of the window */
    /* Of the latest episode, to see whether all of it was spurious */
    uint32_t n_episode_lost;
    uint32_t n_episode_spurious;
} ErdmaLoss;

/* What one ack told; collected over its ranges. */
typedef struct ErdmaAcked {
    bool has_prior;             /* prior_pn is the largest acked before */
    uint32_t prior_pn;          /* its low 32 bits */
    uint64_t bytes;             /* newly acked, not counting lost ones */
    uint32_t n;                 /* newly acked transmissions */
    uint32_t n_ect;
    uint32_t n_spurious;
    uint64_t spurious_pn;
    bool has_pn;
    uint64_t largest_pn;        /* of the newly acked */
    uint64_t largest_sent_ns;
    bool has_trigger;           /* the trigger is newly acked */
    uint64_t trigger_pn;
    uint64_t trigger_sent_ns;
} ErdmaAcked;

/* What detection declared. */
typedef struct ErdmaLost {
    uint32_t n;
    uint64_t bytes;
    uint64_t first_pn;
    bool is_new_episode;
    uint64_t deadline_ns;       /* look again then; NEVER */
} ErdmaLost;

/* @threshold: 1 to ERDMA_XPORT_PACKET_THRESHOLD_MAX */
void erdma_loss_init(ErdmaLoss *l, uint64_t pn0, uint8_t threshold);

/* Clears @a for an ack that was triggered by @trigger_pn. */
void erdma_loss_ack_begin(const ErdmaLoss *l, uint64_t trigger_pn,
                          ErdmaAcked *a);
/* Marks [@first, @last]; both are below m->next. */
void erdma_loss_ack_range(ErdmaLoss *l, ErdmaSentMap *m, uint64_t first,
                          uint64_t last, ErdmaAcked *a);

/*
 * After the ranges of an ack: RACK state, end of recovery, spurious losses.
 * Returns true when the episode proved to be spurious as a whole.
 */
bool erdma_loss_ack_done(ErdmaLoss *l, const ErdmaSentMap *m,
                         const ErdmaAcked *a, uint64_t now_ns);

/*
 * Declares what is lost now.  (@una_msn, @una_off): everything before was
 * consumed by the peer; a transmission of such payload is never lost, it is
 * only not known which copy arrived.
 */
void erdma_loss_detect(ErdmaLoss *l, ErdmaSentMap *m, const ErdmaRtt *rtt,
                       uint32_t una_msn, uint32_t una_off, uint64_t now_ns,
                       ErdmaLost *out);

/*
 * Everything outstanding is lost.  @is_episode: opens a recovery episode
 * (a timeout), otherwise congestion is not concerned.
 */
void erdma_loss_all(ErdmaLoss *l, ErdmaSentMap *m, bool is_episode,
                    ErdmaLost *out);

/* A mark by the network instead of a loss; false: this round had one */
bool erdma_loss_congestion_episode(ErdmaLoss *l, const ErdmaSentMap *m);

/*
 * The next lost entry that was not sent again, or NULL.  @pn becomes its
 * number.  Entries delivered in the meantime are skipped.
 */
ErdmaSent *erdma_loss_next_resend(ErdmaLoss *l, ErdmaSentMap *m,
                                  uint32_t una_msn, uint32_t una_off,
                                  uint64_t *pn);
/*
 * The same for go-back-N, whose receiver takes nothing but what is next: the
 * one that comes first in the stream, whatever its number.
 */
ErdmaSent *erdma_loss_first_resend(ErdmaLoss *l, ErdmaSentMap *m,
                                   uint32_t una_msn, uint32_t una_off,
                                   uint64_t *pn);
/* The entry's payload was sent again completely. */
void erdma_loss_resent(ErdmaLoss *l, ErdmaSent *e);

#endif /* HW_ERDMA_XPORT_LOSS_H */
