/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PCI function: identity, BARs, MSI-X and its life from realize to exit.
 *
 * Reference: docs/specs/erdma.rst, "PCI identity"
 */

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/resettable.h"
#include "qapi/error.h"
#include "qemu/host-utils.h"
#include "qemu/module.h"
#include "erdma.h"
#include "trace.h"

#define ERDMA_DEFAULT_MTU       1500

/* What the driver can see of a reset: the queues are gone, nothing moves. */
void erdma_device_reset(ErdmaState *s)
{
    trace_erdma_reset(s->name);
    erdma_engine_reset(s->engine);
    erdma_wire_reset(s);
    s->vectors_due = 0;
    s->status = 0;
    s->init_seen_ns = 0;
}

static void erdma_reset_hold(Object *obj, ResetType type)
{
    ErdmaState *s = ERDMA(obj);

    if (!s->engine) {
        return;         /* unrealized through QOM, and still on its bus */
    }
    erdma_device_reset(s);
    erdma_wire_forget(s);
    memset(s->latched, 0, sizeof(s->latched));
}

static void erdma_init_bars(ErdmaState *s, const ErdmaEngineConfig *cfg)
{
    PCIDevice *pci_dev = PCI_DEVICE(s);
    uint64_t size = ERDMA_EXT_DB_START;

    size += (uint64_t)cfg->n_ext_db << ERDMA_DB_PAGE_SHIFT;
    memory_region_init(&s->bar0, OBJECT(s), "erdma-bar0", pow2ceil(size));
    memory_region_init_io(&s->regs, OBJECT(s), &erdma_regs_ops, s,
                          "erdma-regs", ERDMA_REGS_SIZE);
    memory_region_add_subregion(&s->bar0, 0, &s->regs);
    memory_region_init_io(&s->doorbells, OBJECT(s), &erdma_doorbell_ops, s,
                          "erdma-doorbells", size - ERDMA_SQ_DB_SPACE);
    memory_region_add_subregion(&s->bar0, ERDMA_SQ_DB_SPACE, &s->doorbells);
    /* Reads have no side effects; a slot has more prefetchable space. */
    pci_register_bar(pci_dev, ERDMA_BAR_REGS,
                     PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->bar0);
}

/* A region within another one holds on to its owner, which is the device. */
static void erdma_exit_bars(ErdmaState *s)
{
    memory_region_del_subregion(&s->bar0, &s->regs);
    memory_region_del_subregion(&s->bar0, &s->doorbells);
}

static bool erdma_init_msix(ErdmaState *s, Error **errp)
{
    PCIDevice *pci_dev = PCI_DEVICE(s);
    unsigned i;

    if (msix_init_exclusive_bar(pci_dev, s->vectors, ERDMA_BAR_MSIX, errp)) {
        return false;
    }
    for (i = 0; i < s->vectors; i++) {
        msix_vector_use(pci_dev, i);
    }
    return true;
}

/* Which wire, which address, which MTU.  No side effects outside of us. */
static bool erdma_find_wire(ErdmaState *s, ErdmaEngineConfig *cfg,
                            Error **errp)
{
    uint32_t nic_mtu = 0;

    if (!(s->eni ? erdma_eni_find(s, &nic_mtu, errp) :
                   erdma_nic_check(s, errp))) {
        return false;
    }
    cfg->xport.mtu = s->mtu ? s->mtu : nic_mtu ? nic_mtu : ERDMA_DEFAULT_MTU;
    return true;
}

static bool erdma_attach_wire(ErdmaState *s, Error **errp)
{
    if (s->eni) {
        return erdma_eni_attach(s, errp);
    }
    erdma_nic_attach(s);
    return true;
}

/* Everything but the attachment to the wire */
static void erdma_unrealize(ErdmaState *s)
{
    PCIDevice *pci_dev = PCI_DEVICE(s);

    erdma_vmstate_exit(s);
    erdma_wire_exit(s);
    erdma_record_close(s);
    erdma_port_exit(s);
    if (pci_is_express(pci_dev)) {
        pcie_cap_exit(pci_dev);
    }
    msix_unuse_all_vectors(pci_dev);
    msix_uninit_exclusive_bar(pci_dev);
    erdma_exit_bars(s);
}

static void erdma_pci_realize(PCIDevice *pci_dev, Error **errp)
{
    ErdmaState *s = ERDMA(pci_dev);
    ErdmaEngineConfig cfg;

    g_free(s->name);
    s->name = g_strdup(DEVICE(s)->id ? DEVICE(s)->id : TYPE_ERDMA);
    if (!erdma_props_check(s, &cfg, errp) || !erdma_find_wire(s, &cfg, errp) ||
        !erdma_record_open(s, errp)) {
        return;
    }
    erdma_init_bars(s, &cfg);
    if (!erdma_init_msix(s, errp)) {
        erdma_exit_bars(s);
        erdma_record_close(s);
        return;
    }
    if (pci_is_express(pci_dev)) {
        pcie_endpoint_cap_init(pci_dev, 0);
        pcie_cap_flr_init(pci_dev);
    }
    erdma_wire_init(s);
    erdma_vmstate_init(s, &cfg);
    erdma_port_init(s, &cfg);
    erdma_record_begin(s);
    if (!erdma_attach_wire(s, errp)) {
        erdma_unrealize(s);
        return;
    }
    erdma_faults_attach(s);
    erdma_props_warn(&cfg);
    trace_erdma_realize(s->name, s->eni ? s->eni : "of its own",
                        cfg.xport.mtu);
}

static void erdma_pci_exit(PCIDevice *pci_dev)
{
    ErdmaState *s = ERDMA(pci_dev);

    trace_erdma_exit(s->name);
    erdma_eni_detach(s);
    erdma_nic_detach(s);
    erdma_unrealize(s);
}

/* FLR is a write to the PCIe capability. */
static void erdma_config_write(PCIDevice *pci_dev, uint32_t addr,
                               uint32_t val, int len)
{
    pci_default_write_config(pci_dev, addr, val, len);
    if (pci_is_express(pci_dev)) {
        pcie_cap_flr_write_config(pci_dev, addr, val, len);
    }
}

/* The capability follows the slot: PCIe and conventional PCI both work. */
static void erdma_realize(DeviceState *dev, Error **errp)
{
    PCIDevice *pci_dev = PCI_DEVICE(dev);

    if (pci_bus_is_express(pci_get_bus(pci_dev))) {
        pci_dev->cap_present |= QEMU_PCI_CAP_EXPRESS;
    }
    ERDMA_GET_CLASS(dev)->parent_realize(dev, errp);
}

/* What no property sets keeps the transport's default. */
static void erdma_init(Object *obj)
{
    erdma_xport_config_default(&ERDMA(obj)->xport);
    erdma_props_init(ERDMA(obj));
}

static void erdma_finalize(Object *obj)
{
    g_free(ERDMA(obj)->name);
}

static void erdma_class_init(ObjectClass *oc, ERDMA_CLASS_DATA *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);
    ErdmaClass *ec = ERDMA_CLASS(oc);

    pc->realize = erdma_pci_realize;
    pc->exit = erdma_pci_exit;
    pc->config_write = erdma_config_write;
    pc->vendor_id = ERDMA_PCI_VENDOR_ID;
    pc->device_id = ERDMA_PCI_DEVICE_ID;
    pc->class_id = PCI_CLASS_NETWORK_ETHERNET;
    rc->phases.hold = erdma_reset_hold;
    device_class_set_parent_realize(dc, erdma_realize, &ec->parent_realize);
    dc->desc = "Alibaba Cloud eRDMA HCA";
    dc->vmsd = &vmstate_erdma;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    erdma_props_class_init(oc);
    erdma_stats_class_init(oc);
    erdma_inspect_class_init(oc);
}

static const TypeInfo erdma_info = {
    .name = TYPE_ERDMA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(ErdmaState),
    .instance_init = erdma_init,
    .instance_finalize = erdma_finalize,
    .class_size = sizeof(ErdmaClass),
    .class_init = erdma_class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { INTERFACE_CONVENTIONAL_PCI_DEVICE },
        { }
    },
};

static void erdma_register_types(void)
{
    type_register_static(&erdma_info);
}

type_init(erdma_register_types)
