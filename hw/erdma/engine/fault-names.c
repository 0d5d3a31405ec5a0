/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults: names of points, actions, opcodes and statuses.  They are
 * those of erdma-abi.h, in small letters and with hyphens.
 *
 * Reference: docs/faults.md
 */

#include "qemu/osdep.h"
#include "engine/cmdq.h"
#include "engine/fault.h"
#include "erdma-abi.h"

typedef struct FaultName {
    const char *name;
    uint32_t value;
} FaultName;

static const FaultName names_on[] = {
    { "version", ERDMA_FAULT_ON_VERSION },
    { "init", ERDMA_FAULT_ON_INIT },
    { "command", ERDMA_FAULT_ON_COMMAND },
    { "wqe", ERDMA_FAULT_ON_WQE },
    { "message", ERDMA_FAULT_ON_MESSAGE },
    { "cqe", ERDMA_FAULT_ON_CQE },
    { "ceqe", ERDMA_FAULT_ON_CEQE },
    { "interrupt", ERDMA_FAULT_ON_INTERRUPT },
    { "dma", ERDMA_FAULT_ON_DMA },
    { "timer", ERDMA_FAULT_ON_TIMER },
    { NULL, 0 }
};

static const FaultName names_action[] = {
    { "absent", ERDMA_FAULT_ABSENT },
    { "delay", ERDMA_FAULT_DELAY },
    { "fail", ERDMA_FAULT_FAIL },
    { "drop", ERDMA_FAULT_DROP },
    { "duplicate", ERDMA_FAULT_DUPLICATE },
    { "status", ERDMA_FAULT_STATUS },
    { "index", ERDMA_FAULT_INDEX },
    { "overrun", ERDMA_FAULT_OVERRUN },
    { "aeqe", ERDMA_FAULT_AEQE },
    { "ceqe", ERDMA_FAULT_CEQE },
    { "interrupt", ERDMA_FAULT_INTERRUPT },
    { "qp-fatal", ERDMA_FAULT_QP_FATAL },
    { "qp-dead", ERDMA_FAULT_QP_DEAD },
    { NULL, 0 }
};

#define RDMA(_op)       (ERDMA_SUBMOD_RDMA << 8 | ERDMA_CMD_##_op)
#define COMMON(_op)     (ERDMA_SUBMOD_COMMON << 8 | ERDMA_CMD_##_op)

static const FaultName names_command[] = {
    { "query-device", RDMA(QUERY_DEVICE) },
    { "create-qp", RDMA(CREATE_QP) },
    { "destroy-qp", RDMA(DESTROY_QP) },
    { "modify-qp", RDMA(MODIFY_QP) },
    { "create-cq", RDMA(CREATE_CQ) },
    { "destroy-cq", RDMA(DESTROY_CQ) },
    { "reflush", RDMA(REFLUSH) },
    { "reg-mr", RDMA(REG_MR) },
    { "dereg-mr", RDMA(DEREG_MR) },
    { "create-eq", COMMON(CREATE_EQ) },
    { "destroy-eq", COMMON(DESTROY_EQ) },
    { "query-fw-info", COMMON(QUERY_FW_INFO) },
    { "conf-mtu", COMMON(CONF_MTU) },
    { "get-stats", COMMON(GET_STATS) },
    { "conf-device", COMMON(CONF_DEVICE) },
    { "alloc-db", COMMON(ALLOC_DB) },
    { "free-db", COMMON(FREE_DB) },
    { "any", ERDMA_FAULT_ANY },
    { NULL, 0 }
};

static const FaultName names_operation[] = {
    { "write", ERDMA_OP_WRITE },
    { "read", ERDMA_OP_READ },
    { "send", ERDMA_OP_SEND },
    { "send-with-imm", ERDMA_OP_SEND_WITH_IMM },
    { "receive", ERDMA_OP_RECEIVE },
    { "recv-imm", ERDMA_OP_RECV_IMM },
    { "recv-inv", ERDMA_OP_RECV_INV },
    { "write-with-imm", ERDMA_OP_WRITE_WITH_IMM },
    { "rsp-send-imm", ERDMA_OP_RSP_SEND_IMM },
    { "send-with-inv", ERDMA_OP_SEND_WITH_INV },
    { "reg-mr", ERDMA_OP_REG_MR },
    { "local-inv", ERDMA_OP_LOCAL_INV },
    { "read-with-inv", ERDMA_OP_READ_WITH_INV },
    { "atomic-cas", ERDMA_OP_ATOMIC_CAS },
    { "atomic-faa", ERDMA_OP_ATOMIC_FAA },
    { "any", ERDMA_FAULT_ANY },
    { NULL, 0 }
};

static const FaultName names_cmd_status[] = {
    { "ok", ERDMA_CMD_OK },
    { "opcode", ERDMA_CMD_ERR_OPCODE },
    { "format", ERDMA_CMD_ERR_FORMAT },
    { "index", ERDMA_CMD_ERR_INDEX },
    { "busy", ERDMA_CMD_ERR_BUSY },
    { "size", ERDMA_CMD_ERR_SIZE },
    { "limit", ERDMA_CMD_ERR_LIMIT },
    { "dma", ERDMA_CMD_ERR_DMA },
    { NULL, 0 }
};

static const FaultName names_wc_status[] = {
    { "success", ERDMA_WC_SUCCESS },
    { "general-err", ERDMA_WC_GENERAL_ERR },
    { "recv-wqe-format-err", ERDMA_WC_RECV_WQE_FORMAT_ERR },
    { "recv-stag-invalid-err", ERDMA_WC_RECV_STAG_INVALID_ERR },
    { "recv-addr-violation-err", ERDMA_WC_RECV_ADDR_VIOLATION_ERR },
    { "recv-right-violation-err", ERDMA_WC_RECV_RIGHT_VIOLATION_ERR },
    { "recv-pdid-err", ERDMA_WC_RECV_PDID_ERR },
    { "recv-warrping-err", ERDMA_WC_RECV_WARRPING_ERR },
    { "send-wqe-format-err", ERDMA_WC_SEND_WQE_FORMAT_ERR },
    { "send-wqe-ord-exceed", ERDMA_WC_SEND_WQE_ORD_EXCEED },
    { "send-stag-invalid-err", ERDMA_WC_SEND_STAG_INVALID_ERR },
    { "send-addr-violation-err", ERDMA_WC_SEND_ADDR_VIOLATION_ERR },
    { "send-right-violation-err", ERDMA_WC_SEND_RIGHT_VIOLATION_ERR },
    { "send-pdid-err", ERDMA_WC_SEND_PDID_ERR },
    { "send-warrping-err", ERDMA_WC_SEND_WARRPING_ERR },
    { "flush-err", ERDMA_WC_FLUSH_ERR },
    { "retry-exc-err", ERDMA_WC_RETRY_EXC_ERR },
    { NULL, 0 }
};

static const FaultName names_event[] = {
    { "qp-fatal", ERDMA_AE_TYPE_QP_FATAL },
    { "erq-err", ERDMA_AE_TYPE_ERQ_ERR },
    { "acc-err", ERDMA_AE_TYPE_ACC_ERR },
    { "cq-err", ERDMA_AE_TYPE_CQ_ERR },
    { "other", ERDMA_AE_TYPE_OTHER },
    { NULL, 0 }
};

static const FaultName names_queue[] = {
    { "any", ERDMA_FAULT_QUEUE_ANY },
    { "sq", ERDMA_FAULT_QUEUE_SQ },
    { "rq", ERDMA_FAULT_QUEUE_RQ },
    { NULL, 0 }
};

static const FaultName names_direction[] = {
    { "any", ERDMA_FAULT_READ_WRITE },
    { "read", ERDMA_FAULT_READ },
    { "write", ERDMA_FAULT_WRITE },
    { NULL, 0 }
};

static const FaultName *const tables[] = {
    [ERDMA_FAULT_NAMES_ON] = names_on,
    [ERDMA_FAULT_NAMES_ACTION] = names_action,
    [ERDMA_FAULT_NAMES_COMMAND] = names_command,
    [ERDMA_FAULT_NAMES_OPERATION] = names_operation,
    [ERDMA_FAULT_NAMES_CMD_STATUS] = names_cmd_status,
    [ERDMA_FAULT_NAMES_WC_STATUS] = names_wc_status,
    [ERDMA_FAULT_NAMES_EVENT] = names_event,
    [ERDMA_FAULT_NAMES_QUEUE] = names_queue,
    [ERDMA_FAULT_NAMES_DIRECTION] = names_direction,
};

const char *erdma_fault_name(ErdmaFaultNames names, uint32_t value)
{
    const FaultName *n;

    for (n = tables[names]; n->name; n++) {
        if (n->value == value) {
            return n->name;
        }
    }
    return NULL;
}

bool erdma_fault_value(ErdmaFaultNames names, const char *name,
                       uint32_t *value)
{
    const FaultName *n;

    for (n = tables[names]; n->name; n++) {
        if (!strcmp(n->name, name)) {
            *value = n->value;
            return true;
        }
    }
    return false;
}

char *erdma_fault_list(ErdmaFaultNames names)
{
    GString *text = g_string_new(NULL);
    const FaultName *n;

    for (n = tables[names]; n->name; n++) {
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", n->name);
    }
    return g_string_free(text, false);
}
