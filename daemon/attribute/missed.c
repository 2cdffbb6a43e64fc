/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Execs whose record was lost
 *
 * A ring that is full at the moment of an exec takes in neither its COMM nor the mappings that
 * follow. A recording that waits for that exec would wait for ever, and later samples would be
 * looked up in the mappings of the former program. Three signs reveal it all the same:
 *
 *   - The exec was heard of at once, through a ring of its own, and a sample of a later time comes
 *     through the merge before its record does. Records come in order of time, so it will not come.
 *   - A LOST record: what has it swallowed? /proc is asked for those that await their exec.
 *   - In a session per task there is no other ring, and a LOST record comes only once the task runs
 *     on that hart again. So there, while a process awaits its exec, /proc is read after each
 *     drain. What it says of now may have a record that is still in a ring, so a drain is let
 * pass.
 *
 * A record that was late and not lost finds its exec done, and changes nothing.
 */

#include "daemon/attribute/station.h"

void missed_await(struct attribute *a, pid_t pid)
{
	struct task *task = task_find(a->o.tasks, pid);

	if (!task || task->process != task)
		return;
	task->awaits_exec = true;
	for (size_t i = 0; i < a->n_awaited; i++)
		if (a->awaited[i].pid == pid)
			return;
	if (a->n_awaited < AWAITED_MAX)
		a->awaited[a->n_awaited++] = (struct awaited){.pid = pid};
}

void attribute_await_exec(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	for (size_t i = 0; i < n_pids; i++)
		missed_await(a, pids[i]);
}

static int become(struct attribute *a, struct task *process, uint64_t time_ns, int hart)
{
	pid_t pid = process->pid;

	sideband_exec(a, process, time_ns, hart);
	process = task_find(a->o.tasks, pid); /* another one where its owner changed */
	if (!process)
		return 0;
	process->heard_ns = 0;
	process->missed_ns = time_ns;
	int r = census_program(a, &process);
	return r < 0 ? r : 0;
}

int missed_exec(struct attribute *a, struct task *process, int hart)
{
	return become(a, process, process->heard_ns, hart);
}

/* The process of an entry; NULL: it has exec'd, or is gone, and the entry is no more. */
static struct task *awaited_process(struct attribute *a, size_t i)
{
	struct task *task = task_find(a->o.tasks, a->awaited[i].pid);

	if (task && task->process == task && task->awaits_exec)
		return task;
	a->awaited[i] = a->awaited[--a->n_awaited];
	return NULL;
}

int missed_look(struct attribute *a, uint64_t time_ns, int hart)
{
	int r = 0;

	for (size_t i = 0; i < a->n_awaited && r == 0;) {
		struct task *process = awaited_process(a, i);
		if (!process)
			continue;
		if (missed_has(process, time_ns))
			r = missed_exec(a, process, hart);
		else if (census_is_other(a, process))
			r = become(a, process, time_ns, hart);
		i++;
	}
	return r;
}

int missed_drained(struct attribute *a, uint64_t now_ns)
{
	int r = 0;

	for (size_t i = 0; a->o.per_task && i < a->n_awaited && r == 0;) {
		struct task *process = awaited_process(a, i);
		if (!process)
			continue;
		struct awaited *w = &a->awaited[i];
		if (w->seen_ns)
			r = become(a, process, w->seen_ns, 0);
		else if (census_is_other(a, process))
			w->seen_ns = now_ns;
		i++;
	}
	return r;
}
