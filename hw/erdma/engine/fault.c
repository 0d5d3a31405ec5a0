/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults: rules, and which events they fire on.
 *
 * Reference: docs/faults.md
 */

#include "qemu/osdep.h"
#include "engine/fault-hook.h"
#include "engine/state.h"

#define SECOND_NS       1000000000ull
#define MAX_TIME_NS     (3600 * SECOND_NS)

#define DO(_name)       (1u << ERDMA_FAULT_##_name)
#define IN_ADDITION     (DO(AEQE) | DO(CEQE) | DO(INTERRUPT) | \
                         DO(QP_FATAL) | DO(QP_DEAD))

/* What may be done at each point: bit per ErdmaFaultAction */
static const uint32_t actions_on[ERDMA_FAULT_ON_COUNT] = {
    [ERDMA_FAULT_ON_VERSION] = DO(ABSENT),
    [ERDMA_FAULT_ON_INIT] = DO(DELAY) | DO(FAIL),
    [ERDMA_FAULT_ON_COMMAND] = DO(DELAY) | DO(FAIL) | DO(DROP) |
                               DO(DUPLICATE) | IN_ADDITION,
    [ERDMA_FAULT_ON_WQE] = DO(FAIL) | DO(AEQE) | DO(QP_FATAL) |
                           DO(QP_DEAD),
    [ERDMA_FAULT_ON_MESSAGE] = DO(AEQE) | DO(QP_FATAL) | DO(QP_DEAD),
    [ERDMA_FAULT_ON_CQE] = DO(DROP) | DO(DUPLICATE) | DO(STATUS) |
                           DO(INDEX) | DO(OVERRUN) | DO(AEQE),
    [ERDMA_FAULT_ON_CEQE] = DO(DELAY) | DO(DROP) | DO(DUPLICATE),
    [ERDMA_FAULT_ON_INTERRUPT] = DO(DELAY) | DO(DROP),
    [ERDMA_FAULT_ON_DMA] = DO(FAIL),
    [ERDMA_FAULT_ON_TIMER] = IN_ADDITION,
};

void erdma_fault_config_default(ErdmaFaultConfig *cfg)
{
    *cfg = (ErdmaFaultConfig) {
        .on = ERDMA_FAULT_ON_COMMAND,
        .action = ERDMA_FAULT_FAIL,
        .opcode = ERDMA_FAULT_ANY,
        .qpn = ERDMA_FAULT_ANY,
        .cqn = ERDMA_FAULT_ANY,
        .vector = ERDMA_FAULT_ANY,
        .every = 1,
        .probability = 1,
        .status = 1,
        .event = ERDMA_AE_TYPE_QP_FATAL,
        .offset = 1,
    };
}

static char *actions_text(ErdmaFaultPoint on)
{
    GString *text = g_string_new(NULL);
    unsigned i;

    for (i = 0; i < ERDMA_FAULT_ACTION_COUNT; i++) {
        if (actions_on[on] & (1u << i)) {
            g_string_append_printf(text, "%s%s", text->len ? ", " : "",
                erdma_fault_name(ERDMA_FAULT_NAMES_ACTION, i));
        }
    }
    g_string_append_printf(text, " with on=%s",
                           erdma_fault_name(ERDMA_FAULT_NAMES_ON, on));
    return g_string_free(text, false);
}

/* Each selector means something at some points only. */
static const char *check_selectors(const ErdmaFaultConfig *cfg,
                                   char **allowed)
{
    static const struct {
        const char *name;
        uint32_t points;
        const char *text;
    } keys[] = {
#define ON(_name) (1u << ERDMA_FAULT_ON_##_name)
        { "opcode", ON(COMMAND) | ON(WQE) | ON(CQE),
          "unset, but with on=command, wqe or cqe" },
        { "qpn", ON(COMMAND) | ON(WQE) | ON(MESSAGE) | ON(CQE) | ON(TIMER),
          "unset, but with on=command, wqe, message, cqe or timer" },
        { "cqn", ON(COMMAND) | ON(CQE) | ON(CEQE) | ON(TIMER),
          "unset, but with on=command, cqe, ceqe or timer" },
        { "vector", ON(CEQE) | ON(INTERRUPT) | ON(TIMER),
          "unset, but with on=ceqe, interrupt or timer" },
        { "queue", ON(CQE), "unset, but with on=cqe" },
        { "direction", ON(DMA), "unset, but with on=dma" },
        { "min-size", ON(DMA), "unset, but with on=dma" },
#undef ON
    };
    const bool is_set[] = {
        cfg->opcode != ERDMA_FAULT_ANY, cfg->qpn != ERDMA_FAULT_ANY,
        cfg->cqn != ERDMA_FAULT_ANY, cfg->vector != ERDMA_FAULT_ANY,
        cfg->queue != ERDMA_FAULT_QUEUE_ANY,
        cfg->direction != ERDMA_FAULT_READ_WRITE, cfg->min_size != 0,
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(keys); i++) {
        if (is_set[i] && !(keys[i].points & (1u << cfg->on))) {
            *allowed = g_strdup(keys[i].text);
            return keys[i].name;
        }
    }
    return NULL;
}

const char *erdma_fault_config_check(const ErdmaFaultConfig *cfg,
                                     char **allowed)
{
    const char *key;

    if (!(actions_on[cfg->on] & (1u << cfg->action))) {
        *allowed = actions_text(cfg->on);
        return "action";
    }
    key = check_selectors(cfg, allowed);
    if (key) {
        return key;
    }
    if (!cfg->every) {
        *allowed = g_strdup("at least 1");
        return "every";
    }
    if (!(cfg->probability >= 0 && cfg->probability <= 1)) {
        *allowed = g_strdup("0 to 1");
        return "probability";
    }
    if (cfg->vector != ERDMA_FAULT_ANY && cfg->vector >= ERDMA_MAX_VECTORS) {
        *allowed = g_strdup_printf("0 to %d", ERDMA_MAX_VECTORS - 1);
        return "vector";
    }
    if (cfg->status > UINT8_MAX || cfg->event > UINT8_MAX) {
        *allowed = g_strdup("a name or 0 to 255");
        return cfg->status > UINT8_MAX ? "status" : "event";
    }
    if (cfg->delay_ns > MAX_TIME_NS || cfg->period_ns > MAX_TIME_NS) {
        *allowed = g_strdup("at most an hour");
        return cfg->delay_ns > MAX_TIME_NS ? "delay-us" : "period-us";
    }
    if (cfg->action == ERDMA_FAULT_DELAY && !cfg->delay_ns) {
        *allowed = g_strdup("more than 0 with action=delay");
        return "delay-us";
    }
    if (cfg->on == ERDMA_FAULT_ON_COMMAND && !cfg->status &&
        cfg->action == ERDMA_FAULT_FAIL) {
        *allowed = g_strdup("a name or 1 to 255 for a command that fails");
        return "status";
    }
    return NULL;
}

static void faults_note_points(ErdmaEngine *e)
{
    ErdmaFaultRule *r;

    e->faults.points = 0;
    QTAILQ_FOREACH(r, &e->faults.rules, next) {
        if (r->is_enabled) {
            e->faults.points |= 1u << r->cfg.on;
        }
    }
    erdma_engine_kick(e);       /* a timer may have to be started */
}

static void fault_restart(ErdmaFaultRule *r)
{
    const guint32 seed[2] = { r->cfg.seed, r->cfg.seed >> 32 };

    g_rand_set_seed_array(r->rand, seed, G_N_ELEMENTS(seed));
    r->matched = 0;
    r->fired = 0;
    r->due_ns = 0;
}

void erdma_fault_init(ErdmaFaultRule *r)
{
    memset(r, 0, sizeof(*r));
    erdma_fault_config_default(&r->cfg);
    r->is_enabled = true;
    r->rand = g_rand_new_with_seed(0);
    fault_restart(r);
}

void erdma_fault_destroy(ErdmaFaultRule *r)
{
    erdma_fault_attach(r, NULL);
    g_rand_free(r->rand);
}

void erdma_fault_set(ErdmaFaultRule *r, const ErdmaFaultConfig *cfg)
{
    bool is_reseeded = r->cfg.seed != cfg->seed;

    r->cfg = *cfg;
    r->due_ns = 0;
    if (is_reseeded) {
        fault_restart(r);
    }
    if (r->e) {
        faults_note_points(r->e);
    }
}

void erdma_fault_enable(ErdmaFaultRule *r, bool is_enabled)
{
    if (is_enabled && !r->is_enabled) {
        fault_restart(r);
    }
    r->is_enabled = is_enabled;
    if (r->e) {
        faults_note_points(r->e);
    }
}

void erdma_fault_attach(ErdmaFaultRule *r, ErdmaEngine *e)
{
    ErdmaEngine *old = r->e;

    if (old) {
        QTAILQ_REMOVE(&old->faults.rules, r, next);
        r->e = NULL;
        faults_note_points(old);
    }
    if (e) {
        r->e = e;
        r->due_ns = 0;
        QTAILQ_INSERT_TAIL(&e->faults.rules, r, next);
        faults_note_points(e);
    }
}

static bool is_for(uint32_t wanted, uint32_t is)
{
    return wanted == ERDMA_FAULT_ANY || wanted == is;
}

static bool fault_fits(const ErdmaFaultConfig *cfg, const ErdmaFaultEvent *ev)
{
    return is_for(cfg->opcode, ev->opcode) && is_for(cfg->qpn, ev->qpn) &&
           is_for(cfg->cqn, ev->cqn) && is_for(cfg->vector, ev->vector) &&
           (!cfg->queue || cfg->queue == ev->queue) &&
           (!cfg->direction || cfg->direction == ev->direction) &&
           ev->size >= cfg->min_size;
}

/* An event that fits; does the rule fire on it? */
static bool fault_fires(ErdmaFaultRule *r)
{
    const ErdmaFaultConfig *cfg = &r->cfg;
    uint64_t index = r->matched++;
    /* One number for each event, so that they do not depend on the rest. */
    bool is_lucky = cfg->probability >= 1 ||
                    g_rand_double(r->rand) < cfg->probability;

    if (index < cfg->after || (index - cfg->after) % cfg->every ||
        (cfg->count && r->fired >= cfg->count) || !is_lucky) {
        return false;
    }
    return true;
}

/* The number that tells most of the event, for the trace */
static uint32_t fault_number(const ErdmaFaultEvent *ev)
{
    return ev->qpn != ERDMA_FAULT_ANY ? ev->qpn :
           ev->cqn != ERDMA_FAULT_ANY ? ev->cqn :
           ev->vector != ERDMA_FAULT_ANY ? ev->vector :
           ev->opcode != ERDMA_FAULT_ANY ? ev->opcode : 0;
}

/* Returns whether the rule changes the event, if it still @may. */
static bool fault_apply(ErdmaEngine *e, ErdmaFaultRule *r,
                        const ErdmaFaultEvent *ev, bool may)
{
    bool is_addition = IN_ADDITION & (1u << r->cfg.action);

    if (!fault_fires(r) || !(may || is_addition)) {
        return false;
    }
    r->fired++;
    erdma_trace(e, ERDMA_EV_FAULT, fault_number(ev), r->cfg.on,
                r->cfg.action);
    if (is_addition) {
        erdma_fault_act(e, &r->cfg, ev);
    }
    return !is_addition;
}

const ErdmaFaultConfig *erdma_fault_meet(ErdmaEngine *e,
                                         ErdmaFaultPoint point,
                                         const ErdmaFaultEvent *ev)
{
    const ErdmaFaultConfig *change = NULL;
    ErdmaFaultRule *r;

    QTAILQ_FOREACH(r, &e->faults.rules, next) {
        if (r->cfg.on == point && r->is_enabled &&
            fault_fits(&r->cfg, ev) && fault_apply(e, r, ev, !change)) {
            change = &r->cfg;
        }
    }
    return change;
}

void erdma_fault_tick(ErdmaEngine *e, ErdmaFaultRule *r)
{
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    fault_apply(e, r, &ev, false);
}

void erdma_faults_init(ErdmaEngine *e)
{
    QTAILQ_INIT(&e->faults.rules);
    QTAILQ_INIT(&e->faults.late);
}

void erdma_faults_exit(ErdmaEngine *e)
{
    ErdmaFaultRule *r;

    while ((r = QTAILQ_FIRST(&e->faults.rules))) {
        QTAILQ_REMOVE(&e->faults.rules, r, next);
        r->e = NULL;
    }
    e->faults.points = 0;
}

/* The points that need no more than a look */

bool erdma_engine_fault_version(ErdmaEngine *e)
{
    ErdmaFaultEvent ev;

    if (!erdma_fault_watches(e, ERDMA_FAULT_ON_VERSION)) {
        return false;
    }
    erdma_fault_event_init(&ev);
    return erdma_fault_meet(e, ERDMA_FAULT_ON_VERSION, &ev);
}

bool erdma_engine_fault_init(ErdmaEngine *e, uint64_t *delay_ns)
{
    const ErdmaFaultConfig *cfg;
    ErdmaFaultEvent ev;

    *delay_ns = 0;
    if (!erdma_fault_watches(e, ERDMA_FAULT_ON_INIT)) {
        return true;
    }
    erdma_fault_event_init(&ev);
    cfg = erdma_fault_meet(e, ERDMA_FAULT_ON_INIT, &ev);
    if (cfg && cfg->action == ERDMA_FAULT_DELAY) {
        *delay_ns = cfg->delay_ns;
    }
    return !cfg || cfg->action != ERDMA_FAULT_FAIL;
}

static bool is_cmd(uint32_t opcode, unsigned first, unsigned second,
                   unsigned third)
{
    return opcode == first || opcode == second || opcode == third;
}

void erdma_fault_command(ErdmaEngine *e, uint32_t opcode, uint32_t object,
                         ErdmaFaultCmd *f)
{
    const ErdmaFaultConfig *cfg;
    ErdmaFaultEvent ev;

    *f = (ErdmaFaultCmd) { .n_answers = 1 };
    erdma_fault_event_init(&ev);
    ev.opcode = opcode;
    if (is_cmd(opcode, ERDMA_CMD_CREATE_QP, ERDMA_CMD_DESTROY_QP,
               ERDMA_CMD_MODIFY_QP) || opcode == ERDMA_CMD_REFLUSH) {
        ev.qpn = object;
    } else if (is_cmd(opcode, ERDMA_CMD_CREATE_CQ, ERDMA_CMD_DESTROY_CQ,
                      ERDMA_CMD_DESTROY_CQ)) {
        ev.cqn = object;
    }
    cfg = erdma_fault_meet(e, ERDMA_FAULT_ON_COMMAND, &ev);
    if (!cfg) {
        return;
    }
    switch (cfg->action) {
    case ERDMA_FAULT_DELAY:
        f->is_delayed = true;
        e->faults.cmd_until_ns = e->now_ns + cfg->delay_ns;
        break;
    case ERDMA_FAULT_DUPLICATE:
        f->n_answers = 2;
        break;
    case ERDMA_FAULT_DROP:
        f->n_answers = 0;
        f->is_skipped = !cfg->is_executed;
        break;
    default:
        f->has_status = true;
        f->status = cfg->status;
        f->is_skipped = !cfg->is_executed;
        break;
    }
}

uint8_t erdma_fault_wqe(ErdmaEngine *e, ErdmaQp *qp, uint8_t opcode)
{
    const ErdmaFaultConfig *cfg;
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    ev.qpn = qp->qpn;
    ev.opcode = opcode;
    cfg = erdma_fault_meet(e, ERDMA_FAULT_ON_WQE, &ev);
    return cfg ? cfg->status : ERDMA_WC_SUCCESS;
}

void erdma_fault_message(ErdmaEngine *e, ErdmaQp *qp)
{
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    ev.qpn = qp->qpn;
    erdma_fault_meet(e, ERDMA_FAULT_ON_MESSAGE, &ev);
}

unsigned erdma_fault_cqe(ErdmaEngine *e, ErdmaCq *cq, ErdmaCqe *cqe)
{
    const ErdmaFaultConfig *cfg;
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    ev.qpn = cqe->qpn;
    ev.cqn = cq->cqn;
    ev.opcode = cqe->opcode;
    ev.queue = cqe->qtype == ERDMA_CQE_QTYPE_SQ ? ERDMA_FAULT_QUEUE_SQ :
               ERDMA_FAULT_QUEUE_RQ;
    cfg = erdma_fault_meet(e, ERDMA_FAULT_ON_CQE, &ev);
    if (!cfg) {
        return 1;
    }
    switch (cfg->action) {
    case ERDMA_FAULT_DUPLICATE:
        return 2;
    case ERDMA_FAULT_STATUS:
        cqe->status = cfg->status;
        return 1;
    case ERDMA_FAULT_INDEX:
        cqe->index += cfg->offset;
        return 1;
    case ERDMA_FAULT_OVERRUN:
        cq->is_broken = true;
        erdma_aeq_post(e, ERDMA_AE_TYPE_CQ_ERR, cq->cqn);
        return 0;
    default:
        return 0;
    }
}

unsigned erdma_fault_ceqe(ErdmaEngine *e, const ErdmaCq *cq)
{
    const ErdmaFaultConfig *cfg;
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    ev.cqn = cq->cqn;
    ev.vector = cq->eqn;
    cfg = erdma_fault_meet(e, ERDMA_FAULT_ON_CEQE, &ev);
    if (!cfg) {
        return 1;
    }
    if (cfg->action == ERDMA_FAULT_DELAY) {
        erdma_fault_put_off_ceqe(e, cq, cfg->delay_ns);
    }
    return cfg->action == ERDMA_FAULT_DUPLICATE ? 2 : 0;
}

bool erdma_fault_interrupt(ErdmaEngine *e, unsigned vector)
{
    const ErdmaFaultConfig *cfg;
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    ev.vector = vector;
    cfg = erdma_fault_meet(e, ERDMA_FAULT_ON_INTERRUPT, &ev);
    if (cfg && cfg->action == ERDMA_FAULT_DELAY) {
        erdma_fault_put_off_vector(e, vector, cfg->delay_ns);
    }
    return !cfg;
}

bool erdma_fault_dma(ErdmaEngine *e, bool is_write, size_t len)
{
    ErdmaFaultEvent ev;

    erdma_fault_event_init(&ev);
    ev.direction = is_write ? ERDMA_FAULT_WRITE : ERDMA_FAULT_READ;
    ev.size = len;
    return erdma_fault_meet(e, ERDMA_FAULT_ON_DMA, &ev);
}
