/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Seconds of a window, where its load changed
 *
 * Most processes run a little in every second, or as much in each. They get no row: a reader takes their time as spread
 * evenly, and is wrong by less than SECONDS_CHANGE_NS in each second. So a hart can cause ten rows a second at most,
 * and if that is too much, those that differ most are kept.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/segment/write.h"
#include "proto/base/memory.h"

#define SECOND_NS 1000000000.0
#define SECONDS_CHANGE_NS 100000000.0
/* What a row takes beside its bytes: its header, three numbers, and its place in the page. */
#define ROW_BYTES 14u
/* Bytes for processes in a window: a part of what its samples take, but at least as many as a few changes need. */
#define BYTES_LEAST 256u
#define PART_OF_SAMPLES 32u

/* Seconds of one hart or process. */
struct spread {
	const struct second *second;
	uint32_t n;
	double change_ns; /* the most by which a second differs from an even spread */
};

static struct spread spread_of(const struct second *second, uint32_t n, double span_ns)
{
	struct spread s = {second, 0, 0};
	double all_ns = 0;
	for (; s.n < n && seconds_are_of_one(&second[s.n], second); s.n++)
		all_ns += (double)second[s.n].ns;
	for (uint32_t at = 0, i = 0; at * SECOND_NS < span_ns; at++) {
		const double part = fmin(span_ns - at * SECOND_NS, SECOND_NS) / span_ns;
		const bool is_there = i < s.n && second[i].at == at;
		const double ns = is_there ? (double)second[i].ns : 0;
		i += is_there;
		s.change_ns = fmax(s.change_ns, fabs(ns - all_ns * part));
	}
	return s;
}

/* Returns the number of bytes. */
static uint32_t bytes_of(const struct spread *s, uint8_t ret_at[static SECONDS_MAX])
{
	uint64_t most_ns = 1;
	for (uint32_t i = 0; i < s->n; i++)
		most_ns = s->second[i].ns > most_ns ? s->second[i].ns : most_ns;
	memset(ret_at, 0, SECONDS_MAX);
	for (uint32_t i = 0; i < s->n; i++)
		ret_at[s->second[i].at] =
			(uint8_t)lround((double)s->second[i].ns * UINT8_MAX / (double)most_ns);
	uint32_t n = SECONDS_MAX;
	while (n > 0 && ret_at[n - 1] == 0)
		n--;
	return n;
}

static int write_spread(struct segment *g, const struct segment_flush *f, const struct spread *s)
{
	uint8_t at[SECONDS_MAX];
	const uint32_t n = bytes_of(s, at);
	struct task *process = s->second->process;
	int r = 0;
	if (process) {
		g->payer = task_account(process);
		r = segment_write_task(g, f, process);
		segment_charge(g, ROW_BYTES + n);
	}
	return r == 0 ? ROW(g, INSERT_SECOND, CELL_I(g->n_windows), CELL_I(s->second->hart),
				CELL_I(process ? process->id : 0), CELL_B(at, n))
		      : r;
}

static int by_change(const void *a, const void *b)
{
	const struct spread *x = a, *y = b;
	return (x->change_ns < y->change_ns) - (x->change_ns > y->change_ns);
}

static uint32_t bytes_max(const struct window *w)
{
	const uint32_t part = w->n_rows * SHARE_SAMPLE_BYTES / PART_OF_SAMPLES;
	return part > BYTES_LEAST ? part : BYTES_LEAST;
}

/* Processes, sorted by change. */
static int write_processes(
	struct segment *g, const struct segment_flush *f, const struct spread *s, uint32_t n)
{
	uint32_t bytes = 0, i = 0;
	int r = 0;
	for (; i < n && r == 0; i++) {
		bytes += ROW_BYTES + s[i].second[s[i].n - 1].at + 1;
		if (bytes > bytes_max(f->window))
			break;
		r = write_spread(g, f, &s[i]);
	}
	return r == 0 && i < n ? ROW(g, INSERT_SECOND, CELL_I(g->n_windows), CELL_I(-1), CELL_I(0),
					 CELL_I(n - i))
			       : r;
}

static int write_all(
	struct segment *g, const struct segment_flush *f, const struct second *second, uint32_t n)
{
	const double span_ns = (double)(f->window->end_ns - f->window->start_ns);
	_cleanup_(freep) struct spread *process = calloc(n + 1, sizeof(*process));
	uint32_t n_processes = 0;
	int r = process ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < n && r == 0;) {
		const struct spread s = spread_of(&second[i], n - i, span_ns);
		const bool is_written = s.change_ns >= SECONDS_CHANGE_NS;
		if (!s.second->process && is_written)
			r = write_spread(g, f, &s);
		else if (is_written && segment_may_write(f, s.second->process))
			process[n_processes++] = s;
		i += s.n;
	}
	if (r != 0)
		return r;
	if (f->window->seconds.is_too_many)
		return ROW(g, INSERT_SECOND, CELL_I(g->n_windows), CELL_I(-1), CELL_I(0),
			CELL_I(n_processes));
	qsort(process, n_processes, sizeof(*process), by_change);
	return write_processes(g, f, process, n_processes);
}

int segment_write_seconds(struct segment *g, const struct segment_flush *f)
{
	const struct window *w = f->window;
	_cleanup_(freep) struct second *second = NULL;
	uint32_t n = 0;
	const double span_ns = w->end_ns > w->start_ns ? (double)(w->end_ns - w->start_ns) : 0;
	if (span_ns <= SECOND_NS || span_ns > SECONDS_MAX * SECOND_NS)
		return 0;
	int r = seconds_sorted(&w->seconds, &second, &n);
	return r == 0 ? write_all(g, f, second, n) : r;
}
