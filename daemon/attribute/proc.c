/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A process in /proc
 *
 * This file only reads, and changes no state. A process may disappear at any moment, so each text that
 * cannot be read is simply missing. A process that does not answer is counted.
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

bool proc_is_there(const struct attribute_options *o, pid_t pid)
{
	char folder[PATH_MAX];

	if (o->is_gone && o->is_gone(pid))
		return false;
	snprintf(folder, sizeof(folder), "%s/%d", o->proc, (int)pid);
	return access(folder, F_OK) == 0;
}

/* The process's account as known so far, with which rights_read may need one file less. If it was
 * not read since an exec: the account before the exec. */
static uid_t account_of(const struct task *task)
{
	const struct task *process = task ? task->process : NULL;

	if (!process)
		return ACCOUNT_NOBODY;
	return process->account != ACCOUNT_NOBODY ? process->account : process->past_account;
}

/* Read the requested parts of that process. Returns as proc_reader_ask does. */
static int read_parts(const struct attribute_options *o, pid_t pid, struct proc_question q,
	struct proc_view *ret_view)
{
	char folder[PATH_MAX];

	if (o->is_gone && o->is_gone(pid))
		return PROC_GONE;
	snprintf(folder, sizeof(folder), "%s/%d", o->proc, (int)pid);
	q.folder = folder;
	q.pid = pid;
	q.account = account_of(task_find(o->tasks, pid));
	q.rights = o->rights;
	return proc_reader_ask(o->reader, &q, ret_view);
}

int proc_read(
	const struct attribute_options *o, pid_t pid, unsigned wants, struct proc_view *ret_view)
{
	int r = read_parts(o, pid, (struct proc_question){.wants = wants}, ret_view);
	if (r == PROC_SILENT)
		lose(o, 0, LOSS_SILENT, 1);
	return r;
}

int proc_rights(const struct attribute_options *o, pid_t pid, struct rights *ret_rights)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};

	int r = proc_read(o, pid, PROC_RIGHTS, &v);
	if (r != 0 || !(v.has & PROC_RIGHTS))
		return r == PROC_SILENT ? r : RIGHTS_GONE;
	*ret_rights = v.rights;
	return 0;
}

int proc_compare(const struct attribute_options *o, pid_t pid, const struct map *m)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};

	int r = read_parts(o, pid,
		(struct proc_question){
			.wants = PROC_TEXT, .text = {m->start, m->end - m->start, m->file_offset}},
		&v);
	if (r != 0 || !(v.has & PROC_TEXT))
		return r ? r : PROC_SILENT;
	return v.text_is_same ? PROC_SAME : PROC_OTHER;
}
