/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences between the QEMU releases that this device builds with (10.0 to
 * 10.2).  Nothing else in hw/erdma asks for a version.
 */

#ifndef HW_ERDMA_COMPAT_H
#define HW_ERDMA_COMPAT_H

/* class_init's second argument became const in 10.1 */
#if QEMU_VERSION_MAJOR > 10 || QEMU_VERSION_MINOR >= 1
#define ERDMA_CLASS_DATA const void
#else
#define ERDMA_CLASS_DATA void
#endif

#endif /* HW_ERDMA_COMPAT_H */
