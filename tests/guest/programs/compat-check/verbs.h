/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * libibverbs as programs like NCCL use it: opened with dlopen() and kept to
 * themselves, functions found by name and version.
 */
#ifndef COMPAT_CHECK_VERBS_H
#define COMPAT_CHECK_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct verbs {
    struct ibv_device **(*get_device_list)(int *n);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_port)(struct ibv_context *context, uint8_t port,
                      struct ibv_port_attr *attr);
    int (*query_gid)(struct ibv_context *context, uint8_t port, int index,
                     union ibv_gid *gid);
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t len,
                             int access);
    int (*dereg_mr)(struct ibv_mr *mr);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int n, void *arg,
                                struct ibv_comp_channel *channel, int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    struct ibv_comp_channel *(*create_comp_channel)(
        struct ibv_context *context);
    int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
    int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                        void **arg);
    void (*ack_cq_events)(struct ibv_cq *cq, unsigned n);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd,
                                struct ibv_qp_init_attr *attr);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
    int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                    struct ibv_qp_init_attr *init);
    int (*destroy_qp)(struct ibv_qp *qp);
    int (*fork_init)(void);
};

extern struct verbs verbs;

/* Opens the library; exits with a message if that is not possible. */
void verbs_load(void);

#endif
