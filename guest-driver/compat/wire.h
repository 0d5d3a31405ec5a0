/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What two guests in compat mode tell each other.
 *
 * A message is the private data of an RDMA_CM request or of its rejection:
 * 32 bytes, all numbers big-endian.
 *
 *     0  "eRcm"          8  source IPv4 address     24  port of the sender
 *     4  version, 1     12  source QPN              26  zero
 *     5  kind           16  destination address
 *     6  verdict        20  destination QPN
 *     7  zero
 *
 * Questions are asked over an ordinary TCP socket with the same MPA request
 * that the peer's driver expects, so that asking does not involve a QP: a
 * refused attempt leaves traces in the driver's QP, a refused question none.
 * Nothing here touches a socket; all input is untrusted.
 */
#ifndef COMPAT_WIRE_H
#define COMPAT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPAT_MSG_LEN 32
/* MPA header, 20 bytes, and the driver's extension of 8. */
#define COMPAT_MPA_LEN 28
#define COMPAT_FRAME_LEN (COMPAT_MPA_LEN + COMPAT_MSG_LEN)
/* The longest frame that a driver sends: 256 bytes of private data. */
#define COMPAT_FRAME_MAX (COMPAT_MPA_LEN + 256)

/* One end of a connection; the address is in host byte order. */
typedef struct CompatEnd {
    uint32_t ip;
    uint32_t qpn;
} CompatEnd;

typedef enum CompatKind {
    COMPAT_HELLO = 1,       /* "my QP is in RTR and means yours" */
    COMPAT_CONNECT = 2,     /* "this connection is that of our QPs" */
    COMPAT_ANSWER = 3,      /* to all others, with a verdict */
    COMPAT_END = 4,         /* "my program destroys its QP, does yours?" */
    COMPAT_KIND_LAST = COMPAT_END,
} CompatKind;

typedef enum CompatVerdict {
    COMPAT_NONE = 0,        /* in questions */
    COMPAT_READY = 1,       /* my QP is in RTR and means yours; ends, too */
    COMPAT_EARLY = 2,       /* I have the QP, it is not in RTR; is in use */
    COMPAT_UNKNOWN = 3,     /* no such QP in this process */
    COMPAT_OTHER = 4,       /* my QP means somebody else */
    COMPAT_GONE = 5,        /* my QP has failed, or was connected before */
    COMPAT_BAD = 6,         /* not understood, or not from that address */
    COMPAT_LAST = COMPAT_BAD,
} CompatVerdict;

typedef struct CompatMsg {
    CompatKind kind;
    CompatVerdict verdict;
    CompatEnd src;
    CompatEnd dst;
    uint16_t port;          /* where the sender listens */
} CompatMsg;

/* Writes COMPAT_MSG_LEN bytes. */
void compat_msg_pack(uint8_t *buf, const CompatMsg *msg);

/* Returns false, and *@msg is undefined, unless @buf is a valid message. */
bool compat_msg_parse(const uint8_t *buf, size_t len, CompatMsg *msg);

/* Writes an MPA request of COMPAT_FRAME_LEN bytes that carries @msg. */
void compat_mpa_request(uint8_t *buf, const CompatMsg *msg);

/*
 * Looks at the @len bytes that came back so far.  Returns 1 and *@msg when
 * they are an MPA rejection with a message, 0 when more must come, -1 when
 * they can never become one.
 */
int compat_mpa_reply(const uint8_t *buf, size_t len, CompatMsg *msg);

#endif
