/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands about memory regions.
 *
 * Reference: docs/specs/erdma.rst, "Memory regions"
 */

#include "qemu/osdep.h"
#include "engine/cmd.h"

uint8_t erdma_cmd_reg_mr(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaRegMr reg;
    uint8_t status;

    erdma_decode_reg_mr(cmd->raw, &reg);
    status = erdma_mr_create(e, &reg);
    return status ? erdma_cmd_refuse(cmd, status) : ERDMA_CMD_OK;
}

uint8_t erdma_cmd_dereg_mr(ErdmaEngine *e, ErdmaCmd *cmd)
{
    /*
     * The key byte in the request is the driver's idea of it; a fast
     * registration may have given the region another one.
     */
    uint8_t status = erdma_mr_destroy(e, erdma_decode_dereg_mr(cmd->raw));

    return status ? erdma_cmd_refuse(cmd, status) : ERDMA_CMD_OK;
}
