/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties that depend on each other: what cannot be is refused at realize,
 * what will hardly do what the user wants is warned about; and what all of
 * them mean to the engine.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bitops.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/guest-random.h"
#include "qemu/host-utils.h"
#include "erdma.h"

/* Above any index that a memory region can get */
#define ERDMA_DMA_LOCAL_KEY     0xffffff00u
#define ERDMA_FW_PART_MAX       0xffff
/* cc=none; no guest knows of it */
#define ERDMA_CC_NONE           ERDMA_CC_COUNT
#define ERDMA_INT_COMPACT_HOPS  5

static const char *const erdma_cc_names[] = {
    [ERDMA_CC_NEWRENO] = "newreno",
    [ERDMA_CC_CUBIC] = "cubic",
    [ERDMA_CC_HPCC_RTT] = "hpcc-rtt",
    [ERDMA_CC_HPCC_ECN] = "hpcc-ecn",
    [ERDMA_CC_HPCC_INT] = "hpcc-int",
    [ERDMA_CC_NONE] = "none",
};

static bool erdma_check_wire(ErdmaState *s, Error **errp)
{
    static const MACAddr zero;
    bool has_netdev = s->conf.peers.ncs[0];

    if (!s->eni == !has_netdev) {
        error_setg(errp, "%s of the properties 'eni' (a NIC of this machine "
                   "to share) and 'netdev' (a wire of its own) must be given",
                   has_netdev ? "only one" : "one");
        return false;
    }
    if (s->eni && memcmp(&s->conf.macaddr, &zero, sizeof(zero))) {
        error_setg(errp, "property 'mac' goes with 'netdev'; with 'eni' the "
                   "address is the NIC's");
        return false;
    }
    return true;
}

static bool erdma_check_mtu(ErdmaState *s, Error **errp)
{
    if (s->mtu && s->mtu < ERDMA_XPORT_MTU_MIN) {
        error_setg(errp, "property 'mtu' is %u, must be 0 or %d to %d",
                   s->mtu, ERDMA_XPORT_MTU_MIN, ERDMA_XPORT_MTU_MAX);
        return false;
    }
    return true;
}

static bool erdma_check_rto(ErdmaState *s, Error **errp)
{
    if (s->xport.rto_min_ns > s->xport.rto_max_ns) {
        error_setg(errp, "property 'rto-min-us' is %" PRIu64
                   ", must be at most rto-max-us (%" PRIu64 ")",
                   s->xport.rto_min_ns / 1000, s->xport.rto_max_ns / 1000);
        return false;
    }
    return true;
}

const char *erdma_cc_name(const ErdmaState *s)
{
    return s->cc ? s->cc : erdma_cc_names[ERDMA_CC_CUBIC];
}

/* The transport and the simulator write '_': take both. */
static bool erdma_check_cc(ErdmaState *s, uint8_t *cc, Error **errp)
{
    g_autofree char *name = g_strdelimit(g_strdup(erdma_cc_name(s)), "_",
                                         '-');
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(erdma_cc_names); i++) {
        if (!strcmp(name, erdma_cc_names[i])) {
            *cc = i;
            return true;
        }
    }
    error_setg(errp, "property 'cc' is '%s', must be one of newreno, cubic, "
               "hpcc-rtt, hpcc-ecn, hpcc-int, none", s->cc);
    return false;
}

static bool erdma_check_int(ErdmaState *s, Error **errp)
{
    const char *mode = s->int_mode ? s->int_mode : "wide";

    s->xport.is_int_compact = !strcmp(mode, "compact");
    s->has_int = strcmp(mode, "off");
    if (s->has_int && !s->xport.is_int_compact && strcmp(mode, "wide")) {
        error_setg(errp, "property 'int' is '%s', must be one of wide, "
                   "compact, off", mode);
        return false;
    }
    if (s->xport.is_int_compact &&
        s->xport.int_hops > ERDMA_INT_COMPACT_HOPS) {
        error_setg(errp, "property 'int-hops' is %u, must be at most %d with "
                   "int=compact", s->xport.int_hops, ERDMA_INT_COMPACT_HOPS);
        return false;
    }
    return true;
}

/* The provider prints 0.high.low of the 32-bit number. */
static bool erdma_check_fw(ErdmaState *s, uint32_t *fw, Error **errp)
{
    const char *str = s->fw_version ? s->fw_version : "0.2.34";
    const char *p;
    unsigned major, minor, patch;

    if (qemu_strtoui(str, &p, 10, &major) || *p++ != '.' ||
        qemu_strtoui(p, &p, 10, &minor) || *p++ != '.' ||
        qemu_strtoui(p, &p, 10, &patch) || *p || major ||
        minor > ERDMA_FW_PART_MAX || patch > ERDMA_FW_PART_MAX) {
        error_setg(errp, "property 'firmware-version' is '%s', must be "
                   "0.MINOR.PATCH with numbers up to %d", str,
                   ERDMA_FW_PART_MAX);
        return false;
    }
    *fw = minor << 16 | patch;
    return true;
}

static bool erdma_check_rom(ErdmaState *s, Error **errp)
{
    const char *romfile = PCI_DEVICE(s)->romfile;

    if (romfile && *romfile) {
        error_setg(errp, "property 'romfile' is '%s', must be empty: the "
                   "guest driver refuses a device with an expansion ROM",
                   romfile);
        return false;
    }
    return true;
}

bool erdma_props_check(ErdmaState *s, ErdmaEngineConfig *cfg, Error **errp)
{
    uint8_t cc;

    if (!erdma_profile_apply(s, errp) || !erdma_check_wire(s, errp) ||
        !erdma_check_mtu(s, errp) || !erdma_check_rto(s, errp) ||
        !erdma_check_rom(s, errp) ||
        !erdma_check_cc(s, &cc, errp) || !erdma_check_int(s, errp)) {
        return false;
    }
    *cfg = (ErdmaEngineConfig) {
        .qblocks = (s->max_qp + 1) / ERDMA_QPS_PER_QBLOCK,
        .max_mr_size_log2 = ctz64(s->max_mr_size),
        .max_recv_wr_log2 = ctz32(s->max_recv_wr),
        .max_cqe_log2 = ctz32(s->max_cqe),
        .has_atomics = s->has_atomics,
        .has_mtt_va = s->has_mtt_va,
        .has_ext_db = s->has_ext_db,
        /* Drivers have to agree on something. */
        .default_cc = cc == ERDMA_CC_NONE ? ERDMA_CC_CUBIC : cc,
        .is_cc_off = cc == ERDMA_CC_NONE,
        .dma_local_key = ERDMA_DMA_LOCAL_KEY,
        .n_vectors = s->vectors,
        .ext_db_first = ERDMA_EXT_DB_START >> ERDMA_DB_PAGE_SHIFT,
        .n_ext_db = s->has_ext_db ? s->n_ext_db : 0,
        .seed = s->seed,
        .xport = s->xport,
    };
    if (!s->has_int) {
        cfg->xport.int_hops = 0;
    }
    if (!cfg->seed) {
        qemu_guest_getrandom_nofail(&cfg->seed, sizeof(cfg->seed));
    }
    return erdma_check_fw(s, &cfg->fw_version, errp);
}

/* Warnings */

#define HPCC    (BIT(ERDMA_CC_HPCC_RTT) | BIT(ERDMA_CC_HPCC_ECN) | \
                 BIT(ERDMA_CC_HPCC_INT))
#define LOSSY   (BIT(ERDMA_CC_NEWRENO) | BIT(ERDMA_CC_CUBIC))

/* Parameters that only some algorithms look at */
static const struct {
    const char *name;
    size_t offset;
    size_t size;
    unsigned users;             /* bit per ERDMA_CC_* */
} erdma_cc_params[] = {
#define PARAM(_name, _field, _users) \
    { _name, offsetof(ErdmaXportConfig, _field), \
      sizeof_field(ErdmaXportConfig, _field), _users }
    PARAM("line-rate", cc.line_rate, HPCC),
    PARAM("base-rtt-us", cc.base_rtt_ns, HPCC),
    PARAM("w-ai", cc.w_ai, HPCC),
    PARAM("n-flows", cc.n_flows, HPCC),
    PARAM("eta", cc.eta, HPCC),         /* w-ai is computed with it */
    PARAM("delta", cc.delta, BIT(ERDMA_CC_HPCC_RTT)),
    PARAM("max-stage", cc.max_stage,
          BIT(ERDMA_CC_HPCC_INT) | BIT(ERDMA_CC_HPCC_RTT)),
    PARAM("max-stage-ecn", cc.max_stage_ecn, BIT(ERDMA_CC_HPCC_ECN)),
    PARAM("ecn-probe", cc.has_ecn_probe, BIT(ERDMA_CC_HPCC_ECN)),
    PARAM("ecn-beta", cc.ecn_beta, LOSSY),
    PARAM("fast-convergence", cc.has_fast_convergence,
          BIT(ERDMA_CC_CUBIC)),
#undef PARAM
};

static void erdma_warn_unused(const ErdmaXportConfig *cfg, unsigned cc)
{
    ErdmaXportConfig def;
    unsigned i, j;

    erdma_xport_config_default(&def);
    for (i = 0; i < ARRAY_SIZE(erdma_cc_params); i++) {
        size_t offset = erdma_cc_params[i].offset;
        g_autoptr(GString) users = g_string_new(NULL);

        if (erdma_cc_params[i].users & BIT(cc) ||
            !memcmp((const char *)cfg + offset, (const char *)&def + offset,
                    erdma_cc_params[i].size)) {
            continue;
        }
        for (j = 0; j < ERDMA_CC_COUNT; j++) {
            if (erdma_cc_params[i].users & BIT(j)) {
                g_string_append_printf(users, "%s%s", users->len ? ", " : "",
                                       erdma_cc_names[j]);
            }
        }
        warn_report("erdma: property '%s' has no effect with cc=%s, only "
                    "with %s", erdma_cc_params[i].name, erdma_cc_names[cc],
                    users->str);
    }
}

static void erdma_warn_int(const ErdmaXportConfig *cfg, unsigned cc)
{
    ErdmaXportConfig def;

    erdma_xport_config_default(&def);
    if (cc != ERDMA_CC_HPCC_INT && cfg->int_hops &&
        cfg->int_hops != def.int_hops) {
        warn_report("erdma: property 'int-hops' has no effect with cc=%s, "
                    "only with hpcc-int", erdma_cc_names[cc]);
    }
}

static void erdma_warn_timers(const ErdmaXportConfig *cfg)
{
    if (cfg->rto_min_ns < cfg->ack_delay_ns) {
        warn_report("erdma: property 'rto-min-us' (%" PRIu64 ") is below "
                    "ack-delay-us (%" PRIu64 "), which is part of each "
                    "timeout: it has no effect", cfg->rto_min_ns / 1000,
                    cfg->ack_delay_ns / 1000);
    }
    if (cfg->initial_rto_ns > cfg->rto_max_ns) {
        warn_report("erdma: property 'rto-initial-us' (%" PRIu64 ") is above "
                    "rto-max-us (%" PRIu64 ")", cfg->initial_rto_ns / 1000,
                    cfg->rto_max_ns / 1000);
    }
    if (cfg->rnr_timeout_ns < cfg->rto_min_ns) {
        warn_report("erdma: property 'rnr-timeout-ms' (%" PRIu64 ") is below "
                    "rto-min-us (%" PRIu64 "): a peer that lacks a receive "
                    "is not asked a second time",
                    cfg->rnr_timeout_ns / 1000000, cfg->rto_min_ns / 1000);
    }
}

static void erdma_warn_windows(const ErdmaXportConfig *cfg, unsigned cc)
{
    double bdp = cfg->cc.line_rate * (double)cfg->cc.base_rtt_ns / 1e9;

    if (cfg->initial_window && cfg->initial_window < cfg->mtu) {
        warn_report("erdma: property 'initial-window' (%u) is less than one "
                    "packet of %u bytes (mtu)", cfg->initial_window,
                    cfg->mtu);
    }
    if (!(HPCC & BIT(cc)) || !cfg->cc.base_rtt_ns) {
        return;
    }
    if (bdp < cfg->mtu) {
        warn_report("erdma: properties 'line-rate' and 'base-rtt-us' make a "
                    "window of %.0f bytes, less than one packet of %u bytes "
                    "(mtu)", bdp, cfg->mtu);
    }
    if (bdp > cfg->rx_buffer) {
        warn_report("erdma: property 'rx-buffer' (%u) is less than line-rate "
                    "times base-rtt-us (%.0f): it limits what is in flight",
                    cfg->rx_buffer, bdp);
    }
}

static void erdma_warn_hpcc(const ErdmaXportConfig *cfg, unsigned cc)
{
    if (cc == ERDMA_CC_HPCC_ECN && !cfg->use_ecn) {
        warn_report("erdma: property 'ecn' is off: cc=hpcc-ecn sees no mark "
                    "and reacts to losses only");
    }
    if (cc == ERDMA_CC_HPCC_INT && !cfg->int_hops) {
        warn_report("erdma: property 'int' is off: cc=hpcc-int sees no link "
                    "and reacts to losses only");
    } else if (cc == ERDMA_CC_HPCC_INT && !erdma_xport_int_fits(cfg)) {
        warn_report("erdma: property 'int-hops' is %u, more than packets of "
                    "%u bytes (mtu) have room for: cc=hpcc-int sees no link "
                    "and reacts to losses only", cfg->int_hops, cfg->mtu);
    }
    if (HPCC & BIT(cc) && !cfg->is_paced) {
        warn_report("erdma: property 'pacing' is off: cc=%s needs it, "
                    "windows below one packet are not kept",
                    erdma_cc_names[cc]);
    }
}

void erdma_props_warn(const ErdmaEngineConfig *cfg)
{
    unsigned cc = cfg->is_cc_off ? ERDMA_CC_NONE : cfg->default_cc;

    erdma_warn_unused(&cfg->xport, cc);
    erdma_warn_int(&cfg->xport, cc);
    erdma_warn_timers(&cfg->xport);
    erdma_warn_windows(&cfg->xport, cc);
    erdma_warn_hpcc(&cfg->xport, cc);
}
