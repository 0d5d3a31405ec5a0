/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: what qom-get tells of its objects is
 * what the guest made of them.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "qobject/qlist.h"
#include "libqos/erdma.h"

#define PDN     3
#define LEN     20000
#define MANY    1030            /* more than one answer holds */

typedef struct Fixture {
    QErdma *d[2];
    QErdmaPair p;
    QErdmaMr mr[2];
} Fixture;

static void setup(Fixture *f)
{
    unsigned i;

    memset(f, 0, sizeof(*f));
    qerdma_boot_two(f->d, NULL, NULL);
    qerdma_meet(f->d);
    for (i = 0; i < 2; i++) {
        qerdma_start(f->d[i], NULL);
        qerdma_reg_simple(f->d[i], &f->mr[i], PDN, 2 * LEN, QERDMA_ACC_ALL);
    }
    qerdma_pair_create(&f->p, f->d[0], f->d[1], PDN, false);
}

static void teardown(Fixture *f)
{
    qerdma_quit(f->d[0], f->d[1]);
}

/* The @i-th struct of list @property; *@rsp has to be unrefed. */
static QDict *entry(QErdma *d, const char *property, unsigned i, QDict **rsp)
{
    QListEntry *e;

    *rsp = qerdma_qom_get(d, property);
    QLIST_FOREACH_ENTRY(qdict_get_qlist(*rsp, "return"), e) {
        if (!i--) {
            return qobject_to(QDict, qlist_entry_obj(e));
        }
    }
    return NULL;
}

static unsigned length(QErdma *d, const char *property)
{
    QDict *rsp = qerdma_qom_get(d, property);
    unsigned n = qlist_size(qdict_get_qlist(rsp, "return"));

    qobject_unref(rsp);
    return n;
}

static void inspect_from(QErdma *d, uint32_t number)
{
    g_autofree char *path = g_strdup_printf("/machine/peripheral/rdma%u",
                                            d->ip - QERDMA_IP(0));

    qtest_qmp_assert_success(d->qts, "{ 'execute': 'qom-set', 'arguments': "
                             "{ 'path': %s, 'property': 'inspect-from', "
                             "'value': %u } }", path, number);
}

static void expect_str(QDict *d, const char *name, const char *val)
{
    g_assert_cmpstr(qdict_get_try_str(d, name), ==, val);
}

static void expect_int(QDict *d, const char *name, int64_t val)
{
    g_assert_true(qdict_haskey(d, name));
    g_assert_cmpint(qdict_get_int(d, name), ==, val);
}

static void test_device(void)
{
    QErdma *d = qerdma_boot_one("max-qp=1023,cc=hpcc-rtt,mtu=4000");
    QErdmaCmd cmd;
    QDict *rsp, *dev;

    rsp = qerdma_qom_get(d, "device-state");
    dev = qdict_get_qdict(rsp, "return");
    g_assert_false(qdict_get_bool(dev, "ready"));
    expect_int(dev, "max-qps", 1023);
    expect_int(dev, "mtu", 4000);
    expect_str(dev, "algorithm", "hpcc-rtt");
    g_assert_false(qdict_haskey(dev, "refused-command"));
    g_assert_false(qdict_haskey(dev, "guest-error"));
    qobject_unref(rsp);
    g_assert_cmpuint(length(d, "eqs"), ==, 0);

    qerdma_start(d, NULL);
    qerdma_cmd_init(&cmd, ERDMA_SUBMOD_RDMA, 99);
    g_assert_cmpint(qerdma_cmd_exec(d, &cmd, NULL), !=, 0);
    qerdma_write64(d, A_ERDMA_AEQ_DB, 77);      /* beyond its PI */
    qerdma_settle(d);
    rsp = qerdma_qom_get(d, "device-state");
    dev = qdict_get_qdict(rsp, "return");
    g_assert_true(qdict_get_bool(dev, "ready"));
    g_assert_true(g_str_has_prefix(qdict_get_str(dev, "refused-command"),
                                   "0/99 status "));
    g_assert_cmpint(qdict_get_int(dev, "guest-errors"), >, 0);
    g_assert_nonnull(strstr(qdict_get_str(dev, "guest-error"), "doorbell"));
    g_assert_cmpint(qdict_get_int(dev, "command-pi"), ==,
                    qdict_get_int(dev, "command-ci"));
    g_assert_cmpint(qdict_get_int(dev, "command-pi"), ==, d->cmd_pi);
    qobject_unref(rsp);
    qerdma_quit(d, NULL);
}

static void test_eqs(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QDict *rsp, *eq;
    unsigned n;

    qerdma_start(d, NULL);
    n = length(d, "eqs");
    g_assert_cmpuint(n, ==, 2 + 2);
    eq = entry(d, "eqs", 0, &rsp);
    expect_str(eq, "kind", "command");
    expect_int(eq, "pi", d->cmd_eq.ci);
    expect_int(eq, "ci", d->cmd_eq.ci);
    qobject_unref(rsp);
    eq = entry(d, "eqs", 1, &rsp);
    expect_str(eq, "kind", "completion");
    expect_int(eq, "eqn", 1);
    expect_int(eq, "vector", 1);
    expect_int(eq, "depth", 4096);
    expect_int(eq, "pending", 0);
    g_assert_true(qdict_get_bool(eq, "armed"));
    qobject_unref(rsp);
    eq = entry(d, "eqs", n - 1, &rsp);
    expect_str(eq, "kind", "async");
    expect_int(eq, "depth", 4096);
    qobject_unref(rsp);
    qerdma_quit(d, NULL);
}

static void expect_created(Fixture *f, unsigned i)
{
    QErdmaQp *qp = &f->p.qp[i];
    QDict *rsp;
    QDict *info = entry(f->d[i], "qps", 0, &rsp);

    expect_int(info, "qpn", qp->qpn);
    expect_int(info, "pdn", PDN);
    expect_str(info, "state", "created");
    g_assert_true(qdict_get_bool(info, "kernel"));
    expect_int(info, "sq-cqn", f->p.cq[i].cqn);
    expect_int(info, "sq-depth", 1 << qp->sq_log2);
    expect_int(info, "rq-depth", 1 << qp->rq_log2);
    expect_str(info, "last-error", "success");
    g_assert_false(qdict_haskey(info, "connection"));
    qobject_unref(rsp);
}

static void expect_connected(Fixture *f, unsigned i)
{
    QDict *rsp;
    QDict *info = entry(f->d[i], "qps", 0, &rsp);
    QDict *conn = qdict_get_qdict(info, "connection");

    expect_str(info, "state", "rts");
    expect_str(conn, "local-address", i ? "10.0.0.2" : "10.0.0.1");
    expect_str(conn, "peer-address", i ? "10.0.0.1" : "10.0.0.2");
    expect_int(conn, "local-cookie", f->p.qp[i].cookie);
    expect_int(conn, "peer-cookie", f->p.qp[!i].cookie);
    expect_str(conn, "algorithm", "cubic");
    expect_int(conn, "cwnd-bytes", 10 * 1500);
    g_assert_false(qdict_haskey(conn, "ssthresh-bytes"));
    g_assert_false(qdict_haskey(conn, "utilisation"));
    expect_int(conn, "inflight-bytes", 0);
    expect_int(conn, "delivered-bytes", 0);
    qobject_unref(rsp);
}

static void write_to_peer(Fixture *f, uint32_t key, uint8_t status)
{
    QErdmaSend wr = {
        .opcode = ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { f->mr[0].addr, LEN, f->mr[0].key },
        .raddr = f->mr[1].addr, .rkey = key,
    };
    uint16_t index = qerdma_post_send(&f->p.qp[0], &wr);

    qerdma_expect_send(&f->p.qp[0], index, ERDMA_OP_WRITE, status);
}

/* After one write of LEN bytes */
static void expect_moved(Fixture *f)
{
    QDict *rsp;
    QDict *info = entry(f->d[0], "qps", 0, &rsp);
    QDict *conn = qdict_get_qdict(info, "connection");

    expect_int(info, "sq-pi", f->p.qp[0].sq_pi);
    expect_int(info, "sq-next", f->p.qp[0].sq_pi);
    expect_int(info, "sq-ci", f->p.qp[0].sq_pi);
    expect_int(info, "sends", 0);
    expect_int(conn, "delivered-bytes", LEN);
    expect_int(conn, "received-bytes", 0);
    expect_int(conn, "tx-msn", 1);
    expect_int(conn, "una-msn", 1);
    expect_int(conn, "inflight-bytes", 0);
    g_assert_cmpint(qdict_get_int(conn, "tx-packets"), >, LEN / 1500);
    /* slow start: what was acked while the window was in use */
    g_assert_cmpint(qdict_get_int(conn, "cwnd-bytes"), >, 10 * 1500);
    qobject_unref(rsp);

    info = entry(f->d[1], "qps", 0, &rsp);
    conn = qdict_get_qdict(info, "connection");
    expect_int(conn, "received-bytes", LEN);
    expect_int(conn, "rx-msn", 1);
    qobject_unref(rsp);
}

static void test_qps(void)
{
    Fixture f;
    QDict *rsp, *info;

    setup(&f);
    expect_created(&f, 0);
    expect_created(&f, 1);
    qerdma_connect(&f.p.qp[0], &f.p.qp[1]);
    expect_connected(&f, 0);
    expect_connected(&f, 1);

    qerdma_post_recv(&f.p.qp[1], f.mr[1].addr, LEN, f.mr[1].key);
    info = entry(f.d[1], "qps", 0, &rsp);
    expect_int(info, "rq-pi", 1);
    expect_int(info, "rq-ci", 0);
    qobject_unref(rsp);

    write_to_peer(&f, f.mr[1].key, ERDMA_WC_SUCCESS);
    expect_moved(&f);

    write_to_peer(&f, f.mr[1].key ^ 1, ERDMA_WC_RECV_STAG_INVALID_ERR);
    info = entry(f.d[0], "qps", 0, &rsp);
    expect_str(info, "state", "flushing");
    expect_str(info, "last-error", "recv-key-invalid");
    qobject_unref(rsp);
    info = entry(f.d[1], "qps", 0, &rsp);
    expect_str(info, "state", "flushing");
    expect_str(info, "last-error", "recv-key-invalid");
    qobject_unref(rsp);

    g_assert_cmpint(qerdma_destroy_qp(&f.p.qp[0]), ==, 0);
    g_assert_cmpuint(length(f.d[0], "qps"), ==, 0);
    g_assert_cmpuint(length(f.d[1], "qps"), ==, 1);
    teardown(&f);
}

static void test_cqs(void)
{
    Fixture f;
    QErdmaCq *cq = &f.p.cq[0];
    QDict *rsp, *info;

    setup(&f);
    qerdma_connect(&f.p.qp[0], &f.p.qp[1]);
    info = entry(f.d[0], "cqs", 0, &rsp);
    expect_int(info, "cqn", cq->cqn);
    expect_int(info, "eqn", cq->eqn);
    expect_int(info, "depth", 1 << cq->log2);
    expect_int(info, "pi", 0);
    expect_int(info, "announced", 0);
    expect_str(info, "armed", "none");
    g_assert_false(qdict_haskey(info, "ci"));
    qobject_unref(rsp);

    qerdma_arm_cq(cq, true);
    qerdma_settle(f.d[0]);
    info = entry(f.d[0], "cqs", 0, &rsp);
    expect_str(info, "armed", "solicited");
    expect_int(info, "ci", 0);
    qobject_unref(rsp);

    qerdma_arm_cq(cq, false);
    write_to_peer(&f, f.mr[1].key, ERDMA_WC_SUCCESS);
    info = entry(f.d[0], "cqs", 0, &rsp);
    expect_str(info, "armed", "none");
    expect_int(info, "pi", 1);
    expect_int(info, "announced", 1);
    expect_int(info, "events", 1);
    g_assert_false(qdict_get_bool(info, "broken"));
    qobject_unref(rsp);
    info = entry(f.d[0], "eqs", cq->eqn, &rsp);
    expect_int(info, "eqn", cq->eqn);
    expect_int(info, "pi", 1);
    expect_int(info, "pending", 1);
    expect_int(info, "interrupts", 1);
    g_assert_false(qdict_get_bool(info, "armed"));
    qobject_unref(rsp);

    /* Nobody asked to be told of the next one. */
    write_to_peer(&f, f.mr[1].key, ERDMA_WC_SUCCESS);
    info = entry(f.d[0], "cqs", 0, &rsp);
    expect_int(info, "pi", 2);
    expect_int(info, "announced", 1);
    qobject_unref(rsp);
    teardown(&f);
}

static void test_mrs(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaMr mr, frmr;
    QErdmaRegMr reg = {
        .type = ERDMA_MR_TYPE_FRMR, .access = ERDMA_MR_ACC_LW,
        .level = 1, .n_pages = 4, .len = 4 * 4096,
    };
    uint64_t pages[4];
    QDict *rsp, *info;
    unsigned i;

    qerdma_start(d, NULL);
    for (i = 0; i < 4; i++) {
        pages[i] = qerdma_alloc(d, 4096);
    }
    reg.pages = pages;
    qerdma_reg_simple(d, &mr, PDN, 10000, ERDMA_MR_ACC_LR | ERDMA_MR_ACC_RW);
    frmr.pdn = PDN;
    g_assert_cmpint(qerdma_reg_mr(d, &frmr, &reg), ==, 0);

    info = entry(d, "mrs", 0, &rsp);
    expect_int(info, "index", mr.index);
    expect_int(info, "key", mr.key);
    expect_str(info, "type", "normal");
    g_assert_true(qdict_get_bool(info, "valid"));
    expect_int(info, "pdn", PDN);
    expect_str(info, "access", "l--R-");
    expect_int(info, "start", mr.addr);
    expect_int(info, "length", 10000);
    expect_int(info, "page-bytes", 4096);
    qobject_unref(rsp);
    info = entry(d, "mrs", 1, &rsp);
    expect_str(info, "type", "fast");
    g_assert_false(qdict_get_bool(info, "valid"));
    qobject_unref(rsp);

    g_assert_cmpint(qerdma_dereg_mr(&mr), ==, 0);
    g_assert_cmpuint(length(d, "mrs"), ==, 1);
    qerdma_reset(d);
    g_assert_cmpuint(length(d, "mrs"), ==, 0);
    qerdma_quit(d, NULL);
}

/* An answer has 1024 entries at most; inspect-from gets the others. */
static void test_bound(void)
{
    QErdma *d = qerdma_boot_one(NULL);
    QErdmaMr mr[MANY];
    QDict *rsp;
    unsigned i;

    qerdma_start(d, NULL);
    for (i = 0; i < MANY; i++) {
        qerdma_reg_simple(d, &mr[i], PDN, 4096, ERDMA_MR_ACC_LR);
    }
    g_assert_cmpuint(length(d, "mrs"), ==, 1024);
    inspect_from(d, mr[1024].index);
    g_assert_cmpuint(length(d, "mrs"), ==, MANY - 1024);
    expect_int(entry(d, "mrs", 0, &rsp), "key", mr[1024].key);
    qobject_unref(rsp);
    inspect_from(d, mr[MANY - 1].index + 1);
    g_assert_cmpuint(length(d, "mrs"), ==, 0);
    inspect_from(d, UINT32_MAX);
    g_assert_cmpuint(length(d, "eqs"), ==, 0);
    qerdma_quit(d, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/erdma/inspect/device", test_device);
    qtest_add_func("/erdma/inspect/eqs", test_eqs);
    qtest_add_func("/erdma/inspect/qps", test_qps);
    qtest_add_func("/erdma/inspect/cqs", test_cqs);
    qtest_add_func("/erdma/inspect/mrs", test_mrs);
    qtest_add_func("/erdma/inspect/bound", test_bound);
    return g_test_run();
}
