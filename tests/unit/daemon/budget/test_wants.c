/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/wants.c */

#include "daemon/budget/wants.h"
#include "tests/unit/test.h"

TEST(wants_are_the_highest_of_all_and_are_withdrawn)
{
	struct wants wants = {0};
	char who[WANTS_MAX + 1] = {0};
	for (unsigned i = 0; i < sizeof(who); i++)
		ck_assert_int_eq(wants_set(&wants, &who[i], 100 + i, 0), 0);
	/* the one beyond the limit raises nothing */
	ck_assert_uint_eq(wants_rate(&wants, 99), 100 + WANTS_MAX - 1);
	ck_assert_int_eq(wants_set(&wants, &who[WANTS_MAX - 1], 0, 0), 0);
	ck_assert_uint_eq(wants_rate(&wants, 99), 100 + WANTS_MAX - 2);
	ck_assert_int_eq(wants_set(&wants, &who[7], 50, 20000), 0);
	ck_assert_uint_eq(wants_held(&wants, &who[7])->hz, 50);
	ck_assert_ptr_null(wants_held(&wants, &who[8]));
	ck_assert_ptr_null(wants_held(&wants, &wants));
	for (unsigned i = 0; i < sizeof(who); i++)
		ck_assert_int_eq(wants_set(&wants, &who[i], 0, 0), 0);
	ck_assert_uint_eq(wants_rate(&wants, 99), 99);
	wants_clear(&wants);
}

/* A walk of a client's own. */
