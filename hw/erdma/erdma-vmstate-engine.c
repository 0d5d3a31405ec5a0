/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration stream: the engine, engine/snapshot.h.
 *
 * What a field means and may be is said where the snapshot is; loading that
 * checks it.  A field that comes later goes into a subsection, so that streams
 * of before can still be read.
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "erdma-vmstate.h"

/* Before anything is allocated for them */
static bool erdma_vm_engine_fits(void *opaque, int version_id)
{
    g_autofree char *error = NULL;

    if (!erdma_engine_snap_fits(opaque, &error)) {
        error_report("erdma: migration: %s", error);
        return false;
    }
    return true;
}

static const VMStateDescription vmstate_erdma_ring_snap = {
    .name = "erdma/ring",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(depth_log2, ErdmaRingSnap),
        VMSTATE_UINT8(page_shift, ErdmaRingSnap),
        VMSTATE_UINT32(first_off, ErdmaRingSnap),
        VMSTATE_UINT32(n_pages, ErdmaRingSnap),
        VMSTATE_UINT8(has_table, ErdmaRingSnap),
        VMSTATE_UINT64(table, ErdmaRingSnap),
        VMSTATE_UINT64_ARRAY(pages, ErdmaRingSnap, ERDMA_QP_INLINE_PAGES),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_eq_snap = {
    .name = "erdma/eq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(is_live, ErdmaEqSnap),
        VMSTATE_UINT8(is_armed, ErdmaEqSnap),
        VMSTATE_UINT8(vector, ErdmaEqSnap),
        VMSTATE_UINT8(depth_log2, ErdmaEqSnap),
        VMSTATE_UINT64(addr, ErdmaEqSnap),
        VMSTATE_UINT32(pi, ErdmaEqSnap),
        VMSTATE_UINT16(ci, ErdmaEqSnap),
        VMSTATE_UINT64(dbrec, ErdmaEqSnap),
        VMSTATE_UINT64(n_interrupts, ErdmaEqSnap),
        VMSTATE_UINT8(has_db, ErdmaEqSnap),
        VMSTATE_UINT64(db, ErdmaEqSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_cq_snap = {
    .name = "erdma/cq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqn, ErdmaCqSnap),
        VMSTATE_UINT32(eqn, ErdmaCqSnap),
        VMSTATE_STRUCT(ring, ErdmaCqSnap, 1, vmstate_erdma_ring_snap,
                       ErdmaRingSnap),
        VMSTATE_UINT32(pi, ErdmaCqSnap),
        VMSTATE_UINT8(arm, ErdmaCqSnap),
        VMSTATE_UINT8(has_solicited, ErdmaCqSnap),
        VMSTATE_UINT32(solicited_pi, ErdmaCqSnap),
        VMSTATE_UINT32(announced_pi, ErdmaCqSnap),
        VMSTATE_UINT8(is_broken, ErdmaCqSnap),
        VMSTATE_UINT32(db_ctx, ErdmaCqSnap),
        VMSTATE_UINT64(dbrec, ErdmaCqSnap),
        VMSTATE_UINT8(has_db, ErdmaCqSnap),
        VMSTATE_UINT8(db_any, ErdmaCqSnap),
        VMSTATE_UINT32(db_ci, ErdmaCqSnap),
        VMSTATE_UINT8(has_ci, ErdmaCqSnap),
        VMSTATE_UINT64(n_events, ErdmaCqSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_aeqe_snap = {
    .name = "erdma/aeqe",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(type, ErdmaAeqeSnap),
        VMSTATE_UINT32(id, ErdmaAeqeSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_held_snap = {
    .name = "erdma/held",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqn, ErdmaHeldSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_mr_snap = {
    .name = "erdma/mr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(index, ErdmaMrSnap),
        VMSTATE_UINT8(key, ErdmaMrSnap),
        VMSTATE_UINT8(type, ErdmaMrSnap),
        VMSTATE_UINT8(access, ErdmaMrSnap),
        VMSTATE_UINT8(is_valid, ErdmaMrSnap),
        VMSTATE_UINT32(pdn, ErdmaMrSnap),
        VMSTATE_UINT64(start, ErdmaMrSnap),
        VMSTATE_UINT64(len, ErdmaMrSnap),
        VMSTATE_UINT8(page_shift, ErdmaMrSnap),
        VMSTATE_UINT8(level, ErdmaMrSnap),
        VMSTATE_UINT8(table_shift, ErdmaMrSnap),
        VMSTATE_UINT64(n_pages, ErdmaMrSnap),
        VMSTATE_UINT64(max_pages, ErdmaMrSnap),
        VMSTATE_UINT8(is_inline, ErdmaMrSnap),
        VMSTATE_UINT64(table, ErdmaMrSnap),
        VMSTATE_UINT64_ARRAY(pages, ErdmaMrSnap, ERDMA_MR_INLINE_PAGES),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_ext_page_snap = {
    .name = "erdma/ext-page",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(page, ErdmaExtPageSnap),
        VMSTATE_UINT32(ctx, ErdmaExtPageSnap),
        VMSTATE_UINT8(role, ErdmaExtPageSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_sge_snap = {
    .name = "erdma/sge",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(addr, ErdmaSgeSnap),
        VMSTATE_UINT32(len, ErdmaSgeSnap),
        VMSTATE_UINT32(key, ErdmaSgeSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_wqe_snap = {
    .name = "erdma/wqe",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT16(index, ErdmaWqeSnap),
        VMSTATE_UINT8(n_wqebbs, ErdmaWqeSnap),
        VMSTATE_UINT8(opcode, ErdmaWqeSnap),
        VMSTATE_UINT8(is_signalled, ErdmaWqeSnap),
        VMSTATE_UINT8(is_held, ErdmaWqeSnap),
        VMSTATE_UINT8(is_unanswered, ErdmaWqeSnap),
        VMSTATE_UINT8(is_done, ErdmaWqeSnap),
        VMSTATE_UINT8(status, ErdmaWqeSnap),
        VMSTATE_UINT8(n_sges, ErdmaWqeSnap),
        VMSTATE_UINT8(n_inline, ErdmaWqeSnap),
        VMSTATE_UINT32(len, ErdmaWqeSnap),
        VMSTATE_UINT32(inv_key, ErdmaWqeSnap),
        VMSTATE_UINT32(msn, ErdmaWqeSnap),
        VMSTATE_STRUCT(hdr, ErdmaWqeSnap, 1, vmstate_erdma_hdr_snap,
                       ErdmaHdrSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_response_snap = {
    .name = "erdma/response",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(msn, ErdmaResponseSnap),
        VMSTATE_UINT32(rkey, ErdmaResponseSnap),
        VMSTATE_UINT64(raddr, ErdmaResponseSnap),
        VMSTATE_STRUCT(hdr, ErdmaResponseSnap, 1, vmstate_erdma_hdr_snap,
                       ErdmaHdrSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_qp_snap = {
    .name = "erdma/qp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, ErdmaQpSnap),
        VMSTATE_UINT32(pdn, ErdmaQpSnap),
        VMSTATE_UINT32(sq_cqn, ErdmaQpSnap),
        VMSTATE_UINT32(rq_cqn, ErdmaQpSnap),
        VMSTATE_UINT32(cookie, ErdmaQpSnap),
        VMSTATE_UINT16(local_port, ErdmaQpSnap),
        VMSTATE_UINT16(peer_port, ErdmaQpSnap),
        VMSTATE_UINT8(is_kernel, ErdmaQpSnap),
        VMSTATE_UINT32(db_ctx, ErdmaQpSnap),
        VMSTATE_UINT8(state, ErdmaQpSnap),
        VMSTATE_UINT8(last_error, ErdmaQpSnap),
        VMSTATE_UINT8(has_conn, ErdmaQpSnap),
        VMSTATE_UINT32(rx_msn, ErdmaQpSnap),
        VMSTATE_STRUCT(sq, ErdmaQpSnap, 1, vmstate_erdma_ring_snap,
                       ErdmaRingSnap),
        VMSTATE_UINT16(sq_pi, ErdmaQpSnap),
        VMSTATE_UINT16(sq_next, ErdmaQpSnap),
        VMSTATE_UINT16(sq_ci, ErdmaQpSnap),
        VMSTATE_STRUCT(rq, ErdmaQpSnap, 1, vmstate_erdma_ring_snap,
                       ErdmaRingSnap),
        VMSTATE_UINT16(rq_pi, ErdmaQpSnap),
        VMSTATE_UINT16(rq_ci, ErdmaQpSnap),
        VMSTATE_UINT64(sq_dbrec, ErdmaQpSnap),
        VMSTATE_UINT64(rq_dbrec, ErdmaQpSnap),
        VMSTATE_UINT8(has_bad_db, ErdmaQpSnap),
        VMSTATE_UINT8(has_failed_wqe, ErdmaQpSnap),
        VMSTATE_UINT16(failed_index, ErdmaQpSnap),
        VMSTATE_UINT8(failed_status, ErdmaQpSnap),
        VMSTATE_UINT32(n_sends, ErdmaQpSnap),
        VMSTATE_UINT32(n_orphans, ErdmaQpSnap),
        VMSTATE_UINT8(sq_wait, ErdmaQpSnap),
        VMSTATE_UINT32(n_responses, ErdmaQpSnap),
        VMSTATE_UINT8(is_rnr, ErdmaQpSnap),
        VMSTATE_UINT8(is_full, ErdmaQpSnap),
        VMSTATE_UINT8(has_rqe, ErdmaQpSnap),
        VMSTATE_UINT64(rqe_addr, ErdmaQpSnap),
        VMSTATE_UINT32(rqe_len, ErdmaQpSnap),
        VMSTATE_UINT32(rqe_key, ErdmaQpSnap),
        VMSTATE_UINT8(term_status, ErdmaQpSnap),
        VMSTATE_UINT32(term_msn, ErdmaQpSnap),
        VMSTATE_UINT8(has_work, ErdmaQpSnap),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_erdma_engine_snap = {
    .name = "erdma/engine",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(is_ready, ErdmaEngineSnap),
        VMSTATE_UINT8(guest_page_shift, ErdmaEngineSnap),
        VMSTATE_UINT32(incarnation, ErdmaEngineSnap),
        VMSTATE_UINT64_ARRAY(counters, ErdmaEngineSnap,
                             ERDMA_ENGINE_SNAP_COUNTERS),
        VMSTATE_UINT64(cmdq_addr, ErdmaEngineSnap),
        VMSTATE_UINT8(cmdq_depth_log2, ErdmaEngineSnap),
        VMSTATE_UINT16(cmdq_pi, ErdmaEngineSnap),
        VMSTATE_UINT16(cmdq_ci, ErdmaEngineSnap),
        VMSTATE_STRUCT(cmdq_cq, ErdmaEngineSnap, 1, vmstate_erdma_cq_snap,
                       ErdmaCqSnap),
        VMSTATE_STRUCT_ARRAY(eqs, ErdmaEngineSnap, ERDMA_ENGINE_SNAP_EQS, 1,
                             vmstate_erdma_eq_snap, ErdmaEqSnap),
        VMSTATE_UINT32(last_ctx, ErdmaEngineSnap),
        VMSTATE_UINT32(ext_hint, ErdmaEngineSnap),
        VMSTATE_UINT32(n_aeqes, ErdmaEngineSnap),
        VMSTATE_UINT32(n_cqs, ErdmaEngineSnap),
        VMSTATE_UINT32(n_held, ErdmaEngineSnap),
        VMSTATE_UINT32(n_mrs, ErdmaEngineSnap),
        VMSTATE_UINT32(n_ext_pages, ErdmaEngineSnap),
        VMSTATE_UINT32(n_qps, ErdmaEngineSnap),
        VMSTATE_UINT32(n_wqes, ErdmaEngineSnap),
        VMSTATE_UINT32(n_sges, ErdmaEngineSnap),
        VMSTATE_UINT32(n_responses, ErdmaEngineSnap),
        VMSTATE_UINT32(n_bytes, ErdmaEngineSnap),
        VMSTATE_VALIDATE("counts", erdma_vm_engine_fits),
        ERDMA_VM_ARRAY(aeqes, ErdmaEngineSnap, vmstate_erdma_aeqe_snap,
                       ErdmaAeqeSnap),
        ERDMA_VM_ARRAY(cqs, ErdmaEngineSnap, vmstate_erdma_cq_snap,
                       ErdmaCqSnap),
        ERDMA_VM_ARRAY(held, ErdmaEngineSnap, vmstate_erdma_held_snap,
                       ErdmaHeldSnap),
        ERDMA_VM_ARRAY(mrs, ErdmaEngineSnap, vmstate_erdma_mr_snap,
                       ErdmaMrSnap),
        ERDMA_VM_ARRAY(ext_pages, ErdmaEngineSnap, vmstate_erdma_ext_page_snap,
                       ErdmaExtPageSnap),
        ERDMA_VM_ARRAY(qps, ErdmaEngineSnap, vmstate_erdma_qp_snap,
                       ErdmaQpSnap),
        ERDMA_VM_ARRAY(wqes, ErdmaEngineSnap, vmstate_erdma_wqe_snap,
                       ErdmaWqeSnap),
        ERDMA_VM_ARRAY(sges, ErdmaEngineSnap, vmstate_erdma_sge_snap,
                       ErdmaSgeSnap),
        ERDMA_VM_ARRAY(responses, ErdmaEngineSnap, vmstate_erdma_response_snap,
                       ErdmaResponseSnap),
        VMSTATE_VBUFFER_ALLOC_UINT32(bytes, ErdmaEngineSnap, 1, NULL, n_bytes),
        VMSTATE_STRUCT(xport, ErdmaEngineSnap, 1, vmstate_erdma_xport_snap,
                       ErdmaXportSnap),
        VMSTATE_END_OF_LIST()
    },
};
