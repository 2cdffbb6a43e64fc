/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/metric/metric_inputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/metric/constants.h"
#include "proto/base/memory.h"

struct metric_inputs {
	struct metric_core core;
	struct pool *pool;
	struct metric_choice chosen;
	uint16_t needed[METRICS_MAX][METRIC_INPUTS_MAX];
	int16_t column[METRICS_MAX][METRIC_INPUTS_MAX];
	size_t n_needed[METRICS_MAX];
	struct list names; /* struct input_name */
};

struct input_name {
	char text[EVENT_NAME_BYTES_MAX];
};

/* --- what they need --------------------------------------------------------------------------- */

/* The value of a name that is known before counting. */
static int known_value(
	void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const struct metric_core *core = userdata;
	switch (kind) {
	case EXPRESSION_CONSTANT:
		if (platform_constant(core->platform, name, ret_value) == 0)
			return 0;
		if (core->kernel)
			return machine_constant(core->kernel, &core->harts, name, ret_value) == 0
				       ? 0
				       : EXPRESSION_MISSING;
		if (strcasecmp(name, "num_cpus") != 0)
			return EXPRESSION_MISSING;
		*ret_value = hart_set_count(&core->harts);
		return 0;
	case EXPRESSION_HAS_EVENT:
		*ret_value = platform_event_find(core->platform, name) != NULL;
		return 0;
	case EXPRESSION_SOURCE_COUNT:
		*ret_value = 1;
		return 0;
	default:
		return EXPRESSION_MISSING;
	}
}

/* The position of a name among all inputs. METRIC_TOO_MANY; -ENOMEM. */
static int find_input(struct metric_inputs *m, const char *name, uint16_t *ret_input)
{
	char spelled[EVENT_NAME_BYTES_MAX];
	size_t i = 0;
	metric_spell(name, spelled);
	while (i < m->names.n && strcasecmp(metric_inputs_name(m, i), spelled) != 0)
		i++;
	if (i == METRIC_INPUTS_MAX)
		return METRIC_TOO_MANY;
	struct input_name *added = i == m->names.n ? list_add(&m->names) : NULL;
	if (i == m->names.n && !added)
		return -ENOMEM;
	if (added)
		memcpy(added->text, spelled, sizeof(spelled));
	*ret_input = (uint16_t)i;
	return 0;
}

struct collecting {
	struct metric_inputs *inputs;
	size_t metric;
};

static int take_input(void *userdata, const char *name)
{
	const struct collecting *c = userdata;
	struct metric_inputs *m = c->inputs;
	uint16_t *needed = m->needed[c->metric], input;
	size_t *n = &m->n_needed[c->metric];
	int r = find_input(m, name, &input);
	for (size_t k = 0; k < *n && r == 0; k++)
		if (needed[k] == input)
			return 0;
	if (r != 0)
		return r;
	m->column[c->metric][*n] = (int16_t)input;
	needed[(*n)++] = input;
	return 0;
}

/* The inputs of a metric, and of the metrics that it names. */
static int collect(struct metric_inputs *m, size_t metric)
{
	const struct expression_source known = {known_value, &m->core};
	struct collecting c = {m, metric};
	return metric_each_input(
		m->core.platform, m->pool, m->chosen.metric[metric], &known, take_input, &c);
}

int metric_inputs_new(const struct metric_core *core, const struct metric_choice *chosen,
	struct metric_inputs **ret_inputs, struct event_error *ret_error)
{
	_cleanup_(metric_inputs_freep) struct metric_inputs *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->core = *core;
	m->chosen = *chosen;
	m->names = (struct list)LIST_OF(struct input_name);
	m->pool = pool_new();
	int r = m->pool ? 0 : -ENOMEM;
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
	if (!m)
		return NULL;
	pool_free(m->pool);
	list_clear(&m->names);
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
	return m->names.n;
}

const char *metric_inputs_name(const struct metric_inputs *m, size_t input)
{
	const struct input_name *name = m->names.items;
	return name[input].text;
}

struct metric_needs metric_inputs_needs(const struct metric_inputs *m, size_t metric)
{
	return (struct metric_needs){m->needed[metric], m->column[metric], m->n_needed[metric]};
}

void metric_inputs_read_from(struct metric_inputs *m, size_t metric, size_t k, int column)
{
	m->column[metric][k] = (int16_t)column;
}

int metric_inputs_column(const struct metric_inputs *m, size_t metric, const char *name)
{
	char spelled[EVENT_NAME_BYTES_MAX];
	metric_spell(name, spelled);
	for (size_t k = 0; k < m->n_needed[metric]; k++)
		if (strcasecmp(metric_inputs_name(m, m->needed[metric][k]), spelled) == 0)
			return m->column[metric][k];
	return -1;
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

/* Is the event one of the two clocks? While a hart's or a thread's events are on, both count the same. */
static bool is_clock(uint32_t type, uint64_t config)
{
	return type == PERF_TYPE_SOFTWARE &&
	       (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK);
}

bool metric_inputs_match(
	const struct metric_inputs *m, size_t input, const struct metric_event *event)
{
	const char *name = metric_inputs_name(m, input);
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
	const struct platform_event *own = platform_event_find(m->core.platform, name);
	if (!own && generic)
		own = platform_event_generic(m->core.platform, generic->type, generic->config);
	if (!own)
		return false;
	return platform_event_find(m->core.platform, bare) == own ||
	       platform_event_generic(m->core.platform, event->type, event->config) == own ||
	       (event->type == PERF_TYPE_RAW && event->config == own->code);
}

/* --- values ----------------------------------------------------------------------------------- */

struct counted {
	const struct metric_inputs *inputs;
	size_t metric;
	const double *count;
};

static int counted_value(
	void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const struct counted *c = userdata;
	if (kind != EXPRESSION_NAME)
		return known_value((void *)&c->inputs->core, kind, name, ret_value);
	int column = metric_inputs_column(c->inputs, c->metric, name);
	if (column < 0 || isnan(c->count[column]))
		return EXPRESSION_MISSING;
	*ret_value = c->count[column];
	return 0;
}

int metric_inputs_value(const struct metric_inputs *m, size_t metric, const double *count,
	double *ret_value, const char **ret_missing)
{
	struct counted c = {m, metric, count};
	const struct expression_source source = {counted_value, &c};
	return platform_metric_value(
		m->core.platform, m->chosen.metric[metric], &source, ret_value, ret_missing);
}
