/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion statuses: which failure becomes which code for whom.
 *
 * Reference: docs/specs/erdma.rst, "Error semantics"
 */

#ifndef HW_ERDMA_STATUS_H
#define HW_ERDMA_STATUS_H

#include "engine/mr.h"

/* A buffer of our own send WQE could not be used: status of its CQE */
uint8_t erdma_status_local(ErdmaMrStatus s);

/*
 * A request of the peer could not be served, or a receive buffer not be
 * used: what the peer's CQE, or the receive's, says
 */
uint8_t erdma_status_remote(ErdmaMrStatus s);

/*
 * What a requester reports for the status that the peer named.  The peer is
 * not trusted: only codes that a responder may use pass.
 */
uint8_t erdma_status_from_peer(uint8_t status);

/*
 * Opcode for the CQE of a send WQE whose opcode field was @opcode.  Drivers
 * index tables with it unchecked, so only send opcodes ever pass.
 */
uint8_t erdma_status_sq_opcode(uint8_t opcode);

#endif /* HW_ERDMA_STATUS_H */
