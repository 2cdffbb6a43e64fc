/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Merge: the rings of all harts as one stream in order of time
 *
 * A task may fork on one hart and be sampled on another: a sample finds its task only if records
 * are handled in order of time. Each drain snapshots all rings, then takes the oldest record first,
 * up to a cut slightly in the past, because a record is stamped before it is published.
 */

#include "daemon/decode/record.h"
#include "daemon/kernel/ring.h"

/* A record may be published this much after its stamp (a virtual hart can be preempted between the
 * two); later ones are counted LOSS_LATE and handled at once. */
#define MERGE_SLACK_NS 2000000u

/* A record that was stamped before a drain is in its ring by then, unless an interrupt or a stall
 * of a virtual hart delayed its publication. So a record's time is not trusted if it is older than
 * the last drain by more than this. */
#define MERGE_BEHIND_NS 1000000000u

struct merge {
	struct ring *ring; /* borrowed */
	size_t n_rings;
	const struct stream_table *streams;
	uint64_t cut_ns;  /* records of this time or later stay for the next drain */
	uint64_t last_ns; /* highest time returned so far, over all drains */
	/* per hart; LOSS_RECORD, LOSS_LATE, LOSS_STREAM are counted here */
	uint64_t (*lost)[N_LOSSES];
	/* CLOCK_MONOTONIC: no record may be later. NULL: not known, in replays */
	uint64_t (*now_ns)(void);
	/* private to merge.c */
	uint64_t *head_ns;
	size_t n_heads;
	uint64_t floor_ns; /* highest cut of all completed drains */
	bool ended;        /* the drain under way returned MERGE_END */
	size_t held;       /* ring of the record last returned; none: ≥ n_heads */
};

/* Begin a drain: snapshot all rings. cut_ns = UINT64_MAX takes everything (the last drain). */
int merge_begin(struct merge *m, uint64_t cut_ns);

/* The next record in order; borrowed until the next call. 0; MERGE_END; -errno. A record with an
 * impossible time (later than now, long before the last drain, or with another hart's number) gets
 * the time of the previous record in its ring and is counted LOSS_LATE, so that it blocks nothing.
 * Undecodable records are counted and skipped. *ret_hart is the ring's hart. */
enum { MERGE_END = 1 };
int merge_next(struct merge *m, struct record *ret_record, int *ret_hart);

/* End a drain, before its MERGE_END or behind it: release what was read to the kernel. */
void merge_end(struct merge *m);

void merge_clear(struct merge *m);
