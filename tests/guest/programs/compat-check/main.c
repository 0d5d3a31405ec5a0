/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Checks compat mode by its effects, between two guests.
 *
 *     compat-check server                   in one guest
 *     compat-check client HOST [CASE...]    in another one
 *     compat-check noise HOST PORT SEED N
 *
 * The client prints a TAP point per case.  At both ends each case runs in a
 * process of its own, with a TCP connection of its own.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define PORT 18600
#define NAME_LEN 32
#define CASE_SECONDS 90

static const struct test_case *const all_cases[] = {
    connect_cases, error_cases, event_cases,
};

#define N_LISTS (sizeof(all_cases) / sizeof(all_cases[0]))

static const struct test_case *find_case(const char *name)
{
    const struct test_case *c;
    size_t i;

    for (i = 0; i < N_LISTS; i++) {
        for (c = all_cases[i]; c->name; c++) {
            if (!strcmp(c->name, name)) {
                return c;
            }
        }
    }
    return NULL;
}

static void run_case(const struct test_case *c, bool is_client, int fd)
{
    struct end end = { .is_client = is_client, .fd = fd };

    signal(SIGPIPE, SIG_IGN);
    alarm(CASE_SECONDS);
    verbs_load();
    c->run(&end);
    _exit(0);
}

static int serve_one(int fd)
{
    const struct test_case *c;
    char name[NAME_LEN];
    size_t done = 0;
    ssize_t n;

    while (done < sizeof(name)) {
        n = read(fd, name + done, sizeof(name) - done);
        if (n <= 0) {
            return 1;
        }
        done += n;
    }
    name[sizeof(name) - 1] = 0;
    c = find_case(name);
    if (!c) {
        fprintf(stderr, "no case %s\n", name);
        return 1;
    }
    run_case(c, false, fd);
    return 0;
}

static int server_main(void)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = htons(PORT),
    };
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd, one = 1;

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listener < 0 || bind(listener, (struct sockaddr *)&sin, sizeof(sin)) ||
        listen(listener, 8)) {
        perror("listen");
        return 1;
    }
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            perror("accept");
            return 1;
        }
        if (!fork()) {
            /* A case may wait for a child of its own. */
            signal(SIGCHLD, SIG_DFL);
            close(listener);
            _exit(serve_one(fd));
        }
        close(fd);
    }
}

static int dial(const char *host)
{
    struct hostent *entry = gethostbyname(host);
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = htons(PORT),
    };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (!entry) {
        fprintf(stderr, "no host %s\n", host);
        exit(1);
    }
    memcpy(&sin.sin_addr, entry->h_addr_list[0], 4);
    if (connect(fd, (struct sockaddr *)&sin, sizeof(sin))) {
        fprintf(stderr, "%s: %s\n", host, strerror(errno));
        exit(1);
    }
    return fd;
}

static bool client_case(const char *host, const struct test_case *c, int n)
{
    char name[NAME_LEN] = "", text[512];
    int fd = dial(host), pipe_fd[2], status;
    double began = now();
    ssize_t len;
    pid_t pid;

    strncpy(name, c->name, sizeof(name) - 1);
    if (write(fd, name, sizeof(name)) != sizeof(name) || pipe(pipe_fd)) {
        perror(c->name);
        exit(1);
    }
    fflush(stdout);
    pid = fork();
    if (!pid) {
        close(pipe_fd[0]);
        fail_tell(pipe_fd[1]);
        run_case(c, true, fd);
    }
    close(pipe_fd[1]);
    close(fd);
    len = read(pipe_fd[0], text, sizeof(text) - 1);
    text[len > 0 ? len : 0] = 0;
    close(pipe_fd[0]);
    if (waitpid(pid, &status, 0) != pid) {
        status = -1;
    }
    printf("%sok %d - %s\n", status ? "not " : "", n, c->name);
    if (status) {
        printf("# status %#x: %s\n", status, text);
    }
    printf("# %s took %.1f s\n", c->name, now() - began);
    fflush(stdout);
    return !status;
}

static int client_main(const char *host, char **names, int n)
{
    int i, count = 0, failed = 0;
    const struct test_case *c;
    size_t j;

    for (i = 0; i < n; i++) {
        c = find_case(names[i]);
        if (!c) {
            fprintf(stderr, "no case %s\n", names[i]);
            return 2;
        }
        failed += !client_case(host, c, ++count);
    }
    for (j = 0; !n && j < N_LISTS; j++) {
        for (c = all_cases[j]; c->name; c++) {
            failed += !client_case(host, c, ++count);
        }
    }
    printf("1..%d\n", count);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "server")) {
        return server_main();
    }
    if (argc >= 3 && !strcmp(argv[1], "client")) {
        return client_main(argv[2], argv + 3, argc - 3);
    }
    if (argc == 6 && !strcmp(argv[1], "noise")) {
        return noise_main(argv[2], atoi(argv[3]), atoi(argv[4]),
                          atoi(argv[5]));
    }
    fprintf(stderr, "usage: compat-check server\n"
            "       compat-check client HOST [CASE...]\n"
            "       compat-check noise HOST PORT SEED N\n");
    return 2;
}
