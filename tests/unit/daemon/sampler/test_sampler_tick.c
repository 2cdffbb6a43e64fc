/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The sampler while it runs: harts and rate limits that change under it, on machines as data; and,
 * where we may, the kernel that runs here.
 */

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/sampler/attr.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static const struct sampler_options plain = {.hz = 99, .stacks = SAMPLER_STACKS_FP};

/* --- while it runs ---------------------------------------------------------------------------- */

TEST(rate_is_kept_under_the_kernels_limit)
{
	struct replay *r = case_load("c910");
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "500\n");
	struct sampler_options o = {.hz = 999};
	struct sampler *s = case_sampler(r, &o);
	ck_assert_uint_eq(s->hz, 199); /* of a tick of 4 ms the second sample would be throttled */
	ck_assert(s->rate_lowered);
	ck_assert_uint_eq(case_stream(s, 0, STREAM_SAMPLER)->weight_ns, 5025125);
	case_end(r, s);
}

TEST(lowered_limit_changes_rate_and_weight, .times = 2)
{
	static const char *const both[] = {"c910", "u74"};
	struct replay *r = case_load(both[_i]);
	struct sampler_options o = {.hz = 1000};
	struct sampler *s = case_sampler(r, &o);
	sampler_start(s);
	ck_assert(!s->rate_lowered);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "250\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert(s->rate_lowered);
	ck_assert_uint_eq(s->hz, 99);
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (t->role != STREAM_SAMPLER)
			continue;
		const uint64_t period = _i ? attr_hart_period(10101010, t->hart) : 10101010;
		ck_assert_uint_eq(t->weight_ns, period);
		ck_assert_uint_eq(t->period, _i ? period : 0);
		ck_assert_uint_eq(replay_attr(r, t->fd)->sample_period, _i ? period : 99);
	}
	case_drain(s);
	replay_run(r, 0, 5, 100000000);
	struct case_tally t = case_drain(s);
	ck_assert_uint_ge(t.n_samples, 7); /* each costs the rest of a tick */
	ck_assert_uint_le(t.n_samples, 11);

	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert(!s->rate_lowered && s->hz == 1000);
	case_end(r, s);
}

TEST(limit_is_followed_at_once_when_the_kernel_throttles)
{
	struct replay *r = case_load("c910");
	struct sampler_options o = {.hz = 1000};
	struct sampler *s = case_sampler(r, &o);
	sampler_start(s);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "500\n");
	replay_run(r, 0, 5, 100000000);
	ck_assert_uint_gt(case_drain(s).n_throttles, 20);
	ck_assert_int_eq(sampler_follow_rate(s), 0);
	ck_assert_uint_eq(s->hz, 199);
	replay_run(r, 0, 5, 100000000);
	ck_assert_uint_eq(case_drain(s).n_throttles, 0);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	ck_assert_int_eq(sampler_follow_rate(s), 0);
	ck_assert(!s->rate_lowered && s->hz == 1000);
	case_end(r, s);
}

TEST(samples_that_begin_at_ticks_end_all_over_them)
{
	struct replay *r = case_load("u74");
	struct sampler_options o = {.hz = 99};
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "250\n");
	struct sampler *s = case_sampler(r, &o);
	sampler_start(s);
	const struct stream *t = case_stream(s, 0, STREAM_SAMPLER);
	unsigned tenths[10] = {0};
	for (int i = 0; i < 80; i++) {
		ck_assert_int_eq(sampler_follow_rate(s), 0);
		ck_assert_uint_eq(s->hz, 99);
		ck_assert_uint_eq(t->period / 4000000, 2);
		ck_assert_uint_eq(t->weight_ns, t->period);
		ck_assert_uint_eq(replay_attr(r, t->fd)->sample_period, t->period);
		tenths[t->period % 4000000 / 400000]++;
		ck_assert_int_eq(sampler_tick(s), 0); /* moves nothing */
		ck_assert_uint_eq(replay_attr(r, t->fd)->sample_period, t->period);
	}
	ck_assert_uint_eq(tenths[0] + tenths[9], 0); /* the kernel's own work */
	for (int i = 1; i < 9; i++)
		ck_assert(tenths[i] >= 9 && tenths[i] <= 11);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(t->period, 10101010);
	ck_assert_uint_eq(t->weight_ns, 10101010);
	ck_assert_int_eq(sampler_follow_rate(s), 0);
	ck_assert_uint_eq(t->period, 10101010);
	case_end(r, s);
}

static const enum replay_throttling kernels[] = {REPLAY_THROTTLING_NOT_FIRST,
	REPLAY_THROTTLING_BEYOND, REPLAY_THROTTLING_EVENTS, REPLAY_THROTTLING_GROUPS};
static const char *const machines[] = {"c910", "u74"};
static const char *const limits[] = {"250\n", "500\n", "750\n", "1000\n", "2000\n", "100000\n"};
static const uint32_t ticks[] = {100, 250, 300, 1000};

TEST(no_rate_that_is_asked_for_is_throttled, .times = 2 * 4 * 6 * 4)
{
	struct replay *r = case_load(machines[_i % 2]);
	const enum replay_throttling kernel = kernels[_i / 2 % 4];
	const char *limit = limits[_i / 8 % 6];
	const uint32_t hz = ticks[_i / 48];
	replay_set_throttling(r, kernel);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", limit);
	replay_set_tick(r, hz);
	struct sampler_options o = {.hz = 20000};
	struct sampler *s = case_sampler(r, &o);
	sampler_start(s);
	uint32_t most = (uint32_t)strtoul(limit, NULL, 10);
	ck_assert_uint_le(s->hz, most);
	replay_run(r, 0, 5, 200000000);
	struct case_tally t = case_drain(s);
	ck_assert_uint_gt(t.n_samples, s->hz / 10); /* half of what 200 ms bring */
	/* Where a tick has room for one sample, there is no such rate on newer kernels. */
	bool each = kernel == REPLAY_THROTTLING_EVENTS || kernel == REPLAY_THROTTLING_GROUPS;
	ck_assert_uint_eq(t.n_throttles, each && most <= hz ? t.n_samples : 0);
	case_end(r, s);
}

TEST(hart_that_goes_is_closed_and_counted)
{
	struct replay *r = case_load("u74");
	struct sampler *s = case_sampler(r, &plain);
	sampler_start(s);
	unsigned before = replay_n_events(r);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-1,3\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(s->n_rings, 3);
	ck_assert_uint_eq(s->n_exec_rings, 3);
	ck_assert_uint_eq(replay_n_events(r), before / 4 * 3);
	ck_assert_ptr_null(case_stream(s, 2, STREAM_SAMPLER));
	ck_assert_ptr_null(case_stream(s, 2, STREAM_EXEC));
	ck_assert_uint_eq(s->lost[2][LOSS_HOTPLUG], 1);
	ck_assert_int_eq(s->plan[2].rung, RUNG_NONE);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(s->lost[2][LOSS_HOTPLUG], 1);
	replay_run(r, 3, 5, 50000000);
	ck_assert_uint_eq(case_drain(s).n_samples, 4);
	case_end(r, s);
}

TEST(hart_that_comes_is_probed_opened_and_started)
{
	struct replay *r = case_load("k3-mixed");
	struct sampler_options o = plain;
	o.own_leader = "r22";
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-7\n");
	struct sampler *s = case_sampler(r, &o);
	sampler_start(s);
	ck_assert_uint_eq(s->n_rings, 8);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-8\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(s->n_rings, 9);
	ck_assert_uint_eq(s->n_exec_rings, 9);
	ck_assert_ptr_nonnull(case_stream(s, 8, STREAM_EXEC));
	ck_assert_uint_eq(s->lost[8][LOSS_HOTPLUG], 1);
	ck_assert_int_eq(s->plan[8].rung, RUNG_LEADER);
	replay_run(r, 8, 5, 50000000);
	ck_assert_uint_ge(case_drain(s).n_samples, 4);
	case_end(r, s);
}

TEST(hart_that_comes_and_refuses_leaves_the_others)
{
	struct replay *r = case_load("u74");
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-2\n");
	struct sampler *s = case_sampler(r, &plain);
	sampler_start(s);
	unsigned before = replay_n_events(r);
	for (unsigned nth = 1; s->n_rings == 3; nth++) {
		ck_assert_uint_lt(nth, 50);
		replay_set_text(r, "/sys/devices/system/cpu/online", "0-3\n");
		replay_fail_open(r, nth, ENFILE);
		ck_assert_int_eq(sampler_tick(s), 0);
		if (s->n_rings > 3)
			break;
		ck_assert_uint_eq(replay_n_events(r), before);
		ck_assert_int_eq(s->plan[3].rung, RUNG_NONE);
		ck_assert_uint_gt(strlen(s->plan[3].reason), 0);
		replay_set_text(r, "/sys/devices/system/cpu/online", "0-2\n");
		ck_assert_int_eq(sampler_tick(s), 0);
	}
	ck_assert_int_eq(s->plan[3].rung, RUNG_CLOCK_LEADER);
	case_end(r, s);
}

TEST(hart_that_found_no_descriptor_is_tried_again)
{
	struct replay *r = case_load("u74");
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-2\n");
	struct sampler *s = case_sampler(r, &plain);
	sampler_start(s);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-3\n");
	replay_fail_open(r, 1, EMFILE);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_int_eq(s->short_of, EMFILE);
	ck_assert_uint_eq(s->n_rings, 3);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_int_eq(s->short_of, 0);
	ck_assert_uint_eq(s->n_rings, 4);
	ck_assert_uint_eq(s->lost[3][LOSS_HOTPLUG], 1); /* it came once */
	case_end(r, s);
}

static ssize_t no_descriptor(void *u, const char *path, char *buffer, size_t size)
{
	(void)u;
	(void)path;
	(void)buffer;
	(void)size;
	return -EMFILE;
}

TEST(what_cannot_be_looked_at_for_want_of_descriptors_is_as_it_was)
{
	struct replay *r = case_load("u74");
	struct sampler *s = case_sampler(r, &plain);
	const struct kernel *whole = s->kernel;
	struct kernel poor = *whole;
	poor.read_text = no_descriptor;
	sampler_start(s);
	size_t n_rings = s->n_rings;
	s->kernel = &poor;
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_int_eq(s->short_of, EMFILE);
	ck_assert_uint_eq(s->n_rings, n_rings);
	ck_assert_int_eq(sampler_set_rate(s, 50), 0);
	ck_assert_uint_eq(s->hz, 50);
	s->kernel = whole;
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_int_eq(s->short_of, 0);
	case_end(r, s);
}

TEST(unreadable_harts_are_an_error_not_a_crash)
{
	struct replay *r = case_load("u74");
	struct sampler *s = case_sampler(r, &plain);
	replay_set_text(r, "/sys/devices/system/cpu/online", "rubbish\n");
	ck_assert_int_eq(sampler_tick(s), -EINVAL);
	replay_set_text(r, "/sys/devices/system/cpu/online", NULL);
	ck_assert_int_lt(sampler_tick(s), 0);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-3\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	case_end(r, s);
}

TEST(hart_that_was_away_between_two_looks_is_opened_anew, .times = 2)
{
	struct replay *r = case_load(_i ? "u74" : "x86-vm");
	struct sampler *s = case_sampler(r, &plain);
	uint64_t side = case_stream(s, 1, STREAM_SIDEBAND)->id;
	sampler_start(s);
	replay_run(r, 0, 5, 1000000000);
	ck_assert_int_eq(sampler_tick(s), 0);
	replay_run(r, 0, 5, 300000000);
	replay_set_text(r, "/sys/devices/system/cpu/online", _i ? "0,2-3\n" : "0\n");
	replay_set_text(r, "/sys/devices/system/cpu/online", _i ? "0-3\n" : "0-1\n");
	replay_run(r, 1, 5, 700000000);
	case_drain(s);
	unsigned n_events = replay_n_events(r);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(s->lost[0][LOSS_HOTPLUG], 0);
	ck_assert_uint_eq(s->lost[1][LOSS_HOTPLUG], 2); /* it went, and it came */
	ck_assert_uint_eq(replay_n_events(r), n_events);
	ck_assert_uint_ne(case_stream(s, 1, STREAM_SIDEBAND)->id, side);
	replay_run(r, 1, 5, 1000000000);
	ck_assert_uint_ge(case_drain(s).n_samples, 98);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(s->lost[1][LOSS_HOTPLUG], 2);
	case_end(r, s);
}

TEST(harts_that_stay_are_let_be, .times = 2)
{
	const pid_t pids[] = {100};
	struct replay *r = case_load("x86-vm");
	struct sampler_options o = {.hz = 99, .per_task = _i == 1, .pids = pids, .n_pids = 1};
	struct sampler *s = case_sampler(r, &o);
	unsigned n_opens = replay_n_opens(r);
	replay_run(r, 0, 200, 2000000000); /* not yet started */
	ck_assert_int_eq(sampler_tick(s), 0);
	sampler_start(s);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_int_eq(sampler_tick(s), 0);
	for (int i = 0; i < 3; i++) {
		replay_run(r, 0, 200, 2000000000); /* of our task nothing runs */
		ck_assert_int_eq(sampler_tick(s), 0);
	}
	sampler_stop(s);
	replay_run(r, 0, 200, 2000000000);
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(s->lost[0][LOSS_HOTPLUG] + s->lost[1][LOSS_HOTPLUG], 0);
	ck_assert_uint_eq(replay_n_opens(r), n_opens);
	case_end(r, s);
}

TEST(hart_that_is_gone_again_when_it_is_opened_is_tried_at_the_next_look)
{
	struct replay *r = case_load("x86-vm");
	replay_set_text(r, "/sys/devices/system/cpu/online", "0\n");
	struct sampler *s = case_sampler(r, &plain);
	sampler_start(s);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-1\n");
	/* Wherever on the way it goes: the ladder's last rung, then the side band. */
	unsigned n_gone = 0;
	for (unsigned nth = 1; nth < 12; nth++) {
		replay_fail_open(r, nth, ENODEV);
		ck_assert_int_eq(sampler_tick(s), 0);
		replay_fail_open(r, 0, 0);
		n_gone += s->plan[1].rung == RUNG_NONE;
		ck_assert_int_eq(sampler_tick(s), 0);
		ck_assert_msg(s->plan[1].rung == RUNG_CLOCK, "%u: %s", nth, s->plan[1].reason);
		ck_assert_uint_eq(s->n_rings, 2);
		replay_set_text(r, "/sys/devices/system/cpu/online", "0\n");
		ck_assert_int_eq(sampler_tick(s), 0);
		replay_set_text(r, "/sys/devices/system/cpu/online", "0-1\n");
	}
	ck_assert_uint_ge(n_gone, 2);
	case_end(r, s);
}

/* --- the kernel that runs here ---------------------------------------------------------------- */

static bool may_see_all(const char *test)
{
	struct machine m;
	ck_assert_int_eq(machine_read(&kernel_real, &m), 0);
	if (!m.may_see_all)
		printf("SKIP %s: no right to system-wide events\n", test);
	return m.may_see_all;
}

/* Below every limit to which the kernel lowers kernel.perf_event_max_sample_rate by itself, which
 * is its tick rate. At the lowest, each sample costs the rest of a tick. */
#define REAL_HZ 99

/* Of our own CPU, so that who else wants the machine changes nothing; and hardly ever in the
 * kernel. */
static void busy(uint64_t ns)
{
	struct timespec t;
	uint64_t begin_ns = 0, now_ns;
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		now_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		begin_ns = begin_ns ? begin_ns : now_ns;
	} while (now_ns - begin_ns < ns);
}

TEST(real_kernel_samples_the_system, .seconds = 30, .times = 2)
{
	struct sampler *s = NULL;
	struct event_error e = {""};
	struct sampler_options o = {
		.hz = REAL_HZ, .stacks = _i ? SAMPLER_STACKS_DWARF : SAMPLER_STACKS_FP};
	if (!may_see_all("real_kernel_samples_the_system"))
		return;
	ck_assert_msg(sampler_new(&kernel_real, &o, &s, &e) == 0, "%s", e.text);
	ck_assert_int_eq(sampler_start(s), 0);
	busy(400000000);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(sampler_stop(s), 0);
	struct case_tally t = case_drain(s);
	ck_assert_uint_ge(t.n_samples, 16); /* of 40 on this hart alone, on a noisy machine */
	ck_assert_uint_ge(t.n_side, 2);     /* FORK, EXIT of the child */
	ck_assert_int_eq(sampler_tick(s), 0);
	sampler_free(s);
}

TEST(real_kernel_samples_a_task_and_what_it_starts, .seconds = 30, .times = 2)
{
	const pid_t pids[] = {getpid()};
	struct sampler *s = NULL;
	struct event_error e = {""};
	struct event_list events = case_events(NULL, "{cpu-clock,page-faults}");
	struct sampler_options o = {.hz = REAL_HZ,
		.user_only = true,
		.per_task = true,
		.pids = pids,
		.n_pids = 1,
		.events = _i ? &events : NULL};
	int outcome = sampler_new(&kernel_real, &o, &s, &e);
	if (outcome == SAMPLER_REFUSED) {
		printf("SKIP real_kernel_samples_a_task_and_what_it_starts: %s\n", e.text);
		return;
	}
	ck_assert_msg(outcome == 0, "%d: %s", outcome, e.text);
	sampler_start(s);
	pid_t child = fork();
	if (child == 0) {
		busy(400000000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	struct case_tally t = case_drain(s);
	ck_assert_uint_ge(t.n_samples, 12);
	if (_i && !s->limits.no_inherited_reads)
		ck_assert_uint_ge(t.n_reads, 2 * t.n_samples);
	sampler_free(s);
}

TEST(real_group_brings_values_with_each_switch, .seconds = 30)
{
	struct sampler *s = NULL;
	struct event_error e = {""};
	struct event_list events = case_events(NULL, "{cpu-clock,page-faults}");
	struct sampler_options o = {.hz = REAL_HZ, .events = &events};
	if (!may_see_all("real_group_brings_values_with_each_switch"))
		return;
	ck_assert_msg(sampler_new(&kernel_real, &o, &s, &e) == 0, "%s", e.text);
	sampler_start(s);
	for (int i = 0; i < 20; i++) {
		busy(10000000);
		usleep(1000);
	}
	sampler_stop(s);
	struct case_tally t = case_drain(s);
	ck_assert_uint_ge(t.n_switches, 20);
	ck_assert_uint_ge(t.n_samples, 5);
	ck_assert_uint_eq(t.n_reads, 3 * (t.n_samples + t.n_switches));
	ck_assert_uint_gt(t.last_value[0], 0);
	sampler_free(s);
}

TEST(no_two_harts_have_the_same_period)
{
	uint64_t last = 0;
	for (int hart = 0; hart < 16; hart++) {
		const uint64_t period = attr_hart_period(1001001, hart);
		ck_assert_uint_gt(period, last + (hart ? 600 : 0));
		ck_assert_uint_le(period, 1001001 * 1.012);
		/* the one of the same number in the next sixteen is between it and its neighbour */
		ck_assert_uint_gt(attr_hart_period(1001001, hart + 16), period);
		ck_assert_uint_lt(attr_hart_period(1001001, hart + 16), period + 600);
		last = period;
	}
}
