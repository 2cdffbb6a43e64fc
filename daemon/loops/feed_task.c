/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Finds the task of a thread. A program names its threads by tid. We believe it only if a thread
 * with that number belongs, or belonged, to the process at the other end of the socket. Counts of a
 * thread that we cannot find go to the process as a whole, so a program with a false thread id is charged
 * itself.
 *
 * The record of a thread's birth comes some moments after the birth, and a short-lived thread is
 * dead when its program reports it. Then we drain the rings, and search the table for ended threads
 * too. We also drain them for each program that connects, since its exec is in them: else a client
 * that asks for a command from its exec on would not get the command's first counts. We drain the
 * rings for this at most once in FEED_LOOK_NS, whatever programs send, and the user pays for the
 * search.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/attribute/proc_reader.h"
#include "daemon/loops/feed_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Is a process in another pid namespace than ours? */
static bool has_other_pids(pid_t pid)
{
	char path[48];
	struct stat ours, theirs;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_ino != theirs.st_ino;
}

void feed_process_begin(struct connection *c)
{
	c->process = (struct connection_process){
		.other_pids = has_other_pids(c->pid), .n_looks = c->feed->looks.n};
}

void feed_process_clear(struct connection *c)
{
	free(c->process.tid);
}

static int by_inner(const void *a, const void *b)
{
	const struct tid_pair *x = a, *y = b;
	return (x->inner > y->inner) - (x->inner < y->inner);
}

static bool grow_tids(struct connection *c)
{
	const uint32_t size = c->process.size_tids ? 2 * c->process.size_tids : 16;
	struct tid_pair *grown = reallocarray(c->process.tid, size, sizeof(*grown));
	if (!grown)
		return false;
	c->process.tid = grown;
	c->process.size_tids = size;
	return true;
}

/* Read the numbers of its threads, at most FEED_TIDS_MAX, charged to its user; without memory, as
 * many as there is room for. */
static void read_tids(struct connection *c)
{
	char folder[32];
	struct proc_view v;
	snprintf(folder, sizeof(folder), "/proc/%d", (int)c->pid);
	const struct proc_question q = {.folder = folder,
		.pid = c->pid,
		.account = c->user ? c->user->uid : ACCOUNT_NOBODY,
		.wants = PROC_THREADS | PROC_INNER,
		.n_threads = FEED_TIDS_MAX};
	c->process.n_tids = 0;
	c->process.tids_ns = c->feed->now_ns;
	if (proc_reader_ask(attribute_reader(c->feed->o.attribute), &q, &v) != 0)
		return;
	c->feed->looks.reading_ns += v.reading_ns;
	for (size_t i = 0; i < v.n_threads; i++) {
		if (c->process.n_tids == c->process.size_tids && !grow_tids(c))
			break;
		c->process.tid[c->process.n_tids++] =
			(struct tid_pair){v.thread[i].inner, v.thread[i].stat.pid};
	}
	proc_view_clear(&v);
	if (c->process.n_tids > 1)
		qsort(c->process.tid, c->process.n_tids, sizeof(*c->process.tid), by_inner);
}

/* Find our tid of a thread that has another one in its pid namespace: t->our_tid; 0: no thread has
 * it. Its program may have thousands of threads, and may report as many that do not exist, so we
 * read them at most once in FEED_LOOK_NS. False: the thread may have begun since, so ask again
 * later. */
static bool find_outer_tid(struct connection *c, struct program_thread *t)
{
	const uint64_t now_ns = c->feed->now_ns;
	if (c->process.tids_ns == 0 || t->begin_ns >= c->process.tids_ns) {
		if (c->process.tids_ns != 0 && now_ns - c->process.tids_ns < FEED_LOOK_NS)
			return false;
		read_tids(c);
	}
	const struct tid_pair key = {.inner = (pid_t)t->tid};
	const struct tid_pair *pair =
		c->process.n_tids
			? bsearch(&key, c->process.tid, c->process.n_tids, sizeof(key), by_inner)
			: NULL;
	t->our_tid = pair ? pair->outer : 0;
	return true;
}

/* A process that became another user's goes on as another task of the same pid and start. */
static bool same_process(const struct task *a, const struct task *b)
{
	return a == b || (a->pid == b->pid && a->start_ns == b->start_ns);
}

/* Is it the process itself, or one of its threads? The pid may belong to another process by now,
 * while a forked child keeps the connection. */
static bool is_of(const struct connection *c, const struct task *task, pid_t tid)
{
	return task->tid == tid && task->pid == c->pid &&
	       (!c->process.task || same_process(task->process, c->process.task));
}

static struct task *find_live(const struct connection *c, pid_t tid)
{
	struct task *task = tid > 0 ? task_find(c->feed->o.tasks, tid) : NULL;
	return task && is_of(c, task, tid) ? task : NULL;
}

/* The one that died last. Linear in the tasks of that tid. */
static struct task *find_dead(const struct connection *c, pid_t tid)
{
	struct task *found = NULL, *task = task_find_dead(c->feed->o.tasks, tid);
	for (; task; task = task_find_before(task))
		if (is_of(c, task, tid) && (!found || task->end_ns > found->end_ns))
			found = task;
	return found;
}

static struct task *find(const struct connection *c, pid_t tid)
{
	struct task *task = find_live(c, tid);
	return task ? task : find_dead(c, tid);
}

static bool looked_just_now(const struct feed *f)
{
	return f->looks.last_ns && f->now_ns - f->looks.last_ns < FEED_LOOK_NS;
}

void feed_look(struct feed *f)
{
	f->looks.last_ns = f->now_ns;
	f->looks.n++;
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (f->o.catch_up)
		(void)f->o.catch_up(f->o.userdata); /* the walk's own dispatch reports its errors */
	f->looks.looking_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

uint64_t feed_next_look_ns(const struct feed *f)
{
	return f->looks.last_ns + FEED_LOOK_NS;
}

uint64_t feed_charged_ns(const struct feed *f)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + f->looks.reading_ns - f->looks.looking_ns;
}

/* Do a look, if one is due. */
static bool may_look(struct feed *f)
{
	if (looked_just_now(f))
		return false;
	feed_look(f);
	return true;
}

/* *ret_sure: the answer is final, also NULL. */
static struct task *look(struct connection *c, pid_t tid, uint64_t begin_ns, bool *ret_sure)
{
	struct task *task = find_live(c, tid);
	*ret_sure = false;
	if (task)
		return task;
	/* tasks that began before the last look are known, also those that have ended since */
	if (!may_look(c->feed) && begin_ns >= c->feed->looks.last_ns)
		return NULL;
	*ret_sure = true;
	return find(c, tid);
}

bool feed_seek_process(struct connection *c)
{
	struct feed *f = c->feed;
	if (c->process.sought || c->pid <= 0)
		return true;
	if (!f->o.catch_up) /* all tasks are known as they start */
		c->process.task = find_live(c, c->pid);
	if (!c->process.task && (f->looks.n > c->process.n_looks || may_look(f))) {
		c->process.task = find(c, c->pid);
		c->process.sought = true;
	}
	c->process.sought |= c->process.task != NULL;
	return c->process.sought;
}

bool feed_seek_thread(struct connection *c, pid_t tid)
{
	struct feed *f = c->feed;
	if (!looked_just_now(f) || (!c->process.other_pids && find_live(c, tid)) ||
		(c->process.waited_ns && f->now_ns - c->process.waited_ns < FEED_WAIT_NS))
		return true;
	c->process.waited_ns = f->now_ns;
	return false;
}

/* A thread or process whose name or cgroup changed counts for another task from then on. */
static struct task *goes_on_as(struct connection *c, struct task *task)
{
	struct task *now = task->end_ns ? find_live(c, task->tid) : NULL;
	if (!now || now->pid != task->pid || now->start_ns != task->start_ns)
		return task;
	now->used = true;
	return now;
}

struct task *feed_task_of(struct connection *c, struct program_thread *t)
{
	bool sure = true;
	if (c->process.task)
		c->process.task = goes_on_as(c, c->process.task);
	if (t->who)
		return t->who = goes_on_as(c, t->who);
	if (t->our_tid == 0 && !c->process.other_pids)
		t->our_tid = (pid_t)t->tid;
	else if (t->our_tid == 0 && !find_outer_tid(c, t))
		return c->process.task;
	/* an unknown process has no known threads */
	struct task *task =
		c->process.task && t->our_tid > 0 ? look(c, t->our_tid, t->begin_ns, &sure) : NULL;
	if (task) {
		task->used = true;
		t->who = task;
		return task;
	}
	task = c->process.task;
	if (sure && task) {
		c->feed->causes[FEED_STRANGER]++;
		task->used = true;
		t->who = task;
	}
	return task;
}
