/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two sets of tables take turns: one fills while the other is shown, so that no frame is half
 * complete. Sorting does not move rows but an array of indices, which is rebuilt for each frame,
 * since a frame has few rows. A selected row is found again in the next frame by its names.
 */
#include "client/top/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/array.h"
#include "proto/base/memory.h"

static void view_clear(struct top_view *v)
{
	free(v->callers_of);
	free(v->callers_module);
	free(v->cgroup);
	*v = (struct top_view){0};
}

static void view_open(struct top_view *v, const char *by, const char *sort)
{
	*v = (struct top_view){.by = by};
	snprintf(v->sort, sizeof(v->sort), "%s", sort);
}

void top_model_open(struct top_model *m, const char *by, uint32_t interval_ms)
{
	*m = (struct top_model){.n_views = 1, .page = 1};
	m->interval_ms = interval_ms ? interval_ms : TOP_INTERVAL_MS;
	view_open(&m->view[0], by, "self");
}

void top_model_clear(struct top_model *m)
{
	replies_clear(&m->shown);
	replies_clear(&m->building);
	while (m->n_views > 0)
		view_clear(&m->view[--m->n_views]);
	free(TAKE_PTR(m->order));
	m->n_order = m->size_order = 0;
	m->history = top_history_free(m->history);
}

struct top_view *top_model_view(struct top_model *m)
{
	return &m->view[m->n_views - 1];
}

const struct reply *top_model_rows(const struct top_model *m)
{
	return m->has_frame ? replies_table(&m->shown, m->view[m->n_views - 1].by) : NULL;
}

const struct reply *top_model_harts(const struct top_model *m)
{
	return replies_table(&m->shown, "harts");
}

/* The names of a row must be the same in both; figures may differ. */
static bool same_names(const struct reply *a, size_t i, const struct reply *b, size_t j)
{
	if (a->columns->n_column != b->columns->n_column)
		return false;
	for (size_t c = 0; c < a->columns->n_column; c++) {
		const Mperf__Value *x = a->row[i]->value[c], *y = b->row[j]->value[c];
		if (a->columns->column[c]->unit != MPERF__UNIT__UNIT_NONE ||
			strcmp(a->columns->column[c]->name, "process") == 0)
			continue; /* a function's top process changes all the time */
		if (x->is_case != y->is_case)
			return false;
		if (x->is_case == MPERF__VALUE__IS_TEXT && strcmp(x->text, y->text) != 0)
			return false;
		if (x->is_case == MPERF__VALUE__IS_INTEGER && x->integer != y->integer)
			return false;
	}
	return true;
}

/* After an arrangement: select the row that was selected in `old`, if it is still there. */
static void follow(struct top_model *m, const struct reply *old, size_t old_row)
{
	const struct reply *rows = top_model_rows(m);
	for (size_t i = 0; rows && i < m->n_order; i++) {
		if (same_names(old, old_row, rows, m->order[i])) {
			m->selected = i;
			break;
		}
	}
	top_model_move(m, 0);
}

static int show(struct top_model *m, uint64_t now_ns)
{
	const struct reply *rows = top_model_rows(m);
	bool follows = m->follow && rows && m->selected < m->n_order;
	uint32_t row = follows ? m->order[m->selected] : 0;
	struct replies old = m->shown;

	m->shown = m->building;
	m->building = (struct replies){0};
	m->has_frame = true;
	m->shown_ns = now_ns;
	int r = top_model_arrange(m);
	if (r == 0 && follows)
		follow(m, replies_table(&old, top_model_view(m)->by), row);
	replies_clear(&old);
	return r < 0 ? r : TOP_FRAME;
}

/* History has each frame, also while the screen is paused. */
static int note_history(struct top_model *m)
{
	const Mperf__Provenance *p = m->building.provenance;
	const struct top_view *v = top_model_view(m);
	char title[TOP_MESSAGE_BYTES];
	if (!m->history && top_history_new(&m->history) < 0)
		return -ENOMEM;
	top_view_title(v, title, sizeof(title));
	return top_history_take(m->history, replies_table(&m->building, "harts"),
		replies_table(&m->building, v->by), title, p ? p->seconds : 0);
}

int top_model_take(struct top_model *m, const Mperf__Answer *a, uint64_t now_ns)
{
	int r = replies_add(&m->building, a);
	if (r != 0 || a->body_case != MPERF__ANSWER__BODY_PROVENANCE)
		return r;
	if (!replies_table(&m->building, top_model_view(m)->by))
		return REPLY_MALFORMED; /* a frame without the requested rows */
	m->n_frames++;
	r = note_history(m);
	if (r < 0)
		return r;
	if (!m->paused)
		return show(m, now_ns);
	replies_clear(&m->building);
	return TOP_FRAME;
}

void top_model_restart(struct top_model *m)
{
	replies_clear(&m->building);
}

/* --- order ------------------------------------------------------------------------------------ */

static bool matches(const struct reply *r, size_t row, const char *filter)
{
	if (!*filter)
		return true;
	for (size_t c = 0; c < r->columns->n_column; c++) {
		const char *text = reply_text(r, row, (int)c);
		char number[24];
		double value;
		if (!text && r->columns->column[c]->unit == MPERF__UNIT__UNIT_NONE &&
			reply_number(r, row, (int)c, &value)) {
			snprintf(number, sizeof(number), "%.0f", value); /* a pid */
			text = number;
		}
		if (text && strcasestr(text, filter))
			return true;
	}
	return false;
}

struct sorting {
	const struct reply *rows;
	int column; /* -1: in order of arrival */
	bool reverse;
};

static int compare_values(const struct sorting *s, uint32_t a, uint32_t b)
{
	const char *x = reply_text(s->rows, a, s->column), *y = reply_text(s->rows, b, s->column);
	double v, w;

	if (x && y)
		return strcasecmp(x, y);
	bool has_v = reply_number(s->rows, a, s->column, &v);
	bool has_w = reply_number(s->rows, b, s->column, &w);
	return has_v && has_w ? (v < w) - (v > w) : 0;
}

/* Large numbers and early letters first; values that were not measured last, whatever the
 * direction; equal rows in the daemon's order. */
static int compare(const void *a, const void *b, void *userdata)
{
	const struct sorting *s = userdata;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	bool has_i = reply_value(s->rows, i, s->column), has_j = reply_value(s->rows, j, s->column);

	int r = has_i && has_j ? compare_values(s, i, j) : has_j - has_i;
	if (s->reverse && has_i && has_j)
		r = -r;
	return r ? r : (i > j) - (i < j);
}

int top_model_arrange(struct top_model *m)
{
	const struct reply *rows = top_model_rows(m);
	size_t n = rows ? rows->n_rows : 0;

	int e = array_grow_long(&m->order, &m->size_order, n, sizeof(*m->order));
	if (e < 0)
		return e;
	m->n_order = 0;
	for (size_t i = 0; i < n; i++)
		if (matches(rows, i, m->filter))
			m->order[m->n_order++] = (uint32_t)i;
	if (m->n_order > 1) {
		const struct top_view *v = top_model_view(m);
		struct sorting s = {rows, reply_column(rows, v->sort), v->reverse};
		qsort_r(m->order, m->n_order, sizeof(*m->order), compare, &s);
	}
	top_model_move(m, 0);
	return 0;
}

bool top_column_hidden(const struct reply *r, size_t column)
{
	if (strcmp(r->columns->column[column]->name, "self_ns") == 0)
		return true; /* the share has it */
	for (size_t i = 0; i < r->n_rows; i++)
		if (r->row[i]->value[column]->is_case != MPERF__VALUE__IS__NOT_SET)
			return false;
	return r->n_rows > 0;
}

void top_model_sort_next(struct top_model *m, int step)
{
	const struct reply *rows = top_model_rows(m);
	struct top_view *v = top_model_view(m);
	if (!rows || rows->columns->n_column == 0)
		return;

	int n = (int)rows->columns->n_column, at = reply_column(rows, v->sort);
	for (int tried = 0; tried < n; tried++) {
		at = (at + step + n) % n;
		if (!top_column_hidden(rows, (size_t)at))
			break;
	}
	snprintf(v->sort, sizeof(v->sort), "%s", rows->columns->column[at]->name);
	v->reverse = false;
}

/* --- views ------------------------------------------------------------------------------------ */

/* Rows of another kind follow: forget the state of the old ones. */
static void start_view(struct top_model *m)
{
	m->has_frame = false;
	m->paused = false;
	m->follow = false;
	m->n_order = m->selected = m->first = 0;
	m->filter[0] = '\0';
	m->typing = false;
}

void top_model_sum_by(struct top_model *m, const char *by)
{
	while (m->n_views > 0)
		view_clear(&m->view[--m->n_views]);
	m->n_views = 1;
	view_open(&m->view[0], by, "self");
	start_view(m);
}

static void refuse(struct top_model *m, const char *why)
{
	snprintf(m->message, sizeof(m->message), "%s", why);
}

static bool open_callers(struct top_model *m, struct top_view *next, size_t row)
{
	const struct reply *rows = top_model_rows(m);
	const char *function = reply_text(rows, row, reply_column(rows, "function"));
	const char *module = reply_text(rows, row, reply_column(rows, "module"));
	if (!function || *function == '[') {
		refuse(m, "the callers of this row are not known");
		return false;
	}

	const struct top_view *now = top_model_view(m);
	view_open(next, "function", "total");
	next->callers_of = strdup(function);
	next->callers_module = module ? strdup(module) : NULL;
	next->cgroup = now->cgroup ? strdup(now->cgroup) : NULL;
	next->pid = now->pid;
	return next->callers_of && (!module || next->callers_module) &&
	       (!now->cgroup || next->cgroup);
}

static bool open_functions(struct top_model *m, struct top_view *next, size_t row)
{
	const struct reply *rows = top_model_rows(m);
	const char *cgroup = reply_text(rows, row, reply_column(rows, "cgroup"));
	double pid;

	view_open(next, "function", "self");
	if (reply_number(rows, row, reply_column(rows, "pid"), &pid) && pid >= 1 &&
		pid <= INT32_MAX) {
		next->pid = (int32_t)pid;
		return true;
	}
	if (cgroup)
		return (next->cgroup = strdup(cgroup)) != NULL;
	refuse(m, "a module cannot be opened: press f for functions, / to filter them");
	return false;
}

bool top_model_open_row(struct top_model *m)
{
	struct top_view next = {0};
	if (!top_model_rows(m) || m->selected >= m->n_order)
		return false;
	if (m->n_views == TOP_VIEWS_MAX) {
		refuse(m, "no more levels: Esc goes back");
		return false;
	}

	size_t row = m->order[m->selected];
	bool opened = strcmp(top_model_view(m)->by, "function") == 0
			      ? open_callers(m, &next, row)
			      : open_functions(m, &next, row);
	if (!opened) {
		view_clear(&next);
		return false;
	}
	m->view[m->n_views++] = next;
	start_view(m);
	return true;
}

bool top_model_back(struct top_model *m)
{
	if (m->n_views <= 1)
		return false;
	view_clear(&m->view[--m->n_views]);
	start_view(m);
	return true;
}

void top_model_move(struct top_model *m, long rows)
{
	long last = m->n_order > 0 ? (long)m->n_order - 1 : 0;
	long page = m->page > 0 ? (long)m->page : 1;
	long selected = (long)m->selected + rows, first = (long)m->first;

	selected = selected < 0 ? 0 : selected > last ? last : selected;
	if (first > selected)
		first = selected;
	if (first <= selected - page)
		first = selected - page + 1;
	if (first > last - page + 1)
		first = last - page + 1; /* no empty lines below while there are rows above */
	m->selected = (size_t)selected;
	m->first = first < 0 ? 0 : (size_t)first;
	if (rows != 0)
		m->follow = selected > 0;
}

void top_view_title(const struct top_view *v, char *ret_text, size_t n)
{
	static const struct {
		const char *by, *says;
	} titles[] = {{"function", "functions"}, {"module", "modules"}, {"process", "processes"},
		{"thread", "threads"}, {"cgroup", "control groups"}};
	const char *what = v->by;

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
		if (strcmp(v->by, titles[i].by) == 0)
			what = titles[i].says;
	int used = v->callers_of ? snprintf(ret_text, n, "callers of %s", v->callers_of)
				 : snprintf(ret_text, n, "%s", what);
	if (used < 0 || (size_t)used >= n)
		return;
	if (v->pid)
		snprintf(ret_text + used, n - (size_t)used, " of process %d", v->pid);
	else if (v->cgroup)
		snprintf(ret_text + used, n - (size_t)used, " of %s", v->cgroup);
}
