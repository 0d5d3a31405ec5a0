/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings of two ends, see xport-recording.h. */

#include "qemu/osdep.h"
#include "xport-recording.h"
#include "xport-rig.h"

static void append(void *opaque, const uint8_t *data, size_t len)
{
    g_byte_array_append(opaque, data, len);
}

static RigFate lossy(XportRig *rig, RigPacket *p)
{
    GRand *rand = rig->opaque;
    RigFate fate = { .is_lost = g_rand_double(rand) < 0.1 };

    if (g_rand_double(rand) < 0.05) {
        fate.n_copies = 1;
        fate.extra_ns = 300 * RIG_US;
    }
    if (g_rand_double(rand) < 0.1) {
        p->ecn = 3;
    }
    return fate;
}

static unsigned n_not_ready, n_messages;

static ErdmaXportRx hesitate(XportRig *rig, int end, uint32_t msn,
                             uint32_t off)
{
    if (off == 0 && msn % 7 == 3 && n_not_ready++ % 2 == 0) {
        erdma_xport_conn_rx_resume(rig->end[end].conn);
        return ERDMA_XPORT_RX_NOT_READY;
    }
    return ERDMA_XPORT_RX_OK;
}

/* From inside of a callback */
static void send_more(XportRig *rig, int end, uint32_t msn)
{
    if (msn < n_messages / 2) {
        rig_send(rig, end, ERDMA_XPORT_OP_WRITE, 5000 + msn);
    }
}

void rig_record(uint8_t cc, unsigned n, GByteArray **recording)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(cc + 1);
    ErdmaXportConfig cfg;
    XportRig *rig;
    unsigned i;

    n_not_ready = 0;
    n_messages = n;
    rig_config(&cfg);
    cfg.is_paced = true;
    cfg.use_ecn = true;
    cfg.retry_max = 50;
    rig = rig_new(&cfg);
    rig->cc = cc;
    rig->pn0[0] = 0xfffffff0;
    rig->delay_ns = 50 * RIG_US;
    rig->bits_per_s = 1000 * 1000 * 1000;
    rig->is_blocking = true;
    rig->opaque = rand;
    rig->fate = lossy;
    rig->on_rx = hesitate;
    rig->on_done = send_more;
    for (i = 0; i < 2; i++) {
        recording[i] = g_byte_array_new();
        erdma_xport_record(rig->end[i].x, append, recording[i]);
    }
    rig_open_both(rig);
    for (i = 0; i < n; i++) {
        rig_send(rig, i % 2, ERDMA_XPORT_OP_SEND + i % 10, i * 700);
    }
    g_assert_true(rig_run_done(rig, rig->now_ns + 100 * RIG_S));
    erdma_xport_set_mtu(rig->end[0].x, 900);
    /* The peer is asked now and then. */
    erdma_xport_conn_expect(rig->end[0].conn, true);
    rig_run(rig, rig->now_ns + 100 * RIG_MS);
    erdma_xport_conn_expect(rig->end[0].conn, false);
    rig_send(rig, 0, ERDMA_XPORT_OP_SEND, 10000);
    g_assert_true(rig_run_done(rig, rig->now_ns + 100 * RIG_S));
    erdma_xport_conn_terminate(rig->end[1].conn, 7, 3);
    rig_run(rig, rig->now_ns + 100 * RIG_MS);
    rig_close(rig, 0);
    for (i = 0; i < 2; i++) {
        erdma_xport_record_end(rig->end[i].x);
    }
    rig_free(rig);
}
