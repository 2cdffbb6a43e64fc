/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Answers of several tables, as they come and as they must not come, and their JSON.
 */
#include <errno.h>
#include <jansson.h>

#include "client/show/reply.h"
#include "tests/unit/client/frames.h"
#include "tests/unit/client/said.h"
#include "tests/unit/test.h"

static struct replies r;

static int add(void *replies, const Mperf__Answer *a)
{
	return replies_add(replies, a);
}

static const struct answers_column column[] = {
	{"what", "What", MPERF__UNIT__UNIT_NONE}, {"n", "N", MPERF__UNIT__UNIT_COUNT}};

static int begin(const char *table)
{
	return frames_columns(add, &r, table, column, 2);
}

static int row(const char *what, int64_t n)
{
	Mperf__Value v[] = {answers_text(what), answers_integer(n)};
	return answers_row(add, &r, v, 2);
}

static void tear_down(void)
{
	replies_clear(&r);
}

EACH_TEST(.end = tear_down);

TEST(tables_are_kept_apart_by_their_names)
{
	ck_assert_int_eq(begin("one"), 0);
	ck_assert_int_eq(row("a", 1), 0);
	ck_assert_int_eq(begin("two"), 0);
	ck_assert_int_eq(row("b", 2), 0);
	ck_assert_int_eq(row("c", 3), 0);
	ck_assert_uint_eq(r.n, 2);
	ck_assert_uint_eq(replies_table(&r, "one")->n_rows, 1);
	ck_assert_uint_eq(replies_table(&r, "two")->n_rows, 2);
	ck_assert_ptr_null(replies_table(&r, "three"));
	ck_assert_ptr_null(replies_table(&r, ""));
}

TEST(a_table_that_begins_again_forgets_its_rows)
{
	begin("one");
	row("a", 1);
	begin("two");
	begin("one");
	row("b", 2);
	ck_assert_uint_eq(r.n, 2);
	ck_assert_uint_eq(replies_table(&r, "one")->n_rows, 1);
	ck_assert_str_eq(reply_text(replies_table(&r, "one"), 0, 0), "b");
}

TEST(rows_without_a_table_are_malformed)
{
	ck_assert_int_eq(row("a", 1), REPLY_MALFORMED);
	begin("one");
	replies_clear(&r);
	ck_assert_int_eq(row("a", 1), REPLY_MALFORMED); /* nor after a clear */
}

TEST(rows_of_another_length_are_malformed)
{
	Mperf__Value v = answers_integer(1);
	begin("one");
	ck_assert_int_eq(answers_row(add, &r, &v, 1), REPLY_MALFORMED);
	ck_assert_uint_eq(replies_table(&r, "one")->n_rows, 0);
}

TEST(tables_and_columns_are_bounded)
{
	static struct answers_column many[REPLY_COLUMNS_MAX + 1];
	char name[16];
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++)
		many[i] = column[0];
	ck_assert_int_eq(
		frames_columns(add, &r, "wide", many, REPLY_COLUMNS_MAX + 1), REPLY_TOO_LARGE);
	ck_assert_uint_eq(r.n, 0);
	for (int i = 0; i < REPLIES_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		ck_assert_int_eq(begin(name), 0);
	}
	ck_assert_int_eq(begin("more"), REPLY_TOO_LARGE);
	ck_assert_int_eq(begin("3"), 0); /* one that is there begins again */
}

static int taken(void *replies, const Mperf__Answer *a)
{
	return replies_take(replies, a);
}

TEST(what_does_not_fit_is_said)
{
	struct said said;
	Mperf__Value v = answers_integer(1);
	said_start(&said);
	ck_assert_int_eq(answers_row(taken, &r, &v, 1), REPLY_MALFORMED);
	ck_assert_ptr_nonnull(strstr(said_end(&said), "rows that do not match their columns"));
}

/* The JSON of all tables. */
static json_t *written(const struct replies_frame *frame, bool *ret_one_line)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	ck_assert_int_eq(replies_write_json(&r, frame, f), 0);
	fclose(f);
	*ret_one_line = strchr(text, '\n') == text + size - 1;
	json_t *root = json_loads(text, 0, NULL);
	ck_assert_msg(root != NULL, "%s", text);
	free(text);
	return root;
}

TEST(json_has_an_array_of_rows_per_table)
{
	bool one_line;
	begin("one");
	row("a\xff", 1);
	begin("empty");
	json_t *root = written(NULL, &one_line);
	ck_assert(!one_line);
	ck_assert_uint_eq(json_object_size(root), 2);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "empty")), 0);
	json_t *first = json_array_get(json_object_get(root, "one"), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(first, "n")), 1);
	ck_assert_str_eq(json_string_value(json_object_get(first, "what")), "a\xef\xbf\xbd");
	json_decref(root);
}

TEST(a_frame_is_one_line_with_its_provenance)
{
	bool one_line;
	begin("harts");
	begin("module");
	row("a\nb", 1);
	frames_provenance(add, &r, 5);
	json_t *root = written(&(struct replies_frame){.rows = "module", .time = 1.5}, &one_line);
	ck_assert(one_line);
	ck_assert_str_eq(json_string_value(json_object_get(root, "by")), "module");
	ck_assert_uint_eq(json_array_size(json_object_get(root, "rows")), 1);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "harts")), 0);
	ck_assert(json_is_object(json_object_get(root, "provenance")));
	json_decref(root);
}

TEST(no_tables_are_an_empty_object)
{
	bool one_line;
	json_t *root = written(NULL, &one_line);
	ck_assert_uint_eq(json_object_size(root), 0);
	json_decref(root);
}

TEST(json_that_cannot_be_written_is_an_error)
{
	FILE *f = fopen("/dev/full", "w");
	begin("one");
	for (int i = 0; i < 2000; i++)
		row("a name that fills the buffer", i);
	ck_assert_int_eq(replies_write_json(&r, NULL, f), -EIO);
	fclose(f);
}
