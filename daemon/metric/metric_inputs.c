/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/metric/metric_inputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/metric/metric_walk.h"
#include "proto/base/memory.h"

struct metric_inputs {
	const struct platform *platform;
	int n_harts;
	struct pool *pool;
	struct metric_choice chosen;
	bool needs[METRICS_MAX][METRIC_INPUTS_MAX];
	char name[METRIC_INPUTS_MAX][EVENT_NAME_BYTES_MAX];
	size_t n;
};

/* --- what they need --------------------------------------------------------------------------- */

static int known_value(
	void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const struct metric_inputs *m = userdata;
	switch (kind) {
	case EXPRESSION_CONSTANT:
		if (strcasecmp(name, "num_cpus") != 0)
			return platform_constant(m->platform, name, ret_value);
		*ret_value = m->n_harts;
		return 0;
	case EXPRESSION_HAS_EVENT:
		*ret_value = platform_event_find(m->platform, name) != NULL;
		return 0;
	case EXPRESSION_SOURCE_COUNT:
		*ret_value = 1;
		return 0;
	default:
		return EXPRESSION_MISSING;
	}
}

static int find(const struct metric_inputs *m, const char *name)
{
	char spelled[EVENT_NAME_BYTES_MAX];
	metric_spell(name, spelled);
	for (size_t i = 0; i < m->n; i++)
		if (strcasecmp(m->name[i], spelled) == 0)
			return (int)i;
	return -1;
}

static int need(struct metric_inputs *m, size_t metric, const char *name)
{
	int at = find(m, name);
	if (at < 0 && m->n == METRIC_INPUTS_MAX)
		return METRIC_TOO_MANY;
	if (at < 0) {
		at = (int)m->n++;
		metric_spell(name, m->name[at]);
	}
	m->needs[metric][at] = true;
	return 0;
}

struct collecting {
	struct metric_inputs *inputs;
	size_t metric;
};

static int take_input(void *userdata, const char *name)
{
	const struct collecting *c = userdata;
	return need(c->inputs, c->metric, name);
}

static int collect(struct metric_inputs *m, size_t metric)
{
	const struct expression_source known = {known_value, m};
	struct collecting c = {m, metric};
	return metric_each_input(
		m->platform, m->pool, m->chosen.metric[metric], &known, take_input, &c);
}

int metric_inputs_new(const struct platform *p, char *const *name, size_t n, int n_harts,
	struct metric_inputs **ret_inputs, struct event_error *ret_error)
{
	_cleanup_(metric_inputs_freep) struct metric_inputs *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->platform = p;
	m->n_harts = n_harts;
	m->pool = pool_new();
	int r = m->pool ? 0 : -ENOMEM;
	if (r == 0)
		r = metric_choose(p, name, n, &m->chosen, ret_error);
	if (r != 0)
		return r;
	for (size_t i = 0; i < m->chosen.n && r == 0; i++)
		r = collect(m, i);
	if (r == METRIC_TOO_MANY)
		snprintf(ret_error->text, sizeof(ret_error->text),
			"these metrics need more than %d events", METRIC_INPUTS_MAX);
	if (r == 0)
		*ret_inputs = TAKE_PTR(m);
	return r;
}

struct metric_inputs *metric_inputs_free(struct metric_inputs *m)
{
	if (m)
		pool_free(m->pool);
	free(m);
	return NULL;
}

size_t metric_inputs_n_metrics(const struct metric_inputs *m)
{
	return m->chosen.n;
}

const struct platform_metric *metric_inputs_metric(const struct metric_inputs *m, size_t i)
{
	return m->chosen.metric[i];
}

size_t metric_inputs_n(const struct metric_inputs *m)
{
	return m->n;
}

const char *metric_inputs_name(const struct metric_inputs *m, size_t input)
{
	return m->name[input];
}

bool metric_inputs_needs(const struct metric_inputs *m, size_t i, size_t input)
{
	return m->needs[i][input];
}

/* --- which event it is ------------------------------------------------------------------------ */

/* A generic event by its name. */
static const struct event_name *generic_named(const char *name)
{
	for (size_t i = 0; i < n_event_names; i++)
		if (strcasecmp(event_names[i].name, name) == 0 ||
			(event_names[i].alias && strcasecmp(event_names[i].alias, name) == 0))
			return &event_names[i];
	return NULL;
}

/* The two clocks run alike where they are counted: while a hart's or a thread's events are on. */
static bool is_clock(uint32_t type, uint64_t config)
{
	return type == PERF_TYPE_SOFTWARE &&
	       (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK);
}

bool metric_inputs_match(
	const struct metric_inputs *m, size_t input, const struct metric_event *event)
{
	const char *name = m->name[input];
	size_t n = strcspn(event->name, ":");
	char bare[EVENT_NAME_BYTES_MAX];
	if (strchr(event->name, '/')) /* "pmu/event/" has its modifiers behind the last slash */
		n = (size_t)(strrchr(event->name, '/') - event->name) + 1;
	snprintf(bare, sizeof(bare), "%.*s", (int)n, event->name);
	if (strcasecmp(bare, name) == 0)
		return true;
	const struct event_name *generic = generic_named(name);
	if (generic && generic->type == event->type && generic->config == event->config)
		return true;
	if (generic && is_clock(generic->type, generic->config))
		return is_clock(event->type, event->config);
	const struct platform_event *own = platform_event_find(m->platform, name);
	if (!own && generic)
		own = platform_event_generic(m->platform, generic->type, generic->config);
	if (!own)
		return false;
	return platform_event_find(m->platform, bare) == own ||
	       platform_event_generic(m->platform, event->type, event->config) == own ||
	       (event->type == PERF_TYPE_RAW && event->config == own->code);
}

/* --- values ----------------------------------------------------------------------------------- */

struct counted {
	const struct metric_inputs *inputs;
	const double *count;
};

static int counted_value(
	void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const struct counted *c = userdata;
	if (kind != EXPRESSION_NAME)
		return known_value((void *)c->inputs, kind, name, ret_value);
	int input = find(c->inputs, name);
	if (input < 0 || isnan(c->count[input]))
		return EXPRESSION_MISSING;
	*ret_value = c->count[input];
	return 0;
}

int metric_inputs_value(const struct metric_inputs *m, size_t i, const double *count,
	double *ret_value, const char **ret_missing)
{
	struct counted c = {m, count};
	const struct expression_source source = {counted_value, &c};
	return platform_metric_value(
		m->platform, m->chosen.metric[i], &source, ret_value, ret_missing);
}
