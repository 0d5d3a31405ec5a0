/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a QP has under way: for requester.c, responder.c and snapshots, and
 * nobody else.
 */

#ifndef HW_ERDMA_WQE_H
#define HW_ERDMA_WQE_H

#include "engine/decode.h"

/* Send WQEs of one QP that exist here at a time */
#define ERDMA_QP_MAX_WQES       256
/*
 * Answers not known to be delivered.  A peer asks for at most ERDMA_MAX_ORD
 * things at a time, but may ask for more when our answers have arrived and
 * its acknowledgements have not; it waits at this mark.
 */
#define ERDMA_QP_MAX_RESPONSES  (2 * ERDMA_MAX_ORD)

/* requester.c: a send WQE */
struct ErdmaSendWqe {
    ErdmaXportMsg msg;
    QTAILQ_ENTRY(ErdmaSendWqe) next;        /* in sends or orphans */
    QTAILQ_ENTRY(ErdmaSendWqe) next_read;   /* while is_unanswered */
    uint16_t index;             /* free-running, of the first WQEBB */
    uint8_t n_wqebbs;
    uint8_t opcode;
    bool is_signalled;
    bool is_held;               /* the transport has the message */
    bool is_orphan;             /* in ErdmaQp.orphans */
    bool is_unanswered;         /* in ErdmaQp.reads */
    bool is_done;
    uint8_t status;             /* not 0: fails the QP at its turn */
    uint8_t n_sges;             /* 0: the payload is inline */
    uint32_t len;               /* bytes moved, either direction */
    uint32_t inv_key;           /* of READ_WITH_INV */
    union {
        ErdmaSge sges[ERDMA_MAX_SEND_SGE];
        uint8_t inline_data[ERDMA_MAX_INLINE];
    };
};

/* responder.c: the answer to a read or an atomic */
struct ErdmaResponse {
    ErdmaXportMsg msg;
    QTAILQ_ENTRY(ErdmaResponse) next;
    uint32_t rkey;              /* of a read */
    uint64_t raddr;
};

#endif /* HW_ERDMA_WQE_H */
