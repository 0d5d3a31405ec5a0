/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kverbs-check: what verbs mean for the kernel's own QPs.
 *
 *   modprobe kverbs-check addr=A.B.C.D [cases=NAME,...]
 *
 * Connects an adapter, chosen by its address, to itself and runs all cases,
 * or those that are named, while it is loaded.  The kernel's log has a line
 * for each, "kverbs-check: ok NAME" or "not ok NAME: REASON" or "skip NAME",
 * and "kverbs-check: done" at the end.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <net/net_namespace.h>

#include "cases.h"

#undef pr_fmt
#define pr_fmt(fmt) "kverbs-check: " fmt

#define PORT            7411
#define MAX_CASES       32

static char *addr;
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 address of the adapter");

static char *cases[MAX_CASES];
static int n_cases;
module_param_array(cases, charp, &n_cases, 0444);
MODULE_PARM_DESC(cases, "only these");

static const struct {
    const char *name;
    int (*run)(KvPair *p);
} all_cases[] = {
    { "send-imm", kv_case_send_imm },
    { "write-imm", kv_case_write_imm },
    { "sweep", kv_case_sweep },
    { "atomics", kv_case_atomics },
    { "too-long", kv_case_too_long },
    { "send-inv", kv_case_send_inv },
    { "read-inv", kv_case_read_inv },
    { "local-inv", kv_case_local_inv },
    { "new-key", kv_case_new_key },
    { "fence", kv_case_fence },
    { "solicited", kv_case_solicited },
    { "signal-every", kv_case_signal_every },
    { "wrap", kv_case_wrap },
    { "flush", kv_case_flush },
    { "flush-violation", kv_case_flush_violation },
};

static char reason[400];

int kv_fail(const char *format, ...)
{
    size_t used = strlen(reason);
    va_list args;

    if (used) {
        used += scnprintf(reason + used, sizeof(reason) - used, "; ");
    }
    va_start(args, format);
    vscnprintf(reason + used, sizeof(reason) - used, format, args);
    va_end(args);
    return -EIO;
}

static bool is_wanted(const char *name)
{
    for (int i = 0; i < n_cases; i++) {
        if (!strcmp(cases[i], name)) {
            return true;
        }
    }
    return !n_cases;
}

static void run_case(int i)
{
    KvPair *p = kzalloc(sizeof(*p), GFP_KERNEL);
    int ret = -ENOMEM;

    reason[0] = '\0';
    if (p) {
        ret = kv_open(p, 64);
        if (!ret) {
            ret = all_cases[i].run(p);
        }
        kv_close(p);
        kfree(p);
    }
    if (ret == KV_SKIPPED) {
        pr_info("skip %s\n", all_cases[i].name);
    } else if (ret) {
        pr_info("not ok %s: %s\n", all_cases[i].name, reason);
    } else {
        pr_info("ok %s\n", all_cases[i].name);
    }
}

static int __init kverbs_check_init(void)
{
    struct sockaddr_in sin = { .sin_family = AF_INET,
                               .sin_port = htons(PORT) };
    int ret;

    if (!addr || !in4_pton(addr, -1, (u8 *)&sin.sin_addr, -1, NULL)) {
        pr_err("addr=A.B.C.D wanted\n");
        return -EINVAL;
    }
    ret = kv_listen(&sin);
    if (ret) {
        pr_err("cannot listen at %s: %d\n", addr, ret);
        return ret;
    }
    for (int i = 0; i < ARRAY_SIZE(all_cases); i++) {
        if (is_wanted(all_cases[i].name)) {
            run_case(i);
        }
    }
    kv_stop_listening();
    pr_info("done\n");
    return 0;
}

static void __exit kverbs_check_exit(void)
{
}

module_init(kverbs_check_init);
module_exit(kverbs_check_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of RDMA verbs in the kernel");
