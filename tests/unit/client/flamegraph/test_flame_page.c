/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Trees put together by hand: merging, sums, malformed trees, and what the page and the SVG do
 * with hostile names.
 */
#include <math.h>

#include "client/flamegraph/flame.h"
#include "client/flamegraph/page.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/client/markup.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"node", "", MPERF__UNIT__UNIT_NONE},
	{"parent", "", MPERF__UNIT__UNIT_NONE},
	{"function", "", MPERF__UNIT__UNIT_NONE},
	{"module", "", MPERF__UNIT__UNIT_NONE},
	{"kind", "", MPERF__UNIT__UNIT_NONE},
	{"value", "", MPERF__UNIT__UNIT_COUNT},
	{"samples", "", MPERF__UNIT__UNIT_COUNT},
	{"counted", "", MPERF__UNIT__UNIT_COUNT},
};
#define N_ALL_COLUMNS (sizeof(columns) / sizeof(*columns))
#define N_COLUMNS (N_ALL_COLUMNS - 2)

static int add(void *flame, const Mperf__Answer *a)
{
	return flame_add(flame, a);
}

static struct flame *empty_flame(void)
{
	struct flame *f = NULL;
	ck_assert_int_eq(flame_new(&f), 0);
	ck_assert_int_eq(answers_columns(add, f, columns, N_COLUMNS), 0);
	return f;
}

static int add_node_of(struct flame *f, const char *module, int64_t id, int64_t parent,
	const char *name, double value)
{
	Mperf__Value v[] = {answers_integer(id), answers_integer(parent),
		name ? answers_text(name) : answers_absent(), answers_text(module),
		answers_text("user"), answers_real(value)};
	return answers_row(add, f, v, N_COLUMNS);
}

static int add_node(struct flame *f, int64_t id, int64_t parent, const char *name, double value)
{
	return add_node_of(f, "/usr/bin/prog", id, parent, name, value);
}

/* main → (a 30, b → leaf 60), main 10; b is reached from two call sites. */
static struct flame *small_flame(void)
{
	struct flame *f = empty_flame();
	ck_assert_int_eq(add_node(f, 1, 0, "main", 10), 0);
	ck_assert_int_eq(add_node(f, 2, 1, "b", 0), 0);
	ck_assert_int_eq(add_node(f, 3, 1, "a", 30), 0);
	ck_assert_int_eq(add_node(f, 4, 1, "b", 0), 0);
	ck_assert_int_eq(add_node(f, 5, 2, "leaf", 20), 0);
	ck_assert_int_eq(add_node(f, 6, 4, "leaf", 40), 0);
	return f;
}

static const struct flame_node *named(const struct flame *f, const char *name)
{
	size_t n;
	const struct flame_node *node = flame_nodes(f, &n);
	for (size_t i = 1; i < n; i++)
		if (node[i].function && strcmp(node[i].function, name) == 0)
			return &node[i];
	return NULL;
}

static char *page_of(struct flame *f, const struct flame_page *page, size_t *ret_cut)
{
	char *text;
	size_t size, n_cut;
	FILE *out = open_memstream(&text, &size);
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert_int_eq(flame_page_write(f, page, out, ret_cut ? ret_cut : &n_cut), 0);
	fclose(out);
	return text;
}

static char *svg_of(struct flame *f)
{
	return page_of(f, &(struct flame_page){.title = "t", .event = "", .plain = true}, NULL);
}

EACH_TEST(.seconds = 30);

TEST(siblings_of_one_name_are_merged)
{
	struct flame *f = small_flame();
	size_t n;
	flame_nodes(f, &n);
	ck_assert_uint_eq(n, 5); /* all, main, a, b, leaf */
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert(named(f, "leaf")->total == 60);
	ck_assert(named(f, "b")->total == 60 && named(f, "b")->self == 0);
	ck_assert(named(f, "main")->total == 100);
	ck_assert(flame_nodes(f, &n)[0].total == 100);
	flame_free(f);
}

TEST(boxes_stand_inside_their_callers_by_name)
{
	struct flame *f = small_flame();
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert(named(f, "a")->start == 0);
	ck_assert(named(f, "b")->start == 30);
	ck_assert(named(f, "leaf")->start == 30);
	flame_free(f);
}

/* In the baseline main 20, a 60, gone 20 of another build's folder; now main 10, a 30, b → leaf 60. */
static struct flame *compared_flame(void)
{
	struct flame *f = NULL;
	ck_assert_int_eq(flame_new(&f), 0);
	flame_begin_baseline(f);
	ck_assert_int_eq(answers_columns(add, f, columns, N_COLUMNS), 0);
	ck_assert_int_eq(add_node_of(f, "/old/prog", 7, 0, "main", 20), 0);
	ck_assert_int_eq(add_node_of(f, "/old/prog", 2, 7, "gone", 20), 0);
	ck_assert_int_eq(add_node_of(f, "/old/prog", 3, 7, "a", 60), 0);
	flame_end_baseline(f);
	ck_assert_int_eq(answers_columns(add, f, columns, N_COLUMNS), 0);
	ck_assert_int_eq(add_node(f, 1, 0, "main", 10), 0);
	ck_assert_int_eq(add_node(f, 2, 1, "b", 0), 0);
	ck_assert_int_eq(add_node(f, 3, 1, "a", 30), 0);
	ck_assert_int_eq(add_node(f, 5, 2, "leaf", 60), 0);
	return f;
}

TEST(a_baseline_leaves_what_boxes_were)
{
	struct flame *f = compared_flame();
	size_t n;
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert(flame_nodes(f, &n)[0].total == 100 && flame_nodes(f, &n)[0].was_total == 100);
	ck_assert_uint_eq(n, 6);
	ck_assert(named(f, "main")->self == 10 && named(f, "main")->was_self == 20);
	ck_assert(named(f, "a")->total == 30 && named(f, "a")->was_total == 60);
	ck_assert(named(f, "leaf")->total == 60 && named(f, "leaf")->was_total == 0);
	ck_assert(named(f, "gone")->total == 0 && named(f, "gone")->was_total == 20);
	ck_assert(named(f, "a")->start == 0 && named(f, "b")->start == 30);
	flame_free(f);
}

TEST(beside_a_baseline_colours_are_differences)
{
	struct flame *f = compared_flame();
	size_t n_cut;
	char *page = page_of(
		f, &(struct flame_page){.title = "t", .event = "", .baseline = "<old>"}, &n_cut);
	ck_assert_uint_eq(n_cut, 0);
	ck_assert_ptr_nonnull(strstr(page, "<g class=\"f p3\"><title>leaf\n")); /* +60 points */
	ck_assert_ptr_nonnull(strstr(page, "<g class=\"f m2\"><title>a\n"));    /* -30 */
	ck_assert_ptr_nonnull(strstr(page, "<g class=\"f m0\"><title>main\n")); /* -10 */
	ck_assert_ptr_nonnull(strstr(page, "<g class=\"f e0\"><title>b\n"));
	ck_assert_ptr_null(strstr(page, "gone\n"));
	ck_assert_ptr_nonnull(strstr(page, "was 60.00 %, self 60.00 % → 30.00 %"));
	ck_assert_ptr_nonnull(strstr(page, "in &lt;old&gt;. Red"));
	ck_assert_ptr_nonnull(strstr(page, "Boxes that had 20.00 % of it are gone"));
	free(page);
	flame_free(f);
}

TEST(one_name_of_two_modules_stays_two_boxes)
{
	struct flame *f = empty_flame();
	Mperf__Value v[] = {answers_integer(1), answers_integer(0), answers_text("init"),
		answers_text("/lib/a"), answers_text("user"), answers_real(1)};
	ck_assert_int_eq(answers_row(add, f, v, N_COLUMNS), 0);
	v[0] = answers_integer(2);
	v[3] = answers_text("/lib/b");
	ck_assert_int_eq(answers_row(add, f, v, N_COLUMNS), 0);
	size_t n;
	flame_nodes(f, &n);
	ck_assert_uint_eq(n, 3);
	flame_free(f);
}

TEST(trees_that_do_not_hang_together_are_refused)
{
	struct flame *f = small_flame();
	ck_assert_int_eq(add_node(f, 7, 99, "orphan", 1), FLAME_MALFORMED);
	ck_assert_int_eq(add_node(f, 6, 1, "twin", 1), FLAME_MALFORMED);
	ck_assert_int_eq(add_node(f, 8, 8, "own parent", 1), FLAME_MALFORMED);
	ck_assert_int_eq(add_node(f, 0, 0, "root", 1), FLAME_MALFORMED);
	flame_free(f);
}

TEST(rows_of_the_wrong_shape_are_refused)
{
	struct flame *f = NULL;
	ck_assert_int_eq(flame_new(&f), 0);
	ck_assert_int_eq(add_node(f, 1, 0, "before columns", 1), FLAME_MALFORMED);
	ck_assert_int_eq(answers_columns(add, f, columns, 2), FLAME_MALFORMED);
	ck_assert_int_eq(add_node(f, 1, 0, "after bad columns", 1), FLAME_MALFORMED);
	ck_assert_int_eq(answers_columns(add, f, columns, N_COLUMNS), 0);
	Mperf__Value v[] = {answers_text("1"), answers_integer(0), answers_text("f"),
		answers_absent(), answers_absent(), answers_real(1)};
	ck_assert_int_eq(answers_row(add, f, v, N_COLUMNS), FLAME_MALFORMED);
	ck_assert_int_eq(answers_row(add, f, v, 3), FLAME_MALFORMED);
	flame_free(f);
}

TEST(amounts_that_are_none_have_no_width)
{
	struct flame *f = empty_flame();
	ck_assert_int_eq(add_node(f, 1, 0, "nan", NAN), 0);
	ck_assert_int_eq(add_node(f, 2, 0, "negative", -5), 0);
	ck_assert_int_eq(add_node(f, 3, 0, "endless", INFINITY), 0);
	ck_assert_int_eq(add_node(f, 4, 0, "good", 5), 0);
	size_t n;
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert(flame_nodes(f, &n)[0].total == 5);
	flame_free(f);
}

TEST(an_endless_recursion_is_cut_at_the_limit)
{
	struct flame *f = empty_flame();
	for (int64_t i = 1; i <= FLAME_DEPTH_MAX + 100; i++)
		ck_assert_int_eq(add_node(f, i, i - 1, "again", 1), 0);
	size_t n;
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert(flame_nodes(f, &n)[0].total == FLAME_DEPTH_MAX + 100);
	ck_assert_uint_eq(n, FLAME_DEPTH_MAX + 1);
	FILE *out = fopen("/dev/null", "w");
	ck_assert_int_eq(flame_write_folded(f, out), 0);
	fclose(out);
	flame_free(f);
}

TEST(folded_stacks_have_a_line_per_self_value)
{
	struct flame *f = small_flame();
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	ck_assert_int_eq(flame_write_folded(f, out), 0);
	fclose(out);
	ck_assert_str_eq(text, "main 10\nmain;a 30\nmain;b;leaf 60\n");
	free(text);
	flame_free(f);
}

TEST(an_unknown_function_bears_its_module)
{
	struct flame *f = empty_flame();
	ck_assert_int_eq(add_node(f, 1, 0, NULL, 1), 0);
	char *svg = svg_of(f);
	ck_assert_ptr_nonnull(strstr(svg, ">[prog]<"));
	free(svg);
	flame_free(f);
}

TEST(svg_is_readable_without_a_script)
{
	struct flame *f = small_flame();
	char *svg = svg_of(f);
	markup_is_well_formed(svg);
	ck_assert_ptr_null(strstr(svg, "<script"));
	ck_assert_ptr_nonnull(strstr(svg, ">leaf</text>"));
	ck_assert_ptr_nonnull(
		strstr(svg, "<title>leaf\n/usr/bin/prog · user\n60 · 60.00 % of all"));
	free(svg);
	flame_free(f);
}

static void add_counted(struct flame *f, int64_t id, int64_t parent, const char *name,
	const int64_t amount[static 3]) /* value, samples, counted */
{
	Mperf__Value v[] = {answers_integer(id), answers_integer(parent), answers_text(name),
		answers_text("/usr/bin/prog"), answers_text("user"), answers_integer(amount[0]),
		answers_integer(amount[1]), answers_integer(amount[2])};
	ck_assert_int_eq(answers_row(add, f, v, N_ALL_COLUMNS), 0);
}

TEST(boxes_say_what_share_of_their_samples_has_counts)
{
	struct flame *f = NULL;
	ck_assert_int_eq(flame_new(&f), 0);
	ck_assert_int_eq(answers_columns(add, f, columns, N_ALL_COLUMNS), 0);
	add_counted(f, 1, 0, "main", (const int64_t[]){100, 10, 4});
	add_counted(f, 2, 1, "leaf", (const int64_t[]){300, 30, 6});
	add_counted(f, 3, 1, "leaf", (const int64_t[]){100, 10, 10}); /* merged */
	const struct flame_page page = {
		.title = "t", .event = "cycles", .provenance = "", .counted = 0.25};
	size_t cut;
	char *text = page_of(f, &page, &cut);
	ck_assert_double_eq(named(f, "leaf")->samples, 40);
	ck_assert_double_eq(named(f, "leaf")->counted, 16);
	ck_assert_double_eq(named(f, "main")->samples, 50);
	ck_assert_double_eq(named(f, "main")->counted, 20);
	ck_assert_ptr_nonnull(strstr(text, "self 400 · counts of 40.00 % of its samples</title>"));
	ck_assert_ptr_nonnull(strstr(text, "self 100 · counts of 40.00 % of its samples</title>"));
	/* of all samples, also of those that are in no box */
	ck_assert_ptr_nonnull(strstr(text, "self 0 · counts of 25.00 % of its samples</title>"));
	free(text);
	flame_free(f);

	f = small_flame();
	text = page_of(f, &page, &cut);
	ck_assert_ptr_null(strstr(text, "counts of"));
	free(text);
	flame_free(f);
}

TEST(hostile_names_stay_text)
{
	static const char *const names[] = {"<script>alert(1)</script>", "</title></svg><b>",
		"\033[31m\xff\x01", "\" onclick=\"x()", "{{script}}", "]]>", "&lt;",
		"\xe2\x80\xaexyz", "a\nb"};
	struct flame *f = empty_flame();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ck_assert_int_eq(add_node(f, (int64_t)i + 1, 0, names[i], 1), 0);
	char *svg = svg_of(f);
	markup_is_well_formed(svg);
	ck_assert_ptr_nonnull(strstr(svg, "&lt;script&gt;alert(1)&lt;/script&gt;"));
	ck_assert_ptr_nonnull(strstr(svg, "\\u{202e}xyz"));
	free(svg);

	char *page = page_of(f,
		&(struct flame_page){
			.title = "</title><script>", .event = "<e>", .provenance = "<img src=x>"},
		NULL);
	ck_assert_ptr_null(strstr(page, "<script>alert"));
	ck_assert_ptr_null(strstr(page, "<img"));
	ck_assert_ptr_null(strstr(page, "<e>"));
	const char *script = strstr(page, "<script>");
	ck_assert_ptr_nonnull(script);
	ck_assert_ptr_null(strstr(script + 1, "<script>")); /* ours, once */
	free(page);
	flame_free(f);
}

TEST(the_page_needs_nothing_from_outside)
{
	struct flame *f = small_flame();
	char *page = page_of(f, &(struct flame_page){.title = "t", .event = "cycles"}, NULL);
	ck_assert_ptr_nonnull(strstr(page, "default-src 'none'"));
	ck_assert_ptr_null(strstr(page, "src=\""));
	ck_assert_ptr_null(strstr(page, "href="));
	ck_assert_ptr_null(strstr(page, "url("));
	ck_assert_ptr_null(strstr(page, "@import"));
	ck_assert_ptr_null(strstr(page, "{{"));
	for (const char *p = page; (p = strstr(p, "http")); p++)
		ck_assert(strncmp(p, "http://www.w3.org/2000/svg", 26) == 0 ||
			  strncmp(p, "http-equiv", 10) == 0);
	free(page);
	flame_free(f);
}

TEST(narrow_boxes_are_cut_and_counted)
{
	struct flame *f = empty_flame();
	ck_assert_int_eq(add_node(f, 1, 0, "wide", 1e9), 0);
	for (int64_t i = 2; i < 60002; i++) {
		char name[32];
		snprintf(name, sizeof(name), "narrow%lld", (long long)i);
		ck_assert_int_eq(add_node(f, i, 1, name, 1), 0);
	}
	size_t n_cut;
	char *page = page_of(f, &(struct flame_page){.title = "t", .event = ""}, &n_cut);
	ck_assert_uint_eq(n_cut, 60000);
	ck_assert_ptr_nonnull(strstr(page, "60,000 boxes below 0.02 % are not drawn"));
	ck_assert_ptr_null(strstr(page, "narrow2"));
	ck_assert_uint_lt(strlen(page), 100000);
	free(page);
	flame_free(f);
}

TEST(a_tree_of_nothing_says_so)
{
	struct flame *f = empty_flame();
	char *page = page_of(f, &(struct flame_page){.title = "t", .event = ""}, NULL);
	ck_assert_ptr_nonnull(strstr(page, "There are no samples to draw"));
	ck_assert_ptr_null(strstr(page, "\"nan\""));
	free(page);
	flame_free(f);
}

TEST(a_full_disc_is_an_error)
{
	struct flame *f = small_flame();
	size_t n_cut;
	FILE *out = fopen("/dev/full", "w");
	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert_int_lt(
		flame_page_write(f, &(struct flame_page){.title = "t", .event = ""}, out, &n_cut),
		0);
	fclose(out);
	flame_free(f);
}
