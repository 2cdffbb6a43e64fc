/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Chosen windows and tasks, in a segment of their own: no row and no byte of others, or no file at all. */

#include "tests/unit/daemon/store/rollup/extract_rig.inc"

static bool windows[16], tasks[64];
static size_t n_broken;

static int choose(void *userdata, size_t i, struct extract_choice *ret_choice)
{
	(void)i;
	*ret_choice = *(const struct extract_choice *)userdata;
	return 0;
}

static int skip_first(void *userdata, size_t i, struct extract_choice *ret_choice)
{
	(void)userdata;
	(void)ret_choice;
	return i == 0 ? EXTRACT_SKIP : 0;
}

static int fail_second(void *userdata, size_t i, struct extract_choice *ret_choice)
{
	(void)userdata;
	(void)ret_choice;
	return i == 1 ? -EIO : 0;
}

static void note_broken(void *userdata, size_t i)
{
	(void)userdata;
	ck_assert_uint_eq(i, 0);
	n_broken++;
}

static int extract_as(struct extract *e)
{
	snprintf(target, sizeof(target), "%s/chosen", s.folder);
	e->bytes_max = e->bytes_max ? e->bytes_max : ROOMY;
	int r = extract_write(e, target, &error);
	ck_assert(is_there("") == (r == 0));
	ck_assert(!is_there(ROLLUP_NEW_SUFFIX));
	return r;
}

static void extract_choice(struct extract_choice *choice, struct extract *e)
{
	struct segment_error broken;
	const char *const source[] = {s.path};
	e->source = source;
	e->n_sources = 1;
	e->choose = choose;
	e->userdata = choice;
	int r = extract_as(e);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	r = segment_open(target, &extracted, &broken);
	ck_assert_msg(r == 0, "%d: %s", r, broken.text);
	ck_assert_str_eq(stored_string(extracted, "PRAGMA integrity_check"), "ok");
}

/* Choose the tasks of a user, and their windows. */
static struct extract_choice of_user(uint32_t uid)
{
	char sql[96];
	memset(tasks, 0, sizeof(tasks));
	memset(windows, 1, sizeof(windows));
	for (uint32_t i = 1; i < sizeof(tasks); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM task WHERE id = %u AND uid = %u",
			i, uid);
		tasks[i] = stored_number(s.db, sql) == 1;
	}
	return (struct extract_choice){windows, sizeof(windows) - 1, tasks, sizeof(tasks) - 1};
}

static void is_the_same(const char *sql)
{
	char before[4096];
	snprintf(before, sizeof(before), "%s", stored_string(s.db, sql));
	ck_assert_str_eq(stored_string(extracted, sql), before);
	ck_assert(*before);
}

TEST(an_extract_of_everything_is_the_source)
{
	struct extract_choice all = {0};
	made_jobs();
	extract_choice(&all, &(struct extract){0});
	is_the_same(
		"SELECT group_concat(start_ns || ' ' || end_ns || ' ' || realtime_ns) FROM window");
	is_the_same("SELECT group_concat(x) FROM (SELECT window || t.comm || t.tid || p.comm || "
		    "hart || "
		    "coalesce(t.uid, '-') || coalesce(t.account, '-') || count || weight_ns || "
		    "truncated x "
		    "FROM sample s JOIN task t ON t.id = s.task JOIN task p ON p.id = t.process "
		    "ORDER BY x)");
	is_the_same("SELECT group_concat(x) FROM (SELECT value || ' ' || enabled_ns || ' ' || "
		    "coalesce(running_ns, '-') x FROM reading ORDER BY x)");
	is_the_same("SELECT group_concat(x) FROM (SELECT window || cause || hart || count x FROM "
		    "loss ORDER BY x)");
	is_the_same(
		"SELECT group_concat(x) FROM (SELECT t.comm || s.uid || labels x FROM "
		"task_label_set l "
		"JOIN label_set s ON s.id = l.label_set JOIN task t ON t.id = l.task ORDER BY x)");
	is_the_same("SELECT group_concat(x) FROM (SELECT window || comm || subprogram || value x "
		    "FROM loop_count "
		    "JOIN task ON task.id = task JOIN loop_site o ON o.id = loop ORDER BY x)");
}

TEST(chosen_windows_are_taken_from_the_first_to_the_last)
{
	struct extract_choice some = {.window = windows, .n_windows = 3};
	made_jobs();
	for (int first = 1; first <= 4; first++)
		for (int last = first; last <= 3; last++) {
			memset(windows, 0, sizeof(windows));
			memset(windows + first, 1, (size_t)(last - first + 1));
			extract_choice(&some, &(struct extract){0});
			ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM window"),
				last - first + 1);
			ck_assert_int_eq(
				stored_number(extracted, "SELECT min(start_ns) FROM window"),
				(first - 1) * 5 * (int64_t)SECOND);
			ck_assert_int_eq(stored_number(extracted, "SELECT max(end_ns) FROM window"),
				last * 5 * (int64_t)SECOND);
			ck_assert_int_eq(stored_number(extracted, "SELECT sum(count) FROM loss"),
				last - first + 1);
			ck_assert_int_eq(stored_number(extracted,
						 "SELECT count(*) FROM sample WHERE window NOT IN "
						 "(SELECT id FROM window)"),
				0);
			sqlite3_close(extracted);
			extracted = NULL;
			unlink(target);
		}
	windows[4] = true; /* beyond those that were chosen */
	extract_choice(&some, &(struct extract){0});
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM window"), 1);
}

TEST(an_extract_of_a_user_has_their_tasks_and_all_windows)
{
	struct extract_choice user;
	made_jobs();
	user = of_user(1001);
	extract_choice(&user, &(struct extract){0});
	ck_assert_str_eq(stored_string(extracted, "SELECT group_concat(comm) FROM task"), "theirs");
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(count) FROM sample"), 4);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM window"), 4);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM loop_count"), 0);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM loop_site"), 0);
	ck_assert_str_eq(
		stored_string(extracted, "SELECT group_concat(uid || labels) FROM label_set"),
		"1001" MINE);
	ck_assert_str_eq(
		stored_string(extracted, "SELECT group_concat(name) FROM function"), "hidden");
}

static bool has_bytes(const char *path, const char *text)
{
	static char bytes[1 << 20];
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	return memmem(bytes, n, text, strlen(text)) != NULL;
}

TEST(no_byte_of_an_extract_is_of_others)
{
	static const char *const secret[] = {
		"secret-shell", "mine", "worker", "/bin/mine", "\"job\":\"b\"", "hot"};
	struct extract_choice user;
	made_jobs();
	user = of_user(1001);
	extract_choice(&user, &(struct extract){0});
	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++) {
		ck_assert_msg(has_bytes(s.path, secret[i]), "%s", secret[i]);
		ck_assert_msg(!has_bytes(target, secret[i]), "%s", secret[i]);
	}
}

TEST(a_job_and_a_choice_narrow_both)
{
	struct extract_choice some = {.window = windows, .n_windows = 4};
	made_jobs();
	memset(windows, 1, sizeof(windows));
	windows[1] = false;
	extract_choice(&some, &(struct extract){.uid = 1000, .labels = MINE});
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(count) FROM sample"), 3);
	ck_assert_str_eq(stored_string(extracted, "SELECT group_concat(start_ns) FROM window"),
		"10000000000");
}

TEST(a_chosen_thread_brings_the_name_of_its_process_and_not_its_samples)
{
	struct extract_choice thread = {.task = tasks, .n_tasks = sizeof(tasks) - 1};
	made_jobs();
	memset(tasks, 0, sizeof(tasks));
	tasks[stored_number(s.db, "SELECT id FROM task WHERE comm = 'worker'")] = true;
	extract_choice(&thread, &(struct extract){0});
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(t.comm || ' ' || p.comm || ' ' || count) FROM "
			"sample s JOIN task t ON t.id = s.task JOIN task p ON p.id = t.process"),
		"worker mine 2,worker mine 2");
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM loop_count"), 0);
}

/* As ccache does, which executes the compiler: a query shows the arguments of the one that was sampled. */
TEST(a_process_that_executed_another_program_of_the_same_name_keeps_both_arguments)
{
	struct extract_choice first = {.window = windows, .n_windows = 2};
	stored_begin_clock(&s);
	for (uint64_t i = 0; i < 2; i++) {
		struct task *task = stored_task(&s, 100, 100, "cc");
		task->argv = i == 0 ? strdup("cc") : strdup("/usr/bin/cc");
		task->n_argv = (uint32_t)strlen(task->argv) + 1;
		stored_add(&s, &(struct stored_sample){.task = task});
		ck_assert_int_eq(stored_flush(&s, i * SECOND, (i + 1) * SECOND), 0);
	}
	stored_seal(&s);
	memset(windows, 0, sizeof(windows));
	windows[1] = true;
	extract_choice(&first, &(struct extract){0});
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(rtrim(CAST(argv AS TEXT), char(0))) FROM task"),
		"cc");
}

TEST(stacks_that_end_early_are_those_of_the_chosen_tasks)
{
	struct extract_choice user;
	stored_begin_clock(&s);
	struct task *mine = stored_task(&s, 100, 100, "mine"),
		    *theirs = stored_task(&s, 200, 200, "theirs");
	mine->uid = 1000;
	theirs->uid = 1001;
	stored_add(&s, &(struct stored_sample){.task = mine, .count = 3, .truncated = true});
	stored_add(&s, &(struct stored_sample){.task = theirs, .count = 5, .truncated = true});
	s.lost[0][LOSS_STACK_TRUNCATED] = 8;
	s.lost[0][LOSS_RING] = 2;
	stored_seal(&s);
	user = of_user(1000);
	extract_choice(&user, &(struct extract){0});
	ck_assert_str_eq(
		stored_string(extracted, "SELECT group_concat(cause || ' ' || count) FROM loss"),
		"ring overrun 2,truncated stack 3");
}

/* User code, two functions of the kernel, and a module; and the kernel below other user code. */
static void made_kernel(void)
{
	stored_begin_clock(&s);
	struct task *mine = stored_task(&s, 100, 100, "mine");
	struct frame *user = stored_function(&s, "/bin/mine", "main");
	struct frame *kernel[] = {stored_frame(&s, FILE_KERNEL, "[kernel]", 4096),
		stored_frame(&s, FILE_KERNEL, "[kernel]", 8192),
		stored_frame(&s, FILE_MODULE, "[secretmod]", 77)};
	stored_name(kernel[0], "secret_entry@arch/secret.c:9", NULL);
	stored_name(kernel[1], "secret_read", NULL);
	stored_name(kernel[2], "secret_driver", NULL);
	mine->uid = 1000;
	stored_add(&s, &(struct stored_sample){
			       .task = mine, .frame = {kernel[2], kernel[1], kernel[0], user}});
	stored_add(
		&s, &(struct stored_sample){.task = mine, .frame = {kernel[1], kernel[0], user}});
	stored_add(&s, &(struct stored_sample){.task = mine, .frame = {kernel[0]}});
	stored_add(&s, &(struct stored_sample){.task = mine, .frame = {user}});
	stored_seal(&s);
}

TEST(a_hidden_kernel_is_one_function_and_one_frame_of_a_stack)
{
	const struct query_filter hides = {.hide_kernel = true};
	struct extract_choice all = {0};
	struct stored_answer before, after;
	char folded[1024];
	made_kernel();
	extract_choice(&all, &(struct extract){.hide_kernel = true});
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(kind || path || coalesce(build_id, '')) FROM file "
			"WHERE kind IN (2, 3)"),
		"2[kernel]");
	ck_assert_str_eq(
		stored_string(extracted,
			"SELECT group_concat(offset || ' ' || r.state || ' ' || name) FROM "
			"frame r JOIN file f ON f.id = r.file JOIN place p ON p.frame = r.id "
			"JOIN function u ON u.id = p.function WHERE kind = 2"),
		"0 2 [kernel]");
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM stack"), 3);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM sample"), 3);
	ck_assert(has_bytes(s.path, "secret_driver") && !has_bytes(target, "secret"));
	ck_assert_int_eq(stored_flamegraph(s.db, &hides, &before), 0);
	snprintf(folded, sizeof(folded), "%s", stored_folded(&before));
	ck_assert_int_eq(stored_flamegraph(extracted, &(struct query_filter){0}, &after), 0);
	ck_assert_str_eq(stored_folded(&after), folded);
}

TEST(a_kernel_that_is_hidden_in_two_files_stays_one)
{
	struct segment_error e;
	char again[200];
	made_kernel();
	snprintf(again, sizeof(again), "%s/again.mprf", s.folder);
	ck_assert_int_eq(link(s.path, again), 0);
	const char *const source[] = {s.path, again};
	ck_assert_int_eq(extract_as(&(struct extract){
				 .hide_kernel = true, .source = source, .n_sources = 2}),
		0);
	ck_assert_int_eq(segment_open(target, &extracted, &e), 0);
	ck_assert_int_eq(stored_number(extracted, "SELECT sum(count) FROM sample"), 8);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM stack"), 3);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM file WHERE kind = 2"), 1);
	ck_assert(!has_bytes(target, "secret"));
}

TEST(what_has_no_chosen_row_leaves_no_file)
{
	struct extract_choice none = {.window = windows, .n_windows = 4};
	struct extract_choice nobody = {.task = tasks, .n_tasks = 0};
	made_jobs();
	const char *const source[] = {s.path};
	struct extract e = {.source = source, .n_sources = 1, .choose = choose, .userdata = &none};
	memset(windows, 0, sizeof(windows));
	memset(tasks, 1, sizeof(tasks));
	ck_assert_int_eq(extract_as(&e), EXTRACT_EMPTY);
	e.userdata = &nobody;
	ck_assert_int_eq(extract_as(&e), EXTRACT_EMPTY);
	e.n_sources = 0;
	ck_assert_int_eq(extract_as(&e), EXTRACT_EMPTY);
}

TEST(a_chosen_extract_beyond_its_room_leaves_no_file)
{
	struct extract_choice all = {0};
	char name[64];
	stored_begin_clock(&s);
	struct task *task = stored_task(&s, 100, 100, "mine");
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "a_function_with_a_name_that_takes_some_bytes_%d", i);
		stored_add(&s, &(struct stored_sample){.task = task,
				       .frame = {stored_function(&s, "/bin/mine", name)}});
	}
	stored_seal(&s);
	const char *const source[] = {s.path};
	struct extract e = {.source = source,
		.n_sources = 1,
		.choose = choose,
		.userdata = &all,
		.bytes_max = 1};
	ck_assert_int_eq(extract_as(&e), EXTRACT_TOO_LARGE);
	e.bytes_max = ROOMY;
	ck_assert_int_eq(extract_as(&e), 0);
}

TEST(a_source_that_is_skipped_fails_or_is_damaged_leaves_the_others_as_they_are)
{
	char again[200];
	struct segment_error e;
	made_jobs();
	snprintf(again, sizeof(again), "%s/again.mprf", s.folder);
	ck_assert_int_eq(link(s.path, again), 0);
	const char *const source[] = {s.path, again};
	struct extract of = {
		.source = source, .n_sources = 2, .choose = skip_first, .broken = note_broken};
	ck_assert_int_eq(extract_as(&of), 0);
	ck_assert_int_eq(segment_open(target, &extracted, &e), 0);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM window"), 4);
	sqlite3_close(extracted);
	extracted = NULL;
	unlink(target);
	of.choose = fail_second;
	ck_assert_int_eq(extract_as(&of), -EIO);

	/* the first one is damaged now, the second is a whole copy */
	char copy[512];
	unlink(again);
	snprintf(copy, sizeof(copy), "cp %s %s", s.path, again);
	ck_assert_int_eq(system(copy), 0);
	FILE *f = fopen(s.path, "r+");
	ck_assert(f && fseek(f, 5000, SEEK_SET) == 0);
	fputs("damage", f);
	fclose(f);
	of.choose = NULL;
	ck_assert_int_eq(extract_as(&of), 0);
	ck_assert_uint_eq(n_broken, 1);
	unlink(target);
	of.n_sources = 1;
	ck_assert_int_eq(extract_as(&of), EXTRACT_EMPTY);
	of.broken = NULL;
	ck_assert_int_eq(extract_as(&of), ROLLUP_SOURCE_BROKEN);
}

/* Two users, each busy in another second of one window. */
static void made_seconds(void)
{
	stored_begin_clock(&s);
	s.window.seconds.are_kept = true;
	for (int i = 0; i < 2; i++) {
		struct task *t = stored_task(&s, 100 + i, 100 + i, i ? "theirs" : "mine");
		t->uid = 1000 + (uid_t)i;
		if (i == 0)
			stored_label(&s, t, MINE);
		for (uint64_t k = 0; k < 50; k++)
			stored_add(&s, &(struct stored_sample){.task = t,
					       .time_ns = (uint64_t)(2 + i) * SECOND + k * 10 * MS +
							  10 * MS});
	}
	ck_assert_int_eq(stored_flush(&s, 0, 6 * SECOND), 0);
	stored_seal(&s);
	ck_assert_str_eq(
		stored_string(s.db, "SELECT group_concat(hart || ':' || hex(at)) FROM second"),
		"-1:0000FF,-1:000000FF,0:0000FFFF");
}

TEST(seconds_are_of_the_chosen_processes_and_of_no_hart)
{
	made_seconds();
	struct extract_choice choice = of_user(1000);
	struct extract e = {0};
	extract_choice(&choice, &e);
	ck_assert_str_eq(stored_string(extracted,
				 "SELECT group_concat(s.hart || ':' || comm || ':' || hex(at)) "
				 "FROM second s JOIN task t ON t.id = s.task"),
		"-1:mine:0000FF");
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM second"), 1);
}

TEST(seconds_of_harts_stay_where_all_is_chosen)
{
	made_seconds();
	struct extract_choice choice = {0};
	struct extract e = {0};
	extract_choice(&choice, &e);
	is_the_same(
		"SELECT group_concat(hart || ':' || coalesce(comm, '') || ':' || hex(at)) FROM "
		"(SELECT * FROM second s LEFT JOIN task t ON t.id = s.task ORDER BY hart, comm)");
}

TEST(seconds_of_a_job_are_its_own)
{
	made_seconds();
	struct extract_choice choice = {0};
	struct extract e = {.uid = 1000, .labels = MINE};
	extract_choice(&choice, &e);
	ck_assert_int_eq(stored_number(extracted, "SELECT count(*) FROM second"), 1);
	ck_assert_str_eq(stored_string(extracted, "SELECT hex(at) FROM second"), "0000FF");
}
