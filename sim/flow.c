/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: flows, each of them messages over one connection. */

#include "qemu/osdep.h"
#include "sim-int.h"

static bool has_more(const SimFlow *f)
{
    const SimFlowSpec *spec = &f->spec;

    if (spec->stop_ns && f->sim->now_ns >= spec->stop_ns) {
        return false;
    }
    return !spec->n_msgs || f->n_queued < spec->n_msgs;
}

static void queue_msg(SimFlow *f, ErdmaXportMsg *msg)
{
    msg->hdr.op = ERDMA_XPORT_OP_WRITE;
    msg->hdr.len = f->spec.msg_len;
    f->n_queued++;
    erdma_xport_conn_send(f->end[0].conn, msg);
}

static void flow_fire(SimEvent *e, uint64_t now_ns)
{
    SimFlow *f = (SimFlow *)e;
    unsigned i;

    for (i = 0; i < f->spec.depth && has_more(f); i++) {
        queue_msg(f, &f->msgs[i]);
    }
    sim_host_poll(f->sim->hosts->pdata[f->spec.src]);
}

static void is_over(SimFlow *f)
{
    if (!f->is_over && f->spec.n_msgs) {
        f->sim->n_unfinished--;
    }
    f->is_over = true;
}

ErdmaXportRx sim_flow_rx(SimEnd *end, uint32_t msn, uint32_t off,
                         uint32_t len, bool is_last)
{
    SimFlowStats *st = &end->flow->stats;

    if (!end->is_receiver || msn != end->rx_msn || off != end->rx_off) {
        st->order_errors++;
    }
    end->delivered_bytes += len;
    end->rx_off = off + len;
    end->rx_msn = msn;
    if (is_last) {
        end->rx_msn++;
        end->rx_off = 0;
        st->delivered_msgs++;
        st->last_delivered_ns = end->sim->now_ns;
        if (!st->first_delivered_ns) {
            st->first_delivered_ns = end->sim->now_ns;
        }
    }
    return ERDMA_XPORT_RX_OK;
}

void sim_flow_msg_done(SimEnd *end, ErdmaXportMsg *msg)
{
    SimFlow *f = end->flow;
    SimFlowStats *st = &f->stats;

    st->done_msgs++;
    st->last_done_ns = f->sim->now_ns;
    if (!st->first_done_ns) {
        st->first_done_ns = f->sim->now_ns;
    }
    if (has_more(f)) {
        queue_msg(f, msg);
    } else if (st->done_msgs == f->n_queued) {
        is_over(f);
    }
}

void sim_flow_failed(SimEnd *end)
{
    end->flow->stats.is_failed = true;
    is_over(end->flow);
}

/* Packet numbers from the flow's first one on */
static void relative(const SimEnd *end, ErdmaXportEvent event, uint64_t *a,
                     uint64_t *b)
{
    switch (event) {
    case ERDMA_XPORT_EV_RETRANSMIT:
        *b = (uint32_t)(*b - end->pn0);
        *a = (uint32_t)(*a - end->pn0);
        break;
    case ERDMA_XPORT_EV_SEND:
    case ERDMA_XPORT_EV_LOST:
    case ERDMA_XPORT_EV_SPURIOUS:
    case ERDMA_XPORT_EV_PROBE:
        *a = (uint32_t)(*a - end->pn0);
        break;
    case ERDMA_XPORT_EV_DROP:
        *b = (uint32_t)(*b - end->pn0);
        break;
    default:
        break;
    }
}

void sim_flow_trace(SimEnd *end, ErdmaXportEvent event, uint64_t a,
                    uint64_t b)
{
    Sim *s = end->sim;

    relative(end, event, &a, &b);
    sim_mix(s, s->now_ns);
    sim_mix(s, (uint64_t)end->number << 8 | event << 1 | end->is_receiver);
    sim_mix(s, a);
    sim_mix(s, b);
    if (s->trace && !end->is_receiver) {
        s->trace(s->trace_opaque, end->number, s->now_ns, event, a, b);
    }
}

unsigned sim_add_flow(Sim *s, const SimFlowSpec *spec)
{
    SimFlow *f = sim_alloc(sizeof(*f));
    unsigned number = s->flows->len;
    unsigned host[2] = { spec->src, spec->dst };
    unsigned i;

    g_assert(spec->src < s->hosts->len && spec->dst < s->hosts->len);
    f->sim = s;
    f->spec = *spec;
    f->spec.depth = spec->depth ? spec->depth : 2;
    f->msgs = g_new0(ErdmaXportMsg, f->spec.depth);
    f->event.fire = flow_fire;
    for (i = 0; i < 2; i++) {
        SimHost *h = s->hosts->pdata[host[i]];
        ErdmaXportConnParams p = {
            .local_cookie = 2 * number + i + 1,
            .peer_cookie = 2 * number + !i + 1,
            .local_ip = SIM_IP_BASE + host[i],
            .peer_ip = SIM_IP_BASE + host[!i],
            .tx_pn0 = spec->pn0,
            .rx_pn0 = spec->pn0,
            .cc = spec->cc,
            .owner = &f->end[i],
        };

        f->end[i].flow = f;
        f->end[i].sim = s;
        f->end[i].number = number;
        f->end[i].pn0 = spec->pn0;
        f->end[i].is_receiver = i;
        f->end[i].conn = erdma_xport_conn_open(h->x, &p, s->now_ns);
        sim_schedule(s, &h->event, s->now_ns);
    }
    s->n_unfinished += spec->n_msgs != 0;
    g_ptr_array_add(s->flows, f);
    sim_schedule(s, &f->event, MAX(spec->start_ns, s->now_ns));
    return number;
}

void sim_flow_free(SimFlow *f)
{
    g_free(f->msgs);
    free(f);
}

unsigned sim_n_flows(const Sim *s)
{
    return s->flows->len;
}

static SimFlow *get(const Sim *s, unsigned flow)
{
    g_assert(flow < s->flows->len);
    return s->flows->pdata[flow];
}

const SimFlowSpec *sim_flow_spec(const Sim *s, unsigned flow)
{
    return &get(s, flow)->spec;
}

const SimFlowStats *sim_flow_stats(const Sim *s, unsigned flow)
{
    SimFlow *f = get(s, flow);

    f->stats.delivered_bytes = f->end[1].delivered_bytes;
    return &f->stats;
}

void sim_flow_info(const Sim *s, unsigned flow, ErdmaXportConnInfo *info)
{
    erdma_xport_conn_info(get(s, flow)->end[0].conn, info);
}
