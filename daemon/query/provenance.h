/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Provenance: where an answer's figures come from
 *
 * Collected while rows are read, sent once after the last row.
 */

#include "daemon/query/scan.h"

#define PROVENANCE_NOTES_MAX 16 /* in one answer: errata of all core types of a machine */

struct provenance {
	/* samples by their leaf; placed: at the start of a function without a symbol; unread: not reached by the namer */
	uint64_t samples, named, placed, unread;
	uint64_t looked; /* samples of threads that waited, which stand for looked_ns */
	double looked_ns;
	bool has_waiting;   /* there are such samples, and they are not shown */
	uint64_t uncounted; /* samples that the counts do not cover */
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
	bool measured[HARTS_MAX]; /* harts of the sources */
	bool without[HARTS_MAX];  /* known harts without sampling */
	bool mixed_modes;
	/* texts: notes of the sources */
	uint32_t note[PROVENANCE_NOTES_MAX], n_notes;
	uint32_t hz_lowest; /* 0: the kernel never lowered the rate */
	uint64_t period;    /* period of the answer's events; 0: none has one */
	bool many_periods;
	/* samples per hart of events with a rate, in the window tier, and the time of that tier */
	uint64_t by_rate[HARTS_MAX + 1];
	double by_rate_seconds;
	/* there are samples of a clock; there are samples of other events, or of coarser tiers */
	bool by_clock, by_others;
	double enabled_ns, running_ns;
	struct answer_threads threads;
	bool threads_missing; /* in some source */
	/* of coarser tiers: the end of their windows (CLOCK_REALTIME), and the requested detail
	 * that they lack; NULL: none */
	int64_t coarse_until_ns[N_TIERS];
	const char *coarse_says[N_TIERS];
	uint64_t cut; /* samples whose stack does not reach its start */
	uint64_t coarse_samples,
		coarse_cut; /* the same for the hour tier, which cuts stacks itself */
	bool of_code;       /* callers matter to the answer */
	bool of_inlined;    /* inlined functions matter to the answer */
	/* text: a file whose inlined functions are missing; 0: none */
	uint32_t split_missing;
	bool many_split_missing;
	bool of_wall; /* values are wall time */
	struct answer_wall wall;
	bool of_all;       /* no tasks were asked for */
	bool live;         /* names are still coming */
	bool only_own;     /* the answer is of one user only */
	const char *group; /* the group to join to see all; NULL: there is none */
	/* number of sources by outcome; and the first damaged one */
	uint32_t n_sources[QUERY_WITHOUT + 1];
	char broken[64];
	/* number of read sources that are still written to */
	uint32_t n_growing, n_pins;
};

/* Set the question that the answer is about. */
void provenance_expect(struct provenance *p, const struct query_question *question);

/* Count a row. */
void provenance_row(struct provenance *p, const struct loaded *l, const struct scan_row *row);

/* Add the facts of a source besides its rows and losses. */
void provenance_source(struct provenance *p, const struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes);

/* Count losses of a cause (text). */
void provenance_loss(struct provenance *p, uint32_t cause, uint64_t count);

/* The amount lost by a cause. */
uint64_t provenance_lost(
	const struct provenance *p, const struct text_table *texts, enum loss cause);

/* provenance_source, and the losses and thread times of a segment. 0, QUERY_FAILED, -errno. */
int provenance_segment(struct provenance *p, struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes);

/* Send it. Returns the callback's value. */
int provenance_tell(
	const struct provenance *p, const struct text_table *texts, const struct answer *answer);
