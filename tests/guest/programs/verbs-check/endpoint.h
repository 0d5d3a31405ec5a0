/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One end of an RC connection with the memory that the checks use.
 *
 * Memory is one registered area: the lower half is the source of what an end
 * sends and the target of what its peer writes, the upper half receives
 * messages.  Bytes are checked against patterns that depend on a seed and on
 * the position, so that data at the wrong place is found.
 */
#ifndef VERBS_CHECK_ENDPOINT_H
#define VERBS_CHECK_ENDPOINT_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_LEN (8u << 20)
#define RECV_BASE (MEM_LEN / 2)
#define MAX_SGE 6
#define MAX_INLINE 96
#define PORT "7175"
#define CONTROL_PORT 7174      /* TCP; siw would clash with PORT */

typedef struct Endpoint {
    struct rdma_event_channel *cm;
    struct rdma_cm_id *listener;        /* server only */
    struct rdma_cm_id *id;
    struct ibv_pd *pd, *other_pd;
    struct ibv_comp_channel *channel;   /* NULL when completions are polled */
    struct ibv_cq *cq;
    unsigned n_cq_events;
    uint8_t *mem;
    struct ibv_mr *mr, *aux_mr;
    int depth;
    uint32_t max_inline, max_sge;
    bool has_remote_atomic;
    bool is_disconnected;
    char problem[160];                  /* why the last call failed */
} Endpoint;

/* All functions return false (and set problem) on failure. */

/* Waits up to ms for a CM event of this type; others are a failure. */
bool ep_cm_wait(Endpoint *ep, enum rdma_cm_event_type type, int ms,
                struct rdma_cm_event **event);

/* PD, CQ, QP and memory for ep->id.  has_channel: completion events. */
bool ep_create(Endpoint *ep, int depth, bool has_channel);
void ep_destroy(Endpoint *ep);

/* What either end asks of a connection. */
struct rdma_conn_param ep_conn_param(void);

bool ep_listen(Endpoint *ep);
bool ep_accept(Endpoint *ep, int depth, bool has_channel);
bool ep_connect(Endpoint *ep, const char *host, int depth, bool has_channel);

/* Registers len bytes at offset anew, in another PD if so asked. */
bool ep_register(Endpoint *ep, size_t offset, size_t len, int access,
                 bool in_other_pd);

bool ep_post_recv(Endpoint *ep, size_t offset, uint32_t size, int count);

/* Takes n completions, for at most ms; *n says how many came. */
bool ep_poll(Endpoint *ep, struct ibv_wc *wc, int *n, int ms);

/*
 * Short names of asynchronous and CM events that come within ms, or "none".
 * After the first one it waits at most settle_ms for others.
 */
void ep_events(Endpoint *ep, int ms, int settle_ms, char *text, size_t size);

int ep_qp_state(Endpoint *ep);
bool ep_set_error(Endpoint *ep);

void pattern_fill(uint8_t *p, size_t len, uint32_t seed);
/* The index of the first wrong byte, or -1. */
long pattern_check(const uint8_t *p, size_t len, uint32_t seed);

const char *status_name(int status);
int64_t now_ms(void);

#endif
