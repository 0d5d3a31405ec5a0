/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA_CM's kernel interface, as far as compat mode needs it.
 *
 * librdmacm would do, but brings libibverbs into every program that the
 * preload library is loaded into.  Functions return 0 or a positive errno;
 * addresses and ports are in host byte order.
 */
#ifndef COMPAT_UCM_H
#define COMPAT_UCM_H

#include <stddef.h>
#include <stdint.h>

enum {
    UCM_ADDR_RESOLVED, UCM_ADDR_ERROR, UCM_ROUTE_RESOLVED, UCM_ROUTE_ERROR,
    UCM_CONNECT_REQUEST, UCM_CONNECT_RESPONSE, UCM_CONNECT_ERROR,
    UCM_UNREACHABLE, UCM_REJECTED, UCM_ESTABLISHED, UCM_DISCONNECTED,
    UCM_DEVICE_REMOVAL,
};

typedef struct UcmEvent {
    uint32_t event;
    uint32_t id;                /* of a request: the new one */
    uint64_t uid;               /* of a request: the listener's */
    int status;                 /* errno */
    uint8_t data[256];
    size_t len;
} UcmEvent;

/* A non-blocking file, or a negative errno. */
int ucm_open(void);
int ucm_create(int fd, uint64_t uid, uint32_t *id);
int ucm_destroy(int fd, uint32_t id);
int ucm_bind(int fd, uint32_t id, uint32_t ip, uint16_t port);
int ucm_listen(int fd, uint32_t id, uint32_t backlog);
/* Any of the results may be NULL. */
int ucm_query(int fd, uint32_t id, uint64_t *guid, uint32_t *local_ip,
              uint32_t *remote_ip);
int ucm_resolve_addr(int fd, uint32_t id, uint32_t src, uint32_t dst,
                     uint16_t port, uint32_t timeout_ms);
int ucm_resolve_route(int fd, uint32_t id, uint32_t timeout_ms);
int ucm_connect(int fd, uint32_t id, uint32_t qpn, const void *data,
                size_t len);
int ucm_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn);
int ucm_reject(int fd, uint32_t id, const void *data, size_t len);
/* EAGAIN if there is none. */
int ucm_get_event(int fd, UcmEvent *event);

#endif
