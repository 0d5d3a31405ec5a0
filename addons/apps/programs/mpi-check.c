/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An MPI program that checks what it gets: every byte of every message is
 * computed again from who sent it to whom.
 *
 * usage: mpi-check            a ring and an all-to-all of all ranks
 *        mpi-check figures    latency and bandwidth between ranks 0 and 1
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
    int i, warm = rounds / 10, peer = !rank;

    for (i = 0; i < warm + rounds; i++) {
        if (i == warm) {
            began = MPI_Wtime();
        }
        if (rank == 0) {
            MPI_Send(buf, len, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        }
        MPI_Recv(buf, len, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (rank == 1) {
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
    int i, j;

    for (i = 0; i < rounds; i++) {
        for (j = 0; j < WINDOW; j++) {
            if (rank == 0) {
                MPI_Isend(buf + j * len, len, MPI_BYTE, 1, j, MPI_COMM_WORLD,
                          &requests[j]);
            } else {
                MPI_Irecv(buf + j * len, len, MPI_BYTE, 0, j, MPI_COMM_WORLD,
                          &requests[j]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(&i, 1, MPI_INT, !rank, 99, &j, 1, MPI_INT, !rank, 99,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (double)len * WINDOW * rounds / since(began);
}

static void figures(void)
{
    static const int lengths[] = { 8, 4096, 65536, 1048576 };
    uint8_t *buf = allocate(16 * 1048576);
    double latency, rate;
    size_t i;

    memset(buf, 0x5a, 16 * 1048576);
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        latency = ping_pong(buf, lengths[i], lengths[i] > 65536 ? 20 : 200);
        rate = stream(buf, lengths[i], lengths[i] > 65536 ? 4 : 20);
        if (rank == 0) {
            printf("%d bytes: %.1f us %.2f MiB/s\n", lengths[i],
                   latency * 1e6, rate / 1048576);
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
        if (size != 2) {
            fprintf(stderr, "figures: two ranks wanted\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        figures();
    } else {
        checks();
    }
    MPI_Finalize();
    return 0;
}
