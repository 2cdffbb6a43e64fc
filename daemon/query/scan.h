/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Scan: the sample rows of a segment that a filter lets through
 *
 * Two cursors walk side by side, samples and readings, both in order of the sample's id. Each row
 * comes out with its value: the time it stands for, or what the event asked for counted.
 */

#include "daemon/query/filter.h"

struct scan_row {
	uint32_t stack, task; /* ids of the segment, 0 where it has none such */
	uint32_t hart;        /* HART_UNKNOWN: none */
	uint8_t event, rung;
	uint64_t count, weight_ns;
	uint64_t cut; /* samples of these that were rolled up without their callers */
	double value; /* what is shared out */
	/* scaled by enabled / running; negative: not counted in this row */
	double cycles, instructions;
};

/* What a scan found out on its way, for notes. */
struct scan_notes {
	bool events[QUERY_EVENTS_MAX]; /* that were shared out */
	bool others[QUERY_EVENTS_MAX]; /* that sampled too, and were not */
	bool counted[QUERY_EVENTS_MAX]; /* whose counts are in the answer */
	bool mixed_modes; /* cycles or instructions count modes that the leader does not */
	double enabled_ns, running_ns; /* of cycles and instructions */
};

/* A count that came with a row; enabled_ns 0: complete as it is. */
struct scan_reading {
	uint32_t event;
	double value, enabled_ns, running_ns;
};

/* The two steps of one row, for sources that are no segment. Is the row shared out, and what is it
 * worth so far? It contributes only if *ret_contributes, or a reading says so. */
bool scan_weigh(const struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	struct scan_row *row, bool *ret_contributes);
/* Add a reading. True: it is of the event that was asked for. */
bool scan_read(const struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	struct scan_row *row, const struct scan_reading *reading);

/* Call take for each row. 0; take's value; QUERY_FAILED; -errno. */
int scan_samples(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	int (*take)(void *userdata, const struct scan_row *row), void *userdata);

/* A count as what people can be told: a made-up one is cut off. */
static inline int64_t integer_of(double value)
{
	return value >= 9.2e18 ? INT64_MAX : value > 0 ? (int64_t)(value + 0.5) : 0;
}
