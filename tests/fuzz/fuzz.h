/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzzers share: a reader that hands an input out in pieces.
 *
 * An input that has come to its end reads as zeros, so that every input, cut
 * anywhere, is a valid one.  Choices are taken from whole bytes: a mutation
 * of one byte changes one decision.
 */

#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

typedef struct FuzzInput {
    const uint8_t *data;
    size_t len;
} FuzzInput;

/* The entry point that libFuzzer and replay.c call */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static inline bool fuzz_more(const FuzzInput *in)
{
    return in->len > 0;
}

static inline uint8_t fuzz_u8(FuzzInput *in)
{
    if (!in->len) {
        return 0;
    }
    in->len--;
    return *in->data++;
}

static inline uint16_t fuzz_u16(FuzzInput *in)
{
    uint16_t lo = fuzz_u8(in);

    return lo | fuzz_u8(in) << 8;
}

static inline uint32_t fuzz_u32(FuzzInput *in)
{
    uint32_t lo = fuzz_u16(in);

    return lo | (uint32_t)fuzz_u16(in) << 16;
}

static inline uint64_t fuzz_u64(FuzzInput *in)
{
    uint64_t lo = fuzz_u32(in);

    return lo | (uint64_t)fuzz_u32(in) << 32;
}

/* 0 <= result < @n, @n up to 256 */
static inline unsigned fuzz_below(FuzzInput *in, unsigned n)
{
    return fuzz_u8(in) % n;
}

/* Fills @buf; returns how many bytes came from the input. */
static inline size_t fuzz_bytes(FuzzInput *in, void *buf, size_t len)
{
    size_t n = MIN(len, in->len);

    memcpy(buf, in->data, n);
    memset((uint8_t *)buf + n, 0, len - n);
    in->data += n;
    in->len -= n;
    return n;
}

#endif /* TESTS_FUZZ_H */
