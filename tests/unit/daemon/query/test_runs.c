/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/query/runs.c: jobs of a store as runs, and the samples of one */

#include "daemon/query/runs.h"

#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define MINUTE (60 * SECOND)
#define START (277777ull * 3600 * SECOND) /* CLOCK_REALTIME of monotonic 0: a full hour */
#define SOURCES_MAX 4

static struct stored s;
static struct store_error store_error;
static struct query_error error;
static struct query_source source[SOURCES_MAX];
static char path[SOURCES_MAX][192];
static size_t n_sources;
static struct found_runs found;
static pid_t next_pid;

static void end(void)
{
	found_runs_clear(&found);
	stored_end(&s);
}

EACH_TEST(.end = end, .seconds = 60);

static void begin_at(uint64_t realtime_ns)
{
	memset(&s, 0, sizeof(s));
	stored_folder(&s);
	s.realtime_ns = realtime_ns;
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_begin(&s);
	next_pid = 100;
}

static void begin(void)
{
	begin_at(START);
}

/* A process with these labels of that user, which starts then. */
static struct task *process(uid_t uid, const char *labels, uint64_t start_ns)
{
	struct task *t;
	ck_assert_int_eq(task_add(&s.tasks, next_pid, next_pid, start_ns, &t), 0);
	next_pid++;
	t->process = t;
	task_set_comm(t, "work");
	t->uid = uid;
	if (labels)
		stored_label(&s, t, labels);
	return t;
}

static void sample(struct task *t, uint64_t n)
{
	struct frame *f = stored_function(&s, "/bin/work", "work");
	stored_add(&s, &(struct stored_sample){.task = t, .count = n, .frame = {f}});
}

static void flush(uint64_t minute)
{
	ck_assert_int_eq(stored_flush(&s, minute * MINUTE, (minute + 1) * MINUTE), 0);
}

/* One process of each set of labels in a minute of its own, which starts 20 s later in it. */
static void a_minute_each(const char *const *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sample(process(1000, labels[i], i * MINUTE + 20 * SECOND), i + 1);
		flush(i);
	}
}

static void add_source(const char *at)
{
	snprintf(path[n_sources], sizeof(path[0]), "%s", at);
	source[n_sources] = (struct query_source){.path = path[n_sources]};
	n_sources++;
}

/* The sealed segment is the store. */
static void seal(void)
{
	stored_seal(&s);
	n_sources = 0;
	add_source(s.path);
}

static int find(struct runs_wish *wish, const char *label, uint32_t uid)
{
	const char *labels[] = {label};
	wish->label = labels;
	wish->n_labels = 1;
	wish->uid = &uid;
	wish->n_uids = 1;
	found_runs_clear(&found);
	return runs_find(source, n_sources, wish, &found, &error);
}

static size_t n_found(const char *label, uint32_t uid)
{
	struct runs_wish wish = {.last = 0};
	ck_assert_int_eq(find(&wish, label, uid), 0);
	return found.n;
}

static const char *const three[] = {"{\"branch\":\"main\",\"run\":\"1\"}",
	"{\"branch\":\"main\",\"run\":\"2\"}", "{\"branch\":\"pr\",\"run\":\"3\"}"};

/* Samples of a found run, by its own filter. */
static int64_t samples_of(const struct found_run *run)
{
	struct stored_answer a = {.n_rows = 0};
	const struct answer to = stored_answer(&a);
	const struct query_filter filter = {.job = run->job, .n_jobs = run->n_jobs};
	const struct query_question question = {.by = QUERY_BY_MODULE, .filter = &filter};
	ck_assert_int_eq(query_hotspots(source, n_sources, &question, &to, &error), 0);
	return a.n_rows == 1 ? (int64_t)stored_real(&a, 0, "samples") : -1;
}

TEST(each_set_of_labels_is_a_run_in_order_of_its_begin)
{
	begin();
	a_minute_each(three, 3);
	seal();
	ck_assert_uint_eq(n_found("branch=main", 1000), 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(found.run[i].begin_ns, START + i * MINUTE + 20 * SECOND);
		ck_assert_int_eq(found.run[i].first_ns, START + i * MINUTE);
		ck_assert_int_eq(found.run[i].until_ns, START + i * MINUTE + 1);
		ck_assert_int_eq(samples_of(&found.run[i]), (int64_t)i + 1);
		ck_assert_uint_eq(found.run[i].coarsest, TIER_WINDOW);
	}
	ck_assert_str_eq(found.run[0].says, "branch=main, run=1");
	ck_assert_uint_eq(n_found("branch=*", 1000), 3);
	ck_assert_uint_eq(n_found("branch=none", 1000), 0);
}

TEST(a_user_cannot_claim_labels_of_another)
{
	begin();
	sample(process(1000, three[0], 0), 1);
	sample(process(1001, three[0], 0), 5);
	flush(0);
	seal();
	ck_assert_uint_eq(n_found("branch=main", 1000), 1);
	ck_assert_int_eq(samples_of(&found.run[0]), 1);
	ck_assert_uint_eq(n_found("branch=main", 1001), 1);
	ck_assert_int_eq(samples_of(&found.run[0]), 5);
	ck_assert_uint_eq(n_found("branch=main", 0), 0);
}

TEST(sets_with_the_same_job_and_run_are_one_run)
{
	begin();
	sample(process(1000, "{\"job\":\"x\",\"run\":\"1\"}", 0), 1);
	sample(process(1000, "{\"CI\":\"7\",\"job\":\"x\",\"run\":\"1\"}", 0), 2);
	sample(process(1000, "{\"job\":\"x\",\"run\":\"2\"}", 0), 4);
	sample(process(1001, "{\"job\":\"x\",\"run\":\"1\"}", 0), 8);
	flush(0);
	seal();
	ck_assert_uint_eq(n_found("job=x", 1000), 2);
	int64_t sum = samples_of(&found.run[0]) + 10 * samples_of(&found.run[1]);
	ck_assert_msg(sum == 43 || sum == 34, "%d", (int)sum);
}

/* A process of a job in the control group of that unit. */
static struct task *in_unit(const char *labels, uint64_t group, const char *unit)
{
	char at[64];
	struct task *t = process(1000, labels, 0);
	snprintf(at, sizeof(at), "/system.slice/%s", unit);
	ck_assert_int_eq(cgroup_set(&s.tasks, group, at, 0), 0);
	t->cgroup = group;
	return t;
}

/* The same, of runs that were found by labels of control groups. */
static int64_t samples_with(const struct found_run *run, const char *label)
{
	struct stored_answer a = {.n_rows = 0};
	const struct answer to = stored_answer(&a);
	const struct query_filter filter = {
		.job = run->job, .n_jobs = run->n_jobs, .label = &label, .n_labels = 1};
	const struct query_question question = {.by = QUERY_BY_MODULE, .filter = &filter};
	ck_assert_int_eq(query_hotspots(source, n_sources, &question, &to, &error), 0);
	return a.n_rows == 1 ? (int64_t)stored_real(&a, 0, "samples") : -1;
}

/* Two starts of ci.service, of which the first went on in another; then one without a job. */
static void two_starts(void)
{
	begin();
	sample(in_unit("{\"run\":\"1\"}", 7, "ci.service"), 1);
	sample(in_unit("{\"run\":\"1\"}", 8, "other.service"), 16);
	flush(0);
	sample(in_unit("{\"run\":\"2\"}", 9, "ci.service"), 2);
	flush(1);
	sample(in_unit("{\"run\":\"3\"}", 8, "other.service"), 4);
	sample(in_unit(NULL, 9, "ci.service"), 8);
	flush(2);
	seal();
}

TEST(labels_of_control_groups_select_among_jobs_and_their_processes)
{
	two_starts();
	ck_assert_uint_eq(n_found("unit=ci.service", 1000), 2);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(samples_with(&found.run[i], "unit=ci.service"), i + 1);
	ck_assert_str_eq(found.run[1].says, "run=2");
	ck_assert_uint_eq(n_found("unit=other.*", 1000), 2);
	ck_assert_int_eq(found.run[1].first_ns, START + 2 * (int64_t)MINUTE);
	ck_assert_uint_eq(n_found("unit=none.service", 1000), 0);
	ck_assert_uint_eq(n_found("unit=ci.service", 1001), 0);
	struct runs_wish wish = {.last = 1};
	ck_assert_int_eq(find(&wish, "unit=ci.service", 1000), 0);
	ck_assert_uint_eq(found.n, 1);
	ck_assert_str_eq(found.run[0].says, "run=2");
}

TEST(labels_of_control_groups_select_among_jobs_in_roll_ups)
{
	char rolled[192];
	two_starts();
	snprintf(rolled, sizeof(rolled), "%s/minute", s.folder);
	ck_assert_int_eq(rollup_add(s.path, rolled, TIER_MINUTE, &store_error), 0);
	n_sources = 0;
	add_source(rolled);
	source[0].live = true;
	ck_assert_uint_eq(n_found("unit=ci.service", 1000), 2);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(samples_with(&found.run[i], "unit=ci.service"), i + 1);
}

TEST(a_jobs_own_label_takes_the_place_of_its_control_groups)
{
	begin();
	sample(in_unit("{\"run\":\"1\",\"unit\":\"mine\"}", 7, "ci.service"), 1);
	flush(0);
	seal();
	ck_assert_uint_eq(n_found("unit=mine", 1000), 1);
	ck_assert_uint_eq(n_found("unit=ci.service", 1000), 0);
}

TEST(the_last_runs_are_those_that_began_last)
{
	begin();
	a_minute_each(three, 3);
	seal();
	struct runs_wish wish = {.last = 1};
	ck_assert_int_eq(find(&wish, "branch=main", 1000), 0);
	ck_assert_uint_eq(found.n, 1);
	ck_assert_str_eq(found.run[0].says, "branch=main, run=2");
	wish.last = 9;
	ck_assert_int_eq(find(&wish, "branch=main", 1000), 0);
	ck_assert_uint_eq(found.n, 2);
}

TEST(times_are_those_of_the_begin)
{
	begin();
	a_minute_each(three, 3);
	seal();
	struct runs_wish wish = {.since_ns = START + 20 * (int64_t)SECOND + 1};
	ck_assert_int_eq(find(&wish, "branch=*", 1000), 0);
	ck_assert_uint_eq(found.n, 2);
	wish.until_ns = START + 2 * (int64_t)MINUTE + 20 * (int64_t)SECOND;
	ck_assert_int_eq(find(&wish, "branch=*", 1000), 0);
	ck_assert_uint_eq(found.n, 1);
	ck_assert_str_eq(found.run[0].says, "branch=main, run=2");
}

TEST(a_job_that_lives_is_left_out_and_counted)
{
	const struct query_job alive[] = {{1000, three[1]}, {1001, three[0]}};
	begin();
	a_minute_each(three, 3);
	seal();
	struct runs_wish wish = {.alive = alive, .n_alive = 2};
	ck_assert_int_eq(find(&wish, "branch=main", 1000), 0);
	ck_assert_uint_eq(found.n, 1);
	ck_assert_str_eq(found.run[0].says, "branch=main, run=1");
	ck_assert_uint_eq(found.n_unfinished, 1);
	ck_assert_str_eq(found.unfinished, "branch=main, run=2");
}

TEST(a_job_lives_if_a_set_with_its_run_does)
{
	const struct query_job alive[] = {{1000, "{\"CI\":\"7\",\"job\":\"x\",\"run\":\"1\"}"}};
	begin();
	sample(process(1000, "{\"job\":\"x\",\"run\":\"1\"}", 0), 1);
	flush(0);
	seal();
	struct runs_wish wish = {.alive = alive, .n_alive = 1};
	ck_assert_int_eq(find(&wish, "job=x", 1000), 0);
	ck_assert_uint_eq(found.n, 0);
	ck_assert_uint_eq(found.n_unfinished, 1);
}

TEST(a_process_that_is_older_than_the_job_says_nothing_of_its_begin)
{
	begin();
	struct task *shell = process(1000, three[0], 5 * SECOND);
	sample(process(1000, NULL, 0), 1);
	flush(0);
	flush(1);
	sample(shell, 1);
	flush(2);
	seal();
	ck_assert_uint_eq(n_found("branch=main", 1000), 1);
	ck_assert_int_eq(found.run[0].begin_ns, START + 2 * MINUTE);
}

TEST(a_job_without_samples_is_no_run)
{
	begin();
	(void)process(1000, three[0], 0);
	sample(process(1000, three[1], 0), 1);
	flush(0);
	seal();
	ck_assert_uint_eq(n_found("branch=main", 1000), 1);
}

TEST(runs_are_found_in_roll_ups_which_it_says)
{
	static const char *const tier[] = {"minute", "hour"};
	char rolled[192];
	begin();
	a_minute_each(three, 3);
	seal();
	for (int i = 0; i < 2; i++) {
		snprintf(rolled, sizeof(rolled), "%s/%s", s.folder, tier[i]);
		ck_assert_int_eq(
			rollup_add(s.path, rolled, TIER_MINUTE + (enum tier)i, &store_error), 0);
		n_sources = 0;
		add_source(rolled);
		source[0].live = true;
		ck_assert_uint_eq(n_found("branch=main", 1000), 2);
		ck_assert_uint_eq(found.run[1].coarsest, TIER_MINUTE + (enum tier)i);
		ck_assert_int_eq(samples_of(&found.run[0]) + samples_of(&found.run[1]), 3);
		ck_assert_int_eq(found.run[0].begin_ns, START + (i ? 0 : 20 * SECOND));
	}
}

TEST(only_the_requested_part_of_a_file_counts)
{
	begin();
	a_minute_each(three, 3);
	seal();
	source[0].since_ns = START + MINUTE;
	source[0].until_ns = START + 2 * MINUTE;
	ck_assert_uint_eq(n_found("branch=*", 1000), 1);
	ck_assert_str_eq(found.run[0].says, "branch=main, run=2");
}

TEST(a_file_that_is_gone_or_damaged_is_left_out)
{
	begin();
	a_minute_each(three, 3);
	seal();
	add_source("/nonexistent/x.mprf");
	char broken[192];
	snprintf(broken, sizeof(broken), "%s/broken", s.folder);
	FILE *f = fopen(broken, "w");
	ck_assert(f && fputs("no recording", f) >= 0 && fclose(f) == 0);
	add_source(broken);
	ck_assert_uint_eq(n_found("branch=*", 1000), 3);
	ck_assert_uint_eq(source[1].outcome, QUERY_GONE);
	ck_assert_uint_eq(source[2].outcome, QUERY_BROKEN);
}

TEST(ids_that_are_out_of_bounds_are_passed_over)
{
	begin();
	a_minute_each(three, 3);
	stored_seal(&s);
	sqlite3_close(s.db);
	s.db = NULL;
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
				 "UPDATE task SET process = 99999 WHERE id = 2; "
				 "UPDATE sample SET window = -1 WHERE id = 3; "
				 "UPDATE task_label_set SET label_set = 4000000000 WHERE task = 3; "
				 "UPDATE meta SET value = 0 WHERE key = 'sealed'",
				 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	n_sources = 0;
	add_source(s.path);
	source[0].live = true;
	ck_assert_uint_eq(n_found("branch=*", 1000), 1);
}

TEST(runs_of_one_boot_are_in_order_though_the_clock_was_set)
{
	/* the second file's clock is an hour behind the first's, whose boot it continues */
	static struct stored first;
	begin();
	sample(process(1000, three[0], 20 * SECOND), 1);
	flush(0);
	stored_seal(&s);
	first = s;
	begin_at(START - 3600 * SECOND);
	sample(process(1000, three[1], 2 * MINUTE + 20 * SECOND), 1);
	flush(2);
	stored_seal(&s);
	n_sources = 0;
	add_source(first.path);
	add_source(s.path);
	source[0].until_ns = START + MINUTE;
	source[1].until_ns = START + 2 * MINUTE;
	ck_assert_uint_eq(n_found("branch=main", 1000), 2);
	ck_assert_str_eq(found.run[0].says, "branch=main, run=1");
	ck_assert_int_eq(found.run[1].begin_ns - found.run[0].begin_ns, 2 * MINUTE);
	stored_end(&first);
}
