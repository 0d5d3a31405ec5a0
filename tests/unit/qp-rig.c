/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two HCAs with their guests' memory, and a wire between them.
 */

#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/bswap.h"
#include "xport/link.h"
#include "qp-rig.h"

#define WIRE_DELAY_NS   (5 * RIG_US)

#define PEER_IP         0x0a000009
#define PEER_COOKIE     0x77700001

typedef struct RigPacket {
    uint64_t due;
    RigHca *to;                 /* NULL: the bare peer */
    ErdmaDatagram dg;
    uint8_t data[];
} RigPacket;

/* The engine's port */

static bool in_mem(uint64_t addr, size_t len)
{
    return addr >= RIG_MEM_BASE && len <= RIG_MEM_SIZE &&
           addr - RIG_MEM_BASE <= RIG_MEM_SIZE - len;
}

static bool in_range(uint64_t addr, size_t len, uint64_t base, uint64_t size)
{
    return size && addr < base + size && base < addr + len;
}

static bool dma_ok(RigHca *hca, uint64_t addr, size_t len)
{
    return in_mem(addr, len) && !in_range(addr, len, hca->hole, hca->hole_len);
}

static bool rig_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    RigHca *hca = opaque;

    hca->n_dma++;
    if (!dma_ok(hca, addr, len)) {
        return false;
    }
    memcpy(buf, rig_ptr(hca, addr), len);
    return true;
}

static bool rig_dma_write(void *opaque, uint64_t addr, const void *buf,
                          size_t len)
{
    RigHca *hca = opaque;

    hca->n_dma++;
    if (!dma_ok(hca, addr, len)) {
        return false;
    }
    if (in_range(addr, len, hca->watch, hca->watch_len)) {
        hca->watch_went_back |= addr < hca->watch_end;
        hca->watch_end = MAX(hca->watch_end, addr + len);
    }
    memcpy(rig_ptr(hca, addr), buf, len);
    return true;
}

static void rig_notify(void *opaque, unsigned vector)
{
}

static void rig_kick(void *opaque)
{
    RigHca *hca = opaque;

    hca->next_ns = 0;
}

static bool chance(Rig *rig, unsigned percent)
{
    return percent && g_rand_int_range(rig->rand, 0, 100) < (int)percent;
}

/* Behind everything that is due no later: the wire keeps the order. */
static void put_on_wire(Rig *rig, RigPacket *p)
{
    GList *l = rig->wire.tail;

    while (l && ((RigPacket *)l->data)->due > p->due) {
        l = l->prev;
    }
    if (l) {
        g_queue_insert_after(&rig->wire, l, p);
    } else {
        g_queue_push_head(&rig->wire, p);
    }
}

/* A link of 10 Gbit/s that is half full */
static void stamp(const Rig *rig, uint8_t *data, size_t len)
{
    ErdmaLinkStamp s = {
        .rate_bps = 10000000000ull,
        .time_ns = rig->now,
        .tx_bytes = rig->now * 5 / 8,
        .queue = rig->n_sent % 3 * 1000,
        .link_id = 1,
    };

    erdma_link_stamp(data, len, &s);
}

static bool rig_send(Rig *rig, const ErdmaDatagram *dg)
{
    bool to_peer = rig->peer && dg->dst_ip == PEER_IP;
    unsigned copies = 1 + chance(rig, rig->dup_percent);
    RigHca *to = NULL;
    unsigned i;

    rig->n_sent++;
    g_assert_cmpuint(dg->len + ERDMA_XPORT_IP_UDP_LEN, <=, rig->mtu);
    for (i = 0; i < ARRAY_SIZE(rig->hca); i++) {
        if (rig->hca[i].ip == dg->dst_ip) {
            to = &rig->hca[i];
        }
    }
    if ((!to && !to_peer) || rig->is_cut || chance(rig, rig->loss_percent)) {
        rig->n_lost++;
        return true;
    }
    while (copies--) {
        RigPacket *p = g_malloc(sizeof(*p) + dg->len);

        p->due = rig->now + WIRE_DELAY_NS;
        if (chance(rig, rig->reorder_percent)) {
            p->due += g_rand_int_range(rig->rand, 0, 20 * WIRE_DELAY_NS);
        }
        p->to = to;
        p->dg = *dg;
        p->dg.data = p->data;
        memcpy(p->data, dg->data, dg->len);
        if (rig->is_stamping) {
            stamp(rig, p->data, dg->len);
        }
        put_on_wire(rig, p);
    }
    return true;
}

static bool rig_transmit(void *opaque, const ErdmaDatagram *dg)
{
    RigHca *hca = opaque;

    return rig_send(hca->rig, dg);
}

static void G_GNUC_PRINTF(2, 3)
rig_guest_error(void *opaque, const char *fmt, ...)
{
    RigHca *hca = opaque;

    hca->n_guest_errors++;
}

static void rig_trace(void *opaque, ErdmaEvent event, uint32_t id, uint64_t a,
                      uint64_t b)
{
    RigHca *hca = opaque;

    hca->n_states += event == ERDMA_EV_QP_STATE;
}

static const ErdmaPort rig_port = {
    .dma_read = rig_dma_read,
    .dma_write = rig_dma_write,
    .notify = rig_notify,
    .kick = rig_kick,
    .transmit = rig_transmit,
    .guest_error = rig_guest_error,
    .trace = rig_trace,
};

/* Life */

static void hca_init(Rig *rig, unsigned i)
{
    RigHca *hca = &rig->hca[i];
    ErdmaEngineConfig cfg = {
        .qblocks = rig->qblocks,
        .max_mr_size_log2 = 36,
        .max_recv_wr_log2 = 15,
        .max_cqe_log2 = 20,
        .has_atomics = true,
        .default_cc = ERDMA_CC_CUBIC,
        .dma_local_key = 0xffffff00,
        .n_vectors = 2,
        .ext_db_first = 0x80,
        .seed = 0x1234 + i,
    };
    ErdmaEngineInit init = {
        .cmdq_depth = RIG_CMDQ_DEPTH,
        .cmdq_eq_depth = RIG_CMDQ_DEPTH,
        .aeq_depth = RIG_AEQ_DEPTH,
    };

    hca->rig = rig;
    /* Pages that are not used cost nothing, hundreds of tests long. */
    hca->mem = mmap(NULL, RIG_MEM_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert_true(hca->mem != MAP_FAILED);
    hca->ip = 0x0a000001 + i;
    hca->next_cqn = 1;
    hca->next_mr = 1;
    erdma_xport_config_default(&cfg.xport);
    cfg.xport.mtu = rig->mtu;
    hca->e = erdma_engine_new(&rig_port, hca, &cfg);
    init.cmdq_sq_addr = hca->cmdq_sq = rig_alloc(hca, RIG_CMDQ_DEPTH * 32);
    init.cmdq_cq_addr = hca->cmdq_cq = rig_alloc(hca, RIG_CMDQ_DEPTH * 32);
    init.cmdq_eq_addr = rig_alloc(hca, RIG_CMDQ_DEPTH * 16);
    init.aeq_addr = hca->aeq = rig_alloc(hca, RIG_AEQ_DEPTH * 16);
    g_assert_true(erdma_engine_init(hca->e, &init));
}

Rig *rig_new_with(uint32_t qblocks, uint32_t mtu)
{
    Rig *rig = g_new0(Rig, 1);

    rig->qblocks = qblocks;
    rig->mtu = mtu;
    rig->now = RIG_S;
    rig->cc = ERDMA_CC_CUBIC;
    rig->rand = g_rand_new_with_seed(1);
    rig_move_init(rig);
    g_queue_init(&rig->wire);
    hca_init(rig, 0);
    hca_init(rig, 1);
    return rig;
}

Rig *rig_new(void)
{
    return rig_new_with(1, 1500);
}

void rig_seed(Rig *rig, uint32_t seed)
{
    g_rand_set_seed(rig->rand, seed);
}

static void peer_free(RigPeer *peer)
{
    erdma_xport_free(peer->x);
    g_queue_clear_full(&peer->rx, (GDestroyNotify)rig_msg_free);
    g_byte_array_unref(peer->partial);
    g_ptr_array_unref(peer->sent);
    g_free(peer);
}

void rig_free(Rig *rig)
{
    unsigned i;

    if (rig->peer) {
        peer_free(rig->peer);
    }
    for (i = 0; i < ARRAY_SIZE(rig->hca); i++) {
        erdma_engine_free(rig->hca[i].e);
        munmap(rig->hca[i].mem, RIG_MEM_SIZE);
    }
    g_queue_clear_full(&rig->wire, g_free);
    g_rand_free(rig->rand);
    g_clear_pointer(&rig->moves, g_rand_free);
    g_free(rig);
}

/* Memory */

uint64_t rig_alloc_at(RigHca *hca, size_t len, size_t align, size_t off)
{
    uint64_t at = ROUND_UP(hca->used, align) + off;

    g_assert_cmpuint(at + len, <=, RIG_MEM_SIZE);
    hca->used = at + len;
    return RIG_MEM_BASE + at;
}

uint64_t rig_alloc(RigHca *hca, size_t len)
{
    return rig_alloc_at(hca, len, 4096, 0);
}

void *rig_ptr(RigHca *hca, uint64_t addr)
{
    return hca->mem + (addr - RIG_MEM_BASE);
}

uint32_t rig_mr_pd(RigHca *hca, uint64_t addr, uint64_t len, uint8_t access,
                   uint32_t pdn)
{
    ErdmaRegMr reg = {
        .index = hca->next_mr++,
        .key = 0x5a,
        .is_valid = true,
        .access = access,
        .type = ERDMA_MR_TYPE_NORMAL,
        .pdn = pdn,
        .start = addr,
        .len = len,
        .n_pages = 1,
        .page_shift = 30,
        .pages = { RIG_MEM_BASE },
    };

    g_assert_cmpuint(erdma_mr_create(hca->e, &reg), ==, 0);
    return reg.index << 8 | reg.key;
}

uint32_t rig_mr(RigHca *hca, uint64_t addr, uint64_t len, uint8_t access)
{
    return rig_mr_pd(hca, addr, len, access, RIG_PD);
}

uint32_t rig_frmr(RigHca *hca, unsigned max_pages)
{
    ErdmaRegMr reg = {
        .index = hca->next_mr++,
        .key = 0x11,
        .type = ERDMA_MR_TYPE_FRMR,
        .pdn = RIG_PD,
        .n_pages = max_pages,
        .level = 1,
        .table_shift = 12,
        .page_shift = 12,
        .pages = { rig_alloc(hca, max_pages * 8) },
    };

    g_assert_cmpuint(erdma_mr_create(hca->e, &reg), ==, 0);
    return reg.index << 8 | reg.key;
}

void rig_dereg(RigHca *hca, uint32_t key)
{
    g_assert_cmpuint(erdma_mr_destroy(hca->e, key >> 8), ==, 0);
}

/* Queues */

static ErdmaCq *make_cq(uint32_t cqn, uint64_t addr, uint32_t depth_log2)
{
    ErdmaCq *cq = g_new0(ErdmaCq, 1);

    cq->cqn = cqn;
    cq->eqn = 1;
    erdma_ring_init_flat(&cq->ring, addr, depth_log2, ERDMA_CQE_SHIFT);
    return cq;
}

RigCq rig_cq(RigHca *hca, uint32_t depth_log2)
{
    RigCq cq = {
        .hca = hca,
        .cqn = hca->next_cqn++,
        .addr = rig_alloc(hca, 32 << depth_log2),
        .depth = 1 << depth_log2,
    };

    g_assert_true(erdma_cq_add(hca->e, make_cq(cq.cqn, cq.addr, depth_log2)));
    return cq;
}

int rig_poll_aeq(RigHca *hca, uint32_t qpn)
{
    const uint8_t *raw = rig_ptr(hca, hca->aeq + 16 *
                                 (hca->aeq_ci & (RIG_AEQ_DEPTH - 1)));
    uint32_t hdr = ldl_le_p(raw);

    if (hdr >> 31 == !!(hca->aeq_ci & RIG_AEQ_DEPTH)) {
        return -1;
    }
    hca->aeq_ci++;
    erdma_engine_db_aeq(hca->e, 1u << 31 | (hca->aeq_ci & 0xffff));
    g_assert_cmpuint(ldl_le_p(raw + 4), ==, qpn);
    return (hdr >> 16) & 0xff;
}

RigQp *rig_qp(RigHca *hca, uint32_t qpn, const RigQpOpts *opts)
{
    static const RigQpOpts defaults;
    RigQp *qp = g_new0(RigQp, 1);
    ErdmaCreateQp c = { .qpn = qpn };

    opts = opts ?: &defaults;
    c.sq_depth_log2 = opts->sq_depth_log2 ?: 8;
    c.rq_depth_log2 = opts->rq_depth_log2 ?: 6;
    c.pdn = opts->pdn ?: RIG_PD;
    c.is_kernel = !opts->is_user;
    qp->hca = hca;
    qp->qpn = qpn;
    qp->sq_depth = 1 << c.sq_depth_log2;
    qp->rq_depth = 1 << c.rq_depth_log2;
    qp->scq = rig_cq(hca, c.sq_depth_log2 + 1);
    qp->rcq = rig_cq(hca, c.rq_depth_log2 + 1);
    /* Kernel queues are not aligned to the size of their "page". */
    qp->sq = rig_alloc_at(hca, 32 << c.sq_depth_log2, 4096, 4096);
    qp->rq = rig_alloc_at(hca, 32 << c.rq_depth_log2, 4096, 4096);
    /* Nobody clears queue memory. */
    memset(rig_ptr(hca, qp->sq), 0xa5, 32 << c.sq_depth_log2);
    memset(rig_ptr(hca, qp->rq), 0xa5, 32 << c.rq_depth_log2);
    c.sq_cqn = qp->scq.cqn;
    c.rq_cqn = qp->rcq.cqn;
    c.sq_page_shift = c.rq_page_shift = 20;
    c.sq_n_pages = c.rq_n_pages = 1;
    c.sq_pages[0] = qp->sq;
    c.rq_pages[0] = qp->rq;
    g_assert_cmpuint(erdma_qp_create(hca->e, &c, &qp->cookie), ==, 0);
    return qp;
}

void rig_qp_free(RigQp *qp)
{
    g_free(qp);
}

uint8_t rig_modify(RigQp *qp, uint8_t state, const RigQp *peer)
{
    ErdmaModifyQp m = {
        .qpn = qp->qpn,
        .state = state,
        .cc = qp->hca->rig->cc,
    };

    if (peer) {
        m.cookie = peer->cookie;
        m.local_ip = qp->hca->ip;
        m.peer_ip = peer->hca->ip;
        /* What one end sends with, the other receives with. */
        m.send_nxt = qp->cookie ^ 0x55aa55aa;
        m.recv_nxt = peer->cookie ^ 0x55aa55aa;
    }
    return erdma_qp_modify(qp->hca->e, &m, qp->hca->rig->now);
}

void rig_connect(RigQp *a, RigQp *b)
{
    g_assert_cmpuint(rig_modify(a, ERDMA_QPS_RTS, b), ==, 0);
    g_assert_cmpuint(rig_modify(b, ERDMA_QPS_RTS, a), ==, 0);
}

void rig_pair(Rig *rig, RigQp **a, RigQp **b)
{
    *a = rig_qp(&rig->hca[0], 5, NULL);
    *b = rig_qp(&rig->hca[1], 9, NULL);
    rig_connect(*a, *b);
}

/* The bare peer */

typedef struct PeerMsg {
    ErdmaXportMsg msg;
    uint8_t payload[];
} PeerMsg;

static bool peer_transmit(void *opaque, const ErdmaDatagram *dg)
{
    RigPeer *peer = opaque;

    return rig_send(peer->rig, dg);
}

static bool peer_pull(void *opaque, void *owner, ErdmaXportMsg *msg,
                      uint32_t off, uint8_t *buf, uint32_t len)
{
    memcpy(buf, container_of(msg, PeerMsg, msg)->payload + off, len);
    return true;
}

static ErdmaXportRx peer_rx(void *opaque, void *owner,
                            const ErdmaXportMsgHdr *hdr, uint32_t msn,
                            uint32_t off, const uint8_t *data, uint32_t len,
                            bool is_last)
{
    RigPeer *peer = opaque;

    if (peer->answer != ERDMA_XPORT_RX_OK) {
        return peer->answer;
    }
    g_assert_cmpuint(peer->partial->len, ==, off);
    g_byte_array_append(peer->partial, data, len);
    if (is_last) {
        RigMsg *msg = g_new0(RigMsg, 1);

        msg->hdr = *hdr;
        msg->msn = msn;
        msg->data = peer->partial;
        peer->partial = g_byte_array_new();
        g_queue_push_tail(&peer->rx, msg);
    }
    return ERDMA_XPORT_RX_OK;
}

static void peer_msg_done(void *opaque, void *owner, ErdmaXportMsg *msg)
{
    RigPeer *peer = opaque;

    peer->n_done++;
}

static void peer_tx_room(void *opaque, void *owner)
{
}

static void peer_terminated(void *opaque, void *owner, uint8_t status,
                            uint32_t msn)
{
    RigPeer *peer = opaque;

    peer->n_terminated++;
    peer->term_status = status;
    peer->term_msn = msn;
}

static void peer_conn_error(void *opaque, void *owner, ErdmaXportError error)
{
    RigPeer *peer = opaque;

    peer->n_errors++;
}

static const ErdmaXportOps peer_ops = {
    .transmit = peer_transmit,
    .pull = peer_pull,
    .rx = peer_rx,
    .msg_done = peer_msg_done,
    .tx_room = peer_tx_room,
    .terminated = peer_terminated,
    .conn_error = peer_conn_error,
};

RigPeer *rig_peer(Rig *rig, RigQp *qp)
{
    RigPeer *peer = g_new0(RigPeer, 1);
    ErdmaXportConfig cfg;
    ErdmaXportConnParams p = {
        .local_cookie = PEER_COOKIE,
        .peer_cookie = qp->cookie,
        .local_ip = PEER_IP,
        .peer_ip = qp->hca->ip,
        .tx_pn0 = 100,
        .rx_pn0 = 200,
        .cc = rig->cc,
    };
    ErdmaModifyQp m = {
        .qpn = qp->qpn,
        .state = ERDMA_QPS_RTS,
        .cc = rig->cc,
        .cookie = PEER_COOKIE,
        .local_ip = qp->hca->ip,
        .peer_ip = PEER_IP,
        .send_nxt = 200,
        .recv_nxt = 100,
    };

    erdma_xport_config_default(&cfg);
    cfg.mtu = rig->mtu;
    peer->rig = rig;
    peer->x = erdma_xport_new(&peer_ops, peer, &cfg);
    peer->partial = g_byte_array_new();
    peer->sent = g_ptr_array_new_with_free_func(g_free);
    g_queue_init(&peer->rx);
    peer->conn = erdma_xport_conn_open(peer->x, &p, rig->now);
    rig->peer = peer;
    g_assert_cmpuint(erdma_qp_modify(qp->hca->e, &m, rig->now), ==, 0);
    return peer;
}

uint32_t rig_peer_send(RigPeer *peer, const ErdmaXportMsgHdr *hdr,
                       const void *payload)
{
    PeerMsg *m = g_malloc0(sizeof(*m) + hdr->len);

    m->msg.hdr = *hdr;
    if (payload) {
        memcpy(m->payload, payload, hdr->len);
    }
    g_ptr_array_add(peer->sent, m);
    erdma_xport_conn_send(peer->conn, &m->msg);
    peer->next_ns = 0;
    return m->msg.msn;
}

RigMsg *rig_peer_take(RigPeer *peer, ErdmaXportOp op)
{
    RigMsg *msg = g_queue_pop_head(&peer->rx);

    g_assert_nonnull(msg);
    g_assert_cmpuint(msg->hdr.op, ==, op);
    return msg;
}

void rig_msg_free(RigMsg *msg)
{
    g_byte_array_unref(msg->data);
    g_free(msg);
}

/* Time */

static bool deliver(Rig *rig)
{
    RigPacket *p = g_queue_peek_head(&rig->wire);

    if (!p || p->due > rig->now) {
        return false;
    }
    g_queue_pop_head(&rig->wire);
    if (p->to) {
        erdma_engine_input(p->to->e, &p->dg, rig->now);
    } else {
        erdma_xport_input(rig->peer->x, &p->dg, rig->now);
        rig->peer->next_ns = 0;
    }
    g_free(p);
    return true;
}

static uint64_t next_event(Rig *rig)
{
    RigPacket *p = g_queue_peek_head(&rig->wire);
    uint64_t next = MIN(rig->hca[0].next_ns, rig->hca[1].next_ns);

    if (rig->peer) {
        next = MIN(next, rig->peer->next_ns);
    }
    return p ? MIN(next, p->due) : next;
}

bool rig_run(Rig *rig, uint64_t ns)
{
    uint64_t end = rig->now + ns;
    unsigned i;

    for (;;) {
        while (deliver(rig)) {
            rig_move_some(rig);
        }
        for (i = 0; i < ARRAY_SIZE(rig->hca); i++) {
            RigHca *hca = &rig->hca[i];

            if (hca->next_ns <= rig->now) {
                hca->next_ns = UINT64_MAX;
                hca->next_ns = MIN(erdma_engine_run(hca->e, rig->now),
                                   hca->next_ns);
            }
        }
        if (rig->peer && rig->peer->next_ns <= rig->now) {
            rig->peer->next_ns = erdma_xport_poll(rig->peer->x, rig->now, 64);
        }
        if (next_event(rig) > rig->now) {
            if (next_event(rig) == UINT64_MAX) {
                return true;
            }
            if (next_event(rig) > end) {
                rig->now = end;
                return false;
            }
            rig->now = next_event(rig);
        }
    }
}
