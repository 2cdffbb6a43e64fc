/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/recording_part.c */

#include "daemon/session/recording_part.h"

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct bench *b;
static uint64_t lost[2][N_LOSSES]; /* of both harts, as a recording sees it */
static struct recording_part *p;

/* Samples of idle come on the hart: n of them. */
static void fire(int hart, int n)
{
	struct record r = bench_sample(b, BENCH_ALONE + (hart ? BENCH_HART : 0), SECOND, 0, 0);

	r.sample.kernel = true;
	for (int i = 0; i < n; i++)
		bench_take(b, &r, hart);
}

static void begin(void)
{
	b = bench_new();
	bench_start(b);
	memset(lost, 0, sizeof(lost));
	fire(0, 50);
	lost[0][LOSS_RING] = 1000; /* before it began */
	ck_assert_int_eq(recording_part_new(b->attribute, 2, lost, &p), 0);
}

static void end(void)
{
	p = recording_part_free(p);
	bench_free(b);
}

EACH_TEST(.begin = begin, .end = end);

TEST(of_lost_samples_it_has_the_part_that_it_has_of_those_that_came)
{
	fire(0, 40);
	recording_part_take(p, 0, 10);
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1400), 1100);
	/* by hart and cause */
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING_SAMPLES, 4), 1);
	fire(1, 8);
	ck_assert_uint_eq(recording_part_lost(p, 1, LOSS_RING, 300), 0);
}

TEST(what_was_lost_before_it_began_stays)
{
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1000), 1000);
}

TEST(what_was_told_is_not_taken_back)
{
	fire(0, 10);
	recording_part_take(p, 0, 10);
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1100), 1100);
	fire(0, 1000);
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1100), 1100);
}

TEST(where_no_sample_came_all_that_were_lost_may_be_its_own)
{
	ck_assert_uint_eq(recording_part_lost(p, 1, LOSS_RING, 3), 3);
}

TEST(what_is_no_sample_is_whole)
{
	fire(0, 40);
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_THROTTLE, 5), 5);
}

TEST(without_a_part_all_is_its_own)
{
	recording_part_take(NULL, 0, 3);
	ck_assert_uint_eq(recording_part_lost(NULL, 0, LOSS_RING, 77), 77);
}
