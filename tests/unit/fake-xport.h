/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A transport that moves nothing: takes the real one's place in tests of the
 * engine's other parts, and shows what it was asked for.
 */

#ifndef TESTS_FAKE_XPORT_H
#define TESTS_FAKE_XPORT_H

#include "xport/xport.h"

typedef struct FakeXport {
    unsigned n_alive;           /* transports */
    unsigned n_conns;           /* open connections, of all of them */
    uint32_t mtu;
    unsigned n_inputs;
    unsigned n_unblocks;
    unsigned n_polls;
    unsigned max_packets;       /* of the last poll */
    uint64_t poll_result;       /* what polls return */
    ErdmaXportStats stats;      /* what erdma_xport_stats() shows */
    ErdmaXportConnParams last_open;
} FakeXport;

extern FakeXport fake_xport;

#endif /* TESTS_FAKE_XPORT_H */
