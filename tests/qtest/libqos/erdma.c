/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libqos driver for the eRDMA device: bring-up, interrupts, command queue.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "erdma.h"
#include "erdma-nic.h"

#define QERDMA_CMD_NS   (2ll * 1000 * 1000 * 1000)
#define QERDMA_IRQ_DATA 0x1ed00000u

QOSState *qerdma_boot(const char *fmt, ...)
{
    g_autofree char *args = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return qtest_pc_boot("-machine pc -m 128 -nodefaults %s", args);
}

/*
 * MSI-X messages are plain memory writes: point each vector at a word of
 * guest memory, so that "raised since the last look" can be read back.
 */
static void qerdma_setup_msix(QErdma *d)
{
    QPCIDevice *pci = d->pci;
    uint64_t entry = pci->msix_table_off;
    unsigned i;

    qpci_msix_enable(pci);
    entry = pci->msix_table_off;
    d->n_vectors = qpci_msix_table_size(pci);
    g_assert_cmpuint(d->n_vectors, <=, ERDMA_MAX_VECTORS);
    d->irq_addr = qerdma_alloc(d, ERDMA_MAX_VECTORS * 4);

    for (i = 0; i < d->n_vectors; i++, entry += PCI_MSIX_ENTRY_SIZE) {
        uint64_t addr = d->irq_addr + i * 4;

        qpci_io_writel(pci, pci->msix_table_bar,
                       entry + PCI_MSIX_ENTRY_LOWER_ADDR, addr);
        qpci_io_writel(pci, pci->msix_table_bar,
                       entry + PCI_MSIX_ENTRY_UPPER_ADDR, addr >> 32);
        qpci_io_writel(pci, pci->msix_table_bar,
                       entry + PCI_MSIX_ENTRY_DATA, QERDMA_IRQ_DATA + i);
        qpci_io_writel(pci, pci->msix_table_bar,
                       entry + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    }
}

QErdma *qerdma_new(QOSState *qs, unsigned slot)
{
    QErdma *d = g_new0(QErdma, 1);

    d->qs = qs;
    d->qts = qs->qts;
    d->pci = qpci_device_find(qs->pcibus, QPCI_DEVFN(slot, 0));
    g_assert_nonnull(d->pci);
    g_assert_cmphex(qpci_config_readw(d->pci, PCI_VENDOR_ID), ==,
                    ERDMA_PCI_VENDOR_ID);
    g_assert_cmphex(qpci_config_readw(d->pci, PCI_DEVICE_ID), ==,
                    ERDMA_PCI_DEVICE_ID);
    qpci_device_enable(d->pci);
    d->bar = qpci_iomap(d->pci, ERDMA_BAR_REGS, &d->bar_size);
    qerdma_setup_msix(d);
    d->ip = QERDMA_IP((slot - QERDMA_SLOT(0)) / 2);
    g_queue_init(&d->done);
    g_queue_init(&d->aeqes);
    d->next_qpn = d->next_cqn = d->next_mr = d->next_pdn = 1;
    return d;
}

void qerdma_free(QErdma *d)
{
    g_queue_clear_full(&d->done, g_free);
    g_queue_clear_full(&d->aeqes, g_free);
    g_free(d->pci);
    g_free(d);
}

static char *qerdma_nic_args(unsigned i, const char *options)
{
    static const uint8_t mac[2][6] = { QERDMA_MAC(0), QERDMA_MAC(1) };

    return g_strdup_printf("-netdev hubport,id=port%u,hubid=0 "
                           "-device virtio-net-pci,id=nic%u,netdev=port%u,"
                           "addr=%x,romfile=,"
                           "mac=%02x:%02x:%02x:%02x:%02x:%02x "
                           "-device erdma,id=rdma%u,eni=nic%u,addr=%x%s%s ",
                           i, i, i, QERDMA_NIC_SLOT(i),
                           mac[i][0], mac[i][1], mac[i][2], mac[i][3],
                           mac[i][4], mac[i][5],
                           i, i, QERDMA_SLOT(i), options ? "," : "",
                           options ?: "");
}

QErdma *qerdma_boot_one(const char *options)
{
    g_autofree char *nic = qerdma_nic_args(0, options);

    return qerdma_new(qerdma_boot("%s", nic), QERDMA_SLOT(0));
}

void qerdma_boot_two(QErdma *d[2], const char *options, int *raw)
{
    g_autofree char *nic0 = qerdma_nic_args(0, options);
    g_autofree char *nic1 = qerdma_nic_args(1, options);
    g_autofree char *port = NULL;
    QOSState *qs;
    int fds[2];

    if (raw) {
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), ==, 0);
        g_assert_cmpint(fcntl(fds[0], F_SETFD, FD_CLOEXEC), ==, 0);
        g_assert_cmpint(fcntl(fds[0], F_SETFL, O_NONBLOCK), ==, 0);
        port = g_strdup_printf("-netdev dgram,id=raw,local.type=fd,"
                               "local.str=%d -netdev hubport,id=port2,"
                               "hubid=0,netdev=raw ", fds[1]);
        *raw = fds[0];
    }
    qs = qerdma_boot("%s%s%s", port ?: "", nic0, nic1);
    if (raw) {
        close(fds[1]);
    }
    d[0] = qerdma_new(qs, QERDMA_SLOT(0));
    d[1] = qerdma_new(qs, QERDMA_SLOT(1));
}

void qerdma_meet(QErdma *d[2])
{
    static const uint8_t mac[2][6] = { QERDMA_MAC(0), QERDMA_MAC(1) };
    uint8_t frame[QERDMA_FRAME_MAX];
    QErdmaNic *nic[2];
    unsigned i;

    /* The hub takes nothing while nobody behind it can. */
    for (i = 0; i < 2; i++) {
        nic[i] = qerdma_nic_new(d[0]->qs, QERDMA_NIC_SLOT(i));
    }
    for (i = 0; i < 2; i++) {
        QErdmaUdp udp = {
            .src_mac = mac[i], .dst_mac = mac[!i],
            .src_ip = d[i]->ip, .dst_ip = d[!i]->ip,
            .src_port = 9, .dst_port = 9, .data = "hi", .len = 2,
        };

        qerdma_nic_send(nic[i], frame, qerdma_udp_frame(frame, &udp));
    }
    for (i = 0; i < 2; i++) {
        qerdma_nic_free(nic[i]);
    }
}

void qerdma_quit(QErdma *d0, QErdma *d1)
{
    QOSState *qs = d0->qs;

    qerdma_free(d0);
    if (d1) {
        qerdma_free(d1);
    }
    qtest_shutdown(qs);
}

QDict *qerdma_qom_get(QErdma *d, const char *property)
{
    g_autofree char *path = g_strdup_printf("/machine/peripheral/rdma%u",
                                            d->ip - QERDMA_IP(0));
    QDict *rsp = qtest_qmp(d->qts, "{ 'execute': 'qom-get', 'arguments': "
                           "{ 'path': %s, 'property': %s } }", path,
                           property);

    g_assert_true(qdict_haskey(rsp, "return"));
    return rsp;
}

static uint64_t qerdma_counter(QErdma *d, const char *property,
                               const char *name)
{
    QDict *rsp = qerdma_qom_get(d, property);
    QDict *dict = qdict_get_qdict(rsp, "return");
    uint64_t val;

    g_assert_nonnull(dict);
    g_assert_true(qdict_haskey(dict, name));
    val = qdict_get_int(dict, name);
    qobject_unref(rsp);
    return val;
}

uint64_t qerdma_stat(QErdma *d, const char *name)
{
    return qerdma_counter(d, "stats", name);
}

uint64_t qerdma_objects(QErdma *d, const char *name)
{
    return qerdma_counter(d, "objects", name);
}

uint64_t qerdma_alloc(QErdma *d, size_t size)
{
    uint64_t addr = guest_alloc(&d->qs->alloc, size);

    g_assert_cmphex(addr, !=, 0);
    qtest_memset(d->qts, addr, 0, size);
    return addr;
}

uint32_t qerdma_read32(QErdma *d, uint32_t reg)
{
    return qtest_readl(d->qts, d->bar.addr + reg);
}

void qerdma_write32(QErdma *d, uint32_t reg, uint32_t val)
{
    qtest_writel(d->qts, d->bar.addr + reg, val);
}

void qerdma_write64(QErdma *d, uint32_t reg, uint64_t val)
{
    qtest_writeq(d->qts, d->bar.addr + reg, val);
}

bool qerdma_wait(QErdma *d, bool (*cond)(void *opaque), void *opaque,
                 int64_t max_ns)
{
    int64_t step = 1000;
    int64_t passed;
    int i;

    /* What needs no timer: bottom halves run between two requests. */
    for (i = 0; i < 8; i++) {
        if (cond(opaque)) {
            return true;
        }
    }
    for (passed = 0; passed < max_ns; passed += step) {
        qtest_clock_step(d->qts, step);
        if (cond(opaque)) {
            return true;
        }
        step = MIN(step + step / 4, 50 * 1000 * 1000);
    }
    return false;
}

void qerdma_settle(QErdma *d)
{
    int i;

    for (i = 0; i < 24; i++) {
        qerdma_read32(d, A_ERDMA_VERSION);
        qtest_clock_step(d->qts, 50 * 1000);
    }
}

bool qerdma_irq(QErdma *d, unsigned vector)
{
    uint64_t addr = d->irq_addr + vector * 4;
    uint32_t val = qtest_readl(d->qts, addr);

    if (!val) {
        return false;
    }
    g_assert_cmphex(val, ==, QERDMA_IRQ_DATA + vector);
    qtest_writel(d->qts, addr, 0);
    return true;
}

typedef struct QErdmaIrqWait {
    QErdma *d;
    unsigned vector;
} QErdmaIrqWait;

static bool qerdma_irq_cond(void *opaque)
{
    QErdmaIrqWait *w = opaque;

    return qerdma_irq(w->d, w->vector);
}

bool qerdma_wait_irq(QErdma *d, unsigned vector)
{
    QErdmaIrqWait w = { d, vector };

    return qerdma_wait(d, qerdma_irq_cond, &w, QERDMA_CMD_NS);
}

/* Memory of one queue of the device, and where its doorbell record is */
static uint64_t qerdma_alloc_queue(QErdma *d, size_t size, uint64_t *dbrec)
{
    bool is_inline = d->opt.flavor == QERDMA_LINUX_6_1;
    uint64_t addr = qerdma_alloc(d, size + 8);

    *dbrec = is_inline ? addr + size : qerdma_alloc(d, 8);
    return addr;
}

void qerdma_setup_queues(QErdma *d, const QErdmaOptions *opt)
{
    QErdmaOptions *o = &d->opt;

    *o = opt ? *opt : (QErdmaOptions) { 0 };
    o->n_ceqs = o->n_ceqs ?: 2;
    o->cmd_slots = o->cmd_slots ?: 128;
    o->cmdq_eq_depth = o->cmdq_eq_depth ?: 128;
    o->aeq_depth = o->aeq_depth ?: 4096;
    o->ceq_log2 = o->ceq_log2 ?: 12;

    d->cmd_wqebbs = o->flavor == QERDMA_LINUX_6_1 ? 2 : 4;
    d->cmd_depth = o->cmd_slots * d->cmd_wqebbs;
    d->cmd_pi = 0;
    d->cmd_ci = 0;
    d->cmd_sn = 0;
    d->has_events = false;
    g_queue_clear_full(&d->done, g_free);
    g_queue_clear_full(&d->aeqes, g_free);

    memset(&d->aeq, 0, sizeof(d->aeq));
    d->aeq.depth = o->aeq_depth;
    d->aeq.db = A_ERDMA_AEQ_DB;
    d->aeq.addr = qerdma_alloc_queue(d, d->aeq.depth * ERDMA_EQE_SIZE,
                                     &d->aeq.dbrec);
    qerdma_write32(d, A_ERDMA_AEQ_ADDR_H, d->aeq.addr >> 32);
    qerdma_write32(d, A_ERDMA_AEQ_ADDR_L, d->aeq.addr);
    qerdma_write32(d, A_ERDMA_AEQ_DEPTH, d->aeq.depth);
    qerdma_write64(d, A_ERDMA_AEQ_DB_RECORD, d->aeq.dbrec);

    d->cmd_sq = qerdma_alloc_queue(d, d->cmd_depth * ERDMA_WQEBB_SIZE,
                                   &d->cmd_sq_dbrec);
    qerdma_write32(d, A_ERDMA_CMDQ_SQ_ADDR_H, d->cmd_sq >> 32);
    qerdma_write32(d, A_ERDMA_CMDQ_SQ_ADDR_L, d->cmd_sq);
    qerdma_write32(d, A_ERDMA_CMDQ_DEPTH, d->cmd_depth);
    qerdma_write64(d, A_ERDMA_CMDQ_SQ_DB_RECORD, d->cmd_sq_dbrec);

    d->cmd_cq = qerdma_alloc_queue(d, d->cmd_depth * ERDMA_CQE_SIZE,
                                   &d->cmd_cq_dbrec);
    qerdma_write32(d, A_ERDMA_CMDQ_CQ_ADDR_H, d->cmd_cq >> 32);
    qerdma_write32(d, A_ERDMA_CMDQ_CQ_ADDR_L, d->cmd_cq);
    qerdma_write64(d, A_ERDMA_CMDQ_CQ_DB_RECORD, d->cmd_cq_dbrec);

    memset(&d->cmd_eq, 0, sizeof(d->cmd_eq));
    d->cmd_eq.depth = o->cmdq_eq_depth;
    d->cmd_eq.db = A_ERDMA_CEQ_DB;
    d->cmd_eq.addr = qerdma_alloc_queue(d, d->cmd_eq.depth * ERDMA_EQE_SIZE,
                                        &d->cmd_eq.dbrec);
    qerdma_write32(d, A_ERDMA_CMDQ_EQ_ADDR_H, d->cmd_eq.addr >> 32);
    qerdma_write32(d, A_ERDMA_CMDQ_EQ_ADDR_L, d->cmd_eq.addr);
    qerdma_write32(d, A_ERDMA_CMDQ_EQ_DEPTH, d->cmd_eq.depth);
    qerdma_write64(d, A_ERDMA_CMDQ_EQ_DB_RECORD, d->cmd_eq.dbrec);
}

bool qerdma_init(QErdma *d)
{
    unsigned i;

    qerdma_write32(d, A_ERDMA_DEV_CTRL, R_ERDMA_DEV_CTRL_INIT_MASK);
    for (i = 0; i < 50; i++) {
        if (qerdma_read32(d, A_ERDMA_DEV_STATUS) &
            R_ERDMA_DEV_STATUS_INIT_DONE_MASK) {
            return true;
        }
    }
    return false;
}

void qerdma_start(QErdma *d, const QErdmaOptions *opt)
{
    unsigned i;

    g_assert_cmphex(qerdma_read32(d, A_ERDMA_VERSION), !=, 0);
    qerdma_setup_queues(d, opt);
    g_assert_true(qerdma_init(d));
    for (i = 1; i <= d->opt.n_ceqs; i++) {
        g_assert_cmpint(qerdma_create_eq(d, i, d->opt.ceq_log2), ==, 0);
    }
    g_assert_false(qerdma_irq(d, 0));
    if (!d->opt.is_polled) {
        d->has_events = true;
        qerdma_cmd_arm(d);
    }
    g_assert_cmpint(qerdma_query_device(d), ==, 0);
}

void qerdma_reset(QErdma *d)
{
    qerdma_write32(d, A_ERDMA_DEV_CTRL, R_ERDMA_DEV_CTRL_RESET_MASK);
}

void qerdma_cmd_init(QErdmaCmd *cmd, uint8_t sub_mod, uint8_t opcode)
{
    memset(cmd->raw, QERDMA_GARBAGE, sizeof(cmd->raw));
    cmd->sub_mod = sub_mod;
    cmd->opcode = opcode;
}

void qerdma_cmd_set16(QErdmaCmd *cmd, unsigned off, uint16_t val)
{
    stw_le_p(cmd->raw + off, val);
}

void qerdma_cmd_set32(QErdmaCmd *cmd, unsigned off, uint32_t val)
{
    stl_le_p(cmd->raw + off, val);
}

void qerdma_cmd_set64(QErdmaCmd *cmd, unsigned off, uint64_t val)
{
    stq_le_p(cmd->raw + off, val);
}

uint16_t qerdma_cmd_queue(QErdma *d, QErdmaCmd *cmd)
{
    uint32_t slot = d->cmd_pi & (d->cmd_depth - 1);
    uint16_t index = d->cmd_pi;
    uint64_t hdr = 0;

    d->cmd_pi += d->cmd_wqebbs;
    hdr = FIELD_DP64(hdr, ERDMA_CMD_HDR, PI, d->cmd_pi);
    hdr = FIELD_DP64(hdr, ERDMA_CMD_HDR, OPCODE, cmd->opcode);
    hdr = FIELD_DP64(hdr, ERDMA_CMD_HDR, SUB_MOD, cmd->sub_mod);
    hdr = FIELD_DP64(hdr, ERDMA_CMD_HDR, CTX_COOKIE, slot / d->cmd_wqebbs);
    hdr = FIELD_DP64(hdr, ERDMA_CMD_HDR, WQEBB_CNT, d->cmd_wqebbs - 1);
    stq_le_p(cmd->raw, hdr);
    qtest_memwrite(d->qts, d->cmd_sq + slot * ERDMA_WQEBB_SIZE, cmd->raw,
                   d->cmd_wqebbs * ERDMA_WQEBB_SIZE);
    return index;
}

void qerdma_cmd_ring_db(QErdma *d)
{
    qtest_writeq(d->qts, d->cmd_sq_dbrec, d->cmd_pi);
    qerdma_write64(d, A_ERDMA_CMDQ_SQ_DB, d->cmd_pi);
}

bool qerdma_cmd_poll(QErdma *d, QErdmaDone *done)
{
    uint32_t mask = d->cmd_depth - 1;
    uint64_t addr = d->cmd_cq + (d->cmd_ci & mask) * ERDMA_CQE_SIZE;
    uint8_t raw[ERDMA_CQE_SIZE];
    uint32_t hdr;

    qtest_memread(d->qts, addr, raw, sizeof(raw));
    hdr = ldl_be_p(raw);
    if (FIELD_EX32(hdr, ERDMA_CQE_HDR, OWNER) ==
        !!(d->cmd_ci & d->cmd_depth)) {
        return false;
    }
    d->cmd_ci++;
    g_assert_cmpint(FIELD_EX32(hdr, ERDMA_CQE_HDR, QTYPE), ==,
                    ERDMA_CQE_QTYPE_CMDQ);
    done->status = FIELD_EX32(hdr, ERDMA_CQE_HDR, SYNDROME);
    done->index = ldl_be_p(raw + A_ERDMA_CMD_CQE_INDEX);
    done->resp[0] = (uint32_t)ldl_be_p(raw + A_ERDMA_CMD_CQE_RESP0_L) |
        (uint64_t)ldl_be_p(raw + A_ERDMA_CMD_CQE_RESP0_H) << 32;
    done->resp[1] = (uint32_t)ldl_be_p(raw + A_ERDMA_CMD_CQE_RESP1_L) |
        (uint64_t)ldl_be_p(raw + A_ERDMA_CMD_CQE_RESP1_H) << 32;
    return true;
}

void qerdma_cmd_arm(QErdma *d)
{
    uint64_t db = 0;

    db = FIELD_DP64(db, ERDMA_DB_CQ, IDX, d->cmd_sn);
    db = FIELD_DP64(db, ERDMA_DB_CQ, ARM, 1);
    db = FIELD_DP64(db, ERDMA_DB_CQ, CMDSN, d->cmd_sn & 3);
    db = FIELD_DP64(db, ERDMA_DB_CQ, CI, d->cmd_ci & 0xffffff);
    qtest_writeq(d->qts, d->cmd_cq_dbrec, db);
    qerdma_write64(d, A_ERDMA_CMDQ_CQ_DB, db);
}

unsigned qerdma_vector0(QErdma *d)
{
    QErdmaDone done;
    uint64_t entry;
    unsigned n_eqes = 0;
    unsigned n_cqes = 0;

    while (qerdma_eq_poll(d, &d->cmd_eq, &entry)) {
        n_eqes++;
    }
    if (n_eqes) {
        d->cmd_sn++;
        while (qerdma_cmd_poll(d, &done)) {
            g_queue_push_tail(&d->done, g_memdup2(&done, sizeof(done)));
            n_cqes++;
        }
        /* 6.1 relies on every event having a completion behind it */
        if (d->opt.flavor != QERDMA_LINUX_6_1 || n_cqes) {
            qerdma_cmd_arm(d);
        }
    }
    qerdma_eq_db(d, &d->cmd_eq);

    for (n_eqes = 0; n_eqes < 16 && qerdma_eq_poll(d, &d->aeq, &entry);
         n_eqes++) {
        g_queue_push_tail(&d->aeqes, g_memdup2(&entry, sizeof(entry)));
    }
    qerdma_eq_db(d, &d->aeq);
    return n_cqes;
}

typedef struct QErdmaDoneWait {
    QErdma *d;
    QErdmaDone *done;
} QErdmaDoneWait;

static bool qerdma_done_cond(void *opaque)
{
    QErdmaDoneWait *w = opaque;
    QErdmaDone *done;

    if (!w->d->has_events) {
        return qerdma_cmd_poll(w->d, w->done);
    }
    if (g_queue_is_empty(&w->d->done) && qerdma_irq(w->d, 0)) {
        qerdma_vector0(w->d);
    }
    done = g_queue_pop_head(&w->d->done);
    if (!done) {
        return false;
    }
    *w->done = *done;
    g_free(done);
    return true;
}

void qerdma_cmd_wait(QErdma *d, QErdmaDone *done)
{
    QErdmaDoneWait w = { d, done };

    g_assert_true(qerdma_wait(d, qerdma_done_cond, &w, QERDMA_CMD_NS));
}

uint8_t qerdma_cmd_exec(QErdma *d, QErdmaCmd *cmd, uint64_t resp[2])
{
    uint16_t index = qerdma_cmd_queue(d, cmd);
    QErdmaDone done;

    qerdma_cmd_ring_db(d);
    qerdma_cmd_wait(d, &done);
    g_assert_cmphex(done.index & (d->cmd_depth - 1), ==,
                    index & (d->cmd_depth - 1));
    if (resp) {
        resp[0] = done.resp[0];
        resp[1] = done.resp[1];
    }
    return done.status;
}

bool qerdma_eq_poll(QErdma *d, QErdmaEq *eq, uint64_t *entry)
{
    uint64_t addr = eq->addr + (eq->ci & (eq->depth - 1)) * ERDMA_EQE_SIZE;

    *entry = qtest_readq(d->qts, addr);
    if (FIELD_EX64(*entry, ERDMA_CEQE, OWNER) == !!(eq->ci & eq->depth)) {
        return false;
    }
    eq->ci++;
    return true;
}

void qerdma_eq_db(QErdma *d, QErdmaEq *eq)
{
    uint64_t db = 0;

    /* The driver's counter has 16 bits. */
    db = FIELD_DP64(db, ERDMA_DB_EQ, CI, eq->ci & 0xffff);
    db = FIELD_DP64(db, ERDMA_DB_EQ, ARM, 1);
    qtest_writeq(d->qts, eq->dbrec, db);
    qerdma_write64(d, eq->db, db);
}

static bool qerdma_aeqe_cond(void *opaque)
{
    QErdma *d = opaque;

    if (g_queue_is_empty(&d->aeqes) && qerdma_irq(d, 0)) {
        qerdma_vector0(d);
    }
    return !g_queue_is_empty(&d->aeqes);
}

void qerdma_expect_aeqe(QErdma *d, uint8_t type, uint32_t id)
{
    g_autofree uint64_t *entry = NULL;

    g_assert_true(qerdma_wait(d, qerdma_aeqe_cond, d, QERDMA_CMD_NS));
    entry = g_queue_pop_head(&d->aeqes);
    g_assert_cmpint(FIELD_EX32(*entry, ERDMA_AEQE_HDR, TYPE), ==, type);
    g_assert_cmphex(*entry >> 32, ==, id);
}

void qerdma_expect_no_aeqe(QErdma *d)
{
    qerdma_settle(d);
    g_assert_false(qerdma_aeqe_cond(d));
}
