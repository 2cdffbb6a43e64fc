/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/recording_part.c */

#include "daemon/session/recording_part.h"

#include "daemon/attribute/attribute_private.h"
#include "tests/unit/test.h"

#define HARTS 2

static uint64_t n_fired[HARTS], lost[HARTS][N_LOSSES];
static struct attribute attribute = {.n_fired = n_fired};
static struct recording_part *p;

static void begin(void)
{
	memset(n_fired, 0, sizeof(n_fired));
	memset(lost, 0, sizeof(lost));
	n_fired[0] = 50;
	lost[0][LOSS_RING] = 1000; /* before it began */
	ck_assert_int_eq(recording_part_new(&attribute, HARTS, lost, &p), 0);
}

static void end(void)
{
	p = recording_part_free(p);
}

EACH_TEST(.begin = begin, .end = end);

TEST(of_lost_samples_it_has_the_part_that_it_has_of_those_that_came)
{
	n_fired[0] += 40;
	recording_part_take(p, 0, 10);
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1400), 1100);
	/* by hart and cause */
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING_SAMPLES, 4), 1);
	n_fired[1] += 8;
	ck_assert_uint_eq(recording_part_lost(p, 1, LOSS_RING, 300), 0);
}

TEST(what_was_lost_before_it_began_stays)
{
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1000), 1000);
}

TEST(what_was_told_is_not_taken_back)
{
	n_fired[0] += 10;
	recording_part_take(p, 0, 10);
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1100), 1100);
	n_fired[0] += 1000;
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_RING, 1100), 1100);
}

TEST(where_no_sample_came_all_that_were_lost_may_be_its_own)
{
	ck_assert_uint_eq(recording_part_lost(p, 1, LOSS_RING, 3), 3);
}

TEST(what_is_no_sample_is_whole)
{
	n_fired[0] += 40;
	ck_assert_uint_eq(recording_part_lost(p, 0, LOSS_THROTTLE, 5), 5);
}

TEST(without_a_part_all_is_its_own)
{
	recording_part_take(NULL, 0, 3);
	ck_assert_uint_eq(recording_part_lost(NULL, 0, LOSS_RING, 77), 77);
}
