/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: two devices whose packets the test
 * itself carries - and loses, repeats, delays and damages.
 *
 * Whatever the network does, the bytes arrive once and in order, each
 * request completes once, and an atomic happens once.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"
#include "libqos/erdma-nic.h"

#define PDN         1
#define LEN         30000
#define N_ATOMICS   40
#define UDP_PORT    64791
#define MAX_HELD    4

/* Per mille of the device's packets, each direction on its own */
typedef struct Trouble {
    const char *name;
    unsigned loss;
    unsigned repeat;
    unsigned delay;             /* behind up to MAX_HELD later ones */
    unsigned damage;
    unsigned lose_first;        /* this many, whatever they are */
} Trouble;

static const Trouble troubles[] = {
    { "none" },
    { "loss-1", .loss = 10 },
    { "loss-20", .loss = 200 },
    { "repeat", .repeat = 300 },
    { "reorder", .delay = 300 },
    { "damage", .damage = 50 },
    { "first-lost", .lose_first = 6 },
    { "everything", .loss = 50, .repeat = 50, .delay = 100, .damage = 20 },
};

typedef struct Link {
    int fd;                     /* of the device that sends */
    unsigned n_frames;
    struct {
        uint8_t frame[QERDMA_FRAME_MAX];
        size_t len;
        unsigned due;           /* number of the frame that it follows */
    } held[MAX_HELD];
} Link;

typedef struct Fixture {
    const Trouble *trouble;
    uint32_t random;
    QErdma *d[2];
    Link link[2];
    QErdmaPair p;
    QErdmaMr mr[2];
} Fixture;

static bool chance(Fixture *f, unsigned per_mille)
{
    f->random = f->random * 1103515245u + 12345;
    return (f->random >> 16) % 1000 < per_mille;
}

static void deliver(Fixture *f, unsigned to, const uint8_t *frame, size_t len)
{
    ssize_t n = send(f->link[to].fd, frame, len, 0);

    /* A full socket is one more reason for a loss. */
    g_assert_true(n == len || errno == EAGAIN || errno == ENOBUFS);
}

static void release_held(Fixture *f, unsigned from)
{
    Link *l = &f->link[from];
    unsigned i;

    for (i = 0; i < MAX_HELD; i++) {
        if (l->held[i].len && l->n_frames >= l->held[i].due) {
            deliver(f, !from, l->held[i].frame, l->held[i].len);
            l->held[i].len = 0;
        }
    }
}

static bool hold(Fixture *f, Link *l, const uint8_t *frame, size_t len)
{
    unsigned i;

    for (i = 0; i < MAX_HELD; i++) {
        if (!l->held[i].len) {
            memcpy(l->held[i].frame, frame, len);
            l->held[i].len = len;
            l->held[i].due = l->n_frames + 1 + i;
            return true;
        }
    }
    return false;
}

static bool is_ours(const uint8_t *frame, size_t len)
{
    return len > QERDMA_UDP_DATA && lduw_be_p(frame + 12) == 0x0800 &&
        lduw_be_p(frame + 36) == UDP_PORT;
}

/* Carries one frame; returns false when there is none. */
static bool carry(Fixture *f, unsigned from)
{
    const Trouble *t = f->trouble;
    Link *l = &f->link[from];
    uint8_t frame[QERDMA_FRAME_MAX];
    ssize_t len = recv(l->fd, frame, sizeof(frame), MSG_DONTWAIT);

    if (len <= 0) {
        return false;
    }
    if (!is_ours(frame, len)) {
        deliver(f, !from, frame, len);
        return true;
    }
    l->n_frames++;
    if (chance(f, t->damage)) {
        frame[QERDMA_UDP_DATA + f->random % (len - QERDMA_UDP_DATA)] ^= 0x10;
    }
    if (l->n_frames <= t->lose_first || chance(f, t->loss)) {
        /* gone */
    } else if (!chance(f, t->delay) || !hold(f, l, frame, len)) {
        deliver(f, !from, frame, len);
        if (chance(f, t->repeat)) {
            deliver(f, !from, frame, len);
        }
    }
    release_held(f, from);
    return true;
}

static void carry_all(Fixture *f)
{
    bool is_busy = true;

    while (is_busy) {
        is_busy = carry(f, 0);
        is_busy |= carry(f, 1);
        if (is_busy) {
            /* let the devices see what arrived */
            qerdma_read32(f->d[0], A_ERDMA_VERSION);
        }
    }
}

/*
 * ERDMA_RECORD=DIR: both devices are recorded, for whoever replays it
 * (run.py).
 */
static char *record_option(const Trouble *t, unsigned end)
{
    const char *dir = g_getenv("ERDMA_RECORD");

    return dir ? g_strdup_printf(",record=%s/%s-%u.rec", dir, t->name, end) :
                 g_strdup("");
}

static void setup(Fixture *f, const Trouble *t)
{
    g_autofree char *record0 = record_option(t, 0);
    g_autofree char *record1 = record_option(t, 1);
    QOSState *qs;
    int fds[2][2];
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->trouble = t;
    f->random = 1;
    for (i = 0; i < 2; i++) {
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds[i]), ==, 0);
        g_assert_cmpint(fcntl(fds[i][0], F_SETFD, FD_CLOEXEC), ==, 0);
        g_assert_cmpint(fcntl(fds[i][0], F_SETFL, O_NONBLOCK), ==, 0);
        f->link[i].fd = fds[i][0];
    }
    qs = qerdma_boot("-netdev dgram,id=net0,local.type=fd,local.str=%d "
                     "-netdev dgram,id=net1,local.type=fd,local.str=%d "
                     "-device virtio-net-pci,id=nic0,netdev=net0,romfile=,"
                     "addr=4,mac=52:54:00:12:34:56 "
                     "-device virtio-net-pci,id=nic1,netdev=net1,romfile=,"
                     "addr=6,mac=52:54:00:12:34:57 "
                     "-device erdma,id=rdma0,eni=nic0,addr=5%s "
                     "-device erdma,id=rdma1,eni=nic1,addr=7%s",
                     fds[0][1], fds[1][1], record0, record1);
    for (i = 0; i < 2; i++) {
        close(fds[i][1]);
        f->d[i] = qerdma_new(qs, QERDMA_SLOT(i));
    }
    qerdma_meet(f->d);
    for (i = 0; i < 2; i++) {
        qerdma_start(f->d[i], NULL);
        qerdma_reg_simple(f->d[i], &f->mr[i], PDN, 8 * LEN, QERDMA_ACC_ALL);
    }
    f->p = (QErdmaPair) {
        .qp[0].sq_log2 = 8, .cq[0].log2 = 8, .cq[1].log2 = 8,
    };
    qerdma_pair_create(&f->p, f->d[0], f->d[1], PDN, false);
    qerdma_connect(&f->p.qp[0], &f->p.qp[1]);
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d[0], f->d[1]);
    close(f->link[0].fd);
    close(f->link[1].fd);
}

/* The next completion, within some minutes of the devices' time */
static void wait_cqe(Fixture *f, QErdmaCq *cq, QErdmaWc *wc)
{
    int i;

    for (i = 0; i < 60000; i++) {
        carry_all(f);
        if (qerdma_poll_cq(cq, wc)) {
            return;
        }
        qtest_clock_step(f->d[0]->qts, 500 * 1000);
    }
    g_assert_not_reached();
}

static void expect_send(Fixture *f, uint16_t index, uint8_t opcode)
{
    QErdmaWc wc;

    wait_cqe(f, &f->p.cq[0], &wc);
    g_assert_cmpint(wc.status, ==, ERDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, opcode);
    g_assert_cmphex(wc.index & 0xffff, ==, index);
}

static void expect_silence(Fixture *f)
{
    QErdmaWc wc;
    int i;

    for (i = 0; i < 200; i++) {
        carry_all(f);
        qtest_clock_step(f->d[0]->qts, 1000 * 1000);
    }
    g_assert_false(qerdma_poll_cq(&f->p.cq[0], &wc));
    g_assert_false(qerdma_poll_cq(&f->p.cq[1], &wc));
}

static void test_trouble(const void *opaque)
{
    Fixture f;
    QErdmaQp *qp = &f.p.qp[0];
    uint16_t index[4 + N_ATOMICS];
    QErdmaSend wr[4];
    unsigned i;
    QErdmaWc wc;

    setup(&f, opaque);
    for (i = 0; i < 4; i++) {
        static const uint8_t ops[] = {
            ERDMA_OP_WRITE, ERDMA_OP_SEND_WITH_IMM, ERDMA_OP_READ,
            ERDMA_OP_WRITE_WITH_IMM,
        };

        wr[i] = (QErdmaSend) {
            .opcode = ops[i], .n_sges = 1, .imm = i,
            .sges[0] = { f.mr[0].addr + i * LEN, LEN, f.mr[0].key },
            .raddr = f.mr[1].addr + i * LEN, .rkey = f.mr[1].key,
        };
        qerdma_fill(f.d[i == 2], f.mr[i == 2].mem + i * LEN, LEN, i);
    }
    qerdma_post_recv(qp + 1, f.mr[1].addr + LEN, LEN, f.mr[1].key);
    qerdma_post_recv(qp + 1, 0, 0, 0);
    for (i = 0; i < 4; i++) {
        index[i] = qerdma_queue_send(qp, &wr[i]);
    }
    for (i = 0; i < N_ATOMICS; i++) {
        QErdmaSend faa = {
            .opcode = ERDMA_OP_ATOMIC_FAA, .n_sges = 1, .swap_add = 1,
            .sges[0] = { f.mr[0].addr + 5 * LEN + i * 8, 8, f.mr[0].key },
            .raddr = f.mr[1].addr + 5 * LEN, .rkey = f.mr[1].key,
        };

        index[4 + i] = qerdma_queue_send(qp, &faa);
    }
    qerdma_sq_db(qp);

    for (i = 0; i < 4; i++) {
        expect_send(&f, index[i], wr[i].opcode);
        qerdma_check(f.d[i != 2], f.mr[i != 2].mem + i * LEN, LEN, i);
    }
    for (i = 0; i < N_ATOMICS; i++) {
        expect_send(&f, index[4 + i], ERDMA_OP_ATOMIC_FAA);
        g_assert_cmpuint(qtest_readq(f.d[0]->qts, f.mr[0].mem + 5 * LEN +
                                     i * 8), ==, i);
    }
    g_assert_cmpuint(qtest_readq(f.d[1]->qts, f.mr[1].mem + 5 * LEN), ==,
                     N_ATOMICS);
    for (i = 0; i < 2; i++) {
        wait_cqe(&f, &f.p.cq[1], &wc);
        g_assert_cmpint(wc.status, ==, ERDMA_WC_SUCCESS);
        g_assert_cmpint(wc.opcode, ==, i ? ERDMA_OP_RECV_IMM :
                        ERDMA_OP_RSP_SEND_IMM);
        g_assert_cmpuint(wc.byte_len, ==, LEN);
        g_assert_cmpuint(ldl_le_p(wc.imm_raw), ==, i ? 3 : 1);
    }
    expect_silence(&f);
    if (f.trouble->loss || f.trouble->lose_first) {
        g_assert_cmpuint(qerdma_stat(f.d[0], "retransmits"), >, 0);
    }
    if (f.trouble->damage) {
        g_assert_cmpuint(qerdma_stat(f.d[1], "rx-bad-checksum"), >, 0);
    }
    if (f.trouble->repeat) {
        g_assert_cmpuint(qerdma_stat(f.d[1], "drop-duplicate"), >, 0);
    }
    teardown(&f);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < ARRAY_SIZE(troubles); i++) {
        g_autofree char *path = g_strdup_printf("/erdma/loss/%s",
                                                troubles[i].name);

        qtest_add_data_func(path, &troubles[i], test_trouble);
    }
    return g_test_run();
}
