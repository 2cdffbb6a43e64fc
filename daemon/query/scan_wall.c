/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rows of a segment with the wall time of their samples
 *
 * Rows come window by window. Those of a window are kept until the samples of the next one are known: at the end of a
 * window, what runs beside a sample may be in the next. A row is handed on in parts, one for each number of harts that
 * worked at once.
 *
 * The service's windows do not say when their samples were taken. There, wall time is a guess between bounds, from
 * the time of each hart in the window.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/aggregate/window.h"
#include "daemon/query/scan.h"
#include "daemon/query/wall.h"
#include "proto/base/array.h"

#define NEIGHBOUR UINT32_MAX /* the row of a sample of another window */

struct walled {
	uint32_t id; /* 0: there is none */
	struct scan_row *row;
	struct wall_sample *sample;
	uint32_t n_rows, size_rows, n_samples, size_samples;
};

enum { BEFORE, NOW, AFTER, N_WALLED };

struct wall_scan {
	const struct loaded *l;
	const struct row_filter
		*f; /* whose tasks and harts are handed on; f->scope has those that count as work */
	struct scan_notes *notes;
	scan_take *take;
	void *userdata;
	struct walled window[N_WALLED];
	struct wall_sample *all; /* of the three */
	uint32_t size_all;
	double busy_ns[WALL_HARTS]; /* in the window under way */
};

/* --- keeping ---------------------------------------------------------------------------------- */

static void clear(struct walled *w)
{
	free(w->row);
	free(w->sample);
	*w = (struct walled){.id = 0};
}

static int keep_samples(struct wall_scan *s, struct walled *w, const struct scan_row *row)
{
	const struct loaded_window *of = &s->l->window[row->window];
	const double span_ns = (double)of->end_ns - (double)of->start_ns;
	int r = array_grow(&w->sample, &w->size_samples, w->n_samples + (uint32_t)row->count,
		sizeof(*w->sample));
	for (uint64_t i = 0; i < row->count && r == 0; i++) {
		const unsigned at = row->at[2 * i] | (unsigned)row->at[2 * i + 1] << 8;
		if (at == 0) /* its callers came late: it was taken in an earlier window */
			continue;
		w->sample[w->n_samples++] = (struct wall_sample){
			.time_ns = (double)of->start_ns + span_ns * at / (UINT16_MAX + 1.0),
			.weight_ns = (double)row->weight_ns / (double)row->count,
			.hart = row->hart,
			.row = w->n_rows,
		};
	}
	return r;
}

static int keep(struct wall_scan *s, struct walled *w, const struct scan_row *row)
{
	if (w->n_rows >= WINDOW_ROWS_MAX)
		return query_fail_damaged(s->l, "a window has too many rows");
	int r = array_grow(&w->row, &w->size_rows, w->n_rows + 1, sizeof(*w->row));
	if (r == 0 && row->at)
		r = keep_samples(s, w, row);
	if (r != 0)
		return r;
	w->row[w->n_rows] = *row;
	w->row[w->n_rows++].at = NULL; /* borrowed */
	return 0;
}

/* --- handing on ------------------------------------------------------------------------------- */

/* Wall time over CPU time, where samples have no time of their own. */
static double share_of(struct wall_scan *s, const struct walled *w, double timed_ns, double wall_ns)
{
	const struct loaded_window *of = &s->l->window[w->id];
	double cpu_ns = 0;
	if (timed_ns > 0)
		return wall_ns / timed_ns;
	memset(s->busy_ns, 0, sizeof(s->busy_ns));
	for (uint32_t i = 0; i < w->n_rows; i++) {
		s->busy_ns[w->row[i].hart] += (double)w->row[i].weight_ns;
		cpu_ns += (double)w->row[i].weight_ns;
	}
	const struct wall_bounds b =
		wall_guess(s->busy_ns, WALL_HARTS, (double)of->end_ns - (double)of->start_ns);
	s->notes->wall.least_ns += b.least_ns;
	s->notes->wall.most_ns += b.most_ns;
	return cpu_ns > 0 ? b.likely_ns / cpu_ns : 0;
}

/* What is left of a row for its parts: which of its samples lack callers or counts is not known. */
struct rest {
	uint64_t cut, uncounted;
	bool is_whole; /* no part was handed on yet */
};

static uint64_t take_from(uint64_t *left, uint64_t most)
{
	const uint64_t n = *left < most ? *left : most;
	*left -= n;
	return n;
}

/* A part of the row, of `count` of its samples, which has that share of its counts. */
static int hand_on(struct wall_scan *s, const struct scan_row *row, uint64_t count, double wall_ns,
	uint32_t harts, struct rest *rest)
{
	struct scan_row part = *row;
	const double share = row->count > 0 ? (double)count / (double)row->count : rest->is_whole;
	part.value = wall_ns;
	part.harts = harts;
	part.count = count;
	part.weight_ns = (uint64_t)integer_of((double)row->weight_ns * share);
	if (row->cycles >= 0)
		part.cycles = row->cycles * share;
	if (row->instructions >= 0)
		part.instructions = row->instructions * share;
	part.cut = take_from(&rest->cut, count);
	part.uncounted = take_from(&rest->uncounted, count);
	rest->is_whole = false;
	return s->take(s->userdata, &part);
}

/* sample: the row's, n of them, in groups that have `harts` in common. */
static int hand_on_row(struct wall_scan *s, const struct scan_row *row,
	const struct wall_sample *sample, size_t n, double share)
{
	struct rest rest = {row->cut, row->uncounted, true};
	uint64_t left = row->count;
	int r = 0;
	for (size_t i = 0, next; i < n && r == 0; i = next) {
		struct scan_row part = *row;
		double wall_ns = 0;
		for (next = i; next < n && sample[next].harts == sample[i].harts; next++)
			wall_ns += sample[next].wall_ns;
		part.timed = &sample[i];
		part.n_timed = next - i;
		r = hand_on(s, &part, next - i, wall_ns, sample[i].harts, &rest);
		left -= next - i;
	}
	if (r != 0 || (left == 0 && !rest.is_whole))
		return r;
	const double weight_ns =
		left > 0 ? (double)row->weight_ns * (double)left / (double)row->count : 0;
	return hand_on(s, row, left, weight_ns * share, wall_harts(share), &rest);
}

static int by_row(const void *a, const void *b)
{
	const struct wall_sample *x = a, *y = b;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->harts > y->harts) - (x->harts < y->harts);
}

/* The samples of the three windows, with their wall times, those of the middle one first and by row: *ret_n. */
static int share_samples(struct wall_scan *s, size_t *ret_n)
{
	uint32_t n = 0, n_all = 0;
	for (int i = 0; i < N_WALLED; i++)
		n_all += s->window[i].n_samples;
	int r = array_grow(&s->all, &s->size_all, n_all, sizeof(*s->all));
	if (r != 0)
		return r;
	for (int i = 0; i < N_WALLED; i++) {
		const struct walled *w = &s->window[i];
		for (uint32_t k = 0; k < w->n_samples; k++, n++) {
			s->all[n] = w->sample[k];
			s->all[n].row = i == NOW ? w->sample[k].row : NEIGHBOUR;
		}
	}
	r = n_all > 0 ? wall_share(s->all, n_all) : 0;
	if (r == 0 && n_all > 0)
		qsort(s->all, n_all, sizeof(*s->all), by_row);
	*ret_n = s->window[NOW].n_samples;
	return r;
}

static int hand_on_window(struct wall_scan *s)
{
	const struct walled *w = &s->window[NOW];
	size_t n, i = 0;
	double timed_ns = 0, wall_ns = 0;
	int r = w->id ? share_samples(s, &n) : 0;
	if (r != 0 || w->id == 0)
		return r;
	for (size_t k = 0; k < n; k++) {
		timed_ns += s->all[k].weight_ns;
		wall_ns += s->all[k].wall_ns;
	}
	const double share = share_of(s, w, timed_ns, wall_ns);
	s->notes->wall.least_ns += timed_ns > 0 ? wall_ns : 0;
	s->notes->wall.most_ns += timed_ns > 0 ? wall_ns : 0;
	for (uint32_t row = 0; row < w->n_rows && r == 0; row++) {
		const struct scan_row *of = &w->row[row];
		const size_t begin = i;
		double row_ns = 0;
		for (; i < n && s->all[i].row == row; i++)
			row_ns += s->all[i].wall_ns;
		const double late = of->count > 0 ? 1 - (double)(i - begin) / (double)of->count : 0;
		s->notes->wall.ns += row_ns + late * (double)of->weight_ns * share;
		s->notes->wall.cpu_ns += (double)of->weight_ns;
		if (s->f->task[of->task] && s->f->hart[of->hart])
			r = hand_on_row(s, of, s->all ? &s->all[begin] : NULL, i - begin, share);
	}
	return r;
}

/* The window of the rows that come now is complete. */
static void turn(struct wall_scan *s)
{
	struct walled gone = s->window[BEFORE];
	s->window[BEFORE] = s->window[NOW];
	s->window[NOW] = s->window[AFTER];
	gone.id = gone.n_rows = gone.n_samples = 0;
	s->window[AFTER] = gone;
}

static int take_row(void *userdata, const struct scan_row *row)
{
	struct wall_scan *s = userdata;
	int r = 0;
	if (row->window == 0) /* it is in none */
		return 0;
	if (s->window[AFTER].id != row->window) {
		if (s->window[AFTER].id) {
			r = hand_on_window(s);
			turn(s);
		}
		s->window[AFTER].id = row->window;
	}
	return r == 0 ? keep(s, &s->window[AFTER], row) : r;
}

static int scan_wall(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	scan_take *take, void *userdata)
{
	struct row_filter work = *f;
	work.task = f->scope;
	work.scope = NULL;
	work.tells_windows = work.tells_moments = true;
	for (uint32_t i = 0; i <= HARTS_MAX; i++)
		work.hart[i] = true;
	if (l->tier != TIER_WINDOW)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"ask for a later --since: mperfctl store shows how far back windows reach",
			"the store has only sums of minutes or hours of that time, and wall time "
			"needs "
			"single windows");
	if (f->asked)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Record again without -c",
			"the samples of %s stand for occurrences, not for time", l->path);
	struct wall_scan *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct wall_scan){.l = l, .f = f, .notes = notes, .take = take, .userdata = userdata};
	int r = scan_samples(l, &work, notes, take_row, s);
	for (int i = 0; i < N_WALLED - 1 && r == 0; i++) {
		r = hand_on_window(s);
		turn(s);
	}
	for (int i = 0; i < N_WALLED; i++)
		clear(&s->window[i]);
	free(s->all);
	free(s);
	return r;
}

int scan_values(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	scan_take *take, void *userdata)
{
	return f->scope ? scan_wall(l, f, notes, take, userdata)
			: scan_samples(l, f, notes, take, userdata);
}
