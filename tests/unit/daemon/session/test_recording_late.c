/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/recording_late.c, and of how recording.c ends: samples that wait for their callers at the
 * end of a recording whose walk goes on. What waits is a list of the test's.
 */

#include "daemon/session/walk.h"

static void check_owners_of(struct walk *w)
{
	(void)w; /* a walk made by hand has no station that could be asked */
}

static int catch_up_of(struct walk *w, uint64_t now_ns)
{
	(void)w, (void)now_ns;
	return 0;
}

static bool each_of_the_list(struct attribute *a, uint64_t before_ns,
	bool (*see)(void *userdata, const struct attribution *a), void *userdata);
static void give_it(struct walk *w, struct tap *tap, const struct attribution *a)
{
	(void)w;
	tap->take(tap->userdata, a);
}

#define walk_check_owners check_owners_of
#define walk_catch_up catch_up_of
#define walk_give give_it
#define attribute_each_waiting each_of_the_list
#include "daemon/session/recording.c"
#include "daemon/session/recording_late.c"
#undef walk_check_owners
#undef walk_catch_up
#undef walk_give
#undef attribute_each_waiting

#include "daemon/naming/namer_private.h"
#include "daemon/session/walk_private.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define WAITING_TEST_MAX 8

static struct stored s;
static struct walk walk;
static struct walk_inner inner;
static struct namer busy;
static struct recording *g;
static struct attribution waiting[WAITING_TEST_MAX];
static int n_waiting;

static bool each_of_the_list(struct attribute *a, uint64_t before_ns,
	bool (*see)(void *userdata, const struct attribution *a), void *userdata)
{
	(void)a;
	for (int i = 0; i < n_waiting; i++)
		if (waiting[i].time_ns < before_ns && !see(userdata, &waiting[i]))
			return false;
	return true;
}

static struct attribution sample_of(pid_t pid, const char *comm, uint64_t time_ns)
{
	return (struct attribution){.task = stored_task(&s, pid, pid, comm),
		.hart = 1,
		.time_ns = time_ns,
		.count = 1,
		.weight_ns = 1};
}

/* A recording from 10 s to 11 s, of the process with pid 10 alone. */
static void setup(void)
{
	stored_begin_clock(&s);
	s.sampler.lost = s.lost;
	s.sampler.machine.n_harts = STORED_HARTS;
	busy = (struct namer){.frames.n_waiting = 5};
	walk = (struct walk){.sampler = &s.sampler, .namer = &busy, .inner = &inner};
	g = calloc(1, sizeof(*g));
	ck_assert_ptr_nonnull(g);
	g->walk = &walk;
	g->segment = s.segment;
	g->shared = true;
	g->targets = (struct targets){.pid = {10}, .n_pids = 1, .since_ns = 10 * SECOND};
	g->n_harts = STORED_HARTS;
	g->own = g->mine = calloc(STORED_HARTS, sizeof(*g->mine));
	g->lost = calloc(STORED_HARTS, sizeof(*g->lost));
	g->lost_then = calloc(STORED_HARTS, sizeof(*g->lost_then));
	ck_assert(g->own && g->lost && g->lost_then);
	g->window_ns = SECOND;
	g->names_ns = 100 * SECOND;
	g->stall_ns = 5 * SECOND;
	g->window.start_ns = 10 * SECOND;
	g->tap = recording_tap(g);
	g->tap.cut_ns = 11 * SECOND;
	n_waiting = 0;
}

static void teardown(void)
{
	window_clear(&g->writing);
	window_clear(&g->window);
	stack_tree_clear(&g->stacks);
	free((struct hart_count *)g->last_counts.row);
	free(g->own);
	free(g->lost);
	free(g->lost_then);
	free(g);
	stored_end(&s);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

static void take_it(const struct attribution *a)
{
	g->tap.take(g, a);
}

/* End it at 11 s. The tables are as they are by now, which the walk would own. */
static void finish(void)
{
	walk.tasks = s.tasks;
	walk.files = s.files;
	ck_assert_int_eq(recording_finish(g, 11 * SECOND), 0);
}

TEST(samples_that_wait_at_the_end_come_into_the_last_window)
{
	waiting[n_waiting++] = sample_of(10, "prog", 10 * SECOND + 5);
	finish();
	ck_assert_int_eq(recording_dispatch(g, 11 * SECOND + 1), 0);
	ck_assert(!g->has_callers);
	take_it(&waiting[0]); /* its callers came */
	n_waiting = 0;
	ck_assert_int_eq(recording_dispatch(g, 11 * SECOND + 2), 0);
	ck_assert(g->has_callers);
	ck_assert_uint_eq(g->n_stored, 1);
	ck_assert_uint_eq(g->window.start_ns, 11 * SECOND);
	ck_assert_uint_eq(g->lost[1][LOSS_UNWIND], 0);
}

TEST(samples_of_others_and_later_ones_are_not_waited_for)
{
	waiting[n_waiting++] = sample_of(11, "other", 10 * SECOND + 5);
	waiting[n_waiting++] = sample_of(10, "prog", 11 * SECOND);
	waiting[n_waiting++] = sample_of(10, "prog", 10 * SECOND - 1); /* before it began */
	finish();
	ck_assert(g->has_callers);
	for (int i = 0; i < n_waiting; i++)
		take_it(&waiting[i]);
	ck_assert_uint_eq(g->n_samples, 0);
}

TEST(samples_whose_callers_do_not_come_are_kept_with_their_leaf_and_counted)
{
	waiting[n_waiting++] = sample_of(10, "prog", 10 * SECOND + 5);
	waiting[n_waiting++] = sample_of(11, "other", 10 * SECOND + 6);
	finish();
	ck_assert_int_eq(recording_dispatch(g, 15 * SECOND), 0);
	ck_assert(!g->has_callers);
	ck_assert_int_eq(recording_dispatch(g, 16 * SECOND), 0); /* nothing came for 5 s */
	ck_assert(g->has_callers);
	ck_assert_uint_eq(g->n_stored, 1);
	ck_assert_uint_eq(g->lost[1][LOSS_UNWIND], 1);
	take_it(&waiting[0]); /* once is enough */
	ck_assert_uint_eq(g->n_samples, 1);
}

TEST(other_names_that_come_prolong_the_wait_to_a_limit)
{
	waiting[n_waiting++] = sample_of(10, "prog", 10 * SECOND + 5);
	finish();
	for (uint64_t at = 12; at < 31; at++) {
		busy.frames.n_named++;
		ck_assert_int_eq(recording_dispatch(g, at * SECOND), 0);
		ck_assert(!g->has_callers);
	}
	ck_assert_uint_eq(recording_deadline_ns(g), 31 * SECOND);
	ck_assert_int_eq(recording_dispatch(g, 31 * SECOND), 0);
	ck_assert(g->has_callers);
	ck_assert_uint_eq(g->n_stored, 1);
}
