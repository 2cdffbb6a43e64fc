/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Residuals are differences of metrics, so their intervals are found as those of metrics are: from what they would
 * have been otherwise.
 */
#include "daemon/metric/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/count/jackknife.h"
#include "platform-db/expression.h"

#define VALUES_MAX (2 * METRICS_MAX + 1) /* metrics, and residuals of a tree of them */

struct evaluation {
	const struct metric_inputs *inputs;
	const struct metric_tree *tree; /* NULL: none */
	const struct metric_counts *counts;
	struct metric_value *value, *residual;
	size_t n, n_values; /* metrics; with residuals */
};

static struct metric_value *value_at(const struct evaluation *e, size_t i)
{
	return i < e->n ? &e->value[i] : &e->residual[i - e->n];
}

/* --- values ----------------------------------------------------------------------------------- */

/* Append the residuals to the values of the metrics. */
static void add_residuals(const struct evaluation *e, double value[static VALUES_MAX])
{
	if (!e->tree)
		return;
	for (size_t i = 0; i < e->n; i++)
		value[e->n + i] = metric_tree_rest(e->tree, (int)i, value);
	value[2 * e->n] = metric_tree_rest(e->tree, -1, value);
}

/* The value of a metric for this row, if the metric has a value; NAN: none. */
static double other_value(const struct evaluation *e, size_t i, const double *row)
{
	const char *missing;
	double value;
	return isfinite(e->value[i].value) &&
			       metric_inputs_value(e->inputs, i, row, &value, &missing) == 0
		       ? value
		       : NAN;
}

static void find_value(const struct evaluation *e, size_t i)
{
	const struct metric_needs needs = metric_inputs_needs(e->inputs, i);
	const double *running = e->counts->running;
	struct metric_value *v = &e->value[i];
	*v = (struct metric_value){.error = NAN, .running = running ? 1 : 0, .missing_column = -1};
	for (size_t k = 0; k < needs.n; k++)
		if (running && needs.column[k] >= 0)
			v->running = fmin(v->running, running[needs.column[k]]);
	int r = metric_inputs_value(e->inputs, i, e->counts->whole, &v->value, &v->missing);
	if (r == 0)
		return;
	v->value = NAN;
	if (r == EXPRESSION_UNDEFINED) {
		v->missing = NULL;
		snprintf(v->reason, sizeof(v->reason), "nothing to divide by: a count in it is 0");
	} else {
		v->missing_column = metric_inputs_column(e->inputs, i, v->missing);
		snprintf(v->reason, sizeof(v->reason), "%.120s was not counted", v->missing);
	}
}

/* Compute all values; a residual counts as counted for the smallest share among its values. */
static void find_values(const struct evaluation *e)
{
	double value[VALUES_MAX], running = 1;
	for (size_t i = 0; i < e->n; i++) {
		find_value(e, i);
		value[i] = e->value[i].value;
		if (isfinite(value[i]))
			running = fmin(running, e->value[i].running);
	}
	add_residuals(e, value);
	for (size_t i = e->n; i < e->n_values; i++)
		*value_at(e, i) = (struct metric_value){
			.value = value[i], .running = running, .missing_column = -1};
}

/* --- intervals -------------------------------------------------------------------------------- */

static void find_errors(const struct evaluation *e)
{
	const struct metric_counts *c = e->counts;
	double value[JACKKNIFE_STRETCHES_MAX][VALUES_MAX], without[JACKKNIFE_STRETCHES_MAX];
	for (size_t s = 0; s < c->n_stretches; s++) {
		for (size_t i = 0; i < e->n; i++)
			value[s][i] = other_value(e, i, c->without + s * c->n);
		add_residuals(e, value[s]);
	}
	for (size_t i = 0; i < e->n_values; i++) {
		struct metric_value *v = value_at(e, i);
		for (size_t s = 0; s < c->n_stretches; s++)
			without[s] = value[s][i];
		v->error = jackknife_error(without, c->part, c->n_stretches, v->running);
	}
}

static bool is_read(const struct evaluation *e, size_t metric, size_t column)
{
	const struct metric_needs needs = metric_inputs_needs(e->inputs, metric);
	for (size_t k = 0; k < needs.n; k++)
		if (needs.column[k] == (int)column)
			return true;
	return false;
}

/* The values if one column's count were larger by the error of rotation. False: no metric reads it.
 * */
static bool find_rotated(
	const struct evaluation *e, size_t column, double *row, double ret_value[static VALUES_MAX])
{
	const double count = row[column];
	bool any = false;
	row[column] = count * (1 + e->counts->rotation);
	for (size_t i = 0; i < e->n; i++) {
		bool reads = is_read(e, i, column);
		ret_value[i] = reads ? other_value(e, i, row) : e->value[i].value;
		any |= reads;
	}
	row[column] = count;
	if (any)
		add_residuals(e, ret_value);
	return any;
}

/* Each count has an error between zero and that of rotation, all in the same direction. So effects
 * that raise a value and effects that lower it partly cancel: the larger of both is the maximum
 * error. */
static void add_rotation(const struct evaluation *e)
{
	const struct metric_counts *c = e->counts;
	double up[VALUES_MAX] = {0}, down[VALUES_MAX] = {0}, value[VALUES_MAX];
	double row[METRIC_COLUMNS_MAX];
	if (c->rotation <= 0)
		return;
	memcpy(row, c->whole, c->n * sizeof(*row));
	for (size_t column = 0; column < c->n; column++) {
		if (!find_rotated(e, column, row, value))
			continue;
		for (size_t i = 0; i < e->n_values; i++) {
			const double exact = value_at(e, i)->value;
			up[i] += fmax(value[i] - exact, 0);
			down[i] += fmax(exact - value[i], 0);
		}
	}
	for (size_t i = 0; i < e->n_values; i++)
		if (!jackknife_is_whole(value_at(e, i)->running))
			value_at(e, i)->error += fmax(up[i], down[i]);
}

void metric_evaluate(const struct metric_inputs *m, const struct metric_tree *tree,
	const struct metric_counts *counts, struct metric_value *ret_value,
	struct metric_value *ret_residual)
{
	const size_t n = metric_inputs_n_metrics(m);
	const struct evaluation e = {
		.inputs = m,
		.tree = tree,
		.counts = counts,
		.value = ret_value,
		.residual = ret_residual,
		.n = n,
		.n_values = tree ? 2 * n + 1 : n,
	};
	find_values(&e);
	find_errors(&e);
	add_rotation(&e);
}
