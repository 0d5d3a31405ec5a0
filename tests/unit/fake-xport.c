/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A transport that moves nothing.
 *
 * It has every function of xport.h, so that the linker needs nothing of the
 * real library.
 */

#include "qemu/osdep.h"
#include "fake-xport.h"

struct ErdmaXport {
    int dummy;
};

struct ErdmaXportConn {
    uint32_t msn;
    bool is_expecting;
};

FakeXport fake_xport;

void erdma_xport_config_default(ErdmaXportConfig *cfg)
{
    memset(cfg, 0, sizeof(*cfg));
    cfg->mtu = 1500;
    cfg->udp_port = ERDMA_XPORT_UDP_PORT;
}

ErdmaXport *erdma_xport_new(const ErdmaXportOps *ops, void *opaque,
                            const ErdmaXportConfig *cfg)
{
    unsigned n_alive = fake_xport.n_alive;

    memset(&fake_xport, 0, sizeof(fake_xport));
    fake_xport.n_alive = n_alive + 1;
    fake_xport.mtu = cfg->mtu;
    fake_xport.poll_result = ERDMA_XPORT_NEVER;
    return g_new0(ErdmaXport, 1);
}

void erdma_xport_free(ErdmaXport *x)
{
    fake_xport.n_alive--;
    g_free(x);
}

ErdmaXport *erdma_xport_successor(ErdmaXport *x)
{
    fake_xport.n_alive++;
    return g_new0(ErdmaXport, 1);
}

uint32_t erdma_xport_conn_n_held(const ErdmaXportConn *conn)
{
    return 0;
}

uint64_t erdma_xport_n_held(const ErdmaXport *x)
{
    return 0;
}

void erdma_xport_set_secret(ErdmaXport *x, uint32_t secret)
{
}

void erdma_xport_reserve(ErdmaXport *x, uint32_t n_conns)
{
}

void erdma_xport_set_mtu(ErdmaXport *x, uint32_t mtu)
{
    fake_xport.mtu = mtu;
}

uint32_t erdma_xport_mtu(const ErdmaXport *x)
{
    return fake_xport.mtu;
}

const ErdmaXportStats *erdma_xport_stats(const ErdmaXport *x)
{
    return &fake_xport.stats;
}

ErdmaXportConn *erdma_xport_conn_open(ErdmaXport *x,
                                      const ErdmaXportConnParams *p,
                                      uint64_t now_ns)
{
    fake_xport.n_conns++;
    fake_xport.last_open = *p;
    return g_new0(ErdmaXportConn, 1);
}

void erdma_xport_conn_close(ErdmaXportConn *conn)
{
    fake_xport.n_conns--;
    g_free(conn);
}

void erdma_xport_conn_send(ErdmaXportConn *conn, ErdmaXportMsg *msg)
{
    msg->msn = conn->msn++;
}

uint32_t erdma_xport_conn_unsent(const ErdmaXportConn *conn)
{
    return conn->msn;
}

void erdma_xport_conn_expect(ErdmaXportConn *conn, bool is_expecting)
{
    conn->is_expecting = is_expecting;
}

void erdma_xport_conn_rx_resume(ErdmaXportConn *conn)
{
}

void erdma_xport_conn_terminate(ErdmaXportConn *conn, uint8_t status,
                                uint32_t msn)
{
}

void erdma_xport_conn_info(const ErdmaXportConn *conn,
                           ErdmaXportConnInfo *info)
{
    memset(info, 0, sizeof(*info));
}

bool erdma_xport_is_ours(const uint8_t *data, size_t len)
{
    return false;
}

void erdma_xport_input(ErdmaXport *x, const ErdmaDatagram *dg,
                       uint64_t now_ns)
{
    fake_xport.n_inputs++;
}

void erdma_xport_unblock(ErdmaXport *x)
{
    fake_xport.n_unblocks++;
}

uint64_t erdma_xport_poll(ErdmaXport *x, uint64_t now_ns,
                          unsigned max_packets)
{
    fake_xport.n_polls++;
    fake_xport.max_packets = max_packets;
    return fake_xport.poll_result;
}

void erdma_xport_record(ErdmaXport *x, ErdmaXportWrite *write, void *opaque)
{
}

void erdma_xport_record_end(ErdmaXport *x)
{
}
