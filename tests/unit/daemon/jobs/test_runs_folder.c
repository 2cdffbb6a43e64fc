/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/jobs/runs_folder.c: what goes to keep to a schedule's bounds, and what is found at a start. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/jobs/schedules_private.h"
#include "tests/unit/test.h"

static char folder[32], log_path[64];
static struct runs_log log_of;

static void begin(void)
{
	strcpy(folder, "/tmp/mperf-runs-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(log_path, sizeof(log_path), "%s/runs.log", folder);
	ck_assert_int_eq(runs_log_open(log_path, &log_of), 0);
	ck_assert_int_eq(runs_folder_make(folder, "nightly"), 0);
}

static void end(void)
{
	char command[128];
	runs_log_close(&log_of);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

EACH_TEST(.begin = begin, .end = end);

static const char *whole(const char *file)
{
	static char path[RUN_FILE_BYTES + 64];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return path;
}

static bool exists(const char *file)
{
	return access(whole(file), F_OK) == 0;
}

/* A run of so many bytes, with its file. */
static uint64_t recorded_of(uid_t uid, int n, uint64_t bytes)
{
	struct run_entry e = {
		.uid = uid, .outcome = RUN_WHOLE, .start_ns = 1000, .end_ns = 2000, .bytes = bytes};
	strcpy(e.schedule, "nightly");
	snprintf(e.file, sizeof(e.file), "nightly/%d.mprf", n);
	close(open(whole(e.file), O_CREAT | O_WRONLY, 0600));
	return runs_log_add(&log_of, &e);
}

static uint64_t recorded(int n, uint64_t bytes)
{
	return recorded_of(0, n, bytes);
}

TEST(the_oldest_go_until_number_and_bytes_fit)
{
	for (int i = 1; i <= 4; i++)
		recorded(i, 10);
	ck_assert_int_eq(runs_folder_retain(folder, &log_of, "nightly", 3, 1000), 0);
	ck_assert(!exists("nightly/1.mprf") && exists("nightly/2.mprf") && log_of.n == 3);
	ck_assert_int_eq(runs_folder_retain(folder, &log_of, "nightly", 3, 15), 0);
	ck_assert(!exists("nightly/3.mprf") && exists("nightly/4.mprf") && log_of.n == 1);
	ck_assert_int_eq(runs_folder_retain(folder, &log_of, "other", 0, 0), 0);
	ck_assert_uint_eq(log_of.n, 1);
}

static const struct schedule nightly = {.name = "nightly", .max_use = 400};

static int room(uid_t uid, uint64_t bytes)
{
	return runs_folder_make_room(folder, &log_of, &nightly, uid, bytes);
}

TEST(what_runs_takes_no_more_than_its_users_share_and_nothing_of_others)
{
	for (int i = 1; i <= 3; i++)
		recorded(i, 100);
	recorded_of(1001, 4, 60);
	recorded_of(1000, 5, 30);
	recorded_of(1000, 6, 30);
	ck_assert_int_eq(room(1000, 40), 0); /* 100 of 400 */
	ck_assert_uint_eq(log_of.n, 6);
	ck_assert_int_eq(room(1000, 60), 0);
	ck_assert(!exists("nightly/5.mprf") && exists("nightly/6.mprf"));
	/* half of the share stays kept: then it ends */
	ck_assert_int_eq(room(1000, 71), RUNS_FOLDER_FULL);
	ck_assert_int_eq(room(1000, 1000), RUNS_FOLDER_FULL);
	ck_assert(exists("nightly/6.mprf") && log_of.n == 5);
	ck_assert_int_eq(room(1002, 99), 0);
	ck_assert_int_eq(room(1002, 100), RUNS_FOLDER_FULL);
	ck_assert_uint_eq(log_of.n, 5);
}

/* That of a time has all that users do in it. */
TEST(what_root_runs_leaves_half_of_what_root_keeps)
{
	for (int i = 1; i <= 4; i++)
		recorded(i, 100);
	ck_assert_int_eq(room(0, 100), 0);
	ck_assert(!exists("nightly/1.mprf") && log_of.n == 3);
	ck_assert_int_eq(room(0, 200), 0);
	ck_assert_int_eq(room(0, 201), RUNS_FOLDER_FULL);
	ck_assert(exists("nightly/3.mprf") && exists("nightly/4.mprf") && log_of.n == 2);
	/* users who have all the rest leave root a half */
	for (int i = 5; i <= 8; i++)
		recorded_of(1000 + (uid_t)i, i, 100);
	ck_assert_int_eq(room(0, 100), 0);
	ck_assert(!exists("nightly/3.mprf") && exists("nightly/4.mprf") && log_of.n == 5);
}

TEST(what_cannot_be_removed_stays_in_the_log)
{
	recorded(1, 10);
	recorded(2, 10);
	/* as any error but that it is not there */
	ck_assert(
		unlink(whole("nightly/1.mprf")) == 0 && mkdir(whole("nightly/1.mprf"), 0700) == 0);
	ck_assert_int_eq(runs_folder_retain(folder, &log_of, "nightly", 1, 1000), -EISDIR);
	ck_assert(log_of.n == 2 && exists("nightly/2.mprf"));
	ck_assert_int_eq(rmdir(whole("nightly/1.mprf")), 0);
	/* what is gone already is no error */
	ck_assert_int_eq(runs_folder_retain(folder, &log_of, "nightly", 1, 1000), 0);
	ck_assert_uint_eq(log_of.n, 1);
}

TEST(a_start_removes_files_without_a_run_and_runs_without_a_file)
{
	for (int i = 1; i <= 300; i++)
		recorded(i, 10);
	for (int i = 1; i <= 300; i += 3) {
		char file[RUN_FILE_BYTES];
		snprintf(file, sizeof(file), "nightly/%d.mprf", i);
		ck_assert_int_eq(unlink(whole(file)), 0);
	}
	close(open(whole("nightly/left.mprf-journal"), O_CREAT | O_WRONLY, 0600));
	close(open(whole("nightly/notes"), O_CREAT | O_WRONLY, 0600));
	runs_folder_tidy(folder, &log_of);
	ck_assert(!exists("nightly/left.mprf-journal") && exists("nightly/notes"));
	ck_assert_uint_eq(log_of.n, 200);
	runs_log_close(&log_of);
	ck_assert_int_eq(runs_log_open(log_path, &log_of), 0);
	ck_assert_uint_eq(log_of.n, 200);
	for (size_t i = 0; i < log_of.n; i++)
		ck_assert(exists(log_of.entry[i].file));
}
