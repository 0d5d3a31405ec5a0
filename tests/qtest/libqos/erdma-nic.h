/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The NIC beside an eRDMA device, as far as the device's tests need it: a
 * virtio-net driver that moves single frames, and frames to move.
 */

#ifndef LIBQOS_ERDMA_NIC_H
#define LIBQOS_ERDMA_NIC_H

#include "libqos/virtio-pci.h"
#include "libqos/libqos.h"

#define QERDMA_NIC_FRAMES       64      /* receive buffers, for its life */
#define QERDMA_FRAME_MAX        2048

typedef struct QErdmaNic {
    QOSState *qs;
    QVirtioPCIDevice *pci;
    QVirtQueue *rx;
    QVirtQueue *tx;
    uint64_t rx_bufs;
    unsigned n_posted;
} QErdmaNic;

QErdmaNic *qerdma_nic_new(QOSState *qs, unsigned slot);
/* Frees the driver; the NIC stays as it is, with buffers to receive into. */
void qerdma_nic_free(QErdmaNic *nic);
void qerdma_nic_send(QErdmaNic *nic, const void *frame, size_t len);
/* Returns the length of the next frame received, 0 if there is none. */
size_t qerdma_nic_recv(QErdmaNic *nic, uint8_t frame[QERDMA_FRAME_MAX]);

/* What to put into an Ethernet/IPv4/UDP frame */
typedef struct QErdmaUdp {
    const uint8_t *src_mac;
    const uint8_t *dst_mac;
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t src_port;
    uint16_t dst_port;
    const void *data;
    size_t len;
} QErdmaUdp;

#define QERDMA_UDP_DATA         42      /* offset of the payload */

/* Valid checksums and all; returns its length. */
size_t qerdma_udp_frame(uint8_t frame[QERDMA_FRAME_MAX], const QErdmaUdp *u);
/* @op 1 asks for @target_ip, 2 answers to @dst_mac. */
size_t qerdma_arp_frame(uint8_t frame[QERDMA_FRAME_MAX], uint16_t op,
                        const uint8_t *src_mac, uint32_t src_ip,
                        const uint8_t *dst_mac, uint32_t target_ip);

#endif /* LIBQOS_ERDMA_NIC_H */
