/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The NIC beside an eRDMA device: a small virtio-net driver, and frames.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "standard-headers/linux/virtio_config.h"
#include "standard-headers/linux/virtio_net.h"
#include "libqos/virtio.h"
#include "erdma-nic.h"

#define QERDMA_VNET_HDR     sizeof(struct virtio_net_hdr_mrg_rxbuf)
/* of real time: a busy machine may take long */
#define QERDMA_NIC_US       (60ll * 1000 * 1000)

static void qerdma_nic_post(QErdmaNic *nic)
{
    QVirtioDevice *vdev = &nic->pci->vdev;
    uint64_t addr = nic->rx_bufs + nic->n_posted * QERDMA_FRAME_MAX;
    uint32_t head;

    head = qvirtqueue_add(nic->qs->qts, nic->rx, addr, QERDMA_FRAME_MAX, true,
                          false);
    g_assert_cmpuint(head, ==, nic->n_posted);
    qvirtqueue_kick(nic->qs->qts, vdev, nic->rx, head);
    nic->n_posted++;
}

QErdmaNic *qerdma_nic_new(QOSState *qs, unsigned slot)
{
    QErdmaNic *nic = g_new0(QErdmaNic, 1);
    QPCIAddress addr = { .devfn = QPCI_DEVFN(slot, 0) };
    QVirtioDevice *vdev;
    uint64_t features;

    nic->qs = qs;
    nic->pci = virtio_pci_new(qs->pcibus, &addr);
    g_assert_nonnull(nic->pci);
    qvirtio_pci_device_enable(nic->pci);
    vdev = &nic->pci->vdev;
    qvirtio_start_device(vdev);
    features = qvirtio_get_features(vdev);
    g_assert_true(features & (1ull << VIRTIO_F_VERSION_1));
    qvirtio_set_features(vdev, 1ull << VIRTIO_F_VERSION_1 |
                         1ull << VIRTIO_NET_F_MAC);
    nic->rx = qvirtqueue_setup(vdev, &qs->alloc, 0);
    nic->tx = qvirtqueue_setup(vdev, &qs->alloc, 1);
    qvirtio_set_driver_ok(vdev);

    nic->rx_bufs = guest_alloc(&qs->alloc,
                               QERDMA_NIC_FRAMES * QERDMA_FRAME_MAX);
    while (nic->n_posted < QERDMA_NIC_FRAMES) {
        qerdma_nic_post(nic);
    }
    return nic;
}

/* The NIC goes on using its rings: their memory is not given back. */
void qerdma_nic_free(QErdmaNic *nic)
{
    g_free(container_of(nic->rx, QVirtQueuePCI, vq));
    g_free(container_of(nic->tx, QVirtQueuePCI, vq));
    g_free(nic->pci->pdev);
    g_free(nic->pci);
    g_free(nic);
}

void qerdma_nic_send(QErdmaNic *nic, const void *frame, size_t len)
{
    QTestState *qts = nic->qs->qts;
    QVirtioDevice *vdev = &nic->pci->vdev;
    uint64_t buf = guest_alloc(&nic->qs->alloc, QERDMA_VNET_HDR + len);
    gint64 until = g_get_monotonic_time() + QERDMA_NIC_US;
    uint32_t head;

    qtest_memset(qts, buf, 0, QERDMA_VNET_HDR);
    qtest_memwrite(qts, buf + QERDMA_VNET_HDR, frame, len);
    head = qvirtqueue_add(qts, nic->tx, buf, QERDMA_VNET_HDR + len, false,
                          false);
    qvirtqueue_kick(qts, vdev, nic->tx, head);
    while (!qvirtqueue_get_buf(qts, nic->tx, NULL, NULL)) {
        g_assert_cmpint(g_get_monotonic_time(), <, until);
    }
    guest_free(&nic->qs->alloc, buf);
}

size_t qerdma_nic_recv(QErdmaNic *nic, uint8_t frame[QERDMA_FRAME_MAX])
{
    QTestState *qts = nic->qs->qts;
    uint32_t head, len;

    if (!qvirtqueue_get_buf(qts, nic->rx, &head, &len)) {
        return 0;
    }
    g_assert_cmpuint(len, >, QERDMA_VNET_HDR);
    len -= QERDMA_VNET_HDR;
    qtest_memread(qts, nic->rx_bufs + head * QERDMA_FRAME_MAX +
                  QERDMA_VNET_HDR, frame, len);
    return len;
}

static uint32_t qerdma_sum(uint32_t sum, const uint8_t *p, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        sum += i & 1 ? p[i] : p[i] << 8;
    }
    return sum;
}

static uint16_t qerdma_fold(uint32_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

static void qerdma_eth(uint8_t *frame, const uint8_t *src, const uint8_t *dst,
                       uint16_t type)
{
    memcpy(frame, dst, 6);
    memcpy(frame + 6, src, 6);
    stw_be_p(frame + 12, type);
}

size_t qerdma_udp_frame(uint8_t frame[QERDMA_FRAME_MAX], const QErdmaUdp *u)
{
    uint8_t *ip = frame + 14;
    uint8_t *udp = ip + 20;
    size_t udp_len = 8 + u->len;
    uint32_t sum;

    memset(frame, 0, QERDMA_UDP_DATA);
    qerdma_eth(frame, u->src_mac, u->dst_mac, 0x0800);
    ip[0] = 0x45;
    stw_be_p(ip + 2, 20 + udp_len);
    ip[8] = 64;
    ip[9] = 17;
    stl_be_p(ip + 12, u->src_ip);
    stl_be_p(ip + 16, u->dst_ip);
    stw_be_p(ip + 10, qerdma_fold(qerdma_sum(0, ip, 20)));

    stw_be_p(udp, u->src_port);
    stw_be_p(udp + 2, u->dst_port);
    stw_be_p(udp + 4, udp_len);
    if (u->len) {
        memcpy(udp + 8, u->data, u->len);
    }
    sum = qerdma_sum(17 + udp_len, ip + 12, 8);
    stw_be_p(udp + 6, qerdma_fold(qerdma_sum(sum, udp, udp_len)));
    return QERDMA_UDP_DATA + u->len;
}

size_t qerdma_arp_frame(uint8_t frame[QERDMA_FRAME_MAX], uint16_t op,
                        const uint8_t *src_mac, uint32_t src_ip,
                        const uint8_t *dst_mac, uint32_t target_ip)
{
    uint8_t *arp = frame + 14;

    memset(frame, 0, 60);
    qerdma_eth(frame, src_mac, dst_mac, 0x0806);
    stw_be_p(arp, 1);                   /* Ethernet */
    stw_be_p(arp + 2, 0x0800);          /* IPv4 */
    arp[4] = 6;
    arp[5] = 4;
    stw_be_p(arp + 6, op);
    memcpy(arp + 8, src_mac, 6);
    stl_be_p(arp + 14, src_ip);
    if (op == 2) {
        memcpy(arp + 18, dst_mac, 6);
    }
    stl_be_p(arp + 24, target_ip);
    return 60;
}
