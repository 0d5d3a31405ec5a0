/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a reset leaves behind: objects that nothing can find any more and whose
 * memory is freed bit by bit, since there can be several 100,000 of them.
 */

#ifndef HW_ERDMA_LEFTOVER_H
#define HW_ERDMA_LEFTOVER_H

#include "qemu/queue.h"
#include "engine/table.h"
#include "xport/xport.h"

struct ErdmaEngine;

/* All objects of one life, and the transport of its connections */
typedef struct ErdmaLeftover {
    ErdmaTable qps;
    ErdmaTable cqs;
    ErdmaTable mrs;
    ErdmaXport *xport;
    QTAILQ_ENTRY(ErdmaLeftover) next;
} ErdmaLeftover;

typedef QTAILQ_HEAD(ErdmaLeftoverList, ErdmaLeftover) ErdmaLeftoverList;

/*
 * Takes all QPs, CQs and regions away from the engine, in a time that does not
 * depend on their number.  Returns false, having done nothing, when they are
 * so few that they can just as well be freed now, or have to be.
 */
bool erdma_leftover_take(struct ErdmaEngine *e);

/* Frees some; returns true while there are more. */
bool erdma_leftover_run(struct ErdmaEngine *e);

/* Frees all. */
void erdma_leftover_finish(struct ErdmaEngine *e);

#endif /* HW_ERDMA_LEFTOVER_H */
