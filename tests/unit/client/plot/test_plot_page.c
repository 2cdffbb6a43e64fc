/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Pages and plain SVG, of no loop to many, with hostile names.
 */
#include "client/plot/page.h"
#include "proto/base/memory.h"
#include "tests/unit/client/markup.h"
#include "tests/unit/client/plot/plotted.h"

static struct plotted *p;

static void begin(void)
{
	p = plotted_new();
}

static void end(void)
{
	free(p);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 60);

static char *page_of(bool plain)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	plotted_bind(p);
	ck_assert_int_eq(plot_page_write(&p->plot, &p->sets, plain, out), 0);
	fclose(out);
	return text;
}

static size_t count(const char *text, const char *wanted)
{
	const size_t n_wanted = strlen(wanted);
	size_t n = 0;
	/* not by strstr, of which sanitizers look at all of the text each time */
	for (; (text = strchr(text, *wanted)); text++)
		n += strncmp(text, wanted, n_wanted) == 0;
	return n;
}

static void has(const char *text, const char *wanted)
{
	ck_assert_msg(strstr(text, wanted) != NULL, "no '%s' in %s", wanted, text);
}

static void has_not(const char *text, const char *unwanted)
{
	ck_assert_msg(strstr(text, unwanted) == NULL, "'%s' in %s", unwanted, text);
}

TEST(bytes_from_memory_are_diamonds_joined_to_their_dots)
{
	plotted_dram(plotted_dot(p, "stream", 0.25, 25), 10);
	plotted_dot(p, "matmul", 20, 25);
	_cleanup_(freep) char *svg = page_of(true);
	markup_is_well_formed(svg);
	ck_assert_uint_eq(count(svg, "<circle"), 2);
	ck_assert_uint_eq(count(svg, "<g class=\"dram c\""), 1);
	ck_assert_uint_eq(count(svg, "class=\"join\""), 1);
	has(svg, "10 FLOP/byte from memory · 2.5 GB/s from memory");
	has(svg, "50 % of the DRAM roof, bound by compute");
	has(svg, "joined to the bytes asked for");
	_cleanup_(freep) char *page = page_of(false);
	has(page, "data-dram=");
	has(page, "<th>FLOP/byte</th><th>Of roof</th><th>Bound by</th><th>DRAM GB/s</th>"
		  "<th>FLOP/byte from DRAM</th><th>Of DRAM roof</th><th>Bound by</th>");
	has(page, "Diamonds, joined to their dots, are by bytes from memory.");
}

/* As counters have it. */
TEST(bytes_from_memory_need_no_others)
{
	struct plot_dot *d = plotted_dram(plotted_dot(p, "make", -1, 25), 10);
	d->gbytes = d->share = -1;
	p->plot.dram_only = true;
	_cleanup_(freep) char *page = page_of(false);
	ck_assert_uint_eq(count(page, "<circle"), 0);
	ck_assert_uint_eq(count(page, "<g class=\"dram c\""), 1);
	has_not(page, "class=\"join\"");
	has(page, ">1 make</text>");
	has(page, "Each diamond is a row of the table");
	has_not(page, "not drawn");
	has(page,
		" l9.0 -9.0 l9.0 9.0 l-9.0 9.0 z"); /* to be seen, though nothing says how large */
	has_not(page, "L1 100 GB/s");               /* is not of the same kind */
	has_not(page, "<th>GB/s</th>");
	has(page, "DRAM 10 GB/s");
	has(page, "Memory bounds below 5 FLOP/byte, computing above.");
}

TEST(without_bytes_from_memory_nothing_speaks_of_them)
{
	plotted_dot(p, "stream", 0.25, 5);
	_cleanup_(freep) char *page = page_of(false);
	has_not(page, "from DRAM");
	has_not(page, "iamond");
	has_not(page, "<g class=\"dram");
}

TEST(each_loop_with_a_place_has_a_dot)
{
	plotted_dot(p, "stream", 0.25, 2.5);
	plotted_dot(p, "matmul", 20, 25);
	plotted_dot(p, "copy", 0, 0);
	_cleanup_(freep) char *svg = page_of(true);
	markup_is_well_formed(svg);
	ck_assert_uint_eq(count(svg, "<circle"), 2);
	has(svg, "<title>stream\nmain.c:7\n2.5 GFLOP/s · 0.25 FLOP/byte · 10 GB/s\n"
		 "10.00 % of the time · error 1.00 %\n12,345 calls\n"
		 "double precision · 10 % of its roof, bound by memory</title>");
	has(svg, "class=\"dot c\"");
	has(svg, "measured time: 1.");
}

TEST(roofs_are_lines_with_bands_and_names)
{
	plotted_dot(p, "stream", 0.25, 5);
	_cleanup_(freep) char *svg = page_of(true);
	ck_assert_uint_eq(count(svg, "class=\"roof\""), 7); /* four of f64, three of f32 */
	ck_assert_uint_eq(count(svg, "class=\"band\""), 7);
	ck_assert_uint_eq(count(svg, "<g class=\"roofs off\""), 1);
	has(svg, ">L1 100 GB/s</text>");
	has(svg, "<title>L1 100 GB/s\n95 to 105 GB/s</title>");
	has(svg, ">vector fma 50 GFLOP/s</text>");
	has(svg, "memory bounds");
}

TEST(wide_intervals_are_bands_around_the_corner_and_words)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->roof[0].low = 1;
	p->roof[0].high = 90;
	_cleanup_(freep) char *svg = page_of(true);
	markup_is_well_formed(svg);
	has(svg, "DRAM 10 GB/s (1 to 90)");
	has_not(svg, "L1 100 GB/s (");
	ck_assert_uint_gt(count(svg, " 64.0,606.00\"/>"), 0); /* a fifth point, in the corner */
}

TEST(without_roofs_the_page_says_how_to_measure_them)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->plot.n_roofs = 0;
	p->plot.no_roofs = "Measure them.";
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	has(svg, "Measure them.");
	has(page, "Measure them.");
	ck_assert_uint_eq(count(svg, "<circle"), 1);
	has_not(svg, "class=\"roof\"");
}

TEST(theoretical_peaks_are_dashed_and_have_their_source)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->plot.n_roofs = 0;
	p->plot.no_roofs = "Measure them.";
	struct plot_roof *peak = plotted_peak(p, "theoretical vector", PLOT_F64, 80);
	peak->is_theoretical = true;
	peak->low = peak->high = 0;
	snprintf(peak->how, sizeof(peak->how), "16 a cycle at 5 GHz, The <Core> Guide");
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	has(svg, "<line class=\"roof theory\"");
	has(svg, "theoretical vector 80 GFLOP/s");
	has(svg, "Theoretical (dashed): 16 a cycle at 5 GHz, The &lt;Core&gt; Guide.");
	has(page, "Measure them.");
	has_not(page, "Of roof");
	has_not(svg, "class=\"band\"");
}

TEST(stale_roofs_are_marked)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->plot.stale = "Of another kernel.";
	_cleanup_(freep) char *svg = page_of(true);
	has(svg, "class=\"roofs stale\"");
	has(svg, "Of another kernel.");
	has_not(svg, "of its roof");
	has_not(svg, "class=\"zone");
}

TEST(loops_of_two_runs_are_joined)
{
	plotted_dot(p, "stream", 0.25, 2)->later = 1;
	plotted_dot(p, "stream", 0.25, 10)->run = 1;
	p->plot.n_runs = 2;
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	ck_assert_uint_eq(count(svg, "class=\"way\" marker-end=\"url(#head)\""), 1);
	ck_assert_uint_eq(count(svg, "class=\"dot m before\""), 1);
	has(svg, "in a.out");
	has(page, "<th>Before</th>");
	has(page, "Dashed: a.out; filled: b.out.");
}

TEST(no_loops_are_an_empty_picture)
{
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	has(page, "There are no loops to draw.");
	p->plot.n_roofs = 0;
	_cleanup_(freep) char *bare = page_of(true);
	markup_is_well_formed(bare);
}

TEST(names_cannot_leave_their_place)
{
	static const char evil[] = "</title><script>x</script>{{script}}\033[1m\n&\"'";
	plotted_dot(p, evil, 0.25, 5)->source = evil;
	snprintf(p->roof[0].name, PLOT_NAME_BYTES, "</g>");
	snprintf(p->roof[0].how, PLOT_NAME_BYTES, "<b>");
	for (size_t i = 0; i < p->plot.n_roofs; i++)
		snprintf(p->roof[i].hart_kind, PLOT_NAME_BYTES, "\"><a>");
	p->plot.title = p->plot.provenance = evil;
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	ck_assert_uint_eq(count(page, "<script>"), 1);
	ck_assert_uint_eq(count(page, "(function () {"), 1);
	has_not(page, "<a>");
	has_not(page, "\033");
}

TEST(a_page_loads_nothing)
{
	plotted_dot(p, "stream", 0.25, 5);
	_cleanup_(freep) char *page = page_of(false);
	has_not(page, "src=");
	has_not(page, "@import");
	has_not(page, "url(");
	ck_assert_uint_eq(count(page, "http"), 2); /* a name of SVG, and the policy */
}

TEST(ten_thousand_loops_are_all_drawn)
{
	static const char *const names[] = {"a", "somewhat_longer_name", "f<int>"};
	for (size_t i = 0; i < PLOTTED_DOTS; i++)
		plotted_dot(p, names[i % 3], 0.01 * (double)(1 + i % 997),
			0.01 * (double)(1 + i * 31 % 4999))
			->share = 1.0 / (double)(i + 10);
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	ck_assert_uint_eq(count(svg, "<circle"), PLOTTED_DOTS);
	ck_assert_uint_le(count(svg, "class=\"label\""), 40);
	ck_assert_uint_gt(count(svg, "class=\"label\""), 10);
	ck_assert_uint_eq(count(page, "<tr>"), PLOT_PAGE_ROWS_MAX + 1 + 5 + 1);
	has(page, "9800 more are in the picture");
}

TEST(no_number_breaks_the_drawing)
{
	plotted_extremes(p);
	_cleanup_(freep) char *svg = page_of(true), *page = page_of(false);
	markup_is_well_formed(svg);
	ck_assert_uint_eq(count(svg, "\"nan") + count(svg, "\"-nan") + count(svg, "inf\""), 0);
	ck_assert_uint_gt(count(svg, "<circle"), 10);
	has(page, "</html>");
}
