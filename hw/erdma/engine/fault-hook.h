/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults, as the rest of the engine calls them.
 *
 *     if (erdma_fault_watches(e, ERDMA_FAULT_ON_CQE)) { ... }
 *
 * guards each call, so that a device without rules tests one word.
 */

#ifndef HW_ERDMA_FAULT_HOOK_H
#define HW_ERDMA_FAULT_HOOK_H

#include "engine/cq.h"
#include "engine/eq.h"
#include "engine/fault.h"
#include "engine/qp.h"

/* fault-run.c: what was put off */
typedef struct ErdmaFaultLate ErdmaFaultLate;

typedef struct ErdmaFaults {
    uint32_t points;            /* bit per ErdmaFaultPoint that is watched */
    QTAILQ_HEAD(, ErdmaFaultRule) rules;
    QTAILQ_HEAD(, ErdmaFaultLate) late; /* by due time */
    /* The next command waits until then; 0: it does not. */
    uint64_t cmd_until_ns;
    bool is_cmd_judged;         /* it has waited */
} ErdmaFaults;

#define erdma_fault_watches(e, point) \
    ((e)->faults.points & (1u << (point)))

/* What an event is about; what does not apply is ERDMA_FAULT_ANY. */
typedef struct ErdmaFaultEvent {
    uint32_t opcode;
    uint32_t qpn;
    uint32_t cqn;
    uint32_t vector;
    ErdmaFaultQueue queue;
    ErdmaFaultDirection direction;
    uint64_t size;
} ErdmaFaultEvent;

/*
 * Shows the event to all rules of @point and does what comes in addition to
 * it.  Returns the rule that changes it, or NULL.
 */
const ErdmaFaultConfig *erdma_fault_meet(ErdmaEngine *e,
                                         ErdmaFaultPoint point,
                                         const ErdmaFaultEvent *ev);
static inline void erdma_fault_event_init(ErdmaFaultEvent *ev)
{
    *ev = (ErdmaFaultEvent) {
        .opcode = ERDMA_FAULT_ANY,
        .qpn = ERDMA_FAULT_ANY,
        .cqn = ERDMA_FAULT_ANY,
        .vector = ERDMA_FAULT_ANY,
    };
}

void erdma_faults_init(ErdmaEngine *e);
/* Engine reset: what is put off is forgotten, rules stay. */
void erdma_faults_reset(ErdmaEngine *e);
/* Lets go of the rules. */
void erdma_faults_exit(ErdmaEngine *e);
/* Timers that are due, and what was put off until now */
void erdma_faults_run(ErdmaEngine *e, uint64_t now_ns);
/* When to call it next */
uint64_t erdma_faults_deadline(const ErdmaEngine *e);
/* The timer of @r has run out, its numbers say whom it hits. */
void erdma_fault_tick(ErdmaEngine *e, ErdmaFaultRule *r);

/* fault-run.c: write the CEQE of CQ @cqn, or raise @vector, later */
void erdma_fault_put_off_ceqe(ErdmaEngine *e, const ErdmaCq *cq,
                              uint64_t delay_ns);
void erdma_fault_put_off_vector(ErdmaEngine *e, unsigned vector,
                                uint64_t delay_ns);
/* What comes in addition; @ev says to which object, @cfg may. */
void erdma_fault_act(ErdmaEngine *e, const ErdmaFaultConfig *cfg,
                     const ErdmaFaultEvent *ev);

/*
 * The points.  erdma_fault_command(): what happens to the command that was
 * fetched.
 */
typedef struct ErdmaFaultCmd {
    bool is_delayed;            /* not now: come back, it is not consumed */
    bool is_skipped;            /* do not execute it */
    bool has_status;            /* say @status, whatever came out */
    uint8_t status;
    unsigned n_answers;         /* completions */
} ErdmaFaultCmd;

void erdma_fault_command(ErdmaEngine *e, uint32_t opcode, uint32_t object,
                         ErdmaFaultCmd *f);
/* Status that the request fails with, or 0; the QP may have died. */
uint8_t erdma_fault_wqe(ErdmaEngine *e, ErdmaQp *qp, uint8_t opcode);
/* The QP may have died or failed. */
void erdma_fault_message(ErdmaEngine *e, ErdmaQp *qp);
/* May change @cqe; returns how often it is to be written. */
unsigned erdma_fault_cqe(ErdmaEngine *e, ErdmaCq *cq, ErdmaCqe *cqe);
/* How often an event is to be written now */
unsigned erdma_fault_ceqe(ErdmaEngine *e, const ErdmaCq *cq);
/* Is the vector to be raised now? */
bool erdma_fault_interrupt(ErdmaEngine *e, unsigned vector);
/* Does the access fail? */
bool erdma_fault_dma(ErdmaEngine *e, bool is_write, size_t len);

#endif /* HW_ERDMA_FAULT_HOOK_H */
