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

struct options {
	/* what and how to measure */
	bool all, user_only;
	int32_t pid[OPTIONS_LIST_MAX];
	size_t n_pids;
	char **command_line;   /* CMD and its arguments, ended by NULL; or NULL */
	uint64_t for_ns;       /* 0: until the command ends */
	uint32_t hz;           /* 0: the daemon's default */
	uint64_t period;       /* -c; 0: by hz */
	uint32_t overhead_ppm; /* --overhead, millionths; 0: no limit */
	char *event[OPTIONS_LIST_MAX];
	size_t n_events;
	char *metric[OPTIONS_LIST_MAX]; /* -M, split at commas */
	size_t n_metrics;
	const char *needed_metric; /* one of `metric` that must be countable, or no command is run
				    * */
	uint32_t levels;           /* topdown -l; 0: all */
	Mperf__StackKind stack;
	bool stack_given; /* else the default, which depends on CMD */
	uint32_t stack_bytes;

	/* what to ask */
	char *input, *output;
	/* roofline: the first of two inputs; flamegraph: --diff; or NULL. input is the second */
	char *earlier;
	bool plot, peaks;
	char *by, *ops, *of_event, *title;
	char *as;            /* export: the format */
	char *from;          /* roofline: counts (or NULL), code, counters */
	const char *instead; /* set by commands: advice if this machine cannot count the events that
			  * they need; NULL: none */
	char *symfs; /* --from code: folder to look for programs in; NULL: the paths that they had */
	uint32_t
		vector_bits; /* --from code: size of a vector register of SVE or RVV; 0: not given */
	char *decode;        /* list: a raw code */
	char *topic; /* list TOPIC; roofs measure; job run, start, …; schedule check, run, … */
	bool live;   /* roofline, blocks, topdown: repeat */
	bool per_hart, per_process, per_cgroup; /* stat; roofline: per_process */
	bool inclusive, notes;
	char *column[OPTIONS_LIST_MAX]; /* --columns, split at commas */
	size_t n_columns;
	bool two_phase;
	char *glob[OPTIONS_LIST_MAX]; /* --loops, split at commas */
	size_t n_globs;
	uint32_t one_in; /* --sample; 1 if not given */
	bool chooses;    /* --loops or --sample was given */
	bool loops;      /* the command is about instrumented programs: --pid only narrows */
	bool callers;    /* such a command that also needs callers */
	char *comm[OPTIONS_LIST_MAX], *cgroup[OPTIONS_LIST_MAX];
	char *label[OPTIONS_LIST_MAX]; /* KEY=VALUE, as label_parse allows it */
	size_t n_comms, n_cgroups, n_labels;
	bool gives_labels; /* record, job: the labels are given, and narrow nothing */
	char *job;         /* job start and run: name of the job; pin and unpin: the selection */
	bool pins;         /* job run --pin */
	char *pin;         /* selection of --pin; NULL: this job */
	uint32_t keep;     /* --keep; 0: not given */
	/* schedule check, run, get: files, or the name of the schedule or recording */
	char *subject[OPTIONS_LIST_MAX];
	size_t n_subjects;
	uint32_t cpu[OPTIONS_CPUS_MAX];
	size_t n_cpus;
	int64_t since_ns, until_ns;
	uint32_t limit; /* of rows; 0: all (top: by form) */
	bool inlined;
	bool quick; /* roofs measure */
	/* diff and gate: the recordings of each side; see client/compare/recordings.h */
	char *baseline[OPTIONS_LIST_MAX], *candidate[OPTIONS_LIST_MAX];
	size_t n_baselines, n_candidates;
	/* in millionths; 0: the default, which for the allowance is none */
	uint32_t margin_ppm, effect_ppm, allowance_ppm;
	uint32_t looks; /* 0: the default */
	bool any_order, side_by_side;

	/* how to show it */
	bool json, csv, raw, no_color, folded, force;
	char *separator; /* stat -x; NULL: for people */
	char *answer;    /* file of -o for an answer that would go to stdout; NULL: stdout */
	bool answers_on_stdout;
	bool markdown;   /* gate, diff */
	char *junit;     /* gate: a file; NULL: none */
	bool explain;    /* topdown, stat */
	uint32_t repeat; /* stat -r; 0: once */
	/* stat -I; 0: at the end. top and roofline -d; 0: a second. blocks --every; 0: once */
	uint32_t interval_ms;
	bool batch;      /* top: text, also on a terminal */
	uint32_t frames; /* exit after this many; 0: never */
};

/* Is the answer for programs (UTF-8 everywhere), not for people? */
static inline bool options_ask_data(const struct options *o)
{
	return o->json || o->csv || o->raw || o->markdown;
}

/* Parse the arguments after the command's name; argv[0] is ignored. Prints errors on stderr. 0,
 * OPTIONS_USAGE, OPTIONS_HELPED, -ENOMEM. */
int options_parse(
	Mperf__Request__BodyCase command, int argc, char **argv, struct options *ret_options);

/* A title of the measurement: "make -j2", "the whole system", "process 12". The caller frees; NULL
 * if memory ran out. */
char *options_what(const struct options *o);

/* Print a command's help: synopsis, options, examples. */
void options_help(Mperf__Request__BodyCase command, FILE *f);
