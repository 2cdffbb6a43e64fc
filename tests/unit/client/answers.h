/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answers made by hand, for tests of what the client does with them */

#include <string.h>

#include "proto/mperf.pb-c.h"

struct answers_column {
	const char *name, *title;
	Mperf__Unit unit;
};

#define ANSWERS_COLUMNS_MAX 100

typedef int answers_sink(void *userdata, const Mperf__Answer *a);

/* The columns of a table of this name. */
static inline int answers_table(answers_sink *sink, void *userdata, const char *table,
	const struct answers_column *column, size_t n)
{
	Mperf__Column made[ANSWERS_COLUMNS_MAX], *list[ANSWERS_COLUMNS_MAX];
	for (size_t i = 0; i < n; i++) {
		made[i] = (Mperf__Column)MPERF__COLUMN__INIT;
		made[i].name = (char *)column[i].name;
		made[i].title = (char *)column[i].title;
		made[i].unit = column[i].unit;
		list[i] = &made[i];
	}
	Mperf__Columns columns = MPERF__COLUMNS__INIT;
	columns.n_column = n;
	columns.column = list;
	columns.table = (char *)table;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_COLUMNS;
	a.columns = &columns;
	return sink(userdata, &a);
}

static inline int answers_columns(
	answers_sink *sink, void *userdata, const struct answers_column *column, size_t n)
{
	return answers_table(sink, userdata, "", column, n);
}

static inline Mperf__Value answers_text(const char *text)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	v.is_case = MPERF__VALUE__IS_TEXT;
	v.text = (char *)text;
	return v;
}

static inline Mperf__Value answers_integer(int64_t integer)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	v.is_case = MPERF__VALUE__IS_INTEGER;
	v.integer = integer;
	return v;
}

static inline Mperf__Value answers_real(double real)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	v.is_case = MPERF__VALUE__IS_REAL;
	v.real = real;
	return v;
}

static inline Mperf__Value answers_absent(void)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	return v;
}

static inline int answers_row(answers_sink *sink, void *userdata, Mperf__Value *value, size_t n)
{
	Mperf__Value *list[ANSWERS_COLUMNS_MAX];
	for (size_t i = 0; i < n; i++)
		list[i] = &value[i];
	Mperf__Row row = MPERF__ROW__INIT, *rows = &row;
	row.n_value = n;
	row.value = list;
	Mperf__Rows made = MPERF__ROWS__INIT;
	made.n_row = 1;
	made.row = &rows;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_ROWS;
	a.rows = &made;
	return sink(userdata, &a);
}
