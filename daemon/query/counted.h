/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counted: the counts of events in files, summed up for metrics
 *
 * Harts that count all the time (metric/hart_counts.h) have rows of their own. If a recording has none,
 * the counts of its samples are summed up, as one pass. Windows are distributed over a few stretches of
 * time: leaving out each stretch in turn shows the error of a metric.
 */

#include "daemon/query/sources.h"
#include "daemon/store/segment/note.h"

#define COUNTED_STRETCHES 16
#define COUNTED_EVENTS_MAX 1024 /* of all cores and passes of a query */
#define COUNTED_CORES_MAX 8     /* kinds of core; machines have up to three */

struct counted_sum {
	double value, enabled_ns, running_ns; /* enabled_ns 0: complete as it is */
};

struct counted_event {
	unsigned core; /* position in cores */
	unsigned pass;
	uint32_t name; /* text, "cycles:u" */
	uint32_t type;
	uint64_t config;
	struct counted_sum all, stretch[COUNTED_STRETCHES];
};

struct counted_core {
	uint32_t name; /* text: of its platform; 0: the file does not say */
	struct hart_set harts;
	/* relative error that rotation may cause in the counts of a pass; the worst of all files */
	double rotation[TURN_PASSES_MAX];
};

struct counted {
	const struct query_filter *filter;
	bool of_samples; /* no hart counted: the counts are those of samples */
	struct counted_core core[COUNTED_CORES_MAX];
	size_t n_cores;
	struct counted_event *event; /* n_events, in the order in which they came */
	size_t n_events;
	uint64_t n_windows;
	struct text_table texts;
	struct provenance provenance;
	/* inner */
	struct loaded loaded;
	uint32_t size_events;
	struct counted_event *kept;
	struct counted_core core_kept[COUNTED_CORES_MAX];
	size_t n_kept, n_cores_kept;
	uint64_t n_windows_kept;
	struct provenance provenance_kept;
};

/* Sum up the sources. 0; QUERY_FAILED with *ret_error; -errno. */
int query_counted(struct query_source *source, size_t n_sources, const struct query_filter *filter,
	struct counted **ret_counted, struct query_error *ret_error);
struct counted *counted_free(struct counted *c);
DEFINE_CLEANUP(struct counted *, counted_free)

/* The count, scaled to all of the time; NAN: the event never had a counter. */
double counted_scaled(const struct counted_sum *s);
/* The count without that stretch. */
double counted_without(const struct counted_event *e, size_t stretch);
/* The fraction of the time in which the event was counted, 0 to 1. */
double counted_part(const struct counted_sum *s);
