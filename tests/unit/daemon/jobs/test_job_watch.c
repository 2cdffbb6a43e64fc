/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/jobs/job_watch.c, on tasks made by hand: which unit a path is of, and which jobs
 * begin and end. */

#include "daemon/jobs/job_watch.h"
#include "tests/unit/test.h"

static struct walk walk;
static struct job_watch watch;
static uint64_t now_ns;

static void end(void)
{
	job_watch_clear(&watch, &walk);
	task_table_clear(&walk.tasks);
}

EACH_TEST(.end = end);

static void is_unit(const char *path, const char *unit)
{
	const char *at = NULL;
	size_t n = job_watch_unit(path, &at);
	ck_assert_msg(n == strlen(unit) && memcmp(at ? at : "", unit, n) == 0, "%s: %zu", path, n);
}

TEST(the_first_component_that_is_no_slice_is_the_unit)
{
	is_unit("/system.slice/ci-1.service", "ci-1.service");
	is_unit("/ci-1.service", "ci-1.service");
	is_unit("/system.slice/system-ci.slice/ci@1.service/a/b", "ci@1.service");
	is_unit("/init.scope", "init.scope");
	is_unit("/system.slice/_cpu.service", "cpu.service");
}

TEST(what_a_user_calls_its_units_does_not_count)
{
	is_unit("/user.slice/user-1000.slice/user@1000.service/app.slice/ci-1.service",
		"user@1000.service");
	is_unit("/system.slice/a.service/ci-1.service", "a.service");
}

TEST(control_groups_of_others_are_no_units)
{
	is_unit("/", "");
	is_unit("", "");
	is_unit("/docker/0123456789", "");
	is_unit("/system.slice", "");
	is_unit("/../ci-1.service", "");
	is_unit("/docker/ci-1.service", "");
	is_unit("ci-1.service", "");
}

/* --- jobs ------------------------------------------------------------------------------------- */

static struct task *lives(pid_t pid)
{
	struct task *t;
	ck_assert_int_eq(task_add(&walk.tasks, pid, pid, 1, &t), 0);
	t->uid = 1000;
	return t;
}

static void label(struct task *t, const char *json)
{
	struct label_set *set;
	ck_assert_int_eq(label_set_get(&walk.tasks.label_sets, 1000, json, &set), 0);
	task_set_labels(&walk.tasks, t, set);
}

static void look(uint64_t after_ns)
{
	now_ns += after_ns;
	watch.next_look_ns = 0;
	ck_assert(job_watch_look(&watch, &walk, now_ns));
}

static struct watched_job *only_job(void)
{
	ck_assert_uint_eq(HASH_COUNT(watch.job), 1);
	return watch.job;
}

TEST(a_job_begins_with_its_first_process_and_ends_after_its_last)
{
	now_ns = SECOND;
	job_watch_set(&watch, &walk, true, false);
	look(0);
	struct task *t = lives(10);
	label(t, "{\"job\":\"a\"}");
	look(MS);
	ck_assert(only_job()->is_new && !only_job()->is_old && !only_job()->gone);
	ck_assert_uint_eq(only_job()->uid, 1000);
	look(MS);
	ck_assert(!only_job()->is_new);
	watch.job->n_users = 1;
	task_end(&walk.tasks, t, now_ns);
	look(10 * JOB_GONE_NS); /* a look that comes late decides nothing */
	ck_assert(!only_job()->gone);
	look(JOB_GONE_NS - 1);
	ck_assert(!only_job()->gone);
	look(1);
	ck_assert(only_job()->gone);
	watch.job->n_users = 0;
	look(MS);
	ck_assert_uint_eq(HASH_COUNT(watch.job), 0);
}

TEST(what_runs_already_is_old)
{
	label(lives(10), "{\"job\":\"a\"}");
	job_watch_set(&watch, &walk, true, false);
	look(0);
	ck_assert(only_job()->is_new && only_job()->is_old);
	label(lives(11), "{\"job\":\"b\"}");
	look(MS);
	struct watched_job *job;
	unsigned n_old = 0;
	for (job = watch.job; job; job = job->hh.next)
		n_old += job->is_old;
	ck_assert_uint_eq(n_old, 1);
}

TEST(a_step_that_follows_soon_is_the_same_job)
{
	now_ns = SECOND;
	job_watch_set(&watch, &walk, true, false);
	look(0);
	struct task *t = lives(10);
	label(t, "{\"job\":\"a\"}");
	look(MS);
	task_end(&walk.tasks, t, now_ns);
	look(MS);
	look(JOB_GONE_NS / 2);
	label(lives(11), "{\"job\":\"a\"}");
	look(JOB_GONE_NS);
	look(JOB_GONE_NS);
	ck_assert(!only_job()->gone && !only_job()->is_new);
}

TEST(a_unit_is_found_by_any_of_its_tasks_and_has_groups_below)
{
	ck_assert_int_eq(cgroup_set(&walk.tasks, 7, "/system.slice/ci-1.service", 0), 0);
	ck_assert_int_eq(cgroup_set(&walk.tasks, 8, "/system.slice/ci-1.service/payload", 0), 0);
	ck_assert_int_eq(cgroup_set(&walk.tasks, 9, "/docker/1", 0), 0);
	job_watch_set(&watch, &walk, false, true);
	look(0);
	lives(10)->cgroup = 7;
	lives(11)->cgroup = 8;
	lives(12)->cgroup = 9;
	label(lives(13), "{\"job\":\"not watched\"}");
	look(MS);
	ck_assert_str_eq(only_job()->key, "/system.slice/ci-1.service");
	ck_assert_uint_eq(only_job()->n_unit, strlen("ci-1.service"));
	ck_assert_int_eq(memcmp(only_job()->unit, "ci-1.service", only_job()->n_unit), 0);
}

TEST(a_kind_that_is_watched_no_longer_is_over)
{
	job_watch_set(&watch, &walk, true, false);
	look(0);
	label(lives(10), "{\"job\":\"a\"}");
	look(MS);
	only_job()->n_users = 1;
	job_watch_set(&watch, &walk, false, true);
	ck_assert(only_job()->gone);
	watch.job->n_users = 0;
	job_watch_set(&watch, &walk, false, false);
	ck_assert_uint_eq(HASH_COUNT(watch.job), 0);
	ck_assert(!job_watch_look(&watch, &walk, now_ns));
}

TEST(looks_take_a_small_part_of_the_time)
{
	now_ns = SECOND;
	job_watch_set(&watch, &walk, true, true);
	look(0);
	ck_assert_uint_gt(watch.next_look_ns, now_ns);
	ck_assert(!job_watch_look(&watch, &walk, watch.next_look_ns - 1));
	ck_assert(job_watch_look(&watch, &walk, watch.next_look_ns));
}

TEST(a_job_that_was_met_is_not_new_again)
{
	now_ns = SECOND;
	struct task *t = lives(10);
	label(t, "{\"job\":\"a\"}");
	ck_assert_ptr_null(job_watch_meet(&watch, t, now_ns)); /* not watched */
	task_set_labels(&walk.tasks, t, NULL);
	job_watch_set(&watch, &walk, true, false);
	look(0);
	ck_assert_ptr_null(job_watch_meet(&watch, t, now_ns)); /* in no job */
	label(t, "{\"job\":\"a\"}");
	struct watched_job *job = job_watch_meet(&watch, t, now_ns);
	ck_assert_ptr_nonnull(job);
	ck_assert(job->is_new && !job->is_old);
	ck_assert_ptr_null(job_watch_meet(&watch, t, now_ns));
	look(MS);
	ck_assert(!only_job()->is_new);
}

TEST(a_users_job_begins_once_a_process_is_wholly_that_users)
{
	job_watch_set(&watch, &walk, true, false);
	look(0);
	struct task *t = lives(10);
	t->uid = 0; /* a set-user-ID program */
	label(t, "{\"job\":\"a\"}");
	look(MS);
	ck_assert_uint_eq(HASH_COUNT(watch.job), 0);
	lives(11)->gid = 77;
	label(task_find(&walk.tasks, 11), "{\"job\":\"a\"}");
	look(MS);
	ck_assert_uint_eq(only_job()->gid, 77);
}
