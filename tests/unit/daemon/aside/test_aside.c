/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/aside/aside.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/test.h"

struct wait_work {
	struct aside_work work;
	int fd; /* blocks until the other end of this pipe is closed; -1: does not */
	uint64_t busy_ns;
	unsigned n_naps; /* of 100 us, each after busy_ns */
};

static atomic_uint n_ran, n_freed;
static struct aside *a;

static void begin(void)
{
	ck_assert_int_eq(aside_new(3, 2, &a), 0);
}

EACH_TEST(.begin = begin);

static void wait_run(struct aside_work *w)
{
	const struct wait_work *own = (struct wait_work *)w;
	char byte;
	for (unsigned i = 0; i <= own->n_naps; i++) {
		uint64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + own->busy_ns;
		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
			continue;
		if (own->n_naps)
			usleep(100);
	}
	if (own->fd >= 0)
		(void)!read(own->fd, &byte, 1);
	n_ran++;
}

static void wait_free(struct aside_work *w)
{
	n_freed++;
	free(w);
}

static struct aside_work *make(uid_t uid, int fd)
{
	struct wait_work *w = calloc(1, sizeof(*w));
	ck_assert_ptr_nonnull(w);
	*w = (struct wait_work){.work = {.run = wait_run, .free = wait_free, .uid = uid}, .fd = fd};
	return &w->work;
}

static void expect_soon(const atomic_uint *n, unsigned value)
{
	for (int i = 0; i < 500 && *n != value; i++)
		usleep(10000);
	ck_assert_uint_eq(*n, value);
}

static int do_work(struct aside_work *w)
{
	uint64_t blocked_ns, began = clock_ns(CLOCK_MONOTONIC);
	int r = aside_do(a, w, &blocked_ns);
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began, 2 * SECOND);
	if (r == ASIDE_LATE)
		ck_assert_uint_ge(blocked_ns, ASIDE_BLOCKED_NS / 2);
	return r;
}

TEST(a_work_is_done_and_the_callers_again)
{
	struct aside_work *w = make(1, -1);
	ck_assert_int_eq(do_work(w), 0);
	ck_assert_uint_eq(n_ran, 1);
	ck_assert_uint_eq(n_freed, 0);
	w->free(w);
}

TEST(a_work_that_blocks_is_left_and_freed_when_it_ends)
{
	int fd[2];
	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_eq(do_work(make(1, fd[0])), ASIDE_LATE);
	ck_assert_uint_eq(aside_count(a, 1), 1);
	ck_assert_uint_eq(n_freed, 0);
	close(fd[1]);
	expect_soon(&n_freed, 1);
	ck_assert_uint_eq(aside_count(a, 1), 0);
}

TEST(a_work_that_runs_for_long_is_not_late)
{
	struct aside_work *w = make(1, -1);
	((struct wait_work *)w)->busy_ns = 100 * MS;
	ck_assert_int_eq(do_work(w), 0);
	w->free(w);
}

/* It also sleeps for moments, as a thread does that waits for a lock. */
TEST(a_work_that_waits_for_a_processor_is_not_blocked)
{
#ifdef __SANITIZE_ADDRESS__
	printf("SKIP a_work_that_waits_for_a_processor_is_not_blocked: shown by the plain run; it "
	       "is about time\n");
	return;
#endif
	enum { N_LOOPS = 16, N_NAPS = 20 };
	pid_t loop[N_LOOPS];
	uint64_t blocked_ns, began_ns = clock_ns(CLOCK_MONOTONIC);
	struct aside_work *w = make(1, -1);
	((struct wait_work *)w)->busy_ns = MS;
	((struct wait_work *)w)->n_naps = N_NAPS;
	for (int i = 0; i < N_LOOPS; i++)
		if ((loop[i] = fork()) == 0)
			for (;;)
				(void)getppid();
	ck_assert_int_eq(aside_do(a, w, &blocked_ns), 0);
	uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - began_ns;
	for (int i = 0; i < N_LOOPS; i++) {
		kill(loop[i], SIGKILL);
		waitpid(loop[i], NULL, 0);
	}
	printf("  blocked %.1f ms of %.1f\n", (double)blocked_ns / 1e6, (double)took_ns / 1e6);
	ck_assert_uint_lt(blocked_ns, 8 * MS);
	w->free(w);
}

TEST(a_user_has_few_blocked_threads_and_others_have_the_rest)
{
	int fd[2];
	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_eq(do_work(make(1, fd[0])), ASIDE_LATE);
	ck_assert_int_eq(do_work(make(1, fd[0])), ASIDE_LATE);
	ck_assert_int_eq(do_work(make(1, -1)), ASIDE_FULL);
	struct aside_work *w = make(2, -1);
	ck_assert_int_eq(do_work(w), 0);
	w->free(w);
	ck_assert_int_eq(do_work(make(2, fd[0])), ASIDE_LATE);
	ck_assert_int_eq(do_work(make(3, -1)), ASIDE_FULL);
	close(fd[1]);
	expect_soon(&n_freed, 6);
	w = make(1, -1);
	ck_assert_int_eq(do_work(w), 0);
	w->free(w);
}

TEST(what_is_queued_waits_for_its_users_threads_only)
{
	int fd[2];
	ck_assert_int_eq(pipe(fd), 0);
	for (int i = 0; i < 4; i++)
		aside_queue(a, make(1, fd[0]));
	aside_queue(a, make(2, -1));
	expect_soon(&n_ran, 1);
	ck_assert_uint_eq(aside_count(a, 1), 4);
	close(fd[1]);
	expect_soon(&n_freed, 5);
}

TEST(an_end_does_not_wait_for_what_is_blocked)
{
	int fd[2];
	ck_assert_int_eq(pipe(fd), 0);
	for (int i = 0; i < 4; i++)
		aside_queue(a, make(1, fd[0]));
	usleep(50000);
	aside_free(a);
	ck_assert_uint_eq(n_freed, 2); /* those that had not begun */
	close(fd[1]);
	expect_soon(&n_freed, 4);
}
