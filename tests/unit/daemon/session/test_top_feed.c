/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/top_feed.c, built into this program with a walk that only notes
 * its taps. */

#define walk_add noted_add
#define walk_remove noted_remove
#define walk_check_owners noted_check_owners

#include "daemon/session/top_feed.c"

#include "daemon/session/walk_private.h"

#include "proto/base/memory.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct walk walk;
static struct walk_inner inner;
static int n_taps, n_checked;
static struct top_feed *feeds;

void noted_add(struct walk *w, struct tap *tap)
{
	ck_assert_ptr_eq(w, &walk);
	ck_assert_ptr_nonnull(tap->take);
	n_taps++;
}

void noted_remove(struct walk *w, struct tap *tap)
{
	ck_assert_ptr_eq(w, &walk);
	ck_assert_ptr_nonnull(tap->take);
	n_taps--;
}

void noted_check_owners(struct walk *w)
{
	ck_assert_ptr_eq(w, &walk);
	n_checked++;
}

static void setup(void)
{
	stored_begin_clock(&s);
	s.sampler.lost = s.lost;
	walk = (struct walk){.sampler = &s.sampler, .inner = &inner};
	feeds = NULL;
	n_taps = 0;
}

static void teardown(void)
{
	s.sampler.lost = NULL;
	stored_end(&s);
	ck_assert_int_eq(n_taps, 0);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

static struct top_feed *get(uint64_t interval_ns)
{
	struct top_feed *f;
	const struct top_feed_options o = {
		.walk = &walk, .interval_ns = interval_ns, .uid = (uid_t)-1};
	ck_assert_int_eq(top_feed_get(&feeds, &o, &f), 0);
	return f;
}

static void give(struct top_feed *f, struct task *task, struct frame *frame, uint64_t time_ns)
{
	struct attribution a = {
		.task = task,
		.time_ns = time_ns,
		.count = 1,
		.weight_ns = 10,
		.frame = &frame,
		.n_frames = 1,
	};
	f->tap.take(f->tap.userdata, &a);
}

static void cut_at(struct top_feed *f, uint64_t ns)
{
	f->tap.cut_ns = UINT64_MAX;
	ck_assert_int_eq(f->tap.cut(f->tap.userdata, ns), 0);
	ck_assert_uint_ne(f->tap.cut_ns, UINT64_MAX);
	ck_assert_int_eq(n_checked, 1); /* before anybody sees it */
	n_checked = 0;
}

TEST(the_first_slice_is_short)
{
	struct top_feed *f = get(4 * SECOND), *quick = get(SECOND / 10);
	ck_assert_uint_eq(f->tap.cut_ns - f->now.window.start_ns, TOP_FIRST_NS);
	ck_assert_uint_eq(quick->tap.cut_ns - quick->now.window.start_ns, SECOND / 40);
	top_feed_put(f);
	top_feed_put(quick);
	ck_assert_ptr_null(feeds);
}

TEST(a_cut_makes_what_was_gathered_the_last_slice)
{
	struct top_feed *f = get(SECOND);
	struct task *t = stored_task(&s, 1, 1, "p");
	struct frame *frame = stored_function(&s, "/bin/p", "main");
	uint64_t start = f->now.window.start_ns, end = start + SECOND;
	give(f, t, frame, start + 1);
	give(f, t, frame, start + 2);
	cut_at(f, end);
	ck_assert_uint_eq(f->n_cuts, 1);
	ck_assert_uint_eq(f->last.window.n_samples, 2);
	ck_assert_uint_eq(f->last.window.start_ns, start);
	ck_assert_uint_eq(f->last.window.end_ns, end);
	ck_assert_uint_eq(f->now.window.n_samples, 0);
	ck_assert_uint_eq(f->now.window.start_ns, end);

	give(f, t, frame, end + 1);
	cut_at(f, end + SECOND);
	ck_assert_uint_eq(f->n_cuts, 2);
	ck_assert_uint_eq(f->last.window.n_samples, 1);
	top_feed_put(f);
}

TEST(what_lay_in_the_rings_before_is_not_taken)
{
	struct top_feed *f = get(SECOND);
	struct task *t = stored_task(&s, 1, 1, "p");
	give(f, t, stored_function(&s, "/bin/p", "main"), f->now.window.start_ns - 1);
	ck_assert_uint_eq(f->now.window.n_samples, 0);
	top_feed_put(f);
}

TEST(losses_are_those_of_the_slice)
{
	s.lost[1][LOSS_RING] = 100; /* before anybody looked */
	struct top_feed *f = get(SECOND);
	uint64_t start = f->now.window.start_ns;
	s.lost[1][LOSS_RING] = 103;
	cut_at(f, start + SECOND);
	ck_assert_uint_eq(f->last.lost[1][LOSS_RING], 3);
	cut_at(f, start + 2 * SECOND);
	ck_assert_uint_eq(f->last.lost[1][LOSS_RING], 0);
	s.lost[1][LOSS_RING] = 104;
	cut_at(f, start + 3 * SECOND);
	ck_assert_uint_eq(f->last.lost[1][LOSS_RING], 1);
	top_feed_put(f);
}

TEST(a_full_slice_counts_what_it_cannot_take)
{
	struct top_feed *f = get(SECOND);
	struct task *t = stored_task(&s, 1, 1, "p");
	f->now.window.n_rows = TOP_ROWS_MAX;
	give(f, t, stored_function(&s, "/bin/p", "main"), f->now.window.start_ns + 1);
	f->now.window.n_rows = 0;
	ck_assert_uint_eq(f->now.window.n_samples, 0);
	ck_assert_uint_eq(f->now.lost[0][LOSS_MEMORY], 1);
	cut_at(f, f->now.window.start_ns + SECOND);
	ck_assert_uint_eq(f->last.lost[0][LOSS_MEMORY], 1);
	top_feed_put(f);
}

TEST(a_tree_that_has_grown_is_dropped_with_its_window)
{
	struct top_feed *f = get(SECOND);
	struct task *t = stored_task(&s, 1, 1, "p");
	struct file_key key = {.kind = FILE_ELF, .path = "/bin/p", .inode = 7};
	struct file *file;
	struct frame *frame;
	uint64_t start = f->now.window.start_ns;
	ck_assert_int_eq(file_get(&s.files, &key, &file), 0);
	struct frame *stack[64];
	const uint32_t n = sizeof(stack) / sizeof(*stack);
	struct attribution a = {
		.task = t, .time_ns = start + 1, .count = 1, .frame = stack, .n_frames = n};
	for (uint64_t i = 0; i <= TOP_NODES_MAX / n; i++) {
		for (uint32_t k = 0; k < n; k++)
			ck_assert_int_eq(frame_get(&s.files, file, i * n + k, &stack[k]), 0);
		f->tap.take(f->tap.userdata, &a);
	}
	frame = stack[0];
	ck_assert_uint_eq(f->now.lost[0][LOSS_STACK_TRUNCATED], 1); /* the last is its leaf */
	cut_at(f, start + SECOND);
	ck_assert_uint_eq(f->last.stacks.n_nodes, TOP_NODES_MAX + 1); /* it is looked at */
	cut_at(f, start + 2 * SECOND);
	ck_assert_uint_eq(f->now.stacks.n_nodes, 0);
	give(f, t, frame, start + 2 * SECOND + 1);
	cut_at(f, start + 3 * SECOND);
	cut_at(f, start + 4 * SECOND);
	ck_assert_uint_eq(f->now.stacks.n_nodes, 1); /* a small one is kept */
	top_feed_put(f);
}

TEST(tops_of_one_interval_share_a_feed)
{
	struct top_feed *a = get(SECOND), *b = get(SECOND), *c = get(2 * SECOND);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, c);
	ck_assert_int_eq(n_taps, 2);
	top_feed_put(a);
	ck_assert_int_eq(n_taps, 2);
	top_feed_put(b);
	ck_assert_int_eq(n_taps, 1);
	ck_assert_ptr_eq(feeds, c);
	top_feed_put(c);
	ck_assert_ptr_null(feeds);
	ck_assert_ptr_null(top_feed_put(NULL));
}

TEST(a_cut_is_asked_for_when_it_is_due)
{
	struct top_feed *f = get(SECOND);
	ck_assert_uint_gt(top_feed_deadline_ns(f), f->tap.cut_ns);
	ck_assert(f->tap.prompt);
	top_feed_put(f);
}

TEST(a_feed_of_one_user_gathers_their_tasks_alone)
{
	struct top_feed *mine, *all = get(SECOND);
	const struct top_feed_options o = {.walk = &walk, .interval_ns = SECOND, .uid = 1000};
	ck_assert_int_eq(top_feed_get(&feeds, &o, &mine), 0);
	ck_assert_ptr_ne(mine, all);
	struct task *t = stored_task(&s, 1, 1, "p"), *other = stored_task(&s, 2, 2, "q");
	struct frame *frame = stored_function(&s, "/bin/p", "main");
	t->uid = 1000;
	other->uid = 1001;
	give(mine, t, frame, mine->now.window.start_ns + 1);
	give(mine, other, frame, mine->now.window.start_ns + 1);
	give(mine, NULL, frame, mine->now.window.start_ns + 1);
	ck_assert_uint_eq(mine->now.window.n_samples, 1);
	give(all, other, frame, all->now.window.start_ns + 1);
	ck_assert_uint_eq(all->now.window.n_samples, 1);
	top_feed_put(mine);
	top_feed_put(all);
}

TEST(a_stall_makes_one_long_slice)
{
	struct top_feed *f = get(SECOND / 10);
	cut_at(f, 1); /* long ago */
	ck_assert_uint_gt(f->tap.cut_ns, SECOND / 2);
	top_feed_put(f);
}

TEST(leaves_without_a_name_yet_are_counted)
{
	struct top_feed *f = get(SECOND);
	struct task *t = stored_task(&s, 1, 1, "p");
	struct frame *named = stored_function(&s, "/bin/p", "main");
	struct frame *asked = stored_frame(&s, FILE_ELF, "/bin/p", 0x77);
	struct frame *nameless = stored_frame(&s, FILE_ELF, "/bin/p", 0x78);
	asked->state = FRAME_ASKED;
	nameless->state = FRAME_UNNAMED;
	uint64_t start = f->now.window.start_ns;
	ck_assert_double_eq_tol(top_feed_unnamed(f), 0, 1e-9);
	give(f, t, named, start);
	give(f, t, named, start);
	give(f, t, asked, start);
	give(f, t, nameless, start);
	cut_at(f, start + SECOND);
	ck_assert_double_eq_tol(top_feed_unnamed(f), 0.25, 1e-9);
	top_feed_put(f);
}

TEST(a_sweep_keeps_what_both_slices_hold)
{
	struct top_feed *f = get(SECOND);
	struct task *a = stored_task(&s, 1, 1, "a"), *b = stored_task(&s, 2, 2, "b");
	struct frame *x = stored_function(&s, "/bin/a", "x");
	struct frame *y = stored_function(&s, "/bin/b", "y");
	stored_function(&s, "/bin/c", "z");
	uint64_t start = f->now.window.start_ns;
	give(f, a, x, start);
	cut_at(f, start + SECOND);
	give(f, b, y, start + SECOND);
	uint8_t task[8] = {0}, frame[8] = {0}, file[8] = {0};
	struct sweep sweep = {task, 3, {frame, file, 3, 3}};
	f->tap.mark(f->tap.userdata, &sweep);
	ck_assert_int_eq(task[a->id - 1], SWEEP_KEPT);
	ck_assert_int_eq(task[b->id - 1], SWEEP_KEPT);
	ck_assert_int_eq(frame[x->id - 1], SWEEP_KEPT);
	ck_assert_int_eq(frame[y->id - 1], SWEEP_KEPT);
	ck_assert_int_eq(frame[2], SWEEP_FREE);
	top_feed_put(f);
}
