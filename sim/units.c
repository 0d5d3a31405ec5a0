/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: numbers with units, see units.h. */

#include "qemu/osdep.h"
#include <math.h>
#include "units.h"

typedef struct Unit {
    const char *name;
    double factor;
} Unit;

static const Unit rates[] = {
    { "bit/s", 1 }, { "kbit/s", 1000 }, { "mbit/s", 1000000 },
    { "gbit/s", 1000000000 }, { "tbit/s", 1000000000000.0 }, { NULL, 0 },
};

static const Unit times[] = {
    { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
    { NULL, 0 },
};

static const Unit sizes[] = {
    { "b", 1 }, { "kb", 1000 }, { "mb", 1000000 }, { "gb", 1000000000 },
    { "kib", 1024 }, { "mib", 1048576 }, { "gib", 1073741824 },
    { "bdp", -1 }, { NULL, 0 },
};

static const Unit shares[] = { { "", 1 }, { "%", 0.01 }, { NULL, 0 } };

/* A finite number that is not negative, and what stands behind it */
static bool split(const char *text, double *number, const char **rest)
{
    char *end;

    *number = g_ascii_strtod(text, &end);
    if (end == text || !isfinite(*number) || *number < 0) {
        return false;
    }
    while (g_ascii_isspace(*end)) {
        end++;
    }
    *rest = end;
    return true;
}

/* NULL: not one of @units */
static const Unit *with_unit(const char *text, const Unit *units,
                             double *number)
{
    const char *rest;

    if (!split(text, number, &rest)) {
        return NULL;
    }
    for (; units->name; units++) {
        g_autofree char *trimmed = g_strchomp(g_strdup(rest));

        if (!g_ascii_strcasecmp(trimmed, units->name)) {
            return units;
        }
    }
    return NULL;
}

static bool is_zero(const char *text)
{
    double number;
    const char *rest;

    return split(text, &number, &rest) && !*rest && number == 0;
}

static const char *whole(const char *text, const Unit *units, uint64_t *out,
                         const char *allowed)
{
    double number;
    const Unit *unit = with_unit(text, units, &number);

    if (is_zero(text)) {
        *out = 0;
        return NULL;
    }
    if (!unit || number * unit->factor > 1e18) {
        return allowed;
    }
    *out = llround(number * unit->factor);
    return NULL;
}

const char *sim_parse_rate(const char *text, uint64_t *out)
{
    if (!strcmp(text, "unlimited")) {
        *out = 0;
        return NULL;
    }
    return whole(text, rates, out, "a rate with a unit, as in 10Gbit/s "
                 "(bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s), or unlimited");
}

const char *sim_parse_time(const char *text, uint64_t *out)
{
    return whole(text, times, out,
                 "a time with a unit, as in 40us (ns, us, ms, s)");
}

const char *sim_parse_size(const char *text, SimSize *out)
{
    double number;
    const Unit *unit = with_unit(text, sizes, &number);

    if (is_zero(text)) {
        *out = (SimSize) { 0, false };
        return NULL;
    }
    if (!unit || number * unit->factor > 1e15) {
        return "a size with a unit, as in 64KB or 1.5BDP (B, KB, MB, GB, "
               "KiB, MiB, GiB, or BDP: rate times round trip)";
    }
    out->is_bdp = unit->factor < 0;
    out->value = out->is_bdp ? number : number * unit->factor;
    return NULL;
}

const char *sim_parse_share(const char *text, double *out)
{
    double number;
    const Unit *unit = with_unit(text, shares, &number);

    if (!unit || number * unit->factor > 1) {
        return "a share: 0 to 1, or 0% to 100%";
    }
    *out = number * unit->factor;
    return NULL;
}

const char *sim_parse_number(const char *text, double *out)
{
    const char *rest;

    return split(text, out, &rest) && !*rest ? NULL :
           "a number that is not negative, without a unit";
}

const char *sim_parse_count(const char *text, uint64_t *out)
{
    double number;
    const char *rest;

    if (!split(text, &number, &rest) || *rest || number != floor(number) ||
        number > 1e15) {
        return "a whole number, without a unit";
    }
    *out = number;
    return NULL;
}

const char *sim_parse_switch(const char *text, bool *out)
{
    *out = !strcmp(text, "on");
    return *out || !strcmp(text, "off") ? NULL : "on or off";
}
