/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: what it puts on the network of the
 * NIC that it shares, what it takes, and what it leaves alone.
 *
 * The test holds one end of the hub and sees and sends raw frames.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/erdma.h"
#include "libqos/erdma-nic.h"

#define PDN         1
#define UDP_PORT    64791
#define MAGIC       0x6552
#define ETH_P_IP    0x0800
#define ETH_P_ARP   0x0806
#define OTHER_IP    0x0a0000c8u

static const uint8_t mac0[6] = QERDMA_MAC(0);
static const uint8_t mac1[6] = QERDMA_MAC(1);
static const uint8_t mac_other[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

typedef struct Fixture {
    QErdma *d[2];
    int raw;
    QErdmaNic *nic;             /* of device 0 */
    QErdmaPair p;
    QErdmaMr mr[2];
} Fixture;

static void setup(Fixture *f, const char *options)
{
    unsigned i;

    memset(f, 0, sizeof(*f));
    qerdma_boot_two(f->d, options, &f->raw);
    for (i = 0; i < 2; i++) {
        qerdma_start(f->d[i], NULL);
        qerdma_reg_simple(f->d[i], &f->mr[i], PDN, 256 * 1024,
                          QERDMA_ACC_ALL);
    }
    /* A hub on which no NIC has room for a packet delivers to nobody. */
    f->nic = qerdma_nic_new(f->d[0]->qs, QERDMA_NIC_SLOT(0));
}

static void teardown(Fixture *f)
{
    qerdma_nic_free(f->nic);
    qerdma_quit(f->d[0], f->d[1]);
    close(f->raw);
}

/* The next frame on the hub, 0 if there is none */
static size_t raw_recv(Fixture *f, uint8_t frame[QERDMA_FRAME_MAX])
{
    ssize_t len = recv(f->raw, frame, QERDMA_FRAME_MAX, MSG_DONTWAIT);

    g_assert_true(len > 0 || errno == EAGAIN);
    return MAX(len, 0);
}

static void raw_drain(Fixture *f)
{
    uint8_t frame[QERDMA_FRAME_MAX];

    qerdma_settle(f->d[0]);
    while (raw_recv(f, frame)) {
        /* not looked at */
    }
}

static void raw_send(Fixture *f, const uint8_t *frame, size_t len)
{
    g_assert_cmpint(send(f->raw, frame, len, 0), ==, len);
    /* until the device read it: it is polled for in real time */
    qerdma_settle(f->d[0]);
}

static bool is_type(const uint8_t *frame, size_t len, uint16_t type)
{
    return len >= QERDMA_UDP_DATA && lduw_be_p(frame + 12) == type;
}

/* The next frame of @type within some virtual time; fails without one. */
static size_t raw_wait(Fixture *f, uint8_t frame[QERDMA_FRAME_MAX],
                       uint16_t type)
{
    unsigned i;

    for (i = 0; i < 3000; i++) {
        size_t len = raw_recv(f, frame);

        if (is_type(frame, len, type)) {
            return len;
        }
        if (!len) {
            qtest_clock_step(f->d[0]->qts, 1000 * 1000);
        }
    }
    g_assert_not_reached();
}

/* Two QPs that know each other; the NICs' drivers come anew. */
static void connect_pair(Fixture *f)
{
    qerdma_nic_free(f->nic);
    qerdma_meet(f->d);
    f->nic = qerdma_nic_new(f->d[0]->qs, QERDMA_NIC_SLOT(0));
    qerdma_pair_init(&f->p, f->d[0], f->d[1], PDN, false);
}

/* Connects QP 0 of device 0 to an address where nobody is. */
static void connect_to_other(Fixture *f)
{
    QErdma other_dev = { .ip = OTHER_IP };
    QErdmaQp other = { .dev = &other_dev, .cookie = 0x12300001 };
    QErdmaCmd cmd;

    memset(&f->p, 0, sizeof(f->p));
    qerdma_pair_create(&f->p, f->d[0], f->d[1], PDN, false);
    qerdma_rts_cmd(&cmd, &f->p.qp[0], &other);
    g_assert_cmpint(qerdma_cmd_exec(f->d[0], &cmd, NULL), ==, 0);
}

static uint16_t post_write(Fixture *f, uint32_t len)
{
    QErdmaSend wr = {
        .opcode = ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { f->mr[0].addr, len, f->mr[0].key },
        .raddr = f->mr[1].addr, .rkey = f->mr[1].key,
    };

    return qerdma_post_send(&f->p.qp[0], &wr);
}

/* ---- other people's traffic ---- */

static void expect_nic(Fixture *f, const uint8_t *frame, size_t len)
{
    uint8_t have[QERDMA_FRAME_MAX];
    size_t n = qerdma_nic_recv(f->nic, have);

    g_assert_cmpmem(have, n, frame, len);
}

static void expect_nic_silent(Fixture *f)
{
    uint8_t have[QERDMA_FRAME_MAX];

    g_assert_cmpuint(qerdma_nic_recv(f->nic, have), ==, 0);
}

static QErdmaUdp udp_to_nic(const void *data, size_t len)
{
    return (QErdmaUdp) {
        .src_mac = mac_other, .dst_mac = mac0, .src_ip = OTHER_IP,
        .dst_ip = QERDMA_IP(0), .src_port = UDP_PORT, .dst_port = UDP_PORT,
        .data = data, .len = len,
    };
}

/* Everything that is not ours reaches the guest, byte for byte. */
static void test_pass_in(void)
{
    static const uint8_t ours[64] = { 0x65, 0x52, 0x11 };
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    QErdmaUdp u;
    size_t len;

    setup(&f, NULL);

    /* another port */
    u = udp_to_nic(ours, sizeof(ours));
    u.dst_port = 4791;
    len = qerdma_udp_frame(frame, &u);
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    /* our port, but nothing of ours */
    u = udp_to_nic("a letter to somebody else", 25);
    len = qerdma_udp_frame(frame, &u);
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    u = udp_to_nic("", 0);
    len = qerdma_udp_frame(frame, &u);
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    /* for everybody */
    u = udp_to_nic(ours, sizeof(ours));
    u.dst_mac = broadcast;
    len = qerdma_udp_frame(frame, &u);
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    /* a fragment, whose first bytes are not a UDP header */
    u = udp_to_nic(ours, sizeof(ours));
    len = qerdma_udp_frame(frame, &u);
    stw_be_p(frame + 20, 185);
    stw_be_p(frame + 24, lduw_be_p(frame + 24) - 185);
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    /* TCP, IPv6, a runt */
    len = qerdma_udp_frame(frame, &u);
    frame[23] = 6;
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    len = qerdma_udp_frame(frame, &u);
    stw_be_p(frame + 12, 0x86dd);
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    /* ARP, which the device listens to */
    len = qerdma_arp_frame(frame, 1, mac_other, OTHER_IP, broadcast,
                           QERDMA_IP(0));
    raw_send(&f, frame, len);
    expect_nic(&f, frame, len);
    expect_nic_silent(&f);
    /* the other NIC is as good a neighbour: nobody dropped a thing */
    g_assert_cmphex(qerdma_read32(f.d[0], A_ERDMA_RX_DROP), ==, 0);
    teardown(&f);
}

static void test_pass_out(void)
{
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    uint8_t have[QERDMA_FRAME_MAX];
    size_t len, n;
    unsigned i;

    setup(&f, NULL);
    for (i = 0; i < 3; i++) {
        QErdmaUdp u = {
            .src_mac = mac0, .dst_mac = mac_other, .src_ip = QERDMA_IP(0),
            .dst_ip = OTHER_IP, .src_port = 1, .dst_port = i ? UDP_PORT : 53,
            .data = "\x65\x52 even if it looks like ours", .len = 28,
        };

        len = qerdma_udp_frame(frame, &u);
        qerdma_nic_send(f.nic, frame, len);
        qerdma_settle(f.d[0]);
        n = raw_recv(&f, have);
        g_assert_cmpmem(have, n, frame, len);
    }
    g_assert_cmpuint(raw_recv(&f, have), ==, 0);
    teardown(&f);
}

/* ---- ours ---- */

/* Nonsense with our mark is taken, counted and has no effect. */
static void test_malformed(void)
{
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    uint8_t data[600];
    QErdmaUdp u;
    unsigned i, n = 0;
    size_t len;

    setup(&f, NULL);
    connect_pair(&f);
    raw_drain(&f);
    for (i = 0; i < 300; i++) {
        qerdma_pattern(data, sizeof(data), i);
        stw_be_p(data, MAGIC);
        if (i % 3) {
            /* a plausible start */
            data[2] = 0x10 + i % 7;
            stl_be_p(data + 4, f.p.qp[0].cookie);
            stl_be_p(data + 8, f.p.qp[1].cookie);
        }
        u = udp_to_nic(data, i < 100 ? 20 + i : 20 + i * 2 % 580);
        if (i % 2) {
            u.src_ip = QERDMA_IP(1);
        }
        len = qerdma_udp_frame(frame, &u);
        send(f.raw, frame, len, 0);
        if (i % 10 == 9) {
            qerdma_settle(f.d[0]);
        }
        n++;
    }
    raw_drain(&f);
    expect_nic_silent(&f);
    g_assert_cmpuint(qerdma_read32(f.d[0], A_ERDMA_RX_DROP), >=, n / 2);
    /* some of it is answered, and that again */
    g_assert_cmpuint(qerdma_stat(f.d[0], "rx-packets"), >=, n);
    qerdma_expect_send(&f.p.qp[0], post_write(&f, 5000), ERDMA_OP_WRITE, 0);
    teardown(&f);
}

static void test_bad_checksum(void)
{
    static const uint8_t ours[64] = { 0x65, 0x52, 0x11 };
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    QErdmaUdp u = udp_to_nic(ours, sizeof(ours));
    size_t len;

    setup(&f, NULL);
    len = qerdma_udp_frame(frame, &u);
    frame[len - 1] ^= 1;
    raw_send(&f, frame, len);
    g_assert_cmpuint(qerdma_stat(f.d[0], "rx-bad-checksum"), ==, 1);
    g_assert_cmpuint(qerdma_stat(f.d[0], "rx-packets"), ==, 0);
    /* no checksum is a valid one */
    stw_be_p(frame + 40, 0);
    raw_send(&f, frame, len);
    g_assert_cmpuint(qerdma_stat(f.d[0], "rx-bad-checksum"), ==, 1);
    g_assert_cmpuint(qerdma_stat(f.d[0], "rx-packets"), ==, 1);
    expect_nic_silent(&f);
    teardown(&f);
}

static uint16_t fold(const uint8_t *p, size_t len, uint32_t sum)
{
    size_t i;

    for (i = 0; i < len; i++) {
        sum += i & 1 ? p[i] : p[i] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

/* What we send is a correct datagram from the NIC, within the MTU. */
static void expect_ours(const uint8_t *frame, size_t len, uint32_t mtu)
{
    const uint8_t *ip = frame + 14;
    uint16_t ip_len = lduw_be_p(ip + 2);

    g_assert_cmpuint(ip_len, ==, len - 14);
    g_assert_cmpuint(ip_len, <=, mtu);
    g_assert_cmphex(ip[0], ==, 0x45);
    g_assert_cmphex(fold(ip, 20, 0), ==, 0xffff);
    g_assert_cmphex(lduw_be_p(ip + 6), ==, 0x4000);     /* DF */
    g_assert_cmpint(ip[9], ==, 17);
    g_assert_cmpint(lduw_be_p(ip + 22), ==, UDP_PORT);
    g_assert_cmpint(lduw_be_p(ip + 24), ==, ip_len - 20);
    g_assert_cmphex(fold(ip + 12, ip_len - 12, 17 + ip_len - 20), ==, 0xffff);
    g_assert_cmphex(lduw_be_p(ip + 28), ==, MAGIC);
}

static void try_mtu(Fixture *f, uint32_t mtu)
{
    uint8_t frame[QERDMA_FRAME_MAX];
    uint32_t longest = 0;
    uint16_t index;
    size_t len;

    index = post_write(f, 60000);
    qerdma_expect_send(&f->p.qp[0], index, ERDMA_OP_WRITE, 0);
    while ((len = raw_recv(f, frame))) {
        if (is_type(frame, len, ETH_P_IP)) {
            bool is_from_0 = !memcmp(frame + 6, mac0, 6);

            expect_ours(frame, len, mtu);
            g_assert_cmpint(memcmp(frame, is_from_0 ? mac1 : mac0, 6), ==, 0);
            longest = MAX(longest, len - 14);
        }
    }
    /* it makes use of it */
    g_assert_cmpuint(longest, >, mtu - 64);
}

static uint8_t conf_mtu(QErdma *d, uint32_t mtu)
{
    QErdmaCmd cmd;

    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_CONF_MTU);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_CONF_MTU_MTU, mtu);
    return qerdma_cmd_exec(d, &cmd, NULL);
}

static void test_mtu(void)
{
    Fixture f;

    setup(&f, NULL);
    connect_pair(&f);
    raw_drain(&f);
    try_mtu(&f, 1500);
    g_assert_cmpint(conf_mtu(f.d[0], 576), ==, 0);
    try_mtu(&f, 576);
    g_assert_cmpint(conf_mtu(f.d[0], 1280), ==, 0);
    try_mtu(&f, 1280);
    teardown(&f);
}

/* ---- next hops ---- */

/* The guest's own packets show the way, for instance to a router. */
static void test_learn(void)
{
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    QErdmaUdp u = {
        .src_mac = mac0, .dst_mac = mac_other, .src_ip = QERDMA_IP(0),
        .dst_ip = OTHER_IP, .src_port = 1, .dst_port = 2,
    };

    setup(&f, NULL);
    qerdma_nic_send(f.nic, frame, qerdma_udp_frame(frame, &u));
    raw_drain(&f);
    connect_to_other(&f);
    post_write(&f, 100);
    expect_ours(frame, raw_wait(&f, frame, ETH_P_IP), 1500);
    g_assert_cmpint(memcmp(frame, mac_other, 6), ==, 0);
    g_assert_cmpint(memcmp(frame + 6, mac0, 6), ==, 0);
    g_assert_cmphex(ldl_be_p(frame + 26), ==, QERDMA_IP(0));
    g_assert_cmphex(ldl_be_p(frame + 30), ==, OTHER_IP);
    g_assert_cmpuint(qerdma_stat(f.d[0], "arp-asked"), ==, 0);

    /* the way may change */
    u.dst_mac = mac1;
    qerdma_nic_send(f.nic, frame, qerdma_udp_frame(frame, &u));
    raw_drain(&f);
    do {
        raw_wait(&f, frame, ETH_P_IP);
    } while (lduw_be_p(frame + 36) != UDP_PORT);
    g_assert_cmpint(memcmp(frame, mac1, 6), ==, 0);
    teardown(&f);
}

static void expect_arp(const uint8_t *frame, const uint8_t *mac, uint32_t ip,
                       uint32_t target_ip)
{
    g_assert_cmpint(memcmp(frame, broadcast, 6), ==, 0);
    g_assert_cmpint(memcmp(frame + 6, mac, 6), ==, 0);
    g_assert_cmpint(lduw_be_p(frame + 20), ==, 1);
    g_assert_cmpint(memcmp(frame + 22, mac, 6), ==, 0);
    g_assert_cmphex(ldl_be_p(frame + 28), ==, ip);
    g_assert_cmphex(ldl_be_p(frame + 38), ==, target_ip);
}

/* Nothing passed before: ask, not too often, and believe the answer. */
static void test_arp(void)
{
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    size_t len;

    setup(&f, NULL);
    connect_to_other(&f);
    post_write(&f, 100);
    len = raw_wait(&f, frame, ETH_P_ARP);
    g_assert_cmpuint(len, >=, 42);
    expect_arp(frame, mac0, QERDMA_IP(0), OTHER_IP);
    g_assert_cmpuint(raw_recv(&f, frame), ==, 0);
    g_assert_cmpuint(qerdma_stat(f.d[0], "tx-no-hop"), >, 0);

    /* again after a while, for nobody answered */
    raw_wait(&f, frame, ETH_P_ARP);
    len = qerdma_arp_frame(frame, 2, mac_other, OTHER_IP, mac0, QERDMA_IP(0));
    raw_send(&f, frame, len);
    expect_ours(frame, raw_wait(&f, frame, ETH_P_IP), 1500);
    g_assert_cmpint(memcmp(frame, mac_other, 6), ==, 0);
    teardown(&f);
}

/* Answers that nobody asked for fill no table. */
static void test_arp_unasked(void)
{
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];
    size_t len;

    setup(&f, NULL);
    len = qerdma_arp_frame(frame, 2, mac_other, OTHER_IP, mac0, QERDMA_IP(0));
    raw_send(&f, frame, len);
    connect_to_other(&f);
    post_write(&f, 100);
    raw_wait(&f, frame, ETH_P_ARP);
    g_assert_cmpuint(qerdma_stat(f.d[0], "arp-asked"), ==, 1);
    teardown(&f);
}

/* ---- the machine around it ---- */

static void set_link(Fixture *f, bool is_up)
{
    qtest_qmp_assert_success(f->d[0]->qts, "{ 'execute': 'set_link', "
                             "'arguments': { 'name': 'nic0', 'up': %i } }",
                             is_up);
}

/* A link that is down loses packets; the transport gets over it. */
static void test_link(void)
{
    Fixture f;
    uint64_t before;
    uint16_t index;

    setup(&f, NULL);
    connect_pair(&f);
    set_link(&f, false);
    before = qerdma_stat(f.d[0], "rx-packets");
    index = post_write(&f, 5000);
    qerdma_post_send(&f.p.qp[1], &(QErdmaSend) { .opcode = ERDMA_OP_WRITE });
    qerdma_expect_no_cqe(&f.p.cq[0]);
    qerdma_expect_no_cqe(&f.p.cq[1]);
    g_assert_cmpuint(qerdma_stat(f.d[0], "tx-no-wire"), >, 0);
    g_assert_cmpuint(qerdma_stat(f.d[0], "rx-packets"), ==, before);
    set_link(&f, true);
    qerdma_expect_send(&f.p.qp[0], index, ERDMA_OP_WRITE, 0);
    qerdma_expect_send(&f.p.qp[1], 0, ERDMA_OP_WRITE, 0);
    teardown(&f);
}

/* While the machine is stopped nothing changes in it. */
static void test_stopped(void)
{
    Fixture f;
    QErdmaPair self;
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE };
    QErdmaWc wc;
    uint16_t index;
    int i;

    setup(&f, NULL);
    connect_pair(&f);
    qerdma_pair_init(&self, f.d[0], f.d[0], PDN, false);
    qtest_qmp_assert_success(f.d[0]->qts, "{ 'execute': 'stop' }");
    qerdma_post_send(&self.qp[0], &wr);
    for (i = 0; i < 20; i++) {
        qerdma_read32(f.d[0], A_ERDMA_VERSION);
    }
    index = post_write(&f, 5000);
    g_usleep(20000);
    qerdma_read32(f.d[0], A_ERDMA_VERSION);
    g_assert_false(qerdma_poll_cq(&f.p.cq[0], &wc));
    g_assert_false(qerdma_poll_cq(&self.cq[0], &wc));
    qtest_qmp_assert_success(f.d[0]->qts, "{ 'execute': 'cont' }");
    qerdma_expect_send(&f.p.qp[0], index, ERDMA_OP_WRITE, 0);
    qerdma_expect_send(&self.qp[0], 0, ERDMA_OP_WRITE, 0);
    teardown(&f);
}

/* A capture on the NIC's netdev has our packets, both ways. */
static void test_capture(void)
{
    g_autofree char *dir = g_dir_make_tmp("erdma-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "port0.pcap", NULL);
    g_autofree char *data = NULL;
    unsigned n[2] = { 0, 0 };
    gsize size, pos;
    Fixture f;

    setup(&f, NULL);
    qtest_qmp_assert_success(f.d[0]->qts, "{ 'execute': 'object-add', "
                             "'arguments': { 'qom-type': 'filter-dump', "
                             "'id': 'dump0', 'netdev': 'port0', "
                             "'file': %s } }", file);
    connect_pair(&f);
    qerdma_expect_send(&f.p.qp[0], post_write(&f, 60000), ERDMA_OP_WRITE, 0);
    teardown(&f);

    g_assert_true(g_file_get_contents(file, &data, &size, NULL));
    for (pos = 24; pos + 16 <= size; ) {
        uint32_t len = ldl_le_p(data + pos + 8);
        uint8_t *frame = (uint8_t *)data + pos + 16;

        g_assert_cmpuint(len, <=, size - pos - 16);
        if (is_type(frame, len, ETH_P_IP) &&
            lduw_be_p(frame + 36) == UDP_PORT) {
            expect_ours(frame, len, 1500);
            n[!memcmp(frame + 6, mac0, 6)]++;
        }
        pos += 16 + len;
    }
    g_assert_cmpuint(n[0], >, 0);
    g_assert_cmpuint(n[1], >, 60000 / 1500);
    g_assert_cmpint(unlink(file), ==, 0);
    g_assert_cmpint(rmdir(dir), ==, 0);
}

/* Two devices with a wire of their own, which they answer ARP on */
static void test_netdev(void)
{
    Fixture f = { 0 };
    QOSState *qs;
    unsigned i;

    qs = qerdma_boot("-netdev hubport,id=port0,hubid=0 "
                     "-netdev hubport,id=port1,hubid=0 "
                     "-device erdma,id=rdma0,addr=5,netdev=port0,"
                     "mac=52:54:00:12:34:56 "
                     "-device erdma,id=rdma1,addr=7,netdev=port1,"
                     "mac=52:54:00:12:34:57");
    for (i = 0; i < 2; i++) {
        f.d[i] = qerdma_new(qs, QERDMA_SLOT(i));
        qerdma_start(f.d[i], NULL);
        g_assert_cmphex(qerdma_read32(f.d[i], A_ERDMA_NETDEV_MAC_L), ==,
                        0x00123456 + i);
        qerdma_reg_simple(f.d[i], &f.mr[i], PDN, 256 * 1024, QERDMA_ACC_ALL);
    }
    qerdma_pair_init(&f.p, f.d[0], f.d[1], PDN, false);
    qerdma_fill(f.d[0], f.mr[0].mem, 60000, 7);
    /* an end answers for its address once it has used it itself */
    for (i = 0; i < 2; i++) {
        QErdmaSend wr = {
            .opcode = ERDMA_OP_WRITE, .n_sges = 1,
            .sges[0] = { f.mr[i].addr, 60000, f.mr[i].key },
            .raddr = f.mr[!i].addr, .rkey = f.mr[!i].key,
        };

        qerdma_post_send(&f.p.qp[i], &wr);
    }
    qerdma_expect_send(&f.p.qp[0], 0, ERDMA_OP_WRITE, 0);
    qerdma_expect_send(&f.p.qp[1], 0, ERDMA_OP_WRITE, 0);
    g_assert_cmpuint(qerdma_stat(f.d[0], "arp-asked"), >, 0);
    g_assert_cmpuint(qerdma_stat(f.d[1], "arp-answered"), >, 0);
    qerdma_quit(f.d[0], f.d[1]);
}

/* One device, and us at the other end of its wire */
static void setup_wire(Fixture *f)
{
    QOSState *qs;
    int fds[2];

    memset(f, 0, sizeof(*f));
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), ==, 0);
    g_assert_cmpint(fcntl(fds[0], F_SETFD, FD_CLOEXEC), ==, 0);
    g_assert_cmpint(fcntl(fds[0], F_SETFL, O_NONBLOCK), ==, 0);
    qs = qerdma_boot("-netdev dgram,id=raw,local.type=fd,local.str=%d "
                     "-device erdma,id=rdma0,addr=5,netdev=raw,"
                     "mac=52:54:00:12:34:56", fds[1]);
    close(fds[1]);
    f->raw = fds[0];
    f->d[0] = f->d[1] = qerdma_new(qs, QERDMA_SLOT(0));
    qerdma_start(f->d[0], NULL);
    qerdma_reg_simple(f->d[0], &f->mr[0], PDN, 256 * 1024, QERDMA_ACC_ALL);
}

/* Who has migrated says so, and whom we talk to is believed. */
static void test_announce(void)
{
    Fixture f;
    uint8_t frame[QERDMA_FRAME_MAX];

    setup_wire(&f);
    connect_to_other(&f);
    post_write(&f, 100);
    raw_wait(&f, frame, ETH_P_ARP);
    expect_arp(frame, mac0, QERDMA_IP(0), OTHER_IP);
    raw_send(&f, frame, qerdma_arp_frame(frame, 2, mac_other, OTHER_IP, mac0,
                                         QERDMA_IP(0)));
    raw_wait(&f, frame, ETH_P_IP);
    g_assert_cmpint(memcmp(frame, mac_other, 6), ==, 0);

    raw_drain(&f);
    qtest_qmp_assert_success(f.d[0]->qts, "{ 'execute': 'announce-self', "
                             "'arguments': { 'initial': 50, 'max': 50, "
                             "'rounds': 1, 'step': 0 } }");
    raw_wait(&f, frame, ETH_P_ARP);
    expect_arp(frame, mac0, QERDMA_IP(0), QERDMA_IP(0));

    raw_send(&f, frame, qerdma_arp_frame(frame, 1, mac1, OTHER_IP, broadcast,
                                         OTHER_IP));
    raw_drain(&f);
    raw_wait(&f, frame, ETH_P_IP);
    g_assert_cmpint(memcmp(frame, mac1, 6), ==, 0);
    close(f.raw);
    qerdma_quit(f.d[0], NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/net/pass-in", test_pass_in);
    qtest_add_func("/erdma/net/pass-out", test_pass_out);
    qtest_add_func("/erdma/net/malformed", test_malformed);
    qtest_add_func("/erdma/net/bad-checksum", test_bad_checksum);
    qtest_add_func("/erdma/net/mtu", test_mtu);
    qtest_add_func("/erdma/net/learn", test_learn);
    qtest_add_func("/erdma/net/arp", test_arp);
    qtest_add_func("/erdma/net/arp-unasked", test_arp_unasked);
    qtest_add_func("/erdma/net/link", test_link);
    qtest_add_func("/erdma/net/stopped", test_stopped);
    qtest_add_func("/erdma/net/capture", test_capture);
    qtest_add_func("/erdma/net/netdev", test_netdev);
    qtest_add_func("/erdma/net/announce", test_announce);
    return g_test_run();
}
