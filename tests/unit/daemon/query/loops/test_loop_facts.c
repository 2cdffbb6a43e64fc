/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a segment says of loops: counts from its tables, time from the samples in their lines; and
 * files whose tables lie.
 */

#include "daemon/query/loops/roofline.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct loop_sites sites;

/* Rows of an answer, as far as these tests look. */
struct seen {
	char column[64][32];
	size_t n_columns, n_rows;
	char uncounted[256]; /* a note */
	struct {
		char function[64], nest[16], clock[16];
		double entries, time_ns, self_ns, bytes, share, ipc, ipc_share;
	} row[32];
};

static int take_columns(void *userdata, const struct answer_column *c, size_t n)
{
	struct seen *seen = userdata;
	ck_assert_uint_le(n, 64);
	for (size_t i = 0; i < n; i++)
		snprintf(seen->column[i], sizeof(seen->column[i]), "%s", c[i].name);
	seen->n_columns = n;
	return 0;
}

static double number(const struct answer_value *v)
{
	return v->kind == ANSWER_INTEGER ? (double)v->integer
	       : v->kind == ANSWER_REAL  ? v->real
					 : -1;
}

static int take_row(void *userdata, const struct answer_value *v, size_t n)
{
	struct seen *seen = userdata;
	ck_assert_uint_lt(seen->n_rows, 32);
	ck_assert_uint_eq(n, seen->n_columns);
	__auto_type row = &seen->row[seen->n_rows++];
	for (size_t i = 0; i < n; i++) {
		const char *name = seen->column[i],
			   *text = v[i].kind == ANSWER_TEXT ? v[i].text : "";
		if (strcmp(name, "function") == 0)
			snprintf(row->function, sizeof(row->function), "%s", text);
		else if (strcmp(name, "nest") == 0)
			snprintf(row->nest, sizeof(row->nest), "%s", text);
		else if (strcmp(name, "clock") == 0)
			snprintf(row->clock, sizeof(row->clock), "%s", text);
		else if (strcmp(name, "entries") == 0)
			row->entries = number(&v[i]);
		else if (strcmp(name, "time_ns") == 0)
			row->time_ns = number(&v[i]);
		else if (strcmp(name, "time_self_ns") == 0)
			row->self_ns = number(&v[i]);
		else if (strcmp(name, "bytes_loaded") == 0)
			row->bytes = number(&v[i]);
		else if (strcmp(name, "ipc") == 0)
			row->ipc = number(&v[i]);
		else if (strcmp(name, "ipc_share") == 0)
			row->ipc_share = number(&v[i]);
		else if (strcmp(name, "share") == 0)
			row->share = number(&v[i]);
	}
	return 0;
}

static int take_provenance(void *userdata, const struct answer_provenance *p)
{
	struct seen *seen = userdata;
	for (size_t i = 0; i < p->n_notes; i++)
		if (strncmp(p->note[i], "Not counted:", strlen("Not counted:")) == 0)
			snprintf(seen->uncounted, sizeof(seen->uncounted), "%s", p->note[i]);
	return 0;
}

static int ask(enum roofline_by by, struct seen *seen, struct query_error *error)
{
	const struct roofline_question question = {.by = by};
	const struct answer answer = {take_columns, take_row, take_provenance, seen};
	memset(seen, 0, sizeof(*seen));
	return query_roofline(&(struct query_source){.db = s.db}, 1, &question, &answer, error);
}

static double self_of(const struct seen *seen, const char *function, const char *nest)
{
	for (size_t i = 0; i < seen->n_rows; i++)
		if (strcmp(seen->row[i].function, function) == 0 &&
			strcmp(seen->row[i].nest, nest) == 0)
			return seen->row[i].self_ns;
	ck_abort_msg("no row of %s %s", function, nest);
	return -1;
}

/* --- a program made by hand ------------------------------------------------------------------- */

static struct loop_site *site(uint8_t kind, const char *function, const char *nest, uint32_t line,
	uint32_t last, const char *inlined_at, struct loop_site *parent)
{
	const struct loop_site_key key = {.kind = kind,
		.line = line,
		.subprogram = function,
		.source = "src/a.c",
		.nest = nest,
		.inlined_at = inlined_at};
	const struct loop_site_more more = {.line_last = last};
	struct loop_site *found;
	ck_assert_int_eq(loop_site_get(&sites, &key, parent, &more, &found), 0);
	return found;
}

static void count(struct task *task, struct loop_site *where, unsigned metric, uint64_t n)
{
	uint64_t value[N_LOOP_VALUES] = {0};
	value[LOOP_VALUE(metric, false)] = n;
	const struct loop_counts c = {.site = where, .value = value};
	ck_assert_int_eq(loop_window_add(&s.window.loops, &sites, task, &c), 0);
}

static void sample(struct task *task, uint64_t weight_ns, const char *inner, const char *outer)
{
	struct frame *frame = stored_frame(&s, FILE_ELF, "/bin/prog", weight_ns * 16);
	if (outer)
		stored_name(frame, inner, outer, NULL);
	else
		stored_name(frame, inner, NULL);
	stored_add(&s, &(struct stored_sample){
			       .task = task, .count = 1, .weight_ns = weight_ns, .frame = {frame}});
}

/* walk() has loops 1 (lines 10 to 20) and in it 1.1 (12 to 15); step() has one (31 to 33), which
 * was also inlined into walk() at line 13. */
static struct task *begin_in(void (*how)(struct stored *))
{
	how(&s);
	struct task *task = stored_task(&s, 100, 100, "prog");
	struct loop_site *walk = site(LOOP_SITE_FUNCTION, "walk", "", 9, 21, "", NULL);
	struct loop_site *outer = site(LOOP_SITE_LOOP, "walk", "1", 10, 20, "", walk);
	struct loop_site *inner = site(LOOP_SITE_LOOP, "walk", "1.1", 12, 15, "", outer);
	struct loop_site *inlined = site(LOOP_SITE_LOOP, "step", "1.1.1", 31, 33, "a.c:13", inner);
	struct loop_site *step = site(LOOP_SITE_FUNCTION, "step", "", 30, 34, "", NULL);
	struct loop_site *own = site(LOOP_SITE_LOOP, "step", "1", 31, 33, "", step);
	count(task, walk, LOOP_ENTRIES, 1);
	count(task, outer, LOOP_ENTRIES, 2);
	count(task, outer, LOOP_BYTES_LOADED, 8);
	count(task, inner, LOOP_ENTRIES, 3);
	count(task, inner, LOOP_BYTES_LOADED, 100);
	count(task, inlined, LOOP_ENTRIES, 4);
	count(task, step, LOOP_ENTRIES, 5);
	count(task, own, LOOP_ENTRIES, 6);
	/* a window is flushed for its samples: one of somebody else */
	sample(stored_task(&s, 300, 300, "else"), 1, "main", NULL);
	return task;
}

static struct task *begin(void)
{
	return begin_in(stored_begin_clock);
}

static void end(void)
{
	loop_window_clear(&s.window.loops);
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
	loop_sites_clear(&sites);
}

EACH_TEST(.end = end);

static struct seen told(enum roofline_by by)
{
	static struct seen seen;
	struct query_error error = {"", "", 0};
	stored_seal(&s);
	ck_assert_msg(ask(by, &seen, &error) == 0, "%s", error.text);
	return seen;
}

TEST(counts_are_with_the_loops_inside)
{
	begin();
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_uint_eq(seen.n_rows, 4);
	for (size_t i = 0; i < seen.n_rows; i++)
		if (strcmp(seen.row[i].nest, "1") == 0 &&
			strcmp(seen.row[i].function, "walk") == 0) {
			ck_assert(seen.row[i].bytes == 108);
			ck_assert(seen.row[i].entries == 2);
			ck_assert(seen.row[i].time_ns == -1);
			ck_assert_str_eq(seen.row[i].clock, "");
		}
}

TEST(a_sample_belongs_to_the_innermost_loop_of_its_line)
{
	struct task *task = begin();
	sample(task, 10, "walk@/home/me/src/a.c:11", NULL);
	sample(task, 200, "walk@/home/me/src/a.c:14", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(self_of(&seen, "walk", "1") == 10);
	ck_assert(self_of(&seen, "walk", "1.1") == 200);
	/* and in time, to all that it is in */
	ck_assert_str_eq(seen.row[0].clock, "sampled");
	ck_assert(seen.row[0].time_ns == 210);
	ck_assert(seen.row[0].share == 1);
}

TEST(an_inlined_loop_is_told_from_the_function_itself)
{
	struct task *task = begin();
	sample(task, 10, "step@src/a.c:32", NULL);
	sample(task, 200, "step@src/a.c:32", "walk@src/a.c:13");
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(self_of(&seen, "step", "1") == 10);
	ck_assert(self_of(&seen, "step", "1.1.1") == 200);
}

TEST(what_is_inlined_without_a_loop_belongs_to_the_loop_around_it)
{
	struct task *task = begin();
	sample(task, 10, "tiny@src/b.h:5", "walk@src/a.c:14");
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(self_of(&seen, "walk", "1.1") == 10);
}

TEST(without_lines_time_is_the_functions)
{
	struct task *task = begin();
	sample(task, 10, "walk", NULL);
	struct seen seen = told(ROOFLINE_FUNCTION);
	ck_assert(self_of(&seen, "walk", "") == 10);
	ck_assert(self_of(&seen, "step", "") == 0);
}

TEST(counts_of_the_hardware_come_with_the_samples)
{
	struct task *task = begin_in(stored_begin_group);
	struct frame *frame = stored_frame(&s, FILE_ELF, "/bin/prog", 48);
	stored_name(frame, "walk@src/a.c:14", NULL);
	stored_add(&s, &(struct stored_sample){.task = task,
			       .frame = {frame},
			       .n_reads = 2,
			       .read = {{1, 100, 10, 10}, {2, 250, 10, 10}}});
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(seen.row[0].ipc == 2.5);
	ck_assert_double_eq(seen.row[0].ipc_share, -1); /* all of them */
}

TEST(counts_say_how_many_samples_they_cover)
{
	struct task *task = begin_in(stored_begin_group);
	struct frame *frame = stored_frame(&s, FILE_ELF, "/bin/prog", 48);
	stored_name(frame, "walk@src/a.c:14", NULL);
	stored_add(&s, &(struct stored_sample){.task = task,
			       .count = 4,
			       .uncounted = 3,
			       .weight_ns = 40,
			       .frame = {frame},
			       .n_reads = 2,
			       .read = {{1, 100, 10, 10}, {2, 250, 10, 10}}});
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(seen.row[0].ipc == 2.5);
	ck_assert_double_eq(seen.row[0].ipc_share, 0.25);
}

TEST(hardware_counts_that_cannot_be_give_no_ipc)
{
	struct task *task = begin_in(stored_begin_group);
	struct frame *frame = stored_frame(&s, FILE_ELF, "/bin/prog", 48);
	stored_name(frame, "walk@src/a.c:14", NULL);
	stored_add(&s, &(struct stored_sample){.task = task,
			       .frame = {frame},
			       .n_reads = 2,
			       .read = {{1, 100, 10, 10}, {2, 5000, 10, 10}}});
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(seen.row[0].ipc == -1);
}

TEST(code_that_nobody_counts_is_named_by_its_share)
{
	struct task *task = begin();
	sample(task, 600, "walk@src/a.c:14", NULL);
	sample(task, 90, "rand", NULL);
	sample(task, 160, "memcpy", NULL);
	sample(task, 80, "rand", NULL);
	sample(task, 40, "exp", NULL);
	sample(task, 30, "log", NULL);
	sample(stored_task(&s, 200, 200, "other"), 5000, "sort", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_str_eq(seen.uncounted,
		"Not counted: rand (prog) 17 %, memcpy (prog) 16 %, exp (prog) 4 % of the time.");
}

TEST(code_that_takes_next_to_no_time_is_not_named)
{
	struct task *task = begin();
	sample(task, 1000, "walk@src/a.c:14", NULL);
	sample(task, 9, "rand", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_str_eq(seen.uncounted, "");
}

TEST(lines_of_another_file_are_no_hit)
{
	struct task *task = begin();
	sample(task, 10, "walk@other/aa.c:14", NULL);
	sample(task, 20, "walk@src/a.c:11", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(self_of(&seen, "walk", "1.1") == 0);
	ck_assert(self_of(&seen, "walk", "1") == 20);
}

TEST(samples_that_reach_no_loop_say_nothing_of_its_time)
{
	struct task *task = begin();
	sample(task, 10, "walk", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(self_of(&seen, "walk", "1.1") == -1);
}

TEST(samples_of_who_counts_nothing_are_left_out)
{
	begin();
	sample(stored_task(&s, 200, 200, "other"), 10, "walk@src/a.c:14", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(seen.row[0].self_ns == -1);
}

/* --- files that lie --------------------------------------------------------------------------- */

static void lie(const char *sql, const char *said)
{
	struct seen seen;
	struct query_error error = {"", "", 0};
	struct segment_error broken;
	char *message = NULL;
	begin();
	sqlite3 *db;
	sqlite3_close(stored_seal(&s));
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(s.path), 0); /* the seal is right */
	ck_assert_int_eq(segment_open(s.path, &s.db, &broken), 0);
	for (int by = 0; by < N_ROOFLINE_BY; by++) {
		int r = ask((enum roofline_by)by, &seen, &error);
		ck_assert_int_eq(r, said ? QUERY_FAILED : 0);
		ck_assert_msg(!said || strstr(error.text, said), "%s", error.text);
	}
	end();
}

TEST(a_negative_count_is_damage)
{
	lie("UPDATE loop_count SET value = -1", "negative");
}

TEST(a_count_of_no_loop_is_damage)
{
	lie("DELETE FROM loop_site WHERE id = 3", "to no loop");
}

TEST(a_loop_in_itself_ends)
{
	lie("UPDATE loop_site SET parent = id", NULL);
	lie("UPDATE loop_site SET parent = id + 1", NULL);
	lie("UPDATE loop_site SET parent = 999999999999", NULL);
}

TEST(what_is_of_no_window_or_metric_is_nothing)
{
	lie("UPDATE loop_count SET window = 77", NULL);
	lie("UPDATE loop_count SET metric = metric + 100000", NULL);
	lie("UPDATE loop_metric SET name = name || '!'", NULL);
	lie("UPDATE loop_count SET task = 12345", NULL);
}

TEST(the_largest_numbers_do_not_wrap)
{
	lie("UPDATE loop_count SET value = 9223372036854775807", NULL);
}

TEST(strange_values_in_columns_are_borne)
{
	lie("UPDATE loop_site SET line = -1, line_last = 'x', flags = 1e300, build_id = "
	    "zeroblob(500)",
		NULL);
	lie("UPDATE loop_site SET subprogram = '', nest = '9.9', source = NULL", NULL);
	lie("UPDATE loop_site SET kind = 200", "to no loop");
}

TEST(a_nest_without_end_is_several)
{
	lie("WITH RECURSIVE n(i) AS (SELECT 7 UNION ALL SELECT i + 1 FROM n WHERE i < 400) "
	    "INSERT INTO loop_site SELECT i, 1, NULL, 'f' || i, NULL, i, '1', NULL, i - 1, i, 0, 0 "
	    "FROM n",
		NULL);
}

/* --- files of MPERF_OUTPUT that lie ----------------------------------------------------------- */

/* Loops in each other, from line `first` on; one counter, of instructions of the innermost. */
static void nest_table(struct told *t, uint32_t first, uint32_t n)
{
	t->n = 0;
	told_byte(t, MPERF_TABLE_VERSION_FIRST);
	told_byte(t, 3);
	told_string(t, "");
	told_string(t, "walk");
	told_string(t, "walk.c");
	told_unsigned(t, n);
	for (uint32_t i = 0; i < n; i++) {
		told_byte(t, MPERF_SCOPE_LOOP);
		told_unsigned(t, i); /* in the one before */
		told_byte(t, 1);
		told_byte(t, 2);
		told_unsigned(t, first + i);
		told_unsigned(t, first + i);
		for (unsigned zeros = 0; zeros < 4; zeros++)
			told_byte(t, 0); /* column, nest, inlined at, flags */
	}
	told_byte(t, 1);
	told_byte(t, MPERF_COUNTER_SUM);
	told_byte(t, 1);
	told_unsigned(t, n - 1);
	told_unsigned(t, (uint64_t)MPERF_METRIC_INSTRUCTIONS << MPERF_VARIANT_BITS);
	told_signed(t, 1);
}

struct written {
	uint8_t bytes[1 << 15];
	size_t n;
};

static void write_message(struct written *w, const struct told *t)
{
	ck_assert_uint_le(w->n + t->n, sizeof(w->bytes));
	memcpy(w->bytes + w->n, t->bytes, t->n);
	w->n += t->n;
}

/* The object's tables, each of which starts with the innermost loop of the one before, and a round
 * for each. */
static void write_nests(struct written *w, uint32_t n_tables)
{
	struct told t, table;
	w->n = 0;
	told_hello(&t, 100, 0);
	write_message(w, &t);
	told_object(&t, 0, n_tables, n_tables);
	write_message(w, &t);
	for (uint32_t i = 0; i < n_tables; i++) {
		nest_table(&table, 1 + i * (LOOP_DEPTH_MAX - 1), LOOP_DEPTH_MAX);
		told_table_message(&t, 0, i, i, 1, &table);
		write_message(w, &t);
	}
	told_thread(&t, 3, 77);
	write_message(w, &t);
	for (uint32_t i = 0; i < n_tables; i++) {
		told_delta(&t, 3, i, 5, 150 + 100 * i);
		write_message(w, &t);
		told_round(&t, 200 + 100 * i);
		write_message(w, &t);
	}
}

static int count_row(void *userdata, const struct answer_value *v, size_t n)
{
	(void)v, (void)n;
	++*(size_t *)userdata;
	return 0;
}

static int ignore_columns(void *userdata, const struct answer_column *c, size_t n)
{
	(void)userdata, (void)c, (void)n;
	return 0;
}

static int ignore_provenance(void *userdata, const struct answer_provenance *p)
{
	(void)userdata, (void)p;
	return 0;
}

static int ask_file(const struct written *w, size_t *ret_rows, struct query_error *error)
{
	const struct roofline_question question = {.by = ROOFLINE_LOOP};
	const struct answer answer = {ignore_columns, count_row, ignore_provenance, ret_rows};
	*ret_rows = 0;
	const struct loop_output file = {w->bytes, w->n, "run.mperf"};
	return query_roofline(
		&(struct query_source){.output = &file}, 1, &question, &answer, error);
}

TEST(tables_that_continue_each_others_nest_without_end_are_damage)
{
	static struct written w;
	struct query_error error = {"", "", 0};
	size_t n_rows;
	write_nests(&w, 1);
	ck_assert_msg(ask_file(&w, &n_rows, &error) == 0, "%s", error.text);
	ck_assert_uint_eq(n_rows, LOOP_DEPTH_MAX);
	write_nests(&w, 3);
	ck_assert_int_eq(ask_file(&w, &n_rows, &error), QUERY_FAILED);
	ck_assert_msg(strstr(error.text, "run.mperf is damaged"), "%s", error.text);
	ck_assert_uint_eq(n_rows, 0);
}
