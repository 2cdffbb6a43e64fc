/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/sampler/effort.c and refit.c: a running session does less, and all of it again
 */

#include "daemon/sampler/effort.h"

#include <errno.h>

#include "daemon/sampler/attr.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static struct replay *machine;
static struct sampler *sampler;
static const struct sampler_options usual = {.hz = 99, .stacks = SAMPLER_STACKS_FP};
static const struct sampler_effort all = {0}, no_cut = {.no_cut = true},
				   no_counters = {.no_cut = true, .no_counters = true},
				   by_clock = {.no_cut = true,
					   .no_counters = true,
					   .clock_only = true},
				   least = {.no_cut = true,
					   .no_counters = true,
					   .clock_only = true,
					   .no_callers = true};

static void begin(const char *name)
{
	machine = case_load(name);
	sampler = case_sampler(machine, &usual);
	ck_assert_int_eq(sampler_start(sampler), 0);
}

static struct case_tally ran(uint64_t ns)
{
	replay_run(machine, 0, 100, ns);
	return case_drain(sampler);
}

static void set(const struct sampler_effort *e)
{
	case_drain(sampler);
	ck_assert_int_eq(sampler_set_effort(sampler, e), 0);
}

TEST(the_cut_goes_and_comes_back_with_the_counters_kept)
{
	begin("pc");
	struct case_tally t = ran(SECOND);
	ck_assert_uint_gt(t.n_switches, 900);
	ck_assert_uint_ge(t.n_samples, 98);
	set(&no_cut);
	t = ran(SECOND);
	ck_assert_uint_eq(t.n_switches, 0);
	ck_assert_uint_ge(t.n_samples, 98);
	ck_assert_uint_gt(t.n_reads, t.n_samples);
	ck_assert_uint_eq(case_n_streams(sampler, STREAM_SWITCH), 0);
	ck_assert(!(sampler_cut(sampler) & CUT_SIBLING));
	set(&all);
	t = ran(SECOND);
	ck_assert_uint_gt(t.n_switches, 900);
	ck_assert_uint_eq(sampler_cut(sampler), CUT_SIBLING);
	case_end(machine, sampler);
}

TEST(the_counters_go_and_no_counter_is_missed_for_it)
{
	begin("pc");
	set(&no_counters);
	struct case_tally t = ran(SECOND);
	ck_assert_uint_ge(t.n_samples, 98);
	ck_assert_uint_eq(t.n_reads, 0);
	ck_assert_uint_eq(case_n_streams(sampler, STREAM_SIBLING), 0);
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CYCLES);
	ck_assert_uint_eq(sampler_cut(sampler), 0);
	/* neither now nor when a hart comes */
	ck_assert_int_eq(sampler_reopen(sampler, 0), 0);
	ck_assert_uint_eq(sampler->lost[0][LOSS_SIBLING], 0);
	ck_assert_uint_eq(case_n_streams(sampler, STREAM_SIBLING), 0);
	set(&all);
	ck_assert_uint_eq(case_n_streams(sampler, STREAM_SIBLING), 4);
	case_end(machine, sampler);
}

TEST(a_cheaper_rung_is_cpu_clock_and_the_better_one_returns_without_a_climb, .seconds = 120)
{
	begin("pc");
	set(&by_clock);
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CLOCK);
	ck_assert_str_eq(sampler->plan[0].leader.name, "cpu-clock");
	ck_assert_uint_ge(ran(SECOND).n_samples, 98);
	/* what it gave up by itself is no reason to climb the ladder again */
	unsigned opens = replay_n_opens(machine);
	for (int i = 0; i < 65; i++) { /* CLIMB_AGAIN_NS is a minute */
		replay_run(machine, 0, 100, SECOND);
		case_drain(sampler);
		ck_assert_int_eq(sampler_tick(sampler), 0);
	}
	ck_assert_uint_eq(replay_n_opens(machine), opens);
	set(&all);
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CYCLES);
	/* four harts: leader, instructions, switches */
	ck_assert_uint_eq(replay_n_opens(machine), opens + 12);
	ck_assert_uint_gt(ran(SECOND).n_switches, 900);
	case_end(machine, sampler);
}

TEST(callers_go_last)
{
	begin("pc");
	set(&least);
	ck_assert_uint_eq(
		case_stream(sampler, 0, STREAM_SAMPLER)->sample_type & PERF_SAMPLE_CALLCHAIN, 0);
	set(&by_clock);
	ck_assert_uint_ne(
		case_stream(sampler, 0, STREAM_SAMPLER)->sample_type & PERF_SAMPLE_CALLCHAIN, 0);
	case_end(machine, sampler);
}

TEST(the_side_band_stays_open)
{
	begin("pc");
	uint64_t side = case_stream(sampler, 0, STREAM_SIDEBAND)->id;
	uint64_t exec = case_stream(sampler, 0, STREAM_EXEC)->id;
	const void *ring = sampler->ring[0].map;
	set(&least);
	set(&all);
	ck_assert_uint_eq(case_stream(sampler, 0, STREAM_SIDEBAND)->id, side);
	ck_assert_uint_eq(case_stream(sampler, 0, STREAM_EXEC)->id, exec);
	ck_assert_ptr_eq(sampler->ring[0].map, ring);
	case_end(machine, sampler);
}

/* What was written after the drain and before the close. */
TEST(records_of_closed_events_are_read_by_the_next_drain)
{
	begin("pc");
	case_drain(sampler);
	replay_run(machine, 0, 100, SECOND);
	ck_assert_int_eq(sampler_set_effort(sampler, &no_counters), 0);
	struct case_tally t = case_drain(sampler); /* each must decode */
	ck_assert_uint_gt(t.n_switches, 900);
	ck_assert_uint_ge(t.n_samples, 98);
	ck_assert_uint_gt(t.n_reads, 0);
	case_end(machine, sampler);
}

TEST(closed_events_are_known_until_a_drain_of_the_time_after)
{
	begin("pc");
	replay_run(machine, 0, 100, SECOND);
	const struct stream before = *case_stream(sampler, 0, STREAM_SWITCH);
	set(&no_cut);
	const struct stream *s = stream_table_find(&sampler->streams, before.id);
	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(s->role, STREAM_SWITCH);
	ck_assert_uint_eq(s->leader, before.leader);
	ck_assert(s->closed);
	ck_assert_int_eq(s->fd, -1);
	sampler_drained(sampler, sampler->book.closed_ns);
	ck_assert_ptr_nonnull(stream_table_find(&sampler->streams, before.id));
	sampler_drained(sampler, sampler->book.closed_ns + 1);
	ck_assert_ptr_null(stream_table_find(&sampler->streams, before.id));
	case_end(machine, sampler);
}

TEST(closed_events_that_nobody_forgets_end_with_the_session)
{
	begin("pc");
	for (int i = 0; i < 3; i++) {
		set(&no_cut);
		set(&all);
	}
	ck_assert_uint_eq(case_n_streams(sampler, STREAM_SWITCH), 4);
	case_end(machine, sampler);
}

TEST(nothing_is_opened_where_nothing_changes)
{
	begin("pc");
	set(&no_cut);
	unsigned opens = replay_n_opens(machine);
	set(&no_cut);
	struct sampler_effort slower = no_cut;
	slower.rate_part = 2;
	set(&slower);
	ck_assert_uint_eq(replay_n_opens(machine), opens);
	ck_assert_uint_eq(sampler->effort.in_force.rate_part, 2);
	case_end(machine, sampler);
}

TEST(a_machine_without_counters_keeps_what_it_has)
{
	begin("x86-vm");
	set(&by_clock);
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CLOCK);
	ck_assert_uint_ge(ran(SECOND).n_samples, 98);
	case_end(machine, sampler);
}

TEST(a_clock_that_leads_counters_leads_none_then)
{
	begin("u74");
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CLOCK_LEADER);
	set(&no_counters);
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CLOCK);
	set(&all);
	ck_assert_int_eq(sampler->plan[0].rung, RUNG_CLOCK_LEADER);
	case_end(machine, sampler);
}

TEST(a_hart_that_found_no_descriptor_follows_at_a_tick)
{
	begin("pc");
	case_drain(sampler);
	replay_fail_open(machine, 1, ENFILE);
	ck_assert_int_eq(sampler_set_effort(sampler, &no_cut), 0);
	ck_assert_ptr_null(case_stream(sampler, 0, STREAM_SAMPLER));
	ck_assert_ptr_nonnull(case_stream(sampler, 1, STREAM_SAMPLER));
	ck_assert_int_eq(sampler_tick(sampler), 0);
	ck_assert_ptr_nonnull(case_stream(sampler, 0, STREAM_SAMPLER));
	ck_assert_uint_ge(ran(SECOND).n_samples, 98);
	case_end(machine, sampler);
}

TEST(sessions_of_requested_events_are_unchanged)
{
	machine = case_load("pc");
	struct event_list events = case_events(machine, "{cycles,instructions}");
	struct sampler_options o = usual;
	o.events = &events;
	sampler = case_sampler(machine, &o);
	unsigned opens = replay_n_opens(machine);
	ck_assert_int_eq(sampler_set_effort(sampler, &least), 0);
	ck_assert_uint_eq(replay_n_opens(machine), opens);
	case_end(machine, sampler);
}

TEST(an_effort_in_words)
{
	char text[EFFORT_TEXT_BYTES];
	ck_assert_str_eq(effort_says(&all, text), "");
	ck_assert_str_eq(effort_says(&no_cut, text), "counts are not cut at switches");
	ck_assert_str_eq(effort_says(&no_counters, text), "samples carry no counters");
	struct sampler_effort e = least;
	e.rate_part = 8;
	ck_assert_str_eq(effort_says(&e, text), "only one in 8 samples is taken, samples come from "
						"cpu-clock, samples have no callers");
}

/* --- copies of stacks ------------------------------------------------------------------------- */

static const struct sampler_options copying = {.hz = 99,
	.ring_hz = 1250,
	.stacks = SAMPLER_STACKS_DWARF,
	.stack_bytes = 16384,
	.may_copy_more = true,
	.always = true};

static void begin_copies(const struct sampler_options *o)
{
	machine = case_load("pc");
	sampler = case_sampler(machine, o);
	ck_assert_int_eq(sampler_start(sampler), 0);
}

static void set_copy(uint32_t bytes, uint32_t hz)
{
	ck_assert_int_eq(sampler_set_copy(sampler, bytes, hz), 0);
}

/* Bytes that the kernel was asked to copy of each stack. */
static uint32_t asked(void)
{
	return replay_attr(machine, case_stream(sampler, 0, STREAM_SAMPLER)->fd)->sample_stack_user;
}

TEST(copies_grow_in_events_that_are_opened_again_and_shrink_to_what_was_asked_for)
{
	begin_copies(&copying);
	unsigned int opens = replay_n_opens(machine);
	set_copy(65528, 99);
	ck_assert_uint_eq(asked(), 65528);
	ck_assert_uint_eq(replay_n_opens(machine), opens + 12); /* as above */
	opens = replay_n_opens(machine);
	set_copy(65528, 99);
	ck_assert_uint_eq(replay_n_opens(machine), opens);
	ck_assert_int_eq(sampler_reopen(sampler, 0), 0); /* a hart that comes back takes it over */
	ck_assert_uint_eq(asked(), 65528);
	set_copy(8, 99);
	ck_assert_uint_eq(asked(), 16384);
	case_end(machine, sampler);
}

TEST(copies_are_as_large_as_rings_have_room_for_at_the_rate)
{
	begin_copies(&copying);
	const bool is_first = !sampler->ring[0].sideband;

	ck_assert_uint_eq(sampler->ring[is_first ? 0 : 1].data_bytes, 4u << 20);
	set_copy(65528, 2000);
	ck_assert_uint_eq(asked(), 16384); /* whatever happens, what was asked for */
	set_copy(65528, 300);
	ck_assert_uint_eq(asked(), 32768);
	case_end(machine, sampler);
}

TEST(a_size_that_was_asked_for_stays)
{
	struct sampler_options o = copying;

	o.may_copy_more = false;
	begin_copies(&o);
	set_copy(65528, 99);
	ck_assert_uint_eq(asked(), 16384);
	case_end(machine, sampler);
}

TEST(events_that_were_asked_for_may_fire_at_any_rate_and_have_small_copies)
{
	struct event_list events = {.n_events = 1};
	struct sampler_options o = copying;

	events.event[0] = event_cpu_clock();
	o.always = false;
	o.stack_bytes = 0;
	o.events = &events;
	begin_copies(&o);
	ck_assert_uint_eq(asked(), SAMPLER_STACK_BYTES_DEFAULT);
	case_end(machine, sampler);
}

TEST(copies_without_callers_shrink_before_they_come_back)
{
	begin_copies(&copying);
	set_copy(65528, 99);
	set(&least);
	set_copy(65528, 2000);
	set(&by_clock);
	ck_assert_uint_eq(asked(), 16384);
	case_end(machine, sampler);
}

TEST(a_session_without_budget_copies_from_the_beginning_what_its_rings_have_room_for)
{
	static const pid_t pid = 100;
	static const struct {
		uint32_t hz, bytes;
	} cases[] = {{99, 65528}, {999, 65528}, {2000, 32768}, {10000, 8192}};
	struct sampler_options o = {.stacks = SAMPLER_STACKS_DWARF,
		.may_copy_more = true,
		.per_task = true,
		.pids = &pid,
		.n_pids = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		o.hz = cases[i].hz;
		begin_copies(&o);
		ck_assert_uint_eq(asked(), cases[i].bytes);
		case_end(machine, sampler);
	}
}

TEST(sessions_without_copies_keep_none)
{
	begin("pc");
	const unsigned int opens = replay_n_opens(machine);

	set_copy(65528, 99);
	ck_assert_uint_eq(replay_n_opens(machine), opens);
	case_end(machine, sampler);
}
