/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * verbs-write: times RDMA writes of an exact size that start on demand.
 *
 *   verbs-write server PORT
 *   verbs-write client HOST PORT BYTES COUNT DEPTH
 *
 * The server takes one connection and ends with it.  The client connects,
 * prints "ready", waits for a line on its standard input, and then makes COUNT
 * writes (0: endless) of BYTES bytes each, at most DEPTH at once.  It prints
 * "done INDEX MICROSECONDS" for each of a finite number, the time since the
 * line came, and "end" after the last.  It stays connected until its standard
 * input ends.  SIGTERM: no new writes.  What perftest cannot do: one message,
 * a start when somebody says so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../common.h"

#define MAX_BYTES (256u << 20)
#define MAX_COUNT 1000000
#define MAX_DEPTH 4096

/* Private data of both directions; the machines are alike. */
typedef struct Offer {
    uint64_t bytes;             /* the client's wish */
    uint64_t addr;              /* the server's answer */
    uint32_t rkey;
} Offer;

typedef struct End {
    struct rdma_event_channel *cm;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *mem;
} End;

/* The event stays the caller's, who acks it. */
static struct rdma_cm_event *next_event(End *end,
                                        enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e;

    need(!rdma_get_cm_event(end->cm, &e), "rdma_get_cm_event");
    if (e->event != type) {
        die("%s (status %d) instead of %s", rdma_event_str(e->event),
            e->status, rdma_event_str(type));
    }
    return e;
}

static void wait_for(End *end, enum rdma_cm_event_type type)
{
    rdma_ack_cm_event(next_event(end, type));
}

static Offer offer_of(const struct rdma_cm_event *e)
{
    Offer offer;

    if (e->param.conn.private_data_len < sizeof(offer)) {
        die("the peer is another program");
    }
    memcpy(&offer, e->param.conn.private_data, sizeof(offer));
    if (!offer.bytes || offer.bytes > MAX_BYTES) {
        die("the peer wants %" PRIu64 " bytes", offer.bytes);
    }
    return offer;
}

static void create(End *end, uint64_t bytes, unsigned depth)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC, .cap = { depth, 1, 1, 1, 0 },
    };

    end->pd = ibv_alloc_pd(end->id->verbs);
    need(end->pd, "ibv_alloc_pd");
    end->channel = ibv_create_comp_channel(end->id->verbs);
    need(end->channel, "ibv_create_comp_channel");
    end->cq = ibv_create_cq(end->id->verbs, depth + 1, NULL, end->channel, 0);
    need(end->cq, "ibv_create_cq");
    attr.send_cq = attr.recv_cq = end->cq;
    need(!rdma_create_qp(end->id, end->pd, &attr), "rdma_create_qp");
    end->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    need(end->mem != MAP_FAILED, "mmap");
    end->mr = ibv_reg_mr(end->pd, end->mem, bytes,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(end->mr, "ibv_reg_mr");
}

static struct rdma_conn_param with(const Offer *offer)
{
    return (struct rdma_conn_param) {
        .private_data = offer, .private_data_len = sizeof(*offer),
        .responder_resources = 1, .initiator_depth = 1,
        .retry_count = 7, .rnr_retry_count = 7,
    };
}

static int serve(const char *port)
{
    struct rdma_addrinfo *info = address("0.0.0.0", port,
                                         RAI_PASSIVE | RAI_NUMERICHOST);
    struct rdma_cm_id *listener;
    struct rdma_conn_param param;
    struct rdma_cm_event *e;
    End end = { 0 };
    Offer offer;

    end.cm = rdma_create_event_channel();
    need(end.cm, "rdma_create_event_channel");
    need(!rdma_create_id(end.cm, &listener, NULL, RDMA_PS_TCP),
         "rdma_create_id");
    need(!rdma_bind_addr(listener, info->ai_src_addr), "rdma_bind_addr");
    need(!rdma_listen(listener, 1), "rdma_listen");
    printf("listening\n");
    e = next_event(&end, RDMA_CM_EVENT_CONNECT_REQUEST);
    end.id = e->id;
    offer = offer_of(e);
    rdma_ack_cm_event(e);
    create(&end, offer.bytes, 1);
    offer.addr = (uintptr_t)end.mem;
    offer.rkey = end.mr->rkey;
    param = with(&offer);
    need(!rdma_accept(end.id, &param), "rdma_accept");
    wait_for(&end, RDMA_CM_EVENT_ESTABLISHED);
    wait_for(&end, RDMA_CM_EVENT_DISCONNECTED);
    return 0;
}

static Offer connect_to(End *end, const char *host, const char *port,
                        uint64_t bytes, unsigned depth)
{
    struct rdma_addrinfo *info = address(host, port, 0);
    Offer offer = { .bytes = bytes };
    struct rdma_conn_param param = with(&offer);
    struct rdma_cm_event *e;

    end->cm = rdma_create_event_channel();
    need(end->cm, "rdma_create_event_channel");
    need(!rdma_create_id(end->cm, &end->id, NULL, RDMA_PS_TCP),
         "rdma_create_id");
    need(!rdma_resolve_addr(end->id, NULL, info->ai_dst_addr, 5000),
         "rdma_resolve_addr");
    wait_for(end, RDMA_CM_EVENT_ADDR_RESOLVED);
    need(!rdma_resolve_route(end->id, 5000), "rdma_resolve_route");
    wait_for(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
    create(end, bytes, depth);
    need(!rdma_connect(end->id, &param), "rdma_connect");
    e = next_event(end, RDMA_CM_EVENT_ESTABLISHED);
    offer = offer_of(e);
    rdma_ack_cm_event(e);
    return offer;
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static volatile sig_atomic_t has_to_stop;

static void stop(int signal)
{
    has_to_stop = 1;
}

static void post(End *end, const Offer *offer, uint64_t index)
{
    struct ibv_sge sge = {
        (uintptr_t)end->mem, offer->bytes, end->mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = index, .sg_list = &sge, .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { offer->addr, offer->rkey },
    };
    struct ibv_send_wr *bad;

    errno = ibv_post_send(end->id->qp, &wr, &bad);
    need(!errno, "ibv_post_send");
}

/* Takes what is completed; returns how many. */
static unsigned reap(End *end, bool is_endless, double began)
{
    struct ibv_wc wc;
    unsigned got = 0;
    int n;

    while ((n = ibv_poll_cq(end->cq, 1, &wc)) > 0) {
        if (wc.status != IBV_WC_SUCCESS) {
            die("write %" PRIu64 ": %s", wc.wr_id,
                ibv_wc_status_str(wc.status));
        }
        if (!is_endless) {
            printf("done %" PRIu64 " %.1f\n", wc.wr_id, now_us() - began);
        }
        got++;
    }
    need(!n, "ibv_poll_cq");
    return got;
}

/* Sleeps for the completions: a guest that polls takes the host's time. */
static void transfer(End *end, const Offer *offer, uint64_t count,
                     unsigned depth)
{
    double began = now_us();
    uint64_t posted = 0;
    unsigned pending = 0, n_events = 0;

    for (;;) {
        struct ibv_cq *cq;
        void *context;
        unsigned got;

        while (pending < depth && !has_to_stop && (!count || posted < count)) {
            post(end, offer, posted++);
            pending++;
        }
        if (!pending) {
            break;
        }
        need(!ibv_req_notify_cq(end->cq, 0), "ibv_req_notify_cq");
        got = reap(end, !count, began);
        pending -= got;
        if (!got) {
            need(!ibv_get_cq_event(end->channel, &cq, &context),
                 "ibv_get_cq_event");
            n_events++;
        }
    }
    ibv_ack_cq_events(end->cq, n_events);
}

static int send_all(const char *host, const char *port, uint64_t bytes,
                    uint64_t count, unsigned depth)
{
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
    End end = { 0 };
    Offer offer = connect_to(&end, host, port, bytes, depth);

    sigaction(SIGTERM, &action, NULL);
    printf("ready\n");
    while (getchar() != '\n') {
        if (feof(stdin)) {
            die("standard input ended before a line came");
        }
    }
    transfer(&end, &offer, count, depth);
    printf("end\n");
    while (getchar() != EOF) {
    }
    need(!rdma_disconnect(end.id), "rdma_disconnect");
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && !strcmp(argv[1], "server")) {
        return serve(argv[2]);
    }
    if (argc == 7 && !strcmp(argv[1], "client")) {
        return send_all(argv[2], argv[3], number(argv[4], 1, MAX_BYTES),
                        number(argv[5], 0, MAX_COUNT),
                        number(argv[6], 1, MAX_DEPTH));
    }
    fprintf(stderr, "usage: verbs-write server PORT\n"
                    "       verbs-write client HOST PORT BYTES COUNT DEPTH\n");
    return 2;
}
