/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One HCA with its guest played by hand.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "engine-rig.h"

/* The engine's port */

static bool dma_ok(EngineRig *rig, uint64_t addr, size_t len)
{
    if (addr < ERIG_BASE || len > ERIG_SIZE ||
        addr - ERIG_BASE > ERIG_SIZE - len) {
        return false;
    }
    return !rig->hole_len || addr + len <= rig->hole ||
           addr >= rig->hole + rig->hole_len;
}

static void record(EngineRig *rig, ErigTraceKind kind, uint64_t addr,
                   size_t len)
{
    ErigTrace t = { .kind = kind, .addr = addr, .len = len };

    g_array_append_val(rig->trace, t);
    if (kind != ERIG_NOTIFY && rig->on_dma) {
        rig->on_dma(rig);
    }
}

static bool rig_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    EngineRig *rig = opaque;

    g_assert_cmpuint(len, >, 0);
    if (!dma_ok(rig, addr, len)) {
        return false;
    }
    rig->n_reads++;
    record(rig, ERIG_READ, addr, len);
    memcpy(buf, erig_ptr(rig, addr), len);
    return true;
}

static bool rig_dma_write(void *opaque, uint64_t addr, const void *buf,
                          size_t len)
{
    EngineRig *rig = opaque;

    g_assert_cmpuint(len, >, 0);
    if (!dma_ok(rig, addr, len)) {
        return false;
    }
    rig->n_writes++;
    record(rig, ERIG_WRITE, addr, len);
    memcpy(erig_ptr(rig, addr), buf, len);
    return true;
}

static void rig_notify(void *opaque, unsigned vector)
{
    EngineRig *rig = opaque;

    g_assert_cmpuint(vector, <, rig->cfg.n_vectors);
    rig->n_notify[vector]++;
    record(rig, ERIG_NOTIFY, vector, 0);
}

static void rig_kick(void *opaque)
{
    EngineRig *rig = opaque;

    rig->n_kicks++;
}

static bool rig_transmit(void *opaque, const ErdmaDatagram *dg)
{
    return true;
}

static void G_GNUC_PRINTF(2, 3)
rig_guest_error(void *opaque, const char *fmt, ...)
{
    EngineRig *rig = opaque;

    rig->n_guest_errors++;
}

static void rig_trace(void *opaque, ErdmaEvent event, uint32_t id, uint64_t a,
                      uint64_t b)
{
    EngineRig *rig = opaque;

    rig->n_events[event]++;
}

static const ErdmaPort rig_port = {
    .dma_read = rig_dma_read,
    .dma_write = rig_dma_write,
    .notify = rig_notify,
    .kick = rig_kick,
    .transmit = rig_transmit,
    .guest_error = rig_guest_error,
    .trace = rig_trace,
};

/* Life */

EngineRig *erig_new(void)
{
    EngineRig *rig = g_new0(EngineRig, 1);

    rig->mem = g_malloc0(ERIG_SIZE);
    rig->rand = g_rand_new_with_seed(1);
    rig->trace = g_array_new(FALSE, FALSE, sizeof(ErigTrace));
    rig->wqebbs = 4;
    rig->now = 1000;
    rig->cfg = (ErdmaEngineConfig) {
        .qblocks = 1,
        .max_mr_size_log2 = 36,
        .max_recv_wr_log2 = 15,
        .max_cqe_log2 = 20,
        .has_atomics = true,
        .has_mtt_va = true,
        .has_ext_db = true,
        .default_cc = ERDMA_CC_CUBIC,
        .dma_local_key = ERIG_DMA_KEY,
        .fw_version = 0x00020022,
        .n_vectors = 8,
        .ext_db_first = 0x80,
        .n_ext_db = 64,
        .seed = 42,
    };
    erdma_xport_config_default(&rig->cfg.xport);
    return rig;
}

void erig_start(EngineRig *rig)
{
    rig->e = erdma_engine_new(&rig_port, rig, &rig->cfg);
}

bool erig_init(EngineRig *rig)
{
    ErdmaEngineInit *init = &rig->init;

    if (!init->cmdq_depth) {
        init->cmdq_depth = 128 * rig->wqebbs;
        init->cmdq_eq_depth = 128;
        init->aeq_depth = 64;
    }
    init->cmdq_sq_addr = erig_alloc(rig, 512 * 32, 4096);
    init->cmdq_cq_addr = erig_alloc(rig, 512 * 32, 4096);
    init->cmdq_eq_addr = erig_alloc(rig, 128 * 16, 4096);
    init->aeq_addr = erig_alloc(rig, 64 * 16, 4096);
    rig->cmdq_eq = (ErigEq) { init->cmdq_eq_addr, init->cmdq_eq_depth, 0 };
    rig->aeq = (ErigEq) { init->aeq_addr, init->aeq_depth, 0 };
    rig->cmd_pi = 0;
    rig->cmd_ci = 0;
    return erdma_engine_init(rig->e, init);
}

EngineRig *erig_ready(void)
{
    EngineRig *rig = erig_new();
    unsigned eqn;

    erig_start(rig);
    g_assert_true(erig_init(rig));
    for (eqn = 1; eqn <= 3; eqn++) {
        erig_create_eq(rig, eqn, 6);
    }
    erig_forget_trace(rig);
    return rig;
}

void erig_free(EngineRig *rig)
{
    if (rig->e) {
        erdma_engine_free(rig->e);
    }
    g_array_free(rig->trace, TRUE);
    g_rand_free(rig->rand);
    g_free(rig->mem);
    g_free(rig);
}

void erig_run(EngineRig *rig)
{
    unsigned n = 0;

    do {
        rig->next = erdma_engine_run(rig->e, rig->now);
        rig->n_runs++;
        /* A run that never gets to an end is a bug. */
        g_assert_cmpuint(n++, <, 100000);
    } while (rig->next <= rig->now);
}

void erig_forget_trace(EngineRig *rig)
{
    g_array_set_size(rig->trace, 0);
    rig->n_reads = 0;
    rig->n_writes = 0;
    rig->n_kicks = 0;
    rig->n_runs = 0;
    memset(rig->n_notify, 0, sizeof(rig->n_notify));
    memset(rig->n_events, 0, sizeof(rig->n_events));
}

/* Memory */

uint64_t erig_alloc(EngineRig *rig, size_t len, size_t align)
{
    uint64_t addr;

    rig->used = (rig->used + align - 1) & ~(uint64_t)(align - 1);
    addr = ERIG_BASE + rig->used;
    rig->used += len;
    g_assert_cmpuint(rig->used, <=, ERIG_SIZE);
    return addr;
}

void *erig_ptr(EngineRig *rig, uint64_t addr)
{
    g_assert_cmphex(addr, >=, ERIG_BASE);
    g_assert_cmphex(addr, <, ERIG_BASE + ERIG_SIZE);
    return rig->mem + (addr - ERIG_BASE);
}

void erig_poke64(EngineRig *rig, uint64_t addr, uint64_t val)
{
    stq_le_p(erig_ptr(rig, addr), val);
}

uint32_t erig_peek32_be(EngineRig *rig, uint64_t addr)
{
    return ldl_be_p(erig_ptr(rig, addr));
}

uint32_t erig_peek32(EngineRig *rig, uint64_t addr)
{
    return ldl_le_p(erig_ptr(rig, addr));
}

uint64_t erig_peek64(EngineRig *rig, uint64_t addr)
{
    return ldq_le_p(erig_ptr(rig, addr));
}

/* Requests */

void erig_req(EngineRig *rig, ErigReq *req, unsigned sub_mod,
              unsigned opcode)
{
    unsigned i;

    for (i = 0; i < sizeof(req->raw); i++) {
        req->raw[i] = g_rand_int(rig->rand);
    }
    /* Bits of the header that have no name are 0 in all drivers. */
    erig_set64(req, 0, (uint64_t)sub_mod << 24 | opcode << 16);
}

void erig_set8(ErigReq *req, unsigned off, uint8_t val)
{
    req->raw[off] = val;
}

void erig_set16(ErigReq *req, unsigned off, uint16_t val)
{
    stw_le_p(req->raw + off, val);
}

void erig_set32(ErigReq *req, unsigned off, uint32_t val)
{
    stl_le_p(req->raw + off, val);
}

void erig_set64(ErigReq *req, unsigned off, uint64_t val)
{
    stq_le_p(req->raw + off, val);
}

void erig_set16_be(ErigReq *req, unsigned off, uint16_t val)
{
    stw_be_p(req->raw + off, val);
}

void erig_set32_be(ErigReq *req, unsigned off, uint32_t val)
{
    stl_be_p(req->raw + off, val);
}

void erig_post(EngineRig *rig, const ErigReq *req)
{
    uint64_t hdr = ldq_le_p(req->raw);
    unsigned i;

    hdr |= (uint16_t)(rig->cmd_pi + rig->wqebbs);
    hdr |= (uint64_t)(rig->wqebbs - 1) << 52;
    for (i = 0; i < rig->wqebbs; i++) {
        uint32_t slot = (rig->cmd_pi + i) & (rig->init.cmdq_depth - 1);
        uint8_t *p = erig_ptr(rig, rig->init.cmdq_sq_addr + slot * 32);

        memcpy(p, req->raw + i * 32, 32);
        if (!i) {
            stq_le_p(p, hdr);
        }
    }
    rig->cmd_pi += rig->wqebbs;
}

void erig_ring_cmdq(EngineRig *rig)
{
    erdma_engine_db_cmdq_sq(rig->e, rig->cmd_pi);
}

void erig_arm_cmdq(EngineRig *rig)
{
    erdma_engine_db_cmdq_cq(rig->e, (rig->cmd_ci & 0xffffff) | 1u << 31);
}

bool erig_poll_cmd(EngineRig *rig, ErigCmdCqe *cqe)
{
    uint32_t depth = rig->init.cmdq_depth;
    uint64_t addr = rig->init.cmdq_cq_addr + (rig->cmd_ci & (depth - 1)) * 32;
    uint32_t hdr = erig_peek32_be(rig, addr);

    if ((hdr >> 31) == !!(rig->cmd_ci & depth)) {
        return false;
    }
    rig->cmd_ci++;
    cqe->opcode = hdr >> 16;
    cqe->qtype = hdr >> 8;
    cqe->status = hdr;
    cqe->index = erig_peek32_be(rig, addr + 4);
    cqe->resp0 = erig_peek32_be(rig, addr + 8) |
                 (uint64_t)erig_peek32_be(rig, addr + 12) << 32;
    cqe->resp1 = erig_peek32_be(rig, addr + 16) |
                 (uint64_t)erig_peek32_be(rig, addr + 20) << 32;
    return true;
}

uint8_t erig_cmd(EngineRig *rig, const ErigReq *req, ErigCmdCqe *cqe)
{
    uint16_t first = rig->cmd_pi;
    ErigCmdCqe mine, more;

    erig_post(rig, req);
    erig_ring_cmdq(rig);
    erig_run(rig);
    g_assert_true(erig_poll_cmd(rig, &mine));
    g_assert_false(erig_poll_cmd(rig, &more));
    g_assert_cmpuint(mine.qtype, ==, 2);
    g_assert_cmpuint(mine.index & 0xffff, ==, first);
    if (cqe) {
        *cqe = mine;
    }
    return mine.status;
}

/* Events */

bool erig_poll_eq(EngineRig *rig, ErigEq *eq, uint64_t *lo, uint64_t *hi)
{
    uint64_t addr = eq->addr + (eq->ci & (eq->depth - 1)) * 16;

    *lo = erig_peek64(rig, addr);
    *hi = erig_peek64(rig, addr + 8);
    if (((*lo >> 31) & 1) == !!(eq->ci & eq->depth)) {
        return false;
    }
    eq->ci++;
    return true;
}

void erig_expect_ceqe(EngineRig *rig, unsigned eqn, uint32_t cqn)
{
    uint64_t lo, hi;

    g_assert_true(erig_poll_eq(rig, &rig->ceqs[eqn], &lo, &hi));
    g_assert_cmphex(lo & 0xfffff, ==, cqn);
}

void erig_expect_no_ceqe(EngineRig *rig, unsigned eqn)
{
    uint64_t lo, hi;

    g_assert_false(erig_poll_eq(rig, &rig->ceqs[eqn], &lo, &hi));
}

void erig_ring_ceq(EngineRig *rig, unsigned eqn)
{
    erdma_engine_db_ceq(rig->e, eqn,
                        (rig->ceqs[eqn].ci & 0xffff) | 1u << 31);
}

/* Commands */

void erig_req_create_eq(EngineRig *rig, ErigReq *req, unsigned eqn)
{
    erig_req(rig, req, 1, 0);
    erig_set64(req, 8, ERIG_BASE);
    erig_set8(req, 16, eqn);
    erig_set8(req, 17, eqn);
    erig_set8(req, 18, 6);
    erig_set8(req, 19, 1);
}

void erig_create_eq(EngineRig *rig, unsigned eqn, unsigned depth_log2)
{
    ErigEq *eq = &rig->ceqs[eqn];
    ErigReq req;

    eq->depth = 1u << depth_log2;
    eq->addr = erig_alloc(rig, eq->depth * 16, 4096);
    eq->ci = 0;
    erig_req_create_eq(rig, &req, eqn);
    erig_set64(&req, 8, eq->addr);
    erig_set8(&req, 18, depth_log2);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
}

void erig_destroy_eq(EngineRig *rig, unsigned eqn)
{
    ErigReq req;

    erig_req(rig, &req, 1, 1);
    erig_set8(&req, 16, eqn);
    erig_set8(&req, 17, eqn);
    erig_set8(&req, 19, 1);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
}

void erig_req_create_cq(EngineRig *rig, ErigReq *req, uint32_t cqn,
                        unsigned depth_log2, unsigned eqn, uint64_t addr)
{
    erig_req(rig, req, 0, 4);
    erig_set32(req, 8, depth_log2 << 24 | 13 << 20 | cqn);
    erig_set32(req, 12, addr);
    erig_set32(req, 16, addr >> 32);
    erig_set32(req, 20, 1 << 16 | eqn);
    erig_set32(req, 32, 0);
}

uint64_t erig_create_cq(EngineRig *rig, uint32_t cqn, unsigned depth_log2,
                        unsigned eqn)
{
    uint64_t addr = erig_alloc(rig, 32u << depth_log2, 4096);
    ErigReq req;

    erig_req_create_cq(rig, &req, cqn, depth_log2, eqn, addr);
    g_assert_cmpuint(erig_cmd(rig, &req, NULL), ==, 0);
    return addr;
}

uint8_t erig_destroy_cq(EngineRig *rig, uint32_t cqn)
{
    ErigReq req;

    erig_req(rig, &req, 0, 5);
    erig_set32(&req, 8, cqn);
    return erig_cmd(rig, &req, NULL);
}

void erig_arm_cq(EngineRig *rig, uint32_t cqn, uint32_t ci, bool solicited)
{
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ,
                          (uint64_t)cqn << 32 | 1u << 31 |
                          (uint32_t)solicited << 30 | (ci & 0xffffff));
}

void erig_req_create_qp(EngineRig *rig, ErigReq *req, uint32_t qpn,
                        uint32_t cqn)
{
    uint64_t sq = erig_alloc(rig, 64 * 32, 4096);
    uint64_t rq = erig_alloc(rig, 64 * 32, 4096);

    erig_req(rig, req, 0, 1);
    erig_set32(req, 8, 6u << 20 | qpn);
    erig_set32(req, 12, 6u << 20 | ERIG_PD);
    erig_set32(req, 16, 8u << 28 | cqn);
    erig_set32(req, 20, 8u << 28 | cqn);
    erig_set64(req, 24, sq);
    erig_set64(req, 32, rq);
    erig_set32(req, 40, 1 << 1);
    erig_set32(req, 44, 1 << 1);
}

void erig_req_reg_mr(EngineRig *rig, ErigReq *req, uint32_t index,
                     uint64_t start, uint32_t len, unsigned n,
                     const uint64_t *pages)
{
    unsigned i;

    erig_req(rig, req, 0, 8);
    erig_set32(req, 8, 1u << 31 | 0x5a << 20 | index);
    erig_set32(req, 12, ERIG_PD << 12 | ERIG_ALL << 1);
    erig_set64(req, 16, start);
    erig_set32(req, 24, len);
    erig_set32(req, 28, 12u << 27 | n);
    for (i = 0; i < n; i++) {
        erig_set64(req, 32 + i * 8, pages[i]);
    }
}

/* Regions */

void erig_check_region(EngineRig *rig, uint32_t key, uint64_t start,
                       const uint64_t *pages, unsigned n_pages)
{
    uint64_t off = start & 4095;
    uint32_t len = n_pages * 4096 - off;
    g_autofree uint8_t *out = g_malloc(len);
    g_autofree uint8_t *back = g_malloc(len);
    ErdmaMrUse u = {
        .key = key, .pdn = ERIG_PD,
        .access = ERDMA_MR_ACC_LR | ERDMA_MR_ACC_LW,
    };
    uint32_t i, n;

    for (i = 0; i < len; i++) {
        out[i] = g_rand_int(rig->rand);
    }
    for (i = 0; i < len; i += n) {
        n = MIN(1399u, len - i);
        g_assert_cmpint(erdma_mr_write(rig->e, &u, start + i, out + i, n), ==,
                        ERDMA_MR_OK);
    }
    for (i = 0; i < len; i++) {
        uint64_t at = off + i;
        uint8_t *p = erig_ptr(rig, pages[at >> 12] + (at & 4095));

        g_assert_cmphex(*p, ==, out[i]);
    }
    g_assert_cmpint(erdma_mr_read(rig->e, &u, start, back, len), ==,
                    ERDMA_MR_OK);
    g_assert_cmpmem(out, len, back, len);
}

void erig_shuffled_pages(EngineRig *rig, uint64_t *pages, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        pages[i] = erig_alloc(rig, 4096, 4096);
    }
    for (i = n - 1; i; i--) {
        unsigned j = g_rand_int_range(rig->rand, 0, i + 1);
        uint64_t tmp = pages[i];

        pages[i] = pages[j];
        pages[j] = tmp;
    }
}
