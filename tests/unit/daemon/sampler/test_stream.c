/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The table of streams, and the names of rungs and losses.
 */
#include <errno.h>

#include "daemon/sampler/stream.h"
#include "tests/unit/test.h"

static int add(struct stream_table *t, uint64_t id, int hart)
{
	return stream_table_add(t, &(struct stream){.id = id, .hart = hart, .fd = -1});
}

TEST(streams_are_found_by_id_however_they_came)
{
	struct stream_table t = {0};
	/* 37 is prime to 101: each id once, in no order. */
	for (uint64_t i = 0; i < 101; i++)
		ck_assert_int_eq(add(&t, i * 37 % 101 * 10, (int)i), 0);
	ck_assert_uint_eq(t.n_streams, 101);
	for (uint64_t i = 0; i < 101; i++) {
		const struct stream *s = stream_table_find(&t, i * 37 % 101 * 10);
		ck_assert_ptr_nonnull(s);
		ck_assert_int_eq(s->hart, (int)i);
	}
	for (size_t i = 1; i < t.n_streams; i++)
		ck_assert_uint_lt(t.stream[i - 1].id, t.stream[i].id);
	stream_table_clear(&t);
}

TEST(unknown_ids_are_not_found)
{
	struct stream_table t = {0};
	ck_assert_ptr_null(stream_table_find(&t, 0));
	ck_assert_int_eq(add(&t, 10, 0), 0);
	ck_assert_int_eq(add(&t, 20, 0), 0);
	ck_assert_ptr_null(stream_table_find(&t, 0));
	ck_assert_ptr_null(stream_table_find(&t, 15));
	ck_assert_ptr_null(stream_table_find(&t, UINT64_MAX));
	stream_table_clear(&t);
	ck_assert_ptr_null(stream_table_find(&t, 10));
	stream_table_clear(&t);
}

TEST(an_id_is_taken_once)
{
	struct stream_table t = {0};
	ck_assert_int_eq(add(&t, UINT64_MAX, 1), 0);
	ck_assert_int_eq(add(&t, UINT64_MAX, 2), -EEXIST);
	ck_assert_uint_eq(t.n_streams, 1);
	ck_assert_int_eq(stream_table_find(&t, UINT64_MAX)->hart, 1);
	stream_table_clear(&t);
}

TEST(removal_leaves_the_others)
{
	struct stream_table t = {0};
	for (uint64_t id = 1; id <= 5; id++)
		ck_assert_int_eq(add(&t, id, (int)id), 0);
	stream_table_remove(&t, 3);
	stream_table_remove(&t, 3);
	stream_table_remove(&t, 99);
	stream_table_remove(&t, 0);
	ck_assert_uint_eq(t.n_streams, 4);
	ck_assert_ptr_null(stream_table_find(&t, 3));
	stream_table_remove(&t, 1);
	stream_table_remove(&t, 5);
	ck_assert_int_eq(stream_table_find(&t, 2)->hart, 2);
	ck_assert_int_eq(stream_table_find(&t, 4)->hart, 4);
	ck_assert_int_eq(add(&t, 3, 33), 0);
	ck_assert_int_eq(stream_table_find(&t, 3)->hart, 33);
	stream_table_clear(&t);
}

TEST(growth_keeps_what_was_there)
{
	struct stream_table t = {0};
	for (uint64_t id = 0; t.n_streams < 16; id++)
		ck_assert_int_eq(add(&t, id * 2, (int)id), 0);
	size_t size = t.size;
	ck_assert_uint_eq(t.n_streams, size);
	ck_assert_int_eq(stream_table_add(&t, &t.stream[15]), -EEXIST);
	ck_assert_int_eq(add(&t, 7, 77), 0);
	ck_assert_uint_gt(t.size, size);
	ck_assert_int_eq(stream_table_find(&t, 7)->hart, 77);
	for (uint64_t id = 0; id < 16; id++)
		ck_assert_int_eq(stream_table_find(&t, id * 2)->hart, (int)id);
	stream_table_clear(&t);
}

TEST(a_closed_stream_is_found_until_it_is_forgotten)
{
	struct stream_table t = {0};
	for (uint64_t id = 1; id <= 3; id++)
		ck_assert_int_eq(add(&t, id, (int)id), 0);
	ck_assert_int_eq(stream_table_keep(&t, stream_table_find(&t, 2)), 0);
	stream_table_remove(&t, 2);
	ck_assert_uint_eq(t.n_streams, 2);
	ck_assert_int_eq(stream_table_find(&t, 2)->hart, 2);
	ck_assert(stream_table_find(&t, 2)->closed);
	ck_assert(!stream_table_find(&t, 3)->closed);
	stream_table_forget(&t);
	ck_assert_ptr_null(stream_table_find(&t, 2));
	ck_assert_int_eq(stream_table_find(&t, 3)->hart, 3);
	stream_table_forget(&t);
	stream_table_clear(&t);
}

TEST(every_rung_has_its_words)
{
	ck_assert_str_eq(rung_letter(RUNG_CYCLES), "a");
	ck_assert_str_eq(rung_letter(RUNG_CLOCK), "d");
	ck_assert_str_eq(rung_says(RUNG_CLOCK), "cpu-clock alone");
	for (int r = RUNG_NONE; r <= RUNG_ASKED; r++)
		for (int other = RUNG_NONE; other < r; other++)
			ck_assert_str_ne(rung_letter((enum rung)r), rung_letter((enum rung)other));
}

TEST(a_rung_that_is_none_reads_as_none)
{
	ck_assert_str_eq(rung_letter((enum rung)99), rung_letter(RUNG_NONE));
	ck_assert_str_eq(rung_says((enum rung) - 1), rung_says(RUNG_NONE));
}

TEST(every_loss_has_a_name_of_its_own)
{
	for (int i = 0; i < N_LOSSES; i++) {
		ck_assert_ptr_nonnull(loss_kinds[i].name);
		for (int other = 0; other < i; other++)
			ck_assert_str_ne(loss_kinds[i].name, loss_kinds[other].name);
	}
	ck_assert(loss_kinds[LOSS_RING].samples);
	ck_assert(!loss_kinds[LOSS_THROTTLE].samples);
}
