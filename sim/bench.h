/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: what it costs. */

#ifndef ERDMA_SIM_BENCH_H
#define ERDMA_SIM_BENCH_H

/*
 * Prints packets per second of processor time and memory for 10 to 10,000
 * flows, or for @n_flows alone if that is not 0.
 */
void bench(unsigned n_flows);

#endif /* ERDMA_SIM_BENCH_H */
