/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What processes and stretches of the chain spent
 *
 * A row of samples says how much of a window a process had a hart, or waited, but not when in it. So its time is spread
 * evenly over the process's life in that window, and each stretch has its part of that. A process that lives on the
 * chain all its life, as compilers do, has all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/processes/report_private.h"
#include "daemon/query/sources.h"

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

/* Call add with each stretch of the process in the row's window, and its share of the row. */
static void share_out(struct report *r, const struct process *p, const struct scan_row *row,
	void (*add)(
		struct spent *to, const struct report *r, const struct scan_row *row, double share))
{
	const struct loaded_window *w = &r->loaded.window[row->window];
	const struct chain_process *node = &r->tree[p->at];
	const int64_t from_ns = most(w->start_ns, node->start_ns),
		      to_ns = least(w->end_ns, node->end_ns);
	const uint32_t end = r->first[p->at + 1];
	if (!w->known || to_ns <= from_ns)
		return;
	for (uint32_t i = first_part(r, r->first[p->at], end, from_ns); i < end; i++) {
		const struct chain_part *part = &r->part[r->part_of[i]];
		const int64_t both_ns = least(part->to_ns, to_ns) - most(part->from_ns, from_ns);
		if (both_ns <= 0)
			break;
		add(&r->spent[r->part_of[i]], r, row, (double)both_ns / (double)(to_ns - from_ns));
	}
}

static void add_work(
	struct spent *to, const struct report *r, const struct scan_row *row, double share)
{
	(void)r;
	to->cpu_ns += share * (double)row->weight_ns;
	to->alone_ns += row->harts == 1 ? share * row->value : 0;
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
	share_out(r, p, row, add_work);
	return 0;
}

static void add_waits(
	struct spent *to, const struct report *r, const struct scan_row *row, double share)
{
	const uint64_t kind = r->loaded.event[row->event].config;
	if (kind < N_OFFCPU_KINDS)
		to->waited_ns[kind] += (float)(share * (double)row->weight_ns);
}

static int take_waits(void *userdata, const struct scan_row *row)
{
	struct report *r = userdata;
	struct process *p = process_of(r, row);
	if (p && r->loaded.event[row->event].offcpu)
		share_out(r, p, row, add_waits);
	return 0;
}

static int read_waits(struct report *r, const struct row_filter *work)
{
	struct row_filter f = *work;
	struct scan_notes notes = {0};
	bool any = false;
	f.scope = NULL;
	f.asked = f.tells_windows = true;
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
	struct report *r = query;
	struct row_filter filter = {0};
	const struct load_wish wish = {
		.filter = &r->own,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	int result = load_segment(&r->loaded, db, &r->texts, &wish, ret_error);
	if (result == 0)
		result = filter_make(&filter, &r->loaded, &r->own);
	if (result == 0)
		result = read_samples(r, &filter);
	filter_clear(&filter);
	loaded_clear(&r->loaded);
	return result;
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
