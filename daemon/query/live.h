/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Live queries: a window that is still in memory, asked like a segment
 *
 * What stored segments answer by reading their dictionaries, a live window answers from the structs
 * of the walk itself. Only what the window refers to is looked at, so the cost follows what ran in
 * it and not what the daemon has ever seen.
 */

#include "daemon/aggregate/window.h"
#include "daemon/query/query.h"

struct live {
	const struct window *window;         /* borrowed, with all that it points to */
	const struct stack_tree *stacks;
	const struct task_table *tasks;
	const struct sampler *sampler;       /* events, rate, plan of each hart */
	uint64_t (*lost)[N_LOSSES];          /* per hart, in this window; NULL: nothing */
	uint64_t realtime_ns;                /* of the window's start */
};

/* As query_hotspots, of one live window. 0, QUERY_FAILED, an answer callback's value, -errno. */
int query_live_hotspots(const struct live *l, enum query_by by, uint32_t limit,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);

/* Who calls the function (and module, NULL: any), by falling share of the time that was spent in and
 * below those calls. Columns: function, module, total (share of the function's own total), self_ns
 * … as hotspots. The outermost is "[no caller]". */
int query_live_callers(const struct live *l, const char *function, const char *module,
	uint32_t limit, const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);
