/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command queue: fetch, dispatch, complete in submission order.
 *
 * Every command that was posted gets exactly one completion, unknown and
 * malformed ones too: one that is missing makes the driver give the device
 * up, one too many stops its poll loop.
 *
 * Reference: docs/specs/erdma.rst, "Command queue"
 */

#include "qemu/osdep.h"
#include "engine/cmd.h"
#include "engine/cmdq.h"

/*
 * Work per run, in commands of the usual kind: a driver has at most 128
 * outstanding.
 */
#define CMDQ_BUDGET     32

/* Shortest request that has all fields of @name up to the 4-byte @field */
#define REQ_LEN(field)  (A_ERDMA_CMD_##field + 4)

typedef struct CmdType {
    uint8_t (*handler)(ErdmaEngine *e, ErdmaCmd *cmd);
    uint8_t min_len;
} CmdType;

/*
 * RoCEv2's commands are missing: the protocol register says iWARP.
 * CREATE_QP's length is that of the oldest driver; decode-cmd.c knows which
 * fields came later.
 */
static const CmdType rdma_cmds[] = {
    [ERDMA_CMD_QUERY_DEVICE] = { erdma_cmd_query_device, 8 },
    [ERDMA_CMD_CREATE_QP] = { erdma_cmd_create_qp,
                              A_ERDMA_CMD_CREATE_QP_SQ_PAGES },
    [ERDMA_CMD_DESTROY_QP] = { erdma_cmd_destroy_qp, REQ_LEN(DESTROY_QP_QPN) },
    [ERDMA_CMD_MODIFY_QP] = { erdma_cmd_modify_qp,
                              REQ_LEN(MODIFY_QP_RECV_NXT) },
    [ERDMA_CMD_CREATE_CQ] = { erdma_cmd_create_cq, REQ_LEN(CREATE_CQ_OFFSET) },
    [ERDMA_CMD_DESTROY_CQ] = { erdma_cmd_destroy_cq, REQ_LEN(DESTROY_CQ_CQN) },
    [ERDMA_CMD_REFLUSH] = { erdma_cmd_reflush, REQ_LEN(REFLUSH_RQ_PI) },
    [ERDMA_CMD_REG_MR] = { erdma_cmd_reg_mr,
                           A_ERDMA_CMD_REG_MR_PAGES +
                           ERDMA_MR_INLINE_PAGES * 8 },
    [ERDMA_CMD_DEREG_MR] = { erdma_cmd_dereg_mr, REQ_LEN(DEREG_MR_CFG) },
};

static const CmdType common_cmds[] = {
    [ERDMA_CMD_CREATE_EQ] = { erdma_cmd_create_eq,
                              REQ_LEN(CREATE_EQ_DBREC_H) },
    [ERDMA_CMD_DESTROY_EQ] = { erdma_cmd_destroy_eq, A_ERDMA_CMD_EQ_TYPE + 1 },
    [ERDMA_CMD_QUERY_FW_INFO] = { erdma_cmd_query_fw_info, 8 },
    [ERDMA_CMD_CONF_MTU] = { erdma_cmd_conf_mtu, REQ_LEN(CONF_MTU_MTU) },
    [ERDMA_CMD_GET_STATS] = { erdma_cmd_get_stats, REQ_LEN(GET_STATS_LEN) },
    [ERDMA_CMD_CONF_DEVICE] = { erdma_cmd_conf_device,
                                REQ_LEN(CONF_DEVICE_CFG) },
    [ERDMA_CMD_ALLOC_DB] = { erdma_cmd_alloc_db, REQ_LEN(EXT_DB_CFG) },
    [ERDMA_CMD_FREE_DB] = { erdma_cmd_free_db, A_ERDMA_CMD_EXT_DB_CDB + 2 },
};

static const CmdType *cmd_type(const ErdmaCmdHdr *hdr)
{
    const CmdType *t = NULL;

    if (hdr->sub_mod == ERDMA_SUBMOD_RDMA &&
        hdr->opcode < G_N_ELEMENTS(rdma_cmds)) {
        t = &rdma_cmds[hdr->opcode];
    } else if (hdr->sub_mod == ERDMA_SUBMOD_COMMON &&
               hdr->opcode < G_N_ELEMENTS(common_cmds)) {
        t = &common_cmds[hdr->opcode];
    }
    return t && t->handler ? t : NULL;
}

void erdma_cmdq_init(ErdmaEngine *e, uint64_t sq_addr, uint64_t cq_addr,
                     uint32_t depth_log2)
{
    ErdmaCmdq *q = &e->cmdq;

    memset(q, 0, sizeof(*q));
    erdma_ring_init_flat(&q->sq, sq_addr, depth_log2, ERDMA_WQEBB_SHIFT);
    /* Not armed: a driver that polls gets lost when an event arrives. */
    erdma_ring_init_flat(&q->cq.ring, cq_addr, depth_log2, ERDMA_CQE_SHIFT);
    q->cq.eqn = ERDMA_EQN_CMDQ;
}

void erdma_cmdq_db_sq(ErdmaEngine *e, uint64_t payload)
{
    ErdmaCmdq *q = &e->cmdq;
    uint16_t pi = FIELD_EX64(payload, ERDMA_DB_CMDQ_SQ, PI);
    uint16_t posted = pi - q->sq_ci;

    /* Forwards only, and no further than the ring is long */
    if (posted > erdma_ring_depth(&q->sq) ||
        posted < (uint16_t)(q->sq_pi - q->sq_ci)) {
        e->stats.db_ignored++;
        e->port->guest_error(e->opaque, "cmdq: doorbell index %u is not "
                             "within a ring behind %u", pi, q->sq_pi);
        return;
    }
    q->sq_pi = pi;
    erdma_engine_kick(e);
}

void erdma_cmdq_db_cq(ErdmaEngine *e, uint64_t payload)
{
    erdma_cq_latch(e, &e->cmdq.cq, payload);
}

/*
 * Copies the command at CI in, and sets *@n_wqebbs to what to skip.  The
 * entry's own count is trusted only as far as something was posted.
 */
static uint8_t cmdq_fetch(ErdmaEngine *e, ErdmaCmd *cmd, uint16_t *n_wqebbs)
{
    ErdmaCmdq *q = &e->cmdq;
    uint16_t posted = q->sq_pi - q->sq_ci;
    unsigned i;

    memset(cmd, 0, sizeof(*cmd));
    if (!erdma_ring_read(e, &q->sq, q->sq_ci, cmd->raw)) {
        /* How long it is will never be known: give the others up, too. */
        *n_wqebbs = posted;
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_DMA);
    }
    erdma_decode_cmd_hdr(cmd->raw, &cmd->hdr);
    *n_wqebbs = MIN(cmd->hdr.n_wqebbs, posted);
    if (*n_wqebbs < cmd->hdr.n_wqebbs ||
        cmd->hdr.n_wqebbs > ERDMA_MAX_WQEBBS) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_FORMAT);
    }
    for (i = 1; i < cmd->hdr.n_wqebbs; i++) {
        if (!erdma_ring_read(e, &q->sq, q->sq_ci + i,
                             cmd->raw + i * ERDMA_WQEBB_SIZE)) {
            return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_DMA);
        }
    }
    cmd->len = cmd->hdr.n_wqebbs * ERDMA_WQEBB_SIZE;
    return ERDMA_CMD_OK;
}

/* Does it end a connection, and free all that the peer has sent ahead? */
static bool cmd_disconnects(ErdmaEngine *e, const ErdmaCmd *cmd,
                            const CmdType *t)
{
    const ErdmaQp *qp;

    if (t->handler == erdma_cmd_destroy_qp) {
        return true;
    }
    qp = erdma_qp_get(e, erdma_decode_cmd_object(cmd->raw));
    return t->handler == erdma_cmd_modify_qp && qp && qp->conn;
}

/* Of the budget, for what costs as much as several usual commands */
static unsigned cmd_cost(ErdmaEngine *e, const ErdmaCmd *cmd,
                         const CmdType *t)
{
    if (cmd_disconnects(e, cmd, t)) {
        return CMDQ_BUDGET;
    }
    if (t->handler == erdma_cmd_alloc_db) {
        return CMDQ_BUDGET / 2; /* looks for three pages among all */
    }
    return t->handler == erdma_cmd_conf_device ? CMDQ_BUDGET / 4 : 1;
}

static uint8_t cmdq_execute(ErdmaEngine *e, ErdmaCmd *cmd, unsigned *cost)
{
    const CmdType *t = cmd_type(&cmd->hdr);

    if (!t) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_OPCODE);
    }
    if (cmd->len < t->min_len) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_FORMAT);
    }
    *cost += cmd_cost(e, cmd, t) - 1;
    return t->handler(e, cmd);
}

static void cmdq_complete(ErdmaEngine *e, const ErdmaCmd *cmd, uint16_t index,
                          uint8_t status)
{
    ErdmaCq *cq = &e->cmdq.cq;
    ErdmaCmdCqe cqe = {
        .opcode = cmd->hdr.opcode,
        .status = status,
        .index = index,
        .resp0 = cmd->resp0,
        .resp1 = cmd->resp1,
    };
    uint32_t id = cmd->hdr.sub_mod << 8 | cmd->hdr.opcode;
    bool was_broken = cq->is_broken;
    uint8_t raw[ERDMA_CQE_SIZE];

    e->stats.cmds++;
    erdma_trace(e, ERDMA_EV_CMD, id, status, 0);
    if (status) {
        e->stats.cmds_refused++;
        erdma_trace(e, ERDMA_EV_CMD_REFUSED, id, status, cmd->line);
    }
    erdma_encode_cmd_cqe(raw, &cqe, erdma_ring_phase(&cq->ring, cq->pi));
    if (!erdma_cq_write(e, cq, raw, false) && !was_broken) {
        e->port->guest_error(e->opaque, "cmdq: CQ memory is not writable");
    }
}

/*
 * What a fault does to the command that was fetched.  One that was delayed is
 * not judged again when its time has come.
 */
static void cmdq_judge(ErdmaEngine *e, const ErdmaCmd *cmd, ErdmaFaultCmd *f)
{
    if (e->faults.is_cmd_judged) {
        e->faults.is_cmd_judged = false;
        *f = (ErdmaFaultCmd) { .n_answers = 1 };
        return;
    }
    erdma_fault_command(e, cmd->hdr.sub_mod << 8 | cmd->hdr.opcode,
                        erdma_decode_cmd_object(cmd->raw), f);
}

/* Execute and answer, in the way of @f. */
static void cmdq_finish(ErdmaEngine *e, ErdmaCmd *cmd, uint16_t index,
                        uint8_t status, const ErdmaFaultCmd *f,
                        unsigned *cost)
{
    unsigned i;

    if (!status && !f->is_skipped) {
        status = cmdq_execute(e, cmd, cost);
    }
    if (f->has_status) {
        status = f->status;
    }
    for (i = 0; i < f->n_answers; i++) {
        cmdq_complete(e, cmd, index, status);
    }
}

/* Is a fault keeping the next command? */
static bool cmdq_must_wait(ErdmaEngine *e, uint64_t now_ns)
{
    if (e->faults.cmd_until_ns > now_ns) {
        return true;
    }
    if (e->faults.cmd_until_ns) {
        e->faults.cmd_until_ns = 0;
        e->faults.is_cmd_judged = true;
    }
    return false;
}

bool erdma_cmdq_run(ErdmaEngine *e, uint64_t now_ns)
{
    ErdmaCmdq *q = &e->cmdq;
    unsigned cost = 0;

    e->now_ns = now_ns;
    if (cmdq_must_wait(e, now_ns)) {
        return false;
    }
    while (cost < CMDQ_BUDGET && q->sq_pi != q->sq_ci) {
        uint16_t index = q->sq_ci;
        ErdmaFaultCmd fault = { .n_answers = 1 };
        uint16_t n_wqebbs;
        ErdmaCmd cmd;
        uint8_t status;

        status = cmdq_fetch(e, &cmd, &n_wqebbs);
        cost++;
        if (!status && (erdma_fault_watches(e, ERDMA_FAULT_ON_COMMAND) ||
                        e->faults.is_cmd_judged)) {
            cmdq_judge(e, &cmd, &fault);
            if (fault.is_delayed) {
                return false;
            }
        }
        q->sq_ci += n_wqebbs;
        cmdq_finish(e, &cmd, index, status, &fault, &cost);
    }
    return q->sq_pi != q->sq_ci;
}
