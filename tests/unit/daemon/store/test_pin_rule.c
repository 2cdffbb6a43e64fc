/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rules of jobs that are pinned by themselves: their form, and whose group a job gets into. */

#include <stdlib.h>

#include "daemon/store/pin_rule.h"
#include "tests/unit/test.h"

EACH_TEST();

static struct pin_rules rules;

static void parse(const char *text)
{
	ck_assert_msg(pin_rules_parse(text, &rules) == 0, "%s", text);
}

/* The group of that job, or "" of none; and how many of it are kept. */
static const char *group_of(const char *labels, uint32_t keep)
{
	static char text[LABELS_BYTES_MAX];
	char *group = NULL;
	const struct pin_rule *rule = pin_rules_find(&rules, labels, &group);
	*text = '\0';
	if (rule)
		ck_assert_uint_eq(rule->keep, keep);
	if (rule)
		snprintf(text, sizeof(text), "%s", group);
	free(group);
	return text;
}

TEST(a_rule_has_labels_and_how_many_are_kept)
{
	parse("branch=main,job=bench,keep=20");
	ck_assert_uint_eq(rules.n, 1);
	ck_assert_uint_eq(rules.rule[0].n_labels, 2);
	ck_assert_str_eq(rules.rule[0].label[1].key, "job");
	ck_assert_str_eq(rules.rule[0].label[1].value, "bench");
	ck_assert_uint_eq(rules.rule[0].keep, 20);
	parse("keep=4096,branch=a\\,b  x=y,keep=1");
	ck_assert_uint_eq(rules.n, 2);
	ck_assert_str_eq(group_of("{\"branch\":\"a,b\"}", 4096), "{\"branch\":\"a,b\"}");
	parse("none");
	ck_assert_uint_eq(rules.n, 0);
	ck_assert_str_eq(group_of("{\"branch\":\"main\"}", 0), "");
}

TEST(what_is_no_rule_is_refused_and_leaves_the_old_ones)
{
	static const char *const wrong[] = {"branch=main", "keep=20", "branch=main,keep=0",
		"branch=main,keep=4097", "branch=main,keep=", "branch=main,keep=1x",
		"branch=main,keep=1,keep=2", "branch=main,branch=x,keep=1", "branch,keep=1",
		"branch=main,,keep=1", "branch=main,keep=1,", ",branch=main,keep=1", "2x=a,keep=1",
		"a=1,keep=1 none", "a=1,keep=1 b=2", "a=\t,keep=1",
		"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,keep=1",
		("a=,keep=1 b=,keep=1 c=,keep=1 d=,keep=1 e=,keep=1 f=,keep=1 g=,keep=1 h=,keep=1 "
		 "i=,keep=1"),
		"a=\\ b,keep=1"};
	parse("a=b,keep=3");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(pin_rules_parse(wrong[i], &rules) == LABELS_WRONG, "%s", wrong[i]);
	ck_assert_str_eq(group_of("{\"a\":\"b\"}", 3), "{\"a\":\"b\"}");
}

TEST(a_job_is_of_the_first_rule_that_it_matches)
{
	parse("branch=main,job=bench,keep=3 branch=main,keep=5");
	ck_assert_str_eq(group_of("{\"branch\":\"main\",\"job\":\"bench\",\"run\":\"1\"}", 3),
		"{\"branch\":\"main\",\"job\":\"bench\"}");
	ck_assert_str_eq(
		group_of("{\"branch\":\"main\",\"job\":\"lint\"}", 5), "{\"branch\":\"main\"}");
	ck_assert_str_eq(group_of("{\"branch\":\"mainline\"}", 0), "");
	ck_assert_str_eq(group_of("no labels", 0), "");
}

TEST(each_value_that_a_pattern_matches_is_a_group_of_its_own)
{
	parse("branch=release-*,keep=5");
	ck_assert_str_eq(group_of("{\"branch\":\"release-1\"}", 5), "{\"branch\":\"release-1\"}");
	ck_assert_str_eq(group_of("{\"branch\":\"release-2\"}", 5), "{\"branch\":\"release-2\"}");
	ck_assert_str_eq(group_of("{\"branch\":\"topic\"}", 0), "");
}
