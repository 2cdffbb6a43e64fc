/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/walk.c and walk_drain.c: who listens, and when windows are cut. The files are
 * included, since the cuts are their static functions'; the walk is made by hand and has no ring.
 */

#include "daemon/session/walk.c"
#include "daemon/session/walk_drain.c"

#include "tests/unit/test.h"

static struct walk walk;
static struct walk_inner inner;
static struct sampler sampler;

struct listener {
	struct tap tap;
	uint64_t every_ns;
	uint64_t at[256];
	size_t n_cuts, n_taken;
	int answer;
};
static struct listener one, two;

static void taken(void *userdata, const struct attribution *a)
{
	struct listener *l = userdata;
	l->n_taken += a->count;
}

static int was_cut(void *userdata, uint64_t cut_ns)
{
	struct listener *l = userdata;
	ck_assert_uint_lt(l->n_cuts, sizeof(l->at) / sizeof(*l->at));
	l->at[l->n_cuts++] = cut_ns;
	if (l->every_ns)
		l->tap.cut_ns = cut_ns + l->every_ns;
	return l->answer;
}

static void begin(struct listener *l, uint64_t cut_ns, uint64_t every_ns)
{
	*l = (struct listener){.every_ns = every_ns};
	l->tap = (struct tap){.userdata = l, .take = taken, .cut = was_cut, .cut_ns = cut_ns};
	walk_add(&walk, &l->tap);
}

static void setup(void)
{
	inner = (struct walk_inner){.rings_fd = -1};
	sampler = (struct sampler){0};
	walk = (struct walk){.sampler = &sampler, .inner = &inner};
	inner.execs = (struct exec_watch){.sampler = &sampler, .fd = -1, .rests = true};
	struct attribute_options o = {.files = &walk.files,
		.tasks = &walk.tasks,
		.streams = &sampler.streams,
		.n_harts = 1,
		.n_events = 1,
		.proc = "/nowhere",
		.sink = walk_take,
		.userdata = &walk};
	ck_assert_int_eq(attribute_new(&o, &walk.attribute), 0);
	inner.execs.attribute = walk.attribute;
	inner.merge.streams = &sampler.streams;
}

static void teardown(void)
{
	merge_clear(&inner.merge);
	attribute_free(walk.attribute);
	task_table_clear(&walk.tasks);
	file_table_clear(&walk.files);
}

EACH_TEST(.begin = setup, .end = teardown);

TEST(every_tap_hears_every_sample)
{
	struct attribution a = {.count = 3};
	begin(&one, UINT64_MAX, 0);
	begin(&two, UINT64_MAX, 0);
	walk_take(&walk, &a);
	walk_remove(&walk, &one.tap);
	walk_take(&walk, &a);
	ck_assert_uint_eq(one.n_taken, 3);
	ck_assert_uint_eq(two.n_taken, 6);
	ck_assert_uint_eq(walk.n_taken, 6);
}

TEST(removing_a_tap_that_is_not_there_does_nothing)
{
	begin(&one, UINT64_MAX, 0);
	walk_remove(&walk, &two.tap);
	walk_remove(&walk, &one.tap);
	walk_remove(&walk, &one.tap);
	ck_assert_ptr_null(inner.taps);
}

TEST(names_may_come_late_if_no_tap_waits_for_them)
{
	begin(&one, UINT64_MAX, 0);
	begin(&two, UINT64_MAX, 0);
	one.tap.is_patient = true;
	ck_assert(!walk_is_patient(&walk));
	two.tap.is_patient = true;
	ck_assert(walk_is_patient(&walk));
	inner.stopped = true; /* no drain comes */
	ck_assert(!walk_is_patient(&walk));
}

TEST(taps_are_cut_in_the_order_of_time)
{
	begin(&one, 10 * SECOND, 2 * SECOND);
	begin(&two, 11 * SECOND, 5 * SECOND);
	ck_assert_int_eq(cut_and_drain(&walk, 17 * SECOND, UINT64_MAX), 0);
	ck_assert_uint_eq(one.n_cuts, 4); /* 10, 12, 14, 16 */
	ck_assert_uint_eq(two.n_cuts, 2); /* 11, 16 */
	ck_assert_uint_eq(one.at[3], 16 * SECOND);
	ck_assert_uint_eq(one.tap.cut_ns, 18 * SECOND);
}

TEST(a_long_stall_is_made_up_for_in_pieces)
{
	begin(&one, 10 * SECOND, SECOND);
	ck_assert_int_eq(cut_and_drain(&walk, 110 * SECOND, UINT64_MAX), WALK_MORE);
	ck_assert_uint_eq(one.n_cuts, CUTS_DUE_MAX);
	ck_assert_int_eq(cut_and_drain(&walk, 110 * SECOND, UINT64_MAX), 0);
	ck_assert_uint_eq(one.n_cuts, 101);
}

TEST(a_tap_that_does_not_move_on_is_cut_once)
{
	begin(&one, 10 * SECOND, 0);
	ck_assert_int_eq(cut_and_drain(&walk, 20 * SECOND, UINT64_MAX), 0);
	ck_assert_uint_eq(one.n_cuts, 1);
}

TEST(a_tap_that_fails_stops_the_walk)
{
	begin(&one, 10 * SECOND, SECOND);
	one.answer = -ENOMEM;
	ck_assert_int_eq(cut_and_drain(&walk, 20 * SECOND, UINT64_MAX), -ENOMEM);
	ck_assert_uint_eq(one.n_cuts, 1);
}

TEST(a_drain_of_the_time_after_forgets_closed_events)
{
	struct stream closed = {.id = 7, .leader = 7};
	ck_assert_int_eq(stream_table_keep(&sampler.streams, &closed), 0);
	sampler.book.closed_ns = 1000;
	ck_assert_int_eq(walk_drain_all(&walk, 1000), 0);
	ck_assert_ptr_nonnull(stream_table_find(&sampler.streams, 7));
	ck_assert_int_eq(walk_drain_all(&walk, 1001), 0);
	ck_assert_ptr_null(stream_table_find(&sampler.streams, 7));
}

TEST(what_the_side_band_tells_of_is_counted)
{
	const struct record of[] = {
		{.kind = RECORD_FORK},
		{.kind = RECORD_EXIT},
		{.kind = RECORD_COMM, .comm.exec = true},
		{.kind = RECORD_COMM}, /* a thread names itself */
		{.kind = RECORD_MMAP},
		{.kind = RECORD_SAMPLE},
	};
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		count_told(&walk, &of[i]);
	ck_assert_uint_eq(walk.n_sideband[TASK_FORK], 1);
	ck_assert_uint_eq(walk.n_sideband[TASK_EXEC], 1);
	ck_assert_uint_eq(walk.n_sideband[TASK_MAPPING], 1);
}
