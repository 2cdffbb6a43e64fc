/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/label_set.c and label_variables.c */

#include <stdio.h>
#include <string.h>

#include "daemon/attribute/label_set.h"
#include "daemon/attribute/label_variables.h"
#include "tests/unit/test.h"

static struct label_sets sets;

static struct label_set *get(uid_t uid, const char *labels)
{
	struct label_set *set = NULL;

	ck_assert_int_eq(label_set_get(&sets, uid, labels, &set), 0);
	return set;
}

TEST(equal_labels_of_a_user_are_one_set_until_nobody_has_it)
{
	struct label_set *a = get(1000, "{\"a\":\"1\"}"), *b = get(1000, "{\"a\":\"1\"}");
	uint32_t id = a->id;

	ck_assert_ptr_eq(a, b);
	ck_assert_str_eq(a->labels, "{\"a\":\"1\"}");
	label_set_unref(&sets, a);
	ck_assert_uint_eq(HASH_COUNT(sets.set), 1);
	label_set_unref(&sets, b);
	ck_assert_uint_eq(HASH_COUNT(sets.set), 0);
	a = get(1000, "{\"a\":\"1\"}");
	ck_assert_uint_gt(a->id, id); /* ids are keys in segments */
	label_set_unref(&sets, a);
}

TEST(equal_labels_of_two_users_are_two_sets)
{
	struct label_set *a = get(1000, "{}"), *b = get(1001, "{}");

	ck_assert_ptr_ne(a, b);
	ck_assert_uint_ne(a->id, b->id);
	label_set_unref(&sets, a);
	label_set_unref(&sets, b);
	ck_assert_ptr_null(label_set_unref(&sets, NULL));
}

TEST(a_user_at_the_limit_stops_no_other)
{
	struct label_set *mine[LABEL_SETS_USER_MAX], *more;
	char text[32];

	for (int i = 0; i < LABEL_SETS_USER_MAX; i++) {
		snprintf(text, sizeof(text), "{\"n\":\"%d\"}", i);
		mine[i] = get(1000, text);
	}
	ck_assert_int_eq(label_set_get(&sets, 1000, "{}", &more), LABEL_SETS_FULL);
	ck_assert_int_eq(label_set_get(&sets, 1000, "{\"n\":\"7\"}", &more), 0); /* is there */
	label_set_unref(&sets, more);
	struct label_set *theirs = get(1001, "{}");
	label_set_unref(&sets, theirs);
	for (int i = 0; i < LABEL_SETS_USER_MAX; i++)
		label_set_unref(&sets, mine[i]);
}

TEST(all_users_together_have_a_limit)
{
	static struct label_set *all[LABEL_SETS_MAX];
	struct label_set *more;
	char text[32];

	for (int i = 0; i < LABEL_SETS_MAX; i++) {
		snprintf(text, sizeof(text), "{\"n\":\"%d\"}", i);
		all[i] = get((uid_t)(i / LABEL_SETS_USER_MAX), text);
	}
	ck_assert_int_eq(label_set_get(&sets, 4711, "{}", &more), LABEL_SETS_FULL);
	for (int i = 0; i < LABEL_SETS_MAX; i++)
		label_set_unref(&sets, all[i]);
}

TEST(variables_are_labels_of_their_own_or_another_name)
{
	struct label_variables v;

	ck_assert_int_eq(label_variables_parse("CI_JOB_ID,branch=GITHUB_REF_NAME", &v), 0);
	ck_assert_uint_eq(v.n, 2);
	ck_assert_str_eq(v.variable[0].key, "CI_JOB_ID");
	ck_assert_str_eq(v.variable[0].name, "CI_JOB_ID");
	ck_assert_str_eq(v.variable[1].key, "branch");
	ck_assert_str_eq(v.variable[1].name, "GITHUB_REF_NAME");
	ck_assert_int_eq(label_variables_parse("none", &v), 0);
	ck_assert_uint_eq(v.n, 0);
}

TEST(secrets_and_what_is_no_name_are_refused)
{
	static const char *const wrong[] = {"GITHUB_TOKEN", "branch=CI_JOB_TOKEN", "npm_password",
		"AWS_SECRET_ACCESS_KEY", "x=SSH_KEY", "CI_JOB_JWT_V2", "HTTP_AUTH", ",", "A,,B",
		"A=", "=A", "A=B=C", "A B", "A,A", "x=A,x=B", "a=b,none\033", "user=GITHUB_ACTOR",
		"uid", "A1,A2,A3,A4,A5,A6,A7,A8,A9,B1,B2,B3,B4,B5,B6,B7,B8"};
	struct label_variables v = {.n = 77};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(label_variables_parse(wrong[i], &v) == LABELS_WRONG, "%s", wrong[i]);
	ck_assert_uint_eq(v.n, 77);
}

TEST(a_set_is_found_by_its_user_and_labels)
{
	struct label_set *a = get(1000, "{\"a\":\"1\"}");

	ck_assert_ptr_eq(label_set_find(&sets, 1000, "{\"a\":\"1\"}"), a);
	ck_assert_ptr_null(label_set_find(&sets, 1001, "{\"a\":\"1\"}"));
	ck_assert_ptr_null(label_set_find(&sets, 1000, "{\"a\":\"2\"}"));
	label_set_unref(&sets, a);
	ck_assert_ptr_null(sets.users);
}

TEST(labels_outlive_their_set_where_they_are_held)
{
	struct label_set *a = get(1000, "{\"a\":\"1\"}");
	struct label_text *text = label_text_ref(a->text);

	label_set_unref(&sets, a);
	ck_assert_str_eq(text->labels, "{\"a\":\"1\"}");
	label_text_unref(text);
	label_text_unref(NULL);
}
