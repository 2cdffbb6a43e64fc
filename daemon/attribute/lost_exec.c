/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Execs whose record was lost
 *
 * A ring that is full at the moment of an exec loses its COMM and the mappings that follow. A
 * recording that waits for that exec would wait for ever, and later samples would be looked up in
 * the mappings of the former program. Three signs reveal it:
 *
 *   - The exec was reported early, through a ring of its own, and a sample of a later time comes
 *     through the merge before its record does. Records come in order of time, so it will not come.
 *   - A LOST record: /proc is read for processes that await their exec.
 *   - A session per task has no such ring, and a LOST record comes only once the task runs again on
 *     that hart. So there, while a process awaits its exec, /proc is read after each drain. The
 *     record of the exec that it shows may still be in a ring, so one more drain must pass before it counts.
 *
 * A record that was only late finds its exec done, and changes nothing.
 */

#include "daemon/attribute/attribute_private.h"

static int become(struct attribute *a, struct task *process, uint64_t time_ns, int hart)
{
	pid_t pid = process->pid;
	struct task *before = process;

	int r = life_leave(a, &process, time_ns, hart);
	if (r < 0)
		return r;
	if (process != before)
		owner_leave(before, time_ns);
	sideband_exec(a, process, time_ns, hart);
	process = task_find(a->o.tasks, pid); /* another one if its owner changed */
	if (!process)
		return 0;
	process->heard_ns = 0;
	process->missed_ns = time_ns;
	r = census_program(a, &process);
	return r < 0 ? r : 0;
}

int missed_exec(struct attribute *a, struct task *process, int hart)
{
	return become(a, process, process->heard_ns, hart);
}

/* The process of an entry; NULL: it has exec'd or is gone, and the entry was removed. */
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
		else if (proc_is_other(a, process))
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
		else if (proc_is_other(a, process))
			w->seen_ns = now_ns;
		i++;
	}
	return r;
}
