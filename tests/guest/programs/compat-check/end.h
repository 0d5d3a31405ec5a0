/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One end of a test: a device, QPs on it, and a socket to the other end.
 *
 * What must work exits the process with a message when it does not: each
 * case runs in a process of its own.
 */
#ifndef COMPAT_CHECK_END_H
#define COMPAT_CHECK_END_H

#include "verbs.h"

#define GID_INDEX 1
#define MSG_SIZE 256
#define QUEUE_DEPTH 16

struct end {
    bool is_client;
    int fd;                     /* to the other end */
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *buf;
    int n_slots;                /* of 2 * MSG_SIZE: to send, and received */
    union ibv_gid gid;
};

/* What the ends tell each other of a QP. */
struct address {
    union ibv_gid gid;
    uint32_t qpn;
    uint32_t psn;
    uint32_t rkey;
    uint64_t addr;              /* of the receive part of its slot */
};

struct pair {
    struct ibv_qp *qp;
    int slot;
    struct address mine, theirs;
};

#define check(condition, ...) \
    do { \
        if (!(condition)) { \
            fail_at(__FILE__, __LINE__, #condition, __VA_ARGS__); \
        } \
    } while (0)

void fail_at(const char *file, int line, const char *what,
             const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));
/* Where fail_at() leaves its message, besides standard error. */
void fail_tell(int fd);

double now(void);

/* The socket */
void swap(struct end *end, const void *mine, void *theirs, size_t len);
/* Both ends come here before either goes on. */
void meet(struct end *end);

void end_open(struct end *end, int n_slots);
void end_close(struct end *end);

/* Creates a QP and moves it to INIT. */
void pair_create(struct end *end, struct pair *pair, int slot);
/* Tells the other end, and hears of its QP. */
void pair_swap(struct end *end, struct pair *pair);
/* Return errno. */
int pair_init(struct pair *pair);
int pair_rtr(struct pair *pair, const struct address *to);
int pair_rts(struct pair *pair);
int pair_state(struct pair *pair);
void pair_connect(struct pair *pair);
void pair_destroy(struct pair *pair);

void pair_post_recv(struct end *end, struct pair *pair, uint64_t id);
void pair_post_send(struct end *end, struct pair *pair, uint64_t id);
/*
 * Waits for a completion; false if there is none in that time.  @strict: it
 * must be a success.
 */
bool end_poll(struct end *end, struct ibv_wc *wc, double seconds,
              bool strict);
/*
 * Each end sends its own pattern over all pairs, and looks at what came.
 * Receives must not be posted yet.
 */
void pairs_talk(struct end *end, struct pair *pairs, int n);

#endif
