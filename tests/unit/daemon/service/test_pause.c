/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Pauses: one at a time, none for long, and not too often. Time is what the tests say it is.
 */
#include "daemon/service/pause.h"
#include "tests/unit/test.h"

#define UID 1000

static const int ada, bob;

/* A pause of that length, and what pause_end says. */
static bool pause_for(struct pause *p, uint64_t from_ns, uint64_t ns)
{
	ck_assert_int_eq(pause_begin(p, &ada, UID, from_ns), 0);
	return pause_end(p, &ada, from_ns + ns);
}

TEST(a_pause_begins_and_ends_once)
{
	struct pause p = {0};
	ck_assert(!pause_look(&p, SECOND));
	ck_assert_int_eq(pause_begin(&p, &ada, UID, SECOND), 0);
	ck_assert(pause_look(&p, SECOND));
	ck_assert(!pause_look(&p, 2 * SECOND));
	ck_assert_ptr_eq(p.who, &ada);
	ck_assert(pause_end(&p, &ada, 3 * SECOND));
	ck_assert(pause_look(&p, 3 * SECOND));
	ck_assert(!pause_look(&p, 3 * SECOND));
	ck_assert_uint_eq(p.took_ns, 2 * SECOND);
	ck_assert_uint_eq(p.n, 1);
	ck_assert_int_gt(p.realtime_ns, 0);
}

TEST(two_do_not_measure_at_once)
{
	struct pause p = {0};
	ck_assert_int_eq(pause_begin(&p, &ada, UID, SECOND), 0);
	ck_assert_int_eq(pause_begin(&p, &bob, UID, 2 * SECOND), PAUSE_BUSY);
	ck_assert_int_eq(pause_begin(&p, &ada, UID, 2 * SECOND), PAUSE_BUSY);
	ck_assert_uint_eq(pause_free_ns(&p, 2 * SECOND), SECOND + PAUSE_NS_MAX);
	ck_assert(!pause_end(&p, &bob, 3 * SECOND)); /* it is not bob's */
	ck_assert_ptr_eq(p.who, &ada);
	ck_assert(pause_end(&p, &ada, 3 * SECOND));
	ck_assert_int_eq(pause_begin(&p, &bob, UID, 3 * SECOND), 0);
}

TEST(a_pause_ends_by_itself)
{
	struct pause p = {0};
	ck_assert_int_eq(pause_begin(&p, &ada, UID, SECOND), 0);
	ck_assert(pause_look(&p, SECOND));
	ck_assert(!pause_look(&p, PAUSE_NS_MAX));
	ck_assert(pause_look(&p, SECOND + PAUSE_NS_MAX));
	ck_assert_ptr_null(p.who);
	ck_assert_uint_eq(p.took_ns, PAUSE_NS_MAX);
	ck_assert(!pause_end(&p, &ada, 2 * PAUSE_NS_MAX));
	/* also where nobody looked meanwhile */
	ck_assert(!pause_for(&p, 100 * PAUSE_NS_MAX, PAUSE_NS_MAX + 1));
	ck_assert_uint_eq(p.took_ns, PAUSE_NS_MAX);
}

TEST(nobody_keeps_the_machine_unwatched)
{
	struct pause p = {0};
	/* quick, and all of them after it */
	ck_assert(pause_for(&p, SECOND, 10 * SECOND));
	ck_assert(pause_for(&p, 11 * SECOND, 60 * SECOND));
	ck_assert(pause_for(&p, 72 * SECOND, 60 * SECOND));
	uint64_t now_ns = 133 * SECOND;
	ck_assert_int_eq(pause_begin(&p, &bob, UID, now_ns), PAUSE_TOO_OFTEN);
	ck_assert_ptr_null(p.who);
	uint64_t free_ns = pause_free_ns(&p, now_ns);
	ck_assert_uint_gt(free_ns, now_ns + 300 * SECOND);
	ck_assert_uint_lt(free_ns, now_ns + 600 * SECOND);
	ck_assert_int_eq(pause_begin(&p, &bob, UID, free_ns - SECOND), PAUSE_TOO_OFTEN);
	ck_assert_int_eq(pause_begin(&p, &bob, UID, free_ns), 0);

	/* over a day, however eager they are */
	uint64_t paused_ns = 0;
	p = (struct pause){0};
	for (uint64_t at_ns = SECOND; at_ns < 86400 * SECOND;) {
		uint64_t next_ns = pause_free_ns(&p, at_ns);
		ck_assert_uint_ge(next_ns, at_ns);
		ck_assert(!pause_for(&p, next_ns, PAUSE_NS_MAX));
		paused_ns += PAUSE_NS_MAX;
		at_ns = next_ns + PAUSE_NS_MAX;
	}
	ck_assert_uint_lt(paused_ns, 86400 * SECOND / PAUSE_PAID_BY);
}

TEST(each_second_counts_once)
{
	struct pause p = {0};
	ck_assert_int_eq(pause_begin(&p, &ada, UID, 10 * SECOND), 0);
	ck_assert_uint_eq(pause_seconds(&p, 10 * SECOND), 0);
	ck_assert_uint_eq(pause_seconds(&p, 10 * SECOND + SECOND / 2), 0);
	ck_assert_uint_eq(pause_seconds(&p, 12 * SECOND + SECOND / 2), 2);
	ck_assert(pause_end(&p, &ada, 13 * SECOND + SECOND / 4));
	ck_assert_uint_eq(pause_seconds(&p, 14 * SECOND), 2); /* with the rest of one */
	ck_assert_uint_eq(pause_seconds(&p, 99 * SECOND), 0);
	ck_assert(pause_for(&p, 100 * SECOND, 1)); /* however short */
	ck_assert_uint_eq(pause_seconds(&p, 100 * SECOND + 1), 1);
}
