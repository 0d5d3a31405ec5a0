// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages between guests in compat mode: to bytes and back.
 */
#include <string.h>

#include "wire.h"

#define MSG_VERSION 1
/* MPA: flags and revision are one big-endian 16-bit word. */
#define MPA_KEY_LEN 16
#define MPA_REVISION 0x0081
#define MPA_REVISION_MASK 0x00ff
#define MPA_REJECT 0x2000
#define QPN_MAX 0xffffff

static const uint8_t msg_magic[4] = { 'e', 'R', 'c', 'm' };
static const char mpa_request[MPA_KEY_LEN + 1] = "MPA ID Req Frame";
static const char mpa_reply[MPA_KEY_LEN + 1] = "MPA ID Rep Frame";

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = v >> 8;
    p[1] = v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

static uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static bool end_is_valid(const CompatEnd *end)
{
    return end->ip && end->qpn && end->qpn <= QPN_MAX;
}

void compat_msg_pack(uint8_t *buf, const CompatMsg *msg)
{
    memset(buf, 0, COMPAT_MSG_LEN);
    memcpy(buf, msg_magic, sizeof(msg_magic));
    buf[4] = MSG_VERSION;
    buf[5] = msg->kind;
    buf[6] = msg->verdict;
    put32(buf + 8, msg->src.ip);
    put32(buf + 12, msg->src.qpn);
    put32(buf + 16, msg->dst.ip);
    put32(buf + 20, msg->dst.qpn);
    put16(buf + 24, msg->port);
}

bool compat_msg_parse(const uint8_t *buf, size_t len, CompatMsg *msg)
{
    bool is_answer;

    if (len != COMPAT_MSG_LEN || memcmp(buf, msg_magic, sizeof(msg_magic)) ||
        buf[4] != MSG_VERSION || buf[5] < COMPAT_HELLO ||
        buf[5] > COMPAT_KIND_LAST || buf[6] > COMPAT_LAST) {
        return false;
    }
    is_answer = buf[5] == COMPAT_ANSWER;
    if (is_answer != (buf[6] != COMPAT_NONE)) {
        return false;
    }
    msg->kind = buf[5];
    msg->verdict = buf[6];
    msg->src.ip = get32(buf + 8);
    msg->src.qpn = get32(buf + 12);
    msg->dst.ip = get32(buf + 16);
    msg->dst.qpn = get32(buf + 20);
    msg->port = get16(buf + 24);
    return end_is_valid(&msg->src) && end_is_valid(&msg->dst);
}

void compat_mpa_request(uint8_t *buf, const CompatMsg *msg)
{
    memset(buf, 0, COMPAT_MPA_LEN);
    memcpy(buf, mpa_request, MPA_KEY_LEN);
    put16(buf + 16, MPA_REVISION);
    put16(buf + 18, COMPAT_MSG_LEN);
    compat_msg_pack(buf + COMPAT_MPA_LEN, msg);
}

int compat_mpa_reply(const uint8_t *buf, size_t len, CompatMsg *msg)
{
    size_t key_len = len < MPA_KEY_LEN ? len : MPA_KEY_LEN;
    uint16_t flags, data_len;

    if (!len) {
        return 0;       /* and @buf may be NULL */
    }
    if (memcmp(buf, mpa_reply, key_len)) {
        return -1;
    }
    if (len < COMPAT_MPA_LEN) {
        return 0;
    }
    flags = get16(buf + 16);
    data_len = get16(buf + 18);
    if ((flags & MPA_REVISION_MASK) != MPA_REVISION || !(flags & MPA_REJECT) ||
        data_len != COMPAT_MSG_LEN || len > COMPAT_FRAME_LEN) {
        return -1;
    }
    if (len < COMPAT_FRAME_LEN) {
        return 0;
    }
    if (!compat_msg_parse(buf + COMPAT_MPA_LEN, COMPAT_MSG_LEN, msg) ||
        msg->kind != COMPAT_ANSWER) {
        return -1;
    }
    return 1;
}
