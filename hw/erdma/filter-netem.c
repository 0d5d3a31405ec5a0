/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter-netem: an emulated link as a QEMU net filter.
 *
 * One object is one direction of any netdev.  Packets are delayed, lost,
 * marked and so on by netem/; this file moves them between the net layer and
 * the link, and is the link's view of their contents: IP's ECN bits, and what
 * the eRDMA wire format sets aside for links.
 *
 * Reference: docs/congestion-control/netem.md
 */

#include "qemu/osdep.h"
#include "erdma-compat.h"
#include "erdma-frame.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "net/filter.h"
#include "net/net.h"
#include "netem/netem.h"
#include "qapi/error.h"
#include "qapi/qapi-types-net.h"
#include "qapi/visitor.h"
#include "qemu/cutils.h"
#include "qemu/iov.h"
#include "qemu/timer.h"
#include "qom/object.h"
#include "xport/link.h"

#define TYPE_FILTER_NETEM   "filter-netem"

OBJECT_DECLARE_SIMPLE_TYPE(FilterNetem, FILTER_NETEM)

/* Indices that drop-list may name */
#define NETEM_LIST_MAX      65536

struct FilterNetem {
    NetFilterState parent_obj;

    NetemConfig cfg;            /* as the properties say */
    char *drop_list;            /* as given, and parsed */
    GArray *drop_index;
    NetemLink *link;            /* NULL until complete */
    QEMUTimer *timer;
};

typedef struct FilterNetemPacket {
    NetemPacket packet;
    unsigned flags;
    uint8_t vnet_len;           /* bytes of buf in front of the frame */
    size_t buf_len;
    uint8_t buf[];
} FilterNetemPacket;

static uint64_t filter_netem_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* What the link asks about a packet */

static FilterNetemPacket *filter_netem_packet(NetemPacket *p)
{
    return container_of(p, FilterNetemPacket, packet);
}

static FilterNetemPacket *filter_netem_packet_new(size_t buf_len,
                                                  size_t vnet_len)
{
    FilterNetemPacket *fp = g_malloc0(sizeof(*fp) + buf_len);

    fp->vnet_len = vnet_len;
    fp->buf_len = buf_len;
    fp->packet.data = fp->buf + vnet_len;
    fp->packet.len = buf_len - vnet_len;
    return fp;
}

static NetemPacket *filter_netem_copy(void *opaque, const NetemPacket *p)
{
    const FilterNetemPacket *from = container_of(p, FilterNetemPacket,
                                                 packet);
    FilterNetemPacket *fp = filter_netem_packet_new(from->buf_len,
                                                    from->vnet_len);

    fp->flags = from->flags;
    memcpy(fp->buf, from->buf, from->buf_len);
    return &fp->packet;
}

static void filter_netem_free(void *opaque, NetemPacket *p)
{
    g_free(filter_netem_packet(p));
}

/* The eRDMA datagram in the frame, or false */
static bool filter_netem_datagram(NetemPacket *p, ErdmaDatagram *dg)
{
    return erdma_frame_parse(p->data, p->len, true, dg) ==
           ERDMA_FRAME_DATAGRAM && erdma_xport_is_ours(dg->data, dg->len);
}

/* A checksum that was there is made right again; one that was not stays 0. */
static void filter_netem_fix_checksum(NetemPacket *p, const ErdmaDatagram *dg)
{
    if (lduw_be_p(dg->data - 2)) {
        net_checksum_calculate(p->data, p->len, CSUM_UDP);
    }
}

/* Sets the ECN bits of an IPv4 or IPv6 header; false: not ECN-capable */
static bool filter_netem_mark_ip(NetemPacket *p)
{
    uint8_t *ip = p->data + ERDMA_ETH_LEN;
    uint16_t type, old, new;
    uint32_t sum;

    if (p->len < ERDMA_ETH_LEN + 20) {
        return false;
    }
    type = lduw_be_p(p->data + 12);
    if (type == ETH_P_IPV6 && ip[0] >> 4 == 6) {
        if (!(ip[1] & 0x30)) {
            return false;
        }
        ip[1] |= 0x30;
        return true;
    }
    if (type != ETH_P_IP || ip[0] >> 4 != 4 || !(ip[1] & 3)) {
        return false;
    }
    old = lduw_be_p(ip);
    ip[1] |= 3;
    new = lduw_be_p(ip);
    /* RFC 1624, equation 3 */
    sum = (uint16_t)~lduw_be_p(ip + 10);
    sum += (uint16_t)~old;
    sum += new;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    stw_be_p(ip + 10, (uint16_t)~sum);
    return true;
}

static bool filter_netem_mark(void *opaque, NetemPacket *p)
{
    bool is_marked = filter_netem_mark_ip(p);
    ErdmaDatagram dg;

    if (filter_netem_datagram(p, &dg) && erdma_link_mark(dg.data, dg.len)) {
        filter_netem_fix_checksum(p, &dg);
        is_marked = true;
    }
    return is_marked;
}

static bool filter_netem_stamp(void *opaque, NetemPacket *p, uint64_t time_ns,
                               uint64_t tx_bytes, uint64_t queue)
{
    FilterNetem *s = opaque;
    const NetemConfig *cfg = netem_link_config(s->link);
    ErdmaLinkStamp stamp = {
        .rate_bps = cfg->rate_bps,
        .time_ns = time_ns,
        .tx_bytes = tx_bytes,
        .queue = MIN(queue, UINT32_MAX),
        .link_id = cfg->link_id,
    };
    ErdmaDatagram dg;

    if (!filter_netem_datagram(p, &dg) ||
        !erdma_link_stamp(dg.data, dg.len, &stamp)) {
        return false;
    }
    filter_netem_fix_checksum(p, &dg);
    return true;
}

static const NetemOps filter_netem_ops = {
    .mark = filter_netem_mark,
    .stamp = filter_netem_stamp,
    .copy = filter_netem_copy,
    .free = filter_netem_free,
};

/* Between the net layer and the link */

static void filter_netem_rearm(FilterNetem *s)
{
    uint64_t at = netem_link_deadline(s->link);

    if (at == NETEM_NEVER) {
        timer_del(s->timer);
    } else {
        timer_mod(s->timer, MIN(at, INT64_MAX));
    }
}

/*
 * Who a packet comes from is not remembered: the NIC it came from may be
 * gone by the time it is delivered.
 */
static NetClientState *filter_netem_sender(NetFilterState *nf)
{
    return nf->direction == NET_FILTER_DIRECTION_TX ? nf->netdev
                                                    : nf->netdev->peer;
}

static void filter_netem_deliver(FilterNetem *s)
{
    NetFilterState *nf = NETFILTER(s);
    NetemPacket *p;

    while ((p = netem_link_take(s->link, filter_netem_now()))) {
        FilterNetemPacket *fp = filter_netem_packet(p);
        NetClientState *sender = filter_netem_sender(nf);
        struct iovec iov = {
            .iov_base = fp->buf,
            .iov_len = fp->buf_len,
        };

        if (sender) {
            qemu_netfilter_pass_to_next(sender, fp->flags, &iov, 1, nf);
        }
        filter_netem_free(s, p);
    }
}

static void filter_netem_timer(void *opaque)
{
    FilterNetem *s = opaque;

    filter_netem_deliver(s);
    filter_netem_rearm(s);
}

static ssize_t filter_netem_receive_iov(NetFilterState *nf,
                                        NetClientState *sender,
                                        unsigned flags,
                                        const struct iovec *iov, int iovcnt,
                                        NetPacketSent *sent_cb)
{
    FilterNetem *s = FILTER_NETEM(nf);
    size_t len = iov_size(iov, iovcnt);
    size_t vnet_len = nf->netdev->vnet_hdr_len;
    FilterNetemPacket *fp;

    if (len < vnet_len) {
        return 0;
    }
    fp = filter_netem_packet_new(len, vnet_len);
    fp->flags = flags;
    iov_to_buf(iov, iovcnt, 0, fp->buf, len);
    netem_link_put(s->link, &fp->packet, filter_netem_now());
    /*
     * Never from in here, not even without any delay: the sender is in the
     * middle of its own business.
     */
    filter_netem_rearm(s);
    return len;
}

/* Properties */

static bool filter_netem_parse_list(const char *list, GArray *out,
                                    Error **errp)
{
    g_auto(GStrv) item = g_strsplit(list, ":", NETEM_LIST_MAX + 1);
    unsigned i;

    for (i = 0; item[i] && *item[i]; i++) {
        uint64_t index;

        if (i == NETEM_LIST_MAX || qemu_strtou64(item[i], NULL, 10, &index)) {
            error_setg(errp, "filter-netem: drop-list '%s': want packet "
                       "indices from 0 separated by ':', at most %d of them",
                       list, NETEM_LIST_MAX);
            return false;
        }
        g_array_append_val(out, index);
    }
    return true;
}

static bool filter_netem_apply(FilterNetem *s, const NetemConfig *cfg,
                               Error **errp)
{
    const char *allowed;
    const char *bad = netem_config_check(cfg, &allowed);

    if (bad) {
        error_setg(errp, "filter-netem: %s: must be %s", bad, allowed);
        return false;
    }
    s->cfg = *cfg;
    if (s->link) {
        netem_link_set_config(s->link, cfg, filter_netem_now());
        filter_netem_rearm(s);
    }
    return true;
}

/* One property was set. */
static void filter_netem_change(FilterNetem *s, const NetemConfig *cfg,
                                Error **errp)
{
    if (s->link) {
        filter_netem_apply(s, cfg, errp);
    } else {
        /* Those that belong together arrive one by one: checked in setup */
        s->cfg = *cfg;
    }
}

typedef enum FilterNetemKind {
    NETEM_PROP_U64,
    NETEM_PROP_U32,
    NETEM_PROP_U16,
    NETEM_PROP_DOUBLE,
    NETEM_PROP_BOOL,
    NETEM_PROP_US,              /* microseconds, kept as nanoseconds */
} FilterNetemKind;

typedef struct FilterNetemProp {
    const char *name;
    FilterNetemKind kind;
    size_t offset;
    const char *description;
} FilterNetemProp;

#define P(name, kind, field, text) \
    { name, NETEM_PROP_##kind, offsetof(NetemConfig, field), text }

static const FilterNetemProp filter_netem_props[] = {
    P("seed", U64, seed, "of every random decision"),
    P("loss", DOUBLE, loss, "probability that a packet is lost"),
    P("burst-enter", DOUBLE, ge_enter,
      "Gilbert-Elliott: probability per packet of entering the bad state"),
    P("burst-leave", DOUBLE, ge_leave,
      "Gilbert-Elliott: probability per packet of leaving the bad state"),
    P("burst-loss", DOUBLE, ge_loss_bad,
      "Gilbert-Elliott: loss in the bad state"),
    P("burst-good-loss", DOUBLE, ge_loss_good,
      "Gilbert-Elliott: loss in the good state"),
    P("drop-every", U64, drop_every, "drop every n-th packet, 0: none"),
    P("corrupt", DOUBLE, corrupt,
      "probability that a packet is damaged, and dropped for it"),
    P("limit", U64, limit, "queue in bytes, drop-tail; 0: 64 MiB"),
    P("ecn-kmin", U64, ecn_kmin, "queue in bytes from which packets may be "
      "marked"),
    P("ecn-kmax", U64, ecn_kmax, "queue in bytes from which all packets are "
      "marked; 0: no marking"),
    P("ecn-pmax", DOUBLE, ecn_pmax, "probability of a mark just below "
      "ecn-kmax"),
    P("ecn-drop", BOOL, ecn_drop_not_ect, "drop what should be marked and "
      "is not ECN-capable"),
    P("ecn-at-dequeue", BOOL, ecn_at_dequeue, "mark when a packet leaves the "
      "queue instead of when it enters"),
    P("rate", U64, rate_bps, "bits per second, 0: infinite"),
    P("overhead", U32, overhead, "bytes of framing added to each packet"),
    P("link-id", U16, link_id, "stamp eRDMA INT stacks with this number, "
      "0: do not"),
    P("delay-us", US, delay_ns, "propagation delay in microseconds"),
    P("jitter-us", US, jitter_ns, "more delay: the largest of a uniform, the "
      "mean of another distribution, in microseconds"),
    P("jitter-reorders", BOOL, jitter_reorders, "let jitter change the order "
      "of packets"),
    P("reorder", DOUBLE, reorder, "probability that a packet is held back"),
    P("reorder-us", US, reorder_ns, "for how long, in microseconds"),
    P("duplicate", DOUBLE, duplicate, "probability that a packet arrives "
      "twice"),
};

#undef P

static void filter_netem_get(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    const FilterNetemProp *prop = opaque;
    void *field = (char *)&FILTER_NETEM(obj)->cfg + prop->offset;
    uint64_t us;

    switch (prop->kind) {
    case NETEM_PROP_U64:
        visit_type_uint64(v, name, field, errp);
        break;
    case NETEM_PROP_U32:
        visit_type_uint32(v, name, field, errp);
        break;
    case NETEM_PROP_U16:
        visit_type_uint16(v, name, field, errp);
        break;
    case NETEM_PROP_DOUBLE:
        visit_type_number(v, name, field, errp);
        break;
    case NETEM_PROP_BOOL:
        visit_type_bool(v, name, field, errp);
        break;
    case NETEM_PROP_US:
        us = *(uint64_t *)field / SCALE_US;
        visit_type_uint64(v, name, &us, errp);
        break;
    }
}

static void filter_netem_set(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    FilterNetem *s = FILTER_NETEM(obj);
    const FilterNetemProp *prop = opaque;
    NetemConfig cfg = s->cfg;
    void *field = (char *)&cfg + prop->offset;
    bool ok = false;
    uint64_t us;

    switch (prop->kind) {
    case NETEM_PROP_U64:
        ok = visit_type_uint64(v, name, field, errp);
        break;
    case NETEM_PROP_U32:
        ok = visit_type_uint32(v, name, field, errp);
        break;
    case NETEM_PROP_U16:
        ok = visit_type_uint16(v, name, field, errp);
        break;
    case NETEM_PROP_DOUBLE:
        ok = visit_type_number(v, name, field, errp);
        break;
    case NETEM_PROP_BOOL:
        ok = visit_type_bool(v, name, field, errp);
        break;
    case NETEM_PROP_US:
        ok = visit_type_uint64(v, name, &us, errp);
        if (ok) {
            /* What does not fit is beyond every limit anyway. */
            *(uint64_t *)field = MIN(us, UINT64_MAX / SCALE_US) * SCALE_US;
        }
        break;
    }
    if (ok) {
        filter_netem_change(s, &cfg, errp);
    }
}

static const char *const filter_netem_jitter[NETEM_JITTER_COUNT] = {
    [NETEM_JITTER_NONE] = "none",
    [NETEM_JITTER_UNIFORM] = "uniform",
    [NETEM_JITTER_NORMAL] = "normal",
    [NETEM_JITTER_PARETO] = "pareto",
};

static char *filter_netem_get_jitter(Object *obj, Error **errp)
{
    return g_strdup(filter_netem_jitter[FILTER_NETEM(obj)->cfg.jitter]);
}

static void filter_netem_set_jitter(Object *obj, const char *value,
                                    Error **errp)
{
    FilterNetem *s = FILTER_NETEM(obj);
    NetemConfig cfg = s->cfg;
    unsigned i;

    for (i = 0; i < NETEM_JITTER_COUNT; i++) {
        if (!strcmp(value, filter_netem_jitter[i])) {
            cfg.jitter = i;
            filter_netem_change(s, &cfg, errp);
            return;
        }
    }
    error_setg(errp, "filter-netem: jitter '%s': want none, uniform, normal "
               "or pareto", value);
}

static char *filter_netem_get_drop_list(Object *obj, Error **errp)
{
    FilterNetem *s = FILTER_NETEM(obj);

    return g_strdup(s->drop_list ? s->drop_list : "");
}

static void filter_netem_set_drop_list(Object *obj, const char *value,
                                       Error **errp)
{
    FilterNetem *s = FILTER_NETEM(obj);
    g_autoptr(GArray) index = g_array_new(false, false, sizeof(uint64_t));

    if (!filter_netem_parse_list(value, index, errp)) {
        return;
    }
    g_array_unref(s->drop_index);
    s->drop_index = g_steal_pointer(&index);
    g_free(s->drop_list);
    s->drop_list = g_strdup(value);
    if (s->link) {
        netem_link_set_drop_list(s->link, (uint64_t *)s->drop_index->data,
                                 s->drop_index->len);
    }
}

/* Counters */

typedef struct FilterNetemCounter {
    const char *name;
    size_t offset;
    const char *description;
} FilterNetemCounter;

#define C(name, field, text) { name, offsetof(NetemStats, field), text }

static const FilterNetemCounter filter_netem_counters[] = {
    C("arrivals", arrivals, "packets that entered"),
    C("arrived-bytes", arrived_bytes, "their bytes"),
    C("drop-loss", drop_loss, "lost at random"),
    C("drop-burst", drop_burst, "lost in a burst"),
    C("drop-listed", drop_listed, "dropped by drop-every and drop-list"),
    C("drop-corrupt", drop_corrupt, "damaged"),
    C("drop-queue", drop_queue, "found the queue full"),
    C("drop-not-ect", drop_not_ect, "could not be marked"),
    C("marks", marks, "marked with congestion experienced"),
    C("stamps", stamps, "INT hops added"),
    C("reorders", reorders, "held back"),
    C("duplicates", duplicates, "duplicated"),
    C("departures", departures, "serialised"),
    C("departed-bytes", departed_bytes, "with framing"),
    C("delivered", delivered, "packets that left"),
    C("busy-ns", busy_ns, "time spent serialising"),
    C("queue-max", queue_max, "longest queue in bytes"),
};

#undef C

static const NetemStats *filter_netem_stats(FilterNetem *s)
{
    static const NetemStats none;

    return s->link ? netem_link_stats(s->link, filter_netem_now()) : &none;
}

static void filter_netem_get_counter(Object *obj, Visitor *v,
                                     const char *name, void *opaque,
                                     Error **errp)
{
    const FilterNetemCounter *c = opaque;
    uint64_t value = *(const uint64_t *)((const char *)
        filter_netem_stats(FILTER_NETEM(obj)) + c->offset);

    visit_type_uint64(v, name, &value, errp);
}

static void filter_netem_get_queue(Object *obj, Visitor *v, const char *name,
                                   void *opaque, Error **errp)
{
    FilterNetem *s = FILTER_NETEM(obj);
    uint64_t value = s->link ? netem_link_queue(s->link) : 0;

    visit_type_uint64(v, name, &value, errp);
}

static void filter_netem_get_integral(Object *obj, Visitor *v,
                                      const char *name, void *opaque,
                                      Error **errp)
{
    double value = filter_netem_stats(FILTER_NETEM(obj))->queue_integral;

    visit_type_number(v, name, &value, errp);
}

/* All of one moment, so that differences are exact however late they are */
static void filter_netem_get_stats(Object *obj, Visitor *v, const char *name,
                                   void *opaque, Error **errp)
{
    uint64_t now = filter_netem_now();
    size_t i;

    visit_start_struct(v, name, NULL, 0, &error_abort);
    visit_type_uint64(v, "time-ns", &now, &error_abort);
    filter_netem_get_queue(obj, v, "queue-bytes", NULL, &error_abort);
    filter_netem_get_integral(obj, v, "queue-integral", NULL, &error_abort);
    for (i = 0; i < ARRAY_SIZE(filter_netem_counters); i++) {
        filter_netem_get_counter(obj, v, filter_netem_counters[i].name,
                                 (void *)&filter_netem_counters[i],
                                 &error_abort);
    }
    visit_end_struct(v, NULL);
}

/* Life */

static void filter_netem_setup(NetFilterState *nf, Error **errp)
{
    FilterNetem *s = FILTER_NETEM(nf);
    NetemConfig cfg = s->cfg;

    if (nf->direction == NET_FILTER_DIRECTION_ALL) {
        error_setg(errp, "filter-netem: one object is one direction of a "
                   "link: set queue=rx (from the guest) or queue=tx (to the "
                   "guest)");
        return;
    }
    if (!filter_netem_apply(s, &cfg, errp)) {
        return;
    }
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, filter_netem_timer, s);
    s->link = netem_link_new(&filter_netem_ops, s, &s->cfg);
    netem_link_set_drop_list(s->link, (uint64_t *)s->drop_index->data,
                             s->drop_index->len);
}

static void filter_netem_cleanup(NetFilterState *nf)
{
    FilterNetem *s = FILTER_NETEM(nf);

    timer_free(s->timer);
    s->timer = NULL;
    netem_link_free(s->link);
    s->link = NULL;
}

static void filter_netem_init(Object *obj)
{
    FilterNetem *s = FILTER_NETEM(obj);

    s->cfg.ge_loss_bad = 1;
    s->cfg.ecn_pmax = 1;
    s->drop_index = g_array_new(false, false, sizeof(uint64_t));
}

static void filter_netem_finalize(Object *obj)
{
    FilterNetem *s = FILTER_NETEM(obj);

    g_free(s->drop_list);
    g_array_unref(s->drop_index);
}

static void filter_netem_class_init(ObjectClass *oc, ERDMA_CLASS_DATA *data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);
    size_t i;

    nfc->setup = filter_netem_setup;
    nfc->cleanup = filter_netem_cleanup;
    nfc->receive_iov = filter_netem_receive_iov;

    for (i = 0; i < ARRAY_SIZE(filter_netem_props); i++) {
        const FilterNetemProp *p = &filter_netem_props[i];

        object_class_property_add(oc, p->name,
                                  p->kind == NETEM_PROP_DOUBLE ? "number" :
                                  p->kind == NETEM_PROP_BOOL ? "bool" : "int",
                                  filter_netem_get, filter_netem_set, NULL,
                                  (void *)p);
        object_class_property_set_description(oc, p->name, p->description);
    }
    object_class_property_add_str(oc, "jitter", filter_netem_get_jitter,
                                  filter_netem_set_jitter);
    object_class_property_set_description(oc, "jitter", "distribution: none, "
                                          "uniform, normal or pareto");
    object_class_property_add_str(oc, "drop-list", filter_netem_get_drop_list,
                                  filter_netem_set_drop_list);
    object_class_property_set_description(oc, "drop-list", "indices of "
                                          "packets to drop, first is 0, "
                                          "separated by ':'");
    for (i = 0; i < ARRAY_SIZE(filter_netem_counters); i++) {
        const FilterNetemCounter *c = &filter_netem_counters[i];

        object_class_property_add(oc, c->name, "int",
                                  filter_netem_get_counter, NULL, NULL,
                                  (void *)c);
        object_class_property_set_description(oc, c->name, c->description);
    }
    object_class_property_add(oc, "queue-bytes", "int",
                              filter_netem_get_queue, NULL, NULL, NULL);
    object_class_property_set_description(oc, "queue-bytes",
                                          "bytes waiting now");
    object_class_property_add(oc, "queue-integral", "number",
                              filter_netem_get_integral, NULL, NULL, NULL);
    object_class_property_set_description(oc, "queue-integral", "byte "
                                          "seconds: over a time, the mean");
    object_class_property_add(oc, "stats", "FilterNetemStats",
                              filter_netem_get_stats, NULL, NULL, NULL);
    object_class_property_set_description(oc, "stats", "all counters at once");
}

static const TypeInfo filter_netem_type = {
    .name = TYPE_FILTER_NETEM,
    .parent = TYPE_NETFILTER,
    .instance_size = sizeof(FilterNetem),
    .instance_init = filter_netem_init,
    .instance_finalize = filter_netem_finalize,
    .class_init = filter_netem_class_init,
};

static void filter_netem_register(void)
{
    type_register_static(&filter_netem_type);
}

type_init(filter_netem_register)
