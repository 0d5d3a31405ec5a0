/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that has brought the device up and then lies: commands that were
 * sane until some of their bytes were changed, any bytes in its queues, any
 * doorbell, memory that goes away, resets.
 *
 * Whatever it does, each run of the engine comes to an end (the rig asserts
 * that), and objects exist only within the limits that the device has.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "../unit/engine-rig.h"
#include "fuzz.h"

#define STEPS_MAX   150

/* Of the templates; small, so that commands find each other's objects */
#define N_NUMBERS   6

static uint32_t last_cookie;

/* The same rig each time: 64 MiB are not made anew for every input. */
static EngineRig *fresh_rig(void)
{
    static EngineRig *rig;
    unsigned eqn;

    if (!rig) {
        rig = erig_new();
    } else {
        erdma_engine_free(rig->e);
        memset(rig->mem, 0, rig->used);
        rig->used = 0;
        rig->hole_len = 0;
        rig->on_dma = NULL;
        rig->now = 1000;
        g_rand_set_seed(rig->rand, 1);
        erig_forget_trace(rig);
    }
    erig_start(rig);
    g_assert_true(erig_init(rig));
    for (eqn = 1; eqn <= 2; eqn++) {
        erig_create_eq(rig, eqn, 5);
    }
    return rig;
}

static void mutate(FuzzInput *in, ErigReq *req)
{
    unsigned n = fuzz_below(in, 8);

    while (n--) {
        req->raw[fuzz_below(in, sizeof(req->raw))] = fuzz_u8(in);
    }
}

/* Any other command: number and flags where most commands have them */
static void plain_request(EngineRig *rig, FuzzInput *in, ErigReq *req)
{
    uint8_t code = fuzz_u8(in);

    erig_req(rig, req, code >> 6 & 1, code & 31);
    memset(req->raw + 8, 0, sizeof(req->raw) - 8);
    erig_set32(req, 8, fuzz_below(in, N_NUMBERS) |
               (uint32_t)fuzz_u8(in) << 24);
    erig_set32(req, 12, fuzz_u32(in));
    erig_set32(req, 16, 0x0a000001 + fuzz_below(in, 2));
    erig_set32(req, 20, 0x0a000001 + fuzz_below(in, 2));
    erig_set32(req, 24, fuzz_u16(in));
    if (code & 0x80) {
        /* DESTROY_EQ: vector, EQN, type */
        erig_set32(req, 16, (code & 3) * 0x101 | ERDMA_EQ_TYPE_CEQ << 24);
    }
}

static void region_request(EngineRig *rig, FuzzInput *in, ErigReq *req)
{
    uint64_t pages[4];
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(pages); i++) {
        pages[i] = ERIG_BASE + fuzz_u8(in) * 4096;
    }
    erig_req_reg_mr(rig, req, fuzz_below(in, N_NUMBERS), fuzz_u64(in),
                    fuzz_u16(in), 1 + fuzz_below(in, 4), pages);
    if (fuzz_u8(in) & 1) {
        /* Page tables at several levels, fast registration */
        erig_set32(req, 12, fuzz_u32(in));
        erig_set32(req, 28, fuzz_u32(in));
    }
}

static void command(EngineRig *rig, FuzzInput *in)
{
    ErigCmdCqe cqe;
    ErigReq req;

    switch (fuzz_below(in, 8)) {
    case 0:
        erig_req_create_eq(rig, &req, fuzz_below(in, N_NUMBERS));
        erig_set64(&req, 8, erig_alloc(rig, 1024, 4096));
        break;
    case 1:
        erig_req_create_cq(rig, &req, fuzz_below(in, N_NUMBERS), 6,
                           1 + fuzz_below(in, 2),
                           erig_alloc(rig, 64 * 32, 4096));
        break;
    case 2:
        erig_req_create_qp(rig, &req, fuzz_below(in, N_NUMBERS),
                           fuzz_below(in, N_NUMBERS));
        break;
    case 3:
        region_request(rig, in, &req);
        break;
    case 4:
        /* MODIFY_QP to RTS, with an address that leads to itself */
        erig_req(rig, &req, 0, ERDMA_CMD_MODIFY_QP);
        memset(req.raw + 8, 0, sizeof(req.raw) - 8);
        erig_set32(&req, 8, (uint32_t)fuzz_below(in, 8) << 24 |
                   fuzz_below(in, 16) << 20 | fuzz_below(in, N_NUMBERS));
        erig_set32(&req, 12, last_cookie);
        erig_set32_be(&req, 16, 0x0a000001);
        erig_set32_be(&req, 20, 0x0a000001);
        break;
    case 5:
        fuzz_bytes(in, req.raw, sizeof(req.raw));
        break;
    default:
        plain_request(rig, in, &req);
        break;
    }
    mutate(in, &req);
    erig_post(rig, &req);
    if (fuzz_u8(in) & 0xf) {
        erig_ring_cmdq(rig);
        erig_run(rig);
    }
    while (erig_poll_cmd(rig, &cqe)) {
        if (cqe.opcode == ERDMA_CMD_CREATE_QP && !cqe.status) {
            last_cookie = cqe.resp0;
        }
    }
}

static void doorbell(EngineRig *rig, FuzzInput *in)
{
    unsigned kind = fuzz_below(in, 9);
    uint64_t payload = (uint64_t)fuzz_below(in, N_NUMBERS) << 32;

    if (fuzz_u8(in) & 3) {
        payload |= 1u << 31 | fuzz_u16(in);
    } else {
        payload = fuzz_u64(in);
    }
    switch (kind) {
    case 0:
        erdma_engine_db_cmdq_sq(rig->e, payload);
        break;
    case 1:
        erdma_engine_db_cmdq_cq(rig->e, payload);
        break;
    case 2:
        erdma_engine_db_cmdq_eq(rig->e, payload);
        break;
    case 3:
        erdma_engine_db_aeq(rig->e, payload);
        break;
    case 4:
        erdma_engine_db_ceq(rig->e, 1 + fuzz_below(in, 31), payload);
        break;
    case 5:
        erdma_engine_db_ext(rig->e, fuzz_u8(in), fuzz_u16(in) & 0xff8,
                            payload);
        break;
    default:
        erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ + kind % 3, payload);
        break;
    }
}

/* The guest points a DMA at the device's own doorbells. */
static void rings_back(EngineRig *rig)
{
    erdma_engine_db_cmdq_sq(rig->e, rig->cmd_pi);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_SQ, 1ull << 32 | 40);
    erdma_engine_db_queue(rig->e, ERDMA_DB_KIND_CQ, 1ull << 32 | 3u << 30);
}

static void packet(EngineRig *rig, FuzzInput *in)
{
    uint8_t raw[256];
    ErdmaDatagram dg = {
        .src_ip = 0x0a000001, .dst_ip = 0x0a000001,
        .src_port = ERDMA_XPORT_UDP_PORT, .dst_port = ERDMA_XPORT_UDP_PORT,
        .data = raw, .len = 20 + fuzz_below(in, 200),
    };

    fuzz_bytes(in, raw, dg.len);
    stw_be_p(raw, 0x6552);
    raw[2] = 0x10 | (raw[2] & 0xf);
    stl_be_p(raw + 4, last_cookie);
    erdma_engine_input(rig->e, &dg, rig->now);
}

static void other(EngineRig *rig, FuzzInput *in)
{
    uint64_t addr;

    switch (fuzz_below(in, 8)) {
    case 0:
        erdma_engine_reset(rig->e);
        break;
    case 1:
        erig_init(rig);
        break;
    case 2:
        rig->hole = ERIG_BASE + fuzz_u32(in) % ERIG_SIZE;
        rig->hole_len = fuzz_u16(in);
        break;
    case 3:
        rig->hole_len = 0;
        break;
    case 4:
        rig->on_dma = rig->on_dma ? NULL : rings_back;
        break;
    default:
        addr = ERIG_BASE + fuzz_u32(in) % (rig->used + 4096);
        fuzz_bytes(in, erig_ptr(rig, addr), fuzz_below(in, 128));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    FuzzInput in = { data, len };
    EngineRig *rig = fresh_rig();
    ErdmaEngineCounts counts;
    unsigned i;

    last_cookie = 0;
    for (i = 0; i < STEPS_MAX && fuzz_more(&in); i++) {
        switch (fuzz_below(&in, 8)) {
        case 0:
        case 1:
            doorbell(rig, &in);
            break;
        case 2:
            packet(rig, &in);
            break;
        case 3:
            other(rig, &in);
            break;
        case 4:
            rig->now += fuzz_u32(&in);
            break;
        default:
            command(rig, &in);
            break;
        }
        erig_run(rig);
        erig_forget_trace(rig);
        erdma_engine_counts(rig->e, &counts);
        g_assert_cmpuint(counts.n_eqs, <=, ERDMA_MAX_VECTORS);
        g_assert_cmpuint(counts.n_qps, <, 1024);
        g_assert_cmpuint(counts.n_cqs, <, 2048);
        g_assert_cmpuint(counts.n_mrs, <, 2048);
    }
    return 0;
}
