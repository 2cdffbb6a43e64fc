/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Axes: their ends, places and labels.
 */
#include <math.h>

#include "client/plot/scale.h"
#include "tests/unit/test.h"

static struct plot_axis axis_of(double low, double high, double decades)
{
	struct plot_axis a = {0, 0};
	ck_assert(plot_axis_include(&a, low));
	ck_assert(plot_axis_include(&a, high));
	plot_axis_finish(&a, decades);
	return a;
}

static void is_near(double value, double wanted)
{
	ck_assert_msg(fabs(value - wanted) <= 1e-9 * fabs(wanted), "%g is not %g", value, wanted);
}

TEST(ends_are_steps_around_the_values)
{
	struct plot_axis a = axis_of(0.03, 70, 1);
	is_near(a.low, 0.02);
	is_near(a.high, 100);
	a = axis_of(1, 1000, 1); /* not on the edge */
	is_near(a.low, 0.5);
	is_near(a.high, 2000);
	a = axis_of(2.5, 4, 0);
	is_near(a.low, 2);
	is_near(a.high, 5);
}

TEST(one_value_has_room_around_it)
{
	struct plot_axis a = axis_of(3, 3, 2);
	ck_assert_double_ge(log10(a.high / a.low), 2);
	ck_assert_double_gt(plot_axis_at(&a, 3), 0.3);
	ck_assert_double_lt(plot_axis_at(&a, 3), 0.7);
}

TEST(an_axis_without_values_is_one)
{
	struct plot_axis a = {0, 0};
	plot_axis_finish(&a, 2);
	is_near(a.low, 0.1);
	is_near(a.high, 10);
}

TEST(what_has_no_place_changes_nothing)
{
	static const double wrong[] = {0, -1, NAN, INFINITY, -INFINITY, 1e-30, 1e30};
	struct plot_axis a = {0, 0};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert(!plot_axis_include(&a, wrong[i]));
	ck_assert(a.low == 0 && a.high == 0);
}

TEST(a_decade_is_as_long_as_another)
{
	struct plot_axis a = axis_of(0.02, 400, 1);
	double first = plot_axis_at(&a, 1) - plot_axis_at(&a, 0.1);
	is_near(plot_axis_at(&a, 100) - plot_axis_at(&a, 10), first);
	is_near(plot_axis_at(&a, a.high), 1);
	ck_assert_double_eq(plot_axis_at(&a, a.low), 0);
}

static size_t labels_of(const struct plot_axis *a, size_t n_labels, double *ret_value)
{
	struct plot_tick tick[PLOT_TICKS_MAX];
	size_t n = plot_axis_ticks(a, n_labels, tick), labels = 0;
	for (size_t i = 0; i < n; i++) {
		ck_assert(i == 0 || tick[i].value > tick[i - 1].value);
		ck_assert(tick[i].value >= 0.999 * a->low && tick[i].value <= 1.001 * a->high);
		if (tick[i].has_label)
			ret_value[labels++] = tick[i].value;
	}
	return labels;
}

TEST(there_are_as_many_labels_as_fit)
{
	double value[PLOT_TICKS_MAX];
	struct plot_axis a = axis_of(0.02, 70, 1);
	ck_assert_uint_eq(labels_of(&a, 100, value), 13); /* 0.01 to 100 */
	is_near(value[1], 0.02);
	is_near(value[2], 0.05);
	ck_assert_uint_eq(labels_of(&a, 12, value), 9);
	is_near(value[1], 0.03);
	ck_assert_uint_eq(labels_of(&a, 5, value), 5);
	is_near(value[1], 0.1);
	ck_assert_uint_eq(labels_of(&a, 3, value), 3);
	is_near(value[1] / value[0], 100);
	a = axis_of(PLOT_VALUE_MIN, PLOT_VALUE_MAX, 1);
	for (size_t n = 1; n < 60; n++)
		ck_assert_uint_le(labels_of(&a, n, value), n);
}

TEST(labels_are_plain_numbers_where_these_are_short)
{
	static const struct {
		double value;
		const char *text;
	} wanted[] = {{0.1, "0.1"}, {0.005, "0.005"}, {0.001, "0.001"}, {20, "20"}, {1e5, "100000"},
		{1e6, "1e+06"}, {2e-5, "2e-05"}};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		char text[PLOT_TICK_BYTES];
		plot_tick_text(wanted[i].value, text);
		ck_assert_str_eq(text, wanted[i].text);
	}
}
