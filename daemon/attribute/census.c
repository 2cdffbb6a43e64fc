/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The census: live processes, read from /proc
 *
 * Taken once, after the events were enabled, so that no process starts unseen in between; and again
 * for a single process when a record names an unknown one. A process may disappear at any moment,
 * so each text that cannot be read is simply missing. Known values stay: records are more exact
 * than ticks.
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
#include "proto/clock.h"
#include "proto/hash.h"
#include "proto/memory.h"

/* Mappings that changed meanwhile come in records of their own; only lost ones have to wait. */
#define MAPS_READ_EVERY_NS 1000000000u
#define ANCESTORS_MAX 4096 /* walked up from a process; a longer chain must be a circle */

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Find or add the task of that stat. 0, TASK_TABLE_FULL, -ENOMEM. */
static int census_task(
	struct attribute *a, pid_t pid, const struct scan_stat *stat, struct task **ret_task)
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
	int r = task_add(a->o.tasks, pid, stat->pid, start_ns, &task);
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

static int argv_read(int folder_fd, struct task *process)
{
	char *argv;
	uint32_t n_argv;

	int r = proc_argv(folder_fd, &argv, &n_argv);
	if (r)
		return r;
	free(process->argv);
	process->argv = argv;
	process->n_argv = n_argv;
	process->changed = true;
	return 0;
}

/* 0, also if it cannot be read; -ENOMEM. */
static int owner_read(struct attribute *a, int folder_fd, struct task **process)
{
	struct rights rights;

	if (a->o.rights(folder_fd, proc_account(*process), &rights))
		return 0;
	return owner_set(a, process, &rights, clock_ns(CLOCK_MONOTONIC));
}

int census_argv(struct attribute *a, struct task **process)
{
	_cleanup_(closep) int folder_fd = proc_folder(a, (*process)->pid);
	if (folder_fd < 0)
		return PROC_GONE;

	/* an exec sets the owner before the arguments: once they are in place, the owner is the new
	 * one */
	int r = argv_read(folder_fd, *process);
	if (r == 0)
		r = owner_read(a, folder_fd, process);
	return r ? r : job_read(a, process, folder_fd);
}

static int exe_read(int folder_fd, struct task *process)
{
	char path[PATH_MAX];

	if (process->exe || !proc_exe(folder_fd, path))
		return 0;
	process->exe = strdup(path);
	process->changed = true;
	return process->exe ? 0 : -ENOMEM;
}

/* Each unknown thread has its process read; of many threads, the mappings are the same. */
static int maps_read(struct attribute *a, int folder_fd, struct task *process)
{
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
	if (process->maps_read_ns && time_ns < process->maps_read_ns + MAPS_READ_EVERY_NS)
		return 0;
	process->maps_read_ns = time_ns;
	char line[SCAN_LINE_BYTES_MAX];
	int fd = openat(folder_fd, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool begins = true;

	if (fd >= 0 && !f)
		close(fd);
	for (int i = 0; f && i < SCAN_MAPS_MAX && fgets(line, sizeof(line), f); i++) {
		bool whole = begins;
		struct scan_map m;

		begins = strchr(line, '\n');
		if (!whole || scan_map_parse(line, &m) || !m.executable)
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
	return 0;
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

static int cgroup_read(struct attribute *a, int folder_fd, struct task *process)
{
	char text[SCAN_STAT_BYTES_MAX], path[SCAN_STAT_BYTES_MAX];
	enum scan_hierarchy hierarchy;

	if (scan_text(folder_fd, "cgroup", text, sizeof(text)) <= 0 ||
		scan_cgroup_parse(text, &hierarchy, path))
		return 0;

	uint64_t id = cgroup_id(a, hierarchy, path);
	int r = cgroup_set(a->o.tasks, id, path);
	if (r > 0)
		lose(a, 0, LOSS_ROOM, 1);
	if (r)
		return r < 0 ? r : 0;

	process->cgroup = id;
	process->changed = true;
	return 0;
}

static int details_read(struct attribute *a, int folder_fd, struct task **at)
{
	int r = owner_read(a, folder_fd, at);
	struct task *process = *at;
	if (r == 0 && !process->cgroup)
		r = cgroup_read(a, folder_fd, process);
	if (r < 0 || process->kernel_thread)
		return r;

	r = argv_read(folder_fd, process);
	if (r >= 0)
		r = exe_read(folder_fd, process);
	if (r >= 0)
		r = maps_read(a, folder_fd, process);
	return r < 0 ? r : job_read(a, at, folder_fd);
}

/* The pid that the name spells; 0: none. */
static pid_t name_pid(const char *name)
{
	uint64_t pid;

	return scan_number(&name, 10, &pid) && !*name && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int threads_read(struct attribute *a, int folder_fd, struct task *process)
{
	int fd = openat(folder_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !d)
		close(fd);
	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t tid = name_pid(e->d_name);
		char name[64];
		struct scan_stat stat;
		struct task *thread;

		if (!tid || tid == process->pid)
			continue;
		snprintf(name, sizeof(name), "%d/stat", (int)tid);
		if (!proc_stat(dirfd(d), name, &stat) || stat.pid != tid)
			continue;

		int r = census_task(a, process->pid, &stat, &thread);
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

/* Its FORK was not seen. */
static void inherit_labels(struct task *process)
{
	if (process->parent)
		task_inherit_labels(process, process->parent);
}

int census_process(struct attribute *a, pid_t pid, pid_t *ret_parent)
{
	_cleanup_(closep) int folder_fd = proc_folder(a, pid);
	struct scan_stat stat;
	struct task *process;

	if (folder_fd < 0 || !proc_stat(folder_fd, "stat", &stat) || stat.pid != pid)
		return PROC_GONE;
	int r = census_task(a, pid, &stat, &process);
	if (r == TASK_TABLE_FULL) {
		lose(a, 0, LOSS_ROOM, 1);
		return PROC_GONE;
	}
	if (r < 0)
		return r;

	if (!process->parent && stat.parent && stat.parent != pid) {
		struct task *parent = task_find(a->o.tasks, stat.parent);
		process->parent = parent ? parent->process : NULL;
		inherit_labels(process);
	}
	process->wanted |= descends_from_wanted(process);
	r = details_read(a, folder_fd, &process);
	if (r < 0)
		return r;
	if (ret_parent)
		*ret_parent = stat.parent;
	return threads_read(a, folder_fd, process);
}

int census_program(struct attribute *a, struct task **process)
{
	struct task *p = *process;
	_cleanup_(closep) int folder_fd = proc_folder(a, p->pid);
	struct scan_stat stat;

	if (folder_fd < 0 || !proc_stat(folder_fd, "stat", &stat) || stat.pid != p->pid ||
		!life_same_start(
			a, p, scan_start_ns(stat.start_ticks, a->tick_ns, a->suspended_ns)))
		return PROC_GONE;
	int r = owner_read(a, folder_fd, process);
	if (r < 0)
		return r;
	task_set_comm(*process, stat.comm);
	r = exe_read(folder_fd, *process);
	return r < 0 ? r : maps_read(a, folder_fd, *process);
}

/* --- all of them ------------------------------------------------------------------------------ */

struct orphan {
	pid_t pid, parent;
};

struct orphans {
	struct orphan *orphan;
	size_t n_orphans, size;
};

static int orphans_add(struct orphans *o, pid_t pid, pid_t parent)
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

static int census_all(struct attribute *a, struct orphans *ret_orphans)
{
	_cleanup_(closedirp) DIR *d = opendir(a->o.proc);
	if (!d)
		return -errno;

	for (struct dirent *e; (e = readdir(d));) {
		pid_t pid = name_pid(e->d_name), parent = 0;
		if (!pid)
			continue;

		int r = census_process(a, pid, &parent);
		/* pids wrap around, so a parent may come after its child */
		if (!r && parent && !task_find(a->o.tasks, pid)->parent)
			r = orphans_add(ret_orphans, pid, parent);
		if (r < 0)
			return r;
	}
	return 0;
}

static void census_parents(struct attribute *a, const struct orphans *o)
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

static void census_wanted(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	struct task_table *t = a->o.tasks;

	for (size_t i = 0; i < n_pids; i++) {
		struct task *task = task_find(t, pids[i]);
		if (task && a->o.after_exec && !task->wanted)
			exec_await(a, pids[i]);
		else if (task)
			task->wanted = true;
	}
	/* leaders first, then threads, which look up their leader */
	for (struct task *task = t->live; task; task = task->hh.next)
		if (task->process == task)
			task->wanted |= descends_from_wanted(task);
	for (struct task *task = t->live; task; task = task->hh.next)
		task->wanted |= task->process->wanted;
}

int attribute_scan(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	struct orphans orphans = {0};

	int r = census_cgroups(a);
	if (!r)
		r = census_all(a, &orphans);
	if (!r) {
		census_parents(a, &orphans);
		census_wanted(a, pids, n_pids);
	}
	free(orphans.orphan);
	return r;
}
