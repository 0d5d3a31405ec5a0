/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may touch which memory: every way to use a region, by every kind of key
 * that is not good for it.  What is refused has moved no byte, in neither
 * direction; next to it the permitted counterpart, which has.
 */

#include "qemu/osdep.h"
#include "qp-rig.h"

#define LEN         8
#define REGION_LEN  256
#define BUF_LEN     4096
#define DMA_KEY     0xffffff00u
#define KEPT        0xaa        /* in the memory that is protected */
#define SENT        0x55        /* at the other end */

typedef enum Use {
    USE_SEND,                   /* own memory, as a source */
    USE_WRITE,
    USE_READ_SINK,              /* own memory, written to */
    USE_ATOMIC_SINK,
    USE_RECV,                   /* the same, posted at the other end */
    USE_REMOTE_WRITE,           /* the other end's memory, by its key */
    USE_REMOTE_READ,
    USE_REMOTE_ATOMIC,
    USE_COUNT,
} Use;

typedef enum Key {
    KEY_GOOD,
    KEY_OTHER_BYTE,             /* the region's index, another key byte */
    KEY_NO_SUCH,
    KEY_OTHER_PD,
    KEY_NO_RIGHT,               /* all rights but the one */
    KEY_BEFORE,                 /* begins before the region */
    KEY_BEHIND,                 /* ends behind it */
    KEY_WRAPPED,                /* goes around the address space */
    KEY_DEREGISTERED,
    KEY_NOT_YET,                /* fast registration that did not happen */
    KEY_DMA,                    /* the kernel's, for all of memory */
    KEY_COUNT,
} Key;

static const char *const use_names[USE_COUNT] = {
    "send", "write", "read-sink", "atomic-sink", "recv", "remote-write",
    "remote-read", "remote-atomic",
};

static const char *const key_names[KEY_COUNT] = {
    "good", "other-byte", "no-such", "other-pd", "no-right", "before",
    "behind", "wrapped", "deregistered", "not-yet", "dma",
};

static const uint8_t needed[USE_COUNT] = {
    ERDMA_MR_ACC_LR, ERDMA_MR_ACC_LR, ERDMA_MR_ACC_LW, ERDMA_MR_ACC_LW,
    ERDMA_MR_ACC_LW, ERDMA_MR_ACC_RW, ERDMA_MR_ACC_RR, ERDMA_MR_ACC_RA,
};

static bool is_remote(Use use)
{
    return use >= USE_REMOTE_WRITE;
}

/* A piece of memory, and what is said to be a key for it */
typedef struct Piece {
    RigHca *hca;
    uint64_t buf;
    uint64_t addr;
    uint32_t key;
} Piece;

static Piece piece(RigHca *hca, uint8_t fill, Key kind, uint8_t right)
{
    Piece p = { .hca = hca, .buf = rig_alloc(hca, BUF_LEN) };
    uint64_t region = p.buf + 1024;

    memset(rig_ptr(hca, p.buf), fill, BUF_LEN);
    p.addr = region + 64;
    p.key = rig_mr_pd(hca, region, REGION_LEN, kind == KEY_NO_RIGHT ?
                      RIG_ALL_RIGHTS & ~right : RIG_ALL_RIGHTS,
                      kind == KEY_OTHER_PD ? RIG_PD + 1 : RIG_PD);
    switch (kind) {
    case KEY_OTHER_BYTE:
        p.key ^= 1;
        break;
    case KEY_NO_SUCH:
        p.key += 1000 << 8;
        break;
    case KEY_BEFORE:
        p.addr = region - LEN;
        break;
    case KEY_BEHIND:
        p.addr = region + REGION_LEN;
        break;
    case KEY_WRAPPED:
        p.addr = -(uint64_t)LEN;
        break;
    case KEY_DEREGISTERED:
        rig_dereg(hca, p.key);
        break;
    case KEY_NOT_YET:
        p.key = rig_frmr(hca, 4);
        break;
    case KEY_DMA:
        p.key = DMA_KEY;
        break;
    default:
        break;
    }
    return p;
}

static bool is_untouched(const Piece *p, uint8_t fill)
{
    const uint8_t *mem = rig_ptr(p->hca, p->buf);
    unsigned i;

    for (i = 0; i < BUF_LEN; i++) {
        if (mem[i] != fill) {
            return false;
        }
    }
    return true;
}

static RigWr request(Use use, const Piece *local, const Piece *remote)
{
    static const uint8_t opcode[USE_COUNT] = {
        ERDMA_OP_SEND, ERDMA_OP_WRITE, ERDMA_OP_READ, ERDMA_OP_ATOMIC_FAA,
        ERDMA_OP_SEND, ERDMA_OP_WRITE, ERDMA_OP_READ, ERDMA_OP_ATOMIC_FAA,
    };
    RigWr wr = {
        .op = opcode[use],
        .n_sges = 1,
        .sges = { { local->addr, LEN, local->key } },
        .rkey = remote->key,
        .raddr = remote->addr,
        .swap_add = 1,
    };

    return wr;
}

/* Does @use by a key of this @kind work?  Asserts what else follows. */
static bool attempt(Use use, Key kind, bool is_user)
{
    Rig *rig = rig_new();
    RigQpOpts opts = { .is_user = is_user };
    RigQp *a = rig_qp(&rig->hca[0], 5, &opts);
    RigQp *b = rig_qp(&rig->hca[1], 9, &opts);
    bool at_b = use == USE_RECV || is_remote(use), is_ok, has_event;
    Piece local, remote;
    RigWr wr;
    RigCqe cqe;

    rig_connect(a, b);
    local = piece(a->hca, at_b ? SENT : KEPT, at_b ? KEY_GOOD : kind,
                  needed[use]);
    remote = piece(b->hca, at_b ? KEPT : SENT, at_b ? kind : KEY_GOOD,
                   needed[use]);
    rig_post_recv(b, remote.addr, LEN, remote.key);
    wr = request(use, &local, &remote);
    rig_post_send(a, &wr);
    rig_run(rig, 30 * RIG_S);

    g_assert_true(rig_poll(&a->scq, &cqe));
    is_ok = cqe.status == ERDMA_WC_SUCCESS;
    if (!is_ok) {
        g_assert_true(is_untouched(&local, at_b ? SENT : KEPT));
        g_assert_true(is_untouched(&remote, at_b ? KEPT : SENT));
        /* The end whose memory it was hears of it, one way or the other. */
        if (is_remote(use)) {
            has_event = rig_poll_aeq(b->hca, 9) == ERDMA_AE_TYPE_ACC_ERR;
            g_assert_true(has_event);
        }
    } else {
        g_assert_false(is_untouched(&local, at_b ? SENT : KEPT) &&
                       is_untouched(&remote, at_b ? KEPT : SENT));
    }
    rig_qp_free(a);
    rig_qp_free(b);
    rig_free(rig);
    return is_ok;
}

static void test_matrix(gconstpointer data)
{
    unsigned number = GPOINTER_TO_UINT(data);
    Use use = number / KEY_COUNT;
    Key kind = number % KEY_COUNT;

    if (kind == KEY_DMA) {
        /* A kernel's own queue entries may name it, and nobody else. */
        g_assert_cmpint(attempt(use, kind, false), ==, !is_remote(use));
        g_assert_false(attempt(use, kind, true));
        return;
    }
    g_assert_cmpint(attempt(use, kind, false), ==, kind == KEY_GOOD);
    g_assert_cmpint(attempt(use, kind, true), ==, kind == KEY_GOOD);
}

/* Each right alone opens the uses that it is for. */
static void test_rights(void)
{
    Rig *rig = rig_new();
    RigHca *hca = &rig->hca[0];
    uint64_t buf = rig_alloc(hca, LEN);
    unsigned access, need;

    for (access = 0; access <= RIG_ALL_RIGHTS; access++) {
        ErdmaMrUse use = {
            .key = rig_mr(hca, buf, LEN, access), .pdn = RIG_PD,
        };

        for (need = 1; need <= RIG_ALL_RIGHTS; need++) {
            use.access = need;
            g_assert_cmpint(erdma_mr_check(hca->e, &use, buf, LEN), ==,
                            need & ~access ? ERDMA_MR_ERR_RIGHT :
                            ERDMA_MR_OK);
        }
    }
    rig_free(rig);
}

/* A QP's queue entries carry its number: those of another are not its own. */
static void test_other_qp(void)
{
    Rig *rig = rig_new();
    RigQp *a, *b, *c;
    RigWr wr = { .op = ERDMA_OP_SEND };
    RigCqe cqe;

    rig_pair(rig, &a, &b);
    c = rig_qp(&rig->hca[0], 6, NULL);
    rig_write_sqe(c, &wr);
    memcpy(rig_ptr(a->hca, a->sq), rig_ptr(c->hca, c->sq), 32);
    a->sq_pi = c->sq_pi;
    rig_ring_sq(a);
    rig_run(rig, RIG_S);
    g_assert_true(rig_poll(&a->scq, &cqe));
    g_assert_cmpuint(cqe.status, ==, ERDMA_WC_SEND_WQE_FORMAT_ERR);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_qp_free(c);
    rig_free(rig);
}

/*
 * Packets of a connection that is gone: the QP that has its number now, and
 * is connected to the same address, does not hear them.
 */
static void test_earlier_life(void)
{
    Rig *rig = rig_new();
    const ErdmaXportStats *stats;
    RigQp *a, *b, *next;
    RigWr wr = { .op = ERDMA_OP_SEND };
    uint64_t drops, heard;
    uint32_t qpn;

    rig_pair(rig, &a, &b);
    stats = erdma_engine_xport_stats(b->hca->e);
    rig_post_send(a, &wr);
    rig_run(rig, 10 * RIG_MS);
    /* It waits for a receive, and is sent again when the QP is another. */
    qpn = b->qpn;
    g_assert_cmpuint(erdma_qp_destroy(b->hca->e, qpn), ==, 0);
    next = rig_qp(b->hca, qpn, NULL);
    g_assert_cmphex(next->cookie & 0xfffff, ==, b->cookie & 0xfffff);
    g_assert_cmphex(next->cookie, !=, b->cookie);
    g_assert_cmpuint(rig_modify(next, ERDMA_QPS_RTS, a), ==, 0);
    rig_post_recv(next, RIG_MEM_BASE, 64, DMA_KEY);
    drops = stats->drops[ERDMA_XPORT_DROP_NO_CONN];
    heard = stats->rx_data_packets;
    rig_post_send(a, &wr);
    rig_run(rig, 60 * RIG_S);
    g_assert_cmpuint(stats->drops[ERDMA_XPORT_DROP_NO_CONN], >, drops);
    g_assert_cmpuint(stats->rx_data_packets, ==, heard);
    rig_expect_none(&next->rcq);
    rig_qp_free(a);
    rig_qp_free(b);
    rig_qp_free(next);
    rig_free(rig);
}

int main(int argc, char **argv)
{
    unsigned use, kind;

    g_test_init(&argc, &argv, NULL);
    for (use = 0; use < USE_COUNT; use++) {
        for (kind = 0; kind < KEY_COUNT; kind++) {
            g_autofree char *path = g_strdup_printf("/isolation/%s/%s",
                                                    use_names[use],
                                                    key_names[kind]);

            g_test_add_data_func(path, GUINT_TO_POINTER(use * KEY_COUNT +
                                                        kind), test_matrix);
        }
    }
    g_test_add_func("/isolation/rights", test_rights);
    g_test_add_func("/isolation/other-qp", test_other_qp);
    g_test_add_func("/isolation/earlier-life", test_earlier_life);
    return g_test_run();
}
