/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: what the files of the snapshot call of each other. */

#ifndef HW_ERDMA_XPORT_SNAPSHOT_INT_H
#define HW_ERDMA_XPORT_SNAPSHOT_INT_H

#include "conn.h"
#include "snapshot.h"

/* Numbers of packets and acks begin above 2^32, see erdma_pn_first(). */
#define ERDMA_SNAP_PN_MIN       (1ULL << 31)
#define ERDMA_SNAP_PN_MAX       (1ULL << 55)
/* Windows and times that still can be multiplied */
#define ERDMA_SNAP_WINDOW_MAX   (1ULL << 50)
#define ERDMA_SNAP_TIME_MAX     (1ULL << 56)

static inline uint64_t erdma_snap_bits(double val)
{
    uint64_t bits;

    memcpy(&bits, &val, sizeof(bits));
    return bits;
}

static inline double erdma_snap_double(uint64_t bits)
{
    double val;

    memcpy(&val, &bits, sizeof(val));
    return val;
}

/* Errors about connection @k */
#define FAIL(_k, _error, _fmt, ...) \
    erdma_snap_fail(_error, "connection 0x%x: " _fmt, (_k)->local_cookie, \
                    ##__VA_ARGS__)

/* snapshot-tx.c, snapshot-rx.c */
void erdma_snap_save_tx(const ErdmaConnTx *tx, ErdmaConnSnap *k,
                        ErdmaXportSnap *s, uint64_t now_ns);
void erdma_snap_save_rx(const ErdmaConnRx *rx, ErdmaConnSnap *k,
                        ErdmaXportSnap *s, uint64_t now_ns);
/* @c was opened with what @k says; its counts have been checked. */
bool erdma_snap_load_tx(ErdmaXportConn *c, const ErdmaConnSnap *k,
                        ErdmaXportMsg *const *msgs, uint32_t n_msgs,
                        ErdmaXportLoad *l, char **error);
bool erdma_snap_load_rx(ErdmaXportConn *c, const ErdmaConnSnap *k,
                        ErdmaXportLoad *l, char **error);

/* snapshot-cc.c */
void erdma_snap_save_cc(const ErdmaCc *cc, ErdmaConnSnap *k,
                        ErdmaXportSnap *s, uint64_t now_ns);
/* @cc was initialised for the algorithm that @k names. */
bool erdma_snap_load_cc(ErdmaCc *cc, const ErdmaConnSnap *k,
                        ErdmaXportLoad *l, char **error);

#endif /* HW_ERDMA_XPORT_SNAPSHOT_INT_H */
