/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The client: connection, commands to the server, results.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "control.h"

#define COMPLETION_MS 20000

bool begin(Client *c, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(c->name, sizeof(c->name), format, ap);
    va_end(ap);
    c->seed++;
    for (int i = 0; i < c->n_prefixes; i++) {
        if (!strncmp(c->name, c->prefixes[i], strlen(c->prefixes[i]))) {
            return true;
        }
    }
    return c->n_prefixes == 0;
}

void pass(Client *c, const char *note)
{
    printf("ok %s%s%s\n", c->name, note ? " " : "", note ? note : "");
}

void fail(Client *c, const char *format, ...)
{
    char why[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(why, sizeof(why), format, ap);
    va_end(ap);
    printf("not ok %s - %s\n", c->name, why);
    c->n_failed++;
    close_connection(c);
}

void skip(Client *c, const char *why)
{
    printf("ok %s # SKIP %s\n", c->name, why);
}

bool is_asked_for(const Client *c, const char *group)
{
    for (int i = 0; i < c->n_prefixes; i++) {
        if (!strncmp(c->prefixes[i], group, strlen(group))) {
            return true;
        }
    }
    return false;
}

void hold(const char *what, int64_t ms)
{
    char line[16];

    printf("# %s %" PRId64 "\n", what, ms);
    if (!fgets(line, sizeof(line), stdin)) {
        printf("not ok held - standard input ended\n");
        exit(1);
    }
}

static bool vask(Client *c, const char *format, va_list ap)
{
    char line[1024];

    vsnprintf(line, sizeof(line), format, ap);
    if (!control_say(c->fd, "%s", line) ||
        !control_hear(c->fd, c->answer, sizeof(c->answer))) {
        printf("not ok %s - the server is gone\n", c->name);
        exit(1);
    }
    if (!strncmp(c->answer, "error", 5)) {
        fail(c, "server: `%s`: %s", line, c->answer);
        return false;
    }
    return true;
}

bool ask(Client *c, const char *format, ...)
{
    va_list ap;
    bool ok;

    va_start(ap, format);
    ok = vask(c, format, ap);
    va_end(ap);
    return ok;
}

bool ask_ok(Client *c, const char *format, ...)
{
    va_list ap;
    bool ok;

    va_start(ap, format);
    ok = vask(c, format, ap);
    va_end(ap);
    if (ok && strcmp(c->answer, "ok")) {
        fail(c, "server: %s", c->answer);
        ok = false;
    }
    return ok;
}

void close_connection(Client *c)
{
    if (c->is_open) {
        c->is_open = false;
        control_say(c->fd, "close");
        ep_destroy(&c->ep);
        control_hear(c->fd, c->answer, sizeof(c->answer));
    }
}

bool need_connection(Client *c, int depth, bool has_channel)
{
    if (c->is_open && c->ep.depth == depth && c->has_channel == has_channel) {
        return true;
    }
    close_connection(c);
    if (!ask(c, "open %d %d", depth, has_channel)) {
        return false;
    }
    if (!ep_connect(&c->ep, c->host, depth, has_channel)) {
        char why[sizeof(c->ep.problem)];

        memcpy(why, c->ep.problem, sizeof(why));
        control_hear(c->fd, c->answer, sizeof(c->answer));
        ep_destroy(&c->ep);
        fail(c, "connect: %s (server: %s)", why, c->answer);
        return false;
    }
    c->is_open = true;
    c->has_channel = has_channel;
    if (!control_hear(c->fd, c->answer, sizeof(c->answer)) ||
        sscanf(c->answer, "open %" SCNu64 " %" SCNu32, &c->peer_addr,
               &c->peer_rkey) != 2) {
        fail(c, "server: %s", c->answer);
        return false;
    }
    return true;
}

int post(Client *c, const Op *op)
{
    int n = op->n_sge ? op->n_sge : 1;
    struct ibv_sge sge[16];
    struct ibv_send_wr wr = {
        .wr_id = c->seed, .sg_list = sge, .num_sge = n, .opcode = op->opcode,
        .send_flags = op->flags |
                      (op->is_unsignalled ? 0 : IBV_SEND_SIGNALED),
    }, *bad;
    size_t at = op->local;

    for (int i = 0; i < n; i++) {
        uint32_t part = i < n - 1 ? op->len / n : op->len - op->len / n * i;

        sge[i] = (struct ibv_sge) {
            (uintptr_t)c->ep.mem + at, part,
            op->lkey ? op->lkey : c->ep.mr->lkey,
        };
        at += part;
    }
    switch (op->opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        wr.wr.atomic.remote_addr = c->peer_addr + op->remote;
        wr.wr.atomic.rkey = op->rkey ? op->rkey : c->peer_rkey;
        wr.wr.atomic.compare_add = op->compare_add;
        wr.wr.atomic.swap = op->swap;
        break;
    case IBV_WR_SEND_WITH_INV:
        wr.invalidate_rkey = op->rkey;
        break;
    default:
        wr.wr.rdma.remote_addr = c->peer_addr + op->remote;
        wr.wr.rdma.rkey = op->rkey ? op->rkey : c->peer_rkey;
        wr.imm_data = htonl(op->imm);
        break;
    }
    return abs(ibv_post_send(c->ep.id->qp, &wr, &bad));
}

bool run_op(Client *c, const Op *op, struct ibv_wc *wc)
{
    struct ibv_wc own;
    int err = post(c, op), n = 1;

    wc = wc ? wc : &own;
    if (err) {
        fail(c, "ibv_post_send: %s", strerror(err));
        return false;
    }
    if (!ep_poll(&c->ep, wc, &n, COMPLETION_MS)) {
        fail(c, "%s", c->ep.problem);
        return false;
    }
    if (wc->status || wc->wr_id != c->seed) {
        fail(c, "completion: %s, vendor code %u", status_name(wc->status),
             wc->vendor_err);
        return false;
    }
    return true;
}

static int control_connect(const char *host)
{
    struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
    }, *info;
    char port[8];
    int one = 1;

    snprintf(port, sizeof(port), "%d", CONTROL_PORT);
    if (getaddrinfo(host, port, &hints, &info)) {
        return -1;
    }
    /* The server may be starting just now. */
    for (int i = 0; i < 100; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (!connect(fd, info->ai_addr, info->ai_addrlen)) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            freeaddrinfo(info);
            return fd;
        }
        close(fd);
        usleep(50000);
    }
    freeaddrinfo(info);
    return -1;
}

int client_main(const char *host, char **prefixes, int n)
{
    static Client c;

    c.host = host;
    c.prefixes = prefixes;
    c.n_prefixes = n;
    c.fd = control_connect(host);
    if (c.fd < 0) {
        printf("not ok connect - no server at %s\n", host);
        return 1;
    }
    cases_data(&c);
    cases_queue(&c);
    cases_violation(&c);
    cases_error(&c);
    cases_held(&c);
    cases_sweep(&c);
    cases_many(&c);
    cases_memory(&c);
    cases_limits(&c);
    close_connection(&c);
    printf("# %d failed\n", c.n_failed);
    return c.n_failed ? 1 : 0;
}
