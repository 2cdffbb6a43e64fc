/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which roofs are drawn together, and what they say of a loop.
 */
#include <math.h>

#include "client/plot/axes.h"
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

EACH_TEST(.begin = begin, .end = end);

static void says(const struct plot_dot *d, enum plot_bound bound, double of_roof)
{
	ck_assert_int_eq(d->bound, bound);
	ck_assert_msg(fabs(d->of_roof - of_roof) < 1e-9, "%s: %g", d->name, d->of_roof);
}

TEST(zones_end_where_the_levels_bend)
{
	plotted_dot(p, "stream", 0.25, 2.5);
	plotted_dot(p, "stencil", 2, 10);
	plotted_dot(p, "matmul", 20, 25);
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_MEMORY, 0.1); /* of 25; all that DRAM gives */
	says(&p->dot[1], PLOT_BOUND_BOTH, 0.2);
	says(&p->dot[2], PLOT_BOUND_COMPUTE, 0.5);
}

/* Between DRAM's 10 GB/s and L1's 100, and below both: what such a loop waits for, roofs do not say. */
TEST(far_from_every_roof_nothing_bounds)
{
	plotted_dot(p, "strided matmul", 0.125, 0.1625); /* 1.3 % of 100 GB/s, 13 % of 10 */
	plotted_dot(p, "between", 0.25, 5);              /* 20 GB/s */
	plotted_dot(p, "at the memory's roof", 0.25, 2.7);
	plotted_dot(p, "at half of it", 0.25, 1.25);
	plotted_dot(p, "above all", 0.25, 30);
	plotted_dot(p, "slow", 20, 5); /* 40 % of the scalar peak */
	plotted_dot(p, "scalar", 20, 12);
	plotted_dram(plotted_dot(p, "waits for memory", -1, 1), 0.5)->gbytes = -1;
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, 0.013);
	says(&p->dot[1], PLOT_BOUND_UNKNOWN, 0.2);
	says(&p->dot[2], PLOT_BOUND_MEMORY, 0.108);
	says(&p->dot[3], PLOT_BOUND_MEMORY, 0.05);
	says(&p->dot[4], PLOT_BOUND_MEMORY, 1.2);
	says(&p->dot[5], PLOT_BOUND_UNKNOWN, 0.1);
	says(&p->dot[6], PLOT_BOUND_COMPUTE, 0.24);
	ck_assert_int_eq(p->dot[7].dram_bound, PLOT_BOUND_UNKNOWN);
	ck_assert_double_eq_tol(p->dot[7].of_dram_roof, 0.2, 1e-12);
}

TEST(a_loop_is_compared_with_roofs_of_its_precision)
{
	plotted_dot(p, "double", 6, 25);
	plotted_dot(p, "single", 6, 25)->precision = PLOT_F32;
	plotted_dot(p, "half", 6, 25)->precision = PLOT_F16; /* not measured */
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_COMPUTE, 0.5);
	says(&p->dot[1], PLOT_BOUND_UNKNOWN, 0.25); /* between 10 and 100 GB/s: near neither */
	says(&p->dot[2], PLOT_BOUND_UNKNOWN, -1);
}

TEST(without_operations_there_is_bandwidth_alone)
{
	plotted_dot(p, "copy", 0, 0)->gbytes = 40;
	struct plot_dot *d = plotted_dot(p, "untimed", 0.25, -1);
	d->gbytes = -1;
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, 0.4);
	says(&p->dot[1], PLOT_BOUND_UNKNOWN, -1);
}

/* DRAM 10 GB/s meets the peak of 50 at 5; what L1 could give says nothing of bytes from memory. */
TEST(bytes_from_memory_are_compared_with_its_own_roof)
{
	plotted_dram(plotted_dot(p, "stream", 0.25, 4), 0.5);
	plotted_dram(plotted_dot(p, "blocked", 0.25, 10), 20);
	plotted_dram(plotted_dot(p, "by counters", -1, 4), 0.5)->gbytes = -1;
	plotted_dot(p, "not counted", 0.25, 4);
	plotted_bind(p);
	const struct plot_dot *d = p->dot;
	ck_assert_int_eq(d[0].dram_bound, PLOT_BOUND_MEMORY);
	ck_assert_double_eq_tol(d[0].of_dram_roof, 4 / 5.0, 1e-12);
	says(&d[0], PLOT_BOUND_UNKNOWN, 4 / 25.0);
	ck_assert_int_eq(d[1].dram_bound, PLOT_BOUND_UNKNOWN); /* a fifth of what it allows */
	ck_assert_double_eq_tol(d[1].of_dram_roof, 10 / 50.0, 1e-12);
	ck_assert_double_eq_tol(d[2].of_dram_roof, 4 / 5.0, 1e-12);
	says(&d[2], PLOT_BOUND_UNKNOWN, -1);
	ck_assert(!plot_dot_has_place(&d[2]) && plot_dot_is_drawn(&d[2]));
	ck_assert_double_eq(plot_dot_intensity(&d[2]), 0.5);
	ck_assert_double_eq(plot_dot_intensity(&d[0]), 0.25);
	ck_assert_int_eq(d[3].dram_bound, PLOT_BOUND_UNKNOWN);
	ck_assert_double_eq(d[3].of_dram_roof, -1);
}

TEST(without_a_roof_of_memory_caches_do_not_stand_in)
{
	plotted_dram(plotted_dot(p, "stream", 0.25, 4), 0.5);
	strcpy(p->roof[0].name, "L2");
	plotted_bind(p);
	ck_assert_int_eq(p->dot[0].dram_bound, PLOT_BOUND_UNKNOWN);
	ck_assert_double_eq(p->dot[0].of_dram_roof, -1);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, 4 / 25.0);
}

TEST(axes_have_room_for_bytes_from_memory)
{
	struct plot_axes a = {.x.low = 0};
	plotted_dram(plotted_dot(p, "blocked", 0.25, 10), 5000);
	plotted_bind(p);
	plot_axes_fit(&a, &p->plot, &p->sets);
	ck_assert(a.x.low <= 0.25 && a.x.high >= 5000);
}

TEST(stale_roofs_bound_nothing)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->plot.stale = "They are of another machine.";
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, -1);
	ck_assert_uint_gt(p->sets.n, 0);
}

TEST(theoretical_peaks_bound_nothing)
{
	plotted_dot(p, "matmul", 20, 25);
	plotted_peak(p, "theoretical vector", PLOT_F64, 80)->is_theoretical = true;
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_COMPUTE, 0.5); /* of what was measured, 50 */
	const struct plot_set *s = &p->sets.set[p->sets.shown];
	ck_assert(s->peak[0]->is_theoretical);
	ck_assert_double_eq(s->gops, 50);

	/* nor where they are all that there is */
	p->plot.n_roofs = 0;
	plotted_peak(p, "theoretical vector", PLOT_F64, 80)->is_theoretical = true;
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, -1);
	ck_assert_uint_eq(p->sets.n, 1);
	ck_assert_double_eq(p->sets.set[0].gops, 0);
}

TEST(without_roofs_nothing_is_said)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->plot.n_roofs = 0;
	plotted_bind(p);
	ck_assert_uint_eq(p->sets.n, 0);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, -1);
}

TEST(half_of_the_roofs_bound_nothing)
{
	plotted_dot(p, "stream", 0.25, 5);
	p->plot.n_roofs = 2; /* of memory alone */
	plotted_bind(p);
	ck_assert_uint_eq(p->sets.n, 1);
	ck_assert_uint_eq(p->sets.set[0].n_memory, 2);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, -1);
	p->plot.roof = &p->roof[2]; /* peaks alone */
	p->plot.n_roofs = 3;
	plotted_bind(p);
	says(&p->dot[0], PLOT_BOUND_UNKNOWN, -1);
}

TEST(a_set_has_a_roof_of_each_name_the_highest_first)
{
	plotted_roof(p, "L1", 120);
	plotted_roof(p, "L1", 80);
	plotted_roof(p, "L2", 60);
	plotted_roof(p, "broken", NAN);
	plotted_bind(p);
	const struct plot_set *s = &p->sets.set[p->sets.shown];
	ck_assert_uint_eq(s->n_memory, 3);
	ck_assert_str_eq(s->memory[0]->name, "L1");
	ck_assert_double_eq(s->memory[0]->value, 120);
	ck_assert_str_eq(s->memory[1]->name, "L2");
	ck_assert_double_eq(s->fastest, 120);
	ck_assert_double_eq(s->slowest, 10);
	ck_assert_double_eq(s->gops, 50);
}

TEST(of_too_many_roofs_the_highest_stay)
{
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "way %d", i);
		plotted_peak(p, name, PLOT_F64, 1 + i * 7 % 40);
	}
	plotted_bind(p);
	const struct plot_set *s = &p->sets.set[p->sets.shown];
	ck_assert_uint_eq(s->n_peaks, PLOT_PEAKS_MAX);
	for (size_t i = 0; i + 1 < s->n_peaks; i++)
		ck_assert_double_ge(s->peak[i]->value, s->peak[i + 1]->value);
	ck_assert_double_eq(s->peak[PLOT_PEAKS_MAX - 1]->value, 36);
}

TEST(the_precision_of_most_of_the_time_is_shown_first)
{
	plotted_dot(p, "double", 6, 25)->share = 0.2;
	plotted_dot(p, "single", 6, 25)->precision = PLOT_F32;
	plotted_bind(p);
	ck_assert_int_eq(p->sets.set[p->sets.shown].precision, PLOT_F64);
	p->dot[1].share = 0.3;
	plotted_bind(p);
	ck_assert_int_eq(p->sets.set[p->sets.shown].precision, PLOT_F32);
}

TEST(the_fastest_kind_of_hart_is_shown_first)
{
	for (size_t i = 0; i < 5; i++) {
		struct plot_roof *r = &p->roof[p->plot.n_roofs++];
		*r = p->roof[i];
		snprintf(p->roof[i].hart_kind, PLOT_NAME_BYTES, "little");
		snprintf(r->hart_kind, PLOT_NAME_BYTES, "big");
		r->value *= 2;
	}
	plotted_dot(p, "stream", 0.25, 5);
	plotted_bind(p);
	ck_assert_uint_eq(p->sets.n, 4);
	ck_assert_str_eq(p->sets.set[p->sets.shown].hart_kind, "big");
	says(&p->dot[0], PLOT_BOUND_MEMORY, 0.1); /* at the 20 GB/s of its memory */
}

TEST(integers_have_roofs_of_their_own)
{
	plotted_peak(p, "vector add", PLOT_I64, 20);
	plotted_dot(p, "hash", 5, 15)->precision = PLOT_I64;
	p->plot.is_integer = true;
	plotted_bind(p);
	ck_assert_uint_eq(p->sets.n, 1);
	says(&p->dot[0], PLOT_BOUND_COMPUTE, 0.75);
}

/* --- where they are drawn --------------------------------------------------------------------- */

TEST(roofs_bend_where_they_meet)
{
	struct plot_axes axes = {.x.low = 0};
	struct plot_line dram, l1, fma, scalar;
	plotted_bind(p);
	plot_axes_fit(&axes, &p->plot, &p->sets);
	const struct plot_set *s = &p->sets.set[p->sets.shown];
	ck_assert(plot_axes_roof(&axes, s, s->memory[0], 100, &l1));
	ck_assert(plot_axes_roof(&axes, s, s->memory[1], 10, &dram));
	ck_assert(plot_axes_roof(&axes, s, s->peak[0], 50, &fma));
	ck_assert(plot_axes_roof(&axes, s, s->peak[1], 12.5, &scalar));
	ck_assert_double_eq_tol(l1.x1, plot_axis_at(&axes.x, 0.5), 1e-9);
	ck_assert_double_eq_tol(l1.y1, plot_axis_at(&axes.y, 50), 1e-9);
	ck_assert_double_eq_tol(dram.x1, plot_axis_at(&axes.x, 5), 1e-9);
	ck_assert_double_eq_tol(fma.x0, l1.x1, 1e-9);
	ck_assert_double_eq_tol(fma.y0, l1.y1, 1e-9);
	ck_assert_double_eq_tol(scalar.x0, plot_axis_at(&axes.x, 0.125), 1e-9);
	ck_assert_double_eq(fma.x1, 1);
}

TEST(axes_of_a_series_only_grow)
{
	struct plot_axes axes = {.x.low = 0}, before;
	plotted_dot(p, "far", 1e-3, 1e-3);
	plotted_bind(p);
	plot_axes_fit(&axes, &p->plot, &p->sets);
	before = axes;
	p->dot[0] = (struct plot_dot){.ops_per_byte = 1, .gops = 1000};
	plot_axes_fit(&axes, &p->plot, &p->sets);
	ck_assert_double_eq(axes.x.low, before.x.low);
	ck_assert_double_eq(axes.y.low, before.y.low);
	ck_assert_double_ge(axes.y.high, 1000);
}
