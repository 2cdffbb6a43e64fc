/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Side-band records: live tasks and their mappings
 *
 * The records describe each process in order of time from the moment the events were enabled; /proc
 * describes its state at the scan, slightly later. Both are used, so each record must be harmless
 * if it repeats what /proc said: a FORK of a task that began at that very time changes nothing, nor
 * does an existing mapping, and an exec is followed by the records of all that it mapped. Only a
 * different start time makes a tid another task.
 */

#include <stdlib.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/memory.h"

/* --- whose record is it? ---------------------------------------------------------------------- */

/* A tid without a FORK record: records were lost, or the task is not visible in /proc. */
static int sideband_stranger(
	struct attribute *a, const struct record *r, int hart, struct task **ret_task)
{
	pid_t pid = (pid_t)r->pid, tid = (pid_t)r->tid;
	struct task *task;

	int result = a->o.all ? census_process(a, pid, NULL) : census_kin(a, pid);
	if (result < 0)
		return result;
	task = task_find(a->o.tasks, tid);
	if (task && task->pid == pid) {
		*ret_task = task;
		return 0;
	}

	if (task)
		life_end(a, task, r->time_ns, hart);
	const struct task *leader = task_find(a->o.tasks, pid);
	result = task_add_for(
		a->o.tasks, &(struct task_key){pid, tid, r->time_ns}, task_account(leader), &task);
	if (result < 0)
		return result;
	if (result == TASK_TABLE_FULL) {
		lose(&a->o, hart, LOSS_ROOM, 1);
		*ret_task = NULL;
		return 0;
	}

	if (task->process != task) {
		task_set_comm(task, task->process->comm);
		task->wanted = task->process->wanted;
		task->cgroup = task->process->cgroup;
		task->uid = task->process->uid;
		task->gid = task->process->gid;
	}
	*ret_task = task;
	return 0;
}

int sideband_task(struct attribute *a, const struct record *r, int hart, struct task **ret_task)
{
	if (r->tid == RECORD_TID_GONE) {
		*ret_task = life_exited(a->lives, hart);
		return 0;
	}
	if (r->tid == 0 || r->tid > INT32_MAX || r->pid == 0 || r->pid > INT32_MAX) {
		*ret_task = NULL;
		return 0;
	}

	pid_t pid = (pid_t)r->pid, tid = (pid_t)r->tid;
	struct task *task = task_find(a->o.tasks, tid);
	struct task *ended = life_find_ended(a->lives, pid, tid, r->time_ns);

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
	return mapping_enter(a, task, &r->mmap, r->time_ns, hart);
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

void sideband_exec(struct attribute *a, struct task *process, uint64_t time_ns, int hart)
{
	sideband_end_generated(process);
	space_drop(process);
	process->maps_read_ns = 0;
	free(process->exe);
	free(process->argv);
	process->exe = NULL;
	process->argv = NULL;
	process->n_argv = 0;
	process->memfd_inode = 0;
	process->jitdump = NULL;
	process->kernel_thread = false;
	process->exec_ns = time_ns;
	process->wanted |= process->awaits_exec;
	process->awaits_exec = false;
	owner_exec(process, time_ns);
	exec_argv_take(a, process, time_ns, hart);
}

/* A thread that execs takes the tid of its leader, which ended a moment ago: the process continues,
 * and its known state is in that leader. */
static void sideband_take_over(struct attribute *a, struct task *task, const struct record *r)
{
	const struct task *leader = life_find_ended(a->lives, task->pid, task->tid, r->time_ns);

	if (!leader || leader == task)
		return;

	task->wanted |= leader->wanted;
	task->awaits_exec |= leader->awaits_exec;
	task->parent = leader->parent;
	task_inherit_labels(task, leader);
	task->uid = leader->uid;
	task->gid = leader->gid;
	task->account = task_account(leader);
	task->other_group = leader->other_group;
	task->owner_since_ns = leader->owner_since_ns;
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

	/* a late record of an exec that was taken for lost: already handled */
	const bool execs = r->comm.exec && r->time_ns > task->process->lost_exec_ns;
	struct task *before = task;
	if (execs)
		result = life_leave(a, &task, r->time_ns, hart);
	else if (task->comm[0] && strncmp(task->comm, r->comm.name, sizeof(task->comm) - 1) != 0)
		result = life_change(a, &task, r->time_ns, hart);
	if (result < 0)
		return result;
	task_set_comm(task, r->comm.name);
	if (!execs)
		return 0;
	if (task != before)
		owner_leave(before, r->time_ns);
	if (!alive)
		sideband_take_over(a, task, r);
	sideband_exec(a, task->process, r->time_ns, hart);
	return 0;
}

static struct task *fork_parent(const struct attribute *a, const struct record *r)
{
	uint32_t tid = r->fork.parent_tid, pid = r->fork.parent_pid;
	struct task *parent = tid && tid <= INT32_MAX ? task_find(a->o.tasks, (pid_t)tid) : NULL;

	if (!parent && pid && pid <= INT32_MAX)
		parent = task_find(a->o.tasks, (pid_t)pid);
	return parent;
}

/* A FORK of a task that is already known from /proc or an out-of-order record: only fill gaps. */
static int fork_known(struct task *task, const struct task *parent)
{
	if (!parent || parent == task)
		return 0;

	task->wanted |= parent->wanted;
	if (task->process == task && !task->parent && parent->process != task) {
		task->parent = parent->process;
		task_inherit_labels(task, parent->process);
	}
	if (task->comm[0])
		return 0;
	life_inherit_task(task, parent);
	return task->process == task && !task->space ? life_inherit_process(task, parent->process)
						     : 0;
}

int sideband_fork(struct attribute *a, const struct record *r, int hart)
{
	if (!r->tid || r->tid > INT32_MAX || !r->pid || r->pid > INT32_MAX)
		return 0;

	struct task *task = task_find(a->o.tasks, (pid_t)r->tid);
	struct task *parent = fork_parent(a, r);

	if (!parent && !a->o.all && r->fork.parent_pid && r->fork.parent_pid <= INT32_MAX) {
		int kin = census_kin(a, (pid_t)r->fork.parent_pid);
		if (kin < 0)
			return kin;
		parent = fork_parent(a, r);
		task = task_find(a->o.tasks, (pid_t)r->tid);
	}
	if (task && task->pid == (pid_t)r->pid && life_same_start(a->lives, task, r->time_ns))
		return fork_known(task, parent);
	if (task && task->start_ns > r->time_ns)
		return 0; /* the record is about a task whose tid was reused before /proc was read */
	if (task)
		life_end(a, task, r->time_ns, hart);
	if (!parent || parent == task)
		return sideband_stranger(a, r, hart, &task);

	const struct task_key key = {(pid_t)r->pid, (pid_t)r->tid, r->time_ns};
	int result = task_add_for(a->o.tasks, &key, task_account(parent), &task);
	if (result == TASK_TABLE_FULL)
		lose(&a->o, hart, LOSS_ROOM, 1);
	if (result)
		return result < 0 ? result : 0;

	life_inherit_task(task, parent);
	if (r->pid == r->fork.parent_pid) {
		/* its leader may have ended already: the process continues in its threads */
		task_join(a->o.tasks, task, parent->process);
		return 0;
	}
	task->parent = parent->process;
	return life_inherit_process(task, parent->process);
}

/* Does the process of an EXIT record live on? If a process execs a file that it may not read,
 * the kernel removes its events, and reports that like its end: after the exec, before anything
 * is mapped. Source: Linux 6.12, fs/exec.c, begin_new_exec, and kernel/events/core.c,
 * perf_event_exit_task. */
static bool lives_on(const struct attribute *a, const struct task *task)
{
	if (task->process != task || !task->exec_ns || task->space)
		return false;
	return proc_is_there(&a->o, task->pid);
}

int sideband_exit(struct attribute *a, const struct record *r, int hart)
{
	struct task *task =
		r->tid && r->tid <= INT32_MAX ? task_find(a->o.tasks, (pid_t)r->tid) : NULL;

	if (!task || task->pid != (pid_t)r->pid)
		return 0;
	if (r->time_ns < task->start_ns && !life_same_start(a->lives, task, r->time_ns))
		return 0; /* the record is about a former task of that tid */
	if (lives_on(a, task)) {
		task->raised = 0; /* these events are gone, too */
		return 0;
	}

	life_end(a, task, r->time_ns, hart);
	life_set_exited(a->lives, hart, task);
	return 0;
}
