/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command handlers: what cmdq.c calls for each {sub-module, opcode}.
 *
 * A handler gets the request's raw bytes, decodes them once, and returns
 * ERDMA_CMD_OK or ERDMA_CMD_ERR_*.  It leaves nothing half done: on an error
 * the device is as it was before.
 */

#ifndef HW_ERDMA_CMD_H
#define HW_ERDMA_CMD_H

#include "engine/decode-cmd.h"
#include "engine/state.h"

typedef struct ErdmaCmd {
    ErdmaCmdHdr hdr;
    size_t len;                 /* bytes of @raw that the driver wrote */
    uint8_t raw[ERDMA_CMD_MAX_SIZE];    /* zeroes behind @len */
    /* answer */
    uint64_t resp0;
    uint64_t resp1;
    unsigned line;              /* of the check that failed, for the trace */
} ErdmaCmd;

/* return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_*); */
#define erdma_cmd_refuse(cmd, status) ((cmd)->line = __LINE__, (status))

/* cmd-device.c */
uint8_t erdma_cmd_query_device(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_query_fw_info(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_conf_device(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_conf_mtu(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_get_stats(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_alloc_db(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_free_db(ErdmaEngine *e, ErdmaCmd *cmd);

/* cmd-queue.c */
uint8_t erdma_cmd_create_eq(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_destroy_eq(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_create_cq(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_destroy_cq(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_create_qp(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_destroy_qp(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_modify_qp(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_reflush(ErdmaEngine *e, ErdmaCmd *cmd);

/* cmd-mr.c */
uint8_t erdma_cmd_reg_mr(ErdmaEngine *e, ErdmaCmd *cmd);
uint8_t erdma_cmd_dereg_mr(ErdmaEngine *e, ErdmaCmd *cmd);

#endif /* HW_ERDMA_CMD_H */
