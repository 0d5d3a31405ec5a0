/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a reset leaves behind, see leftover.h.
 *
 * Nothing here adds up: a run frees more than its commands can make, so that
 * what is left never exceeds what there was at the first of the resets.
 */

#include "qemu/osdep.h"
#include "engine/leftover.h"
#include "engine/state.h"

/*
 * What one run frees, in blocks of memory, more or less; a reset by itself
 * frees as much and no more.
 */
#define LEFTOVER_BUDGET     1024
#define QP_COST             4

/* Segments that wait in order: too many to be freed in a reset */
#define MANY_SEGMENTS       LEFTOVER_BUDGET

static bool is_little(const ErdmaEngine *e)
{
    return e->qps.count * QP_COST + e->cqs.count + e->mrs.count <=
           LEFTOVER_BUDGET && e->n_sends <= LEFTOVER_BUDGET &&
           e->n_responses <= LEFTOVER_BUDGET &&
           erdma_xport_n_held(e->xport) <= MANY_SEGMENTS;
}

static void move_table(ErdmaTable *to, ErdmaTable *from)
{
    *to = *from;
    erdma_table_init(from, to->capacity);
}

bool erdma_leftover_take(ErdmaEngine *e)
{
    ErdmaLeftover *left;
    ErdmaXport *next;

    if (is_little(e)) {
        return false;
    }
    next = erdma_xport_successor(e->xport);
    if (!next) {
        return false;
    }
    left = g_new0(ErdmaLeftover, 1);
    left->xport = e->xport;
    e->xport = next;
    move_table(&left->qps, &e->qps);
    move_table(&left->cqs, &e->cqs);
    move_table(&left->mrs, &e->mrs);
    QTAILQ_INIT(&e->qp_work);
    QTAILQ_INIT(&e->cq_work);
    e->cmdq.cq.has_db = false;
    e->n_sends = 0;
    e->n_responses = 0;
    QTAILQ_INSERT_TAIL(&e->leftovers, left, next);
    return true;
}

/* The object of the lowest number, taken out */
static void *pop(ErdmaTable *t, uint32_t *index)
{
    void *obj = erdma_table_next(t, index);

    if (obj) {
        erdma_table_remove(t, *index);
    }
    return obj;
}

static unsigned free_qp(ErdmaEngine *e, ErdmaQp *qp)
{
    unsigned cost = QP_COST + qp->n_sends + qp->n_responses;

    if (qp->conn) {
        cost += erdma_xport_conn_n_held(qp->conn);
    }
    erdma_qp_free_left(e, qp);
    return cost;
}

/* Frees for @budget; returns what is left of that, 0 when there is more. */
static unsigned free_some(ErdmaEngine *e, ErdmaLeftover *left,
                          unsigned budget)
{
    uint32_t qpn = 0, cqn = 0, index = 0;
    void *obj;

    while (budget && (obj = pop(&left->qps, &qpn))) {
        budget -= MIN(budget, free_qp(e, obj));
    }
    while (budget && (obj = pop(&left->cqs, &cqn))) {
        g_free(obj);
        budget--;
    }
    while (budget && (obj = pop(&left->mrs, &index))) {
        g_free(obj);
        budget--;
    }
    return budget;
}

bool erdma_leftover_run(ErdmaEngine *e)
{
    unsigned budget = LEFTOVER_BUDGET;
    ErdmaLeftover *left;

    while ((left = QTAILQ_FIRST(&e->leftovers))) {
        budget = free_some(e, left, budget);
        if (!budget) {
            return true;
        }
        QTAILQ_REMOVE(&e->leftovers, left, next);
        erdma_table_destroy(&left->qps);
        erdma_table_destroy(&left->cqs);
        erdma_table_destroy(&left->mrs);
        erdma_xport_free(left->xport);
        g_free(left);
        /* The tables and the transport themselves */
        budget -= MIN(budget, QP_COST);
    }
    return false;
}

void erdma_leftover_finish(ErdmaEngine *e)
{
    while (erdma_leftover_run(e)) {
        /* until there is none */
    }
}
