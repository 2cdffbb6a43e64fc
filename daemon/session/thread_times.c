/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/thread_times.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/attribute/sweep.h"
#include "daemon/kernel/machine.h"
#include "proto/base/array.h"
#include "proto/base/clock.h"
#include "proto/base/hash_table.h"

/* Between two looks: at least this, and a hundred times what a look took. */
#define LOOK_EVERY_NS 20000000u
#define LOOK_TIMES 100u
/* Threads of one look, at some 8 µs each; others wait for the next. */
#define LOOK_THREADS 256u

struct thread {
	pid_t tid;
	uint64_t start_ns;
	struct task *task;         /* as it is called now */
	uint64_t seen_ns;          /* its time is accounted for until then */
	bool is_read;              /* with the two counts below, as they were then */
	uint64_t ran_ns, ready_ns; /* of schedstat */
	uint64_t sampled_ns;       /* weight of its samples since */
	struct window_time now;    /* since it was given last */
	uint64_t off_ns,
		off_ready_ns; /* of all its time without a hart that is split: waiting for one */
	UT_hash_handle hh;    /* by tid */
};

struct thread_times {
	const struct targets *targets;
	const struct task_table *tasks;
	const char *proc;
	uint64_t start_ns, next_look_ns;
	struct thread *threads;
	struct thread *next; /* to look at; NULL: the first */
	struct window_time
		*ended; /* since the last window, of threads that ended or are called otherwise */
	uint32_t n_ended, size_ended;
	bool has_leader[HARTS_MAX];
	int leader[HARTS_MAX];     /* event whose samples share out the hart's time */
	thread_times_waits *waits; /* NULL: nobody asks */
	thread_times_ready *ready; /* likewise */
	void *userdata;
	bool is_short; /* of memory: what ended could not be kept */
};

int thread_times_new(const struct targets *targets, const struct task_table *tasks,
	const char *proc, uint64_t start_ns, struct thread_times **ret_times)
{
	struct thread_times *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct thread_times){
		.targets = targets, .tasks = tasks, .proc = proc, .start_ns = start_ns};
	*ret_times = t;
	return 0;
}

void thread_times_watch(struct thread_times *t, thread_times_waits *waits,
	thread_times_ready *ready, void *userdata)
{
	if (!t)
		return;
	t->waits = waits;
	t->ready = ready;
	t->userdata = userdata;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How long the thread had a hart, and waited for one, since it began. False: it is gone, or Linux does not count.
 * Source: Documentation/scheduler/sched-stats.rst. */
static bool read_schedstat(const struct thread_times *t, const struct thread *thread,
	uint64_t *ret_ran_ns, uint64_t *ret_ready_ns)
{
	char path[128], text[128];
	snprintf(path, sizeof(path), "%s/%d/task/%d/schedstat", t->proc, (int)thread->task->pid,
		(int)thread->tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* all are 0 without CONFIG_SCHED_INFO */
	return sscanf(text, "%" SCNu64 " %" SCNu64, ret_ran_ns, ret_ready_ns) == 2 &&
	       *ret_ran_ns > 0;
}

/* Time that passed up to until_ns: ran_ns of it with a hart; waits for one that ended in it took ready_ns. */
static void account(struct thread *thread, uint64_t until_ns, uint64_t ran_ns, uint64_t ready_ns)
{
	const uint64_t lived_ns = until_ns > thread->seen_ns ? until_ns - thread->seen_ns : 0;
	const uint64_t off_ns = lived_ns - least(ran_ns, lived_ns);

	thread->now.lived_ns += lived_ns;
	thread->now.ran_ns += lived_ns - off_ns;
	thread->off_ns += off_ns;
	/* Linux adds a wait for a hart when it ends: earlier looks took it for another */
	ready_ns = least(ready_ns, thread->off_ns - thread->off_ready_ns);
	thread->now.ready_ns += ready_ns;
	thread->off_ready_ns += ready_ns;
	thread->seen_ns += lived_ns;
	thread->sampled_ns = 0;
}

/* Time that was not read: only samples tell whether the thread had a hart, and how it waited before, for what it waited. */
static void account_unread(struct thread *thread, uint64_t until_ns)
{
	const uint64_t lived_ns = until_ns > thread->seen_ns ? until_ns - thread->seen_ns : 0;
	const uint64_t off_ns = lived_ns - least(thread->sampled_ns, lived_ns);

	thread->now.lived_ns += lived_ns;
	thread->now.ran_ns += lived_ns - off_ns;
	if (thread->off_ns > 0 && thread->off_ns >= off_ns)
		thread->now.ready_ns += (uint64_t)((double)off_ns * (double)thread->off_ready_ns /
						   (double)thread->off_ns);
	else
		thread->now.unsplit_ns += off_ns;
	thread->seen_ns += lived_ns;
	thread->sampled_ns = 0;
}

static void look_at(const struct thread_times *t, struct thread *thread)
{
	const uint64_t before_ns = thread->seen_ns;
	uint64_t ran_ns, ready_ns;
	struct thread_wait wait;

	if (!read_schedstat(t, thread, &ran_ns, &ready_ns))
		return;
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	if (thread->is_read && ran_ns >= thread->ran_ns && ready_ns >= thread->ready_ns)
		account(thread, now_ns, ran_ns - thread->ran_ns, ready_ns - thread->ready_ns);
	else
		account_unread(thread, now_ns);
	thread->is_read = true;
	thread->ran_ns = ran_ns;
	thread->ready_ns = ready_ns;
	if (t->ready)
		t->ready(t->userdata, thread->task, ready_ns);
	if (t->waits && now_ns > before_ns &&
		thread_wait_read(t->proc, thread->task->pid, thread->tid, &wait))
		t->waits(t->userdata, thread->task, &wait, now_ns, now_ns - before_ns);
}

/* Keep what is known of the thread under its present name. */
static void close_name(struct thread_times *t, struct thread *thread)
{
	if (thread->now.lived_ns == 0)
		return;
	if (array_grow(&t->ended, &t->size_ended, t->n_ended + 1, sizeof(*t->ended)) < 0) {
		t->is_short = true;
		return;
	}
	t->ended[t->n_ended] = thread->now;
	t->ended[t->n_ended++].who = thread->task;
	thread->now = (struct window_time){};
}

static void unfollow(struct thread_times *t, struct thread *thread)
{
	if (t->next == thread)
		t->next = thread->hh.next;
	HASH_DEL(t->threads, thread);
	free(thread);
}

/* NULL: it cannot be followed. seen_ns: when it turned up. */
static struct thread *find_or_follow(struct thread_times *t, struct task *task, uint64_t seen_ns)
{
	struct thread *thread;

	HASH_FIND_INT(t->threads, &task->tid, thread);
	if (thread && thread->start_ns == task->start_ns) {
		if (thread->task != task) /* it execs, or has another name */
			close_name(t, thread);
		thread->task = task;
		task->used = true;
		return thread;
	}
	if (thread) { /* its end was lost */
		close_name(t, thread);
		unfollow(t, thread);
	}
	thread = HASH_COUNT(t->threads) < THREAD_TIMES_MAX ? calloc(1, sizeof(*thread)) : NULL;
	if (!thread)
		return NULL;
	/* of one that began with the recording, the counts began with it */
	const bool is_new = task->start_ns >= t->start_ns;
	*thread = (struct thread){.tid = task->tid,
		.start_ns = task->start_ns,
		.task = task,
		.seen_ns = is_new ? task->start_ns : seen_ns,
		.is_read = is_new};
	HASH_ADD_INT(t->threads, tid, thread);
	if (!thread->hh.tbl) {
		free(thread);
		return NULL;
	}
	task->used = true;
	return thread;
}

static void follow_targets(struct thread_times *t, uint64_t now_ns)
{
	for (struct task *task = t->tasks->live; task; task = task->hh.next)
		if (targets_take(t->targets, task))
			(void)find_or_follow(t, task, now_ns);
}

/* A thread that execs a program of another user, or leaves the control group, is no target any more. */
static void unfollow_others(struct thread_times *t)
{
	struct thread *next;
	for (struct thread *thread = t->threads; thread; thread = next) {
		next = thread->hh.next;
		if (!thread->task->end_ns && targets_take(t->targets, thread->task))
			continue;
		close_name(t, thread);
		unfollow(t, thread);
	}
}

/* Look at n_most threads, those first that were looked at longest ago. */
static void look_at_threads(struct thread_times *t, uint64_t now_ns, unsigned n_most)
{
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	follow_targets(t, now_ns);
	unfollow_others(t);
	unsigned n = HASH_COUNT(t->threads);
	for (n = n < n_most ? n : n_most; n > 0; n--) {
		struct thread *thread = t->next ? t->next : t->threads;
		look_at(t, thread);
		t->next = thread->hh.next;
	}
	const uint64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	t->next_look_ns =
		clock_ns(CLOCK_MONOTONIC) +
		(took_ns * LOOK_TIMES > LOOK_EVERY_NS ? took_ns * LOOK_TIMES : LOOK_EVERY_NS);
}

void thread_times_look(struct thread_times *t, uint64_t now_ns)
{
	if (t && now_ns >= t->next_look_ns)
		look_at_threads(t, now_ns, LOOK_THREADS);
}

void thread_times_look_at_all(struct thread_times *t, uint64_t now_ns)
{
	if (t)
		look_at_threads(t, now_ns, UINT_MAX);
}

/* Its callers came after the thread's end, at which the sample was missing. */
static void sample_of_ended(struct thread_times *t, const struct task *task, uint64_t weight_ns)
{
	for (uint32_t i = t->n_ended; i > 0; i--) {
		struct window_time *time = &t->ended[i - 1];
		if (time->who != task)
			continue;
		const uint64_t ns = least(weight_ns, time->unsplit_ns);
		time->unsplit_ns -= ns;
		time->ran_ns += ns;
		return;
	}
}

/* Each event that samples by time has all of it: that of the first on a hart counts. */
static bool leads(struct thread_times *t, const struct attribution *a)
{
	if (a->hart < 0 || a->hart >= HARTS_MAX || a->weight_ns == 0)
		return false;
	if (!t->has_leader[a->hart])
		t->leader[a->hart] = a->event;
	t->has_leader[a->hart] = true;
	return t->leader[a->hart] == a->event;
}

void thread_times_sample(struct thread_times *t, const struct attribution *a)
{
	struct task *task = a->task;
	if (!t || !task || task->kernel_thread || !leads(t, a))
		return;
	if (task->end_ns) {
		sample_of_ended(t, task, a->weight_ns);
		return;
	}
	struct thread *thread = find_or_follow(t, task, a->time_ns);
	if (thread && a->time_ns > thread->seen_ns)
		thread->sampled_ns += a->weight_ns;
}

void thread_times_end(struct thread_times *t, struct task *task, uint64_t time_ns)
{
	if (!t || !targets_take(t->targets, task))
		return;
	struct thread *thread = find_or_follow(t, task, time_ns);
	if (!thread)
		return;
	account_unread(thread, time_ns);
	close_name(t, thread);
	unfollow(t, thread);
}

int thread_times_give(struct thread_times *t, struct window *w)
{
	if (!t)
		return 0;
	for (struct thread *thread = t->threads; thread; thread = thread->hh.next)
		close_name(t, thread);
	int r = t->is_short ? -ENOMEM : 0;
	t->is_short = false;
	for (uint32_t i = 0; i < t->n_ended && r == 0; i++)
		r = window_add_time(w, &t->ended[i]);
	t->n_ended = 0;
	return r;
}

void thread_times_mark(const struct thread_times *t, struct sweep *s)
{
	if (!t)
		return;
	for (const struct thread *thread = t->threads; thread; thread = thread->hh.next)
		sweep_keep_task(s, thread->task);
	for (uint32_t i = 0; i < t->n_ended; i++)
		sweep_keep_task(s, t->ended[i].who);
}

struct thread_times *thread_times_free(struct thread_times *t)
{
	if (!t)
		return NULL;
	struct thread *thread, *next;
	HASH_ITER (hh, t->threads, thread, next) {
		HASH_DEL(t->threads, thread);
		free(thread);
	}
	free(t->ended);
	free(t);
	return NULL;
}
