/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Comparison: is the candidate slower than the baseline, in which functions, and how certain is the
 * result
 *
 * Two sides of runs, each run a row of samples by function and a total of CPU time. Two questions
 * are tested together, so that a comparison of equal sides is called slower in one case of twenty:
 *
 * - Did the total grow? Welch's test of the logarithms, on trimmed means (Yuen), since one noisy
 * neighbour is no regression.
 * - Did a function grow beside the others? Runs differ by a factor that all functions share (clock,
 *   neighbours), so each is divided by the sum of the others that did not shift: the stable set.
 *   Dividing by the whole would flag all functions when one becomes faster. Variances are moderated
 *   (few runs say little about one function's variance, but much about that of all), and the
 *   largest t over all functions is compared with that of permuted labels (max-T), which is valid
 *   for dependent tests.
 *
 * There are three answers: slower, within the margin, and not enough to tell. The last one lists
 * what is missing.
 *
 *     samples [function × run]     total [run]
 *          │ tested: ≥ 10 a run        │
 *          ▼                           ▼
 *     stable set ──► shift, variance   trimmed Welch
 *          │              │            │
 *          ▼              ▼            ▼
 *     moderated t ──► max-T over ───► verdict
 *                     999 permutations
 *
 * Source: K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 1974;
 * G. Smyth, "Linear models and empirical Bayes methods", 2004 (moderated t); P. Westfall and
 * S. Young, "Resampling-based multiple testing", 1993 (max-T).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/memory.h"

#define COMPARE_RUNS_MIN 5        /* of a side: 252 ways to label ten runs, fewer cannot reach α */
#define COMPARE_RUNS_MAX 4096     /* runs of both sides: four times as many as a request can name */
#define COMPARE_SIDE_MAX 512      /* of a request: years of nightly runs */
#define COMPARE_SELECTIONS_MAX 64 /* selections of a side: as many as a command line has */
#define COMPARE_SAMPLES_MIN 10    /* mean samples per run for a function to be tested */
#define COMPARE_CELLS_MAX (1u << 24) /* functions × runs, in two tables of 128 MB */
#define COMPARE_PERMUTATIONS 999     /* p in steps of a thousandth: α of two looks is 9 of them */
#define COMPARE_LOOKS_MAX 20         /* more looks would leave an α below one step */
#define COMPARE_HOT_SHARE 0.02       /* functions from here on are a tier of their own */

struct compare_runs {
	size_t n_functions, n_runs;
	const double *samples;   /* [function * n_runs + run]: own samples */
	const double *total;     /* [run]: CPU time, in any unit, above 0 */
	const bool *candidate;   /* [run]: its side */
	const int64_t *begin_ns; /* [run]: when it began, by one clock */
	/* [run]: time that one of its samples represents, since rates may differ; NULL: the same in
	 * all runs */
	const double *weight;
};

struct compare_options {
	double margin;    /* least growth that matters, 0.02 is 2 % */
	double allowance; /* growth that another layout of the same code may make; 0: none */
	double effect;    /* growth for which the number of runs is planned */
	unsigned
		looks; /* comparisons that are planned before the last, with it; 1 to the maximum */
	uint64_t seed; /* of the permutations */
	bool any_order; /* decide even if the runs of the two sides did not alternate */
};
#define COMPARE_OPTIONS_DEFAULT                                                                    \
	((struct compare_options){.margin = 0.02, .effect = 0.05, .looks = 1, .seed = 1})

enum compare_verdict {
	COMPARE_WITHIN,
	COMPARE_SLOWER,
	COMPARE_UNDECIDED,
};

/* Reasons why a comparison is undecided. */
enum compare_lack {
	COMPARE_FEW_RUNS = 1 << 0,       /* less than COMPARE_RUNS_MIN on a side */
	COMPARE_NOT_IN_TURNS = 1 << 1,   /* the difference may come from changes over time */
	COMPARE_TOTAL_WIDE = 1 << 2,     /* the total's bound is above the margin */
	COMPARE_FUNCTIONS_WIDE = 1 << 3, /* the bound of the functions' additions to the total is */
};

/* Growth as a fraction: 0.05 is 5 % slower. */
struct compare_change {
	double change;    /* estimate */
	double low, high; /* its 95 % interval */
	double above;     /* its bound from above, 95 %, one-sided */
	double p;         /* one-sided; for functions, adjusted for all tests */
	/* the least growth that would have been detected in four of five cases */
	double seen_from;
	/* runs on each side to detect the planned effect in four of five cases */
	double runs_needed;
};

struct compare_function {
	bool is_tested;
	bool is_stable;   /* in the stable set */
	bool is_slower;   /* it grew by more than chance explains, and by at least the margin */
	bool is_hot;      /* its tier */
	double share;     /* share of all samples of the baseline */
	double samples;   /* a run, mean of both sides */
	double variance;  /* of the logarithm, moderated */
	double adds;      /* its change as a part of the total */
	double adds_most; /* the most that it adds, with 95 % confidence */
	struct compare_change own;
};

struct comparison {
	enum compare_verdict verdict;
	unsigned lacks; /* of enum compare_lack */
	size_t n_baseline, n_candidate;
	size_t n_functions, n_tested, n_stable;
	double baseline; /* samples of all functions in a run of the baseline, on average */
	struct compare_change total;
	/* standard deviation of the logarithm of the total between runs of a side */
	double common_spread;
	double alpha_total, alpha_hot, alpha_other; /* after looks */
	struct compare_function *function;          /* n_functions */
};

/* Compare. With less than COMPARE_RUNS_MIN runs on a side nothing is tested: intervals of functions are those of
 * sampling alone, and results that need a test are NAN. Cost: functions × runs × permutations / 2 additions; 2 ms for
 * 200 functions of 20 runs. 0; -EINVAL (no runs of a side, a total that is not above 0, options out of their ranges),
 * -E2BIG (above a maximum), -ENOMEM. */
int compare(const struct compare_runs *runs, const struct compare_options *options,
	struct comparison **ret_comparison);

/* The change of a value that each run has, tested alone like the total: Welch's interval of the runs'
 * logarithms. Runs whose value is not above 0 are left out; p, seen_from and runs_needed are not set. Without
 * two runs on each side there is no interval, and without one no change (NAN). 0 or -ENOMEM. */
int compare_value(const double *value, const bool *candidate, size_t n_runs,
	struct compare_change *ret_change);
struct comparison *comparison_free(struct comparison *c);
DEFINE_CLEANUP(struct comparison *, comparison_free)
