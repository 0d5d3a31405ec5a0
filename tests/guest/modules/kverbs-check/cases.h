/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: the cases.  Each has a connection of its own and returns 0, a
 * negative errno (and has told why), or KV_SKIPPED.
 */
#ifndef KVERBS_CHECK_CASES_H
#define KVERBS_CHECK_CASES_H

#include "pair.h"

#define KV_SKIPPED      1

int kv_case_send_imm(KvPair *p);
int kv_case_write_imm(KvPair *p);
int kv_case_sweep(KvPair *p);
int kv_case_atomics(KvPair *p);
int kv_case_too_long(KvPair *p);

int kv_case_send_inv(KvPair *p);
int kv_case_read_inv(KvPair *p);
int kv_case_local_inv(KvPair *p);
int kv_case_new_key(KvPair *p);

int kv_case_fence(KvPair *p);
int kv_case_solicited(KvPair *p);
int kv_case_signal_every(KvPair *p);
int kv_case_wrap(KvPair *p);
int kv_case_flush(KvPair *p);
int kv_case_flush_violation(KvPair *p);

#endif
