/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plot made by hand: a machine with two levels and three loops */

#include <math.h>
#include <string.h>

#include "client/plot/bound.h"
#include "tests/unit/test.h"

#define PLOTTED_ROOFS 64
#define PLOTTED_DOTS 10000

struct plotted {
	struct plot plot;
	struct plot_sets sets;
	struct plot_roof roof[PLOTTED_ROOFS];
	struct plot_dot dot[PLOTTED_DOTS];
};

static inline struct plot_roof *plotted_roof(struct plotted *p, const char *name, double value)
{
	struct plot_roof *r = &p->roof[p->plot.n_roofs++];
	*r = (struct plot_roof){.is_memory = true,
		.precision = PLOT_NO_PRECISION,
		.value = value,
		.low = 0.95 * value,
		.high = 1.05 * value};
	snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

static inline struct plot_roof *plotted_peak(
	struct plotted *p, const char *name, enum plot_precision precision, double value)
{
	struct plot_roof *r = plotted_roof(p, name, value);
	r->is_memory = false;
	r->precision = precision;
	return r;
}

static inline struct plot_dot *plotted_dot(
	struct plotted *p, const char *name, double ops_per_byte, double gops)
{
	struct plot_dot *d = &p->dot[p->plot.n_dots++];
	*d = (struct plot_dot){.name = name,
		.source = "main.c:7",
		.ops_per_byte = ops_per_byte,
		.gops = gops,
		.gbytes = ops_per_byte > 0 ? gops / ops_per_byte : 5,
		.share = 0.1,
		.error = 0.01,
		.calls = 12345,
		.time_ns = 1e9,
		.precision = PLOT_F64,
		.later = PLOT_NO_DOT};
	return d;
}

/* By bytes from memory too. */
static inline struct plot_dot *plotted_dram(struct plot_dot *d, double ops_per_dram_byte)
{
	d->ops_per_dram_byte = ops_per_dram_byte;
	d->dram_gbytes = d->gops / ops_per_dram_byte;
	return d;
}

static inline void plotted_bind(struct plotted *p)
{
	plot_sets_make(&p->plot, &p->sets);
	plot_bind(&p->plot, &p->sets);
}

/* Loops and roofs of all pairs of numbers that are none, or far from any other. */
static inline void plotted_extremes(struct plotted *p)
{
	static const double odd[] = {
		NAN, INFINITY, -INFINITY, -1, 0, 5e-324, 1e-300, 1e-9, 1e-3, 1, 1e9, 1e18, 1.7e308};
	const size_t n = sizeof(odd) / sizeof(*odd);
	for (size_t i = 0; i < n * n; i++) {
		double a = odd[i / n], b = odd[i % n];
		struct plot_dot *d = plotted_dot(p, "odd", a, b);
		d->share = d->error = d->gbytes = i % 2 ? a : b;
		d->ops_per_dram_byte = d->dram_gbytes = odd[(i + i / n) % n];
		d->later = i % 5 ? PLOT_NO_DOT : i / 2;
	}
	p->plot.n_roofs = 0;
	for (size_t i = 0; i < n; i++) {
		char name[16];
		snprintf(name, sizeof(name), "odd %zu", i);
		struct plot_roof *level = plotted_roof(p, name, odd[i]);
		level->low = odd[(i + 3) % n];
		level->high = odd[(i + 5) % n];
		plotted_peak(p, name, PLOT_F64, odd[i])->high = odd[(i + 7) % n];
	}
}

/* L1 100 GB/s, DRAM 10 GB/s, f64 50 and f32 100 GFLOP/s: bends at 0.5 and 5, and at 1 and 10. */
static inline struct plotted *plotted_new(void)
{
	struct plotted *p = calloc(1, sizeof(*p));
	ck_assert_ptr_nonnull(p);
	p->plot = (struct plot){.title = "t",
		.rate = "GFLOP/s",
		.per_byte = "FLOP/byte",
		.n_runs = 1,
		.run = {"a.out", "b.out"},
		.roof = p->roof,
		.dot = p->dot};
	plotted_roof(p, "DRAM", 10);
	plotted_roof(p, "L1", 100);
	plotted_peak(p, "vector fma", PLOT_F64, 50);
	plotted_peak(p, "scalar fma", PLOT_F64, 12.5);
	plotted_peak(p, "vector fma", PLOT_F32, 100);
	return p;
}
