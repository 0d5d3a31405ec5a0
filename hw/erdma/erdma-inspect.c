/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Introspection: the read-only properties device-state, eqs, cqs, qps and
 * mrs, as qapi/erdma.json describes them.
 *
 * They are read in the main loop, in which the device works as well.  So a
 * list ends after ERDMA_INSPECT_MAX objects, and the property inspect-from
 * says with which number it begins.
 *
 * Reference: docs/introspection.md
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-types-erdma.h"
#include "qapi/qapi-visit-erdma.h"
#include "engine/inspect.h"
#include "erdma.h"

#define ERDMA_INSPECT_MAX   1024

static char *erdma_inspect_ip(uint32_t ip)
{
    return g_strdup_printf("%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff,
                           ip >> 8 & 0xff, ip & 0xff);
}

static void erdma_inspect_cc(ErdmaConnectionInfo *info,
                             const ErdmaXportConnInfo *c)
{
    info->algorithm = g_strdup(c->cc_name);
    info->cwnd_bytes = c->cwnd;
    info->has_ssthresh_bytes = c->ssthresh != ERDMA_CC_NO_SSTHRESH;
    info->ssthresh_bytes = c->ssthresh;
    info->pacing_bps = c->pacing_rate * 8;
    info->has_reference_bytes = c->cc.is_hpcc;
    info->reference_bytes = c->cc.reference;
    info->has_utilisation = c->cc.is_hpcc;
    info->utilisation = c->cc.u;
    info->has_alpha = c->cc.is_hpcc;
    info->alpha = c->cc.alpha;
    info->has_stage = c->cc.is_hpcc;
    info->stage = c->cc.stage;
    info->has_base_rtt_ns = c->cc.is_hpcc;
    info->base_rtt_ns = c->cc.base_rtt_ns;
    info->has_w_ai_bytes = c->cc.is_hpcc;
    info->w_ai_bytes = c->cc.w_ai;
}

static ErdmaConnectionInfo *erdma_inspect_conn(const ErdmaQpSnapshot *qp)
{
    const ErdmaXportConnInfo *c = &qp->conn;
    ErdmaConnectionInfo *info = g_new0(ErdmaConnectionInfo, 1);

    info->local_address = erdma_inspect_ip(c->local_ip);
    info->peer_address = erdma_inspect_ip(c->peer_ip);
    info->local_port = qp->local_port;
    info->peer_port = qp->peer_port;
    info->local_cookie = c->local_cookie;
    info->peer_cookie = c->peer_cookie;
    erdma_inspect_cc(info, c);
    info->inflight_bytes = c->inflight;
    info->srtt_ns = c->srtt_ns;
    info->rttvar_ns = c->rttvar_ns;
    info->min_rtt_ns = c->min_rtt_ns;
    info->rto_ns = c->rto_ns;
    info->timeouts_in_a_row = c->n_timeouts;
    info->in_recovery = c->is_in_recovery;
    info->ecn = c->is_ecn_on;
    info->reordering = c->reordering;
    info->peer_not_ready = c->is_peer_rnr;
    info->tx_msn = c->tx_msn;
    info->una_msn = c->una_msn;
    info->rx_msn = c->rx_msn;
    info->unsent_messages = c->unsent_msgs;
    info->rx_held_bytes = c->rx_held_bytes;
    info->tx_packets = c->tx_packets;
    info->rx_packets = c->rx_packets;
    info->delivered_bytes = c->tx_delivered;
    info->received_bytes = c->rx_delivered;
    info->retransmits = c->retransmits;
    info->lost = c->lost;
    info->spurious = c->spurious;
    info->probes = c->probes;
    info->rtos = c->rtos;
    info->marks = c->ce_echoed;
    info->int_samples = c->int_samples;
    info->loss_episodes = c->loss_episodes;
    info->ecn_episodes = c->ecn_episodes;
    info->undos = c->undos;
    return info;
}

static ErdmaQueuePairInfo *erdma_inspect_qp_info(const ErdmaQpSnapshot *qp)
{
    ErdmaQueuePairInfo *info = g_new0(ErdmaQueuePairInfo, 1);

    info->qpn = qp->qpn;
    info->state = qp->state;
    info->kernel = qp->is_kernel;
    info->pdn = qp->pdn;
    info->doorbell_context = qp->db_ctx;
    info->sq_cqn = qp->sq_cqn;
    info->rq_cqn = qp->rq_cqn;
    info->sq_depth = qp->sq_depth;
    info->sq_pi = qp->sq_pi;
    info->sq_next = qp->sq_next;
    info->sq_ci = qp->sq_ci;
    info->sq_wait = g_strdup(erdma_inspect_sq_wait(qp->sq_wait));
    info->sends = qp->n_sends;
    info->reads = qp->n_reads;
    info->rq_depth = qp->rq_depth;
    info->rq_pi = qp->rq_pi;
    info->rq_ci = qp->rq_ci;
    info->responses = qp->n_responses;
    info->receive_missing = qp->is_rnr;
    info->last_error = g_strdup(erdma_inspect_status(qp->last_error));
    if (qp->has_conn) {
        info->connection = erdma_inspect_conn(qp);
    }
    return info;
}

/*
 * One list: the loop of all four getters.  @_snapshot is filled by the
 * engine's function, _item(&snapshot) becomes the entry.
 */
#define ERDMA_INSPECT_LIST(_list, _s, _inspect, _snapshot, _item)           \
    do {                                                                    \
        _list **_tail = &list;                                              \
        uint32_t _number = (_s)->inspect_from;                              \
        unsigned _n = 0;                                                    \
        _snapshot _snap;                                                    \
                                                                            \
        while ((_s)->engine && _n++ < ERDMA_INSPECT_MAX &&                  \
               _inspect((_s)->engine, &_number, &_snap)) {                  \
            QAPI_LIST_APPEND(_tail, _item(&_snap));                         \
            _number++;                                                      \
        }                                                                   \
    } while (0)

static void erdma_get_qps(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    ErdmaQueuePairInfoList *list = NULL;

    ERDMA_INSPECT_LIST(ErdmaQueuePairInfoList, ERDMA(obj), erdma_inspect_qp,
                       ErdmaQpSnapshot, erdma_inspect_qp_info);
    visit_type_ErdmaQueuePairInfoList(v, name, &list, errp);
    qapi_free_ErdmaQueuePairInfoList(list);
}

static ErdmaCompletionQueueInfo *
erdma_inspect_cq_info(const ErdmaCqSnapshot *cq)
{
    ErdmaCompletionQueueInfo *info = g_new0(ErdmaCompletionQueueInfo, 1);

    info->cqn = cq->cqn;
    info->eqn = cq->eqn;
    info->depth = cq->depth;
    info->pi = cq->pi;
    info->announced = cq->announced_pi;
    info->has_ci = cq->has_ci;
    info->ci = cq->ci;
    info->armed = cq->arm;
    info->doorbell_context = cq->db_ctx;
    info->events = cq->n_events;
    info->event_held = cq->is_held;
    info->broken = cq->is_broken;
    return info;
}

static void erdma_get_cqs(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    ErdmaCompletionQueueInfoList *list = NULL;

    ERDMA_INSPECT_LIST(ErdmaCompletionQueueInfoList, ERDMA(obj),
                       erdma_inspect_cq, ErdmaCqSnapshot,
                       erdma_inspect_cq_info);
    visit_type_ErdmaCompletionQueueInfoList(v, name, &list, errp);
    qapi_free_ErdmaCompletionQueueInfoList(list);
}

static ErdmaEventQueueInfo *erdma_inspect_eq_info(const ErdmaEqSnapshot *eq)
{
    static const ErdmaEventQueueKind kinds[] = {
        [ERDMA_EQ_KIND_COMMAND] = ERDMA_EVENT_QUEUE_KIND_COMMAND,
        [ERDMA_EQ_KIND_ASYNC] = ERDMA_EVENT_QUEUE_KIND_ASYNC,
        [ERDMA_EQ_KIND_COMPLETION] = ERDMA_EVENT_QUEUE_KIND_COMPLETION,
    };
    ErdmaEventQueueInfo *info = g_new0(ErdmaEventQueueInfo, 1);

    info->eqn = eq->eqn;
    info->kind = kinds[eq->kind];
    info->vector = eq->vector;
    info->depth = eq->depth;
    info->pi = eq->pi;
    info->ci = eq->ci;
    info->pending = eq->pending;
    info->armed = eq->is_armed;
    info->held = eq->n_held;
    info->interrupts = eq->n_interrupts;
    return info;
}

static void erdma_get_eqs(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    ErdmaEventQueueInfoList *list = NULL;

    ERDMA_INSPECT_LIST(ErdmaEventQueueInfoList, ERDMA(obj), erdma_inspect_eq,
                       ErdmaEqSnapshot, erdma_inspect_eq_info);
    visit_type_ErdmaEventQueueInfoList(v, name, &list, errp);
    qapi_free_ErdmaEventQueueInfoList(list);
}

static char *erdma_inspect_access(uint8_t access)
{
    return g_strdup_printf("%c%c%c%c%c",
                           access & ERDMA_MR_ACC_LR ? 'l' : '-',
                           access & ERDMA_MR_ACC_LW ? 'L' : '-',
                           access & ERDMA_MR_ACC_RR ? 'r' : '-',
                           access & ERDMA_MR_ACC_RW ? 'R' : '-',
                           access & ERDMA_MR_ACC_RA ? 'a' : '-');
}

static ErdmaMemoryRegionInfo *erdma_inspect_mr_info(const ErdmaMrSnapshot *mr)
{
    ErdmaMemoryRegionInfo *info = g_new0(ErdmaMemoryRegionInfo, 1);

    info->index = mr->index;
    info->key = mr->key;
    info->type = mr->type;
    info->valid = mr->is_valid;
    info->pdn = mr->pdn;
    info->access = erdma_inspect_access(mr->access);
    info->start = mr->start;
    info->length = mr->len;
    info->page_bytes = (uint64_t)1 << mr->page_shift;
    info->pages = mr->n_pages;
    info->table_levels = mr->level;
    return info;
}

static void erdma_get_mrs(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    ErdmaMemoryRegionInfoList *list = NULL;

    ERDMA_INSPECT_LIST(ErdmaMemoryRegionInfoList, ERDMA(obj),
                       erdma_inspect_mr, ErdmaMrSnapshot,
                       erdma_inspect_mr_info);
    visit_type_ErdmaMemoryRegionInfoList(v, name, &list, errp);
    qapi_free_ErdmaMemoryRegionInfoList(list);
}

static void erdma_inspect_errors(ErdmaState *s, ErdmaDeviceInfo *info)
{
    info->guest_errors = s->n_guest_errors;
    if (s->n_guest_errors) {
        info->guest_error = g_strdup(s->guest_error);
    }
    if (s->has_refused_cmd) {
        info->refused_command = g_strdup_printf("%u/%u status %u",
                                                s->refused_cmd >> 8,
                                                s->refused_cmd & 0xff,
                                                s->refused_status);
    }
}

static void erdma_get_device(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    ErdmaState *s = ERDMA(obj);
    ErdmaDeviceInfo *info = g_new0(ErdmaDeviceInfo, 1);
    ErdmaDeviceSnapshot snap = { 0 };
    ErdmaEngineCounts counts = { 0 };

    if (s->engine) {
        erdma_inspect_device(s->engine, &snap);
        erdma_engine_counts(s->engine, &counts);
        info->commands = erdma_engine_stats(s->engine)->cmds;
    }
    info->ready = snap.is_ready;
    info->page_bytes = snap.page_size;
    info->mtu = snap.mtu;
    info->mac = g_strdup_printf(MAC_FMT, MAC_ARG(s->mac.a));
    info->algorithm = g_strdup(erdma_cc_name(s));
    info->command_depth = snap.cmdq_depth;
    info->command_pi = snap.cmdq_pi;
    info->command_ci = snap.cmdq_ci;
    erdma_inspect_errors(s, info);
    info->qps = counts.n_qps;
    info->max_qps = snap.max_qp;
    info->cqs = counts.n_cqs;
    info->max_cqs = snap.max_cq;
    info->mrs = counts.n_mrs;
    info->max_mrs = snap.max_mr;
    info->doorbell_pages = counts.n_ext_db;
    info->max_doorbell_pages = snap.max_ext_db;
    visit_type_ErdmaDeviceInfo(v, name, &info, errp);
    qapi_free_ErdmaDeviceInfo(info);
}

void erdma_inspect_class_init(ObjectClass *oc)
{
    static const struct {
        const char *name;
        const char *type;
        ObjectPropertyAccessor *get;
        const char *text;
    } props[] = {
        { "device-state", "ErdmaDeviceInfo", erdma_get_device,
          "the adapter as a whole, and its latest errors (read only)" },
        { "eqs", "ErdmaEventQueueInfoList", erdma_get_eqs,
          "event queues (read only)" },
        { "cqs", "ErdmaCompletionQueueInfoList", erdma_get_cqs,
          "completion queues (read only)" },
        { "qps", "ErdmaQueuePairInfoList", erdma_get_qps,
          "queue pairs and their connections (read only)" },
        { "mrs", "ErdmaMemoryRegionInfoList", erdma_get_mrs,
          "memory regions (read only)" },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(props); i++) {
        object_class_property_add(oc, props[i].name, props[i].type,
                                  props[i].get, NULL, NULL, NULL);
        object_class_property_set_description(oc, props[i].name,
                                              props[i].text);
    }
}
