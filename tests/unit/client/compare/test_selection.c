/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of client/compare/selection.c */

#include "client/compare/selection.h"

#include "tests/unit/test.h"

#define NOW (1764000000 * (int64_t)SECOND)

static struct selection s;
static struct selection_fault fault;

static void end(void)
{
	selection_clear(&s);
}

EACH_TEST(.end = end);

static void parse(const char *text)
{
	selection_clear(&s);
	int r = selection_parse(text, NOW, &s, &fault);
	ck_assert_msg(r == 0, "%s: %s", text, r > 0 ? fault.text : "no memory");
}

static void refused(const char *text, const char *word)
{
	struct selection untouched = {.last = 77};
	*fault.text = '\0';
	ck_assert_msg(
		selection_parse(text, NOW, &untouched, &fault) == SELECTION_WRONG, "%s", text);
	ck_assert_msg(strstr(fault.text, word) != NULL, "%s: %s", text, fault.text);
	ck_assert_uint_eq(untouched.last, 77);
}

TEST(labels_are_taken_as_they_are)
{
	parse("branch=main,job=unit tests,x.y-z_1=");
	ck_assert_uint_eq(s.n_labels, 3);
	ck_assert_str_eq(s.label[0], "branch=main");
	ck_assert_str_eq(s.label[1], "job=unit tests");
	ck_assert_str_eq(s.label[2], "x.y-z_1=");
	ck_assert(s.since_ns == 0 && s.until_ns == 0 && s.last == 0 && s.n_uids == 0);
}

TEST(a_value_may_have_equals_signs_slashes_and_wildcards)
{
	parse("ref=refs/heads/a=b,branch=release-?.*");
	ck_assert_str_eq(s.label[0], "ref=refs/heads/a=b");
	ck_assert_str_eq(s.label[1], "branch=release-?.*");
}

TEST(an_escaped_comma_is_part_of_a_value)
{
	parse("branch=a\\,uid=0,n=1");
	ck_assert_uint_eq(s.n_labels, 2);
	ck_assert_str_eq(s.label[0], "branch=a\\,uid=0"); /* fnmatch takes the backslash away */
	ck_assert_uint_eq(s.n_uids, 0);
}

TEST(an_escaped_backslash_ends_before_a_comma)
{
	parse("branch=a\\\\,n=1");
	ck_assert_uint_eq(s.n_labels, 2);
}

TEST(spaces_may_follow_a_comma_so_that_what_tables_show_is_a_selection)
{
	struct label label[2] = {{"branch", "a, b\\"}, {"job", "lint *"}};
	char says[128];
	parse(labels_say(label, 2, says, sizeof(says)));
	ck_assert_uint_eq(s.n_labels, 2);
	for (size_t i = 0; i < 2; i++) {
		struct label wanted;
		struct label_fault why;
		ck_assert_int_eq(label_parse(s.label[i], &wanted, &why), 0);
		ck_assert(label_matches(&wanted, label, 2));
	}
	refused("branch=main, ", "an item is empty");
}

TEST(a_users_name_may_have_escaped_commas_and_backslashes)
{
	refused("branch=main,user=a\\,b\\\\c",
		"there is no user 'a,b\\c' (a backslash is written \\\\)");
	parse("branch=main,user=ro\\ot");
	ck_assert_uint_eq(s.uid[0], 0);
}

TEST(last_times_and_users_narrow_labels)
{
	parse("branch=main,last=20,since=-1h,until=-5m,uid=1000,uid=0,user=root");
	ck_assert_uint_eq(s.n_labels, 1);
	ck_assert_uint_eq(s.last, 20);
	ck_assert_int_eq(s.since_ns, NOW - 3600 * (int64_t)SECOND);
	ck_assert_int_eq(s.until_ns, NOW - 300 * (int64_t)SECOND);
	ck_assert_uint_eq(s.n_uids, 3);
	ck_assert_uint_eq(s.uid[0], 1000);
	ck_assert_uint_eq(s.uid[1], 0);
	ck_assert_uint_eq(s.uid[2], 0);
}

TEST(a_stretch_of_time_has_no_labels)
{
	parse("since=-1h");
	ck_assert_uint_eq(s.n_labels, 0);
	parse("since=2025-11-01T10:00,until=2025-11-01 11:00");
	ck_assert_int_eq(s.until_ns - s.since_ns, 3600 * (int64_t)SECOND);
}

TEST(words_that_only_begin_like_reserved_ones_are_labels)
{
	parse("last_commit=1,users=3,sincere=x,until.x=1");
	ck_assert_uint_eq(s.n_labels, 4);
}

TEST(a_file_name_is_no_selection)
{
	static const char *const files[] = {"", "a.mprf", "./a=b", "/x/a=b", "dir/a=b",
		"runs/main-*", "=b", "a b=c", "1=2", "-x=1", ".a=b", "a,b=c"};
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		ck_assert_msg(!selection_is_one(files[i]), "%s", files[i]);
	static const char *const selections[] = {"a=", "a=b", "branch=x/y.mprf", "since=", "_x=1"};
	for (size_t i = 0; i < sizeof(selections) / sizeof(*selections); i++)
		ck_assert_msg(selection_is_one(selections[i]), "%s", selections[i]);
}

TEST(empty_parts_are_refused)
{
	refused("branch=main,", "an item is empty");
	refused("branch=main,,n=1", "an item is empty");
	refused(",branch=main", "an item is empty");
	refused("", "an item is empty");
}

TEST(what_is_no_label_is_refused)
{
	refused("branch=main,main", "'main' is not of the form");
	refused("branch=main,a b=c", "'a b' is not a name");
	refused("a=b\n", "control character");
	refused("a=\xff", "not UTF-8");
}

TEST(a_label_of_a_megabyte_is_refused)
{
	static char text[1 << 20];
	memset(text, 'v', sizeof(text) - 1);
	memcpy(text, "a=", 2);
	refused(text, "more than 256 bytes");
	memset(text, 'k', sizeof(text) - 1);
	text[sizeof(text) - 2] = '=';
	refused(text, "is not a name");
}

TEST(the_same_label_twice_is_refused)
{
	refused("branch=a,branch=b", "'branch' is given twice");
	refused("branch=a\\", "'branch' ends with a backslash");
}

TEST(more_labels_than_a_job_has_are_refused)
{
	char text[512] = "";
	for (int i = 0; i <= LABELS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sk%d=v", i ? "," : "",
			i);
	refused(text, "at most 16 labels");
}

TEST(wrong_numbers_of_jobs_are_refused)
{
	static const char *const wrong[] = {
		"", "0", "-1", "+1", " 1", "1x", "4294967296", "99999999999999999999"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char text[64];
		snprintf(text, sizeof(text), "a=b,last=%s", wrong[i]);
		refused(text, "last=");
	}
	refused("a=b,last=1,last=2", "last= is given twice");
}

TEST(wrong_times_are_refused)
{
	refused("a=b,since=soon", "since= takes a time");
	refused("a=b,until=", "until= takes a time");
	refused("since=-1h,since=-2h", "since= is given twice");
	refused("since=-1h,until=-2h", "until= must be later than since=");
	refused("since=-1h,until=-1h", "until= must be later than since=");
}

TEST(wrong_users_are_refused)
{
	refused("a=b,user=no such user", "there is no user 'no such user'");
	refused("a=b,user=", "there is no user ''");
	refused("a=b,uid=", "uid= takes");
	refused("a=b,uid=-1", "uid= takes");
	refused("a=b,uid=root", "uid= takes");
	refused("a=b,uid=4294967295", "uid= takes");
}

TEST(too_many_users_are_refused)
{
	char text[1024] = "a=b";
	for (int i = 0; i <= SELECTION_UIDS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",uid=%d", i);
	refused(text, "at most 64 users");
}

TEST(a_stretch_of_time_without_a_begin_or_with_what_jobs_have_is_refused)
{
	refused("until=-1h", "or since=");
	refused("last=3", "or since=");
	refused("since=-1h,last=3", "need a label");
	refused("since=-1h,uid=0", "need a label");
}
