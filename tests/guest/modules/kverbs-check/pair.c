/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: see pair.h.
 */
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "pair.h"

static KvEnd listener;
static struct rdma_cm_id *request;      /* an id that nobody has taken yet */

static int on_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
    KvEnd *e = id->context;

    switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (request) {
            return -EBUSY;      /* the id goes away */
        }
        request = id;
        e->status = 0;
        break;
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
    case RDMA_CM_EVENT_ESTABLISHED:
        e->status = 0;
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
        e->status = event->status < 0 ? event->status : -ECONNREFUSED;
        break;
    default:
        return 0;
    }
    complete(&e->changed);
    return 0;
}

static int wait_changed(KvEnd *e, const char *what)
{
    if (!wait_for_completion_timeout(&e->changed,
                                     msecs_to_jiffies(KV_WAIT_MS))) {
        return kv_fail("%s: nothing happens", what);
    }
    return e->status ? kv_fail("%s: error %d", what, e->status) : 0;
}

static struct rdma_cm_id *new_id(KvEnd *e)
{
    init_completion(&e->changed);
    return rdma_create_id(&init_net, on_cm_event, e, RDMA_PS_TCP, IB_QPT_RC);
}

static struct sockaddr_in listen_address;

int kv_listen(const struct sockaddr_in *address)
{
    int ret;

    listen_address = *address;
    listener.id = new_id(&listener);
    if (IS_ERR(listener.id)) {
        return PTR_ERR(listener.id);
    }
    ret = rdma_bind_addr(listener.id, (struct sockaddr *)&listen_address);
    if (!ret) {
        ret = rdma_listen(listener.id, 8);
    }
    if (ret) {
        rdma_destroy_id(listener.id);
    }
    return ret;
}

void kv_stop_listening(void)
{
    rdma_destroy_id(listener.id);
    if (request) {
        rdma_destroy_id(request);
    }
}

static void on_completion(struct ib_cq *cq, void *context)
{
    KvEnd *e = context;

    if (cq == e->rcq) {
        atomic_inc(&e->n_events);
    }
}

static int open_cq(KvEnd *e, struct ib_cq **cq, u32 depth)
{
    struct ib_cq_init_attr attr = { .cqe = depth };
    struct ib_cq *made = ib_create_cq(e->id->device, on_completion, NULL, e,
                                      &attr);

    if (IS_ERR(made)) {
        return PTR_ERR(made);
    }
    *cq = made;
    return 0;
}

/* The end has an id that knows its device. */
static int open_queues(KvEnd *e, u32 depth)
{
    struct ib_qp_init_attr attr = {
        .cap = { .max_send_wr = depth, .max_recv_wr = depth,
                 .max_send_sge = KV_MAX_SGE, .max_recv_sge = 1,
                 .max_inline_data = 96 },
        .sq_sig_type = IB_SIGNAL_REQ_WR,
        .qp_type = IB_QPT_RC,
    };
    struct ib_device *device = e->id->device;
    struct ib_pd *pd = ib_alloc_pd(device, 0);
    struct ib_mr *mr;
    int ret;

    if (IS_ERR(pd)) {
        return PTR_ERR(pd);
    }
    e->pd = pd;
    mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, KV_BUF_SIZE / PAGE_SIZE + 1);
    if (IS_ERR(mr)) {
        return PTR_ERR(mr);
    }
    e->mr = mr;
    e->buf = kzalloc(KV_BUF_SIZE, GFP_KERNEL);
    if (!e->buf) {
        return -ENOMEM;
    }
    e->dma = ib_dma_map_single(device, e->buf, KV_BUF_SIZE,
                               DMA_BIDIRECTIONAL);
    if (ib_dma_mapping_error(device, e->dma)) {
        kfree(e->buf);
        e->buf = NULL;
        return -ENOMEM;
    }
    ret = open_cq(e, &e->scq, 2 * depth);
    if (!ret) {
        ret = open_cq(e, &e->rcq, 2 * depth);
    }
    if (ret) {
        return ret;
    }
    attr.send_cq = e->scq;
    attr.recv_cq = e->rcq;
    ret = rdma_create_qp(e->id, pd, &attr);
    if (!ret) {
        e->qp = e->id->qp;
    }
    return ret;
}

static void close_end(KvEnd *e)
{
    struct ib_device *device;

    if (!e->id) {
        return;
    }
    device = e->id->device;
    if (e->qp) {
        rdma_disconnect(e->id);
        rdma_destroy_qp(e->id);
    }
    if (e->scq) {
        ib_destroy_cq(e->scq);
    }
    if (e->rcq) {
        ib_destroy_cq(e->rcq);
    }
    if (e->buf) {
        ib_dma_unmap_single(device, e->dma, KV_BUF_SIZE, DMA_BIDIRECTIONAL);
        kfree(e->buf);
    }
    if (e->mr) {
        ib_dereg_mr(e->mr);
    }
    if (e->pd) {
        ib_dealloc_pd(e->pd);
    }
    rdma_destroy_id(e->id);
}

static int resolve(KvEnd *e)
{
    int ret = rdma_resolve_addr(e->id, NULL,
                                (struct sockaddr *)&listen_address, 5000);

    if (!ret) {
        ret = wait_changed(e, "address");
    }
    if (!ret) {
        ret = rdma_resolve_route(e->id, 5000);
    }
    return ret ?: wait_changed(e, "route");
}

static int connect(KvPair *p, u32 depth)
{
    struct rdma_conn_param param = { .responder_resources = 8,
                                     .initiator_depth = 8 };
    struct rdma_cm_id *id;
    int ret;

    reinit_completion(&listener.changed);
    ret = rdma_connect(p->a.id, &param);
    if (!ret) {
        ret = wait_changed(&listener, "request");
    }
    if (ret) {
        return ret;
    }
    init_completion(&p->b.changed);
    id = request;
    request = NULL;
    id->context = &p->b;
    p->b.id = id;
    ret = open_queues(&p->b, depth);
    if (!ret) {
        ret = rdma_accept(id, &param);
    }
    if (!ret) {
        ret = wait_changed(&p->a, "connection");
    }
    return ret ?: wait_changed(&p->b, "acceptance");
}

int kv_open(KvPair *p, u32 depth)
{
    struct rdma_cm_id *id;
    int ret;

    memset(p, 0, sizeof(*p));
    id = new_id(&p->a);
    if (IS_ERR(id)) {
        return kv_fail("rdma_create_id: %ld", PTR_ERR(id));
    }
    p->a.id = id;
    ret = resolve(&p->a);
    if (!ret) {
        ret = open_queues(&p->a, depth);
    }
    if (!ret) {
        ret = connect(p, depth);
    }
    return ret ? kv_fail("no connection: %d", ret) : 0;
}

void kv_close(KvPair *p)
{
    close_end(&p->a);
    close_end(&p->b);
}

int kv_register(KvEnd *e, u32 at, u32 len, int access)
{
    struct ib_reg_wr wr = {
        .wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED,
                .wr_id = 0x4e6 },
        .access = access,
    };
    struct scatterlist sg;
    struct ib_wc wc;
    int ret;

    sg_init_one(&sg, e->buf + at, len);
    sg_dma_address(&sg) = e->dma + at;
    sg_dma_len(&sg) = len;
    if (ib_map_mr_sg(e->mr, &sg, 1, NULL, PAGE_SIZE) != 1) {
        return kv_fail("ib_map_mr_sg");
    }
    ib_update_fast_reg_key(e->mr, ++e->key_byte);
    wr.mr = e->mr;
    wr.key = e->mr->rkey;
    ret = ib_post_send(e->qp, &wr.wr, NULL);
    return ret ? kv_fail("REG_MR: %d", ret) :
                 kv_expect(e->scq, &wc, wr.wr.wr_id, IB_WC_SUCCESS);
}

int kv_recv(KvEnd *e, u64 id, u32 at, u32 len)
{
    struct ib_sge sge = { .addr = e->dma + at, .length = len,
                          .lkey = e->pd->local_dma_lkey };
    struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
    int ret = ib_post_recv(e->qp, &wr, NULL);

    return ret ? kv_fail("ib_post_recv: %d", ret) : 0;
}

static int split(KvEnd *e, const KvOp *op, struct ib_sge *sge)
{
    int n = op->n_sge ?: 1;
    u32 piece = op->len / n, done = 0;

    for (int i = 0; i < n; i++) {
        sge[i].length = i + 1 < n ? piece : op->len - done;
        sge[i].lkey = op->lkey ?: e->pd->local_dma_lkey;
        sge[i].addr = op->flags & IB_SEND_INLINE ?
                      (u64)(uintptr_t)(e->buf + op->at + done) :
                      e->dma + op->at + done;
        done += sge[i].length;
    }
    return n;
}

int kv_post(KvEnd *e, KvEnd *peer, const KvOp *op)
{
    struct ib_sge sge[KV_MAX_SGE];
    struct ib_send_wr wr = {
        .wr_id = op->id,
        .opcode = op->opcode,
        .send_flags = op->flags | (op->silent ? 0 : IB_SEND_SIGNALED),
        .sg_list = sge,
    };
    u64 remote = peer->dma + op->remote_at;
    int ret;

    if (op->opcode == IB_WR_SEND_WITH_IMM ||
        op->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
        wr.ex.imm_data = cpu_to_be32(op->ex);
    } else {
        wr.ex.invalidate_rkey = op->ex;
    }
    if (op->opcode != IB_WR_LOCAL_INV) {
        wr.num_sge = split(e, op, sge);
    }
    if (op->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
        op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
        struct ib_atomic_wr atomic = { .wr = wr, .remote_addr = remote,
                                       .rkey = op->rkey,
                                       .compare_add = op->compare_add,
                                       .swap = op->swap };

        ret = ib_post_send(e->qp, &atomic.wr, NULL);
    } else {
        struct ib_rdma_wr rdma = { .wr = wr, .remote_addr = remote,
                                   .rkey = op->rkey };

        ret = ib_post_send(e->qp, &rdma.wr, NULL);
    }
    return ret ? kv_fail("ib_post_send: %d", ret) : 0;
}

int kv_poll(struct ib_cq *cq, struct ib_wc *wc, int n)
{
    ktime_t end = ktime_add_ms(ktime_get(), KV_WAIT_MS);
    struct ib_wc one;
    int got = 0;

    while (got < n) {
        if (ib_poll_cq(cq, 1, wc ? &wc[got] : &one) == 1) {
            got++;
        } else if (ktime_after(ktime_get(), end)) {
            return kv_fail("%d completions of %d", got, n);
        } else {
            usleep_range(20, 100);
        }
    }
    return 0;
}

int kv_expect(struct ib_cq *cq, struct ib_wc *wc, u64 id,
              enum ib_wc_status status)
{
    int ret = kv_poll(cq, wc, 1);

    if (ret) {
        return ret;
    }
    if (wc->wr_id != id || wc->status != status) {
        return kv_fail("request %llu: %s instead of request %llu: %s",
                       wc->wr_id, ib_wc_status_msg(wc->status), id,
                       ib_wc_status_msg(status));
    }
    return 0;
}

int kv_expect_none(struct ib_cq *cq, unsigned ms)
{
    struct ib_wc wc;

    msleep(ms);
    if (ib_poll_cq(cq, 1, &wc)) {
        return kv_fail("one completion too many: request %llu: %s", wc.wr_id,
                       ib_wc_status_msg(wc.status));
    }
    return 0;
}

static u8 pattern(u32 i, u32 seed)
{
    return i * 7 + (i >> 8) * 31 + seed * 131 + 1;
}

void kv_fill(u8 *to, u32 len, u32 seed)
{
    for (u32 i = 0; i < len; i++) {
        to[i] = pattern(i, seed);
    }
}

int kv_expect_bytes(const u8 *at, u32 len, u32 seed)
{
    for (u32 i = 0; i < len; i++) {
        if (at[i] != pattern(i, seed)) {
            return kv_fail("byte %u of %u is %02x instead of %02x", i, len,
                           at[i], pattern(i, seed));
        }
    }
    for (u32 i = 0; i < KV_GUARD; i++) {
        if (at[len + i]) {
            return kv_fail("byte %u beyond %u was written", i, len);
        }
    }
    return 0;
}
