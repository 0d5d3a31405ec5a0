/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands about event queues, completion queues and queue pairs.
 *
 * Reference: docs/specs/erdma.rst, "Commands"
 */

#include "qemu/osdep.h"
#include "engine/cmd.h"

/* The CEQ that a command names, live or not; NULL when there cannot be one */
static ErdmaEq *named_ceq(ErdmaEngine *e, const ErdmaCmdEq *req)
{
    /* EQN 0 is the command queue's, which no command touches. */
    if (!req->eqn || req->eqn >= e->cfg.n_vectors) {
        return NULL;
    }
    return &e->ceqs[req->eqn];
}

uint8_t erdma_cmd_create_eq(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaCmdEq req;
    ErdmaEq *eq;

    erdma_decode_create_eq(cmd->raw, &req);
    if (req.type != ERDMA_EQ_TYPE_CEQ) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_FORMAT);
    }
    eq = named_ceq(e, &req);
    if (!eq || req.vector >= e->cfg.n_vectors) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
    }
    if (req.depth_log2 > ERDMA_MAX_EQ_LOG2 ||
        req.addr & (ERDMA_EQE_SIZE - 1)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_SIZE);
    }
    if (eq->is_live) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_BUSY);
    }
    erdma_eq_create(e, eq, req.addr, req.depth_log2, req.vector, req.dbrec);
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_destroy_eq(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaCmdEq req;
    ErdmaEq *eq;

    erdma_decode_destroy_eq(cmd->raw, &req);
    eq = named_ceq(e, &req);
    if (!eq || !eq->is_live) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
    }
    erdma_eq_destroy(eq);
    return ERDMA_CMD_OK;
}

/* Lays the ring out; false when the description does not cover it. */
static bool cq_ring(ErdmaRing *r, const ErdmaCmdCreateCq *req)
{
    memset(r, 0, sizeof(*r));
    r->depth_log2 = req->depth_log2;
    r->entry_shift = ERDMA_CQE_SHIFT;
    r->page_shift = req->page_shift;
    r->first_off = req->first_off;
    r->n_pages = req->n_pages;
    /*
     * A single page comes by itself, several in a table.  The level bit is
     * of no use: Linux 6.1 sets it for a single page, too.
     */
    r->has_table = req->n_pages > 1;
    r->table = req->addr;
    r->pages[0] = req->addr;
    r->cached_page = UINT32_MAX;
    return erdma_ring_is_valid(r);
}

uint8_t erdma_cmd_create_cq(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaCmdCreateCq req;
    uint32_t ctx = 0;
    ErdmaRing ring;
    ErdmaCq *cq;

    erdma_decode_create_cq(cmd->raw, cmd->len, &req);
    if (!req.cqn || req.cqn >= erdma_engine_max_cq(e)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
    }
    if (!req.eqn || req.eqn >= ERDMA_MAX_VECTORS ||
        !erdma_eq_get(e, req.eqn)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
    }
    if (req.depth_log2 > e->cfg.max_cqe_log2 || !cq_ring(&ring, &req)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_SIZE);
    }
    if (req.has_db_page && e->cfg.has_ext_db) {
        ctx = erdma_extdb_owner(e, req.db_page);
        if (!ctx) {
            return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
        }
    }
    if (erdma_cq_get(e, req.cqn)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_BUSY);
    }

    cq = g_new0(ErdmaCq, 1);
    cq->cqn = req.cqn;
    cq->eqn = req.eqn;
    cq->ring = ring;
    cq->dbrec = req.dbrec;
    cq->db_ctx = ctx;
    erdma_cq_add(e, cq);
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_destroy_cq(ErdmaEngine *e, ErdmaCmd *cmd)
{
    if (!erdma_cq_destroy(e, erdma_decode_destroy(cmd->raw))) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
    }
    return ERDMA_CMD_OK;
}

/* Both pages must be of one context. */
static bool qp_db_ctx(ErdmaEngine *e, const ErdmaCmdQpDb *db, uint32_t *ctx)
{
    *ctx = 0;
    if (!db->has_db_pages || !e->cfg.has_ext_db) {
        return true;
    }
    *ctx = erdma_extdb_owner(e, db->sq_page);
    return *ctx && *ctx == erdma_extdb_owner(e, db->rq_page);
}

uint8_t erdma_cmd_create_qp(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaCreateQp req;
    ErdmaCmdQpDb db;
    uint32_t cookie;
    uint8_t status;

    erdma_decode_create_qp(cmd->raw, cmd->len, &req, &db);
    if (!qp_db_ctx(e, &db, &req.db_ctx)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_INDEX);
    }
    status = erdma_qp_create(e, &req, &cookie);
    if (status) {
        return erdma_cmd_refuse(cmd, status);
    }
    cmd->resp0 = cookie;
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_destroy_qp(ErdmaEngine *e, ErdmaCmd *cmd)
{
    uint8_t status = erdma_qp_destroy(e, erdma_decode_destroy(cmd->raw));

    return status ? erdma_cmd_refuse(cmd, status) : ERDMA_CMD_OK;
}

uint8_t erdma_cmd_modify_qp(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaModifyQp req;
    uint8_t status;

    erdma_decode_modify_qp(cmd->raw, &req);
    status = erdma_qp_modify(e, &req, e->now_ns);
    return status ? erdma_cmd_refuse(cmd, status) : ERDMA_CMD_OK;
}

uint8_t erdma_cmd_reflush(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaCmdReflush req;
    uint8_t status;

    erdma_decode_reflush(cmd->raw, &req);
    status = erdma_qp_reflush(e, req.qpn, req.sq_pi, req.rq_pi);
    return status ? erdma_cmd_refuse(cmd, status) : ERDMA_CMD_OK;
}
