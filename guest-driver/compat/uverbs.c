// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: the program's commands to the driver.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compat.h"
#include "uverbs.h"

#define MAX_FD 65536
/* Message lengths are signed in many programs. */
#define MAX_MSG_SIZE (1u << 31)
/* "4x" and "EDR": what to show for a link whose speed nobody knows. */
#define WIDTH_4X 2
#define SPEED_EDR 32

/* A command of the older kind, however it was wrapped. */
typedef struct Command {
    uint32_t number;            /* without the flag for "extended" */
    bool is_extended;
    const void *in;
    size_t in_len;
    void *out;
    size_t out_len;
} Command;

/* A system call that waits to be made. */
typedef struct Call {
    int fd;
    struct ib_uverbs_ioctl_hdr *hdr;    /* NULL: it is a write */
    const void *buf;
    size_t len;
} Call;

static atomic_uchar known[MAX_FD / 8];
static pid_t owner;

bool uverbs_knows(int fd)
{
    return fd >= 0 && fd < MAX_FD &&
           (atomic_load(&known[fd / 8]) & 1 << fd % 8);
}

static void set_known(int fd, bool on)
{
    if (on) {
        atomic_fetch_or(&known[fd / 8], 1 << fd % 8);
    } else {
        atomic_fetch_and(&known[fd / 8], (unsigned char)~(1 << fd % 8));
    }
}

/* Makes the call: 0 or errno. */
static int make_call(void *opaque)
{
    Call *call = opaque;
    long n;

    if (call->hdr) {
        n = syscall(SYS_ioctl, call->fd, RDMA_VERBS_IOCTL, call->hdr);
        return n < 0 ? errno : 0;
    }
    n = syscall(SYS_write, call->fd, call->buf, call->len);
    return n < 0 ? errno : 0;
}

/*
 * Locks, if @fd is still a device of ours.  Commands that only need the
 * lock for what comes after them are made without it: some take long.
 */
static CompatCtx *enter(int fd)
{
    CompatCtx *ctx;

    pthread_mutex_lock(&compat_lock);
    ctx = compat_ctx_find(fd);
    if (!ctx) {
        pthread_mutex_unlock(&compat_lock);
    }
    return ctx;
}

static void leave(void)
{
    pthread_mutex_unlock(&compat_lock);
}

static void note_qp(int fd, uint32_t handle, uint32_t qpn)
{
    CompatCtx *ctx = enter(fd);

    if (ctx) {
        compat_qp_add(ctx, handle, qpn);
        leave();
    }
}

static int end_qp(Call *call, uint32_t handle)
{
    CompatCtx *ctx = enter(call->fd);
    int err;

    if (!ctx) {
        return make_call(call);
    }
    err = compat_qp_destroy(ctx, handle, make_call, call);
    leave();
    return err;
}

static void show_port(int fd, struct ib_uverbs_query_port_resp *resp)
{
    CompatCtx *ctx = enter(fd);
    unsigned n;

    if (!ctx) {
        return;
    }
    compat_dev_refresh(ctx->dev);
    n = ctx->dev->n_addrs;
    leave();
    if (!n) {
        return;
    }
    resp->gid_tbl_len = 2 * n;
    resp->flags |= IB_UVERBS_QPF_GRH_REQUIRED;
    resp->port_cap_flags |= IB_UVERBS_PCF_IP_BASED_GIDS;
    if (resp->max_msg_sz > MAX_MSG_SIZE) {
        resp->max_msg_sz = MAX_MSG_SIZE;
    }
    if (!resp->active_width) {
        resp->active_width = WIDTH_4X;
    }
    if (!resp->active_speed) {
        resp->active_speed = SPEED_EDR;
    }
}

/* Commands of the older kind */

static int create_qp(const Command *cmd, Call *call)
{
    const struct ib_uverbs_create_qp_resp *resp = cmd->out;
    int err = make_call(call);

    /* The extended answer begins with the plain one. */
    if (!err && resp && cmd->out_len >= sizeof(*resp)) {
        note_qp(call->fd, resp->qp_handle, resp->qpn);
    }
    return err;
}

static int modify_qp(const Command *cmd, Call *call)
{
    struct ib_uverbs_modify_qp mod;
    CompatCtx *ctx;
    int err;

    if (cmd->in_len < sizeof(mod)) {
        return make_call(call);
    }
    memcpy(&mod, cmd->in, sizeof(mod));
    ctx = enter(call->fd);
    if (!ctx) {
        return make_call(call);
    }
    err = compat_qp_modify(ctx, &mod, make_call, call);
    leave();
    return err;
}

static int query_qp(const Command *cmd, Call *call)
{
    struct ib_uverbs_query_qp query;
    CompatCtx *ctx;
    CompatQp *qp;
    int err = make_call(call);

    if (err || cmd->in_len < sizeof(query) || !cmd->out ||
        cmd->out_len < sizeof(struct ib_uverbs_query_qp_resp)) {
        return err;
    }
    memcpy(&query, cmd->in, sizeof(query));
    ctx = enter(call->fd);
    if (ctx) {
        qp = compat_qp_find(ctx, query.qp_handle);
        if (qp) {
            compat_qp_query(qp, cmd->out);
        }
        leave();
    }
    return 0;
}

static int destroy_qp(const Command *cmd, Call *call)
{
    struct ib_uverbs_destroy_qp destroy;

    if (cmd->in_len < sizeof(destroy)) {
        return make_call(call);
    }
    memcpy(&destroy, cmd->in, sizeof(destroy));
    return end_qp(call, destroy.qp_handle);
}

static int query_port(const Command *cmd, Call *call)
{
    int err = make_call(call);

    if (!err && cmd->out &&
        cmd->out_len >= sizeof(struct ib_uverbs_query_port_resp)) {
        show_port(call->fd, cmd->out);
    }
    return err;
}

static int run_command(const Command *cmd, Call *call)
{
    switch (cmd->number) {
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_qp(cmd, call);
    case IB_USER_VERBS_CMD_MODIFY_QP:
        return modify_qp(cmd, call);
    default:
        break;
    }
    if (!cmd->is_extended) {
        switch (cmd->number) {
        case IB_USER_VERBS_CMD_QUERY_QP:
            return query_qp(cmd, call);
        case IB_USER_VERBS_CMD_DESTROY_QP:
            return destroy_qp(cmd, call);
        case IB_USER_VERBS_CMD_QUERY_PORT:
            return query_port(cmd, call);
        default:
            break;
        }
    }
    return make_call(call);
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
        err = make_call(&call);
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
        err = make_call(&call);
        goto out;
    }
    cmd.in = body + skip;
    cmd.in_len = len - skip;
    /* A plain modify_qp has no answer, and no pointer to one. */
    cmd.out = (void *)(uintptr_t)response;
    err = run_command(&cmd, &call);
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
        return make_call(call);
    }
    cmd.number = number->data & IB_USER_VERBS_CMD_COMMAND_MASK;
    cmd.is_extended = number->data & IB_USER_VERBS_CMD_FLAG_EXTENDED;
    cmd.in = attr_in(in);
    cmd.in_len = in->len;
    if (out) {
        cmd.out = attr_out(out);
        cmd.out_len = out->len;
    }
    return run_command(&cmd, call);
}

static int ioctl_create_qp(Call *call)
{
    int err = make_call(call);
    struct ib_uverbs_attr *handle, *qpn;
    uint32_t number;

    if (err) {
        return err;
    }
    handle = find_attr(call->hdr, UVERBS_ATTR_CREATE_QP_HANDLE);
    qpn = find_attr(call->hdr, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM);
    if (handle && qpn && qpn->len >= sizeof(number)) {
        memcpy(&number, attr_out(qpn), sizeof(number));
        note_qp(call->fd, handle->data, number);
    }
    return 0;
}

static int ioctl_query_port(Call *call)
{
    struct ib_uverbs_attr *out = find_attr(call->hdr,
                                           UVERBS_ATTR_QUERY_PORT_RESP);
    int err = make_call(call);

    if (!err && out && out->len >= sizeof(struct ib_uverbs_query_port_resp)) {
        show_port(call->fd, attr_out(out));
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
    CompatCtx *ctx = enter(fd);
    unsigned i, n;

    if (!ctx) {
        return 0;
    }
    compat_dev_refresh(ctx->dev);
    n = 2 * ctx->dev->n_addrs;
    for (i = 0; i < n; i++) {
        make_gid(ctx->dev, i, &entries[i]);
    }
    leave();
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
        return make_call(call);
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
        return make_call(call);
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
        return make_call(call);
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
        return handle ? end_qp(call, handle->data) : make_call(call);
    default:
        return make_call(call);
    }
}

/* A device file was just made a context: is it one of ours? */
static void adopt(int fd)
{
    CompatDev *dev;

    if (fd < 0 || fd >= MAX_FD) {
        return;
    }
    pthread_mutex_lock(&compat_lock);
    dev = compat_dev_of_fd(fd);
    if (dev) {
        compat_ctx_add(fd, dev);
        set_known(fd, true);
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
        err = make_call(&call);
        if (!err) {
            adopt(fd);
        }
    } else if (!uverbs_knows(fd)) {
        err = make_call(&call);
    } else if (hdr->object_id == UVERBS_OBJECT_DEVICE) {
        err = ioctl_device(&call);
    } else if (hdr->object_id == UVERBS_OBJECT_QP) {
        err = ioctl_qp(&call);
    } else {
        err = make_call(&call);
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
    ctx = enter(fd);
    if (ctx) {
        compat_ctx_remove(ctx);
        leave();
    }
    set_known(fd, false);
}

int compat_uverbs_fail_qp(const CompatQp *qp)
{
    struct ib_uverbs_modify_qp mod = {
        .qp_handle = qp->handle,
        .attr_mask = COMPAT_ATTR_STATE,
        .qp_state = COMPAT_QPS_ERR,
    };
    /* A header with room for two attributes. */
    union {
        struct ib_uverbs_ioctl_hdr hdr;
        uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) +
                     2 * sizeof(struct ib_uverbs_attr)];
    } cmd = { .room = { 0 } };
    struct ib_uverbs_attr *attr = cmd.hdr.attrs;
    Call call = { .fd = qp->ctx->fd, .hdr = &cmd.hdr };
    int err;

    cmd.hdr.length = sizeof(cmd.room);
    cmd.hdr.object_id = UVERBS_OBJECT_DEVICE;
    cmd.hdr.method_id = UVERBS_METHOD_INVOKE_WRITE;
    cmd.hdr.num_attrs = 2;
    cmd.hdr.driver_id = RDMA_DRIVER_ERDMA;
    attr[0].attr_id = UVERBS_ATTR_WRITE_CMD;
    attr[0].len = sizeof(attr[0].data);
    attr[0].flags = UVERBS_ATTR_F_MANDATORY;
    attr[0].data = IB_USER_VERBS_CMD_MODIFY_QP;
    attr[1].attr_id = UVERBS_ATTR_CORE_IN;
    attr[1].len = sizeof(mod);
    attr[1].flags = UVERBS_ATTR_F_MANDATORY;
    attr[1].data = (uintptr_t)&mod;
    err = make_call(&call);
    if (err) {
        compat_log(1, "QP %u: cannot move it to the error state: %s",
                   qp->view.local.qpn, strerror(err));
    }
    return err;
}
