/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The census: live processes, read from /proc
 *
 * We take it once, after the events were enabled, so that no process starts unseen in between; and again
 * for a single process when a record names an unknown one. A process may disappear at any moment, so each
 * text that cannot be read is simply missing. Known values stay: records are more exact than ticks.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/scan.h"
#include "proto/base/clock.h"
#include "proto/base/hash.h"
#include "proto/base/memory.h"

/* Interval between readings of a process's mappings. Later changes come in records; only changes whose record
 * was lost have to wait. */
#define MAPS_READ_EVERY_NS 1000000000u
/* The wait before a process that did not answer is asked again, which costs a system call if it is still blocked. */
#define SILENT_AGAIN_NS 1000000000u
#define KIN_MAX                                                                                    \
	64u /* read of a process's unknown ancestors; a process with more is not found to descend from a target */
#define ANCESTORS_MAX 4096 /* walked up from a process; a longer chain must be a circle */

/* Find or add the task of that stat. 0, TASK_TABLE_FULL, -ENOMEM. */
static int census_task(struct attribute *a, pid_t pid, const struct scan_stat *stat, uid_t place_of,
	struct task **ret_task)
{
	uint64_t start_ns = scan_start_ns(stat->start_ticks, a->tick_ns, a->suspended_ns);
	struct task *task = task_find(a->o.tasks, stat->pid);

	if (task && task->pid == pid && life_same_start(a, task, start_ns)) {
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

/* 0, also if it was not read; -ENOMEM. */
static int owner_take(struct attribute *a, struct task **process, const struct proc_view *v)
{
	return v->has & PROC_RIGHTS ? owner_set(a, process, &v->rights, v->rights_ns) : 0;
}

int census_argv(struct attribute *a, struct task **process)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	unsigned wants = PROC_ARGV | PROC_RIGHTS | (job_wants(a, *process) ? PROC_ENVIRON : 0);

	int r = proc_read(a, (*process)->pid, wants, &v);
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

/* Each unknown thread has its process read; of many threads, the mappings are the same. */
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
	int r = remapped_fill(a, process);
	return r < 0 ? r : 0;
}

/* The id of a cgroup path: the inode of its folder if perf's ids refer to that hierarchy; else a
 * number of our own with the highest bit set, which no kernel inode has. */
static uint64_t cgroup_id(
	const struct attribute *a, enum scan_hierarchy hierarchy, const char *path)
{
	bool perf_has = hierarchy == (a->cgroup_root_is_v1 ? SCAN_PERF_EVENT : SCAN_UNIFIED);
	struct stat st;

	if (perf_has && a->cgroup_root_fd >= 0 && !strstr(path, "/..") &&
		!fstatat(a->cgroup_root_fd, path[1] ? path + 1 : ".", &st, 0))
		return st.st_ino;
	return hash_bytes(path, strlen(path)) | UINT64_C(1) << 63;
}

/* Name the cgroup of a process. *ret_id: its; 0: it is not known, or has no room. 0 or -ENOMEM. */
static int cgroup_take(struct attribute *a, const struct task *process, const struct proc_view *v,
	uint64_t *ret_id)
{
	char path[SCAN_STAT_BYTES_MAX];
	enum scan_hierarchy hierarchy;

	*ret_id = 0;
	if (!(v->has & PROC_CGROUP) || scan_cgroup_parse(v->cgroup, &hierarchy, path))
		return 0;

	uint64_t id = cgroup_id(a, hierarchy, path);
	int r = cgroup_set(a->o.tasks, id, path, task_account(process));
	if (r > 0)
		lose(a, 0, LOSS_ROOM, 1);
	if (r == 0)
		*ret_id = id;
	return r < 0 ? r : 0;
}

int census_cgroup(struct attribute *a, struct task *process)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	uint64_t id;

	return proc_read(a, process->pid, PROC_CGROUP, &v) == 0 ? cgroup_take(a, process, &v, &id)
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

/* The pid that the name spells; 0: none. */
static pid_t name_pid(const char *name)
{
	uint64_t pid;

	return scan_number(&name, 10, &pid) && !*name && pid <= INT32_MAX ? (pid_t)pid : 0;
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
			lose(a, 0, LOSS_ROOM, 1);
		if (r)
			return r < 0 ? r : 0;
		thread->uid = process->uid;
		thread->gid = process->gid;
		thread->cgroup = process->cgroup;
		thread->wanted |= process->wanted;
	}
	return 0;
}

/* Descendants of a wanted task are wanted. */
static bool descends_from_wanted(const struct task *process)
{
	const struct task *ancestor = process->parent;

	for (int i = 0; ancestor && i < ANCESTORS_MAX; i++, ancestor = ancestor->parent)
		if (ancestor->wanted)
			return true;
	return false;
}

/* Take the parent's labels, since the FORK of the process was not seen. */
static void inherit_labels(struct task *process)
{
	if (process->parent)
		task_inherit_labels(process, process->parent);
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
	return wants | (job_wants(a, known) ? PROC_ENVIRON : 0);
}

/* Remember a silent process to read it again later, unless it was read too often. */
static void note_silent(struct attribute *a, const struct silent *s)
{
	for (size_t i = 0; i < a->n_silent; i++)
		if (a->silent[i].pid == s->pid)
			return;
	if (a->n_silent < SILENT_MAX && s->n_tries < SILENT_TRIES_MAX)
		a->silent[a->n_silent++] = *s;
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
		lose(a, 0, LOSS_ROOM, 1);
		return PROC_GONE;
	}
	if (r < 0)
		return r;

	pid_t parent_pid = v->stat.parent;
	if (!process->parent && parent_pid && parent_pid != pid) {
		struct task *parent = task_find(a->o.tasks, parent_pid);
		process->parent = parent ? parent->process : NULL;
		inherit_labels(process);
	}
	process->wanted |= descends_from_wanted(process);
	r = details_take(a, &process, v, time_ns);
	if (r < 0)
		return r;
	if (ret_parent)
		*ret_parent = parent_pid;
	return threads_take(a, process, v);
}

struct orphan {
	pid_t pid, parent;
};

/* A scan under way. */
struct census {
	DIR *dir;   /* of /proc; NULL: only `pid` are read */
	pid_t *pid; /* the named processes, and behind them their descendants */
	size_t n_pids, n_named, size_pids, at;
	bool unlisted; /* the kernel does not list children */
	struct orphan *orphan;
	size_t n_orphans, size;
};

/* Add its children to the processes to read. */
static int children_take(struct census *c, const struct proc_view *v)
{
	size_t n = c->n_pids + v->n_children;

	if (n > c->size_pids) {
		size_t size = 2 * n;
		pid_t *pid = reallocarray(c->pid, size, sizeof(*pid));
		if (!pid)
			return -ENOMEM;
		c->pid = pid;
		c->size_pids = size;
	}
	if (v->n_children > 0 && n <= TASKS_MAX) {
		memcpy(c->pid + c->n_pids, v->child, v->n_children * sizeof(*v->child));
		c->n_pids = n;
	}
	return 0;
}

/* c: the scan for which it is read; NULL: none that wants its children. */
static int ask_process(
	struct attribute *a, const struct silent *asked, struct census *c, pid_t *ret_parent)
{
	const pid_t pid = asked->pid;
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
	const struct task *known = task_find(a->o.tasks, pid);

	unsigned wants = wants_of(a, known && known->pid == pid ? known : NULL, time_ns);
	int r = proc_read(a, pid, wants | (c ? PROC_CHILDREN : 0), &v);
	if (r == PROC_SILENT)
		note_silent(a, asked);
	if (r == 0)
		r = process_take(a, pid, &v, time_ns, ret_parent);
	if (r == 0 && c && (v.has & PROC_CHILDREN))
		r = children_take(c, &v);
	else if (r == 0 && c)
		c->unlisted = true;
	return r;
}

int census_process(struct attribute *a, pid_t pid, pid_t *ret_parent)
{
	return ask_process(a, &(struct silent){.pid = pid}, NULL, ret_parent);
}

/* Read a process and its unknown ancestors, the eldest first, so that descendants of a wanted one are wanted. */
int census_kin(struct attribute *a, pid_t pid)
{
	pid_t kin[KIN_MAX];
	size_t n = 0;
	int r = 0;

	while (r == 0 && pid > 0 && n < KIN_MAX && (n == 0 || !task_find(a->o.tasks, pid))) {
		_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
		kin[n++] = pid;
		r = proc_read(a, pid, PROC_STAT, &v);
		pid = v.has & PROC_STAT ? v.stat.parent : 0;
	}
	while (n > 0 && r >= 0)
		r = census_process(a, kin[--n], NULL);
	return r;
}

/* Mark these processes and their descendants as wanted, now or from their exec on. */
static void want(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	struct task_table *t = a->o.tasks;

	for (size_t i = 0; i < n_pids; i++) {
		struct task *task = task_find(t, pids[i]);
		if (task && a->o.after_exec && !task->wanted)
			exec_await(a, pids[i]);
		else if (task)
			task->wanted = true;
		for (size_t k = 0; !task && k < a->n_silent; k++)
			a->silent[k].is_target |= a->silent[k].pid == pids[i];
	}
	/* leaders first, then threads, which look up their leader */
	for (struct task *task = t->live; task; task = task->hh.next)
		if (task->process == task)
			task->wanted |= descends_from_wanted(task);
	for (struct task *task = t->live; task; task = task->hh.next)
		task->wanted |= task->process->wanted;
}

/* Make a process that has answered the parent of those of its children that were found meanwhile. Read the others
 * the next time. */
static void adopt(struct attribute *a, pid_t pid, const struct census *c)
{
	struct task *parent = task_find(a->o.tasks, pid);

	for (size_t i = 0; parent && i < c->n_pids; i++) {
		struct task *child = task_find(a->o.tasks, c->pid[i]);
		if (!child)
			note_silent(a, &(struct silent){.pid = c->pid[i]});
		else if (child->process == child && child != parent->process && !child->parent) {
			child->parent = parent->process;
			inherit_labels(child);
		}
	}
}

static int ask_again(struct attribute *a, struct silent *s)
{
	struct census c = {.n_pids = 0};
	int r = ask_process(a, s, a->o.per_task ? NULL : &c, NULL);

	if (r == 0)
		adopt(a, s->pid, &c);
	free(c.pid);
	return r;
}

int census_silent(struct attribute *a, uint64_t now_ns)
{
	struct silent again[SILENT_MAX];
	pid_t target[SILENT_MAX];
	size_t n = a->n_silent, n_answers = 0, n_targets = 0;
	int r = 0;

	if (n == 0 || now_ns < a->silent_ns + SILENT_AGAIN_NS)
		return 0;
	a->silent_ns = now_ns;
	memcpy(again, a->silent, n * sizeof(*again));
	a->n_silent = 0;
	for (size_t i = 0; i < n && r >= 0; i++) {
		again[i].n_tries++;
		r = ask_again(a, &again[i]);
		n_answers += r == 0;
		if (r == 0 && again[i].is_target)
			target[n_targets++] = again[i].pid;
	}
	if (n_answers > 0)
		want(a, target, n_targets);
	return r < 0 ? r : 0;
}

int census_program(struct attribute *a, struct task **process)
{
	struct task *p = *process;
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
	unsigned wants =
		PROC_STAT | PROC_RIGHTS | PROC_EXE | (wants_maps(p, time_ns) ? PROC_MAPS : 0);

	int r = proc_read(a, p->pid, wants, &v);
	if (r)
		return r;
	if (!(v.has & PROC_STAT) || v.stat.pid != p->pid ||
		!life_same_start(
			a, p, scan_start_ns(v.stat.start_ticks, a->tick_ns, a->suspended_ns)))
		return PROC_GONE;
	r = owner_take(a, process, &v);
	if (r < 0)
		return r;
	task_set_comm(*process, v.stat.comm);
	exe_take(*process, &v);
	return maps_take(a, *process, &v, time_ns);
}

/* --- all of them ------------------------------------------------------------------------------ */

static int orphans_add(struct census *o, pid_t pid, pid_t parent)
{
	if (o->n_orphans == o->size) {
		size_t size = o->size ? o->size * 2 : 64;
		struct orphan *orphan = reallocarray(o->orphan, size, sizeof(*orphan));
		if (!orphan)
			return -ENOMEM;
		o->orphan = orphan;
		o->size = size;
	}
	o->orphan[o->n_orphans++] = (struct orphan){pid, parent};
	return 0;
}

/* Read the next process. CENSUS_END; 0; -errno. */
enum { CENSUS_END = 1 };
static int census_next(struct attribute *a, struct census *c)
{
	struct dirent *e = readdir(c->dir);
	pid_t pid = e ? name_pid(e->d_name) : 0, parent = 0;
	if (!pid)
		return e ? 0 : CENSUS_END;

	int r = census_process(a, pid, &parent);
	/* pids wrap around, so a parent may come after its child */
	if (!r && parent && !task_find(a->o.tasks, pid)->parent)
		r = orphans_add(c, pid, parent);
	return r < 0 ? r : 0;
}

/* Read the next of the named processes, with its descendants, in a session of some processes. Others, which may be
 * thousands of any user's, are read when a record mentions them. */
static int census_named(struct attribute *a, struct census *c)
{
	if (c->at == c->n_pids)
		return CENSUS_END;
	const struct silent asked = {.pid = c->pid[c->at++]};
	int r = ask_process(a, &asked, a->o.per_task ? NULL : c, NULL);
	if (r == 0 && c->unlisted && !c->dir) /* all are looked at */
		r = (c->dir = opendir(a->o.proc)) ? 0 : -errno;
	return r < 0 ? r : 0;
}

static void census_parents(struct attribute *a, const struct census *o)
{
	for (size_t i = 0; i < o->n_orphans; i++) {
		struct task *task = task_find(a->o.tasks, o->orphan[i].pid);
		struct task *parent = task_find(a->o.tasks, o->orphan[i].parent);

		if (task && parent && parent->process != task && !task->parent) {
			task->parent = parent->process;
			inherit_labels(task);
		}
	}
}

void census_free(struct attribute *a)
{
	struct census *c = a->census;
	if (!c)
		return;
	if (c->dir)
		closedir(c->dir);
	free(c->orphan);
	free(c->pid);
	free(c);
	a->census = NULL;
}

int attribute_scan_begin(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	census_free(a);
	const bool some = !a->o.all && n_pids > 0;
	int r = a->o.all ? census_cgroups(a) : 0;
	struct census *c = a->census = r == 0 ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return r ? r : -ENOMEM;
	c->pid = calloc(n_pids + 1, sizeof(*c->pid));
	c->n_pids = c->n_named = c->size_pids = c->pid ? n_pids : 0;
	if (c->n_pids > 0)
		memcpy(c->pid, pids, n_pids * sizeof(*pids));
	r = c->pid ? 0 : -ENOMEM;
	if (r == 0 && !some && !(c->dir = opendir(a->o.proc)))
		r = -errno;
	if (r < 0)
		census_free(a);
	return r;
}

bool attribute_scans(const struct attribute *a)
{
	return a->census;
}

int attribute_scan_next(struct attribute *a)
{
	struct census *c = a->census;
	int r = !c ? 0 : c->dir ? census_next(a, c) : census_named(a, c);
	if (r == CENSUS_END) {
		census_parents(a, c);
		want(a, c->pid, c->n_named);
	}
	if (r != 0)
		census_free(a);
	return r < 0 ? r : 0;
}

int attribute_scan(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	int r = attribute_scan_begin(a, pids, n_pids);
	while (r == 0 && attribute_scans(a))
		r = attribute_scan_next(a);
	return r;
}
