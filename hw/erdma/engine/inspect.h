/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking at the HCA from outside: what objects there are, what state they
 * are in, what waits.  Nothing here changes anything, and nothing touches
 * guest memory.
 *
 * Each walk starts at the number in @*n: the function finds the first object
 * at or after it, sets @*n to its number, fills the snapshot and returns
 * true; false when there is none.  Numbers in a snapshot are in the units of
 * the interface: work queues in WQEBBs or RQEs, indices as free-running as
 * they are kept.
 *
 * Reference: docs/introspection.md
 */

#ifndef HW_ERDMA_INSPECT_H
#define HW_ERDMA_INSPECT_H

#include "erdma-abi.h"
#include "xport/xport.h"

struct ErdmaEngine;

/* Why the requester does not fetch the next send WQE, as a word */
const char *erdma_inspect_sq_wait(uint8_t wait);
/* enum ERDMA_WC_* as a word, "unknown" for others */
const char *erdma_inspect_status(uint8_t status);

typedef struct ErdmaQpSnapshot {
    uint32_t qpn;
    uint8_t state;              /* ErdmaQpState, in order */
    uint32_t pdn;
    uint32_t cookie;
    bool is_kernel;
    uint32_t db_ctx;
    uint32_t sq_cqn;
    uint32_t rq_cqn;
    uint32_t sq_depth;
    uint16_t sq_pi;
    uint16_t sq_next;           /* fetched up to here */
    uint16_t sq_ci;             /* completed up to here */
    uint8_t sq_wait;
    uint32_t n_sends;           /* WQEs fetched and not forgotten */
    uint32_t n_reads;           /* reads and atomics without an answer */
    uint32_t rq_depth;
    uint16_t rq_pi;
    uint16_t rq_ci;
    uint32_t n_responses;       /* answers to the peer under way */
    bool is_rnr;                /* the peer waits for a receive */
    uint8_t last_error;         /* enum ERDMA_WC_* */
    uint16_t local_port;        /* as the driver named them, 0: never */
    uint16_t peer_port;
    bool has_conn;
    ErdmaXportConnInfo conn;    /* if has_conn */
} ErdmaQpSnapshot;

typedef struct ErdmaCqSnapshot {
    uint32_t cqn;
    uint32_t eqn;
    uint32_t depth;
    uint32_t pi;
    uint32_t announced_pi;      /* what is before it had its event */
    uint8_t arm;                /* ErdmaCqArm, in order */
    bool has_ci;
    uint32_t ci;                /* of the latest arm, modulo 2^24 */
    uint32_t db_ctx;
    bool is_held;               /* its event waits for room in the EQ */
    bool is_broken;             /* its memory could not be written */
    uint64_t n_events;
} ErdmaCqSnapshot;

typedef enum ErdmaEqKind {
    ERDMA_EQ_KIND_COMMAND,
    ERDMA_EQ_KIND_ASYNC,
    ERDMA_EQ_KIND_COMPLETION,
} ErdmaEqKind;

typedef struct ErdmaEqSnapshot {
    uint32_t eqn;
    ErdmaEqKind kind;
    uint8_t vector;
    uint32_t depth;
    uint32_t pi;
    uint16_t ci;
    uint32_t pending;           /* entries that the driver did not take */
    bool is_armed;
    uint32_t n_held;            /* events without room */
    uint64_t n_interrupts;
} ErdmaEqSnapshot;

typedef struct ErdmaMrSnapshot {
    uint32_t index;
    uint32_t key;               /* index << 8 | key byte */
    uint8_t type;               /* enum ERDMA_MR_TYPE_* */
    uint8_t access;             /* ERDMA_MR_ACC_* */
    bool is_valid;
    uint32_t pdn;
    uint64_t start;
    uint64_t len;
    uint8_t page_shift;
    uint8_t level;              /* of its table: 0 inline, 1..3 */
    uint64_t n_pages;
} ErdmaMrSnapshot;

typedef struct ErdmaDeviceSnapshot {
    bool is_ready;              /* initialised by the driver */
    uint32_t page_size;         /* of the guest */
    uint32_t mtu;
    uint32_t cmdq_depth;        /* WQEBBs */
    uint16_t cmdq_pi;
    uint16_t cmdq_ci;
    uint8_t default_cc;         /* enum ERDMA_CC_* */
    uint32_t max_qp;
    uint32_t max_cq;
    uint32_t max_mr;
    uint32_t n_ext_db;          /* doorbell pages given away */
    uint32_t max_ext_db;
} ErdmaDeviceSnapshot;

bool erdma_inspect_qp(const struct ErdmaEngine *e, uint32_t *qpn,
                      ErdmaQpSnapshot *s);
bool erdma_inspect_cq(struct ErdmaEngine *e, uint32_t *cqn,
                      ErdmaCqSnapshot *s);
/* The asynchronous one comes last, as ERDMA_MAX_VECTORS. */
bool erdma_inspect_eq(struct ErdmaEngine *e, uint32_t *eqn,
                      ErdmaEqSnapshot *s);
bool erdma_inspect_mr(const struct ErdmaEngine *e, uint32_t *index,
                      ErdmaMrSnapshot *s);
void erdma_inspect_device(const struct ErdmaEngine *e,
                          ErdmaDeviceSnapshot *s);

#endif /* HW_ERDMA_INSPECT_H */
