/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Parsing of options, between its parts
 *
 * options.c takes the values one by one, argument.c takes lists, words and non-option arguments, check.c
 * checks their combination, slip.c reports what could not be parsed, and help.c shows what there is.
 */

#include "client/options/options.h"
#include "client/options/table.h"

#define OPTION_ROWS_MAX 64 /* of one command, including the end */

struct parse {
	Mperf__Request__BodyCase command;
	struct options *o;
	bool said, helped, call_graph_given;
	char typed[32];    /* the option of the value in hand, as it was typed: "-I" or "--every" */
	char interval[32]; /* the same of the interval that was given; "": none was */
	int stopped;       /* argp's state.next when it gave up */
};

/* Print what is wrong, once, with `mperfctl help COMMAND` as remedy. Returns EINVAL, which makes
 * argp stop. */
int options_wrong(struct parse *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Note which option argp gives us, for errors that name it. */
struct argp_state;
void options_note_typed(struct parse *p, int key, const char *arg, const struct argp_state *state);

/* Append to a list of OPTIONS_LIST_MAX. 0, or EINVAL after an error message. */
int options_push(struct parse *p, char **list, size_t *n, char *value);
/* One of the words, which a NULL ends. 0, or EINVAL after an error message that names the option. */
int options_take_word(
	struct parse *p, const char *option, const char *const *words, char *arg, char **ret_word);

/* A non-option argument, and -i (argument.c). 0, or EINVAL after an error message. */
int options_take_argument(struct parse *p, char *arg, struct argp_state *state);
int options_take_input(struct parse *p, char *arg);

/* Is this row one of the command's? */
bool options_takes(Mperf__Request__BodyCase command, const struct option_row *row);

/* The command's options for argp; at most OPTION_ROWS_MAX, with an empty one at the end. */
struct argp_option;
void options_fill(Mperf__Request__BodyCase command, struct argp_option *ret_options);

/* After argp gave up: find the argument that it did not understand, and report it. Returns
 * EINVAL. */
int options_slip(struct parse *p, int argc, char **argv);

/* After the last option (place.c). -e of what is read, which has its events already, says which of them is shown: 0,
 * or EINVAL after an error message. */
int options_show_event(struct parse *p);
/* -o is a file for the answer, or names something that the command makes. */
void options_place_answer(struct parse *p);

/* Check that the options make sense together. 0, or EINVAL after an error message. */
int options_check(struct parse *p);
