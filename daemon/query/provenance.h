/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Provenance: where an answer's figures come from (DESIGN.md decision 12)
 *
 * Gathered while rows are read, told once behind the last row.
 */

#include "daemon/query/scan.h"

#define PROVENANCE_NOTES_MAX 16 /* errata of all kinds of core of one machine, in one answer */

struct provenance {
	uint64_t samples, named, unread; /* unread: the namer has not come to them */
	double seconds;
	uint32_t hz;
	bool many_hz, many_boots;
	unsigned switches; /* CUT_* of all sources */
	uint32_t boot;
	bool rung[RUNG_ASKED + 1][HARTS_MAX + 1];
	uint32_t event[EVENTS_MAX], other[EVENTS_MAX]; /* texts */
	uint32_t n_events, n_others;
	struct {
		uint32_t cause; /* text */
		uint64_t count;
	} loss[N_LOSSES];
	uint32_t n_losses;
	bool without[HARTS_MAX]; /* known harts on which nothing sampled */
	bool mixed_modes;
	uint32_t note[PROVENANCE_NOTES_MAX], n_notes; /* texts: what the sources say of themselves */
	uint32_t hz_lowest; /* 0: the kernel never cut the rate */
	double enabled_ns, running_ns;
	/* of coarser tiers: where their windows end (CLOCK_REALTIME), and what they do not know of
	 * what is asked; NULL: they know it */
	int64_t coarse_until_ns[N_TIERS];
	const char *coarse_says[N_TIERS];
	uint64_t coarse_samples, cut; /* of the hour tier; those without their callers */
	bool of_code;                 /* callers matter */
	bool only_own;                /* of one user alone */
	const char *group;            /* which he would join to see all; NULL: there is none */
	/* of the sources, by outcome; and the first that was broken */
	uint32_t n_sources[QUERY_WITHOUT + 1];
	char broken[64];
	/* of those that were read: sealed before there were seals; still written to */
	uint32_t n_unverified, n_growing;
};

/* What the answer will be about. */
void provenance_expect(struct provenance *p, const struct query_question *question);

/* Count a row. */
void provenance_row(struct provenance *p, const struct loaded *l, const struct scan_row *row);

/* Count what a source says besides its rows and losses. */
void provenance_source(struct provenance *p, const struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes);

/* Count losses of a cause (text). */
void provenance_loss(struct provenance *p, uint32_t cause, uint64_t count);

/* provenance_source, and the losses of a segment. 0, QUERY_FAILED, -errno. */
int provenance_segment(struct provenance *p, struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes);

/* Tell it. The callback's value. */
int provenance_tell(
	const struct provenance *p, const struct text_table *texts, const struct answer *answer);
