/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One HCA with its guest played by hand: flat memory with holes, a command
 * queue, event queues, a record of every write and interrupt.
 *
 * Requests and entries are built and read here byte by byte, without the
 * engine's own decoder, and start out as garbage: what a driver leaves
 * undefined never is zero.
 */

#ifndef TESTS_ENGINE_RIG_H
#define TESTS_ENGINE_RIG_H

#include "engine/state.h"

#define ERIG_BASE       0x100000000ull
#define ERIG_SIZE       (64u << 20)
#define ERIG_PD         5
#define ERIG_ALL        0x1f            /* all rights of a region */
#define ERIG_DMA_KEY    0xffffff00u

typedef enum ErigTraceKind {
    ERIG_READ,
    ERIG_WRITE,
    ERIG_NOTIFY,                        /* addr: vector */
} ErigTraceKind;

typedef struct ErigTrace {
    ErigTraceKind kind;
    uint64_t addr;
    size_t len;
} ErigTrace;

typedef struct ErigEq {
    uint64_t addr;
    uint32_t depth;
    uint32_t ci;                        /* free-running */
} ErigEq;

typedef struct EngineRig EngineRig;
struct EngineRig {
    ErdmaEngine *e;
    ErdmaEngineConfig cfg;
    uint8_t *mem;
    uint64_t used;
    uint64_t hole;                      /* DMA to this range fails */
    uint64_t hole_len;
    GRand *rand;
    uint64_t now;
    uint64_t next;                      /* erdma_engine_run()'s answer */
    unsigned n_runs;
    unsigned n_kicks;
    unsigned n_guest_errors;
    unsigned n_notify[ERDMA_MAX_VECTORS];
    unsigned n_reads;
    unsigned n_writes;
    GArray *trace;                      /* ErigTrace */
    void (*on_dma)(EngineRig *rig);     /* a BAR behind guest memory */
    /* newest events of ErdmaPort.trace, per kind */
    unsigned n_events[ERDMA_EV_COUNT];
    /* the driver's side of the command queue */
    ErdmaEngineInit init;
    unsigned wqebbs;                    /* per command: 4, or 2 as in 6.1 */
    uint16_t cmd_pi;
    uint32_t cmd_ci;                    /* of the CQ, free-running */
    ErigEq cmdq_eq;
    ErigEq aeq;
    ErigEq ceqs[ERDMA_MAX_VECTORS];
};

/* A command request of 128 bytes, garbage but for what was set */
typedef struct ErigReq {
    uint8_t raw[128];
} ErigReq;

/* Defaults that a test may change before erig_start() */
EngineRig *erig_new(void);
/* Makes the engine; erig_init() does the handshake of a driver. */
void erig_start(EngineRig *rig);
bool erig_init(EngineRig *rig);
/* All of the above, and CEQs 1 to 3 */
EngineRig *erig_ready(void);
void erig_free(EngineRig *rig);

/* Runs the engine until it wants to sleep. */
void erig_run(EngineRig *rig);
void erig_forget_trace(EngineRig *rig);

uint64_t erig_alloc(EngineRig *rig, size_t len, size_t align);
void *erig_ptr(EngineRig *rig, uint64_t addr);
void erig_poke64(EngineRig *rig, uint64_t addr, uint64_t val);
uint32_t erig_peek32_be(EngineRig *rig, uint64_t addr);
uint32_t erig_peek32(EngineRig *rig, uint64_t addr);
uint64_t erig_peek64(EngineRig *rig, uint64_t addr);

void erig_req(EngineRig *rig, ErigReq *req, unsigned sub_mod,
              unsigned opcode);
void erig_set8(ErigReq *req, unsigned off, uint8_t val);
void erig_set16(ErigReq *req, unsigned off, uint16_t val);
void erig_set32(ErigReq *req, unsigned off, uint32_t val);
void erig_set64(ErigReq *req, unsigned off, uint64_t val);
/* The same, big-endian */
void erig_set16_be(ErigReq *req, unsigned off, uint16_t val);
void erig_set32_be(ErigReq *req, unsigned off, uint32_t val);

/* Writes the request into the next slot, without a doorbell. */
void erig_post(EngineRig *rig, const ErigReq *req);
void erig_ring_cmdq(EngineRig *rig);
void erig_arm_cmdq(EngineRig *rig);

typedef struct ErigCmdCqe {
    uint8_t opcode;
    uint8_t qtype;
    uint8_t status;
    uint32_t index;
    uint64_t resp0;
    uint64_t resp1;
} ErigCmdCqe;
bool erig_poll_cmd(EngineRig *rig, ErigCmdCqe *cqe);
/* Post, ring, run, and the status of the one completion */
uint8_t erig_cmd(EngineRig *rig, const ErigReq *req, ErigCmdCqe *cqe);

/* Next entry of an event queue, if there is one */
bool erig_poll_eq(EngineRig *rig, ErigEq *eq, uint64_t *lo, uint64_t *hi);
/* The next event of CEQ @eqn is for @cqn. */
void erig_expect_ceqe(EngineRig *rig, unsigned eqn, uint32_t cqn);
void erig_expect_no_ceqe(EngineRig *rig, unsigned eqn);
/* Ring with what was consumed so far. */
void erig_ring_ceq(EngineRig *rig, unsigned eqn);

/* Commands that succeed */
void erig_create_eq(EngineRig *rig, unsigned eqn, unsigned depth_log2);
void erig_destroy_eq(EngineRig *rig, unsigned eqn);
/* Returns the address of the ring. */
uint64_t erig_create_cq(EngineRig *rig, uint32_t cqn, unsigned depth_log2,
                        unsigned eqn);
uint8_t erig_destroy_cq(EngineRig *rig, uint32_t cqn);
/* Arm doorbell in the static space */
void erig_arm_cq(EngineRig *rig, uint32_t cqn, uint32_t ci, bool solicited);

/* Requests with sane values, for tests to spoil */
void erig_req_create_eq(EngineRig *rig, ErigReq *req, unsigned eqn);
void erig_req_create_cq(EngineRig *rig, ErigReq *req, uint32_t cqn,
                        unsigned depth_log2, unsigned eqn, uint64_t addr);
void erig_req_create_qp(EngineRig *rig, ErigReq *req, uint32_t qpn,
                        uint32_t cqn);
/* A normal region of @n 4 KiB pages at @start, pages inline; n <= 4 */
void erig_req_reg_mr(EngineRig *rig, ErigReq *req, uint32_t index,
                     uint64_t start, uint32_t len, unsigned n,
                     const uint64_t *pages);

/* @n pages of 4 KiB, in no order */
void erig_shuffled_pages(EngineRig *rig, uint64_t *pages, unsigned n);
/*
 * Writes and reads back a pattern over a whole region of 4 KiB @pages, which
 * @key of ERIG_PD opens, in odd pieces.
 */
void erig_check_region(EngineRig *rig, uint32_t key, uint64_t start,
                       const uint64_t *pages, unsigned n_pages);

#endif /* TESTS_ENGINE_RIG_H */
