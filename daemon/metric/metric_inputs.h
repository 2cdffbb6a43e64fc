/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics of counts that are there already: in a file, or carried by samples
 *
 * A metric_plan says what to count; here is only what formulas need, by name. Nothing is asked of a
 * kernel, so the core may be of another machine than this one.
 */

#include "daemon/metric/metric_plan.h"
#include "daemon/pmu/event/event.h"
#include "platform-db/platform.h"

#define METRIC_INPUTS_MAX 128 /* of one request */

struct metric_inputs;

/* Find metrics and groups of these names. n_harts: what #num_cpus is. 0; METRIC_UNKNOWN,
 * METRIC_TOO_MANY with *ret_error; -ENOMEM. Borrows the platform. */
int metric_inputs_new(const struct platform *p, char *const *name, size_t n, int n_harts,
	struct metric_inputs **ret_inputs, struct event_error *ret_error);
struct metric_inputs *metric_inputs_free(struct metric_inputs *m);
DEFINE_CLEANUP(struct metric_inputs *, metric_inputs_free)

size_t metric_inputs_n_metrics(const struct metric_inputs *m);
const struct platform_metric *metric_inputs_metric(const struct metric_inputs *m, size_t i);

/* The names of all inputs, each once, as the kernel would read them. */
size_t metric_inputs_n(const struct metric_inputs *m);
const char *metric_inputs_name(const struct metric_inputs *m, size_t input);
/* Does metric i need this input? */
bool metric_inputs_needs(const struct metric_inputs *m, size_t i, size_t input);

/* An event of a recording. */
struct metric_event {
	const char *name; /* "cycles:u" */
	uint32_t type;
	uint64_t config;
};
/* Is it what the input names: the same name, an alias of it, or the same event of the platform? */
bool metric_inputs_match(
	const struct metric_inputs *m, size_t input, const struct metric_event *event);

/* The value of metric i from the counts of all inputs, NAN where one was not counted. 0; EXPRESSION_*
 * with the name of what has no value. */
int metric_inputs_value(const struct metric_inputs *m, size_t i, const double *count,
	double *ret_value, const char **ret_missing);
