/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulated link: everything that chance decides.
 *
 * Each impairment draws from a generator of its own, so that switching one
 * on does not change what another one hits.
 */

#ifndef HW_ERDMA_NETEM_IMPAIR_H
#define HW_ERDMA_NETEM_IMPAIR_H

#include "netem/netem.h"

typedef enum NetemRng {
    NETEM_RNG_LOSS,
    NETEM_RNG_GE_STATE,
    NETEM_RNG_GE_LOSS,
    NETEM_RNG_CORRUPT,
    NETEM_RNG_ECN,
    NETEM_RNG_JITTER,
    NETEM_RNG_REORDER,
    NETEM_RNG_DUPLICATE,
    NETEM_RNG_COUNT,
} NetemRng;

typedef enum NetemDrop {
    NETEM_DROP_NONE,
    NETEM_DROP_LOSS,
    NETEM_DROP_BURST,
    NETEM_DROP_LISTED,
    NETEM_DROP_CORRUPT,
} NetemDrop;

typedef struct NetemImpair {
    GRand *rng[NETEM_RNG_COUNT];    /* made when first used */
    uint64_t seed;
    bool is_bad;                /* Gilbert-Elliott state */
    uint64_t n_packets;         /* index of the next one */
    uint64_t *list;             /* sorted */
    size_t n_list;
    size_t next_list;
} NetemImpair;

void netem_impair_init(NetemImpair *im, uint64_t seed);
void netem_impair_destroy(NetemImpair *im);
void netem_impair_reseed(NetemImpair *im, uint64_t seed);
void netem_impair_set_list(NetemImpair *im, const uint64_t *index, size_t n);
/* True with probability @p; draws nothing when @p is 0. */
bool netem_impair_draw(NetemImpair *im, NetemRng rng, double p);
static inline bool netem_impair_hit(NetemImpair *im, NetemRng rng, double p)
{
    return p > 0 && netem_impair_draw(im, rng, p);
}
/* Step 1 for the next packet */
NetemDrop netem_impair_drop(NetemImpair *im, const NetemConfig *cfg);
bool netem_impair_wants_mark(NetemImpair *im, const NetemConfig *cfg,
                             uint64_t queue);
/* Extra delay of one packet, ns */
uint64_t netem_impair_jitter(NetemImpair *im, const NetemConfig *cfg);

#endif /* HW_ERDMA_NETEM_IMPAIR_H */
