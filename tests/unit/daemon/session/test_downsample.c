/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A lower rate than the walk's: which samples are kept, and that nothing is missing from sums. */

#include "daemon/session/downsample.h"

#include "tests/unit/test.h"

#define HARTS 2

static struct downsample *downsample;
static struct task one = {.id = 1}, two = {.id = 2};
static uint64_t n_kept, weight_ns, value, kept_of[3];

static void begin_at(uint32_t hz)
{
	ck_assert_int_eq(downsample_new(hz, HARTS, &downsample), 0);
	n_kept = weight_ns = value = 0;
	memset(kept_of, 0, sizeof(kept_of));
}

static void end(void)
{
	downsample = downsample_free(downsample);
}

static void count(const struct attribution *a)
{
	n_kept += a->count;
	kept_of[a->task ? a->task->id : 0] += a->weight_ns;
	weight_ns += a->weight_ns;
	for (uint32_t i = 0; i < a->n_reads; i++)
		value += a->read[i].value;
}

/* A sample of that weight, with as much counted of one event. As downsample_take. */
static int take(struct task *task, int hart, uint32_t walk_hz, uint64_t weight)
{
	struct attribution a = {.task = task,
		.hart = hart,
		.count = 1,
		.weight_ns = weight,
		.n_reads = 1,
		.read = {{.event = 1, .value = weight, .enabled_ns = 1, .running_ns = 1}}};
	int r = downsample_take(downsample, walk_hz, &a);
	if (r == 0)
		count(&a);
	return r;
}

static void take_rest(void)
{
	struct attribution rest;
	while (downsample_remaining(downsample, &rest)) {
		ck_assert_uint_eq(rest.count, 0);
		ck_assert_uint_eq(rest.weight_ns, 0);
		ck_assert_uint_eq(rest.n_frames, 0);
		count(&rest);
	}
}

TEST(every_nth_sample_stands_for_n)
{
	begin_at(100);
	for (int i = 0; i < 1000; i++)
		take(&one, 0, 1000, 7);
	ck_assert_uint_eq(n_kept, 100);
	ck_assert_uint_eq(weight_ns, 7000);
	ck_assert_uint_eq(downsample_passed(downsample), 900);
	take_rest();
	ck_assert_uint_eq(value, 7000);
	end();
}

TEST(ratio_need_not_be_whole)
{
	begin_at(99);
	for (int i = 0; i < 9970; i++)
		take(&one, 0, 997, 1);
	ck_assert_uint_eq(n_kept, 990);
	ck_assert_uint_eq(n_kept + downsample_passed(downsample), 9970);
	ck_assert_uint_eq(weight_ns, 9970);
	end();
}

TEST(each_hart_is_thinned_for_itself)
{
	begin_at(100);
	for (int i = 0; i < 500; i++) {
		take(&one, 0, 1000, 1);
		take(&two, 1, 1000, 3);
	}
	ck_assert_uint_eq(kept_of[1], 500);
	ck_assert_uint_eq(kept_of[2], 1500);
	end();
}

/* Three quarters of the time one's, at random: so are the weights, within four deviations. */
TEST(shares_of_who_ran_stay_what_they_were)
{
	begin_at(99);
	unsigned state = 1;
	for (int i = 0; i < 400000; i++)
		take(rand_r(&state) % 4 ? &one : &two, 0, 999, 1000);
	double share = (double)kept_of[1] / (double)weight_ns;
	ck_assert_double_eq_tol(share, 0.75, 4 * 0.433 / 199);
	ck_assert_uint_ge(weight_ns, 400000 * 1000 - 11 * 1000);
	end();
}

TEST(counts_go_to_the_task_that_counted_them)
{
	begin_at(1);
	for (int i = 0; i < 9; i++)
		ck_assert_int_eq(take(i % 3 ? &one : &two, 0, 10, 100), DOWNSAMPLE_PASSED);
	struct attribution a = {.task = &one,
		.hart = 0,
		.count = 1,
		.weight_ns = 100,
		.n_reads = 1,
		.read = {{.event = 1, .value = 100, .enabled_ns = 1, .running_ns = 1}}};
	ck_assert_int_eq(downsample_take(downsample, 10, &a), 0);
	ck_assert_uint_eq(a.weight_ns, 1000); /* all that passed on the hart */
	ck_assert_uint_eq(a.read[0].value, 700);
	ck_assert_uint_eq(a.read[0].enabled_ns, 7);
	struct attribution rest;
	ck_assert(downsample_remaining(downsample, &rest));
	ck_assert_ptr_eq(rest.task, &two);
	ck_assert_uint_eq(rest.read[0].value, 300);
	ck_assert(!downsample_remaining(downsample, &rest));
	end();
}

TEST(task_that_ends_takes_its_counts_along)
{
	begin_at(1);
	take(&one, 0, 10, 100);
	/* what a switch or an exit delivers is no sample, and is never passed over */
	struct attribution last = {
		.task = &one, .hart = 1, .n_reads = 1, .read = {{.event = 2, .value = 5}}};
	ck_assert_int_eq(downsample_take(downsample, 10, &last), 0);
	ck_assert_uint_eq(last.n_reads, 2);
	ck_assert_uint_eq(last.read[1].value, 100);
	ck_assert_uint_eq(last.weight_ns, 0);
	end();
}

TEST(nothing_is_thinned_at_the_own_rate_or_below)
{
	begin_at(99);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(take(&one, 0, 99, 1), 0);
		ck_assert_int_eq(take(&one, 0, 50, 1), 0);
		ck_assert_int_eq(take(&one, 0, 0, 1), 0);
	}
	ck_assert_uint_eq(downsample_passed(downsample), 0);
	end();
}

TEST(what_waits_when_the_rate_falls_is_taken_with_the_next)
{
	begin_at(100);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(take(&one, 0, 1000, 10), DOWNSAMPLE_PASSED);
	ck_assert_int_eq(take(&one, 0, 100, 100), 0);
	ck_assert_uint_eq(weight_ns, 150);
	ck_assert_uint_eq(value, 150);
	end();
}

TEST(odd_harts_tasks_and_groups_do_no_harm)
{
	begin_at(1);
	ck_assert_int_eq(take(&one, -1, 10, 1), 0);
	ck_assert_int_eq(take(&one, HARTS, 10, 1), 0);
	ck_assert_int_eq(take(NULL, 0, 10, 1), DOWNSAMPLE_PASSED);
	for (int event = 0; event < 3 * EVENT_GROUP_MAX; event++) {
		struct attribution a = {.task = NULL,
			.hart = 0,
			.count = 1,
			.n_reads = 1,
			.read = {{.event = event, .value = 1}}};
		(void)downsample_take(downsample, UINT32_MAX, &a);
	}
	struct attribution rest;
	ck_assert(downsample_remaining(downsample, &rest));
	ck_assert_uint_eq(rest.n_reads, EVENT_GROUP_MAX);
	end(); /* with something in hand too */
	begin_at(1);
	take(&one, 0, 10, 1);
	end();
	struct attribution a = {.count = 1};
	ck_assert_int_eq(downsample_take(NULL, 1000, &a), 0);
	ck_assert(!downsample_remaining(NULL, &a));
	ck_assert_uint_eq(downsample_passed(NULL), 0);
}
