/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA transport: recording what goes into a transport and what comes out,
 * so that the same code can be fed with it elsewhere and has to do the same
 * (sim/replay.c).  A transport that is not recorded pays one test per call.
 *
 * A recording is text, then records:
 *
 *   erdma-recording 1\n
 *   NAME VALUE\n            once per field of ErdmaXportConfig, in the order
 *                           of erdma_record_config()
 *   \n
 *   records
 *
 * A record is a byte, enum ErdmaRecordType, and that type's numbers, see
 * erdma_record_types[], each in LEB128: 7 bits per byte, lowest first, the
 * top bit says that more follow.  INPUT is followed by the bytes of the
 * datagram without the payload of DATA: the transport carries payloads and
 * never looks at them.  Calls of the owner are written when they begin, and
 * so are callbacks; a callback's RETURN comes after the calls that were made
 * inside of it.  A "cookie" is the local one of a connection, 0 for none.
 * Times are differences to the latest time before, from 0.
 *
 * Reference: docs/congestion-control/replay.md
 */

#ifndef HW_ERDMA_XPORT_RECORD_H
#define HW_ERDMA_XPORT_RECORD_H

#include "xport.h"

#define ERDMA_RECORD_HEADER     "erdma-recording 1\n"
#define ERDMA_RECORD_ARGS_MAX   12

typedef enum ErdmaRecordType {
    ERDMA_RECORD_NONE,
    /* Calls of the owner: what goes in */
    ERDMA_RECORD_OPEN,
    ERDMA_RECORD_CLOSE,
    ERDMA_RECORD_SEND,
    ERDMA_RECORD_EXPECT,
    ERDMA_RECORD_RESUME,
    ERDMA_RECORD_TERMINATE,
    ERDMA_RECORD_INPUT,
    ERDMA_RECORD_UNBLOCK,
    ERDMA_RECORD_POLL,
    ERDMA_RECORD_SET_MTU,
    /* What a callback gave back, which goes in as well */
    ERDMA_RECORD_RETURN,
    /* What comes out */
    ERDMA_RECORD_POLLED,        /* of the POLL before */
    ERDMA_RECORD_TRANSMIT,
    ERDMA_RECORD_PULL,
    ERDMA_RECORD_RX,
    ERDMA_RECORD_MSG_DONE,
    ERDMA_RECORD_TX_ROOM,
    ERDMA_RECORD_TERMINATED,
    ERDMA_RECORD_CONN_ERROR,
    ERDMA_RECORD_TRACE,
    /* Nothing follows.  Hash: of everything before this record */
    ERDMA_RECORD_END,
    ERDMA_RECORD_COUNT,
} ErdmaRecordType;

typedef struct ErdmaRecordLayout {
    const char *name;
    unsigned n_args;
    const char *arg[ERDMA_RECORD_ARGS_MAX];
    uint16_t wide;              /* bit i: argument i has 64 bits, else 32 */
} ErdmaRecordLayout;

extern const ErdmaRecordLayout erdma_record_types[ERDMA_RECORD_COUNT];

/* FNV-1a with 64 bits: hash of @data behind what gave @hash */
#define ERDMA_RECORD_HASH_BEGIN 0xcbf29ce484222325ULL
uint64_t erdma_record_hash(uint64_t hash, const void *data, size_t len);
/* Bytes of a datagram in front of the payload of DATA */
size_t erdma_record_head_len(const uint8_t *data, size_t len);
/* What TRANSMIT and RX say of a datagram's head and of a message's header */
uint32_t erdma_record_head_digest(const uint8_t *data, size_t len);
uint32_t erdma_record_hdr_digest(const ErdmaXportMsgHdr *hdr);

/* Text for all fields of @cfg, to be freed; the other way: NULL or a problem */
char *erdma_record_config(const ErdmaXportConfig *cfg);
char *erdma_record_config_parse(char *const *lines, ErdmaXportConfig *cfg);

#endif /* HW_ERDMA_XPORT_RECORD_H */
