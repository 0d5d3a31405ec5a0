/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: posting, arming, and the events that result.
 */

#ifndef HW_ERDMA_CQ_H
#define HW_ERDMA_CQ_H

#include "engine/ring.h"
#include "qemu/queue.h"

struct ErdmaEngine;
typedef struct ErdmaCq ErdmaCq;

typedef enum ErdmaCqArm {
    ERDMA_CQ_ARM_NONE,
    ERDMA_CQ_ARM_SOLICITED,
    ERDMA_CQ_ARM_ANY,
} ErdmaCqArm;

struct ErdmaCq {
    uint32_t cqn;
    uint32_t eqn;               /* 0: the command queue's */
    ErdmaRing ring;
    uint32_t pi;                /* free-running, 32 bit */
    ErdmaCqArm arm;
    bool has_solicited;         /* @solicited_pi means something */
    uint32_t solicited_pi;      /* index of the newest solicited CQE */
    uint32_t announced_pi;      /* what is before it had its event */
    /*
     * A CQE could not be written.  Its slot stays empty and the consumer
     * never gets past it, so nothing is written any more.
     */
    bool is_broken;
    uint32_t db_ctx;            /* who may ring, as in ErdmaQp */
    uint64_t dbrec;
    /* latched arm doorbells, merged: solicited does not weaken any */
    bool has_db;
    bool db_any;
    uint32_t db_ci;
    bool has_ci;                /* db_ci was set once */
    uint64_t n_events;          /* that the EQ got */
    QTAILQ_ENTRY(ErdmaCq) work; /* on ErdmaEngine.cq_work while has_db */
    /* its event waits for room in the EQ of that life, see erdma_eq_holds() */
    uint64_t held_life;
    QTAILQ_ENTRY(ErdmaCq) held; /* on ErdmaEq.held meanwhile */
};

/* What a completion says; byte order is decode.c's business. */
typedef struct ErdmaCqe {
    uint8_t opcode;             /* enum ERDMA_OP_* */
    uint8_t qtype;              /* ERDMA_CQE_QTYPE_* */
    uint8_t status;             /* enum ERDMA_WC_* */
    bool is_solicited;          /* errors count as solicited by themselves */
    bool has_inv_key;           /* @imm is a key, not an immediate */
    uint32_t index;             /* as the interface wants it, section CQE */
    uint32_t qpn;
    uint32_t imm;               /* number */
    uint32_t byte_len;
} ErdmaCqe;

/*
 * Writes the CQE to CQ @cqn and fires its event if armed.  A CQ that does
 * not exist (any more) swallows it.  A DMA error raises a CQ-error AEQE.
 */
void erdma_cq_post(struct ErdmaEngine *e, uint32_t cqn, const ErdmaCqe *cqe);
ErdmaCq *erdma_cq_get(struct ErdmaEngine *e, uint32_t cqn);
/* Apply the latched arm doorbells. */
void erdma_cq_run(struct ErdmaEngine *e, ErdmaCq *cq);
/* Latch an arm doorbell for the CQ that it names. */
void erdma_cq_db(struct ErdmaEngine *e, uint64_t payload);

/*
 * For the command queue: latch a doorbell for @cq, whatever CQN it names;
 * write the 32 bytes of @raw, which decode.c has built for index @cq->pi.
 * erdma_cq_write() returns false when they could not be written.
 */
void erdma_cq_latch(struct ErdmaEngine *e, ErdmaCq *cq, uint64_t payload);
bool erdma_cq_write(struct ErdmaEngine *e, ErdmaCq *cq, const uint8_t *raw,
                    bool is_solicited);

/*
 * Puts @cq, filled in up to its ring, into service.  Returns false when its
 * number is taken or out of range; @cq is the engine's otherwise.
 */
bool erdma_cq_add(struct ErdmaEngine *e, ErdmaCq *cq);
/*
 * Nothing is written for the CQ after the return.  Returns false when there
 * is no such CQ.
 */
bool erdma_cq_destroy(struct ErdmaEngine *e, uint32_t cqn);
void erdma_cq_free_all(struct ErdmaEngine *e);

#endif /* HW_ERDMA_CQ_H */
