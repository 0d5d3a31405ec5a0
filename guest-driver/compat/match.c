// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decisions of compat mode: whose message, who connects, which state.
 */
#include <errno.h>
#include <string.h>

#include "match.h"

static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool end_is(const CompatEnd *a, const CompatEnd *b)
{
    return a->ip == b->ip && a->qpn == b->qpn;
}

bool compat_is_active(const CompatEnd *local, const CompatEnd *peer)
{
    if (local->ip != peer->ip) {
        return local->ip < peer->ip;
    }
    return local->qpn < peer->qpn;
}

CompatVerdict compat_judge(const CompatView *qp, const CompatMsg *msg,
                           uint32_t remote_ip)
{
    if (msg->kind == COMPAT_ANSWER || msg->src.ip != remote_ip) {
        return COMPAT_BAD;
    }
    if (!qp || qp->local.qpn != msg->dst.qpn) {
        return COMPAT_UNKNOWN;
    }
    if (qp->phase == COMPAT_IDLE) {
        return msg->kind == COMPAT_END ? COMPAT_GONE : COMPAT_EARLY;
    }
    if (!end_is(&qp->peer, &msg->src) || !end_is(&qp->local, &msg->dst)) {
        return COMPAT_OTHER;
    }
    if (msg->kind == COMPAT_END) {
        if (qp->phase != COMPAT_UP) {
            return COMPAT_GONE;
        }
        return qp->is_leaving ? COMPAT_READY : COMPAT_EARLY;
    }
    switch (qp->phase) {
    case COMPAT_ASKING:
    case COMPAT_WAITING:
    case COMPAT_AGREED:
        /* Two attempts at once would confuse the driver's QP. */
        if (msg->kind == COMPAT_CONNECT &&
            compat_is_active(&qp->local, &qp->peer)) {
            return COMPAT_BAD;
        }
        return COMPAT_READY;
    case COMPAT_CONNECTING:
        return msg->kind == COMPAT_HELLO ? COMPAT_READY : COMPAT_GONE;
    default:
        return COMPAT_GONE;
    }
}

int compat_verdict_errno(CompatVerdict verdict)
{
    switch (verdict) {
    case COMPAT_READY:
    case COMPAT_EARLY:
        return 0;
    case COMPAT_UNKNOWN:
        return ECONNREFUSED;
    case COMPAT_OTHER:
        return EADDRNOTAVAIL;
    case COMPAT_GONE:
        return ECONNRESET;
    default:
        return EPROTO;
    }
}

const char *compat_verdict_text(CompatVerdict verdict)
{
    switch (verdict) {
    case COMPAT_READY:
        return "ready";
    case COMPAT_EARLY:
        return "not in RTR yet";
    case COMPAT_UNKNOWN:
        return "no process in compat mode there has this QP";
    case COMPAT_OTHER:
        return "that QP was told to connect to another one";
    case COMPAT_GONE:
        return "that QP has failed or was connected before";
    default:
        return "the peer does not understand us";
    }
}

bool compat_gid_to_ip(const uint8_t gid[16], uint32_t *ip)
{
    if (memcmp(gid, v4_mapped, sizeof(v4_mapped))) {
        return false;
    }
    *ip = (uint32_t)gid[12] << 24 | gid[13] << 16 | gid[14] << 8 | gid[15];
    return *ip != 0;
}

void compat_gid_from_ip(uint8_t gid[16], uint32_t ip)
{
    memcpy(gid, v4_mapped, sizeof(v4_mapped));
    gid[12] = ip >> 24;
    gid[13] = ip >> 16;
    gid[14] = ip >> 8;
    gid[15] = ip;
}

int compat_check_modify(int from, int to, uint32_t mask)
{
    const uint32_t init = COMPAT_ATTR_PKEY_INDEX | COMPAT_ATTR_PORT |
                          COMPAT_ATTR_ACCESS;
    const uint32_t rtr = COMPAT_ATTR_AV | COMPAT_ATTR_PATH_MTU |
                         COMPAT_ATTR_DEST_QPN | COMPAT_ATTR_RQ_PSN |
                         COMPAT_ATTR_MAX_DEST_RD | COMPAT_ATTR_MIN_RNR;
    const uint32_t rts = COMPAT_ATTR_SQ_PSN | COMPAT_ATTR_TIMEOUT |
                         COMPAT_ATTR_RETRY_CNT | COMPAT_ATTR_RNR_RETRY |
                         COMPAT_ATTR_MAX_RD;
    uint32_t need = 0;

    switch (to) {
    case COMPAT_QPS_RESET:
    case COMPAT_QPS_ERR:
        return 0;
    case COMPAT_QPS_INIT:
        if (from == COMPAT_QPS_INIT) {
            return 0;
        }
        if (from != COMPAT_QPS_RESET) {
            return EINVAL;
        }
        need = init;
        break;
    case COMPAT_QPS_RTR:
        if (from != COMPAT_QPS_INIT) {
            return EINVAL;
        }
        need = rtr;
        break;
    case COMPAT_QPS_RTS:
        if (from == COMPAT_QPS_RTS) {
            return 0;
        }
        if (from != COMPAT_QPS_RTR) {
            return EINVAL;
        }
        need = rts;
        break;
    default:
        return EINVAL;
    }
    return (mask & need) == need ? 0 : EINVAL;
}

bool compat_parse_number(const char *text, unsigned long min,
                         unsigned long max, unsigned long *value)
{
    unsigned long v = 0;

    if (!*text) {
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        v = v * 10 + (*text - '0');
        if (v > max) {
            return false;
        }
    }
    *value = v;
    return v >= min;
}
