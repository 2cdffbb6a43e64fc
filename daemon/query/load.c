/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Dictionaries into arrays
 *
 * An id is an index: the writer numbers densely from 1, so a table becomes an array of its highest
 * id, and a sample finds its task, its stack and its names without a search. Memory that a sparse
 * table leaves untouched is never touched by us either (calloc).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/load.h"

/* Allocate an array for a table's ids. */
static int table_array(
	struct loaded *l, const char *sql, void *array, uint32_t *ret_n, size_t element_bytes)
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	if (r == 0)
		r = cursor_next(&c);
	int64_t n = r == 0 ? cursor_integer(&c, 0) : 0;
	cursor_close(&c);
	if (r != 0)
		return r;
	if (n < 0 || n > QUERY_IDS_MAX)
		return query_fail_damaged(l, "an id is out of bounds");
	void *p = calloc((size_t)n + 1, element_bytes);
	if (!p)
		return -ENOMEM;
	*(void **)array = p;
	*ret_n = (uint32_t)n;
	return 0;
}

/* Run `take` on each row of a statement. */
static int each(struct loaded *l, const char *sql, bool pairs,
	int (*take)(struct loaded *l, struct cursor *c))
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	c.pairs = pairs;
	while (r == 0) {
		r = cursor_next(&c);
		if (r == 0)
			r = take(l, &c);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

static int load_meta(struct loaded *l)
{
	struct cursor c;
	int r = cursor_open(&c, l, "SELECT 1, value FROM meta WHERE key = 'boot_id'");
	if (r == 0 && (r = cursor_next(&c)) == 0)
		r = cursor_text(&c, 1, &l->boot);
	cursor_close(&c);
	if (r != 0 && r != CURSOR_END)
		return r;
	r = cursor_open(&c, l, "SELECT 1, value FROM meta WHERE key = 'hz'");
	if (r == 0 && (r = cursor_next(&c)) == 0)
		l->hz = cursor_id(&c, 1, SAMPLER_HZ_MAX);
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

void loaded_event_classify(struct loaded_event *e)
{
	e->clock = e->type == PERF_TYPE_SOFTWARE &&
		   (e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK);
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
	if (id == 0)
		return 0;
	struct loaded_task *t = &l->task[id];
	uint32_t process = cursor_id(c, 3, l->n_tasks);
	t->known = true;
	t->pid = (int32_t)cursor_integer(c, 1);
	t->tid = (int32_t)cursor_integer(c, 2);
	t->process = process ? process : id;
	t->start_ns = cursor_integer(c, 4);
	int r = cursor_text(c, 5, &t->comm);
	if (r == 0)
		r = take_argv(c, 6, &t->argv);
	if (r == 0)
		r = cursor_text(c, 7, &t->cgroup);
	return r;
}

static int take_file(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_files);
	if (id == 0)
		return 0;
	struct loaded_file *f = &l->file[id];
	f->kind = (uint8_t)cursor_id(c, 1, FILE_UNKNOWN);
	const char *path = (const char *)sqlite3_column_text(c->statement, 2);
	if (f->kind == FILE_KERNEL)
		path = "[kernel]";
	else if (!path || !*path)
		path = f->kind == FILE_ANON ? "[anonymous]" : "[unknown]";
	return query_fail_full(l, text_get(l->texts, path, &f->module));
}

static int take_frame(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_frames);
	if (id == 0)
		return 0;
	l->frame[id].file = cursor_id(c, 1, l->n_files);
	l->frame[id].state = (uint8_t)cursor_id(c, 2, FRAME_UNNAMED);
	return 0;
}

static int take_place(struct loaded *l, struct cursor *c)
{
	uint32_t frame = cursor_id(c, 0, l->n_frames);
	if (frame == 0)
		return 0;
	if (l->n_places >= QUERY_IDS_MAX)
		return query_fail_damaged(l, "it has too many places");
	int r = array_grow(&l->place, &l->size_places, l->n_places + 1, sizeof(*l->place));
	if (r < 0)
		return r;
	struct loaded_place *p = &l->place[l->n_places];
	struct loaded_frame *f = &l->frame[frame];
	p->line = cursor_id(c, 4, INT32_MAX);
	p->inlined = cursor_integer(c, 5) != 0;
	p->function = l->function[cursor_id(c, 2, l->n_functions)];
	p->source = l->source[cursor_id(c, 3, l->n_sources)];
	if (f->n_places++ == 0)
		f->place = l->n_places;
	l->n_places++;
	return 0;
}

static int take_function(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_functions);
	return id == 0 ? 0 : cursor_text(c, 1, &l->function[id]);
}

static int take_source(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_sources);
	return id == 0 ? 0 : cursor_text(c, 1, &l->source[id]);
}

static int take_stack(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_stacks);
	int64_t parent = cursor_integer(c, 1);
	if (id == 0)
		return 0;
	if (parent < 0 || parent >= id)
		return query_fail_damaged(l, "a stack stands before its caller");
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

static int load_places(struct loaded *l)
{
	int r = table_array(l, "SELECT max(id) FROM function", &l->function, &l->n_functions,
		sizeof(*l->function));
	if (r == 0)
		r = table_array(l, "SELECT max(id) FROM source", &l->source, &l->n_sources,
			sizeof(*l->source));
	if (r == 0)
		r = each(l, "SELECT id, name FROM function ORDER BY id", false, take_function);
	if (r == 0)
		r = each(l, "SELECT id, path FROM source ORDER BY id", false, take_source);
	if (r == 0)
		r = each(l,
			"SELECT frame, depth, function, source, line, inlined FROM place "
			"ORDER BY frame, depth",
			true, take_place);
	return r;
}

static int load_stacks(struct loaded *l)
{
	int r = table_array(l, "SELECT max(id) FROM file", &l->file, &l->n_files, sizeof(*l->file));
	if (r == 0)
		r = table_array(
			l, "SELECT max(id) FROM frame", &l->frame, &l->n_frames, sizeof(*l->frame));
	if (r == 0)
		r = table_array(
			l, "SELECT max(id) FROM stack", &l->stack, &l->n_stacks, sizeof(*l->stack));
	if (r == 0)
		r = each(l, "SELECT id, kind, path FROM file ORDER BY id", false, take_file);
	if (r == 0)
		r = each(l, "SELECT id, file, state FROM frame ORDER BY id", false, take_frame);
	if (r == 0)
		r = each(l, "SELECT id, parent, frame FROM stack ORDER BY id", false, take_stack);
	return r;
}

static int load_tasks(struct loaded *l)
{
	int r = table_array(l, "SELECT max(id) FROM task", &l->task, &l->n_tasks, sizeof(*l->task));
	if (r == 0)
		r = each(l,
			"SELECT t.id, pid, tid, process, start_ns, comm, argv, path FROM task t "
			"LEFT JOIN cgroup c ON c.id = t.cgroup ORDER BY t.id",
			false, take_task);
	return r;
}

int load_segment(struct loaded *l, sqlite3 *db, struct text_table *texts, bool places,
	struct query_error *ret_error)
{
	*l = (struct loaded){.db = db, .texts = texts, .error = ret_error};
	const char *path = sqlite3_db_filename(db, "main");
	l->path = path && *path ? path : "the recording";

	int r = query_fail_full(l, text_get(texts, "[unknown]", &l->unknown_name));
	if (r == 0)
		r = load_meta(l);
	if (r == 0)
		r = each(l, "SELECT id, type, config, modifiers, name FROM event ORDER BY id",
			false, take_event);
	if (r == 0)
		r = each(l, "SELECT id, rung, leader, user_only FROM hart ORDER BY id", false,
			take_hart);
	if (r == 0)
		r = load_tasks(l);
	if (r == 0)
		r = table_array(l, "SELECT max(id) FROM window", &l->window, &l->n_windows,
			sizeof(*l->window));
	if (r == 0)
		r = each(l, "SELECT id, start_ns, end_ns, realtime_ns FROM window ORDER BY id",
			false, take_window);
	if (r == 0)
		r = load_stacks(l);
	if (r == 0 && places)
		r = load_places(l);
	return r;
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
	free(l->window);
	*l = (struct loaded){0};
}

const struct loaded_frame *loaded_leaf(const struct loaded *l, uint32_t stack)
{
	return &l->frame[stack <= l->n_stacks ? l->stack[stack].frame : 0];
}

uint32_t loaded_module(const struct loaded *l, const struct loaded_frame *frame)
{
	uint32_t module = l->file[frame->file].module;
	return module ? module : l->unknown_name;
}
