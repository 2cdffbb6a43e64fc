/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Queries over the files of a store: parts of them, coarser tiers, files that are not there or not
 * whole; and what those may see who may not see all. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "tests/unit/faulty_disc.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define MINUTE (60 * SECOND)
#define START (277777ull * 3600 * SECOND) /* CLOCK_REALTIME of monotonic 0: a full hour */

static struct stored s;
static struct stored_answer a;
static struct store_error error;
static char minute[192], hour[192];

static void end(void)
{
	stored_end(&s);
}

EACH_TEST(.end = end, .seconds = 120);

/* Ten minutes: one (uid 1000) runs f in each, two (uid 1001) g from the fifth on; both call into
 * the kernel and a module once a minute. */
static void begin(void)
{
	stored_folder(&s);
	s.realtime_ns = START;
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_begin(&s);
	struct task *one = stored_task(&s, 100, 100, "one");
	struct task *thread = stored_task(&s, 100, 101, "thread");
	struct task *two = stored_task(&s, 200, 200, "secret");
	one->uid = thread->uid = 1000;
	two->uid = 1001;
	two->argv = strdup("password");
	two->n_argv = 9;
	struct frame *main_ = stored_function(&s, "/bin/one", "main");
	struct frame *f = stored_function(&s, "/bin/one", "f");
	struct frame *g = stored_function(&s, "/home/two/hidden", "g");
	struct frame *entry = stored_frame(&s, FILE_KERNEL, "[kernel]", 16);
	struct frame *work = stored_frame(&s, FILE_MODULE, "[nf_tables]", 32);
	stored_name(entry, "do_syscall", NULL);
	stored_name(work, "nft_work", NULL);
	for (uint64_t i = 0; i < 10; i++) {
		stored_add(&s, &(struct stored_sample){.task = one, .frame = {f, main_}});
		stored_add(&s,
			&(struct stored_sample){.task = thread, .hart = 1, .frame = {f, main_}});
		stored_add(
			&s, &(struct stored_sample){.task = one, .frame = {work, entry, f, main_}});
		if (i >= 5)
			stored_add(
				&s, &(struct stored_sample){.task = two, .count = 2, .frame = {g}});
		s.lost[0][LOSS_RING]++;
		ck_assert_int_eq(stored_flush(&s, i * MINUTE, (i + 1) * MINUTE), 0);
	}
	stored_seal(&s);
	snprintf(minute, sizeof(minute), "%s/minute", s.folder);
	snprintf(hour, sizeof(hour), "%s/hour", s.folder);
	ck_assert_int_eq(rollup_add(s.path, minute, TIER_MINUTE, &error), 0);
	ck_assert_int_eq(rollup_add(s.path, hour, TIER_HOUR, &error), 0);
}

static struct query_filter filter;
static struct query_error failure;

static int ask(struct query_source *source, size_t n, enum query_by by)
{
	memset(&a, 0, sizeof(a));
	struct answer answer = stored_answer(&a);
	struct query_question question = {.by = by, .filter = &filter};
	return query_hotspots(source, n, &question, &answer, &failure);
}

static uint64_t samples_of(const char *function)
{
	return (uint64_t)stored_real(&a, stored_row(&a, function), "samples");
}

static bool has_note(const char *text)
{
	for (uint32_t i = 0; i < a.n_notes; i++)
		if (strstr(a.note[i], text))
			return true;
	return false;
}

TEST(part_of_a_file_is_read_by_its_windows_starts)
{
	begin();
	const char *const path[] = {s.path, minute};
	for (size_t i = 0; i < 2; i++) {
		struct query_source part = {.path = path[i],
			.since_ns = (int64_t)(START + 2 * MINUTE),
			.until_ns = (int64_t)(START + 6 * MINUTE),
			.live = i == 1};
		ck_assert_int_eq(ask(&part, 1, QUERY_BY_FUNCTION), 0);
		ck_assert_uint_eq(a.samples, 14);
		ck_assert_uint_eq(samples_of("f"), 8);
		ck_assert_uint_eq(samples_of("g"), 2);
		ck_assert_uint_eq(samples_of("nft_work"), 4);
		ck_assert(stored_real(&a, stored_row(&a, "main"), "total") > 0.85 - 1e-9);
		ck_assert_uint_eq(a.loss[0].count, 4);
		ck_assert(a.seconds > 239.9 && a.seconds < 240.1);
	}
}

TEST(every_cut_of_a_file_gives_the_whole)
{
	begin();
	for (uint64_t cut = 0; cut <= 10; cut++) {
		int64_t at = (int64_t)(START + cut * MINUTE);
		struct query_source part[] = {{.path = s.path, .since_ns = 0, .until_ns = at},
			{.path = minute, .since_ns = at, .until_ns = INT64_MAX, .live = true}};
		ck_assert_int_eq(ask(part, 2, QUERY_BY_PROCESS), 0);
		ck_assert_uint_eq(a.samples, 40);
		/* the same processes in both: boot, pid and start name them */
		ck_assert_uint_eq(a.n_rows, 2);
		ck_assert_uint_eq(samples_of("one"), 30);
		ck_assert_uint_eq(a.loss[0].count, 10);
	}
}

TEST(time_asked_for_narrows_parts_too)
{
	begin();
	struct query_source part = {.path = minute, .live = true};
	filter = (struct query_filter){.since_ns = (int64_t)(START + 7 * MINUTE)};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_FUNCTION), 0);
	ck_assert_uint_eq(a.samples, 15);
	/* nothing at all is an answer as well */
	filter = (struct query_filter){.since_ns = (int64_t)(START + 70 * MINUTE)};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_FUNCTION), 0);
	ck_assert_uint_eq(a.samples, 0);
	ck_assert_uint_eq(a.n_rows, 0);
}

TEST(hours_say_what_they_do_not_know)
{
	begin();
	struct query_source part = {.path = hour, .live = true};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_PROCESS), 0);
	ck_assert_uint_eq(samples_of("one"), 30);
	ck_assert(stored_absent(&a, stored_row(&a, "one"), "pid"));
	ck_assert(has_note("processes are summed by program"));
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_FUNCTION), 0);
	ck_assert_uint_eq(a.n_notes, 1);
	ck_assert(has_note("not verified: 1 file is still being written"));
	ck_assert_uint_eq(samples_of("f"), 20);
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_HART), 0);
	ck_assert(has_note("harts of one kind"));
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_LINE), 0);
	ck_assert(has_note("lines are not known"));
	filter = (struct query_filter){.pid = (int32_t[]){100}, .n_pids = 1};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_FUNCTION), 0);
	ck_assert(has_note("pids are not known"));
	ck_assert_uint_eq(a.samples, 0);
	filter = (struct query_filter){0};
	part = (struct query_source){.path = minute, .live = true};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_PROCESS), 0);
	ck_assert_uint_eq(a.n_notes, 1);
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_THREAD), 0);
	ck_assert(has_note("threads are summed by process"));
	ck_assert_int_eq(
		query_coarsest(&(struct query_question){.by = QUERY_BY_THREAD, .filter = &filter}),
		TIER_WINDOW);
	ck_assert_int_eq(
		query_coarsest(&(struct query_question){.by = QUERY_BY_PROCESS, .filter = &filter}),
		TIER_MINUTE);
	ck_assert_int_eq(query_coarsest(&(struct query_question){
				 .by = QUERY_BY_FUNCTION, .filter = &filter}),
		TIER_HOUR);
}

/* --- files that cannot be read ---------------------------------------------------------------- */

/* Copy the sealed segment, without its last bytes or with one page of nonsense. */
static void damaged_copy(const char *path, off_t page)
{
	char bytes[4096];
	int in = open(s.path, O_RDONLY), out = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (ssize_t n; (n = read(in, bytes, sizeof(bytes))) > 0;)
		ck_assert_int_eq(write(out, bytes, (size_t)n), n);
	memset(bytes, 0x5a, sizeof(bytes));
	if (page > 0)
		ck_assert_int_eq(pwrite(out, bytes, sizeof(bytes), page * 4096), 4096);
	close(in);
	close(out);
}

TEST(damaged_file_leaves_no_trace_but_a_note)
{
	begin();
	char path[192];
	snprintf(path, sizeof(path), "%s/bad", s.folder);
	struct stat st;
	ck_assert_int_eq(stat(s.path, &st), 0);
	int n_broken = 0;
	for (off_t page = 1; page < st.st_size / 4096; page++) {
		damaged_copy(path, page);
		struct query_source part[] = {{.path = minute, .live = true}, {.path = path}};
		ck_assert_int_eq(ask(part, 2, QUERY_BY_FUNCTION), 0);
		bool broken = part[1].outcome == QUERY_BROKEN;
		n_broken += broken;
		ck_assert_int_eq(part[0].outcome, QUERY_READ);
		ck_assert_int_eq(has_note("/bad is damaged and left out"), broken);
		ck_assert_uint_eq(a.samples, broken ? 40 : 80);
		ck_assert_uint_eq(samples_of("f"), broken ? 20 : 40);
		ck_assert_uint_eq(a.loss[0].count, broken ? 10 : 20);
	}
	ck_assert_int_gt(n_broken, 3);
}

TEST(damaged_file_leaves_no_trace_in_a_flame_graph)
{
	begin();
	char path[192], whole[8192];
	snprintf(path, sizeof(path), "%s/bad", s.folder);
	struct stat st;
	ck_assert_int_eq(stat(s.path, &st), 0);
	struct answer answer = stored_answer(&a);
	struct query_source good = {.path = s.path};
	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(query_flamegraph(&good, 1, &filter, &answer, &failure), 0);
	snprintf(whole, sizeof(whole), "%s", stored_folded(&a));
	for (off_t page = 1; page < st.st_size / 4096; page++) {
		damaged_copy(path, page);
		struct query_source part[] = {{.path = path}, {.path = s.path}};
		memset(&a, 0, sizeof(a));
		ck_assert_int_eq(query_flamegraph(part, 2, &filter, &answer, &failure), 0);
		if (part[0].outcome == QUERY_BROKEN)
			ck_assert_str_eq(stored_folded(&a), whole);
	}
}

TEST(a_disc_that_fails_for_a_moment_damages_no_file)
{
	static const int passing[] = {SQLITE_IOERR_READ, SQLITE_BUSY, SQLITE_FULL};
	begin();
	struct query_source part[] = {{.path = minute, .live = true}, {.path = s.path}};
	faulty_disc_fail(0, 0, 0);
	ck_assert_int_eq(ask(part, 2, QUERY_BY_FUNCTION), 0);
	const int n_reads = faulty_disc_work();
	ck_assert_int_gt(n_reads, 10);
	for (int n = 0; n < 3 * n_reads; n++) {
		struct query_source again[] = {{.path = minute, .live = true}, {.path = s.path}};
		faulty_disc_fail(n / 3, 1, passing[n % 3]);
		ck_assert_int_eq(ask(again, 2, QUERY_BY_FUNCTION), 0);
		faulty_disc_work();
		/* one is left out and the other read; a lock is waited for */
		unsigned outcome = again[0].outcome + again[1].outcome;
		bool waited = passing[n % 3] == SQLITE_BUSY && outcome == QUERY_READ;
		ck_assert_msg(outcome == QUERY_HELD || waited, "%d in read %d of %d: %s",
			passing[n % 3], n / 3, n_reads, failure.text);
	}
}

TEST(file_that_is_gone_is_counted)
{
	begin();
	struct query_source part[] = {
		{.path = "/nowhere/window/x"}, {.path = minute, .live = true}};
	ck_assert_int_eq(ask(part, 2, QUERY_BY_FUNCTION), 0);
	ck_assert_int_eq(part[0].outcome, QUERY_GONE);
	ck_assert(has_note("1 file was removed by retention"));
	ck_assert_uint_eq(a.samples, 40);
	/* sealed when it was chosen, and yet it is not: what it is now counts */
	part[1].live = false;
	ck_assert_int_eq(ask(part, 2, QUERY_BY_FUNCTION), 0);
	ck_assert_uint_eq(a.samples, 40);
}

TEST(nothing_that_can_be_read_is_a_failure)
{
	begin();
	struct query_source part[] = {{.path = "/nowhere/window/x"}};
	ck_assert_int_eq(ask(part, 1, QUERY_BY_FUNCTION), QUERY_FAILED);
	ck_assert_int_eq(failure.kind, MPERF__FAILURE_KIND__FAILURE_MISSING);
	ck_assert_uint_eq(a.n_told, 0);
	ck_assert_int_eq(ask(part, 0, QUERY_BY_FUNCTION), QUERY_FAILED);
	struct query_source other = {.path = "/etc/passwd"};
	ck_assert_int_eq(ask(&other, 1, QUERY_BY_FUNCTION), QUERY_FAILED);
	ck_assert_int_eq(other.outcome, QUERY_BROKEN);
	filter.event = "cache-misses";
	struct query_source good = {.path = s.path};
	ck_assert_int_eq(ask(&good, 1, QUERY_BY_FUNCTION), QUERY_FAILED);
	ck_assert_int_eq(good.outcome, QUERY_WITHOUT);
	ck_assert_ptr_nonnull(strstr(failure.text, "cache-misses"));
	filter.event = NULL;
}

TEST(file_that_was_named_fails_the_query_if_it_cannot_be_read)
{
	begin();
	char path[192];
	snprintf(path, sizeof(path), "%s/bad", s.folder);
	damaged_copy(path, 1);
	const struct {
		const char *path, *says;
		Mperf__FailureKind kind;
	} bad[] = {
		{"/nowhere/x", "/nowhere/x", MPERF__FAILURE_KIND__FAILURE_MISSING},
		{path, "is damaged", MPERF__FAILURE_KIND__FAILURE_BROKEN},
		/* one of a store would be read as it is now */
		{minute, "is unfinished", MPERF__FAILURE_KIND__FAILURE_BROKEN},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct query_source part[] = {
			{.path = s.path, .named = true}, {.path = bad[i].path, .named = true}};
		ck_assert_int_eq(ask(part, 2, QUERY_BY_FUNCTION), QUERY_FAILED);
		ck_assert_int_eq(failure.kind, bad[i].kind);
		ck_assert_msg(strstr(failure.text, bad[i].says), "%s", failure.text);
		ck_assert_uint_eq(a.n_told, 0);
	}
	struct query_source two[] = {
		{.path = s.path, .named = true}, {.path = s.path, .named = true}};
	ck_assert_int_eq(ask(two, 2, QUERY_BY_FUNCTION), 0);
	ck_assert_uint_eq(a.samples, 80);
	ck_assert_uint_eq(a.n_notes, 0);
}

/* --- who may see what ------------------------------------------------------------------------- */

/* No text of the answer has this in it. */
static void nowhere(const char *text)
{
	for (size_t i = 0; i < a.n_rows; i++)
		for (size_t k = 0; k < a.n_columns; k++)
			ck_assert_ptr_null(strstr(a.cell[i][k].text, text));
	for (uint32_t i = 0; i < a.n_notes; i++)
		ck_assert_ptr_null(strstr(a.note[i], text));
	ck_assert_ptr_null(strstr(a.event, text));
	ck_assert_ptr_null(strstr(a.rung, text));
}

static void others_are_nowhere(void)
{
	nowhere("secret");
	nowhere("password");
	nowhere("hidden");
	nowhere("/home/two");
}

TEST(who_may_not_see_all_sees_his_own)
{
	begin();
	filter = (struct query_filter){.only_uid = true, .uid = 1000, .hide_kernel = true};
	const char *const path[] = {s.path, minute, hour};
	for (size_t i = 0; i < 3; i++) {
		struct query_source part = {.path = path[i], .live = i > 0};
		for (enum query_by by = 0; by < N_QUERY_BY; by++) {
			ck_assert_int_eq(ask(&part, 1, by), 0);
			ck_assert_uint_eq(a.samples, 30);
			others_are_nowhere();
			nowhere("nft");
			nowhere("do_syscall");
			ck_assert_uint_eq(a.loss[0].count, 10); /* losses are everybody's */
			ck_assert(has_note("only your own processes (root sees all)"));
		}
		struct answer answer = stored_answer(&a);
		memset(&a, 0, sizeof(a));
		ck_assert_int_eq(query_flamegraph(&part, 1, &filter, &answer, &failure), 0);
		others_are_nowhere();
		nowhere("nft");
	}
	filter.uid = 4711;
	filter.group = "those";
	struct query_source part = {.path = s.path};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_PROCESS), 0);
	ck_assert_uint_eq(a.n_rows, 0);
	ck_assert(has_note("only your own processes (the group those sees all)"));
	filter = (struct query_filter){0};
}

TEST(task_of_nobody_known_is_not_ones_own)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct task *thread = stored_task(&s, 100, 101, "other");
	t->uid = (uid_t)-1;
	thread->uid = 1000;
	stored_add(&s, &(struct stored_sample){.task = t});
	stored_add(&s, &(struct stored_sample){.task = thread});
	stored_add(&s, &(struct stored_sample){.task = NULL});
	stored_seal(&s);
	struct query_source part = {.path = s.path};
	for (uint32_t uid = 0; uid < 3000; uid += 1000) {
		filter = (struct query_filter){.only_uid = true, .uid = uid};
		ck_assert_int_eq(ask(&part, 1, QUERY_BY_PROCESS), 0);
		ck_assert_uint_eq(a.samples, 0);
	}
	filter = (struct query_filter){.only_uid = true, .uid = UINT32_MAX};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_PROCESS), 0);
	ck_assert_uint_eq(a.samples, 0);
	filter = (struct query_filter){0};
}

TEST(hidden_kernel_is_one_function)
{
	begin();
	filter = (struct query_filter){.hide_kernel = true};
	struct query_source part = {.path = s.path};
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_FUNCTION), 0);
	size_t row = stored_row(&a, "[kernel]");
	ck_assert_str_eq(stored_text(&a, row, "module"), "[kernel]");
	ck_assert_uint_eq(samples_of("[kernel]"), 10);
	ck_assert_double_eq_tol(stored_real(&a, row, "total"), 10.0 / 35, 1e-9);
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_MODULE), 0);
	ck_assert_uint_eq(samples_of("[kernel]"), 10);
	ck_assert_int_eq(ask(&part, 1, QUERY_BY_LINE), 0);
	ck_assert(stored_absent(&a, stored_row(&a, "[kernel]"), "line"));

	struct answer answer = stored_answer(&a);
	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(query_flamegraph(&part, 1, &filter, &answer, &failure), 0);
	/* neither what it is nor how deep */
	ck_assert_ptr_nonnull(strstr(stored_folded(&a), "one;main;f;[kernel] 100000000\n"));
	filter = (struct query_filter){0};
}
