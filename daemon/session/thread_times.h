/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Thread times: how long the threads of a recording's targets lived, had a hart, and waited for one
 *
 * Linux counts both for each thread, in /proc/PID/task/TID/schedstat. Threads are read at drains. What a thread did
 * between the last look and its end is divided by its samples, and by how it waited before; if that is not known, the
 * rest is unsplit.
 */

#include "daemon/aggregate/window.h"
#include "daemon/session/targets.h"
#include "daemon/session/thread_waits.h"

struct sweep;
struct thread_times;

/* Threads that are followed at the same time; others are left out. */
#define THREAD_TIMES_MAX 4096u

/* targets are borrowed. proc: "/proc", or a folder of files in tests; borrowed. The threads of the targets count from
 * start_ns on. 0 or -ENOMEM. */
int thread_times_new(const struct targets *targets, const struct task_table *tasks,
	const char *proc, uint64_t start_ns, struct thread_times **ret_times);

/* t may be NULL in all that follow. */

/* From now on, a look at a thread that waits is told to `waits`: what for, and the time since the look before, for which
 * it stands. The time between the last look and a thread's end is missing. */
typedef void thread_times_waits(void *userdata, struct task *task, const struct thread_wait *wait,
	uint64_t now_ns, uint64_t weight_ns);
/* The same of each thread that is read: the time for which it waited for a hart since it began. */
typedef void thread_times_ready(void *userdata, const struct task *task, uint64_t ready_ns);
/* Either may be NULL. */
void thread_times_watch(struct thread_times *t, thread_times_waits *waits,
	thread_times_ready *ready, void *userdata);

/* Look at the threads, if that is due: a hundredth of the loop's time at most. */
void thread_times_look(struct thread_times *t, uint64_t now_ns);
/* The same at all threads, whether it is due or not: when a recording begins and ends. 8 µs a thread. */
void thread_times_look_at_all(struct thread_times *t, uint64_t now_ns);
/* A sample of a target. */
void thread_times_sample(struct thread_times *t, const struct attribution *a);
/* A task ended, and with it its thread (task.h). */
void thread_times_end(struct thread_times *t, struct task *task, uint64_t time_ns);
/* Add all that is known by now to that window. 0 or -ENOMEM. */
int thread_times_give(struct thread_times *t, struct window *w);
/* Tasks that it holds (attribute/sweep.h). */
void thread_times_mark(const struct thread_times *t, struct sweep *s);

struct thread_times *thread_times_free(struct thread_times *t);
