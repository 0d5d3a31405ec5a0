/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration stream: the transport, xport/snapshot.h.
 *
 * What a field means and may be is said where the snapshot is; loading that
 * checks it.  A field that comes later goes into a subsection, so that streams
 * of before can still be read.
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "erdma-vmstate.h"

/* Before anything is allocated for them */
static bool erdma_vm_xport_fits(void *opaque, int version_id)
{
    g_autofree char *error = NULL;

    if (!erdma_xport_snap_fits(opaque, &error)) {
        error_report("erdma: migration: %s", error);
        return false;
    }
    return true;
}

const VMStateDescription vmstate_erdma_hdr_snap = {
    .name = "erdma/hdr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(op, ErdmaHdrSnap),
        VMSTATE_UINT8(is_solicited, ErdmaHdrSnap),
        VMSTATE_UINT32(len, ErdmaHdrSnap),
        VMSTATE_UINT32(imm, ErdmaHdrSnap),
        VMSTATE_UINT32(rkey, ErdmaHdrSnap),
        VMSTATE_UINT64(raddr, ErdmaHdrSnap),
        VMSTATE_UINT32(read_len, ErdmaHdrSnap),
        VMSTATE_UINT32(req_msn, ErdmaHdrSnap),
        VMSTATE_UINT64(swap_add, ErdmaHdrSnap),
        VMSTATE_UINT64(compare, ErdmaHdrSnap),
        VMSTATE_UINT64(original, ErdmaHdrSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_sent_snap = {
    .name = "erdma/sent",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(age_ns, ErdmaSentSnap),
        VMSTATE_UINT32(msn, ErdmaSentSnap),
        VMSTATE_UINT32(off, ErdmaSentSnap),
        VMSTATE_UINT16(len, ErdmaSentSnap),
        VMSTATE_UINT16(bytes, ErdmaSentSnap),
        VMSTATE_UINT8(state, ErdmaSentSnap),
        VMSTATE_UINT8(is_ect, ErdmaSentSnap),
        VMSTATE_UINT8(is_resent, ErdmaSentSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_range_snap = {
    .name = "erdma/range",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(first, ErdmaRangeSnap),
        VMSTATE_UINT64(last, ErdmaRangeSnap),
        VMSTATE_UINT8(n_reports, ErdmaRangeSnap),
        VMSTATE_UINT8(is_fresh, ErdmaRangeSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_chunk_snap = {
    .name = "erdma/chunk",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(msn, ErdmaChunkSnap),
        VMSTATE_UINT32(off, ErdmaChunkSnap),
        VMSTATE_UINT32(len, ErdmaChunkSnap),
        VMSTATE_UINT8(is_last, ErdmaChunkSnap),
        VMSTATE_STRUCT(hdr, ErdmaChunkSnap, 1, vmstate_erdma_hdr_snap,
                       ErdmaHdrSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_cubic_state_snap = {
    .name = "erdma/cubic-state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(cwnd, ErdmaCubicStateSnap),
        VMSTATE_UINT64(w_max, ErdmaCubicStateSnap),
        VMSTATE_UINT64(k, ErdmaCubicStateSnap),
        VMSTATE_UINT64(w_est, ErdmaCubicStateSnap),
        VMSTATE_UINT64(cwnd_prior, ErdmaCubicStateSnap),
        VMSTATE_UINT64(epoch_age_ns, ErdmaCubicStateSnap),
        VMSTATE_UINT64(ssthresh, ErdmaCubicStateSnap),
        VMSTATE_UINT8(has_epoch, ErdmaCubicStateSnap),
        VMSTATE_UINT8(is_k_zero, ErdmaCubicStateSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_cubic_snap = {
    .name = "erdma/cubic",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(s, ErdmaCubicSnap, 1, vmstate_erdma_cubic_state_snap,
                       ErdmaCubicStateSnap),
        VMSTATE_STRUCT(prior, ErdmaCubicSnap, 1,
                       vmstate_erdma_cubic_state_snap, ErdmaCubicStateSnap),
        VMSTATE_UINT8(has_prior, ErdmaCubicSnap),
        VMSTATE_UINT64(last_age_ns, ErdmaCubicSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_hpcc_snap = {
    .name = "erdma/hpcc",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(t_ns, ErdmaHpccSnap),
        VMSTATE_UINT64(w_max, ErdmaHpccSnap),
        VMSTATE_UINT64(w_ai, ErdmaHpccSnap),
        VMSTATE_UINT64(wc, ErdmaHpccSnap),
        VMSTATE_UINT64(u, ErdmaHpccSnap),
        VMSTATE_UINT32(stage, ErdmaHpccSnap),
        VMSTATE_UINT8(has_round, ErdmaHpccSnap),
        VMSTATE_UINT64(round_end, ErdmaHpccSnap),
        VMSTATE_UINT64(round_min, ErdmaHpccSnap),
        VMSTATE_UINT8(has_reprobe, ErdmaHpccSnap),
        VMSTATE_UINT64(reprobe_age_ns, ErdmaHpccSnap),
        VMSTATE_UINT32(n_rounds, ErdmaHpccSnap),
        VMSTATE_UINT32(n_reprobes, ErdmaHpccSnap),
        VMSTATE_UINT64(alpha, ErdmaHpccSnap),
        VMSTATE_UINT64(round_acked, ErdmaHpccSnap),
        VMSTATE_UINT64(round_marked, ErdmaHpccSnap),
        VMSTATE_UINT8(has_history, ErdmaHpccSnap),
        VMSTATE_UINT64(history_age_ns, ErdmaHpccSnap),
        VMSTATE_UINT8(is_compact, ErdmaHpccSnap),
        VMSTATE_UINT16(path_id, ErdmaHpccSnap),
        VMSTATE_UINT32(n_hops, ErdmaHpccSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_hop_snap = {
    .name = "erdma/hop",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(rate, ErdmaHopSnap),
        VMSTATE_UINT64(time_ns, ErdmaHopSnap),
        VMSTATE_UINT64(tx_bytes, ErdmaHopSnap),
        VMSTATE_UINT32(queue, ErdmaHopSnap),
        VMSTATE_UINT16(link_id, ErdmaHopSnap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_conn_snap = {
    .name = "erdma/conn",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(local_cookie, ErdmaConnSnap),
        VMSTATE_UINT32(peer_cookie, ErdmaConnSnap),
        VMSTATE_UINT32(local_ip, ErdmaConnSnap),
        VMSTATE_UINT32(peer_ip, ErdmaConnSnap),
        VMSTATE_UINT8(is_active, ErdmaConnSnap),
        VMSTATE_UINT64(timer_in_ns, ErdmaConnSnap),
        VMSTATE_UINT8(is_failed, ErdmaConnSnap),
        VMSTATE_UINT8(is_heard, ErdmaConnSnap),
        VMSTATE_UINT8(is_peer_terminated, ErdmaConnSnap),
        VMSTATE_UINT8(want_term, ErdmaConnSnap),
        VMSTATE_UINT8(want_term_ack, ErdmaConnSnap),
        VMSTATE_UINT8(term, ErdmaConnSnap),
        VMSTATE_UINT8(term_status, ErdmaConnSnap),
        VMSTATE_UINT8(n_terms, ErdmaConnSnap),
        VMSTATE_UINT32(term_msn, ErdmaConnSnap),
        VMSTATE_UINT32(term_ack_number, ErdmaConnSnap),
        VMSTATE_UINT64(term_in_ns, ErdmaConnSnap),
        VMSTATE_UINT32(next_msn, ErdmaConnSnap),
        VMSTATE_UINT32(una_msn, ErdmaConnSnap),
        VMSTATE_UINT32(una_off, ErdmaConnSnap),
        VMSTATE_UINT32(unsent_msn, ErdmaConnSnap),
        VMSTATE_UINT32(unsent_off, ErdmaConnSnap),
        VMSTATE_UINT64(credit, ErdmaConnSnap),
        VMSTATE_UINT64(next_ack, ErdmaConnSnap),
        VMSTATE_UINT64(base, ErdmaConnSnap),
        VMSTATE_UINT32(n_sents, ErdmaConnSnap),
        VMSTATE_UINT8(n_top, ErdmaConnSnap),
        VMSTATE_UINT32_ARRAY(top, ErdmaConnSnap, ERDMA_SNAP_TOP),
        VMSTATE_UINT8(has_rack, ErdmaConnSnap),
        VMSTATE_UINT8(is_reordering_seen, ErdmaConnSnap),
        VMSTATE_UINT8(is_in_recovery, ErdmaConnSnap),
        VMSTATE_UINT8(reo_mult, ErdmaConnSnap),
        VMSTATE_UINT8(n_recoveries, ErdmaConnSnap),
        VMSTATE_UINT64(rack_age_ns, ErdmaConnSnap),
        VMSTATE_UINT64(rack_rtt_ns, ErdmaConnSnap),
        VMSTATE_UINT64(recovery_end, ErdmaConnSnap),
        VMSTATE_UINT64(spurious_end, ErdmaConnSnap),
        VMSTATE_UINT32(n_episode_lost, ErdmaConnSnap),
        VMSTATE_UINT32(n_episode_spurious, ErdmaConnSnap),
        VMSTATE_UINT8(has_rtt, ErdmaConnSnap),
        VMSTATE_UINT64(latest_ns, ErdmaConnSnap),
        VMSTATE_UINT64(srtt_ns, ErdmaConnSnap),
        VMSTATE_UINT64(rttvar_ns, ErdmaConnSnap),
        VMSTATE_UINT64(min0_ns, ErdmaConnSnap),
        VMSTATE_UINT64(min1_ns, ErdmaConnSnap),
        VMSTATE_UINT64(bucket_age_ns, ErdmaConnSnap),
        VMSTATE_UINT64(pacer_age_ns, ErdmaConnSnap),
        VMSTATE_UINT64(pacer_debt, ErdmaConnSnap),
        VMSTATE_UINT64(round_end, ErdmaConnSnap),
        VMSTATE_UINT64(max_pipe0, ErdmaConnSnap),
        VMSTATE_UINT64(max_pipe1, ErdmaConnSnap),
        VMSTATE_UINT32(tx_ce_packets, ErdmaConnSnap),
        VMSTATE_UINT32(tx_ce_bytes, ErdmaConnSnap),
        VMSTATE_UINT32(tx_ect_packets, ErdmaConnSnap),
        VMSTATE_UINT32(ect_acked, ErdmaConnSnap),
        VMSTATE_UINT64(base_age_ns, ErdmaConnSnap),
        VMSTATE_UINT64(last_send_age_ns, ErdmaConnSnap),
        VMSTATE_UINT64(loss_in_ns, ErdmaConnSnap),
        VMSTATE_UINT64(pacer_in_ns, ErdmaConnSnap),
        VMSTATE_UINT64(persist_in_ns, ErdmaConnSnap),
        VMSTATE_UINT64(progress_age_ns, ErdmaConnSnap),
        VMSTATE_UINT8(n_timeouts, ErdmaConnSnap),
        VMSTATE_UINT8(n_persist, ErdmaConnSnap),
        VMSTATE_UINT8(is_held, ErdmaConnSnap),
        VMSTATE_UINT8(is_probed, ErdmaConnSnap),
        VMSTATE_UINT8(is_dead, ErdmaConnSnap),
        VMSTATE_UINT8(is_peer_rnr, ErdmaConnSnap),
        VMSTATE_UINT8(is_answered, ErdmaConnSnap),
        VMSTATE_UINT8(is_ecn_off, ErdmaConnSnap),
        VMSTATE_UINT8(is_expecting, ErdmaConnSnap),
        VMSTATE_UINT8(want_probe, ErdmaConnSnap),
        VMSTATE_UINT8(want_resend, ErdmaConnSnap),
        VMSTATE_UINT8(want_ping, ErdmaConnSnap),
        VMSTATE_UINT8(cc, ErdmaConnSnap),
        VMSTATE_UINT64(cwnd, ErdmaConnSnap),
        VMSTATE_UINT64(ssthresh, ErdmaConnSnap),
        VMSTATE_UINT32(n_rounds, ErdmaConnSnap),
        VMSTATE_UINT64(reno_remainder, ErdmaConnSnap),
        VMSTATE_UINT64(reno_prior_cwnd, ErdmaConnSnap),
        VMSTATE_UINT64(reno_prior_ssthresh, ErdmaConnSnap),
        VMSTATE_UINT64(pn0, ErdmaConnSnap),
        VMSTATE_UINT64(floor, ErdmaConnSnap),
        VMSTATE_UINT32(n_ranges, ErdmaConnSnap),
        VMSTATE_UINT32(n_chunks, ErdmaConnSnap),
        VMSTATE_UINT32(rx_msn, ErdmaConnSnap),
        VMSTATE_UINT32(rx_off, ErdmaConnSnap),
        VMSTATE_STRUCT(hdr, ErdmaConnSnap, 1, vmstate_erdma_hdr_snap,
                       ErdmaHdrSnap),
        VMSTATE_UINT64(rx_next_ack, ErdmaConnSnap),
        VMSTATE_UINT64(trigger_pn, ErdmaConnSnap),
        VMSTATE_UINT64(trigger_age_ns, ErdmaConnSnap),
        VMSTATE_UINT64(ack_in_ns, ErdmaConnSnap),
        VMSTATE_UINT64(gap_pn, ErdmaConnSnap),
        VMSTATE_UINT64(ahead_pn, ErdmaConnSnap),
        VMSTATE_UINT32(ahead_msn, ErdmaConnSnap),
        VMSTATE_UINT32(ahead_off, ErdmaConnSnap),
        VMSTATE_UINT32(n_unacked, ErdmaConnSnap),
        VMSTATE_UINT32(rx_ce_packets, ErdmaConnSnap),
        VMSTATE_UINT32(rx_ce_bytes, ErdmaConnSnap),
        VMSTATE_UINT32(rx_ect_packets, ErdmaConnSnap),
        VMSTATE_UINT8(int_info, ErdmaConnSnap),
        VMSTATE_UINT8(is_last_ce, ErdmaConnSnap),
        VMSTATE_UINT8(is_holding, ErdmaConnSnap),
        VMSTATE_UINT8(is_refused, ErdmaConnSnap),
        VMSTATE_UINT8(want_ack, ErdmaConnSnap),
        VMSTATE_UINT8(want_nack, ErdmaConnSnap),
        VMSTATE_UINT8(is_nacked, ErdmaConnSnap),
        VMSTATE_UINT8(want_resume, ErdmaConnSnap),
        VMSTATE_UINT64(tx_packets, ErdmaConnSnap),
        VMSTATE_UINT64(rx_packets, ErdmaConnSnap),
        VMSTATE_UINT64(tx_delivered, ErdmaConnSnap),
        VMSTATE_UINT64(rx_delivered, ErdmaConnSnap),
        VMSTATE_UINT32(retransmits, ErdmaConnSnap),
        VMSTATE_UINT32(lost, ErdmaConnSnap),
        VMSTATE_UINT32(spurious, ErdmaConnSnap),
        VMSTATE_UINT32(probes, ErdmaConnSnap),
        VMSTATE_UINT32(rtos, ErdmaConnSnap),
        VMSTATE_UINT32(int_samples, ErdmaConnSnap),
        VMSTATE_UINT32(loss_episodes, ErdmaConnSnap),
        VMSTATE_UINT32(ecn_episodes, ErdmaConnSnap),
        VMSTATE_UINT32(undos, ErdmaConnSnap),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_erdma_xport_snap = {
    .name = "erdma/xport",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(mtu, ErdmaXportSnap),
        VMSTATE_UINT64_ARRAY(counters, ErdmaXportSnap,
                             ERDMA_XPORT_SNAP_COUNTERS),
        VMSTATE_UINT32(n_conns, ErdmaXportSnap),
        VMSTATE_UINT32(n_sents, ErdmaXportSnap),
        VMSTATE_UINT32(n_ranges, ErdmaXportSnap),
        VMSTATE_UINT32(n_chunks, ErdmaXportSnap),
        VMSTATE_UINT32(n_cubics, ErdmaXportSnap),
        VMSTATE_UINT32(n_hpccs, ErdmaXportSnap),
        VMSTATE_UINT32(n_hops, ErdmaXportSnap),
        VMSTATE_UINT32(n_bytes, ErdmaXportSnap),
        VMSTATE_VALIDATE("counts", erdma_vm_xport_fits),
        ERDMA_VM_ARRAY(conns, ErdmaXportSnap, vmstate_erdma_conn_snap,
                       ErdmaConnSnap),
        ERDMA_VM_ARRAY(sents, ErdmaXportSnap, vmstate_erdma_sent_snap,
                       ErdmaSentSnap),
        ERDMA_VM_ARRAY(ranges, ErdmaXportSnap, vmstate_erdma_range_snap,
                       ErdmaRangeSnap),
        ERDMA_VM_ARRAY(chunks, ErdmaXportSnap, vmstate_erdma_chunk_snap,
                       ErdmaChunkSnap),
        ERDMA_VM_ARRAY(cubics, ErdmaXportSnap, vmstate_erdma_cubic_snap,
                       ErdmaCubicSnap),
        ERDMA_VM_ARRAY(hpccs, ErdmaXportSnap, vmstate_erdma_hpcc_snap,
                       ErdmaHpccSnap),
        ERDMA_VM_ARRAY(hops, ErdmaXportSnap, vmstate_erdma_hop_snap,
                       ErdmaHopSnap),
        VMSTATE_VBUFFER_ALLOC_UINT32(bytes, ErdmaXportSnap, 1, NULL, n_bytes),
        VMSTATE_END_OF_LIST()
    },
};
