/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Live queries: a window in memory, queried like a segment
 *
 * For a stored segment a query reads dictionaries; for a live window it uses the structs of the
 * walk. It reads only objects that the window refers to, so the cost depends on the tasks in the
 * window, not on all that the daemon has ever seen.
 */

#include "daemon/aggregate/window.h"
#include "daemon/query/query.h"

struct live {
	const struct window *window; /* borrowed, with everything it points to */
	const struct stack_tree *stacks;
	const struct task_table *tasks;
	const struct sampler *sampler; /* events, rate, plan of each hart */
	uint64_t (*lost)[N_LOSSES];    /* per hart, in this window; NULL: none */
	uint64_t realtime_ns;          /* of the window's start */
	uint32_t hz;                   /* the rate of its samples */
};

/* Answer as query_hotspots does, for one live window. 0, QUERY_FAILED, an answer callback's value,
 * -errno. */
int query_live_hotspots(const struct live *l, enum query_by by, uint32_t limit,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);

/* Callers of the function (in module, NULL: any), sorted by their share of the time spent in and
 * below those calls, largest first. Columns: function, module, total (share of the function's own
 * total), self_ns … as hotspots. The outermost is "[no caller]". */
int query_live_callers(const struct live *l, const char *function, const char *module,
	uint32_t limit, const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);
