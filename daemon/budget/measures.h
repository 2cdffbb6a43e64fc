/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Measures: what mperf's own processes give up for less CPU time, chosen by what the time is for
 *
 * The governor gives up what samples cost. Measures come before it: they put work off, and lose no sample. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Causes of our processes' CPU time. */
enum cause {
	CAUSE_SAMPLES,   /* records of samples and switches, with their stacks */
	CAUSE_SIDEBAND,  /* records of forks, execs, mappings and the like */
	CAUSE_ARGUMENTS, /* of programs that exec, and their owners */
	CAUSE_NAMING,    /* the opener, the parser, and the loop's part; of all users */
	CAUSE_WAITING,   /* looks for threads that wait */
	CAUSE_WRITING,   /* flushes, and the store's files */
	CAUSE_CLIENTS,   /* clients and instrumented programs */
	CAUSE_REST,
	N_CAUSES,
};
/* "naming". */
const char *cause_says(enum cause cause);

/* In the order in which they are taken. */
enum measure {
	MEASURE_NAMES,     /* files are named at a slower pace, those with most samples first */
	MEASURE_FLUSHES,   /* samples are written every MEASURES_FLUSH_NS */
	MEASURE_ARGUMENTS, /* execs do not wake the loop */
	MEASURE_LOOKS,     /* threads that wait are looked for seldom */
	N_MEASURES,
};
/* A crash loses what is not written. */
#define MEASURES_FLUSH_NS 30000000000u
/* Files of all users are named within this part of the budget. */
#define MEASURES_NAMES_PART 4

#define MEASURES_TEXT_BYTES 240

struct measures_load {
	double budget;          /* share of a hart's time; 0: no limit */
	double cost;            /* of the busiest hart's time, with all naming; now */
	double spent[N_CAUSES]; /* of all harts' time, as means since the last change */
	double keeps
		[N_MEASURES]; /* part of its cause's time that a measure would leave; 1: it saves nothing */
	bool may_return; /* all else has been taken back */
};

struct measures {
	bool taken[N_MEASURES];
	double saved[N_MEASURES]; /* by the figures when it was taken */
	unsigned n_over;          /* as in struct governor, with the same times: */
	uint64_t low_ns, back_ns, returned_ns, changed_ns;
};

/* Decide; true if a measure was taken or taken back. now_ns: CLOCK_MONOTONIC, not 0. */
bool measures_tick(struct measures *m, const struct measures_load *l, uint64_t now_ns);

/* "names of files wait, samples are written every 30 s"; "" if none is taken. Returns ret_text. */
const char *measures_say(const struct measures *m, char ret_text[static MEASURES_TEXT_BYTES]);
