/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rows of answers as dots: which columns they are made of, and which loops are the same in two runs.
 */
#include <math.h>

#include "client/roofline/roofline_plot.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"function", "", 0},
	{"source", "", 0},
	{"nest", "", 0},
	{"entries", "", 0},
	{"time_ns", "", 0},
	{"time_self_ns", "", 0},
	{"share", "", 0},
	{"share_self", "", 0},
	{"gops", "", 0},
	{"gops_self", "", 0},
	{"gbytes", "", 0},
	{"gbytes_self", "", 0},
	{"ops_per_byte", "", 0},
	{"ops_per_byte_self", "", 0},
	{"error", "", 0},
	{"error_self", "", 0},
	{"fp64_ops", "", 0},
	{"fp32_ops", "", 0},
};
#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static struct reply before, after;
static struct roofline_plot p;
static struct options o;

static int add(void *r, const Mperf__Answer *a)
{
	return reply_add(r, a);
}

static void begin(void)
{
	before = after = (struct reply){0};
	o = (struct options){.input = "after.out", .earlier = "before.out"};
	ck_assert_int_eq(answers_columns(add, &before, columns, N_COLUMNS), 0);
	ck_assert_int_eq(answers_columns(add, &after, columns, N_COLUMNS), 0);
}

static void end(void)
{
	roofline_plot_clear(&p);
	reply_clear(&before);
	reply_clear(&after);
}

EACH_TEST(.begin = begin, .end = end);

/* A loop with these figures with the loops inside, and half of them by itself. */
static void add_loop(
	struct reply *r, const char *function, const char *source, const char *nest, double gops)
{
	Mperf__Value v[N_COLUMNS] = {answers_text(function), answers_text(source),
		answers_text(nest), answers_integer(3), answers_integer(2000),
		answers_integer(1000), answers_real(0.5), answers_real(0.25), answers_real(gops),
		answers_real(gops / 2), answers_real(10), answers_real(5), answers_real(gops / 10),
		answers_real(gops / 10), answers_real(0.02), answers_real(0.04),
		answers_integer(100), answers_integer(0)};
	ck_assert_int_eq(answers_row(add, r, v, N_COLUMNS), 0);
}

static const struct plot_dot *make(size_t n_runs)
{
	const struct reply *runs[] = {&before, &after};
	roofline_plot_clear(&p);
	ck_assert_int_eq(roofline_plot_make(&o, &runs[2 - n_runs], n_runs, NULL, &p), 0);
	return p.plot.dot;
}

/* A region whose misses were counted, and one whose were not. */
TEST(bytes_from_memory_are_taken_where_they_were_counted)
{
	static const struct answers_column of_regions[] = {{"region", "", 0}, {"gops", "", 0},
		{"gbytes", "", 0}, {"ops_per_byte", "", 0}, {"dram_gbytes", "", 0},
		{"ops_per_dram_byte", "", 0}};
	struct plot_roof roof[] = {{.is_memory = true, .name = "DRAM", .value = 10},
		{.name = "vector fma", .value = 40, .precision = PLOT_F64}};
	const struct roofline_roofs roofs = {.roof = roof, .n = 2};
	struct reply r = {0};
	const struct reply *runs[] = {&r};
	double n;
	ck_assert_int_eq(answers_columns(add, &r, of_regions, 6), 0);
	Mperf__Value solve[] = {answers_text("solve"), answers_real(4), answers_real(8),
		answers_real(0.5), answers_real(2), answers_real(2)};
	Mperf__Value step[] = {answers_text("step"), answers_real(4), answers_real(8),
		answers_real(0.5), answers_absent(), answers_absent()};
	ck_assert_int_eq(answers_row(add, &r, solve, 6), 0);
	ck_assert_int_eq(answers_row(add, &r, step, 6), 0);
	o = (struct options){.by = (char *)"region"};
	ck_assert_int_eq(roofline_plot_make(&o, runs, 1, &roofs, &p), 0);
	ck_assert_int_eq(roofline_plot_extend(&p, &r), 0);
	ck_assert(plot_dot_has_dram_place(&p.plot.dot[0]));
	ck_assert(!plot_dot_has_dram_place(&p.plot.dot[1]));
	ck_assert(reply_number(&r, 0, reply_column(&r, "of_dram_roof"), &n));
	ck_assert_double_eq_tol(n, 4 / 20.0, 1e-12);
	ck_assert_ptr_null(reply_text(&r, 0, reply_column(&r, "dram_bound_by"))); /* far below */
	ck_assert(!reply_number(&r, 1, reply_column(&r, "of_dram_roof"), &n));
	ck_assert_ptr_null(reply_text(&r, 1, reply_column(&r, "dram_bound_by")));
	reply_clear(&r);
}

TEST(a_loop_is_drawn_by_itself_as_the_table_shows_it)
{
	add_loop(&after, "f", "f.c:1", "1", 8);
	const struct plot_dot *d = make(1);
	ck_assert_uint_eq(p.plot.n_dots, 1);
	ck_assert_str_eq(d->name, "f");
	ck_assert_str_eq(d->source, "f.c:1");
	ck_assert(d->gops == 4 && d->gbytes == 5 && d->share == 0.25 && d->error == 0.04);
	ck_assert(d->calls == 3 && d->time_ns == 1000);
	o.inclusive = true;
	d = make(1);
	ck_assert(d->gops == 8 && d->gbytes == 10 && d->share == 0.5 && d->time_ns == 2000);
	o.inclusive = false;
	o.by = "function";
	ck_assert(make(1)->gops == 8);
}

TEST(a_number_that_is_none_is_not_known)
{
	add_loop(&after, "f", "f.c:1", "1", NAN);
	const struct plot_dot *d = make(1);
	ck_assert(d->gops == -1 && d->ops_per_byte == -1 && !plot_dot_has_place(d));
}

TEST(the_precision_is_that_of_most_operations)
{
	Mperf__Value v[N_COLUMNS];
	for (size_t i = 0; i < N_COLUMNS; i++)
		v[i] = answers_absent();
	v[16] = answers_integer(10);
	v[17] = answers_integer(30);
	ck_assert_int_eq(answers_row(add, &after, v, N_COLUMNS), 0);
	ck_assert_int_eq(make(1)->precision, PLOT_F32);
	ck_assert_str_eq(p.plot.dot->name, "-");
	o.ops = "dp";
	ck_assert_int_eq(make(1)->precision, PLOT_F64);
	o.ops = "int";
	ck_assert_int_eq(make(1)->precision, PLOT_I64);
	ck_assert(p.plot.is_integer);
	ck_assert_str_eq(p.plot.rate, "GIOP/s");
}

TEST(the_same_loop_is_found_though_its_line_moved)
{
	add_loop(&before, "f", "src/f.c:10", "1.1", 1);
	add_loop(&before, "g", "src/f.c:30", "1", 1);
	add_loop(&after, "g", "src/f.c:31", "1", 2);
	add_loop(&after, "f", "src/f.c:12", "1.1", 2);
	const struct plot_dot *d = make(2);
	ck_assert_uint_eq(p.first, 2);
	ck_assert_uint_eq(d[0].later, 3);
	ck_assert_uint_eq(d[1].later, 2);
	ck_assert(d[2].later == PLOT_NO_DOT && d[2].run == 1 && d[0].run == 0);
}

TEST(other_loops_are_not_the_same)
{
	add_loop(&before, "f", "src/f.c:10", "1", 1);
	add_loop(&after, "f", "src/f.c:10", "2", 1);
	add_loop(&after, "f", "src/f.cc:10", "1", 1);
	add_loop(&after, "f", "f.c:10", "1", 1);
	add_loop(&after, "ff", "src/f.c:10", "1", 1);
	ck_assert(make(2)[0].later == PLOT_NO_DOT);
}

TEST(a_loop_with_a_twin_is_joined_to_neither)
{
	add_loop(&before, "f", "f.h:1", "1", 1);
	add_loop(&after, "f", "f.h:1", "1", 1);
	add_loop(&after, "f", "f.h:1", "1", 2);
	ck_assert(make(2)[0].later == PLOT_NO_DOT);
}

TEST(two_loops_are_not_joined_to_one)
{
	add_loop(&before, "f", "f.h:1", "1", 1);
	add_loop(&before, "f", "f.h:2", "1", 1);
	add_loop(&before, "f", "f.h:3", "1", 1);
	add_loop(&after, "f", "f.h:1", "1", 1);
	const struct plot_dot *d = make(2);
	for (size_t i = 0; i < 3; i++)
		ck_assert(d[i].later == PLOT_NO_DOT);
}

TEST(letters_become_a_column)
{
	static const char marks[] = {'x', '1', '\0'};
	add_loop(&before, "f", "f.c:1", "1", 1);
	add_loop(&after, "f", "f.c:1", "1", 1);
	add_loop(&after, "g", "f.c:9", "1", 0);
	make(2);
	ck_assert_int_eq(roofline_plot_mark(&p, marks, &after), 0);
	int dot = reply_column(&after, "dot");
	ck_assert_str_eq(reply_text(&after, 0, dot), "1");
	ck_assert_ptr_null(reply_text(&after, 1, dot));
}

TEST(answers_without_rows_are_no_dots)
{
	make(2);
	ck_assert_uint_eq(p.plot.n_dots, 0);
	ck_assert_int_eq(roofline_plot_extend(&p, &after), 0);
}
