/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the Linux driver's header wants from the kernel: types and bit macros.
 * Byte order is not part of a type here; only sizes and offsets are compared.
 */

#ifndef ERDMA_ABI_SHIM_TYPES_H
#define ERDMA_ABI_SHIM_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint16_t __le16;
typedef uint16_t __be16;
typedef uint32_t __le32;
typedef uint32_t __be32;
typedef uint64_t __le64;
typedef uint64_t __be64;
typedef uint64_t __attribute__((aligned(8))) __aligned_le64;

#define BIT(n) (1ULL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define GENMASK_ULL(high, low) ((~0ULL >> (63 - (high))) & (~0ULL << (low)))
#define GENMASK(high, low) GENMASK_ULL(high, low)

#endif
