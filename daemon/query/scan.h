/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Scan: the sample rows of a segment that pass a filter
 *
 * Two cursors, samples and readings, advance together, both in order of the sample's id. Each row
 * comes with its value: the time it stands for, or the count of the requested event.
 */

#include "daemon/query/filter.h"

struct wall_sample;

/* A count of a row; enabled_ns 0: complete, not scaled. */
struct scan_reading {
	uint32_t event;
	double value, enabled_ns, running_ns;
};

struct scan_row {
	uint32_t stack, task; /* ids of the segment, 0 if it has none */
	uint32_t hart;        /* HART_UNKNOWN: none */
	uint32_t window;      /* its id; 0: none, or not asked for (filter.h) */
	uint8_t event, rung;
	uint64_t count, weight_ns;
	uint64_t cut;       /* of these, samples whose stack does not reach its start */
	uint64_t uncounted; /* of these, samples that the counts do not cover */
	double value;       /* the value that is attributed */
	uint32_t harts;     /* with row_filter.scope: that worked at once; else 0 */
	/* scaled by enabled / running; negative: not counted in this row */
	double cycles, instructions;
	const uint8_t *
		at; /* with row_filter.tells_moments: of each sample, as in the table moment; NULL: not known */
	const struct wall_sample
		*timed; /* with row_filter.scope: of its samples, those whose time is known */
	size_t n_timed;
	const struct scan_reading *read; /* with row_filter.every: all counts of the row */
	size_t n_reads;
};

/* Findings of a scan, for notes. */
struct scan_notes {
	bool events[QUERY_EVENTS_MAX];  /* events whose values are attributed */
	bool others[QUERY_EVENTS_MAX];  /* events that also sampled, but are not shown */
	bool counted[QUERY_EVENTS_MAX]; /* events whose counts are in the answer */
	bool has_offcpu;  /* there are samples of threads that waited, and they are not shown */
	bool mixed_modes; /* cycles or instructions count modes that the leader does not */
	double enabled_ns, running_ns; /* of cycles and instructions */
	/* with row_filter.scope, of all that counts as work: wall time and its bounds, which are the same where samples
	 * have times, and CPU time */
	struct scan_wall_time {
		double ns, least_ns, most_ns, cpu_ns;
	} wall;
};

/* Counts returned for one row; further ones are skipped. */
#define SCAN_READS_MAX 64

/* The two steps of one row, for sources that are not segments. First: does the row count, and with
 * what value so far? It contributes only if *ret_contributes is set or a reading shows it. */
bool scan_weigh(const struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	struct scan_row *row, bool *ret_contributes);
/* Second: add a reading. True: it is of the requested event. */
bool scan_read(const struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	struct scan_row *row, const struct scan_reading *reading);

/* Call take for each row: also, with value 0, for those without counts whose group would have counted
 * the requested event. 0; take's value; QUERY_FAILED; -errno. */
typedef int scan_take(void *userdata, const struct scan_row *row);
int scan_samples(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	scan_take *take, void *userdata);
/* The same; for a filter with a scope, with wall time as the value, a row for each number of harts, and without the
 * counts of row_filter.every. */
int scan_values(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	scan_take *take, void *userdata);

/* Counts of whole harts, of all processes (metric/hart_counts.h). Call take for each count; the windows and harts of
 * the filter apply, its tasks do not. */
struct scan_counted {
	uint32_t hart, window;
	unsigned pass;
	struct scan_reading read;
};
int scan_counted(struct loaded *l, const struct row_filter *f,
	int (*take)(void *userdata, const struct scan_counted *c), void *userdata);

/* A count for display: absurd values are clamped. */
static inline int64_t integer_of(double value)
{
	return value >= 9.2e18 ? INT64_MAX : value > 0 ? (int64_t)(value + 0.5) : 0;
}
