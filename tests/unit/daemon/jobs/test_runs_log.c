/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/jobs/runs_log.c: what it keeps, over a restart too, and what it gives up first. */

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/jobs/runs_log.h"
#include "tests/unit/test.h"

static char folder[32], path[64];
static struct runs_log log_of;

static void begin(void)
{
	strcpy(folder, "/tmp/mperf-runs-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/runs.log", folder);
	ck_assert_int_eq(runs_log_open(path, &log_of), 0);
}

static void end(void)
{
	runs_log_close(&log_of);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

EACH_TEST(.begin = begin, .end = end);

static void again(void)
{
	runs_log_close(&log_of);
	ck_assert_int_eq(runs_log_open(path, &log_of), 0);
}

static struct run_entry run_of(const char *schedule, uid_t uid, enum run_outcome outcome)
{
	struct run_entry e = {.uid = uid, .outcome = outcome, .start_ns = 1000, .end_ns = 2000};
	strcpy(e.schedule, schedule);
	return e;
}

static uint64_t recorded(const char *schedule, uid_t uid, const char *file, uint64_t bytes)
{
	struct run_entry e = run_of(schedule, uid, RUN_WHOLE);
	strcpy(e.file, file);
	e.bytes = bytes;
	return runs_log_add(&log_of, &e);
}

static uint64_t skipped(const char *schedule, uid_t uid, const char *why)
{
	struct run_entry e = run_of(schedule, uid, RUN_SKIPPED);
	strcpy(e.why, why);
	return runs_log_add(&log_of, &e);
}

TEST(a_text_that_is_no_utf8_costs_that_text_and_no_other_run)
{
	struct run_entry e = run_of("nightly", 1000, RUN_WHOLE);
	strcpy(e.job, "branch=\xc3");
	ck_assert_uint_eq(runs_log_add(&log_of, &e), 1);
	ck_assert_uint_eq(recorded("nightly", 0, "nightly/2.mprf", 7), 2);
	ck_assert_int_eq(log_of.error, 0);
	again();
	ck_assert_uint_eq(log_of.n, 2);
	ck_assert_str_eq(runs_log_find(&log_of, 1)->job, "");
}

TEST(a_log_that_cannot_be_read_is_left_as_it_is)
{
	runs_log_close(&log_of);
	unlink(path);
	ck_assert_int_eq(symlink(path, path), 0); /* as any error but that it is not there */
	ck_assert_int_eq(runs_log_open(path, &log_of), 0);
	ck_assert(log_of.is_unread);
	ck_assert_int_eq(log_of.error, ELOOP);
	ck_assert_uint_gt(recorded("nightly", 0, "nightly/1.mprf", 7), 0);
	struct stat st;
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
}

TEST(a_run_outlives_a_restart)
{
	struct run_entry e = run_of("nightly", 1000, RUN_WHOLE);
	strcpy(e.job, "a \"quoted\" \xc3\xa4 job");
	strcpy(e.file, "nightly/1.mprf");
	e.hz = 999;
	e.n_samples = 12345;
	e.bytes = UINT64_C(1) << 40;
	ck_assert_uint_eq(runs_log_add(&log_of, &e), 1);
	again();
	const struct run_entry *is = runs_log_find(&log_of, 1);
	ck_assert_ptr_nonnull(is);
	ck_assert_str_eq(is->job, e.job);
	ck_assert_str_eq(is->file, "nightly/1.mprf");
	ck_assert_uint_eq(is->uid, 1000);
	ck_assert_int_eq(is->outcome, RUN_WHOLE);
	ck_assert_uint_eq(is->n_samples, 12345);
	ck_assert_uint_eq(is->bytes, UINT64_C(1) << 40);
	ck_assert_uint_eq(runs_log_add(&log_of, &e), 2);
}

TEST(a_change_takes_the_place_of_what_was)
{
	struct run_entry e = run_of("nightly", 0, RUN_GOES_ON);
	uint64_t id = runs_log_add(&log_of, &e);
	struct run_entry *is = runs_log_find(&log_of, id);
	is->outcome = RUN_ENDED;
	strcpy(is->why, "it was stopped");
	runs_log_changed(&log_of, is);
	again();
	ck_assert_uint_eq(log_of.n, 1);
	ck_assert_str_eq(log_of.entry[0].why, "it was stopped");
}

TEST(what_still_ran_failed_with_its_mperfd)
{
	struct run_entry e = run_of("nightly", 0, RUN_GOES_ON);
	strcpy(e.file, "nightly/1.mprf");
	runs_log_add(&log_of, &e);
	again();
	ck_assert_int_eq(log_of.entry[0].outcome, RUN_FAILED);
	ck_assert_str_eq(log_of.entry[0].why, "mperfd was killed while it recorded");
	ck_assert_str_eq(log_of.entry[0].file, "");
}

TEST(lines_that_are_no_runs_are_skipped)
{
	recorded("a", 0, "a/1.mprf", 1);
	FILE *f = fopen(path, "a");
	ck_assert_ptr_nonnull(f);
	fputs("{}\nnull\n[1]\nnot JSON\n{\"id\":2}\n", f);
	/* a path out of the folder, an outcome that is none, a name that is too long */
	fputs("{\"id\":3,\"schedule\":\"a\",\"job\":\"\",\"uid\":0,\"outcome\":\"recorded\","
	      "\"why\":\"\","
	      "\"file\":\"../../etc/shadow\",\"times\":1}\n",
		f);
	fputs("{\"id\":4,\"schedule\":\"a\",\"job\":\"\",\"uid\":0,\"outcome\":\"?\",\"why\":\"\","
	      "\"file\":\"\",\"times\":1}\n",
		f);
	fprintf(f,
		"{\"id\":5,\"schedule\":\"%0200d\",\"job\":\"\",\"uid\":0,\"outcome\":\"recorded\","
		"\"why\":\"\",\"file\":\"\",\"times\":1}\n",
		0);
	fputs("{\"id\":6,\"schedule\":\"a\",\"job\":\"\",\"uid\":0,\"outcome\":\"failed\",\"why\":"
	      "\"\","
	      "\"file\":\"\",\"times\":1}\n",
		f);
	/* an id that comes after a higher one: they are searched by halves */
	fputs("{\"id\":5,\"schedule\":\"a\",\"job\":\"\",\"uid\":0,\"outcome\":\"failed\",\"why\":"
	      "\"\","
	      "\"file\":\"\",\"times\":1}\n",
		f);
	fputs("{\"id\":7,\"sched", f); /* a crash */
	fclose(f);
	again();
	ck_assert_uint_eq(log_of.n, 2);
	ck_assert_uint_eq(log_of.entry[1].id, 6);
}

TEST(what_is_skipped_again_for_the_same_reason_is_counted)
{
	uint64_t first = skipped("a", 0, "no room");
	ck_assert_uint_eq(skipped("a", 0, "no room"), first);
	ck_assert_uint_ne(skipped("a", 0, "no budget"), first);
	ck_assert_uint_ne(skipped("b", 0, "no room"), first);
	ck_assert_uint_ne(skipped("a", 1000, "no budget"), first);
	again();
	ck_assert_uint_eq(log_of.n, 4);
	ck_assert_uint_eq(log_of.entry[0].times, 2);
}

TEST(the_oldest_of_who_has_most_makes_room)
{
	uint64_t of_other = skipped("a", 1001, "first");
	char why[32];
	for (int i = 0; i < RUNS_WITHOUT_FILE_MAX + 10; i++) {
		snprintf(why, sizeof(why), "reason %d", i);
		skipped("a", 1000, why);
	}
	ck_assert_uint_eq(log_of.n, RUNS_WITHOUT_FILE_MAX);
	ck_assert_ptr_nonnull(runs_log_find(&log_of, of_other));
	ck_assert_ptr_null(runs_log_find(&log_of, of_other + 1));
}

TEST(recordings_of_who_has_most_go_first)
{
	recorded("a", 1001, "a/1.mprf", 10);
	uint64_t second = recorded("a", 1000, "a/2.mprf", 20);
	recorded("a", 1000, "a/3.mprf", 30);
	recorded("b", 1000, "b/4.mprf", 40);
	struct runs_kept kept = runs_log_kept(&log_of, "a", NULL);
	ck_assert_uint_eq(kept.n, 3);
	ck_assert_uint_eq(kept.bytes, 60);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_NUMBER), second);
	runs_log_drop(&log_of, second);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_NUMBER), 1);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "c", RUNS_NUMBER), 0);
	again();
	ck_assert_ptr_null(runs_log_find(&log_of, second));
}

TEST(what_one_user_has_is_that_users)
{
	recorded("a", 1000, "a/1.mprf", 10);
	uint64_t second = recorded("a", 1001, "a/2.mprf", 20);
	recorded("a", 1001, "a/3.mprf", 30);
	recorded("b", 1001, "b/4.mprf", 40);
	ck_assert_uint_eq(runs_log_kept(&log_of, "a", &(uid_t){1001}).n, 2);
	ck_assert_uint_eq(runs_log_kept(&log_of, "a", &(uid_t){1001}).bytes, 50);
	ck_assert_uint_eq(runs_log_oldest_of(&log_of, "a", 1001), second);
	ck_assert_uint_eq(runs_log_oldest_of(&log_of, "a", 1002), 0);
}

TEST(of_bytes_the_oldest_of_who_has_most_bytes_goes)
{
	for (int i = 0; i < 3; i++)
		recorded("a", 1001, "a/1.mprf", 10);
	uint64_t large = recorded("a", 1000, "a/2.mprf", 100);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_BYTES), large);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_NUMBER), 1);
}

/* Users are as many as somebody has uids. */
TEST(roots_go_only_above_a_half)
{
	for (int i = 0; i < 4; i++)
		recorded("a", 0, "a/1.mprf", 10);
	uint64_t first = recorded("a", 1000, "a/2.mprf", 10);
	for (uid_t uid = 1001; uid < 1003; uid++)
		recorded("a", uid, "a/2.mprf", 10);
	/* 4 of 7 */
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_NUMBER), 1);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_BYTES), 1);
	recorded("a", 1003, "a/2.mprf", 10);
	/* 4 of 8: though no other has as many */
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_NUMBER), first);
	ck_assert_uint_eq(runs_log_first_to_go(&log_of, "a", RUNS_BYTES), first);
	recorded("b", 0, "b/1.mprf", 0);
	ck_assert_uint_gt(runs_log_first_to_go(&log_of, "b", RUNS_BYTES), first);
}

TEST(the_file_does_not_grow_with_changes)
{
	struct run_entry e = run_of("a", 0, RUN_SKIPPED);
	uint64_t id = runs_log_add(&log_of, &e);
	struct stat st;
	for (int i = 0; i < 1000; i++)
		runs_log_changed(&log_of, runs_log_find(&log_of, id));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_lt(st.st_size, 200 * 1000);
	again();
	ck_assert_uint_eq(log_of.n, 1);
}

TEST(a_folder_that_cannot_be_written_keeps_the_log_in_memory)
{
	struct runs_log other;
	ck_assert_int_eq(runs_log_open("/nonexistent/runs.log", &other), 0);
	struct run_entry e = run_of("a", 0, RUN_WHOLE);
	ck_assert_uint_eq(runs_log_add(&other, &e), 1);
	ck_assert_int_ne(other.error, 0);
	ck_assert_uint_eq(other.n, 1);
	runs_log_close(&other);
}

TEST(an_id_is_never_given_again)
{
	recorded("a", 0, "a/1.mprf", 1);
	uint64_t last = recorded("a", 0, "a/2.mprf", 1);
	runs_log_drop(&log_of, last);
	for (int i = 0; i < 3; i++) {
		again();
		ck_assert_uint_eq(log_of.n, 1);
		ck_assert_uint_eq(log_of.last_id, last);
	}
	runs_log_drop(&log_of, 1);
	again();
	again();
	ck_assert_uint_eq(log_of.n, 0);
	ck_assert_uint_eq(recorded("a", 0, "a/3.mprf", 1), last + 1);
	again();
	ck_assert_uint_eq(log_of.n, 1);
}

TEST(the_last_line_of_the_longest_file_is_read)
{
	char file[RUN_FILE_BYTES];
	for (int i = 0; i < RUNS_MAX; i++) {
		snprintf(file, sizeof(file), "a/%d.mprf", i);
		recorded("a", 0, file, 1);
	}
	/* as long as it gets: the next change writes it again */
	struct run_entry *e = &log_of.entry[RUNS_MAX - 1];
	for (size_t before = 0; before < log_of.n_lines || before < 2 * RUNS_MAX;) {
		before = log_of.n_lines;
		e->bytes++;
		runs_log_changed(&log_of, e);
	}
	ck_assert_uint_eq(log_of.n_lines, RUNS_MAX);
	while (log_of.n_lines < 2 * RUNS_MAX + 65) {
		e->bytes++;
		runs_log_changed(&log_of, e);
	}
	uint64_t bytes = e->bytes;
	again();
	ck_assert_uint_eq(log_of.n, RUNS_MAX);
	ck_assert_uint_eq(log_of.entry[RUNS_MAX - 1].bytes, bytes);
}

static bool is_odd(const struct run_entry *e, void *userdata)
{
	(*(size_t *)userdata)++;
	return e->id % 2 == 1;
}

TEST(many_runs_are_dropped_at_once)
{
	size_t n_asked = 0;
	char file[RUN_FILE_BYTES];
	for (int i = 1; i <= 300; i++) {
		snprintf(file, sizeof(file), "a/%d.mprf", i);
		recorded("a", 0, file, 1);
	}
	runs_log_drop_if(&log_of, is_odd, &n_asked);
	ck_assert(n_asked == 300 && log_of.n == 150);
	again();
	ck_assert_uint_eq(log_of.n, 150);
	for (size_t i = 0; i < log_of.n; i++)
		ck_assert_uint_eq(log_of.entry[i].id, 2 * (i + 1));
}
