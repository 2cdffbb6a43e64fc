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
 *     that hart. So there, while a process awaits its exec, /proc is read after each drain. The record of an
 *     exec found in this way may still be in a ring, so the exec counts only after one more drain.
 *
 * A record that was only late finds its exec done, and changes nothing.
 */

#include <string.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/memory.h"

/* Processes that await their exec: recordings' commands, TARGETS_MAX of each. */
#define AWAITED_MAX 256

struct awaited {
	pid_t pid;
	uint64_t other_ns; /* when it was seen running another program without a record; 0: never */
};

struct awaited_execs {
	struct awaited exec[AWAITED_MAX]; /* in no order */
	size_t n;
};

struct awaited_execs *lost_exec_new(void)
{
	return calloc(1, sizeof(struct awaited_execs));
}

size_t lost_exec_n_awaited(const struct awaited_execs *w)
{
	return w->n;
}

uint64_t lost_exec_other_ns(const struct awaited_execs *w)
{
	return w->n ? w->exec[0].other_ns : 0;
}

void lost_exec_await(struct attribute *a, pid_t pid)
{
	struct awaited_execs *w = a->awaited;
	struct task *task = task_find(a->o.tasks, pid);

	if (!task || task->process != task)
		return;
	task->awaits_exec = true;
	for (size_t i = 0; i < w->n; i++)
		if (w->exec[i].pid == pid)
			return;
	if (w->n < AWAITED_MAX)
		w->exec[w->n++] = (struct awaited){.pid = pid};
}

void attribute_await_exec(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	for (size_t i = 0; i < n_pids; i++)
		lost_exec_await(a, pids[i]);
}

/* Does it run another program than the one we know? Decided by its file and its arguments; false if
 * it is gone. */
static bool is_other_program(const struct attribute *a, const struct task *process)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	unsigned wants = (process->exe ? PROC_EXE : 0) | (process->argv ? PROC_ARGV : 0);

	if (wants == 0 || proc_read(&a->o, process->pid, wants, &v) != 0)
		return false;
	if ((v.has & PROC_EXE) && strcmp(v.exe, process->exe) != 0)
		return true;
	return (v.has & PROC_ARGV) &&
	       (v.n_argv != process->n_argv || memcmp(v.argv, process->argv, process->n_argv) != 0);
}

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
	process = task_find(a->o.tasks, pid); /* another task if its owner changed */
	if (!process)
		return 0;
	process->reported_exec_ns = 0;
	process->lost_exec_ns = time_ns;
	r = census_program(a, &process);
	return r < 0 ? r : 0;
}

int lost_exec_take(struct attribute *a, struct task *process, int hart)
{
	return become(a, process, process->reported_exec_ns, hart);
}

/* The process of an entry; NULL: it has exec'd or is gone, and the entry was removed. */
static struct task *awaited_process(struct attribute *a, size_t i)
{
	struct awaited_execs *w = a->awaited;
	struct task *task = task_find(a->o.tasks, w->exec[i].pid);

	if (task && task->process == task && task->awaits_exec)
		return task;
	w->exec[i] = w->exec[--w->n];
	return NULL;
}

int lost_exec_look(struct attribute *a, uint64_t time_ns, int hart)
{
	int r = 0;

	for (size_t i = 0; i < a->awaited->n && r == 0;) {
		struct task *process = awaited_process(a, i);
		if (!process)
			continue;
		if (lost_exec_shows(process, time_ns))
			r = lost_exec_take(a, process, hart);
		else if (is_other_program(a, process))
			r = become(a, process, time_ns, hart);
		i++;
	}
	return r;
}

int lost_exec_drained(struct attribute *a, uint64_t now_ns)
{
	int r = 0;

	for (size_t i = 0; a->o.per_task && i < a->awaited->n && r == 0;) {
		struct task *process = awaited_process(a, i);
		if (!process)
			continue;
		struct awaited *w = &a->awaited->exec[i];
		if (w->other_ns)
			r = become(a, process, w->other_ns, 0);
		else if (is_other_program(a, process))
			w->other_ns = now_ns;
		i++;
	}
	return r;
}
