/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of injected faults, for their tests */

#ifndef TESTS_FAULT_RULES_H
#define TESTS_FAULT_RULES_H

#include "engine-rig.h"

#define MS          1000000ull

/* A rule on @rig's device, to be freed with rule_free() */
static inline ErdmaFaultRule *rule_new(EngineRig *rig, ErdmaFaultPoint on,
                                       ErdmaFaultAction action)
{
    ErdmaFaultRule *r = g_new0(ErdmaFaultRule, 1);
    ErdmaFaultConfig cfg;

    erdma_fault_init(r);
    cfg = r->cfg;
    cfg.on = on;
    cfg.action = action;
    cfg.delay_ns = 5 * MS;
    erdma_fault_set(r, &cfg);
    erdma_fault_attach(r, rig->e);
    return r;
}

static inline void rule_free(ErdmaFaultRule *r)
{
    erdma_fault_destroy(r);
    g_free(r);
}

#endif /* TESTS_FAULT_RULES_H */
