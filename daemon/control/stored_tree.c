/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A metric's events should be of one pass, which counted them at the same time: the first that has all of
 * them is taken. Where none has, each event is of the first pass that has it, as where a plan had to
 * split a metric.
 */
#include "daemon/control/stored_tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "platform-db/expression.h"
#include "proto/base/memory.h"

#define PASSES_MAX TURN_PASSES_MAX
#define ALL_PASSES (-1)

/* Counts of all inputs, and how long they were counted. */
struct picked {
	double count[METRIC_INPUTS_MAX], part[METRIC_INPUTS_MAX];
};

static const char *name_of(const struct stored_tree *t, const struct counted_event *e)
{
	const char *name = text_of(&t->counted->texts, e->name);
	return name ? name : "?";
}

static bool is_input(const struct stored_tree *t, const struct counted_event *e, size_t input)
{
	const struct metric_event event = {name_of(t, e), e->type, e->config};
	return e->core == t->core && metric_inputs_match(t->inputs, input, &event);
}

/* Of one pass, or of all; without a stretch of the time, or (COUNTED_STRETCHES) of all of it. */
static void pick(const struct stored_tree *t, int pass, size_t without, struct picked *p)
{
	for (size_t i = 0; i < metric_inputs_n(t->inputs); i++) {
		p->count[i] = NAN;
		p->part[i] = 1;
		for (size_t e = 0; e < t->counted->n_events && isnan(p->count[i]); e++) {
			const struct counted_event *event = &t->counted->event[e];
			if ((pass != ALL_PASSES && event->pass != (unsigned)pass) ||
				!is_input(t, event, i))
				continue;
			p->count[i] = without < COUNTED_STRETCHES ? counted_without(event, without)
								  : counted_scaled(&event->all);
			p->part[i] = counted_part(&event->all);
		}
	}
}

/* The passes that there are, rising. Returns how many. */
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

static double least_part(const struct stored_tree *t, size_t metric, const struct picked *p)
{
	const struct metric_needs needs = metric_inputs_needs(t->inputs, metric);
	double least = 1;
	for (size_t k = 0; k < needs.n; k++)
		least = fmin(least, p->part[needs.input[k]]);
	return least;
}

/* Was the input opened, and then kept from the counters all of the time? */
static bool never_ran(const struct stored_tree *t, const char *input)
{
	for (size_t i = 0; i < metric_inputs_n(t->inputs); i++)
		for (size_t e = 0; e < t->counted->n_events; e++) {
			const struct counted_event *event = &t->counted->event[e];
			if (strcasecmp(metric_inputs_name(t->inputs, i), input) == 0 &&
				is_input(t, event, i) && isnan(counted_scaled(&event->all)))
				return true;
		}
	return false;
}

static void say_missing(const struct stored_tree *t, struct metric_value *v, int result)
{
	if (result == EXPRESSION_UNDEFINED) {
		v->missing = NULL;
		snprintf(v->reason, sizeof(v->reason), "nothing to divide by: a count in it is 0");
	} else if (never_ran(t, v->missing)) {
		snprintf(v->reason, sizeof(v->reason),
			"%.120s never got a counter: others used all of them", v->missing);
	} else {
		snprintf(v->reason, sizeof(v->reason), "%.120s was not counted", v->missing);
	}
}

static void find_value(struct stored_tree *t, size_t node, const int *pass, size_t n_passes)
{
	struct metric_value *v = &t->node[node];
	struct picked p;
	int r = EXPRESSION_MISSING;
	*v = (struct metric_value){.value = NAN, .error = NAN, .running = 1};
	t->pass[node] = ALL_PASSES;
	for (size_t i = 0; i < n_passes && r == EXPRESSION_MISSING; i++) {
		pick(t, pass[i], COUNTED_STRETCHES, &p);
		r = metric_inputs_value(
			t->inputs, t->of_node[node], p.count, &v->value, &v->missing);
		if (r != EXPRESSION_MISSING)
			t->pass[node] = pass[i];
	}
	if (r == EXPRESSION_MISSING) {
		pick(t, ALL_PASSES, COUNTED_STRETCHES, &p);
		r = metric_inputs_value(
			t->inputs, t->of_node[node], p.count, &v->value, &v->missing);
	}
	if (r == 0)
		v->running = least_part(t, t->of_node[node], &p);
	else
		say_missing(t, v, r);
	if (r != 0)
		v->value = NAN;
}

static void find_rests(const struct stored_tree *t, const double *value, double *ret_rest)
{
	size_t n = t->tree->n_nodes;
	for (size_t i = 0; i < n; i++)
		ret_rest[i] = metric_tree_rest(t->tree, (int)i, value);
	ret_rest[n] = metric_tree_rest(t->tree, -1, value);
}

/* How far turns may put counts off: each group that was on at a turn by its part. */
static double turn_part(const struct stored_tree *t)
{
	double sum = 0;
	for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
		double part = 0;
		for (size_t e = 0; e < t->counted->n_events; e++)
			if (t->counted->event[e].core == t->core &&
				t->counted->event[e].pass == pass)
				part = fmax(part, counted_part(&t->counted->event[e].all));
		sum += t->counted->core[t->core].turn[pass] * part;
	}
	return sum;
}

/* What is not as it was counted: a stretch is left out (COUNTED_STRETCHES: none), or the count of an input is
 * larger by a part. */
struct change {
	size_t stretch, input;
	double part;
};

/* The values of all nodes with that change, then those of the rests. */
static void values_with(const struct stored_tree *t, const struct change *change, double *ret_value)
{
	size_t n = t->tree->n_nodes;
	const char *missing;
	struct picked p;
	for (size_t i = 0; i < n; i++) {
		pick(t, t->pass[i], change->stretch, &p);
		if (change->part > 0)
			p.count[change->input] *= 1 + change->part;
		if (!isfinite(t->node[i].value) || metric_inputs_value(t->inputs, t->of_node[i],
							   p.count, &ret_value[i], &missing) != 0)
			ret_value[i] = NAN;
	}
	find_rests(t, ret_value, ret_value + n);
}

static struct metric_value *value_at(struct stored_tree *t, size_t i)
{
	return i < t->tree->n_nodes ? &t->node[i] : &t->rest[i - t->tree->n_nodes];
}

/* As of counts that are not stored (stat_metrics.c): what raises a value and what lowers it partly cancel, so
 * the larger of both is the most that it can be off. */
static void add_turns(struct stored_tree *t, double *room)
{
	size_t n = 2 * t->tree->n_nodes + 1;
	double *exact = room, *off = room + n, *up = off + n, *down = up + n;
	double part = turn_part(t);
	struct change change = {.stretch = COUNTED_STRETCHES};
	if (part <= 0)
		return;
	values_with(t, &change, exact);
	for (size_t i = 0; i < n; i++)
		up[i] = down[i] = 0;
	change.part = part;
	for (change.input = 0; change.input < metric_inputs_n(t->inputs); change.input++) {
		values_with(t, &change, off);
		for (size_t i = 0; i < n; i++) {
			up[i] += fmax(off[i] - exact[i], 0);
			down[i] += fmax(exact[i] - off[i], 0);
		}
	}
	for (size_t i = 0; i < n; i++)
		if (!scatter_is_whole(value_at(t, i)->running))
			value_at(t, i)->error += fmax(up[i], down[i]);
}

static int find_errors(struct stored_tree *t)
{
	size_t n = 2 * t->tree->n_nodes + 1, n_filled = 0;
	double without[COUNTED_STRETCHES];
	_cleanup_(freep) double *value = calloc(COUNTED_STRETCHES * n, sizeof(*value));
	if (!value)
		return -ENOMEM;
	_Static_assert(COUNTED_STRETCHES >= 4, "room for add_turns");
	for (size_t s = 0; s < COUNTED_STRETCHES; s++)
		if (is_filled(t, s))
			values_with(t, &(struct change){.stretch = s}, value + n_filled++ * n);
	for (size_t i = 0; i < n; i++) {
		struct metric_value *to = value_at(t, i);
		for (size_t s = 0; s < n_filled; s++)
			without[s] = value[s * n + i];
		to->error = scatter_error(without, NULL, n_filled, to->running);
	}
	add_turns(t, value);
	return 0;
}

static int find_values(struct stored_tree *t)
{
	int pass[PASSES_MAX];
	size_t n_passes = find_passes(t, pass), n = t->tree->n_nodes;
	double value[METRICS_MAX], rest[METRICS_MAX + 1], running = 1;
	for (size_t i = 0; i < n; i++) {
		find_value(t, i, pass, n_passes);
		value[i] = t->node[i].value;
		t->value[i] = &t->node[i];
		running = fmin(running, t->node[i].running);
	}
	find_rests(t, value, rest);
	for (size_t i = 0; i <= n; i++)
		t->rest[i] = (struct metric_value){.value = rest[i], .running = running};
	return find_errors(t);
}

/* --- the tree --------------------------------------------------------------------------------- */

static int find_metrics(
	struct stored_tree *t, const struct platform *p, struct event_error *ret_error)
{
	size_t n = t->tree->n_nodes;
	const struct metric_core core = {p, NULL, t->counted->core[t->core].harts};
	struct metric_choice chosen = {.n = n};
	for (size_t i = 0; i < n; i++)
		chosen.metric[i] = t->tree->node[i].metric;
	int r = metric_inputs_new(&core, &chosen, &t->inputs, ret_error);
	t->of_node = calloc(n, sizeof(*t->of_node));
	t->pass = calloc(n, sizeof(*t->pass));
	t->node = calloc(n, sizeof(*t->node));
	t->value = calloc(n, sizeof(*t->value));
	t->rest = calloc(n + 1, sizeof(*t->rest));
	if (r != 0)
		return r;
	if (!t->of_node || !t->pass || !t->node || !t->value || !t->rest)
		return -ENOMEM;
	for (size_t node = 0; node < n; node++)
		for (size_t i = 0; i < metric_inputs_n_metrics(t->inputs); i++)
			if (metric_inputs_metric(t->inputs, i) == t->tree->node[node].metric)
				t->of_node[node] = i;
	return 0;
}

static void tree_clear(struct stored_tree *t)
{
	metric_tree_free(t->tree);
	metric_inputs_free(t->inputs);
	free(t->of_node);
	free(t->pass);
	free(t->node);
	free(t->value);
	free(t->rest);
	t->tree = NULL;
	t->inputs = NULL;
	t->of_node = NULL;
	t->pass = NULL;
	t->node = NULL;
	t->value = NULL;
	t->rest = NULL;
}

void stored_tree_clear(struct stored_tree *t)
{
	tree_clear(t);
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

/* A tree of so many levels, with its values. 0; METRIC_*; -ENOMEM. */
static int make_levels(struct stored_tree *t, const struct platform *p, const char *top, int levels,
	struct event_error *ret_error)
{
	int r = metric_tree_new(p, top, levels, &t->tree);
	if (r == METRIC_TREE_NONE && strcmp(top, METRIC_TREE_TOP) == 0) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"no top-down tree is known of this core (%s)", p->title);
		return METRIC_NO_TREE;
	}
	if (r == METRIC_TREE_NONE) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"%s knows no metric or group named '%.64s'", p->title, top);
		return METRIC_UNKNOWN;
	}
	if (r == 0 && levels > t->tree->levels) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"the top-down tree of %s has %d level%s, not %d", p->title, t->tree->levels,
			t->tree->levels == 1 ? "" : "s", levels);
		return METRIC_NO_LEVEL;
	}
	if (r == 0 && t->tree->n_nodes > METRICS_MAX)
		return METRIC_TOO_MANY;
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
			"the recording does not say which cores it was made on: an older mperf "
			"wrote it");
	else if (!p)
		snprintf(ret_error->text, sizeof(ret_error->text),
			"it was made on the platform '%.64s', which the platform database here "
			"lacks",
			name);
	*ret_platform = p;
	return p ? 0 : METRIC_NO_TREE;
}

int stored_tree_make(struct stored_tree *t, const struct counted *c, unsigned core,
	const struct stored_wish *wish, struct event_error *ret_error)
{
	const struct platform *p;
	const char *top = wish->top ? wish->top : METRIC_TREE_TOP;
	*t = (struct stored_tree){.counted = c, .core = core};
	hart_set_says(&c->core[core].harts, t->harts, sizeof(t->harts));
	int r = find_platform(t, wish, &p, ret_error);
	if (r == 0)
		r = make_levels(t, p, top, wish->levels, ret_error);
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
	/* what lies below was not counted, and is told of as for a tree that was cut */
	tree_clear(t);
	return make_levels(t, p, top, deepest, ret_error);
}

/* --- as tables -------------------------------------------------------------------------------- */

static const char *stored_input(const struct topdown_tree *view, size_t node, size_t i)
{
	const struct stored_tree *t = view->userdata;
	const struct metric_needs needs = metric_inputs_needs(t->inputs, t->of_node[node]);
	return i < needs.n ? metric_inputs_name(t->inputs, needs.input[i]) : NULL;
}

static void stored_passes(
	const struct topdown_tree *view, size_t node, char text[static METRIC_PASSES_BYTES])
{
	const struct stored_tree *t = view->userdata;
	text[0] = '\0';
	if (t->pass[node] >= 0)
		snprintf(text, METRIC_PASSES_BYTES, "%d", t->pass[node] + 1);
}

static bool is_any_input(const struct stored_tree *t, const struct counted_event *e)
{
	for (size_t i = 0; i < metric_inputs_n(t->inputs); i++)
		if (is_input(t, e, i))
			return true;
	return false;
}

static int send_events(const struct topdown_tree *view, const struct answer *answer)
{
	const struct stored_tree *t = view->userdata;
	int r = 0;
	for (size_t i = 0; i < t->counted->n_events && r == 0; i++) {
		const struct counted_event *e = &t->counted->event[i];
		double scaled = counted_scaled(&e->all);
		if (!is_any_input(t, e))
			continue;
		struct answer_value v[N_STAT_COLUMNS] = {
			answer_text(name_of(t, e)), answer_real(e->all.value)};
		if (isfinite(scaled)) {
			v[2] = answer_real(scaled);
			v[3] = answer_real(e->all.enabled_ns);
			v[4] = answer_real(e->all.running_ns);
			v[5] = answer_real(counted_part(&e->all));
		} else {
			v[1] = (struct answer_value){.kind = ANSWER_ABSENT};
			v[STAT_COLUMN_REASON] = answer_text("it never got a counter");
		}
		r = topdown_send_event(view, v, e->pass + 1, answer);
	}
	return r;
}

struct topdown_tree stored_tree_view(const struct stored_tree *t)
{
	int pass[PASSES_MAX];
	size_t n_passes = find_passes(t, pass);
	return (struct topdown_tree){
		.core = t->title,
		.harts = t->harts,
		.tree = t->tree,
		.n_passes = n_passes,
		.turns = n_passes > 1 ? "the kernel rotates the passes" : "no",
		.value = t->value,
		.rest = t->rest,
		.input = stored_input,
		.passes = stored_passes,
		.send_events = send_events,
		.userdata = t,
	};
}
