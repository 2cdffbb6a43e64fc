/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tasks: who ran
 *
 * Two indexes over the same structs. The array holds every task that was ever seen, by id, and only
 * grows: windows and answers point into it. The hash holds those that live, by tid, which is all
 * that a record of the kernel gives us; since a tid is used again, a new task of a tid pushes the
 * former one out. Threads refer to their leader, and the leader counts its threads, so that the
 * mappings go when the last of them has gone, not when the leader has.
 */

#define HASH_NONFATAL_OOM 1

#include "daemon/attribute/task.h"

#include <errno.h>
#include <string.h>

#include "proto/memory.h"

struct task *task_find(const struct task_table *t, pid_t tid)
{
	struct task *task;

	HASH_FIND_INT(t->live, &tid, task);
	return task;
}

static int task_table_reserve(struct task_table *t)
{
	if (t->n_tasks < t->size)
		return 0;

	uint32_t size = t->size ? t->size * 2 : 256;
	struct task **task = reallocarray(t->task, size, sizeof(*task));
	if (!task)
		return -ENOMEM;

	t->task = task;
	t->size = size;
	return 0;
}

static struct task *task_leader(const struct task_table *t, struct task *task)
{
	if (task->pid == task->tid)
		return task;

	struct task *leader = task_find(t, task->pid);
	return leader && leader->pid == leader->tid ? leader : task;
}

int task_add(struct task_table *t, pid_t pid, pid_t tid, uint64_t start_ns, struct task **ret_task)
{
	struct task *former = task_find(t, tid);
	if (former) {
		task_end(t, former, start_ns);
		if (!former->process->n_threads)
			space_drop(former->process);
	}

	if (HASH_COUNT(t->live) >= TASKS_LIVE_MAX || t->n_tasks >= TASKS_MAX)
		return TASK_TABLE_FULL;

	int r = task_table_reserve(t);
	if (r < 0)
		return r;

	_cleanup_(freep) struct task *task = calloc(1, sizeof(*task));
	if (!task)
		return -ENOMEM;

	task->pid = pid;
	task->tid = tid;
	task->start_ns = start_ns;
	task->uid = (uid_t)-1;
	task->process = task_leader(t, task);
	HASH_ADD_INT(t->live, tid, task);
	if (!task->hh.tbl)
		return -ENOMEM;

	task->id = t->n_tasks + 1;
	task->changed = true;
	task->process->n_threads++;
	t->task[t->n_tasks++] = task;
	*ret_task = TAKE_PTR(task);
	return 0;
}

void task_end(struct task_table *t, struct task *task, uint64_t end_ns)
{
	if (task->end_ns)
		return;

	HASH_DEL(t->live, task);
	/* 0 means that it lives, and nothing ends before it began */
	task->end_ns = end_ns > task->start_ns ? end_ns : task->start_ns + 1;
	task->changed = true;
	task->process->n_threads--;
}

void task_set_comm(struct task *task, const char *comm)
{
	char name[TASK_COMM_BYTES] = "";

	memcpy(name, comm, strnlen(comm, sizeof(name) - 1));
	if (!memcmp(task->comm, name, sizeof(name)))
		return;

	memcpy(task->comm, name, sizeof(name));
	task->changed = true;
}

const struct cgroup *cgroup_find(const struct task_table *t, uint64_t id)
{
	struct cgroup *cgroup;

	HASH_FIND(hh, t->cgroups, &id, sizeof(id), cgroup);
	return cgroup;
}

static int cgroup_rename(struct cgroup *cgroup, const char *path)
{
	if (!strcmp(cgroup->path, path))
		return 0;

	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;

	free(cgroup->path);
	cgroup->path = copy;
	return 0;
}

int cgroup_set(struct task_table *t, uint64_t id, const char *path)
{
	struct cgroup *known;

	HASH_FIND(hh, t->cgroups, &id, sizeof(id), known);
	if (known)
		return cgroup_rename(known, path);
	if (HASH_COUNT(t->cgroups) >= CGROUPS_MAX)
		return CGROUP_TABLE_FULL;

	_cleanup_(freep) struct cgroup *cgroup = calloc(1, sizeof(*cgroup));
	_cleanup_(freep) char *copy = strdup(path);
	if (!cgroup || !copy)
		return -ENOMEM;

	cgroup->id = id;
	cgroup->path = copy;
	HASH_ADD(hh, t->cgroups, id, sizeof(cgroup->id), cgroup);
	if (!cgroup->hh.tbl)
		return -ENOMEM;

	TAKE_PTR(copy);
	TAKE_PTR(cgroup);
	return 0;
}

void task_table_clear(struct task_table *t)
{
	struct cgroup *cgroup, *next;

	HASH_CLEAR(hh, t->live);
	for (uint32_t i = 0; i < t->n_tasks; i++)
		space_drop(t->task[i]);
	for (uint32_t i = 0; i < t->n_tasks; i++) {
		struct task *task = t->task[i];

		free(task->exe);
		free(task->argv);
		free(task->pending);
		free(task);
	}
	free(t->task);

	HASH_ITER (hh, t->cgroups, cgroup, next) {
		HASH_DEL(t->cgroups, cgroup);
		free(cgroup->path);
		free(cgroup);
	}
	*t = (struct task_table){0};
}
