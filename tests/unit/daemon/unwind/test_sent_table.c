/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A table as it arrives from another process: which ones a search may be let loose on. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/unwind/table.h"
#include "tests/unit/test.h"

#define BASE 0x10000u

static struct unwind_table *t;

/* Two pages: code without a rule, rule 1 from 0x100 on, which goes on in the second page, and rule 2 from 0x20 in it on. */
static void setup(void)
{
	const struct unwind_table counts = {
		.base = BASE, .n_segments = 1, .n_rules = 3, .n_pages = 2, .n_rows = 4};
	static const struct unwind_row rows[] = {{0, 0}, {0x100, 1}, {0, 1}, {0x20, 2}};

	t = unwind_table_new(&counts);
	ck_assert_ptr_nonnull(t);
	unwind_table_segments(t)[0] =
		(struct unwind_segment){.offset = 0x1000, .n = 0x18000, .addr = BASE};
	for (uint8_t i = 1; i < 3; i++)
		unwind_table_rules(t)[i] = (struct unwind_rule){
			.cfa = UNWIND_IN_SP, .ra = UNWIND_AT_CFA, .cfa_offset = 8 * i};
	unwind_table_pages(t)[1] = 2;
	unwind_table_pages(t)[2] = 4;
	memcpy(unwind_table_rows(t), rows, sizeof(rows));
}

static void teardown(void)
{
	free(t);
}

EACH_TEST(.begin = setup, .end = teardown);

static int cfa_offset_at(uint64_t offset)
{
	const struct unwind_rule *rule = unwind_table_at(t, offset);
	return rule ? rule->cfa_offset : 0;
}

TEST(a_rule_holds_up_to_the_next_row_and_into_the_next_page)
{
	ck_assert_int_eq(unwind_table_check_counts(t), 0);
	ck_assert_int_eq(unwind_table_check(t), 0);
	ck_assert_int_eq(cfa_offset_at(0xfff), 0); /* before the segment */
	ck_assert_int_eq(cfa_offset_at(0x10ff), 0);
	ck_assert_int_eq(cfa_offset_at(0x1100), 8);
	ck_assert_int_eq(cfa_offset_at(0x10fff), 8);
	ck_assert_int_eq(cfa_offset_at(0x1101f), 8);
	ck_assert_int_eq(cfa_offset_at(0x11020), 16);
	ck_assert_int_eq(cfa_offset_at(0x18fff), 16); /* the end of the segment */
	ck_assert_int_eq(cfa_offset_at(0x19000), 0);
	ck_assert_ptr_null(unwind_table_find(t, BASE - 1));
	ck_assert_ptr_null(unwind_table_find(t, BASE + 0x20000));
	ck_assert_ptr_null(unwind_table_find(t, UINT64_MAX));
}

TEST(counts_that_no_table_has_are_refused)
{
	const struct unwind_table none = {.n_rules = 1},
				  wrong[] = {{.n_rules = 0}, {.n_rules = UNWIND_RULES_MAX + 1},
					  {.n_rules = 1, .n_segments = UNWIND_SEGMENTS_MAX + 1},
					  {.n_rules = 1, .n_pages = UNWIND_PAGES_MAX + 1},
					  {.n_rules = 1, .n_rows = UNWIND_ROWS_MAX + 1}};

	ck_assert_int_eq(unwind_table_check_counts(&none), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(unwind_table_check_counts(&wrong[i]), -EBADMSG);
}

/* Each of these would lead a search, or a step, outside the table. */
TEST(memory_that_leads_outside_is_refused)
{
	uint32_t *page = unwind_table_pages(t);
	struct unwind_row *row = unwind_table_rows(t);
	struct unwind_rule *rule = unwind_table_rules(t);
	const struct {
		uint32_t *word;
		uint32_t value;
	} words[] = {{&page[0], 1}, {&page[1], 0}, {&page[1], 3}, {&page[1], 4}, {&page[1], 5},
		{&page[1], UINT32_MAX}, {&page[2], 3}, {&page[2], 5}};
	const struct {
		uint16_t *word;
		uint16_t value;
	} halves[] = {{&row[0].low, 1}, {&row[2].low, 0x200}, {&row[3].low, 0}, {&row[1].rule, 3},
		{&row[3].rule, UINT16_MAX}};
	uint8_t *const places[] = {&rule[1].cfa, &rule[1].ra, &rule[2].fp};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const uint32_t before = *words[i].word;
		*words[i].word = words[i].value;
		ck_assert_int_eq(unwind_table_check(t), -EBADMSG);
		*words[i].word = before;
	}
	for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
		const uint16_t before = *halves[i].word;
		*halves[i].word = halves[i].value;
		ck_assert_int_eq(unwind_table_check(t), -EBADMSG);
		*halves[i].word = before;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const uint8_t before = *places[i];
		*places[i] = UNWIND_NONE + 1;
		ck_assert_int_eq(unwind_table_check(t), -EBADMSG);
		*places[i] = before;
	}
	ck_assert_int_eq(unwind_table_check(t), 0);
}
