/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The dictionaries of a segment: tasks, harts, files, frames, stacks and their names
 *
 * Each entry is written the first time a sample needs it, in that sample's transaction and with
 * everything that it refers to, so that a file that ends after any transaction is still complete. A
 * frame's name usually comes later: until then the frame waits in `unnamed` and is checked at each
 * flush.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/sweep.h"
#include "daemon/store/segment/write.h"
#include "proto/base/array.h"

/* A name's id, with its row written if it is new; *ret_id is 0 for NULL. */
static int write_name(struct segment *g, struct names *names, enum segment_statement s,
	const char *text, uint32_t *ret_id)
{
	*ret_id = 0;
	if (!text)
		return 0;
	struct stored_name *name;
	size_t n = strlen(text);
	HASH_FIND(hh, names->by_text, text, n, name);
	if (!name) {
		int r = ROW(g, s, CELL_I(names->n_names + 1), CELL_T(text));
		if (r != 0)
			return r;
		segment_charge(g, n + SHARE_NAME_BYTES);
		name = malloc(sizeof(*name) + n + 1);
		if (!name)
			return -ENOMEM;
		name->id = names->n_names + 1;
		memcpy(name->text, text, n + 1);
		HASH_ADD_KEYPTR(hh, names->by_text, name->text, n, name);
		if (!name->hh.tbl) {
			free(name);
			return -ENOMEM;
		}
		names->n_names++;
	}
	*ret_id = name->id;
	return 0;
}

/* Bytes that remain of a name when its user is over the share. */
#define NAME_BYTES_CUT 64

/* The symbol itself, without what is inlined in it and without its line. */
static int write_cut_place(struct segment *g, const struct frame *frame)
{
	const char *name = frame->n_places ? frame->place[frame->n_places - 1].function : NULL;
	char cut[NAME_BYTES_CUT + sizeof("…")] = "";
	uint32_t function;
	if (!name)
		return 0;
	size_t n = strnlen(name, NAME_BYTES_CUT + 1);
	if (n > NAME_BYTES_CUT) {
		for (n = NAME_BYTES_CUT; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80; n--)
			; /* not within a character of UTF-8 */
		snprintf(cut, sizeof(cut), "%.*s…", (int)n, name);
	}
	int r = write_name(g, &g->functions, INSERT_FUNCTION, *cut ? cut : name, &function);
	if (r != 0)
		return r;
	segment_charge(g, SHARE_PLACE_BYTES);
	return ROW(g, INSERT_PLACE, CELL_I(frame->id), CELL_I(0), CELL_I(function),
		CELL_I_OR_NULL(false, 0), CELL_I_OR_NULL(false, 0), CELL_I(0));
}

static int write_places(struct segment *g, const struct frame *frame)
{
	if (share_level(g->shares, g->payer) != SHARE_WHOLE)
		return write_cut_place(g, frame);
	segment_charge(g, frame->n_places * SHARE_PLACE_BYTES);
	for (uint32_t depth = 0; depth < frame->n_places; depth++) {
		const struct place *p = &frame->place[depth];
		uint32_t function, source;
		int r = write_name(g, &g->functions, INSERT_FUNCTION, p->function, &function);
		if (r == 0)
			r = write_name(g, &g->sources, INSERT_SOURCE, p->source, &source);
		if (r == 0)
			r = ROW(g, INSERT_PLACE, CELL_I(frame->id), CELL_I(depth),
				CELL_I_OR_NULL(function, function), CELL_I_OR_NULL(source, source),
				CELL_I_OR_NULL(p->line, p->line), CELL_I(p->inlined));
		if (r != 0)
			return r;
	}
	return 0;
}

static bool frame_final(const struct frame *frame)
{
	return frame->state != FRAME_NEW && frame->state != FRAME_ASKED;
}

static uint8_t frame_mark(const struct frame *frame)
{
	return !frame_final(frame)           ? MARK_STORED
	       : frame->state == FRAME_NAMED ? MARK_FINAL
					     : MARK_NAMELESS;
}

/* The changeable facts of a file in one byte: stored, state, flags. */
static uint8_t file_mark(const struct file *file)
{
	return (uint8_t)(MARK_STORED | (unsigned)file->state << 1 |
			 (unsigned)file->split_missing << 5 | (unsigned)file->has_symbols << 6 |
			 (unsigned)file->has_debug << 7);
}
_Static_assert(FILE_OVERSIZE < 1 << 4, "file states fit in four bits");

/* Value of the column has_debug of a file. */
static int file_debug(const struct file *file)
{
	return file->split_missing ? FILE_DEBUG_SPLIT_MISSING : file->has_debug;
}

static int write_file(struct segment *g, const struct file *file)
{
	if (mark_get(&g->files, file->id) != MARK_NONE)
		return 0;
	bool inode = file->inode != 0;
	segment_charge(g, SHARE_FILE_BYTES + (file->path ? strlen(file->path) : 0));
	int r = ROW(g, INSERT_FILE, CELL_I(file->id), CELL_I(file->kind),
		CELL_T(file->path ? file->path : ""), CELL_B(file->build_id, file->n_build_id),
		CELL_I_OR_NULL(inode, file->major), CELL_I_OR_NULL(inode, file->minor),
		CELL_I_OR_NULL(inode, file->inode), CELL_I(file->deleted), CELL_I(file->state),
		CELL_I(file->has_symbols), CELL_I(file_debug(file)));
	if (r == 0)
		r = mark_set(g, &g->files, file->id, file_mark(file));
	return r != 0 ? r : ids_add(&g->sighted, file->id);
}

/* An address that belongs to no file is stored as it is, unless it is the kernel's: those never
 * are. User addresses have the top bit clear on every 64-bit Linux. */
static uint64_t frame_offset(const struct frame *frame)
{
	bool address = frame->file->kind >= FILE_PERF_MAP;
	return address && frame->offset >> 63 ? 0 : frame->offset;
}

static int unnamed_add(struct segment *g, uint32_t id)
{
	struct unnamed *u = &g->unnamed;
	int r = array_grow_long(&u->frame, &u->size, u->n + 1, sizeof(*u->frame));
	if (r == 0)
		u->frame[u->n++] = (struct unnamed_frame){id, g->payer};
	return r;
}

int segment_write_frame(struct segment *g, const struct frame *frame)
{
	if (mark_get(&g->frames, frame->id) != MARK_NONE)
		return 0;
	bool final = frame_final(frame);
	int r = write_file(g, frame->file);
	if (r == 0)
		r = ROW(g, INSERT_FRAME, CELL_I(frame->id), CELL_I(frame->file->id),
			CELL_I(frame_offset(frame)), CELL_I(frame->state));
	if (r == 0 && final)
		r = write_places(g, frame);
	if (r == 0 && !final)
		r = unnamed_add(g, frame->id);
	segment_charge(g, SHARE_FRAME_BYTES);
	return r != 0 ? r : mark_set(g, &g->frames, frame->id, frame_mark(frame));
}

static int write_node(struct segment *g, const struct stack_node *node)
{
	int r = segment_write_frame(g, node->frame);
	if (r == 0)
		r = ROW(g, INSERT_STACK, CELL_I(node->id), CELL_I(node->parent),
			CELL_I(node->frame->id));
	return r == 0 ? mark_set(g, &g->stacks, node->id, MARK_STORED) : r;
}

int segment_write_stack(struct segment *g, const struct stack_tree *t, uint32_t id)
{
	/* ids fall towards the outermost caller, so this ends; a caller that is stored has all of
	 * its own callers stored */
	g->chain.n = 0;
	for (; id != 0 && mark_get(&g->stacks, id) == MARK_NONE; id = t->node[id - 1]->parent) {
		if (id > t->n_nodes || !t->node[id - 1])
			return -EINVAL;
		int r = ids_add(&g->chain, id);
		if (r < 0)
			return r;
	}
	/* outermost first: rows that come in the order of their ids fill their pages */
	for (size_t i = g->chain.n; i > 0; i--) {
		int r = write_node(g, t->node[g->chain.id[i - 1] - 1]);
		if (r != 0)
			return r;
	}
	return 0;
}

static bool is_process(const struct task *task)
{
	return !task->process || task->process == task;
}

bool segment_may_write(const struct segment_flush *f, const struct task *task)
{
	const struct task *process = task && task->process ? task->process : task;
	return !f->only_uid || (process && process->uid == f->uid && process->gid == f->gid);
}

/* The parent of the process, if this segment may show it. */
static struct task *parent_of(const struct segment_flush *f, const struct task *task)
{
	struct task *parent = is_process(task) ? task->parent : NULL;
	return parent && segment_may_write(f, parent) ? parent : NULL;
}

/* A thread that began before the owner of its process was known has the owner of the process. */
static uid_t owner_of(const struct task *task)
{
	return task->uid != (uid_t)-1 || is_process(task) ? task->uid : task->process->uid;
}

/* n_paid: bytes of its arguments that are in the row already, or 0 */
static int write_task_row(struct segment *g, const struct segment_flush *f,
	enum segment_statement s, const struct task *task, uint32_t n_paid)
{
	/* parent, exe and argv of a thread are its process' */
	bool process = is_process(task);
	bool argv = process && (task->n_argv <= n_paid ||
				       share_level(g->shares, task_account(task)) == SHARE_WHOLE);
	const struct task *parent = parent_of(f, task);
	uid_t uid = owner_of(task);
	bool owned = uid != (uid_t)-1 && !(process ? task : task->process)->other_group;
	return ROW(g, s, CELL_I(task->id), CELL_I(task->pid), CELL_I(task->tid),
		CELL_I(process ? task->id : task->process->id), CELL_I_OR_NULL(parent, parent->id),
		CELL_I(task->start_ns), CELL_I_OR_NULL(task->end_ns, task->end_ns),
		CELL_T(task->comm), CELL_T(process ? task->exe : NULL),
		CELL_B(argv ? task->argv : NULL, task->n_argv),
		CELL_I_OR_NULL(task->cgroup, task->cgroup), CELL_I_OR_NULL(owned, uid),
		CELL_I(task->kernel_thread),
		CELL_I_OR_NULL(task_account(task) != (uid_t)-1, task_account(task)));
}

/* Hash of all contents of a task's row. Never 0. */
static uint32_t task_hash(const struct task *task)
{
	uint64_t part[10] = {task->end_ns, task->exec_ns, task->cgroup,
		owner_of(task) | (uint64_t)task_account(task) << 32, (uintptr_t)task->exe,
		(uintptr_t)task->argv,
		task->n_argv ^ (uint64_t)(task->parent ? task->parent->id : 0) << 32,
		task->labels ? task->labels->id : 0};
	uint64_t hash = 0;
	memcpy(&part[8], task->comm, TASK_COMM_BYTES);
	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		hash = (hash ^ part[i]) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio, odd */
		hash ^= hash >> 29;
	}
	return (uint32_t)hash ? (uint32_t)hash : 1;
}
_Static_assert(TASK_COMM_BYTES == 2 * sizeof(uint64_t), "part has room for comm");

static int tell_task(struct segment *g, const struct segment_flush *f, enum segment_statement s,
	struct task *task, uint32_t n_paid)
{
	const struct cgroup *cgroup =
		task->cgroup && f->tasks ? cgroup_find(f->tasks, task->cgroup) : NULL;
	int r = write_task_row(g, f, s, task, n_paid);
	if (r == 0 && cgroup) {
		r = ROW(g, INSERT_CGROUP, CELL_I(cgroup->id), CELL_T(cgroup->path));
		if (sqlite3_changes(g->db) > 0) /* otherwise it was there */
			share_charge(g->shares, task_account(task), strlen(cgroup->path));
	}
	if (r == 0)
		r = segment_write_labels(g, task);
	if (r != 0 || !task->changed)
		return r;
	r = array_grow_long(&g->written, &g->size_written, g->n_written + 1, sizeof(struct task *));
	if (r < 0)
		return r;
	g->written[g->n_written++] = task;
	task->changed = false;
	return 0;
}

/* Charge a task's row and arguments, except for arguments that were charged before. Returns the
 * number of arguments charged by now. */
static uint32_t charge_task(struct segment *g, const struct task *task, uint32_t n_argv)
{
	bool process = is_process(task),
	     whole = share_level(g->shares, task_account(task)) == SHARE_WHOLE;
	uint32_t n = process && whole && task->argv ? task->n_argv : 0;
	size_t bytes = n > n_argv ? n - n_argv : 0;
	if (n_argv == 0)
		bytes += SHARE_TASK_BYTES + (process && task->exe ? strlen(task->exe) : 0);
	share_charge(g->shares, task_account(task), bytes);
	return n > n_argv ? n : n_argv;
}

static int living_add(struct segment *g, const struct task *task)
{
	int r = array_grow_long(&g->living, &g->size_living, g->n_living + 1, sizeof(*g->living));
	if (r == 0)
		g->living[g->n_living++] =
			(struct living){task->id, task_hash(task), charge_task(g, task, 0)};
	return r;
}

int segment_write_task(struct segment *g, const struct segment_flush *f, struct task *task)
{
	/* thread, process, its parent, …: a stored task has all of them stored */
	while (task && mark_get(&g->tasks, task->id) == MARK_NONE) {
		int r = tell_task(g, f, INSERT_TASK, task, 0);
		if (r == 0)
			r = mark_set(g, &g->tasks, task->id, MARK_STORED);
		if (r == 0)
			r = living_add(g, task);
		if (r != 0)
			return r;
		task = is_process(task) ? parent_of(f, task) : task->process;
	}
	return 0;
}

/* The hart has a new plan, with another leader at that rung. */
static int write_other_leader(struct segment *g, int hart, const struct window_row *row)
{
	char key[64];
	unsigned bit = 1u << row->key.rung;
	if (row->key.rung < 0 || row->key.rung > RUNG_ASKED || (g->hart_rungs[hart] & bit))
		return 0;
	snprintf(key, sizeof(key), "leader:%d:%d", hart, (int)row->key.rung);
	int r = ROW(g, INSERT_META, CELL_T(key), CELL_I(g->event[row->key.event]));
	if (r == 0)
		g->hart_rungs[hart] |= (uint8_t)bit;
	return r;
}

int segment_write_hart(struct segment *g, int hart, const struct window_row *row)
{
	if (hart < 0 || hart >= HARTS_MAX)
		return 0;
	if (!g->hart_known[hart]) {
		int r = ROW(g, INSERT_HART, CELL_I(hart), CELL_I(row->key.rung),
			CELL_T("it came while we ran"), CELL_I_OR_NULL(false, 0), CELL_I(0));
		if (r != 0)
			return r;
		/* not taken back with the transaction: the statement is INSERT OR IGNORE */
	}
	if (row->count > 0 && g->hart_planned[hart] && row->key.rung != g->hart_rung[hart])
		return write_other_leader(g, hart, row);
	int leader = g->hart_leader[hart];
	if (row->count == 0 || g->hart_planned[hart] || (leader >= 0 && leader <= row->key.event))
		return 0;
	int r = ROW(g, UPDATE_LEADER, CELL_I(hart), CELL_I(g->event[row->key.event]));
	if (r == 0)
		g->hart_leader[hart] = row->key.event;
	return r;
}

/* Nameless frames that are asked for once more, or were, are unnamed again. */
static int take_asked_anew(struct segment *g, const struct file_table *t)
{
	if (!t || t->n_asked_anew == g->n_asked_anew)
		return 0;
	g->n_asked_anew = t->n_asked_anew;
	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct frame *frame = t->frame[i];
		if (!frame || mark_get(&g->frames, frame->id) != MARK_NAMELESS ||
			frame_mark(frame) == MARK_NAMELESS)
			continue;
		g->payer = frame->account;
		int r = mark_set(g, &g->frames, frame->id, MARK_STORED);
		if (r == 0)
			r = unnamed_add(g, frame->id);
		if (r < 0)
			return r;
	}
	return 0;
}

int segment_write_names(struct segment *g, const struct segment_flush *f)
{
	int asked = take_asked_anew(g, f->files);
	if (asked < 0)
		return asked;
	g->unnamed.n_awaited = 0;
	for (size_t i = 0; i < g->unnamed.n; i++) {
		uint32_t id = g->unnamed.frame[i].id;
		const struct frame *frame =
			f->files && id <= f->files->n_frames ? f->files->frame[id - 1] : NULL;
		g->unnamed.n_awaited += frame && frame_is_awaited(frame);
		if (!frame || !frame_final(frame) || mark_get(&g->frames, id) != MARK_STORED)
			continue;
		g->payer = g->unnamed.frame[i].uid;
		int r = ROW(g, UPDATE_FRAME, CELL_I(id), CELL_I(frame->state));
		if (r == 0)
			r = write_places(g, frame);
		if (r == 0)
			r = mark_set(g, &g->frames, id, frame_mark(frame));
		if (r == 0)
			r = segment_name_sites(g, frame);
		if (r != 0)
			return r;
	}
	return 0;
}

static int write_file_state(struct segment *g, const struct file *file)
{
	uint8_t mark = mark_get(&g->files, file->id);
	if (mark == MARK_NONE || mark == file_mark(file))
		return 0;
	int r = ROW(g, UPDATE_FILE, CELL_I(file->id), CELL_I(file->state),
		CELL_I(file->has_symbols), CELL_I(file_debug(file)),
		CELL_B(file->build_id, file->n_build_id));
	return r != 0 ? r : mark_set(g, &g->files, file->id, file_mark(file));
}

/* Write a live task that changed. A task whose end is stored is checked once more, for facts that
 * were read late. A task that is no longer in the table has ended and was written, or its segment
 * already has all that is known. */
static int write_change(struct segment *g, const struct segment_flush *f, size_t at)
{
	uint32_t id = g->living[at].id;
	struct task *task = id <= f->tasks->n_tasks ? f->tasks->task[id - 1] : NULL;
	uint32_t hash = task ? task_hash(task) : 0;
	if (!task || (hash == g->living[at].written_hash && task->end_ns))
		return mark_set(g, &g->tasks, id, MARK_FINAL);
	if (hash == g->living[at].written_hash || !segment_may_write(f, task))
		return 0;
	int r = tell_task(g, f, UPDATE_TASK, task, g->living[at].n_argv);
	if (r == 0) {
		g->living[at].written_hash = hash;
		g->living[at].n_argv = charge_task(g, task, g->living[at].n_argv);
	}
	return r == 0 ? segment_write_task(g, f, parent_of(f, task)) : r;
}

int segment_write_changed(struct segment *g, const struct segment_flush *f)
{
	int r = 0;
	/* a parent that is written for its child may lengthen the list, and is new enough */
	for (size_t i = 0, n = g->n_living; f->tasks && i < n && r == 0; i++)
		r = write_change(g, f, i);
	for (size_t i = 0; f->files && i < g->sighted.n && r == 0; i++) {
		uint32_t id = g->sighted.id[i];
		if (id <= f->files->n_files && f->files->file[id - 1])
			r = write_file_state(g, f->files->file[id - 1]);
	}
	return r;
}

/* --- a sweep ---------------------------------------------------------------------------------- */

/* Ids are keys in the file for as long as it is written: if an id were given to another task
 * meanwhile, that task would be taken for the one that has a row already. */
static void reserve(
	const struct marks *m, void (*reserve_id)(struct sweep *s, uint32_t id), struct sweep *s)
{
	for (size_t page = 0; page < m->n_pages; page++)
		for (uint32_t i = 0; m->page[page] && i < 1u << MARKS_PAGE_BITS; i++)
			if (m->page[page][i] != MARK_NONE)
				reserve_id(s, (uint32_t)(page << MARKS_PAGE_BITS) + i);
}

void segment_reserve(const struct segment *g, struct sweep *s)
{
	reserve(&g->tasks, sweep_reserve_task, s);
	reserve(&g->files, sweep_reserve_file, s);
	reserve(&g->frames, sweep_reserve_frame, s);
}
