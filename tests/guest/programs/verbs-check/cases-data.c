/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Every operation in every size class, checked by content: what was sent is
 * there, what lies around it is untouched, immediate data is exact.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"

#define DEPTH 32
#define CHECK_MS 10000
#define BACKGROUND 99

static const uint32_t sizes[] = {
    0, 1, 31, 32, 95, 96, 97, 1399, 1400, 1401, 1499, 1500, 1501, 4095, 4096,
    4097, 8499, 8500, 8501, 65536, (1u << 20) + 1,
};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Is it a refusal of the operation as such, not of this use of it? */
static bool is_unsupported(int err)
{
    return err == EINVAL || err == EOPNOTSUPP || err == ENOSYS;
}

/* Takes the server's one completion apart. */
static bool server_wc(Client *c, int *opcode, uint32_t *len, uint32_t *imm)
{
    unsigned flags;
    int n, status;

    if (!ask(c, "poll 1 20000")) {
        return false;
    }
    if (sscanf(c->answer, "wc %d %d:%d:%" SCNu32 ":%u:%" SCNu32, &n, &status,
               opcode, len, &flags, imm) != 6) {
        fail(c, "no completion at the server (%s)", c->answer);
        return false;
    }
    if (status) {
        fail(c, "completion at the server: %s", status_name(status));
        return false;
    }
    if (!(flags & IBV_WC_WITH_IMM)) {
        *imm = 0;
    }
    return true;
}

static void send_case(Client *c, const char *name, enum ibv_wr_opcode opcode,
                      uint32_t len, int flags, int n_sge)
{
    Op op = {
        .opcode = opcode, .local = SOURCE + 1, .len = len, .flags = flags,
        .n_sge = n_sge,
    };
    uint32_t got_len, imm = 0;
    struct ibv_wc wc;
    int got_opcode;

    if (!begin(c, "%s/%u", name, len) || !need_connection(c, DEPTH, false)) {
        return;
    }
    if (n_sge > (int)c->ep.max_sge || ((flags & IBV_SEND_INLINE) &&
                                       c->ep.max_inline < len)) {
        skip(c, "beyond the device's limits");
        return;
    }
    if (opcode == IBV_WR_SEND_WITH_IMM) {
        op.imm = 0xc0de0000 + c->seed;
    }
    pattern_fill(c->ep.mem + SOURCE + 1, len, c->seed);
    if (!ask_ok(c, "fill %u %u %d", RECV_BASE, len + GUARD, BACKGROUND) ||
        !ask_ok(c, "recv %u %u 1", RECV_BASE, len + GUARD)) {
        return;
    }
    if (opcode == IBV_WR_SEND_WITH_IMM) {
        /* Some providers lack it; they refuse before anything is sent. */
        int err = post(c, &op), n = 1;

        if (is_unsupported(err)) {
            skip(c, "not offered by the provider");
            close_connection(c);        /* the receive stays posted */
            return;
        }
        if (err || !ep_poll(&c->ep, &wc, &n, 20000) || wc.status) {
            fail(c, "send: %s", err ? strerror(err) : n ?
                 status_name(wc.status) : c->ep.problem);
            return;
        }
    } else if (!run_op(c, &op, &wc)) {
        return;
    }
    if (!server_wc(c, &got_opcode, &got_len, &imm)) {
        return;
    }
    if (got_opcode != IBV_WC_RECV || got_len != len || imm != op.imm) {
        fail(c, "received opcode %d, %u bytes, immediate %#x", got_opcode,
             got_len, imm);
        return;
    }
    if (wc.opcode != IBV_WC_SEND) {
        fail(c, "the completion's opcode is %d", wc.opcode);
        return;
    }
    if (ask_ok(c, "check %u %u %u 0", RECV_BASE, len, c->seed)) {
        pass(c, NULL);
    }
}

/* The bytes around the target keep the background. */
static bool prepare_target(Client *c, uint32_t len)
{
    return ask_ok(c, "fill %u %u %d", TARGET - GUARD, GUARD, BACKGROUND) &&
           ask_ok(c, "fill %u %u %d", TARGET, len, BACKGROUND) &&
           ask_ok(c, "fill %u %u %d", TARGET + len, GUARD, BACKGROUND);
}

static bool check_target(Client *c, uint32_t len)
{
    return ask_ok(c, "check %u %u %u %d", TARGET, len, c->seed, CHECK_MS) &&
           ask_ok(c, "check %u %u %d 0", TARGET - GUARD, GUARD, BACKGROUND) &&
           ask_ok(c, "check %u %u %d 0", TARGET + len, GUARD, BACKGROUND);
}

static void write_case(Client *c, const char *name, enum ibv_wr_opcode opcode,
                       uint32_t len, int flags, int n_sge)
{
    Op op = {
        .opcode = opcode, .local = SOURCE + 3, .remote = TARGET, .len = len,
        .flags = flags, .n_sge = n_sge,
    };
    uint32_t got_len = len, imm = 0;
    int got_opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    struct ibv_wc wc;

    if (!begin(c, "%s/%u", name, len) || !need_connection(c, DEPTH, false)) {
        return;
    }
    if (n_sge > (int)c->ep.max_sge || ((flags & IBV_SEND_INLINE) &&
                                       c->ep.max_inline < len)) {
        skip(c, "beyond the device's limits");
        return;
    }
    pattern_fill(c->ep.mem + SOURCE + 3, len, c->seed);
    if (!prepare_target(c, len)) {
        return;
    }
    if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        int err, n = 1;

        op.imm = 0xbeef0000 + c->seed;
        if (!ask_ok(c, "recv %u 0 1", RECV_BASE)) {
            return;
        }
        err = post(c, &op);
        if (is_unsupported(err)) {
            skip(c, "not offered by the provider");
            close_connection(c);
            return;
        }
        if (err || !ep_poll(&c->ep, &wc, &n, 20000) || wc.status) {
            fail(c, "write: %s", err ? strerror(err) : n ?
                 status_name(wc.status) : c->ep.problem);
            return;
        }
        if (!server_wc(c, &got_opcode, &got_len, &imm)) {
            return;
        }
    } else if (!run_op(c, &op, &wc)) {
        return;
    }
    if (got_opcode != IBV_WC_RECV_RDMA_WITH_IMM || imm != op.imm ||
        got_len != len) {
        fail(c, "received opcode %d, %u bytes, immediate %#x", got_opcode,
             got_len, imm);
        return;
    }
    if (wc.opcode != IBV_WC_RDMA_WRITE) {
        fail(c, "the completion's opcode is %d", wc.opcode);
        return;
    }
    if (check_target(c, len)) {
        pass(c, NULL);
    }
}

static void read_case(Client *c, uint32_t len)
{
    Op op = {
        .opcode = IBV_WR_RDMA_READ, .local = SOURCE, .remote = TARGET + 5,
        .len = len,
    };
    struct ibv_wc wc;
    long bad;

    if (!begin(c, "read/%u", len) || !need_connection(c, DEPTH, false)) {
        return;
    }
    pattern_fill(c->ep.mem + SOURCE - GUARD, len + 2 * GUARD, BACKGROUND);
    if (!ask_ok(c, "fill %u %u %u", TARGET + 5, len, c->seed) ||
        !run_op(c, &op, &wc)) {
        return;
    }
    bad = pattern_check(c->ep.mem + SOURCE, len, c->seed);
    if (bad >= 0) {
        fail(c, "wrong byte at %ld of %u", bad, len);
        return;
    }
    if (pattern_check(c->ep.mem + SOURCE - GUARD, GUARD, BACKGROUND) >= 0) {
        fail(c, "bytes before the buffer were changed");
        return;
    }
    /* The pattern goes by position: redo its end to compare. */
    pattern_fill(c->ep.mem + RECV_BASE, len + 2 * GUARD, BACKGROUND);
    if (memcmp(c->ep.mem + RECV_BASE + GUARD + len, c->ep.mem + SOURCE + len,
               GUARD)) {
        fail(c, "bytes after the buffer were changed");
        return;
    }
    if (wc.opcode != IBV_WC_RDMA_READ) {
        fail(c, "the completion's opcode is %d", wc.opcode);
        return;
    }
    pass(c, NULL);
}

typedef struct AtomicCase {
    const char *name;
    enum ibv_wr_opcode opcode;
    uint64_t before, compare_add, swap, after;
} AtomicCase;

static const AtomicCase atomic_cases[] = {
    { "cas/equal", IBV_WR_ATOMIC_CMP_AND_SWP, 5, 5, 0x123456789abcdef,
      0x123456789abcdef },
    { "cas/different", IBV_WR_ATOMIC_CMP_AND_SWP, 5, 6, 7, 5 },
    { "cas/high-half-differs", IBV_WR_ATOMIC_CMP_AND_SWP, 1ull << 32 | 5, 5,
      7, 1ull << 32 | 5 },
    { "faa/carry", IBV_WR_ATOMIC_FETCH_AND_ADD, 0xffffffff, 1, 0,
      0x100000000 },
    { "faa/wrap", IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 2, 0, 1 },
    { "faa/zero", IBV_WR_ATOMIC_FETCH_AND_ADD, 77, 0, 0, 77 },
};

static void atomic_case(Client *c, const AtomicCase *a)
{
    Op op = {
        .opcode = a->opcode, .local = SOURCE, .remote = TARGET, .len = 8,
        .compare_add = a->compare_add, .swap = a->swap,
    };
    uint64_t old, now;
    struct ibv_wc wc;

    if (!begin(c, "%s", a->name) || !need_connection(c, DEPTH, false)) {
        return;
    }
    if (!c->ep.has_remote_atomic) {
        skip(c, "the device has no atomics");
        return;
    }
    memset(c->ep.mem + SOURCE - 8, 0xee, 24);
    if (!ask_ok(c, "put %u %" PRIu64, TARGET, a->before) ||
        !run_op(c, &op, &wc) || !ask(c, "get %u", TARGET)) {
        return;
    }
    memcpy(&old, c->ep.mem + SOURCE, 8);
    if (sscanf(c->answer, "value %" SCNu64, &now) != 1 || now != a->after) {
        fail(c, "the server has %s, wanted %" PRIu64, c->answer, a->after);
    } else if (old != a->before) {
        fail(c, "returned %" PRIu64 " instead of %" PRIu64, old, a->before);
    } else if (c->ep.mem[SOURCE - 1] != 0xee || c->ep.mem[SOURCE + 8] != 0xee) {
        fail(c, "bytes around the result were changed");
    } else if (wc.opcode != (a->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ?
                             IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD)) {
        fail(c, "the completion's opcode is %d", wc.opcode);
    } else {
        pass(c, NULL);
    }
}

/* Each operation with each number of SGEs in each size, and inline. */
void cases_sweep(Client *c)
{
    static const struct {
        const char *name;
        enum ibv_wr_opcode opcode;
        void (*run)(Client *c, const char *name, enum ibv_wr_opcode opcode,
                    uint32_t len, int flags, int n_sge);
    } ops[] = {
        { "send", IBV_WR_SEND, send_case },
        { "send-imm", IBV_WR_SEND_WITH_IMM, send_case },
        { "write", IBV_WR_RDMA_WRITE, write_case },
        { "write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, write_case },
    };
    char name[48];

    if (!is_asked_for(c, "sweep/")) {
        return;
    }
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (int n = 1; n <= MAX_SGE; n++) {
            for (size_t j = 0; j < N_SIZES; j++) {
                snprintf(name, sizeof(name), "sweep/%s/sge%d", ops[i].name, n);
                ops[i].run(c, name, ops[i].opcode, sizes[j], 0, n);
                if (sizes[j] > MAX_INLINE) {
                    continue;
                }
                snprintf(name, sizeof(name), "sweep/%s/inline-sge%d",
                         ops[i].name, n);
                ops[i].run(c, name, ops[i].opcode, sizes[j], IBV_SEND_INLINE,
                           n);
            }
        }
    }
}

void cases_data(Client *c)
{
    char name[32];

    for (size_t i = 0; i < N_SIZES; i++) {
        send_case(c, "send", IBV_WR_SEND, sizes[i], 0, 0);
        send_case(c, "send-imm", IBV_WR_SEND_WITH_IMM, sizes[i], 0, 0);
        write_case(c, "write", IBV_WR_RDMA_WRITE, sizes[i], 0, 0);
        write_case(c, "write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, sizes[i], 0, 0);
        read_case(c, sizes[i]);
        if (sizes[i] <= MAX_INLINE) {
            send_case(c, "send-inline", IBV_WR_SEND, sizes[i], IBV_SEND_INLINE,
                      0);
            send_case(c, "send-imm-inline", IBV_WR_SEND_WITH_IMM, sizes[i],
                      IBV_SEND_INLINE, 0);
            write_case(c, "write-inline", IBV_WR_RDMA_WRITE, sizes[i],
                       IBV_SEND_INLINE, 0);
            write_case(c, "write-imm-inline", IBV_WR_RDMA_WRITE_WITH_IMM,
                       sizes[i], IBV_SEND_INLINE, 0);
        }
    }
    for (int n = 2; n <= MAX_SGE; n++) {
        snprintf(name, sizeof(name), "send-sge%d", n);
        send_case(c, name, IBV_WR_SEND, 9001, 0, n);
        snprintf(name, sizeof(name), "write-sge%d", n);
        write_case(c, name, IBV_WR_RDMA_WRITE, 70001, 0, n);
        snprintf(name, sizeof(name), "send-inline-sge%d", n);
        send_case(c, name, IBV_WR_SEND, 91, IBV_SEND_INLINE, n);
    }
    for (size_t i = 0; i < sizeof(atomic_cases) / sizeof(atomic_cases[0]);
         i++) {
        atomic_case(c, &atomic_cases[i]);
    }
}
