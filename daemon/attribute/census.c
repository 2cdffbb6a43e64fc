/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The census of one process: it is read from /proc, and entered with its threads
 *
 * At the start, all processes are read after the events were enabled, so that no process begins unseen between
 * the two (census_scan.c). Later a process is read when a record names an unknown one. A process may disappear
 * at any moment, so each text that cannot be read is simply missing. Known values stay: records are more exact
 * than ticks.
 */

#include <errno.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/scan.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Interval between readings of a process's mappings. Later changes come in records; only changes whose record
 * was lost have to wait. */
#define MAPS_READ_EVERY_NS 1000000000u
/* Unknown ancestors of a process that are read. A process with more is not found to descend from a target. */
#define KIN_MAX 64u
/* Ancestors walked up from a process; a longer chain must be a circle. */
#define ANCESTORS_MAX 4096

/* Find or add the task that a stat file describes. 0, TASK_TABLE_FULL, -ENOMEM. */
static int census_task(struct attribute *a, pid_t pid, const struct scan_stat *stat, uid_t place_of,
	struct task **ret_task)
{
	uint64_t start_ns = life_start_ns(a->lives, stat->start_ticks);
	struct task *task = task_find(a->o.tasks, stat->pid);

	if (task && task->pid == pid && life_same_start(a->lives, task, start_ns)) {
		if (!task->comm[0])
			task_set_comm(task, stat->comm);
		*ret_task = task;
		return 0;
	}

	if (task)
		life_end(a, task, start_ns, 0);
	const struct task_key key = {pid, stat->pid, start_ns};
	int r = task_add_for(a->o.tasks, &key, place_of, &task);
	if (r)
		return r;
	task_set_comm(task, stat->comm);
	task->kernel_thread = stat->kernel_thread;
	if (task->kernel_thread)
		task->account = 0;
	*ret_task = task;
	return 0;
}

/* --- one process ------------------------------------------------------------------------------ */

static void argv_take(struct task *process, struct proc_view *v)
{
	if (!(v->has & PROC_ARGV))
		return;
	free(process->argv);
	process->argv = TAKE_PTR(v->argv);
	process->n_argv = v->n_argv;
	process->changed = true;
}

/* Set the owner, if it was read. 0 or -ENOMEM. */
static int owner_take(struct attribute *a, struct task **process, const struct proc_view *v)
{
	return v->has & PROC_RIGHTS ? owner_set(a, process, &v->rights, v->rights_ns) : 0;
}

int census_argv(struct attribute *a, struct task **process)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	unsigned wants = PROC_ARGV | PROC_RIGHTS | (job_wants(&a->o, *process) ? PROC_ENVIRON : 0);

	int r = proc_read(&a->o, (*process)->pid, wants, &v);
	if (r != 0)
		return r;
	if (!(v.has & PROC_ARGV))
		return v.no_argv ? PROC_EMPTY : PROC_GONE;
	argv_take(*process, &v);
	r = owner_take(a, process, &v);
	return r ? r : job_read(a, process, &v);
}

static void exe_take(struct task *process, struct proc_view *v)
{
	if (process->exe || !(v->has & PROC_EXE))
		return;
	process->exe = TAKE_PTR(v->exe);
	process->memfd_inode = v->memfd_inode;
	process->changed = true;
}

/* Each unknown thread makes us read its process again, but all threads have the same mappings. */
static bool wants_maps(const struct task *process, uint64_t now_ns)
{
	return !process->maps_read_ns || now_ns >= process->maps_read_ns + MAPS_READ_EVERY_NS;
}

/* Take the process's mappings as they were at time_ns, or later. */
static int maps_take(
	struct attribute *a, struct task *process, struct proc_view *v, uint64_t time_ns)
{
	if (!(v->has & PROC_MAPS))
		return 0;
	process->maps_read_ns = time_ns;
	for (char *line = v->maps, *next; *line; line = next) {
		struct scan_map m;

		next = strchr(line, '\n') + 1; /* each line has one */
		next[-1] = '\0';
		if (scan_map_parse(line, &m) || !m.executable)
			continue;

		struct record_mmap map = {
			.start = m.start,
			.bytes = m.end - m.start,
			.file_offset = m.file_offset,
			.major = m.major,
			.minor = m.minor,
			.inode = m.inode,
			.executable = true,
			.path = m.path,
		};
		int r = mapping_enter(a, process, &map, time_ns, 0);
		if (r < 0)
			return r;
	}
	int r = remapped_fill(&a->o, process);
	return r < 0 ? r : 0;
}

/* Name the cgroup of a process. *ret_id: its id; 0: it is not known, or has no room. 0 or
 * -ENOMEM. */
static int cgroup_take(struct attribute *a, const struct task *process, const struct proc_view *v,
	uint64_t *ret_id)
{
	char path[SCAN_STAT_BYTES_MAX];
	enum scan_hierarchy hierarchy;

	*ret_id = 0;
	if (!(v->has & PROC_CGROUP) || scan_cgroup_parse(v->cgroup, &hierarchy, path))
		return 0;

	uint64_t id = cgroup_root_id(a->cgroups, hierarchy, path);
	int r = cgroup_set(a->o.tasks, id, path, task_account(process));
	if (r > 0)
		lose(&a->o, 0, LOSS_ROOM, 1);
	if (r == 0)
		*ret_id = id;
	return r < 0 ? r : 0;
}

int census_cgroup(struct attribute *a, struct task *process)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	uint64_t id;

	return proc_read(&a->o, process->pid, PROC_CGROUP, &v) == 0
		       ? cgroup_take(a, process, &v, &id)
		       : 0;
}

static int details_take(
	struct attribute *a, struct task **at, struct proc_view *v, uint64_t time_ns)
{
	int r = owner_take(a, at, v);
	struct task *process = *at;
	if (r == 0 && !process->cgroup) {
		r = cgroup_take(a, process, v, &process->cgroup);
		process->changed = true;
	}
	if (r < 0 || process->kernel_thread)
		return r;

	argv_take(process, v);
	exe_take(process, v);
	r = maps_take(a, process, v, time_ns);
	return r < 0 ? r : job_read(a, at, v);
}

static int threads_take(struct attribute *a, struct task *process, const struct proc_view *v)
{
	for (size_t i = 0; i < v->n_threads; i++) {
		struct task *thread;

		if (v->thread[i].stat.pid == process->pid)
			continue;
		int r = census_task(
			a, process->pid, &v->thread[i].stat, task_account(process), &thread);
		if (r == TASK_TABLE_FULL)
			lose(&a->o, 0, LOSS_ROOM, 1);
		if (r)
			return r < 0 ? r : 0;
		thread->uid = process->uid;
		thread->gid = process->gid;
		thread->cgroup = process->cgroup;
		thread->wanted |= process->wanted;
	}
	return 0;
}

bool census_is_kin_of_wanted(const struct task *process)
{
	const struct task *ancestor = process->parent;

	for (int i = 0; ancestor && i < ANCESTORS_MAX; i++, ancestor = ancestor->parent)
		if (ancestor->wanted)
			return true;
	return false;
}

void census_set_parent(struct task *process, struct task *parent)
{
	process->parent = parent;
	task_inherit_labels(process, parent);
}

/* The parts (PROC_*) of the process that are not known yet; known: its task, or NULL. */
static unsigned wants_of(const struct attribute *a, const struct task *known, uint64_t now_ns)
{
	unsigned wants = PROC_STAT | PROC_RIGHTS | PROC_ARGV | PROC_THREADS;

	if (!known || !known->cgroup)
		wants |= PROC_CGROUP;
	if (!known || !known->exe)
		wants |= PROC_EXE;
	if (!known || wants_maps(known, now_ns))
		wants |= PROC_MAPS;
	return wants | (job_wants(&a->o, known) ? PROC_ENVIRON : 0);
}

static int process_take(
	struct attribute *a, pid_t pid, struct proc_view *v, uint64_t time_ns, pid_t *ret_parent)
{
	struct task *process;

	if (!(v->has & PROC_STAT) || v->stat.pid != pid)
		return PROC_GONE;
	const uid_t account = v->has & PROC_RIGHTS ? v->rights.account : ACCOUNT_NOBODY;
	int r = census_task(a, pid, &v->stat, account, &process);
	if (r == TASK_TABLE_FULL) {
		lose(&a->o, 0, LOSS_ROOM, 1);
		return PROC_GONE;
	}
	if (r < 0)
		return r;

	pid_t parent_pid = v->stat.parent;
	if (!process->parent && parent_pid && parent_pid != pid) {
		struct task *parent = task_find(a->o.tasks, parent_pid);
		if (parent)
			census_set_parent(process, parent->process);
	}
	process->wanted |= census_is_kin_of_wanted(process);
	r = details_take(a, &process, v, time_ns);
	if (r < 0)
		return r;
	if (ret_parent)
		*ret_parent = parent_pid;
	return threads_take(a, process, v);
}

int census_read(struct attribute *a, const struct unanswered_pid *p, pid_t *ret_parent,
	struct census_children *ret_children)
{
	const pid_t pid = p->pid;
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
	const struct task *known = task_find(a->o.tasks, pid);

	unsigned wants = wants_of(a, known && known->pid == pid ? known : NULL, time_ns);
	int r = proc_read(&a->o, pid, wants | (ret_children ? PROC_CHILDREN : 0), &v);
	if (r == PROC_SILENT)
		unanswered_add(a->unanswered, p);
	if (r == 0)
		r = process_take(a, pid, &v, time_ns, ret_parent);
	if (r == 0 && ret_children) {
		ret_children->listed = v.has & PROC_CHILDREN;
		ret_children->n = v.n_children;
		ret_children->pid = TAKE_PTR(v.child);
	}
	return r;
}

int census_process(struct attribute *a, pid_t pid, pid_t *ret_parent)
{
	return census_read(a, &(struct unanswered_pid){.pid = pid}, ret_parent, NULL);
}

/* Read the eldest first, so that descendants of a wanted one are wanted. */
int census_kin(struct attribute *a, pid_t pid)
{
	pid_t kin[KIN_MAX];
	size_t n = 0;
	int r = 0;

	while (r == 0 && pid > 0 && n < KIN_MAX && (n == 0 || !task_find(a->o.tasks, pid))) {
		_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
		kin[n++] = pid;
		r = proc_read(&a->o, pid, PROC_STAT, &v);
		pid = v.has & PROC_STAT ? v.stat.parent : 0;
	}
	while (n > 0 && r >= 0)
		r = census_process(a, kin[--n], NULL);
	return r;
}

int census_program(struct attribute *a, struct task **process)
{
	struct task *p = *process;
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
	unsigned wants =
		PROC_STAT | PROC_RIGHTS | PROC_EXE | (wants_maps(p, time_ns) ? PROC_MAPS : 0);

	int r = proc_read(&a->o, p->pid, wants, &v);
	if (r)
		return r;
	if (!(v.has & PROC_STAT) || v.stat.pid != p->pid ||
		!life_same_start(a->lives, p, life_start_ns(a->lives, v.stat.start_ticks)))
		return PROC_GONE;
	r = owner_take(a, process, &v);
	if (r < 0)
		return r;
	task_set_comm(*process, v.stat.comm);
	exe_take(*process, &v);
	return maps_take(a, *process, &v, time_ns);
}
