/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/raises.c: who sees which samples of a task that is sampled faster, and what these may
 * cost. The walk is made by hand; opening is in test_sampler_raise. */

#include "daemon/session/raises.c"

#include "tests/unit/test.h"

static struct walk walk;
static struct walk_inner inner;
static struct sampler sampler;
static struct task task;
static struct attribution a;

static void setup(void)
{
	inner = (struct walk_inner){.rings_fd = -1};
	sampler = (struct sampler){.machine.max_sample_rate = 100000};
	walk = (struct walk){.sampler = &sampler, .inner = &inner};
	task = (struct task){.pid = 10, .tid = 10, .uid = 1000, .process = &task};
	a = (struct attribution){
		.task = &task, .count = 1, .weight_ns = 100, .time_ns = 50, .n_reads = 1};
}

EACH_TEST(.begin = setup);

static void raise_task(uint64_t since_ns)
{
	ck_assert(raises_want(&walk, 1000, 999));
	task.raised = (uint8_t)raises_number(&walk, 1000);
	task.raised_ns = since_ns;
}

TEST(samples_of_a_raise_are_for_its_user_alone)
{
	raise_task(40);
	a.raise = task.raised;
	ck_assert(raises_show(&walk, 1000, &a));
	ck_assert(!raises_show(&walk, 1001, &a));
	ck_assert(!raises_show(&walk, 0, &a));
	ck_assert(!raises_show(&walk, (uid_t)-1, &a));
}

TEST(others_see_a_raised_task_as_before)
{
	raise_task(40);
	ck_assert(raises_show(&walk, (uid_t)-1, &a));
	ck_assert_uint_eq(a.count, 1);
	ck_assert_uint_eq(a.weight_ns, 100);
}

TEST(its_user_gets_the_counts_of_other_samples_alone)
{
	raise_task(40);
	ck_assert(raises_show(&walk, 1000, &a));
	ck_assert_uint_eq(a.count, 0);
	ck_assert_uint_eq(a.weight_ns, 0);
	ck_assert_uint_eq(a.n_reads, 1);
	a.n_reads = 0;
	ck_assert(!raises_show(&walk, 1000, &a));
}

TEST(until_its_events_are_open_a_task_is_seen_as_before)
{
	raise_task(UINT64_MAX);
	ck_assert(raises_show(&walk, 1000, &a));
	ck_assert_uint_eq(a.count, 1);
}

TEST(tasks_of_a_user_who_wants_it_are_noticed_once)
{
	ck_assert(raises_want(&walk, 1000, 999));
	raises_notice(&walk, &a);
	raises_notice(&walk, &a);
	ck_assert_uint_eq(inner.raises.of[0].n_asked, 1);
	struct task other = {.pid = 11, .tid = 11, .uid = 1001, .process = &other};
	a.task = &other;
	raises_notice(&walk, &a);
	ck_assert_uint_eq(inner.raises.of[0].n_asked, 1);
	ck_assert_uint_eq(other.raised, 0);
}

TEST(a_rate_that_nobody_wants_any_more_ends)
{
	raise_task(40);
	ck_assert_uint_eq(raises_rate(&walk, 1000), 999);
	ck_assert(raises_want(&walk, 1000, 0));
	ck_assert_uint_eq(raises_rate(&walk, 1000), 0);
	ck_assert_uint_eq(inner.raises.n, 0);
	ck_assert(raises_want(&walk, 1000, 0));
}

static void close_nothing(void *u, int fd)
{
	(void)u, (void)fd;
}

static uint64_t at_once(void *u)
{
	(void)u;
	return 0;
}

static void unmap_nothing(void *u, void *map, size_t n)
{
	(void)u, (void)map, (void)n;
}

TEST(tasks_are_raised_again_when_a_hart_samples_again)
{
	const struct kernel k = {
		.event_close = close_nothing, .now_ns = at_once, .ring_unmap = unmap_nothing};
	struct ring ring[2] = {{.hart = 0}, {.hart = 1}};
	sampler.kernel = &k;
	sampler.ring = ring;
	sampler.n_rings = 2;
	ck_assert_int_eq(task_add(&walk.tasks, 11, 11, 1, &(struct task *){NULL}), 0);
	struct task *raised = task_find(&walk.tasks, 11);
	raises_look_at_harts(&walk, false);
	ck_assert(raises_want(&walk, 1000, 999));
	struct raise *r = &inner.raises.of[0];
	for (int look = 0; look < 4; look++) {
		raised->raised = 1;
		raised->raised_by = r->task[0] = 11;
		r->n_tasks = 1;
		/* as before; a hart less; it is back; its events are new */
		sampler.n_rings = look == 1 ? 1 : 2;
		raises_look_at_harts(&walk, look == 3);
		ck_assert_uint_eq(raised->raised, look < 2);
		ck_assert_uint_eq(r->n_tasks, look < 2);
		ck_assert_uint_eq(raises_rate(&walk, 1000), 999);
	}
	task_table_clear(&walk.tasks);
}

TEST(more_users_than_there_is_room_for_are_sampled_as_all)
{
	for (uid_t uid = 1; uid <= RAISES_MAX; uid++)
		ck_assert(raises_want(&walk, uid, 999));
	ck_assert(!raises_want(&walk, 1000, 999));
	ck_assert_uint_eq(raises_rate(&walk, 1000), 0);
	ck_assert(raises_want(&walk, 3, 0));
	ck_assert(raises_want(&walk, 1000, 999));
	ck_assert_uint_eq(raises_number(&walk, 1000), 3);
}

TEST(what_takes_more_than_its_part_of_the_time_is_dropped_and_counted)
{
	raise_task(40);
	uint64_t told = 0;
	ck_assert(raises_admit(&walk, 1, 100));
	inner.raises.units = 100;
	raises_charge(&walk, SECOND, SECOND);
	ck_assert(!raises_admit(&walk, 1, 100));
	ck_assert_uint_eq(raises_lost(&walk, 1000, &told), 1);
	ck_assert_uint_eq(raises_lost(&walk, 1000, &told), 0);
	raises_charge(&walk, 0, 2 * SECOND); /* a quarter of a second came */
	ck_assert(!raises_admit(&walk, 1, 100));
	raises_charge(&walk, 0, 6 * SECOND);
	ck_assert(raises_admit(&walk, 1, 100));
}

TEST(the_work_for_others_is_not_charged_to_a_raise)
{
	raise_task(40);
	ck_assert(raises_admit(&walk, 1, 1));
	inner.raises.units = 1000;
	raises_charge(&walk, 1000000, SECOND);
	ck_assert(raises_admit(&walk, 1, 1));
}
