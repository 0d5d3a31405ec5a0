/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: one connection, and the multiplexer that owns it.
 * Private to the transport.
 *
 *   conn.c      life, the owner's calls, timers, what to do when
 *   conn-tx.c   building and sending packets
 *   conn-ack.c  what an ack tells the sender
 *   conn-rx.c   what data, pings and terminates tell the receiver
 *   mux.c       finds the connection of a packet, runs those with work
 */

#ifndef HW_ERDMA_XPORT_CONN_H
#define HW_ERDMA_XPORT_CONN_H

#include "cc.h"
#include "connmap.h"
#include "loss.h"
#include "pacer.h"
#include "reasm.h"
#include "recorder.h"
#include "recvmap.h"
#include "rtt.h"
#include "sentmap.h"
#include "timerheap.h"
#include "wire.h"

/* A packet or ack number further away than this is from somewhere else. */
#define ERDMA_CONN_PN_WINDOW    (1u << 20)
/*
 * Both ends take the first packet number from their guest's socket.  Should
 * they count differently by a few bytes of that socket, it does not matter.
 */
#define ERDMA_CONN_PN_SLACK     (1u << 16)
/* Messages further ahead than this cannot be paid for by any credit. */
#define ERDMA_CONN_MSN_WINDOW   (1u << 20)
/* Ranges that we put into an ack */
#define ERDMA_CONN_ACK_RANGES   16
/* Packets or deliveries of one connection before the next one's turn */
#define ERDMA_CONN_QUANTUM      16

struct ErdmaXport {
    const ErdmaXportOps *ops;
    void *opaque;
    ErdmaConnMap conns;         /* by local cookie */
    ErdmaTimerHeap timers;
    QTAILQ_HEAD(, ErdmaXportConn) active;
    uint8_t *tx_buf;            /* HEADROOM and the largest datagram */
    bool is_blocked;
    ErdmaRecorder *recorder;    /* NULL: is not recorded, see record.h */
    /* See erdma_xport_fetch_due(); only to compare, it may be gone. */
    const ErdmaXportConn *fetched;
    unsigned n_fetched;
    ErdmaXportConfig cfg;
    ErdmaXportStats stats;
    ErdmaReasmPool reasm_pool;
    /* Each packet needs what is above, erdma_xport_fetch() fetches it. */
    ErdmaSentPool sent_pool;
};

typedef enum ErdmaTermState {
    ERDMA_TERM_NONE,
    ERDMA_TERM_SENDING,         /* until the peer says that it knows */
    ERDMA_TERM_DONE,
} ErdmaTermState;

/* The sending direction.  Packet numbers are 64 bits, see ERDMA_PN_BASE. */
typedef struct ErdmaConnTx {
    QTAILQ_HEAD(, ErdmaXportMsg) msgs;  /* not delivered, by MSN */
    ErdmaXportMsg *unsent;      /* first of them not sent completely */
    uint32_t n_unsent;
    uint32_t next_msn;
    uint32_t una_msn;           /* delivered position */
    uint32_t una_off;
    uint64_t undelivered;       /* what the sent part costs of the credit */
    uint64_t credit;
    uint64_t next_ack;          /* number of the next ack from the peer */
    ErdmaSentMap sent;
    ErdmaLoss loss;
    ErdmaRtt rtt;
    ErdmaPacer pacer;
    ErdmaCc cc;
    uint64_t round_end;         /* packet number */
    uint64_t max_pipe[2];       /* of this round and the one before */
    uint32_t ce_packets;        /* totals that the peer reported */
    uint32_t ce_bytes;
    uint32_t ect_packets;
    uint32_t ect_acked;         /* what it must at least have seen */
    uint64_t base_ns;           /* retransmission timeout counts from here */
    uint64_t last_send_ns;
    uint64_t loss_ns;           /* deadlines, or NEVER */
    uint64_t pacer_ns;
    uint64_t persist_ns;
    uint64_t progress_ns;       /* when the delivered position last moved */
    uint8_t n_timeouts;         /* in a row */
    uint8_t n_persist;
    bool is_held;               /* only the pacer kept us from sending */
    bool is_probed;             /* this tail had its probe */
    bool is_dead;               /* nothing is sent any more */
    bool is_peer_rnr;
    bool is_answered;           /* the peer was heard since the last ping */
    bool is_ecn_off;
    bool is_expecting;          /* the owner waits for the peer's answer */
    bool want_probe;
    bool want_resend;           /* one packet regardless of the window */
    bool want_ping;
} ErdmaConnTx;

/* The receiving direction */
typedef struct ErdmaConnRx {
    ErdmaRecvMap map;
    ErdmaReasm reasm;
    uint64_t pn0;
    uint32_t msn;               /* next in order */
    uint32_t off;
    ErdmaXportMsgHdr hdr;       /* of msn, when off is not 0 */
    uint64_t next_ack;          /* number of the next ack that we send */
    uint64_t trigger_pn;
    uint64_t trigger_ns;
    uint64_t ack_ns;            /* deadline or NEVER */
    uint64_t gap_pn;            /* last number that was out of order */
    uint64_t ahead_pn;          /* go-back-N: the latest beyond the gap */
    uint32_t ahead_msn;
    uint32_t ahead_off;
    uint32_t n_unacked;
    uint32_t ce_packets;
    uint32_t ce_bytes;
    uint32_t ect_packets;
    uint8_t *int_stack;         /* of the trigger; allocated when first seen */
    uint8_t int_info;
    bool is_last_ce;
    bool is_holding;            /* the owner was not ready */
    bool is_refused;
    bool want_ack;
    bool want_nack;
    bool is_nacked;             /* this gap had its NACK */
    bool want_resume;
} ErdmaConnRx;

struct ErdmaXportConn {
    ErdmaXport *x;
    void *owner;
    uint32_t local_cookie;
    uint32_t peer_cookie;
    uint32_t local_ip;
    uint32_t peer_ip;
    QTAILQ_ENTRY(ErdmaXportConn) active_next;
    ErdmaTimer timer;
    uint16_t depth;             /* we are inside of it: do not free */
    bool is_active;             /* in x->active */
    bool is_closed;
    bool is_failed;             /* conn_error was called */
    bool is_heard;              /* anything valid from the peer */
    bool is_peer_terminated;
    bool want_term;
    bool want_term_ack;
    uint8_t term_status;
    uint8_t n_terms;
    ErdmaTermState term;
    uint32_t term_msn;
    uint32_t term_ack_number;
    uint64_t term_ns;           /* deadline or NEVER */
    ErdmaConnTx tx;
    ErdmaConnRx rx;
    struct {
        uint64_t tx_packets;
        uint64_t rx_packets;
        uint64_t tx_delivered;
        uint64_t rx_delivered;
        uint32_t retransmits;
        uint32_t lost;
        uint32_t spurious;
        uint32_t probes;
        uint32_t rtos;
        uint32_t int_samples;
        uint32_t loss_episodes;
        uint32_t ecn_episodes;
        uint32_t undos;
    } stats;
};

/* See erdma_xport_fetch().  Lines of 64 bytes; where they are not, no harm. */
static inline void erdma_fetch(const void *p, size_t len)
{
    const char *line = p;

    for (; line < (const char *)p + len; line += 64) {
        __builtin_prefetch(line);
    }
}

/*
 * Extended numbers start above 2^32, so that going back a window from the
 * first one does not pass zero.
 */
static inline uint64_t erdma_pn_first(uint32_t pn0)
{
    return (1ULL << 32) + pn0;
}

/* The number with these low bits that is nearest to @expected */
static inline uint64_t erdma_pn_extend(uint64_t expected, uint32_t low)
{
    return expected + (int64_t)(int32_t)(low - (uint32_t)expected);
}

static inline bool erdma_pn_is_near(uint64_t expected, uint64_t pn)
{
    return pn - expected + ERDMA_CONN_PN_WINDOW <= 2 * ERDMA_CONN_PN_WINDOW;
}

static inline void erdma_conn_trace(ErdmaXportConn *c, ErdmaXportEvent event,
                                    uint64_t a, uint64_t b)
{
    if (c->x->ops->trace) {
        c->x->ops->trace(c->x->opaque, c->owner, event, a, b);
    }
}

static inline void erdma_conn_drop(ErdmaXportConn *c, ErdmaXportDrop why,
                                   uint32_t number)
{
    c->x->stats.drops[why]++;
    erdma_conn_trace(c, ERDMA_XPORT_EV_DROP, why, number);
}

/* conn.c */
/* From enum ErdmaXportCc, others are CUBIC, and back */
const ErdmaCcOps *erdma_conn_cc_ops(uint8_t cc);
uint8_t erdma_conn_cc_code(const ErdmaCc *cc);
/* What @c, which has been fetched itself, points at */
void erdma_conn_fetch(const ErdmaXportConn *c);
void erdma_conn_activate(ErdmaXportConn *c);
/* Brackets around whatever may call back; leave frees a closed one. */
void erdma_conn_enter(ErdmaXportConn *c);
void erdma_conn_leave(ErdmaXportConn *c);
/* Puts the earliest deadline into the heap. */
void erdma_conn_schedule(ErdmaXportConn *c);
/* A valid packet of the peer, of which @is_ack */
void erdma_conn_heard(ErdmaXportConn *c, bool is_ack, uint64_t now_ns);
void erdma_conn_trace_cwnd(ErdmaXportConn *c);
/* Base of the back-off */
uint64_t erdma_conn_rto(const ErdmaXportConn *c);
/*
 * Does what is due, sends at most *@budget packets and takes them off.
 * Returns true when work is left.
 */
bool erdma_conn_run(ErdmaXportConn *c, uint64_t now_ns, unsigned *budget);
/* Frees, no matter what. */
void erdma_conn_destroy(ErdmaXportConn *c);

/* conn-tx.c */
/* Sends one data packet if there is one and it may leave. */
bool erdma_conn_tx_data(ErdmaXportConn *c, uint64_t now_ns);
void erdma_conn_tx_ack(ErdmaXportConn *c, uint64_t now_ns);
void erdma_conn_tx_ping(ErdmaXportConn *c);
void erdma_conn_tx_term(ErdmaXportConn *c);
void erdma_conn_tx_term_ack(ErdmaXportConn *c);
/* Could new data leave if window and pacer allowed it? */
bool erdma_conn_has_credit(const ErdmaXportConn *c);

/* conn-ack.c */
void erdma_conn_rx_ack(ErdmaXportConn *c, const ErdmaWire *w,
                       uint64_t now_ns);
/*
 * The peer says that it consumed everything before this position.  Checks it
 * and moves there, without calling back.  False: never sent.
 */
bool erdma_conn_delivered(ErdmaXportConn *c, uint32_t msn, uint32_t off,
                          uint64_t now_ns);
/* Looks for losses and reacts to them. */
void erdma_conn_detect_loss(ErdmaXportConn *c, uint64_t now_ns);
/* Counts losses and remembers when to look again. */
void erdma_conn_note_lost(ErdmaXportConn *c, const ErdmaLost *lost);
/* Calls back for the messages that are delivered. */
void erdma_conn_msgs_done(ErdmaXportConn *c);

/* conn-rx.c */
void erdma_conn_rx_data(ErdmaXportConn *c, const ErdmaWire *w, uint8_t ip_ecn,
                        size_t len, uint64_t now_ns);
void erdma_conn_rx_ping(ErdmaXportConn *c, const ErdmaWire *w,
                        uint64_t now_ns);
void erdma_conn_rx_term(ErdmaXportConn *c, const ErdmaWire *w,
                        uint64_t now_ns);
void erdma_conn_rx_term_ack(ErdmaXportConn *c, const ErdmaWire *w,
                            uint64_t now_ns);
/* Offers what is stored; true when some is left that can be offered now. */
bool erdma_conn_rx_drain(ErdmaXportConn *c);

#endif /* HW_ERDMA_XPORT_CONN_H */
