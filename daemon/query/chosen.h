/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Chosen rows: the windows and tasks of a source that a filter lets through
 *
 * For those who copy rows in place of adding them up: they get what a query with the same filter reads.
 */

#include "daemon/query/query.h"

struct query_chosen {
	bool *window; /* by id */
	uint32_t n_windows;
	bool *task; /* by id; 0: samples of no task; NULL: all, which no filter narrows */
	uint32_t n_tasks;
};

/* Find those of an open source, whose part since_ns to until_ns is asked about. The filter's event and harts are
 * ignored. Call query_chosen_clear in any case. 0, QUERY_FAILED with *ret_error, -errno. */
int query_choose(sqlite3 *db, const struct query_source *source, const struct query_filter *filter,
	struct query_chosen *ret_chosen, struct query_error *ret_error);
void query_chosen_clear(struct query_chosen *c);
