/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Options: the command line as one struct
 *
 * Every command takes a subset of one table of options, so a letter has the same meaning
 * everywhere. Strings are borrowed from argv.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/mperf.pb-c.h"

/* Repetitions of one option: more are refused. Real command lines have far fewer. */
#define OPTIONS_LIST_MAX 64
/* The largest machines that Linux runs on have fewer than 8192 harts. */
#define OPTIONS_CPUS_MAX 4096

enum {
	OPTIONS_USAGE = 1, /* wrong, message printed; exit with EXIT_USAGE */
	OPTIONS_HELPED,    /* --help was printed */
};

/* The processes to measure; of a command that reads, those that it is about. */
struct target {
	bool all;
	int32_t pid[OPTIONS_LIST_MAX];
	size_t n_pids;
	char **command_line; /* CMD and its arguments, ended by NULL; or NULL */
	uint32_t cpu[OPTIONS_CPUS_MAX];
	size_t n_cpus;
	uint64_t for_ns; /* 0: until the command ends */
};

/* How to measure them. */
struct sampling {
	bool user_only;
	bool wakers;           /* also record who ends each wait */
	uint32_t hz;           /* 0: the daemon's default */
	uint64_t period;       /* -c; 0: by hz */
	uint32_t overhead_ppm; /* --overhead, millionths; 0: no limit */
	char *event[OPTIONS_LIST_MAX];
	size_t n_events;
	char *metric[OPTIONS_LIST_MAX]; /* -M, split at commas */
	size_t n_metrics;
	const char *needed_metric; /* one of `metric`, without which nothing is run */
	/* set by commands: advice if this machine cannot count what they need; NULL: none */
	const char *instead;
	Mperf__StackKind stack;
	bool stack_given; /* else the default, which depends on events */
	uint32_t stack_bytes;
	/* stat -I; 0: at the end. top and roofline -d; 0: a second. blocks --every; 0: once */
	uint32_t interval_ms;
	bool loops;   /* the command is about instrumented programs: --pid only narrows */
	bool callers; /* such a command, but callers are wanted too */
	bool of_code; /* --from code */
};

/* The part of what was measured that the answer is about. */
struct narrowing {
	char *comm[OPTIONS_LIST_MAX], *cgroup[OPTIONS_LIST_MAX];
	char *label[OPTIONS_LIST_MAX]; /* KEY=VALUE, as label_parse allows it */
	size_t n_comms, n_cgroups, n_labels;
	bool gives_labels; /* record without --since, job: the labels are given, and narrow nothing */
	int64_t since_ns, until_ns;
	char *of_event;
};

/* How the answer looks. */
struct look {
	bool json, csv, raw, no_color, markdown;
	char *column[OPTIONS_LIST_MAX]; /* --columns, split at commas */
	size_t n_columns;
	char *answer; /* file of -o for an answer that would go to stdout; NULL: stdout */
	bool answers_on_stdout;
};

struct options {
	struct target target;
	struct sampling sampling;
	struct narrowing narrowing;
	struct look look;

	/* of several commands */
	char *input, *output;
	char *inputs
		[OPTIONS_LIST_MAX]; /* hotspots, flamegraph, export: all of -i; input is the last */
	size_t n_inputs;
	/* roofline: the first of two inputs; flamegraph: --diff; or NULL. input is the second */
	char *earlier;
	char *by; /* stat and roofline: also by --per-process and --per-cgroup */
	char *title,
		*topic; /* list TOPIC; roofs measure; job run, start, …; schedule check, run, … */
	bool live;      /* roofline, blocks, topdown: repeat */
	bool force;
	uint32_t limit;  /* of rows; 0: all (top: by form) */
	uint32_t frames; /* exit after this many; 0: never */
	/* schedule check, run, get: files, or the name of the schedule or recording */
	char *subject[OPTIONS_LIST_MAX];
	size_t n_subjects;

	/* stat, topdown, hotspots */
	bool per_hart, per_process, per_cgroup; /* roofline: per_process */
	bool explain, inlined, folded;
	bool wall; /* hotspots, flamegraph */
	/* hotspots: a call tree, or the callers or callees of one function; NULL: no */
	bool tree;
	char *callers, *callees;
	uint32_t min_share_ppm; /* of its rows, millionths; 0: not given */
	char *sort;             /* hotspots: the column by which rows are sorted; NULL: self */
	uint32_t levels;        /* topdown -l; 0: all */
	uint32_t repeat;        /* stat -r; 0: once */
	char *separator;        /* stat -x; NULL: for people */
	char *as;               /* export: the format */
	char *decode;           /* list: a raw code */
	bool batch;             /* top: text, also on a terminal */

	/* roofline, roofs */
	bool plot, peaks, inclusive, notes, two_phase;
	char *ops;
	char *from;  /* counts (or NULL), code, counters */
	char *symfs; /* --from code: folder to look for programs in; NULL: the paths that they had */
	uint32_t
		vector_bits; /* --from code: size of a vector register of SVE or RVV; 0: not given */
	char *glob[OPTIONS_LIST_MAX]; /* --loops, split at commas */
	size_t n_globs;
	uint32_t one_in; /* --sample; 1 if not given */
	bool chooses;    /* --loops or --sample was given */
	bool quick;      /* roofs measure */

	/* job */
	char *job;     /* start and run: name of the job; pin and unpin: the selection */
	bool pins;     /* run --pin */
	char *pin;     /* selection of --pin; NULL: this job */
	uint32_t keep; /* --keep; 0: not given */

	/* diff and gate: the recordings of each side; see client/compare/recordings.h */
	char *baseline[OPTIONS_LIST_MAX], *candidate[OPTIONS_LIST_MAX];
	size_t n_baselines, n_candidates;
	/* in millionths; 0: the default, which for the allowance is none */
	uint32_t margin_ppm, effect_ppm, allowance_ppm;
	uint32_t looks; /* 0: the default */
	bool any_order, side_by_side;
	char *junit; /* gate: a file; NULL: none */
};

/* Is the answer for programs (UTF-8 everywhere), not for people? */
static inline bool options_ask_data(const struct options *o)
{
	return o->look.json || o->look.csv || o->look.raw || o->look.markdown;
}

/* Parse the arguments after the command's name; argv[0] is ignored. Prints errors on stderr. 0,
 * OPTIONS_USAGE, OPTIONS_HELPED, -ENOMEM. */
int options_parse(
	Mperf__Request__BodyCase command, int argc, char **argv, struct options *ret_options);

/* A title of the measurement: "make -j2", "the whole system", "process 12". The caller frees; NULL
 * if memory ran out. */
char *target_text(const struct target *t);

/* Print a command's help: synopsis, options, examples. */
void options_help(Mperf__Request__BodyCase command, FILE *f);
