/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of a timeline: timeline.c reads sources, timeline_cells.c has the stretches, timeline_tell.c answers */

#include "daemon/query/samples/hotspots.h"
#include "daemon/query/samples/timeline.h"
#include "daemon/query/seconds.h"

/* A row in a stretch. */
struct timeline_cell {
	double value;
	double whole; /* by which the value of each stretch from here on grows */
};

/* Something that happened in a window. */
#define TIMELINE_MARKS_MAX 1000u
struct timeline_mark {
	uint32_t cause; /* text */
	uint64_t count; /* of all harts */
	int64_t begin_ns, end_ns;
};

struct timeline {
	struct hotspots
		sums; /* of the first pass, in which rows have their keys; its provenance is the answer's */
	uint32_t *row_of;        /* by key, n_keys */
	uint32_t *key_of;        /* by row */
	uint32_t n_keys, n_rows; /* the last row is all others */
	/* CLOCK_REALTIME */
	int64_t begin_ns, end_ns;
	int64_t every_ns;
	uint32_t n_stretches;
	/* n_rows rows, with the rest, and one for the time for which there are windows */
	struct timeline_cell *cell, *kept;
	struct timeline_mark mark[TIMELINE_MARKS_MAX];
	uint32_t n_marks, n_marks_kept;
	uint64_t n_more_marks;
	struct provenance provenance_kept;
	bool counts; /* values are an event's counts */
	/* windows without moments that are longer than a stretch: with seconds, and without */
	bool has_seconds, has_even;
	uint64_t n_left_out;

	/* of the source that is read */
	struct seconds_reader seconds;
	bool is_timed; /* its samples have moments */
	bool is_whole; /* seconds of harts are of the samples that are read */
};

static inline struct timeline_cell *timeline_row(const struct timeline *t, uint32_t row)
{
	return &t->cell[(size_t)row * t->n_stretches];
}

/* Add a value evenly from one moment to the other (after begin_ns, in ns). What is outside is dropped. */
void timeline_put(struct timeline *t, uint32_t row, double from_ns, double to_ns, double value);
/* Once all is there: the value of each stretch. */
void timeline_add_up(struct timeline *t);

int timeline_tell(struct timeline *t, const struct answer *answer);
