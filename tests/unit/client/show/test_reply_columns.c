/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Columns that the client adds to an answer, and rows that it drops or sorts.
 */
#include "client/show/reply.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"function", "", MPERF__UNIT__UNIT_NONE}, {"gops", "", MPERF__UNIT__UNIT_RATIO}};

static struct reply reply;

static int add(void *r, const Mperf__Answer *a)
{
	return reply_add(r, a);
}

static void begin(void)
{
	reply = (struct reply){0};
	ck_assert_int_eq(answers_columns(add, &reply, columns, 2), 0);
	for (int i = 0; i < 3; i++) {
		Mperf__Value v[] = {answers_text("f"), answers_real(i)};
		ck_assert_int_eq(answers_row(add, &reply, v, 2), 0);
	}
}

static void end(void)
{
	reply_clear(&reply);
}

EACH_TEST(.begin = begin, .end = end);

static int extend(const char *name, int *ret_column)
{
	Mperf__Column column = MPERF__COLUMN__INIT;
	column.name = column.title = (char *)name;
	return reply_extend(&reply, &column, ret_column);
}

TEST(a_new_column_is_absent_until_it_is_set)
{
	int share, bound;
	double n;
	ck_assert_int_eq(extend("of_roof", &share), 0);
	ck_assert_int_eq(extend("bound_by", &bound), 0);
	ck_assert_int_eq(share, 2);
	ck_assert_int_eq(reply_column(&reply, "bound_by"), 3);
	ck_assert(!reply_number(&reply, 1, share, &n));
	reply_set_real(&reply, 1, share, 0.5);
	ck_assert_int_eq(reply_set_text(&reply, 1, bound, "memory"), 0);
	ck_assert(reply_number(&reply, 1, share, &n) && n == 0.5);
	ck_assert_str_eq(reply_text(&reply, 1, bound), "memory");
	ck_assert_ptr_null(reply_text(&reply, 0, bound));
	ck_assert(reply_number(&reply, 2, 1, &n) && n == 2); /* as before */
}

TEST(there_are_no_more_columns_than_a_reply_holds)
{
	int column;
	for (int i = 2; i < REPLY_COLUMNS_MAX; i++)
		ck_assert_int_eq(extend("x", &column), 0);
	ck_assert_int_eq(extend("x", &column), REPLY_TOO_LARGE);
	ck_assert_uint_eq(reply.columns->n_column, REPLY_COLUMNS_MAX);
}

TEST(a_reply_without_columns_gets_none)
{
	int column;
	reply_clear(&reply);
	ck_assert_int_eq(extend("x", &column), REPLY_TOO_LARGE);
}

TEST(a_cut_reply_keeps_its_first_rows)
{
	double n;
	reply_cut(&reply, 5);
	ck_assert_uint_eq(reply.n_rows, 3);
	reply_cut(&reply, 1);
	ck_assert_uint_eq(reply.n_rows, 1);
	ck_assert(reply_number(&reply, 0, 1, &n) && n == 0);
	Mperf__Value v[] = {answers_text("g"), answers_real(7)};
	ck_assert_int_eq(answers_row(add, &reply, v, 2), 0);
	ck_assert(reply_number(&reply, 1, 1, &n) && n == 7);
	reply_cut(&reply, 0);
	ck_assert_uint_eq(reply.n_rows, 0);
}

TEST(rows_are_sorted_the_largest_first_and_those_without_a_number_last)
{
	double n;
	Mperf__Value v[] = {answers_text("absent"), answers_absent()},
		     w[] = {answers_text("second"), answers_real(2)};
	ck_assert_int_eq(answers_row(add, &reply, v, 2), 0);
	ck_assert_int_eq(answers_row(add, &reply, w, 2), 0);
	ck_assert_int_eq(reply_sort(&reply, 1), 0);
	ck_assert(reply_number(&reply, 0, 1, &n) && n == 2);
	ck_assert_str_eq(reply_text(&reply, 0, 0), "f"); /* it came first */
	ck_assert_str_eq(reply_text(&reply, 1, 0), "second");
	ck_assert(reply_number(&reply, 2, 1, &n) && n == 1);
	ck_assert_str_eq(reply_text(&reply, 4, 0), "absent");
	ck_assert_int_eq(reply_sort(&reply, -1), 0);
	ck_assert_str_eq(reply_text(&reply, 4, 0), "absent");
}
