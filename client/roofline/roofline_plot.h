/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A roofline as a plot: the rows of answers become dots under the machine's roofs */

#include "client/options/options.h"
#include "client/plot/bound.h"
#include "client/roofline/roofline_roofs.h"
#include "client/show/reply.h"

struct roofline_plot {
	struct plot plot;
	struct plot_sets sets;
	size_t first; /* dot of the last run's first row */
	struct roofline_roofs own;
	const struct roofline_roofs *roofs; /* the roofs that were looked up, or the caller's */
	char *provenance;
};

/* The replies are of each run in turn, and are borrowed; so are `roofs`, which are looked up if NULL. Fill in what bounds each loop. The caller
 * clears it also on failure. 0, -ENOMEM. */
int roofline_plot_make(const struct options *o, const struct reply *const *runs, size_t n_runs,
	const struct roofline_roofs *roofs, struct roofline_plot *ret_plot);

/* If there are roofs to compare with, add columns of_roof and bound_by to the last run's reply, and
 * of_dram_roof and dram_bound_by if bytes from memory were counted. Add a note if measuring the
 * roofs was disturbed. 0; REPLY_TOO_LARGE: there is no room for columns; -ENOMEM. */
int roofline_plot_extend(const struct roofline_plot *p, struct reply *reply);

/* Add the letters of the terminal's plot as the column dot. `mark` has one for every dot. Returns
 * the same. */
int roofline_plot_mark(const struct roofline_plot *p, const char *mark, struct reply *reply);

void roofline_plot_clear(struct roofline_plot *p);
