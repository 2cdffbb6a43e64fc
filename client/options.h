/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Options: what was typed, as one struct
 *
 * Every command takes a subset of one table of options, so that the same letter means the same
 * everywhere. Strings are borrowed from argv.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/mperf.pb-c.h"

/* Far more than a command line is typed with; beyond, the option is refused. */
#define OPTIONS_LIST_MAX 64
#define OPTIONS_CPUS_MAX                                                                           \
	4096 /* harts of the largest machines that Linux runs on are fewer than 8192 */

enum {
	OPTIONS_USAGE = 1, /* wrong: has been said; exit with EXIT_USAGE */
	OPTIONS_HELPED,    /* --help was asked for and printed */
};

struct options {
	/* whom and how to measure */
	bool all, user_only;
	int32_t pid[OPTIONS_LIST_MAX];
	size_t n_pids;
	char **command_line; /* CMD and its arguments, ended by NULL; or NULL */
	uint64_t for_ns;     /* 0: until it ends by itself */
	uint32_t hz;         /* 0: the daemon's default */
	char *event[OPTIONS_LIST_MAX];
	size_t n_events;
	Mperf__StackKind stack;
	uint32_t stack_bytes;

	/* what to ask */
	char *input, *output;
	char *by, *ops, *of_event, *title, *topic;
	bool live;  /* roofline: again and again */
	bool two_phase;
	char *glob[OPTIONS_LIST_MAX]; /* --loops, cut at its commas */
	size_t n_globs;
	uint32_t one_in; /* --sample; 1 where it was not given */
	bool chooses;    /* --loops or --sample was given */
	bool loops; /* it is about programs that count themselves: --pid only narrows */
	char *comm[OPTIONS_LIST_MAX], *cgroup[OPTIONS_LIST_MAX];
	size_t n_comms, n_cgroups;
	uint32_t cpu[OPTIONS_CPUS_MAX];
	size_t n_cpus;
	int64_t since_ns, until_ns;
	uint32_t limit; /* of rows; 0: all (top: what the form calls for) */
	bool inlined;

	/* how to show it */
	bool json, csv, raw, no_color, folded, force;
	uint32_t repeat;      /* stat -r; 0: once */
	uint32_t interval_ms; /* stat -I; 0: at the end. top and roofline -d; 0: a second. blocks --every; 0: once */
	bool batch;           /* top: text, also on a terminal */
	uint32_t frames;      /* top: end after so many; 0: go on */
};

/* Parse what follows the command's name; argv[0] is ignored. Wrong usage is said on stderr.
 * 0, OPTIONS_USAGE, OPTIONS_HELPED, -ENOMEM. */
int options_parse(
	Mperf__Request__BodyCase command, int argc, char **argv, struct options *ret_options);

/* What is measured, for people: "make -j2", "the whole system", "process 12". The caller frees;
 * NULL if memory ran out. */
char *options_what(const struct options *o);

/* Print a command's help: synopsis, options, examples. */
void options_help(Mperf__Request__BodyCase command, FILE *f);

/* "record" for its command, NULL for what is none. */
const char *command_name(Mperf__Request__BodyCase command);
