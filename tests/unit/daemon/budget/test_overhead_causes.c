/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/overhead_causes.c and measures.c: what is put off is chosen by what the time is for, beside the
 * load of a build on a machine without counters.
 */

#include "tests/unit/daemon/budget/overhead_rig.inc"

#include "daemon/sampler/effort.h"

/* Own CPU beside a build, as shares of one of two harts: samples take 0.2 % of it. */
static void beside_a_build(double execs, double naming, double writing)
{
	records_part = 0.002;
	execs_part = execs;
	naming_part = naming;
	writing_part = writing;
	own_part = records_part + execs + naming + writing + 0.001;
}

static void begin_vm(void)
{
	begin_on("x86-vm", SAMPLER_SWITCHES_BEST, false);
	conf.overhead_ppm = 10000;
	conf.flush_ns = 5 * SECOND;
}

EACH_TEST(.begin = begin_vm, .end = end, .seconds = 120);

static const char *over(void)
{
	static char text[256];
	struct overhead_spent s = spent();
	return overhead_says_over(h, &s, text, sizeof(text));
}

/* 80 to 260 execs a second, which cost 1.1 to 1.5 % of each hart. */
TEST(execs_lower_no_rate_and_status_says_what_costs)
{
	for (int i = 0; i < 20; i++) {
		beside_a_build(i % 2 ? 0.022 : 0.030, 0.001, 0.0005);
		pass(MINUTE, true);
		ck_assert_uint_eq(overhead_rate(h), 99);
		ck_assert_int_eq(h->governor.step, STEP_ALL);
		if (i > 1)
			ck_assert_ptr_nonnull(
				strstr(over(), "records of forks, execs and mappings cost 1."));
	}
	ck_assert_ptr_nonnull(strstr(over(), "most of the budget is kept for samples"));
	ck_assert(!h->measures.taken[MEASURE_NAMES] && !h->measures.taken[MEASURE_FLUSHES]);
}

TEST(what_is_not_decided_yet_is_said)
{
	beside_a_build(0.030, 0, 0);
	pass(MINUTE, true);
	ck_assert_msg(strstr(over(), "nothing is decided yet"), "%s", over());
	own_part = 0;
	pass(2 * MINUTE, true);
	ck_assert_str_eq(over(), "");
}

TEST(naming_is_put_off_for_what_it_costs_and_comes_back)
{
	beside_a_build(0.004, 0.024, 0.0005);
	pass(MINUTE + 20, true);
	ck_assert(!h->measures.taken[MEASURE_NAMES]);
	pass(20, true);
	ck_assert(h->measures.taken[MEASURE_NAMES]);
	ck_assert(!h->measures.taken[MEASURE_FLUSHES]);
	ck_assert_double_eq_tol(overhead_naming_share(h), 0.005, 1e-9); /* of two harts */
	beside_a_build(0.004, 0.005, 0.0005);
	pass(MINUTE / 2, true);
	ck_assert(h->measures.taken[MEASURE_NAMES]);
	pass(5 * MINUTE, true);
	ck_assert(!h->measures.taken[MEASURE_NAMES]);
	ck_assert_uint_eq(overhead_rate(h), 99);
	ck_assert_uint_eq(n_steps, 0);
}

/* It is taken back sooner, and kept for longer, each time. To replay a busy hart for an hour takes many seconds, and
 * what is spent is as much on idle ones.
 */
TEST(naming_that_costs_as_much_again_is_put_off_for_longer)
{
	unsigned n_changes = 0;
	bool was = false;
	for (unsigned second = 0; second < 60 * MINUTE; second += 2) {
		beside_a_build(0.004, was ? 0.005 : 0.024, 0.0005);
		pass(2, second < MINUTE);
		n_changes += was != h->measures.taken[MEASURE_NAMES];
		was = h->measures.taken[MEASURE_NAMES];
	}
	ck_assert_uint_ge(n_changes, 5);
	ck_assert_uint_le(n_changes, 20);
	ck_assert_uint_eq(h->measures.back_ns, GOVERNOR_BACK_NS_MAX);
}

TEST(flushes_come_further_apart_for_what_writing_costs)
{
	char text[MEASURES_TEXT_BYTES];
	beside_a_build(0.004, 0.001, 0.020);
	pass(2 * MINUTE, true);
	ck_assert(h->measures.taken[MEASURE_FLUSHES] && !h->measures.taken[MEASURE_NAMES]);
	ck_assert_str_eq(measures_say(&h->measures, text), "samples are written every 30 s");
	ck_assert_uint_eq(overhead_rate(h), 99);
	conf.overhead_ppm = 0;
	pass(4, true);
	ck_assert(!h->measures.taken[MEASURE_FLUSHES]);
}

TEST(flushes_that_are_rare_already_stay)
{
	conf.flush_ns = 30 * SECOND;
	beside_a_build(0.004, 0.001, 0.020);
	pass(3 * MINUTE, true);
	ck_assert(!h->measures.taken[MEASURE_FLUSHES]);
	ck_assert_ptr_nonnull(strstr(over(), "writing cost 1"));
}

/* All that costs is put off first; the rate falls for what samples still cost. */
TEST(the_rate_falls_last)
{
	unsigned put_off_s = 0, lowered_s = 0;
	conf.overhead_ppm = 1000;
	conf.rate = 99;
	for (unsigned second = 0; second < 5 * MINUTE && !lowered_s; second += 2) {
		bool names = h->measures.taken[MEASURE_NAMES];
		beside_a_build(0.0001, names ? 0.0005 : 0.010, 0.0001);
		own_part += records_part = overhead_rate(h) * 0.00005;
		pass(2, true);
		put_off_s = put_off_s || !names ? put_off_s : second;
		lowered_s = overhead_rate(h) < 99 ? second : 0;
	}
	ck_assert_uint_gt(put_off_s, MINUTE);
	ck_assert_uint_gt(lowered_s, put_off_s + 20);
}

/* When each was given up, and when it was taken back; the rate is last of the first, and first of the second. */
TEST(what_is_given_up_last_comes_back_first)
{
	unsigned names_s[2] = {0}, flushes_s[2] = {0}, rate_s[2] = {0};
	conf.overhead_ppm = 4000;
	for (unsigned second = 0; second < 30 * MINUTE; second += 2) {
		bool names = h->measures.taken[MEASURE_NAMES];
		bool flushes = h->measures.taken[MEASURE_FLUSHES];
		bool storm = second < 6 * MINUTE;
		unsigned *names_at = &names_s[!storm], *flushes_at = &flushes_s[!storm];
		beside_a_build(storm ? 0.002 : 0, storm ? names ? 0.002 : 0.024 : 0,
			storm ? flushes ? 0.002 : 0.020 : 0);
		own_part += (records_part = overhead_rate(h) * (storm ? 0.00006 : 0.00001)) - 0.002;
		pass(2, true);
		*names_at = !*names_at && names != h->measures.taken[MEASURE_NAMES] ? second
										    : *names_at;
		*flushes_at = !*flushes_at && flushes != h->measures.taken[MEASURE_FLUSHES]
				      ? second
				      : *flushes_at;
		bool moved = storm ? overhead_rate(h) < 99 : overhead_rate(h) == 99;
		rate_s[!storm] = !rate_s[!storm] && moved ? second : rate_s[!storm];
	}
	ck_assert(names_s[0] > MINUTE && names_s[0] == flushes_s[0]);
	ck_assert_uint_gt(rate_s[0], names_s[0] + 20);
	ck_assert_uint_gt(rate_s[1], 6 * MINUTE);
	ck_assert_uint_gt(flushes_s[1], rate_s[1]);
	ck_assert_uint_gt(names_s[1], flushes_s[1]);
}

/* Files whose requests are at the parser, and programs that nobody named yet. */
TEST(naming_that_began_before_it_was_put_off_lowers_no_rate)
{
	conf.overhead_ppm = 3000;
	unsigned put_off_s = 0, over_s = 0;
	for (unsigned second = 0; second < 5 * MINUTE; second += 2) {
		put_off_s = put_off_s || !h->measures.taken[MEASURE_NAMES] ? put_off_s : second;
		bool still = !put_off_s || second < put_off_s + 8;
		beside_a_build(0.001, still ? 0.024 : 0.0002, 0.0001);
		pass(2, true);
		over_s = *over() ? second : over_s;
		if (put_off_s && second < put_off_s + 20)
			ck_assert_msg(strstr(over(), "what the last change saves is not known yet"),
				"%s", over());
	}
	ck_assert_uint_gt(put_off_s, MINUTE);
	ck_assert_uint_eq(overhead_rate(h), 99);
	ck_assert_uint_eq(n_steps, 0);
	/* the figure is of what came after it */
	ck_assert_uint_le(over_s, put_off_s + 44);
}

TEST(what_is_said_to_be_spent_is_what_was_judged)
{
	struct overhead_spent s;
	beside_a_build(0.004, 0.024, 0.0005);
	pass(MINUTE, true);
	s = spent();
	ck_assert_double_lt(s.judged_part, 0);
	pass(MINUTE / 2 + 6, true);
	ck_assert(h->measures.taken[MEASURE_NAMES]);
	beside_a_build(0.004, 0.001, 0.0005);
	pass(44, true);
	s = spent();
	ck_assert_double_gt(s.own_part, 0.006);
	ck_assert_double_eq_tol(s.judged_part, 0.0042, 0.0003);
	ck_assert_str_eq(over(), "");
}

TEST(time_before_the_first_look_has_no_cause)
{
	double sum = 0;
	walk.cpu_ns[WALK_SIDEBAND] = h->writing_ns = SECOND;
	beside_a_build(0.010, 0.002, 0.001);
	pass(10, true);
	struct overhead_spent s = spent();
	for (int cause = 0; cause < N_CAUSES; cause++)
		sum += s.cause_part[cause];
	ck_assert_double_eq_tol(sum, s.own_part, 0.0001);
	ck_assert_double_eq_tol(s.cause_part[CAUSE_WRITING], 0.0005, 0.0001);
}

TEST(causes_add_up_to_all_that_was_spent)
{
	double sum = 0;
	beside_a_build(0.010, 0.002, 0.001);
	clients_part = 0.004;
	pass(2 * MINUTE, true);
	struct overhead_spent s = spent();
	for (int cause = 0; cause < N_CAUSES; cause++)
		sum += s.cause_part[cause];
	ck_assert_double_eq_tol(s.cause_part[CAUSE_SIDEBAND], 0.005, 0.0002);
	ck_assert_double_eq_tol(s.cause_part[CAUSE_NAMING], 0.001, 0.0001);
	ck_assert_double_eq_tol(s.cause_part[CAUSE_WRITING], 0.0005, 0.0001);
	ck_assert_double_eq_tol(s.cause_part[CAUSE_CLIENTS], 0.002, 0.0002);
	ck_assert_double_eq_tol(sum, s.own_part + s.clients_part, 0.0001);
}
