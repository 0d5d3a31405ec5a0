/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulated link: everything that chance decides, and the check of a
 * configuration.
 *
 * Reference: docs/congestion-control/netem.md
 */

#include "qemu/osdep.h"
#include <math.h>
#include "netem/impair.h"

#define PARETO_SHAPE    3.0

static GRand *impair_rng(NetemImpair *im, NetemRng rng)
{
    if (!im->rng[rng]) {
        guint32 seed[3] = { im->seed, im->seed >> 32, rng };

        im->rng[rng] = g_rand_new_with_seed_array(seed, G_N_ELEMENTS(seed));
    }
    return im->rng[rng];
}

static void impair_drop_rngs(NetemImpair *im)
{
    unsigned i;

    for (i = 0; i < NETEM_RNG_COUNT; i++) {
        if (im->rng[i]) {
            g_rand_free(im->rng[i]);
            im->rng[i] = NULL;
        }
    }
}

void netem_impair_init(NetemImpair *im, uint64_t seed)
{
    memset(im, 0, sizeof(*im));
    im->seed = seed;
}

void netem_impair_destroy(NetemImpair *im)
{
    impair_drop_rngs(im);
    g_free(im->list);
}

void netem_impair_reseed(NetemImpair *im, uint64_t seed)
{
    impair_drop_rngs(im);
    im->seed = seed;
    im->is_bad = false;
}

static int compare_index(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void netem_impair_set_list(NetemImpair *im, const uint64_t *index, size_t n)
{
    g_free(im->list);
    im->list = g_new(uint64_t, n);
    if (n) {
        memcpy(im->list, index, n * sizeof(*index));
        qsort(im->list, n, sizeof(*im->list), compare_index);
    }
    im->n_list = n;
    im->next_list = 0;
}

bool netem_impair_draw(NetemImpair *im, NetemRng rng, double p)
{
    return g_rand_double(impair_rng(im, rng)) < p;
}

static bool impair_listed(NetemImpair *im, const NetemConfig *cfg,
                          uint64_t index)
{
    while (im->next_list < im->n_list && im->list[im->next_list] < index) {
        im->next_list++;
    }
    if (im->next_list < im->n_list && im->list[im->next_list] == index) {
        return true;
    }
    return cfg->drop_every && (index + 1) % cfg->drop_every == 0;
}

static bool impair_burst(NetemImpair *im, const NetemConfig *cfg)
{
    if (cfg->ge_enter <= 0) {
        im->is_bad = false;
        return false;
    }
    /* The state changes first: a burst begins with a packet in it. */
    im->is_bad ^= netem_impair_hit(im, NETEM_RNG_GE_STATE, im->is_bad ?
                                   cfg->ge_leave : cfg->ge_enter);
    return netem_impair_hit(im, NETEM_RNG_GE_LOSS, im->is_bad ?
                            cfg->ge_loss_bad : cfg->ge_loss_good);
}

NetemDrop netem_impair_drop(NetemImpair *im, const NetemConfig *cfg)
{
    uint64_t index = im->n_packets++;
    /*
     * Each draws for every packet, whatever the others decided: the packets
     * that one hits depend on nothing but its own seed.
     */
    bool is_listed = impair_listed(im, cfg, index);
    bool is_lost = netem_impair_hit(im, NETEM_RNG_LOSS, cfg->loss);
    bool is_burst = impair_burst(im, cfg);
    bool is_corrupt = netem_impair_hit(im, NETEM_RNG_CORRUPT, cfg->corrupt);

    if (is_listed) {
        return NETEM_DROP_LISTED;
    }
    if (is_lost) {
        return NETEM_DROP_LOSS;
    }
    if (is_burst) {
        return NETEM_DROP_BURST;
    }
    return is_corrupt ? NETEM_DROP_CORRUPT : NETEM_DROP_NONE;
}

bool netem_impair_wants_mark(NetemImpair *im, const NetemConfig *cfg,
                             uint64_t queue)
{
    double p;

    if (!cfg->ecn_kmax || queue < cfg->ecn_kmin) {
        return false;
    }
    if (queue >= cfg->ecn_kmax) {
        return true;
    }
    p = cfg->ecn_pmax * (queue - cfg->ecn_kmin) /
        (cfg->ecn_kmax - cfg->ecn_kmin);
    return netem_impair_hit(im, NETEM_RNG_ECN, p);
}

/* Box and Muller's method; one of the two values is thrown away. */
static double impair_normal(GRand *rng)
{
    double u = 1.0 - g_rand_double(rng);
    double v = g_rand_double(rng);

    return sqrt(-2.0 * log(u)) * cos(2.0 * G_PI * v);
}

uint64_t netem_impair_jitter(NetemImpair *im, const NetemConfig *cfg)
{
    double x = 0, mean = cfg->jitter_ns;
    GRand *rng;

    if (cfg->jitter == NETEM_JITTER_NONE || !cfg->jitter_ns) {
        return 0;
    }
    rng = impair_rng(im, NETEM_RNG_JITTER);
    switch (cfg->jitter) {
    case NETEM_JITTER_UNIFORM:
        x = mean * g_rand_double(rng);
        break;
    case NETEM_JITTER_NORMAL:
        x = fabs(mean * impair_normal(rng));
        break;
    case NETEM_JITTER_PARETO:
        /* scaled so that the mean is right, shifted to begin at 0 */
        x = mean * (PARETO_SHAPE - 1) *
            (pow(1.0 - g_rand_double(rng), -1.0 / PARETO_SHAPE) - 1);
        break;
    default:
        break;
    }
    /* A heavy tail is cut where no protocol would wait any longer. */
    return MIN(x, 1000 * mean);
}

static bool is_probability(double p)
{
    return p >= 0 && p <= 1;
}

const char *netem_config_check(const NetemConfig *cfg, const char **allowed)
{
    static const char probability[] = "0 to 1";
    const struct {
        const char *name;
        double value;
    } p[] = {
        { "loss", cfg->loss },
        { "burst-enter", cfg->ge_enter },
        { "burst-leave", cfg->ge_leave },
        { "burst-loss", cfg->ge_loss_bad },
        { "burst-good-loss", cfg->ge_loss_good },
        { "corrupt", cfg->corrupt },
        { "ecn-pmax", cfg->ecn_pmax },
        { "reorder", cfg->reorder },
        { "duplicate", cfg->duplicate },
    };
    size_t i;

    for (i = 0; i < G_N_ELEMENTS(p); i++) {
        if (!is_probability(p[i].value)) {
            *allowed = probability;
            return p[i].name;
        }
    }
    if (cfg->ge_enter > 0 && cfg->ge_leave <= 0) {
        *allowed = "more than 0 where burst-enter is";
        return "burst-leave";
    }
    if (cfg->ecn_kmin > cfg->ecn_kmax) {
        *allowed = "at most ecn-kmax";
        return "ecn-kmin";
    }
    if (cfg->limit > NETEM_HARD_LIMIT) {
        *allowed = "at most 64 MiB";
        return "limit";
    }
    if (cfg->rate_bps && cfg->rate_bps < 1000) {
        *allowed = "0 (infinite) or at least 1000 bit/s";
        return "rate";
    }
    if (cfg->overhead > 1024) {
        *allowed = "at most 1024 bytes";
        return "overhead";
    }
    if (cfg->delay_ns > 60000000000ull || cfg->jitter_ns > 60000000000ull ||
        cfg->reorder_ns > 60000000000ull) {
        *allowed = "at most 60 s";
        return cfg->delay_ns > 60000000000ull ? "delay-us" :
               cfg->jitter_ns > 60000000000ull ? "jitter-us" : "reorder-us";
    }
    if (cfg->jitter >= NETEM_JITTER_COUNT) {
        *allowed = "none, uniform, normal or pareto";
        return "jitter";
    }
    if (cfg->reorder > 0 && !cfg->reorder_ns) {
        *allowed = "more than 0 where reorder is";
        return "reorder-us";
    }
    return NULL;
}
