/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Spaces of processes: sharing and copying
 *
 * Most children exec right after fork, so the array is not copied for them: both processes share
 * it, and the first of them to map something makes its own copy. The generation lets others cache
 * what they computed from a space.
 */

#include <errno.h>
#include <string.h>

#include "daemon/attribute/task.h"
#include "proto/base/memory.h"

/* Give the process an unshared copy of its space. */
static int space_own(struct task *process)
{
	struct space *former = process->space;
	if (former && former->n_users == 1)
		return 0;

	_cleanup_(freep) struct space *own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	int r = former ? space_copy(own, former) : 0;
	if (r < 0)
		return r;

	own->n_users = 1;
	own->uid = task_files_uid(process);
	space_drop(process);
	process->space = TAKE_PTR(own);
	return 0;
}

int space_map(struct task_table *t, struct task *task, uint64_t start, uint64_t bytes,
	uint64_t file_offset, struct file *file)
{
	struct task *process = task->process;
	struct map m = {
		.start = start,
		.end = bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes,
		.file_offset = file_offset,
		.file = file,
	};

	if (m.start >= m.end)
		return 0;

	/* A record may repeat what /proc showed at the start: not a change. */
	const struct map *known = space_find(process->space, start);
	if (known && !memcmp(known, &m, sizeof(m)))
		return 0;

	int r = space_own(process);
	if (r < 0)
		return r;
	r = space_insert(process->space, &m);
	process->space->generation = ++t->last_generation;
	return r;
}

void space_change_user(struct task_table *t, struct task *process)
{
	struct space *space = process->space;

	if (!space || space->uid == task_files_uid(process))
		return;
	space->uid = task_files_uid(process);
	if (space->generation)
		space->generation = ++t->last_generation;
}

void space_share(struct task *child, const struct task *parent)
{
	struct space *space = parent->process->space;

	if (child->process->space == space)
		return;

	space_drop(child->process);
	if (space)
		space->n_users++;
	child->process->space = space;
}

void space_drop(struct task *task)
{
	struct space *space = TAKE_PTR(task->space);

	if (!space || --space->n_users > 0)
		return;

	space_clear(space);
	free(space);
}
