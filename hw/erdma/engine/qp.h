/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: state, and the requester's and responder's part of it.
 *
 * Only qp.c changes the state.  requester.c works the send queue, responder.c
 * what comes from the peer, qp-flush.c ends what a failed QP leaves behind.
 */

#ifndef HW_ERDMA_QP_H
#define HW_ERDMA_QP_H

#include "engine/ring.h"
#include "xport/xport.h"

struct ErdmaEngine;
typedef struct ErdmaQp ErdmaQp;
typedef struct ErdmaSendWqe ErdmaSendWqe;   /* requester.c */
typedef struct ErdmaResponse ErdmaResponse; /* responder.c */

typedef enum ErdmaQpState {
    ERDMA_QP_CREATED,           /* doorbells are kept, nothing is processed */
    ERDMA_QP_RTS,
    /*
     * A request of the peer failed here, but answers to earlier requests are
     * still on their way to it: they go first, nothing new is accepted.
     */
    ERDMA_QP_TERMINATING,
    ERDMA_QP_FLUSHING,          /* every entry is flushed as it is posted */
} ErdmaQpState;

/* Why the requester does not fetch the next send WQE */
typedef enum ErdmaSqWait {
    ERDMA_SQ_WAIT_NONE,
    ERDMA_SQ_WAIT_ORD,          /* too many reads and atomics unanswered */
    ERDMA_SQ_WAIT_READS,        /* fence: until none is unanswered */
    ERDMA_SQ_WAIT_ALL,          /* until every earlier WQE completed */
    ERDMA_SQ_WAIT_ERROR,        /* for good: the last one fetched is bad */
} ErdmaSqWait;

struct ErdmaQp {
    uint32_t qpn;
    uint32_t pdn;
    uint32_t sq_cqn;
    uint32_t rq_cqn;
    uint32_t cookie;            /* ours: incarnation << 20 | QPN */
    uint16_t local_port;        /* TCP ports of the drivers' connection, for */
    uint16_t peer_port;         /* introspection */
    bool is_kernel;             /* may use the local DMA key */
    /*
     * Who may ring: 0 the static doorbell space, else the extended doorbell
     * context (extdb.h).  Doorbells from elsewhere are dropped before
     * erdma_qp_db_sq() and erdma_qp_db_rq() are called.
     */
    uint32_t db_ctx;
    ErdmaQpState state;
    uint8_t last_error;         /* enum ERDMA_WC_*, for introspection */
    /*
     * NULL: not connected.  Kept while FLUSHING, until the QP is destroyed
     * or connected again, so that the peer learns of the end reliably.
     */
    ErdmaXportConn *conn;
    uint32_t rx_msn;            /* next message of the peer to consume */

    /*
     * Send queue, free-running 16-bit indices in WQEBBs.  [ci, next) was
     * fetched and awaits completion, [next, pi) was not looked at.
     */
    ErdmaRing sq;
    uint16_t sq_pi;
    uint16_t sq_next;
    uint16_t sq_ci;
    /* Receive queue, in RQEs: [ci, pi) is posted and unused */
    ErdmaRing rq;
    uint16_t rq_pi;
    uint16_t rq_ci;
    uint64_t sq_dbrec;
    uint64_t rq_dbrec;
    bool has_bad_db;            /* a doorbell claimed more than the depth */

    /* qp-flush.c: the WQE that gets this status instead of "flushed" */
    bool has_failed_wqe;
    uint16_t failed_index;
    uint8_t failed_status;

    /* requester.c */
    QTAILQ_HEAD(, ErdmaSendWqe) sends;  /* uncompleted, in posting order */
    QTAILQ_HEAD(, ErdmaSendWqe) reads;  /* of them, unanswered */
    /* completed, but the transport has not returned the message yet */
    QTAILQ_HEAD(, ErdmaSendWqe) orphans;
    uint32_t n_sends;           /* all that exist: sends and orphans */
    uint32_t n_reads;
    ErdmaSqWait sq_wait;

    /* responder.c */
    QTAILQ_HEAD(, ErdmaResponse) responses;     /* queued or on the wire */
    uint32_t n_responses;
    bool is_rnr;                /* peer waits for a receive to be posted */
    bool is_full;               /* peer waits for responses to be delivered */
    bool has_rqe;               /* a send is arriving into @rqe */
    struct {
        uint16_t index;         /* position */
        uint64_t addr;
        uint32_t len;
        uint32_t key;
    } rqe;
    uint8_t term_status;        /* while TERMINATING */
    uint32_t term_msn;

    bool has_work;              /* on ErdmaEngine.qp_work */
    QTAILQ_ENTRY(ErdmaQp) work;
};

ErdmaQp *erdma_qp_get(struct ErdmaEngine *e, uint32_t qpn);
void erdma_qp_db_sq(struct ErdmaEngine *e, uint64_t payload);
void erdma_qp_db_rq(struct ErdmaEngine *e, uint64_t payload);
/* Put on the engine's work list, and kick. */
void erdma_qp_schedule(struct ErdmaEngine *e, ErdmaQp *qp);
/*
 * A bounded amount of work for the QP.  Returns true when there is more to
 * do right away.
 */
bool erdma_qp_run(struct ErdmaEngine *e, ErdmaQp *qp);

/* Commands; the fields are decoded, not validated.  Return a status. */
typedef struct ErdmaCreateQp {
    uint32_t qpn;
    uint32_t pdn;
    uint32_t sq_cqn;
    uint32_t rq_cqn;
    uint32_t sq_depth_log2;     /* WQEBBs */
    uint32_t rq_depth_log2;     /* RQEs */
    uint8_t sq_page_shift;
    uint8_t rq_page_shift;
    uint32_t sq_off;            /* bytes into the first page */
    uint32_t rq_off;
    uint32_t sq_n_pages;
    uint32_t rq_n_pages;
    bool sq_has_table;
    bool rq_has_table;
    uint64_t sq_pages[ERDMA_QP_INLINE_PAGES];   /* or [0] = the table */
    uint64_t rq_pages[ERDMA_QP_INLINE_PAGES];
    uint64_t sq_dbrec;
    uint64_t rq_dbrec;
    bool is_kernel;             /* both page sizes say so */
    uint32_t db_ctx;            /* as in ErdmaQp; checked already */
} ErdmaCreateQp;

typedef struct ErdmaModifyQp {
    uint32_t qpn;
    uint8_t state;              /* enum ERDMA_QPS_* */
    uint8_t cc;
    uint32_t cookie;
    uint32_t peer_ip;
    uint32_t local_ip;
    uint16_t local_port;
    uint16_t peer_port;
    uint32_t send_nxt;
    uint32_t recv_nxt;
} ErdmaModifyQp;

/*
 * 0 or ERDMA_CMD_ERR_* of cmdq.h; erdma_qp_create() sets *@cookie.
 * erdma_qp_destroy() returns only when nothing can reach the QP's memory or
 * CQs any more.
 */
uint8_t erdma_qp_create(struct ErdmaEngine *e, const ErdmaCreateQp *c,
                        uint32_t *cookie);
uint8_t erdma_qp_destroy(struct ErdmaEngine *e, uint32_t qpn);
uint8_t erdma_qp_modify(struct ErdmaEngine *e, const ErdmaModifyQp *m,
                        uint64_t now_ns);
uint8_t erdma_qp_reflush(struct ErdmaEngine *e, uint32_t qpn, uint16_t sq_pi,
                         uint16_t rq_pi);
/* Frees a QP that a reset has left, see leftover.h. */
void erdma_qp_free_left(struct ErdmaEngine *e, ErdmaQp *qp);
/* Frees every QP without a word to guest or peer (reset). */
void erdma_qp_free_all(struct ErdmaEngine *e);

/*
 * The QP failed by itself: stop, tell the peer that the connection is over,
 * and flush.  The WQE at @index, which was fetched and not completed, gets
 * @status; those before it count as flushed.  May be called from inside a
 * callback of the transport; afterwards no ErdmaSendWqe or ErdmaResponse of
 * the QP exists any more.
 */
void erdma_qp_fail_wqe(struct ErdmaEngine *e, ErdmaQp *qp, uint16_t index,
                       uint8_t status);
/*
 * The same for the oldest WQE outstanding.  Without one nothing can carry
 * the reason, and an AEQE tells the guest that the QP is dead.
 */
void erdma_qp_fail(struct ErdmaEngine *e, ErdmaQp *qp, uint8_t status);
/*
 * The peer's message @msn is refused with @status: the peer is told as soon
 * as the responses before it are delivered, then the QP is flushed.
 */
void erdma_qp_refuse(struct ErdmaEngine *e, ErdmaQp *qp, uint8_t status,
                     uint32_t msn);
/* The same, at once: nothing before it can be delivered any more. */
void erdma_qp_refuse_now(struct ErdmaEngine *e, ErdmaQp *qp, uint8_t status,
                         uint32_t msn);
/*
 * An injected fault: the QP forgets its connection without a word to anybody
 * and does nothing more, until the driver moves it to another state.
 */
void erdma_qp_die(struct ErdmaEngine *e, ErdmaQp *qp);
/* The peer ended the connection in order: flush, nobody is to blame. */
void erdma_qp_peer_closed(struct ErdmaEngine *e, ErdmaQp *qp);

/* What the engine plugs into its transport; owner is the ErdmaQp. */
extern const ErdmaXportOps erdma_qp_xport_ops;

/*
 * qp-flush.c: flush a bounded number of entries of a QP that is FLUSHING.
 * Returns true when some are left.
 */
bool erdma_qp_flush_run(struct ErdmaEngine *e, ErdmaQp *qp);

/* requester.c */
bool erdma_requester_run(struct ErdmaEngine *e, ErdmaQp *qp);
/* The transport has forgotten the QP's messages. */
void erdma_requester_free(struct ErdmaEngine *e, ErdmaQp *qp);
bool erdma_requester_pull(struct ErdmaEngine *e, ErdmaQp *qp,
                          ErdmaXportMsg *msg, uint32_t off, uint8_t *buf,
                          uint32_t len);
void erdma_requester_msg_done(struct ErdmaEngine *e, ErdmaQp *qp,
                              ErdmaXportMsg *msg);
ErdmaXportRx erdma_requester_rx(struct ErdmaEngine *e, ErdmaQp *qp,
                                const ErdmaXportMsgHdr *hdr, uint32_t off,
                                const uint8_t *data, uint32_t len,
                                bool is_last);
void erdma_requester_terminated(struct ErdmaEngine *e, ErdmaQp *qp,
                                uint8_t status, uint32_t msn);

/* responder.c */
void erdma_responder_run(ErdmaQp *qp);
/* The transport has forgotten the QP's messages. */
void erdma_responder_free(struct ErdmaEngine *e, ErdmaQp *qp);
bool erdma_responder_pull(struct ErdmaEngine *e, ErdmaQp *qp,
                          ErdmaXportMsg *msg, uint32_t off, uint8_t *buf,
                          uint32_t len);
void erdma_responder_msg_done(struct ErdmaEngine *e, ErdmaQp *qp,
                              ErdmaXportMsg *msg);
ErdmaXportRx erdma_responder_rx(struct ErdmaEngine *e, ErdmaQp *qp,
                                const ErdmaXportMsgHdr *hdr, uint32_t msn,
                                uint32_t off, const uint8_t *data,
                                uint32_t len, bool is_last);

#endif /* HW_ERDMA_QP_H */
