/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A day's file asked about an hour
 *
 * Windows are written one after the other, so the samples of consecutive windows have consecutive
 * ids, whose ends are found by bisection: some twenty look-ups, however large the file. If a file's
 * windows are not in order, the range of ids is wider; each row's window is checked anyway.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/query/load_part.h"

int load_has_table(struct loaded *l, const char *name, bool *ret_is_there)
{
	struct cursor c;
	char sql[128];
	snprintf(sql, sizeof(sql),
		"SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '%s'", name);
	int r = cursor_open(&c, l, sql);
	if (r == 0)
		r = cursor_next(&c);
	cursor_close(&c);
	*ret_is_there = r == 0;
	return r == CURSOR_END ? 0 : r;
}

int marks_make(struct loaded *l, enum mark_kind k, uint32_t n)
{
	struct mark_table *m = marks_of(l, k);
	if (!m)
		return 0;
	m->mark = calloc((size_t)n + 1, sizeof(*m->mark));
	m->n = n;
	return m->mark ? 0 : -ENOMEM;
}

void marks_clear(struct loaded *l)
{
	for (size_t i = 0; l->marks && i < N_MARK_KINDS; i++)
		free(l->marks->table[i].mark);
	free(l->marks);
	l->marks = NULL;
}

/* The lowest id from first on whose window is at least `window`; INT64_MAX if there is none.
 * Between low and high. */
static int halve(struct loaded *l, int64_t window, int64_t *ret_id)
{
	struct cursor c;
	int64_t low = 1, high = INT64_MAX;
	int r = cursor_open(&c, l, "SELECT max(id) FROM sample");
	if (r == 0)
		r = cursor_next(&c);
	if (r == 0)
		high = cursor_integer(&c, 0);
	cursor_close(&c);
	if (r != 0)
		return r;
	if (high == INT64_MAX)
		high--; /* invalid: there cannot be that many */
	high++;
	r = cursor_open(&c, l, "SELECT id, window FROM sample WHERE id >= ?1 ORDER BY id LIMIT 1");
	while (r == 0 && low < high) {
		int64_t middle = low + (high - low) / 2;
		r = cursor_bind(&c, middle, 0);
		if (r == 0)
			r = cursor_next(&c);
		if (r == CURSOR_END || (r == 0 && cursor_integer(&c, 1) >= window)) {
			high = middle;
			r = 0;
		} else if (r == 0)
			low = cursor_integer(&c, 0) + 1;
	}
	cursor_close(&c);
	*ret_id = low;
	return r;
}

int load_part_find(struct loaded *l, const struct query_filter *filter)
{
	uint32_t first = 0, last = 0, n_wanted = 0, n_known = 0;
	l->first = INT64_MIN;
	l->last = INT64_MAX;
	for (uint32_t i = 0; i <= l->n_windows; i++) {
		struct loaded_window *w = &l->window[i];
		w->wanted = filter_window(l, filter, w);
		n_known += w->known;
		if (!w->known || !w->wanted)
			continue;
		n_wanted++;
		first = first ? first : i;
		last = i;
	}
	if (n_wanted == n_known)
		return 0;
	l->marks = calloc(1, sizeof(*l->marks));
	if (!l->marks)
		return -ENOMEM;
	if (n_wanted == 0) {
		l->first = INT64_MAX;
		l->last = INT64_MIN;
		return 0;
	}
	int r = halve(l, first, &l->first);
	if (r == 0)
		r = halve(l, (int64_t)last + 1, &l->last);
	l->last--;
	return r;
}

static int take_sample(struct loaded *l, struct cursor *c)
{
	mark(l, MARK_TASK, cursor_id(c, 1, l->n_tasks));
	mark(l, MARK_STACK, cursor_id(c, 2, l->n_stacks));
	return 0;
}

static int mark_loop_tasks(struct loaded *l)
{
	struct cursor c;
	int r = cursor_open(&c, l, "SELECT DISTINCT task FROM loop_count ORDER BY task");
	while (r == 0 && (r = cursor_next(&c)) == 0)
		mark(l, MARK_TASK, cursor_id(&c, 0, l->n_tasks));
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

static int mark_thread_times(struct loaded *l)
{
	struct cursor c;
	bool is_there;
	int r = load_has_table(l, "thread_time", &is_there);
	if (r != 0 || !is_there)
		return r;
	r = cursor_open(&c, l, "SELECT DISTINCT task FROM thread_time ORDER BY task");
	while (r == 0 && (r = cursor_next(&c)) == 0)
		mark(l, MARK_TASK, cursor_id(&c, 0, l->n_tasks));
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

int load_part_mark(struct loaded *l, const struct load_wish *wish)
{
	if (!l->marks)
		return 0;
	struct cursor c;
	int r = cursor_open(
		&c, l, "SELECT id, task, stack FROM sample WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
	if (r == 0)
		r = cursor_bind(&c, l->first, l->last);
	while (r == 0 && (r = cursor_next(&c)) == 0)
		r = take_sample(l, &c);
	cursor_close(&c);
	r = r == CURSOR_END ? 0 : r;
	if (r == 0)
		r = mark_thread_times(l);
	for (uint32_t i = 1; r == 0 && wish->tasks && i <= l->n_tasks; i++)
		mark(l, MARK_TASK, i);
	return r == 0 && wish->loops ? mark_loop_tasks(l) : r;
}
