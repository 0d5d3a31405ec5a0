/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compat mode's decisions and messages (guest-driver/compat).
 */

#include "qemu/osdep.h"
#include "../../guest-driver/compat/match.h"

static const CompatEnd here = { 0x0a090001, 17 };
static const CompatEnd there = { 0x0a090002, 4 };

static CompatMsg hello(const CompatEnd *from, const CompatEnd *to)
{
    return (CompatMsg) {
        .kind = COMPAT_HELLO, .src = *from, .dst = *to, .port = 30610,
    };
}

static CompatView view(CompatPhase phase)
{
    return (CompatView) { .local = here, .peer = there, .phase = phase };
}

static void test_message(void)
{
    static const uint8_t bytes[COMPAT_MSG_LEN] = {
        'e', 'R', 'c', 'm', 1, 1, 0, 0,
        10, 9, 0, 1, 0, 0, 0, 17,
        10, 9, 0, 2, 0, 0, 0, 4,
        0x77, 0x92,
    };
    CompatMsg in = hello(&here, &there), out;
    uint8_t buf[COMPAT_MSG_LEN];

    compat_msg_pack(buf, &in);
    g_assert_cmpmem(buf, sizeof(buf), bytes, sizeof(bytes));
    g_assert_true(compat_msg_parse(bytes, sizeof(bytes), &out));
    g_assert_cmpint(out.kind, ==, COMPAT_HELLO);
    g_assert_cmpint(out.verdict, ==, COMPAT_NONE);
    g_assert_cmphex(out.src.ip, ==, here.ip);
    g_assert_cmpuint(out.src.qpn, ==, here.qpn);
    g_assert_cmphex(out.dst.ip, ==, there.ip);
    g_assert_cmpuint(out.dst.qpn, ==, there.qpn);
    g_assert_cmpuint(out.port, ==, 30610);
}

static bool parses(const uint8_t *good, unsigned at, uint8_t value)
{
    uint8_t buf[COMPAT_MSG_LEN];
    CompatMsg out;

    memcpy(buf, good, sizeof(buf));
    buf[at] = value;
    return compat_msg_parse(buf, sizeof(buf), &out);
}

static void test_bad_message(void)
{
    CompatMsg in = hello(&here, &there), out;
    uint8_t buf[COMPAT_MSG_LEN + 1] = { 0 };
    unsigned i;

    compat_msg_pack(buf, &in);
    for (i = 0; i < sizeof(buf) + 1; i++) {
        if (i != COMPAT_MSG_LEN) {
            g_assert_false(compat_msg_parse(buf, i, &out));
        }
    }
    g_assert_false(parses(buf, 0, 'E'));
    g_assert_false(parses(buf, 4, 2));      /* version */
    g_assert_false(parses(buf, 5, 0));      /* kind */
    g_assert_true(parses(buf, 5, COMPAT_END));
    g_assert_false(parses(buf, 5, 5));
    g_assert_false(parses(buf, 6, 7));      /* verdict */
    g_assert_false(parses(buf, 6, 1));      /* a question with a verdict */
    g_assert_false(parses(buf, 5, 3));      /* an answer without one */
    g_assert_false(parses(buf, 12, 1));     /* 25-bit QPN */
    g_assert_false(parses(buf, 15, 0));     /* QPN 0 */
    g_assert_false(parses(buf, 20, 1));
    memset(buf + 8, 0, 4);
    g_assert_false(compat_msg_parse(buf, COMPAT_MSG_LEN, &out));
}

static void make_reply(uint8_t *frame, CompatVerdict verdict)
{
    CompatMsg msg = hello(&there, &here);

    msg.kind = COMPAT_ANSWER;
    msg.verdict = verdict;
    compat_mpa_request(frame, &msg);
    memcpy(frame, "MPA ID Rep Frame", 16);
    frame[16] |= 0x20;
}

static void test_frame(void)
{
    uint8_t frame[COMPAT_FRAME_LEN + 1] = { 0 };
    CompatMsg msg = hello(&here, &there);
    unsigned i;

    compat_mpa_request(frame, &msg);
    g_assert_cmpmem(frame, 16, "MPA ID Req Frame", 16);
    g_assert_cmphex(frame[16], ==, 0);
    g_assert_cmphex(frame[17], ==, 129);
    g_assert_cmpuint(frame[19], ==, COMPAT_MSG_LEN);
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, -1);
    make_reply(frame, COMPAT_OTHER);
    for (i = 0; i < COMPAT_FRAME_LEN; i++) {
        g_assert_cmpint(compat_mpa_reply(frame, i, &msg), ==, 0);
    }
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, 1);
    g_assert_cmpint(msg.verdict, ==, COMPAT_OTHER);
    g_assert_cmpuint(msg.dst.qpn, ==, here.qpn);
    g_assert_cmpint(compat_mpa_reply(frame, sizeof(frame), &msg), ==, -1);
    frame[16] &= ~0x20;                     /* accepted: not for us */
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, -1);
    make_reply(frame, COMPAT_READY);
    frame[17] = 1;
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, -1);
    /* A header is judged as soon as it is there. */
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_MPA_LEN, &msg), ==, -1);
    make_reply(frame, COMPAT_LAST);
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, 1);
    g_assert_cmpint(msg.verdict, ==, COMPAT_LAST);
    make_reply(frame, COMPAT_READY);
    frame[18] = 1;
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, -1);
    make_reply(frame, COMPAT_NONE);
    g_assert_cmpint(compat_mpa_reply(frame, COMPAT_FRAME_LEN, &msg), ==, -1);
    frame[0] = 'X';
    g_assert_cmpint(compat_mpa_reply(frame, 1, &msg), ==, -1);
}

static void test_role(void)
{
    CompatEnd neighbour = { here.ip, here.qpn + 1 };

    g_assert_true(compat_is_active(&here, &there));
    g_assert_false(compat_is_active(&there, &here));
    g_assert_true(compat_is_active(&here, &neighbour));
    g_assert_false(compat_is_active(&neighbour, &here));
}

static CompatVerdict judge(CompatPhase phase, CompatKind kind)
{
    CompatView v = view(phase);
    CompatMsg msg = hello(&there, &here);

    msg.kind = kind;
    return compat_judge(&v, &msg, there.ip);
}

static void test_judge(void)
{
    CompatMsg msg = hello(&there, &here);
    CompatView v = view(COMPAT_IDLE);

    g_assert_cmpint(compat_judge(NULL, &msg, there.ip), ==, COMPAT_UNKNOWN);
    v.local.ip = 0;
    memset(&v.peer, 0, sizeof(v.peer));
    g_assert_cmpint(compat_judge(&v, &msg, there.ip), ==, COMPAT_EARLY);
    v.local.qpn++;
    g_assert_cmpint(compat_judge(&v, &msg, there.ip), ==, COMPAT_UNKNOWN);
    /* An address that is not the sender's */
    g_assert_cmpint(compat_judge(&v, &msg, there.ip + 1), ==, COMPAT_BAD);
    msg.kind = COMPAT_ANSWER;
    g_assert_cmpint(compat_judge(&v, &msg, there.ip), ==, COMPAT_BAD);

    g_assert_cmpint(judge(COMPAT_ASKING, COMPAT_HELLO), ==, COMPAT_READY);
    g_assert_cmpint(judge(COMPAT_WAITING, COMPAT_HELLO), ==, COMPAT_READY);
    g_assert_cmpint(judge(COMPAT_AGREED, COMPAT_HELLO), ==, COMPAT_READY);
    g_assert_cmpint(judge(COMPAT_CONNECTING, COMPAT_HELLO), ==, COMPAT_READY);
    g_assert_cmpint(judge(COMPAT_UP, COMPAT_HELLO), ==, COMPAT_GONE);
    g_assert_cmpint(judge(COMPAT_FAILED, COMPAT_HELLO), ==, COMPAT_GONE);
    g_assert_cmpint(judge(COMPAT_DOWN, COMPAT_CONNECT), ==, COMPAT_GONE);
    g_assert_cmpint(judge(COMPAT_CONNECTING, COMPAT_CONNECT), ==,
                    COMPAT_GONE);
    /* "here" is the one that connects: nobody may connect to it */
    g_assert_cmpint(judge(COMPAT_ASKING, COMPAT_CONNECT), ==, COMPAT_BAD);
}

static CompatVerdict judge_end(CompatPhase phase, bool is_leaving)
{
    CompatView v = view(phase);
    CompatMsg msg = hello(&there, &here);

    v.is_leaving = is_leaving;
    msg.kind = COMPAT_END;
    return compat_judge(&v, &msg, there.ip);
}

/* "My program destroys its QP": only a connected one may hold it up. */
static void test_judge_end(void)
{
    CompatView v = view(COMPAT_UP);
    CompatMsg msg = hello(&there, &here);

    g_assert_cmpint(judge_end(COMPAT_UP, false), ==, COMPAT_EARLY);
    g_assert_cmpint(judge_end(COMPAT_UP, true), ==, COMPAT_READY);
    g_assert_cmpint(judge_end(COMPAT_IDLE, false), ==, COMPAT_GONE);
    g_assert_cmpint(judge_end(COMPAT_CONNECTING, false), ==, COMPAT_GONE);
    g_assert_cmpint(judge_end(COMPAT_DOWN, false), ==, COMPAT_GONE);
    msg.kind = COMPAT_END;
    g_assert_cmpint(compat_judge(NULL, &msg, there.ip), ==, COMPAT_UNKNOWN);
    g_assert_cmpint(compat_judge(&v, &msg, there.ip + 1), ==, COMPAT_BAD);
    msg.src.qpn++;
    g_assert_cmpint(compat_judge(&v, &msg, there.ip), ==, COMPAT_OTHER);
}

static void test_judge_passive(void)
{
    CompatView v = { .local = there, .peer = here, .phase = COMPAT_ASKING };
    CompatMsg msg = hello(&here, &there);

    msg.kind = COMPAT_CONNECT;
    g_assert_cmpint(compat_judge(&v, &msg, here.ip), ==, COMPAT_READY);
    msg.src.qpn++;
    g_assert_cmpint(compat_judge(&v, &msg, here.ip), ==, COMPAT_OTHER);
    msg = hello(&here, &there);
    msg.dst.ip++;
    g_assert_cmpint(compat_judge(&v, &msg, here.ip), ==, COMPAT_OTHER);
}

static void test_verdicts(void)
{
    int v;

    for (v = COMPAT_READY; v <= COMPAT_LAST; v++) {
        g_assert_cmpint(compat_verdict_errno(v) == 0, ==, v <= COMPAT_EARLY);
        g_assert_nonnull(compat_verdict_text(v));
    }
}

static void test_gid(void)
{
    uint8_t gid[16];
    uint32_t ip = 0;

    compat_gid_from_ip(gid, 0x0a0900ff);
    g_assert_true(compat_gid_to_ip(gid, &ip));
    g_assert_cmphex(ip, ==, 0x0a0900ff);
    gid[9] = 1;
    g_assert_false(compat_gid_to_ip(gid, &ip));
    compat_gid_from_ip(gid, 0);
    g_assert_false(compat_gid_to_ip(gid, &ip));
}

static void test_modify(void)
{
    const uint32_t all = 0x1fffff;
    int from, to;

    for (from = COMPAT_QPS_RESET; from <= COMPAT_QPS_ERR; from++) {
        g_assert_cmpint(compat_check_modify(from, COMPAT_QPS_RESET, 1), ==, 0);
        g_assert_cmpint(compat_check_modify(from, COMPAT_QPS_ERR, 1), ==, 0);
        for (to = COMPAT_QPS_INIT; to <= COMPAT_QPS_SQE; to++) {
            bool ok = (to <= COMPAT_QPS_RTS && from == to - 1) ||
                      (to == from && (to == COMPAT_QPS_INIT ||
                                      to == COMPAT_QPS_RTS));

            g_assert_cmpint(compat_check_modify(from, to, all), ==,
                            ok ? 0 : EINVAL);
        }
    }
}

/* Each attribute that a state needs is missed, and no other one. */
static void test_attributes(void)
{
    static const uint32_t needs[] = {
        [COMPAT_QPS_INIT] = COMPAT_ATTR_PKEY_INDEX | COMPAT_ATTR_PORT |
                            COMPAT_ATTR_ACCESS,
        [COMPAT_QPS_RTR] = COMPAT_ATTR_AV | COMPAT_ATTR_PATH_MTU |
                           COMPAT_ATTR_DEST_QPN | COMPAT_ATTR_RQ_PSN |
                           COMPAT_ATTR_MAX_DEST_RD | COMPAT_ATTR_MIN_RNR,
        [COMPAT_QPS_RTS] = COMPAT_ATTR_SQ_PSN | COMPAT_ATTR_TIMEOUT |
                           COMPAT_ATTR_RETRY_CNT | COMPAT_ATTR_RNR_RETRY |
                           COMPAT_ATTR_MAX_RD,
    };
    int to, bit;

    for (to = COMPAT_QPS_INIT; to <= COMPAT_QPS_RTS; to++) {
        for (bit = 0; bit < 21; bit++) {
            uint32_t mask = 0x1fffff & ~(1u << bit);

            g_assert_cmpint(compat_check_modify(to - 1, to, mask), ==,
                            needs[to] & (1u << bit) ? EINVAL : 0);
        }
    }
}

static void test_number(void)
{
    unsigned long v = 7;

    g_assert_true(compat_parse_number("30608", 1, 65535, &v));
    g_assert_cmpuint(v, ==, 30608);
    g_assert_false(compat_parse_number("0", 1, 65535, &v));
    g_assert_false(compat_parse_number("65536", 1, 65535, &v));
    g_assert_false(compat_parse_number("", 0, 9, &v));
    g_assert_false(compat_parse_number("-1", 0, 9, &v));
    g_assert_false(compat_parse_number("1 ", 0, 9, &v));
    g_assert_false(compat_parse_number("/", 0, 99, &v));
    g_assert_false(compat_parse_number("1:", 0, 99, &v));
    g_assert_false(compat_parse_number("a", 0, 99, &v));
    g_assert_true(compat_parse_number("99", 1, 99, &v));
    g_assert_cmpuint(v, ==, 99);
    g_assert_true(compat_parse_number("0", 0, 99, &v));
    g_assert_cmpuint(v, ==, 0);
    g_assert_false(compat_parse_number("99999999999999999999999", 0, 9, &v));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/compat/message", test_message);
    g_test_add_func("/compat/bad-message", test_bad_message);
    g_test_add_func("/compat/frame", test_frame);
    g_test_add_func("/compat/role", test_role);
    g_test_add_func("/compat/judge", test_judge);
    g_test_add_func("/compat/judge-end", test_judge_end);
    g_test_add_func("/compat/judge-passive", test_judge_passive);
    g_test_add_func("/compat/verdicts", test_verdicts);
    g_test_add_func("/compat/gid", test_gid);
    g_test_add_func("/compat/modify", test_modify);
    g_test_add_func("/compat/attributes", test_attributes);
    g_test_add_func("/compat/number", test_number);
    return g_test_run();
}
