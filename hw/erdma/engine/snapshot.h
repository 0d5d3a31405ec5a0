/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's whole state as flat data, to be carried elsewhere; the form is
 * that of xport/snapshot.h.
 *
 * What the configuration says is not in it: both ends must be made alike.
 * Guest memory is not in it either, it has to be the same when the device
 * runs again.  Caches of translations are left behind.
 */

#ifndef HW_ERDMA_ENGINE_SNAPSHOT_H
#define HW_ERDMA_ENGINE_SNAPSHOT_H

#include "engine/engine.h"
#include "erdma-abi.h"
#include "xport/snapshot.h"

/* By EQN; the last one is the AEQ */
#define ERDMA_ENGINE_SNAP_EQS       (ERDMA_MAX_VECTORS + 1)
/* uint64_t in ErdmaEngineStats */
#define ERDMA_ENGINE_SNAP_COUNTERS  (sizeof(ErdmaEngineStats) / 8)

/* The most elements of an array; the rest as in xport/snapshot.h */
#define ERDMA_SNAP_MAX_AEQES        4096
#define ERDMA_SNAP_MAX_EXT_PAGES    (1u << 16)

typedef struct ErdmaRingSnap {
    uint8_t depth_log2;
    uint8_t page_shift;
    uint32_t first_off;
    uint32_t n_pages;
    uint8_t has_table;
    uint64_t table;
    uint64_t pages[ERDMA_QP_INLINE_PAGES];
} ErdmaRingSnap;

typedef struct ErdmaEqSnap {
    uint8_t is_live;
    uint8_t is_armed;
    uint8_t vector;
    uint8_t depth_log2;
    uint64_t addr;
    uint32_t pi;
    uint16_t ci;
    uint64_t dbrec;
    uint64_t n_interrupts;
    uint8_t has_db;
    uint64_t db;
} ErdmaEqSnap;

typedef struct ErdmaCqSnap {
    uint32_t cqn;
    uint32_t eqn;
    ErdmaRingSnap ring;
    uint32_t pi;
    uint8_t arm;                /* ErdmaCqArm */
    uint8_t has_solicited;
    uint32_t solicited_pi;
    uint32_t announced_pi;
    uint8_t is_broken;
    uint32_t db_ctx;
    uint64_t dbrec;
    uint8_t has_db;
    uint8_t db_any;
    uint32_t db_ci;
    uint8_t has_ci;
    uint64_t n_events;
} ErdmaCqSnap;

typedef struct ErdmaAeqeSnap {
    uint8_t type;
    uint32_t id;
} ErdmaAeqeSnap;

/* A CQ whose event waits in its EQ, in the order of waiting */
typedef struct ErdmaHeldSnap {
    uint32_t cqn;               /* 0: the command queue's */
} ErdmaHeldSnap;

typedef struct ErdmaMrSnap {
    uint32_t index;
    uint8_t key;
    uint8_t type;
    uint8_t access;
    uint8_t is_valid;
    uint32_t pdn;
    uint64_t start;
    uint64_t len;
    uint8_t page_shift;
    uint8_t level;
    uint8_t table_shift;
    uint64_t n_pages;
    uint64_t max_pages;
    uint8_t is_inline;
    uint64_t table;
    uint64_t pages[ERDMA_MR_INLINE_PAGES];
} ErdmaMrSnap;

typedef struct ErdmaExtPageSnap {
    uint32_t page;              /* from the first extended one on */
    uint32_t ctx;
    uint8_t role;               /* ErdmaExtRole */
} ErdmaExtPageSnap;

typedef struct ErdmaSgeSnap {
    uint64_t addr;
    uint32_t len;
    uint32_t key;
} ErdmaSgeSnap;

/*
 * A send WQE that was fetched: its n_sges elements of sges[], or its n_inline
 * bytes of bytes[], come next there.
 */
typedef struct ErdmaWqeSnap {
    uint16_t index;
    uint8_t n_wqebbs;
    uint8_t opcode;
    uint8_t is_signalled;
    uint8_t is_held;            /* the transport has the message */
    uint8_t is_unanswered;
    uint8_t is_done;
    uint8_t status;
    uint8_t n_sges;
    uint8_t n_inline;
    uint32_t len;
    uint32_t inv_key;
    uint32_t msn;
    ErdmaHdrSnap hdr;
} ErdmaWqeSnap;

typedef struct ErdmaResponseSnap {
    uint32_t msn;
    uint32_t rkey;
    uint64_t raddr;
    ErdmaHdrSnap hdr;
} ErdmaResponseSnap;

/*
 * Its n_sends WQEs that are not completed, in posting order, and then its
 * n_orphans completed ones come next in wqes[].
 */
typedef struct ErdmaQpSnap {
    uint32_t qpn;
    uint32_t pdn;
    uint32_t sq_cqn;
    uint32_t rq_cqn;
    uint32_t cookie;
    uint16_t local_port;
    uint16_t peer_port;
    uint8_t is_kernel;
    uint32_t db_ctx;
    uint8_t state;              /* ErdmaQpState */
    uint8_t last_error;
    uint8_t has_conn;           /* the next one of the transport */
    uint32_t rx_msn;
    ErdmaRingSnap sq;
    uint16_t sq_pi;
    uint16_t sq_next;
    uint16_t sq_ci;
    ErdmaRingSnap rq;
    uint16_t rq_pi;
    uint16_t rq_ci;
    uint64_t sq_dbrec;
    uint64_t rq_dbrec;
    uint8_t has_bad_db;
    uint8_t has_failed_wqe;
    uint16_t failed_index;
    uint8_t failed_status;
    uint32_t n_sends;
    uint32_t n_orphans;
    uint8_t sq_wait;            /* ErdmaSqWait */
    uint32_t n_responses;
    uint8_t is_rnr;
    uint8_t is_full;
    uint8_t has_rqe;
    uint64_t rqe_addr;
    uint32_t rqe_len;
    uint32_t rqe_key;
    uint8_t term_status;
    uint32_t term_msn;
    uint8_t has_work;
} ErdmaQpSnap;

typedef struct ErdmaEngineSnap {
    uint8_t is_ready;
    uint8_t guest_page_shift;
    uint32_t incarnation;
    uint64_t counters[ERDMA_ENGINE_SNAP_COUNTERS];  /* ErdmaEngineStats */
    uint64_t cmdq_addr;
    uint8_t cmdq_depth_log2;
    uint16_t cmdq_pi;
    uint16_t cmdq_ci;
    ErdmaCqSnap cmdq_cq;
    ErdmaEqSnap eqs[ERDMA_ENGINE_SNAP_EQS];
    uint32_t last_ctx;
    uint32_t ext_hint;
    uint32_t n_aeqes;
    uint32_t n_cqs;
    uint32_t n_held;
    uint32_t n_mrs;
    uint32_t n_ext_pages;
    uint32_t n_qps;
    uint32_t n_wqes;
    uint32_t n_sges;
    uint32_t n_responses;
    uint32_t n_bytes;
    ErdmaAeqeSnap *aeqes;
    ErdmaCqSnap *cqs;
    ErdmaHeldSnap *held;
    ErdmaMrSnap *mrs;
    ErdmaExtPageSnap *ext_pages;
    ErdmaQpSnap *qps;
    ErdmaWqeSnap *wqes;
    ErdmaSgeSnap *sges;
    ErdmaResponseSnap *responses;
    uint8_t *bytes;
    ErdmaXportSnap xport;
} ErdmaEngineSnap;

/*
 * Saves everything into @s, which is all 0; not from inside a callback.
 * False: there is more than a snapshot can hold, *@error says of what.
 */
bool erdma_engine_save(ErdmaEngine *e, ErdmaEngineSnap *s, uint64_t now_ns,
                       char **error);
/* Frees the arrays. */
void erdma_engine_snap_clear(ErdmaEngineSnap *s);
/* The same check for a snapshot of unknown origin, before its arrays exist */
bool erdma_engine_snap_fits(const ErdmaEngineSnap *s, char **error);

/*
 * Replaces the state of @e, which was made with the same configuration, by
 * @s.  Nothing moves before the next erdma_engine_run().  False: *@error
 * names the field that is wrong, and @e is in reset.
 */
bool erdma_engine_load(ErdmaEngine *e, const ErdmaEngineSnap *s,
                       uint64_t now_ns, char **error);

#endif /* HW_ERDMA_ENGINE_SNAPSHOT_H */
