/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's view of QEMU: guest memory, interrupts, time and diagnostics.
 *
 * The engine runs from a bottom half, from a timer at the deadline it named
 * last, and while it takes a datagram; never while the machine is stopped
 * and never inside itself.
 *
 * The guest chooses where DMA and MSI-X messages go, and where its other NICs
 * put the frames that we send.  Aimed at a BAR or at configuration space they
 * would reset or unplug the device from underneath the engine.  So DMA reaches
 * RAM only, messages and frames are sent when the engine has returned, and the
 * re-entrancy guard is engaged until then.
 */

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "qemu/host-utils.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "system/replay.h"
#include "system/runstate.h"
#include "erdma.h"
#include "trace.h"

/* Bytes of a transfer that its trace shows: a command is no longer */
#define ERDMA_PORT_TRACED   128

static const MemTxAttrs erdma_port_attrs = { .memory = true };

/* The st*_dma() family does not look at erdma_port_attrs by itself. */
static bool erdma_port_is_ram(PCIDevice *d, dma_addr_t addr, dma_addr_t len)
{
    hwaddr xlat, plen = len;
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(pci_get_address_space(d), addr, &xlat, &plen,
                                 true, erdma_port_attrs);
    return plen >= len && memory_region_is_ram(mr);
}

/*
 * The guest polls words of 4 and 8 bytes: their store must not be torn.  All
 * of these functions are full barriers, so that two writes become visible in
 * the order of the calls.
 */
static bool erdma_port_dma_write(void *opaque, uint64_t addr, const void *buf,
                                 size_t len)
{
    PCIDevice *d = opaque;
    MemTxResult res;

    if (len == 8 && addr % 8 == 0) {
        res = !erdma_port_is_ram(d, addr, 8) ? MEMTX_ACCESS_ERROR :
              stq_le_pci_dma(d, addr, ldq_le_p(buf), erdma_port_attrs);
    } else if (len == 4 && addr % 4 == 0) {
        res = !erdma_port_is_ram(d, addr, 4) ? MEMTX_ACCESS_ERROR :
              stl_le_pci_dma(d, addr, ldl_le_p(buf), erdma_port_attrs);
    } else {
        res = pci_dma_rw(d, addr, (void *)buf, len,
                         DMA_DIRECTION_FROM_DEVICE, erdma_port_attrs);
    }
    return res == MEMTX_OK;
}

/* What the guest has said, for tests/fuzz/seeds.py and curious people */
static void erdma_port_trace_read(ErdmaState *s, uint64_t addr,
                                  const uint8_t *buf, size_t len)
{
    char hex[2 * ERDMA_PORT_TRACED + 1];
    size_t i;

    for (i = 0; i < MIN(len, ERDMA_PORT_TRACED); i++) {
        snprintf(hex + 2 * i, 3, "%02x", buf[i]);
    }
    trace_erdma_dma_read(s->name, addr, len, hex);
}

static bool erdma_port_dma_read(void *opaque, uint64_t addr, void *buf,
                                size_t len)
{
    if (pci_dma_rw(opaque, addr, buf, len, DMA_DIRECTION_TO_DEVICE,
                   erdma_port_attrs) != MEMTX_OK) {
        return false;
    }
    if (len && trace_event_get_state_backends(TRACE_ERDMA_DMA_READ)) {
        erdma_port_trace_read(opaque, addr, buf, len);
    }
    return true;
}

static void erdma_port_notify(void *opaque, unsigned vector)
{
    ErdmaState *s = opaque;

    assert(vector < s->vectors);
    s->vectors_due |= 1u << vector;
}

static void erdma_port_kick_cb(void *opaque)
{
    erdma_port_kick(opaque);
}

static bool erdma_port_transmit(void *opaque, const ErdmaDatagram *dg)
{
    return erdma_wire_transmit(opaque, dg);
}

static void erdma_port_conn_open(void *opaque, uint32_t local_ip,
                                 uint32_t peer_ip)
{
    erdma_wire_conn_open(opaque, local_ip, peer_ip);
}

static void G_GNUC_PRINTF(2, 3)
erdma_port_guest_error(void *opaque, const char *fmt, ...)
{
    ErdmaState *s = opaque;
    va_list ap;

    s->n_guest_errors++;
    va_start(ap, fmt);
    vsnprintf(s->guest_error, sizeof(s->guest_error), fmt, ap);
    va_end(ap);
    trace_erdma_guest_error(s->name, s->guest_error);
    qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", s->name, s->guest_error);
}

static void erdma_port_trace(void *opaque, ErdmaEvent event, uint32_t id,
                             uint64_t a, uint64_t b)
{
    ErdmaState *s = opaque;
    const char *name = s->name;

    switch (event) {
    case ERDMA_EV_CMD:
        trace_erdma_cmd(name, id >> 8, id & 0xff, a);
        break;
    case ERDMA_EV_CMD_REFUSED:
        s->has_refused_cmd = true;
        s->refused_cmd = id;
        s->refused_status = a;
        trace_erdma_err_cmd(name, id >> 8, id & 0xff, a, b);
        break;
    case ERDMA_EV_EQ_POST:
        trace_erdma_eq_post(name, id, a, b);
        break;
    case ERDMA_EV_EQ_NOTIFY:
        trace_erdma_eq_notify(name, id, a);
        break;
    case ERDMA_EV_CQ_POST:
        trace_erdma_cq_post(name, id, a, b);
        break;
    case ERDMA_EV_CQ_ARM:
        trace_erdma_cq_arm(name, id, a, b);
        break;
    case ERDMA_EV_QP_STATE:
        trace_erdma_qp_state(name, id, a, b);
        break;
    case ERDMA_EV_QP_ERROR:
        trace_erdma_qp_error(name, id, a, b);
        break;
    case ERDMA_EV_SQ_WQE:
        trace_erdma_sq_wqe(name, id, a, b);
        break;
    case ERDMA_EV_RX_MSG:
        trace_erdma_rx_msg(name, id, a, b);
        break;
    case ERDMA_EV_RX_REFUSED:
        trace_erdma_err_rx_msg(name, id, a, b);
        break;
    case ERDMA_EV_FLUSH:
        trace_erdma_qp_flush(name, id, a, b);
        break;
    case ERDMA_EV_AEQE:
        trace_erdma_aeqe(name, id, a);
        break;
    case ERDMA_EV_DMA_ERROR:
        trace_erdma_err_dma(name, a, b);
        break;
    case ERDMA_EV_FAULT:
        trace_erdma_fault(name, erdma_fault_name(ERDMA_FAULT_NAMES_ON, a),
                          erdma_fault_name(ERDMA_FAULT_NAMES_ACTION, b), id);
        break;
    case ERDMA_EV_COUNT:
        g_assert_not_reached();
    }
}

static const char *erdma_port_cause(ErdmaXportCause cause)
{
    return cause == ERDMA_XPORT_CAUSE_LOSS ? "loss" :
           cause == ERDMA_XPORT_CAUSE_MARK ? "mark" : "timeout";
}

static void erdma_port_xport_trace(void *opaque, uint32_t qpn,
                                   ErdmaXportEvent event, uint64_t a,
                                   uint64_t b)
{
    const char *name = ((ErdmaState *)opaque)->name;

    switch (event) {
    case ERDMA_XPORT_EV_SEND:
        trace_erdma_xport_send(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_RETRANSMIT:
        trace_erdma_xport_retransmit(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_ACKED:
        trace_erdma_xport_acked(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_LOST:
        trace_erdma_xport_lost(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_SPURIOUS:
        trace_erdma_xport_spurious(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_PROBE:
        trace_erdma_xport_probe(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_RTO:
        trace_erdma_xport_rto(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_CWND:
        trace_erdma_xport_cwnd(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_CE:
        trace_erdma_xport_ce(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_DROP:
        trace_erdma_xport_drop(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_CONGESTION:
        trace_erdma_xport_congestion(name, qpn, erdma_port_cause(a), b);
        break;
    case ERDMA_XPORT_EV_RECOVERED:
        trace_erdma_xport_recovered(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_UNDO:
        trace_erdma_xport_undo(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_ROUND:
        trace_erdma_xport_round(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_ALPHA:
        trace_erdma_xport_alpha(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_ECN_OFF:
        trace_erdma_xport_ecn_off(name, qpn, a, b);
        break;
    case ERDMA_XPORT_EV_COUNT:
        g_assert_not_reached();
    }
}

static const ErdmaPort erdma_port = {
    .dma_read = erdma_port_dma_read,
    .dma_write = erdma_port_dma_write,
    .notify = erdma_port_notify,
    .kick = erdma_port_kick_cb,
    .transmit = erdma_port_transmit,
    .guest_error = erdma_port_guest_error,
    .conn_open = erdma_port_conn_open,
    .trace = erdma_port_trace,
    .xport_trace = erdma_port_xport_trace,
};

/* Returns what erdma_port_leave() has to restore. */
static bool erdma_port_enter(ErdmaState *s)
{
    MemReentrancyGuard *guard = &s->parent_obj.qdev.mem_reentrancy_guard;
    bool was_engaged = guard->engaged_in_io;

    assert(!s->is_in_engine);
    s->is_in_engine = true;
    guard->engaged_in_io = true;
    return was_engaged;
}

static void erdma_port_leave(ErdmaState *s, bool was_engaged)
{
    s->parent_obj.qdev.mem_reentrancy_guard.engaged_in_io = was_engaged;
    s->is_in_engine = false;
}

/* The device may be gone afterwards, but for the caller's reference. */
static void erdma_port_interrupt(ErdmaState *s)
{
    unsigned vector;

    while (s->vectors_due) {
        vector = ctz32(s->vectors_due);
        s->vectors_due &= s->vectors_due - 1;
        msix_notify(&s->parent_obj, vector);
    }
}

/*
 * The deadline moves with every packet.  A timer that fires too early costs
 * one look at the engine, moving it each time would cost more.
 */
static void erdma_port_set_timer(ErdmaState *s, int64_t deadline)
{
    if (deadline < s->timer_ns) {
        s->timer_ns = deadline;
        timer_mod_ns(s->timer, deadline);
    }
}

static void erdma_port_run_engine(ErdmaState *s)
{
    uint64_t next;
    int64_t now;
    bool was_engaged;

    now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    was_engaged = erdma_port_enter(s);
    erdma_wire_drain(s, now);
    next = erdma_engine_run(s->engine, now);
    erdma_port_leave(s, was_engaged);

    next = MIN(next, INT64_MAX);
    trace_erdma_run(s->name, now, next);
    if (next <= now || !QTAILQ_EMPTY(&s->wire.loop)) {
        erdma_port_kick(s);
    } else {
        erdma_port_set_timer(s, next);
    }
}

static void erdma_port_last_unref(void *opaque)
{
    object_unref(opaque);
}

static void erdma_port_run(ErdmaState *s)
{
    if (!s->is_running) {
        return;         /* as in erdma_port_kick() */
    }
    if (s->is_in_engine) {
        erdma_port_kick(s);     /* an event loop nested in a translation */
        return;
    }
    object_ref(s);
    /* What incoming packets caused need not wait for our own sending. */
    erdma_port_interrupt(s);
    erdma_wire_flush(s);
    if (s->engine) {
        erdma_port_run_engine(s);
        erdma_wire_flush(s);
        erdma_port_interrupt(s);
    }
    if (s->engine) {
        object_unref(s);
    } else {
        /* Unplugged; the bottom half still has to disengage its guard. */
        aio_bh_schedule_oneshot(qemu_get_aio_context(),
                                erdma_port_last_unref, s);
    }
}

void erdma_port_input(ErdmaState *s, const ErdmaDatagram *dg)
{
    bool was_engaged;

    if (s->is_in_engine) {
        /* An IOMMU that is asked may tell of it, to whomever. */
        erdma_wire_defer(s, dg);
        return;
    }
    was_engaged = erdma_port_enter(s);
    erdma_engine_input(s->engine, dg, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    erdma_port_leave(s, was_engaged);
    erdma_port_kick(s);
}

static void erdma_port_bh(void *opaque)
{
    erdma_port_run(opaque);
}

static void erdma_port_replayed(void *opaque)
{
    ErdmaState *s = opaque;

    s->is_kicked = false;
    if (s->engine) {
        aio_bh_call(s->bh);
    }
    object_unref(s);
}

void erdma_port_kick(ErdmaState *s)
{
    if (!s->is_running) {
        return;         /* the change of state will kick */
    }
    if (!replay_events_enabled()) {
        qemu_bh_schedule(s->bh);
    } else if (!s->is_kicked) {
        /*
         * -icount rr=: at the same instruction in the replay.  There is no
         * cancelling; the reference outlives an unplug.
         */
        s->is_kicked = true;
        object_ref(s);
        replay_bh_schedule_oneshot_event(qemu_get_aio_context(),
                                         erdma_port_replayed, s);
    }
}

static void erdma_port_timer(void *opaque)
{
    ErdmaState *s = opaque;

    s->timer_ns = INT64_MAX;
    erdma_port_run(s);
}

/*
 * Rules do not migrate, nor does what they put off: whoever takes the
 * machine's state, now that it has stopped, finds it delivered.  Interrupts
 * that are due are part of that state; sent by a machine that has stopped
 * they could still unplug us.
 */
static void erdma_port_flush_faults(ErdmaState *s)
{
    bool was_engaged = erdma_port_enter(s);

    erdma_engine_fault_flush(s->engine);
    erdma_port_leave(s, was_engaged);
}

static void erdma_port_vm_state(void *opaque, bool is_running, RunState state)
{
    ErdmaState *s = opaque;

    s->is_running = is_running;
    if (is_running) {
        erdma_port_kick(s);
    } else if (!s->is_in_engine) {
        erdma_port_flush_faults(s);
    }
}

void erdma_port_init(ErdmaState *s, const ErdmaEngineConfig *cfg)
{
    s->engine = erdma_engine_new(&erdma_port, s, cfg);
    s->bh = qemu_bh_new_guarded(erdma_port_bh, s,
                                &DEVICE(s)->mem_reentrancy_guard);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, erdma_port_timer, s);
    s->timer_ns = INT64_MAX;
    s->is_running = runstate_is_running();
    s->vm_state = qemu_add_vm_change_state_handler(erdma_port_vm_state, s);
}

void erdma_port_exit(ErdmaState *s)
{
    qemu_del_vm_change_state_handler(s->vm_state);
    timer_free(s->timer);
    qemu_bh_delete(s->bh);
    erdma_engine_free(s->engine);
    s->engine = NULL;
    s->vectors_due = 0;
}
