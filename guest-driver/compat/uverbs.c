// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: the program's commands to the driver.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "channel.h"
#include "command.h"
#include "fdset.h"
#include "uverbs.h"

static FdSet known;
static pid_t owner;

bool uverbs_knows(int fd)
{
    return fdset_has(&known, fd);
}

ssize_t uverbs_write(int fd, const void *buf, size_t len)
{
    Call call = { .fd = fd, .buf = buf, .len = len };
    struct ib_uverbs_ex_cmd_hdr ex;
    struct ib_uverbs_cmd_hdr hdr;
    const uint8_t *body = buf;
    Command cmd = { 0 };
    uint64_t response;
    size_t skip = sizeof(hdr);
    int err;

    if (len < sizeof(hdr) + sizeof(response)) {
        err = call_make(&call);
        goto out;
    }
    memcpy(&hdr, body, sizeof(hdr));
    cmd.number = hdr.command & IB_USER_VERBS_CMD_COMMAND_MASK;
    cmd.is_extended = hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
    memcpy(&response, body + sizeof(hdr), sizeof(response));
    cmd.out_len = hdr.out_words * 4;
    if (cmd.is_extended) {
        skip += sizeof(ex);
        cmd.out_len = hdr.out_words * 8;
    }
    if (skip > len) {
        err = call_make(&call);
        goto out;
    }
    cmd.in = body + skip;
    cmd.in_len = len - skip;
    /* A plain modify_qp has no answer, and no pointer to one. */
    cmd.out = (void *)(uintptr_t)response;
    err = command_run(&cmd, &call);
out:
    if (err) {
        errno = err;
        return -1;
    }
    return len;
}

/* Commands with attributes */

static struct ib_uverbs_attr *find_attr(struct ib_uverbs_ioctl_hdr *hdr,
                                        unsigned id)
{
    unsigned i;

    for (i = 0; i < hdr->num_attrs; i++) {
        if (hdr->attrs[i].attr_id == id) {
            return &hdr->attrs[i];
        }
    }
    return NULL;
}

/* Short input lies in the attribute itself. */
static const void *attr_in(const struct ib_uverbs_attr *attr)
{
    if (attr->len <= sizeof(attr->data)) {
        return &attr->data;
    }
    return (const void *)(uintptr_t)attr->data;
}

static void *attr_out(const struct ib_uverbs_attr *attr)
{
    return (void *)(uintptr_t)attr->data;
}

static int ioctl_invoke(Call *call)
{
    struct ib_uverbs_attr *number = find_attr(call->hdr,
                                              UVERBS_ATTR_WRITE_CMD);
    struct ib_uverbs_attr *in = find_attr(call->hdr, UVERBS_ATTR_CORE_IN);
    struct ib_uverbs_attr *out = find_attr(call->hdr, UVERBS_ATTR_CORE_OUT);
    Command cmd = { 0 };

    if (!number || !in) {
        return call_make(call);
    }
    cmd.number = number->data & IB_USER_VERBS_CMD_COMMAND_MASK;
    cmd.is_extended = number->data & IB_USER_VERBS_CMD_FLAG_EXTENDED;
    cmd.in = attr_in(in);
    cmd.in_len = in->len;
    if (out) {
        cmd.out = attr_out(out);
        cmd.out_len = out->len;
    }
    return command_run(&cmd, call);
}

static int ioctl_create_qp(Call *call)
{
    int err = call_make(call);
    struct ib_uverbs_attr *handle, *qpn, *send_cq, *recv_cq;
    uint32_t cqs[2], number;

    if (err) {
        return err;
    }
    handle = find_attr(call->hdr, UVERBS_ATTR_CREATE_QP_HANDLE);
    qpn = find_attr(call->hdr, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM);
    send_cq = find_attr(call->hdr, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
    recv_cq = find_attr(call->hdr, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
    if (handle && qpn && qpn->len >= sizeof(number)) {
        memcpy(&number, attr_out(qpn), sizeof(number));
        cqs[0] = send_cq ? send_cq->data : UINT32_MAX;
        cqs[1] = recv_cq ? recv_cq->data : UINT32_MAX;
        call_note_qp(call->fd, handle->data, number, cqs);
    }
    return 0;
}

static int ioctl_query_port(Call *call)
{
    struct ib_uverbs_attr *out = find_attr(call->hdr,
                                           UVERBS_ATTR_QUERY_PORT_RESP);
    int err = call_make(call);

    if (!err && out && out->len >= sizeof(struct ib_uverbs_query_port_resp)) {
        call_show_port(call->fd, attr_out(out));
    }
    return err;
}

/*
 * Each address is shown twice, as RoCE devices do it: at an even index for
 * RoCE v1 and after it for RoCE v2, so that a program that looks for v2, and
 * one that was told to use index 0 or 1, all find one.
 */
static void make_gid(CompatDev *dev, unsigned index,
                     struct ib_uverbs_gid_entry *entry)
{
    uint8_t gid[16];

    memset(entry, 0, sizeof(*entry));
    compat_gid_from_ip(gid, dev->addrs[index / 2].ip);
    memcpy(entry->gid, gid, sizeof(gid));
    entry->gid_index = index;
    entry->port_num = 1;
    entry->gid_type = 1 + index % 2;
    entry->netdev_ifindex = dev->addrs[index / 2].ifindex;
}

static void copy_entry(void *to, size_t size,
                       const struct ib_uverbs_gid_entry *entry)
{
    size_t n = size < sizeof(*entry) ? size : sizeof(*entry);

    memset(to, 0, size);
    memcpy(to, entry, n);
}

/* All GIDs, in @entries; returns how many, 0 if the driver is to be asked. */
static unsigned list_gids(int fd, struct ib_uverbs_gid_entry *entries)
{
    CompatCtx *ctx = call_enter(fd);
    unsigned i, n;

    if (!ctx) {
        return 0;
    }
    compat_dev_refresh(ctx->dev);
    n = 2 * ctx->dev->n_addrs;
    for (i = 0; i < n; i++) {
        make_gid(ctx->dev, i, &entries[i]);
    }
    call_leave();
    return n;
}

static int ioctl_query_gid(Call *call)
{
    struct ib_uverbs_gid_entry entries[2 * COMPAT_MAX_ADDRS];
    struct ib_uverbs_ioctl_hdr *hdr = call->hdr;
    struct ib_uverbs_attr *port, *index, *out;
    unsigned n;

    port = find_attr(hdr, UVERBS_ATTR_QUERY_GID_ENTRY_PORT);
    index = find_attr(hdr, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
    out = find_attr(hdr, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY);
    n = list_gids(call->fd, entries);
    if (!port || !index || !out || !n || port->data != 1) {
        return call_make(call);
    }
    if (index->data >= n) {
        return EINVAL;
    }
    copy_entry(attr_out(out), out->len, &entries[index->data]);
    out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return 0;
}

static int ioctl_query_gids(Call *call)
{
    struct ib_uverbs_gid_entry entries[2 * COMPAT_MAX_ADDRS];
    struct ib_uverbs_ioctl_hdr *hdr = call->hdr;
    struct ib_uverbs_attr *size, *out, *count;
    uint64_t i, n;

    size = find_attr(hdr, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
    out = find_attr(hdr, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
    count = find_attr(hdr, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
    n = list_gids(call->fd, entries);
    if (!size || !out || !count || !n || !size->data ||
        count->len < sizeof(n)) {
        return call_make(call);
    }
    if (out->len / size->data < n) {
        return EINVAL;
    }
    for (i = 0; i < n; i++) {
        copy_entry((uint8_t *)attr_out(out) + i * size->data, size->data,
                   &entries[i]);
    }
    memcpy(attr_out(count), &n, sizeof(n));
    out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    count->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return 0;
}

static int ioctl_device(Call *call)
{
    switch (call->hdr->method_id) {
    case UVERBS_METHOD_INVOKE_WRITE:
        return ioctl_invoke(call);
    case UVERBS_METHOD_QUERY_PORT:
        return ioctl_query_port(call);
    case UVERBS_METHOD_QUERY_GID_ENTRY:
        return ioctl_query_gid(call);
    case UVERBS_METHOD_QUERY_GID_TABLE:
        return ioctl_query_gids(call);
    default:
        return call_make(call);
    }
}

static int ioctl_qp(Call *call)
{
    struct ib_uverbs_attr *handle;

    switch (call->hdr->method_id) {
    case UVERBS_METHOD_QP_CREATE:
        return ioctl_create_qp(call);
    case UVERBS_METHOD_QP_DESTROY:
        handle = find_attr(call->hdr, UVERBS_ATTR_DESTROY_QP_HANDLE);
        return handle ? call_end_qp(call, handle->data) : call_make(call);
    default:
        return call_make(call);
    }
}

static int ioctl_create_cq(Call *call)
{
    struct ib_uverbs_attr *channel, *handle;
    CompatCq *cq;
    int err, fd;

    channel = find_attr(call->hdr, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
    handle = find_attr(call->hdr, UVERBS_ATTR_CREATE_CQ_HANDLE);
    fd = channel ? channel->data_s64 : -1;
    cq = handle ? call_new_cq(call->fd, fd) : NULL;
    if (!cq) {
        return call_make(call);
    }
    channel->data_s64 = compat_cq_fd(cq);
    err = call_make(call);
    channel->data_s64 = fd;
    call_made_cq(call->fd, cq, err, handle->data);
    return err;
}

static int ioctl_cq(Call *call)
{
    struct ib_uverbs_attr *handle;

    switch (call->hdr->method_id) {
    case UVERBS_METHOD_CQ_CREATE:
        return ioctl_create_cq(call);
    case UVERBS_METHOD_CQ_DESTROY:
        handle = find_attr(call->hdr, UVERBS_ATTR_DESTROY_CQ_HANDLE);
        return handle ? call_end_cq(call, handle->data) : call_make(call);
    default:
        return call_make(call);
    }
}

/* A device file was just made a context: is it one of ours? */
static void adopt(int fd)
{
    CompatDev *dev;

    if (fd < 0 || fd >= FDSET_MAX) {
        return;
    }
    pthread_mutex_lock(&compat_lock);
    dev = compat_dev_of_fd(fd);
    if (dev) {
        compat_ctx_add(fd, dev);
        fdset_put(&known, fd, true);
        owner = getpid();
    }
    pthread_mutex_unlock(&compat_lock);
}

static bool opens_context(const struct ib_uverbs_ioctl_hdr *hdr)
{
    return hdr->object_id == UVERBS_OBJECT_DEVICE &&
           (hdr->method_id == UVERBS_METHOD_GET_CONTEXT ||
            hdr->method_id == UVERBS_METHOD_QUERY_CONTEXT);
}

int uverbs_ioctl(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
    Call call = { .fd = fd, .hdr = hdr };
    int err;

    if (hdr->driver_id == RDMA_DRIVER_ERDMA && opens_context(hdr)) {
        err = call_make(&call);
        if (!err) {
            adopt(fd);
        }
    } else if (!uverbs_knows(fd)) {
        err = call_make(&call);
    } else if (hdr->object_id == UVERBS_OBJECT_DEVICE) {
        err = ioctl_device(&call);
    } else if (hdr->object_id == UVERBS_OBJECT_QP) {
        err = ioctl_qp(&call);
    } else if (hdr->object_id == UVERBS_OBJECT_CQ) {
        err = ioctl_cq(&call);
    } else {
        err = call_make(&call);
    }
    if (err) {
        errno = err;
        return -1;
    }
    return 0;
}

void uverbs_close(int fd)
{
    CompatCtx *ctx;

    /* A child of vfork() closes its own file, in the parent's memory. */
    if (getpid() != owner) {
        return;
    }
    ctx = call_enter(fd);
    if (ctx) {
        compat_ctx_remove(ctx);
        call_leave();
    }
    fdset_put(&known, fd, false);
}
