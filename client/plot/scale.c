/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Ends are steps of 1, 2, 5, 10; so are labels, as long as they fit. Else each decade has one, or
 * each second, third and so on. The nine values of a decade have thin lines if there are few decades.
 */
#include "client/plot/scale.h"

#include <math.h>
#include <stdio.h>

#define NEAR 1e-9 /* tolerance for rounding errors, in steps */
#define PAD 1.25  /* around the outermost values */
#define THIN_DECADES_MAX 6

static double power(int n)
{
	return pow(10, n);
}

bool plot_has_place(double value)
{
	return value >= PLOT_VALUE_MIN && value <= PLOT_VALUE_MAX;
}

bool plot_axis_include(struct plot_axis *a, double value)
{
	if (!plot_has_place(value))
		return false;
	bool is_first = a->low == 0 && a->high == 0;
	a->low = is_first || value < a->low ? value : a->low;
	a->high = is_first || value > a->high ? value : a->high;
	return true;
}

/* The next step at or below, or at or above. */
static double step_below(double value)
{
	double decade = power((int)floor(log10(value) + NEAR)), m = value / decade * (1 + NEAR);
	return decade * (m >= 5 ? 5 : m >= 2 ? 2 : 1);
}

static double step_above(double value)
{
	double decade = power((int)floor(log10(value) + NEAR)), m = value / decade * (1 - NEAR);
	return decade * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}

void plot_axis_finish(struct plot_axis *a, double decades)
{
	double low = a->low > 0 ? a->low / PAD : 1, high = a->low > 0 ? a->high * PAD : 1;
	double missing = decades - log10(high / low);
	if (missing > 0) {
		low /= pow(10, missing / 2);
		high *= pow(10, missing / 2);
	}
	a->low = step_below(low);
	a->high = step_above(high);
}

double plot_axis_at(const struct plot_axis *a, double value)
{
	return log(value / a->low) / log(a->high / a->low);
}

static bool is_within(const struct plot_axis *a, double value)
{
	return value >= a->low * (1 - NEAR) && value <= a->high * (1 + NEAR);
}

/* How many of a decade's values, given as bits, are on the axis. */
static size_t count(const struct plot_axis *a, unsigned steps, int every)
{
	size_t n = 0;
	for (int d = (int)floor(log10(a->low) - 1); d <= (int)ceil(log10(a->high)); d++)
		for (int m = 1; m <= 9; m++)
			n += steps >> m & 1 && d % every == 0 && is_within(a, m * power(d));
	return n;
}

size_t plot_axis_ticks(const struct plot_axis *a, size_t n_labels,
	struct plot_tick ret_ticks[static PLOT_TICKS_MAX])
{
	static const unsigned labelled[] = {
		1u << 1 | 1u << 2 | 1u << 5, 1u << 1 | 1u << 3, 1u << 1};
	unsigned choice = 0, steps = labelled[0];
	int every = 1;
	while (choice < 2 && count(a, steps, 1) > n_labels)
		steps = labelled[++choice];
	while (count(a, steps, every) > n_labels && every < 20)
		every++;
	bool has_thin = log10(a->high / a->low) <= THIN_DECADES_MAX;
	size_t n = 0;
	for (int d = (int)floor(log10(a->low) - 1); d <= (int)ceil(log10(a->high)); d++) {
		for (int m = 1; m <= 9 && n < PLOT_TICKS_MAX; m++) {
			bool has_label = steps >> m & 1 && d % every == 0;
			double value = m * power(d);
			if (is_within(a, value) && (has_label || m == 1 || has_thin))
				ret_ticks[n++] = (struct plot_tick){value, has_label};
		}
	}
	return n;
}

void plot_tick_text(double value, char ret_text[static PLOT_TICK_BYTES])
{
	bool is_plain = value >= 1e-3 * (1 - NEAR) && value < 1e6;
	snprintf(ret_text, PLOT_TICK_BYTES, is_plain ? "%.6g" : "%.0e", value);
}
