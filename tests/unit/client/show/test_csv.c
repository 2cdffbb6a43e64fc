/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Comma-separated values as other programs read them.
 */

#include "client/show/csv.h"
#include "proto/base/memory.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"function", "Function", MPERF__UNIT__UNIT_NONE}, {"n", "N", MPERF__UNIT__UNIT_COUNT}};

static char *written(const struct reply *r)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(csv_write(r, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

/* One row of a text and a number. */
static void is_written(const char *name, Mperf__Value n, const char *line)
{
	struct reply r = {0};
	ck_assert_int_eq(answers_columns(reply_take, &r, columns, 2), 0);
	Mperf__Value text = answers_text(name), *value[2] = {&text, &n};
	Mperf__Row row = MPERF__ROW__INIT, *list[1] = {&row};
	row.n_value = 2;
	row.value = value;
	Mperf__Rows rows = MPERF__ROWS__INIT;
	rows.n_row = 1;
	rows.row = list;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_ROWS;
	a.rows = &rows;
	ck_assert_int_eq(reply_take(&r, &a), 0);
	_cleanup_(freep) char *whole = written(&r);
	ck_assert_int_eq(strncmp(whole, "function,n\r\n", 12), 0);
	ck_assert_str_eq(whole + 12, line);
	reply_clear(&r);
}

TEST(plain_values_are_plain)
{
	is_written("main", answers_integer(-7), "main,-7\r\n");
	is_written("main", answers_real(0.5), "main,0.5\r\n");
}

TEST(what_was_not_measured_is_empty)
{
	is_written("main", (Mperf__Value)MPERF__VALUE__INIT, "main,\r\n");
	is_written("", answers_integer(0), ",0\r\n");
}

TEST(what_would_break_a_line_is_quoted)
{
	is_written("f<int, int>", answers_integer(1), "\"f<int, int>\",1\r\n");
	is_written("a\"b", answers_integer(1), "\"a\"\"b\",1\r\n");
}

TEST(what_is_not_seen_as_it_is_is_told)
{
	is_written("a\nb", answers_integer(1), "a\\x0ab,1\r\n");
	is_written("a\r\"b", answers_integer(1), "\"a\\x0d\"\"b\",1\r\n");
	is_written("\033[31m,\xff", answers_integer(1), "\"\\x1b[31m,\\xff\",1\r\n");
	is_written("a\u202eb\u200b", answers_integer(1), "a\\u{202e}b\\u{200b},1\r\n");
	is_written("größe 関数", answers_integer(1), "größe 関数,1\r\n");
}

TEST(a_text_that_a_spreadsheet_would_compute_has_a_quote_before_it)
{
	is_written("=cmd|'/c calc'!A0", answers_integer(-1), "\"'=cmd|'/c calc'!A0\",-1\r\n");
	is_written("-[Foo bar]", answers_real(-0.5), "\"'-[Foo bar]\",-0.5\r\n");
	is_written("@SUM(1,\"2\")", answers_integer(1), "\"'@SUM(1,\"\"2\"\")\",1\r\n");
	is_written("+1", answers_integer(1), "\"'+1\",1\r\n");
	is_written("\uff1d1", answers_integer(1), "\"'\uff1d1\",1\r\n");
	is_written("a;=1", answers_integer(1), "\"a;=1\",1\r\n"); /* where ; separates fields */
	is_written("a=b-c", answers_integer(1), "a=b-c,1\r\n");
}

TEST(an_empty_reply_is_nothing)
{
	struct reply r = {0};
	_cleanup_(freep) char *whole = written(&r);
	ck_assert_str_eq(whole, "");
}
