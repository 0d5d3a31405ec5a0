/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two ends of the transport, one connection, a wire in virtual time between
 * them that does to each packet what the test wants.
 *
 * The rig checks by itself that messages arrive byte for byte, once, in
 * order, and that msg_done comes once per message and in order.
 */

#ifndef TESTS_XPORT_RIG_H
#define TESTS_XPORT_RIG_H

#include "xport/snapshot.h"
#include "xport/xport.h"

#define RIG_US  1000ULL
#define RIG_MS  (1000 * RIG_US)
#define RIG_S   (1000 * RIG_MS)

typedef struct XportRig XportRig;

/* What happens to one packet; all 0: it arrives after the wire's delay. */
typedef struct RigFate {
    bool is_lost;
    unsigned n_copies;          /* additional ones */
    uint64_t extra_ns;          /* late by */
} RigFate;

/* A packet as the wire sees it */
typedef struct RigPacket {
    int from;
    uint64_t index;             /* of this end's packets */
    uint64_t data_index;        /* of this end's data packets, if it is one */
    bool is_data;
    bool is_ack;
    bool is_ping;
    uint8_t *data;              /* may be changed */
    size_t len;
    uint8_t ecn;                /* of the IP header, may be changed */
} RigPacket;

typedef struct RigMsg {
    ErdmaXportMsg msg;
    int from;
} RigMsg;

typedef struct RigEnd {
    XportRig *rig;
    int id;
    ErdmaXport *x;
    ErdmaXportConn *conn;
    uint64_t next_ns;           /* what poll returned */
    uint64_t unblock_ns;        /* NEVER: the path is free */
    uint64_t n_polls;
    uint64_t n_packets;
    uint64_t n_data;
    /* sending */
    GPtrArray *sent;            /* RigMsg, by MSN */
    unsigned n_done;
    bool is_pull_broken;
    /* receiving: the position that must come next */
    uint32_t rx_msn;
    uint32_t rx_off;
    uint64_t rx_bytes;
    unsigned n_rx_calls;
    unsigned n_tx_room;
    unsigned n_terminated;
    uint8_t term_status;
    uint32_t term_msn;
    unsigned n_errors;
    ErdmaXportError error;
    uint64_t error_ns;
    unsigned events[ERDMA_XPORT_EV_COUNT];
} RigEnd;

struct XportRig {
    ErdmaXportConfig cfg;       /* of both ends */
    uint64_t now_ns;
    RigEnd end[2];
    uint32_t pn0[2];
    uint8_t cc;
    uint64_t delay_ns;          /* one way */
    uint64_t bits_per_s;        /* serialisation; 0: takes no time */
    bool is_blocking;           /* the path is blocked while a packet leaves */
    unsigned poll_budget;
    uint64_t tick_ns;           /* timers fire at its multiples; 0: in time */
    bool is_forgetful;          /* messages were freed: take anything */
    GRand *moves;               /* not NULL: ends move now and then */
    double move_chance;         /* before each step */
    unsigned n_moves;
    uint64_t busy_until[2];
    uint64_t seq;
    GSequence *wire;            /* packets on their way */
    GString *log;               /* events, when the test set it */
    void *opaque;               /* the test's */
    RigFate (*fate)(XportRig *rig, RigPacket *p);
    /* All may be NULL: everything is taken, nothing else happens. */
    ErdmaXportRx (*on_rx)(XportRig *rig, int end, uint32_t msn, uint32_t off);
    void (*on_done)(XportRig *rig, int end, uint32_t msn);
    void (*on_polled)(XportRig *rig, int end);  /* after each poll */
};

/* The next multiple of @unit, or @ns if it is one */
static inline uint64_t rig_round_up(uint64_t ns, uint64_t unit)
{
    return (ns + unit - 1) / unit * unit;
}

/* Defaults for tests: 1 ms timers, an ack per packet, no pacing. */
void rig_config(ErdmaXportConfig *cfg);
/* @cfg NULL: rig_config().  Both ends are there, none is open. */
XportRig *rig_new(const ErdmaXportConfig *cfg);
void rig_free(XportRig *rig);

void rig_open(XportRig *rig, int end);
void rig_open_both(XportRig *rig);
void rig_close(XportRig *rig, int end);
void rig_send(XportRig *rig, int end, ErdmaXportOp op, uint32_t len);
/* The payload that @from sends */
void rig_fill(int from, uint32_t msn, uint32_t off, uint8_t *buf,
              uint32_t len);
/* As a packet from the other end to @end */
void rig_inject(XportRig *rig, int end, const uint8_t *data, size_t len);
void rig_poll(XportRig *rig, int end);

/* The one connection of @end into @s, which is all 0 */
void rig_save(XportRig *rig, int end, ErdmaXportSnap *s);
/*
 * A new transport in the place of @end, out of @s.  Returns NULL, or what is
 * wrong with @s, to be freed; then the end has no connection any more.
 */
char *rig_load(XportRig *rig, int end, const ErdmaXportSnap *s);
/* Both; it has to work, and saving again has to give the same. */
void rig_move(XportRig *rig, int end);

/* Runs until nothing happens before @until_ns, which is then the time. */
void rig_run(XportRig *rig, uint64_t until_ns);
/* Runs until everything sent is done, at most until @until_ns. */
bool rig_run_done(XportRig *rig, uint64_t until_ns);
bool rig_is_done(const XportRig *rig);
void rig_info(const XportRig *rig, int end, ErdmaXportConnInfo *info);
const ErdmaXportStats *rig_stats(const XportRig *rig, int end);

#endif /* TESTS_XPORT_RIG_H */
