/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compat mode for programs that connect their QPs themselves.
 *
 * The parts, from the program's side to the network's:
 *
 *   uverbs.c   sees the program's commands to the driver, whatever library
 *              they come from, and answers those that an iWARP device does
 *              not have
 *   command.c  the commands of the older kind among them
 *   qp.c       what a program believes of its QPs: state and attributes
 *   channel.c  which completion events it gets to see
 *   engine.c   a thread that connects them, through RDMA_CM
 *   lookup.c   finds the process that has the peer's QP
 *   dev.c      devices and their addresses
 *   ucm.c      RDMA_CM's kernel interface
 *   match.c, wire.c   decisions and messages, free of side effects
 *
 * One lock guards all state.  Functions below are called with it held unless
 * they say otherwise, and return 0 or a positive errno.
 */
#ifndef COMPAT_H
#define COMPAT_H

#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sys/queue.h>

#include "match.h"

#define COMPAT_MAX_ADDRS 16
#define COMPAT_MAX_PORTS 64

/* What the launcher says through the environment. */
typedef struct CompatConfig {
    unsigned port;              /* the first one */
    unsigned n_ports;
    unsigned timeout_ms;        /* to find a peer, and to connect to it */
    unsigned wait_ms;           /* for a peer that is not in RTR */
    unsigned end_ms;            /* for a peer that is not about to end */
    unsigned verbose;           /* 0 nothing, 1 errors, 2 connections, 3 all */
} CompatConfig;

extern CompatConfig compat_config;
extern pthread_mutex_t compat_lock;
extern pthread_cond_t compat_cond;

/* log.c; no lock is needed. */
void compat_config_read(void);
void compat_log(unsigned level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
uint64_t compat_now_ms(void);
/* For logs: "10.9.0.1"; @text has room for 16 characters. */
const char *compat_ip_text(uint32_t ip, char *text);

/* An address that RDMA_CM uses a device for. */
typedef struct CompatAddr {
    uint32_t ip;
    unsigned ifindex;
    bool is_listening;
    uint32_t listen_id;         /* RDMA_CM's */
    uint16_t listen_port;
} CompatAddr;

typedef struct CompatDev {
    struct CompatDev *next;
    char name[64];
    uint64_t guid;
    CompatAddr addrs[COMPAT_MAX_ADDRS];
    unsigned n_addrs;
    int listen_error;           /* of addresses that are not listened on */
    uint64_t refreshed_ms;
} CompatDev;

/* An open device file of the program. */
typedef struct CompatCtx {
    struct CompatCtx *next;
    int fd;
    CompatDev *dev;
} CompatCtx;

typedef struct CompatLookup CompatLookup;
typedef struct CompatCq CompatCq;

typedef struct CompatQp {
    LIST_ENTRY(CompatQp) by_handle;
    LIST_ENTRY(CompatQp) by_qpn;
    TAILQ_ENTRY(CompatQp) pending;      /* the engine has a time to keep */
    bool is_pending;
    CompatCtx *ctx;
    uint32_t handle;
    uint32_t cqs[2];            /* handles: of sends, of receives */
    uint64_t serial;            /* never used twice */
    CompatView view;            /* ends and phase */
    int state;                  /* what the program was told */
    int error;                  /* why the phase is FAILED */
    bool may_leave;             /* no need to wait for the peer's end */
    bool is_spent;              /* the driver's QP was connected once */
    uint16_t peer_port;         /* 0 not known */
    bool has_held;              /* a request that waits to be accepted */
    uint32_t held_id;
    uint64_t deadline_ms;       /* of this phase */
    uint64_t wait_until_ms;     /* for the peer's RTR */
    uint64_t retry_ms;          /* next question, 0 none */
    uint64_t quiet_ms;          /* the driver may still be cleaning up */
    unsigned n_tries;
    CompatLookup *lookup;
    uint64_t conn;              /* the engine's number, 0 none */
    uint32_t attr_mask;         /* which of @attr were set */
    struct ib_uverbs_modify_qp attr;
} CompatQp;

/* dev.c */

/* The erdma iWARP device behind @fd, NULL if it is none. */
CompatDev *compat_dev_of_fd(int fd);
/* Brings the addresses up to date if that was not done just now. */
void compat_dev_refresh(CompatDev *dev);
CompatAddr *compat_dev_addr(CompatDev *dev, uint32_t ip);
/* Nothing is listened on any more: we are a child of fork(). */
void compat_dev_drop_all(void);

/* qp.c */

CompatCtx *compat_ctx_find(int fd);
void compat_ctx_add(int fd, CompatDev *dev);
void compat_ctx_remove(CompatCtx *ctx);

CompatQp *compat_qp_find(CompatCtx *ctx, uint32_t handle);
/* By number, on the device that has the address @local_ip. */
CompatQp *compat_qp_of_device(CompatDev *dev, uint32_t qpn);
void compat_qp_add(CompatCtx *ctx, uint32_t handle, uint32_t qpn,
                   const uint32_t cqs[2]);

/* The program's command itself, given to the driver. */
typedef int CompatPass(void *opaque);

int compat_qp_modify(CompatCtx *ctx, const struct ib_uverbs_modify_qp *cmd,
                     CompatPass *pass, void *opaque);
/* Releases the lock while the driver works. */
int compat_qp_destroy(CompatCtx *ctx, uint32_t handle, CompatPass *pass,
                      void *opaque);
/* Changes the driver's answer to what an RC QP would say. */
void compat_qp_query(CompatQp *qp, struct ib_uverbs_query_qp_resp *resp);
/* Tells waiting programs of a new phase; with FAILED and DOWN the QP ends. */
void compat_qp_phase(CompatQp *qp, CompatPhase phase, int error);
/* Forgets everything: we are a child of fork(). */
void compat_qp_drop_all(void);

/* command.c */

/* Moves the driver's QP to the error state. */
int compat_command_fail_qp(const CompatQp *qp);
/* Makes a completion channel: its file, or -errno. */
int compat_command_make_channel(const CompatCtx *ctx);

/* engine.c */

/* Starts the thread, and listens on the addresses of @dev; 0 if on any. */
int compat_engine_serve(CompatDev *dev);
/* Connects @qp, whose ends are known; the outcome is a phase. */
void compat_engine_connect(CompatQp *qp);
/* The peer's QP is in RTR too, and its process listens on @port. */
void compat_engine_agreed(CompatQp *qp, uint16_t port);
/* Asks the peer whether its program destroys its QP, too. */
void compat_engine_ask_end(CompatQp *qp);
/* Ends what the engine does for @qp and makes it forget it. */
void compat_engine_forget(CompatQp *qp);
/* The QP is gone from the driver: what belonged to it goes, too. */
void compat_engine_reap(uint64_t conn);
/* After a change of times to keep. */
void compat_engine_kick(void);
/* Keep a time for @qp, or no more. */
void compat_engine_watch(CompatQp *qp, bool on);
/* Whether @fd is ours, not the program's; no lock is needed. */
bool compat_engine_owns(int fd);
int compat_engine_epoll(void);
/* What epoll says happened: one of these, or the number of a question. */
enum { COMPAT_EVENT_WAKE, COMPAT_EVENT_UCM, COMPAT_EVENT_PROBE };

/* lookup.c */

void compat_lookup_start(CompatQp *qp);
void compat_lookup_cancel(CompatQp *qp);
void compat_lookup_event(uint64_t id);
/* Starts what was held back; ends what takes too long. */
void compat_lookup_run(uint64_t now_ms);
/* Called by the above: a verdict, or COMPAT_NONE and an errno. */
void compat_engine_found(CompatQp *qp, CompatVerdict verdict, int error,
                         uint16_t port);
void compat_lookup_drop_all(void);

#endif
