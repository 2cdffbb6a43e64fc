/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A process in /proc
 *
 * This only reads and changes no state. A process may disappear at any moment, so each text that cannot
 * be read is simply missing. A process that does not answer is counted.
 */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/memory.h"

/* Source: man 2 kill: signal 0 only checks; EPERM means that it lives. */
bool proc_is_gone(pid_t pid)
{
	return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

bool proc_is_there(const struct attribute *a, pid_t pid)
{
	char folder[PATH_MAX];

	if (a->o.is_gone && a->o.is_gone(pid))
		return false;
	snprintf(folder, sizeof(folder), "%s/%d", a->o.proc, (int)pid);
	return access(folder, F_OK) == 0;
}

/* Read the parts of that process that the question wants. Returns as proc_reader_ask does. */
static int ask(struct attribute *a, pid_t pid, struct proc_question q, struct proc_view *ret_view)
{
	char folder[PATH_MAX];

	if (a->o.is_gone && a->o.is_gone(pid))
		return PROC_GONE;
	snprintf(folder, sizeof(folder), "%s/%d", a->o.proc, (int)pid);
	q.folder = folder;
	q.pid = pid;
	q.account = proc_account(task_find(a->o.tasks, pid));
	q.rights = a->o.rights;
	return proc_reader_ask(a->o.reader, &q, ret_view);
}

int proc_read(struct attribute *a, pid_t pid, unsigned wants, struct proc_view *ret_view)
{
	int r = ask(a, pid, (struct proc_question){.wants = wants}, ret_view);
	if (r == PROC_SILENT)
		lose(a, 0, LOSS_SILENT, 1);
	return r;
}

int proc_rights(struct attribute *a, pid_t pid, struct rights *ret_rights)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};

	int r = proc_read(a, pid, PROC_RIGHTS, &v);
	if (r != 0 || !(v.has & PROC_RIGHTS))
		return r == PROC_SILENT ? r : RIGHTS_GONE;
	*ret_rights = v.rights;
	return 0;
}

int proc_compare(struct attribute *a, pid_t pid, const struct map *m)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};

	int r = ask(a, pid,
		(struct proc_question){
			.wants = PROC_TEXT, .text = {m->start, m->end - m->start, m->file_offset}},
		&v);
	if (r != 0 || !(v.has & PROC_TEXT))
		return r ? r : PROC_SILENT;
	return v.text_is_same ? PROC_SAME : PROC_OTHER;
}

int proc_exec(struct attribute *a, pid_t pid, struct exec_text *ret_text)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};

	int r = proc_read(a, pid, PROC_ARGV | PROC_RIGHTS, &v);
	if (r != 0)
		return r;
	if (!(v.has & PROC_ARGV))
		return v.no_argv ? PROC_EMPTY : PROC_GONE;
	*ret_text = (struct exec_text){
		.n_argv = v.n_argv,
		.rights = v.rights,
		.has_rights = v.has & PROC_RIGHTS,
	};
	ret_text->argv = TAKE_PTR(v.argv);
	return 0;
}

bool proc_is_other(struct attribute *a, const struct task *process)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	unsigned wants = (process->exe ? PROC_EXE : 0) | (process->argv ? PROC_ARGV : 0);

	if (wants == 0 || proc_read(a, process->pid, wants, &v) != 0)
		return false;
	if ((v.has & PROC_EXE) && strcmp(v.exe, process->exe) != 0)
		return true;
	return (v.has & PROC_ARGV) &&
	       (v.n_argv != process->n_argv || memcmp(v.argv, process->argv, process->n_argv) != 0);
}
