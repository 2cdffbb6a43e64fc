/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Single tasks that are sampled faster, and the rings of a session that samples for everybody */

#include <errno.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static const struct sampler_options always = {
	.hz = 99, .stacks = SAMPLER_STACKS_FP, .always = true};

EACH_TEST(.seconds = 60);

static unsigned n_rings(const struct sampler *s, unsigned raise, bool sideband)
{
	unsigned n = 0;
	for (size_t i = 0; i < s->n_rings; i++)
		n += s->ring[i].raise == raise && s->ring[i].sideband == sideband;
	return n;
}

TEST(what_samples_always_has_its_side_band_in_rings_of_its_own)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	ck_assert_uint_eq(n_rings(s, 0, false), 2);
	ck_assert_uint_eq(n_rings(s, 0, true), 2);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RING), 2);
	const struct perf_event_attr *a = replay_attr(r, case_stream(s, 0, STREAM_RING)->fd);
	ck_assert(!a->mmap && !a->comm && !a->task && a->watermark);
	case_end(r, s);
}

TEST(a_raised_task_writes_into_rings_of_its_raise)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(sampler_raise_task(s, 3, 999, 100), 0);
	ck_assert_uint_eq(n_rings(s, 3, false), 2);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 2);
	const struct stream *t = case_stream(s, 1, STREAM_RAISED);
	const struct perf_event_attr *a = replay_attr(r, t->fd);
	ck_assert(a->inherit && !a->disabled && !a->freq);
	ck_assert_uint_eq(a->sample_period, 1000000000 / 999);
	ck_assert_uint_eq(t->weight_ns, 1000000000 / 999);
	ck_assert_uint_eq(t->raise, 3);
	/* the session's own rate is as it was */
	ck_assert_uint_eq(
		replay_attr(r, case_stream(s, 1, STREAM_SAMPLER)->fd)->sample_period, 10108080);

	ck_assert_int_eq(sampler_raise_task(s, 3, 999, 101), 0);
	ck_assert_uint_eq(n_rings(s, 3, false), 2);
	sampler_lower_task(s, 3, 100);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 2);
	ck_assert_uint_eq(n_rings(s, 3, false), 2);
	sampler_lower_task(s, 3, 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RING), 2);
	ck_assert_uint_eq(n_rings(s, 3, false), 0);
	case_end(r, s);
}

TEST(a_raise_with_copied_stacks_has_room_for_many)
{
	struct replay *r = case_load("x86-vm");
	const struct sampler_options copies = {
		.hz = 99, .stacks = SAMPLER_STACKS_DWARF, .stack_bytes = 32768, .always = true};
	struct sampler *s = case_sampler(r, &copies);
	ck_assert_int_eq(sampler_raise_task(s, 3, 999, 100), 0);
	for (size_t i = 0; i < s->n_rings; i++)
		if (s->ring[i].raise == 3)
			ck_assert_uint_ge(s->ring[i].data_bytes / (32768 + 600), 30);
	case_end(r, s);
}

TEST(a_task_that_has_ended_leaves_nothing_open)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	replay_fail_open(r, 2, ESRCH); /* after the ring's event */
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 100), SAMPLER_GONE);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 0);
	case_end(r, s);
}

TEST(without_descriptors_nothing_of_the_task_stays_open)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	replay_fail_open(r, 4, EMFILE);
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 100), -EMFILE);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 0);
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 100), 0);
	case_end(r, s);
}

TEST(a_task_that_one_hart_refuses_is_raised_on_none)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	replay_fail_open(r, 4, EINVAL);
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 100), SAMPLER_REFUSED);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 0);
	replay_fail_open(r, 2, ENODEV); /* their rings are there */
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 100), 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RAISED), 1);
	case_end(r, s);
}

TEST(a_ring_that_cannot_be_mapped_refuses_the_raise)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	replay_fail_map(r, 1, EINVAL);
	ck_assert_int_ne(sampler_raise_task(s, 1, 999, 100), -ENOMEM);
	sampler_lower_task(s, 1, 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_RING), 2);
	case_end(r, s);
}

TEST(a_hart_that_is_reopened_gets_its_rings_again)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 100), 0);
	ck_assert_int_eq(sampler_reopen(s, 1), 0);
	ck_assert_uint_eq(n_rings(s, 0, false), 2);
	ck_assert_uint_eq(n_rings(s, 0, true), 2);
	ck_assert_uint_eq(n_rings(s, 1, false), 1); /* until the next task */
	ck_assert_int_eq(sampler_raise_task(s, 1, 999, 101), 0);
	ck_assert_uint_eq(n_rings(s, 1, false), 2);
	case_end(r, s);
}

TEST(a_task_that_is_watched_where_it_waits_has_rings_before_those_of_raises)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(sampler_raise_task(s, 3, 999, 100), 0);
	ck_assert_int_eq(sampler_watch_waits(s, 100), 0);
	ck_assert_int_eq(sampler_watch_waits(s, 100), 0); /* once */
	ck_assert_uint_eq(case_n_streams(s, STREAM_WAITS), 2);
	ck_assert_uint_eq(n_rings(s, RAISE_OF_WAITS, false), 2);
	ck_assert_uint_eq(s->ring[s->n_rings - 1].raise, 3);
	const struct perf_event_attr *a = replay_attr(r, case_stream(s, 1, STREAM_WAITS)->fd);
	ck_assert(a->inherit && a->context_switch && !a->disabled && !a->freq);
	ck_assert(!a->exclude_callchain_kernel && a->sample_type & PERF_SAMPLE_CALLCHAIN);
	ck_assert_uint_eq(a->sample_period, 1);
	sampler_unwatch_waits(s);
	ck_assert_uint_eq(case_n_streams(s, STREAM_WAITS), 0);
	ck_assert_uint_eq(n_rings(s, RAISE_OF_WAITS, false), 0);
	ck_assert_uint_eq(n_rings(s, 3, false), 2);
	case_end(r, s);
}

TEST(a_task_that_cannot_be_watched_on_all_harts_is_not_watched)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &always);
	ck_assert_int_eq(sampler_start(s), 0);
	replay_fail_open(r, 4, EMFILE); /* a ring and an event for each hart */
	ck_assert_int_eq(sampler_watch_waits(s, 100), SAMPLER_FULL);
	ck_assert_uint_eq(case_n_streams(s, STREAM_WAITS), 0);
	ck_assert_int_eq(sampler_watch_waits(s, 4711), SAMPLER_GONE);
	case_end(r, s);
}
