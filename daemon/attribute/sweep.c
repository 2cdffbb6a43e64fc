/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Mark and sweep over the tables of tasks, files and frames
 *
 * Roots are live tasks, tasks and frames that this room needs later, files that the namer works on, and
 * all that others mark. A task keeps its process and some of its ancestors, a frame its file, a live
 * process the files that it maps. All marks are set before anything is freed, so a lack of memory
 * changes nothing.
 *
 * Naming is expensive, so recently seen code stays although nothing refers to it at the moment: the
 * stacks of a segment are dropped each hour, and come back within a second.
 */

#include "daemon/attribute/sweep.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/clock.h"

void sweep_reserve_task(struct sweep *s, uint32_t id)
{
	mark_raise(s->task, s->n_tasks, id, SWEEP_RESERVED);
}

void sweep_reserve_frame(struct sweep *s, uint32_t id)
{
	mark_raise(s->code.frame, s->code.n_frames, id, SWEEP_RESERVED);
}

void sweep_reserve_file(struct sweep *s, uint32_t id)
{
	mark_raise(s->code.file, s->code.n_files, id, SWEEP_RESERVED);
}

/* --- roots ------------------------------------------------------------------------------------ */

static void mark_own(const struct attribute *a, struct sweep *s)
{
	for (const struct task *task = a->o.tasks->live; task; task = task->hh.next)
		sweep_keep_task(s, task);
	life_mark(a->lives, s);
	exec_argv_mark(a->execs, s);
	owner_mark(a->owners, s);
	stack_walk_mark(a->walks, s);
	kernel_map_mark(&a->kernel, &s->code);
	waiting_mark(a->waits, s);
}

/* --- what follows ----------------------------------------------------------------------------- */

/* The ancestors of roots are kept, but not the ancestors of ancestors: so while marking, an
 * ancestor has a bit of its own. */
#define FOUND 4

static void find(struct sweep *s, const struct task *task)
{
	s->task[task->id - 1] |= FOUND;
}

static void follow_task(struct sweep *s, const struct task *task)
{
	const struct task *ancestor = task->process;

	find(s, ancestor);
	for (int i = 0; i < SWEEP_ANCESTORS_MAX && ancestor->parent; i++) {
		find(s, ancestor->parent);
		ancestor = ancestor->parent->process;
		find(s, ancestor);
	}
}

static void keep_lately_ended(const struct attribute *a, struct sweep *s, uint64_t now_ns)
{
	const struct task_table *t = a->o.tasks;

	for (uint32_t i = 0; i < t->n_tasks; i++)
		if (t->task[i] && s->task[i] == SWEEP_RESERVED &&
			t->task[i]->end_ns + SWEEP_ENDED_NS > now_ns)
			s->task[i] = SWEEP_KEPT;
}

static void follow_tasks(const struct attribute *a, struct sweep *s)
{
	const struct task_table *t = a->o.tasks;

	for (uint32_t i = 0; i < t->n_tasks; i++)
		if (t->task[i] && (s->task[i] & ~FOUND) == SWEEP_KEPT)
			follow_task(s, t->task[i]);
	for (uint32_t i = 0; i < t->n_tasks; i++)
		if (s->task[i] & FOUND)
			s->task[i] = SWEEP_KEPT;
}

static void follow_spaces(const struct attribute *a, struct sweep *s)
{
	const struct task_table *t = a->o.tasks;

	for (uint32_t i = 0; i < t->n_tasks; i++) {
		const struct task *task = t->task[i];

		if (!task || s->task[i] != SWEEP_KEPT)
			continue;
		file_marks_keep(&s->code, task->jitdump);
		for (uint32_t k = 0; task->space && k < task->space->n_maps; k++)
			file_marks_keep(&s->code, task->space->map[k].file);
	}
}

/* Was it seen in this period of SWEEP_IDLE_NS, or in the one before? */
static bool is_recent(const struct file_table *t, uint32_t age)
{
	return t->age - age <= 1;
}

static void follow_frames(const struct attribute *a, struct sweep *s)
{
	struct file_table *t = a->o.files;
	bool crowded = t->n_frames - t->n_free_frames > SWEEP_FRAMES_CROWDED;

	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct frame *frame = t->frame[i];

		if (!frame)
			continue;
		bool by_its_user =
			crowded && quota_held(&t->frames_of, frame->account) > SWEEP_FRAMES_CROWDED;
		if (!by_its_user && is_recent(t, frame->age))
			s->code.frame[i] = SWEEP_KEPT;
		if (s->code.frame[i] == SWEEP_KEPT)
			file_marks_keep(&s->code, frame->file);
	}
	for (uint32_t i = 0; i < t->n_files; i++)
		if (t->file[i] && is_recent(t, t->file[i]->age))
			s->code.file[i] = SWEEP_KEPT;
}

/* --- cgroups ---------------------------------------------------------------------------------- */

struct cgroup_use {
	uint64_t id;
	UT_hash_handle hh;
};

struct cgroups {
	struct cgroup_root *root;
	struct cgroup_use *used; /* uthash by id */
	int error;
};

static void use_cgroup(void *userdata, uint64_t id)
{
	struct cgroups *c = userdata;
	struct cgroup_use *use;

	HASH_FIND(hh, c->used, &id, sizeof(id), use);
	if (use || !id)
		return;
	use = calloc(1, sizeof(*use));
	if (use) {
		use->id = id;
		HASH_ADD(hh, c->used, id, sizeof(use->id), use);
		if (use->hh.tbl)
			return;
	}
	free(use);
	c->error = -ENOMEM;
}

/* An empty cgroup may fill again, and no record would name it a second time, so it stays while its folder exists. */
static bool keep_cgroup(void *userdata, struct cgroup *cgroup)
{
	struct cgroups *c = userdata;
	struct cgroup_use *use;

	HASH_FIND(hh, c->used, &cgroup->id, sizeof(cgroup->id), use);
	return use || !cgroup_root_is_gone(c->root, cgroup);
}

/* Without memory they all stay. */
static void sweep_cgroups(struct attribute *a)
{
	const struct task_table *t = a->o.tasks;
	struct cgroups c = {.root = a->cgroups};
	struct cgroup_use *use, *next;

	cgroup_root_sweep_begin(a->cgroups);
	for (uint32_t i = 0; i < t->n_tasks; i++)
		if (t->task[i])
			use_cgroup(&c, t->task[i]->cgroup);
	waiting_each_cgroup(a->waits, use_cgroup, &c);
	if (!c.error)
		cgroup_table_sweep(a->o.tasks, keep_cgroup, &c);
	cgroup_root_sweep_end(a->cgroups);
	HASH_ITER (hh, c.used, use, next) {
		HASH_DEL(c.used, use);
		free(use);
	}
}

/* --- arguments -------------------------------------------------------------------------------- */

static void shorten_argv(struct task *task)
{
	static const char dots[] = "…";
	const size_t n = SWEEP_ARGV_SHORT;

	if (!task->argv || task->n_argv <= n)
		return;
	char *shorter = malloc(n + 1);
	if (!shorter)
		return;
	memcpy(shorter, task->argv, n - strlen(dots));
	memcpy(shorter + n - strlen(dots), dots, sizeof(dots));
	free(task->argv);
	task->argv = shorter;
	task->n_argv = (uint32_t)n;
	task->changed = true;
}

static void bound_argv(const struct task_table *t)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < t->n_tasks; i++)
		sum += t->task[i] && t->task[i]->argv ? t->task[i]->n_argv : 0;
	for (uint32_t i = 0; i < t->n_tasks && sum > SWEEP_ARGV_BYTES_MAX; i++)
		if (t->task[i])
			shorten_argv(t->task[i]);
}

/* --- the sweep -------------------------------------------------------------------------------- */

static uint32_t n_entries(const struct attribute *a)
{
	const struct file_table *f = a->o.files;
	const struct task_table *t = a->o.tasks;

	return t->n_tasks - t->n_free + f->n_frames - f->n_free_frames + f->n_files -
	       f->n_free_files;
}

/* Let idle files and frames age. */
static void age(struct file_table *t, uint64_t now_ns)
{
	if (t->aged_ns && now_ns - t->aged_ns < SWEEP_IDLE_NS)
		return;
	t->age += t->aged_ns != 0;
	t->aged_ns = now_ns;
}

static int free_unmarked(struct attribute *a, struct sweep *s)
{
	int r = a->o.namer ? namer_sweep_slots(a->o.namer, &s->code) : 0;

	if (!r)
		r = task_table_sweep(a->o.tasks, s->task);
	if (!r)
		r = file_table_sweep(a->o.files, &s->code);
	if (!r && a->o.namer)
		namer_sweep_names(a->o.namer);
	return r;
}

static void mark_all(struct attribute *a, struct sweep *s,
	void (*mark)(void *userdata, struct sweep *s), void *userdata)
{
	mark_own(a, s);
	if (a->o.namer)
		namer_sweep_mark(a->o.namer, &s->code);
	if (mark)
		mark(userdata, s);
}

int attribute_sweep(
	struct attribute *a, void (*mark)(void *userdata, struct sweep *s), void *userdata)
{
	uint32_t before = n_entries(a);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct sweep s = {
		.n_tasks = a->o.tasks->n_tasks,
		.code.n_frames = a->o.files->n_frames,
		.code.n_files = a->o.files->n_files,
	};

	s.task = calloc((size_t)s.n_tasks + 1, 1);
	s.code.frame = calloc((size_t)s.code.n_frames + 1, 1);
	s.code.file = calloc((size_t)s.code.n_files + 1, 1);
	int r = s.task && s.code.frame && s.code.file ? 0 : -ENOMEM;
	if (!r) {
		life_forget_ended(a->lives, now_ns);
		owner_forget_ended(a);
		mark_all(a, &s, mark, userdata);
		keep_lately_ended(a, &s, now_ns);
		follow_tasks(a, &s);
		follow_spaces(a, &s);
		follow_frames(a, &s);
		attribute_forget_places(a); /* so that lookups refresh the age of frames in use */
		r = free_unmarked(a, &s);
	}
	free(s.task);
	free(s.code.frame);
	free(s.code.file);
	if (r)
		return r;

	age(a->o.files, now_ns);
	sweep_cgroups(a);
	bound_argv(a->o.tasks);
	if (n_entries(a) < before - before / 4)
		malloc_trim(0);
	return 0;
}
