// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA_CM's kernel interface (/dev/infiniband/rdma_cm, ABI version 4).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ucm.h"

#define UCM_PATH "/dev/infiniband/rdma_cm"
#define QPT_RC 2
/* Neither is told to the device; both below the driver's limit. */
#define UCM_READS 16

/* Sends one command; the structure after the header is part of it. */
static int ucm_call(int fd, uint32_t cmd, const void *in, size_t in_len,
                    size_t out_len)
{
    struct {
        struct rdma_ucm_cmd_hdr hdr;
        uint8_t body[512];
    } buf;
    size_t len = sizeof(buf.hdr) + in_len;

    buf.hdr.cmd = cmd;
    buf.hdr.in = in_len;
    buf.hdr.out = out_len;
    memcpy(buf.body, in, in_len);
    if (syscall(SYS_write, fd, &buf, len) != (long)len) {
        return errno;
    }
    return 0;
}

static void ucm_sockaddr(struct __kernel_sockaddr_storage *to, uint32_t ip,
                         uint16_t port)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(ip),
    };

    memset(to, 0, sizeof(*to));
    memcpy(to, &sin, sizeof(sin));
}

static uint32_t ucm_ip(const struct __kernel_sockaddr_storage *from)
{
    struct sockaddr_in sin;

    memcpy(&sin, from, sizeof(sin));
    return sin.sin_family == AF_INET ? ntohl(sin.sin_addr.s_addr) : 0;
}

int ucm_open(void)
{
    int fd = open(UCM_PATH, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

int ucm_create(int fd, uint64_t uid, uint32_t *id)
{
    struct rdma_ucm_create_id_resp resp = { 0 };
    struct rdma_ucm_create_id cmd = {
        .uid = uid,
        .response = (uintptr_t)&resp,
        .ps = RDMA_PS_TCP,
        .qp_type = QPT_RC,
    };
    int err = ucm_call(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd),
                       sizeof(resp));

    *id = resp.id;
    return err;
}

int ucm_destroy(int fd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp resp;
    struct rdma_ucm_destroy_id cmd = {
        .response = (uintptr_t)&resp,
        .id = id,
    };

    return ucm_call(fd, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd),
                    sizeof(resp));
}

int ucm_bind(int fd, uint32_t id, uint32_t ip, uint16_t port)
{
    struct rdma_ucm_bind cmd = {
        .id = id,
        .addr_size = sizeof(struct sockaddr_in),
    };

    ucm_sockaddr(&cmd.addr, ip, port);
    return ucm_call(fd, RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd), 0);
}

int ucm_listen(int fd, uint32_t id, uint32_t backlog)
{
    struct rdma_ucm_listen cmd = { .id = id, .backlog = backlog };

    return ucm_call(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

int ucm_query(int fd, uint32_t id, uint64_t *guid, uint32_t *local_ip,
              uint32_t *remote_ip)
{
    struct rdma_ucm_query_addr_resp resp = { 0 };
    struct rdma_ucm_query cmd = {
        .response = (uintptr_t)&resp,
        .id = id,
        .option = RDMA_USER_CM_QUERY_ADDR,
    };
    int err = ucm_call(fd, RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd),
                       sizeof(resp));

    if (err) {
        return err;
    }
    if (guid) {
        *guid = resp.node_guid;
    }
    if (local_ip) {
        *local_ip = ucm_ip(&resp.src_addr);
    }
    if (remote_ip) {
        *remote_ip = ucm_ip(&resp.dst_addr);
    }
    return 0;
}

int ucm_resolve_addr(int fd, uint32_t id, uint32_t src, uint32_t dst,
                     uint16_t port, uint32_t timeout_ms)
{
    struct rdma_ucm_resolve_addr cmd = {
        .id = id,
        .timeout_ms = timeout_ms,
        .src_size = sizeof(struct sockaddr_in),
        .dst_size = sizeof(struct sockaddr_in),
    };

    ucm_sockaddr(&cmd.src_addr, src, 0);
    ucm_sockaddr(&cmd.dst_addr, dst, port);
    return ucm_call(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &cmd, sizeof(cmd), 0);
}

int ucm_resolve_route(int fd, uint32_t id, uint32_t timeout_ms)
{
    struct rdma_ucm_resolve_route cmd = {
        .id = id,
        .timeout_ms = timeout_ms,
    };

    return ucm_call(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0);
}

static void ucm_conn_param(struct rdma_ucm_conn_param *to, uint32_t qpn,
                           const void *data, size_t len)
{
    to->qp_num = qpn;
    to->responder_resources = UCM_READS;
    to->initiator_depth = UCM_READS;
    to->private_data_len = len;
    to->valid = 1;
    if (len) {
        memcpy(to->private_data, data, len);
    }
}

int ucm_connect(int fd, uint32_t id, uint32_t qpn, const void *data,
                size_t len)
{
    struct rdma_ucm_connect cmd = { .id = id };

    ucm_conn_param(&cmd.conn_param, qpn, data, len);
    return ucm_call(fd, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0);
}

int ucm_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn)
{
    struct rdma_ucm_accept cmd = { .uid = uid, .id = id };

    ucm_conn_param(&cmd.conn_param, qpn, NULL, 0);
    return ucm_call(fd, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

int ucm_reject(int fd, uint32_t id, const void *data, size_t len)
{
    struct rdma_ucm_reject cmd = { .id = id, .private_data_len = len };

    memcpy(cmd.private_data, data, len);
    return ucm_call(fd, RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0);
}

int ucm_get_event(int fd, UcmEvent *event)
{
    struct rdma_ucm_event_resp resp = { 0 };
    struct rdma_ucm_get_event cmd = { .response = (uintptr_t)&resp };
    int err = ucm_call(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
                       sizeof(resp));

    if (err) {
        return err;
    }
    event->event = resp.event;
    event->id = resp.id;
    event->uid = resp.uid;
    event->status = (int)resp.status < 0 ? -(int)resp.status :
                                           (int)resp.status;
    event->len = resp.param.conn.private_data_len;
    memcpy(event->data, resp.param.conn.private_data, sizeof(event->data));
    return 0;
}
