/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: what a recording looks like, see record.h. */

#include "qemu/osdep.h"
#include "record.h"
#include "wire.h"

#define TIME    "time"
#define COOKIE  "cookie"
typedef const char *Name;

/* As many numbers as names; @wide: bit i says that number i has 64 bits. */
#define LAYOUT(the_name, the_wide, ...)                                 \
    { .name = the_name, .wide = the_wide, .arg = { __VA_ARGS__ },       \
      .n_args = sizeof((Name[]) { __VA_ARGS__ }) / sizeof(Name) }

const ErdmaRecordLayout erdma_record_types[ERDMA_RECORD_COUNT] = {
    [ERDMA_RECORD_OPEN] = LAYOUT("open", 1 << 0,
        TIME, COOKIE, "peer-cookie", "local-ip", "peer-ip", "tx-pn0",
        "rx-pn0", "cc", "is-open"),
    [ERDMA_RECORD_CLOSE] = LAYOUT("close", 0, COOKIE),
    [ERDMA_RECORD_SEND] = LAYOUT("send", 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11,
        COOKIE, "op", "solicited", "len", "imm", "rkey", "raddr",
        "read-len", "req-msn", "swap-add", "compare", "original"),
    [ERDMA_RECORD_EXPECT] = LAYOUT("expect", 0, COOKIE, "is-expecting"),
    [ERDMA_RECORD_RESUME] = LAYOUT("resume", 0, COOKIE),
    [ERDMA_RECORD_TERMINATE] = LAYOUT("terminate", 0,
        COOKIE, "status", "msn"),
    [ERDMA_RECORD_INPUT] = LAYOUT("input", 1 << 0,
        TIME, "src-ip", "dst-ip", "ecn", "len", "head-len"),
    [ERDMA_RECORD_UNBLOCK] = { .name = "unblock" },
    [ERDMA_RECORD_POLL] = LAYOUT("poll", 1 << 0, TIME, "max-packets"),
    [ERDMA_RECORD_SET_MTU] = LAYOUT("set-mtu", 0, "mtu"),
    [ERDMA_RECORD_RETURN] = LAYOUT("return", 0, "value"),
    [ERDMA_RECORD_POLLED] = LAYOUT("polled", 1 << 0, "next-deadline"),
    [ERDMA_RECORD_TRANSMIT] = LAYOUT("transmit", 0,
        "src-ip", "dst-ip", "ecn", "len", "head-digest"),
    [ERDMA_RECORD_PULL] = LAYOUT("pull", 0, COOKIE, "msn", "off", "len"),
    [ERDMA_RECORD_RX] = LAYOUT("rx", 0,
        COOKIE, "msn", "off", "len", "last", "header-digest"),
    [ERDMA_RECORD_MSG_DONE] = LAYOUT("msg-done", 0, COOKIE, "msn"),
    [ERDMA_RECORD_TX_ROOM] = LAYOUT("tx-room", 0, COOKIE),
    [ERDMA_RECORD_TERMINATED] = LAYOUT("terminated", 0,
        COOKIE, "status", "msn"),
    [ERDMA_RECORD_CONN_ERROR] = LAYOUT("conn-error", 0, COOKIE, "error"),
    [ERDMA_RECORD_TRACE] = LAYOUT("trace", 1 << 2 | 1 << 3,
        COOKIE, "event", "a", "b"),
    [ERDMA_RECORD_END] = LAYOUT("end", 1 << 0 | 1 << 1, "inputs", "hash"),
};

uint64_t erdma_record_hash(uint64_t hash, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len--) {
        hash = (hash ^ *p++) * 0x100000001b3ULL;
    }
    return hash;
}

size_t erdma_record_head_len(const uint8_t *data, size_t len)
{
    ErdmaWire w;

    if (erdma_wire_parse(&w, data, len) == ERDMA_WIRE_OK &&
        w.type == ERDMA_WIRE_DATA) {
        return len - w.u.data.len;
    }
    return len;
}

uint32_t erdma_record_head_digest(const uint8_t *data, size_t len)
{
    return erdma_record_hash(ERDMA_RECORD_HASH_BEGIN, data,
                             erdma_record_head_len(data, len));
}

uint32_t erdma_record_hdr_digest(const ErdmaXportMsgHdr *hdr)
{
    uint64_t v[] = {
        hdr->op, hdr->is_solicited, hdr->len, hdr->imm, hdr->rkey,
        hdr->raddr, hdr->read_len, hdr->req_msn, hdr->swap_add,
        hdr->compare, hdr->original,
    };

    return erdma_record_hash(ERDMA_RECORD_HASH_BEGIN, v, sizeof(v));
}

typedef enum FieldType {
    FIELD_BOOL,
    FIELD_U8,
    FIELD_U16,
    FIELD_U32,
    FIELD_U64,
    FIELD_DOUBLE,
} FieldType;

typedef struct Field {
    const char *name;
    size_t ofs;
    FieldType type;
} Field;

#define IS(member, ctype)                                               \
    __builtin_types_compatible_p(                                       \
        __typeof__(((ErdmaXportConfig *)NULL)->member), ctype)
#define FIELD(member)                                                   \
    { #member, offsetof(ErdmaXportConfig, member),                      \
      IS(member, bool) ? FIELD_BOOL : IS(member, uint8_t) ? FIELD_U8 :  \
      IS(member, uint16_t) ? FIELD_U16 :                                \
      IS(member, uint32_t) ? FIELD_U32 :                                \
      IS(member, uint64_t) ? FIELD_U64 : FIELD_DOUBLE }

/* All but is_hollow: a device has payloads, a replay does without. */
static const Field fields[] = {
    FIELD(mtu), FIELD(udp_port), FIELD(initial_window),
    FIELD(initial_rto_ns), FIELD(rto_min_ns), FIELD(rto_max_ns),
    FIELD(retry_max), FIELD(rnr_timeout_ns), FIELD(ack_every),
    FIELD(ack_delay_ns), FIELD(rx_buffer), FIELD(is_paced),
    FIELD(pacing_quantum_ns), FIELD(use_ecn), FIELD(is_go_back_n),
    FIELD(packet_threshold), FIELD(int_hops), FIELD(is_int_compact),
    FIELD(cc.ecn_beta), FIELD(cc.has_fast_convergence), FIELD(cc.line_rate),
    FIELD(cc.base_rtt_ns), FIELD(cc.eta), FIELD(cc.delta),
    FIELD(cc.max_stage), FIELD(cc.max_stage_ecn), FIELD(cc.has_ecn_probe),
    FIELD(cc.w_ai), FIELD(cc.n_flows),
};
/* A new field has to be above, and in a new version of the format. */
QEMU_BUILD_BUG_ON(sizeof(void *) == 8 && sizeof(ErdmaXportConfig) != 168);

static uint64_t get(const Field *f, const ErdmaXportConfig *cfg)
{
    const char *p = (const char *)cfg + f->ofs;

    switch (f->type) {
    case FIELD_BOOL:
        return *(const bool *)p;
    case FIELD_U8:
        return *(const uint8_t *)p;
    case FIELD_U16:
        return *(const uint16_t *)p;
    case FIELD_U32:
        return *(const uint32_t *)p;
    default:
        return *(const uint64_t *)p;
    }
}

/* False: @v is too large. */
static bool set(const Field *f, ErdmaXportConfig *cfg, uint64_t v)
{
    char *p = (char *)cfg + f->ofs;

    switch (f->type) {
    case FIELD_BOOL:
        *(bool *)p = v;
        return v <= 1;
    case FIELD_U8:
        *(uint8_t *)p = v;
        return v <= UINT8_MAX;
    case FIELD_U16:
        *(uint16_t *)p = v;
        return v <= UINT16_MAX;
    case FIELD_U32:
        *(uint32_t *)p = v;
        return v <= UINT32_MAX;
    default:
        *(uint64_t *)p = v;
        return true;
    }
}

char *erdma_record_config(const ErdmaXportConfig *cfg)
{
    GString *text = g_string_new(NULL);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(fields); i++) {
        const Field *f = &fields[i];

        if (f->type == FIELD_DOUBLE) {
            char buf[G_ASCII_DTOSTR_BUF_SIZE];

            g_ascii_formatd(buf, sizeof(buf), "%.17g",
                            *(const double *)((const char *)cfg + f->ofs));
            g_string_append_printf(text, "%s %s\n", f->name, buf);
        } else {
            g_string_append_printf(text, "%s %" PRIu64 "\n", f->name,
                                   get(f, cfg));
        }
    }
    return g_string_free(text, false);
}

static bool parse_value(const Field *f, const char *text,
                        ErdmaXportConfig *cfg)
{
    char *end;
    uint64_t v;
    double d;

    if (!g_ascii_isdigit(*text)) {
        return false;
    }
    if (f->type == FIELD_DOUBLE) {
        d = g_ascii_strtod(text, &end);
        *(double *)((char *)cfg + f->ofs) = d;
        return !*end && d >= 0 && d <= 1000;
    }
    errno = 0;
    v = g_ascii_strtoull(text, &end, 10);
    return !*end && !errno && set(f, cfg, v);
}

char *erdma_record_config_parse(char *const *lines, ErdmaXportConfig *cfg)
{
    unsigned i;

    memset(cfg, 0, sizeof(*cfg));
    for (i = 0; i < ARRAY_SIZE(fields); i++) {
        const Field *f = &fields[i];
        size_t len = strlen(f->name);

        if (!lines[i] || strncmp(lines[i], f->name, len) ||
            lines[i][len] != ' ') {
            return g_strdup_printf("header: '%s' expected, not '%.40s': "
                                   "recorded by another version?", f->name,
                                   lines[i] ? lines[i] : "");
        }
        if (!parse_value(f, lines[i] + len + 1, cfg)) {
            return g_strdup_printf("header: %s: '%.40s' is no value of it",
                                   f->name, lines[i] + len + 1);
        }
    }
    if (lines[i]) {
        return g_strdup_printf("header: unknown '%.40s': recorded by "
                               "another version?", lines[i]);
    }
    return NULL;
}
