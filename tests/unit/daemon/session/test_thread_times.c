/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/thread_times.c, on tasks made by hand and a folder like /proc. Looks are now; what the clock
 * adds to a test's times is less than SLACK. */

#include "daemon/session/thread_times.h"

#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/test.h"

#define SLACK (SECOND / 2)
#define PID 10

static char proc[] = "/tmp/mperf-times-XXXXXX";
static struct task_table tasks;
static struct targets targets;
static struct thread_times *times;
static struct task *leader, *thread;
static struct window window;
static uint64_t now_ns;

static const char *path_of(pid_t tid, const char *what)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%d/task/%d%s", proc, PID, (int)tid, what);
	return path;
}

static void says(pid_t tid, const char *text)
{
	char folder[128];
	snprintf(folder, sizeof(folder), "%s/%d", proc, PID);
	(void)mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/%d/task", proc, PID);
	(void)mkdir(folder, 0700);
	(void)mkdir(path_of(tid, ""), 0700);
	FILE *f = fopen(path_of(tid, "/schedstat"), "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void gone(pid_t tid)
{
	(void)unlink(path_of(tid, "/schedstat"));
}

/* A process that has lived for a minute, since when it is recorded, and a thread of ten seconds ago. */
static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(proc));
	now_ns = clock_ns(CLOCK_MONOTONIC);
	ck_assert_uint_gt(now_ns, 60 * SECOND);
	ck_assert_int_eq(task_add(&tasks, PID, PID, now_ns - 60 * SECOND, &leader), 0);
	ck_assert_int_eq(task_add(&tasks, PID, PID + 1, now_ns - 10 * SECOND, &thread), 0);
	leader->wanted = thread->wanted = true;
	targets = (struct targets){.since_ns = now_ns - 60 * SECOND, .pid = {PID}, .n_pids = 1};
	ck_assert_int_eq(thread_times_new(&targets, &tasks, proc, now_ns - 60 * SECOND, &times), 0);
}

static void end(void)
{
	thread_times_free(times);
	window_clear(&window);
	task_table_clear(&tasks);
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", proc);
	ck_assert_int_eq(system(command), 0);
}

EACH_TEST(.begin = begin, .end = end);

static struct window_time sum_of(const struct task *task)
{
	struct window_time sum = {};
	ck_assert_int_eq(thread_times_give(times, &window), 0);
	for (uint32_t i = 0; i < window.n_times; i++)
		if (window.time[i].who == task) {
			sum.lived_ns += window.time[i].lived_ns;
			sum.ran_ns += window.time[i].ran_ns;
			sum.ready_ns += window.time[i].ready_ns;
			sum.unsplit_ns += window.time[i].unsplit_ns;
		}
	return sum;
}

static void sampled(uint64_t time_ns, uint64_t weight_ns)
{
	thread_times_sample(times,
		&(struct attribution){
			.task = thread, .time_ns = time_ns, .weight_ns = weight_ns, .event = 2});
	/* by another event, which has the same time */
	thread_times_sample(times,
		&(struct attribution){
			.task = thread, .time_ns = time_ns, .weight_ns = weight_ns, .event = 1});
}

static void is_about(uint64_t value, uint64_t expected)
{
	ck_assert_uint_ge(value, expected);
	ck_assert_uint_lt(value, expected + SLACK);
}

TEST(a_thread_that_began_meanwhile_has_all_that_linux_counts)
{
	says(PID, "20000000000 10000000000 7\n");
	says(PID + 1, "3000000000 2000000000 5\n");
	thread_times_look(times, now_ns);
	const struct window_time it = sum_of(thread), its_leader = sum_of(leader);
	is_about(it.lived_ns, 10 * SECOND);
	ck_assert_uint_eq(it.ran_ns, 3 * SECOND);
	ck_assert_uint_eq(it.ready_ns, 2 * SECOND);
	ck_assert_uint_eq(it.unsplit_ns, 0);
	is_about(its_leader.lived_ns, 60 * SECOND);
	ck_assert_uint_eq(its_leader.ran_ns, 20 * SECOND);
	ck_assert(thread->used && leader->used);
}

TEST(of_an_older_thread_only_what_is_counted_from_the_first_look_on)
{
	thread_times_free(times);
	ck_assert_int_eq(thread_times_new(&targets, &tasks, proc, now_ns - SECOND, &times), 0);
	says(PID + 1, "3000000000 2000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	says(PID + 1, "3000001000 2000000500 5\n");
	thread_times_look_at_all(times, now_ns);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_lt(it.lived_ns, SLACK);
	ck_assert_uint_le(it.ran_ns, 1000);
	ck_assert_uint_le(it.ready_ns, 500);
}

TEST(what_is_given_is_not_given_again)
{
	says(PID + 1, "3000000000 2000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	is_about(sum_of(thread).lived_ns, 10 * SECOND);
	window_clear(&window);
	thread_times_look_at_all(times, now_ns);
	ck_assert_uint_lt(sum_of(thread).lived_ns, SLACK);
}

TEST(after_the_last_look_samples_say_when_it_had_a_hart_and_the_past_how_it_waited)
{
	says(PID + 1,
		"2000000000 2000000000 5\n"); /* of 8 s without a hart it waited for one for 2 */
	thread_times_look_at_all(times, now_ns);
	const uint64_t looked_ns = now_ns + SLACK;
	sampled(looked_ns, SECOND);
	thread_times_end(times, thread, now_ns + 5 * SECOND);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.lived_ns, 15 * SECOND);
	ck_assert_uint_eq(it.ran_ns, 3 * SECOND);
	ck_assert_uint_gt(it.ready_ns, 2 * SECOND + 8 * SECOND / 10); /* 4 s, a quarter of them */
	ck_assert_uint_le(it.ready_ns, 3 * SECOND);
	ck_assert_uint_eq(it.unsplit_ns, 0);
}

TEST(a_thread_that_ends_before_the_first_look_has_samples_alone)
{
	sampled(now_ns - 9 * SECOND, 4 * SECOND);
	thread_times_end(times, thread, now_ns);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.lived_ns, 10 * SECOND);
	ck_assert_uint_eq(it.ran_ns, 4 * SECOND);
	ck_assert_uint_eq(it.ready_ns, 0);
	ck_assert_uint_eq(it.unsplit_ns, 6 * SECOND);
}

/* Its callers came late. */
TEST(a_sample_may_come_after_the_end_of_its_thread)
{
	task_end(&tasks, thread, now_ns);
	thread_times_end(times, thread, now_ns);
	sampled(now_ns - SECOND, 4 * SECOND);
	sampled(now_ns - SECOND, 4 * SECOND);
	sampled(now_ns - SECOND, 4 * SECOND);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.ran_ns, 10 * SECOND); /* and no more than there is */
	ck_assert_uint_eq(it.unsplit_ns, 0);
}

/* Linux tells of it when it ends. */
TEST(a_wait_for_a_hart_longer_than_a_look_is_one)
{
	says(PID + 1, "1000000000 1000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	says(PID + 1, "1000001000 9000000000 6\n"); /* all but a second */
	thread_times_look_at_all(times, now_ns);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.ready_ns, 9 * SECOND);
	ck_assert_uint_le(it.ran_ns, SECOND + 1000);
}

TEST(a_thread_that_is_no_target_any_more_is_read_no_further)
{
	says(PID + 1, "1000000000 1000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	targets.only_uid = true; /* it execs a program of another user's */
	targets.uid = 1000;
	says(PID + 1, "5000000000 1000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	thread_times_end(times, thread, now_ns + 5 * SECOND);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.ran_ns, SECOND);
	is_about(it.lived_ns, 10 * SECOND);
}

TEST(at_the_end_all_threads_are_read)
{
	struct task *last = NULL;
	for (int i = 0; i < 600; i++) {
		ck_assert_int_eq(task_add(&tasks, PID, PID + 2 + i, now_ns - SECOND, &last), 0);
		says(PID + 2 + i, "500000000 0 1\n");
	}
	thread_times_look_at_all(times, now_ns);
	ck_assert_uint_eq(sum_of(last).ran_ns, SECOND / 2);
}

TEST(more_samples_than_time_are_all_of_it)
{
	sampled(now_ns, 40 * SECOND);
	thread_times_end(times, thread, now_ns);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.ran_ns, 10 * SECOND);
	ck_assert_uint_eq(it.unsplit_ns, 0);
}

TEST(a_linux_that_does_not_count_leaves_samples_alone)
{
	says(PID + 1, "0 0 0\n");
	thread_times_look_at_all(times, now_ns);
	gone(PID + 1);
	thread_times_look_at_all(times, now_ns);
	says(PID + 1, "abc");
	thread_times_look_at_all(times, now_ns);
	thread_times_end(times, thread, now_ns);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.lived_ns, 10 * SECOND);
	ck_assert_uint_eq(it.unsplit_ns, 10 * SECOND);
}

/* Another thread has that number: its counts are lower. */
TEST(counts_that_fall_are_not_subtracted)
{
	says(PID + 1, "3000000000 2000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	says(PID + 1, "1000 2000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	const struct window_time it = sum_of(thread);
	ck_assert_uint_eq(it.ran_ns, 3 * SECOND);
	ck_assert_uint_lt(it.lived_ns, 10 * SECOND + SLACK);
}

TEST(a_thread_that_execs_goes_on_as_another_task)
{
	struct task *after;
	says(PID + 1, "3000000000 2000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	task_end(&tasks, thread, now_ns);
	const struct task_key key = {PID, PID + 1, thread->start_ns};
	ck_assert_int_eq(task_add_for(&tasks, &key, 0, &after), 0);
	after->wanted = true;
	says(PID + 1, "3000001000 2000000000 5\n");
	thread_times_look_at_all(times, now_ns);
	is_about(sum_of(thread).lived_ns, 10 * SECOND);
	ck_assert_uint_lt(sum_of(after).lived_ns, SLACK);
}

TEST(others_are_not_followed)
{
	struct task *other, *kernel;
	ck_assert_int_eq(task_add(&tasks, 99, 99, now_ns - SECOND, &other), 0);
	ck_assert_int_eq(task_add(&tasks, PID, PID + 2, now_ns - SECOND, &kernel), 0);
	kernel->kernel_thread = true;
	thread_times_look_at_all(times, now_ns);
	thread_times_end(times, other, now_ns);
	thread_times_end(times, kernel, now_ns);
	ck_assert_uint_eq(sum_of(other).lived_ns + sum_of(kernel).lived_ns, 0);
	ck_assert_uint_eq(window.n_times, 0);

	/* a walk of one recording knows tasks that it does not want */
	targets.all = true;
	thread->wanted = false;
	thread_times_end(times, thread, now_ns);
	ck_assert_uint_eq(sum_of(thread).lived_ns, 0);
}

TEST(more_threads_than_it_follows_are_left_out)
{
	struct task *last = NULL;
	for (int i = 0; i < (int)THREAD_TIMES_MAX + 10; i++)
		ck_assert_int_eq(task_add(&tasks, PID, PID + 2 + i, now_ns - SECOND, &last), 0);
	thread_times_look_at_all(times, now_ns);
	thread_times_end(times, last, now_ns);
	ck_assert_uint_eq(sum_of(last).lived_ns, 0);
}

TEST(without_times_nothing_happens)
{
	thread_times_look(NULL, now_ns);
	thread_times_sample(NULL, &(struct attribution){.task = thread});
	thread_times_end(NULL, thread, now_ns);
	ck_assert_int_eq(thread_times_give(NULL, &window), 0);
	ck_assert_ptr_null(thread_times_free(NULL));
}

/* --- what threads wait for -------------------------------------------------------------------- */

static struct thread_wait wait_of(const char *stat, const char *wchan)
{
	struct thread_wait wait = {.kind = N_OFFCPU_KINDS};
	char text[128];
	says(PID, "1 1 1\n");
	snprintf(text, sizeof(text), "%s", path_of(PID, "/stat"));
	FILE *f = fopen(text, "w");
	ck_assert(f && fputs(stat, f) >= 0 && fclose(f) == 0);
	snprintf(text, sizeof(text), "%s", path_of(PID, "/wchan"));
	f = fopen(text, "w");
	ck_assert(f && fputs(wchan, f) >= 0 && fclose(f) == 0);
	if (!thread_wait_read(proc, PID, PID, &wait))
		wait.kind = N_OFFCPU_KINDS;
	return wait;
}

TEST(the_kernels_function_tells_what_a_thread_waits_for)
{
	static const struct {
		const char *stat, *wchan;
		enum offcpu_kind kind;
	} all[] = {
		{"10 (p) S 1", "futex_do_wait", OFFCPU_LOCK},
		{"10 (p) S 1", "hrtimer_nanosleep", OFFCPU_SLEEP},
		{"10 (p) S 1", "anon_pipe_read", OFFCPU_PIPE},
		{"10 (p) S 1", "poll_schedule_timeout.constprop.0", OFFCPU_POLL},
		{"10 (p) S 1", "do_wait", OFFCPU_CHILD},
		{"10 (p) S 1", "unix_stream_read_generic", OFFCPU_NETWORK},
		{"10 (p) S 1", "n_tty_read", OFFCPU_DEVICE},
		{"10 (p) D 1", "folio_wait_bit_common", OFFCPU_DISK},
		{"10 (p) D 1", "rwsem_down_read_slowpath", OFFCPU_LOCK},
		{"10 (p) T 1", "do_signal_stop", OFFCPU_STOPPED},
		{"10 (a) R (b) S 1", "futex_wait", OFFCPU_LOCK},
		{"10 (p) S 1", "something_new", OFFCPU_OTHER},
		{"10 (p) S 1", "0", OFFCPU_OTHER},
		/* it runs, or is no thread */
		{"10 (p) R 1", "0", N_OFFCPU_KINDS},
		{"10 (p) Z 1", "0", N_OFFCPU_KINDS},
		{"10 (p", "0", N_OFFCPU_KINDS},
		{"", "", N_OFFCPU_KINDS},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		ck_assert_msg(wait_of(all[i].stat, all[i].wchan).kind == all[i].kind, "%s %s",
			all[i].stat, all[i].wchan);
	ck_assert_str_eq(wait_of("10 (p) S 1", "futex_do_wait").function, "futex_do_wait");
	ck_assert_str_eq(wait_of("10 (p) S 1", "0").function, "");
}

static uint64_t told_ns;

static void note(void *userdata, struct task *task, const struct thread_wait *wait, uint64_t at_ns,
	uint64_t weight_ns)
{
	ck_assert_ptr_eq(userdata, &told_ns);
	ck_assert_ptr_eq(task, leader);
	ck_assert_int_eq(wait->kind, OFFCPU_LOCK);
	ck_assert_uint_ge(at_ns, now_ns);
	told_ns += weight_ns;
}

TEST(a_look_at_a_thread_that_waits_stands_for_the_time_since_the_look_before)
{
	(void)wait_of("10 (p) S 1", "futex_do_wait");
	told_ns = 0;
	thread_times_watch(times, note, NULL, &told_ns);
	thread_times_look_at_all(times, now_ns);
	ck_assert_uint_ge(told_ns, 60 * SECOND);
	ck_assert_uint_le(told_ns, 60 * SECOND + SLACK);
	thread_times_look_at_all(times, clock_ns(CLOCK_MONOTONIC));
	ck_assert_uint_le(told_ns, 60 * SECOND + SLACK);
}
