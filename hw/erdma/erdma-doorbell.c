/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doorbell pages of BAR 0: decode the address, hand the payload down.
 *
 * The engine latches it and asks for a bottom half; no doorbell causes DMA.
 * Static doorbells say in the payload whom they are for, the low bits of
 * their address mean nothing.
 *
 * Reference: docs/specs/erdma.rst, "Doorbells"
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "erdma.h"
#include "trace.h"

static void erdma_doorbell_refuse(ErdmaState *s, const char *what,
                                  hwaddr addr, unsigned size)
{
    trace_erdma_err_db(s->name, addr, size);
    qemu_log_mask(LOG_GUEST_ERROR,
                  "%s: %u-byte %s of the doorbells at 0x%" HWADDR_PRIx "\n",
                  s->name, size, what, addr);
}

static uint64_t erdma_doorbell_read(void *opaque, hwaddr offset,
                                    unsigned size)
{
    erdma_doorbell_refuse(opaque, "read", offset + ERDMA_SQ_DB_SPACE, size);
    return 0;
}

static void erdma_doorbell_write(void *opaque, hwaddr offset, uint64_t val,
                                 unsigned size)
{
    ErdmaState *s = opaque;
    hwaddr addr = offset + ERDMA_SQ_DB_SPACE;

    if (size != 8) {
        /* Half a doorbell names no target. */
        erdma_doorbell_refuse(s, "write", addr, size);
        return;
    }
    trace_erdma_db(s->name, addr, val);
    if (addr < ERDMA_RQ_DB_SPACE) {
        erdma_engine_db_queue(s->engine, ERDMA_DB_KIND_SQ, val);
    } else if (addr < ERDMA_CQ_DB_SPACE) {
        erdma_engine_db_queue(s->engine, ERDMA_DB_KIND_RQ, val);
    } else if (addr < ERDMA_EXT_DB_START) {
        erdma_engine_db_queue(s->engine, ERDMA_DB_KIND_CQ, val);
    } else {
        erdma_engine_db_ext(s->engine, addr >> ERDMA_DB_PAGE_SHIFT,
                            addr & ((1u << ERDMA_DB_PAGE_SHIFT) - 1), val);
    }
}

const MemoryRegionOps erdma_doorbell_ops = {
    .read = erdma_doorbell_read,
    .write = erdma_doorbell_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};
