/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One end of a test.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "end.h"

static int tell_fd = -1;

void fail_tell(int fd)
{
    tell_fd = fd;
}

void fail_at(const char *file, int line, const char *what,
             const char *format, ...)
{
    const char *name = strrchr(file, '/');
    char text[400];
    va_list ap;
    int n;

    n = snprintf(text, sizeof(text), "%s:%d: %s: ", name ? name + 1 : file,
                 line, what);
    va_start(ap, format);
    vsnprintf(text + n, sizeof(text) - n, format, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", text);
    if (tell_fd >= 0 && write(tell_fd, text, strlen(text)) < 0) {
        perror("write");
    }
    _exit(1);
}

double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

void swap(struct end *end, const void *mine, void *theirs, size_t len)
{
    size_t done = 0;
    ssize_t n;

    n = write(end->fd, mine, len);
    check(n == (ssize_t)len, "the other end is gone: %s", strerror(errno));
    while (done < len) {
        n = read(end->fd, (uint8_t *)theirs + done, len - done);
        check(n > 0, "the other end is gone");
        done += n;
    }
}

void meet(struct end *end)
{
    uint8_t mine = 1, theirs;

    swap(end, &mine, &theirs, 1);
}

void end_open(struct end *end, int n_slots)
{
    struct ibv_device **list = verbs.get_device_list(NULL);
    struct ibv_device **d = list;
    struct ibv_port_attr port;
    size_t size = n_slots * 2 * MSG_SIZE;

    check(list, "no devices: %s", strerror(errno));
    while (*d && strncmp(verbs.get_device_name(*d), "erdma", 5)) {
        d++;
    }
    check(*d, "no erdma device");
    end->context = verbs.open_device(*d);
    check(end->context, "%s", strerror(errno));
    verbs.free_device_list(list);
    memset(&port, 0, sizeof(port));
    check(!verbs.query_port(end->context, 1, &port), "port 1");
    check(port.gid_tbl_len > GID_INDEX && port.active_width &&
          port.active_speed, "gids %d, width %d, speed %d", port.gid_tbl_len,
          port.active_width, port.active_speed);
    check(!verbs.query_gid(end->context, 1, GID_INDEX, &end->gid),
          "GID %d: %s", GID_INDEX, strerror(errno));
    end->pd = verbs.alloc_pd(end->context);
    check(end->pd, "%s", strerror(errno));
    end->cq = verbs.create_cq(end->context, 2 * QUEUE_DEPTH * n_slots, NULL,
                              NULL, 0);
    check(end->cq, "%s", strerror(errno));
    check(!posix_memalign((void **)&end->buf, 4096, size), "memory");
    memset(end->buf, 0, size);
    end->n_slots = n_slots;
    end->mr = verbs.reg_mr(end->pd, end->buf, size, IBV_ACCESS_LOCAL_WRITE |
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    check(end->mr, "%s", strerror(errno));
}

void end_close(struct end *end)
{
    int err;

    err = verbs.dereg_mr(end->mr);
    check(!err, "%s", strerror(err));
    err = verbs.destroy_cq(end->cq);
    check(!err, "%s", strerror(err));
    err = verbs.dealloc_pd(end->pd);
    check(!err, "%s", strerror(err));
    err = verbs.close_device(end->context);
    check(!err, "%s", strerror(err));
    free(end->buf);
}

static uint8_t *slot_tx(struct end *end, int slot)
{
    return end->buf + slot * 2 * MSG_SIZE;
}

static uint8_t *slot_rx(struct end *end, int slot)
{
    return slot_tx(end, slot) + MSG_SIZE;
}

int pair_init(struct pair *pair)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };

    return verbs.modify_qp(pair->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                           IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

void pair_create(struct end *end, struct pair *pair, int slot)
{
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {
            .max_send_wr = QUEUE_DEPTH, .max_recv_wr = QUEUE_DEPTH,
            .max_send_sge = 1, .max_recv_sge = 1,
        },
    };
    int err;

    check(slot < end->n_slots, "slot %d", slot);
    pair->qp = verbs.create_qp(end->pd, &init);
    check(pair->qp, "%s", strerror(errno));
    pair->slot = slot;
    err = pair_state(pair);
    check(err == IBV_QPS_RESET, "a new QP is in state %d", err);
    err = pair_init(pair);
    check(!err, "%s", strerror(err));
    pair->mine.gid = end->gid;
    pair->mine.qpn = pair->qp->qp_num;
    pair->mine.psn = pair->qp->qp_num * 7 & 0xffffff;
    pair->mine.rkey = end->mr->rkey;
    pair->mine.addr = (uintptr_t)slot_rx(end, slot);
}

void pair_swap(struct end *end, struct pair *pair)
{
    swap(end, &pair->mine, &pair->theirs, sizeof(pair->mine));
}

int pair_rtr(struct pair *pair, const struct address *to)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = to->qpn,
        .rq_psn = to->psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = {
            .is_global = 1,
            .port_num = 1,
            .grh = {
                .dgid = to->gid, .sgid_index = GID_INDEX, .hop_limit = 64,
            },
        },
    };

    return verbs.modify_qp(pair->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
                           IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                           IBV_QP_MIN_RNR_TIMER);
}

int pair_rts(struct pair *pair)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .sq_psn = pair->mine.psn,
        .max_rd_atomic = 4,
    };

    return verbs.modify_qp(pair->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
                           IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int pair_state(struct pair *pair)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    int err;

    memset(&attr, 0, sizeof(attr));
    err = verbs.query_qp(pair->qp, &attr, IBV_QP_STATE, &init);
    check(!err, "%s", strerror(err));
    return attr.qp_state;
}

void pair_connect(struct pair *pair)
{
    int err = pair_rtr(pair, &pair->theirs);

    check(!err, "to RTR: %s", strerror(err));
    err = pair_rts(pair);
    check(!err, "to RTS: %s", strerror(err));
}

void pair_destroy(struct pair *pair)
{
    int err = verbs.destroy_qp(pair->qp);

    check(!err, "%s", strerror(err));
}

void pair_post_recv(struct end *end, struct pair *pair, uint64_t id)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)slot_rx(end, pair->slot),
        .length = MSG_SIZE,
        .lkey = end->mr->lkey,
    };
    struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;
    int err = ibv_post_recv(pair->qp, &wr, &bad);

    check(!err, "%d", err);
}

void pair_post_send(struct end *end, struct pair *pair, uint64_t id)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)slot_tx(end, pair->slot),
        .length = MSG_SIZE,
        .lkey = end->mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
    };
    struct ibv_send_wr *bad;
    int err = ibv_post_send(pair->qp, &wr, &bad);

    check(!err, "%d", err);
}

bool end_poll(struct end *end, struct ibv_wc *wc, double seconds, bool strict)
{
    double stop = now() + seconds;
    int n;

    do {
        n = ibv_poll_cq(end->cq, 1, wc);
        check(n >= 0, "%d", n);
        if (n) {
            check(!strict || wc->status == IBV_WC_SUCCESS,
                  "completion with status %d", wc->status);
            return true;
        }
        usleep(200);
    } while (now() < stop);
    return false;
}

static uint8_t pattern(bool is_client, int slot, int i)
{
    return (is_client ? 0x5a : 0xa5) + slot * 31 + i;
}

void pairs_talk(struct end *end, struct pair *pairs, int n)
{
    struct ibv_wc wc;
    uint8_t *rx, *tx;
    int i, j, rest;

    for (i = 0; i < n; i++) {
        tx = slot_tx(end, pairs[i].slot);
        memset(slot_rx(end, pairs[i].slot), 0, MSG_SIZE);
        for (j = 0; j < MSG_SIZE; j++) {
            tx[j] = pattern(end->is_client, pairs[i].slot, j);
        }
        pair_post_recv(end, &pairs[i], i);
    }
    for (i = 0; i < n; i++) {
        pair_post_send(end, &pairs[i], n + i);
    }
    for (rest = 2 * n; rest; rest--) {
        check(end_poll(end, &wc, 30, true), "%d completions are missing",
              rest);
    }
    for (i = 0; i < n; i++) {
        rx = slot_rx(end, pairs[i].slot);
        for (j = 0; j < MSG_SIZE; j++) {
            check(rx[j] == pattern(!end->is_client, pairs[i].slot, j),
                  "pair %d, byte %d: %#x", i, j, rx[j]);
        }
    }
    /* An end that leaves now takes the other's completions with it. */
    meet(end);
}
