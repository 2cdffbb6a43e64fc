/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counts of harts: the events of some metrics, counted on all harts all the time
 *
 *      topdown-groups ─▶ a plan for each kind of core ─▶ counters ─▶ rows of each window ─▶ segment
 *
 * They count and do not sample, in addition to the events that sample. hart_counts_part returns the cost
 * of counting for a hart.
 */

#include "daemon/count/counter.h"

struct hart_counts;

#define HART_COUNTS_TEXT_BYTES 256 /* of the names, joined by commas */

struct hart_counts_options {
	const struct kernel *kernel;
	const struct machine *machine; /* copied */
	const struct cores *cores; /* borrowed while the counts exist, and so are its platforms */
	const char *groups;        /* metrics and groups, "TopdownL1,Cache" */
	uint64_t fds_max;          /* 0: no limit */
	uint32_t serial;           /* of their caller: another one for each list of events */
};

/* The count of an event on a hart since the last call. */
struct hart_count {
	int hart;
	unsigned pass; /* of the plan of the hart's kind: events of one are counted together */
	int event;     /* position in hart_counts_events */
	uint64_t value, enabled_ns, running_ns;
};
struct hart_count_rows {
	uint32_t serial;
	const struct hart_count *row; /* n, by hart, pass and event */
	size_t n;
};

/* Plan, open and start. Kinds of core that have none of the metrics are left out. 0; HART_COUNTS_NONE
 * with *ret_error: nothing can be counted; -errno. */
enum { HART_COUNTS_NONE = 1 };
int hart_counts_new(const struct hart_counts_options *o, struct hart_counts **ret_counts,
	struct event_error *ret_error);
struct hart_counts *hart_counts_free(struct hart_counts *c);
DEFINE_CLEANUP(struct hart_counts *, hart_counts_free)

/* All events of all kinds. */
const struct event_list *hart_counts_events(const struct hart_counts *c);
uint32_t hart_counts_serial(const struct hart_counts *c);
/* The harts that were online when they were opened. */
const struct hart_set *hart_counts_harts(const struct hart_counts *c);

/* The counts since the last call. Borrowed until the next. A hart that cannot be read has no rows. */
struct hart_count_rows hart_counts_take(struct hart_counts *c);

/* The error that rotation may cause in the counts of a pass (rotation.h), as a share of them, on harts
 * of a kind whose groups rotate. We measure it when we open the groups. */
struct hart_rotation {
	struct hart_set harts;
	unsigned pass;
	double part;
};
/* These errors, *ret_n of them; a pass whose error is not known is left out. Borrowed. */
const struct hart_rotation *hart_counts_rotations(const struct hart_counts *c, size_t *ret_n);

/* The cost of rotating the passes on a hart, as a share of its time; 0 if one pass holds all events:
 * then the kernel has nothing to rotate. We measure it when we open the groups. */
double hart_counts_part(const struct hart_counts *c);
