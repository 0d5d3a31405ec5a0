/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles: how large the HCA of a kind of instance is, as one property.
 *
 * The product's limits on queue pairs, vectors and the size of memory regions
 * depend on instance and hardware generation; the others are the same
 * everywhere.  What the user sets himself goes before the profile, in
 * whatever order he writes it.
 *
 * Reference: docs/compatibility/limits.md
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "erdma.h"

typedef struct ErdmaProfile {
    const char *name;
    uint64_t max_qp;
    uint64_t vectors;
    uint64_t max_mr_size;
    bool has_mtt_va;
} ErdmaProfile;

static const ErdmaProfile erdma_profiles[] = {
    /* The least number of QPs that the interface can express */
    { "small", 1023, 3, 2 * GiB, false },
    { "large", 131071, 32, 64 * GiB, true },
};

bool erdma_profile_apply(ErdmaState *s, Error **errp)
{
    unsigned i;

    if (!s->profile) {
        return true;
    }
    for (i = 0; i < ARRAY_SIZE(erdma_profiles); i++) {
        const ErdmaProfile *p = &erdma_profiles[i];

        if (!strcmp(s->profile, p->name)) {
            erdma_prop_preset(s, "max-qp", p->max_qp);
            erdma_prop_preset(s, "vectors", p->vectors);
            erdma_prop_preset(s, "max-mr-size", p->max_mr_size);
            erdma_prop_preset(s, "mtt-va", p->has_mtt_va);
            return true;
        }
    }
    error_setg(errp, "property 'profile' is '%s', must be one of small, "
               "large", s->profile);
    return false;
}
