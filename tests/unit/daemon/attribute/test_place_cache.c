/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/place_cache.h, as stack_walk.c uses it: cached frames must never differ from those found
 * by a walk */

#include <linux/perf_event.h>

#include "daemon/attribute/attribute_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define ADDR UINT64_C(0x10020)

static struct bench *b;

static void setup(void)
{
	b = bench_new();
	bench_start(b);
	for (int pid = 10; pid <= 11; pid++) {
		bench_fork(b, SECOND, pid, pid, 1);
		bench_comm(b, SECOND + 1, pid, "prog", true);
		bench_map(b, pid, 0x10000, 0x1000, pid == 10 ? "/bin/prog" : "/bin/other");
	}
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

/* The leaf of a sample at ADDR. As if its name had been asked for, which is when it
 * is remembered. */
static const struct frame *sample(int pid)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, pid, ADDR);

	bench_take(b, &r, 0);
	const struct attribution *a = bench_got(b, b->n_sunk - 1);
	ck_assert_uint_eq(a->n_frames, 1);
	a->frame[0]->state = FRAME_NAMED;
	return a->frame[0];
}

static const struct frame *sample_thrice(int pid)
{
	const struct frame *frame = sample(pid);

	ck_assert_ptr_eq(sample(pid), frame);
	ck_assert_ptr_eq(sample(pid), frame);
	return frame;
}

static size_t n_cached(void)
{
	size_t n = 0;
	for (size_t i = 0; i < PLACES_CACHED; i++)
		n += b->attribute->places->place[i].addr != 0;
	return n;
}

TEST(the_same_address_in_two_processes_is_two_places)
{
	const struct frame *one = sample_thrice(10), *other = sample_thrice(11);

	ck_assert_str_eq(one->file->path, "/bin/prog");
	ck_assert_str_eq(other->file->path, "/bin/other");
	ck_assert_ptr_eq(sample(10), one);
	ck_assert_uint_eq(n_cached(), 2);
}

TEST(a_new_mapping_over_a_known_place_is_seen)
{
	sample_thrice(10);
	bench_map(b, 10, 0x10000, 0x1000, "/bin/later");
	ck_assert_str_eq(sample_thrice(10)->file->path, "/bin/later");
}

TEST(an_exec_makes_known_places_unknown)
{
	sample_thrice(10);
	bench_comm(b, 3 * SECOND, 10, "next", true);
	struct record r = bench_sample(b, BENCH_ALONE, 4 * SECOND, 10, ADDR);
	bench_take(b, &r, 0);
	ck_assert_int_eq(bench_got(b, b->n_sunk - 1)->frame[0]->file->kind, FILE_UNKNOWN);
}

/* The user of an exec is known a little later. */
TEST(another_user_makes_known_places_unknown)
{
	struct task *process = task_find(&b->tasks, 10);

	process->uid = 0;
	const struct frame *roots = sample_thrice(10);
	ck_assert_uint_eq(roots->file->uid, 0);
	process->uid = 1000;
	const struct frame *users = sample_thrice(10);
	ck_assert_uint_eq(users->file->uid, 1000);
	ck_assert_uint_eq(users->offset, roots->offset);
	ck_assert_str_eq(users->file->path, roots->file->path);
	process->uid = 0;
	ck_assert_ptr_eq(sample(10), roots);
}

/* The user of an exec is not known at once; a shell's child is likely the shell's user. */
TEST(user_who_is_not_known_is_who_started_the_process_but_not_root)
{
	struct task *parent = task_find(&b->tasks, 11), *process = task_find(&b->tasks, 10);

	process->parent = parent;
	process->uid = (uid_t)-1;
	parent->uid = 1000;
	ck_assert_uint_eq(sample_thrice(10)->file->uid, 1000);
	parent->uid = 0;
	ck_assert_uint_eq(sample_thrice(10)->file->uid, (uid_t)-1);
	process->parent = NULL;
	ck_assert_uint_eq(sample_thrice(10)->file->uid, (uid_t)-1);
}

TEST(a_frame_that_nobody_asked_for_is_not_remembered)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, ADDR);

	bench_take(b, &r, 0);
	ck_assert_uint_eq(n_cached(), 0);
}

TEST(generated_code_is_not_remembered)
{
	/* beyond the text: no part of it that was put into memory of its own */
	bench_map(b, 10, 0x10000, 0x2000, "//anon");
	ck_assert_int_eq(sample_thrice(10)->file->kind, FILE_PERF_MAP);
	ck_assert_uint_eq(n_cached(), 0);
}

TEST(what_was_forgotten_is_found_again)
{
	const struct frame *frame = sample_thrice(10);

	attribute_forget_places(b->attribute);
	ck_assert_uint_eq(n_cached(), 0);
	ck_assert_ptr_eq(sample_thrice(10), frame);
}

/* More places than there is room for: each address must go on having its own frame. */
TEST(places_that_push_each_other_out_stay_right)
{
	bench_map(b, 10, 0x100000, 0x4000000, "/bin/large");
	for (int round = 0; round < 3; round++)
		for (uint64_t i = 0; i < PLACES_CACHED * 2; i += 61) {
			struct record r =
				bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x100000 + i * 64);

			b->n_sunk = 0;
			bench_take(b, &r, 0);
			struct frame *frame = bench_got(b, 0)->frame[0];
			frame->state = FRAME_NAMED;
			ck_assert_uint_eq(frame->offset, 0x1000 + i * 64);
		}
}
