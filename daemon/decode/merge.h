/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Merge: the rings of all harts as one stream in order of time
 *
 * A task forks on one hart and is sampled on the next: only in order of time does a sample find its
 * task. Each drain snapshots all rings, then takes the oldest record first, up to a cut that lies a
 * little in the past, because a record is stamped before it is published.
 */

#include "daemon/decode/record.h"
#include "daemon/pmu/ring.h"

/* A record may be published this much after its stamp (a virtual hart can be preempted between
 * the two); what comes later still is counted LOSS_LATE and handled at once. */
#define MERGE_SLACK_NS 2000000u

/* A record that was stamped before a drain is in its ring by then, unless an interrupt or the stall
 * of a virtual hart came between its stamp and its place. So the time of a record that claims to be
 * older than the last drain by more than this is not believed. */
#define MERGE_BEHIND_NS 1000000000u

struct merge {
	struct ring *ring;               /* borrowed */
	size_t n_rings;
	const struct stream_table *streams;
	uint64_t cut_ns;                 /* records of this time or later stay for the next drain */
	uint64_t last_ns;                /* highest time handed out so far, over all drains */
	uint64_t (*lost)[N_LOSSES];      /* per hart; LOSS_RECORD, LOSS_LATE, LOSS_STREAM are counted here */
	uint64_t (*now_ns)(void);        /* CLOCK_MONOTONIC, which no record is ahead of; NULL: not
					    known, in a replay of what was recorded once */
	/* the rest is merge.c's */
	uint64_t *head_ns;
	size_t n_heads;
	uint64_t floor_ns;               /* highest cut of all drains that ended */
	size_t held;                     /* ring whose record is handed out; none: ≥ n_heads */
};

/* Begin a drain: snapshot all rings. cut_ns = UINT64_MAX takes everything (the last drain). */
int merge_begin(struct merge *m, uint64_t cut_ns);

/* The next record in order; borrowed until the next call. 0; MERGE_END; -errno. A record whose time
 * cannot be (ahead of now, far behind the last drain, beside another hart's number) has the
 * time of the record before it in its ring, and is counted LOSS_LATE: nothing waits for it.
 * Undecodable records are counted and passed over. *ret_hart is the ring's hart. */
enum { MERGE_END = 1 };
int merge_next(struct merge *m, struct record *ret_record, int *ret_hart);

/* End a drain: release what was read to the kernel. */
void merge_end(struct merge *m);

void merge_clear(struct merge *m);
