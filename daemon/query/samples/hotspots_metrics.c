/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counts of a sample are charged to the code that the sample fell on, but were gathered since the
 * sample before. So the ratio of a function with few samples is largely chance. Its error follows
 * from how much the ratio changes when part of the time is left out: windows are distributed over a
 * few stretches, and a jackknife over these gives the interval (metric/evaluate.h).
 */
#include "daemon/query/samples/hotspots_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metric/evaluate.h"
#include "proto/base/memory.h"

#define STRETCHES 8 /* stretches of all windows; each takes memory for every key */
/* Functions times stretches times inputs, 16 bytes each: 256 MB, and as much again to undo a file. A query
 * has 2 GB (child/offload.h). */
#define SUMS_MAX (1u << 24)

/* Count of one input for one key in one stretch. */
struct sum {
	bool is_there; /* false: not counted */
	double value;
};

struct hotspots_metrics {
	const struct query_metrics *wish;
	struct metric_inputs *inputs; /* NULL before the first file */
	const struct platform *platform;
	int input[QUERY_EVENTS_MAX]; /* of the current file: by event; -1: none */
	struct sum *sum;             /* by key, stretch and input */
	uint32_t n_keys, size;       /* size: sums */
	bool is_counted[METRIC_INPUTS_MAX];
	double *row;           /* counts of a key: 1 + STRETCHES by inputs */
	char (*column)[2][96]; /* titles of each metric's columns */
	char note[192];
	struct sum *kept;
	uint32_t n_keys_kept;
};

int hotspots_metrics_new(const struct query_metrics *wish, struct hotspots_metrics **ret_metrics)
{
	struct hotspots_metrics *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->wish = wish;
	*ret_metrics = m;
	return 0;
}

struct hotspots_metrics *hotspots_metrics_free(struct hotspots_metrics *m)
{
	if (!m)
		return NULL;
	metric_inputs_free(m->inputs);
	free(m->sum);
	free(m->kept);
	free(m->row);
	free(m->column);
	free(m);
	return NULL;
}

/* --- files ------------------------------------------------------------------------------------ */

/* The one platform of a file's harts. */
static int find_platform(
	const struct hotspots_metrics *m, struct loaded *l, const struct platform **ret_platform)
{
	uint32_t core = 0;
	bool any = false;
	for (int hart = 0; hart < HARTS_MAX; hart++) {
		if (!l->hart[hart].known || (any && l->hart[hart].core == core))
			continue;
		if (any)
			return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_USAGE,
				"Leave out -M; `mperfctl topdown -i` has a tree for each kind of "
				"core",
				"%s was made on cores of several kinds, whose metrics differ",
				l->path);
		core = l->hart[hart].core;
		any = true;
	}
	const char *name = text_of(l->texts, core);
	const struct platform *p = name ? cores_platform_named(m->wish->cores, name) : NULL;
	if (!name)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING, "Record again",
			"%s does not name its cores: an older mperf wrote it", l->path);
	if (!p)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Describe it in /etc/mperf/platforms.d (mperf-platforms(5))",
			"%s was made on the platform '%.64s', which this platform database lacks",
			l->path, name);
	*ret_platform = p;
	return 0;
}

static int find_inputs(struct hotspots_metrics *m, struct loaded *l, const struct platform *p)
{
	struct event_error error = {""};
	struct metric_core core = {.platform = p};
	struct metric_choice chosen = {.n = 0};
	for (int hart = 0; hart < HARTS_MAX; hart++)
		if (l->hart[hart].known)
			hart_set_add(&core.harts, hart);
	if (m->inputs && m->platform != p)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Ask for one of them at a time", "%s was made on another kind of core",
			l->path);
	if (m->inputs)
		return 0;
	int r = metric_choose(p, m->wish->name, m->wish->n_names, &chosen, &error);
	if (r == 0)
		r = metric_inputs_new(&core, &chosen, &m->inputs, &error);
	if (r > 0 || (r == 0 && metric_inputs_n_metrics(m->inputs) > QUERY_METRICS_MAX))
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Name fewer, or others; `mperfctl list metrics` shows those of this "
			"machine",
			"%s", *error.text ? error.text : "more metrics than a table has room for");
	if (r < 0)
		return r;
	m->platform = p;
	m->column = calloc(metric_inputs_n_metrics(m->inputs), sizeof(*m->column));
	m->row = calloc((1 + STRETCHES) * (metric_inputs_n(m->inputs) + 1), sizeof(*m->row));
	return m->column && m->row ? 0 : -ENOMEM;
}

int hotspots_metrics_prepare(struct hotspots_metrics *m, struct loaded *l)
{
	const struct platform *p = NULL;
	int r = find_platform(m, l, &p);
	if (r == 0)
		r = find_inputs(m, l, p);
	for (int i = 0; i < QUERY_EVENTS_MAX && r == 0; i++) {
		const struct loaded_event *e = &l->event[i];
		const char *name = text_of(l->texts, e->name);
		const struct metric_event event = {name ? name : "", e->type, e->config};
		m->input[i] = -1;
		for (size_t input = 0; e->known && input < metric_inputs_n(m->inputs); input++)
			if (metric_inputs_match(m->inputs, input, &event))
				m->input[i] = (int)input;
	}
	return r;
}

/* --- sums ------------------------------------------------------------------------------------- */

static uint32_t n_sums(const struct hotspots_metrics *m)
{
	return STRETCHES * (uint32_t)metric_inputs_n(m->inputs);
}

static struct sum *sum_of(
	const struct hotspots_metrics *m, uint32_t hot, uint32_t stretch, uint32_t input)
{
	return &m->sum[hot * n_sums(m) + stretch * metric_inputs_n(m->inputs) + input];
}

int hotspots_metrics_take(struct hotspots_metrics *m, uint32_t hot, const struct scan_row *row)
{
	/* keys beyond it have no metrics */
	if (hot >= SUMS_MAX / (n_sums(m) ? n_sums(m) : 1))
		return 0;
	int r = array_grow(&m->sum, &m->size, (hot + 1) * n_sums(m), sizeof(*m->sum));
	if (r < 0)
		return r;
	m->n_keys = hot + 1 > m->n_keys ? hot + 1 : m->n_keys;
	for (size_t i = 0; i < row->n_reads; i++) {
		const struct scan_reading *read = &row->read[i];
		int input = m->input[read->event];
		if (input < 0 || (read->enabled_ns > 0 && read->running_ns <= 0))
			continue;
		struct sum *s = sum_of(m, hot, row->window % STRETCHES, (uint32_t)input);
		s->is_there = true;
		s->value += read->enabled_ns > 0
				    ? read->value * (read->enabled_ns / read->running_ns)
				    : read->value;
		m->is_counted[input] = true;
	}
	return 0;
}

int hotspots_metrics_keep(struct hotspots_metrics *m)
{
	size_t n = m->inputs ? (size_t)m->n_keys * n_sums(m) : 0;
	struct sum *kept = reallocarray(m->kept, n + 1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	m->kept = kept;
	m->n_keys_kept = m->n_keys;
	if (n > 0)
		memcpy(kept, m->sum, n * sizeof(*kept));
	return 0;
}

void hotspots_metrics_take_back(struct hotspots_metrics *m)
{
	size_t n = m->inputs ? (size_t)m->n_keys_kept * n_sums(m) : 0;
	if (n > 0)
		memcpy(m->sum, m->kept, n * sizeof(*m->sum));
	if (m->size > n)
		memset(m->sum + n, 0, (m->size - n) * sizeof(*m->sum));
	m->n_keys = m->n_keys_kept;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Counts of a key, without a stretch, or (STRETCHES) of all. False: nothing is left. */
static bool counts_of(
	const struct hotspots_metrics *m, uint32_t hot, uint32_t without, double *ret_count)
{
	bool any = false;
	for (uint32_t input = 0; input < metric_inputs_n(m->inputs); input++) {
		ret_count[input] = NAN;
		for (uint32_t s = 0; s < STRETCHES; s++) {
			const struct sum *sum = sum_of(m, hot, s, input);
			if (s == without || !sum->is_there)
				continue;
			ret_count[input] =
				(isnan(ret_count[input]) ? 0 : ret_count[input]) + sum->value;
			any = true;
		}
	}
	return any;
}

static bool is_filled(const struct hotspots_metrics *m, uint32_t hot, uint32_t stretch)
{
	for (uint32_t input = 0; input < metric_inputs_n(m->inputs); input++)
		if (sum_of(m, hot, stretch, input)->is_there)
			return true;
	return false;
}

/* The values of a key's metrics. False: nothing was counted of it. */
static bool evaluate(const struct hotspots_metrics *m, uint32_t hot,
	struct metric_value ret_value[static QUERY_METRICS_MAX])
{
	const size_t n = metric_inputs_n(m->inputs);
	struct metric_counts c = {.n = n, .whole = m->row, .without = m->row + n};
	if (hot >= m->n_keys || !counts_of(m, hot, STRETCHES, m->row))
		return false;
	for (uint32_t s = 0; s < STRETCHES; s++)
		if (is_filled(m, hot, s))
			(void)counts_of(m, hot, s, m->row + ++c.n_stretches * n);
	metric_evaluate(m->inputs, NULL, &c, ret_value, NULL);
	return true;
}

size_t hotspots_metrics_columns(const struct hotspots_metrics *m, struct answer_column *c)
{
	size_t n = 0;
	for (size_t i = 0; m->inputs && i < metric_inputs_n_metrics(m->inputs); i++) {
		const struct platform_metric *metric = metric_inputs_metric(m->inputs, i);
		snprintf(m->column[i][0], sizeof(m->column[i][0]), "%.64s%s%.24s", metric->name,
			*metric->unit ? " " : "", metric->unit);
		snprintf(m->column[i][1], sizeof(m->column[i][1]), "%.80s_error", metric->name);
		c[n++] = (struct answer_column){
			metric->name, m->column[i][0], MPERF__UNIT__UNIT_RATIO};
		c[n++] = (struct answer_column){m->column[i][1], "±", MPERF__UNIT__UNIT_RATIO};
	}
	return n;
}

static double finite_or_nan(double value)
{
	return isfinite(value) ? value : NAN;
}

size_t hotspots_metrics_values(const struct hotspots_metrics *m, uint32_t hot,
	struct sums_value ret_value[static QUERY_METRICS_MAX])
{
	struct metric_value value[QUERY_METRICS_MAX];
	const size_t n = m->inputs ? metric_inputs_n_metrics(m->inputs) : 0;
	const bool any = m->inputs && evaluate(m, hot, value);
	for (size_t i = 0; i < n; i++) {
		ret_value[i].value = any ? finite_or_nan(value[i].value) : NAN;
		ret_value[i].error = any ? finite_or_nan(value[i].error) : NAN;
	}
	return n;
}

const char *hotspots_metrics_note(struct hotspots_metrics *m, size_t i)
{
	for (size_t input = 0; m->inputs && input < metric_inputs_n(m->inputs); input++)
		if (!m->is_counted[input] && i-- == 0) {
			snprintf(m->note, sizeof(m->note),
				"%.128s was not counted: metrics that need it are n/a",
				metric_inputs_name(m->inputs, input));
			return m->note;
		}
	return NULL;
}
