/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/naming/frame_index.c: frames by file and offset */

#include <stdlib.h>

#include "daemon/naming/file.h"
#include "tests/unit/test.h"

#define N_FRAMES 20000u

static struct file file[2];
static struct frame *frame[N_FRAMES];
static struct frame_index frames;

static void begin(void)
{
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		frame[i] = calloc(1, sizeof(*frame[i]));
		ck_assert_ptr_nonnull(frame[i]);
		frame[i]->file = &file[i % 2]; /* each offset in both */
		frame[i]->offset = (uint64_t)(i / 2) << 12;
	}
}

static void end(void)
{
	frame_index_clear(&frames);
	for (uint32_t i = 0; i < N_FRAMES; i++)
		free(frame[i]);
}

EACH_TEST(.begin = begin, .end = end);

static void check_all(uint32_t first, uint32_t step)
{
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		struct frame *wanted = i >= first && (i - first) % step == 0 ? frame[i] : NULL;
		const struct file *of = &file[i % 2];
		ck_assert_ptr_eq(frame_index_find(&frames, of, (uint64_t)(i / 2) << 12, 0), wanted);
	}
}

static void add_first(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ck_assert_int_eq(frame_index_add(&frames, frame[i]), 0);
}

TEST(an_empty_index_has_no_frame)
{
	check_all(N_FRAMES, 1);
	frame_index_set(&frames, NULL, 0);
	check_all(N_FRAMES, 1);
}

TEST(each_frame_is_found_by_its_file_and_offset)
{
	add_first(N_FRAMES);
	ck_assert_uint_eq(frames.n, N_FRAMES);
	check_all(0, 1);
	ck_assert_ptr_null(frame_index_find(&frames, &file[0], 1, 0));
	ck_assert_ptr_null(frame_index_find(&frames, NULL, 0, 0));
}

TEST(frames_are_found_while_others_move_to_a_larger_array_a_few_at_a_time)
{
	uint32_t n_growing = 0;

	for (uint32_t i = 0; i < N_FRAMES; i++) {
		const bool was_growing = frames.old;
		const size_t n_moved = frames.n_moved;
		ck_assert_int_eq(frame_index_add(&frames, frame[i]), 0);
		if (!frames.old)
			continue;
		n_growing++;
		ck_assert_uint_le(frames.n_moved, (was_growing ? n_moved : 0) + 4);
		for (uint32_t seen = i % 7; seen <= i; seen += 997)
			ck_assert_ptr_eq(frame_index_find(&frames, &file[seen % 2],
						 (uint64_t)(seen / 2) << 12, 0),
				frame[seen]);
	}
	ck_assert_uint_gt(n_growing, N_FRAMES / 5);
	check_all(0, 1);
}

TEST(a_sweep_ends_growing)
{
	for (uint32_t i = 0; i < N_FRAMES && !frames.old; i++)
		ck_assert_int_eq(frame_index_add(&frames, frame[i]), 0);
	ck_assert_ptr_nonnull(frames.old);
	frame_index_set(&frames, frame, (size_t)frames.n);
	ck_assert_ptr_null(frames.old);
	for (uint32_t i = (uint32_t)frames.n; i < N_FRAMES; i++)
		ck_assert_int_eq(frame_index_add(&frames, frame[i]), 0);
	check_all(0, 1);
}

TEST(what_a_sweep_left_is_found_and_nothing_else)
{
	struct frame *left[N_FRAMES] = {NULL};

	add_first(N_FRAMES);
	for (uint32_t i = 1; i < N_FRAMES; i += 3)
		left[i] = frame[i];
	frame_index_set(&frames, left, N_FRAMES);
	check_all(1, 3);
	ck_assert_int_eq(frame_index_add(&frames, frame[0]), 0);
	ck_assert_ptr_eq(frame_index_find(&frames, &file[0], 0, 0), frame[0]);
}

TEST(slots_are_given_back_when_few_frames_are_left)
{
	add_first(N_FRAMES);
	size_t most = frames.n_slots;
	ck_assert_uint_lt(frames.n, most / 4 * 3 + 1);
	frame_index_set(&frames, frame + N_FRAMES - 10, 10);
	ck_assert_uint_lt(frames.n_slots, most / 8);
	check_all(N_FRAMES - 10, 1);
	add_first(N_FRAMES - 10);
	ck_assert_uint_eq(frames.n_slots, most);
}
