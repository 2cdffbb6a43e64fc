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

/* The words of a page with one picture. */
struct words {
	const char *title, *event, *provenance, *baseline;
	double counted;
	bool plain;
};

static char *page_text(const struct flame_page *page, size_t *ret_cut)
{
	char *text;
	size_t size, n_cut;
	FILE *out = open_memstream(&text, &size);
	ck_assert_int_eq(flame_page_write(page, out, ret_cut ? ret_cut : &n_cut), 0);
	fclose(out);
	return text;
}

static char *page_of(struct flame *f, const struct words *words, size_t *ret_cut)
{
	ck_assert_int_eq(flame_finish(f), 0);
	const struct flame_view view = {.name = "cpu",
		.label = "CPU time",
		.flame = f,
		.event = words->event,
		.provenance = words->provenance,
		.counted = words->counted};
	return page_text(&(struct flame_page){.title = words->title,
				 .view = &view,
				 .n_views = 1,
				 .plain = words->plain,
				 .baseline = words->baseline},
		ret_cut);
}

static char *svg_of(struct flame *f)
{
	return page_of(f, &(struct words){.title = "t", .event = "", .plain = true}, NULL);
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
	char *page =
		page_of(f, &(struct words){.title = "t", .event = "", .baseline = "<old>"}, &n_cut);
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
	/* a line is as long as its stack is deep, so not each stack has one */
	for (int64_t i = 1; i <= FLAME_DEPTH_MAX + 100; i++)
		ck_assert_int_eq(add_node(f, i, i - 1, "again", i % 50 == 0), 0);
	size_t n;
	ck_assert_int_eq(flame_finish(f), 0);
	ck_assert(flame_nodes(f, &n)[0].total == (FLAME_DEPTH_MAX + 100) / 50);
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
	const struct words page = {
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
		&(struct words){
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
	char *page = page_of(f, &(struct words){.title = "t", .event = "cycles"}, NULL);
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
	char *page = page_of(f, &(struct words){.title = "t", .event = ""}, &n_cut);
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
	char *page = page_of(f, &(struct words){.title = "t", .event = ""}, NULL);
	ck_assert_ptr_nonnull(strstr(page, "There are no samples to draw"));
	ck_assert_ptr_null(strstr(page, "\"nan\""));
	free(page);
	flame_free(f);
}

/* --- pages with several pictures -------------------------------------------------------------- */

static int add_wait(struct flame *f, int64_t id, int64_t parent, const char *name, double value)
{
	Mperf__Value v[] = {answers_integer(id), answers_integer(parent), answers_text(name),
		answers_absent(), answers_text("waiting"), answers_real(value)};
	return answers_row(add, f, v, N_COLUMNS);
}

/* main → (a: 2 of lock; b: 1 of lock, 5 of disk, 1 of something unknown) */
static struct flame *waiting_flame(void)
{
	struct flame *f = empty_flame();
	ck_assert_int_eq(add_node(f, 1, 0, "main", 0), 0);
	ck_assert_int_eq(add_node(f, 2, 1, "a", 0), 0);
	ck_assert_int_eq(add_wait(f, 3, 2, "waiting:lock", 2), 0);
	ck_assert_int_eq(add_node(f, 4, 1, "b", 0), 0);
	ck_assert_int_eq(add_wait(f, 5, 4, "waiting:lock", 1), 0);
	ck_assert_int_eq(add_wait(f, 6, 4, "waiting:disk", 5), 0);
	ck_assert_int_eq(add_wait(f, 7, 4, "waiting:<new>", 1), 0);
	return f;
}

static const char hostile[] = "</script><script>\"\\\xff{{data}}";

static const struct flame_view absent_view = {.name = "wall",
	.label = "Wall time",
	.says = "",
	.absent = "a \"<file>\" has none",
	.event = ""};

/* With CPU time first, or waiting; the caller frees the flames. */
static char *page_of_three(struct flame *cpu, struct flame *waiting, size_t first)
{
	ck_assert_int_eq(flame_finish(cpu), 0);
	ck_assert_int_eq(flame_finish(waiting), 0);
	const struct flame_view views[] = {
		{.name = "cpu",
			.label = "CPU time",
			.says = "summed up",
			.flame = cpu,
			.event = "cycles",
			.provenance = "line of <cycles>"},
		{.name = "waiting",
			.label = "Waiting",
			.says = "where",
			.flame = waiting,
			.event = "waiting:lock",
			.provenance = "line of waits"},
		absent_view,
	};
	return page_text(
		&(struct flame_page){.title = "t", .view = views, .n_views = 3, .first = first},
		NULL);
}

TEST(each_picture_has_a_button_and_its_own_words)
{
	struct flame *cpu = small_flame(), *waiting = waiting_flame();
	char *page = page_of_three(cpu, waiting, 0);
	ck_assert_ptr_nonnull(strstr(page, "data-button=\"cpu\" title=\"summed up\" "
					   "aria-pressed=\"true\">CPU time <small>100</small>"));
	ck_assert_ptr_nonnull(strstr(page, "data-button=\"waiting\" title=\"where\" "
					   "aria-pressed=\"false\">Waiting <small>9</small>"));
	ck_assert_ptr_nonnull(
		strstr(page, "<span data-view=\"cpu\">line of &lt;cycles&gt;</span>"
			     "<span data-view=\"waiting\" hidden>line of waits</span>"));
	ck_assert_ptr_nonnull(
		strstr(page, "<span data-view=\"waiting\" hidden>Widths are time that "
			     "threads waited; the whole is 9.</span>"));
	free(page);
	flame_free(cpu);
	flame_free(waiting);
}

TEST(a_picture_that_is_left_out_says_why)
{
	struct flame *cpu = small_flame(), *waiting = waiting_flame();
	char *page = page_of_three(cpu, waiting, 0);
	ck_assert_ptr_nonnull(
		strstr(page, "data-button=\"wall\" title=\"a &quot;&lt;file&gt;&quot; has "
			     "none\" aria-pressed=\"false\" disabled>Wall time</button>"));
	ck_assert_ptr_nonnull(
		strstr(page, "Left out: Wall time (a &quot;&lt;file&gt;&quot; has none)."));
	free(page);
	flame_free(cpu);
	flame_free(waiting);
}

TEST(pictures_that_are_not_first_are_data)
{
	struct flame *cpu = small_flame(), *waiting = waiting_flame();
	char *page = page_of_three(cpu, waiting, 0);
	ck_assert_ptr_nonnull(strstr(page, "<g class=\"f u"));
	ck_assert_ptr_null(strstr(page, "<title>waiting:lock"));
	const char *data =
		strstr(page, "id=\"views\" data-first=\"cpu\">\n{\"views\":{\"waiting\":["
			     "[0,0.000,1200.000,\"r0\",1,0,2],\n[0,0.000,1200.000,\"u");
	ck_assert_ptr_nonnull(data);
	ck_assert_ptr_nonnull(strstr(data, "\n[2,0.000,266.667,\"wb\",")); /* lock, on a */
	ck_assert_ptr_nonnull(strstr(data, ",\"wc\","));                   /* disk */
	ck_assert_ptr_nonnull(strstr(data, ",\"wl\","));                   /* unknown */
	ck_assert_ptr_nonnull(strstr(data, "\"2 · 22.22 % of all · self 2\""));
	const char *once = strstr(data, "\"waiting:lock\"");
	ck_assert_ptr_nonnull(once);
	ck_assert_ptr_null(strstr(once + 1, "\"waiting:lock\""));
	free(page);

	cpu = flame_free(cpu);
	waiting = flame_free(waiting);
	cpu = small_flame();
	waiting = waiting_flame();
	page = page_of_three(cpu, waiting, 1);
	ck_assert_ptr_nonnull(
		strstr(page, "<g class=\"f wb\"><title>waiting:lock\n2 · 22.22 % of all"));
	ck_assert_ptr_nonnull(
		strstr(page, "id=\"views\" data-first=\"waiting\">\n{\"views\":{\"cpu\":["));
	free(page);
	flame_free(cpu);
	flame_free(waiting);
}

TEST(kinds_of_waits_are_summed_up_longest_first)
{
	struct flame *cpu = small_flame(), *waiting = waiting_flame();
	char *page = page_of_three(cpu, waiting, 1);
	const char *disk = strstr(page, "data-find=\"^waiting:disk$\"");
	const char *lock = strstr(page, "data-find=\"^waiting:lock$\"");
	const char *other = strstr(page, "data-find=\"^waiting:other$\"");
	ck_assert(disk && lock && other && disk < lock && lock < other);
	ck_assert_ptr_nonnull(strstr(page, "</svg>disk 5</button>"));
	ck_assert_ptr_nonnull(strstr(page, "</svg>lock 3</button>"));
	free(page);
	flame_free(cpu);
	flame_free(waiting);
}

TEST(hostile_names_in_data_stay_text)
{
	struct flame *cpu = small_flame(), *waiting = empty_flame();
	ck_assert_int_eq(add_node_of(waiting, hostile, 1, 0, hostile, 1), 0);
	char *page = page_of_three(cpu, waiting, 0);
	const char *data = strstr(page, "\"strings\":[");
	ck_assert_ptr_nonnull(data);
	ck_assert_ptr_nonnull(
		strstr(data, "\"\\u003c/script\\u003e\\u003cscript\\u003e\\u0022\\u005c"
			     "\\u005cxff{{data}}\""));
	/* ours: the data, and the program */
	size_t n = 0;
	for (const char *at = page; (at = strstr(at, "<script")); at++)
		n++;
	ck_assert_uint_eq(n, 2);
	free(page);
	flame_free(cpu);
	flame_free(waiting);
}

TEST(one_picture_has_no_switch)
{
	struct flame *f = waiting_flame();
	char *page = page_of(f, &(struct words){.title = "t", .event = "waiting"}, NULL);
	ck_assert_ptr_null(strstr(page, "data-button="));
	ck_assert_ptr_null(strstr(page, "<span data-view="));
	ck_assert_ptr_null(strstr(page, "application/json"));
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
	const struct flame_view view = {.name = "cpu", .flame = f, .event = ""};
	const struct flame_page page = {.title = "t", .view = &view, .n_views = 1};
	ck_assert_int_lt(flame_page_write(&page, out, &n_cut), 0);
	fclose(out);
	flame_free(f);
}
