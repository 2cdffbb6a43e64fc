/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tasks: the threads that ran
 *
 * Three indexes over the same structs. The array holds every task by id until a sweep frees it:
 * windows and answers point into it. A hash holds live tasks by tid, the only key that the
 * kernel's records give us; since tids are reused, a new task of a tid replaces the former one.
 * Dead tasks hang in lists by a hash of their tid, since a program may report many threads that died already. Each
 * thread that ends enters one, and hardly any is looked for: so to enter touches no other task.
 * Threads refer to their leader, and the leader counts its threads, so that the mappings are dropped when
 * the last thread ends, not when the leader does. The leader lists its live threads, since a leader that
 * continues as another task takes them along.
 */

#include "daemon/attribute/task.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/memory.h"

struct task *task_find(const struct task_table *t, pid_t tid)
{
	struct task *task;

	HASH_FIND_INT(t->live, &tid, task);
	return task;
}

static struct task **dead_list(const struct task_table *t, pid_t tid)
{
	return &t->dead[hash_bytes(&tid, sizeof(tid)) % DEAD_LISTS];
}

static struct task *first_of(struct task *at, pid_t tid)
{
	while (at && at->tid != tid)
		at = at->before;
	return at;
}

struct task *task_find_dead(const struct task_table *t, pid_t tid)
{
	return t->dead ? first_of(*dead_list(t, tid), tid) : NULL;
}

struct task *task_find_before(const struct task *dead)
{
	return first_of(dead->before, dead->tid);
}

/* Without memory it is not found. */
static void add_dead(struct task_table *t, struct task *task)
{
	if (!t->dead)
		t->dead = calloc(DEAD_LISTS, sizeof(struct task *));
	if (!t->dead)
		return;

	struct task **list = dead_list(t, task->tid);
	task->before = *list;
	*list = task;
}

static int task_table_reserve(struct task_table *t)
{
	if (t->n_free || t->n_tasks < t->size)
		return 0;

	uint32_t size = t->size ? t->size * 2 : 256;
	struct task **task = reallocarray(t->task, size, sizeof(*task));
	if (!task)
		return -ENOMEM;

	t->task = task;
	t->size = size;
	return 0;
}

static struct task *task_leader(const struct task_table *t, struct task *task)
{
	if (task->pid == task->tid)
		return task;

	struct task *leader = task_find(t, task->pid);
	return leader && leader->pid == leader->tid ? leader : task;
}

static bool take_places(struct task_table *t, uid_t account, uint32_t n)
{
	return HASH_COUNT(t->live) + n <= TASKS_LIVE_MAX &&
	       t->n_tasks - t->n_free + n <= TASKS_MAX && quota_take(&t->of, account, TASKS_MAX, n);
}

bool task_has_room(struct task_table *t, uid_t place_of, uint32_t n)
{
	if (!take_places(t, place_of, n))
		return false;
	quota_give(&t->of, place_of, n);
	return true;
}

/* --- threads of a process ---------------------------------------------------------------------- */

static void join_threads(struct task *task, struct task *process)
{
	task->process = process;
	process->n_threads++;
	if (task != process)
		DL_APPEND2(process->threads, task, threads_prev, threads_next);
}

static void leave_threads(struct task *task)
{
	task->process->n_threads--;
	if (task != task->process)
		DL_DELETE2(task->process->threads, task, threads_prev, threads_next);
}

void task_join(struct task_table *t, struct task *thread, struct task *process)
{
	if (thread->process == process)
		return;

	task_set_labels(t, thread, NULL); /* only the labels of its process count */
	leave_threads(thread);
	join_threads(thread, process);
}

/* --- tasks ------------------------------------------------------------------------------------- */

int task_add(struct task_table *t, pid_t pid, pid_t tid, uint64_t start_ns, struct task **ret_task)
{
	return task_add_for(t, &(struct task_key){pid, tid, start_ns}, (uid_t)-1, ret_task);
}

int task_add_for(
	struct task_table *t, const struct task_key *key, uid_t place_of, struct task **ret_task)
{
	const pid_t tid = key->tid;
	struct task *former = task_find(t, tid);
	if (former) {
		task_end(t, former, key->start_ns);
		if (!former->process->n_threads)
			space_drop(former->process);
	}

	if (!take_places(t, place_of, 1))
		return TASK_TABLE_FULL;

	int r = task_table_reserve(t);
	_cleanup_(freep) struct task *task = r == 0 ? calloc(1, sizeof(*task)) : NULL;
	if (task) {
		task->pid = key->pid;
		task->tid = tid;
		task->start_ns = key->start_ns;
		task->uid = (uid_t)-1;
		task->account = (uid_t)-1;
		task->past_account = (uid_t)-1;
		task->place_of = place_of;
		HASH_ADD_INT(t->live, tid, task);
	}
	if (!task || !task->hh.tbl) {
		quota_give(&t->of, place_of, 1);
		return -ENOMEM;
	}

	task->id = t->n_free ? t->free_id[--t->n_free] : ++t->n_tasks;
	task->changed = true;
	join_threads(task, task_leader(t, task));
	t->task[task->id - 1] = task;
	*ret_task = TAKE_PTR(task);
	return 0;
}

static void join_labels(struct task *task)
{
	if (!task->labels || task->end_ns)
		return;
	DL_APPEND2(task->labels->live, task, labels_prev, labels_next);
	task->labels->n_live++;
}

static void leave_labels(struct task *task)
{
	if (!task->labels_prev)
		return;
	DL_DELETE2(task->labels->live, task, labels_prev, labels_next);
	task->labels->n_live--;
	task->labels_prev = NULL;
}

void task_end(struct task_table *t, struct task *task, uint64_t end_ns)
{
	if (task->end_ns)
		return;

	leave_labels(task);
	HASH_DEL(t->live, task);
	/* 0 means alive, and no task ends before it began */
	task->end_ns = end_ns > task->start_ns ? end_ns : task->start_ns + 1;
	add_dead(t, task);
	task->changed = true;
	leave_threads(task);
}

void task_set_comm(struct task *task, const char *comm)
{
	char name[TASK_COMM_BYTES] = "";

	memcpy(name, comm, strnlen(comm, sizeof(name) - 1));
	if (!memcmp(task->comm, name, sizeof(name)))
		return;

	memcpy(task->comm, name, sizeof(name));
	task->changed = true;
}

void task_set_labels(struct task_table *t, struct task *process, struct label_set *labels)
{
	process->changed |= process->labels != labels;
	leave_labels(process);
	label_set_unref(&t->label_sets, process->labels);
	process->labels = labels;
	join_labels(process);
}

void task_inherit_labels(struct task *process, const struct task *from)
{
	if (process->labels || !from->labels)
		return;
	process->labels = label_set_ref(from->labels);
	process->changed = true;
	join_labels(process);
}

const struct cgroup *cgroup_find(const struct task_table *t, uint64_t id)
{
	struct cgroup *cgroup;

	HASH_FIND(hh, t->cgroups, &id, sizeof(id), cgroup);
	return cgroup;
}

static uint64_t cgroup_places(const char *path)
{
	return 1 + strlen(path) / CGROUP_PLACE_BYTES;
}

/* Takes places of the same user for the new path. */
static int cgroup_rename(struct task_table *t, struct cgroup *cgroup, const char *path)
{
	const uint64_t n = cgroup_places(path), before = cgroup_places(cgroup->path);

	if (!strcmp(cgroup->path, path))
		return 0;
	if (n > before && !quota_take(&t->cgroups_of, cgroup->place_of, CGROUPS_MAX, n - before))
		return CGROUP_TABLE_FULL;

	char *copy = strdup(path);
	if (copy) {
		free(cgroup->path);
		cgroup->path = copy;
	}
	/* properties that it no longer has, or was not given */
	const uint64_t has = cgroup_places(cgroup->path), took = n > before ? n : before;
	quota_give(&t->cgroups_of, cgroup->place_of, took - has);
	return copy ? 0 : -ENOMEM;
}

static int cgroup_add(struct task_table *t, uint64_t id, const char *path, uid_t place_of)
{
	_cleanup_(freep) struct cgroup *cgroup = calloc(1, sizeof(*cgroup));
	_cleanup_(freep) char *copy = strdup(path);
	if (!cgroup || !copy)
		return -ENOMEM;

	cgroup->id = id;
	cgroup->path = copy;
	cgroup->place_of = place_of;
	HASH_ADD(hh, t->cgroups, id, sizeof(cgroup->id), cgroup);
	if (!cgroup->hh.tbl)
		return -ENOMEM;

	TAKE_PTR(copy);
	TAKE_PTR(cgroup);
	return 0;
}

int cgroup_set(struct task_table *t, uint64_t id, const char *path, uid_t place_of)
{
	struct cgroup *known;

	HASH_FIND(hh, t->cgroups, &id, sizeof(id), known);
	if (known)
		return cgroup_rename(t, known, path);
	if (!quota_take(&t->cgroups_of, place_of, CGROUPS_MAX, cgroup_places(path)))
		return CGROUP_TABLE_FULL;
	int r = cgroup_add(t, id, path, place_of);
	if (r < 0)
		quota_give(&t->cgroups_of, place_of, cgroup_places(path));
	return r;
}

static struct task *task_free(struct task_table *t, struct task *task)
{
	if (!task)
		return NULL;

	quota_give(&t->of, task->place_of, 1);
	space_drop(task);
	leave_labels(task);
	label_set_unref(&t->label_sets, task->labels);
	free(task->exe);
	free(task->argv);
	free(task->pending);
	free(task);
	return NULL;
}

/* The reusable ids, the lowest last: low ids are reused first, so that the array can shrink from
 * its end. */
static void task_table_list_free(
	struct task_table *t, const uint8_t *mark, uint32_t *free_id, uint32_t n_places)
{
	free(t->free_id);
	t->free_id = free_id;
	t->n_free = 0;
	t->size_free = n_places;
	while (t->n_tasks && !t->task[t->n_tasks - 1] && mark[t->n_tasks - 1] == SWEEP_FREE)
		t->n_tasks--;
	for (uint32_t i = t->n_tasks; i-- > 0;)
		if (!t->task[i] && mark[i] == SWEEP_FREE)
			t->free_id[t->n_free++] = i + 1;
}

int task_table_sweep(struct task_table *t, const uint8_t *mark)
{
	uint32_t n_free = 0;

	for (uint32_t i = 0; i < t->n_tasks; i++)
		n_free += mark[i] == SWEEP_FREE;
	uint32_t *free_id = calloc((size_t)n_free + 1, sizeof(*free_id));
	if (!free_id)
		return -ENOMEM;

	for (uint32_t i = 0; i < t->n_tasks; i++) {
		struct task *task = t->task[i];

		if (task && mark[i] == SWEEP_KEPT && task->parent &&
			mark[task->parent->id - 1] != SWEEP_KEPT)
			task->parent = NULL;
	}
	if (t->dead)
		memset(t->dead, 0, DEAD_LISTS * sizeof(struct task *));
	for (uint32_t i = 0; i < t->n_tasks; i++) {
		if (mark[i] != SWEEP_KEPT)
			t->task[i] = task_free(t, t->task[i]);
		else if (t->task[i] && t->task[i]->end_ns)
			add_dead(t, t->task[i]);
	}
	task_table_list_free(t, mark, free_id, n_free + 1);

	uint32_t size = t->n_tasks > 256 ? t->n_tasks : 256;
	struct task **task = t->size / 4 > size ? reallocarray(t->task, size, sizeof(*task)) : NULL;
	if (task) {
		t->task = task;
		t->size = size;
	}
	return 0;
}

static void remove_dead(struct task_table *t, const struct task *task)
{
	struct task **at = t->dead ? dead_list(t, task->tid) : NULL;

	while (at && *at && *at != task)
		at = &(*at)->before;
	if (at && *at)
		*at = task->before;
}

void task_forget(struct task_table *t, struct task *task)
{
	if (t->n_free == t->size_free) {
		uint32_t size = t->size_free ? 2 * t->size_free : 256;
		uint32_t *free_id = reallocarray(t->free_id, size, sizeof(*free_id));
		if (!free_id)
			return;
		t->free_id = free_id;
		t->size_free = size;
	}
	remove_dead(t, task);
	t->task[task->id - 1] = NULL;
	t->free_id[t->n_free++] = task->id;
	task_free(t, task);
}

static void cgroup_free(struct task_table *t, struct cgroup *cgroup)
{
	HASH_DEL(t->cgroups, cgroup);
	quota_give(&t->cgroups_of, cgroup->place_of, cgroup_places(cgroup->path));
	free(cgroup->path);
	free(cgroup);
}

void cgroup_table_sweep(
	struct task_table *t, bool (*keep)(void *userdata, struct cgroup *cgroup), void *userdata)
{
	for (struct cgroup *at = t->cgroups, *next = NULL; at; at = next) {
		next = at->hh.next;
		if (!keep(userdata, at))
			cgroup_free(t, at);
	}
}

static bool keep_none(void *userdata, struct cgroup *cgroup)
{
	(void)userdata;
	(void)cgroup;
	return false;
}

void task_table_clear(struct task_table *t)
{
	HASH_CLEAR(hh, t->live);
	free(t->dead);
	for (uint32_t i = 0; i < t->n_tasks; i++)
		task_free(t, t->task[i]);
	free(t->task);
	free(t->free_id);
	quota_clear(&t->of);
	cgroup_table_sweep(t, keep_none, NULL);
	quota_clear(&t->cgroups_of);
	*t = (struct task_table){0};
}
