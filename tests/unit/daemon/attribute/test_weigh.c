/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/weigh.c: how much time a sample stands for */

#include "tests/unit/attribute_bench.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define BY_RATE UINT64_C(10101010) /* of all streams of the bench */

static struct bench *b;
static uint64_t counted;

/* Processes 10 and 20; the group of hart 0 is read at switches. */
static void setup(void)
{
	b = bench_new();
	stream_table_set_timed(&b->streams, BENCH_LEADER);
	stream_table_set_timed(&b->streams, BENCH_HART + BENCH_LEADER);
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
	bench_fork(b, SECOND + 2, 20, 20, 10);
	counted = 0;
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

/* The group is read at that ms of second 2, while pid runs: what it counts does not matter. */
static void reading(uint64_t stream, uint64_t ms, int pid)
{
	counted += 1000;
	bench_read(b, stream, 2 * SECOND + ms * MS, pid, (uint64_t[]){counted, counted});
}

static void switched(uint64_t ms, int from)
{
	reading(BENCH_SWITCH, ms, from);
}

static void sampled(uint64_t ms, int pid)
{
	reading(BENCH_LEADER, ms, pid);
}

static void throttle(uint64_t stream, enum record_kind kind, uint64_t time_ns)
{
	struct record r = bench_record(b, kind, time_ns, 10);

	r.stream = stream_table_find(&b->streams, stream);
	bench_take(b, &r, 0);
}

static void alone(uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 10, 0x10020);

	bench_take(b, &r, 0);
}

static void expect(size_t i, uint64_t weight_ns)
{
	ck_assert_uint_eq(bench_got(b, i)->weight_ns, weight_ns);
}

static uint64_t weight_of(int pid)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < b->n_sunk; i++)
		sum += b->sunk[i].a.task->pid == pid ? b->sunk[i].a.weight_ns : 0;
	return sum;
}

/* --- groups ----------------------------------------------------------------------------------- */

TEST(a_sample_stands_for_the_time_since_the_last)
{
	switched(0, 0);
	sampled(7, 10);
	sampled(27, 10);
	sampled(28, 10);
	expect(0, 7 * MS);
	expect(1, 20 * MS);
	expect(2, 1 * MS);
}

TEST(idle_is_no_part_of_it)
{
	switched(0, 10);
	switched(900, 0);
	sampled(907, 10);
	expect(0, 7 * MS);
}

TEST(who_is_never_sampled_is_stood_for_by_others)
{
	switched(0, 0);
	switched(3, 20);
	sampled(7, 10);
	expect(0, 7 * MS);
}

TEST(a_throttled_group_brings_few_samples_and_all_of_the_time)
{
	switched(0, 0);
	for (uint64_t ms = 0; ms < 900; ms += 90) {
		switched(ms + 30, 10);
		switched(ms + 60, 0);
		sampled(ms + 80, ms % 180 ? 10 : 20);
		switched(ms + 90, ms % 180 ? 10 : 20);
	}
	/* of 900 ms a third was idle; the last 10 ms wait for a sample that does not come */
	ck_assert_uint_eq(weight_of(10) + weight_of(20), 590 * MS);
	ck_assert_uint_eq(b->n_sunk, 10);
}

/* As reading(), where the group's own count of switches is read too. */
static void counted_reading(uint64_t stream, uint64_t ms, int pid, uint64_t n_switches)
{
	struct record r = bench_sample(b, stream, 2 * SECOND + ms * MS, pid, 0x1000);

	counted += 1000;
	r.sample.n_read = 3;
	r.sample.read[0] = (struct record_read_value){BENCH_LEADER, counted};
	r.sample.read[1] = (struct record_read_value){BENCH_SIBLING, counted};
	r.sample.read[2] = (struct record_read_value){BENCH_SWITCH, n_switches};
	r.sample.enabled_ns = r.sample.running_ns = r.time_ns;
	bench_take(b, &r, 0);
}

TEST(time_in_which_others_may_have_run_untold_is_not_measured)
{
	counted_reading(BENCH_SWITCH, 0, 10, 1); /* the hart idles, whose end is not told: 2 */
	counted_reading(BENCH_LEADER, 907, 10, 2);
	expect(0, BY_RATE);
	counted_reading(BENCH_LEADER, 912, 10, 2);
	expect(1, 5 * MS);
	counted_reading(BENCH_SWITCH, 920, 10, 3);
	counted_reading(BENCH_SWITCH, 930, 20, 5); /* 4 is missing */
	counted_reading(BENCH_LEADER, 933, 10, 5);
	expect(2, BY_RATE);
	counted_reading(BENCH_SWITCH, 934, 10, 6);
	counted_reading(BENCH_SWITCH, 936, 20, 7);
	counted_reading(BENCH_LEADER, 939, 10, 7);
	expect(3, 6 * MS);
	ck_assert_uint_eq(b->lost[0][LOSS_SWITCH], 2);
	/* what was counted is charged all the same, to who is read next */
	ck_assert_uint_eq(bench_counted(b, 10, 0), 6000);
}

TEST(harts_are_told_apart)
{
	switched(0, 0);
	reading(BENCH_HART + BENCH_SWITCH, 0, 0);
	sampled(5, 10);
	struct record r = bench_sample(b, BENCH_ALONE, 3 * SECOND, 10, 0x10020);
	bench_take(b, &r, 1);
	reading(BENCH_HART + BENCH_LEADER, 9, 20);
	expect(0, 5 * MS);
	expect(1, BY_RATE);
	expect(2, 9 * MS);
}

TEST(the_first_sample_stands_for_what_the_rate_says)
{
	sampled(7, 10);
	sampled(9, 10);
	expect(0, BY_RATE);
	expect(1, 2 * MS);
}

TEST(what_a_loss_hides_is_not_made_up)
{
	switched(0, 0);
	sampled(7, 10);
	struct record lost = bench_record(b, RECORD_LOST, 2 * SECOND + 8 * MS, 0);
	lost.lost.n = 40;
	bench_take(b, &lost, 0);
	sampled(507, 10);
	sampled(517, 10);
	expect(1, BY_RATE);
	expect(2, 10 * MS);
}

TEST(readings_that_go_backwards_are_left_to_the_rate)
{
	switched(100, 0);
	sampled(107, 10);
	counted = 0;
	sampled(50, 10);
	sampled(51, 10);
	expect(1, BY_RATE);
	expect(2, 1 * MS);
}

TEST(who_is_not_wanted_takes_no_time_of_the_others)
{
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	task_find(&b->tasks, 10)->wanted = true;
	task_find(&b->tasks, 20)->wanted = false;
	switched(0, 0);
	sampled(20, 20);
	switched(40, 20);
	sampled(47, 10);
	ck_assert_uint_eq(b->n_sunk, 1);
	expect(0, 7 * MS);
}

/* --- without readings ------------------------------------------------------------------------- */

TEST(a_group_that_is_not_cut_goes_by_the_rate)
{
	b->streams.stream[1].timed = false; /* BENCH_LEADER */
	switched(0, 0);
	sampled(7, 10);
	expect(0, BY_RATE);
}

TEST(a_group_whose_switches_are_counted_goes_by_the_rate, .times = 2)
{
	stream_table_set_uncut(&b->streams, BENCH_LEADER);
	b->streams.stream[1].timed = false; /* BENCH_LEADER */
	for (uint64_t i = 0; i < 4; i++) {
		struct record r =
			bench_sample(b, BENCH_LEADER, 2 * SECOND + i * 50 * MS, 10, 0x1000);
		r.sample.n_read = 2;
		r.sample.read[0] = (struct record_read_value){BENCH_LEADER, 1000 * i};
		r.sample.read[1] = (struct record_read_value){BENCH_COUNT, _i ? 1 : 1 + i};
		r.sample.enabled_ns = r.sample.running_ns = r.time_ns;
		bench_take(b, &r, 0);
		expect(i, BY_RATE); /* also where one task is known to have run for 50 ms */
	}
}

TEST(what_was_throttled_away_is_added_to_the_next)
{
	alone(2 * SECOND);
	throttle(BENCH_ALONE, RECORD_THROTTLE, 2 * SECOND + 1);
	throttle(BENCH_ALONE, RECORD_UNTHROTTLE, 2 * SECOND + 1 + 4 * MS);
	throttle(BENCH_ALONE, RECORD_THROTTLE, 2 * SECOND + 5 * MS);
	throttle(BENCH_ALONE, RECORD_UNTHROTTLE, 2 * SECOND + 7 * MS);
	alone(2 * SECOND + 20 * MS);
	alone(2 * SECOND + 30 * MS);
	expect(0, BY_RATE);
	expect(1, BY_RATE + 6 * MS);
	expect(2, BY_RATE);
}

/* Records of throttle() are of process 10. */
TEST(who_is_not_wanted_is_throttled_at_no_ones_expense, .times = 2)
{
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	task_find(&b->tasks, 10)->wanted = _i;
	task_find(&b->tasks, 20)->wanted = true;
	throttle(BENCH_ALONE, RECORD_THROTTLE, 2 * SECOND);
	throttle(BENCH_ALONE, RECORD_UNTHROTTLE, 2 * SECOND + 4 * MS);
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND + 20 * MS, 20, 0x10020);
	bench_take(b, &r, 0);
	expect(0, BY_RATE + (_i ? 4 * MS : 0));
}

TEST(who_runs_when_the_throttling_ends_has_half_of_it, .times = 2)
{
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	task_find(&b->tasks, 10)->wanted = true;
	task_find(&b->tasks, 20)->wanted = _i;
	throttle(BENCH_ALONE, RECORD_THROTTLE, 2 * SECOND);
	struct record end = bench_record(b, RECORD_UNTHROTTLE, 2 * SECOND + 4 * MS, 20);
	end.stream = stream_table_find(&b->streams, BENCH_ALONE);
	bench_take(b, &end, 0);
	alone(2 * SECOND + 20 * MS);
	expect(0, BY_RATE + (_i ? 4 * MS : 2 * MS));
}

TEST(an_idle_stretch_behind_a_throttling_is_not_added)
{
	throttle(BENCH_ALONE, RECORD_THROTTLE, 2 * SECOND);
	throttle(BENCH_ALONE, RECORD_UNTHROTTLE, 60 * SECOND);
	alone(61 * SECOND);
	expect(0, BY_RATE + 10 * MS);
}

TEST(throttling_that_makes_no_sense_adds_nothing)
{
	throttle(BENCH_ALONE, RECORD_UNTHROTTLE, 2 * SECOND);
	alone(2 * SECOND + 1);
	throttle(BENCH_ALONE, RECORD_THROTTLE, 4 * SECOND);
	throttle(BENCH_ALONE, RECORD_UNTHROTTLE, 3 * SECOND);
	alone(4 * SECOND + 1);
	throttle(BENCH_SIDEBAND, RECORD_THROTTLE, 5 * SECOND);
	throttle(999, RECORD_THROTTLE, 5 * SECOND); /* of no stream */
	throttle(999, RECORD_UNTHROTTLE, 6 * SECOND);
	alone(7 * SECOND);
	for (size_t i = 0; i < 3; i++)
		expect(i, BY_RATE);
}

TEST(measured_time_is_not_added_to_again)
{
	switched(0, 0);
	throttle(BENCH_LEADER, RECORD_THROTTLE, 2 * SECOND + 1);
	throttle(BENCH_LEADER, RECORD_UNTHROTTLE, 2 * SECOND + 4 * MS);
	sampled(7, 10);
	expect(0, 7 * MS);
}

/* --- a replayed kernel ------------------------------------------------------------------------ */

/* Half a second of process 10 on hart 0 of a C910, sampled 1000 times a second; time in all. */
static uint64_t replayed(unsigned taken_percent, size_t *ret_n_samples)
{
	struct replay *machine = case_load("c910");
	const struct sampler_options o = {.hz = 1000};
	struct sampler *s = case_sampler(machine, &o);
	const uint8_t *bytes;
	size_t n;

	ck_assert_int_eq(sampler_start(s), 0);
	attribute_free(b->attribute);
	b->options.streams = &s->streams;
	b->options.n_events = s->events.n_events;
	bench_start(b);
	b->n_sunk = 0;
	replay_take_counters(machine, taken_percent);
	for (int i = 0; i < 5; i++) {
		replay_run(machine, 0, 10, 100 * MS);
		struct ring *ring = &s->ring[0];
		ring_snapshot(ring);
		for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
			struct record r;
			ck_assert_int_eq(record_decode(bytes, n, &s->streams, &r), 0);
			bench_take(b, &r, 0);
		}
		ring_release(ring);
	}
	*ret_n_samples = b->n_sunk;
	uint64_t sum = weight_of(10);
	attribute_free(b->attribute);
	b->attribute = NULL;
	case_end(machine, s);
	return sum;
}

TEST(a_hart_that_reaches_its_rate_has_its_time)
{
	size_t n;

	uint64_t sum = replayed(0, &n);
	ck_assert_uint_ge(n, 480);
	ck_assert_uint_ge(sum, 495 * MS);
	ck_assert_uint_le(sum, 501 * MS);
}

TEST(a_hart_that_does_not_reach_its_rate_has_its_time_too)
{
	size_t n;

	/* three quarters of the time somebody else has the counter, and nothing fires */
	uint64_t sum = replayed(75, &n);
	ck_assert_uint_le(n, 150);
	ck_assert_uint_ge(sum, 490 * MS - 75 * MS); /* what comes behind the last sample */
	ck_assert_uint_le(sum, 501 * MS);
}

static bool leader_is_timed(const char *name, const struct sampler_options *o)
{
	struct replay *machine = case_load(name);
	struct sampler *s = case_sampler(machine, o);
	bool timed = case_stream(s, 0, STREAM_SAMPLER)->timed;

	case_end(machine, s);
	return timed;
}

TEST(a_leader_is_timed_where_its_group_is_cut_at_switches)
{
	struct sampler_options o = {.hz = 99};

	ck_assert(leader_is_timed("c910", &o));
	ck_assert(leader_is_timed("u74", &o));
	ck_assert(!leader_is_timed("x86-vm", &o)); /* a clock alone */
	o.switches = SAMPLER_SWITCHES_NONE;
	ck_assert(!leader_is_timed("c910", &o)); /* switches are only counted */
	/* that clock ticks in user mode alone, and its group is enabled in the kernel too */
	o = (struct sampler_options){.hz = 99, .user_only = true};
	ck_assert(!leader_is_timed("u74", &o));
}
