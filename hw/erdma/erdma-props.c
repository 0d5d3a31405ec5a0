/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties: what the user may set, and within which limits.
 *
 * Numbers and switches are one table.  Their setters refuse what is out of
 * range, so that -device, device_add and -global complain alike; what depends
 * on more than one property is checked at realize, see erdma-check.c.
 *
 * Reference: docs/specs/erdma.rst, "Limits"
 */

#include "qemu/osdep.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/host-utils.h"
#include "qemu/units.h"
#include "erdma.h"

typedef enum ErdmaPropKind {
    ERDMA_PROP_NUMBER,
    ERDMA_PROP_POWER,           /* a power of two */
    ERDMA_PROP_QPS,             /* 1024 n - 1 */
    ERDMA_PROP_SIZE,            /* bytes, a suffix may follow */
    ERDMA_PROP_SIZE_POWER,
    ERDMA_PROP_BITRATE,         /* bits per second; the field has bytes */
    ERDMA_PROP_FRACTION,        /* the field is a double */
    ERDMA_PROP_SWITCH,
} ErdmaPropKind;

typedef struct ErdmaProp {
    const char *name;
    const char *text;
    size_t offset;              /* in ErdmaState */
    size_t size;                /* of the field: 1, 2, 4 or 8 */
    ErdmaPropKind kind;
    bool is_xport;              /* the transport knows the default */
    bool is_live;               /* may change at any time */
    uint64_t scale;             /* field's units per property's unit */
    uint64_t min;
    uint64_t max;
    uint64_t def;               /* in the property's unit */
    double least;               /* of a fraction; the transport has defaults */
    double most;
} ErdmaProp;

#define FIELD_AT(_field) \
    .offset = offsetof(ErdmaState, _field), \
    .size = sizeof_field(ErdmaState, _field)

#define NUMBER(_name, _field, _kind, _min, _max, _def, _text) \
    { .name = _name, FIELD_AT(_field), .kind = _kind, .scale = 1, \
      .min = _min, .max = _max, .def = _def, .text = _text }
#define SWITCH(_name, _field, _def, _text) \
    { .name = _name, FIELD_AT(_field), .kind = ERDMA_PROP_SWITCH, \
      .scale = 1, .max = 1, .def = _def, .text = _text }
#define XPORT(_name, _field, _scale, _min, _max, _text) \
    { .name = _name, FIELD_AT(xport._field), .kind = ERDMA_PROP_NUMBER, \
      .is_xport = true, .scale = _scale, .min = _min, .max = _max, \
      .text = _text }
#define XPORT_SIZE(_name, _field, _min, _max, _text) \
    { .name = _name, FIELD_AT(xport._field), .kind = ERDMA_PROP_SIZE, \
      .is_xport = true, .scale = 1, .min = _min, .max = _max, .text = _text }
#define XPORT_SWITCH(_name, _field, _text) \
    { .name = _name, FIELD_AT(xport._field), .kind = ERDMA_PROP_SWITCH, \
      .is_xport = true, .scale = 1, .max = 1, .text = _text }

#define XPORT_FRACTION(_name, _field, _least, _most, _text) \
    { .name = _name, FIELD_AT(xport._field), .kind = ERDMA_PROP_FRACTION, \
      .is_xport = true, .least = _least, .most = _most, .text = _text }

#define US      1000ull
#define MS      1000000ull

static const ErdmaProp erdma_props[] = {
    NUMBER("mtu", mtu, ERDMA_PROP_NUMBER, 0, ERDMA_XPORT_MTU_MAX, 0,
           "IP MTU of the wire in bytes; 0 takes the NIC's host_mtu, else "
           "1500"),
    NUMBER("vectors", vectors, ERDMA_PROP_NUMBER, 1, ERDMA_MAX_VECTORS,
           ERDMA_MAX_VECTORS,
           "MSI-X vectors: 1 for commands and up to 31 completion vectors"),
    NUMBER("max-qp", max_qp, ERDMA_PROP_QPS, ERDMA_QPS_PER_QBLOCK - 1,
           ERDMA_MAX_QBLOCKS * ERDMA_QPS_PER_QBLOCK - 1, 131071,
           "queue pairs, 1024 n - 1; twice as many CQs and MRs"),
    NUMBER("max-cqe", max_cqe, ERDMA_PROP_POWER, 64,
           1u << ERDMA_MAX_CQ_LOG2, 1u << ERDMA_MAX_CQ_LOG2,
           "entries per completion queue, a power of two"),
    NUMBER("max-recv-wr", max_recv_wr, ERDMA_PROP_POWER, 64,
           1u << ERDMA_MAX_QUEUE_LOG2, 1u << ERDMA_MAX_QUEUE_LOG2,
           "receive requests per queue pair, a power of two"),
    NUMBER("max-mr-size", max_mr_size, ERDMA_PROP_SIZE_POWER, 4 * KiB,
           64 * GiB, 64 * GiB,
           "bytes per memory region, a power of two"),
    NUMBER("ext-db-pages", n_ext_db, ERDMA_PROP_NUMBER, 3, ERDMA_MAX_EXT_DB,
           ERDMA_DEFAULT_EXT_DB,
           "4 KiB doorbell pages for user contexts, three for each; sets the "
           "size of BAR 0, by default 2 MiB, which every hot-plug slot has"),
    NUMBER("version", version, ERDMA_PROP_NUMBER, 0, UINT32_MAX, 1,
           "version register; with 0 the driver takes the device for dead"),
    NUMBER("seed", seed, ERDMA_PROP_NUMBER, 0, UINT64_MAX, 0,
           "of the connections' random numbers; 0 draws one"),
    SWITCH("atomics", has_atomics, true, "offer atomic operations"),
    SWITCH("mtt-va", has_mtt_va, true,
           "offer scattered page tables, needed for regions over 2 GiB"),
    SWITCH("ext-db", has_ext_db, true,
           "offer doorbell pages of their own to user contexts; without "
           "them only privileged processes can use the device"),
    SWITCH("udp-checksum", has_udp_checksum, true,
           "fill in the UDP checksum of outgoing datagrams"),
    XPORT("udp-port", udp_port, 1, 1, UINT16_MAX,
          "UDP port of the wire, the same at all ends"),
    XPORT_SIZE("initial-window", initial_window, 0, 1 * GiB,
               "initial congestion window in bytes; 0 means ten segments"),
    XPORT("rto-initial-us", initial_rto_ns, US, 1000, 60000000,
          "retransmission timeout before the first RTT sample, in us"),
    XPORT("rto-min-us", rto_min_ns, US, 100, 60000000,
          "least retransmission timeout, in us"),
    XPORT("rto-max-us", rto_max_ns, US, 1000, 600000000,
          "greatest retransmission timeout, in us"),
    XPORT("retries", retry_max, 1, 1, 200,
          "timeouts in a row before a connection fails"),
    XPORT("rnr-timeout-ms", rnr_timeout_ns, MS, 1, 3600000,
          "how long a peer may lack a receive before the sender fails, "
          "in ms"),
    XPORT("ack-every", ack_every, 1, 1, 1000, "data packets per ack"),
    XPORT("ack-delay-us", ack_delay_ns, US, 0, 1000000,
          "longest delay of an ack, in us; 0 acks with the next run"),
    XPORT_SIZE("rx-buffer", rx_buffer, 64 * KiB, 1 * GiB,
               "bytes out of order kept per connection"),
    XPORT_SWITCH("pacing", is_paced, "spread packets over the round trip"),
    XPORT("pacing-quantum-us", pacing_quantum_ns, US, 1, 1000000,
          "burst that pacing allows, as time, in us"),
    XPORT_SWITCH("ecn", use_ecn, "send ECN-capable packets"),
    XPORT_SWITCH("go-back-n", is_go_back_n,
                 "drop what is out of order and send again from the first "
                 "gap, for comparison; the same at all ends"),
    XPORT("reordering-threshold", packet_threshold, 1,
          1, ERDMA_XPORT_PACKET_THRESHOLD_MAX,
          "later packets that make one count as lost, until the path has "
          "been seen to reorder"),
    XPORT("int-hops", int_hops, 1, 1, ERDMA_CC_HOPS_MAX,
          "hpcc-int: hops that packets have room for; at most 5 with "
          "int=compact"),
    { .name = "line-rate", FIELD_AT(xport.cc.line_rate), .is_xport = true,
      .kind = ERDMA_PROP_BITRATE, .scale = 1, .min = 1000 * 1000,
      .max = 1000ull * 1000 * 1000 * 1000,
      .text = "HPCC: rate of the sender's own link in bits per second" },
    XPORT("base-rtt-us", cc.base_rtt_ns, US, 0, 10 * 1000 * 1000,
          "HPCC: round trip without queues, in us; 0 takes the smallest one "
          "seen"),
    XPORT_FRACTION("eta", cc.eta, 0.01, 1,
                   "hpcc-int, hpcc-ecn: target utilisation (default: 0.95)"),
    XPORT_FRACTION("delta", cc.delta, 0.001, 10,
                   "hpcc-rtt: the target round trip is 1 + delta times the "
                   "base (default: 0.05)"),
    XPORT("max-stage", cc.max_stage, 1, 0, 1000,
          "hpcc-int, hpcc-rtt: additive increases before a multiplicative "
          "one"),
    XPORT("max-stage-ecn", cc.max_stage_ecn, 1, 0, 1000,
          "hpcc-ecn: additive increases before a multiplicative one"),
    XPORT_SWITCH("ecn-probe", cc.has_ecn_probe,
                 "hpcc-ecn: have multiplicative increases at all"),
    XPORT_SIZE("w-ai", cc.w_ai, 0, 1 * GiB,
               "HPCC: additive increase in bytes per round trip; 0 computes "
               "it from n-flows"),
    XPORT("n-flows", cc.n_flows, 1, 1, 1000 * 1000,
          "HPCC: flows that are expected to share a link"),
    XPORT_FRACTION("ecn-beta", cc.ecn_beta, 0, 1,
                   "newreno, cubic: factor of the window on a mark; 0 does "
                   "as on a loss (default: 0)"),
    XPORT_SWITCH("fast-convergence", cc.has_fast_convergence,
                 "cubic: leave room sooner when the window shrinks"),
    { .name = "inspect-from", FIELD_AT(inspect_from), .scale = 1,
      .kind = ERDMA_PROP_NUMBER, .is_live = true, .max = UINT32_MAX,
      .text = "number of the first object in the lists eqs, cqs, qps and "
              "mrs, which have at most 1024 each; may change at any time" },
};

static const Property erdma_qdev_props[] = {
    DEFINE_PROP_STRING("eni", ErdmaState, eni),
    DEFINE_NIC_PROPERTIES(ErdmaState, conf),
    DEFINE_PROP_STRING("cc", ErdmaState, cc),
    DEFINE_PROP_STRING("int", ErdmaState, int_mode),
    DEFINE_PROP_STRING("firmware-version", ErdmaState, fw_version),
    DEFINE_PROP_STRING("record", ErdmaState, record),
    DEFINE_PROP_STRING("profile", ErdmaState, profile),
};

static uint64_t erdma_prop_load(const ErdmaProp *p, const void *field)
{
    uint64_t val;

    switch (p->size) {
    case 1:
        val = *(const uint8_t *)field;
        break;
    case 2:
        val = *(const uint16_t *)field;
        break;
    case 4:
        val = *(const uint32_t *)field;
        break;
    default:
        val = *(const uint64_t *)field;
        break;
    }
    return p->kind == ERDMA_PROP_BITRATE ? val * 8 : val / p->scale;
}

static void erdma_prop_store(const ErdmaProp *p, void *field, uint64_t val)
{
    val = p->kind == ERDMA_PROP_BITRATE ? val / 8 : val * p->scale;
    switch (p->size) {
    case 1:
        *(uint8_t *)field = val;
        break;
    case 2:
        *(uint16_t *)field = val;
        break;
    case 4:
        *(uint32_t *)field = val;
        break;
    default:
        *(uint64_t *)field = val;
        break;
    }
}

static bool erdma_prop_may_set(Object *obj, const ErdmaProp *p, Error **errp)
{
    if (DEVICE(obj)->realized && !p->is_live) {
        error_setg(errp, "property '%s' cannot be changed any more", p->name);
        return false;
    }
    return true;
}

static bool erdma_prop_is_size(const ErdmaProp *p)
{
    return p->kind == ERDMA_PROP_SIZE || p->kind == ERDMA_PROP_SIZE_POWER;
}

static bool erdma_prop_visit(const ErdmaProp *p, Visitor *v, const char *name,
                             uint64_t *val, Error **errp)
{
    bool is_on = *val;

    if (p->kind == ERDMA_PROP_SWITCH) {
        if (!visit_type_bool(v, name, &is_on, errp)) {
            return false;
        }
        *val = is_on;
        return true;
    }
    if (erdma_prop_is_size(p)) {
        return visit_type_size(v, name, val, errp);
    }
    return visit_type_uint64(v, name, val, errp);
}

static void erdma_fraction_get(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    const ErdmaProp *p = opaque;
    double val = *(double *)((void *)ERDMA(obj) + p->offset);

    visit_type_number(v, name, &val, errp);
}

static void erdma_fraction_set(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    const ErdmaProp *p = opaque;
    double val;

    if (!erdma_prop_may_set(obj, p, errp) ||
        !visit_type_number(v, name, &val, errp)) {
        return;
    }
    if (!(val >= p->least && val <= p->most)) {
        error_setg(errp, "property '%s' is %g, must be %g to %g", p->name,
                   val, p->least, p->most);
        return;
    }
    *(double *)((void *)ERDMA(obj) + p->offset) = val;
}

static void erdma_prop_get(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    const ErdmaProp *p = opaque;
    uint64_t val = erdma_prop_load(p, (void *)ERDMA(obj) + p->offset);

    erdma_prop_visit(p, v, name, &val, errp);
}

static bool erdma_prop_check(const ErdmaProp *p, uint64_t val, Error **errp)
{
    if (val < p->min || val > p->max) {
        error_setg(errp, "property '%s' is %" PRIu64 ", must be %" PRIu64
                   " to %" PRIu64, p->name, val, p->min, p->max);
        return false;
    }
    if ((p->kind == ERDMA_PROP_POWER || p->kind == ERDMA_PROP_SIZE_POWER) &&
        !is_power_of_2(val)) {
        error_setg(errp, "property '%s' is %" PRIu64 ", must be a power of "
                   "two, %" PRIu64 " to %" PRIu64, p->name, val, p->min,
                   p->max);
        return false;
    }
    if (p->kind == ERDMA_PROP_QPS && (val + 1) % ERDMA_QPS_PER_QBLOCK) {
        error_setg(errp, "property '%s' is %" PRIu64 ", must be a multiple "
                   "of %d less 1, %" PRIu64 " to %" PRIu64, p->name, val,
                   ERDMA_QPS_PER_QBLOCK, p->min, p->max);
        return false;
    }
    return true;
}

static void erdma_prop_set(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    const ErdmaProp *p = opaque;
    uint64_t val = 0;

    if (erdma_prop_may_set(obj, p, errp) &&
        erdma_prop_visit(p, v, name, &val, errp) &&
        erdma_prop_check(p, val, errp)) {
        erdma_prop_store(p, (void *)ERDMA(obj) + p->offset, val);
        ERDMA(obj)->given |= BIT_ULL(p - erdma_props);
    }
}

void erdma_props_init(ErdmaState *s)
{
    QEMU_BUILD_BUG_ON(ARRAY_SIZE(erdma_props) > 64);

    s->given = 0;
}

void erdma_prop_preset(ErdmaState *s, const char *name, uint64_t val)
{
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(erdma_props); i++) {
        const ErdmaProp *p = &erdma_props[i];

        if (!strcmp(p->name, name) && !(s->given & BIT_ULL(i))) {
            assert(erdma_prop_check(p, val, NULL));
            erdma_prop_store(p, (void *)s + p->offset, val);
        }
    }
}

static const char *erdma_prop_type(const ErdmaProp *p)
{
    if (p->kind == ERDMA_PROP_SWITCH) {
        return "bool";
    }
    return erdma_prop_is_size(p) ? "size" : "uint64";
}

static void erdma_prop_add(ObjectClass *oc, const ErdmaProp *p,
                           const ErdmaXportConfig *xport)
{
    uint64_t def = p->def;
    ObjectProperty *op;

    if (p->kind == ERDMA_PROP_FRACTION) {
        /* No default that QOM knows of: erdma_init() sets it. */
        object_class_property_add(oc, p->name, "number", erdma_fraction_get,
                                  erdma_fraction_set, NULL, (void *)p);
        object_class_property_set_description(oc, p->name, p->text);
        return;
    }
    if (p->is_xport) {
        def = erdma_prop_load(p, (const void *)xport +
                              (p->offset - offsetof(ErdmaState, xport)));
    }
    op = object_class_property_add(oc, p->name, erdma_prop_type(p),
                                   erdma_prop_get, erdma_prop_set, NULL,
                                   (void *)p);
    if (p->kind == ERDMA_PROP_SWITCH) {
        object_property_set_default_bool(op, def);
    } else {
        object_property_set_default_uint(op, def);
    }
    object_class_property_set_description(oc, p->name, p->text);
}

void erdma_props_class_init(ObjectClass *oc)
{
    ErdmaXportConfig xport;
    unsigned i;

    device_class_set_props(DEVICE_CLASS(oc), erdma_qdev_props);
    object_class_property_set_description(oc, "eni",
        "ID of the NIC in this machine that the HCA extends: its MAC "
        "address, its wire");
    object_class_property_set_description(oc, "netdev",
        "ID of a netdev of its own, instead of eni");
    object_class_property_set_description(oc, "mac",
        "with netdev: the MAC address of the guest's NIC to pair with");
    object_class_property_set_description(oc, "cc",
        "congestion control that is proposed: newreno, cubic, hpcc-rtt, "
        "hpcc-ecn or hpcc-int; with none every connection has a fixed "
        "window, whatever the drivers agree on (default: cubic)");
    object_class_property_set_description(oc, "int",
        "hpcc-int: what packets carry for links to fill in: wide, compact "
        "or off (default: wide)");
    object_class_property_set_description(oc, "firmware-version",
        "as 0.MINOR.PATCH (default: 0.2.34)");
    object_class_property_set_description(oc, "record",
        "file to write everything to that reaches the transport, for "
        "erdma-sim --replay");
    object_class_property_set_description(oc, "profile",
        "size of the HCA, small or large: sets max-qp, vectors, max-mr-size "
        "and mtt-va where they are not given (default: large)");

    erdma_xport_config_default(&xport);
    for (i = 0; i < ARRAY_SIZE(erdma_props); i++) {
        erdma_prop_add(oc, &erdma_props[i], &xport);
    }
}
