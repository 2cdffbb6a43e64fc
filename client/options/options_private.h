/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Parsing of options, between its parts
 *
 * options.c walks the command line, value.c stores each option's value, argument.c takes arguments that
 * are not options, check.c checks the combination, slip.c reports what could not be parsed, and help.c
 * shows the options.
 */

#include "client/options/options.h"
#include "client/options/table.h"

#define OPTION_ROWS_MAX 64 /* of one command, including the end */

/* An option on the command line, where options that set the same member count as one. */
struct given {
	const struct option_row *row;
	const char *value; /* as typed; NULL: it has none */
	char typed[32];    /* the option as typed: "-I" or "--every" */
};

struct parse {
	Mperf__Request__BodyCase command;
	struct options *o;
	struct argp_state *state; /* of the option in hand */
	char typed[32];           /* as in struct given */
	struct given given[OPTION_ROWS_MAX];
	size_t n_given;
	bool said, helped;
	int stopped; /* argp's state.next when it gave up */
};

/* Print what is wrong, once, with `mperfctl help COMMAND` as remedy. Returns EINVAL, which makes
 * argp stop. */
int options_wrong(struct parse *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Store the value of an option as typed; NULL: none was given (value.c). 0, or EINVAL after an error
 * message. */
int options_store(struct parse *p, const struct option_row *row, char *arg);

/* Append to a list of OPTIONS_LIST_MAX. 0, or EINVAL after an error message. */
int options_push(struct parse *p, char **list, size_t *n, char *value);

/* Take one of the words, which spaces separate. `what` names the option or command that takes it. 0, or
 * EINVAL after an error message with the nearest word. */
int options_choose_word(
	struct parse *p, const char *what, const char *words, char *arg, char **ret_word);

/* Is it a question about samples, of any number of recordings, of the store, or of what it measures itself? */
static inline bool options_reads_samples(Mperf__Request__BodyCase command)
{
	return 1u << command &
	       (COMMAND_BIT(HOTSPOTS) | COMMAND_BIT(FLAMEGRAPH) | COMMAND_BIT(EXPORT) |
		       COMMAND_BIT(REPORT) | COMMAND_BIT(TIMELINE));
}

/* Possible first arguments of these commands. */
#define JOB_TOPICS "run start end pin unpin report list"
#define SCHEDULE_TOPICS "list check run get"
#define ROOFS_TOPICS "measure"

/* A non-option argument (argument.c). 0, or EINVAL after an error message. */
struct argp_state;
int options_take_argument(struct parse *p, char *arg, struct argp_state *state);

/* Is this row one of the command's? */
bool options_takes(Mperf__Request__BodyCase command, const struct option_row *row);

/* The command's options for argp; at most OPTION_ROWS_MAX, with an empty one at the end. The row of an
 * argp_option's key: NULL if the command has none. */
struct argp_option;
void options_fill(Mperf__Request__BodyCase command, struct argp_option *ret_options);
const struct option_row *options_row(Mperf__Request__BodyCase command, int key);

/* How the option of this name, or letter, was given; NULL: it was not. */
const struct given *options_given(const struct parse *p, const char *name);

/* After argp gave up: find the argument that it did not understand, and report it. Returns
 * EINVAL. */
int options_slip(struct parse *p, int argc, char **argv);

/* Interpret -e after the last option (place.c): if a recording is read, its events are fixed, and
 * -e names the one to show. 0, or EINVAL after an error message. */
int options_show_event(struct parse *p);
/* Decide whether -o is a file for the answer, or one that the command writes itself. */
void options_place_answer(struct parse *p);

/* A rule on options of a command (check.c)
 *
 * It is broken if each list of `when` has an option that was given and `unless` has none. Lists are words
 * separated by spaces: names of options, "by=loop" for an option with this value, and facts in capitals,
 * which fact() knows. "%s" in a message is the option of the first list, as typed. */
struct option_rule {
	uint32_t commands;
	const char *when[3], *unless;
	const char *single;            /* a list of mutually exclusive options; NULL: as above */
	int (*check)(struct parse *p); /* a check in code; NULL: as above */
	const char *says;
};
/* All rules in the order in which they are checked. */
extern const struct option_rule option_rules[];
extern const size_t n_option_rules;

/* Check that the options make sense together. 0, or EINVAL after an error message. */
int options_check(struct parse *p);
