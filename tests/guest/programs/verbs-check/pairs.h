/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Connections of the client to itself: both ends are ours, so that many
 * connections, deep queues and odd memory need no help from the server.
 *
 * They use the PD, the memory and the address of the client's connection,
 * which must be open and stay so.
 */
#ifndef VERBS_CHECK_PAIRS_H
#define VERBS_CHECK_PAIRS_H

#include "client.h"

typedef struct Pairs {
    Endpoint cm;                /* event channel, and what went wrong */
    struct rdma_cm_id *listener;
    int n_ids;                  /* of connected ones */
    struct rdma_cm_id **ids;    /* 2i has connected to 2i + 1 */
} Pairs;

/*
 * Opens n connections; QP i of the 2n completes to cqs[i].  On an error it
 * says fail(), frees everything and returns false.
 */
bool pairs_open(Pairs *p, Client *c, int n, const struct ibv_qp_cap *cap,
                struct ibv_cq **cqs);
void pairs_close(Pairs *p);
struct ibv_qp *pairs_qp(const Pairs *p, int i);

/* One SGE in the client's memory each; 0 or an errno. */
int pairs_send(Client *c, struct ibv_qp *qp, uint64_t wr_id, size_t offset,
               uint32_t len, int flags);
int pairs_recv(Client *c, struct ibv_qp *qp, uint64_t wr_id, size_t offset,
               uint32_t len);

/* Takes n completions, all of them successful; false after fail(). */
bool pairs_poll(Client *c, struct ibv_cq *cq, struct ibv_wc *wc, int n);

#endif
