/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the eRDMA engine needs from whoever is above it.
 *
 * The QEMU shell, the unit tests and the fuzzers each fill one ErdmaPort.
 * Guest memory, interrupts, the wire and diagnostics leave the engine through
 * it and through nothing else.
 */

#ifndef HW_ERDMA_PORT_H
#define HW_ERDMA_PORT_H

#include "xport/xport.h"

/*
 * Events for tracing.  The shell turns them into QEMU trace events; @id is
 * the QPN, CQN, EQN or MR index that the event is about.
 */
typedef enum ErdmaEvent {
    ERDMA_EV_CMD,               /* id: sub-module << 8 | opcode; a: status */
    ERDMA_EV_CMD_REFUSED,       /* the same; b: line of the check that failed */
    ERDMA_EV_EQ_POST,           /* EQN; a: producer index; b: first word */
    ERDMA_EV_EQ_NOTIFY,         /* EQN; a: vector */
    ERDMA_EV_CQ_POST,           /* CQN; a: producer index; b: first word */
    ERDMA_EV_CQ_ARM,            /* CQN; a: CI; b: solicited only */
    ERDMA_EV_QP_STATE,          /* QPN; a: old; b: new */
    ERDMA_EV_QP_ERROR,          /* QPN; a: completion status; b: index */
    ERDMA_EV_SQ_WQE,            /* QPN; a: index; b: opcode */
    ERDMA_EV_RX_MSG,            /* QPN; a: MSN; b: ErdmaXportOp */
    ERDMA_EV_RX_REFUSED,        /* QPN; a: MSN; b: completion status */
    ERDMA_EV_FLUSH,             /* QPN; a: SQ entries; b: RQ entries */
    ERDMA_EV_AEQE,              /* QPN or CQN; a: type */
    ERDMA_EV_DMA_ERROR,         /* 0; a: address; b: length */
    /* QPN, CQN, vector or opcode; a: ErdmaFaultPoint; b: ErdmaFaultAction */
    ERDMA_EV_FAULT,
    ERDMA_EV_COUNT,
} ErdmaEvent;

typedef struct ErdmaPort {
    /*
     * Bus-master access to guest memory.  Returns false when any byte could
     * not be transferred.  Two writes become visible to the guest in the
     * order of the calls; an aligned write of 4 or 8 bytes is one store.
     */
    bool (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);
    bool (*dma_write)(void *opaque, uint64_t addr, const void *buf,
                      size_t len);

    /* Raises MSI-X vector @vector, which is below the configured number. */
    void (*notify)(void *opaque, unsigned vector);

    /* Call erdma_engine_run() soon, from a fresh stack. */
    void (*kick)(void *opaque);

    /* As ErdmaXportOps.transmit */
    bool (*transmit)(void *opaque, const ErdmaDatagram *dg);

    /* The guest broke a rule; never fatal. */
    void (*guest_error)(void *opaque, const char *fmt, ...)
        G_GNUC_PRINTF(2, 3);

    /*
     * Optional, may be NULL.  A connection between these addresses opens:
     * its packets may come and go from now on.
     */
    void (*conn_open)(void *opaque, uint32_t local_ip, uint32_t peer_ip);

    /* Optional, may be NULL. */
    void (*trace)(void *opaque, ErdmaEvent event, uint32_t id, uint64_t a,
                  uint64_t b);
    void (*xport_trace)(void *opaque, uint32_t qpn, ErdmaXportEvent event,
                        uint64_t a, uint64_t b);
} ErdmaPort;

#endif /* HW_ERDMA_PORT_H */
