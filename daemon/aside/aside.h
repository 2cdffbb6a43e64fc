/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Aside: work that may block, in threads of its own
 *
 * The loop never makes a system call that another process can block. Such a call is a work for a
 * thread: the loop queues it and continues, or waits for a few milliseconds. We do not end a
 * blocked thread (no signal may reach it). Other works of its user then wait for that user's other
 * thread, while further threads do the works of other users.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Time for which a work may be blocked while the loop waits for it; a read of /proc takes some 20 µs. */
#define ASIDE_BLOCKED_NS 10000000u
/* Time below which a work counts as not blocked: to find out would cost more than the wait. */
#define ASIDE_SHORT_NS 100000u
/* Time after which a thread has begun, even on a busy machine. */
#define ASIDE_BEGIN_NS 200000000u

struct aside;

/* The beginning of a struct of the caller's, allocated by malloc. */
struct aside_work {
	/* In a thread. */
	void (*run)(struct aside_work *w);
	/* Free it, in whichever thread has it last. */
	void (*free)(struct aside_work *w);
	uid_t uid;    /* for whom */
	uint64_t key; /* of works that wait for the same, one runs at a time; 0: for nothing else */
	/* aside.c's: */
	enum { ASIDE_WAITS, ASIDE_RUNS, ASIDE_ENDED } state;
	bool left; /* nobody waits for it any more */
	pid_t tid;
	pthread_t thread;
	int schedstat_fd; /* of the thread */
	uint64_t began_ns, cpu_ns,
		waited_ns;   /* CLOCK_MONOTONIC, and the thread's own times, then */
	uint64_t blocked_ns; /* once it has run */
	atomic_bool has_run;
	struct aside_work *prev, *next;
};

/* At most threads_max threads, which start when they are needed, and user_max of one user at a time.
 * 0 or -errno. */
int aside_new(unsigned threads_max, unsigned user_max, struct aside **ret_aside);

/* Queue a work, which is freed when it was done. Takes w. */
void aside_queue(struct aside *a, struct aside_work *w);
/* The number of a user's works that are queued or under way. */
size_t aside_count(struct aside *a, uid_t uid);

/* Run a work now. 0: done, and w is the caller's again. ASIDE_LATE: it is blocked, and freed when
 * it ends. ASIDE_FULL: its user has user_max threads that are blocked or one with that key, all
 * threads are blocked, or no thread can be started; w is freed. *ret_blocked_ns: about the time for
 * which the caller waited while the work neither ran nor waited for a processor; 0 if it was less
 * than ASIDE_SHORT_NS. */
enum { ASIDE_LATE = 1, ASIDE_FULL };
int aside_do(struct aside *a, struct aside_work *w, uint64_t *ret_blocked_ns);

/* End the threads; blocked ones continue alone. Queued works are freed and not done: the process is about to end,
 * which closes all that they would close. */
struct aside *aside_free(struct aside *a);
