/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A stretch that no window covers has no value; one that windows cover in part is of that part. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/answer/row.h"
#include "daemon/query/samples/timeline_private.h"
#include "proto/base/memory.h"

struct line {
	const char *kind, *label;
	char text[32];
	int32_t pid; /* 0: none */
	int64_t uid; /* -1: none */
	double mean, most;
	struct answer_series series;
};

#define TIMELINE_PART(COLUMN, KNOWN_IF)                                                            \
	COLUMN(label, "Row", text, l->label)                                                       \
	COLUMN(kind, "Kind", text, l->kind)                                                        \
	KNOWN_IF(pid, "PID", number, l->pid > 0, l->pid)                                           \
	KNOWN_IF(uid, "User", number, l->uid >= 0, l->uid)                                         \
	COLUMN(begin, "Begin", time, t->begin_ns)                                                  \
	KNOWN_IF(begin_ns, "Begin (ns)", number, t->begin_ns != INT64_MAX, t->begin_ns)            \
	COLUMN(every_ns, "Every", ns, t->every_ns)
#define COLUMNS_MAX 12

#define MARK_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(begin, "Begin", time, m->begin_ns)                                                  \
	COLUMN(begin_ns, "Begin (ns)", number, m->begin_ns)                                        \
	COLUMN(for_ns, "Within", ns, m->end_ns - m->begin_ns)                                      \
	COLUMN(count, "Count", count, m->count > INT64_MAX ? INT64_MAX : (int64_t)m->count)        \
	COLUMN(cause, "Cause", text, text_of(&t->sums.texts, m->cause))

static int send_line(
	const struct timeline *t, const struct line *l, bool is_head, const struct answer *answer)
{
	const Mperf__Unit unit = t->counts ? MPERF__UNIT__UNIT_RATIO : MPERF__UNIT__UNIT_SHARE;
	struct answer_column column[COLUMNS_MAX];
	struct answer_value value[COLUMNS_MAX];
	struct row_builder b = {.column = is_head ? column : NULL, .value = is_head ? NULL : value};
	ROW_PART(&b, TIMELINE_PART);
	row_add(&b, &(struct answer_column){"mean", "Mean", unit}, cell_ratio(l->mean));
	row_add(&b, &(struct answer_column){"most", "At most", unit}, cell_ratio(l->most));
	row_add(&b, &(struct answer_column){"values", "Values", unit}, cell_series(l->series));
	return row_send(answer, "timeline", &b);
}

static void name_line(const struct timeline *t, uint32_t row, struct line *l)
{
	if (row == t->n_rows - 1) {
		l->kind = "others";
		l->label = t->sums.by == QUERY_BY_JOB    ? "(other jobs)"
			   : t->sums.by == QUERY_BY_HART ? "(other harts)"
							 : "(other processes)";
		return;
	}
	const uint64_t *part = t->sums.keys.key[t->key_of[row]].part;
	const struct hotspot *of = &t->sums.hotspot[t->key_of[row]];
	l->kind = query_by_name(t->sums.by);
	switch (t->sums.by) {
	case QUERY_BY_HART:
		snprintf(l->text, sizeof(l->text), part[0] == UINT64_MAX ? "?" : "%llu",
			(unsigned long long)part[0]);
		l->label = l->text;
		break;
	case QUERY_BY_JOB:
		l->label = part[0] ? text_of(&t->sums.texts, (uint32_t)part[0]) : "(no job)";
		l->uid = part[1] == UINT64_MAX ? -1 : (int64_t)part[1];
		break;
	default:
		l->label = text_of(&t->sums.texts, of->name[0]) ?: "?";
		l->pid = part[0] == HOTSPOT_PROGRAM ? 0 : (int32_t)part[1];
	}
}

/* Values by the time that is covered, in seconds for counts. Of a stretch that is covered for less than half, as the last
 * may be, chance alone makes the most. */
static void fill_line(const struct timeline *t, uint32_t row, float *value, struct line *l)
{
	const struct timeline_cell *cell = timeline_row(t, row),
				   *covered = timeline_row(t, t->n_rows);
	const double unit = t->counts ? 1e9 : 1;
	double sum = 0, whole = 0;
	l->most = 0;
	for (uint32_t i = 0; i < t->n_stretches; i++) {
		const double ns = fmin(covered[i].value, (double)t->every_ns);
		const double of = ns > 0 ? cell[i].value * unit / ns : NAN;
		value[i] = (float)of;
		sum += cell[i].value;
		whole += ns;
		if (2 * ns >= (double)t->every_ns || t->n_stretches == 1)
			l->most = fmax(l->most, of);
	}
	l->mean = whole > 0 ? sum * unit / whole : NAN;
	l->series = (struct answer_series){value, t->n_stretches};
}

static int tell_lines(const struct timeline *t, const struct answer *answer)
{
	_cleanup_(freep) float *value = calloc(t->n_stretches, sizeof(*value));
	if (!value)
		return -ENOMEM;
	int r = send_line(t, &(struct line){.kind = NULL}, true, answer);
	for (uint32_t row = 0; row < t->n_rows && r == 0; row++) {
		struct line l = {.uid = -1};
		name_line(t, row, &l);
		fill_line(t, row, value, &l);
		if (row + 1 < t->n_rows || l.most > 0)
			r = send_line(t, &l, false, answer);
	}
	return r;
}

static int by_begin(const void *a, const void *b)
{
	const struct timeline_mark *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->cause > y->cause) - (x->cause < y->cause);
}

static int tell_marks(struct timeline *t, const struct answer *answer)
{
	const struct timeline_mark *m = t->mark;
	qsort(t->mark, t->n_marks, sizeof(*t->mark), by_begin);
	int r = TABLE_BEGIN(answer, "mark", MARK_TABLE);
	for (uint32_t i = 0; i < t->n_marks && r == 0; i++) {
		m = &t->mark[i];
		r = TABLE_ROW(answer, MARK_TABLE);
	}
	return r;
}

/* --- notes ------------------------------------------------------------------------------------ */

static int note(struct timeline *t, const char *text)
{
	struct provenance *p = &t->sums.provenance;
	if (p->n_notes == PROVENANCE_NOTES_MAX)
		return 0;
	int r = text_get(&t->sums.texts, text, &p->note[p->n_notes]);
	p->n_notes += r == 0;
	return r == KEY_TABLE_FULL ? 0 : r;
}

static int add_notes(struct timeline *t)
{
	char text[200];
	int r = 0;
	if (t->counts)
		r = note(t, "Values are counts a second");
	if (r == 0 && t->has_seconds)
		r = note(t,
			"The service keeps by the second what changes within a window by a tenth "
			"of a hart; the rest is spread evenly over the window");
	if (r == 0 && t->has_even)
		r = note(t, "Some stretches are shorter than what is known of their time (windows, "
			    "minutes or hours), over which values are spread evenly");
	if (r == 0 && t->n_left_out > 0) {
		snprintf(text, sizeof(text),
			"There was no room for the seconds of %llu process%s, counted in each "
			"window: "
			"their time is spread evenly over it",
			(unsigned long long)t->n_left_out, t->n_left_out == 1 ? "" : "es");
		r = note(t, text);
	}
	if (r == 0 && t->n_more_marks > 0) {
		snprintf(text, sizeof(text), "%llu further losses have no mark",
			(unsigned long long)t->n_more_marks);
		r = note(t, text);
	}
	return r;
}

int timeline_tell(struct timeline *t, const struct answer *answer)
{
	timeline_add_up(t);
	int r = tell_lines(t, answer);
	if (r == 0)
		r = tell_marks(t, answer);
	if (r == 0)
		r = add_notes(t);
	return r == 0 ? provenance_tell(&t->sums.provenance, &t->sums.texts, answer) : r;
}
