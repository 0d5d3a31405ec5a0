/* SPDX-License-Identifier: GPL-2.0-or-later */
#define ETH_ALEN 6
