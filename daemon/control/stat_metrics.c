/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A tree that was asked for without a depth is cut, a level at a time, until all of it can be counted
 * in one request.
 */
#include "daemon/control/stat_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/metric/metric_walk.h"
#include "platform-db/expression.h"
#include "proto/base/memory.h"

/* --- the plan --------------------------------------------------------------------------------- */

/* Append the events of all passes. 0, METRIC_TOO_MANY, -ENOMEM. */
static int add_events(const struct kernel *k, const struct cores *cores,
	const struct metric_plan *plan, struct event_list *events, struct event_error *ret_error)
{
	int r = 0;
	for (size_t pass = 0; metric_plan_events(plan, pass) && r == 0; pass++)
		r = event_parse_for(k, cores, metric_plan_events(plan, pass), events, ret_error);
	return r > 0 ? METRIC_TOO_MANY : r;
}

/* What is planned for whom. */
struct planning {
	const struct kernel *kernel;
	const struct metric_harts *harts;
	const struct metric_wish *wish;
	struct event_list *events;
	struct event_error *error;
};

static int plan_names(
	const struct planning *p, char *const *name, size_t n, struct stat_metrics *to)
{
	_cleanup_(freep) struct event_list *more = malloc(sizeof(*more));
	_cleanup_(metric_plan_freep) struct metric_plan *plan = NULL;
	if (!more)
		return -ENOMEM;
	*more = *p->events;
	int r = metric_plan_for(p->kernel, p->harts, name, n, &plan, p->error);
	if (r == 0)
		r = add_events(p->kernel, p->harts->cores, plan, more, p->error);
	if (r == METRIC_TOO_MANY && p->harts->shares) {
		/* what is read in groups of others may be more events than a plan of our own has */
		struct metric_harts own = *p->harts;
		struct planning without = *p;
		own.shares = NULL;
		without.harts = &own;
		return plan_names(&without, name, n, to);
	}
	if (r != 0)
		return r;
	to->first = p->events->n_events;
	*p->events = *more;
	to->plan = TAKE_PTR(plan);
	return 0;
}

/* Where each node's metric is in the plan. */
static int find_nodes(struct stat_metrics *m)
{
	/* Cannot be: each metric is one node at most, and the planner takes no more of them. Clients have
	 * room for as many. */
	if (m->tree->n_nodes > METRICS_MAX)
		return -E2BIG;
	m->of_node = calloc(m->tree->n_nodes, sizeof(*m->of_node));
	if (!m->of_node)
		return -ENOMEM;
	for (size_t node = 0; node < m->tree->n_nodes; node++)
		for (size_t i = 0; i < metric_plan_n_metrics(m->plan); i++)
			if (metric_plan_metric(m->plan, i)->metric == m->tree->node[node].metric)
				m->of_node[node] = i;
	return 0;
}

static int plan_tree(const struct planning *p, struct stat_metrics *m)
{
	const struct metric_tree *tree = m->tree;
	_cleanup_(freep) char **name = calloc(tree->n_nodes, sizeof(*name));
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_nodes; i++)
		name[i] = (char *)tree->node[i].metric->name;
	int r = plan_names(p, name, tree->n_nodes, m);
	return r == 0 ? find_nodes(m) : r;
}

static int no_tree(
	const struct platform *p, const struct metric_wish *wish, struct event_error *ret_error)
{
	if (wish->n_names == 0) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"no top-down tree is known of this core (%s)", p->title);
		return METRIC_NO_TREE;
	}
	metric_say_unknown(p, wish->name[0], ret_error);
	return METRIC_UNKNOWN;
}

static int make_tree(const struct planning *plan, struct stat_metrics *m)
{
	const struct platform *p = plan->harts->platform;
	const struct metric_wish *wish = plan->wish;
	const char *top = wish->n_names ? wish->name[0] : METRIC_TREE_TOP;
	int r = metric_tree_new(p, top, wish->levels, &m->tree);
	if (r == METRIC_TREE_NONE)
		return no_tree(p, wish, plan->error);
	if (r == 0 && wish->levels > m->tree->levels) {
		snprintf(plan->error->text, sizeof(plan->error->text),
			"the top-down tree of %s has %d level%s, not %d", p->title, m->tree->levels,
			m->tree->levels == 1 ? "" : "s", wish->levels);
		return METRIC_NO_LEVEL;
	}
	for (int levels = r == 0 ? m->tree->levels : 0; levels > 0; levels--) {
		r = plan_tree(plan, m);
		if (r != METRIC_TOO_MANY || wish->levels || levels == 1)
			break;
		m->tree = metric_tree_free(m->tree);
		m->is_cut = true;
		r = metric_tree_new(p, top, levels - 1, &m->tree);
		if (r != 0)
			break;
	}
	return r;
}

int stat_metrics_new(const struct kernel *k, const struct metric_harts *harts,
	const struct metric_wish *wish, struct event_list *events,
	struct stat_metrics **ret_metrics, struct event_error *ret_error)
{
	_cleanup_(stat_metrics_freep) struct stat_metrics *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	const struct planning plan = {k, harts, wish, events, ret_error};
	int r = wish->is_tree ? make_tree(&plan, s)
			      : plan_names(&plan, wish->name, wish->n_names, s);
	if (r != 0)
		return r;
	if (events->n_events == 0) {
		const struct planned_metric *first = metric_plan_metric(s->plan, 0);
		snprintf(ret_error->text, sizeof(ret_error->text),
			"no event of %s can be counted: %.400s", first->metric->name,
			first->because ? first->because : "it needs none");
		return METRIC_NO_EVENT;
	}
	s->n_events = (size_t)(events->n_events - s->first);
	*ret_metrics = TAKE_PTR(s);
	return 0;
}

int stat_metrics_share(const struct stat_metrics *of, struct stat_metrics **ret_metrics)
{
	struct stat_metrics *s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = *of;
	s->is_shared = true;
	*ret_metrics = s;
	return 0;
}

struct stat_metrics *stat_metrics_free(struct stat_metrics *m)
{
	if (!m)
		return NULL;
	if (!m->is_shared) {
		metric_plan_free(m->plan);
		metric_tree_free(m->tree);
		free(m->of_node);
	}
	free(m);
	return NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

static size_t n_nodes(const struct stat_metrics *m)
{
	return m->tree ? m->tree->n_nodes : 0;
}

/* What is left of each node, and of all slots, where values[] are those of the plan's metrics. */
static void find_rests(const struct stat_metrics *m, const double *value, double *ret_rest)
{
	double of_node[METRICS_MAX];
	for (size_t i = 0; i < n_nodes(m); i++)
		of_node[i] = value[m->of_node[i]];
	ret_rest[n_nodes(m)] = m->tree ? metric_tree_rest(m->tree, -1, of_node) : NAN;
	for (size_t i = 0; i < n_nodes(m); i++)
		ret_rest[i] = metric_tree_rest(m->tree, (int)i, of_node);
}

/* The values of all metrics from these counts of the plan's events, then those of the rests. */
static void values_of(const struct stat_metrics *m, const double *counts, double *ret_values)
{
	const char *missing;
	size_t n = metric_plan_n_metrics(m->plan);
	for (size_t i = 0; i < n; i++)
		if (metric_inputs_value(
			    metric_plan_inputs(m->plan), i, counts, &ret_values[i], &missing) != 0)
			ret_values[i] = NAN;
	find_rests(m, ret_values, ret_values + n);
}

/* The same without one stretch of the time. `count` has NAN where an event has no count. */
static void values_without(const struct stat_metrics *m, const struct stat_counts *counts,
	const double *count, size_t stretch, double *ret_values)
{
	double without[EVENTS_MAX];
	scatter_without(counts->scatter, stretch, without);
	for (size_t e = 0; e < m->n_events; e++)
		if (isnan(count[e]))
			without[(size_t)m->first + e] = NAN;
	values_of(m, without + m->first, ret_values);
}

static struct metric_value *value_at(
	const struct stat_metrics *m, struct metric_values *v, size_t i)
{
	size_t n = metric_plan_n_metrics(m->plan);
	return i < n ? &v->metric[i] : &v->rest[i - n];
}

/* What turns may have done to the values. Each count is off by a part between none and turn_part, all in
 * the same direction, so what raises a value and what lowers it partly cancel: the larger of both is the
 * most that it can be off. */
static void add_turns(const struct stat_metrics *m, double turn_part, const double *count,
	double *room, struct metric_values *v)
{
	size_t n_values = metric_plan_n_metrics(m->plan) + n_nodes(m) + 1;
	double *exact = room, *off = room + n_values, *up = off + n_values, *down = up + n_values;
	double counts[EVENTS_MAX];
	memcpy(counts, count, m->n_events * sizeof(*counts));
	values_of(m, counts, exact);
	for (size_t i = 0; i < n_values; i++)
		up[i] = down[i] = 0;
	for (size_t e = 0; e < m->n_events; e++) {
		counts[e] = count[e] * (1 + turn_part);
		values_of(m, counts, off);
		counts[e] = count[e];
		for (size_t i = 0; i < n_values; i++) {
			up[i] += fmax(off[i] - exact[i], 0);
			down[i] += fmax(exact[i] - off[i], 0);
		}
	}
	for (size_t i = 0; i < n_values; i++)
		if (!scatter_is_whole(value_at(m, v, i)->running))
			value_at(m, v, i)->error += fmax(up[i], down[i]);
}

/* Intervals of all values, from those without each stretch, and what turns do. */
static int find_errors(const struct stat_metrics *m, const struct stat_counts *counts,
	const double *count, struct metric_values *v)
{
	size_t n_stretches = counts->scatter ? scatter_n_stretches(counts->scatter) : 0;
	size_t n_values = metric_plan_n_metrics(m->plan) + n_nodes(m) + 1;
	double without[SCATTER_STRETCHES_MAX], part[SCATTER_STRETCHES_MAX];
	_Static_assert(SCATTER_STRETCHES_MAX >= 4, "room for add_turns");
	_cleanup_(freep) double *value = calloc(SCATTER_STRETCHES_MAX * n_values, sizeof(*value));
	if (!value)
		return -ENOMEM;
	for (size_t s = 0; s < n_stretches; s++) {
		values_without(m, counts, count, s, value + s * n_values);
		part[s] = scatter_part(counts->scatter, s);
	}
	for (size_t i = 0; i < n_values; i++) {
		struct metric_value *to = value_at(m, v, i);
		for (size_t s = 0; s < n_stretches; s++)
			without[s] = value[s * n_values + i];
		to->error = scatter_error(without, part, n_stretches, to->running);
	}
	add_turns(m, counts->turn_part, count, value, v);
	return 0;
}

/* The part of the time in which a metric's events were counted, the least of them. */
static double running_of(
	const struct stat_metrics *m, const struct stat_counts *counts, size_t metric)
{
	const struct planned_metric *planned = metric_plan_metric(m->plan, metric);
	double least = 1;
	for (int e = m->first; e < counts->counter->events.n_events; e++)
		if (metric_plan_needs(m->plan, planned, (size_t)(e - m->first)))
			least = fmin(least, stat_counts_running(counts, e));
	return least;
}

/* Why the event that has no count has none; NULL: it is not one of the counted events. */
static const char *why_not(const struct stat_metrics *m, const struct stat_counts *counts,
	const struct planned_metric *planned, const char *name,
	char reason[static STAT_REASON_BYTES])
{
	for (int e = m->first; e < counts->counter->events.n_events; e++) {
		const char *event = counts->counter->events.event[e].name;
		size_t n = strlen(name);
		if (metric_plan_needs(m->plan, planned, (size_t)(e - m->first)) &&
			strncasecmp(event, name, n) == 0 && (!event[n] || event[n] == ':'))
			return stat_counts_why_not(counts, e, reason);
	}
	return NULL;
}

static void say_missing(const struct stat_metrics *m, const struct stat_counts *counts,
	const struct planned_metric *planned, int result, struct metric_value *v)
{
	char reason[STAT_REASON_BYTES];
	const char *why;
	if (planned->fate == PLAN_IMPOSSIBLE) {
		v->missing = planned->lacks;
		snprintf(v->reason, sizeof(v->reason), "%.300s", planned->because);
	} else if (result == EXPRESSION_UNDEFINED) {
		v->missing = NULL;
		snprintf(v->reason, sizeof(v->reason), "nothing to divide by: a count in it is 0");
	} else {
		why = why_not(m, counts, planned, v->missing, reason);
		snprintf(v->reason, sizeof(v->reason), "%.120s was not counted%s%s", v->missing,
			why ? ": " : "", why ? why : "");
	}
}

static void find_value(const struct stat_metrics *m, const struct stat_counts *counts,
	const double *count, size_t i, struct metric_value *v)
{
	const struct planned_metric *planned = metric_plan_metric(m->plan, i);
	int result = EXPRESSION_MISSING;
	v->running = running_of(m, counts, i);
	v->value = NAN;
	if (planned->fate != PLAN_IMPOSSIBLE)
		result = metric_inputs_value(
			metric_plan_inputs(m->plan), i, count, &v->value, &v->missing);
	if (result != 0)
		say_missing(m, counts, planned, result, v);
}

static void find_rest_values(const struct stat_metrics *m, struct metric_values *v)
{
	double value[METRICS_MAX], rest[METRICS_MAX + 1], running = 1;
	for (size_t i = 0; i < metric_plan_n_metrics(m->plan); i++) {
		value[i] = v->metric[i].value;
		running = fmin(running, v->metric[i].running);
	}
	find_rests(m, value, rest);
	for (size_t i = 0; i <= n_nodes(m); i++)
		v->rest[i] = (struct metric_value){.value = rest[i], .running = running};
}

int stat_metrics_values(const struct stat_metrics *m, const struct stat_counts *counts,
	struct metric_values *ret_values)
{
	size_t n = metric_plan_n_metrics(m->plan);
	char reason[STAT_REASON_BYTES];
	double count[EVENTS_MAX];
	struct metric_values v = {.metric = calloc(n, sizeof(*v.metric)),
		.rest = calloc(n_nodes(m) + 1, sizeof(*v.rest))};
	if (!v.metric || !v.rest) {
		metric_values_clear(&v);
		return -ENOMEM;
	}
	for (int e = m->first; e < counts->counter->events.n_events; e++) {
		int position = e - m->first;
		bool is_counted =
			counts->count[e].count >= 0 && !stat_counts_why_not(counts, e, reason);
		count[position] = is_counted ? counts->count[e].count : NAN;
	}
	for (size_t i = 0; i < n; i++)
		find_value(m, counts, count, i, &v.metric[i]);
	find_rest_values(m, &v);
	int r = find_errors(m, counts, count, &v);
	if (r < 0)
		metric_values_clear(&v);
	else
		*ret_values = v;
	return r;
}

void metric_values_clear(struct metric_values *v)
{
	free(v->metric);
	free(v->rest);
	*v = (struct metric_values){NULL, NULL};
}

void stat_metrics_passes(
	const struct stat_metrics *m, size_t i, char text[static METRIC_PASSES_BYTES])
{
	const struct planned_metric *planned = metric_plan_metric(m->plan, i);
	size_t position = 0, written = 0, last = 0;
	text[0] = '\0';
	if (planned->fate == PLAN_IMPOSSIBLE)
		return;
	for (; position < m->n_events && written < METRIC_PASSES_BYTES - 8; position++) {
		size_t pass = metric_plan_pass(m->plan, position) + 1;
		if (pass == last || !metric_plan_needs(m->plan, planned, position))
			continue;
		written += (size_t)snprintf(text + written, METRIC_PASSES_BYTES - written, "%s%zu",
			last ? "+" : "", pass);
		last = pass;
	}
}
