/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration: the shell's part of the stream, and all of it put together.
 *
 * The configuration comes first: where it differs, the rest would make no
 * sense.  Engine and transport come and go as a snapshot, of which nothing is
 * believed before engine/snapshot.h has checked it.
 *
 * Reference: docs/migration.md
 */

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "migration/blocker.h"
#include "qapi/error.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "erdma.h"
#include "erdma-frame.h"
#include "erdma-vmstate.h"
#include "trace.h"

/* A next hop */
typedef struct ErdmaHopState {
    uint32_t ip;
    uint8_t mac[ERDMA_MAC_LEN];
} ErdmaHopState;

/* A datagram on its way to ourselves; its @len bytes come next in data[]. */
typedef struct ErdmaLoopState {
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t src_port;
    uint16_t dst_port;
    uint8_t ecn;
    uint32_t len;
} ErdmaLoopState;

struct ErdmaMigration {
    ErdmaEngineSnap engine;
    uint32_t n_hops;
    uint32_t n_loop;
    uint32_t n_data;
    ErdmaHopState *hops;        /* last used first */
    ErdmaLoopState *loop;
    uint8_t *data;
};

/* What both ends must have alike; named as the properties are */
static const struct {
    const char *name;
    size_t offset;
} erdma_vm_props[] = {
#define PROP(_name, _field) { _name, offsetof(ErdmaVmConfig, _field) }
    PROP("mac", mac),
    PROP("mtu", mtu),
    PROP("vectors", vectors),
    PROP("max-qp", max_qp),
    PROP("max-cqe", max_cqe),
    PROP("max-recv-wr", max_recv_wr),
    PROP("max-mr-size", max_mr_size),
    PROP("ext-db", has_ext_db),
    PROP("ext-db-pages", n_ext_db),
    PROP("version", version),
    PROP("firmware-version", fw_version),
    PROP("atomics", has_atomics),
    PROP("mtt-va", has_mtt_va),
    PROP("cc", cc),
    PROP("udp-port", udp_port),
    PROP("rx-buffer", rx_buffer),
    PROP("go-back-n", is_go_back_n),
#undef PROP
};

static uint64_t erdma_vm_prop(const ErdmaVmConfig *cfg, unsigned i)
{
    return *(const uint64_t *)((const char *)cfg + erdma_vm_props[i].offset);
}

void erdma_vmstate_init(ErdmaState *s, const ErdmaEngineConfig *cfg)
{
    s->vm_config = (ErdmaVmConfig) {
        .mac = (uint64_t)lduw_be_p(s->mac.a) << 32 |
               (uint32_t)ldl_be_p(s->mac.a + 2),
        .mtu = cfg->xport.mtu,
        .vectors = cfg->n_vectors,
        .max_qp = s->max_qp,
        .max_cqe = s->max_cqe,
        .max_recv_wr = s->max_recv_wr,
        .max_mr_size = s->max_mr_size,
        .n_ext_db = cfg->n_ext_db,
        .version = s->version,
        .fw_version = cfg->fw_version,
        .has_atomics = s->has_atomics,
        .has_mtt_va = s->has_mtt_va,
        .has_ext_db = s->has_ext_db,
        .cc = cfg->is_cc_off ? ERDMA_XPORT_CC_NONE : cfg->default_cc,
        .udp_port = cfg->xport.udp_port,
        .rx_buffer = cfg->xport.rx_buffer,
        .is_go_back_n = cfg->xport.is_go_back_n,
    };
}

bool erdma_vmstate_block(ErdmaState *s, Error **errp)
{
    error_setg(&s->vm_blocker, "%s: property 'record' is set, a device that "
               "is recorded cannot migrate", s->name);
    return migrate_add_blocker(&s->vm_blocker, errp) >= 0;
}

void erdma_vmstate_unblock(ErdmaState *s)
{
    migrate_del_blocker(&s->vm_blocker);
}

static void erdma_vm_free(ErdmaState *s)
{
    ErdmaMigration *m = s->migration;

    if (m) {
        erdma_engine_snap_clear(&m->engine);
        g_free(m->hops);
        g_free(m->loop);
        g_free(m->data);
        g_free(m);
        s->migration = NULL;
    }
}

void erdma_vmstate_exit(ErdmaState *s)
{
    erdma_vm_free(s);
}

static void erdma_vm_save_hop(void *opaque, uint32_t ip, const uint8_t *mac)
{
    ErdmaMigration *m = opaque;
    ErdmaHopState *hop = ERDMA_SNAP_ADD(m, hops);

    hop->ip = ip;
    memcpy(hop->mac, mac, ERDMA_MAC_LEN);
}

static void erdma_vm_save_datagram(void *opaque, const ErdmaDatagram *dg)
{
    ErdmaMigration *m = opaque;
    uint8_t *to = erdma_snap_add_bytes(&m->data, &m->n_data, dg->len);

    m->loop = erdma_snap_grow(m->loop, &m->n_loop, sizeof(*m->loop));
    m->loop[m->n_loop - 1] = (ErdmaLoopState) {
        .src_ip = dg->src_ip,
        .dst_ip = dg->dst_ip,
        .src_port = dg->src_port,
        .dst_port = dg->dst_port,
        .ecn = dg->ecn,
        .len = dg->len,
    };
    memcpy(to, dg->data, dg->len);
}

static int erdma_vm_pre_save(void *opaque)
{
    ErdmaState *s = opaque;
    g_autofree char *error = NULL;
    ErdmaMigration *m;

    erdma_vm_free(s);
    s->vm_stream = s->vm_config;
    s->migration = m = g_new0(ErdmaMigration, 1);
    erdma_neigh_foreach(s->wire.hops, erdma_vm_save_hop, m);
    erdma_wire_foreach_loop(s, erdma_vm_save_datagram, m);
    if (!erdma_engine_save(s->engine, &m->engine,
                           qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), &error)) {
        error_report("%s: migration: %s", s->name, error);
        erdma_vm_free(s);
        return -EINVAL;
    }
    trace_erdma_vm_save(s->name, m->engine.n_qps, m->engine.n_wqes,
                        m->engine.xport.n_sents);
    return 0;
}

static int erdma_vm_post_save(void *opaque)
{
    erdma_vm_free(opaque);
    return 0;
}

static int erdma_vm_pre_load(void *opaque)
{
    ErdmaState *s = opaque;

    erdma_vm_free(s);
    memset(&s->vm_stream, 0, sizeof(s->vm_stream));
    s->migration = g_new0(ErdmaMigration, 1);
    return 0;
}

/* Before anything else of the stream is looked at */
static bool erdma_vm_config_fits(void *opaque, int version_id)
{
    ErdmaState *s = opaque;
    unsigned i;

    if (s->recording) {
        error_report("%s: migration: property 'record' is set, a device that "
                     "is recorded cannot migrate", s->name);
        return false;
    }
    for (i = 0; i < ARRAY_SIZE(erdma_vm_props); i++) {
        uint64_t here = erdma_vm_prop(&s->vm_config, i);
        uint64_t there = erdma_vm_prop(&s->vm_stream, i);

        if (here != there) {
            error_report("%s: migration: property '%s' is %" PRIu64 " here, "
                         "must be %" PRIu64 " as at the source", s->name,
                         erdma_vm_props[i].name, here, there);
            return false;
        }
    }
    return true;
}

static bool erdma_vm_counts_fit(void *opaque, int version_id)
{
    const ErdmaMigration *m = opaque;

    if (m->n_hops > ERDMA_WIRE_MAX_HOPS || m->n_loop > ERDMA_WIRE_MAX_LOOP ||
        m->n_data > ERDMA_WIRE_MAX_LOOP * UINT16_MAX) {
        error_report("erdma: migration: n_hops is %u, n_loop %u, n_data %u, "
                     "must be at most %d, %d, %d", m->n_hops, m->n_loop,
                     m->n_data, ERDMA_WIRE_MAX_HOPS, ERDMA_WIRE_MAX_LOOP,
                     ERDMA_WIRE_MAX_LOOP * UINT16_MAX);
        return false;
    }
    return true;
}

static bool erdma_vm_load_wire(ErdmaState *s, const ErdmaMigration *m)
{
    uint32_t off = 0, i;

    erdma_wire_reset(s);
    erdma_wire_forget(s);
    for (i = m->n_hops; i--; ) {
        erdma_neigh_learn(s->wire.hops, m->hops[i].ip, m->hops[i].mac);
    }
    for (i = 0; i < m->n_loop; i++) {
        const ErdmaLoopState *k = &m->loop[i];
        ErdmaDatagram dg = {
            .src_ip = k->src_ip,
            .dst_ip = k->dst_ip,
            .src_port = k->src_port,
            .dst_port = k->dst_port,
            .ecn = k->ecn & 3,
            .data = m->data + off,
            .len = k->len,
        };

        if (k->len > m->n_data - off) {
            error_report("%s: migration: loop[%u]: len is %u, must be at "
                         "most %u", s->name, i, k->len, m->n_data - off);
            return false;
        }
        off += k->len;
        erdma_wire_defer(s, &dg);
    }
    return true;
}

static bool erdma_vm_check_regs(ErdmaState *s, const ErdmaMigration *m)
{
    uint32_t due_max = MAKE_64BIT_MASK(0, s->vectors);
    uint32_t ready = m->engine.is_ready ? R_ERDMA_DEV_STATUS_INIT_DONE_MASK
                                        : 0;

    if ((s->status & R_ERDMA_DEV_STATUS_INIT_DONE_MASK) != ready ||
        s->status & ~(R_ERDMA_DEV_STATUS_INIT_DONE_MASK |
                      R_ERDMA_DEV_STATUS_RESET_DONE_MASK)) {
        error_report("%s: migration: status is 0x%x, does not go with "
                     "is_ready %u", s->name, s->status, m->engine.is_ready);
        return false;
    }
    if (s->vectors_due & ~due_max) {
        error_report("%s: migration: vectors_due is 0x%x, must be within "
                     "0x%x", s->name, s->vectors_due, due_max);
        return false;
    }
    return true;
}

static bool erdma_vm_load(ErdmaState *s, const ErdmaMigration *m)
{
    g_autofree char *error = NULL;

    if (!erdma_vm_check_regs(s, m) || !erdma_vm_load_wire(s, m)) {
        return false;
    }
    if (!erdma_engine_load(s->engine, &m->engine,
                           qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), &error)) {
        error_report("%s: migration: %s", s->name, error);
        return false;
    }
    trace_erdma_vm_load(s->name, m->engine.n_qps, m->engine.n_wqes,
                        m->engine.xport.n_sents);
    return true;
}

static int erdma_vm_post_load(void *opaque, int version_id)
{
    ErdmaState *s = opaque;
    bool ok = erdma_vm_load(s, s->migration);

    if (!ok) {
        erdma_device_reset(s);
    }
    erdma_vm_free(s);
    return ok ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_erdma_config = {
    .name = "erdma/config",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(mac, ErdmaVmConfig),
        VMSTATE_UINT64(mtu, ErdmaVmConfig),
        VMSTATE_UINT64(vectors, ErdmaVmConfig),
        VMSTATE_UINT64(max_qp, ErdmaVmConfig),
        VMSTATE_UINT64(max_cqe, ErdmaVmConfig),
        VMSTATE_UINT64(max_recv_wr, ErdmaVmConfig),
        VMSTATE_UINT64(max_mr_size, ErdmaVmConfig),
        VMSTATE_UINT64(n_ext_db, ErdmaVmConfig),
        VMSTATE_UINT64(version, ErdmaVmConfig),
        VMSTATE_UINT64(fw_version, ErdmaVmConfig),
        VMSTATE_UINT64(has_atomics, ErdmaVmConfig),
        VMSTATE_UINT64(has_mtt_va, ErdmaVmConfig),
        VMSTATE_UINT64(has_ext_db, ErdmaVmConfig),
        VMSTATE_UINT64(cc, ErdmaVmConfig),
        VMSTATE_UINT64(udp_port, ErdmaVmConfig),
        VMSTATE_UINT64(rx_buffer, ErdmaVmConfig),
        VMSTATE_UINT64(is_go_back_n, ErdmaVmConfig),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_hop = {
    .name = "erdma/hop",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(ip, ErdmaHopState),
        VMSTATE_UINT8_ARRAY(mac, ErdmaHopState, ERDMA_MAC_LEN),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_loop = {
    .name = "erdma/loop",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(src_ip, ErdmaLoopState),
        VMSTATE_UINT32(dst_ip, ErdmaLoopState),
        VMSTATE_UINT16(src_port, ErdmaLoopState),
        VMSTATE_UINT16(dst_port, ErdmaLoopState),
        VMSTATE_UINT8(ecn, ErdmaLoopState),
        VMSTATE_UINT32(len, ErdmaLoopState),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_erdma_migration = {
    .name = "erdma/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_hops, ErdmaMigration),
        VMSTATE_UINT32(n_loop, ErdmaMigration),
        VMSTATE_UINT32(n_data, ErdmaMigration),
        VMSTATE_VALIDATE("counts", erdma_vm_counts_fit),
        ERDMA_VM_ARRAY(hops, ErdmaMigration, vmstate_erdma_hop,
                       ErdmaHopState),
        ERDMA_VM_ARRAY(loop, ErdmaMigration, vmstate_erdma_loop,
                       ErdmaLoopState),
        VMSTATE_VBUFFER_ALLOC_UINT32(data, ErdmaMigration, 1, NULL, n_data),
        VMSTATE_STRUCT(engine, ErdmaMigration, 1, vmstate_erdma_engine_snap,
                       ErdmaEngineSnap),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_erdma = {
    .name = TYPE_ERDMA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = erdma_vm_pre_save,
    .post_save = erdma_vm_post_save,
    .pre_load = erdma_vm_pre_load,
    .post_load = erdma_vm_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(vm_stream, ErdmaState, 1, vmstate_erdma_config,
                       ErdmaVmConfig),
        VMSTATE_VALIDATE("properties", erdma_vm_config_fits),
        VMSTATE_PCI_DEVICE(parent_obj, ErdmaState),
        VMSTATE_MSIX(parent_obj, ErdmaState),
        VMSTATE_UINT32_ARRAY(latched, ErdmaState, ERDMA_LATCHED_END / 4),
        VMSTATE_UINT32(status, ErdmaState),
        VMSTATE_UINT32(vectors_due, ErdmaState),
        VMSTATE_UINT64(wire.stats.tx_loopback, ErdmaState),
        VMSTATE_UINT64(wire.stats.tx_no_wire, ErdmaState),
        VMSTATE_UINT64(wire.stats.tx_no_hop, ErdmaState),
        VMSTATE_UINT64(wire.stats.tx_blocked, ErdmaState),
        VMSTATE_UINT64(wire.stats.rx_bad_checksum, ErdmaState),
        VMSTATE_UINT64(wire.stats.rx_stopped, ErdmaState),
        VMSTATE_UINT64(wire.stats.arp_asked, ErdmaState),
        VMSTATE_UINT64(wire.stats.arp_answered, ErdmaState),
        VMSTATE_STRUCT_POINTER(migration, ErdmaState, vmstate_erdma_migration,
                               ErdmaMigration),
        VMSTATE_END_OF_LIST()
    },
};
