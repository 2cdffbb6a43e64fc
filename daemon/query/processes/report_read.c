/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Processes of the sources
 *
 * Which tasks belong to the report, and which of them the asker may see, is the filter's business. Of all others only
 * pid, start and parent are taken, to find who descends from whom, and nothing of them is shown.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/load_part.h"
#include "daemon/query/processes/report_private.h"
#include "daemon/query/sources.h"
#include "proto/base/array.h"

/* The file has no job and is of no command: everything in it would be one tree. */
static int fail_of_all(const struct report *r)
{
	return query_fail(r->loaded.error, MPERF__FAILURE_KIND__FAILURE_USAGE,
		"Name a job that is in it: mperfctl job report NAME -i FILE",
		"%s is of the whole system, and not of one command", r->loaded.path);
}

/* --- what a file says of its tasks ------------------------------------------------------------ */

int report_key(struct report *r, uint32_t task, bool add, uint32_t *ret_key)
{
	const struct loaded *l = &r->loaded;
	const struct loaded_task *t = &l->task[l->task[task].process];
	const struct key key = {{l->boot, (uint32_t)t->pid, (uint64_t)t->start_ns, 0}};
	const uint32_t n = r->keys.n_keys;
	*ret_key = t->known && t->pid > 0 ? key_find(&r->keys, &key) : KEY_NONE;
	if (*ret_key != KEY_NONE || !add || !t->known || t->pid <= 0)
		return 0;
	int result = query_fail_full(l, key_get(&r->keys, &key, ret_key));
	if (result == 0 && r->keys.n_keys > n)
		result = array_grow(&r->process, &r->size, r->keys.n_keys, sizeof(*r->process));
	if (result == 0 && r->keys.n_keys > n)
		r->process[*ret_key] = (struct process){.pid = t->pid,
			.start_ns = t->start_ns > 0 ? t->start_ns : 0,
			.named_ns = -1};
	return result;
}

static void take_name(struct process *p, const struct loaded_task *t, int64_t end_ns)
{
	const int64_t until_ns = end_ns ? end_ns : INT64_MAX;
	if (until_ns < p->named_ns)
		return;
	p->named_ns = until_ns;
	p->comm = t->comm;
	p->argv = t->argv ? t->argv : p->argv;
}

/* One process, or one of the names that it had. */
static int take_task(
	struct report *r, const struct row_filter *f, uint32_t id, uint32_t parent, int64_t end_ns)
{
	const struct loaded_task *t = &r->loaded.task[id];
	uint32_t key, parent_key = KEY_NONE;
	int result = report_key(r, id, true, &key);
	if (result == 0 && parent && parent != id)
		result = report_key(r, parent, true, &parent_key);
	if (result != 0 || key == KEY_NONE)
		return result;
	struct process *p = &r->process[key];
	if (parent_key != KEY_NONE && parent_key != key)
		p->parent = parent_key + 1;
	if (!f->task[id] || (r->seen && !r->seen[id]))
		return 0;
	r->n_wanted += !p->wanted;
	p->wanted = true;
	if (end_ns > p->end_ns)
		p->end_ns = end_ns;
	take_name(p, t, end_ns);
	return 0;
}

static int take_tasks(struct report *r, const struct row_filter *f)
{
	struct loaded *l = &r->loaded;
	struct cursor c;
	int result = cursor_open(&c, l,
		"SELECT id, process, parent, coalesce(end_ns, 0), kernel_thread FROM task ORDER BY "
		"id");
	while (result == 0 && (result = cursor_next(&c)) == 0) {
		const uint32_t id = cursor_id(&c, 0, l->n_tasks);
		if (id != 0 && l->task[id].known && l->task[id].process == id &&
			cursor_integer(&c, 4) == 0)
			result = take_task(
				r, f, id, cursor_id(&c, 2, l->n_tasks), cursor_integer(&c, 3));
	}
	cursor_close(&c);
	return result == CURSOR_END ? 0 : result;
}

/* --- which tasks are a recording's ------------------------------------------------------------ */

static int see_sampled(struct report *r, const struct row_filter *f)
{
	struct loaded *l = &r->loaded;
	struct cursor c;
	int result = cursor_open(&c, l,
		"SELECT task, max(window) FROM sample WHERE id BETWEEN ?1 AND ?2 AND rung <= 5 "
		"GROUP BY task ORDER BY task");
	if (result == 0)
		result = cursor_bind(&c, l->first, l->last);
	while (result == 0 && (result = cursor_next(&c)) == 0) {
		const uint32_t task = cursor_id(&c, 0, l->n_tasks);
		const int64_t end_ns = l->window[cursor_id(&c, 1, l->n_windows)].end_ns;
		uint32_t key = KEY_NONE;
		if (task && l->task[task].known && f->task[task])
			result = report_key(r, task, true, &key);
		if (result == 0 && key != KEY_NONE && end_ns > r->process[key].last_ns)
			r->process[key].last_ns = end_ns;
		if (r->seen && task)
			r->seen[task] = r->seen[l->task[task].process] = true;
	}
	cursor_close(&c);
	return result == CURSOR_END ? 0 : result;
}

/* *ret_any: some of its tasks were chosen. */
static int see_timed(struct report *r, const struct row_filter *f, bool *ret_any)
{
	struct loaded *l = &r->loaded;
	struct cursor c;
	bool is_there;
	int result = load_has_table(l, "thread_time", &is_there);
	*ret_any = false;
	if (result != 0 || !is_there)
		return result;
	result = cursor_open(
		&c, l, "SELECT task, sum(lived_ns) FROM thread_time GROUP BY task ORDER BY task");
	while (result == 0 && (result = cursor_next(&c)) == 0) {
		const uint32_t task = cursor_id(&c, 0, l->n_tasks);
		uint32_t key = KEY_NONE;
		if (task && f->task[task] && l->task[task].process == task)
			result = report_key(r, task, true, &key);
		if (result == 0 && key != KEY_NONE && cursor_integer(&c, 1) > 0 &&
			cursor_integer(&c, 1) < INT64_MAX - r->process[key].lived_ns)
			r->process[key].lived_ns += cursor_integer(&c, 1);
		if (task && r->seen)
			r->seen[task] = r->seen[l->task[task].process] = true;
		*ret_any |= task != 0;
	}
	cursor_close(&c);
	return result == CURSOR_END ? 0 : result;
}

static void take_span(struct report *r)
{
	for (uint32_t i = 1; i <= r->loaded.n_windows; i++) {
		const struct loaded_window *w = &r->loaded.window[i];
		if (!w->known || !w->wanted || w->start_ns <= 0 || w->end_ns <= w->start_ns)
			continue;
		if (r->first_ns == 0 || w->start_ns < r->first_ns)
			r->first_ns = w->start_ns;
		if (w->end_ns > r->last_ns)
			r->last_ns = w->end_ns;
	}
}

/* --- one file --------------------------------------------------------------------------------- */

static int read_tasks(struct report *r, const struct row_filter *f)
{
	struct loaded *l = &r->loaded;
	bool is_timed;
	if (l->tier != TIER_WINDOW)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"mperfctl store says how long samples are kept; job pin and job run --pin "
			"keep those of a job longer",
			"only sums of minutes or hours are left of it, which do not say what "
			"started when");
	if (r->boot && r->boot != l->boot) {
		r->other_boot = true;
		return 0;
	}
	const bool of_command = r->of->is_recording && r->own.n_labels == 0;
	if (of_command && !(r->seen = calloc((size_t)l->n_tasks + 1, sizeof(*r->seen))))
		return -ENOMEM;
	int result = see_timed(r, f, &is_timed);
	if (result == 0 && of_command && !is_timed)
		return fail_of_all(r);
	if (result == 0)
		result = see_sampled(r, f);
	if (result == 0)
		result = take_tasks(r, f);
	if (r->n_wanted > 0)
		r->boot = l->boot;
	if (result == 0)
		take_span(r);
	return result;
}

int report_read_segment(struct report *r, sqlite3 *db, const struct query_source *source,
	bool all_tasks, int (*read)(struct report *r, const struct row_filter *f),
	struct query_error *ret_error)
{
	struct row_filter filter = {0};
	const struct load_wish wish = {
		.tasks = all_tasks,
		.filter = &r->own,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	int result = load_segment(&r->loaded, db, &r->texts, &wish, ret_error);
	if (result == 0)
		result = filter_make(&filter, &r->loaded, &r->own);
	if (result == 0)
		result = read(r, &filter);
	filter_clear(&filter);
	loaded_clear(&r->loaded);
	return result;
}

static int add_segment(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	struct report *r = query;
	const int result = report_read_segment(r, db, source, true, read_tasks, ret_error);
	free(r->seen);
	r->seen = NULL;
	return result;
}

/* Processes of a file that turns out to be damaged stay: what it says of them was checked, and each may be in others. */
static int keep(void *query)
{
	(void)query;
	return 0;
}

static void take_back(void *query)
{
	(void)query;
}

int report_read(struct report *r, struct query_source *source, size_t n_sources,
	struct query_error *ret_error)
{
	struct provenance *p = calloc(1, sizeof(*p)); /* the second pass has what is sent */
	const struct source_reader reader = {r, add_segment, keep, take_back, p};
	int result = p ? sources_read(&reader, source, n_sources, ret_error) : -ENOMEM;
	free(p);
	return result;
}
