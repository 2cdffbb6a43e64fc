/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Dictionaries into arrays
 *
 * An id is an index: the writer numbers densely from 1, so a table becomes an array of its highest
 * id, and a sample finds its task, its stack and its names without a search. Memory of entries that
 * a sparse table lacks is never touched (calloc).
 *
 * If only a short time of a large file is requested, load_part.c marks the entries that the samples
 * of that time refer to. Marked entries are then looked up one by one or, if they are a large share
 * of a table, picked out while the table is read.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/aggregate/waker.h"
#include "daemon/attribute/stack_start.h"
#include "daemon/query/load_later.h"
#include "daemon/query/load_part.h"

#define TASK_SELECT                                                                                \
	"SELECT t.id, pid, tid, process, start_ns, comm, argv, path, uid, exe "                    \
	"FROM task t LEFT JOIN cgroup c ON c.id = t.cgroup"

/* Run `take` on the rows of marked entries. */
static int each_marked(
	struct loaded *l, const struct mark_table *m, const char *sql, bool pairs, load_take *take)
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	c.pairs = pairs;
	for (uint32_t id = 1; id <= m->n && r == 0; id++) {
		if (!m->mark[id])
			continue;
		r = cursor_bind(&c, id, 0);
		while (r == 0 && (r = cursor_next(&c)) == 0)
			r = take(l, &c);
		r = r == CURSOR_END ? 0 : r;
	}
	cursor_close(&c);
	return r;
}

/* Read all rows of a table, or only the marked ones, whichever is faster. `select` ends before its
 * WHERE clause; key is the id's column; rest is the remainder of the ORDER BY clause. */
struct load_table {
	const char *select, *key, *rest;
	bool pairs;
	load_take *take;
};
static int load_table(struct loaded *l, const struct load_table *t, const struct mark_table *m)
{
	char sql[512];
	if (m && m->n_marked < m->n / LOAD_POINT_COST) {
		snprintf(sql, sizeof(sql), "%s WHERE %s = ?1 ORDER BY %s%s", t->select, t->key,
			t->key, t->rest);
		return each_marked(l, m, sql, t->pairs, t->take);
	}
	snprintf(sql, sizeof(sql), "%s ORDER BY %s%s", t->select, t->key, t->rest);
	return load_each(l, sql, t->pairs, t->take);
}

uint32_t loaded_leader(const struct loaded *l, uint32_t hart, uint8_t rung)
{
	if (l->leaders && l->leaders->at[hart][rung] != LEADER_AS_HART)
		return l->leaders->at[hart][rung];
	return l->hart[hart].leader;
}

void loaded_event_classify(struct loaded_event *e)
{
	e->offcpu = e->type == EVENT_TYPE_OFFCPU;
	e->clock = e->offcpu || (e->type == PERF_TYPE_SOFTWARE &&
					(e->config == PERF_COUNT_SW_CPU_CLOCK ||
						e->config == PERF_COUNT_SW_TASK_CLOCK));
	if (e->type == PERF_TYPE_HARDWARE) {
		/* the upper half names the PMU on machines with unlike cores.
		 * Source: include/uapi/linux/perf_event.h, PERF_PMU_TYPE_SHIFT */
		e->cycles = (uint32_t)e->config == PERF_COUNT_HW_CPU_CYCLES;
		e->instructions = (uint32_t)e->config == PERF_COUNT_HW_INSTRUCTIONS;
	}
}

static int take_event(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, QUERY_EVENTS_MAX - 1);
	if (id == 0)
		return query_fail_damaged(l, "an event's id is out of bounds");
	struct loaded_event *e = &l->event[id];
	e->known = true;
	e->type = (uint32_t)cursor_integer(c, 1);
	e->config = (uint64_t)cursor_integer(c, 2);
	e->modifiers = (uint8_t)cursor_integer(c, 3);
	loaded_event_classify(e);
	return cursor_text(c, 4, &e->name);
}

static int take_hart(struct loaded *l, struct cursor *c)
{
	int64_t id = cursor_integer(c, 0);
	if (id < 0 || id >= HARTS_MAX)
		return 0;
	l->hart[id] = (struct loaded_hart){
		.core = l->hart[id].core,
		.known = true,
		.rung = (uint8_t)cursor_id(c, 1, RUNG_ASKED),
		.leader = cursor_id(c, 2, QUERY_EVENTS_MAX - 1),
		.user_only = cursor_integer(c, 3) != 0,
	};
	return 0;
}

/* Arguments joined by NUL become one line of text. */
static int take_argv(struct cursor *c, int column, uint32_t *ret_text)
{
	const void *blob = sqlite3_column_blob(c->statement, column);
	int n = sqlite3_column_bytes(c->statement, column);
	char line[TASK_ARGV_BYTES_MAX + 8];
	if (!blob || n <= 0)
		return 0;
	if ((size_t)n >= sizeof(line))
		n = sizeof(line) - 1;
	memcpy(line, blob, (size_t)n);
	while (n > 0 && line[n - 1] == '\0')
		n--;
	for (int i = 0; i < n; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	line[n] = '\0';
	return query_fail_full(c->loaded, text_get(c->loaded->texts, line, ret_text));
}

static int take_task(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_tasks);
	if (id == 0 || !is_marked(l, MARK_TASK, id))
		return 0;
	struct loaded_task *t = &l->task[id];
	uint32_t process = cursor_id(c, 3, l->n_tasks);
	t->known = true;
	t->pid = (int32_t)cursor_integer(c, 1);
	t->tid = (int32_t)cursor_integer(c, 2);
	t->process = process ? process : id;
	t->start_ns = cursor_integer(c, 4);
	if (sqlite3_column_type(c->statement, 8) != SQLITE_NULL)
		t->owner = (uint64_t)(uint32_t)cursor_integer(c, 8) + 1;
	int r = cursor_text(c, 5, &t->comm);
	if (r == 0)
		r = l->tier == TIER_HOUR ? cursor_text(c, 9, &t->argv) : take_argv(c, 6, &t->argv);
	if (r == 0)
		r = cursor_text(c, 7, &t->cgroup);
	return r;
}

static int take_file(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_files);
	if (id == 0 || !is_marked(l, MARK_FILE, id))
		return 0;
	struct loaded_file *f = &l->file[id];
	f->kind = (uint8_t)cursor_id(c, 1, FILE_UNKNOWN);
	if (l->hide_kernel && file_is_kernel((enum file_kind)f->kind)) {
		f->hidden = true;
		f->module = l->kernel_name;
		return 0;
	}
	f->state = (uint8_t)cursor_id(c, 4, FILE_OVERSIZE);
	f->has_debug = cursor_integer(c, 6) != 0;
	f->split_missing = cursor_integer(c, 6) == FILE_DEBUG_SPLIT_MISSING;
	const bool absent = file_is_absent(
		f->kind, (enum file_state)cursor_integer(c, 4), cursor_integer(c, 5) != 0);
	const char *path = (const char *)sqlite3_column_text(c->statement, 2);
	int r = text_get(l->texts, loaded_call_file(f->kind, path, absent), &f->module);
	return r ? query_fail_full(l, r) : cursor_text(c, 3, &f->build_id);
}

static int take_frame(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_frames);
	if (id == 0 || !is_marked(l, MARK_FRAME, id))
		return 0;
	l->frame[id].file = cursor_id(c, 1, l->n_files);
	l->frame[id].state = (uint8_t)cursor_id(c, 2, FRAME_PLACED);
	l->frame[id].offset = (uint64_t)cursor_integer(c, 3);
	mark(l, MARK_FILE, l->frame[id].file);
	return 0;
}

/* Functions and sources are ids here until their texts are known. */
static int take_place(struct loaded *l, struct cursor *c)
{
	uint32_t frame = cursor_id(c, 0, l->n_frames);
	if (frame == 0 || !is_marked(l, MARK_FRAME, frame))
		return 0;
	struct loaded_frame *f = &l->frame[frame];
	if (l->file[f->file].hidden)
		return 0;
	if (l->n_places >= QUERY_IDS_MAX)
		return query_fail_damaged(l, "it has too many places");
	int r = array_grow(&l->place, &l->size_places, l->n_places + 1, sizeof(*l->place));
	if (r < 0)
		return r;
	struct loaded_place *p = &l->place[l->n_places];
	p->line = cursor_id(c, 4, INT32_MAX);
	p->inlined = cursor_integer(c, 5) != 0;
	p->function = cursor_id(c, 2, l->n_functions);
	p->source = cursor_id(c, 3, l->n_sources);
	mark(l, MARK_FUNCTION, p->function);
	mark(l, MARK_SOURCE, p->source);
	if (f->n_places++ == 0)
		f->place = l->n_places;
	l->n_places++;
	return 0;
}

static int take_function(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_functions);
	if (id == 0 || !is_marked(l, MARK_FUNCTION, id))
		return 0;
	return cursor_text(c, 1, &l->function[id]);
}

static int take_source(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_sources);
	if (id == 0 || !is_marked(l, MARK_SOURCE, id))
		return 0;
	return cursor_text(c, 1, &l->source[id]);
}

static int take_stack(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_stacks);
	int64_t parent = cursor_integer(c, 1);
	if (id == 0)
		return 0;
	if (parent < 0 || parent >= id)
		return query_fail_damaged(l, "a stack comes before its caller");
	l->stack[id].parent = (uint32_t)parent;
	l->stack[id].frame = cursor_id(c, 2, l->n_frames);
	return 0;
}

static int take_window(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_windows);
	if (id == 0)
		return 0;
	l->window[id] = (struct loaded_window){
		.known = true,
		.start_ns = cursor_integer(c, 1),
		.end_ns = cursor_integer(c, 2),
		.realtime_ns = cursor_integer(c, 3),
	};
	return 0;
}

/* Add one function that represents all of the hidden kernel. */
static int add_kernel_places(struct loaded *l)
{
	uint32_t place = l->n_places;
	int r = array_grow(&l->place, &l->size_places, place + 1, sizeof(*l->place));
	if (r < 0)
		return r;
	l->place[l->n_places++] = (struct loaded_place){.function = l->kernel_name};
	for (uint32_t i = 1; i <= l->n_frames; i++)
		if (l->file[l->frame[i].file].hidden) {
			l->frame[i].place = place;
			l->frame[i].n_places = 1;
			l->frame[i].state = FRAME_NAMED;
		}
	return 0;
}

static int load_places(struct loaded *l)
{
	int r = load_array(l, "SELECT max(id) FROM function", &l->function, &l->n_functions,
		sizeof(*l->function));
	if (r == 0)
		r = load_array(l, "SELECT max(id) FROM source", &l->source, &l->n_sources,
			sizeof(*l->source));
	if (r == 0)
		r = marks_make(l, MARK_FUNCTION, l->n_functions);
	if (r == 0)
		r = marks_make(l, MARK_SOURCE, l->n_sources);
	if (r == 0)
		r = load_table(l,
			&(struct load_table){
				"SELECT frame, depth, function, source, line, inlined FROM place",
				"frame", ", depth", true, take_place},
			marks_of(l, MARK_FRAME));
	if (r == 0)
		r = load_table(l,
			&(struct load_table){
				"SELECT id, name FROM function", "id", "", false, take_function},
			marks_of(l, MARK_FUNCTION));
	if (r == 0)
		r = load_table(l,
			&(struct load_table){
				"SELECT id, path FROM source", "id", "", false, take_source},
			marks_of(l, MARK_SOURCE));
	for (uint32_t i = 0; i < l->n_places && r == 0; i++) {
		l->place[i].function = l->function[l->place[i].function];
		l->place[i].source = l->source[l->place[i].source];
	}
	return r;
}

/* Callers have lower ids, so one pass down marks all callers of marked stacks. */
static int load_marked_stacks(struct loaded *l, const struct mark_table *m)
{
	struct cursor c;
	int r = cursor_open(&c, l, "SELECT id, parent, frame FROM stack WHERE id = ?1");
	for (uint32_t id = l->n_stacks; id > 0 && r == 0; id--) {
		if (!m->mark[id])
			continue;
		r = cursor_bind(&c, id, 0);
		if (r == 0)
			r = cursor_next(&c);
		if (r == 0)
			r = take_stack(l, &c);
		if (r == 0)
			mark(l, MARK_STACK, l->stack[id].parent);
		r = r == CURSOR_END ? 0 : r;
	}
	cursor_close(&c);
	return r;
}

static int load_call_sites(struct loaded *l)
{
	const struct mark_table *m = marks_of(l, MARK_STACK);
	int r = load_array(
		l, "SELECT max(id) FROM frame", &l->frame, &l->n_frames, sizeof(*l->frame));
	if (r == 0)
		r = marks_make(l, MARK_FRAME, l->n_frames);
	if (r != 0)
		return r;
	/* estimate: a stack has some callers that no other stack has */
	if (m && m->n_marked < m->n / LOAD_POINT_COST / 2)
		r = load_marked_stacks(l, m);
	else
		r = load_each(
			l, "SELECT id, parent, frame FROM stack ORDER BY id", false, take_stack);
	for (uint32_t id = l->n_stacks; id > 0 && m && r == 0; id--)
		if (m->mark[id]) {
			mark(l, MARK_STACK, l->stack[id].parent);
			mark(l, MARK_FRAME, l->stack[id].frame);
		}
	return r;
}

static int load_stacks(struct loaded *l)
{
	int r = load_call_sites(l);
	if (r == 0)
		r = load_array(
			l, "SELECT max(id) FROM file", &l->file, &l->n_files, sizeof(*l->file));
	if (r == 0)
		r = marks_make(l, MARK_FILE, l->n_files);
	if (r == 0)
		r = load_table(l,
			&(struct load_table){"SELECT id, file, state, offset FROM frame", "id", "",
				false, take_frame},
			marks_of(l, MARK_FRAME));
	if (r == 0)
		r = load_table(l,
			&(struct load_table){"SELECT id, kind, path, lower(hex(build_id)), state, "
					     "has_symbols, has_debug FROM file",
				"id", "", false, take_file},
			marks_of(l, MARK_FILE));
	return r;
}

/* Load the processes of the marked threads: only a thread's row names its process. */
static int load_processes(struct loaded *l)
{
	const struct mark_table *m = marks_of(l, MARK_TASK);
	struct cursor c;
	if (!m)
		return load_labels(l);
	int r = cursor_open(&c, l, TASK_SELECT " WHERE t.id = ?1");
	for (uint32_t id = 1; id <= l->n_tasks && r == 0; id++) {
		uint32_t process = l->task[id].process;
		if (!l->task[id].known || l->task[process].known)
			continue;
		mark(l, MARK_TASK, process);
		r = cursor_bind(&c, process, 0);
		if (r == 0 && (r = cursor_next(&c)) == 0)
			r = take_task(l, &c);
		r = r == CURSOR_END ? 0 : r;
	}
	cursor_close(&c);
	return r == 0 ? load_labels(l) : r;
}

static int load_tasks(struct loaded *l, const struct load_wish *wish)
{
	int r = load_array(l, "SELECT max(id) FROM task", &l->task, &l->n_tasks, sizeof(*l->task));
	if (r == 0)
		r = load_array(
			l, "SELECT max(id) FROM stack", &l->stack, &l->n_stacks, sizeof(*l->stack));
	if (r == 0)
		r = marks_make(l, MARK_TASK, l->n_tasks);
	if (r == 0)
		r = marks_make(l, MARK_STACK, l->n_stacks);
	if (r == 0)
		r = load_part_mark(l, wish);
	if (r == 0)
		r = load_table(l, &(struct load_table){TASK_SELECT, "t.id", "", false, take_task},
			marks_of(l, MARK_TASK));
	return r == 0 ? load_processes(l) : r;
}

static int load_windows(struct loaded *l, const struct load_wish *wish)
{
	int r = load_array(
		l, "SELECT max(id) FROM window", &l->window, &l->n_windows, sizeof(*l->window));
	if (r == 0)
		r = load_each(l, "SELECT id, start_ns, end_ns, realtime_ns FROM window ORDER BY id",
			false, take_window);
	return r == 0 ? load_part_find(l, wish->filter) : r;
}

static int load_names(struct loaded *l)
{
	int r = query_fail_full(l, text_get(l->texts, "[unknown]", &l->unknown_name));
	if (r == 0)
		r = query_fail_full(l, text_get(l->texts, "[kernel_unlisted]", &l->unlisted_name));
	return r == 0 ? query_fail_full(l, text_get(l->texts, "[kernel]", &l->kernel_name)) : r;
}

/* Does a stack begin at this frame, as a caller of others or as the innermost frame? */
static struct starts {
	bool of_callees, innermost;
} starts_of(const struct loaded *l, uint32_t frame)
{
	const struct loaded_frame *f = &l->frame[frame];
	struct starts s = {false, false};
	for (uint32_t i = 0; i < f->n_places; i++) {
		const char *name = text_of(l->texts, l->place[f->place + i].function);
		s.of_callees |= stack_start_is_name(name, false);
		s.innermost |= stack_start_is_name(name, true);
	}
	return s;
}

/* Find the stacks that have a start, by the function's name. Callers have lower ids. */
static int find_whole(struct loaded *l)
{
	_cleanup_(freep) struct starts *starts = calloc((size_t)l->n_frames + 1, sizeof(*starts));
	/* by stack: the stack that it calls has a start */
	_cleanup_(freep) bool *reached = calloc((size_t)l->n_stacks + 1, sizeof(*reached));
	l->whole = calloc((size_t)l->n_stacks + 1, sizeof(*l->whole));
	if (!starts || !reached || !l->whole)
		return -ENOMEM;
	for (uint32_t i = 1; i <= l->n_frames; i++)
		starts[i] = starts_of(l, i);
	for (uint32_t i = 1; i <= l->n_stacks; i++) {
		const uint32_t parent = l->stack[i].parent, frame = l->stack[i].frame;
		if (file_is_kernel((enum file_kind)l->file[l->frame[frame].file].kind)) {
			l->whole[i] = l->whole[parent]; /* below the same user code */
			reached[i] = reached[parent];
			continue;
		}
		l->whole[i] = reached[parent] || starts[frame].innermost;
		reached[i] = reached[parent] || starts[frame].of_callees;
	}
	return 0;
}

static bool is_wakers(const struct loaded *l, uint32_t file)
{
	const char *path = text_of(l->texts, l->file[file].module);
	return l->file[file].kind == FILE_UNKNOWN && path && strcmp(path, WAKER_FILE) == 0;
}

/* Callers have lower ids. */
static int find_sleepers(struct loaded *l)
{
	uint32_t wakers = l->n_files;
	while (wakers > 0 && !is_wakers(l, wakers))
		wakers--;
	if (wakers == 0)
		return 0;
	l->sleeper = calloc((size_t)l->n_stacks + 1, sizeof(*l->sleeper));
	if (!l->sleeper)
		return -ENOMEM;
	for (uint32_t i = 1; i <= l->n_stacks; i++) {
		const uint32_t parent = l->stack[i].parent;
		const struct loaded_frame *frame = &l->frame[l->stack[i].frame];
		const bool is_above = parent != 0 && l->sleeper[parent] != parent;
		const bool separates = frame->file == wakers && frame->offset == WAKER_AT_SEPARATOR;
		l->sleeper[i] = is_above ? l->sleeper[parent] : separates ? parent : i;
	}
	return 0;
}

/* Callers have lower ids. */
static int find_split_missing(struct loaded *l)
{
	bool any = false;
	for (uint32_t i = 1; i <= l->n_files; i++)
		any |= l->file[i].split_missing;
	l->split_missing = any ? calloc((size_t)l->n_stacks + 1, sizeof(*l->split_missing)) : NULL;
	if (any && !l->split_missing)
		return -ENOMEM;
	for (uint32_t i = 1; i <= l->n_stacks && any; i++) {
		const uint32_t file = l->frame[l->stack[i].frame].file;
		l->split_missing[i] =
			l->file[file].split_missing ? file : l->split_missing[l->stack[i].parent];
	}
	return 0;
}

int load_segment(struct loaded *l, sqlite3 *db, struct text_table *texts,
	const struct load_wish *wish, struct query_error *ret_error)
{
	*l = (struct loaded){
		.db = db,
		.texts = texts,
		.error = ret_error,
		.since_ns = wish->since_ns,
		.until_ns = wish->until_ns,
		.pin = wish->pin,
		.hide_kernel = wish->filter && wish->filter->hide_kernel,
	};
	const char *path = sqlite3_db_filename(db, "main");
	l->path = path && *path ? path : "the recording";

	int r = load_names(l);
	if (r == 0)
		r = load_meta(l);
	if (r == 0)
		r = load_each(l, "SELECT id, type, config, modifiers, name FROM event ORDER BY id",
			false, take_event);
	if (r == 0)
		r = load_each(l, "SELECT id, rung, leader, user_only FROM hart ORDER BY id", false,
			take_hart);
	if (r == 0)
		r = load_windows(l, wish);
	if (r == 0)
		r = load_tasks(l, wish);
	if (r == 0)
		r = load_stacks(l);
	if (r == 0 && wish->places)
		r = load_places(l);
	if (r == 0 && wish->places && wish->filter)
		r = load_later(l, wish->filter->later);
	if (r == 0 && wish->places && l->hide_kernel)
		r = add_kernel_places(l);
	if (r == 0 && wish->places)
		r = load_code(l);
	if (r == 0 && wish->places)
		r = find_whole(l);
	if (r == 0)
		r = find_sleepers(l);
	return r == 0 && wish->places ? find_split_missing(l) : r;
}

void loaded_clear(struct loaded *l)
{
	free(l->task);
	free(l->file);
	free(l->frame);
	free(l->place);
	free(l->function);
	free(l->source);
	free(l->stack);
	free(l->whole);
	free(l->sleeper);
	free(l->split_missing);
	free(l->window);
	free(l->leaders);
	free(l->note);
	marks_clear(l);
	*l = (struct loaded){0};
}

const struct loaded_frame *loaded_leaf(const struct loaded *l, uint32_t stack)
{
	return &l->frame[stack <= l->n_stacks ? l->stack[loaded_sleeper(l, stack)].frame : 0];
}
