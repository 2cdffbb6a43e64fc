/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A queue, and threads that take works from it: the oldest work of a user who has a thread left. A thread
 * that takes a work starts another thread if more works may run and no thread is idle, so a blocked thread
 * delays nothing behind it. The loop gives up a work when its thread has slept for too long, not by the clock
 * alone: a thread that runs or waits for a processor is as slow as the loop would be. Both sides wake each
 * other by pipes, which take half of the time of a condition: their wake-ups leave the other on the same
 * processor.
 */
#include "daemon/aside/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Works have a buffer of some KB. Source: man 3 pthread_attr_setstacksize. */
#define STACK_BYTES (256u << 10)
/* Time between two looks at a work for which the loop waits. */
#define LOOK_MS 2
/* The kernel's record of how long a thread ran and waited for a processor. */
#define SCHEDSTAT "/proc/thread-self/schedstat"

struct aside {
	pthread_mutex_t lock;
	int news[2];  /* a byte wakes a thread: work was queued; end of file: threads shall end */
	int ended[2]; /* a byte for the loop: what it waits for has ended */
	unsigned threads_max, user_max;
	unsigned n_threads, n_running, n_idle; /* neither: about to check for more work */
	bool over;
	struct aside_work *waiting, *running;
};

static bool may_run(const struct aside *a, const struct aside_work *next)
{
	const struct aside_work *w;
	unsigned n = 0;
	DL_FOREACH(a->running, w)
	if (w->key && w->key == next->key)
		return false;
	else
		n += w->uid == next->uid;
	return n < a->user_max;
}

static struct aside_work *next_of(const struct aside *a)
{
	struct aside_work *w;
	DL_FOREACH(a->waiting, w)
	if (may_run(a, w))
		return w;
	return NULL;
}

static uint64_t thread_ns(pthread_t thread)
{
	clockid_t clock;
	struct timespec t;
	if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The time for which a thread has waited for a processor up to now, if it does not wait for one now; 0 if the
 * kernel does not give it. Source: Documentation/scheduler/sched-stats.rst of Linux. */
static uint64_t waited_ns(int schedstat_fd)
{
	char text[64], *waited;
	ssize_t n = schedstat_fd < 0 ? 0 : pread(schedstat_fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	(void)strtoull(text, &waited, 10); /* how long it ran: up to its last tick */
	return strtoull(waited, NULL, 10);
}

/* The time for which the thread has neither run nor waited for a processor. */
static uint64_t blocked_ns(const struct aside_work *w, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - w->began_ns;
	if (took_ns < ASIDE_SHORT_NS)
		return 0;
	uint64_t busy_ns =
		thread_ns(w->thread) - w->cpu_ns + waited_ns(w->schedstat_fd) - w->waited_ns;
	return took_ns > busy_ns ? took_ns - busy_ns : 0;
}

static void aside_destroy(struct aside *a)
{
	closep(&a->news[0]);
	closep(&a->news[1]);
	closep(&a->ended[0]);
	closep(&a->ended[1]);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void tell(int fd)
{
	while (write(fd, "", 1) < 0 && errno == EINTR)
		continue;
}

static void hear(int fd)
{
	char byte;
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		continue;
}

static void start_thread(struct aside *a);

/* Locked before and after. */
static void run(struct aside *a, struct aside_work *w, int schedstat_fd)
{
	DL_DELETE(a->waiting, w);
	DL_APPEND(a->running, w);
	a->n_running++;
	w->state = ASIDE_RUNS;
	w->thread = pthread_self();
	w->tid = gettid();
	w->began_ns = clock_ns(CLOCK_MONOTONIC);
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	w->schedstat_fd = schedstat_fd;
	w->waited_ns = waited_ns(schedstat_fd);
	if (a->n_running == a->n_threads && next_of(a))
		start_thread(a);
	pthread_mutex_unlock(&a->lock);
	w->run(w);
	w->blocked_ns = blocked_ns(w, clock_ns(CLOCK_MONOTONIC));
	w->has_run = true;
	pthread_mutex_lock(&a->lock);
	DL_DELETE(a->running, w);
	a->n_running--;
	w->state = ASIDE_ENDED;
	if (w->left) {
		w->free(w);
		return;
	}
	pthread_mutex_unlock(&a->lock);
	tell(a->ended[1]);
	pthread_mutex_lock(&a->lock);
}

static void *work(void *userdata)
{
	struct aside *a = userdata;
	_cleanup_(closep) int schedstat_fd = open(SCHEDSTAT, O_RDONLY | O_CLOEXEC);
	pthread_mutex_lock(&a->lock);
	while (!a->over) {
		struct aside_work *w = next_of(a);
		if (w) {
			run(a, w, schedstat_fd);
			continue;
		}
		a->n_idle++;
		pthread_mutex_unlock(&a->lock);
		hear(a->news[0]);
		pthread_mutex_lock(&a->lock);
		a->n_idle--;
	}
	bool last = --a->n_threads == 0;
	pthread_mutex_unlock(&a->lock);
	if (last)
		aside_destroy(a);
	return NULL;
}

/* Start another thread. If that fails, queued works wait for a thread that is there. */
static void start_thread(struct aside *a)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	if (a->n_threads >= a->threads_max || pthread_attr_init(&attributes) != 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	a->n_threads += pthread_create(&thread, &attributes, work, a) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

/* Locked. */
static void add(struct aside *a, struct aside_work *w)
{
	w->state = ASIDE_WAITS;
	w->blocked_ns = 0;
	DL_APPEND(a->waiting, w);
	if (a->n_running == a->n_threads)
		start_thread(a);
	else if (a->n_idle > 0)
		tell(a->news[1]);
}

void aside_queue(struct aside *a, struct aside_work *w)
{
	pthread_mutex_lock(&a->lock);
	w->left = true;
	add(a, w);
	pthread_mutex_unlock(&a->lock);
}

size_t aside_count(struct aside *a, uid_t uid)
{
	const struct aside_work *w;
	size_t n = 0;
	pthread_mutex_lock(&a->lock);
	DL_FOREACH(a->waiting, w)
	n += w->uid == uid;
	DL_FOREACH(a->running, w)
	n += w->uid == uid;
	pthread_mutex_unlock(&a->lock);
	return n;
}

/* Source: man 5 proc_pid_stat; the name of a thread of ours has no parenthesis. */
static bool is_runnable(pid_t tid)
{
	char path[64], text[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, ") R ");
}

/* Locked before and after. Wait for an end, or a moment. */
static void wait_for_end(struct aside *a)
{
	struct pollfd p = {.fd = a->ended[0], .events = POLLIN};
	pthread_mutex_unlock(&a->lock);
	(void)poll(&p, 1, LOOK_MS);
	pthread_mutex_lock(&a->lock);
}

/* Locked. In this order: a sleeping thread has no wait for a processor that is missing from its
 * sum; and a thread that has done its work may sleep for the lock. */
static bool is_late(const struct aside_work *w, uint64_t queued_ns, uint64_t now_ns)
{
	if (w->state == ASIDE_WAITS)
		return now_ns - queued_ns > ASIDE_BEGIN_NS;
	return w->state == ASIDE_RUNS && now_ns - w->began_ns > ASIDE_BLOCKED_NS &&
	       !is_runnable(w->tid) && blocked_ns(w, now_ns) > ASIDE_BLOCKED_NS && !w->has_run;
}

int aside_do(struct aside *a, struct aside_work *w, uint64_t *ret_blocked_ns)
{
	uint64_t queued_ns = clock_ns(CLOCK_MONOTONIC), now_ns = queued_ns;
	int r = 0;
	*ret_blocked_ns = 0;
	pthread_mutex_lock(&a->lock);
	if (!may_run(a, w) || a->n_running >= a->threads_max) {
		pthread_mutex_unlock(&a->lock);
		w->free(w);
		return ASIDE_FULL;
	}
	add(a, w);
	if (a->n_running == a->n_threads) { /* RLIMIT_NPROC, TasksMax: no thread would take it */
		DL_DELETE(a->waiting, w);
		pthread_mutex_unlock(&a->lock);
		w->free(w);
		return ASIDE_FULL;
	}
	while (w->state != ASIDE_ENDED && r == 0) {
		wait_for_end(a);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (is_late(w, queued_ns, now_ns))
			r = ASIDE_LATE;
	}
	*ret_blocked_ns = w->state == ASIDE_RUNS ? blocked_ns(w, now_ns) : w->blocked_ns;
	w->left = r != 0;
	pthread_mutex_unlock(&a->lock);
	if (r == 0)
		hear(a->ended[0]);
	return r;
}

int aside_new(unsigned threads_max, unsigned user_max, struct aside **ret_aside)
{
	struct aside *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct aside){.news = {-1, -1}, .ended = {-1, -1}};
	a->threads_max = threads_max;
	a->user_max = user_max;
	pthread_mutex_init(&a->lock, NULL);
	/* at most one byte for each idle thread, or a few */
	if (pipe2(a->news, O_CLOEXEC) < 0 || pipe2(a->ended, O_CLOEXEC) < 0) {
		int r = -errno;
		aside_destroy(a);
		return r;
	}
	*ret_aside = a;
	return 0;
}

struct aside *aside_free(struct aside *a)
{
	struct aside_work *w, *next;
	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	a->over = true;
	DL_FOREACH_SAFE(a->waiting, w, next)
	{
		DL_DELETE(a->waiting, w);
		w->free(w);
	}
	bool last = a->n_threads == 0;
	closep(&a->news[1]);
	a->news[1] = -1;
	pthread_mutex_unlock(&a->lock);
	if (last)
		aside_destroy(a);
	return NULL;
}
