/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plot: the loops of one or two runs under the roofs of the machine
 *
 *      GFLOP/s          peak
 *         │        ╱‾‾‾‾‾‾‾‾‾‾‾‾‾   a loop cannot be above min(peak, bytes/s × FLOP/byte)
 *         │    L1╱ ●    ╱‾‾‾‾‾‾
 *         │    ╱     ╱
 *         │  ╱    ╱ DRAM
 *         └───────────────────── FLOP/byte
 *
 * Plain data: who fills it owns it, and who draws it borrows it. Loops count the bytes that they ask
 * for, so all roofs of memory are those of requested bytes, and all are of one hart, since rates of
 * loops are per thread. Where misses of the last cache were counted, a loop has a second place, by the
 * bytes that came from memory: a diamond, joined to its dot. Only the roof of the memory itself
 * applies to it.
 */

#include <stdbool.h>
#include <stddef.h>

/* A machine with three kinds of harts, seven precisions and all that is measured of each has about
 * 400 roofs. */
#define PLOT_ROOFS_MAX 4096
#define PLOT_NAME_BYTES 48
#define PLOT_HOW_BYTES 192
#define PLOT_RUNS_MAX 2
#define PLOT_NO_DOT SIZE_MAX

enum plot_precision {
	PLOT_F64,
	PLOT_F32,
	PLOT_F16,
	PLOT_I64,
	PLOT_I32,
	PLOT_I16,
	PLOT_I8,
	N_PLOT_PRECISIONS,
	PLOT_NO_PRECISION = N_PLOT_PRECISIONS,
};
/* "double precision". Static. */
const char *plot_precision_text(enum plot_precision precision);

struct plot_roof {
	bool is_memory;
	enum plot_precision precision; /* of operations */
	char name[PLOT_NAME_BYTES];    /* "L1", "vector fma"; of equal names the highest counts */
	char how[PLOT_HOW_BYTES]; /* how it was reached, and what disturbed it; "": not known */
	char hart_kind[PLOT_NAME_BYTES]; /* "": all harts are alike */
	double value, low, high;         /* GB/s, or operations per ns; the interval around it */
	bool is_theoretical; /* a theoretical peak, from the document in `how`: drawn differently,
			      * and bounds no loop */
};

/* The limit of a loop's rate, as far as intensity and nearness to a roof can tell. */
enum plot_bound {
	PLOT_BOUND_UNKNOWN, /* includes loops that are far below all roofs */
	PLOT_BOUND_MEMORY,  /* even if all its data came from the nearest cache */
	PLOT_BOUND_BOTH,    /* depends on the cache that its data come from */
	PLOT_BOUND_COMPUTE, /* even if all its data came from memory */
	N_PLOT_BOUNDS,
};
/* "memory", "both", "compute"; NULL: unknown. Static. */
const char *plot_bound_text(enum plot_bound bound);

/* A loop (or function, region, thread). Numbers are finite; negative: not known. */
struct plot_dot {
	const char *name, *source; /* borrowed; source may be NULL */
	double ops_per_byte, gops, gbytes;
	/* of bytes that came from memory; 0: not known either */
	double ops_per_dram_byte, dram_gbytes;
	double share, error, calls, time_ns;
	enum plot_precision precision; /* of most of its operations */
	unsigned run;                  /* below plot.n_runs */
	size_t later; /* of the first of two runs: the same loop in the second; or PLOT_NO_DOT */

	/* filled by plot_bind (client/plot/bound.h) */
	enum plot_bound bound;
	double of_roof;             /* its rate over what its intensity allows */
	enum plot_bound dram_bound; /* the same by bytes from memory: memory or compute */
	double of_dram_roof;
};

struct plot {
	const char *title, *provenance; /* provenance may be NULL */
	const char *rate, *per_byte;    /* "GFLOP/s", "FLOP/byte" */
	const char *run[PLOT_RUNS_MAX]; /* their names */
	size_t n_runs;
	struct plot_roof *roof;
	size_t n_roofs;
	const char *no_roofs; /* the reason why no roofs were measured, and what to do; NULL: some
			       * were measured */
	const char *whose;    /* a sentence: who keeps them, and when they were measured; or NULL */
	const char *
		disturbed; /* a sentence: what disturbed measuring them; they may be too low; or NULL */
	const char *
		stale; /* whose they are, if not this machine's, and what to do; they bound nothing then; or NULL */
	struct plot_dot *dot; /* by falling share, of a run after the other */
	size_t n_dots;
	bool is_integer; /* operations are integer ones */
	bool dram_only;  /* dots have bytes from memory alone: roofs of caches are left out */
};

/* Can it be drawn on logarithmic axes by requested bytes? */
bool plot_dot_has_place(const struct plot_dot *d);
/* Can it be drawn by the bytes that came from memory? */
bool plot_dot_has_dram_place(const struct plot_dot *d);
/* Can it be drawn by either? */
bool plot_dot_is_drawn(const struct plot_dot *d);
/* The intensity by which it is drawn and named: by requested bytes, or else by bytes from memory.
 * */
double plot_dot_intensity(const struct plot_dot *d);
