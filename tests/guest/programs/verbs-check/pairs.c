/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Connections of the client to itself.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pairs.h"

#define PAIRS_PORT 7176
#define CM_MS 20000
#define POLL_MS 60000

static bool listen_there(Pairs *p, struct sockaddr_in *address)
{
    return !rdma_create_id(p->cm.cm, &p->listener, NULL, RDMA_PS_TCP) &&
           !rdma_bind_addr(p->listener, (struct sockaddr *)address) &&
           !rdma_listen(p->listener, 16);
}

static bool make_qp(struct rdma_cm_id *id, Client *c,
                    const struct ibv_qp_cap *cap, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = *cap,
    };

    return !rdma_create_qp(id, c->ep.pd, &attr);
}

static bool resolve(Pairs *p, struct rdma_cm_id *id, struct sockaddr *address)
{
    return !rdma_resolve_addr(id, NULL, address, 5000) &&
           ep_cm_wait(&p->cm, RDMA_CM_EVENT_ADDR_RESOLVED, CM_MS, NULL) &&
           !rdma_resolve_route(id, 5000) &&
           ep_cm_wait(&p->cm, RDMA_CM_EVENT_ROUTE_RESOLVED, CM_MS, NULL);
}

static bool connect_one(Pairs *p, Client *c, struct sockaddr_in *address,
                        const struct ibv_qp_cap *cap, struct ibv_cq **cqs)
{
    struct rdma_conn_param param = ep_conn_param();
    struct rdma_cm_id **id = p->ids + p->n_ids;
    struct rdma_cm_event *e;

    if (rdma_create_id(p->cm.cm, &id[0], NULL, RDMA_PS_TCP)) {
        return false;
    }
    p->n_ids++;
    if (!resolve(p, id[0], (struct sockaddr *)address) ||
        !make_qp(id[0], c, cap, cqs[0]) || rdma_connect(id[0], &param) ||
        !ep_cm_wait(&p->cm, RDMA_CM_EVENT_CONNECT_REQUEST, CM_MS, &e)) {
        return false;
    }
    id[1] = e->id;
    p->n_ids++;
    rdma_ack_cm_event(e);
    return make_qp(id[1], c, cap, cqs[1]) && !rdma_accept(id[1], &param) &&
           ep_cm_wait(&p->cm, RDMA_CM_EVENT_ESTABLISHED, CM_MS, NULL) &&
           ep_cm_wait(&p->cm, RDMA_CM_EVENT_ESTABLISHED, CM_MS, NULL);
}

bool pairs_open(Pairs *p, Client *c, int n, const struct ibv_qp_cap *cap,
                struct ibv_cq **cqs)
{
    struct sockaddr_in address;
    bool ok;

    *p = (Pairs) { .ids = calloc(2 * n, sizeof(p->ids[0])) };
    memcpy(&address, rdma_get_local_addr(c->ep.id), sizeof(address));
    address.sin_port = htons(PAIRS_PORT);
    p->cm.cm = rdma_create_event_channel();
    ok = p->ids && p->cm.cm && listen_there(p, &address);
    for (int i = 0; ok && i < n; i++) {
        ok = connect_one(p, c, &address, cap, cqs + 2 * i);
    }
    if (!ok) {
        char why[200];

        snprintf(why, sizeof(why), "connection to itself: %s",
                 p->cm.problem[0] ? p->cm.problem : strerror(errno));
        pairs_close(p);
        fail(c, "%s", why);
    }
    return ok;
}

void pairs_close(Pairs *p)
{
    for (int i = 0; i < p->n_ids; i++) {
        if (p->ids[i]->qp) {
            rdma_disconnect(p->ids[i]);
            rdma_destroy_qp(p->ids[i]);
        }
    }
    for (int i = 0; i < p->n_ids; i++) {
        rdma_destroy_id(p->ids[i]);
    }
    if (p->listener) {
        rdma_destroy_id(p->listener);
    }
    if (p->cm.cm) {
        rdma_destroy_event_channel(p->cm.cm);
    }
    free(p->ids);
    *p = (Pairs) { 0 };
}

struct ibv_qp *pairs_qp(const Pairs *p, int i)
{
    return p->ids[i]->qp;
}

int pairs_send(Client *c, struct ibv_qp *qp, uint64_t wr_id, size_t offset,
               uint32_t len, int flags)
{
    struct ibv_sge sge = {
        (uintptr_t)c->ep.mem + offset, len, c->ep.mr->lkey
    };
    struct ibv_send_wr wr = {
        .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = flags,
    }, *bad;

    return abs(ibv_post_send(qp, &wr, &bad));
}

int pairs_recv(Client *c, struct ibv_qp *qp, uint64_t wr_id, size_t offset,
               uint32_t len)
{
    struct ibv_sge sge = {
        (uintptr_t)c->ep.mem + offset, len, c->ep.mr->lkey
    };
    struct ibv_recv_wr wr = {
        .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
    }, *bad;

    return abs(ibv_post_recv(qp, &wr, &bad));
}

bool pairs_poll(Client *c, struct ibv_cq *cq, struct ibv_wc *wc, int n)
{
    int64_t end = now_ms() + POLL_MS;
    int done = 0;

    while (done < n) {
        int got = ibv_poll_cq(cq, n - done, wc + done);

        if (got < 0) {
            fail(c, "ibv_poll_cq");
            return false;
        }
        for (int i = done; i < done + got; i++) {
            if (wc[i].status) {
                fail(c, "completion %d of %d: %s, vendor code %#x", i, n,
                     status_name(wc[i].status), wc[i].vendor_err);
                return false;
            }
        }
        done += got;
        if (!got) {
            if (now_ms() > end) {
                fail(c, "%d of %d completions within %d ms", done, n,
                     POLL_MS);
                return false;
            }
            usleep(100);
        }
    }
    return true;
}
