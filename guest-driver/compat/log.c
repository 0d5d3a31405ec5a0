// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: settings from the environment, the log, the clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compat.h"

CompatConfig compat_config = {
    .port = 30608,
    .n_ports = 16,
    .timeout_ms = 10000,
    .wait_ms = 60000,
    .end_ms = 1000,
    .verbose = 1,
};

static int log_fd = STDERR_FILENO;

static void config_number(const char *name, unsigned long min,
                          unsigned long max, unsigned scale, unsigned *value)
{
    const char *text = getenv(name);
    unsigned long v;

    if (!text) {
        return;
    }
    if (!compat_parse_number(text, min, max, &v)) {
        compat_log(1, "%s=%s is not a number from %lu to %lu; using %u",
                   name, text, min, max, *value / scale);
        return;
    }
    *value = v * scale;
}

void compat_config_read(void)
{
    const char *path = getenv("ERDMA_COMPAT_LOG");
    int fd;

    config_number("ERDMA_COMPAT_VERBOSE", 0, 3, 1, &compat_config.verbose);
    if (path && *path) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0) {
            compat_log(1, "%s: %s", path, strerror(errno));
        } else {
            log_fd = fd;
        }
    }
    config_number("ERDMA_COMPAT_PORT", 1, 65535, 1, &compat_config.port);
    config_number("ERDMA_COMPAT_PORTS", 1, COMPAT_MAX_PORTS, 1,
                  &compat_config.n_ports);
    if (compat_config.port + compat_config.n_ports > 65536) {
        compat_config.n_ports = 65536 - compat_config.port;
        compat_log(1, "there are only %u ports from %u on",
                   compat_config.n_ports, compat_config.port);
    }
    config_number("ERDMA_COMPAT_TIMEOUT", 1, 3600, 1000,
                  &compat_config.timeout_ms);
    config_number("ERDMA_COMPAT_WAIT", 1, 86400, 1000,
                  &compat_config.wait_ms);
    config_number("ERDMA_COMPAT_END", 0, 3600, 1000, &compat_config.end_ms);
}

void compat_log(unsigned level, const char *fmt, ...)
{
    int saved = errno;
    char line[512];
    va_list ap;
    int n, m;

    if (level > compat_config.verbose) {
        return;
    }
    n = snprintf(line, sizeof(line), "erdma-compat[%d]: ", (int)getpid());
    if (compat_config.verbose >= 2) {
        uint64_t now = compat_now_ms();

        n += snprintf(line + n, sizeof(line) - n, "%" PRIu64 ".%03u: ",
                      now / 1000, (unsigned)(now % 1000));
    }
    va_start(ap, fmt);
    m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
    va_end(ap);
    if (m >= 0) {
        n += m;
    }
    if (n > (int)sizeof(line) - 2) {
        n = sizeof(line) - 2;
    }
    line[n++] = '\n';
    /* One piece, so that lines of several processes do not mix. */
    syscall(SYS_write, log_fd, line, n);
    errno = saved;
}

uint64_t compat_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

const char *compat_ip_text(uint32_t ip, char *text)
{
    snprintf(text, 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff,
             ip >> 8 & 0xff, ip & 0xff);
    return text;
}
