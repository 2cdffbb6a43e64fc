/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Counters that somebody else has too: seen, said, and given way to where they are gone
 * for good. */

#include "tests/unit/core_case.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define SECOND_NS 1000000000u

/* So many seconds on a busy hart 0, with a tick at the end of each. */
static void seconds(struct replay *r, struct sampler *s, int n)
{
	for (int i = 0; i < n; i++) {
		replay_run(r, 0, 5, SECOND_NS);
		case_drain(s);
		ck_assert_int_eq(sampler_tick(s), 0);
	}
}

static struct sampler *begin(struct replay *r, const char *own_leader)
{
	const struct sampler_options o = {.hz = 99, .own_leader = own_leader};
	struct sampler *s = case_sampler(r, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	return s;
}

EACH_TEST(.seconds = 60);

TEST(counters_of_ones_own_are_had_all_the_time)
{
	struct replay *r = case_load("c910");
	struct sampler *s = begin(r, NULL);
	ck_assert_double_eq(sampler_counted_share(s, 0), 1);
	seconds(r, s, 3);
	ck_assert_double_eq(sampler_counted_share(s, 0), 1);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	case_end(r, s);
}

TEST(a_second_user_of_the_counters_is_seen)
{
	struct replay *r = case_load("c910");
	struct sampler *s = begin(r, NULL);
	replay_take_counters(r, 40);
	seconds(r, s, 5);
	ck_assert_double_gt(sampler_counted_share(s, 0), 0.55);
	ck_assert_double_lt(sampler_counted_share(s, 0), 0.65);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	case_end(r, s);
}

TEST(what_has_no_counters_shares_none)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = begin(r, NULL);
	replay_take_counters(r, 100);
	seconds(r, s, 5);
	ck_assert_double_eq(sampler_counted_share(s, 0), 1);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CLOCK);
	case_end(r, s);
}

TEST(a_hart_that_is_blind_steps_down_and_samples_again, .times = 3)
{
	static const char *const machines[] = {"c910", "u74", "x60"};
	struct replay *r = case_load(machines[_i]);
	struct sampler *s = begin(r, "r22");
	const enum rung before = s->plan[0].rung;
	const int n_events = s->events.n_events;
	const uint64_t side_band = case_stream(s, 0, STREAM_SIDEBAND)->id;
	replay_take_counters(r, 100);
	seconds(r, s, 2);
	ck_assert_int_eq(s->plan[0].rung, before); /* a probe of somebody's takes as long */
	seconds(r, s, 3);
	ck_assert_msg(
		s->plan[0].rung == RUNG_CLOCK, "rung %d: %s", s->plan[0].rung, s->plan[0].reason);
	ck_assert_int_eq(s->events.n_events, n_events); /* others count by the list */
	ck_assert_uint_eq(case_stream(s, 0, STREAM_SIDEBAND)->id, side_band);
	ck_assert_uint_eq(s->n_rings, (size_t)s->machine.n_harts);
	ck_assert_uint_eq(s->lost[0][LOSS_RING], 0);
	replay_run(r, 0, 5, SECOND_NS);
	ck_assert_uint_ge(case_drain(s).n_samples, 90);
	case_end(r, s);
}

TEST(a_hart_climbs_again_when_its_counters_are_free)
{
	struct replay *r = case_load("c910");
	struct sampler *s = begin(r, NULL);
	replay_take_counters(r, 100);
	seconds(r, s, 5);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CLOCK);
	replay_take_counters(r, 0);
	seconds(r, s, 70);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	const unsigned n_opens = replay_n_opens(r);
	seconds(r, s, 70);
	ck_assert_uint_eq(replay_n_opens(r), n_opens); /* at the top there is nothing to try */
	case_end(r, s);
}

TEST(a_hart_is_not_tried_all_the_time)
{
	struct replay *r = case_load("c910");
	struct sampler *s = begin(r, NULL);
	replay_take_counters(r, 100);
	seconds(r, s, 5);
	const unsigned n_opens = replay_n_opens(r);
	seconds(r, s, 50);
	ck_assert_uint_eq(replay_n_opens(r), n_opens);
	case_end(r, s);
}

TEST(a_counter_in_use_at_the_start_is_tried_for_later)
{
	struct replay *r = case_load("c910");
	replay_take_counters(r, 100);
	struct sampler *s = begin(r, NULL);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CLOCK);
	replay_take_counters(r, 0);
	seconds(r, s, 70);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	ck_assert_int_eq(s->plan[0].n_siblings, 1);
	replay_run(r, 0, 5, SECOND_NS);
	ck_assert_uint_ge(case_drain(s).n_samples, 90);
	case_end(r, s);
}

/* An X100 leads by its event for cycles of every mode; that of the user's mode is not the only one
 * that a hart may come to later. */
TEST(a_leader_that_was_in_use_at_the_start_leads_later)
{
	struct core_case c = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/sys/kernel/perf_event_paranoid\":\"-1\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0x710\",\"marchid\":\"0x8000000058000002\","
		"\"mimpid\":\"0x33d8a600\"}],\"rules\":["
		"{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
		"{\"type\":\"hardware\",\"per_us\":1000},"
		"{\"type\":\"raw\",\"config\":\"0x1e\",\"per_us\":1000,\"fires\":true},"
		"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true},"
		"{\"type\":\"software\",\"config\":3,\"per_us\":0.001,\"fires\":true},"
		"{\"type\":\"software\",\"config\":9,\"per_us\":0}]}",
		NULL);
	const struct sampler_options o = {.hz = 99, .cores = c.cores};
	replay_take_counters(c.replay, 100);
	struct sampler *s = case_sampler(c.replay, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CLOCK);
	replay_take_counters(c.replay, 0);
	seconds(c.replay, s, 70);
	ck_assert_msg(
		s->plan[0].rung == RUNG_LEADER, "rung %d: %s", s->plan[0].rung, s->plan[0].reason);
	ck_assert_str_eq(s->plan[0].leader.name, "CYCLES.HART");
	replay_run(c.replay, 0, 5, SECOND_NS);
	ck_assert_uint_ge(case_drain(s).n_samples, 90);
	sampler_free(s);
	core_case_end(&c);
}

/* Its own leader has another code, which is no event of the session. */
TEST(a_hart_of_a_kind_that_was_not_there_at_the_start_is_led_by_the_clock)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct cores *late = NULL;
	ck_assert_int_eq(cores_new(folder.path, "", &late), 0);
	replay_set_text(c.replay, "/sys/devices/system/cpu/online", "0\n");
	const struct sampler_options o = {.hz = 99, .cores = late};
	struct sampler *s = case_sampler(c.replay, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(s->plan[0].rung, RUNG_LEADER);
	replay_set_text(c.replay, "/sys/devices/system/cpu/online", "0-1\n");
	seconds(c.replay, s, 1);
	ck_assert_str_eq(cores_platform(late, 1)->name, "little");
	ck_assert_msg(s->plan[1].rung == RUNG_CLOCK_LEADER, "rung %d: %s", s->plan[1].rung,
		s->plan[1].reason);
	ck_assert_msg(strstr(s->plan[1].tries[1].says, "restart the session"), "%s",
		s->plan[1].tries[1].says);
	sampler_free(s);
	cores_free(late);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(what_was_asked_for_by_name_gives_way_to_nothing)
{
	struct replay *r = case_load("c910");
	struct event_list l = case_events(r, "cycles");
	const struct sampler_options o = {.hz = 99, .events = &l};
	struct sampler *s = case_sampler(r, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	replay_take_counters(r, 100);
	seconds(r, s, 10);
	ck_assert_int_eq(s->plan[0].rung, RUNG_ASKED);
	ck_assert_double_lt(sampler_counted_share(s, 0), 0.01);
	case_end(r, s);
}

TEST(a_rate_that_the_kernel_cut_is_remembered_while_it_holds)
{
	struct replay *r = case_load("c910");
	const struct sampler_options o = {.hz = 999};
	struct sampler *s = case_sampler(r, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_uint_eq(s->hz_lowest, 0);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "500\n");
	seconds(r, s, 1);
	ck_assert(s->rate_lowered);
	ck_assert_uint_eq(s->hz_lowest, 199); /* machine_rate_max */
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "250\n");
	seconds(r, s, 1);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "300\n");
	seconds(r, s, 1);
	ck_assert_uint_eq(s->hz, 199);
	ck_assert_uint_eq(s->hz_lowest, 99);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	seconds(r, s, 1);
	ck_assert_uint_eq(s->hz, 999);
	ck_assert_uint_eq(s->hz_lowest, 0);
	case_end(r, s);
}
