/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: replay of a recorded transport, see replay.h. */

#include "qemu/osdep.h"
#include "replay.h"
#include "xport/record.h"
#include "xport/wire.h"

#define CONNS_MAX       (1u << 20)
/* No clock gets this far: what is added to it must not wrap. */
#define TIME_MAX        (1ULL << 62)
#define HEADER_MAX      4096

typedef struct Record {
    ErdmaRecordType type;
    uint64_t arg[ERDMA_RECORD_ARGS_MAX];
    const uint8_t *bytes;       /* of INPUT */
} Record;

typedef struct ReplayConn {
    uint32_t cookie;
    ErdmaXportConn *conn;
    GQueue msgs;                /* ErdmaXportMsg that are not done */
} ReplayConn;

typedef struct Replay {
    const uint8_t *data;
    const uint8_t *p;
    const uint8_t *record;      /* where the latest record begins */
    const uint8_t *end;
    ErdmaXport *x;
    GHashTable *conns;          /* cookie to ReplayConn */
    GPtrArray *closed;          /* may still be named by the call we are in */
    uint64_t now_ns;
    uint8_t *datagram;          /* as long as the longest one */
    char *problem;              /* the first one; nothing is read after it */
    ReplayResult *result;
} Replay;

static G_GNUC_PRINTF(2, 3) void fail(Replay *r, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    if (r->problem) {
        return;
    }
    va_start(ap, format);
    text = g_strdup_vprintf(format, ap);
    va_end(ap);
    r->problem = g_strdup_printf("at byte %zu, %.9f s, after %" PRIu64
                                 " inputs: %s", (size_t)(r->record - r->data),
                                 r->now_ns / 1e9, r->result->n_inputs, text);
}

static bool read_number(Replay *r, uint64_t *v)
{
    unsigned shift;

    *v = 0;
    for (shift = 0; shift < 64 && r->p < r->end; shift += 7) {
        uint8_t byte = *r->p++;

        if (shift == 63 && byte > 1) {
            break;
        }
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            return true;
        }
    }
    if (r->p == r->end) {
        fail(r, "the recording is cut off");
    } else {
        fail(r, "not a number");
    }
    return false;
}

static bool read_args(Replay *r, Record *rec)
{
    const ErdmaRecordLayout *layout = &erdma_record_types[rec->type];
    unsigned i;

    for (i = 0; i < layout->n_args; i++) {
        if (!read_number(r, &rec->arg[i])) {
            return false;
        }
        if (!(layout->wide & 1 << i) && rec->arg[i] > UINT32_MAX) {
            fail(r, "%s: %s is too large", layout->name, layout->arg[i]);
            return false;
        }
    }
    return true;
}

static bool read_bytes(Replay *r, Record *rec)
{
    uint64_t len = rec->arg[4], n = rec->arg[5];

    if (len > ERDMA_XPORT_MTU_MAX || n > len) {
        fail(r, "input: no datagram has %" PRIu64 " bytes, %" PRIu64
             " of them recorded", len, n);
        return false;
    }
    if (n > (size_t)(r->end - r->p)) {
        fail(r, "the recording is cut off");
        return false;
    }
    rec->bytes = r->p;
    r->p += n;
    return true;
}

/* False: there is none, and a problem */
static bool read_record(Replay *r, Record *rec)
{
    if (r->problem) {
        return false;
    }
    r->record = r->p;
    if (r->p == r->end) {
        fail(r, "the recording is cut off");
        return false;
    }
    rec->type = *r->p++;
    if (rec->type == ERDMA_RECORD_NONE || rec->type >= ERDMA_RECORD_COUNT) {
        fail(r, "no record begins with 0x%02x", rec->type);
        return false;
    }
    if (!read_args(r, rec) ||
        (rec->type == ERDMA_RECORD_INPUT && !read_bytes(r, rec))) {
        return false;
    }
    if (rec->type <= ERDMA_RECORD_RETURN) {
        r->result->n_inputs++;
    } else if (rec->type != ERDMA_RECORD_END) {
        r->result->n_outputs++;
    }
    if (rec->type != ERDMA_RECORD_END) {
        r->result->hash = erdma_record_hash(r->result->hash, r->record,
                                            r->p - r->record);
    }
    return true;
}

static char *describe(ErdmaRecordType type, const uint64_t *arg)
{
    const ErdmaRecordLayout *layout = &erdma_record_types[type];
    GString *text = g_string_new(layout->name);
    unsigned i;

    for (i = 0; i < layout->n_args; i++) {
        g_string_append_printf(text, "%s%s %" PRIu64, i ? ", " : " (",
                               layout->arg[i], arg[i]);
    }
    return g_string_free(g_string_append(text, layout->n_args ? ")" : ""),
                         false);
}

/* The transport did this: the recording must say so too. */
static bool expect(Replay *r, ErdmaRecordType type, const uint64_t *arg)
{
    Record rec;

    if (!read_record(r, &rec)) {
        return false;
    }
    if (rec.type != type ||
        memcmp(rec.arg, arg, erdma_record_types[type].n_args * 8)) {
        g_autofree char *was = describe(rec.type, rec.arg);
        g_autofree char *is = describe(type, arg);

        fail(r, "different: recorded %s, replayed %s", was, is);
        return false;
    }
    return true;
}

#define EXPECT(r, type, ...) \
    expect(r, type, (const uint64_t[]) { __VA_ARGS__ })

static ReplayConn *find(Replay *r, uint64_t cookie)
{
    ReplayConn *c = g_hash_table_lookup(r->conns, GUINT_TO_POINTER(cookie));

    if (!c) {
        fail(r, "connection %" PRIu64 " is not open", cookie);
    }
    return c;
}

static void free_conn(gpointer opaque)
{
    ReplayConn *c = opaque;

    g_queue_clear_full(&c->msgs, g_free);
    g_free(c);
}

static void do_send(Replay *r, const uint64_t *arg)
{
    ReplayConn *c = find(r, arg[0]);
    ErdmaXportMsg *msg;

    if (!c) {
        return;
    }
    if (arg[1] == 0 || arg[1] >= ERDMA_XPORT_OP_COUNT) {
        fail(r, "send: no operation %" PRIu64, arg[1]);
        return;
    }
    msg = g_new0(ErdmaXportMsg, 1);
    msg->hdr = (ErdmaXportMsgHdr) {
        .op = arg[1], .is_solicited = arg[2], .len = arg[3], .imm = arg[4],
        .rkey = arg[5], .raddr = arg[6], .read_len = arg[7],
        .req_msn = arg[8], .swap_add = arg[9], .compare = arg[10],
        .original = arg[11],
    };
    g_queue_push_tail(&c->msgs, msg);
    erdma_xport_conn_send(c->conn, msg);
}

static void do_close(Replay *r, ReplayConn *c)
{
    g_hash_table_remove(r->conns, GUINT_TO_POINTER(c->cookie));
    erdma_xport_conn_close(c->conn);
    g_ptr_array_add(r->closed, c);
}

/* What may also be done inside of a callback; false: it is something else */
static bool do_inner(Replay *r, const Record *rec)
{
    ReplayConn *c;

    switch (rec->type) {
    case ERDMA_RECORD_SEND:
        do_send(r, rec->arg);
        return true;
    case ERDMA_RECORD_CLOSE:
    case ERDMA_RECORD_EXPECT:
    case ERDMA_RECORD_RESUME:
    case ERDMA_RECORD_TERMINATE:
        break;
    default:
        return false;
    }
    c = find(r, rec->arg[0]);
    if (!c) {
        return true;
    }
    if (rec->type == ERDMA_RECORD_CLOSE) {
        do_close(r, c);
    } else if (rec->type == ERDMA_RECORD_EXPECT) {
        erdma_xport_conn_expect(c->conn, rec->arg[1]);
    } else if (rec->type == ERDMA_RECORD_RESUME) {
        erdma_xport_conn_rx_resume(c->conn);
    } else {
        erdma_xport_conn_terminate(c->conn, rec->arg[1], rec->arg[2]);
    }
    return true;
}

/* What the callback that was just recorded did and gave back, at most @max */
static uint32_t give_back(Replay *r, uint32_t max)
{
    Record rec;

    while (read_record(r, &rec)) {
        if (rec.type == ERDMA_RECORD_RETURN) {
            if (rec.arg[0] <= max) {
                return rec.arg[0];
            }
            fail(r, "return: no callback gives back %" PRIu64, rec.arg[0]);
        } else if (!do_inner(r, &rec)) {
            fail(r, "%s: not inside of a callback",
                 erdma_record_types[rec.type].name);
        }
    }
    return max;
}

static uint32_t cookie(const ReplayConn *c)
{
    return c ? c->cookie : 0;
}

/*
 * After the first difference nothing is compared any more; the answers then
 * are those that soon end whatever the transport is doing.
 */
static bool transmit(void *opaque, const ErdmaDatagram *dg)
{
    Replay *r = opaque;

    return EXPECT(r, ERDMA_RECORD_TRANSMIT, dg->src_ip, dg->dst_ip, dg->ecn,
                  dg->len, erdma_record_head_digest(dg->data, dg->len)) &&
           give_back(r, 1) && !r->problem;
}

static bool pull(void *opaque, void *owner, ErdmaXportMsg *msg, uint32_t off,
                 uint8_t *buf, uint32_t len)
{
    Replay *r = opaque;

    return EXPECT(r, ERDMA_RECORD_PULL, cookie(owner), msg->msn, off, len) &&
           give_back(r, 1) && !r->problem;
}

static ErdmaXportRx rx(void *opaque, void *owner, const ErdmaXportMsgHdr *hdr,
                       uint32_t msn, uint32_t off, const uint8_t *data,
                       uint32_t len, bool is_last)
{
    Replay *r = opaque;

    return EXPECT(r, ERDMA_RECORD_RX, cookie(owner), msn, off, len, is_last,
                  erdma_record_hdr_digest(hdr)) ?
           give_back(r, ERDMA_XPORT_RX_REFUSED) : ERDMA_XPORT_RX_REFUSED;
}

static void msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    Replay *r = opaque;
    ReplayConn *c = owner;

    if (EXPECT(r, ERDMA_RECORD_MSG_DONE, c->cookie, msg->msn)) {
        g_queue_remove(&c->msgs, msg);
        g_free(msg);
        give_back(r, 0);
    }
}

static void tx_room(void *opaque, void *owner)
{
    if (EXPECT(opaque, ERDMA_RECORD_TX_ROOM, cookie(owner))) {
        give_back(opaque, 0);
    }
}

static void terminated(void *opaque, void *owner, uint8_t status,
                       uint32_t msn)
{
    if (EXPECT(opaque, ERDMA_RECORD_TERMINATED, cookie(owner), status, msn)) {
        give_back(opaque, 0);
    }
}

static void conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    if (EXPECT(opaque, ERDMA_RECORD_CONN_ERROR, cookie(owner), error)) {
        give_back(opaque, 0);
    }
}

static void trace(void *opaque, void *owner, ErdmaXportEvent event,
                  uint64_t a, uint64_t b)
{
    EXPECT(opaque, ERDMA_RECORD_TRACE, cookie(owner), event, a, b);
}

static const ErdmaXportOps replay_ops = {
    .transmit = transmit,
    .pull = pull,
    .rx = rx,
    .msg_done = msg_done,
    .tx_room = tx_room,
    .terminated = terminated,
    .conn_error = conn_error,
    .trace = trace,
};

static bool pass(Replay *r, uint64_t ns)
{
    if (ns > TIME_MAX - r->now_ns) {
        fail(r, "time runs backwards");
        return false;
    }
    r->now_ns += ns;
    if (!r->result->end_ns) {
        r->result->begin_ns = r->now_ns;
    }
    r->result->end_ns = r->now_ns;
    return true;
}

static void do_open(Replay *r, const uint64_t *arg)
{
    ReplayConn *c = g_new0(ReplayConn, 1);
    ErdmaXportConnParams p = {
        .local_cookie = arg[1], .peer_cookie = arg[2], .local_ip = arg[3],
        .peer_ip = arg[4], .tx_pn0 = arg[5], .rx_pn0 = arg[6], .cc = arg[7],
        .owner = c,
    };

    c->cookie = arg[1];
    g_queue_init(&c->msgs);
    if (g_hash_table_size(r->conns) < CONNS_MAX) {
        c->conn = erdma_xport_conn_open(r->x, &p, r->now_ns);
    }
    if (!c->conn != !arg[8]) {
        fail(r, "different: the connection %s",
             c->conn ? "was refused when it was recorded" : "is refused now");
    }
    if (c->conn) {
        g_hash_table_insert(r->conns, GUINT_TO_POINTER(c->cookie), c);
    } else {
        g_free(c);
    }
}

static void do_input(Replay *r, const Record *rec)
{
    ErdmaDatagram dg = {
        .src_ip = rec->arg[1],
        .dst_ip = rec->arg[2],
        .ecn = rec->arg[3],
        .data = r->datagram,
        .len = rec->arg[4],
    };

    /* The payload is whatever lies there: nobody looks at it. */
    memcpy(r->datagram, rec->bytes, rec->arg[5]);
    memset(r->datagram + rec->arg[5], 0, rec->arg[4] - rec->arg[5]);
    erdma_xport_input(r->x, &dg, r->now_ns);
}

static void do_poll(Replay *r, unsigned max_packets)
{
    uint64_t next_ns = erdma_xport_poll(r->x, r->now_ns, max_packets);

    EXPECT(r, ERDMA_RECORD_POLLED, next_ns == ERDMA_XPORT_NEVER ? 0 :
           next_ns - r->now_ns + 1);
}

static void do_end(Replay *r, const uint64_t *arg)
{
    if (arg[0] != r->result->n_inputs || arg[1] != r->result->hash) {
        fail(r, "the recording was damaged: %" PRIu64 " inputs and hash "
             "%016" PRIx64 " were recorded, not %016" PRIx64, arg[0], arg[1],
             r->result->hash);
    } else if (r->p != r->end) {
        fail(r, "something follows the end of the recording");
    }
}

static void do_outer(Replay *r, const Record *rec)
{
    switch (rec->type) {
    case ERDMA_RECORD_OPEN:
        if (pass(r, rec->arg[0])) {
            do_open(r, rec->arg);
        }
        break;
    case ERDMA_RECORD_INPUT:
        if (pass(r, rec->arg[0])) {
            do_input(r, rec);
        }
        break;
    case ERDMA_RECORD_POLL:
        if (pass(r, rec->arg[0])) {
            do_poll(r, rec->arg[1]);
        }
        break;
    case ERDMA_RECORD_UNBLOCK:
        erdma_xport_unblock(r->x);
        break;
    case ERDMA_RECORD_SET_MTU:
        erdma_xport_set_mtu(r->x, rec->arg[0]);
        break;
    default:
        if (!do_inner(r, rec)) {
            g_autofree char *was = describe(rec->type, rec->arg);

            fail(r, "different: recorded %s, replayed nothing", was);
        }
        break;
    }
}

static void run(Replay *r)
{
    Record rec = { .type = ERDMA_RECORD_NONE };

    while (read_record(r, &rec)) {
        if (rec.type == ERDMA_RECORD_END) {
            do_end(r, rec.arg);
            return;
        }
        do_outer(r, &rec);
        g_ptr_array_set_size(r->closed, 0);
    }
}

/* The text in front of the records; sets r->p behind it. */
static char *read_header(Replay *r, ErdmaXportConfig *cfg)
{
    size_t magic_len = strlen(ERDMA_RECORD_HEADER), len = r->end - r->data;
    g_autofree char *text = g_strndup((const char *)r->data,
                                      MIN(len, HEADER_MAX));
    g_auto(GStrv) lines = NULL;
    char *end;

    if (strncmp(text, ERDMA_RECORD_HEADER, magic_len)) {
        return g_strdup_printf("not a recording of this version: it does not "
                               "begin with '%.*s'", (int)magic_len - 1,
                               ERDMA_RECORD_HEADER);
    }
    end = strstr(text, "\n\n");
    if (!end) {
        return g_strdup("the recording is cut off in its header");
    }
    *end = 0;
    r->p = r->data + (end + 2 - text);
    r->result->hash = erdma_record_hash(r->result->hash, r->data,
                                        r->p - r->data);
    lines = g_strsplit(text + MIN(magic_len, (size_t)(end - text)), "\n", -1);
    return erdma_record_config_parse(lines, cfg);
}

char *replay_data(const uint8_t *bytes, size_t len, ReplayResult *result)
{
    /* An empty file is mapped nowhere. */
    const uint8_t *data = len ? bytes : (const uint8_t *)"";
    Replay r = {
        .data = data, .p = data, .record = data, .end = data + len,
        .result = result,
    };
    ErdmaXportConfig cfg;
    GHashTableIter iter;
    gpointer c;

    memset(result, 0, sizeof(*result));
    result->hash = ERDMA_RECORD_HASH_BEGIN;
    r.problem = read_header(&r, &cfg);
    if (r.problem) {
        return r.problem;
    }
    r.conns = g_hash_table_new(NULL, NULL);
    r.closed = g_ptr_array_new_with_free_func(free_conn);
    r.datagram = g_malloc0(ERDMA_XPORT_MTU_MAX);
    r.x = erdma_xport_new(&replay_ops, &r, &cfg);
    run(&r);
    erdma_xport_free(r.x);
    g_ptr_array_free(r.closed, true);
    g_hash_table_iter_init(&iter, r.conns);
    while (g_hash_table_iter_next(&iter, NULL, &c)) {
        free_conn(c);
    }
    g_hash_table_destroy(r.conns);
    g_free(r.datagram);
    return r.problem;
}

char *replay_file(const char *path, ReplayResult *result)
{
    GError *error = NULL;
    GMappedFile *file = g_mapped_file_new(path, false, &error);
    char *problem, *text;

    if (!file) {
        problem = g_strdup(error->message);
        g_error_free(error);
        return problem;
    }
    problem = replay_data((const uint8_t *)g_mapped_file_get_contents(file),
                          g_mapped_file_get_length(file), result);
    g_mapped_file_unref(file);
    if (!problem) {
        return NULL;
    }
    text = g_strdup_printf("%s: %s", path, problem);
    g_free(problem);
    return text;
}
