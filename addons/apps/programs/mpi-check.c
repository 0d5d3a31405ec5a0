/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An MPI program that checks what it gets: every byte of every message is
 * computed again from who sent it to whom.
 *
 * usage: mpi-check            a ring, an all-to-all, and all ranks to rank 0
 *        mpi-check figures    latency and bandwidth between pairs of ranks, all
 *                             pairs at the same time, and of an all-to-all
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static int rank, size;
static unsigned long long checked;

static void *allocate(size_t n)
{
    void *p = malloc(n);

    if (!p) {
        perror("mpi-check");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

static uint8_t pattern(int from, int to, int round, size_t i)
{
    return from * 37 + to * 101 + round * 13 + i * 7 + (i >> 8);
}

static void fill(uint8_t *buf, size_t len, int from, int to, int round)
{
    size_t i;

    for (i = 0; i < len; i++) {
        buf[i] = pattern(from, to, round, i);
    }
}

static void check(const uint8_t *buf, size_t len, int from, int to, int round)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (buf[i] != pattern(from, to, round, i)) {
            fprintf(stderr, "rank %d, round %d, from %d: byte %zu of %zu is "
                    "%02x, not %02x\n", rank, round, from, i, len, buf[i],
                    pattern(from, to, round, i));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    checked += len;
}

/* To the next one, from the one before, all at the same time. */
static void ring(size_t len, int round)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    uint8_t *out = allocate(len), *in = allocate(len);

    fill(out, len, rank, next, round);
    memset(in, 0xee, len);
    MPI_Sendrecv(out, len, MPI_BYTE, next, round, in, len, MPI_BYTE, last,
                 round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, len, last, rank, round);
    free(out);
    free(in);
}

static void all_to_all(size_t len, int round)
{
    uint8_t *out = allocate(len * size), *in = allocate(len * size);
    int i;

    memset(in, 0xee, len * size);
    for (i = 0; i < size; i++) {
        fill(out + i * len, len, rank, i, round);
    }
    MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
    for (i = 0; i < size; i++) {
        check(in + i * len, len, i, rank, round);
    }
    free(out);
    free(in);
}

/*
 * All to rank 0, which takes them as they come: the library tells it who sent
 * each, from what came along with the message.
 */
static void from_any(size_t len, int round)
{
    uint8_t *buf = allocate(len);
    MPI_Status status;
    int i;

    if (rank != 0) {
        fill(buf, len, rank, 0, round);
        MPI_Send(buf, len, MPI_BYTE, 0, round, MPI_COMM_WORLD);
    }
    for (i = 1; rank == 0 && i < size; i++) {
        memset(buf, 0xee, len);
        MPI_Recv(buf, len, MPI_BYTE, MPI_ANY_SOURCE, round, MPI_COMM_WORLD,
                 &status);
        check(buf, len, status.MPI_SOURCE, 0, round);
    }
    free(buf);
}

static void sum(void)
{
    long mine = rank + 1, total;

    MPI_Allreduce(&mine, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (total != (long)size * (size + 1) / 2) {
        fprintf(stderr, "rank %d: the sum is %ld\n", rank, total);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void checks(void)
{
    /* Around where messages stop being sent at once, and pages end. */
    static const size_t lengths[] = {
        1, 63, 4096, 16383, 16384, 16385, 65537, 1048576,
    };
    unsigned long long total = 0;
    size_t i;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        ring(lengths[i], i);
        all_to_all(lengths[i], i);
        from_any(lengths[i], i);
        sum();
    }
    MPI_Reduce(&checked, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0,
               MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, %llu bytes are right\n", size, total);
    }
}

static double since(double began)
{
    double now = MPI_Wtime();

    return now - began;
}

/* Half of the time of a round trip, in seconds. */
static double ping_pong(uint8_t *buf, int len, int rounds)
{
    double began = 0;
    int i, warm = rounds / 10, peer = rank ^ 1;

    for (i = 0; i < warm + rounds; i++) {
        if (i == warm) {
            began = MPI_Wtime();
        }
        if (rank % 2 == 0) {
            MPI_Send(buf, len, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        }
        MPI_Recv(buf, len, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (rank % 2 == 1) {
            MPI_Send(buf, len, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        }
    }
    return since(began) / rounds / 2;
}

/* Bytes per second of a window of messages, acknowledged as a whole. */
static double stream(uint8_t *buf, int len, int rounds)
{
    enum { WINDOW = 16 };
    MPI_Request requests[WINDOW];
    double began = MPI_Wtime();
    int i, j, peer = rank ^ 1;

    for (i = 0; i < rounds; i++) {
        for (j = 0; j < WINDOW; j++) {
            if (rank % 2 == 0) {
                MPI_Isend(buf + j * len, len, MPI_BYTE, peer, j,
                          MPI_COMM_WORLD, &requests[j]);
            } else {
                MPI_Irecv(buf + j * len, len, MPI_BYTE, peer, j,
                          MPI_COMM_WORLD, &requests[j]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(&i, 1, MPI_INT, peer, 99, &j, 1, MPI_INT, peer, 99,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (double)len * WINDOW * rounds / since(began);
}

/* Seconds of one all-to-all of so many bytes from each to each. */
static double exchange(uint8_t *buf, int len, int rounds)
{
    uint8_t *in = allocate((size_t)len * size);
    double began;
    int i;

    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
    for (i = 0; i < rounds; i++) {
        MPI_Alltoall(buf, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
    }
    free(in);
    return since(began) / rounds;
}

static void figures(void)
{
    static const int lengths[] = { 8, 4096, 65536, 1048576 };
    uint8_t *buf = allocate(16 * 1048576);
    double mine[2], latency, rate, all;
    size_t i;

    memset(buf, 0x5a, 16 * 1048576);
    if (rank == 0) {
        printf("bytes, latency in us, MiB/s of all pairs, all-to-all in us:\n");
    }
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        mine[0] = ping_pong(buf, lengths[i], lengths[i] > 65536 ? 10 : 100);
        MPI_Barrier(MPI_COMM_WORLD);
        mine[1] = stream(buf, lengths[i], lengths[i] > 65536 ? 2 : 10);
        all = exchange(buf, lengths[i], lengths[i] > 65536 ? 3 : 20);
        MPI_Reduce(&mine[0], &latency, 1, MPI_DOUBLE, MPI_SUM, 0,
                   MPI_COMM_WORLD);
        MPI_Reduce(&mine[1], &rate, 1, MPI_DOUBLE, MPI_SUM, 0,
                   MPI_COMM_WORLD);
        if (rank == 0) {
            /* Both of a pair have measured the same. */
            printf("%d %.1f %.2f %.1f\n", lengths[i], latency * 1e6 / size,
                   rate / 1048576 / 2, all * 1e6);
        }
    }
    free(buf);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "figures") == 0) {
        if (size % 2 || size > 16) {
            fprintf(stderr, "figures: an even number of ranks wanted, "
                    "16 at most\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        figures();
    } else {
        checks();
    }
    MPI_Finalize();
    return 0;
}
