/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the counters of a stat counted since its last answer, as rows */

#include "daemon/count/counter.h"
#include "daemon/count/plausible.h"
#include "daemon/count/scatter.h"
#include "daemon/query/query.h"

#define STAT_REASON_BYTES 256

struct stat_counts {
	const struct machine *machine; /* borrowed, as all of it */
	const struct counter *counter;
	const struct counter_value *last; /* of the counter's events */
	/* For errors of what was scaled: readings of all events of the counter, NULL: none were taken; and
	 * the part of a count that turns may take from it or add to it (count/turn.h). */
	const struct scatter *scatter;
	double turn_part;
	/* Of the counter's events, to be held against each other; below 0: not counted. */
	struct plausible_count count[EVENTS_MAX];
};

/* Take the counter's values, less the last. */
void stat_counts_take(struct stat_counts *s, const struct machine *machine,
	const struct counter *counter, const struct counter_value *last);

/* The part of the time in which event e was counted, 0 to 1. */
double stat_counts_running(const struct stat_counts *s, int e);

/* Half of the 95 % interval of event e's scaled count, and what turns may have taken from it or added to
 * it; 0 if it was counted all of the time; NAN: not known. */
double stat_counts_error(const struct stat_counts *s, int e);

/* Take a reading of the counter for that: as scatter_take. */
void stat_counts_read(
	struct scatter *scatter, const struct counter *counter, uint64_t now_ns, uint64_t took_ns);

/* Why event e has no count; NULL if it has one. Returns a static text or `reason`. */
const char *stat_counts_why_not(
	const struct stat_counts *s, int e, char reason[static STAT_REASON_BYTES]);

/* Columns of an event's row. */
#define STAT_COLUMNS                                                                               \
	{"event", "event", MPERF__UNIT__UNIT_NONE},                                                \
		{"value", "raw count", MPERF__UNIT__UNIT_COUNT},                                   \
		{"scaled", "count", MPERF__UNIT__UNIT_COUNT},                                      \
		{"enabled_ns", "enabled", MPERF__UNIT__UNIT_NS},                                   \
		{"running_ns", "running", MPERF__UNIT__UNIT_NS},                                   \
		{"running_share", "running", MPERF__UNIT__UNIT_SHARE},                             \
	{                                                                                          \
		"reason", "not counted because", MPERF__UNIT__UNIT_NONE                            \
	}
#define STAT_COLUMN_REASON 6
#define N_STAT_COLUMNS 7

/* Fill in the values of these columns for event e. */
void stat_counts_row(const struct stat_counts *s, int e, char reason[static STAT_REASON_BYTES],
	struct answer_value v[static N_STAT_COLUMNS]);

static inline struct answer_value answer_text(const char *text)
{
	return (struct answer_value){.kind = ANSWER_TEXT, .text = text};
}

static inline struct answer_value answer_integer(uint64_t v)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)v};
}

static inline struct answer_value answer_real(double v)
{
	return (struct answer_value){.kind = ANSWER_REAL, .real = v};
}
