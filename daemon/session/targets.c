/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We remember nothing of a task: its parents are a handful of steps away, and anything remembered by id
 * would be wrong once the id is used again.
 */
#include "daemon/session/targets.h"

#include <string.h>

static bool is_named(const struct targets *t, const struct task *process)
{
	if (process->start_ns > t->since_ns)
		return false;
	for (size_t i = 0; i < t->n_pids; i++)
		if (t->pid[i] == process->pid)
			return !t->after_exec || process->exec_ns > t->since_ns;
	return false;
}

/* Is the task in that control group, or one below it? */
static bool is_in(const struct targets *t, const struct task *task)
{
	const struct cgroup *in = task->cgroup ? cgroup_find(t->tasks, task->cgroup) : NULL;
	size_t n = strlen(t->cgroup);
	return in && strncmp(in->path, t->cgroup, n) == 0 &&
	       (in->path[n] == '\0' || in->path[n] == '/');
}

bool targets_are_all(const struct targets *t)
{
	return t->all && !t->only_uid && !t->labels && !t->cgroup;
}

bool targets_want(const struct targets *t, const struct task *task)
{
	const struct task *process = task->process;
	if (t->only_uid &&
		(process->uid != t->uid || process->gid != t->gid || process->kernel_thread))
		return false;
	if ((t->labels && process->labels != t->labels) || (t->cgroup && !is_in(t, task)))
		return false;
	if (t->all)
		return true;
	for (int n = 0; process && n < TARGETS_PARENTS_MAX; n++) {
		if (is_named(t, process))
			return true;
		process = process->parent ? process->parent->process : NULL;
	}
	return false;
}

bool targets_take(const struct targets *t, const struct task *task)
{
	return !task->kernel_thread && (task->wanted || !t->all || t->n_pids == 0) &&
	       targets_want(t, task);
}
