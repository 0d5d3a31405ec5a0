// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compat mode: commands of the older kind, which are structures.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stddef.h>
#include <string.h>

#include "channel.h"
#include "command.h"

/* The two forms of a command differ; their answers begin alike. */
static void cqs_of_qp(const Command *cmd, uint32_t cqs[2])
{
    struct ib_uverbs_ex_create_qp ex;
    struct ib_uverbs_create_qp plain;

    cqs[0] = cqs[1] = UINT32_MAX;
    if (cmd->is_extended && cmd->in_len >= sizeof(ex)) {
        memcpy(&ex, cmd->in, sizeof(ex));
        cqs[0] = ex.send_cq_handle;
        cqs[1] = ex.recv_cq_handle;
    } else if (!cmd->is_extended && cmd->in_len >= sizeof(plain)) {
        memcpy(&plain, cmd->in, sizeof(plain));
        cqs[0] = plain.send_cq_handle;
        cqs[1] = plain.recv_cq_handle;
    }
}

static int create_qp(const Command *cmd, Call *call)
{
    const struct ib_uverbs_create_qp_resp *resp = cmd->out;
    int err = call_make(call);
    uint32_t cqs[2];

    if (!err && resp && cmd->out_len >= sizeof(*resp)) {
        cqs_of_qp(cmd, cqs);
        call_note_qp(call->fd, resp->qp_handle, resp->qpn, cqs);
    }
    return err;
}

static int create_channel(const Command *cmd, Call *call)
{
    const struct ib_uverbs_create_comp_channel_resp *resp = cmd->out;
    int err = call_make(call);

    if (!err && resp && cmd->out_len >= sizeof(*resp)) {
        call_note_channel(call->fd, resp->fd);
    }
    return err;
}

static int create_cq(const Command *cmd, Call *call)
{
    const struct ib_uverbs_create_cq_resp *resp = cmd->out;
    size_t at = offsetof(struct ib_uverbs_create_cq, comp_channel);
    __s32 theirs, ours;
    CompatCq *cq;
    void *field;
    int err;

    if (cmd->is_extended) {
        at = offsetof(struct ib_uverbs_ex_create_cq, comp_channel);
    }
    if (cmd->in_len < at + sizeof(theirs) || !resp ||
        cmd->out_len < sizeof(*resp)) {
        return call_make(call);
    }
    field = (void *)((uintptr_t)cmd->in + at);
    memcpy(&theirs, field, sizeof(theirs));
    cq = call_new_cq(call->fd, theirs);
    if (!cq) {
        return call_make(call);
    }
    ours = compat_cq_fd(cq);
    memcpy(field, &ours, sizeof(ours));
    err = call_make(call);
    memcpy(field, &theirs, sizeof(theirs));
    call_made_cq(call->fd, cq, err, resp->cq_handle);
    return err;
}

static int destroy_cq(const Command *cmd, Call *call)
{
    struct ib_uverbs_destroy_cq destroy;

    if (cmd->in_len < sizeof(destroy)) {
        return call_make(call);
    }
    memcpy(&destroy, cmd->in, sizeof(destroy));
    return call_end_cq(call, destroy.cq_handle);
}

static int modify_qp(const Command *cmd, Call *call)
{
    struct ib_uverbs_modify_qp mod;
    CompatCtx *ctx;
    int err;

    if (cmd->in_len < sizeof(mod)) {
        return call_make(call);
    }
    memcpy(&mod, cmd->in, sizeof(mod));
    ctx = call_enter(call->fd);
    if (!ctx) {
        return call_make(call);
    }
    err = compat_qp_modify(ctx, &mod, call_make, call);
    call_leave();
    return err;
}

static int query_qp(const Command *cmd, Call *call)
{
    struct ib_uverbs_query_qp query;
    CompatCtx *ctx;
    CompatQp *qp;
    int err = call_make(call);

    if (err || cmd->in_len < sizeof(query) || !cmd->out ||
        cmd->out_len < sizeof(struct ib_uverbs_query_qp_resp)) {
        return err;
    }
    memcpy(&query, cmd->in, sizeof(query));
    ctx = call_enter(call->fd);
    if (ctx) {
        qp = compat_qp_find(ctx, query.qp_handle);
        if (qp) {
            compat_qp_query(qp, cmd->out);
        }
        call_leave();
    }
    return 0;
}

static int destroy_qp(const Command *cmd, Call *call)
{
    struct ib_uverbs_destroy_qp destroy;

    if (cmd->in_len < sizeof(destroy)) {
        return call_make(call);
    }
    memcpy(&destroy, cmd->in, sizeof(destroy));
    return call_end_qp(call, destroy.qp_handle);
}

static int query_port(const Command *cmd, Call *call)
{
    int err = call_make(call);

    if (!err && cmd->out &&
        cmd->out_len >= sizeof(struct ib_uverbs_query_port_resp)) {
        call_show_port(call->fd, cmd->out);
    }
    return err;
}

int command_run(const Command *cmd, Call *call)
{
    switch (cmd->number) {
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_qp(cmd, call);
    case IB_USER_VERBS_CMD_MODIFY_QP:
        return modify_qp(cmd, call);
    case IB_USER_VERBS_CMD_CREATE_CQ:
        return create_cq(cmd, call);
    default:
        break;
    }
    if (!cmd->is_extended) {
        switch (cmd->number) {
        case IB_USER_VERBS_CMD_QUERY_QP:
            return query_qp(cmd, call);
        case IB_USER_VERBS_CMD_DESTROY_QP:
            return destroy_qp(cmd, call);
        case IB_USER_VERBS_CMD_DESTROY_CQ:
            return destroy_cq(cmd, call);
        case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
            return create_channel(cmd, call);
        case IB_USER_VERBS_CMD_QUERY_PORT:
            return query_port(cmd, call);
        default:
            break;
        }
    }
    return call_make(call);
}

/* Commands of our own */

static void set_attr(struct ib_uverbs_attr *attr, unsigned id, uint64_t data,
                     unsigned len)
{
    attr->attr_id = id;
    attr->len = len;
    attr->flags = UVERBS_ATTR_F_MANDATORY;
    attr->data = data;
}

/* Input of at most 8 bytes lies in the attribute itself. */
static int invoke(int fd, uint32_t number, const void *in, size_t in_len,
                  void *out, size_t out_len)
{
    /* A header with room for three attributes. */
    union {
        struct ib_uverbs_ioctl_hdr hdr;
        uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) +
                     3 * sizeof(struct ib_uverbs_attr)];
    } cmd = { .room = { 0 } };
    struct ib_uverbs_attr *attr = cmd.hdr.attrs;
    Call call = { .fd = fd, .hdr = &cmd.hdr };
    uint64_t data = (uintptr_t)in;

    if (in_len <= sizeof(data)) {
        data = 0;
        memcpy(&data, in, in_len);
    }
    cmd.hdr.object_id = UVERBS_OBJECT_DEVICE;
    cmd.hdr.method_id = UVERBS_METHOD_INVOKE_WRITE;
    cmd.hdr.num_attrs = out ? 3 : 2;
    cmd.hdr.length = sizeof(cmd.hdr) + cmd.hdr.num_attrs * sizeof(*attr);
    cmd.hdr.driver_id = RDMA_DRIVER_ERDMA;
    set_attr(&attr[0], UVERBS_ATTR_WRITE_CMD, number, sizeof(attr[0].data));
    set_attr(&attr[1], UVERBS_ATTR_CORE_IN, data, in_len);
    if (out) {
        set_attr(&attr[2], UVERBS_ATTR_CORE_OUT, (uintptr_t)out, out_len);
    }
    return call_make(&call);
}

int compat_command_fail_qp(const CompatQp *qp)
{
    struct ib_uverbs_modify_qp mod = {
        .qp_handle = qp->handle,
        .attr_mask = COMPAT_ATTR_STATE,
        .qp_state = COMPAT_QPS_ERR,
    };
    int err = invoke(qp->ctx->fd, IB_USER_VERBS_CMD_MODIFY_QP, &mod,
                     sizeof(mod), NULL, 0);

    if (err) {
        compat_log(1, "QP %u: cannot move it to the error state: %s",
                   qp->view.local.qpn, strerror(err));
    }
    return err;
}

int compat_command_make_channel(const CompatCtx *ctx)
{
    struct ib_uverbs_create_comp_channel_resp resp = { 0 };
    struct ib_uverbs_create_comp_channel cmd = { 0 };
    int err = invoke(ctx->fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &cmd,
                     sizeof(cmd), &resp, sizeof(resp));

    return err ? -err : (int)resp.fd;
}
