# SPDX-License-Identifier: GPL-2.0-or-later
#
# The devices of our QEMU. Everything else is off: fewer devices, a smaller
# program, a shorter build. A new symbol here rebuilds all of QEMU and makes
# ccache worthless (config-devices.h is included everywhere): settle it early.

# both machines that the device is tested on
CONFIG_I440FX=y
CONFIG_Q35=y

# where a PCI Express device goes, with hot-plug; an IOMMU in front of it
CONFIG_PCIE_PORT=y
CONFIG_PCIE_PCI_BRIDGE=y
CONFIG_PCI_BRIDGE=y
CONFIG_VTD=y

# the device
CONFIG_ERDMA=y

# the NICs that it is tested beside
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_NET=y
CONFIG_E1000E_PCI_EXPRESS=y

# guest control: virtio-serial to the agent, an exit code, entropy, a disk
# (saved states live in qcow2)
CONFIG_VIRTIO_SERIAL=y
CONFIG_VIRTIO_RNG=y
CONFIG_VIRTIO_BLK=y
CONFIG_ISA_DEBUG=y

# QEMU 10.2 does not link without these: it has no stub for the function that
# its ACPI code calls
CONFIG_PXB=y
CONFIG_CXL=y
CONFIG_CXL_MEM_DEVICE=y
