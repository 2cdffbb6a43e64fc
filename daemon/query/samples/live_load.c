/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A window into the arrays of a query
 *
 * The walk's ids count everything that the daemon has ever seen, and a query's arrays are as long
 * as the highest id. So we renumber the objects that the window's rows refer to. A stack is
 * numbered from its outermost caller without a number inwards, so that callers have lower ids than
 * their callees, as in a segment.
 *
 * Samples and names that the peer may not see are left out here, before anything is counted.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/live_load.h"
#include "daemon/sampler/annotate.h"
#include "proto/base/memory.h"

/* Frames without a function that are called by their file and address; the others are [unknown]. The first that were
 * sampled, since the hottest come early. Stacks that never repeat have ten thousands, whose names take 4 us each,
 * and a live answer is made in one turn of the loop. */
#define CODES_MAX 1024

static int text(struct live_load *t, const char *name, uint32_t *ret_id)
{
	return query_fail_full(t->loaded, text_get(t->loaded->texts, name, ret_id));
}

/* The number of that content; *ret_new if it had none. */
static int number(struct live_load *t, struct key_table *table, const void *what, uint32_t *ret_id,
	bool *ret_new)
{
	uint32_t n = table->n_keys, index;
	int r = key_get(table, &(struct key){{(uintptr_t)what}}, &index);
	if (r != 0)
		return query_fail_full(t->loaded, r);
	*ret_id = index + 1;
	*ret_new = table->n_keys > n;
	return 0;
}

/* --- events and harts ------------------------------------------------------------------------- */

static uint8_t event_modifiers(const struct event *e)
{
	return (uint8_t)(e->exclude_user | e->exclude_kernel << 1 | e->exclude_hv << 2 |
			 e->precise << 4);
}

static bool event_same(const struct event *a, const struct event *b)
{
	return strcmp(a->pmu, b->pmu) == 0 && a->type == b->type && a->config == b->config &&
	       a->config1 == b->config1 && a->config2 == b->config2 &&
	       event_modifiers(a) == event_modifiers(b);
}

static int load_events(struct live_load *t)
{
	const struct event_list *list = &t->live->sampler->events;
	for (int i = 0; i < list->n_events && i < EVENTS_MAX; i++) {
		const struct event *e = &list->event[i];
		t->event[i] = (uint32_t)i + 1;
		for (int j = 0; j < i && t->event[i] > (uint32_t)i; j++)
			if (event_same(e, &list->event[j]))
				t->event[i] = t->event[j];
		if (t->event[i] <= (uint32_t)i)
			continue;
		struct loaded_event *to = &t->loaded->event[i + 1];
		*to = (struct loaded_event){
			.known = e->type != EVENT_TYPE_OFFCPU || !t->live->sampler->offcpu_of_some,
			.type = e->type,
			.config = e->config,
			.modifiers = event_modifiers(e),
		};
		loaded_event_classify(to);
		int r = text(t, e->name, &to->name);
		if (r != 0)
			return r;
	}
	return 0;
}

static void load_harts(struct live_load *t)
{
	const struct sampler *s = t->live->sampler;
	for (int hart = 0; s->plan && hart < s->machine.n_harts && hart < HARTS_MAX; hart++) {
		const struct plan *p = &s->plan[hart];
		bool samples = p->rung != RUNG_NONE;
		if (!samples && !hart_set_has(&s->machine.online, hart))
			continue;
		struct loaded_hart *h = &t->loaded->hart[hart];
		*h = (struct loaded_hart){
			.known = true, .user_only = p->user_only, .rung = (uint8_t)p->rung};
		for (int i = s->events.n_events - 1; samples && i >= 0; i--)
			if (event_same(&p->leader, &s->events.event[i]))
				h->leader = t->event[i];
	}
}

/* Load the notes that a segment would have if it began now. */
static int load_notes(struct live_load *t)
{
	struct loaded *l = t->loaded;
	_cleanup_(freep) struct annotation *all = calloc(ANNOTATIONS_MAX, sizeof(*all));
	int r = all ? 0 : -ENOMEM;
	size_t n = all ? annotate_sampler(t->live->sampler, t->live->hz, all) : 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = array_grow(&l->note, &l->size_notes, l->n_notes + 1, sizeof(*l->note));
		if (r < 0)
			return r;
		struct loaded_note *to = &l->note[l->n_notes++];
		to->harts = all[i].harts;
		to->event = all[i].event >= 0 ? t->event[all[i].event] : 0;
		r = text(t, all[i].says, &to->says);
	}
	l->hz_lowest = t->live->sampler->rate_lowered ? l->hz : 0;
	return r;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* Arguments joined by NUL become one line of text. */
static int load_argv(struct live_load *t, const struct task *task, uint32_t *ret_text)
{
	char line[TASK_ARGV_BYTES_MAX + 8];
	size_t n = task->argv ? task->n_argv : 0;
	if (t->by != QUERY_BY_PROCESS)
		return 0;
	n = n < sizeof(line) ? n : sizeof(line) - 1;
	while (n > 0 && task->argv[n - 1] == '\0')
		n--;
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		line[i] = task->argv[i] ? task->argv[i] : ' ';
	line[n] = '\0';
	return text(t, line, ret_text);
}

static int load_one_task(struct live_load *t, const struct task *task, uint32_t *ret_id)
{
	struct loaded *l = t->loaded;
	bool new = false;
	int r = number(t, &t->tasks, task, ret_id, &new);
	if (r != 0 || !new)
		return r;
	r = array_grow(&l->task, &t->size_tasks, *ret_id + 1, sizeof(*l->task));
	if (r < 0)
		return r;
	l->n_tasks = *ret_id;
	struct loaded_task *to = &l->task[*ret_id];
	*to = (struct loaded_task){
		.known = true,
		.pid = task->pid,
		.tid = task->tid,
		.process = *ret_id,
		.start_ns = (int64_t)task->start_ns,
		.owner = task->uid != (uid_t)-1 ? (uint64_t)task->uid + 1 : 0,
	};
	const struct cgroup *cgroup =
		task->cgroup ? cgroup_find(t->live->tasks, task->cgroup) : NULL;
	r = text(t, task->comm[0] ? task->comm : NULL, &to->comm);
	if (r == 0)
		r = text(t, cgroup ? cgroup->path : NULL, &to->cgroup);
	if (r == 0)
		r = text(t, task->process->labels ? task->process->labels->labels : NULL,
			&to->labels);
	return r == 0 ? load_argv(t, task, &to->argv) : r;
}

static int load_task(struct live_load *t, const struct task *task, uint32_t *ret_id)
{
	uint32_t process;
	*ret_id = 0;
	if (!task)
		return 0;
	int r = load_one_task(t, task->process, &process);
	if (r == 0)
		r = load_one_task(t, task, ret_id);
	if (r == 0)
		t->loaded->task[*ret_id].process = process;
	return r;
}

/* --- code ------------------------------------------------------------------------------------- */

static int load_file(struct live_load *t, const struct file *file, uint32_t *ret_id)
{
	struct loaded *l = t->loaded;
	bool new = false;
	int r = number(t, &t->files, file, ret_id, &new);
	if (r != 0 || !new)
		return r;
	r = array_grow(&l->file, &t->size_files, *ret_id + 1, sizeof(*l->file));
	if (r < 0)
		return r;
	l->n_files = *ret_id;
	const bool absent = file_is_absent(file->kind, file->state, file->has_symbols);
	l->file[*ret_id].kind = (uint8_t)file->kind;
	return text(t, loaded_call_file(file->kind, file->path, absent), &l->file[*ret_id].module);
}

/* Only the symbol if the query is by function, every place if it is by line. */
static int load_places(struct live_load *t, const struct frame *frame, struct loaded_frame *to)
{
	struct loaded *l = t->loaded;
	uint32_t first = 0;
	if (t->by != QUERY_BY_LINE && frame->n_places > 0)
		first = frame->n_places - 1;
	if (t->by != QUERY_BY_LINE && t->by != QUERY_BY_FUNCTION)
		return 0;
	to->place = l->n_places;
	for (uint32_t i = first; i < frame->n_places; i++) {
		int r = array_grow(&l->place, &t->size_places, l->n_places + 1, sizeof(*l->place));
		if (r < 0)
			return r;
		struct loaded_place *p = &l->place[l->n_places++];
		*p = (struct loaded_place){
			.line = frame->place[i].line, .inlined = frame->place[i].inlined};
		to->n_places++;
		r = text(t, frame->place[i].function, &p->function);
		if (r == 0 && t->by == QUERY_BY_LINE)
			r = text(t, frame->place[i].source, &p->source);
		if (r != 0)
			return r;
	}
	if (to->n_places > 0)
		return 0;
	uint32_t function = l->unknown_name;
	int r = t->n_codes++ < CODES_MAX ? loaded_call_code(l, to, &function) : 0;
	if (r == 0)
		r = array_grow(&l->place, &t->size_places, l->n_places + 1, sizeof(*l->place));
	if (r != 0)
		return r;
	l->place[l->n_places++] = (struct loaded_place){.function = function};
	to->n_places = 1;
	return 0;
}

/* The whole kernel as one function: users who may not see its addresses still see its time. */
static struct frame *hidden_kernel(void)
{
	static const struct place place = {.function = "[kernel]"};
	static const struct file file = {.kind = FILE_KERNEL};
	static const struct frame frame = {
		.state = FRAME_NAMED,
		.file = (struct file *)&file,
		.place = (struct place *)&place,
		.n_places = 1,
	};
	return (struct frame *)&frame;
}

static int load_frame(struct live_load *t, const struct frame *frame, uint32_t *ret_id)
{
	struct loaded *l = t->loaded;
	enum file_kind kind = frame->file->kind;
	bool new = false;
	if (t->filter->hide_kernel && file_is_kernel(kind))
		frame = hidden_kernel();
	int r = number(t, &t->frames, frame, ret_id, &new);
	if (r != 0 || !new)
		return r;
	r = array_grow(&l->frame, &t->size_frames, *ret_id + 1, sizeof(*l->frame));
	if (r < 0)
		return r;
	l->n_frames = *ret_id;
	struct loaded_frame *to = &l->frame[*ret_id];
	/* do not report a name as pending if it may never come */
	bool late = frame->state == FRAME_ASKED && !frame_is_awaited(frame);
	*to = (struct loaded_frame){
		.state = late ? FRAME_UNNAMED : (uint8_t)frame->state,
		.offset = frame->offset,
	};
	r = load_file(t, frame->file, &to->file);
	return r == 0 ? load_places(t, frame, to) : r;
}

static int load_node(struct live_load *t, uint32_t id, uint32_t parent, uint32_t *ret_id)
{
	struct loaded *l = t->loaded;
	int r = array_grow(&l->stack, &t->size_stacks, l->n_stacks + 2, sizeof(*l->stack));
	if (r < 0)
		return r;
	*ret_id = t->node[id - 1] = ++l->n_stacks;
	l->stack[*ret_id].parent = parent;
	return load_frame(t, t->live->stacks->node[id - 1]->frame, &l->stack[*ret_id].frame);
}

/* Number the stacks without a number, the outermost first. */
static int load_stack(struct live_load *t, uint32_t leaf, uint32_t *ret_id)
{
	const struct stack_tree *tree = t->live->stacks;
	uint32_t path[STACK_FRAMES_MAX], n = 0, id = leaf, parent = 0;
	int r = 0;
	while (id != 0 && id <= tree->n_nodes && tree->node[id - 1] && t->node[id - 1] == 0 &&
		n < STACK_FRAMES_MAX) {
		path[n++] = id;
		id = t->callers ? tree->node[id - 1]->parent : 0;
	}
	if (id != 0 && id <= tree->n_nodes)
		parent = t->node[id - 1];
	while (n > 0 && r == 0)
		r = load_node(t, path[--n], parent, &parent);
	*ret_id = parent;
	return r;
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool may_see(const struct query_filter *q, const struct task *who)
{
	return !q->only_uid || (who && who->process->uid == q->uid && who->process->gid == q->gid &&
				       !who->kernel_thread);
}

static int load_rows(struct live_load *t)
{
	int r = 0;
	for (const struct window_row *row = t->live->window->rows; row && r == 0;
		row = row->hh.next) {
		if (!may_see(t->filter, row->who))
			continue;
		struct live_row *to = &t->row[t->n_rows++];
		*to = (struct live_row){.row = row};
		r = load_task(t, row->who, &to->task);
		if (r == 0)
			r = load_stack(t, row->key.stack, &to->stack);
	}
	return r;
}

/* Index 0 of each array exists, even if the array is otherwise empty. */
static int allocate(struct live_load *t)
{
	struct loaded *l = t->loaded;
	t->row = calloc((size_t)t->live->window->n_rows + 1, sizeof(*t->row));
	t->node = calloc((size_t)t->live->stacks->n_nodes + 1, sizeof(*t->node));
	if (!t->row || !t->node)
		return -ENOMEM;
	int r = array_grow(&l->task, &t->size_tasks, 1, sizeof(*l->task));
	if (r == 0)
		r = array_grow(&l->file, &t->size_files, 1, sizeof(*l->file));
	if (r == 0)
		r = array_grow(&l->frame, &t->size_frames, 1, sizeof(*l->frame));
	if (r == 0)
		r = array_grow(&l->stack, &t->size_stacks, 1, sizeof(*l->stack));
	if (r < 0)
		return r;
	l->window = calloc(2, sizeof(*l->window));
	return l->window ? 0 : -ENOMEM;
}

int live_load(struct live_load *t, struct text_table *texts, struct query_error *ret_error)
{
	const struct window *w = t->live->window;
	struct loaded *l = t->loaded;
	*l = (struct loaded){.texts = texts, .error = ret_error, .path = "mperfd"};
	l->hz = t->live->hz;
	l->cut = sampler_cut(t->live->sampler);
	int r = allocate(t);
	if (r < 0)
		return r;
	l->n_windows = 1;
	l->window[1] = (struct loaded_window){
		.known = true,
		.start_ns = (int64_t)w->start_ns,
		.end_ns = (int64_t)w->end_ns,
		.realtime_ns = (int64_t)t->live->realtime_ns,
	};
	r = text(t, "[unknown]", &l->unknown_name);
	if (r == 0)
		r = text(t, "[kernel_unlisted]", &l->unlisted_name);
	if (r == 0)
		r = load_events(t);
	if (r != 0)
		return r;
	load_harts(t);
	r = load_notes(t);
	return r == 0 ? load_rows(t) : r;
}

void live_load_clear(struct live_load *t)
{
	free(t->row);
	free(t->node);
	key_table_clear(&t->tasks);
	key_table_clear(&t->files);
	key_table_clear(&t->frames);
}

/* --- scanning --------------------------------------------------------------------------------- */

/* Read a row as from a segment: a clock's own value is its weight, and an event that sampled alone
 * counted its periods. */
static bool read_row(const struct live_load *t, const struct row_filter *f,
	struct scan_notes *notes, const struct window_row *row, struct scan_row *to)
{
	const struct loaded *l = t->loaded;
	bool own = false, contributes = false;
	for (uint32_t i = 0; i < row->n_reads; i++) {
		const struct window_read *read = &row->read[i];
		if (read->event < 0 || read->event >= EVENTS_MAX || t->event[read->event] == 0)
			continue;
		own |= read->event == row->key.event;
		struct scan_reading reading = {
			.event = t->event[read->event],
			.value = (double)read->value,
			.enabled_ns = (double)read->enabled_ns,
			.running_ns = (double)read->running_ns,
		};
		if (!l->event[reading.event].clock && (read->value || read->enabled_ns))
			contributes |= scan_read(l, f, notes, to, &reading);
	}
	if (!own && !l->event[to->event].clock && row->period > 0 && row->n_uncounted == 0)
		contributes |= scan_read(l, f, notes, to,
			&(struct scan_reading){.event = to->event, .value = (double)row->period});
	return contributes;
}

/* Find the sampling events that have the requested one in their group. */
static void find_groups(const struct live_load *t, const struct row_filter *f, bool *reads)
{
	for (uint32_t i = 0; f->asked && i < t->n_rows; i++) {
		const struct window_row *row = t->row[i].row;
		int leader = row->key.event;
		for (uint32_t j = 0; j < row->n_reads && leader >= 0 && leader < EVENTS_MAX; j++) {
			int event = row->read[j].event;
			if (event >= 0 && event < EVENTS_MAX && f->event[t->event[event]])
				reads[t->event[leader]] = true;
		}
	}
}

/* Samples of a row whose stack does not reach its start, by place or by name. */
static uint64_t cut_of(const struct live_load *t, const struct window_row *row)
{
	const struct stack_tree *tree = t->live->stacks;
	uint32_t id = t->callers && row->n_truncated > 0 ? row->key.stack : 0;
	bool is_innermost = true;
	for (; id != 0 && id <= tree->n_nodes; id = tree->node[id - 1]->parent) {
		const struct frame *frame = tree->node[id - 1]->frame;
		if (file_is_kernel(frame->file->kind))
			continue;
		for (uint32_t i = 0; i < frame->n_places; i++)
			if (stack_start_is_name(frame->place[i].function, is_innermost))
				return 0;
		is_innermost = false;
	}
	return row->n_truncated;
}

int live_scan(const struct live_load *t, const struct row_filter *f, struct scan_notes *notes,
	int (*take)(void *userdata, const struct scan_row *row), void *userdata)
{
	int r = 0;
	bool reads[QUERY_EVENTS_MAX] = {0};
	find_groups(t, f, reads);
	for (uint32_t i = 0; i < t->n_rows && r == 0; i++) {
		const struct window_row *from = t->row[i].row;
		bool known = from->key.hart >= 0 && from->key.hart < HARTS_MAX;
		bool event = from->key.event >= 0 && from->key.event < EVENTS_MAX;
		bool rung = from->key.rung >= 0 && from->key.rung <= RUNG_ASKED;
		struct scan_row row = {
			.stack = t->row[i].stack,
			.task = t->row[i].task,
			.hart = known ? (uint32_t)from->key.hart : HART_UNKNOWN,
			.event = event ? (uint8_t)t->event[from->key.event] : 0,
			.rung = rung ? (uint8_t)from->key.rung : RUNG_NONE,
			.count = from->count,
			.weight_ns = from->weight_ns,
			.uncounted = from->n_uncounted,
			.cut = cut_of(t, from),
			.cycles = -1,
			.instructions = -1,
		};
		bool contributes;
		if (!f->task[row.task] || !f->hart[row.hart] ||
			(f->windows && !t->loaded->window[1].wanted) ||
			!scan_weigh(t->loaded, f, notes, &row, &contributes))
			continue;
		contributes |= read_row(t, f, notes, from, &row);
		contributes |= row.uncounted > 0 && reads[row.event];
		if (contributes)
			r = take(userdata, &row);
	}
	return r;
}

int live_losses(struct live_load *t, const struct row_filter *f, struct provenance *p)
{
	const struct live *live = t->live;
	int n_harts = live->lost ? live->sampler->machine.n_harts : 0, r = 0;
	for (int cause = 0; cause < N_LOSSES && r == 0; cause++) {
		uint64_t n = 0;
		uint32_t name;
		for (int hart = 0; hart < n_harts && hart < HARTS_MAX; hart++)
			n += f->hart[hart] ? live->lost[hart][cause] : 0;
		if (n == 0)
			continue;
		r = text(t, loss_kinds[cause].name, &name);
		if (r == 0)
			provenance_loss(p, name, n);
	}
	return r;
}
