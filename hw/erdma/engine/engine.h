/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The eRDMA HCA without its bus: command queue, event and completion queues,
 * queue pairs, memory regions, requester and responder.
 *
 * The shell above decodes addresses (registers, doorbell pages); everything
 * the guest says beyond that is checked in here.  Doorbells are only latched:
 * they cause no DMA and no callback but ErdmaPort.kick(); all work is done in
 * erdma_engine_run(), a bounded amount per call.
 *
 * Byte order: arguments are numbers.  Times: nanoseconds of one monotonic
 * clock.  Threading: none.
 *
 * Reference: docs/specs/erdma.rst
 */

#ifndef HW_ERDMA_ENGINE_H
#define HW_ERDMA_ENGINE_H

#include "engine/port.h"

typedef struct ErdmaEngine ErdmaEngine;

/* What the device is; fixed for its life.  The shell has validated it. */
typedef struct ErdmaEngineConfig {
    uint32_t qblocks;           /* blocks of 1024 QPs, 1..512 */
    uint8_t max_mr_size_log2;
    uint8_t max_recv_wr_log2;   /* up to 15 */
    uint8_t max_cqe_log2;       /* up to 20 */
    uint8_t max_gid_log2;
    uint8_t max_ah_log2;
    uint8_t max_mw_log2;
    bool has_atomics;
    bool has_mtt_va;
    bool has_ext_db;
    uint8_t default_cc;         /* enum ERDMA_CC_* */
    bool is_cc_off;             /* a fixed window, whatever drivers say */
    uint32_t dma_local_key;
    uint32_t fw_version;
    unsigned n_vectors;         /* MSI-X vectors, 1..32 */
    /*
     * Extended doorbell pages: first page of BAR 0 behind the static space
     * and their number, in 4 KiB pages.
     */
    uint32_t ext_db_first;
    uint32_t n_ext_db;
    uint64_t seed;              /* of incarnation numbers, tables */
    ErdmaXportConfig xport;
} ErdmaEngineConfig;

/* The registers that INIT latches; see erdma-abi.h.  Depths are raw. */
typedef struct ErdmaEngineInit {
    uint64_t cmdq_sq_addr;
    uint64_t cmdq_cq_addr;
    uint64_t cmdq_eq_addr;
    uint64_t aeq_addr;
    uint32_t cmdq_depth;
    uint32_t cmdq_eq_depth;
    uint32_t aeq_depth;
    uint64_t cmdq_sq_dbrec;
    uint64_t cmdq_cq_dbrec;
    uint64_t cmdq_eq_dbrec;
    uint64_t aeq_dbrec;
} ErdmaEngineInit;

/* Counters that GET_STATS reports; since the device was made. */
typedef struct ErdmaEngineStats {
    uint64_t tx_requests;       /* send WQEs executed */
    uint64_t rx_requests;       /* messages accepted from peers */
    uint64_t mr_fast_regs;      /* register-memory entries that succeeded */
    uint64_t mr_local_invs;     /* local invalidates that succeeded */
    uint64_t mr_read_invs;      /* regions invalidated by a finished read */
    uint64_t mr_remote_invs;    /* regions invalidated by a peer's send */
    uint64_t cmds;
    uint64_t cmds_refused;
    uint64_t cqes;
    uint64_t ceqes;
    uint64_t aeqes;
    uint64_t flushed;
    uint64_t db_ignored;        /* doorbells for objects that do not exist */
    uint64_t dma_errors;
} ErdmaEngineStats;

/* How a doorbell reached us: some payloads only make sense on some pages. */
typedef enum ErdmaDbKind {
    ERDMA_DB_KIND_SQ,
    ERDMA_DB_KIND_RQ,
    ERDMA_DB_KIND_CQ,
} ErdmaDbKind;

/* @port must outlive the engine; @cfg is copied. */
ErdmaEngine *erdma_engine_new(const ErdmaPort *port, void *opaque,
                              const ErdmaEngineConfig *cfg);
void erdma_engine_free(ErdmaEngine *e);

/*
 * Stops all DMA, interrupts and packets and forgets every object before it
 * returns.  Callable at any time, in any state.
 */
void erdma_engine_reset(ErdmaEngine *e);

/*
 * Reset, then latch @init and become ready.  Returns false, with the guest
 * told through guest_error(), when a depth or address cannot be used; the
 * engine then stays in reset.
 */
bool erdma_engine_init(ErdmaEngine *e, const ErdmaEngineInit *init);
bool erdma_engine_is_ready(const ErdmaEngine *e);

/* Doorbells: 64-bit payloads as the guest wrote them. */
void erdma_engine_db_cmdq_sq(ErdmaEngine *e, uint64_t payload);
void erdma_engine_db_cmdq_cq(ErdmaEngine *e, uint64_t payload);
void erdma_engine_db_cmdq_eq(ErdmaEngine *e, uint64_t payload);
void erdma_engine_db_aeq(ErdmaEngine *e, uint64_t payload);
/* @eqn 1..31 */
void erdma_engine_db_ceq(ErdmaEngine *e, unsigned eqn, uint64_t payload);
/* A doorbell in the static space: @kind by the address. */
void erdma_engine_db_queue(ErdmaEngine *e, ErdmaDbKind kind,
                           uint64_t payload);
/*
 * A doorbell on BAR 0 page @page (4 KiB units) of the extended area, at
 * @offset in the page.  The engine knows which pages it gave away and for
 * what; pages that nobody owns ignore writes.
 */
void erdma_engine_db_ext(ErdmaEngine *e, uint32_t page, uint32_t offset,
                         uint64_t payload);

/* One datagram for us. */
void erdma_engine_input(ErdmaEngine *e, const ErdmaDatagram *dg,
                        uint64_t now_ns);
/* The wire takes datagrams again. */
void erdma_engine_unblock(ErdmaEngine *e);

/* IP MTU of the wire; CONF_MTU can lower or raise it later. */
void erdma_engine_set_mtu(ErdmaEngine *e, uint32_t mtu);

/*
 * A bounded amount of work.  Returns the time of the next call that is
 * needed even if nothing else happens, UINT64_MAX for none; a value <=
 * @now_ns means that work is left.
 */
uint64_t erdma_engine_run(ErdmaEngine *e, uint64_t now_ns);

/*
 * Records the transport, see xport.h; right after erdma_engine_new(), before
 * anything else happens.
 */
void erdma_engine_record(ErdmaEngine *e, ErdmaXportWrite *write,
                         void *opaque);
void erdma_engine_record_end(ErdmaEngine *e);

const ErdmaEngineStats *erdma_engine_stats(const ErdmaEngine *e);
const ErdmaXportStats *erdma_engine_xport_stats(const ErdmaEngine *e);

/* Live objects, for introspection and leak tests */
typedef struct ErdmaEngineCounts {
    uint32_t n_eqs;
    uint32_t n_cqs;
    uint32_t n_qps;
    uint32_t n_mrs;
    uint32_t n_ext_db;
} ErdmaEngineCounts;
void erdma_engine_counts(const ErdmaEngine *e, ErdmaEngineCounts *counts);

#endif /* HW_ERDMA_ENGINE_H */
