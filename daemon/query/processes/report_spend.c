/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What processes and stretches of the chain spent
 *
 * Recordings say when a sample was taken, so it belongs to the stretch of that moment. The service's windows only say
 * how much of a window a process worked or waited. Then its work goes to its own stretches first, and its waiting to
 * other time first, when a child of it is on the chain. A process that is on the chain all its life, as compilers are,
 * has all of it either way.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/processes/report_private.h"
#include "daemon/query/sources.h"
#include "daemon/query/wall.h"

/* Sums that may have to be taken back. */
struct report_kept {
	struct spent *spent;
	struct {
		double cpu_ns, wall_ns;
	} *process;
	double cpu_ns;
	struct scan_wall_time wall;
	bool has_waits;
	struct provenance provenance;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The process in the tree that the row is of; NULL: none. */
static struct process *process_of(struct report *r, const struct scan_row *row)
{
	uint32_t key = KEY_NONE;
	if (row->task == 0 || !r->loaded.task[row->task].known)
		return NULL;
	(void)report_key(r, row->task, false, &key);
	return key != KEY_NONE && r->process[key].wanted ? &r->process[key] : NULL;
}

/* The first of the parts (indices in part_of, from `at` to `end`) that ends after t. */
static uint32_t first_part(const struct report *r, uint32_t at, uint32_t end, int64_t t)
{
	while (at < end) {
		const uint32_t middle = at + (end - at) / 2;
		if (r->part[r->part_of[middle]].to_ns > t)
			end = middle;
		else
			at = middle + 1;
	}
	return at;
}

#define WORK (-1)

/* kind: of waiting, or WORK, of which the row says how much wall time it accounts for. */
static void add(struct spent *to, const struct scan_row *row, int kind, double ns)
{
	if (kind != WORK) {
		to->waited_ns[kind] += (float)ns;
		return;
	}
	to->cpu_ns += ns;
	if (row->harts == 1 && row->weight_ns > 0)
		to->alone_ns += ns * row->value / (double)row->weight_ns;
}

/* Add ns at a moment, if one of the process's stretches has it. */
static void add_at(struct report *r, const struct process *p, const struct scan_row *row, int kind,
	double time_ns, double ns)
{
	const uint32_t end = r->first[p->at + 1];
	if (!(time_ns >= 0 && time_ns < (double)INT64_MAX)) /* a made-up window */
		return;
	const uint32_t i = first_part(r, r->first[p->at], end, (int64_t)time_ns);
	if (i < end && (double)r->part[r->part_of[i]].from_ns <= time_ns)
		add(&r->spent[r->part_of[i]], row, kind, ns);
}

/* The process in a window, where no moments are known: how long it lived, and bounded. */
struct stay {
	int64_t from_ns, to_ns;
	uint32_t begin, end; /* its stretches in it, in part_of */
	double own_ns;
};

static int64_t both_ns(const struct report *r, uint32_t i, const struct stay *s)
{
	const struct chain_part *part = &r->part[r->part_of[i]];
	return least(part->to_ns, s->to_ns) - most(part->from_ns, s->from_ns);
}

static struct stay stay_of(const struct report *r, const struct process *p, uint32_t window)
{
	const struct loaded_window *w = &r->loaded.window[window];
	const struct chain_process *node = &r->tree[p->at];
	const uint32_t end = r->first[p->at + 1];
	struct stay s = {.from_ns = most(w->start_ns, node->start_ns),
		.to_ns = least(w->end_ns, node->end_ns)};
	if (!w->known || s.to_ns <= s.from_ns)
		return (struct stay){.begin = end, .end = end};
	s.begin = s.end = first_part(r, r->first[p->at], end, s.from_ns);
	for (; s.end < end && both_ns(r, s.end, &s) > 0; s.end++)
		s.own_ns += (double)both_ns(r, s.end, &s);
	return s;
}

/* Spread ns over its stretches in the window. */
static void spread(
	struct report *r, const struct scan_row *row, int kind, const struct stay *s, double ns)
{
	for (uint32_t i = s->begin; i < s->end && ns > 0; i++)
		add(&r->spent[r->part_of[i]], row, kind, ns * (double)both_ns(r, i, s) / s->own_ns);
}

/* Begin with no time given, if the window is another. */
static void enter(struct process *p, uint32_t window)
{
	if (p->window == window)
		return;
	p->window = window;
	p->worked_ns = p->waited_ns = 0;
}

/* How much of ns is of its stretches in the window: work as long as they have room, if it has other time in it. */
static double own_work(struct process *p, const struct stay *s, double ns)
{
	if (s->own_ns >= (double)(s->to_ns - s->from_ns))
		return ns;
	const double own_ns = fmin(ns, fmax(0, s->own_ns - p->worked_ns));
	p->worked_ns += ns;
	return own_ns;
}

/* The same of waiting: what does not fit into its other time. */
static double own_wait(struct process *p, const struct stay *s, double ns)
{
	const double other_ns = (double)(s->to_ns - s->from_ns) - s->own_ns;
	const double left_ns = fmax(0, other_ns - p->waited_ns);
	p->waited_ns += ns;
	return fmax(0, ns - left_ns);
}

static int take_work(void *userdata, const struct scan_row *row)
{
	struct report *r = userdata;
	struct process *p = process_of(r, row);
	provenance_row(&r->provenance, &r->loaded, row);
	r->cpu_ns += (double)row->weight_ns;
	if (!p)
		return 0;
	p->cpu_ns += (double)row->weight_ns;
	p->wall_ns += row->value;
	for (size_t i = 0; i < row->n_timed; i++)
		add_at(r, p, row, WORK, row->timed[i].time_ns - row->timed[i].weight_ns / 2,
			row->timed[i].weight_ns);
	if (row->n_timed > 0)
		return 0;
	const struct stay s = stay_of(r, p, row->window);
	enter(p, row->window);
	spread(r, row, WORK, &s, own_work(p, &s, (double)row->weight_ns));
	return 0;
}

static int take_waits(void *userdata, const struct scan_row *row)
{
	struct report *r = userdata;
	struct process *p = process_of(r, row);
	const struct loaded_window *w = &r->loaded.window[row->window];
	const uint64_t kind = r->loaded.event[row->event].config;
	if (!p || !r->loaded.event[row->event].offcpu || kind >= N_OFFCPU_KINDS || !w->known)
		return 0;
	if (row->at && row->count > 0) {
		const double ns = (double)row->weight_ns / (double)row->count;
		const double span_ns = (double)w->end_ns - (double)w->start_ns;
		for (uint64_t i = 0; i < row->count; i++) {
			const unsigned at = row->at[2 * i] | (unsigned)row->at[2 * i + 1] << 8;
			add_at(r, p, row, (int)kind,
				(double)w->start_ns + span_ns * at / (UINT16_MAX + 1.0), ns);
		}
		return 0;
	}
	const struct stay s = stay_of(r, p, row->window);
	enter(p, row->window);
	spread(r, row, (int)kind, &s, own_wait(p, &s, (double)row->weight_ns));
	return 0;
}

static int read_waits(struct report *r, const struct row_filter *work)
{
	struct row_filter f = *work;
	struct scan_notes notes = {0};
	bool any = false;
	f.scope = NULL;
	f.asked = f.tells_windows = f.tells_moments = true;
	for (uint32_t i = 0; i < QUERY_EVENTS_MAX; i++)
		any |= f.event[i] = r->loaded.event[i].known && r->loaded.event[i].offcpu;
	r->has_waits |= any;
	return any ? scan_samples(&r->loaded, &f, &notes, take_waits, r) : 0;
}

static int read_samples(struct report *r, const struct row_filter *f)
{
	struct scan_notes notes = {0};
	if (r->boot && r->boot != r->loaded.boot)
		return 0;
	for (uint32_t i = 0; i < r->keys.n_keys; i++) /* windows of this file */
		r->process[i].window = 0;
	int result = scan_values(&r->loaded, f, &notes, take_work, r);
	if (result == 0)
		result = read_waits(r, f);
	notes.has_offcpu = false; /* they are shown */
	r->wall.ns += notes.wall.ns;
	r->wall.least_ns += notes.wall.least_ns;
	r->wall.most_ns += notes.wall.most_ns;
	return result == 0 ? provenance_segment(&r->provenance, &r->loaded, f, &notes) : result;
}

static int add_segment(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	return report_read_segment(query, db, source, false, read_samples, ret_error);
}

/* --- sums that may have to be taken back ------------------------------------------------------ */

static int keep(void *query)
{
	struct report *r = query;
	struct report_kept *k = r->kept;
	memcpy(k->spent, r->spent, r->n_parts * sizeof(*k->spent));
	for (uint32_t i = 0; i < r->keys.n_keys; i++) {
		k->process[i].cpu_ns = r->process[i].cpu_ns;
		k->process[i].wall_ns = r->process[i].wall_ns;
	}
	k->cpu_ns = r->cpu_ns;
	k->wall = r->wall;
	k->has_waits = r->has_waits;
	k->provenance = r->provenance;
	return 0;
}

static void take_back(void *query)
{
	struct report *r = query;
	const struct report_kept *k = r->kept;
	memcpy(r->spent, k->spent, r->n_parts * sizeof(*k->spent));
	for (uint32_t i = 0; i < r->keys.n_keys; i++) {
		r->process[i].cpu_ns = k->process[i].cpu_ns;
		r->process[i].wall_ns = k->process[i].wall_ns;
	}
	r->cpu_ns = k->cpu_ns;
	r->wall = k->wall;
	r->has_waits = k->has_waits;
	r->provenance = k->provenance;
}

int report_spend(struct report *r, struct query_source *source, size_t n_sources,
	struct query_error *ret_error)
{
	const struct source_reader reader = {r, add_segment, keep, take_back, &r->provenance};
	struct report_kept *k = r->kept = calloc(1, sizeof(*k));
	if (k) {
		k->spent = calloc((size_t)r->n_parts + 1, sizeof(*k->spent));
		k->process = calloc((size_t)r->keys.n_keys + 1, sizeof(*k->process));
	}
	int result = k && k->spent && k->process
			     ? sources_read(&reader, source, n_sources, ret_error)
			     : -ENOMEM;
	if (k) {
		free(k->spent);
		free(k->process);
	}
	free(k);
	r->kept = NULL;
	return result;
}
