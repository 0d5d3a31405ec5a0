/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration: not possible yet.  QEMU refuses it, naming the device.
 */

#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "erdma.h"

const VMStateDescription vmstate_erdma = {
    .name = TYPE_ERDMA,
    .unmigratable = 1,
};
