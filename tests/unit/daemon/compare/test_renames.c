/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What became of functions that one side does not have; and the sums of two sides. */

#include "daemon/compare/gather.h"
#include "daemon/compare/renames.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored side[2];
static struct gather *g;
static const struct compare_runs *runs;
static struct function_rename *renames;

static void end(void)
{
	for (int i = 0; i < 2; i++)
		if (*side[i].folder)
			stored_end(&side[i]);
	g = gather_free(g);
	free(renames);
	renames = NULL;
	memset(side, 0, sizeof(side));
}

EACH_TEST(.end = end, .seconds = 60);

/* n samples of function, inlined into `into` if that is not NULL, called by caller. */
static void add(struct stored *s, const char *module, const char *function, const char *into,
	const char *caller, uint64_t n)
{
	static uint64_t offset = 4096;
	struct task *t = task_find(&s->tasks, 100);
	struct frame *leaf = stored_frame(s, FILE_ELF, module, offset += 16);
	struct frame *outer = stored_frame(s, FILE_ELF, "/bin/prog", offset += 16);
	if (into)
		stored_name(leaf, function, into, NULL);
	else
		stored_name(leaf, function, NULL);
	stored_name(outer, caller, NULL);
	stored_add(s, &(struct stored_sample){.task = t ? t : stored_task(s, 100, 100, "prog"),
			      .count = n,
			      .weight_ns = n * 10 * MS,
			      .frame = {leaf, outer}});
}

static void begin(void)
{
	for (int i = 0; i < 2; i++) {
		stored_begin_clock(&side[i]);
		add(&side[i], "/bin/prog", "steady", NULL, "main", 100);
	}
}

static void compare_sides(enum query_by by)
{
	const struct query_filter all = {0};
	const struct query_question question = {.by = by, .filter = &all};
	struct query_error error;
	ck_assert_int_eq(gather_new(by, &g), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			gather_run(g, i == 1, stored_seal(&side[i]), &question, &error), 0);
	ck_assert_int_eq(gather_table(g, &runs), 0);
	ck_assert_int_eq(renames_find(g, runs->n_functions, &renames), 0);
}

/* The row of that name, in that module if it is not NULL. */
static size_t row(const char *function, const char *module)
{
	const char *names[GATHER_PARTS];
	for (size_t i = 0; i < runs->n_functions; i++) {
		gather_names(g, i, names);
		if (strcmp(names[0], function) == 0 && (!module || strcmp(names[1], module) == 0))
			return i;
	}
	ck_abort_msg("no row %s", function);
}

static void became_is(const char *was, const char *is, enum rename_kind kind)
{
	ck_assert_int_eq(renames[row(was, NULL)].kind, kind);
	ck_assert_int_eq(renames[row(is, NULL)].kind, kind);
	if (kind != RENAME_NONE) {
		ck_assert_uint_eq(renames[row(was, NULL)].other, row(is, NULL));
		ck_assert_uint_eq(renames[row(is, NULL)].other, row(was, NULL));
	}
}

TEST(a_function_with_the_same_callers_and_share_is_renamed)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "work", 50);
	add(&side[1], "/bin/prog", "new", NULL, "work", 55);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "new", RENAME_RENAMED);
	ck_assert_int_eq(renames[row("steady", NULL)].kind, RENAME_NONE);
}

TEST(a_function_that_calls_itself_is_renamed_with_its_calls)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "old", 40);
	add(&side[0], "/bin/prog", "old", NULL, "work", 10);
	add(&side[1], "/bin/prog", "new", NULL, "new", 40);
	add(&side[1], "/bin/prog", "new", NULL, "work", 10);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "new", RENAME_RENAMED);
}

TEST(other_callers_make_another_function)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "work", 50);
	add(&side[1], "/bin/prog", "new", NULL, "elsewhere", 50);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "new", RENAME_NONE);
}

TEST(callers_of_which_half_are_others_make_another_function)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "work", 50);
	add(&side[1], "/bin/prog", "new", NULL, "work", 25);
	add(&side[1], "/bin/prog", "new", NULL, "elsewhere", 25);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "new", RENAME_NONE);
}

TEST(another_share_makes_another_function)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "work", 20);
	add(&side[1], "/bin/prog", "new", NULL, "work", 90);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "new", RENAME_NONE);
}

TEST(two_that_may_both_be_it_are_neither)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "work", 50);
	add(&side[1], "/bin/prog", "new", NULL, "work", 50);
	add(&side[1], "/bin/prog", "also", NULL, "work", 48);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "new", RENAME_NONE);
}

TEST(a_function_that_was_a_caller_before_is_not_new)
{
	begin();
	add(&side[0], "/bin/prog", "old", NULL, "work", 50);
	add(&side[0], "/bin/prog", "steady", NULL, "wrapper", 5);
	add(&side[1], "/bin/prog", "wrapper", NULL, "work", 50);
	compare_sides(QUERY_BY_FUNCTION);
	became_is("old", "wrapper", RENAME_NONE);
}

TEST(the_same_name_in_another_file_has_moved)
{
	begin();
	add(&side[0], "/bin/prog", "moved", NULL, "work", 50);
	add(&side[1], "/usr/lib/libnew.so", "moved", NULL, "work", 20);
	compare_sides(QUERY_BY_FUNCTION);
	const size_t was = row("moved", "prog"), is = row("moved", "libnew.so");
	ck_assert_int_eq(renames[was].kind, RENAME_MOVED);
	ck_assert_uint_eq(renames[was].other, is);
	ck_assert_uint_eq(renames[is].other, was);
}

TEST(a_name_that_two_files_have_has_not_moved)
{
	begin();
	add(&side[0], "/bin/prog", "init", NULL, "work", 50);
	add(&side[1], "/usr/lib/libone.so", "init", NULL, "work", 20);
	add(&side[1], "/usr/lib/libtwo.so", "init", NULL, "work", 20);
	compare_sides(QUERY_BY_FUNCTION);
	ck_assert_int_ne(renames[row("init", "prog")].kind, RENAME_MOVED);
}

TEST(code_that_stands_in_others_now_is_inlined)
{
	begin();
	add(&side[0], "/bin/prog", "helper", NULL, "steady", 50);
	add(&side[1], "/bin/prog", "helper", "steady", "main", 50);
	compare_sides(QUERY_BY_FUNCTION);
	ck_assert_int_eq(renames[row("helper", NULL)].kind, RENAME_INLINED);
}

TEST(code_that_is_no_longer_inlined_is_told_of_the_candidate)
{
	begin();
	add(&side[0], "/bin/prog", "helper", "steady", "main", 50);
	add(&side[1], "/bin/prog", "helper", NULL, "steady", 50);
	compare_sides(QUERY_BY_FUNCTION);
	const size_t helper = row("helper", NULL);
	ck_assert_int_eq(renames[helper].kind, RENAME_INLINED);
	ck_assert_double_eq(gather_sums(g, helper, false).samples, 0);
	ck_assert_double_eq(gather_sums(g, helper, true).samples, 50);
}

TEST(rows_that_are_no_functions_became_nothing)
{
	begin();
	add(&side[0], "/bin/old", "f", NULL, "work", 50);
	add(&side[1], "/bin/new", "f", NULL, "work", 50);
	compare_sides(QUERY_BY_MODULE);
	for (size_t i = 0; i < runs->n_functions; i++)
		ck_assert_int_eq(renames[i].kind, RENAME_NONE);
}

TEST(counts_of_a_side_without_counters_are_not_known)
{
	const struct query_filter all = {0};
	const struct query_question question = {.by = QUERY_BY_FUNCTION, .filter = &all};
	struct query_error error;
	stored_begin_group(&side[0]);
	stored_add(
		&side[0], &(struct stored_sample){.task = stored_task(&side[0], 1, 1, "p"),
				  .count = 20,
				  .frame = {stored_function(&side[0], "/bin/prog", "f")},
				  .read = {{.event = 1, .value = 700}, {.event = 2, .value = 1400}},
				  .n_reads = 2});
	stored_begin_clock(&side[1]);
	stored_add(&side[1], &(struct stored_sample){.task = stored_task(&side[1], 1, 1, "p"),
				     .count = 20,
				     .frame = {stored_function(&side[1], "/bin/prog", "f")}});
	ck_assert_int_eq(gather_new(QUERY_BY_FUNCTION, &g), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			gather_run(g, i == 1, stored_seal(&side[i]), &question, &error), 0);
	ck_assert_int_eq(gather_table(g, &runs), 0);
	const struct gathered_sums a = gather_sums(g, row("f", NULL), false);
	const struct gathered_sums b = gather_sums(g, row("f", NULL), true);
	ck_assert_double_eq(a.cycles, 700);
	ck_assert_double_eq(a.instructions, 1400);
	ck_assert_double_lt(b.cycles, 0);
	ck_assert_double_lt(gather_total(g, true).instructions, 0);
	ck_assert_double_eq(gather_total(g, false).instructions, 1400);
	ck_assert_str_ne(gather_source(g, 0).arch, "");
}
