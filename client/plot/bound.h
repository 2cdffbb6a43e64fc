/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The rate that roofs allow a loop, and the roof that bounds it */

#include "client/plot/plot.h"

#define PLOT_SETS_MAX 32  /* kinds of harts times precisions */
#define PLOT_LEVELS_MAX 6 /* caches and memory */
#define PLOT_PEAKS_MAX 6  /* kinds of operations */

/* The roofs of one kind of hart and one precision: drawn together. */
struct plot_set {
	const char *hart_kind; /* borrowed */
	enum plot_precision precision;
	const struct plot_roof *memory[PLOT_LEVELS_MAX]; /* fastest first */
	const struct plot_roof *peak[PLOT_PEAKS_MAX];    /* highest first */
	size_t n_memory, n_peaks;
	double gops, fastest, slowest; /* 0: not measured */
	double dram;                   /* the memory's own; 0: not measured */
};

struct plot_sets {
	struct plot_set set[PLOT_SETS_MAX];
	size_t n;
	size_t shown; /* the set drawn first; most loops have its precision */
};

/* Sort a plot's roofs into sets; borrows from the plot. */
void plot_sets_make(const struct plot *p, struct plot_sets *ret_sets);

/* The intensity below which the fastest memory bounds, and above which not even the slowest does.
 * False: not known. */
bool plot_set_zones(const struct plot_set *s, double *ret_memory, double *ret_compute);

/* The intensity, by bytes from memory, at which the DRAM roof meets the peak. False: not known. */
bool plot_set_dram_bend(const struct plot_set *s, double *ret_bend);

/* Fill in what bounds each dot, by the shown kind of hart and the dot's own precision. */
void plot_bind(struct plot *p, const struct plot_sets *sets);
