/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics of hotspots: the counts of each key's samples, and the values of formulas over them */

#include "daemon/query/samples/hotspots.h"

struct hotspots_metrics;

/* Prepare the metrics that the question asks for. Borrows it. 0 or -ENOMEM. */
int hotspots_metrics_new(const struct query_metrics *wish, struct hotspots_metrics **ret_metrics);
struct hotspots_metrics *hotspots_metrics_free(struct hotspots_metrics *m);

/* A file is loaded: find its core's metrics, and which of its events are their inputs. 0; QUERY_FAILED: it is
 * of another core than the files before, or of one without these metrics; -ENOMEM. */
int hotspots_metrics_prepare(struct hotspots_metrics *m, struct loaded *l);
/* A row of that key. 0 or -ENOMEM. */
int hotspots_metrics_take(struct hotspots_metrics *m, uint32_t hot, const struct scan_row *row);

/* Two columns for each metric: its value and half of its 95 % interval. Returns the number of columns. */
size_t hotspots_metrics_columns(const struct hotspots_metrics *m, struct answer_column *c);
/* The values of a key. Returns the number of metrics. */
size_t hotspots_metrics_values(const struct hotspots_metrics *m, uint32_t hot,
	struct sums_value ret_value[static QUERY_METRICS_MAX]);
/* Note on an input that was not counted at all, as a sentence; NULL after the last. Borrowed until
 * the next call. */
const char *hotspots_metrics_note(struct hotspots_metrics *m, size_t i);

/* Save the sums, and restore them. 0 or -ENOMEM. */
int hotspots_metrics_keep(struct hotspots_metrics *m);
void hotspots_metrics_take_back(struct hotspots_metrics *m);
