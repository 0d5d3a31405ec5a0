/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decisions of compat mode that depend on nothing but their arguments: which
 * QP a message means, who connects, which changes of a QP's state are legal.
 */
#ifndef COMPAT_MATCH_H
#define COMPAT_MATCH_H

#include "wire.h"

/* States of a QP, as verbs number them. */
enum {
    COMPAT_QPS_RESET, COMPAT_QPS_INIT, COMPAT_QPS_RTR, COMPAT_QPS_RTS,
    COMPAT_QPS_SQD, COMPAT_QPS_SQE, COMPAT_QPS_ERR,
};

/* Attribute bits of modify_qp, as verbs number them. */
enum {
    COMPAT_ATTR_STATE = 1 << 0,
    COMPAT_ATTR_ACCESS = 1 << 3,
    COMPAT_ATTR_PKEY_INDEX = 1 << 4,
    COMPAT_ATTR_PORT = 1 << 5,
    COMPAT_ATTR_AV = 1 << 7,
    COMPAT_ATTR_PATH_MTU = 1 << 8,
    COMPAT_ATTR_TIMEOUT = 1 << 9,
    COMPAT_ATTR_RETRY_CNT = 1 << 10,
    COMPAT_ATTR_RNR_RETRY = 1 << 11,
    COMPAT_ATTR_RQ_PSN = 1 << 12,
    COMPAT_ATTR_MAX_RD = 1 << 13,
    COMPAT_ATTR_MIN_RNR = 1 << 15,
    COMPAT_ATTR_SQ_PSN = 1 << 16,
    COMPAT_ATTR_MAX_DEST_RD = 1 << 17,
    COMPAT_ATTR_DEST_QPN = 1 << 20,
};

/* How far a QP is with its connection. */
typedef enum CompatPhase {
    COMPAT_IDLE,            /* not in RTR yet */
    COMPAT_ASKING,          /* looking for the peer */
    COMPAT_WAITING,         /* the peer is known, and not in RTR yet */
    COMPAT_AGREED,          /* both are in RTR; the other side connects */
    COMPAT_CONNECTING,      /* the driver is at work */
    COMPAT_UP,
    COMPAT_FAILED,          /* never came up */
    COMPAT_DOWN,            /* was up */
} CompatPhase;

/* What a message is compared with. */
typedef struct CompatView {
    CompatEnd local;        /* ip 0: not known before RTR */
    CompatEnd peer;
    CompatPhase phase;
    bool is_leaving;        /* the program destroys it */
} CompatView;

/*
 * Whether @local connects and @peer accepts: the lower (address, QPN) does.
 * Both sides come to opposite results, whichever is first.
 */
bool compat_is_active(const CompatEnd *local, const CompatEnd *peer);

/*
 * What to answer to the question @msg that came from @remote_ip and is meant
 * for @qp (NULL: this process has no QP of that number).  COMPAT_READY to a
 * COMPAT_CONNECT means "accept", to a COMPAT_END "mine, too".
 */
CompatVerdict compat_judge(const CompatView *qp, const CompatMsg *msg,
                           uint32_t remote_ip);

/* errno for a verdict that ends an attempt; 0 for READY and EARLY. */
int compat_verdict_errno(CompatVerdict verdict);

/* A log's words for a verdict. */
const char *compat_verdict_text(CompatVerdict verdict);

/* IPv4-mapped GIDs, in network byte order; addresses in host byte order. */
bool compat_gid_to_ip(const uint8_t gid[16], uint32_t *ip);
void compat_gid_from_ip(uint8_t gid[16], uint32_t ip);

/*
 * Whether an RC QP in state @from may go to @to with the attributes @mask:
 * 0 or EINVAL.  Needed attributes are demanded, others tolerated.
 */
int compat_check_modify(int from, int to, uint32_t mask);

/*
 * A number from a string: decimal, @min to @max, nothing else around it.
 */
bool compat_parse_number(const char *text, unsigned long min,
                         unsigned long max, unsigned long *value);

#endif
