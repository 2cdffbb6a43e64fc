/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What is left of a sample whose user is over the share. */

#include "daemon/session/recording_share.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

#define MB (UINT64_C(1) << 20)

static struct namer_rig rig;
static struct walk walk;
static struct shares shares;
static struct recording_share *share;
static struct task *process, *thread;
static struct frame *frame[3];
static struct attribution a;

static struct task *task_of(pid_t pid, pid_t tid)
{
	struct task *task;
	ck_assert_int_eq(task_add(&walk.tasks, pid, tid, 1, &task), 0);
	task->uid = task->account = 1000;
	return task;
}

static void begin(void)
{
	memset(&walk, 0, sizeof(walk));
	memset(&shares, 0, sizeof(shares));
	namer_rig_begin(&rig, &(struct namer_options){.binary = NULL});
	walk.namer = rig.namer;
	process = task_of(10, 10);
	thread = task_of(10, 11);
	struct file *file;
	struct file_key key = {.kind = FILE_ELF, .path = "/bin/prog", .inode = 1, .major = 1};
	ck_assert_int_eq(file_get(&walk.files, &key, &file), 0);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(frame_get(&walk.files, file, i * 16, &frame[i]), 0);
	shares_allow(&shares, &(struct share_room){16 * MB, 0, 86400 * SECOND, 3600 * SECOND});
	ck_assert_int_eq(recording_share_new(&shares, &walk, &share), 0);
}

/* A process with the label job=NAME, which user 1000 gave it. */
static struct task *process_of_job(pid_t pid, const char *name)
{
	struct task *task = task_of(pid, pid);
	struct label_set *set;
	char json[300];
	snprintf(json, sizeof(json), "{\"job\":\"%s\"}", name);
	ck_assert_int_eq(label_set_get(&walk.tasks.label_sets, 1000, json, &set), 0);
	task_set_labels(&walk.tasks, task, set);
	return task;
}

static void end(void)
{
	share = recording_share_free(share);
	task_table_clear(&walk.tasks);
	file_table_clear(&walk.files);
	namer_rig_end(&rig);
}

EACH_TEST(.begin = begin, .end = end);

/* Bring the user to that level, and cut a sample of its thread. True if it counts as cut. */
static bool cut_at(enum share_level level)
{
	while (share_level(&shares, 1000) < level)
		share_charge(&shares, 1000, 100);
	ck_assert_int_eq(share_level(&shares, 1000), level);
	bool cut;
	a = (struct attribution){.task = thread,
		.count = 2,
		.weight_ns = 7,
		.frame = frame,
		.n_frames = 3,
		.n_reads = 1,
		.read = {{.event = 1, .value = 5}}};
	ck_assert_int_eq(recording_share_cut(share, &a, &cut), 0);
	/* whatever goes, counts stay */
	ck_assert_uint_eq(a.count, 2);
	ck_assert_uint_eq(a.weight_ns, 7);
	ck_assert_uint_eq(a.read[0].value, 5);
	return cut;
}

TEST(who_is_within_the_share_keeps_all)
{
	ck_assert(!cut_at(SHARE_WHOLE));
	ck_assert_uint_eq(a.n_frames, 3);
	ck_assert_ptr_eq(a.task, thread);
	ck_assert(!a.truncated);
	ck_assert_uint_eq(share_user(&shares, 1000)->n_cut, 0);
}

TEST(callers_go_first)
{
	ck_assert(cut_at(SHARE_LEAF));
	ck_assert_uint_eq(a.n_frames, 1);
	ck_assert_ptr_eq(a.frame[0], frame[0]);
	ck_assert_ptr_eq(a.task, thread);
	ck_assert(a.truncated);
	ck_assert_uint_eq(share_user(&shares, 1000)->n_cut, 2);
}

TEST(then_threads)
{
	ck_assert(cut_at(SHARE_PROCESS));
	ck_assert_ptr_eq(a.task, process);
	ck_assert_ptr_eq(a.frame[0], frame[0]);
}

TEST(then_functions)
{
	ck_assert(cut_at(SHARE_FOLDED));
	ck_assert_ptr_eq(a.task, process);
	ck_assert_uint_eq(a.n_frames, 1);
	ck_assert_int_eq(a.frame[0]->state, FRAME_NAMED);
	ck_assert_str_eq(a.frame[0]->place[0].function, "(over the user's share)");
	struct frame *folded = a.frame[0];
	cut_at(SHARE_FOLDED);
	ck_assert_ptr_eq(a.frame[0], folded);
}

TEST(then_processes)
{
	ck_assert(cut_at(SHARE_MERGED));
	ck_assert_str_eq(a.task->comm, "[other]");
	ck_assert_uint_eq(a.task->uid, 1000);
	ck_assert_int_eq(a.task->pid, 0);
	struct task *merged = a.task;
	cut_at(SHARE_MERGED);
	ck_assert_ptr_eq(a.task, merged);
	/* it is nobody that the kernel could mean */
	ck_assert_ptr_null(task_find(&walk.tasks, 0));
}

/* Merge a sample of that process; the task that stands for it. */
static struct task *merged(struct task *of)
{
	bool cut;
	cut_at(SHARE_MERGED);
	a.task = of;
	ck_assert_int_eq(recording_share_cut(share, &a, &cut), 0);
	ck_assert(cut);
	recording_share_charge(share, 1000, 0, 1, 1);
	return a.task;
}

TEST(jobs_stay_apart_when_processes_are_merged)
{
	struct task *lint = process_of_job(20, "lint"), *more = process_of_job(21, "lint"),
		    *build = process_of_job(22, "build");
	struct task *of_lint = merged(lint), *of_build = merged(build), *rest = merged(process);
	ck_assert_ptr_eq(merged(more), of_lint);
	ck_assert_ptr_eq(of_lint->labels, lint->labels);
	ck_assert_ptr_eq(of_build->labels, build->labels);
	ck_assert_ptr_null(rest->labels);
	ck_assert_ptr_ne(of_build, of_lint);
	ck_assert_uint_eq(of_lint->uid, 1000);
	ck_assert_str_eq(of_lint->comm, "[other]");
	ck_assert_uint_eq(share_user(&shares, 1000)->n_unlabelled, 0);
}

/* Samples of jobs that have one each, until one has no room: how many jobs had some. */
static int jobs_until_full(void)
{
	char name[256];
	for (int n = 0; n < LABEL_SETS_USER_MAX; n++) {
		snprintf(name, sizeof(name), "%0250d", n);
		if (!merged(process_of_job(100 + n, name))->labels)
			return n;
	}
	return -1;
}

TEST(a_user_of_very_many_jobs_loses_their_labels_and_those_that_began_do_not)
{
	struct task *lint = process_of_job(20, "lint");
	struct task *of_lint = merged(lint);
	int n = jobs_until_full();
	/* half of an eighth of the pool, at less than 400 bytes a job */
	int64_t bytes = shares.pool_max / 8 / 2;
	ck_assert_int_gt(n, bytes / 400);
	ck_assert_int_le(share_user(&shares, 1000)->jobs, bytes + 400);
	ck_assert_uint_eq(share_user(&shares, 1000)->n_unlabelled, 2);
	ck_assert_ptr_eq(merged(lint), of_lint);
	/* which has an end too */
	for (int64_t i = 0; i <= bytes / SHARE_SAMPLE_BYTES; i++)
		merged(lint);
	ck_assert_ptr_null(merged(lint)->labels);
	/* another user has a room of their own */
	ck_assert(share_has_job_room(&shares, 2000, false));
}

TEST(refills_make_room_for_jobs)
{
	uint64_t now = SECOND;
	int n = jobs_until_full();
	ck_assert_int_gt(n, 0);
	struct task *next = process_of_job(10, "next");
	ck_assert_ptr_null(merged(next)->labels);
	for (; now < 7200 * SECOND && !share_has_job_room(&shares, 1000, false); now += 5 * SECOND)
		recording_share_refill(share, now);
	ck_assert_ptr_eq(merged(next)->labels, next->labels);
}

TEST(a_job_that_is_over_is_forgotten_at_the_second_sweep)
{
	struct task *lint = process_of_job(20, "lint"), *of_lint = merged(lint),
		    *rest = merged(process);
	uint8_t marks[64] = {0};
	struct sweep s = {.task = marks, .n_tasks = sizeof(marks)};
	recording_share_mark(share, &s);
	ck_assert_uint_ne(marks[of_lint->id - 1], 0);
	memset(marks, 0, sizeof(marks));
	recording_share_mark(share, &s);
	ck_assert_uint_eq(marks[of_lint->id - 1], 0);
	ck_assert_uint_ne(marks[rest->id - 1], 0);
	struct task *again = merged(lint);
	ck_assert_ptr_ne(again, of_lint);
	ck_assert_ptr_eq(again->labels, lint->labels);
}

/* Whoever may see the one may not see the other. */
TEST(what_belongs_to_nobody_is_on_its_users_share_and_merged_apart)
{
	struct task *hidden = task_of(30, 30);
	hidden->uid = 0;
	struct task *of_hidden = merged(hidden), *of_user = merged(process);
	ck_assert_ptr_ne(of_hidden, of_user);
	ck_assert_uint_eq(of_hidden->uid, 0);
	ck_assert_uint_eq(task_account(of_hidden), 1000);
	ck_assert_uint_eq(of_user->uid, 1000);
	ck_assert_int_eq(share_level(&shares, 0), SHARE_WHOLE);
}

TEST(others_keep_what_they_have)
{
	cut_at(SHARE_MERGED);
	bool cut = true;
	process->uid = process->account = 2000;
	a = (struct attribution){.task = process, .count = 1, .frame = frame, .n_frames = 3};
	ck_assert_int_eq(recording_share_cut(share, &a, &cut), 0);
	ck_assert(!cut);
	ck_assert_uint_eq(a.n_frames, 3);
}

TEST(what_is_no_sample_or_of_nobody_is_no_trouble)
{
	bool cut = true;
	cut_at(SHARE_MERGED);
	a = (struct attribution){.task = thread, .n_reads = 1};
	ck_assert_int_eq(recording_share_cut(share, &a, &cut), 0);
	ck_assert(!cut);
	ck_assert_uint_eq(a.n_frames, 0);
	share_charge(&shares, (uid_t)-1, 100 * MB);
	a = (struct attribution){.count = 1, .frame = frame, .n_frames = 2};
	ck_assert_int_eq(recording_share_cut(share, &a, &cut), 0);
	ck_assert(cut);
	ck_assert_ptr_null(a.task);
}

TEST(a_recording_without_limits_cuts_nothing)
{
	bool cut = true;
	a = (struct attribution){.task = thread, .count = 1, .frame = frame, .n_frames = 3};
	ck_assert_int_eq(recording_share_cut(NULL, &a, &cut), 0);
	ck_assert(!cut);
	ck_assert_uint_eq(a.n_frames, 3);
	ck_assert(recording_share_has_room(NULL, 1000));
	ck_assert_ptr_null(recording_share_all(NULL));
	recording_share_charge(NULL, 1000, 1, 1, 1);
	recording_share_refill(NULL, SECOND);
	recording_share_mark(NULL, NULL);
}

TEST(loops_are_stored_as_long_as_functions_are)
{
	cut_at(SHARE_PROCESS);
	ck_assert(recording_share_has_room(share, 1000));
	cut_at(SHARE_FOLDED);
	ck_assert(!recording_share_has_room(share, 1000));
	ck_assert(recording_share_has_room(share, 2000));
}
