/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What loops call that nobody counts: its names, and time by samples of which the caller is known.
 */

#include "daemon/query/loops/roofline.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct loop_sites sites;
static struct loop_site *walk, *outer, *inner;

struct seen {
	char column[64][32];
	size_t n_columns, n_rows;
	struct {
		char function[64], kind[16], unseen[512];
		double entries, time_ns, self_ns, bytes, own_bytes;
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
	__auto_type row = &seen->row[seen->n_rows++];
	for (size_t i = 0; i < n; i++) {
		const char *name = seen->column[i],
			   *text = v[i].kind == ANSWER_TEXT ? v[i].text : "";
		if (strcmp(name, "function") == 0)
			snprintf(row->function, sizeof(row->function), "%s", text);
		else if (strcmp(name, "kind") == 0)
			snprintf(row->kind, sizeof(row->kind), "%s", text);
		else if (strcmp(name, "unseen") == 0)
			snprintf(row->unseen, sizeof(row->unseen), "%s", text);
		else if (strcmp(name, "entries") == 0)
			row->entries = number(&v[i]);
		else if (strcmp(name, "time_ns") == 0)
			row->time_ns = number(&v[i]);
		else if (strcmp(name, "time_self_ns") == 0)
			row->self_ns = number(&v[i]);
		else if (strcmp(name, "bytes_loaded") == 0)
			row->bytes = number(&v[i]);
		else if (strcmp(name, "bytes_self") == 0)
			row->own_bytes = number(&v[i]);
	}
	return 0;
}

static int take_provenance(void *userdata, const struct answer_provenance *p)
{
	(void)userdata;
	(void)p;
	return 0;
}

static struct loop_site *site(uint8_t kind, const char *function, const char *nest, uint32_t line,
	uint32_t last, struct loop_site *parent)
{
	const struct loop_site_key key = {.kind = kind,
		.line = line,
		.subprogram = function,
		.source = "src/a.c",
		.nest = nest,
		.inlined_at = ""};
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

/* That many calls of it on these lines, which load bytes. */
static void call(struct task *task, struct loop_site *from, const char *name, uint32_t line,
	uint32_t last, uint64_t calls, uint64_t bytes)
{
	struct loop_site *callee = site(LOOP_SITE_CALLEE, name, "", line, last, from);
	count(task, callee, LOOP_ENTRIES, calls);
	if (bytes)
		count(task, callee, LOOP_BYTES_LOADED, bytes);
}

/* A sample in the first of these frames, which the others called, outwards. */
static void sample(struct task *task, uint64_t weight_ns, const char *leaf, const char *caller,
	const char *callers_caller)
{
	const char *const name[] = {leaf, caller, callers_caller};
	struct stored_sample given = {.task = task, .count = 1, .weight_ns = weight_ns};
	for (unsigned i = 0; i < 3 && name[i]; i++) {
		given.frame[i] =
			stored_frame(&s, FILE_ELF, "/bin/prog", (weight_ns * 4 + i + 1) * 16);
		stored_name(given.frame[i], name[i], NULL);
	}
	stored_add(&s, &given);
}

/* walk() has loops 1 (lines 10 to 20) and in it 1.1 (12 to 15). */
static struct task *begin(void)
{
	stored_begin_clock(&s);
	struct task *task = stored_task(&s, 100, 100, "prog");
	walk = site(LOOP_SITE_FUNCTION, "walk", "", 9, 21, NULL);
	outer = site(LOOP_SITE_LOOP, "walk", "1", 10, 20, walk);
	inner = site(LOOP_SITE_LOOP, "walk", "1.1", 12, 15, outer);
	count(task, walk, LOOP_ENTRIES, 1);
	count(task, outer, LOOP_ENTRIES, 2);
	count(task, outer, LOOP_BYTES_LOADED, 8);
	count(task, inner, LOOP_ENTRIES, 3);
	count(task, inner, LOOP_BYTES_LOADED, 100);
	/* a window is flushed for its samples: one of somebody else */
	sample(stored_task(&s, 300, 300, "else"), 1, "main", NULL, NULL);
	return task;
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
	const struct roofline_question question = {.by = by};
	const struct answer answer = {take_columns, take_row, take_provenance, &seen};
	memset(&seen, 0, sizeof(seen));
	stored_seal(&s);
	ck_assert_msg(query_roofline(&(struct query_source){.db = s.db}, 1, &question, &answer,
			      &error) == 0,
		"%s", error.text);
	return seen;
}

/* By entries, which tell all sites apart. */
static unsigned row_of(const struct seen *seen, double entries)
{
	for (unsigned i = 0; i < seen->n_rows; i++)
		if (seen->row[i].entries == entries)
			return i;
	ck_abort_msg("no row with %.0f entries", entries);
	return 0;
}

TEST(callees_are_named_with_their_calls_by_the_loops_around_the_call)
{
	struct task *task = begin();
	call(task, inner, "rand", 13, 13, 70, 0);
	call(task, outer, "drand48", 11, 11, 5, 0);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_uint_eq(seen.n_rows, 2);
	ck_assert_str_eq(seen.row[row_of(&seen, 2)].unseen, "70 calls of rand, 5 calls of drand48");
	ck_assert_str_eq(seen.row[row_of(&seen, 3)].unseen, "70 calls of rand");
}

TEST(a_function_names_what_its_loops_call)
{
	struct task *task = begin();
	call(task, inner, "rand", 13, 13, 70, 0);
	call(task, outer, "rand", 11, 11, 5, 0);
	struct seen seen = told(ROOFLINE_FUNCTION);
	ck_assert_uint_eq(seen.n_rows, 1);
	ck_assert_str_eq(seen.row[0].unseen, "75 calls of rand");
}

TEST(of_many_callees_three_are_named)
{
	struct task *task = begin();
	call(task, inner, "a", 13, 13, 70, 0);
	call(task, inner, "b", 13, 13, 60, 0);
	call(task, inner, "c", 13, 13, 50, 0);
	call(task, inner, "d", 13, 13, 40, 0);
	call(task, inner, "e", 13, 13, 30, 0);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_str_eq(seen.row[row_of(&seen, 3)].unseen,
		"70 calls of a, 60 calls of b, 50 calls of c, 70 of others");
}

TEST(calls_of_a_callee_are_no_entries_of_a_thread)
{
	struct task *task = begin();
	call(task, inner, "rand", 13, 13, 70, 0);
	struct seen seen = told(ROOFLINE_THREAD);
	ck_assert(seen.row[0].entries == 1 + 2 + 3);
}

TEST(a_sample_in_a_callee_is_its_callers_by_line_and_name)
{
	struct task *task = begin();
	call(task, inner, "rand", 13, 13, 70, 0);
	call(task, inner, "drand48", 14, 14, 80, 0);
	sample(task, 3000000, "__random_r", "rand", "walk@src/a.c:13");
	sample(task, 2000000, "drand48", "walk@src/a.c:14", NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_str_eq(seen.row[row_of(&seen, 3)].unseen,
		"70 calls of rand (3 ms), 80 calls of drand48 (2 ms)");
	ck_assert(seen.row[row_of(&seen, 3)].self_ns <= 0); /* not the loop's own */
}

/* A library without frame pointers loses the caller of its leaf. */
TEST(a_sample_whose_caller_is_lost_is_nobodys)
{
	struct task *task = begin();
	call(task, inner, "rand", 13, 13, 70, 0);
	sample(task, 3000000, "rand", "walk@src/a.c:14", NULL); /* another line */
	sample(task, 5000000, "sqrt", "walk@src/a.c:13", NULL); /* another function */
	sample(task, 7000000, "rand", NULL, NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_str_eq(seen.row[row_of(&seen, 3)].unseen, "70 calls of rand");
}

TEST(a_function_without_a_name_is_what_its_line_calls_if_that_is_one)
{
	struct task *task = begin();
	call(task, inner, "rand", 13, 13, 70, 0);
	call(task, inner, "exp", 14, 14, 80, 0);
	call(task, inner, "log", 14, 14, 90, 0);
	sample(task, 3000000, "[unknown]", "walk@src/a.c:13", NULL);
	sample(task, 5000000, "[unknown]", "walk@src/a.c:14", NULL); /* of two */
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_str_eq(seen.row[row_of(&seen, 3)].unseen,
		"70 calls of rand (3 ms), 90 calls of log, 80 calls of exp");
}

TEST(a_copy_is_a_row_with_its_bytes_which_count_once)
{
	struct task *task = begin();
	call(task, inner, "memcpy", 13, 13, 70, 7000);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert_uint_eq(seen.n_rows, 3);
	unsigned copy = row_of(&seen, 70), in = row_of(&seen, 3), out = row_of(&seen, 2);
	ck_assert_str_eq(seen.row[copy].function, "memcpy");
	ck_assert_str_eq(seen.row[copy].kind, "copy");
	ck_assert_uint_eq(copy, in + 1); /* behind its loop */
	ck_assert(seen.row[copy].bytes == 7000 && seen.row[copy].own_bytes == 7000);
	ck_assert(seen.row[in].bytes == 7100 && seen.row[in].own_bytes == 100);
	ck_assert(seen.row[out].bytes == 7108 && seen.row[out].own_bytes == 8);
	ck_assert_str_eq(seen.row[in].unseen, "");
	ck_assert_str_eq(seen.row[copy].unseen, "");
}

TEST(a_copys_time_is_that_of_its_implementation)
{
	struct task *task = begin();
	call(task, inner, "memcpy", 13, 13, 70, 7000);
	sample(task, 3000000, "__memmove_avx_unaligned_erms", "walk@src/a.c:13", NULL);
	sample(task, 1000000, "walk@src/a.c:14", NULL, NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(seen.row[row_of(&seen, 70)].self_ns == 3000000);
	ck_assert(seen.row[row_of(&seen, 3)].self_ns == 1000000);
	ck_assert(seen.row[row_of(&seen, 3)].time_ns == 4000000);
}

TEST(a_copy_that_no_sample_tells_the_caller_of_has_no_time)
{
	struct task *task = begin();
	call(task, inner, "memcpy", 13, 13, 70, 7000);
	sample(task, 3000000, "__memmove_avx_unaligned_erms", NULL, NULL);
	sample(task, 1000000, "walk@src/a.c:14", NULL, NULL);
	struct seen seen = told(ROOFLINE_LOOP);
	ck_assert(seen.row[row_of(&seen, 70)].self_ns == -1);
}
