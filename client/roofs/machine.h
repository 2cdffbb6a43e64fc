/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* This machine for measuring roofs: its harts by kind of core, and what they share
 *
 * Harts are of one kind if their core, its vectors and its highest clock are the same, since these
 * determine roofs. Only one hart of each core is measured: its siblings share everything measured
 * here.
 */

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/roofs/roofs.h"

struct machine_hart {
	uint32_t number; /* Linux's */
	uint32_t kind;   /* index into kinds */
	uint32_t vlenb;  /* bytes of an RVV register; 0: no RVV 1.0 */
	uint64_t khz;    /* its highest clock by cpufreq; 0: unknown */
	bool sibling;    /* an earlier hart is on the same core */
};

struct machine {
	char id[ROOF_TEXT_BYTES], kernel[ROOF_TEXT_BYTES];
	struct machine_hart *hart; /* that this process may use, ascending */
	size_t n_harts;
	struct roofs_kind kind[ROOFS_KINDS_MAX];
	size_t n_kinds;
};

/* Look at this machine; the caller frees with machine_clear. 0, -ENOMEM, -errno of
 * sched_getaffinity(2). O(harts^2) at worst. */
int machine_look(struct machine *ret_machine);
void machine_clear(struct machine *m);

/* "0-3,8" as a set; false if it is no list. */
bool machine_list(const char *list, cpu_set_t *ret_set);

/* Find the harts that share a cluster, or else the last cache, with hart `number`. False: the
 * kernel does not say. */
bool machine_cluster(uint32_t number, cpu_set_t *ret_set);

/* The data caches of hart `number`, from the kernel: for each level, L1 first, its bytes and the
 * number of harts that share it. A level of unknown size has 0 bytes; no levels if the kernel lists
 * none. */
#define MACHINE_CACHES_MAX 5
struct machine_caches {
	struct {
		uint64_t bytes;
		uint32_t n_sharing;
	} level[MACHINE_CACHES_MAX];
	uint32_t n_levels;
};
struct machine_caches machine_caches(uint32_t number);

/* Mark `r` as stale, and say why, unless its machine, kernel and kinds of harts are those of `m`. */
void roofs_compare(struct roofs *r, const struct machine *m);
