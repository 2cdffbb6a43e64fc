/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/aside/aside.c where no thread can be started */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static int no_thread(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *userdata)
{
	(void)thread, (void)attributes, (void)run, (void)userdata;
	return EAGAIN;
}

#define pthread_create no_thread
#include "daemon/aside/aside.c"

#include "tests/unit/test.h"

static unsigned n_freed;

static void run_nothing(struct aside_work *w)
{
	(void)w;
	ck_abort();
}

static void count_free(struct aside_work *w)
{
	n_freed++;
	free(w);
}

static struct aside_work *make(void)
{
	struct aside_work *w = calloc(1, sizeof(*w));
	ck_assert_ptr_nonnull(w);
	*w = (struct aside_work){.run = run_nothing, .free = count_free, .uid = 1};
	return w;
}

TEST(without_a_thread_a_work_is_refused_at_once)
{
	struct aside *a;
	uint64_t blocked_ns, began_ns = clock_ns(CLOCK_MONOTONIC);
	ck_assert_int_eq(aside_new(2, 1, &a), 0);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(aside_do(a, make(), &blocked_ns), ASIDE_FULL);
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began_ns, 10 * ASIDE_BEGIN_NS);
	ck_assert(n_freed == 20 && aside_count(a, 1) == 0);
	aside_free(a);
}

TEST(what_is_queued_is_freed_at_the_end)
{
	struct aside *a;
	ck_assert_int_eq(aside_new(2, 1, &a), 0);
	aside_queue(a, make());
	ck_assert_uint_eq(aside_count(a, 1), 1);
	aside_free(a);
	ck_assert_uint_eq(n_freed, 1);
}
