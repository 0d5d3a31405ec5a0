/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Next hops: a hash table with the entries in order of their last use.
 *
 * The guest's packets and the network fill it, so its size is capped and so
 * is the rate of questions.
 */

#include "qemu/osdep.h"
#include "qemu/queue.h"
#include "erdma-frame.h"
#include "erdma-neigh.h"

/* Between two questions for one address */
#define ERDMA_NEIGH_ASK_NS      (100 * 1000 * 1000ull)

typedef struct ErdmaNeighEntry {
    uint32_t ip;
    bool is_known;              /* else only asked for */
    uint8_t mac[ERDMA_MAC_LEN];
    uint64_t asked_ns;
    QTAILQ_ENTRY(ErdmaNeighEntry) next;
} ErdmaNeighEntry;

struct ErdmaNeigh {
    unsigned max_entries;
    GHashTable *table;          /* address -> ErdmaNeighEntry, owned */
    QTAILQ_HEAD(, ErdmaNeighEntry) entries;     /* last used first */
};

ErdmaNeigh *erdma_neigh_new(unsigned max_entries)
{
    ErdmaNeigh *n = g_new0(ErdmaNeigh, 1);

    n->max_entries = max_entries;
    n->table = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    QTAILQ_INIT(&n->entries);
    return n;
}

void erdma_neigh_free(ErdmaNeigh *n)
{
    if (n) {
        g_hash_table_destroy(n->table);
        g_free(n);
    }
}

void erdma_neigh_clear(ErdmaNeigh *n)
{
    QTAILQ_INIT(&n->entries);
    g_hash_table_remove_all(n->table);
}

static ErdmaNeighEntry *erdma_neigh_find(ErdmaNeigh *n, uint32_t ip)
{
    ErdmaNeighEntry *entry = QTAILQ_FIRST(&n->entries);

    if (entry && entry->ip == ip) {
        return entry;
    }
    entry = g_hash_table_lookup(n->table, GUINT_TO_POINTER(ip));
    if (entry) {
        QTAILQ_REMOVE(&n->entries, entry, next);
        QTAILQ_INSERT_HEAD(&n->entries, entry, next);
    }
    return entry;
}

static ErdmaNeighEntry *erdma_neigh_add(ErdmaNeigh *n, uint32_t ip)
{
    ErdmaNeighEntry *entry;

    if (g_hash_table_size(n->table) >= n->max_entries) {
        entry = QTAILQ_LAST(&n->entries);
        QTAILQ_REMOVE(&n->entries, entry, next);
        g_hash_table_remove(n->table, GUINT_TO_POINTER(entry->ip));
    }
    entry = g_new0(ErdmaNeighEntry, 1);
    entry->ip = ip;
    g_hash_table_insert(n->table, GUINT_TO_POINTER(ip), entry);
    QTAILQ_INSERT_HEAD(&n->entries, entry, next);
    return entry;
}

static bool erdma_neigh_set(ErdmaNeighEntry *entry, const uint8_t *mac)
{
    if (entry->is_known && !memcmp(entry->mac, mac, ERDMA_MAC_LEN)) {
        return false;
    }
    entry->is_known = true;
    memcpy(entry->mac, mac, ERDMA_MAC_LEN);
    return true;
}

bool erdma_neigh_learn(ErdmaNeigh *n, uint32_t ip, const uint8_t *mac)
{
    ErdmaNeighEntry *entry = erdma_neigh_find(n, ip);

    return erdma_neigh_set(entry ? entry : erdma_neigh_add(n, ip), mac);
}

bool erdma_neigh_update(ErdmaNeigh *n, uint32_t ip, const uint8_t *mac)
{
    ErdmaNeighEntry *entry;

    entry = g_hash_table_lookup(n->table, GUINT_TO_POINTER(ip));
    return entry && erdma_neigh_set(entry, mac);
}

void erdma_neigh_foreach(ErdmaNeigh *n,
                         void (*func)(void *opaque, uint32_t ip,
                                      const uint8_t *mac),
                         void *opaque)
{
    ErdmaNeighEntry *entry;

    QTAILQ_FOREACH(entry, &n->entries, next) {
        if (entry->is_known) {
            func(opaque, entry->ip, entry->mac);
        }
    }
}

const uint8_t *erdma_neigh_lookup(ErdmaNeigh *n, uint32_t ip)
{
    ErdmaNeighEntry *entry = erdma_neigh_find(n, ip);

    return entry && entry->is_known ? entry->mac : NULL;
}

bool erdma_neigh_ask(ErdmaNeigh *n, uint32_t ip, uint64_t now_ns)
{
    ErdmaNeighEntry *entry = erdma_neigh_find(n, ip);

    if (!entry) {
        entry = erdma_neigh_add(n, ip);
    } else if (entry->is_known ||
               now_ns - entry->asked_ns < ERDMA_NEIGH_ASK_NS) {
        return false;
    }
    entry->asked_ns = now_ns;
    return true;
}
