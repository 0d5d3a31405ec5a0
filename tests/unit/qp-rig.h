/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two HCAs with their guests' memory, and a wire between them: what the
 * tests of QPs, requester and responder stand on.
 *
 * Guests are played by hand: entries are built and read here byte by byte,
 * without the engine's own decoder.  CQs, regions and QPs are made by calling
 * the engine's parts directly; commands have tests of their own.
 */

#ifndef TESTS_QP_RIG_H
#define TESTS_QP_RIG_H

#include "engine/snapshot.h"
#include "engine/state.h"

#define RIG_MEM_BASE    0x140000000ull  /* aligned to the largest page */
#define RIG_MEM_SIZE    (32 << 20)
#define RIG_CMDQ_DEPTH  64
#define RIG_AEQ_DEPTH   256
#define RIG_PD          7
#define RIG_ALL_RIGHTS  0x1f
#define RIG_US          1000ull
#define RIG_MS          (1000 * RIG_US)
#define RIG_S           (1000 * RIG_MS)

typedef struct Rig Rig;
typedef struct RigPeer RigPeer;

/* One HCA */
typedef struct RigHca {
    Rig *rig;
    ErdmaEngine *e;
    uint8_t *mem;
    uint64_t used;              /* of the memory */
    uint32_t ip;
    uint64_t next_ns;           /* when erdma_engine_run() is due */
    uint64_t cmdq_sq;           /* of RIG_CMDQ_DEPTH slots each */
    uint64_t cmdq_cq;
    uint64_t aeq;
    uint32_t aeq_ci;
    uint32_t next_cqn;
    uint32_t next_mr;
    unsigned n_guest_errors;
    uint64_t n_dma;             /* transfers asked for */
    unsigned n_states;          /* changes of a QP's state */
    /* DMA to [hole, hole + hole_len) fails */
    uint64_t hole;
    uint64_t hole_len;
    /* address and end of every DMA write to this range are recorded */
    uint64_t watch;
    uint64_t watch_len;
    uint64_t watch_end;         /* highest byte written */
    bool watch_went_back;       /* a write began before the highest byte */
} RigHca;

struct Rig {
    RigHca hca[2];
    uint64_t now;
    GQueue wire;                /* RigPacket, in order of arrival */
    GRand *rand;
    unsigned loss_percent;
    unsigned dup_percent;
    unsigned reorder_percent;
    uint64_t n_sent;
    uint64_t n_lost;
    bool is_cut;                /* nothing arrives any more */
    bool is_stamping;           /* the wire is a link with INT */
    uint8_t cc;                 /* of rig_modify() and rig_peer() */
    uint32_t mtu;
    uint32_t qblocks;
    RigPeer *peer;
    GRand *moves;               /* not NULL: HCAs are saved and loaded */
    unsigned n_moves;
};

typedef struct RigCq {
    RigHca *hca;
    uint32_t cqn;
    uint64_t addr;
    uint32_t depth;
    uint32_t ci;
} RigCq;

typedef struct RigQp {
    RigHca *hca;
    uint32_t qpn;
    uint32_t cookie;
    uint64_t sq;
    uint64_t rq;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint16_t sq_pi;
    uint16_t rq_pi;
    RigCq scq;
    RigCq rcq;
} RigQp;

typedef struct RigSge {
    uint64_t addr;
    uint32_t len;
    uint32_t key;
} RigSge;

/* A send request; @op is enum ERDMA_OP_* */
typedef struct RigWr {
    uint8_t op;
    bool is_unsignalled;
    bool is_solicited;
    bool is_fenced;
    unsigned n_sges;
    RigSge sges[7];             /* one more than allowed */
    const void *inline_data;    /* not NULL: inline */
    uint8_t inline_len;
    uint32_t imm;
    uint32_t inv_key;
    uint32_t rkey;
    uint64_t raddr;
    uint64_t swap_add;
    uint64_t compare;
    /* register MR */
    uint64_t start;
    uint32_t len;
    uint32_t access;
    unsigned n_pages;
    uint64_t pages[4];
} RigWr;

/*
 * The far end of a connection without an HCA: a bare transport, whose
 * messages the test reads and makes up.
 */
struct RigPeer {
    Rig *rig;
    ErdmaXport *x;
    ErdmaXportConn *conn;
    uint64_t next_ns;
    GQueue rx;                  /* RigMsg, complete and not yet taken */
    GByteArray *partial;
    ErdmaXportRx answer;        /* to every segment */
    GPtrArray *sent;            /* everything that was sent, until the end */
    unsigned n_done;
    unsigned n_terminated;
    uint8_t term_status;
    uint32_t term_msn;
    unsigned n_errors;
};

typedef struct RigMsg {
    ErdmaXportMsgHdr hdr;
    uint32_t msn;
    GByteArray *data;
} RigMsg;

typedef struct RigCqe {
    uint8_t opcode;
    uint8_t qtype;
    uint8_t status;
    uint32_t index;
    uint32_t qpn;
    uint32_t imm;               /* read as little-endian */
    uint32_t inv_key;           /* the same word, big-endian */
    uint32_t len;
} RigCqe;

typedef struct RigQpOpts {
    uint32_t sq_depth_log2;     /* 0: 256 WQEBBs */
    uint32_t rq_depth_log2;     /* 0: 64 RQEs */
    bool is_user;
    uint32_t pdn;               /* 0: RIG_PD */
} RigQpOpts;

Rig *rig_new(void);
/* @qblocks: of 1024 QPs; @mtu: of the wire */
Rig *rig_new_with(uint32_t qblocks, uint32_t mtu);
void rig_free(Rig *rig);
/* Saves @hca and loads that again; it has to work and be the same. */
void rig_move(RigHca *hca);
/* Both are rig_new()'s and rig_run()'s; nothing unless RIG_IS_MOVING is set */
void rig_move_init(Rig *rig);
void rig_move_some(Rig *rig);
/* Every byte of loss, duplication and order depends on it. */
void rig_seed(Rig *rig, uint32_t seed);

/* Guest memory; addresses are the guest's. */
uint64_t rig_alloc(RigHca *hca, size_t len);
uint64_t rig_alloc_at(RigHca *hca, size_t len, size_t align, size_t off);
void *rig_ptr(RigHca *hca, uint64_t addr);
/* A region over [@addr, @addr + @len); returns the key. */
uint32_t rig_mr(RigHca *hca, uint64_t addr, uint64_t len, uint8_t access);
uint32_t rig_mr_pd(RigHca *hca, uint64_t addr, uint64_t len, uint8_t access,
                   uint32_t pdn);
uint32_t rig_frmr(RigHca *hca, unsigned max_pages);
void rig_dereg(RigHca *hca, uint32_t key);

RigCq rig_cq(RigHca *hca, uint32_t depth_log2);
bool rig_poll(RigCq *cq, RigCqe *cqe);
/* Type of the next AEQE, or -1; the QPN must be @qpn. */
int rig_poll_aeq(RigHca *hca, uint32_t qpn);

RigQp *rig_qp(RigHca *hca, uint32_t qpn, const RigQpOpts *opts);
void rig_qp_free(RigQp *qp);
uint8_t rig_modify(RigQp *qp, uint8_t state, const RigQp *peer);
/* Both ends to RTS */
void rig_connect(RigQp *a, RigQp *b);
/* Two QPs, one on each HCA, connected */
void rig_pair(Rig *rig, RigQp **a, RigQp **b);

/* Connects @qp, of the first HCA, to the bare peer. */
RigPeer *rig_peer(Rig *rig, RigQp *qp);
/* Copies hdr->len bytes of @payload; returns the MSN. */
uint32_t rig_peer_send(RigPeer *peer, const ErdmaXportMsgHdr *hdr,
                       const void *payload);
/* The next complete message must be an @op; free with rig_msg_free(). */
RigMsg *rig_peer_take(RigPeer *peer, ErdmaXportOp op);
void rig_msg_free(RigMsg *msg);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RigMsg, rig_msg_free)

/* Write the entry and return its first index; a doorbell makes it count. */
uint16_t rig_write_sqe(RigQp *qp, const RigWr *wr);
void rig_ring_sq(RigQp *qp);
uint16_t rig_post_send(RigQp *qp, const RigWr *wr);
uint16_t rig_post_recv(RigQp *qp, uint64_t addr, uint32_t len, uint32_t key);

/*
 * Runs both engines and the wire until nothing is left to do, or @ns have
 * passed.  Returns true when all is quiet.
 */
bool rig_run(Rig *rig, uint64_t ns);

/* Assertions on the next completion; they leave it to the caller to run. */
void rig_expect(RigCq *cq, uint8_t opcode, uint8_t status, uint16_t index);
RigCqe rig_next(RigCq *cq);
void rig_expect_none(RigCq *cq);

#endif /* TESTS_QP_RIG_H */
