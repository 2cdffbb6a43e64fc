/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The scan: all live processes from /proc, or some with their descendants
 *
 * A scan goes on in steps of one process, between which records may come. A process is read before its
 * children, which the kernel lists. If it does not list them, all of /proc is read, and descendants are found
 * by their parents. Processes that did not answer are read again after the scan (unanswered.h).
 */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"

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

/* Add a process's children to the processes to read. */
static int children_add(struct census *c, const struct census_children *children)
{
	size_t n = c->n_pids + children->n;

	if (n > c->size_pids) {
		size_t size = 2 * n;
		pid_t *pid = reallocarray(c->pid, size, sizeof(*pid));
		if (!pid)
			return -ENOMEM;
		c->pid = pid;
		c->size_pids = size;
	}
	if (children->n > 0 && n <= TASKS_MAX) {
		memcpy(c->pid + c->n_pids, children->pid, children->n * sizeof(*children->pid));
		c->n_pids = n;
	}
	return 0;
}

/* Mark these processes and their descendants as wanted, now or from their exec on. */
static void want(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	struct task_table *t = a->o.tasks;

	for (size_t i = 0; i < n_pids; i++) {
		struct task *task = task_find(t, pids[i]);
		if (task && a->o.after_exec && !task->wanted)
			lost_exec_await(a, pids[i]);
		else if (task)
			task->wanted = true;
		else
			unanswered_set_target(a->unanswered, pids[i]);
	}
	/* leaders first, then threads, which look up their leader */
	for (struct task *task = t->live; task; task = task->hh.next)
		if (task->process == task)
			task->wanted |= census_is_kin_of_wanted(task);
	for (struct task *task = t->live; task; task = task->hh.next)
		task->wanted |= task->process->wanted;
}

/* --- again ------------------------------------------------------------------------------------ */

/* Set a process that has answered late as the parent of those of its children that were found
 * meanwhile. The other children are read the next time. */
static void adopt(struct attribute *a, pid_t pid, const struct census_children *children)
{
	struct task *parent = task_find(a->o.tasks, pid);

	for (size_t i = 0; parent && i < children->n; i++) {
		struct task *child = task_find(a->o.tasks, children->pid[i]);
		if (!child)
			unanswered_add(
				a->unanswered, &(struct unanswered_pid){.pid = children->pid[i]});
		else if (child->process == child && child != parent->process && !child->parent)
			census_set_parent(child, parent->process);
	}
}

static int read_again(struct attribute *a, const struct unanswered_pid *p)
{
	struct census_children children = {.n = 0};
	int r = census_read(a, p, NULL, a->o.per_task ? NULL : &children);

	if (r == 0)
		adopt(a, p->pid, &children);
	free(children.pid);
	return r;
}

int census_retry(struct attribute *a, uint64_t now_ns)
{
	struct unanswered_pid again[UNANSWERED_MAX];
	pid_t target[UNANSWERED_MAX];
	size_t n = unanswered_take(a->unanswered, now_ns, again), n_answers = 0, n_targets = 0;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		r = read_again(a, &again[i]);
		n_answers += r == 0;
		if (r == 0 && again[i].is_target)
			target[n_targets++] = again[i].pid;
	}
	if (n_answers > 0)
		want(a, target, n_targets);
	return r < 0 ? r : 0;
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

/* The pid that is the name of a folder; 0: it is no pid. */
static pid_t pid_of(const char *name)
{
	uint64_t pid;

	return scan_number(&name, 10, &pid) && !*name && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* Read the next process. CENSUS_END; 0; -errno. */
enum { CENSUS_END = 1 };
static int census_next(struct attribute *a, struct census *c)
{
	struct dirent *e = readdir(c->dir);
	pid_t pid = e ? pid_of(e->d_name) : 0, parent = 0;
	if (!pid)
		return e ? 0 : CENSUS_END;

	int r = census_process(a, pid, &parent);
	/* pids wrap around, so a parent may come after its child */
	if (!r && parent && !task_find(a->o.tasks, pid)->parent)
		r = orphans_add(c, pid, parent);
	return r < 0 ? r : 0;
}

/* In a session limited to some processes, read the next of these, with its descendants. Other processes, which may
 * be thousands of any user's, are read when a record mentions them. */
static int census_named(struct attribute *a, struct census *c)
{
	if (c->at == c->n_pids)
		return CENSUS_END;
	const struct unanswered_pid next = {.pid = c->pid[c->at++]};
	struct census_children children = {.n = 0};
	int r = census_read(a, &next, NULL, a->o.per_task ? NULL : &children);
	if (r == 0 && !a->o.per_task) {
		c->unlisted |= !children.listed;
		r = children_add(c, &children);
	}
	free(children.pid);
	if (r == 0 && c->unlisted && !c->dir) /* all of /proc is read instead */
		r = (c->dir = opendir(a->o.proc)) ? 0 : -errno;
	return r < 0 ? r : 0;
}

static void census_parents(struct attribute *a, const struct census *o)
{
	for (size_t i = 0; i < o->n_orphans; i++) {
		struct task *task = task_find(a->o.tasks, o->orphan[i].pid);
		struct task *parent = task_find(a->o.tasks, o->orphan[i].parent);

		if (task && parent && parent->process != task && !task->parent)
			census_set_parent(task, parent->process);
	}
}

struct census *census_free(struct census *c)
{
	if (!c)
		return NULL;
	if (c->dir)
		closedir(c->dir);
	free(c->orphan);
	free(c->pid);
	free(c);
	return NULL;
}

int attribute_scan_begin(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	a->census = census_free(a->census);
	const bool some = !a->o.all && n_pids > 0;
	int r = a->o.all ? cgroup_root_scan(a->cgroups, a->o.tasks) : 0;
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
		a->census = census_free(a->census);
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
		a->census = census_free(a->census);
	return r < 0 ? r : 0;
}

int attribute_scan(struct attribute *a, const pid_t *pids, size_t n_pids)
{
	int r = attribute_scan_begin(a, pids, n_pids);
	while (r == 0 && attribute_scans(a))
		r = attribute_scan_next(a);
	return r;
}
