/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Known answers: experiments whose results formulas predict.  Each prints a
 * test point (TAP) per number, with what was expected and what came out.
 *
 * Table, formulas and tolerances: docs/congestion-control/known-answers.md
 */

#ifndef ERDMA_TESTS_KA_H
#define ERDMA_TESTS_KA_H

#include "sim.h"
#include "topo.h"

#define US      1000ULL
#define MS      (1000 * US)
#define GBIT    1000000000ULL
#define MTU     1000
/* IP, UDP, common header, body of DATA: what each packet carries */
#define HEAD    (ERDMA_XPORT_IP_UDP_LEN + 20 + 8)
/* The header of a WRITE, in a message's first packet only */
#define WRITE_HEAD  20
#define ENDLESS 1000000000

/* The experiment that the next points belong to */
void ka_begin(const char *name);
/* A number between @expected - @below and @expected + @above */
void ka_range(const char *what, const char *unit, double value,
              double expected, double below, double above);
/* ... within a share of what is expected */
void ka_near(const char *what, const char *unit, double value,
             double expected, double share);
void ka_at_least(const char *what, const char *unit, double value,
                 double bound);
void ka_at_most(const char *what, const char *unit, double value,
                double bound);
void ka_exact(const char *what, const char *unit, uint64_t value,
              uint64_t expected);
/* Longer runs, more cases */
bool ka_is_long(void);
/* The seed of all runs, from the command line */
uint64_t ka_seed(void);

/* One network with its flows */
typedef struct Ka {
    SimConfig cfg;
    SimTopoSpec topo;
    Sim *s;
    SimTopo *t;
    /* measured since ka_measure() */
    uint64_t from_ns;
    NetemStats link;            /* of bottleneck 0 */
    uint64_t *delivered;        /* per flow */
    ErdmaXportStats sent;       /* of host pair 0's sender */
} Ka;

/* Defaults: 25 Gbit/s, 40 us, which is 125 packets; NIC as fast as the link */
void ka_init(Ka *ka);
/* Builds the network. */
void ka_build(Ka *ka);
/* A flow of pair @pair */
unsigned ka_flow(Ka *ka, unsigned pair, uint8_t cc, uint32_t msg_len,
                 uint64_t n_msgs, uint64_t start_ns);
/* Endless flows of all pairs, one every @apart_ns from @start_ns on */
void ka_flows(Ka *ka, uint8_t cc, uint64_t start_ns, uint64_t apart_ns);
void ka_run(Ka *ka, uint64_t ns);
void ka_free(Ka *ka);

/* Results count from here. */
void ka_measure(Ka *ka);
double ka_seconds(const Ka *ka);
/* Share of bottleneck 0 that is in use */
double ka_utilisation(Ka *ka);
/* Mean queue in bytes, with the packet that is being sent */
double ka_queue(Ka *ka);
/* Bytes a second of packets, as if full ones, that a flow delivered */
double ka_rate(Ka *ka, unsigned flow);
double ka_jain(Ka *ka);
double ka_bdp(const Ka *ka);
/* Sums over all senders since the start */
uint64_t ka_rtos(const Ka *ka);
uint64_t ka_retransmits(const Ka *ka);
uint64_t ka_data_packets(const Ka *ka);

/* The experiments, by file */
void ka_1(void);
void ka_2(void);
void ka_3(void);
void ka_4(void);
void ka_5(void);
void ka_6(void);
void ka_7(void);
void ka_8(void);
void ka_9(void);
void ka_10(void);
void ka_11(void);
void ka_12(void);
void ka_13(void);
void ka_14(void);
void ka_15(void);
void ka_16(void);
void ka_17(void);
void ka_18(void);
void ka_19(void);
void ka_20(void);

#endif /* ERDMA_TESTS_KA_H */
