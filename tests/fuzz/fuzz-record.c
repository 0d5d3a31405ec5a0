/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording, as erdma-sim --replay reads it.  Whatever it is, the answer is
 * "the same" or one message.
 *
 * The first byte chooses what the rest is: a file; records behind a good
 * header; changes of a good recording, see change().
 */

#include "qemu/osdep.h"
#include "replay.h"
#include "../unit/xport-recording.h"
#include "fuzz.h"

#define N_CC        5
#define N_MESSAGES  3

/* Good ones, which take longer to make than to replay */
static const GByteArray *good_one(unsigned cc, unsigned end)
{
    static GByteArray *made[N_CC][2];

    if (!made[cc][0]) {
        rig_record(cc, N_MESSAGES, made[cc]);
    }
    return made[cc][end];
}

static void replay(const GByteArray *b)
{
    ReplayResult result;
    char *problem = replay_data(b->data, b->len, &result);

    if (problem) {
        g_assert_cmpuint(strlen(problem), >, 0);
        g_assert_null(strchr(problem, '\n'));
    }
    g_free(problem);
}

/* A byte more, less or other, or the end, at a place in the first 64 KiB */
static void change(FuzzInput *in, GByteArray *b)
{
    unsigned what = fuzz_below(in, 8);
    guint at = fuzz_u16(in) % b->len;
    uint8_t byte = fuzz_u8(in);

    switch (what) {
    case 0:
        g_byte_array_set_size(b, MAX(at, 1));
        break;
    case 1:
        g_byte_array_remove_index(b, at);
        g_byte_array_append(b, &byte, 1);
        break;
    case 2:
        g_byte_array_append(b, &byte, 1);
        memmove(b->data + at + 1, b->data + at, b->len - at - 1);
        b->data[at] = byte;
        break;
    default:
        b->data[at] = byte;
    }
}

static void append_header(GByteArray *b)
{
    const GByteArray *good = good_one(0, 0);
    const char *text = (const char *)good->data;
    const char *end = g_strstr_len(text, good->len, "\n\n");

    g_byte_array_append(b, good->data, end + 2 - text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    FuzzInput in = { data, len };
    unsigned how = fuzz_below(&in, 2 + 2 * N_CC);
    g_autoptr(GByteArray) b = g_byte_array_new();

    if (how < 2) {
        if (how) {
            append_header(b);
        }
        g_byte_array_append(b, in.data, in.len);
    } else {
        const GByteArray *good = good_one((how - 2) / 2, how % 2);

        g_byte_array_append(b, good->data, good->len);
        while (fuzz_more(&in)) {
            change(&in, b);
        }
    }
    replay(b);
    return 0;
}
