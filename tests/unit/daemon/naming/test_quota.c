/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/naming/quota.c: what each user may hold of a table */

#include "daemon/naming/quota.h"

#include "tests/unit/test.h"

#define MAX 1600u

static struct quota q;

static void teardown(void)
{
	quota_clear(&q);
}

EACH_TEST(.end = teardown);

/* How many more that user gets, one by one. */
static uint64_t fill(uid_t uid)
{
	uint64_t n = 0;
	while (quota_take(&q, uid, MAX, 1))
		n++;
	return n;
}

TEST(one_user_alone_has_half_and_the_next_half_of_the_rest)
{
	ck_assert_uint_eq(fill(1000), 750);
	ck_assert_uint_eq(fill(1001), 375);
	ck_assert_uint_eq(fill(1002), 187);
	ck_assert_uint_eq(fill(1000), 0);
	ck_assert_uint_eq(q.n_refused, 4);
	ck_assert_uint_eq(q.held, 750 + 375 + 187);
}

TEST(root_has_all_that_is_left)
{
	fill(1000);
	ck_assert_uint_eq(fill(0), MAX - 750);
	ck_assert_uint_eq(fill(1001), 0);
}

TEST(a_part_of_it_is_left_for_root)
{
	for (uid_t uid = 1; uid < 2000; uid++)
		fill(uid);
	ck_assert_uint_ge(fill(0), MAX / QUOTA_ROOT_PART);
}

TEST(what_is_nobodys_is_one_users)
{
	ck_assert_uint_eq(fill((uid_t)-1), 750);
	ck_assert_uint_eq(quota_held(&q, (uid_t)-1), 750);
	ck_assert_uint_eq(fill(1000), 375);
}

TEST(what_is_given_back_can_be_taken_again)
{
	ck_assert_uint_eq(fill(1000), 750);
	quota_give(&q, 1000, 700);
	ck_assert_uint_eq(quota_held(&q, 1000), 50);
	ck_assert_uint_eq(fill(1000), 700);
	quota_give(&q, 1000, 750);
	ck_assert_uint_eq(quota_held(&q, 1000), 0);
	ck_assert_ptr_null(q.users);
	ck_assert_uint_eq(q.held, 0);
	quota_give(&q, 1000, 1); /* nothing is there */
	ck_assert_uint_eq(q.held, 0);
}

TEST(who_gets_nothing_has_no_entry)
{
	ck_assert(!quota_take(&q, 1000, MAX, MAX));
	ck_assert_ptr_null(q.users);
	ck_assert_uint_eq(quota_held(&q, 1000), 0);
}
