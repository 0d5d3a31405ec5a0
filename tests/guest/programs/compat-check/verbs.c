/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Opens libibverbs the way that NCCL does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs.h"

struct verbs verbs;

static void *find(void *library, const char *name, const char *version)
{
    void *symbol = dlvsym(library, name, version);

    if (!symbol) {
        fprintf(stderr, "libibverbs has no %s\n", name);
        exit(1);
    }
    return symbol;
}

void verbs_load(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND_IN(name, version) \
    verbs.name = find(library, "ibv_" #name, version)
#define FIND(name) FIND_IN(name, "IBVERBS_1.1")
    FIND(get_device_list);
    FIND(free_device_list);
    FIND(get_device_name);
    FIND(open_device);
    FIND(close_device);
    FIND(query_port);
    FIND(query_gid);
    FIND(alloc_pd);
    FIND(dealloc_pd);
    FIND(reg_mr);
    FIND(dereg_mr);
    FIND(create_cq);
    FIND(destroy_cq);
    FIND_IN(create_comp_channel, "IBVERBS_1.0");
    FIND_IN(destroy_comp_channel, "IBVERBS_1.0");
    FIND(get_cq_event);
    FIND(ack_cq_events);
    FIND(create_qp);
    FIND(modify_qp);
    FIND(query_qp);
    FIND(destroy_qp);
    FIND(fork_init);
#undef FIND
#undef FIND_IN
}
