/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Introspection: read-only properties for qom-get.
 *
 * "stats" are counters since the device was made, "objects" what the guest
 * has created and not destroyed.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "erdma.h"

typedef struct ErdmaCounter {
    const char *name;
    size_t offset;
    size_t size;
} ErdmaCounter;

#define COUNTER(_type, _name, _field) \
    { _name, offsetof(_type, _field), sizeof_field(_type, _field) }

static const ErdmaCounter erdma_xport_counters[] = {
    COUNTER(ErdmaXportStats, "tx-packets", tx_packets),
    COUNTER(ErdmaXportStats, "tx-bytes", tx_bytes),
    COUNTER(ErdmaXportStats, "tx-data-packets", tx_data_packets),
    COUNTER(ErdmaXportStats, "tx-payload-bytes", tx_payload_bytes),
    COUNTER(ErdmaXportStats, "tx-acks", tx_acks),
    COUNTER(ErdmaXportStats, "rx-packets", rx_packets),
    COUNTER(ErdmaXportStats, "rx-bytes", rx_bytes),
    COUNTER(ErdmaXportStats, "rx-data-packets", rx_data_packets),
    COUNTER(ErdmaXportStats, "rx-payload-bytes", rx_payload_bytes),
    COUNTER(ErdmaXportStats, "rx-acks", rx_acks),
    COUNTER(ErdmaXportStats, "rx-out-of-order", rx_out_of_order),
    COUNTER(ErdmaXportStats, "rx-not-ready", rx_not_ready),
    COUNTER(ErdmaXportStats, "rx-ce", rx_ce),
    COUNTER(ErdmaXportStats, "retransmits", retransmits),
    COUNTER(ErdmaXportStats, "lost", lost),
    COUNTER(ErdmaXportStats, "spurious", spurious),
    COUNTER(ErdmaXportStats, "probes", probes),
    COUNTER(ErdmaXportStats, "rtos", rtos),
    COUNTER(ErdmaXportStats, "marks", ce_echoed),
    COUNTER(ErdmaXportStats, "ecn-failures", ecn_failures),
    COUNTER(ErdmaXportStats, "int-samples", int_samples),
    COUNTER(ErdmaXportStats, "loss-episodes", loss_episodes),
    COUNTER(ErdmaXportStats, "ecn-episodes", ecn_episodes),
    COUNTER(ErdmaXportStats, "undos", undos),
    COUNTER(ErdmaXportStats, "terminates-sent", terminates_sent),
    COUNTER(ErdmaXportStats, "terminates-received", terminates_received),
    COUNTER(ErdmaXportStats, "drop-malformed",
            drops[ERDMA_XPORT_DROP_MALFORMED]),
    COUNTER(ErdmaXportStats, "drop-version", drops[ERDMA_XPORT_DROP_VERSION]),
    COUNTER(ErdmaXportStats, "drop-no-connection",
            drops[ERDMA_XPORT_DROP_NO_CONN]),
    COUNTER(ErdmaXportStats, "drop-peer", drops[ERDMA_XPORT_DROP_PEER]),
    COUNTER(ErdmaXportStats, "drop-window", drops[ERDMA_XPORT_DROP_WINDOW]),
    COUNTER(ErdmaXportStats, "drop-duplicate",
            drops[ERDMA_XPORT_DROP_DUPLICATE]),
    COUNTER(ErdmaXportStats, "drop-no-buffer",
            drops[ERDMA_XPORT_DROP_NO_BUFFER]),
    COUNTER(ErdmaXportStats, "drop-refused", drops[ERDMA_XPORT_DROP_REFUSED]),
};

static const ErdmaCounter erdma_engine_counters[] = {
    COUNTER(ErdmaEngineStats, "tx-requests", tx_requests),
    COUNTER(ErdmaEngineStats, "rx-requests", rx_requests),
    COUNTER(ErdmaEngineStats, "mr-fast-registrations", mr_fast_regs),
    COUNTER(ErdmaEngineStats, "mr-local-invalidates", mr_local_invs),
    COUNTER(ErdmaEngineStats, "mr-read-invalidates", mr_read_invs),
    COUNTER(ErdmaEngineStats, "mr-remote-invalidates", mr_remote_invs),
    COUNTER(ErdmaEngineStats, "commands", cmds),
    COUNTER(ErdmaEngineStats, "commands-refused", cmds_refused),
    COUNTER(ErdmaEngineStats, "cqes", cqes),
    COUNTER(ErdmaEngineStats, "ceqes", ceqes),
    COUNTER(ErdmaEngineStats, "aeqes", aeqes),
    COUNTER(ErdmaEngineStats, "flushed", flushed),
    COUNTER(ErdmaEngineStats, "doorbells-ignored", db_ignored),
    COUNTER(ErdmaEngineStats, "dma-errors", dma_errors),
};

static const ErdmaCounter erdma_wire_counters[] = {
    COUNTER(ErdmaWireStats, "tx-loopback", tx_loopback),
    COUNTER(ErdmaWireStats, "tx-no-wire", tx_no_wire),
    COUNTER(ErdmaWireStats, "tx-no-hop", tx_no_hop),
    COUNTER(ErdmaWireStats, "tx-blocked", tx_blocked),
    COUNTER(ErdmaWireStats, "rx-bad-checksum", rx_bad_checksum),
    COUNTER(ErdmaWireStats, "rx-stopped", rx_stopped),
    COUNTER(ErdmaWireStats, "arp-asked", arp_asked),
    COUNTER(ErdmaWireStats, "arp-answered", arp_answered),
};

static const ErdmaCounter erdma_object_counters[] = {
    COUNTER(ErdmaEngineCounts, "eqs", n_eqs),
    COUNTER(ErdmaEngineCounts, "cqs", n_cqs),
    COUNTER(ErdmaEngineCounts, "qps", n_qps),
    COUNTER(ErdmaEngineCounts, "mrs", n_mrs),
    COUNTER(ErdmaEngineCounts, "ext-db-pages", n_ext_db),
};

static bool erdma_visit_counters(Visitor *v, const ErdmaCounter *c, size_t n,
                                 const void *base, Error **errp)
{
    uint64_t val;
    size_t i;

    for (i = 0; i < n; i++) {
        const void *field = base + c[i].offset;

        val = c[i].size == 4 ? *(const uint32_t *)field :
                               *(const uint64_t *)field;
        if (!visit_type_uint64(v, c[i].name, &val, errp)) {
            return false;
        }
    }
    return true;
}

#define VISIT(_v, _table, _base, _errp) \
    erdma_visit_counters(_v, _table, ARRAY_SIZE(_table), _base, _errp)

static void erdma_get_stats(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    static const ErdmaXportStats no_xport;
    static const ErdmaEngineStats no_engine;
    ErdmaState *s = ERDMA(obj);
    bool is_made = s->engine;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (VISIT(v, erdma_engine_counters,
              is_made ? erdma_engine_stats(s->engine) : &no_engine, errp) &&
        VISIT(v, erdma_xport_counters,
              is_made ? erdma_engine_xport_stats(s->engine) : &no_xport,
              errp) &&
        VISIT(v, erdma_wire_counters, &s->wire.stats, errp)) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

static void erdma_get_objects(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    ErdmaState *s = ERDMA(obj);
    ErdmaEngineCounts counts = { 0 };

    if (s->engine) {
        erdma_engine_counts(s->engine, &counts);
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (VISIT(v, erdma_object_counters, &counts, errp)) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

void erdma_stats_class_init(ObjectClass *oc)
{
    object_class_property_add(oc, "stats", "ErdmaStats", erdma_get_stats,
                              NULL, NULL, NULL);
    object_class_property_set_description(oc, "stats",
        "counters of the engine, the transport and the wire (read only)");
    object_class_property_add(oc, "objects", "ErdmaObjects",
                              erdma_get_objects, NULL, NULL, NULL);
    object_class_property_set_description(oc, "objects",
        "live queues, queue pairs and memory regions (read only)");
}
