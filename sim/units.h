/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator: numbers with units, as people write them.
 *
 * Each function returns NULL and sets *@out, or returns what is allowed.
 * Spaces around and between number and unit do not matter.
 */

#ifndef ERDMA_SIM_UNITS_H
#define ERDMA_SIM_UNITS_H

/* bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; "unlimited" is 0 */
const char *sim_parse_rate(const char *text, uint64_t *out);
/* ns, us, ms, s; 0 needs no unit */
const char *sim_parse_time(const char *text, uint64_t *out);

/* A size, or a multiple of rate times round trip */
typedef struct SimSize {
    double value;
    bool is_bdp;
} SimSize;

/* B, KB, MB, GB (powers of 1000), KiB, MiB, GiB, BDP; 0 needs no unit */
const char *sim_parse_size(const char *text, SimSize *out);
/* 0 to 1, or 0% to 100% */
const char *sim_parse_share(const char *text, double *out);
const char *sim_parse_number(const char *text, double *out);
const char *sim_parse_count(const char *text, uint64_t *out);
/* on, off */
const char *sim_parse_switch(const char *text, bool *out);

#endif /* ERDMA_SIM_UNITS_H */
