/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sums: the figures of a query's rows, for code that computes with them
 *
 * An answer has the same figures as cells of rows, to be shown (answer/answer.h). Sums come in the order of the
 * answer's rows, and all of them.
 */

#include "daemon/query/query.h"

/* A value beside samples: a metric, or what loops counted. */
struct sums_column {
	const char *name, *title; /* borrowed for the call */
	bool adds_up;             /* values of one name add up; else they are relative to time */
};

struct sums_value {
	double value; /* NAN: not counted */
	double error; /* half of its 95 % interval; NAN: not known */
};

/* The sums of one key, borrowed for the call. Whole numbers where an answer's are. */
struct sums {
	const struct answer_value *name; /* texts and numbers, by the columns of names */
	/* by function or line, of code without a symbol: the build id of its file, "" if it has none */
	const char *build;
	double samples, ns;
	double cycles, instructions;    /* negative: not counted */
	const struct sums_value *value; /* by the columns of values */
};

/* The receiver of sums. A callback that returns non-zero stops the query, which returns that value. */
struct sums_reader {
	/* before the first row: columns of names, whose texts are constants, and of values */
	int (*columns)(void *u, const struct answer_column *name, size_t n_names,
		const struct sums_column *value, size_t n_values);
	int (*row)(void *u, const struct sums *s);
	int (*provenance)(void *u, const struct answer_provenance *p);
	void *userdata;
};

/* Hotspots by a key with names (query_by_kind.n_names). question->limit does not apply. 0, QUERY_FAILED with *ret_error, a callback's value, -errno. */
int query_hotspot_sums(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct sums_reader *to,
	struct query_error *ret_error);
