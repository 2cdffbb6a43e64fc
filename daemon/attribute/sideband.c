/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Side-band records: who lives, and what is mapped
 *
 * The records tell a story of each process in order of time, beginning at the moment the events
 * were enabled; /proc tells the end of it as of the scan, a little later. Both are kept, so each
 * record must be harmless when it says what /proc said already: a FORK of a task that began at
 * that very time changes nothing, a mapping that is there is no change, an exec is followed by the
 * records of all that it mapped. Only a start at another time makes a tid another task.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/mapping.h"
#include "daemon/attribute/station.h"
#include "proto/memory.h"

/* The kernel's threads map no code; the generated code of one process belongs to that process. */
static struct file_key mapping_key(const struct task *process, const struct record_mmap *m)
{
	enum file_kind kind = mapping_kind(m->path, m->n_build_id);
	bool generated = kind == FILE_PERF_MAP || kind == FILE_JITDUMP;

	return (struct file_key){
		.kind = kind,
		.path = m->path,
		.build_id = m->build_id,
		.n_build_id = m->n_build_id,
		.major = m->major,
		.minor = m->minor,
		.inode = m->inode,
		.generation = generated ? process->exec_ns : m->generation,
		.uid = task_files_uid(process),
		.pid = process->pid,
		.pid_start_ns = process->start_ns,
	};
}

/* The process describes its own code from now on, also that which it has mapped already. */
static int sideband_jitdump(struct attribute *a, struct task *process, struct file *dump)
{
	if (process->jitdump == dump)
		return 0;

	process->jitdump = dump;
	for (uint32_t i = 0; process->space && i < process->space->n_maps; i++) {
		struct map m = process->space->map[i];

		if (m.file->kind != FILE_PERF_MAP)
			continue;
		/* same bounds: the order of the others stays */
		int r = space_map(
			a->o.tasks, process, m.start, m.end - m.start, m.file_offset, dump);
		if (r)
			return r;
	}
	return 0;
}

static int sideband_exe(struct task *process, const struct file *file)
{
	if (process->exe || file->kind != FILE_ELF)
		return 0;

	process->exe = strdup(file->path);
	process->changed = true;
	return process->exe ? 0 : -ENOMEM;
}

static int map_file(
	struct attribute *a, struct task *process, const struct record_mmap *m, struct file *file)
{
	if (!file->map_end) {
		file->map_start = m->start;
		file->map_end = m->start + m->bytes;
	}
	int r = sideband_exe(process, file);
	if (r < 0)
		return r;
	return space_map(a->o.tasks, process, m->start, m->bytes, m->file_offset, file);
}

/* One look in a drain tells as much as many: all that it would find was written before the drain. */
static bool is_rewritten(struct attribute *a, struct file *file)
{
	const struct file **looked = &a->looked[file->id % FILES_LOOKED];

	if (!a->o.namer || *looked == file)
		return false;
	*looked = file;
	return namer_is_rewritten(a->o.namer, file);
}

int sideband_map(struct attribute *a, struct task *task, const struct record_mmap *m,
	uint64_t time_ns, int hart)
{
	struct task *process = task->process;
	struct file_key key = mapping_key(process, m);
	char path[64];
	struct file *file;
	int r = 0;

	if (key.kind == FILE_PERF_MAP && process->jitdump) {
		file = process->jitdump;
	} else {
		/* Source: Linux tools/perf/Documentation/jit-interface.txt. */
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)process->pid);
		if (key.kind == FILE_PERF_MAP)
			key.path = path;
		r = file_get(a->o.files, &key, &file);
		/* it was written to in place: the inode is the same, the program another */
		if (!r && is_rewritten(a, file))
			r = file_get(a->o.files, &key, &file);
	}

	if (!r && (!file->mapped_ns || time_ns < file->mapped_ns))
		file->mapped_ns = time_ns;
	if (!r && key.kind == FILE_JITDUMP)
		r = sideband_jitdump(a, process, file);
	else if (!r)
		r = map_file(a, process, m, file);
	if (r > 0)
		lose(a, hart, LOSS_MEMORY, 1);
	return r < 0 ? r : 0;
}

bool sideband_same_start(const struct attribute *a, const struct task *task, uint64_t time_ns)
{
	uint64_t slack = a->tick_ns + START_SLACK_NS;

	return time_ns > task->start_ns ? time_ns - task->start_ns <= slack
					: task->start_ns - time_ns <= slack;
}

/* --- whose record is it? ---------------------------------------------------------------------- */

static struct task *ended_find(const struct attribute *a, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct task *task = a->ended[(uint32_t)tid % ENDED_SLOTS];

	if (!task || task->tid != tid || task->pid != pid)
		return NULL;
	return time_ns < task->end_ns + ENDED_NS ? task : NULL;
}

/* A tid that no FORK announced: records were lost, or the task is not to be seen in /proc. */
static int sideband_stranger(
	struct attribute *a, const struct record *r, int hart, struct task **ret_task)
{
	pid_t pid = (pid_t)r->pid, tid = (pid_t)r->tid;
	struct task *task;

	int result = census_process(a, pid, NULL);
	if (result < 0)
		return result;
	task = task_find(a->o.tasks, tid);
	if (task && task->pid == pid) {
		*ret_task = task;
		return 0;
	}

	if (task)
		sideband_end(a, task, r->time_ns, hart);
	result = task_add(a->o.tasks, pid, tid, r->time_ns, &task);
	if (result < 0)
		return result;
	if (result == TASK_TABLE_FULL) {
		lose(a, hart, LOSS_MEMORY, 1);
		*ret_task = NULL;
		return 0;
	}

	if (task->process != task) {
		task_set_comm(task, task->process->comm);
		task->wanted = task->process->wanted;
		task->cgroup = task->process->cgroup;
		task->uid = task->process->uid;
	}
	*ret_task = task;
	return 0;
}

int sideband_task(struct attribute *a, const struct record *r, int hart, struct task **ret_task)
{
	if (r->tid == RECORD_TID_GONE) {
		*ret_task = a->exited[hart];
		return 0;
	}
	if (r->tid == 0 || r->tid > INT32_MAX || r->pid == 0 || r->pid > INT32_MAX) {
		*ret_task = NULL;
		return 0;
	}

	pid_t pid = (pid_t)r->pid, tid = (pid_t)r->tid;
	struct task *task = task_find(a->o.tasks, tid);
	struct task *ended = ended_find(a, pid, tid, r->time_ns);

	if (task && task->pid == pid && (!ended || r->time_ns >= task->start_ns)) {
		*ret_task = task;
		return 0;
	}
	if (ended) {
		*ret_task = ended;
		return 0;
	}
	return sideband_stranger(a, r, hart, ret_task);
}

/* --- records ---------------------------------------------------------------------------------- */

int sideband_mmap(struct attribute *a, const struct record *r, int hart)
{
	struct task *task;

	if (!r->mmap.executable)
		return 0;
	int result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task || !task->process->n_threads)
		return result;
	return sideband_map(a, task, &r->mmap, r->time_ns, hart);
}

/* The next program under this pid describes its code under the same name. */
static void sideband_end_generated(struct task *process)
{
	for (uint32_t i = 0; process->space && i < process->space->n_maps; i++) {
		struct file *file = process->space->map[i].file;

		if ((file->kind == FILE_PERF_MAP || file->kind == FILE_JITDUMP) &&
			file->pid == process->pid)
			file->replaced = true;
	}
}

/* What an exec leaves nothing of. */
static void sideband_exec(struct attribute *a, struct task *process, uint64_t time_ns, int hart)
{
	sideband_end_generated(process);
	space_drop(process);
	free(process->exe);
	free(process->argv);
	process->exe = NULL;
	process->argv = NULL;
	process->n_argv = 0;
	process->jitdump = NULL;
	process->kernel_thread = false;
	process->exec_ns = time_ns;
	process->wanted |= process->awaits_exec;
	process->awaits_exec = false;
	process->changed = true;

	/* The name is set a little before the new arguments are in place. */
	if (exec_take(a, process, time_ns, hart) || census_argv(a, process) <= 0)
		return;
	/* it may be a setuid program, of which its caller is told nothing */
	process->uid = (uid_t)-1;
	if (a->n_reread < REREAD_MAX)
		a->reread[a->n_reread++] = (struct reread){process, hart};
	else
		exec_lost(a, process, hart);
}

/* A thread that execs takes the tid of its leader, who ended a moment ago: the process goes on, so
 * what is known of it is found with that leader. */
static void sideband_take_over(struct attribute *a, struct task *task, const struct record *r)
{
	const struct task *leader = a->ended[(uint32_t)task->tid % ENDED_SLOTS];

	if (!leader || leader->tid != task->tid || leader->pid != task->pid || leader == task ||
		r->time_ns >= leader->end_ns + ENDED_NS)
		return;

	task->wanted |= leader->wanted;
	task->awaits_exec |= leader->awaits_exec;
	task->parent = leader->parent;
	task->uid = leader->uid;
	if (!task->cgroup)
		task->cgroup = leader->cgroup;
}

int sideband_comm(struct attribute *a, const struct record *r, int hart)
{
	struct task *task = NULL;
	int result = 0;

	bool alive = r->tid && r->tid <= INT32_MAX && task_find(a->o.tasks, (pid_t)r->tid);
	if (r->comm.exec && !alive && r->tid && r->tid <= INT32_MAX && r->pid == r->tid)
		result = sideband_stranger(a, r, hart, &task);
	else
		result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task)
		return result;

	task_set_comm(task, r->comm.name);
	if (!r->comm.exec)
		return 0;
	if (!alive)
		sideband_take_over(a, task, r);
	sideband_exec(a, task->process, r->time_ns, hart);
	return 0;
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

/* What a new process has of the one that forked it. */
static int inherit_process(struct task *child, const struct task *parent)
{
	space_share(child, parent);
	child->jitdump = parent->jitdump;
	int r = copy_text(&child->exe, parent->exe, parent->exe ? strlen(parent->exe) : 0);
	if (!r && parent->argv && !child->argv) {
		r = copy_text(&child->argv, parent->argv, parent->n_argv);
		child->n_argv = r ? 0 : parent->n_argv;
	}
	return r;
}

static void inherit(struct task *child, const struct task *parent)
{
	task_set_comm(child, parent->comm);
	child->cgroup = parent->cgroup;
	child->uid = parent->uid;
	child->kernel_thread = parent->kernel_thread;
	child->wanted = parent->wanted;
	child->changed = true;
}

static struct task *fork_parent(const struct attribute *a, const struct record *r)
{
	uint32_t tid = r->fork.parent_tid, pid = r->fork.parent_pid;
	struct task *parent = tid && tid <= INT32_MAX ? task_find(a->o.tasks, (pid_t)tid) : NULL;

	if (!parent && pid && pid <= INT32_MAX)
		parent = task_find(a->o.tasks, (pid_t)pid);
	return parent;
}

/* A thread whose leader has ended already: the process goes on in its threads. */
static void join_process(struct task *thread, struct task *process)
{
	if (thread->process == process)
		return;

	thread->process->n_threads--;
	thread->process = process;
	process->n_threads++;
}

/* A FORK of a task that /proc, or a record out of order, made known already: only gaps are filled.
 */
static int fork_known(struct task *task, const struct task *parent)
{
	if (!parent || parent == task)
		return 0;

	task->wanted |= parent->wanted;
	if (task->process == task && !task->parent && parent->process != task)
		task->parent = parent->process;
	if (task->comm[0])
		return 0;
	inherit(task, parent);
	return task->process == task && !task->space ? inherit_process(task, parent->process) : 0;
}

int sideband_fork(struct attribute *a, const struct record *r, int hart)
{
	if (!r->tid || r->tid > INT32_MAX || !r->pid || r->pid > INT32_MAX)
		return 0;

	struct task *task = task_find(a->o.tasks, (pid_t)r->tid);
	struct task *parent = fork_parent(a, r);

	if (task && task->pid == (pid_t)r->pid && sideband_same_start(a, task, r->time_ns))
		return fork_known(task, parent);
	if (task && task->start_ns > r->time_ns)
		return 0; /* of one whose tid was used again before /proc was read */
	if (task)
		sideband_end(a, task, r->time_ns, hart);
	if (!parent || parent == task)
		return sideband_stranger(a, r, hart, &task);

	int result = task_add(a->o.tasks, (pid_t)r->pid, (pid_t)r->tid, r->time_ns, &task);
	if (result == TASK_TABLE_FULL)
		lose(a, hart, LOSS_MEMORY, 1);
	if (result)
		return result < 0 ? result : 0;

	inherit(task, parent);
	if (r->pid == r->fork.parent_pid) {
		join_process(task, parent->process);
		return 0;
	}
	task->parent = parent->process;
	return inherit_process(task, parent->process);
}

/* Keep the task findable for what the kernel still does for it. */
static void ended_put(struct attribute *a, struct task *task)
{
	struct task **slot = &a->ended[(uint32_t)task->tid % ENDED_SLOTS];
	struct task *former = *slot;

	*slot = task;
	if (former && !former->process->n_threads)
		space_drop(former->process);
}

void sideband_end(struct attribute *a, struct task *task, uint64_t time_ns, int hart)
{
	charge_flush(a, task, time_ns, hart);
	if (a->o.per_task)
		delta_forget_task(&a->deltas, task->tid);
	task_end(a->o.tasks, task, time_ns);
	ended_put(a, task);
}

int sideband_exit(struct attribute *a, const struct record *r, int hart)
{
	struct task *task =
		r->tid && r->tid <= INT32_MAX ? task_find(a->o.tasks, (pid_t)r->tid) : NULL;

	if (!task || task->pid != (pid_t)r->pid)
		return 0;
	if (r->time_ns < task->start_ns && !sideband_same_start(a, task, r->time_ns))
		return 0; /* of a former task of that tid */

	sideband_end(a, task, r->time_ns, hart);
	a->exited[hart] = task;
	return 0;
}
