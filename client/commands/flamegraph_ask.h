/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The call trees that flamegraph draws: one, or all of a page with a switch */

#include "client/flamegraph/page.h"
#include "client/measure/capture.h"

enum flamegraph_view {
	VIEW_CPU,
	VIEW_WAITING,
	VIEW_READY, /* for a CPU */
	VIEW_WALL,
	N_VIEWS,
};
_Static_assert(N_VIEWS <= FLAME_VIEWS_MAX, "a page has room for all");

/* One call tree, with where it comes from */
struct flamegraph_tree {
	struct flame *flame; /* owned; NULL: left out */
	char *provenance_line, *event, *absent;
	double counted;     /* share of the samples */
	bool is_wall_guess; /* of files that do not say when samples were taken */
};

struct flamegraph {
	const struct options *options;
	struct source_request from;
	struct flamegraph_tree tree[N_VIEWS]; /* if not has_views: [first] alone */
	enum flamegraph_view first;
	bool has_views;
	bool kept; /* by the service */
};

/* Ask the source for the tree of the options and, with has_views, for the others; those that the source does not have
 * are left out. Returns the exit status, after an error message if not 0. The caller clears in any case. */
int flamegraph_ask(struct flamegraph *f, struct source *s);

/* The views of a page, which borrow; returns how many. */
size_t flamegraph_views(const struct flamegraph *f, struct flame_view ret_view[static N_VIEWS]);

void flamegraph_clear(struct flamegraph *f);
