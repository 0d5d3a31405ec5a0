/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A netdev of our own: the dedicated RDMA wire.
 *
 * Only this device is on it, so it answers ARP itself.  The guest's driver
 * still pairs the HCA with a net device by the MAC address: property mac has
 * to name that of one of the guest's NICs.
 *
 * Reference: docs/specs/erdma-wire.rst
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "erdma.h"
#include "erdma-frame.h"

static ssize_t erdma_nic_receive(NetClientState *nc, const uint8_t *buf,
                                 size_t len)
{
    erdma_wire_rx(qemu_get_nic_opaque(nc), buf, len, false);
    return len;
}

/* A netdev that is deleted takes the link down and its queue with it. */
static void erdma_nic_link_changed(NetClientState *nc)
{
    if (nc->link_down) {
        erdma_wire_unblock(qemu_get_nic_opaque(nc));
    }
}

/* After a migration: QEMU itself only tells switches where the MAC is. */
static void erdma_nic_announce(NetClientState *nc)
{
    erdma_wire_announce(qemu_get_nic_opaque(nc));
}

static NetClientInfo erdma_nic_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .receive = erdma_nic_receive,
    .link_status_changed = erdma_nic_link_changed,
    .announce = erdma_nic_announce,
};

bool erdma_nic_check(ErdmaState *s, Error **errp)
{
    NICPeers *peers = &s->conf.peers;
    g_autofree char *mac = qemu_mac_strdup_printf(s->conf.macaddr.a);

    if (!erdma_netdev_check(peers->ncs[0], peers->queues, "netdev", errp)) {
        return false;
    }
    if (!erdma_mac_is_unicast(s->conf.macaddr.a)) {
        error_setg(errp, "property 'mac' is %s; with 'netdev' it must be the "
                   "unicast address of one of the guest's NICs", mac);
        return false;
    }
    s->mac = s->conf.macaddr;
    return true;
}

void erdma_nic_attach(ErdmaState *s)
{
    s->wire.nic = qemu_new_nic(&erdma_nic_info, &s->conf, TYPE_ERDMA,
                               DEVICE(s)->id,
                               &DEVICE(s)->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->wire.nic), s->mac.a);
}

void erdma_nic_detach(ErdmaState *s)
{
    if (s->wire.nic) {
        qemu_del_nic(s->wire.nic);
        s->wire.nic = NULL;
    }
}
