/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requester: what leaves, in which order, and what is refused before.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "requester-rig.h"

/* What a WQE says arrives, field by field. */
static void test_headers(Fixture *f, gconstpointer data)
{
    RigWr wr = wr_of(f, ERDMA_OP_WRITE_WITH_IMM, 10);
    ErdmaXportMsgHdr *h;
    RigMsg *msg;

    wr.imm = 0xa1b2c3d4;
    wr.raddr = 0x1122334455667788;
    wr.rkey = 0x99aabbcc;
    wr.is_solicited = true;
    rig_post_send(f->qp, &wr);
    wr.op = ERDMA_OP_READ;
    rig_post_send(f->qp, &wr);
    wr.op = ERDMA_OP_ATOMIC_CAS;
    wr.sges[0].len = 8;
    wr.swap_add = 0x0102030405060708;
    wr.compare = 0xf1f2f3f4f5f6f7f8;
    rig_post_send(f->qp, &wr);
    wr.op = ERDMA_OP_SEND_WITH_INV;
    wr.inv_key = 0x1f2f3f4f;
    rig_post_send(f->qp, &wr);
    rig_run(f->rig, RIG_S);

    msg = rig_peer_take(f->peer, ERDMA_XPORT_OP_WRITE_IMM);
    h = &msg->hdr;
    g_assert_cmphex(h->imm, ==, 0xa1b2c3d4);
    g_assert_cmphex(h->raddr, ==, 0x1122334455667788);
    g_assert_cmphex(h->rkey, ==, 0x99aabbcc);
    g_assert_cmpuint(h->len, ==, 10);
    g_assert_true(h->is_solicited);
    rig_msg_free(msg);
    msg = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    h = &msg->hdr;
    g_assert_cmphex(h->raddr, ==, 0x1122334455667788);
    g_assert_cmphex(h->rkey, ==, 0x99aabbcc);
    g_assert_cmpuint(h->read_len, ==, 10);
    g_assert_cmpuint(h->len, ==, 0);
    rig_msg_free(msg);
    msg = rig_peer_take(f->peer, ERDMA_XPORT_OP_ATOMIC_CAS);
    h = &msg->hdr;
    g_assert_cmphex(h->raddr, ==, 0x1122334455667788);
    g_assert_cmphex(h->rkey, ==, 0x99aabbcc);
    g_assert_cmphex(h->swap_add, ==, 0x0102030405060708);
    g_assert_cmphex(h->compare, ==, 0xf1f2f3f4f5f6f7f8);
    rig_msg_free(msg);
    msg = rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND_INV);
    g_assert_cmphex(msg->hdr.imm, ==, 0x1f2f3f4f);
    rig_msg_free(msg);
}

/* A read is complete when it is answered, what follows it only after it. */
static void test_order(Fixture *f, gconstpointer data)
{
    uint16_t read = post(f, ERDMA_OP_READ, 100);
    uint16_t send = post(f, ERDMA_OP_SEND, 10);
    RigMsg *req;

    rig_run(f->rig, 10 * RIG_MS);
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND));
    rig_expect_none(&f->qp->scq);
    answer(f, req);
    rig_run(f->rig, 10 * RIG_MS);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, 0, read);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, send);
    rig_msg_free(req);
}

static void test_fence(Fixture *f, gconstpointer data)
{
    RigWr wr = wr_of(f, ERDMA_OP_SEND, 10);
    RigMsg *req;

    post(f, ERDMA_OP_READ, 100);
    post(f, ERDMA_OP_SEND, 0);
    wr.is_fenced = true;
    rig_post_send(f->qp, &wr);
    rig_run(f->rig, 10 * RIG_MS);
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND));
    g_assert_true(is_silent(f));
    answer(f, req);
    rig_run(f->rig, 10 * RIG_MS);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND));
    rig_msg_free(req);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, 0, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 2);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 3);
}

/* At most 128 reads and atomics wait for their answers. */
static void test_ord(Fixture *f, gconstpointer data)
{
    RigMsg *reqs[ERDMA_MAX_ORD];
    unsigned i;

    for (i = 0; i < ERDMA_MAX_ORD - 1; i++) {
        post(f, i % 2 ? ERDMA_OP_ATOMIC_FAA : ERDMA_OP_READ, 8);
    }
    post(f, ERDMA_OP_READ, 8);
    rig_run(f->rig, 10 * RIG_MS);
    for (i = 0; i < ERDMA_MAX_ORD; i++) {
        reqs[i] = g_queue_pop_head(&f->peer->rx);
        g_assert_nonnull(reqs[i]);
    }
    /* One more waits, with everything behind it. */
    post(f, ERDMA_OP_READ, 0);
    g_assert_true(is_silent(f));
    answer(f, reqs[0]);
    rig_run(f->rig, 10 * RIG_MS);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, 0, 0);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ));
    for (i = 0; i < ERDMA_MAX_ORD; i++) {
        rig_msg_free(reqs[i]);
    }
}

/* However deep the queue, only so many entries are held here. */
static void test_window(Fixture *f, gconstpointer data)
{
    unsigned posted = 0, done = 0;
    RigCqe cqe;
    ErdmaQp *qp;

    f->peer->answer = ERDMA_XPORT_RX_NOT_READY;
    while (posted < f->qp->sq_depth) {
        post(f, ERDMA_OP_SEND, 0);
        posted++;
    }
    rig_run(f->rig, 20 * RIG_MS);
    qp = erdma_qp_get(f->hca->e, 5);
    g_assert_cmpuint(qp->n_sends, <=, 256);
    g_assert_cmpuint(qp->n_sends, >, 100);
    f->peer->answer = ERDMA_XPORT_RX_OK;
    erdma_xport_conn_rx_resume(f->peer->conn);
    f->peer->next_ns = 0;
    rig_run(f->rig, 10 * RIG_S);
    while (rig_poll(&f->qp->scq, &cqe)) {
        g_assert_cmpuint(cqe.status, ==, 0);
        g_assert_cmpuint(cqe.index, ==, done++);
    }
    g_assert_cmpuint(done, ==, posted);
}

/* A key is not taken away under entries that may use it. */
static void test_local_inv(Fixture *f, gconstpointer data)
{
    RigWr reg = { .op = ERDMA_OP_REG_MR, .start = 0x1000, .len = 4096,
                  .access = RIG_ALL_RIGHTS, .n_pages = 1 };
    RigWr inv = { .op = ERDMA_OP_LOCAL_INV };
    RigWr send = { .op = ERDMA_OP_SEND, .n_sges = 1,
                   .sges = { { 0x1000, 100, 0 } } };
    RigMsg *msg;

    reg.inv_key = inv.inv_key = send.sges[0].key = rig_frmr(f->hca, 4) ^ 0x33;
    reg.pages[0] = rig_alloc(f->hca, 4096);
    memset(rig_ptr(f->hca, reg.pages[0]), 0x66, 100);
    rig_post_send(f->qp, &reg);
    f->peer->answer = ERDMA_XPORT_RX_NOT_READY;
    rig_post_send(f->qp, &send);
    rig_post_send(f->qp, &inv);
    rig_run(f->rig, 10 * RIG_MS);
    rig_expect(&f->qp->scq, ERDMA_OP_REG_MR, 0, 0);
    rig_expect_none(&f->qp->scq);
    f->peer->answer = ERDMA_XPORT_RX_OK;
    erdma_xport_conn_rx_resume(f->peer->conn);
    f->peer->next_ns = 0;
    rig_run(f->rig, 5 * RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 2);
    rig_expect(&f->qp->scq, ERDMA_OP_LOCAL_INV, 0, 3);
    g_assert_cmpuint(f->hca->e->stats.mr_fast_regs, ==, 1);
    g_assert_cmpuint(f->hca->e->stats.mr_local_invs, ==, 1);
    msg = rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND);
    g_assert_cmphex(msg->data->data[99], ==, 0x66);
    rig_msg_free(msg);
    /* It is gone now. */
    rig_post_send(f->qp, &send);
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 10, 4);
}

/* Entries that fail here, before the peer hears of them */

typedef enum Fault {
    L_KEY,
    L_RANGE,
    L_RIGHT,
    L_PD,
    L_WRAP,
    L_DMA,
    M_OPCODE,
    M_OPCODE_RQ,
    M_INDEX,
    M_QPN,
    M_COUNT,
    M_HALF,
    M_SGES,
    M_INLINE,
    M_LENGTH,
    M_ATOMIC_LEN,
    M_UNREADABLE,
    I_KEY,
    I_NOT_FRMR,
    REG_USER,
} Fault;

static const struct Bad {
    const char *name;
    Fault fault;
    uint8_t op;
    uint8_t status;
} bads[] = {
    { "send/key", L_KEY, ERDMA_OP_SEND, 10 },
    { "send/range", L_RANGE, ERDMA_OP_SEND, 11 },
    { "send/right", L_RIGHT, ERDMA_OP_SEND, 12 },
    { "send/pd", L_PD, ERDMA_OP_SEND, 13 },
    { "send/wrap", L_WRAP, ERDMA_OP_SEND, 14 },
    { "send/dma", L_DMA, ERDMA_OP_SEND, 1 },
    { "write/key", L_KEY, ERDMA_OP_WRITE, 10 },
    { "write/right", L_RIGHT, ERDMA_OP_WRITE, 12 },
    { "read/key", L_KEY, ERDMA_OP_READ, 10 },
    { "read/range", L_RANGE, ERDMA_OP_READ, 11 },
    { "read/right", L_RIGHT, ERDMA_OP_READ, 12 },
    { "read/pd", L_PD, ERDMA_OP_READ, 13 },
    { "read/wrap", L_WRAP, ERDMA_OP_READ, 14 },
    { "atomic/key", L_KEY, ERDMA_OP_ATOMIC_CAS, 10 },
    { "atomic/right", L_RIGHT, ERDMA_OP_ATOMIC_FAA, 12 },
    { "malformed/opcode", M_OPCODE, ERDMA_OP_SEND, 8 },
    { "malformed/opcode-rq", M_OPCODE_RQ, ERDMA_OP_SEND, 8 },
    { "malformed/index", M_INDEX, ERDMA_OP_SEND, 8 },
    { "malformed/qpn", M_QPN, ERDMA_OP_SEND, 8 },
    { "malformed/count", M_COUNT, ERDMA_OP_SEND, 8 },
    { "malformed/half", M_HALF, ERDMA_OP_SEND, 8 },
    { "malformed/sges", M_SGES, ERDMA_OP_SEND, 8 },
    { "malformed/inline", M_INLINE, ERDMA_OP_SEND, 8 },
    { "malformed/length", M_LENGTH, ERDMA_OP_SEND, 8 },
    { "malformed/atomic", M_ATOMIC_LEN, ERDMA_OP_ATOMIC_FAA, 8 },
    { "malformed/unreadable", M_UNREADABLE, ERDMA_OP_SEND, 1 },
    { "invalidate/key", I_KEY, ERDMA_OP_LOCAL_INV, 10 },
    { "invalidate/normal", I_NOT_FRMR, ERDMA_OP_LOCAL_INV, 10 },
};

static void post_bad(Fixture *f, const struct Bad *b)
{
    static const uint8_t zeros[64];
    bool is_atomic = b->op == ERDMA_OP_ATOMIC_CAS ||
                     b->op == ERDMA_OP_ATOMIC_FAA;
    RigWr wr = wr_of(f, b->op, is_atomic ? 8 : 16);
    uint8_t *raw = rig_ptr(f->hca, f->qp->sq + 32 * f->qp->sq_pi);
    uint64_t hdr;

    switch (b->fault) {
    case L_KEY:
        wr.sges[0].key ^= 1;
        break;
    case L_RANGE:
        wr.sges[0].addr += LEN - 4;
        break;
    case L_RIGHT:
        wr.sges[0].key = f->none;
        break;
    case L_PD:
        wr.sges[0].key = f->other_pd;
        break;
    case L_WRAP:
        wr.sges[0].addr = UINT64_MAX - 3;
        break;
    case L_DMA:
        f->hca->hole = f->buf;
        f->hca->hole_len = 1;
        break;
    case M_SGES:
        wr.n_sges = 7;
        break;
    case M_HALF:
        wr.n_sges = 0;
        wr.inline_data = zeros;
        wr.inline_len = sizeof(zeros);
        break;
    case M_INLINE:
        wr.inline_data = "";
        wr.inline_len = 0;
        break;
    case M_ATOMIC_LEN:
        wr.sges[0].len = 4;
        break;
    case I_KEY:
        wr.inv_key = 0x5500;
        break;
    case I_NOT_FRMR:
        wr.inv_key = f->all;
        break;
    default:
        break;
    }
    rig_write_sqe(f->qp, &wr);
    hdr = ldq_le_p(raw);
    switch (b->fault) {
    case M_OPCODE:
        hdr |= 31ull << 27;
        break;
    case M_OPCODE_RQ:
        hdr = (hdr & ~(31ull << 27)) | (uint64_t)ERDMA_OP_RECV_IMM << 27;
        break;
    case M_INDEX:
        hdr ^= 0x100;
        break;
    case M_QPN:
        hdr ^= 1ull << 32;
        break;
    case M_COUNT:
        /* More than was posted */
        hdr = (hdr & ~(7ull << 52) & ~0xffffull) | 7ull << 52 |
              (uint16_t)(f->qp->sq_pi + 7);
        break;
    case M_INLINE:
        hdr |= 97ull << 56;
        break;
    case M_LENGTH:
        stl_le_p(raw + 12, 17);
        break;
    case M_UNREADABLE:
        f->hca->hole = f->qp->sq + 32;
        f->hca->hole_len = 32;
        break;
    default:
        break;
    }
    stq_le_p(raw, hdr);
}

static void test_bad(Fixture *f, gconstpointer data)
{
    const struct Bad *b = data;
    uint16_t after, last;
    RigCqe cqe;

    /* One before it, which still waits when the bad one is looked at */
    post(f, ERDMA_OP_SEND, 0);
    post_bad(f, b);
    after = f->qp->sq_pi;
    if (b->fault == M_HALF) {
        /* Only the first of its three WQEBBs is there. */
        f->qp->sq_pi = 2;
        rig_ring_sq(f->qp);
        rig_run(f->rig, RIG_S);
        rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 0);
        rig_expect(&f->qp->scq, ERDMA_OP_SEND, b->status, 1);
        rig_expect_none(&f->qp->scq);
        return;
    }
    post(f, ERDMA_OP_SEND, 0);
    last = f->qp->sq_pi;
    post(f, ERDMA_OP_SEND, 0);
    rig_run(f->rig, RIG_S);

    /*
     * Only what came before left.  It succeeded, unless the connection ended
     * under it because the bad one was already being sent.
     */
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_SEND));
    g_assert_true(g_queue_is_empty(&f->peer->rx));
    g_assert_cmpuint(f->peer->n_terminated, ==, 1);
    g_assert_cmpuint(f->peer->term_status, ==, ERDMA_WC_FLUSH_ERR);
    cqe = rig_next(&f->qp->scq);
    g_assert_cmpuint(cqe.index, ==, 0);
    if (b->fault != L_DMA) {
        g_assert_cmpuint(cqe.status, ==, 0);
    }
    cqe = rig_next(&f->qp->scq);
    g_assert_cmpuint(cqe.index, ==, 1);
    g_assert_cmpuint(cqe.status, ==, b->status);
    g_assert_cmpuint(cqe.opcode, <, ERDMA_NUM_OPCODES);
    if (b->fault == M_COUNT) {
        /* It claimed the rest of the queue. */
        rig_expect_none(&f->qp->scq);
        return;
    }
    if (b->fault == M_UNREADABLE) {
        rig_expect_none(&f->qp->scq);
        f->hca->hole_len = 0;
        return;
    }
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, after);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, last);
    rig_expect_none(&f->qp->scq);
    g_assert_cmpint(rig_poll_aeq(f->hca, 5), ==, -1);
}

/* Bus addresses and the key to all memory are for kernel queues only. */
static void test_user(Fixture *f, gconstpointer data)
{
    RigWr wr = wr_of(f, ERDMA_OP_SEND, 16);

    if (data) {
        wr = (RigWr) { .op = ERDMA_OP_REG_MR, .n_pages = 1, .len = 4096,
                       .inv_key = rig_frmr(f->hca, 4),
                       .access = RIG_ALL_RIGHTS, .pages = { f->buf } };
    } else {
        wr.sges[0].key = 0xffffff00;
    }
    rig_post_send(f->qp, &wr);
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, wr.op, data ? 8 : 10, 0);
}

static void test_dma_key(Fixture *f, gconstpointer data)
{
    RigWr wr = wr_of(f, ERDMA_OP_SEND, 16);

    wr.sges[0].key = 0xffffff00;
    rig_post_send(f->qp, &wr);
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 0, 0);
}

static void test_no_atomics(Fixture *f, gconstpointer data)
{
    f->hca->e->cfg.has_atomics = false;
    post(f, ERDMA_OP_ATOMIC_FAA, 8);
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_ATOMIC_FAA, 8, 0);
}

/* Its region is taken away while a message is being sent. */
static void test_dereg_mid_send(Fixture *f, gconstpointer data)
{
    uint64_t big = rig_alloc(f->hca, 4 << 20);
    uint32_t key = rig_mr(f->hca, big, 4 << 20, ERDMA_MR_ACC_LR);
    RigWr wr = { .op = ERDMA_OP_SEND, .n_sges = 1,
                 .sges = { { big, 4 << 20, key } } };

    rig_post_send(f->qp, &wr);
    while (!f->peer->partial->len) {
        rig_run(f->rig, 20 * RIG_US);
    }
    rig_dereg(f->hca, key);
    post(f, ERDMA_OP_SEND, 0);
    rig_run(f->rig, RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, 10, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_SEND, ERDMA_WC_FLUSH_ERR, 1);
    g_assert_true(g_queue_is_empty(&f->peer->rx));
}

/* The same with the destination of a read. */
static void test_dereg_mid_read(Fixture *f, gconstpointer data)
{
    uint64_t big = rig_alloc(f->hca, 1 << 20);
    uint32_t key = rig_mr(f->hca, big, 1 << 20, ERDMA_MR_ACC_LW);
    RigWr wr = { .op = ERDMA_OP_READ, .n_sges = 1,
                 .sges = { { big, 1 << 20, key } } };
    RigMsg *req;

    rig_post_send(f->qp, &wr);
    rig_run(f->rig, 10 * RIG_MS);
    req = rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ);
    answer(f, req);
    rig_msg_free(req);
    f->hca->watch = big;
    f->hca->watch_len = 1 << 20;
    while (!f->hca->watch_end) {
        rig_run(f->rig, 20 * RIG_US);
    }
    rig_dereg(f->hca, key);
    f->hca->watch_end = 0;
    rig_run(f->rig, RIG_S);
    g_assert_cmpuint(f->hca->watch_end, ==, 0);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, 10, 0);
}

/*
 * A read waits for its answer as long as the peer is there, and not a moment
 * longer than retries take: its request was acked, but that is not enough.
 */
static void test_unanswered(Fixture *f, gconstpointer data)
{
    RigWr wr = wr_of(f, ERDMA_OP_READ, LEN);
    RigCqe cqe;

    rig_post_send(f->qp, &wr);
    rig_run(f->rig, 10 * RIG_MS);
    rig_msg_free(rig_peer_take(f->peer, ERDMA_XPORT_OP_READ_REQ));
    rig_run(f->rig, 60 * RIG_S);
    g_assert_false(rig_poll(&f->qp->scq, &cqe));
    f->rig->is_cut = true;
    rig_run(f->rig, 60 * RIG_S);
    rig_expect(&f->qp->scq, ERDMA_OP_READ, ERDMA_WC_RETRY_EXC_ERR, 0);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    ADD("headers", test_headers);
    ADD("order", test_order);
    ADD("fence", test_fence);
    ADD("ord", test_ord);
    ADD("window", test_window);
    ADD("local-inv", test_local_inv);
    for (i = 0; i < ARRAY_SIZE(bads); i++) {
        g_autofree char *path = g_strdup_printf("/requester/bad/%s",
                                                bads[i].name);

        g_test_add(path, Fixture, &bads[i], setup, test_bad, teardown);
    }
    g_test_add("/requester/user/dma-key", Fixture, NULL, setup_user,
               test_user, teardown);
    g_test_add("/requester/user/reg-mr", Fixture, GUINT_TO_POINTER(1),
               setup_user, test_user, teardown);
    ADD("dma-key", test_dma_key);
    ADD("no-atomics", test_no_atomics);
    ADD("dereg/send", test_dereg_mid_send);
    ADD("dereg/read", test_dereg_mid_read);
    ADD("unanswered", test_unanswered);
    return g_test_run();
}
