/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A metric's events should be of one pass, which counted them at the same time: the first pass that has
 * all of them is taken. If there is none, because the plan had to split the metric, each event is taken
 * from the first pass that has it.
 */
#include "daemon/query/stored_tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/expression.h"
#include "proto/base/memory.h"

#define PASSES_MAX TURN_PASSES_MAX
_Static_assert(COUNTED_EVENTS_MAX <= METRIC_COLUMNS_MAX, "room for a column of each event");

const char *stored_tree_event(const struct stored_tree *t, const struct counted_event *e)
{
	const char *name = text_of(&t->counted->texts, e->name);
	return name ? name : "?";
}

static bool is_input(const struct stored_tree *t, const struct counted_event *e, size_t input)
{
	const struct metric_event event = {stored_tree_event(t, e), e->type, e->config};
	return e->core == t->core && metric_inputs_match(t->inputs, input, &event);
}

bool stored_tree_reads(const struct stored_tree *t, const struct counted_event *e)
{
	for (size_t i = 0; i < metric_inputs_n(t->inputs); i++)
		if (is_input(t, e, i))
			return true;
	return false;
}

/* The event that counts an input in that pass, or in any: the first that has a count, else the first. -1: none. */
static int find_event(const struct stored_tree *t, size_t input, int pass, const double *count)
{
	int found = -1;
	for (size_t e = 0; e < t->counted->n_events; e++) {
		const struct counted_event *event = &t->counted->event[e];
		if ((pass != STORED_ALL_PASSES && event->pass != (unsigned)pass) ||
			!is_input(t, event, input))
			continue;
		if (!isnan(count[e]))
			return (int)e;
		found = found < 0 ? (int)e : found;
	}
	return found;
}

/* Read a node's inputs from that pass, or from any. False: one of them has no count there. */
static bool read_pass(const struct stored_tree *t, size_t node, int pass, const double *count)
{
	const struct metric_needs needs = metric_inputs_needs(t->inputs, node);
	const char *missing;
	double value;
	for (size_t k = 0; k < needs.n; k++)
		metric_inputs_read_from(
			t->inputs, node, k, find_event(t, needs.input[k], pass, count));
	return metric_inputs_value(t->inputs, node, count, &value, &missing) != EXPRESSION_MISSING;
}

/* The existing passes, in rising order. Returns their number. */
static size_t find_passes(const struct stored_tree *t, int ret_pass[static PASSES_MAX])
{
	bool is_there[PASSES_MAX] = {false};
	size_t n = 0;
	for (size_t e = 0; e < t->counted->n_events; e++)
		if (t->counted->event[e].core == t->core)
			is_there[t->counted->event[e].pass] = true;
	for (int pass = 0; pass < PASSES_MAX; pass++)
		if (is_there[pass])
			ret_pass[n++] = pass;
	return n;
}

static void choose_passes(struct stored_tree *t, const double *count)
{
	int pass[PASSES_MAX];
	const size_t n_passes = t->n_passes = find_passes(t, pass);
	for (size_t node = 0; node < t->tree->n_nodes; node++) {
		size_t i = 0;
		while (i < n_passes && !read_pass(t, node, pass[i], count))
			i++;
		t->pass[node] = i < n_passes ? pass[i] : STORED_ALL_PASSES;
		if (i == n_passes)
			(void)read_pass(t, node, STORED_ALL_PASSES, count);
	}
}

/* --- values ----------------------------------------------------------------------------------- */

/* Did any of the core's events count in that stretch? */
static bool is_filled(const struct stored_tree *t, size_t stretch)
{
	for (size_t e = 0; e < t->counted->n_events; e++) {
		const struct counted_sum *s = &t->counted->event[e].stretch[stretch];
		if (t->counted->event[e].core == t->core && (s->enabled_ns > 0 || s->value > 0))
			return true;
	}
	return false;
}

/* The error that rotation may cause in counts: that of each pass, weighted by its share of the time. */
static double rotation_of(const struct stored_tree *t)
{
	double sum = 0;
	for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
		double part = 0;
		for (size_t e = 0; e < t->counted->n_events; e++)
			if (t->counted->event[e].core == t->core &&
				t->counted->event[e].pass == pass)
				part = fmax(part, counted_part(&t->counted->event[e].all));
		sum += t->counted->core[t->core].rotation[pass] * part;
	}
	return sum;
}

static int find_values(struct stored_tree *t)
{
	const struct counted_event *event = t->counted->event;
	const size_t n = t->counted->n_events;
	_cleanup_(freep) double *row = calloc((2 + COUNTED_STRETCHES) * (n + 1), sizeof(*row));
	if (!row)
		return -ENOMEM;
	double *whole = row, *running = whole + n, *without = running + n;
	struct metric_counts c = {.n = n, .whole = whole, .running = running, .without = without};
	c.rotation = rotation_of(t);
	for (size_t e = 0; e < n; e++) {
		whole[e] = counted_scaled(&event[e].all);
		running[e] = counted_part(&event[e].all);
	}
	for (size_t s = 0; s < COUNTED_STRETCHES; s++) {
		for (size_t e = 0; e < n; e++)
			without[c.n_stretches * n + e] = counted_without(&event[e], s);
		c.n_stretches += is_filled(t, s);
	}
	choose_passes(t, whole);
	metric_evaluate(t->inputs, t->tree, &c, t->node, t->residual);
	for (size_t i = 0; i < t->tree->n_nodes; i++) {
		struct metric_value *v = &t->node[i];
		if (v->missing_column >= 0)
			snprintf(v->reason, sizeof(v->reason),
				"%.120s never got a counter: other events used all of them",
				v->missing);
	}
	return 0;
}

/* --- the tree --------------------------------------------------------------------------------- */

static int find_metrics(
	struct stored_tree *t, const struct platform *p, struct event_error *ret_error)
{
	size_t n = t->tree->n_nodes;
	const struct metric_core core = {p, NULL, t->counted->core[t->core].harts};
	struct metric_choice chosen;
	int r = metric_choose_tree(t->tree, &chosen, ret_error);
	if (r == 0)
		r = metric_inputs_new(&core, &chosen, &t->inputs, ret_error);
	t->pass = calloc(n, sizeof(*t->pass));
	t->node = calloc(n, sizeof(*t->node));
	t->residual = calloc(n + 1, sizeof(*t->residual));
	if (r != 0)
		return r;
	return t->pass && t->node && t->residual ? 0 : -ENOMEM;
}

void stored_tree_clear(struct stored_tree *t)
{
	metric_tree_free(t->tree);
	metric_inputs_free(t->inputs);
	free(t->pass);
	free(t->node);
	free(t->residual);
	t->tree = NULL;
	t->inputs = NULL;
	t->pass = NULL;
	t->node = NULL;
	t->residual = NULL;
}

/* The deepest level of which anything was counted; 0: nothing was. */
static int deepest_counted(const struct stored_tree *t)
{
	int deepest = 0;
	for (size_t i = 0; i < t->tree->n_nodes; i++)
		if (isfinite(t->node[i].value) && t->tree->node[i].level > deepest)
			deepest = t->tree->node[i].level;
	return deepest;
}

/* A tree of n levels, with its values. 0; METRIC_*; -ENOMEM. */
static int make_levels(struct stored_tree *t, const struct platform *p, const char *top, int levels,
	struct event_error *ret_error)
{
	int r = metric_find_tree(p, top, levels, &t->tree, ret_error);
	if (r == 0)
		r = find_metrics(t, p, ret_error);
	return r == 0 ? find_values(t) : r;
}

static int find_platform(struct stored_tree *t, const struct stored_wish *wish,
	const struct platform **ret_platform, struct event_error *ret_error)
{
	const char *name = text_of(&t->counted->texts, t->counted->core[t->core].name);
	const struct platform *p = name ? cores_platform_named(wish->cores, name) : NULL;
	if (!name)
		snprintf(ret_error->text, sizeof(ret_error->text),
			"the recording does not name its cores: an older mperf wrote it");
	else if (!p)
		snprintf(ret_error->text, sizeof(ret_error->text),
			"it was made on the platform '%.64s', which this platform database lacks",
			name);
	*ret_platform = p;
	return p ? 0 : METRIC_NO_TREE;
}

int stored_tree_make(struct stored_tree *t, const struct counted *c, unsigned core,
	const struct stored_wish *wish, struct event_error *ret_error)
{
	const struct platform *p;
	*t = (struct stored_tree){.counted = c, .core = core};
	hart_set_says(&c->core[core].harts, t->harts, sizeof(t->harts));
	int r = find_platform(t, wish, &p, ret_error);
	if (r == 0)
		r = make_levels(t, p, wish->top, wish->levels, ret_error);
	if (r != 0)
		return r;
	t->title = p->title;
	int deepest = deepest_counted(t);
	if (deepest == 0) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"none of the metrics of %s was counted: %.300s", p->title,
			t->node[0].reason);
		return METRIC_NO_EVENT;
	}
	if (wish->levels || deepest == t->tree->levels)
		return 0;
	/* deeper levels were not counted: report the tree as cut off here */
	stored_tree_clear(t);
	return make_levels(t, p, wish->top, deepest, ret_error);
}
