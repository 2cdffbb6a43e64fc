/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The text of a stat's plan: the events that are counted together, their counters, who rotates them, and the
 * events that are counted once for several clients at present */

#include "daemon/metric/metric_plan.h"

#define PLAN_LINES_MAX 32 /* further passes and metrics are only counted */

struct plan_says {
	char *line[PLAN_LINES_MAX + 1]; /* n_lines, then NULL; owned */
	size_t n_lines;
};

/* The events and metrics that are counted on some harts. */
struct planned {
	const struct kernel *kernel;
	const struct cores *cores;
	const struct hart_set *harts;
	const struct event_list *events;
	size_t n_by_name;                  /* number of events; those requested by name come first
					    * */
	const struct metric_plan *metrics; /* NULL: none was requested */
	const struct counter *counter; /* of these events, then of the metrics'; NULL: not open */
};

/* Write the text of the plan. 0 or -ENOMEM. */
int plan_says_new(const struct planned *of, struct plan_says **ret_says);
struct plan_says *plan_says_free(struct plan_says *s);
DEFINE_CLEANUP(struct plan_says *, plan_says_free)
