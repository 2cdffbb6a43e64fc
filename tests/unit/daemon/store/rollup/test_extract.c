/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One job's rows, in a segment of their own: all of its, none of others', or no file at all. */

#include "tests/unit/daemon/store/rollup/extract_rig.inc"

/* A process and its thread, which both had another name before. */
static void made_names(void)
{
	static const char *const name[] = {"first", "second"}, *const worker[] = {"w-1", "w-2"};
	stored_begin_group(&s);
	for (int i = 0; i < 2; i++) {
		struct task *process = stored_task(&s, 100, 100, name[i]);
		struct task *thread = stored_task(&s, 100, 101, worker[i]);
		process->uid = thread->uid = 1000;
		stored_label(&s, process, MINE);
		stored_add(&s, &(struct stored_sample){.task = process, .count = 1u << i});
		stored_add(&s, &(struct stored_sample){.task = thread, .count = 4u << i});
	}
	stored_seal(&s);
}

static int extract(
	uint32_t uid, const char *labels, const char *const *source, size_t n, uint64_t bytes_max)
{
	const struct extract_note note[] = {
		{"pinned_keep", NULL, 3}, {"pinned_group", "branch=main", 0}};
	const struct extract e = {.uid = uid,
		.labels = labels,
		.source = source,
		.n_sources = n,
		.bytes_max = bytes_max,
		.note = note,
		.n_notes = 2};
	snprintf(target, sizeof(target), "%s/pin", s.folder);
	return extract_write(&e, target, &error);
}

static void extract_mine(void)
{
	struct segment_error e;
	const char *const source[] = {s.path};
	int r = extract(1000, MINE, source, 1, ROOMY);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	r = segment_open(target, &extracted, &e);
	ck_assert_msg(r == 0, "%d: %s", r, e.text);
	ck_assert_str_eq(stored_string(extracted, "PRAGMA integrity_check"), "ok");
}

TEST(an_extract_has_the_names_that_threads_had)
{
	made_names();
	extract_mine();
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(x) FROM (SELECT t.comm || ' ' || p.comm || ' ' || "
			"sum(count) x FROM sample s JOIN task t ON t.id = s.task "
			"JOIN task p ON p.id = t.process GROUP BY t.id ORDER BY x)"),
		"first first 1,second second 2,w-1 first 4,w-2 second 8");
}

TEST(an_extract_has_all_rows_of_its_job)
{
	made_jobs();
	extract_mine();
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(count) FROM sample"), 6);
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(truncated) FROM sample"), 4);
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(value) FROM reading"), 602);
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(running_ns) FROM reading "
						  "WHERE running_ns IS NOT NULL"),
		1000);
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(value) FROM loop_count"), 2000);
	ck_assert_int_eq(
		stored_number(extracted,
			"SELECT sum(count) FROM sample s JOIN stack t ON t.id = stack "
			"JOIN place p ON p.frame = t.frame JOIN function f ON f.id = function "
			"WHERE name = 'hot'"),
		2);
}

TEST(an_extract_keeps_threads_and_windows_as_they_were)
{
	made_jobs();
	extract_mine();
	ck_assert_str_eq(stored_string(extracted, "SELECT group_concat(start_ns || ' ' || end_ns) "
						  "FROM window"),
		"0 5000000000,10000000000 15000000000");
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(x) FROM (SELECT t.comm || ' ' || t.tid || ' ' "
			"|| p.comm || ' ' || sum(count) x FROM sample s JOIN task t ON "
			"t.id = s.task JOIN task p ON p.id = t.process GROUP BY t.id "
			"ORDER BY t.tid)"),
		"mine 100 mine 2,worker 101 mine 4");
	ck_assert_str_eq(
		stored_string(extracted, "SELECT value FROM meta WHERE key = 'tier'"), "window");
	ck_assert_int_eq(
		stored_number(extracted, "SELECT value FROM meta WHERE key = 'pinned_keep'"), 3);
}

TEST(an_extract_has_nothing_of_others)
{
	made_jobs();
	extract_mine();
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM task"), 2);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(parent) FROM task"), 0);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM label_set"), 1);
	ck_assert_int_eq(
		stored_number(extracted, "SELECT count(*) FROM function WHERE name = 'hidden'"), 0);
	ck_assert_int_eq(
		stored_number(extracted, "SELECT count(*) FROM file WHERE path = '/bin/other'"), 0);
}

TEST(hotspots_of_an_extract_are_those_of_the_job)
{
	static const char *const label[] = {"job=a"};
	const struct query_filter filter = {
		.label = label, .n_labels = 1, .only_uid = true, .uid = 1000};
	struct stored_answer before, after;
	made_jobs();
	extract_mine();
	ck_assert_int_eq(stored_hotspots(s.db, "thread", &filter, &before), 0);
	ck_assert_int_eq(stored_hotspots(extracted, "thread", &filter, &after), 0);
	ck_assert_uint_eq(before.n_rows, 2);
	ck_assert_uint_eq(after.n_rows, before.n_rows);
	for (size_t i = 0; i < before.n_rows; i++)
		for (size_t k = 0; k < before.n_columns; k++) {
			ck_assert_str_eq(before.cell[i][k].text, after.cell[i][k].text);
			ck_assert(before.cell[i][k].real == after.cell[i][k].real);
		}
}

/* The same file under two names: the second's rows are of the same tasks, and add up. */
TEST(a_job_in_two_files_is_one_extract)
{
	char again[200];
	struct segment_error e;
	made_jobs();
	snprintf(again, sizeof(again), "%s/again.mprf", s.folder);
	ck_assert_int_eq(link(s.path, again), 0);
	const char *const source[] = {s.path, again, "/nowhere/gone.mprf"};
	int r = extract(1000, MINE, source, 3, ROOMY);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(segment_open(target, &extracted, &e), 0);
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(count) FROM sample"), 12);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM task"), 2);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM window"), 4);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM loop_site"), 1);
}

TEST(a_job_without_rows_leaves_no_file)
{
	made_jobs();
	const char *const source[] = {s.path};
	ck_assert_int_eq(extract(1002, MINE, source, 1, ROOMY), EXTRACT_EMPTY);
	ck_assert(!is_there("") && !is_there(ROLLUP_NEW_SUFFIX));
	ck_assert_int_eq(extract(1000, "{\"job\":\"a\"}", source, 1, ROOMY), EXTRACT_EMPTY);
	ck_assert_int_eq(extract(1000, MINE, NULL, 0, ROOMY), EXTRACT_EMPTY);
}

TEST(an_extract_beyond_its_room_leaves_no_file)
{
	made_jobs();
	const char *const source[] = {s.path};
	for (uint64_t bytes = 0; bytes < 150000; bytes += 16384) {
		int r = extract(1000, MINE, source, 1, bytes);
		ck_assert_msg(r == EXTRACT_TOO_LARGE || r == 0, "%d: %s", r, error.text);
		ck_assert(is_there("") == (r == 0));
		ck_assert(!is_there(ROLLUP_NEW_SUFFIX));
		if (r == 0)
			return;
	}
	ck_abort_msg("it never fits");
}

TEST(a_damaged_source_is_named_and_leaves_no_file)
{
	made_jobs();
	FILE *f = fopen(s.path, "r+");
	ck_assert(f && fseek(f, 5000, SEEK_SET) == 0);
	fputs("damage", f);
	fclose(f);
	const char *const source[] = {s.path};
	ck_assert_int_eq(extract(1000, MINE, source, 1, ROOMY), ROLLUP_SOURCE_BROKEN);
	ck_assert_ptr_nonnull(strstr(error.text, s.path));
	ck_assert(!is_there("") && !is_there(ROLLUP_NEW_SUFFIX));
}

/* make waits for sh, which waits for cc: nobody sampled sh, and it is on the way from one to the other. */
TEST(processes_of_the_job_without_samples_are_there_with_their_parents)
{
	stored_begin_clock(&s);
	struct task *shell = stored_task(&s, 50, 50, "secret-shell");
	struct task *make = stored_task(&s, 100, 100, "make");
	struct task *between = stored_task(&s, 101, 101, "sh");
	struct task *cc = stored_task(&s, 102, 102, "cc");
	struct task *worker = stored_task(&s, 102, 103, "worker");
	struct task *others = stored_task(&s, 200, 200, "others");
	make->parent = shell, between->parent = make, cc->parent = between, others->parent = make;
	struct task *const jobs[] = {make, between, cc};
	for (size_t i = 0; i < 3; i++) {
		jobs[i]->uid = 1000;
		stored_label(&s, jobs[i], MINE);
	}
	stored_label(&s, others, "{\"job\":\"b\"}");
	stored_add(&s, &(struct stored_sample){.task = make});
	stored_add(&s, &(struct stored_sample){.task = worker});
	stored_add(&s, &(struct stored_sample){.task = others});
	ck_assert_int_eq(window_add_ended(&s.window, between), 0);
	ck_assert_int_eq(stored_flush(&s, 0, SECOND), 0);
	stored_seal(&s);
	extract_mine();
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(t.comm || '<' || coalesce(p.comm, '') || '/' || "
			"o.comm) FROM (SELECT * FROM task ORDER BY tid) t JOIN task o ON "
			"o.id = t.process LEFT JOIN task p ON p.id = t.parent"),
		"make</make,sh<make/sh,cc<sh/cc,worker</cc");
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM task_label_set"), 3);
}
