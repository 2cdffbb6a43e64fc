/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Columns of a roofline's table. The columns that identify a row come first: a loop and its line, a region, a thread.
 * A loop's figures are its own, unless --inclusive asks for those with the loops inside. Columns that the reply lacks
 * are skipped, so one list serves all groupings, and --two-phase.
 */
#include <string.h>

#include "client/roofline/roofline_print.h"

#define ROOFS_WIDTH 94        /* width of a terminal with room for all columns below */
#define EVENT_COLUMN "event_" /* events counted in regions */

static const char *const keys[] = {"program", "function", "region", "comm", "pid", "tid", "harts",
	"source", "around", "dot", NULL};
static const char *const counted[] = {"share", "gops", "gops_error", "dram_gbytes",
	"dram_gbytes_error", "ops_per_dram_byte", "ops_per_dram_byte_error", "of_dram_roof",
	"dram_bound_by", NULL};
static const char *const own[] = {"share_self", "gops_self", "gbytes_self", "ops_per_byte_self",
	"of_roof", "bound_by", "error_self", NULL};
static const char *const all[] = {"share", "gops", "gbytes", "ops_per_byte", "of_roof", "bound_by",
	"cost_measured", "cost_measured_error", "error", "dram_gbytes", "ops_per_dram_byte",
	"of_dram_roof", "ipc", "refused", NULL};
/* Read and written bytes separately, as in Examem's figures. */
static const char *const all_of_regions[] = {"share", "gops", "gbytes", "gbytes_read",
	"gbytes_written", "ops_per_byte", "of_roof", "bound_by", "cost_measured",
	"cost_measured_error", "error", "measured_entries", "dram_gbytes", "ops_per_dram_byte",
	"of_dram_roof", "ipc", "refused", NULL};
static const char *const all_of_loops[] = {"share", "gops", "gbytes", "ops_per_byte", "of_roof",
	"bound_by", "cost_measured", "cost_measured_error", "error", "refused", NULL};

static void add(struct roofline_columns *c, const char *name)
{
	if (c->n < REPLY_COLUMNS_MAX)
		c->name[c->n++] = name;
	c->name[c->n] = NULL;
}

static bool is_in(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list;
}

static void add_known(struct roofline_columns *c, const struct reply *r, const char *const *list)
{
	for (; *list; list++)
		if (reply_column(r, *list) >= 0)
			add(c, *list);
}

static void add_events(struct roofline_columns *c, const struct reply *r)
{
	for (size_t i = 0; i < r->columns->n_column; i++)
		if (strncmp(r->columns->column[i]->name, EVENT_COLUMN, strlen(EVENT_COLUMN)) == 0)
			add(c, r->columns->column[i]->name);
}

static bool wants_all(const struct options *o)
{
	return o->look.n_columns == 1 && strcmp(o->look.column[0], "all") == 0;
}

/* Add the columns that --columns names. */
static void add_wanted(struct roofline_columns *c, const struct options *o, const struct reply *r)
{
	for (size_t i = 0; i < o->look.n_columns && !wants_all(o); i++)
		if (!is_in(keys, o->look.column[i]))
			add(c, o->look.column[i]);
	for (size_t i = 0; i < r->columns->n_column && wants_all(o); i++)
		if (!is_in(keys, r->columns->column[i]->name))
			add(c, r->columns->column[i]->name);
}

static void leave_out(struct roofline_columns *c, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->name[i], name) != 0)
			c->name[n++] = c->name[i];
	c->n = n;
	c->name[n] = NULL;
}

/* With the roof columns, a table is wider than the usual terminal. On a narrow one, omit the error
 * and, if loops have letters, bytes per second, which the plot shows. */
static void fit(struct roofline_columns *c, const struct reply *r, bool has_own, size_t width)
{
	if (width == 0 || width >= ROOFS_WIDTH || reply_column(r, "of_roof") < 0)
		return;
	leave_out(c, has_own ? "error_self" : "error");
	if (reply_column(r, "dot") >= 0)
		leave_out(c, has_own ? "gbytes_self" : "gbytes");
}

void roofline_columns_choose(const struct options *o, const struct reply *r, size_t width,
	struct roofline_columns *ret_columns)
{
	bool of_loops = reply_column(r, "function") >= 0;
	bool of_regions = reply_column(r, "region") >= 0;
	bool of_nests = of_loops && (!o->by || strcmp(o->by, "loop") == 0);
	struct roofline_columns *c = ret_columns;
	*c = (struct roofline_columns){.n = 0};
	if (!r->columns)
		return;
	add_known(c, r, keys);
	if (o->look.n_columns > 0) {
		add_wanted(c, o, r);
		return;
	}
	bool has_own = reply_column(r, "gops_self") >= 0;
	has_own = has_own && of_nests && !o->inclusive;
	bool is_counted = reply_column(r, "gops_error") >= 0; /* by counters of the hardware */
	add_known(c, r,
		is_counted   ? counted
		: has_own    ? own
		: of_loops   ? all_of_loops
		: of_regions ? all_of_regions
			     : all);
	fit(c, r, has_own, width);
	add_events(c, r);
}

const char *roofline_columns_unknown(const struct options *o, const struct reply *r)
{
	for (size_t i = 0; i < o->look.n_columns && !wants_all(o); i++)
		if (reply_column(r, o->look.column[i]) < 0)
			return o->look.column[i];
	return NULL;
}
