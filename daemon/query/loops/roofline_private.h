/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of a roofline: groups have sums, sums have times, and both make the figures of rows */

#include "daemon/query/loops/dram.h"
#include "daemon/query/loops/roofline.h"

/* Sums of one loop, function, region or thread; plain and modelled together. */
struct roof_sums {
	double value[N_LOOP_METRICS];
	double modelled_bytes;
	double sampled_ns;
	double cycles, instructions; /* hardware counts, if samples had them */
	uint64_t samples, uncounted; /* samples, and those that these two do not cover */
	/* of regions and threads: functions that counted at most once in it */
	uint32_t n_scarce;
};

enum roof_clock {
	ROOF_NO_CLOCK,
	ROOF_MEASURED,
	ROOF_SAMPLED,
	ROOF_SPAN,
	/* share of the surrounding nest's time, by counted instructions */
	ROOF_SHARED,
	N_ROOF_CLOCKS
};

/* The cost of counting, ns. */
struct roof_costs {
	double update_ns; /* of a counter, independent of the previous update */
	double clock_ns;  /* a clock read */
};
/* Measures them on this machine, in less than a millisecond. */
struct roof_costs roof_costs_measure(void);

/* Figures computed from sums. Negative: not known. */
struct roof_figures {
	enum roof_clock clock;
	double time_ns, ops, bytes;
	double ops_per_ns, bytes_per_ns, bytes_per_ns_corrected;
	double loaded_per_ns, stored_per_ns; /* bytes, and corrected: */
	double loaded_per_ns_corrected, stored_per_ns_corrected;
	double ops_per_byte, lanes;
	double cost;  /* share of the time, estimated */
	double error; /* standard error of the time, and so of all rates, as a share */
};
struct roof_time {
	enum roof_clock clock;
	double ns;
	double error; /* relative; 0: follows from the clock and the counts */
};
struct roof_figures roof_figures_of(const struct roof_sums *s, const struct roof_time *time,
	enum roofline_ops ops, const struct roof_costs *costs);

double roof_ops(const struct roof_sums *s, enum roofline_ops ops);

/* Equations 1 to 5 of Examem: the slowdown by counting, estimated from counted instructions; 1 if
 * not known. Exported for tests. */
double roof_correction(double accesses, double instructions, double updates);

/* The relative standard error of a sum whose variance is in MPERF_VARIANCE_UNIT; negative: the sum is
 * 0. */
double roof_variance_error(double variance, double sum);

#define ROOF_DOUBT_SAMPLES (1u << 31) /* the cycles and instructions of samples are impossible */
struct roof_row {
	uint32_t group; /* index of the site or thread */
	/* self: without the loops inside, for loops; else the same */
	struct roof_figures total, self;
	double self_ns; /* own time; negative: not known */
	/* bit i: the count of granted event i is impossible; or ROOF_DOUBT_SAMPLES */
	uint32_t doubted;
	uint8_t depth; /* loops around it */
};

/* Groups of facts: loops, functions, regions or threads; an index of sites or whos. */
struct roof_groups {
	uint32_t n;
	struct roof_sums *self, *total; /* without and with the loops inside */
	double span_ns;                 /* for how long threads counted */
};

struct roof_times {
	struct roof_time *self, *total; /* by group */
	double whole_ns;                /* time of which shares are computed; 0: not known */
	double waited_ns; /* left out of times: wall time in which threads had no CPU */
};

struct roof_nests {
	uint32_t *first_inside,
		*next_inside; /* by group: loops inside: index + 1; NULL: none have */
};

struct roof_rows {
	struct roof_row *row;
	uint32_t n;
	bool any_sampled, any_shared, any_doubted;
	bool any_measured_in_part; /* regions of which 1 in N entries was measured */
};

struct roofline {
	struct roofline_question q;
	struct loop_facts facts;
	struct roof_groups groups; /* roofline.c */
	struct roof_nests nests;   /* roofline_callees.c */
	struct roof_times times;   /* roofline_time.c */
	struct roof_rows rows;     /* roofline.c makes them, roofline_order.c chooses among them */
	struct dram dram;          /* if has_dram: where bytes from memory are */
	bool has_dram;
	struct roof_costs costs;
};

/* The number of counted entries of a loop or function; negative: all. */
struct roof_share {
	double entries, counted;
};
struct roof_share roof_share_of(const struct roofline *r, uint32_t group);

/* roofline_time.c: find the times of all groups. 0, -ENOMEM. */
int roofline_times(struct roofline *r);
void roof_times_clear(struct roof_times *t);
/* The CPU time of threads by samples, as a share of the time for which they counted, if this shows
 * that they waited; else 1. */
double roofline_cpu_share(const struct roofline *r);
/* roofline_order.c: choose the rows, and put them in order. 0, -ENOMEM. */
int roofline_order(struct roofline *r);
/* roofline_callees.c: Is it a callee that moves bytes for its caller, as memcpy does? In answers by loop, such callees
 * of a loop have rows like nested loops. */
bool roofline_is_copy(const struct roofline *r, uint32_t group);
bool roofline_is_callee(const struct roofline *r, uint32_t group);
/* A loop, or a copy that a loop makes. */
bool roofline_is_loop(const struct roofline *r, uint32_t group);
/* Find the loops inside of each group. 0, -ENOMEM. */
int roofline_find_inside(struct roofline *r);
void roof_nests_clear(struct roof_nests *n);
/* Does any code call uncounted code? */
bool roofline_has_callees(const struct roofline *r);
/* Describe the uncounted code that a loop or function, and the loops inside, call: names, calls,
 * and time if samples show it, in at most n bytes. Returns the length, 0: nothing. */
size_t roofline_callees(const struct roofline *r, uint32_t group, char *ret_text, size_t n);
/* The loop around a group, index + 1; 0: none. */
uint32_t roofline_loop_around(const struct roofline *r, uint32_t group);
/* figures.c: find the impossible hardware counts of a group, as in roof_row.doubted. */
uint32_t roofline_doubts(const struct roofline *r, uint32_t group);
/* roofline_notes.c: add to the provenance the limits of the figures, then the meaning of
 * columns. */
void roofline_note(struct roofline *r);
/* roofline_rows.c: send the rows. */
int roofline_tell(struct roofline *r, const struct answer *answer);
