/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The server: does what the client's commands say and reports what it sees.
 *
 *   open DEPTH CHANNEL       accept a connection: "ready", then
 *                            "open ADDRESS RKEY"
 *   recv OFFSET SIZE COUNT   post receives
 *   fill OFFSET LEN SEED     write a pattern
 *   check OFFSET LEN SEED MS "ok" once the pattern is there, or "bad AT"
 *   get OFFSET / put OFFSET VALUE   a u64
 *   send OFFSET LEN          send a message
 *   poll N MS                "wc N" and STATUS:OPCODE:LEN:FLAGS:IMM of each
 *   mr OFFSET LEN ACCESS PD  register anew: "mr ADDRESS RKEY"
 *   events MS                "events NAMES"
 *   state                    "state N" of the QP
 *   error                    QP to the error state
 *   close                    disconnect, free everything
 *   die                      end without any farewell
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "endpoint.h"

#define MAX_POLL 64
#define SETTLE_MS 50

static bool in_memory(size_t offset, size_t len)
{
    return offset <= MEM_LEN && len <= MEM_LEN - offset;
}

static void do_poll(Endpoint *ep, int fd, int n, int ms)
{
    struct ibv_wc wc[MAX_POLL];
    char line[LINE_LEN];
    int len;

    n = n < MAX_POLL ? n : MAX_POLL;
    ep_poll(ep, wc, &n, ms);
    len = snprintf(line, sizeof(line), "wc %d", n);
    for (int i = 0; i < n && len < (int)sizeof(line) - 80; i++) {
        len += snprintf(line + len, sizeof(line) - len, " %d:%d:%u:%u:%u",
                        wc[i].status, wc[i].status ? 0 : (int)wc[i].opcode,
                        wc[i].status ? 0 : wc[i].byte_len,
                        wc[i].status ? 0 : wc[i].wc_flags,
                        wc[i].status ? 0 : ntohl(wc[i].imm_data));
    }
    control_say(fd, "%s", line);
}

static void do_check(Endpoint *ep, int fd, size_t offset, size_t len,
                     uint32_t seed, int ms)
{
    int64_t end = now_ms() + ms;
    long bad;

    while ((bad = pattern_check(ep->mem + offset, len, seed)) >= 0 &&
           now_ms() < end) {
        usleep(1000);
    }
    if (bad < 0) {
        control_say(fd, "ok");
    } else {
        control_say(fd, "bad %ld", bad);
    }
}

static bool do_send(Endpoint *ep, size_t offset, uint32_t len)
{
    struct ibv_sge sge = { (uintptr_t)ep->mem + offset, len, ep->mr->lkey };
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    }, *bad;

    return ibv_post_send(ep->id->qp, &wr, &bad) == 0;
}

static void answer(int fd, bool ok, Endpoint *ep)
{
    if (ok) {
        control_say(fd, "ok");
    } else {
        control_say(fd, "error %s", ep->problem);
    }
}

/* Commands of an open connection; false if there is no such command. */
static bool handle(Endpoint *ep, int fd, const char *line)
{
    unsigned long a = 0, b = 0, c = 0, d = 0;
    char word[16] = "", text[256];

    sscanf(line, "%15s %lu %lu %lu %lu", word, &a, &b, &c, &d);
    if (!strcmp(word, "recv") && in_memory(a, b * c)) {
        answer(fd, ep_post_recv(ep, a, b, c), ep);
    } else if (!strcmp(word, "fill") && in_memory(a, b)) {
        pattern_fill(ep->mem + a, b, c);
        control_say(fd, "ok");
    } else if (!strcmp(word, "check") && in_memory(a, b)) {
        do_check(ep, fd, a, b, c, d);
    } else if (!strcmp(word, "get") && in_memory(a, 8)) {
        uint64_t value;

        memcpy(&value, ep->mem + a, 8);
        control_say(fd, "value %" PRIu64, value);
    } else if (!strcmp(word, "put") && in_memory(a, 8)) {
        uint64_t value = b;

        memcpy(ep->mem + a, &value, 8);
        control_say(fd, "ok");
    } else if (!strcmp(word, "send") && in_memory(a, b)) {
        answer(fd, do_send(ep, a, b), ep);
    } else if (!strcmp(word, "poll")) {
        do_poll(ep, fd, a, b);
    } else if (!strcmp(word, "mr") && in_memory(a, b)) {
        if (ep_register(ep, a, b, c, d)) {
            control_say(fd, "mr %" PRIu64 " %u",
                        (uint64_t)(uintptr_t)ep->mem + a, ep->aux_mr->rkey);
        } else {
            answer(fd, false, ep);
        }
    } else if (!strcmp(word, "events")) {
        ep_events(ep, a, SETTLE_MS, text, sizeof(text));
        control_say(fd, "events %s", text);
    } else if (!strcmp(word, "state")) {
        control_say(fd, "state %d", ep_qp_state(ep));
    } else if (!strcmp(word, "error")) {
        answer(fd, ep_set_error(ep), ep);
    } else {
        return false;
    }
    return true;
}

static void serve(int fd)
{
    Endpoint ep = { 0 };
    char line[LINE_LEN];
    int depth, channel;

    if (!ep_listen(&ep)) {
        control_say(fd, "error %s", ep.problem);
        return;
    }
    while (control_hear(fd, line, sizeof(line))) {
        if (sscanf(line, "open %d %d", &depth, &channel) == 2) {
            ep_destroy(&ep);
            control_say(fd, "ready");
            if (ep_accept(&ep, depth, channel)) {
                control_say(fd, "open %" PRIu64 " %u",
                            (uint64_t)(uintptr_t)ep.mem, ep.mr->rkey);
            } else {
                control_say(fd, "error %s", ep.problem);
            }
        } else if (!strcmp(line, "close")) {
            ep_destroy(&ep);
            control_say(fd, "ok");
        } else if (!strcmp(line, "die")) {
            raise(SIGKILL);
        } else if (!ep.mr) {
            control_say(fd, "error no connection");
        } else if (!handle(&ep, fd, line)) {
            control_say(fd, "error bad command");
        }
    }
    ep_destroy(&ep);
}

int server_main(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(CONTROL_PORT),
    };
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    signal(SIGCHLD, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
        listen(listener, 4)) {
        perror("verbs-check: listen");
        return 1;
    }
    printf("listening\n");
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0) {
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (fork() == 0) {
            close(listener);
            serve(fd);
            _exit(0);
        }
        close(fd);
    }
}
