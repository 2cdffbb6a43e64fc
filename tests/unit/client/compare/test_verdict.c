/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a comparison says, from answers made by hand, and which files a selection means.
 */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/compare/recordings.h"
#include "client/compare/verdict.h"
#include "proto/base/memory.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column total_columns[] = {{"verdict", "", 0}, {"change", "", 0},
	{"low", "", 0}, {"high", "", 0}, {"above", "", 0}, {"seen_from", "", 0},
	{"runs_needed", "", 0}, {"untested", "", 0}, {"few_runs", "", 0}, {"not_in_turns", "", 0},
	{"total_wide", "", 0}, {"functions_wide", "", 0}};
static const struct answers_column change_columns[] = {{"function", "", 0}, {"source", "", 0},
	{"line", "", 0}, {"module", "", 0}, {"verdict", "", 0}, {"change", "", 0}, {"low", "", 0},
	{"high", "", 0}, {"adds", "", 0}, {"p", "", 0}};

static const struct verdict_asked asked = {.margin = 0.02, .effect = 0.05, .looks = 2};
static struct replies replies;

#define REAL(x) answers_real(x)
#define TEXT(x) answers_text(x)
#define FLAG(x) answers_integer(x)

static void total(const char *verdict, int few, int not_in_turns, int wide)
{
	Mperf__Value row[] = {TEXT(verdict), REAL(0.05), REAL(0.03), REAL(0.07), REAL(0.068),
		REAL(0.025), REAL(12), FLAG(3), FLAG(few), FLAG(not_in_turns), FLAG(wide), FLAG(0)};
	answers_table(replies_take, &replies, "total", total_columns, 12);
	answers_row(replies_take, &replies, row, 12);
	answers_table(replies_take, &replies, "change", change_columns, 10);
}

static void change(const char *function, const char *module, const char *verdict)
{
	Mperf__Value row[] = {TEXT(function), TEXT("a<b>.c"), TEXT("12"), TEXT(module),
		TEXT(verdict), REAL(0.2), REAL(0.1), REAL(0.3), REAL(0.04), REAL(0.001)};
	answers_row(replies_take, &replies, row, 10);
}

static void teardown(void)
{
	replies_clear(&replies);
}

EACH_TEST(.end = teardown);

static char *written(void (*write)(const struct replies *, const struct verdict_asked *, FILE *))
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	write(&replies, &asked, f);
	fclose(f);
	return text;
}

TEST(the_line_names_what_is_slower)
{
	total("slower", 0, 0, 0);
	change("work", "a.out", "slower");
	change("idle", "a.out", "same");
	_cleanup_(freep) char *line = verdict_line(&replies, &asked);
	ck_assert_str_eq(line,
		"slower: +5.00 % (+3.00 % to +7.00 %) in all; work, a<b>.c:12 in a.out: "
		"+20.0 %");
}

TEST(more_than_three_are_counted)
{
	total("slower", 0, 0, 0);
	for (int i = 0; i < 5; i++)
		change("f", "m", "slower");
	_cleanup_(freep) char *line = verdict_line(&replies, &asked);
	ck_assert_ptr_nonnull(strstr(line, "; and 2 more"));
}

TEST(other_verdicts_begin_as_their_exit_status_means)
{
	total("within", 0, 0, 0);
	_cleanup_(freep) char *within = verdict_line(&replies, &asked);
	ck_assert_int_eq(strncmp(within, "within 2 %: ", 12), 0);
	replies_clear(&replies);
	total("undecided", 0, 1, 1);
	_cleanup_(freep) char *undecided = verdict_line(&replies, &asked);
	ck_assert_int_eq(strncmp(undecided, "not enough to tell: ", 20), 0);
}

TEST(notes_say_what_is_missing_and_what_would_do)
{
	total("undecided", 1, 1, 1);
	_cleanup_(freep) char *notes = written(verdict_notes);
	ck_assert_ptr_nonnull(strstr(notes, "at least 5 runs"));
	ck_assert_ptr_nonnull(strstr(notes, "did not alternate"));
	ck_assert_ptr_nonnull(strstr(notes, "as much as +6.80 %"));
	ck_assert_ptr_nonnull(strstr(notes, "for 5 % it takes 12 runs a side"));
	ck_assert_ptr_nonnull(strstr(notes, "2 looks"));
}

TEST(names_cannot_break_out_of_markdown)
{
	total("slower", 0, 0, 0);
	change("a|b\n<i>`x`", "m", "slower");
	_cleanup_(freep) char *text = written(verdict_markdown);
	ck_assert_ptr_nonnull(
		strstr(text, "\n| **``a\\|b\\x0a<i>`x`, a<b>.c:12 in m``** | +20.0 % "));
	ck_assert_ptr_nonnull(
		strstr(text, "in all; ``a|b\\x0a<i>`x`, a<b>.c:12 in m``: +20.0 %**"));
	ck_assert_ptr_null(strstr(text, "b\n<"));
}

TEST(names_cannot_break_out_of_xml)
{
	total("slower", 0, 0, 0);
	change("a\"/><evil>&\1\xef\xbf\xbf", "m", "slower"); /* U+FFFF is no character of XML */
	_cleanup_(freep) char *text = written(verdict_junit);
	ck_assert_ptr_nonnull(strstr(text,
		"name=\"a&quot;/&gt;&lt;evil&gt;&amp;\\x01\\u{ffff}, a&lt;b&gt;.c:12 in m\""));
	ck_assert_ptr_nonnull(strstr(text, "tests=\"2\" failures=\"2\" skipped=\"0\""));
}

TEST(undecided_is_skipped)
{
	total("undecided", 0, 1, 0);
	change("f", "m", "slower");
	_cleanup_(freep) char *text = written(verdict_junit);
	ck_assert_ptr_nonnull(strstr(text, "failures=\"0\" skipped=\"2\""));
	ck_assert_ptr_null(strstr(text, "<failure"));
}

TEST(an_answer_without_its_tables_is_none)
{
	ck_assert(!verdict_is_there(&replies));
	answers_table(replies_take, &replies, "total", total_columns, 12);
	ck_assert(!verdict_is_there(&replies));
}

/* --- recordings ------------------------------------------------------------------------------- */

static void touch(const char *path)
{
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
}

TEST(a_selection_is_a_file_a_folder_or_a_pattern)
{
	char folder[] = "/tmp/mperf-test-XXXXXX", path[128];
	struct recordings r = {.n = 0}, other = {.n = 0};
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
	ck_assert_int_eq(mkdir("runs[1]", 0700), 0);
	touch("runs[1]/b.mprf");
	touch("runs[1]/a.mprf");
	touch("runs[1]/notes.txt");
	touch("a*b");

	ck_assert_int_eq(recordings_add(&r, "runs[1]"), 0);
	ck_assert_uint_eq(r.n, 2);
	snprintf(path, sizeof(path), "%s/runs[1]/a.mprf", folder);
	ck_assert_str_eq(r.path[0], path);
	ck_assert_int_eq(recordings_add(&r, "a*b"), 0);
	ck_assert_uint_eq(r.n, 3);
	/* again, by other names too */
	ck_assert_int_eq(symlink("a*b", "link"), 0);
	ck_assert_int_eq(recordings_add(&r, "runs\\[1\\]/b*"), 0);
	ck_assert_int_eq(recordings_add(&r, "link"), 0);
	ck_assert_uint_eq(r.n, 3);
	ck_assert_uint_eq(r.n_twice, 2);
	ck_assert_int_eq(recordings_add(&other, "runs[1]/b.mprf"), 0);
	ck_assert_str_eq(recordings_both(&other, &r), other.path[0]);
	recordings_clear(&other);
	ck_assert_ptr_null(recordings_both(&other, &r));
	ck_assert_int_eq(recordings_add(&r, "nothing"), RECORDINGS_NONE);
	ck_assert_int_eq(recordings_add(&r, "runs*/*.none"), RECORDINGS_NONE);
	for (size_t i = r.n; i < RECORDINGS_MAX; i++) {
		snprintf(path, sizeof(path), "runs[1]/%zu", i);
		touch(path);
		ck_assert_int_eq(recordings_add(&r, path), 0);
	}
	touch("one more");
	ck_assert_int_eq(recordings_add(&r, "one more"), RECORDINGS_MANY);
	recordings_clear(&r);
	ck_assert_uint_eq(r.n, 0);
	for (size_t i = 3; i < RECORDINGS_MAX; i++) {
		snprintf(path, sizeof(path), "runs[1]/%zu", i);
		ck_assert_int_eq(unlink(path), 0);
	}
	ck_assert_int_eq(unlink("a*b") | unlink("link") | unlink("one more") |
				 unlink("runs[1]/a.mprf") | unlink("runs[1]/b.mprf") |
				 unlink("runs[1]/notes.txt") | rmdir("runs[1]"),
		0);
	ck_assert_int_eq(rmdir(folder), 0);
}
