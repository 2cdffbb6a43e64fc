/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rows: a table is one list, whose lines have a column's name, title, kind and value
 *
 *     #define LOOP_TABLE(COLUMN, KNOWN_IF)                                  \
 *             COLUMN(turns, "Turns", count, t->n_turns)                     \
 *             KNOWN_IF(longest_ns, "Longest", ns, t->n_turns, t->longest_ns)
 *
 *     r = TABLE_BEGIN(to, "loop", LOOP_TABLE);
 *     for (; t && r == 0; t = t->next)
 *             r = TABLE_ROW(to, LOOP_TABLE);
 *
 * TABLE_BEGIN sends the columns and evaluates no value, so a table without rows has its columns too. TABLE_ROW
 * evaluates the values where it stands: they may name anything in scope there. A kind is the value's type and its
 * unit in one word. The cell of a KNOWN_IF line is absent where its condition is false; its value is then not
 * evaluated.
 *
 * A list of macros, since a column and its value then cannot come apart: a static array of {name, title, unit} has
 * the values in a second list, by position, and an array of {name, title, unit, kind, offsetof} needs a struct for
 * each row, filled by a second list. The compiler tells a text from a number.
 */

#include <math.h>
#include <string.h>

#include "daemon/answer/answer.h"

/* Units by kind. */
enum row_unit {
	row_unit_text = MPERF__UNIT__UNIT_NONE,
	row_unit_number = MPERF__UNIT__UNIT_NONE, /* a name: of a process, a hart, a user, a line */
	row_unit_count = MPERF__UNIT__UNIT_COUNT,
	row_unit_ns = MPERF__UNIT__UNIT_NS,
	row_unit_bytes = MPERF__UNIT__UNIT_BYTES,
	row_unit_hz = MPERF__UNIT__UNIT_HZ,
	row_unit_share = MPERF__UNIT__UNIT_SHARE,
	row_unit_ratio = MPERF__UNIT__UNIT_RATIO,
	row_unit_time = MPERF__UNIT__UNIT_TIME,
	row_unit_address = MPERF__UNIT__UNIT_ADDRESS,
	row_unit_cell = MPERF__UNIT__UNIT_NONE, /* a text or a number: the value is a cell */
};

static inline struct answer_value cell_absent(void)
{
	return (struct answer_value){.kind = ANSWER_ABSENT};
}

/* Borrowed until the row is sent; NULL: absent. */
static inline struct answer_value cell_text(const char *text)
{
	return text ? (struct answer_value){.kind = ANSWER_TEXT, .text = text} : cell_absent();
}

static inline struct answer_value cell_number(int64_t n)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = n};
}

/* A value that is not finite is absent. */
static inline struct answer_value cell_ratio(double value)
{
	return isfinite(value) ? (struct answer_value){.kind = ANSWER_REAL, .real = value}
			       : cell_absent();
}

/* CLOCK_REALTIME; absent if it is not known (0, INT64_MAX). */
static inline struct answer_value cell_time(int64_t realtime_ns)
{
	return realtime_ns > 0 && realtime_ns != INT64_MAX
		       ? (struct answer_value){.kind = ANSWER_TIME, .integer = realtime_ns}
		       : cell_absent();
}

static inline struct answer_value cell_of_series(struct answer_series series)
{
	return (struct answer_value){.kind = ANSWER_SERIES, .series = series};
}

#define cell_series(series) cell_of_series(series)
#define cell_count(n) cell_number(n)
#define cell_ns(n) cell_number(n)
#define cell_bytes(n) cell_number(n)
#define cell_hz(n) cell_number(n)
#define cell_address(n) cell_number(n)
#define cell_share(value) cell_ratio(value)
#define cell_cell(cell) (cell)

#define ROW_COLUMN(name, title, kind, ...) {#name, title, (Mperf__Unit)row_unit_##kind},
#define ROW_CELL(name, title, kind, value) cell_##kind(value),
#define ROW_CELL_IF(name, title, kind, known, value) (known) ? cell_##kind(value) : cell_absent(),
#define ROW_COLUMNS(LIST) ((const struct answer_column[]){LIST(ROW_COLUMN, ROW_COLUMN)})
#define ROW_CELLS(LIST) ((const struct answer_value[]){LIST(ROW_CELL, ROW_CELL_IF)})
#define ROW_LENGTH(LIST) (sizeof(ROW_COLUMNS(LIST)) / sizeof(struct answer_column))

/* Begin a table; name NULL: the only one, or one that the caller has begun. Results as of the answer's callbacks. */
#define TABLE_BEGIN(to, name, LIST) answer_table(to, name, ROW_COLUMNS(LIST), ROW_LENGTH(LIST))
#define TABLE_ROW(to, LIST) answer_row(to, ROW_CELLS(LIST), ROW_LENGTH(LIST))
/* A table of one row. */
#define TABLE_OF_ONE(to, name, LIST)                                                               \
	answer_table_of_one(to, name, ROW_COLUMNS(LIST), ROW_CELLS(LIST), ROW_LENGTH(LIST))

static inline int answer_table(
	const struct answer *to, const char *name, const struct answer_column *column, size_t n)
{
	int r = name && to->table ? to->table(to->userdata, name) : 0;
	return r == 0 ? to->columns(to->userdata, column, n) : r;
}

static inline int answer_row(const struct answer *to, const struct answer_value *value, size_t n)
{
	return to->row(to->userdata, value, n);
}

static inline int answer_table_of_one(const struct answer *to, const char *name,
	const struct answer_column *column, const struct answer_value *value, size_t n)
{
	int r = answer_table(to, name, column, n);
	return r == 0 ? answer_row(to, value, n) : r;
}

/* A row, or a table's head, that is put together from parts if its columns depend on the request.
 * One function fills both, since a part's values are evaluated only for a row. It also sends the
 * row: a cell's text must live until then. */
struct row_builder {
	struct answer_column *column; /* NULL: a row is filled */
	struct answer_value *value;   /* NULL: the head is */
	size_t n;
};

/* Add the columns of a list. */
#define ROW_PART(b, LIST)                                                                          \
	do {                                                                                       \
		if ((b)->column)                                                                   \
			memcpy(&(b)->column[(b)->n], ROW_COLUMNS(LIST),                            \
				sizeof(ROW_COLUMNS(LIST)));                                        \
		if ((b)->value)                                                                    \
			memcpy(&(b)->value[(b)->n], ROW_CELLS(LIST), sizeof(ROW_CELLS(LIST)));     \
		(b)->n += ROW_LENGTH(LIST);                                                        \
	} while (0)

static inline void row_add(
	struct row_builder *b, const struct answer_column *column, struct answer_value value)
{
	if (b->column)
		b->column[b->n] = *column;
	if (b->value)
		b->value[b->n] = value;
	b->n++;
}

/* Send it: the head of a table, named as of TABLE_BEGIN, or a row. */
static inline int row_send(const struct answer *to, const char *name, const struct row_builder *b)
{
	return b->value ? answer_row(to, b->value, b->n) : answer_table(to, name, b->column, b->n);
}
