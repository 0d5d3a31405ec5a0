/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: options, what they do, what is said
 * about wrong ones; hot-plug and unplug of the device and of its NIC.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "libqos/erdma.h"

#define ACPI_PCIHP_EJECT 0xae08

#define BOARD \
    "-netdev hubport,id=port0,hubid=0 -netdev hubport,id=port1,hubid=0 " \
    "-netdev hubport,id=port2,hubid=0 " \
    "-device virtio-net-pci,id=nic0,netdev=port0,addr=4,romfile=," \
    "mac=52:54:00:12:34:56 " \
    "-device virtio-rng-pci,id=rng0,addr=3 "

/* ---- wrong options ---- */

/* Does device_add fail, with all of @words in the message? */
static void expect_error(QTestState *qts, const char *options,
                         const char *const *words)
{
    g_autofree char *json = NULL;
    const char *desc;
    QDict *error;
    bool is_fine = true;

    json = g_strdup_printf("{ 'execute': 'device_add', 'arguments': "
                           "{ 'driver': 'erdma', 'id': 'bad'%s%s } }",
                           *options ? ", " : "", options);
    error = qtest_qmp_assert_failure_ref(qts, json, NULL);
    desc = qdict_get_str(error, "desc");
    for (; *words; words++) {
        is_fine &= strstr(desc, *words) != NULL;
    }
    if (!is_fine) {
        g_test_message("%s: '%s'", options, desc);
        g_test_fail();
    }
    qobject_unref(error);
}

static void test_errors(void)
{
    static const struct {
        const char *options;
        const char *words[4];
    } cases[] = {
        { "", { "'eni'", "'netdev'" } },
        { "'eni': 'nic0', 'netdev': 'port1'", { "'eni'", "'netdev'" } },
        { "'eni': 'ghost'", { "'eni'", "'ghost'" } },
        { "'eni': 'later'", { "'eni'", "'later'", "before" } },
        { "'eni': 'rng0'", { "'eni'", "'rng0'" } },
        { "'eni': 'bare'", { "'eni'", "'bare'" } },
        { "'eni': 'rdma0'", { "'eni'", "'rdma0'" } },
        { "'eni': 'nic0'", { "'eni'", "'nic0'", "'rdma0'" } },
        { "'netdev': 'nowhere'", { "nowhere" } },
        { "'netdev': 'port0'", { "port0" } },
        { "'netdev': 'port1'", { "'mac'" } },
        { "'netdev': 'port1', 'mac': '01:00:5e:00:00:01'",
          { "'mac'", "01:00:5e:00:00:01" } },
        { "'netdev': 'port1', 'mac': 'rubbish'", { "mac" } },
        { "'eni': 'nic1', 'mac': '52:54:00:00:00:01'", { "'mac'", "'eni'" } },
        { "'eni': 'nic1', 'mtu': 100", { "mtu", "100" } },
        { "'eni': 'nic1', 'mtu': 65536", { "mtu", "65536" } },
        { "'eni': 'nic1', 'vectors': 0", { "vectors" } },
        { "'eni': 'nic1', 'vectors': 33", { "vectors", "32" } },
        { "'eni': 'nic1', 'max-qp': 1000", { "max-qp", "1000", "1023" } },
        { "'eni': 'nic1', 'max-qp': 2000", { "max-qp", "1024" } },
        { "'eni': 'nic1', 'max-qp': 525311", { "max-qp" } },
        { "'eni': 'nic1', 'max-cqe': 100", { "max-cqe", "power of two" } },
        { "'eni': 'nic1', 'max-cqe': 2097152", { "max-cqe" } },
        { "'eni': 'nic1', 'max-recv-wr': 65536", { "max-recv-wr" } },
        { "'eni': 'nic1', 'max-mr-size': 5000", { "max-mr-size" } },
        { "'eni': 'nic1', 'udp-port': 0", { "udp-port" } },
        { "'eni': 'nic1', 'cc': 'vegas'", { "cc", "vegas", "cubic" } },
        { "'eni': 'nic1', 'firmware-version': '1.2.3'",
          { "firmware-version", "1.2.3" } },
        { "'eni': 'nic1', 'rto-min-us': 20000000, 'rto-max-us': 1000",
          { "rto-min-us", "rto-max-us" } },
        { "'eni': 'nic1', 'no-such-thing': 1", { "no-such-thing" } },
    };
    QOSState *qs;
    unsigned i;

    qs = qerdma_boot(BOARD "-device virtio-net-pci,id=bare,romfile=,addr=6 "
                     "-device virtio-net-pci,id=nic1,netdev=port2,romfile=,"
                     "addr=7 "
                     "-device erdma,id=rdma0,addr=5,eni=nic0");
    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        expect_error(qs->qts, cases[i].options, cases[i].words);
    }
    /* none of them left anything behind */
    qtest_qmp_device_add(qs->qts, "virtio-net-pci", "later",
                         "{ 'netdev': 'port1' }");
    qtest_qmp_device_add(qs->qts, "erdma", "rdma1", "{ 'eni': 'later' }");
    qtest_qmp_device_add(qs->qts, "erdma", "rdma2", "{ 'eni': 'nic1' }");
    qtest_shutdown(qs);
}

/* The user is told what each option is for. */
static void test_help(void)
{
    QOSState *qs = qerdma_boot(BOARD);
    QListEntry *entry;
    unsigned n = 0;
    QDict *rsp;

    rsp = qtest_qmp(qs->qts, "{ 'execute': 'device-list-properties', "
                    "'arguments': { 'typename': 'erdma' } }");
    QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "return"), entry) {
        QDict *prop = qobject_to(QDict, qlist_entry_obj(entry));
        const char *name = qdict_get_str(prop, "name");

        /* those that every PCI device has are QEMU's */
        if (g_str_equal(name, "eni") || g_str_has_prefix(name, "max-") ||
            g_str_equal(name, "vectors") || g_str_equal(name, "cc") ||
            g_str_equal(name, "mtu") || g_str_equal(name, "netdev")) {
            g_assert_cmpuint(strlen(qdict_get_str(prop, "description")), >,
                             10);
            n++;
        }
    }
    g_assert_cmpuint(n, ==, 11);
    qobject_unref(rsp);
    qtest_shutdown(qs);
}

/* ---- what they do ---- */

static void test_limits(void)
{
    QErdma *d = qerdma_boot_one("max-qp=1023,max-cqe=64,max-recv-wr=128,"
                                "max-mr-size=1M,vectors=4,cc=newreno,"
                                "firmware-version=0.7.9");
    QErdmaCq cq = { .cqn = 2047, .log2 = 6 };
    QErdmaCq bad_cq = { .cqn = 2048 };
    QErdmaQp qp = {
        .scq = &cq, .rcq = &cq, .qpn = 1023, .rq_log2 = 7,
    };
    QErdmaQp bad_qp = { .scq = &cq, .rcq = &cq, .qpn = 1024 };
    QErdmaMr mr = { .key = 2048 << 8 };
    static const uint64_t pages[257];
    QErdmaRegMr reg = { .level = 1, .n_pages = 257, .pages = pages };
    QErdmaCmd cmd;
    uint64_t resp[2];

    g_assert_cmpuint(d->n_vectors, ==, 4);
    qerdma_start(d, NULL);
    g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_CQE), ==, 6);
    g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_RECV_WR), ==, 7);
    g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_MR_SIZE), ==, 20);
    g_assert_cmpint(FIELD_EX64(d->cap1, ERDMA_DEV_CAP1, QBLOCK), ==, 1);
    g_assert_cmpint(FIELD_EX64(d->cap1, ERDMA_DEV_CAP1, DEFAULT_CC), ==,
                    ERDMA_CC_NEWRENO);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_COMMON, ERDMA_CMD_QUERY_FW_INFO);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, resp), ==, 0);
    g_assert_cmphex(resp[0] & UINT32_MAX, ==, 0x70009);

    g_assert_cmpint(qerdma_create_eq(d, 3, 8), ==, 0);
    g_assert_cmpint(qerdma_create_eq(d, 4, 8), !=, 0);
    g_assert_cmpint(qerdma_create_cq(d, &cq), ==, 0);
    g_assert_cmpint(qerdma_create_cq(d, &bad_cq), !=, 0);
    bad_cq = (QErdmaCq) { .cqn = 5, .log2 = 7 };
    g_assert_cmpint(qerdma_create_cq(d, &bad_cq), !=, 0);
    g_assert_cmpint(qerdma_create_qp(d, &qp), ==, 0);
    g_assert_cmpint(qerdma_create_qp(d, &bad_qp), !=, 0);
    bad_qp = (QErdmaQp) { .scq = &cq, .rcq = &cq, .qpn = 5, .rq_log2 = 8 };
    g_assert_cmpint(qerdma_create_qp(d, &bad_qp), !=, 0);

    reg.len = 256 * 4096;
    reg.n_pages = 256;
    g_assert_cmpint(qerdma_reg_mr(d, &mr, &reg), !=, 0);
    mr.key = 2047 << 8;
    g_assert_cmpint(qerdma_reg_mr(d, &mr, &reg), ==, 0);
    mr.key = 5 << 8;
    reg.len++;
    reg.n_pages++;
    g_assert_cmpint(qerdma_reg_mr(d, &mr, &reg), !=, 0);
    qerdma_quit(d, NULL);
}

/* A profile sets limits; what is given beside it goes first. */
static void test_profile(void)
{
    static const struct {
        const char *options;
        unsigned n_vectors, qblocks, max_mr_size_log2;
        bool has_mtt_va;
    } cases[] = {
        { "profile=small", 3, 1, 31, false },
        { "profile=large", 32, 128, 36, true },
        { "max-qp=2047,profile=small,vectors=5", 5, 2, 31, false },
        { "profile=small,max-mr-size=1M,mtt-va=on", 3, 1, 20, true },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        QErdma *d = qerdma_boot_one(cases[i].options);

        g_assert_cmpuint(d->n_vectors, ==, cases[i].n_vectors);
        qerdma_start(d, NULL);
        g_assert_cmpint(FIELD_EX64(d->cap1, ERDMA_DEV_CAP1, QBLOCK), ==,
                        cases[i].qblocks);
        g_assert_cmpint(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, MAX_MR_SIZE), ==,
                        cases[i].max_mr_size_log2);
        g_assert_cmpint(!(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, FLAGS) &
                          ERDMA_CAP_FLAG_MTT_VA), ==, !cases[i].has_mtt_va);
        qerdma_quit(d, NULL);
    }
}

static void test_switches(void)
{
    QErdma *d = qerdma_boot_one("atomics=off,mtt-va=off,ext-db=off,"
                                "version=0x1234");
    QErdmaPair p;
    QErdmaMr mr = { 0 };
    QErdmaCtx ctx;
    QErdmaSend wr = { .opcode = ERDMA_OP_ATOMIC_FAA, .n_sges = 1 };

    g_assert_cmphex(qerdma_read32(d, A_ERDMA_VERSION), ==, 0x1234);
    qerdma_start(d, NULL);
    g_assert_cmphex(FIELD_EX64(d->cap0, ERDMA_DEV_CAP0, FLAGS), ==, 0);
    g_assert_cmpint(qerdma_alloc_db(d, &ctx), !=, 0);
    qerdma_pair_init(&p, d, d, 1, false);
    qerdma_reg_simple(d, &mr, 1, 4096, QERDMA_ACC_ALL);
    wr.sges[0] = (QErdmaSge) { mr.addr, 8, mr.key };
    wr.raddr = mr.addr;
    wr.rkey = mr.key;
    qerdma_expect_send(&p.qp[0], qerdma_post_send(&p.qp[0], &wr), wr.opcode,
                       ERDMA_WC_SEND_WQE_FORMAT_ERR);
    qerdma_quit(d, NULL);
}

/* With "version=0" a driver takes the device for dead. */
static void test_version_0(void)
{
    QErdma *d = qerdma_boot_one("version=0");

    g_assert_cmphex(qerdma_read32(d, A_ERDMA_VERSION), ==, 0);
    qerdma_quit(d, NULL);
}

/* ---- plugging ---- */

/* Until it is gone for good: somebody may still hold on to it. */
static void unplug(QErdma *d, const char *id, unsigned slot)
{
    bool is_gone = false;

    qtest_qmp_device_del_send(d->qts, id);
    qtest_outl(d->qts, ACPI_PCIHP_EJECT, 1u << slot);
    while (!is_gone) {
        QDict *event = qtest_qmp_eventwait_ref(d->qts, "DEVICE_DELETED");

        /* a virtio device has another one inside */
        is_gone = !g_strcmp0(qdict_get_try_str(qdict_get_qdict(event, "data"),
                                               "device"), id);
        qobject_unref(event);
    }
}

/* In use when it goes; its NIC stays, and takes another one. */
static void test_unplug(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaPair p;
    QErdmaMr mr = { 0 };
    QErdma *again;
    unsigned i;

    qerdma_start(d, NULL);
    qerdma_pair_init(&p, d, d, 1, false);
    qerdma_reg_simple(d, &mr, 1, 65536, QERDMA_ACC_ALL);
    for (i = 0; i < 8; i++) {
        QErdmaSend wr = {
            .opcode = ERDMA_OP_WRITE, .n_sges = 1,
            .sges[0] = { mr.addr, 65536, mr.key },
            .raddr = mr.addr, .rkey = mr.key,
        };

        qerdma_post_send(&p.qp[0], &wr);
    }
    qerdma_post_send(&p.qp[0], &(QErdmaSend) { .opcode = ERDMA_OP_SEND });
    unplug(d, "rdma0", QERDMA_SLOT(0));

    qtest_qmp_device_add(d->qts, "erdma", "rdma0",
                         "{ 'eni': 'nic0', 'addr': '5' }");
    again = qerdma_new(d->qs, QERDMA_SLOT(0));
    qerdma_start(again, NULL);
    qerdma_quit(again, NULL);
    qerdma_free(d);
}

/* Is device_del refused, with @word in the message? */
static void expect_blocked(QTestState *qts, const char *id, const char *word)
{
    QDict *error = qtest_qmp_assert_failure_ref(qts,
        "{ 'execute': 'device_del', 'arguments': { 'id': %s } }", id);

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), word));
    qobject_unref(error);
}

/*
 * The user cannot take the NIC from under the HCA.  The guest can: then
 * packets have nowhere to go, and that is all.
 */
static void test_unplug_nic(void)
{
    QErdma *d[2];
    QErdmaPair p;

    qerdma_boot_two(d, NULL, NULL);
    qerdma_meet(d);
    qerdma_start(d[0], NULL);
    qerdma_start(d[1], NULL);
    qerdma_pair_init(&p, d[0], d[1], 1, false);
    expect_blocked(d[0]->qts, "nic0", "'rdma0'");
    qtest_outl(d[0]->qts, ACPI_PCIHP_EJECT, 1u << QERDMA_NIC_SLOT(0));
    qerdma_post_send(&p.qp[0], &(QErdmaSend) { .opcode = ERDMA_OP_WRITE });
    qerdma_post_send(&p.qp[1], &(QErdmaSend) { .opcode = ERDMA_OP_WRITE });
    qerdma_expect_no_cqe(&p.cq[0]);
    g_assert_cmpuint(qerdma_stat(d[0], "tx-no-wire"), >, 0);
    g_assert_cmpint(qerdma_query_device(d[0]), ==, 0);

    /* its netdev too */
    qtest_qmp_assert_success(d[0]->qts, "{ 'execute': 'netdev_del', "
                             "'arguments': { 'id': 'port0' } }");
    qerdma_post_send(&p.qp[0], &(QErdmaSend) { .opcode = ERDMA_OP_WRITE });
    qerdma_expect_no_cqe(&p.cq[0]);
    g_assert_cmpint(qerdma_query_device(d[0]), ==, 0);
    unplug(d[0], "rdma0", QERDMA_SLOT(0));
    qerdma_quit(d[0], d[1]);
}

/* Whoever takes the device out of service by its property gets just that. */
static void test_unrealized(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    qerdma_start(d, NULL);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'qom-set', 'arguments': { "
                             "'path': '/machine/peripheral/rdma0', "
                             "'property': 'realized', 'value': false } }");
    qtest_system_reset(d->qts);
    g_assert_cmpuint(qerdma_stat(d, "commands"), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "eqs"), ==, 0);
    qerdma_quit(d, NULL);
}

/* The HCA goes first, then the NIC; each may come again. */
static void test_replug_nic(void)
{
    QErdma *d[2];
    QErdmaPair p;
    unsigned i;

    qerdma_boot_two(d, NULL, NULL);
    for (i = 0; i < 3; i++) {
        unplug(d[0], "rdma0", QERDMA_SLOT(0));
        unplug(d[0], "nic0", QERDMA_NIC_SLOT(0));
        qtest_qmp_device_add(d[0]->qts, "virtio-net-pci", "nic0",
                             "{ 'netdev': 'port0', 'addr': '4', "
                             "'romfile': '', 'mac': '52:54:00:12:34:56' }");
        qtest_qmp_device_add(d[0]->qts, "erdma", "rdma0",
                             "{ 'eni': 'nic0', 'addr': '5' }");
        expect_blocked(d[0]->qts, "nic0", "'rdma0'");
    }
    qerdma_free(d[0]);
    d[0] = qerdma_new(d[1]->qs, QERDMA_SLOT(0));
    qerdma_meet(d);
    qerdma_start(d[0], NULL);
    qerdma_start(d[1], NULL);
    qerdma_pair_init(&p, d[0], d[1], 1, false);
    qerdma_expect_send(&p.qp[0], qerdma_post_send(&p.qp[0],
                       &(QErdmaSend) { .opcode = ERDMA_OP_WRITE }),
                       ERDMA_OP_WRITE, 0);
    qerdma_quit(d[0], d[1]);
}

/*
 * The guest ejects the NIC, and another with its address takes its place at
 * the netdev: the HCA sends as that one, but no longer keeps it.
 */
static void test_other_nic(void)
{
    QErdma *d[2];
    QErdmaPair p;
    QErdmaSend wr = { .opcode = ERDMA_OP_WRITE };
    uint16_t index;

    qerdma_boot_two(d, NULL, NULL);
    qerdma_meet(d);
    qerdma_start(d[0], NULL);
    qerdma_start(d[1], NULL);
    qerdma_pair_init(&p, d[0], d[1], 1, false);
    qtest_outl(d[0]->qts, ACPI_PCIHP_EJECT, 1u << QERDMA_NIC_SLOT(0));
    index = qerdma_post_send(&p.qp[0], &wr);
    qerdma_expect_no_cqe(&p.cq[0]);
    qtest_qmp_device_add(d[0]->qts, "virtio-net-pci", "nic0",
                         "{ 'netdev': 'port0', 'addr': '4', "
                         "'romfile': '', 'mac': '52:54:00:12:34:56' }");
    qerdma_meet(d);     /* and its driver comes up: nothing is held back */
    qerdma_expect_send(&p.qp[0], index, ERDMA_OP_WRITE, 0);
    unplug(d[0], "nic0", QERDMA_NIC_SLOT(0));
    unplug(d[0], "rdma0", QERDMA_SLOT(0));
    qerdma_quit(d[0], d[1]);
}

/* Plugged and unplugged in use, again and again: QEMU stays as it is. */
static void test_rounds(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdma *again;
    QErdmaPair p;
    QErdmaMr mr;
    unsigned i;

    for (i = 0; i < 50; i++) {
        again = qerdma_new(d->qs, QERDMA_SLOT(0));
        qerdma_start(again, NULL);
        qerdma_pair_init(&p, again, again, 1, i % 2);
        mr = (QErdmaMr) { 0 };
        qerdma_reg_simple(again, &mr, 1, 65536, QERDMA_ACC_ALL);
        qerdma_post_send(&p.qp[i % 2], &(QErdmaSend) {
            .opcode = ERDMA_OP_WRITE, .n_sges = 1,
            .sges[0] = { mr.addr, 65536, mr.key },
            .raddr = mr.addr, .rkey = mr.key,
        });
        unplug(d, "rdma0", QERDMA_SLOT(0));
        qtest_qmp_device_add(d->qts, "erdma", "rdma0",
                             "{ 'eni': 'nic0', 'addr': '5' }");
        qerdma_free(again);
    }
    qerdma_quit(d, NULL);
}

/* Reset in use, by its register and by the machine's reset, again and again */
static void test_reset_rounds(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdma *again;
    QErdmaPair p;
    QErdmaMr mr;
    unsigned i, k;

    for (i = 0; i < 50; i++) {
        again = qerdma_new(d->qs, QERDMA_SLOT(0));
        qerdma_start(again, NULL);
        qerdma_pair_init(&p, again, again, 1, i % 2);
        mr = (QErdmaMr) { 0 };
        qerdma_reg_simple(again, &mr, 1, 65536, QERDMA_ACC_ALL);
        for (k = 0; k < 8; k++) {
            qerdma_post_send(&p.qp[k % 2], &(QErdmaSend) {
                .opcode = k % 3 ? ERDMA_OP_WRITE : ERDMA_OP_READ,
                .n_sges = 1, .sges[0] = { mr.addr, 65536, mr.key },
                .raddr = mr.addr, .rkey = mr.key,
            });
        }
        qtest_clock_step(d->qts, 1000 * (i + 1));
        if (i % 3) {
            qerdma_reset(again);
        } else {
            qtest_system_reset(d->qts);
        }
        g_assert_cmpuint(qerdma_objects(d, "qps"), ==, 0);
        g_assert_cmpuint(qerdma_objects(d, "cqs"), ==, 0);
        g_assert_cmpuint(qerdma_objects(d, "mrs"), ==, 0);
        qerdma_free(again);
    }
    qerdma_quit(d, NULL);
}

/* What was made is gone after its destruction, and after a reset. */
static void test_objects(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaPair p;
    QErdmaMr mr = { 0 };
    unsigned i;

    qerdma_start(d, NULL);
    qerdma_pair_init(&p, d, d, 1, true);
    qerdma_reg_simple(d, &mr, 1, 4096, QERDMA_ACC_ALL);
    g_assert_cmpuint(qerdma_objects(d, "qps"), ==, 2);
    g_assert_cmpuint(qerdma_objects(d, "cqs"), ==, 2);
    g_assert_cmpuint(qerdma_objects(d, "mrs"), ==, 1);
    for (i = 0; i < 2; i++) {
        g_assert_cmpint(qerdma_destroy_qp(&p.qp[i]), ==, 0);
        g_assert_cmpint(qerdma_destroy_cq(&p.cq[i]), ==, 0);
        g_assert_cmpint(qerdma_free_db(d, &p.ctx[i]), ==, 0);
    }
    g_assert_cmpint(qerdma_dereg_mr(&mr), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "qps"), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "cqs"), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "mrs"), ==, 0);

    qerdma_pair_init(&p, d, d, 1, true);
    mr = (QErdmaMr) { 0 };
    qerdma_reg_simple(d, &mr, 1, 4096, QERDMA_ACC_ALL);
    qerdma_reset(d);
    g_assert_cmpuint(qerdma_objects(d, "qps"), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "cqs"), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "mrs"), ==, 0);
    g_assert_cmpuint(qerdma_objects(d, "eqs"), ==, 0);
    qerdma_quit(d, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/realize/errors", test_errors);
    qtest_add_func("/erdma/realize/help", test_help);
    qtest_add_func("/erdma/realize/limits", test_limits);
    qtest_add_func("/erdma/realize/profile", test_profile);
    qtest_add_func("/erdma/realize/switches", test_switches);
    qtest_add_func("/erdma/realize/version-0", test_version_0);
    qtest_add_func("/erdma/realize/unplug", test_unplug);
    qtest_add_func("/erdma/realize/unrealized", test_unrealized);
    qtest_add_func("/erdma/realize/unplug-nic", test_unplug_nic);
    qtest_add_func("/erdma/realize/replug-nic", test_replug_nic);
    qtest_add_func("/erdma/realize/other-nic", test_other_nic);
    qtest_add_func("/erdma/realize/reset-rounds", test_reset_rounds);
    qtest_add_func("/erdma/realize/rounds", test_rounds);
    qtest_add_func("/erdma/realize/objects", test_objects);
    return g_test_run();
}
