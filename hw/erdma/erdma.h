/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The eRDMA device inside QEMU: its QOM type, its properties and what the
 * files of the shell (hw/erdma/erdma-*.c) call of each other.
 */

#ifndef HW_ERDMA_H
#define HW_ERDMA_H

#include "hw/pci/pci_device.h"
#include "qom/object.h"
#include "erdma-abi.h"
#include "erdma-compat.h"

#define TYPE_ERDMA "erdma"
OBJECT_DECLARE_TYPE(ErdmaState, ErdmaClass, ERDMA)

struct ErdmaClass {
    PCIDeviceClass parent_class;

    DeviceRealize parent_realize;
};

struct ErdmaState {
    PCIDevice parent_obj;

    /* state */
    MemoryRegion bar0;
};

#endif /* HW_ERDMA_H */
