/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Next hops: which MAC address takes packets for an IPv4 address.
 *
 * Bounded; the entry that was not used for the longest time makes room.
 * Nothing is allocated before the first entry.
 */

#ifndef HW_ERDMA_NEIGH_H
#define HW_ERDMA_NEIGH_H

typedef struct ErdmaNeigh ErdmaNeigh;

ErdmaNeigh *erdma_neigh_new(unsigned max_entries);
void erdma_neigh_free(ErdmaNeigh *n);
void erdma_neigh_clear(ErdmaNeigh *n);

/* @ip is at @mac.  Returns true when that is news. */
bool erdma_neigh_learn(ErdmaNeigh *n, uint32_t ip, const uint8_t *mac);
/* The same, but only if there is an entry for @ip. */
bool erdma_neigh_update(ErdmaNeigh *n, uint32_t ip, const uint8_t *mac);
/* Those that are known, last used first; @func must not change them. */
void erdma_neigh_foreach(ErdmaNeigh *n,
                         void (*func)(void *opaque, uint32_t ip,
                                      const uint8_t *mac),
                         void *opaque);
/* NULL when unknown; valid until the next call. */
const uint8_t *erdma_neigh_lookup(ErdmaNeigh *n, uint32_t ip);
/* Unknown @ip: may somebody ask for it now?  If so this counts as asked. */
bool erdma_neigh_ask(ErdmaNeigh *n, uint32_t ip, uint64_t now_ns);

#endif /* HW_ERDMA_NEIGH_H */
