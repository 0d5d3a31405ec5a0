/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The device's limits: what it says it has can be had, one more cannot and
 * says why, and what is given back can be had again.  They run only if asked
 * for:
 *
 *   limits/OBJECT        all QPs, CQs, MRs; needs a device with few of them
 *   limits/contexts      as many users as there are doorbell pages
 *   limits/beyond-NAME   one more than a queue, a request or a region may have
 *   limits/no-NAME       what the product does not have
 *
 * No connection is open meanwhile, so that all objects are ours.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client.h"

#define MAX_OBJECTS 4096

typedef struct Limits {
    Client *c;
    struct ibv_context *verbs;
    struct ibv_device_attr attr;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    char byte[64];              /* for regions */
} Limits;

static void *make_qp_of(Limits *l, const struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = l->cq, .recv_cq = l->cq, .qp_type = IBV_QPT_RC, .cap = *cap,
    };

    return ibv_create_qp(l->pd, &attr);
}

static void *make_qp(Limits *l)
{
    return make_qp_of(l, &(struct ibv_qp_cap) { 1, 1, 1, 1, 0 });
}

static void *make_cq(Limits *l)
{
    return ibv_create_cq(l->verbs, 1, NULL, NULL, 0);
}

static void *make_mr(Limits *l)
{
    return ibv_reg_mr(l->pd, l->byte, sizeof(l->byte), IBV_ACCESS_LOCAL_WRITE);
}

static void *make_context(Limits *l)
{
    return ibv_open_device(l->verbs->device);
}

static int free_qp(void *object)
{
    return ibv_destroy_qp(object);
}

static int free_cq(void *object)
{
    return ibv_destroy_cq(object);
}

static int free_mr(void *object)
{
    return ibv_dereg_mr(object);
}

static int free_context(void *object)
{
    return ibv_close_device(object);
}

typedef struct ObjectKind {
    const char *name;
    void *(*make)(Limits *l);
    int (*unmake)(void *object);
} ObjectKind;

/*
 * Makes objects from number n on until it fails: how many there are, and why
 * there are no more.
 */
static int make_all(Limits *l, const ObjectKind *kind, void **objects, int n,
                    int *err)
{
    errno = 0;
    while (n < MAX_OBJECTS && (objects[n] = kind->make(l))) {
        n++;
    }
    *err = errno;
    return n;
}

/* Frees the objects from number `from` on; false if one cannot be. */
static bool free_from(const ObjectKind *kind, void **objects, int from, int n)
{
    bool ok = true;

    for (int i = from; i < n; i++) {
        ok = !kind->unmake(objects[i]) && ok;
    }
    return ok;
}

/* limit 0: not known to the guest; the note tells the number. */
static void object_case(Limits *l, const ObjectKind *kind, int limit, int want)
{
    static void *objects[MAX_OBJECTS];
    Client *c = l->c;
    int n, again, err, err_again;
    char note[100];
    bool ok;

    if (!begin(c, "limits/%s", kind->name)) {
        return;
    }
    if (limit >= MAX_OBJECTS) {
        skip(c, "the device has too many of them");
        return;
    }
    n = make_all(l, kind, objects, 0, &err);
    /* Give some back: the same number can be had, and not one more. */
    ok = free_from(kind, objects, n / 2, n);
    again = make_all(l, kind, objects, n / 2, &err_again);
    ok = free_from(kind, objects, 0, again) && ok;
    if (limit && n != limit) {
        fail(c, "%d of %d, then: %s", n, limit, strerror(err));
    } else if (n == MAX_OBJECTS) {
        fail(c, "no end");
    } else if (err != want || err_again != want) {
        fail(c, "%d, then errno %d (%s), later %d; wanted %d", n, err,
             strerror(err), err_again, want);
    } else if (again != n) {
        fail(c, "%d, and after giving back some only %d", n, again);
    } else if (!ok) {
        fail(c, "not all could be freed");
    } else {
        snprintf(note, sizeof(note), "(%d, then: %s)", n, strerror(err));
        pass(c, note);
    }
}

static void beyond(Limits *l, void *object, int err, int want)
{
    if (object) {
        fail(l->c, "it was made");
    } else if (err != want) {
        fail(l->c, "errno %d (%s), wanted %d", err, strerror(err), want);
    } else {
        pass(l->c, strerror(err));
    }
}

typedef struct QpLimit {
    const char *name;
    struct ibv_qp_cap most, more;
} QpLimit;

/* The most that the product has, and one more. */
static const QpLimit qp_limits[] = {
    { "send-requests", { 8192, 1, 1, 1, 0 }, { 8193, 1, 1, 1, 0 } },
    { "receive-requests", { 1, 32768, 1, 1, 0 }, { 1, 32769, 1, 1, 0 } },
    { "send-sges", { 1, 1, 6, 1, 0 }, { 1, 1, 7, 1, 0 } },
    { "receive-sges", { 1, 1, 1, 1, 0 }, { 1, 1, 1, 2, 0 } },
    { "inline-bytes", { 1, 1, 1, 1, 96 }, { 1, 1, 1, 1, 97 } },
};

static void qp_limit_case(Limits *l, const QpLimit *limit)
{
    void *qp;

    if (!begin(l->c, "limits/beyond-%s", limit->name)) {
        return;
    }
    qp = make_qp_of(l, &limit->most);
    if (!qp) {
        fail(l->c, "the most cannot be had: %s", strerror(errno));
        return;
    }
    ibv_destroy_qp(qp);
    errno = 0;
    qp = make_qp_of(l, &limit->more);
    beyond(l, qp, errno, EINVAL);
    if (qp) {
        ibv_destroy_qp(qp);
    }
}

static void cqe_limit_case(Limits *l)
{
    struct ibv_cq *cq;

    if (!begin(l->c, "limits/beyond-cq-entries")) {
        return;
    }
    errno = 0;
    cq = ibv_create_cq(l->verbs, l->attr.max_cqe + 1, NULL, NULL, 0);
    /* The provider has one errno for all that the kernel says. */
    beyond(l, cq, errno, EIO);
    if (cq) {
        ibv_destroy_cq(cq);
    }
}

static void mr_limit_case(Limits *l)
{
    size_t len = l->attr.max_mr_size + 4096;
    struct ibv_mr *mr;
    void *at;

    if (!begin(l->c, "limits/beyond-region-size")) {
        return;
    }
    at = mmap(NULL, len, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        fail(l->c, "mmap: %s", strerror(errno));
        return;
    }
    errno = 0;
    mr = ibv_reg_mr(l->pd, at, len, IBV_ACCESS_LOCAL_WRITE);
    beyond(l, mr, errno, EINVAL);
    if (mr) {
        ibv_dereg_mr(mr);
    }
    munmap(at, len);
}

static bool can_make_srq(Limits *l)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(l->pd, &attr);

    return srq && !ibv_destroy_srq(srq);
}

static bool can_make_mw(Limits *l)
{
    struct ibv_mw *mw = ibv_alloc_mw(l->pd, IBV_MW_TYPE_1);

    return mw && !ibv_dealloc_mw(mw);
}

static bool can_resize_cq(Limits *l)
{
    errno = ibv_resize_cq(l->cq, 100);
    return !errno;
}

static bool can_make_qp_type(Limits *l, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = l->cq, .recv_cq = l->cq, .qp_type = type,
        .cap = { 1, 1, 1, 1, 0 },
    };
    struct ibv_qp *qp = ibv_create_qp(l->pd, &attr);

    return qp && !ibv_destroy_qp(qp);
}

static bool can_make_uc(Limits *l)
{
    return can_make_qp_type(l, IBV_QPT_UC);
}

static bool can_make_ud(Limits *l)
{
    return can_make_qp_type(l, IBV_QPT_UD);
}

typedef struct Absent {
    const char *name;
    bool (*can)(Limits *l);
} Absent;

static const Absent absent[] = {
    { "shared-receive-queue", can_make_srq },
    { "memory-window", can_make_mw },
    { "cq-resize", can_resize_cq },
    { "unreliable-connection", can_make_uc },
    { "unreliable-datagram", can_make_ud },
};

static void absent_case(Limits *l, const Absent *what)
{
    bool can;

    if (!begin(l->c, "limits/no-%s", what->name)) {
        return;
    }
    errno = 0;
    can = what->can(l);
    if (can) {
        fail(l->c, "it can be had");
    } else if (errno != EOPNOTSUPP) {
        fail(l->c, "errno %d (%s), wanted %d", errno, strerror(errno),
             EOPNOTSUPP);
    } else {
        pass(l->c, strerror(EOPNOTSUPP));
    }
}

static bool limits_open(Limits *l)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    if (list && list[0]) {
        l->verbs = ibv_open_device(list[0]);
    }
    ibv_free_device_list(list);
    if (!l->verbs || ibv_query_device(l->verbs, &l->attr)) {
        return false;
    }
    l->pd = ibv_alloc_pd(l->verbs);
    return l->pd != NULL;
}

static void limits_run(Limits *l)
{
    static const ObjectKind qps = { "qps", make_qp, free_qp };
    static const ObjectKind cqs = { "cqs", make_cq, free_cq };
    static const ObjectKind mrs = { "mrs", make_mr, free_mr };
    static const ObjectKind contexts = { "contexts", make_context,
                                         free_context };

    object_case(l, &cqs, l->attr.max_cq, EIO);
    object_case(l, &mrs, l->attr.max_mr, ENOSPC);
    object_case(l, &contexts, 0, EIO);
    cqe_limit_case(l);
    mr_limit_case(l);
    l->cq = ibv_create_cq(l->verbs, 1, NULL, NULL, 0);
    object_case(l, &qps, l->attr.max_qp, ENOMEM);
    for (size_t i = 0; i < sizeof(qp_limits) / sizeof(qp_limits[0]); i++) {
        qp_limit_case(l, &qp_limits[i]);
    }
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        absent_case(l, &absent[i]);
    }
    if (l->cq) {
        ibv_destroy_cq(l->cq);
    }
}

void cases_limits(Client *c)
{
    Limits l = { .c = c };

    if (!is_asked_for(c, "limits/")) {
        return;
    }
    close_connection(c);
    if (limits_open(&l)) {
        limits_run(&l);
        ibv_dealloc_pd(l.pd);
    } else if (begin(c, "limits/")) {
        fail(c, "no RDMA device: %s", strerror(errno));
    }
    if (l.verbs) {
        ibv_close_device(l.verbs);
    }
}
