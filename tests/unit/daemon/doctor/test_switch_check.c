/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/doctor/switch_check.c */

#include "daemon/doctor/switch_check.h"

#include "tests/unit/test.h"

enum { CLOCK = 10, FAULTS, INSTRUCTIONS, SWITCH, OUTPUT, OTHER_LEADER, OTHER_SWITCH, OTHER_OUTPUT };

static struct stream_table streams;
static struct event_list events;
static struct switch_check *check;

static void setup(void)
{
	const struct stream rows[] = {
		{.id = CLOCK, .leader = CLOCK, .role = STREAM_SAMPLER, .event = 0},
		{.id = FAULTS, .leader = CLOCK, .role = STREAM_SIBLING, .event = 1},
		{.id = INSTRUCTIONS, .leader = CLOCK, .role = STREAM_SIBLING, .event = 2},
		{.id = SWITCH, .leader = CLOCK, .role = STREAM_SWITCH, .event = -1},
		{.id = OUTPUT, .leader = CLOCK, .role = STREAM_SWITCH_BPF, .event = -1},
		{.id = OTHER_LEADER, .leader = OTHER_LEADER, .role = STREAM_SAMPLER, .hart = 1},
		{.id = OTHER_SWITCH, .leader = OTHER_LEADER, .role = STREAM_SWITCH, .hart = 1},
		{.id = OTHER_OUTPUT, .leader = OTHER_LEADER, .role = STREAM_SWITCH_BPF, .hart = 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ck_assert_int_eq(stream_table_add(&streams, &rows[i]), 0);
	events = (struct event_list){.n_events = 3};
	events.event[0] =
		(struct event){.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	events.event[1] =
		(struct event){.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS};
	events.event[2] =
		(struct event){.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS};
	ck_assert_int_eq(switch_check_new(&streams, &events, &check), 0);
}

static void teardown(void)
{
	ck_assert_ptr_null(switch_check_free(check));
	stream_table_clear(&streams);
}

EACH_TEST(.begin = setup, .end = teardown);

static void tell(uint64_t id, uint32_t tid, uint64_t faults, uint64_t instructions)
{
	struct record r = {
		.kind = RECORD_SAMPLE,
		.stream = stream_table_find(&streams, id),
		.tid = tid,
		.sample = {.n_read = 3,
			.read = {{CLOCK, 7 * faults}, {FAULTS, faults},
				{INSTRUCTIONS, instructions}, {SWITCH, 1}}},
	};
	r.sample.n_read += id == SWITCH; /* its own value is in the group's read too */
	ck_assert_int_eq(switch_check_record(check, &r, 0), 0);
}

static void tell_both(uint32_t tid, uint64_t faults, uint64_t instructions)
{
	tell(OUTPUT, tid, faults, instructions);
	tell(SWITCH, tid, faults, instructions);
}

static struct switch_verdict verdict(void)
{
	struct switch_verdict v;
	switch_check_judge(check, &v);
	return v;
}

TEST(two_ways_that_say_the_same_agree)
{
	tell_both(1, 100, 1000);
	tell_both(2, 300, 1500);
	tell_both(1, 350, 9000);
	tell_both(2, 400, 9100);
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_switches, 3);
	ck_assert_uint_eq(v.n_unpaired, 0);
	ck_assert_uint_eq(v.n_sums, 4); /* two tasks, two events; the clock is not judged */
	ck_assert_uint_eq(v.n_apart, 0);
	ck_assert_double_eq(v.worst_share, 0);
}

TEST(nothing_seen_is_no_agreement)
{
	ck_assert_uint_eq(verdict().n_sums, 0);
	tell_both(1, 100, 1000);
	ck_assert_uint_eq(verdict().n_sums, 0);
	ck_assert_uint_eq(verdict().n_switches, 0);
}

TEST(counts_of_another_task_are_found)
{
	tell_both(1, 0, 0);
	for (uint64_t i = 1; i <= 100; i++) {
		tell(OUTPUT, 2, 1000 * i, 0);
		tell(SWITCH, 2, 1000 * i - 20, 0);
		tell_both(1, 1000 * i, 0);
	}
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_apart, 2); /* what the one lacks the other has too much */
	ck_assert_int_eq(v.worst.event, 1);
	ck_assert_uint_eq(v.worst.tid, 1);
	ck_assert_uint_eq(v.worst.by_sibling, 2000);
	ck_assert_uint_eq(v.worst.by_bpf, 0);
	ck_assert_double_eq(v.worst_share, 1);
}

TEST(hardware_counters_run_on_between_the_readings)
{
	tell_both(1, 0, 0);
	for (uint64_t i = 1; i <= 10; i++) {
		tell(OUTPUT, 2, 0, 1000000 * i);
		tell(SWITCH, 2, 0, 1000000 * i + 15000);
	}
	ck_assert_uint_eq(verdict().n_apart, 0);
	tell(OUTPUT, 3, 0, 11000000);
	tell(SWITCH, 3, 0, 11900000);
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_apart, 1);
	ck_assert_uint_eq(v.worst.tid, 3);
}

/* A switch that both tell of, with what the clock says to each. */
static void tell_timed(uint32_t tid, uint64_t ns, uint64_t gap_ns, uint64_t instructions,
	uint64_t instructions_later)
{
	for (int later = 0; later < 2; later++) {
		struct record r = {
			.kind = RECORD_SAMPLE,
			.stream = stream_table_find(&streams, later ? SWITCH : OUTPUT),
			.tid = tid,
			.sample = {.n_read = 2,
				.read = {{CLOCK, ns + (later ? gap_ns : 0)},
					{INSTRUCTIONS, later ? instructions_later : instructions}}},
		};
		ck_assert_int_eq(switch_check_record(check, &r, 0), 0);
	}
}

/* An emulated machine: its counters follow the clock of its host, which lets it stand still between
 * the two readings, or translates what it has not met. Neither way is wrong there. */
TEST(a_machine_that_stands_still_between_the_readings_proves_nothing)
{
	const uint64_t ms = 1000000;
	tell_timed(1, 0, 4 * ms, 0, 9700000); /* the first time */
	tell_timed(2, 5 * ms, 20000, 12000000, 12048000);
	ck_assert_uint_eq(verdict().n_sums, 0);
	ck_assert_uint_eq(verdict().n_apart_too_long, 1);
	tell_timed(1, 6 * ms, 60000, 14400000, 14544000);
	tell_timed(2, 7 * ms, 25000, 16800000, 16860000);
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_switches, 2);
	ck_assert_uint_eq(v.n_apart, 0);
	tell_timed(1, 8 * ms, 3 * ms, 19200000, 26400000);
	tell_timed(2, 12 * ms, 20000, 28800000, 28848000);
	v = verdict();
	ck_assert_uint_eq(v.n_switches, 2);
	ck_assert_uint_eq(v.n_apart_too_long, 3);
	ck_assert_uint_eq(v.n_apart, 0);
}

/* The clock says that they came at once: so what differs was counted wrongly. */
TEST(what_no_gap_explains_is_found)
{
	const uint64_t ms = 1000000;
	tell_timed(1, 0, 5000, 0, 5000);
	tell_timed(2, ms, 5000, 1000000, 1005000);
	tell_timed(1, 2 * ms, 5000, 2000000, 1605000);
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_apart_too_long, 0);
	ck_assert_uint_eq(v.n_apart, 1);
	ck_assert_uint_eq(v.worst.tid, 1);
}

TEST(two_events_of_the_kernel_may_fall_between)
{
	tell_both(1, 0, 0);
	tell(OUTPUT, 2, 10, 0);
	tell(SWITCH, 2, 12, 0);
	ck_assert_uint_eq(verdict().n_apart, 0);
	tell(OUTPUT, 3, 20, 0);
	tell(SWITCH, 3, 25, 0);
	ck_assert_uint_eq(verdict().n_apart, 1);
}

TEST(one_that_stays_silent_is_counted_and_breaks_the_chain, .times = 2)
{
	tell_both(1, 0, 0);
	tell(_i ? SWITCH : OUTPUT, 2, 500, 0);
	tell_both(1, 900, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 1);
	ck_assert_uint_eq(verdict().n_switches, 0); /* who had what of the 900 is not known */
	tell_both(2, 950, 0);
	ck_assert_uint_eq(verdict().n_switches, 1);
	ck_assert_uint_eq(verdict().n_apart, 0);
}

TEST(the_one_that_begins_first_or_ends_last_is_not_alone, .times = 2)
{
	for (uint64_t i = 1; i <= 5; i++)
		tell(_i ? SWITCH : OUTPUT, 2, i, 0);
	tell_both(1, 10, 0);
	tell_both(2, 20, 0);
	for (uint64_t i = 1; i <= 5; i++)
		tell(_i ? SWITCH : OUTPUT, 1, 20 + i, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 0);
	ck_assert_uint_eq(verdict().n_switches, 1);
}

TEST(what_was_lost_leaves_nobody_alone)
{
	struct record lost = {.kind = RECORD_LOST, .lost = {.n = 3}};
	tell_both(1, 0, 0);
	tell(OUTPUT, 2, 10, 0);
	tell(OUTPUT, 3, 10, 0);
	ck_assert_int_eq(switch_check_record(check, &lost, 0), 0);
	tell_both(1, 500, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 0);
}

static void throttle(enum record_kind kind, uint64_t id)
{
	struct record r = {.kind = kind, .stream = stream_table_find(&streams, id)};
	ck_assert_int_eq(switch_check_record(check, &r, 0), 0);
}

TEST(what_the_kernel_throttled_leaves_nobody_alone)
{
	tell_both(1, 0, 0);
	throttle(RECORD_THROTTLE, CLOCK);
	tell(OUTPUT, 2, 10, 0);
	tell(OUTPUT, 3, 10, 0);
	throttle(RECORD_UNTHROTTLE, CLOCK);
	tell(OUTPUT, 4, 10, 0);
	tell_both(1, 500, 0); /* of whom the 500 are is not known */
	ck_assert_uint_eq(verdict().n_unpaired, 0);
	ck_assert_uint_eq(verdict().n_switches, 0);
	tell_both(2, 510, 0);
	ck_assert_uint_eq(verdict().n_switches, 1);
	tell(OUTPUT, 2, 600, 0); /* it speaks again, so that silence says something */
	tell_both(1, 700, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 1);
}

/* Before Linux 6.16 the sibling speaks on while the leader is silent. */
TEST(what_both_say_of_a_throttled_group_is_compared)
{
	tell_both(1, 0, 0);
	throttle(RECORD_THROTTLE, CLOCK);
	tell(OUTPUT, 2, 1000, 0);
	tell(SWITCH, 2, 500, 0);
	tell_both(1, 1000, 0);
	tell(OUTPUT, 3, 1000, 0);
	tell_both(2, 1000, 0);
	ck_assert_uint_eq(verdict().n_switches, 2);
	ck_assert_uint_eq(verdict().n_apart, 2);
	ck_assert_uint_eq(verdict().n_unpaired, 0); /* it is throttled still */
}

/* Which the sibling may tell of or not. */
TEST(idle_that_bpf_alone_tells_of_is_part_of_what_both_compare)
{
	tell_both(1, 0, 0);
	tell(OUTPUT, 0, 0, 100);
	tell_both(1, 50, 1000);
	tell(OUTPUT, 0, 50, 1100);
	tell_both(0, 50, 1200);
	tell(OUTPUT, 0, 50, 1300);
	tell(OUTPUT, 2, 60, 2000);
	tell(SWITCH, 2, 55, 2000);
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_switches, 3);
	ck_assert_uint_eq(v.n_unpaired, 0);
	ck_assert_uint_eq(v.n_apart, 1);
	ck_assert_uint_eq(v.worst.tid, 2);
	tell(SWITCH, 0, 60, 2000); /* the sibling alone */
	tell_both(1, 70, 2100);
	ck_assert_uint_eq(verdict().n_unpaired, 1);
}

TEST(a_loss_may_hide_where_throttling_began_or_ended)
{
	struct record lost = {.kind = RECORD_LOST, .lost = {.n = 3}};
	tell_both(1, 0, 0);
	tell(OUTPUT, 2, 10, 0);
	throttle(RECORD_UNTHROTTLE, CLOCK); /* so it had been throttled */
	tell_both(1, 20, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 0);
	throttle(RECORD_THROTTLE, CLOCK);
	ck_assert_int_eq(switch_check_record(check, &lost, 0), 0);
	tell_both(1, 30, 0);
	tell(OUTPUT, 2, 40, 0);
	tell_both(1, 50, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 1);
}

TEST(throttling_of_others_excuses_nobody)
{
	throttle(RECORD_THROTTLE, CLOCK); /* before the first word of anybody */
	throttle(RECORD_UNTHROTTLE, CLOCK);
	tell_both(1, 0, 0);
	tell(OTHER_OUTPUT, 1, 0, 0);
	tell(OTHER_SWITCH, 1, 0, 0);
	throttle(RECORD_THROTTLE, OTHER_LEADER);
	throttle(RECORD_UNTHROTTLE, 99); /* of no stream */
	tell(OUTPUT, 2, 10, 0);
	tell_both(1, 500, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 1);
}

TEST(words_about_different_tasks_are_no_pair)
{
	tell_both(1, 0, 0);
	tell(OUTPUT, 2, 500, 0);
	tell(SWITCH, 3, 500, 0);
	tell_both(1, 900, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 2);
	ck_assert_uint_eq(verdict().n_switches, 0);
}

TEST(a_buried_thread_pairs_with_who_the_program_names)
{
	tell_both(1, 0, 0);
	tell(OUTPUT, 2, 500, 0);
	tell(SWITCH, RECORD_TID_GONE, 500, 0);
	struct switch_verdict v = verdict();
	ck_assert_uint_eq(v.n_unpaired, 0);
	ck_assert_uint_eq(v.worst.tid, 2);
}

TEST(losses_break_the_chain_of_their_hart_alone)
{
	struct record lost = {.kind = RECORD_LOST, .lost = {.n = 3}};
	tell_both(1, 0, 0);
	ck_assert_int_eq(switch_check_record(check, &lost, 1), 0);
	tell_both(2, 10, 0);
	ck_assert_uint_eq(verdict().n_switches, 1);
	ck_assert_int_eq(switch_check_record(check, &lost, 0), 0);
	tell_both(1, 500, 0);
	ck_assert_uint_eq(verdict().n_switches, 1);
	tell_both(2, 510, 0);
	ck_assert_uint_eq(verdict().n_switches, 2);
	ck_assert_uint_eq(verdict().n_unpaired, 0);
}

TEST(missed_switches_break_the_chain)
{
	tell_both(1, 0, 0);
	struct record r = {.kind = RECORD_SAMPLE,
		.stream = stream_table_find(&streams, OUTPUT),
		.tid = 2,
		.sample = {.n_read = 1, .n_missed = 4, .read = {{FAULTS, 700}}}};
	ck_assert_int_eq(switch_check_record(check, &r, 0), 0);
	tell(SWITCH, 2, 700, 0);
	ck_assert_uint_eq(verdict().n_switches, 0);
}

TEST(records_of_no_switch_are_stepped_over)
{
	struct record r = {.kind = RECORD_SAMPLE};
	ck_assert_int_eq(switch_check_record(check, &r, 0), 0); /* of no stream */
	r.kind = RECORD_MMAP;
	ck_assert_int_eq(switch_check_record(check, &r, 0), 0);
	tell(CLOCK, 1, 5, 5);
	tell(OTHER_OUTPUT, 1, 5, 5);
	tell(OTHER_SWITCH, 1, 5, 5);
	ck_assert_uint_eq(verdict().n_switches, 0);
	ck_assert_uint_eq(verdict().n_unpaired, 0);
}

TEST(members_that_one_of_them_lacks_are_not_compared)
{
	tell_both(1, 0, 0);
	struct record r = {.kind = RECORD_SAMPLE,
		.stream = stream_table_find(&streams, OUTPUT),
		.tid = 2,
		.sample = {.n_read = 2, .read = {{FAULTS, 700}, {99, 1}}}};
	ck_assert_int_eq(switch_check_record(check, &r, 0), 0);
	tell(SWITCH, 2, 700, 5);
	ck_assert_uint_eq(verdict().n_sums, 1);
}

TEST(more_tasks_than_there_is_room_for_are_counted)
{
	for (uint32_t tid = 1; tid <= SWITCH_CHECK_SUMS_MAX; tid++)
		tell_both(tid, tid, tid);
	struct switch_verdict v = verdict();
	ck_assert_uint_gt(v.n_left_out, 0);
	ck_assert_uint_lt(v.n_sums, SWITCH_CHECK_SUMS_MAX);
	ck_assert_uint_eq(v.n_switches, SWITCH_CHECK_SUMS_MAX - 1);
}
