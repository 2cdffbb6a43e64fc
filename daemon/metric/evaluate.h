/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Values of metrics: from counts by stretch of the time and by input, with their intervals
 *
 * Counters of a stat, files and counts of samples all give rows of counts: one for the whole time,
 * and one without each stretch of it. A metric's interval is the jackknife of its values from these
 * rows (count/jackknife.h), plus the error of its counts from rotating groups (count/rotation.h).
 */

#include "daemon/metric/metric_inputs.h"
#include "platform-db/metric_tree.h"

#define METRIC_COLUMNS_MAX 1024 /* of a row of counts */
#define METRIC_REASON_BYTES 384

struct metric_value {
	double value;        /* NAN: none, because: */
	double error;        /* half of its 95 % interval; NAN: not known */
	double running;      /* the smallest share of the time for which its inputs were counted */
	const char *missing; /* the input that has no count; NULL: none is missing */
	int missing_column;  /* column of that input, -1: it has none */
	char reason[METRIC_REASON_BYTES];
};

struct metric_counts {
	size_t n;            /* columns, at most METRIC_COLUMNS_MAX */
	const double *whole; /* n: counts of the whole time, scaled; NAN: not counted */
	const double
		*running; /* n: the share of the time for which each was counted; NULL: hardly any,
			  * as for samples */
	const double *
		without; /* n_stretches rows of n: the same counts, without each stretch of the time */
	size_t n_stretches; /* at most JACKKNIFE_STRETCHES_MAX */
	const double *part; /* n_stretches: the share of the time of each; NULL: all are equal */
	double rotation;    /* the share of a count that rotation may take from it or add to it */
};

/* The values of all metrics, one for each; residuals, n_nodes + 1 of a tree whose nodes are the metrics in their order
 * (NULL: none): the remainder of each node after its children, and last of all slots; NAN if that
 * has no meaning. A missing value has a reason, "cycles was not counted"; callers that know more
 * replace it. O((n_stretches + n) n_metrics). */
void metric_evaluate(const struct metric_inputs *m, const struct metric_tree *tree,
	const struct metric_counts *counts, struct metric_value *ret_value,
	struct metric_value *ret_residual);
