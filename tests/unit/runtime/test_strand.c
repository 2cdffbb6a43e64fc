/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a thread of OpenMP did, from events at times that we choose.
 */
#include "runtime/ompt/strand.h"
#include "tests/unit/test.h"

/* Room for max tallies. */
struct room {
	struct tally tally[16];
	size_t n, max;
};

static void *memory(void *userdata, size_t bytes)
{
	struct room *room = userdata;
	ck_assert_uint_eq(bytes, sizeof(struct tally));
	if (room->n == room->max)
		return NULL;
	memset(&room->tally[room->n], 0, bytes);
	return &room->tally[room->n++];
}

struct rig {
	struct strand strand;
	struct room room;
};

static void rig_make(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	g->room.max = 16;
	ck_assert(strand_init(&g->strand, memory, &g->room, 1));
}

static int here[64]; /* addresses */

static struct place *region(int i, struct place *around)
{
	return place_get(MPERF_PLACE_PARALLEL, &here[i], around);
}

static struct tally_sum sum_at(struct rig *g, const struct place *place, uint64_t now_ns)
{
	struct tally_sum sum = {0};
	for (struct tally *t = g->strand.all; t; t = t->next)
		if (t->place == place)
			ck_assert(strand_sum(&g->strand, t, now_ns, &sum));
	return sum;
}

static struct tally_sum sum_of(
	struct rig *g, uint32_t kind, int i, struct place *around, uint64_t now_ns)
{
	return sum_at(g, place_get(kind, i < 0 ? NULL : &here[i], around), now_ns);
}

TEST(time_in_a_region_is_that_of_its_team)
{
	struct rig g;
	rig_make(&g);
	struct place *r = region(0, NULL);
	struct team *team = team_begin(r);
	strand_enter(&g.strand, team, true, 100);
	struct tally_sum open = sum_at(&g, r, 130);
	ck_assert_uint_eq(open.time_ns, 30);
	team_end(team, 150);
	strand_leave(&g.strand, 900); /* when the next region begins */
	struct tally_sum sum = sum_at(&g, r, 1000);
	ck_assert_uint_eq(sum.time_ns, 50);
	ck_assert_uint_eq(sum.entries, 1);
	ck_assert_uint_eq(sum.calls, 1);
}

TEST(a_thread_ends_the_region_that_it_began_last)
{
	struct rig g;
	rig_make(&g);
	struct team *outer = strand_begin(&g.strand, &here[40]);
	strand_enter(&g.strand, outer, true, 100);
	struct team *inner = strand_begin(&g.strand, &here[41]);
	ck_assert_ptr_eq(inner->place, region(41, outer->place));
	strand_enter(&g.strand, inner, true, 110);
	strand_end(&g.strand, 120);
	ck_assert_uint_eq(inner->end_ns, 120);
	ck_assert_uint_eq(outer->end_ns, 0);
	strand_leave(&g.strand, 130);
	strand_end(&g.strand, 140);
	ck_assert_uint_eq(outer->end_ns, 140);
	strand_end(&g.strand, 150); /* of none */
	ck_assert_uint_eq(outer->end_ns, 140);
	strand_leave(&g.strand, 160);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_PARALLEL, 40, NULL, 200).time_ns, 40);
}

TEST(regions_deeper_than_are_kept_end_in_order_too)
{
	struct rig g;
	struct team *team[STRAND_LEVELS_MAX];
	rig_make(&g);
	for (uint32_t i = 0; i < STRAND_LEVELS_MAX; i++)
		team[i] = strand_begin(&g.strand, &here[42]);
	ck_assert_ptr_null(strand_begin(&g.strand, &here[42]));
	strand_end(&g.strand, 100);
	ck_assert_uint_eq(team[STRAND_LEVELS_MAX - 1]->end_ns, 0);
	strand_forked(&g.strand, 105);
	strand_end(&g.strand, 110); /* was begun in the parent */
	ck_assert_uint_eq(team[STRAND_LEVELS_MAX - 1]->end_ns, 0);
}

TEST(a_wait_at_the_end_ends_with_the_region)
{
	struct rig g;
	int task;
	rig_make(&g);
	struct place *r = region(1, NULL);
	struct team *team = team_begin(r);
	strand_enter(&g.strand, team, false, 100);
	strand_wait_begin(&g.strand, MPERF_PLACE_BARRIER_OF_REGION, NULL, &task, 120);
	ck_assert_uint_eq(sum_at(&g, r, 130).wait_ns, 10);
	team_end(team, 150);
	/* as it is while the thread waits for the next region, and after it */
	for (int i = 0; i < 2; i++) {
		struct tally_sum sum = sum_at(&g, r, 5000);
		ck_assert_uint_eq(sum.time_ns, 50);
		ck_assert_uint_eq(sum.wait_ns, 30);
		ck_assert_uint_eq(sum.calls, 0);
		ck_assert_uint_eq(
			sum_of(&g, MPERF_PLACE_BARRIER_OF_REGION, -1, r, 5000).time_ns, 30);
		if (i == 0) {
			strand_wait_end(&g.strand, &task, 4000);
			strand_leave(&g.strand, 4001);
		}
	}
}

TEST(tasks_that_run_in_a_wait_are_no_wait)
{
	struct rig g;
	int implicit, explicit_task;
	rig_make(&g);
	struct place *r = region(2, NULL);
	struct team *team = team_begin(r);
	strand_enter(&g.strand, team, true, 0);
	strand_wait_begin(&g.strand, MPERF_PLACE_BARRIER, &here[3], &implicit, 10);
	strand_switch(&g.strand, &implicit, &explicit_task, 20);
	/* which itself waits */
	strand_wait_begin(&g.strand, MPERF_PLACE_TASKWAIT, &here[4], &explicit_task, 30);
	strand_wait_end(&g.strand, &explicit_task, 35);
	strand_switch(&g.strand, &explicit_task, &implicit, 60);
	strand_wait_end(&g.strand, &implicit, 70);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_BARRIER, 3, r, 70).time_ns, 20);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_TASKWAIT, 4, r, 70).time_ns, 5);
	ck_assert_uint_eq(sum_at(&g, r, 70).wait_ns, 25);
	strand_leave(&g.strand, 80);
	team_end(team, 80);
}

TEST(a_lock_that_was_not_had_is_forgotten)
{
	struct rig g;
	int lock, other;
	rig_make(&g);
	struct place *r = region(5, NULL);
	struct team *team = team_begin(r);
	strand_enter(&g.strand, team, true, 0);
	strand_lock_begin(&g.strand, MPERF_PLACE_LOCK, &here[6], &lock, 10);
	strand_lock_begin(&g.strand, MPERF_PLACE_LOCK, &here[6], &other, 20);
	strand_lock_end(&g.strand, &lock, 25);
	strand_lock_end(&g.strand, &other, 50);
	struct tally_sum sum = sum_of(&g, MPERF_PLACE_LOCK, 6, r, 60);
	ck_assert_uint_eq(sum.entries, 1);
	ck_assert_uint_eq(sum.time_ns, 30);
	ck_assert_uint_eq(sum_at(&g, r, 60).lock_ns, 30);
	strand_leave(&g.strand, 60);
	team_end(team, 60);
}

TEST(locks_outside_regions_count)
{
	struct rig g;
	int lock;
	rig_make(&g);
	strand_lock_begin(&g.strand, MPERF_PLACE_CRITICAL, &here[7], &lock, 10);
	strand_lock_end(&g.strand, &lock, 15);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_CRITICAL, 7, NULL, 20).time_ns, 5);
}

TEST(regions_nest)
{
	struct rig g;
	rig_make(&g);
	struct place *outer = region(8, NULL), *inner = region(9, outer);
	struct team *a = team_begin(outer), *b = team_begin(inner);
	strand_enter(&g.strand, a, true, 0);
	strand_enter(&g.strand, b, true, 10);
	ck_assert_ptr_eq(strand_place(&g.strand), inner);
	strand_leave(&g.strand, 30);
	team_end(b, 30);
	strand_leave(&g.strand, 40);
	team_end(a, 40);
	ck_assert_uint_eq(sum_at(&g, inner, 50).time_ns, 20);
	ck_assert_uint_eq(sum_at(&g, outer, 50).time_ns, 40);
	ck_assert_ptr_eq(strand_place(&g.strand), NULL);
}

TEST(levels_beyond_the_limit_count_for_those_around)
{
	struct rig g;
	struct team *team[STRAND_LEVELS_MAX + 3];
	struct place *p = NULL, *last = NULL;
	rig_make(&g);
	for (unsigned i = 0; i < STRAND_LEVELS_MAX + 3; i++) {
		p = region(10 + (int)i, p);
		last = i == STRAND_LEVELS_MAX - 1 ? p : last;
		team[i] = team_begin(p);
		strand_enter(&g.strand, team[i], true, i);
	}
	ck_assert_ptr_eq(strand_place(&g.strand), last);
	for (unsigned i = STRAND_LEVELS_MAX + 3; i-- > 0;) {
		strand_leave(&g.strand, 100);
		team_end(team[i], 100);
	}
	strand_leave(&g.strand, 101); /* once too often */
	ck_assert_uint_eq(g.strand.depth, 0);
	ck_assert_uint_eq(sum_at(&g, last, 200).time_ns, 100 - (STRAND_LEVELS_MAX - 1));
}

TEST(work_that_is_left_without_its_end_ends_with_the_region)
{
	struct rig g;
	rig_make(&g);
	struct place *r = region(30, NULL);
	struct team *team = team_begin(r);
	strand_work_end(&g.strand, 5); /* none began */
	strand_enter(&g.strand, team, true, 0);
	strand_work_begin(&g.strand, MPERF_PLACE_LOOP, &here[31], 10);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_LOOP, 31, r, 15).time_ns, 5);
	strand_leave(&g.strand, 40);
	team_end(team, 40);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_LOOP, 31, r, 90).time_ns, 30);
	ck_assert_uint_eq(g.strand.n_works, 0);
}

/* A thread leaves a region when its next one begins. */
TEST(work_ends_when_its_region_does_however_late_the_thread_leaves)
{
	struct rig g;
	rig_make(&g);
	struct place *r = region(53, NULL);
	struct team *team = team_begin(r);
	strand_enter(&g.strand, team, false, 0);
	strand_work_begin(&g.strand, MPERF_PLACE_LOOP, &here[54], 10);
	team_end(team, 40);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_LOOP, 54, r, 500).time_ns, 30);
	strand_leave(&g.strand, 900);
	ck_assert_uint_eq(sum_of(&g, MPERF_PLACE_LOOP, 54, r, 1000).time_ns, 30);
	ck_assert_uint_eq(sum_at(&g, r, 1000).time_ns, 40);
}

TEST(works_and_waits_beyond_the_limit_are_not_kept)
{
	struct rig g;
	int task[STRAND_WAITS_MAX + 3];
	rig_make(&g);
	struct place *r = region(55, NULL);
	struct team *team = team_begin(r);
	strand_enter(&g.strand, team, true, 0);
	for (unsigned i = 0; i < STRAND_WORKS_MAX + 3; i++)
		strand_work_begin(&g.strand, MPERF_PLACE_LOOP, &here[56], 10);
	ck_assert_uint_eq(g.strand.n_works, STRAND_WORKS_MAX);
	ck_assert_uint_eq(g.strand.n_waits, 0); /* which stands behind them */
	for (unsigned i = 0; i < STRAND_WAITS_MAX + 3; i++)
		strand_wait_begin(&g.strand, MPERF_PLACE_TASKWAIT, &here[57], &task[i], 20);
	ck_assert_uint_eq(g.strand.n_waits, STRAND_WAITS_MAX);
	ck_assert_ptr_null(g.strand.lock.task);
	strand_leave(&g.strand, 40);
	team_end(team, 40);
	ck_assert_uint_eq(g.strand.n_works, 0);
	ck_assert_uint_eq(g.strand.n_waits, 0);
}

TEST(a_lock_that_is_had_after_its_region_ended_is_no_wait_of_it)
{
	struct rig g;
	int lock;
	rig_make(&g);
	struct place *outer = region(58, NULL), *inner = region(59, outer);
	struct team *a = team_begin(outer), *b = team_begin(inner);
	strand_enter(&g.strand, a, true, 0);
	strand_enter(&g.strand, b, true, 10);
	strand_lock_begin(&g.strand, MPERF_PLACE_LOCK, &here[60], &lock, 20);
	strand_leave(&g.strand, 30);
	team_end(b, 30);
	strand_lock_end(&g.strand, &lock, 50);
	ck_assert_uint_eq(sum_at(&g, inner, 60).lock_ns, 0);
	ck_assert_uint_eq(sum_at(&g, outer, 60).lock_ns, 0);
	strand_leave(&g.strand, 60);
	team_end(a, 60);
}

TEST(without_room_regions_are_counted_together)
{
	struct rig g;
	rig_make(&g);
	g.room.max = g.room.n + 1;
	struct place *first = region(32, NULL);
	for (int i = 0; i < 3; i++) {
		struct team *team = team_begin(i == 0 ? first : region(33 + i, NULL));
		strand_enter(&g.strand, team, true, 10);
		team_end(team, 20);
		strand_leave(&g.strand, 20);
	}
	ck_assert_uint_eq(sum_at(&g, first, 30).entries, 1);
	ck_assert_uint_eq(sum_at(&g, place_other(), 30).entries, 2);
	ck_assert_uint_eq(sum_at(&g, place_other(), 30).time_ns, 20);
}

TEST(a_fork_begins_at_zero)
{
	struct rig g;
	rig_make(&g);
	struct place *r = region(40, NULL);
	strand_enter(&g.strand, team_begin(r), true, 10);
	teams_clear();
	strand_forked(&g.strand, 50);
	ck_assert_uint_eq(sum_at(&g, r, 60).time_ns, 0);
	strand_leave(&g.strand, 70); /* of the parent's region */
	ck_assert_uint_eq(sum_at(&g, r, 80).entries, 0);
}

TEST(teams_are_limited_and_reused)
{
	static struct team *team[TEAMS_MAX];
	teams_clear();
	for (unsigned i = 0; i < TEAMS_MAX; i++)
		ck_assert_ptr_nonnull(team[i] = team_begin(NULL));
	ck_assert_ptr_null(team_begin(NULL));
	team_ref(team[7]);
	team_end(team[7], 5);
	ck_assert_ptr_null(team_begin(NULL)); /* a thread has not left it */
	team_unref(team[7]);
	ck_assert_ptr_eq(team_begin(NULL), team[7]);
	teams_clear();
}

TEST(places_are_limited)
{
	static char far[PLACES_SLOTS];
	struct place *region_place = region(50, NULL);
	struct place *first = place_get(MPERF_PLACE_LOCK, &far[0], region_place);
	unsigned n = 1;
	while (n < PLACES_SLOTS && place_get(MPERF_PLACE_LOCK, &far[n], region_place))
		n++;
	ck_assert_uint_lt(n, PLACES_MAX);
	ck_assert_uint_gt(n, PLACES_MAX / 2);
	ck_assert_ptr_eq(region(51, NULL), place_other());
	ck_assert_ptr_null(place_get(MPERF_PLACE_LOCK, &here[52], place_other()));
	ck_assert_ptr_nonnull(first); /* what was met before is still found */
	ck_assert_ptr_eq(place_get(MPERF_PLACE_LOCK, &far[0], region_place), first);
}
