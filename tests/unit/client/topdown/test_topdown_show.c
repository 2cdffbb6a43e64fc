/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How a tree is shown: rows with bars, explanations, pictures; and answers that are no tree.
 */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "client/topdown/page.h"
#include "client/topdown/text.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/client/markup.h"
#include "tests/unit/test.h"
#include "tests/unit/topdown_case.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct topdown_count counts[] = {
	{"CPU_CYCLES", 1e6},
	{"STALL_SLOT", 3e6},
	{"STALL_SLOT_BACKEND", 1.8e6},
	{"OP_RETIRED", 4e6},
	{"OP_SPEC", 5e6},
	{"BR_MIS_PRED", 40e3},
};

static struct topdown_case c;

/* Neoverse V2 whose front end was not counted. */
static void setup(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	topdown_case_plan(&c, TOPDOWN_ARM("0x410fd4f1"), NULL, 0);
	topdown_case_count(&c, counts, N(counts), false);
}

static void teardown(void)
{
	topdown_case_end(&c);
}

EACH_TEST(.begin = setup, .end = teardown);

static char *text_of(const struct topdown_look *look)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	topdown_text_write(&c.tree, look, "./a b", f);
	fclose(f);
	return text;
}

TEST(a_row_has_its_name_share_and_bar)
{
	_cleanup_(freep) char *text = text_of(&(struct topdown_look){60, false, false});
	const char *rows = strstr(text, "\n\n");
	ck_assert_int_eq(strncmp(text, "Top-down of ./a b on Arm Neoverse V2\n", 37), 0);
	/* 60 columns less 2 + 15 + 2 + 6 + 1 + 0 + 2 leave 32 for a bar of 100 % */
	ck_assert_str_eq(rows,
		"\n\n"
		"  frontend_bound      n/a  STALL_SLOT_FRONTEND was not counted: the PMU "
		"does not know this event code, or there is no PMU\n"
		"  backend_bound    10.5 %  ###\n"
		"> bad_speculation  28.5 %  #########\n"
		"  retiring         50.0 %  ################\n");
}

TEST(bars_end_at_eighths_where_letters_can)
{
	_cleanup_(freep) char *text = text_of(&(struct topdown_look){60, true, false});
	ck_assert_ptr_nonnull(strstr(text, "▶ bad_speculation  28.5 %  █████████▏\n"));
	ck_assert_ptr_nonnull(strstr(text, "  retiring         50.0 %  ████████████████\n"));
}

TEST(colours_are_for_those_that_want_them)
{
	_cleanup_(freep) char *plain = text_of(&(struct topdown_look){60, false, false});
	_cleanup_(freep) char *coloured = text_of(&(struct topdown_look){60, false, true});
	ck_assert_ptr_null(strchr(plain, '\033'));
	ck_assert_ptr_nonnull(strstr(coloured, "\033[1;31m> bad_speculation"));
	ck_assert_ptr_nonnull(strstr(coloured, "\033[32m  retiring"));
	ck_assert_ptr_nonnull(strstr(coloured, "\033[2m  frontend_bound"));
}

TEST(an_explanation_has_formula_inputs_passes_and_source)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	topdown_text_explain(&c.tree, f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text,
		"\nbackend_bound = STALL_SLOT_BACKEND / (#slots * CPU_CYCLES) - 3 * BR_MIS_PRED / "
		"CPU_CYCLES\n"
		"    = 10.5 %, exact: counted all of the time, in pass 1\n"
		"    slots that the back end could not take\n"
		"    STALL_SLOT_BACKEND: 1,800,000, pass 1\n"
		"    CPU_CYCLES: 1,000,000, pass 1\n"
		"    BR_MIS_PRED: 40,000, pass 1\n"
		"    source: ARM-software/data and telemetry-solution, data for Neoverse V2, as in "
		"Linux (newer than 6.12) tools/perf/pmu-events/arch/arm64/arm, verified: no\n"));
	ck_assert_ptr_nonnull(strstr(text, "    STALL_SLOT_FRONTEND: n/a, the PMU does not know"));
	free(text);
}

static char *page_of(bool plain)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	ck_assert_int_eq(topdown_page_write(&c.tree, 1, "Top-down of a <b>", plain, f), 0);
	fclose(f);
	return text;
}

TEST(pictures_are_well_formed_and_need_no_script)
{
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	ck_assert_ptr_nonnull(strstr(svg, "Top-down of a &lt;b&gt; on Arm Neoverse V2"));
	ck_assert_ptr_nonnull(strstr(svg, "n/a: STALL_SLOT_FRONTEND was not counted"));
	ck_assert_ptr_null(strstr(svg, "<script"));
	/* 28.5 of 100 % of 500 */
	ck_assert_ptr_nonnull(strstr(svg, "<rect class=\"bar worst\" x=\"300.0\""));
	ck_assert_ptr_nonnull(strstr(svg, "width=\"142.5\""));
	ck_assert_ptr_nonnull(strstr(page, "<script>\n</script>"));
	ck_assert_ptr_nonnull(strstr(page, "The most is lost to bad_speculation (28.5 %). Look "
					   "next at Branch_Effectiveness."));
}

TEST(a_page_of_two_trees_says_how_each_was_counted)
{
	struct topdown trees[] = {c.tree, c.tree};
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	trees[0].is_alone = trees[1].is_alone = false;
	trees[0].harts = "0-3", trees[1].harts = "4-7";
	trees[0].core = "big", trees[1].core = "little";
	trees[0].passes = 2, trees[1].passes = 5;
	ck_assert_int_eq(topdown_page_write(trees, 2, "Top-down", false, f), 0);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "big: The events need 2 passes"));
	ck_assert_ptr_nonnull(strstr(text, "little: The events need 5 passes"));
	free(text);
}

/* --- answers that are no tree ----------------------------------------------------------------- */

static int add(void *replies, const Mperf__Answer *a)
{
	return replies_add(replies, a);
}

TEST(an_answer_without_its_tables_is_no_tree)
{
	static const struct answers_column columns[] = {{"node", "node", MPERF__UNIT__UNIT_NONE}};
	static const char *const tables[] = {"event", "core", "node"};
	struct replies r = {.n = 0};
	struct topdown t = {.n_nodes = 7};
	ck_assert_int_eq(topdown_read(&t, &r, 0), TOPDOWN_MALFORMED);
	for (size_t i = 0; i < N(tables); i++) {
		ck_assert_int_eq(answers_table(add, &r, tables[i], columns, 1), 0);
		ck_assert_int_eq(topdown_read(&t, &r, 0), TOPDOWN_MALFORMED);
	}
	ck_assert_uint_eq(t.n_nodes, 7);
	replies_clear(&r);
}

/* Another version's, or somebody else's: shown as far as it goes, and harmless. */
TEST(a_tree_with_odd_rows_is_shown)
{
	static const struct answers_column core[] = {{"core", "core", MPERF__UNIT__UNIT_NONE}};
	static const struct answers_column node[] = {{"node", "", MPERF__UNIT__UNIT_NONE},
		{"level", "", MPERF__UNIT__UNIT_NONE}, {"value", "", MPERF__UNIT__UNIT_NONE},
		{"unit", "", MPERF__UNIT__UNIT_NONE}, {"worst", "", MPERF__UNIT__UNIT_NONE}};
	Mperf__Value title[] = {answers_text("\033[31m")};
	Mperf__Value rows[][N(node)] = {
		{answers_text("up\n"), answers_integer(-5), answers_real(1e300), answers_text("%"),
			answers_integer(1)},
		{answers_text("deep"), answers_integer(1000), answers_real(-1e300),
			answers_text("%"), answers_text("x")},
		{answers_absent(), answers_absent(), answers_real(INFINITY), answers_absent(),
			answers_absent()},
	};
	struct replies r = {.n = 0};
	struct topdown t;
	ck_assert_int_eq(answers_table(add, &r, "core", core, 1), 0);
	ck_assert_int_eq(answers_row(add, &r, title, 1), 0);
	ck_assert_int_eq(answers_table(add, &r, "node", node, N(node)), 0);
	for (size_t i = 0; i < N(rows); i++)
		ck_assert_int_eq(answers_row(add, &r, rows[i], N(node)), 0);
	ck_assert_int_eq(answers_table(add, &r, "event", core, 1), 0);
	ck_assert_int_eq(topdown_read(&t, &r, 0), 0);
	ck_assert_int_eq(t.node[0].level, 1);
	ck_assert_int_eq(t.node[1].level, TOPDOWN_LEVELS_MAX);
	ck_assert(isnan(t.node[2].value));

	char *text, *svg;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	topdown_text_write(&t, &(struct topdown_look){20, false, false}, "x", f);
	topdown_text_explain(&t, f);
	fclose(f);
	ck_assert_ptr_null(strchr(text, '\033'));
	f = open_memstream(&svg, &n);
	ck_assert_int_eq(topdown_page_write(&t, 1, "t", true, f), 0);
	fclose(f);
	markup_is_well_formed(svg);
	free(text);
	free(svg);
	topdown_clear(&t);
	replies_clear(&r);
}
