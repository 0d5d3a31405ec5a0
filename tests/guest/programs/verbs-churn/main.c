/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * verbs-churn: what comes and goes, many times, in one process.
 *
 *   verbs-churn server PORT
 *   verbs-churn client HOST PORT COUNT
 *   verbs-churn devices SECONDS
 *
 * The client COUNT times connects, writes 8 bytes that tell the connection
 * from all others, disconnects and destroys everything.  The server serves
 * any number of connections until it is killed and looks whether each one's
 * bytes have arrived; both tell of connections that timed out and so had
 * none.  "devices" asks rdma_get_devices() all the time and prints each change
 * of the answer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common.h"

#define MAX_COUNT   1000000
#define N_SLOTS     1024
#define TIMEOUT_MS  5000

/* Private data: the client's number; the server's address for it */
typedef struct Offer {
    uint64_t number;
    uint64_t addr;
    uint32_t rkey;
} Offer;

static uint64_t slots[N_SLOTS];

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static struct ibv_qp_init_attr qp_attr(struct ibv_cq *cq)
{
    return (struct ibv_qp_init_attr) {
        .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 8 },
        .send_cq = cq, .recv_cq = cq, .sq_sig_all = 1,
    };
}

static struct rdma_conn_param with(const Offer *offer)
{
    return (struct rdma_conn_param) {
        .private_data = offer, .private_data_len = sizeof(*offer),
        .responder_resources = 1, .initiator_depth = 1,
        .retry_count = 7, .rnr_retry_count = 7,
    };
}

static Offer offer_of(const struct rdma_cm_event *e)
{
    Offer offer;

    if (e->param.conn.private_data_len < sizeof(offer)) {
        die("the peer is another program");
    }
    memcpy(&offer, e->param.conn.private_data, sizeof(offer));
    return offer;
}

/* ---- server ---- */

typedef struct Server {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint64_t n_served;
} Server;

/* All connections share what they can; made with the first one. */
static void make_shared(Server *s, struct ibv_context *verbs)
{
    s->pd = ibv_alloc_pd(verbs);
    need(s->pd, "ibv_alloc_pd");
    s->cq = ibv_create_cq(verbs, 16, NULL, NULL, 0);
    need(s->cq, "ibv_create_cq");
    s->mr = ibv_reg_mr(s->pd, slots, sizeof(slots),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(s->mr, "ibv_reg_mr");
}

static void accept_one(Server *s, struct rdma_cm_id *id, Offer offer)
{
    struct ibv_qp_init_attr attr;
    struct rdma_conn_param param;
    uint64_t *slot = &slots[offer.number % N_SLOTS];

    if (!s->pd) {
        make_shared(s, id->verbs);
    }
    attr = qp_attr(s->cq);
    need(!rdma_create_qp(id, s->pd, &attr), "rdma_create_qp");
    id->context = (void *)(uintptr_t)offer.number;
    *slot = 0;
    offer.addr = (uintptr_t)slot;
    offer.rkey = s->mr->rkey;
    param = with(&offer);
    need(!rdma_accept(id, &param), "rdma_accept");
}

/* The client's write completed before it closed, so it must be here. */
static void end_one(Server *s, struct rdma_cm_id *id)
{
    uint64_t number = (uintptr_t)id->context;
    uint64_t is = __atomic_load_n(&slots[number % N_SLOTS], __ATOMIC_ACQUIRE);

    if (!is) {
        printf("empty: %" PRIu64 "\n", number);
    } else if (is != number) {
        die("connection %" PRIu64 " has the bytes of %" PRIu64, number, is);
    }
    rdma_destroy_qp(id);
    need(!rdma_destroy_id(id), "rdma_destroy_id");
    if (++s->n_served % 1000 == 0) {
        printf("served %" PRIu64 "\n", s->n_served);
    }
}

static int serve(const char *port)
{
    struct rdma_addrinfo *info = address("0.0.0.0", port,
                                         RAI_PASSIVE | RAI_NUMERICHOST);
    struct rdma_event_channel *cm = rdma_create_event_channel();
    struct rdma_cm_id *listener, *id;
    struct rdma_cm_event *e;
    Server s = { 0 };
    Offer offer;

    need(cm, "rdma_create_event_channel");
    need(!rdma_create_id(cm, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    need(!rdma_bind_addr(listener, info->ai_src_addr), "rdma_bind_addr");
    need(!rdma_listen(listener, 64), "rdma_listen");
    printf("listening\n");
    for (;;) {
        need(!rdma_get_cm_event(cm, &e), "rdma_get_cm_event");
        id = e->id;
        switch (e->event) {
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            offer = offer_of(e);
            rdma_ack_cm_event(e);
            accept_one(&s, id, offer);
            break;
        case RDMA_CM_EVENT_ESTABLISHED:
            rdma_ack_cm_event(e);
            break;
        case RDMA_CM_EVENT_DISCONNECTED:
            rdma_ack_cm_event(e);
            end_one(&s, id);
            break;
        default:
            die("%s (status %d)", rdma_event_str(e->event), e->status);
        }
    }
}

/* ---- client ---- */

/*
 * An identifier without a channel waits by itself.  False if that took too
 * long: Linux's driver overlooks an answer that comes very quickly.
 */
static bool connect_one(struct rdma_cm_id *id, struct sockaddr *to,
                        Offer *offer)
{
    struct rdma_conn_param param = with(offer);
    struct ibv_qp_init_attr attr;

    need(!rdma_resolve_addr(id, NULL, to, TIMEOUT_MS), "rdma_resolve_addr");
    need(!rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
    attr = qp_attr(NULL);
    need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
    if (rdma_connect(id, &param)) {
        need(errno == ETIMEDOUT, "rdma_connect");
        printf("timed out: %" PRIu64 "\n", offer->number);
        return false;
    }
    *offer = offer_of(id->event);
    return true;
}

static void write_one(struct rdma_cm_id *id, const Offer *offer,
                      uint64_t number)
{
    struct ibv_sge sge = { (uintptr_t)&number, sizeof(number), 0 };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
        .wr.rdma = { offer->addr, offer->rkey },
    };
    struct ibv_wc wc;
    int n;

    errno = ibv_post_send(id->qp, &wr, &bad);
    need(!errno, "ibv_post_send");
    while (!(n = ibv_poll_cq(id->send_cq, 1, &wc))) {
    }
    need(n > 0, "ibv_poll_cq");
    if (wc.status != IBV_WC_SUCCESS) {
        die("write %" PRIu64 ": %s", number, ibv_wc_status_str(wc.status));
    }
}

static int churn(const char *host, const char *port, uint64_t count)
{
    struct rdma_addrinfo *info = address(host, port, 0);
    double began = now();
    uint64_t base = (uint64_t)getpid() << 32;
    uint64_t i;

    for (i = 1; i <= count; i++) {
        struct rdma_cm_id *id;
        Offer offer = { .number = base + i };

        need(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
        if (connect_one(id, info->ai_dst_addr, &offer)) {
            write_one(id, &offer, base + i);
            need(!rdma_disconnect(id), "rdma_disconnect");
        }
        rdma_destroy_qp(id);
        need(!rdma_destroy_id(id), "rdma_destroy_id");
        if (i % 1000 == 0 || i == count) {
            printf("done %" PRIu64 " in %.1f s\n", i, now() - began);
        }
    }
    return 0;
}

/* ---- devices ---- */

static void print_devices(double when, struct ibv_context **list, int n)
{
    int i;

    printf("%.3f:", when);
    for (i = 0; i < n; i++) {
        printf(" %s", ibv_get_device_name(list[i]->device));
    }
    printf("%s\n", n ? "" : " none");
}

static int watch(unsigned seconds)
{
    double began = now();
    int last = -1;

    while (now() < began + seconds) {
        int n = 0;
        struct ibv_context **list = rdma_get_devices(&n);

        if (n != last) {
            print_devices(now() - began, list, n);
            last = n;
        }
        if (list) {
            rdma_free_devices(list);
        }
        usleep(1000);
    }
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && !strcmp(argv[1], "server")) {
        return serve(argv[2]);
    }
    if (argc == 5 && !strcmp(argv[1], "client")) {
        return churn(argv[2], argv[3], number(argv[4], 1, MAX_COUNT));
    }
    if (argc == 3 && !strcmp(argv[1], "devices")) {
        return watch(number(argv[2], 1, 86400));
    }
    fprintf(stderr, "usage: verbs-churn server PORT\n"
                    "       verbs-churn client HOST PORT COUNT\n"
                    "       verbs-churn devices SECONDS\n");
    return 2;
}
