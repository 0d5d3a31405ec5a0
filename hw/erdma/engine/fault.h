/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults: what the device does wrong, because it was asked to.
 *
 * A rule watches one point of the device, says which events there it is
 * about, which of them it fires on, and what then happens.  Rules belong to
 * the host: the guest cannot see them, resets leave them alone, and nothing
 * of them migrates.  Without rules the points cost a test of one word.
 *
 * Several rules may watch one point.  Each looks at every event, so that what
 * one of them hits does not depend on the others; of those that would change
 * the event itself, only the first that fires does.
 *
 * Times: nanoseconds of the engine's clock.
 *
 * Reference: docs/faults.md
 */

#ifndef HW_ERDMA_FAULT_H
#define HW_ERDMA_FAULT_H

#include "qemu/queue.h"

typedef struct ErdmaEngine ErdmaEngine;

typedef enum ErdmaFaultPoint {
    ERDMA_FAULT_ON_VERSION,     /* the version register is read */
    ERDMA_FAULT_ON_INIT,        /* INIT is written */
    ERDMA_FAULT_ON_COMMAND,     /* a command is its queue's next */
    ERDMA_FAULT_ON_WQE,         /* a send request is about to start */
    ERDMA_FAULT_ON_MESSAGE,     /* a message of the peer begins */
    ERDMA_FAULT_ON_CQE,         /* a completion is about to be written */
    ERDMA_FAULT_ON_CEQE,        /* so is a completion event */
    ERDMA_FAULT_ON_INTERRUPT,   /* a vector is about to be raised */
    ERDMA_FAULT_ON_DMA,         /* guest memory is accessed */
    ERDMA_FAULT_ON_TIMER,       /* time has passed */
    ERDMA_FAULT_ON_COUNT,
} ErdmaFaultPoint;

typedef enum ErdmaFaultAction {
    /* change the event itself */
    ERDMA_FAULT_ABSENT,         /* version: reads as 0 */
    ERDMA_FAULT_DELAY,          /* it comes later */
    ERDMA_FAULT_FAIL,           /* it fails, with @status */
    ERDMA_FAULT_DROP,           /* it never comes */
    ERDMA_FAULT_DUPLICATE,      /* it comes twice */
    ERDMA_FAULT_STATUS,         /* CQE: says @status */
    ERDMA_FAULT_INDEX,          /* CQE: index is @offset too large */
    ERDMA_FAULT_OVERRUN,        /* CQE: its CQ is full and breaks */
    /* in addition to it */
    ERDMA_FAULT_AEQE,           /* an asynchronous event of type @event */
    ERDMA_FAULT_CEQE,           /* a completion event without a reason */
    ERDMA_FAULT_INTERRUPT,      /* an interrupt without a reason */
    ERDMA_FAULT_QP_FATAL,       /* the QP fails by itself, with @status */
    ERDMA_FAULT_QP_DEAD,        /* the QP falls silent */
    ERDMA_FAULT_ACTION_COUNT,
} ErdmaFaultAction;

typedef enum ErdmaFaultQueue {
    ERDMA_FAULT_QUEUE_ANY,
    ERDMA_FAULT_QUEUE_SQ,
    ERDMA_FAULT_QUEUE_RQ,
} ErdmaFaultQueue;

typedef enum ErdmaFaultDirection {
    ERDMA_FAULT_READ_WRITE,
    ERDMA_FAULT_READ,           /* of guest memory */
    ERDMA_FAULT_WRITE,
} ErdmaFaultDirection;

/* For opcode, qpn, cqn and vector */
#define ERDMA_FAULT_ANY     UINT32_MAX

typedef struct ErdmaFaultConfig {
    ErdmaFaultPoint on;
    ErdmaFaultAction action;

    /* Which events: those that fit all of these */
    uint32_t opcode;            /* command: sub-module << 8 | opcode */
    uint32_t qpn;
    uint32_t cqn;
    uint32_t vector;            /* MSI-X vector; of a CEQ that is its EQN */
    ErdmaFaultQueue queue;      /* CQE */
    ErdmaFaultDirection direction;      /* DMA */
    uint64_t min_size;          /* DMA, bytes */

    /* Which of them: skip @after, then each @every-th, at most @count */
    uint64_t after;
    uint64_t every;             /* from 1 */
    uint64_t count;             /* 0: no end */
    double probability;         /* of those, 0 to 1 */
    uint64_t seed;

    /* How */
    uint64_t delay_ns;
    uint64_t period_ns;         /* timer; 0: once, as soon as possible */
    uint32_t status;            /* of a command, or ERDMA_WC_* */
    uint32_t event;             /* ERDMA_AE_TYPE_* */
    int32_t offset;
    bool is_executed;           /* command: fails or is lost afterwards */
} ErdmaFaultConfig;

typedef struct ErdmaFaultRule {
    ErdmaFaultConfig cfg;       /* change with erdma_fault_set() */
    bool is_enabled;
    uint64_t matched;           /* events that it was about, */
    uint64_t fired;             /* and those that it fired on */

    /* private */
    ErdmaEngine *e;             /* NULL: of no device */
    GRand *rand;
    uint64_t due_ns;            /* timer; 0: not started */
    QTAILQ_ENTRY(ErdmaFaultRule) next;
} ErdmaFaultRule;

void erdma_fault_config_default(ErdmaFaultConfig *cfg);
/*
 * NULL when @cfg makes sense; else the key at fault, spelled as in
 * docs/faults.md, and in *@allowed, to be freed, what it may be.
 */
const char *erdma_fault_config_check(const ErdmaFaultConfig *cfg,
                                     char **allowed);

/* The rule stays the caller's; destroy it before it goes. */
void erdma_fault_init(ErdmaFaultRule *r);
void erdma_fault_destroy(ErdmaFaultRule *r);
/* @cfg was checked.  Counters go on. */
void erdma_fault_set(ErdmaFaultRule *r, const ErdmaFaultConfig *cfg);
/* Switching on begins anew: counters and random numbers. */
void erdma_fault_enable(ErdmaFaultRule *r, bool is_enabled);
/* To a device, behind its other rules; or, with NULL, from it. */
void erdma_fault_attach(ErdmaFaultRule *r, ErdmaEngine *e);

/* Names of what a key may be, in fault-names.c */
typedef enum ErdmaFaultNames {
    ERDMA_FAULT_NAMES_ON,
    ERDMA_FAULT_NAMES_ACTION,
    ERDMA_FAULT_NAMES_COMMAND,  /* opcode of a command */
    ERDMA_FAULT_NAMES_OPERATION,    /* opcode of a WQE or CQE */
    ERDMA_FAULT_NAMES_CMD_STATUS,
    ERDMA_FAULT_NAMES_WC_STATUS,
    ERDMA_FAULT_NAMES_EVENT,
    ERDMA_FAULT_NAMES_QUEUE,
    ERDMA_FAULT_NAMES_DIRECTION,
} ErdmaFaultNames;

/* NULL when @value has no name */
const char *erdma_fault_name(ErdmaFaultNames names, uint32_t value);
/* False when there is no such name. */
bool erdma_fault_value(ErdmaFaultNames names, const char *name,
                       uint32_t *value);
/* All names, for a message; to be freed */
char *erdma_fault_list(ErdmaFaultNames names);

/* The points that are the shell's */

/* Is the version register to read as 0? */
bool erdma_engine_fault_version(ErdmaEngine *e);
/*
 * INIT was written.  Returns false when it is to fail; else *@delay_ns is
 * how long the guest must not see that it is done.
 */
bool erdma_engine_fault_init(ErdmaEngine *e, uint64_t *delay_ns);
/*
 * Delivers at once whatever is delayed, so that nothing of a fault is left:
 * before the machine's state is taken.
 */
void erdma_engine_fault_flush(ErdmaEngine *e);

#endif /* HW_ERDMA_FAULT_H */
