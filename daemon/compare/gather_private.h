/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of gather: gather.c reads runs, gather_values.c keeps what rows have beside samples, callers.c the
 * callers of functions, and gather_table.c groups the rows of all runs. Each has a struct of its own. */

#include "daemon/compare/gather.h"
#include "daemon/query/sums.h"
#include "daemon/store/key.h"

struct row {
	uint32_t run, key;
	uint32_t value, n_values; /* in gathered_values.cell: the first, and their number */
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

/* --- gather_values.c -------------------------------------------------------------------------- */

struct gathered_values {
	struct gathered_column column[GATHER_VALUES_MAX]; /* of all runs */
	size_t n_columns;
	size_t n_runs[GATHER_VALUES_MAX];     /* by column: the runs that have a value */
	uint32_t last_run[GATHER_VALUES_MAX]; /* by column: the last of these, + 1 */
	/* by column of the current run: its place in column; SIZE_MAX: there was no room */
	size_t place[GATHER_VALUES_MAX], n_places;
	struct gathered_value {
		uint32_t column;
		struct sums_value of;
	} *cell; /* only values that are known */
	uint32_t n_cells, size_cells;
};

/* Begin a run that has these columns. */
void gathered_values_begin(
	struct gathered_values *v, const struct sums_column *column, size_t n_columns);
/* Keep the values of a row, which is filled but for these. 0, GATHER_FULL, -ENOMEM. */
int gathered_values_add(struct gathered_values *v, struct row *row, const struct sums_value *value);

/* --- callers.c -------------------------------------------------------------------------------- */

struct callers {
	struct key_table keys; /* a fact's kind, function, side; of one caller also that */
	struct caller_fact {
		double samples;
		uint32_t next; /* the first caller of a function, or the next caller; index + 1 */
	} *fact;               /* by key */
	uint32_t size;
};

/* Read facts about functions from a segment; the names go to texts. 0, QUERY_FAILED, -errno. */
int callers_read(struct callers *c, struct text_table *texts, bool candidate, sqlite3 *db,
	struct query_error *ret_error);
void callers_clear(struct callers *c);

/* --- gather_table.c --------------------------------------------------------------------------- */

struct gathered_table {
	struct compare_runs runs;
	double *samples, *total, *weight; /* samples: by row and run */
	bool *candidate;
	int64_t *begin_ns;
	uint32_t *key; /* by row */
	/* by row, and one behind the last: where its part of `rows` begins, which has indices of gather.row, those
	 * of a table's row by run */
	uint32_t *first, *rows;
	size_t n_left_out; /* keys without a row, since they have too few samples */
	size_t n_side[2];
};

void gathered_table_clear(struct gathered_table *t);

/* --- gather.c --------------------------------------------------------------------------------- */

struct gather {
	int by;
	struct text_table texts;
	struct answer_column name[GATHER_PARTS];
	size_t n_names;
	struct key_table
		keys; /* texts of the names; in the upper half of the first the build of code without a symbol */
	struct row *row;
	uint32_t n_rows, size_rows;
	struct run *run;
	uint32_t n_runs, size_runs;
	uint32_t *line; /* by key, of loops: text, as in the last run */
	uint32_t size_lines;
	struct gathered_values values;
	struct callers callers;
	struct gathered_table table;
};

/* Add to a sum, which is negative as long as nothing was counted. */
static inline void gather_add_count(double *sum, double count)
{
	if (count >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + count;
}

/* Begin a run, and get the receiver of a query's sums for it. 0; the receiver also returns
 * GATHER_FULL; -ENOMEM. Exported for tests. */
int gather_begin(struct gather *g, bool candidate, int64_t begin_ns);
/* Exported for tests. */
struct sums_reader gather_reader(struct gather *g);

/* gather_name.c: the text of a function's name without what compilers append to the names of copies that they make, since copies
 * differ from build to build: "work.constprop.0" is work. Of code without a symbol with the build of its file (not NULL,
 * as in struct sums): "libz.so.1+0x51a0 (6f1c0b2a)"; or, if that is not known, with the side, as it cannot be said
 * to be the same. name NULL: 0. 0, KEY_TABLE_FULL, -ENOMEM. */
int gather_function_text(struct text_table *texts, const char *name, const char *build,
	bool candidate, uint32_t *ret_id);
/* The length of that text. Exported for tests. */
size_t gather_name_length(const char *name);
