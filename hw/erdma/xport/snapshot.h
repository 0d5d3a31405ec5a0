/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: its whole state as flat data, to be carried elsewhere.
 *
 * A snapshot is structs of fixed-width fields in arrays.  There are no
 * pointers into live state: what belongs to a connection are the next
 * elements of the other arrays, as many as the connection says.  Payloads of
 * messages are not in it, as they are described and not copied; segments that
 * were received and could not be consumed yet are.
 *
 * Times are differences to the time of saving: "age" is how long ago, "in"
 * is how soon, ERDMA_XPORT_NEVER for never and 0 for overdue.  So the clocks
 * of both places need not agree.  Flags (is_, has_, want_) are 0, or anything
 * else for true.  Doubles are the bits of IEEE 754.
 *
 * Loading trusts nothing: a snapshot may come from whoever can write a file.
 * It either restores all of it or returns an error that names the field.
 */

#ifndef HW_ERDMA_XPORT_SNAPSHOT_H
#define HW_ERDMA_XPORT_SNAPSHOT_H

#include "xport/xport.h"

/* The most elements of an array; a bigger transport cannot be saved. */
#define ERDMA_SNAP_MAX_CONNS    (1u << 19)
#define ERDMA_SNAP_MAX_ITEMS    (1u << 22)
#define ERDMA_SNAP_MAX_BYTES    (1u << 28)

#define ERDMA_SNAP_TOP          ERDMA_XPORT_PACKET_THRESHOLD_MAX
/* uint64_t in ErdmaXportStats */
#define ERDMA_XPORT_SNAP_COUNTERS   (sizeof(ErdmaXportStats) / 8)

/* ErdmaXportMsgHdr */
typedef struct ErdmaHdrSnap {
    uint8_t op;
    uint8_t is_solicited;
    uint32_t len;
    uint32_t imm;
    uint32_t rkey;
    uint64_t raddr;
    uint32_t read_len;
    uint32_t req_msn;
    uint64_t swap_add;
    uint64_t compare;
    uint64_t original;
} ErdmaHdrSnap;

/* One transmission; numbers count from ErdmaConnSnap.base on. */
typedef struct ErdmaSentSnap {
    uint64_t age_ns;
    uint32_t msn;
    uint32_t off;
    uint16_t len;
    uint16_t bytes;
    uint8_t state;              /* ErdmaSentState */
    uint8_t is_ect;
    uint8_t is_resent;
} ErdmaSentSnap;

/* Packet numbers received, inclusive, rising */
typedef struct ErdmaRangeSnap {
    uint64_t first;
    uint64_t last;
    uint8_t n_reports;
    uint8_t is_fresh;
} ErdmaRangeSnap;

/* A segment that waits; its @len bytes are the next ones of bytes[]. */
typedef struct ErdmaChunkSnap {
    uint32_t msn;
    uint32_t off;
    uint32_t len;
    uint8_t is_last;
    ErdmaHdrSnap hdr;           /* when @off is 0 */
} ErdmaChunkSnap;

typedef struct ErdmaCubicStateSnap {
    uint64_t cwnd;              /* double, as are the next four */
    uint64_t w_max;
    uint64_t k;
    uint64_t w_est;
    uint64_t cwnd_prior;
    uint64_t epoch_age_ns;
    uint64_t ssthresh;
    uint8_t has_epoch;
    uint8_t is_k_zero;
} ErdmaCubicStateSnap;

typedef struct ErdmaCubicSnap {
    ErdmaCubicStateSnap s;
    ErdmaCubicStateSnap prior;
    uint8_t has_prior;
    uint64_t last_age_ns;
} ErdmaCubicSnap;

/* Followed by n_hops elements of hops[] */
typedef struct ErdmaHpccSnap {
    uint64_t t_ns;
    uint64_t w_max;             /* double, as are the next three */
    uint64_t w_ai;
    uint64_t wc;
    uint64_t u;
    uint32_t stage;
    uint8_t has_round;
    uint64_t round_end;
    uint64_t round_min;         /* double */
    uint8_t has_reprobe;
    uint64_t reprobe_age_ns;
    uint32_t n_rounds;
    uint32_t n_reprobes;
    uint64_t alpha;             /* double */
    uint64_t round_acked;
    uint64_t round_marked;
    uint8_t has_history;
    uint64_t history_age_ns;
    uint8_t is_compact;
    uint16_t path_id;
    uint32_t n_hops;
} ErdmaHpccSnap;

/* One link's report in the latest stack; the link's own clock */
typedef struct ErdmaHopSnap {
    uint64_t rate;
    uint64_t time_ns;
    uint64_t tx_bytes;
    uint32_t queue;
    uint16_t link_id;
} ErdmaHopSnap;

/*
 * One connection.  The position (unsent_msn, unsent_off) is that of what is
 * to be sent next for the first time; the messages [una_msn, next_msn) are
 * the owner's, who has to have them again when this is loaded.
 */
typedef struct ErdmaConnSnap {
    uint32_t local_cookie;
    uint32_t peer_cookie;
    uint32_t local_ip;
    uint32_t peer_ip;
    uint8_t is_active;             /* has something to do right away */
    uint64_t timer_in_ns;       /* looks for what is due; may be early */
    uint8_t is_failed;
    uint8_t is_heard;
    uint8_t is_peer_terminated;
    uint8_t want_term;
    uint8_t want_term_ack;
    uint8_t term;               /* ErdmaTermState */
    uint8_t term_status;
    uint8_t n_terms;
    uint32_t term_msn;
    uint32_t term_ack_number;
    uint64_t term_in_ns;

    /* sending */
    uint32_t next_msn;
    uint32_t una_msn;
    uint32_t una_off;
    uint32_t unsent_msn;
    uint32_t unsent_off;
    uint64_t credit;
    uint64_t next_ack;
    uint64_t base;              /* number of the first of n_sents */
    uint32_t n_sents;
    uint8_t n_top;
    uint32_t top[ERDMA_SNAP_TOP];
    uint8_t has_rack;
    uint8_t is_reordering_seen;
    uint8_t is_in_recovery;
    uint8_t reo_mult;
    uint8_t n_recoveries;
    uint64_t rack_age_ns;
    uint64_t rack_rtt_ns;
    uint64_t recovery_end;
    uint64_t spurious_end;
    uint32_t n_episode_lost;
    uint32_t n_episode_spurious;
    uint8_t has_rtt;
    uint64_t latest_ns;
    uint64_t srtt_ns;
    uint64_t rttvar_ns;
    uint64_t min0_ns;
    uint64_t min1_ns;
    uint64_t bucket_age_ns;
    uint64_t pacer_age_ns;
    uint64_t pacer_debt;        /* double */
    uint64_t round_end;
    uint64_t max_pipe0;
    uint64_t max_pipe1;
    uint32_t tx_ce_packets;
    uint32_t tx_ce_bytes;
    uint32_t tx_ect_packets;
    uint32_t ect_acked;
    uint64_t base_age_ns;
    uint64_t last_send_age_ns;
    uint64_t loss_in_ns;
    uint64_t pacer_in_ns;
    uint64_t persist_in_ns;
    uint64_t progress_age_ns;
    uint8_t n_timeouts;
    uint8_t n_persist;
    uint8_t is_held;
    uint8_t is_probed;
    uint8_t is_dead;
    uint8_t is_peer_rnr;
    uint8_t is_answered;
    uint8_t is_ecn_off;
    uint8_t is_expecting;
    uint8_t want_probe;
    uint8_t want_resend;
    uint8_t want_ping;

    /* congestion control; CUBIC and HPCC have an element of their array */
    uint8_t cc;                 /* ErdmaXportCc */
    uint64_t cwnd;
    uint64_t ssthresh;
    uint32_t n_rounds;
    uint64_t reno_remainder;
    uint64_t reno_prior_cwnd;
    uint64_t reno_prior_ssthresh;

    /* receiving */
    uint64_t pn0;
    uint64_t floor;
    uint32_t n_ranges;
    uint32_t n_chunks;
    uint32_t rx_msn;
    uint32_t rx_off;
    ErdmaHdrSnap hdr;           /* when rx_off is not 0 */
    uint64_t rx_next_ack;
    uint64_t trigger_pn;
    uint64_t trigger_age_ns;
    uint64_t ack_in_ns;
    uint64_t gap_pn;
    uint64_t ahead_pn;
    uint32_t ahead_msn;
    uint32_t ahead_off;
    uint32_t n_unacked;
    uint32_t rx_ce_packets;
    uint32_t rx_ce_bytes;
    uint32_t rx_ect_packets;
    uint8_t int_info;           /* the stack: next bytes, before the chunks' */
    uint8_t is_last_ce;
    uint8_t is_holding;
    uint8_t is_refused;
    uint8_t want_ack;
    uint8_t want_nack;
    uint8_t is_nacked;
    uint8_t want_resume;

    /* counters */
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
} ErdmaConnSnap;

/* All arrays are the snapshot's own, NULL when empty. */
typedef struct ErdmaXportSnap {
    uint32_t mtu;
    uint64_t counters[ERDMA_XPORT_SNAP_COUNTERS];   /* ErdmaXportStats */
    uint32_t n_conns;
    uint32_t n_sents;
    uint32_t n_ranges;
    uint32_t n_chunks;
    uint32_t n_cubics;
    uint32_t n_hpccs;
    uint32_t n_hops;
    uint32_t n_bytes;
    ErdmaConnSnap *conns;
    ErdmaSentSnap *sents;
    ErdmaRangeSnap *ranges;
    ErdmaChunkSnap *chunks;
    ErdmaCubicSnap *cubics;
    ErdmaHpccSnap *hpccs;
    ErdmaHopSnap *hops;
    uint8_t *bytes;
} ErdmaXportSnap;

/* How far loading has got in each array */
typedef struct ErdmaXportLoad {
    const ErdmaXportSnap *snap;
    uint64_t now_ns;
    uint32_t conn;
    uint32_t sent;
    uint32_t range;
    uint32_t chunk;
    uint32_t cubic;
    uint32_t hpcc;
    uint32_t hop;
    uint32_t byte;
} ErdmaXportLoad;

/*
 * Saves what is common to all connections; @s is all 0.  Then
 * erdma_xport_save_conn() adds one connection after the other, in an order
 * that the owner can repeat.  Of a connection on which nothing is sent any
 * more the messages are not saved.  Not from inside a callback.
 */
void erdma_xport_save(const ErdmaXport *x, ErdmaXportSnap *s);
void erdma_xport_save_conn(const ErdmaXportConn *c, ErdmaXportSnap *s,
                           uint64_t now_ns);
/* Is it small enough?  Else *@error, to be freed, says of what it has much. */
bool erdma_xport_snap_fits(const ErdmaXportSnap *s, char **error);
/* Frees the arrays. */
void erdma_xport_snap_clear(ErdmaXportSnap *s);

/*
 * Begins to load @s, which must outlive @l, into @x, which has no connection.
 * False: *@error, to be freed, names the field; nothing has changed.
 */
bool erdma_xport_load(ErdmaXport *x, const ErdmaXportSnap *s,
                      uint64_t now_ns, ErdmaXportLoad *l, char **error);
/* The connection that comes next, NULL when there is none */
static inline const ErdmaConnSnap *erdma_xport_load_peek(
    const ErdmaXportLoad *l)
{
    return l->conn < l->snap->n_conns ? &l->snap->conns[l->conn] : NULL;
}
/*
 * Opens that connection for @owner.  @msgs are its messages from una_msn on,
 * @n_msgs of them, with @hdr filled in, none when it is dead.  NULL: *@error
 * names the field, and nothing has been opened.
 */
ErdmaXportConn *erdma_xport_load_conn(ErdmaXport *x, ErdmaXportLoad *l,
                                      void *owner,
                                      ErdmaXportMsg *const *msgs,
                                      uint32_t n_msgs, char **error);
/* Was everything used?  Call this last. */
bool erdma_xport_load_end(const ErdmaXportLoad *l, char **error);

void erdma_snap_save_hdr(const ErdmaXportMsgHdr *hdr, ErdmaHdrSnap *s);
/* False: @s->op is no operation */
bool erdma_snap_load_hdr(ErdmaXportMsgHdr *hdr, const ErdmaHdrSnap *s);

/* Times to and from differences */
static inline uint64_t erdma_snap_age(uint64_t when_ns, uint64_t now_ns)
{
    return now_ns > when_ns ? now_ns - when_ns : 0;
}

static inline uint64_t erdma_snap_in(uint64_t when_ns, uint64_t now_ns)
{
    return when_ns == ERDMA_XPORT_NEVER ? ERDMA_XPORT_NEVER :
           when_ns > now_ns ? when_ns - now_ns : 0;
}

static inline uint64_t erdma_snap_ago(uint64_t age_ns, uint64_t now_ns)
{
    return now_ns - MIN(age_ns, now_ns);
}

static inline uint64_t erdma_snap_at(uint64_t in_ns, uint64_t now_ns)
{
    return in_ns > ERDMA_XPORT_NEVER - now_ns ? ERDMA_XPORT_NEVER :
           now_ns + in_ns;
}

/*
 * Arrays of snapshots: @v with one more element, which is all 0, behind
 * *@n others.
 */
void *erdma_snap_grow(void *v, uint32_t *n, size_t size);
#define ERDMA_SNAP_ADD(_s, _array) \
    ((_s)->_array = erdma_snap_grow((_s)->_array, &(_s)->n_##_array, \
                                    sizeof(*(_s)->_array)), \
     &(_s)->_array[(_s)->n_##_array - 1])
/* The same for @len bytes of bytes[] */
uint8_t *erdma_snap_add_bytes(uint8_t **bytes, uint32_t *n_bytes, size_t len);

/* What a field may be; is_double: its bits, and the limits are numbers */
typedef struct ErdmaSnapRange {
    const char *name;
    uint16_t offset;
    uint8_t size;
    bool is_double;
    uint64_t min;
    uint64_t max;
} ErdmaSnapRange;

#define ERDMA_SNAP_RANGE(_type, _field, _min, _max) \
    { .name = #_field, .offset = offsetof(_type, _field), \
      .size = sizeof(((_type *)0)->_field), .min = _min, .max = _max }
/* 0 to @_max, a whole number */
#define ERDMA_SNAP_DOUBLE(_type, _field, _max) \
    { .name = #_field, .offset = offsetof(_type, _field), \
      .size = sizeof(((_type *)0)->_field), .is_double = true, \
      .max = _max }

/*
 * Checks the @n fields of @obj; else *@error says which one of
 * "@what @number" is wrong, and what it may be.
 */
bool erdma_snap_check(const ErdmaSnapRange *r, size_t n, const void *obj,
                      const char *what, uint32_t number, char **error);
/* *@error = the text; returns false. */
bool erdma_snap_fail(char **error, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);

#endif /* HW_ERDMA_XPORT_SNAPSHOT_H */
