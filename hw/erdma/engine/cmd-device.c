/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands about the device as a whole, and extended doorbell pages.
 *
 * Reference: docs/specs/erdma.rst, "Commands"
 */

#include "qemu/osdep.h"
#include "engine/cmd.h"

uint8_t erdma_cmd_query_device(ErdmaEngine *e, ErdmaCmd *cmd)
{
    erdma_encode_query_device(&e->cfg, &cmd->resp0, &cmd->resp1);
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_query_fw_info(ErdmaEngine *e, ErdmaCmd *cmd)
{
    cmd->resp0 = e->cfg.fw_version;
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_conf_device(ErdmaEngine *e, ErdmaCmd *cmd)
{
    unsigned shift;

    if (!erdma_decode_conf_device(cmd->raw, &shift) ||
        shift == e->guest_page_shift) {
        return ERDMA_CMD_OK;
    }
    if (shift < ERDMA_PAGE_SHIFT_MIN || shift > ERDMA_GUEST_PAGE_SHIFT_MAX) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_SIZE);
    }
    /* The numbers of pages that were given away would change. */
    if (e->ext_db.n_used) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_BUSY);
    }
    if (e->cfg.has_ext_db && !erdma_extdb_layout(e, shift)) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_SIZE);
    }
    e->guest_page_shift = shift;
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_conf_mtu(ErdmaEngine *e, ErdmaCmd *cmd)
{
    uint32_t mtu = erdma_decode_conf_mtu(cmd->raw);

    /* The driver does not look at the answer: do what comes closest. */
    erdma_xport_set_mtu(e->xport, CLAMP(mtu, ERDMA_XPORT_MTU_MIN,
                                        ERDMA_XPORT_MTU_MAX));
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_get_stats(ErdmaEngine *e, ErdmaCmd *cmd)
{
    uint8_t raw[ERDMA_STATS_SIZE];
    uint64_t addr;
    uint32_t len;

    erdma_decode_get_stats(cmd->raw, &addr, &len);
    if (len < ERDMA_STATS_SIZE) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_SIZE);
    }
    erdma_encode_stats(raw, &e->stats, erdma_xport_stats(e->xport));
    if (!erdma_dma_write(e, addr, raw, sizeof(raw))) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_DMA);
    }
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_alloc_db(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaExtPages pages;
    uint8_t status;

    if (!e->cfg.has_ext_db) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_OPCODE);
    }
    /* Which of the three are wanted is not looked at: drivers want all. */
    status = erdma_extdb_alloc(e, &pages);
    if (status) {
        return erdma_cmd_refuse(cmd, status);
    }
    cmd->resp0 = erdma_encode_alloc_db(&pages);
    return ERDMA_CMD_OK;
}

uint8_t erdma_cmd_free_db(ErdmaEngine *e, ErdmaCmd *cmd)
{
    ErdmaExtPages pages;
    uint8_t status;

    if (!e->cfg.has_ext_db) {
        return erdma_cmd_refuse(cmd, ERDMA_CMD_ERR_OPCODE);
    }
    erdma_decode_free_db(cmd->raw, &pages);
    status = erdma_extdb_free(e, &pages);
    return status ? erdma_cmd_refuse(cmd, status) : ERDMA_CMD_OK;
}
