/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eRDMA transport: how its calls reach the recorder, see record.h. */

#ifndef HW_ERDMA_XPORT_RECORDER_H
#define HW_ERDMA_XPORT_RECORDER_H

#include "xport.h"

typedef struct ErdmaRecorder ErdmaRecorder;

/* Before the transport does anything about the call ... */
void erdma_recorder_close(ErdmaRecorder *r, ErdmaXportConn *c);
void erdma_recorder_send(ErdmaRecorder *r, ErdmaXportConn *c,
                         const ErdmaXportMsgHdr *hdr);
void erdma_recorder_expect(ErdmaRecorder *r, ErdmaXportConn *c,
                           bool is_expecting);
void erdma_recorder_resume(ErdmaRecorder *r, ErdmaXportConn *c);
void erdma_recorder_terminate(ErdmaRecorder *r, ErdmaXportConn *c,
                              uint8_t status, uint32_t msn);
void erdma_recorder_input(ErdmaRecorder *r, const ErdmaDatagram *dg,
                          uint64_t now_ns);
void erdma_recorder_unblock(ErdmaRecorder *r);
void erdma_recorder_poll(ErdmaRecorder *r, uint64_t now_ns, unsigned max);
void erdma_recorder_set_mtu(ErdmaRecorder *r, uint32_t mtu);
/* ... and when it is done.  @c NULL: refused */
void erdma_recorder_opened(ErdmaRecorder *r, const ErdmaXportConnParams *p,
                           ErdmaXportConn *c, uint64_t now_ns);
void erdma_recorder_polled(ErdmaRecorder *r, uint64_t next_ns);

#endif /* HW_ERDMA_XPORT_RECORDER_H */
