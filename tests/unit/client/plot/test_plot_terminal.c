/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Plots as text.
 */
#include "client/plot/terminal.h"
#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "tests/unit/client/plot/plotted.h"

static struct plotted *p;
static char mark[PLOTTED_DOTS];
static struct plot_axes axes;

static void begin(void)
{
	p = plotted_new();
	axes = (struct plot_axes){.x.low = 0};
}

static void end(void)
{
	free(p);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 60);

static char *drawn(const struct plot_terminal_look *look)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	plotted_bind(p);
	ck_assert_int_eq(plot_terminal_draw(&p->plot, &p->sets, look, &axes, mark, out), 0);
	fclose(out);
	return text;
}

/* Lines, none of which is wider; without colours. */
static size_t lines_of(const char *text, size_t columns)
{
	size_t n = 0;
	for (const char *at = text; *at; n++) {
		char line[4096];
		size_t bytes = strcspn(at, "\n");
		ck_assert_uint_lt(bytes, sizeof(line));
		snprintf(line, sizeof(line), "%.*s", (int)bytes, at);
		ck_assert_msg(escape_width(line) <= columns, "%zu: %s", escape_width(line), line);
		ck_assert_msg(bytes == 0 || line[bytes - 1] != ' ' || n == 0, "'%s'", line);
		at += bytes + (at[bytes] == '\n');
	}
	return n;
}

TEST(bytes_from_memory_are_marked_beside_the_letters)
{
	const struct plot_terminal_look look = {100, 30, true, false};
	plotted_dram(plotted_dot(p, "stream", 0.25, 5), 40);
	plotted_dot(p, "matmul", 20, 25);
	plotted_dram(plotted_dot(p, "by counters", -1, 0.5), 2);
	_cleanup_(freep) char *text = drawn(&look);
	ck_assert(mark[0] == '1' && mark[1] == '2' && mark[2] == '3');
	const char *diamond = strstr(text, "◇");
	ck_assert_msg(diamond && !strstr(diamond + 1, "◇"), "%s", text);
	ck_assert_msg(strstr(text, "Diamonds: bytes that came from memory"), "%s", text);
	lines_of(text, 100);
}

TEST(a_plot_fits_its_screen)
{
	static const size_t sizes[][2] = {{80, 24}, {160, 50}, {40, 16}, {400, 100}};
	plotted_dot(p, "stream", 0.25, 5);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct plot_terminal_look look = {sizes[i][0], sizes[i][1], true, false};
		_cleanup_(freep) char *text = drawn(&look);
		ck_assert_uint_eq(lines_of(text, sizes[i][0]), sizes[i][1]);
	}
}

TEST(other_sizes_are_brought_within_limits)
{
	static const size_t sizes[][2] = {{0, 0}, {1, 1}, {100000, 100000}};
	plotted_dot(p, "stream", 0.25, 5);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct plot_terminal_look look = {sizes[i][0], sizes[i][1], true, false};
		_cleanup_(freep) char *text = drawn(&look);
		ck_assert_uint_lt(lines_of(text, PLOT_TERMINAL_COLUMNS_MAX), 200);
	}
}

TEST(each_loop_has_a_letter_and_roofs_have_names)
{
	plotted_dot(p, "stream", 0.25, 5);
	plotted_dot(p, "copy", 0, 0);
	plotted_dot(p, "matmul", 20, 25);
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 24, true, false});
	ck_assert_int_eq(mark[0], '1');
	ck_assert_int_eq(mark[1], '\0');
	ck_assert_int_eq(mark[2], '2');
	static const char *const wanted[] = {"GFLOP/s\n", "FLOP/byte", "L1", "DRAM", "vector fma",
		"⡠", "└", "One hart, double precision: L1 100 GB/s, DRAM 10 GB/s;"};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		ck_assert_msg(strstr(text, wanted[i]) != NULL, "no %s in\n%s", wanted[i], text);
}

TEST(loops_in_one_character_share_its_letter)
{
	plotted_dot(p, "one", 0.25, 5);
	plotted_dot(p, "same", 0.2501, 5.001);
	plotted_dot(p, "other", 3, 5);
	free(drawn(&(struct plot_terminal_look){80, 24, true, false}));
	ck_assert_int_eq(mark[0], '1');
	ck_assert_int_eq(mark[1], '1');
	ck_assert_int_eq(mark[2], '2');
}

TEST(what_is_higher_stands_higher)
{
	plotted_dot(p, "low", 1, 0.5);
	plotted_dot(p, "high", 1, 40);
	p->plot.n_roofs = 0;
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 24, true, false});
	const char *line = strchr(text, '\n'); /* behind the unit */
	ck_assert(strchr(line, '\n') && strstr(line, "│") != NULL);
	const char *low = NULL, *high = NULL;
	for (const char *at = line; (at = strpbrk(at, "12")); at++) {
		if (at > line + 8 && (at[1] == '\n') && *at == '2')
			high = at;
		if (at > line + 8 && (at[1] == '\n') && *at == '1')
			low = at;
	}
	ck_assert(low && high && high < low);
}

TEST(ascii_is_enough)
{
	plotted_dot(p, "strêam", 0.25, 5);
	snprintf(p->roof[1].name, PLOT_NAME_BYTES, "L\u00fc");
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 24, false, false});
	for (const char *at = text; *at && strncmp(at, "One hart", 8) != 0; at++)
		ck_assert_msg((unsigned char)*at < 0x80, "%s", at);
	ck_assert(strchr(text, '.') != NULL);
}

TEST(colours_end_where_they_began)
{
	plotted_dot(p, "stream", 0.25, 2);
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 24, true, true});
	bool is_on = false;
	ck_assert(strstr(text, "\033[1;36m1\033[0m") != NULL);
	for (const char *at = text; (at = strchr(at, '\033')); at++) {
		ck_assert(is_on == (strncmp(at, "\033[0m", 4) == 0));
		is_on = !is_on;
	}
	ck_assert(!is_on);
}

TEST(loops_of_the_run_before_are_circles)
{
	plotted_dot(p, "stream", 0.25, 0.5)->later = 1;
	plotted_dot(p, "stream", 0.25, 10)->run = 1;
	p->plot.n_runs = 2;
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 24, true, false});
	ck_assert_int_eq(mark[0], '\0');
	ck_assert_int_eq(mark[1], '1');
	ck_assert(strstr(text, "○") != NULL);
}

TEST(many_loops_share_letters_and_a_star)
{
	for (size_t i = 0; i < PLOTTED_DOTS; i++)
		plotted_dot(
			p, "f", 0.01 * (double)(1 + i % 997), 0.01 * (double)(1 + i * 31 % 4999));
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){160, 50, true, false});
	ck_assert_uint_eq(lines_of(text, 160), 50);
	bool has_star = false;
	for (size_t i = 0; i < PLOTTED_DOTS; i++) {
		ck_assert_int_ne(mark[i], '\0');
		has_star = has_star || mark[i] == '*';
	}
	ck_assert(has_star);
}

TEST(without_loops_and_roofs_there_are_axes)
{
	p->plot.n_roofs = 0;
	p->plot.no_roofs = "Measure them.";
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 24, true, false});
	ck_assert(strstr(text, "Measure them.") != NULL);
	ck_assert_uint_eq(lines_of(text, 80), 24);
}

TEST(no_number_breaks_the_drawing)
{
	plotted_extremes(p);
	_cleanup_(freep) char *text = drawn(&(struct plot_terminal_look){80, 40, true, false});
	ck_assert_uint_eq(lines_of(text, 80), 40);
}
