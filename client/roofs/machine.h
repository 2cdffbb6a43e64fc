/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* This machine, as roofs see it: its harts by kind of core, and how they share
 *
 * Roofs differ by kind, so harts are of one kind only where their core, its vectors and its highest
 * clock are the same. Of each core one hart counts: siblings share all that is measured here.
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
	bool sibling;    /* of a hart before it on the same core */
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

/* Which harts share a cluster, or else the last cache, with hart `number`: sets `ret_set` and
 * returns true where the kernel says so. */
bool machine_cluster(uint32_t number, cpu_set_t *ret_set);

/* The caches of data that hart `number` reaches, as the kernel says: of each level, L1 first, how many
 * bytes it has and how many harts share it. A level of which it says no size has 0 bytes; no levels if it
 * says nothing. */
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
