/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's state.  Private to hw/erdma/engine.
 */

#ifndef HW_ERDMA_STATE_H
#define HW_ERDMA_STATE_H

#include "engine/cmdq.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "engine/eq.h"
#include "engine/extdb.h"
#include "engine/fault-hook.h"
#include "engine/leftover.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "engine/table.h"

struct ErdmaEngine {
    const ErdmaPort *port;
    void *opaque;
    ErdmaEngineConfig cfg;
    bool is_ready;
    bool is_kicked;             /* the shell knows that there is work */
    /*
     * Inside dma_*() or notify() of the port.  A guest can make either hit
     * our own BAR; what arrives while this is set is dropped.
     */
    bool is_outside;
    uint64_t now_ns;            /* of the running erdma_engine_*() call */
    /*
     * DMA transfers until this part of the run gives up its turn; whoever
     * works in a loop looks at it.
     */
    uint32_t dma_left;

    ErdmaCmdq cmdq;
    ErdmaEq cmdq_eq;
    ErdmaEq aeq;
    ErdmaEq ceqs[ERDMA_MAX_VECTORS];    /* by EQN; 0 is not used */
    GQueue aeq_held;            /* ErdmaHeldAeqe: the AEQ was full */
    uint64_t n_eq_lives;        /* EQs that there ever were */
    uint64_t eq_work;           /* bit EQN: has a latched doorbell */
    uint32_t n_sends;           /* ErdmaSendWqe of all QPs */
    uint32_t n_responses;       /* ErdmaResponse of all QPs */
    ErdmaTable cqs;
    ErdmaTable qps;
    ErdmaTable mrs;

    QTAILQ_HEAD(, ErdmaCq) cq_work;     /* arm doorbells */
    QTAILQ_HEAD(, ErdmaQp) qp_work;
    ErdmaLeftoverList leftovers;        /* of resets, in their order */

    ErdmaXport *xport;
    uint32_t wire_mtu;          /* until CONF_MTU says otherwise */
    uint32_t incarnation;       /* of the next QP, 12 bits used */
    uint8_t guest_page_shift;   /* CONF_DEVICE */
    ErdmaExtDb ext_db;
    ErdmaFaults faults;

    ErdmaEngineStats stats;
};

static inline uint32_t erdma_engine_max_qp(const ErdmaEngine *e)
{
    return e->cfg.qblocks * ERDMA_QPS_PER_QBLOCK;
}

/* Of CQs and of memory regions */
static inline uint32_t erdma_engine_max_cq(const ErdmaEngine *e)
{
    return 2 * erdma_engine_max_qp(e);
}

/* Tell the shell, once, that erdma_engine_run() has something to do. */
void erdma_engine_kick(ErdmaEngine *e);
bool erdma_dma_read(ErdmaEngine *e, uint64_t addr, void *buf, size_t len);
bool erdma_dma_write(ErdmaEngine *e, uint64_t addr, const void *buf,
                     size_t len);

static inline void erdma_trace(ErdmaEngine *e, ErdmaEvent event, uint32_t id,
                               uint64_t a, uint64_t b)
{
    if (e->port->trace) {
        e->port->trace(e->opaque, event, id, a, b);
    }
}

#endif /* HW_ERDMA_STATE_H */
