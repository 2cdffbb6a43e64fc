/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plan: the roofs to measure, each with its kernel and its importance */

#include "client/roofs/measure/crew.h"
#include "client/roofs/measure/scope.h"
#include "client/roofs/measure/statistics.h"
#include "client/roofs/measure/sweep.h"

#define PLAN_ROOFS_MAX 512
#define REPEATS_WANTED 9 /* the median is between the 2nd and the 8th in 96.1 % */
#define REPEATS_LEAST 6  /* of fewer, not even the extremes reach 95 % */
#define REPEATS_MOST 15  /* if time is left */

struct planned {
	const struct kernel *kernel;
	const char *level; /* of memory */
	uint64_t bytes;
	uint64_t run_ns, warm_ns;
	unsigned rank; /* 1: always wanted; the highest are left out first if time is short */

	/* Results in the order of time; rates of disturbed repeats are in `bad`. */
	double rate[REPEATS_MOST], hz[REPEATS_MOST], bad[REPEATS_MOST];
	size_t n, n_bad;
};

struct plan {
	struct planned roof[PLAN_ROOFS_MAX];
	size_t n;
	size_t n_left_out; /* since time ran out */
};

/* Try each kernel for a moment and plan the best: for each unit, precision and operation by the number of
 * registers; for each level and pattern by the unit. */
void plan_compute(struct plan *p, struct crew *c, const struct scope *s);
void plan_memory(struct plan *p, struct crew *c, const struct scope *s, const struct level *level);

/* Leave out the least important roofs until `left_ns` is enough for the others. */
void plan_cut(struct plan *p, uint64_t left_ns);
