/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A stranger at the ports: nonsense, and almost what is expected there.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cases.h"

#define HEADER_LEN 28
#define MESSAGE_LEN 32
#define FRAME_MAX (HEADER_LEN + 256)

/* A frame as compat mode sends it, with addresses that mean nobody. */
static size_t good_frame(uint8_t *frame)
{
    uint8_t *message = frame + HEADER_LEN;

    memset(frame, 0, HEADER_LEN + MESSAGE_LEN);
    memcpy(frame, "MPA ID Req Frame", 16);
    frame[17] = 129;
    frame[19] = MESSAGE_LEN;
    memcpy(message, "eRcm\x01\x01", 6);
    message[8] = 10;
    message[11] = 1;
    message[15] = 1;
    message[16] = 10;
    message[19] = 1;
    message[23] = 1;
    return HEADER_LEN + MESSAGE_LEN;
}

static size_t make_frame(uint8_t *frame)
{
    size_t len = good_frame(frame), i, n;

    switch (random() % 5) {
    case 0:                     /* nothing of it is right */
        n = 1 + random() % FRAME_MAX;
        for (i = 0; i < n; i++) {
            frame[i] = random();
        }
        return n;
    case 1:                     /* private data of any kind and length */
        n = random() % 257;
        frame[18] = n >> 8;
        frame[19] = n;
        for (i = 0; i < n; i++) {
            frame[HEADER_LEN + i] = random();
        }
        return HEADER_LEN + n;
    case 2:                     /* one byte of the message is wrong */
        frame[HEADER_LEN + random() % MESSAGE_LEN] = random();
        return len;
    case 3:                     /* cut off */
        return 1 + random() % (len - 1);
    default:                    /* another kind, another QP */
        frame[HEADER_LEN + 5] = 1 + random() % 3;
        frame[HEADER_LEN + 6] = random() % 7;
        frame[HEADER_LEN + 22] = random();
        frame[HEADER_LEN + 23] = random() % 16;
        return len;
    }
}

int noise_main(const char *host, int port, unsigned seed, int n)
{
    struct hostent *entry = gethostbyname(host);
    struct sockaddr_in sin = { .sin_family = AF_INET };
    /* The peer's driver must be the first to close: see docs/compat.md. */
    struct timeval limit = { .tv_usec = 300000 };
    uint8_t frame[FRAME_MAX], answer[512];
    int fd, answers = 0;
    size_t len;

    if (!entry) {
        fprintf(stderr, "no host %s\n", host);
        return 1;
    }
    memcpy(&sin.sin_addr, entry->h_addr_list[0], 4);
    sin.sin_port = htons(port);
    srandom(seed);
    while (n--) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&sin, sizeof(sin))) {
            perror("connect");
            return 1;
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        len = make_frame(frame);
        if (send(fd, frame, len, MSG_NOSIGNAL) == (ssize_t)len) {
            while (recv(fd, answer, sizeof(answer), 0) > 0) {
                answers++;
            }
        }
        close(fd);
    }
    printf("%d answers\n", answers);
    return 0;
}
