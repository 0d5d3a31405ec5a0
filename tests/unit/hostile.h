/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests of snapshots: single fields that somebody has tampered with. */

#ifndef HOSTILE_H
#define HOSTILE_H

typedef struct Hostile {
    const char *array;
    const char *field;
    size_t offset;
    size_t size;
    uint64_t val;
    const char *error;          /* what it must have; NULL: the field */
} Hostile;

#define BAD(_type, _array, _field, _val, _error) \
    { #_array, #_field, offsetof(_type, _field), \
      sizeof(((_type *)0)->_field), _val, _error }

#define MANY    0xfffffff0u

/* The field of @h is at @p: gives it the value, whatever the byte order is. */
static inline void hostile_set(const Hostile *h, void *p)
{
    switch (h->size) {
    case 1:
        *(uint8_t *)p = h->val;
        break;
    case 2:
        *(uint16_t *)p = h->val;
        break;
    case 4:
        *(uint32_t *)p = h->val;
        break;
    default:
        *(uint64_t *)p = h->val;
        break;
    }
}

static inline void hostile_expect(const Hostile *h, const char *error)
{
    const char *want = h->error ? h->error : h->field;

    if (!error || !strstr(error, want)) {
        g_error("%s.%s = %" PRIu64 ": \"%s\" has no \"%s\"", h->array,
                h->field, h->val, error ? error : "", want);
    }
}

#endif /* HOSTILE_H */
