/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The migration stream, one file per storey: erdma-vmstate.c has the shell and
 * puts all of it together.
 */

#ifndef HW_ERDMA_VMSTATE_H
#define HW_ERDMA_VMSTATE_H

#include "migration/vmstate.h"
#include "engine/snapshot.h"

/* n_@_array elements, which loading allocates */
#define ERDMA_VM_ARRAY(_array, _state, _vmsd, _type) {                  \
    .name = #_array,                                                    \
    .version_id = 1,                                                    \
    .vmsd = &(_vmsd),                                                   \
    .num_offset = vmstate_offset_value(_state, n_##_array, uint32_t),   \
    .size = sizeof(_type),                                              \
    .flags = VMS_STRUCT | VMS_VARRAY_UINT32 | VMS_ALLOC | VMS_POINTER,  \
    .offset = vmstate_offset_pointer(_state, _array, _type),            \
}

extern const VMStateDescription vmstate_erdma_hdr_snap;
extern const VMStateDescription vmstate_erdma_xport_snap;
extern const VMStateDescription vmstate_erdma_engine_snap;

#endif /* HW_ERDMA_VMSTATE_H */
