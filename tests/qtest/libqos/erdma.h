/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos driver for the eRDMA device.
 *
 * It behaves as the Linux driver and rdma-core's provider do, including their
 * habits: request fields that a command does not define hold garbage, slots
 * of rings keep the bytes of earlier entries, user doorbells go to the pages
 * that the driver crosses.  Everything that can wait does so with a bound on
 * virtual time (qerdma_wait()), and fails the test beyond it.
 *
 * Split in three: erdma.c (bring-up, interrupts, command queue),
 * erdma-obj.c (commands that make objects), erdma-wqe.c (work requests and
 * completions).
 */

#ifndef LIBQOS_ERDMA_H
#define LIBQOS_ERDMA_H

#include "libqos/libqos-pc.h"
#include "hw/erdma/erdma-abi.h"
#include "qobject/qdict.h"

#define QERDMA_MAX_PAGES        16
#define QERDMA_GARBAGE          0xa5

/* How the driver of one Linux version talks to the device */
typedef enum QErdmaFlavor {
    QERDMA_LINUX_7_3,           /* 128-byte commands */
    QERDMA_LINUX_6_1,           /* 64-byte commands, doorbell records inline */
} QErdmaFlavor;

typedef struct QErdmaOptions {
    QErdmaFlavor flavor;
    unsigned n_ceqs;            /* 0: 2 */
    uint32_t cmd_slots;         /* outstanding commands; 0: 128 */
    uint32_t cmdq_eq_depth;     /* 0: 128 */
    uint32_t aeq_depth;         /* 0: 4096 */
    uint8_t ceq_log2;           /* 0: 12 */
    bool is_polled;             /* never arm the command CQ */
} QErdmaOptions;

typedef struct QErdmaEq {
    uint64_t addr;
    uint32_t depth;
    uint32_t ci;
    uint64_t dbrec;
    unsigned vector;
    uint64_t db;                /* offset of its doorbell in BAR 0 */
} QErdmaEq;

/* Queue memory as the device sees it; pages in any order */
typedef struct QErdmaBuf {
    uint64_t pages[QERDMA_MAX_PAGES];
    unsigned n_pages;
    unsigned page_shift;
    uint32_t offset;            /* of the queue in the first page */
    uint64_t table;             /* guest address of the LE64 list, or 0 */
} QErdmaBuf;

/* User context: pages of ALLOC_DB, named as in the response */
typedef struct QErdmaCtx {
    uint16_t sdb;
    uint16_t rdb;
    uint16_t cdb;
} QErdmaCtx;

typedef struct QErdma {
    QOSState *qs;
    QTestState *qts;
    QPCIDevice *pci;
    QPCIBar bar;
    uint64_t bar_size;
    unsigned n_vectors;
    uint64_t irq_addr;          /* one word per vector, MSI-X writes here */
    QErdmaOptions opt;
    uint32_t ip;                /* of the NIC it belongs to */

    /* command queue */
    unsigned cmd_wqebbs;
    uint32_t cmd_depth;         /* WQEBBs */
    uint64_t cmd_sq;
    uint64_t cmd_cq;
    uint64_t cmd_sq_dbrec;
    uint64_t cmd_cq_dbrec;
    uint16_t cmd_pi;
    uint32_t cmd_ci;            /* of the command CQ, in CQEs */
    uint8_t cmd_sn;
    bool has_events;            /* the command CQ was armed */
    GQueue done;                /* QErdmaDone, seen by vector 0's handler */
    GQueue aeqes;               /* uint64_t, seen by vector 0's handler */
    QErdmaEq cmd_eq;
    QErdmaEq aeq;
    QErdmaEq ceqs[ERDMA_MAX_VECTORS];

    uint64_t cap0;              /* QUERY_DEVICE */
    uint64_t cap1;
    uint32_t local_key;

    uint32_t next_qpn;
    uint32_t next_cqn;
    uint32_t next_mr;
    uint32_t next_pdn;
} QErdma;

/* A command that completed */
typedef struct QErdmaDone {
    uint8_t status;
    uint32_t index;             /* WQEBB index, as reported */
    uint64_t resp[2];
} QErdmaDone;

/* One command; fields are set by ABI offset */
typedef struct QErdmaCmd {
    uint8_t raw[ERDMA_CMD_MAX_SIZE];
    uint8_t sub_mod;
    uint8_t opcode;
} QErdmaCmd;

typedef struct QErdmaCq {
    QErdma *dev;
    const QErdmaCtx *ctx;       /* NULL: a kernel CQ */
    uint32_t cqn;
    uint32_t eqn;
    uint8_t log2;
    QErdmaBuf buf;
    uint64_t dbrec;
    uint32_t ci;                /* free-running */
    uint8_t arm_count;
    uint8_t sn;
} QErdmaCq;

typedef struct QErdmaQp {
    QErdma *dev;
    const QErdmaCtx *ctx;       /* NULL: a kernel QP */
    uint32_t qpn;
    uint32_t pdn;
    uint32_t cookie;
    QErdmaCq *scq;
    QErdmaCq *rcq;
    uint8_t sq_log2;            /* WQEBBs */
    uint8_t rq_log2;            /* RQEs */
    QErdmaBuf sq;
    QErdmaBuf rq;
    uint64_t sq_dbrec;
    uint64_t rq_dbrec;
    uint16_t sq_pi;
    uint16_t rq_pi;
} QErdmaQp;

typedef struct QErdmaMr {
    QErdma *dev;
    uint32_t index;
    uint32_t key;               /* index << 8 | key byte */
    uint32_t pdn;
    uint64_t addr;              /* I/O address of the first byte */
    uint64_t len;
    uint64_t mem;               /* guest memory, when it is contiguous */
} QErdmaMr;

typedef struct QErdmaSge {
    uint64_t addr;
    uint32_t len;
    uint32_t key;
} QErdmaSge;

/* A work request for the send queue */
typedef struct QErdmaSend {
    uint8_t opcode;             /* ERDMA_OP_* */
    bool is_silent;             /* no completion on success */
    bool is_solicited;
    bool is_fenced;
    bool is_inline;
    unsigned n_sges;
    QErdmaSge sges[ERDMA_MAX_SEND_SGE];
    const void *data;           /* inline */
    unsigned data_len;
    uint32_t imm;               /* number */
    uint32_t inv_key;           /* send or read with invalidate, local inv */
    uint64_t raddr;
    uint32_t rkey;
    uint64_t swap_add;
    uint64_t compare;
    /* register MR */
    uint32_t reg_key;
    uint64_t reg_start;
    uint32_t reg_len;
    uint8_t reg_access;
    unsigned reg_n_pages;
    uint64_t reg_pages[4];
    bool reg_use_table;
} QErdmaSend;

/* A completion, decoded; @imm_raw are the four bytes at 12 */
typedef struct QErdmaWc {
    uint8_t status;
    uint8_t qtype;
    uint8_t opcode;
    uint32_t index;
    uint32_t qpn;
    uint8_t imm_raw[4];
    uint32_t byte_len;
} QErdmaWc;

/* erdma.c */

/*
 * The machine of most tests: NIC i (virtio-net) and HCA i, which shares it,
 * on hub 0, for i = 0 and, if there are two, 1.
 */
#define QERDMA_NIC_SLOT(i)  (4 + 2 * (i))
#define QERDMA_SLOT(i)      (5 + 2 * (i))
#define QERDMA_MAC(i)       { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 + (i) }
#define QERDMA_IP(i)        (0x0a000001 + (i))

/* Boots a PC with @fmt appended to the common arguments. */
QOSState *qerdma_boot(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* Finds the device in slot @slot; enables it and its MSI-X vectors. */
QErdma *qerdma_new(QOSState *qs, unsigned slot);
void qerdma_free(QErdma *d);
/* A machine with one NIC and HCA; @options go to -device erdma. */
QErdma *qerdma_boot_one(const char *options);
/*
 * A machine with two.  @raw, if not NULL, gets a datagram socket on the same
 * hub, frame by frame.
 */
void qerdma_boot_two(QErdma *d[2], const char *options, int *raw);
/*
 * Lets the guest send a packet from each NIC to the other, as the TCP
 * handshake of a connection does; the devices then know their next hops.
 */
void qerdma_meet(QErdma *d[2]);
/* Frees the devices and ends the machine of the first. */
void qerdma_quit(QErdma *d0, QErdma *d1);

/*
 * A property of the device, whose id is rdma<i>: QEMU's whole answer, of which
 * the member "return" is the property.  The caller unrefs it.
 */
QDict *qerdma_qom_get(QErdma *d, const char *property);
/* A counter of the device's "stats" or "objects" */
uint64_t qerdma_stat(QErdma *d, const char *name);
uint64_t qerdma_objects(QErdma *d, const char *name);

/* Zeroed, page-aligned guest memory */
uint64_t qerdma_alloc(QErdma *d, size_t size);
uint32_t qerdma_read32(QErdma *d, uint32_t reg);
void qerdma_write32(QErdma *d, uint32_t reg, uint32_t val);
void qerdma_write64(QErdma *d, uint32_t reg, uint64_t val);

/*
 * Steps virtual time, in growing steps, until @cond(@opaque) holds or
 * @max_ns have passed.  Returns whether it held.
 */
bool qerdma_wait(QErdma *d, bool (*cond)(void *opaque), void *opaque,
                 int64_t max_ns);
/* Lets everything that is under way happen, without waiting for timers. */
void qerdma_settle(QErdma *d);

/* Was vector @vector raised since the last call? */
bool qerdma_irq(QErdma *d, unsigned vector);
/* Waits for it. */
bool qerdma_wait_irq(QErdma *d, unsigned vector);

/* Steps 5 to 8 of the driver's bring-up: queues and their registers. */
void qerdma_setup_queues(QErdma *d, const QErdmaOptions *opt);
/* Step 9; returns whether the device reports "init done". */
bool qerdma_init(QErdma *d);
/* Everything up to QUERY_DEVICE, all successful. @opt may be NULL. */
void qerdma_start(QErdma *d, const QErdmaOptions *opt);
void qerdma_reset(QErdma *d);

/* A command whose every field is garbage. */
void qerdma_cmd_init(QErdmaCmd *cmd, uint8_t sub_mod, uint8_t opcode);
void qerdma_cmd_set16(QErdmaCmd *cmd, unsigned off, uint16_t val);
void qerdma_cmd_set32(QErdmaCmd *cmd, unsigned off, uint32_t val);
void qerdma_cmd_set64(QErdmaCmd *cmd, unsigned off, uint64_t val);
/* Copies it into the ring, without a doorbell; returns its slot. */
uint16_t qerdma_cmd_queue(QErdma *d, QErdmaCmd *cmd);
void qerdma_cmd_ring_db(QErdma *d);
/* Takes one command CQE from memory if there is one. */
bool qerdma_cmd_poll(QErdma *d, QErdmaDone *done);
/* Rings the command CQ's arm doorbell with the present CI. */
void qerdma_cmd_arm(QErdma *d);
/*
 * The driver's vector-0 handler: moves command CQEs to @d->done and AEQEs to
 * @d->aeqes, re-arms, rings both EQ doorbells.  Returns the number of CQEs.
 */
unsigned qerdma_vector0(QErdma *d);
/* Waits for the next completion, by interrupt once events are on. */
void qerdma_cmd_wait(QErdma *d, QErdmaDone *done);
/* Submits, waits as the driver would, returns the status. */
uint8_t qerdma_cmd_exec(QErdma *d, QErdmaCmd *cmd, uint64_t resp[2]);

/* One entry of an event queue: its first quadword.  Advances CI. */
bool qerdma_eq_poll(QErdma *d, QErdmaEq *eq, uint64_t *entry);
/* Rings its doorbell, armed. */
void qerdma_eq_db(QErdma *d, QErdmaEq *eq);
/* Waits for an AEQE and checks it. */
void qerdma_expect_aeqe(QErdma *d, uint8_t type, uint32_t id);
void qerdma_expect_no_aeqe(QErdma *d);

/* erdma-obj.c */

uint64_t qerdma_buf_addr(const QErdmaBuf *buf, uint64_t off);
/* Contiguous kernel memory */
void qerdma_buf_init_kernel(QErdma *d, QErdmaBuf *buf, size_t size,
                            unsigned page_shift);
/*
 * User memory of 4 KiB pages in falling order, starting @offset bytes into
 * the first.
 */
void qerdma_buf_init_user(QErdma *d, QErdmaBuf *buf, size_t size,
                          uint32_t offset);

void qerdma_create_eq_cmd(QErdma *d, QErdmaCmd *cmd, unsigned eqn,
                          uint8_t log2);
uint8_t qerdma_create_eq(QErdma *d, unsigned eqn, uint8_t log2);
uint8_t qerdma_destroy_eq(QErdma *d, unsigned eqn);
uint8_t qerdma_query_device(QErdma *d);

uint8_t qerdma_alloc_db(QErdma *d, QErdmaCtx *ctx);
/* The pages of a process: its own, in Linux 6.1 the static ones */
void qerdma_open_ctx(QErdma *d, QErdmaCtx *ctx);
uint8_t qerdma_free_db(QErdma *d, const QErdmaCtx *ctx);

/* Fills in @cq and the request; memory is allocated, nothing is sent. */
void qerdma_create_cq_cmd(QErdma *d, QErdmaCq *cq, QErdmaCmd *cmd);
/* @cq->ctx, ->log2 and ->eqn are the caller's; 0 means 6 and 1. */
uint8_t qerdma_create_cq(QErdma *d, QErdmaCq *cq);
uint8_t qerdma_destroy_cq(QErdmaCq *cq);

void qerdma_create_qp_cmd(QErdma *d, QErdmaQp *qp, QErdmaCmd *cmd);
/*
 * @qp->ctx, ->scq, ->rcq, ->pdn and the depths are the caller's; depths of 0
 * mean 6.  Memory that is set (n_pages != 0) is used as it is.
 */
uint8_t qerdma_create_qp(QErdma *d, QErdmaQp *qp);
uint8_t qerdma_modify_qp(QErdmaQp *qp, uint8_t state);
void qerdma_rts_cmd(QErdmaCmd *cmd, const QErdmaQp *qp, const QErdmaQp *peer);
/* Passive end first, as the connection manager does it */
void qerdma_connect(QErdmaQp *active, QErdmaQp *passive);
uint8_t qerdma_destroy_qp(QErdmaQp *qp);
uint8_t qerdma_reflush(QErdmaQp *qp, uint16_t sq_pi, uint16_t rq_pi);

/* Two connected QPs, each with its own CQ for both queues */
typedef struct QErdmaPair {
    QErdmaCtx ctx[2];
    QErdmaCq cq[2];
    QErdmaQp qp[2];
} QErdmaPair;
/*
 * @d0 and @d1 may be the same.  User QPs get a context of their own.  Depths
 * that the caller set are used.
 */
void qerdma_pair_create(QErdmaPair *p, QErdma *d0, QErdma *d1, uint32_t pdn,
                        bool is_user);
void qerdma_pair_init(QErdmaPair *p, QErdma *d0, QErdma *d1, uint32_t pdn,
                      bool is_user);

/* The general form; see REG_MR.  Unused arguments are 0. */
typedef struct QErdmaRegMr {
    uint8_t type;
    uint8_t access;
    uint8_t level;
    uint8_t page_shift;         /* 0: 12 */
    uint8_t table_shift;        /* levels 2 and 3; 0: 12 */
    uint64_t start;
    uint64_t len;
    uint64_t n_pages;
    const uint64_t *pages;      /* n_pages of them */
    bool is_version_1;
} QErdmaRegMr;
void qerdma_reg_mr_cmd(QErdma *d, QErdmaMr *mr, const QErdmaRegMr *reg,
                       QErdmaCmd *cmd);
uint8_t qerdma_reg_mr(QErdma *d, QErdmaMr *mr, const QErdmaRegMr *reg);
/* A region over fresh memory, at most 4 pages or a level-1 table. */
void qerdma_reg_simple(QErdma *d, QErdmaMr *mr, uint32_t pdn, size_t len,
                       uint8_t access);
uint8_t qerdma_dereg_mr(QErdmaMr *mr);
#define QERDMA_ACC_ALL  (ERDMA_MR_ACC_RA | ERDMA_MR_ACC_LR | \
                         ERDMA_MR_ACC_LW | ERDMA_MR_ACC_RR | ERDMA_MR_ACC_RW)

/* erdma-wqe.c */

/* Encodes @wr at the QP's PI; returns the number of WQEBBs. */
unsigned qerdma_build_sqe(const QErdmaQp *qp, const QErdmaSend *wr,
                          uint8_t raw[ERDMA_CMD_MAX_SIZE]);
/* Puts @n WQEBBs into the ring and moves PI; no doorbell. */
void qerdma_put_sqe(QErdmaQp *qp, const uint8_t *raw, unsigned n);
void qerdma_sq_db(QErdmaQp *qp);
/* All three; returns the index of the first WQEBB. */
uint16_t qerdma_post_send(QErdmaQp *qp, const QErdmaSend *wr);
/* Without a doorbell */
uint16_t qerdma_queue_send(QErdmaQp *qp, const QErdmaSend *wr);
/* Length 0: no SGE, stale key.  Returns the position. */
uint16_t qerdma_post_recv(QErdmaQp *qp, uint64_t addr, uint32_t len,
                          uint32_t key);
void qerdma_rq_db(QErdmaQp *qp, uint16_t garbage);

bool qerdma_poll_cq(QErdmaCq *cq, QErdmaWc *wc);
/* Waits up to some seconds of virtual time; fails the test beyond. */
void qerdma_wait_cqe(QErdmaCq *cq, QErdmaWc *wc);
void qerdma_expect_no_cqe(QErdmaCq *cq);
/* Waits for a completion and checks the fields that every one has. */
void qerdma_expect_send(QErdmaQp *qp, uint16_t index, uint8_t opcode,
                        uint8_t status);
void qerdma_expect_recv(QErdmaQp *qp, uint16_t position, uint8_t opcode,
                        uint8_t status, uint32_t byte_len, QErdmaWc *wc);
uint64_t qerdma_cq_db_payload(QErdmaCq *cq, bool is_solicited);
void qerdma_arm_cq(QErdmaCq *cq, bool is_solicited);

/* Pattern of @seed, the same on both sides of a test */
void qerdma_fill(QErdma *d, uint64_t addr, size_t len, uint32_t seed);
void qerdma_pattern(uint8_t *buf, size_t len, uint32_t seed);
/* Does guest memory at @addr hold it? */
void qerdma_check(QErdma *d, uint64_t addr, size_t len, uint32_t seed);

#endif /* LIBQOS_ERDMA_H */
