/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Gather: the hotspots of many runs as one table, functions by runs
 *
 * Rows of runs are one row of the table if their names are the same. A module is named without its folder, since two
 * builds are seldom in the same place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/compare/compare.h"
#include "daemon/query/query.h"

#define GATHER_PARTS 4 /* function, source, line, module; or what a row is instead */
#define GATHER_VALUES_MAX QUERY_METRICS_MAX
#define GATHER_ROWS_MAX                                                                            \
	(1u << 22) /* rows of all runs: 200 MB; and as many values other than samples: 100 MB */

enum { GATHER_FULL = 2 }; /* beside QUERY_FAILED */

/* Parse the name of the key that splits runs: one of enum query_by, or their loops
 * (query/loops/loop_sums.h). -1: there is no such name, or its keys never agree between runs
 * (threads, harts). */
enum { GATHER_BY_LOOP = N_QUERY_BY };
int gather_by_parse(const char *name);

struct gather;

int gather_new(int by, struct gather **ret_gather);
struct gather *gather_free(struct gather *g);
DEFINE_CLEANUP(struct gather *, gather_free)

/* Add a run: the hotspots or loops of an open segment, all rows. question->by is overridden. 0; QUERY_FAILED
 * with *ret_error; GATHER_FULL; -ENOMEM. */
int gather_run(struct gather *g, bool candidate, sqlite3 *db, const struct query_question *question,
	struct query_error *ret_error);

/* The same of files of this machine's store; begin_ns: when the run began, by the clock of all others. */
int gather_store_run(struct gather *g, bool candidate, int64_t begin_ns,
	struct query_source *source, size_t n_sources, const struct query_question *question,
	struct query_error *ret_error);

/* After the last run: the table, borrowed, of rows with at least COMPARE_SAMPLES_MIN samples in all
 * runs together. 0; -EINVAL if there is no run; -E2BIG above COMPARE_CELLS_MAX; -ENOMEM. */
int gather_table(struct gather *g, const struct compare_runs **ret_runs);

/* The number of keys that have no row, because all runs together have too few samples. */
size_t gather_n_left_out(const struct gather *g);

/* The names of a row of the table, NULL for those that it does not have. */
void gather_names(const struct gather *g, size_t row, const char *ret_names[GATHER_PARTS]);

/* Is the row code without a symbol, in a file with a build id? The same name proves nothing then. */
bool gather_is_of_build(const struct gather *g, size_t row);

/* The columns of these names: how many. */
size_t gather_columns(const struct gather *g, const struct answer_column **ret_columns);

/* Means of a run of a side, of a row or of all rows. */
struct gathered_sums {
	double samples, ns;
	double cycles, instructions; /* negative: not counted */
};
struct gathered_sums gather_sums(const struct gather *g, size_t row, bool candidate);
struct gathered_sums gather_total(const struct gather *g, bool candidate);
/* Did any run count? Get each run's counts of a row; negative: not counted. */
bool gather_has_counts(const struct gather *g);
struct gathered_counts {
	double cycles, instructions;
};
void gather_counts(const struct gather *g, size_t row, struct gathered_counts *ret_counts);

/* Columns of rows besides samples: the metrics that a question asks for, or what loops counted. */
struct gathered_column {
	char name[96], title[96];
	/* add up what falls into one row of a run; else take the mean, weighted by time */
	bool is_sum;
	bool is_cut; /* the last, and there were more than GATHER_VALUES_MAX */
};
size_t gather_value_columns(const struct gather *g, const struct gathered_column **ret_columns);
/* Each run's value of a row (NAN: none), and half of the value's own 95 % interval (NAN: not known). */
void gather_values(
	const struct gather *g, size_t row, size_t column, double *ret_value, double *ret_error);
/* The number of runs that have a value of the column, in any row. */
size_t gather_value_runs(const struct gather *g, size_t column);
bool gather_is_by_loop(const struct gather *g);

/* Source of a run's samples; texts are borrowed until the next gather_run. */
struct gathered_source {
	const char *event, *rung;
	const char *arch, *host; /* from uname; "" if not in the recording */
	uint32_t hz;
	uint64_t samples, lost;
	double ns; /* CPU time of its samples */
};
struct gathered_source gather_source(const struct gather *g, size_t run);

/* The samples of that side, over all runs, in code of the row's function that was inlined into others. For rows by
 * function. */
double gather_inlined(const struct gather *g, size_t row, bool candidate);

/* Is the row's function in any stack of that side, even without samples of its own? For rows by function. */
bool gather_is_there(const struct gather *g, size_t row, bool candidate);

/* How similar the callers of a row in the baseline are to those of another row in the candidate, weighted by own
 * samples. 1: the same callers in the same shares; 0: none in common, or callers are not known. */
double gather_callers_alike(const struct gather *g, size_t baseline, size_t candidate);
