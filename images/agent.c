/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The guest's control agent and process 1.
 *
 * Serves requests from the host on one virtio-serial port: run commands (any
 * number at the same time) and hand over their output and exit status, set
 * clock, random pool and name after a restore, power off.  It also keeps a
 * shell on the serial console.
 *
 * A message, in both directions, is a header of 16 bytes (struct Header,
 * little endian) and "len" bytes.  "id" is the host's name for a command.
 *
 *   host to guest                    payload
 *   EXEC      run a command          u32 limit in ms, u32 flags, command line
 *   STDIN     data for its stdin     bytes; none = end of file
 *   SIGNAL    signal its group       u32 signal number
 *   SETUP     after a restore        u64 time in ns, 32 random bytes, name
 *   PING      are you there?
 *   POWEROFF
 *
 *   guest to host
 *   HELLO     the agent is up        u32 protocol version, u32 uptime in ms
 *   STDOUT, STDERR                   bytes
 *   EXIT      it ended               u32 enum ExitKind, u32 value
 *   ACK       answers SETUP, PING    u32 errno
 *   CREDIT    stdin was consumed     u32 bytes
 *
 * The host keeps at most STDIN_WINDOW bytes of stdin per command unanswered.
 * When the host's side of the port is closed all commands are killed and the
 * next client begins afresh.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROTOCOL_VERSION 1
#define MAGIC 0x61677265u           /* "erga" */
#define MAX_PAYLOAD (1u << 20)
#define MAX_JOBS 64
#define STDIN_WINDOW (256u << 10)
#define CHUNK 16384u
#define OUT_HIGH (256u << 10)       /* above it no command output is read */
#define SEED_LEN 32

enum MessageType {
    EXEC = 1, STDIN, SIGNAL, SETUP, PING, POWEROFF,
    HELLO = 0x81, STDOUT, STDERR, EXIT, ACK, CREDIT,
};

enum ExitKind { EXITED, KILLED, TIMED_OUT, NOT_STARTED };

enum ExecFlags { MERGE_STDERR = 1, HAS_STDIN = 2 };

typedef struct Header {
    uint32_t magic;
    uint32_t type;
    uint32_t id;
    uint32_t len;
} Header;

typedef struct Buffer {
    uint8_t *data;
    size_t len;
    size_t size;
} Buffer;

typedef struct Job {
    bool is_used;
    bool has_ended;         /* the command itself, perhaps not its children */
    bool has_timed_out;
    uint32_t id;
    pid_t pid;
    int in, out, err;       /* -1 when closed */
    int64_t deadline;       /* ms of CLOCK_MONOTONIC, 0 = none */
    bool in_eof;
    Buffer in_queue;
} Job;

static Job jobs[MAX_JOBS];
static Buffer from_host, to_host;
static pid_t console_pid;
static int64_t console_next;
static sigset_t child_mask;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void buffer_add(Buffer *b, const void *data, size_t len)
{
    if (b->size - b->len < len) {
        size_t size = b->size ? b->size : 4096;

        while (size - b->len < len) {
            size *= 2;
        }
        b->data = realloc(b->data, size);
        if (!b->data) {
            fprintf(stderr, "agent: out of memory\n");
            reboot(RB_POWER_OFF);
        }
        b->size = size;
    }
    if (len) {
        memcpy(b->data + b->len, data, len);
    }
    b->len += len;
}

static void buffer_drop(Buffer *b, size_t len)
{
    b->len -= len;
    memmove(b->data, b->data + len, b->len);
}

static void buffer_free(Buffer *b)
{
    free(b->data);
    *b = (Buffer) { 0 };
}

static uint32_t get_u32(const uint8_t *p)
{
    return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void reply(uint32_t type, uint32_t id, const void *data, size_t len)
{
    Header h = { MAGIC, type, id, len };

    buffer_add(&to_host, &h, sizeof(h));
    buffer_add(&to_host, data, len);
}

static void reply_u32(uint32_t type, uint32_t id, uint32_t a)
{
    reply(type, id, &a, sizeof(a));
}

static void reply_u32x2(uint32_t type, uint32_t id, uint32_t a, uint32_t b)
{
    uint32_t v[2] = { a, b };

    reply(type, id, v, sizeof(v));
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* ---- commands ---- */

static Job *job_find(uint32_t id)
{
    for (int i = 0; i < MAX_JOBS; i++) {
        if (jobs[i].is_used && !jobs[i].has_ended && jobs[i].id == id) {
            return &jobs[i];
        }
    }
    return NULL;
}

static void job_free(Job *j)
{
    close_fd(&j->in);
    close_fd(&j->out);
    close_fd(&j->err);
    buffer_free(&j->in_queue);
    *j = (Job) { .in = -1, .out = -1, .err = -1 };
}

static void child_exec(const char *command, int in, int out, int err)
{
    setsid();
    sigprocmask(SIG_SETMASK, &child_mask, NULL);
    signal(SIGPIPE, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close_range(3, ~0u, 0);
    if (chdir("/root")) {
        /* stays in / */
    }
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static void job_start(uint32_t id, const uint8_t *data, uint32_t len)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
    uint32_t limit, flags;
    char *command = NULL;
    Job *j = NULL;

    for (int i = 0; i < MAX_JOBS && !j; i++) {
        if (!jobs[i].is_used) {
            j = &jobs[i];
        }
    }
    if (!j || len < 8 || job_find(id)) {
        reply_u32x2(EXIT, id, NOT_STARTED, j ? EINVAL : EAGAIN);
        return;
    }
    limit = get_u32(data);
    flags = get_u32(data + 4);
    command = strndup((const char *)data + 8, len - 8);

    if (flags & HAS_STDIN) {
        if (pipe2(in, O_CLOEXEC)) {
            goto fail;
        }
        fcntl(in[1], F_SETFL, O_NONBLOCK);
    } else {
        in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (pipe2(out, O_CLOEXEC) ||
        (!(flags & MERGE_STDERR) && pipe2(err, O_CLOEXEC))) {
        goto fail;
    }
    *j = (Job) {
        .is_used = true, .id = id, .in = in[1], .out = out[0], .err = err[0],
        .deadline = limit ? now_ms() + limit : 0,
    };
    j->pid = fork();
    if (j->pid == 0) {
        child_exec(command, in[0], out[1],
                   (flags & MERGE_STDERR) ? out[1] : err[1]);
    }
    if (j->pid < 0) {
        *j = (Job) { .in = -1, .out = -1, .err = -1 };
        goto fail;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    if (err[0] >= 0) {
        fcntl(err[0], F_SETFL, O_NONBLOCK);
    }
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    free(command);
    return;

fail:
    reply_u32x2(EXIT, id, NOT_STARTED, errno);
    for (int i = 0; i < 2; i++) {
        close_fd(&in[i]);
        close_fd(&out[i]);
        close_fd(&err[i]);
    }
    free(command);
}

static void job_kill(Job *j, int sig)
{
    /* The child may not have reached setsid() yet: signal it by pid too. */
    if (kill(-j->pid, sig)) {
        kill(j->pid, sig);
    }
}

/* One read of a command's output; false at its end or if there is none now. */
static bool job_read(Job *j, int *fd, uint32_t type)
{
    uint8_t data[CHUNK];
    ssize_t n = read(*fd, data, sizeof(data));

    if (n > 0) {
        if (!j->has_ended) {
            reply(type, j->id, data, n);
        }
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_fd(fd);
    }
    return false;
}

static void job_write_stdin(Job *j)
{
    while (j->in >= 0 && j->in_queue.len) {
        ssize_t n = write(j->in, j->in_queue.data, j->in_queue.len);

        if (n < 0) {
            if (errno == EAGAIN || errno == EINTR) {
                return;
            }
            /* Nobody reads it any more: swallow what the host still sends. */
            n = j->in_queue.len;
            close_fd(&j->in);
        }
        buffer_drop(&j->in_queue, n);
        reply_u32(CREDIT, j->id, n);
    }
    if (j->in_eof && !j->in_queue.len) {
        close_fd(&j->in);
    }
}

static void job_stdin(Job *j, const uint8_t *data, uint32_t len)
{
    if (len == 0) {
        j->in_eof = true;
    } else if (j->in < 0) {
        reply_u32(CREDIT, j->id, len);
        return;
    } else if (len > STDIN_WINDOW - j->in_queue.len) {
        job_kill(j, SIGKILL);       /* the host broke the protocol */
        return;
    }
    buffer_add(&j->in_queue, data, len);
    job_write_stdin(j);
}

static void job_ended(Job *j, int status)
{
    /* What the command wrote before it ended is in the pipes now. */
    while (j->out >= 0 && job_read(j, &j->out, STDOUT)) {
    }
    while (j->err >= 0 && job_read(j, &j->err, STDERR)) {
    }
    if (j->has_timed_out) {
        reply_u32x2(EXIT, j->id, TIMED_OUT, 0);
    } else if (WIFSIGNALED(status)) {
        reply_u32x2(EXIT, j->id, KILLED, WTERMSIG(status));
    } else {
        reply_u32x2(EXIT, j->id, EXITED, WEXITSTATUS(status));
    }
    j->has_ended = true;
    close_fd(&j->in);
    /*
     * Children left in the background may hold the pipes: they are read and
     * forgotten, so that nobody dies of SIGPIPE.
     */
    if (j->out < 0 && j->err < 0) {
        job_free(j);
    }
}

static void jobs_reap(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == console_pid) {
            console_pid = 0;
            console_next = now_ms() + 1000;
        }
        for (int i = 0; i < MAX_JOBS; i++) {
            if (jobs[i].is_used && !jobs[i].has_ended && jobs[i].pid == pid) {
                job_ended(&jobs[i], status);
            }
        }
    }
}

/* Kills what ran out of time; returns ms until the next deadline or -1. */
static int jobs_deadlines(void)
{
    int64_t now = now_ms(), next = -1;

    for (int i = 0; i < MAX_JOBS; i++) {
        Job *j = &jobs[i];

        if (!j->is_used || j->has_ended || !j->deadline) {
            continue;
        }
        if (j->deadline <= now) {
            if (j->has_timed_out) {
                /* Two seconds after SIGKILL it still hangs in the kernel. */
                reply_u32x2(EXIT, j->id, TIMED_OUT, 1);
                j->has_ended = true;
                j->pid = 0;
                continue;
            }
            j->has_timed_out = true;
            j->deadline = now + 2000;
            job_kill(j, SIGKILL);
        }
        if (next < 0 || j->deadline - now < next) {
            next = j->deadline - now;
        }
    }
    return next;
}

/* ---- the machine ---- */

static int setup(const uint8_t *data, uint32_t len)
{
    union {
        struct rand_pool_info info;
        uint8_t bytes[sizeof(struct rand_pool_info) + SEED_LEN];
    } pool;
    struct timespec t;
    uint64_t ns;
    int fd;

    if (len < 8 + SEED_LEN) {
        return EINVAL;
    }
    ns = get_u32(data) | (uint64_t)get_u32(data + 4) << 32;
    t.tv_sec = ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    if (clock_settime(CLOCK_REALTIME, &t)) {
        return errno;
    }
    pool.info.entropy_count = SEED_LEN * 8;
    pool.info.buf_size = SEED_LEN;
    memcpy(pool.info.buf, data + 8, SEED_LEN);
    fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    if (ioctl(fd, RNDADDENTROPY, &pool.info) || ioctl(fd, RNDRESEEDCRNG)) {
        int err = errno;

        close(fd);
        return err;
    }
    close(fd);
    data += 8 + SEED_LEN;
    len -= 8 + SEED_LEN;
    return len && sethostname((const char *)data, len) ? errno : 0;
}

static void console_start(void)
{
    console_next = now_ms() + 1000;
    console_pid = fork();
    if (console_pid == 0) {
        int fd;

        setsid();
        sigprocmask(SIG_SETMASK, &child_mask, NULL);
        signal(SIGPIPE, SIG_DFL);
        fd = open("/dev/ttyS0", O_RDWR);
        if (fd < 0 || ioctl(fd, TIOCSCTTY, 1)) {
            _exit(1);
        }
        dup2(fd, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        close_range(3, ~0u, 0);
        execl("/bin/sh", "-sh", (char *)NULL);
        _exit(127);
    }
}

static void handle(const Header *h, const uint8_t *data)
{
    Job *j = job_find(h->id);

    switch (h->type) {
    case EXEC:
        job_start(h->id, data, h->len);
        break;
    case STDIN:
        if (j) {
            job_stdin(j, data, h->len);
        }
        break;
    case SIGNAL:
        if (j && h->len >= 4) {
            job_kill(j, get_u32(data));
        }
        break;
    case SETUP:
        reply_u32(ACK, h->id, setup(data, h->len));
        break;
    case PING:
        reply_u32(ACK, h->id, 0);
        break;
    case POWEROFF:
        sync();
        reboot(RB_POWER_OFF);
        break;
    default:
        reply_u32(ACK, h->id, ENOSYS);
        break;
    }
}

static void host_messages(void)
{
    while (from_host.len >= sizeof(Header)) {
        Header h;

        memcpy(&h, from_host.data, sizeof(h));
        if (h.magic != MAGIC || h.len > MAX_PAYLOAD) {
            /* Out of step, e.g. a client that died half-way: look on. */
            buffer_drop(&from_host, 1);
            continue;
        }
        if (from_host.len - sizeof(h) < h.len) {
            return;
        }
        handle(&h, from_host.data + sizeof(h));
        buffer_drop(&from_host, sizeof(h) + h.len);
    }
}

static void host_gone(void)
{
    from_host.len = 0;
    to_host.len = 0;
    for (int i = 0; i < MAX_JOBS; i++) {
        if (jobs[i].is_used && !jobs[i].has_ended) {
            job_kill(&jobs[i], SIGKILL);
            jobs[i].has_ended = true;       /* nobody wants to hear of it */
        }
    }
}

/* Returns false when the host's side is closed. */
static bool host_read(int port)
{
    uint8_t data[CHUNK];
    ssize_t n = read(port, data, sizeof(data));

    if (n > 0) {
        buffer_add(&from_host, data, n);
        host_messages();
        return true;
    }
    return n < 0;
}

static void host_write(int port)
{
    while (to_host.len) {
        size_t len = to_host.len < CHUNK ? to_host.len : CHUNK;
        ssize_t n = write(port, to_host.data, len);

        if (n <= 0) {
            return;
        }
        buffer_drop(&to_host, n);
    }
}

static void say_hello(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    reply_u32x2(HELLO, 0, PROTOCOL_VERSION,
                t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

static void loop(int port, int sigfd)
{
    struct pollfd p[2 + 3 * MAX_JOBS];
    bool host_is_there = true;

    for (;;) {
        bool may_read = to_host.len < OUT_HIGH;
        int timeout = jobs_deadlines(), n = 2;

        if (!console_pid) {
            int64_t wait = console_next - now_ms();

            if (wait <= 0) {
                console_start();
            } else if (timeout < 0 || wait < timeout) {
                timeout = wait;
            }
        }
        if (!host_is_there && (timeout < 0 || timeout > 20)) {
            timeout = 20;       /* poll() reports a closed host all the time */
        }
        p[0] = (struct pollfd) { sigfd, POLLIN, 0 };
        p[1] = (struct pollfd) { host_is_there ? port : -1,
                                 POLLIN | (to_host.len ? POLLOUT : 0), 0 };
        for (int i = 0; i < MAX_JOBS; i++) {
            Job *j = &jobs[i];

            p[n++] = (struct pollfd) { may_read ? j->out : -1, POLLIN, 0 };
            p[n++] = (struct pollfd) { may_read ? j->err : -1, POLLIN, 0 };
            p[n++] = (struct pollfd) { j->in_queue.len ? j->in : -1, POLLOUT,
                                       0 };
        }
        if (poll(p, n, timeout) < 0 && errno != EINTR) {
            perror("agent: poll");
            sleep(1);
        }
        if (p[0].revents) {
            struct signalfd_siginfo info;

            while (read(sigfd, &info, sizeof(info)) > 0) {
            }
            jobs_reap();
        }
        for (int i = 0; i < MAX_JOBS; i++) {
            struct pollfd *q = &p[2 + 3 * i];
            Job *j = &jobs[i];

            if (!j->is_used) {
                continue;
            }
            if (q[0].revents && j->out >= 0) {
                job_read(j, &j->out, STDOUT);
            }
            if (q[1].revents && j->err >= 0) {
                job_read(j, &j->err, STDERR);
            }
            if (q[2].revents && j->in >= 0) {
                job_write_stdin(j);
            }
            if (j->has_ended && j->out < 0 && j->err < 0) {
                job_free(j);
            }
        }
        if (!host_is_there || p[1].revents) {
            bool was_there = host_is_there;

            host_is_there = host_read(port);
            if (was_there && !host_is_there) {
                host_gone();
            }
        }
        host_write(port);
    }
}

int main(int argc, char **argv)
{
    sigset_t mask;
    int port, sigfd;

    if (argc != 2) {
        fprintf(stderr, "usage: agent PORT\n");
        return 2;
    }
    port = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (port < 0) {
        perror(argv[1]);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, &child_mask);
    sigfd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    for (int i = 0; i < MAX_JOBS; i++) {
        jobs[i] = (Job) { .in = -1, .out = -1, .err = -1 };
    }
    say_hello();
    loop(port, sigfd);
}
