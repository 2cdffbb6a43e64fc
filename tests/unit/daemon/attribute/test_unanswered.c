/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/unanswered.c: a list alone, without the room */

#include "daemon/attribute/unanswered.h"

#include <stdlib.h>

#include "tests/unit/test.h"

static struct unanswered *list;
static struct unanswered_pid got[UNANSWERED_MAX];

static void begin(void)
{
	list = unanswered_new();
	ck_assert_ptr_nonnull(list);
}

static void end(void)
{
	free(list);
}

EACH_TEST(.begin = begin, .end = end);

static void add(pid_t pid, uint32_t n_tries)
{
	unanswered_add(list, &(struct unanswered_pid){.pid = pid, .n_tries = n_tries});
}

TEST(a_process_is_taken_once_with_its_tries_counted)
{
	add(10, 0);
	add(10, 5); /* it is noted already */
	add(11, 1);
	ck_assert_uint_eq(unanswered_take(list, 10 * UNANSWERED_AGAIN_NS, got), 2);
	ck_assert_int_eq(got[0].pid, 10);
	ck_assert_uint_eq(got[0].n_tries, 1);
	ck_assert_int_eq(got[1].pid, 11);
	ck_assert_uint_eq(got[1].n_tries, 2);
	ck_assert_uint_eq(unanswered_take(list, 20 * UNANSWERED_AGAIN_NS, got), 0);
}

TEST(processes_are_read_again_once_a_second)
{
	const uint64_t first_ns = 10 * UNANSWERED_AGAIN_NS;

	add(10, 0);
	ck_assert_uint_eq(unanswered_take(list, first_ns, got), 1);
	add(10, got[0].n_tries);
	ck_assert_uint_eq(unanswered_take(list, first_ns + UNANSWERED_AGAIN_NS - 1, got), 0);
	ck_assert_uint_eq(unanswered_take(list, first_ns + UNANSWERED_AGAIN_NS, got), 1);
	ck_assert_uint_eq(got[0].n_tries, 2);
}

TEST(a_process_is_given_up_after_the_last_try)
{
	add(10, UNANSWERED_TRIES_MAX - 1);
	ck_assert_uint_eq(unanswered_take(list, 10 * UNANSWERED_AGAIN_NS, got), 1);
	add(10, got[0].n_tries);
	ck_assert_uint_eq(unanswered_take(list, 20 * UNANSWERED_AGAIN_NS, got), 0);
}

TEST(beyond_the_limit_a_process_is_not_noted)
{
	for (pid_t pid = 1; pid <= UNANSWERED_MAX + 10; pid++)
		add(pid, 0);
	ck_assert_uint_eq(unanswered_take(list, 10 * UNANSWERED_AGAIN_NS, got), UNANSWERED_MAX);
	ck_assert_int_eq(got[UNANSWERED_MAX - 1].pid, UNANSWERED_MAX);
}

TEST(only_a_process_that_is_noted_becomes_a_target)
{
	add(10, 0);
	add(11, 0);
	unanswered_set_target(list, 11);
	unanswered_set_target(list, 12);
	ck_assert_uint_eq(unanswered_take(list, 10 * UNANSWERED_AGAIN_NS, got), 2);
	ck_assert(!got[0].is_target && got[1].is_target);
}
