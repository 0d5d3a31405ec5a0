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
#include "qapi/error.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "erdma.h"

#define ERDMA_BAR0_SIZE (4 * MiB)

static void erdma_pci_realize(PCIDevice *pci_dev, Error **errp)
{
    ErdmaState *s = ERDMA(pci_dev);
    unsigned i;

    memory_region_init(&s->bar0, OBJECT(s), "erdma-bar0", ERDMA_BAR0_SIZE);
    if (msix_init_exclusive_bar(pci_dev, ERDMA_MAX_VECTORS, ERDMA_BAR_MSIX,
                                errp)) {
        return;
    }
    for (i = 0; i < ERDMA_MAX_VECTORS; i++) {
        msix_vector_use(pci_dev, i);
    }
    if (pci_is_express(pci_dev)) {
        pcie_endpoint_cap_init(pci_dev, 0);
        pcie_cap_flr_init(pci_dev);
    }
    pci_register_bar(pci_dev, ERDMA_BAR_REGS,
                     PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64, &s->bar0);
}

static void erdma_pci_exit(PCIDevice *pci_dev)
{
    msix_unuse_all_vectors(pci_dev);
    msix_uninit_exclusive_bar(pci_dev);
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

static void erdma_class_init(ObjectClass *oc, ERDMA_CLASS_DATA *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(oc);
    ErdmaClass *ec = ERDMA_CLASS(oc);

    pc->realize = erdma_pci_realize;
    pc->exit = erdma_pci_exit;
    pc->vendor_id = ERDMA_PCI_VENDOR_ID;
    pc->device_id = ERDMA_PCI_DEVICE_ID;
    pc->class_id = PCI_CLASS_NETWORK_ETHERNET;
    device_class_set_parent_realize(dc, erdma_realize, &ec->parent_realize);
    dc->desc = "Alibaba Cloud eRDMA HCA";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo erdma_info = {
    .name = TYPE_ERDMA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(ErdmaState),
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
