/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which rows a limit leaves, and in which order.
 */
#include <stdlib.h>

#include "daemon/query/loops/roofline_private.h"
#include "tests/unit/test.h"

#define SITES_MAX 8

static struct fact_site site[SITES_MAX];
static struct roof_sums sums[SITES_MAX];
static struct roof_row row[SITES_MAX];

/* 0 ( 3 1 ( 4 ) )   2   5 ( 6 ) */
static const uint32_t line[] = {1, 8, 1, 5, 9, 1, 2};
static const uint32_t parent[] = {0, 1, 0, 1, 2, 0, 6};
static const double own_ns[] = {1, 2, 10, 3, 50, 0, 40};

/* The rows' order as digits: loops with these parents (index + 1) and own times. */
static const char *order(
	const uint32_t *parents, const double *own, uint32_t n, struct roofline_question q)
{
	static char text[SITES_MAX + 1];
	struct roofline r = {.q = q,
		.groups = {.n = n, .self = sums, .total = sums},
		.rows = {.row = row, .n = n}};
	r.facts.sites.site = site;
	for (uint32_t i = 0; i < n; i++) {
		site[i] = (struct fact_site){
			.kind = LOOP_SITE_LOOP, .parent = parents[i], .line = line[i]};
		row[i] = (struct roof_row){.group = i, .self_ns = own[i]};
		if (parents[i])
			row[i].depth = (uint8_t)(row[parents[i] - 1].depth + 1);
	}
	for (uint32_t i = n; i > 0; i--) {
		row[i - 1].total.time_ns += own[i - 1];
		if (parents[i - 1])
			row[parents[i - 1] - 1].total.time_ns += row[i - 1].total.time_ns;
	}
	ck_assert_int_eq(roofline_order(&r), 0);
	for (uint32_t i = 0; i < r.rows.n; i++)
		text[i] = (char)('0' + r.rows.row[i].group);
	text[r.rows.n] = '\0';
	return text;
}

TEST(loops_of_a_nest_stand_together_in_the_order_of_the_source)
{
	ck_assert_str_eq(order(parent, own_ns, 7, (struct roofline_question){0}), "0314562");
}

TEST(a_chosen_loop_has_those_around_it)
{
	ck_assert_str_eq(order(parent, own_ns, 7, (struct roofline_question){.limit = 3}), "014");
	ck_assert_str_eq(order(parent, own_ns, 7, (struct roofline_question){.limit = 5}), "01456");
}

TEST(the_first_row_is_shown_even_where_those_around_it_do_not_fit)
{
	ck_assert_str_eq(order(parent, own_ns, 7, (struct roofline_question){.limit = 1}), "4");
}

TEST(inclusive_rows_are_chosen_by_the_time_with_what_is_inside)
{
	struct roofline_question q = {.limit = 2, .inclusive = true};
	ck_assert_str_eq(order(parent, own_ns, 7, q), "01");
}

TEST(nests_deeper_than_a_row_can_say_have_an_order)
{
	enum { DEEP = 600 };
	static struct fact_site sites[DEEP];
	static struct roof_sums none[DEEP];
	static struct roof_row rows[DEEP];
	struct roofline r = {.groups = {.n = DEEP, .self = none, .total = none},
		.rows = {.row = rows, .n = DEEP}};
	r.facts.sites.site = sites;
	for (uint32_t i = 0; i < DEEP; i++) {
		sites[i] = (struct fact_site){.kind = LOOP_SITE_LOOP, .parent = i};
		rows[i] = (struct roof_row){.group = i,
			.self_ns = i % 7,
			.depth = i < UINT8_MAX ? (uint8_t)i : UINT8_MAX};
	}
	ck_assert_int_eq(roofline_order(&r), 0);
	for (uint32_t i = 0; i < DEEP; i++)
		ck_assert_uint_eq(rows[i].group, i);
}

TEST(other_groupings_go_by_time_alone)
{
	struct roofline_question q = {.by = ROOFLINE_FUNCTION, .limit = 3};
	const double ns[] = {1, 5, 2, 4};
	ck_assert_str_eq(order((const uint32_t[]){0, 0, 0, 0}, ns, 4, q), "132");
}
