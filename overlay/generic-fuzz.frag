        /* SPDX-License-Identifier: GPL-2.0-or-later */
        .name = "erdma",
        .args = "-machine q35 -nodefaults -netdev hubport,id=net0,hubid=0 "
        "-device virtio-net-pci,netdev=net0,id=nic0,mac=52:54:00:00:00:01 "
        "-device erdma,eni=nic0,seed=1",
        .objects = "erdma*",
    },{
