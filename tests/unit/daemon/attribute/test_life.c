/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/life.c: samples keep the name, cgroup and program that their thread had */

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/sweep.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct bench *b;

/* Process 10 is "prog", with /bin/prog mapped at 0x10000. */
static void setup(void)
{
	b = bench_new();
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
	bench_map(b, 10, 0x10000, 0x1000, "/bin/prog");
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void sample_of(pid_t tid, uint64_t time_ns, uint64_t cgroup)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 10, 0x10020);

	r.tid = (uint32_t)tid;
	r.sample.cgroup = cgroup;
	bench_take(b, &r, 0);
}

static const struct task *of(size_t i)
{
	return bench_got(b, i)->task;
}

TEST(samples_keep_the_name_that_their_thread_had)
{
	sample_of(10, 2 * SECOND, 0);
	const struct task *first = of(0);
	bench_comm(b, 3 * SECOND, 10, "second", false);
	sample_of(10, 4 * SECOND, 0);
	ck_assert_str_eq(first->comm, "prog");
	ck_assert_uint_ne(of(1)->id, first->id);
	ck_assert_str_eq(of(1)->comm, "second");
	ck_assert_uint_eq(of(1)->start_ns, first->start_ns);
	ck_assert_int_eq(of(1)->tid, 10);
	/* the same name again, or one before any sample, is no other task */
	bench_comm(b, 5 * SECOND, 10, "second", false);
	sample_of(10, 6 * SECOND, 0);
	ck_assert_ptr_eq(of(2), of(1));
	bench_comm(b, 7 * SECOND, 10, "third", false);
	const struct task *third = task_find(&b->tasks, 10);
	bench_comm(b, 7 * SECOND, 10, "fourth", false);
	ck_assert_ptr_eq(task_find(&b->tasks, 10), third);
	ck_assert_str_eq(third->comm, "fourth");
}

TEST(a_thread_of_a_process_keeps_its_names_too)
{
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(11, 2 * SECOND, 0);
	struct record r = bench_record(b, RECORD_COMM, 3 * SECOND, 10);
	r.tid = 11;
	r.comm.name = "worker";
	bench_take(b, &r, 0);
	sample_of(11, 4 * SECOND, 0);
	ck_assert_str_eq(of(0)->comm, "prog");
	ck_assert_str_eq(of(1)->comm, "worker");
	ck_assert_ptr_eq(of(1)->process, of(0)->process);
	ck_assert_uint_eq(of(1)->process->n_threads, 2);
}

TEST(who_changes_its_name_without_end_makes_no_tasks_without_end)
{
	char name[32];

	for (int i = 0; i < 10 * TASK_PASTS_MAX; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		bench_comm(b, (uint64_t)(2 + i) * SECOND, 10, name, false);
		sample_of(10, (uint64_t)(2 + i) * SECOND + 1, 0);
	}
	ck_assert_uint_le(b->tasks.n_tasks, TASK_PASTS_MAX + 4);
	ck_assert_str_eq(task_find(&b->tasks, 10)->comm, name);
}

TEST(samples_keep_the_cgroup_that_their_thread_was_in)
{
	static const char *const path[] = {"/a", "/b"};

	for (uint64_t i = 0; i < 2; i++) {
		struct record r = bench_record(b, RECORD_CGROUP, SECOND, 0);
		r.cgroup.id = 55 + i;
		r.cgroup.path = path[i];
		bench_take(b, &r, 0);
	}
	sample_of(10, 2 * SECOND, 55);
	sample_of(10, 3 * SECOND, 56);
	sample_of(10, 4 * SECOND, 56);
	ck_assert_uint_eq(of(0)->cgroup, 55);
	ck_assert_uint_eq(of(1)->cgroup, 56);
	ck_assert_str_eq(bench_got(b, 1)->cgroup->path, "/b");
	ck_assert_ptr_eq(of(2), of(1));
}

/* --- a first thread that has others ------------------------------------------------------------ */

static struct task *live(int tid)
{
	struct task *task = task_find(&b->tasks, tid);

	ck_assert_ptr_nonnull(task);
	return task;
}

static void name_of(int tid, uint64_t time_ns, const char *name)
{
	struct record r = bench_record(b, RECORD_COMM, time_ns, 10);

	r.tid = (uint32_t)tid;
	r.comm.name = name;
	bench_take(b, &r, 0);
}

static void sweep(void)
{
	ck_assert_int_eq(attribute_sweep(b->attribute, NULL, NULL), 0);
}

TEST(a_first_thread_with_others_keeps_its_names)
{
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(10, 2 * SECOND, 0);
	bench_comm(b, 3 * SECOND, 10, "second", false);
	sample_of(10, 4 * SECOND, 0);
	ck_assert_str_eq(of(0)->comm, "prog");
	ck_assert_str_eq(of(1)->comm, "second");
	ck_assert_ptr_eq(of(1), live(10));
	ck_assert_uint_eq(of(1)->start_ns, of(0)->start_ns);
	ck_assert_uint_eq(of(0)->n_threads, 0);
	ck_assert_uint_eq(of(1)->n_threads, 2);
	/* nothing was sampled of the other thread: it is the same task, of the process as it is now */
	ck_assert_ptr_eq(live(11)->process, of(1));
	sample_of(11, 5 * SECOND, 0);
	ck_assert_ptr_eq(task_space(of(2)), task_space(of(1)));
	ck_assert_ptr_eq(bench_got(b, 2)->frame[0]->file, bench_got(b, 0)->frame[0]->file);
}

TEST(samples_of_its_other_threads_stay_with_the_process_that_had_that_name)
{
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(11, 2 * SECOND, 0);
	bench_comm(b, 3 * SECOND, 10, "second", false);
	sample_of(11, 4 * SECOND, 0);
	ck_assert_str_eq(of(0)->process->comm, "prog");
	ck_assert_str_eq(of(1)->process->comm, "second");
	ck_assert_ptr_eq(of(1)->process, live(10));
	ck_assert_str_eq(of(1)->comm, of(0)->comm);
	ck_assert_uint_eq(live(10)->n_threads, 2);
}

TEST(threads_of_a_process_that_went_on_end_and_begin_in_it)
{
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(10, 2 * SECOND, 0);
	sample_of(11, 2 * SECOND, 0);
	const struct task *first = of(0);
	bench_comm(b, 3 * SECOND, 10, "second", false);
	bench_fork(b, 4 * SECOND, 10, 12, 11);
	ck_assert_ptr_eq(live(12)->process, live(10));
	ck_assert_uint_eq(live(10)->n_threads, 3);
	bench_exit(b, 5 * SECOND, 10, 11);
	bench_exit(b, 5 * SECOND, 10, 12);
	ck_assert_uint_eq(live(10)->n_threads, 1);
	sample_of(10, 6 * SECOND, 0);
	const struct task *last = live(10);
	bench_exit(b, 7 * SECOND, 10, 10);
	ck_assert_uint_eq(last->n_threads, 0);
	ck_assert_uint_eq(first->n_threads, 0);
	sweep();
	ck_assert_uint_eq(HASH_COUNT(b->tasks.live), 0);
}

TEST(a_process_of_many_names_is_swept_whole)
{
	char name[32];

	for (int tid = 11; tid < 30; tid++)
		bench_fork(b, SECOND, 10, tid, 10);
	for (int i = 0; i < 10; i++) {
		uint64_t time_ns = (uint64_t)(2 + i) * SECOND;

		snprintf(name, sizeof(name), "name-%d", i);
		sample_of(11 + i, time_ns, 0);
		sample_of(10, time_ns, 0);
		bench_comm(b, time_ns + 1, 10, name, false);
		if (i % 3 == 0)
			bench_exit(b, time_ns + 2, 10, 11 + i);
		sweep();
	}
	ck_assert_uint_eq(live(10)->n_threads, 16);
	for (int tid = 10; tid < 30; tid++) {
		const struct task *task = task_find(&b->tasks, tid);

		if (task)
			ck_assert_ptr_eq(task->process, live(10));
	}
}

TEST(a_first_thread_that_changes_its_name_without_end_makes_no_tasks_without_end)
{
	char name[32];

	bench_fork(b, SECOND, 10, 11, 10);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		bench_comm(b, (uint64_t)(2 + i) * MS, 10, name, false);
		b->n_sunk = 0;
		sample_of(10, (uint64_t)(2 + i) * MS + 1, 0);
		sample_of(11, (uint64_t)(2 + i) * MS + 1, 0);
	}
	ck_assert_uint_le(b->tasks.n_tasks, 2 * TASK_PASTS_MAX + 4);
	ck_assert_str_eq(live(10)->comm, name);
	ck_assert_ptr_eq(live(11)->process, live(10));
	/* a thread's own names count beside those of its process */
	ck_assert_uint_eq(live(11)->n_pasts, 0);
}

TEST(without_room_for_all_of_its_threads_the_last_name_holds)
{
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(10, 2 * SECOND, 0);
	sample_of(11, 2 * SECOND, 0);
	bench_fill(b, task_account(of(0)), 1);
	bench_comm(b, 3 * SECOND, 10, "second", false);
	ck_assert_ptr_eq(live(10), of(0));
	ck_assert_str_eq(of(0)->comm, "second");
	ck_assert_ptr_eq(live(11), of(1));
	/* for the one there is */
	name_of(11, 4 * SECOND, "worker");
	ck_assert_ptr_ne(live(11), of(1));
	ck_assert_ptr_eq(live(11)->process, live(10));
}

TEST(a_cgroup_that_a_process_with_threads_left_keeps_its_samples)
{
	for (uint64_t i = 0; i < 2; i++) {
		struct record r = bench_record(b, RECORD_CGROUP, SECOND, 0);
		r.cgroup.id = 55 + i;
		r.cgroup.path = i ? "/b" : "/a";
		bench_take(b, &r, 0);
	}
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(10, 2 * SECOND, 55);
	sample_of(11, 2 * SECOND, 55);
	sample_of(10, 3 * SECOND, 56);
	sample_of(11, 3 * SECOND, 56);
	ck_assert_uint_eq(of(0)->cgroup, 55);
	ck_assert_uint_eq(of(1)->cgroup, 55);
	ck_assert_uint_eq(of(1)->process->cgroup, 55);
	ck_assert_uint_eq(of(2)->cgroup, 56);
	ck_assert_uint_eq(of(3)->cgroup, 56);
	ck_assert_ptr_eq(of(3)->process, of(2));
}

/* One of the same place among those that ended has its mappings dropped. */
TEST(who_goes_on_keeps_its_mappings_whoever_ended_before)
{
	const int tid = 10 + ENDED_SLOTS;

	bench_fork(b, SECOND, 10, tid, 10);
	sample_of(tid, 2 * SECOND, 0);
	bench_exit(b, 2 * SECOND + 1, 10, tid);
	sample_of(10, 3 * SECOND, 0);
	bench_comm(b, 4 * SECOND, 10, "second", false);
	ck_assert_ptr_nonnull(task_space(live(10)));
}

static void process_lives(pid_t pid, uint64_t from_ns, uint64_t to_ns)
{
	bench_fork(b, from_ns, pid, pid, 10);
	bench_map(b, pid, 0x20000, 0x1000, "/bin/other");
	bench_exit(b, to_ns, pid, pid);
}

/* Without a sweep: many may end before the next. */
TEST(mappings_of_what_ended_long_ago_are_dropped_as_others_end)
{
	process_lives(30, 2 * SECOND, 3 * SECOND);
	process_lives(31, 7 * SECOND, 8 * SECOND);
	ck_assert_ptr_nonnull(task_space(task_find_dead(&b->tasks, 30)));
	process_lives(32, 13 * SECOND, 14 * SECOND);
	ck_assert_ptr_null(task_space(task_find_dead(&b->tasks, 30)));
	ck_assert_ptr_nonnull(task_space(task_find_dead(&b->tasks, 31)));
	ck_assert_ptr_nonnull(task_space(task_find_dead(&b->tasks, 32)));
}

/* --- a first thread that turns up late --------------------------------------------------------- */

static void sample_of_late(int tid, uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 20, 0x10020);

	r.tid = (uint32_t)tid;
	bench_take(b, &r, 0);
}

static void name_of_late(int tid, uint64_t time_ns, const char *name)
{
	struct record r = bench_record(b, RECORD_COMM, time_ns, 20);

	r.tid = (uint32_t)tid;
	r.comm.name = name;
	bench_take(b, &r, 0);
}

/* Threads 21, 22 and 23 of process 20, whose first thread no record mentioned: 21 is taken for the process. Samples came
 * of 21 and 22. Then one of the first thread comes. */
static void leader_turns_up(void)
{
	bench_fork(b, SECOND, 20, 21, 1);
	for (int tid = 22; tid <= 23; tid++) {
		struct record r = bench_record(b, RECORD_FORK, SECOND + 1, 20);

		r.tid = (uint32_t)tid;
		r.fork.parent_pid = 20;
		r.fork.parent_tid = 21;
		bench_take(b, &r, 0);
		ck_assert_ptr_eq(live(tid)->process, live(21));
	}
	name_of_late(21, SECOND + 2, "first");
	sample_of_late(21, 2 * SECOND);
	sample_of_late(22, 2 * SECOND);
	sample_of_late(20, 3 * SECOND);
	ck_assert_ptr_eq(live(20)->process, live(20));
	ck_assert_ptr_eq(live(21)->process, live(21));
}

TEST(a_thread_whose_leader_turns_up_late_joins_it_with_its_threads)
{
	leader_turns_up();
	struct task *first = live(21), *second = live(22), *third = live(23);
	name_of_late(21, 4 * SECOND, "worker");

	/* samples stay with the process that they were taken of */
	ck_assert(first->end_ns && first->process == first && first->n_threads == 0);
	ck_assert(second->end_ns && second->process == first);
	/* the threads continue in the leader; one without samples is the same task */
	ck_assert(live(21) != first && live(22) != second && live(23) == third);
	for (int tid = 21; tid <= 23; tid++)
		ck_assert_ptr_eq(live(tid)->process, live(20));
	ck_assert_uint_eq(live(20)->n_threads, 4);
	ck_assert_str_eq(live(21)->comm, "worker");
	ck_assert_uint_eq(live(21)->start_ns, first->start_ns);

	sample_of_late(22, 5 * SECOND);
	ck_assert_ptr_eq(of(3), live(22));
	ck_assert_ptr_eq(of(3)->process, live(20));
}

TEST(a_leader_that_turned_up_late_ends_with_its_threads)
{
	leader_turns_up();
	name_of_late(21, 4 * SECOND, "worker");
	for (int tid = 23; tid >= 20; tid--)
		bench_exit(b, 5 * SECOND, 20, tid);
	ck_assert_uint_eq(of(2)->n_threads, 0);
	sweep();
	ck_assert_ptr_null(task_find(&b->tasks, 21));
	ck_assert_uint_eq(HASH_COUNT(b->tasks.live), 1); /* process 10 */
}

/* --- an exec ----------------------------------------------------------------------------------- */

TEST(samples_from_before_an_exec_are_of_the_program_before)
{
	sample_of(10, 2 * SECOND, 0);
	bench_comm(b, 3 * SECOND, 10, "next", true);
	sample_of(10, 4 * SECOND, 0);
	ck_assert_str_eq(of(0)->comm, "prog");
	ck_assert_str_eq(of(1)->comm, "next");
	ck_assert_uint_eq(of(1)->start_ns, of(0)->start_ns);
	ck_assert_uint_eq(of(1)->exec_ns, 3 * SECOND);
	ck_assert_str_eq(of(0)->exe, "/bin/prog");
	ck_assert_ptr_null(of(1)->exe);
	/* one that was not sampled is the same task */
	bench_comm(b, 5 * SECOND, 10, "third", true);
	struct task *third = live(10);
	bench_comm(b, 6 * SECOND, 10, "fourth", true);
	ck_assert_ptr_eq(live(10), third);
}

TEST(samples_of_threads_that_an_exec_ended_are_of_the_program_before)
{
	bench_fork(b, SECOND, 10, 11, 10);
	sample_of(11, 2 * SECOND, 0);
	bench_exit(b, 3 * SECOND, 10, 11);
	bench_comm(b, 3 * SECOND + 1, 10, "next", true);
	ck_assert_str_eq(of(0)->process->comm, "prog");
	ck_assert_str_eq(live(10)->comm, "next");
}

TEST(a_program_may_have_as_many_names_as_the_one_before)
{
	char name[32];
	uint64_t time_ns = 2 * SECOND;

	for (int i = 0; i < 4 * TASK_PASTS_MAX; i++, time_ns += SECOND) {
		snprintf(name, sizeof(name), "name-%d", i);
		bench_comm(b, time_ns, 10, name, i == 2 * TASK_PASTS_MAX);
		sample_of(10, time_ns + 1, 0);
	}
	ck_assert_uint_ge(b->tasks.n_tasks, 2 * TASK_PASTS_MAX);
	ck_assert_uint_le(b->tasks.n_tasks, 2 * (TASK_PASTS_MAX + 1) + 2);
}
