/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answers: tables with named columns, and where their figures come from
 *
 * Producers of rows pass them to an answer, a table of callbacks: control makes messages of them,
 * comparisons and tests make arrays.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampler/stream.h"
#include "proto/mperf.pb-c.h"

#define ANSWER_NOTES_MAX 48 /* of one answer's provenance: 16 of its own, two dozen others */

struct answer_column {
	const char *name, *title;
	Mperf__Unit unit;
};

struct answer_value {
	enum {
		ANSWER_ABSENT,
		ANSWER_TEXT,
		ANSWER_INTEGER,
		ANSWER_REAL,
		ANSWER_TIME,
		ANSWER_SERIES
	} kind;
	union {
		/* borrowed for the call; need not be UTF-8: the receiver repairs it */
		const char *text;
		int64_t integer; /* also of a time: CLOCK_REALTIME, ns */
		double real;
		struct answer_series {
			const float *value; /* n; NAN: not known. Borrowed for the call */
			size_t n;
		} series;
	};
};

struct answer_loss {
	const char *cause;
	uint64_t count;
	bool samples; /* each one is a sample missing from the figures */
};

/* Times of the threads that the answer is about, in seconds; lived 0: not known. See window_time. */
struct answer_threads {
	double lived, ran, ready, unsplit;
};

/* In seconds: for how long at least one hart worked, its bounds, and all that harts worked. */
struct answer_wall {
	double busy, least, most, cpu;
};

struct answer_provenance {
	const char *event;
	const char *rung;
	const char *switches; /* how counts were cut, as in cut_name */
	uint32_t hz;
	uint64_t
		period; /* occurrences for which each sample stands; 0: of time, or not the same everywhere */
	uint64_t samples;
	struct answer_loss loss[N_LOSSES];
	uint32_t n_losses;
	double named_share, placed_share, coming_share, seconds;
	double uncounted_share; /* of samples: those that no counts cover */
	double cost_share;      /* the share of these harts' time that mperf itself took; 0: not
				 * known */
	struct answer_threads threads;
	double look_every_s; /* 0: samples are of events, not of looks for threads that wait */
	bool has_waiting;    /* there are such samples, and they are not shown */
	const struct answer_wall *wall; /* NULL: values are not wall time */
	const char *note[ANSWER_NOTES_MAX];
	uint32_t n_notes;
};

/* Where rows go. A callback that returns non-zero (cancelled, peer gone) stops the query, which
 * returns that value. */
struct answer {
	int (*columns)(void *u, const struct answer_column *c, size_t n);
	int (*row)(void *u, const struct answer_value *v, size_t n);
	int (*provenance)(void *u, const struct answer_provenance *p);
	void *userdata;
	int (*table)(void *u, const char *name); /* before `columns`; NULL: there is one table */
};
