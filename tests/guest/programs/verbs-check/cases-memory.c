/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Memory regions of every kind of page table: each is written and read from
 * both sides at its ends and where tables and pages meet.  They run only if
 * asked for:
 *
 *   memory/KIND         see kinds[]
 *   held-memory/KIND    the same; stops with "# registered 0" and waits for
 *                       a line on standard input
 *
 * A region of gigabytes maps a file of 2 MiB again and again, so that the
 * page table is as large as it can be while the guest is small.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mman.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pairs.h"

#define PAGE 4096ul
#define HUGE_PAGE (2ul << 20)
#define N_HUGE 4
#define FILE_PAGES 509ul        /* a prime: no table ends where the file does */
#define STRIDE 251ul
#define LEN 10000u

typedef struct Kind {
    const char *name;
    uint64_t len;
    uint64_t skew;              /* of its start in its first page */
    bool is_huge;
} Kind;

static const Kind kinds[] = {
    { "one-page", 4096, 0, false },
    { "level-0", 4 * PAGE, 0, false },
    { "level-1", 512 * PAGE, 0, false },
    { "level-2", 2048 * PAGE, 0, false },
    { "level-2-unaligned", 2048 * PAGE - 5555, 4093, false },
    { "level-3", 300000 * PAGE, 0, false },
    { "above-4-gib", (4ul << 30) + 3 * PAGE + 77, 1234, false },
    { "huge-pages", N_HUGE * HUGE_PAGE, 0, true },
    { "huge-pages-unaligned", N_HUGE * HUGE_PAGE - 77777, 12345, true },
};

/* Pages of a file in such an order that no two of them are neighbours. */
static bool map_file(uint8_t *at, uint64_t n_pages, int fd)
{
    /* Few enough mappings: runs of the whole file if there are many pages. */
    uint64_t run = n_pages > 4 * FILE_PAGES + 100 ? FILE_PAGES : 1;

    for (uint64_t i = 0; i < n_pages; i += run) {
        uint64_t n = n_pages - i < run ? n_pages - i : run;
        uint64_t page = run == 1 ? i * STRIDE % FILE_PAGES : 0;

        if (mmap(at + i * PAGE, n * PAGE, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, page * PAGE) == MAP_FAILED) {
            return false;
        }
    }
    return true;
}

static uint8_t *map_pages(uint64_t n_pages)
{
    int fd = memfd_create("verbs-check", 0);
    uint8_t *at;

    if (fd < 0 || ftruncate(fd, FILE_PAGES * PAGE)) {
        return NULL;
    }
    at = mmap(NULL, n_pages * PAGE, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || !map_file(at, n_pages, fd)) {
        at = NULL;
    }
    close(fd);
    return at;
}

static uint8_t *map_huge_pages(void)
{
    FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");
    uint8_t *at;

    if (f) {
        fprintf(f, "%d\n", N_HUGE);
        fclose(f);
    }
    at = mmap(NULL, N_HUGE * HUGE_PAGE, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB |
              MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* One request between the region and the client's ordinary memory. */
static bool transfer(Client *c, const Pairs *p, enum ibv_wr_opcode opcode,
                     struct ibv_sge from, uint64_t remote, uint32_t rkey)
{
    struct ibv_send_wr wr = {
        .wr_id = c->seed, .sg_list = &from, .num_sge = 1, .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED, .wr.rdma = { remote, rkey },
    }, *bad;
    struct ibv_wc wc;

    if (ibv_post_send(pairs_qp(p, 0), &wr, &bad)) {
        fail(c, "ibv_post_send");
        return false;
    }
    return pairs_poll(c, c->ep.cq, &wc, 1);
}

static bool is_pattern(Client *c, const uint8_t *at, uint32_t len,
                       const char *what, uint64_t offset)
{
    long bad = pattern_check(at, len, c->seed);

    if (bad >= 0) {
        fail(c, "%s at %llu: wrong byte at %ld", what,
             (unsigned long long)offset, bad);
    }
    return bad < 0;
}

/*
 * All four ways through the region at an offset: as source and target of
 * either end.
 */
static bool use_at(Client *c, const Pairs *p, struct ibv_mr *mr, uint64_t at,
                   uint32_t len)
{
    uint8_t *there = (uint8_t *)mr->addr + at, *here = c->ep.mem + SOURCE;
    struct ibv_sge ours = { (uintptr_t)here, len, c->ep.mr->lkey };
    struct ibv_sge its = { (uintptr_t)there, len, mr->lkey };
    uint64_t our_addr = (uintptr_t)here, its_addr = (uintptr_t)there;

    c->seed++;
    pattern_fill(here, len, c->seed);
    if (!transfer(c, p, IBV_WR_RDMA_WRITE, ours, its_addr, mr->rkey) ||
        !is_pattern(c, there, len, "written by the peer", at)) {
        return false;
    }
    memset(here, 0, len);
    if (!transfer(c, p, IBV_WR_RDMA_READ, ours, its_addr, mr->rkey) ||
        !is_pattern(c, here, len, "read by the peer", at)) {
        return false;
    }
    c->seed++;
    pattern_fill(here, len, c->seed);
    if (!transfer(c, p, IBV_WR_RDMA_READ, its, our_addr, c->ep.mr->rkey) ||
        !is_pattern(c, there, len, "read into it", at)) {
        return false;
    }
    memset(here, 0, len);
    return transfer(c, p, IBV_WR_RDMA_WRITE, its, our_addr, c->ep.mr->rkey) &&
           is_pattern(c, here, len, "written from it", at);
}

static bool use_region(Client *c, const Pairs *p, struct ibv_mr *mr)
{
    /* Around the ends of pages and of tables with 512 entries. */
    const uint64_t ats[] = {
        0, 1, PAGE - 100, 511 * PAGE - 100, 512 * PAGE - LEN / 2,
        HUGE_PAGE - 3000, 2 * HUGE_PAGE - 1, 512 * 512 * PAGE - LEN / 2,
        512 * 512 * PAGE + 4097, mr->length / 2, (4ul << 30) - 7000,
    };
    uint32_t len = mr->length < LEN ? mr->length / 2 : LEN;

    for (size_t i = 0; i < sizeof(ats) / sizeof(ats[0]); i++) {
        if (ats[i] <= mr->length - len && !use_at(c, p, mr, ats[i], len)) {
            return false;
        }
    }
    return use_at(c, p, mr, mr->length - len, len);
}

static void use_memory(Client *c, uint8_t *memory, const Kind *kind,
                       bool is_held)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                 IBV_ACCESS_REMOTE_READ;
    struct ibv_mr *mr = ibv_reg_mr(c->ep.pd, memory + kind->skew, kind->len,
                                   access);
    struct ibv_cq *cqs[2] = { c->ep.cq, c->ep.cq };
    struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
    Pairs p;

    if (!mr) {
        fail(c, "ibv_reg_mr: %s", strerror(errno));
        return;
    }
    if (is_held) {
        hold("registered", 0);
    }
    if (pairs_open(&p, c, 1, &cap, cqs)) {
        if (use_region(c, &p, mr)) {
            pass(c, NULL);
        }
        pairs_close(&p);
    }
    ibv_dereg_mr(mr);
}

static void memory_case(Client *c, const Kind *kind, bool is_held)
{
    uint64_t n_pages = (kind->skew + kind->len + PAGE - 1) / PAGE;
    uint8_t *memory;

    if (!begin(c, "%smemory/%s", is_held ? "held-" : "", kind->name) ||
        !need_connection(c, 32, false)) {
        return;
    }
    memory = kind->is_huge ? map_huge_pages() : map_pages(n_pages);
    if (!memory) {
        fail(c, "no such memory: %s", strerror(errno));
        return;
    }
    use_memory(c, memory, kind, is_held);
    munmap(memory, kind->is_huge ? N_HUGE * HUGE_PAGE : n_pages * PAGE);
}

void cases_memory(Client *c)
{
    bool is_held = is_asked_for(c, "held-memory/");

    if (!is_held && !is_asked_for(c, "memory/")) {
        return;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        memory_case(c, &kinds[i], is_held);
    }
}
