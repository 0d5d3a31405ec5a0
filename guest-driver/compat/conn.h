/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the thread (engine.c) and the connections (conn.c).
 */
#ifndef COMPAT_CONN_H
#define COMPAT_CONN_H

#include "compat.h"

/* RDMA_CM's file, -1 while there is none. */
extern int compat_ucm_fd;

/* RDMA_CM has an event. */
void compat_conn_event(void);
/* Looks at the times of @qp. */
void compat_conn_time(CompatQp *qp, uint64_t now);
/* Listens on one port; EADDRINUSE if it is taken. */
int compat_conn_listen(CompatDev *dev, CompatAddr *addr, uint16_t port);
/* Forgets all identifiers: RDMA_CM's file is closed. */
void compat_conn_drop_all(void);

#endif
