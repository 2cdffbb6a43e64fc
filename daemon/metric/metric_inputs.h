/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The inputs of metrics: the events that their formulas name, and the values of metrics from counts of these
 *
 * Counts come in rows: of the events of a plan (metric_plan.h), of a file, or of the groups of samples. Each metric
 * knows the column of each of its inputs, since one event may be counted in several passes.
 */

#include "daemon/kernel/machine.h"
#include "daemon/metric/metric_walk.h"
#include "platform-db/counter_plan.h"

#define METRIC_INPUTS_MAX PLAN_EVENTS_MAX /* of one request */

struct metric_inputs;

/* The core of the metrics, whose constants formulas may use. */
struct metric_core {
	const struct platform *platform;
	const struct kernel
		*kernel; /* NULL: it is on another machine, of which only the harts are known */
	struct hart_set harts;
};

/* Find the inputs of these metrics. 0; METRIC_TOO_MANY with *ret_error; -ENOMEM. Borrows the platform and the
 * kernel. */
int metric_inputs_new(const struct metric_core *core, const struct metric_choice *chosen,
	struct metric_inputs **ret_inputs, struct event_error *ret_error);
struct metric_inputs *metric_inputs_free(struct metric_inputs *m);
DEFINE_CLEANUP(struct metric_inputs *, metric_inputs_free)

size_t metric_inputs_n_metrics(const struct metric_inputs *m);
const struct platform_metric *metric_inputs_metric(const struct metric_inputs *m, size_t i);

/* The names of all inputs, each once, as the kernel would read them, in the order in which formulas name them. */
size_t metric_inputs_n(const struct metric_inputs *m);
const char *metric_inputs_name(const struct metric_inputs *m, size_t input);

/* The inputs of one metric, in the order of its formula. */
struct metric_needs {
	const uint16_t *input; /* n positions among all inputs */
	const int16_t *column; /* n: of each in a row of counts; -1: it is not counted */
	size_t n;
};
struct metric_needs metric_inputs_needs(const struct metric_inputs *m, size_t metric);
/* Read the k-th input of a metric from that column, or (-1) from none. By default, it is the
 * input's position. */
void metric_inputs_read_from(struct metric_inputs *m, size_t metric, size_t k, int column);
/* The column of an input that a formula names; -1: there is none. */
int metric_inputs_column(const struct metric_inputs *m, size_t metric, const char *name);

/* An event of a recording. */
struct metric_event {
	const char *name; /* "cycles:u" */
	uint32_t type;
	uint64_t config;
};
/* Does the input name this event: by the same name, an alias of it, or the same event of the platform? */
bool metric_inputs_match(
	const struct metric_inputs *m, size_t input, const struct metric_event *event);

/* The value of a metric from a row of counts, NAN where one was not counted. 0; EXPRESSION_* with the name that
 * has no value. */
int metric_inputs_value(const struct metric_inputs *m, size_t metric, const double *count,
	double *ret_value, const char **ret_missing);
