/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* mperfctl roofline --from counters: operations and bytes from memory by hardware counters
 *
 * It works for any program, without rebuilding it: the platform database says which events of the
 * core count operations and lines from memory (metrics of the group Roofline). A row is everything
 * that was measured, or one process, thread or function.
 */

#include "client/options/options.h"
#include "client/show/reply.h"

/* Measure, and print. Returns mperfctl's exit status. */
int roofline_counters(const struct options *o);

/* --- for tests -------------------------------------------------------------------------------- */

/* The metrics for --ops KIND, for a program as a whole or for its samples; NULL after the last. */
#define COUNTERS_METRICS_MAX 5
const char *const *roofline_counters_metrics(const char *ops, bool of_samples);

/* The metric among them that needs both the events of operations and those of bytes. */
const char *roofline_counters_needed(const char *ops);

/* Rows of an answer to stat with these metrics, one for each kind of core; `program` is their name. 0; -ENOMEM;
 * COUNTERS_NONE: no row has operations and bytes, with the reason. */
enum { COUNTERS_NONE = 1 };
#define COUNTERS_REASON_BYTES 512
int roofline_counters_of_stat(const struct reply *from, const char *ops, const char *program,
	struct reply *ret_reply, char ret_reason[static COUNTERS_REASON_BYTES]);
/* Rows of an answer to hotspots; results as above. */
int roofline_counters_of_samples(const struct reply *from, const char *ops, struct reply *ret_reply,
	char ret_reason[static COUNTERS_REASON_BYTES]);
