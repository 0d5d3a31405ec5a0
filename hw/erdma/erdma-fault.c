/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * erdma-fault: a rule of what an HCA does wrong, as a QEMU object.
 *
 * The object may be older than its device, outlive it, and be found by the
 * next one of the same id: what a guest sees from its first access on can be
 * faulty, hot-plugged or not.
 *
 * Reference: docs/faults.md
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/cutils.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qom/object_interfaces.h"
#include "erdma.h"

#define TYPE_ERDMA_FAULT "erdma-fault"
OBJECT_DECLARE_SIMPLE_TYPE(ErdmaFault, ERDMA_FAULT)

/* Keys whose values are names */
typedef enum ErdmaFaultText {
    TEXT_ON,
    TEXT_ACTION,
    TEXT_OPCODE,
    TEXT_STATUS,
    TEXT_EVENT,
    TEXT_QUEUE,
    TEXT_DIRECTION,
    TEXT_COUNT,
} ErdmaFaultText;

struct ErdmaFault {
    Object parent_obj;

    char *device;
    char *text[TEXT_COUNT];     /* as set; NULL: the default */
    ErdmaFaultConfig numbers;   /* all but what @text says */
    bool is_complete;
    ErdmaFaultRule rule;
};

typedef enum ErdmaFaultKind {
    KIND_U32,
    KIND_U64,
    KIND_US,                    /* microseconds; the field has ns */
    KIND_I32,
    KIND_NUMBER,
    KIND_BOOL,
} ErdmaFaultKind;

typedef struct ErdmaFaultKey {
    const char *name;
    const char *help;
    ErdmaFaultKind kind;
    size_t offset;              /* in ErdmaFaultConfig */
} ErdmaFaultKey;

#define KEY(_name, _kind, _field, _help) \
    { _name, _help, KIND_##_kind, offsetof(ErdmaFaultConfig, _field) }

static const ErdmaFaultKey fault_keys[] = {
    KEY("qpn", U32, qpn, "only this queue pair; with on=timer: whom it hits"),
    KEY("cqn", U32, cqn, "only this completion queue"),
    KEY("vector", U32, vector, "only this MSI-X vector or CEQ"),
    KEY("min-size", U64, min_size, "dma: only accesses of so many bytes"),
    KEY("after", U64, after, "skip the first so many"),
    KEY("every", U64, every, "then hit each n-th (default: 1)"),
    KEY("count", U64, count, "at most so often; 0: no end (default: 0)"),
    KEY("probability", NUMBER, probability,
        "of each of those, 0 to 1 (default: 1)"),
    KEY("seed", U64, seed, "of the random numbers (default: 0)"),
    KEY("delay-us", US, delay_ns, "delay: how long"),
    KEY("period-us", US, period_ns,
        "timer: how often; 0: once, at once (default: 0)"),
    KEY("offset", I32, offset, "index: what is added (default: 1)"),
    KEY("executed", BOOL, is_executed,
        "command: execute what fails or is lost (default: off)"),
};

typedef struct ErdmaFaultTextKey {
    const char *name;
    const char *help;
} ErdmaFaultTextKey;

static const ErdmaFaultTextKey fault_texts[TEXT_COUNT] = {
    [TEXT_ON] = { "on", "the event: version, init, command, wqe, message, "
                  "cqe, ceqe, interrupt, dma or timer" },
    [TEXT_ACTION] = { "action", "what happens: absent, delay, fail, drop, "
                      "duplicate, status, index, overrun, aeqe, ceqe, "
                      "interrupt, qp-fatal or qp-dead" },
    [TEXT_OPCODE] = { "opcode", "only this command or operation" },
    [TEXT_STATUS] = { "status", "of the command or completion: a name, or 0 "
                      "to 255 (default: 1)" },
    [TEXT_EVENT] = { "event", "aeqe: its type, a name, or 0 to 255 "
                     "(default: qp-fatal)" },
    [TEXT_QUEUE] = { "queue", "cqe: only of this one, sq or rq" },
    [TEXT_DIRECTION] = { "direction", "dma: only read or write" },
};

static void *fault_field(ErdmaFaultConfig *cfg, const ErdmaFaultKey *key)
{
    return (char *)cfg + key->offset;
}

/* A name, or a number where @has_numbers; NULL leaves *@value alone. */
static bool fault_resolve(const ErdmaFault *f, ErdmaFaultText key,
                          ErdmaFaultNames names, bool has_numbers,
                          uint32_t *value, Error **errp)
{
    const char *text = f->text[key];
    g_autofree char *list = NULL;
    uint64_t number;

    if (!text || erdma_fault_value(names, text, value)) {
        return true;
    }
    if (has_numbers && !parse_uint_full(text, 10, &number) &&
        number <= UINT8_MAX) {
        *value = number;
        return true;
    }
    list = erdma_fault_list(names);
    error_setg(errp, "erdma-fault: property '%s' is '%s', must be one of %s%s",
               fault_texts[key].name, text, list,
               has_numbers ? ", or 0 to 255" : "");
    return false;
}

/* What the properties say together, or an error */
static bool fault_config(const ErdmaFault *f, ErdmaFaultConfig *cfg,
                         Error **errp)
{
    uint32_t on, action, queue = 0, direction = 0;
    g_autofree char *allowed = NULL;
    const char *key;
    bool is_command;

    *cfg = f->numbers;
    on = cfg->on;
    action = cfg->action;
    if (!fault_resolve(f, TEXT_ON, ERDMA_FAULT_NAMES_ON, false, &on, errp)) {
        return false;
    }
    is_command = on == ERDMA_FAULT_ON_COMMAND;
    if (!fault_resolve(f, TEXT_ACTION, ERDMA_FAULT_NAMES_ACTION, false,
                       &action, errp) ||
        !fault_resolve(f, TEXT_OPCODE, is_command ?
                       ERDMA_FAULT_NAMES_COMMAND :
                       ERDMA_FAULT_NAMES_OPERATION, false,
                       &cfg->opcode, errp) ||
        !fault_resolve(f, TEXT_STATUS,
                       is_command && action != ERDMA_FAULT_QP_FATAL ?
                       ERDMA_FAULT_NAMES_CMD_STATUS :
                       ERDMA_FAULT_NAMES_WC_STATUS, true,
                       &cfg->status, errp) ||
        !fault_resolve(f, TEXT_EVENT, ERDMA_FAULT_NAMES_EVENT, true,
                       &cfg->event, errp) ||
        !fault_resolve(f, TEXT_QUEUE, ERDMA_FAULT_NAMES_QUEUE, false,
                       &queue, errp) ||
        !fault_resolve(f, TEXT_DIRECTION, ERDMA_FAULT_NAMES_DIRECTION, false,
                       &direction, errp)) {
        return false;
    }
    cfg->on = on;
    cfg->action = action;
    cfg->queue = queue;
    cfg->direction = direction;
    key = erdma_fault_config_check(cfg, &allowed);
    if (key) {
        error_setg(errp, "erdma-fault: property '%s' must be %s", key,
                   allowed);
        return false;
    }
    return true;
}

/* Before the object is complete its properties need not fit together. */
static bool fault_apply(ErdmaFault *f, Error **errp)
{
    ErdmaFaultConfig cfg;

    if (!f->is_complete) {
        return true;
    }
    if (!fault_config(f, &cfg, errp)) {
        return false;
    }
    erdma_fault_set(&f->rule, &cfg);
    return true;
}

/* Properties */

static bool fault_visit(const ErdmaFaultKey *key, Visitor *v,
                        const char *name, void *field, Error **errp)
{
    uint64_t us;

    switch (key->kind) {
    case KIND_U32:
        return visit_type_uint32(v, name, field, errp);
    case KIND_U64:
        return visit_type_uint64(v, name, field, errp);
    case KIND_I32:
        return visit_type_int32(v, name, field, errp);
    case KIND_NUMBER:
        return visit_type_number(v, name, field, errp);
    case KIND_BOOL:
        return visit_type_bool(v, name, field, errp);
    case KIND_US:
        us = *(uint64_t *)field / SCALE_US;
        if (!visit_type_uint64(v, name, &us, errp)) {
            return false;
        }
        /* What does not fit is beyond every limit anyway. */
        *(uint64_t *)field = MIN(us, UINT64_MAX / SCALE_US) * SCALE_US;
        return true;
    }
    g_assert_not_reached();
}

static void fault_get(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    ErdmaFaultConfig cfg = ERDMA_FAULT(obj)->numbers;

    fault_visit(opaque, v, name, fault_field(&cfg, opaque), errp);
}

static void fault_set(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    ErdmaFault *f = ERDMA_FAULT(obj);
    ErdmaFaultConfig old = f->numbers;

    if (!fault_visit(opaque, v, name, fault_field(&f->numbers, opaque),
                     errp) || !fault_apply(f, errp)) {
        f->numbers = old;
    }
}

static void fault_get_text(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    const ErdmaFaultTextKey *key = opaque;
    char *text = ERDMA_FAULT(obj)->text[key - fault_texts];
    char *shown = text ? text : (char *)"";

    visit_type_str(v, name, &shown, errp);
}

static void fault_set_text(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    ErdmaFault *f = ERDMA_FAULT(obj);
    const ErdmaFaultTextKey *key = opaque;
    char **text = &f->text[key - fault_texts];
    char *old = *text;

    if (!visit_type_str(v, name, text, errp)) {
        *text = old;
    } else if (!fault_apply(f, errp)) {
        g_free(*text);
        *text = old;
    } else {
        g_free(old);
    }
}

static char *fault_get_device(Object *obj, Error **errp)
{
    return g_strdup(ERDMA_FAULT(obj)->device);
}

static void fault_set_device(Object *obj, const char *value, Error **errp)
{
    ErdmaFault *f = ERDMA_FAULT(obj);

    if (f->is_complete) {
        error_setg(errp, "erdma-fault: property 'device' cannot be changed "
                   "any more");
        return;
    }
    g_free(f->device);
    f->device = g_strdup(value);
}

static bool fault_get_enabled(Object *obj, Error **errp)
{
    return ERDMA_FAULT(obj)->rule.is_enabled;
}

static void fault_set_enabled(Object *obj, bool value, Error **errp)
{
    erdma_fault_enable(&ERDMA_FAULT(obj)->rule, value);
}

static bool fault_get_attached(Object *obj, Error **errp)
{
    return ERDMA_FAULT(obj)->rule.e;
}

static void fault_get_counter(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    const ErdmaFaultRule *r = &ERDMA_FAULT(obj)->rule;
    uint64_t value = strcmp(name, "fired") ? r->matched : r->fired;

    visit_type_uint64(v, name, &value, errp);
}

/* Life */

static void fault_complete(UserCreatable *uc, Error **errp)
{
    ErdmaFault *f = ERDMA_FAULT(uc);
    ErdmaFaultConfig cfg;
    Object *device;

    if (!f->device) {
        error_setg(errp, "erdma-fault: property 'device' must be the id of "
                   "an erdma device, which may come later");
        return;
    }
    if (!fault_config(f, &cfg, errp)) {
        return;
    }
    f->is_complete = true;
    erdma_fault_set(&f->rule, &cfg);
    device = object_resolve_path_type(f->device, TYPE_ERDMA, NULL);
    if (device && DEVICE(device)->realized) {
        erdma_fault_attach(&f->rule, ERDMA(device)->engine);
    }
}

static int fault_attach_if(Object *obj, void *opaque)
{
    ErdmaFault *f = (ErdmaFault *)object_dynamic_cast(obj, TYPE_ERDMA_FAULT);
    ErdmaState *s = opaque;

    if (f && f->is_complete && !strcmp(f->device, DEVICE(s)->id)) {
        erdma_fault_attach(&f->rule, s->engine);
    }
    return 0;
}

void erdma_faults_attach(ErdmaState *s)
{
    if (DEVICE(s)->id) {
        object_child_foreach(object_get_objects_root(), fault_attach_if, s);
    }
}

static void fault_init(Object *obj)
{
    ErdmaFault *f = ERDMA_FAULT(obj);

    erdma_fault_config_default(&f->numbers);
    erdma_fault_init(&f->rule);
}

static void fault_finalize(Object *obj)
{
    ErdmaFault *f = ERDMA_FAULT(obj);
    unsigned i;

    erdma_fault_destroy(&f->rule);
    for (i = 0; i < TEXT_COUNT; i++) {
        g_free(f->text[i]);
    }
    g_free(f->device);
}

static void fault_describe(ObjectClass *oc, const char *name,
                           const char *text)
{
    object_class_property_set_description(oc, name, text);
}

static void fault_class_init(ObjectClass *oc, ERDMA_CLASS_DATA *data)
{
    static const char *const types[] = {
        [KIND_U32] = "uint32", [KIND_U64] = "uint64", [KIND_US] = "uint64",
        [KIND_I32] = "int32", [KIND_NUMBER] = "number", [KIND_BOOL] = "bool",
    };
    unsigned i;

    USER_CREATABLE_CLASS(oc)->complete = fault_complete;
    object_class_property_add_str(oc, "device", fault_get_device,
                                  fault_set_device);
    fault_describe(oc, "device", "id of the HCA");
    for (i = 0; i < TEXT_COUNT; i++) {
        object_class_property_add(oc, fault_texts[i].name, "str",
                                  fault_get_text, fault_set_text, NULL,
                                  (void *)&fault_texts[i]);
        fault_describe(oc, fault_texts[i].name, fault_texts[i].help);
    }
    for (i = 0; i < ARRAY_SIZE(fault_keys); i++) {
        object_class_property_add(oc, fault_keys[i].name,
                                  types[fault_keys[i].kind], fault_get,
                                  fault_set, NULL, (void *)&fault_keys[i]);
        fault_describe(oc, fault_keys[i].name, fault_keys[i].help);
    }
    object_class_property_add_bool(oc, "enabled", fault_get_enabled,
                                   fault_set_enabled);
    fault_describe(oc, "enabled", "switching it on begins anew");
    object_class_property_add_bool(oc, "attached", fault_get_attached, NULL);
    fault_describe(oc, "attached", "is the device there?");
    object_class_property_add(oc, "matched", "uint64", fault_get_counter,
                              NULL, NULL, NULL);
    fault_describe(oc, "matched", "events that the rule is about");
    object_class_property_add(oc, "fired", "uint64", fault_get_counter, NULL,
                              NULL, NULL);
    fault_describe(oc, "fired", "of them, those that it fired on");
}

static const TypeInfo fault_info = {
    .name = TYPE_ERDMA_FAULT,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(ErdmaFault),
    .instance_init = fault_init,
    .instance_finalize = fault_finalize,
    .class_init = fault_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void erdma_fault_register_types(void)
{
    type_register_static(&fault_info);
}

type_init(erdma_fault_register_types)
