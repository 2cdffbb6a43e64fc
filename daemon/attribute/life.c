/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A task's life: its start, what it inherits from its parent, and its end
 *
 * Records and /proc both start and end tasks. An ended task stays findable for a while, since the
 * kernel still works for it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/clock.h"

/* After EXIT the kernel tears down the memory of the process. The teardown of 100 GB takes seconds; tids are
 * reused later than that. */
#define ENDED_NS 5000000000u
#define FORGET_NS 1000000000u /* between two looks for tasks that ended long ago */
/* Tolerance between a task's start time and its FORK record, and between readings of the two
 * clocks. */
#define START_SLACK_NS 10000000u

struct lives {
	const struct attribute_options *o;
	struct task *ended[ENDED_SLOTS]; /* that are still sampled */
	uint64_t looked_ns;              /* … of the last look at them, by the end of a task */
	uint64_t tick_ns;                /* of start times in /proc */
	/* time for which the machine was suspended since its start */
	uint64_t suspended_ns;
	struct task *exited[]; /* by hart: the task that ended there last */
};

/* CLOCK_BOOTTIME - CLOCK_MONOTONIC. */
static uint64_t suspended_ns(void)
{
	uint64_t monotonic = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME);

	/* without a suspend the difference is the time between the two calls */
	return boot - monotonic > 1000000 ? boot - monotonic : 0;
}

struct lives *life_new(const struct attribute_options *o)
{
	size_t n_harts = o->n_harts > 0 ? (size_t)o->n_harts : 1;
	struct lives *l = calloc(1, sizeof(*l) + n_harts * sizeof(*l->exited));
	if (!l)
		return NULL;

	l->o = o;
	long ticks = sysconf(_SC_CLK_TCK);
	l->tick_ns = 1000000000u / (uint64_t)(ticks > 0 ? ticks : 100);
	l->suspended_ns = suspended_ns();
	return l;
}

uint64_t life_start_ns(const struct lives *l, uint64_t start_ticks)
{
	return scan_start_ns(start_ticks, l->tick_ns, l->suspended_ns);
}

bool life_same_start(const struct lives *l, const struct task *task, uint64_t time_ns)
{
	uint64_t slack = l->tick_ns + START_SLACK_NS;

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
	child->owner_sure_ns = parent->process->owner_sure_ns;
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

/* Inherit as a task and as a process: the child continues the parent's process. */
static int inherit(struct task *child, const struct task *parent)
{
	life_inherit_task(child, parent);
	return life_inherit_process(child, parent);
}

struct task *life_find_ended(const struct lives *l, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct task *task = l->ended[(uint32_t)tid % ENDED_SLOTS];

	if (!task || task->tid != tid || task->pid != pid)
		return NULL;
	return time_ns < task->end_ns + ENDED_NS ? task : NULL;
}

void life_set_exited(struct lives *l, int hart, struct task *task)
{
	l->exited[hart] = task;
}

struct task *life_exited(const struct lives *l, int hart)
{
	return l->exited[hart];
}

/* Free a thread that ended, was never sampled and is referred to by nothing, if the dead threads of its user fill
 * the table. */
static void forget(struct lives *l, struct task *task)
{
	struct task_table *tasks = l->o->tasks;

	if (task->used || !task->end_ns || task->process == task || task->pending ||
		quota_held(&tasks->of, task->place_of) <= DEAD_KEPT)
		return;
	for (int i = 0; i < l->o->n_harts; i++)
		if (l->exited[i] == task)
			return;
	task_forget(tasks, task);
}

/* Release the task that left its slot: no record of it can come. */
static void leave_slot(struct lives *l, struct task *task)
{
	if (!task->process->n_threads)
		space_drop(task->process);
	forget(l, task);
}

/* Records come through the merge within about a second. */
void life_forget_ended(struct lives *l, uint64_t now_ns)
{
	for (size_t i = 0; i < ENDED_SLOTS; i++) {
		struct task *task = l->ended[i];

		if (!task || task->end_ns + 2 * ENDED_NS > now_ns)
			continue;
		l->ended[i] = NULL;
		leave_slot(l, task);
	}
}

/* Keep the task findable for the kernel's remaining work for it. */
static void ended_put(struct lives *l, struct task *task)
{
	struct task **slot = &l->ended[(uint32_t)task->tid % ENDED_SLOTS];
	struct task *former = *slot;

	*slot = task;
	if (former)
		leave_slot(l, former);
	/* Beside a build they come by the hundred a second, each with its mappings. */
	if (task->end_ns >= l->looked_ns + FORGET_NS) {
		l->looked_ns = task->end_ns;
		life_forget_ended(l, task->end_ns);
	}
}

void life_mark(const struct lives *l, struct sweep *s)
{
	for (size_t i = 0; i < ENDED_SLOTS; i++)
		sweep_keep_task(s, l->ended[i]);
	for (int i = 0; i < l->o->n_harts; i++)
		sweep_keep_task(s, l->exited[i]);
}

/* End the task with its samples. Its thread may continue as another task, so its events stay
 * open. */
static void end_task(struct attribute *a, struct task *task, uint64_t time_ns, int hart)
{
	charge_flush(a->charges, task, time_ns, hart);
	task_end(a->o.tasks, task, time_ns);
	ended_put(a->lives, task);
}

/* End the task, and begin another for its thread. *ret_after NULL: there is no room. 0 or -ENOMEM. */
static int replace_task(struct attribute *a, struct task *before, uint64_t time_ns, int hart,
	struct task **ret_after)
{
	struct task *process = before->process, *after = NULL;

	*ret_after = NULL;
	process->n_threads++; /* its mappings stay meanwhile */
	end_task(a, before, time_ns, hart);
	const struct task_key key = {before->pid, before->tid, before->start_ns};
	int r = task_add_for(a->o.tasks, &key, task_account(before), &after);
	process->n_threads--;
	if (r) {
		if (r > 0)
			lose(&a->o, 0, LOSS_MEMORY, 1);
		return r < 0 ? r : 0;
	}
	after->raised = before->raised;
	after->raised_by = before->raised_by;
	after->raised_ns = before->raised_ns;
	after->n_pasts = before->n_pasts;
	*ret_after = after;
	return 0;
}

/* Let *thread continue as another task in that process, which may differ from its former
 * process. */
static int continue_thread(
	struct attribute *a, struct task **thread, struct task *process, uint64_t time_ns, int hart)
{
	struct task *before = *thread, *after;

	int r = replace_task(a, before, time_ns, hart, &after);
	if (!after)
		return r;
	life_inherit_task(after, before);
	task_join(a->o.tasks, after, process);
	*thread = after;
	return 0;
}

/* Move the threads of a process to the process that continues it. Threads with counts continue as
 * other tasks: their earlier counts stay with the former process. */
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
	int r = replace_task(a, before, time_ns, hart, &after);
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
	after->awaits_report = before->awaits_report;
	after->parent = before->parent;
	after->awaits_exec = before->awaits_exec;
	after->own_labels = before->own_labels;
	*process = after;
	r = inherit(after, before);
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
	after->reported_exec_ns = before->reported_exec_ns;
	after->lost_exec_ns = before->lost_exec_ns;
	after->owner_since_ns = before->owner_since_ns;
	after->rights_read_ns = before->rights_read_ns;
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

struct task *life_now(const struct task_table *t, struct task *task)
{
	struct task *now = task->end_ns ? task_find(t, task->tid) : NULL;

	return now && now->pid == task->pid && now->start_ns == task->start_ns ? now : task;
}

void life_end(struct attribute *a, struct task *task, uint64_t time_ns, int hart)
{
	charge_forget_task(a->charges, task->tid);
	end_task(a, task, time_ns, hart);
	if (a->o.ended)
		a->o.ended(a->o.userdata, task, time_ns);
}
