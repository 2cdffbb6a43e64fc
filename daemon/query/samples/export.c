/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Entries get their numbers when a sample first needs them
 *
 * An id of a segment becomes a key of its content, the key a number; per segment an array remembers
 * the number by id, so a row costs a few look-ups. A stack is numbered from its outermost caller
 * inwards. Samples that were sent cannot be taken back: if a file turns out to be damaged after
 * some of its samples were sent, the whole export fails.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/export_part.h"
#include "daemon/query/sources.h"

/* Samples of one window that are put in the order of their times together; of more, as many at a time. */
#define WAITING_MAX (1u << 20)

struct moment_sample {
	uint32_t id[N_SAMPLE_IDS];
	uint64_t value[N_SAMPLE_VALUES];
};

struct export
{
	const struct query_filter *filter;
	struct text_table texts;
	uint32_t *text_number; /* by text; 0: not sent */
	uint32_t n_text_numbers, n_texts_sent;
	/* numbers are indices + 1 */
	struct key_table modules; /* path, build id (texts), kind */
	struct key_table places;  /* the rest outwards, function, source, line */
	struct key_table frames;  /* module, offset, places */
	struct key_table stacks;  /* caller, frame (numbers) */
	struct key_table tasks;   /* pid and tid, start, names, cgroup */
	uint32_t n_windows;
	/* samples of the window under way whose moments are known */
	struct moment_sample *waiting;
	uint32_t n_waiting, size_waiting;
	struct export_part part;
	struct provenance provenance, kept;
	uint64_t kept_sent;
	bool abandoned; /* samples were sent of a file that is damaged: */
	struct query_error abandoned_by;

	/* numbers by id of the current segment; 0: not known yet */
	struct loaded loaded;
	uint32_t *frame, *stack, *task, *window;
	uint32_t *path, size_path; /* of the stack that is being numbered, leaf first */
};

static int text_number(struct export *e, uint32_t text, uint32_t *ret_number)
{
	if (text == 0) {
		*ret_number = 0;
		return 0;
	}
	int r = array_grow(&e->text_number, &e->n_text_numbers, text + 1, sizeof(*e->text_number));
	if (r == 0 && e->text_number[text] == 0) {
		r = export_part_text(&e->part, text);
		if (r == 0)
			e->text_number[text] = ++e->n_texts_sent;
	}
	if (r == 0)
		*ret_number = e->text_number[text];
	return r;
}

/* The number of a key, and whether it is new. */
static int key_number(struct export *e, struct key_table *t, const struct key *key,
	uint32_t *ret_number, bool *ret_is_new)
{
	uint32_t n = t->n_keys, index;
	int r = key_get(t, key, &index);
	if (r != 0)
		return query_fail_full(&e->loaded, r);
	*ret_is_new = t->n_keys > n;
	*ret_number = index + 1;
	return 0;
}

static int module_number(struct export *e, const struct loaded_frame *frame, uint32_t *ret_number)
{
	const struct loaded_file *file = &e->loaded.file[frame->file];
	const uint32_t path = loaded_module(&e->loaded, frame);
	const uint32_t kind = file->hidden ? FILE_KERNEL : file->kind;
	const struct key key = {{path, file->build_id, kind}};
	bool is_new = false;
	int r = key_number(e, &e->modules, &key, ret_number, &is_new);
	if (r != 0 || !is_new)
		return r;
	Mperf__ProfileModule m = MPERF__PROFILE_MODULE__INIT;
	r = text_number(e, path, &m.path);
	if (r == 0 && file->build_id && *text_of(&e->texts, file->build_id))
		r = text_number(e, file->build_id, &m.build_id);
	m.kind = kind;
	return r == 0 ? export_part_module(&e->part, &m) : r;
}

static uint32_t n_places_of(const struct loaded_frame *frame)
{
	return frame->n_places < EXPORT_PLACES_MAX ? frame->n_places : EXPORT_PLACES_MAX;
}

static int send_frame(struct export *e, const struct loaded_frame *frame, uint32_t module)
{
	uint32_t function[EXPORT_PLACES_MAX], source[EXPORT_PLACES_MAX], line[EXPORT_PLACES_MAX];
	const struct loaded *l = &e->loaded;
	Mperf__ProfileFrame m = MPERF__PROFILE_FRAME__INIT;
	int r = 0;
	m.module = module;
	m.offset = l->file[frame->file].hidden ? 0 : frame->offset;
	m.function = function, m.source = source, m.line = line;
	m.n_function = m.n_source = m.n_line = n_places_of(frame);
	for (uint32_t i = 0; i < m.n_function && r == 0; i++) {
		const struct loaded_place *p = &l->place[frame->place + i];
		line[i] = p->line;
		r = text_number(e, p->function, &function[i]);
		if (r == 0)
			r = text_number(e, p->source, &source[i]);
	}
	return r == 0 ? export_part_frame(&e->part, &m) : r;
}

static int frame_number(struct export *e, uint32_t id, uint32_t *ret_number)
{
	const struct loaded *l = &e->loaded;
	const struct loaded_frame *frame = &l->frame[id];
	struct key key = {{0}};
	uint32_t module = 0, places = 0;
	bool is_new = false;
	if (e->frame[id] != 0) {
		*ret_number = e->frame[id];
		return 0;
	}
	int r = module_number(e, frame, &module);
	for (uint32_t i = n_places_of(frame); i > 0 && r == 0; i--) {
		const struct loaded_place *p = &l->place[frame->place + i - 1];
		key = (struct key){{places, p->function, p->source, p->line}};
		r = key_number(e, &e->places, &key, &places, &is_new);
	}
	key = (struct key){{module, l->file[frame->file].hidden ? 0 : frame->offset, places}};
	if (r == 0)
		r = key_number(e, &e->frames, &key, ret_number, &is_new);
	if (r == 0 && is_new)
		r = send_frame(e, frame, module);
	if (r == 0)
		e->frame[id] = *ret_number;
	return r;
}

/* A stack whose caller has this number. The depth of a hidden kernel is hidden too. */
static int step_down(struct export *e, uint32_t id, uint32_t caller, uint32_t *ret_number)
{
	const struct loaded *l = &e->loaded;
	const uint32_t frame_id = l->stack[id].frame;
	uint32_t frame = 0;
	bool is_new = false;
	int r = frame_number(e, frame_id, &frame);
	if (r != 0)
		return r;
	if (l->file[l->frame[frame_id].file].hidden && caller != 0 &&
		e->stacks.key[caller - 1].part[1] == frame) {
		*ret_number = caller;
		return 0;
	}
	r = key_number(e, &e->stacks, &(struct key){{caller, frame}}, ret_number, &is_new);
	return r == 0 && is_new ? export_part_stack(&e->part, caller, frame) : r;
}

static int stack_number(struct export *e, uint32_t id, uint32_t *ret_number)
{
	uint32_t n = 0, number;
	int r = 0;
	for (; id != 0 && e->stack[id] == 0 && r == 0; id = e->loaded.stack[id].parent) {
		r = array_grow(&e->path, &e->size_path, n + 1, sizeof(*e->path));
		if (r == 0)
			e->path[n++] = id;
	}
	number = id != 0 ? e->stack[id] : 0;
	while (n > 0 && r == 0) {
		id = e->path[--n];
		r = step_down(e, id, number, &number);
		if (r == 0)
			e->stack[id] = number;
	}
	*ret_number = number;
	return r;
}

static int task_number(struct export *e, uint32_t id, uint32_t *ret_number)
{
	const struct loaded_task *t = &e->loaded.task[id];
	const struct loaded_task *process = &e->loaded.task[t->process];
	const uint32_t name = process->known ? process->comm : t->comm;
	const struct key key = {{(uint64_t)(uint32_t)t->pid << 32 | (uint32_t)t->tid,
		(uint64_t)t->start_ns, (uint64_t)t->comm << 32 | name, t->cgroup}};
	bool is_new = false;
	if (e->task[id] != 0) {
		*ret_number = e->task[id];
		return 0;
	}
	int r = key_number(e, &e->tasks, &key, ret_number, &is_new);
	if (r == 0 && is_new) {
		Mperf__ProfileTask m = MPERF__PROFILE_TASK__INIT;
		m.pid = t->pid;
		m.tid = t->tid;
		r = text_number(e, t->comm, &m.comm);
		if (r == 0)
			r = text_number(e, name, &m.process);
		if (r == 0)
			r = text_number(e, t->cgroup, &m.cgroup);
		if (r == 0)
			r = export_part_task(&e->part, &m);
	}
	if (r == 0)
		e->task[id] = *ret_number;
	return r;
}

static int window_number(struct export *e, uint32_t id, uint32_t *ret_number)
{
	const struct loaded_window *w = &e->loaded.window[id];
	int r = 0;
	if (e->window[id] == 0) {
		Mperf__ProfileWindow m = MPERF__PROFILE_WINDOW__INIT;
		m.realtime_ns = w->realtime_ns;
		m.start_ns = w->start_ns;
		m.end_ns = w->end_ns;
		r = export_part_window(&e->part, &m);
		if (r == 0)
			e->window[id] = ++e->n_windows;
	}
	*ret_number = e->window[id];
	return r;
}

/* A count, or that it was not counted. */
static uint64_t count_or_none(double value)
{
	return value < 0 ? 0 : (uint64_t)integer_of(value) + 1;
}

static int compare_moments(const void *a, const void *b)
{
	const struct moment_sample *x = a, *y = b;
	return (x->id[SAMPLE_AT] > y->id[SAMPLE_AT]) - (x->id[SAMPLE_AT] < y->id[SAMPLE_AT]);
}

static int send_waiting(struct export *e)
{
	int r = 0;
	if (e->n_waiting > 0)
		qsort(e->waiting, e->n_waiting, sizeof(*e->waiting), compare_moments);
	for (uint32_t i = 0; i < e->n_waiting && r == 0; i++)
		r = export_part_sample(&e->part, e->waiting[i].id, e->waiting[i].value);
	e->n_waiting = 0;
	return r;
}

/* The i-th of n equal parts of a whole number. */
static uint64_t share_of(uint64_t value, uint64_t n, uint64_t i)
{
	return value / n + (i < value % n);
}

/* The samples of a row, each with its time and its part of the values. */
static int add_samples(struct export *e, const struct scan_row *row,
	const uint32_t id[N_SAMPLE_IDS], const uint64_t value[N_SAMPLE_VALUES])
{
	int r = 0;
	for (uint64_t i = 0; i < row->count && r == 0; i++) {
		if (e->n_waiting == WAITING_MAX)
			r = send_waiting(e);
		if (r == 0)
			r = array_grow(&e->waiting, &e->size_waiting, e->n_waiting + 1,
				sizeof(*e->waiting));
		if (r != 0)
			break;
		struct moment_sample *s = &e->waiting[e->n_waiting++];
		memcpy(s->id, id, sizeof(s->id));
		const uint32_t at = row->at[2 * i] + row->at[2 * i + 1] * 256u;
		s->id[SAMPLE_AT] = at ? at + 1 : 0;
		for (int k = 0; k < N_SAMPLE_VALUES; k++)
			s->value[k] = share_of(value[k], row->count, i);
		/* these are one more than the count; 0: not counted */
		for (int k = SAMPLE_CYCLES; k <= SAMPLE_INSTRUCTIONS; k++)
			s->value[k] = value[k] ? share_of(value[k] - 1, row->count, i) + 1 : 0;
	}
	return r;
}

static int take_row(void *userdata, const struct scan_row *row)
{
	struct export *e = userdata;
	uint32_t id[N_SAMPLE_IDS] = {0};
	provenance_row(&e->provenance, &e->loaded, row);
	/* counts delivered by a switch have neither samples nor time, but belong to the sums */
	if (row->value <= 0 && row->count == 0 && row->cycles <= 0 && row->instructions <= 0)
		return 0;
	int r = window_number(e, row->window, &id[SAMPLE_WINDOW]);
	if (r == 0 && e->n_waiting > 0 && e->waiting[0].id[SAMPLE_WINDOW] != id[SAMPLE_WINDOW])
		r = send_waiting(e);
	if (r == 0 && row->task != 0)
		r = task_number(e, row->task, &id[SAMPLE_TASK]);
	if (r == 0)
		r = stack_number(e, row->stack, &id[SAMPLE_STACK]);
	if (r == 0)
		r = text_number(e, e->loaded.event[row->event].name, &id[SAMPLE_EVENT]);
	if (r != 0)
		return r;
	id[SAMPLE_HART] = row->hart == HART_UNKNOWN ? 0 : row->hart + 1;
	const uint64_t value[N_SAMPLE_VALUES] = {
		[SAMPLE_COUNT] = row->count,
		[SAMPLE_NS] = row->weight_ns,
		[SAMPLE_VALUE] = (uint64_t)integer_of(row->value),
		[SAMPLE_CYCLES] = count_or_none(row->cycles),
		[SAMPLE_INSTRUCTIONS] = count_or_none(row->instructions),
	};
	return row->at && row->count > 0 ? add_samples(e, row, id, value)
					 : export_part_sample(&e->part, id, value);
}

/* --- segments --------------------------------------------------------------------------------- */

static int make_arrays(struct export *e)
{
	const struct loaded *l = &e->loaded;
	e->frame = calloc((size_t)l->n_frames + 1, sizeof(*e->frame));
	e->stack = calloc((size_t)l->n_stacks + 1, sizeof(*e->stack));
	e->task = calloc((size_t)l->n_tasks + 1, sizeof(*e->task));
	e->window = calloc((size_t)l->n_windows + 1, sizeof(*e->window));
	return e->frame && e->stack && e->task && e->window ? 0 : -ENOMEM;
}

static void forget_arrays(struct export *e)
{
	free(e->frame);
	free(e->stack);
	free(e->task);
	free(e->window);
	e->frame = e->stack = e->task = e->window = NULL;
}

static void find_unit(struct export *e, const struct row_filter *filter)
{
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++)
		if (filter->event[i] && !e->loaded.event[i].clock)
			e->part.unit = MPERF__UNIT__UNIT_COUNT;
}

static int add_segment(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	struct export *e = query;
	struct row_filter filter = {0};
	struct scan_notes notes = {0};
	const struct load_wish wish = {
		.places = true,
		.filter = e->filter,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	if (e->abandoned)
		return 0;
	int r = load_segment(&e->loaded, db, &e->texts, &wish, ret_error);
	if (r == 0)
		r = filter_make(&filter, &e->loaded, e->filter);
	if (r == 0)
		r = make_arrays(e);
	filter.tells_windows = filter.tells_moments = true;
	if (r == 0) {
		find_unit(e, &filter);
		r = scan_samples(&e->loaded, &filter, &notes, take_row, e);
	}
	if (r == 0)
		r = send_waiting(e);
	e->n_waiting = 0;
	if (r == 0)
		r = provenance_segment(&e->provenance, &e->loaded, &filter, &notes);
	if (r == QUERY_FAILED && e->part.n_sent > e->kept_sent) {
		e->abandoned = true;
		e->abandoned_by = *ret_error;
	}
	filter_clear(&filter);
	loaded_clear(&e->loaded);
	forget_arrays(e);
	return r;
}

/* Send the samples of the previous file, so that all samples not sent yet are of this one. */
static int keep(void *query)
{
	struct export *e = query;
	int r = export_part_send(&e->part);
	e->kept = e->provenance;
	e->kept_sent = e->part.n_sent;
	return r;
}

/* Dictionary entries stay: unused ones are harmless. */
static void take_back(void *query)
{
	struct export *e = query;
	e->part.n_samples = 0;
	e->provenance = e->kept;
}

static int finish(struct export *e, struct query_error *ret_error)
{
	const struct answer to = {
		.provenance = e->part.answer->provenance,
		.userdata = e->part.answer->userdata,
	};
	if (e->abandoned) {
		*ret_error = e->abandoned_by;
		return QUERY_FAILED;
	}
	int r = export_part_send(&e->part);
	return r == 0 ? provenance_tell(&e->provenance, &e->texts, &to) : r;
}

int query_export(struct query_source *source, size_t n_sources, const struct query_filter *filter,
	const struct export_answer *answer, struct query_error *ret_error)
{
	struct export *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->filter = filter;
	e->part.answer = answer;
	e->part.texts = &e->texts;
	e->part.unit = MPERF__UNIT__UNIT_NS;
	provenance_expect(&e->provenance,
		&(struct query_question){.by = QUERY_BY_THREAD, .inlined = true, .filter = filter});
	e->provenance.of_code = e->provenance.of_inlined = true;
	const struct source_reader reader = {e, add_segment, keep, take_back, &e->provenance};
	int r = sources_read(&reader, source, n_sources, ret_error);
	if (r == 0)
		r = finish(e, ret_error);

	struct key_table *const tables[] = {
		&e->modules, &e->places, &e->frames, &e->stacks, &e->tasks};
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		key_table_clear(tables[i]);
	text_table_clear(&e->texts);
	export_part_clear(&e->part);
	free(e->text_number);
	free(e->path);
	free(e->waiting);
	free(e);
	return r;
}
