/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/query/samples/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/timeline_private.h"
#include "daemon/query/sources.h"

#define SECOND_NS 1e9
#define SECOND 1000000000ll

/* --- rows ------------------------------------------------------------------------------------- */

/* A hart is one row, at whatever rung it was sampled. */
static int key_of(struct timeline *t, const struct scan_row *row, uint32_t *ret_key)
{
	struct hotspots *h = &t->sums;
	if (h->by != QUERY_BY_HART)
		return hotspots_key_row(h, row, ret_key);
	const uint64_t hart = row->hart == HART_UNKNOWN ? UINT64_MAX : row->hart;
	int r = query_fail_full(&h->loaded, key_get(&h->keys, &(struct key){{hart}}, ret_key));
	return r == 0 ? array_grow(&h->hotspot, &h->size, *ret_key + 1, sizeof(*h->hotspot)) : r;
}

static int sum_row(void *userdata, const struct scan_row *row)
{
	struct timeline *t = userdata;
	uint32_t key;
	int r = key_of(t, row, &key);
	if (r == 0)
		t->sums.hotspot[key].self += row->value;
	return r;
}

/* --- the time of a row ------------------------------------------------------------------------ */

struct span {
	double from_ns, to_ns;
};

/* Of a window, after begin_ns. */
static struct span span_of(const struct timeline *t, const struct loaded_window *w)
{
	const double from_ns = (double)w->realtime_ns - (double)t->begin_ns;
	const double span_ns = (double)w->end_ns - (double)w->start_ns;
	return (struct span){from_ns, from_ns + (span_ns > 0 ? span_ns : 0)};
}

/* A sample stands for the time before it, and one that waited for its callers is from before the window. */
static void put_moments(
	struct timeline *t, uint32_t row, const struct scan_row *of, const struct span *window)
{
	const double count = (double)of->count, span_ns = window->to_ns - window->from_ns;
	const double weight_ns = (double)of->weight_ns / count;
	for (uint64_t i = 0; i < of->count; i++) {
		const unsigned at = of->at[2 * i] | (unsigned)of->at[2 * i + 1] << 8;
		const double at_ns = window->from_ns + span_ns * at / (UINT16_MAX + 1.0);
		timeline_put(t, row, at_ns - weight_ns, at_ns, of->value / count);
	}
}

static void put_seconds(struct timeline *t, uint32_t row, const struct scan_row *of,
	const struct span *window, const struct seconds_row *seconds)
{
	for (uint32_t i = 0; i < seconds->n; i++) {
		const uint8_t byte = t->seconds.bytes[seconds->at + i];
		double from_ns = window->from_ns + i * SECOND_NS, to_ns = from_ns + SECOND_NS;
		from_ns = from_ns < window->to_ns ? from_ns : window->to_ns - 1;
		to_ns = to_ns < window->to_ns ? to_ns : window->to_ns;
		if (byte)
			timeline_put(t, row, from_ns, to_ns, of->value * byte / seconds->sum);
	}
}

static const struct seconds_row *find_seconds(const struct timeline *t, const struct scan_row *of)
{
	const struct loaded *l = &t->sums.loaded;
	if (t->sums.by == QUERY_BY_HART && t->is_whole)
		return seconds_of_hart(&t->seconds, of->hart);
	return seconds_of_process(&t->seconds, of->task ? l->task[of->task].process : 0);
}

static int put_row(void *userdata, const struct scan_row *of)
{
	struct timeline *t = userdata;
	const struct loaded *l = &t->sums.loaded;
	uint32_t key;
	int r = key_of(t, of, &key);
	if (r == 0 && !l->event[of->event].offcpu)
		r = seconds_reader_read(&t->seconds, of->window);
	if (r != 0)
		return r;
	provenance_row(&t->sums.provenance, l, of);
	/* a file that is written to may have more than before */
	const uint32_t row = key < t->n_keys ? t->row_of[key] : t->n_rows - 1;
	const struct span window = span_of(t, &l->window[of->window]);
	const struct seconds_row *seconds = l->event[of->event].offcpu ? NULL : find_seconds(t, of);
	if (of->at && of->count > 0) {
		t->is_timed = true;
		put_moments(t, row, of, &window);
	} else if (seconds)
		put_seconds(t, row, of, &window, seconds);
	else
		timeline_put(t, row, window.from_ns, window.to_ns, of->value);
	return 0;
}

/* Which time is known, and how well. */
static void cover(struct timeline *t)
{
	const struct loaded *l = &t->sums.loaded;
	for (uint32_t i = 1; i <= l->n_windows; i++) {
		const struct loaded_window *w = &l->window[i];
		if (!w->known || !w->wanted)
			continue;
		const struct span span = span_of(t, w);
		timeline_put(t, t->n_rows, span.from_ns, span.to_ns, span.to_ns - span.from_ns);
		if (t->is_timed || span.to_ns - span.from_ns <= (double)t->every_ns)
			continue;
		t->has_seconds |= t->seconds.cursor.statement && l->tier == TIER_WINDOW;
		t->has_even |= !t->seconds.cursor.statement || l->tier != TIER_WINDOW;
	}
}

/* --- marks ------------------------------------------------------------------------------------ */

static bool is_mark(const char *cause)
{
	static const enum loss others[] = {
		LOSS_THROTTLE, LOSS_HOTPLUG, LOSS_BLIND, LOSS_SPARSE, LOSS_PAUSED};
	for (int i = 0; i < N_LOSSES; i++) {
		bool is_marked = loss_kinds[i].samples;
		for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
			is_marked |= others[k] == (enum loss)i;
		if (is_marked && strcmp(loss_kinds[i].name, cause) == 0)
			return true;
	}
	return false;
}

static void add_mark(
	struct timeline *t, const struct loaded_window *w, uint32_t cause, uint64_t count)
{
	struct timeline_mark mark = {cause, count, w->realtime_ns, 0};
	int64_t span_ns;
	if (__builtin_sub_overflow(w->end_ns, w->start_ns, &span_ns) ||
		__builtin_add_overflow(w->realtime_ns, span_ns, &mark.end_ns))
		return;
	struct timeline_mark *last = t->n_marks ? &t->mark[t->n_marks - 1] : NULL;
	if (last && last->begin_ns == mark.begin_ns && last->cause == cause)
		last->count += count;
	else if (t->n_marks < TIMELINE_MARKS_MAX)
		t->mark[t->n_marks++] = mark;
	else
		t->n_more_marks++;
}

static int take_marks(struct timeline *t, const struct row_filter *f)
{
	struct loaded *l = &t->sums.loaded;
	struct cursor c;
	int r = cursor_open(
		&c, l, "SELECT window, cause, hart, count FROM loss ORDER BY window, cause, hart");
	c.ties = true; /* provenance_segment has limited the rows */
	while (r == 0 && (r = cursor_next(&c)) == 0) {
		const uint32_t window = cursor_id(&c, 0, l->n_windows);
		const int64_t hart = cursor_integer(&c, 2), count = cursor_integer(&c, 3);
		const bool is_hart = hart >= 0 && hart < HARTS_MAX;
		const char *says = (const char *)sqlite3_column_text(c.statement, 1);
		if (window == 0 || !l->window[window].known || !l->window[window].wanted ||
			!f->hart[is_hart ? hart : HART_UNKNOWN] || count <= 0 || !says ||
			!is_mark(says))
			continue;
		uint32_t cause;
		r = cursor_text(&c, 1, &cause);
		if (r == 0)
			add_mark(t, &l->window[window], cause, (uint64_t)count);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

/* --- sources ---------------------------------------------------------------------------------- */

static int read_source(struct timeline *t, sqlite3 *db, const struct query_source *source,
	int (*read)(struct timeline *t, struct row_filter *f), struct query_error *ret_error)
{
	struct hotspots *h = &t->sums;
	struct row_filter filter = {0};
	const struct load_wish wish = {
		.filter = h->filter,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	int r = load_segment(&h->loaded, db, &h->texts, &wish, ret_error);
	if (r == 0)
		r = hotspots_prepare(h);
	if (r == 0)
		r = filter_make(&filter, &h->loaded, h->filter);
	filter.tells_windows = true;
	bool counts = filter.asked;
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++)
		counts = counts && !(filter.event[i] && h->loaded.event[i].clock);
	t->counts |= counts;
	if (r == 0)
		r = read(t, &filter);
	filter_clear(&filter);
	hotspots_forget_source(h);
	return r;
}

static int read_sums(struct timeline *t, struct row_filter *f)
{
	struct loaded *l = &t->sums.loaded;
	struct scan_notes notes = {0};
	for (uint32_t i = 1; i <= l->n_windows; i++) {
		const struct loaded_window *w = &l->window[i];
		int64_t span_ns, end_ns;
		if (!w->known || !w->wanted || w->realtime_ns < 0 ||
			__builtin_sub_overflow(w->end_ns, w->start_ns, &span_ns) || span_ns < 0 ||
			__builtin_add_overflow(w->realtime_ns, span_ns, &end_ns))
			continue;
		t->begin_ns = w->realtime_ns < t->begin_ns ? w->realtime_ns : t->begin_ns;
		t->end_ns = end_ns > t->end_ns ? end_ns : t->end_ns;
	}
	return scan_samples(l, f, &notes, sum_row, t);
}

static int read_cells(struct timeline *t, struct row_filter *f)
{
	struct loaded *l = &t->sums.loaded;
	struct scan_notes notes = {0};
	f->tells_moments = true;
	t->is_timed = false;
	t->is_whole = t->sums.provenance.of_all && !f->without && l->pin == QUERY_NO_PIN;
	int r = seconds_reader_open(&t->seconds, l);
	if (r == 0)
		r = scan_samples(l, f, &notes, put_row, t);
	if (r == 0)
		r = provenance_segment(&t->sums.provenance, l, f, &notes);
	if (r == 0)
		r = take_marks(t, f);
	if (r == 0 && l->pin != QUERY_PIN)
		cover(t);
	t->n_left_out += t->seconds.n_left_out;
	seconds_reader_close(&t->seconds);
	return r;
}

static int add_sums(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	return read_source(query, db, source, read_sums, ret_error);
}

static int add_cells(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	return read_source(query, db, source, read_cells, ret_error);
}

/* Sums only choose and order rows: what a file that turns out to be damaged adds to them does not matter. */
static int keep_sums(void *query)
{
	(void)query;
	return 0;
}

static void take_back_sums(void *query)
{
	(void)query;
}

static size_t cells_bytes(const struct timeline *t)
{
	return ((size_t)t->n_rows + 1) * t->n_stretches * sizeof(*t->cell);
}

static int keep_cells(void *query)
{
	struct timeline *t = query;
	memcpy(t->kept, t->cell, cells_bytes(t));
	t->provenance_kept = t->sums.provenance;
	t->n_marks_kept = t->n_marks;
	return 0;
}

static void take_back_cells(void *query)
{
	struct timeline *t = query;
	memcpy(t->cell, t->kept, cells_bytes(t));
	t->sums.provenance = t->provenance_kept;
	t->n_marks = t->n_marks_kept;
}

/* --- rows and stretches ----------------------------------------------------------------------- */

/* The shortest round length with at most n stretches. */
static int64_t round_every(int64_t span_ns, uint32_t n)
{
	static const int64_t minutes[] = {1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440};
	for (int64_t unit = SECOND / 100; unit <= 10 * SECOND; unit *= 10)
		for (int64_t of = 1; of <= 5; of += of == 1 ? 1 : 3)
			if (span_ns / (unit * of) < n && unit * of < 60 * SECOND)
				return unit * of;
	for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++)
		if (span_ns / (minutes[i] * 60 * SECOND) < n)
			return minutes[i] * 60 * SECOND;
	const int64_t day = 1440 * 60 * SECOND;
	return (span_ns / n / day + 1) * day;
}

static int choose_stretches(
	struct timeline *t, const struct timeline_of *of, struct query_error *ret_error)
{
	const struct query_filter *q = t->sums.filter;
	const uint32_t most = of->n_stretches ? of->n_stretches : TIMELINE_STRETCHES;
	if (q->since_ns > t->begin_ns)
		t->begin_ns = q->since_ns;
	if (q->until_ns && q->until_ns < t->end_ns)
		t->end_ns = q->until_ns;
	int64_t span_ns = t->end_ns > t->begin_ns ? t->end_ns - t->begin_ns : 1;
	t->every_ns = of->every_ns ? of->every_ns : round_every(span_ns - 1, most);
	const int64_t n = (span_ns - 1) / t->every_ns + 1;
	if (n > TIMELINE_STRETCHES_MAX)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Ask for longer stretches with --every, or for less time with --since and "
			"--until",
			"%lld stretches are too many: an answer has at most %u", (long long)n,
			TIMELINE_STRETCHES_MAX);
	t->n_stretches = (uint32_t)n;
	return 0;
}

static int by_sum(const void *a, const void *b, void *userdata)
{
	const struct timeline *t = userdata;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const double x_sum = t->sums.hotspot[x].self, y_sum = t->sums.hotspot[y].self;
	if (t->sums.by == QUERY_BY_HART)
		return t->sums.keys.key[x].part[0] < t->sums.keys.key[y].part[0] ? -1 : 1;
	return x_sum > y_sum ? -1 : x_sum < y_sum ? 1 : x < y ? -1 : 1;
}

static int choose_rows(struct timeline *t, uint32_t limit)
{
	const uint32_t n_keys = t->sums.keys.n_keys, room = TIMELINE_CELLS_MAX / t->n_stretches;
	uint32_t n = 0;
	t->row_of = calloc(n_keys + 1, sizeof(*t->row_of));
	t->key_of = calloc(n_keys + 1, sizeof(*t->key_of));
	if (!t->row_of || !t->key_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_keys; i++) {
		if (t->sums.hotspot[i].self > 0)
			t->key_of[n++] = i;
	}
	qsort_r(t->key_of, n, sizeof(*t->key_of), by_sum, t);
	if (limit == 0 || limit > room)
		limit = room > 2 ? room - 2 : 1;
	t->n_rows = n < limit ? n : limit;
	for (uint32_t i = 0; i < t->n_rows; i++)
		t->row_of[t->key_of[i]] = i;
	for (uint32_t i = t->n_rows; i < n; i++)
		t->row_of[t->key_of[i]] = t->n_rows;
	t->n_keys = n_keys;
	t->n_rows++; /* the rest */
	t->cell = calloc(1, cells_bytes(t));
	t->kept = calloc(1, cells_bytes(t));
	return t->cell && t->kept ? 0 : -ENOMEM;
}

/* ---------------------------------------------------------------------------------------------- */

static int ask(struct timeline *t, struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct timeline_of *of,
	struct query_error *ret_error)
{
	const struct source_reader sums = {
		t, add_sums, keep_sums, take_back_sums, &t->provenance_kept};
	const struct source_reader cells = {
		t, add_cells, keep_cells, take_back_cells, &t->sums.provenance};
	int r = sources_read(&sums, source, n_sources, ret_error);
	if (r == 0)
		r = choose_stretches(t, of, ret_error);
	if (r == 0)
		r = choose_rows(t, question->limit);
	if (r == 0)
		r = sources_read(&cells, source, n_sources, ret_error);
	return r;
}

int query_timeline(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct timeline_of *of,
	const struct answer *answer, struct query_error *ret_error)
{
	struct timeline *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->begin_ns = INT64_MAX;
	t->sums.by = question->by;
	t->sums.filter = question->filter;
	provenance_expect(&t->sums.provenance, question);
	int r = ask(t, source, n_sources, question, of, ret_error);
	if (r == 0)
		r = timeline_tell(t, answer);
	hotspots_clear(&t->sums);
	free(t->row_of);
	free(t->key_of);
	free(t->cell);
	free(t->kept);
	free(t);
	return r;
}
