/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Sampling that is always on, beside counts that take its counters. */

#include <string.h>

#include "tests/unit/core_case.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define SECOND_NS 1000000000u

static struct sampler *begin(struct core_case *c, const char *machine)
{
	*c = core_case_of(machine);
	const struct sampler_options o = {.hz = 99, .always = true, .cores = c->cores};
	struct sampler *s = case_sampler(c->replay, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	return s;
}

static void end(struct core_case *c, struct sampler *s)
{
	sampler_free(s);
	core_case_end(c);
}

/* So many seconds on a busy hart 0, with a tick at the end of each. Returns the fewest samples of one. */
static unsigned seconds(struct core_case *c, struct sampler *s, int n)
{
	unsigned least = UINT32_MAX;
	for (int i = 0; i < n; i++) {
		replay_run(c->replay, 0, 5, SECOND_NS);
		unsigned n_samples = case_drain(s).n_samples;
		least = n_samples < least ? n_samples : least;
		ck_assert_int_eq(sampler_tick(s), 0);
	}
	return least;
}

static const struct perf_event_attr *leader(const struct core_case *c, const struct sampler *s)
{
	return replay_attr(c->replay, case_stream(s, 0, STREAM_SAMPLER)->fd);
}

EACH_TEST(.seconds = 60);

TEST(what_samples_always_has_its_counters_before_any_count)
{
	struct core_case c;
	struct sampler *s = begin(&c, "zen4");
	ck_assert(leader(&c, s)->pinned);
	replay_take_counters(c.replay, 90);
	ck_assert_uint_ge(seconds(&c, s, 5), 95);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	ck_assert_double_eq(sampler_counted_share(s, 0), 1);
	end(&c, s);
}

/* Plans of counts do without what is pinned, as long as it is. */
TEST(counters_that_are_pinned_are_no_others)
{
	struct core_case c;
	struct sampler *s = begin(&c, "zen4");
	const uint64_t held = cores_held(c.cores, &c.machine.online);
	ck_assert_int_eq(__builtin_popcountll(held), 2);
	ck_assert_uint_eq(held & ~cores_platform(c.cores, 0)->counters, 0);
	replay_pin_counters(c.replay, true);
	seconds(&c, s, 1);
	struct hart_set first = {0};
	hart_set_add(&first, 0);
	ck_assert_uint_eq(cores_held(c.cores, &first), 0);
	sampler_free(s);
	ck_assert_uint_eq(cores_held(c.cores, &c.machine.online), 0);
	core_case_end(&c);
}

TEST(a_session_that_somebody_asked_for_is_not_pinned)
{
	struct core_case c = core_case_of("zen4");
	const struct sampler_options o = {.hz = 99, .cores = c.cores};
	struct sampler *s = case_sampler(c.replay, &o);
	ck_assert(!leader(&c, s)->pinned);
	ck_assert_uint_eq(cores_held(c.cores, &c.machine.online), 0);
	end(&c, s);
}

/* How many counters it has is not known, so nobody knows whether others could count beside it. */
TEST(nothing_is_pinned_on_a_core_that_is_not_described)
{
	struct core_case c;
	struct sampler *s = begin(&c, "pc");
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	ck_assert(!leader(&c, s)->pinned);
	end(&c, s);
}

TEST(nothing_is_pinned_per_task)
{
	struct core_case c = core_case_of("zen4");
	const pid_t pid = 100;
	const struct sampler_options o = {.hz = 99,
		.always = true,
		.per_task = true,
		.pids = &pid,
		.n_pids = 1,
		.cores = c.cores};
	struct sampler *s = case_sampler(c.replay, &o);
	ck_assert_uint_gt(s->streams.n_streams, 4);
	for (size_t i = 0; i < s->streams.n_streams; i++)
		ck_assert(!replay_attr(c.replay, s->streams.stream[i].fd)->pinned);
	end(&c, s);
}

/* Another program pins too, and later ends. */
TEST(a_pinned_group_without_a_counter_is_never_silent_for_longer_than_a_check)
{
	struct core_case c;
	struct sampler *s = begin(&c, "zen4");
	seconds(&c, s, 2);
	replay_pin_counters(c.replay, true);
	ck_assert_uint_eq(seconds(&c, s, 1), 0);
	ck_assert_msg(
		s->plan[0].rung == RUNG_CLOCK, "rung %d: %s", s->plan[0].rung, s->plan[0].reason);
	ck_assert_uint_ge(seconds(&c, s, 10), 95);
	double share = sampler_counted_share(s, 0);
	ck_assert_msg(share > 0.6 && share < 0.7, "2 of 3 seconds, not %g", share);
	replay_pin_counters(c.replay, false);
	ck_assert_uint_ge(seconds(&c, s, 60), 80);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	ck_assert(s->plan[0].pinned);
	end(&c, s);
}

TEST(a_pinned_group_that_was_displaced_for_a_moment_goes_on)
{
	struct core_case c;
	struct sampler *s = begin(&c, "zen4");
	const uint64_t id = case_stream(s, 0, STREAM_SAMPLER)->id;
	replay_pin_counters(c.replay, true);
	replay_run(c.replay, 0, 5, SECOND_NS / 2);
	replay_pin_counters(c.replay, false);
	seconds(&c, s, 1);
	ck_assert_uint_eq(case_stream(s, 0, STREAM_SAMPLER)->id, id);
	ck_assert_uint_ge(seconds(&c, s, 5), 95);
	end(&c, s);
}

/* RISC-V has one counter for cycles and one for instructions: a pinned group would keep them from all. An
 * X60's own leader has fourteen more to choose from. */
TEST(counters_that_are_the_only_ones_are_left_to_others_while_these_count, .times = 3)
{
	static const struct {
		const char *machine;
		enum rung rung, without;
		bool pinned;
	} of[] = {
		{"u74", RUNG_CLOCK_LEADER, RUNG_CLOCK, false},
		{"c910", RUNG_CYCLES, RUNG_CLOCK, false},
		{"x60", RUNG_LEADER, RUNG_LEADER, true},
	};
	struct core_case c;
	struct sampler *s = begin(&c, of[_i].machine);
	ck_assert_int_eq(s->plan[0].rung, of[_i].rung);
	ck_assert(!leader(&c, s)->pinned);
	ck_assert_uint_ge(seconds(&c, s, 5), 95);
	replay_take_counters(c.replay, 50);
	seconds(&c, s, 3);
	ck_assert_msg(s->plan[0].rung == of[_i].without, "rung %d: %s", s->plan[0].rung,
		s->plan[0].reason);
	ck_assert_int_eq(s->plan[0].n_siblings, 0);
	ck_assert_int_eq(leader(&c, s)->pinned, of[_i].pinned);
	ck_assert_ptr_nonnull(strstr(s->plan[0].reason, "samples without counters for a minute"));
	ck_assert_uint_ge(seconds(&c, s, 50), 95);
	ck_assert_double_lt(sampler_counted_share(s, 0), 0.2);
	replay_take_counters(c.replay, 0);
	seconds(&c, s, 15);
	ck_assert_int_eq(s->plan[0].rung, of[_i].rung);
	ck_assert_uint_ge(seconds(&c, s, 5), 95);
	end(&c, s);
}
