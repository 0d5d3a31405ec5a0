/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BAR 0 registers: one table.
 *
 * Registers are 4 or 8 bytes wide.  Two adjacent 4-byte registers may be
 * accessed as one of 8 bytes, an 8-byte register in halves; a doorbell only
 * as a whole, since half of one says nothing.  The registers that INIT
 * latches keep what was written until the bus resets the device.
 *
 * Reference: docs/specs/erdma.rst, "Registers"
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "erdma.h"
#include "trace.h"

typedef struct ErdmaReg {
    hwaddr addr;
    unsigned size;
    unsigned count;             /* of such registers in a row, 0 means 1 */
    bool is_latched;            /* s->latched holds it */
    uint64_t (*read)(ErdmaState *s);
    void (*write)(ErdmaState *s, unsigned index, uint64_t val);
} ErdmaReg;

static uint32_t erdma_latched32(const ErdmaState *s, hwaddr addr)
{
    return s->latched[addr / 4];
}

/* The high half is the word behind, in pairs and in 64-bit registers alike. */
static uint64_t erdma_latched64(const ErdmaState *s, hwaddr addr)
{
    return deposit64(s->latched[addr / 4], 32, 32, s->latched[addr / 4 + 1]);
}

static uint64_t erdma_read_version(ErdmaState *s)
{
    return erdma_engine_fault_version(s->engine) ? 0 : s->version;
}

static uint64_t erdma_read_proto(ErdmaState *s)
{
    return ERDMA_PROTO_IWARP;
}

static uint64_t erdma_read_status(ErdmaState *s)
{
    if (s->init_seen_ns > qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL)) {
        return s->status & ~R_ERDMA_DEV_STATUS_INIT_DONE_MASK;
    }
    return s->status;
}

static uint64_t erdma_read_mac_l(ErdmaState *s)
{
    return (uint32_t)ldl_be_p(s->mac.a + 2);
}

static uint64_t erdma_read_mac_h(ErdmaState *s)
{
    return lduw_be_p(s->mac.a);
}

static uint64_t erdma_read_zero(ErdmaState *s)
{
    return 0;
}

static uint64_t erdma_read_tso_in_pkts(ErdmaState *s)
{
    return erdma_engine_stats(s->engine)->tx_requests;
}

static uint64_t erdma_read_tso_out_pkts(ErdmaState *s)
{
    return erdma_engine_xport_stats(s->engine)->tx_data_packets;
}

static uint64_t erdma_read_tso_out_bytes(ErdmaState *s)
{
    return erdma_engine_xport_stats(s->engine)->tx_payload_bytes;
}

static uint64_t erdma_read_tx_drop(ErdmaState *s)
{
    return s->wire.stats.tx_no_wire + s->wire.stats.tx_no_hop;
}

static uint64_t erdma_read_rx_pkts(ErdmaState *s)
{
    return erdma_engine_xport_stats(s->engine)->rx_packets;
}

static uint64_t erdma_read_rx_bytes(ErdmaState *s)
{
    return erdma_engine_xport_stats(s->engine)->rx_bytes;
}

static uint64_t erdma_read_rx_drop(ErdmaState *s)
{
    const ErdmaXportStats *xs = erdma_engine_xport_stats(s->engine);
    uint64_t sum = s->wire.stats.rx_bad_checksum;
    unsigned i;

    for (i = 0; i < ERDMA_XPORT_DROP_COUNT; i++) {
        sum += xs->drops[i];
    }
    return sum;
}

static void erdma_latch_init(const ErdmaState *s, ErdmaEngineInit *init)
{
    *init = (ErdmaEngineInit) {
        .cmdq_sq_addr = erdma_latched64(s, A_ERDMA_CMDQ_SQ_ADDR_L),
        .cmdq_cq_addr = erdma_latched64(s, A_ERDMA_CMDQ_CQ_ADDR_L),
        .cmdq_eq_addr = erdma_latched64(s, A_ERDMA_CMDQ_EQ_ADDR_L),
        .aeq_addr = erdma_latched64(s, A_ERDMA_AEQ_ADDR_L),
        .cmdq_depth = erdma_latched32(s, A_ERDMA_CMDQ_DEPTH),
        .cmdq_eq_depth = erdma_latched32(s, A_ERDMA_CMDQ_EQ_DEPTH),
        .aeq_depth = erdma_latched32(s, A_ERDMA_AEQ_DEPTH),
        .cmdq_sq_dbrec = erdma_latched64(s, A_ERDMA_CMDQ_SQ_DB_RECORD),
        .cmdq_cq_dbrec = erdma_latched64(s, A_ERDMA_CMDQ_CQ_DB_RECORD),
        .cmdq_eq_dbrec = erdma_latched64(s, A_ERDMA_CMDQ_EQ_DB_RECORD),
        .aeq_dbrec = erdma_latched64(s, A_ERDMA_AEQ_DB_RECORD),
    };
}

/*
 * The driver frees its queues right behind the write that resets, and a
 * rebooted guest writes INIT without RESET: both act before we return.
 */
static void erdma_write_ctrl(ErdmaState *s, unsigned index, uint64_t val)
{
    ErdmaEngineInit init;
    uint64_t delay_ns;

    if (val & (R_ERDMA_DEV_CTRL_RESET_MASK | R_ERDMA_DEV_CTRL_INIT_MASK)) {
        erdma_device_reset(s);
        s->status = R_ERDMA_DEV_STATUS_RESET_DONE_MASK;
    }
    if (val & R_ERDMA_DEV_CTRL_INIT_MASK) {
        erdma_latch_init(s, &init);
        if (erdma_engine_fault_init(s->engine, &delay_ns) &&
            erdma_engine_init(s->engine, &init)) {
            s->status = R_ERDMA_DEV_STATUS_INIT_DONE_MASK;
            if (delay_ns) {
                s->init_seen_ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                  delay_ns;
            }
        }
    }
    trace_erdma_ctrl(s->name, val, s->status);
}

static void erdma_write_aeq_db(ErdmaState *s, unsigned index, uint64_t val)
{
    erdma_engine_db_aeq(s->engine, val);
}

static void erdma_write_eq_db(ErdmaState *s, unsigned index, uint64_t val)
{
    if (index == 0) {
        erdma_engine_db_cmdq_eq(s->engine, val);
    } else {
        erdma_engine_db_ceq(s->engine, index, val);
    }
}

static void erdma_write_cmdq_sq_db(ErdmaState *s, unsigned index,
                                   uint64_t val)
{
    erdma_engine_db_cmdq_sq(s->engine, val);
}

static void erdma_write_cmdq_cq_db(ErdmaState *s, unsigned index,
                                   uint64_t val)
{
    erdma_engine_db_cmdq_cq(s->engine, val);
}

#define LATCHED32(_name) \
    { .addr = A_ERDMA_##_name, .size = 4, .is_latched = true }
#define LATCHED64(_name) \
    { .addr = A_ERDMA_##_name, .size = 8, .is_latched = true }

static const ErdmaReg erdma_regs[] = {
    { A_ERDMA_VERSION, 4, .read = erdma_read_version },
    { A_ERDMA_DEV_PROTO, 4, .read = erdma_read_proto },
    { A_ERDMA_DEV_CTRL, 4, .read = erdma_read_zero,
      .write = erdma_write_ctrl },
    { A_ERDMA_DEV_STATUS, 4, .read = erdma_read_status },
    { A_ERDMA_NETDEV_MAC_L, 4, .read = erdma_read_mac_l },
    { A_ERDMA_NETDEV_MAC_H, 4, .read = erdma_read_mac_h },
    LATCHED32(CMDQ_SQ_ADDR_L),
    LATCHED32(CMDQ_SQ_ADDR_H),
    LATCHED32(CMDQ_CQ_ADDR_L),
    LATCHED32(CMDQ_CQ_ADDR_H),
    LATCHED32(CMDQ_DEPTH),
    LATCHED32(CMDQ_EQ_DEPTH),
    LATCHED32(CMDQ_EQ_ADDR_L),
    LATCHED32(CMDQ_EQ_ADDR_H),
    LATCHED32(AEQ_ADDR_L),
    LATCHED32(AEQ_ADDR_H),
    LATCHED32(AEQ_DEPTH),
    /* No direct-WQE groups: Linux 6.1 then uses the plain SQ doorbell. */
    { A_ERDMA_GRP_NUM, 4, .read = erdma_read_zero },
    { A_ERDMA_AEQ_DB, 8, .write = erdma_write_aeq_db },
    LATCHED64(CMDQ_SQ_DB_RECORD),
    LATCHED64(CMDQ_CQ_DB_RECORD),
    LATCHED64(CMDQ_EQ_DB_RECORD),
    LATCHED64(AEQ_DB_RECORD),
    { A_ERDMA_TSO_IN_PKTS, 8, .read = erdma_read_tso_in_pkts },
    { A_ERDMA_TSO_OUT_PKTS, 8, .read = erdma_read_tso_out_pkts },
    { A_ERDMA_TSO_OUT_BYTES, 8, .read = erdma_read_tso_out_bytes },
    { A_ERDMA_TX_DROP, 8, .read = erdma_read_tx_drop },
    { A_ERDMA_TX_BPS_DROP, 8, .read = erdma_read_zero },
    { A_ERDMA_TX_PPS_DROP, 8, .read = erdma_read_zero },
    { A_ERDMA_RX_PKTS, 8, .read = erdma_read_rx_pkts },
    { A_ERDMA_RX_BYTES, 8, .read = erdma_read_rx_bytes },
    { A_ERDMA_RX_DROP, 8, .read = erdma_read_rx_drop },
    { A_ERDMA_RX_BPS_DROP, 8, .read = erdma_read_zero },
    { A_ERDMA_RX_PPS_DROP, 8, .read = erdma_read_zero },
    { A_ERDMA_CEQ_DB, 8, .count = ERDMA_MAX_CEQS + 1,
      .write = erdma_write_eq_db },
    { A_ERDMA_CMDQ_SQ_DB, 8, .write = erdma_write_cmdq_sq_db },
    { A_ERDMA_CMDQ_CQ_DB, 8, .write = erdma_write_cmdq_cq_db },
};

static const ErdmaReg *erdma_reg_find(hwaddr addr)
{
    const ErdmaReg *reg;

    for (reg = erdma_regs; reg < erdma_regs + ARRAY_SIZE(erdma_regs); reg++) {
        if (addr >= reg->addr &&
            addr - reg->addr < reg->size * MAX(reg->count, 1)) {
            return reg;
        }
    }
    return NULL;
}

static void erdma_reg_refuse(ErdmaState *s, const char *what, hwaddr addr,
                             unsigned size)
{
    trace_erdma_err_reg(s->name, addr, size);
    qemu_log_mask(LOG_GUEST_ERROR,
                  "%s: %u-byte %s at 0x%03" HWADDR_PRIx ": no such register\n",
                  s->name, size, what, addr);
}

/* 4 or 8 bytes inside one register */
static uint64_t erdma_reg_get(ErdmaState *s, hwaddr addr, unsigned size)
{
    const ErdmaReg *reg = erdma_reg_find(addr);
    uint64_t val;

    if (!reg || !(reg->is_latched || reg->read)) {
        erdma_reg_refuse(s, "read", addr, size);
        return 0;
    }
    if (reg->is_latched) {
        return size == 4 ? erdma_latched32(s, addr) : erdma_latched64(s, addr);
    }
    val = reg->read(s);
    return extract64(val, (addr - reg->addr) * 8, size * 8);
}

static void erdma_reg_set(ErdmaState *s, hwaddr addr, unsigned size,
                          uint64_t val)
{
    const ErdmaReg *reg = erdma_reg_find(addr);

    if (reg && reg->is_latched) {
        s->latched[addr / 4] = val;
        if (size == 8) {
            s->latched[addr / 4 + 1] = val >> 32;
        }
    } else if (reg && reg->write && size == reg->size) {
        reg->write(s, (addr - reg->addr) / reg->size, val);
    } else {
        erdma_reg_refuse(s, "write", addr, size);
    }
}

/* A pair of 4-byte registers behind one 8-byte access */
static bool erdma_reg_is_pair(hwaddr addr, unsigned size)
{
    const ErdmaReg *reg = erdma_reg_find(addr);

    return size == 8 && reg && reg->size == 4;
}

static uint64_t erdma_regs_read(void *opaque, hwaddr addr, unsigned size)
{
    ErdmaState *s = opaque;
    uint64_t val = 0;

    if (size < 4) {
        erdma_reg_refuse(s, "read", addr, size);
    } else if (erdma_reg_is_pair(addr, size)) {
        val = erdma_reg_get(s, addr, 4) | erdma_reg_get(s, addr + 4, 4) << 32;
    } else {
        val = erdma_reg_get(s, addr, size);
    }
    trace_erdma_reg_read(s->name, addr, size, val);
    return val;
}

static void erdma_regs_write(void *opaque, hwaddr addr, uint64_t val,
                             unsigned size)
{
    ErdmaState *s = opaque;

    trace_erdma_reg_write(s->name, addr, size, val);
    if (size < 4) {
        erdma_reg_refuse(s, "write", addr, size);
    } else if (erdma_reg_is_pair(addr, size)) {
        erdma_reg_set(s, addr, 4, (uint32_t)val);
        erdma_reg_set(s, addr + 4, 4, val >> 32);
    } else {
        erdma_reg_set(s, addr, size, val);
    }
}

const MemoryRegionOps erdma_regs_ops = {
    .read = erdma_regs_read,
    .write = erdma_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};
