/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* How much of each stack is copied: more where stacks are deeper, less once they no longer are. */

#include "daemon/session/copies.h"
#include "tests/unit/test.h"

#define S UINT64_C(1000000000)
#define LEAST 16384u

static struct copies c;
static uint32_t bytes;
static uint64_t now_ns;

static void begin(void)
{
	c = (struct copies){0};
	bytes = LEAST;
	now_ns = 100 * S;
}

/* Seconds in which each had these. */
static void pass(unsigned int seconds, uint64_t n, uint64_t n_deep, uint64_t deepest)
{
	const struct copy_depths found = {.n = n, .n_deep = n_deep, .deepest = deepest};

	for (unsigned int i = 0; i < seconds; i++) {
		bytes = copies_next(&c, &found, bytes, LEAST, now_ns);
		now_ns += S;
	}
}

TEST(where_stacks_are_deeper_copies_grow_up_to_the_kernels_most)
{
	begin();
	pass(10, 99, 5, 9000);
	ck_assert_uint_eq(bytes, 65528);
	pass(200, 99, 5, 9000);
	ck_assert_uint_eq(bytes, 65528);
}

TEST(one_deep_stack_among_many_is_left_cut)
{
	begin();
	pass(600, 400, 1, 9000);
	ck_assert_uint_eq(bytes, LEAST);
}

TEST(two_stacks_of_an_idle_machine_decide_nothing)
{
	begin();
	pass(1, 2, 2, 0);
	pass(60, 0, 0, 0);
	ck_assert_uint_eq(bytes, LEAST);
}

TEST(copies_shrink_a_minute_after_stacks_were_deep)
{
	begin();
	pass(10, 99, 50, 0);
	ck_assert_uint_eq(bytes, 65528);
	pass(40, 99, 0, 9000);
	ck_assert_uint_eq(bytes, 65528);
	pass(90, 99, 0, 9000);
	ck_assert_uint_eq(bytes, 32768);
	pass(60, 99, 0, 9000);
	ck_assert_uint_eq(bytes, LEAST);
	pass(600, 99, 0, 0);
	ck_assert_uint_eq(bytes, LEAST);
}

TEST(copies_that_would_be_nearly_filled_stay)
{
	begin();
	pass(4, 99, 50, 0);
	const uint32_t grown = bytes;

	ck_assert_uint_gt(grown, LEAST);
	pass(600, 99, 0, grown / 8 * 3 + 16);
	ck_assert_uint_eq(bytes, grown);
}

TEST(one_deep_stack_a_minute_keeps_what_was_enough)
{
	begin();
	pass(10, 99, 50, 0);
	for (int i = 0; i < 10; i++) {
		pass(50, 99, 0, 9000);
		pass(1, 99, 1, 9000);
	}
	ck_assert_uint_eq(bytes, 65528);
}
