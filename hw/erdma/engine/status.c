/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion statuses: which failure becomes which code for whom.
 *
 * Reference: docs/specs/erdma.rst, "Error semantics"
 */

#include "qemu/osdep.h"
#include "engine/status.h"

uint8_t erdma_status_local(ErdmaMrStatus s)
{
    switch (s) {
    case ERDMA_MR_OK:
        return ERDMA_WC_SUCCESS;
    case ERDMA_MR_ERR_KEY:
        return ERDMA_WC_SEND_STAG_INVALID_ERR;
    case ERDMA_MR_ERR_PD:
        return ERDMA_WC_SEND_PDID_ERR;
    case ERDMA_MR_ERR_RIGHT:
        return ERDMA_WC_SEND_RIGHT_VIOLATION_ERR;
    case ERDMA_MR_ERR_WRAP:
        return ERDMA_WC_SEND_WARRPING_ERR;
    case ERDMA_MR_ERR_RANGE:
        return ERDMA_WC_SEND_ADDR_VIOLATION_ERR;
    case ERDMA_MR_ERR_DMA:
        break;
    }
    return ERDMA_WC_GENERAL_ERR;
}

uint8_t erdma_status_remote(ErdmaMrStatus s)
{
    switch (s) {
    case ERDMA_MR_OK:
        return ERDMA_WC_SUCCESS;
    case ERDMA_MR_ERR_KEY:
        return ERDMA_WC_RECV_STAG_INVALID_ERR;
    case ERDMA_MR_ERR_PD:
        return ERDMA_WC_RECV_PDID_ERR;
    case ERDMA_MR_ERR_RIGHT:
        return ERDMA_WC_RECV_RIGHT_VIOLATION_ERR;
    case ERDMA_MR_ERR_WRAP:
        return ERDMA_WC_RECV_WARRPING_ERR;
    case ERDMA_MR_ERR_RANGE:
        return ERDMA_WC_RECV_ADDR_VIOLATION_ERR;
    case ERDMA_MR_ERR_DMA:
        break;
    }
    return ERDMA_WC_GENERAL_ERR;
}

uint8_t erdma_status_from_peer(uint8_t status)
{
    if (status >= ERDMA_WC_RECV_STAG_INVALID_ERR &&
        status <= ERDMA_WC_RECV_WARRPING_ERR) {
        return status;
    }
    return ERDMA_WC_GENERAL_ERR;
}

uint8_t erdma_status_sq_opcode(uint8_t opcode)
{
    switch (opcode) {
    case ERDMA_OP_WRITE:
    case ERDMA_OP_READ:
    case ERDMA_OP_SEND:
    case ERDMA_OP_SEND_WITH_IMM:
    case ERDMA_OP_WRITE_WITH_IMM:
    case ERDMA_OP_SEND_WITH_INV:
    case ERDMA_OP_REG_MR:
    case ERDMA_OP_LOCAL_INV:
    case ERDMA_OP_READ_WITH_INV:
    case ERDMA_OP_ATOMIC_CAS:
    case ERDMA_OP_ATOMIC_FAA:
        return opcode;
    default:
        return ERDMA_OP_WRITE;
    }
}
