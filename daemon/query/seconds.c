/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/query/seconds.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/query/load_part.h"
#include "proto/base/array.h"

#define OF_PROCESS (-1)

int seconds_reader_open(struct seconds_reader *s, struct loaded *l)
{
	bool is_there = false;
	*s = (struct seconds_reader){.window = 0};
	int r = load_has_table(l, "second", &is_there);
	if (r != 0 || !is_there)
		return r;
	r = cursor_open(&s->cursor, l,
		"SELECT task, hart, at FROM second WHERE window = ?1 ORDER BY task, hart");
	s->cursor.pairs = true;
	return r;
}

void seconds_reader_close(struct seconds_reader *s)
{
	cursor_close(&s->cursor);
	free(s->row);
	free(s->bytes);
	*s = (struct seconds_reader){.window = 0};
}

/* The row at which the cursor stands. 0 or -ENOMEM. */
static int take(struct seconds_reader *s)
{
	const struct loaded *l = s->cursor.loaded;
	const int64_t task = cursor_integer(&s->cursor, 0), hart = cursor_integer(&s->cursor, 1);
	sqlite3_stmt *st = s->cursor.statement;
	if (task == 0 && hart == OF_PROCESS) {
		const int64_t n = cursor_integer(&s->cursor, 2);
		s->n_left_out += n > 0 && n <= QUERY_IDS_MAX ? (uint64_t)n : 0;
		return 0;
	}
	const bool of_process = hart == OF_PROCESS && task > 0 && task <= l->n_tasks;
	const bool of_hart = task == 0 && hart >= 0 && hart < HARTS_MAX;
	if ((!of_process && !of_hart) || sqlite3_column_type(st, 2) != SQLITE_BLOB ||
		s->n_rows == SECONDS_ROWS_MAX)
		return 0;
	const uint8_t *at = sqlite3_column_blob(st, 2);
	const int n = sqlite3_column_bytes(st, 2);
	if (!at || n <= 0 || n > (int)SECONDS_MAX)
		return 0;
	struct seconds_row row = {(uint32_t)task, of_hart ? (uint32_t)hart : HART_UNKNOWN,
		(uint32_t)s->n_bytes, (uint32_t)n, 0};
	for (int i = 0; i < n; i++)
		row.sum += at[i];
	if (row.sum == 0)
		return 0;
	int r = array_grow(&s->row, &s->size_rows, s->n_rows + 1, sizeof(*s->row));
	if (r == 0)
		r = array_grow_long(&s->bytes, &s->size_bytes, s->n_bytes + (size_t)n, 1);
	if (r != 0)
		return r;
	memcpy(s->bytes + s->n_bytes, at, (size_t)n);
	s->n_bytes += (size_t)n;
	s->row[s->n_rows++] = row;
	return 0;
}

int seconds_reader_read(struct seconds_reader *s, uint32_t window)
{
	if (s->window == window || !s->cursor.statement)
		return 0;
	s->window = window;
	s->n_rows = 0;
	s->n_bytes = 0;
	int r = cursor_bind(&s->cursor, window, 0);
	while (r == 0 && (r = cursor_next(&s->cursor)) == 0)
		r = take(s);
	return r == CURSOR_END ? 0 : r;
}

static const struct seconds_row *find(const struct seconds_reader *s, uint32_t task, uint32_t hart)
{
	uint32_t from = 0, to = s->n_rows;
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		const struct seconds_row *row = &s->row[middle];
		if (row->task == task && row->hart == hart)
			return row;
		if (row->task < task || (row->task == task && row->hart < hart))
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

const struct seconds_row *seconds_of_process(const struct seconds_reader *s, uint32_t process)
{
	return process ? find(s, process, HART_UNKNOWN) : NULL;
}

const struct seconds_row *seconds_of_hart(const struct seconds_reader *s, uint32_t hart)
{
	return hart != HART_UNKNOWN ? find(s, 0, hart) : NULL;
}
