/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The eRDMA device inside QEMU: its QOM type, its properties and what the
 * files of the shell (hw/erdma/erdma-*.c) call of each other.
 *
 * Everything here runs in the main thread or under the big QEMU lock.
 */

#ifndef HW_ERDMA_H
#define HW_ERDMA_H

#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qom/object.h"
#include "engine/engine.h"
#include "engine/fault.h"
#include "erdma-abi.h"
#include "erdma-compat.h"
#include "erdma-neigh.h"

#define TYPE_ERDMA "erdma"
OBJECT_DECLARE_TYPE(ErdmaState, ErdmaClass, ERDMA)

/* BAR 0: registers, static doorbells and, from here on, extended ones */
#define ERDMA_REGS_SIZE         0x1000
#define ERDMA_EXT_DB_START      ERDMA_DB_SPACE_END
#define ERDMA_DB_PAGE_SHIFT     12
#define ERDMA_MAX_EXT_DB        (0x10000 - \
                                 (ERDMA_EXT_DB_START >> ERDMA_DB_PAGE_SHIFT))
/*
 * As many pages as BAR 0 has room for in 2 MiB, which is what firmware and
 * Linux set aside behind a hot-plug port for prefetchable memory.
 */
#define ERDMA_DEFAULT_EXT_DB    ((0x200000 - ERDMA_EXT_DB_START) >> \
                                 ERDMA_DB_PAGE_SHIFT)
/* Registers below this offset keep what the guest wrote. */
#define ERDMA_LATCHED_END       0x080

typedef struct ErdmaFilter ErdmaFilter;
typedef struct ErdmaLoopPacket ErdmaLoopPacket;
typedef struct ErdmaMigration ErdmaMigration;
typedef struct ErdmaOutFrame ErdmaOutFrame;
typedef struct ErdmaRecordFile ErdmaRecordFile;

struct ErdmaClass {
    PCIDeviceClass parent_class;

    DeviceRealize parent_realize;
};

/* What the shell counts itself; engine and transport have their own. */
typedef struct ErdmaWireStats {
    uint64_t tx_loopback;       /* datagrams to ourselves */
    /* dropped: no NIC, its link is down, or too many wait for it */
    uint64_t tx_no_wire;
    uint64_t tx_no_hop;         /* dropped: next hop not known yet */
    uint64_t tx_blocked;        /* times that the backend was full */
    uint64_t rx_bad_checksum;
    uint64_t rx_stopped;        /* dropped: the machine is stopped */
    uint64_t arp_asked;
    uint64_t arp_answered;
} ErdmaWireStats;

/* What source and destination of a migration must have alike */
typedef struct ErdmaVmConfig {
    uint64_t mac;
    uint64_t mtu;
    uint64_t vectors;
    uint64_t max_qp;
    uint64_t max_cqe;
    uint64_t max_recv_wr;
    uint64_t max_mr_size;
    uint64_t n_ext_db;
    uint64_t version;
    uint64_t fw_version;
    uint64_t has_atomics;
    uint64_t has_mtt_va;
    uint64_t has_ext_db;
    uint64_t cc;
    uint64_t udp_port;
    uint64_t rx_buffer;
    uint64_t is_go_back_n;
} ErdmaVmConfig;

#define ERDMA_WIRE_MAX_HOPS     4096
#define ERDMA_WIRE_MAX_LOOP     256
/* More than the engine sends in one run */
#define ERDMA_WIRE_MAX_OUT      256

/* Sharing an ENI (filter) or owning a netdev (nic); one of them is set. */
typedef struct ErdmaWire {
    ErdmaFilter *filter;        /* NULL after its netdev went away */
    DeviceState *shared;        /* NIC that must not go; NULL: it has gone */
    Error *unplug_blocker;
    DeviceListener listener;    /* tells when it goes all the same */
    NICState *nic;
    ErdmaNeigh *hops;           /* own addresses too, with the own MAC */
    QTAILQ_HEAD(, ErdmaOutFrame) out;
    unsigned n_out;
    bool is_sending;
    /* Whose packet the backend did not take at once; never dereferenced. */
    const void *blocked_on;
    QLIST_ENTRY(ErdmaState) next_blocked;
    QTAILQ_HEAD(, ErdmaLoopPacket) loop;
    unsigned n_loop;
    bool has_room;              /* the engine has to hear of it */
    ErdmaWireStats stats;
} ErdmaWire;

struct ErdmaState {
    PCIDevice parent_obj;

    /* properties */
    char *eni;
    NICConf conf;               /* netdev=, mac= */
    char *cc;
    char *int_mode;
    char *fw_version;
    char *record;               /* file, or NULL */
    char *profile;
    uint64_t given;             /* bit per number and switch: the user set it */
    uint32_t mtu;               /* 0: the NIC's */
    uint32_t version;
    uint32_t vectors;
    uint32_t max_qp;
    uint32_t max_cqe;
    uint32_t max_recv_wr;
    uint64_t max_mr_size;
    uint32_t n_ext_db;
    uint64_t seed;
    bool has_atomics;
    bool has_mtt_va;
    bool has_ext_db;
    bool has_udp_checksum;
    bool has_int;
    ErdmaXportConfig xport;     /* all but mtu */

    /* state */
    char *name;                 /* for traces and logs */
    ErdmaRecordFile *recording; /* NULL: nothing is recorded */
    MACAddr mac;
    MemoryRegion bar0;
    MemoryRegion regs;
    MemoryRegion doorbells;
    uint32_t latched[ERDMA_LATCHED_END / 4];
    uint32_t status;            /* ERDMA_DEV_STATUS */
    int64_t init_seen_ns;       /* a fault hides INIT_DONE until then */
    uint32_t vectors_due;       /* bit per MSI-X vector to raise */
    ErdmaEngine *engine;
    bool is_in_engine;
    bool is_running;            /* the machine is */
    QEMUBH *bh;
    bool is_kicked;             /* a recorded or replayed event runs it */
    QEMUTimer *timer;
    int64_t timer_ns;           /* when it fires, INT64_MAX: not armed */
    VMChangeStateEntry *vm_state;
    ErdmaWire wire;

    /* migration */
    ErdmaVmConfig vm_config;    /* ours */
    ErdmaVmConfig vm_stream;    /* the stream's */
    ErdmaMigration *migration;  /* while it is going on, or NULL */
    Error *vm_blocker;          /* why it cannot be, or NULL */

    /* introspection */
    uint32_t inspect_from;      /* first number in lists of objects */
    uint64_t n_guest_errors;
    char guest_error[160];      /* the latest, cut to fit */
    bool has_refused_cmd;
    uint32_t refused_cmd;       /* the latest: sub-module << 8 | opcode */
    uint8_t refused_status;
};

/* erdma-props.c */
void erdma_props_class_init(ObjectClass *oc);
/* After the defaults, before the user's values */
void erdma_props_init(ErdmaState *s);
/* Sets a number or switch unless the user did; @val must be a valid one. */
void erdma_prop_preset(ErdmaState *s, const char *name, uint64_t val);

/* erdma-profile.c: presets what the profile says; before the check. */
bool erdma_profile_apply(ErdmaState *s, Error **errp);

/*
 * erdma-check.c: checks the properties and derives the engine's configuration
 * from them, all but the MTU.
 */
bool erdma_props_check(ErdmaState *s, ErdmaEngineConfig *cfg, Error **errp);
/* Warns of what will hardly do what the user wants; @cfg is complete. */
void erdma_props_warn(const ErdmaEngineConfig *cfg);

/* Name of the congestion control that is proposed, as the property cc= */
const char *erdma_cc_name(const ErdmaState *s);

/* erdma-regs.c */
extern const MemoryRegionOps erdma_regs_ops;

/* erdma-doorbell.c */
extern const MemoryRegionOps erdma_doorbell_ops;

/* erdma-pci.c */
void erdma_device_reset(ErdmaState *s);

/* erdma-port.c */
void erdma_port_init(ErdmaState *s, const ErdmaEngineConfig *cfg);
void erdma_port_exit(ErdmaState *s);
/* One datagram for the engine, from whatever context. */
void erdma_port_input(ErdmaState *s, const ErdmaDatagram *dg);
/* Run the engine soon. */
void erdma_port_kick(ErdmaState *s);

/*
 * erdma-eni.c: the wire is a NIC in this machine.  erdma_eni_find() sets the
 * MAC address and @mtu and has no side effects; erdma_eni_attach() has.
 */
bool erdma_eni_find(ErdmaState *s, uint32_t *mtu, Error **errp);
bool erdma_eni_attach(ErdmaState *s, Error **errp);
void erdma_eni_detach(ErdmaState *s);
/* The NIC to send as, or NULL; @vnet_len: header that its netdev wants. */
NetClientState *erdma_eni_nic(ErdmaState *s, unsigned *vnet_len);

/* erdma-nic.c: the wire is a netdev of our own. */
bool erdma_nic_check(ErdmaState *s, Error **errp);
void erdma_nic_attach(ErdmaState *s);
void erdma_nic_detach(ErdmaState *s);
/* No multiqueue, no vhost: our packets would pass QEMU by. */
bool erdma_netdev_check(NetClientState *nc, int n_queues, const char *prop,
                        Error **errp);

/* erdma-wire.c */
void erdma_wire_init(ErdmaState *s);
void erdma_wire_exit(ErdmaState *s);
/* Forgets packets that have not left, and those on their way to ourselves. */
void erdma_wire_reset(ErdmaState *s);
/* Forgets what the guest and the network told about addresses. */
void erdma_wire_forget(ErdmaState *s);
/* Tells the network where the addresses are that we send as. */
void erdma_wire_announce(ErdmaState *s);
/* The netdev or NIC has gone: what it did not take is lost. */
void erdma_wire_unblock(ErdmaState *s);
/* As in ErdmaPort */
void erdma_wire_conn_open(ErdmaState *s, uint32_t local_ip, uint32_t peer_ip);
bool erdma_wire_transmit(ErdmaState *s, const ErdmaDatagram *dg);
/*
 * Sends what transmit() and ARP have queued; not from inside the engine.  The
 * device may be gone afterwards, but for the caller's reference.
 */
void erdma_wire_flush(ErdmaState *s);
/* Queues a copy for erdma_wire_drain(); false when that fills the queue. */
bool erdma_wire_defer(ErdmaState *s, const ErdmaDatagram *dg);
/* What was deferred and not drained, in order */
void erdma_wire_foreach_loop(ErdmaState *s,
                             void (*func)(void *opaque,
                                          const ErdmaDatagram *dg),
                             void *opaque);
/* Tells the engine what was deferred: datagrams, and room to send. */
void erdma_wire_drain(ErdmaState *s, uint64_t now_ns);
/* A frame from the wire.  Returns whether it was ours. */
bool erdma_wire_rx(ErdmaState *s, const uint8_t *frame, size_t len,
                   bool is_csum_ok);

/* erdma-stats.c */
void erdma_stats_class_init(ObjectClass *oc);

/* erdma-record.c */
/* Opens the file that the property names, if it does. */
bool erdma_record_open(ErdmaState *s, Error **errp);
/* Begins; right after the engine was made. */
void erdma_record_begin(ErdmaState *s);
/* Ends, while the engine is still there. */
void erdma_record_close(ErdmaState *s);

/* erdma-fault.c: the device is there; rules for it begin to act. */
void erdma_faults_attach(ErdmaState *s);

/* erdma-inspect.c */
void erdma_inspect_class_init(ObjectClass *oc);

/* erdma-vmstate.c */
/* Right before or after the engine is made, with its configuration */
void erdma_vmstate_init(ErdmaState *s, const ErdmaEngineConfig *cfg);
void erdma_vmstate_exit(ErdmaState *s);
/* From now on the device cannot migrate, as it is recorded. */
bool erdma_vmstate_block(ErdmaState *s, Error **errp);
void erdma_vmstate_unblock(ErdmaState *s);
extern const VMStateDescription vmstate_erdma;

#endif /* HW_ERDMA_H */
