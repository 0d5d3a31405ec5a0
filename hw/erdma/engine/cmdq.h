/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command queue: fetch, dispatch, complete in submission order.
 */

#ifndef HW_ERDMA_CMDQ_H
#define HW_ERDMA_CMDQ_H

#include "engine/cq.h"

struct ErdmaEngine;

/*
 * Command status.  The interface fixes 0 only; drivers turn everything else
 * into EIO.  The numbers serve whoever reads a trace.
 */
enum {
    ERDMA_CMD_OK = 0,
    ERDMA_CMD_ERR_OPCODE = 1,   /* unknown or not in this mode */
    ERDMA_CMD_ERR_FORMAT = 2,   /* entry too short, wrong type */
    ERDMA_CMD_ERR_INDEX = 3,    /* number out of range or not there */
    ERDMA_CMD_ERR_BUSY = 4,     /* number in use, or state forbids it */
    ERDMA_CMD_ERR_SIZE = 5,     /* depth, length or page size */
    ERDMA_CMD_ERR_LIMIT = 6,    /* out of the resource */
    ERDMA_CMD_ERR_DMA = 7,
};

typedef struct ErdmaCmdq {
    ErdmaRing sq;
    uint16_t sq_pi;             /* latched doorbell, WQEBBs */
    uint16_t sq_ci;
    ErdmaCq cq;                 /* its own arm doorbell; EQ 0 */
} ErdmaCmdq;

/* Depths are log2; the addresses were checked. */
void erdma_cmdq_init(struct ErdmaEngine *e, uint64_t sq_addr,
                     uint64_t cq_addr, uint32_t depth_log2);
void erdma_cmdq_db_sq(struct ErdmaEngine *e, uint64_t payload);
void erdma_cmdq_db_cq(struct ErdmaEngine *e, uint64_t payload);
/* A bounded number of commands; true when more are waiting */
bool erdma_cmdq_run(struct ErdmaEngine *e, uint64_t now_ns);

#endif /* HW_ERDMA_CMDQ_H */
