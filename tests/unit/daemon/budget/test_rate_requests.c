/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/rate_requests.c */

#include "daemon/budget/rate_requests.h"
#include "tests/unit/test.h"

static uid_t all = (uid_t)-1;

TEST(requests_are_the_highest_of_all_and_are_withdrawn)
{
	struct rate_requests requests = {0};
	char who[RATE_REQUESTS_MAX + 1] = {0};
	for (unsigned i = 0; i < sizeof(who); i++)
		ck_assert_int_eq(rate_requests_set(&requests, &who[i], &all, 100 + i, 0), 0);
	/* the one beyond the limit raises nothing */
	ck_assert_uint_eq(rate_requests_highest(&requests, 99), 100 + RATE_REQUESTS_MAX - 1);
	ck_assert_int_eq(rate_requests_set(&requests, &who[RATE_REQUESTS_MAX - 1], &all, 0, 0), 0);
	ck_assert_uint_eq(rate_requests_highest(&requests, 99), 100 + RATE_REQUESTS_MAX - 2);
	ck_assert_int_eq(rate_requests_set(&requests, &who[7], &all, 50, 20000), 0);
	ck_assert_uint_eq(rate_requests_held(&requests, &who[7])->hz, 50);
	ck_assert_ptr_null(rate_requests_held(&requests, &who[8]));
	ck_assert_ptr_null(rate_requests_held(&requests, &requests));
	for (unsigned i = 0; i < sizeof(who); i++)
		ck_assert_int_eq(rate_requests_set(&requests, &who[i], &all, 0, 0), 0);
	ck_assert_uint_eq(rate_requests_highest(&requests, 99), 99);
	rate_requests_clear(&requests);
}
