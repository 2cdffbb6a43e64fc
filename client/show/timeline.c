/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* All bars have one height, so that rows compare: a hart, or if a row has more, the most that any row has. Counts of
 * events have no such measure, and the most is the height.
 */
#include "client/show/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/show/bars.h"
#include "client/show/escape.h"
#include "client/show/table.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define NAME_COLUMNS 22u
#define NUMBER_COLUMNS 9u
#define HEAD_COLUMNS (NAME_COLUMNS + 3 * NUMBER_COLUMNS + 2)
#define ROOM_MIN 10u
#define ROOM_MAX 512u
/* Between two times of the axis. */
#define TICK_COLUMNS 15u
#define SECOND_NS 1e9
#define DAY_NS 86400e9

struct drawing {
	const struct reply *rows, *marks;
	const struct timeline_look *look;
	double begin_ns, every_ns;
	size_t n;               /* stretches */
	size_t each, n_columns; /* stretches of a column */
	bool is_count;
	double height;
	FILE *f;
};

size_t timeline_room(size_t width)
{
	width = width ? width : TIMELINE_WIDTH;
	const size_t room = width > HEAD_COLUMNS + ROOM_MIN ? width - HEAD_COLUMNS : ROOM_MIN;
	return room < ROOM_MAX ? room : ROOM_MAX;
}

static const Mperf__Series *series_of(const struct drawing *d, size_t row)
{
	const Mperf__Value *v = reply_value(d->rows, row, reply_column(d->rows, "values"));
	return v && v->is_case == MPERF__VALUE__IS_SERIES ? v->series : NULL;
}

/* The mean of a column's stretches; NAN: none is known. */
static double value_of(const struct drawing *d, const Mperf__Series *s, size_t column)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = column * d->each; i < (column + 1) * d->each && i < s->n_value; i++) {
		if (!isfinite(s->value[i]))
			continue;
		sum += s->value[i];
		n++;
	}
	return n > 0 ? sum / (double)n : NAN;
}

static double number_of(const struct reply *r, size_t row, const char *column)
{
	double n;
	return reply_number(r, row, reply_column(r, column), &n) ? n : NAN;
}

/* False: there is nothing to draw. */
static bool measure(struct drawing *d)
{
	const int mean = reply_column(d->rows, "mean");
	for (size_t i = 0; i < d->rows->n_rows; i++) {
		const Mperf__Series *s = series_of(d, i);
		if (s && s->n_value > d->n)
			d->n = s->n_value;
	}
	d->begin_ns = number_of(d->rows, 0, "begin_ns");
	d->every_ns = number_of(d->rows, 0, "every_ns");
	if (d->n == 0 || mean < 0 || !isfinite(d->begin_ns) || !(d->every_ns > 0))
		return false;
	const size_t room = timeline_room(d->look->width);
	d->each = (d->n + room - 1) / room;
	d->n_columns = (d->n + d->each - 1) / d->each;
	d->is_count = d->rows->columns->column[mean]->unit != MPERF__UNIT__UNIT_SHARE;
	d->height = d->is_count ? 0 : 1;
	for (size_t i = 0; i < d->rows->n_rows; i++) {
		const Mperf__Series *s = series_of(d, i);
		for (size_t k = 0; s && k < d->n_columns; k++)
			d->height = fmax(d->height, value_of(d, s, k));
	}
	return true;
}

/* --- parts of a line -------------------------------------------------------------------------- */

static int put_name(const struct drawing *d, const char *name, size_t width)
{
	_cleanup_(freep) char *whole = escape_terminal_dup(name ? name : "-");
	if (!whole)
		return -ENOMEM;
	size_t n = strlen(whole);
	/* bytes are dropped one by one: those in the middle of a character have no width of their own */
	while (n > 0 && (escape_width(whole) > width || ((unsigned char)whole[n] & 0xc0) == 0x80))
		whole[--n] = '\0';
	fputs(whole, d->f);
	fprintf(d->f, "%*s", (int)(width - escape_width(whole)), "");
	return 0;
}

static int put_cell(const struct drawing *d, size_t row, const char *column)
{
	const int at = reply_column(d->rows, column);
	const Mperf__Value *v = reply_value(d->rows, row, at);
	_cleanup_(freep) char *cell =
		v ? table_cell(v, d->rows->columns->column[at]->unit, false) : strdup("");
	if (!cell)
		return -ENOMEM;
	const size_t n = escape_width(cell);
	fprintf(d->f, "%*s%s", (int)(n < NUMBER_COLUMNS ? NUMBER_COLUMNS - n : 0), "", cell);
	return 0;
}

static int put_row(const struct drawing *d, size_t row)
{
	const Mperf__Series *s = series_of(d, row);
	int r = put_name(d, reply_text(d->rows, row, reply_column(d->rows, "label")), NAME_COLUMNS);
	if (r == 0)
		r = put_cell(d, row, "pid");
	if (r == 0)
		r = put_cell(d, row, "mean");
	if (r == 0)
		r = put_cell(d, row, "most");
	fputs("  ", d->f);
	size_t n = s ? d->n_columns : 0;
	while (n > 0 && !isfinite(value_of(d, s, n - 1)))
		n--; /* no trailing spaces */
	for (size_t i = 0; i < n; i++) {
		const double value = value_of(d, s, i);
		fputs(!isfinite(value)
				? " "
				: bar_of(d->height > 0 ? value / d->height : 0, d->look->utf8),
			d->f);
	}
	fputc('\n', d->f);
	return r;
}

/* --- times ------------------------------------------------------------------------------------ */

static void time_of(const struct drawing *d, double ns, char text[static 32])
{
	const time_t seconds = (time_t)floor(ns / SECOND_NS);
	const bool is_long = (double)d->n * d->every_ns > DAY_NS;
	struct tm tm;
	size_t n = 0;
	if (localtime_r(&seconds, &tm))
		n = strftime(text, 20, is_long ? "%m-%d %H:%M" : "%H:%M:%S", &tm);
	text[n] = '\0';
	if (!is_long && d->every_ns * (double)d->each < SECOND_NS)
		snprintf(text + n, 32 - n, ".%03d",
			(int)((ns / SECOND_NS - (double)seconds) * 1000));
}

static void put_axis(const struct drawing *d)
{
	char text[32];
	size_t at = 0;
	fprintf(d->f, "%*s", (int)HEAD_COLUMNS, "");
	for (size_t i = 0; i == 0 || i + TICK_COLUMNS <= d->n_columns; i += TICK_COLUMNS) {
		fprintf(d->f, "%*s", (int)(i - at), "");
		time_of(d, d->begin_ns + (double)(i * d->each) * d->every_ns, text);
		fprintf(d->f, "|%s", text);
		at = i + strlen(text) + 1;
	}
	fputc('\n', d->f);
}

/* --- what happened ---------------------------------------------------------------------------- */

/* Columns from the first to the last that the mark touches; false: none. */
static bool columns_of(const struct drawing *d, size_t mark, size_t *ret_first, size_t *ret_last)
{
	const double column_ns = d->every_ns * (double)d->each;
	const double from = (number_of(d->marks, mark, "begin_ns") - d->begin_ns) / column_ns;
	const double to = from + number_of(d->marks, mark, "for_ns") / column_ns;
	if (!isfinite(from) || !isfinite(to) || to < 0 || from >= (double)d->n_columns)
		return false;
	*ret_first = from > 0 ? (size_t)from : 0;
	*ret_last = to < (double)d->n_columns ? (size_t)fmax(ceil(to) - 1, (double)*ret_first)
					      : d->n_columns - 1;
	return true;
}

static const char *cause_of(const struct drawing *d, size_t mark)
{
	return reply_text(d->marks, mark, reply_column(d->marks, "cause")) ?: "-";
}

/* All marks of the cause of that one, in a line. */
static int put_marks(const struct drawing *d, size_t mark)
{
	bool is_marked[ROOM_MAX] = {false};
	double count = 0;
	size_t first, last, end = 0;
	char text[UNIT_TEXT_BYTES];
	for (size_t i = mark; i < d->marks->n_rows; i++) {
		if (strcmp(cause_of(d, i), cause_of(d, mark)) != 0 ||
			!columns_of(d, i, &first, &last))
			continue;
		count += number_of(d->marks, i, "count");
		end = last + 1 > end ? last + 1 : end;
		for (size_t k = first; k <= last; k++)
			is_marked[k] = true;
	}
	if (end == 0)
		return 0;
	int r = put_name(d, cause_of(d, mark), NAME_COLUMNS + 2 * NUMBER_COLUMNS);
	unit_count_text((int64_t)fmin(count, 9e18), text);
	fprintf(d->f, "%*s  ", (int)NUMBER_COLUMNS, text);
	for (size_t k = 0; k < end; k++)
		fputc(is_marked[k] ? '!' : ' ', d->f);
	fputc('\n', d->f);
	return r;
}

static bool is_first_of_cause(const struct drawing *d, size_t mark)
{
	for (size_t i = 0; i < mark; i++)
		if (strcmp(cause_of(d, i), cause_of(d, mark)) == 0)
			return false;
	return true;
}

/* ---------------------------------------------------------------------------------------------- */

static void put_legend(const struct drawing *d)
{
	char column[UNIT_TEXT_BYTES];
	unit_text(MPERF__UNIT__UNIT_NS, d->every_ns * (double)d->each, column);
	fprintf(d->f, "\nOne column is %s; a full bar is ", column);
	if (d->is_count)
		fprintf(d->f, "%.4g a second.\n", d->height);
	else if (d->height > 1)
		fprintf(d->f, "%.3g %ss.\n", d->height, d->look->unit);
	else
		fprintf(d->f, "one %s.\n", d->look->unit);
}

int timeline_print(const struct replies *r, const struct timeline_look *look, FILE *f)
{
	struct drawing d = {.rows = replies_table(r, "timeline"),
		.marks = replies_table(r, "mark"),
		.look = look,
		.f = f};
	int outcome = 0;
	if (!d.rows || d.rows->n_rows == 0 || !measure(&d))
		return ferror(f) ? -EIO : 0;
	fprintf(f, "%-*s%*s%*s%*s\n", (int)NAME_COLUMNS, look->title, (int)NUMBER_COLUMNS,
		isfinite(number_of(d.rows, 0, "pid")) ? "PID" : "", (int)NUMBER_COLUMNS, "Mean",
		(int)NUMBER_COLUMNS, "At most");
	for (size_t i = 0; i < d.rows->n_rows && outcome == 0; i++)
		outcome = put_row(&d, i);
	for (size_t i = 0; d.marks && i < d.marks->n_rows && outcome == 0; i++)
		if (is_first_of_cause(&d, i))
			outcome = put_marks(&d, i);
	put_axis(&d);
	put_legend(&d);
	return outcome == 0 && ferror(f) ? -EIO : outcome;
}
