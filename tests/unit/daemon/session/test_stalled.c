/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/stalled.c on replayed machines: which harts are called blind, when they are
 * opened again, and who is left alone.
 */

#include "daemon/session/stalled.h"

#include <unistd.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define HARTS_LOOKED_AT 8

static struct replay *replay;
static struct sampler *sampler;
static struct stalled stalled;
static struct hart_time harts[HARTS_LOOKED_AT];
static uint64_t now_ns, ticks_a_second;
static struct hart_set mend;

static void begin(const char *machine, const struct sampler_options *o)
{
	replay = case_load(machine);
	sampler = case_sampler(replay, o);
	ck_assert_int_eq(sampler_start(sampler), 0);
	ck_assert_int_eq(stalled_init(&stalled, sampler->machine.n_harts), 0);
	ck_assert_int_le(sampler->machine.n_harts, HARTS_LOOKED_AT);
	ticks_a_second = (uint64_t)sysconf(_SC_CLK_TCK);
	now_ns = 100 * SECOND;
	for (int i = 0; i < HARTS_LOOKED_AT; i++)
		harts[i] = (struct hart_time){.known = true};
	stalled_look(&stalled, sampler, harts, now_ns, &mend);
}

static void end(void)
{
	stalled_clear(&stalled);
	case_end(replay, sampler);
}

/* Five seconds in which hart 1 was busy for that many hundredths of them. */
static void pass(unsigned user, unsigned kernel)
{
	now_ns += STALLED_LOOK_NS;
	for (int i = 0; i < HARTS_LOOKED_AT; i++)
		harts[i].total += 5 * ticks_a_second;
	harts[1].user += 5 * ticks_a_second * user / 100;
	harts[1].kernel += 5 * ticks_a_second * kernel / 100;
	stalled_look(&stalled, sampler, harts, now_ns, &mend);
}

static const struct sampler_options usual = {.hz = 99};

TEST(a_busy_hart_without_samples_is_trouble_and_opened_again)
{
	begin("x86-vm", &usual);
	pass(60, 40);
	ck_assert_int_eq(hart_set_count(&mend), 1);
	ck_assert(hart_set_has(&mend, 1));
	ck_assert_str_eq(stalled.trouble,
		"hart 1 was busy for 5 s but delivered no samples; reopened 1 time");
	ck_assert_uint_eq(sampler->lost[1][LOSS_BLIND], 5);

	/* it is given time, and then more of it */
	unsigned n = 0;
	for (int i = 0; i < 30; i++) {
		pass(100, 0);
		n += hart_set_has(&mend, 1);
	}
	ck_assert_uint_eq(n, 4); /* 10, 30, 70, 150 s later */
	ck_assert_ptr_nonnull(strstr(stalled.trouble, "reopened 5 times"));
	ck_assert_uint_eq(sampler->lost[1][LOSS_BLIND], 155);

	stalled_sample(&stalled, 1);
	pass(100, 0);
	ck_assert_str_eq(stalled.trouble, "");
	ck_assert_int_eq(hart_set_count(&mend), 0);
	ck_assert_uint_eq(sampler->lost[1][LOSS_BLIND], 155);
	pass(100, 0);
	ck_assert_int_eq(hart_set_count(&mend), 1); /* again, at once */
	end();
}

TEST(of_many_blind_harts_some_are_opened_at_a_time_and_each_in_turn)
{
	begin("c910", &usual);
	int n = sampler->machine.n_harts, n_mended = 0;
	struct hart_set mended = {0};
	ck_assert_int_gt(n, STALLED_MENDS_MAX);
	for (int look = 0; look < (n + STALLED_MENDS_MAX - 1) / STALLED_MENDS_MAX; look++) {
		for (int hart = 0; hart < n; hart++)
			harts[hart].user += 5 * ticks_a_second;
		pass(0, 0);
		ck_assert_int_le(hart_set_count(&mend), STALLED_MENDS_MAX);
		for (int hart = 0; hart < n; hart++)
			if (hart_set_has(&mend, hart))
				hart_set_add(&mended, hart);
		n_mended += hart_set_count(&mend);
	}
	ck_assert_int_eq(hart_set_count(&mended), n);
	ck_assert_int_eq(n_mended, n);
	end();
}

TEST(a_hart_that_is_opened_again_brings_samples)
{
	begin("x86-vm", &usual);
	uint64_t before = case_stream(sampler, 1, STREAM_SAMPLER)->id;
	uint64_t other = case_stream(sampler, 0, STREAM_SAMPLER)->id;
	uint64_t lost = sampler->lost[1][LOSS_HOTPLUG];
	ck_assert_int_eq(sampler_reopen(sampler, 1), 0);
	ck_assert_uint_ne(case_stream(sampler, 1, STREAM_SAMPLER)->id, before);
	ck_assert_uint_eq(case_stream(sampler, 0, STREAM_SAMPLER)->id, other);
	ck_assert_uint_eq(sampler->lost[1][LOSS_HOTPLUG], lost);
	replay_run(replay, 1, 5, SECOND);
	ck_assert_uint_gt(case_drain(sampler).n_samples, 50);
	end();
}

TEST(one_that_samples_idles_or_owes_little_is_left_alone)
{
	begin("x86-vm", &usual);
	for (int i = 0; i < 20; i++) {
		pass(0, 0);
		ck_assert_int_eq(hart_set_count(&mend), 0);
	}
	for (int i = 0; i < 20; i++) {
		stalled_sample(&stalled, 1); /* one sample in five seconds: throttled, as can be */
		pass(100, 0);
		ck_assert_int_eq(hart_set_count(&mend), 0);
	}
	pass(10, 10); /* 99 samples */
	ck_assert_str_eq(stalled.trouble, "");
	ck_assert_uint_eq(sampler->lost[1][LOSS_BLIND], 0);
	pass(0, 2);
	ck_assert_str_ne(stalled.trouble, "");
	end();
}

TEST(a_hart_that_brings_less_than_a_tenth_is_counted)
{
	begin("x86-vm", &usual);
	for (int i = 0; i < 49; i++)
		stalled_sample(&stalled, 1);
	pass(100, 0); /* 49 of 495 samples */
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 5);
	ck_assert_int_eq(hart_set_count(&mend), 0);
	ck_assert_str_eq(stalled.trouble, "");
	for (int i = 0; i < 50; i++)
		stalled_sample(&stalled, 1);
	pass(100, 0);
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 5);
	/* chance: few are owed, until there are enough */
	stalled_sample(&stalled, 1);
	pass(10, 0);
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 5);
	stalled_sample(&stalled, 1);
	pass(10, 0);
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 5);
	stalled_sample(&stalled, 1);
	pass(10, 0); /* 3 of 148 samples, in 1.5 s */
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 6);
	pass(100, 0); /* none is another cause */
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 6);
	ck_assert_uint_eq(sampler->lost[0][LOSS_SPARSE], 0);
	end();
}

TEST(a_rate_that_rose_between_two_looks_promises_what_it_was, .times = 2)
{
	begin("x86-vm", &usual);
	pass(0, 0);
	for (int i = 0; i < 100; i++)
		stalled_sample(&stalled, 1);
	sampler->hz = _i ? 99 : 9999;
	pass(100, 0);
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], 0);
	for (int i = 0; i < 100; i++)
		stalled_sample(&stalled, 1);
	pass(100, 0);
	ck_assert_uint_eq(sampler->lost[1][LOSS_SPARSE], _i ? 0 : 5);
	end();
}

TEST(at_a_low_rate_there_is_time)
{
	const struct sampler_options slow = {.hz = 1};
	begin("x86-vm", &slow);
	for (int i = 0; i < 19; i++) {
		pass(100, 0);
		ck_assert_str_eq(stalled.trouble, "");
	}
	pass(100, 0);
	ck_assert_str_ne(stalled.trouble, "");
	end();
}

TEST(time_in_the_kernel_is_not_owed_by_what_samples_programs_alone, .times = 2)
{
	const struct sampler_options user = {.hz = 99, .user_only = true};
	begin("x86-vm", _i ? &usual : &user);
	if (_i)
		sampler->plan[1].rung = RUNG_LEADER;
	for (int i = 0; i < 10; i++)
		pass(0, 100);
	ck_assert_str_eq(stalled.trouble, "");
	pass(100, 0);
	ck_assert_str_ne(stalled.trouble, "");
	end();
}

TEST(events_that_do_not_fire_by_time_owe_nothing, .times = 2)
{
	replay = case_load("x86-vm");
	const struct event_list events = case_events(replay, _i ? "cpu-clock:k" : "page-faults");
	replay_free(replay);
	const struct sampler_options asked = {.hz = 99, .events = &events};
	begin("x86-vm", &asked);
	for (int i = 0; i < 10; i++)
		pass(100, 0);
	ck_assert_str_eq(stalled.trouble, "");
	end();
}

TEST(an_asked_clock_owes_samples)
{
	replay = case_load("x86-vm");
	const struct event_list events = case_events(replay, "page-faults,cpu-clock");
	replay_free(replay);
	const struct sampler_options asked = {.hz = 99, .events = &events};
	begin("x86-vm", &asked);
	pass(100, 0);
	ck_assert_str_ne(stalled.trouble, "");
	end();
}

TEST(a_session_per_task_and_one_that_stopped_owe_nothing)
{
	begin("x86-vm", &usual);
	ck_assert_int_eq(sampler_stop(sampler), 0);
	for (int i = 0; i < 10; i++)
		pass(100, 0);
	ck_assert_str_eq(stalled.trouble, "");
	end();
}

TEST(a_hart_whose_time_is_not_known_is_not_blamed)
{
	begin("x86-vm", &usual);
	for (int i = 0; i < 10; i++) {
		harts[1].known = i % 2; /* it goes and comes: no two looks in a row see it */
		pass(100, 0);
		ck_assert_str_eq(stalled.trouble, "");
	}
	end();
}
