/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compat mode's messages (guest-driver/compat): private data of connections
 * that anybody can open, and answers of whoever listens on the peer's ports.
 * What is understood must come out again as it went in.
 */

#include "qemu/osdep.h"
#include "../../guest-driver/compat/match.h"
#include "fuzz.h"

/* Whatever is asked, in each phase: a verdict that an answer can carry */
static void fuzz_judge(const CompatMsg *msg)
{
    CompatView view = { .local = msg->dst, .peer = msg->src };
    CompatVerdict verdict;

    for (view.phase = COMPAT_IDLE; view.phase <= COMPAT_DOWN; view.phase++) {
        verdict = compat_judge(&view, msg, msg->src.ip);
        g_assert(verdict > COMPAT_NONE && verdict <= COMPAT_LAST);
        g_assert(verdict != COMPAT_READY || msg->kind != COMPAT_CONNECT ||
                 !compat_is_active(&view.local, &view.peer));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t back[COMPAT_MSG_LEN];
    CompatMsg msg, again;
    size_t len;

    if (compat_msg_parse(data, size, &msg)) {
        compat_msg_pack(back, &msg);
        g_assert(compat_msg_parse(back, sizeof(back), &again));
        g_assert(again.kind == msg.kind && again.verdict == msg.verdict);
        fuzz_judge(&msg);
    }
    /* Answers arrive in pieces; once bad, they stay bad. */
    for (len = 0; len <= MIN(size, COMPAT_FRAME_MAX); len++) {
        uint8_t *piece = g_memdup2(data, len);
        int result = compat_mpa_reply(piece, len, &msg);

        g_free(piece);
        if (result > 0) {
            g_assert(len == COMPAT_FRAME_LEN && msg.kind == COMPAT_ANSWER);
        } else if (result < 0) {
            break;
        }
    }
    return 0;
}
