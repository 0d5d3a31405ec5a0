/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An emulated link with any configuration that it accepts, changed while it
 * works.  Packets are neither lost nor doubled by mistake: what arrived was
 * dropped with a reason, came out, or is still inside.
 */

#include "qemu/osdep.h"
#include "netem/netem.h"
#include "fuzz.h"

typedef struct Packet {
    NetemPacket p;
    unsigned *n_alive;
} Packet;

static NetemPacket *packet_new(size_t len, unsigned *n_alive)
{
    Packet *p = g_new0(Packet, 1);

    p->p.len = len;
    p->n_alive = n_alive;
    (*n_alive)++;
    return &p->p;
}

static void packet_free(void *opaque, NetemPacket *np)
{
    Packet *p = container_of(np, Packet, p);

    (*p->n_alive)--;
    g_free(p);
}

static NetemPacket *packet_copy(void *opaque, const NetemPacket *np)
{
    return packet_new(np->len, container_of(np, Packet, p)->n_alive);
}

static bool packet_mark(void *opaque, NetemPacket *p)
{
    return p->len & 1;
}

static bool packet_stamp(void *opaque, NetemPacket *p, uint64_t time_ns,
                         uint64_t tx_bytes, uint64_t queue)
{
    return p->len & 2;
}

static const NetemOps ops = {
    .mark = packet_mark,
    .stamp = packet_stamp,
    .copy = packet_copy,
    .free = packet_free,
};

/* Sane probabilities and wild ones */
static double probability(FuzzInput *in)
{
    uint8_t kind = fuzz_u8(in);
    double d;
    uint64_t raw;

    if (kind < 0x80) {
        return 0;
    }
    if (kind < 0xf0) {
        return fuzz_u8(in) / 255.0;
    }
    raw = fuzz_u64(in);
    memcpy(&d, &raw, sizeof(d));
    return d;
}

static void configure(FuzzInput *in, NetemConfig *cfg)
{
    uint8_t bits = fuzz_u8(in);

    memset(cfg, 0, sizeof(*cfg));
    cfg->seed = fuzz_u8(in);
    cfg->loss = probability(in);
    cfg->ge_enter = probability(in);
    cfg->ge_leave = probability(in);
    cfg->ge_loss_bad = probability(in);
    cfg->ge_loss_good = probability(in);
    cfg->corrupt = probability(in);
    cfg->ecn_pmax = probability(in);
    cfg->reorder = probability(in);
    cfg->duplicate = probability(in);
    cfg->drop_every = fuzz_u8(in) & 0xf;
    cfg->limit = fuzz_u32(in);
    cfg->ecn_kmin = fuzz_u32(in);
    cfg->ecn_kmax = fuzz_u32(in);
    cfg->ecn_drop_not_ect = bits & 1;
    cfg->ecn_at_dequeue = bits & 2;
    cfg->jitter_reorders = bits & 4;
    cfg->jitter = bits >> 4;
    cfg->rate_bps = bits & 8 ? fuzz_u64(in) : fuzz_u32(in);
    cfg->overhead = fuzz_u8(in);
    cfg->link_id = fuzz_u16(in);
    cfg->delay_ns = fuzz_u32(in);
    cfg->jitter_ns = fuzz_u32(in);
    cfg->reorder_ns = fuzz_u32(in);
}

static uint64_t drops(const NetemStats *s)
{
    return s->drop_loss + s->drop_burst + s->drop_listed + s->drop_corrupt +
           s->drop_queue + s->drop_not_ect;
}

static void look(NetemLink *l, uint64_t now)
{
    NetemPacket *ahead[8];

    netem_link_fetch(l);
    g_assert_cmpuint(netem_link_queue(l), <=, NETEM_HARD_LIMIT);
    g_assert_cmpuint(netem_link_ahead(l, ahead, ARRAY_SIZE(ahead)), <=,
                     ARRAY_SIZE(ahead));
    /* What is due has been taken. */
    g_assert_cmpuint(netem_link_deadline(l), >, now);
    g_assert_cmpuint(netem_link_next(l), >, now);
    if (now & 1) {
        netem_link_restart_max(l);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    FuzzInput in = { data, len };
    const char *allowed = NULL;
    uint64_t now = 1, list[4], n_out = 0;
    unsigned n_alive = 0, i;
    const NetemStats *stats;
    NetemConfig cfg;
    NetemPacket *p;
    NetemLink *l;

    configure(&in, &cfg);
    if (netem_config_check(&cfg, &allowed)) {
        g_assert_nonnull(allowed);
        return 0;
    }
    l = netem_link_new(&ops, NULL, &cfg);
    while (fuzz_more(&in)) {
        switch (fuzz_below(&in, 8)) {
        case 0:
            configure(&in, &cfg);
            if (!netem_config_check(&cfg, &allowed)) {
                netem_link_set_config(l, &cfg, now);
            }
            break;
        case 1:
            for (i = 0; i < ARRAY_SIZE(list); i++) {
                list[i] = fuzz_u8(&in);
            }
            netem_link_set_drop_list(l, list, fuzz_below(&in, 5));
            break;
        case 2:
            now += fuzz_u32(&in);
            break;
        default:
            netem_link_put(l, packet_new(1 + fuzz_u16(&in), &n_alive), now);
            break;
        }
        while ((p = netem_link_take(l, now))) {
            packet_free(NULL, p);
            n_out++;
        }
        look(l, now);
    }
    stats = netem_link_stats(l, now);
    g_assert_cmpuint(stats->delivered, ==, n_out);
    g_assert_cmpuint(stats->arrivals + stats->duplicates, ==,
                     drops(stats) + n_out + n_alive);
    netem_link_free(l);
    g_assert_cmpuint(n_alive, ==, 0);
    return 0;
}
