/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A task's life: its start, what it inherits from its parent, and its end
 *
 * Records and /proc both start and end tasks. An ended task stays findable for a while, since the
 * kernel still works for it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"

bool life_same_start(const struct attribute *a, const struct task *task, uint64_t time_ns)
{
	uint64_t slack = a->tick_ns + START_SLACK_NS;

	return time_ns > task->start_ns ? time_ns - task->start_ns <= slack
					: task->start_ns - time_ns <= slack;
}

static int copy_text(char **to, const char *from, size_t n)
{
	if (!from || *to)
		return 0;

	*to = malloc(n + 1);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, n);
	(*to)[n] = '\0';
	return 0;
}

int life_inherit_process(struct task *child, const struct task *parent)
{
	space_share(child, parent);
	child->jitdump = parent->jitdump;
	child->memfd_inode = parent->memfd_inode;
	task_inherit_labels(child, parent);
	int r = copy_text(&child->exe, parent->exe, parent->exe ? strlen(parent->exe) : 0);
	if (!r && parent->argv && !child->argv) {
		r = copy_text(&child->argv, parent->argv, parent->n_argv);
		child->n_argv = r ? 0 : parent->n_argv;
	}
	return r;
}

void life_inherit_task(struct task *child, const struct task *parent)
{
	task_set_comm(child, parent->comm);
	child->cgroup = parent->cgroup;
	child->uid = parent->uid;
	child->gid = parent->gid;
	child->other_group = parent->other_group;
	child->account = task_account(parent);
	child->kernel_thread = parent->kernel_thread;
	child->wanted = parent->wanted;
	if (parent->raised && child->start_ns >= parent->raised_ns) {
		child->raised = parent->raised;
		child->raised_by = parent->raised_by;
		child->raised_ns = parent->raised_ns;
	}
	child->changed = true;
}

int life_inherit(struct task *child, const struct task *parent)
{
	life_inherit_task(child, parent);
	return life_inherit_process(child, parent);
}

struct task *life_find_ended(const struct attribute *a, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct task *task = a->ended[(uint32_t)tid % ENDED_SLOTS];

	if (!task || task->tid != tid || task->pid != pid)
		return NULL;
	return time_ns < task->end_ns + ENDED_NS ? task : NULL;
}

/* Keep the task findable for the kernel's remaining work for it. */
static void ended_put(struct attribute *a, struct task *task)
{
	struct task **slot = &a->ended[(uint32_t)task->tid % ENDED_SLOTS];
	struct task *former = *slot;

	*slot = task;
	if (!former)
		return;
	if (!former->process->n_threads)
		space_drop(former->process);
	life_forget(a, former);
}

void life_forget(struct attribute *a, struct task *task)
{
	if (task->used || !task->end_ns || task->process == task || task->pending ||
		quota_held(&a->o.tasks->of, task->place_of) <= DEAD_KEPT)
		return;
	for (int i = 0; i < a->o.n_harts; i++)
		if (a->exited[i] == task)
			return;
	task_forget(a->o.tasks, task);
}

/* End the task with its samples. Its thread may go on as another task, so its events stay open. */
static void end_part(struct attribute *a, struct task *task, uint64_t time_ns, int hart)
{
	charge_flush(a, task, time_ns, hart);
	task_end(a->o.tasks, task, time_ns);
	ended_put(a, task);
}

/* End the task, and begin another for its thread. *ret_after NULL: there is no room. 0 or -ENOMEM. */
static int begin_part(struct attribute *a, struct task *before, uint64_t time_ns, int hart,
	struct task **ret_after)
{
	struct task *process = before->process, *after = NULL;

	*ret_after = NULL;
	process->n_threads++; /* its mappings stay meanwhile */
	end_part(a, before, time_ns, hart);
	const struct task_key key = {before->pid, before->tid, before->start_ns};
	int r = task_add_for(a->o.tasks, &key, task_account(before), &after);
	process->n_threads--;
	if (r) {
		if (r > 0)
			lose(a, 0, LOSS_MEMORY, 1);
		return r < 0 ? r : 0;
	}
	after->raised = before->raised;
	after->raised_by = before->raised_by;
	after->raised_ns = before->raised_ns;
	after->n_pasts = before->n_pasts;
	*ret_after = after;
	return 0;
}

/* Let *thread continue as another task of that process, which may be another process than before. */
static int continue_thread(
	struct attribute *a, struct task **thread, struct task *process, uint64_t time_ns, int hart)
{
	struct task *before = *thread, *after;

	int r = begin_part(a, before, time_ns, hart, &after);
	if (!after)
		return r;
	life_inherit_task(after, before);
	task_join(a->o.tasks, after, process);
	*thread = after;
	return 0;
}

/* Let the process and its threads continue as other tasks: their earlier counts stay with the process that it
 * was. */
static int continue_threads(
	struct attribute *a, struct task *before, struct task *after, uint64_t time_ns, int hart)
{
	struct task *next = before->threads;
	int r = 0;

	while (next && r == 0) {
		struct task *thread = next;

		next = thread->threads_next;
		if (thread->used)
			r = continue_thread(a, &thread, after, time_ns, hart);
		else
			task_join(a->o.tasks, thread, after);
	}
	return r;
}

int life_continue(struct attribute *a, struct task **process, uint64_t time_ns, int hart)
{
	struct task *before = *process, *after;

	if (!task_has_room(a->o.tasks, task_account(before), before->n_threads))
		return 0;
	int r = begin_part(a, before, time_ns, hart, &after);
	if (!after)
		return r;
	if (after->process != after) {
		/* a thread that was its own process until its leader turned up */
		struct task *leader = after->process;
		life_inherit_task(after, before);
		*process = after;
		return continue_threads(a, before, leader, time_ns, hart);
	}
	after->exec_ns = before->exec_ns;
	after->parent = before->parent;
	after->awaits_exec = before->awaits_exec;
	after->own_labels = before->own_labels;
	*process = after;
	r = life_inherit(after, before);
	return r ? r : continue_threads(a, before, after, time_ns, hart);
}

int life_separate(struct attribute *a, struct task **task, uint64_t time_ns, int hart)
{
	struct task *before = *task;
	const bool is_process = before->process == before;

	if (before->end_ns)
		return 0;
	if (!is_process)
		return task_has_room(a->o.tasks, task_account(before), 1)
			       ? continue_thread(a, task, before->process, time_ns, hart)
			       : 0;
	int r = life_continue(a, task, time_ns, hart);
	struct task *after = *task;
	if (after == before)
		return r;
	after->heard_ns = before->heard_ns;
	after->missed_ns = before->missed_ns;
	after->read_ns = before->read_ns;
	after->looked_ns = before->looked_ns;
	after->maps_read_ns = before->maps_read_ns;
	return r;
}

int life_change(struct attribute *a, struct task **task, uint64_t time_ns, int hart)
{
	struct task *before = *task;

	if ((!before->used && !before->sampled) || before->n_pasts >= TASK_PASTS_MAX)
		return 0;
	int r = life_separate(a, task, time_ns, hart);
	(*task)->n_pasts += *task != before;
	return r;
}

int life_leave(struct attribute *a, struct task **process, uint64_t time_ns, int hart)
{
	struct task *before = *process;
	int r = 0;

	if (before->used || before->sampled)
		r = life_separate(a, process, time_ns, hart);
	(*process)->n_pasts = 0;
	return r;
}

struct task *life_now(const struct attribute *a, struct task *task)
{
	struct task *now = task->end_ns ? task_find(a->o.tasks, task->tid) : NULL;

	return now && now->pid == task->pid && now->start_ns == task->start_ns ? now : task;
}

void life_end(struct attribute *a, struct task *task, uint64_t time_ns, int hart)
{
	if (a->o.per_task)
		delta_forget_task(&a->deltas, task->tid);
	end_part(a, task, time_ns, hart);
}
