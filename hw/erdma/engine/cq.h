/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: posting, arming, and the events that result.
 */

#ifndef HW_ERDMA_CQ_H
#define HW_ERDMA_CQ_H

#include "engine/ring.h"

struct ErdmaEngine;

typedef enum ErdmaCqArm {
    ERDMA_CQ_ARM_NONE,
    ERDMA_CQ_ARM_SOLICITED,
    ERDMA_CQ_ARM_ANY,
} ErdmaCqArm;

typedef struct ErdmaCq {
    uint32_t cqn;
    uint32_t eqn;
    ErdmaRing ring;
    uint32_t pi;                /* free-running, 32 bit */
    ErdmaCqArm arm;
    bool has_solicited;         /* @solicited_pi means something */
    uint32_t solicited_pi;      /* index of the newest solicited CQE */
    uint64_t dbrec;
    /* latched arm doorbells, merged: solicited does not weaken any */
    bool has_db;
    bool db_any;
    uint32_t db_ci;
    QTAILQ_ENTRY(ErdmaCq) work; /* on ErdmaEngine.cq_work while has_db */
} ErdmaCq;

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
void erdma_cq_db(struct ErdmaEngine *e, uint64_t payload);

#endif /* HW_ERDMA_CQ_H */
