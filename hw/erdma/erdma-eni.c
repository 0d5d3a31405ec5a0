/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sharing an ENI: a NIC that is already in the machine.
 *
 * The HCA sends as that NIC, so that every filter, hub and capture on its
 * netdev sees the packets, and takes its own datagrams off before the NIC
 * gets them.  For the latter a net filter sits at the guest's end of the
 * netdev's list.  It also watches where the guest sends its own packets: the
 * TCP handshake of the RDMA connection manager has just shown the next hop.
 *
 * Unplugging the NIC first is refused: Linux's driver holds on to its net
 * device, and a guest that waits for it handles no other unplug request.  Yet
 * the NIC may be removed under us, for the guest can eject it unasked; it is
 * looked up anew for each packet.  So may the netdev, which takes its filters
 * with it.
 *
 * Reference: docs/specs/erdma-wire.rst
 */

#include "qemu/osdep.h"
#include "hw/qdev-core.h"
#include "hw/sysbus.h"
#include "net/filter.h"
#include "net/vhost_net.h"
#include "qapi/error.h"
#include "qemu/iov.h"
#include "qemu/module.h"
#include "qom/object_interfaces.h"
#include "standard-headers/linux/virtio_net.h"
#include "erdma.h"
#include "erdma-frame.h"
#include "trace.h"

#define TYPE_ERDMA_FILTER "erdma-filter"
OBJECT_DECLARE_SIMPLE_TYPE(ErdmaFilter, ERDMA_FILTER)

struct ErdmaFilter {
    NetFilterState parent_obj;

    ErdmaState *hca;
};

/*
 * Filters may be added behind us at run time.  The guest's end of the list
 * is its tail; to move there in the middle of a walk over the list ends the
 * walk, which is right for a packet that we take anyway.
 */
static void erdma_filter_keep_last(NetFilterState *nf)
{
    if (QTAILQ_NEXT(nf, next)) {
        QTAILQ_REMOVE(&nf->netdev->filters, nf, next);
        QTAILQ_INSERT_TAIL(&nf->netdev->filters, nf, next);
    }
}

/*
 * The NIC at the netdev right now, if its link is up.  Another one may have
 * taken the place of the one we were made for; then the wire is not ours.
 */
static NetClientState *erdma_filter_nic(NetFilterState *nf)
{
    ErdmaState *s = container_of(nf, ErdmaFilter, parent_obj)->hca;
    NetClientState *nc = nf->netdev->peer;

    if (!nc || nc->info->type != NET_CLIENT_DRIVER_NIC || nc->link_down ||
        memcmp(qemu_get_nic(nc)->conf->macaddr.a, s->mac.a, ERDMA_MAC_LEN)) {
        return NULL;
    }
    return nc;
}

/* Wire to guest: is it ours? */
static bool erdma_filter_take(ErdmaState *s, const struct iovec *iov,
                              int iovcnt, unsigned vnet_len)
{
    g_autofree uint8_t *copy = NULL;
    const uint8_t *p = iov[0].iov_base;
    size_t len = iov[0].iov_len;
    const struct virtio_net_hdr *vnet;
    bool is_csum_ok = false;

    if (iovcnt > 1) {
        len = iov_size(iov, iovcnt);
        copy = g_malloc(len);
        iov_to_buf(iov, iovcnt, 0, copy, len);
        p = copy;
    }
    if (len < vnet_len) {
        return false;
    }
    if (vnet_len >= sizeof(*vnet)) {
        vnet = (const struct virtio_net_hdr *)p;
        if (vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
            return false;
        }
        /* A host that offloads sends a partial sum and vouches for the rest */
        is_csum_ok = vnet->flags & (VIRTIO_NET_HDR_F_NEEDS_CSUM |
                                    VIRTIO_NET_HDR_F_DATA_VALID);
    }
    return erdma_wire_rx(s, p + vnet_len, len - vnet_len, is_csum_ok);
}

/* Guest to wire: where does the guest send packets for that address? */
static void erdma_filter_learn(ErdmaState *s, const struct iovec *iov,
                               int iovcnt, unsigned vnet_len)
{
    uint8_t hdr[ERDMA_FRAME_HOP_LEN], mac[ERDMA_MAC_LEN];
    size_t len = iov_to_buf(iov, iovcnt, vnet_len, hdr, sizeof(hdr));
    uint32_t ip;

    if (erdma_frame_next_hop(hdr, len, s->mac.a, &ip, mac) &&
        erdma_neigh_learn(s->wire.hops, ip, mac)) {
        g_autofree char *str = qemu_mac_strdup_printf(mac);

        trace_erdma_neigh_learn(s->name, ip, str);
    }
}

static ssize_t erdma_filter_receive_iov(NetFilterState *nf,
                                        NetClientState *sender,
                                        unsigned flags,
                                        const struct iovec *iov, int iovcnt,
                                        NetPacketSent *sent_cb)
{
    ErdmaState *s = container_of(nf, ErdmaFilter, parent_obj)->hca;
    unsigned vnet_len = nf->netdev->vnet_hdr_len;

    if (s->wire.is_sending || iovcnt < 1) {
        return 0;
    }
    if (flags & QEMU_NET_PACKET_FLAG_RAW) {
        vnet_len = 0;
    }
    if (sender != nf->netdev) {
        erdma_filter_learn(s, iov, iovcnt, vnet_len);
        return 0;
    }
    if (!erdma_filter_nic(nf) ||
        !erdma_filter_take(s, iov, iovcnt, vnet_len)) {
        return 0;
    }
    erdma_filter_keep_last(nf);
    return iov_size(iov, iovcnt);
}

/* Also when the netdev is deleted, which unparents its filters. */
static void erdma_filter_cleanup(NetFilterState *nf)
{
    ErdmaState *s = ERDMA_FILTER(nf)->hca;

    if (s && s->wire.filter == ERDMA_FILTER(nf)) {
        trace_erdma_wire_gone(s->name);
        s->wire.filter = NULL;
        erdma_wire_unblock(s);
    }
}

NetClientState *erdma_eni_nic(ErdmaState *s, unsigned *vnet_len)
{
    NetFilterState *nf;

    if (!s->wire.filter) {
        return NULL;
    }
    nf = &s->wire.filter->parent_obj;
    erdma_filter_keep_last(nf);
    *vnet_len = nf->netdev->vnet_hdr_len;
    return erdma_filter_nic(nf);
}

bool erdma_netdev_check(NetClientState *nc, int n_queues, const char *prop,
                        Error **errp)
{
    if (n_queues > 1) {
        error_setg(errp, "property '%s': netdev '%s' has %d queues, at most 1 "
                   "is supported", prop, nc->name, n_queues);
        return false;
    }
    if (nc->info->type == NET_CLIENT_DRIVER_VHOST_USER ||
        nc->info->type == NET_CLIENT_DRIVER_VHOST_VDPA ||
        get_vhost_net(nc)) {
        error_setg(errp, "property '%s': netdev '%s' uses vhost, whose "
                   "packets do not pass through QEMU", prop, nc->name);
        return false;
    }
    return true;
}

/* The backend of the NIC that property eni names */
static NetClientState *erdma_eni_netdev(ErdmaState *s, DeviceState *nic,
                                        Error **errp)
{
    g_autofree char *id = NULL;
    NetClientState *ncs[MAX_QUEUE_NUM];
    int n;

    if (!object_property_find(OBJECT(nic), "netdev") ||
        !object_property_find(OBJECT(nic), "mac") ||
        object_dynamic_cast(OBJECT(nic), TYPE_ERDMA)) {
        error_setg(errp, "property 'eni': device '%s' (%s) is not a NIC",
                   s->eni, object_get_typename(OBJECT(nic)));
        return NULL;
    }
    id = object_property_get_str(OBJECT(nic), "netdev", NULL);
    n = id && *id ? qemu_find_net_clients_except(id, ncs,
                                                 NET_CLIENT_DRIVER_NIC,
                                                 MAX_QUEUE_NUM) : 0;
    if (n < 1) {
        error_setg(errp, "property 'eni': NIC '%s' has no netdev", s->eni);
        return NULL;
    }
    if (!erdma_netdev_check(ncs[0], n, "eni", errp)) {
        return NULL;
    }
    if (!ncs[0]->peer || ncs[0]->peer->info->type != NET_CLIENT_DRIVER_NIC) {
        error_setg(errp, "property 'eni': NIC '%s' is not connected to its "
                   "netdev '%s'", s->eni, id);
        return NULL;
    }
    return ncs[0];
}

static NetClientState *erdma_eni_lookup(ErdmaState *s, DeviceState **nic,
                                        Error **errp)
{
    *nic = qdev_find_recursive(sysbus_get_default(), s->eni);
    if (!*nic) {
        error_setg(errp, "property 'eni': there is no device '%s' (the NIC "
                   "must be created before the HCA)", s->eni);
        return NULL;
    }
    return erdma_eni_netdev(s, *nic, errp);
}

bool erdma_eni_find(ErdmaState *s, uint32_t *mtu, Error **errp)
{
    NetClientState *netdev;
    NetFilterState *nf;
    DeviceState *nic;

    netdev = erdma_eni_lookup(s, &nic, errp);
    if (!netdev) {
        return false;
    }
    QTAILQ_FOREACH(nf, &netdev->filters, next) {
        if (object_dynamic_cast(OBJECT(nf), TYPE_ERDMA_FILTER)) {
            error_setg(errp, "property 'eni': NIC '%s' already has the HCA "
                       "'%s'", s->eni, ERDMA_FILTER(nf)->hca->name);
            return false;
        }
    }
    s->mac = qemu_get_nic(netdev->peer)->conf->macaddr;
    if (!erdma_mac_is_unicast(s->mac.a)) {
        g_autofree char *mac = qemu_mac_strdup_printf(s->mac.a);

        error_setg(errp, "property 'eni': NIC '%s' has the address %s, which "
                   "is not a unicast one", s->eni, mac);
        return false;
    }
    *mtu = 0;
    if (object_property_find(OBJECT(nic), "host_mtu")) {
        *mtu = object_property_get_uint(OBJECT(nic), "host_mtu", NULL);
    }
    return true;
}

/* Whoever removed it, a blocker must not be left on a device that goes. */
static void erdma_eni_unblock(ErdmaState *s)
{
    if (s->wire.shared) {
        qdev_del_unplug_blocker(s->wire.shared, s->wire.unplug_blocker);
        s->wire.shared = NULL;
        error_free(s->wire.unplug_blocker);
        s->wire.unplug_blocker = NULL;
    }
}

static void erdma_eni_unrealized(DeviceListener *listener, DeviceState *dev)
{
    ErdmaState *s = container_of(listener, ErdmaState, wire.listener);

    if (dev == s->wire.shared) {
        trace_erdma_wire_nic_gone(s->name);
        erdma_eni_unblock(s);
    }
}

static void erdma_eni_block(ErdmaState *s, DeviceState *nic)
{
    error_setg(&s->wire.unplug_blocker, "NIC '%s' is shared by the HCA '%s', "
               "which must be unplugged first", s->eni, s->name);
    qdev_add_unplug_blocker(nic, s->wire.unplug_blocker);
    s->wire.shared = nic;
    s->wire.listener.unrealize = erdma_eni_unrealized;
    device_listener_register(&s->wire.listener);
}

bool erdma_eni_attach(ErdmaState *s, Error **errp)
{
    NetClientState *netdev;
    DeviceState *nic;
    ErdmaFilter *f;
    Object *obj;

    netdev = erdma_eni_lookup(s, &nic, errp);
    if (!netdev) {
        return false;
    }
    obj = object_new(TYPE_ERDMA_FILTER);
    f = ERDMA_FILTER(obj);
    object_property_set_str(obj, "netdev", netdev->name, &error_abort);
    f->hca = s;
    object_property_add_child(OBJECT(s), "filter", obj);
    object_unref(obj);
    if (!user_creatable_complete(USER_CREATABLE(obj), errp)) {
        object_unparent(obj);
        return false;
    }
    s->wire.filter = f;
    erdma_eni_block(s, nic);
    return true;
}

void erdma_eni_detach(ErdmaState *s)
{
    Object *obj = OBJECT(s->wire.filter);

    if (s->wire.listener.unrealize) {
        device_listener_unregister(&s->wire.listener);
        s->wire.listener.unrealize = NULL;
        erdma_eni_unblock(s);
    }
    if (obj) {
        s->wire.filter = NULL;
        object_unparent(obj);
    }
}

static void erdma_filter_init(Object *obj)
{
    NETFILTER(obj)->direction = NET_FILTER_DIRECTION_ALL;
}

static void erdma_filter_class_init(ObjectClass *oc, ERDMA_CLASS_DATA *data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);

    nfc->receive_iov = erdma_filter_receive_iov;
    nfc->cleanup = erdma_filter_cleanup;
}

static const TypeInfo erdma_filter_info = {
    .name = TYPE_ERDMA_FILTER,
    .parent = TYPE_NETFILTER,
    .instance_size = sizeof(ErdmaFilter),
    .instance_init = erdma_filter_init,
    .class_init = erdma_filter_class_init,
};

static void erdma_filter_register_types(void)
{
    type_register_static(&erdma_filter_info);
}

type_init(erdma_filter_register_types)
