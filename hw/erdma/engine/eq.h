/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues: the command queue's, the asynchronous one, and 31 CEQs.
 * The only file that raises interrupts.
 */

#ifndef HW_ERDMA_EQ_H
#define HW_ERDMA_EQ_H

#include "engine/ring.h"

struct ErdmaEngine;

typedef struct ErdmaEq {
    bool is_live;
    bool is_armed;
    uint8_t vector;
    ErdmaRing ring;
    uint32_t pi;                /* free-running, ours */
    uint16_t ci;                /* the 16 bits that the driver reports */
    uint64_t dbrec;
    /* CQNs whose event found the queue full, in order */
    GQueue held;
    /* latched doorbell, applied by erdma_eq_run() */
    bool has_db;
    uint64_t db;
} ErdmaEq;

void erdma_eq_create(struct ErdmaEngine *e, ErdmaEq *eq, uint64_t addr,
                     uint32_t depth_log2, uint8_t vector, uint64_t dbrec);
void erdma_eq_destroy(ErdmaEq *eq);
/* CQ @cqn, at producer index @pi, has something to say. */
void erdma_eq_post_ceqe(struct ErdmaEngine *e, ErdmaEq *eq, uint32_t cqn,
                        uint32_t pi);
/* @type is enum ERDMA_AE_TYPE_*, @id a QPN or CQN */
void erdma_aeq_post(struct ErdmaEngine *e, uint8_t type, uint32_t id);
/* Forget events held back for @cqn, which is being destroyed. */
void erdma_eq_forget_cq(ErdmaEq *eq, uint32_t cqn);
/* Apply the latched doorbell. */
void erdma_eq_run(struct ErdmaEngine *e, ErdmaEq *eq);

#endif /* HW_ERDMA_EQ_H */
