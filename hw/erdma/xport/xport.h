/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: reliable, ordered messages over a lossy datagram wire.
 *
 * This is the contract between the transport and whoever is above it (the
 * device engine, a unit test, the simulator, a fuzzer).  The transport knows
 * no guest ABI, no clock, no socket and no thread: time is an argument, the
 * next deadline a return value, datagrams go out through one function
 * pointer and come in through one call.
 *
 * Units: times are nanoseconds of one monotonic clock that the caller owns;
 * sizes are bytes; IPv4 addresses, ports and all header fields are numbers in
 * host byte order.
 *
 * Threading: none.  All calls on one ErdmaXport come from one thread.
 *
 * Re-entrancy: from inside any ErdmaXportOps callback the owner may call
 * erdma_xport_conn_send(), erdma_xport_conn_rx_resume(),
 * erdma_xport_conn_terminate() and erdma_xport_conn_close() on any
 * connection.  None of them calls back; what they cause happens in the next
 * erdma_xport_poll().
 *
 * Wire format: docs/specs/erdma-wire.rst
 */

#ifndef HW_ERDMA_XPORT_H
#define HW_ERDMA_XPORT_H

#include "qemu/queue.h"
#include "xport/cc.h"

typedef struct ErdmaXport ErdmaXport;
typedef struct ErdmaXportConn ErdmaXportConn;
typedef struct ErdmaXportMsg ErdmaXportMsg;

/* No deadline: nothing to do until something else happens. */
#define ERDMA_XPORT_NEVER       UINT64_MAX

/*
 * The default UDP port lies outside Linux's range of ephemeral ports, so a
 * guest's own sockets do not meet it by accident.
 */
#define ERDMA_XPORT_UDP_PORT    64791
/* Writable bytes in front of an outgoing datagram (Ethernet, IP and UDP) */
#define ERDMA_XPORT_HEADROOM    64
#define ERDMA_XPORT_IP_UDP_LEN  28
#define ERDMA_XPORT_MTU_MIN     256
#define ERDMA_XPORT_MTU_MAX     65535
/* Most later packets that the loss detection can wait for */
#define ERDMA_XPORT_PACKET_THRESHOLD_MAX    8
/* Below this number of messages not yet sent once, tx_room is called */
#define ERDMA_XPORT_LOW_WATER   16

/* One UDP datagram.  @data is the UDP payload. */
typedef struct ErdmaDatagram {
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t src_port;
    uint16_t dst_port;
    uint8_t ecn;                /* the two ECN bits of the IP header */
    uint8_t *data;              /* outgoing: HEADROOM writable bytes before */
    size_t len;
} ErdmaDatagram;

/* Congestion control algorithms; the first five have the guest ABI's codes. */
typedef enum ErdmaXportCc {
    ERDMA_XPORT_CC_NEWRENO,
    ERDMA_XPORT_CC_CUBIC,
    ERDMA_XPORT_CC_HPCC_RTT,
    ERDMA_XPORT_CC_HPCC_ECN,
    ERDMA_XPORT_CC_HPCC_INT,
    ERDMA_XPORT_CC_NONE = 16,   /* fixed window; no guest can ask for it */
} ErdmaXportCc;

/* What a message does at the receiver. */
typedef enum ErdmaXportOp {
    ERDMA_XPORT_OP_SEND = 1,
    ERDMA_XPORT_OP_SEND_IMM,
    ERDMA_XPORT_OP_SEND_INV,
    ERDMA_XPORT_OP_WRITE,
    ERDMA_XPORT_OP_WRITE_IMM,
    ERDMA_XPORT_OP_READ_REQ,
    ERDMA_XPORT_OP_READ_RESP,
    ERDMA_XPORT_OP_ATOMIC_CAS,
    ERDMA_XPORT_OP_ATOMIC_FAA,
    ERDMA_XPORT_OP_ATOMIC_RESP,
    ERDMA_XPORT_OP_COUNT,
} ErdmaXportOp;

/*
 * Header of a message; travels with its first segment.  A field that the
 * operation does not use is 0 on the wire's far side.
 */
typedef struct ErdmaXportMsgHdr {
    ErdmaXportOp op;
    bool is_solicited;          /* SEND*, WRITE_IMM */
    uint32_t len;               /* payload bytes of this message, may be 0 */
    uint32_t imm;               /* *_IMM: the number; SEND_INV: the key */
    uint32_t rkey;              /* WRITE*, READ_REQ, ATOMIC_CAS, ATOMIC_FAA */
    uint64_t raddr;             /* the same */
    uint32_t read_len;          /* READ_REQ: bytes wanted */
    uint32_t req_msn;           /* *_RESP: MSN of the answered request */
    uint64_t swap_add;          /* CAS: new value; FAA: addend */
    uint64_t compare;           /* CAS */
    uint64_t original;          /* ATOMIC_RESP: value before the operation */
} ErdmaXportMsgHdr;

/*
 * One outgoing message.  The owner allocates it (usually inside a larger
 * struct), fills @hdr, and leaves it alone from erdma_xport_conn_send() until
 * msg_done() for it, or until erdma_xport_conn_close() of its connection
 * returned.  The payload is not copied: the transport pulls it, again for
 * each retransmission.
 */
struct ErdmaXportMsg {
    ErdmaXportMsgHdr hdr;
    uint32_t msn;               /* set by erdma_xport_conn_send() */

    /* private to the transport */
    uint32_t sent_len;          /* bytes sent at least once */
    bool is_sent;               /* its last segment was sent at least once */
    QTAILQ_ENTRY(ErdmaXportMsg) next;
};

/* The owner's answer to a segment that is next in order. */
typedef enum ErdmaXportRx {
    ERDMA_XPORT_RX_OK,          /* consumed */
    /*
     * Not now (no receive posted).  Nothing was consumed; the segment is
     * kept and offered again after erdma_xport_conn_rx_resume().
     */
    ERDMA_XPORT_RX_NOT_READY,
    /* Never: drop this and everything that follows on the connection. */
    ERDMA_XPORT_RX_REFUSED,
} ErdmaXportRx;

typedef enum ErdmaXportError {
    ERDMA_XPORT_ERR_RETRY,      /* peer silent for the configured retries */
    ERDMA_XPORT_ERR_RNR,        /* peer alive, no receive for rnr_timeout */
} ErdmaXportError;

/* Events for tracing; @a and @b as noted. */
typedef enum ErdmaXportEvent {
    ERDMA_XPORT_EV_SEND,        /* packet number, payload bytes */
    ERDMA_XPORT_EV_RETRANSMIT,  /* new packet number, old packet number */
    ERDMA_XPORT_EV_ACKED,       /* newly acked bytes, RTT sample or 0 */
    ERDMA_XPORT_EV_LOST,        /* packet number, bytes */
    ERDMA_XPORT_EV_SPURIOUS,    /* packet number, reordering multiplier */
    ERDMA_XPORT_EV_PROBE,       /* packet number, time since last ack */
    ERDMA_XPORT_EV_RTO,         /* consecutive count, next timeout */
    ERDMA_XPORT_EV_CWND,        /* window, slow-start threshold or reference */
    ERDMA_XPORT_EV_CE,          /* newly marked packets, newly ECT packets */
    ERDMA_XPORT_EV_DROP,        /* enum ErdmaXportDrop, packet number */
    /*
     * Why the window changes: one of these goes before EV_CWND, which by
     * itself means that acks let it grow, or that HPCC adjusts it.
     */
    ERDMA_XPORT_EV_CONGESTION,  /* enum ErdmaXportCause, window until now */
    ERDMA_XPORT_EV_RECOVERED,   /* packets lost since, window; episode's end */
    ERDMA_XPORT_EV_UNDO,        /* window until now, window that comes back */
    ERDMA_XPORT_EV_ROUND,       /* HPCC: millionths of U, stage */
    ERDMA_XPORT_EV_ALPHA,       /* HPCC_ECN: millionths of alpha, stage */
    ERDMA_XPORT_EV_ECN_OFF,     /* marks and ECT packets that the peer says */
    ERDMA_XPORT_EV_COUNT,
} ErdmaXportEvent;

/* What began a recovery episode */
typedef enum ErdmaXportCause {
    ERDMA_XPORT_CAUSE_LOSS,
    ERDMA_XPORT_CAUSE_MARK,
    ERDMA_XPORT_CAUSE_TIMEOUT,
} ErdmaXportCause;

/* Why an incoming datagram was dropped: index into drops[] below */
typedef enum ErdmaXportDrop {
    ERDMA_XPORT_DROP_MALFORMED,     /* failed the parse gate */
    ERDMA_XPORT_DROP_VERSION,
    ERDMA_XPORT_DROP_NO_CONN,       /* no such connection or incarnation */
    ERDMA_XPORT_DROP_PEER,          /* wrong peer cookie or address */
    ERDMA_XPORT_DROP_WINDOW,        /* packet number or ack out of window */
    ERDMA_XPORT_DROP_DUPLICATE,
    ERDMA_XPORT_DROP_NO_BUFFER,     /* out-of-order buffer full */
    ERDMA_XPORT_DROP_REFUSED,       /* after ERDMA_XPORT_RX_REFUSED */
    ERDMA_XPORT_DROP_COUNT,
} ErdmaXportDrop;

typedef struct ErdmaXportOps {
    /*
     * Send one datagram.  @dg and its data are only valid during the call.
     * Returns true to go on; false when the datagram was taken but the path
     * is now blocked: the transport sends nothing until
     * erdma_xport_unblock().
     */
    bool (*transmit)(void *opaque, const ErdmaDatagram *dg);

    /*
     * Copy @len payload bytes of @msg from @off to @buf.  Returns false when
     * they cannot be had any more (guest memory gone, right withdrawn); the
     * owner has then noted why, nothing more is sent on the connection, and
     * the owner is expected to close or terminate it.
     */
    bool (*pull)(void *opaque, void *owner, ErdmaXportMsg *msg,
                 uint32_t off, uint8_t *buf, uint32_t len);

    /*
     * The segment [@off, @off + @len) of incoming message @msn, in order,
     * exactly once; @is_last ends the message.  A message without payload is
     * one call with @len 0 and @is_last.  @hdr is the message's header, for
     * every segment.  It has been checked for consistency: @off + @len <=
     * @hdr->len, and @is_last exactly when they are equal.
     */
    ErdmaXportRx (*rx)(void *opaque, void *owner, const ErdmaXportMsgHdr *hdr,
                       uint32_t msn, uint32_t off, const uint8_t *data,
                       uint32_t len, bool is_last);

    /*
     * The peer consumed all of @msg; called once per message, in the order
     * of sending.  The transport forgets @msg before the call.
     */
    void (*msg_done)(void *opaque, void *owner, ErdmaXportMsg *msg);

    /*
     * Fewer than ERDMA_XPORT_LOW_WATER messages wait for their first
     * transmission: queue more if there are any.
     */
    void (*tx_room)(void *opaque, void *owner);

    /* The peer called erdma_xport_conn_terminate(); once per connection. */
    void (*terminated)(void *opaque, void *owner, uint8_t status,
                       uint32_t msn);

    /*
     * The connection is dead; once.  The owner still has to close it, and may
     * terminate it before: the peer may hear us where we do not hear it.
     */
    void (*conn_error)(void *opaque, void *owner, ErdmaXportError error);

    /* Optional, may be NULL. */
    void (*trace)(void *opaque, void *owner, ErdmaXportEvent event,
                  uint64_t a, uint64_t b);
} ErdmaXportOps;

typedef struct ErdmaXportConfig {
    uint32_t mtu;               /* IP MTU: header, UDP and all */
    uint16_t udp_port;
    /* congestion control: initial window, bytes; 0 = ten full segments */
    uint32_t initial_window;
    uint64_t initial_rto_ns;
    uint64_t rto_min_ns;
    uint64_t rto_max_ns;
    uint32_t retry_max;         /* consecutive timeouts before ERR_RETRY */
    uint64_t rnr_timeout_ns;    /* without progress before ERR_RNR */
    uint32_t ack_every;         /* data packets per ack, at least 1 */
    uint64_t ack_delay_ns;      /* 0: at the next erdma_xport_poll() */
    uint32_t rx_buffer;         /* out-of-order bytes kept per connection */
    bool is_paced;
    uint64_t pacing_quantum_ns; /* burst that the caller's timer can resolve */
    bool use_ecn;               /* send ECT(0) */
    /*
     * For simulation: payloads have a length but no content.  Datagrams end
     * behind their headers (@len counts all of it nevertheless), pull() is
     * called without a buffer, rx() without data.
     */
    bool is_hollow;
    /*
     * For comparison only: the receiver keeps nothing that is out of order,
     * the sender starts again from the first gap.  Both ends alike.
     */
    bool is_go_back_n;
    /*
     * A packet is lost when this many sent later have arrived, as long as the
     * path was not seen to reorder.
     */
    uint8_t packet_threshold;
    /* HPCC_INT: hops a packet has room for, 0: packets have no INT space */
    uint8_t int_hops;
    bool is_int_compact;
    ErdmaCcConfig cc;           /* parameters of the algorithms */
} ErdmaXportConfig;

typedef struct ErdmaXportStats {
    uint64_t tx_packets;        /* all kinds */
    uint64_t tx_bytes;          /* UDP payload bytes */
    uint64_t tx_data_packets;
    uint64_t tx_payload_bytes;
    uint64_t tx_acks;
    uint64_t rx_packets;
    uint64_t rx_bytes;
    uint64_t rx_data_packets;
    uint64_t rx_payload_bytes;  /* consumed by the owner */
    uint64_t rx_acks;
    uint64_t rx_out_of_order;
    uint64_t rx_not_ready;
    uint64_t rx_ce;
    uint64_t retransmits;
    uint64_t lost;              /* packets declared lost */
    uint64_t spurious;          /* declared lost, then acked */
    uint64_t probes;
    uint64_t rtos;
    uint64_t ce_echoed;         /* marks of ours that peers reported */
    uint64_t ecn_failures;      /* connections that gave up ECN */
    uint64_t int_samples;       /* INT stacks that came back with hops */
    uint64_t loss_episodes;     /* reactions to a loss, timeouts excluded */
    uint64_t ecn_episodes;      /* windows that had a mark and no loss */
    uint64_t undos;             /* episodes that proved to be spurious */
    uint64_t terminates_sent;
    uint64_t terminates_received;
    uint64_t drops[ERDMA_XPORT_DROP_COUNT];
} ErdmaXportStats;

typedef struct ErdmaXportConnParams {
    uint32_t local_cookie;      /* unique among the open connections */
    uint32_t peer_cookie;
    uint32_t local_ip;
    uint32_t peer_ip;
    uint32_t tx_pn0;            /* first packet number we send */
    uint32_t rx_pn0;            /* first packet number the peer sends */
    uint8_t cc;                 /* enum ErdmaXportCc; others: CUBIC */
    void *owner;
} ErdmaXportConnParams;

/* A snapshot for introspection.  Windows and inflight are bytes. */
typedef struct ErdmaXportConnInfo {
    const char *cc_name;
    uint64_t cwnd;
    uint64_t ssthresh;          /* UINT64_MAX: not set */
    ErdmaCcInfo cc;
    uint32_t local_cookie;
    uint32_t peer_cookie;
    uint32_t local_ip;
    uint32_t peer_ip;
    bool is_in_recovery;        /* a loss or a mark of this window is known */
    bool is_ecn_on;             /* what we send is ECN-capable */
    bool is_peer_rnr;           /* its owner was not ready */
    bool is_dead;               /* nothing is sent any more */
    uint8_t n_timeouts;         /* in a row */
    uint8_t reordering;         /* multiplier of the reordering window */
    uint64_t inflight;
    uint64_t pacing_rate;       /* bytes per second, 0 = not paced */
    uint64_t srtt_ns;
    uint64_t rttvar_ns;
    uint64_t min_rtt_ns;
    uint64_t rto_ns;
    uint32_t tx_msn;            /* next message to send */
    uint32_t una_msn;           /* oldest message not delivered */
    uint32_t rx_msn;            /* next message to receive */
    uint32_t unsent_msgs;
    uint32_t rx_held_bytes;     /* out of order or not ready */
    uint64_t tx_packets;
    uint64_t rx_packets;
    uint64_t tx_delivered;      /* payload bytes that the peer consumed */
    uint64_t rx_delivered;      /* payload bytes that the owner consumed */
    uint64_t retransmits;
    uint64_t lost;
    uint64_t spurious;
    uint64_t probes;
    uint64_t rtos;
    uint64_t ce_echoed;         /* marks that the peer reported */
    uint64_t int_samples;       /* INT stacks that came back with hops */
    uint64_t loss_episodes;     /* reactions to a loss, timeouts excluded */
    uint64_t ecn_episodes;      /* windows that had a mark and no loss */
    uint64_t undos;             /* episodes that proved to be spurious */
} ErdmaXportConnInfo;

/*
 * Do packets carry INT space, as @cfg asks for it?  Not where it would take
 * more than half of a packet.
 */
bool erdma_xport_int_fits(const ErdmaXportConfig *cfg);

/* Fills @cfg with the defaults of a device in a virtual machine. */
void erdma_xport_config_default(ErdmaXportConfig *cfg);

/*
 * @ops stays the caller's and must outlive the transport; @cfg is copied.
 * Impossible values are clamped, the shell reports them to the user before.
 */
ErdmaXport *erdma_xport_new(const ErdmaXportOps *ops, void *opaque,
                            const ErdmaXportConfig *cfg);
/* Closes every connection without calling back. */
void erdma_xport_free(ErdmaXport *x);

/*
 * For the time after a reset: a transport like @x with what that has counted,
 * and without its connections.  These stay with @x, which can do no more than
 * close them and be freed.  NULL when @x is recorded, as the recording knows
 * of one transport only.
 */
ErdmaXport *erdma_xport_successor(ErdmaXport *x);

/*
 * Segments that wait for what is before them: blocks of memory to be freed,
 * at most so many, with the connection or with all of them.
 */
uint32_t erdma_xport_conn_n_held(const ErdmaXportConn *conn);
uint64_t erdma_xport_n_held(const ErdmaXport *x);

/*
 * A number that whoever chooses cookies cannot know, so that no choice makes
 * look-ups slow; nothing else depends on it.  There is no connection yet.
 */
void erdma_xport_set_secret(ErdmaXport *x, uint32_t secret);

/* So many connections do not make their map grow.  There is none yet. */
void erdma_xport_reserve(ErdmaXport *x, uint32_t n_conns);

/* Segments sent from now on obey @mtu, retransmissions too. */
void erdma_xport_set_mtu(ErdmaXport *x, uint32_t mtu);
uint32_t erdma_xport_mtu(const ErdmaXport *x);
const ErdmaXportStats *erdma_xport_stats(const ErdmaXport *x);

/*
 * Opens a connection.  Both ends call this; there is no handshake on the
 * wire.  Returns NULL when @p->local_cookie is in use.
 */
ErdmaXportConn *erdma_xport_conn_open(ErdmaXport *x,
                                      const ErdmaXportConnParams *p,
                                      uint64_t now_ns);
/*
 * Forgets the connection and its messages at once and silently.  No callback
 * for it follows, not even when called from inside one.
 */
void erdma_xport_conn_close(ErdmaXportConn *conn);

/* Queues @msg; sets its MSN.  It leaves in a later erdma_xport_poll(). */
void erdma_xport_conn_send(ErdmaXportConn *conn, ErdmaXportMsg *msg);
/* Messages queued that were not sent completely yet */
uint32_t erdma_xport_conn_unsent(const ErdmaXportConn *conn);

/*
 * The owner waits for a message of the peer, an answer, or does so no more.
 * While it waits and nothing of ours is under way, the peer is asked now and
 * then whether it is there: if it is not, that is ERDMA_XPORT_ERR_RETRY.
 */
void erdma_xport_conn_expect(ErdmaXportConn *conn, bool is_expecting);

/* After ERDMA_XPORT_RX_NOT_READY: try again in the next poll. */
void erdma_xport_conn_rx_resume(ErdmaXportConn *conn);

/*
 * Tells the peer that its message @msn failed here with @status (opaque to
 * the transport), reliably within the retry limit, in place of everything
 * that was still to be sent: queued messages are forgotten without
 * msg_done(), incoming data is dropped.  No conn_error() follows.
 */
void erdma_xport_conn_terminate(ErdmaXportConn *conn, uint8_t status,
                                uint32_t msn);

void erdma_xport_conn_info(const ErdmaXportConn *conn,
                           ErdmaXportConnInfo *info);

/*
 * Does @data look like a datagram of this protocol (length, magic)?  Cheap,
 * stateless; anything else on our port belongs to somebody else.
 */
bool erdma_xport_is_ours(const uint8_t *data, size_t len);

/*
 * A hint that datagram @data will be input soon: fetches what that touches
 * into the processor's caches, in ERDMA_XPORT_FETCHES stages, each of which
 * reads what the one before fetched.  They pay where there are more
 * connections than the caches hold, and when other work lies between them.
 * @data has the common header.
 */
#define ERDMA_XPORT_FETCHES     5
void erdma_xport_fetch(const ErdmaXport *x, const uint8_t *data,
                       unsigned stage);

/*
 * The same for a timer that erdma_xport_poll() at @at_ns will find due; to be
 * called twice.
 */
void erdma_xport_fetch_due(ErdmaXport *x, uint64_t at_ns);

/* One datagram from the wire; @dg->data is not kept and not changed. */
void erdma_xport_input(ErdmaXport *x, const ErdmaDatagram *dg,
                       uint64_t now_ns);

/* The path takes datagrams again. */
void erdma_xport_unblock(ErdmaXport *x);

/*
 * Timers, acks that are due, deliveries that were held, and at most
 * @max_packets datagrams.  Returns the time of the next call that is needed
 * even if nothing else happens; a value <= @now_ns means that work is left.
 */
uint64_t erdma_xport_poll(ErdmaXport *x, uint64_t now_ns,
                          unsigned max_packets);

/* Takes the next bytes of a recording. */
typedef void ErdmaXportWrite(void *opaque, const uint8_t *data, size_t len);

/*
 * Records from now on every call of the owner and what came out, in the form
 * of record.h; no connection is open and nothing is recorded yet.  A new call
 * that changes what the transport does has to be recorded too.
 */
void erdma_xport_record(ErdmaXport *x, ErdmaXportWrite *write, void *opaque);
/* Ends the recording, if there is one; not from inside a callback. */
void erdma_xport_record_end(ErdmaXport *x);

#endif /* HW_ERDMA_XPORT_H */
