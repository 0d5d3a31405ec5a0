/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internet checksum (RFC 1071), a word at a time.  QEMU's net_checksum_*()
 * go byte by byte, which costs more than the rest of a packet's way out.
 */

#ifndef HW_ERDMA_CSUM_H
#define HW_ERDMA_CSUM_H

/*
 * One's complement sum of @len bytes taken as big-endian 16-bit numbers, an
 * odd last byte padded with 0.  Sums of even-sized pieces may be added up.
 */
uint32_t erdma_csum_sum(const uint8_t *data, size_t len);

/* The checksum, as a number, that belongs to the sum @sum. */
uint16_t erdma_csum_finish(uint64_t sum);

#endif /* HW_ERDMA_CSUM_H */
