// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: the C library's functions that we stand in front of.
 *
 * They do for all files what the originals do; only files of erdma devices
 * take another way.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"
#include "compat.h"
#include "uverbs.h"

#define EXPORT __attribute__((visibility("default")))

static ssize_t (*next_read)(int, void *, size_t);
static ssize_t (*next_write)(int, const void *, size_t);
static int (*next_close)(int);

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, request);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (request == RDMA_VERBS_IOCTL && arg) {
        return uverbs_ioctl(fd, arg);
    }
    return syscall(SYS_ioctl, fd, request, arg);
}

/* The originals of these are cancellation points, system calls are not. */
EXPORT ssize_t read(int fd, void *buf, size_t len)
{
    if (compat_channel_knows(fd)) {
        return compat_channel_read(fd, buf, len);
    }
    if (!next_read) {
        next_read = (ssize_t (*)(int, void *, size_t))
            dlsym(RTLD_NEXT, "read");
    }
    return next_read ? next_read(fd, buf, len) :
                       syscall(SYS_read, fd, buf, len);
}

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    if (uverbs_knows(fd)) {
        return uverbs_write(fd, buf, len);
    }
    if (!next_write) {
        next_write = (ssize_t (*)(int, const void *, size_t))
            dlsym(RTLD_NEXT, "write");
    }
    return next_write ? next_write(fd, buf, len) :
                        syscall(SYS_write, fd, buf, len);
}

EXPORT int close(int fd)
{
    /* A program that closes all files does not mean ours. */
    if (compat_engine_owns(fd) || compat_channel_owns(fd)) {
        errno = EBADF;
        return -1;
    }
    if (uverbs_knows(fd)) {
        uverbs_close(fd);
    } else if (compat_channel_knows(fd)) {
        compat_channel_close(fd);
    }
    if (!next_close) {
        next_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
    }
    return next_close ? next_close(fd) : syscall(SYS_close, fd);
}
