/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The row of a counted event in the tables of stat and topdown */

#include "daemon/count/counts.h"
#include "daemon/query/query.h"

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
void stat_row_fill(const struct counts *s, int e, char reason[static COUNTS_REASON_BYTES],
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
