/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of gather: gather.c reads rows, callers.c what else is known of functions, gather_values.c what
 * rows have beside samples, and gather_table.c has what all runs come to */

#include "daemon/compare/gather.h"
#include "daemon/store/key.h"

struct row {
	uint32_t run, key;
	double samples, ns;
	double cycles, instructions; /* negative: not counted */
};

struct run {
	bool candidate;
	int64_t begin_ns;
	double cpu_ns;
	uint32_t event, rung, arch, host; /* texts */
	uint32_t hz;
	uint64_t samples, lost;
	double cycles, instructions; /* of all rows; negative: not counted */
};

/* Facts about functions besides their rows, to find out what became of a function that is gone. */
struct kin_fact {
	double samples;
	uint32_t next; /* of KIN_CALLERS its first caller, of KIN_CALLER the next one; index + 1 */
};
struct kin {
	struct key_table keys; /* see KIN_* */
	struct kin_fact *fact; /* by key */
	uint32_t size;
};
enum {
	KIN_INLINED = 1, /* function, candidate: samples in its code that was inlined into others */
	KIN_CALLERS,     /* function, candidate: its own samples with a known caller */
	KIN_CALLER,      /* function, candidate, caller: those of one caller */
	KIN_THERE,       /* function, candidate: it is in some stack, not inlined */
};

/* A value beside samples. */
struct cell {
	uint32_t run, key;
	uint32_t column;
	double value, error; /* error: NAN: not known */
	double weight;       /* of a mean */
};

struct gather {
	int by;
	struct text_table texts;
	struct key_table keys; /* texts of the parts */
	struct row *row;
	uint32_t n_rows, size_rows;
	struct run *run;
	uint32_t n_runs, size_runs;
	/* of the current run's columns; -1: none */
	int part[GATHER_PARTS], samples, ns, cycles, instructions;
	int value[GATHER_VALUES_MAX], error[GATHER_VALUES_MAX];
	/* of all runs, and what is in them */
	struct gathered_column column[GATHER_VALUES_MAX];
	size_t n_columns;
	struct cell *cell;
	uint32_t n_cells, size_cells;
	size_t value_runs[GATHER_VALUES_MAX]; /* by column: runs that have any */
	/* by row of the table, and one behind the last; then cells are sorted */
	uint32_t *first_cell;
	uint32_t *line; /* by key, of loops: text, as the last run has it */
	uint32_t size_lines;
	/* the table */
	struct compare_runs runs;
	double *table, *total, *weight, *time_ns; /* time_ns: [2 * row + candidate], sums */
	bool *candidate;
	int64_t *begin_ns;
	uint32_t *key;     /* by row */
	size_t n_left_out; /* keys that are no row, for want of samples */
	size_t n_side[2];
	double *counts; /* [4 * row + 2 * candidate]: cycles, instructions; negative: not counted */
	double *run_counts; /* [2 * (row * n_runs + run)]: the same of each run; NULL: none counted */
	struct kin kin;
};

/* Add to a sum that is negative while nothing was counted. */
static inline void gather_add_count(double *sum, double count)
{
	if (count >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + count;
}

/* Find the columns of values among those of a run. */
void gather_find_values(struct gather *g, const struct answer_column *c, size_t n);
/* Keep the values of a row. 0, GATHER_FULL, -ENOMEM. */
int gather_take_values(struct gather *g, const struct row *row, const struct answer_value *v);
/* Order them by row of the table (KEY_NONE: none), of which there are n. 0 or -ENOMEM. */
int gather_sort_values(struct gather *g, const uint32_t *row_of_key, size_t n);

/* How long a function's name is without what compilers append to the names of copies that they make:
 * which copies there are differs from build to build. "work.constprop.0" is work. */
size_t gather_name_length(const char *name);

/* Read callers and inlined code of functions of a segment. 0, QUERY_FAILED, -errno. */
int kin_read(struct gather *g, bool candidate, sqlite3 *db, struct query_error *ret_error);
void kin_clear(struct kin *k);
