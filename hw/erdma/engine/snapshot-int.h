/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the engine's snapshot call of each other. */

#ifndef HW_ERDMA_ENGINE_SNAPSHOT_INT_H
#define HW_ERDMA_ENGINE_SNAPSHOT_INT_H

#include "engine/snapshot.h"
#include "engine/state.h"

/* How far loading has got in each array that QPs share */
typedef struct ErdmaEngineLoad {
    const ErdmaEngineSnap *snap;
    ErdmaXportLoad xport;
    uint32_t wqe;
    uint32_t sge;
    uint32_t response;
    uint32_t byte;
} ErdmaEngineLoad;

/* snapshot-queue.c: rings, event queues, completion queues */
void erdma_snap_save_ring(const ErdmaRing *r, ErdmaRingSnap *s);
/* Names the ring by @what and @number in errors. */
bool erdma_snap_load_ring(ErdmaRing *r, const ErdmaRingSnap *s,
                          uint8_t entry_shift, unsigned max_log2,
                          const char *what, uint32_t number, char **error);
void erdma_snap_save_queues(ErdmaEngine *e, ErdmaEngineSnap *s);
bool erdma_snap_load_queues(ErdmaEngine *e, const ErdmaEngineSnap *s,
                            char **error);

/* snapshot-mr.c: memory regions and extended doorbell pages */
void erdma_snap_save_mrs(ErdmaEngine *e, ErdmaEngineSnap *s);
bool erdma_snap_load_mrs(ErdmaEngine *e, const ErdmaEngineSnap *s,
                         char **error);
void erdma_snap_save_ext_db(const ErdmaEngine *e, ErdmaEngineSnap *s);
bool erdma_snap_load_ext_db(ErdmaEngine *e, const ErdmaEngineSnap *s,
                            char **error);

/* snapshot-qp.c */
void erdma_snap_save_qp(const ErdmaQp *qp, ErdmaEngineSnap *s,
                        uint64_t now_ns);
bool erdma_snap_load_qp(ErdmaEngine *e, const ErdmaQpSnap *s,
                        ErdmaEngineLoad *l, char **error);

/* snapshot-wqe.c: what a QP has under way */
void erdma_snap_save_wqes(const ErdmaQp *qp, ErdmaEngineSnap *s);
/* After the positions of @qp */
bool erdma_snap_load_wqes(ErdmaEngine *e, ErdmaQp *qp, const ErdmaQpSnap *s,
                          ErdmaEngineLoad *l, char **error);
/*
 * The messages of @qp by their number from @una_msn on: fills @msgs, all
 * NULL, and returns whether each of @n_msgs is there, once, and no other.
 */
bool erdma_snap_order_msgs(const ErdmaQp *qp, uint32_t una_msn,
                           ErdmaXportMsg **msgs, uint32_t n_msgs);

#endif /* HW_ERDMA_ENGINE_SNAPSHOT_INT_H */
