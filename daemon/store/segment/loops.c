/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counts of loops, with the sites and metrics that they refer to. A site is written after its
 * parent, so that a reader who reads sites in order knows each parent already. Facts about a site
 * that come later (a copy of the loop in a library that is opened next) are not written.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/segment/write.h"

/* Write the frame of a place, whose name may come later. */
static int write_site_frame(struct segment *g, const struct loop_site *site)
{
	int r = segment_write_frame(g, site->frame);
	return r == 0 ? segment_name_site(g, site->id, site->frame) : r;
}

static int write_site(struct segment *g, const struct loop_site *site)
{
	const struct loop_site_key *key = &site->key;
	int r = ROW(g, INSERT_LOOP_SITE, CELL_I(site->id), CELL_I(key->kind),
		CELL_B(key->build_id, key->n_build_id), CELL_T(key->subprogram),
		CELL_T(*key->source ? key->source : NULL), CELL_I_OR_NULL(key->line, key->line),
		CELL_T(key->nest), CELL_T(*key->inlined_at ? key->inlined_at : NULL),
		CELL_I_OR_NULL(site->parent, site->parent->id),
		CELL_I_OR_NULL(site->line_last, site->line_last),
		CELL_I_OR_NULL(site->column, site->column), CELL_I(site->flags));
	segment_charge(g, SHARE_SITE_BYTES + strlen(key->subprogram) + strlen(key->source) +
				  strlen(key->nest) + strlen(key->inlined_at));
	return r == 0 ? mark_set(g, &g->sites, site->id, MARK_STORED) : r;
}

/* The frame of a place may be found after its site was written. */
static int write_frames(struct segment *g, const struct loop_site *site)
{
	int r = 0;
	for (; site && loop_site_is_place(site->key.kind) && r == 0; site = site->parent) {
		if (!site->frame || mark_get(&g->sites, site->id) == MARK_FINAL)
			continue;
		r = write_site_frame(g, site);
		if (r == 0)
			r = mark_set(g, &g->sites, site->id, MARK_FINAL);
	}
	return r;
}

/* The outermost first; they are LOOP_DEPTH_MAX deep at most. */
static int write_sites(struct segment *g, const struct loop_site *site)
{
	const struct loop_site *chain[LOOP_DEPTH_MAX], *last = site;
	unsigned n = 0;
	for (; site && mark_get(&g->sites, site->id) == MARK_NONE; site = site->parent) {
		if (n == LOOP_DEPTH_MAX)
			return -EINVAL;
		chain[n++] = site;
	}
	int r = 0;
	while (n > 0 && r == 0)
		r = write_site(g, chain[--n]);
	return r == 0 ? write_frames(g, last) : r;
}

static int write_metric(struct segment *g, unsigned value, const struct loop_granted *granted)
{
	char name[LOOP_METRIC_NAME_BYTES];
	if (mark_get(&g->metrics, value) != MARK_NONE)
		return 0;
	int r = ROW(g, INSERT_LOOP_METRIC, CELL_I(value),
		CELL_T(loop_value_name(value, granted, name)),
		CELL_T(loop_value_unit(value, granted)));
	return r == 0 ? mark_set(g, &g->metrics, value, MARK_STORED) : r;
}

/* Is the value written? A value of 0 has no row, except that of a granted event, which was counted
 * and did not occur. */
static bool is_written(const struct loop_row *row, unsigned value)
{
	unsigned metric = value / 2;
	if (row->value[value] != 0)
		return true;
	return value % 2 == 0 && metric >= LOOP_GRANTED &&
	       row->was_granted & 1u << (metric - LOOP_GRANTED);
}

static int write_row(struct segment *g, const struct segment_flush *f, const struct loop_row *row)
{
	g->payer = task_account(row->who);
	int r = row->who ? segment_write_task(g, f, row->who) : 0;
	if (r == 0)
		r = write_sites(g, row->site);
	if (r == 0)
		r = write_sites(g, row->region);
	for (unsigned value = 0; value < N_LOOP_VALUES && r == 0; value++) {
		if (!is_written(row, value))
			continue;
		segment_charge(g, SHARE_COUNT_BYTES);
		r = write_metric(g, value, f->window->loops.granted);
		if (r == 0)
			r = ROW(g, INSERT_LOOP_COUNT, CELL_I(g->n_windows),
				CELL_I(row->who ? row->who->id : 0), CELL_I(row->site->id),
				CELL_I(row->region ? row->region->id : 0), CELL_I(value),
				CELL_I(row->value[value]));
	}
	return r;
}

int segment_write_loops(struct segment *g, const struct segment_flush *f)
{
	for (; g->next_loop && !segment_step_is_over(g); g->next_loop = g->next_loop->next) {
		int r = segment_may_write(f, g->next_loop->who) ? write_row(g, f, g->next_loop) : 0;
		if (r != 0)
			return r;
	}
	return g->next_loop ? SEGMENT_MORE : 0;
}
