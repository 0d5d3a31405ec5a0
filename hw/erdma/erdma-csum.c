/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internet checksum.
 *
 * The sum commutes with a swap of all bytes (RFC 1071, section 2), so words
 * are added in host order and the result is swapped once.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "erdma-csum.h"

static uint16_t erdma_csum_fold(uint64_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

uint32_t erdma_csum_sum(const uint8_t *data, size_t len)
{
    uint64_t a = 0, b = 0;
    uint8_t tail[4] = { 0 };

    /* Two accumulators: 32-bit words cannot overflow them. */
    for (; len >= 8; len -= 8, data += 8) {
        a += (uint32_t)ldl_he_p(data);
        b += (uint32_t)ldl_he_p(data + 4);
    }
    if (len >= 4) {
        a += (uint32_t)ldl_he_p(data);
        data += 4;
        len -= 4;
    }
    memcpy(tail, data, len);
    b += (uint32_t)ldl_he_p(tail);
    return be16_to_cpu(erdma_csum_fold(a + b));
}

uint16_t erdma_csum_finish(uint64_t sum)
{
    return ~erdma_csum_fold(sum);
}
