/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* See stored.h. Everything that fails here is the test's own mistake and ends it. */

#include <check.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/stored.h"

void stored_folder(struct stored *s)
{
	*s = (struct stored){.realtime_ns = 1000000000000000000u};
	snprintf(s->folder, sizeof(s->folder), "/tmp/stored.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(s->folder));
	snprintf(s->path, sizeof(s->path), "%s/segment", s->folder);
	s->sampler.machine.n_harts = STORED_HARTS;
	s->sampler.plan = calloc(STORED_HARTS, sizeof(*s->sampler.plan));
	ck_assert_ptr_nonnull(s->sampler.plan);
	s->sampler.hz = 99;
}

int stored_event(struct stored *s, uint32_t type, uint64_t config, const char *name)
{
	struct event_list *l = &s->sampler.events;
	struct event *e = &l->event[l->n_events];
	*e = (struct event){.type = type, .config = config, .group = -1};
	snprintf(e->name, sizeof(e->name), "%s", name);
	snprintf(e->pmu, sizeof(e->pmu), "%s",
		type == PERF_TYPE_HARDWARE   ? "hardware"
		: type == PERF_TYPE_SOFTWARE ? "software"
					     : "raw");
	return l->n_events++;
}

void stored_begin(struct stored *s)
{
	for (int i = 0; i < STORED_HARTS; i++) {
		struct plan *p = &s->sampler.plan[i];
		hart_set_add(&s->sampler.machine.online, i);
		if (p->rung == RUNG_NONE && !p->reason[0]) {
			p->rung = s->sampler.events.n_events > 1 ? RUNG_CLOCK_LEADER : RUNG_CLOCK;
			p->leader = s->sampler.events.event[0];
		}
	}
	struct segment_meta meta = {
		.boot_id = STORED_BOOT,
		.realtime_ns = s->realtime_ns,
		.host = "bench",
		.release = "6.12.0",
		.arch = "riscv64",
		.hz = 99,
		.command = "sleep 1",
		.all = true,
	};
	ck_assert_int_eq(segment_create(s->path, &meta, &s->sampler, &s->segment), 0);
}

void stored_uncut(struct stored *s, int hart)
{
	s->sampler.plan[hart].cut = CUT_COUNT;
}

void stored_begin_clock(struct stored *s)
{
	stored_folder(s);
	stored_event(s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_begin(s);
}

void stored_begin_group(struct stored *s)
{
	stored_folder(s);
	stored_event(s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions");
	stored_begin(s);
}

struct task *stored_task(struct stored *s, pid_t pid, pid_t tid, const char *comm)
{
	struct task *task, *process = tid == pid ? NULL : task_find(&s->tasks, pid);
	ck_assert_int_eq(task_add(&s->tasks, pid, tid, (uint64_t)tid * 1000, &task), 0);
	task->process = process ? process : task;
	task_set_comm(task, comm);
	return task;
}

void stored_label(struct stored *s, struct task *process, const char *json)
{
	struct label_set *set;
	ck_assert_int_eq(label_set_get(&s->tasks.label_sets, process->uid, json, &set), 0);
	task_set_labels(&s->tasks, process, set);
}

struct frame *stored_frame(struct stored *s, enum file_kind kind, const char *path, uint64_t offset)
{
	struct file_key key = {.kind = kind, .path = path, .inode = 7, .major = 8, .minor = 1};
	struct file *file;
	struct frame *frame;
	ck_assert_int_eq(file_get(&s->files, &key, &file), 0);
	ck_assert_int_eq(frame_get(&s->files, file, offset, &frame), 0);
	return frame;
}

/* Names live as long as the test, which is short. */
static const char *keep(const char *text, size_t n)
{
	static char pool[65536];
	static size_t used;
	ck_assert_uint_lt(used + n + 1, sizeof(pool));
	char *p = pool + used;
	memcpy(p, text, n);
	p[n] = '\0';
	used += n + 1;
	return p;
}

void stored_name(struct frame *frame, ...)
{
	va_list args;
	va_start(args, frame);
	frame->place = calloc(8, sizeof(*frame->place));
	ck_assert_ptr_nonnull(frame->place);
	for (const char *name; (name = va_arg(args, const char *)); frame->n_places++) {
		struct place *p = &frame->place[frame->n_places];
		const char *at = strchr(name, '@');
		p->function = name;
		if (!at)
			continue;
		p->function = at == name ? NULL : keep(name, (size_t)(at - name));
		const char *colon = strchr(at, ':');
		p->source = keep(at + 1, (size_t)(colon - at - 1));
		p->line = (uint32_t)atoi(colon + 1);
	}
	va_end(args);
	for (uint32_t i = 0; i + 1 < frame->n_places; i++)
		frame->place[i].inlined = true;
	frame->state = FRAME_NAMED;
}

struct frame *stored_function(struct stored *s, const char *path, const char *function)
{
	struct frame *frame = stored_frame(s, FILE_ELF, path, 0x1000 + 16 * s->files.n_frames);
	stored_name(frame, function, NULL);
	return frame;
}

void stored_add(struct stored *s, const struct stored_sample *sample)
{
	struct attribution a = {
		.task = sample->task,
		.hart = sample->hart,
		.event = sample->event,
		.rung = s->sampler.plan[sample->hart].rung,
		.count = sample->switched ? 0
			 : sample->count  ? sample->count
					  : 1,
		.weight_ns = sample->switched    ? 0
			     : sample->weight_ns ? sample->weight_ns
						 : 10000000,
		.time_ns = sample->time_ns,
		.uncounted = sample->uncounted,
		.period = sample->period,
		.frame = (struct frame **)sample->frame,
		.truncated = sample->truncated,
		.n_reads = sample->n_reads,
	};
	while (a.n_frames < 8 && sample->frame[a.n_frames])
		a.n_frames++;
	for (uint32_t i = 0; i < sample->n_reads; i++) {
		a.read[i].event = sample->read[i].event;
		a.read[i].value = sample->read[i].value;
		a.read[i].enabled_ns = sample->read[i].enabled_ns;
		a.read[i].running_ns = sample->read[i].running_ns;
	}
	ck_assert_int_eq(window_add(&s->window, &s->stacks, &a), 0);
}

struct segment_flush stored_view(struct stored *s)
{
	return (struct segment_flush){
		.window = &s->window,
		.stacks = &s->stacks,
		.tasks = &s->tasks,
		.files = &s->files,
		.lost = s->lost,
		.n_harts = STORED_HARTS,
		.realtime_ns = s->realtime_ns + s->window.start_ns,
		.cut = sampler_cut(&s->sampler),
	};
}

int stored_flush(struct stored *s, uint64_t start_ns, uint64_t end_ns)
{
	s->window.start_ns = start_ns;
	s->window.end_ns = end_ns;
	struct segment_flush view = stored_view(s);
	int r = segment_flush(s->segment, &view);
	if (r == 0)
		window_clear(&s->window);
	return r;
}

sqlite3 *stored_seal(struct stored *s)
{
	struct segment_error error = {"", ""};
	if (s->window.n_rows > 0)
		ck_assert_int_eq(stored_flush(s, 0, 1000000000), 0);
	struct segment_flush view = stored_view(s);
	ck_assert_int_eq(segment_update(s->segment, &view), 0);
	ck_assert_int_eq(segment_seal(s->segment, 2000000000), 0);
	s->segment = NULL;
	int r = segment_open(s->path, &s->db, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	return s->db;
}

struct task *stored_program(struct stored *s)
{
	struct task *t = stored_task(s, 100, 100, "prog");
	struct frame *hot = stored_function(s, "/bin/prog", "hot");
	struct frame *root = stored_function(s, "/bin/prog", "main");
	struct frame *kernel = stored_frame(s, FILE_KERNEL, "[kernel]", 64);
	stored_name(kernel, "do_fault", NULL);
	stored_add(s, &(struct stored_sample){
			      .task = t, .count = 6, .weight_ns = 60, .frame = {hot, root}});
	stored_add(s,
		&(struct stored_sample){.task = t, .count = 3, .weight_ns = 30, .frame = {root}});
	stored_add(
		s, &(struct stored_sample){
			   .task = t, .count = 1, .weight_ns = 10, .frame = {kernel, hot, root}});
	return t;
}

void stored_tasks(struct stored *s)
{
	stored_begin_clock(s);
	struct task *p = stored_task(s, 100, 100, "prog");
	struct task *worker = stored_task(s, 100, 101, "worker");
	struct task *q = stored_task(s, 200, 200, "quux");
	p->argv = malloc(8);
	memcpy(p->argv, "prog\0-x", 8);
	p->n_argv = 8;
	p->cgroup = worker->cgroup = 7;
	q->cgroup = 8;
	ck_assert_int_eq(cgroup_set(&s->tasks, 7, "/ci/job-1", 0), 0);
	ck_assert_int_eq(cgroup_set(&s->tasks, 8, "/cinema", 0), 0);
	struct frame *f = stored_function(s, "/bin/prog", "f");
	stored_add(s, &(struct stored_sample){.task = p, .weight_ns = 10, .frame = {f}});
	stored_add(s,
		&(struct stored_sample){.task = worker, .hart = 1, .weight_ns = 50, .frame = {f}});
	stored_add(s, &(struct stored_sample){.task = q, .hart = 2, .weight_ns = 40, .frame = {f}});
	stored_seal(s);
}

void stored_end(struct stored *s)
{
	sqlite3_close(s->db);
	if (s->segment)
		segment_abandon(s->segment, true);
	window_clear(&s->window);
	stack_tree_clear(&s->stacks);
	file_table_clear(&s->files);
	task_table_clear(&s->tasks);
	free(s->sampler.plan);
	DIR *d = opendir(s->folder);
	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(s->folder);
}

const char *stored_string(sqlite3 *db, const char *sql)
{
	static char text[512];
	sqlite3_stmt *st = NULL;
	ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
		sqlite3_errmsg(db));
	*text = '\0';
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return text;
}

int64_t stored_number(sqlite3 *db, const char *sql)
{
	const char *text = stored_string(db, sql);
	return *text ? atoll(text) : -1;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	struct stored_answer *a = u;
	ck_assert_uint_le(n, STORED_COLUMNS_MAX);
	a->n_columns = n;
	for (size_t i = 0; i < n; i++) {
		snprintf(a->column[i], sizeof(a->column[i]), "%s", c[i].name);
		ck_assert_ptr_nonnull(c[i].title);
		a->unit[i] = c[i].unit;
	}
	return 0;
}

static int take_row(void *u, const struct answer_value *v, size_t n)
{
	struct stored_answer *a = u;
	ck_assert_uint_eq(n, a->n_columns);
	ck_assert_uint_lt(a->n_rows, STORED_ROWS_MAX);
	for (size_t i = 0; i < n; i++) {
		__auto_type cell = &a->cell[a->n_rows][i];
		cell->kind = v[i].kind;
		if (v[i].kind == ANSWER_TEXT)
			snprintf(cell->text, sizeof(cell->text), "%s", v[i].text);
		else if (v[i].kind == ANSWER_INTEGER) {
			cell->real = (double)v[i].integer;
			snprintf(cell->text, sizeof(cell->text), "%lld", (long long)v[i].integer);
		} else if (v[i].kind == ANSWER_REAL)
			cell->real = v[i].real;
	}
	a->n_rows++;
	return a->stop_after && a->n_rows >= a->stop_after ? 77 : 0;
}

static int take_provenance(void *u, const struct answer_provenance *p)
{
	struct stored_answer *a = u;
	a->n_told++;
	snprintf(a->event, sizeof(a->event), "%s", p->event);
	snprintf(a->rung, sizeof(a->rung), "%s", p->rung);
	snprintf(a->switches, sizeof(a->switches), "%s", p->switches);
	a->hz = p->hz;
	a->samples = p->samples;
	a->period = p->period;
	a->named_share = p->named_share;
	a->placed_share = p->placed_share;
	a->coming_share = p->coming_share;
	a->seconds = p->seconds;
	a->cost_share = p->cost_share;
	a->wall = p->wall ? *p->wall : (struct answer_wall){0};
	a->uncounted_share = p->uncounted_share;
	a->n_notes = p->n_notes;
	a->n_losses = p->n_losses;
	for (uint32_t i = 0; i < p->n_notes; i++)
		snprintf(a->note[i], sizeof(a->note[i]), "%s", p->note[i]);
	for (uint32_t i = 0; i < p->n_losses; i++) {
		snprintf(a->loss[i].cause, sizeof(a->loss[i].cause), "%s", p->loss[i].cause);
		a->loss[i].count = p->loss[i].count;
	}
	return 0;
}

struct answer stored_answer(struct stored_answer *a)
{
	return (struct answer){take_columns, take_row, take_provenance, a};
}

int stored_hotspots(
	sqlite3 *db, const char *by, const struct query_filter *filter, struct stored_answer *a)
{
	struct answer answer = stored_answer(a);
	int i = query_by_parse(by);
	ck_assert_int_ge(i, 0);
	const struct query_question question = {
		.by = (enum query_by)i, .filter = filter ? filter : &(struct query_filter){0}};
	return query_hotspots(&(struct query_source){.db = db}, 1, &question, &answer, &a->error);
}

int stored_flamegraph(sqlite3 *db, const struct query_filter *filter, struct stored_answer *a)
{
	struct answer answer = stored_answer(a);
	return query_flamegraph(&(struct query_source){.db = db}, 1,
		filter ? filter : &(struct query_filter){0}, &answer, &a->error);
}

size_t stored_row(const struct stored_answer *a, const char *first)
{
	for (size_t i = 0; i < a->n_rows; i++)
		if (strcmp(a->cell[i][0].text, first) == 0)
			return i;
	ck_abort_msg("no row %s", first);
}

int stored_column(const struct stored_answer *a, const char *name)
{
	for (size_t i = 0; i < a->n_columns; i++)
		if (strcmp(a->column[i], name) == 0)
			return (int)i;
	return -1;
}

static int column_of(const struct stored_answer *a, size_t row, const char *name)
{
	int i = stored_column(a, name);
	ck_assert_msg(i >= 0, "no column %s", name);
	ck_assert_uint_lt(row, a->n_rows);
	return i;
}

double stored_real(const struct stored_answer *a, size_t row, const char *column)
{
	int i = column_of(a, row, column);
	ck_assert_int_ne(a->cell[row][i].kind, ANSWER_ABSENT);
	return a->cell[row][i].real;
}

const char *stored_text(const struct stored_answer *a, size_t row, const char *column)
{
	return a->cell[row][column_of(a, row, column)].text;
}

bool stored_absent(const struct stored_answer *a, size_t row, const char *column)
{
	return a->cell[row][column_of(a, row, column)].kind == ANSWER_ABSENT;
}

static size_t fold_path(const struct stored_answer *a, size_t row, char *text, size_t size)
{
	size_t n = 0, parent = (size_t)stored_real(a, row, "parent");
	ck_assert_uint_le(parent, row); /* parents come first, and are numbered as they come */
	if (parent > 0) {
		n = fold_path(a, parent - 1, text, size);
		n += (size_t)snprintf(text + n, size - n, ";");
	}
	return n + (size_t)snprintf(text + n, size - n, "%s", stored_text(a, row, "function"));
}

const char *stored_folded(const struct stored_answer *a)
{
	static char text[8192];
	size_t n = 0;
	*text = '\0';
	for (size_t i = 0; i < a->n_rows; i++) {
		ck_assert_uint_eq((size_t)stored_real(a, i, "node"), i + 1);
		if (stored_real(a, i, "value") == 0)
			continue;
		n += fold_path(a, i, text + n, sizeof(text) - n);
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, " %.0f\n", stored_real(a, i, "value"));
	}
	return text;
}
