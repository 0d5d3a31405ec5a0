/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the cases have in common: the connection, the server's commands and
 * the way results are told.
 *
 * A case ends with exactly one of pass(), fail() and skip().  After fail()
 * and whenever a case asks for it the next one gets a new connection.
 */
#ifndef VERBS_CHECK_CLIENT_H
#define VERBS_CHECK_CLIENT_H

#include "endpoint.h"

/* Offsets in the memory of either end. */
#define SOURCE 4096u
#define TARGET 4096u
#define GUARD 64u

typedef struct Client {
    int fd;                     /* control */
    const char *host;
    Endpoint ep;
    bool is_open, has_channel;
    uint64_t peer_addr;         /* of the server's memory */
    uint32_t peer_rkey;
    uint32_t seed;              /* a new one for each use */
    char name[80];              /* of the running case */
    char **prefixes;
    int n_prefixes, n_failed;
    char answer[4096];          /* the server's last */
} Client;

typedef struct Op {
    enum ibv_wr_opcode opcode;
    size_t local, remote;       /* offsets */
    uint32_t len;
    int flags;                  /* besides IBV_SEND_SIGNALED */
    int n_sge;                  /* 0: one */
    uint32_t imm;               /* host order */
    uint64_t compare_add, swap;
    uint32_t rkey, lkey;        /* 0: the usual */
    bool is_unsignalled;
} Op;

/* Is the case named so wanted?  Makes it the running one. */
bool begin(Client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pass(Client *c, const char *note);
void fail(Client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void skip(Client *c, const char *why);
/* For cases that run only by name: does a prefix begin with this one? */
bool is_asked_for(const Client *c, const char *group);
/* Says "# WHAT MS" and waits for a line on standard input. */
void hold(const char *what, int64_t ms);

/* A connection with these properties; an open one that fits is kept. */
bool need_connection(Client *c, int depth, bool has_channel);
void close_connection(Client *c);

/* Sends a command and hears the answer; false (after fail()) on error. */
bool ask(Client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* As ask(), and the answer must be "ok". */
bool ask_ok(Client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 or an errno: what ibv_post_send() says. */
int post(Client *c, const Op *op);
/* Posts and waits for a successful completion; false after fail(). */
bool run_op(Client *c, const Op *op, struct ibv_wc *wc);

void cases_data(Client *c);
void cases_queue(Client *c);
void cases_violation(Client *c);
void cases_error(Client *c);
void cases_held(Client *c);
void cases_many(Client *c);
void cases_memory(Client *c);
void cases_limits(Client *c);
void cases_sweep(Client *c);

#endif
