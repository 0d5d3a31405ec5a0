/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two ends that talk over a bad wire, recorded (xport/record.h) */

#ifndef TESTS_XPORT_RECORDING_H
#define TESTS_XPORT_RECORDING_H

/*
 * @n messages and more, with congestion control @cc, enum ERDMA_XPORT_CC_*;
 * the same arguments give the same.  One recording per end, for the caller to
 * unref.
 */
void rig_record(uint8_t cc, unsigned n, GByteArray **recording);

#endif /* TESTS_XPORT_RECORDING_H */
