/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of proto/syntax/label.c: what is a label, and sets of them as text */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/syntax/label.h"
#include "tests/unit/test.h"

static struct label label[LABELS_MAX + 1];
static struct label_fault fault;

static void refuses(const char *text, const char *why)
{
	struct label l = {"before", "before"};

	*fault.text = '\0';
	ck_assert_int_eq(label_parse(text, &l, &fault), LABELS_WRONG);
	ck_assert_msg(strstr(fault.text, why) != NULL, "%s: %s", text, fault.text);
	ck_assert_str_eq(l.key, "before");
}

TEST(key_and_value_are_split_at_the_first_equals_sign)
{
	ck_assert_int_eq(label_parse("branch=a=b, \"c\"", &label[0], &fault), 0);
	ck_assert_str_eq(label[0].key, "branch");
	ck_assert_str_eq(label[0].value, "a=b, \"c\"");
	ck_assert_int_eq(label_parse("_x.y-9=", &label[0], &fault), 0);
	ck_assert_str_eq(label[0].value, "");
}

TEST(what_is_no_label_is_refused_by_name)
{
	char text[1024];

	refuses("branch", "'branch' is not of the form KEY=VALUE");
	refuses("=main", "is not a name");
	refuses("9branch=main", "'9branch' is not a name");
	refuses("a b=c", "'a b' is not a name");
	refuses("\033[2J=c", "is not a name");
	refuses("branch=a\nb", "control character");
	refuses("branch=\x7f", "control character");
	refuses("branch=\xff\xfe", "not UTF-8");
	snprintf(text, sizeof(text), "%065d=1", 0);
	memset(text, 'k', 65);
	refuses(text, "is not a name");
	memset(text, 'v', sizeof(text) - 1);
	text[0] = 'k';
	text[1] = '=';
	text[2 + LABEL_VALUE_BYTES_MAX + 1] = '\0';
	refuses(text, "more than 256 bytes");
	text[2 + LABEL_VALUE_BYTES_MAX] = '\0';
	ck_assert_int_eq(label_parse(text, &label[0], &fault), 0);
}

TEST(words_of_selections_are_no_keys)
{
	refuses("since=1", "'since' has a reserved name");
	refuses("until=", "'until' has a reserved name");
	refuses("last=1", "'last' has a reserved name");
	refuses("user=me", "'user' has a reserved name");
	refuses("uid=0", "'uid' has a reserved name");
	ck_assert_int_eq(label_parse("users=me", &label[0], &fault), 0);
	/* what was stored before is read */
	ck_assert_uint_eq(labels_read("{\"user\":\"me\"}", label), 1);
}

static char *written(size_t n)
{
	char *json = NULL;

	ck_assert_int_eq(labels_write(label, n, &json, &fault), 0);
	return json;
}

TEST(equal_sets_are_equal_texts_whatever_the_order)
{
	ck_assert_int_eq(label_make("b", "2", &label[0], &fault), 0);
	ck_assert_int_eq(label_make("a", "\"\\", &label[1], &fault), 0);
	char *one = written(2);
	struct label other = label[0];
	label[0] = label[1];
	label[1] = other;
	char *two = written(2);
	ck_assert_str_eq(one, two);
	ck_assert_str_eq(one, "{\"a\":\"\\\"\\\\\",\"b\":\"2\"}");
	memset(label, 0, sizeof(label));
	ck_assert_uint_eq(labels_read(one, label), 2);
	ck_assert_str_eq(label[0].value, "\"\\");
	ck_assert_str_eq(label[1].key, "b");
	free(one);
	free(two);
}

TEST(the_last_of_equal_keys_counts)
{
	ck_assert_int_eq(label_make("a", "1", &label[0], &fault), 0);
	ck_assert_int_eq(label_make("a", "2", &label[1], &fault), 0);
	char *json = written(2);
	ck_assert_str_eq(json, "{\"a\":\"2\"}");
	free(json);
}

/* Each byte of a value takes two at most. */
TEST(the_longest_set_fits_and_one_label_more_is_refused)
{
	char key[16], value[LABEL_VALUE_BYTES_MAX + 1], *json = NULL;

	memset(value, '"', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	for (int i = 0; i <= LABELS_MAX; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		ck_assert_int_eq(label_make(key, value, &label[i], &fault), 0);
	}
	ck_assert_int_eq(labels_write(label, LABELS_MAX + 1, &json, &fault), LABELS_WRONG);
	ck_assert_ptr_null(json);
	ck_assert_ptr_nonnull(strstr(fault.text, "at most 16"));
	json = written(LABELS_MAX);
	ck_assert_uint_le(strlen(json), LABELS_BYTES_MAX);
	ck_assert_uint_eq(labels_read(json, label), LABELS_MAX);
	free(json);
}

TEST(texts_of_others_give_what_is_a_label_in_them)
{
	static const char *const nothing[] = {"", "{", "[]", "null", "\"x\"", "{\"a\":1}",
		"{\"\":\"x\"}", "{\"a\":\"\\u0001\"}", "{\"a\":{\"b\":\"c\"}}"};

	for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++)
		ck_assert_uint_eq(labels_read(nothing[i], label), 0);
	ck_assert_uint_eq(labels_read(NULL, label), 0);
	ck_assert_uint_eq(labels_read("{\"z\":\"1\",\"9\":\"x\",\"a\":\"2\"}", label), 2);
	ck_assert_str_eq(label[0].key, "a");

	char *large = calloc(1, LABELS_BYTES_MAX + 64);
	ck_assert_ptr_nonnull(large);
	memset(large, ' ', LABELS_BYTES_MAX + 20);
	memcpy(large, "{\"a\":\"1\"}", 9);
	ck_assert_uint_eq(labels_read(large, label), 0);
	free(large);
}

TEST(sets_are_said_and_cut)
{
	char text[64], small[8];

	ck_assert_int_eq(label_make("a", "1", &label[0], &fault), 0);
	ck_assert_int_eq(label_make("bc", "23", &label[1], &fault), 0);
	ck_assert_str_eq(labels_say(label, 2, text, sizeof(text)), "a=1, bc=23");
	ck_assert_str_eq(labels_say(label, 2, small, sizeof(small)), "a=1, bc");
	ck_assert_str_eq(labels_say(label, 0, text, sizeof(text)), "");
}

TEST(a_wanted_value_has_stars_and_question_marks_and_no_sets)
{
	static const struct {
		const char *wanted;
		bool is;
	} cases[] = {{"fix[1]", true}, {"fix*", true}, {"fix?1?", true}, {"fix\\[1]", true},
		{"*[1]", true}, {"fix[12]", false}, {"fix1", false}, {"fix\\*", false}, {"", false},
		{"fix[1", false}};
	struct label wanted;

	ck_assert_int_eq(label_make("branch", "fix[1]", &label[0], &fault), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(label_make("branch", cases[i].wanted, &wanted, &fault), 0);
		ck_assert_msg(
			label_matches(&wanted, label, 1) == cases[i].is, "%s", cases[i].wanted);
	}
	ck_assert_int_eq(label_make("job", "*", &wanted, &fault), 0);
	ck_assert(!label_matches(&wanted, label, 1));
}

static bool matches(const char *wanted, const char *value)
{
	struct label of = {"k", ""}, is = {"k", ""};
	snprintf(of.value, sizeof(of.value), "%s", wanted);
	snprintf(is.value, sizeof(is.value), "%s", value);
	return label_matches(&of, &is, 1);
}

TEST(a_question_mark_is_one_character_of_utf_8)
{
	ck_assert(matches("?", "\u00e9"));
	ck_assert(!matches("??", "\u00e9"));
	ck_assert(matches("a??b", "a\u20ac\U0001f600b"));
	ck_assert(!matches("a????b", "a\u20acb"));
	ck_assert(matches("*?", "\u20ac") && !matches("*??", "\u20ac"));
	ck_assert(matches("\u20ac\\\u00e9", "\u20ac\u00e9"));
}

TEST(a_byte_that_is_of_no_character_counts_one)
{
	ck_assert(matches("??", "\xff\xfe") && !matches("?", "\xff\xfe"));
	ck_assert(matches("?x", "\xe2x"));
	ck_assert(matches("??x", "\xe2\x82x") && matches("??", "\xe2\x82"));
	ck_assert(matches("?", "\x80") && matches("\x80*", "\x80\x80"));
	ck_assert(!matches("\xc3", "\u00e9") && !matches("\xc3*", "\u00e9"));
}

TEST(stars_give_back_what_follows_needs)
{
	ck_assert(matches("*ab*cd", "abxabcdxcd") && !matches("*ab*cd", "abxabcdxc"));
	ck_assert(matches("**", "") && matches("", "") && !matches("?", "") && !matches("", "a"));
	ck_assert(matches("a*", "a") && !matches("a*b", "a"));
	ck_assert(!matches("a\\", "a\\") && matches("a\\\\", "a\\"));
}

/* Of a value of so many characters, which the pattern's star could stand for any number of; the shortest of some. */
static uint64_t matching_ns(const char *c, const char *in_pattern, size_t n)
{
	char value[LABEL_VALUE_BYTES_MAX + 1] = "", pattern[LABEL_VALUE_BYTES_MAX + 1] = "*";
	uint64_t least_ns = UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		strcat(value, c);
	for (size_t i = 0; i < n / 2; i++)
		strcat(pattern, in_pattern);
	strcat(pattern, "b");
	for (int run = 0; run < 10; run++) {
		const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < 200; i++)
			ck_assert(!matches(pattern, value));
		const uint64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	strcat(value, "b");
	ck_assert(matches(pattern, value));
	return least_ns;
}

TEST(what_a_pattern_takes_grows_with_its_length_and_not_with_its_square)
{
	ck_assert_uint_lt(matching_ns("q", "q", 248), 9 * matching_ns("q", "q", 62));
	ck_assert_uint_lt(matching_ns("q", "?", 248), 9 * matching_ns("q", "?", 62));
	ck_assert_uint_lt(
		matching_ns("\u00e9", "\u00e9", 124), 9 * matching_ns("\u00e9", "\u00e9", 31));
}

TEST(what_is_said_of_a_label_matches_only_it)
{
	static const char *const values[] = {
		"a, job=b", "a\\b", "\\", "\\,", "*", "wh?t", "a,", "[x]"};
	char said[64], other[64];

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		label_escape(values[i], said, sizeof(said));
		for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++)
			ck_assert_msg(matches(said, values[k]) == (i == k), "%s", said);
		snprintf(other, sizeof(other), "%sx", values[i]);
		ck_assert(!matches(said, other));
	}
	ck_assert_int_eq(label_make("a", "1, b=2\\", &label[0], &fault), 0);
	ck_assert_str_eq(labels_say(label, 1, said, sizeof(said)), "a=1\\, b=2\\\\");
	ck_assert_str_eq(labels_say_wanted(label, 1, said, sizeof(said)), "a=1, b=2\\");
	ck_assert_str_eq(label_escape("a,b", said, 4), "a\\,");
	ck_assert_str_eq(label_escape("a,b", said, 3), "a");
}

TEST(sets_are_cut_between_characters)
{
	char small[8];

	ck_assert_int_eq(label_make("a", "\u20ac\u20ac", &label[0], &fault), 0);
	ck_assert_str_eq(labels_say(label, 1, small, 7), "a=\u20ac");
	ck_assert_str_eq(labels_say(label, 1, small, 8), "a=\u20ac");
}
