/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program's commands to the driver, in both forms that libraries use:
 * ioctl() with attributes and write() with structures.
 *
 * Looking at the kernel's interface, and not at libibverbs', has two
 * reasons: it does not matter how a program came by the library (linked,
 * dlopen() and dlvsym(), its own copy), and the interface is stable.
 */
#ifndef COMPAT_UVERBS_H
#define COMPAT_UVERBS_H

#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <sys/types.h>

/* Whether compat mode has an interest in @fd; needs no lock, and is cheap. */
bool uverbs_knows(int fd);

/* As ioctl(2) and write(2), with errno. */
int uverbs_ioctl(int fd, struct ib_uverbs_ioctl_hdr *hdr);
ssize_t uverbs_write(int fd, const void *buf, size_t len);

/* The program closes @fd. */
void uverbs_close(int fd);

#endif
