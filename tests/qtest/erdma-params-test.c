/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QTest testcase for the eRDMA device: each parameter of transport and
 * congestion control reaches what it is for.
 *
 * The same transfer over the same emulated link, once without and once with
 * an option: the number that the option is about must differ as it should.
 */

#include "qemu/osdep.h"
#include "libqtest.h"
#include "qapi/error.h"
#include "qobject/qbool.h"
#include "qobject/qjson.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "qobject/qstring.h"
#include "libqos/erdma.h"

#define PDN     3
#define LEN     1000000

typedef enum Source {
    CONN,                       /* of the sender's QP */
    QP,
    SENDER,                     /* stats */
    RECEIVER,
} Source;

typedef enum Relation {
    IS,                         /* @number with the option, only with it */
    MORE,                       /* than @number times that without it */
    LESS,
} Relation;

typedef struct Case {
    const char *option;
    const char *common;         /* options of both runs */
    const char *link;           /* of filter-netem, on the way there */
    Source source;
    const char *field;
    Relation relation;
    double number;
    unsigned us;                /* virtual time from posting to looking */
    unsigned step_us;           /* 0: 50 */
    unsigned idle_us;           /* before posting */
    unsigned n_writes;          /* 0: 1 */
    uint32_t len;               /* 0: LEN */
    bool is_send;               /* without a receive */
    const char *until;          /* stop as soon as this field is not 0 */
} Case;

#define FAST    "'delay-us': 200"
#define SLOW    "'rate': 100000000, 'delay-us': 800"
#define HPCC    "base-rtt-us=1000,line-rate=100000000"

static const Case cases[] = {
    { "cc=newreno", "", NULL, CONN, "algorithm", IS, 'n' },
    { "cc=hpcc-rtt", "", NULL, CONN, "algorithm", IS, 'h' },
    { "initial-window=30000", "", NULL, CONN, "cwnd-bytes", IS, 30000 },
    { "rto-initial-us=50000", "", NULL, CONN, "rto-ns", IS, 100000000 },
    { "rto-min-us=40000", "", FAST, CONN, "rto-ns", IS, 40000000, 3000 },
    { "rto-max-us=20000", "", "'loss': 1.0", CONN, "rto-ns", IS, 20000000,
      150000, 1000 },
    { "retries=2", "", "'loss': 1.0", SENDER, "rtos", IS, 2, 1500000, 1000 },
    { "rnr-timeout-ms=50", "", NULL, QP, "state", IS, 'f', 300000, 1000,
      .is_send = true },
    { "ack-every=10", "ack-delay-us=2000", SLOW, RECEIVER, "tx-acks", LESS,
      0.5, 20000 },
    { "ack-delay-us=5000", "ack-every=1000", SLOW, RECEIVER, "tx-acks", LESS,
      0.5, 20000 },
    { "rx-buffer=64K", "cc=none,initial-window=1000000", "'delay-us': 5000",
      CONN, "inflight-bytes", LESS, 0.2, 3000 },
    { "pacing=off", "", FAST, CONN, "pacing-bps", IS, 0, 3000 },
    { "pacing-quantum-us=100", "cc=hpcc-rtt,base-rtt-us=10000,"
      "line-rate=100000000", NULL, CONN, "tx-packets", LESS, 0.5, 50,
      .idle_us = 20000 },
    { "ecn=off", "", NULL, CONN, "ecn", IS, 0 },
    { "go-back-n=on", "cc=none,initial-window=100000",
      "'delay-us': 1000, 'drop-list': '5'", CONN, "retransmits", MORE, 5,
      5000 },
    { "reordering-threshold=8", "", "'delay-us': 20000, 'drop-list': '1'",
      CONN, "lost", IS, 0, 22000, 500, .len = 8000 },
    { "line-rate=100000000", "cc=hpcc-rtt,base-rtt-us=1000", NULL, CONN,
      "cwnd-bytes", IS, 12500 },
    { "base-rtt-us=2000", "cc=hpcc-rtt", NULL, CONN, "base-rtt-ns", IS,
      2000000 },
    { "eta=0.5", "cc=hpcc-int,w-ai=100," HPCC, SLOW ", 'link-id': 1", CONN,
      "reference-bytes", LESS, 0.8, 40000 },
    { "delta=1", "cc=hpcc-rtt,w-ai=100,base-rtt-us=1000,"
      "line-rate=1000000000", SLOW, CONN, "reference-bytes", MORE, 1.3,
      60000 },
    { "max-stage=1000", "cc=hpcc-int," HPCC,
      "'rate': 1000000000, 'delay-us': 900, 'link-id': 1", CONN, "stage",
      MORE, 1, 40000 },
    { "max-stage-ecn=50", "cc=hpcc-ecn," HPCC, "'delay-us': 900", CONN,
      "stage", MORE, 2, 40000 },
    { "ecn-probe=off", "cc=hpcc-ecn," HPCC, "'delay-us': 900", CONN, "stage",
      MORE, 2, 40000 },
    { "w-ai=5000", "cc=hpcc-ecn," HPCC, NULL, CONN, "w-ai-bytes", IS, 5000 },
    { "n-flows=4", "cc=hpcc-ecn," HPCC, NULL, CONN, "w-ai-bytes", MORE, 3.9 },
    { "ecn-beta=0.95", "cc=newreno",
      SLOW ", 'ecn-kmin': 3000, 'ecn-kmax': 3001", CONN, "ssthresh-bytes",
      MORE, 1.5, 40000, .until = "ecn-episodes" },
    { "fast-convergence=off", "initial-window=300000,rto-min-us=1000000,"
      "rto-initial-us=1000000", "'delay-us': 100000, 'drop-list': '150:500'",
      CONN, "cwnd-bytes", MORE, 1.02, 3000000, 1000, .n_writes = 10 },
    { "int=off", "cc=hpcc-int," HPCC, SLOW ", 'link-id': 1", CONN,
      "int-samples", IS, 0, 20000 },
    { "int=compact", "cc=hpcc-int,pacing=off," HPCC, FAST, SENDER, "tx-bytes",
      LESS, 1, 20000, .len = 100000 },
    { "int-hops=1", "cc=hpcc-int,pacing=off," HPCC, FAST, SENDER, "tx-bytes",
      LESS, 1, 20000, .len = 100000 },
    { "cc=none", "initial-window=60000", "'delay-us': 500, 'drop-list': '5'",
      CONN, "cwnd-bytes", IS, 60000, 10000 },
};

/* A word counts as its first letter, what is not there as 0. */
static double number_of(QDict *dict, const char *name)
{
    QObject *o = qdict_get(dict, name);

    if (!o) {
        return 0;
    }
    switch (qobject_type(o)) {
    case QTYPE_QSTRING:
        return *qstring_get_str(qobject_to(QString, o));
    case QTYPE_QBOOL:
        return qbool_get_bool(qobject_to(QBool, o));
    default:
        return qnum_get_double(qobject_to(QNum, o));
    }
}

static double look(QErdma *d[2], Source source, const char *field)
{
    QDict *rsp, *dict;
    double number;

    if (source == SENDER || source == RECEIVER) {
        return qerdma_stat(d[source == RECEIVER], field);
    }
    rsp = qerdma_qom_get(d[0], "qps");
    dict = qobject_to(QDict, qlist_entry_obj(qlist_first(
        qdict_get_qlist(rsp, "return"))));
    if (source == CONN) {
        dict = qdict_get_qdict(dict, "connection");
    }
    number = dict ? number_of(dict, field) : 0;
    qobject_unref(rsp);
    return number;
}

static void add_link(QErdma *d, const char *link)
{
    g_autofree char *json = NULL;

    json = g_strdup_printf("{ 'qom-type': 'filter-netem', 'id': 'link', "
                           "'netdev': 'port0', 'queue': 'rx', %s }", link);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'object-add', "
                             "'arguments': %p }",
                             qobject_from_json(json, &error_abort));
}

static void post(const Case *c, QErdmaQp *qp, const QErdmaMr mr[2])
{
    QErdmaSend wr = {
        .opcode = c->is_send ? ERDMA_OP_SEND : ERDMA_OP_WRITE, .n_sges = 1,
        .sges[0] = { mr[0].addr, c->len ?: LEN, mr[0].key },
        .raddr = mr[1].addr, .rkey = mr[1].key,
    };
    unsigned i;

    for (i = 0; i < (c->n_writes ?: 1); i++) {
        qerdma_queue_send(qp, &wr);
    }
    qerdma_sq_db(qp);
}

static void pass(const Case *c, QErdma *d[2], unsigned time_us)
{
    unsigned step = c->step_us ?: 50;
    unsigned us, i;

    for (us = 0; us < time_us; us += step) {
        qtest_clock_step(d[0]->qts, step * 1000);
        /*
         * Bottom halves run between two requests.  They shall not take
         * virtual time, or packets meet other ones than in the other run.
         */
        for (i = 0; i < 6; i++) {
            qerdma_read32(d[0], A_ERDMA_VERSION);
        }
        if (c->until && look(d, CONN, c->until)) {
            return;
        }
    }
}

static double run(const Case *c, const char *option)
{
    g_autofree char *options = g_strdup_printf("%s%s%s", c->common,
        *c->common && *option ? "," : "", option);
    QErdmaPair p = { .qp[0].sq_log2 = 8, .cq[0].log2 = 8, .cq[1].log2 = 8 };
    QErdmaMr mr[2];
    QErdma *d[2];
    double number;
    unsigned i;

    qerdma_boot_two(d, *options ? options : NULL, NULL);
    qerdma_meet(d);
    for (i = 0; i < 2; i++) {
        qerdma_start(d[i], NULL);
        qerdma_reg_simple(d[i], &mr[i], PDN, LEN, QERDMA_ACC_ALL);
    }
    qerdma_pair_create(&p, d[0], d[1], PDN, false);
    qerdma_connect(&p.qp[0], &p.qp[1]);
    if (c->link) {
        add_link(d[0], c->link);
    }
    pass(c, d, c->idle_us);
    if (c->us) {
        post(c, &p.qp[0], mr);
        pass(c, d, c->us);
    }
    number = look(d, c->source, c->field);
    qerdma_quit(d[0], d[1]);
    return number;
}

static void test_option(const void *opaque)
{
    const Case *c = opaque;
    double without = run(c, "");
    double with = run(c, c->option);

    g_test_message("%s: %s is %g, with %s %g", c->common, c->field, without,
                   c->option, with);
    if ((c->relation == IS && (with != c->number || without == c->number)) ||
        (c->relation == MORE && with <= without * c->number) ||
        (c->relation == LESS && with >= without * c->number)) {
        g_test_fail();
    }
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *path = g_strdup_printf("/erdma/params/%s",
                                                cases[i].option);

        qtest_add_data_func(path, &cases[i], test_option);
    }
    return g_test_run();
}
