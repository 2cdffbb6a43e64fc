/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables by a list: what their columns are, and their cells.
 */
#include "daemon/answer/row.h"
#include "tests/unit/test.h"

struct seen {
	char table[24];
	size_t n_columns, n_values;
	struct answer_column column[8];
	struct answer_value value[8];
};

static int take_table(void *u, const char *name)
{
	struct seen *s = u;
	strcpy(s->table, name);
	return 0;
}

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	struct seen *s = u;
	memcpy(s->column, c, n * sizeof(*c));
	s->n_columns = n;
	return 0;
}

static int take_row(void *u, const struct answer_value *v, size_t n)
{
	struct seen *s = u;
	memcpy(s->value, v, n * sizeof(*v));
	s->n_values = n;
	return 7;
}

static struct seen seen;
static const struct answer to = {
	.table = take_table, .columns = take_columns, .row = take_row, .userdata = &seen};

static void begin(void)
{
	seen = (struct seen){.table = ""};
}

EACH_TEST(.begin = begin);

struct thing {
	const char *name;
	uint64_t bytes;
	double share;
	int64_t since_ns;
};

#define THING_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(name, "Name", text, t->name)                                                        \
	KNOWN_IF(length, "Length", count, t->name, strlen(t->name))                                \
	COLUMN(bytes, "Size", bytes, t->bytes)                                                     \
	COLUMN(share, "Share", share, t->share)                                                    \
	COLUMN(since, "Since", time, t->since_ns)

TEST(a_table_without_rows_has_its_columns_and_evaluates_no_value)
{
	const struct thing *t = NULL;
	(void)t;
	ck_assert_int_eq(TABLE_BEGIN(&to, "thing", THING_TABLE), 0);
	ck_assert_str_eq(seen.table, "thing");
	ck_assert_uint_eq(seen.n_columns, 5);
	ck_assert_str_eq(seen.column[1].name, "length");
	ck_assert_str_eq(seen.column[1].title, "Length");
	ck_assert_int_eq(seen.column[0].unit, MPERF__UNIT__UNIT_NONE);
	ck_assert_int_eq(seen.column[2].unit, MPERF__UNIT__UNIT_BYTES);
	ck_assert_int_eq(seen.column[4].unit, MPERF__UNIT__UNIT_TIME);
	ck_assert_uint_eq(seen.n_values, 0);
}

TEST(a_row_has_a_cell_for_each_column_and_gives_what_the_callback_gave)
{
	const struct thing *t =
		&(struct thing){"one", UINT64_C(1) << 40, 0.25, 1700000000000000000};
	ck_assert_int_eq(TABLE_ROW(&to, THING_TABLE), 7);
	ck_assert_uint_eq(seen.n_values, 5);
	ck_assert_str_eq(seen.value[0].text, "one");
	ck_assert_int_eq(seen.value[1].integer, 3);
	ck_assert_int_eq(seen.value[2].integer, INT64_C(1) << 40);
	ck_assert_double_eq(seen.value[3].real, 0.25);
	ck_assert_int_eq(seen.value[4].kind, ANSWER_TIME);
}

TEST(what_is_not_known_is_absent)
{
	const struct thing *t = &(struct thing){NULL, 0, NAN, 0};
	(void)TABLE_ROW(&to, THING_TABLE);
	for (size_t i = 0; i < seen.n_values; i++)
		if (i != 2)
			ck_assert_int_eq(seen.value[i].kind, ANSWER_ABSENT);
	ck_assert_int_eq(seen.value[2].kind, ANSWER_INTEGER);
	ck_assert_int_eq(cell_time(INT64_MAX).kind, ANSWER_ABSENT);
	ck_assert_int_eq(cell_ratio(INFINITY).kind, ANSWER_ABSENT);
}

TEST(without_a_name_the_caller_has_begun_the_table)
{
	ck_assert_int_eq(TABLE_BEGIN(&to, NULL, THING_TABLE), 0);
	ck_assert_str_eq(seen.table, "");
	ck_assert_uint_eq(seen.n_columns, 5);
}
