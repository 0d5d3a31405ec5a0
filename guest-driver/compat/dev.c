// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: which devices are meant, and the addresses they have.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "compat.h"
#include "ucm.h"

/* An address that comes or goes is seen this much later at most. */
#define REFRESH_MS 1000

static CompatDev *devs;

static bool read_line(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0) {
        return false;
    }
    n = read(fd, text, size - 1);
    close(fd);
    if (n <= 0) {
        return false;
    }
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    return true;
}

/* "5054:00ff:fe09:0001" is a number in network byte order. */
static bool read_guid(const char *name, uint64_t *guid)
{
    char path[160], text[64];
    uint8_t bytes[8];
    unsigned w[4];
    int i;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_guid", name);
    if (!read_line(path, text, sizeof(text)) ||
        sscanf(text, "%4x:%4x:%4x:%4x", &w[0], &w[1], &w[2], &w[3]) != 4) {
        return false;
    }
    for (i = 0; i < 4; i++) {
        bytes[2 * i] = w[i] >> 8;
        bytes[2 * i + 1] = w[i];
    }
    memcpy(guid, bytes, sizeof(*guid));
    return true;
}

CompatDev *compat_dev_of_fd(int fd)
{
    char path[160], name[64], type[64];
    struct stat st;
    CompatDev *dev;
    uint64_t guid;

    if (fstat(fd, &st) || !S_ISCHR(st.st_mode)) {
        return NULL;
    }
    snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/ibdev",
             major(st.st_rdev), minor(st.st_rdev));
    if (!read_line(path, name, sizeof(name))) {
        return NULL;
    }
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type", name);
    /* RoCE mode needs none of this. */
    if (!read_line(path, type, sizeof(type)) || !strstr(type, "RNIC") ||
        !read_guid(name, &guid)) {
        return NULL;
    }
    for (dev = devs; dev; dev = dev->next) {
        if (dev->guid == guid && !strcmp(dev->name, name)) {
            return dev;
        }
    }
    dev = calloc(1, sizeof(*dev));
    if (!dev) {
        return NULL;
    }
    snprintf(dev->name, sizeof(dev->name), "%s", name);
    dev->guid = guid;
    dev->next = devs;
    devs = dev;
    return dev;
}

CompatAddr *compat_dev_addr(CompatDev *dev, uint32_t ip)
{
    unsigned i;

    for (i = 0; i < dev->n_addrs; i++) {
        if (dev->addrs[i].ip == ip) {
            return &dev->addrs[i];
        }
    }
    return NULL;
}

/* RDMA_CM knows which device an address belongs to: ask it. */
static bool addr_is_of(int ucm, const CompatDev *dev, uint32_t ip)
{
    uint64_t guid = 0;
    uint32_t id;
    bool is_ours;

    if (ucm_create(ucm, 0, &id)) {
        return false;
    }
    is_ours = !ucm_bind(ucm, id, ip, 0) &&
              !ucm_query(ucm, id, &guid, NULL, NULL) && guid == dev->guid;
    ucm_destroy(ucm, id);
    return is_ours;
}

static unsigned list_addrs(int ucm, CompatDev *dev, CompatAddr *addrs)
{
    struct ifaddrs *list, *ifa;
    struct sockaddr_in sin;
    unsigned n = 0;
    uint32_t ip;

    if (getifaddrs(&list)) {
        return 0;
    }
    for (ifa = list; ifa && n < COMPAT_MAX_ADDRS; ifa = ifa->ifa_next) {
        if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != AF_INET ||
            (ifa->ifa_flags & IFF_LOOPBACK)) {
            continue;
        }
        memcpy(&sin, ifa->ifa_addr, sizeof(sin));
        ip = ntohl(sin.sin_addr.s_addr);
        if (!ip || !addr_is_of(ucm, dev, ip)) {
            continue;
        }
        memset(&addrs[n], 0, sizeof(addrs[n]));
        addrs[n].ip = ip;
        addrs[n++].ifindex = if_nametoindex(ifa->ifa_name);
    }
    freeifaddrs(list);
    return n;
}

void compat_dev_refresh(CompatDev *dev)
{
    CompatAddr addrs[COMPAT_MAX_ADDRS], *old;
    uint64_t now = compat_now_ms();
    unsigned i, n;
    int ucm;

    if (dev->refreshed_ms && now < dev->refreshed_ms + REFRESH_MS) {
        return;
    }
    dev->refreshed_ms = now;
    ucm = ucm_open();
    if (ucm < 0) {
        compat_log(1, "%s: no RDMA_CM: %s", dev->name, strerror(-ucm));
        return;
    }
    n = list_addrs(ucm, dev, addrs);
    close(ucm);
    /* Listeners stay; one whose address is gone is of no harm. */
    for (i = 0; i < n; i++) {
        old = compat_dev_addr(dev, addrs[i].ip);
        if (old) {
            addrs[i].is_listening = old->is_listening;
            addrs[i].listen_id = old->listen_id;
            addrs[i].listen_port = old->listen_port;
        }
    }
    for (i = 0; i < dev->n_addrs && n < COMPAT_MAX_ADDRS; i++) {
        unsigned j = 0;

        while (j < n && addrs[j].ip != dev->addrs[i].ip) {
            j++;
        }
        if (j == n && dev->addrs[i].is_listening) {
            addrs[n++] = dev->addrs[i];
        }
    }
    memcpy(dev->addrs, addrs, n * sizeof(addrs[0]));
    dev->n_addrs = n;
}

void compat_dev_drop_all(void)
{
    CompatDev *dev;

    for (dev = devs; dev; dev = dev->next) {
        dev->n_addrs = 0;
        dev->refreshed_ms = 0;
    }
}
