/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: erdma-fault objects, on the command
 * line and at run time; registers at fault; and that a seed brings the same
 * faults back, event by event.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "qobject/qdict.h"
#include "libqos/erdma.h"

#define PDN         2
#define LEN         3000
#define MS          1000000ll
#define PATH        "'path': '/objects/f0', "

static void add(QTestState *qts, const char *options)
{
    g_autofree char *json = g_strdup_printf(
        "{ 'execute': 'object-add', 'arguments': { 'qom-type': "
        "'erdma-fault', 'id': 'f0', 'device': 'rdma0', %s } }", options);

    qtest_qmp_assert_success(qts, json, NULL);
}

static void del(QTestState *qts)
{
    qtest_qmp_assert_success(qts, "{ 'execute': 'object-del', 'arguments': "
                             "{ 'id': 'f0' } }");
}

static uint64_t counter(QTestState *qts, const char *name)
{
    QDict *rsp = qtest_qmp(qts, "{ 'execute': 'qom-get', 'arguments': { "
                           PATH "'property': %s } }", name);
    uint64_t n = qdict_get_int(rsp, "return");

    qobject_unref(rsp);
    return n;
}

static bool attached(QTestState *qts)
{
    QDict *rsp = qtest_qmp(qts, "{ 'execute': 'qom-get', 'arguments': { "
                           PATH "'property': 'attached' } }");
    bool is = qdict_get_bool(rsp, "return");

    qobject_unref(rsp);
    return is;
}

/* What is wrong is refused in one sentence with all of @words. */
static void expect_refused(QTestState *qts, const char *json,
                           const char *const *words)
{
    QDict *error = qtest_qmp_assert_failure_ref(qts, json, NULL);
    const char *desc = qdict_get_str(error, "desc");

    for (; *words; words++) {
        if (!strstr(desc, *words)) {
            g_test_message("%s: '%s' lacks '%s'", json, desc, *words);
            g_test_fail();
        }
    }
    qobject_unref(error);
}

static void test_errors(void)
{
    static const struct {
        const char *options;
        const char *words[4];
    } cases[] = {
        { "'on': 'nothing'", { "'on'", "version, init, command" } },
        { "'action': 'explode'", { "'action'", "absent, delay, fail" } },
        { "'action': 'index'", { "'action'", "delay, fail", "on=command" } },
        { "'opcode': 'write'", { "'opcode'", "'write'", "create-qp" } },
        { "'on': 'cqe', 'action': 'drop', 'opcode': 'create-qp'",
          { "'opcode'", "'create-qp'", "send-with-inv" } },
        { "'status': '256'", { "'status'", "256", "0 to 255" } },
        { "'status': '-1'", { "'status'", "-1" } },
        { "'status': '0'", { "'status'", "1 to 255" } },
        { "'status': 'flush-err'", { "'status'", "limit" } },
        { "'on': 'dma', 'direction': 'up'", { "'direction'", "read" } },
        { "'queue': 'sq'", { "'queue'", "on=cqe" } },
        { "'every': 0", { "'every'", "at least 1" } },
        { "'probability': 2", { "'probability'", "0 to 1" } },
        { "'action': 'delay'", { "'delay-us'", "more than 0" } },
        { "'action': 'delay', 'delay-us': 18446744073709551615",
          { "'delay-us'", "hour" } },
        { "'on': 'timer', 'action': 'interrupt', 'vector': 32",
          { "'vector'", "0 to 31" } },
        { "'nonsense': 1", { "nonsense" } },
    };
    static const char *const no_device[] = { "device", NULL };
    static const char *const fixed[] = { "'device'", NULL };
    static const char *const spoilt[] = { "'action'", "on=cqe", NULL };
    QErdma *d = qerdma_boot_one(NULL);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *json = g_strdup_printf(
            "{ 'execute': 'object-add', 'arguments': { 'qom-type': "
            "'erdma-fault', 'id': 'f0', 'device': 'rdma0', %s } }",
            cases[i].options);

        expect_refused(d->qts, json, cases[i].words);
    }
    expect_refused(d->qts, "{ 'execute': 'object-add', 'arguments': "
                   "{ 'qom-type': 'erdma-fault', 'id': 'f0' } }", no_device);
    add(d->qts, "'on': 'cqe', 'action': 'drop'");
    expect_refused(d->qts, "{ 'execute': 'qom-set', 'arguments': { " PATH
                   "'property': 'device', 'value': 'x' } }", fixed);
    /* A change that does not fit is none. */
    expect_refused(d->qts, "{ 'execute': 'qom-set', 'arguments': { " PATH
                   "'property': 'action', 'value': 'delay' } }", spoilt);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'qom-set', 'arguments': "
                             "{ " PATH "'property': 'action', "
                             "'value': 'duplicate' } }");
    del(d->qts);
    qerdma_quit(d, NULL);
}

static void test_version(void)
{
    QErdma *d = qerdma_boot_one(NULL);

    add(d->qts, "'on': 'version', 'action': 'absent', 'count': 2");
    g_assert_cmpuint(qerdma_read32(d, A_ERDMA_VERSION), ==, 0);
    g_assert_cmpuint(qerdma_read32(d, A_ERDMA_VERSION), ==, 0);
    g_assert_cmpuint(qerdma_read32(d, A_ERDMA_VERSION), ==, 1);
    g_assert_cmpuint(counter(d->qts, "matched"), ==, 3);
    g_assert_cmpuint(counter(d->qts, "fired"), ==, 2);
    del(d->qts);
    qerdma_quit(d, NULL);
}

/* On the command line, before its device */
static void test_init(void)
{
    QErdma *d = qerdma_new(qerdma_boot(
        "-object erdma-fault,id=f0,device=rdma0,on=init,action=fail,count=1 "
        "-object erdma-fault,id=f1,device=rdma0,on=init,action=delay,"
        "delay-us=5000000,after=1,count=1 "
        "-netdev hubport,id=port0,hubid=0 -device virtio-net-pci,id=nic0,"
        "netdev=port0,addr=4,romfile=,mac=52:54:00:12:34:56 "
        "-device erdma,id=rdma0,eni=nic0,addr=5"), QERDMA_SLOT(0));

    g_assert_true(attached(d->qts));
    qerdma_setup_queues(d, NULL);
    g_assert_false(qerdma_init(d));
    qtest_clock_step(d->qts, 20000 * MS);
    g_assert_false(qerdma_read32(d, A_ERDMA_DEV_STATUS) &
                   R_ERDMA_DEV_STATUS_INIT_DONE_MASK);
    /* The next one takes its time. */
    g_assert_false(qerdma_init(d));
    qtest_clock_step(d->qts, 4999 * MS);
    g_assert_false(qerdma_read32(d, A_ERDMA_DEV_STATUS) &
                   R_ERDMA_DEV_STATUS_INIT_DONE_MASK);
    qtest_clock_step(d->qts, 2 * MS);
    g_assert_true(qerdma_read32(d, A_ERDMA_DEV_STATUS) &
                  R_ERDMA_DEV_STATUS_INIT_DONE_MASK);
    g_assert_true(qerdma_init(d));
    qerdma_quit(d, NULL);
}

static void test_command(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaCq cq = { .dev = d };
    QErdmaDone done;
    QErdmaCmd cmd;
    QDict *rsp;

    qerdma_start(d, NULL);
    g_assert_cmpuint(qerdma_create_cq(d, &cq), ==, 0);
    add(d->qts, "'opcode': 'destroy-cq', 'status': 'busy', 'count': 1");
    g_assert_cmpuint(qerdma_destroy_cq(&cq), ==, 4);
    g_assert_cmpuint(qerdma_objects(d, "cqs"), ==, 1);
    del(d->qts);

    add(d->qts, "'opcode': 'destroy-cq', 'action': 'delay', "
        "'delay-us': 2000000, 'count': 1");
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, ERDMA_CMD_DESTROY_CQ);
    qerdma_cmd_set32(&cmd, A_ERDMA_CMD_DESTROY_CQ_CQN, cq.cqn);
    qerdma_cmd_queue(d, &cmd);
    qerdma_cmd_ring_db(d);
    qerdma_settle(d);
    g_assert_cmpuint(qerdma_vector0(d), ==, 0);
    /* Whoever takes the machine's state finds nothing that is late. */
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'stop' }");
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'cont' }");
    qerdma_cmd_wait(d, &done);
    g_assert_cmpuint(done.status, ==, 0);
    g_assert_cmpuint(counter(d->qts, "fired"), ==, 1);
    /* On again, it counts anew. */
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'qom-set', 'arguments': "
                             "{ " PATH "'property': 'enabled', "
                             "'value': false } }");
    g_assert_cmpuint(qerdma_destroy_cq(&cq), !=, 0);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'qom-set', 'arguments': "
                             "{ " PATH "'property': 'enabled', "
                             "'value': true } }");
    g_assert_cmpuint(counter(d->qts, "fired"), ==, 0);
    del(d->qts);
    rsp = qtest_qmp(d->qts, "{ 'execute': 'qom-list', 'arguments': "
                    "{ 'path': '/objects' } }");
    g_assert_true(qdict_haskey(rsp, "return"));
    qobject_unref(rsp);
    qerdma_quit(d, NULL);
}

/* The device goes and comes: the rule waits for it. */
static void test_device(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QTestState *qts = d->qts;

    qtest_qmp_assert_success(qts, "{ 'execute': 'object-add', 'arguments': "
                             "{ 'qom-type': 'erdma-fault', 'id': 'f0', "
                             "'device': 'later' } }");
    g_assert_false(attached(qts));
    qtest_qmp_assert_success(qts, "{ 'execute': 'netdev_add', 'arguments': "
                             "{ 'type': 'hubport', 'id': 'own', "
                             "'hubid': 1 } }");
    qtest_qmp_assert_success(qts, "{ 'execute': 'device_add', 'arguments': "
                             "{ 'driver': 'erdma', 'id': 'later', "
                             "'netdev': 'own', 'mac': "
                             "'52:54:00:12:34:99' } }");
    g_assert_true(attached(qts));
    del(qts);
    qerdma_quit(d, NULL);
}

/* ---- the same again ---- */

#define N_WRITES    40

static const char *const faults[] = {
    "on=cqe,action=duplicate,probability=0.2",
    "on=ceqe,action=delay,vector=1,delay-us=3000,probability=0.3",
    "on=interrupt,action=drop,vector=1,probability=0.1",
    "on=wqe,action=aeqe,event=other,every=7",
    "on=timer,action=ceqe,period-us=4000,probability=0.5",
};

/* Lines that tell of the device's events, in order */
static char *hash_of(const char *path)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned i, n = 0;
    gsize len;

    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        const char *event = strstr(lines[i], "erdma_");

        if (event) {
            g_checksum_update(sum, (const guchar *)event, -1);
            g_checksum_update(sum, (const guchar *)"\n", 1);
            n += !!strstr(event, "erdma_fault");
        }
    }
    g_assert_cmpuint(n, >, 20);
    return g_strdup(g_checksum_get_string(sum));
}

/* Writes over a loopback connection of one device; returns the hash. */
static char *run_with(unsigned seed)
{
    g_autofree char *path = NULL;
    GString *args = g_string_new(NULL);
    QErdmaPair p = { 0 };
    QErdmaMr mr[2];
    unsigned i, j;
    char *hash;
    QErdma *d;
    int fd;

    fd = g_file_open_tmp("erdma-fault-XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    for (i = 0; i < ARRAY_SIZE(faults); i++) {
        g_string_append_printf(args, "-object erdma-fault,id=f%u,"
                               "device=rdma0,seed=%u,%s ", i, seed,
                               faults[i]);
    }
    d = qerdma_new(qerdma_boot(
        "%s -D %s -trace erdma_cmd -trace erdma_c[qe]* -trace erdma_eq* "
        "-trace erdma_aeqe -trace erdma_fault -trace erdma_qp* "
        "-trace erdma_sq* -trace erdma_rx_msg "
        "-netdev hubport,id=port0,hubid=0 -device virtio-net-pci,id=nic0,"
        "netdev=port0,addr=4,romfile=,mac=52:54:00:12:34:56 "
        "-device erdma,id=rdma0,eni=nic0,addr=5,seed=5", args->str, path),
        QERDMA_SLOT(0));
    g_string_free(args, true);
    qerdma_start(d, NULL);
    qerdma_pair_init(&p, d, d, PDN, false);
    qerdma_reg_simple(d, &mr[0], PDN, LEN, QERDMA_ACC_ALL);
    qerdma_reg_simple(d, &mr[1], PDN, LEN, QERDMA_ACC_ALL);
    for (i = 0; i < N_WRITES; i++) {
        QErdmaSend wr = {
            .opcode = ERDMA_OP_WRITE, .n_sges = 1,
            .sges = { { mr[0].addr, LEN, mr[0].key } },
            .raddr = mr[1].addr, .rkey = mr[1].key,
        };

        qerdma_arm_cq(&p.cq[0], false);
        qerdma_post_send(&p.qp[0], &wr);
        qerdma_settle(d);
        for (j = 0; j < 3; j++) {
            qtest_clock_step(d->qts, MS);
            qerdma_settle(d);
        }
    }
    qerdma_quit(d, NULL);
    hash = hash_of(path);
    unlink(path);
    return hash;
}

static void test_again(void)
{
    g_autofree char *first = run_with(1);
    g_autofree char *second = run_with(1);
    g_autofree char *other = run_with(2);

    g_assert_cmpstr(first, ==, second);
    g_assert_cmpstr(first, !=, other);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/fault/errors", test_errors);
    qtest_add_func("/erdma/fault/version", test_version);
    qtest_add_func("/erdma/fault/init", test_init);
    qtest_add_func("/erdma/fault/command", test_command);
    qtest_add_func("/erdma/fault/device", test_device);
    qtest_add_func("/erdma/fault/again", test_again);
    return g_test_run();
}
