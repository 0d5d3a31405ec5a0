/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues: the command queue's, the asynchronous one, and 31 CEQs.
 * The only file that raises interrupts.
 */

#ifndef HW_ERDMA_EQ_H
#define HW_ERDMA_EQ_H

#include "engine/cq.h"

struct ErdmaEngine;

typedef struct ErdmaEq {
    bool is_live;
    bool is_armed;
    uint8_t vector;
    uint64_t life;              /* no two EQs ever have the same; from 1 */
    ErdmaRing ring;
    uint32_t pi;                /* free-running, ours */
    uint16_t ci;                /* the 16 bits that the driver reports */
    uint64_t dbrec;
    uint64_t n_interrupts;
    /*
     * CQs whose event found the queue full, in order.  A CQ is in here at
     * most once, however often it fires: one event is enough for a consumer
     * to come and look.
     */
    QTAILQ_HEAD(, ErdmaCq) held;
    /* latched doorbell, applied by erdma_eq_run() */
    bool has_db;
    uint64_t db;
} ErdmaEq;

/*
 * An AEQE tells of one failed object, of which the guest can make new ones
 * for ever without looking: this many wait for room, later ones are lost.
 */
#define ERDMA_AEQ_MAX_HELD      4096

/* Element of ErdmaEngine.aeq_held */
typedef struct ErdmaHeldAeqe {
    uint8_t type;
    uint32_t id;
} ErdmaHeldAeqe;

/* EQN of the AEQ in ErdmaEngine.eq_work and in traces; not of the guest's */
#define ERDMA_EQN_CMDQ          0
#define ERDMA_EQN_AEQ           ERDMA_MAX_VECTORS

/* Whether the event of @cq is among @eq's held */
bool erdma_eq_holds(const ErdmaEq *eq, const ErdmaCq *cq);
/* The event of @cq has to wait; it does not already. */
void erdma_eq_hold(ErdmaEq *eq, ErdmaCq *cq);
/* NULL unless @eqn is a live CEQ, ERDMA_EQN_CMDQ or ERDMA_EQN_AEQ */
ErdmaEq *erdma_eq_get(struct ErdmaEngine *e, unsigned eqn);
/* @depth_log2 is at most ERDMA_MAX_EQ_LOG2 */
void erdma_eq_create(struct ErdmaEngine *e, ErdmaEq *eq, uint64_t addr,
                     uint32_t depth_log2, uint8_t vector, uint64_t dbrec);
/* No entry is written and no interrupt raised after the return. */
void erdma_eq_destroy(ErdmaEq *eq);
/* @cq, of this @eq, has something to say. */
void erdma_eq_post_ceqe(struct ErdmaEngine *e, ErdmaEq *eq, ErdmaCq *cq);
/*
 * Injected faults: an event for CQ @cqn that was put off, whether the CQ is
 * still there or not; an interrupt, below the configured number.
 */
void erdma_eq_write_late(struct ErdmaEngine *e, unsigned eqn, uint32_t cqn,
                         uint32_t cq_pi);
void erdma_eq_raise(struct ErdmaEngine *e, unsigned vector);
/* @type is enum ERDMA_AE_TYPE_*, @id a QPN or CQN */
void erdma_aeq_post(struct ErdmaEngine *e, uint8_t type, uint32_t id);
/* Forget the event held back for @cq, which is being destroyed. */
void erdma_eq_forget_cq(struct ErdmaEngine *e, ErdmaCq *cq);
/* Latch a doorbell of EQ @eqn. */
void erdma_eq_db(struct ErdmaEngine *e, unsigned eqn, uint64_t payload);
/* Apply the latched doorbell; true when a part of that is left to do. */
bool erdma_eq_run(struct ErdmaEngine *e, ErdmaEq *eq);

#endif /* HW_ERDMA_EQ_H */
