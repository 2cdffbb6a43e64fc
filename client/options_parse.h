/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Parsing of options, between its parts
 *
 * options.c takes the values one by one, options_check.c looks at what they mean together, and
 * options_slip.c tells what could not be understood.
 */

#include "client/options.h"
#include "client/options_table.h"

#define OPTION_ROWS_MAX 64 /* of one command, the end included */

struct parse {
	Mperf__Request__BodyCase command;
	struct options *o;
	bool said, helped, call_graph_given, every_given;
	int stopped; /* argp's state.next when it gave up */
};

/* Say what is wrong, once, with `mperfctl help COMMAND` as remedy. Returns EINVAL, which makes
 * argp stop. */
int options_wrong(struct parse *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Is this row one of the command's? */
bool options_takes(Mperf__Request__BodyCase command, const struct option_row *row);

/* argp gave up: find again what it stumbled over, and say it. Returns EINVAL. */
int options_slip(struct parse *p, int argc, char **argv);

/* See that what was taken makes sense together. 0, or EINVAL after it was said. */
int options_check(struct parse *p);
