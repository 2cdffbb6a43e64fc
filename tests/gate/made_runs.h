/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Made runs: two sides of runs whose truth is known, for what compares them
 *
 * A run has 200 functions, of which the first three take 20, 5 and 1 % of it, sampled at 99 Hz.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/compare/compare.h"
#include "daemon/compare/distribution.h"

#define MADE_FUNCTIONS 200
#define MADE_RUNS_MAX 40

struct made_scenario {
	size_t n; /* runs on each side; at most MADE_RUNS_MAX / 2 */
	double seconds;
	double first_share; /* of the first function, if not 20 % */
	double all;         /* growth of everything: 0.05 is 5 % */
	unsigned function;  /* and of one function beside that */
	double growth;      /* of it */
	double outliers;    /* share of runs that take 1.3 times as long */
	double layout; /* spread of what a build's layout does to each function, one build a side */
	double drift;  /* correlation of the shared factor from one run to the next */
	bool one_after_other; /* all of the baseline first */
};

struct made_runs {
	double samples[MADE_FUNCTIONS * MADE_RUNS_MAX], total[MADE_RUNS_MAX];
	bool candidate[MADE_RUNS_MAX];
	int64_t begin_ns[MADE_RUNS_MAX];
};

void make_runs(
	const struct made_scenario *s, struct random_sequence *random, struct made_runs *ret_runs);

/* Borrowed, of n runs a side. */
struct compare_runs made_as_input(const struct made_runs *m, size_t n);
