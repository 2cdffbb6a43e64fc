/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A tree that was asked for without a depth is cut, a level at a time, until all of it can be counted
 * in one request.
 */
#include "daemon/metric/live_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

/* --- the plan --------------------------------------------------------------------------------- */

/* A planning: for which harts, which metrics, and where their events go. */
struct planning {
	const struct kernel *kernel;
	const struct metric_harts *harts;
	const struct metric_wish *wish;
	struct event_list *events;
	struct event_error *error;
};

static int plan_chosen(
	const struct planning *p, const struct metric_choice *chosen, struct live_metrics *to)
{
	_cleanup_(freep) struct event_list *more = malloc(sizeof(*more));
	_cleanup_(metric_plan_freep) struct metric_plan *plan = NULL;
	if (!more)
		return -ENOMEM;
	*more = *p->events;
	int r = metric_plan_of(p->kernel, p->harts, chosen, &plan, p->error);
	if (r == 0)
		r = metric_plan_parse(plan, more, p->error);
	if (r == METRIC_TOO_MANY && p->harts->shares) {
		/* groups of others may have more events than a plan of our own */
		struct metric_harts own = *p->harts;
		struct planning without = *p;
		own.shares = NULL;
		without.harts = &own;
		return plan_chosen(&without, chosen, to);
	}
	if (r != 0)
		return r;
	to->first = p->events->n_events;
	*p->events = *more;
	to->plan = TAKE_PTR(plan);
	return 0;
}

static int plan_names(const struct planning *p, struct live_metrics *to)
{
	struct metric_choice chosen = {.n = 0};
	int r = metric_choose(
		p->harts->platform, p->wish->name, p->wish->n_names, &chosen, p->error);
	return r == 0 ? plan_chosen(p, &chosen, to) : r;
}

static int plan_tree(const struct planning *p, struct live_metrics *m)
{
	const char *top = p->wish->n_names ? p->wish->name[0] : NULL;
	struct metric_choice chosen;
	int r = metric_find_tree(p->harts->platform, top, p->wish->levels, &m->tree, p->error);
	while (r == 0) {
		r = metric_choose_tree(m->tree, &chosen, p->error);
		if (r == 0)
			r = plan_chosen(p, &chosen, m);
		const int levels = m->tree->levels - 1;
		if (r != METRIC_TOO_MANY || p->wish->levels || levels == 0)
			break;
		m->tree = metric_tree_free(m->tree);
		m->is_cut = true;
		r = metric_find_tree(p->harts->platform, top, levels, &m->tree, p->error);
	}
	return r;
}

int live_metrics_new(const struct kernel *k, const struct metric_harts *harts,
	const struct metric_wish *wish, struct event_list *events,
	struct live_metrics **ret_metrics, struct event_error *ret_error)
{
	_cleanup_(live_metrics_freep) struct live_metrics *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	const struct planning plan = {k, harts, wish, events, ret_error};
	int r = wish->is_tree ? plan_tree(&plan, s) : plan_names(&plan, s);
	if (r != 0)
		return r;
	s->n_events = (size_t)(events->n_events - s->first);
	*ret_metrics = TAKE_PTR(s);
	return 0;
}

int live_metrics_share(const struct live_metrics *of, struct live_metrics **ret_metrics)
{
	struct live_metrics *s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = *of;
	s->is_shared = true;
	*ret_metrics = s;
	return 0;
}

struct live_metrics *live_metrics_free(struct live_metrics *m)
{
	if (!m)
		return NULL;
	if (!m->is_shared) {
		metric_plan_free(m->plan);
		metric_tree_free(m->tree);
	}
	free(m);
	return NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Give the reasons why events have no count. */
static void explain(
	const struct live_metrics *m, const struct counts *counts, struct metric_value *value)
{
	char reason[COUNTS_REASON_BYTES];
	for (size_t i = 0; i < metric_plan_n_metrics(m->plan); i++) {
		const struct planned_metric *planned = metric_plan_metric(m->plan, i);
		struct metric_value *v = &value[i];
		const int e = m->first + v->missing_column;
		const char *why = v->missing_column >= 0 ? counts_why_not(counts, e, reason) : NULL;
		if (planned->fate == PLAN_IMPOSSIBLE) {
			v->missing = planned->lacks;
			snprintf(v->reason, sizeof(v->reason), "%.300s", planned->because);
		} else if (why) {
			snprintf(v->reason, sizeof(v->reason), "%.120s was not counted: %s",
				v->missing, why);
		}
	}
}

/* Rows of counts of the plan's events. */
struct rows {
	double whole[EVENTS_MAX], running[EVENTS_MAX], part[JACKKNIFE_STRETCHES_MAX];
	double without[JACKKNIFE_STRETCHES_MAX * EVENTS_MAX];
};

static struct metric_counts fill_rows(
	const struct live_metrics *m, const struct counts *counts, struct rows *rows)
{
	char reason[COUNTS_REASON_BYTES];
	double all[EVENTS_MAX];
	const size_t n = m->n_events;
	const size_t n_stretches = counts->jackknife ? jackknife_n_stretches(counts->jackknife) : 0;
	for (size_t i = 0; i < n; i++) {
		const int e = m->first + (int)i;
		bool is_counted = counts->count[e].count >= 0 && !counts_why_not(counts, e, reason);
		rows->whole[i] = is_counted ? counts->count[e].count : NAN;
		rows->running[i] = counts_running(counts, e);
	}
	for (size_t s = 0; s < n_stretches; s++) {
		jackknife_without(counts->jackknife, s, all);
		rows->part[s] = jackknife_part(counts->jackknife, s);
		for (size_t i = 0; i < n; i++)
			rows->without[s * n + i] =
				isnan(rows->whole[i]) ? NAN : all[(size_t)m->first + i];
	}
	return (struct metric_counts){.n = n,
		.whole = rows->whole,
		.running = rows->running,
		.without = rows->without,
		.n_stretches = n_stretches,
		.part = rows->part,
		.rotation = counts->rotation};
}

int live_metrics_values(
	const struct live_metrics *m, const struct counts *counts, struct metric_values *ret_values)
{
	const size_t n = metric_plan_n_metrics(m->plan);
	struct rows rows;
	const struct metric_counts c = fill_rows(m, counts, &rows);
	struct metric_values v = {calloc(n, sizeof(*v.metric)), calloc(n + 1, sizeof(*v.residual))};
	if (!v.metric || !v.residual) {
		metric_values_clear(&v);
		return -ENOMEM;
	}
	metric_evaluate(metric_plan_inputs(m->plan), m->tree, &c, v.metric, v.residual);
	explain(m, counts, v.metric);
	*ret_values = v;
	return 0;
}

void metric_values_clear(struct metric_values *v)
{
	free(v->metric);
	free(v->residual);
	*v = (struct metric_values){NULL, NULL};
}

void live_metrics_passes(
	const struct live_metrics *m, size_t i, char text[static METRIC_PASSES_BYTES])
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
