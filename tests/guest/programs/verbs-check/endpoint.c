/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One end of an RC connection: set-up, posting, completions, patterns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

#define CM_TIMEOUT 20000

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

const char *status_name(int status)
{
    static const char *const names[] = {
        "success", "local-length", "local-qp-operation", "local-eec",
        "local-protection", "flushed", "mw-bind", "bad-response",
        "local-access", "remote-invalid-request", "remote-access",
        "remote-operation", "retry-exceeded", "rnr-retry-exceeded",
        "local-rdd", "remote-invalid-rd", "remote-aborted", "invalid-eec",
        "invalid-eec-state", "fatal", "response-timeout", "general",
    };

    if (status < 0 || status >= (int)(sizeof(names) / sizeof(names[0]))) {
        return "unknown";
    }
    return names[status];
}

static uint8_t pattern(size_t i, uint32_t seed)
{
    uint32_t x = (uint32_t)i * 2654435761u + seed * 2246822519u;

    return (x ^ x >> 15) * 2654435769u >> 24;
}

void pattern_fill(uint8_t *p, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        p[i] = pattern(i, seed);
    }
}

long pattern_check(const uint8_t *p, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != pattern(i, seed)) {
            return i;
        }
    }
    return -1;
}

static bool fail(Endpoint *ep, const char *what)
{
    snprintf(ep->problem, sizeof(ep->problem), "%s: %s", what,
             strerror(errno));
    return false;
}

bool ep_cm_wait(Endpoint *ep, enum rdma_cm_event_type type, int ms,
                struct rdma_cm_event **event)
{
    struct pollfd p = { ep->cm->fd, POLLIN, 0 };
    struct rdma_cm_event *e;

    if (poll(&p, 1, ms) <= 0) {
        errno = ETIMEDOUT;
        return fail(ep, rdma_event_str(type));
    }
    if (rdma_get_cm_event(ep->cm, &e)) {
        return fail(ep, "rdma_get_cm_event");
    }
    if (e->event != type) {
        snprintf(ep->problem, sizeof(ep->problem), "%s (%d) instead of %s",
                 rdma_event_str(e->event), e->status, rdma_event_str(type));
        rdma_ack_cm_event(e);
        return false;
    }
    if (event) {
        *event = e;
    } else {
        rdma_ack_cm_event(e);
    }
    return true;
}

bool ep_create(Endpoint *ep, int depth, bool has_channel)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                 IBV_ACCESS_REMOTE_READ;
    struct ibv_context *verbs = ep->id->verbs;
    struct ibv_device_attr device;
    struct ibv_qp_init_attr attr;
    static const uint32_t caps[][2] = {     /* send SGEs, inline */
        { MAX_SGE, MAX_INLINE }, { MAX_SGE, 0 }, { 1, 0 },
    };
    int fd = verbs->async_fd;

    if (ibv_query_device(verbs, &device)) {
        return fail(ep, "ibv_query_device");
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    ep->depth = depth;
    ep->is_disconnected = false;
    ep->pd = ibv_alloc_pd(verbs);
    ep->other_pd = ibv_alloc_pd(verbs);
    if (!ep->pd || !ep->other_pd) {
        return fail(ep, "ibv_alloc_pd");
    }
    if (has_channel) {
        ep->channel = ibv_create_comp_channel(verbs);
        if (!ep->channel) {
            return fail(ep, "ibv_create_comp_channel");
        }
    }
    ep->cq = ibv_create_cq(verbs, 2 * depth, NULL, ep->channel, 0);
    if (!ep->cq) {
        return fail(ep, "ibv_create_cq");
    }
    for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
        /* Less for the devices that we are compared with. */
        attr = (struct ibv_qp_init_attr) {
            .send_cq = ep->cq, .recv_cq = ep->cq, .qp_type = IBV_QPT_RC,
            .cap = { depth, depth, caps[i][0], 1, caps[i][1] },
        };
        if (!rdma_create_qp(ep->id, ep->pd, &attr)) {
            break;
        }
    }
    if (!ep->id->qp) {
        return fail(ep, "rdma_create_qp");
    }
    ep->max_sge = attr.cap.max_send_sge;
    ep->max_inline = attr.cap.max_inline_data;
    ep->mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ep->mem == MAP_FAILED) {
        ep->mem = NULL;
        return fail(ep, "mmap");
    }
    ep->has_remote_atomic = device.atomic_cap != IBV_ATOMIC_NONE;
    if (ep->has_remote_atomic) {
        access |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    ep->mr = ibv_reg_mr(ep->pd, ep->mem, MEM_LEN, access);
    return ep->mr || fail(ep, "ibv_reg_mr");
}

void ep_destroy(Endpoint *ep)
{
    if (ep->id) {
        if (ep->id->qp) {
            rdma_disconnect(ep->id);
            rdma_destroy_qp(ep->id);
        }
        if (ep->aux_mr) {
            ibv_dereg_mr(ep->aux_mr);
        }
        if (ep->mr) {
            ibv_dereg_mr(ep->mr);
        }
        if (ep->cq) {
            if (ep->n_cq_events) {
                ibv_ack_cq_events(ep->cq, ep->n_cq_events);
            }
            ibv_destroy_cq(ep->cq);
        }
        if (ep->channel) {
            ibv_destroy_comp_channel(ep->channel);
        }
        if (ep->pd) {
            ibv_dealloc_pd(ep->pd);
        }
        if (ep->other_pd) {
            ibv_dealloc_pd(ep->other_pd);
        }
        rdma_destroy_id(ep->id);
    }
    if (ep->mem) {
        munmap(ep->mem, MEM_LEN);
    }
    if (ep->listener) {
        /* Late events of the old connection must not meet the next one. */
        struct pollfd p = { ep->cm->fd, POLLIN, 0 };
        struct rdma_cm_event *e;

        while (poll(&p, 1, 0) > 0 && !rdma_get_cm_event(ep->cm, &e)) {
            rdma_ack_cm_event(e);
        }
    } else if (ep->cm) {
        rdma_destroy_event_channel(ep->cm);
        ep->cm = NULL;
    }
    *ep = (Endpoint) { .cm = ep->cm, .listener = ep->listener };
}

bool ep_listen(Endpoint *ep)
{
    struct rdma_addrinfo hints = {
        .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP,
    };
    struct rdma_addrinfo *info;

    ep->cm = rdma_create_event_channel();
    if (!ep->cm || rdma_getaddrinfo("0.0.0.0", PORT, &hints, &info) ||
        rdma_create_id(ep->cm, &ep->listener, NULL, RDMA_PS_TCP)) {
        return fail(ep, "rdma_create_id");
    }
    if (rdma_bind_addr(ep->listener, info->ai_src_addr) ||
        rdma_listen(ep->listener, 16)) {
        return fail(ep, "rdma_listen");
    }
    rdma_freeaddrinfo(info);
    return true;
}

struct rdma_conn_param ep_conn_param(void)
{
    return (struct rdma_conn_param) {
        .responder_resources = 16, .initiator_depth = 16,
        .retry_count = 7, .rnr_retry_count = 7,
    };
}

bool ep_accept(Endpoint *ep, int depth, bool has_channel)
{
    struct rdma_conn_param param = ep_conn_param();
    struct rdma_cm_event *e;

    if (!ep_cm_wait(ep, RDMA_CM_EVENT_CONNECT_REQUEST, CM_TIMEOUT, &e)) {
        return false;
    }
    ep->id = e->id;
    rdma_ack_cm_event(e);
    if (!ep_create(ep, depth, has_channel)) {
        return false;
    }
    if (rdma_accept(ep->id, &param)) {
        return fail(ep, "rdma_accept");
    }
    return ep_cm_wait(ep, RDMA_CM_EVENT_ESTABLISHED, CM_TIMEOUT, NULL);
}

bool ep_connect(Endpoint *ep, const char *host, int depth, bool has_channel)
{
    struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
    struct rdma_conn_param param = ep_conn_param();
    struct rdma_addrinfo *info;

    ep->cm = rdma_create_event_channel();
    if (!ep->cm || rdma_getaddrinfo(host, PORT, &hints, &info) ||
        rdma_create_id(ep->cm, &ep->id, NULL, RDMA_PS_TCP)) {
        return fail(ep, "rdma_create_id");
    }
    if (rdma_resolve_addr(ep->id, NULL, info->ai_dst_addr, 5000)) {
        return fail(ep, "rdma_resolve_addr");
    }
    rdma_freeaddrinfo(info);
    if (!ep_cm_wait(ep, RDMA_CM_EVENT_ADDR_RESOLVED, CM_TIMEOUT, NULL)) {
        return false;
    }
    if (rdma_resolve_route(ep->id, 5000)) {
        return fail(ep, "rdma_resolve_route");
    }
    if (!ep_cm_wait(ep, RDMA_CM_EVENT_ROUTE_RESOLVED, CM_TIMEOUT, NULL) ||
        !ep_create(ep, depth, has_channel)) {
        return false;
    }
    if (rdma_connect(ep->id, &param)) {
        return fail(ep, "rdma_connect");
    }
    return ep_cm_wait(ep, RDMA_CM_EVENT_ESTABLISHED, CM_TIMEOUT, NULL);
}

bool ep_register(Endpoint *ep, size_t offset, size_t len, int access,
                 bool in_other_pd)
{
    if (ep->aux_mr) {
        ibv_dereg_mr(ep->aux_mr);
    }
    ep->aux_mr = ibv_reg_mr(in_other_pd ? ep->other_pd : ep->pd,
                            ep->mem + offset, len, access);
    return ep->aux_mr || fail(ep, "ibv_reg_mr");
}

bool ep_post_recv(Endpoint *ep, size_t offset, uint32_t size, int count)
{
    for (int i = 0; i < count; i++) {
        struct ibv_sge sge = {
            (uintptr_t)ep->mem + offset + (size_t)i * size, size, ep->mr->lkey
        };
        struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
        struct ibv_recv_wr *bad;
        int err = ibv_post_recv(ep->id->qp, &wr, &bad);

        if (err) {
            errno = abs(err);
            return fail(ep, "ibv_post_recv");
        }
    }
    return true;
}

/* Sleeps until a completion event comes; the CQ is armed already. */
static bool wait_cq_event(Endpoint *ep, int ms)
{
    struct pollfd p = { ep->channel->fd, POLLIN, 0 };
    struct ibv_cq *cq;
    void *context;

    if (poll(&p, 1, ms > 0 ? ms : 0) <= 0) {
        errno = ETIMEDOUT;
        return fail(ep, "completion event");
    }
    if (ibv_get_cq_event(ep->channel, &cq, &context)) {
        return fail(ep, "ibv_get_cq_event");
    }
    ep->n_cq_events++;
    return true;
}

bool ep_poll(Endpoint *ep, struct ibv_wc *wc, int *n, int ms)
{
    int64_t end = now_ms() + ms;
    int want = *n;
    bool is_armed = false;

    *n = 0;
    while (*n < want) {
        int got = ibv_poll_cq(ep->cq, want - *n, wc + *n);

        if (got < 0) {
            return fail(ep, "ibv_poll_cq");
        }
        *n += got;
        if (got > 0) {
            continue;
        }
        if (now_ms() >= end) {
            snprintf(ep->problem, sizeof(ep->problem),
                     "%d of %d completions within %d ms", *n, want, ms);
            return false;
        }
        if (!ep->channel) {
            usleep(200);
        } else if (!is_armed) {
            /* Arm, and look once more before sleeping: the usual race. */
            if (ibv_req_notify_cq(ep->cq, 0)) {
                return fail(ep, "ibv_req_notify_cq");
            }
            is_armed = true;
        } else if (wait_cq_event(ep, end - now_ms())) {
            is_armed = false;
        } else {
            return false;
        }
    }
    return true;
}

static const char *async_name(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return "cq-error";
    case IBV_EVENT_QP_FATAL:
        return "qp-fatal";
    case IBV_EVENT_QP_REQ_ERR:
        return "qp-request-error";
    case IBV_EVENT_QP_ACCESS_ERR:
        return "qp-access-error";
    case IBV_EVENT_COMM_EST:
        return "established";
    case IBV_EVENT_DEVICE_FATAL:
        return "device-fatal";
    default:
        return "other";
    }
}

void ep_events(Endpoint *ep, int ms, int settle_ms, char *text, size_t size)
{
    struct pollfd p[2] = {
        { ep->id->verbs->async_fd, POLLIN, 0 }, { ep->cm->fd, POLLIN, 0 },
    };
    int64_t end = now_ms() + ms, left;
    size_t len = 0;

    text[0] = 0;
    while ((left = end - now_ms()) >= 0 && poll(p, 2, left) > 0) {
        const char *name = NULL;
        struct ibv_async_event async;
        struct rdma_cm_event *e;

        if (p[0].revents && !ibv_get_async_event(ep->id->verbs, &async)) {
            name = async_name(async.event_type);
            ibv_ack_async_event(&async);
        } else if (p[1].revents && !rdma_get_cm_event(ep->cm, &e)) {
            if (e->event == RDMA_CM_EVENT_DISCONNECTED) {
                name = "disconnected";
                ep->is_disconnected = true;
            } else {
                name = "other-cm";
            }
            rdma_ack_cm_event(e);
        } else {
            break;
        }
        if (!len && end > now_ms() + settle_ms) {
            end = now_ms() + settle_ms;
        }
        if (len < size) {
            len += snprintf(text + len, size - len, "%s%s", len ? "," : "",
                            name);
        }
        if (ep->is_disconnected) {
            break;
        }
    }
    if (!len) {
        snprintf(text, size, "none");
    }
}

int ep_qp_state(Endpoint *ep)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return ibv_query_qp(ep->id->qp, &attr, IBV_QP_STATE, &init) ?
        -1 : (int)attr.qp_state;
}

bool ep_set_error(Endpoint *ep)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    int err = ibv_modify_qp(ep->id->qp, &attr, IBV_QP_STATE);

    errno = err;
    return !err || fail(ep, "ibv_modify_qp");
}
