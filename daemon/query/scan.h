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
	double value; /* what is shared out */
	/* scaled by enabled / running; negative: not counted in this row */
	double cycles, instructions;
};

/* What a scan found out on its way, for notes. */
struct scan_notes {
	bool events[QUERY_EVENTS_MAX]; /* that were shared out */
	bool others[QUERY_EVENTS_MAX]; /* that sampled too, and were not */
	bool mixed_modes; /* cycles or instructions count modes that the leader does not */
	double enabled_ns, running_ns; /* of cycles and instructions */
};

/* Call take for each row. 0; take's value; QUERY_FAILED; -errno. */
int scan_samples(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	int (*take)(void *userdata, const struct scan_row *row), void *userdata);

/* A count as what people can be told: a made-up one is cut off. */
static inline int64_t integer_of(double value)
{
	return value >= 9.2e18 ? INT64_MAX : value > 0 ? (int64_t)(value + 0.5) : 0;
}
