/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What finds a ring full is counted once, whether a LOST record tells of it or none comes any more.
 * Two sessions of one machine are compared: one whose rings are drained all the while, one whose
 * rings are not.
 */

#include <errno.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

/* Copied stacks, so that the ring is full soon. */
static const struct sampler_options greedy = {
	.hz = 999, .stacks = SAMPLER_STACKS_DWARF, .stack_bytes = 32768};

#define SLICE_NS 250000000u
#define N_SLICES 40 /* at 33 KB a sample some 300 MB, twenty times the ring */

static struct sampler *started(struct replay *r)
{
	struct sampler *s = case_sampler(r, &greedy);
	ck_assert_int_eq(sampler_start(s), 0);
	return s;
}

/* Samples and switches that were there; LOST records are counted as the pipeline does. */
static unsigned drained(struct sampler *s)
{
	struct case_tally t = case_drain(s);
	s->lost[1][LOSS_RING] += sampler_hear_lost(&s->lost_ahead[1], t.lost);
	return t.n_samples + t.n_switches;
}

/* Run hart 1, draining after each nth slice; stop, and drain the rest. */
static unsigned run(struct replay *r, struct sampler *s, int nth)
{
	unsigned n = 0;
	for (int i = 1; i <= N_SLICES; i++) {
		replay_run(r, 1, 5, SLICE_NS);
		if (i % nth == 0)
			n += drained(s);
	}
	ck_assert_int_eq(sampler_stop(s), 0);
	return n + drained(s);
}

static const char *const machines[] = {"x86-vm", "u74", "c910"};

/* All that fire, as a session tells that loses nothing. */
static unsigned all_that_fire(const char *machine)
{
	struct replay *r = case_load(machine);
	struct sampler *s = started(r);
	unsigned n = run(r, s, 1);
	ck_assert_uint_gt(n, 5000);
	sampler_count_losses(s);
	ck_assert_uint_eq(s->lost[1][LOSS_RING], 0);
	case_end(r, s);
	return n;
}

EACH_TEST(.seconds = 60);

TEST(what_no_record_tells_of_is_counted_at_the_end,
	.times = 3 * (int)(sizeof(machines) / sizeof(machines[0])))
{
	/* One drain at the very end; one before, so that a LOST record comes, and some after it;
	 * and one after the last slice, so that all but a few are told. */
	static const int nth[] = {N_SLICES, 15, 39};
	const char *machine = machines[_i / 3];
	unsigned all = all_that_fire(machine);
	struct replay *r = case_load(machine);
	struct sampler *s = started(r);
	unsigned n = run(r, s, nth[_i % 3]);
	ck_assert_uint_lt(n + s->lost[1][LOSS_RING], all + (_i % 3 == 2));
	sampler_count_losses(s);
	ck_assert_uint_eq(n + s->lost[1][LOSS_RING], all);
	sampler_count_losses(s);
	ck_assert_uint_eq(n + s->lost[1][LOSS_RING], all);
	ck_assert_uint_eq(s->lost[0][LOSS_RING], 0);
	case_end(r, s);
}

/* A full ring that nobody drains brings no LOST record, but a look each second counts the loss.
 * When it is drained at last, its LOST records report the same loss once more. */
TEST(what_is_lost_is_counted_while_we_look_and_once,
	.times = sizeof(machines) / sizeof(machines[0]))
{
	const char *machine = machines[_i];
	unsigned all = all_that_fire(machine), n = 0;
	struct replay *r = case_load(machine);
	struct sampler *s = started(r);
	uint64_t before = 0, n_grew = 0;
	for (int i = 1; i <= N_SLICES; i++) {
		replay_run(r, 1, 5, SLICE_NS);
		if (i == 30)
			n += drained(s);
		if (i % 4)
			continue;
		ck_assert_int_eq(sampler_tick(s), 0);
		n_grew += s->lost[1][LOSS_RING] > before;
		before = s->lost[1][LOSS_RING];
	}
	ck_assert_uint_ge(n_grew, 5); /* each second but the first, and some after the drain */
	ck_assert_int_eq(sampler_stop(s), 0);
	n += drained(s);
	sampler_count_losses(s);
	ck_assert_uint_eq(n + s->lost[1][LOSS_RING], all);
	ck_assert_uint_eq(s->lost[0][LOSS_RING], 0);
	case_end(r, s);
}

TEST(losses_of_a_hart_that_goes_are_counted_before)
{
	struct replay *r = case_load("u74");
	struct sampler *s = started(r);
	unsigned all = all_that_fire("u74"), n = 0;
	for (int i = 0; i < N_SLICES; i++)
		replay_run(r, 1, 5, SLICE_NS);
	n += drained(s);
	ck_assert_uint_lt(n + s->lost[1][LOSS_RING], all);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0,2-3\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(n + s->lost[1][LOSS_RING], all);
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-3\n");
	ck_assert_int_eq(sampler_tick(s), 0);

	/* Its new events begin at 0. */
	n += run(r, s, 15);
	sampler_count_losses(s);
	ck_assert_uint_eq(n + s->lost[1][LOSS_RING], 2 * all);
	case_end(r, s);
}

static struct replay *made(const char *rules)
{
	char json[1024];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/possible\":\"0-1\\n\","
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\"},\"rules\":[%s"
		"{\"type\":\"software\",\"per_us\":1000,\"fires\":true}]}",
		rules);
	ck_assert_msg(replay_parse(json, &r, &error) == 0, "%s", error.text);
	return r;
}

TEST(an_old_kernel_that_does_not_say_samples_all_the_same)
{
	struct replay *r = made("{\"read_lost\":true,\"errno\":\"EINVAL\"},");
	struct sampler *s = started(r);
	ck_assert(!(case_stream(s, 1, STREAM_SAMPLER)->read_format & PERF_FORMAT_LOST));
	ck_assert(!(case_stream(s, 1, STREAM_SIDEBAND)->read_format & PERF_FORMAT_LOST));
	ck_assert(s->cgroups); /* nothing else is given up for it */
	ck_assert(replay_attr(r, case_stream(s, 1, STREAM_SIDEBAND)->fd)->ksymbol);
	run(r, s, 15);
	uint64_t told = s->lost[1][LOSS_RING];
	ck_assert_uint_gt(told, 0);
	sampler_count_losses(s);
	ck_assert_uint_eq(s->lost[1][LOSS_RING], told);
	case_end(r, s);
}

static ssize_t no_read(void *u, int fd, void *buffer, size_t n)
{
	(void)u, (void)fd, (void)buffer, (void)n;
	return -ECHILD;
}

static ssize_t short_read(void *u, int fd, void *buffer, size_t n)
{
	(void)u, (void)fd;
	memset(buffer, 0xff, n < 8 ? n : 8);
	return 8;
}

TEST(events_that_cannot_be_read_tell_nothing,
	.times = 2 * (int)(sizeof(machines) / sizeof(machines[0])))
{
	struct replay *r = case_load(machines[_i / 2]);
	struct sampler *s = started(r);
	struct kernel mute = *replay_kernel(r);
	mute.event_read = _i % 2 ? no_read : short_read;
	run(r, s, 15);
	uint64_t told = s->lost[1][LOSS_RING];
	s->kernel = &mute;
	sampler_count_losses(s);
	ck_assert_uint_eq(s->lost[1][LOSS_RING], told);
	s->kernel = replay_kernel(r);
	case_end(r, s);
}
