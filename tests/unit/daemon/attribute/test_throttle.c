/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/throttle.c: what the kernel throttled, of records made by hand and of
 * replayed kernels of both kinds, those that stop whole groups and those that stop single events.
 */

#include "tests/unit/attribute_bench.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static struct bench *b;

/* Processes 10 and 20; the group of hart 0 is read at switches, on a kernel that stops groups. */
static void setup(void)
{
	b = bench_new();
	stream_table_set_timed(&b->streams, BENCH_LEADER);
	b->options.throttles_groups = true;
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
	bench_fork(b, SECOND + 2, 20, 20, 10);
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void on_old_kernel(void)
{
	attribute_free(b->attribute);
	b->options.throttles_groups = false;
	bench_start(b);
}

/* --- by hand ---------------------------------------------------------------------------------- */

/* The group is read at that ms of second 2, while pid runs: its members have these totals. */
static void reading(uint64_t stream, uint64_t ms, int pid, uint64_t leader, uint64_t sibling)
{
	struct record r = bench_sample(b, stream, 2 * SECOND + ms * MS, pid, 0x1000);

	r.sample.n_read = 2;
	r.sample.read[0] = (struct record_read_value){BENCH_LEADER, leader};
	r.sample.read[1] = (struct record_read_value){BENCH_SIBLING, sibling};
	r.sample.enabled_ns = r.sample.running_ns = r.time_ns;
	bench_take(b, &r, 0);
}

static void throttle(enum record_kind kind, uint64_t ms, int pid)
{
	struct record r = bench_record(b, kind, 2 * SECOND + ms * MS, pid);

	r.stream = stream_table_find(&b->streams, BENCH_LEADER);
	bench_take(b, &r, 0);
}

/* From 10 ms to 12 ms, as the kernel tells it. */
static void silence(int first_pid, int last_pid)
{
	throttle(RECORD_THROTTLE, 10, first_pid);
	reading(BENCH_LEADER, 10, first_pid, 1000, 100);
	throttle(RECORD_UNTHROTTLE, 12, last_pid);
}

/* For 2 ms from then on, of one task. */
static void silence_at(uint64_t ms, int pid, uint64_t counted)
{
	throttle(RECORD_THROTTLE, ms, pid);
	reading(BENCH_LEADER, ms, pid, counted, counted / 10);
	throttle(RECORD_UNTHROTTLE, ms + 2, pid);
}

/* What the attributions say of pid's event: the times in ms. */
static void expect(int pid, int event, uint64_t value, uint64_t enabled_ms, uint64_t running_ms)
{
	uint64_t got_value = 0, enabled_ns = 0, running_ns = 0;

	for (size_t i = 0; i < b->n_sunk; i++)
		for (uint32_t k = 0; k < b->sunk[i].a.n_reads; k++) {
			const struct attribution *a = &b->sunk[i].a;
			if (a->task->pid != pid || a->read[k].event != event)
				continue;
			got_value += a->read[k].value;
			enabled_ns += a->read[k].enabled_ns;
			running_ns += a->read[k].running_ns;
		}
	ck_assert_uint_eq(got_value, value);
	ck_assert_uint_eq(enabled_ns, enabled_ms * MS);
	ck_assert_uint_eq(running_ns, running_ms * MS);
}

TEST(nothing_of_a_stopped_group_counted_in_the_silence)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	silence(10, 10);
	reading(BENCH_LEADER, 22, 10, 2000, 200);
	expect(10, 0, 2000, 22, 20);
	expect(10, 1, 200, 22, 20);
	ck_assert_uint_eq(bench_got(b, 1)->weight_ns, 12 * MS);
}

TEST(an_event_that_stops_alone_leaves_its_siblings_counting)
{
	on_old_kernel();
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	silence(10, 10);
	reading(BENCH_LEADER, 22, 10, 2000, 220);
	expect(10, 0, 2000, 22, 20);
	expect(10, 1, 220, 22, 22);
}

TEST(an_event_that_stops_alone_is_cut_in_its_silence)
{
	on_old_kernel();
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	throttle(RECORD_THROTTLE, 10, 10);
	reading(BENCH_LEADER, 10, 10, 1000, 100);
	reading(BENCH_SWITCH, 13, 10, 1000, 130);
	throttle(RECORD_UNTHROTTLE, 15, 20);
	reading(BENCH_LEADER, 25, 20, 2000, 250);
	reading(BENCH_LEADER, 26, 10, 2000, 250); /* takes what waits */
	expect(10, 0, 1000, 14, 11);
	expect(10, 1, 130, 14, 14);
	expect(20, 0, 1000, 12, 10);
	expect(20, 1, 120, 12, 12);
}

TEST(a_switch_in_the_silence_divides_it_in_halves)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	silence(10, 20);
	reading(BENCH_SWITCH, 14, 20, 1200, 120);
	reading(BENCH_LEADER, 15, 20, 1300, 130);
	reading(BENCH_LEADER, 16, 10, 1400, 140);
	expect(10, 0, 1100, 12, 11);
	expect(10, 1, 110, 12, 11);
	expect(20, 0, 300, 4, 3);
	expect(20, 1, 30, 4, 3);
}

TEST(who_runs_at_both_ends_has_the_whole_silence)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	silence(10, 10);
	reading(BENCH_LEADER, 14, 20, 1200, 120); /* the switch itself was lost */
	reading(BENCH_LEADER, 15, 10, 1300, 130);
	expect(10, 0, 1100, 13, 11);
	expect(20, 0, 200, 2, 2);
}

TEST(idle_after_a_throttled_task_has_half_of_the_silence)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	silence(10, 0);
	reading(BENCH_SWITCH, 500, 0, 1000, 100);
	reading(BENCH_LEADER, 510, 10, 2000, 200);
	expect(10, 0, 2000, 21, 20);
	ck_assert_uint_eq(bench_got(b, 1)->weight_ns, 11 * MS);
}

TEST(a_throttled_task_that_is_not_wanted_leaves_no_time_to_others)
{
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	task_find(&b->tasks, 10)->wanted = false;
	task_find(&b->tasks, 20)->wanted = true;
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	silence(10, 10);
	reading(BENCH_SWITCH, 13, 20, 1100, 110);
	reading(BENCH_LEADER, 14, 20, 1200, 120);
	expect(20, 0, 200, 2, 2);
	expect(10, 0, 0, 0, 0);
	ck_assert_uint_eq(bench_got(b, 0)->weight_ns, 2 * MS);
}

/* Whatever the version says: a distribution may have taken the change, or left it out. */
TEST(a_switch_told_in_the_silence_shows_that_siblings_go_on)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	throttle(RECORD_THROTTLE, 10, 10);
	reading(BENCH_LEADER, 10, 10, 1000, 100);
	reading(BENCH_SWITCH, 12, 10, 1000, 120);
	throttle(RECORD_UNTHROTTLE, 13, 20);
	reading(BENCH_LEADER, 20, 20, 1700, 200);
	expect(20, 0, 700, 8, 7);
	expect(20, 1, 80, 8, 8);
}

TEST(a_silence_that_never_ends_is_a_tick_at_most)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	throttle(RECORD_THROTTLE, 10, 10);
	reading(BENCH_LEADER, 10, 10, 1000, 100);
	reading(BENCH_LEADER, 500, 10, 2000, 200);
	expect(10, 0, 2000, 500, 490);
}

TEST(a_switch_long_after_a_silence_that_never_ended_shows_nothing)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	throttle(RECORD_THROTTLE, 10, 10);
	reading(BENCH_LEADER, 10, 10, 1000, 100);
	reading(BENCH_SWITCH, 30, 10, 2000, 200);
	silence_at(40, 10, 3000);
	reading(BENCH_LEADER, 52, 10, 4000, 400);
	expect(10, 1, 400, 52,
		40); /* the first was cut off after 10 ms, the second is one of 2 ms */
}

TEST(a_loss_may_hide_where_a_silence_ended)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	throttle(RECORD_THROTTLE, 10, 10);
	reading(BENCH_LEADER, 10, 10, 1000, 100);
	struct record lost = bench_record(b, RECORD_LOST, 2 * SECOND + 11 * MS, 0);
	lost.lost.n = 4;
	bench_take(b, &lost, 0);
	reading(BENCH_LEADER, 20, 10, 1900, 190);
	reading(BENCH_LEADER, 30, 10, 2900, 290);
	expect(10, 0, 2000, 20, 20);
}

TEST(an_end_without_a_begin_means_nothing)
{
	reading(BENCH_SWITCH, 0, 0, 0, 0);
	throttle(RECORD_UNTHROTTLE, 5, 10);
	reading(BENCH_LEADER, 10, 10, 1000, 100);
	throttle(RECORD_THROTTLE, 9, 10); /* late */
	throttle(RECORD_UNTHROTTLE, 8, 10);
	reading(BENCH_LEADER, 20, 10, 2000, 200);
	expect(10, 0, 2000, 20, 20);
}

/* --- replayed kernels ------------------------------------------------------------------------- */

/* Of processes 10 and 20: */
struct work {
	double value[2][2];  /* cycles and instructions, scaled as answers do */
	uint64_t time_ns[2]; /* that samples stand for */
	uint64_t n_throttles;
	bool scaled[2]; /* of these events, for either */
};

struct count {
	double value, enabled_ns, running_ns;
};

/* What the ring of hart 0 holds, through the decoder. */
static void drain(struct sampler *s)
{
	const uint8_t *bytes;
	size_t n;
	struct ring *ring = &s->ring[0];

	ring_snapshot(ring);
	for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
		struct record r;
		ck_assert_int_eq(record_decode(bytes, n, &s->streams, &r), 0);
		bench_take(b, &r, 0);
	}
	ring_release(ring);
}

static void sum_up(const struct sampler *s, struct work *w)
{
	struct count count[2][2] = {0};

	for (size_t i = 0; i < b->n_sunk; i++) {
		const struct attribution *a = &b->sunk[i].a;
		int who = a->task->pid == 20;
		w->time_ns[who] += a->weight_ns;
		for (uint32_t k = 0; k < a->n_reads; k++) {
			const struct event *e = &s->events.event[a->read[k].event];
			if (e->type != PERF_TYPE_HARDWARE)
				continue;
			struct count *c = &count[who][e->config & 1];
			c->value += (double)a->read[k].value;
			c->enabled_ns += (double)a->read[k].enabled_ns;
			c->running_ns += (double)a->read[k].running_ns;
		}
	}
	for (int who = 0; who < 2; who++)
		for (int event = 0; event < 2; event++) {
			const struct count *c = &count[who][event];
			ck_assert(c->running_ns > 0);
			w->value[who][event] = c->value * c->enabled_ns / c->running_ns;
			w->scaled[event] |= c->running_ns < c->enabled_ns;
		}
}

/* 520 ms of processes 10 and 20 by turns, on hart 0 of that machine, at 999 Hz under a limit that
 * fell a moment ago. */
static struct work replayed(const char *name, const char *release, const char *limit)
{
	struct replay *machine = case_load(name);
	const struct kernel *k = replay_kernel(machine);
	const struct sampler_options o = {.hz = 999};
	struct work w = {.n_throttles = 0};

	replay_set_text(machine, "/proc/sys/kernel/osrelease", release);
	struct sampler *s = case_sampler(machine, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	attribute_free(b->attribute);
	b->options.streams = &s->streams;
	b->options.n_events = s->events.n_events;
	b->options.throttles_groups = s->machine.throttles_groups;
	bench_start(b);
	replay_run(machine, 0, 10, 20 * MS); /* the first reading is before the work */
	drain(s);
	b->n_sunk = 0;
	memset(b->lost, 0, sizeof(b->lost));
	replay_set_text(machine, "/proc/sys/kernel/perf_event_max_sample_rate", limit);
	for (int i = 0; i < 50; i++) {
		replay_run(machine, 0, 10, 7300000);
		replay_run(machine, 0, 20, 3100000);
		drain(s);
	}
	bench_exit(b, k->now_ns(k->userdata), 10, 10); /* what waits for a sample comes without */
	bench_exit(b, k->now_ns(k->userdata), 20, 20);
	sum_up(s, &w);
	w.n_throttles = b->lost[0][LOSS_THROTTLE];
	attribute_free(b->attribute);
	b->attribute = NULL;
	case_end(machine, s);
	return w;
}

/* Counts per microsecond, cycles and instructions (tests/platforms). */
static const struct {
	const char *name, *release, *limit;
	double per_us[2];
} throttled[] = {
	{"c910", "6.12.0\n", "250\n", {1850, 2200}},
	{"c910", "6.12.0\n", "500\n", {1850, 2200}},
	{"c910", "6.12.0\n", "1000\n", {1850, 2200}},
	{"c910", "6.18.0\n", "250\n", {1850, 2200}},
	{"c910", "6.18.0\n", "500\n", {1850, 2200}},
	{"c910", "6.18.0\n", "1000\n", {1850, 2200}},
	{"u74", "6.12.0\n", "250\n", {1000, 700}},
	{"u74", "6.18.0\n", "250\n", {1000, 700}},
	{"u74", "6.18.0\n", "500\n", {1000, 700}},
};

static void assert_near(double got, double wanted, double part)
{
	ck_assert_msg(got > wanted * (1 - part) && got < wanted * (1 + part), "%.0f of %.0f", got,
		wanted);
}

TEST(counts_time_and_ipc_hold_while_the_kernel_throttles, .times = 9)
{
	struct work w = replayed(throttled[_i].name, throttled[_i].release, throttled[_i].limit);
	const double us = 50 * (7300 + 3100);

	ck_assert_uint_gt(w.n_throttles, 50);
	assert_near((double)(w.time_ns[0] + w.time_ns[1]), us * 1e3, 0.03);
	assert_near((double)w.time_ns[0] / (double)w.time_ns[1], 73 / 31.0, 0.2);
	for (int event = 0; event < 2; event++)
		assert_near(w.value[0][event] + w.value[1][event], us * throttled[_i].per_us[event],
			0.03);
	for (int who = 0; who < 2; who++)
		assert_near(w.value[who][1] / w.value[who][0],
			throttled[_i].per_us[1] / throttled[_i].per_us[0], 0.03);
	bool whole_group = throttled[_i].release[2] == '1' && throttled[_i].release[3] == '8';
	ck_assert(w.scaled[1] == whole_group);
	ck_assert(w.scaled[0] == (whole_group || strcmp(throttled[_i].name, "c910") == 0));
}
