/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An emulated link, one direction: loss, corruption, a queue with ECN, a
 * serialiser with INT stamping, delay, jitter, reordering, duplication.
 *
 * The same code serves the net filter and the simulator: time is an argument,
 * packets are handed in and out, and all randomness comes from one seed.  A
 * packet passes these steps in this order:
 *
 *   1. loss (Bernoulli, Gilbert-Elliott, every n-th, a list), corruption
 *   2. admission to the queue, drop-tail in bytes
 *   3. ECN marking, by the queue in front of the packet
 *   4. FIFO
 *   5. serialiser, wire bytes / rate
 *   6. INT stamp, at the start of serialisation
 *   7. propagation delay, jitter
 *   8. reordering, duplication
 *
 * Events are computed at their own times, not at the times of the calls: a
 * caller that is late gets its packets late, but the queue, the marks and the
 * stamps are what they would have been.
 *
 * Units: nanoseconds, bytes, bits per second.  Probabilities are 0 to 1.
 * Threading: none.
 *
 * Reference: docs/congestion-control/netem.md
 */

#ifndef HW_ERDMA_NETEM_H
#define HW_ERDMA_NETEM_H

#include "qemu/queue.h"

#define NETEM_NEVER         UINT64_MAX

typedef enum NetemJitter {
    NETEM_JITTER_NONE,
    NETEM_JITTER_UNIFORM,       /* 0 .. jitter_ns */
    NETEM_JITTER_NORMAL,        /* |N(0, jitter_ns)| */
    NETEM_JITTER_PARETO,        /* shape 3, mean jitter_ns */
    NETEM_JITTER_COUNT,
} NetemJitter;

typedef struct NetemConfig {
    uint64_t seed;
    /* 1: each of them drops on its own; 0 switches one off */
    double loss;                /* Bernoulli */
    double ge_enter;            /* Gilbert-Elliott: good -> bad, per packet */
    double ge_leave;            /* bad -> good */
    double ge_loss_bad;         /* loss in the bad state */
    double ge_loss_good;
    uint64_t drop_every;        /* every n-th packet */
    double corrupt;             /* counted apart, dropped like a loss */
    /* 2, 3 */
    uint64_t limit;             /* queue in bytes; 0: NETEM_HARD_LIMIT */
    uint64_t ecn_kmin;          /* marks from here ... */
    uint64_t ecn_kmax;          /* ... and always from here; 0: no ECN */
    double ecn_pmax;            /* probability just below kmax */
    bool ecn_drop_not_ect;      /* drop what cannot be marked */
    bool ecn_at_dequeue;        /* mark by the queue that is left behind */
    /* 5, 6 */
    uint64_t rate_bps;          /* 0: infinite */
    uint32_t overhead;          /* bytes of framing per packet on the wire */
    uint16_t link_id;           /* 0: no INT stamp */
    /* 7, 8 */
    uint64_t delay_ns;
    uint64_t jitter_ns;
    NetemJitter jitter;
    bool jitter_reorders;       /* else delivery keeps the order */
    double reorder;
    uint64_t reorder_ns;        /* how long such a packet is held */
    double duplicate;
} NetemConfig;

/* Whatever is configured, no link holds more than this. */
#define NETEM_HARD_LIMIT    (64 * 1024 * 1024)

typedef struct NetemStats {
    uint64_t arrivals;
    uint64_t arrived_bytes;
    uint64_t drop_loss;
    uint64_t drop_burst;        /* Gilbert-Elliott */
    uint64_t drop_listed;       /* every n-th and listed ones */
    uint64_t drop_corrupt;
    uint64_t drop_queue;
    uint64_t drop_not_ect;
    uint64_t marks;
    uint64_t stamps;
    uint64_t reorders;
    uint64_t duplicates;
    uint64_t departures;        /* serialised */
    uint64_t departed_bytes;    /* wire bytes */
    uint64_t delivered;
    uint64_t busy_ns;           /* time spent serialising */
    uint64_t queue_max;         /* bytes */
    double queue_integral;      /* byte seconds: mean = integral / time */
} NetemStats;

/*
 * A packet.  The owner embeds it; @data may point anywhere, @len bytes of it
 * count on the wire (plus the configured overhead).
 */
typedef struct NetemPacket NetemPacket;
struct NetemPacket {
    uint8_t *data;
    size_t len;
    /* private to the link */
    uint64_t arrival_ns;
    uint64_t deliver_ns;
    uint64_t order;
    QTAILQ_ENTRY(NetemPacket) next;
};

typedef struct NetemOps {
    /* Marks "congestion experienced"; false when the packet cannot be */
    bool (*mark)(void *opaque, NetemPacket *p);
    /* Adds an INT hop; false when the packet has no stack.  May be NULL. */
    bool (*stamp)(void *opaque, NetemPacket *p, uint64_t time_ns,
                  uint64_t tx_bytes, uint64_t queue);
    NetemPacket *(*copy)(void *opaque, const NetemPacket *p);
    void (*free)(void *opaque, NetemPacket *p);
} NetemOps;

typedef struct NetemLink NetemLink;

/* @ops must outlive the link; @cfg is copied and has been checked. */
NetemLink *netem_link_new(const NetemOps *ops, void *opaque,
                          const NetemConfig *cfg);
/* Frees what is under way, too. */
void netem_link_free(NetemLink *l);

/*
 * Checks @cfg.  Returns NULL when it is usable, else the name of the field
 * that is not, with what is allowed in *@allowed.
 */
const char *netem_config_check(const NetemConfig *cfg, const char **allowed);

/*
 * From now on.  Packets that were serialised keep their delivery times; a
 * changed seed starts every random sequence again.
 */
void netem_link_set_config(NetemLink *l, const NetemConfig *cfg,
                           uint64_t now_ns);
const NetemConfig *netem_link_config(const NetemLink *l);
/* Indices (the first arrival is 0) of packets to drop; copied, sorted. */
void netem_link_set_drop_list(NetemLink *l, const uint64_t *index, size_t n);

/* Takes @p over: it is freed, or comes out of netem_link_take(). */
void netem_link_put(NetemLink *l, NetemPacket *p, uint64_t now_ns);
/* The next packet that has arrived at the far end, or NULL; the caller's */
NetemPacket *netem_link_take(NetemLink *l, uint64_t now_ns);
/* When netem_link_take() has something to give or to work out */
uint64_t netem_link_deadline(const NetemLink *l);

/*
 * No packet comes out before this time, unless one more is put in.  Who needs
 * neither counters nor queue in between can wait for it: the steps before are
 * caught up with, at their own times.
 */
uint64_t netem_link_next(NetemLink *l);

/*
 * The packets that come out next, as far as is known now (those that were
 * held back are not among them): a hint for who wants to be ready for them.
 * Returns how many, at most @max.  Reading one more than was read before
 * touches one packet that may be in no cache.
 */
unsigned netem_link_ahead(const NetemLink *l, NetemPacket **v, unsigned max);

/* Fetches into the processor's caches what the next calls will touch. */
void netem_link_fetch(const NetemLink *l);

/* Bytes waiting for the serialiser */
uint64_t netem_link_queue(const NetemLink *l);
/* @now_ns brings time integrals up to date. */
const NetemStats *netem_link_stats(NetemLink *l, uint64_t now_ns);
/* From here on queue_max is that of what follows. */
void netem_link_restart_max(NetemLink *l);

#endif /* HW_ERDMA_NETEM_H */
